"""Many copies of a scene that are stepped together: in SIMD lanes, and by threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.batch.batch_controls import WorldControls
from poise.batch.batch_terrains import Terrains
from poise.batch.parameters import FIELDS, Parameters, checked_names
from poise.batch.schedule import Order
from poise.batch.thread_pool import Crew
from poise.batch.tracked import BatchTracking, batch_trackings
from poise.batch.world_checks import (
    checked_count,
    checked_threads,
    chosen_state,
    chosen_worlds,
    fitting_formulation,
    fitting_model,
    given_rows,
    scattered,
    width_of,
)
from poise.batch.world_recording import WorldsRecorder, checked_parts, options_of
from poise.batch.world_report import WorldReport
from poise.batch.world_states import WorldStates
from poise.batch.world_times import WorldClock
from poise.dynamics.argument_checks import (
    check_given,
    check_range,
    checked_step,
    checked_steps,
    number_within,
    steps_of_duration,
)
from poise.dynamics.functions import Drive
from poise.formulations.formulation_registry import Formulation
from poise.formulations.lanes.batch_engine import DRIVE, Layout, Records
from poise.formulations.lanes.batch_kernels import N_TOLD, TOLD
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state import State
from poise.sim.recording import Recording

Array = NDArray[Any]
AT_ONCE = 4
"""Steps, at most, after which worlds are regrouped into lanes: by then their rows have changed."""
MOST_STEPS = 10**9
"""Steps and substeps of one call: worlds count them in 32 bits."""


class Batch:
    """`n` worlds of one model, each with its own state, that are stepped together at velocity level.

    `q`, `v`, `tau`, `ctrl` and the other arrays have a row for each world. They are views of the memory that steps read
    and write, not copies. A world with non-finite state is frozen at its last valid step; `diverged` marks it, and
    `reset` restarts it. The result of a world depends neither on other worlds nor on the number of threads
    (docs/batch.md states the exact guarantee).

    Steps are those of `World`, to the precision of their type, with one exception: fast motion is not split into
    substeps (no continuous collision). Contacts are predicted at most 5 cm ahead.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.5))
    >>> batch = Batch(scene.compile(), 20, dt=0.005, precision="f64", threads=1)
    >>> batch.v[:, 0] = range(20)
    >>> batch.step(50)
    >>> batch.q.shape, batch.q[:4, 0].round(6).tolist()
    ((20, 7), [0.0, 0.25, 0.5, 0.75])
    """

    def __init__(
        self,
        model: Model,
        n: int,
        formulation: Formulation | None = None,
        state: State | None = None,
        *,
        dt: float | None = None,
        precision: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        vary: Sequence[str] = (),
        terrains: Mapping[str, Sequence[str]] | None = None,
        keyframes: Sequence[tuple[str, State]] = (),
        controllers: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """`threads`: the number of processors when missing; `vary`: names of the parameters that may differ from world
        to world, for `Batch.vary`; `terrains`: for the name of each terrain, the names of static bodies and shapes that
        exist only in worlds on it, for `Batch.terrain`; `controllers`: tracking controllers by name, each bound to the
        model.
        """
        fitting_model(model)
        self._model, self._n, names = model, checked_count(n), checked_names(vary)
        self._formulation, self._width = fitting_formulation(formulation), width_of(precision)
        self._keyframes = tuple(keyframes)
        self.dt = model.dt if dt is None else dt
        self._terrains = None if terrains is None else Terrains(model, terrains, self._n)
        there = None if self._terrains is None else self._terrains.there
        layout = Layout(model, self._width, [field for name in names for field in FIELDS[name]], there)
        self._records = Records(layout, self._width, self._n)
        self._records.parts = self._formulation.substeps
        threads = min(checked_threads(threads), -(-self._n // self._width.lanes))
        rules = self._formulation.rules() | {"newton": self._formulation.newton}
        self._crew = Crew(model, self._width, layout, threads, rules)
        first = self._crew.engines[0].first
        self._records.numbers.reshape(self._n, -1)[...] = first
        self._first_loops = first[layout.places["loops"]]
        self._first = chosen_state(State.rest(model), (), None, state).copy()
        self._clock = WorldClock(self._records)
        self._order, self._controls = Order(self._records), WorldControls(model, self._records)
        self._parameters = Parameters(model, self._records, names)
        self._states = WorldStates(model, self._records, self._controls)
        self._tracking = batch_trackings(controllers, model, self._records)
        if drives := [drive for one in self._tracking.values() if (drive := one.drive) is not None]:
            self.drive = drives[0]
        self.reset()

    def __repr__(self) -> str:
        return (
            f"<Batch of {self.n} worlds of {self.model!r}: {self.precision}, {self.threads} threads, dt {self.dt:g} s>"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a batch is memory of one process: make another, and copy q, v, forces and controls")

    # ---- properties --------------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model of all worlds."""
        return self._model

    @property
    def n(self) -> int:
        """Worlds."""
        return self._n

    def __len__(self) -> int:
        """Worlds."""
        return self._n

    @property
    def formulation(self) -> Formulation:
        """The formulation of all worlds."""
        return self._formulation

    @property
    def precision(self) -> str:
        """Floating-point type of all numbers: "f32" or "f64"."""
        return self._width.elem

    @property
    def threads(self) -> int:
        """Number of threads that share the steps; never more than there are groups of lanes."""
        return len(self._crew.engines)

    @property
    def dt(self) -> float:
        """Length of a step, readable and writable; s."""
        return self._dt

    @dt.setter
    def dt(self, dt: float) -> None:
        step = checked_step(dt)
        if step == 0.0:
            raise ValueError(f"dt is {dt}; it must be a positive time in seconds")
        self._dt = step

    def _given(self, name: str, value: Any, n: int | None = None) -> Array:
        """An input of n worlds, or of all."""
        return given_rows(self.model, name, value, self.n if n is None else n, self.precision)

    # ---- state -------------------------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """(n, nq) coordinates, readable and writable."""
        return self._records.of("q")

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self.q[...] = self._given("q", q)

    @property
    def v(self) -> Array:
        """(n, nv) velocities, readable and writable."""
        return self._records.of("v")

    @v.setter
    def v(self, v: ArrayLike) -> None:
        self.v[...] = self._given("v", v)

    @property
    def time(self) -> Array:
        """(n,) time of each world since its reset; s."""
        return self._clock.time

    @property
    def diverged(self) -> Array:
        """(n,) bool: worlds with non-finite state; they are frozen at their last valid step until `reset`.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball")
        >>> batch = scene.build_batch(3, threads=1)
        >>> batch.tau[1, 0] = float("nan")
        >>> batch.step(10)
        >>> batch.diverged.tolist()
        [False, True, False]
        """
        return np.asarray(self._records.lost != 0)

    # ---- forces and controls -----------------------------------------------------------------------------------------

    @property
    def tau(self) -> Array:
        """(n, nv) applied generalized forces, writable; N or N·m."""
        return self._records.of("tau")

    @tau.setter
    def tau(self, tau: ArrayLike) -> None:
        self.tau[...] = self._given("tau", tau)

    @property
    def forces(self) -> Array:
        """(n, n_bodies, 6) applied wrenches (τ, f) on bodies, in world axes at their origins, writable; N·m, N."""
        self._records.use("force")
        return self._records.of("force").reshape(self.n, self.model.n_bodies, 6)

    @forces.setter
    def forces(self, forces: ArrayLike) -> None:
        self._records.use("force")
        self._records.of("force")[...] = self._given("force", forces)

    @property
    def drive(self) -> Drive | None:
        """Implicit springs and dampers towards a goal on every degree of freedom, or None; assignable, with one row for
        all worlds or a row for each. `drive.goal_q[...] = goals` then sets new goals.
        """
        if "gain_p" not in self._records.used:
            return None
        return Drive(*(self._records.of(name) for name in DRIVE))

    @drive.setter
    def drive(self, drive: Drive | None) -> None:
        if drive is not None and not isinstance(drive, Drive):
            raise TypeError(f"drive must be a Drive or None, not {type(drive).__name__}")
        given = {} if drive is None else {k: value for k, value in drive.fields().items() if value is not None}
        check_given(given)
        rows = {name: self._given(name, value) for name, value in given.items()}
        for name in DRIVE:
            self._records.of(name)[...] = rows.get(name, self.model.q_rest if name == "goal_q" else 0.0)
        if drive is None:
            self._records.spare(*DRIVE)
        else:
            self._records.use(*DRIVE)

    @property
    def ctrl(self) -> Array:
        """(n, motors) controls of the scene's motors, readable and writable; see `World.ctrl`."""
        return self._controls.values

    @ctrl.setter
    def ctrl(self, ctrl: ArrayLike) -> None:
        self.ctrl[...] = self._controls.checked(ctrl)

    def vary(self, **parameters: ArrayLike) -> None:
        """Set parameters of each world (domain randomization), from the next step on: one row for all worlds or a row
        for each.

        `gravity` (3; m/s²), `friction` and `restitution` (of each shape, in the order of `model.solids`), `mass`
        (of each body; kg; inertias scale with it), `damping`, `stiffness` and `armature` (nv). A single number, or one
        for each world (n, 1), sets the whole row, except that of gravity; for `mass` it sets all bodies that have a
        mass. The batch must be made with `vary=(…)`, their names; its steps take longer.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball")
        >>> batch = scene.build_batch(3, dt=0.01, precision="f64", threads=1, vary=("gravity",))
        >>> batch.vary(gravity=[(0, 0, 0), (0, 0, -1), (1, 0, 0)])
        >>> batch.step(100)
        >>> batch.v[:, :3].round(9).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]
        """
        checked = {name: self._parameters.checked(name, value) for name, value in parameters.items()}
        for name, rows in checked.items():
            self._parameters.set(name, rows)

    @property
    def varied(self) -> dict[str, Array]:
        """(n, size) copies of the parameters that may differ from world to world."""
        return {name: values.copy() for name, values in self._parameters.values.items()}

    @property
    def terrains(self) -> tuple[str, ...]:
        """Names of the terrains that worlds choose among; empty when all worlds have all shapes."""
        return () if self._terrains is None else self._terrains.names

    @property
    def terrain(self) -> Array:
        """(n,) index of each world's terrain, in the order of `terrains`, readable and writable; names can be assigned
        too, one for all worlds or one for each.

        A world does not collide with shapes of other terrains. Shapes that belong to no terrain exist in all worlds. In
        the first step on another terrain, a world has no warm start.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add_ground(height=0.3, name="table")
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.5))
        >>> batch = scene.build_batch(4, dt=0.01, threads=1, terrains={"low": ["ground"], "high": ["table"]})
        >>> batch.terrain = ["low", "high", "low", "high"]
        >>> batch.terrain[3] = 0
        >>> batch.step(100)
        >>> batch.terrain.tolist(), [f"{height:.2f}" for height in batch.q[:, 2]]
        ([0, 1, 0, 0], ['0.10', '0.40', '0.10', '0.10'])
        """
        return self._chosen_terrains().values

    @terrain.setter
    def terrain(self, terrain: ArrayLike) -> None:
        self.terrain[...] = self._chosen_terrains().checked(terrain, self.n)

    def _chosen_terrains(self) -> Terrains:
        if self._terrains is None:
            raise ValueError("all worlds have all shapes: make the batch with terrains={name: [bodies, shapes], …}")
        return self._terrains

    def tracking(self, name: str | None = None) -> BatchTracking:
        """Tracking of a character (`hero.track`) in all worlds: by the name of the character or of the controller, or
        the only one.
        """
        known = self._tracking
        if name is None and len(known) == 1:
            return next(iter(known.values()))
        for key in (name, f"{name} tracking"):
            if key in known:
                return known[key]
        near = did_you_mean(str(name), known) or f"; there is {', '.join(known) or 'none'}"
        raise ValueError(f"no character that follows a motion is called {name!r}{near}")

    # ---- steps -------------------------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> None:
        """Advance all worlds that have not diverged by n steps. Forces and controls act in every step.

        Ctrl-C keeps the completed steps, and leaves each world between two steps. In a batch so large that a step takes
        long, some worlds are then one step ahead of others; see `time`. Python threads that step one batch take turns.
        """
        records, parts, dt = self._records, self._formulation.substeps, self._dt
        steps = checked_steps(n, MOST_STEPS // parts)
        with self._crew.turn():
            self._check_state()
            if self._terrains is not None:
                self._terrains.apply(records)
            self._controls.apply()
            for tracking in self._tracking.values():
                tracking.apply()
            records.done[...], records.whole[0] = 0, dt
            try:
                while steps > 0:
                    groups = self._order.arrange()
                    n = self._crew.steps_at_once(parts * groups, min(AT_ONCE, steps))
                    self._crew.run(records, groups, dt / parts, n * parts)
                    steps -= n
            finally:
                self._clock.go_on(records, dt, parts)

    def run(
        self,
        duration: float,
        worlds: ArrayLike | None = None,
        *,
        every: int = 1,
        record: Sequence[str] = ("contacts", "energy", "solver"),
    ) -> list[Recording]:
        """Advance by `duration` seconds and record some worlds: those of a mask or of a list of numbers, or all (None).
        Frames are recorded now, after every `every`-th step and after the last one. Returns a recording for each world.

        `record` names what is recorded besides time and state. The recording of a diverged world ends at its last valid
        step.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
        >>> batch = scene.build_batch(100, dt=0.01, precision="f64", threads=1)
        >>> first, other = batch.run(0.5, [0, 42])
        >>> other
        <Recording: 51 frames from 0 to 0.5 s, nq 7, nv 6; contacts, energy, solver>
        >>> round(other.frame(50).contacts[0].normal_force, 2)
        19.62
        """
        chosen, parts, steps = (
            chosen_worlds(worlds, self.n),
            checked_parts(record),
            steps_of_duration(duration, self.dt),
        )
        if steps < 1 or isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
            raise ValueError(f"{duration} s in steps of {self.dt} s, one in {every} kept: nothing to do")
        recorder = WorldsRecorder(self._model, self._records, chosen, 1 - (-steps // every), parts)
        recorder.take(self._clock.length)
        for k in range(0, steps, every):
            self.step(min(every, steps - k))
            recorder.take(self._clock.length)
        return recorder.finished(options_of(self._formulation, self.dt, self.precision, parts))

    def _check_state(self) -> None:
        """Raise ValueError for non-finite inputs before the first step."""
        if self._order.finite:
            return
        for name, array in (("q", self.q), ("v", self.v)):
            if not np.isfinite(array).all():
                world, k = np.argwhere(~np.isfinite(array))[0].tolist()
                raise ValueError(f"{name}[{world}, {k}] is {array[world, k]}; every number must be finite")

    # ---- reset -------------------------------------------------------------------------------------------------------

    def reset(
        self,
        which: ArrayLike | None = None,
        keyframe: str | int | None = None,
        *,
        state: State | None = None,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        q_noise: ArrayLike = 0.0,
        v_noise: ArrayLike = 0.0,
        rng: np.random.Generator | None = None,
        terrain: ArrayLike | None = None,
    ) -> None:
        """Reset all worlds, or those of a mask or of a list of numbers, to time 0 without warm start.

        They start in the initial state, in a keyframe by its name or number, in a `state`, or at `q` and `v`, one row
        for all or a row for each. `q_noise` and `v_noise` bound the random offsets of each degree of freedom and its
        velocity: one number for all degrees of freedom except those of kinematic bodies, or (nv,). The noise is uniform
        per degree of freedom and drawn from `rng`; quaternions stay normalized. `terrain` sets their terrain by name or
        number, one for all or one for each. `tau`, `forces`, `drive` and `terrain` keep their values otherwise.
        Controls are set from the initial state or keyframe if it has any, and keep their values otherwise.

        >>> import numpy as np
        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
        >>> batch = scene.build_batch(4, precision="f64", threads=1)
        >>> batch.step(10)
        >>> batch.reset([1, 3], q_noise=0.1, rng=np.random.default_rng(0))
        >>> batch.time.round(6).tolist(), batch.q[:, 0].round(3).tolist()
        ([0.041667, 0.0, 0.041667, 0.0], [0.0, 0.027, 0.0, -0.046])
        """
        worlds = chosen_worlds(which, self.n)
        start = chosen_state(self._first, self._keyframes, keyframe, state)
        rows = {
            name: self._given(name, getattr(start, name) if given is None else given, len(worlds))
            for name, given in (("q", q), ("v", v))
        }
        rows = scattered(self.model, rows, len(worlds), q_noise, v_noise, rng)
        if self.precision == "f32":
            check_range(rows)
        anew = keyframe is None and state is None and q is None and v is None
        control = start.slots.get("control", self._controls.first if anew else None)
        control = None if control is None else self._controls.checked(control, one_row=True)
        if terrain is not None:
            chosen = self._chosen_terrains().checked(terrain, len(worlds))
            self._chosen_terrains().put(self._records, worlds, chosen)
        self._records.of("q")[worlds], self._records.of("v")[worlds] = rows["q"], rows["v"]
        self._records.of("loops")[worlds] = self._first_loops
        self._records.of("motors/unsaturated")[worlds] = 1.0
        self._records.forget(worlds)
        self._records.lost[worlds] = 0
        self._records.told.reshape(self.n, N_TOLD)[worlds] = 0.0
        self._clock.begin(worlds)
        if control is not None:
            self.ctrl[worlds] = control

    def get_state(self, world: int) -> State:
        """The state of a world: coordinates, velocities, time, and in slots the warm start of its next step and its
        controls. A world that is set to it continues with the same bits; a `World` accepts it too.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.box(0.1, 0.1, 0.1), name="box", position=(0, 0, 0.05))
        >>> batch = scene.build_batch(3, threads=1)
        >>> batch.step(10)
        >>> state = batch.get_state(1)
        >>> batch.step(20)
        >>> batch.set_state(0, state)
        >>> batch.time.round(6).tolist()
        [0.041667, 0.125, 0.125]
        >>> batch.step(20)
        >>> bool((batch.q[0] == batch.q[1]).all())
        False
        """
        return self._states.read(number_within("world", world, self.n, "worlds"))

    def set_state(self, which: ArrayLike | None, state: State) -> None:
        """Set a world, those of a mask or of a list of numbers, or all of them (None) to a state, with its time, warm
        start and controls. Without a warm start the next step starts from zero impulses. `tau`, `forces`, `drive` and
        `terrain` keep their values.
        """
        worlds = chosen_worlds(which, self.n)
        self._states.check(state)
        self._states.write(worlds, state)

    # ---- statistics of the last step ---------------------------------------------------------------------------------

    def _told(self, name: str) -> Array:
        return self._records.told.reshape(self.n, N_TOLD)[:, TOLD.index(name)]

    @property
    def residual(self) -> Array:
        """(n,) natural residual of the last step's rows, over the largest speed that they had to remove."""
        return self._told("residual").copy()

    @property
    def sweeps(self) -> Array:
        """(n,) sweeps over rows in the last step."""
        return self._told("sweeps").astype(np.int64)

    @property
    def work(self) -> Array:
        """(n,) work of all solves of the last step, as `Reduced.budget` counts it."""
        return self._told("work").copy()

    @property
    def solved(self) -> Array:
        """(n,) whether impulses and displacements of the last step met the tolerance: neither capped nor stalled."""
        return np.asarray((self._told("status") == 0.0) & (self._told("shift_status") == 0.0))

    @property
    def newton_steps(self) -> Array:
        """(n,) steps of Newton's method in the last step."""
        return self._told("newton_steps").astype(np.int64)

    @property
    def contacts(self) -> Array:
        """(n,) contacts of the last step, speculative ones included."""
        return self._told("contacts").astype(np.int64)

    @property
    def rows(self) -> Array:
        """(n,) rows of the last step."""
        return self._told("rows").astype(np.int64)

    def report(self, world: int) -> WorldReport:
        """Report of the last step of a world: contacts and limits with their forces, and statistics of the solver.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
        >>> batch = scene.build_batch(5, precision="f64", threads=1)
        >>> batch.step(100)
        >>> [round(contact.normal_force, 2) for contact in batch.report(3).contacts]
        [19.62]
        """
        world = number_within("world", world, self.n, "worlds")
        return WorldReport(self.model, self._records, world, float(self.time[world]), float(self._clock.length[world]))
