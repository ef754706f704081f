"""Rows: everything that constrains a character, in one store.

A row knows its error φ, its Jacobian, its target and the law between its multiplier and its residual. The store is a
struct of arrays with a slot for each row. Every world has a list of its own, its k-th block in block slot k, so that in
lanes the work follows the busiest world and not the union of all contacts. Blocks of one kind lie side by side (a
region of the store), since lanes that work on one slot together must be of one kind:

    SINGLE     1 row     equality, ≥, ≤, bounded; joints, limits, motors, gears
    LAW        1 row     a piecewise law: dead zones, springs that stiffen
    CONTACT    3 rows    normal and two tangents, |λ_t| ≤ μ λ_n
    BALL       3 rows    |λ| ≤ radius: an actuator of limited strength

A Jacobian is six numbers on the twist (ω, v) of body `a` and of body `b`, in world axes at the centre of mass; or one
number on a coordinate (`dof`); or these and a chain of further terms of both sorts, for gears and whatever is linear in
velocities (KOK §4's general h). A positive multiplier pushes b away from a.

Kernels add rows through `row_kernels`. They count what they would add, whether there is room or not: where a count is
beyond its room, `grow` and emit again. Each block has an id that stays the same from step to step, by which it finds
the multipliers of the step before (`warm_start`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.parts import Combined, Part
from poise.constraints.row_input import Term, checked_numbers, finite, six
from poise.constraints.row_kernels import BLANK, WARM_START
from poise.constraints.store import (
    BALL,
    CONTACT,
    HARD_CAP,
    KINDS,
    LARGEST_ID,
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
from poise.kernel.memory import F64, Width
from poise.model.model import Model
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
        self.model, self.width = model, width
        wanted = {"single": 16, "law": 1, "contact": 8, "ball": 1, "term": 8} | dict(room or {})
        if unknown := wanted.keys() - {*KINDS, "term"}:
            raise ValueError(f"room for {sorted(unknown)}; kinds are {', '.join(KINDS)}, and term")
        self.now = make_store(width, [wanted[kind] for kind in KINDS], wanted["term"])
        self.before = make_store(width, [wanted[kind] for kind in KINDS], wanted["term"])
        self._listing: tuple[tuple[int, ...], Listing] | None = None

    # ---- steps -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a new list; the present one becomes the step before."""
        self.now, self.before = self.before, self.now
        self.clear()

    def clear(self) -> None:
        """Start the present list anew."""
        self.now.count[...] = 0
        self.now.term_count[...] = 0

    def full(self) -> bool:
        """Whether more was to be added than there is room for: `grow`, `clear` and emit again."""
        return bool(
            np.any(self._busiest() > self.now.room) or self.now.term_count.max() > self.now.counts()["term_room"]
        )

    def grow(self) -> None:
        """Make room for as many rows as were counted, and half as many again. Present rows and ids are kept."""
        counts, terms = self._busiest(), int(self.now.term_count.max())
        if counts.max() > HARD_CAP:
            raise MemoryError(f"{counts.max()} {KINDS[counts.argmax()]} blocks in one world; {HARD_CAP} is the most")
        room = [
            max(int(r), int(n) + int(n) // 2) if n > r else int(r) for n, r in zip(counts, self.now.room, strict=True)
        ]
        term_room = self.now.counts()["term_room"]
        term_room = max(term_room, terms + terms // 2) if terms > term_room else term_room
        self.now, self.before = (moved(block, room, term_room) for block in (self.now, self.before))
        self._listing = None

    def _busiest(self) -> NDArray[np.int64]:
        """(4,) blocks of the world that has most, by kind."""
        return np.asarray(self.now.count.reshape(len(KINDS), -1).max(axis=1), np.int64)

    def counts(self, world: int = 0) -> dict[str, int]:
        """Blocks of a world, by kind."""
        return {kind: int(self.now.count.reshape(len(KINDS), -1)[k, world]) for k, kind in enumerate(KINDS)}

    def listing(self) -> Listing:
        """What solvers see of the present list."""
        counts = tuple(int(n) for n in self._busiest())
        if self._listing is None or self._listing[0] != counts:
            if self.full():
                raise ValueError("rows were counted that there is no room for: grow, and emit them again")
            self._listing = counts, listed(counts, self.now.first)
        if self.width.lanes > 1:
            BLANK[self.width](self.now.handle, self.width.lanes)
        return self._listing[1]

    def warm_start(self, scale: float = 1.0) -> None:
        """Give each block the multipliers that it had in the step before, times `scale` (the ratio of two steps).

        A contact's force is turned into its new directions. New blocks start from nought.
        """
        lanes = self.width.lanes
        WARM_START[self.width](self.now.handle, self.before.handle, lanes, finite("scale", scale))

    # ---- adding from Python ------------------------------------------------------------------------------------------

    def add(
        self,
        *,
        id: int,
        a: str | int = -1,
        Ja: ArrayLike | None = None,
        b: str | int = -1,
        Jb: ArrayLike | None = None,
        dof: str | int | None = None,
        coefficient: float = 1.0,
        terms: Iterable[Term] = (),
        law: Law | None = None,
        world: int = 0,
        **numbers: float,
    ) -> int:
        """Add one row, and give its id; `numbers` are those of `NUMBERS`.

        A law is in the units of the level at which rows are solved (see `solve.laws`), and stands instead of bounds.
        """
        row = self._row(a, Ja, b, Jb, dof, coefficient, terms, numbers)
        if law is not None and ("lo" in numbers or "hi" in numbers):
            raise ValueError("a row has a law or bounds, not both")
        slot = self._open(SINGLE if law is None else LAW, world, id)
        self._write(slot, world, row)
        if law is not None:
            self._write_law(slot - int(self.now.first[LAW]), world, law)
        return id

    def add_part(self, part: Part | Combined, bodies: Sequence[str | int], *, id: int, **options: Any) -> int:
        """Add the row of a part (see `parts`), on its two bodies, or on the four of a combined one.

        `options` are those of `add`: bounds, targets, a law, the world.
        """
        covectors = [part.a, part.b, *((part.c, part.d) if isinstance(part, Combined) else ())]
        if len(bodies) != len(covectors):
            raise ValueError(f"{len(bodies)} bodies for a part on {len(covectors)}")
        Js = [np.array([float(x) for x in J.leaves()]) for J in covectors]
        terms = [Term(body, J) for body, J in zip(bodies[2:], Js[2:], strict=True) if body != -1]
        numbers = {"phi": float(part.phi), "gamma": float(part.gamma)} | options
        return self.add(id=id, a=bodies[0], Ja=Js[0], b=bodies[1], Jb=Js[1], terms=terms, **numbers)

    def add_contact(
        self,
        *,
        id: int,
        Ja: ArrayLike,
        Jb: ArrayLike,
        mu: float,
        a: str | int = -1,
        b: str | int = -1,
        world: int = 0,
        **numbers: float,
    ) -> int:
        """Add a contact: (3, 6) Jacobians, of the normal and two tangents; `numbers` are those of the normal."""
        if "lo" in numbers or "hi" in numbers:
            raise ValueError("a contact pushes and never pulls: it has no other bounds")
        if not 0.0 <= mu < inf:
            raise ValueError(f"mu is {mu}; a coefficient of friction is finite, 0 or more")
        rows = self._block(a, Ja, b, Jb, [numbers, {}, {}])
        slot = self._open(CONTACT, world, id)
        self._write_block(slot, world, rows, mu)
        return id

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
        """Add three rows whose force is at most `radius` (N or N·m) together; of `numbers` each has three."""
        if "lo" in numbers or "hi" in numbers:
            raise ValueError("rows of a ball have no other bounds than its radius")
        if not radius >= 0.0:
            raise ValueError(f"radius is {radius}; it must be 0 or more")
        for name, three in numbers.items():
            if np.shape(three) != (3,):
                raise ValueError(f"{name} has shape {np.shape(three)}; a ball wants three numbers, one a row")
        rows = self._block(a, Ja, b, Jb, [{name: three[k] for name, three in numbers.items()} for k in range(3)])
        slot = self._open(BALL, world, id)
        self._write_block(slot, world, rows, radius)
        return id

    def multipliers(self, id: int, world: int = 0) -> NDArray[Any]:
        """(1,) or (3,) multipliers of a block, as they were solved last."""
        kind, slot = self._find(id, world)
        slots = np.arange(slot, slot + STRIDES[kind])
        return np.array(of_world(self.now.lam, world, self.width)[slots])

    def ids(self, world: int = 0) -> list[int]:
        """Ids of the present list, kind by kind."""
        ids = of_world(self.now.id, world, self.width)
        return [int(id) for slots in self._first_slots(world) for id in ids[slots]]

    def body_terms(self, slot: int, world: int = 0) -> list[tuple[int, NDArray[Any]]]:
        """(body, six numbers) of a row's Jacobian, for each body but the world."""
        one = {name: of_world(array, world, self.width) for name, array in self.now.arrays.items()}
        found = [(int(one["a"][slot]), one["Ja"][slot]), (int(one["b"][slot]), one["Jb"][slot])]
        found += [(int(one["term_body"][k]), one["term_J"][k]) for k in self._terms(slot, world)]
        return [(body, np.array(J)) for body, J in found if body >= 0]

    def dof_terms(self, slot: int, world: int = 0) -> list[tuple[int, float]]:
        """(coordinate, number) of a row's Jacobian."""
        one = {name: of_world(array, world, self.width) for name, array in self.now.arrays.items()}
        found = [(int(one["dof"][slot]), float(one["Jdof"][slot]))]
        found += [(int(one["term_dof"][k]), float(one["term_Jdof"][k])) for k in self._terms(slot, world)]
        return [(dof, J) for dof, J in found if dof >= 0]

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _first_slots(self, world: int) -> list[NDArray[np.int64]]:
        """First slots of the blocks of a world, by kind."""
        counts = np.minimum(self.now.count.reshape(len(KINDS), -1)[:, world], self.now.room)
        return [int(self.now.first[k]) + stride * np.arange(int(counts[k])) for k, stride in enumerate(STRIDES)]

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
                return kind, int(slots[place[0]])
        raise KeyError(f"no row of world {world} has the id {id}")

    def _open(self, kind: int, world: int, id: int) -> int:
        """The slot of a new block, with room made for it."""
        if not 0 <= world < self.width.lanes:
            raise ValueError(f"world {world} of {self.width.lanes}")
        if isinstance(id, bool) or not isinstance(id, int | np.integer) or not 0 <= id <= LARGEST_ID:
            raise ValueError(f"id is {id!r}; it must be a whole number from 0 to {LARGEST_ID}")
        ids = of_world(self.now.id, world, self.width)
        if any(np.any(ids[slots] == id) for slots in self._first_slots(world)):
            raise ValueError(f"world {world} has a row of id {id} already")
        counts = self.now.count.reshape(len(KINDS), -1)
        counts[kind, world] += 1
        if self.full():
            self.grow()
            counts = self.now.count.reshape(len(KINDS), -1)
        slot = int(self.now.first[kind]) + (int(counts[kind, world]) - 1) * STRIDES[kind]
        of_world(self.now.id, world, self.width)[slot] = id
        return slot

    def _row(
        self,
        a: str | int,
        Ja: ArrayLike | None,
        b: str | int,
        Jb: ArrayLike | None,
        dof: str | int | None,
        coefficient: float,
        terms: Iterable[Term],
        numbers: Mapping[str, float],
    ) -> dict[str, Any]:
        """Everything of a row, checked."""
        return {
            "a": self._body(a),
            "b": self._body(b),
            "Ja": six("Ja", Ja),
            "Jb": six("Jb", Jb),
            "dof": -1 if dof is None else self._dof(dof),
            "Jdof": 0.0 if dof is None else finite("coefficient", coefficient),
            "terms": [self._term(term) for term in terms],
            **checked_numbers(numbers),
        }

    def _block(
        self, a: str | int, Ja: ArrayLike, b: str | int, Jb: ArrayLike, numbers: Sequence[Mapping[str, float]]
    ) -> list[dict[str, Any]]:
        """Three rows on two bodies."""
        pairs = [np.asarray(J, np.float64) for J in (Ja, Jb)]
        for name, J in zip(("Ja", "Jb"), pairs, strict=True):
            if J.shape != (3, 6):
                raise ValueError(f"{name} has shape {J.shape}; a block of three rows wants (3, 6)")
        return [self._row(a, pairs[0][k], b, pairs[1][k], None, 1.0, (), numbers[k]) for k in range(3)]

    def _body(self, body: str | int) -> int:
        if isinstance(body, str):
            return self.model.body_index(body)
        if not -1 <= body < self.model.n_bodies:
            raise ValueError(f"body {body} of {self.model.n_bodies}; −1 is the world")
        return int(body)

    def _dof(self, dof: str | int) -> int:
        if isinstance(dof, str):
            return self.model.dof_index(dof)
        if not 0 <= dof < self.model.nv:
            raise ValueError(f"degree of freedom {dof} of {self.model.nv}")
        return int(dof)

    def _term(self, term: Term) -> dict[str, Any]:
        if (term.body is None) == (term.dof is None):
            raise ValueError(f"a term is on a body or on a coordinate: {term}")
        on_body = term.body is not None
        return {
            "term_body": self._body(term.body) if term.body is not None else -1,
            "term_J": six("J", term.J if on_body else None),
            "term_dof": self._dof(term.dof) if term.dof is not None else -1,
            "term_Jdof": 0.0 if on_body else finite("coefficient", term.coefficient),
        }

    def _write_block(self, slot: int, world: int, rows: list[dict[str, Any]], bound: float) -> None:
        for k, row in enumerate(rows):
            self._write(slot + k, world, row)
        of_world(self.now.bound, world, self.width)[slot] = bound

    def _write(self, slot: int, world: int, row: dict[str, Any]) -> None:
        first = self._write_terms(world, row["terms"])
        for name, value in (row | {"term": first, "lam": 0.0}).items():
            if name != "terms":
                of_world(self.now.arrays[name], world, self.width)[slot] = value

    def _write_terms(self, world: int, terms: list[dict[str, Any]]) -> int:
        """Chain the terms; gives the first one's place."""
        counts = self.now.term_count.reshape(-1)
        first = int(counts[world])
        counts[world] += len(terms)
        if self.full():
            self.grow()
        for k, term in enumerate(terms):
            chain = {"term_next": first + k + 1 if k + 1 < len(terms) else -1}
            for name, value in (term | chain).items():
                of_world(self.now.arrays[name], world, self.width)[first + k] = value
        return first if terms else -1

    def _write_law(self, number: int, world: int, law: Law) -> None:
        if len(law.vertices) > VERTICES:
            raise ValueError(f"a law of {len(law.vertices)} vertices; rows have room for {VERTICES}")
        vertices = [*law.vertices, *[law.vertices[-1]] * (VERTICES - len(law.vertices))]
        place = slice(number * VERTICES, (number + 1) * VERTICES)
        of_world(self.now.law_lam, world, self.width)[place] = [lam for lam, _ in vertices]
        of_world(self.now.law_w, world, self.width)[place] = [w for _, w in vertices]
        for name, slope in (("law_left", law.left), ("law_right", law.right)):
            compliance = NO_END if slope == UPRIGHT else -slope
            of_world(self.now.arrays[name], world, self.width)[number] = compliance
