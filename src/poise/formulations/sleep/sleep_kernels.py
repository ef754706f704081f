"""Sleeping: islands that have rested for a while are not simulated until something wakes them.

A tree rests while no point of it is faster than a given speed. When all trees of an island have rested for long enough,
they fall asleep together: velocities become zero, coordinates stay bitwise the same. Their rows stay in the store with
their multipliers, so that reports, sensors and events still include them, but the rows are no longer solved. An island
wakes up if a row connects it to an awake body or to a moving kinematic one, or if its state or its inputs change. Trees
that fell asleep together wake together.

One world only; batches have no sleeping.
"""

from __future__ import annotations

from poise.constraints.emit_rows import N_KINDS, stride_of
from poise.constraints.islands import first_of
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import get_lane, maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import norm

SET = 9
"""Number of settings of a motor."""


# ---- waking ----------------------------------------------------------------------------------------------------------


@kernel
def stir(model, sleep, link):
    """Mark the island of a link to be woken."""
    store(sleep.stirred, load(model.link_root, link), 1)


@kernel
def is_asleep(model, sleep, link):
    """Whether the tree of a link sleeps."""
    return load(sleep.asleep, load(model.link_root, link)) != 0


@kernel
def wake_stirred(model, sleep):
    """Wake the islands of all marked trees; returns whether there were any."""
    any_woke = False
    for i in range(model.n_links):
        group = load(sleep.asleep, i)
        if group != 0 and load(sleep.stirred, i) != 0:
            any_woke = True
            for j in range(model.n_links):
                if load(sleep.asleep, j) == group:
                    store(sleep.asleep, j, 0)
                    store(sleep.still, j, zero(load(sleep.still, j)))
        store(sleep.stirred, i, 0)
    return any_woke


@kernel
def other(a, b):
    """Whether two numbers differ, or one of them is NaN."""
    return get_lane(a, 0) != get_lane(b, 0)


@kernel
def other_force(a, b):
    """The same for forces."""
    turn = other(a.t.x, b.t.x) or other(a.t.y, b.t.y) or other(a.t.z, b.t.z)
    return turn or other(a.f.x, b.f.x) or other(a.f.y, b.f.y) or other(a.f.z, b.f.z)


@kernel
def stir_changed(model, state, inputs, sleep):
    """Mark trees whose state or inputs have changed."""
    for j in range(sleep.nq):
        link = load(sleep.q_link, j)
        if is_asleep(model, sleep, link) and (
            other(load(state.q, j), load(sleep.q, j)) or other(load(inputs.goal_q, j), load(sleep.goal_q, j))
        ):
            stir(model, sleep, link)
    for d in range(model.nv):
        link = load(model.dof_link, d)
        if is_asleep(model, sleep, link):
            moved = other(load(state.v, d), zero(load(state.v, d))) or other(load(inputs.tau, d), load(sleep.tau, d))
            gains = other(load(inputs.gain_p, d), load(sleep.gain_p, d)) or other(
                load(inputs.gain_d, d), load(sleep.gain_d, d)
            )
            if moved or gains or other(load(inputs.goal_v, d), load(sleep.goal_v, d)):
                stir(model, sleep, link)
    for i in range(model.n_bodies):
        link = load(model.body_link, i)
        if link >= 0 and is_asleep(model, sleep, link) and other_force(load(inputs.force, i), load(sleep.force, i)):
            stir(model, sleep, link)


@kernel
def reset(sleep, at, x):
    """Record a setting of a motor; returns whether it has changed."""
    changed = other(x, load(sleep.motor, at))
    store(sleep.motor, at, x)
    return changed


@kernel
def wake_placed(model, state, sleep):
    """Wake all trees if a kinematic body is not where its last step left it; record its coordinates."""
    placed = False
    for j in range(sleep.nq):
        if load(sleep.placed, j) != 0:
            placed = placed or other(load(state.q, j), load(sleep.q, j))
            store(sleep.q, j, load(state.q, j))
    if placed:
        for i in range(model.n_links):
            store(sleep.asleep, i, 0)
            store(sleep.still, i, zero(load(sleep.still, i)))


@kernel
def note_placed(state, sleep):
    """Record the coordinates of kinematic bodies at the end of a step."""
    for j in range(sleep.nq):
        if load(sleep.placed, j) != 0:
            store(sleep.q, j, load(state.q, j))


@kernel
def stir_driven(model, motors, sleep):
    """Mark trees of motors whose settings changed since the last step, or that keep moving."""
    for link in range(model.n_links):
        store(sleep.busy, link, 0)
    turned = False
    for n in range(len_rotations(motors)):
        turned = turned or other(load(motors.rotation, n), load(sleep.rotation, n))
        store(sleep.rotation, n, load(motors.rotation, n))
    for j in range(motors.n_rows):
        k = SET * j
        changed = reset(sleep, k, load(motors.stiffness, j)) | reset(sleep, k + 1, load(motors.damping, j))
        changed = changed | reset(sleep, k + 2, load(motors.target, j)) | reset(sleep, k + 3, load(motors.speed, j))
        changed = (
            changed | reset(sleep, k + 4, load(motors.torque, j)) | reset(sleep, k + 5, load(motors.acceleration, j))
        )
        changed = changed | reset(sleep, k + 6, load(motors.hurries, j)) | reset(sleep, k + 7, load(motors.low, j))
        changed = changed | reset(sleep, k + 8, load(motors.high, j)) | (turned and load(motors.ball, j) >= 0)
        none = zero(load(motors.speed, j))
        keeps = (other(load(motors.speed, j), none) and other(load(motors.damping, j), none)) or other(
            load(motors.hurries, j), none
        )
        for n in range(load(motors.term_start, j), load(motors.term_start, j + 1)):
            link = load(model.dof_link, load(motors.term_dof, n))
            if changed:
                stir(model, sleep, link)
            if keeps:
                stir(model, sleep, link)
                store(sleep.busy, load(model.link_root, link), 1)


@kernel
def len_rotations(motors):
    """Number of coordinates of all ball targets."""
    last = 0
    for j in range(motors.n_rows):
        last = maximum(last, 4 * (load(motors.ball, j) + 1))
    return last


@kernel
def count_awake(model, state, sleep):
    """Count the awake trees, and the kinematic links that move."""
    count = 0
    for i in range(model.n_links):
        root = load(model.link_root, i)
        if load(sleep.moves, root) != 0:
            if i == root and load(sleep.asleep, root) == 0:
                count += 1
        elif is_led_along(model, state, i):
            count += 1
    store(sleep.n_awake, 0, count)


@kernel
def is_led_along(model, state, link):
    """Whether a link has a joint velocity."""
    for d in range(load(model.link_dof_start, link), load(model.link_dof_start, link + 1)):
        if other(load(state.v, d), zero(load(state.v, d))):
            return True
    return False


@kernel
def wake_changed(model, data):
    """Before a step: wake trees whose state or inputs changed; returns the number of awake trees."""
    if data.sleep.sleeps == 0:
        return 1
    if data.sleep.n_placed != 0:
        wake_placed(model, data.state, data.sleep)
    stir_changed(model, data.state, data.inputs, data.sleep)
    stir_driven(model, data.motors, data.sleep)
    wake_stirred(model, data.sleep)
    count_awake(model, data.state, data.sleep)
    awake = load(data.sleep.n_awake, 0) + load(data.sleep.fresh, 0)
    store(data.sleep.fresh, 0, 0)
    return awake


@kernel
def freeze(model, work, sleep):
    """Zero the accelerations of sleeping trees."""
    if sleep.sleeps != 0:
        for d in range(model.nv):
            if is_asleep(model, sleep, load(model.dof_link, d)):
                store(work.a, d, zero(load(work.a, d)))


@kernel
def led_along(model, state, sleep, body):
    """Whether a body is kinematic and moves."""
    if body < 0:
        return False
    link = load(model.body_link, body)
    if link < 0 or load(sleep.moves, load(model.link_root, link)) != 0:
        return False
    while link >= 0:
        if is_led_along(model, state, link):
            return True
        link = load(model.link_parent, link)
    return False


@kernel
def wake_tied(model, data):
    """Wake islands that rows connect to awake trees, or to moving kinematic bodies; returns whether there were any."""
    for link in range(model.n_links):
        if (
            link == load(model.link_root, link)
            and load(data.sleep.moves, link) != 0
            and load(data.sleep.asleep, link) == 0
        ):
            store(data.sleep.stirred, first_of(data.islands, link), 1)
    n = 0
    for kind in range(N_KINDS):
        for k in range(get_lane(load(data.rows.count, kind), 0)):
            slot = load(data.rows.first, kind) + k * stride_of(kind)
            if led_along(model, data.state, data.sleep, get_lane(load(data.rows.a, slot), 0)) or led_along(
                model, data.state, data.sleep, get_lane(load(data.rows.b, slot), 0)
            ):
                store(data.sleep.stirred, first_of(data.islands, load(data.islands.first, n)), 1)
            n += 1
    for link in range(model.n_links):  # from an island's representative to all its trees; roots come first
        if link == load(model.link_root, link) and load(data.sleep.stirred, first_of(data.islands, link)) != 0:
            store(data.sleep.stirred, link, 1)
    store(data.sleep.stirred, model.n_links, 0)
    return wake_stirred(model, data.sleep)


# ---- falling asleep --------------------------------------------------------------------------------------------------


@kernel
def find_fastest(model, work, sleep):
    """Speed of the fastest point of every tree at the beginning of the step."""
    none = zero(load(sleep.speed, 0))
    for i in range(model.n_links):
        store(sleep.fastest, i, none)
    for i in range(model.n_links):
        velocity, root = load(work.velocity, i), load(model.link_root, i)
        centre = load(work.R, i) @ load(sleep.centre, i) + load(work.r, i)
        speed = norm(motion_at(velocity, centre)) + norm(velocity.w) * load(sleep.extent, i)
        store(sleep.fastest, root, maximum(load(sleep.fastest, root), speed))


@kernel
def note(model, state, inputs, sleep):
    """Record the state and inputs of sleeping trees."""
    for j in range(sleep.nq):
        if is_asleep(model, sleep, load(sleep.q_link, j)):
            store(sleep.q, j, load(state.q, j))
            store(sleep.goal_q, j, load(inputs.goal_q, j))
    for d in range(model.nv):
        if is_asleep(model, sleep, load(model.dof_link, d)):
            store(state.v, d, zero(load(state.v, d)))
            store(sleep.tau, d, load(inputs.tau, d))
            store(sleep.gain_p, d, load(inputs.gain_p, d))
            store(sleep.gain_d, d, load(inputs.gain_d, d))
            store(sleep.goal_v, d, load(inputs.goal_v, d))
    for k in range(model.n_bodies):
        link = load(model.body_link, k)
        if link >= 0 and is_asleep(model, sleep, link):
            store(sleep.force, k, load(inputs.force, k))


@kernel
def fall_asleep(model, data, dt):
    """After a step: islands whose trees have all rested for long enough fall asleep."""
    for j in range(data.sleep.nq):  # sleeping trees did not move, except for rounding
        if is_asleep(model, data.sleep, load(data.sleep.q_link, j)):
            store(data.state.q, j, load(data.sleep.q, j))
    if data.sleep.n_placed != 0:
        note_placed(data.state, data.sleep)
    find_fastest(model, data.work, data.sleep)
    for link in range(model.n_links):
        if (
            link == load(model.link_root, link)
            and load(data.sleep.moves, link) != 0
            and load(data.sleep.asleep, link) == 0
        ):
            still = load(data.sleep.still, link) + dt
            if (
                get_lane(load(data.sleep.fastest, link), 0) > get_lane(load(data.sleep.speed, 0), 0)
                or load(data.sleep.busy, link) != 0
            ):
                still = zero(still)
            store(data.sleep.still, link, still)
            if get_lane(still, 0) < get_lane(load(data.sleep.after, 0), 0):
                store(data.sleep.stirred, first_of(data.islands, link), 1)  # keeps the others awake
    any_slept = False
    for link in range(model.n_links):
        if (
            link == load(model.link_root, link)
            and load(data.sleep.moves, link) != 0
            and load(data.sleep.asleep, link) == 0
        ):
            first = first_of(data.islands, link)
            if load(data.sleep.stirred, first) == 0:
                store(data.sleep.asleep, link, first + 1)
                any_slept = True
    for link in range(model.n_links):
        store(data.sleep.stirred, link, 0)
    if any_slept:
        note(model, data.state, data.inputs, data.sleep)
