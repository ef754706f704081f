"""Restitution at the times of impact within a step.

The gaps and velocities of an island's contacts are followed through the step, coupled by the constraint matrix A: with
impulses Λ at the times of impact τ and the acceleration a without rows, the gap of a contact is

    φ(t) = φ + t u + t²/2 a + Σ (t − τ) A Λ

The first contact that closes, and all that touch then, are solved for instantaneous impulses Λ: a contact that
approached faster than `quick` leaves at −e times its velocity, the others stop approaching. Then follows the next
contact, with IMPACTS impacts at most; the last one includes all contacts that would close later. Thus the balls of
Newton's cradle strike one after another, and a ball falls and rises for the correct times.

The step is then solved without restitution: contacts that were struck end it with their velocity after the impacts, and
the gaps of the others start from where the impacts leave them. Bodies move by h v⁺ less τ times the change of their
velocity by an impact at τ.

Newton's restitution with friction may add energy (T. Kane 1985). In this case the impulses are blended with those of
the same impact without restitution, such that they do no work.

Jacobians are those of the beginning of the step: a body that rotates fast strikes with the arms that it had there.
"""

from __future__ import annotations

from math import inf

from poise.constraints.response.row_velocity import stored_row_velocity
from poise.formulations.stages.assemble_problem import begin, only_pushes
from poise.formulations.stages.tree_flags import flag_of, root_of_body, root_of_dof, set_flag
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store, store_where
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, sqrt, zero
from poise.kernel.vec import dot, zero3
from poise.solve.pgs_kernels import BALL, BOUNDED, CONE, LAW

IMPACTS = 12
"""Of an island in a step, at most; later impacts are merged into the last one."""
SWEEPS = 100
"""Of an impact, at most."""
TOUCH = 1e-6
"""Gap that counts as touching; m."""
AT_ONCE = 1e-6
"""Share of the step within which impacts are simultaneous."""
PARALLEL = 0.9
"""Cosine between normals of contacts of two bodies that strike together, as at the corners of a box on a floor."""
AWAY = 1e6
"""Separation velocity of contacts that take no part in an impact, relative to the largest velocity in it."""
RESTS = 1e-3
"""Impulse besides those of impacts, relative to the largest of these, that counts as zero."""
GAIN = 1e-6
"""Work of impulses that may be due to rounding, relative to the sum of its parts."""


# ---- motion of rows --------------------------------------------------------------------------------------------------


@kernel
def is_hard(rows, slot):
    """Whether a contact is rigid."""
    return load(rows.cfm, slot) == 0.0


@kernel
def is_lively(rows, system, problem):
    """Worlds in which a contact of the current island approaches fast enough to bounce."""
    none = zero(load(problem.b, 0))
    lively = none != none
    for k in range(load(problem.n_blocks, 0)):
        if load(problem.block_kind, k) == CONE:
            slot = load(system.slot, load(problem.block_start, k))
            lively = lively | ((load(rows.bounce, slot) > 0.0) & is_hard(rows, slot))
    return lively


@kernel
def pull_of(islands, scalar_view, row, dt):
    """Acceleration of a row without impulses."""
    return (load(scalar_view.speed, row) - load(islands.before, row)) * (1.0 / dt)


@kernel
def speed_of(islands, row):
    """Velocity of a row after the impacts so far, without the acceleration in this step."""
    return load(islands.before, row) + load(islands.jumped, row)


@kernel
def gap_at(data, row, time, dt):
    """Gap of a contact at a time."""
    way, lag = (
        load(data.rows.phi, load(data.system.slot, row))
        + time * speed_of(data.islands, row)
        - load(data.islands.moved, row),
        load(data.islands.lag, row),
    )
    return way + pull_of(data.islands, data.scalar_view, row, dt) * (time * (lag + time * 0.5))


@kernel
def time_of_impact(data, options, row, time, dt):
    """Time at which a contact closes, not before `time`; infinite if it does not, or approaches slowly."""
    pull, speed, none = pull_of(data.islands, data.scalar_view, row, dt), speed_of(data.islands, row), zero(time)
    now, gap = speed + pull * (time + load(data.islands.lag, row)), gap_at(data, row, time, dt)
    left = now * now - 2.0 * pull * gap
    meets = (
        is_hard(data.rows, load(data.system.slot, row))
        & (speed < -load(options.quick, 0))
        & (now < 0.0)
        & ((gap <= 0.0) | (left > 0.0))
    )
    wait = 2.0 * gap / select(meets, sqrt(maximum(left, none)) - now, none + 1.0)
    return select(meets, time + maximum(wait, none), spread(inf, none))


# ---- one impact ------------------------------------------------------------------------------------------------------


@kernel
def direction_of(rows, slot):
    """Direction in which a contact pushes its body."""
    return select(load(rows.b, slot) >= 0, load(rows.Jb, slot).f, load(rows.Ja, slot).f)


@kernel
def next_impact(data, options, time, dt):
    """The time at which the next contact closes, its bodies and its normal."""
    none = zero(time)
    soonest, normal = spread(inf, none), zero3(none)
    a, b = zero(load(data.rows.a, 0)) - 1, zero(load(data.rows.a, 0)) - 1
    for k in range(load(data.problem.n_blocks, 0)):
        if load(data.problem.block_kind, k) == CONE:
            row = load(data.problem.block_start, k)
            slot, when = load(data.system.slot, row), time_of_impact(data, options, row, time, dt)
            sooner = when < soonest
            soonest, normal = select(sooner, when, soonest), select(sooner, direction_of(data.rows, slot), normal)
            a, b = select(sooner, load(data.rows.a, slot), a), select(sooner, load(data.rows.b, slot), b)
    return soonest, a, b, normal


@kernel
def lay_contact(data, row, time, struck, dt):
    """Add a contact to an impact: its velocity after it is `islands.wanted`, and `problem.b` is the difference to the
    velocity before. Returns the largest of them. A bounce that would end within the step is ignored.
    """
    slot, none, left, lag = load(data.system.slot, row), zero(time), dt - time, load(data.islands.lag, row)
    touches = struck | (is_hard(data.rows, slot) & (gap_at(data, row, time, dt) <= TOUCH))
    pull, speed = pull_of(data.islands, data.scalar_view, row, dt), speed_of(data.islands, row)
    back = -load(data.rows.restitution, slot) * (speed + pull * (time + lag))
    bounces = struck & (back > 0.0) & (back + pull * left * 0.5 > 0.0)
    wanted, size = select(bounces, back, none), none
    for k in range(row, row + 3):
        before = speed_of(data.islands, k) + select(
            bounces, pull_of(data.islands, data.scalar_view, k, dt) * (time + lag), none
        )
        store(data.problem.b, k, select(touches, before - wanted, none))
        store(data.islands.wanted, k, wanted)
        size = maximum(size, select(touches, maximum(fabs(before), wanted), none))
        wanted = none
    store(data.islands.touches, row, select(touches, none + 1.0, none))
    store(data.islands.hit, row, select(struck, none + 1.0, load(data.islands.hit, row)))
    return size


@kernel
def lay_other(data, k, row, time):
    """Add another block to an impact: bilateral rows hold, limits that are reached push, finite forces do nothing.
    Returns the largest velocity.
    """
    kind, slot, none = load(data.problem.block_kind, k), load(data.system.slot, row), zero(time)
    size = none
    if kind == BALL:
        store(data.problem.bound, k, none)
        for n in range(row, load(data.problem.block_start, k + 1)):
            store(data.problem.b, n, none)
            store(data.islands.wanted, n, none)
        return none
    store(data.islands.wanted, row, none)
    if kind == LAW:
        store(data.problem.block_kind, k, BOUNDED)
        store(data.problem.b, row, none)
        store(data.problem.lo, row, none)
        store(data.problem.hi, row, none)
        return none
    lo, hi, speed = load(data.problem.lo, row), load(data.problem.hi, row), speed_of(data.islands, row)
    holds, pushes = (lo == -inf) & (hi == inf), only_pushes(data.rows, slot)
    reached = pushes & (load(data.rows.phi, slot) + time * speed - load(data.islands.moved, row) <= TOUCH)
    store(data.problem.b, row, select(reached, speed, none))
    store(data.problem.lo, row, select(holds, lo, none))
    store(data.problem.hi, row, select(holds | reached, hi, none))
    return select(reached, fabs(speed), size)


@kernel
def lay_impact(data, options, time, body_a, body_b, normal, there, last, dt):
    """Fill the problem of the impact at a time, in the worlds of a mask; the `last` one includes all later contacts."""
    none = zero(time)
    size = none
    for k in range(load(data.problem.n_blocks, 0)):
        row = load(data.problem.block_start, k)
        if load(data.problem.block_kind, k) == CONE:
            slot, when = load(data.system.slot, row), time_of_impact(data, options, row, time, dt)
            beside = (load(data.rows.a, slot) == body_a) & (load(data.rows.b, slot) == body_b)
            beside = beside & (dot(direction_of(data.rows, slot), normal) > PARALLEL)
            if last:
                beside = there
            struck = there & ((when <= time + AT_ONCE * dt) | (beside & (when <= dt)))
            size = maximum(size, lay_contact(data, row, time, struck, dt))
            store(data.answer.slip, k, none)
        else:
            size = maximum(size, lay_other(data, k, row, time))
    for k in range(load(data.problem.n_blocks, 0)):
        if load(data.problem.block_kind, k) == CONE:
            row = load(data.problem.block_start, k)
            store(
                data.problem.b,
                row,
                select(load(data.islands.touches, row) > 0.0, load(data.problem.b, row), size * AWAY + 1.0),
            )
    for row in range(load(data.problem.n_rows, 0)):
        store(data.answer.lam, row, none)
    return size


@kernel
def solve_impact(data, options, size, there):
    """Impulses of the current impact; `find_jumps` computes their effect. Sweeps accumulate."""
    swept, most = load(data.answer.sweeps, 0), load(data.answer.most_sweeps, 0)
    begin(
        data.answer,
        select(there, select(size > 0.0, size, zero(size) + 1.0) * load(options.tolerance, 0), spread(inf, size)),
    )
    store(data.answer.sweeps, 0, swept)
    store(data.answer.most_sweeps, 0, minimum(most, swept + SWEEPS))
    ask_bound(data.calls.solve, data.calls.solve_table, options.sweeps, options.every, options.steps)
    store(data.answer.most_sweeps, 0, most)


@kernel
def find_jumps(data):
    """Changes of all row velocities, in `islands.jump`; returns the work of the impulses, and the sum of its parts."""
    none = zero(load(data.answer.tolerance, 0))
    n, stride = load(data.problem.n_rows, 0), load(data.problem.stride, 0)
    for row in range(n):
        store(data.islands.jump, row, none)
    for k in range(n):
        lam = load(data.answer.lam, k)
        if any_lane(lam != 0.0):
            for row in range(n):
                store(
                    data.islands.jump, row, load(data.islands.jump, row) + load(data.problem.a, k * stride + row) * lam
                )
            store(
                data.islands.jump, k, load(data.islands.jump, k) - load(data.rows.cfm, load(data.system.slot, k)) * lam
            )
    work, parts = none, none
    for k in range(n):
        lam, before = load(data.answer.lam, k), load(data.problem.b, k) + load(data.islands.wanted, k)
        work = work + select(lam != 0.0, lam * (before + 0.5 * load(data.islands.jump, k)), none)
        parts = parts + select(lam != 0.0, fabs(lam * before), none)
    return work, parts


@kernel
def lessen(data, options, size, gains):
    """Blend the impulses with those of the same impact without restitution, so that they do no work, in the worlds of a
    mask. With the share s of the former, the work is q s² + l s + c, with c ≤ 0.
    """
    none = zero(size)
    for k in range(load(data.problem.n_rows, 0)):
        store(data.islands.first_lam, k, load(data.answer.lam, k))
        store(data.islands.first_jump, k, load(data.islands.jump, k))
        store(data.problem.b, k, load(data.problem.b, k) + load(data.islands.wanted, k))
    solve_impact(data, options, size, gains)
    find_jumps(data)
    square, line, still = none, none, none
    for k in range(load(data.problem.n_rows, 0)):
        before, lam, jump = load(data.problem.b, k), load(data.answer.lam, k), load(data.islands.jump, k)
        more, further = load(data.islands.first_lam, k) - lam, load(data.islands.first_jump, k) - jump
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
    for k in range(load(data.problem.n_rows, 0)):
        lam, jump = load(data.answer.lam, k), load(data.islands.jump, k)
        first, changed = load(data.islands.first_lam, k), load(data.islands.first_jump, k)
        store(data.answer.lam, k, select(gains, lam + (first - lam) * share, first))
        store(data.islands.jump, k, select(gains, jump + (changed - jump) * share, changed))


@kernel
def note_impact(islands, problem, answer, time, there):
    """Add an impact to the earlier ones."""
    for k in range(load(problem.n_rows, 0)):
        lam, jump = load(answer.lam, k), load(islands.jump, k)
        store_where(islands.jumped, k, load(islands.jumped, k) + jump, there)
        store_where(islands.moved, k, load(islands.moved, k) + time * jump, there)
        store_where(islands.struck, k, load(islands.struck, k) + lam, there)
        store_where(islands.late, k, load(islands.late, k) + time * lam, there)


# ---- all impacts -----------------------------------------------------------------------------------------------------


@kernel
def find_lags(model, work, options, scratch):
    """Trees whose velocities in free flight lag half a step behind: `scratch.lagging` is 1 at their first links, else
    0. They are the trees with springs or dampers, which are implicit, and so is then everything else that acts on the
    tree.
    """
    none = zero(load(work.a, 0))
    for i in range(model.n_links):
        store(scratch.lagging, i, none if options.centred != 0 else none + 1.0)
        store(scratch.falling, i, none)
    for d in range(model.nv):
        root = load(model.dof_root, d)
        store(scratch.lagging, root, select(load(work.diagonal, d) != 0.0, none + 1.0, load(scratch.lagging, root)))


@kernel
def keep_problem(model, data, dt):
    """Save the problem of the step, and the current velocities of rows."""
    none = zero(load(data.problem.b, 0))
    for k in range(load(data.problem.n_rows, 0)):
        store(data.islands.kept_b, k, load(data.problem.b, k))
        store(data.islands.kept_lo, k, load(data.problem.lo, k))
        store(data.islands.kept_hi, k, load(data.problem.hi, k))
        slot = load(data.system.slot, k)
        store(
            data.islands.before,
            k,
            stored_row_velocity(model, data.work, data.rows, slot, data.state.v, data.work.velocity),
        )
        of_a = flag_of(data.scratch.lagging, root_of_body(model, load(data.rows.a, slot)))
        of_b = flag_of(data.scratch.lagging, root_of_body(model, load(data.rows.b, slot)))
        store(data.islands.lag, k, maximum(of_a, of_b) * (0.5 * dt))
        store(data.islands.jumped, k, none)
        store(data.islands.moved, k, none)
        store(data.islands.struck, k, none)
        store(data.islands.late, k, none)
        store(data.islands.hit, k, none)
    for k in range(load(data.problem.n_blocks, 0)):
        store(data.islands.kept_bound, k, load(data.problem.bound, k))
        store(data.islands.kept_kind, k, load(data.problem.block_kind, k))


@kernel
def put_back(data, dt, there, fresh):
    """Restore the problem of the step, with contacts as the impacts leave them, and initial multipliers."""
    none = zero(load(data.problem.b, 0))
    for k in range(load(data.problem.n_rows, 0)):
        store(data.problem.b, k, load(data.islands.kept_b, k))
        store(data.problem.lo, k, load(data.islands.kept_lo, k))
        store(data.problem.hi, k, load(data.islands.kept_hi, k))
        lam = load(data.rows.lam, load(data.system.slot, k))
        if fresh != 0:
            lam = select(there, lam + load(data.islands.struck, k), lam)
        store(data.answer.lam, k, lam)
    for k in range(load(data.problem.n_blocks, 0)):
        store(data.problem.bound, k, load(data.islands.kept_bound, k))
        store(data.problem.block_kind, k, load(data.islands.kept_kind, k))
        if load(data.problem.block_kind, k) == CONE:
            row = load(data.problem.block_start, k)
            slot = load(data.system.slot, row)
            store(data.answer.slip, k, none)
            phi, speed = load(data.rows.phi, slot), load(data.scalar_view.speed, row)
            left, ahead = phi - load(data.islands.moved, row), speed + load(data.islands.jumped, row)
            ends = select(left + ahead * dt < 0.0, maximum(ahead, none), ahead)
            closes = maximum(left, none) * (-1.0 / dt)
            hit, counts = load(data.islands.hit, row) > 0.0, there & is_hard(data.rows, slot)
            b = select(hit, speed - ends, select(phi > 0.0, speed - closes, load(data.problem.b, row)))
            store(data.problem.b, row, select(counts, b, load(data.problem.b, row)))
            for n in (row + 1, row + 2):  # friction of impacts is included: only the rest is solved for
                store(data.problem.b, n, select(counts & hit, -load(data.islands.jumped, n), load(data.problem.b, n)))
            gamma = load(data.islands.moved, row) * (-2.0 / (dt * dt))
            store_where(data.rows.gamma, slot, gamma, counts)


@kernel
def keep_unmoved(model, data, dt, there):
    """Velocities that the island's degrees of freedom do not move along, because impacts come late in the step."""
    if load(data.scratch.any_unmoved, 0) == 0:
        for d in range(model.nv):
            store(data.scratch.unmoved, d, zero(load(data.scratch.unmoved, d)))
        store(data.scratch.any_unmoved, 0, 1)
    none = zero(load(data.scalar_view.lam, 0))
    for k in range(load(data.problem.n_rows, 0)):
        store(data.scalar_view.lam, k, select(there, load(data.islands.late, k) * (-1.0 / dt), none))
    for k in range(load(data.problem.n_rows, 0), load(data.problem.stride, 0)):
        store(data.scalar_view.lam, k, none)
    call_entry(data.calls.share, model, data.work, data.system, data.flow)
    for e in range(load(data.system.n_dofs, 0)):
        d = load(data.system.dof, e)
        store(data.scratch.unmoved, d, load(data.flow.share, d))
        store(data.flow.share, d, zero(load(data.flow.share, d)))


@kernel
def find_falling(model, data):
    """Trees of the current island that only impacts and smooth forces act on in this step: `data.scratch.falling` is 1
    at their first links. They are in free flight for the whole step, except at the impacts.
    """
    none = zero(load(data.answer.tolerance, 0))
    most = none
    for k in range(load(data.problem.n_rows, 0)):
        most = maximum(most, fabs(load(data.islands.struck, k)))
    for k in range(load(data.problem.n_rows, 0)):
        slot, hit = load(data.system.slot, k), load(data.islands.hit, k) > 0.0
        if any_lane(hit):
            set_flag(data.scratch.falling, root_of_body(model, load(data.rows.a, slot)), 1.0, hit)
            set_flag(data.scratch.falling, root_of_body(model, load(data.rows.b, slot)), 1.0, hit)
    for k in range(load(data.problem.n_rows, 0)):
        slot, lam = load(data.system.slot, k), load(data.answer.lam, k)
        pushed = fabs(lam - load(data.islands.struck, k)) > most * RESTS
        if any_lane(pushed):
            set_flag(data.scratch.falling, root_of_body(model, load(data.rows.a, slot)), 0.0, pushed)
            set_flag(data.scratch.falling, root_of_body(model, load(data.rows.b, slot)), 0.0, pushed)
            set_flag(data.scratch.falling, root_of_dof(model, load(data.rows.dof, slot)), 0.0, pushed)


@kernel
def bounce_island(model, data, options, dt, fresh):
    """Let the contacts of the current island bounce at their times of impact, and update the problem of the step;
    sweeps accumulate. Multipliers start from those of the rows; if these are `fresh`, the impulses of the impacts are
    added.
    """
    there, none = is_lively(data.rows, data.system, data.problem), zero(load(data.problem.b, 0))
    store(data.islands.lively, 0, 0)
    if not any_lane(there):
        return
    store(data.islands.lively, 0, 1)
    tolerance, time = load(data.answer.tolerance, 0), none
    if load(data.scratch.any_unmoved, 0) == 0:
        find_lags(model, data.work, options, data.scratch)
    keep_problem(model, data, dt)
    for n in range(IMPACTS):
        when, body_a, body_b, normal = next_impact(data, options, time, dt)
        strikes = there & (when <= dt)
        if not any_lane(strikes):
            break
        time = select(strikes, when, time)
        size = lay_impact(data, options, time, body_a, body_b, normal, strikes, n == IMPACTS - 1, dt)
        solve_impact(data, options, size, strikes)
        work, parts = find_jumps(data)
        gains = strikes & (work > parts * GAIN)
        if any_lane(gains):
            lessen(data, options, size, gains)
        note_impact(data.islands, data.problem, data.answer, time, strikes)
        for k in range(load(data.problem.n_blocks, 0)):
            store(data.problem.block_kind, k, load(data.islands.kept_kind, k))
            store(data.problem.bound, k, load(data.islands.kept_bound, k))
        for k in range(load(data.problem.n_rows, 0)):
            store(data.problem.lo, k, load(data.islands.kept_lo, k))
            store(data.problem.hi, k, load(data.islands.kept_hi, k))
    put_back(data, dt, there, fresh)
    spent = load(data.answer.sweeps, 0)
    begin(data.answer, tolerance)
    store(data.answer.sweeps, 0, spent)
    keep_unmoved(model, data, dt, there)
