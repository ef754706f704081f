"""Springs, dampers and drives on single coordinates, explicit or folded into the inertia.

A linear law on one coordinate, met at the end of a step h, is τ(q + h v + h² a, v + h a) = τ₀ − (h c + h² k) a: the
first part joins the forces, the second the articulated inertia's diagonal (LIU eqs. 9-13). With h = 0 it is explicit.
A ball's error is the rotation vector from where it is to where it should be, in the child's axes.
"""

from __future__ import annotations

from typing import Any

from poise.dynamics.kinematics import BALL, load_four, load_quat
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.quat import conjugate, log_rotation, normalize
from poise.kernel.scalars import spread, zero
from poise.kernel.trace import formula


@formula
def pull(stiffness: Any, damping: Any, error: Any, lack: Any, v: Any, step: Any) -> Any:
    """Force of a spring and damper at the end of a step: k (error − h v) + c · lack of speed."""
    return stiffness * (error - v * step) + damping * lack


@formula
def stiffening(stiffness: Any, damping: Any, step: Any) -> Any:
    """h c + h² k."""
    return (damping + stiffness * step) * step


@kernel
def add_pull(w, d, stiffness, damping, error, lack, v, step):
    """One law on one dof."""
    store(w.total, d, load(w.total, d) + pull(stiffness, damping, error, lack, v, step))
    store(w.diagonal, d, load(w.diagonal, d) + stiffening(stiffness, damping, step))


@kernel
def gather_forces(m, s, x, w, dt):
    """Generalized forces at the start of the step, and what their implicit part adds to the diagonal."""
    for d in range(m.nv):
        tau = load(x.tau, d)
        store(w.total, d, tau)
        store(w.diagonal, d, zero(tau))
    if m.has_passive != 0:
        add_springs(m, s, w, dt)
    if x.n_gains != 0:
        add_drives(m, s, x, w, dt)


@kernel
def add_springs(m, s, w, dt):
    """The model's own springs and dampers."""
    for k in range(m.n_primitives):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
        step = spread(dt, load(s.q, 0))
        if load(m.primitive_kind, k) == BALL:
            rest = normalize(load_four(m.q_spring, j))
            error = log_rotation(conjugate(load_quat(s, j)) @ rest)
            for e in range(3):
                v, part = load(s.v, d + e), component(error, e)
                add_pull(w, d + e, load(m.dof_stiffness, d + e), load(m.dof_damping, d + e), part, -v, v, step)
        else:
            v, error = load(s.v, d), load(m.q_spring, j) - load(s.q, j)
            add_pull(w, d, load(m.dof_stiffness, d), load(m.dof_damping, d), error, -v, v, step)


@kernel
def add_drives(m, s, x, w, dt):
    """Drives towards goals."""
    for k in range(m.n_primitives):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
        step = spread(dt, load(s.q, 0))
        if load(m.primitive_kind, k) == BALL:
            goal = normalize(load_four(x.goal_q, j))
            error = log_rotation(conjugate(load_quat(s, j)) @ goal)
            for e in range(3):
                v, part = load(s.v, d + e), component(error, e)
                lack = load(x.goal_v, d + e) - v
                add_pull(w, d + e, load(x.gain_p, d + e), load(x.gain_d, d + e), part, lack, v, step)
        else:
            v, error = load(s.v, d), load(x.goal_q, j) - load(s.q, j)
            add_pull(w, d, load(x.gain_p, d), load(x.gain_d, d), error, load(x.goal_v, d) - v, v, step)


@kernel
def component(v, k):
    """x, y or z."""
    if k == 0:
        return v.x
    if k == 1:
        return v.y
    return v.z
