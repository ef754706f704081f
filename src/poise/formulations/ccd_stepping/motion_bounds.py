"""Motion bounds of shapes: their greatest speeds, and their motion relative to their size."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, select, sqrt, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import Vec3, adjugate_times, cross, determinant, dot, full, norm, transpose_times
from poise.model.shape_arrays import Solid

SPHERE, CAPSULE = int(Solid.SPHERE), int(Solid.CAPSULE)
TURN = 0.05
"""Maximum angle by which velocity products may change the rotation of links in a step that is not split, to the power
½; rad.
"""
CHANGE = 0.02
"""Change of the displacement of a coordinate by impulses above which the motion bound is evaluated again; rad or m."""
SINGULAR = 1e-12
"""Determinant of an inertia, relative to the cube of its trace, that counts as 0."""
HASTE = 0.5
"""Share of its least extent that a shape may move in a step that is not split (see `ccd_substeps`)."""


@kernel
def shape_haste(work, shapes, surfaces, i, link, velocity):
    """Speed bound of the points of a shape, and its motion bound: how often it moves by its least extent in a second.
    The motion bound of spheres and capsules follows from their centres and ends, since rotation about these does not
    displace them.
    """
    R, extent = load(work.R, link), load(surfaces.thin, i)
    speed = motion_at(velocity, R @ load(shapes.position, i) + load(work.r, link))
    far, spin = norm(speed), norm(velocity.w)
    if load(shapes.kind, i) == CAPSULE:
        size, none = load(shapes.size, i), zero(load(shapes.reach, i))
        turn = cross(velocity.w, R @ (load(shapes.rotation, i) @ Vec3(none, none, size.y)))
        far = maximum(norm(speed + turn), norm(speed - turn))
        return far + spin * size.x, far * (1.0 / extent)
    most = far + spin * load(shapes.reach, i)
    return most, (far if load(shapes.kind, i) == SPHERE else most) * (1.0 / extent)


@kernel
def spin_rate(model, work, i):
    """Square of the angular acceleration by velocity products: of a link with a parent, that of its joint's axes; of a
    tree's first link, that of Euler's equation for the link alone. rad²/s⁴.
    """
    if load(model.link_parent, i) >= 0:
        turn = load(work.bias, i).w
        return dot(turn, turn)
    I, spin = load(model.link_inertia, i), transpose_times(load(work.R, i), load(work.velocity, i).w)
    size, det = I.xx + I.yy + I.zz, determinant(full(I))
    sound = det > SINGULAR * size * size * size
    turn = adjugate_times(full(I), cross(I @ spin, spin)) * (1.0 / select(sound, det, zero(det) + 1.0))
    return select(sound, dot(turn, turn), zero(det))


@kernel
def find_haste(model, data):
    """The greatest speed of all shapes, their greatest motion bound, and the one of velocity products."""
    top = zero(load(data.stats.top, 0))
    haste = top
    for i in range(data.shapes.n_shapes):
        link = load(data.shapes.link, i)
        if link >= 0:
            most, own = shape_haste(data.work, data.shapes, data.surfaces, i, link, load(data.work.velocity, link))
            top, haste = maximum(top, most), maximum(haste, own)
    rate = zero(top)
    for i in range(model.n_links):
        rate = maximum(rate, spin_rate(model, data.work, i))
    store(data.stats.whirl, 0, whirl_of(rate))
    store(data.stats.haste, 0, haste)
    store(data.stats.top, 0, top)


@kernel
def whirl_of(rate):
    """Motion bound of an angular acceleration by velocity products, from its square."""
    return sqrt(sqrt(rate)) * (HASTE / TURN)


@kernel
def is_hasty(stats, dt):
    """Whether shapes are too fast for a step; if so, `stats.haste` includes the velocity products."""
    if not any_lane(load(stats.haste, 0) * dt > HASTE):
        return False
    store(stats.haste, 0, maximum(load(stats.haste, 0), load(stats.whirl, 0)))
    return True


@kernel
def whirls(model, work, stats, scratch, dt):
    """Whether a step is too long for the velocity products of trees that are not smooth (see `smooth_motion`); if so,
    `stats.haste` includes them.
    """
    if not any_lane(load(stats.whirl, 0) * dt > HASTE):
        return False
    rate = zero(load(stats.whirl, 0))
    for i in range(model.n_links):
        smooth = load(scratch.smooth, load(model.link_root, i)) > 0.5
        rate = maximum(rate, select(smooth, zero(rate), spin_rate(model, work, i)))
    if not any_lane(whirl_of(rate) * dt > HASTE):
        return False
    store(stats.haste, 0, maximum(load(stats.haste, 0), whirl_of(rate)))
    return True


@kernel
def pushes_on(model, flow, stats, dt):
    """Whether impulses, whose effect is in `flow`, change velocities enough to evaluate the motion bound again."""
    most = zero(load(stats.haste, 0))
    for d in range(model.nv):
        most = maximum(most, fabs(load(flow.a, d)))
    return any_lane(most * dt > CHANGE)


@kernel
def hurries(model, data, dt):
    """Whether a step is too long for the velocities after the impulses; if so, `data.stats.haste` is their motion
    bound. `data.flow` has the effect of the impulses, and the motions of links with it.
    """
    if not pushes_on(model, data.flow, data.stats, dt):
        return False
    haste = load(data.stats.haste, 0)
    for i in range(data.shapes.n_shapes):
        link = load(data.shapes.link, i)
        if link >= 0:
            _, own = shape_haste(data.work, data.shapes, data.surfaces, i, link, load(data.flow.ahead, link))
            haste = maximum(haste, own)
    rate = zero(haste)
    for i in range(model.n_links):
        parent = load(model.link_parent, i)
        if parent >= 0:
            above = load(data.flow.ahead, parent).w
            turn = cross(above, load(data.flow.ahead, i).w - above)
            rate = maximum(rate, dot(turn, turn))
    haste = maximum(haste, whirl_of(rate))
    if not any_lane(haste * dt > HASTE):
        return False
    store(data.stats.haste, 0, haste)
    return True
