"""Controllers with dead zones (LIU): "keep the torso within 5° of upright; use the knees when the hips cannot".

LIU's controllers are constraints with laws of their own. One with a dead zone "does nothing if a perturbation will not
hurt performance". Joints within their ranges may "pursue a secondary goal, such as keeping the torso upright", so that
less residual force is needed to hold it. Here, before every step,

1. the lean φ of a body's axis and its rate, two numbers across the way that it is to point;
2. the moment f that a spring and damper beyond the zone would have at the end of the step (`dead_zone_law`, LIU eqs. 12
   and 13);
3. torques of joints that do to the lean what that moment, put on the body from outside, would do: A f with
   A = J M⁻¹ Jᵀ, and M⁻¹ of the character alone, as if in the air. First joints first (`demand_sharing`), the rest by
   the others;
4. of what is left a moment from outside, as far as it is allowed: LIU's residual force, and 0 unless told otherwise.

All of it is a function of the state alone. There is nothing to remember.
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
    """What a dead zone saw and did in a step."""

    lean_deg: float
    """Angle between the body's axis and the way that it is to point."""
    moment: Floats
    """(3,) that was asked for, in world axes; N·m."""
    torque: Floats
    """(nv,) of joints; N·m or N."""
    residual: Floats
    """(3,) moment from outside; N·m."""
    missing: Floats
    """(3,) of the moment what nobody could do; N·m."""
    ranks: int
    """How many ranks of joints have acted: 0 within the zone, 1 for the first joints alone."""


class DeadZone(Keeper):
    """Keeps a body's axis within an angle of a direction by torques of joints: for `world.add_controller`.

    Nothing is done within the zone. Beyond it a spring and damper bring the axis back, met at the end of a step. What
    `joints` cannot do, being at ends of their ranges or at their greatest torque, `fallbacks` do: names are one rank
    together, `SecondaryTarget`s one each, in their order.

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
        """`within_deg`: the zone; over `onset_deg` beyond it the spring comes in smoothly. `stiffness` (N·m/rad) and
        `damping` (N·m·s/rad) of what is beyond, `strength` (N·m) the greatest moment. `up`: the axis in the body's
        frame, else that which points up at rest; `toward`: where it is to point in the world, else up. `residual`
        (N·m): the greatest moment from outside. `horizon` (s): the spring is met after that time, or a step where that
        is longer; gains of any size act no faster. `limit_time` T (s): joints are not driven towards an end of their
        range faster than by what is left of it over T. `leverage`: no torque is greater than so many times the moment,
        where joints are in a bad place to do anything about the lean.
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
        """Of the last step."""

    def bind(self, model: Model, /) -> None:
        """Find bodies and joints."""
        super().bind(model)
        gravity = float(np.linalg.norm(model.gravity))
        against = -np.asarray(model.gravity) / gravity if gravity > 0.0 else np.array((0.0, 0.0, 1.0))
        self._way = against if self._toward is None else self._toward
        at_rest = bodies(model, model.q_rest).rotation[self._number]
        self._axis = at_rest.T @ self._way if self._up is None else self._up
        self._across = _across(self._way)

    # ---- before each step --------------------------------------------------------------------------------------------

    def update(self, state: StateToAct, /) -> Targets | None:
        """Torques of joints, and a moment on the body where one is allowed."""
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
        """(2,) the turn from the way to the body's axis, along two axes across the way; rad."""
        axis = R @ self._axis
        turn = np.cross(self._way, axis)
        sine, cosine = float(np.linalg.norm(turn)), float(self._way @ axis)
        if sine < 1e-12:  # upside down any direction will do
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
