"""The end of a step of smooth and split trees: Verlet's second half step, or Runge-Kutta stages for fast links (see
`smooth_motion` for the choice).

The half step v⁺ = v' + h/2 a(q⁺, v⁺) is implicit. It starts from the acceleration at the beginning of the step, and
takes one evaluation, or 1 + MORE if links rotate by FAR. Its error is of third order in h times the rate of change of
velocities, which is large if a link whirls while it is nearly aligned with the first axis of its universal joint.
Smooth trees that rotate or change by more than STAGED_FROM are therefore integrated by the classic Runge-Kutta method
of fourth order, in parts of their own, from the beginning of the step.
"""

from __future__ import annotations

from poise.dynamics.aba import accelerate_share, balance_share, factor, factor_velocities
from poise.dynamics.integrate import displaced_quat, rates
from poise.dynamics.kinematics import BALL, load_four, move_links, place_links
from poise.formulations.stages.reuse_factors import forget_places, see_places
from poise.formulations.stages.tree_flags import is_in
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, floor, maximum, minimum, select, sqrt, zero
from poise.kernel.vec import dot

FAR = 0.06
"""Rotation of a link in a step above which the implicit half step takes MORE evaluations; rad."""
MORE = 2
STAGED_FROM, STAGED = 0.03, 0.1
"""Angle of a step above which smooth trees are integrated by Runge-Kutta stages, and maximum angle of a part: the
rotation of links, or the change of their displacement by accelerations, to the power ½; rad. The energy of universal
double pendulums that whirl at up to 150 rad/s is off by 0.4 % in 10 s at 1/240 s, and by 4 % with twice these angles.
"""
MOST_PARTS = 128.0
SIXTH = 1.0 / 6.0


@kernel
def finish_smoothly(model, data, dt):
    """Velocities at the end of a step, from those that moved coordinates: Verlet's second half step. Fast smooth trees
    are integrated again, from the beginning of the step, by the Runge-Kutta method.
    """
    none = zero(load(data.work.a, 0))
    wanted, smooth = none != none, none != none
    for i in range(model.n_links):
        root = load(model.link_root, i)
        is_smooth, is_split = load(data.scratch.smooth, root) > 0.5, none != none
        if load(data.scratch.any_split, 0) != 0:
            is_split = load(data.scratch.split, root) > 0.5
            wanted = wanted | is_split
        for d in range(load(model.link_dof_start, i), load(model.link_dof_start, i + 1)):
            smooth = smooth | (is_smooth & ((load(data.work.a, d) != 0.0) | (load(data.state.v, d) != 0.0)))
            known = select(is_smooth, load(data.work.a, d), none)
            if load(data.scratch.any_split, 0) != 0:
                known = select(is_split, load(data.scratch.products, d), known)
                store(data.state.v, d, load(data.state.v, d) + load(data.scratch.late, d))
            store(data.end_work.a, d, known)
    forget_places(data.scratch)
    if not any_lane(wanted | smooth):
        return
    for d in range(model.nv):
        store(data.end_work.total, d, load(data.work.total, d))
        store(data.end_work.diagonal, d, load(data.work.diagonal, d))
    turn = load(data.scratch.spin, 0) * dt
    angle = maximum(turn, smooth_angle(model, data.work, data.scratch, dt))
    fast = smooth & (angle > STAGED_FROM)
    store(data.scratch.fast, 0, select(fast, none + 1.0, none))
    wanted = wanted | (smooth & ~fast)
    if any_lane(wanted):
        finish_halves(model, data, dt, wanted, turn > FAR)
    if any_lane(fast):
        move_by_stages(model, data, dt, fast, angle)
    else:
        see_places(model, data.state, data.scratch)


@kernel
def finish_halves(model, data, dt, wanted, far):
    """Verlet's second half step, in the worlds of a mask; with MORE evaluations in those whose links rotate far."""
    for d in range(model.nv):
        store(data.scratch.known, d, load(data.state.v, d))
        store(data.state.v, d, load(data.scratch.known, d) + load(data.end_work.a, d) * (0.5 * dt))
    place_links(model, data.state, data.end_work)
    factor(model, data.end_work)
    correct(model, data, dt, wanted)
    far = wanted & far
    if any_lane(far):
        for _ in range(MORE):
            move_links(model, data.state.v, data.end_work, data.end_work)
            factor_velocities(model, data.end_work, data.end_work)
            correct(model, data, dt, far)


@kernel
def correct(model, data, dt, wanted):
    """v⁺ = v' + h/2 a(q⁺, v⁺), with c in place of a for split trees, in the worlds of a mask."""
    balance_share(model, data.inputs, data.end_work, data.scratch.smooth)
    accelerate_share(model, data.inputs, data.end_work, data.scratch.smooth)
    slow = load(data.scratch.fast, 0) < 0.5
    for i in range(model.n_links):
        root = load(model.link_root, i)
        counts = wanted & ((slow & (load(data.scratch.smooth, root) > 0.5)) | (load(data.scratch.split, root) > 0.5))
        for d in range(load(model.link_dof_start, i), load(model.link_dof_start, i + 1)):
            after = load(data.scratch.known, d) + load(data.end_work.a, d) * (0.5 * dt)
            store(data.state.v, d, select(counts, after, load(data.state.v, d)))


# ---- trees that are smooth and fast ----------------------------------------------------------------------------------


@kernel
def move_by_stages(model, data, dt, fast, angle):
    """Coordinates and velocities of smooth trees at the end of the step, in the worlds of a mask: by the classic method
    of fourth order (see `dynamics.integrate`), in parts in which nothing rotates by more than STAGED.
    """
    parts = stages_of(angle)
    h = (zero(parts) + dt) / parts
    part = zero(parts)
    for j in range(model.nq):
        store(data.scratch.from_q, j, load(data.stages.q0, j))
    for d in range(model.nv):
        store(data.scratch.from_v, d, load(data.stages.v0, d))
        store(data.end_work.a, d, load(data.work.a, d))
    more = fast
    while any_lane(more):
        for d in range(model.nv):
            store(data.stages.rate, d, load(data.scratch.from_v, d))
            store(data.stages.sum_rate, d, load(data.scratch.from_v, d) * (h * SIXTH))
            store(data.stages.sum_a, d, load(data.end_work.a, d) * (h * SIXTH))
        for stage in range(3):
            reach, weight = h * 0.5, h * (2.0 * SIXTH)
            if stage == 2:
                reach, weight = h, h * SIXTH
            for d in range(model.nv):
                store(data.stages.shift, d, load(data.stages.rate, d) * reach)
                v = load(data.scratch.from_v, d) + load(data.end_work.a, d) * reach
                store(data.state.v, d, select(more & is_in(model, data.scratch.smooth, d), v, load(data.state.v, d)))
            displace_smooth(model, data.state, data.stages.shift, data.scratch, more)
            accelerate_smooth(model, data)
            rates(model, data.state, data.stages)
            for d in range(model.nv):
                store(data.stages.sum_rate, d, load(data.stages.sum_rate, d) + load(data.stages.rate, d) * weight)
                store(data.stages.sum_a, d, load(data.stages.sum_a, d) + load(data.end_work.a, d) * weight)
        for d in range(model.nv):
            v = load(data.scratch.from_v, d) + load(data.stages.sum_a, d)
            store(data.state.v, d, select(more & is_in(model, data.scratch.smooth, d), v, load(data.state.v, d)))
        displace_smooth(model, data.state, data.stages.sum_rate, data.scratch, more)
        part = part + 1.0
        more = fast & (part < parts)
        if any_lane(more):
            accelerate_smooth(model, data)
            for j in range(model.nq):
                store(data.scratch.from_q, j, load(data.state.q, j))
            for d in range(model.nv):
                store(data.scratch.from_v, d, load(data.state.v, d))


@kernel
def smooth_angle(model, work, scratch, dt):
    """Change of the displacement of rotational coordinates by accelerations, in smooth trees, to the power ½; rad."""
    none = zero(load(work.a, 0))
    most = none
    for d in range(model.nv):
        spin = load(work.axis, d).w
        turns = is_in(model, scratch.smooth, d) & (dot(spin, spin) > 0.5)
        most = maximum(most, select(turns, fabs(load(work.a, d)), none))
    return sqrt(most) * dt


@kernel
def stages_of(angle):
    """Number of parts in which smooth trees are integrated."""
    return minimum(floor(angle * (1.0 / STAGED)) + 1.0, zero(angle) + MOST_PARTS)


@kernel
def displace_smooth(model, state, shift, scratch, wanted):
    """q = q₀ ⊕ shift, of smooth trees, in the worlds of a mask."""
    for k in range(model.n_primitives):
        j, d = load(model.primitive_q_start, k), load(model.primitive_v_start, k)
        moves = wanted & is_in(model, scratch.smooth, d)
        if load(model.primitive_kind, k) == BALL:
            quat, old = displaced_quat(scratch.from_q, shift, j, d), load_four(state.q, j)
            store(state.q, j, select(moves, quat.w, old.w))
            store(state.q, j + 1, select(moves, quat.x, old.x))
            store(state.q, j + 2, select(moves, quat.y, old.y))
            store(state.q, j + 3, select(moves, quat.z, old.z))
        else:
            store(state.q, j, select(moves, load(scratch.from_q, j) + load(shift, d), load(state.q, j)))


@kernel
def accelerate_smooth(model, data):
    """a(q, v) of smooth trees, in `data.end_work.a`."""
    place_links(model, data.state, data.end_work)
    factor(model, data.end_work)
    balance_share(model, data.inputs, data.end_work, data.scratch.smooth)
    accelerate_share(model, data.inputs, data.end_work, data.scratch.smooth)
