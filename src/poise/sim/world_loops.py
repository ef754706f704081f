"""Loop joints of a world: those of the scene, and those that `attach` adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.loop_layout import TURN_X
from poise.constraints.row_parts.orientation_parts import angle
from poise.constraints.row_parts.part_bodies import body_at
from poise.constraints.row_parts.point_parts import along
from poise.dynamics.state_queries import bodies
from poise.kernel.quat import quaternion
from poise.kernel.vec import Mat3, Vec3, column, transpose
from poise.model.build import parse_axis
from poise.model.errors import did_you_mean, resolve_name
from poise.model.joints import OTHER_NAMES
from poise.model.loops import LoopJoint, Parts, compile_loop
from poise.model.scene import Loop

if TYPE_CHECKING:
    from poise.formulations.constraint_set import Extras
    from poise.sim.actuation import Joined

Array = NDArray[Any]


@dataclass(frozen=True)
class LoopReport:
    """A loop joint that was active in the last step, or broke in it."""

    name: str
    force: Array
    """(3,) constraint force on the second body at the joint's point, in world axes; N."""
    torque: Array
    """(3,) constraint torque on the second body, in world axes; N·m."""
    broke: bool
    """Whether the joint broke in the step."""


def loop_reports(extras: Extras) -> list[LoopReport]:
    """Reports of all loop joints that were active in the last step."""
    b = extras.loops
    return [
        LoopReport(joint.name, b.force[k].copy(), b.torque[k].copy(), bool(b.broke[k]))
        for k, joint in enumerate(extras.joints)
        if b.active[k] or b.broke[k]
    ]


def loop_number(world: Joined, name: str) -> int:
    """A loop joint's index, from its name."""
    names = [joint.name for joint in world._stepper.extras.joints]
    return names.index(resolve_name("loop", name, names))


class WorldLoop:
    """A loop joint of a world.

    >>> import poise
    >>> scene = poise.Scene()
    >>> rod = scene.add(poise.box(0.1, 0.1, 1.0, mass=2.0), name="rod", position=(0, 0, 2))
    >>> _ = scene.loop("hinge", None, rod, "hook", axis="y", position=(0, 0, 2.5))
    >>> world = scene.build(dt=1 / 240)
    >>> world.step(10)
    >>> float(world.loop("hook").force[2].round(2))
    19.62
    """

    __slots__ = ("name", "world")

    def __init__(self, world: Joined, name: str) -> None:
        self.world = world
        self.name = world._stepper.extras.joints[loop_number(world, name)].name

    def __repr__(self) -> str:
        return f"<loop {self.name!r}: {self.joint.kind}>"

    @property
    def _number(self) -> int:
        return loop_number(self.world, self.name)

    @property
    def joint(self) -> LoopJoint:
        """Its definition."""
        joint: LoopJoint = self.world._stepper.extras.joints[self._number]
        return joint

    @property
    def active(self) -> bool:
        """Whether the joint is active; assignable."""
        return bool(self.world._stepper.extras.loops.active[self._number])

    @active.setter
    def active(self, active: bool) -> None:
        self.world._stepper.extras.loops.active[self._number] = int(bool(active))

    @property
    def force(self) -> Array:
        """(3,) force on the second body in the last step, at the joint's point, in world axes; N."""
        return np.array(self.world._stepper.extras.loops.force[self._number])

    @property
    def torque(self) -> Array:
        """(3,) torque on the second body in the last step, in world axes; N·m."""
        return np.array(self.world._stepper.extras.loops.torque[self._number])

    @property
    def coordinates(self) -> Array:
        """(n,) joint coordinates: motion of the second body's frame relative to the first's; the twist of a ball joint;
        m or rad.
        """
        world, joint, b = self.world, self.joint, self.world._stepper.extras.loops
        model = world.model
        A, B = (body_at(model, world.q, world.v, body) for body in (joint.body_a, joint.body_b))
        pa, pb = (
            Vec3(*(np.array(point) - (model.body_com[body] if body >= 0 else 0.0)))
            for point, body in ((joint.point_a, joint.body_a), (joint.point_b, joint.body_b))
        )
        Fa, Fb = Mat3(*joint.frame_a), Mat3(*joint.frame_b)
        values = []
        for c in range(*b.coordinate_start[self._number : self._number + 2].tolist()):
            what = int(b.what[c])
            if what < TURN_X:
                part = along(A, B, pa, pb, column(Fa, what))
            else:
                part = angle(A, B, column(Fa, what - TURN_X), Fa @ transpose(Fb), float(b.value[c]))
            values.append(float(part.phi))
        return np.array(values)


def attached_name(taken: list[str], first: Any, second: Any, name: str | None) -> str:
    """A unique name for an attachment."""
    stem = f"{first or 'world'}-{second or 'world'}" if name is None else name
    if not isinstance(stem, str) or not stem:
        raise ValueError(f"name is {name!r}; it must be text that is not empty")
    if name is not None and name in taken:
        raise ValueError(f'there is a loop "{name}" already; give it another name')
    label, number = stem, 1
    while label in taken:
        number += 1
        label = f"{stem}_{number}"
    return label


def attached_joint(
    world: Joined, name: str, first: str | None, second: str | None, kind: str, options: dict[str, Any]
) -> LoopJoint:
    """A loop joint between bodies at their current poses."""
    known = [field for field in Loop.__dataclass_fields__ if field not in ("name", "kind", "first", "second", "active")]
    for option in options:
        if option not in known:
            raise ValueError(f"a loop has no option {option!r}{did_you_mean(option, known)}")
    given = dict(options)
    for axis in ("axis", "axis2"):
        if axis in given:
            given[axis] = parse_axis(given[axis], axis)
    model = world.model
    placed = bodies(model, world.q)
    quats = np.array([_quat(R) for R in placed.rotation]).reshape(-1, 4)
    number = {body: k for k, body in enumerate(model.body_names)}
    parts = Parts(number, np.array(placed.position), quats, model.body_link, {}, [])
    return compile_loop(Loop(name, OTHER_NAMES.get(kind, kind), first, second, **given), parts)


def _quat(R: Array) -> Array:
    """(4,) of a rotation matrix."""
    return np.array([*quaternion(Mat3(*R.ravel())).leaves()], np.float64)
