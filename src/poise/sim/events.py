"""What begins and ends between two steps: contacts, limits that are reached and left, worlds that diverge.

Two shapes touch in a step when one of their contacts pushes; a limit is reached when it pushes. An event tells of a
change of that, so what is remembered from step to step is which shapes touch and which limits are reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poise.constraints.ball_limit_rows import CONE, TWIST_LOWER, TWIST_UPPER
from poise.constraints.limit_rows import CODES, LOWER, UPPER
from poise.constraints.store import CONTACT, SINGLE
from poise.formulations.acceleration import Accelerated
from poise.formulations.stepper import Stepper
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.slots import SlotCheck

Array = NDArray[Any]
Kind = Literal["contact_begin", "contact_end", "limit_reached", "limit_left", "diverged"]
KINDS: tuple[str, ...] = get_args(Kind)
_ENDS = {LOWER: "lower", UPPER: "upper"}
_BALL_ENDS = {CONE: "cone", TWIST_LOWER: "twist lower", TWIST_UPPER: "twist upper"}
_TOUCHING, _REACHED = "events/touching", "events/reached"


@dataclass(frozen=True)
class Event:
    """Something that happened in a step.

    >>> Event("limit_reached", 0.5, ("knee",), what="upper").names
    ('knee',)
    """

    kind: str
    """One of `KINDS`."""
    time: float
    """End of the step; s."""
    names: tuple[str, ...]
    """Both bodies of a contact; the coordinate, or the ball joint, of a limit; the body that diverged."""
    shapes: tuple[str, ...] = ()
    """Both shapes of a contact."""
    what: str = ""
    """Of a limit "lower", "upper", "cone", "twist lower", "twist upper"; of what diverged "motion", "tau", "forces"."""


def checked_kind(kind: Any) -> str:
    """The name of a kind of event.

    >>> checked_kind("contact_beginn")
    Traceback (most recent call last):
        ...
    ValueError: there is no event 'contact_beginn', did you mean "contact_begin"?
    """
    if not isinstance(kind, str) or kind not in KINDS:
        near = did_you_mean(kind, KINDS)
        raise ValueError(f"there is no event {kind!r}{near or '; there are ' + ', '.join(KINDS)}")
    return kind


class Watcher:
    """Remembers which shapes touch and which limits are reached, and tells what has changed.

    `None` in its memory stands for not known: the next look is taken in without a word.
    """

    def __init__(self) -> None:
        self.touching: set[int] | None = set()
        """a n + b for two of n shapes."""
        self.reached: set[int] | None = set()
        """Ids of rows."""
        self._seen: tuple[set[int], set[int]] = (set(), set())

    def see(self, stepper: Stepper | Accelerated) -> None:
        """Take note of a part of a step, as it has just been solved."""
        self._seen[0].update(touching(stepper))
        self._seen[1].update(reached(stepper))

    def take_in(self, stepper: Stepper | Accelerated) -> None:
        """Know what touches after a step that was not watched, as its last part has left it."""
        self.drop()
        self.touching, self.reached = set(touching(stepper)), set(reached(stepper))

    def drop(self) -> None:
        """Forget what was seen of a step that was not finished."""
        self._seen = (set(), set())

    def changes(self, model: Model, time: float) -> list[Event]:
        """Events of the step whose parts have been seen, in an order that depends on nothing else."""
        (pairs, limits), self._seen = self._seen, (set(), set())
        events = [
            *(_contact_event(model, "contact_begin", time, pair) for pair in _new(self.touching, pairs)),
            *(_contact_event(model, "contact_end", time, pair) for pair in _new(pairs, self.touching)),
            *(_limit_event(model, "limit_reached", time, id) for id in _new(self.reached, limits)),
            *(_limit_event(model, "limit_left", time, id) for id in _new(limits, self.reached)),
        ]
        self.touching, self.reached = pairs, limits
        return events

    def memory(self) -> dict[str, Array]:
        """What the next events depend on."""
        named = ((_TOUCHING, self.touching), (_REACHED, self.reached))
        return {name: np.array(sorted(known), np.int64) for name, known in named if known is not None}

    def remember(self, slots: Mapping[str, Array]) -> None:
        """Take up a memory; without one, nothing is known."""
        self.drop()
        self.touching, self.reached = (
            {int(key) for key in slots[name]} if name in slots else None for name in (_TOUCHING, _REACHED)
        )


def check_events(check: SlotCheck, model: Model) -> None:
    """Refuse a memory of events that no steps of such a model leave."""
    if _TOUCHING not in check.slots and _REACHED not in check.slots:
        return
    ends = {_TOUCHING: len(model.solids) ** 2 - 1, _REACHED: CODES * (model.nv + model.n_joints) - 1}
    for name, end in ends.items():
        if name in check.slots:
            check.fits(name, check.array(name).shape[:1], np.int64)
            check.within(name, 0, end)
    for id in check.slots.get(_REACHED, np.zeros(0)).tolist():
        if id % CODES not in (_ENDS if id // CODES < model.nv else _BALL_ENDS):
            check.fail(_REACHED, f"must be limits, found {id}")


def is_watched(slots: Mapping[str, Array]) -> bool:
    """Whether a state has what events depend on."""
    return _TOUCHING in slots


def _new(before: set[int] | None, after: set[int] | None) -> list[int]:
    return [] if before is None or after is None else sorted(after - before)


def touching(stepper: Stepper | Accelerated) -> list[int]:
    """Pairs of shapes whose contacts push, as a n + b for two of n shapes."""
    c, rows = stepper.collider.c, stepper.rows.now
    found, first, count = int(c.count[0]), int(rows.first[CONTACT]), int(rows.count[CONTACT])
    if found == 0 or count == 0:
        return []
    slots = slice(first, first + 3 * count, 3)
    pushing, n = set(rows.id[slots][rows.lam[slots] > 0.0].tolist()), len(stepper.model.solids)
    contacts = zip(*(c.arrays[name][:found].tolist() for name in ("id", "a", "b")), strict=True)
    return [a * n + b for id, a, b in contacts if id in pushing]


def reached(stepper: Stepper | Accelerated) -> list[int]:
    """Ids of the limits that push."""
    rows, nv = stepper.rows.now, stepper.model.nv
    first, count = int(rows.first[SINGLE]), int(rows.count[SINGLE])
    if count == 0:
        return []
    slots = slice(first, first + count)
    found, end = [], nv + stepper.model.n_joints
    for id in rows.id[slots][rows.lam[slots] > 0.0].tolist():
        number, code = divmod(id, CODES)
        if (0 <= number < nv and code in _ENDS) or (nv <= number < end and code in _BALL_ENDS):
            found.append(id)
    return found


def _contact_event(model: Model, kind: str, time: float, pair: int) -> Event:
    shapes = divmod(pair, len(model.solids))
    bodies = tuple(model.body_names[int(model.solids.body[shape])] for shape in shapes)
    return Event(kind, time, bodies, tuple(model.solids.names[shape] for shape in shapes))


def _limit_event(model: Model, kind: str, time: float, id: int) -> Event:
    number, code = divmod(id, CODES)
    if number >= model.nv:
        return Event(kind, time, (model.joint_names[number - model.nv],), what=_BALL_ENDS[code])
    return Event(kind, time, (model.dof_names[number],), what=_ENDS[code])
