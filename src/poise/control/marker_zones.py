"""Joint torques keep markers within a distance of their targets (LIU's dead zones, secondary targets).

`MarkerZone` does for a point of a body what `DeadZone` does for a lean: within the zone no torque acts. Beyond it the
first joints act, then the other ranks, then an external force. The controller has no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.dead_zone_law import Zone
from poise.control.demand_sharing import number
from poise.control.zone_control import Joints, Keeper
from poise.dynamics.argument_checks import checked_vector
from poise.dynamics.state_queries import bodies, jacobian
from poise.motion.motion_checks import vectors
from poise.sim.controllers import StateToAct, Targets

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MarkerZoneReading:
    """Reading of a marker's zone after a step."""

    distance: float
    """Distance of the marker from its target; m."""
    force: Floats
    """(3,) commanded force, in world axes; N."""
    torque: Floats
    """(nv,) torques of joints; N·m or N."""
    residual: Floats
    """(3,) external force; N."""
    missing: Floats
    """(3,) part of the force that was not achieved; N."""
    ranks: int
    """Number of ranks of joints that acted: 0 within the zone, 1 for the first joints alone."""


class MarkerZone(Keeper):
    """Keeps a point of a body within a distance of a target by joint torques; for `world.add_controller`.

    `position` is the target (m), or a function of time that returns it. Beyond the zone an implicit spring and damper
    return the point. `fallbacks` provide what `joints` cannot, as in `DeadZone`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=2.0), axis="z", name="lift")
    >>> world = scene.build(dt=1 / 240)
    >>> zone = MarkerZone("lift", "lift", (0, 0, 0), within=0.05, onset=0.01, stiffness=2000.0, damping=100.0)
    >>> _ = world.add_controller(zone)
    >>> world.step(720)
    >>> 0.05 < zone.reading.distance < 0.08  # beyond its zone by what carries the weight
    True
    """

    def __init__(
        self,
        body: str | int,
        joints: Joints,
        position: ArrayLike | Callable[[float], ArrayLike],
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        fallbacks: Joints = (),
        within: float = 0.05,
        onset: float = 0.01,
        stiffness: float = 2000.0,
        damping: float = 200.0,
        strength: float = np.inf,
        residual: float = 0.0,
        horizon: float = 0.02,
        limit_time: float = 0.1,
        leverage: float = 2.0,
    ) -> None:
        """`point`: in the body's frame (m). `within` (m): the zone; over `onset` (m) beyond it the spring starts
        smoothly. `stiffness` (N/m), `damping` (N·s/m), `strength` (N) the greatest force, `residual` (N) the greatest
        from outside. `horizon` and `limit_time` (s) as those of `DeadZone`. `leverage` (m): no torque is greater than
        the force times that.
        """
        if number("onset", onset) == 0.0:
            raise ValueError("onset is 0; it must be positive: a spring that comes in at once has a kink")
        gains: dict[str, Any] = {"stiffness": stiffness, "damping": damping, "strength": strength, "residual": residual}
        times = {"horizon": horizon, "limit_time": limit_time, "leverage": leverage}
        super().__init__(body, joints, fallbacks, Zone(number("within", within), float(onset)), **gains, **times)
        self._point, self.position = checked_vector("point", point), position
        self._place(0.0)
        self.reading: MarkerZoneReading | None = None
        """Reading of the last step."""

    def _place(self, time: float) -> Floats:
        return vectors("position", self.position(time) if callable(self.position) else self.position, (3,))

    def update(self, state: StateToAct, /) -> Targets | None:
        """Torques of joints, and an external force on the marker if `residual` allows one."""
        model, q, now = self._model, state.q, self._place(state.time)
        found = bodies(model, q, state.v)
        arm = found.rotation[self._number] @ self._point
        phi = found.position[self._number] + arm - now
        twist = found.twist[self._number]
        rate = twist[3:] + np.cross(twist[:3], arm)
        if callable(self.position):  # the target's velocity contributes to the error's rate
            rate = rate - (self._place(state.time + state.dt) - now) / state.dt
        far, nothing = float(np.linalg.norm(phi)), np.zeros(3)
        self.reading = MarkerZoneReading(far, nothing, np.zeros(model.nv), nothing, nothing, 0)
        kept = self._keep(state, phi, rate, lambda: jacobian(model, q, self._number, self._point).J[3:])
        if kept is None:
            return None
        self.reading = MarkerZoneReading(far, kept.force, kept.torque, kept.outside, kept.missing, kept.ranks)
        return Targets(tau=kept.torque, forces=self._pushes(arm, kept.outside, nothing))
