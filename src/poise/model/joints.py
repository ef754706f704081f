"""The joint table: every kind of joint as plain data.

A joint is a short sequence of *primitives*, each of which moves the child relative to its rest pose:

    slide  translate along an axis                     1 coordinate, 1 velocity
    turn   rotate about an axis through the anchor     1 coordinate, 1 velocity
    screw  turn, and advance `pitch` metres a radian   1 coordinate, 1 velocity
    ball   rotate about the anchor                     quaternion (w, x, y, z), angular velocity in the child's axes

Kernels implement only these four; a new kind of joint is one more line in `JOINTS`.
The axis of a primitive is a column of the joint frame: 0 is the joint's `axis`, 1 its `axis2`, 2 their cross product.
A free joint slides along the *parent's* axes and starts from the parent's origin, so that its coordinates are the pose
itself, as in MuJoCo; every other joint starts from the body's rest pose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Prescribed(IntEnum):
    """Source of the motion of a degree of freedom."""

    NOT = 0
    """Dynamics: it follows from forces."""
    PATH = 1
    """The path of its body."""
    FREELY = 2
    """Its coordinates and velocities are set by the user; in between it moves on at its velocity."""


class Primitive(IntEnum):
    """The motions that kernels implement."""

    SLIDE = 0
    TURN = 1
    SCREW = 2
    BALL = 3


#: coordinates and velocities of a primitive
WIDTHS: dict[Primitive, tuple[int, int]] = {
    Primitive.SLIDE: (1, 1),
    Primitive.TURN: (1, 1),
    Primitive.SCREW: (1, 1),
    Primitive.BALL: (4, 3),
}


@dataclass(frozen=True)
class JointKind:
    """One line of the joint table.

    >>> JOINTS["universal"].nv, JOINTS["ball"].q_names
    (2, ('qw', 'qx', 'qy', 'qz'))
    """

    name: str
    primitives: tuple[tuple[Primitive, int], ...]
    """(motion, column of the joint frame) in the order in which they act, parent first."""
    v_names: tuple[str, ...]
    """A suffix for each velocity; empty for joints of one degree of freedom."""

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(WIDTHS[p][0] for p, _ in self.primitives)

    @property
    def nv(self) -> int:
        """Number of velocities, the degrees of freedom."""
        return sum(WIDTHS[p][1] for p, _ in self.primitives)

    @property
    def q_names(self) -> tuple[str, ...]:
        """A suffix for each coordinate; those of the velocities, except that a quaternion has four."""
        if not self.has_quaternion:
            return self.v_names
        names: list[str] = []
        for primitive, column in self.primitives:
            names += ("qw", "qx", "qy", "qz") if primitive is Primitive.BALL else ("xyz"[column],)
        return tuple(names)

    @property
    def has_quaternion(self) -> bool:
        """Whether nq ≠ nv."""
        return any(p is Primitive.BALL for p, _ in self.primitives)


#: names of kinds in other programs: MuJoCo, URDF, Pinocchio, Drake
OTHER_NAMES: dict[str, str] = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "spherical": "ball",
    "socket": "ball",
    "floating": "free",
    "freejoint": "free",
    "freeflyer": "free",
    "weld": "fixed",
    "helical": "screw",
}

_SLIDE, _TURN, _SCREW, _BALL = Primitive.SLIDE, Primitive.TURN, Primitive.SCREW, Primitive.BALL

JOINTS: dict[str, JointKind] = {
    kind.name: kind
    for kind in (
        JointKind("fixed", (), ()),
        JointKind("hinge", ((_TURN, 0),), ("",)),
        JointKind("slider", ((_SLIDE, 0),), ("",)),
        JointKind("cylindrical", ((_SLIDE, 0), (_TURN, 0)), ("slide", "turn")),
        JointKind("screw", ((_SCREW, 0),), ("",)),
        JointKind("universal", ((_TURN, 0), (_TURN, 1)), ("turn1", "turn2")),
        JointKind("ball", ((_BALL, 0),), ("wx", "wy", "wz")),
        JointKind("planar", ((_SLIDE, 1), (_SLIDE, 2), (_TURN, 0)), ("x", "y", "turn")),
        JointKind("free", ((_SLIDE, 0), (_SLIDE, 1), (_SLIDE, 2), (_BALL, 0)), ("vx", "vy", "vz", "wx", "wy", "wz")),
    )
}
