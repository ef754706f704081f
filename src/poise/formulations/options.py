"""Options of a step that all formulations share.

The option `stabilization="speed"` is Baumgarte stabilization with the factor `erp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from poise.formulations.acceleration_level.integrators import INTEGRATORS
from poise.formulations.step_status import BY_DISPLACEMENT, BY_SPEED

_LEVELS = ("velocity", "acceleration")
BUDGET = 5e9
"""Default limit of the work of a step."""
_STABILIZE = {"displacement": BY_DISPLACEMENT, "speed": BY_SPEED}


@dataclass(frozen=True)
class Options:
    """Options of all formulations."""

    level: Literal["velocity", "acceleration"] = "velocity"
    """"velocity": impulses over a step, all rows at once. "acceleration": forces, with impacts between parts of a step
    (KOK §7).
    """
    integrator: Literal["euler", "midpoint", "rk4"] | None = None
    """The default is "rk4" at acceleration level; the velocity level has semi-implicit Euler ("euler") only."""
    substeps: int = 1
    """Number of equal parts of a step."""
    tolerance: float = 1e-4
    """Natural residual of a solved step, relative to the largest speed that the rows have to remove."""
    sweeps: int = 500
    """Maximum number of sweeps over the rows of a step, in all of its solves together; of each part if a step is split.
    """
    budget: float = BUDGET
    """Maximum work of all solves of a step: a sweep over n rows counts n², a Newton step with m rows that are not at a
    bound m³/24 + n². A step that reaches the limit ends with the best multipliers found, and reports it.
    """
    newton: bool = True
    """Whether to try Newton's method between sweeps."""
    stabilization: Literal["displacement", "speed"] = "displacement"
    """How overlaps and joint gaps are corrected: by post-stabilization ("displacement"), which leaves no velocity, or
    by velocities ("speed", Baumgarte).
    """
    erp: float = 0.2
    """Share of an error that is corrected in a step."""
    creep: float = 1e-3
    """Max depenetration velocity within the slop; m/s or rad/s."""
    slop: float = 1e-4
    """Post-stabilization corrects the errors beyond this; m or rad."""
    correction_speed: float = 3.0
    """Maximum speed at which overlaps and gaps are corrected: of contacts, slides and points of loop joints; m/s."""
    correction_turn: float = 10.0
    """Maximum angular speed of such corrections; rad/s."""
    bounce_speed: float = 0.01
    """Restitution threshold: approach speed below which nothing bounces; m/s."""

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise ValueError(f"level is {self.level!r}; there are {', '.join(_LEVELS)}")
        if self.integrator is not None and self.integrator not in INTEGRATORS:
            raise ValueError(f"integrator is {self.integrator!r}; there are {', '.join(INTEGRATORS)}")
        if self.level == "velocity" and self.integrator not in (None, "euler"):
            raise ValueError(f"integrator is {self.integrator!r}; the velocity level has euler only")
        if self.stabilization not in _STABILIZE:
            raise ValueError(f"stabilization is {self.stabilization!r}; there are {', '.join(_STABILIZE)}")
        for name in ("substeps", "sweeps"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"{name} is {number!r}; it must be a whole number, 1 or more")
        self._check_range("tolerance", "erp", high=1.0)
        self._check_range("creep", "slop", "bounce_speed")
        for name in ("budget", "correction_speed", "correction_turn"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be more than 0")

    def _check_range(self, *names: str, high: float = inf) -> None:
        for name in names:
            if not 0.0 <= getattr(self, name) <= high:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be from 0 to {high:g}")

    def rules(self) -> dict[str, Any]:
        """The options under the names of the kernels' fields."""
        return {
            "sweeps": self.sweeps,
            "tolerance": self.tolerance,
            "stabilize": _STABILIZE[self.stabilization],
            "erp": self.erp,
            "creep": self.creep if self.stabilization == "displacement" else self.correction_speed,
            "slop": self.slop,
            "quick": self.bounce_speed,
            "budget": self.budget,
            "fastest": self.correction_speed,
            "fastest_turn": self.correction_turn,
        }
