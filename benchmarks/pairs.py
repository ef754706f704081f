"""Time of the contacts of two shapes, beside MuJoCo: boxes, cylinders, ellipsoids and hulls, and capsules on them.

Each case has 256 pairs of shapes of 0.2 to 2 m, all with a margin of 1 cm. MuJoCo gets them as contact pairs, so that
it tests these and no others. Crossed shapes overlap by 1 mm in any pose; near ones have a gap of 5 mm; far ones more
than the margin, though their bounding spheres overlap; resting boxes overlap by 1 mm face on face.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure

from poise.collision import collision_layout
from poise.collision.collision_layout import CONTACTS, MANIFOLD, MOST_TOUCHES, PLACES, SHAPES, pairs_block
from poise.collision.detector import Collider
from poise.collision.narrowphase.dispatch import collide
from poise.kernel.jit import entry
from poise.kernel.memory import F32, F64, Width
from poise.model.scene import Scene
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Shape
from poise.motion.rotations import quat_normalize, quat_to_matrix

QUESTION = "how long the touches of two shapes take"
PAIRS, MARGIN, CORNERS = 256, 0.01, 24
_collide = entry(collide, SHAPES, PLACES, collision_layout.PAIRS, CONTACTS, MANIFOLD, extra=("float64",))
GAPS = {"crossed": -1e-3, "near": 5e-3, "far": None}
RESTING = -1e-3
KINDS = (
    ("box", "box"),
    ("capsule", "cylinder"),
    ("box", "cylinder"),
    ("cylinder", "cylinder"),
    ("ellipsoid", "ellipsoid"),
    ("box", "hull"),
    ("hull", "hull"),
)


def corners(half: np.ndarray) -> np.ndarray:
    """(24, 3) points on an ellipsoid: the corners of a hull."""
    points = np.random.default_rng(int(1e6 * half[0])).normal(size=(CORNERS, 3))
    points *= half / np.linalg.norm(points, axis=1, keepdims=True)
    return points - 0.5 * (points.min(axis=0) + points.max(axis=0))


def shape(kind: str, half: np.ndarray) -> Shape:
    """A shape for Poise."""
    x, y, z = (float(side) for side in half)
    rules = {"margin": 0.5 * MARGIN, "group": 1, "mask": 0}
    if kind == "box":
        return Box((2 * x, 2 * y, 2 * z), **rules)
    if kind == "capsule":
        return Capsule(x, 2 * z, **rules)
    if kind == "cylinder":
        return Cylinder(x, 2 * z, **rules)
    if kind == "ellipsoid":
        return Ellipsoid((2 * x, 2 * y, 2 * z), **rules)
    return ConvexMesh(corners(half), mass=1.0, **rules)


class Poise:
    """Pairs of shapes in Poise."""

    def __init__(self, kinds: tuple[str, str], half: np.ndarray, width: Width = F64) -> None:
        scene = Scene()
        for k in range(PAIRS):
            for b in range(2):
                scene.add(shape(kinds[b], half[k, b]), name=f"{k}/{b}")
        model = scene.compile()
        self.reach = model.solids.reach.reshape(PAIRS, 2)
        self.collider = Collider(model, width, room=MOST_TOUCHES * PAIRS)
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


def geom(kind: str, name: str, half: np.ndarray) -> tuple[str, str]:
    """A shape for MuJoCo: its geom, and its mesh where it has one."""
    x, y, z = half
    sizes = {"box": f"{x} {y} {z}", "ellipsoid": f"{x} {y} {z}", "capsule": f"{x} {z}", "cylinder": f"{x} {z}"}
    start = f"<geom name='{name}' contype='0' conaffinity='0'"
    if kind in sizes:
        return f"{start} type='{kind}' size='{sizes[kind]}'/>", ""
    points = " ".join(map(str, corners(half).reshape(-1)))
    return f"{start} type='mesh' mesh='{name}'/>", f"<mesh name='{name}' vertex='{points}'/>"


class Mujoco:
    """The same in MuJoCo."""

    def __init__(self, kinds: tuple[str, str], half: np.ndarray) -> None:
        import mujoco

        shapes = [geom(kinds[b], f"{k}-{b}", half[k, b]) for k in range(PAIRS) for b in range(2)]
        bodies = "".join(f"<body><freejoint/>{text}</body>" for text, _ in shapes)
        meshes = "".join(text for _, text in shapes)
        pairs = "".join(f"<pair geom1='{k}-0' geom2='{k}-1' margin='{MARGIN}'/>" for k in range(PAIRS))
        text = (
            f"<mujoco><size memory='256M'/><asset>{meshes}</asset><worldbody>{bodies}</worldbody>"
            f"<contact>{pairs}</contact></mujoco>"
        )
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


Poses = tuple[np.ndarray, np.ndarray]


def rest(half: np.ndarray) -> Poses:
    """Boxes face on face."""
    rng = np.random.default_rng(0)
    position, quat = np.zeros((PAIRS, 2, 3)), rng.normal(size=(PAIRS, 2, 4))
    quat[:, 0] = (1.0, 0.0, 0.0, 0.0)
    quat[:, 1, 1:3] = 0.0
    position[:, 1] = rng.uniform(-0.7, 0.7, (PAIRS, 3)) * half[:, 0]
    position[:, 1, 2] = half[:, 0, 2] + half[:, 1, 2] + RESTING
    return position, quat_normalize(quat)


def toss(wanted: float | None, shapes: Poise) -> Poses:
    """Shapes in any pose: separated along a random direction at first, then moved along the normals found to a gap."""
    rng = np.random.default_rng(0)
    position, quat = np.zeros((PAIRS, 2, 3)), quat_normalize(rng.normal(size=(PAIRS, 2, 4)))
    along = rng.normal(size=(PAIRS, 3))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    reach = shapes.reach.sum(axis=1)
    if wanted is None:
        position[:, 1] = along * (0.97 * reach)[:, None]
        return position, quat
    position[:, 1] = along * (0.3 * reach)[:, None]
    for _ in range(60):
        shapes.place(position, quat)
        shapes.touch(10.0)
        gap, normal = shapes.nearest()
        position[:, 1] += normal * (wanted - gap)[:, None]
    return position, quat


def compare(name: str, engines: dict[str, Poise | Mujoco], where: Poses, wanted: float | None, rounds: object) -> list:
    """Rows of one case, and the gaps found."""
    double, peer = engines["f64"], engines["MuJoCo"]
    for engine in engines.values():
        engine.place(*where)
        engine.run(1)
    gap, theirs = double.nearest()[0], peer.nearest()
    both = np.isfinite(gap) & np.isfinite(theirs)
    times = measure([Case(case, one.run, worlds=PAIRS) for case, one in engines.items()], rounds)
    differ = np.abs(gap[both] - theirs[both]).max(initial=0.0)
    note = f"{int(double.collider.c.count[0]) / PAIRS:.1f} touches a pair, MuJoCo {peer.data.ncon / PAIRS:.1f}"
    note += f"; of {np.isfinite(gap).sum()} and {np.isfinite(theirs).sum()} pairs; gaps differ by {differ:.0e} m"
    rows = []
    for case in ("f64", "f32"):
        row = Row(f"{name}, {case}", times.of(case), beside="MuJoCo", ratio=times.ratio(case, "MuJoCo"))
        if case == "f64":
            residual = None if wanted is None else float(np.abs(gap - wanted).max())
            row.note, row.residual, row.allowed = note, residual, 1e-8
        rows.append(row)
    return [*rows, Row(f"{name}, MuJoCo", times.of("MuJoCo"))], gap


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options, rounds=30)
    half = np.random.default_rng(1).uniform(0.1, 1.0, (PAIRS, 2, 3))
    rows, found = [], []
    for kinds in KINDS:
        name = "-".join(kinds)
        engines = {"f64": Poise(kinds, half), "f32": Poise(kinds, half, F32), "MuJoCo": Mujoco(kinds, half)}
        cases = {case: (toss(gap, engines["f64"]), gap) for case, gap in GAPS.items()}
        if kinds == ("box", "box"):
            cases["resting"] = rest(half), RESTING
        for case, (where, wanted) in cases.items():
            more, gap = compare(f"{name} {case}", engines, where, wanted, much)
            rows += more
            found.append(gap)
    settings = {"pairs": PAIRS, "margin": MARGIN, "corners of hulls": CORNERS, "rounds": much.rounds}
    return Report("pairs", QUESTION, settings, rows, found).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
