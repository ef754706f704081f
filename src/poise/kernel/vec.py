"""Vectors and matrices of three."""

from __future__ import annotations

from typing import Any

from poise.kernel.scalars import sqrt, zero
from poise.kernel.trace import formula
from poise.kernel.values import Value


class Vec3(Value):
    """x, y, z."""

    fields = (("x", None), ("y", None), ("z", None))
    __slots__ = ("x", "y", "z")
    x: Any
    y: Any
    z: Any


class Mat3(Value):
    """Any 3 × 3 matrix, by rows."""

    fields = tuple((name, None) for name in ("xx", "xy", "xz", "yx", "yy", "yz", "zx", "zy", "zz"))
    __slots__ = tuple(name for name, _ in fields)

    def __matmul__(self, other: Any) -> Any:
        m = self
        if isinstance(other, Vec3):
            v = other
            return Vec3(
                m.xx * v.x + m.xy * v.y + m.xz * v.z,
                m.yx * v.x + m.yy * v.y + m.yz * v.z,
                m.zx * v.x + m.zy * v.y + m.zz * v.z,
            )
        if isinstance(other, Sym3):
            other = full(other)
        if isinstance(other, Mat3):
            rows = (Vec3(m.xx, m.xy, m.xz), Vec3(m.yx, m.yy, m.yz), Vec3(m.zx, m.zy, m.zz))
            columns = (column(other, 0), column(other, 1), column(other, 2))
            return Mat3(*(dot(r, c) for r in rows for c in columns))
        return NotImplemented


class Sym3(Value):
    """A symmetric 3 × 3 matrix."""

    fields = tuple((name, None) for name in ("xx", "yy", "zz", "xy", "xz", "yz"))
    __slots__ = tuple(name for name, _ in fields)

    def __matmul__(self, v: Any) -> Any:
        if not isinstance(v, Vec3):
            return NotImplemented
        return Vec3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )


def column(m: Any, k: int) -> Vec3:
    """Column k (a constant) of a matrix."""
    return Vec3(*((m.xx, m.yx, m.zx), (m.xy, m.yy, m.zy), (m.xz, m.yz, m.zz))[k])


@formula
def column0(m: Any) -> Any:
    """First column."""
    return column(m, 0)


@formula
def column1(m: Any) -> Any:
    """Second column."""
    return column(m, 1)


@formula
def column2(m: Any) -> Any:
    """Third column."""
    return column(m, 2)


@formula
def dot(a: Any, b: Any) -> Any:
    """A · b."""
    return a.x * b.x + a.y * b.y + a.z * b.z


@formula
def cross(a: Any, b: Any) -> Any:
    """A × b."""
    return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


@formula
def norm(a: Any) -> Any:
    """Length of a vector. Squares may underflow below 1e-160 (1e-19 in float32)."""
    return sqrt(dot(a, a))


@formula
def transpose(m: Any) -> Any:
    """mᵀ."""
    return Mat3(m.xx, m.yx, m.zx, m.xy, m.yy, m.zy, m.xz, m.yz, m.zz)


@formula
def transpose_times(m: Any, v: Any) -> Any:
    """mᵀ v, without forming mᵀ."""
    return Vec3(dot(column(m, 0), v), dot(column(m, 1), v), dot(column(m, 2), v))


@formula
def outer(a: Any, b: Any) -> Any:
    """A bᵀ."""
    return Mat3(*(x * y for x in a.leaves() for y in b.leaves()))


@formula
def square(a: Any) -> Any:
    """A aᵀ, symmetric."""
    return Sym3(a.x * a.x, a.y * a.y, a.z * a.z, a.x * a.y, a.x * a.z, a.y * a.z)


@formula
def skew(r: Any) -> Any:
    """[r]×, so that skew(r) @ v = r × v."""
    none = zero(r.x)
    return Mat3(none, -r.z, r.y, r.z, none, -r.x, -r.y, r.x, none)


@formula
def full(s: Any) -> Any:
    """A symmetric matrix as a full one."""
    return Mat3(s.xx, s.xy, s.xz, s.xy, s.yy, s.yz, s.xz, s.yz, s.zz)


@formula
def symmetric(m: Any) -> Any:
    """A full symmetric matrix as `Sym3`, from its upper half."""
    return Sym3(m.xx, m.yy, m.zz, m.xy, m.xz, m.yz)


@formula
def rotate_sym(R: Any, s: Any) -> Any:
    """R s Rᵀ."""
    T = R @ full(s)
    rows = [Vec3(R.xx, R.xy, R.xz), Vec3(R.yx, R.yy, R.yz), Vec3(R.zx, R.zy, R.zz)]
    half = [Vec3(T.xx, T.xy, T.xz), Vec3(T.yx, T.yy, T.yz), Vec3(T.zx, T.zy, T.zz)]
    return Sym3(*(dot(half[i], rows[j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))


@formula
def point_inertia(m: Any, r: Any) -> Any:
    """Inertia about the origin of a mass m at r: m (r·r 1 − r rᵀ)."""
    x, y, z = r.x * m, r.y * m, r.z * m
    xx, yy, zz = x * r.x, y * r.y, z * r.z
    return Sym3(yy + zz, xx + zz, xx + yy, -(x * r.y), -(x * r.z), -(y * r.z))


@formula
def determinant(m: Any) -> Any:
    """Determinant of a matrix."""
    return dot(column(m, 0), cross(column(m, 1), column(m, 2)))


@formula
def adjugate_times(m: Any, b: Any) -> Any:
    """The x of m x = b times the determinant of m (Cramer's rule)."""
    x, y, z = column(m, 0), column(m, 1), column(m, 2)
    return Vec3(dot(b, cross(y, z)), dot(b, cross(z, x)), dot(b, cross(x, y)))


@formula
def identity3(like: Any) -> Any:
    """The unit matrix."""
    o = zero(like)
    i = o + 1.0
    return Mat3(i, o, o, o, i, o, o, o, i)


@formula
def zero3(like: Any) -> Any:
    """The zero vector."""
    o = zero(like)
    return Vec3(o, o, o)
