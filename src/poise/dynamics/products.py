"""Accelerations that velocity products give a tree: Coriolis, centrifugal and gyroscopic terms without any force."""

from __future__ import annotations

from poise.dynamics.kinematics import BALL, weigh
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import zero
from poise.kernel.spatial import cross_force, cross_motion, less, no_motion


@kernel
def products_of(m, v, w, t):
    """c = −M⁻¹ C(q, v) v for velocities `v`, in `t.a`, at the configuration that `w` is placed and factored for.

    A Newton-Euler pass outwards gives the wrench p that each link's velocity products take; the articulated inertias of
    `w` give what the tree does instead. `t` has its own velocities, p, u, a and accelerations.
    """
    for i in range(m.n_links):
        velocity = acceleration = no_motion(load(v, 0))
        parent = load(m.link_parent, i)
        if parent >= 0:
            velocity, acceleration = load(t.velocity, parent), load(t.acceleration, parent)
        for k in range(load(m.link_primitive_start, i), load(m.link_primitive_start, i + 1)):
            d = load(m.primitive_v_start, k)
            step = load(w.axis, d) * load(v, d)
            if load(m.primitive_kind, k) == BALL:
                step = step + load(w.axis, d + 1) * load(v, d + 1) + load(w.axis, d + 2) * load(v, d + 2)
            acceleration = acceleration + cross_motion(velocity, step)
            velocity = velocity + step
        store(t.velocity, i, velocity)
        store(t.acceleration, i, acceleration)
        inertia = weigh(m, w, i)
        store(t.p, i, inertia @ acceleration + cross_force(velocity, inertia @ velocity))
    give_way(m, w, t)


@kernel
def products_now(m, w, t):
    """c for the velocities that `w` is placed and factored for, in `t.a`: its wrenches and accelerations of velocity
    products are at hand.
    """
    for i in range(m.n_links):
        store(t.p, i, load(w.gyro, i))
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = eliminated(m, w, t, i, load(t.p, i))
        parent = load(m.link_parent, i)
        if parent >= 0:
            store(t.p, parent, load(t.p, parent) + p + load(w.lag, i))
    for i in range(m.n_links):
        acceleration = load(w.bias, i)
        parent = load(m.link_parent, i)
        if parent >= 0:
            acceleration = acceleration + load(t.acceleration, parent)
        store(t.acceleration, i, given_way(m, w, t, i, acceleration))


@kernel
def eliminated(m, w, t, i, p):
    """What a link's wrench p leaves to its parent, without the joint between them; u of the joint in `t.u`."""
    first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
    for k in range(last - first):
        d = last - 1 - k
        u = less(zero(load(w.inverse, d)), load(w.axis, d), p)
        store(t.u, d, u)
        p = p + load(w.gain, d) * u
    return p


@kernel
def given_way(m, w, t, i, acceleration):
    """Acceleration of a link, from that of its parent; those of the joint between them in `t.a`."""
    for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
        a = less(load(t.u, d) * load(w.inverse, d), acceleration, load(w.gain, d))
        store(t.a, d, a)
        acceleration = acceleration + load(w.axis, d) * a
    return acceleration


@kernel
def give_way(m, w, t):
    """Accelerations of a tree that has to balance the wrenches p of its links, and nothing else."""
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = eliminated(m, w, t, i, load(t.p, i))
        parent = load(m.link_parent, i)
        if parent >= 0:
            store(t.p, parent, load(t.p, parent) + p)
    for i in range(m.n_links):
        acceleration = no_motion(load(w.inverse, 0))
        parent = load(m.link_parent, i)
        if parent >= 0:
            acceleration = load(t.acceleration, parent)
        store(t.acceleration, i, given_way(m, w, t, i, acceleration))
