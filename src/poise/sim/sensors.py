"""Sensors: force plates, contact sensors, joint sensors, inertial units. `read(world)` returns the last step's reading.

A sensor is also a function of the world that returns its values as an array, so that it can be a signal of `world.run`.
Names are looked up in the world at each reading, so that one sensor can read any number of worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.argument_checks import body_number, checked_vector
from poise.dynamics.functions import inverse_dynamics
from poise.dynamics.state_queries import bodies, jacobian
from poise.dynamics.workspace import workspace
from poise.model.errors import resolve_name
from poise.model.model import Model
from poise.motion.rotations import quat_normalize, quat_to_matrix
from poise.sim.step_report import NO_CONTACTS, Pushing, pushing
from poise.sim.step_result import passive_forces, row_forces

if TYPE_CHECKING:
    from poise.sim.world import World

Array = NDArray[Any]
Vector = Sequence[float]
Names = str | Sequence[str]


def last_contacts(world: World) -> Pushing:
    """Contacts of the last step; empty before the first step and after a state was assigned."""
    last = world._last
    return pushing(world._stepper, last.h) if last.done else NO_CONTACTS


# ---- contacts --------------------------------------------------------------------------------------------------------


class PlateReading(NamedTuple):
    """A reading of a force plate."""

    force: Array
    """(3,) ground reaction force, of the plate on the bodies that stand on it; N."""
    moment: Array
    """(3,) moment of these forces about the plate's origin; N·m."""
    centre: Array
    """(3,) centre of pressure, in the plane of the plate; NaN without pressure; m."""
    free_moment: float
    """Free moment about the plate's normal, at the centre of pressure; N·m."""


@dataclass(frozen=True)
class ForcePlate:
    """A force plate: the ground reaction of all contacts of a body, or of some of its shapes.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.box(0.4, 0.2, 0.2, mass=3.0), name="box", position=(1, 2, 0.1))
    >>> world = scene.build(poise.Reduced(tolerance=1e-9))
    >>> world.step(10)
    >>> plate = ForcePlate("ground").read(world)
    >>> float(plate.force[2].round(3)), plate.centre.round(6).tolist()
    (29.43, [1.0, 2.0, 0.0])
    """

    body: str
    """The body that carries the plate."""
    shapes: Names | None = None
    """Only these shapes of it."""
    of: Names | None = None
    """Only contacts with these bodies count."""
    origin: Vector = (0.0, 0.0, 0.0)
    """A point of the plate, in the world; m."""
    normal: Vector = (0.0, 0.0, 1.0)
    """Of its plane, out of the plate."""

    def read(self, world: World) -> PlateReading:
        """The reading of the last step."""
        origin, up = checked_vector("origin", self.origin), _direction("normal", self.normal)
        points, forces = _on(world, self.body, self.shapes, self.of)
        force = -forces.sum(axis=0)
        moment = -np.cross(points - origin, forces).sum(axis=0)
        press = float(force @ up)
        if press <= 0.0:
            return PlateReading(force, moment, np.full(3, np.nan), 0.0)
        arm = np.cross(up, moment) / press  # of the points of the plane, the one about which no moment is in it
        free = float((moment - np.cross(arm, force)) @ up)
        return PlateReading(force, moment, origin + arm, free)

    def __call__(self, world: World) -> Array:
        """(9,) force, moment, centre of pressure."""
        reading = self.read(world)
        return np.concatenate((reading.force, reading.moment, reading.centre))


class TouchReading(NamedTuple):
    """A reading of a contact sensor."""

    touching: bool
    force: Array
    """(3,) sum of all contact forces on the body, in world axes; N."""
    pressure: float
    """Sum of the normal forces; N."""
    contacts: int
    """Number of contacts that push."""


@dataclass(frozen=True)
class ContactSensor:
    """Contact forces on a body, or on some of its shapes.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
    >>> world = scene.build()
    >>> world.step()
    >>> ContactSensor("ball").read(world).touching, round(ContactSensor("ball").read(world).pressure, 2)
    (True, 19.62)
    """

    body: str
    shapes: Names | None = None
    """Only these shapes of it."""
    of: Names | None = None
    """Only contacts with these bodies count; all by default."""

    def read(self, world: World) -> TouchReading:
        """The reading of the last step."""
        _, forces = _on(world, self.body, self.shapes, self.of)
        pressures = _normal_forces(world, self.body, self.shapes, self.of)
        count = int(np.count_nonzero(pressures > 0.0))
        return TouchReading(count > 0, forces.sum(axis=0), float(pressures.sum()), count)

    def __call__(self, world: World) -> Array:
        """(5,) force, pressure, and 1 where it touches."""
        reading = self.read(world)
        return np.array((*reading.force, reading.pressure, float(reading.touching)))


def _chosen(
    model: Model, contacts: Pushing, body: Names, shapes: Names | None, of: Names | None
) -> tuple[Array, Array]:
    """(n,) bool, twice: contacts whose shape A (or B) belongs to the body and shapes, and the other one to `of`."""
    own = np.isin(model.solids.body, [body_number(model, name) for name in _listed(body)])
    if shapes is not None:
        names = [name for name, mine in zip(model.solids.names, own, strict=True) if mine]
        wanted = {resolve_name("shape", name, names) for name in _listed(shapes)}
        own &= np.array([name in wanted for name in model.solids.names], np.bool_)
    others = np.ones(len(own), np.bool_)
    if of is not None:
        others = np.isin(model.solids.body, [body_number(model, name) for name in _listed(of)])
    a, b = contacts.shapes.T
    return own[a] & others[b], own[b] & others[a]


def _on(world: World, body: Names, shapes: Names | None, of: Names | None) -> tuple[Array, Array]:
    """Points (n, 3) and forces (n, 3) on a body; m, N."""
    contacts = last_contacts(world)
    is_a, is_b = _chosen(world.model, contacts, body, shapes, of)
    points = np.concatenate((contacts.point[is_a], contacts.point[is_b]))
    return points, np.concatenate((-contacts.force[is_a], contacts.force[is_b]))


def _normal_forces(world: World, body: Names, shapes: Names | None, of: Names | None) -> Array:
    contacts = last_contacts(world)
    is_a, is_b = _chosen(world.model, contacts, body, shapes, of)
    along = np.einsum("ni,ni->n", contacts.force, contacts.normal)
    return np.concatenate((along[is_a], along[is_b]))


# ---- joints ----------------------------------------------------------------------------------------------------------


class JointReading(NamedTuple):
    """A reading of a joint sensor."""

    torque: Array
    """(degrees of freedom of the joint) forces along its coordinates: applied, springs, dampers, drives, limits,
    dry friction; N or N·m."""
    force: Array
    """(3,) force of the parent on the body through all joints between them, in world axes; N."""
    moment: Array
    """(3,) moment of the parent on the body about the joint's anchor, in world axes; N·m."""
    anchor: Array
    """(3,) m."""


@dataclass(frozen=True)
class JointSensor:
    """Torques and reaction of a joint, from inverse dynamics at the accelerations of the step.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.sphere(0.1, mass=2.0, position=(0, 0, -1)), axis="y", name="arm")
    >>> world = scene.build()
    >>> world.step()
    >>> JointSensor("arm").read(world).force.round(6).tolist()
    [0.0, 0.0, 19.62]
    """

    joint: str

    def read(self, world: World) -> JointReading:
        """The reading of the last step."""
        model, last = world.model, world._last
        joint = model.joint_index(self.joint)
        dofs = slice(int(model.joint_v_start[joint]), int(model.joint_v_start[joint + 1]))
        wrenches, along = row_forces(world._stepper, last)
        passive = passive_forces(world._space.w, last)
        link = int(model.body_link[model.joint_body[joint]])
        acts = wrenches + last.forces
        inverse_dynamics(model, last.q, last.v, last.a, forces=acts)
        w = workspace(model).w
        moment, force = w.p[link, :3].copy(), w.p[link, 3:].copy()  # about the origin of the tree
        primitive = int(np.flatnonzero(model.primitive_v_start == dofs.start)[0])
        arm = w.r[link] + w.R[link].reshape(3, 3) @ model.primitive_anchor[primitive]
        anchor = w.origin[int(model.link_root[link])] + arm
        torque = (last.tau + passive + along)[dofs]
        return JointReading(torque, force, moment - np.cross(arm, force), anchor)

    def __call__(self, world: World) -> Array:
        """(degrees of freedom + 6,) torques, force, moment."""
        reading = self.read(world)
        return np.concatenate((reading.torque, reading.force, reading.moment))


# ---- motion ----------------------------------------------------------------------------------------------------------


class ImuReading(NamedTuple):
    """A reading of an inertial unit, in its own axes."""

    specific_force: Array
    """(3,) specific force over the last step, acceleration minus gravity: +g upward at rest, 0 in free fall; m/s²."""
    angular_rate: Array
    """(3,) angular velocity at the end of the step; rad/s."""


@dataclass(frozen=True)
class Imu:
    """Accelerometers and gyroscopes at a point of a body.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.box(0.2, 0.2, 0.2), name="phone", position=(0, 0, 0.1))
    >>> world = scene.build()
    >>> world.step(5)
    >>> float(Imu("phone").read(world).specific_force[2].round(3))
    9.81
    """

    body: str
    position: Vector = (0.0, 0.0, 0.0)
    """In the body's frame; m."""
    quat_wxyz: Vector = (1.0, 0.0, 0.0, 0.0)
    """Its axes, in the body's."""

    def read(self, world: World) -> ImuReading:
        """The reading of the last step."""
        model, last = world.model, world._last
        site, axes = checked_vector("position", self.position), quat_to_matrix(_turn("quat_wxyz", self.quat_wxyz))
        body = body_number(model, self.body)
        J = jacobian(model, last.q, body, site, last.v)
        acceleration = (J.J @ last.a + J.rate @ last.v)[3:]
        turned = bodies(model, last.q).rotation[body] @ axes
        now = bodies(model, world.q, world.v)
        return ImuReading(
            turned.T @ (acceleration - model.gravity), (now.rotation[body] @ axes).T @ now.twist[body, :3]
        )

    def __call__(self, world: World) -> Array:
        """(6,) specific force, angular rate."""
        return np.concatenate(self.read(world))


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else [*names]


def _direction(name: str, value: Vector) -> Array:
    vector = checked_vector(name, value)
    if not vector.any():
        raise ValueError(f"{name} is (0, 0, 0); it must point somewhere")
    return np.asarray(vector / np.linalg.norm(vector))


def _turn(name: str, value: Vector) -> Array:
    quat = np.asarray(value, np.float64)
    if quat.shape != (4,) or not np.isfinite(quat).all() or not quat.any():
        raise ValueError(f"{name} is {value!r}; it must be a rotation (w, x, y, z)")
    return quat_normalize(quat)
