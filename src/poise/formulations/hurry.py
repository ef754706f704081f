"""What is fast: shapes that move far for their size in a step, and may touch something in it."""

from __future__ import annotations

from poise.constraints.contact_rows import from_origin, most_contacts, of_shape, parting
from poise.constraints.tree_values import spread_velocity
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store
from poise.kernel.scalars import any_lane, maximum, select, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import cross, norm
from poise.model.solids import Solid

SPHERE = int(Solid.SPHERE)


@kernel
def predict(m, s, w, x, dt):
    """Motion of all links at the end of the step, without rows."""
    for d in range(m.nv):
        store(x.x, d, load(s.v, d) + load(w.a, d) * dt)
    spread_velocity(m, w, x)


@kernel
def shape_haste(w, g, u, i, link):
    """Of a shape on a link: the speed that no point of it exceeds; and its haste.

    A point that turns by an angle while it goes some way leaves the straight line that contacts look along by half of
    their product. So it may go twice as far in its least extents as it turns in radians: at a HASTE of half a radian it
    is off by a quarter of its extent.
    """
    velocity = load(w.velocity, link)
    arm = load(w.R, link) @ load(g.position, i) + load(w.r, link)
    speed, spin = norm(motion_at(velocity, arm)), norm(velocity.w)
    most = speed + spin * load(g.reach, i)
    if load(g.kind, i) == SPHERE:  # which is nowhere else when it turns
        return most, speed * (0.5 / load(u.thin, i))
    return most, maximum(most * (0.5 / load(u.thin, i)), spin)


@kernel
def find_haste(w, g, u, o):
    """The top speed of all shapes, and the greatest haste."""
    top = zero(load(o.top, 0))
    haste = top
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            most, own = shape_haste(w, g, u, i, link)
            top, haste = maximum(top, most), maximum(haste, own)
    store(o.haste, 0, haste)
    store(o.top, 0, top)


@kernel
def turning(x, g, shape, link, n, there):
    """Speed along n that a shape's turning may add to that of one of its points, at another one."""
    moves = there & (link >= 0)
    speed = norm(cross(n, gather_where(x.motion, link, moves).w)) * (2.0 * gather_where(g.reach, shape, moves))
    return select(moves, speed, zero(speed))


@kernel
def may_close(w, g, x, c, k, there, dt, margin):
    """Whether any points of a pair that is k-th among the contacts come within a margin of each other in a step, as
    links move at its end.
    """
    a, b, n, point = load(c.a, k), load(c.b, k), load(c.normal, k), load(c.point, k)
    link_a, link_b = of_shape(g.link, a, there), of_shape(g.link, b, there)
    away_a, away_b = from_origin(w, g, a, link_a, point, there), from_origin(w, g, b, link_b, point, there)
    speed = turning(x, g, a, link_a, n, there) + turning(x, g, b, link_b, n, there)
    speed = speed - parting(x.motion, n, link_a, link_b, away_a, away_b, there)
    return load(c.gap, k) <= margin + maximum(speed, zero(speed)) * dt


@kernel
def haste_near_others(m, s, w, g, u, c, x, o, dt):
    """The greatest haste of shapes that may touch something in the step, of one world whose contacts are found. What
    is fast and alone has nothing to overlook.
    """
    predict(m, s, w, x, dt)
    margin = load(o.near, 0) + load(o.push, 0) * (dt * dt)
    haste = zero(margin)
    for k in range(most_contacts(c)):
        a, b = load(c.a, k), load(c.b, k)
        there = load(c.count, 0) > k
        if any_lane(there & may_close(w, g, x, c, k, there, dt, margin)):
            for shape in (a, b):
                link = load(g.link, shape)
                if link >= 0:
                    _, own = shape_haste(w, g, u, shape, link)
                    haste = maximum(haste, own)
    store(o.haste, 0, haste)
    return c.room  # bound entries return whole numbers
