"""Responses to forces: acceleration deltas (KOK §4.3) and M⁻¹ times many forces at once.

Both use the articulated inertias that `aba.prepare` computed. The tree's axes are in one frame, so that a force on a
link is the same six numbers all along the path to the root, and the path is a chain of degrees of freedom.

The forces may be lanes while the tree is one world in float64: eight test forces an instruction, as KOK §4.2 suggests
("the m+1 calculations of accelerations are independent, they can be computed in parallel").
"""

from __future__ import annotations

from poise.dynamics.kinematics import arm
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Real, View, load, store
from poise.kernel.scalars import zero
from poise.kernel.spatial import Force, Motion, less, no_force, no_motion, pair
from poise.kernel.vec import cross

RESPONSE = View(
    "Response",
    n_forces=Count,  # 0 where `respond` may skip `force`
    force=Force,  # on each body, world axes, moment about the body's origin; N·m, N
    tau=Real,  # on each dof; N or N·m
    p=Force,
    share=Real,  # du/d of each dof; zero between calls
    a=Real,  # change of each dof's acceleration by the forces; m/s² or rad/s²
    acceleration=Motion,  # and in each link's, world axes at O
)


@kernel
def spread_acceleration(m, w, t):
    """KOK §4.3, lines 18-22: from du/d to accelerations. Resets the shares to zero (lines 2-4)."""
    acceleration = no_motion(load(t.share, 0))
    for d in range(m.nv):
        parent = load(m.dof_parent, d)
        if parent < 0:
            acceleration = no_motion(load(t.share, 0))
        elif parent < d - 1:  # else it is still in registers
            acceleration = load(t.acceleration, load(m.dof_link, parent))
        a = less(load(t.share, d), acceleration, load(w.gain, d))
        store(t.a, d, a)
        store(t.share, d, zero(a))
        acceleration = acceleration + load(w.axis, d) * a
        if load(m.dof_ends_link, d) != 0:
            store(t.acceleration, load(m.dof_link, d), acceleration)


@kernel
def carry(m, w, t, d, f):
    """KOK §4.3, lines 5-16: propagates a force f from dof d to the root (−p of the paper).

    The next dof's share is s·(f − g u) = s·f − (s·g) u, so that it does not wait for the new force.
    """
    if d < 0:
        return
    u = pair(load(w.axis, d), f)
    while d >= 0:
        store(t.share, d, u * load(w.inverse, d))
        gain = load(w.gain, d)
        d = load(m.dof_parent, d)
        if d >= 0:
            axis = load(w.axis, d)
            ahead, coupling = pair(axis, f), pair(axis, gain)
            f = f - gain * u
            u = ahead - coupling * u


@kernel
def force_delta(m, w, t, body):
    """Accelerations caused by a test force on one moving body (the one at `body` in `t.force`)."""
    link = load(m.body_link, body)
    f = load(t.force, body)
    f = Force(f.t + cross(arm(m, w, body), f.f), f.f)
    carry(m, w, t, load(m.link_dof_start, link + 1) - 1, f)
    spread_acceleration(m, w, t)


@kernel
def torque_delta(m, w, t, dof):
    """Accelerations caused by a test torque on one joint axis (the one at `dof` in `t.tau`)."""
    u = load(t.tau, dof)
    store(t.share, dof, u * load(w.inverse, dof))
    carry(m, w, t, load(m.dof_parent, dof), load(w.gain, dof) * -u)
    spread_acceleration(m, w, t)


@kernel
def respond(m, w, t):
    """Accelerations caused by forces on any bodies and torques on any joints together: M⁻¹ (τ + Σ Jᵀ f)."""
    for i in range(m.n_links):
        store(t.p, i, no_force(load(t.tau, 0)))
    if t.n_forces != 0:
        for b in range(m.n_bodies):
            link = load(m.body_link, b)
            if link >= 0:
                f = load(t.force, b)
                store(t.p, link, load(t.p, link) - Force(f.t + cross(arm(m, w, b), f.f), f.f))
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        p = load(t.p, i)
        first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
        for k in range(last - first):
            d = last - 1 - k
            u = less(load(t.tau, d), load(w.axis, d), p)
            store(t.share, d, u * load(w.inverse, d))
            p = p + load(w.gain, d) * u
        parent = load(m.link_parent, i)
        if parent >= 0:
            store(t.p, parent, load(t.p, parent) + p)
    spread_acceleration(m, w, t)
