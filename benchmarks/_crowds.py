"""Many balls that fall into a box: a model of them, and frames of their motion."""

from __future__ import annotations

from typing import Any

import numpy as np

import poise
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene

RADIUS = 0.05
FILL = 0.5
"""How much of the box the balls' own boxes fill."""
STEP = 1.0 / 240.0
WALLS: tuple[Any, ...] = ((0.5**0.5, 0.0, 0.5**0.5, 0.0), (0.5**0.5, -(0.5**0.5), 0.0, 0.0))
"""Planes with normals along x and y."""


def balls(n: int) -> Model:
    """N of them, a floor and two walls."""
    bodies = [Body(f"ball{k}", joints=[Joint("free")], shapes=[poise.sphere(RADIUS)]) for k in range(n)]
    scene = Scene()
    scene.add_ground()
    for k, turn in enumerate(WALLS):
        scene.add(poise.plane(quat_wxyz=turn), fixed=True, name=f"wall{k}")
    scene.bodies += bodies
    return scene.compile()


def frames(n: int, count: int) -> np.ndarray:
    """(count, n, 3) centres, step by step: a loose heap that falls and swirls."""
    rng = np.random.default_rng(0)
    side = (n * (2 * RADIUS) ** 3 / FILL) ** (1 / 3)
    start, speed = rng.uniform(0.5 * RADIUS, side, (n, 3)), rng.normal(scale=0.5, size=(n, 3))
    time = STEP * np.arange(count)[:, None, None]
    fall = 0.5 * 9.81 * (time % 0.1) ** 2
    return np.maximum(start + speed * np.sin(5.0 * time) / 5.0 - fall * (0.0, 0.0, 1.0), 0.5 * RADIUS)


class BallPeer:
    """MuJoCo with the same balls, floor and walls."""

    def __init__(self, n: int) -> None:
        import mujoco

        self.mujoco = mujoco
        planes = "".join(
            f'<geom type="plane" size="1 1 1" quat="{" ".join(map(str, turn))}"/>' for turn in ((1, 0, 0, 0), *WALLS)
        )
        ball = f'<body><freejoint/><geom type="sphere" size="{RADIUS}"/></body>'
        text = f"<mujoco><size memory='1G'/><worldbody>{planes}{ball * n}</worldbody></mujoco>"
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)

    def place(self, centres: np.ndarray) -> None:
        """Put the balls somewhere."""
        self.data.qpos.reshape(-1, 7)[:, :3] = centres
        self.mujoco.mj_kinematics(self.model, self.data)
        self.mujoco.mj_comPos(self.model, self.data)

    def run(self, n: int) -> None:
        """Find the contacts, n times."""
        find = self.mujoco.mj_collision
        for _ in range(n):
            find(self.model, self.data)

    def rows(self) -> np.ndarray:
        """(contacts, 6) both shapes, distance and place, sorted."""
        found = self.data.contact
        return in_order(np.c_[found.geom, found.dist, found.pos])


def in_order(rows: np.ndarray) -> np.ndarray:
    """Contacts sorted by the numbers of their shapes, the lesser first, and distance."""
    rows = rows.reshape(-1, 6)
    rows[:, :2].sort(axis=1)
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
