"""Joint coordinates that fit the poses of both bodies best, in the metric of rotations (rad) and displacements of the
joint's point (m).

A fit is a Gauss-Newton step: near the fit, its error is the square of the error before.
"""

from __future__ import annotations

from poise.dynamics.integrate import load_vec, store_quat
from poise.dynamics.kinematics import BALL, exp_turn, load_four
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.quat import log_rotation, normalize, quaternion
from poise.kernel.scalars import all_lanes, any_lane, select, sincos, sqrt, zero
from poise.kernel.spatial import motion_at, no_motion
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, dot

BY_AXES, BY_PLAIN_AXES, BY_TURNS, BY_BALL, BY_PLACE = range(5)
"""How coordinates of a link are found. By fits: along any axes; along unit axes that are orthogonal in the metric of
the joint's point; or along such axes that are all rotations about it (`fit_revolute`). Or from the states of the bodies
(`fit_direct`): for a link with a single ball, or a free one."""
FITS = 6
"""Most fits."""
ROUGH = 1e-4
"""Change of coordinates below which gaps can be closed: their error is its square; rad or m."""
FITTED = 1e-9
"""Smallest change that is applied to a coordinate; rad or m. A coordinate that fits keeps its bits, however often it
is fitted."""
SMALL = 1e-6
"""Squared sine of rotations below which a series is exact to rounding."""
FLAT = 1e-12
"""Share of an axis's square below which other axes span it; such an axis is not moved."""


@formula
def in_metric(axis, at):
    """A motion as its rotation, and the displacement of a point."""
    return axis.w, motion_at(axis, at)


@formula
def sine_of(A):
    """Sine of a rotation times its axis."""
    return Vec3(A.zy - A.yz, A.xz - A.zx, A.yx - A.xy) * 0.5


@formula
def small_turn(sine):
    """Rotation vector of a small sine: arcsin(s) / s to the fourth order."""
    square = dot(sine, sine)
    return sine * (square * (square * 0.075 + 1.0 / 6.0) + 1.0)


@kernel
def turn_between(A):
    """Rotation vector of a matrix (rad); fast where the rotation is small, as it mostly is."""
    sine = sine_of(A)
    turn, small = small_turn(sine), (dot(sine, sine) < SMALL) & (A.xx + A.yy + A.zz > 1.0)
    if not all_lanes(small):
        turn = select(small, turn, log_rotation(quaternion(A)))
    return turn


@kernel
def is_direct(f, i):
    """Whether the coordinates of a link need no fits."""
    return load(f.fit, i) >= BY_BALL


@kernel
def lay_square(w, f, first, n, at):
    """Cholesky factor of SᵀS, in the metric of a joint's point."""
    for a in range(n):
        wa, va = in_metric(load(w.axis, first + a), at)
        for b in range(a + 1):
            wb, vb = in_metric(load(w.axis, first + b), at)
            whole = dot(wa, wb) + dot(va, vb)
            sum = whole
            for c in range(b):
                sum = sum - load(f.square, 6 * a + c) * load(f.square, 6 * b + c)
            if a == b:
                flat = sum <= whole * FLAT
                store(f.square, 7 * a, select(flat, zero(sum), 1.0 / sqrt(select(flat, zero(sum) + 1.0, sum))))
            else:
                store(f.square, 6 * a + b, sum * load(f.square, 7 * b))


@kernel
def fit_plain(w, f, first, n, at, turn, way):
    """As `fit`, where SᵀS is the identity."""
    for a in range(n):
        wa, va = in_metric(load(w.axis, first + a), at)
        store(f.change, a, dot(wa, turn) + dot(va, way))


@kernel
def fit(w, f, first, n, at, turn, way):
    """Coordinate changes nearest to a rotation and a displacement of a joint's point; `lay_square` must run before."""
    for a in range(n):
        wa, va = in_metric(load(w.axis, first + a), at)
        sum = dot(wa, turn) + dot(va, way)
        for c in range(a):
            sum = sum - load(f.square, 6 * a + c) * load(f.change, c)
        store(f.change, a, sum * load(f.square, 7 * a))
    for k in range(n):
        a = n - 1 - k
        sum = load(f.change, a)
        for c in range(a + 1, n):
            sum = sum - load(f.square, 6 * c + a) * load(f.change, c)
        store(f.change, a, sum * load(f.square, 7 * a))


@kernel
def fit_any(w, f, i, first, n, at, turn, way):
    """As `fit`, for a link's axes of any kind."""
    if load(f.fit, i) == BY_AXES:
        lay_square(w, f, first, n, at)
        fit(w, f, first, n, at, turn, way)
    else:
        fit_plain(w, f, first, n, at, turn, way)


@kernel
def log_turn(q):
    """Rotation vector of a quaternion (rad); fast where the rotation is small, as it mostly is."""
    s = select(q.w < 0.0, -q, q)
    sine = Vec3(s.x, s.y, s.z)
    turn, small = small_turn(sine) * 2.0, dot(sine, sine) < SMALL
    if not all_lanes(small):
        turn = select(small, turn, log_rotation(s))
    return turn


@kernel
def fitted_motion(w, f, first, n):
    """Motion about O of the fitted changes."""
    motion = no_motion(load(f.change, 0))
    for a in range(n):
        motion = motion + load(w.axis, first + a) * load(f.change, a)
    return motion


@kernel
def change_size(f, n):
    """Squared norm of the fitted changes."""
    sum = zero(load(f.change, 0))
    for a in range(n):
        sum = sum + load(f.change, a) * load(f.change, a)
    return sum


@kernel
def change_coordinates(m, s, w, i, change, first, there):
    """Add changes, from index `first` on, to a link's coordinates, in the worlds of a mask."""
    for k in range(load(m.link_primitive_start, i), load(m.link_primitive_start, i + 1)):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k) - load(m.link_dof_start, i) + first
        if load(m.primitive_kind, k) == BALL:
            before = load_four(s.q, j)
            after = normalize(before @ exp_turn(load_vec(change, d)))
            store_quat(s.q, j, select(there, after, before))
        else:
            q = select(there, load(s.q, j) + load(change, d), load(s.q, j))
            store(s.q, j, q)
            sine, cosine = sincos(q - load(m.q_zero, j))
            store(w.sine, j, sine)
            store(w.cosine, j, cosine)


@kernel
def note_change(w, f, first, n, anew, alone, goes, far):
    """Accumulate the fitted changes, or start over if `anew`. In worlds that are not `far` the last changes are not
    applied but written to `f.late`. Worlds outside `goes` keep earlier ones there, unless `alone`.
    """
    for a in range(n):
        none, d = zero(load(f.change, a)), first + a
        sum, change = none if anew else load(w.total, d), select(goes, load(f.change, a), none)
        store(w.total, d, sum + change)
        left = none if alone else load(f.late, d)
        store(f.late, d, select(goes, select(far, none, change), left))


@kernel
def change_late(m, s, w, f, least):
    """Apply the kept changes of fitted coordinates of links whose change is at least `least`."""
    for i in range(m.n_links):
        if is_direct(f, i):
            continue
        size, first = zero(load(f.change, 0)), load(m.link_dof_start, i)
        for d in range(first, load(m.link_dof_start, i + 1)):
            size = size + load(f.late, d) * load(f.late, d)
        far = size >= least * least
        if any_lane(far):
            change_coordinates(m, s, w, i, f.late, first, far)
