"""Tracking: motors, drives or accelerations make a character follow a reference; optional root assist.

Motors, drives and root assist are implicit springs and dampers, stable at any gain (LIU eqs. 9-13): towards the
reference at the end of the step, with its mean velocity in the step as feedforward. Accelerations are those of KOK
eq. 22. The controller itself has no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poise.control.balance import Balance, BalanceReading
from poise.control.motion_table import Tables, tabulate
from poise.control.point_springs import PointTarget, Pulled
from poise.control.reference import Placed, Reference
from poise.control.torque_limits import GIVE, SETTLE, by_joint, full_strength, motor_gains, named
from poise.control.tracking_command import ROOT_SETTLE, TrackingCommand
from poise.dynamics.functions import Drive
from poise.formulations.acceleration_level.acceleration_tracking import gains
from poise.formulations.commands.motion_tracking import ACCELERATION, DRIVE, GUIDE, TARGET
from poise.model.model import Model
from poise.model.state import State
from poise.motion import Clip, Coordinates
from poise.motion.motion_checks import choice, positive, vectors
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate
from poise.sim.controllers import StateToAct, StepMemory, Targets
from poise.sim.world_motors import MotorGoals, motor_rows, rows_by_dof

Floats = NDArray[np.float64]
By = Literal["motors", "drives", "accelerations"]
Root = Literal["guided", "held", "balanced", "free"]
Adjust = Callable[[StateToAct, Coordinates], Coordinates | None]


class Tracking:
    """A controller that makes a character follow a motion; `hero.track` creates it and its motors.

    `motion` is a `Reference` or an argument of one. `by` selects how joints follow:

    - "motors": the motors of the world's joints, within their limits; `strength` replaces the limits (N·m; one number,
      or by parts, names or patterns of joints) and sets matching gains.
    - "drives": springs and dampers without bounds, on joints with or without motors.
    - "accelerations": motors get the accelerations of KOK eq. 22, within their limits.

    `root` selects how a free root follows. "guided": by its own motors, an external root assist. "held": on a path, as
    a kinematic body. "balanced": only through the ground; a `Balance` (with the options `balance`) computes torques,
    within the strengths, that keep the feet in place. "free": not at all.
    `adjust(state, wanted)` may replace the coordinates wanted at the end of a step, for example for balance. The motion
    begins at the world's time `start` (s). `points` are additional springs on points. Joints that are `limp`, or of
    strength 0, are not driven.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    >>> swing = poise.motion.keyframes({0.0: {"arm": 0.0}, 0.5: {"arm": 0.8}, 1.0: {"arm": 0.0}})
    >>> world = scene.build()
    >>> world.add_controller(Tracking(swing, by="drives"))
    'Tracking'
    >>> world.step(120)
    >>> abs(float(world.q[0]) - 0.8) < 0.02
    True
    """

    def __init__(
        self,
        motion: Any,
        *,
        by: By = "motors",
        root: Root = "guided",
        strength: Any = None,
        give: float = GIVE,
        settle: float = SETTLE,
        floor: float | None = 0.0,
        start: float = 0.0,
        adjust: Adjust | None = None,
        balance: Mapping[str, Any] | None = None,
        points: Sequence[PointTarget] = (),
        limp: Collection[str] = (),
    ) -> None:
        self.by: By = choice("by", by, get_args(By))
        self.root: Root = choice("root", root, get_args(Root))
        self.motion, self.strength, self.adjust = motion, strength, adjust
        self.give, self.settle = positive("give", give, "rad"), positive("settle", settle)
        self.floor = None if floor is None else float(vectors("floor", floor, ()))
        self.start = float(vectors("start", start, ()))
        self.points = (points,) if isinstance(points, PointTarget) else tuple(points)
        for point in self.points:
            if not isinstance(point, PointTarget):
                raise TypeError(f"points: found a {type(point).__name__}; it must be a PointTarget")
        if adjust is not None and not callable(adjust):
            raise TypeError(f"adjust is a {type(adjust).__name__}; it must be a function of state and coordinates")
        if self.root == "balanced" and (self.by != "motors" or adjust is not None):
            other = "adjust" if self.by == "motors" else f'by="{self.by}"'
            raise ValueError(f'root is "balanced": balance itself finds the torques of all joints, leave out {other}')
        if balance is not None and self.root != "balanced":
            raise ValueError(f'balance has options, but root is "{self.root}"; it must be "balanced" for them')
        self._balance = Balance(self.at, **(balance or {})) if self.root == "balanced" else None
        self.limp = frozenset(limp)
        self._model: Model | None = None

    # ---- binding -----------------------------------------------------------------------------------------------------

    def bind(self, model: Model, /) -> None:
        """Look up joints and motors. A controller belongs to one model."""
        if self._model is not None:
            if self._model is not model:
                raise ValueError("this tracks in a world of another model: make another Tracking for this one")
            return
        self.reference = make_reference(self.motion, model, self.floor)
        place = self.place = Placed(self.reference, model)
        self._tables: Tables | None = None
        self._shift = self.reference.start - self.start
        root = place.root()
        self._root = slice(*model.joint_v_start[root : root + 2].tolist()) if root >= 0 else slice(0, 0)
        tree = int(model.link_root[model.body_link[model.joint_body[place.joints[0]]]])
        self._driven = driven_joints(place, whole=self.root == "balanced")
        self._check_root(model, root)
        names = [model.joint_names[j] for j in self._driven]
        strengths = by_joint("strength", self.strength, names, inf) | {
            name: 0.0 for name in names if any(named(part, [name]) for part in self.limp)
        }
        full = full_strength(model, tree)
        stiff = np.zeros((model.nv, 3))
        for j, name in zip(self._driven, names, strict=True):
            where = slice(*model.joint_v_start[j : j + 2].tolist())
            stiff[where] = (*motor_gains(strengths[name], full, self.give, self.settle), strengths[name])
        self._pulls = [Pulled(point, model, self._shift) for point in self.points]
        self._lay_motors(model, stiff)
        if self._balance is not None:
            self._balance.bind(model, tree=tree, strength=stiff[:, 2])
        self._names, self._laid, self._gains = names, stiff, stiff
        self._kp, self._kv = gains(2.0 * self.settle)
        self._model = model

    def compile(self, memory: StepMemory, /) -> TrackingCommand | None:
        """A command that sets motors and drives before each step in compiled code, from a table of the reference. None
        with `adjust`, `points` or balance, and for references that no table approximates within the tolerance.
        """
        if self.needs_python:
            return None
        tables = self.tables()
        return None if tables is None else TrackingCommand(self, tables, memory)

    @property
    def needs_python(self) -> bool:
        """Whether Python computes a part of it before each step."""
        return self._balance is not None or self.adjust is not None or bool(self._pulls)

    def tables(self) -> Tables | None:
        """The reference as a cached table; None if none is exact enough."""
        self._bound()
        if self._tables is None and (found := tabulate(self.place)) is not None:
            self._tables = Tables([found])
        return self._tables

    @property
    def root_dofs(self) -> slice:
        """Degrees of freedom of the root; empty without a free joint."""
        return self._root

    @property
    def sets(self) -> dict[int, int]:
        """Codes of the settings of each degree of freedom: see `formulations.commands.motion_tracking`."""
        if self.by == "drives":
            followed = {d: DRIVE for d in self.place.dofs.tolist() if not self._root.start <= d < self._root.stop}
        else:
            followed = dict.fromkeys(self._dofs.tolist(), ACCELERATION if self.by == "accelerations" else TARGET)
        helped = range(self._root.start, self._root.stop) if len(self._help_rows) else ()
        return followed | dict.fromkeys(helped, GUIDE)

    @property
    def rows_of(self) -> dict[int, int]:
        """Rows of motors by their degrees of freedom."""
        helped = range(self._root.start, self._root.stop) if len(self._help_rows) else ()
        both = [*zip(self._dofs.tolist(), self._rows.tolist(), strict=True)]
        return dict([*both, *zip(helped, self._help_rows.tolist(), strict=True)])

    @property
    def acceleration_gains(self) -> tuple[float, float]:
        """Gains of KOK eq. 22."""
        return self._kp, self._kv

    @property
    def joint_gains(self) -> Floats:
        """(nv, 3) scaled stiffness, damping and limit of joints."""
        return self._gains

    @property
    def motor_gains(self) -> MotorGoals | None:
        """Gains and limits of motors, if this controller sets them."""
        if self.strength is None or not len(self._rows):
            return None
        stiffness, damping = self._gains[self._dofs, :2].T
        if self.by == "accelerations":
            return MotorGoals(self._rows, limit=self._limit)
        return MotorGoals(self._rows, stiffness=stiffness, damping=damping, limit=self._limit)

    def _check_root(self, model: Model, root: int) -> None:
        held = root >= 0 and bool(model.dof_prescribed[self._root].any())
        if root >= 0 and held != (self.root == "held"):
            name = model.body_names[model.joint_body[root]]
            right = 'it follows a path: root="held"' if held else "it must be kinematic, as hero.track makes it"
            raise ValueError(f'root is "{self.root}", but body "{name}" is {"" if held else "not "}kinematic: {right}')

    def _lay_motors(self, model: Model, stiff: Floats) -> None:
        """Find the motor rows of tracked joints and of the root."""
        rows = rows_by_dof(model)
        balls: dict[int, int] = {}
        for motor, places in zip(model.motors, motor_rows(model), strict=True):
            if motor.ball:
                balls.setdefault(motor.dofs[0], places.start)
        wanted = [d for d in self.place.dofs.tolist() if not self._root.start <= d < self._root.stop]
        by_motors = self.by != "drives" and self.root != "balanced"
        dofs = [d for d in wanted if stiff[d, 2] > 0.0] if by_motors else []
        help = list(range(self._root.start, self._root.stop)) if self.root == "guided" else []
        if missing := [model.dof_names[d] for d in (*dofs, *help) if d not in rows]:
            listed = ", ".join(missing[:4]) + (", …" if len(missing) > 4 else "")
            raise ValueError(
                f"there are no motors on {listed}: use hero.track(…) or scene.motor(…) before the scene is built, "
                f'or by="drives"{" and another root" if set(missing) & {model.dof_names[d] for d in help} else ""}'
            )
        lay = self.place.layout
        number = dict(zip(lay.speeds.tolist(), lay.numbers.tolist(), strict=True))
        self._dofs = np.array(dofs, np.intp)
        self._rows = np.array([rows[d] for d in dofs], np.intp)
        self._numbers = np.array([number.get(d, -1) for d in dofs], np.intp)
        used = [k for k, first in enumerate(lay.spins[:, 0].tolist()) if first in balls and first in dofs]
        self._balls = np.array([balls[int(lay.spins[k, 0])] for k in used], np.intp)
        self._quats = lay.quats[used]
        self._help_rows = np.array([rows[d] for d in help], np.intp)
        self.brake = self._brakes(model, help)

    def _brakes(self, model: Model, help: list[int]) -> Floats:
        """(6,) braking accelerations of the root assist; rotations are not limited."""
        brakes = np.full(len(help), inf)
        for motor in model.motors:
            if len(motor.dofs) == 1 and motor.dofs[0] in help[:3]:
                link = int(model.link_root[model.body_link[model.joint_body[self.place.root()]]])
                mass = float(model.link_mass[model.link_root == link].sum())
                brakes[help.index(motor.dofs[0])] = min(motor.high, -motor.low) / mass
        return brakes

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that follow."""
        self._bound()
        return tuple(self._names)

    @property
    def balance(self) -> BalanceReading | None:
        """Reading of the balance controller after the last step."""
        return self._balance.reading if self._balance is not None else None

    def scale(self, strength: Any = 1.0, *, stiffness: float = 1.0) -> None:
        """Scale the initial gains and limits of joints from now on.

        `strength` is a factor of both, one for all or several by parts, names or patterns of joints; `stiffness` is a
        factor of the gains only. Motors with their own gains, such as those of `hero.track`, do not change; set them
        with `world.motor`.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
        >>> tracking = Tracking(poise.motion.keyframes({0.0: {"arm": 0.5}}), by="drives")
        >>> world = scene.build()
        >>> _ = world.add_controller(tracking)
        >>> tracking.scale(0.0)
        >>> world.step(240)
        >>> float(world.q[0])
        0.0
        """
        self._bound()
        assert self._model is not None
        gain = _factor("stiffness", stiffness)
        factors = by_joint("strength", strength, self._names, 1.0) if self._names else {}
        scales = np.ones((self._model.nv, 3))
        for j, name in zip(self._driven, self._names, strict=True):
            where = slice(*self._model.joint_v_start[j : j + 2].tolist())
            scales[where] = factors[name] * np.array((gain, gain, 1.0))
        # the factor 0 makes an infinite limit 0
        self._gains = np.multiply(self._laid, scales, out=np.zeros_like(scales), where=scales > 0.0)
        if self._balance is not None:
            self._balance.scale(scales[:, 2])

    # ---- acting ------------------------------------------------------------------------------------------------------

    def at(self, time: float) -> Coordinates:
        """Target coordinates of the world's model at a time of the world (s); other joints are at rest."""
        self._bound()
        return self.place.at(np.asarray(float(time) + self._shift))

    def first(self, state: State) -> None:
        """Set the character to the start of its motion, with velocities."""
        self._bound()
        now, place = self.at(state.time), self.place
        for joint in place.joints:
            q, v = (slice(*starts[joint : joint + 2].tolist()) for starts in self._starts())
            state.q[q], state.v[v] = now.q[q], now.v[v]

    def _starts(self) -> tuple[Any, Any]:
        assert self._model is not None
        return self._model.joint_q_start, self._model.joint_v_start

    def _bound(self) -> None:
        if self._model is None:
            raise ValueError("this tracks nothing yet: give it to world.add_controller first")

    def update(self, state: StateToAct, /) -> Targets:
        """Settings of motors, drives and forces for the next step."""
        if self._balance is not None:
            return replace(self._balance.update(state), rows=self._pull(state))
        h, place = state.dt, self.place
        both = place.at(state.time + self._shift + np.array((0.0, h)))
        now, wanted = (Coordinates(both.q[k], both.v[k], both.a[k]) for k in (0, 1))
        mean = place.difference(now.q, wanted.q) / h
        if self.adjust is not None:
            # a position change by `adjust` must not contribute to the velocity
            asked = self.adjust(state, wanted) or wanted
            mean, wanted = mean + asked.v - wanted.v, asked
        speed = self._in_own_axes(state.q, now.q, mean)
        drive = self._drive(wanted.q, speed) if self.by == "drives" else None
        return Targets(drive=drive, motors=self._goals(state, now, wanted, speed), rows=self._pull(state))

    def _in_own_axes(self, q: Floats, wanted: Floats, spin: Floats) -> Floats:
        """Transform velocities from the axes of the reference's links to those of the character's."""
        lay, result = self.place.layout, spin.copy()
        if len(lay.quats):
            turn = quat_multiply(quat_conjugate(q[lay.quats]), wanted[lay.quats])
            result[lay.spins] = rotate(turn, spin[lay.spins])
        return result

    def _drive(self, goal: Floats, speed: Floats) -> Drive:
        return Drive(self._gains[:, 0], self._gains[:, 1], goal, speed)

    def _goals(self, state: StateToAct, now: Coordinates, wanted: Coordinates, speed: Floats) -> list[MotorGoals]:
        """Settings of the motors of joints and of the root."""
        error, goals = self.place.difference(state.q, now.q), []
        if len(self._help_rows):
            root = self._root
            goals.append(MotorGoals(self._help_rows, speed=speed[root] + self._back(error[root])))
        if not len(self._rows):
            return goals
        dofs = self._dofs
        if self.by == "accelerations":
            v_ref, a_ref = (self._in_own_axes(state.q, now.q, part) for part in (now.v, now.a))
            push = a_ref + self._kv * (v_ref - state.v) + self._kp * error
            return [*goals, MotorGoals(self._rows, acceleration=push[dofs], limit=self._limit)]
        target = np.where(self._numbers >= 0, wanted.q[self._numbers], 0.0)
        stiffness, damping = self._gains[dofs, :2].T if self.strength is not None else (None, None)
        joints = MotorGoals(
            self._rows,
            target=target,
            speed=speed[dofs],
            stiffness=stiffness,
            damping=damping,
            limit=self._limit,
            balls=self._balls,
            rotations=wanted.q[self._quats],
        )
        return [*goals, joints]

    def _back(self, error: Floats) -> Floats:
        """(6,) speed at which a guided root returns, bounded by the braking distance of its assist.

        The law v = s/τ needs the deceleration v/τ, which exceeds a bound a on it from s = a τ² on. There
        v² = 2 a s − a² τ², which needs exactly a; a faster return overshoots.
        """
        way = np.abs(error)
        near = np.minimum(way, self.brake * ROOT_SETTLE**2)
        return np.asarray(np.sign(error) * np.sqrt((2.0 * way - near) * near) / ROOT_SETTLE)

    @property
    def _limit(self) -> Floats | None:
        """Limits of motors, if they replace the motors' own."""
        return self._gains[self._dofs, 2] if self.strength is not None else None

    def _pull(self, state: StateToAct) -> Callable[[Any, Any], None] | None:
        """Rows of the point springs."""
        if not self._pulls:
            return None

        def add(world: Any, rows: Any) -> None:
            for pulled in self._pulls:
                pulled.add(rows, world.q, state.time, state.dt)

        return add


def _factor(name: str, value: Any) -> float:
    number = float(vectors(name, value, ()))
    if number < 0.0:
        raise ValueError(f"{name} is {number:g}; it must be a factor, 0 or more")
    return number


def driven_joints(place: Placed, *, whole: bool) -> list[int]:
    """Joints that follow a reference; or with `whole` all joints of its tree except a free root, as for balance."""
    model, root = place.model, place.root()
    if not whole:
        return [j for j in place.joints if j != root]
    tree = int(model.link_root[model.body_link[model.joint_body[place.joints[0]]]])
    links = model.body_link[model.joint_body]
    own = (links >= 0) & (model.link_root[links] == tree)
    return [j for j, kind in enumerate(model.joint_kinds) if kind != "free" and own[j]]


def make_reference(motion: Any, model: Model, floor: float | None, place: Any = None) -> Reference:
    """A `Reference` from its possible arguments; `floor` and `place` apply to clips only."""
    if isinstance(motion, Reference):
        return motion
    return Reference(motion, model, floor=floor if isinstance(motion, Clip) else None, place=place)
