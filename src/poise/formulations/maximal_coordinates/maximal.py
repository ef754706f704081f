"""Maximal coordinates: every link is a separate rigid body, joints are constraints between them (VON §2-§5, LIU S1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from poise.dynamics.maximal_bodies.joint_forces import EXPLICIT, IMPLICIT, MOMENTUM
from poise.formulations.options import Options

_SOLVERS = ("direct", "pgs", "dantzig")
_TURNING = {"implicit": IMPLICIT, "explicit": EXPLICIT, "momentum": MOMENTUM}


@dataclass(frozen=True)
class Maximal(Options):
    """Formulation of worlds in maximal coordinates; the scene and the interface of the world are the same.

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
    """How joints are solved. "direct" eliminates them in linear time, with all other constraints on top. Otherwise
    joints are rows among the others: "pgs" is matrix-free over bodies, with at most `sweeps` sweeps; "dantzig" is a
    pivoting method, with friction pyramids. Both need the velocity level, and stabilization by speed.
    """
    turning: Literal["implicit", "explicit", "momentum"] = "implicit"
    """How the gyroscopic torque is integrated: "implicit" never gains energy, "explicit" is LIU's, and "momentum" has
    the angular momentum as the state (VON §2.4.1), which it conserves to rounding.
    """
    alpha: float | None = None
    """Gain of joint gaps at acceleration level, with stabilization by speed (VON eq. 11); 1/s². By default they decay
    over four steps. At velocity level VON's α (eq. 10) is erp/dt.
    """
    beta: float | None = None
    """Gain of the velocities of gaps, likewise; 1/s."""

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
        """The options under the names of the kernels' fields."""
        return super().rules() | {"turning": _TURNING[self.turning], "alpha": self.alpha, "beta": self.beta}
