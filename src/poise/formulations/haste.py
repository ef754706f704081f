"""How fast shapes are: their speeds, and how far they move for their size."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, select, sqrt, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import Vec3, adjugate_times, cross, determinant, dot, full, norm, transpose_times
from poise.model.solids import Solid

SPHERE, CAPSULE = int(Solid.SPHERE), int(Solid.CAPSULE)
TURN = 0.05
"""Angle by which velocity products may change what links turn by in a step that is not split, to the power ½; rad."""
CHANGE = 0.02
"""What impulses may change of the way of a coordinate in a step without a look at its haste; rad or m."""
SINGULAR = 1e-12
"""Determinant of an inertia, over the cube of its trace, that counts as 0."""
HASTE = 0.5
"""Share of its least extent that a shape may move in a step that is not split (see `fast`)."""


@kernel
def shape_haste(w, g, u, i, link, velocity):
    """Of a shape on a link with a velocity: the speed that no point of it exceeds; and how often it moves by its least
    extent in a second. Spheres and capsules are as far as their centres and ends, for they are nowhere else when they
    turn about these.
    """
    R, extent = load(w.R, link), load(u.thin, i)
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
def spin_rate(m, w, i):
    """Square of the angular acceleration that velocity products give a link: of its joints' axes, which turn with its
    parent; of a tree's first link, that of Euler's equation for the link alone. rad²/s⁴.
    """
    if load(m.link_parent, i) >= 0:
        turn = load(w.bias, i).w
        return dot(turn, turn)
    I, spin = load(m.link_inertia, i), transpose_times(load(w.R, i), load(w.velocity, i).w)
    size, det = I.xx + I.yy + I.zz, determinant(full(I))
    sound = det > SINGULAR * size * size * size
    turn = adjugate_times(full(I), cross(I @ spin, spin)) * (1.0 / select(sound, det, zero(det) + 1.0))
    return select(sound, dot(turn, turn), zero(det))


@kernel
def find_haste(m, w, g, u, o):
    """The top speed of all shapes, their greatest haste, and the haste of what velocity products change."""
    top = zero(load(o.top, 0))
    haste = top
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            most, own = shape_haste(w, g, u, i, link, load(w.velocity, link))
            top, haste = maximum(top, most), maximum(haste, own)
    rate = zero(top)
    for i in range(m.n_links):
        rate = maximum(rate, spin_rate(m, w, i))
    store(o.whirl, 0, whirl_of(rate))
    store(o.haste, 0, haste)
    store(o.top, 0, top)


@kernel
def whirl_of(rate):
    """Haste of an angular acceleration, of which the square is given, by velocity products."""
    return sqrt(sqrt(rate)) * (HASTE / TURN)


@kernel
def is_hasty(o, dt):
    """Whether shapes are too fast for a step; then velocity products count as well in `o.haste`."""
    if not any_lane(load(o.haste, 0) * dt > HASTE):
        return False
    store(o.haste, 0, maximum(load(o.haste, 0), load(o.whirl, 0)))
    return True


@kernel
def whirls(m, w, o, dt):
    """Whether a step is too long for the velocity products of trees that are not smooth (see `smooth`), then with their
    haste in `o.haste`.
    """
    if not any_lane(load(o.whirl, 0) * dt > HASTE):
        return False
    rate = zero(load(o.whirl, 0))
    for i in range(m.n_links):
        smooth = load(o.smooth, load(m.link_root, i)) > 0.5
        rate = maximum(rate, select(smooth, zero(rate), spin_rate(m, w, i)))
    if not any_lane(whirl_of(rate) * dt > HASTE):
        return False
    store(o.haste, 0, maximum(load(o.haste, 0), whirl_of(rate)))
    return True


@kernel
def pushes_on(m, flow, o, dt):
    """Whether impulses change so much that the haste is to be looked at again; `flow` has what they add."""
    most = zero(load(o.haste, 0))
    for d in range(m.nv):
        most = maximum(most, fabs(load(flow.a, d)))
    return any_lane(most * dt > CHANGE)


@kernel
def hurries(m, w, g, u, flow, o, dt):
    """Whether impulses make velocities such that the step is too long for them; then `o.haste` is that of these. `flow`
    has what impulses add, and the motions of links with it.
    """
    if not pushes_on(m, flow, o, dt):
        return False
    haste = load(o.haste, 0)
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            _, own = shape_haste(w, g, u, i, link, load(flow.ahead, link))
            haste = maximum(haste, own)
    rate = zero(haste)
    for i in range(m.n_links):
        parent = load(m.link_parent, i)
        if parent >= 0:
            above = load(flow.ahead, parent).w
            turn = cross(above, load(flow.ahead, i).w - above)
            rate = maximum(rate, dot(turn, turn))
    haste = maximum(haste, whirl_of(rate))
    if not any_lane(haste * dt > HASTE):
        return False
    store(o.haste, 0, haste)
    return True
