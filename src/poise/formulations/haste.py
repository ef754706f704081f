"""How fast shapes are: their speeds, and how far they move for their size."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import Vec3, cross, norm
from poise.model.solids import Solid

SPHERE, CAPSULE = int(Solid.SPHERE), int(Solid.CAPSULE)
HASTE = 0.5
"""Share of its least extent that a shape may move in a step that is not split (see `fast`)."""


@kernel
def shape_haste(w, g, u, i, link):
    """Of a shape on a link: the speed that no point of it exceeds; and how often it moves by its least extent in a
    second. Spheres and capsules are as far as their centres and ends, for they are nowhere else when they turn about
    these.
    """
    velocity, R, extent = load(w.velocity, link), load(w.R, link), load(u.thin, i)
    speed = motion_at(velocity, R @ load(g.position, i) + load(w.r, link))
    far, spin = norm(speed), norm(velocity.w)
    if load(g.kind, i) == CAPSULE:
        size, none = load(g.size, i), zero(load(g.reach, i))
        turn = cross(velocity.w, R @ (load(g.rotation, i) @ Vec3(none, none, size.y)))
        far = maximum(norm(speed + turn), norm(speed - turn))
        return far + spin * size.x, far * (1.0 / extent)
    most = far + spin * load(g.reach, i)
    return most, (far if load(g.kind, i) == SPHERE else most) * (1.0 / extent)


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
