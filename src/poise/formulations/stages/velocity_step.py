"""A step at velocity level: impulses of all rows in one mixed problem, then velocities, then coordinates.

    v⁺ = v + h a_free + M⁻¹Jᵀλ,   q⁺ = q ⊕ h (v⁺ + M⁻¹Jᵀμ)

λ satisfies every row at the end of the step; soft contacts that bounce are solved a second time, with their velocity
after the impact. μ, from a separate problem, corrects the errors of rows and leaves no velocity (post-stabilization).
"""

from __future__ import annotations

from poise.constraints.emit_rows import N_KINDS, blank, has_room, warm_start
from poise.constraints.islands import find_islands, join_blocks
from poise.constraints.kinds.ball_joint_limit import emit_ball_limits, strays
from poise.constraints.kinds.contact import emit_contacts, overlooked_contacts
from poise.constraints.kinds.joint_limit import emit_frictions, emit_limits, overlooked_limits
from poise.constraints.kinds.motor import (
    add_motor_forces,
    bar_all,
    begin_folding,
    check_motors,
    fold_motors,
    note_motors,
)
from poise.constraints.prebuilt_rows import bend_guests, emit_guests
from poise.constraints.response.delassus_kernels import place_centres, take_roots
from poise.constraints.response.row_velocity import spread_velocity
from poise.dynamics.aba import accelerate, balance
from poise.dynamics.impulse_response import spread_acceleration
from poise.dynamics.integrate import displace, follow, is_sound, keep
from poise.dynamics.passive import gather_forces
from poise.formulations.ccd_stepping.motion_bounds import find_haste, hurries, is_hasty, whirls
from poise.formulations.sleep.sleep_kernels import fall_asleep, freeze, wake_changed, wake_tied
from poise.formulations.stages.post_stabilization import shift_out
from poise.formulations.stages.reuse_factors import factor_again, forget_places, place_again
from poise.formulations.stages.smooth_motion import (
    centring_of,
    change_products,
    correct_products,
    sort_trees,
    step_velocity,
)
from poise.formulations.stages.solve_islands import answer_islands, solve_islands
from poise.formulations.stages.verlet_step import finish_smoothly
from poise.formulations.step_status import (
    ASLEEP,
    BY_DISPLACEMENT,
    DIVERGED,
    DONE,
    DRIVEN,
    GOES_ON,
    HASTY,
    NO_ROOM,
    SATURATED,
    THE_REST,
    TOO_LONG,
    UNLESS_HASTY,
    UNLESS_LONG,
    UNSOLVED,
    look_ahead,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, select, zero
from poise.kernel.spatial import no_motion

LOOKS = 2
"""How often the rows are rebuilt at most, for violations that the impulses cause."""
MORE_IN_LANES = 0.05
"""Share of the top speed that impulses may add where there are no rows: if one lane rebuilds its rows, all do."""
RESERVE = 0.2
"""Share of a step's sweeps and work that is reserved for displacements."""
A_LITTLE = 1e-3
"""Minimum share of a step's work for each of its parts."""
MORE_ROOM, MORE_WAY = 0.5, 0.05
"""Extra distance at which limits (rad or m) and contacts (m) get rows in the last rebuild."""


@kernel
def predict(model, state, work, flow, dt):
    """Motion of all links at the end of the step, without rows."""
    for d in range(model.nv):
        store(flow.x, d, load(state.v, d) + load(work.a, d) * dt)
    spread_velocity(model, work, flow)
    foresee(model, flow)


@kernel
def foresee(model, flow):
    """Motion of all links at the end of the step, including the known effect of impulses."""
    for i in range(model.n_links):
        store(flow.ahead, i, load(flow.motion, i) + load(flow.acceleration, i))


@kernel
def begin_rows(model, work, prebuilt, rows, lanes):
    """Start the list of rows with those that are built once a step."""
    for kind in range(N_KINDS):
        store(rows.count, kind, zero(load(rows.count, kind)))
    store(rows.term_count, 0, zero(load(rows.term_count, 0)))
    place_centres(model, work)
    emit_guests(prebuilt, rows, lanes)


@kernel
def emit(model, data, options, dt, look):
    """Build the rows of a step. `data.flow` has the known effect of impulses on velocities; `look` counts the builds
    from 0.
    """
    begin_rows(model, data.work, data.prebuilt, data.rows, data.lanes)
    emit_others(model, data, options, dt, look)


@kernel
def emit_others(model, data, options, dt, look):
    """Rows of contacts, limits and joint friction.

    Rows prevent the violations that are predicted for the end of the step. In the last rebuild, worlds that had
    violations each time get rows for all possible ones.
    """
    predict(model, data.state, data.work, data.flow, dt)
    erp, close = load(options.erp, 0), load(options.close, 0) + load(options.turn, 0) * (dt * dt)
    margin = load(options.margin, 0) + load(options.push, 0) * (dt * dt)
    if data.lanes > 1:
        margin = margin + load(data.stats.top, 0) * (MORE_IN_LANES * dt)
    if look == LOOKS:
        far, none = load(data.stats.wrong, 0) > LOOKS - 0.5, zero(margin)
        close = close + select(far, none + MORE_ROOM, none)
        margin = margin + select(far, load(data.stats.top, 0) * dt + MORE_WAY, none)
    emit_contacts(
        data.work,
        data.shapes,
        data.surfaces,
        data.flow,
        data.contacts,
        data.rows,
        dt,
        erp,
        load(options.quick, 0),
        look_ahead(options, data.stats, dt),
        margin,
        load(options.margin, 0),
        look,
    )
    emit_frictions(data.limits, data.rows)
    emit_limits(
        data.state,
        data.work,
        data.flow,
        data.limits,
        data.rows,
        data.scratch.held,
        dt,
        erp,
        close,
        load(options.close, 0),
        look,
        data.lanes,
    )
    emit_ball_limits(data.state, data.work, data.flow, data.limits, data.rows, data.scratch.held, dt, erp, close, look)


# ---- the step --------------------------------------------------------------------------------------------------------


@kernel
def free_motion(model, data, options, dt, wanted):
    """Poses of the links, the top speed of all shapes, their motion bound, and accelerations without rows. Returns
    DRIVEN if any motors are rows; ASLEEP, with nothing done, if all bodies sleep; HASTY, without accelerations, if the
    step is too long and `wanted` is UNLESS_HASTY; else 0.
    """
    if wanted != THE_REST:
        begin_folding(data.motors)
        if data.stages.n_prescribed != 0:
            follow(model, data.state, data.inputs, data.stages, 0)
        keep(model, data.state, data.stages)
        if wake_changed(model, data) == 0:
            for d in range(model.nv):
                store(data.stats.change, d, zero(load(data.state.v, d)))
            return ASLEEP
        place_again(model, data, options)
        find_haste(model, data)
        if is_hasty(data.stats, dt) and wanted == UNLESS_HASTY:
            return HASTY
    gather_forces(model, data.state, data.inputs, data.work, dt)
    fold_motors(data.state, data.motors, data.work, dt)
    factor_again(model, data, options)
    driven = add_motor_forces(data.state, data.motors, data.work)
    balance(model, data.inputs, data.work)
    accelerate_awake(model, data)
    store(data.stats.ahead, 0, look_ahead(options, data.stats, dt))
    return DRIVEN if any_lane(driven) else 0


@kernel
def accelerate_awake(model, data):
    """Accelerations without rows of all awake trees; `data.scratch.start` keeps them."""
    accelerate(model, data.inputs, data.work)
    freeze(model, data.work, data.sleep)
    for d in range(model.nv):
        store(data.scratch.start, d, load(data.work.a, d))


@kernel
def tell_nothing(stats, scratch):
    """Reset the statistics of impulses."""
    none = zero(load(stats.residual, 0))
    store(stats.residual, 0, none)
    store(stats.status, 0, none)
    store(stats.shift_status, 0, none)
    store(scratch.answered, 0, 0)
    store(scratch.any_unmoved, 0, 0)


@kernel
def make_rows(model, data, options, dt, look):
    """Build the rows of a step, and the islands that they form; returns whether there is room for all. Sleeping trees
    that are tied to awake ones wake up; then the rows are built again, since the new trees accelerate.
    """
    while True:
        begin_rows(model, data.work, data.prebuilt, data.rows, data.lanes)
        bend_guests(model, data.work, data.prebuilt, data.rows, data.flow, data.lanes, options.separate)
        emit_others(model, data, options, dt, look)
        if not has_room(data.rows, data.lanes):
            return False
        if data.lanes > 1:
            blank(data.rows, data.lanes)
        warm_start(data.rows, data.old_rows, data.lanes, load(data.scratch.carry, 0))
        if data.lanes == 1:
            join_blocks(model, data.islands, data.rows)
        if data.sleep.sleeps == 0 or not wake_tied(model, data):
            return True
        accelerate_awake(model, data)


@kernel
def solve_rows(model, data, options, dt, look, goes_on):
    """Rows of a step and their impulses: DONE, UNSOLVED, NO_ROOM for all rows, or TOO_LONG if that is checked."""
    tell_nothing(data.stats, data.scratch)
    if options.centred != 0:  # an earlier build may have changed them
        for d in range(model.nv):
            store(data.work.a, d, load(data.scratch.start, d) + load(data.scratch.again, d))
    if not make_rows(model, data, options, dt, look):
        return NO_ROOM
    if not find_islands(model, data.islands, data.rows, data.lanes):
        return NO_ROOM
    if any_lane(sort_trees(model, data, options, dt)):
        predict(model, data.state, data.work, data.flow, dt)
    if goes_on == UNLESS_LONG and options.centred != 0 and whirls(model, data.work, data.stats, data.scratch, dt):
        return TOO_LONG
    if load(data.islands.count, 0) == 0:
        return DONE
    take_roots(model, data.work, data.system)
    if solve_islands(model, data, options, dt):
        return DONE
    return UNSOLVED


@kernel
def look_again(model, data, options, dt):
    """Whether impulses, whose effect is in `data.flow`, cause violations that have no rows."""
    if load(data.islands.count, 0) == 0:
        return False
    foresee(model, data.flow)
    wrong = overlooked_contacts(
        data.work, data.shapes, data.flow, data.contacts, dt, look_ahead(options, data.stats, dt)
    )
    wrong = (
        wrong
        | overlooked_limits(data.state, data.work, data.flow, data.limits, data.scratch.held, dt)
        | strays(data.state, data.work, data.flow, data.limits, data.scratch.held, dt)
    )
    wrong = wrong & ~is_spent(data.stats, data.scratch)
    if not any_lane(wrong):
        return False
    times = load(data.stats.wrong, 0)
    store(data.stats.wrong, 0, select(wrong, times + 1.0, times))
    count_on(data.stats, data.scratch, wrong)
    # the other worlds solve their last rows again, with the same result
    for d in range(model.nv):
        known = select(wrong, load(data.flow.a, d), load(data.scratch.known, d))
        store(data.flow.a, d, known)
        store(data.scratch.known, d, known)
    for k in range(model.n_links):
        motion = select(wrong, load(data.flow.acceleration, k), load(data.scratch.known_motion, k))
        store(data.flow.acceleration, k, motion)
        store(data.scratch.known_motion, k, motion)
    return True


@kernel
def know_nothing(model, flow, stats, scratch):
    """Reset the known effect of impulses, before the first build of rows."""
    for d in range(model.nv):
        store(flow.a, d, zero(load(flow.a, d)))
        store(scratch.known, d, zero(load(flow.a, d)))
        store(scratch.again, d, zero(load(flow.a, d)))
    for i in range(model.n_links):
        store(flow.acceleration, i, no_motion(load(flow.a, 0)))
        store(scratch.known_motion, i, no_motion(load(flow.a, 0)))
        store(scratch.resolved, i, zero(load(flow.a, 0)))
    store(stats.wrong, 0, zero(load(stats.wrong, 0)))
    store(stats.look, 0, 0)
    store(scratch.solved_again, 0, 0)
    store(scratch.has_products, 0, 0)


@kernel
def open_budget(options, stats, scratch):
    """Sweeps and work of a step, of which displacements reserve a part. Each part of a split step has that many sweeps,
    the work that is left, and a small minimum of work.
    """
    none = zero(load(stats.work, 0))
    if load(scratch.parted, 0) == 0:
        store(stats.swept, 0, none)
        store(stats.stepped, 0, none)
        store(stats.work, 0, none)
        store(stats.newton_work, 0, none)
    swept, work, budget = load(stats.swept, 0), load(stats.work, 0), load(options.budget, 0)
    last_sweeps, last_work = swept + float(options.sweeps), budget
    if load(scratch.parted, 0) != 0:
        last_work = maximum(last_work, work + budget * A_LITTLE)
    store(scratch.last_sweeps, 0, last_sweeps)
    store(scratch.last_work, 0, last_work)
    kept = RESERVE if options.stabilize == BY_DISPLACEMENT else 0.0
    store(scratch.most_sweeps, 0, last_sweeps - (last_sweeps - swept) * kept)
    store(scratch.most_work, 0, last_work - (last_work - work) * kept)
    count_on(stats, scratch, work == work)


@kernel
def count_on(stats, scratch, wanted):
    """Continue the counts of sweeps and work in the worlds of a mask. The others solve the same rows again; their
    counts restart from their last solve, so that they end in the same way.
    """
    for count, looked in (
        (stats.swept, scratch.looked_swept),
        (stats.stepped, scratch.looked_stepped),
        (stats.work, scratch.looked_work),
        (stats.newton_work, scratch.looked_newton_work),
    ):
        now = select(wanted, load(count, 0), load(looked, 0))
        store(count, 0, now)
        store(looked, 0, now)


@kernel
def is_spent(stats, scratch):
    """Worlds in which impulses have used up their sweeps or their work."""
    return (load(stats.swept, 0) >= load(scratch.most_sweeps, 0)) | (load(stats.work, 0) >= load(scratch.most_work, 0))


@kernel
def wants_another_look(model, data, options, dt):
    """Whether rows are to be built and solved again: for violations by impulses, LOOKS times at most, then with the
    velocity products after the impulses.
    """
    if load(data.scratch.solved_again, 0) != 0:
        return False
    if load(data.stats.look, 0) < LOOKS and look_again(model, data, options, dt):
        store(data.stats.look, 0, load(data.stats.look, 0) + 1)
        return True
    if load(data.scratch.any_split, 0) == 0 or load(data.islands.count, 0) == 0:
        return False
    store(data.scratch.solved_again, 0, 1)
    wanted = change_products(model, data, dt)
    if not any_lane(wanted):
        return False
    count_on(data.stats, data.scratch, wanted)
    for d in range(model.nv):
        store(data.flow.a, d, load(data.scratch.known, d))
    for k in range(model.n_links):
        store(data.flow.acceleration, k, load(data.scratch.known_motion, k))
    return True


@kernel
def find_impulses(model, data, options, dt, goes_on):
    """Rows and impulses of a step, and their effect on velocities: DONE, NO_ROOM, UNSOLVED or TOO_LONG. See
    `advance`.
    """
    if goes_on != GOES_ON:
        know_nothing(model, data.flow, data.stats, data.scratch)
        open_budget(options, data.stats, data.scratch)
    elif load(data.scratch.answered, 0) == 0:
        answer_islands(model, data, options, dt)
    unmade = goes_on != GOES_ON
    while unmade or wants_another_look(model, data, options, dt):
        # the last build differs from the others, so that a world's rows do not depend on the other lanes
        look = LOOKS if load(data.scratch.solved_again, 0) != 0 else load(data.stats.look, 0)
        end = solve_rows(model, data, options, dt, look, goes_on)
        if end != DONE:
            return end
        unmade = False
    return DONE


@kernel
def hold_back(model, work, flow, scratch, dt):
    """Reduce the displacement of coordinates for impacts late in the step. Trees in free flight move by their mean
    velocity, as in steps without impacts.
    """
    for d in range(model.nv):
        store(flow.share, d, load(scratch.unmoved, d))
    spread_acceleration(model, work, flow)
    for d in range(model.nv):
        root = load(model.dof_root, d)
        flies = load(scratch.falling, root) > load(scratch.lagging, root)
        less = select(flies, load(work.a, d) * (0.5 * dt), zero(load(work.a, d)))
        store(scratch.shift, d, load(scratch.shift, d) + load(flow.a, d) - less)


@kernel
def is_saturated(model, data, dt):
    """Whether folded motors would exceed their bounds in any world; otherwise their forces are recorded."""
    if data.motors.n_rows == 0 or model.nv == 0:
        return False
    for d in range(model.nv):
        free = load(data.scratch.start, d) + centring_of(model, data.scratch, d)
        store(data.stats.change, d, load(data.flow.a, d) + free * dt)
    again = check_motors(data.motors, data.stats.change, dt)
    if any_lane(again):
        bar_all(data.motors, again)
        forget_places(data.scratch)  # `end_work` may have been overwritten
        return True
    note_motors(data.motors, data.stats.change, dt)
    return False


@kernel
def end_speeds(model, data, options, dt):
    """Velocities at the end of a step, and those that move coordinates, with displacements."""
    for d in range(model.nv):
        store(data.scratch.shift, d, zero(load(data.state.v, d)))
        store(
            data.stats.change,
            d,
            load(data.flow.a, d) + (load(data.scratch.start, d) + centring_of(model, data.scratch, d)) * dt,
        )
    if load(data.islands.count, 0) > 0:
        for d in range(model.nv):
            store(data.state.v, d, load(data.state.v, d) + load(data.flow.a, d))
        if options.stabilize == BY_DISPLACEMENT:
            shift_out(model, data, options, dt)
        if load(data.scratch.any_unmoved, 0) != 0:
            hold_back(model, data.work, data.flow, data.scratch, dt)
    for d in range(model.nv):
        v = step_velocity(model, data.state, data.work, data.scratch, d, dt)
        store(data.state.v, d, v)
        store(data.scratch.shift, d, load(data.scratch.shift, d) + v)


@kernel
def advance(model, data, options, dt, goes_on):
    """A step after its free motion and contact detection; the rows of the step before are in `data.old_rows`.
    `data.end_work` has the links at the end.

    Returns DONE or DIVERGED; NO_ROOM for all rows; or UNSOLVED with the best impulses: then call it again with GOES_ON,
    with these or better ones in the rows (and `answered` 0). For one world TOO_LONG, and for any SATURATED if motors
    must become rows; both leave the state unchanged.
    """
    end = find_impulses(model, data, options, dt, goes_on)
    if end == DONE and goes_on == UNLESS_LONG and load(data.islands.count, 0) > 0:
        foresee(model, data.flow)
        if hurries(model, data, dt):
            end = TOO_LONG
    if end == TOO_LONG:
        begin_folding(data.motors)  # of the parts that follow
    if end != DONE:
        return end
    if is_saturated(model, data, dt):
        return SATURATED
    correct_products(model, data, dt)
    end_speeds(model, data, options, dt)
    displace(model, data.state.q, data.scratch.shift, dt, data.state.q)
    finish_smoothly(model, data, dt)
    if data.stages.n_prescribed != 0:
        follow(model, data.state, data.inputs, data.stages, 2)
    if not is_sound(model, data.state, data.stages):
        return DIVERGED
    if data.sleep.sleeps != 0:
        fall_asleep(model, data, dt)
    return DONE
