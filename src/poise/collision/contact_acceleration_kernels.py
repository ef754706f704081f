"""Rate of the relative velocity of every contact without accelerations of bodies: γ of its rows (see
`contact_acceleration`).
"""

from __future__ import annotations

from poise.collision.collision_layout import Placed
from poise.collision.contact_acceleration import Moving, gap_bend, radii
from poise.kernel.jit import kernel
from poise.kernel.memory import load, load_lane, store_lane
from poise.kernel.spatial import motion_at
from poise.kernel.vec import zero3


@kernel
def moving(m, w, g, x, i, point, n, lane):
    """Motion of shape i, in one lane, at a point of its surface where its outward normal is n."""
    S = Placed(load_lane(x.position, i, lane), load_lane(x.rotation, i, lane), load(g.size, i))
    P = radii(g, i, S, n)
    link, none = load(g.link, i), zero3(n.x)
    if link < 0:
        return Moving(none, none, none, P)
    centre = load_lane(w.R, link, lane) @ load(m.body_centre, load(g.body, i)) + load_lane(w.r, link, lane)
    velocity = load_lane(w.velocity, link, lane)
    arm = point - load_lane(w.origin, load(g.root, i), lane) - centre
    return Moving(arm, velocity.w, motion_at(velocity, centre), P)


@kernel
def bend_contacts(m, w, g, x, c):
    """G of all contacts, world by world, since each world has its own list."""
    for lane in range(c.lanes):
        for k in range(load_lane(c.count, 0, lane)):
            n, gap = load_lane(c.normal, k, lane), load_lane(c.gap, k, lane)
            point, half = load_lane(c.point, k, lane), n * (0.5 * gap)
            a = moving(m, w, g, x, load_lane(c.a, k, lane), point - half, n, lane)
            b = moving(m, w, g, x, load_lane(c.b, k, lane), point + half, -n, lane)
            store_lane(c.bend, k, lane, gap_bend(n, gap, a, b))
