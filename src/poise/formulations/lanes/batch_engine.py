"""The world buffer, and the engines that step many worlds (see `batch_kernels`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.collision.broadphase.terrain_filter import terrains_block
from poise.collision.collision_layout import AHEAD
from poise.collision.detector import Collider
from poise.constraints.kinds.motor import SETTINGS
from poise.constraints.row_store import CONTACT, KINDS, STRIDES, moved
from poise.formulations.data import DATA
from poise.formulations.driver import Stepper
from poise.formulations.lanes.batch_kernels import (
    BATCH,
    GROUP,
    N_TOLD,
    NO_MEMORY,
    RECORDS,
    SEATS,
    step_crowd,
)
from poise.formulations.step import N_STORES, TIMED
from poise.formulations.step_table import Stages
from poise.kernel.bound import Bound
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block, Shared, Width, aligned, lane_array
from poise.model.model import Model
from poise.model.motors import controlled_numbers

Array = NDArray[Any]
LINE = 64
"""Bytes; the size of a world is a multiple of it, so that no two worlds share a cache line."""
FIRST_ROOM = (16, 0, 16, 0)
"""Initial room for the multipliers of a world, in blocks of each kind."""
PLACES = ("shape", "point", "normal", "depth")
"""Geometry of stored contacts."""
DRIVE = ("gain_p", "gain_d", "goal_q", "goal_v")
INPUTS = ("tau", "force", *DRIVE)
MOST_NUMBERS = 2**31 - 1
"""Maximum size of the world buffer: the limit of the 32-bit indices of float32 lanes."""


_step_crowd = entry(step_crowd, DATA, BATCH, extra=("float64", "int64", "int64", "int64"))


class Layout:
    """Layout of the numbers of a world."""

    def __init__(
        self, model: Model, width: Width, varied: Iterable[str] = (), terrains: NDArray[np.bool_] | None = None
    ) -> None:
        """`varied`: fields of the model (`model/…`) and its surfaces (`surfaces/…`) that differ between worlds;
        `terrains`: (terrains, shapes) which shapes exist in a world with each terrain.
        """
        self.terrains = terrains
        nq, nv = model.nq, model.nv
        motors = sum(3 if motor.ball else 1 for motor in model.motors)
        sizes = {"q": nq, "v": nv, "loops": sum(len(loop.limits) for loop in model.loops)}
        sizes["motors/unsaturated"] = motors
        self.n_state = sum(sizes.values())
        """Numbers that a step changes; they come first."""
        sizes |= {"tau": nv, "force": 6 * model.n_bodies, "gain_p": nv, "gain_d": nv, "goal_q": nq, "goal_v": nv}
        controlled = {name for motor in model.motors for name in controlled_numbers(motor.control)}
        sizes |= {f"motors/{name}": motors for name in SETTINGS if name in controlled}
        lengths = {"gravity": 3, "link_mass": 1, "link_com": 3, "link_inertia": 6}
        for name in varied:
            view, field = name.split("/")
            each = nv if field.startswith("dof") else 1 if field == "gravity" else model.n_links
            sizes[name] = lengths.get(field, 1) * each if view == "model" else len(model.solids)
        if terrains is not None:
            sizes["terrain"] = 1
        ends = np.cumsum([0, *sizes.values()]).tolist()
        self.places = {name: slice(*pair) for name, pair in zip(sizes, pairwise(ends), strict=True)}
        line = LINE // np.dtype(width.dtype).itemsize
        self.size = -(-ends[-1] // line) * line
        """Numbers per world."""

    def spans(self, used: set[str]) -> Array:
        """Ranges of the numbers that a step reads, given the inputs in use."""
        wanted = [place for name, place in self.places.items() if name not in INPUTS or name in used]
        merged: list[list[int]] = []
        for place in wanted:
            if merged and merged[-1][1] == place.start:
                merged[-1][1] = place.stop
            elif place.start < place.stop:
                merged.append([place.start, place.stop])
        return np.array(merged, np.int32).reshape(-1)


def _under(view: str, places: dict[str, slice]) -> dict[str, slice]:
    """Ranges of the fields of a view."""
    return {name.removeprefix(view): place for name, place in places.items() if name.startswith(view)}


class Memory(NamedTuple):
    """Memory for the multipliers and contacts of all worlds."""

    room: tuple[int, ...]
    """Blocks of each kind."""
    lam_first: Array
    id_first: Array
    lam_size: int
    id_size: int
    lam: Array
    id: Array
    shape: Array
    """Contact geometry, for as many contacts as there is room."""
    point: Array
    normal: Array
    depth: Array


class Records:
    """The world buffer: the numbers of all worlds, with their warm starts and contacts."""

    def __init__(self, layout: Layout, width: Width, n: int) -> None:
        if n * layout.size > MOST_NUMBERS:
            most = MOST_NUMBERS // layout.size
            raise MemoryError(f"{n} worlds of {layout.size} numbers each; {most} is the most of such worlds")
        self.layout, self.width, self.n = layout, width, n
        dtype = width.dtype
        self.numbers = aligned((n * layout.size,), dtype)
        self.lost, self.done = aligned((n,), np.int32), aligned((n,), np.int32)
        self.told = aligned((n * N_TOLD,), dtype)
        self.count = aligned((n * len(KINDS),), np.int32)
        self.noted = aligned((n,), np.int32)
        """Contacts of the last step; −1 if a world has made no step since its reset."""
        self.time, self.whole, self.parts = aligned((n,), np.float64), np.zeros(1), 1
        """(n,) times, s; (1,) length of a step, s; number of parts of a step."""
        self.commands: list[Callable[[Engine], Bound]] = []
        """Factories of the commands that an engine runs before each step."""
        self.order = aligned((-(-n // width.lanes) * width.lanes,), np.int32)
        self.used = {"tau"}
        """Inputs that steps read."""
        self._take_memory(self._memory(FIRST_ROOM))

    def _memory(self, room: tuple[int, ...]) -> Memory:
        line = LINE // 4
        lams = [n * stride for n, stride in zip(room, STRIDES, strict=True)]
        lam_first, id_first = (np.cumsum([0, *sizes]).astype(np.int32) for sizes in (lams, room))
        lam_size, id_size = (-(-int(first[-1]) // line) * line for first in (lam_first, id_first))
        if self.n * lam_size > MOST_NUMBERS:
            raise MemoryError(f"{self.n} worlds with {lam_size} multipliers each are too many")
        dtype, contacts = self.width.dtype, self.n * room[CONTACT]
        lam, id = aligned((self.n * lam_size,), dtype), aligned((self.n * id_size,), np.int32)
        places = aligned((contacts, 3), dtype), aligned((contacts, 3), dtype), aligned((contacts,), dtype)
        shape = aligned((2 * contacts,), np.int32)
        return Memory(room, lam_first, id_first, lam_size, id_size, lam, id, shape, *places)

    def _take_memory(self, memory: Memory) -> None:
        """In one statement, which no interrupt can split."""
        self.room, self.lam_first, self.id_first, self.lam_size, self.id_size, self.lam, self.id = memory[:7]
        self.shape, self.point, self.normal, self.depth = memory[7:]
        self._block: Block | None = None

    def of(self, name: str) -> Array:
        """(n, size) a quantity of all worlds, as a view of the world buffer."""
        return self.numbers.reshape(self.n, -1)[:, self.layout.places[name]]

    @property
    def state(self) -> Array:
        """(n, size) all that a step changes, of all worlds."""
        return self.numbers.reshape(self.n, -1)[:, : self.layout.n_state]

    def remember_more(self, room: tuple[int, ...]) -> None:
        """Grow the memory of multipliers; their values are kept."""
        more = self._memory(tuple(max(a, b) for a, b in zip(room, self.room, strict=True)))
        pairs = (
            (more.lam, self.lam, more.lam_first, self.lam_first),
            (more.id, self.id, more.id_first, self.id_first),
        )
        for name in PLACES:
            new, old = (getattr(one, name).reshape(self.n, -1) for one in (more, self))
            new[:, : old.shape[1]] = old
        for new, old, goals, sources in pairs:
            new2, old2 = new.reshape(self.n, -1), old.reshape(self.n, -1)
            for kind in range(len(KINDS)):
                source = slice(int(sources[kind]), int(sources[kind + 1]))
                new2[:, goals[kind] : goals[kind] + (source.stop - source.start)] = old2[:, source]
        self._take_memory(more)

    def forget(self, which: Any) -> None:
        """Clear the warm starts and contacts of some worlds."""
        self.count.reshape(self.n, -1)[which] = 0
        self.noted[which] = -1

    def use(self, *names: str) -> None:
        """Let steps read some inputs."""
        if not self.used.issuperset(names):
            self.used |= {*names}
            self._block = None

    def changed(self) -> None:
        """Have engines bind their kernels again."""
        self._block = None

    def spare(self, *names: str) -> None:
        """Stop steps from reading some inputs."""
        self.used -= {*names}
        self._block = None

    @property
    def block(self) -> Block:
        """The block that kernels use."""
        if self._block is None:
            spans = self.layout.spans(self.used)
            shared = ("numbers", "order", "lost", "done", "told", "count", "lam", "id", "noted", *PLACES)
            sizes = {"size": self.layout.size, "n_state": self.layout.n_state, "n_spans": len(spans) // 2}
            self._block = RECORDS.block(
                Width(self.width.elem),
                **sizes,
                span=spans,
                room=np.array(self.room, np.int32),
                lam_first=self.lam_first[:-1].copy(),
                id_first=self.id_first[:-1].copy(),
                lam_size=self.lam_size,
                id_size=self.id_size,
                **{name: Shared(getattr(self, name)) for name in shared},
            )
        return self._block


class Engine(Stepper):
    """A stepper of as many worlds as a width has lanes; its state is that of the worlds in the lanes."""

    def __init__(self, model: Model, width: Width, layout: Layout, **options: Any) -> None:
        super().__init__(model, width, **options)
        self._arena = lane_array(layout.size, width)
        seats = dict.fromkeys(("world", "taken"), 1)
        self._seats = SEATS.block(width, lanes=width.lanes, arena=Shared(self._arena), **seats)
        self._take_places(layout)
        if self.collider.finder(self.space) is None:
            self.collider = Collider(model, width, search="few")
        self._reach = AHEAD.block(width, ahead=Shared(self.stats.ahead))
        self._end = np.zeros(1, np.int32)
        self._records: Block | None = None
        self._owner: Records | None = None
        self._now = np.zeros(width.lanes)
        self._bind()

    def _take_places(self, layout: Layout) -> None:
        """Share the memory of the step's blocks with the lanes' numbers; their values are kept."""
        space, extras, places = self.space, self.extras, layout.places
        space.s = self._seated(space.s, {name: places[name] for name in ("q", "v")})
        space.x = self._seated(space.x, {name: places[name] for name in INPUTS})
        extras.motors = self._seated(extras.motors, _under("motors/", places))
        extras.loops = self._seated(extras.loops, {"value": places["loops"]})
        space.m = self._seated(space.m, _under("model/", places))
        if not places.keys().isdisjoint(("model/dof_stiffness", "model/dof_damping")):
            space.m.set_count("has_passive", 1)
        self.surfaces = self._seated(self.surfaces, _under("surfaces/", places))
        there = layout.terrains
        self._terrains = None if there is None else terrains_block(there, self.width, self._arena[places["terrain"]])

    def _seated(self, block: Block, places: dict[str, slice]) -> Block:
        given: dict[str, Any] = {name: Shared(array) for name, array in block.arrays.items()}
        for name, place in places.items():
            here = self._arena[place].reshape(block.arrays[name].shape)
            here[...] = block.arrays[name]
            given[name] = Shared(here)
        return block.view.block(block.width, **block.counts(), **given)

    @property
    def first(self) -> Array:
        """(size,) the initial numbers of a world; only valid before worlds are loaded."""
        return np.array(self._arena[:, 0])

    def use(self, records: Records) -> None:
        """Use a world buffer, and allocate room for all of its multipliers."""
        rows = self.rows
        room = [max(a, b) for a, b in zip(rows.now.room.tolist(), records.room, strict=True)]
        if room != rows.now.room.tolist():
            terms = rows.now.counts()["term_room"]
            rows.now, rows.before = (moved(block, room, terms) for block in (rows.now, rows.before))
            self._make_room()
        self.space.x.set_count("n_forces", int("force" in records.used))
        self.space.x.set_count("n_gains", int("gain_p" in records.used))
        if records.block is not self._records:
            self._records, self._owner = records.block, records
            self._call = None

    def _bind(self) -> None:
        super()._bind()
        self._call: Bound | None = None

    def _bind_crowd(self) -> Bound:
        """Bind the kernel to its memory."""
        assert self._records is not None
        assert self._owner is not None
        entries, rows, extras = self.bound_entries(), self.rows, self.extras
        self._lay_axes(rows.before)
        advance: list[Bound | None] = [None] * (N_STORES * N_STORES)
        advance[1] = entries.advance[id(rows.now), id(rows.before)]
        stages = Stages(
            entries.free_motion,
            self.collider.finder_each(self.space, self._reach, self._terrains),
            extras.maker(self.space),
            advance,
            commands=[make(self) for make in self._owner.commands],
        )
        step = stages.block(
            lanes=self.width.lanes,
            contact_room=self.collider.room,
            always_prepares=int(bool(self.model.loops or self.model.couplings)),
            part_of=Shared(extras.part_of),
            clock=0,
            spent=len(TIMED),
            **{name: Shared(array) for name, array in self.noted.items()},
        )
        self._called = stages.held
        shared = self.group_block(self._owner)
        batch = BATCH.block(self.width, records=self._records, seats=self._seats, step=step, shared=shared)
        return Bound(_step_crowd, self.width, self.data.handle, batch.handle)

    def group_block(self, records: Records) -> Block:
        """The shared numbers of a group, with the times of worlds."""
        return GROUP.block(
            F64,
            erp=np.array([self.joint_erp]),
            end=Shared(self._end),
            parts=records.parts,
            whole=Shared(records.whole),
            time=Shared(records.time),
            now=Shared(self._now),
        )

    @property
    def seats(self) -> Block:
        """The assignment of worlds to lanes."""
        return self._seats

    @property
    def owner(self) -> Records:
        """The world buffer whose worlds it steps."""
        assert self._owner is not None
        return self._owner

    def _lay_axes(self, old: Block) -> None:
        """Set the axes of stored contact forces to those of the world."""
        first, n = int(old.first[CONTACT]), int(old.room[CONTACT])
        rows = slice(first, first + 3 * n)
        old.b[rows] = 0
        old.Jb[rows] = np.tile(np.eye(3, 6, 3), (n, 1))[..., None]

    @property
    def call(self) -> Bound:
        """The batched step: (dt, n, first, last) → the first group that is not done, for `make_way`, or the
        last index.
        """
        if self._call is None:
            self._call = self._bind_crowd()
        return self._call

    def make_way(self) -> bool:
        """Grow the memory that a group ran out of; returns False if it was that of the world buffer."""
        end = int(self._end[0])
        if end == NO_MEMORY:
            return False
        if not self.make_room(end):
            raise RuntimeError(f"a group of worlds ended with status {end}")
        self._call = None
        return True

    @property
    def remembered(self) -> tuple[int, ...]:
        """Room for multipliers, in blocks of each kind."""
        return tuple(self.rows.now.room.tolist())
