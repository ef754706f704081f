"""A human body with measured proportions, masses, inertias and ranges of motion.

In the rest pose it stands upright on z = 0 and faces x, with y to its left; arms hang slightly abducted, palms to the
thighs. Every body's frame is at the joint to its parent (the pelvis' in the middle of the hip joints), with axes along
the world's.

Angles of hinge and universal joints are positive for flexion (knee, elbow, wrist), dorsiflexion and inversion (ankle)
and radial deviation (wrist), on both sides. The twist axis of ball joints is the side-to-side axis, so that the range
of flexion, which is the most asymmetric, is exact; bending and rotation share a cone. The cones of hips and shoulders,
which abduct further than they adduct, are centred on the middle of that range. Away from it, the limits of a ball
joint's twist and cone interact: a hanging arm that is rotated inward by 70° extends by 20° instead of 60°. The forearm
does not rotate about its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, fsum, hypot, isfinite, radians, sin, sqrt
from numbers import Real
from typing import Any

import numpy as np

from poise.characters import anthropometry as table
from poise.characters.anthropometry import SEGMENTS, TRUNKS, Segment, Sex
from poise.model.errors import SceneError, did_you_mean
from poise.model.massprops import MassProperties, combine
from poise.model.scene import Body, Character, Inertia, Joint
from poise.model.shapes import IDENTITY, Box, Capsule, Ellipsoid, Quaternion, Shape, Vector

# heights and masses beyond these are errors of units
_HEIGHTS = (0.4, 3.0)
_MASSES = (2.0, 700.0)

#: abduction of hanging arms, so that they do not touch the trunk
_ARM_TILT = radians(8)
#: centres of hips and shoulders are one limb's radius inside the breadth of the body; over the height
_HIP_OFFSET = table.HIP_BREADTH / 2 - 0.0455
_SHOULDER_OFFSET = table.SHOULDER_BREADTH / 2 - 0.0275
#: distance of the ankle from the heel, over the foot's length
_ANKLE_FROM_HEEL = 0.25

_LEFT: Vector = (0.0, 1.0, 0.0)
_RIGHT: Vector = (0.0, -1.0, 0.0)
_FRONT: Vector = (1.0, 0.0, 0.0)

_SKIN = (0.86, 0.66, 0.53, 1.0)
_SHIRT = (0.27, 0.45, 0.66, 1.0)
_TROUSERS = (0.30, 0.31, 0.36, 1.0)
_SHOES = (0.16, 0.16, 0.18, 1.0)


def humanoid(height: float = 1.75, mass: float = 70.0, *, hands: bool = True, sex: Sex = "male") -> Character:
    """A standing human of the given height (m) and mass (kg).

    Segments and their inertias scale with both, after de Leva 1996 (see `poise.characters.anthropometry`). Without
    `hands`, wrists are rigid and hands are parts of the forearms. Raises SceneError for unrealistic sizes.

    >>> hero = humanoid(height=1.8, mass=80.0)
    >>> hero.bodies[0].name, len(hero.bodies)
    ('pelvis', 15)
    """
    _check("height", height, _HEIGHTS, "m")
    _check("mass", mass, _MASSES, "kg")
    if not isinstance(sex, str) or sex not in SEGMENTS:
        raise SceneError(f'must be "male" or "female", found {sex!r}{did_you_mean(sex, SEGMENTS)}', field="sex")
    human = _Human(float(height), float(mass), sex)
    bodies = [human.pelvis(), human.torso(), human.head()]
    for side in ("l", "r"):
        bodies += human.arm(side, hands)
    for side in ("l", "r"):
        bodies += human.leg(side)
    return Character("humanoid", bodies)


def _check(field: str, value: Any, bounds: tuple[float, float], unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(float(value)):
        raise SceneError(f"must be a number in {unit}, found {value!r}", field=field)
    number = float(value)
    lower, upper = bounds
    if not lower <= number <= upper:
        hint = f"; {number:g} cm are {number / 100:g} m" if unit == "m" and lower <= number / 100 <= upper else ""
        raise SceneError(f"must be between {lower:g} and {upper:g} {unit}, found {number:g}{hint}", field=field)


@dataclass(frozen=True)
class _Human:
    """Builds the bodies of one humanoid."""

    height: float
    mass: float
    sex: Sex

    @property
    def girth(self) -> float:
        """Thickness of shapes relative to 70 kg at 1.75 m; bounded, so that limbs do not touch in the rest pose."""
        return min(max(sqrt(self.mass / self.height / 40.0), 0.75), 1.1)

    @property
    def trunk_scale(self) -> float:
        """Metres per millimetre of Table 4's trunk, which matches Winter's heights of hips and shoulders."""
        return (table.SHOULDER_HEIGHT - table.HIP_HEIGHT) * self.height / TRUNKS[self.sex].shoulders

    def segment(self, name: str) -> Segment:
        """A line of Table 4."""
        return SEGMENTS[self.sex][name]

    def segment_mass(self, name: str) -> float:
        """Mass of a segment; kg. Fractions are normalized to a sum of 1, as Table 4 is rounded."""
        lines = SEGMENTS[self.sex]
        paired = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot")
        whole = fsum(line.mass * (2 if key in paired else 1) for key, line in lines.items())
        return self.mass * self.segment(name).mass / whole

    def lump(self, name: str, start: Vector, end: Vector, radii: Vector | None = None) -> MassProperties:
        """Mass properties of a segment from its upper end `start` to `end`.

        `radii` of gyration along x, y, z are over the length; by default those of a vertical segment, rotated to the
        segment's direction.
        """
        line = self.segment(name)
        span = np.subtract(end, start)
        length = float(np.linalg.norm(span))
        if radii is None:
            across = np.diag(np.square([line.sagittal, line.transverse, line.longitudinal])) * length**2
            turn = _tilt_matrix(span / length)
            moments = turn @ across @ turn.T
        else:
            moments = np.diag(np.square(radii)) * length**2
        mass = self.segment_mass(name)
        return MassProperties(mass, np.asarray(start) + line.com * span, mass * moments)

    def pelvis(self) -> Body:
        """The root, with the lowest part of the trunk."""
        navel = TRUNKS[self.sex].navel * self.trunk_scale
        h, g = self.height, self.height * self.girth
        rolls = [
            Capsule(radius=0.056 * g, length=0.09 * h, position=(0.0, 0.0, 0.02 * h), quat_wxyz=_along(_LEFT)),
            Capsule(radius=0.050 * g, length=0.08 * h, position=(0.0, 0.0, 0.8 * navel), quat_wxyz=_along(_LEFT)),
        ]
        return Body(
            "pelvis",
            position=(0.0, 0.0, table.HIP_HEIGHT * h),
            joints=[Joint("free", name="root")],
            shapes=_dress([*rolls], _TROUSERS),
            inertia=_inertia([self.lump("hips", (0.0, 0.0, navel), (0.0, 0.0, 0.0))]),
        )

    def torso(self) -> Body:
        """Chest and belly, from the navel up."""
        trunk, scale = TRUNKS[self.sex], self.trunk_scale
        xiphion = (0.0, 0.0, (trunk.xiphion - trunk.navel) * scale)
        top = (0.0, 0.0, (trunk.suprasternale - trunk.navel) * scale)
        lumps = [self.lump("chest", top, xiphion), self.lump("belly", xiphion, (0.0, 0.0, 0.0))]
        h, g = self.height, self.height * self.girth
        shoulders = (trunk.shoulders - trunk.navel) * scale
        rolls = [
            Capsule(radius=0.050 * g, length=0.08 * h, position=(0.0, 0.0, 0.22 * shoulders)),
            Capsule(radius=0.059 * g, length=0.085 * h, position=(0.0, 0.0, 0.62 * shoulders)),
            Capsule(radius=0.045 * g, length=0.14 * h, position=(0.0, 0.0, 0.93 * shoulders)),
        ]
        for roll in rolls:
            roll.quat_wxyz = _along(_LEFT)
        spine = _ball("spine", _LEFT, table.SPINE_FLEXION, table.SPINE_BENDING, table.SPINE_ROTATION)
        return Body(
            "torso",
            parent="pelvis",
            position=(0.0, 0.0, trunk.navel * scale),
            joints=[spine],
            shapes=_dress([*rolls], _SHIRT),
            inertia=_inertia(lumps),
        )

    def head(self) -> Body:
        """Head and neck, from the lowest neck vertebra to the crown."""
        trunk, h, g = TRUNKS[self.sex], self.height, self.height * self.girth
        neck_height = table.HIP_HEIGHT * h + trunk.cervicale * self.trunk_scale
        crown = h - neck_height
        chin = table.CHIN_HEIGHT * h - neck_height
        skull = Ellipsoid(size=(0.112 * h, 0.089 * h, crown - chin), position=(0.01 * h, 0.0, (crown + chin) / 2))
        neck = _rod(0.030 * g, (0.0, 0.0, 0.0), (0.0, 0.0, (crown + chin) / 2))
        return Body(
            "head",
            parent="torso",
            position=(0.0, 0.0, (trunk.cervicale - trunk.navel) * self.trunk_scale),
            joints=[_ball("neck", _LEFT, table.NECK_FLEXION, table.NECK_BENDING, table.NECK_ROTATION)],
            shapes=_dress([skull, neck], _SKIN),
            inertia=_inertia([self.lump("head", (0.0, 0.0, crown), (0.0, 0.0, 0.0))]),
        )

    def arm(self, side: str, hands: bool) -> list[Body]:
        """Upper arm, forearm and hand of one side."""
        h, g, sign = self.height, self.height * self.girth, _sign(side)
        trunk = TRUNKS[self.sex]
        down = (0.0, sign * sin(_ARM_TILT), -cos(_ARM_TILT))
        elbow, wrist = _scaled(down, table.UPPER_ARM * h), _scaled(down, table.FOREARM * h)
        shoulder = (0.0, sign * _SHOULDER_OFFSET * h, (trunk.shoulders - trunk.navel) * self.trunk_scale)
        ranges = table.SHOULDER_FLEXION, table.SHOULDER_ABDUCTION, table.SHOULDER_ROTATION
        upper = Body(
            f"upper_arm_{side}",
            parent="torso",
            position=shoulder,
            joints=[_limb(f"shoulder_{side}", sign, *ranges)],
            shapes=_dress([_rod(0.026 * g, (0.0, 0.0, 0.0), elbow)], _SHIRT),
            inertia=_inertia([self.lump("upper_arm", (0.0, 0.0, 0.0), elbow)]),
        )
        lower = Body(
            f"forearm_{side}",
            parent=upper.name,
            position=elbow,
            joints=[Joint("hinge", name=f"elbow_{side}", axis=_RIGHT, limits=table.ELBOW_FLEXION)],
            shapes=_dress([_rod(0.021 * g, (0.0, 0.0, 0.0), wrist)], _SKIN),
        )
        forearm = self.lump("forearm", (0.0, 0.0, 0.0), wrist)
        if not hands:
            lower.shapes += [self._hand_shape(wrist, down)]
            lower.inertia = _inertia([forearm, self._hand_lump(wrist, down)])
            return [upper, lower]
        lower.inertia = _inertia([forearm])
        inward = (sign * -1.0, 0.0, 0.0)
        limits = (table.WRIST_FLEXION, table.WRIST_RADIAL_DEVIATION)
        hand = Body(
            f"hand_{side}",
            parent=lower.name,
            position=wrist,
            joints=[Joint("universal", name=f"wrist_{side}", axis=inward, axis2=_RIGHT, limits=limits)],
            shapes=[self._hand_shape((0.0, 0.0, 0.0), down)],
            inertia=_inertia([self._hand_lump((0.0, 0.0, 0.0), down)]),
        )
        return [upper, lower, hand]

    def _hand_shape(self, wrist: Vector, down: Vector) -> Shape:
        """A flat hand, palm to the thigh."""
        size = (0.045 * self.height, 0.018 * self.height, table.HAND * self.height)
        middle = _scaled(down, size[2] / 2)
        at = (wrist[0] + middle[0], wrist[1] + middle[1], wrist[2] + middle[2])
        return _dress([Box(size=size, position=at, quat_wxyz=_along(down))], _SKIN)[0]

    def _hand_lump(self, wrist: Vector, down: Vector) -> MassProperties:
        """Table 4 is for palms facing forward; palms to the thigh swap the two axes across the hand."""
        line = self.segment("hand")
        knuckles = _scaled(down, table.KNUCKLES[self.sex] * table.FOREARM * self.height)
        end = (wrist[0] + knuckles[0], wrist[1] + knuckles[1], wrist[2] + knuckles[2])
        lump = self.lump("hand", wrist, end)
        length = float(np.linalg.norm(knuckles))
        across = np.diag(np.square([line.transverse, line.sagittal, line.longitudinal])) * length**2
        turn = _tilt_matrix(np.asarray(down))
        return MassProperties(lump.mass, lump.com, lump.mass * (turn @ across @ turn.T))

    def leg(self, side: str) -> list[Body]:
        """Thigh, shank and foot of one side."""
        h, g, sign = self.height, self.height * self.girth, _sign(side)
        knee = (0.0, 0.0, -(table.HIP_HEIGHT - table.KNEE_HEIGHT) * h)
        ankle = (0.0, 0.0, -(table.KNEE_HEIGHT - table.ANKLE_HEIGHT) * h)
        hip = _limb(f"hip_{side}", sign, table.HIP_FLEXION, table.HIP_ABDUCTION, table.HIP_ROTATION)
        thigh = Body(
            f"thigh_{side}",
            parent="pelvis",
            position=(0.0, sign * _HIP_OFFSET * h, 0.0),
            joints=[hip],
            shapes=_dress([_rod(0.043 * g, (0.0, 0.0, -0.01 * h), knee)], _TROUSERS),
            inertia=_inertia([self.lump("thigh", (0.0, 0.0, 0.0), knee)]),
        )
        shank = Body(
            f"shank_{side}",
            parent=thigh.name,
            position=knee,
            joints=[Joint("hinge", name=f"knee_{side}", axis=_LEFT, limits=table.KNEE_FLEXION)],
            shapes=_dress([_rod(0.029 * g, (0.0, 0.0, 0.0), ankle)], _TROUSERS),
            inertia=_inertia([self.lump("shank", (0.0, 0.0, 0.0), ankle)]),
        )
        return [thigh, shank, self._foot(side, shank.name, ankle)]

    def _foot(self, side: str, shank: str, ankle: Vector) -> Body:
        """A foot whose sole is at z = 0."""
        h, line = self.height, self.segment("foot")
        length, sole = table.FOOT_LENGTH * h, -table.ANKLE_HEIGHT * h
        heel = -_ANKLE_FROM_HEEL * length
        size = (length, table.FOOT_BREADTH * h, 0.03 * h)
        middle = (heel + length / 2, 0.0, sole + size[2] / 2)
        lump = self.lump(
            "foot",
            (heel, 0.0, sole / 2),
            (heel + length, 0.0, sole / 2),
            radii=(line.longitudinal, line.transverse, line.sagittal),
        )
        # the inner edge of the sole rises: about x on the right, about −x on the left
        inversion = (-_sign(side), 0.0, 0.0)
        limits = (table.ANKLE_DORSIFLEXION, table.ANKLE_INVERSION)
        return Body(
            f"foot_{side}",
            parent=shank,
            position=ankle,
            joints=[Joint("universal", name=f"ankle_{side}", axis=_RIGHT, axis2=inversion, limits=limits)],
            shapes=_dress([Box(size=size, position=middle)], _SHOES),
            inertia=_inertia([lump]),
        )


def _sign(side: str) -> float:
    """Sign of the side along y."""
    return 1.0 if side == "l" else -1.0


def _scaled(direction: Vector, length: float) -> Vector:
    return (direction[0] * length, direction[1] * length, direction[2] * length)


def _ball(name: str, axis: Vector, flexion: tuple[float, float], bending: float, rotation: float) -> Joint:
    """A ball joint: flexion twists about the side-to-side axis; bending (about x) and rotation (about z) swing it."""
    return Joint("ball", name=name, axis=axis, axis2=_FRONT, twist=flexion, cone=(bending, rotation))


def _limb(
    name: str, sign: float, flexion: tuple[float, float], abduction: tuple[float, float], rotation: float
) -> Joint:
    """The ball joint of a limb, with its cone about the middle of abduction: about x on the left, −x on the right."""
    lower, upper = abduction
    joint = _ball(name, _RIGHT, flexion, (upper - lower) / 2, rotation)
    quarter = (lower + upper) / 4
    joint.limit_centre = (cos(quarter), sign * sin(quarter), 0.0, 0.0)
    return joint


def _rod(radius: float, start: Vector, end: Vector) -> Capsule:
    """A capsule whose caps are centred on two points."""
    span = (end[0] - start[0], end[1] - start[1], end[2] - start[2])
    length = hypot(*span)
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, (start[2] + end[2]) / 2)
    return Capsule(radius=radius, length=length, position=middle, quat_wxyz=_along(_scaled(span, 1 / length)))


def _along(direction: Vector) -> Quaternion:
    """The smallest rotation from the z axis to a line perpendicular to x, as for all shapes here."""
    x, y, z = direction if direction[2] >= 0.0 else _scaled(direction, -1.0)
    if x != 0.0:
        raise ValueError(f"direction must be across x, found {direction}")
    if (y, z) == (0.0, 1.0):
        return IDENTITY
    half = sqrt((1.0 + z) / 2.0)
    return (half, -y / (2.0 * half), 0.0, 0.0)


def _tilt_matrix(direction: np.ndarray) -> np.ndarray:
    """Rotation about x from the z axis to a direction perpendicular to x."""
    w, x, _, _ = _along((float(direction[0]), float(direction[1]), float(direction[2])))
    c, s = w * w - x * x, 2.0 * w * x
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _inertia(lumps: Sequence[MassProperties]) -> Inertia:
    """Total inertia of several segments."""
    whole = combine(lumps)
    x, y, z = (float(value) for value in whole.com)
    i = whole.inertia
    return Inertia(
        float(whole.mass),
        com=(x, y, z),
        moments=(float(i[0, 0]), float(i[1, 1]), float(i[2, 2])),
        products=(float(i[0, 1]), float(i[0, 2]), float(i[1, 2])),
    )


def _dress(shapes: list[Shape], color: tuple[float, float, float, float]) -> list[Shape]:
    """Set the colour of shapes and make them massless: mass is in the body's inertia."""
    for shape in shapes:
        shape.color = color
        shape.density = 0.0
    return shapes
