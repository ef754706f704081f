"""Poses of shapes, and their axis-aligned bounding boxes (AABBs), large enough that no contact is missed."""

from __future__ import annotations

from typing import Any

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, select, sqrt
from poise.kernel.trace import formula, precision
from poise.kernel.vec import Mat3, Vec3, column2, dot
from poise.model.shape_arrays import Solid

PLANE, SPHERE, CAPSULE = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE)
CYLINDER, ELLIPSOID = int(Solid.CYLINDER), int(Solid.ELLIPSOID)


@formula
def absolute(v: Any) -> Any:
    """|x|, |y|, |z|."""
    return v.map(fabs)


@formula
def ball_extent(R: Any, r: Any) -> Any:
    """Half extents of the AABB of a sphere."""
    r = R.xx * 0.0 + r
    return Vec3(r, r, r)


@formula
def capsule_extent(R: Any, size: Any) -> Any:
    """Half extents of the AABB of a capsule."""
    axis = absolute(column2(R)) * size.y
    return Vec3(axis.x + size.x, axis.y + size.x, axis.z + size.x)


@formula
def disc(x: Any, y: Any) -> Any:
    """Half extent of a disc of radius 1 along an axis with these components in its plane."""
    return sqrt(x * x + y * y)


@formula
def cylinder_extent(R: Any, size: Any) -> Any:
    """Half extents of the AABB of a cylinder."""
    axis, r = absolute(column2(R)) * size.y, size.x
    return Vec3(axis.x + r * disc(R.xx, R.xy), axis.y + r * disc(R.yx, R.yy), axis.z + r * disc(R.zx, R.zy))


@formula
def ellipsoid_extent(R: Any, size: Any) -> Any:
    """Half extents of the AABB of an ellipsoid."""
    h = Vec3(size.x * size.x, size.y * size.y, size.z * size.z)
    T = R.map(lambda x: x * x) @ h
    return T.map(sqrt)


@formula
def box_extent(R: Any, bound: Any) -> Any:
    """Half extents of the AABB of a rotated box."""
    return Mat3(*(fabs(x) for x in R.leaves())) @ bound


@kernel
def extent(g, i, kind, R):
    """Half extents of the AABB of shape i."""
    if kind == CAPSULE:
        return capsule_extent(R, load(g.size, i))
    if kind == SPHERE:
        return ball_extent(R, load(g.size, i).x)
    if kind == CYLINDER:
        return cylinder_extent(R, load(g.size, i))
    if kind == ELLIPSOID:
        return ellipsoid_extent(R, load(g.size, i))
    return box_extent(R, load(g.bound, i))


@formula
def grown(e: Any, p: Any, margin: Any) -> Any:
    """Half extents with a margin and the rounding error of the sides: u (|p| + |e|), u = 2⁻⁵³ or 2⁻²⁴."""
    unit = 2.0 ** -precision(p.x)
    return e.map(lambda half, place: half * (1.0 + 16.0 * unit) + fabs(place) * (4.0 * unit) + margin, p)


@kernel
def put_box(b, i, low, high):
    """Write the box of rank i."""
    store(b.low_x, i, low.x)
    store(b.low_y, i, low.y)
    store(b.low_z, i, low.z)
    store(b.high_x, i, high.x)
    store(b.high_y, i, high.y)
    store(b.high_z, i, high.z)


@kernel
def box_low(b, i):
    """Lower corner of box i."""
    return Vec3(load(b.low_x, i), load(b.low_y, i), load(b.low_z, i))


@kernel
def box_high(b, i):
    """Upper corner of box i."""
    return Vec3(load(b.high_x, i), load(b.high_y, i), load(b.high_z, i))


@formula
def overlap(low_a: Any, high_a: Any, low_b: Any, high_b: Any) -> Any:
    """Whether two boxes overlap; a box with NaN overlaps none."""
    x = (low_a.x <= high_b.x) & (low_b.x <= high_a.x)
    y = (low_a.y <= high_b.y) & (low_b.y <= high_a.y)
    z = (low_a.z <= high_b.z) & (low_b.z <= high_a.z)
    return x & y & z


@formula
def reaches(n: Any, p: Any, margin: Any, low: Any, high: Any) -> Any:
    """Whether a box reaches the half space below a plane through p with normal n, or the margin above it."""
    corner = n.map(lambda way, l, h: select(way > 0.0, l, h), low, high)
    size = dot(absolute(n), absolute(corner) + absolute(p))
    return dot(n, corner) - dot(n, p) <= size * (16.0 * 2.0 ** -precision(size)) + margin


@kernel
def place_shapes(w, g, x):
    """Poses of all moving shapes from the poses of their links."""
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            R = load(w.R, link)
            origin = load(w.origin, load(g.root, i))
            store(x.position, i, origin + load(w.r, link) + R @ load(g.position, i))
            store(x.rotation, i, R @ load(g.rotation, i))


@kernel
def bound_shapes(g, x, s, b, slack):
    """Boxes of all bounded shapes, with margins and half of the slack."""
    for i in range(s.n_planes, s.n_shapes):
        shape = load(s.shape, i)
        p = load(x.position, shape)
        half = extent(g, shape, load(g.kind, shape), load(x.rotation, shape))
        half = grown(half, p, load(g.margin, shape) + 0.5 * slack)
        put_box(b, i, p - half, p + half)
