"""Tracking in compiled code: tables of a controller's reference, and the command that sets a world or lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.control.motion_table import Tables
from poise.dynamics.functions import Drive
from poise.formulations.commands.motion_tracking import (
    FOLLOW_IN_WORLD,
    FREE,
    MOTIONS,
    ONE_WORLD,
    PHASE,
    SCHEDULE,
    TRACKING,
)
from poise.kernel.bound import Bound
from poise.kernel.memory import F64, Block, Width
from poise.model.model import Model
from poise.sim.controllers import StepMemory
from poise.sim.world_motors import MotorGoals

if TYPE_CHECKING:
    from poise.control.tracking import Tracking

Array = NDArray[Any]
_KEPT_MOTORS = ("target", "speed", "acceleration", "hurries", "rotation")
_KEPT_GOALS = ("goal_q", "goal_v")
ROOT_SETTLE = 0.05
"""Time constant of errors of a guided root; s."""


def motions_block(tables: Tables, width: Width) -> Block:
    """The tables in the precision of a width."""
    given = {"coefficient": tables.coefficients, "stride": tables.stride}
    return MOTIONS.block(Width(width.elem), n_columns=tables.columns, **given)


def schedule_block(tables: Tables) -> Block:
    """Times and memory offsets of the motions, in float64."""
    return SCHEDULE.block(F64, **tables.schedule())


def phase_block(width: Width) -> Block:
    """Memory for phases of motions, and for the pose of their origin."""
    ends = dict.fromkeys(("interval", "share", "rounds", "moves"), 2)
    block = PHASE.block(width, **ends, **dict.fromkeys(("motion", "rate", "x", "y", "z", "w", "w_z"), 1))
    block.w[...] = 1.0
    return block


def tracking_block(tracking: Tracking, model: Model, motors: Block, width: Width, *, placed: bool) -> Block:
    """The coordinates and motors that a controller sets, and their gains."""
    lay, root = tracking.place.layout, tracking.root_dofs
    sets, rows = tracking.sets, tracking.rows_of
    number_sets = np.array([_of(sets, d) for d in lay.speeds.tolist()], np.int32)
    spins = lay.spins.tolist()
    firsts = [rows.get(spin[0], -1) for spin in spins]
    balls = [int(motors.ball[row]) if row >= 0 else -1 for row in firsts]
    root_number = [k for k, d in enumerate(lay.speeds.tolist()) if d == root.start and root.start < root.stop]
    root_spin = [k for k, spin in enumerate(spins) if spin[0] == root.start + 3 and root.start < root.stop]
    brake = np.full(model.nv, np.inf)
    if len(tracking.brake):
        brake[root] = tracking.brake
    return TRACKING.block(
        width,
        placed=int(placed),
        root=np.array([*root_number, -1][:1] + [*root_spin, -1][:1], np.int32),
        n_numbers=len(lay.numbers),
        n_rotations=len(lay.quats),
        number_q=lay.numbers.astype(np.int32),
        number_v=lay.speeds.astype(np.int32),
        number_sets=number_sets,
        number_row=np.array([rows.get(d, -1) for d in lay.speeds.tolist()], np.int32),
        begin=len(lay.numbers),
        end=len(lay.numbers),
        rotation_q=lay.quats[:, 0].astype(np.int32),
        rotation_v=lay.spins[:, 0].astype(np.int32),
        rotation_sets=np.array([_of(sets, spin[0]) for spin in spins], np.int32),
        rotation_ball=np.array(balls, np.int32),
        rotation_row=np.array([rows.get(d, -1) for spin in spins for d in spin], np.int32),
        gain=np.array(tracking.acceleration_gains),
        brake=brake,
        settle=np.array([ROOT_SETTLE]),
    )


def _of(sets: dict[int, int], dof: int) -> int:
    return sets.get(dof, FREE)


class TrackingCommand:
    """The compiled command of a `Tracking` for one world."""

    def __init__(self, tracking: Tracking, tables: Tables, memory: StepMemory) -> None:
        self._tracking, self._memory = tracking, memory
        model, motors = memory.model, memory.motors
        sizes = {name: len(motors.arrays[name]) for name in _KEPT_MOTORS}
        sizes |= {"goal_q": model.nq, "goal_v": model.nv}
        counts = {"n_rows": sizes["target"], "n_rotation": sizes["rotation"], "nq": model.nq, "nv": model.nv}
        self._kept = ONE_WORLD.block(F64, start=np.array([tracking.start]), **sizes, **counts)
        blocks = (
            *(memory.state, memory.inputs, motors, motions_block(tables, F64), schedule_block(tables)),
            *(phase_block(F64), tracking_block(tracking, model, motors, F64, placed=False), self._kept),
        )
        self.bound = Bound(FOLLOW_IN_WORLD, F64, *(block.handle for block in blocks))

    @property
    def drive(self) -> Drive | None:
        """The drive of tracked joints; its goals are set before each step."""
        if self._tracking.by != "drives":
            return None
        gains = self._tracking.joint_gains
        return Drive(gains[:, 0], gains[:, 1], self._memory.model.q_rest)

    @property
    def motors(self) -> MotorGoals | None:
        """Gains and limits of motors, if the controller sets them."""
        return self._tracking.motor_gains

    def undo(self) -> None:
        """Restore the settings from before the last step."""
        for name in _KEPT_MOTORS:
            self._memory.motors.arrays[name][...] = self._kept.arrays[name][: len(self._memory.motors.arrays[name])]
        for name in _KEPT_GOALS:
            self._memory.inputs.arrays[name][...] = self._kept.arrays[name]
