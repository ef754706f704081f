"""γ of every contact that was found: what its gap accelerates by when no body does (see `curvature`)."""

from __future__ import annotations

from poise.collision.curvature import Moving, gap_bend, radii
from poise.collision.layout import Placed
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.spatial import motion_at
from poise.kernel.vec import zero3


@kernel
def moving(m, w, g, x, i, point, n):
    """How shape i moves at a point of its surface where its outward normal is n."""
    S = Placed(load(x.position, i), load(x.rotation, i), load(g.size, i))
    P = radii(g, i, S, n)
    link, none = load(g.link, i), zero3(n.x)
    if link < 0:
        return Moving(none, none, none, P)
    centre = load(w.R, link) @ load(m.body_centre, load(g.body, i)) + load(w.r, link)
    velocity = load(w.velocity, link)
    arm = point - load(w.origin, load(g.root, i)) - centre
    return Moving(arm, velocity.w, motion_at(velocity, centre), P)


@kernel
def bend_contacts(m, w, g, x, c):
    """γ of all contacts of one world."""
    for k in range(load(c.count, 0)):
        n, gap, point = load(c.normal, k), load(c.gap, k), load(c.point, k)
        half = n * (0.5 * gap)
        a = moving(m, w, g, x, load(c.a, k), point - half, n)
        b = moving(m, w, g, x, load(c.b, k), point + half, -n)
        store(c.bend, k, gap_bend(n, gap, a, b))
