"""Energy, momentum and centre of mass of everything that moves."""

from __future__ import annotations

from typing import Any

from poise.dynamics.kinematics import BALL, load_four, load_quat, place_links, weigh_links
from poise.kernel.jit import kernel
from poise.kernel.memory import Real, View, load, store
from poise.kernel.quat import conjugate, log_rotation, normalize
from poise.kernel.scalars import select, zero
from poise.kernel.spatial import Force, kinetic_energy, no_force
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, cross, dot, zero3

TOTALS = View(
    "Totals",
    kinetic=Real,  # of the links; J
    drives=Real,  # of the armatures, which have no momentum; J
    gravity=Real,  # J
    spring=Real,  # J
    mass=Real,  # kg
    com=Vec3,  # m
    momentum=Force,  # angular, about the centre of mass; linear
)


@formula
def sum_of_squares(v: Any, kx: Any, ky: Any, kz: Any) -> Any:
    """kx x² + ky y² + kz z²."""
    return kx * v.x * v.x + ky * v.y * v.y + kz * v.z * v.z


@kernel
def spring_energy(m, s):
    """½ k error² of all springs."""
    total = zero(load(s.q, 0))
    for k in range(m.n_primitives):
        j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
        if load(m.primitive_kind, k) == BALL:
            rest = normalize(load_four(m.q_spring, j))
            error = log_rotation(conjugate(load_quat(s, j)) @ rest)
            stiffness = load(m.dof_stiffness, d), load(m.dof_stiffness, d + 1), load(m.dof_stiffness, d + 2)
            total = total + sum_of_squares(error, stiffness[0], stiffness[1], stiffness[2])
        else:
            stretch = load(s.q, j) - load(m.q_spring, j)
            total = total + stretch * stretch * load(m.dof_stiffness, d)
    return total * 0.5


@kernel
def compensated_energy(m, w):
    """Potential energy that gravity compensation takes away."""
    energy = zero(load(w.r, 0).x)
    for n in range(m.n_compensated):
        i = load(m.compensated_link, n)
        place = load(w.origin, load(m.link_root, i)) + load(w.r, i) + load(w.R, i) @ load(m.compensated_com, n)
        energy = energy + dot(load(m.gravity, 0), place) * load(m.compensated_mass, n)
    return energy


@kernel
def add_up(m, s, w, t):
    """All totals. Positions are taken from the first tree's O and put back into the world at the end."""
    place_links(m, s, w)
    weigh_links(m, w)
    zero_vec = zero3(load(s.q, 0))
    kinetic, mass, moment = zero_vec.x, zero_vec.x, zero_vec
    momentum = no_force(zero_vec.x)
    first = load(w.origin, 0)
    for i in range(m.n_links):
        velocity, inertia = load(w.velocity, i), load(w.inertia, i)
        kinetic = kinetic + kinetic_energy(inertia, velocity)
        offset = load(w.origin, load(m.link_root, i)) - first
        p = inertia @ velocity
        momentum = momentum + Force(p.t + cross(offset, p.f), p.f)
        mass = mass + inertia.m
        moment = moment + inertia.h + offset * inertia.m
    drives = zero_vec.x
    for d in range(m.nv):
        v = load(s.v, d)
        drives = drives + v * v * load(m.dof_armature, d)
    com = moment * select(mass > 0.0, 1.0 / mass, zero_vec.x)  # without mass O stands for the centre
    store(t.kinetic, 0, kinetic)
    store(t.drives, 0, drives * 0.5)
    store(t.gravity, 0, -dot(load(m.gravity, 0), moment + first * mass))
    if m.n_compensated > 0:
        store(t.gravity, 0, load(t.gravity, 0) + compensated_energy(m, w))
    store(t.spring, 0, spring_energy(m, s))
    store(t.mass, 0, mass)
    store(t.com, 0, first + com)
    store(t.momentum, 0, Force(momentum.t - cross(com, momentum.f), momentum.f))
