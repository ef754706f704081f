"""Row velocities and accelerations from the motion of a tree, and the response to multipliers.

row velocities       J x, for velocities x of any kind
row accelerations    J a + γ: KOK's h(q̈) (§4), with a the accelerations from `aba.accelerate`
shares               √D Y λ with the Y of `delassus_kernels`, from which `spread_acceleration` computes M⁻¹ Jᵀ λ
"""

from __future__ import annotations

from poise.constraints.response.contact_block import is_contact, see_contact
from poise.constraints.response.delassus_kernels import (
    about_origin,
    lean,
    link_of,
    place_centres,
    place_row,
    take_roots,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import gather, gather_where, load, store
from poise.kernel.scalars import any_lane, select, sum_lanes, zero
from poise.kernel.spatial import motion_at, no_motion, pair
from poise.kernel.vec import cross, dot

VELOCITY, ACCELERATION = 0, 1
"""Levels."""


@kernel
def spread_velocity(m, w, x):
    """Motions of all links for x."""
    motion = no_motion(load(x.x, 0))
    for d in range(m.nv):
        parent = load(m.dof_parent, d)
        if parent < 0:
            motion = no_motion(load(x.x, 0))
        elif parent < d - 1:  # else it is still in registers
            motion = load(x.motion, load(m.dof_link, parent))
        motion = motion + load(w.axis, d) * load(x.x, d)
        if load(m.dof_ends_link, d) != 0:
            if w.n_drift != 0:
                motion = motion + load(w.drift, load(m.dof_link, d))
            store(x.motion, load(m.dof_link, d), motion)


@kernel
def power(x, link, f):
    """Power of a force on a link at its motion."""
    there = link >= 0
    return pair(gather_where(x.motion, link, there), f)


@kernel
def coordinate(buffer, dof, J):
    """J times a coordinate of a vector."""
    there = dof >= 0
    return select(there, J, zero(J)) * gather_where(buffer, dof, there)


@kernel
def term_velocity(m, w, r, x, at, value):
    """The value plus J x of a row's further terms."""
    term = gather(r.term, at)
    while any_lane(term >= 0):
        there = term >= 0
        body = select(there, gather_where(r.term_body, term, there), term)
        dof = select(there, gather_where(r.term_dof, term, there), term)
        link = link_of(m, body)
        value = value + power(x, link, about_origin(w, body, link, gather_where(r.term_J, term, there)))
        value = value + coordinate(x.x, dof, gather_where(r.term_Jdof, term, there))
        term = select(there, gather_where(r.term_next, term, there), term)
    return value


@kernel
def row_velocity(m, w, r, t, x, k, at):
    """J x of a row; `delassus_kernels.place_row` must run before."""
    value = power(x, load(t.link_a, k), load(t.force_a, k)) + power(x, load(t.link_b, k), load(t.force_b, k))
    value = value + coordinate(x.x, gather(r.dof, at), gather(r.Jdof, at))
    store(t.speed, k, term_velocity(m, w, r, x, at, value))


@kernel
def pull(m, w, body, link, f):
    """A covector f, about O, on the acceleration (ω̇, v̇) of a body's centre of mass.

    Links store their spatial acceleration less gravity: v̇ is that at the centre of mass, plus ω × v and gravity.
    """
    there = link >= 0
    velocity = gather_where(w.velocity, link, there)
    speed = motion_at(velocity, gather_where(w.centre, body, there))
    turning = cross(velocity.w, speed) + load(m.gravity, 0)
    return pair(gather_where(w.acceleration, link, there), f) + dot(turning, f.f)


@kernel
def term_acceleration(m, w, r, at, value):
    """The value plus J a of a row's further terms."""
    term = gather(r.term, at)
    while any_lane(term >= 0):
        there = term >= 0
        body = select(there, gather_where(r.term_body, term, there), term)
        dof = select(there, gather_where(r.term_dof, term, there), term)
        link = link_of(m, body)
        value = value + pull(m, w, body, link, about_origin(w, body, link, gather_where(r.term_J, term, there)))
        value = value + coordinate(w.a, dof, gather_where(r.term_Jdof, term, there))
        term = select(there, gather_where(r.term_next, term, there), term)
    return value


@kernel
def row_acceleration(m, w, r, t, k, at):
    """J a + γ of a row; `delassus_kernels.place_row` must run before."""
    value = gather(r.gamma, at) + coordinate(w.a, gather(r.dof, at), gather(r.Jdof, at))
    value = value + pull(m, w, gather(r.a, at), load(t.link_a, k), load(t.force_a, k))
    value = value + pull(m, w, gather(r.b, at), load(t.link_b, k), load(t.force_b, k))
    store(t.pull, k, term_acceleration(m, w, r, at, value))


# ---- everything of all rows ------------------------------------------------------------------------------------------


@kernel
def see_row(m, w, r, t, x, k, at, level):
    """Y, J x, and at acceleration level J a + γ of a row."""
    place_row(m, w, r, t, k, at)
    lean(m, w, r, t, k, at)
    row_velocity(m, w, r, t, x, k, at)
    if level == ACCELERATION:
        row_acceleration(m, w, r, t, k, at)


@kernel
def look(m, s, w, t, x, dt):
    """Prepare the evaluation of rows, with x = v + dt a."""
    place_centres(m, w)
    take_roots(m, w, t)
    for d in range(m.nv):
        store(x.x, d, load(s.v, d) + load(w.a, d) * dt)
    spread_velocity(m, w, x)


@kernel
def see_rows(m, s, w, r, t, x, dt, level):
    """Evaluate all rows, one by one: of one world, or row k of every world. `look` must run before."""
    k = 0
    while k < load(t.n_rows, 0):
        slot = load(t.slot, k)
        if level == VELOCITY and is_contact(r, slot):
            see_contact(m, w, r, t, x, k, slot)
            k += 3
        else:
            see_row(m, w, r, t, x, k, slot, level)
            k += 1


@kernel
def see_lanes(m, s, w, r, t, x, dt, level):
    """Evaluate all rows of one world, in lanes of rows. `look` must run before."""
    for k in range(load(t.n_groups, 0)):
        see_row(m, w, r, t, x, k, load(t.lane_slot, k), level)


# ---- what multipliers do ---------------------------------------------------------------------------------------------


@kernel
def share(m, w, t, x):
    """Response of every degree of freedom to the rows' multipliers, where lanes are not rows: √D Y λ."""
    n = load(t.n_dofs, 0)
    for e in range(n):
        d = load(t.dof, e)
        sum = zero(load(x.a, 0))
        for k in range(load(t.n_rows, 0)):
            sum = sum + load(t.y, k * n + e) * load(t.lam, k)
        store(x.share, d, sum * load(t.root, d))


@kernel
def share_lanes(m, w, t, x):
    """The same where lanes are rows of one world."""
    n = load(t.n_dofs, 0)
    for e in range(n):
        d = load(t.dof, e)
        sum = zero(load(t.lam, 0))
        for k in range(load(t.n_groups, 0)):
            sum = sum + load(t.y, k * n + e) * load(t.lam, k)
        store(x.share, d, sum_lanes(sum * load(t.root, d)))


# ---- one row, as it is in the store ----------------------------------------------------------------------------------


@kernel
def velocity_along(motion, link, f):
    """Velocity of links along a covector about O, for their motions; 0 if there is no link."""
    return pair(gather_where(motion, link, link >= 0), f)


@kernel
def stored_row_velocity(m, w, r, slot, v, motion):
    """Velocity of a row, for velocities `v` of the degrees of freedom and the `motion` of all links for `v`."""
    a, b = load(r.a, slot), load(r.b, slot)
    link_a, link_b = link_of(m, a), link_of(m, b)
    value = coordinate(v, load(r.dof, slot), load(r.Jdof, slot))
    if any_lane((link_a >= 0) | (link_b >= 0)):  # limits of joints have none
        value = value + velocity_along(motion, link_a, about_origin(w, a, link_a, load(r.Ja, slot)))
        value = value + velocity_along(motion, link_b, about_origin(w, b, link_b, load(r.Jb, slot)))
    term = load(r.term, slot)
    while any_lane(term >= 0):
        there = term >= 0
        body = select(there, gather_where(r.term_body, term, there), term)
        dof = select(there, gather_where(r.term_dof, term, there), term)
        link = link_of(m, body)
        value = value + velocity_along(motion, link, about_origin(w, body, link, gather_where(r.term_J, term, there)))
        value = value + coordinate(v, dof, gather_where(r.term_Jdof, term, there))
        term = select(there, gather_where(r.term_next, term, there), term)
    return value
