"""Motors about and along one axis, between any two bodies: powered, limited, or both (VON §5.3).

The axis w is fixed in the first body. With the measure u of a motor, rows of VON §5.3.1 are

    powered   u̇ = u̇_d − α (u − u_d)            with a bounded force, and without the last term at velocity level
    limited   u̇ ≥ (low − u)/dt while u ≥ low    same for the upper end: a motor stops at its end exactly

VON corrects limit violations by a speed, u̇ ≥ α (low − u), which remains when the end is reached. Here
post-stabilization corrects them, as for joint limits, and leaves no speed (`poise.Reduced(erp=…, slop=…)`).

The Jacobian of a row is the exact gradient of the measure. If the second body has rotated across the axis, it differs
from w. For an axis that rotates with its body it contains the lever arm, which VON §5.3.2 omits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar

import numpy as np

from poise.constraints.row_parts import orientation_parts, point_parts
from poise.control.body_motors import BodyMotor, Floats, MotorRow, matrix_of, wished
from poise.kernel.vec import Mat3, Vec3
from poise.model.build import parse_axis
from poise.model.state import State
from poise.sim.controllers import StateToAct


class AxisMotor(BodyMotor):
    """Base class of motors about or along one axis that is fixed in the first body (VON §5.3)."""

    def __init__(
        self,
        first: str | int | None,
        second: str | int | None,
        axis: Any,
        *,
        position: float | Callable[[float], float] | None = None,
        velocity: float | Callable[[float], float] | None = None,
        limits: tuple[float, float] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(first, second, **options)
        way = np.asarray(parse_axis(axis, "axis") or (0.0, 0.0, 0.0), np.float64)
        size = float(np.linalg.norm(way))
        if not 0.0 < size < inf:
            raise ValueError(f"axis is {axis!r}; it must be a direction, three numbers that are not all 0")
        self.axis: Floats = way / size
        self.position, self.velocity, self.limits = position, velocity, limits
        wished("position", position, 0.0, ()), wished("velocity", velocity, 0.0, ())
        self._ends()

    def _ends(self) -> tuple[float, float]:
        """Limits; infinite if there are none."""
        if self.limits is None:
            return -inf, inf
        try:
            low, high = map(float, self.limits)
        except (TypeError, ValueError):
            low, high = 0.0, -1.0
        if not (low <= high and low < inf and high > -inf):
            raise ValueError(f"limits are {self.limits!r}; they must be a pair (low, high)")
        return low, high

    def _label(self) -> str:
        return f"{self.axis}"

    @abstractmethod
    def _part(self, a: Any, b: Any, start: Floats, slots: dict[str, Any]) -> Any:
        """The row, with u as its error."""

    def _maker(self, state: StateToAct, start: Floats) -> Callable[[Any, Any, Any], None] | None:
        wanted = wished("position", self.position, state.time, ())
        speed = wished("velocity", self.velocity, state.time, ())
        (low, high), slots, dt = self._ends(), dict(state.slots), state.dt
        powered = wanted is not None or speed is not None
        if not powered and low == -inf and high == inf:
            return None

        def add(into: Any, a: Any, b: Any) -> None:
            part = self._part(a, b, start, slots)
            u = float(part.phi)
            if powered:
                row = MotorRow(part, None if wanted is None else u - float(wanted), float(speed or 0.0))
                # a motor without bounds must not contradict its own limits
                self._add_one(into, row, dt, self._id, (min(low - u, 0.0) / dt, max(high - u, 0.0) / dt))
            if low > -inf:
                into.add_part(point_parts.at_least(part, low), self._bodies, id=self._id + 1, lo=0.0)
            if high < inf:
                into.add_part(point_parts.at_most(part, high), self._bodies, id=self._id + 2, lo=0.0)

        return add

    def measure(self, state: State, controller: str) -> float:
        """u in a state of the world; `controller` is the name that `add_controller` returned. m or rad."""
        start = f"control/{controller}/"
        slots = {name[len(start) :]: array for name, array in state.slots.items() if name.startswith(start)}
        if "start" not in slots:
            raise ValueError(f'the state has no motor "{controller}" that has acted')
        return float(self._part(*self._seen(state.q, state.v), slots["start"], slots).phi)


class TurnMotor(AxisMotor):
    """Rotates a body about an axis fixed in another body, or in the world (VON §5.3.1); for `world.add_controller`.

    `position` (rad), `velocity` (rad/s) or both are its targets; `limits` (rad) apply regardless of its strength. A
    velocity of 0 with a strength is dry friction. `TurnMotor` connects any two bodies; for joints use `scene.motor`.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", name="arm")
    >>> world = scene.build(dt=0.01)
    >>> motor = TurnMotor(None, "arm", "y", velocity=2.0, limits=(-1.0, 0.5))
    >>> name = world.add_controller(motor)
    >>> world.step(60)
    >>> round(motor.measure(world.state, name), 9)
    0.5
    """

    _NOTES: ClassVar[bool] = True

    def _start(self, a: Any, b: Any) -> Floats:
        return np.eye(3) if self.absolute else matrix_of(a.R).T @ matrix_of(b.R)

    def _part(self, a: Any, b: Any, start: Floats, slots: dict[str, Any]) -> Any:
        return orientation_parts.angle(a, b, Vec3(*self.axis), Mat3(*start.ravel()), float(slots["turned"][0]))

    def _noted(self, slots: dict[str, Any], a: Any, b: Any) -> dict[str, Floats]:
        before = {"turned": slots.get("turned", np.zeros(1))}
        return {"turned": np.array((float(self._part(a, b, slots["start"], before).phi),))}


class TravelMotor(AxisMotor):
    """Moves a body along an axis fixed in another body, or in the world (VON §5.3.2); for `world.add_controller`.

    As `TurnMotor`, in m and m/s, for the second body's centre of mass. It drives only this direction; other constraints
    must keep the bodies' orientations.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box")
    >>> world = scene.build(dt=0.01)
    >>> _ = world.add_controller(TravelMotor(None, "box", "x", position=0.3))
    >>> world.step(200)
    >>> float(world.q[0].round(6))
    0.3
    """

    def _start(self, a: Any, b: Any) -> Floats:
        none = Vec3(0.0, 0.0, 0.0)
        return (
            np.zeros(1)
            if self.absolute
            else np.array((float(point_parts.along(a, b, none, none, Vec3(*self.axis)).phi),))
        )

    def _part(self, a: Any, b: Any, start: Floats, slots: dict[str, Any]) -> Any:
        none = Vec3(0.0, 0.0, 0.0)
        return point_parts.at_least(point_parts.along(a, b, none, none, Vec3(*self.axis)), float(start[0]))
