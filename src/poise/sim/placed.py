"""Bodies of a world where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.inputs import checked_vector
from poise.dynamics.measures import bodies
from poise.motion.rotations import quat_from_matrix, quat_normalize, quat_to_matrix

if TYPE_CHECKING:
    from poise.sim.world import World

Array = NDArray[Any]


class Pose(NamedTuple):
    """Of a body in the world."""

    position: Array
    """(3,) m."""
    quat_wxyz: Array
    """(4,) unit."""


@dataclass(frozen=True)
class PlacedBody:
    """A body of a world; what it tells is as the world is when it is asked."""

    world: World
    index: int

    @property
    def name(self) -> str:
        """Its full name."""
        return self.world.model.body_names[self.index]

    @property
    def position(self) -> Array:
        """(3,) of its origin; m."""
        return np.array(bodies(self.world.model, self.world.q).position[self.index])

    @property
    def rotation(self) -> Array:
        """(3, 3) its axes in the world."""
        return np.array(bodies(self.world.model, self.world.q).rotation[self.index])

    @property
    def pose(self) -> Pose:
        """Where its origin is (m), and how it is turned (w, x, y, z)."""
        return Pose(self.position, quat_from_matrix(self.rotation))

    @property
    def velocity(self) -> Array:
        """(3,) of its origin, in world axes; m/s."""
        return np.array(bodies(self.world.model, self.world.q, self.world.v).twist[self.index, 3:])

    @property
    def angular_velocity(self) -> Array:
        """(3,) in world axes; rad/s."""
        return np.array(bodies(self.world.model, self.world.q, self.world.v).twist[self.index, :3])

    @property
    def asleep(self) -> bool:
        """Whether it stays as it is until something stirs it; see `Reduced.sleeping`."""
        return bool(self.world.asleep[self.index])

    def place(
        self,
        position: ArrayLike | None = None,
        quat_wxyz: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        angular_velocity: ArrayLike | None = None,
    ) -> None:
        """Put a body with a free joint somewhere; what is left out stays. Velocities are in world axes; m, m/s, rad/s.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball")
        >>> world = scene.build()
        >>> world.body("ball").place(position=(0, 0, 3), angular_velocity=(0, 4, 0))
        >>> world.body("ball").position.tolist(), world.body("ball").angular_velocity.tolist()
        ([0.0, 0.0, 3.0], [0.0, 4.0, 0.0])
        """
        model, world = self.world.model, self.world
        joints = np.flatnonzero(model.joint_body == self.index)
        if len(joints) != 1 or model.joint_kinds[joints[0]] != "free":
            raise ValueError(f'body "{self.name}" has no free joint: set the coordinates of its joints in world.q')
        j, d = int(model.joint_q_start[joints[0]]), int(model.joint_v_start[joints[0]])
        if position is not None:
            world.q[j : j + 3] = checked_vector("position", position)
        spin = quat_to_matrix(world.q[j + 3 : j + 7]) @ world.v[d + 3 : d + 6]
        if quat_wxyz is not None:
            world.q[j + 3 : j + 7] = quat_normalize(np.asarray(quat_wxyz, np.float64))
        if velocity is not None:
            world.v[d : d + 3] = checked_vector("velocity", velocity)
        if angular_velocity is not None:
            spin = checked_vector("angular_velocity", angular_velocity)
        world.v[d + 3 : d + 6] = quat_to_matrix(world.q[j + 3 : j + 7]).T @ spin
