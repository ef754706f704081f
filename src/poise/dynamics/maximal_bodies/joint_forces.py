"""Separate bodies with joints in a step: gyroscopic torques, and how gaps of joints are closed.

Joints are eliminated in tree order: with V = V_parent + S u + β for every link (β closes gaps), the bodies' equations
of motion and the multipliers of all joints are block-sparse in the order of the tree, and their LDLᵀ factorization is
the articulated-body recursion over the present axes (Baraff 1996; `dynamics.aba.factor`). It takes time in proportion
to the number of bodies.
"""

from __future__ import annotations

from poise.dynamics.aba import factor_ways
from poise.dynamics.integrate import load_vec, store_quat, store_vec
from poise.dynamics.kinematics import exp_turn, load_four
from poise.dynamics.maximal_bodies.body_state import CENTRE, OWN, SPEED, SPIN, centre_of, nudge_body, set_twist
from poise.dynamics.maximal_bodies.fit_coordinates import FITTED, change_late
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.quat import exp_rotation, normalize, rotation
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, select, sqrt, zero
from poise.kernel.spatial import Force, Motion, less, motion_at, no_force, no_motion
from poise.kernel.trace import formula
from poise.kernel.vec import adjugate_times, cross, determinant, dot, full, rotate_sym, skew, transpose_times, zero3

EXPLICIT, IMPLICIT, MOMENTUM = range(3)
"""Gyroscopic torques: LIU's, explicit; implicit, which meets Euler's equation at the end of the step; or none, as the
state is the angular momentum.
"""
SLOW, BRISK = 0.02, 0.1
"""Rotations in a step up to which two, three Newton steps find the spin at the end; rad. Larger ones take four. If the
spin changes in a step by about the size of the rotation, a Newton step multiplies the error by its square."""
CLOSED = 1e-10
"""Largest gap that counts as closed; rad or m. Also the largest slip; rad/s or m/s."""
HELD = 1e30
"""Inertia of a coordinate that is held."""
SINGULAR = 1e-12
"""Determinant of an inertia, over the cube of its trace, that counts as zero."""


@formula
def nearer_spin(I, spin, after, dt):
    """A Newton step from `after` towards the root of I (ω⁺ − ω) + h ω⁺ × I ω⁺ = 0."""
    whole, size, momentum = full(I), I.xx + I.yy + I.zz, I @ after
    residual = I @ (after - spin) + cross(after, momentum) * dt
    slope = whole + (skew(after) @ whole - skew(momentum)) * dt
    det = determinant(slope)
    sound = fabs(det) > SINGULAR * size * size * size
    k = 1.0 / select(sound, det, zero(det) + 1.0)
    return after - select(sound, adjugate_times(slope, residual) * k, residual * 0.0)


@formula
def no_stronger(I, spin, after):
    """The spin `after`, scaled down where its energy exceeds that of `spin`."""
    energy, now = dot(spin, I @ spin), dot(after, I @ after)
    more = now > energy
    return after * select(more, sqrt(energy / select(more, now, zero(now) + 1.0)), zero(now) + 1.0)


@kernel
def spin_after(I, spin, dt):
    """Spin of a free body after a step, in its axes, from I (ω⁺ − ω) + h ω⁺ × I ω⁺ = 0, by Newton's method.

    From ω⁺ · I (ω⁺ − ω) = 0 it follows that energy is lost, never gained: ½ (ω⁺ − ω) · I (ω⁺ − ω). Where rotations are
    so large that the method does not converge, the spin is scaled down to that bound. A body without inertia about some
    axis keeps its spin.
    """
    after = nearer_spin(I, spin, nearer_spin(I, spin, spin, dt), dt)
    turn2 = dot(spin, spin) * (dt * dt)
    slow, brisk = turn2 < SLOW * SLOW, turn2 < BRISK * BRISK
    if not all_lanes(slow):
        after = select(slow, after, nearer_spin(I, spin, after, dt))
    if not all_lanes(brisk):
        after = select(brisk, after, nearer_spin(I, spin, after, dt))
    return no_stronger(I, spin, after)


@kernel
def turn_alone(m, w, f, i, dt):
    """Gyroscopic torque that a body has to balance, in world axes: −I (ω⁺ − ω)/h of the free body."""
    R, I, spin = load(w.R, i), load(m.link_inertia, i), load_vec(f.own, OWN * i + SPIN)
    if f.turning == IMPLICIT:
        own = transpose_times(R, spin)
        return R @ ((I @ (own - spin_after(I, own, dt))) * (1.0 / dt))
    if f.turning == EXPLICIT:
        return cross(spin, rotate_sym(R, I) @ spin)
    return zero3(spin.x)


@kernel
def lay_turning(m, w, f, dt):
    """Write the gyroscopic terms in place of a tree's velocity products: the bodies' own velocities already include
    those of their centres of mass.
    """
    for i in range(m.n_links):
        store(w.gyro, i, Force(turn_alone(m, w, f, i, dt), zero3(load(w.a, 0))))


@kernel
def turn_body(m, w, f, i, spin, dt):
    """Rotate a body again from the beginning of a step, by the mean of the spin that its momentum implies over the
    step: ω + h ω̇/2 + h² ω̇ × ω/12 (Buss 2000, the augmented second-order method).
    """
    R, I = load(w.R, i), load(m.link_inertia, i)
    own = transpose_times(R, spin)
    pull = cross(I @ own, own)
    rate = adjugate_times(full(I), pull) * (1.0 / determinant(full(I)))
    mean = own + rate * (0.5 * dt) + cross(rate, own) * (dt * dt / 12.0)
    store_quat(f.own, OWN * i, normalize(load_four(f.before, OWN * i) @ exp_rotation(mean * dt)))


@kernel
def keep_momentum(m, f):
    """Spins after a step that conserve angular momentum: I(R⁺) ω⁺ = I(R) ω."""
    for i in range(m.n_links):
        I, spin = load(m.link_inertia, i), load_vec(f.own, OWN * i + SPIN)
        before, after = rotation(load_four(f.before, OWN * i)), rotation(load_four(f.own, OWN * i))
        momentum = transpose_times(after, before @ (I @ transpose_times(before, spin)))
        spin = adjugate_times(full(I), momentum) * (1.0 / determinant(full(I)))
        store_vec(f.own, OWN * i + SPIN, after @ spin)


# ---- closing gaps ----------------------------------------------------------------------------------------------------


@kernel
def momentum_of(m, w, i, motion):
    """Momentum about O of a body along a motion, computed at its centre of mass."""
    R, centre = load(w.R, i), centre_of(m, w, i)
    push = motion_at(motion, centre) * load(m.link_mass, i)
    return Force(R @ (load(m.link_inertia, i) @ transpose_times(R, motion.w)) + cross(centre, push), push)


@kernel
def least_displacements(m, w):
    """Motions of all links, in `w.acceleration`, and of joints, in `w.u`, that add `w.bias` at every joint and are
    the least in the mass metric: internal impulses alone produce them, so that no centre of mass moves, to first order.

    With locked joints each link would move by the sum of the biases from it to the root. The forces that would stop
    this motion act on the joints, along the axes that `factor` was called for.
    """
    none, still = no_force(load(w.a, 0)), no_motion(load(w.a, 0))
    for i in range(m.n_links):
        motion = load(w.bias, i)
        if load(m.link_parent, i) >= 0:
            motion = motion + load(w.acceleration, load(m.link_parent, i))
        store(w.acceleration, i, motion)
        store(w.p, i, momentum_of(m, w, i, motion))
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
            store(w.p, parent, load(w.p, parent) + p)
    for i in range(m.n_links):
        given = still
        if load(m.link_parent, i) >= 0:
            given = load(w.bias, load(m.link_parent, i))
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            a = less(load(w.u, d) * load(w.inverse, d), given, load(w.gain, d))
            store(w.u, d, a)
            given = given + load(w.axis, d) * a
        store(w.bias, i, given)
        store(w.acceleration, i, load(w.acceleration, i) + given)


@kernel
def bend_ways(m, s, w, ahead, f, dt):
    """Correct the straight paths of bodies with joints: impulses along the joints at the beginning of the step, in `w`,
    remove the gaps that open during the step, from the positions at its end, in `ahead`, and from the velocities.

    That is the step of RATTLE (Andersen 1983): it conserves angular momentum, and energy at the order at which
    pure displacements lose it. Gaps from before the step leave no velocity: see `close_gaps`. `factor` must have run
    for `w`, and `read_joints.place_roughly` for `ahead`, whose coordinates change too.
    """
    for i in range(m.n_links):
        root, opened = load(m.link_root, i), load(f.gap, i) - load(f.old_gap, i)
        shift = load(ahead.origin, root) - load(w.origin, root)
        store(w.bias, i, Motion(-opened.w, cross(opened.w, shift) - opened.v))
    least_displacements(m, w)
    for i in range(m.n_links):
        motion = load(w.acceleration, i)
        turn, way = motion.w, motion_at(motion, centre_of(m, w, i))
        store_quat(f.own, OWN * i, normalize(exp_turn(turn) @ load_four(f.own, OWN * i)))
        store_vec(f.own, OWN * i + CENTRE, load_vec(f.own, OWN * i + CENTRE) + way)
        store_vec(f.own, OWN * i + SPIN, load_vec(f.own, OWN * i + SPIN) + turn * (1.0 / dt))
        store_vec(f.own, OWN * i + SPEED, load_vec(f.own, OWN * i + SPEED) + way * (1.0 / dt))
    for d in range(m.nv):
        store(f.late, d, load(f.late, d) + load(w.u, d))
        store(ahead.total, d, load(ahead.total, d) + load(w.u, d))
    change_late(m, s, ahead, f, FITTED)


@kernel
def hold(m, w, d, there):
    """Hold a coordinate while gaps are closed, at its value before it was fitted, in the worlds of a mask."""
    store(w.diagonal, d, select(there, zero(load(w.a, 0)) + HELD, load(w.diagonal, d)))


@kernel
def let_go(m, w):
    """Release all held coordinates."""
    for d in range(m.nv):
        store(w.diagonal, d, zero(load(w.a, 0)))


@kernel
def lay_gaps(m, w, f):
    """Write the displacements that joints need into `w.bias`, and those of held coordinates into `w.total`; returns the
    worlds in which they are not negligible.
    """
    largest = zero(load(w.a, 0))
    for i in range(m.n_links):
        mend = -load(f.gap, i)
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            back = select(load(w.diagonal, d) > 0.0, -load(w.total, d), zero(largest))
            store(w.total, d, back)
            mend = mend + load(w.axis, d) * back
        store(w.bias, i, mend)
        largest = maximum(largest, maximum(dot(mend.w, mend.w), dot(mend.v, mend.v)))
    return largest > CLOSED * CLOSED


@kernel
def close_gaps(m, s, w, f):
    """Displace bodies so that joints lose their gaps, and change coordinates with them; between
    `read_joints.place_roughly` and `read_joints.settle`.
    """
    there = lay_gaps(m, w, f)
    if any_lane(there):
        factor_ways(m, w)
        least_displacements(m, w)
        for i in range(m.n_links):
            nudge_body(m, w, f, i, load(w.acceleration, i), there)
        for d in range(m.nv):
            more = select(there, load(w.u, d) + load(w.total, d), zero(load(w.a, 0)))
            store(f.late, d, load(f.late, d) + more)
    change_late(m, s, w, f, FITTED)


@kernel
def stop_slips(m, w, f):
    """Remove the velocities of bodies beside their joints; between `read_joints.settle` and
    `read_joints.speed_bodies`.
    """
    largest = zero(load(w.a, 0))
    for i in range(m.n_links):
        slip = load(f.slip, i)
        store(w.bias, i, -slip)
        largest = maximum(largest, maximum(dot(slip.w, slip.w), dot(slip.v, slip.v)))
    there = largest > CLOSED * CLOSED
    if not any_lane(there):
        return
    factor_ways(m, w)
    least_displacements(m, w)
    for i in range(m.n_links):
        spin, speed = load_vec(f.own, OWN * i + SPIN), load_vec(f.own, OWN * i + SPEED)
        set_twist(m, w, f, i, load(w.velocity, i) + load(w.acceleration, i))
        store_vec(f.own, OWN * i + SPIN, select(there, load_vec(f.own, OWN * i + SPIN), spin))
        store_vec(f.own, OWN * i + SPEED, select(there, load_vec(f.own, OWN * i + SPEED), speed))
