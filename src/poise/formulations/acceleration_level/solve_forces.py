"""Constraint forces of a state: A λ = a_ref − α φ − β φ̇ − γ − J a_free over the active rows (KOK eqs. 10, 16-21).

Friction is in one of two modes for a part of a step:

    slides    the force is μ N against the sliding, and N the only unknown: A is no longer symmetric, and there may be
              no solution (Painlevé)
    holds     the target tangent acceleration is −v_t/h, which ends remaining sliding (KOK §8.1), by a force within
              the cone of μ N; beyond that the contact begins to slide, and the force opposes that

Loop joints and couplings always hold. Their errors at the beginning of a part, and those of contacts and limits, are
corrected by an acceleration that is the same in all stages: errors in later stages, halfway and off the straight line,
are not part of the motion.

A contact slides while its tangent velocity is larger than its change in the part. Otherwise its direction is not known
beforehand, and the contact holds: thus sliding ends, and begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint_limit import CODES
from poise.constraints.kinds.loop_layout import FIRST_COUPLING
from poise.constraints.kinds.motor import FIRST_ID
from poise.constraints.row_store import BALL, CONTACT, LAW, SINGLE
from poise.formulations.acceleration_level.acceleration_tracking import TRACK
from poise.formulations.acceleration_level.evaluate_rows import KIND, Seen
from poise.kernel.memory import F64
from poise.solve.lemke import Lemke
from poise.solve.newton import newton
from poise.solve.pgs_kernels import RUN
from poise.solve.pgs_pack import pack, start
from poise.solve.problem import Ball, Friction, Options, Problem
from poise.solve.residuals import natural_map, size_of

Array = NDArray[Any]
SLIP = 1e-6
"""Tangent speed below which a contact always holds; m/s."""
CREEP = 0.05
"""Max depenetration velocity of deep overlaps; m/s."""
FIRST, SWEEPS, STEPS = 2, 400, 15
"""Newton steps, then sweeps, then Newton steps again, before pivoting is tried."""
AGREE = 1e-3
"""Maximum error of redundant closures when the others have none; beyond it they contradict each other; m or rad."""
ENOUGH = 1e-5
"""Natural residual, relative to the largest |b|, at which a solution is accepted."""
LOOK_WORK, STEP_WORK = 5e6, 5e5
"""Work of evaluating the rows of a state, or of setting up a problem; and of a Newton step or a pivot, besides its
rows: the multiply-adds that kernels do in the same time as Python.
"""


@dataclass
class Hold:
    """Mode of a block in a part of a step."""

    slides: bool
    stop: Array
    """(3,) acceleration that ends the sliding of a contact, world axes; (n,) of dry friction; correction of
    closures.
    """
    tangent: Array
    """(3,) last direction of sliding."""
    mend: float = 0.0
    """Acceleration that corrects the error of a row that only pushes."""


@dataclass
class Settled:
    """The active blocks of a part of a step, and their modes."""

    calm: float
    """Time in which errors of held rows decay; s."""
    seen: Seen
    """Rows at the beginning of the part."""
    left: set[int]
    """Closures that are redundant then; they stay so, since in the later stages bodies are off their places."""
    holds: dict[int, Hold] = field(default_factory=dict)
    lam: dict[int, Array] = field(default_factory=dict)
    """Initial multipliers, in world axes for contacts."""


@dataclass
class Forces:
    """A solution."""

    lam: Array
    """(m,) forces of all rows; N or N·m."""
    accelerations: Array
    """(m,) accelerations of the rows, including γ."""
    residual: float
    """Natural residual, relative to the largest |b|."""
    iterations: int
    work: float = 0.0
    """As `Reduced.budget` counts it."""


def settle(seen: Seen, active: Array, h: float, calm: float, before: dict[int, tuple[Array, Array]]) -> Settled:
    """The active blocks of a part of length h, from the state at its beginning.

    `before` has the multipliers and last tangents of blocks that acted in the part before.
    """
    settled = Settled(calm, seen, set(seen.keys[seen.redundant.is_left(len(seen.speed))[seen.starts]].tolist()))
    closures, one_sided, most = seen.closures, seen.one_sided, 2.0 * calm * CREEP
    for k in np.flatnonzero(active):
        key, start = int(seen.keys[k]), int(seen.starts[k])
        lam, tangent = before.get(key, (np.zeros(3), np.zeros(3)))
        if seen.kinds[k] == CONTACT:
            slip = _slip(seen, start)
            speed = float(np.linalg.norm(slip))
            if speed > SLIP:
                tangent = slip / speed
            hold = Hold(speed > SLIP, -slip / h, tangent)
        else:
            rows = slice(start, start + (3 if seen.kinds[k] == BALL else 1))
            stop = (seen.one["target"][rows] - seen.speed[rows]) / h
            if closures[k]:
                stop = -np.clip(seen.phi[k], -most, most) / calm**2 - 2.0 / calm * seen.speed[rows]
            elif is_led(key):
                stop = np.zeros(1)
            hold = Hold(False, stop, np.zeros(3))
        if one_sided[k]:
            hold.mend = -max(float(seen.phi[k]), -most) / calm**2 - 2.0 / calm * float(seen.speed[start])
        settled.holds[key], settled.lam[key] = hold, lam
    return settled


def _slip(seen: Seen, start: int) -> Array:
    """(3,) tangent velocity of a contact."""
    return np.asarray(seen.speed[start + 1 : start + 3] @ seen.axes[start + 1 : start + 3])


def turn_to_hold(seen: Seen, settled: Settled, forces: Forces, h: float) -> bool:
    """Let contacts hold whose sliding velocity would change by more than its magnitude; returns whether
    there were any.
    """
    changed = False
    for k, key in enumerate(seen.keys.tolist()):
        hold = settled.holds.get(key)
        if hold is not None and hold.slides:
            start = int(seen.starts[k])
            change = h * float(np.linalg.norm(forces.accelerations[start + 1 : start + 3]))
            if change >= float(np.linalg.norm(_slip(seen, start))):
                hold.slides, changed = False, True
    return changed


# ---- the problem -----------------------------------------------------------------------------------------------------


@dataclass
class _Reduced:
    """The problem of the active rows."""

    problem: Problem
    E: Array
    """(m, unknowns) forces of rows per unknown."""
    warm: Array
    """Initial values of the unknowns."""
    kept: Array
    """(m,) forces of redundant rows, which are kept."""


def _wanted(seen: Seen, settled: Settled) -> Array:
    """(m,) target accelerations of rows."""
    wanted = np.array(seen.one["a_ref"])
    one_sided = seen.one_sided
    for k, key in enumerate(seen.keys.tolist()):
        hold = settled.holds.get(key)
        if hold is None:
            continue
        n = int(seen.starts[k])
        if one_sided[k]:
            wanted[n] += hold.mend
        if seen.kinds[k] == CONTACT:
            wanted[n + 1 : n + 3] += seen.axes[n + 1 : n + 3] @ hold.stop
        elif not one_sided[k]:
            wanted[n : n + len(hold.stop)] += hold.stop
    return wanted


def is_led(key: int) -> bool:
    """Whether a block prescribes an acceleration: a tracked coordinate, a motor."""
    kind, id = divmod(key, KIND)
    return (kind == SINGLE and id % CODES == TRACK) or FIRST_COUPLING < key <= FIRST_ID


def is_lasting(seen: Seen) -> Array:
    """(B,) blocks that always act: loop joints, motors, dry friction, tracked coordinates; no unilateral
    rows or laws.
    """
    return np.asarray(~seen.one_sided & (seen.kinds != LAW))


def _tangents(seen: Seen, hold: Hold, n: int) -> Array:
    """(2, 2) the last direction of sliding and its normal, in the tangents of a contact."""
    way = seen.axes[n + 1 : n + 3] @ hold.tangent
    size = float(np.linalg.norm(way))
    if size < 0.1:
        return np.eye(2)
    x, y = way / size
    return np.array(((x, y), (-y, x)))


class _Rows:
    """Builder of the problem of the active rows: λ = E x, and residuals P (A λ + b)."""

    def __init__(self, seen: Seen, cone: bool) -> None:
        self.seen, self.cone = seen, cone
        self.P: list[Array] = []
        self.E: list[Array] = []
        self.lo: list[float] = []
        self.hi: list[float] = []
        self.warm: list[float] = []
        self.frictions: list[Friction] = []
        self.balls: list[Ball] = []

    def add(self, row: Array, column: Array, lo: float, hi: float, warm: float) -> None:
        """Add an unknown."""
        self.P.append(row)
        self.E.append(column)
        self.lo.append(lo)
        self.hi.append(hi)
        self.warm.append(min(max(warm, lo), hi))

    def unit(self, row: int) -> Array:
        """(m,) unit vector of a row."""
        return np.eye(1, len(self.seen.speed), row)[0]

    def add_single(self, n: int, old: Array) -> None:
        """Add a row with bounds."""
        self.add(self.unit(n), self.unit(n), self.seen.one["lo"][n], self.seen.one["hi"][n], float(old[0]))

    def add_ball(self, n: int, old: Array) -> None:
        """Add three rows with a common bound on their forces; with separate bounds if there are no cones."""
        at, radius = len(self.P), float(self.seen.one["bound"][n])
        reach = np.inf if self.cone else radius
        for i in range(3):
            self.add(self.unit(n + i), self.unit(n + i), -reach, reach, float(old[i]))
        if self.cone:
            self.balls.append(Ball((at, at + 1, at + 2), radius))

    def add_contact(self, n: int, hold: Hold, old: Array) -> None:
        """Add a contact: its normal force alone if it slides, else with two tangents."""
        seen, at, unit = self.seen, len(self.P), self.unit(n)
        push = seen.axes[n : n + 3] @ old
        if hold.slides:
            against = _against(seen, hold, n)
            self.add(unit, unit - float(seen.one["slide"][n]) * against, 0.0, np.inf, float(push[0]))
            return
        self.add(unit, unit, 0.0, np.inf, float(push[0]))
        for way in _tangents(seen, hold, n):
            along = self.unit(n + 1) * way[0] + self.unit(n + 2) * way[1]
            self.add(along, along, -np.inf, np.inf, float(way @ push[1:]))
        self.frictions.append(Friction(at, (at + 1, at + 2), float(seen.one["bound"][n]), self.cone))


def _reduce(seen: Seen, settled: Settled, cone: bool) -> _Reduced:
    """The problem of the active rows; friction as cones, or as pyramids along the last tangents."""
    rows = _Rows(seen, cone)
    m = len(seen.speed)
    left, kept = seen.redundant.is_left(m), np.zeros(m)
    for k, key in enumerate(seen.keys.tolist()):
        hold = settled.holds.get(key)
        if hold is None:
            continue
        n, old = int(seen.starts[k]), settled.lam.get(key, np.zeros(3))
        if seen.A[n, n] == 0.0:  # nothing can move it
            continue
        if seen.kinds[k] == CONTACT:
            rows.add_contact(n, hold, old)
        elif seen.kinds[k] == BALL:
            rows.add_ball(n, old)
        elif left[n] or key in settled.left:
            kept[n] = old[0]
        else:
            rows.add_single(n, old)
    P, E = np.array(rows.P).reshape(-1, m), np.array(rows.E).reshape(-1, m).T
    A = P @ seen.A @ E
    if not any(hold.slides for hold in settled.holds.values()):
        A = 0.5 * (A + A.T)
    b = P @ (seen.pull - _wanted(seen, settled) + seen.A @ kept)
    b[np.diagonal(A) == 0.0] = 0.0
    problem = Problem(A, b, rows.lo, rows.hi, frictions=rows.frictions, balls=rows.balls)
    return _Reduced(problem, E, np.array(rows.warm), kept)


def _against(seen: Seen, hold: Hold, n: int) -> Array:
    """(m,) direction of sliding among the rows of a contact; the last valid one if it does not slide."""
    slip = seen.speed[n + 1 : n + 3]
    speed = float(np.linalg.norm(slip))
    way = slip / speed if speed > SLIP else _tangents(seen, hold, n)[0]
    out = np.zeros(len(seen.speed))
    out[n + 1 : n + 3] = way
    return out


# ---- its solution ----------------------------------------------------------------------------------------------------


def forces(seen: Seen, settled: Settled, tolerance: float) -> Forces | None:
    """Constraint forces of the active rows; None if no forces satisfy all rows.

    Newton's method from the last forces; sweeps, and Newton's method again; then pivoting, on pyramids along the last
    tangents, which also proves that there is no solution.
    """
    if not settled.holds or not len(seen.speed):
        return Forces(np.zeros(len(seen.speed)), seen.pull, 0.0, 0)
    reduced = _reduce(seen, settled, cone=True)
    problem, size = reduced.problem, size_of(reduced.problem)
    if not problem.size:
        return Forces(np.zeros(len(seen.speed)), seen.pull, 0.0, 0)
    x, steps = newton(problem, reduced.warm, tolerance * size, FIRST)
    spent, residual = len(steps), _residual(problem, x)
    each = STEP_WORK + float(problem.size) ** 3
    work = spent * each
    if residual > tolerance * size:
        x, swept, more = _longer(problem, x, tolerance)
        spent, residual = spent + swept + more, _residual(problem, x)
        work += LOOK_WORK + more * each + swept * float(problem.size) ** 2
    if residual > ENOUGH * size:
        found = Lemke().solve(_reduce(seen, settled, cone=False).problem, Options(tolerance))
        if not found.ok:
            return None
        x, steps = newton(problem, found.lam, tolerance * size, STEPS)
        spent, residual = spent + found.iterations + len(steps), _residual(problem, x)
        work += LOOK_WORK + (found.iterations + len(steps)) * each
        if residual > ENOUGH * size:
            x, residual = found.lam, found.natural  # a pyramid along the last tangent, as in KOK
    lam = reduced.E @ x + reduced.kept
    if seen is settled.seen:
        lam = seen.redundant.share_load(lam)
        if _contradict(seen, settled, lam):
            return None
    return Forces(lam, seen.pull + seen.A @ lam, residual / size, spent, work)


def _contradict(seen: Seen, settled: Settled, lam: Array) -> bool:
    """Whether redundant closures need another acceleration than those that determine them."""
    left = seen.redundant.is_left(len(lam))
    off = (seen.pull + seen.A @ lam - _wanted(seen, settled))[left]
    return bool(float(np.abs(off).max(initial=0.0)) * settled.calm**2 > AGREE)


def _longer(problem: Problem, x: Array, tolerance: float) -> tuple[Array, int, int]:
    """Continue after a few Newton steps without convergence: sweeps, and more steps; returns the number of each.

    Sweeps use A row by row, and do not need it symmetric; their convergence is checked.
    """
    options = Options(tolerance, SWEEPS, x)
    goal, spent = tolerance * size_of(problem), 0
    if float(problem.diagonal.min()) > 0.0:
        layout, packed = pack([problem], F64, 1.0)
        state = start([problem], layout, F64, options, [x])
        RUN[F64](packed.handle, state.handle, SWEEPS, 4, 1)
        swept, spent = state.best.copy(), int(state.sweeps[0])
        if np.isfinite(swept).all() and _residual(problem, swept) < _residual(problem, x):
            x = swept
        if _residual(problem, x) <= goal:
            return x, spent, 0
    x, steps = newton(problem, x, goal, STEPS)
    return x, spent, len(steps)


def _residual(problem: Problem, x: Array) -> float:
    return float(np.abs(natural_map(problem, x)).max(initial=0.0))
