"""What rules a step at velocity level, and what it tells: the block that its kernels share."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load
from poise.kernel.scalars import minimum
from poise.kernel.spatial import Motion

BY_SPEED, BY_DISPLACEMENT = 1, 2
"""How errors of position are mended."""
DONE, UNSOLVED, NO_ROOM, DIVERGED, TOO_LONG, NO_CONTACT_ROOM, NO_PREPARED_ROOM = range(7)
"""How a part of a step ends; TOO_LONG for what impulses make of velocities, and nothing is done yet; no room for all
constraints, contacts, or constraints that are prepared once a step.
"""
WHOLE, GOES_ON, UNLESS_LONG = range(3)
"""Of a part of a step: all of it; what is left where it was UNSOLVED; all of it unless it is TOO_LONG."""
DRIVEN, ASLEEP, HASTY = 1, 2, 3
"""What the free motion finds: motors that are rows; or nobody who moves; or shapes for which a step is too long."""
ALL, UNLESS_HASTY, THE_REST = range(3)
"""How much of it is wanted: all; where shapes are too fast for the step, where they are and no more; the rest then."""

WITH_LOOPS = 2
"""Of separate bodies: some are held by rows, which need to know how joints bend their ways."""

RULES = View(
    "Rules",
    lanes=Count,  # of worlds
    # addresses of entries
    see=Count,
    multiply=Count,
    share=Count,
    solve=Count,  # a bound one: what to call, and with which table
    solve_table=Count,
    sweeps=Count,
    every=Count,  # sweeps at least before Newton's method
    steps=Count,  # of Newton's method at most, between sweeps
    stabilize=Count,  # BY_SPEED or BY_DISPLACEMENT
    centred=Count,  # 1 where velocities of free flight are those of their time, 0 where they are half a step behind
    separate=Count,  # 1 where links are bodies on their own, WITH_LOOPS where rows hold them as well, else 0
    erp=Real,  # (1) share of an error that is mended in a step
    creep=Real,  # (1) speed at most by which errors are mended; m/s or rad/s
    slop=Real,  # (1) error beyond which a displacement mends it; m or rad
    quick=Real,  # (1) speed of approach above which contacts bounce; m/s
    near=Real,  # (1) gap up to which contacts count in any case; m
    far=Real,  # (1) gap beyond which none does; m
    margin=Real,  # (1) gap at the end of a step below which a contact has rows; m
    push=Real,  # (1) acceleration that impulses may give, for which the margin is larger; m/s²
    close=Real,  # (1) distance from a limit at the end of a step below which it has a row; rad or m
    turn=Real,  # (1) acceleration of coordinates that impulses may give; rad/s² or m/s²
    held=Int,  # (2 n_limits + 3 n_balls) 1 where a limit has a row
    tolerance=Real,  # (1) natural residual over the largest |b|
    ahead=Real,  # (1) gap up to which contacts are looked for; told by `free_motion`; m
    haste=Real,  # (1) the most that a shape moves in a second, over its least extent; told by `free_motion`; 1/s
    whirl=Real,  # (1) likewise for what velocity products change of angular velocities; told by `free_motion`; 1/s
    shift=Real,  # (nv) M⁻¹Jᵀμ, then all that moves coordinates
    unmoved=Real,  # (nv) shares of what coordinates move less, for impacts that come late in the step
    lagging=Real,  # (n_links) of a tree's first link: 1 where velocities of free flight are half a step behind
    falling=Real,  # (n_links) likewise: 1 where a tree flies, but for impacts in an instant
    any_unmoved=Index,  # (1) 1 where there are any
    top=Real,  # (1) speed that no point of a shape exceeds; m/s
    residual=Real,  # (1) natural residual of the last step's impulses, over the largest |b|, of the worst island
    swept=Real,  # (1) sweeps of all solves of the step, of each time that of the island that took most
    stepped=Real,  # (1) steps of Newton's method between them
    work=Real,  # (1) of all solves of the step: see `solve.pgs_kernels.ANSWER`
    newton_work=Real,  # (1) of which Newton's method
    status=Real,  # (1) how the solves of impulses ended: SOLVED, STALLED or CAPPED, the worst of them
    shift_status=Real,  # (1) and those of displacements
    budget=Real,  # (1) work of a step at most
    most_sweeps=Real,  # (1) at which impulses end, and
    most_work=Real,  # (1)
    last_sweeps=Real,  # (1) at which displacements do
    last_work=Real,  # (1)
    parted=Index,  # (1) 1 where a step goes on that has been begun: its sweeps and work count on
    fastest=Real,  # (1) speed of displacements at most, of contacts, slides and points of loops; m/s
    fastest_turn=Real,  # (1) and of whatever turns; rad/s
    wrong=Real,  # (1) how often impulses brought about what no rows stood against
    carry=Real,  # (1) share of the multipliers of the step before that a step starts from
    look=Index,  # (1) how often rows were taken anew
    looked_swept=Real,  # (1) of sweeps, Newton steps and work: what there was before a world's own last look
    looked_stepped=Real,  # (1)
    looked_work=Real,  # (1)
    looked_newton_work=Real,  # (1)
    answered=Index,  # (1) 1 where the flow has what the impulses do
    solved_again=Index,  # (1) 1 where rows have been solved with the velocity products that impulses leave
    known=Real,  # (nv) what impulses were known to do to velocities when rows were last made
    known_motion=Motion,  # (n_links) and to links
    start=Real,  # (nv) accelerations without rows at the beginning of the step
    all_products=Real,  # (nv) the part of them that velocity products have, once it is known
    has_products=Index,  # (1) 1 where it is
    products=Real,  # (nv) that part, 0 where a tree is neither split nor centred
    any_split=Index,  # (1) 1 where a tree is split or centred
    again=Real,  # (nv) what rows are solved again with, beside these: see `smooth`
    moved=Real,  # (nv) velocities with what all but velocity products add to them
    seen=Real,  # (nq) coordinates at which links are placed and factored at the end of the last step, or not a number
    from_q=Real,  # (nq) where a part of a tree's own begins, and
    from_v=Real,  # (nv) with which velocities
    spin=Real,  # (1) greatest angular velocity of a link at the beginning of the step; rad/s
    fast=Real,  # (1) 1 where trees that are smooth are moved by Runge and Kutta's method
    late=Real,  # (nv) what velocity products add at the end of a step with impacts
    change=Real,  # (nv) what the equations of motion at the beginning of the step add to velocities
    # (n_links) of a tree's first link: how it is integrated (see `smooth`); whether rows act on it, loops, others that
    # push and pull, others that lead to other trees; whether it is led or sleeps; how far a step changes its
    # velocities; whether it has a free joint to the world, and more than one link
    smooth=Real,
    split=Real,
    centre=Real,
    resolved=Real,
    rows=Real,
    looped=Real,
    pulled=Real,
    tied=Real,
    led=Real,
    added=Real,
    floats=Real,
    chained=Real,
)


@kernel
def look_ahead(o, dt):
    """Gap up to which contacts count, of each world by itself: what can close within two steps."""
    return minimum(load(o.near, 0) + load(o.top, 0) * (2.0 * dt), load(o.far, 0))
