"""A step at velocity level: impulses of all rows in one mixed problem, then new velocities, then new coordinates.

    v⁺ = v + h a_free + M⁻¹Jᵀλ,   q⁺ = q ⊕ h (v⁺ + M⁻¹Jᵀμ)

λ meets every row at the end of the step; what bounces is solved a second time, with the speed that it is to have after
the impact. μ, from a problem of its own, takes rows out of what they have come into, and leaves no speed behind.
"""

from __future__ import annotations

from math import inf

from poise.constraints.ball_limit_rows import emit_ball_limits, strays
from poise.constraints.contact_rows import emit_contacts, overlooked_contacts
from poise.constraints.guest_rows import emit_guests
from poise.constraints.limit_rows import emit_frictions, emit_limits, overlooked_limits, share_within
from poise.constraints.motor_rows import add_motor_forces
from poise.constraints.rolling_rows import renew
from poise.constraints.row_kernels import N_KINDS, blank, has_room, warm_start
from poise.constraints.tree import place_centres
from poise.constraints.tree_values import spread_velocity
from poise.dynamics.abm import accelerate, balance, prepare
from poise.dynamics.integrate import displace, follow, is_sound, keep
from poise.formulations.problem_kernels import (
    begin,
    is_joint,
    keep_answer,
    keep_lam,
    lay_problem,
    list_rows,
    only_pushes,
)
from poise.kernel.calls import call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, zero
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import norm
from poise.model.solids import Solid
from poise.solve.pgs_kernels import BALL, BOUNDED, CONE, LAW

VELOCITY = 0
STRAYING = 0.2
"""Share of displacements where they would take a ball joint beyond its limits."""
SPHERE = int(Solid.SPHERE)
BY_SPEED, BY_DISPLACEMENT = 1, 2
"""How errors of position are mended."""
DONE, UNSOLVED, NO_ROOM, DIVERGED = range(4)
"""How a part of a step ends."""
LOOKS = 2
"""How often rows are taken anew at most, for where impulses take bodies and joints."""
MORE_ROOM, MORE_WAY = 0.5, 0.05
"""How much nearer limits (rad or m) and contacts (m) count in the last look."""
ROLLS = 8
"""How often the bounds of rolling friction follow normal forces at most."""
SHIFT_TOLERANCE = 50.0
"""Of displacements, times that of impulses: natural residual over the largest error."""

RULES = View(
    "Rules",
    lanes=Count,  # of worlds
    # addresses of entries
    see=Count,
    multiply=Count,
    answer=Count,
    solve=Count,
    finish=Count,
    sweeps=Count,
    every=Count,  # sweeps at least before Newton's method
    steps=Count,  # of Newton's method at most, between sweeps
    stabilize=Count,  # BY_SPEED or BY_DISPLACEMENT
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
    shift=Real,  # (nv) M⁻¹Jᵀμ, then all that moves coordinates
    top=Real,  # (1) speed that no point of a shape exceeds; m/s
    residual=Real,  # (1) natural residual of the last step's impulses, over the largest |b|
    swept=Real,  # (1) sweeps that they took
    stepped=Real,  # (1) steps of Newton's method between them
    wrong=Real,  # (1) how often impulses brought about what no rows stood against
    end=Index,  # (1) how the last step ended
    answered=Index,  # (1) 1 where the flow has what the impulses do
    known=Real,  # (nv) what impulses were known to do to velocities when rows were last made
    known_motion=Motion,  # (n_links) and to links
)


@kernel
def look_ahead(o, dt):
    """Gap up to which contacts count, of each world by itself: what can close within two steps."""
    return minimum(load(o.near, 0) + load(o.top, 0) * (2.0 * dt), load(o.far, 0))


@kernel
def predict(m, s, w, x, dt):
    """Motion of all links at the end of the step, without rows."""
    for d in range(m.nv):
        store(x.x, d, load(s.v, d) + load(w.a, d) * dt)
    spread_velocity(m, w, x)


@kernel
def emit(m, s, w, g, u, c, l, e, r, x, o, dt, look):
    """The rows of a step. `x` has what impulses add to velocities, as far as it is known; `look` counts from 0.

    Rows stand against what will be wrong at the end of the step. In the last look, worlds that were wrong each
    time look at all that could be.
    """
    for kind in range(N_KINDS):
        store(r.count, kind, zero(load(r.count, kind)))
    store(r.term_count, 0, zero(load(r.term_count, 0)))
    place_centres(m, w)
    emit_guests(e, r, o.lanes)
    predict(m, s, w, x, dt)
    erp, close = load(o.erp, 0), load(o.close, 0) + load(o.turn, 0) * (dt * dt)
    margin = load(o.margin, 0) + load(o.push, 0) * (dt * dt)
    if look == LOOKS:
        far, none = load(o.wrong, 0) > LOOKS - 0.5, zero(margin)
        close = close + select(far, none + MORE_ROOM, none)
        margin = margin + select(far, load(o.top, 0) * dt + MORE_WAY, none)
    emit_contacts(w, g, u, x, c, r, dt, erp, load(o.quick, 0), look_ahead(o, dt), margin, look)
    emit_frictions(l, r)
    emit_limits(s, w, x, l, r, o.held, dt, erp, close, look)
    emit_ball_limits(s, w, x, l, r, o.held, dt, erp, close, look)


# ---- what bounces ----------------------------------------------------------------------------------------------------


@kernel
def raise_bounces(r, t, plain, p, a):
    """Ask of contacts that push, and met fast, the speed that they bounce back with; worlds that have any."""
    changed = load(a.residual, 0) != load(a.residual, 0)
    for k in range(load(p.n_blocks, 0)):
        if load(p.block_kind, k) == CONE:
            row = load(p.block_start, k)
            bounce = load(r.bounce, load(t.slot, row))
            hit = (bounce > 0.0) & (load(a.lam, row) > 0.0)
            if any_lane(hit):
                changed = changed | hit
                b = load(p.b, row)
                store(p.b, row, select(hit, minimum(b, load(plain.speed, row) - bounce), b))
    return changed


@kernel
def solve_again(p, a, newton, o, changed):
    """Go on from the multipliers as they are, in the worlds of a mask."""
    tolerance = load(a.tolerance, 0)
    begin(a, select(changed, tolerance, zero(tolerance) + inf))
    call_entry(o.solve, p, a, newton, o.sweeps, o.every, o.steps)
    store(a.tolerance, 0, tolerance)


# ---- what overlaps ---------------------------------------------------------------------------------------------------


@kernel
def overlaps(r, t, p, slop):
    """Worlds in which any row has an error that a displacement is to mend."""
    wrong = slop != slop
    for k in range(load(p.n_blocks, 0)):
        slot = load(t.slot, load(p.block_start, k))
        phi = load(r.phi, slot)
        wrong = wrong | (only_pushes(r, slot) & (phi < -slop)) | (is_joint(r, slot) & (phi != 0.0))
    return wrong


@kernel
def speeds_after(r, t, plain, p, a):
    """Row velocities at the end of the step, from those without multipliers."""
    n = load(p.n_rows, 0)
    for k in range(n):
        at = k * load(p.stride, 0)
        speed = load(plain.speed, k) - load(r.cfm, load(t.slot, k)) * load(a.lam, k)
        for j in range(n):
            speed = speed + load(p.a, at + j) * load(a.lam, j)
        store(plain.speed, k, speed)


@kernel
def lay_shift(r, t, plain, p, a, dt, slop, share, tolerance):
    """The problem of the displacements, over dt: errors at the end of the step as they would be, less what is left
    alone. Friction, motors and laws do not count; what only pushes, only pushes here too.
    """
    none = zero(slop)
    worst = none
    for k in range(load(p.n_blocks, 0)):
        row, slot = load(p.block_start, k), load(t.slot, load(p.block_start, k))
        # what nothing can move has no multiplier
        joint, pushes = is_joint(r, slot) & (load(p.lo, row) < load(p.hi, row)), only_pushes(r, slot)
        if load(p.block_kind, k) == LAW:
            store(p.block_kind, k, BOUNDED)
            joint, pushes = slop != slop, slop != slop
        ahead = load(r.phi, slot) * (1.0 / dt) + load(plain.speed, row)
        over = select(joint, ahead, minimum(ahead + slop * (1.0 / dt), none))
        own = select(joint, load(r.erp, slot), none + share)
        b = select(joint | (over < 0.0), over * own, maximum(ahead, none))
        worst = maximum(worst, fabs(select(joint | (over < 0.0), b, none)))
        store(p.b, row, b)
        store(p.lo, row, select(joint, none - inf, none))
        store(p.hi, row, select(joint | pushes, none + inf, none))
        if load(p.block_kind, k) in (BALL, CONE):
            store(p.bound, k, none)
        for i in range(row + 1, load(p.block_start, k + 1)):
            store(p.b, i, none)
            store(p.lo, i, none)
            store(p.hi, i, none)
    for i in range(load(p.n_rows, 0)):
        store(a.lam, i, none)
    begin(a, worst * (tolerance * SHIFT_TOLERANCE))


@kernel
def shift_out(m, s, w, l, r, t, flow, plain, p, a, newton, o, dt, wrong):
    """Displacements, as velocities over the step, that take rows of wrong worlds out of what they have come into.

    A limit that has no row is not exceeded for them: then they are shorter.
    """
    slop = load(o.slop, 0)
    speeds_after(r, t, plain, p, a)
    lay_shift(r, t, plain, p, a, dt, slop, load(o.erp, 0), load(o.tolerance, 0))
    call_entry(o.solve, p, a, newton, o.sweeps, o.every, o.steps)
    keep_lam(p, plain, a)
    call_entry(o.answer, m, w, t, flow)
    share = share_within(s, w, flow, l, o.held, dt)
    share = select(strays(s, w, flow, l, o.held, dt), share * STRAYING, share)
    share = select(wrong, share, zero(share))
    for d in range(m.nv):
        store(o.shift, d, load(flow.a, d) * share)


# ---- the step --------------------------------------------------------------------------------------------------------


@kernel
def free_motion(m, s, x, w, y, g, u, b, o, dt):
    """Accelerations without rows, links in their places, the top speed of all shapes, and their haste; 1 where motors
    have rows in any world.
    """
    if y.n_prescribed != 0:
        follow(m, s, x, y, 0)
    keep(m, s, y)
    prepare(m, s, x, w, dt)
    driven = add_motor_forces(b, w)
    balance(m, x, w)
    accelerate(m, x, w)
    top = zero(load(s.q, 0))
    haste = top
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            velocity = load(w.velocity, link)
            arm = load(w.R, link) @ load(g.position, i) + load(w.r, link)
            speed = norm(motion_at(velocity, arm))
            most = speed + norm(velocity.w) * load(g.reach, i)
            top = maximum(top, most)
            if load(g.kind, i) != SPHERE:  # which is nowhere else when it turns
                speed = most
            haste = maximum(haste, speed * (1.0 / load(u.thin, i)))
    store(o.haste, 0, haste)
    store(o.top, 0, top)
    store(o.ahead, 0, look_ahead(o, dt))
    return 1 if any_lane(driven) else 0


@kernel
def solve_rows(m, s, w, g, u, c, l, e, r, old, t, flow, plain, p, a, newton, o, dt, look):
    """Rows of a step and their impulses: DONE, NO_ROOM for all rows, UNSOLVED."""
    emit(m, s, w, g, u, c, l, e, r, flow, o, dt, look)
    if not has_room(r, o.lanes):
        return NO_ROOM
    if o.lanes > 1:
        blank(r, o.lanes)
    warm_start(r, old, o.lanes, 1.0)
    list_rows(r, t, plain, p, o.lanes)
    if load(t.n_rows, 0) == 0:
        return DONE
    call_entry(o.see, m, s, w, r, t, flow, dt, VELOCITY)
    call_entry(o.multiply, m, t, plain)
    lay_problem(r, t, plain, p, a, dt, load(o.creep, 0), load(o.tolerance, 0))
    call_entry(o.solve, p, a, newton, o.sweeps, o.every, o.steps)
    changed = raise_bounces(r, t, plain, p, a)
    if any_lane(changed):
        solve_again(p, a, newton, o, changed)
    if u.rolls != 0:
        for _ in range(ROLLS):
            changed = renew(r, t, p, a)
            if not any_lane(changed):
                break
            solve_again(p, a, newton, o, changed)
    if any_lane(load(a.residual, 0) > load(a.tolerance, 0)):
        return UNSOLVED
    return DONE


@kernel
def look_again(m, s, w, g, c, l, t, flow, plain, p, a, o, dt):
    """Whether impulses bring about what no rows stand against; `flow` has what they do in such worlds."""
    if load(t.n_rows, 0) == 0:
        return False
    keep_lam(p, plain, a)
    call_entry(o.answer, m, w, t, flow)
    wrong = overlooked_contacts(w, g, flow, c, dt, look_ahead(o, dt))
    wrong = wrong | overlooked_limits(s, w, flow, l, o.held, dt) | strays(s, w, flow, l, o.held, dt)
    if not any_lane(wrong):
        store(o.answered, 0, 1)
        return False
    times = load(o.wrong, 0)
    store(o.wrong, 0, select(wrong, times + 1.0, times))
    for d in range(m.nv):  # what other worlds knew in their last look, they know in this one: it ends as the last did
        known = select(wrong, load(flow.a, d), load(o.known, d))
        store(flow.a, d, known)
        store(o.known, d, known)
    for i in range(m.n_links):
        motion = select(wrong, load(flow.acceleration, i), load(o.known_motion, i))
        store(flow.acceleration, i, motion)
        store(o.known_motion, i, motion)
    return True


@kernel
def know_nothing(m, flow, o):
    """Of what impulses do, before the first look."""
    for d in range(m.nv):
        store(flow.a, d, zero(load(flow.a, d)))
        store(o.known, d, zero(load(flow.a, d)))
    for i in range(m.n_links):
        store(flow.acceleration, i, no_motion(load(flow.a, 0)))
        store(o.known_motion, i, no_motion(load(flow.a, 0)))
    store(o.wrong, 0, zero(load(o.wrong, 0)))
    store(o.answered, 0, 0)


@kernel
def advance(m, s, x, w, y, g, u, c, l, e, r, old, t, flow, plain, p, a, newton, o, dt):
    """A step from the free motion and the contacts on; the rows of the step before are in `old`.

    DONE or DIVERGED; or NO_ROOM for all rows; or UNSOLVED, and the step still to be finished.
    """
    know_nothing(m, flow, o)
    end = solve_rows(m, s, w, g, u, c, l, e, r, old, t, flow, plain, p, a, newton, o, dt, 0)
    look = 0
    while end != NO_ROOM and look < LOOKS and look_again(m, s, w, g, c, l, t, flow, plain, p, a, o, dt):
        look += 1
        end = solve_rows(m, s, w, g, u, c, l, e, r, old, t, flow, plain, p, a, newton, o, dt, look)
    if end != DONE:
        return end
    call_entry(o.finish, m, s, x, w, y, l, r, t, flow, plain, p, a, newton, o, dt)
    return load(o.end, 0)


@kernel
def apply_impulses(m, s, w, l, r, t, flow, plain, p, a, newton, o, dt):
    """What impulses add to the velocities, and the displacements that mend errors."""
    keep_answer(r, t, plain, p, a)
    store(o.residual, 0, load(a.residual, 0) * load(o.tolerance, 0) / load(a.tolerance, 0))
    store(o.swept, 0, load(a.sweeps, 0))
    store(o.stepped, 0, load(newton.steps, 0))
    if load(o.answered, 0) == 0:
        call_entry(o.answer, m, w, t, flow)
    for d in range(m.nv):
        store(s.v, d, load(s.v, d) + load(flow.a, d))
    if o.stabilize == BY_DISPLACEMENT:
        wrong = overlaps(r, t, p, load(o.slop, 0))
        if any_lane(wrong):
            shift_out(m, s, w, l, r, t, flow, plain, p, a, newton, o, dt, wrong)


@kernel
def finish_step(m, s, x, w, y, l, r, t, flow, plain, p, a, newton, o, dt):
    """The next state from the impulses; `o.end` is DONE, or DIVERGED and the state as it was."""
    for d in range(m.nv):
        store(o.shift, d, zero(load(s.v, d)))
    store(o.residual, 0, zero(load(o.residual, 0)))
    store(o.swept, 0, zero(load(o.swept, 0)))
    store(o.stepped, 0, zero(load(o.swept, 0)))
    if load(t.n_rows, 0) > 0:
        apply_impulses(m, s, w, l, r, t, flow, plain, p, a, newton, o, dt)
    for d in range(m.nv):
        v = load(s.v, d) + load(w.a, d) * dt
        store(s.v, d, v)
        store(o.shift, d, load(o.shift, d) + v)
    displace(m, s.q, o.shift, dt, s.q)
    if y.n_prescribed != 0:
        follow(m, s, x, y, 2)
    store(o.end, 0, DIVERGED)
    if is_sound(m, s, y):
        store(o.end, 0, DONE)
