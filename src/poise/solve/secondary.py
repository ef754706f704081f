"""Secondary targets: rows that leave their targets if another row has reached its bound and needs help (LIU).

LIU's last paragraph on solving leaves this open: leg joints with a target range may "pursue a secondary goal, such as
keeping the torso upright", so that the residual force on the torso can be limited. This module defines the law.

A helped row j has bounds, as has each of its helpers i; those have a tolerance t_i as well. Let s be shifts of the
helpers' targets, and P(s) the problem without help in which each helper's law is that of (λ_i, w_i − s_i): inside its
bounds w_i = s_i. Rows that share a helper make a group; J are the helped rows of a group and H its helpers. For given
shifts of other groups, a group's shifts are

    first     the ones with the least Σ w_j², j in J, at the answer of P(s), |s_i| ≤ t_i for i in H
    of these  the ones with the least Σ (s_i/t_i)², i in H with t_i > 0

So while all rows of J are inside their bounds w_j = 0 and no shift is needed: s = 0, every helper on its target. If j
is at its bound and w_j would not be zero, helpers shift just as far as needed: w_j = 0, λ_j at its bound. If tolerances
do not suffice, |w_j| is as small as they allow. A helper at its own bound, short of its target, follows that bound: its
shift has no effect and is zero. One that reaches its bound by helping stops there.

"Least" is meant locally: P's answer is linear in s while each row stays on its piece (`piecewise`), and its
sensitivities ∂w_J/∂s are those of the rows that are held. An answer is optimal on its pieces and on adjacent ones,
where rows at an end of their piece move on one by one. Far from it there may be better ones, as P is only piecewise
linear: a helper that would first have to leave its own bound is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poise.solve.laws import bounded
from poise.solve.least_squares import least_squares, null_space
from poise.solve.piecewise import Plane, Unit, units_of
from poise.solve.problem import Floats, Help, Problem

NEAR = 1e-9
"""Distance of a row from its bound, relative to the largest |w| and |b|, at which it counts as at the bound."""
REGULAR = 1e7
"""Largest solution for rows of length one and right sides of about one at which the rows count as independent."""
BETTER = 1e-10
"""Share by which an answer on other pieces must be better, so that rounding does not count as progress."""


@dataclass(frozen=True)
class Group:
    """Helped rows with common helpers, and all their helpers that may shift."""

    helped: tuple[int, ...]
    helpers: tuple[int, ...]
    tolerances: tuple[float, ...]


def groups_of(helps: Sequence[Help]) -> list[Group]:
    """Rows that share a helper, directly or through others.

    >>> groups_of([Help(0, (2,), (0.1,)), Help(1, (3,), (0.1,)), Help(4, (2, 5), (0.1, 0.2))])[0].helped
    (0, 4)
    """
    sets: list[tuple[set[int], dict[int, float]]] = []
    for one in helps:
        rows, helpers = {int(one.row)}, {int(k): float(t) for k, t in zip(one.helpers, one.tolerances, strict=True)}
        apart = []
        for others, theirs in sets:
            if theirs.keys() & helpers.keys():
                rows, helpers = rows | others, helpers | theirs
            else:
                apart.append((others, theirs))
        sets = [*apart, (rows, helpers)]
    found = []
    for rows, helpers in sorted(sets, key=lambda pair: min(pair[0])):
        moving = {row: t for row, t in sorted(helpers.items()) if t > 0.0}
        found.append(Group(tuple(sorted(rows)), tuple(moving), tuple(moving.values())))
    return found


def shifts_at(problem: Problem, lam: Floats, w: Floats) -> Floats:
    """(m,) shifts of the helpers in an answer: w_i within the tolerance, or zero at a bound that stops it."""
    s = np.zeros(problem.size)
    near = NEAR * _size(problem, w)
    diagonal = problem.diagonal
    for one in problem.helps:
        for row, tolerance in zip(one.helpers, one.tolerances, strict=True):
            scale = diagonal[row] if diagonal[row] > 0.0 else 1.0
            stopped = scale * (problem.hi[row] - lam[row] if w[row] < 0.0 else lam[row] - problem.lo[row]) <= near
            s[row] = 0.0 if stopped else np.clip(w[row], -tolerance, tolerance)
    return s


def shifted(problem: Problem, s: Floats) -> Problem:
    """P(s): the problem without help, with shifted targets."""
    return Problem(
        problem.A, problem.b - s, problem.lo, problem.hi, problem.cfm, problem.laws, problem.frictions, problem.balls
    )


def best_shifts(problem: Problem, lam: Floats, w: Floats, s: Floats) -> Floats:
    """(m,) the shifts that the law requires, from an answer λ of P(s); friction is plain.

    Groups are solved in turn, up to a maximum number of rounds, until none changes.
    """
    groups, matrix = groups_of(problem.helps), problem.matrix()
    for _ in range(20 if len(groups) > 1 else 1):
        before = s
        for group in groups:
            lam, s = descend(problem, matrix, lam, w, s, group)
            w = matrix @ lam + problem.b
        if np.abs(s - before).max(initial=0.0) <= NEAR * np.abs(s).max(initial=0.0):
            break
    return s


def shortcoming(problem: Problem, lam: Floats, w: Floats, s: Floats) -> Floats:
    """(m,) distance of an answer of P(s) from the law, in units of w; friction is plain.

    For helped rows, the part of w_j that more shifts could remove; for helpers, their distance from the least shifts
    with the same effect on the helped rows.
    """
    out = np.zeros(problem.size)
    matrix = problem.matrix()
    for group in groups_of(problem.helps):
        if not group.helpers:
            continue
        helped, helpers = list(group.helped), list(group.helpers)
        fitted = descend(problem, matrix, lam, w, s, group)[0]
        at_best = (matrix @ fitted + problem.b)[helped]
        if np.linalg.norm(at_best) < np.linalg.norm(w[helped]):
            out[helped] = w[helped] - at_best
        out[helpers] = (s - descend(problem, matrix, lam, w, s, group, fit=False)[1])[helpers]
    return out


def descend(
    problem: Problem, matrix: Floats, lam: Floats, w: Floats, s: Floats, group: Group, fit: bool = True
) -> tuple[Floats, Floats]:
    """λ and shifts at the minimum of a group, by descent from an answer of P(s).

    Without `fit` the w_j stay as they are, and only Σ (s_i/t_i)² is minimized.
    """
    if not group.helpers:
        return lam, s
    model = _Model(problem, matrix, s, group)
    units = units_of(problem, lam, w - s, NEAR * _size(problem, w))
    now = model.on_pieces(units, model.pack(lam, s), fit)
    for _ in range(10 * problem.size + 50):
        for unit, beyond in now.ends:
            here, unit.at = unit.at, beyond
            there = model.on_pieces(units, now.x, fit)
            if model.better(there, now):
                now = there
                break
            unit.at = here
        else:
            break
    return model.unpack(now.x, s)


def solve_pair(
    a: Sequence[Sequence[float]], r: Sequence[float], lo: Sequence[float], hi: Sequence[float], tolerance: float
) -> tuple[float, float, float]:
    """The law's inverse for one helper: λ of the helped row, λ of the helper, and its shift; the other rows are fixed.

    w = a λ + r with a (2, 2), symmetric and positive definite, the helped row being the first. Without help the helper
    is inside its bounds or at one of them: each gives a law of one row, w_j = (a_jj − a_ij²/a_ii) λ_j + … or
    w_j = a_jj λ_j + …. Then, λ_j being at its bound, w_j(s) = w_j(0) + (a_ij/a_ii) s and λ_i(s) = λ_i(0) + s/a_ii.

    >>> solve_pair([[1.0, 0.5], [0.5, 1.0]], [-2.0, 0.0], [-1.0, -9.0], [1.0, 9.0], 3.0)
    (1.0, 2.0, 2.5)
    """
    (a_jj, a_ij), a_ii = (float(a[0][0]), float(a[0][1])), float(a[1][1])
    helped = bounded(lo[0], hi[0])
    lam_j = helped.solve(a_jj - a_ij * a_ij / a_ii, r[0] - a_ij * r[1] / a_ii)
    lam_i = -(r[1] + a_ij * lam_j) / a_ii
    if not lo[1] <= lam_i <= hi[1]:
        lam_i = float(lo[1] if lam_i < lo[1] else hi[1])
        return helped.solve(a_jj, r[0] + a_ij * lam_i), lam_i, 0.0
    w_j = a_jj * lam_j + a_ij * lam_i + r[0]
    if lo[0] < lam_j < hi[0] or a_ij == 0.0:
        return lam_j, lam_i, 0.0
    s = min(max(-w_j * a_ii / a_ij, -tolerance), tolerance)
    s = min(max(s, (lo[1] - lam_i) * a_ii), (hi[1] - lam_i) * a_ii)
    return lam_j, lam_i + s / a_ii, s


def solve_block(a: Floats, r: Floats, lo: Floats, hi: Floats, tolerances: Sequence[float]) -> tuple[Floats, Floats]:
    """The law's inverse for several helpers: λ (1 + n,) of the helped row and its helpers, and the shifts (n,).

    a (1 + n, 1 + n) is symmetric and positive definite. Without help λ is the minimum of ½ λᵀ a λ + rᵀ λ between the
    bounds; the rest is `descend`. Both end after finitely many steps, exact up to rounding.

    >>> a = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> solve_block(a, np.array([-2.0, 0.0]), np.array([-1.0, -9.0]), np.array([1.0, 9.0]), [3.0])[0].round(12).tolist()
    [1.0, 2.0]
    """
    n = len(tolerances)
    problem = Problem(a, r, lo, hi, helps=[Help(0, tuple(range(1, n + 1)), tuple(tolerances))])
    factor, sides = np.linalg.cholesky(problem.A), np.vstack([-np.eye(n + 1), np.eye(n + 1)])
    rooms = np.concatenate([-problem.lo, problem.hi])
    some = np.isfinite(rooms)
    start = np.clip(0.0, problem.lo, problem.hi)
    lam = least_squares(factor.T, np.linalg.solve(factor, problem.b), sides[some], rooms[some], start)
    group = groups_of(problem.helps)[0]
    lam, s = descend(problem, problem.A, lam, problem.residual(lam), np.zeros(n + 1), group)
    return lam, s[1:]


@dataclass(frozen=True)
class _Point:
    """The minimum on some pieces."""

    x: Floats
    misses: float
    """|w_J|."""
    shifts: float
    """|s/t|."""
    ends: tuple[tuple[Unit, int], ...]
    """Units at an end of their piece, and the piece beyond."""


class _Model:
    """The unknowns x = (λ √scale, s/t) of a group, and planes over them."""

    def __init__(self, problem: Problem, matrix: Floats, s: Floats, group: Group) -> None:
        diagonal = problem.diagonal
        self.units = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        self.helpers, self.tolerances = list(group.helpers), np.array(group.tolerances)
        others = np.array(s)
        others[self.helpers] = 0.0
        m, k = problem.size, len(self.helpers)
        self.w = np.hstack([matrix * self.units, np.zeros((m, k))])
        self.offset = np.asarray(problem.b) - others
        self.w[self.helpers, m + np.arange(k)] = -self.tolerances
        self.helped, self.size = list(group.helped), m
        self.scale = _size(problem, np.zeros(1))
        self.planes: dict[int, tuple[Floats, float]] = {}

    def pack(self, lam: Floats, s: Floats) -> Floats:
        return np.concatenate([lam / self.units, s[self.helpers] / self.tolerances])

    def unpack(self, x: Floats, s: Floats) -> tuple[Floats, Floats]:
        shifts = np.array(s)
        shifts[self.helpers] = np.clip(x[self.size :], -1.0, 1.0) * self.tolerances
        return x[: self.size] * self.units, shifts

    def plane(self, plane: Plane) -> tuple[Floats, float]:
        """A plane as a row over x of length one, and its value. Residuals of helpers are w − s in it."""
        if id(plane) not in self.planes:
            self.planes[id(plane)] = self._plane(plane)
        return self.planes[id(plane)]

    def _plane(self, plane: Plane) -> tuple[Floats, float]:
        row, value = np.zeros(self.w.shape[1]), plane.value
        for place, factor in plane.lam.items():
            row[place] += factor * self.units[place]
        for place, factor in plane.w.items():
            row += factor * self.w[place]
            value -= factor * self.offset[place]
        length = float(np.linalg.norm(row)) or 1.0
        return row / length, value / length

    def on_pieces(self, units: list[Unit], x: Floats, fit: bool) -> _Point:
        """The minimum on these pieces, from their point nearest to x."""
        equal = [self.plane(plane) for unit in units for plane in unit.piece.equal]
        rows, values = np.array([row for row, _ in equal]), np.array([value for _, value in equal])
        x, free = _solutions(rows, values, x)
        beyond = [(unit, end, *self.plane(plane)) for unit in units for plane, end in unit.piece.ends]
        box = np.eye(len(x))[self.size :]
        C = np.vstack([box, -box, *(row for _, _, row, _ in beyond)])
        d = np.concatenate([np.ones(2 * len(box)), [value for *_, value in beyond]])
        room = np.maximum(d - C @ x, 0.0)  # if x is already outside, it need not return
        u = np.zeros(free.shape[1])
        goal = self.w[self.helped]
        if fit:
            missed = (goal @ x + self.offset[self.helped]) / self.scale
            u = least_squares(goal @ free / self.scale, missed, C @ free, room, u)
        lengths = np.linalg.norm(goal, axis=1, keepdims=True)
        kept = null_space(goal @ free / np.where(lengths > 0.0, lengths, 1.0))
        x, room = x + free @ u, np.maximum(room - C @ free @ u, 0.0)
        v = least_squares(box @ free @ kept, box @ x, C @ free @ kept, room, np.zeros(kept.shape[1]))
        x = x + free @ kept @ v
        slack, near = (d - C @ x)[2 * len(box) :], NEAR * max(1.0, float(np.abs(x).max()))
        ends = [(unit, end) for (unit, end, *_), left in zip(beyond, slack, strict=True) if left <= near]
        misses = float(np.linalg.norm(goal @ x + self.offset[self.helped]))
        return _Point(x, misses, float(np.linalg.norm(box @ x)), tuple(ends))

    def better(self, there: _Point, here: _Point) -> bool:
        """Whether the helped rows are nearer to their targets, or as near with smaller shifts."""
        margin = BETTER * max(here.misses, self.scale)
        if abs(there.misses - here.misses) > margin:
            return there.misses < here.misses
        return there.shifts < here.shifts - BETTER


def _solutions(rows: Floats, values: Floats, x: Floats) -> tuple[Floats, Floats]:
    """A solution of rows · x = values near x, and directions (n, k) to all others.

    Multipliers usually follow from the shifts, which come last; if not, a singular value decomposition is used.
    """
    m = len(rows)
    try:
        found = np.linalg.solve(rows[:, :m], np.column_stack([rows[:, m:], values - rows @ x]))
    except np.linalg.LinAlgError:
        found = np.full((m, 1), np.inf)
    if np.abs(found).max(initial=0.0) <= REGULAR * max(1.0, float(np.abs(x).max())):
        return x + np.append(found[:, -1], np.zeros(len(x) - m)), np.vstack([-found[:, :-1], np.eye(len(x) - m)])
    return x + np.linalg.lstsq(rows, values - rows @ x, rcond=1e-12)[0], null_space(rows)


def _size(problem: Problem, w: Floats) -> float:
    return max(float(np.abs(problem.b).max(initial=0.0)), float(np.abs(w).max(initial=0.0))) or 1.0
