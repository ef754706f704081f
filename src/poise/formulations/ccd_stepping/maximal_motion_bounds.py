"""Motion bounds of the shapes of separate bodies."""

from __future__ import annotations

from poise.formulations.ccd_stepping.motion_bounds import HASTE, SPHERE, pushes_on
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import norm

TURN, LIMB_TURN = 0.5, 0.1
"""Maximum rotation of a body in a step that is not split, and of a body with a parent: the rotation of limbs
determines, to second order, how much their joints bend and exceed their limits; rad.
"""


@kernel
def shape_haste(model, work, shapes, surfaces, i, link, velocity):
    """Speed bound of the points of a shape on a moving link, and its motion bound in 1/s.

    Bodies move along straight lines, as contact prediction assumes, except for their rotation: a point that rotates by
    an angle leaves its line by half of the angle times its displacement. A shape moves by its least extent at most, and
    rotates by TURN, so that its points deviate by a quarter of that extent. Trees, whose links move along arcs, take
    half of that displacement (`motion_bounds`).
    """
    most_turn = LIMB_TURN if load(model.link_parent, link) >= 0 else TURN
    arm = load(work.R, link) @ load(shapes.position, i) + load(work.r, link)
    speed, spin = norm(motion_at(velocity, arm)), norm(velocity.w)
    most = speed + spin * load(shapes.reach, i)
    if load(shapes.kind, i) == SPHERE:  # rotation does not displace it
        return most, speed * (HASTE / load(surfaces.thin, i))
    return most, maximum(most * (HASTE / load(surfaces.thin, i)), spin * (HASTE / most_turn))


@kernel
def find_haste(model, data):
    """The greatest speed of all shapes, and their greatest motion bound."""
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
    """As `motion_bounds.hurries`: whether a step is too long for the velocities after the impulses."""
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
