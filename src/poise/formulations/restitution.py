"""Bounces at the time of impact within a step.

The contacts of an island are followed through the step by their gaps and velocities, as the constraint matrix A ties
them together: with jumps A Λ at the times of impact τ and the acceleration a without rows, the gap of a contact is

    φ(t) = φ + t u + t²/2 a + Σ (t − τ) A Λ

The first contact that closes, and all that touch then, are solved for impulses Λ in an instant: what met faster than
`quick` leaves at −e times its velocity, nothing else approaches. Then follows the next one, IMPACTS of them at most:
all that would close later is struck in the last one. So the balls of a cradle strike one after another, and a ball
falls and rises for the times that it has.

What is left is the step as it is without bounces: contacts that were struck are to end it with the velocity that they
have then, gaps of others begin from where the impacts leave them. Bodies move by h v⁺ less τ times what an impact at τ
changes of their velocity.

Newton's restitution may give energy where there is friction (T. Kane 1985). Then the impulses are mixed with those
of the same impact without restitution, such that they do no work.

Jacobians are those of the beginning of the step: a body that turns fast strikes with the arms that it had there.
"""

from __future__ import annotations

from math import inf

from poise.constraints.tree_values import stored_row_velocity
from poise.formulations.problem_kernels import begin, only_pushes
from poise.formulations.tree_flags import flag_of, root_of_body, root_of_dof, set_flag
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store, store_where
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, sqrt, zero
from poise.kernel.vec import dot, zero3
from poise.solve.pgs_kernels import BALL, BOUNDED, CONE, LAW

IMPACTS = 12
"""Of an island in a step, at most; those that come later are part of the last one."""
SWEEPS = 100
"""Of an impact, at most."""
TOUCH = 1e-6
"""Gap that counts as none; m."""
AT_ONCE = 1e-6
"""Share of the step within which impacts are one."""
PARALLEL = 0.9
"""Cosine of normals of contacts of two bodies that strike together, as the corners of a box on a floor do."""
AWAY = 1e6
"""Velocity at which contacts part that have no share in an impact, times the largest one that has."""
RESTS = 1e-3
"""Impulse beside those of impacts, over the largest of these, that counts as none."""
GAIN = 1e-6
"""Work of impulses that rounding may leave, over the sum of its parts."""


# ---- what moves how --------------------------------------------------------------------------------------------------


@kernel
def is_hard(r, slot):
    """Whether a contact has no spring of its own."""
    return load(r.cfm, slot) == 0.0


@kernel
def is_lively(r, t, p):
    """Worlds in which a contact of the island at hand meets fast enough to bounce."""
    none = zero(load(p.b, 0))
    lively = none != none
    for k in range(load(p.n_blocks, 0)):
        if load(p.block_kind, k) == CONE:
            slot = load(t.slot, load(p.block_start, k))
            lively = lively | ((load(r.bounce, slot) > 0.0) & is_hard(r, slot))
    return lively


@kernel
def pull_of(i, plain, row, dt):
    """Acceleration of a row without impulses."""
    return (load(plain.speed, row) - load(i.before, row)) * (1.0 / dt)


@kernel
def speed_of(i, row):
    """Velocity of a row after the impacts so far, without what accelerates it in this step."""
    return load(i.before, row) + load(i.jumped, row)


@kernel
def gap_at(r, i, t, plain, row, time, dt):
    """Gap of a contact at a time."""
    way, lag = load(r.phi, load(t.slot, row)) + time * speed_of(i, row) - load(i.moved, row), load(i.lag, row)
    return way + pull_of(i, plain, row, dt) * (time * (lag + time * 0.5))


@kernel
def time_of_impact(r, i, t, plain, o, row, time, dt):
    """When a contact closes, not before `time`; infinite where it does not, or approaches slowly."""
    pull, speed, none = pull_of(i, plain, row, dt), speed_of(i, row), zero(time)
    now, gap = speed + pull * (time + load(i.lag, row)), gap_at(r, i, t, plain, row, time, dt)
    left = now * now - 2.0 * pull * gap
    meets = is_hard(r, load(t.slot, row)) & (speed < -load(o.quick, 0)) & (now < 0.0) & ((gap <= 0.0) | (left > 0.0))
    wait = 2.0 * gap / select(meets, sqrt(maximum(left, none)) - now, none + 1.0)
    return select(meets, time + maximum(wait, none), spread(inf, none))


# ---- one impact ------------------------------------------------------------------------------------------------------


@kernel
def direction_of(r, slot):
    """Along what a contact pushes its body."""
    return select(load(r.b, slot) >= 0, load(r.Jb, slot).f, load(r.Ja, slot).f)


@kernel
def next_impact(r, i, t, plain, p, o, time, dt):
    """When the next contact closes, its bodies and its normal."""
    none = zero(time)
    soonest, normal = spread(inf, none), zero3(none)
    a, b = zero(load(r.a, 0)) - 1, zero(load(r.a, 0)) - 1
    for k in range(load(p.n_blocks, 0)):
        if load(p.block_kind, k) == CONE:
            row = load(p.block_start, k)
            slot, when = load(t.slot, row), time_of_impact(r, i, t, plain, o, row, time, dt)
            sooner = when < soonest
            soonest, normal = select(sooner, when, soonest), select(sooner, direction_of(r, slot), normal)
            a, b = select(sooner, load(r.a, slot), a), select(sooner, load(r.b, slot), b)
    return soonest, a, b, normal


@kernel
def lay_contact(r, i, t, plain, p, o, row, time, struck, dt):
    """A contact in an impact: velocities before it in `p.b` less what they are to be after it, in `i.wanted`; the
    largest of them. A bounce that would end within the step is none.
    """
    slot, none, left, lag = load(t.slot, row), zero(time), dt - time, load(i.lag, row)
    touches = struck | (is_hard(r, slot) & (gap_at(r, i, t, plain, row, time, dt) <= TOUCH))
    pull, speed = pull_of(i, plain, row, dt), speed_of(i, row)
    back = -load(r.restitution, slot) * (speed + pull * (time + lag))
    bounces = struck & (back > 0.0) & (back + pull * left * 0.5 > 0.0)
    wanted, size = select(bounces, back, none), none
    for k in range(row, row + 3):
        before = speed_of(i, k) + select(bounces, pull_of(i, plain, k, dt) * (time + lag), none)
        store(p.b, k, select(touches, before - wanted, none))
        store(i.wanted, k, wanted)
        size = maximum(size, select(touches, maximum(fabs(before), wanted), none))
        wanted = none
    store(i.touches, row, select(touches, none + 1.0, none))
    store(i.hit, row, select(struck, none + 1.0, load(i.hit, row)))
    return size


@kernel
def lay_other(r, i, t, p, k, row, time):
    """Another block in an impact: what holds goes on to hold, limits that are reached push, finite forces do nothing.
    Gives the largest velocity.
    """
    kind, slot, none = load(p.block_kind, k), load(t.slot, row), zero(time)
    size = none
    if kind == BALL:
        store(p.bound, k, none)
        for n in range(row, load(p.block_start, k + 1)):
            store(p.b, n, none)
            store(i.wanted, n, none)
        return none
    store(i.wanted, row, none)
    if kind == LAW:
        store(p.block_kind, k, BOUNDED)
        store(p.b, row, none)
        store(p.lo, row, none)
        store(p.hi, row, none)
        return none
    lo, hi, speed = load(p.lo, row), load(p.hi, row), speed_of(i, row)
    holds, pushes = (lo == -inf) & (hi == inf), only_pushes(r, slot)
    reached = pushes & (load(r.phi, slot) + time * speed - load(i.moved, row) <= TOUCH)
    store(p.b, row, select(reached, speed, none))
    store(p.lo, row, select(holds, lo, none))
    store(p.hi, row, select(holds | reached, hi, none))
    return select(reached, fabs(speed), size)


@kernel
def lay_impact(r, i, t, plain, p, a, o, time, body_a, body_b, normal, there, last, dt):
    """The problem of the impact at a time, in the worlds of a mask; the `last` one has all that would come later."""
    none = zero(time)
    size = none
    for k in range(load(p.n_blocks, 0)):
        row = load(p.block_start, k)
        if load(p.block_kind, k) == CONE:
            slot, when = load(t.slot, row), time_of_impact(r, i, t, plain, o, row, time, dt)
            beside = (load(r.a, slot) == body_a) & (load(r.b, slot) == body_b)
            beside = beside & (dot(direction_of(r, slot), normal) > PARALLEL)
            if last:
                beside = there
            struck = there & ((when <= time + AT_ONCE * dt) | (beside & (when <= dt)))
            size = maximum(size, lay_contact(r, i, t, plain, p, o, row, time, struck, dt))
            store(a.slip, k, none)
        else:
            size = maximum(size, lay_other(r, i, t, p, k, row, time))
    for k in range(load(p.n_blocks, 0)):
        if load(p.block_kind, k) == CONE:
            row = load(p.block_start, k)
            store(p.b, row, select(load(i.touches, row) > 0.0, load(p.b, row), size * AWAY + 1.0))
    for row in range(load(p.n_rows, 0)):
        store(a.lam, row, none)
    return size


@kernel
def solve_impact(p, a, newton, o, size, there):
    """Impulses of the impact at hand; what they change, in `i.jump`, is still to be found. Sweeps count on."""
    swept, most = load(a.sweeps, 0), load(a.most_sweeps, 0)
    begin(a, select(there, select(size > 0.0, size, zero(size) + 1.0) * load(o.tolerance, 0), spread(inf, size)))
    store(a.sweeps, 0, swept)
    store(a.most_sweeps, 0, minimum(most, swept + SWEEPS))
    ask_bound(o.solve, o.solve_table, o.sweeps, o.every, o.steps)
    store(a.most_sweeps, 0, most)


@kernel
def find_jumps(r, i, t, p, a):
    """Changes of all row velocities, in `i.jump`; work of the impulses, and the sum of its parts."""
    none = zero(load(a.tolerance, 0))
    n, stride = load(p.n_rows, 0), load(p.stride, 0)
    for row in range(n):
        store(i.jump, row, none)
    for k in range(n):
        lam = load(a.lam, k)
        if any_lane(lam != 0.0):
            for row in range(n):
                store(i.jump, row, load(i.jump, row) + load(p.a, k * stride + row) * lam)
            store(i.jump, k, load(i.jump, k) - load(r.cfm, load(t.slot, k)) * lam)
    work, parts = none, none
    for k in range(n):
        lam, before = load(a.lam, k), load(p.b, k) + load(i.wanted, k)
        work = work + select(lam != 0.0, lam * (before + 0.5 * load(i.jump, k)), none)
        parts = parts + select(lam != 0.0, fabs(lam * before), none)
    return work, parts


@kernel
def lessen(r, i, t, p, a, newton, o, size, gains):
    """Mix the impulses with those of the same impact without restitution, so that they do no work, in the worlds of a
    mask: along the way from one to the other the work is q s² + l s + c, with c ≤ 0.
    """
    none = zero(size)
    for k in range(load(p.n_rows, 0)):
        store(i.first_lam, k, load(a.lam, k))
        store(i.first_jump, k, load(i.jump, k))
        store(p.b, k, load(p.b, k) + load(i.wanted, k))
    solve_impact(p, a, newton, o, size, gains)
    find_jumps(r, i, t, p, a)
    square, line, still = none, none, none
    for k in range(load(p.n_rows, 0)):
        before, lam, jump = load(p.b, k), load(a.lam, k), load(i.jump, k)
        more, further = load(i.first_lam, k) - lam, load(i.first_jump, k) - jump
        acts = (lam != 0.0) | (more != 0.0)
        square = square + select(acts, 0.5 * more * further, none)
        line = line + select(acts, more * (before + jump), none)
        still = still + select(acts, lam * (before + 0.5 * jump), none)
    still = select(still < 0.0, still, none)
    root = sqrt(maximum(line * line - 4.0 * square * still, none))
    share = select(line > 0.0, -2.0 * still / maximum(root + line, none + 1e-30), none)
    share = select((line <= 0.0) & (square > 0.0), (root - line) / maximum(2.0 * square, none + 1e-30), share)
    share = select(share < 1.0, share, none + 1.0)
    share = select(gains, share, none + 1.0)
    for k in range(load(p.n_rows, 0)):
        lam, jump = load(a.lam, k), load(i.jump, k)
        first, changed = load(i.first_lam, k), load(i.first_jump, k)
        store(a.lam, k, select(gains, lam + (first - lam) * share, first))
        store(i.jump, k, select(gains, jump + (changed - jump) * share, changed))


@kernel
def note_impact(i, p, a, time, there):
    """Add an impact to those before it."""
    for k in range(load(p.n_rows, 0)):
        lam, jump = load(a.lam, k), load(i.jump, k)
        store_where(i.jumped, k, load(i.jumped, k) + jump, there)
        store_where(i.moved, k, load(i.moved, k) + time * jump, there)
        store_where(i.struck, k, load(i.struck, k) + lam, there)
        store_where(i.late, k, load(i.late, k) + time * lam, there)


# ---- all of them -----------------------------------------------------------------------------------------------------


@kernel
def find_lags(m, w, o):
    """Trees whose velocities in free flight are half a step behind: `o.lagging` 1 at their first links, else 0. Springs
    and dampers are met at the end of the step, and so is then all else that acts on a tree.
    """
    none = zero(load(w.a, 0))
    for i in range(m.n_links):
        store(o.lagging, i, none if o.centred != 0 else none + 1.0)
        store(o.falling, i, none)
    for d in range(m.nv):
        root = load(m.dof_root, d)
        store(o.lagging, root, select(load(w.diagonal, d) != 0.0, none + 1.0, load(o.lagging, root)))


@kernel
def keep_problem(m, s, w, r, i, t, p, o, dt):
    """Remember the problem of the step, and how rows move now."""
    none = zero(load(p.b, 0))
    for k in range(load(p.n_rows, 0)):
        store(i.kept_b, k, load(p.b, k))
        store(i.kept_lo, k, load(p.lo, k))
        store(i.kept_hi, k, load(p.hi, k))
        slot = load(t.slot, k)
        store(i.before, k, stored_row_velocity(m, w, r, slot, s.v, w.velocity))
        of_a = flag_of(o.lagging, root_of_body(m, load(r.a, slot)))
        of_b = flag_of(o.lagging, root_of_body(m, load(r.b, slot)))
        store(i.lag, k, maximum(of_a, of_b) * (0.5 * dt))
        store(i.jumped, k, none)
        store(i.moved, k, none)
        store(i.struck, k, none)
        store(i.late, k, none)
        store(i.hit, k, none)
    for k in range(load(p.n_blocks, 0)):
        store(i.kept_bound, k, load(p.bound, k))
        store(i.kept_kind, k, load(p.block_kind, k))


@kernel
def put_back(r, i, t, plain, p, a, dt, there, fresh):
    """The problem of the step again, with contacts as impacts have left them, and multipliers to start from."""
    none = zero(load(p.b, 0))
    for k in range(load(p.n_rows, 0)):
        store(p.b, k, load(i.kept_b, k))
        store(p.lo, k, load(i.kept_lo, k))
        store(p.hi, k, load(i.kept_hi, k))
        lam = load(r.lam, load(t.slot, k))
        if fresh != 0:
            lam = select(there, lam + load(i.struck, k), lam)
        store(a.lam, k, lam)
    for k in range(load(p.n_blocks, 0)):
        store(p.bound, k, load(i.kept_bound, k))
        store(p.block_kind, k, load(i.kept_kind, k))
        if load(p.block_kind, k) == CONE:
            row = load(p.block_start, k)
            slot = load(t.slot, row)
            store(a.slip, k, none)
            phi, speed = load(r.phi, slot), load(plain.speed, row)
            left, ahead = phi - load(i.moved, row), speed + load(i.jumped, row)
            ends = select(left + ahead * dt < 0.0, maximum(ahead, none), ahead)
            closes = maximum(left, none) * (-1.0 / dt)
            hit, counts = load(i.hit, row) > 0.0, there & is_hard(r, slot)
            b = select(hit, speed - ends, select(phi > 0.0, speed - closes, load(p.b, row)))
            store(p.b, row, select(counts, b, load(p.b, row)))
            for n in (row + 1, row + 2):  # friction of impacts is done: only what comes on top is to be found
                store(p.b, n, select(counts & hit, -load(i.jumped, n), load(p.b, n)))
            gamma = load(i.moved, row) * (-2.0 / (dt * dt))
            store_where(r.gamma, slot, gamma, counts)


@kernel
def keep_unmoved(m, w, t, i, flow, plain, p, o, dt, there):
    """What the degrees of freedom of the island move less, because impacts come late in the step."""
    if load(o.any_unmoved, 0) == 0:
        for d in range(m.nv):
            store(o.unmoved, d, zero(load(o.unmoved, d)))
        store(o.any_unmoved, 0, 1)
    none = zero(load(plain.lam, 0))
    for k in range(load(p.n_rows, 0)):
        store(plain.lam, k, select(there, load(i.late, k) * (-1.0 / dt), none))
    for k in range(load(p.n_rows, 0), load(p.stride, 0)):
        store(plain.lam, k, none)
    call_entry(o.share, m, w, t, flow)
    for e in range(load(t.n_dofs, 0)):
        d = load(t.dof, e)
        store(o.unmoved, d, load(flow.share, d))
        store(flow.share, d, zero(load(flow.share, d)))


@kernel
def find_falling(m, r, i, t, p, a, o):
    """Trees of the island at hand that impacts alone push in this step, and smooth forces move: `o.falling` 1 at their
    first links. They fly for all of the step but for an instant.
    """
    none = zero(load(a.tolerance, 0))
    most = none
    for k in range(load(p.n_rows, 0)):
        most = maximum(most, fabs(load(i.struck, k)))
    for k in range(load(p.n_rows, 0)):
        slot, hit = load(t.slot, k), load(i.hit, k) > 0.0
        if any_lane(hit):
            set_flag(o.falling, root_of_body(m, load(r.a, slot)), 1.0, hit)
            set_flag(o.falling, root_of_body(m, load(r.b, slot)), 1.0, hit)
    for k in range(load(p.n_rows, 0)):
        slot, lam = load(t.slot, k), load(a.lam, k)
        pushed = fabs(lam - load(i.struck, k)) > most * RESTS
        if any_lane(pushed):
            set_flag(o.falling, root_of_body(m, load(r.a, slot)), 0.0, pushed)
            set_flag(o.falling, root_of_body(m, load(r.b, slot)), 0.0, pushed)
            set_flag(o.falling, root_of_dof(m, load(r.dof, slot)), 0.0, pushed)


@kernel
def bounce_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, fresh):
    """Let the contacts of the island at hand bounce at their times of impact, and lay the problem of the step with what
    follows from that; sweeps count on. Multipliers start from those of the rows, and where these are `fresh` from
    those of the impacts on top.
    """
    there, none = is_lively(r, t, p), zero(load(p.b, 0))
    store(i.lively, 0, 0)
    if not any_lane(there):
        return
    store(i.lively, 0, 1)
    tolerance, time = load(a.tolerance, 0), none
    if load(o.any_unmoved, 0) == 0:
        find_lags(m, w, o)
    keep_problem(m, s, w, r, i, t, p, o, dt)
    for n in range(IMPACTS):
        when, body_a, body_b, normal = next_impact(r, i, t, plain, p, o, time, dt)
        strikes = there & (when <= dt)
        if not any_lane(strikes):
            break
        time = select(strikes, when, time)
        size = lay_impact(r, i, t, plain, p, a, o, time, body_a, body_b, normal, strikes, n == IMPACTS - 1, dt)
        solve_impact(p, a, newton, o, size, strikes)
        work, parts = find_jumps(r, i, t, p, a)
        gains = strikes & (work > parts * GAIN)
        if any_lane(gains):
            lessen(r, i, t, p, a, newton, o, size, gains)
        note_impact(i, p, a, time, strikes)
        for k in range(load(p.n_blocks, 0)):
            store(p.block_kind, k, load(i.kept_kind, k))
            store(p.bound, k, load(i.kept_bound, k))
        for k in range(load(p.n_rows, 0)):
            store(p.lo, k, load(i.kept_lo, k))
            store(p.hi, k, load(i.kept_hi, k))
    put_back(r, i, t, plain, p, a, dt, there, fresh)
    spent = load(a.sweeps, 0)
    begin(a, tolerance)
    store(a.sweeps, 0, spent)
    keep_unmoved(m, w, t, i, flow, plain, p, o, dt, there)
