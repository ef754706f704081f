"""What can be chosen about a step, however its bodies are described.

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
"""Work of a step at most, unless another is given."""
_STABILIZE = {"displacement": BY_DISPLACEMENT, "speed": BY_SPEED}


@dataclass(frozen=True)
class Options:
    """Choices that all formulations have."""

    level: Literal["velocity", "acceleration"] = "velocity"
    """Impulses over a step, all rows at once; or forces, with impacts between parts of a step (KOK §7)."""
    integrator: Literal["euler", "midpoint", "rk4"] | None = None
    """Without one, "rk4" at acceleration level; the velocity level has semi-implicit Euler ("euler")."""
    substeps: int = 1
    """Parts that a step is made of."""
    tolerance: float = 1e-4
    """Natural residual of the rows, over the largest speed that they have to take away, at which a step is solved."""
    sweeps: int = 500
    """Sweeps at most, over the rows of a step, in all of its solves together; of each part where a step is split."""
    budget: float = BUDGET
    """Work at most of all solves of a step: a sweep over n rows counts n², a step of Newton's method with m rows that
    are not at a bound m³/24 + n². A step that uses it up ends with the best multipliers found, and says so."""
    newton: bool = True
    """Whether Newton's method is tried between them."""
    stabilization: Literal["displacement", "speed"] = "displacement"
    """How overlaps and gaps of joints are mended: by a displacement that leaves no speed behind, or by speed (ERP)."""
    erp: float = 0.2
    """Share of an error that is mended in a step."""
    creep: float = 1e-3
    """Speed at which small errors are mended; m/s or rad/s."""
    slop: float = 1e-4
    """Errors beyond this are mended by displacements, if that is chosen; m or rad."""
    correction_speed: float = 3.0
    """Speed at most at which overlaps and gaps are mended: of contacts, slides and points of loops; m/s."""
    correction_turn: float = 10.0
    """And at which anything turns for it; rad/s."""
    bounce_speed: float = 0.01
    """Speed of approach below which nothing bounces; m/s."""

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
        """As kernels have them."""
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
