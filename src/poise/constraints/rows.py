"""Rows: all scalar constraints of a character, in one store.

A row has an error φ, a Jacobian, a target and the law between its multiplier and its residual. The store is a struct of
arrays with a slot for each row. Every world has a list of its own, with its k-th block in block slot k, so that in
lanes the work depends on the largest count of any world and not on the union of all contacts. Blocks of one kind are
contiguous (a region of the store), since lanes that process one slot together must be of one kind:
    CONTACT    3 rows    normal and two tangents, |λ_t| ≤ μ λ_n
    BALL       3 rows    |λ| ≤ radius: an actuator of limited strength

A Jacobian is six numbers on the twist (ω, v) of body `a` and of body `b`, in world axes at the centre of mass; or one
number on a coordinate (`dof`); or these and a chain of further terms of both sorts, for gears and other functions that
are linear in velocities (KOK §4's general h). A positive multiplier pushes b away from a.

Kernels add rows through `emit_rows`. They count all rows, whether there is room or not: if a count exceeds its room,
call `grow` and emit again. Each block has an id that stays the same from step to step, by which `warm_start` finds its
multipliers of the last step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.emit_rows import BLANK, WARM_START
from poise.constraints.row_parts.point_parts import Combined, Part
from poise.constraints.row_store import (
    BALL,
    CONTACT,
    HARD_CAP,
    KINDS,
    LAW,
    NO_END,
    SINGLE,
    STRIDES,
    VERTICES,
    Listing,
    listed,
    make_store,
    moved,
    of_world,
)
from poise.constraints.row_validation import (
    Term,
    acts_on,
    check_range,
    checked_block,
    checked_friction,
    checked_id,
    checked_law,
    checked_room,
    checked_row,
    checked_terms,
    checked_world,
    finite,
    real,
    three_each,
)
from poise.dynamics.argument_checks import check_model
from poise.kernel.memory import F64, Block, Width
from poise.model.model import Model
from poise.solve.friction import Coefficients
from poise.solve.laws import UPRIGHT, Law


class Rows:
    """The rows of one world (float64), or of as many as a width has lanes.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> rows = Rows(scene.compile())
    >>> rows.add(id=7, b="ball", Jb=(0, 0, 0, 0, 0, 1), lo=0.0)
    7
    >>> rows.listing().size
    1
    """

    def __init__(self, model: Model, width: Width = F64, room: Mapping[str, int] | None = None) -> None:
        check_model(model)
        self.model, self.width = model, width
        wanted = checked_room(room)
        sizes = [wanted[kind] for kind in KINDS]
        self.now, self.before = (make_store(width, sizes, wanted["term"]) for _ in range(2))
        self._listing: tuple[tuple[int, ...], Listing] | None = None

    # ---- steps -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a new list; the present one becomes that of the last step."""
        self.now, self.before = self.before, self.now
        self.clear()

    def clear(self) -> None:
        """Clear the present list."""
        self.now.count[...] = 0
        self.now.term_count[...] = 0

    def full(self) -> bool:
        """Whether rows were counted for which there is no room: `grow`, `clear` and emit again."""
        return bool(
            np.any(_busiest(self.now) > self.now.room) or self.now.term_count.max() > self.now.counts()["term_room"]
        )

    def grow(self, *others: Block) -> None:
        """Make room for all rows that were counted, here or in other stores, and half as many again. Present rows and
        ids are kept.
        """
        stores = (self.now, *others)
        counts = np.max([_busiest(store) for store in stores], axis=0)
        terms = max(int(store.term_count.max()) for store in stores)
        if counts.max() > HARD_CAP:
            raise MemoryError(f"{counts.max()} {KINDS[counts.argmax()]} blocks in one world; {HARD_CAP} is the most")
        if terms > HARD_CAP:
            raise MemoryError(f"{terms} further terms in one world; {HARD_CAP} is the most")
        room = [_larger(int(r), int(n)) for n, r in zip(counts, self.now.room, strict=True)]
        term_room = _larger(self.now.counts()["term_room"], terms)
        self.now, self.before = (moved(block, room, term_room) for block in (self.now, self.before))
        self._listing = None

    def counts(self, world: int = 0) -> dict[str, int]:
        """Blocks of a world, by kind."""
        return dict(zip(KINDS, self._counts(checked_world(world, self.width.lanes)), strict=True))

    def listing(self) -> Listing:
        """The rows of the present list in the order of solvers."""
        if self.full():  # also of terms, for which the number of rows may be unchanged
            raise ValueError("rows were counted that there is no room for: grow, and emit them again")
        counts = tuple(int(n) for n in _busiest(self.now))
        if self._listing is None or self._listing[0] != counts:
            self._listing = counts, listed(counts, self.now.first)
        if self.width.lanes > 1:
            BLANK[self.width](self.now.handle, self.width.lanes)
        return self._listing[1]

    def warm_start(self, scale: float = 1.0) -> None:
        """Give each block its multipliers of the last step, times `scale` (the ratio of two steps).

        A contact's force is projected onto its new directions. New blocks start from zero.
        """
        lanes = self.width.lanes
        WARM_START[self.width](self.now.handle, self.before.handle, lanes, finite("scale", scale))

    # ---- adding from Python ------------------------------------------------------------------------------------------

    def add(
        self,
        *,
        id: int,
        a: str | int | None = None,
        Ja: ArrayLike | None = None,
        b: str | int | None = None,
        Jb: ArrayLike | None = None,
        dof: str | int | None = None,
        coefficient: float = 1.0,
        terms: Iterable[Term] = (),
        law: Law | None = None,
        world: int = 0,
        **numbers: float,
    ) -> int:
        """Add one row, and return its id; `numbers` are those of `row_validation.NUMBERS`.

        A law is in the units of the level at which rows are solved (see `solve.laws`), and stands instead of bounds.
        """
        row = checked_row(self.model, a, Ja, b, Jb, dof, coefficient, numbers)
        chain = checked_terms(self.model, terms)
        acts_on(row["a"], row["b"], row["dof"], *(max(term["term_body"], term["term_dof"]) for term in chain))
        if law is not None and ("lo" in numbers or "hi" in numbers):
            raise ValueError("a row has a law or bounds, not both")
        ends = {} if law is None else _law_numbers(checked_law(law))
        slot = self._open(SINGLE if law is None else LAW, world, id, [row, *chain, ends])
        self._write(slot, world, row)
        self._write_terms(slot, world, chain)
        if law is not None:
            self._write_law(slot - int(self.now.first[LAW]), world, ends)
        return id

    def add_part(self, part: Part | Combined, bodies: Sequence[str | int], *, id: int, **options: Any) -> int:
        """Add the row of a part (see `row_parts`), on its two bodies, or on the four of a combined one.

        `options` are those of `add`: bounds, targets, a law, the world.
        """
        if not isinstance(part, Part | Combined):
            raise TypeError(f"part is a {type(part).__name__}; it must be one Part (add several one by one)")
        covectors = [part.a, part.b, *((part.c, part.d) if isinstance(part, Combined) else ())]
        if isinstance(bodies, str) or len(bodies) != len(covectors):
            raise ValueError(f"bodies are {bodies!r}; a part on {len(covectors)} needs {len(covectors)} of them")
        Js = [J.leaves() for J in covectors]
        terms = [Term(body, J) for body, J in zip(bodies[2:], Js[2:], strict=True) if body != -1]
        numbers = {"phi": part.phi, "gamma": part.gamma} | options
        return self.add(id=id, a=bodies[0], Ja=Js[0], b=bodies[1], Jb=Js[1], terms=terms, **numbers)

    def add_contact(
        self,
        *,
        id: int,
        Ja: ArrayLike,
        Jb: ArrayLike,
        mu: float | Coefficients,
        sliding_now: bool = False,
        a: str | int = -1,
        b: str | int = -1,
        world: int = 0,
        **numbers: float | Sequence[float],
    ) -> int:
        """Add a contact: (3, 6) Jacobians, of the normal and two tangents.

        Each of `numbers` is one, the normal's, or three: a moving belt has `target=(0, speed, 0)`. With `sliding_now`
        the contact slides now, and has the sliding coefficient (see `solve.friction.Coefficients`).
        """
        if "lo" in numbers or "hi" in numbers:
            raise ValueError("a contact pushes and never pulls: it has no other bounds")
        rows = checked_block(self.model, a, Ja, b, Jb, three_each(numbers, alone=True))
        return self._add_block(CONTACT, world, id, rows, checked_friction(mu, sliding_now))

    def add_ball(
        self,
        *,
        id: int,
        Ja: ArrayLike,
        Jb: ArrayLike,
        radius: float,
        a: str | int = -1,
        b: str | int = -1,
        world: int = 0,
        **numbers: Sequence[float],
    ) -> int:
        """Add three rows whose force is at most `radius` (N or N·m) together; each of `numbers` has three."""
        if "lo" in numbers or "hi" in numbers:
            raise ValueError("rows of a ball have no other bounds than its radius")
        if not real("radius", radius) >= 0.0:
            raise ValueError(f"radius is {radius}; it must be 0 or more")
        rows = checked_block(self.model, a, Ja, b, Jb, three_each(numbers, alone=False))
        return self._add_block(BALL, world, id, rows, {"bound": float(radius)})

    # ---- reading -----------------------------------------------------------------------------------------------------

    def multipliers(self, id: int, world: int = 0) -> NDArray[Any]:
        """(1,) or (3,) multipliers of a block, as last solved."""
        kind, slot = self._find(id, checked_world(world, self.width.lanes))
        slots = np.arange(slot, slot + STRIDES[kind])
        return np.array(of_world(self.now.lam, world, self.width)[slots])

    def ids(self, world: int = 0) -> list[int]:
        """Ids of the present list, kind by kind."""
        ids = of_world(self.now.id, checked_world(world, self.width.lanes), self.width)
        return [int(id) for slots in self._first_slots(world) for id in ids[slots]]

    def body_terms(self, slot: int, world: int = 0) -> list[tuple[int, NDArray[Any]]]:
        """(body, six numbers) of a row's Jacobian, for each body except the world."""
        places = [("a", "Ja", slot), ("b", "Jb", slot), *(("term_body", "term_J", k) for k in self._terms(slot, world))]
        return [(int(body), np.array(J)) for body, J in self._numbers(places, world) if body >= 0]

    def dof_terms(self, slot: int, world: int = 0) -> list[tuple[int, float]]:
        """(coordinate, number) of a row's Jacobian."""
        places = [("dof", "Jdof", slot), *(("term_dof", "term_Jdof", k) for k in self._terms(slot, world))]
        return [(int(dof), float(J)) for dof, J in self._numbers(places, world) if dof >= 0]

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _counts(self, world: int) -> list[int]:
        """Blocks of a world by kind, which may exceed the room."""
        counts: list[int] = of_world(self.now.arrays["count"], world, self.width).tolist()
        return counts

    def _first_slots(self, world: int) -> list[slice]:
        """First slots of the blocks of a world, by kind."""
        head = zip(self._counts(world), self.now.room.tolist(), self.now.first.tolist(), STRIDES, strict=True)
        return [slice(first, first + min(n, room) * stride, stride) for n, room, first, stride in head]

    def _numbers(self, places: Iterable[tuple[str, str, int]], world: int) -> Iterable[tuple[Any, Any]]:
        """Values of two fields of a world, for each (field, field, place)."""
        arrays, width = self.now.arrays, self.width
        for one, two, k in places:
            yield of_world(arrays[one], world, width)[k], of_world(arrays[two], world, width)[k]

    def _terms(self, slot: int, world: int) -> list[int]:
        """Places of a row's further terms."""
        following, chain = of_world(self.now.term_next, world, self.width), []
        place = int(of_world(self.now.term, world, self.width)[slot])
        while place >= 0:
            chain.append(place)
            place = int(following[place])
        return chain

    def _find(self, id: int, world: int) -> tuple[int, int]:
        ids = of_world(self.now.id, world, self.width)
        for kind, slots in enumerate(self._first_slots(world)):
            if len(place := np.flatnonzero(ids[slots] == id)):
                return kind, slots.start + STRIDES[kind] * int(place[0])
        raise KeyError(f"no row of world {world} has the id {id}")

    def _open(self, kind: int, world: int, id: int, parts: list[dict[str, Any]]) -> int:
        """The slot of a new block, with room for it and its terms. Raises before the block is counted."""
        checked_world(world, self.width.lanes)
        checked_id(id)
        if self.width.elem != "f64":
            for part in parts:
                check_range(part, self.width.dtype)
        ids, all_slots = of_world(self.now.arrays["id"], world, self.width), self._first_slots(world)
        if any(slots.stop > slots.start and id in ids[slots] for slots in all_slots):
            raise ValueError(f"world {world} has a row of id {id} already")
        counts = of_world(self.now.arrays["count"], world, self.width)
        if counts[kind] >= HARD_CAP:
            raise MemoryError(f"{counts[kind]} {KINDS[kind]} blocks in world {world}; that is the most")
        counts[kind] += 1
        if counts[kind] > self.now.room[kind]:
            self.grow()
            all_slots = self._first_slots(world)
            slot = all_slots[kind].stop - STRIDES[kind]
        else:
            slot = all_slots[kind].stop
        of_world(self.now.arrays["id"], world, self.width)[slot] = id
        return slot

    def _add_block(self, kind: int, world: int, id: int, rows: list[dict[str, Any]], block: dict[str, float]) -> int:
        slot = self._open(kind, world, id, [*rows, block])
        for k, row in enumerate(rows):
            self._write(slot + k, world, row)
        for name, value in block.items():
            of_world(self.now.arrays[name], world, self.width)[slot] = value
        return id

    def _write(self, slot: int, world: int, row: dict[str, Any]) -> None:
        arrays = self.now.arrays
        if self.width.lanes == 1:
            for name, value in row.items():
                arrays[name][slot] = value
        else:
            for name, value in row.items():
                arrays[name][slot, ..., world] = value

    def _write_terms(self, slot: int, world: int, terms: list[dict[str, Any]]) -> None:
        """Chain the terms of a row."""
        if not terms:
            return
        counts = self.now.term_count.reshape(-1)
        first = int(counts[world])
        counts[world] += len(terms)
        if self.full():
            self.grow()
        of_world(self.now.arrays["term"], world, self.width)[slot] = first
        for k, term in enumerate(terms, first):
            self._write(k, world, term | {"term_next": k + 1})
        of_world(self.now.arrays["term_next"], world, self.width)[first + len(terms) - 1] = -1

    def _write_law(self, number: int, world: int, law: dict[str, Any]) -> None:
        place = slice(number * VERTICES, (number + 1) * VERTICES)
        for name, value in law.items():
            at = place if isinstance(value, tuple) else number
            of_world(self.now.arrays[name], world, self.width)[at] = value


def _busiest(store: Block) -> NDArray[np.int64]:
    """(4,) largest number of blocks of any world, by kind."""
    return np.asarray(store.count.reshape(len(KINDS), -1).max(axis=1), np.int64)


def _larger(room: int, wanted: int) -> int:
    """The present room if it is enough, else `wanted` and half as much again."""
    return wanted + wanted // 2 if wanted > room else room


def _law_numbers(law: Law) -> dict[str, Any]:
    """A law in the form of the store; the last vertex is repeated up to the end of its room."""
    vertices = [*law.vertices, *[law.vertices[-1]] * (VERTICES - len(law.vertices))]
    left, right = (NO_END if slope == UPRIGHT else -slope for slope in (law.left, law.right))
    lam, w = zip(*vertices, strict=True)
    return {"law_lam": lam, "law_w": w, "law_left": left, "law_right": right}
