"""Memory layout of loop joints and couplings, filled from a model."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.dynamics_layout import matrices
from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width
from poise.kernel.vec import Mat3, Vec3
from poise.model.loops import LoopJoint
from poise.model.model import Model

Array = NDArray[Any]
FIRST_COUPLING = -(1 << 19)
FIRST_LOOP = -(1 << 20)
"""Ids of rows: of coupling k the first is FIRST_COUPLING − k, of a loop FIRST_LOOP − CODES · serial − code."""
CODES = 32
TURN, SCREW, LIMIT, CONE, FRICTION = 3, 6, 8, 16, 20
"""Codes of rows: 0, 1, 2 along axes, then three rotations; two limits and one friction for each coordinate."""
PERPENDICULAR, PARALLEL, RIGID = 1, 2, 3
"""How rotations are locked: one axis perpendicular to another, parallel to another, or all."""
TURN_X = 3
"""Coordinates: 0, 1, 2 along an axis of A's frame, from here on about one."""
_HELD = {
    "fixed": (7, RIGID, ()),
    "hinge": (7, PARALLEL, (TURN_X,)),
    "slider": (6, RIGID, (0,)),
    "cylindrical": (6, PARALLEL, (0, TURN_X)),
    "screw": (6, PARALLEL, (TURN_X,)),
    "universal": (7, PERPENDICULAR, (TURN_X, TURN_X + 1)),
    "ball": (7, 0, (TURN_X,)),
    "planar": (1, PARALLEL, (1, 2, TURN_X)),
}
"""Locked axes as bits, how rotations are locked, and the coordinates, by kind; in the order of `model.joints`."""
_LOCKED_TURNS = {0: 0, PERPENDICULAR: 1, PARALLEL: 2, RIGID: 3}

LOOPS = View(
    "Loops",
    n_loops=Count,
    body_a=Index,
    body_b=Index,
    link_a=Index,  # −1 if the end does not move
    link_b=Index,
    serial=Index,
    slides=Index,  # locked axes of A's frame, a bit each
    turns=Index,  # 0, PERPENDICULAR, PARALLEL or RIGID
    screws=Index,
    has_cone=Index,
    n_rows=Index,  # of the rows that hold it
    point_a=Vec3,  # from the centre of mass, in the axes of the link; m
    frame_a=Mat3,
    point_b=Vec3,
    frame_b=Mat3,
    pitch=Real,
    cone_y=Real,
    cone_z=Real,
    break_force=Real,
    break_torque=Real,
    active=Int,
    broke=Int,  # 1 if it broke since the flag was reset
    slot=Int,  # first row among the single ones
    force=Vec3,  # on B, mean of the last step; N
    torque=Vec3,  # on B at the joint's point; N·m
    coordinate_start=Index,  # (n_loops + 1)
    # of coordinates
    what=Index,
    motor=Index,  # row of its motor, −1 if there is none
    gear=Real,
    low=Real,
    high=Real,
    friction=Real,
    value=Real,  # last value, from which full turns are counted
)
REMEMBERED = ("active", "broke", "value", "force", "torque")

COUPLINGS = View(
    "Couplings",
    n_couplings=Count,
    first=Index,
    first_q=Index,
    second=Index,  # −1 if there is none
    second_q=Index,
    first_zero=Real,
    second_zero=Real,
    coefficient=Real,  # five each
    active=Int,
)


def coordinates_of(kind: str) -> int:
    """Number of coordinates of a loop's joint."""
    return len(_HELD[kind][2])


def loops_block(model: Model, loops: Sequence[LoopJoint], serials: Sequence[int], width: Width) -> Block:
    """The initial state of all loops; those of the model come first."""
    held = [_HELD[loop.kind] for loop in loops]
    n, starts = len(loops), np.cumsum([0, *(len(what) for _, _, what in held)])
    motors = _motors(model, int(starts[-1]))
    ends = {end: [_end(model, loop, end) for loop in loops] for end in "ab"}
    block = LOOPS.block(
        width,
        n_loops=n,
        serial=np.array(serials, np.int32),
        slides=np.array([slides for slides, _, _ in held], np.int32),
        turns=np.array([turns for _, turns, _ in held], np.int32),
        screws=np.array([loop.kind == "screw" for loop in loops], np.int32),
        has_cone=np.array([min(loop.cone) < inf for loop in loops], np.int32),
        n_rows=np.array(
            [s.bit_count() + _LOCKED_TURNS[t] + (k.kind == "screw") for k, (s, t, _) in zip(loops, held, strict=True)],
            np.int32,
        ),
        coordinate_start=starts.astype(np.int32),
        what=np.array([what for _, _, listed in held for what in listed], np.int32),
        motor=motors[0],
        gear=motors[1],
        low=np.array([low for loop in loops for low, _ in loop.limits]),
        high=np.array([high for loop in loops for _, high in loop.limits]),
        friction=np.array([loop.friction for loop in loops for _ in loop.limits]),
        value=int(starts[-1]),
        cone_y=np.minimum([loop.cone[0] for loop in loops], 100.0),
        cone_z=np.minimum([loop.cone[1] for loop in loops], 100.0),
        **{name: np.array([getattr(one, name) for one in loops], np.float64) for name in _NUMBERS},
        **{
            f"{part}_{end}": np.array([one[k] for one in ends[end]], dtype).reshape(n, *shape)
            for end in "ab"
            for k, (part, dtype, shape) in enumerate(_ENDS)
        },
        **dict.fromkeys(("active", "broke", "slot", "force", "torque"), n),
    )
    for k, loop in enumerate(loops):
        block.active[k] = loop.active
    return block


_NUMBERS = ("pitch", "break_force", "break_torque")
_ENDS = (
    ("body", np.int32, ()),
    ("link", np.int32, ()),
    ("point", np.float64, (3,)),
    ("frame", np.float64, (9,)),
)


def _end(model: Model, loop: LoopJoint, end: str) -> tuple[Any, ...]:
    """Body and link, the point from the body's centre of mass in the link's axes, and the frame there."""
    body: int = getattr(loop, f"body_{end}")
    point, frame = np.array(getattr(loop, f"point_{end}")), np.array(getattr(loop, f"frame_{end}")).reshape(3, 3)
    if body < 0:
        return np.int32(-1), np.int32(-1), point, frame.ravel()
    R = matrices(model.body_quat_wxyz[body : body + 1]).reshape(3, 3)
    link = int(model.body_link[body])
    if link < 0:
        return np.int32(-1), np.int32(-1), model.body_position[body] + R @ point, (R @ frame).ravel()
    return np.int32(body), np.int32(link), R @ (point - model.body_com[body]), (R @ frame).ravel()


def _motors(model: Model, n: int) -> tuple[Array, Array]:
    """Row of the motor on each coordinate, and its gear."""
    rows, gears = np.full(n, -1, np.int32), np.ones(n)
    row = 0
    for motor in model.motors:
        if 0 <= motor.coordinate < n:
            rows[motor.coordinate], gears[motor.coordinate] = row, motor.gear[0]
        row += 3 if motor.ball else 1
    return rows, gears


def couplings_block(model: Model, width: Width) -> Block:
    """Couplings of a model."""
    all_ = model.couplings
    numbers: dict[str, Any] = {
        name: np.array([getattr(one, name) for one in all_], np.int32)
        for name in ("first", "first_q", "second", "second_q")
    }
    numbers |= {name: np.array([getattr(one, name) for one in all_]) for name in ("first_zero", "second_zero")}
    coefficients = np.array([c for one in all_ for c in one.coefficients])
    block = COUPLINGS.block(width, n_couplings=len(all_), coefficient=coefficients, active=len(all_), **numbers)
    for k, one in enumerate(all_):
        block.active[k] = one.active
    return block
