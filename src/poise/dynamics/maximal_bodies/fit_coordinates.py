"""Coordinates of a joint that fit the poses of its bodies best, in the metric of turns (rad) and ways of its point (m).

A fit is a step of Gauss's and Newton's method: where coordinates nearly fit, what is left of an error is its square.
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
"""How coordinates of a link are found: by fits, along any axes or along some that are unit vectors at right angles in
the metric of the joint's point, all of them turns about it (`fit_revolute`) or not; or from the states of the bodies
(`fit_direct`), of a link that a single ball holds or of one that is free."""
FITS = 6
"""How often coordinates are fitted at most."""
ROUGH = 1e-4
"""Change after which gaps are known well enough to be closed: their error is its square; rad or m."""
FITTED = 1e-9
"""Change by which a coordinate would fit better that is none; rad or m. What fits already stays as it is to the last
bit, however often it is looked at."""
SMALL = 1e-6
"""Square of the sine of turns that a series tells to rounding."""
FLAT = 1e-12
"""Of the square of an axis: what is left of one that others can replace, which then moves nothing."""


@formula
def in_metric(axis, at):
    """A motion as its turn, and the way of a point."""
    return axis.w, motion_at(axis, at)


@formula
def sine_of(A):
    """Sine of a rotation times its axis."""
    return Vec3(A.zy - A.yz, A.xz - A.zx, A.yx - A.xy) * 0.5


@formula
def small_turn(sine):
    """Turn of which the sine is small: arcsin(s) / s to the fourth order."""
    square = dot(sine, sine)
    return sine * (square * (square * 0.075 + 1.0 / 6.0) + 1.0)


@kernel
def turn_between(A):
    """Turn of a rotation (rad), which is small more often than not."""
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
    """Changes of coordinates that come nearest to a turn, and a way of a joint's point; `lay_square` was there."""
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
    """As `fit`, of a link's axes."""
    if load(f.fit, i) == BY_AXES:
        lay_square(w, f, first, n, at)
        fit(w, f, first, n, at, turn, way)
    else:
        fit_plain(w, f, first, n, at, turn, way)


@kernel
def log_turn(q):
    """Turn of a quaternion (rad), which is small more often than not."""
    s = select(q.w < 0.0, -q, q)
    sine = Vec3(s.x, s.y, s.z)
    turn, small = small_turn(sine) * 2.0, dot(sine, sine) < SMALL
    if not all_lanes(small):
        turn = select(small, turn, log_rotation(s))
    return turn


@kernel
def fitted_motion(w, f, first, n):
    """Motion about O of the changes that were fitted."""
    motion = no_motion(load(f.change, 0))
    for a in range(n):
        motion = motion + load(w.axis, first + a) * load(f.change, a)
    return motion


@kernel
def change_size(f, n):
    """Square of the changes that were fitted."""
    sum = zero(load(f.change, 0))
    for a in range(n):
        sum = sum + load(f.change, a) * load(f.change, a)
    return sum


@kernel
def change_coordinates(m, s, w, i, change, first, there):
    """Add changes, from place `first` on, to a link's coordinates, in the worlds of a mask."""
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
    """Add up the changes that were fitted, or begin `anew`. Those that are not made at once, where worlds are not
    `far`, are left, the first ones `alone`.
    """
    for a in range(n):
        none, d = zero(load(f.change, a)), first + a
        sum, change = none if anew else load(w.total, d), select(goes, load(f.change, a), none)
        store(w.total, d, sum + change)
        left = none if alone else load(f.late, d)
        store(f.late, d, select(goes, select(far, none, change), left))


@kernel
def change_late(m, s, w, f, least):
    """Make the changes of coordinates that are left, if they are as large as the `least`: those that were fitted."""
    for i in range(m.n_links):
        if is_direct(f, i):
            continue
        size, first = zero(load(f.change, 0)), load(m.link_dof_start, i)
        for d in range(first, load(m.link_dof_start, i + 1)):
            size = size + load(f.late, d) * load(f.late, d)
        far = size >= least * least
        if any_lane(far):
            change_coordinates(m, s, w, i, f.late, first, far)
