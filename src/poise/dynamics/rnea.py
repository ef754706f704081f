"""Inverse dynamics: the recursive Newton-Euler algorithm (RNEA)."""

from __future__ import annotations

from poise.dynamics.kinematics import apply_forces, place_links, weigh_links
from poise.dynamics.passive import gather_forces
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.spatial import Motion, cross_force, pair
from poise.kernel.vec import zero3


@kernel
def newton_euler(m, x, w):
    """Generalized forces u of the accelerations a, with gravity and external forces, before springs and drives."""
    for i in range(m.n_links):
        parent = load(m.link_parent, i)
        if parent < 0:
            base = zero3(load(w.r, i).x)
            acceleration = load(w.bias, i) + Motion(base, base - load(m.gravity, 0))
        else:
            acceleration = load(w.acceleration, parent) + load(w.bias, i)
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            acceleration = acceleration + load(w.axis, d) * load(w.a, d)
        store(w.acceleration, i, acceleration)
        inertia, velocity = load(w.inertia, i), load(w.velocity, i)
        store(w.p, i, inertia @ acceleration + cross_force(velocity, inertia @ velocity))
    if x.n_forces != 0:
        apply_forces(m, x, w, None)
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = load(w.p, i)
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            store(w.u, d, pair(load(w.axis, d), p) + load(w.a, d) * load(m.dof_armature, d))
        parent = load(m.link_parent, i)
        if parent >= 0:
            store(w.p, parent, load(w.p, parent) + p)


@kernel
def inverse_dynamics(m, s, x, w, dt):
    """Generalized forces u that give the accelerations a, after springs, dampers and drives are subtracted."""
    place_links(m, s, w)
    weigh_links(m, w)
    gather_forces(m, s, x, w, dt)
    newton_euler(m, x, w)
    for d in range(m.nv):
        store(w.u, d, load(w.u, d) - load(w.total, d) + load(w.diagonal, d) * load(w.a, d))
