"""The humanoid of the environments: its model, and measures of its pose for all worlds at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.characters.humanoid import humanoid
from poise.dynamics.state_queries import Bodies, Momentum, bodies, momentum
from poise.gym.joints import Joints
from poise.model.scene import Scene
from poise.model.shape_arrays import Solid
from poise.motion.rotations import quat_to_matrix

Array = NDArray[Any]
ENDS = ("hand_l", "hand_r", "foot_l", "foot_r")
"""Bodies whose origins (wrists and ankles) are the ends of limbs."""


class Figure:
    """A humanoid on the ground, with springs in its joints."""

    def __init__(self, height: float = 1.75, mass: float = 70.0) -> None:
        scene = Scene()
        scene.add_ground(friction=0.9)
        scene.add(humanoid(height=height, mass=mass), name="hero")
        self.scene, self.model = scene, scene.compile()
        self.joints = Joints(self.model, mass * height / (70.0 * 1.75))
        self.mass = float(self.model.link_mass.sum())
        self.weight = 9.81 * self.mass
        self.hips = float(self.model.q_rest[2])
        """Height of the pelvis in the rest pose; m."""
        self.pelvis, self.torso = self.body("pelvis"), self.body("torso")
        self.ends = np.array([self.body(name) for name in ENDS])
        self.undersides = Undersides(self)

    def body(self, name: str) -> int:
        """Index of a body of the figure."""
        return int(self.model.body_index(f"hero/{name}"))

    def look(self, q: Array, v: Array) -> Seen:
        """Measure poses (n, nq) and velocities (n, nv), in float32."""
        return Seen(
            self,
            q,
            v,
            bodies(self.model, q, v, dtype=np.float32),
            momentum(self.model, q, v, dtype=np.float32),
        )


@dataclass(frozen=True)
class Seen:
    """Measures of n poses."""

    figure: Figure
    q: Array
    """(n, nq)"""
    v: Array
    """(n, nv)"""
    bodies: Bodies
    momentum: Momentum

    @property
    def com(self) -> Array:
        """(n, 3) centres of mass; m."""
        return self.momentum.com

    @cached_property
    def com_velocity(self) -> Array:
        """(n, 3) m/s."""
        return self.momentum.linear / np.float32(self.figure.mass)

    @property
    def ends(self) -> Array:
        """(n, 4, 3) wrists and ankles; m."""
        return self.bodies.position[:, self.figure.ends]

    @property
    def feet(self) -> Array:
        """(n, 3) between the ankles; m."""
        return 0.5 * (self.ends[:, 2] + self.ends[:, 3])

    @property
    def up(self) -> Array:
        """(n,) vertical component of the trunk's axis: 1 upright, 0 lying."""
        return self.bodies.rotation[:, self.figure.torso, 2, 2]

    @cached_property
    def heading(self) -> Array:
        """(n, 2) unit vectors of the pelvises' facing directions, projected onto the ground."""
        ahead = self.bodies.rotation[:, self.figure.pelvis, :2, 0]
        length = np.sqrt(ahead[:, 0] ** 2 + ahead[:, 1] ** 2)
        flat = length < 1e-6  # it faces straight up or down
        ahead = np.where(flat[:, None], np.array((1.0, 0.0), np.float32), ahead)
        return np.asarray(ahead / np.where(flat, np.float32(1), length)[:, None])

    def ahead(self, vectors: Array) -> Array:
        """World vectors (n, …, 3) in the axes of the heading: ahead, left, up."""
        c, s = (self.heading[:, k].reshape(-1, *[1] * (vectors.ndim - 2)) for k in (0, 1))
        x, y, z = (vectors[..., k] for k in range(3))
        return np.stack((c * x + s * y, c * y - s * x, z), axis=-1)

    def touching(self, allowed: Array | None = None) -> Array:
        """(n,) whether a shape other than the feet and those in `allowed` touches the ground."""
        figure = self.figure
        down = figure.undersides.heights(self.bodies) < figure.undersides.near
        return np.asarray((down if allowed is None else down & ~allowed).any(axis=1))


class Undersides:
    """Heights of the lowest points of shapes, without the feet."""

    near = 0.005
    """A shape whose lowest point is below this height touches the ground; m."""

    def __init__(self, figure: Figure) -> None:
        model, solids = figure.model, figure.model.solids
        feet = [figure.body("foot_l"), figure.body("foot_r")]
        chosen = np.flatnonzero((solids.link >= 0) & ~np.isin(solids.body, feet))
        self.bodies = solids.body[chosen]
        """(k,) the body of each shape."""
        in_link = quat_to_matrix(model.body_quat_wxyz[self.bodies])
        apart = solids.position[chosen] - model.body_position[self.bodies]
        self._centre = np.einsum("kji,kj->ki", in_link, apart).astype(np.float32)
        turned = np.einsum("kji,kjl->kil", in_link, quat_to_matrix(solids.quat_wxyz[chosen]))
        self._turned = turned.astype(np.float32)
        self._kind, self._size = solids.kind[chosen], solids.size[chosen].astype(np.float32)

    def heights(self, placed: Bodies) -> Array:
        """(n, k) of each shape's lowest point; m."""
        up = [placed.rotation[:, self.bodies, 2, k] for k in range(3)]
        centre = placed.position[:, self.bodies, 2] + _inner(up, self._centre)
        # the vertical in the axes of each shape
        x, y, z = (_inner(up, self._turned[:, :, k]) for k in range(3))
        a, b, c = self._size.T
        rod = a + b * np.abs(z)
        box = a * np.abs(x) + b * np.abs(y) + c * np.abs(z)
        egg = np.sqrt((a * x) ** 2 + (b * y) ** 2 + (c * z) ** 2)
        down = np.where(self._kind == Solid.CAPSULE, rod, np.where(self._kind == Solid.BOX, box, egg))
        return np.asarray(centre - down)


def _inner(up: list[Array], columns: Array) -> Array:
    """(n, k) inner products with (k, 3); NumPy's own sums over three numbers are far slower."""
    return np.asarray(up[0] * columns[:, 0] + up[1] * columns[:, 1] + up[2] * columns[:, 2])
