"""Units by suffix: `limits_deg`, `height_cm`, `mass_g`. Without a suffix numbers are in SI units and radians."""

from __future__ import annotations

from math import pi
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit: SI value = number · times / over, so that 7 cm is 0.07 m exactly as it would be written."""

    name: str
    of: str
    times: float = 1.0
    over: float = 1.0

    def si(self, number: float) -> float:
        """A number of this unit in SI units.

        >>> UNITS["cm"].si(7), UNITS["deg"].si(180.0)
        (0.07, 3.141592653589793)
        """
        return number * self.times / self.over if (self.times, self.over) != (1.0, 1.0) else number


UNITS: dict[str, Unit] = {
    "m": Unit("metres", "length"),
    "cm": Unit("centimetres", "length", over=100.0),
    "mm": Unit("millimetres", "length", over=1000.0),
    "km": Unit("kilometres", "length", times=1000.0),
    "in": Unit("inches", "length", times=0.0254),
    "ft": Unit("feet", "length", times=0.3048),
    "rad": Unit("radians", "angle"),
    "deg": Unit("degrees", "angle", times=pi, over=180.0),
    "turns": Unit("turns", "angle", times=2.0 * pi),
    "kg": Unit("kilograms", "mass"),
    "g": Unit("grams", "mass", over=1000.0),
    "t": Unit("tonnes", "mass", times=1000.0),
    "lb": Unit("pounds", "mass", times=0.45359237),
    "s": Unit("seconds", "time"),
    "ms": Unit("milliseconds", "time", over=1000.0),
    "min": Unit("minutes", "time", times=60.0),
    "kmh": Unit("kilometres an hour", "speed", over=3.6),
    "rpm": Unit("turns a minute", "turning", times=2.0 * pi, over=60.0),
    "N": Unit("newtons", "force"),
    "kN": Unit("kilonewtons", "force", times=1000.0),
    "Nm": Unit("newton metres", "torque"),
    "kNm": Unit("kilonewton metres", "torque", times=1000.0),
}

LENGTH, ANGLE, MASS, TIME = ("length",), ("angle",), ("mass",), ("time",)
SPEED, TURNING = ("length", "speed"), ("angle", "turning")
FORCE, TORQUE = ("force",), ("torque",)
COORDINATE = ("angle", "length")
EFFORT = ("force", "torque")


def suffixes(of: tuple[str, ...]) -> list[str]:
    """Suffixes that a field may have which is one of some quantities.

    >>> suffixes(("angle",))
    ['rad', 'deg', 'turns']
    """
    return [suffix for suffix, unit in UNITS.items() if unit.of in of]


def split(name: str) -> tuple[str, str] | None:
    """The stem of a name and the unit that it ends in, if it ends in one.

    >>> split("limits_deg"), split("knee_l")
    (('limits', 'deg'), None)
    """
    stem, _, suffix = name.rpartition("_")
    return (stem, suffix) if stem and suffix in UNITS else None
