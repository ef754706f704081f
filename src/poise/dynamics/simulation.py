"""Forward simulation of a tree without contacts or limits: only the model's joints and given forces act."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics.argument_checks import (
    check_given,
    check_model,
    checked_row,
    checked_step,
    checked_steps,
    steps_of_duration,
)
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.functions import Drive
from poise.dynamics.integrate import STAGES, runge_kutta, semi_implicit
from poise.dynamics.interrupts import HeldInterrupt, Pace
from poise.dynamics.workspace import Workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F64
from poise.model.model import Model
from poise.model.state import State

Method = Literal["semi_implicit", "rk4"]

_VIEWS = (MODEL, STATE, INPUT, WORK, STAGES)
STEPPERS = {
    "semi_implicit": entry(semi_implicit, *_VIEWS, extra=("float64", "int64")),
    "rk4": entry(runge_kutta, *_VIEWS, extra=("float64", "int64")),
}


BUSY = "another thread is stepping this {} now: step it in one thread at a time, or give each a copy.deepcopy of it"


class Diverged(ArithmeticError):
    """The state of a simulation is no longer finite. The state is reset to the last valid step.

    `what` is the quantity of the body that is not finite: its `"motion"`, or the applied `"tau"` or `"forces"`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> world = scene.build()
    >>> world.tau[0] = float("nan")
    >>> try:
    ...     world.step()
    ... except poise.Diverged as problem:
    ...     print(problem.body, problem.what)
    ball tau
    """

    recording: Any = None
    """The recording until then, where `World.run` raised it."""

    def __init__(self, time: float, body: str, what: str, advice: str = "try a smaller dt") -> None:
        self.time, self.body, self.what, self._advice = time, body, what, advice
        advice = f"no longer finite; {advice}" if what == "motion" else "not finite"
        super().__init__(f"diverged at t = {time:.6g} s: {what} of body '{body}' is {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with all arguments: a pool of workers hangs on an exception that it cannot unpickle."""
        return type(self), (self.time, self.body, self.what, self._advice)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States of a simulation over time, the first one included."""

    time: np.ndarray
    """(n,) s."""
    q: np.ndarray
    """(n, nq)"""
    v: np.ndarray
    """(n, nv)"""

    def __repr__(self) -> str:
        n, nq, nv = len(self.time), self.q.shape[-1], self.v.shape[-1]
        return f"<Trajectory: {n} states from {self.time[0]:g} to {self.time[-1]:g} s, nq {nq}, nv {nv}>"


def _kept_arrays(space: Workspace) -> list[np.ndarray]:
    """Arrays that a simulation keeps from step to step, and results of the last step."""
    told = (space.w.a, space.w.total, space.w.diagonal)
    return [space.s.q, space.s.v, *space.x.arrays.values(), *told]


class Simulation:
    """A model stepped through time. Write forces for the steps that follow to `tau`, `forces` or `drive`.

    `method` is "semi_implicit" (first order; springs, dampers and drives are stable at any gain) or "rk4" (fourth
    order; keeps energy well, but stiff drives need small steps). `dt` is the model's when missing.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 10))
    >>> fall = poise.dynamics.Simulation(scene.compile(), dt=0.001, method="rk4")
    >>> fall.step(1000)
    >>> round(float(fall.q[2]), 6)
    5.095
    """

    _ROOM: ClassVar[tuple[str, ...]] = ("_space", "_paths", "_handles", "_step", "_pace", "_thread", "_left")
    """Attributes that copies create again."""
    _lays_paths: ClassVar[bool] = False
    """Whether `_advance` evaluates the paths of each step itself."""
    _thread: int | None = None
    """The thread that is stepping now."""
    _left: tuple[np.ndarray, np.ndarray] | None = None
    """Coordinates and velocities on paths after the last step; None after a change of state."""

    def __init__(
        self, model: Model, state: State | None = None, *, dt: float | None = None, method: Method = "semi_implicit"
    ) -> None:
        check_model(model)
        if not isinstance(method, str) or method not in STEPPERS:
            raise ValueError(f"method is {method!r}; there are {', '.join(STEPPERS)}")
        self._model, self._method = model, method
        self.dt = model.dt if dt is None else dt
        self._make_room()
        self.time = 0.0
        self.state = State.rest(model) if state is None else state

    def _make_room(self) -> None:
        """Allocate a workspace, and choose the stepper."""
        self._use(Workspace(self._model, F64))
        self._pace = Pace()
        self._step = STEPPERS[self._method][F64]

    def _use(self, space: Workspace) -> None:
        """Use a workspace, with the model's paths."""
        model = self._model
        starts = model.joint_q_start.tolist(), model.joint_v_start.tolist()
        self._paths = tuple((starts[0][joint], starts[1][joint], path) for joint, path in model.paths)
        if self._paths:
            space.stages.set_count("n_prescribed", int(np.count_nonzero(model.dof_prescribed)))
        self._on_paths = (
            np.array([j + k for j, _, _ in self._paths for k in range(7)], np.intp),
            np.array([d + k for _, d, _ in self._paths for k in range(6)], np.intp),
        )
        self._space = space
        self._handles = tuple(block.handle for block in (space.m, space.s, space.x, space.w, space.stages))

    def __getstate__(self) -> dict[str, Any]:
        """Everything except memory addresses. The model is shared, as it never changes."""
        held = {name: value for name, value in self.__dict__.items() if name not in self._ROOM}
        space = self._space
        arrays = [array.copy() for array in _kept_arrays(space)]
        return held | {"_kept": (arrays, space.x.counts())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays, counts = state["_kept"]
        self.__dict__.update({name: value for name, value in state.items() if name != "_kept"})
        self._make_room()
        for mine, given in zip(_kept_arrays(self._space), arrays, strict=True):
            mine[...] = given
        for name, number in counts.items():
            self._space.x.set_count(name, number)

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    @property
    def method(self) -> str:
        """The integration method."""
        return self._method

    @property
    def dt(self) -> float:
        """Length of a step, to read and to write; s."""
        return self._dt

    @dt.setter
    def dt(self, dt: float) -> None:
        step = checked_step(dt)
        if step == 0.0:
            raise ValueError(f"dt is {dt}; it must be a positive time in seconds")
        self._dt = step

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.model!r} at {self.time:g} s: {self.method}, dt {self.dt:g} s>"

    @property
    def q(self) -> np.ndarray:
        """(nq,) coordinates, to read and to write."""
        return self._space.s.q

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self.q[...] = checked_row(self.model, "q", q)

    @property
    def v(self) -> np.ndarray:
        """(nv,) velocities, to read and to write."""
        return self._space.s.v

    @v.setter
    def v(self, v: ArrayLike) -> None:
        self.v[...] = checked_row(self.model, "v", v)

    @property
    def a(self) -> np.ndarray:
        """(nv,) accelerations of the last step (of the last stage, for rk4)."""
        return self._space.w.a

    @property
    def tau(self) -> np.ndarray:
        """(nv,) generalized forces that act, to write; N or N·m."""
        return self._space.x.tau

    @tau.setter
    def tau(self, tau: ArrayLike) -> None:
        self.tau[...] = checked_row(self.model, "tau", tau)

    @property
    def forces(self) -> np.ndarray:
        """(n_bodies, 6) wrenches (τ, f) that act on bodies, world axes at their origins, to write; N·m, N."""
        self._space.x.set_count("n_forces", 1)
        return self._space.x.force

    @forces.setter
    def forces(self, forces: ArrayLike) -> None:
        self.forces[...] = checked_row(self.model, "force", forces).reshape(-1, 6)

    @property
    def drive(self) -> Drive | None:
        """Springs and dampers towards a goal, or None; to assign. Implicit with semi_implicit, explicit with rk4."""
        x = self._space.x
        if not x.counts()["n_gains"]:
            return None
        return Drive(x.gain_p.copy(), x.gain_d.copy(), x.goal_q.copy(), x.goal_v.copy())

    @drive.setter
    def drive(self, drive: Drive | None) -> None:
        if drive is not None and not isinstance(drive, Drive):
            raise TypeError(f"drive must be a Drive or None, not {type(drive).__name__}")
        x = self._space.x
        given = {} if drive is None else {k: value for k, value in drive.fields().items() if value is not None}
        check_given(given)
        rows = {name: checked_row(self.model, name, value) for name, value in given.items()}
        x.set_count("n_gains", int("gain_p" in rows or "gain_d" in rows))
        for name in ("gain_p", "gain_d", "goal_v"):
            x.arrays[name][...] = rows.get(name, 0.0)
        x.arrays["goal_q"][...] = rows.get("goal_q", self.model.q_rest)

    @property
    def drive_forces(self) -> np.ndarray:
        """(nv,) forces of springs, dampers and drives in the last semi-implicit step, as applied; N or N·m."""
        w = self._space.w
        return w.total - self._space.x.tau - w.diagonal * w.a

    @property
    def state(self) -> State:
        """A copy of the present state; assign one to go back to it."""
        return State(self.q.copy(), self.v.copy(), self.time)

    @state.setter
    def state(self, state: State) -> None:
        self._take(state)

    def _check_motion(self, state: State) -> tuple[np.ndarray, np.ndarray, float]:
        """Coordinates, velocities and time of a state, all of them finite."""
        if not isinstance(state, State):
            raise TypeError(f"state must be a poise.State, not {type(state).__name__}; for coordinates alone, assign q")
        q, v = checked_row(self.model, "q", state.q), checked_row(self.model, "v", state.v)
        try:
            time = float(state.time)
        except (TypeError, ValueError, OverflowError):
            time = np.nan
        if not np.isfinite(time):
            raise ValueError(f"time is {state.time!r}; it must be a finite number of seconds")
        return q, v, time

    def _take(self, state: State) -> None:
        """Set the state."""
        self._put_motion(*self._check_motion(state))

    def _put_motion(self, q: np.ndarray, v: np.ndarray, time: float) -> None:
        self._left = None
        self.q[...], self.v[...], self.time = q, v, time

    def step(self, n: int = 1) -> None:
        """Advance n steps. Raises `Diverged`, at the last valid state, when the numbers are no longer finite.

        Ctrl-C keeps the steps that are done. Only one thread can step at a time; others get a `RuntimeError`.
        """
        n, me, other = checked_steps(n), get_ident(), self._thread
        if other is not None and other != me:
            raise RuntimeError(BUSY.format(type(self).__name__))
        self._thread = me  # no thread switch since the check of `other`, as no function is called between
        try:
            if not self._paths or self._lays_paths:
                self._advance(n)
                return
            for _ in range(n):
                self._lay_paths()
                self._advance(1)
                self._leave_paths()
        finally:
            self._thread = other

    def _advance(self, n: int) -> None:
        start, done, pace = self.time, 0, self._pace
        while done < n:
            wanted = min(n - done, pace.most)
            pace.begin()
            with HeldInterrupt():
                went = self._step(*self._handles, self._dt, wanted)
                done += went
                self.time = start + done * self._dt
            pace.end(went)
            if went < wanted:
                raise Diverged(self.time, *self._culprit())

    def _lay_paths(self) -> None:
        """Write the paths at the beginning, middle and end of the step for the kernel."""
        self._check_paths()
        y, nq, nv = self._space.stages, self.model.nq, self.model.nv
        for k in range(3):
            for j, d, path in self._paths:
                point = path(self.time + 0.5 * k * self.dt)
                y.path_q[k * nq + j : k * nq + j + 7] = (*point.position, *point.quat_wxyz)
                y.path_v[k * nv + d : k * nv + d + 6] = (*point.velocity, *point.angular_velocity)
                y.path_a[k * nv + d : k * nv + d + 6] = (*point.acceleration, *point.angular_acceleration)

    def _leave_paths(self) -> None:
        self._note_paths()

    def _note_paths(self) -> None:
        """Save the coordinates and velocities on paths after a step."""
        self._left = self.q[self._on_paths[0]], self.v[self._on_paths[1]]

    def _check_paths(self) -> None:
        """Raise if coordinates or velocities on a path were written, and restore those of the path."""
        if self._left is None:
            return
        for name, array, places, left in zip("qv", (self.q, self.v), self._on_paths, self._left, strict=True):
            wrong = array[places] != left
            if wrong.any():
                array[places] = left
                joint = self.model.joint_names[self.model.paths[int(np.argmax(wrong)) // (7 if name == "q" else 6)][0]]
                what = f'"{joint}" follows a path, which prescribes its {name}'
                raise ValueError(f"{what}; a kinematic body without a path can be moved by hand")

    def _culprit(self) -> tuple[str, str]:
        """The body that diverged, and its quantity: the input that is not finite, else the motion.

        For the motion it is the body of the first acceleration that is not finite, else of the largest one.
        """
        if not np.isfinite(self._space.x.force).all():
            return self.model.body_names[int(np.argwhere(~np.isfinite(self._space.x.force))[0][0])], "forces"
        what, numbers = ("motion", self._space.w.a) if np.isfinite(self.tau).all() else ("tau", self.tau)
        size = np.where(np.isfinite(numbers), np.abs(numbers), np.inf)
        link = self.model.dof_link[int(np.argmax(size))]
        return self.model.body_names[self.model.link_body[link]], what

    def run(
        self, duration: float, *, every: int = 1, before_step: Callable[[Simulation], Any] | None = None
    ) -> Trajectory:
        """Simulate `duration` seconds; returns the first state, every `every`-th one after it, and the last.

        `before_step`, if given, is called with the simulation before each step and may change its inputs.
        """
        steps = steps_of_duration(duration, self.dt)
        if steps < 1 or isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
            raise ValueError(f"{duration} s in steps of {self.dt} s, one in {every} kept: nothing to do")
        times, qs, vs = [self.time], [self.q.copy()], [self.v.copy()]
        start = self.time
        for k in range(0, steps, every):
            n = min(every, steps - k)
            if before_step is None:
                self.step(n)
            else:
                for _ in range(n):
                    before_step(self)
                    self.step()
            self.time = start + (k + n) * self.dt
            times.append(self.time)
            qs.append(self.q.copy())
            vs.append(self.v.copy())
        return Trajectory(np.array(times), np.array(qs), np.array(vs))


def simulate(
    model: Model,
    duration: float,
    *,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    dt: float | None = None,
    method: Method = "rk4",
    every: int = 1,
) -> Trajectory:
    """The free motion of a model from a pose `q` and velocity `v` (at rest when missing), by Runge-Kutta steps.

    For forces, drives and checkpoints use `Simulation`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 10))
    >>> float(poise.dynamics.simulate(scene.compile(), 1.0, dt=0.01).q[-1, 2].round(6))
    5.095
    """
    check_model(model)
    start = State.rest(model)
    start.q[...] = start.q if q is None else checked_row(model, "q", q)
    start.v[...] = start.v if v is None else checked_row(model, "v", v)
    return Simulation(model, start, dt=dt, method=method).run(duration, every=every)
