"""Stepping of a world: its callbacks around each step, and what a failed step restores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from numpy.typing import NDArray

from poise.dynamics.interrupts import HeldInterrupt
from poise.dynamics.simulation import Diverged
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.commands.path_table import PathTable
from poise.formulations.step_loop import AGAIN
from poise.formulations.step_status import DONE
from poise.sim.actuation import Joined
from poise.sim.force_laws import LaidLaws
from poise.sim.observer import StepObserver
from poise.sim.profiler import Clock

Array = NDArray[Any]


class Stepped(Joined):
    """A world that can step."""

    _lays_paths = True
    _clock: Clock | None
    _arrays: tuple[Array, ...]
    _observer: StepObserver
    _path_table: PathTable | None

    def _advance(self, n: int) -> None:
        while n > 0:
            if self._marches():
                n -= self._march(n)
            else:
                self._take_step()
                n -= 1

    def _take_step(self) -> None:
        """A step with its callbacks. Ctrl-C takes effect after the step is complete."""
        interrupt, busy, hooks = HeldInterrupt(), self._hooks.busy(), self._hooks
        if self._clock is not None:
            self._clock.begin()
        try:
            with self._watched(), self._acting() if busy else nullcontext():
                if self.formulation.level == "velocity":
                    interrupt.hold()  # an interrupted step at acceleration level, which may be long, is discarded
                self._step_once()
            self._observe()
        except BaseException:
            interrupt.release()
            interrupt.deliver()
            raise
        interrupt.release()
        if busy or hooks.listeners:
            self._afterwards()
        interrupt.deliver()
        if self._clock is not None:
            self._clock.finish()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Around a step that runs in Python: record events of its parts, if events are recorded."""
        watcher, stepper, before = self._hooks.watcher, self._stepper, self._stepper.watch
        if watcher is not None:
            stepper.watch = watcher.see
        try:
            yield
        except BaseException as problem:
            self._drop_step(problem)
            raise
        finally:
            stepper.watch = before

    def _observe(self) -> None:
        """Observe a step that ran in Python."""
        observer = self._observer
        observer.watcher = self._hooks.watcher
        if observer.active:
            observer.look(self.time)
        self._note_events()

    def _marches(self) -> bool:
        """Whether compiled code can run whole steps."""
        listed = (self._hooks.laws, self._row_hooks)
        busy = self._hooks.busy() or any(listed)
        ordinary = self.formulation.level == "velocity" and self.formulation.substeps == 1
        return ordinary and not busy and self._stepper.march.can

    def _march(self, n: int) -> int:
        """Run up to n steps; between them only Ctrl-C can act. Stops early at an event with a listener. Returns the
        number of steps done.
        """
        self._begin_joints()
        hooks, observer, done = self._hooks, self._observer, 0
        self._begin_commands()
        paths = [self._path_table.command] if self._path_table is not None else []
        self._stepper.march.commands = [*paths, *(command.bound for command in hooks.commands)]
        observer.watcher = hooks.watcher
        if hooks.watcher is not None:
            hooks.watcher.block.stops[0] = int(bool(hooks.listeners))
        self._stepper.march.observer = observer if observer.active else None
        while done < n:
            with HeldInterrupt():
                done += self._march_on(min(n - done, self._pace.most))
            if hooks.listeners and hooks.events:
                self._tell(hooks.events)
                break
        return done

    def _march_on(self, n: int) -> int:
        """Run up to n steps in compiled code; Python completes the last one if needed. Returns the number done."""
        march, last, pace, applied = self._stepper.march, self._last, self._pace, self._applied
        applies = applied.count.item() > 0
        if applies:
            n = 1
        if self._path_table is not None:
            self._check_paths()
            n = self._path_table.sample(self.time, self._dt, n)
        timed = n > 1 or pace.most == 1
        if timed:
            pace.begin()
        if applies:
            applied.begin()
        try:
            done: int = march.run(self._dt, n, self.time)
        finally:
            if applies:
                applied.end()
        if applies and done:
            applied.count[0] = 0
        if done:
            last.h, last.done = self._dt, True
            if self._clock is not None:
                self._clock.finish_compiled()
            self.time = march.time
            if self._path_table is not None:
                self._note_paths()
        if march.observer is not None:
            self._observer.end(self.time, self._dt)
        if self._hooks.watcher is not None or self._hooks.events:
            self._note_events()
        if done < n and march.end != DONE:  # a loop joint broke, or a listener must be called
            with self._undone_commands():
                self._step_timed(march.end)
            done += 1
        if timed:
            pace.end(done)
        return done

    def _step_timed(self, end: int) -> None:
        """Complete a step that compiled code left to Python."""
        if self._clock is not None:
            self._clock.begin()
        if self._hooks.watcher is not None:
            self._hooks.watcher.drop()
        with self._watched():
            self._step_once(end)
        if self._stepper.march.observer is not None:
            self._observe()
        if self._clock is not None:
            self._clock.finish()

    def _step_once(self, end: int = AGAIN) -> None:
        """A step; or the rest of one, after compiled code returned `end`."""
        parts, last, stepper = self.formulation.substeps, self._last, self._stepper
        q, v, tau, forces = self._arrays
        if self._paths:
            self._check_paths()
        h = self._dt / parts
        start = (q.copy(), v.copy()) if parts > 1 else (last.q, last.v)
        last.begin(q, v, h)
        time = self.time + self._dt
        slots = self._read_slots() if self._may_change_more() else None
        applied = self._applied
        applies = applied.count.item() > 0
        if applies:
            applied.begin()
        laws = self._begin_laws() if self._hooks.laws else None
        try:
            self._begin_joints()
            for k in range(parts):
                if k:
                    last.begin(q, v, h)
                if self._paths:
                    self._lay_part(self.time + k * h, h)
                if laws is not None and self.formulation.level == "velocity":
                    laws(self.time + k * h)
                if (stepper.step(h, self.time + k * h) if end == AGAIN else end) != DONE:
                    raise Diverged(self.time, *self._culprit(), self._advice())
            last.end(v if stepper.change is None else last.v + stepper.change, tau, forces)
            self.time, applied.count[0] = time, 0  # an interrupt acts before both or after both
            if self._paths:
                self._note_paths()
        except BaseException:
            q[...], v[...] = start
            if slots is not None:
                self._write_slots(slots)
            raise
        finally:
            if laws is not None:
                self._end_laws(laws)
            if applies:
                applied.end()

    def _advice(self) -> str:
        """Advice for a diverged step."""
        formulation = self.formulation
        if formulation.level == "velocity":
            return "try a smaller dt"
        integrator = formulation.integrator or "rk4"
        other = "" if integrator == "euler" else 'integrator="euler", which meets springs and drives implicitly, or '
        return f'integrator="{integrator}" is explicit: try a smaller dt, {other}level="velocity"'

    def _may_change_more(self) -> bool:
        """Whether a failed step may have changed more than q and v, so that copies are needed."""
        within = self.formulation.substeps > 1 or self.formulation.level == "acceleration"
        hooks = bool(self._row_hooks or self._step_hooks)
        extras = self._stepper.extras
        return within or hooks or bool(extras.joints or self.model.motors) or len(self._stepper.own) > 0

    def _lay_part(self, time: float, h: float) -> None:
        """Prescribe the motion of kinematic bodies for a part of a step.

        A dynamic body that moves by h v⁺ in a part has, to second order, the velocity of its middle. Kinematic bodies
        get that velocity too, at the end of the free motion, so that contacts stay closed while a lift accelerates.
        """
        y, nq, nv = self._space.stages, self.model.nq, self.model.nv
        held = self.formulation.level == "velocity"
        for j, d, path in self._paths:
            for k in range(3):
                point = path(time + 0.5 * k * h)
                y.path_q[k * nq + j : k * nq + j + 7] = (*point.position, *point.quat_wxyz)
                y.path_v[k * nv + d : k * nv + d + 6] = (*point.velocity, *point.angular_velocity)
                y.path_a[k * nv + d : k * nv + d + 6] = (*point.acceleration, *point.angular_acceleration)
            if held:
                y.path_v[d : d + 6] = y.path_v[nv + d : nv + d + 6] - h * y.path_a[d : d + 6]

    def _begin_laws(self) -> LaidLaws:
        """Start the force laws of this step; returns the function that evaluates and writes them."""
        laid = LaidLaws(self._hooks.laws, self.model, self._arrays, self.forces.copy())
        if isinstance(self._stepper, Accelerated):
            self._stepper.looker.lay_forces = laid
        return laid

    def _end_laws(self, laws: LaidLaws) -> None:
        """Restore the inputs without force laws."""
        if isinstance(self._stepper, Accelerated):
            self._stepper.looker.lay_forces = None
        laws.take_away()
