"""Measured proportions of the human body: lengths, masses, centres of mass, radii of gyration, ranges of motion.

Inertia: P. de Leva, Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters, J. Biomechanics 29(9), 1996,
1223-1230, Table 4 (young adults, scanned alive). Lengths of segments and heights of joints: D. A. Winter, Biomechanics
and Motor Control of Human Movement, 4th ed., 2009, Fig. 4.1, after R. Drillis and R. Contini, Body Segment Parameters,
1966. Ranges of motion: American Academy of Orthopaedic Surgeons, Joint Motion: Method of Measuring and Recording, 1965.

Verification: limbs, head and whole trunk of Table 4 were compared with a public copy of it, in which the female hand's
sagittal radius is 63.1 %, which is impossible for a rigid body with the other two radii; 53.1 % is used. The parts of
the trunk were only checked to add up to that whole trunk within 5 %. Winter's figures and the ranges of motion have not
been compared with the books.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import radians
from typing import Literal

Sex = Literal["male", "female"]


@dataclass(frozen=True)
class Segment:
    """One row of de Leva's Table 4, as fractions."""

    mass: float
    """Mass, over the mass of the body."""
    com: float
    """Centre of mass, from the upper (proximal) end of the segment, over its length."""
    sagittal: float
    """Radius of gyration about the front-to-back axis, over the length."""
    transverse: float
    """Radius of gyration about the side-to-side axis, over the length."""
    longitudinal: float
    """Radius of gyration about the axis from end to end, over the length."""


#: segments by name. Ends: head vertex to cervicale (C7), chest suprasternale to xiphion, belly xiphion to navel,
#: hips navel to the middle of the hip joints, limbs from joint centre to joint centre, hand wrist to third knuckle,
#: foot heel to toe tip (its long axis runs front to back, and its sagittal axis up)
SEGMENTS: dict[Sex, dict[str, Segment]] = {
    "male": {
        "head": Segment(0.0694, 0.5002, 0.303, 0.315, 0.261),
        "chest": Segment(0.1596, 0.2999, 0.716, 0.454, 0.659),
        "belly": Segment(0.1633, 0.4502, 0.482, 0.383, 0.468),
        "hips": Segment(0.1117, 0.6115, 0.615, 0.551, 0.587),
        "upper_arm": Segment(0.0271, 0.5772, 0.285, 0.269, 0.158),
        "forearm": Segment(0.0162, 0.4574, 0.276, 0.265, 0.121),
        "hand": Segment(0.0061, 0.7900, 0.628, 0.513, 0.401),
        "thigh": Segment(0.1416, 0.4095, 0.329, 0.329, 0.149),
        "shank": Segment(0.0433, 0.4395, 0.251, 0.246, 0.102),
        "foot": Segment(0.0137, 0.4415, 0.257, 0.245, 0.124),
    },
    "female": {
        "head": Segment(0.0668, 0.4841, 0.271, 0.295, 0.261),
        "chest": Segment(0.1545, 0.2077, 0.746, 0.502, 0.718),
        "belly": Segment(0.1465, 0.4512, 0.433, 0.354, 0.415),
        "hips": Segment(0.1247, 0.4920, 0.433, 0.402, 0.444),
        "upper_arm": Segment(0.0255, 0.5754, 0.278, 0.260, 0.148),
        "forearm": Segment(0.0138, 0.4559, 0.261, 0.257, 0.094),
        "hand": Segment(0.0056, 0.7474, 0.531, 0.454, 0.335),
        "thigh": Segment(0.1478, 0.3612, 0.369, 0.364, 0.162),
        "shank": Segment(0.0481, 0.4352, 0.267, 0.263, 0.092),
        "foot": Segment(0.0129, 0.4014, 0.299, 0.279, 0.139),
    },
}


@dataclass(frozen=True)
class Trunk:
    """Heights above the middle of the hip joints, in Table 4's subjects; mm."""

    navel: float
    xiphion: float
    """Lower end of the breastbone."""
    suprasternale: float
    """Upper end of the breastbone."""
    shoulders: float
    """Middle of the shoulder joints."""
    cervicale: float
    """Spine of the lowest neck vertebra, C7."""


TRUNKS: dict[Sex, Trunk] = {
    "male": Trunk(145.7, 361.2, 531.9, 515.5, 603.3),
    "female": Trunk(181.5, 386.8, 529.3, 497.9, 614.8),
}

#: length of the hand from the wrist to the third knuckle, over that of the forearm, in Table 4's subjects
KNUCKLES: dict[Sex, float] = {"male": 86.2 / 268.9, "female": 78.0 / 264.3}

# Winter 2009, Fig. 4.1: fractions of the height
ANKLE_HEIGHT = 0.039
KNEE_HEIGHT = 0.285
HIP_HEIGHT = 0.530
SHOULDER_HEIGHT = 0.818
CHIN_HEIGHT = 0.870
UPPER_ARM = 0.186
FOREARM = 0.146
HAND = 0.108
FOOT_LENGTH = 0.152
FOOT_BREADTH = 0.055
SHOULDER_BREADTH = 0.259
HIP_BREADTH = 0.191


def _degrees(*bounds: float) -> tuple[float, float]:
    lower, upper = bounds
    return (radians(lower), radians(upper))


# AAOS 1965: ranges (from, to), positive in the direction of the first word; rad
HIP_FLEXION = _degrees(-30, 120)
HIP_ABDUCTION = _degrees(-30, 45)  # adduction, the 30°, is a usual figure that was not compared with the book
HIP_ROTATION = radians(45)
KNEE_FLEXION = _degrees(0, 135)
ANKLE_DORSIFLEXION = _degrees(-50, 20)
ANKLE_INVERSION = _degrees(-15, 35)
SPINE_FLEXION = _degrees(-25, 80)
SPINE_BENDING = radians(35)
SPINE_ROTATION = radians(45)
NECK_FLEXION = _degrees(-45, 45)
NECK_BENDING = radians(45)
NECK_ROTATION = radians(60)
ELBOW_FLEXION = _degrees(0, 150)
WRIST_FLEXION = _degrees(-70, 80)
WRIST_RADIAL_DEVIATION = _degrees(-30, 20)
# the book has 180° for flexion and abduction, where the two are one pose, and 70° in, 90° out for rotation; for
# adduction in front of the body, tables on the web have 30° to 50°; 45° is a choice within that
SHOULDER_FLEXION = _degrees(-60, 170)
SHOULDER_ABDUCTION = _degrees(-45, 150)
SHOULDER_ROTATION = radians(80)
