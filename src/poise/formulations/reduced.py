"""Reduced coordinates: characters as trees, everything else as rows (KOK §4-§8). What can be chosen about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poise.formulations.options import Options


@dataclass(frozen=True)
class Reduced(Options):
    """How worlds of trees are stepped.

    >>> Reduced(substeps=2).substeps
    2
    >>> Reduced(stabilization="hope")
    Traceback (most recent call last):
        ...
    ValueError: stabilization is 'hope'; there are displacement, speed
    """

    sleeping: bool = False
    """Whether what has been still for a while, with all that it touches, stays as it is until something stirs it."""
    sleep_speed: float = 0.02
    """Speed below which a point is still; m/s."""
    sleep_after: float = 0.5
    """How long all points must be still; s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sleeping and self.level != "velocity":
            raise ValueError("sleeping takes the velocity level")
        self._check_range("sleep_speed", "sleep_after")

    def rules(self) -> dict[str, Any]:
        """As kernels have them."""
        sleeps = {"sleep_speed": self.sleep_speed if self.sleeping else None, "sleep_after": self.sleep_after}
        return super().rules() | sleeps
