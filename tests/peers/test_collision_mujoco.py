"""Contacts of MuJoCo's humanoid with the floor and with itself, in a thousand poses: depth, place and normal.

All pairs are of planes, spheres and capsules, for which both engines have closed forms. Places differ by the rounding
of a dozen turns one after another, of lengths of about a metre: some 1e-15 m. A normal is a difference of points
divided by its length, d: its rounding is 1e-15/d.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from benchmark_scripts import helper
from poise.collision.detector import Collider
from poise.kernel.memory import F64X8
from poise.model.model import Model
from poise.model.shape_arrays import Solid

trees = helper("_trees")
POSES = 1000
ROUNDING = 1e-13
#: least distance of the cores of two shapes whose normal is compared to 1e-9
CLEAR = 1e-4


class Peer:
    """MuJoCo with contacts."""

    def __init__(self, path: Path) -> None:
        import mujoco

        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)

    def rows(self, q: np.ndarray) -> np.ndarray:
        """(n, 9) both shapes, distance, place, normal; sorted."""
        self.data.qpos[:] = q
        self.mujoco.mj_forward(self.model, self.data)
        found = self.data.contact
        frame = found.frame.reshape(-1, 9)[:, :3]
        return in_order(np.c_[found.geom, found.dist, found.pos, frame].reshape(-1, 9))


@cache
def both() -> tuple[Peer, Model]:
    path = trees.find_humanoid()
    return Peer(path), trees.load_model(path)


def in_order(rows: np.ndarray) -> np.ndarray:
    """Shapes by their numbers, the lesser first, then by distance: two contacts of a pair differ in it."""
    turned = rows[:, 0] > rows[:, 1]
    rows[turned, :2] = rows[turned, 1::-1]
    rows[turned, 6:] *= -1.0
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]


def our_rows(collider: Collider, world: int = 0) -> np.ndarray:
    rows = [(c.a, c.b, c.gap, *c.point, *c.normal) for c in collider.contacts(world)]
    return in_order(np.array(rows, np.float64).reshape(-1, 9))


def poses(model: Model, count: int) -> np.ndarray:
    """Joints anywhere within about a radian, the pelvis at any attitude, in the floor up to well above it."""
    rng = np.random.default_rng(0)
    q = np.array(
        [poise.dynamics.displaced(model, model.q_rest, v) for v in rng.normal(scale=0.8, size=(count, model.nv))]
    )
    q[:, 2] = rng.uniform(0.1, 1.2, count)
    return q


def core_distance(model: Model, rows: np.ndarray) -> np.ndarray:
    """How far apart the cores of touching shapes are; a plane counts as far away."""
    solids = model.solids
    pair = rows[:, :2].astype(int)
    radii = solids.size[pair, 0].sum(axis=1)
    return np.where(solids.kind[pair].min(axis=1) == 0, 1.0, rows[:, 2] + radii)


def test_shapes_have_the_same_numbers_and_places() -> None:
    peer, model = both()
    collider = Collider(model)
    collider.place(model.q_rest)
    peer.rows(model.q_rest)
    np.testing.assert_allclose(collider.x.position, peer.data.geom_xpos, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("search", ["few", "many"])
def test_a_thousand_poses(search: Any) -> None:
    peer, model = both()
    collider, total, clear = Collider(model, search=search), 0, 0
    for q in poses(model, POSES):
        collider.place(q)
        collider.touch()
        ours, theirs = our_rows(collider), peer.rows(q)
        assert ours[:, :2].tolist() == theirs[:, :2].tolist()
        np.testing.assert_allclose(ours[:, 2:6], theirs[:, 2:6], rtol=0, atol=ROUNDING)
        unique = core_distance(model, ours) > CLEAR
        np.testing.assert_allclose(ours[unique, 6:], theirs[unique, 6:], rtol=0, atol=ROUNDING / CLEAR)
        total, clear = total + len(ours), clear + int(unique.sum())
    assert clear > 0.99 * total > 5000


def test_lanes_of_poses() -> None:
    """Eight different poses an instruction."""
    peer, model = both()
    q = poses(model, 80)
    collider = Collider(model, F64X8)
    for start in range(0, len(q), 8):
        collider.place(q[start : start + 8])
        collider.touch()
        for world in range(8):
            ours, theirs = our_rows(collider, world), peer.rows(q[start + world])
            assert ours[:, :2].tolist() == theirs[:, :2].tolist()
            np.testing.assert_allclose(ours[:, 2:6], theirs[:, 2:6], rtol=0, atol=ROUNDING)


# ---- stairs ----------------------------------------------------------------------------------------------------------


def stairs(folder: Path) -> Path:
    """The humanoid's file with six steps of boxes in it."""
    humanoid = trees.find_humanoid()
    text = humanoid.read_text(encoding="utf-8")
    text = re.sub(r'(<include file=")', rf"\1{humanoid.parent.as_posix()}/", text)
    steps = "".join(
        f'<geom type="box" size="0.15 0.6 {0.05 * k}" pos="{0.3 * k - 0.9} 0 {0.05 * k}"/>' for k in range(1, 7)
    )
    before, end, after = text.rpartition("</worldbody>")
    path = folder / "stairs.xml"
    path.write_text(before + steps + end + after, encoding="utf-8")
    return path


def deepest(rows: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Distance and place of each pair's deepest contact."""
    first: dict[tuple[int, int], np.ndarray] = {}
    for row in rows:
        first.setdefault((int(row[0]), int(row[1])), row[2:6])
    return first


@pytest.mark.parametrize("search", ["few", "many"])
def test_on_stairs(tmp_path: Path, search: Any) -> None:
    """The same pairs touch, equally deep in the same place.

    Where a capsule's core is in a box, MuJoCo's depth is that along some direction, not the least one: only who touches
    is compared. Elsewhere MuJoCo looks for the nearest point of the core to about 1e-8 m, which leaves less in depth.
    """
    path = stairs(tmp_path)
    peer, model = Peer(path), trees.load_model(path)
    collider, kind, radius = Collider(model, search=search), model.solids.kind, model.solids.size[:, 0]
    counts = {Solid.SPHERE: 0, Solid.CAPSULE: 0}
    q = poses(model, POSES)
    q[:, :2] = np.random.default_rng(1).uniform(-0.5, 0.5, (POSES, 2))
    for pose in q:
        collider.place(pose)
        collider.touch()
        ours, theirs = deepest(our_rows(collider)), deepest(peer.rows(pose))
        for pair in ours.keys() & theirs.keys():
            one, other = ours[pair], theirs[pair]
            box = max(kind[list(pair)]) == Solid.BOX
            round_one = min(pair, key=lambda shape: kind[shape])
            if box and kind[round_one] == Solid.CAPSULE:
                if one[0] > -radius[round_one]:
                    np.testing.assert_allclose(one[0], other[0], rtol=0, atol=1e-9)
                    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)
            else:
                np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING)
            if box:
                counts[Solid(kind[round_one])] += 1
        for pair in ours.keys() ^ theirs.keys():
            assert sorted(kind[list(pair)]) == [Solid.CAPSULE, Solid.BOX]
            assert ours.get(pair, np.zeros(1))[0] < -radius[min(pair, key=lambda shape: kind[shape])]
    assert counts[Solid.SPHERE] > 100
    assert counts[Solid.CAPSULE] > 2000
