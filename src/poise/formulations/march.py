"""Steps of one world in compiled code from first to last: Python takes as long for a step as half of its kernels.

What needs Python ends the march: memory that must grow, a step that sweeps leave unsolved, something so fast that its
touches must be looked for. The stepper does that step in its own way, and marches on. A step in a few parts of one
length (see `fast`) is done here, or not begun: there are three stores for rows, and those from before it stay.
"""

from __future__ import annotations

from itertools import permutations
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.narrow import PLACE, SIFT
from poise.constraints.row_kernels import N_KINDS, stride_of
from poise.constraints.store import STORE
from poise.dynamics.layout import INPUT, MODEL, STATE
from poise.formulations.fast import EVEN, TOO_FAST
from poise.formulations.haste import HASTE
from poise.formulations.rules import (
    ALL,
    ASLEEP,
    DONE,
    DRIVEN,
    NO_ROOM,
    RULES,
    THE_REST,
    TOO_LONG,
    UNLESS_HASTY,
    UNLESS_LONG,
    WHOLE,
)
from poise.kernel.bound import Bound
from poise.kernel.calls import ask_bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Count, Index, Int, Real, Shared, View, load, store
from poise.kernel.spatial import Force

if TYPE_CHECKING:
    from poise.formulations.step_blocks import Entries
    from poise.formulations.stepper import Stepper

Array = NDArray[Any]
AGAIN = -1
"""How a step ends of which nothing is done yet."""

MARCH = View(
    "March",
    # bound entries: what to call, and with which table
    free_motion=Count,
    free_motion_table=Count,
    find=Count,
    find_table=Count,
    make=Count,
    make_table=Count,
    advance=Count,
    advance_table=Int,  # (9) by store of the rows, and by store of those from before
    grow=Count,
    grow_table=Int,  # (3) by store
    place=Index,  # (3) stores of the last rows, of those before, and the spare one
    room=Count,  # for contacts
    coupled=Count,  # 1 where joints are coupled
    erp=Real,  # (1) that of rules over this one is that of joints
    q=Real,  # (nq) at the beginning of the last step
    v=Real,  # (nv)
    v_end=Real,  # (nv) at its end, by the equations of motion at its beginning
    tau=Real,  # (nv) what was given to act in it
    force=Force,  # (n_bodies)
    n_own=Count,
    own=Real,  # (n_own) states that links have beside these, and what they were at the beginning
    own_kept=Real,
    made=Index,  # (1) 1 where the last step had rows that are made apart
    end=Index,  # (1) how the last step ended
    parts=Index,  # (1) of the last step
)


@kernel
def grow_multipliers(r, share):
    """Of all rows."""
    for kind in range(N_KINDS):
        first = load(r.first, kind)
        for slot in range(first, first + load(r.count, kind) * stride_of(kind)):
            store(r.lam, slot, load(r.lam, slot) * share)
    return r.term_room  # bound entries return whole numbers


@kernel
def count_parts(o, dt):
    """How many parts a step has whose haste is known: 0 where Python is to see."""
    if not load(o.haste, 0) * dt > HASTE:
        return 1
    parts = ceil(dt * load(o.haste, 0) / HASTE)
    return 0 if parts > EVEN else int(parts)


@kernel
def finish_part(o, k, found, now, old, dt, whole, wanted):
    """A part of a step, from its contacts on: how it ends; AGAIN where there is no room."""
    driven = found == DRIVEN
    if driven or load(k.made, 0) != 0 or k.coupled != 0:
        if ask_bound(k.make, k.make_table, dt, whole, load(o.erp, 0) / load(k.erp, 0), 0, 1) == 0:
            return AGAIN
        store(k.made, 0, 1 if driven else 0)
    end = ask_bound(k.advance, load(k.advance_table, 3 * now + old), dt, wanted)
    return AGAIN if end == NO_ROOM else end


@kernel
def take_whole(o, k, found, dt):
    """A step in one part, whose free motion is known: how it ends."""
    last, before = load(k.place, 0), load(k.place, 1)
    if ask_bound(k.find, k.find_table, load(o.ahead, 0), PLACE | SIFT) > k.room:
        return AGAIN
    end = finish_part(o, k, found, before, last, dt, dt, UNLESS_LONG)
    if end != AGAIN and end != TOO_LONG:
        store(k.place, 0, before)
        store(k.place, 1, last)
    return end


@kernel
def take_parts(o, k, dt, parts):
    """A step in parts, in the first of which links are in their places: how it ends. Rows from before it stay where
    they are.
    """
    erp, length, made = load(o.erp, 0), dt / parts, load(k.made, 0)
    kept, now, other = load(k.place, 0), load(k.place, 1), load(k.place, 2)
    old, end = kept, DONE
    store(o.erp, 0, erp / parts)
    store(o.carry, 0, 1.0 / parts)
    for part in range(parts):
        found = ask_bound(k.free_motion, k.free_motion_table, length, ALL if part > 0 else THE_REST)
        if not load(o.top, 0) < TOO_FAST or ask_bound(k.find, k.find_table, load(o.ahead, 0), PLACE | SIFT) > k.room:
            end = AGAIN
            break
        end = finish_part(o, k, found, now, old, length, dt, WHOLE)
        if end != DONE:
            break
        store(o.parted, 0, 1)
        store(o.carry, 0, 1.0)
        old, now, other = now, other, now
    store(o.erp, 0, erp)
    store(o.carry, 0, 1.0)
    store(o.parted, 0, 0)
    if end != DONE:
        store(k.made, 0, made)
        return AGAIN
    ask_bound(k.grow, load(k.grow_table, old), float(parts))
    store(k.place, 0, old)
    store(k.place, 1, kept)
    store(k.place, 2, now)
    return DONE


@kernel
def take_step(m, s, o, k, dt):
    """A step: whether it is done. If not, and its end is AGAIN, all is as it was before."""
    for j in range(m.nq):
        store(k.q, j, load(s.q, j))
    for d in range(m.nv):
        store(k.v, d, load(s.v, d))
    for e in range(k.n_own):
        store(k.own_kept, e, load(k.own, e))
    store(k.end, 0, AGAIN)
    store(k.parts, 0, 1)
    found = ask_bound(k.free_motion, k.free_motion_table, dt, UNLESS_HASTY)
    if found == ASLEEP:
        store(k.end, 0, DONE)
        return True
    parts = count_parts(o, dt)
    end = AGAIN
    if parts != 0 and load(o.top, 0) < TOO_FAST:
        store(k.parts, 0, parts)
        if parts == 1:
            made = load(k.made, 0)
            end = take_whole(o, k, found, dt)
            if end == TOO_LONG:
                parts, end = count_parts(o, dt), AGAIN
                store(k.made, 0, made)
                store(k.parts, 0, parts)
        if parts > 1:
            end = take_parts(o, k, dt, parts)
    if end == AGAIN:
        for j in range(m.nq):
            store(s.q, j, load(k.q, j))
        for d in range(m.nv):
            store(s.v, d, load(k.v, d))
        for e in range(k.n_own):
            store(k.own, e, load(k.own_kept, e))
    store(k.end, 0, end)
    return end == DONE


@kernel
def march(m, s, x, o, k, dt, n):
    """N steps at most: how many are done, with a note of the last one."""
    done = 0
    while done < n and take_step(m, s, o, k, dt):
        done += 1
    if done > 0:
        for d in range(m.nv):
            store(k.v_end, d, load(k.v, d) + load(o.change, d) if load(k.parts, 0) == 1 else load(s.v, d))
            store(k.tau, d, load(x.tau, d))
        for i in range(m.n_bodies):
            store(k.force, i, load(x.force, i))
    return done


_march = entry(march, MODEL, STATE, INPUT, RULES, MARCH, extra=("float64", "int64"), lanes=False)
_grow = entry(grow_multipliers, STORE, extra=("float64",), lanes=False)


class March:
    """A stepper's bound entries in a row."""

    def __init__(self, stepper: Stepper) -> None:
        model, self._stepper = stepper.model, stepper
        self._direct = stepper.width == F64 and stepper.collider.finder(stepper.space) is not None
        self._makes = bool(model.motors or model.couplings)
        self._end, self._made = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self._parts, self._place = np.ones(1, np.int32), np.zeros(3, np.int32)
        self._order: tuple[Block, ...] = ()
        """The stores that `place` tells of: as they are when a march begins, unless others have used them since."""
        self.note_in(np.zeros(model.nq), *np.zeros((3, model.nv)), forces=np.zeros((model.n_bodies, 6)))

    def note_in(self, q: Array, v: Array, v_end: Array, tau: Array, forces: Array) -> None:
        """Where to note of the last step how it began and ended, and what was given to act in it."""
        shared = {"q": q, "v": v, "v_end": v_end, "tau": tau, "force": forces, "made": self._made, "end": self._end}
        shared |= {"parts": self._parts, "place": self._place}
        self._shared = {name: Shared(array) for name, array in shared.items()}
        self._entries: Entries | None = None

    @property
    def can(self) -> bool:
        """Whether nothing wants Python in every step."""
        stepper = self._stepper
        wanted = stepper.watch is not None or stepper.extras.needs_python or (stepper.extras.had and not self._makes)
        return self._direct and stepper.by_kernels and not wanted

    def run(self, dt: float, n: int) -> int:
        """N steps at most: how many are done; `end` tells how the next one ended."""
        stepper = self._stepper
        rows, extras = stepper.rows, stepper.extras
        entries = stepper.bound_entries()
        if entries is not self._entries:  # memory has grown
            self._bind(entries)
        order = (rows.now, rows.before, stepper.spare)
        if order != self._order:
            self._place[...] = [self._stores.index(store) for store in order]
        self._made[0] = extras.had
        stepper.sleep.look()
        done: int = self._call(dt, n)
        extras.had = self._made.item() != 0
        self._order = order = self._orders[self._place.tobytes()]
        rows.now, rows.before, stepper.spare = order
        stepper.parts = self._parts.item()
        return done

    @property
    def end(self) -> int:
        """How the first step that is not done has ended, if it has: UNSOLVED and DIVERGED; else AGAIN."""
        return int(self._end.item())

    def _bind(self, entries: Entries) -> None:
        stepper = self._stepper
        space, self._entries = stepper.space, entries
        self._stores = [stepper.rows.now, stepper.rows.before, stepper.spare]
        places = permutations(range(len(self._stores)))
        self._orders = {np.array(p, np.int32).tobytes(): tuple(self._stores[k] for k in p) for p in places}
        self._order = ()
        find = stepper.collider.finder(space)
        assert find is not None
        make = stepper.extras.maker(space) if self._makes else find  # which nobody calls then
        calls = {"free_motion": entries.free_motion, "find": find, "make": make}
        grow = [Bound(_grow, F64, store.handle) for store in self._stores]
        pairs = [entries.advance.get((id(now), id(old))) for now in self._stores for old in self._stores]
        fronts = {name: call.front for name, call in calls.items()}
        fronts |= {"advance": next(iter(entries.advance.values())).front, "grow": grow[0].front}
        tables: dict[str, Any] = {f"{name}_table": call.table for name, call in calls.items()}
        tables["advance_table"] = np.array([0 if pair is None else pair.table for pair in pairs])
        tables["grow_table"] = np.array([one.table for one in grow])
        counts = {"room": stepper.collider.room, "coupled": len(stepper.model.couplings) > 0}
        erp, own = np.array([stepper.unit_erp]), stepper.own
        kept = {"n_own": len(own), "own": Shared(own), "own_kept": len(own)}
        block = MARCH.block(F64, **fronts, **tables, **counts, **kept, erp=erp, **self._shared)
        handles = (one.handle for one in (space.m, space.s, space.x, stepper.rules, block))
        whole = Bound(_march, F64, *handles)
        self._called, self._call = (*calls.values(), *grow, entries, whole), whole.caller
