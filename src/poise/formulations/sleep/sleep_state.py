"""Sleeping state of a world: memory of `sleep_kernels`, and its Python interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.formulations.sleep.sleep_kernels import SET
from poise.kernel.memory import Block, Count, Index, Real, View, Width
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3
from poise.model.joints import Prescribed
from poise.model.model import Model
from poise.model.state_fields import SlotCheck

if TYPE_CHECKING:
    from poise.formulations.constraint_set import Extras

Array = NDArray[Any]
LEAST_EXTENT = 0.05
"""Extent of a link without shapes; m."""
REMEMBERED = (*("motor", "rotation"), "still", "asleep", "q", "tau", "force", "gain_p", "gain_d", "goal_q", "goal_v")

SLEEP = View(
    "Sleep",
    sleeps=Count,  # 0 if sleeping is disabled
    nq=Count,
    speed=Real,  # (1) speed below which a tree rests; m/s
    after=Real,  # (1) time for which it must rest; s
    n_awake=Index,  # (1) awake trees that can move, and kinematic links that move
    fresh=Index,  # (1) 1 if the next step must be done even if all trees sleep, for its contacts
    q_link=Index,  # (nq)
    n_placed=Count,  # coordinates of kinematic bodies without paths
    placed=Index,  # (nq) 1 for these coordinates
    moves=Index,  # (n_links) at the first link of a tree: 1 if any degree of freedom is free to move
    centre=Vec3,  # (n_links) centre of mass
    extent=Real,  # (n_links) reach of the shapes from there; m
    fastest=Real,  # (n_links) at a first link: speed of the tree's fastest point; m/s
    still=Real,  # (n_links) at a first link: time for which the tree has rested; s
    asleep=Index,  # (n_links + 1) at a first link: 1 + the first link that represents its sleeping island, or 0
    stirred=Index,  # (n_links + 1) at a first link: 1 if its island must wake
    busy=Index,  # (n_links) at a first link: 1 if a motor has a target velocity
    motor=Real,  # (SET · rows of motors) settings in the last step
    rotation=Real,  # (4 · balls) targets in the last step
    # state and inputs when they fell asleep
    q=Real,
    tau=Real,
    force=Force,
    gain_p=Real,
    gain_d=Real,
    goal_q=Real,
    goal_v=Real,
)


def sleep_block(model: Model, width: Width, motors: Block, speed: float | None, after: float) -> Block:
    """Sleeping state of a world, in which trees slower than `speed` (m/s) sleep; None disables sleeping."""
    n, nq, nv = model.n_links, model.nq, model.nv
    moves = np.zeros(n, np.int32)
    np.maximum.at(moves, model.link_root[model.dof_link], 1 - np.asarray(model.dof_prescribed, np.int32))
    sizes: dict[str, Any] = dict.fromkeys(("fastest", "still"), n) | dict.fromkeys(("asleep", "stirred"), n + 1)
    sizes |= dict.fromkeys(("tau", "gain_p", "gain_d", "goal_v"), nv) | {"q": nq, "goal_q": nq}
    sizes |= {"force": model.n_bodies, "n_awake": 1, "fresh": 1, "speed": 1, "after": 1, "busy": n}
    sizes |= {"motor": SET * motors.counts()["n_rows"], "rotation": len(motors.rotation)}
    placed = _placed_coordinates(model)
    given = {"q_link": _links_of_coordinates(model), "moves": moves, "centre": 0, "extent": 0, "placed": placed}
    if width.lanes == 1:
        given |= {"centre": model.link_com, "extent": _extents(model)}
    block = SLEEP.block(width, sleeps=int(speed is not None), nq=nq, n_placed=int(placed.sum()), **(sizes | given))
    block.speed[...], block.after[...], block.n_awake[...] = speed or 0.0, after, 1
    return block


def _links_of_coordinates(model: Model) -> Array:
    """(nq,) the link that each coordinate belongs to."""
    order = np.argsort(model.primitive_q_start)
    starts = model.primitive_q_start[order]
    which = np.searchsorted(starts, np.arange(model.nq), side="right") - 1
    return np.asarray(model.dof_link[model.primitive_v_start[order][which]], np.int32)


def _placed_coordinates(model: Model) -> Array:
    """(nq,) 1 for coordinates of kinematic bodies without paths."""
    placed = np.zeros(model.nq, np.int32)
    for joint in np.unique(model.dof_joint[model.dof_prescribed == Prescribed.FREELY]).tolist():
        placed[model.joint_q_start[joint] : model.joint_q_start[joint + 1]] = 1
    return placed


def _extents(model: Model) -> Array:
    """(n_links,) how far the shapes of each link reach from its centre of mass; m."""
    extent, solids = np.full(model.n_links, LEAST_EXTENT), model.solids
    for link, place, reach in zip(solids.link.tolist(), solids.position, solids.reach, strict=True):
        if link >= 0:
            away = float(np.linalg.norm(place - model.link_com[link]))
            extent[link] = max(extent[link], away + float(reach))
    return extent


class Sleep:
    """Sleeping state of a world."""

    def __init__(self, model: Model, block: Block, extras: Extras) -> None:
        self._model, self._extras, self.block = model, extras, block
        self._sleeps = block.counts()["sleeps"] != 0
        self._loops = self._loops_now()

    def _loops_now(self) -> tuple[tuple[int, ...], bytes]:
        return self._extras.serials, self._extras.loops.active.tobytes()

    def look(self) -> None:
        """Wake all trees if loop joints were added or removed. Constraint callbacks disable sleeping, since their rows
        may act on any body.
        """
        if not self._sleeps:
            return
        if self._extras.hooks or self._loops != self._loops_now():
            self.wake()
            self._loops = self._loops_now()
        self.block.set_count("sleeps", int(not self._extras.hooks))

    @property
    def asleep(self) -> Array:
        """(n_bodies,) which bodies sleep."""
        links = self._model.body_link
        roots = self._model.link_root[np.maximum(links, 0)] if self._model.n_links else links
        return np.asarray((links >= 0) & (self.block.asleep[roots] != 0))

    def wake(self, bodies: Array | None = None) -> None:
        """Wake the islands of some bodies, or of all."""
        if not self._sleeps:
            return
        asleep, still = self.block.asleep, self.block.still
        links = np.arange(self._model.n_links) if bodies is None else self._model.body_link[bodies]
        groups = np.unique(asleep[self._model.link_root[links[links >= 0]]])
        woken = np.flatnonzero(np.isin(asleep[:-1], groups[groups != 0]))
        asleep[woken], still[woken] = 0, 0.0

    def memory(self) -> dict[str, Array]:
        """State slots that the next step depends on."""
        if not self._sleeps:
            return {}
        return {f"sleep/{name}": self.block.arrays[name].copy() for name in REMEMBERED}

    def check_memory(self, check: SlotCheck) -> None:
        """Report a problem if these state slots cannot be restored."""
        if "sleep/asleep" in check.slots and self._sleeps:
            for name in REMEMBERED:
                check.like(f"sleep/{name}", self.block.arrays[name], infinite=True)
            check.within("sleep/asleep", 0, self._model.n_links)

    def remember(self, slots: Mapping[str, Array]) -> None:
        """Restore state slots; without them, all trees are awake. The next step detects contacts again."""
        self._loops, self.block.fresh[...] = self._loops_now(), 1
        if "sleep/asleep" in slots and self._sleeps:
            for name in REMEMBERED:
                self.block.arrays[name][...] = slots[f"sleep/{name}"]
        else:
            self.block.asleep[...] = 0
            self.block.still[...] = 0.0
