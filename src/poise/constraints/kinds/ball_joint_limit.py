"""Rows of ball joints: limits of swing, and of twist about the axis.

Swing and twist limits are curved: motion along a cone leaves it. So rows are linearized not at the present rotation,
but at the predicted one at the end of the step. With θ the rotation of the joint over the step, in its own axes, and R
its rotation before,

    φ(R exp θ) ≈ φ̄ + J · θ,   J = (R exp(θ*/2))ᵀ m,   φ̄ = φ(R exp θ*) − J · θ*               (1)

φ is a function of R C⁻¹ (`orientation_parts`), with C the joint's rotation at the centre of its limits, and m its
gradient. θ* is first the rotation without rows, then that rotation projected onto the limit. Halfway axes are those of
the exponential map's Jacobian up to terms of θ². Of a swing, the part of J along the limb, C⁻¹ e, is left out: it is of
second order, and would twist a limb to reduce its swing, as limbs have little inertia about their axis.

The swing vector (`orientation_parts`, eq. 3) is within an ellipse. Its row is that of a line, φ = c − n · σ: the
tangent where the ellipse is nearest to the swing without rows. Rows are scaled to |J| = 1: multipliers are torques.
"""

from __future__ import annotations

from math import inf
from typing import Any

from poise.constraints.emit_rows import open_block, put_bounds, put_dof_row, put_term
from poise.constraints.kinds.joint_limit import wanted
from poise.constraints.row_parts.orientation_parts import angle, swing_gradient, swing_vector
from poise.constraints.row_parts.point_parts import TINY, Body, world
from poise.constraints.row_store import SINGLE
from poise.dynamics.integrate import load_vec
from poise.dynamics.kinematics import exp_turn, load_four
from poise.kernel.jit import kernel
from poise.kernel.memory import load, scatter_where, store
from poise.kernel.quat import conjugate, normalize, rotate, rotation
from poise.kernel.scalars import (
    PI,
    all_lanes,
    any_lane,
    atan2,
    fabs,
    maximum,
    minimum,
    rint,
    select,
    spread,
    sqrt,
    zero,
)
from poise.kernel.spatial import no_force
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, column, dot, norm, transpose_times, zero3

CONE, TWIST_LOWER, TWIST_UPPER = range(3)
"""Ids of rows on ball joint i are 8 (nv + i) + one of these: those on coordinates end below 8 nv."""
ROUNDS = 2
"""Most projections of the rotation onto the limit."""
FARTHEST = 1.2
"""Largest rotation over which rows predict; rad."""
STRAY = 2e-3
"""Swing beyond its cone above which rows are rebuilt; rad."""
_SHORT = 1e-12
"""Squared length below which gradients count as zero."""
_NEWTON = 4
"""Newton steps to the nearest point of an ellipse."""
_BLUNT = 1e-5
"""Least cosine of half a swing."""
_COARSE, _FLAT = 5e-3, 1e-6
"""Bound on the error of a coarse angle, which is at most 4.9e-3; rad. Least sine of a swing that has a direction."""
_UPRIGHT, _STEEPEST = 0.5, 2.7
"""Cosine of half a swing, and a bound on |J| of swings with a larger cosine: √(1 + (σ/sin σ)²) is 2.6 there."""


@formula
def turned(after: Any, centre: Any) -> Any:
    """Rotation of the joint, relative to the centre of its limits."""
    return rotation(after @ conjugate(centre))


@formula
def swing_and_twist(q: Any, F: Any, centre: Any, middle: Any) -> Any:
    """Swing vector of a joint's rotation, its twist nearest to the middle (rad), and the cosine of half its swing.

    With (w, v) the quaternion from the centre of the limits, s = e · v and p = v − s e, the cosine is c = √(w² + s²):
    the twist has |J| = 1/c (`orientation_parts`, eq. 2). The swing is along (w p + s e × p)/c, which is as long as p.
    """
    whole = q @ conjugate(centre)
    whole = select(whole.w < 0.0, -whole, whole)
    part = transpose_times(F, Vec3(whole.x, whole.y, whole.z))
    w, s, one = whole.w, part.x, zero(whole.w) + 1.0
    sine2 = part.y * part.y + part.z * part.z
    cosine, sine, small = sqrt(w * w + s * s), sqrt(sine2), sine2 < TINY
    k = select(small, one + 1.0, 2.0 * atan2(sine, cosine) / select(small, one, sine))
    k = k / maximum(cosine, zero(w) + _BLUNT)
    twist = 2.0 * atan2(s, w)
    twist = twist + rint((middle - twist) * (0.5 / PI)) * (2.0 * PI)
    return (w * part.y - s * part.z) * k, (w * part.z + s * part.y) * k, twist, cosine


@formula
def coarse_angle(y: Any, x: Any) -> Any:
    """atan2(y, x) of nonnegative numbers, within _COARSE."""
    less, more = minimum(y, x), maximum(y, x)
    part = less * more / maximum(more * more + 0.28125 * less * less, zero(x) + TINY)
    return select(y > x, 0.5 * PI - part, part)


@formula
def coarse_swing_and_twist(q: Any, F: Any, centre: Any, middle: Any, a: Any, b: Any) -> Any:
    """As `swing_and_twist`, without arctangents: an upper bound on the scale of the ellipse of half-axes a, b through
    the swing; the twist within 2 _COARSE; the cosine of half the swing; and whether the twist is certainly the one
    nearest to the middle.
    """
    whole = q @ conjugate(centre)
    whole = select(whole.w < 0.0, -whole, whole)
    part = transpose_times(F, Vec3(whole.x, whole.y, whole.z))
    w, s = whole.w, part.x
    cosine, sine = sqrt(w * w + s * s), sqrt(part.y * part.y + part.z * part.z)
    share = ellipse_share(w * part.y - s * part.z, w * part.z + s * part.y, a, b)
    share = share * (2.0 * (coarse_angle(sine, cosine) + _COARSE)) / maximum(sine * cosine, zero(w) + _FLAT)
    twist = 2.0 * coarse_angle(fabs(s), w)
    twist = select(s < 0.0, -twist, twist)
    twist = twist + rint((middle - twist) * (0.5 / PI)) * (2.0 * PI)
    return share, twist, cosine, fabs(twist - middle) < PI - 2.0 * _COARSE


@formula
def ellipse_share(y: Any, z: Any, a: Any, b: Any) -> Any:
    """Scale at which an ellipse of half-axes a, b passes through (y, z): above 1 for points outside."""
    u, v = y / a, z / b
    return sqrt(u * u + v * v)


@formula
def may_stray(y: Any, z: Any, a: Any, b: Any) -> Any:
    """Whether (y, z) may be more than STRAY beyond an ellipse: the distance is at most the longer half-axis times the
    excess of the scale over 1.
    """
    return (ellipse_share(y, z, a, b) - 1.0) * maximum(a, b) > STRAY


@formula
def scaled(phi: Any, J: Any, turn: Any) -> Any:
    """φ̄ and J of unit length (eq. 1), from φ after a rotation; J is zero where it has no direction."""
    n2 = dot(J, J)
    none = n2 < _SHORT
    k = 1.0 / sqrt(select(none, zero(n2) + 1.0, n2))
    J = select(none, zero3(k), J * k)
    return phi * k - dot(J, turn), J


@formula
def tangent(y: Any, z: Any, a: Any, b: Any) -> Any:
    """c, n_y, n_z of the line c − n · σ = 0 that touches an ellipse of half-axes a, b where it is nearest to (y, z).

    For points outside, the nearest point is (a²y/(t + a²), b²z/(t + b²)), with t > 0 such that it is on the ellipse.
    One over its ellipse scale is nearly linear in t: Newton's method on it converges from below. For points inside: the
    tangent of the scaled ellipse through (y, z), moved outwards by the distance to first order.
    """
    a2, b2, none = a * a, b * b, zero(y)
    t = none
    for _ in range(_NEWTON):
        u, v = a * y / (t + a2), b * z / (t + b2)
        size2 = maximum(u * u + v * v, none + 1.0)  # inside: t stays 0
        slope = (u * u / (t + a2) + v * v / (t + b2)) / size2
        t = t + (sqrt(size2) - 1.0) / maximum(slope, none + _SHORT)
    py, pz = y * a2 / (t + a2), z * b2 / (t + b2)
    gy, gz = py / a2, pz / b2
    rho = sqrt(gy * py + gz * pz)
    steep = sqrt(gy * gy + gz * gz)
    middle = steep < _SHORT
    k = 1.0 / select(middle, none + 1.0, steep)
    ny, nz = gy * k, gz * k
    room = select(middle, minimum(a, b), (1.0 - rho) * rho * k)
    return room + ny * py + nz * pz, ny, nz


@formula
def cone_line(after: Any, F: Any, centre: Any, about_y: Any, about_z: Any) -> Any:
    """The line that bounds the swing of the joint's rotation after a rotation."""
    y, z = swing_vector(turned(after, centre), F)
    return tangent(y, z, about_y, about_z)


@formula
def cone_row(after: Any, half: Any, turn: Any, F: Any, centre: Any, c: Any, ny: Any, nz: Any) -> Any:
    """φ̄ and J of the swing, from the joint's rotations at the end and halfway."""
    y, z = swing_vector(turned(after, centre), F)
    J = rotate(conjugate(half), swing_gradient(F, y, z, -ny, -nz))
    e = rotate(conjugate(centre), column(F, 0))  # the limb, in the joint's own axes
    return scaled(c - ny * y - nz * z, J - e * dot(e, J), turn)


@formula
def twist_row(after: Any, half: Any, turn: Any, F: Any, centre: Any, middle: Any, bound: Any, sign: Any) -> Any:
    """φ̄ and J of one end of the twist's range, as `cone_row`; the sign is 1 for the lower end, −1 for the upper."""
    still = world(after.w)
    part = angle(still, Body(still.x, turned(after, centre), still.w, still.v), column(F, 0), still.R, middle)
    return scaled((part.phi - bound) * sign, rotate(conjugate(half), part.b.t) * sign, turn)


@formula
def ahead(free: Any, phi: Any, J: Any) -> Any:
    """The free rotation projected onto a limit, and limited to FARTHEST."""
    turn = free + J * maximum(-(phi + dot(J, free)), zero(phi))
    return turn * minimum(zero(phi) + 1.0, FARTHEST / maximum(norm(turn), zero(phi) + FARTHEST))


@kernel
def rotations_ahead(q, turn):
    """Rotations of a joint after a rotation, and halfway."""
    return q @ exp_turn(turn), q @ exp_turn(turn * 0.5)


@kernel
def emit_row(r, d, id, near, phi, J, erp):
    """One row on the three velocities of a ball, from d on, in the lanes of a mask."""
    none = zero(phi)
    slot, there = open_block(r, SINGLE, near, zero(load(r.count, 0)) + id)
    put_dof_row(r, slot, there, zero(slot) + d, J.x)
    minus = zero(slot) - 1
    put_term(r, slot, there, minus, no_force(phi), minus + (d + 2), J.y)
    put_term(r, slot, there, minus, no_force(phi), minus + (d + 3), J.z)
    put_bounds(r, slot, there, none, spread(inf, none))
    scatter_where(r.phi, slot, phi, there)
    scatter_where(r.erp, slot, none + erp, there)


@kernel
def emit_cone(l, r, held, i, k, q, free, close, erp, again):
    """The swing row of ball k, if the swing will be within `close` of its cone."""
    none = zero(q.w)
    F, centre = load(l.ball_frame, k), load(l.ball_centre, k)
    y, z = none + load(l.ball_cone_y, k), none + load(l.ball_cone_z, k)
    turn = ahead(free, none, zero3(none))
    after, half = rotations_ahead(q, turn)
    c, ny, nz = cone_line(after, F, centre, y, z)
    phi, J = cone_row(after, half, turn, F, centre, c, ny, nz)
    near = wanted(held, i, phi + dot(J, free) < close, again)
    if any_lane(near):
        over = near
        for _ in range(ROUNDS):
            over = over & (phi + dot(J, free) < 0.0)  # without a projection the row stays as it is
            if not any_lane(over):
                break
            turn = ahead(free, phi, J)
            after, half = rotations_ahead(q, turn)
            again_phi, again_J = cone_row(after, half, turn, F, centre, c, ny, nz)
            phi, J = select(over, again_phi, phi), select(over, again_J, J)
        emit_row(r, load(l.ball_dof, k), load(l.ball_id, k) + CONE, near, phi, J, erp)


@kernel
def emit_twist(l, r, held, i, k, code, q, free, bound, sign, close, erp, again):
    """The row of one end of the twist of ball k, if the twist will be within `close` of it."""
    none = zero(q.w)
    F, centre = load(l.ball_frame, k), load(l.ball_centre, k)
    middle, bound, sign = none + load(l.ball_middle, k), none + bound, none + sign
    turn = ahead(free, none, zero3(none))
    after, half = rotations_ahead(q, turn)
    phi, J = twist_row(after, half, turn, F, centre, middle, bound, sign)
    near = wanted(held, i, phi + dot(J, free) < close, again)
    if any_lane(near):
        over = near
        for _ in range(ROUNDS):
            over = over & (phi + dot(J, free) < 0.0)
            if not any_lane(over):
                break
            turn = ahead(free, phi, J)
            after, half = rotations_ahead(q, turn)
            again_phi, again_J = twist_row(after, half, turn, F, centre, middle, bound, sign)
            phi, J = select(over, again_phi, phi), select(over, again_J, J)
        emit_row(r, load(l.ball_dof, k), load(l.ball_id, k) + code, near, phi, J, erp)


@formula
def far_within(q: Any, F: Any, centre: Any, middle: Any, y: Any, z: Any, lower: Any, upper: Any, close: Any) -> Any:
    """Whether a joint's rotation is so far within its cone, its least and its greatest twist that none of their rows is
    within `close`, at a fraction of the cost of the rows. The test is conservative: it may miss some.

    A point inside an ellipse at scale s is at least (1 − s) times the shorter half-axis away from it.
    """
    share, twist, cosine, sure = coarse_swing_and_twist(q, F, centre, middle, y, z)
    plain, room = cosine > _UPRIGHT, (1.0 - share) * minimum(y, z)
    above, below = (twist - lower - 2.0 * _COARSE) * cosine, (upper - twist - 2.0 * _COARSE) * cosine
    above, below = select(sure, above, zero(above)), select(sure, below, zero(below))
    return plain & (room > close * _STEEPEST), plain & (above > close * 2.0), plain & (below > close * 2.0)


@kernel
def far_from(l, k, q, turn, close):
    """Worlds in which ball k will be far within its limits after a rotation: see `far_within`."""
    none = zero(q.w)
    cone, above, below = far_within(
        q @ exp_turn(turn),
        load(l.ball_frame, k),
        load(l.ball_centre, k),
        none + load(l.ball_middle, k),
        none + load(l.ball_cone_y, k),
        none + load(l.ball_cone_z, k),
        none + load(l.ball_lower, k),
        none + load(l.ball_upper, k),
        close,
    )
    short = dot(turn, turn) < FARTHEST * FARTHEST  # longer rotations are not predicted to their ends
    return short & cone, short & above, short & below


@kernel
def turn_over(s, w, x, d, dt):
    """Rotation of a ball over a step, with the known velocity change by impulses."""
    return (load_vec(s.v, d) + load_vec(w.a, d) * dt + load_vec(x.a, d)) * dt


@kernel
def is_wanted(held, i, far, again):
    """Whether a limit has to be evaluated: if `again`, or not `far` in all worlds. If not, clears its `held` flag."""
    if again != 0 or not all_lanes(far):
        return True
    store(held, i, zero(load(held, i)))
    return False


@kernel
def emit_ball_limits(s, w, x, l, r, held, dt, erp, close, again):
    """Rows of ball joints that will be within `close` of a limit at the end of the step.

    `w` has the motion without rows, `x` the velocity change by impulses that is known so far. If `again` is not 0,
    limits that are `held` keep their rows.
    """
    for k in range(l.n_balls):
        d, i = load(l.ball_dof, k), 2 * l.n_limits + 3 * k
        q = normalize(load_four(s.q, load(l.ball_q, k)))
        turn = turn_over(s, w, x, d, dt)
        far = far_from(l, k, q, turn, close)
        if load(l.ball_has_cone, k) != 0 and is_wanted(held, i, far[0], again):
            emit_cone(l, r, held, i, k, q, turn, close, erp, again)
        if load(l.ball_has_lower, k) != 0 and is_wanted(held, i + 1, far[1], again):
            emit_twist(l, r, held, i + 1, k, TWIST_LOWER, q, turn, load(l.ball_lower, k), 1.0, close, erp, again)
        if load(l.ball_has_upper, k) != 0 and is_wanted(held, i + 2, far[2], again):
            emit_twist(l, r, held, i + 2, k, TWIST_UPPER, q, turn, load(l.ball_upper, k), -1.0, close, erp, again)


@kernel
def cone_room(l, k, q, turn):
    """Distance from the swing after a rotation to the cone, negative beyond; rad."""
    none = zero(q.w)
    y, z = swing_vector(turned(q @ exp_turn(turn), load(l.ball_centre, k)), load(l.ball_frame, k))
    c, ny, nz = tangent(y, z, none + load(l.ball_cone_y, k), none + load(l.ball_cone_z, k))
    return c - ny * y - nz * z


@kernel
def stays(l, k, q, frame, centre, middle):
    """Worlds in which ball k is within its limits at a rotation, found without arctangents. The test is conservative:
    it may miss some.
    """
    none = zero(q.w)
    a, b = none + load(l.ball_cone_y, k), none + load(l.ball_cone_z, k)
    share, twist, cosine, sure = coarse_swing_and_twist(q, frame, centre, middle, a, b)
    within = sure & (cosine > _UPRIGHT)
    if load(l.ball_has_cone, k) != 0:
        within = within & (share < 1.0)
    if load(l.ball_has_lower, k) != 0:
        within = within & (twist - load(l.ball_lower, k) > 2.0 * _COARSE)
    if load(l.ball_has_upper, k) != 0:
        within = within & (load(l.ball_upper, k) - twist > 2.0 * _COARSE)
    return within


@kernel
def strays(s, w, x, l, held, dt):
    """Worlds in which impulses take a ball beyond a limit without a row, or along its cone and further beyond it."""
    wrong = load(s.q, 0) != load(s.q, 0)
    for k in range(l.n_balls):
        i = 2 * l.n_limits + 3 * k
        q = normalize(load_four(s.q, load(l.ball_q, k)))
        free = turn_over(s, w, x, load(l.ball_dof, k), dt)
        none = zero(q.w)
        turn = ahead(free, none, zero3(none))
        frame, centre, middle = load(l.ball_frame, k), load(l.ball_centre, k), none + load(l.ball_middle, k)
        after = q @ exp_turn(turn)
        if all_lanes(stays(l, k, after, frame, centre, middle)):
            continue
        y, z, twist, cosine = swing_and_twist(after, frame, centre, middle)
        if load(l.ball_has_cone, k) != 0:
            a, b = none + load(l.ball_cone_y, k), none + load(l.ball_cone_z, k)
            if any_lane(may_stray(y, z, a, b)):
                room = cone_room(l, k, q, turn)
                wrong = wrong | (room < minimum(cone_room(l, k, q, zero3(none)), none) - STRAY)
        if load(l.ball_has_lower, k) != 0:
            beyond = (twist - load(l.ball_lower, k)) * cosine < -STRAY
            wrong = wrong | (beyond & (load(held, i + 1) == 0))
        if load(l.ball_has_upper, k) != 0:
            beyond = (load(l.ball_upper, k) - twist) * cosine < -STRAY
            wrong = wrong | (beyond & (load(held, i + 2) == 0))
    return wrong
