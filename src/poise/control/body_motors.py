"""Motors between any two bodies, joined or not; one may be the world (VON §5.1 to §5.4).

A motor measures the motion u of the second body relative to the first since the motor started. One or three rows
constrain its rate at the end of the step (VON §5: position level motors by velocity level ones)

    u̇ = u̇_d                        for a target velocity
    u̇ = u̇_d − α (u − u_d)          for a target position; u̇_d is 0 by default

with a bounded force. Measures and their rates are

    LinearMotor    x_B − x_A, three numbers along axes of A (or, as VON §5.1 is printed, of the world)
    AngularMotor   U = R_Aᵀ R_B R_B0ᵀ R_A0, whose error U U_dᵀ is a rotation by z about w; rate ω_B − ω_A VON §5.2
    TravelMotor    x_B − x_A along an axis fixed in A                                                   VON §5.3.2
    TurnMotor      the angle about an axis fixed in A, unwrapped                                        VON §5.3.1
    PoseMotor      linear and angular together: the root's motor of VON §5.4

As printed, VON's linear motors act at both centres of mass. Unless the line of force joins them, this leaves an
unbalanced couple. With axes of A, both forces act at one point, and linear and angular momentum are conserved.

Instead of α, a `Spring` can correct the error: implicit (LIU eqs. 12, 13), with dead zones, progressive. The initial
poses of the bodies are in the slots of the state, so that a restored world continues bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.row_parts import nonholonomic_parts, point_parts
from poise.constraints.row_parts.part_bodies import body_at
from poise.control.demand_sharing import number
from poise.control.springs import Spring, soft_row
from poise.dynamics.argument_checks import body_number, checked_vector
from poise.kernel.vec import Vec3
from poise.model.model import Model
from poise.model.state import State
from poise.motion.motion_checks import choice, unit_quats, vectors
from poise.motion.rotations import quat_from_matrix, quat_log, quat_to_matrix
from poise.sim.controllers import StateToAct, Targets

Floats = NDArray[np.float64]
Axes = Literal["first", "world"]
Wish = ArrayLike | Callable[[float], ArrayLike] | None

ALPHA = 20.0
"""Default rate at which errors decay; 1/s."""
_FIRST_ID, _ROOM = 1 << 28, 16


class MotorRow(NamedTuple):
    """One row of a motor in a step."""

    part: Any
    """Its Jacobian, and its measure as the error."""
    error: float | None
    """u − u_d; None at velocity level."""
    speed: float
    """u̇_d."""


class BodyMotor(ABC):
    """Base class of motors between two bodies. `first` or `second` is None for the world."""

    _NOTES: ClassVar[bool] = False
    """Whether `_noted` must be called before every step."""

    def __init__(
        self,
        first: str | int | None,
        second: str | int | None,
        *,
        strength: float = inf,
        alpha: float = ALPHA,
        spring: Spring | None = None,
        absolute: bool = False,
        name: str = "",
    ) -> None:
        """`strength`: greatest force or torque (N or N·m). `alpha` (1/s): errors shrink by 1 − α dt in a step, or to 0
        if that is negative. `spring`: corrects errors instead. `absolute`: u is 0 where both bodies' frames agree, not
        at their poses when the motor starts. `name` distinguishes motors that are otherwise equal.
        """
        if spring is not None and not isinstance(spring, Spring):
            raise TypeError(f"spring is a {type(spring).__name__}; it must be a poise.control.Spring")
        self.first_body, self.second_body = first, second
        self.strength, self.alpha = number("strength", strength, infinite=True), number("alpha", alpha, infinite=True)
        self.spring, self.absolute, self.name = spring, bool(absolute), str(name)
        self._model: Model | None = None

    # ---- as the world calls it ---------------------------------------------------------------------------------------

    def bind(self, model: Model, /) -> None:
        """Look up the bodies. A motor belongs to one model."""
        if self._model is not None and self._model is not model:
            raise ValueError("this motor acts in a world of another model: make another one for this one")
        self._bodies = tuple(
            -1 if body is None else body_number(model, body) for body in (self.first_body, self.second_body)
        )
        links = [int(model.body_link[body]) if body >= 0 else -1 for body in self._bodies]
        if links[0] == links[1]:
            names = [f'"{model.body_names[body]}"' if body >= 0 else "the world" for body in self._bodies]
            raise ValueError(f"{names[0]} and {names[1]} do not move against each other: there is nothing to drive")
        label = f"{type(self).__name__} {self._bodies} {self._label()} {self.name}"
        # ids are the same in every run, so that states continue bit for bit
        self._id = _FIRST_ID + _ROOM * (crc32(label.encode()) >> 8)
        self._model = model

    def first(self, state: State) -> None:  # noqa: B027  (nothing to initialize)
        """Leave the initial state of a world unchanged."""

    def update(self, state: StateToAct, /) -> Targets | None:
        """Rows of the next step; called by the world."""
        assert self._model is not None
        if "start" not in state.slots or self._NOTES:
            now = self._seen(state.q, state.v)
            if "start" not in state.slots:
                state.slots["start"] = self._start(*now)
            state.slots |= self._noted(state.slots, *now)
        start = state.slots["start"]
        rows = self._maker(state, start)
        if rows is None:
            return None

        def add(world: Any, into: Any) -> None:
            rows(into, *self._seen(world.q, world.v))

        return Targets(rows=add)

    def _seen(self, q: Floats, v: Floats) -> tuple[Any, Any]:
        assert self._model is not None
        first, second = (body_at(self._model, q, v, body) for body in self._bodies)
        return first, second

    # ---- what motors differ in ---------------------------------------------------------------------------------------

    def _label(self) -> str:
        return ""

    @abstractmethod
    def _start(self, a: Any, b: Any) -> Floats:
        """Origin of the measure."""

    def _noted(self, slots: dict[str, Any], a: Any, b: Any) -> dict[str, Floats]:
        """Further memory for the next step."""
        return {}

    @abstractmethod
    def _maker(self, state: StateToAct, start: Floats) -> Callable[[Any, Any, Any], None] | None:
        """A function that adds the rows of a step, for given poses of the bodies."""

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _add_one(self, into: Any, row: MotorRow, dt: float, id: int, within: tuple[float, float] = (-inf, inf)) -> None:
        """Add a single row; without a spring, its target speed is clamped to `within`."""
        if self.strength == 0.0:
            return
        if row.error is not None and self.spring is not None:
            numbers = soft_row(self.spring, row.error, row.speed, dt, self.strength)
        else:
            wanted = min(max(self._wanted(row, dt), within[0]), within[1])
            numbers = {"target": wanted, "lo": -self.strength, "hi": self.strength}
        into.add_part(row.part, self._bodies, id=id, **{"phi": 0.0, "erp": 0.0} | numbers)

    def _add_three(self, into: Any, rows: list[MotorRow], dt: float, id: int) -> None:
        """Add three rows, bounded together; each by itself if a spring with several pieces is bounded."""
        pieces = self.spring is not None and not self.spring.plain
        if self.strength in (0.0, inf) or (pieces and rows[0].error is not None):
            for k, row in enumerate(rows):
                self._add_one(into, row, dt, id + k)
            return
        numbers: dict[str, list[float]] = {"target": [self._wanted(row, dt) for row in rows], "cfm": [0.0] * 3}
        if self.spring is not None and rows[0].error is not None:
            soft = [soft_row(self.spring, row.error or 0.0, row.speed, dt) for row in rows]
            numbers = {name: [one[name] for one in soft] for name in ("target", "cfm")}
        a, b = self._bodies
        Ja, Jb = ([getattr(row.part, side).leaves() for row in rows] for side in "ab")
        into.add_ball(id=id, a=a, b=b, Ja=Ja, Jb=Jb, radius=self.strength, **numbers)

    def _wanted(self, row: MotorRow, dt: float) -> float:
        return row.speed if row.error is None else row.speed - min(self.alpha, 1.0 / dt) * row.error


class LinearMotor(BodyMotor):
    """Drives a body along three axes, relative to another body or the world (VON §5.1); for `world.add_controller`.

    The targets are `position` (m), `velocity` (m/s) or both: three numbers each, or functions of time that return them.
    Both are assignable during a run; None and None switch the motor off. They are the motion of `point` of the second
    body relative to `anchor` of the first (in the bodies' frames; default: the centres of mass).

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 1))
    >>> world = scene.build(dt=0.01)
    >>> _ = world.add_controller(LinearMotor(None, "ball", velocity=(0.3, 0, 0), strength=5.0))
    >>> world.step(6)
    >>> float(world.v[0].round(9))  # 5 N move 2 kg
    0.15
    >>> world.step(10)
    >>> float(world.v[0].round(9))
    0.3
    """

    def __init__(
        self,
        first: str | int | None,
        second: str | int | None,
        *,
        position: Wish = None,
        velocity: Wish = None,
        axes: Axes = "first",
        point: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        super().__init__(first, second, **options)
        self.axes: Axes = choice("axes", axes, ("first", "world"))
        self.point = None if point is None else checked_vector("point", point)
        self.anchor = None if anchor is None else checked_vector("anchor", anchor)
        self.position, self.velocity = position, velocity
        wished("position", position, 0.0, (3,)), wished("velocity", velocity, 0.0, (3,))

    def bind(self, model: Model, /) -> None:
        """Look up bodies and points."""
        super().bind(model)
        self._points = [_arm(model, body, at) for body, at in zip(self._bodies, (self.anchor, self.point), strict=True)]

    def _label(self) -> str:
        return f"{self.axes} {self.anchor} {self.point}"

    def _parts(self, a: Any, b: Any) -> Any:
        return (point_parts.offset if self.axes == "first" else point_parts.point)(a, b, *self._points)

    def _start(self, a: Any, b: Any) -> Floats:
        return np.zeros(3) if self.absolute else np.array([float(part.phi) for part in self._parts(a, b)])

    def _maker(self, state: StateToAct, start: Floats) -> Callable[[Any, Any, Any], None] | None:
        wanted, speed = (wished(name, getattr(self, name), state.time, (3,)) for name in ("position", "velocity"))
        if wanted is None and speed is None:
            return None

        def add(into: Any, a: Any, b: Any) -> None:
            rows = []
            for k, part in enumerate(self._parts(a, b)):
                error = None if wanted is None else float(part.phi) - float(start[k] + wanted[k])
                rows.append(MotorRow(part, error, 0.0 if speed is None else float(speed[k])))
            self._add_three(into, rows, state.dt, self._id)

        return add


class AngularMotor(BodyMotor):
    """Rotates a body about all axes, relative to another body or the world (VON §5.2); for `world.add_controller`.

    `position` is a rotation (w, x, y, z) in the first body's axes, `velocity` three numbers (rad/s) along the first
    body's `axes` or the world's; or functions of time that return them. Both are assignable during a run.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.box(0.1, 0.2, 0.3, mass=2.0), name="box")
    >>> world = scene.build(dt=0.01)
    >>> _ = world.add_controller(AngularMotor(None, "box", position=(0.8, 0, 0, 0.6), alpha=50.0))
    >>> world.step(40)
    >>> world.q[3:].round(6).tolist()
    [0.8, 0.0, 0.0, 0.6]
    """

    def __init__(
        self,
        first: str | int | None,
        second: str | int | None,
        *,
        position: Wish = None,
        velocity: Wish = None,
        axes: Axes = "first",
        **options: Any,
    ) -> None:
        super().__init__(first, second, **options)
        self.axes: Axes = choice("axes", axes, ("first", "world"))
        self.position, self.velocity = position, velocity
        self._turn(0.0), wished("velocity", velocity, 0.0, (3,))

    def _turn(self, time: float) -> Floats | None:
        """(3, 3) U_d."""
        wish = self.position
        if wish is None:
            return None
        return quat_to_matrix(unit_quats("position", wish(time) if callable(wish) else wish, (4,)))

    def _label(self) -> str:
        return self.axes

    def _start(self, a: Any, b: Any) -> Floats:
        return np.eye(3) if self.absolute else matrix_of(a.R).T @ matrix_of(b.R)

    def _maker(self, state: StateToAct, start: Floats) -> Callable[[Any, Any, Any], None] | None:
        wanted, speed = self._turn(state.time), wished("velocity", self.velocity, state.time, (3,))
        if wanted is None and speed is None:
            return None

        def add(into: Any, a: Any, b: Any) -> None:
            R = matrix_of(a.R)
            rate = np.zeros(3) if speed is None else (R @ speed if self.axes == "first" else speed)
            error = None
            if wanted is not None:  # w z of U_e = R_Aᵀ R_B R_0ᵀ U_dᵀ, in world axes
                error = R @ quat_log(quat_from_matrix(R.T @ matrix_of(b.R) @ start.T @ wanted.T))
            rows = [
                MotorRow(part, None if error is None else float(error[k]), float(rate[k]))
                for k, part in enumerate(nonholonomic_parts.spin(a, b))
            ]
            self._add_three(into, rows, state.dt, self._id)

        return add


class PoseMotor:
    """Drives all six degrees of freedom of a body, as VON's motor of a root (§5.4); for `world.add_controller`.

    A `LinearMotor` and an `AngularMotor` together: `position` (m) of the body's frame and `quat_wxyz`, `velocity` (m/s)
    and `angular_velocity` (rad/s), each of them a value or a function of the time. `strength` is a force and a torque.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 1))
    >>> world = scene.build()
    >>> _ = world.add_controller(PoseMotor(None, "pelvis", position=(0, 0, 0), quat_wxyz=(1, 0, 0, 0)))  # stay there
    >>> before = world.body("pelvis").position
    >>> world.step(48)
    >>> bool(abs(world.body("pelvis").position - before).max() < 1e-5)
    True
    """

    def __init__(
        self,
        first: str | int | None,
        second: str | int | None,
        *,
        position: Wish = None,
        quat_wxyz: Wish = None,
        velocity: Wish = None,
        angular_velocity: Wish = None,
        strength: tuple[float, float] = (inf, inf),
        axes: Axes = "first",
        point: ArrayLike = (0.0, 0.0, 0.0),
        anchor: ArrayLike = (0.0, 0.0, 0.0),
        **options: Any,
    ) -> None:
        try:
            force, torque = strength
        except (TypeError, ValueError):
            raise ValueError(f"strength is {strength!r}; it must be a force and a torque (N, N·m)") from None
        options = {"axes": axes} | options
        places: dict[str, Any] = {"position": position, "velocity": velocity, "point": point, "anchor": anchor}
        self.linear = LinearMotor(first, second, strength=force, **places, **options)
        """The linear motor."""
        turns: dict[str, Any] = {"position": quat_wxyz, "velocity": angular_velocity}
        self.angular = AngularMotor(first, second, strength=torque, **turns, **options)
        """The angular motor."""

    def bind(self, model: Model, /) -> None:
        """Look up the bodies."""
        self.linear.bind(model)
        self.angular.bind(model)

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    def update(self, state: StateToAct, /) -> Targets | None:
        """Rows of both; called by the world."""
        hooks = []
        for kind, motor in (("linear", self.linear), ("angular", self.angular)):
            own = {name.split()[1]: array for name, array in state.slots.items() if name.split()[0] == kind}
            part = StateToAct(state.q, state.v, state.time, own, state.dt)
            wanted = motor.update(part)
            state.slots |= {f"{kind} {name}": array for name, array in part.slots.items()}
            if wanted is not None and wanted.rows is not None:
                hooks.append(wanted.rows)

        def add(world: Any, into: Any) -> None:
            for hook in hooks:
                hook(world, into)

        return Targets(rows=add) if hooks else None


def wished(name: str, wish: Wish, time: float, shape: tuple[int, ...]) -> Floats | None:
    """The validated target at a time, or None."""
    if wish is None:
        return None
    return vectors(name, wish(time) if callable(wish) else wish, shape)


def _arm(model: Model, body: int, at: Floats | None) -> Vec3:
    """A point of a body, relative to its centre of mass."""
    com = model.body_com[body] if body >= 0 else np.zeros(3)
    return Vec3(*(np.zeros(3) if at is None else at - com))


def matrix_of(R: Any) -> Floats:
    """(3, 3) numbers of a rotation."""
    return np.array([*R.leaves()], np.float64).reshape(3, 3)
