"""How long it takes to find contacts: a humanoid beside MuJoCo's `mj_collision` and its whole step, and many balls.

MuJoCo's humanoid while it settles on the ground and once it has settled (see `_contacts`), and in 16 random poses, one
after another and in lanes. Ours puts the shapes where their links are; MuJoCo's has them there. Then balls on their way
into a box, 250 to 16,000 of them, every frame another one, so that nothing is learnt by heart: the time for a ball must
not grow faster than the logarithm of their number. Contacts are compared with MuJoCo's: shapes, distance and place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from _common import Case, Effort, Report, Row, Spread, Timings, arguments, effort, measure
from _contacts import GroundPeer, Moment
from _crowds import BallPeer, balls, frames, in_order
from _trees import find_humanoid, load_model

from poise import dynamics
from poise.collision.detector import Collider
from poise.dynamics import kinematics
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK
from poise.dynamics.workspace import Workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F32X16, F64, F64X8, Width
from poise.model.model import Model

QUESTION = "contacts of a humanoid beside MuJoCo's, and of 250 to 16,000 balls"
ALLOWED = 1e-12
SINGLE = 1e-5
"""In float32, of lengths of about a metre."""
WORLDS = 16
SIZES = (250, 500, 1000, 2000, 4000, 8000, 16000)
QUICK_SIZES = (250, 500, 1000)
BALLS = 32_000
"""Balls times frames at least: more than a predictor of branches remembers."""
PEERS = (250, 1000)
_place_links = entry(kinematics.place_links, MODEL, STATE, WORK)


class Pose:
    """A collider and a workspace whose links are placed."""

    def __init__(self, model: Model, q: np.ndarray, width: Width = F64) -> None:
        self.collider, self.space = Collider(model, width), Workspace(model, width)
        self.space.s.q[...] = q if width.lanes == 1 else q.T
        _place_links[width](self.space.m.handle, self.space.s.handle, self.space.w.handle)

    def run(self, n: int) -> None:
        """Find the contacts, n times."""
        find, space = self.collider.find, self.space
        for _ in range(n):
            find(space)

    def rows(self, world: int = 0) -> np.ndarray:
        """(contacts, 6) both shapes, distance and place, sorted."""
        self.run(1)
        return our_rows(self.collider, world)


def our_rows(collider: Collider, world: int = 0) -> np.ndarray:
    found = [(c.a, c.b, c.gap, *c.point) for c in collider.contacts(world)]
    return in_order(np.array(found, np.float64))


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of distances and places; infinite where the contacts are others."""
    if ours.shape != theirs.shape or not np.array_equal(ours[:, :2], theirs[:, :2]):
        return float("inf")
    return float(np.abs(ours - theirs).max(initial=0.0))


class Peer(GroundPeer):
    """MuJoCo in given poses."""

    def rows(self, q: np.ndarray) -> np.ndarray:
        """(contacts, 6) both shapes, distance and place, sorted."""
        self.data.qpos[:] = q
        self.mujoco.mj_forward(self.model, self.data)
        found = self.data.contact
        return in_order(np.c_[found.geom, found.dist, found.pos])

    def kept(self, q: np.ndarray) -> Any:
        """MuJoCo's data in a pose, to keep."""
        self.rows(q)
        return copy(self.data)

    def find(self, n: int) -> None:
        """Contacts of the pose at hand."""
        find = self.mujoco.mj_collision
        for _ in range(n):
            find(self.model, self.data)


# ---- the humanoid ----------------------------------------------------------------------------------------------------


def grounded(model: Model, peer: Peer, much: Any) -> list[Row]:
    """On the ground: beside MuJoCo's search, and beside its step."""
    table = []
    for stage in ("settling", "settled"):
        moment: Moment = peer.stretch(stage, 2)[-1]
        pose, place = Pose(model, moment.q), partial(peer.rows, moment.q)
        cases = [
            Case("find", pose.run),
            Case("mj_collision", peer.find, prepare=place),
            Case("mj_step", partial(peer.steps, moment)),
            Case("restore", partial(peer.restore, moment)),
        ]
        times = measure(cases, much)
        times.seconds["mj_step"] -= times.seconds["restore"]
        left, count = apart(pose.rows(), peer.rows(moment.q)), len(pose.rows())
        common = {"residual": left, "allowed": ALLOWED, "note": f"{count} contacts"}
        table += [
            Row(f"{stage}: mj_step", times.of("mj_step")),
            Row(f"{stage}: mj_collision", times.of("mj_collision")),
            beside(times, "find", "mj_collision", f"{stage}: one world", 1.0, **common),
            beside(times, "find", "mj_step", f"{stage}: one world", 0.12, **common),
        ]
    return table


def beside(times: Timings, name: str, other: str, what: str, most: float | None = None, **more: Any) -> Row:
    return Row(what, times.of(name), beside=other, ratio=times.ratio(name, other), most=most, **more)


def in_turn(calls: Sequence[Callable[[], object]], n: int) -> None:
    """All of them, n times."""
    for _ in range(n):
        for call in calls:
            call()


def in_poses(model: Model, peer: Peer, much: Any) -> tuple[list[Row], list[np.ndarray]]:
    """Sixteen random poses."""
    rng = np.random.default_rng(0)
    steps = rng.normal(scale=0.8, size=(WORLDS, model.nv))
    q = np.array([dynamics.displaced(model, model.q_rest, step) for step in steps])
    q[:, 2] = rng.uniform(0.1, 1.2, WORLDS)
    alone = [Pose(model, row) for row in q]
    lanes = {F64X8: Pose(model, q[:8], F64X8), F32X16: Pose(model, q, F32X16)}
    truth = [peer.rows(row) for row in q]
    calls = [partial(pose.collider.find, pose.space) for pose in alone]
    theirs = [partial(peer.mujoco.mj_collision, peer.model, peer.kept(row)) for row in q]
    cases = [
        Case("alone", partial(in_turn, calls), worlds=WORLDS),
        Case("alone of 8", partial(in_turn, calls[:8]), worlds=8),
        Case("peer", partial(in_turn, theirs), worlds=WORLDS),
    ]
    cases += [Case(str(width), pose.run, worlds=width.lanes) for width, pose in lanes.items()]
    times = measure(cases, much)
    rows = [pose.rows() for pose in alone]
    left = max(apart(*both) for both in zip(rows, truth, strict=True))
    note = f"{sum(map(len, rows))} contacts in {WORLDS} poses"
    table = [
        Row("random: mj_collision", times.of("peer")),
        beside(times, "alone", "peer", "random: one world", 1.0, residual=left, allowed=ALLOWED, note=note),
    ]
    table[-1].beside = "mj_collision"
    for width, pose in lanes.items():
        left = max(apart(pose.rows(world), truth[world]) for world in range(width.lanes))
        other = "alone" if width.lanes == WORLDS else "alone of 8"
        most = 0.25 if width is F32X16 else None
        row = beside(times, str(width), other, f"random: {width}, a world", most, residual=left, note=note)
        row.beside, row.allowed = "f64, the same poses", SINGLE if width.elem == "f32" else ALLOWED
        table.append(row)
    return table, rows


# ---- balls -----------------------------------------------------------------------------------------------------------


class Heap:
    """Balls, frame after frame."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.collider = Collider(balls(n), search="many")
        self.first = len(self.collider.model.solids) - n
        self.frames = frames(n, max(4, BALLS // n))
        self._next = cycle(range(len(self.frames)))
        self.show(0)

    def show(self, frame: int) -> None:
        """Contacts of one frame."""
        self.collider.x.position[self.first :] = self.frames[frame]
        self.collider.touch()

    def run(self, n: int) -> None:
        """The next n frames."""
        for _ in range(n):
            self.show(next(self._next))

    def stand(self, n: int) -> None:
        """The first frame, again and again."""
        for _ in range(n):
            self.collider.touch()


def heaps(much: Any, sizes: Sequence[int]) -> tuple[list[Row], list[np.ndarray]]:
    """Time over number, and MuJoCo beside it where it does not take too long."""
    found = {n: Heap(n) for n in sizes}
    peers = {n: BallPeer(n) for n in PEERS}
    cases = [Case(f"heap {n}", heap.run) for n, heap in found.items()]
    for n, peer in peers.items():
        peer.place(found[n].frames[0])
        cases += [
            Case(f"one {n}", found[n].stand, prepare=partial(found[n].show, 0)),
            Case(f"peer {n}", peer.run),
        ]
    times = measure(cases, Effort(much.rounds, 10.0 * much.batch))  # includes sorting the tree again now and then
    table, results = [], []
    for n, heap in found.items():
        heap.show(0)
        rows = our_rows(heap.collider)
        each = times.of(f"heap {n}").median / n * 1e9
        table.append(Row(f"{n} balls", times.of(f"heap {n}"), note=f"{each:.0f} ns a ball, {len(rows)} contacts"))
        if n in peers:
            row = beside(times, f"one {n}", f"peer {n}", f"{n} balls, one frame again and again")
            row.beside, row.residual, row.allowed = "mj_collision", apart(rows, peers[n].rows()), ALLOWED
            table.append(row)
        results.append(rows)
    table.append(Row("growth over n log n: slope", slope(times, sizes), unit="1", most=1.0))
    return table, results


def slope(times: Timings, sizes: Sequence[int]) -> Spread:
    """Slope of log time over log (n log n), in each round."""
    n = np.array(sizes, float)
    logs = np.log([times.seconds[f"heap {k}"] for k in sizes])
    return Spread.of(np.polyfit(np.log(n * np.log(n)), logs, 1)[0])


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options, rounds=100, batch=3e-4)
    peer = Peer(path, model)
    sizes = QUICK_SIZES if options.quick else SIZES
    parts: list[Callable[[], tuple[list[Row], list[np.ndarray]]]] = [
        lambda: (grounded(model, peer, much), []),
        lambda: in_poses(model, peer, much),
        lambda: heaps(much, sizes),
    ]
    settings = {"model": path.name, "from": str(path.parent), "shapes": len(model.solids), "rounds": much.rounds}
    report = Report("collision", QUESTION, settings)
    for part in parts:
        table, results = part()
        report.rows += table
        report.results += results
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
