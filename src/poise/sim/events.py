"""Events between two steps: contacts begin and end, limits are reached and left, worlds diverge.

Two shapes touch in a step when one of their contacts has a nonzero force; a limit is reached when its force is nonzero.
An event is a change of this, so the memory from step to step is the set of touching pairs and of reached limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.ball_joint_limit import CONE, TWIST_LOWER, TWIST_UPPER
from poise.constraints.kinds.joint_limit import CODES, LOWER, UPPER
from poise.constraints.row_store import CONTACT, SINGLE
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.driver import Stepper
from poise.formulations.observers.contact_events import EVENTS, N_LISTS
from poise.formulations.observers.contact_events import KINDS as LOGGED
from poise.formulations.observers.observe_step import WATCH
from poise.kernel.bound import Bound
from poise.kernel.memory import F64, Block
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state_fields import SlotCheck

Array = NDArray[Any]
Kind = Literal["contact_begin", "contact_end", "limit_reached", "limit_left", "diverged"]
KINDS: tuple[str, ...] = get_args(Kind)
_ENDS = {LOWER: "lower", UPPER: "upper"}
_BALL_ENDS = {CONE: "cone", TWIST_LOWER: "twist lower", TWIST_UPPER: "twist upper"}
_KEYS, _LOG = 64, 64
"""Initial capacity: keys of each list, logged events."""
_TOUCHING, _REACHED = "events/touching", "events/reached"


@dataclass(frozen=True)
class Event:
    """An event of a step.

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
    """Limits: "lower", "upper", "cone", "twist lower", "twist upper". Divergence: "motion", "tau", "forces"."""


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
    """The memory and the log of events of one world: see `formulations.observers.contact_events`.

    While the previous step is unknown, a step causes no events: its contacts and limits become the initial memory.
    """

    def __init__(self, model: Model) -> None:
        self._sizes = {"n_shapes": len(model.solids), "nv": model.nv, "n_joints": model.n_joints}
        self._watch: dict[tuple[int, ...], tuple[Bound, Block, Block]] = {}
        self._make_room(_KEYS, _LOG)
        self.start()

    def _make_room(self, keys: int, log: int) -> None:
        """Allocate memory for `keys` keys of each list and `log` logged events."""
        old = getattr(self, "block", None)
        names = ("wanted", "stops", "logged")
        sizes = dict.fromkeys(names, 1) | dict.fromkeys(("known", "count", "seen"), N_LISTS)
        sizes |= dict.fromkeys(("key", "seen_key"), N_LISTS * keys)
        sizes |= dict.fromkeys(("log_time", "log_kind", "log_key"), log)
        new = EVENTS.block(F64, key_room=keys, log_room=log, **self._sizes, **sizes)
        if old is not None:
            for name, array in old.arrays.items():
                parts = N_LISTS if name in ("key", "seen_key") else 1
                source = array.reshape(parts, -1)
                new.arrays[name].reshape(parts, -1)[:, : source.shape[1]] = source
        self.block = new
        self.block.wanted[0] = 1
        self._watch = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"sizes": self._sizes, "memory": self.memory()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._sizes, self._watch = state["sizes"], {}
        self._make_room(_KEYS, _LOG)
        self.remember(state["memory"])

    def has_room_for(self, store: Block, parts: int = 1) -> None:
        """Allocate room for all that the constraints of a store can add in some parts of a step."""
        keys = int(self.block.seen.max()) + parts * int(max(store.room[CONTACT], store.room[SINGLE]))
        if keys > self.block.counts()["key_room"]:
            self._make_room(2 * keys, self.block.counts()["log_room"])

    def bound(self, contacts: Block, store: Block) -> Bound:
        """The kernel that records active contacts and limits of a part of a step, from its constraint store."""
        key = id(contacts), id(store)
        if key not in self._watch:  # a reference to the blocks is stored, so that their ids stay unique
            bound = Bound(WATCH, F64, contacts.handle, store.handle, self.block.handle)
            self._watch[key] = bound, contacts, store
        return self._watch[key][0]

    def see(self, stepper: Stepper | Accelerated, store: Block) -> None:
        """Record active contacts and limits of a part of a step that ran in Python, from its constraint store."""
        self.has_room_for(store)
        self.bound(stepper.collider.c, store)()

    def take_in(self, stepper: Stepper | Accelerated) -> None:
        """Initialize the memory from the last part of a step that was not recorded."""
        self.drop()
        self.see(stepper, stepper.rows.now)
        seen = [self._keys("seen_key", which, int(self.block.seen[which])) for which in range(N_LISTS)]
        self.drop()
        for which, keys in enumerate(seen):
            self._know(which, np.unique(keys))

    def start(self) -> None:
        """Reset: no contacts, no reached limits, an empty log."""
        self.drop()
        self.block.logged[0] = 0
        for which in range(N_LISTS):
            self._know(which, np.zeros(0, np.int64))

    def drop(self) -> None:
        """Discard the records of an unfinished step."""
        self.block.seen[...] = 0

    def more_log(self) -> None:
        """Enlarge the log for all events that one step can cause."""
        counts, b = self.block.counts(), self.block
        if int(b.logged[0] + b.seen.sum() + b.count.sum()) > counts["log_room"]:
            self._make_room(counts["key_room"], 2 * int(b.logged[0] + b.seen.sum() + b.count.sum()))

    def read(self, model: Model) -> list[Event]:
        """Events since the last call, in a deterministic order. Clears the log."""
        n = int(self.block.logged[0])
        if n == 0:
            return []
        self.block.logged[0] = 0
        log = (self.block.arrays[name][:n].tolist() for name in ("log_time", "log_kind", "log_key"))
        return [_event(model, LOGGED[kind], time, key) for time, kind, key in zip(*log, strict=True)]

    def memory(self) -> dict[str, Array]:
        """State fields: the touching pairs and the reached limits."""
        b = self.block
        names = enumerate((_TOUCHING, _REACHED))
        return {name: self._keys("key", k, int(b.count[k])).copy() for k, name in names if b.known[k]}

    def remember(self, slots: Mapping[str, Array]) -> None:
        """Restore the memory from a state; a missing slot leaves that list unknown."""
        self.drop()
        for which, name in enumerate((_TOUCHING, _REACHED)):
            self._know(which, np.unique(slots[name]) if name in slots else None)

    def _keys(self, field: str, which: int, n: int) -> Array:
        first = which * self.block.counts()["key_room"]
        return np.asarray(self.block.arrays[field][first : first + n])

    def _know(self, which: int, keys: Array | None) -> None:
        """Set the keys of the previous step; None means unknown."""
        n = 0 if keys is None else len(keys)
        if n > self.block.counts()["key_room"]:
            self._make_room(2 * n, self.block.counts()["log_room"])
        self.block.known[which], self.block.count[which] = int(keys is not None), n
        self._keys("key", which, n)[...] = () if keys is None else keys


def check_events(check: SlotCheck, model: Model) -> None:
    """Validate the events of a state: their ids must exist in the model."""
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
    """Whether a state contains the memory of events."""
    return _TOUCHING in slots


def _event(model: Model, kind: str, time: float, key: int) -> Event:
    return (_contact_event if kind.startswith("contact") else _limit_event)(model, kind, time, key)


def _contact_event(model: Model, kind: str, time: float, pair: int) -> Event:
    shapes = divmod(pair, len(model.solids))
    bodies = tuple(model.body_names[int(model.solids.body[shape])] for shape in shapes)
    return Event(kind, time, bodies, tuple(model.solids.names[shape] for shape in shapes))


def _limit_event(model: Model, kind: str, time: float, id: int) -> Event:
    number, code = divmod(id, CODES)
    if number >= model.nv:
        return Event(kind, time, (model.joint_names[number - model.nv],), what=_BALL_ENDS[code])
    return Event(kind, time, (model.dof_names[number],), what=_ENDS[code])
