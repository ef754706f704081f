"""A step of bodies that are held by joints, at velocity level: VON §3.3, with the rows of the tree's step on top.

Impulses, rows, islands and displacements are those of `velocity`: what differs is where links are, how they move
without rows, and how they go on from there.
"""

from __future__ import annotations

from poise.constraints.motor_rows import add_motor_forces
from poise.constraints.tree_values import spread_velocity
from poise.dynamics.abm import accelerate, balance, factor
from poise.dynamics.apart import (
    forget,
    is_seen,
    keep_face,
    note_changes,
    note_led,
    place_roughly,
    see,
    settle,
    settle_placed,
    speed_bodies,
    take_over,
)
from poise.dynamics.apart_bodies import OWN, centre_of, move_body, own_twist, set_twist
from poise.dynamics.apart_fit import fit, lay_square
from poise.dynamics.apart_forces import (
    MOMENTUM,
    bend_ways,
    close_gaps,
    hold,
    keep_momentum,
    lay_turning,
    least_displacements,
    let_go,
    stop_slips,
    turn_body,
)
from poise.dynamics.integrate import displace, follow, is_sound, keep
from poise.dynamics.kinematics import carry_on, set_out
from poise.dynamics.passive import gather_forces
from poise.formulations.apart_haste import find_haste, hurries
from poise.formulations.haste import HASTE
from poise.formulations.rules import (
    BY_DISPLACEMENT,
    DIVERGED,
    DONE,
    DRIVEN,
    HASTY,
    THE_REST,
    TOO_LONG,
    UNLESS_HASTY,
    UNLESS_LONG,
    WITH_LOOPS,
    look_ahead,
)
from poise.formulations.velocity import end_speeds, find_impulses, foresee
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, zero
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import cross, zero3


@kernel
def keep_own(m, f):
    """Remember the bodies' states, and gaps, at the beginning of a step."""
    for k in range(OWN * m.n_links):
        store(f.before, k, load(f.own, k))
    for i in range(m.n_links):
        store(f.old_gap, i, load(f.gap, i))


@kernel
def drift(m, w, f, o, dt):
    """How joints are to end the step: their speeds, and with BY_SPEED what closes gaps (VON eq. 10, α = erp/h)."""
    none = no_motion(load(w.a, 0))
    for i in range(m.n_links):
        mend = none
        if o.stabilize != BY_DISPLACEMENT:
            mend = load(f.gap, i) * (load(o.erp, 0) * (-1.0 / dt))
            store(w.drift, i, mend)
        store(w.bias, i, (mend - load(f.slip, i)) * (1.0 / dt))


@kernel
def rate_joints(m, s, w, f):
    """Accelerations that joints allow their links at their present velocities, with VON eq. 11 for gaps and slips."""
    for i in range(m.n_links):
        velocity = no_motion(load(w.a, 0))
        if load(m.link_parent, i) >= 0:
            velocity = load(w.velocity, load(m.link_parent, i))
        origin, R, r = set_out(m, w, i, load(w.a, 0))
        _, _, _, _, bias, _ = carry_on(m, s, w, i, origin, R, r, velocity)
        store(w.bias, i, bias - load(f.gap, i) * load(f.alpha, 0) - load(f.slip, i) * load(f.beta, 0))


@kernel
def going_straight(m, w, i):
    """Spatial acceleration of a body on its own, which keeps its spin and the velocity of its centre of mass."""
    return Motion(zero3(load(w.a, 0)), -carried(m, w, i))


@kernel
def find_ways(m, s, w):
    """Spatial accelerations of bodies, in `w.coast`, that no forces act on but those of their joints: what these take
    is that of least mass-weighted square, as in `bend_ways`, which bends the ways of bodies by it. `factor` was there.
    """
    none = no_motion(load(w.a, 0))
    for i in range(m.n_links):
        velocity, above = none, none
        if load(m.link_parent, i) >= 0:
            velocity = load(w.velocity, load(m.link_parent, i))
            above = going_straight(m, w, load(m.link_parent, i))
        origin, R, r = set_out(m, w, i, load(w.a, 0))
        _, _, _, _, bias, _ = carry_on(m, s, w, i, origin, R, r, velocity)
        store(w.bias, i, bias + above - going_straight(m, w, i))
    least_displacements(m, w)
    for i in range(m.n_links):
        store(w.coast, i, going_straight(m, w, i) + load(w.acceleration, i))


@kernel
def carried(m, w, i):
    """ω × v of a body's centre of mass: what its velocity changes about a point that stays."""
    velocity = load(w.velocity, i)
    return cross(velocity.w, motion_at(velocity, centre_of(m, w, i)))


@kernel
def has_drive(m, i):
    """Whether a coordinate of a link's joints has an inertia of its own."""
    drives = 0
    for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
        if load(m.dof_armature, d) != 0.0:
            drives += 1
    return drives != 0


@kernel
def lead_drives(m, s, w, f):
    """Forces on drives with an inertia, which goes with v̇: a step that keeps the axes S where they are has

        a = v̇ + S⁺ (Ṡ v + (0, ω × v_c) − (0, ω × v_c of the parent))

    as velocities of bodies are those of their centres of mass, c; so that armature times the difference is too much.
    """
    for i in range(m.n_links):
        first, n = load(m.link_dof_start, i), load(m.link_dof_start, i + 1) - load(m.link_dof_start, i)
        if has_drive(m, i):
            velocity = no_motion(load(w.a, 0))
            turning = carried(m, w, i)
            if load(m.link_parent, i) >= 0:
                velocity = load(w.velocity, load(m.link_parent, i))
                turning = turning - carried(m, w, load(m.link_parent, i))
            origin, R, r = set_out(m, w, i, load(w.a, 0))
            _, _, _, _, bias, pivot = carry_on(m, s, w, i, origin, R, r, velocity)
            lay_square(w, f, first, n, pivot)
            fit(w, f, first, n, pivot, bias.w, motion_at(bias, pivot) + turning)
            for a in range(n):
                store(f.lead, first + a, load(f.change, a) * load(m.dof_armature, first + a))
        else:
            for d in range(first, first + n):
                store(f.lead, d, zero(load(w.a, 0)))


@kernel
def add_lead(m, w, f, sign):
    """To what acts, or off it."""
    for d in range(m.nv):
        store(w.total, d, load(w.total, d) + load(f.lead, d) * sign)


@kernel
def begin(m, s, w, f):
    """Bodies follow coordinates and velocities that were written to."""
    note_changes(m, s, f)
    settle(m, s, w, f)
    keep_face(m, s, f)
    forget(m, f)


@kernel
def free_motion(m, s, x, w, y, g, u, b, z, o, ahead, f, dt, wanted):
    """As `velocity.free_motion`: what bodies do that are held by joints alone."""
    if wanted != THE_REST:
        if y.n_prescribed != 0:
            follow(m, s, x, y, 0)
        keep(m, s, y)
        if y.n_prescribed == 0 and is_seen(m, s, f):
            take_over(m, ahead, w)
        else:
            begin(m, s, w, f)
        keep_own(m, f)
        find_haste(m, w, g, u, o)
        if wanted == UNLESS_HASTY and any_lane(load(o.haste, 0) * dt > HASTE):
            return HASTY
    gather_forces(m, s, x, w, dt)
    if f.forces != 0:
        rate_joints(m, s, w, f)
        factor(m, w)
    else:
        drift(m, w, f, o, dt)
        factor(m, w)
        if o.separate == WITH_LOOPS:
            find_ways(m, s, w)
            drift(m, w, f, o, dt)
        lay_turning(m, w, f, dt)
    driven = add_motor_forces(s, b, w)
    if f.forces == 0:
        lead_drives(m, s, w, f)
        add_lead(m, w, f, 1.0)
    balance(m, x, w)
    if f.forces == 0:
        add_lead(m, w, f, -1.0)  # `w.total` tells what acts
    accelerate(m, x, w)
    store(o.ahead, 0, look_ahead(o, dt))
    return DRIVEN if any_lane(driven) else 0


@kernel
def go_on(m, s, w, f, flow, o, dt):
    """Bodies with their new twists, where these take them."""
    for d in range(m.nv):
        store(flow.x, d, load(s.v, d))
    spread_velocity(m, w, flow)
    for i in range(m.n_links):
        set_twist(m, w, f, i, load(flow.motion, i))
    for d in range(m.nv):
        store(flow.x, d, load(o.shift, d))
    spread_velocity(m, w, flow)
    for i in range(m.n_links):
        motion = load(flow.motion, i)
        move_body(m, w, f, i, motion, dt)
        if f.turning == MOMENTUM:
            turn_body(m, w, f, i, motion.w, dt)


@kernel
def hold_limited(m, w, l, held):
    """Let coordinates whose limits have rows be where velocities take them: to turn bodies and to close gaps could take
    them beyond.
    """
    for k in range(l.n_limits):
        hold(m, w, load(l.limit_dof, k), (load(held, 2 * k) != 0) | (load(held, 2 * k + 1) != 0))
    for k in range(l.n_balls):
        e, d = 2 * l.n_limits + 3 * k, load(l.ball_dof, k)
        there = (load(held, e) != 0) | (load(held, e + 1) != 0) | (load(held, e + 2) != 0)
        for a in range(3):
            hold(m, w, d + a, there)


@kernel
def hold_on(m, s, w, f):
    """Close gaps and stop slips of joints, without any trace in what bodies do otherwise. They are placed roughly.

    What bodies slip along their joints is as good as gone: the next impulses would take it away in the same way. But
    velocities of joints without slips are those of the bodies, with all their momentum.
    """
    close_gaps(m, s, w, f)
    let_go(m, w)
    settle_placed(m, s, w, f)
    stop_slips(m, w, f)
    speed_bodies(m, s, w, f)


@kernel
def arrive(m, s, w, ahead, f, l, o, dt):
    """Bodies, at the end of a step, where their joints allow them; coordinates and velocities are read off them."""
    note_led(m, f)
    if o.stabilize == BY_DISPLACEMENT:
        place_roughly(m, s, ahead, f, 1)
        bend_ways(m, s, w, ahead, f, dt)
    if f.turning == MOMENTUM:
        keep_momentum(m, f)
    if o.stabilize == BY_DISPLACEMENT:
        place_roughly(m, s, ahead, f, 2)
        hold_limited(m, ahead, l, o.held)
        hold_on(m, s, ahead, f)
    else:
        settle(m, s, ahead, f)
    keep_face(m, s, f)
    see(m, f)


@kernel
def advance(m, s, x, w, y, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, f, dt, goes_on):
    """As `velocity.advance`; in `ahead` links are as they are at the end."""
    end = find_impulses(m, s, x, w, g, u, c, l, e, r, old, i, z, t, flow, plain, p, a, newton, o, ahead, dt, goes_on)
    if end != DONE:
        return end
    if goes_on == UNLESS_LONG and load(i.count, 0) > 0:
        foresee(m, flow)
        if hurries(m, w, g, u, flow, o, dt):
            return TOO_LONG
    end_speeds(m, s, w, l, r, i, t, flow, plain, p, a, newton, o, dt)
    go_on(m, s, w, f, flow, o, dt)
    displace(m, s.q, o.shift, dt, s.q)
    if y.n_prescribed != 0:
        follow(m, s, x, y, 2)
    arrive(m, s, w, ahead, f, l, o, dt)
    if is_sound(m, s, y):
        for d in range(m.nv):
            store(o.change, d, load(s.v, d) - load(y.v0, d))
        return DONE
    for k in range(OWN * m.n_links):
        store(f.own, k, load(f.before, k))
    keep_face(m, s, f)
    return DIVERGED


# ---- at acceleration level -------------------------------------------------------------------------------------------


@kernel
def spread(m, w, x):
    """Motions of links along x, as joints allow them."""
    for i in range(m.n_links):
        motion = no_motion(load(x.x, 0))
        if load(m.link_parent, i) >= 0:
            motion = load(x.motion, load(m.link_parent, i))
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            motion = motion + load(w.axis, d) * load(x.x, d)
        store(x.motion, i, motion)


@kernel
def kick(m, w, x, f):
    """Add a change x of joints' velocities to the twists of bodies."""
    spread(m, w, x)
    for i in range(m.n_links):
        set_twist(m, w, f, i, own_twist(m, w, f, i) + load(x.motion, i))


@kernel
def spread_rates(m, w, x, f):
    """Rates (ω̇, v̇ of the centre of mass) of all bodies, in `x.motion`, from accelerations x of joints."""
    for i in range(m.n_links):
        rate = load(w.bias, i)
        if load(m.link_parent, i) >= 0:
            rate = rate + load(x.acceleration, load(m.link_parent, i))
        for d in range(load(m.link_dof_start, i), load(m.link_dof_start, i + 1)):
            rate = rate + load(w.axis, d) * load(x.x, d)
        store(x.acceleration, i, rate)
        store(x.motion, i, Motion(rate.w, motion_at(rate, centre_of(m, w, i)) + carried(m, w, i)))


@kernel
def read_off(m, s, w, f, o):
    """Coordinates and velocities from the bodies' states, without gaps and slips where displacements see to that."""
    note_led(m, f)
    if o.stabilize == BY_DISPLACEMENT:
        place_roughly(m, s, w, f, 1)
        hold_on(m, s, w, f)
    else:
        settle(m, s, w, f)
    keep_face(m, s, f)
    see(m, f)
