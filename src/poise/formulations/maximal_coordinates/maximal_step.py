"""A velocity-level step in maximal coordinates: VON §3.3, with the other rows of `velocity_step`.

Impulses, rows, islands and displacements are those of `velocity_step`. What differs is where links are placed, how they
move without rows, and how positions are integrated.
"""

from __future__ import annotations

from poise.constraints.kinds.motor import add_motor_forces
from poise.constraints.response.row_velocity import spread_velocity
from poise.dynamics.aba import accelerate, balance, factor
from poise.dynamics.integrate import displace, follow, is_sound, keep
from poise.dynamics.kinematics import carry_on, set_out
from poise.dynamics.maximal_bodies.body_state import OWN, centre_of, move_body, own_twist, set_twist
from poise.dynamics.maximal_bodies.fit_coordinates import fit, lay_square
from poise.dynamics.maximal_bodies.joint_forces import (
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
from poise.dynamics.maximal_bodies.read_joints import (
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
from poise.dynamics.passive import gather_forces
from poise.formulations.ccd_stepping.maximal_motion_bounds import find_haste, hurries
from poise.formulations.ccd_stepping.motion_bounds import HASTE
from poise.formulations.stages.velocity_step import end_speeds, find_impulses, foresee
from poise.formulations.step_status import (
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
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, zero
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import cross, zero3


@kernel
def keep_own(model, bodies):
    """Save the bodies' states, and gaps, at the beginning of a step."""
    for k in range(OWN * model.n_links):
        store(bodies.before, k, load(bodies.own, k))
    for i in range(model.n_links):
        store(bodies.old_gap, i, load(bodies.gap, i))


@kernel
def drift(model, work, bodies, options, dt):
    """Velocities of joints at the end of the step: free ones, with BY_SPEED plus the correction of gaps (VON eq. 10,
    α = erp/h).
    """
    none = no_motion(load(work.a, 0))
    for i in range(model.n_links):
        mend = none
        if options.stabilize != BY_DISPLACEMENT:
            mend = load(bodies.gap, i) * (load(options.erp, 0) * (-1.0 / dt))
            store(work.drift, i, mend)
        store(work.bias, i, (mend - load(bodies.slip, i)) * (1.0 / dt))


@kernel
def rate_joints(model, state, work, bodies):
    """Accelerations that joints allow their links at the current velocities, with VON eq. 11 for gaps and slips."""
    for i in range(model.n_links):
        velocity = no_motion(load(work.a, 0))
        if load(model.link_parent, i) >= 0:
            velocity = load(work.velocity, load(model.link_parent, i))
        origin, R, r = set_out(model, work, i, load(work.a, 0))
        _, _, _, _, bias, _ = carry_on(model, state, work, i, origin, R, r, velocity)
        store(
            work.bias,
            i,
            bias - load(bodies.gap, i) * load(bodies.alpha, 0) - load(bodies.slip, i) * load(bodies.beta, 0),
        )


@kernel
def going_straight(model, work, i):
    """Spatial acceleration of a free body with constant angular velocity and velocity of its centre of mass."""
    return Motion(zero3(load(work.a, 0)), -carried(model, work, i))


@kernel
def find_ways(model, state, work):
    """Spatial accelerations of bodies, in `work.coast`, under the forces of their joints alone: those of least
    mass-weighted square, as in `bend_ways`, which bends the paths of bodies by them. `factor` must have run.
    """
    none = no_motion(load(work.a, 0))
    for i in range(model.n_links):
        velocity, above = none, none
        if load(model.link_parent, i) >= 0:
            velocity = load(work.velocity, load(model.link_parent, i))
            above = going_straight(model, work, load(model.link_parent, i))
        origin, R, r = set_out(model, work, i, load(work.a, 0))
        _, _, _, _, bias, _ = carry_on(model, state, work, i, origin, R, r, velocity)
        store(work.bias, i, bias + above - going_straight(model, work, i))
    least_displacements(model, work)
    for i in range(model.n_links):
        store(work.coast, i, going_straight(model, work, i) + load(work.acceleration, i))


@kernel
def carried(model, work, i):
    """ω × v of a body's centre of mass: the change of its velocity as seen at a fixed point."""
    velocity = load(work.velocity, i)
    return cross(velocity.w, motion_at(velocity, centre_of(model, work, i)))


@kernel
def has_drive(model, i):
    """Whether a coordinate of a link's joints has an armature."""
    drives = 0
    for d in range(load(model.link_dof_start, i), load(model.link_dof_start, i + 1)):
        if load(model.dof_armature, d) != 0.0:
            drives += 1
    return drives != 0


@kernel
def lead_drives(model, state, work, bodies):
    """Correction of the forces on drives with an armature, which depend on v̇. With constant axes S, a step has

        a = v̇ + S⁺ (Ṡ v + (0, ω × v_c) − (0, ω × v_c of the parent))

    since the velocities of bodies are those of their centres of mass, c. The correction is the armature times a − v̇.
    """
    for i in range(model.n_links):
        first, n = load(model.link_dof_start, i), load(model.link_dof_start, i + 1) - load(model.link_dof_start, i)
        if has_drive(model, i):
            velocity = no_motion(load(work.a, 0))
            turning = carried(model, work, i)
            if load(model.link_parent, i) >= 0:
                velocity = load(work.velocity, load(model.link_parent, i))
                turning = turning - carried(model, work, load(model.link_parent, i))
            origin, R, r = set_out(model, work, i, load(work.a, 0))
            _, _, _, _, bias, pivot = carry_on(model, state, work, i, origin, R, r, velocity)
            lay_square(work, bodies, first, n, pivot)
            fit(work, bodies, first, n, pivot, bias.w, motion_at(bias, pivot) + turning)
            for a in range(n):
                store(bodies.lead, first + a, load(bodies.change, a) * load(model.dof_armature, first + a))
        else:
            for d in range(first, first + n):
                store(bodies.lead, d, zero(load(work.a, 0)))


@kernel
def add_lead(model, work, bodies, sign):
    """Add the corrections to the generalized forces, or subtract them."""
    for d in range(model.nv):
        store(work.total, d, load(work.total, d) + load(bodies.lead, d) * sign)


@kernel
def begin(model, state, work, bodies):
    """Apply changes of coordinates and velocities to the bodies."""
    note_changes(model, state, bodies)
    settle(model, state, work, bodies)
    keep_face(model, state, bodies)
    forget(model, bodies)


@kernel
def free_motion(model, data, options, dt, wanted):
    """As `velocity_step.free_motion`: motion of the bodies under the constraints of their joints alone."""
    if wanted != THE_REST:
        if data.stages.n_prescribed != 0:
            follow(model, data.state, data.inputs, data.stages, 0)
        keep(model, data.state, data.stages)
        if data.stages.n_prescribed == 0 and is_seen(model, data.state, data.bodies):
            take_over(model, data.end_work, data.work)
        else:
            begin(model, data.state, data.work, data.bodies)
        keep_own(model, data.bodies)
        find_haste(model, data)
        if wanted == UNLESS_HASTY and any_lane(load(data.stats.haste, 0) * dt > HASTE):
            return HASTY
    gather_forces(model, data.state, data.inputs, data.work, dt)
    if data.bodies.forces != 0:
        rate_joints(model, data.state, data.work, data.bodies)
        factor(model, data.work)
    else:
        drift(model, data.work, data.bodies, options, dt)
        factor(model, data.work)
        if options.separate == WITH_LOOPS:
            find_ways(model, data.state, data.work)
            drift(model, data.work, data.bodies, options, dt)
        lay_turning(model, data.work, data.bodies, dt)
    driven = add_motor_forces(data.state, data.motors, data.work)
    if data.bodies.forces == 0:
        lead_drives(model, data.state, data.work, data.bodies)
        add_lead(model, data.work, data.bodies, 1.0)
    balance(model, data.inputs, data.work)
    if data.bodies.forces == 0:
        add_lead(model, data.work, data.bodies, -1.0)  # `data.work.total` is without them
    accelerate(model, data.inputs, data.work)
    store(data.stats.ahead, 0, look_ahead(options, data.stats, dt))
    return DRIVEN if any_lane(driven) else 0


@kernel
def go_on(model, data, dt):
    """Integrate the poses of bodies with their new twists."""
    for d in range(model.nv):
        store(data.flow.x, d, load(data.state.v, d))
    spread_velocity(model, data.work, data.flow)
    for i in range(model.n_links):
        set_twist(model, data.work, data.bodies, i, load(data.flow.motion, i))
    for d in range(model.nv):
        store(data.flow.x, d, load(data.scratch.shift, d))
    spread_velocity(model, data.work, data.flow)
    for i in range(model.n_links):
        motion = load(data.flow.motion, i)
        move_body(model, data.work, data.bodies, i, motion, dt)
        if data.bodies.turning == MOMENTUM:
            turn_body(model, data.work, data.bodies, i, motion.w, dt)


@kernel
def hold_limited(model, end_work, limits, held):
    """Prevent coordinates of limits with rows from changing when bodies rotate and gaps close, which could take them
    beyond their limits.
    """
    for k in range(limits.n_limits):
        hold(model, end_work, load(limits.limit_dof, k), (load(held, 2 * k) != 0) | (load(held, 2 * k + 1) != 0))
    for k in range(limits.n_balls):
        e, d = 2 * limits.n_limits + 3 * k, load(limits.ball_dof, k)
        there = (load(held, e) != 0) | (load(held, e + 1) != 0) | (load(held, e + 2) != 0)
        for a in range(3):
            hold(model, end_work, d + a, there)


@kernel
def hold_on(model, state, end_work, bodies):
    """Close gaps and remove slips of joints, without other effects on the motion. Links are roughly placed.

    The slips of bodies along their joints can be removed: the next impulses would do so in the same way. But velocities
    of joints without slips are those of the bodies, with all their momentum.
    """
    close_gaps(model, state, end_work, bodies)
    let_go(model, end_work)
    settle_placed(model, state, end_work, bodies)
    stop_slips(model, end_work, bodies)
    speed_bodies(model, state, end_work, bodies)


@kernel
def arrive(model, data, options, dt):
    """At the end of a step, move bodies where their joints allow, and read coordinates and velocities from them."""
    note_led(model, data.bodies)
    if options.stabilize == BY_DISPLACEMENT:
        place_roughly(model, data.state, data.end_work, data.bodies, 1)
        bend_ways(model, data.state, data.work, data.end_work, data.bodies, dt)
    if data.bodies.turning == MOMENTUM:
        keep_momentum(model, data.bodies)
    if options.stabilize == BY_DISPLACEMENT:
        place_roughly(model, data.state, data.end_work, data.bodies, 2)
        hold_limited(model, data.end_work, data.limits, data.scratch.held)
        hold_on(model, data.state, data.end_work, data.bodies)
    else:
        settle(model, data.state, data.end_work, data.bodies)
    keep_face(model, data.state, data.bodies)
    see(model, data.bodies)


@kernel
def advance(model, data, options, dt, goes_on):
    """As `velocity_step.advance`; `data.end_work` has the links at the end."""
    end = find_impulses(model, data, options, dt, goes_on)
    if end != DONE:
        return end
    if goes_on == UNLESS_LONG and load(data.islands.count, 0) > 0:
        foresee(model, data.flow)
        if hurries(model, data, dt):
            return TOO_LONG
    end_speeds(model, data, options, dt)
    go_on(model, data, dt)
    displace(model, data.state.q, data.scratch.shift, dt, data.state.q)
    if data.stages.n_prescribed != 0:
        follow(model, data.state, data.inputs, data.stages, 2)
    arrive(model, data, options, dt)
    if is_sound(model, data.state, data.stages):
        for d in range(model.nv):
            store(data.stats.change, d, load(data.state.v, d) - load(data.stages.v0, d))
        return DONE
    for k in range(OWN * model.n_links):
        store(data.bodies.own, k, load(data.bodies.before, k))
    keep_face(model, data.state, data.bodies)
    return DIVERGED


# ---- at acceleration level -------------------------------------------------------------------------------------------


@kernel
def spread(model, work, flow):
    """Motions of links along x, as joints allow them."""
    for i in range(model.n_links):
        motion = no_motion(load(flow.x, 0))
        if load(model.link_parent, i) >= 0:
            motion = load(flow.motion, load(model.link_parent, i))
        for d in range(load(model.link_dof_start, i), load(model.link_dof_start, i + 1)):
            motion = motion + load(work.axis, d) * load(flow.x, d)
        store(flow.motion, i, motion)


@kernel
def kick(model, work, flow, bodies):
    """Add a change x of joint velocities to the twists of bodies."""
    spread(model, work, flow)
    for i in range(model.n_links):
        set_twist(model, work, bodies, i, own_twist(model, work, bodies, i) + load(flow.motion, i))


@kernel
def spread_rates(model, work, flow, bodies):
    """Rates (ω̇, v̇ of the centre of mass) of all bodies, in `flow.motion`, from joint accelerations x."""
    for i in range(model.n_links):
        rate = load(work.bias, i)
        if load(model.link_parent, i) >= 0:
            rate = rate + load(flow.acceleration, load(model.link_parent, i))
        for d in range(load(model.link_dof_start, i), load(model.link_dof_start, i + 1)):
            rate = rate + load(work.axis, d) * load(flow.x, d)
        store(flow.acceleration, i, rate)
        store(flow.motion, i, Motion(rate.w, motion_at(rate, centre_of(model, work, i)) + carried(model, work, i)))


@kernel
def read_off(model, state, end_work, bodies, options):
    """Coordinates and velocities from the bodies' states; with post-stabilization, without gaps and slips."""
    note_led(model, bodies)
    if options.stabilize == BY_DISPLACEMENT:
        place_roughly(model, state, end_work, bodies, 1)
        hold_on(model, state, end_work, bodies)
    else:
        settle(model, state, end_work, bodies)
    keep_face(model, state, bodies)
    see(model, bodies)
