"""A world: a model, its state, and a formulation that steps it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.argument_checks import body_number, check_model, checked_vector, number_within, three_numbers
from poise.dynamics.interrupts import Pace
from poise.dynamics.response_api import force_delta
from poise.dynamics.simulation import Simulation
from poise.dynamics.state_queries import bodies
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.acceleration_level.acceleration_tracking import Reference, Track, make_track, tracked_dofs
from poise.formulations.acceleration_level.stiffness_guard import FormulationWarning
from poise.formulations.commands.applied_forces import AppliedForces
from poise.formulations.commands.path_table import PathTable
from poise.formulations.driver import Stepper
from poise.formulations.formulation_registry import Formulation
from poise.formulations.maximal_coordinates.iterative_driver import LooseStepper
from poise.formulations.maximal_coordinates.maximal import Maximal
from poise.formulations.maximal_coordinates.maximal_driver import ApartStepper
from poise.formulations.options import Options
from poise.formulations.reduced import Reduced
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state import State
from poise.model.state_fields import SlotCheck, StateFields
from poise.sim.actuation import Hook
from poise.sim.body_view import PlacedBody
from poise.sim.controllers import Hooks
from poise.sim.observer import StepObserver
from poise.sim.profiler import Clock
from poise.sim.recording import Recording
from poise.sim.step_report import Report
from poise.sim.step_result import LastStep, passive_forces
from poise.sim.stepping import Stepped
from poise.sim.world_motors import Controls

Array = NDArray[Any]


class World(Stepped):
    """A model with a state that steps through time, with contacts and limits. Its inputs are those of `Simulation`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.box(0.2, 0.2, 0.2, mass=3.0), name="box", position=(0, 0, 0.1))
    >>> world = World(scene.compile())
    >>> world.step(240)
    >>> float(world.body("box").position[2].round(6))
    0.1
    >>> round(sum(contact.normal_force for contact in world.report().contacts), 1)
    29.4
    """

    _ROOM = (
        *Simulation._ROOM,
        "_stepper",
        "_arrays",
        "_last",
        "_recording",
        "_clock",
        "_state_fields",
        "_observer",
        "_path_table",
        "_applied",
    )

    def __init__(
        self,
        model: Model,
        formulation: Formulation | None = None,
        state: State | None = None,
        *,
        dt: float | None = None,
        keyframes: Sequence[tuple[str, State]] = (),
    ) -> None:
        given: object = formulation
        if given is not None and not isinstance(given, Formulation):
            kinds = "poise.Reduced(...) or poise.Maximal(...)"
            raise TypeError(f"formulation is a {type(given).__name__}; it must be {kinds}")
        self.formulation = formulation or Reduced()
        check_model(model)
        self._tracks: list[Track] = []
        self._hooks = Hooks(model)
        self._keyframes = tuple(keyframes)
        self.camera: dict[str, Any] = {}
        """The scene's camera settings; see `poise.model.Settings`. Recordings include them."""
        self._controls = Controls(model)
        self._row_hooks: list[Hook] = []
        super().__init__(model, state, dt=dt)
        self._first = self.state
        if isinstance(self._stepper, Accelerated):
            self._stepper.check_stiffness(self.dt / self.formulation.substeps, motors=False)
            warn_of_euler(model, self.formulation)

    # ---- memory ------------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        self._stepper = make_stepper(self._model, self.formulation, self._tracks)
        self._use(self._stepper.space)
        space = self._stepper.space
        self._arrays = space.s.q, space.s.v, space.x.tau, space.x.force
        self._last = LastStep(space.s.q, space.s.v, space.x.force)
        if isinstance(self._stepper, Stepper):
            self._stepper.march.note_in(*self._last.arrays)
        self._observer = StepObserver(self._stepper, self._last)
        self._applied = AppliedForces(self._model, space.m, space.s, space.x)
        self._path_table: PathTable | None = None
        if self._paths and isinstance(self._stepper, Stepper):
            self._path_table = PathTable(space.m, space.stages, self._paths)
        self._state_fields = [
            *self._stepper.state_fields,
            StateFields("hooks", self._hooks.memory, self._check_hooks, self._hooks.remember),
            StateFields("controls", self._joint_memory, self._check_joint_memory, self._remember_joints),
            StateFields("drive", self._drive_memory, self._check_drive_memory, self._remember_drive),
            StateFields("pushes", self._read_applied, self._check_applied, self._write_applied),
        ]
        self._recording: Recording | None = None
        self._clock: Clock | None = None
        self._pace = Pace()

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: the settings and all state fields, multipliers of rows included."""
        own = {"_tracks": [*self._tracks], "_hooks": self._hooks.copy()}
        own |= {"_controls": self._controls.copy(), "_row_hooks": [*self._row_hooks]}
        return super().__getstate__() | own | {"_slots": self._read_slots(), "_timed": self.timing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        apart = ("_slots", "_timed")
        super().__setstate__({name: value for name, value in state.items() if name not in apart})
        for named in self._hooks.controllers.values():
            self._compile(named)
        events = self._hooks.events
        self._write_slots(state["_slots"])
        self._hooks.events = events
        self.timing = state["_timed"]
        self._clear_last()

    @property
    def state(self) -> State:
        """A copy of all that the next steps depend on. Assigning one restores it bit for bit. The inputs `tau`,
        `forces` and `drive` are not part of it.

        >>> import poise
        >>> world = poise.Scene().build(dt=0.5)
        >>> start = world.state
        >>> world.step(3)
        >>> world.state = start
        >>> world.time
        0.0
        """
        return State(self.q.copy(), self.v.copy(), self.time, self._read_slots())

    @state.setter
    def state(self, state: State) -> None:
        motion = self._check_state(state)
        self._put_motion(*motion)
        self._write_slots(state.slots)
        self._clear_last()

    def _check_state(self, state: State) -> tuple[Array, Array, float]:
        """Validate a state before any of it is written; errors name the slot. Returns its coordinates, velocities and
        time.
        """
        motion = self._check_motion(state)
        check = SlotCheck(state.slots)
        for fields in self._state_fields:
            fields.check(check)
        check.finish()
        return motion

    def _check_hooks(self, check: SlotCheck) -> None:
        self._hooks.check_memory(check, self.model)

    def _read_applied(self) -> dict[str, Array]:
        """Forces of the next step."""
        return {"pushes": self._applied.read()} if self._applied.count[0] else {}

    def _check_applied(self, check: SlotCheck) -> None:
        if "pushes" in check.slots:
            applied = check.fits("pushes", (len(np.atleast_1d(check.array("pushes"))), 7), np.float64)
            if not np.isin(applied[:, 0], np.arange(self.model.n_bodies)).all():
                check.fail("pushes", f"must name bodies by numbers below {self.model.n_bodies}")

    def _write_applied(self, slots: Mapping[str, Array]) -> None:
        self._applied.write(slots.get("pushes", np.zeros((0, 7))))

    def _clear_last(self) -> None:
        """Clear the results of a discarded step."""
        self._stepper.collider.c.count[...] = 0
        self._last.clear(self.q, self.v)

    def reset(self, keyframe: str | int | None = None) -> None:
        """Restore the initial state, or a keyframe of the scene by its name or number. The inputs `tau`, `forces` and
        `drive` stay; the memory of controllers is cleared. Motors and released loops, which keyframes do not
        contain, stay as they are.

        >>> import poise
        >>> scene = poise.Scene(keyframes=[poise.Keyframe("ajar", q=(0.2,))])
        >>> _ = scene.hinge(None, poise.box(0.9, 0.04, 2.0), name="door", anchor=(-0.45, 0, 0))
        >>> world = scene.build()
        >>> world.reset("ajar")
        >>> float(world.q[0])
        0.2
        """
        self.state = self._first if keyframe is None else self._keyframes[self._keyframe(keyframe)][1]
        self._hooks.start()

    def _keyframe(self, key: str | int) -> int:
        names = [name for name, _ in self._keyframes]
        if not isinstance(key, str):
            return number_within("keyframe", key, len(names), "keyframes")
        if key not in names:
            raise ValueError(f'there is no keyframe "{key}"{did_you_mean(key, names)}')
        return names.index(key)

    # ---- acting ------------------------------------------------------------------------------------------------------

    def apply_force(
        self,
        body: str | int,
        force: ArrayLike = (0.0, 0.0, 0.0),
        *,
        torque: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike | None = None,
    ) -> None:
        """Apply a force (N) and a torque (N·m) to a body in the next step, both in world axes. The force acts at a
        point of the world (m), by default the centre of mass. Forces that act for longer belong in `forces`.

        >>> import poise
        >>> scene = poise.Scene(gravity=(0, 0, 0))
        >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
        >>> world = World(scene.compile(), dt=0.01)
        >>> world.apply_force("ball", (0, 50, 0))
        >>> world.step(2)
        >>> float(world.v[1].round(9))
        0.25
        """
        place = None if point is None else three_numbers("point", point)
        wrench = three_numbers("force", force), three_numbers("torque", torque)
        self._applied.append(body_number(self.model, body), *wrench, place)

    def apply_impulse(
        self,
        body: str | int,
        impulse: ArrayLike = (0.0, 0.0, 0.0),
        *,
        torque: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike | None = None,
    ) -> None:
        """Apply an impulse (N·s) and an angular impulse (N·m·s) to a body, both in world axes: velocities change at
        once. The impulse acts at a point of the world (m), by default the centre of mass. Contacts respond in the next
        step.

        >>> import poise
        >>> scene = poise.Scene(gravity=(0, 0, 0))
        >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
        >>> world = World(scene.compile())
        >>> world.apply_impulse("ball", (0, 3, 0))
        >>> world.v[:3].tolist()
        [0.0, 1.5, 0.0]
        """
        index, blow = body_number(self.model, body), checked_vector("impulse", impulse)
        moment = checked_vector("torque", torque) + np.cross(self._arm(index, point), blow)
        self.v[...] += force_delta(self.model, self.q, index, blow, moment)

    def _arm(self, body: int, point: ArrayLike | None) -> Array:
        """(3,) from a body's origin to a point of the world, or to its centre of mass; m."""
        place = bodies(self.model, self.q)
        if point is None:
            return np.asarray(place.rotation[body] @ self.model.body_com[body])
        return np.asarray(checked_vector("point", point) - place.position[body])

    def track(
        self,
        names: str | Sequence[str],
        reference: Reference | None,
        *,
        gains: tuple[float, float] | None = None,
    ) -> None:
        """Make hinges and slides follow a reference exactly from now on, against any load (KOK §8.3).

        `reference` takes a time (s) and returns (q, v, a) of the coordinates of the joints, in their order; None ends
        the tracking. `gains` are (kp, kv), as `poise.control.gains` returns them; by default errors shrink to a
        hundredth in a tenth of a second. The forces of tracking are unlimited; `report().limits` lists them. Tracking
        needs the acceleration level.

        >>> import poise
        >>> from math import cos, sin
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
        >>> world = World(scene.compile(), poise.Reduced(level="acceleration"), dt=0.01)
        >>> world.track("arm", lambda t: (sin(t), cos(t), -sin(t)))
        >>> world.v[0] = 1.0
        >>> world.step(100)
        >>> abs(float(world.q[0]) - sin(1.0)) < 1e-6
        True
        """
        if self.formulation.level != "acceleration":
            raise ValueError('joints are tracked at acceleration level: build with poise.Reduced(level="acceleration")')
        dofs = tracked_dofs(self.model, names)
        new = [] if reference is None else [make_track(self.model, names, reference, gains)]
        for track in self._tracks:
            if both := set(track.dofs.tolist()) & set(dofs):
                if not set(track.dofs.tolist()) <= set(dofs):
                    name = self.model.dof_names[min(both)]
                    raise ValueError(f'"{name}" is tracked together with others: name all of {", ".join(track.names)}')
            else:
                new.append(track)
        self._tracks[:] = new

    @property
    def asleep(self) -> Array:
        """(n_bodies,) bool: the sleeping bodies; see `Reduced.sleeping`.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.1))
        >>> world = scene.build(poise.Reduced(sleeping=True))
        >>> world.step(240)
        >>> world.body("box").asleep
        True
        >>> world.wake("box")
        >>> world.asleep.any()
        np.False_
        """
        return np.asarray(self._stepper.sleep.asleep)

    def wake(self, *bodies: str | int) -> None:
        """Wake bodies and the islands that fell asleep with them; all bodies if none is named. Functions that move,
        push, set or attach a body wake it themselves.
        """
        named = np.array([body_number(self.model, body) for body in bodies], np.intp)
        self._stepper.sleep.wake(named if bodies else None)

    # ---- looking -----------------------------------------------------------------------------------------------------

    def body(self, name: str | int) -> PlacedBody:
        """A view of a body and its current pose, by its name or number.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
        >>> scene.build().body("ball").position.tolist()
        [0.0, 0.0, 2.0]
        """
        return PlacedBody(self, body_number(self.model, name))

    def report(self) -> Report:
        """Report of the last step: contacts with forces, limits, torques, residual, energy, momentum.

        >>> import poise
        >>> world = poise.Scene().build(dt=0.5)
        >>> world.step()
        >>> world.report().time
        0.5
        """
        timing = None if self._clock is None else self._clock.told()
        return Report(self._stepper, self._last, self._observer.report(self.time), timing)

    @property
    def a(self) -> Array:
        """(nv,) accelerations of the last step, constraint forces included. They satisfy the equations of motion at the
        beginning of the step. If continuous collision splits the step, they are the change of velocity divided by its
        length; with substeps, those of the last one.
        """
        return self._last.a

    @property
    def joint_gaps(self) -> Array:
        """(n_bodies, 2) joint error of each body after the last step: the distance of the joint's points (m) and the
        angle (rad). It is zero for bodies without a joint, and always zero except with `poise.Maximal`.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="rod")
        >>> world = scene.build(poise.Maximal())
        >>> world.q[0] = 1.0
        >>> world.step(100)
        >>> world.joint_gaps.shape, bool((world.joint_gaps < 1e-6).all())
        ((1, 2), True)
        """
        gaps, model = np.zeros((self.model.n_bodies, 2)), self.model
        stepper = self._stepper.inner if isinstance(self._stepper, Accelerated) else self._stepper
        if isinstance(stepper, ApartStepper):
            turn, way = np.split(stepper.gaps, 2, axis=1)
            both = np.stack((np.linalg.norm(way, axis=1), np.linalg.norm(turn, axis=1)), axis=1)
            gaps[model.link_body] = both
        return gaps

    @property
    def drive_forces(self) -> Array:
        """(nv,) forces of springs, dampers and drives in the last step, evaluated implicitly at its end; N or N·m.

        >>> import poise
        >>> scene = poise.Scene(gravity=(0, 0, 0))
        >>> _ = scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=1.0), axis="x", damping=2.0, name="cart")
        >>> world = scene.build(dt=0.01)
        >>> world.v[0] = 1.02
        >>> world.step()
        >>> world.drive_forces.round(9).tolist()  # −2 times the speed at the end of the step
        [-2.0]
        """
        return passive_forces(self._space.w, self._last, self._stepper.extras.motors)

    @property
    def timing(self) -> bool:
        """Whether stages of steps are timed for `report().timing`; assignable. It costs no time while it is off.

        >>> import poise
        >>> world = poise.Scene().build()
        >>> world.timing = True
        >>> world.step()
        >>> sorted(world.report().timing)
        ['act', 'collide', 'free motion', 'rest', 'solve', 'whole']
        """
        return self._clock is not None

    @timing.setter
    def timing(self, on: bool) -> None:
        if self._clock is not None:
            self._clock.stop()
        self._clock = Clock(self._stepper) if on else None


def warn_of_euler(model: Model, formulation: Options) -> None:
    """Warn about joints whose constraint forces Euler's method takes from the beginning of the step."""
    if formulation.level != "acceleration" or formulation.integrator != "euler":
        return
    held = "loops" if model.loops else ""
    if isinstance(formulation, Maximal) and any(kind != "free" for kind in model.joint_kinds):
        held = "joints"
    if held:
        warnings.warn(
            f'level="acceleration" with integrator="euler" holds {held} by forces of where a step begins: they open, '
            'and fast motion gains energy. Take integrator="rk4", or level="velocity"',
            FormulationWarning,
            stacklevel=4,
        )


def make_stepper(model: Model, formulation: Options, tracks: list[Track]) -> Stepper | Accelerated:
    """The driver of a formulation, which steps a world."""
    rules = formulation.rules()
    if formulation.level == "velocity":
        if not isinstance(formulation, Maximal):
            return Stepper(model, newton=formulation.newton, **rules)
        if formulation.solver == "direct":
            return ApartStepper(model, newton=formulation.newton, **rules)
        return LooseStepper(model, solver=formulation.solver, **rules)
    apart = isinstance(formulation, Maximal)
    stepper = Accelerated(model, formulation.integrator or "rk4", newton=formulation.newton, apart=apart, **rules)
    stepper.looker.tracks = tracks
    return stepper
