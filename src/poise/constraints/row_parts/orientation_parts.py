"""Parts of orientation: axes, hinge angles, the whole rotation, twist and swing.

They depend on R_AᵀR_B. With Ω = ω_B − ω_A, a function whose gradient is m in A's axes, n = R_A m in the world's, has

    φ̇ = n · Ω,   φ̈ = n · Ω̇ + (ω_A × n) · Ω + ṁ · R_AᵀΩ,   a = (−n, 0),   b = (n, 0)       (1)

Angles are measured from a rest pose, R₀ = R_AᵀR_B there: the rotation is Q = R_AᵀR_BR₀ᵀ, in A's axes. Let q = (w, v)
be its quaternion, e a unit axis, s = e · v, p = v − s e. The twist about e and its gradient are

    θ = 2 atan2(s, w),   m = e + (w p×e + s p) / (w² + s²)                                  (2)

m is e where B rotates about the axis alone, as a hinge does, and exact in general. The swing is the shortest rotation
from e to Q e. As a vector across e, σ = (σ_y, σ_z) in a frame whose x axis is e, with σ⊥ = (−σ_z, σ_y) and
k = (1 − |σ| cot |σ|)/|σ|², it obeys

    σ̇ = Ω_yz − k σ⊥ (σ⊥ · Ω_yz) + σ⊥ Ω_x                                                    (3)

which is smooth except at |σ| = π, where e points backwards and the shortest swing is not unique.
"""

from __future__ import annotations

from typing import Any

from poise.constraints.row_parts.point_parts import CLOSE, TINY, Body, Part, perpendiculars, world
from poise.kernel.quat import exp_rate, log_rotation, quaternion
from poise.kernel.scalars import PI, atan2, horner, maximum, minimum, rint, select, sincos, sqrt, zero
from poise.kernel.spatial import Force
from poise.kernel.trace import formula, precision
from poise.kernel.vec import Vec3, column, cross, dot, identity3, transpose, transpose_times, zero3

_BLUNT = 1e-5
"""Lower bound of sines in denominators: near |σ| = π rows stay finite, but are no longer exact."""
_NARROW = 1e-4
"""Smallest half-axis of a swing limit; rad."""


@formula
def turn_row(a: Any, spin: Any, phi: Any, n: Any, bend: Any) -> Any:
    """Row of a function of relative orientation: value, gradient n in world axes, ṁ · R_AᵀΩ (eq. 1)."""
    none = zero3(phi)
    return Part(phi, dot(cross(a.w, n), spin) + bend, Force(-n, none), Force(n, none))


@formula
def perpendicular(a: Any, b: Any, u: Any, w: Any) -> Any:
    """φ = −u · w for axes u fixed in A and w fixed in B: universal joint (VON §4.2); rad near 0 for unit axes."""
    ua, ub = a.R @ u, b.R @ w
    spin = b.w - a.w
    # n follows both axes; eq. 1 includes the part that follows A, and the rest is u × ((ω_B − ω_A) × w)
    return turn_row(a, spin, -dot(ua, ub), cross(ua, ub), dot(cross(ua, cross(spin, ub)), spin))


@formula
def parallel(a: Any, b: Any, u: Any, w: Any) -> Any:
    """Two rows, (g · u×w, h · u×w) with g, h perpendicular to u in A: hinge (VON §4.3); rad near 0 for unit axes.

    The Jacobian is exact where VON's is that of aligned axes. Opposite axes fulfil it too.
    """
    g, h = perpendiculars(u)
    return perpendicular(a, b, h, w), perpendicular(a, b, -g, w)


def _turn(a: Any, b: Any, R0: Any) -> Any:
    """Quaternion (w ≥ 0) of the rotation from rest, relative angular velocity in world axes and in A's axes."""
    spin = b.w - a.w
    return quaternion(transpose(a.R) @ (b.R @ transpose(R0))), spin, transpose_times(a.R, spin)


@formula
def angle(a: Any, b: Any, e: Any, R0: Any, previous: Any) -> Any:
    """φ = the angle of B's rotation since rest about the unit axis e, fixed in A: hinge, twist of a ball; rad.

    Full turns are counted: of the angles that differ by 2π, φ is the one nearest to the previous angle. Eq. 2; on a
    hinge the motor of VON §5.3.1. Where the axis points backwards the twist is undefined: φ is arbitrary but finite.
    """
    q, spin, omega = _turn(a, b, R0)
    v = Vec3(q.x, q.y, q.z)
    s = dot(e, v)
    p = v - e * s
    theta = 2.0 * atan2(s, q.w)
    theta = theta + rint((previous - theta) * (0.5 / PI)) * (2.0 * PI)
    k = 1.0 / maximum(q.w * q.w + s * s, zero(s) + _BLUNT * _BLUNT)
    lean = (cross(p, e) * q.w + p * s) * k
    # 2 q̇ = (0, ω) q
    w_rate = -0.5 * dot(omega, v)
    v_rate = (omega * q.w + cross(omega, v)) * 0.5
    s_rate = dot(e, v_rate)
    p_rate = v_rate - e * s_rate
    k_rate = 2.0 * (q.w * w_rate + s * s_rate)
    lean_rate = cross(p, e) * w_rate + cross(p_rate, e) * q.w + p * s_rate + p_rate * s - lean * k_rate
    return turn_row(a, spin, theta, a.R @ (e + lean), dot(lean_rate, omega) * k)


# (1 − (θ/2) cot(θ/2))/θ² about 0, by powers of θ²: |B₂ₙ|/(2n)!
_BEND = [
    1 / 12,
    1 / 720,
    1 / 30240,
    1 / 1209600,
    1 / 47900160,
    691 / 1307674368000,
    1 / 74724249600,
    3617 / 10670622842880000,
    43867 / 5109094217170944000,
    174611 / 802857662698291200000,
]
_BEND_RATE = [k * c for k, c in enumerate(_BEND)][1:]
# up to these θ² the series is exact to rounding, and beyond them the differences lose few digits
_BEND_NEAR = {24: 4.0, 53: 0.5}


def _bend(t2: Any) -> Any:
    """κ = (1 − (θ/2) cot(θ/2))/θ² and dκ/dθ², as functions of θ², for θ < 2π."""
    near = t2 < _BEND_NEAR[precision(t2)]
    far2 = select(near, zero(t2) + 1.0, t2)
    half = 0.5 * sqrt(far2)
    s, c = sincos(half)
    s = maximum(s, zero(s) + _BLUNT)
    k = 1.0 / far2
    cot = c / s
    kappa = (1.0 - half * cot) * k
    # d(h cot h)/dh² = (cot h − h/sin² h)/(2 h), and dh²/dθ² = 1/4
    rate = -((cot - half / (s * s)) / (8.0 * half) + kappa) * k
    return select(near, horner(t2, _BEND), kappa), select(near, horner(t2, _BEND_RATE), rate)


@formula
def orientation(a: Any, b: Any, R0: Any) -> Any:
    """Three rows: the rotation vector φ of R_AᵀR_BR₀ᵀ, in A's axes: fixed joint, angular motor (VON §5.2); rad.

    φ̇ = Ω − ½ φ×Ω + κ φ×(φ×Ω), the inverse of the exponential's Jacobian. At half a turn φ jumps to −φ.
    """
    q, spin, omega = _turn(a, b, R0)
    phi = log_rotation(q)
    kappa, kappa_rate = _bend(dot(phi, phi))
    across = cross(phi, omega)
    twice = cross(phi, across)
    rate = omega - across * 0.5 + twice * kappa
    change = cross(rate, across) + cross(phi, cross(rate, omega))
    bend = cross(rate, omega) * -0.5 + twice * (2.0 * kappa_rate * dot(phi, rate)) + change * kappa
    axes = identity3(phi.x)
    rows = [a.R @ exp_rate(phi, column(axes, k)) for k in range(3)]
    return tuple(turn_row(a, spin, *row) for row in zip(phi.leaves(), rows, bend.leaves(), strict=True))


def _swing(a: Any, b: Any, F: Any, R0: Any) -> Any:
    """The frame, Ω in world axes and in the frame, swing vector (σ_y, σ_z), its length σ, sine and cosine."""
    frame = a.R @ F
    spin = b.w - a.w
    d = transpose_times(frame, b.R @ transpose_times(R0, column(F, 0)))
    rho2 = d.y * d.y + d.z * d.z
    none, one = rho2 < TINY, zero(rho2) + 1.0
    rho = sqrt(select(none, zero(rho2), rho2))
    sigma = atan2(rho, d.x)
    k = sigma / select(none, one, rho)
    back = d.x < 0.0
    # without a direction the swing is that of first order, or half a turn about y
    y = select(none, select(back, sigma, -d.z), -d.z * k)
    z = select(none, select(back, zero(rho), d.y), d.y * k)
    return frame, spin, transpose_times(frame, spin), y, z, sigma, rho, d.x


def _swing_gradient(y: Any, z: Any, gy: Any, gz: Any, k: Any) -> Any:
    """m, in the frame, of a function of the swing vector with the gradient (gy, gz); k as in eq. 3."""
    g_across = y * gz - z * gy
    return Vec3(g_across, gy + k * z * g_across, gz - k * y * g_across)


@formula
def swing_vector(R: Any, F: Any) -> Any:
    """σ_y and σ_z of a rotation R from rest: the rotation vector that swings the x axis of the frame F; rad."""
    still = world(R.xx)
    turned = Body(still.x, R, still.w, still.v)
    _, _, _, y, z, _, _, _ = _swing(still, turned, F, still.R)
    return y, z


@formula
def swing_gradient(F: Any, y: Any, z: Any, gy: Any, gz: Any) -> Any:
    """m of a function of the swing vector (y, z) with the gradient (gy, gz), in the axes in which F is given."""
    kappa, _ = _bend(4.0 * (y * y + z * z))
    return F @ _swing_gradient(y, z, gy, gz, 4.0 * kappa)


@formula
def swing(a: Any, b: Any, F: Any, R0: Any) -> Any:
    """φ = the swing angle of the x axis of the frame F, fixed in A, since rest, 0 to π; rad.

    J is of unit length; at 0 and π, where the swing has no direction, it is that about y. Limits: `swing_ellipse`.
    """
    frame, spin, omega, y, z, sigma, rho, x = _swing(a, b, F, R0)
    none = y * y + z * z < TINY
    k = 1.0 / select(none, zero(y) + 1.0, sqrt(y * y + z * z))
    ny, nz = select(none, zero(y) + 1.0, y * k), z * k
    around = ny * omega.z - nz * omega.y
    # σ̈ = n · Ω̇ + (Ω_x + cot σ around) around
    bend = (omega.x + x / maximum(rho, zero(rho) + CLOSE) * around) * around
    return turn_row(a, spin, sigma, frame @ Vec3(zero(y), ny, nz), bend)


@formula
def swing_ellipse(a: Any, b: Any, F: Any, R0: Any, y_plus: Any, y_minus: Any, z_plus: Any, z_minus: Any) -> Any:
    """φ ≥ 0 while the swing vector (σ_y, σ_z) is within an ellipse with its own half-axis in each of ±y, ±z; rad, > 0.

    φ = h (1 − (σ_y/h_y)² − (σ_z/h_z)²)/2, h the smallest half-axis: for a cone the remaining angle, to first order at
    the limit. Unlike that angle it is smooth at 0, where J is 0. J is exact except within 1e-5 rad of π, and finite
    there. Half-axes below 1e-4 rad are taken as 1e-4.
    """
    frame, spin, omega, y, z, _, _, _ = _swing(a, b, F, R0)
    least = zero(y) + _NARROW
    hy, hz = maximum(select(y > 0.0, y_plus, y_minus), least), maximum(select(z > 0.0, z_plus, z_minus), least)
    h = maximum(minimum(minimum(y_plus, y_minus), minimum(z_plus, z_minus)), least)
    ky, kz = h / (hy * hy), h / (hz * hz)
    phi = 0.5 * (h - ky * y * y - kz * z * z)
    gy, gz = -ky * y, -kz * z
    # (1 − σ cot σ)/σ² = 4 κ(2σ)
    kappa, kappa_rate = _bend(4.0 * (y * y + z * z))
    k, k_rate = 4.0 * kappa, 16.0 * kappa_rate
    across = y * omega.z - z * omega.y
    y_rate, z_rate = omega.y + z * (k * across - omega.x), omega.z - y * (k * across - omega.x)
    g_across = y * gz - z * gy
    m = _swing_gradient(y, z, gy, gz, k)
    across_rate = y_rate * omega.z - z_rate * omega.y
    turning = k_rate * 2.0 * (y * y_rate + z * z_rate) * across + k * across_rate
    # d/dt of (3) with Ω held, paired with the gradient, and the ellipse's own curvature
    bend = (y_rate * gz - z_rate * gy) * (omega.x - k * across) - g_across * turning
    bend = bend - ky * y_rate * y_rate - kz * z_rate * z_rate
    return turn_row(a, spin, phi, frame @ m, bend)


@formula
def swing_cone(a: Any, b: Any, F: Any, R0: Any, limit: Any) -> Any:
    """φ ≥ 0 while the swing is at most `limit` (rad, > 0): φ = (limit² − σ²)/(2 limit), smooth at 0; rad."""
    return swing_ellipse(a, b, F, R0, limit, limit, limit, limit)
