"""Springs, dampers and drives on single coordinates, explicit or folded into the inertia; gravity compensation.

A linear law on one coordinate, evaluated at the end of a step h, is τ(q + h v + h² a, v + h a) = τ₀ − (h c + h² k) a:
the first part is added to the forces, the second to the articulated inertia's diagonal (LIU eqs. 9-13). With h = 0 it
is explicit. A ball's error is the rotation vector from its rotation to its goal, in the child's axes.
"""

from __future__ import annotations

from typing import Any

from poise.dynamics.kinematics import BALL, load_four, load_quat
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.quat import conjugate, log_rotation, normalize
from poise.kernel.scalars import any_lane, spread, zero
from poise.kernel.spatial import Force, pair
from poise.kernel.trace import formula
from poise.kernel.vec import cross, zero3


@formula
def pull(stiffness: Any, damping: Any, error: Any, v: Any, step: Any) -> Any:
    """Force of a spring and damper at the end of a step, without acceleration terms: k (error − h v) − c v."""
    return stiffness * (error - v * step) - damping * v


@formula
def stiffening(stiffness: Any, damping: Any, step: Any) -> Any:
    """h c + h² k."""
    return (damping + stiffness * step) * step


@kernel
def add_pull(w, d, stiffness, damping, error, v, step):
    """Add one law on one dof."""
    store(w.total, d, load(w.total, d) + pull(stiffness, damping, error, v, step))
    store(w.diagonal, d, load(w.diagonal, d) + stiffening(stiffness, damping, step))


@kernel
def gather_forces(m, s, x, w, dt):
    """Generalized forces at the start of the step, and the terms of their implicit part on the diagonal."""
    for d in range(m.nv):
        tau = load(x.tau, d)
        store(w.total, d, tau)
        store(w.diagonal, d, zero(tau))
    if m.n_compensated > 0:
        compensate_gravity(m, s, w)
    if m.has_passive != 0:
        add_laws(m, s, w, m.dof_stiffness, m.dof_damping, m.q_spring, dt)
    if x.n_gains != 0:
        add_laws(m, s, w, x.gain_p, x.gain_d, x.goal_q, dt)
        for d in range(m.nv):  # dampers of drives act towards a target velocity
            store(w.total, d, load(w.total, d) + load(x.gain_d, d) * load(x.goal_v, d))


@kernel
def compensate_gravity(m, s, w):
    """Forces on coordinates that hold the compensated part of each link's mass against gravity."""
    none = zero(load(s.q, 0))
    for d in range(m.nv):
        store(w.lift, d, none)
    for n in range(m.n_compensated):
        i = load(m.compensated_link, n)
        arm = load(w.r, i) + load(w.R, i) @ load(m.compensated_com, n)
        up = zero3(none) - load(m.gravity, 0) * load(m.compensated_mass, n)
        push = Force(cross(arm, up), up)
        d = load(m.link_dof_start, i + 1) - 1
        while d >= 0:
            store(w.lift, d, load(w.lift, d) + pair(load(w.axis, d), push))
            d = load(m.dof_parent, d)
    for d in range(m.nv):
        store(w.total, d, load(w.total, d) + load(w.lift, d))


@kernel
def add_laws(m, s, w, stiffness, damping, goal, dt):
    """Springs towards `goal` and dampers towards rest, on every dof."""
    for k in range(m.n_primitives):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
        step = spread(dt, load(s.q, 0))
        if load(m.primitive_kind, k) == BALL:
            error = zero3(step)
            if is_stiff(stiffness, d):
                error = log_rotation(conjugate(load_quat(s, j)) @ normalize(load_four(goal, j)))
            for e in range(3):
                add_pull(
                    w, d + e, load(stiffness, d + e), load(damping, d + e), component(error, e), load(s.v, d + e), step
                )
        else:
            error = load(goal, j) - load(s.q, j)
            add_pull(w, d, load(stiffness, d), load(damping, d), error, load(s.v, d), step)


@kernel
def is_stiff(stiffness, d):
    """Whether a ball has a spring in any world; others do not need the error."""
    return any_lane((load(stiffness, d) != 0.0) | (load(stiffness, d + 1) != 0.0) | (load(stiffness, d + 2) != 0.0))


@kernel
def component(v, k):
    """x, y or z."""
    if k == 0:
        return v.x
    if k == 1:
        return v.y
    return v.z
