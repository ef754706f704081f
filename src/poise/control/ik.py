"""Inverse kinematics: a pose that reaches goals, by their priorities, within the limits of joints.

An iteration solves rows (`ik_rows`), priority by priority. At priority k the goals of k are soft: with a cfm of μ,
w = (A + μ) λ + φ = 0 is the damped least squares problem of Levenberg and Marquardt. Goals of earlier priorities are
rows that keep the attained errors: equalities stay, floors do not get worse. Limits are one-sided rows. Each priority
is one mixed problem of `poise.solve`. As later priorities move in the null space of the earlier rows, they disturb
those in second order only, which the next iteration corrects.

An iteration that does not reduce the error of the first priority that can improve is rejected, and repeated with more
damping. So unreachable targets and stretched limbs converge to the nearest pose without oscillation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.goals import Goal
from poise.control.ik_rows import LIMIT, GoalRows, checked_goals, held_model
from poise.dynamics.argument_checks import check_model, checked_row
from poise.kernel.blas import few_blas_threads
from poise.model.model import Model
from poise.motion.motion_checks import positive
from poise.solve.dantzig import pivot_rows

Floats = NDArray[np.float64]

TURN = 0.6
"""Greatest rotation of a joint in an iteration; rad."""
NUDGE = 0.05
"""Joints are bent by this if a search stagnates; rad."""
LONG = 2.0
"""Iterations that exceed the bound by this factor are damped, not shortened."""
HARD = 1e-11
"""Softness of limits and of earlier priorities, relative to their diagonal entries of A."""
LEAST, MOST = 1e-9, 1e9
"""Minimum and maximum damping, relative in the same way; beyond the maximum the search ends."""
LEAN = 0.1
"""Share of a gain at a priority by which an earlier one may get worse; the next iteration corrects it."""
NEAR, NEAREST, FAR = 4.0, 0.5, 1e6
"""Errors of goals are shortened to this in an iteration: initial, minimum and maximum value; lengths of bones."""


@dataclass(frozen=True, eq=False)
class Reached:
    """Result of a search."""

    q: Floats
    """(nq,) coordinates."""
    error: Floats
    """(goals,) error of each goal; m or rad; for a whole pose the root of the sum of squares."""
    met: NDArray[np.bool_]
    """(goals,) whether each goal is met within the tolerance."""
    iterations: int
    """Accepted iterations."""


def reach(
    model: Model,
    q: ArrayLike,
    goals: Goal | Sequence[Goal],
    *,
    held: Sequence[str | int] | str = (),
    limits: bool = True,
    tolerance: float = 1e-5,
    iterations: int = 100,
) -> Reached:
    """A pose near `q` (nq,) that meets goals (see `poise.control.goals`) within limits and priorities.

    `held` names what does not move: joints (`"root"`), degrees of freedom (`"root.vz"`), or all joints up to a body
    (`"torso"`). Kinematic bodies do not move. Displacements have least kinetic energy, so that heavy parts move least.
    The search ends when all goals are met within the `tolerance` (m; rad for angles), when no goal improves, or after
    `iterations`.

    >>> import poise
    >>> from poise.control import goals, reach
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> model = scene.compile()
    >>> found = reach(model, model.q_rest, [goals.position("hand_r", (0.4, -0.2, 1.1))], held=["root"])
    >>> bool(found.met.all()), bool(found.error[0] < 1e-5)
    (True, True)
    """
    check_model(model)
    start = checked_row(model, "q", q)
    wishes = checked_goals(model, goals)
    names = [held] if isinstance(held, str) else list(held)
    rows = GoalRows(held_model(model, names), wishes, bool(limits))
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 1:
        raise ValueError(f"iterations: must be a whole number of at least 1, found {iterations!r}")
    exact = positive("tolerance", tolerance, "m")
    begin = _approach(rows, start, exact)
    found = search(rows, begin, exact, int(iterations))
    if all(met or goal.kind == "pose" for met, goal in zip(found.met, rows.goals, strict=True)):
        return found
    again = search(rows, rows.moved(begin, _nudge(rows)), exact, int(iterations))
    levels = np.unique(rows.level)
    errors = [_look(rows, one.q, levels).errors for one in (found, again)]
    return again if _better(errors[1], errors[0], exact) else found


def _nudge(rows: GoalRows) -> Floats:
    """(nv,) a small bend: a limb that is straight towards its goal has no gradient for bending.

    Joints with limits move towards the middle of their range, others to alternating sides.
    """
    model, v = rows.model, np.zeros(rows.model.nv)
    v[rows.turning] = NUDGE * np.where(np.arange(len(rows.turning)) % 2, 1.0, -1.0)
    start = {int(d): int(j) for d, j in zip(model.primitive_v_start, model.primitive_q_start, strict=True)}
    for d in rows.turning:
        low, high = model.dof_limits[d]
        if np.isfinite(low) and np.isfinite(high):
            v[d] = NUDGE * np.sign(0.5 * (low + high) - model.q_rest[start[int(d)]] or 1.0)
    v[model.dof_prescribed != 0] = 0.0
    return v


def _approach(rows: GoalRows, start: Floats, tolerance: float) -> Floats:
    """For goals that are far away, a pose with the free roots moved to them."""
    model = rows.model
    free = [int(v) for v, kind in zip(model.joint_v_start[:-1], model.joint_kinds, strict=True) if kind == "free"]
    carried = {d for v in free for d in range(v, v + 3) if not model.dof_prescribed[d]}
    far = _errors(rows, rows.look(start)[0], np.unique(rows.level)).max(initial=0.0) > NEAR * rows.length
    if not carried or not far:
        return start
    others = [name for d, name in enumerate(model.dof_names) if d not in carried]
    return search(GoalRows(held_model(model, others), rows.goals, False), start, tolerance, 10).q


@few_blas_threads
def search(rows: GoalRows, start: Floats, tolerance: float, iterations: int) -> Reached:
    """The search of `reach`, for goals with their rows."""
    levels = np.unique(rows.level)
    q = rows.moved(start, np.zeros(rows.model.nv))
    here = _look(rows, q, levels)
    damping = float(np.clip(1e-2 * (here.errors[1:].max(initial=0.0) / rows.length) ** 2, LEAST, 1e-2))
    radius = NEAR * rows.length
    taken, still = 0, 0
    for _ in range(iterations):
        if here.beyond <= tolerance and _met(rows, here.phi, tolerance).all():
            break
        step = _Step(rows, here.q, levels)
        for _ in range(16):
            v, share = step.short(damping, radius, here.beyond <= tolerance)
            there = _look(rows, rows.moved(here.q, v), levels) if share > 0.0 else here
            if _better(there.errors, here.errors, tolerance):
                break
            damping, radius = 8.0 * damping, max(0.25 * radius, NEAREST * rows.length)
        else:
            break
        gains = here.errors - there.errors
        still = still + 1 if np.max(gains) < 0.1 * tolerance else 0
        hoped = here.errors[1:] - _errors(rows, here.phi + share * step.speed[: rows.n_goals] / rows.scale, levels)
        radius = _radius(rows, radius, gains[1:], hoped)
        here, damping, taken = there, max(0.2 * damping, LEAST), taken + 1
        if still >= 2:
            break
    for _ in range(3):
        if here.beyond <= tolerance:
            break
        v, _ = _Step(rows, here.q, levels).short(MOST, radius, within=False)
        here = _look(rows, rows.moved(here.q, v), levels)
    error = np.array([_size(goal, here.phi[part]) for goal, part in zip(rows.goals, rows.parts, strict=True)])
    return Reached(here.q, error, _met(rows, here.phi, tolerance), taken)


@dataclass(frozen=True)
class _Seen:
    """A pose, and the errors of goals and limits at it."""

    q: Floats
    phi: Floats
    beyond: float
    """Greatest limit violation; rad or m."""
    errors: Floats
    """(1 + levels,) of limits and of each priority, weighted; m."""


def _look(rows: GoalRows, q: Floats, levels: NDArray[np.int64]) -> _Seen:
    phi, rooms = rows.look(q)
    over = np.minimum(rooms, 0.0)
    errors = np.concatenate(((rows.length * np.sqrt(over @ over),), _errors(rows, phi, levels)))
    return _Seen(q, phi, float(-over.min(initial=0.0)), errors)


class _Step:
    """Displacements from one pose, for any damping."""

    def __init__(self, rows: GoalRows, q: Floats, levels: NDArray[np.int64]) -> None:
        A, b, lo = rows.see(q)
        extra = len(b) - rows.n_goals
        self.rows, self.levels, self.lo = rows, levels, lo
        self.level = np.concatenate((rows.level, np.full(extra, LIMIT)))
        self.scale = np.concatenate((rows.scale, np.full(extra, rows.length)))
        self.A = A * np.outer(self.scale, self.scale)
        self.b, self.speed = self.scale * b, np.zeros(len(b))
        diagonal = self.A.diagonal()
        self.hard = HARD * np.maximum(diagonal, 1e-3 * (diagonal.max(initial=0.0) or 1.0) * (diagonal <= 0.0))

    def short(self, damping: float, radius: float, within: bool) -> tuple[Floats, float]:
        """A step within the bound on rotations, and its scale: uniform scaling keeps the priorities.

        A scale of 0 means that the step should be shortened by damping instead. This does not apply to joints that
        return `within` their limits, which are not damped.
        """
        v = self.displacement(damping, radius)
        most = float(np.abs(v[self.rows.turning]).max(initial=0.0))
        if within and most > LONG * TURN and damping < MOST:
            return v, 0.0
        share = TURN / most if most > TURN else 1.0
        return share * v, share

    def displacement(self, damping: float, radius: float) -> Floats:
        """(nv,) the step, priority after priority; stores its rows' `speed`."""
        speed, lam, near = np.zeros(len(self.b)), np.zeros(len(self.b)), self._nearer(radius)
        for level in self.levels:
            use = np.flatnonzero(self.level <= level)
            now = self.level[use]
            own, limit, floor = now == level, now == LIMIT, np.isfinite(self.lo[use])
            # earlier priorities keep their attained errors; floors may separate
            b = near[use]
            kept = np.where(floor, b - np.minimum(b + speed[use], 0.0), -speed[use])
            b = np.where(own | limit, b, kept)
            most = float(self.A.diagonal()[use][own].max(initial=0.0)) or 1.0
            soft = np.where(own, damping * most, self.hard[use])
            A, hi = self.A[np.ix_(use, use)] + np.diag(soft), np.full(len(use), np.inf)
            found = pivot_rows(A, b, self.lo[use], hi, limit=20 * len(use) + 200)
            lam[:] = 0.0
            lam[use] = found.lam
            speed = self.A @ lam
        self.speed = speed
        return self.rows.displacement(self.scale * lam)

    def _nearer(self, radius: float) -> Floats:
        """Errors, shortened for far goals, so that unreachable goals do not overshoot."""
        b = self.b.copy()
        for goal, part in zip(self.rows.goals, self.rows.parts, strict=True):
            size = float(np.sqrt(b[part] @ b[part]))
            if size > radius and goal.kind != "above":
                b[part] *= radius / size
        return b


def _radius(rows: GoalRows, radius: float, gains: Floats, hoped: Floats) -> float:
    """A larger radius if errors decreased as predicted, otherwise a smaller one."""
    first = np.flatnonzero(hoped > 1e-3 * np.abs(hoped).max(initial=0.0))
    if not len(first):
        return radius
    share = gains[first[0]] / hoped[first[0]]
    factor = 4.0 if share > 0.75 else 0.5 if share < 0.25 else 1.0
    return float(np.clip(factor * radius, NEAREST * rows.length, FAR * rows.length))


def _errors(rows: GoalRows, phi: Floats, levels: NDArray[np.int64]) -> Floats:
    """(levels,) root of the weighted sum of squares at each priority; m."""
    off = rows.scale * np.where(rows.floor, np.minimum(phi, 0.0), phi)
    return np.array([np.sqrt(np.sum(off[rows.level == level] ** 2)) for level in levels])


def _better(there: Floats, here: Floats, tolerance: float) -> bool:
    """Whether a priority improves, and earlier ones get worse by at most a small part of that."""
    for k in range(len(here)):
        gain = here[k] - there[k]
        allowed = np.maximum(here[:k] + LEAN * gain, 0.5 * tolerance)
        if gain > 1e-3 * tolerance + 1e-12 * here[k] and np.all(there[:k] <= allowed):
            return True
    return False


def _met(rows: GoalRows, phi: Floats, tolerance: float) -> NDArray[np.bool_]:
    return np.array([_size(goal, phi[part]) <= tolerance for goal, part in zip(rows.goals, rows.parts, strict=True)])


def _size(goal: Goal, phi: Floats) -> float:
    """Error of a goal; for a floor that of the lowest point."""
    return float(max(-phi.min(), 0.0) if goal.kind == "above" else np.sqrt(phi @ phi))
