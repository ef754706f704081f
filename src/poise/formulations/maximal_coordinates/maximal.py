"""Maximal coordinates: every link a rigid body of its own, joints as constraints between them (VON §2-§5, LIU S1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from poise.dynamics.maximal_bodies.joint_forces import EXPLICIT, IMPLICIT, MOMENTUM
from poise.formulations.options import Options

_SOLVERS = ("direct", "pgs", "dantzig")
_TURNING = {"implicit": IMPLICIT, "explicit": EXPLICIT, "momentum": MOMENTUM}


@dataclass(frozen=True)
class Maximal(Options):
    """How worlds of separate bodies are stepped; the scene and what can be asked of the world are the same.

    Coordinates and velocities of joints are read off the bodies after each step. What is written to `world.q` or
    `world.v` puts the bodies where the joints say.

    >>> Maximal(turning="momentum").level
    'velocity'
    >>> Maximal(turning="round")
    Traceback (most recent call last):
        ...
    ValueError: turning is 'round'; there are implicit, explicit, momentum
    """

    solver: Literal["direct", "pgs", "dantzig"] = "direct"
    """How joints are solved: eliminated in linear time, all other rows on top; or as rows among the others, by sweeps
    over bodies without a matrix, at most `sweeps` of them, or by pivoting, with contacts as pyramids. As rows they take
    the velocity level, and stabilization by speed."""
    turning: Literal["implicit", "explicit", "momentum"] = "implicit"
    """How bodies turn on their own: by a gyroscopic torque that never gains energy, by LIU's explicit one, or with the
    angular momentum as the state (VON §2.4.1), which it keeps to rounding."""
    alpha: float | None = None
    """Gain of gaps of joints at acceleration level, with stabilization by speed (VON eq. 11); 1/s². Without one they
    fade over four steps. At velocity level VON's α (eq. 10) is erp/dt."""
    beta: float | None = None
    """Gain of the speeds of gaps, likewise; 1/s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.turning not in _TURNING:
            raise ValueError(f"turning is {self.turning!r}; there are {', '.join(_TURNING)}")
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver is {self.solver!r}; there are {', '.join(_SOLVERS)}")
        if self.solver != "direct" and (self.level, self.stabilization) != ("velocity", "speed"):
            raise ValueError(f'solver="{self.solver}" takes level="velocity" and stabilization="speed"')
        if self.solver != "direct" and self.turning == "momentum":
            raise ValueError(f'solver="{self.solver}" takes turning="implicit" or "explicit"')
        given = [name for name in ("alpha", "beta") if getattr(self, name) is not None]
        self._check_range(*given)
        if given and (self.level, self.stabilization) != ("acceleration", "speed"):
            raise ValueError(f'{given[0]} takes level="acceleration" and stabilization="speed"')

    def rules(self) -> dict[str, Any]:
        """As kernels have them."""
        return super().rules() | {"turning": _TURNING[self.turning], "alpha": self.alpha, "beta": self.beta}
