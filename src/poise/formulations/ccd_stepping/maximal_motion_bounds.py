"""How fast the shapes of separate bodies are, for the steps that they are moved by."""

from __future__ import annotations

from poise.formulations.ccd_stepping.motion_bounds import HASTE, SPHERE, pushes_on
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import norm

TURN, LIMB_TURN = 0.5, 0.1
"""Angles by which a body turns at most in a step that is not split, and one that hangs on another: what limbs turn is
what joints bend, and limits are exceeded by, to second order; rad."""


@kernel
def shape_haste(model, work, shapes, surfaces, i, link, velocity):
    """Of a shape on a link with a velocity: the speed that no point of it exceeds; and its haste, in 1/s.

    Bodies go straight, as contacts foresee it, but for what they turn on the way: a point that turns by an angle leaves
    its line by half of the angle times the way. A shape goes its least extent at most, and turns by TURN: its points
    are off by a quarter of that extent. Trees, whose links follow their joints in arcs, take half the way
    (`motion_bounds`).
    """
    most_turn = LIMB_TURN if load(model.link_parent, link) >= 0 else TURN
    arm = load(work.R, link) @ load(shapes.position, i) + load(work.r, link)
    speed, spin = norm(motion_at(velocity, arm)), norm(velocity.w)
    most = speed + spin * load(shapes.reach, i)
    if load(shapes.kind, i) == SPHERE:  # which is nowhere else when it turns
        return most, speed * (HASTE / load(surfaces.thin, i))
    return most, maximum(most * (HASTE / load(surfaces.thin, i)), spin * (HASTE / most_turn))


@kernel
def find_haste(model, data):
    """The top speed of all shapes, and the greatest haste."""
    top = zero(load(data.stats.top, 0))
    haste = top
    for i in range(data.shapes.n_shapes):
        link = load(data.shapes.link, i)
        if link >= 0:
            most, own = shape_haste(
                model, data.work, data.shapes, data.surfaces, i, link, load(data.work.velocity, link)
            )
            top, haste = maximum(top, most), maximum(haste, own)
    store(data.stats.haste, 0, haste)
    store(data.stats.top, 0, top)


@kernel
def hurries(model, data, dt):
    """As `motion_bounds.hurries`: whether impulses make velocities such that the step is too long for them."""
    if not pushes_on(model, data.flow, data.stats, dt):
        return False
    haste = load(data.stats.haste, 0)
    for i in range(data.shapes.n_shapes):
        link = load(data.shapes.link, i)
        if link >= 0:
            _, own = shape_haste(model, data.work, data.shapes, data.surfaces, i, link, load(data.flow.ahead, link))
            haste = maximum(haste, own)
    if not any_lane(haste * dt > HASTE):
        return False
    store(data.stats.haste, 0, haste)
    return True
