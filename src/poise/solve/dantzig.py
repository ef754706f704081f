"""Dantzig: Baraff's pivoting method for bounds, piecewise laws and friction pyramids.

Rows are driven onto their laws one at a time while the earlier ones stay on theirs (LIU, "Solving with Complementarity
Conditions"; see `dantzig_kernels`). For a symmetric positive semi-definite A this ends at an answer that is exact up to
rounding, or at a proof that there is none: a direction of unbounded multipliers that changes no residual.

Friction is a pyramid whose bounds μ λ_normal are set from the present normal forces and updated, pass by pass, until
they no longer change (ODE stops after the second). A pass starts from the answer of the one before, so it costs little.
Oscillating passes are damped. If they do not converge, or if rounding makes the pivots cycle (rows that nearly depend
on each other, in units many powers of ten different), Newton's method on the natural map, with unknown normals as well,
continues from the best answer and from other starts. Either result is an answer of the whole pyramid; if neither
succeeds, the status is STOPPED. If friction allows several answers, one of them is found.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import inf, isfinite
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from poise.kernel.blas import few_blas_threads
from poise.kernel.memory import F64, Block
from poise.solve.dantzig_kernels import solve_tableau
from poise.solve.dantzig_tableau import TABLEAU
from poise.solve.laws import UPRIGHT, Law
from poise.solve.multi_pass import solve_in_rounds, wants_rounds
from poise.solve.newton import is_definite, newton, newton_from_soft, polished
from poise.solve.problem import Form, Options, Problem, Result, Status
from poise.solve.residuals import report, size_of
from poise.solve.solver_registry import check_form

Floats = NDArray[np.float64]
Piece = tuple[float, float, float, float, float, float]
"""left, right, top, bottom, slope, base: see `dantzig_tableau.TABLEAU`."""

KEPT_ROWS = 1024
ROUND = 10
"""Pivots and steps for each row, above which pivots are taken to cycle."""

_local = threading.local()


class Dantzig:
    """Solves by pivoting. Its iterations are pivots and steps: at most `iterations` in a pass for every 50 rows.

    SINGULAR is certain: other multipliers solve the problem too. SOLVED does not prove that there are no others, if
    several rows would have to leave their bounds at once.

    >>> problem = Problem([[2.0, 1.0], [1.0, 2.0]], [-3.0, 4.0], lo=[0.0, 0.0])
    >>> result = Dantzig().solve(problem)
    >>> result.lam.tolist(), result.status.value
    ([1.5, 0.0], 'solved')
    """

    takes: ClassVar[Form] = Form.EQUALITY | Form.BOUNDS | Form.LAWS | Form.PYRAMIDS | Form.STICK_SLIP | Form.SECONDARY

    @few_blas_threads
    def solve(self, problem: Problem, options: Options = Options()) -> Result:  # noqa: B008  (frozen)
        """The answer, with its measured status."""
        check_form(self, problem, options)
        if wants_rounds(problem):
            return solve_in_rounds(self, problem, options)
        result = _pivot(problem, options)
        if result.status is not Status.SOLVED and problem.forms() == Form.EQUALITY:
            return _least_squares(problem, result, options)
        if problem.frictions and not result.ok:
            result = _coupled(problem, result, options)
        goes_round = ROUND * problem.size <= _limit(problem, options) < result.iterations
        if not result.ok:
            result = _softened(problem, result, options)
        if not result.ok and goes_round and not problem.frictions:
            result = _coupled(problem, result, options)
        return polished(problem, result, options) if result.ok else _or_nothing(problem, result, options)


def _limit(problem: Problem, options: Options) -> int:
    return options.iterations * max(1, -(-problem.size // 50))


@dataclass(frozen=True)
class Pivoted:
    """Results of the kernel, without a measured residual."""

    lam: Floats
    """(m,) multipliers."""
    steps: int
    """Pivots and steps."""
    passes: int
    """Passes over all rows."""
    conflicting: bool
    """A row could not be driven onto its law: it contradicts others."""
    singular: bool
    """Other multipliers solve the problem too."""
    stopped: bool
    """Out of steps."""


@dataclass(frozen=True)
class Slides:
    """Tangent rows of pyramids, one entry each."""

    tangent: NDArray[np.int64]
    normal: NDArray[np.int64]
    mu: Floats


NO_SLIDES = Slides(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def pivot_rows(
    A: Floats,
    b: Floats,
    lo: Floats,
    hi: Floats,
    slides: Slides = NO_SLIDES,
    laws: Mapping[int, Law] = MappingProxyType({}),
    warm: Floats | None = None,
    limit: int = 1000,
) -> Pivoted:
    """The pivoting alone, on arrays, for simulation steps. Arguments are not checked, and residuals not measured.

    A is symmetric, (m, m), softness included. Normals of `slides` need bounds of 0 and inf; bounds of tangents are not
    read. Rows of `laws` have no other bounds.
    """
    n = len(b)
    pieces = {row: pieces_of(law) for row, law in laws.items()}
    block = _tableau(n, sum(map(len, pieces.values())), len(slides.mu))
    block.A[: n * n] = A.ravel()
    block.b[:n], block.lo[:n], block.hi[:n] = b, lo, hi
    block.lam[:n] = 0.0 if warm is None else warm
    block.start[:n] = np.arange(0, 3 * n, 3)
    block.end[:n] = np.arange(3, 3 * n + 3, 3)
    block.turn[:n] = np.isfinite(lo) | np.isfinite(hi)
    if k := len(slides.mu):
        block.tangent[:k], block.normal[:k], block.mu[:k] = slides.tangent, slides.normal, slides.mu
        block.lo[slides.tangent] = block.hi[slides.tangent] = 0.0
        block.turn[slides.tangent] = 2
    _fill_laws(block, n, pieces)
    for name, count in (("n", n), ("n_tangents", k), ("limit", limit)):
        block.set_count(name, count)
    solve_tableau[F64](block.handle)
    steps, passes, conflicting, singular, stopped = block.told[:5].tolist()
    return Pivoted(block.lam[:n].copy(), steps, passes, bool(conflicting), bool(singular), bool(stopped))


# ---- the tableau -----------------------------------------------------------------------------------------------------


def _pivot(problem: Problem, options: Options, softness: float = 0.0) -> Result:
    """The kernel's answer, with measured residuals. Softness, relative to the diagonal, is added to every row."""
    A = problem.matrix()
    A += np.diag(softness * np.diag(A))
    lo, hi = np.array(problem.lo), np.array(problem.hi)
    normals = [f.normal for f in problem.frictions]
    lo[normals], hi[normals] = 0.0, inf
    slides = NO_SLIDES
    if problem.frictions:
        tangents = [(tangent, f.normal, f.mu) for f in problem.frictions for tangent in f.tangents]
        tangent, normal, mu = (np.array(column) for column in zip(*tangents, strict=True))
        slides = Slides(tangent, normal, mu)
    with np.errstate(all="ignore"):  # very large numbers overflow; the result is measured
        run = pivot_rows(A, np.asarray(problem.b), lo, hi, slides, problem.laws, options.warm, _limit(problem, options))
        failed = Status.CONFLICTING if run.conflicting and not run.stopped else Status.STOPPED
        found = report(problem, run.lam, run.steps, options, failed)
    return replace(found, status=Status.SINGULAR) if found.ok and run.singular else found


def _fill_laws(block: Block, n: int, pieces: dict[int, tuple[Piece, ...]]) -> None:
    place = 3 * n
    for row, own in pieces.items():
        block.start[row], block.end[row], block.turn[row] = place, place + len(own), 1
        for piece in own:
            fields = (block.left, block.right, block.top, block.bottom, block.slope, block.base)
            for field, value in zip(fields, piece, strict=True):
                field[place] = value
            place += 1


def _tableau(n: int, n_extra: int, n_tangents: int) -> Block:
    """This thread's memory, at least of the given size; memory of large problems is not kept."""
    wanted = (n, n_extra, n_tangents)
    known: tuple[int, int, int] = getattr(_local, "room", (-1, -1, -1))
    if all(want <= have for want, have in zip(wanted, known, strict=True)):
        kept: Block = _local.block
        return kept
    rows, extra, tangents = (max(pair) for pair in zip(wanted, known, strict=True))
    sizes = dict.fromkeys(TABLEAU.fields, rows)
    sizes |= dict.fromkeys(("A", "T"), rows * rows) | dict.fromkeys(("tangent", "normal", "mu"), tangents)
    sizes |= {"aim": tangents, "slider": tangents, "couple": tangents * (tangents + 1)}
    sizes |= dict.fromkeys(("left", "right", "top", "bottom", "slope", "base"), 3 * rows + extra)
    block = TABLEAU.block(F64, **(sizes | {"told": 6}))
    if max(wanted) <= KEPT_ROWS:
        _local.block, _local.room = block, (rows, extra, tangents)
    return block


@lru_cache(maxsize=4096)
def pieces_of(law: Law) -> tuple[Piece, ...]:
    """A law's graph from left to right: (left, right, top, bottom, slope, base), slope −1 for vertical pieces.

    >>> pieces_of(Law(((0.0, 0.0),), left=UPRIGHT))
    ((0.0, 0.0, inf, 0.0, -1.0, 0.0), (0.0, inf, 0.0, 0.0, 0.0, 0.0))
    """
    points = list(law.vertices)
    pieces = [_ray(points[0], law.left, -inf)]
    for (lam0, w0), (lam1, w1) in pairwise(points):
        slope = (w0 - w1) / (lam1 - lam0) if lam1 > lam0 else inf
        if isfinite(slope):
            pieces.append((lam0, lam1, w0, w1, slope, w0 + slope * lam0))
        elif w1 < w0 and lam1 == lam0:
            pieces.append((lam0, lam0, w0, w1, -1.0, 0.0))
    pieces.append(_ray(points[-1], law.right, inf))
    return tuple(_merged(pieces))


def _ray(vertex: tuple[float, float], slope: float, end: float) -> Piece:
    (lam, w), rises = vertex, end < 0.0
    if slope == UPRIGHT:
        return (lam, lam, inf, w, -1.0, 0.0) if rises else (lam, lam, w, -inf, -1.0, 0.0)
    return (end, lam, w, w, abs(slope), w - slope * lam) if rises else (lam, end, w, w, abs(slope), w - slope * lam)


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Merge adjacent vertical pieces at one λ."""
    out: list[Piece] = []
    for piece in pieces:
        before = out[-1] if out else None
        if before and before[4] < 0.0 and piece[4] < 0.0 and before[0] == piece[0]:
            out[-1] = (piece[0], piece[1], before[2], piece[3], -1.0, 0.0)
        else:
            out.append(piece)
    return out


# ---- when pivoting alone is not enough -------------------------------------------------------------------------------


def _least_squares(problem: Problem, found: Result, options: Options) -> Result:
    """Rows without bounds that depend on each other: the shortest of the answers of least squares."""
    lam, _, rank, _ = np.linalg.lstsq(problem.matrix(), -np.asarray(problem.b), rcond=1e-12)
    result = report(problem, lam, found.iterations, options, Status.CONFLICTING)
    if result.ok:
        return result if rank == problem.size else replace(result, status=Status.SINGULAR)
    return found if found.ok else result


def _or_nothing(problem: Problem, found: Result, options: Options) -> Result:
    """No forces, or the least that bounds allow, if the found answer is worse than that."""
    lo, hi = np.array(problem.lo), np.array(problem.hi)
    blocks = list(problem.block_rows())
    lo[blocks], hi[blocks] = 0.0, 0.0
    for row, law in problem.laws.items():
        lo[row], hi[row] = law.lo, law.hi
    least = report(problem, np.clip(0.0, lo, hi), found.iterations, options, found.status)
    return least if least.natural < found.natural else found


def _softened(problem: Problem, found: Result, options: Options) -> Result:
    """Last resort for pivots that cycled or failed by rounding: a trace of softness in every row.

    It counts only if the answer meets the tolerance of the original problem.
    """
    for softness in (1e-12, 1e-10, 1e-8):
        result = _pivot(problem, options, softness)
        if result.ok:
            return replace(result, status=Status.SINGULAR, iterations=found.iterations + result.iterations)
    return found


def _coupled(problem: Problem, found: Result, options: Options) -> Result:
    """Newton's method on the natural map of all rows at once, for friction passes that did not converge and for pivots
    that cycled.

    Starts are the best answer so far, zero, and soft rows, uniformly and non-uniformly: a start may succeed where
    another one fails.
    """
    tolerance, best = options.tolerance * size_of(problem), found
    for start in (found.lam, np.zeros(problem.size), 0, 1, 2):
        if isinstance(start, int):
            lam, steps = newton_from_soft(problem, tolerance, uneven=start)
        else:
            lam, steps = newton(problem, start, tolerance)
        result = report(problem, lam, best.iterations + len(steps), options)
        if result.ok:
            return result if is_definite(problem, lam) else replace(result, status=Status.SINGULAR)
        best = replace(result if result.natural < best.natural else best, iterations=result.iterations)
    return best
