"""Translation and rotation actuators of limited strength (LAM §2.1).

    F = 2 m (α (x_target − x) / Δt² − β v / Δt)                                                             (LAM eq. 2)
    T = 2 J (α W − β ω) / Δt + ω ∧ J ω,   W = log(R_target R⁻¹) / Δt                                    (LAM eqs. 3, 4)

m and J are those of the rigid part that the body belongs to, without joints. β = B √(2α): B, the elasticity
coefficient, is the damping ratio. LAM prints − ω ∧ J ω, which would double the gyroscopic torque, and R_target R⁻¹ − I,
which is a rotation vector only for small angles.

At a point r off the centre of mass, m is the effective mass of the point: Λ = (1/m − [r]× J⁻¹ [r]×)⁻¹.

**Stability.** With a = 2α (h/Δt)² and b = 2β h/Δt, n actuators on each rigid part and Σ Jᵀ Λ J ≤ n M for any
articulated structure, steps of h (v⁺ = v + h a, x⁺ = x + h v⁺) are stable where n (a/4 + b/2) < 1: any mode u has
m (z − 1)² + b (z − 1) + a z = 0 with a, b ≤ n of theirs. LAM's own form is unstable beyond, for relaxation times
below about β steps. Here forces are divided by max(1, n (a/2 + b)): LAM's formula at usual steps, stable at any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, isnan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.key_speeds import Speeds
from poise.control.pacing import Route
from poise.dynamics.argument_checks import body_number, checked_vector
from poise.dynamics.state_queries import Bodies
from poise.model.model import Model
from poise.motion.path import Path
from poise.motion.rotations import cross, quat_from_matrix, quat_multiply, quat_to_matrix, skew

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Actuator:
    """Base class of actuators. The constructor validates the numbers."""

    body: str | int
    """By its name or number."""
    path: Path
    """Path in the world. Only its shape counts; the motion of the body determines the target's timing."""
    base_distance: float
    """Distance of the target ahead of the body; m or rad."""
    alpha: float = 0.1
    """Share of the distance to the target that is covered in the relaxation time, in (0, 1]."""
    elasticity: float = 1.0
    """LAM's B, the damping ratio: 1 is critical, less overshoots; at most 1 / √(2 α)."""
    relaxation: float = 0.1
    """LAM's Δt, independent of the step; s."""
    gamma: float = 0.0
    """Rate of the filter that compensates external actions: 0 never, inf at once, without a filter; 1/s."""
    limit: float = inf
    """Largest force or torque; N or N·m."""
    speeds: Mapping[float, float] = field(default_factory=dict)
    """Preferred speeds (m/s or rad/s) at keys of the path, by their times."""
    span: tuple[float, float] | None = None
    """Part of the path to follow, for paths without an end."""
    name: str | None = None
    """Default: the body's name, and "move" or "turn"."""

    TURNS = False

    def __post_init__(self) -> None:
        """Validate the fields."""
        _within("alpha", self.alpha, 0.0, 1.0, "a share above 0, at most 1", open_low=True)
        most = 1.0 / sqrt(2.0 * self.alpha)
        _within("elasticity", self.elasticity, 0.0, most, f"from 0 to {most:.4g}, which is 1 / √(2 alpha)")
        for name in ("relaxation", "base_distance"):
            value = _number(name, getattr(self, name))
            if not (isfinite(value) and value > 0.0):
                raise ValueError(f"{name} is {value:g}; it must be positive")
        for name in ("gamma", "limit"):
            _within(name, getattr(self, name), 0.0, inf, "0 or more")
        if self.TURNS and self.base_distance >= np.pi:
            raise ValueError(f"base_distance is {self.base_distance:g}; an angle between rotations is less than π rad")
        if not isinstance(self.body, str | int | np.integer):
            raise TypeError(f"body is a {type(self.body).__name__}; it must be a name or a number")

    @property
    def label(self) -> str:
        """Its name."""
        return self.name if self.name is not None else f"{self.body} {'turn' if self.TURNS else 'move'}"

    @property
    def beta(self) -> float:
        """Half the share of the speed that damping removes in the relaxation time: B √(2α)."""
        return self.elasticity * sqrt(2.0 * self.alpha)

    @property
    def stiffness(self) -> float:
        """Stiffness per unit mass: 2α / Δt²; 1/s²."""
        return 2.0 * self.alpha / self.relaxation**2

    @property
    def damping(self) -> float:
        """Damping per unit mass: 2β / Δt; 1/s."""
        return 2.0 * self.beta / self.relaxation

    @property
    def natural_speed(self) -> float:
        """Speed on a straight path without obstacles: α d / (β Δt); m/s or rad/s."""
        return self.stiffness * self.base_distance / self.damping if self.damping > 0.0 else inf


@dataclass(frozen=True, eq=False)
class TranslationActuator(Actuator):
    """A force that pulls a point of a body towards a target on a path of positions (LAM eq. 2).

    >>> from poise.motion import KeyedPath
    >>> pull = TranslationActuator("ball", KeyedPath([0, 1], [(0, 0, 0), (2, 0, 0)]), base_distance=0.1, limit=50.0)
    >>> round(pull.natural_speed, 3), pull.label
    (0.224, 'ball move')
    """

    point: ArrayLike | None = None
    """In the body's frame; default: the centre of mass of its rigid part; m."""


@dataclass(frozen=True, eq=False)
class RotationActuator(Actuator):
    """A torque that rotates a body towards a target on a path of orientations (LAM eqs. 3, 4).

    >>> from poise.motion import KeyedPath
    >>> turned = [(1, 0, 0, 0), (0, 0, 0, 1)]
    >>> RotationActuator("ball", KeyedPath([0, 1], [(0, 0, 0)] * 2, turned), base_distance=0.5).label
    'ball turn'
    """

    TURNS = True


class Fitted:
    """An actuator on a model: its body, its effective mass or inertia, and its force law."""

    def __init__(self, actuator: Actuator, model: Model) -> None:
        self.actuator, self.index = actuator, body_number(model, actuator.body)
        self.route = Route(actuator.path, turns=actuator.TURNS, span=actuator.span)
        self.link = int(model.body_link[self.index])
        self._check_moves(model)
        carrier = int(model.link_body[self.link])
        self.carrier = carrier
        """Body whose frame is the frame of the rigid part."""
        xx, yy, zz, xy, xz, yz = model.link_inertia[self.link]
        inertia = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
        self._turn = np.array(model.body_quat_wxyz[self.index])
        self.arm = np.array(model.link_com[self.link])
        """(3,) point of action, in the frame of the rigid part; m."""
        self.at_com = True
        if isinstance(actuator, TranslationActuator) and actuator.point is not None:
            local = checked_vector("point", actuator.point)
            self.arm = model.body_position[self.index] + quat_to_matrix(self._turn) @ local
            self.at_com = bool(np.allclose(self.arm, model.link_com[self.link], rtol=0.0, atol=1e-12))
        mass = float(model.link_mass[self.link])
        self.inertia = inertia if actuator.TURNS else self._shown_mass(mass, inertia, model.link_com[self.link])
        """(3, 3) effective mass or inertia, in the axes of the rigid part; kg or kg·m²."""
        if not np.linalg.eigvalsh(self.inertia)[0] > 0.0:
            raise ValueError(
                f'body "{model.body_names[self.index]}" has no mass or inertia for "{actuator.label}" to move'
            )
        self.speeds = None
        if actuator.speeds:
            self.speeds = Speeds(self.route, actuator.natural_speed, actuator.speeds)
        self.shared = 1
        """Number of actuators that interact on this rigid part."""

    def _check_moves(self, model: Model) -> None:
        name = model.body_names[self.index]
        if self.link < 0:
            raise ValueError(f'body "{name}" never moves: "{self.actuator.label}" cannot act on it')
        dofs = slice(int(model.link_dof_start[self.link]), int(model.link_dof_start[self.link + 1]))
        if model.dof_prescribed[dofs].any():
            raise ValueError(f'body "{name}" follows a path of its own: "{self.actuator.label}" cannot act on it')

    def _shown_mass(self, mass: float, inertia: Floats, com: Floats) -> Floats:
        if self.at_com:
            return mass * np.eye(3)
        arm = skew(self.arm - com)
        return np.asarray(np.linalg.inv(np.eye(3) / mass - arm @ np.linalg.solve(inertia, arm)))

    def speeds_along(self) -> Speeds:
        """Preferred speeds, or the natural one."""
        if self.speeds is None:
            self.speeds = Speeds(self.route, self.actuator.natural_speed, {})
        return self.speeds

    def here(self, place: Bodies) -> tuple[Floats, Floats, Floats]:
        """(3 or 4,) position or orientation, (3,) velocity, (3, 3) axes of the rigid part; in world axes."""
        R = place.rotation[self.carrier]
        omega, velocity = place.twist[self.carrier, :3], place.twist[self.carrier, 3:]
        if self.actuator.TURNS:
            return quat_multiply(quat_from_matrix(R), self._turn), omega, R
        arm = R @ self.arm
        return place.position[self.carrier] + arm, velocity + cross(omega, arm), R

    def main(self, offset: Floats, velocity: Floats, wanted: Floats, R: Floats, h: float) -> Floats:
        """(3,) force or torque towards the target, world axes (LAM eqs. 2 to 4); N or N·m."""
        a = self.actuator
        rate = a.stiffness * offset - a.damping * (velocity - wanted)
        calm = max(1.0, self.shared * (0.5 * h * h * a.stiffness + h * a.damping))
        push = R @ (self.inertia @ (R.T @ (rate / calm)))
        return np.asarray(push + self.gyroscopic(velocity, R) if a.TURNS else push)

    def gyroscopic(self, omega: Floats, R: Floats) -> Floats:
        """(3,) ω ∧ J ω in world axes; N·m."""
        return cross(omega, R @ (self.inertia @ (R.T @ omega)))

    def wrench(self, push: Floats, R: Floats) -> Floats:
        """(6,) wrench at the origin of the rigid part."""
        if self.actuator.TURNS:
            return np.concatenate((push, np.zeros(3)))
        return np.concatenate((cross(R @ self.arm, push), push))


def limited(push: Floats, limit: float) -> Floats:
    """The vector, shortened to the limit (LAM §3.2, step 3)."""
    size = float(np.sqrt(push @ push))
    return push * (limit / size) if size > limit else push


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}; it must be a number") from None
    if isnan(number):
        raise ValueError(f"{name} is not a number")
    return number


def _within(name: str, value: Any, low: float, high: float, right: str, open_low: bool = False) -> None:
    number = _number(name, value)
    if not low <= number <= high * (1.0 + 1e-12) or (open_low and number == low):
        raise ValueError(f"{name} is {number:g}; it must be {right}")
