"""A step at velocity level: impulses of all rows in one mixed problem, then new velocities, then new coordinates.

    v⁺ = v + h a_free + M⁻¹Jᵀλ,   q⁺ = q ⊕ h (v⁺ + M⁻¹Jᵀμ)

λ meets every row at the end of the step; what bounces is solved a second time, with the speed that it is to have after
the impact. μ, from a problem of its own, takes rows out of what they have come into, and leaves no speed behind.
"""

from __future__ import annotations

from poise.constraints.ball_limit_rows import emit_ball_limits, strays
from poise.constraints.contact_rows import emit_contacts, overlooked_contacts
from poise.constraints.guest_rows import bend_guests, emit_guests
from poise.constraints.islands import find_islands, join_blocks
from poise.constraints.limit_rows import emit_frictions, emit_limits, overlooked_limits
from poise.constraints.motor_rows import add_motor_forces
from poise.constraints.row_kernels import N_KINDS, blank, has_room, warm_start
from poise.constraints.tree import place_centres, take_roots
from poise.constraints.tree_values import spread_velocity
from poise.dynamics.abm import accelerate, balance
from poise.dynamics.integrate import displace, follow, is_sound, keep
from poise.dynamics.passive import gather_forces
from poise.dynamics.responses import spread_acceleration
from poise.formulations.displacements import shift_out
from poise.formulations.haste import find_haste, hurries, is_hasty, whirls
from poise.formulations.impulses import answer_islands, solve_islands
from poise.formulations.reuse import factor_again, place_again
from poise.formulations.rules import (
    ASLEEP,
    BY_DISPLACEMENT,
    DIVERGED,
    DONE,
    DRIVEN,
    GOES_ON,
    HASTY,
    NO_ROOM,
    THE_REST,
    TOO_LONG,
    UNLESS_HASTY,
    UNLESS_LONG,
    UNSOLVED,
    look_ahead,
)
from poise.formulations.sleeping import fall_asleep, freeze, wake_changed, wake_tied
from poise.formulations.smooth import (
    centring_of,
    change_products,
    correct_products,
    sort_trees,
    step_velocity,
)
from poise.formulations.verlet import finish_smoothly
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
def predict(m, s, w, x, dt):
    """Motion of all links at the end of the step, without rows."""
    for d in range(m.nv):
        store(x.x, d, load(s.v, d) + load(w.a, d) * dt)
    spread_velocity(m, w, x)
    foresee(m, x)


@kernel
def foresee(m, x):
    """Motion of all links at the end of the step, with what impulses are known to add to it."""
    for i in range(m.n_links):
        store(x.ahead, i, load(x.motion, i) + load(x.acceleration, i))


@kernel
def begin_rows(m, w, e, r, o):
    """No rows but those that are made once a step."""
    for kind in range(N_KINDS):
        store(r.count, kind, zero(load(r.count, kind)))
    store(r.term_count, 0, zero(load(r.term_count, 0)))
    place_centres(m, w)
    emit_guests(e, r, o.lanes)


@kernel
def emit(m, s, w, g, u, c, l, e, r, x, o, dt, look):
    """The rows of a step. `x` has what impulses add to velocities, as far as it is known; `look` counts from 0."""
    begin_rows(m, w, e, r, o)
    emit_others(m, s, w, g, u, c, l, r, x, o, dt, look)


@kernel
def emit_others(m, s, w, g, u, c, l, r, x, o, dt, look):
    """Rows of contacts, limits and joint friction.

    Rows stand against what will be wrong at the end of the step. In the last look, worlds that were wrong each
    time look at all that could be.
    """
    predict(m, s, w, x, dt)
    erp, close = load(o.erp, 0), load(o.close, 0) + load(o.turn, 0) * (dt * dt)
    margin = load(o.margin, 0) + load(o.push, 0) * (dt * dt)
    if o.lanes > 1:
        margin = margin + load(o.top, 0) * (MORE_IN_LANES * dt)
    if look == LOOKS:
        far, none = load(o.wrong, 0) > LOOKS - 0.5, zero(margin)
        close = close + select(far, none + MORE_ROOM, none)
        margin = margin + select(far, load(o.top, 0) * dt + MORE_WAY, none)
    emit_contacts(w, g, u, x, c, r, dt, erp, load(o.quick, 0), look_ahead(o, dt), margin, load(o.margin, 0), look)
    emit_frictions(l, r)
    emit_limits(s, w, x, l, r, o.held, dt, erp, close, load(o.close, 0), look, o.lanes)
    emit_ball_limits(s, w, x, l, r, o.held, dt, erp, close, look)


# ---- the step --------------------------------------------------------------------------------------------------------


@kernel
def free_motion(m, s, x, w, y, g, u, b, z, o, ahead, dt, wanted):
    """Links in their places, the top speed of all shapes, their haste, and accelerations without rows: DRIVEN where
    motors have rows in any world, ASLEEP and nothing done where everyone sleeps, HASTY and no accelerations where they
    are wanted UNLESS_HASTY, else 0.
    """
    if wanted != THE_REST:
        if y.n_prescribed != 0:
            follow(m, s, x, y, 0)
        keep(m, s, y)
        if wake_changed(m, s, x, b, z) == 0:
            for d in range(m.nv):
                store(o.change, d, zero(load(s.v, d)))
            return ASLEEP
        place_again(m, s, w, y, o, ahead)
        find_haste(m, w, g, u, o)
        if is_hasty(o, dt) and wanted == UNLESS_HASTY:
            return HASTY
    gather_forces(m, s, x, w, dt)
    factor_again(m, s, w, y, o, ahead)
    driven = add_motor_forces(s, b, w)
    balance(m, x, w)
    accelerate_awake(m, x, w, z, o)
    store(o.ahead, 0, look_ahead(o, dt))
    return DRIVEN if any_lane(driven) else 0


@kernel
def accelerate_awake(m, x, w, z, o):
    """Accelerations without rows, of all that is awake; `o.start` keeps them."""
    accelerate(m, x, w)
    freeze(m, w, z)
    for d in range(m.nv):
        store(o.start, d, load(w.a, d))


@kernel
def tell_nothing(o):
    """Of what impulses took, before there are any."""
    none = zero(load(o.residual, 0))
    store(o.residual, 0, none)
    store(o.status, 0, none)
    store(o.shift_status, 0, none)
    store(o.answered, 0, 0)
    store(o.any_unmoved, 0, 0)


@kernel
def make_rows(m, s, x, w, g, u, c, l, e, r, old, i, z, flow, o, dt, look):
    """Rows of a step, and the trees that they join: whether there is room for all. Who is asleep and is joined to
    someone awake, wakes; then rows are made again, for who wakes accelerates.
    """
    while True:
        begin_rows(m, w, e, r, o)
        bend_guests(m, w, e, r, flow, o.lanes, o.separate)
        emit_others(m, s, w, g, u, c, l, r, flow, o, dt, look)
        if not has_room(r, o.lanes):
            return False
        if o.lanes > 1:
            blank(r, o.lanes)
        warm_start(r, old, o.lanes, load(o.carry, 0))
        if o.lanes == 1:
            join_blocks(m, i, r)
        if z.sleeps == 0 or not wake_tied(m, s, r, i, z):
            return True
        accelerate_awake(m, x, w, z, o)


@kernel
def solve_rows(m, s, x, w, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, dt, look, goes_on):
    """Rows of a step and their impulses: DONE, NO_ROOM for all rows, UNSOLVED; TOO_LONG where it may be."""
    tell_nothing(o)
    if o.centred != 0:  # an earlier look may have changed them
        for d in range(m.nv):
            store(w.a, d, load(o.start, d) + load(o.again, d))
    if not make_rows(m, s, x, w, g, u, c, l, e, r, old, i, z, flow, o, dt, look):
        return NO_ROOM
    if not find_islands(m, i, r, o.lanes):
        return NO_ROOM
    if any_lane(sort_trees(m, s, x, w, z, r, flow, ahead, o, dt)):
        predict(m, s, w, flow, dt)
    if goes_on == UNLESS_LONG and o.centred != 0 and whirls(m, w, o, dt):
        return TOO_LONG
    if load(i.count, 0) == 0:
        return DONE
    take_roots(m, w, t)
    if solve_islands(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt):
        return DONE
    return UNSOLVED


@kernel
def look_again(m, s, w, g, c, l, i, flow, o, dt):
    """Whether impulses bring about what no rows stand against; `flow` has what they do."""
    if load(i.count, 0) == 0:
        return False
    foresee(m, flow)
    wrong = overlooked_contacts(w, g, flow, c, dt, look_ahead(o, dt))
    wrong = wrong | overlooked_limits(s, w, flow, l, o.held, dt) | strays(s, w, flow, l, o.held, dt)
    wrong = wrong & ~is_spent(o)
    if not any_lane(wrong):
        return False
    times = load(o.wrong, 0)
    store(o.wrong, 0, select(wrong, times + 1.0, times))
    count_on(o, wrong)
    for d in range(m.nv):  # what other worlds knew in their last look, they know in this one: it ends as the last did
        known = select(wrong, load(flow.a, d), load(o.known, d))
        store(flow.a, d, known)
        store(o.known, d, known)
    for k in range(m.n_links):
        motion = select(wrong, load(flow.acceleration, k), load(o.known_motion, k))
        store(flow.acceleration, k, motion)
        store(o.known_motion, k, motion)
    return True


@kernel
def know_nothing(m, flow, o):
    """Of what impulses do, before the first look."""
    for d in range(m.nv):
        store(flow.a, d, zero(load(flow.a, d)))
        store(o.known, d, zero(load(flow.a, d)))
        store(o.again, d, zero(load(flow.a, d)))
    for i in range(m.n_links):
        store(flow.acceleration, i, no_motion(load(flow.a, 0)))
        store(o.known_motion, i, no_motion(load(flow.a, 0)))
        store(o.resolved, i, zero(load(flow.a, 0)))
    store(o.wrong, 0, zero(load(o.wrong, 0)))
    store(o.look, 0, 0)
    store(o.solved_again, 0, 0)
    store(o.has_products, 0, 0)


@kernel
def open_budget(o):
    """Sweeps and work that a step has, of which displacements keep a part. A part of a step has as many sweeps of its
    own, what work is left, and a little in any case.
    """
    none = zero(load(o.work, 0))
    if load(o.parted, 0) == 0:
        store(o.swept, 0, none)
        store(o.stepped, 0, none)
        store(o.work, 0, none)
        store(o.newton_work, 0, none)
    swept, work, budget = load(o.swept, 0), load(o.work, 0), load(o.budget, 0)
    last_sweeps, last_work = swept + float(o.sweeps), budget
    if load(o.parted, 0) != 0:
        last_work = maximum(last_work, work + budget * A_LITTLE)
    store(o.last_sweeps, 0, last_sweeps)
    store(o.last_work, 0, last_work)
    kept = RESERVE if o.stabilize == BY_DISPLACEMENT else 0.0
    store(o.most_sweeps, 0, last_sweeps - (last_sweeps - swept) * kept)
    store(o.most_work, 0, last_work - (last_work - work) * kept)
    count_on(o, work == work)


@kernel
def count_on(o, wanted):
    """Let sweeps and work count on in the worlds of a mask. Those of others, whose rows are solved again as they were,
    count from where they did the last time: so they end in the same way.
    """
    for count, looked in (
        (o.swept, o.looked_swept),
        (o.stepped, o.looked_stepped),
        (o.work, o.looked_work),
        (o.newton_work, o.looked_newton_work),
    ):
        now = select(wanted, load(count, 0), load(looked, 0))
        store(count, 0, now)
        store(looked, 0, now)


@kernel
def is_spent(o):
    """Worlds in which impulses have used up their sweeps or their work."""
    return (load(o.swept, 0) >= load(o.most_sweeps, 0)) | (load(o.work, 0) >= load(o.most_work, 0))


@kernel
def wants_another_look(m, s, w, g, c, l, i, flow, o, ahead, dt):
    """Whether rows are to be made and solved again: for what impulses bring about, LOOKS times at most, then with
    the velocity products that impulses leave.
    """
    if load(o.solved_again, 0) != 0:
        return False
    if load(o.look, 0) < LOOKS and look_again(m, s, w, g, c, l, i, flow, o, dt):
        store(o.look, 0, load(o.look, 0) + 1)
        return True
    if load(o.any_split, 0) == 0 or load(i.count, 0) == 0:
        return False
    store(o.solved_again, 0, 1)
    wanted = change_products(m, s, w, ahead, flow, o, dt)
    if not any_lane(wanted):
        return False
    count_on(o, wanted)
    for d in range(m.nv):
        store(flow.a, d, load(o.known, d))
    for k in range(m.n_links):
        store(flow.acceleration, k, load(o.known_motion, k))
    return True


@kernel
def find_impulses(m, s, x, w, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, dt, goes_on):
    """Rows and impulses of a step, and what they do to velocities: DONE, NO_ROOM, UNSOLVED or TOO_LONG. See
    `advance`.
    """
    if goes_on != GOES_ON:
        know_nothing(m, flow, o)
        open_budget(o)
    elif load(o.answered, 0) == 0:
        answer_islands(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt)
    unmade = goes_on != GOES_ON
    while unmade or wants_another_look(m, s, w, g, c, l, i, flow, o, ahead, dt):
        # the last one is like no other, so that a world looks as it does whatever its neighbours see
        look = LOOKS if load(o.solved_again, 0) != 0 else load(o.look, 0)
        end = solve_rows(
            m, s, x, w, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, dt, look, goes_on
        )
        if end != DONE:
            return end
        unmade = False
    return DONE


@kernel
def hold_back(m, w, flow, o, dt):
    """Let coordinates move less, as impacts that come late in the step have it. Those of trees that fly move by their
    mean velocity, as in steps without impacts.
    """
    for d in range(m.nv):
        store(flow.share, d, load(o.unmoved, d))
    spread_acceleration(m, w, flow)
    for d in range(m.nv):
        root = load(m.dof_root, d)
        flies = load(o.falling, root) > load(o.lagging, root)
        less = select(flies, load(w.a, d) * (0.5 * dt), zero(load(w.a, d)))
        store(o.shift, d, load(o.shift, d) + load(flow.a, d) - less)


@kernel
def end_speeds(m, s, w, l, r, i, t, flow, plain, p, a, newton, o, dt):
    """Velocities at the end of a step, and those that coordinates move along, which displacements add to."""
    for d in range(m.nv):
        store(o.shift, d, zero(load(s.v, d)))
        store(o.change, d, load(flow.a, d) + (load(o.start, d) + centring_of(m, o, d)) * dt)
    if load(i.count, 0) > 0:
        for d in range(m.nv):
            store(s.v, d, load(s.v, d) + load(flow.a, d))
        if o.stabilize == BY_DISPLACEMENT:
            shift_out(m, s, w, l, r, i, t, flow, plain, p, a, newton, o, dt)
        if load(o.any_unmoved, 0) != 0:
            hold_back(m, w, flow, o, dt)
    for d in range(m.nv):
        v = step_velocity(m, s, w, o, d, dt)
        store(s.v, d, v)
        store(o.shift, d, load(o.shift, d) + v)


@kernel
def advance(m, s, x, w, y, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, dt, goes_on):
    """A step from the free motion and the contacts on; the rows of the step before are in `old`. In `ahead` links are
    as they are at the end.

    DONE or DIVERGED; or NO_ROOM for all rows; or UNSOLVED, and the impulses as good as they are: then it GOES_ON, with
    these or with better ones in the rows (and `answered` 0). Of one world it may be TOO_LONG, and nothing is done.
    """
    end = find_impulses(m, s, x, w, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, dt, goes_on)
    if end != DONE:
        return end
    if goes_on == UNLESS_LONG and load(i.count, 0) > 0:
        foresee(m, flow)
        if hurries(m, w, g, u, flow, o, dt):
            return TOO_LONG
    correct_products(m, s, w, i, ahead, flow, o, dt)
    end_speeds(m, s, w, l, r, i, t, flow, plain, p, a, newton, o, dt)
    displace(m, s.q, o.shift, dt, s.q)
    finish_smoothly(m, s, x, w, y, ahead, o, dt)
    if y.n_prescribed != 0:
        follow(m, s, x, y, 2)
    if not is_sound(m, s, y):
        return DIVERGED
    if z.sleeps != 0:
        fall_asleep(m, s, x, w, i, z, dt)
    return DONE
