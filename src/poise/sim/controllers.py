"""Callbacks of a world: controllers, functions before and after steps, event listeners.

Before a step, the world calls the functions of `before_step`, then the controllers, each in the order in which they
were added. After it, the world calls the event listeners, then the functions of `after_step`. If a callback raises, the
exception reaches the caller: before the step, the world's state is restored; after it, the step remains done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.argument_checks import checked_row
from poise.dynamics.functions import Drive
from poise.dynamics.simulation import Diverged
from poise.formulations.commands.applied_forces import AppliedForces
from poise.formulations.formulation_registry import Formulation
from poise.kernel.bound import Bound
from poise.kernel.memory import Block
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state import State
from poise.model.state_fields import SlotCheck, StateFields
from poise.sim.controlled_drives import Driven
from poise.sim.events import Event, Watcher, check_events, checked_kind, is_watched
from poise.sim.force_laws import ForceLaw
from poise.sim.step_result import LastStep
from poise.sim.world_motors import Controls, MotorGoals

Array = NDArray[Any]
_SLOT = "control/"
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Targets:
    """What a controller sets for the next step. A field that is None stays unchanged.

    >>> Targets(tau=[0.0, 1.5]).drive is None
    True
    """

    tau: ArrayLike | None = None
    """(nv,) generalized forces, added to the other inputs for this step; N or N·m."""
    forces: ArrayLike | None = None
    """(n_bodies, 6) wrenches (τ, f) in world axes at the bodies' origins, added in the same way; N·m, N."""
    drive: Drive | None = None
    """Replaces the world's drive from now on. Drives of several controllers are merged: each applies to the coordinates
    for which it has gains.
    """
    motors: Sequence[MotorGoals] = ()
    """Settings of motors from now on."""
    rows: Callable[[Any, Any], None] | None = None
    """A constraint callback like those of `world.rows_hooks`, for this step."""


@dataclass(eq=False)
class StateToAct(State):
    """Controller state: the state before a step, as controllers receive it.

    >>> StateToAct(np.zeros(1), np.zeros(1), dt=0.01).dt
    0.01
    """

    dt: float = 0.0
    """Length of the coming step; s."""


class Controller(Protocol):
    """Interface of the argument of `add_controller`. `bind` is optional; a function of the state also works.

    A controller that can be compiled has `compile(memory)`, which returns a `StepCommand` or None. At velocity level
    the world calls that command instead of `update`, and steps stay in compiled code.

    `state` is a copy: q, v, time, the length dt of the coming step, and `slots`, which hold the arrays that the
    controller stored there in the previous step. Memory that must be restored with `world.state` belongs in `slots`.
    """

    def bind(self, model: Model, /) -> None:
        """Called once, when the controller is added."""

    def update(self, state: StateToAct, /) -> Targets | None:
        """Called before every step; returns what the controller sets."""


class StepMemory(NamedTuple):
    """Memory of a world that compiled controllers write; see `Controller`."""

    model: Model
    state: Block
    inputs: Block
    motors: Block


class StepCommand(Protocol):
    """A compiled controller: compiled code calls it before each step."""

    bound: Bound
    """Called with the time and the length of each step, before it."""

    @property
    def drive(self) -> Drive | None:
        """The drive whose goals the command sets."""

    @property
    def motors(self) -> MotorGoals | None:
        """Settings of motors that are constant over steps."""

    def undo(self) -> None:
        """Restore what the command overwrote for a step that failed."""


@dataclass
class _Named:
    """A controller and its slots."""

    controller: Any
    slots: dict[str, Array] = field(default_factory=dict)
    command: StepCommand | None = None
    """What compiled code calls instead of `update`."""

    def update(self, q: Array, v: Array, time: float, dt: float) -> tuple[Targets | None, dict[str, Array]]:
        """Call the controller: its targets, and its slots afterwards."""
        state = StateToAct(q.copy(), v.copy(), time, {name: array.copy() for name, array in self.slots.items()}, dt)
        wanted = getattr(self.controller, "update", self.controller)(state)
        if wanted is not None and not isinstance(wanted, Targets):
            raise TypeError(f"a controller gave a {type(wanted).__name__}; it must give poise.sim.Targets(...) or None")
        return wanted, {name: np.array(array) for name, array in state.slots.items()}


class Hooks:
    """The callbacks of a world, and the log of its events."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.before: list[Callable[[Any], Any]] = []
        self.after: list[Callable[[Any], Any]] = []
        self.controllers: dict[str, _Named] = {}
        self.laws: dict[str, ForceLaw] = {}
        self.listeners: list[tuple[str, Callable[[Any, Event], Any]]] = []
        self.watcher: Watcher | None = None
        """Records events of steps, while listeners or readers need them."""
        self.asked = False
        """Whether `World.events` was read: from then on, every step records its events."""
        self.kept: list[Event] | None = None
        """Events of a run that records them."""
        self.idle: Watcher | None = None
        """The last watcher after it was switched off."""
        self.rested_at: float | None = None
        """The time up to which the idle watcher is complete, unless a state was assigned since; s."""
        self.events: list[Event] = []

    def busy(self) -> bool:
        """Whether Python has to call a function before or after each step."""
        return bool(self.before or self.after) or any(one.command is None for one in self.controllers.values())

    @property
    def commands(self) -> list[StepCommand]:
        """The commands of compiled controllers, which compiled code calls before each step."""
        return [one.command for one in self.controllers.values() if one.command is not None]

    def copy(self) -> Hooks:
        """A shallow copy: the lists are copied, their elements are shared."""
        twin = Hooks(self.model)
        twin.before, twin.after, twin.listeners = [*self.before], [*self.after], [*self.listeners]
        twin.controllers = {
            name: _Named(named.controller, dict(named.slots)) for name, named in self.controllers.items()
        }
        twin.events, twin.laws = [*self.events], dict(self.laws)
        twin.asked = self.asked
        if self.watcher is not None:
            twin.watcher = Watcher(self.model)
            twin.watcher.remember(self.watcher.memory())
        return twin

    def new_watcher(self) -> Watcher:
        """A watcher in its initial state, without contacts; the idle one is reused."""
        watcher, self.idle = self.idle or Watcher(self.model), None
        watcher.start()
        return watcher

    def memory(self) -> dict[str, Array]:
        """What the next steps depend on."""
        kept = {} if self.watcher is None else self.watcher.memory()
        for name, named in self.controllers.items():
            kept |= {f"{_SLOT}{name}/{slot}": array.copy() for slot, array in named.slots.items()}
        return kept

    def start(self) -> None:
        """Reset to the initial state, without contacts."""
        self.rested_at = None
        if self.watcher is not None:
            self.watcher.start()

    def check_memory(self, check: SlotCheck, model: Model) -> None:
        """Validate the events of a state. Slots of controllers are not checked."""
        check_events(check, model)

    def remember(self, slots: Mapping[str, Array]) -> None:
        """Restore the events and the slots of controllers from a state."""
        self.rested_at = None
        if self.watcher is None and is_watched(slots):
            self.watcher, self.asked = self.new_watcher(), True
        if self.watcher is not None:
            self.watcher.remember(slots)
        self.events = []
        for name, named in self.controllers.items():
            start = f"{_SLOT}{name}/"
            named.slots = {key[len(start) :]: a.copy() for key, a in slots.items() if key.startswith(start)}


class Acting(Driven):
    """The part of a world that holds callbacks: controllers, force laws, step functions and event listeners."""

    _hooks: Hooks
    _stepper: Any
    formulation: Formulation
    _controls: Controls
    _last: LastStep
    _applied: AppliedForces
    _state_fields: list[StateFields]
    """All of the state except coordinates, velocities and time."""
    _step_hooks: tuple[Callable[[Any, Any], None], ...] = ()
    """Constraint callbacks that controllers returned for this step."""
    _uncommanded: tuple[float, dict[str, Array], dict[str, Array] | None, dict[str, Array]] | None = None
    """The time at which compiled stepping last began, with the drives and motor gains from before it."""

    # ---- adding and removing -----------------------------------------------------------------------------------------

    def add_controller(self, controller: Controller | Callable[[StateToAct], Any], name: str | None = None) -> str:
        """Call a controller before every step from now on; returns the name under which its slots are stored.

        A controller has `update(state)`, which returns `Targets` or None, and optionally `bind(model)`. A function of
        the state is also a controller.

        >>> import poise
        >>> scene = poise.Scene(gravity=(0, 0, 0))
        >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(1, 0, 0))
        >>> world = scene.build(dt=0.01)
        >>> def spring(state):
        ...     return poise.sim.Targets(tau=[-8.0 * state.q[0], 0, 0, 0, 0, 0])
        >>> world.add_controller(spring)
        'spring'
        >>> world.step(157)
        >>> float(abs(world.q[0] + 1.0).round(2))
        0.0
        """
        if not callable(getattr(controller, "update", controller)):
            kind = type(controller).__name__
            raise TypeError(f"controller is a {kind}; it must have update(state), or be a function of the state")
        known = self._hooks.controllers
        given = _new_name("controller", controller, name, known)
        if hasattr(controller, "bind"):
            controller.bind(self.model)
        known[given] = named = _Named(controller)
        self._compile(named)
        return given

    def _compile(self, named: _Named) -> None:
        """Compile a controller, if it has `compile` and the formulation works at velocity level."""
        named.command = None
        if self.formulation.level == "velocity" and hasattr(named.controller, "compile"):
            space = self._space
            named.command = named.controller.compile(
                StepMemory(self.model, space.s, space.x, self._stepper.extras.motors)
            )

    def _begin_commands(self) -> None:
        """Before steps in compiled code: set the drives and motor gains of compiled controllers."""
        self._uncommanded = None
        if commands := self._hooks.commands:
            motors = self._stepper.extras.motors
            kept = {name: motors.arrays[name].copy() for name in ("stiffness", "damping", "low", "high")}
            self._uncommanded = self.time, self._drive_now(), self._own_drive, kept
            self._take_drives([drive for command in commands if (drive := command.drive) is not None])
            self._lay_gains(commands)

    def _lay_gains(self, commands: Sequence[StepCommand]) -> None:
        for command in commands:
            if (goals := command.motors) is not None:
                goals.lay(self._stepper)

    @contextmanager
    def _undone_commands(self) -> Iterator[None]:
        """Around a step that compiled code left to Python: if it fails, restore what its commands overwrote."""
        try:
            yield
        except BaseException:
            for command in self._hooks.commands:
                command.undo()
            if self._uncommanded is not None and self._uncommanded[0] == self.time:  # no step was done since
                _, drive, self._own_drive, kept = self._uncommanded
                self._lay_drive(drive)
                for name, array in kept.items():
                    self._stepper.extras.motors.arrays[name][...] = array
            raise

    def remove_controller(self, name: str) -> None:
        """Remove a controller and its slots.

        >>> import poise
        >>> world = poise.Scene().build()
        >>> name = world.add_controller(lambda state: None, name="idle")
        >>> world.remove_controller(name)
        """
        if name not in self._hooks.controllers:
            near = did_you_mean(name, self._hooks.controllers)
            raise ValueError(f"there is no controller {name!r}{near}")
        del self._hooks.controllers[name]

    def add_force(self, law: ForceLaw, name: str | None = None) -> str:
        """Apply a force law from now on; returns the name by which `remove_force` removes it.

        A law is a function of a `poise.sim.Stage`: of its time, coordinates and velocities only. It adds to `stage.tau`
        and `stage.forces`, or calls `stage.push`. At acceleration level, every stage of the integrator evaluates the
        law, so that the motion keeps the integrator's order: 2 for midpoint, 4 for RK4. At velocity level, the law is
        evaluated at the beginning of every step or substep, and its force is constant over that.

        >>> import poise
        >>> scene = poise.Scene(gravity=(0, 0, 0))
        >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
        >>> world = scene.build(poise.Reduced(level="acceleration"), dt=0.05)
        >>> def drag(stage):
        ...     stage.push("ball", -3.0 * stage.point("ball").velocity)
        >>> world.add_force(drag)
        'drag'
        >>> world.v[0] = 1.0
        >>> world.step(20)
        >>> abs(float(world.v[0] - np.exp(-1.5))) < 1e-6
        True
        """
        given = _new_name("force", _checked_function(law), name, self._hooks.laws)
        self._hooks.laws[given] = law
        return given

    def remove_force(self, name: str) -> None:
        """Remove a force law.

        >>> import poise
        >>> world = poise.Scene().build()
        >>> name = world.add_force(lambda stage: None, name="none")
        >>> world.remove_force(name)
        """
        if name not in self._hooks.laws:
            raise ValueError(f"there is no force {name!r}{did_you_mean(name, self._hooks.laws)}")
        del self._hooks.laws[name]

    @property
    def force_laws(self) -> dict[str, ForceLaw]:
        """Force laws by name."""
        return dict(self._hooks.laws)

    @property
    def controllers(self) -> dict[str, Any]:
        """Controllers by name, in the order in which they are called.

        >>> import poise
        >>> world = poise.Scene().build()
        >>> _ = world.add_controller(lambda state: None, name="idle")
        >>> list(world.controllers)
        ['idle']
        """
        return {name: named.controller for name, named in self._hooks.controllers.items()}

    def before_step(self, function: _Function) -> _Function:
        """Call `function(world)` before every step from now on; it may change inputs and state.

        >>> import poise
        >>> world = poise.Scene().build(dt=0.5)
        >>> @world.before_step
        ... def tell(world):
        ...     print(world.time)
        >>> world.step(2)
        0.0
        0.5
        >>> world.remove(tell)
        """
        self._hooks.before.append(_checked_function(function))
        return function

    def after_step(self, function: _Function) -> _Function:
        """Call `function(world)` after every step from now on.

        >>> import poise
        >>> world, times = poise.Scene().build(dt=0.5), []
        >>> _ = world.after_step(lambda world: times.append(world.time))
        >>> world.step(2)
        >>> times
        [0.5, 1.0]
        """
        self._hooks.after.append(_checked_function(function))
        return function

    def on(self, kind: str, function: _Function) -> _Function:
        """Call `function(world, event)` after each step with an event of a kind (see `poise.sim.events.KINDS`).

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
        >>> world = scene.build()
        >>> _ = world.on("contact_begin", lambda world, event: print(*event.names, round(event.time, 2)))
        >>> world.step(240)
        ground ball 0.43
        """
        self._watch()
        self._hooks.listeners.append((checked_kind(kind), _checked_function(function)))
        return function

    def remove(self, function: Callable[..., Any]) -> None:
        """Stop calling a function that was passed to `before_step`, `after_step` or `on`.

        >>> import poise
        >>> world = poise.Scene().build()
        >>> tell = world.after_step(lambda world: print(world.time))
        >>> world.remove(tell)
        >>> world.step()
        """
        hooks = self._hooks
        count = len(hooks.before) + len(hooks.after) + len(hooks.listeners)
        hooks.before = [known for known in hooks.before if known != function]
        hooks.after = [known for known in hooks.after if known != function]
        hooks.listeners = [(kind, known) for kind, known in hooks.listeners if known != function]
        if count == len(hooks.before) + len(hooks.after) + len(hooks.listeners):
            raise ValueError(f"{function!r} is called neither before nor after steps, nor for events")
        self._rest()

    @property
    def events(self) -> list[Event]:
        """Events of the last step. They are recorded from the first use of this property or of `on`.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.1))
        >>> world = scene.build()
        >>> world.events
        []
        >>> world.step()
        >>> [event.kind for event in world.events]
        ['contact_begin']
        """
        self._watch()
        self._hooks.asked = True
        return [*self._hooks.events]

    def _watch(self) -> None:
        """Record events of steps from now on."""
        hooks = self._hooks
        if hooks.watcher is not None:
            return
        if hooks.idle is not None and hooks.rested_at == self.time:
            hooks.watcher, hooks.idle = hooks.idle, None
            return
        hooks.watcher = hooks.new_watcher()
        if self._last.done:
            hooks.watcher.take_in(self._stepper)
        elif self.time != 0.0:  # contacts may have begun before recording
            hooks.watcher.remember({})

    def _rest(self) -> None:
        """Stop recording events, unless a listener or a reader still needs them."""
        hooks = self._hooks
        if hooks.watcher is not None and not hooks.listeners and not hooks.asked:
            hooks.idle, hooks.watcher, hooks.rested_at = hooks.watcher, None, self.time

    # ---- around a step -----------------------------------------------------------------------------------------------

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """Around a step: call the callbacks before it. If the step fails, restore the world."""
        hooks, x = self._hooks, self._space.x
        acts = {name: array.copy() for name, array in x.arrays.items()}
        kept = acts, x.counts(), self.q.copy(), self.v.copy(), self.time
        own_drive, slots = self._own_drive, self._read_slots() if hooks.before or self._drives_motors() else None
        try:
            for function in hooks.before:
                function(self)
            tau, force, kept_slots = self._asked(x.arrays["tau"].copy(), x.arrays["force"].copy())
            yield
        except BaseException:
            self._put_back(*kept)
            self._own_drive = own_drive
            if slots is not None:  # the functions may have changed any slot, the controllers the motors
                self._write_slots(slots)
            raise
        finally:
            self._step_hooks = ()
        x.arrays["tau"][...], x.arrays["force"][...] = tau, force
        for named, held in kept_slots:
            named.slots = held

    def _asked(self, tau: Array, force: Array) -> tuple[Array, Array, list[tuple[_Named, dict[str, Array]]]]:
        """Call all controllers and write their targets. Returns the inputs without them, and their slots."""
        slots, hooks, drives = [], [], []
        for named in self._hooks.controllers.values():
            if named.command is not None:
                continue
            wanted, held = named.update(self.q, self.v, self.time, self.dt)
            slots.append((named, held))
            if wanted is None:
                continue
            if wanted.tau is not None:
                self.tau[...] += checked_row(self.model, "tau", wanted.tau)
            if wanted.forces is not None:
                self.forces[...] += checked_row(self.model, "force", wanted.forces).reshape(-1, 6)
            if wanted.drive is not None:
                drives.append(wanted.drive)
            for goals in wanted.motors:
                goals.lay(self._stepper)
            if wanted.rows is not None:
                hooks.append(wanted.rows)
        commands = self._hooks.commands
        drives += [drive for command in commands if (drive := command.drive) is not None]
        self._take_drives(drives)
        self._lay_gains(commands)
        for command in commands:
            command.bound(self.time, self.dt)
        self._step_hooks = tuple(hooks)
        return tau, force, slots

    def _drives_motors(self) -> bool:
        """Whether a controller may set motors."""
        return bool(self.model.motors and self._hooks.controllers)

    def _put_back(self, arrays: dict[str, Array], counts: dict[str, int], q: Array, v: Array, time: float) -> None:
        x = self._space.x
        for name, array in arrays.items():
            x.arrays[name][...] = array
        for name, count in counts.items():
            if name != "n_forces" or count:  # callers may hold the array of forces, and write to it later
                x.set_count(name, count)
        self.q[...], self.v[...], self.time = q, v, time
        self._left = None

    def _read_slots(self) -> dict[str, Array]:
        """Copies of all state except coordinates, velocities and time."""
        slots: dict[str, Array] = {}
        for fields in self._state_fields:
            slots.update(fields.read())
        return slots

    def _write_slots(self, slots: Mapping[str, Array]) -> None:
        for fields in self._state_fields:
            fields.write(slots)

    def _note_events(self) -> None:
        """Read the events of completed steps; those of the last one are `events`."""
        hooks = self._hooks
        found = [] if hooks.watcher is None else hooks.watcher.read(self.model)
        hooks.events = [event for event in found if event.time == self.time]
        if hooks.kept is not None:
            hooks.kept += found

    def _drop_step(self, problem: BaseException) -> None:
        """Discard the events of a failed step, and call the listeners for `diverged`."""
        hooks = self._hooks
        if hooks.watcher is None:
            return
        hooks.watcher.drop()
        hooks.events = []
        if isinstance(problem, Diverged):
            self._tell([Event("diverged", self.time, (problem.body,), what=problem.what)])

    def _afterwards(self) -> None:
        """Call the listeners and the functions of `after_step` after a completed step."""
        self._tell(self._hooks.events)
        for function in self._hooks.after:
            function(self)

    def _tell(self, events: list[Event]) -> None:
        self._hooks.events = events
        for event in events:
            for kind, function in self._hooks.listeners:
                if kind == event.kind:
                    function(self, event)


def _new_name(what: str, thing: Any, name: str | None, known: Mapping[str, Any]) -> str:
    """A unique name: the given one, or one derived from the thing's own name."""
    given = name if name is not None else getattr(thing, "__name__", type(thing).__name__)
    if not isinstance(given, str) or not given or "/" in given:
        raise ValueError(f"name is {given!r}; it must be a word without a slash")
    if name is not None and name in known:
        raise ValueError(f'there is a {what} "{name}" already')
    number = 2
    while given in known:
        given, number = f"{given.rpartition(' ')[0] or given} {number}", number + 1
    return given


def _checked_function(function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"a function is wanted, found a {type(function).__name__}")
    return function
