"""How fast shapes are: their speeds, and how far they move for their size."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import norm
from poise.model.solids import Solid

SPHERE = int(Solid.SPHERE)
HASTE = 0.5
"""Share of its least extent that a shape may move in a step that is not split (see `fast`)."""


@kernel
def shape_haste(w, g, u, i, link):
    """Of a shape on a link: the speed that no point of it exceeds; and how often it moves by its least extent in a
    second.
    """
    velocity = load(w.velocity, link)
    arm = load(w.R, link) @ load(g.position, i) + load(w.r, link)
    speed = norm(motion_at(velocity, arm))
    most = speed + norm(velocity.w) * load(g.reach, i)
    if load(g.kind, i) != SPHERE:  # which is nowhere else when it turns
        speed = most
    return most, speed * (1.0 / load(u.thin, i))


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
