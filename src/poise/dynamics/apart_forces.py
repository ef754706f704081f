"""What bodies that are held by joints do in a step: how they turn on their own, and how gaps of joints are closed.

Joints are eliminated in tree order: with V = V_parent + S u + β for every link (β is what closes gaps), the bodies'
equations of motion and the multipliers of all joints are block-sparse in the order of the tree, and their LDLᵀ
factorization is the articulated body recursion over the axes as they are (Baraff 1996; `dynamics.abm.factor`). It takes
time in proportion to the number of bodies.
"""

from __future__ import annotations

from poise.dynamics.abm import factor
from poise.dynamics.apart import CENTRE, OWN, SPEED, SPIN, centre_of, move_body, set_twist
from poise.dynamics.integrate import load_vec, store_quat, store_vec
from poise.dynamics.kinematics import load_four
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.quat import exp_rotation, normalize, rotation
from poise.kernel.scalars import fabs, select, sqrt, zero
from poise.kernel.spatial import Force, Motion, less, motion_at, no_force, no_motion
from poise.kernel.trace import formula
from poise.kernel.vec import adjugate_times, cross, determinant, dot, full, rotate_sym, skew, transpose_times, zero3

EXPLICIT, IMPLICIT, MOMENTUM = range(3)
"""How bodies turn on their own: by LIU's torque where they are; by the one that meets Euler's equation at the end of
the step; or by none, where the state is the angular momentum.
"""
NEWTONS = 4
"""Steps towards the spin at the end."""
SINGULAR = 1e-12
"""Determinant of an inertia, over the cube of its trace, that counts as nought."""


@formula
def spin_after(I, spin, dt):
    """Spin in the body's axes after a step on its own, from I (ω⁺ − ω) + h ω⁺ × I ω⁺ = 0, by Newton's method.

    From ω⁺ · I (ω⁺ − ω) = 0 follows that energy is lost, never gained: ½ (ω⁺ − ω) · I (ω⁺ − ω). Where turns are so
    large that the method stops short of that, the spin is shortened to it. What has no inertia about some axis stays.
    """
    whole = full(I)
    after, size = spin, I.xx + I.yy + I.zz
    for _ in range(NEWTONS):
        momentum = I @ after
        residual = I @ (after - spin) + cross(after, momentum) * dt
        slope = whole + (skew(after) @ whole - skew(momentum)) * dt
        det = determinant(slope)
        sound = fabs(det) > SINGULAR * size * size * size
        k = 1.0 / select(sound, det, zero(det) + 1.0)
        after = after - select(sound, adjugate_times(slope, residual) * k, residual * 0.0)
    energy, now = dot(spin, I @ spin), dot(after, I @ after)
    more = now > energy
    return after * select(more, sqrt(energy / select(more, now, zero(now) + 1.0)), zero(now) + 1.0)


@kernel
def turn_alone(m, w, f, i, dt):
    """Torque that a body has to balance because it turns, in world axes: −I (ω⁺ − ω)/h of a body on its own."""
    R, I, spin = load(w.R, i), load(m.link_inertia, i), load_vec(f.own, OWN * i + SPIN)
    if f.turning == IMPLICIT:
        own = transpose_times(R, spin)
        return R @ ((I @ (own - spin_after(I, own, dt))) * (1.0 / dt))
    if f.turning == EXPLICIT:
        return cross(spin, rotate_sym(R, I) @ spin)
    return zero3(spin.x)


@kernel
def lay_turning(m, w, f, dt):
    """In place of what a tree has to balance because it moves: its bodies' own velocities already count those of their
    centres of mass.
    """
    for i in range(m.n_links):
        store(w.gyro, i, Force(turn_alone(m, w, f, i, dt), zero3(load(w.a, 0))))


@kernel
def turn_body(m, w, f, i, spin, dt):
    """Turn a body once more, from where it was at the beginning of a step, by the mean of the spin that its momentum
    gives it on the way: ω + h ω̇/2 + h² ω̇ × ω/12 (Buss 2000, the augmented second-order method).
    """
    R, I = load(w.R, i), load(m.link_inertia, i)
    own = transpose_times(R, spin)
    pull = cross(I @ own, own)
    rate = adjugate_times(full(I), pull) * (1.0 / determinant(full(I)))
    mean = own + rate * (0.5 * dt) + cross(rate, own) * (dt * dt / 12.0)
    store_quat(f.own, OWN * i, normalize(load_four(f.before, OWN * i) @ exp_rotation(mean * dt)))


@kernel
def keep_momentum(m, f):
    """Spins after a step that keep the angular momenta, from before it: I(R⁺) ω⁺ = I(R) ω."""
    for i in range(m.n_links):
        I, spin = load(m.link_inertia, i), load_vec(f.own, OWN * i + SPIN)
        before, after = rotation(load_four(f.before, OWN * i)), rotation(load_four(f.own, OWN * i))
        momentum = transpose_times(after, before @ (I @ transpose_times(before, spin)))
        spin = adjugate_times(full(I), momentum) * (1.0 / determinant(full(I)))
        store_vec(f.own, OWN * i + SPIN, after @ spin)


# ---- closing gaps ----------------------------------------------------------------------------------------------------


@kernel
def least_displacements(m, w):
    """Motions of all links, in `w.acceleration`, that add `w.bias` at every joint and move the least mass: internal
    impulses alone make them, so that no centre of mass moves, to first order.
    """
    none = no_force(load(w.a, 0))
    for i in range(m.n_links):
        store(w.p, i, none)
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = load(w.p, i)
        first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
        for k in range(last - first):
            d = last - 1 - k
            u = less(none.t.x, load(w.axis, d), p)
            store(w.u, d, u)
            p = p + load(w.gain, d) * u
        parent = load(m.link_parent, i)
        if parent >= 0:
            store(w.p, parent, load(w.p, parent) + p + load(w.lag, i))
    for i in range(m.n_links):
        motion = no_motion(load(w.a, 0))
        if load(m.link_parent, i) >= 0:
            motion = load(w.acceleration, load(m.link_parent, i))
        motion = motion + load(w.bias, i)
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            motion = motion + load(w.axis, d) * less(load(w.u, d) * load(w.inverse, d), motion, load(w.gain, d))
        store(w.acceleration, i, motion)


@kernel
def bend_ways(m, w, ahead, f, dt):
    """Let joints bend the straight ways of their bodies: impulses along the joints as they are at the beginning of the
    step, in `w`, take away what gaps it opens, from the places at its end, which `ahead` has, and from the speeds.

    That is the step of RATTLE (Andersen 1983): angular momentum is kept, and energy neither gained nor lost at the
    order at which mere displacements lose it. Gaps from before the step leave no speed behind: see `close_gaps`.
    """
    for i in range(m.n_links):
        root, opened = load(m.link_root, i), load(f.gap, i) - load(f.old_gap, i)
        shift = load(ahead.origin, root) - load(w.origin, root)
        store(w.bias, i, Motion(-opened.w, cross(opened.w, shift) - opened.v))
    factor(m, w)
    least_displacements(m, w)
    for i in range(m.n_links):
        motion = load(w.acceleration, i)
        turn, way = motion.w, motion_at(motion, centre_of(m, w, i))
        store_quat(f.own, OWN * i, normalize(exp_rotation(turn) @ load_four(f.own, OWN * i)))
        store_vec(f.own, OWN * i + CENTRE, load_vec(f.own, OWN * i + CENTRE) + way)
        store_vec(f.own, OWN * i + SPIN, load_vec(f.own, OWN * i + SPIN) + turn * (1.0 / dt))
        store_vec(f.own, OWN * i + SPEED, load_vec(f.own, OWN * i + SPEED) + way * (1.0 / dt))


@kernel
def close_gaps(m, w, f):
    """Displace bodies so that joints lose their gaps; `apart.settle` was there, and is to come again."""
    for i in range(m.n_links):
        store(w.bias, i, -load(f.gap, i))
    factor(m, w)
    least_displacements(m, w)
    for i in range(m.n_links):
        move_body(m, w, f, i, load(w.acceleration, i), 1.0)


@kernel
def stop_slips(m, w, f):
    """Take away what bodies move beside their joints; `apart.settle` was there, and is to come again."""
    for i in range(m.n_links):
        store(w.bias, i, -load(f.slip, i))
    factor(m, w)
    least_displacements(m, w)
    for i in range(m.n_links):
        set_twist(m, w, f, i, load(w.velocity, i) + load(w.acceleration, i))
