"""Integration on the manifold: coordinates change with velocities, rotations by the exponential map.

    semi_implicit  v += h a(q, v);  q ⊕= h v           first order; springs, dampers and drives implicit
    runge_kutta    Munthe-Kaas' form of the classic RK4: within a step q = q₀ ⊕ φ, and φ̇ = v; of rotations it is
                   φ̇ = exp_rate(φ, ω). Fourth order on rotations too.

Degrees of freedom with prescribed motion are set to their path at the beginning, middle and end of a step.
"""

from __future__ import annotations

from poise.dynamics.aba import articulated_body
from poise.dynamics.kinematics import BALL, load_four
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Real, View, load, store
from poise.kernel.quat import exp_rate, exp_rotation, normalize
from poise.kernel.scalars import all_lanes, select, zero
from poise.kernel.vec import Vec3
from poise.model.joints import Prescribed

PATH = Prescribed.PATH

STAGES = View(
    "Stages",
    n_q=Count,
    n_prescribed=Count,  # 0 where no motion is prescribed
    path_q=Real,  # coordinates at the beginning, middle and end, one after another
    path_v=Real,
    path_a=Real,
    q0=Real,
    v0=Real,
    shift=Real,  # φ of the stage
    rate=Real,  # φ̇ of the stage
    sum_rate=Real,
    sum_a=Real,
    lost=Real,  # (1) where `is_sound` is false: 1 in the lanes that were reset, else 0
)


@kernel
def load_vec(buffer, d):
    """Three scalars as a vector."""
    return Vec3(load(buffer, d), load(buffer, d + 1), load(buffer, d + 2))


@kernel
def store_vec(buffer, d, v):
    """A vector as three scalars."""
    store(buffer, d, v.x)
    store(buffer, d + 1, v.y)
    store(buffer, d + 2, v.z)


@kernel
def store_quat(buffer, j, q):
    """A quaternion as four scalars."""
    store(buffer, j, q.w)
    store(buffer, j + 1, q.x)
    store(buffer, j + 2, q.y)
    store(buffer, j + 3, q.z)


@kernel
def displaced_quat(q0, shift, j, d):
    """The unit quaternion at coordinate j after a rotation by the three numbers at degree of freedom d."""
    return normalize(load_four(q0, j) @ exp_rotation(load_vec(shift, d)))


@kernel
def displace(m, q0, shift, scale, q):
    """q = q0 ⊕ scale · shift."""
    for k in range(m.n_primitives):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
        if load(m.primitive_kind, k) == BALL:
            store_quat(q, j, normalize(load_four(q0, j) @ exp_rotation(load_vec(shift, d) * scale)))
        else:
            store(q, j, load(q0, j) + load(shift, d) * scale)


@kernel
def follow(m, s, x, y, stage):
    """Set coordinates on paths to their path: stage 0 is the beginning of the step, 1 the middle, 2 the end."""
    for k in range(m.n_primitives):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
        if load(m.dof_prescribed, d) == PATH:
            n_q, n_v = 1, 1
            if load(m.primitive_kind, k) == BALL:
                n_q, n_v = 4, 3
            for e in range(n_q):
                store(s.q, j + e, load(y.path_q, stage * y.n_q + j + e))
            for e in range(n_v):
                store(s.v, d + e, load(y.path_v, stage * m.nv + d + e))
                store(x.prescribed, d + e, load(y.path_a, stage * m.nv + d + e))


@kernel
def keep(m, s, y):
    """Save the state at the beginning of a step."""
    for j in range(y.n_q):
        store(y.q0, j, load(s.q, j))
    for d in range(m.nv):
        store(y.v0, d, load(s.v, d))


@kernel
def is_sound(m, s, y):
    """Whether the state is finite in every lane and quaternions are not degenerate, as after spins that are too fast to
    compute; if not, the diverged lanes are reset to the beginning of the step.
    """
    sum = zero(load(s.q, 0))
    for j in range(y.n_q):
        sum = sum + load(s.q, j) * 0.0  # NaN and infinity become NaN; everything else zero
    for d in range(m.nv):
        sum = sum + load(s.v, d) * 0.0
    for k in range(m.n_primitives):
        if load(m.primitive_kind, k) == BALL:
            quat = load_four(s.q, load(m.primitive_q_start, k))
            size = quat.w * quat.w + quat.x * quat.x + quat.y * quat.y + quat.z * quat.z
            sum = select(size > 0.5, sum, sum + 1.0)
    sound = sum == 0.0
    if all_lanes(sound):
        return True
    for j in range(y.n_q):
        store(s.q, j, select(sound, load(s.q, j), load(y.q0, j)))
    for d in range(m.nv):
        store(s.v, d, select(sound, load(s.v, d), load(y.v0, d)))
    store(y.lost, 0, select(sound, zero(sum), zero(sum) + 1.0))
    return False


@kernel
def semi_implicit(m, s, x, w, y, dt, n):
    """Up to n steps of semi-implicit Euler; returns how many were sound."""
    for done in range(n):
        if y.n_prescribed != 0:
            follow(m, s, x, y, 0)
        keep(m, s, y)
        articulated_body(m, s, x, w, dt)
        for d in range(m.nv):
            store(s.v, d, load(s.v, d) + load(w.a, d) * dt)
        displace(m, s.q, s.v, dt, s.q)
        if y.n_prescribed != 0:
            follow(m, s, x, y, 2)
        if not is_sound(m, s, y):
            return done
    return n


@kernel
def rates(m, s, y):
    """φ̇ of the stage, from its φ and the state's velocity."""
    for k in range(m.n_primitives):
        d = load(m.primitive_v_start, k)
        if load(m.primitive_kind, k) == BALL:
            store_vec(y.rate, d, exp_rate(load_vec(y.shift, d), load_vec(s.v, d)))
        else:
            store(y.rate, d, load(s.v, d))


@kernel
def stage(m, s, x, w, y, reach, moment):
    """Advance by `reach` along the last stage's rates, and compute the rates there."""
    for d in range(m.nv):
        store(y.shift, d, load(y.rate, d) * reach)
        store(s.v, d, load(y.v0, d) + load(w.a, d) * reach)
    displace(m, y.q0, y.shift, 1.0, s.q)
    if y.n_prescribed != 0:
        follow(m, s, x, y, moment)
    rates(m, s, y)
    articulated_body(m, s, x, w, 0.0)


@kernel
def add_stage(m, w, y, weight):
    """Add the stage's rates to the step's."""
    for d in range(m.nv):
        store(y.sum_rate, d, load(y.sum_rate, d) + load(y.rate, d) * weight)
        store(y.sum_a, d, load(y.sum_a, d) + load(w.a, d) * weight)


@kernel
def runge_kutta(m, s, x, w, y, dt, n):
    """Up to n steps of the fourth-order method; returns how many were sound."""
    for done in range(n):
        if y.n_prescribed != 0:
            follow(m, s, x, y, 0)
        keep(m, s, y)
        for d in range(m.nv):
            store(y.rate, d, zero(load(s.v, d)))
            store(y.sum_rate, d, zero(load(s.v, d)))
            store(y.sum_a, d, zero(load(s.v, d)))
            store(w.a, d, zero(load(s.v, d)))
        for k in range(4):
            reach, weight, moment = dt, dt / 6.0, 2
            if k == 0:
                reach, moment = 0.0, 0
            elif k < 3:
                reach, weight, moment = 0.5 * dt, dt / 3.0, 1
            stage(m, s, x, w, y, reach, moment)
            add_stage(m, w, y, weight)
        for d in range(m.nv):
            store(s.v, d, load(y.v0, d) + load(y.sum_a, d))
        displace(m, y.q0, y.sum_rate, 1.0, s.q)
        if y.n_prescribed != 0:
            follow(m, s, x, y, 2)
        if not is_sound(m, s, y):
            return done
    return n
