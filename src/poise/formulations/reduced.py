"""Options of reduced coordinates: characters are trees of joints, everything else is a constraint (KOK §4-§8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poise.formulations.options import Options


@dataclass(frozen=True)
class Reduced(Options):
    """Formulation of worlds in reduced coordinates.

    >>> Reduced(substeps=2).substeps
    2
    >>> Reduced(stabilization="hope")
    Traceback (most recent call last):
        ...
    ValueError: stabilization is 'hope'; there are displacement, speed
    """

    sleeping: bool = False
    """Whether islands that rest for a while are put to sleep, until something wakes them."""
    sleep_speed: float = 0.02
    """Speed below which a point is at rest; m/s."""
    sleep_after: float = 0.5
    """Time for which all points must rest; s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sleeping and self.level != "velocity":
            raise ValueError("sleeping takes the velocity level")
        self._check_range("sleep_speed", "sleep_after")

    def rules(self) -> dict[str, Any]:
        """The options under the names of the kernels' fields."""
        sleeps = {"sleep_speed": self.sleep_speed if self.sleeping else None, "sleep_after": self.sleep_after}
        return super().rules() | sleeps
