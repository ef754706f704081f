"""Articulated-body algorithm (ABA; KOK §3, articulated body method) in world axes about O.

Because nothing is transformed between links, a joint of several degrees of freedom is eliminated one axis at a time:
its bias acceleration is added once, on the parent's side, which is the same set of equations. The algorithm has three
passes, so that the terms that depend on the state alone are computed once for any number of forces (KOK §4.3):

    place_links, factor                 depend on the state       lines 3-8, 11, 15, 17, 18
    balance                             depends on the forces     lines 12, 16, 19
    accelerate                          gives the accelerations   lines 21-25
"""

from __future__ import annotations

from poise.dynamics.kinematics import apply_forces, place_links, weigh
from poise.dynamics.passive import gather_forces
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import zero
from poise.kernel.spatial import Motion, articulated, cross_force, less, no_force, no_motion, pair, without
from poise.kernel.vec import zero3


@kernel
def factor(m, w):
    """Articulated inertias, from the leaves to the roots; 1/d and ĥ/d of every dof; I c of every link."""
    eliminate_joints(m, w, w.velocity)


@kernel
def factor_ways(m, w):
    """As `factor`, for displacements: without the terms that depend on velocities."""
    eliminate_joints(m, w, None)


@kernel
def eliminate_joints(m, w, velocity):
    """As `factor`, with the velocities of all links, or None."""
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        inertia = weigh(m, w, i)
        if velocity is not None:
            store(w.inertia, i, inertia)
            store(w.gyro, i, cross_force(load(velocity, i), inertia @ load(velocity, i)))
        I = articulated(inertia)
        if load(m.link_has_children, i) != 0:
            I = I + load(w.articulated, i)
        first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
        for k in range(last - first):
            d = last - 1 - k
            axis = load(w.axis, d)
            h = I @ axis
            if load(m.dof_prescribed, d) == 0:
                inverse = 1.0 / (pair(axis, h) + load(m.dof_armature, d) + load(w.diagonal, d))
                gain = h * inverse
                store(w.inverse, d, inverse)
                store(w.gain, d, gain)
                I = without(I, gain, h)
            else:
                store(w.inverse, d, zero(h.t.x))
                store(w.gain, d, no_force(h.t.x))
                if velocity is not None:
                    store(w.hold, d, h)
        parent = load(m.link_parent, i)
        if parent >= 0:
            if velocity is not None:
                store(w.apparent, i, I)
                store(w.lag, i, I @ load(w.bias, i))
            if load(m.link_is_last_child, i) == 0:
                I = I + load(w.articulated, parent)
            store(w.articulated, parent, I)


@kernel
def factor_velocities(m, w, t):
    """The velocity-dependent part of `factor`, into `t`, with the same bits; `w` has the rest."""
    for i in range(m.n_links):
        velocity = load(t.velocity, i)
        store(t.gyro, i, cross_force(velocity, load(w.inertia, i) @ velocity))
        if load(m.link_parent, i) >= 0:
            store(t.lag, i, load(w.apparent, i) @ load(t.bias, i))


@kernel
def take_factors(m, w, t):
    """Copy the results of `factor` that do not depend on velocities from `w` to `t`, as far as later passes read them.
    There must be no prescribed motion.
    """
    for i in range(m.n_links):
        store(t.inertia, i, load(w.inertia, i))
    for d in range(m.nv):
        store(t.inverse, d, load(w.inverse, d))
        store(t.gain, d, load(w.gain, d))


@kernel
def balance(m, x, w):
    """Forces, from the leaves to the roots: u of every dof."""
    balance_share(m, x, w, None)


@kernel
def accelerate(m, x, w):
    """Accelerations, from the roots to the leaves. The base accelerates by −g, which is gravity."""
    accelerate_share(m, x, w, None)


@kernel
def applied(m, share, x, i):
    """The input of a link, times the share of its tree, which is stored at the tree's first link."""
    if share is None:
        return x
    return x * load(share, load(m.link_root, i))


@kernel
def balance_share(m, x, w, share):
    """As `balance`, with a share of all forces and prescribed accelerations; a share of 0 leaves velocity products."""
    for i in range(m.n_links):
        store(w.p, i, load(w.gyro, i))
    if x.n_forces != 0:
        apply_forces(m, x, w, share)
    carried = no_force(load(x.tau, 0))  # to the link before, in registers: memory would make it wait
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = load(w.p, i) + carried
        first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
        for k in range(last - first):
            d = last - 1 - k
            u = less(applied(m, share, load(w.total, d), i), load(w.axis, d), p)
            store(w.u, d, u)
            p = p + load(w.gain, d) * u
            if load(m.dof_prescribed, d) != 0:
                p = p + load(w.hold, d) * applied(m, share, load(x.prescribed, d), i)
        parent = load(m.link_parent, i)
        carried = no_force(load(x.tau, 0))
        if parent >= 0:
            p = p + load(w.lag, i)
            if parent == i - 1:
                carried = p
            else:
                store(w.p, parent, load(w.p, parent) + p)


@kernel
def accelerate_share(m, x, w, share):
    """As `accelerate`, with a share of gravity and of prescribed accelerations."""
    acceleration = no_motion(load(x.tau, 0))
    for i in range(m.n_links):
        parent = load(m.link_parent, i)
        if parent < 0:
            rest = zero3(load(x.tau, 0))
            acceleration = Motion(rest, applied(m, share, rest - load(m.gravity, 0), i))
        elif parent < i - 1:  # else it is still in registers
            acceleration = load(w.acceleration, parent)
        acceleration = acceleration + load(w.bias, i)
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            a = less(load(w.u, d) * load(w.inverse, d), acceleration, load(w.gain, d))
            if load(m.dof_prescribed, d) != 0:
                a = applied(m, share, load(x.prescribed, d), i)
            store(w.a, d, a)
            acceleration = acceleration + load(w.axis, d) * a
        store(w.acceleration, i, acceleration)


@kernel
def prepare(m, s, x, w, dt):
    """Everything that depends on the state alone: poses, velocities, articulated inertias."""
    place_links(m, s, w)
    gather_forces(m, s, x, w, dt)
    factor(m, w)


@kernel
def articulated_body(m, s, x, w, dt):
    """Accelerations of a tree under given forces; `dt` > 0 takes springs, dampers and drives implicitly."""
    prepare(m, s, x, w, dt)
    balance(m, x, w)
    accelerate(m, x, w)
