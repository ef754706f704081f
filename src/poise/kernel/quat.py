"""Rotations: unit quaternions (w, x, y, z), rotation matrices, rotation vectors."""

from __future__ import annotations

from typing import Any

from poise.kernel.scalars import atan2, horner, maximum, select, sincos, sqrt, zero
from poise.kernel.trace import formula, precision
from poise.kernel.values import Value
from poise.kernel.vec import Mat3, Vec3, cross, dot, outer, skew


class Quat(Value):
    """A quaternion; a rotation has unit length."""

    fields = (("w", None), ("x", None), ("y", None), ("z", None))
    __slots__ = ("w", "x", "y", "z")
    w: Any
    x: Any
    y: Any
    z: Any

    def __matmul__(self, b: Any) -> Any:
        if not isinstance(b, Quat):
            return NotImplemented
        a = self
        return Quat(
            a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
            a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
        )


@formula
def conjugate(q: Any) -> Any:
    """The inverse rotation."""
    return Quat(q.w, -q.x, -q.y, -q.z)


@formula
def normalize(q: Any) -> Any:
    """The quaternion with unit length; the identity for zero.

    Squares underflow below 1e-150 (1e-18 in float32) and overflow above 1e150 (1e18).
    """
    n2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z
    none, one = n2 == 0.0, zero(n2) + 1.0
    k = 1.0 / sqrt(select(none, one, n2))
    return Quat(select(none, one, q.w * k), q.x * k, q.y * k, q.z * k)


@formula
def rotation(q: Any) -> Any:
    """Matrix of a unit quaternion."""
    x2, y2, z2 = q.x + q.x, q.y + q.y, q.z + q.z
    wx, wy, wz = q.w * x2, q.w * y2, q.w * z2
    xx, xy, xz, yy, yz, zz = q.x * x2, q.x * y2, q.x * z2, q.y * y2, q.y * z2, q.z * z2
    return Mat3(1.0 - (yy + zz), xy - wz, xz + wy, xy + wz, 1.0 - (xx + zz), yz - wx, xz - wy, yz + wx, 1.0 - (xx + yy))


@formula
def quaternion(m: Any) -> Any:
    """Unit quaternion (w ≥ 0) of a rotation matrix: of its four formulas, the one with the largest divisor."""
    w2 = 1.0 + m.xx + m.yy + m.zz
    x2 = 1.0 + m.xx - m.yy - m.zz
    y2 = 1.0 - m.xx + m.yy - m.zz
    z2 = 1.0 - m.xx - m.yy + m.zz
    best = maximum(maximum(w2, x2), maximum(y2, z2))
    by_w = Quat(w2, m.zy - m.yz, m.xz - m.zx, m.yx - m.xy)
    by_x = Quat(m.zy - m.yz, x2, m.yx + m.xy, m.xz + m.zx)
    by_y = Quat(m.xz - m.zx, m.yx + m.xy, y2, m.zy + m.yz)
    by_z = Quat(m.yx - m.xy, m.xz + m.zx, m.zy + m.yz, z2)
    q = select(best == w2, by_w, select(best == x2, by_x, select(best == y2, by_y, by_z)))
    return normalize(select(q.w < 0.0, -q, q))


@formula
def rotate(q: Any, v: Any) -> Any:
    """The vector v rotated by the unit quaternion q."""
    u = Vec3(q.x, q.y, q.z)
    t = cross(u, v) * 2.0
    return v + t * q.w + cross(u, t)


# series about 0, accurate to the last place for squared angles up to _NEAR
_NEAR = {24: 0.06, 53: 0.0025}


def _half_turn(t2: Any) -> Any:
    """sin(θ/2)/θ and cos(θ/2) as series over θ²."""
    k = horner(t2, [1 / 2, -1 / 48, 1 / 3840, -1 / 645120, 1 / 185794560])
    return k, horner(t2, [1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920])


@formula
def is_small(phi: Any) -> Any:
    """Whether `exp_small` is accurate to the last place for the rotation vector φ."""
    t2 = dot(phi, phi)
    return t2 < _NEAR[precision(t2)]


@formula
def exp_small(phi: Any) -> Any:
    """`exp_rotation` for small rotations, with the same bits."""
    k, w = _half_turn(dot(phi, phi))
    return Quat(w, phi.x * k, phi.y * k, phi.z * k)


@formula
def exp_rotation(phi: Any) -> Any:
    """Unit quaternion of the rotation vector φ (axis times angle; rad): (cos |φ|/2, φ sin(|φ|/2)/|φ|)."""
    t2 = dot(phi, phi)
    near = t2 < _NEAR[precision(t2)]
    t = sqrt(select(near, zero(t2) + 1.0, t2))
    s, c = sincos(t * 0.5)
    near_k, near_w = _half_turn(t2)
    k, w = select(near, near_k, s / t), select(near, near_w, c)
    return Quat(w, phi.x * k, phi.y * k, phi.z * k)


@formula
def log_rotation(q: Any) -> Any:
    """Rotation vector, of length 0 to π, of a quaternion of any length; rad."""
    s = select(q.w < 0.0, -q, q)
    u = Vec3(s.x, s.y, s.z)
    n2 = dot(u, u)
    none, one = n2 == 0.0, zero(n2) + 1.0
    n = sqrt(select(none, one, n2))
    # for the smallest rotations n² underflows; 2 u/w is then exact
    k = select(none, 2.0 / select(s.w == 0.0, one, s.w), 2.0 * atan2(n, s.w) / n)
    return u * k


@formula
def axis_angle(axis: Any, s: Any, c: Any) -> Any:
    """Rotation matrix about a unit axis, from the sine and cosine of the angle."""
    return full_rotation(axis, s, 1.0 - c)


def full_rotation(axis: Any, s: Any, t: Any) -> Any:
    """1 + s [a]× + t [a]×², with [a]×² = a aᵀ − 1 for a unit axis."""
    turn, twice = skew(axis) * s, outer(axis * t, axis)
    c = 1.0 - t
    total = turn + twice
    return Mat3(total.xx + c, total.xy, total.xz, total.yx, total.yy + c, total.yz, total.zx, total.zy, total.zz + c)


@formula
def exp_rate(phi: Any, omega: Any) -> Any:
    """φ̇ of R = R₀ exp φ with angular velocity ω in body axes: ω + φ×ω/2 + k φ×(φ×ω), k = (1 − (θ/2) cot(θ/2))/θ².

    This is the inverse of the right Jacobian of the exponential map; valid for |φ| < 2π.
    """
    t2 = dot(phi, phi)
    near = t2 < 0.06
    t = sqrt(select(near, zero(t2) + 1.0, t2))
    s, c = sincos(t * 0.5)
    far_k = (1.0 - t * 0.5 * c / s) / select(near, zero(t2) + 1.0, t2)
    series = [1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600]
    k = select(near, horner(t2, series), far_k)
    turn = cross(phi, omega)
    return omega + turn * 0.5 + cross(phi, turn) * k
