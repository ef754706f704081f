"""Rows of motors: springs and dampers towards a goal, with a bounded force (LIU eqs. 9-13, VON §5.1-§5.3).

With f as in `model.motors`, eq. 1, evaluated at the end of a step h, a motor is a row on its coordinate x with

    v_ref = erp (target − x)/h + (1 − erp) speed + h cfm torque,   erp, cfm as in `softness`

and the bounds of f. The row's target includes all of it: a motor has no position error to correct. Motors without
stiffness and damping are no rows, but forces on the coordinates (`add_motor_forces`). Negative stiffness and damping
are evaluated at the start of the step and added to the torque.

Actuator ranges bound the total force of all motors of a degree of freedom. Forces are computed before rows: bounds of
rows are the remaining range, and where there are no rows, the total is clamped to the range.

Most motors are far from the bounds of their force. Such a motor on a single coordinate is an unbounded spring and
damper, and is folded into the inertia as drives are (`fold_motors`): with f = f₀ − c a, a being the acceleration of its
coordinate, f₀ is a force and c adds to the diagonal. It costs no row. Once impulses are known, `check_motors` tests
whether its force is within bounds. If one is not, those motors become rows, and the step is repeated from its free
motion on. The motors to fold in the next step are part of the state: those well within their bounds in this one.

At acceleration level (`explicit`) every motor is a force, that of eq. 1 at the present state, except those with a
target acceleration: they are rows with it as a_ref.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.emit_rows import open_block, put_bounds, put_dof_row, put_term
from poise.constraints.row_store import SINGLE
from poise.constraints.softness import spring_row
from poise.dynamics.kinematics import load_four
from poise.dynamics.passive import component, pull, stiffening
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, View, Width, load, scatter_where, store
from poise.kernel.quat import conjugate, log_rotation, normalize
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, zero
from poise.kernel.spatial import no_force
from poise.kernel.trace import formula
from poise.model.joints import Primitive
from poise.model.model import Model

Array = NDArray[Any]
FOLDED_SHARE = 0.8
"""Share of its bound: a motor with less force is folded in the next step."""
BEYOND = 1e-9
"""Tolerance of a folded motor's bounds, relative to its force plus 1."""
ATTEMPTS = 2
"""Attempts at a step with folded motors; then all motors are rows, in worlds where any exceeded their bounds."""
FIRST_ID = -2
"""Id of the first motor's row; those of the others decrease. Rows of joints have ids from 0 on."""
MOST = 1e30
"""Greatest force of motors that only push: an infinite upper bound would mark a contact elsewhere; N or N·m."""

MOTORS = View(
    "Motors",
    n_rows=Count,
    explicit=Count,  # 1 if forces are those of the present state, at acceleration level
    has_negative=Count,  # 1 if stiffness or damping may be negative
    n_ranges=Count,
    term_start=Index,  # (n_rows + 1) coordinates of a row
    term_dof=Index,
    term_q=Index,  # coordinate, or the first of a ball's four
    term_part=Index,  # −1; of a ball 0, 1, 2: which part of its rotation vector
    term_range=Index,  # range of its degree of freedom, −1 if there is none
    ball=Index,  # (n_rows) number of the target rotation, −1 if the target is a number
    term_gear=Real,
    # (n_rows)
    stiffness=Real,
    damping=Real,
    target=Real,
    speed=Real,
    torque=Real,
    acceleration=Real,
    hurries=Real,  # 1 if the acceleration is the target, whatever the other targets are
    low=Real,
    high=Real,
    force=Real,  # of the last step, if it was not a row; N or N·m
    unsaturated=Real,  # 1 if it was well within its bounds in the last step: it may be folded in the next
    folded=Real,  # 1 if it is folded into the inertia
    barred=Real,  # 1 if it must not be folded in this step
    base=Real,  # its force at zero acceleration; N or N·m
    slope=Real,  # decrease of its force with acceleration; kg or kg·m²
    folds=Count,  # 0 if none may be folded
    attempts=Real,  # (1) attempts at this step that exceeded bounds
    rotation=Real,  # (4 · balls) targets of balls; w, x, y, z
    # (n_ranges)
    range_dof=Index,
    range_lifted=Index,  # 1 if gravity compensation counts as a motor force
    range_low=Real,
    range_high=Real,
    range_known=Real,  # force of all that are not rows; N or N·m
    range_rows=Real,  # 1 if there are rows
    range_cut=Real,  # force added to stay in the range; N or N·m
)
SETTINGS = (
    *("stiffness", "damping", "target", "speed", "torque", "acceleration", "hurries", "low", "high", "rotation"),
    "force",
    "unsaturated",
)
"""Fields that may change from step to step, and are part of the state."""


def motors_block(model: Model, width: Width) -> Block:
    """The motors of a model in their initial state."""
    scalar = {int(d): int(j) for d, j in zip(model.primitive_v_start, model.primitive_q_start, strict=True)}
    starts, terms, ball, rotations = [0], [], [], []
    numbers: dict[str, list[float]] = {name: [] for name in ("stiffness", "damping", "speed", "torque", "low", "high")}
    target = []
    for motor in model.motors:
        per_row = [(d,) for d in motor.dofs] if motor.ball else [motor.dofs]
        for dofs in per_row:
            gears = (1.0,) if motor.ball else motor.gear
            terms += [(d, *_place(model, scalar, d), gear) for d, gear in zip(dofs, gears, strict=False)]
            starts.append(len(terms))
            ball.append(len(rotations) // 4 if motor.ball else -1)
            target.append(0.0 if motor.ball else motor.target[0])
            first = dict(zip(("stiffness", "damping"), motor.first_gains, strict=True))
            for name, values in numbers.items():
                values.append(first.get(name, getattr(motor, name)))
        rotations += motor.target if motor.ball else ()
    n, ranges = len(ball), {int(d): r for r, d in enumerate(model.actuator_range_dof)}
    negative = [motor.stiffness < 0.0 or motor.damping < 0.0 or any(motor.slopes) for motor in model.motors]
    table = np.array([term[:3] for term in terms], np.int32).reshape(-1, 3)
    return MOTORS.block(
        width,
        n_rows=n,
        explicit=0,
        has_negative=int(any(negative)),
        n_ranges=len(ranges),
        term_start=np.array(starts, np.int32),
        term_dof=table[:, 0].copy(),
        term_q=table[:, 1].copy(),
        term_part=table[:, 2].copy(),
        term_range=np.array([ranges.get(int(d), -1) for d in table[:, 0]], np.int32),
        term_gear=np.array([term[3] for term in terms], np.float64),
        ball=np.array(ball, np.int32),
        target=np.array(target, np.float64),
        acceleration=n,
        hurries=n,
        force=n,
        unsaturated=np.ones(n),
        **dict.fromkeys(("folded", "barred", "base", "slope"), n),
        folds=1,
        attempts=1,
        rotation=np.array(rotations, np.float64),
        range_dof=model.actuator_range_dof.copy(),
        range_lifted=model.actuator_range_lifted.copy(),
        range_low=model.actuator_range[:, 0].copy(),
        range_high=model.actuator_range[:, 1].copy(),
        **dict.fromkeys(("range_known", "range_rows", "range_cut"), len(ranges)),
        **{name: np.array(values, np.float64) for name, values in numbers.items()},
    )


def _place(model: Model, scalar: dict[int, int], d: int) -> tuple[int, int]:
    """Coordinate of a degree of freedom, and its component of a ball's rotation vector, or −1."""
    first = d if d in scalar else d - 1 if d - 1 in scalar else d - 2
    k = int(np.flatnonzero(model.primitive_v_start == first)[0])
    return scalar[first], d - first if model.primitive_kind[k] == Primitive.BALL else -1


def is_endless(b: Block) -> Array:
    """Whether motors, row by row, use an infinite stiffness or damping: then no force follows from the state."""
    return np.asarray(((b.stiffness == inf) | (b.damping == inf)) & (b.hurries == 0.0))


def plain_forces(b: Block, a: Array) -> Array:
    """(nv,) forces on the coordinates of motors that were not rows in the last step, in one world; N or N·m.

    Those of folded motors follow from their law at the accelerations `a`, as in `dynamics.passive`. In a step of
    several parts these are not the accelerations of the last part, for which `force` was computed.
    """
    nv, row = len(a), np.repeat(np.arange(len(b.force)), np.diff(b.term_start))
    by_law = b.base[row] - b.slope[row] * b.term_gear * a[b.term_dof]
    per_term = np.where(b.folded[row] > 0.0, by_law, b.force[row]) * b.term_gear
    return np.bincount(b.term_dof, per_term, nv) + np.bincount(b.range_dof, b.range_cut, nv)


@formula
def within_most(x: Any) -> Any:
    """A number clamped to ±MOST, so that sums and products of motors stay finite."""
    return maximum(minimum(x, MOST), -MOST)


@formula
def motor_law(
    stiffness: Any,
    damping: Any,
    error: Any,
    speed: Any,
    torque: Any,
    now: Any,
    acceleration: Any,
    hurries: Any,
    dt: Any,
    whole: Any,
) -> Any:
    """Target velocity and softness of a motor's row; `error` is from x to its target, `now` its velocity.

    Targets are clamped, so that very large ones stay finite: the force is then at the motor's bound.
    """
    erp, cfm = spring_row(stiffness, damping, dt)
    error, speed, acceleration = within_most(error), within_most(speed), within_most(acceleration)
    # hard motors have the whole step to reach their target, also if it is split
    reach = select(stiffness == inf, error * (1.0 / whole), error * (1.0 / dt))
    wanted = reach * erp + speed * (1.0 - erp) + within_most(torque * cfm * dt)
    hurry = hurries > 0.0
    return within_most(select(hurry, now + acceleration * dt, wanted)), select(hurry, zero(cfm), cfm)


@kernel
def lawless_torque(b, j, error, now):
    """The torque of a motor, with the forces of negative stiffness and damping at the present state."""
    torque = load(b.torque, j)
    if b.has_negative != 0:
        none = zero(torque)
        torque = torque + minimum(load(b.stiffness, j), none) * error
        torque = torque + minimum(load(b.damping, j), none) * (load(b.speed, j) - now)
    return torque


@kernel
def put_motor(b, e, slot, there, j, error, now, dt, whole):
    """Write the fields of a motor's row."""
    none = zero(error)
    wanted, cfm = motor_law(
        maximum(load(b.stiffness, j), none),
        maximum(load(b.damping, j), none),
        error,
        load(b.speed, j),
        lawless_torque(b, j, error, now),
        now,
        load(b.acceleration, j),
        load(b.hurries, j),
        dt,
        whole,
    )
    low, high = load(b.low, j), load(b.high, j)
    if b.n_ranges > 0:
        low, high = within_ranges(b, j, low, high)
    put_bounds(e, slot, there, low, select(low >= 0.0, minimum(high, MOST), high))
    if b.explicit != 0:
        scatter_where(e.a_ref, slot, load(b.acceleration, j), there)
    scatter_where(e.target, slot, wanted, there)
    scatter_where(e.cfm, slot, cfm, there)


@kernel
def within_ranges(b, j, low, high):
    """Bounds of a row from the remaining ranges of its coordinates; outside the motor's own bounds, the nearest of
    these.
    """
    least, most = low, high
    for n in range(load(b.term_start, j), load(b.term_start, j + 1)):
        r, gear = load(b.term_range, n), load(b.term_gear, n)
        if r >= 0:
            known, share = load(b.range_known, r), 1.0 / gear
            one, other = (load(b.range_low, r) - known) * share, (load(b.range_high, r) - known) * share
            least, most = maximum(least, minimum(one, other)), minimum(most, maximum(one, other))
    return minimum(least, high), maximum(most, low)


@kernel
def begin_ranges(b, w):
    """Initialize the motor force in each range: gravity compensation, if it counts as one, else zero."""
    none = zero(load(w.total, 0))
    for r in range(b.n_ranges):
        store(b.range_known, r, load(w.lift, load(b.range_dof, r)) if load(b.range_lifted, r) != 0 else none)
        store(b.range_rows, r, none)


@kernel
def note_in_ranges(b, j, force, row):
    """Add the force of a motor to the ranges of its coordinates, and mark those with rows."""
    for n in range(load(b.term_start, j), load(b.term_start, j + 1)):
        r = load(b.term_range, n)
        if r >= 0:
            store(b.range_known, r, load(b.range_known, r) + force * load(b.term_gear, n))
            store(b.range_rows, r, select(row, zero(force) + 1.0, load(b.range_rows, r)))


@kernel
def end_ranges(b, w):
    """Clamp the total force to the range, where there are no rows."""
    for r in range(b.n_ranges):
        known, d = load(b.range_known, r), load(b.range_dof, r)
        cut = maximum(minimum(known, load(b.range_high, r)), load(b.range_low, r)) - known
        cut = select(load(b.range_rows, r) > 0.0, zero(known), cut)
        store(b.range_cut, r, cut)
        store(w.total, d, load(w.total, d) + cut)


@kernel
def drives(b, j):
    """Worlds in which a motor is a row, unless it is folded."""
    if b.explicit != 0:
        return load(b.hurries, j) > 0.0
    return (load(b.stiffness, j) > 0.0) | (load(b.damping, j) > 0.0) | (load(b.hurries, j) > 0.0)


@kernel
def is_row(b, j):
    """Worlds in which a motor is a row: where it is not folded into the inertia."""
    return drives(b, j) & (load(b.folded, j) == 0.0)


@kernel
def begin_folding(b):
    """Start a step: all motors may be folded."""
    for j in range(b.n_rows):
        store(b.barred, j, zero(load(b.force, j)))
    if b.n_rows > 0:
        store(b.attempts, 0, zero(load(b.force, 0)))


@kernel
def can_fold(b, j):
    """Worlds in which a motor is a spring and damper on a single coordinate, without a range and with finite gains."""
    first = load(b.term_start, j)
    k, c = load(b.stiffness, j), load(b.damping, j)
    plain = (k >= 0.0) & (c >= 0.0) & (k + c > 0.0) & (k < inf) & (c < inf) & (load(b.hurries, j) == 0.0)
    if b.explicit != 0 or b.folds == 0 or load(b.term_start, j + 1) != first + 1:
        return plain & ~plain
    if load(b.term_range, first) >= 0:
        return plain & ~plain
    return plain


@kernel
def fold_motors(s, b, w, dt):
    """Fold motors into forces and inertias of coordinates, in worlds in which they can be and were unsaturated."""
    for j in range(b.n_rows):
        able = can_fold(b, j)
        none = zero(load(b.force, j))
        folded = able & (load(b.unsaturated, j) > 0.0) & (load(b.barred, j) == 0.0)
        store(b.folded, j, select(folded, none + 1.0, none))
        if any_lane(able):
            error, now = motor_reach(s, b, j)
            k, c = select(able, load(b.stiffness, j), none), select(able, load(b.damping, j), none)
            error, speed = within_most(error), within_most(load(b.speed, j))
            base = pull(k, c, error, now, none + dt) + c * speed + within_most(load(b.torque, j))
            slope = stiffening(k, c, none + dt)
            store(b.base, j, base)
            store(b.slope, j, slope)
            n = load(b.term_start, j)
            d, gear = load(b.term_dof, n), load(b.term_gear, n)
            store(w.total, d, load(w.total, d) + select(folded, base * gear, none))
            store(w.diagonal, d, load(w.diagonal, d) + select(folded, slope * (gear * gear), none))


@kernel
def check_motors(b, change, dt):
    """Worlds in which a folded motor exceeds its bounds at the velocity change `change`; it is barred from folding in
    this step.
    """
    none = zero(load(change, 0))
    again = none != none
    for j in range(b.n_rows):
        folded = load(b.folded, j) > 0.0
        if any_lane(folded):
            force = folded_force(b, j, change, dt)
            low, high = load(b.low, j), load(b.high, j)
            room = BEYOND * (fabs(force) + 1.0)
            beyond = folded & ~((force >= low - room) & (force <= high + room))
            again = again | beyond
            store(b.barred, j, select(beyond, zero(force) + 1.0, load(b.barred, j)))
    return again


@kernel
def bar_all(b, again):
    """Count an attempt; after ATTEMPTS all motors are rows."""
    attempts = load(b.attempts, 0)
    store(b.attempts, 0, select(again, attempts + 1.0, attempts))
    many = again & (attempts + 1.0 >= float(ATTEMPTS))
    for j in range(b.n_rows):
        store(b.barred, j, select(many, zero(attempts) + 1.0, load(b.barred, j)))


@kernel
def folded_force(b, j, change, dt):
    """Force of a folded motor by its law, for a velocity change in a step."""
    return force_by_law(b, j, load(b.term_start, j), load(change, load(b.term_dof, load(b.term_start, j))) / dt)


@kernel
def force_by_law(b, j, n, a):
    """Force of a folded motor, at the acceleration of the degree of freedom of its term n."""
    return load(b.base, j) - load(b.slope, j) * (a * load(b.term_gear, n))


@kernel
def note_motors(b, change, dt):
    """Store the forces of folded motors, and which motors are well within their bounds."""
    for j in range(b.n_rows):
        able = can_fold(b, j)
        none = zero(load(b.force, j))
        if any_lane(able):
            force = folded_force(b, j, change, dt)
            well = (force >= load(b.low, j) * FOLDED_SHARE) & (force <= load(b.high, j) * FOLDED_SHARE)
            store(b.unsaturated, j, select(able & ~well, none, none + 1.0))
            store(b.force, j, select(load(b.folded, j) > 0.0, force, load(b.force, j)))


@kernel
def motor_force(b, j, error, now):
    """Eq. 1 of `model.motors` at the present state."""
    force = load(b.torque, j) + load(b.stiffness, j) * error + load(b.damping, j) * (load(b.speed, j) - now)
    return maximum(minimum(force, load(b.high, j)), load(b.low, j))


@kernel
def add_motor_forces(s, b, w):
    """Add forces of motors that are not rows to those on the coordinates; returns worlds in which some are rows."""
    driven = load(w.total, 0) != load(w.total, 0)
    if b.n_ranges > 0:
        begin_ranges(b, w)
    for j in range(b.n_rows):
        if load(b.term_start, j + 1) > load(b.term_start, j):
            force = maximum(minimum(load(b.torque, j), load(b.high, j)), load(b.low, j))
            if b.explicit != 0:
                error, now = motor_reach(s, b, j)
                force = motor_force(b, j, error, now)
            elif b.has_negative != 0:
                error, now = motor_reach(s, b, j)
                force = maximum(minimum(lawless_torque(b, j, error, now), load(b.high, j)), load(b.low, j))
            row, folded = is_row(b, j), load(b.folded, j) > 0.0
            driven = driven | row
            force = select(row | folded, zero(force), force)
            store(b.force, j, force)
            if b.n_ranges > 0:
                note_in_ranges(b, j, force, row)
            if any_lane(force != 0.0):
                for n in range(load(b.term_start, j), load(b.term_start, j + 1)):
                    d = load(b.term_dof, n)
                    store(w.total, d, load(w.total, d) + force * load(b.term_gear, n))
    if b.n_ranges > 0:
        end_ranges(b, w)
    return driven


@kernel
def term_value(s, b, n):
    """Coordinate of a term; for a ball, a component of its rotation vector."""
    part, q = load(b.term_part, n), load(b.term_q, n)
    if part < 0:
        return load(s.q, q)
    return component(log_rotation(normalize(load_four(s.q, q))), part)


@kernel
def ball_error(s, b, j):
    """A component of the rotation vector from a ball's rotation to its target, in the child's axes."""
    n = load(b.term_start, j)
    goal = normalize(load_four(b.rotation, 4 * load(b.ball, j)))
    turn = conjugate(normalize(load_four(s.q, load(b.term_q, n)))) @ goal
    return component(log_rotation(turn), load(b.term_part, n))


@kernel
def motor_reach(s, b, j):
    """Difference of a motor's target and its coordinate x, and the velocity of x."""
    x = zero(load(s.q, 0))
    now = x
    for n in range(load(b.term_start, j), load(b.term_start, j + 1)):
        gear = load(b.term_gear, n)
        x, now = x + term_value(s, b, n) * gear, now + load(s.v, load(b.term_dof, n)) * gear
    error = load(b.target, j) - x
    if load(b.ball, j) >= 0:
        error = ball_error(s, b, j)
    return error, now


@kernel
def emit_motor(s, b, e, j, there, dt, whole):
    """The row of a motor on coordinates, in the lanes of a mask."""
    first, last = load(b.term_start, j), load(b.term_start, j + 1)
    slot, there = open_block(e, SINGLE, there, zero(load(e.count, 0)) + (FIRST_ID - j))
    put_dof_row(e, slot, there, zero(slot) + load(b.term_dof, first), load(b.term_gear, first))
    minus = zero(slot) - 1
    for n in range(first + 1, last):
        term = minus + (load(b.term_dof, n) + 1)
        put_term(e, slot, there, minus, no_force(load(s.q, 0)), term, load(b.term_gear, n))
    error, now = motor_reach(s, b, j)
    put_motor(b, e, slot, there, j, error, now, dt, whole)


@kernel
def emit_motors(s, b, e, dt, whole):
    """Rows of all motors on coordinates."""
    for j in range(b.n_rows):
        if load(b.term_start, j + 1) > load(b.term_start, j):
            there = is_row(b, j)
            if any_lane(there):
                emit_motor(s, b, e, j, there, dt, whole)
