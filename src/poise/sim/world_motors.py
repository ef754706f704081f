"""Motors of a world: their settings and forces by name, and controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.kinds.motor import FIRST_ID
from poise.constraints.motor_controls import CONTROLS, KINDS, SET_ALL, SET_CONTROLS
from poise.constraints.row_store import SINGLE
from poise.kernel.bound import Bound
from poise.kernel.memory import F64, Block, Shared
from poise.model.errors import resolve_name
from poise.model.model import Model
from poise.motion.rotations import quat_normalize

if TYPE_CHECKING:
    from poise.formulations.acceleration_level.acceleration_driver import Accelerated
    from poise.formulations.driver import Stepper
    from poise.sim.actuation import Joined

Array = NDArray[Any]


def motor_rows(model: Model) -> list[slice]:
    """Rows of each motor: three for a motor of a ball joint, otherwise one."""
    ends = np.cumsum([0, *(3 if motor.ball else 1 for motor in model.motors)]).tolist()
    return [slice(ends[k], ends[k + 1]) for k in range(len(model.motors))]


def rows_by_dof(model: Model) -> dict[int, int]:
    """The row of the first motor on each degree of freedom that has a motor of its own."""
    rows: dict[int, int] = {}
    for motor, places in zip(model.motors, motor_rows(model), strict=True):
        if motor.ball or (len(motor.dofs) == 1 and motor.gear == (1.0,)):
            rows |= {d: places.start + k for k, d in enumerate(motor.dofs) if d not in rows}
    return rows


def motor_number(model: Model, name: str | int) -> int:
    """A motor's index, from its name or number."""
    names = [motor.name for motor in model.motors]
    if isinstance(name, str):
        return names.index(resolve_name("motor", name, names))
    if isinstance(name, bool) or not isinstance(name, int | np.integer) or not 0 <= name < len(names):
        raise ValueError(f"motor {name!r}: there are {len(names)}, by name or counted from 0")
    return int(name)


def _number(name: str, value: Any, *, least: float = -inf, infinite: bool = False) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a number") from None
    if not (number >= least and (isfinite(number) or (infinite and number == inf))):
        raise ValueError(
            f"{name} is {value}; it must be {'finite' if least == -inf else f'a number from {least:g} on'}"
        )
    return number


class WorldMotor:
    """A motor of a world: its force is torque + stiffness (target − x) + damping (speed − ẋ), within its limit.

    x is the motor's gear times the coordinate that it drives. For a ball joint, the target is a rotation (w, x, y, z),
    and speed, torque and force are three numbers in the child's axes.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    >>> _ = scene.motor("arm", stiffness=500.0, damping=50.0, limit=30.0)
    >>> world = scene.build(dt=1 / 240)
    >>> world.motor("arm").target = 0.4
    >>> world.step(480)
    >>> bool(0.38 < world.q[0] < 0.4)
    True
    """

    __slots__ = ("index", "world")

    def __init__(self, world: Joined, index: int) -> None:
        self.world, self.index = world, index

    def __repr__(self) -> str:
        return f"<motor {self.name!r}>"

    @property
    def name(self) -> str:
        """Its full name."""
        return self.world.model.motors[self.index].name

    @property
    def _stepper(self) -> Stepper | Accelerated:
        stepper: Stepper | Accelerated = self.world._stepper
        return stepper

    @property
    def _rows(self) -> slice:
        return self.world._controls.rows[self.index]

    @property
    def _ball(self) -> bool:
        return self.world.model.motors[self.index].ball

    def _get(self, field: str) -> Any:
        values = self._stepper.extras.motors.arrays[field][self._rows]
        return values.copy() if self._ball else float(values[0])

    def _set(self, field: str, value: Any) -> None:
        numbers = np.asarray(value, np.float64) if self._ball and np.ndim(value) else _number(field, value)
        if np.ndim(numbers) and (np.shape(numbers) != (3,) or not np.isfinite(numbers).all()):
            raise ValueError(f"{field} is {value!r}; it must be three finite numbers, or one")
        self._stepper.extras.motors.arrays[field][self._rows] = numbers

    @property
    def target(self) -> Any:
        """Target of x, or (w, x, y, z) for a ball joint; m or rad."""
        if not self._ball:
            return self._get("target")
        k = int(self._stepper.extras.motors.ball[self._rows.start])
        return self._stepper.extras.motors.rotation[4 * k : 4 * k + 4].copy()

    @target.setter
    def target(self, target: ArrayLike) -> None:
        if not self._ball:
            self._set("target", target)
            return
        quat = np.asarray(target, np.float64)
        if quat.shape != (4,) or not np.isfinite(quat).all() or not quat.any():
            raise ValueError(f"target is {target!r}; that of a ball must be a rotation (w, x, y, z)")
        k = int(self._stepper.extras.motors.ball[self._rows.start])
        self._stepper.extras.motors.rotation[4 * k : 4 * k + 4] = quat_normalize(quat)

    @property
    def speed(self) -> Any:
        """Target of ẋ; m/s or rad/s."""
        return self._get("speed")

    @speed.setter
    def speed(self, speed: ArrayLike) -> None:
        self._set("speed", speed)

    @property
    def torque(self) -> Any:
        """Feedforward force; N or N·m."""
        return self._get("torque")

    @torque.setter
    def torque(self, torque: ArrayLike) -> None:
        self._set("torque", torque)

    @property
    def acceleration(self) -> Any:
        """Target ẍ, which replaces spring and damper within the force limit, or None; m/s² or rad/s²."""
        return self._get("acceleration") if self._stepper.extras.motors.hurries[self._rows.start] > 0.0 else None

    @acceleration.setter
    def acceleration(self, acceleration: ArrayLike | None) -> None:
        if acceleration is not None:
            self._set("acceleration", acceleration)
        self._stepper.extras.motors.hurries[self._rows] = 0.0 if acceleration is None else 1.0

    @property
    def stiffness(self) -> float:
        """N/m or N·m/rad. At velocity level it may be infinite: the target is reached within a step."""
        return float(self._stepper.extras.motors.stiffness[self._rows.start])

    @stiffness.setter
    def stiffness(self, stiffness: float) -> None:
        self._stepper.extras.motors.stiffness[self._rows] = _number("stiffness", stiffness, least=0.0, infinite=True)

    @property
    def damping(self) -> float:
        """N·s/m or N·m·s/rad. At velocity level it may be infinite: the speed is reached within a step."""
        return float(self._stepper.extras.motors.damping[self._rows.start])

    @damping.setter
    def damping(self, damping: float) -> None:
        self._stepper.extras.motors.damping[self._rows] = _number("damping", damping, least=0.0, infinite=True)

    @property
    def limit(self) -> tuple[float, float]:
        """Minimum and maximum force; a single number f sets ±f; N or N·m."""
        b, first = self._stepper.extras.motors, self._rows.start
        return float(b.low[first]), float(b.high[first])

    @limit.setter
    def limit(self, limit: float | tuple[float, float]) -> None:
        if isinstance(limit, tuple | list) and len(limit) == 2 and limit[0] <= limit[1]:
            low, high = float(limit[0]), float(limit[1])
        elif isinstance(limit, tuple | list):
            raise ValueError(f"limit is {limit!r}; it must be a force, 0 or more, or a pair (least, greatest)")
        else:
            high = _number("limit", limit, least=0.0, infinite=True)
            low = -high
        self._stepper.extras.motors.low[self._rows], self._stepper.extras.motors.high[self._rows] = low, high

    @property
    def force(self) -> Any:
        """Force of the last step; N or N·m."""
        unit = self._stepper.force_unit(self.world.dt / self.world.formulation.substeps)
        force = motor_forces(self._stepper, unit)[self._rows]
        return force if self._ball else float(force[0])


def motor_forces(stepper: Stepper | Accelerated, dt: float) -> Array:
    """(rows,) forces of all motors in the last step; 0 for motors without a row and without a coordinate."""
    rows, force = stepper.rows.now, stepper.extras.motors.force.copy()
    first = int(rows.first[SINGLE])
    ids = FIRST_ID - rows.id[first : first + int(rows.count[SINGLE])]
    ours = np.flatnonzero((ids >= 0) & (ids < len(force)))
    force[ids[ours]] = rows.lam[first + ours] / dt
    return np.asarray(force)


@dataclass(frozen=True, eq=False)
class MotorGoals:
    """Settings of motors from the next step on, by row (see `motor_rows`). Fields that are None stay unchanged.

    >>> MotorGoals(np.array([0, 1]), speed=np.zeros(2)).target is None
    True
    """

    rows: Array
    """(n,) numbers of rows."""
    target: Array | None = None
    """(n,) m or rad; not used for rows of ball joints."""
    speed: Array | None = None
    """(n,) m/s or rad/s."""
    acceleration: Array | None = None
    """(n,) target accelerations, which replace springs and dampers; m/s² or rad/s²."""
    stiffness: Array | None = None
    """(n,) N/m or N·m/rad."""
    damping: Array | None = None
    """(n,) N·s/m or N·m·s/rad."""
    limit: Array | None = None
    """(n,) greatest force in both directions; N or N·m."""
    balls: Array | None = None
    """(m,) first rows of motors of ball joints."""
    rotations: Array | None = None
    """(m, 4) their targets; w, x, y, z."""

    def lay(self, stepper: Stepper | Accelerated) -> None:
        """Write these settings to the motors of a driver."""
        motors = stepper.extras.motors
        if not len(self.rows) and self.balls is None:
            return
        for name in ("target", "speed", "acceleration", "stiffness", "damping"):
            if (numbers := getattr(self, name)) is not None:
                if not (np.isfinite(numbers).all() or name in ("stiffness", "damping")):
                    raise ValueError(f"{name} of a motor is not finite: {numbers}")
                motors.arrays[name][self.rows] = numbers
        if self.acceleration is not None:
            motors.hurries[self.rows] = 1.0
        if self.limit is not None:
            motors.low[self.rows], motors.high[self.rows] = -self.limit, self.limit
        if self.balls is not None and self.rotations is not None:
            places = 4 * motors.ball[self.balls][:, None] + np.arange(4)
            motors.rotation[places] = self.rotations


class Controls:
    """Controls of motors, as MuJoCo's ctrl: one number for each actuator, within its range."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.values = np.array([motor.first_control for motor in model.motors], np.float64)
        self.applied = self.values.copy()
        self.rows = motor_rows(model)
        """Rows of each motor."""
        self._set: Callable[[int], int] | None = None
        self._motors: Block | None = None

    def copy(self) -> Controls:
        """A copy with its own arrays."""
        new = Controls(self.model)
        new.values, new.applied = self.values.copy(), self.applied.copy()
        return new

    def apply(self, stepper: Stepper | Accelerated) -> None:
        """Set the motors whose controls changed."""
        if self.model.motors and self.values.tobytes() != self.applied.tobytes():
            self._apply(stepper, every=False)

    def apply_all(self, stepper: Stepper | Accelerated) -> None:
        """Set every motor to its control, except those of ball joints, which have none."""
        if self.model.motors:
            self._apply(stepper, every=True)

    def _apply(self, stepper: Stepper | Accelerated, *, every: bool) -> None:
        """Set motors. If one cannot be set, the motors before it stay set, and its control is restored."""
        if self._motors is not stepper.extras.motors or self._set is None:
            self._motors = stepper.extras.motors
            self._set = Bound(SET_CONTROLS, F64, self._block().handle, self._motors.handle).caller
        if (fault := self._set(int(every))) != SET_ALL:
            self._refuse(fault)

    def _block(self) -> Block:
        """Memory of controls for compiled code."""
        motors = self.model.motors
        columns = ("gain", "offset", "stiffness", "damping")
        numbers = {name: np.array([getattr(motor, name) for motor in motors], np.float64) for name in columns}
        slopes = np.array([motor.slopes for motor in motors], np.float64).reshape(-1, 2).T
        return CONTROLS.block(
            F64,
            n=len(motors),
            row=np.array([rows.start for rows in self.rows], np.int32),
            kind=np.array([KINDS.index(motor.control) for motor in motors], np.int32),
            ball=np.array([motor.ball for motor in motors], np.int32),
            low=np.array([motor.control_low for motor in motors], np.float64),
            high=np.array([motor.control_high for motor in motors], np.float64),
            **numbers,
            **dict(zip(("stiffness_slope", "damping_slope"), slopes, strict=True)),
            given=Shared(self.values),
            applied=Shared(self.applied),
            product=len(motors),
        )

    def _refuse(self, k: int) -> NoReturn:
        """Restore the control of a motor, and raise the reason."""
        motor, value = self.model.motors[k], float(self.values[k])
        self.values[k] = self.applied[k]
        if not isfinite(value):
            raise ValueError(f'ctrl[{k}] is {value}; the control of motor "{motor.name}" must be finite')
        if motor.ball:
            raise ValueError(f'motor "{motor.name}" turns a ball joint: set world.motor("{motor.name}").target')
        raise ValueError(f'ctrl[{k}] is {value}; the {motor.control} of motor "{motor.name}" is not finite then')
