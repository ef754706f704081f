"""Stability of explicit springs, dampers, drives and motors for a step length, by a linearized model.

About the current pose the model is M ẍ + D ẋ + K x = 0. M is the mass matrix of the whole tree, so that it includes how
little a light link resists if its neighbours yield; the model has eigenvalues λ. A step of an explicit Runge-Kutta
method multiplies each mode by R(h λ), one of semi-implicit Euler by the eigenvalues of its own matrix. A mode that
grows in every step diverges, however small it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.motor import MOST
from poise.dynamics.functions import mass_matrix
from poise.kernel.memory import Block
from poise.model.model import Model

Array = NDArray[Any]
GROWTH = 1.05
"""Growth of a mode in a step above which it is unstable; explicit midpoint has less for slow oscillations."""
CHATTER = 1.0
"""Change of velocity in a step by a motor at its limit, below which its oscillation is invisible; m/s or rad/s."""
_AMPLIFY: dict[str, Callable[[Array], Array]] = {
    "midpoint": lambda z: 1.0 + z * (1.0 + z / 2.0),
    "rk4": lambda z: 1.0 + z * (1.0 + z / 2.0 * (1.0 + z / 3.0 * (1.0 + z / 4.0))),
}


class FormulationWarning(UserWarning):
    """A formulation is unsuited to what a world does; the message proposes an alternative.

    >>> import warnings
    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     world = scene.build(poise.Maximal(level="acceleration", integrator="euler"))
    >>> [one.category.__name__ for one in told]
    ['FormulationWarning']
    """


@dataclass(frozen=True)
class Laws:
    """Springs and dampers on degrees of freedom, as matrices."""

    stiffness: Array
    """(nv, nv)"""
    damping: Array
    """(nv, nv)"""

    def __add__(self, other: Laws) -> Laws:
        return Laws(self.stiffness + other.stiffness, self.damping + other.damping)

    @property
    def any(self) -> bool:
        """Whether any coefficient is nonzero."""
        return bool(self.stiffness.any() or self.damping.any())


@dataclass(frozen=True)
class Unstable:
    """An unstable mode."""

    growth: float
    """Growth in a step."""
    dof: int
    """Degree of freedom with the largest amplitude."""
    step: float
    """Stable length of a step; s."""


def passive_laws(model: Model, inputs: Block) -> Laws:
    """Springs and dampers of joints, and of the drive."""
    stiffness, damping = np.array(model.dof_stiffness), np.array(model.dof_damping)
    if inputs.counts()["n_gains"]:
        stiffness, damping = stiffness + inputs.gain_p, damping + inputs.gain_d
    return Laws(np.diag(stiffness), np.diag(damping))


def motor_laws(nv: int, motors: Block, which: Array) -> Laws:
    """Springs and dampers of some motors, by their rows."""
    K, D = np.zeros((nv, nv)), np.zeros((nv, nv))
    for j in np.flatnonzero(which & (motors.hurries == 0.0)).tolist():
        terms = slice(int(motors.term_start[j]), int(motors.term_start[j + 1]))
        gear = np.zeros(nv)
        np.add.at(gear, motors.term_dof[terms], motors.term_gear[terms])
        along = np.outer(gear, gear)
        # a negative gain makes errors grow in every integrator, as it should
        K, D = K + max(motors.stiffness[j], 0.0) * along, D + max(motors.damping[j], 0.0) * along
    return Laws(K, D)


def find_unstable(
    model: Model, q: Array, explicit: Laws, implicit: Laws, integrator: str, h: float, led: Sequence[int] = ()
) -> Unstable | None:
    """The mode that grows most in a step of an integrator; None if none grows. Euler's method treats the `implicit`
    laws implicitly; the other integrators treat all laws explicitly. Degrees of freedom in `led` have prescribed
    accelerations.
    """
    moves = np.asarray(model.dof_prescribed == 0)
    moves[list(led)] = False
    free = np.flatnonzero(moves)
    both = explicit + implicit
    if not len(free) or not both.any:
        return None
    pick = np.ix_(free, free)
    try:
        found = _Modes(mass_matrix(model, q)[pick], *(_part(laws, pick) for laws in (explicit, implicit)), integrator)
        growth, worst = found.growth(h)
    except np.linalg.LinAlgError:  # a body without mass: stability is unknown
        return None
    if growth <= GROWTH:
        return None
    low, high = 0.0, h
    for _ in range(24):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if found.growth(middle)[0] <= GROWTH else (low, middle)
    shape = np.abs(worst) ** 2 * (np.diag(both.stiffness)[free] + np.diag(both.damping)[free] / h)
    return Unstable(growth, int(free[int(np.argmax(shape))]), low)


def _part(laws: Laws, pick: Any) -> Laws:
    return Laws(laws.stiffness[pick], laws.damping[pick])


class _Modes:
    """Linear maps of a step for small motions."""

    def __init__(self, M: Array, explicit: Laws, implicit: Laws, integrator: str) -> None:
        self.M, self.explicit, self.implicit, self.integrator = M, explicit, implicit, integrator
        self.n = len(M)
        if integrator != "euler":
            both = explicit + implicit
            under = np.linalg.solve(M, np.hstack((-both.stiffness, -both.damping)))
            self.rates, self.shapes = np.linalg.eig(np.vstack((np.eye(self.n, 2 * self.n, self.n), under)))

    def growth(self, h: float) -> tuple[float, Array]:
        """Growth of the mode that grows most, and its shape, (n,)."""
        if self.integrator == "euler":
            factors, shapes = np.linalg.eig(self._euler(h))
        else:
            factors, shapes = _AMPLIFY[self.integrator](h * self.rates), self.shapes
        worst = int(np.argmax(np.abs(factors)))
        return float(np.abs(factors[worst])), shapes[self.n :, worst]

    def _euler(self, h: float) -> Array:
        """(2 n, 2 n) map of x, v over a step: v⁺ = v + h a, x⁺ = x + h v⁺."""
        K, D, soft = self.explicit.stiffness, self.explicit.damping, self.implicit
        heavy = self.M + h * soft.damping + h * h * soft.stiffness
        pull = np.hstack((-K - soft.stiffness, -D - soft.damping - h * soft.stiffness))
        speed = np.hstack((np.zeros((self.n, self.n)), np.eye(self.n))) + h * np.linalg.solve(heavy, pull)
        return np.vstack((np.eye(self.n, 2 * self.n) + h * speed, speed))


def _hurrying(motors: Block) -> list[int]:
    """Degrees of freedom of motors that track an acceleration, one each."""
    rows = np.flatnonzero((motors.hurries > 0.0) & (np.diff(motors.term_start) == 1))
    return np.asarray(motors.term_dof[motors.term_start[rows]]).tolist()


class StiffnessGuard:
    """Checks springs, dampers, drives and motors when they become stiffer, or steps longer."""

    def __init__(self, model: Model, integrator: str) -> None:
        self.model, self.integrator = model, integrator
        self._seen: tuple[Array, ...] | None = None
        self.warned = False

    def look(self, q: Array, inputs: Block, motors: Block | None, h: float, tracked: Sequence[int] = ()) -> str | None:
        """Raise ValueError if a law without bounds is unstable; return a warning's text if one with bounds is."""
        self._led = list(tracked)
        if motors is None:
            none = Laws(np.zeros((self.model.nv, self.model.nv)), np.zeros((self.model.nv, self.model.nv)))
            self._refuse(q, none, passive_laws(self.model, inputs), h)
            return None
        self._led += _hurrying(motors)
        gains = inputs.counts()["n_gains"]
        now = (
            np.array([h]),
            inputs.gain_p * gains,
            inputs.gain_d * gains,
            np.where(motors.hurries > 0.0, 0.0, motors.stiffness),
            np.where(motors.hurries > 0.0, 0.0, motors.damping),
            motors.high - motors.low,
            np.array([-len(self._led)]),
        )
        if self._seen is not None and all((new <= old).all() for new, old in zip(now, self._seen, strict=True)):
            return None
        implicit = passive_laws(self.model, inputs)
        finite = np.isfinite(motors.stiffness) & np.isfinite(motors.damping)
        bounded = np.isfinite(motors.high) & np.isfinite(motors.low)
        hard = motor_laws(self.model.nv, motors, finite & ~bounded)
        self._refuse(q, hard, implicit, h)
        self._seen = (
            now if self._seen is None else tuple(np.maximum(a, b) for a, b in zip(now, self._seen, strict=True))
        )
        if bounded.any() and not self.warned:
            all_motors = motor_laws(self.model.nv, motors, finite & (~bounded | self._chatters(q, motors, h)))
            found = find_unstable(self.model, q, all_motors, implicit, self.integrator, h, self._led)
            if found is not None:
                return self._tell(found, q, all_motors, implicit, h, "within the limits of motors, errors grow")
        return None

    def _chatters(self, q: Array, motors: Block, h: float) -> Array:
        """(rows,) motors whose limit visibly changes their own velocity in a step."""
        moves = np.asarray(self.model.dof_prescribed == 0)
        moves[self._led] = False
        free = np.flatnonzero(moves)
        inverse = np.zeros((self.model.nv, self.model.nv))
        try:
            inverse[np.ix_(free, free)] = np.linalg.inv(mass_matrix(self.model, q)[np.ix_(free, free)])
        except np.linalg.LinAlgError:
            return np.ones(len(motors.high), bool)
        gear = np.zeros((len(motors.high), self.model.nv))
        rows = np.repeat(np.arange(len(motors.high)), np.diff(motors.term_start))
        np.add.at(gear, (rows, motors.term_dof), motors.term_gear)
        most = np.minimum(np.maximum(np.abs(motors.high), np.abs(motors.low)), MOST)
        return np.asarray(h * most * np.einsum("ij,jk,ik->i", gear, inverse, gear) > CHATTER)

    def _refuse(self, q: Array, explicit: Laws, implicit: Laws, h: float) -> None:
        found = find_unstable(self.model, q, explicit, implicit, self.integrator, h, self._led)
        if found is not None:
            raise ValueError(self._tell(found, q, explicit, implicit, h, "errors grow"))

    def _euler_is_stable(self, q: Array, explicit: Laws, implicit: Laws, h: float) -> bool:
        return find_unstable(self.model, q, explicit, implicit, "euler", h, self._led) is None

    def _tell(self, found: Unstable, q: Array, explicit: Laws, implicit: Laws, h: float, how: str) -> str:
        name = self.model.dof_names[found.dof]
        ways = [f"dt of {found.step:.2g} s or less"]
        if self.integrator != "euler" and self._euler_is_stable(q, explicit, implicit, h):
            why = "" if explicit.any else ", which meets springs, dampers and drives implicitly"
            ways.append(f'integrator="euler"{why}')
        if explicit.any:
            ways.append('tracking by="accelerations"')
        ways.append('level="velocity", which meets motors implicitly too')
        return (
            f'springs, dampers, drives or motors at "{name}" are too stiff for integrator="{self.integrator}" at '
            f'level="acceleration" in steps of {h:.3g} s: {how} {found.growth:.3g}-fold a step. '
            f"Take {', '.join(ways[:-1])}, or {ways[-1]}"
        )
