"""How long the touches of two boxes take: resting, crossed, near and far, beside MuJoCo.

Each case has 256 pairs of boxes of 0.2 to 2 m, all with a margin of 1 cm. MuJoCo gets them as contact pairs, so that it
looks at these and no others. Resting boxes overlap by 1 mm face on face, crossed ones by 1 mm in any pose; near ones
are 5 mm apart; far ones more than the margin, though the spheres about them meet.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure

from poise.collision import layout
from poise.collision.layout import CONTACTS, MANIFOLD, MOST_TOUCHES, PLACES, SHAPES, pairs_block
from poise.collision.narrow import collide
from poise.collision.pipeline import Collider
from poise.kernel.jit import entry
from poise.kernel.memory import F32, F64, Width
from poise.model.scene import Scene
from poise.model.shapes import Box
from poise.motion.rotations import quat_normalize, quat_to_matrix

QUESTION = "how long the touches of two boxes take"
PAIRS, MARGIN = 256, 0.01
_collide = entry(collide, SHAPES, PLACES, layout.PAIRS, CONTACTS, MANIFOLD, extra=("float64",))
GAPS = {"resting": -1e-3, "crossed": -1e-3, "near": 5e-3, "far": None}


class Boxes:
    """Pairs of boxes in Poise."""

    def __init__(self, half: np.ndarray, width: Width = F64) -> None:
        scene = Scene()
        for k in range(PAIRS):
            for b in range(2):
                shape = Box(tuple(2.0 * half[k, b]), margin=0.5 * MARGIN, group=1, mask=0)
                scene.add(shape, name=f"{k}/{b}")
        self.collider = Collider(scene.compile(), width, room=MOST_TOUCHES * PAIRS)
        pairs = pairs_block(np.arange(2 * PAIRS, dtype=np.int32).reshape(PAIRS, 2), width)
        blocks = (self.collider.g, self.collider.x, pairs, self.collider.c, self.collider.t)
        self._call, self._handles = _collide[width], tuple(block.handle for block in blocks)

    def place(self, position: np.ndarray, quat_wxyz: np.ndarray) -> None:
        """(pairs, 2, 3) and (pairs, 2, 4)."""
        self.collider.x.position[...] = position.reshape(-1, 3)
        turns = [quat_to_matrix(quat).reshape(9) for quat in quat_wxyz.reshape(-1, 4)]
        self.collider.x.rotation[...] = turns

    def run(self, n: int) -> None:
        """All pairs, n times."""
        for _ in range(n):
            self.touch()

    def touch(self, slack: float = 0.0) -> None:
        """All pairs, once; no boxes along the axes are looked at, only spheres, as MuJoCo does with contact pairs."""
        self._call(*self._handles, slack)

    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """Least gap of each pair (∞ without any), and its normal."""
        gap, normal = np.full(PAIRS, np.inf), np.zeros((PAIRS, 3))
        for contact in self.collider.contacts():
            pair = contact.a // 2
            if contact.gap < gap[pair]:
                gap[pair], normal[pair] = contact.gap, contact.normal
        return gap, normal


class Mujoco:
    """The same in MuJoCo."""

    def __init__(self, half: np.ndarray) -> None:
        import mujoco

        bodies = "".join(
            f"<body><freejoint/><geom name='{k}-{b}' type='box' size='{' '.join(map(str, half[k, b]))}' contype='0' "
            "conaffinity='0'/></body>"
            for k in range(PAIRS)
            for b in range(2)
        )
        pairs = "".join(f"<pair geom1='{k}-0' geom2='{k}-1' margin='{MARGIN}'/>" for k in range(PAIRS))
        text = f"<mujoco><size memory='256M'/><worldbody>{bodies}</worldbody><contact>{pairs}</contact></mujoco>"
        self.mujoco, self.model = mujoco, mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)

    def place(self, position: np.ndarray, quat_wxyz: np.ndarray) -> None:
        """(pairs, 2, 3) and (pairs, 2, 4)."""
        self.data.qpos[:] = np.concatenate((position, quat_wxyz), axis=2).reshape(-1)
        self.mujoco.mj_fwdPosition(self.model, self.data)

    def run(self, n: int) -> None:
        """All pairs, n times."""
        for _ in range(n):
            self.mujoco.mj_collision(self.model, self.data)

    def nearest(self) -> np.ndarray:
        """Least gap of each pair."""
        gap = np.full(PAIRS, np.inf)
        for contact in self.data.contact:
            k = int(min(contact.geom)) // 2
            gap[k] = min(gap[k], contact.dist)
        return gap


def place(name: str, half: np.ndarray, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Positions and rotations of a case: begun apart along a random direction, then moved along the normals found."""
    rng = np.random.default_rng(0)
    position, quat = np.zeros((PAIRS, 2, 3)), quat_normalize(rng.normal(size=(PAIRS, 2, 4)))
    wanted = GAPS[name]
    if name == "resting":
        quat[:, 0] = (1.0, 0.0, 0.0, 0.0)
        quat[:, 1, 1:3] = 0.0
        quat = quat_normalize(quat)
        sideways = rng.uniform(-0.7, 0.7, (PAIRS, 3)) * half[:, 0]
        up = half[:, 0, 2] + half[:, 1, 2] + wanted
        position[:, 1] = np.stack((sideways[:, 0], sideways[:, 1], up), axis=1)
        return position, quat
    along = rng.normal(size=(PAIRS, 3))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    reach = np.linalg.norm(half, axis=2).sum(axis=1)
    if wanted is None:
        position[:, 1] = along * (0.97 * reach)[:, None]
        return position, quat
    position[:, 1] = along * (0.3 * reach)[:, None]
    for _ in range(60):
        boxes.place(position, quat)
        boxes.touch(10.0)
        gap, normal = boxes.nearest()
        position[:, 1] += normal * (wanted - gap)[:, None]
    return position, quat


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options, rounds=60)
    half = np.random.default_rng(1).uniform(0.1, 1.0, (PAIRS, 2, 3))
    double, single, peer = Boxes(half), Boxes(half, F32), Mujoco(half)
    rows, found = [], []
    for name in GAPS:
        where = place(name, half, double)
        for one in (double, single, peer):
            one.place(*where)
            one.run(1)
        gap, theirs = double.nearest()[0], peer.nearest()
        both = np.isfinite(gap) & np.isfinite(theirs)
        cases = {"f64": double, "f32": single, "MuJoCo": peer}
        times = measure([Case(case, one.run, worlds=PAIRS) for case, one in cases.items()], much)
        found.append(gap)
        note = f"{int(double.collider.c.count[0]) / PAIRS:.1f} touches a pair, MuJoCo {peer.data.ncon / PAIRS:.1f}"
        differ = np.abs(gap[both] - theirs[both]).max(initial=0.0)
        note += f"; of {np.isfinite(gap).sum()} and {np.isfinite(theirs).sum()} pairs; gaps differ by {differ:.0e} m"
        wanted = GAPS[name]
        residual = None if wanted is None else float(np.abs(gap - wanted).max())
        for case in ("f64", "f32"):
            row = Row(f"{name}, a pair, {case}", times.of(case), beside="MuJoCo", ratio=times.ratio(case, "MuJoCo"))
            if case == "f64":
                row.note, row.residual, row.allowed = note, residual, 1e-8
            rows.append(row)
        rows.append(Row(f"{name}, a pair, MuJoCo", times.of("MuJoCo")))
    settings = {"pairs": PAIRS, "margin": MARGIN, "rounds": much.rounds}
    return Report("boxes", QUESTION, settings, rows, found).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
