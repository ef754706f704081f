"""The one numerical checker of rows: what a part says of φ̇ and φ̈ against differences along a motion of two bodies.

A motion has any velocities and accelerations: centres move along x + v t + ½ v̇ t², rotations along
exp(ω t + ½ ω̇ t²) R, whose angular velocity is ω + ω̇ t + O(t²). Differences are of fourth order. How far they are off is
known: the differences of steps h and 2h differ by 15 times the truncation of the first, and rounding is some ε φ/h and
ε φ/h².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernel.runner import COMPILED, Mode, Of, run
from poise.constraints.row_parts.point_parts import Body
from poise.kernel.quat import exp_rotation, rotation
from poise.kernel.values import Value
from poise.kernel.vec import Mat3, Vec3

H = 1e-3
"""Step of differences; s."""
ROUNDING = 100 * float(np.finfo(float).eps)
"""What some hundred operations may leave of each number."""


@dataclass(frozen=True)
class Moving:
    """A body on its way: x, v (m, m/s), R, w (rad/s), and the accelerations of both."""

    x: np.ndarray
    R: np.ndarray
    w: np.ndarray
    v: np.ndarray
    w_dot: np.ndarray
    v_dot: np.ndarray

    def at(self, t: float) -> Moving:
        """The body a time t later."""
        turn = self.w * t + self.w_dot * (0.5 * t * t)
        rate = self.w + self.w_dot * t
        # left Jacobian of the exponential; turn × rate is of the order t², and the first term left out of t⁵
        once = np.cross(turn, rate)
        twice = np.cross(turn, once)
        w = rate + once / 2 + twice / 6 + np.cross(turn, twice) / 24
        x = self.x + self.v * t + self.v_dot * (0.5 * t * t)
        return replace(self, x=x, R=exp(turn) @ self.R, w=w, v=self.v + self.v_dot * t)

    @property
    def body(self) -> Body:
        """The state as parts take it."""
        return Body(vec(self.x), mat(self.R), vec(self.w), vec(self.v))

    @property
    def twist(self) -> np.ndarray:
        return np.concatenate([self.w, self.v])

    @property
    def acceleration(self) -> np.ndarray:
        return np.concatenate([self.w_dot, self.v_dot])


def vec(v: Any) -> Vec3:
    return Vec3(*map(float, v))


def mat(m: Any) -> Mat3:
    return Mat3.of(*map(float, np.asarray(m).ravel()))


def exp(phi: Any) -> np.ndarray:
    """Rotation matrix of a rotation vector."""
    return np.array(list(rotation(exp_rotation(vec(phi))).leaves())).reshape(3, 3)


def random_rotation(rng: np.random.Generator, largest: float = 2.6) -> np.ndarray:
    """A rotation by up to `largest`, rad."""
    axis = rng.normal(size=3)
    return exp(axis / np.linalg.norm(axis) * rng.uniform(0.0, largest))


def random_moving(rng: np.random.Generator, R: np.ndarray | None = None) -> Moving:
    """A body anywhere within a metre that moves and accelerates in every direction."""
    x, w, v, w_dot, v_dot = rng.uniform(-1, 1, (5, 3)) * np.array([[1], [2], [2], [3], [3]])
    return Moving(x, random_rotation(rng) if R is None else R, w, v, w_dot, v_dot)


WORLD = Moving(np.zeros(3), np.eye(3), *np.zeros((4, 3)))


def rows_of(parts: Any) -> np.ndarray:
    """The numbers of one or several rows: (n, 14) for two bodies."""
    parts = parts if isinstance(parts, tuple) else (parts,)
    return np.array([[float(x) for x in part.leaves()] for part in parts])


Rows = Callable[..., np.ndarray]
"""Rows of a part for some bodies, each φ, γ and six numbers a body: (n, 2 + 6 bodies)."""


def rows_function(part: Callable[..., Any], args: Sequence[Any]) -> Rows:
    """The rows of a part attached with `args`."""
    return lambda a, b: rows_of(part(a.body, b.body, *args))


def first_difference(f: Callable[[float], Any], h: float = H) -> Any:
    """f'(0), of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def second_difference(f: Callable[[float], Any], h: float = H) -> Any:
    """f''(0), of fourth order."""
    return (16 * (f(h) + f(-h)) - (f(2 * h) + f(-2 * h)) - 30 * f(0.0)) / (12 * h * h)


def _dot(rows: np.ndarray, vectors: Sequence[np.ndarray]) -> np.ndarray:
    return sum(rows[:, 2 + 6 * k : 8 + 6 * k] @ v for k, v in enumerate(vectors))


def row_rates(rows: np.ndarray, *bodies: Moving) -> np.ndarray:
    """J v of each row."""
    return _dot(rows, [m.twist for m in bodies])


def row_accelerations(rows: np.ndarray, *bodies: Moving) -> np.ndarray:
    """J v̇ + γ of each row."""
    return _dot(rows, [m.acceleration for m in bodies]) + rows[:, 1]


def _agree(found: np.ndarray, difference: Any, f: Any, h: float, rounding: np.ndarray, what: str) -> None:
    """A derivative against differences with steps h and 2h: these are off by 1/15 and 16/15 of what they differ by."""
    right = difference(f, h)
    truncation = np.abs(right - difference(f, 2 * h))
    assert (truncation <= 1e-4 * (1.0 + np.abs(right))).all(), f"{what}: steps of {h} are too large to tell"
    off = np.abs(found - right)
    assert (off <= truncation + rounding).all(), (
        f"{what}: {found} where differences say {right}; off by {off.max():.1e}"
    )


def check_derivatives(rows: Rows, *bodies: Moving, holonomic: bool = True, h: float = H) -> None:
    """J against φ, and J v̇ + γ against φ and against J v, along the motion of the bodies.

    Next to singular poses the derivatives of φ are large, and the step should be smaller.
    """
    here = rows(*bodies)
    assert np.isfinite(here).all()

    def phi(t: float) -> np.ndarray:
        return rows(*(m.at(t) for m in bodies))[:, 0]

    def rate(t: float) -> np.ndarray:
        now = [m.at(t) for m in bodies]
        return row_rates(rows(*now), *now)

    if holonomic:
        rounding = ROUNDING * (1.0 + np.abs(here[:, 0]))
        _agree(row_rates(here, *bodies), first_difference, phi, h, rounding / h, "φ̇")
        _agree(row_accelerations(here, *bodies), second_difference, phi, h, rounding / h**2, "φ̈")
    else:
        assert (here[:, 0] == 0.0).all()
    speed = 1.0 + max(np.abs(m.twist).max() for m in bodies)
    rounding = ROUNDING * (1.0 + np.abs(here[:, 2:]).max(axis=1)) * speed
    _agree(row_accelerations(here, *bodies), first_difference, rate, h, rounding / h, "d(Jv)/dt")


def check_balance(rows: np.ndarray, *bodies: Moving) -> None:
    """No net force, and no net couple about any point: what depends on the relative pose alone moves no mass centre."""
    covectors = [rows[:, 2 + 6 * k : 8 + 6 * k] for k in range(len(bodies))]
    force = sum(c[:, 3:] for c in covectors)
    couple = sum(c[:, :3] + np.cross(m.x, c[:, 3:]) for c, m in zip(covectors, bodies, strict=True))
    bound = 1e-13 * (1.0 + np.abs(rows).max())
    assert np.abs(force).max() <= bound, f"net force {force}"
    assert np.abs(couple).max() <= bound, f"net couple {couple}"


def check_invariance(rows: Rows, a: Moving, b: Moving, rng: np.random.Generator) -> None:
    """φ does not change when both bodies are moved as one."""
    R, x = random_rotation(rng), rng.normal(size=3)
    moved = [replace(m, x=R @ m.x + x, R=R @ m.R) for m in (a, b)]
    assert np.abs(rows(*moved)[:, 0] - rows(a, b)[:, 0]).max() <= 1e-13


LANES = tuple(mode for mode in COMPILED if str(mode.width) in ("f64x8", "f32x16"))


def samples_of(samples: Sequence[Sequence[Any]]) -> list[Any]:
    """The arguments of many calls, each argument as the runner wants it."""
    columns = list(zip(*samples, strict=True))
    return [
        Of(type(c[0]), np.array([list(v.leaves()) for v in c], float))
        if isinstance(c[0], Value)
        else np.array(c, float)
        for c in columns
    ]


def _round(mode: Mode, v: Any) -> Any:
    """An argument as a mode holds it, in float64."""
    if isinstance(v, Value):
        return type(v).of(*map(float, mode.round(list(v.leaves()))))
    return float(mode.round(v))


def check_compiled(mode: Mode, part: Callable[..., Any], samples: Sequence[Sequence[Any]], loss: float = 64.0) -> None:
    """Compiled rows equal those of plain Python, for the same numbers, up to `loss` roundings of the largest one."""
    found = run(mode, part, *samples_of(samples))
    found = np.stack(found if isinstance(found, list) else [found], axis=1)
    for k, sample in enumerate(samples):
        rounded = [_round(mode, v) for v in sample]
        right = rows_of(part(*rounded))
        assert np.isfinite(found[k]).all()
        scale = np.maximum(1.0, np.abs(right)).max(axis=1, keepdims=True)
        off = np.abs(found[k] - right) / scale
        assert off.max() <= loss * mode.eps, f"sample {k}: {found[k]} where plain Python has {right}"
