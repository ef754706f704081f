"""Steps of one world in compiled code from first to last: Python takes as long for a step as half of its kernels.

What needs Python ends the march: memory that must grow, a step that sweeps leave unsolved, one that is to be split
because something is fast. The stepper does that step in its own way, and marches on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.narrow import PLACE, SIFT
from poise.dynamics.layout import INPUT, MODEL, STATE
from poise.formulations.fast import HASTE, TOO_FAST
from poise.formulations.rules import ASLEEP, DONE, DRIVEN, NO_ROOM, RULES
from poise.kernel.bound import Bound
from poise.kernel.calls import ask_bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Count, Index, Real, Shared, View, load, store
from poise.kernel.spatial import Force

if TYPE_CHECKING:
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
    advance_table=Count,  # rows and those of the step before change places from step to step
    advance_turned=Count,
    room=Count,  # for contacts
    coupled=Count,  # 1 where joints are coupled
    q=Real,  # (nq) at the beginning of the last step
    v=Real,  # (nv)
    v_end=Real,  # (nv) at its end
    tau=Real,  # (nv) what was given to act in it
    force=Force,  # (n_bodies)
    made=Index,  # (1) 1 where the last step had rows that are made apart
    end=Index,  # (1) how the last step ended
)


@kernel
def take_step(m, s, o, k, dt, erp, turn):
    """A step: whether it is done. Its rows change places with those before in every second turn."""
    for j in range(m.nq):
        store(k.q, j, load(s.q, j))
    for d in range(m.nv):
        store(k.v, d, load(s.v, d))
    store(k.end, 0, AGAIN)
    found = ask_bound(k.free_motion, k.free_motion_table, dt)
    if found == ASLEEP:
        store(k.end, 0, DONE)
        return True
    driven = found == DRIVEN
    if not load(o.top, 0) < TOO_FAST or dt * load(o.haste, 0) > HASTE:
        return False
    if ask_bound(k.find, k.find_table, load(o.ahead, 0), PLACE | SIFT) > k.room:
        return False
    if driven or load(k.made, 0) != 0 or k.coupled != 0:
        if ask_bound(k.make, k.make_table, dt, dt, erp, 0, 1) == 0:
            return False
        store(k.made, 0, 1 if driven else 0)
    end = ask_bound(k.advance, k.advance_turned if turn & 1 else k.advance_table, dt, 0)
    if end != NO_ROOM:
        store(k.end, 0, end)
    return end == DONE


@kernel
def march(m, s, x, o, k, dt, erp, n, turn):
    """N steps at most: how many are done, with a note of the last one."""
    done = 0
    while done < n and take_step(m, s, o, k, dt, erp, turn + done):
        done += 1
    if done > 0:
        for d in range(m.nv):
            store(k.v_end, d, load(s.v, d))
            store(k.tau, d, load(x.tau, d))
        for i in range(m.n_bodies):
            store(k.force, i, load(x.force, i))
    return done


_march = entry(march, MODEL, STATE, INPUT, RULES, MARCH, extra=("float64", "float64", "int64", "int64"), lanes=False)


class March:
    """A stepper's bound entries in a row."""

    def __init__(self, stepper: Stepper) -> None:
        model, self._stepper = stepper.model, stepper
        self._direct = stepper.width == F64 and stepper.collider.finder(stepper.space) is not None
        self._makes = bool(model.motors or model.couplings)
        self._end, self._made = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self.note_in(np.zeros(model.nq), *np.zeros((3, model.nv)), forces=np.zeros((model.n_bodies, 6)))

    def note_in(self, q: Array, v: Array, v_end: Array, tau: Array, forces: Array) -> None:
        """Where to note of the last step how it began and ended, and what was given to act in it."""
        shared = {"q": q, "v": v, "v_end": v_end, "tau": tau, "force": forces, "made": self._made, "end": self._end}
        self._shared = {name: Shared(array) for name, array in shared.items()}
        self._ways: dict[int, Bound] | None = None

    @property
    def can(self) -> bool:
        """Whether nothing wants Python in every step."""
        stepper = self._stepper
        wanted = stepper.watch is not None or stepper.extras.needs_python or (stepper.extras.had and not self._makes)
        return self._direct and not wanted

    def run(self, dt: float, n: int) -> int:
        """N steps at most: how many are done; `end` tells how the next one ended."""
        stepper = self._stepper
        rows, extras = stepper.rows, stepper.extras
        free_motion, ways = stepper.bound_entries()
        if ways is not self._ways:  # memory has grown
            self._bind(free_motion, ways)
        self._made[0] = extras.had
        stepper.sleep.look()
        done = int(self._call(dt, self._erp, n, rows.before is not self._first))
        extras.had = self._made.item() != 0
        stepper.parts = 1
        begun = done < n and self.end != AGAIN  # the next one has its rows
        if (done + begun) & 1:
            rows.now, rows.before = rows.before, rows.now
        return done

    @property
    def end(self) -> int:
        """How the first step that is not done has ended, if it has: UNSOLVED and DIVERGED; else AGAIN."""
        return int(self._end.item())

    def _bind(self, free_motion: Bound, ways: dict[int, Bound]) -> None:
        stepper = self._stepper
        space, self._ways, self._erp = stepper.space, ways, stepper.joint_erp
        self._first, turned = stepper.rows.before, stepper.rows.now
        find = stepper.collider.finder(space)
        assert find is not None
        make = stepper.extras.maker(space) if self._makes else find  # which nobody calls then
        calls = {"free_motion": free_motion, "find": find, "make": make}
        calls["advance"] = ways[id(self._first)]
        fronts = {name: call.front for name, call in calls.items()}
        tables = {f"{name}_table": call.table for name, call in calls.items()}
        counts = {"room": stepper.collider.room, "coupled": len(stepper.model.couplings) > 0}
        turns = ways[id(turned)].table
        block = MARCH.block(F64, **fronts, **tables, advance_turned=turns, **counts, **self._shared)
        self._called = (*calls.values(), ways)
        handles = (one.handle for one in (space.m, space.s, space.x, stepper.rules, block))
        self._call = Bound(_march, F64, *handles)
