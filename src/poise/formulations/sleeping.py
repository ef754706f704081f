"""Sleep: islands in which nothing has moved for a while stay as they are, at no cost, until something stirs them.

A tree is still while no point of it is faster than a given speed. When all trees of an island have been still for long
enough, they fall asleep together: velocities become nought, coordinates stay as they are to the last bit. Their rows
stay in the store with their multipliers, so that reports, sensors and events go on telling what they tell, but they are
no longer solved. What wakes them is a row that ties them to something that is awake or led along a path, or any change
of what they are or of what acts on them. Those who fell asleep together wake together.

One world only; in lanes nobody sleeps.
"""

from __future__ import annotations

from poise.constraints.islands import first_of
from poise.constraints.row_kernels import N_KINDS, stride_of
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import get_lane, maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import norm

SET = 9
"""Numbers that a motor is set by."""


# ---- waking ----------------------------------------------------------------------------------------------------------


@kernel
def stir(m, z, link):
    """Let the tree of a link wake with all that sleep with it."""
    store(z.stirred, load(m.link_root, link), 1)


@kernel
def is_asleep(m, z, link):
    """Whether the tree of a link sleeps."""
    return load(z.asleep, load(m.link_root, link)) != 0


@kernel
def wake_stirred(m, z):
    """Wake all that fell asleep with anyone who was stirred; whether there was any."""
    any_woke = False
    for i in range(m.n_links):
        group = load(z.asleep, i)
        if group != 0 and load(z.stirred, i) != 0:
            any_woke = True
            for j in range(m.n_links):
                if load(z.asleep, j) == group:
                    store(z.asleep, j, 0)
                    store(z.still, j, zero(load(z.still, j)))
        store(z.stirred, i, 0)
    return any_woke


@kernel
def other(a, b):
    """Whether two numbers differ, or one of them is none."""
    return get_lane(a, 0) != get_lane(b, 0)


@kernel
def other_force(a, b):
    """The same for forces."""
    turn = other(a.t.x, b.t.x) or other(a.t.y, b.t.y) or other(a.t.z, b.t.z)
    return turn or other(a.f.x, b.f.x) or other(a.f.y, b.f.y) or other(a.f.z, b.f.z)


@kernel
def stir_changed(m, s, x, z):
    """Stir trees whose state, or what acts on them, is not what it was."""
    for j in range(z.nq):
        link = load(z.q_link, j)
        if is_asleep(m, z, link) and (other(load(s.q, j), load(z.q, j)) or other(load(x.goal_q, j), load(z.goal_q, j))):
            stir(m, z, link)
    for d in range(m.nv):
        link = load(m.dof_link, d)
        if is_asleep(m, z, link):
            moved = other(load(s.v, d), zero(load(s.v, d))) or other(load(x.tau, d), load(z.tau, d))
            gains = other(load(x.gain_p, d), load(z.gain_p, d)) or other(load(x.gain_d, d), load(z.gain_d, d))
            if moved or gains or other(load(x.goal_v, d), load(z.goal_v, d)):
                stir(m, z, link)
    for i in range(m.n_bodies):
        link = load(m.body_link, i)
        if link >= 0 and is_asleep(m, z, link) and other_force(load(x.force, i), load(z.force, i)):
            stir(m, z, link)


@kernel
def reset(z, at, x):
    """Note a number that a motor is set by; whether it is another than before."""
    changed = other(x, load(z.motor, at))
    store(z.motor, at, x)
    return changed


@kernel
def wake_placed(m, s, z):
    """Wake everyone where a kinematic body is not where its last step left it; note where it is."""
    placed = False
    for j in range(z.nq):
        if load(z.placed, j) != 0:
            placed = placed or other(load(s.q, j), load(z.q, j))
            store(z.q, j, load(s.q, j))
    if placed:
        for i in range(m.n_links):
            store(z.asleep, i, 0)
            store(z.still, i, zero(load(z.still, i)))


@kernel
def note_placed(s, z):
    """Note where kinematic bodies are at the end of a step."""
    for j in range(z.nq):
        if load(z.placed, j) != 0:
            store(z.q, j, load(s.q, j))


@kernel
def stir_driven(m, b, z):
    """Stir trees of motors that are set otherwise than in the last step; note those that are to keep moving."""
    for link in range(m.n_links):
        store(z.busy, link, 0)
    turned = False
    for n in range(len_rotations(b)):
        turned = turned or other(load(b.rotation, n), load(z.rotation, n))
        store(z.rotation, n, load(b.rotation, n))
    for j in range(b.n_rows):
        k = SET * j
        changed = reset(z, k, load(b.stiffness, j)) | reset(z, k + 1, load(b.damping, j))
        changed = changed | reset(z, k + 2, load(b.target, j)) | reset(z, k + 3, load(b.speed, j))
        changed = changed | reset(z, k + 4, load(b.torque, j)) | reset(z, k + 5, load(b.acceleration, j))
        changed = changed | reset(z, k + 6, load(b.hurries, j)) | reset(z, k + 7, load(b.low, j))
        changed = changed | reset(z, k + 8, load(b.high, j)) | (turned and load(b.ball, j) >= 0)
        none = zero(load(b.speed, j))
        keeps = (other(load(b.speed, j), none) and other(load(b.damping, j), none)) or other(load(b.hurries, j), none)
        for n in range(load(b.term_start, j), load(b.term_start, j + 1)):
            link = load(m.dof_link, load(b.term_dof, n))
            if changed:
                stir(m, z, link)
            if keeps:
                stir(m, z, link)
                store(z.busy, load(m.link_root, link), 1)


@kernel
def len_rotations(b):
    """Numbers of all balls' targets."""
    last = 0
    for j in range(b.n_rows):
        last = maximum(last, 4 * (load(b.ball, j) + 1))
    return last


@kernel
def count_awake(m, s, z):
    """Trees that are awake and can move, and those that are led and do."""
    count = 0
    for i in range(m.n_links):
        root = load(m.link_root, i)
        if load(z.moves, root) != 0:
            if i == root and load(z.asleep, root) == 0:
                count += 1
        elif is_led_along(m, s, i):
            count += 1
    store(z.n_awake, 0, count)


@kernel
def is_led_along(m, s, link):
    """Whether a link has any velocity of its own."""
    for d in range(load(m.link_dof_start, link), load(m.link_dof_start, link + 1)):
        if other(load(s.v, d), zero(load(s.v, d))):
            return True
    return False


@kernel
def wake_changed(m, s, x, b, z):
    """Before a step: wake who was changed; how many are awake."""
    if z.sleeps == 0:
        return 1
    if z.n_placed != 0:
        wake_placed(m, s, z)
    stir_changed(m, s, x, z)
    stir_driven(m, b, z)
    wake_stirred(m, z)
    count_awake(m, s, z)
    awake = load(z.n_awake, 0) + load(z.fresh, 0)
    store(z.fresh, 0, 0)
    return awake


@kernel
def freeze(m, w, z):
    """Those asleep do not accelerate."""
    if z.sleeps != 0:
        for d in range(m.nv):
            if is_asleep(m, z, load(m.dof_link, d)):
                store(w.a, d, zero(load(w.a, d)))


@kernel
def led_along(m, s, z, body):
    """Whether a body is led, and moves."""
    if body < 0:
        return False
    link = load(m.body_link, body)
    if link < 0 or load(z.moves, load(m.link_root, link)) != 0:
        return False
    while link >= 0:
        if is_led_along(m, s, link):
            return True
        link = load(m.link_parent, link)
    return False


@kernel
def wake_tied(m, s, r, i, z):
    """Wake islands that rows tie to what is awake, or to what is led along; whether there were any."""
    for link in range(m.n_links):
        if link == load(m.link_root, link) and load(z.moves, link) != 0 and load(z.asleep, link) == 0:
            store(z.stirred, first_of(i, link), 1)
    n = 0
    for kind in range(N_KINDS):
        for k in range(get_lane(load(r.count, kind), 0)):
            slot = load(r.first, kind) + k * stride_of(kind)
            if led_along(m, s, z, get_lane(load(r.a, slot), 0)) or led_along(m, s, z, get_lane(load(r.b, slot), 0)):
                store(z.stirred, first_of(i, load(i.first, n)), 1)
            n += 1
    for link in range(m.n_links):  # from those who stand for an island to all of it; roots come before others
        if link == load(m.link_root, link) and load(z.stirred, first_of(i, link)) != 0:
            store(z.stirred, link, 1)
    store(z.stirred, m.n_links, 0)
    return wake_stirred(m, z)


# ---- falling asleep --------------------------------------------------------------------------------------------------


@kernel
def find_fastest(m, w, z):
    """Speed of the fastest point of every tree at the beginning of the step."""
    none = zero(load(z.speed, 0))
    for i in range(m.n_links):
        store(z.fastest, i, none)
    for i in range(m.n_links):
        velocity, root = load(w.velocity, i), load(m.link_root, i)
        centre = load(w.R, i) @ load(z.centre, i) + load(w.r, i)
        speed = norm(motion_at(velocity, centre)) + norm(velocity.w) * load(z.extent, i)
        store(z.fastest, root, maximum(load(z.fastest, root), speed))


@kernel
def note(m, s, x, z):
    """Take note of what there is, of those who sleep."""
    for j in range(z.nq):
        if is_asleep(m, z, load(z.q_link, j)):
            store(z.q, j, load(s.q, j))
            store(z.goal_q, j, load(x.goal_q, j))
    for d in range(m.nv):
        if is_asleep(m, z, load(m.dof_link, d)):
            store(s.v, d, zero(load(s.v, d)))
            store(z.tau, d, load(x.tau, d))
            store(z.gain_p, d, load(x.gain_p, d))
            store(z.gain_d, d, load(x.gain_d, d))
            store(z.goal_v, d, load(x.goal_v, d))
    for k in range(m.n_bodies):
        link = load(m.body_link, k)
        if link >= 0 and is_asleep(m, z, link):
            store(z.force, k, load(x.force, k))


@kernel
def fall_asleep(m, s, x, w, i, z, dt):
    """After a step: who has been still for long enough, with the whole island, falls asleep."""
    for j in range(z.nq):  # those who sleep have been moved by nothing, and rounded
        if is_asleep(m, z, load(z.q_link, j)):
            store(s.q, j, load(z.q, j))
    if z.n_placed != 0:
        note_placed(s, z)
    find_fastest(m, w, z)
    for link in range(m.n_links):
        if link == load(m.link_root, link) and load(z.moves, link) != 0 and load(z.asleep, link) == 0:
            still = load(z.still, link) + dt
            if get_lane(load(z.fastest, link), 0) > get_lane(load(z.speed, 0), 0) or load(z.busy, link) != 0:
                still = zero(still)
            store(z.still, link, still)
            if get_lane(still, 0) < get_lane(load(z.after, 0), 0):
                store(z.stirred, first_of(i, link), 1)  # keeps the others awake
    any_slept = False
    for link in range(m.n_links):
        if link == load(m.link_root, link) and load(z.moves, link) != 0 and load(z.asleep, link) == 0:
            first = first_of(i, link)
            if load(z.stirred, first) == 0:
                store(z.asleep, link, first + 1)
                any_slept = True
    for link in range(m.n_links):
        store(z.stirred, link, 0)
    if any_slept:
        note(m, s, x, z)
