"""Constraints of a stepper besides contacts and limits: motors, loop joints, couplings, and constraint callbacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.loop_joint import BREAK_LOOPS, MAKE_GUESTS, MEASURE_LOOPS
from poise.constraints.kinds.loop_layout import REMEMBERED, couplings_block, loops_block
from poise.constraints.kinds.motor import SETTINGS, is_endless, motors_block
from poise.constraints.rows import Rows
from poise.dynamics.workspace import Workspace
from poise.kernel.bound import Bound
from poise.kernel.memory import Block, Width
from poise.model.loops import LoopJoint
from poise.model.model import Model
from poise.model.state_fields import SlotCheck

Array = NDArray[Any]
MOTOR_SLOTS = {f"motors/{name}": name for name in SETTINGS}
LOOP_SLOTS = {f"loops/{name}": name for name in REMEMBERED}


class Extras:
    """Rows that are built once a step (`constraints.prebuilt_rows`), and the constraints that they are built from."""

    def __init__(self, model: Model, width: Width) -> None:
        self.model, self.width = model, width
        self.rows, self.motors = Rows(model, width), motors_block(model, width)
        self.couplings = couplings_block(model, width)
        self.hooks: list[Callable[[Rows], None]] = []
        """Constraint callbacks: they add rows to each step."""
        self.attached: list[LoopJoint] = []
        """Loop joints besides those of the model."""
        self._serials: list[int] = []
        self._next, self.had = len(model.loops), False
        self.part_of = np.zeros(1)
        """(1,) length of the step that the current steps are parts of, 0 for whole steps; s."""
        self._lanes, self._depth = width.lanes, 0
        self._hooked: tuple[bytes, Array, Array] | None = None
        """The state for which callbacks have added rows, and the number of rows and terms."""
        self._on: tuple[Any, Any, Any] = (None, None, None)
        self._listed: Array | None = None
        """The state slot that lists attached loop joints, once it has been read."""
        self._lay_loops()

    @property
    def serials(self) -> tuple[int, ...]:
        """Numbers of attached loop joints; they are never reused."""
        return tuple(self._serials)

    @property
    def joints(self) -> tuple[LoopJoint, ...]:
        """All loop joints: those of the model, then the attached ones."""
        return (*self.model.loops, *self.attached)

    def _lay_loops(self) -> None:
        serials = [*range(len(self.model.loops)), *self._serials]
        self.loops = loops_block(self.model, self.joints, serials, self.width)
        self._note_joints()

    def _note_joints(self) -> None:
        """Update what steps derive from the list of loop joints."""
        self._listed = None
        self._closed = bool(self.joints)
        self._any = self._closed or bool(self.model.couplings)

    def _relay(self, joints: Sequence[LoopJoint], serials: Sequence[int]) -> None:
        """Replace the list of attached loop joints; the others keep their state."""
        old, before = self.loops, [*range(len(self.model.loops)), *self._serials]
        self.attached, self._serials = list(joints), list(serials)
        self._lay_loops()
        now = [*range(len(self.model.loops)), *self._serials]
        for k, serial in enumerate(now):
            if serial not in before:
                continue
            was = before.index(serial)
            for name in REMEMBERED:
                new_at, old_at = k, was
                if name == "value":
                    new_at = slice(*self.loops.coordinate_start[k : k + 2].tolist())  # type: ignore[assignment]
                    old_at = slice(*old.coordinate_start[was : was + 2].tolist())  # type: ignore[assignment]
                self.loops.arrays[name][new_at] = old.arrays[name][old_at]

    def attach(self, joint: LoopJoint) -> None:
        """Add a loop joint."""
        self._relay([*self.attached, joint], [*self._serials, self._next])
        self._next += 1

    def detach(self, number: int) -> None:
        """Remove an attached loop joint."""
        kept = [k for k in range(len(self.attached)) if k != number]
        self._relay([self.attached[k] for k in kept], [self._serials[k] for k in kept])

    # ---- steps -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a step: no joint has broken in it yet, and callbacks have not been called."""
        self._hooked = None
        if self._closed:
            self.loops.broke[...] = 0

    def check_explicit(self) -> None:
        """Raise ValueError for constraints without forces at acceleration level: constraint callbacks, unbounded
        motors.
        """
        if self.hooks:
            raise ValueError(
                "constraint callbacks need the velocity level, and so do motors between bodies: build with "
                'level="velocity", or let springs be forces (world.add_force, poise.sim.PointSpring)'
            )
        if self.model.motors and is_endless(self.motors).any():
            ends = np.cumsum([3 if motor.ball else 1 for motor in self.model.motors])
            row = int(np.flatnonzero(is_endless(self.motors))[0])
            name = self.model.motors[int(np.searchsorted(ends, row, side="right"))].name
            raise ValueError(
                f'motor "{name}" has an infinite stiffness or damping: at acceleration level both must be finite '
                "(world.track moves joints without lag)"
            )

    @property
    def busy(self) -> bool:
        """Whether there may be rows besides those of motors, or the last step had any."""
        return self._any or bool(self.hooks) or self.had

    @property
    def always_prepares(self) -> bool:
        """Whether every step has rows of loop joints or couplings."""
        return self._any

    def emit(self, space: Workspace, dt: float, whole: float, erp: float) -> None:
        """Build the rows of a step, or of a part of a step of length `whole`."""
        while not self.maker(space)(dt, whole, erp, False, self._lanes):
            self.rows.grow()
        self.had = bool(self.rows.now.count.any())

    def call_hooks(self, state: bytes) -> None:
        """Have the callbacks add their rows, before all others. They are called once for a state, even if its step
        begins several times.
        """
        rows = self.rows
        if self._hooked is None or self._hooked[0] != state:
            self._hooked = None
            rows.clear()
            for hook in self.hooks:
                hook(rows)
            self._hooked = state, rows.now.count.copy(), rows.now.term_count.copy()
        _, rows.now.count[...], rows.now.term_count[...] = self._hooked

    def maker(self, space: Workspace) -> Bound:
        """The entry that builds the rows of motors, loop joints and couplings, bound to its current memory."""
        on, loops, store = self._on
        if space is not on or self.loops is not loops or self.rows.now is not store:
            blocks = (space.m, space.s, space.w, self.motors, self.loops, self.couplings, self.rows.now)
            self._bound = Bound(MAKE_GUESTS, self.width, *(block.handle for block in blocks))
            self._on = (space, self.loops, self.rows.now)  # last: an interrupt in between binds again
        return self._bound

    def measure(self, space: Workspace, rows: Block, dt: float, span: float = 1.0) -> None:
        """Forces of loop joints, from the solved rows of a step; overloaded joints break. Multipliers that are forces
        act for a `span` (s).

        Rows of a part of a step add to its mean, and nothing breaks before `end_parts`: an instantaneous impact counts
        as its impulse over the whole step, however many parts that has.
        """
        if self._closed:
            part, whole = self.part_of.item() > 0.0, self.part_of.item() or dt
            MEASURE_LOOPS[self.width](space.w.handle, self.loops.handle, rows.handle, whole / span, part)

    def begin_parts(self, whole: float) -> None:
        """Begin a step in parts, with zero impulses. Parts may themselves have parts."""
        self._depth += 1
        if self._depth > 1:
            return
        self.part_of[0] = whole
        if self._closed:
            self.loops.force[...] = self.loops.torque[...] = 0.0

    def end_parts(self, done: bool) -> None:
        """End a step in parts; if it is done, overloaded joints break."""
        self._depth -= 1
        if self._depth > 0:
            return
        self.part_of[0] = 0.0
        if self._closed and done:
            BREAK_LOOPS[self.width](self.loops.handle)

    # ---- memory ------------------------------------------------------------------------------------------------------

    def memory(self) -> dict[str, Array]:
        """State slots that the next step depends on."""
        kept = {}
        if self.model.motors:
            kept |= {slot: self.motors.arrays[name].copy() for slot, name in MOTOR_SLOTS.items()}
        if self._closed:
            kept |= {slot: self.loops.arrays[name].copy() for slot, name in LOOP_SLOTS.items()}
        if self._next > len(self.model.loops):
            if self._listed is None:
                told = json.dumps([self._next, self._serials, self.attached]).encode()
                self._listed = np.frombuffer(told, np.uint8)
            kept["loops/attached"] = self._listed.copy()
        return kept

    def check_memory(self, check: SlotCheck) -> None:
        """Report a problem if these state slots cannot be restored."""
        slots = check.slots
        for slot, name in MOTOR_SLOTS.items():
            if slot in slots and self.model.motors:
                check.like(slot, self.motors.arrays[name], infinite=name in ("stiffness", "damping", "low", "high"))
        joints, told = list(self.model.loops), "loops/attached"
        if self._lists(slots):
            block = self.loops
        elif told in slots:
            if check.array(told).dtype != np.uint8:
                check.fail(told, f"must be uint8, found {slots[told].dtype}")
            try:
                last, serials, listed = json.loads(slots[told].tobytes())
                attached = [_loop(item) for item in listed]
                fits = len(serials) == len(attached) and all(len(self.model.loops) <= k < last for k in serials)
                if not fits or len(set(serials)) != len(serials):
                    raise ValueError
                joints += attached
                block = loops_block(self.model, joints, [*range(len(self.model.loops)), *serials], self.width)
            except (ValueError, TypeError, KeyError, IndexError, OverflowError):
                check.fail(told, "is damaged: it must list the loops that were attached")
        else:
            block = self.loops if not self.attached else loops_block(self.model, joints, range(len(joints)), self.width)
        for slot, name in LOOP_SLOTS.items():
            if slot in slots:
                check.like(slot, block.arrays[name])

    def _lists(self, slots: Mapping[str, Array]) -> bool:
        """Whether the slots list the loop joints that are attached now, with the state of each."""
        if self._closed and not all(slot in slots for slot in LOOP_SLOTS):
            return False
        if "loops/attached" not in slots:
            return self._next == len(self.model.loops)
        told, listed = slots["loops/attached"], self._listed
        return listed is not None and told.dtype == listed.dtype and np.array_equal(told, listed)

    def remember(self, slots: Mapping[str, Array]) -> None:
        """Restore state slots. Motors, and which of the model's loop joints are active, stay as they are
        without slots.
        """
        for slot, name in MOTOR_SLOTS.items():
            if slot in slots:
                self.motors.arrays[name][...] = slots[slot]
            elif name == "unsaturated":
                self.motors.arrays[name][...] = 1.0
        if not self._lists(slots):
            self._attach_listed(slots)
        for slot, name in LOOP_SLOTS.items():
            if slot in slots:
                self.loops.arrays[name][...] = slots[slot]

    def _attach_listed(self, slots: Mapping[str, Array]) -> None:
        """Attach the loop joints that the slots list, and no others."""
        self._next, self._serials, told = len(self.model.loops), [], []
        if "loops/attached" in slots:
            self._next, self._serials, told = json.loads(slots["loops/attached"].tobytes())
        self.attached = [_loop(item) for item in told]
        n = len(self.model.loops)
        holds = self.loops.active[:n].copy()
        self._lay_loops()
        self.loops.active[:n] = holds


def _loop(item: list[Any]) -> LoopJoint:
    """A loop joint from its serialized form."""
    joint = LoopJoint(*item)
    flat = {name: tuple(getattr(joint, name)) for name in ("point_a", "frame_a", "point_b", "frame_b", "cone")}
    return joint._replace(**flat, limits=tuple((low, high) for low, high in joint.limits))
