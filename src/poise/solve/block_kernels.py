"""Solution of one block with the other blocks fixed: kernels for laws, balls and friction cones.

The other blocks enter through the line (the plane …) w = A λ + q, A being the block's own part of the matrix.
"""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, minimum, select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.values import Value
from poise.kernel.vec import Sym3, Vec3, dot
from poise.solve.cones import STEEP

UPRIGHT = -1.0
"""Marks an end ray with constant λ: slopes are given as compliances −dw/dλ ≥ 0, and this one has none."""
ROOTS = 60
"""Most steps of a root search; Newton's method takes about four."""
ROUGH = 1e-9
"""Relative change of a slip at which a search for it ends."""


@formula
def clip(x, lo, hi):
    """The number clamped to two bounds."""
    return maximum(minimum(x, hi), lo)


@formula
def unit(x):
    """Relative error of a few roundings, in the type of x."""
    return constant(2.0 ** (2 - precision(x)), x)


@formula
def least(x):
    """A small divisor in place of zero, in the type of x."""
    return constant(1e-30 if precision(x) == 24 else 1e-280, x)


@formula
def handy(x):
    """Whether a square has neither underflow nor overflow."""
    small = constant(1e-30 if precision(x) == 24 else 1e-250, x)
    return (x > small) & (x < 1.0 / small)


@kernel
def length(x, y):
    """√(x² + y²), without intermediate overflow."""
    square = x * x + y * y
    fine = handy(square)
    if all_lanes(fine):
        return sqrt(square)
    big = maximum(fabs(x), fabs(y))
    safe = maximum(big, least(big))
    u, v = x / safe, y / safe
    return select(fine, sqrt(square), big * sqrt(u * u + v * v))


@kernel
def length3(v):
    """Length of a vector, without intermediate overflow."""
    return length(length(v.x, v.y), v.z)


# ---- laws ------------------------------------------------------------------------------------------------------------


@formula
def on_ray(a, r, lam, w, compliance):
    """λ where the line w = a λ + r meets the ray from (λ, w) with slope −compliance."""
    return select(compliance < 0.0, lam, (w + compliance * lam - r) / (a + maximum(compliance, zero(a))))


@formula
def on_piece(a, r, lam0, w0, lam1, w1):
    """λ where the line w = a λ + r meets the piece between two vertices of a law."""
    wide = lam1 - lam0
    upright = wide <= 0.0
    slope = (w1 - w0) / select(upright, zero(wide) + 1.0, wide)
    return select(upright, lam0, clip((w0 - slope * lam0 - r) / (a - slope), lam0, lam1))


@kernel
def solve_law(p, k, a, r):
    """λ at which the line w = a λ + r, a > 0, meets the graph of block k (`Law.solve`, for any number of lanes)."""
    first = load(p.law_start, k)
    last = load(p.law_start, k + 1) - 1
    out = on_ray(a, r, load(p.law_lam, last), load(p.law_w, last), load(p.law_right, k))
    for n in range(last - first):  # from the right, so that the leftmost vertex below the line decides
        i = last - n
        lam, w = load(p.law_lam, i), load(p.law_w, i)
        piece = on_piece(a, r, load(p.law_lam, i - 1), load(p.law_w, i - 1), lam, w)
        out = select(a * lam + r >= w, piece, out)
    lam, w = load(p.law_lam, first), load(p.law_w, first)
    return select(a * lam + r >= w, on_ray(a, r, lam, w, load(p.law_left, k)), out)


# ---- balls -----------------------------------------------------------------------------------------------------------


@formula
def solve_sym3(a, b):
    """A⁻¹ b, A positive definite: by elimination, x first."""
    lxy, lxz = a.xy / a.xx, a.xz / a.xx
    dyy, dyz = a.yy - lxy * a.xy, a.yz - lxy * a.xz
    lyz = dyz / dyy
    dzz = a.zz - lxz * a.xz - lyz * dyz
    y = b.y - lxy * b.x
    z = (b.z - lxz * b.x - lyz * y) / dzz
    y = (y - dyz * z) / dyy
    return Vec3((b.x - a.xy * y - a.xz * z) / a.xx, y, z)


@formula
def add_diagonal(a, alpha):
    """A + α."""
    return Sym3(a.xx + alpha, a.yy + alpha, a.zz + alpha, a.xy, a.xz, a.yz)


@kernel
def in_ball(point, radius):
    """The nearest point of a ball about zero."""
    size = length3(point)
    return point * select(size > radius, radius / maximum(size, least(size)), zero(size) + 1.0)


@kernel
def solve_ball(a, q, radius):
    """The λ of length ≤ radius for which A λ + q is zero, or opposite to λ: (A + α) λ = −q, α ≥ 0.

    Newton's method on 1/radius − 1/|λ(α)|, from α = 0 upwards (Moré and Sorensen 1983, the trust-region subproblem).
    """
    alpha = zero(radius)
    lam = solve_sym3(a, -q)
    size = length3(lam)
    searching = (size > radius) & (radius > 0.0)
    for _ in range(ROOTS):
        if not any_lane(searching):
            break
        turned = solve_sym3(add_diagonal(a, alpha), lam)
        step = size * (size / maximum(dot(lam, turned), least(size))) * ((size - radius) / radius)
        alpha = select(searching, alpha + maximum(step, zero(step)), alpha)
        lam = select(searching, solve_sym3(add_diagonal(a, alpha), -q), lam)
        size = length3(lam)
        searching = searching & (size > radius * (1.0 + unit(size)))
    return in_ball(lam, radius)


# ---- friction cones --------------------------------------------------------------------------------------------------


@formula
def dilation(mu):
    """Factor of |w_t| that is added to w_n in the natural map of a cone: μ (De Saxcé's correction), 0 if steep."""
    return select(mu > STEEP, zero(mu), mu)


@kernel
def cone_region(point, slide, mu):
    """Whether a point with the tangent length `slide` is within the cone |(y, z)| ≤ μ x; whether it projects to 0."""
    within = (slide <= mu * point.x) & (point.x >= 0.0)
    below = select(mu > STEEP, zero(slide), mu * slide) <= -point.x
    return within, below


@kernel
def in_cone(point, mu):
    """A projection onto the cone |(y, z)| ≤ μ x: the nearest point; of a steep one x ≥ 0 first, then the tangents.

    The nearest point of a steep cone hides a missing normal force in a tangent: at −w it is only |w_n|/μ from 0,
    however fast a body falls. With x first (Alart and Curnier 1991), the residual does not depend on how large μ is.
    """
    n, slide = point.x, length(point.y, point.z)
    inside, below = cone_region(point, slide, mu)
    steep = mu > STEEP
    share = select(below, zero(n), select(steep, n, (n + mu * slide) / (1.0 + mu * mu)))
    turn = mu * share / maximum(slide, least(slide))
    return select(inside, point, Vec3(share, point.y * turn, point.z * turn))


class Contact(Value):
    """A contact that slides, w_n = 0: λ_n = n − g · λ_t, and w_t = S λ_t + p."""

    fields = tuple((name, None) for name in ("s11", "s12", "s22", "p1", "p2", "g1", "g2", "n"))
    __slots__ = tuple(name for name, _ in fields)


@formula
def without_normal(a, q):
    """The contact after its normal row is eliminated."""
    g1, g2, n = a.xy / a.xx, a.xz / a.xx, -q.x / a.xx
    s11, s12, s22 = a.yy - g1 * a.xy, a.yz - g1 * a.xz, a.zz - g2 * a.xz
    return Contact(s11, s12, s22, q.y - g1 * q.x, q.z - g2 * q.x, g1, g2, n)


@formula
def slip(c, alpha):
    """λ at which the contact slides against its friction, w_t = −α λ_t: (S + α) λ_t = −p."""
    d11, d22 = c.s11 + alpha, c.s22 + alpha
    inverse = 1.0 / (d11 * d22 - c.s12 * c.s12)
    x, y = (c.s12 * c.p2 - d22 * c.p1) * inverse, (c.s12 * c.p1 - d11 * c.p2) * inverse
    return Vec3(c.n - c.g1 * x - c.g2 * y, x, y)


@kernel
def excess(c, alpha, mu):
    """Excess of friction at a slip of α, and its derivative by α: (mean S + α) (|λ_t| − μ λ_n).

    The factor makes the function linear where S is isotropic and g is zero.
    """
    lam = slip(c, alpha)
    d11, d22 = c.s11 + alpha, c.s22 + alpha
    inverse = 1.0 / (d11 * d22 - c.s12 * c.s12)
    u, v = (d22 * lam.y - c.s12 * lam.z) * inverse, (d11 * lam.z - c.s12 * lam.y) * inverse  # −dλ_t/dα
    size = length(lam.y, lam.z)
    f = size - mu * lam.x
    slope = -(lam.y * u + lam.z * v) / maximum(size, least(size)) - mu * (c.g1 * u + c.g2 * v)
    weight = 0.5 * (c.s11 + c.s22) + alpha
    return weight * f, f + weight * slope


@kernel
def solve_cone(a, q, mu, start):
    """Coulomb's law for one contact: λ in the cone, w = A λ + q, normal first; and the slip α, for the next visit.

    Separation (λ = 0, w_n ≥ 0), sticking (w = 0, λ in the cone), or sliding: w_n = 0, w_t = −α λ_t with |λ_t| = μ λ_n.
    Sliding is one equation for α. Between α = 0, where friction is too strong, and an α at which it is certainly too
    weak there is a root, which safeguarded Newton steps find. They start at `start`, the slip of the last visit, and
    end when a step is small: the error is the square of that, and the next visit continues.
    """
    c = without_normal(a, q)
    alpha, low = zero(mu), zero(mu)
    lam = slip(c, alpha)
    sliding = (length(lam.y, lam.z) > mu * lam.x) & (mu > 0.0)
    searching = sliding & (c.n > 0.0)
    if any_lane(searching):
        weight = 0.5 * (c.s11 + c.s22)
        # |λ_t| ≤ |p| / (least S + α), and λ_n ≥ n − |g| |λ_t|
        high = length(c.p1, c.p2) * (1.0 + mu * length(c.g1, c.g2)) / maximum(mu * c.n, least(mu))
        alpha = select(searching & (start < high), start, alpha)
        f, slope = excess(c, alpha, mu)
        for _ in range(ROOTS):
            low = select(searching & (f > 0.0), alpha, low)
            high = select(searching & (f <= 0.0), alpha, high)
            step = alpha - f / select(slope < 0.0, slope, zero(slope) - least(slope))
            middle = sqrt(weight + low) * sqrt(weight + high) - weight
            step = select((step > low) & (step < high), step, middle)
            moved = fabs(step - alpha)
            alpha = select(searching & (f != 0.0), step, alpha)
            searching = searching & (moved > ROUGH * (weight + alpha)) & (f != 0.0)
            if not any_lane(searching):
                break
            f, slope = excess(c, alpha, mu)
        lam = slip(c, alpha)
    return settle(lam, c.n, mu, sliding), alpha


@kernel
def settle(lam, n, mu, sliding):
    """λ of a contact: zero if it separates, n without friction if μ is zero, on the cone if it slides."""
    smooth, nought = mu <= 0.0, zero(n)
    normal = maximum(select(smooth, n, lam.x), nought)
    reach = mu * normal
    share = select(sliding, reach / maximum(length(lam.y, lam.z), least(n)), nought + 1.0)
    touching = select(smooth, Vec3(normal, nought, nought), Vec3(normal, lam.y * share, lam.z * share))
    return select(n <= 0.0, Vec3(nought, nought, nought), touching)
