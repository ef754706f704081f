"""A bird: a body with a tail, and wings of two parts on hinges."""

from __future__ import annotations

from math import cos, isfinite, pi, sin
from numbers import Real
from typing import Any

from poise.model.errors import SceneError
from poise.model.scene import Body, Character, Joint
from poise.model.shapes import Box, Capsule, Ellipsoid, Quaternion, Shape

#: lengths, over the span: half the distance of the wings' roots, the two parts of a wing, breadth of a wing
ROOT, INNER, OUTER, CHORD = 0.04, 0.20, 0.26, 0.18
#: fraction of the mass in each part of a wing
_INNER_MASS, _OUTER_MASS = 0.05, 0.03
#: ranges of the hinges, upwards; rad
RAISE = (-1.0, 1.2)
FOLD = (-1.2, 0.6)

_FEATHERS = (0.35, 0.38, 0.44, 1.0)
_DOWN = (0.85, 0.83, 0.78, 1.0)
_BEAK = (0.90, 0.60, 0.20, 1.0)


def bird(span: float = 1.0, mass: float = 0.6) -> Character:
    """A bird of a span (m, from tip to tip) and a mass (kg), that faces x, its wings stretched out to the sides.

    Its joints are `root` (free), `wing_l` and `wing_r` at the body, `wing_tip_l` and `wing_tip_r` in the middle of the
    wings; their angles are positive upwards. Its middle is at the origin. Raises SceneError for unrealistic sizes.

    >>> gull = bird(span=1.2, mass=0.8)
    >>> [body.name for body in gull.bodies]
    ['trunk', 'wing_l', 'wing_tip_l', 'wing_r', 'wing_tip_r']
    """
    _check("span", span, (0.05, 5.0), "m")
    _check("mass", mass, (0.001, 20.0), "kg")
    s, m = float(span), float(mass)
    bodies = [_trunk(s, m * (1.0 - 2.0 * (_INNER_MASS + _OUTER_MASS)))]
    for side, sign in (("l", 1.0), ("r", -1.0)):
        bodies.append(_wing(f"wing_{side}", "trunk", ROOT * s, INNER * s, CHORD * s, m * _INNER_MASS, sign, RAISE))
        bodies.append(
            _wing(
                f"wing_tip_{side}", f"wing_{side}", INNER * s, OUTER * s, 0.8 * CHORD * s, m * _OUTER_MASS, sign, FOLD
            )
        )
    return Character("bird", bodies)


def _check(field: str, value: Any, bounds: tuple[float, float], unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(float(value)):
        raise SceneError(f"must be a number in {unit}, found {value!r}", field=field)
    if not bounds[0] <= float(value) <= bounds[1]:
        raise SceneError(f"must be between {bounds[0]:g} and {bounds[1]:g} {unit}, found {value:g}", field=field)


def _about_y(angle: float) -> Quaternion:
    return (cos(angle / 2), 0.0, sin(angle / 2), 0.0)


def _trunk(span: float, mass: float) -> Body:
    along = _about_y(pi / 2)
    shapes: list[Shape] = [
        Capsule(radius=0.055 * span, length=0.20 * span, quat_wxyz=along, mass=0.86 * mass, color=_DOWN),
        Ellipsoid(
            size=(0.10 * span, 0.08 * span, 0.08 * span),
            position=(0.17 * span, 0.0, 0.035 * span),
            mass=0.10 * mass,
            color=_DOWN,
        ),
        Capsule(
            radius=0.010 * span,
            length=0.04 * span,
            position=(0.23 * span, 0.0, 0.03 * span),
            quat_wxyz=along,
            mass=0.01 * mass,
            color=_BEAK,
        ),
        Box(
            size=(0.16 * span, 0.10 * span, 0.008 * span),
            position=(-0.21 * span, 0.0, 0.01 * span),
            mass=0.03 * mass,
            color=_FEATHERS,
        ),
    ]
    return Body("trunk", joints=[Joint("free", name="root")], shapes=shapes)


def _wing(
    name: str,
    parent: str,
    start: float,
    length: float,
    chord: float,
    mass: float,
    sign: float,
    limits: tuple[float, float],
) -> Body:
    """A flat part of a wing, on a hinge along the body: positive upwards, about x on the left and −x on the right."""
    blade = Box(
        size=(chord, length, 0.05 * length),
        position=(-0.15 * chord, sign * length / 2, 0.0),
        mass=mass,
        color=_FEATHERS,
    )
    joint = Joint("hinge", name=name, axis=(sign, 0.0, 0.0), limits=limits)
    return Body(name, parent=parent, position=(0.0, sign * start, 0.02 * start), joints=[joint], shapes=[blade])
