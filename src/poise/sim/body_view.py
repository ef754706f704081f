"""Views of bodies of a world: pose, velocity, placing and kinematic motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.argument_checks import checked_step, checked_vector
from poise.dynamics.state_queries import bodies
from poise.model.joints import Prescribed
from poise.motion.rotations import (
    quat_conjugate,
    quat_from_matrix,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_to_matrix,
)

if TYPE_CHECKING:
    from poise.sim.world import World

Array = NDArray[Any]


def checked_quaternion(quat_wxyz: ArrayLike) -> Array:
    """(4,) unit."""
    quat = np.array(checked_vector("quat_wxyz", quat_wxyz, 4))
    if not quat.any():
        raise ValueError("quat_wxyz must be a rotation (w, x, y, z), found (0, 0, 0, 0)")
    return quat_normalize(quat)


class Pose(NamedTuple):
    """Pose of a body in the world."""

    position: Array
    """(3,) m."""
    quat_wxyz: Array
    """(4,) unit."""


@dataclass(frozen=True)
class PlacedBody:
    """A view of a body of a world; properties are evaluated at the world's current state."""

    world: World
    index: int

    @property
    def name(self) -> str:
        """Its full name."""
        return self.world.model.body_names[self.index]

    @property
    def position(self) -> Array:
        """(3,) position of the body's origin; m."""
        return np.array(bodies(self.world.model, self.world.q).position[self.index])

    @property
    def rotation(self) -> Array:
        """(3, 3) rotation matrix; the columns are the body's axes in the world."""
        return np.array(bodies(self.world.model, self.world.q).rotation[self.index])

    @property
    def pose(self) -> Pose:
        """Position of the origin (m) and orientation as a quaternion (w, x, y, z)."""
        return Pose(self.position, quat_from_matrix(self.rotation))

    @property
    def velocity(self) -> Array:
        """(3,) velocity of the origin, in world axes; m/s."""
        return np.array(bodies(self.world.model, self.world.q, self.world.v).twist[self.index, 3:])

    @property
    def angular_velocity(self) -> Array:
        """(3,) angular velocity in world axes; rad/s."""
        return np.array(bodies(self.world.model, self.world.q, self.world.v).twist[self.index, :3])

    @property
    def asleep(self) -> bool:
        """Whether the body sleeps; see `Reduced.sleeping`."""
        return bool(self.world.asleep[self.index])

    def place(
        self,
        position: ArrayLike | None = None,
        quat_wxyz: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        angular_velocity: ArrayLike | None = None,
    ) -> None:
        """Set pose and velocity of a body with a free joint, or of a kinematic body without a path. Omitted arguments
        leave their part unchanged.

        Velocities are in world axes; m, m/s, rad/s. A kinematic body continues at its velocity, which is initially 0.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball")
        >>> world = scene.build()
        >>> world.body("ball").place(position=(0, 0, 3), angular_velocity=(0, 4, 0))
        >>> world.body("ball").position.tolist(), world.body("ball").angular_velocity.tolist()
        ([0.0, 0.0, 3.0], [0.0, 4.0, 0.0])
        """
        world, (j, d) = self.world, self._free_joint()
        if position is not None:
            world.q[j : j + 3] = checked_vector("position", position)
        spin = quat_to_matrix(world.q[j + 3 : j + 7]) @ world.v[d + 3 : d + 6]
        if quat_wxyz is not None:
            world.q[j + 3 : j + 7] = checked_quaternion(quat_wxyz)
        if velocity is not None:
            world.v[d : d + 3] = checked_vector("velocity", velocity)
        if angular_velocity is not None:
            spin = checked_vector("angular_velocity", angular_velocity)
        world.v[d + 3 : d + 6] = quat_to_matrix(world.q[j + 3 : j + 7]).T @ spin

    def move_kinematic(
        self, position: ArrayLike | None = None, quat_wxyz: ArrayLike | None = None, dt: float | None = None
    ) -> None:
        """Set the velocity that moves a kinematic body to a pose in `dt` seconds; `dt` defaults to one step.

        An omitted position or orientation stays unchanged. Contacts and loop joints use the velocity: a platform
        carries the bodies that stand on it, whereas `place` would move it away from under them. The body keeps that
        velocity until another one is set.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.box(1, 1, 0.1), name="lift", kinematic=True)
        >>> world = scene.build(dt=0.01)
        >>> world.body("lift").move_kinematic((0, 0, 0.5), dt=1.0)
        >>> world.step(100)
        >>> world.body("lift").position.round(9).tolist(), world.body("lift").velocity.tolist()
        ([0.0, 0.0, 0.5], [0.0, 0.0, 0.5])
        """
        world, (j, d) = self.world, self._free_joint()
        if world.model.dof_prescribed[d] == Prescribed.NOT:
            raise ValueError(f'body "{self.name}" is moved by forces: a kinematic body can be moved, others placed')
        time = world.dt if dt is None else checked_step(dt)
        if time <= 0.0:
            raise ValueError(f"dt is {dt}; it must be a positive time in seconds")
        target = world.q[j : j + 3] if position is None else checked_vector("position", position)
        quat = world.q[j + 3 : j + 7]
        aim = quat if quat_wxyz is None else checked_quaternion(quat_wxyz)
        world.v[d : d + 3] = (target - world.q[j : j + 3]) / time
        world.v[d + 3 : d + 6] = quat_log(quat_multiply(quat_conjugate(quat), aim)) / time

    def _free_joint(self) -> tuple[int, int]:
        """First indices of the free joint's coordinates and velocities; raises if they cannot be written."""
        model = self.world.model
        joints = np.flatnonzero(model.joint_body == self.index)
        if len(joints) != 1 or model.joint_kinds[joints[0]] != "free":
            raise ValueError(f'body "{self.name}" has no free joint: set the coordinates of its joints in world.q')
        j, d = int(model.joint_q_start[joints[0]]), int(model.joint_v_start[joints[0]])
        if model.dof_prescribed[d] == Prescribed.PATH:
            raise ValueError(f'body "{self.name}" follows a path; a kinematic body without one can be placed and moved')
        if model.dof_prescribed[d] != Prescribed.NOT and model.body_parent[self.index] >= 0:
            above = model.body_names[model.body_parent[self.index]]
            raise ValueError(f'body "{self.name}" has coordinates in the frame of "{above}": set them in world.q')
        return j, d
