"""Observation of a world after each step, in compiled code and in Python: events and recorded frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.row_store import CONTACT
from poise.dynamics.dynamics_layout import work_block
from poise.dynamics.energy_momentum import TOTALS
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.ccd_stepping.ccd_substeps import EVEN
from poise.formulations.driver import Stepper
from poise.formulations.observers.contact_events import EVENTS, N_LISTS
from poise.formulations.observers.observe_step import NO_ROOM_LEFT, OBSERVE
from poise.formulations.observers.recorded_frames import FRAMES, N_ENERGIES, N_SOLVER
from poise.formulations.step import GO_ON
from poise.kernel.bound import Bound
from poise.kernel.memory import F64, Block, Shared
from poise.sim.events import Watcher
from poise.sim.step_result import LastStep

Array = NDArray[Any]
PARTS = ("contacts", "energy", "solver", "torques")
"""Optional contents of frames besides time, coordinates and velocities."""
_CONTACTS = 16
"""Initial capacity: contacts of a frame."""
_BY_CONTACT = {"shape": 2, "point": 1, "normal": 1, "depth": 1, "force": 1}


class FrameBuffer:
    """Memory for frames that compiled code fills. It grows when a frame has more contacts than fit."""

    def __init__(self, stepper: Stepper | Accelerated, last: LastStep, room: int, parts: Iterable[str]) -> None:
        self._stepper, self._last, self.parts = stepper, last, tuple(parts)
        self.n_motors = len(stepper.extras.motors.force)
        self._room, self._full = room, list[dict[str, Array]]()
        self._make_room(_CONTACTS * room)

    def _make_room(self, contacts: int) -> None:
        stepper, last, room = self._stepper, self._last, self._room
        inner = stepper.inner if isinstance(stepper, Accelerated) else stepper
        nq, nv = stepper.model.nq, stepper.model.nv
        has = {f"has_{part}": int(part in self.parts) for part in PARTS}
        sizes = {"q": nq, "v": nv, "tau": nv, "passive": nv, "motor": self.n_motors, "solver": N_SOLVER}
        sizes |= {"energy": N_ENERGIES} | dict.fromkeys(("time", "momentum", "com", "mass"), 1)
        shared = {"v_begin": last.v, "v_end": last.v_end, "tau_given": last.tau, "parts": inner.march.parts}
        self.block = FRAMES.block(
            F64,
            room=room,
            contact_room=contacts,
            n_motors=self.n_motors,
            **has,
            **dict.fromkeys(("every", "due", "count", "answer", "done", "unit", "told"), 1),
            told_solver=N_SOLVER,
            plain=nv,
            **{name: Shared(array) for name, array in shared.items()},
            **{name: size * room for name, size in sizes.items()},
            contact_start=room + 1,
            **{name: size * contacts for name, size in _BY_CONTACT.items()},
        )
        self._contact_room = contacts

    def more_room(self, contacts: int) -> None:
        """Allocate room for so many contacts of one frame. All frames must have been read."""
        if contacts > self._contact_room:
            kept = {name: self.block.arrays[name].copy() for name in ("every", "due", "done", "unit", "told")}
            told = self.block.told_solver.copy()
            self._make_room(2 * contacts)
            for name, array in kept.items():
                self.block.arrays[name][...] = array
            self.block.told_solver[...] = told

    def begin(self, every: int) -> None:
        """Record a frame every `every` steps from now on; 0 records none."""
        self.block.every[0] = self.block.due[0] = every

    def flush(self) -> None:
        """Empty the block; its frames are copied to the list of unread frames."""
        if self.block.count[0]:
            self._full.append(self._copies())

    def clear(self) -> None:
        """Drop all frames."""
        self.block.count[0], self._full = 0, []

    def read(self) -> dict[str, Array]:
        """Copies of the frames since the last call, by name. Clears the buffer.

        (n,) "time", (n, nq) "q", (n, nv) "v"; "solver", "energy", "tau", "passive", "motors". "contacts" is the number
        of contacts in each frame; their "shapes", "point", "normal", "depth" and "force" are concatenated.
        """
        parts, self._full = [*self._full, self._copies()], []
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts[1:] else parts[0]

    def _copies(self) -> dict[str, Array]:
        b, n = self.block, int(self.block.count[0])
        b.count[0] = 0
        kept = {name: self._first(name, n) for name in ("time", "q", "v")}
        if "energy" in self.parts:
            kept |= {name: self._first(name, n) for name in ("energy", "momentum", "com", "mass")}
        if "solver" in self.parts:
            kept["solver"] = self._first("solver", n)
        if "torques" in self.parts:
            kept |= {"tau": self._first("tau", n), "passive": self._first("passive", n)}
            kept["motors"] = self._first("motor", n)
        if "contacts" in self.parts:
            total = int(b.contact_start[n])
            kept["contacts"] = np.diff(b.contact_start[: n + 1])
            kept["shapes"] = b.shape[: 2 * total].reshape(-1, 2).copy()
            kept |= {name: b.arrays[name][:total].copy() for name in ("point", "normal", "depth", "force")}
        return kept

    def _first(self, name: str, n: int) -> Array:
        array = self.block.arrays[name]
        shape = (self._room, -1) if array.ndim == 1 and name not in ("time", "mass") else array.shape
        return np.array(array.reshape(shape)[:n] if self._room and array.size else np.zeros((n, 0)))


class StepObserver:
    """Observes the steps of a world: a watcher records events, a buffer records frames."""

    def __init__(self, stepper: Stepper | Accelerated, last: LastStep) -> None:
        self._stepper, self._last = stepper, last
        self._inner: Stepper = stepper.inner if isinstance(stepper, Accelerated) else stepper
        self._totals = TOTALS.block(F64, **dict.fromkeys(TOTALS.fields, 1))
        self._links = work_block(stepper.model, F64)
        self._bound: dict[tuple[int, ...], tuple[Bound, tuple[Block, ...]]] = {}
        self._no_events = _unwatched()
        self._no_frames: FrameBuffer | None = None
        self._buffers: dict[tuple[int, tuple[str, ...]], FrameBuffer] = {}
        self.watcher: Watcher | None = None
        self.frames: FrameBuffer | None = None

    @property
    def active(self) -> bool:
        """Whether events or frames are recorded."""
        return self.watcher is not None or self.frames is not None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The memory that the observer writes; empty if it is inactive."""
        return (self._events, self._buffer.block) if self.active else ()

    @property
    def _events(self) -> Block:
        return self._no_events if self.watcher is None else self.watcher.block

    @property
    def _buffer(self) -> FrameBuffer:
        if self.frames is not None:
            return self.frames
        if self._no_frames is None:
            self._no_frames = FrameBuffer(self._stepper, self._last, 1, ())
        return self._no_frames

    def buffer(self, room: int, parts: Iterable[str]) -> FrameBuffer:
        """An empty buffer for frames with some parts; reuses that of the last run unless it is in use."""
        key = room, tuple(part for part in PARTS if part in tuple(parts))
        buffer = self._buffers.get(key)
        if buffer is None or buffer is self.frames:
            buffer = self._buffers[key] = FrameBuffer(self._stepper, self._last, room, key[1])
        buffer.clear()
        return buffer

    # ---- what the compiled loop calls --------------------------------------------------------------------------------

    def watching(self, store: Block) -> Bound | None:
        """The watcher's kernel for a part of a step whose constraints are in a store; None without a watcher."""
        return None if self.watcher is None else self.watcher.bound(self._inner.collider.c, store)

    def observing(self, store: Block) -> Bound:
        """Kernel that observes a step whose constraints are in a store; takes its end time and length, and returns a
        code of `observe_step`.
        """
        return self._bind(store, self._buffer, self._events)

    def _bind(self, store: Block, frames: FrameBuffer, events: Block) -> Bound:
        stepper, space = self._stepper, self._stepper.space
        step = (space.m, space.s, space.w, self._inner.stats, stepper.collider.c, store, stepper.extras.motors)
        blocks = (*step, self._links, self._totals, frames.block, events)
        key = tuple(map(id, blocks))
        if key not in self._bound:
            if len(self._bound) > 16:  # memory has grown many times
                self._bound.clear()
            self._bound[key] = Bound(OBSERVE, F64, *(block.handle for block in blocks)), blocks
        return self._bound[key][0]

    def begin(self) -> None:
        """Prepare for steps of the compiled loop."""
        if self.watcher is not None:
            for store in (self._inner.rows.now, self._inner.rows.before, self._inner.spare):
                self.watcher.has_room_for(store, EVEN)
        b = self._buffer.block
        b.answer[0] = GO_ON
        b.done[0], b.unit[0], b.told[0] = 1, 0.0, 0

    def end(self, time: float, dt: float) -> None:
        """After the compiled loop: repeat the last observation with more memory, if there was no room for it."""
        if self._buffer.block.answer[0] == NO_ROOM_LEFT:
            self._look(self._buffer, self._events, time, dt)

    # ---- what Python calls -------------------------------------------------------------------------------------------

    def look(self, time: float) -> None:
        """Observe a step that ran in Python and ends at `time`."""
        frames = self._buffer
        self._describe(frames)
        self._look(frames, self._events, time, self._last.h)

    def take_frame(self, time: float) -> None:
        """Record a frame of the current world, without changing when the next one is due."""
        assert self.frames is not None
        due = int(self.frames.block.due[0])
        self._take(self.frames, time)
        self.frames.block.due[0] = due

    def report(self, time: float) -> dict[str, Array]:
        """One frame of everything."""
        frames = self.buffer(1, PARTS)
        self._take(frames, time)
        return frames.read()

    def _take(self, frames: FrameBuffer, time: float) -> None:
        every = int(frames.block.every[0])
        frames.block.every[0] = frames.block.due[0] = 1
        self._describe(frames)
        self._look(frames, self._no_events, time, self._last.h)
        frames.block.every[0] = every

    def _describe(self, frames: FrameBuffer) -> None:
        """Write how the last step ran, for values that compiled code does not have."""
        stepper, b = self._stepper, frames.block
        b.done[0], b.unit[0] = int(self._last.done), stepper.force_unit(self._last.h)
        b.told[0] = int(not (isinstance(stepper, Stepper) and stepper.by_kernels))
        if b.told[0]:
            told = stepper.told
            b.told_solver[...] = (stepper.n_rows, told.sweeps, told.newton_steps, told.residual, told.parts)
        else:
            b.parts[0] = stepper.parts

    def _look(self, frames: FrameBuffer, events: Block, time: float, dt: float) -> None:
        watcher = self.watcher if events is not self._no_events else None
        while self._bind(self._stepper.rows.now, frames, events)(time, dt) == NO_ROOM_LEFT:
            frames.flush()
            frames.more_room(int(self._stepper.rows.now.count[CONTACT]))
            if watcher is not None:
                watcher.more_log()
                events = watcher.block


def _unwatched() -> Block:
    """Placeholder block for a world whose events are not recorded."""
    one = dict.fromkeys(("wanted", "stops", "logged", "log_time", "log_kind", "log_key"), 1)
    two = dict.fromkeys(("known", "count", "seen", "key", "seen_key"), N_LISTS)
    return EVENTS.block(F64, n_shapes=0, nv=0, n_joints=0, key_room=1, log_room=1, **one, **two)
