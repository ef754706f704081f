"""Motor targets from tabulated motions, in compiled code before each step, for one world and for lanes of worlds.

A motion is a table of cubics (`control.motion_table`). Its phase at the beginning and at the end of a step is computed
in scalar float64, world by world; its values are sampled at the width of the worlds. Springs are implicit (LIU eqs.
9-13): their target is the value at the end of the step, with the mean velocity in the step as feedforward. Motors that
track accelerations get that of KOK eq. 22; motors that guide a root get a velocity towards the motion.
"""

from __future__ import annotations

from math import floor

from poise.constraints.kinds.motor import MOTORS
from poise.dynamics.dynamics_layout import INPUT, STATE
from poise.dynamics.kinematics import load_four
from poise.formulations.rollback import copy_numbers
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Index, Int, Real, View, gather, load, store, store_lane
from poise.kernel.quat import Quat, conjugate, log_rotation, normalize, rotate
from poise.kernel.scalars import fabs, minimum, select, sqrt, zero
from poise.kernel.vec import Vec3

FREE, TARGET, ACCELERATION, GUIDE, DRIVE = range(5)
"""What a number or rotation sets: nothing, target and speed of a motor, its acceleration, its speed towards the motion,
targets of a drive.
"""
N_CUBIC = 4
"""Coefficients of a cubic."""
BEGIN, END = 0, 1
"""Ends of a step."""

MOTIONS = View(
    "Motions",
    constant=True,
    n_columns=Count,  # scalar values, then four of each rotation
    coefficient=Real,  # (intervals · n_columns · N_CUBIC) of 1, u, u², u³
    stride=Real,  # (motions · n_numbers) increment per cycle of a cyclic motion
)

SCHEDULE = View(
    "MotionSchedule",
    # (motions), in float64 at every width
    duration=Real,  # s
    rate=Real,  # intervals per second
    loops=Index,  # 1 for cyclic motions
    first_interval=Index,
    n_intervals=Index,
)

PHASE = View(
    "MotionPhase",
    motion=Int,  # (1) the motion of each lane
    rate=Real,  # (1) its intervals per second
    # (2) at the beginning and at the end of a step
    interval=Int,
    share=Real,  # elapsed share of the interval
    rounds=Real,  # completed cycles
    moves=Real,  # 1, or 0 before the start and after the end of a motion that is not cyclic
    # (1) placement of the motion
    x=Real,
    y=Real,
    z=Real,
    w=Real,  # of a quaternion about the vertical
    w_z=Real,
)

TRACKING = View(
    "Tracking",
    placed=Count,  # 1 if motions have placements
    root=Index,  # (2) first value and rotation of a root, or −1
    n_numbers=Count,
    n_rotations=Count,
    # (n_numbers)
    number_q=Index,  # coordinate
    number_v=Index,  # degree of freedom
    number_sets=Index,  # what the value sets: FREE, …
    number_row=Index,  # row of its motor
    begin=Real,
    end=Real,
    # (n_rotations)
    rotation_q=Index,
    rotation_v=Index,
    rotation_sets=Index,
    rotation_ball=Index,  # index of a ball's motor among those of balls, or −1
    rotation_row=Index,  # (3 n_rotations) rows of motors
    # scalars, the same for all lanes
    gain=Real,  # (2) kp and kv of KOK eq. 22
    brake=Real,  # (nv) maximum deceleration of a guided root
    settle=Real,  # (1) time constant of errors of a guided root; s
)

ONE_WORLD = View(
    "MotionOfOneWorld",
    start=Real,  # (1) time of the world at which the motion begins; s
    # motors and targets before the last command
    target=Real,
    speed=Real,
    acceleration=Real,
    hurries=Real,
    rotation=Real,
    goal_q=Real,
    goal_v=Real,
    n_rows=Count,
    n_rotation=Count,
    nq=Count,
    nv=Count,
)


# ---- phase and values of a motion ------------------------------------------------------------------------------------


@kernel
def find_interval(schedule, phase, at, lane, motion, since):
    """Interval of a motion in a lane, a time after its start, at the beginning or end of a step."""
    length, rounds, moves = load(schedule.duration, motion), 0.0, 1.0
    if load(schedule.loops, motion) != 0:
        rounds = float(floor(since / length))
        since = since - rounds * length
    elif since < 0.0 or since > length:
        since, moves = min(max(since, 0.0), length), 0.0
    place, last = since * load(schedule.rate, motion), load(schedule.n_intervals, motion) - 1
    interval = min(max(floor(place), 0), last)
    store_lane(phase.interval, at, lane, load(schedule.first_interval, motion) + interval)
    store_lane(phase.share, at, lane, place - interval)
    store_lane(phase.rounds, at, lane, rounds)
    store_lane(phase.moves, at, lane, moves)


@kernel
def find_step(schedule, phase, lane, motion, since, dt):
    """Phases of a motion at both ends of a step that begins a time after its start."""
    find_interval(schedule, phase, BEGIN, lane, motion, since)
    find_interval(schedule, phase, END, lane, motion, since + dt)
    store_lane(phase.motion, 0, lane, motion)
    store_lane(phase.rate, 0, lane, load(schedule.rate, motion))


@kernel
def cubic_of(motions, phase, at, column):
    """Coefficients of a column, in each lane of its interval."""
    first = (load(phase.interval, at) * motions.n_columns + column) * N_CUBIC
    c = motions.coefficient
    return gather(c, first), gather(c, first + 1), gather(c, first + 2), gather(c, first + 3)


@kernel
def sample_column(motions, phase, at, column):
    """A column at the beginning or end of a step."""
    c0, c1, c2, c3 = cubic_of(motions, phase, at, column)
    u = load(phase.share, at)
    return c0 + u * (c1 + u * (c2 + u * c3))


@kernel
def column_rates(motions, phase, column):
    """First and second time derivative of a column at the beginning of a step."""
    _, c1, c2, c3 = cubic_of(motions, phase, BEGIN, column)
    u, rate = load(phase.share, BEGIN), load(phase.rate, 0)
    per_second = rate * load(phase.moves, BEGIN)
    return (c1 + u * (2.0 * c2 + 3.0 * u * c3)) * per_second, (2.0 * c2 + 6.0 * u * c3) * (per_second * rate)


@kernel
def sample_number(motions, phase, tracking, at, k):
    """A scalar value, with the increments of completed cycles."""
    gone = gather(motions.stride, load(phase.motion, 0) * tracking.n_numbers + k) * load(phase.rounds, at)
    return sample_column(motions, phase, at, k) + gone


@kernel
def sample_rotation(motions, phase, tracking, at, k):
    """A rotation, as a unit quaternion."""
    first = tracking.n_numbers + 4 * k
    q = Quat(
        sample_column(motions, phase, at, first),
        sample_column(motions, phase, at, first + 1),
        sample_column(motions, phase, at, first + 2),
        sample_column(motions, phase, at, first + 3),
    )
    return placed_rotation(phase, tracking, k, normalize(q))


@kernel
def placed_rotation(phase, tracking, k, q):
    """A rotation, with the placement of the motion if it is that of a root."""
    if tracking.placed != 0 and k == load(tracking.root, 1):
        none = zero(q.w)
        return Quat(load(phase.w, 0), none, none, load(phase.w_z, 0)) @ q
    return q


@kernel
def place_root(phase, tracking, numbers):
    """Apply the placement of the motion to the position of a root."""
    first = load(tracking.root, 0)
    if tracking.placed != 0 and first >= 0:
        none = zero(load(phase.x, 0))
        turn = Quat(load(phase.w, 0), none, none, load(phase.w_z, 0))
        there = rotate(turn, Vec3(load(numbers, first), load(numbers, first + 1), load(numbers, first + 2)))
        store(numbers, first, there.x + load(phase.x, 0))
        store(numbers, first + 1, there.y + load(phase.y, 0))
        store(numbers, first + 2, there.z + load(phase.z, 0))


# ---- targets ---------------------------------------------------------------------------------------------------------


@kernel
def guiding_speed(tracking, d, error):
    """Speed at which a guided root returns: limited such that the root assist can stop it within the remaining
    distance.

    To stop as v = s/τ needs a deceleration v/τ, which exceeds a from s = a τ² on. There v² = 2 a s − a² τ².
    """
    way, settle, brake = fabs(error), load(tracking.settle, 0), load(tracking.brake, d)
    near = minimum(way, brake * settle * settle)
    speed = sqrt((2.0 * way - near) * near) / settle
    return select(error < 0.0, -speed, speed)


@kernel
def set_motor_goals(motors, tracking, row, sets, d, error, target, speed, v, a, v_now):
    """Set the motor of a degree of freedom."""
    if sets == GUIDE:
        store(motors.speed, row, speed + guiding_speed(tracking, d, error))
    elif sets == TARGET:
        store(motors.target, row, target)
        store(motors.speed, row, speed)
    elif sets == ACCELERATION:
        kp, kv = load(tracking.gain, 0), load(tracking.gain, 1)
        store(motors.acceleration, row, a + kv * (v - v_now) + kp * error)
        store(motors.hurries, row, zero(a) + 1.0)


@kernel
def set_numbers(state, inputs, motors, motions, phase, tracking, dt):
    """Set the targets of scalar values."""
    for k in range(tracking.n_numbers):
        store(tracking.begin, k, sample_number(motions, phase, tracking, BEGIN, k))
        store(tracking.end, k, sample_number(motions, phase, tracking, END, k))
    place_root(phase, tracking, tracking.begin)
    place_root(phase, tracking, tracking.end)
    for k in range(tracking.n_numbers):
        sets, q, d = load(tracking.number_sets, k), load(tracking.number_q, k), load(tracking.number_v, k)
        begin, end = load(tracking.begin, k), load(tracking.end, k)
        speed = (end - begin) / dt
        if sets == DRIVE:
            store(inputs.goal_q, q, end)
            store(inputs.goal_v, d, speed)
        elif sets != FREE:
            v, a = zero(begin), zero(begin)
            if sets == ACCELERATION:
                v, a = column_rates(motions, phase, k)
            row, error = load(tracking.number_row, k), begin - load(state.q, q)
            set_motor_goals(motors, tracking, row, sets, d, error, end, speed, v, a, load(state.v, d))


@kernel
def spin_rates(motions, phase, tracking, k, begin, own):
    """Angular velocity and acceleration of a rotation of the motion, in the axes of the character's link."""
    first = tracking.n_numbers + 4 * k
    w, dw = column_rates(motions, phase, first)
    x, dx = column_rates(motions, phase, first + 1)
    y, dy = column_rates(motions, phase, first + 2)
    z, dz = column_rates(motions, phase, first + 3)
    back = conjugate(begin)
    spin = back @ placed_rotation(phase, tracking, k, Quat(w, x, y, z))
    turn = back @ placed_rotation(phase, tracking, k, Quat(dw, dx, dy, dz))
    return (
        rotate(own, Vec3(2.0 * spin.x, 2.0 * spin.y, 2.0 * spin.z)),
        rotate(own, Vec3(2.0 * turn.x, 2.0 * turn.y, 2.0 * turn.z)),
    )


@kernel
def set_rotations(state, inputs, motors, motions, phase, tracking, dt):
    """Set the targets of rotations."""
    for k in range(tracking.n_rotations):
        sets, q, d = load(tracking.rotation_sets, k), load(tracking.rotation_q, k), load(tracking.rotation_v, k)
        if sets != FREE:
            begin = sample_rotation(motions, phase, tracking, BEGIN, k)
            end = sample_rotation(motions, phase, tracking, END, k)
            own = conjugate(normalize(load_four(state.q, q))) @ begin
            per_second = 1.0 / dt
            speed, error = rotate(own, log_rotation(conjugate(begin) @ end) * per_second), log_rotation(own)
            if sets == DRIVE:
                store_four(inputs.goal_q, q, end)
                store_three(inputs.goal_v, d, speed)
            else:
                v, a = zero_vector(speed), zero_vector(speed)
                if sets == ACCELERATION:
                    v, a = spin_rates(motions, phase, tracking, k, begin, own)
                ball = load(tracking.rotation_ball, k)
                if ball >= 0 and sets == TARGET:
                    store_four(motors.rotation, 4 * ball, end)
                set_spin_goals(state, motors, tracking, k, sets, d, error, speed, v, a)


@kernel
def set_spin_goals(state, motors, tracking, k, sets, d, error, speed, v, a):
    """Set the motors of the three degrees of freedom of a rotation."""
    none, row, now = zero(speed.x), tracking.rotation_row, state.v
    x, y, z = load(row, 3 * k), load(row, 3 * k + 1), load(row, 3 * k + 2)
    set_motor_goals(motors, tracking, x, sets, d, error.x, none, speed.x, v.x, a.x, load(now, d))
    set_motor_goals(motors, tracking, y, sets, d + 1, error.y, none, speed.y, v.y, a.y, load(now, d + 1))
    set_motor_goals(motors, tracking, z, sets, d + 2, error.z, none, speed.z, v.z, a.z, load(now, d + 2))


@kernel
def store_four(array, first, q):
    """Store a quaternion."""
    store(array, first, q.w)
    store(array, first + 1, q.x)
    store(array, first + 2, q.y)
    store(array, first + 3, q.z)


@kernel
def store_three(array, first, v):
    """Store a vector."""
    store(array, first, v.x)
    store(array, first + 1, v.y)
    store(array, first + 2, v.z)


@kernel
def zero_vector(like):
    """A zero vector."""
    none = zero(like.x)
    return Vec3(none, none, none)


@kernel
def follow(state, inputs, motors, motions, phase, tracking, dt):
    """Set all tracking targets of a step, whose phases are known."""
    set_numbers(state, inputs, motors, motions, phase, tracking, dt)
    set_rotations(state, inputs, motors, motions, phase, tracking, dt)


# ---- one world -------------------------------------------------------------------------------------------------------


@kernel
def keep_goals(inputs, motors, kept):
    """Save motors and targets."""
    copy_numbers(motors.target, kept.target, kept.n_rows)
    copy_numbers(motors.speed, kept.speed, kept.n_rows)
    copy_numbers(motors.acceleration, kept.acceleration, kept.n_rows)
    copy_numbers(motors.hurries, kept.hurries, kept.n_rows)
    copy_numbers(motors.rotation, kept.rotation, kept.n_rotation)
    copy_numbers(inputs.goal_q, kept.goal_q, kept.nq)
    copy_numbers(inputs.goal_v, kept.goal_v, kept.nv)


@kernel
def follow_in_world(state, inputs, motors, motions, schedule, phase, tracking, world, time, dt):
    """Set the tracking targets of a step of one world, by the first motion."""
    keep_goals(inputs, motors, world)
    find_step(schedule, phase, 0, 0, time - load(world.start, 0), dt)
    follow(state, inputs, motors, motions, phase, tracking, dt)
    return tracking.n_numbers  # bound entries return whole numbers


FOLLOW_IN_WORLD = entry(
    follow_in_world,
    *(STATE, INPUT, MOTORS, MOTIONS, SCHEDULE, PHASE, TRACKING, ONE_WORLD),
    extra=("float64", "float64"),
    lanes=False,
)
