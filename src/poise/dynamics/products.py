"""Accelerations from velocity products: Coriolis, centrifugal and gyroscopic terms without any force."""

from __future__ import annotations

from poise.dynamics.kinematics import BALL
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import zero
from poise.kernel.spatial import cross_force, cross_motion, less, no_force, no_motion


@kernel
def products_of(m, v, w, t):
    """c = −M⁻¹ C(q, v) v for velocities `v`, in `t.a`, at the configuration for which `w` was placed and factored.

    An outward Newton-Euler pass gives the wrench p of each link's velocity products; with the articulated inertias of
    `w`, the tree's accelerations follow. `t` has its own velocities, p, u, a and accelerations.
    """
    velocity = acceleration = no_motion(load(v, 0))
    for i in range(m.n_links):
        parent = load(m.link_parent, i)
        if parent < 0:
            velocity = acceleration = no_motion(load(v, 0))
        elif parent < i - 1:  # else they are still in registers
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
        inertia = load(w.inertia, i)
        store(t.p, i, inertia @ acceleration + cross_force(velocity, inertia @ velocity))
    give_way(m, w, t, None, None)


@kernel
def products_now(m, w, t):
    """c for the velocities for which `w` was placed and factored, in `t.a`: reuses its wrenches and accelerations of
    velocity products.
    """
    for i in range(m.n_links):
        store(t.p, i, load(w.gyro, i))
    give_way(m, w, t, w.lag, w.bias)


@kernel
def give_way(m, w, t, lag, bias):
    """Accelerations of a tree under the wrenches p of its links alone. `lag` and `bias` add the links' bias
    accelerations; None where p includes them.
    """
    carried = no_force(load(w.inverse, 0))  # to the link before, in registers: memory would make it wait
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = eliminated(m, w, t, i, load(t.p, i) + carried)
        parent = load(m.link_parent, i)
        carried = no_force(load(w.inverse, 0))
        if parent >= 0:
            if lag is not None:
                p = p + load(lag, i)
            if parent == i - 1:
                carried = p
            else:
                store(t.p, parent, load(t.p, parent) + p)
    acceleration = no_motion(load(w.inverse, 0))
    for i in range(m.n_links):
        parent = load(m.link_parent, i)
        if parent < 0:
            acceleration = no_motion(load(w.inverse, 0))
        elif parent < i - 1:
            acceleration = load(t.acceleration, parent)
        if bias is not None:
            acceleration = acceleration + load(bias, i)
        acceleration = given_way(m, w, t, i, acceleration)
        store(t.acceleration, i, acceleration)


@kernel
def eliminated(m, w, t, i, p):
    """The part of a link's wrench p that its joint passes on to the parent; u of the joint in `t.u`."""
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
