"""A session: a world or a recording that can be played, paused, stepped, rewound, dragged and changed.

It is independent of the user interface, which is a thin layer over it.
"""

from __future__ import annotations

import os
import time as clock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.mouse_spring import Drag
from poise.dynamics.argument_checks import body_number, checked_vector
from poise.dynamics.state_queries import bodies
from poise.model.model import Model
from poise.model.scene import Scene
from poise.model.state import State
from poise.sim.recording import Recording
from poise.sim.step_report import NO_CONTACTS, pushing
from poise.sim.world import World
from poise.sim.world_motors import motor_forces, motor_rows
from poise.view.live.history import History, Moment
from poise.view.live.settings import STRENGTHS, Settings, build, lay_strengths
from poise.view.live.signals import Ghost, ghosts_of, recording_of

Floats = NDArray[np.float64]

#: stored moments per second of a running world
_KEPT = 60.0
_MOMENTS = 7200
"""Capacity of a history: two minutes."""
_DRAG = "drag of the viewer"


class Session:
    """A simulated scene, or a replayed recording.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.5))
    >>> session = Session(scene)
    >>> session.step(3)
    >>> session.back()
    >>> round(session.time * 240)
    2
    """

    def __init__(self, source: Scene | Recording, *, settings: Settings | None = None, room: int = _MOMENTS) -> None:
        asked = source.settings.formulation if isinstance(source, Scene) else None
        self.settings = settings or (Settings() if asked is None else Settings(formulation=asked))
        self.world: World | None = None
        self.scene: Scene | None = None
        self.playing, self.message = False, ""
        self.pace = 1.0
        """Ratio of recent simulated time to the requested one."""
        self._speed, self._owed, self._room = 1.0, 0.0, room
        self._since, self._keep = 0, 1
        self._drag: Drag | None = None
        self.open(source)

    def open(self, source: Scene | Recording) -> None:
        """Start over with another scene or recording."""
        self._drag, self._owed, self.playing, self.message = None, 0.0, False, ""
        if isinstance(source, Recording):
            if not len(source):
                raise ValueError("the recording has no frames: there is nothing to look at")
            self.scene, self.world, self._model, self._since = None, None, source.model, 0
            self.history = History(max(2, len(source)), _moments(source))
            self.history.go(0)
            self.ghosts: list[Ghost] = []
            self.camera: dict[str, Any] = dict(source.options.get("camera", {}))
            self.name = "recording"
            return
        if not isinstance(source, Scene):
            raise TypeError(f"source is a {type(source).__name__}; it must be a poise.Scene or a recording")
        self.scene, self.name = source, source.name or "scene"
        self.camera = dict(source.settings.camera)
        self._take(build(source, self.settings))
        self.history = History(self._room, [self._moment()])

    def _take(self, world: World) -> None:
        self.world, self._model = world, world.model
        lay_strengths(world, self.settings)
        self.ghosts = ghosts_of(world)
        self._keep = max(1, round(1.0 / (_KEPT * world.dt)))
        self._since = 0

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    @property
    def now(self) -> Moment:
        """The shown moment."""
        return self.history.now

    @property
    def time(self) -> float:
        """Time of the shown moment; s."""
        return self.now.time

    @property
    def q(self) -> Floats:
        """(nq,) coordinates of the shown moment."""
        return self.now.state.q

    @property
    def live(self) -> bool:
        """Whether there is a world that can be stepped."""
        return self.world is not None

    @property
    def speed(self) -> float:
        """Simulated seconds per second; assignable."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if not (np.isfinite(speed) and speed > 0.0):
            raise ValueError(f"speed is {speed!r}; it must be above 0")
        self._speed = float(speed)

    # ---- going on and back -------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Play in real time through `advance`. At the end of a recording, restart from its beginning."""
        if not self.live and self.history.at_end:
            self.history.go(0)
        self.playing, self.message, self._owed = True, "", 0.0

    def pause(self) -> None:
        """Pause at the last step."""
        if self._since and self.history.at_end and self.world is not None:
            self._since = 0
            self.history.add(self._moment())
        self.playing = False

    def step(self, n: int = 1) -> None:
        """Pause, and advance n steps, through the history if there is any ahead."""
        self.pause()
        for _ in range(n):
            if not self.history.at_end:
                self.history.move(1)
            elif not self._simulate(1, keep_all=True):
                break

    def back(self, n: int = 1) -> None:
        """Pause, and go back n moments: single steps, or stored moments of a run."""
        self.pause()
        self.history.move(-n)

    def go(self, index: int) -> None:
        """Pause, and show a moment of the history by its index."""
        self.pause()
        self.history.go(index)

    def reset(self) -> None:
        """Restart: the initial state, an empty history, the same settings."""
        if self.scene is None:
            self.go(0)
            return
        playing = self.playing
        self.release()
        self._take(build(self.scene, self.settings))
        self.history = History(self._room, [self._moment()])
        self.playing, self.message, self._owed = playing, "", 0.0

    def advance(self, seconds: float, budget: float = 0.05) -> int:
        """Advance by `seconds` of wall time: as many steps as fit at this speed, or within `budget` (s).

        Missed steps are not made up later: the simulation is slower then, and `pace` is the ratio. Returns the number
        of steps, or of moments in a replay.
        """
        if not self.playing or seconds <= 0.0:
            return 0
        if not self.history.at_end or self.world is None:
            return self._replay(seconds)
        dt = self.world.dt
        self._owed += seconds * self._speed
        wanted, done = int(self._owed / dt + 1e-9), 0
        start = clock.perf_counter()
        while done < wanted and self.playing:
            n = min(self._keep - self._since % self._keep, wanted - done)
            if not self._simulate(n):
                break
            done += n
            if clock.perf_counter() - start > budget:
                break
        if wanted:
            self.pace += 0.1 * (done / wanted - self.pace)
        self._owed = self._owed - done * dt if done == wanted else 0.0
        return done

    def _replay(self, seconds: float) -> int:
        was = self.history.cursor
        self._owed += seconds * self._speed
        self.history.go(self.history.find(self.time + self._owed))
        if self.history.cursor != was:
            self._owed = max(0.0, self._owed - (self.time - self.history.all()[was].time))
        if self.history.at_end:
            self._owed = 0.0
            self.playing = self.live
        return self.history.cursor - was

    def _simulate(self, n: int, keep_all: bool = False) -> bool:
        """Step the world from the shown moment; returns whether it succeeded."""
        world = self.world
        if world is None:
            return False
        try:
            world.step(n)
        except (ArithmeticError, ValueError, TypeError, MemoryError) as problem:
            self._since = 1 if world.time > self.time else 0  # show the steps before the failure
            self.pause()
            self.message = str(problem)
            return False
        self._since += n
        if keep_all or self._since >= self._keep:
            self._since = 0
            self.history.add(self._moment())
        return True

    def _moment(self) -> Moment:
        world = self.world
        assert world is not None
        stepper, last = world._stepper, world._last
        contacts = pushing(stepper, last.h) if last.done else NO_CONTACTS
        torque = np.asarray(last.tau + world.drive_forces)
        if last.done and world.model.motors:
            force = motor_forces(stepper, stepper.force_unit(last.h))
            for motor, rows in zip(world.model.motors, motor_rows(world.model), strict=True):
                gear = np.ones(3) if motor.ball else np.asarray(motor.gear)
                if motor.dofs:
                    np.add.at(torque, list(motor.dofs), gear * force[rows])
        return Moment(world.state, contacts, torque, self.pull)

    def branch(self) -> None:
        """Remove the moments after the shown one, and simulate again from here.

        With unchanged settings the result is the same, bit for bit.
        """
        if self.world is not None and not self.history.at_end:
            self.world.state = self.now.state
            lay_strengths(self.world, self.settings)
            self.history.cut()
            self._since = 0

    # ---- dragging ----------------------------------------------------------------------------------------------------

    @property
    def pull(self) -> tuple[Floats, Floats] | None:
        """The dragged point and its target; (3,) m each."""
        if self._drag is None or self._drag.target is None or self.world is None:
            return None
        return self._drag.place(self.world.q), self._drag.target

    def drag(self, body: str | int, point: ArrayLike | None = None, target: ArrayLike | None = None) -> None:
        """Start dragging a body at a point of the world (m; default: its origin) to a target (m)."""
        self._needs_world("dragged")
        number = body_number(self.model, body)
        place = bodies(self.model, self.q)
        origin, R = place.position[number], place.rotation[number]
        at = origin if point is None else checked_vector("point", point)
        self.release()
        self.branch()
        self._hold(number, R.T @ (at - origin), at if target is None else target)

    def _hold(self, body: int, point: Floats, target: ArrayLike) -> None:
        """Pull a point of a body, given in its frame."""
        assert self.world is not None
        level = self.world.formulation.level
        usual = Drag(body, point, level=level)
        usual.bind(self.model)
        self._drag = Drag(body, point, target, strength=self.settings.pull * usual.strength, level=level)
        self.world.add_controller(self._drag, name=_DRAG)

    def move(self, target: ArrayLike) -> None:
        """Move the target of the drag (m), if there is one."""
        if self._drag is not None:
            self._drag.target = checked_vector("target", target)

    def release(self) -> None:
        """End the drag."""
        if self._drag is not None and self.world is not None:
            self.world.remove_controller(_DRAG)
        self._drag = None

    @property
    def dragged(self) -> int | None:
        """Index of the dragged body."""
        return None if self._drag is None else self._drag.number

    def _needs_world(self, what: str) -> World:
        if self.world is None:
            raise ValueError(f"a recording cannot be {what}: it is what it was")
        return self.world

    # ---- changing ----------------------------------------------------------------------------------------------------

    def change(self, **what: Any) -> None:
        """Change settings during the session (see `Settings`); coordinates, velocities and time do not change.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
        >>> session = Session(scene)
        >>> session.step(10)
        >>> session.change(gravity=0.0, level="acceleration")
        >>> session.world.formulation.level, round(session.time * 240)
        ('acceleration', 10)
        """
        world = self._needs_world("changed")
        settings = self.settings.changed(**what)
        if settings == self.settings:
            return
        assert self.scene is not None
        self.branch()
        if set(what) <= set(STRENGTHS):
            self.settings = settings
            lay_strengths(world, settings)
            return
        new = build(self.scene, settings)
        new.state = world.state
        held = self._drag
        self.release()
        self.settings = settings
        self._take(new)
        if held is not None and held.target is not None:
            self._hold(held.number, held.point, held.target)

    # ---- files -------------------------------------------------------------------------------------------------------

    def recording(self) -> Recording:
        """The history, as a recording."""
        return recording_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the history as a recording."""
        self.recording().save(path)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the full state of the shown moment."""
        self.now.state.save(path, self.model)

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Continue from a saved state of the same model."""
        world = self._needs_world("given a state")
        state = State.load(path, self.model)
        self.release()
        world.state = state
        lay_strengths(world, self.settings)
        self.history = History(self._room, [self._moment()])
        self._since, self._owed = 0, 0.0


def _moments(recording: Recording) -> list[Moment]:
    contacts, torques = recording.contacts, recording.torques
    found = []
    for k in range(len(recording)):
        torque = np.zeros(recording.model.nv)
        for name in ("tau", "passive"):
            torque += torques[name][k] if name in torques else 0.0
        if "motors" in torques:
            for motor, rows in zip(recording.model.motors, motor_rows(recording.model), strict=True):
                gear = np.ones(3) if motor.ball else np.asarray(motor.gear)
                if motor.dofs:
                    np.add.at(torque, list(motor.dofs), gear * torques["motors"][k, rows])
        found.append(Moment(recording.state(k), NO_CONTACTS if contacts is None else contacts.of(k), torque))
    return found
