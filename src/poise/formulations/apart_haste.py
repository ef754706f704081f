"""How fast the shapes of separate bodies are, for the steps that they are moved by."""

from __future__ import annotations

from poise.formulations.haste import HASTE, SPHERE, pushes_on
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import norm

TURN, LIMB_TURN = 0.5, 0.1
"""Angles by which a body turns at most in a step that is not split, and one that hangs on another: what limbs turn is
what joints bend, and limits are exceeded by, to second order; rad."""


@kernel
def shape_haste(m, w, g, u, i, link, velocity):
    """Of a shape on a link with a velocity: the speed that no point of it exceeds; and its haste, in 1/s.

    Bodies go straight, as contacts foresee it, but for what they turn on the way: a point that turns by an angle leaves
    its line by half of the angle times the way. A shape goes its least extent at most, and turns by TURN: its points
    are off by a quarter of that extent. Trees, whose links follow their joints in arcs, take half the way (`haste`).
    """
    most_turn = LIMB_TURN if load(m.link_parent, link) >= 0 else TURN
    arm = load(w.R, link) @ load(g.position, i) + load(w.r, link)
    speed, spin = norm(motion_at(velocity, arm)), norm(velocity.w)
    most = speed + spin * load(g.reach, i)
    if load(g.kind, i) == SPHERE:  # which is nowhere else when it turns
        return most, speed * (HASTE / load(u.thin, i))
    return most, maximum(most * (HASTE / load(u.thin, i)), spin * (HASTE / most_turn))


@kernel
def find_haste(m, w, g, u, o):
    """The top speed of all shapes, and the greatest haste."""
    top = zero(load(o.top, 0))
    haste = top
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            most, own = shape_haste(m, w, g, u, i, link, load(w.velocity, link))
            top, haste = maximum(top, most), maximum(haste, own)
    store(o.haste, 0, haste)
    store(o.top, 0, top)


@kernel
def hurries(m, w, g, u, flow, o, dt):
    """As `haste.hurries`: whether impulses make velocities such that the step is too long for them."""
    if not pushes_on(m, flow, o, dt):
        return False
    haste = load(o.haste, 0)
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            _, own = shape_haste(m, w, g, u, i, link, load(flow.ahead, link))
            haste = maximum(haste, own)
    if not any_lane(haste * dt > HASTE):
        return False
    store(o.haste, 0, haste)
    return True
