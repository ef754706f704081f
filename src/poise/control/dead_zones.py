"""Controllers with dead zones (LIU): "keep the torso within 5° of upright; use the knees when the hips cannot".

LIU's controllers are constraints with laws of their own. One with a dead zone "does nothing if a perturbation will not
hurt performance". Joints within their ranges may "pursue a secondary goal, such as keeping the torso upright", so that
less residual force is needed to hold it. Here, before every step,

1. the lean φ of a body's axis and its rate, two numbers across the target direction;
2. the moment f of an implicit spring and damper beyond the zone (`dead_zone_law`, LIU eqs. 12 and 13);
3. torques of joints with the same effect on the lean as that moment, applied to the body from outside: A f with
   A = J M⁻¹ Jᵀ, and M⁻¹ of the character without contacts. The first joints act first (`demand_sharing`), the others
   provide the rest;
4. an external moment for the remainder, within a bound: LIU's residual force; the default bound is 0.

All of it is a function of the state; the controller has no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.dead_zone_law import Zone
from poise.control.demand_sharing import number
from poise.control.zone_control import Joints, Keeper
from poise.dynamics.state_queries import bodies, jacobian
from poise.model.model import Model
from poise.sim.controllers import StateToAct, Targets

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DeadZoneReading:
    """Reading of a dead zone after a step."""

    lean_deg: float
    """Angle between the body's axis and its target direction."""
    moment: Floats
    """(3,) commanded moment, in world axes; N·m."""
    torque: Floats
    """(nv,) torques of joints; N·m or N."""
    residual: Floats
    """(3,) external moment; N·m."""
    missing: Floats
    """(3,) part of the moment that was not achieved; N·m."""
    ranks: int
    """Number of ranks of joints that acted: 0 within the zone, 1 for the first joints alone."""


class DeadZone(Keeper):
    """Keeps a body's axis within an angle of a direction by torques of joints: for `world.add_controller`.

    Within the zone no torque acts. Beyond it, an implicit spring and damper return the axis. When `joints` reach the
    ends of their ranges or their greatest torque, `fallbacks` provide the rest: names form one rank together, each
    `SecondaryTarget` is a rank, in order.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, -0.5), name="trunk")
    >>> world = scene.build(dt=1 / 240)
    >>> world.q[0] = 0.15
    >>> zone = DeadZone("trunk", "trunk", within_deg=5.0, stiffness=500.0, damping=40.0)
    >>> _ = world.add_controller(zone)
    >>> world.step(720)
    >>> 5.0 < zone.reading.lean_deg < 7.0
    True
    """

    def __init__(
        self,
        body: str,
        joints: Joints,
        *,
        fallbacks: Joints = (),
        within_deg: float = 5.0,
        onset_deg: float = 1.0,
        stiffness: float = 2000.0,
        damping: float = 200.0,
        strength: float = np.inf,
        up: ArrayLike | None = None,
        toward: ArrayLike | None = None,
        residual: float = 0.0,
        horizon: float = 0.02,
        limit_time: float = 0.1,
        leverage: float = 2.0,
    ) -> None:
        """`within_deg`: the zone; over `onset_deg` beyond it the spring starts smoothly. `stiffness` (N·m/rad) and
        `damping` (N·m·s/rad) beyond the zone; `strength` (N·m): the greatest moment. `up`: the axis in the body's
        frame, by default the one that points up at rest; `toward`: its target direction in the world, by default up.
        `residual` (N·m): the greatest external moment. `horizon` (s): the implicit spring is evaluated after that time,
        or after a step if that is longer, which bounds its speed for any gains. `limit_time` T (s): joints move towards
        an end of their range no faster than the remaining range divided by T. `leverage`: bounds torques to this
        multiple of the moment, for poses in which joints have little effect on the lean.
        """
        within = number("within_deg", within_deg)
        if within >= 180.0:
            raise ValueError(f"within_deg is {within_deg}; it must be less than 180")
        onset = number("onset_deg", onset_deg)
        if onset == 0.0:
            raise ValueError("onset_deg is 0; it must be positive: a spring that comes in at once has a kink")
        zone = Zone(float(np.radians(within)), float(np.radians(onset)))
        super().__init__(
            body,
            joints,
            fallbacks,
            zone,
            stiffness=stiffness,
            damping=damping,
            strength=strength,
            residual=residual,
            horizon=horizon,
            limit_time=limit_time,
            leverage=leverage,
        )
        self._up = None if up is None else _direction("up", up)
        self._toward = None if toward is None else _direction("toward", toward)
        self.reading: DeadZoneReading | None = None
        """Reading of the last step."""

    def bind(self, model: Model, /) -> None:
        """Look up bodies and joints."""
        super().bind(model)
        gravity = float(np.linalg.norm(model.gravity))
        against = -np.asarray(model.gravity) / gravity if gravity > 0.0 else np.array((0.0, 0.0, 1.0))
        self._way = against if self._toward is None else self._toward
        at_rest = bodies(model, model.q_rest).rotation[self._number]
        self._axis = at_rest.T @ self._way if self._up is None else self._up
        self._across = _across(self._way)

    # ---- before each step --------------------------------------------------------------------------------------------

    def update(self, state: StateToAct, /) -> Targets | None:
        """Torques of joints, and an external moment on the body if `residual` allows one."""
        model, q = self._model, state.q
        place = bodies(model, q, state.v)
        phi = self._lean(place.rotation[self._number])
        rate = self._across @ place.twist[self._number, :3]
        lean, nothing = float(np.degrees(np.linalg.norm(phi))), np.zeros(3)
        self.reading = DeadZoneReading(lean, nothing, np.zeros(model.nv), nothing, nothing, 0)
        kept = self._keep(state, phi, rate, lambda: self._across @ jacobian(model, q, self._number).J[:3])
        if kept is None:
            return None
        moment, residual, missing = (self._across.T @ one for one in (kept.force, kept.outside, kept.missing))
        self.reading = DeadZoneReading(lean, moment, kept.torque, residual, missing, kept.ranks)
        return Targets(tau=kept.torque, forces=self._pushes(nothing, nothing, residual))

    def _lean(self, R: Floats) -> Floats:
        """(2,) rotation from the target direction to the body's axis, along two axes across the former; rad."""
        axis = R @ self._axis
        turn = np.cross(self._way, axis)
        sine, cosine = float(np.linalg.norm(turn)), float(self._way @ axis)
        if sine < 1e-12:  # upside down, any direction is right
            return np.zeros(2) if cosine > 0.0 else np.array((np.pi, 0.0))
        return np.asarray(self._across @ turn * (np.arctan2(sine, cosine) / sine))


def _direction(name: str, given: Any) -> Floats:
    """(3,) of length one."""
    try:
        vector = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        vector = np.zeros(0)
    length = float(np.linalg.norm(vector)) if vector.shape == (3,) else 0.0
    if not (np.isfinite(length) and length > 0.0):
        raise ValueError(f"{name} is {given!r}; it must be a direction, three numbers that are not all 0")
    return np.asarray(vector / length)


def _across(way: Floats) -> Floats:
    """(2, 3) axes across a direction."""
    first = np.cross(np.eye(3)[int(np.argmin(np.abs(way)))], way)
    first /= np.linalg.norm(first)
    return np.stack((first, np.cross(way, first)))
