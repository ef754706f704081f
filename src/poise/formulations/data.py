"""What kernels of a step take, `(model, data, options, dt)`: `data` is all that a step reads and changes, `options` is
what is chosen about it.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from poise.collision.collision_layout import CONTACTS, SHAPES
from poise.constraints.islands import ISLANDS
from poise.constraints.kinds.contact import SURFACES
from poise.constraints.kinds.joint_limit import LIMITS
from poise.constraints.kinds.motor import MOTORS
from poise.constraints.response.delassus_kernels import FLOW, PLAIN
from poise.constraints.response.row_system import SYSTEM_IN_LANES
from poise.constraints.row_store import STORE
from poise.dynamics.dynamics_layout import INPUT, STATE, WORK
from poise.dynamics.integrate import STAGES
from poise.dynamics.maximal_bodies.body_state import APART
from poise.formulations.options import BUDGET
from poise.formulations.sleep.sleep_state import SLEEP
from poise.formulations.stages.smooth_motion import TREE_FLAGS
from poise.formulations.step_memory import is_free
from poise.formulations.step_status import BY_DISPLACEMENT
from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width
from poise.kernel.spatial import Motion
from poise.model.model import Model
from poise.solve.newton_kernels import NEWTON
from poise.solve.pgs_kernels import ANSWER, ROWS

OPTIONS = View(
    "Options",
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
    tolerance=Real,  # (1) natural residual over the largest |b|
    budget=Real,  # (1) work of a step at most
    fastest=Real,  # (1) speed of displacements at most, of contacts, slides and points of loops; m/s
    fastest_turn=Real,  # (1) and of whatever turns; rad/s
)
"""What is chosen about a step; steps that Python splits lay other numbers for their parts."""

STATS = View(
    "Stats",
    # told by `free_motion`
    top=Real,  # (1) speed that no point of a shape exceeds; m/s
    haste=Real,  # (1) the most that a shape moves in a second, over its least extent; 1/s
    whirl=Real,  # (1) likewise for what velocity products change of angular velocities; 1/s
    ahead=Real,  # (1) gap up to which contacts are looked for; m
    # of impulses
    residual=Real,  # (1) natural residual of the last step's impulses, over the largest |b|, of the worst island
    swept=Real,  # (1) sweeps of all solves of the step, of each time that of the island that took most
    stepped=Real,  # (1) steps of Newton's method between them
    work=Real,  # (1) of all solves of the step: see `solve.pgs_kernels.ANSWER`
    newton_work=Real,  # (1) of which Newton's method
    status=Real,  # (1) how the solves of impulses ended: SOLVED, STALLED or CAPPED, the worst of them
    shift_status=Real,  # (1) and those of displacements
    wrong=Real,  # (1) how often impulses brought about what no rows stood against
    look=Index,  # (1) how often rows were taken anew
    change=Real,  # (nv) what the equations of motion at the beginning of the step add to velocities
)
"""What a step tells of itself."""

SCRATCH = View(
    "Scratch",
    held=Int,  # (2 n_limits + 3 n_balls) 1 where a limit has a row
    shift=Real,  # (nv) M⁻¹Jᵀμ, then all that moves coordinates
    unmoved=Real,  # (nv) shares of what coordinates move less, for impacts that come late in the step
    lagging=Real,  # (n_links) of a tree's first link: 1 where velocities of free flight are half a step behind
    falling=Real,  # (n_links) likewise: 1 where a tree flies, but for impacts in an instant
    any_unmoved=Index,  # (1) 1 where there are any
    most_sweeps=Real,  # (1) at which impulses end, and
    most_work=Real,  # (1)
    last_sweeps=Real,  # (1) at which displacements do
    last_work=Real,  # (1)
    parted=Index,  # (1) 1 where a step goes on that has been begun: its sweeps and work count on
    carry=Real,  # (1) share of the multipliers of the step before that a step starts from
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
    again=Real,  # (nv) what rows are solved again with, beside these: see `smooth_motion`
    moved=Real,  # (nv) velocities with what all but velocity products add to them
    seen=Real,  # (nq) coordinates at which links are placed and factored at the end of the last step, or not a number
    from_q=Real,  # (nq) where a part of a tree's own begins, and
    from_v=Real,  # (nv) with which velocities
    spin=Real,  # (1) greatest angular velocity of a link at the beginning of the step; rad/s
    fast=Real,  # (1) 1 where trees that are smooth are moved by Runge and Kutta's method
    late=Real,  # (nv) what velocity products add at the end of a step with impacts
    # (n_links) of a tree's first link: how it is integrated (see `smooth_motion`); whether rows act on it, loops,
    # others that push and pull, others that lead to other trees; whether it is led or sleeps; how far a step changes
    # its velocities; whether it has a free joint to the world, and more than one link
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
"""What stages of a step leave for later ones, and a step for the next."""

CALLS = View(
    "Calls",
    see=Count,
    multiply=Count,
    share=Count,
    solve=Count,  # a bound one: what to call, and with which table
    solve_table=Count,
)
"""Addresses of the entries that a step calls."""

DATA = View(
    "Data",
    lanes=Count,  # of worlds
    state=STATE,
    inputs=INPUT,
    work=WORK,  # links at the beginning of a step
    end_work=WORK,  # and at its end
    stages=STAGES,
    bodies=APART,  # of no links where these are no bodies on their own
    shapes=SHAPES,
    surfaces=SURFACES,
    contacts=CONTACTS,
    motors=MOTORS,
    limits=LIMITS,
    sleep=SLEEP,
    prebuilt=STORE,  # rows that are made once a step
    rows=STORE,
    old_rows=STORE,  # those of the step before
    islands=ISLANDS,
    system=SYSTEM_IN_LANES,
    scalar_view=PLAIN,  # the same memory, one row after the other
    flow=FLOW,
    problem=ROWS,
    answer=ANSWER,
    newton=NEWTON,
    stats=STATS,
    scratch=SCRATCH,
    calls=CALLS,
)
"""All that kernels of a step work on, beside the model."""

_NUMBERS = {
    "erp": 0.2,
    "creep": 1e-3,
    "slop": 1e-4,
    "quick": 0.01,
    "near": 2e-3,
    "far": 0.05,
    "margin": 2e-4,
    "push": 40.0,
    "close": 2e-3,
    "turn": 800.0,
    "tolerance": 1e-3,
    "budget": BUDGET,
    "fastest": 3.0,
    "fastest_turn": 10.0,
}
_OF_DOFS = ("shift", "unmoved", "known", "start", "all_products", "products", "again", "moved", "from_v", "late")
_OF_LINKS = ("lagging", "falling", "known_motion", *TREE_FLAGS)


def options_block(
    width: Width,
    *,
    steps: int,
    separate: bool,
    centred: bool,
    sweeps: int = 500,
    every: int = 2,
    stabilize: int = BY_DISPLACEMENT,
    **numbers: float,
) -> Block:
    """What is chosen, and the rest as usual."""
    counts = {"sweeps": sweeps, "every": every, "stabilize": stabilize}
    counts |= {"steps": steps, "separate": int(separate), "centred": int(centred)}
    values = _NUMBERS | numbers
    block = OPTIONS.block(width, **counts, **dict.fromkeys(values, 1))
    for name, value in values.items():
        block.arrays[name][...] = value
    return block


def stats_block(model: Model, width: Width) -> Block:
    """Of a step that is yet to come."""
    return STATS.block(width, **(dict.fromkeys(STATS.fields, 1) | {"change": model.nv}))


def scratch_block(model: Model, width: Width, limits: Block) -> Block:
    """Room for what stages leave, which know of nothing."""
    sizes: dict[str, Any] = dict.fromkeys(SCRATCH.fields, 1)
    sizes |= dict.fromkeys(_OF_DOFS, model.nv) | dict.fromkeys(_OF_LINKS, model.n_links)
    sizes |= {"seen": max(model.nq, 1), "from_q": model.nq}
    sizes |= {"held": 2 * limits.counts()["n_limits"] + 3 * limits.counts()["n_balls"]}
    block = SCRATCH.block(width, **sizes)
    floats = np.array([is_free(model, link) for link in range(model.n_links)], float)
    chained = (np.bincount(model.link_root, minlength=model.n_links) > 1).astype(float)
    block.floats[...] = floats if width.lanes == 1 else floats[:, None]
    block.chained[...] = chained if width.lanes == 1 else chained[:, None]
    block.seen[...] = nan  # unlike any coordinate
    block.carry[...] = 1.0
    return block


def no_bodies(width: Width) -> Block:
    """Where links are no bodies on their own."""
    return APART.block(width, **dict.fromkeys(APART.fields, 0))
