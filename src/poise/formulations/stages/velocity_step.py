"""A step at velocity level: impulses of all rows in one mixed problem, then new velocities, then new coordinates.

    v⁺ = v + h a_free + M⁻¹Jᵀλ,   q⁺ = q ⊕ h (v⁺ + M⁻¹Jᵀμ)

λ meets every row at the end of the step; what bounces is solved a second time, with the speed that it is to have after
the impact. μ, from a problem of its own, takes rows out of what they have come into, and leaves no speed behind.
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
"""How often rows are taken anew at most, for where impulses take bodies and joints."""
MORE_IN_LANES = 0.05
"""Share of the top speed that impulses may give to what has no rows: all lanes look again where one has to."""
RESERVE = 0.2
"""Of a step's sweeps and work: what impulses leave to displacements."""
A_LITTLE = 1e-3
"""Of a step's work: what each of its parts has at least."""
MORE_ROOM, MORE_WAY = 0.5, 0.05
"""How much nearer limits (rad or m) and contacts (m) count in the last look."""


@kernel
def predict(model, state, work, flow, dt):
    """Motion of all links at the end of the step, without rows."""
    for d in range(model.nv):
        store(flow.x, d, load(state.v, d) + load(work.a, d) * dt)
    spread_velocity(model, work, flow)
    foresee(model, flow)


@kernel
def foresee(model, flow):
    """Motion of all links at the end of the step, with what impulses are known to add to it."""
    for i in range(model.n_links):
        store(flow.ahead, i, load(flow.motion, i) + load(flow.acceleration, i))


@kernel
def begin_rows(model, work, prebuilt, rows, lanes):
    """No rows but those that are made once a step."""
    for kind in range(N_KINDS):
        store(rows.count, kind, zero(load(rows.count, kind)))
    store(rows.term_count, 0, zero(load(rows.term_count, 0)))
    place_centres(model, work)
    emit_guests(prebuilt, rows, lanes)


@kernel
def emit(model, data, options, dt, look):
    """The rows of a step. `data.flow` has what impulses add to velocities, as far as it is known; `look` counts from
    0.
    """
    begin_rows(model, data.work, data.prebuilt, data.rows, data.lanes)
    emit_others(model, data, options, dt, look)


@kernel
def emit_others(model, data, options, dt, look):
    """Rows of contacts, limits and joint friction.

    Rows stand against what will be wrong at the end of the step. In the last look, worlds that were wrong each
    time look at all that could be.
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
    """Links in their places, the top speed of all shapes, their haste, and accelerations without rows: DRIVEN where
    motors have rows in any world, ASLEEP and nothing done where everyone sleeps, HASTY and no accelerations where they
    are wanted UNLESS_HASTY, else 0.
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
    """Accelerations without rows, of all that is awake; `data.scratch.start` keeps them."""
    accelerate(model, data.inputs, data.work)
    freeze(model, data.work, data.sleep)
    for d in range(model.nv):
        store(data.scratch.start, d, load(data.work.a, d))


@kernel
def tell_nothing(stats, scratch):
    """Of what impulses took, before there are any."""
    none = zero(load(stats.residual, 0))
    store(stats.residual, 0, none)
    store(stats.status, 0, none)
    store(stats.shift_status, 0, none)
    store(scratch.answered, 0, 0)
    store(scratch.any_unmoved, 0, 0)


@kernel
def make_rows(model, data, options, dt, look):
    """Rows of a step, and the trees that they join: whether there is room for all. Who is asleep and is joined to
    someone awake, wakes; then rows are made again, for who wakes accelerates.
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
    """Rows of a step and their impulses: DONE, NO_ROOM for all rows, UNSOLVED; TOO_LONG where it may be."""
    tell_nothing(data.stats, data.scratch)
    if options.centred != 0:  # an earlier look may have changed them
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
    """Whether impulses bring about what no rows stand against; `data.flow` has what they do."""
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
    for d in range(
        model.nv
    ):  # what other worlds knew in their last look, they know in this one: it ends as the last did
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
    """Of what impulses do, before the first look."""
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
    """Sweeps and work that a step has, of which displacements keep a part. A part of a step has as many sweeps of its
    own, what work is left, and a little in any case.
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
    """Let sweeps and work count on in the worlds of a mask. Those of others, whose rows are solved again as they were,
    count from where they did the last time: so they end in the same way.
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
    """Whether rows are to be made and solved again: for what impulses bring about, LOOKS times at most, then with
    the velocity products that impulses leave.
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
    """Rows and impulses of a step, and what they do to velocities: DONE, NO_ROOM, UNSOLVED or TOO_LONG. See
    `advance`.
    """
    if goes_on != GOES_ON:
        know_nothing(model, data.flow, data.stats, data.scratch)
        open_budget(options, data.stats, data.scratch)
    elif load(data.scratch.answered, 0) == 0:
        answer_islands(model, data, options, dt)
    unmade = goes_on != GOES_ON
    while unmade or wants_another_look(model, data, options, dt):
        # the last one is like no other, so that a world looks as it does whatever its neighbours see
        look = LOOKS if load(data.scratch.solved_again, 0) != 0 else load(data.stats.look, 0)
        end = solve_rows(model, data, options, dt, look, goes_on)
        if end != DONE:
            return end
        unmade = False
    return DONE


@kernel
def hold_back(model, work, flow, scratch, dt):
    """Let coordinates move less, as impacts that come late in the step have it. Those of trees that fly move by their
    mean velocity, as in steps without impacts.
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
    """Whether folded motors would be beyond their bounds in any world; else their forces are noted."""
    if data.motors.n_rows == 0 or model.nv == 0:
        return False
    for d in range(model.nv):
        free = load(data.scratch.start, d) + centring_of(model, data.scratch, d)
        store(data.stats.change, d, load(data.flow.a, d) + free * dt)
    again = check_motors(data.motors, data.stats.change, dt)
    if any_lane(again):
        bar_all(data.motors, again)
        forget_places(data.scratch)  # `end_work` may have been used for something else
        return True
    note_motors(data.motors, data.stats.change, dt)
    return False


@kernel
def end_speeds(model, data, options, dt):
    """Velocities at the end of a step, and those that coordinates move along, which displacements add to."""
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
    """A step from the free motion and the contacts on; the rows of the step before are in `data.old_rows`. In
    `data.end_work` links are as they are at the end.

    DONE or DIVERGED; or NO_ROOM for all rows; or UNSOLVED, and the impulses as good as they are: then it GOES_ON, with
    these or with better ones in the rows (and `answered` 0). Of one world it may be TOO_LONG, and nothing is done; of
    any SATURATED, where motors have to be rows, likewise.
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
