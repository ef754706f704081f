"""Problems that take several solves: friction that drops once a contact slides, and secondary targets.

They work with any solver of the plain problem: it is called with plain problems, round by round, and each answer is
measured by the law of the whole. `Options.iterations` holds for every round; a result counts all.

Stick and slip. Contacts that slide already have the sliding coefficient; all others are first assumed to stick, with
the static one. Those that slide nevertheless get the sliding coefficient and keep it, and the problem is solved again.
A contact changes at most once, so there are at most as many rounds as contacts, plus one. With the sliding coefficient
a contact may come to rest again: then its force is within the sliding bound, hence within the static one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from poise.solve.problem import Floats, Friction, Options, Problem, Result, Status
from poise.solve.residuals import report, size_of
from poise.solve.secondary import best_shifts, shifted

ROUNDS = 20
"""Most rounds for secondary targets; if all laws are piecewise linear, two are usually enough."""

PATIENCE = 2
"""Rounds without an answer of the plain problem after which the rounds end."""
FINEST = 1e-5
"""Tolerance of later rounds, relative to the given one: if helpers have little effect, shifts magnify the error."""


class PlainSolver(Protocol):
    """Solver of the plain problems."""

    def solve(self, problem: Problem, options: Options = ...) -> Result:
        """The answer, with its measured status."""
        ...


def wants_rounds(problem: Problem) -> bool:
    """Whether a problem takes several solves."""
    return bool(problem.helps) or any(f.drops for f in problem.frictions)


def solve_in_rounds(solver: PlainSolver, problem: Problem, options: Options) -> Result:
    """The answer of a problem with friction that drops, with secondary targets, or with both."""
    if any(f.drops for f in problem.frictions):
        return _stick_or_slip(solver, problem, options)
    return _with_help(solver, problem, options)


def _stick_or_slip(solver: PlainSolver, problem: Problem, options: Options) -> Result:
    """Stick first; contacts that slide have the sliding coefficient from then on."""
    slides = [f.sliding_now for f in problem.frictions]
    warm, spent, history = options.warm, 0, list[float]()
    for _ in range(len(slides) + 1):
        plain = tuple(f.plain(sliding=one) for f, one in zip(problem.frictions, slides, strict=True))
        finer = replace(options, warm=warm, tolerance=0.5 * options.tolerance)  # the whole law has another measure
        found = solver.solve(replace(problem, frictions=plain), finer)
        spent, history, warm = spent + found.iterations, history + found.history, found.lam
        result = _measured(problem, found, spent, options)
        result.history = history
        limit = options.tolerance * size_of(problem)
        moved = [
            not before and f.drops and slips(problem, f, found.lam, found.w, limit)
            for f, before in zip(problem.frictions, slides, strict=True)
        ]
        if not any(moved):
            return result
        slides = [before or now for before, now in zip(slides, moved, strict=True)]
    return result


def slips(problem: Problem, friction: Friction, lam: Floats, w: Floats, limit: float) -> bool:
    """Whether a contact that should stick is pushed and slides, by more than a limit in units of w."""
    tangents = list(friction.tangents)
    scale = float(problem.diagonal[[friction.normal, *tangents]].max()) or 1.0
    pull, reach = lam[tangents] - w[tangents] / scale, friction.mu * max(float(lam[friction.normal]), 0.0)
    measure = np.linalg.norm if friction.cone else (lambda x: np.abs(x).max())
    return bool(lam[friction.normal] > 0.0 and measure(w[tangents]) > limit and measure(pull) > reach)


def _with_help(solver: PlainSolver, problem: Problem, options: Options) -> Result:
    """Shifts from the sensitivities of the last answer, until the answer obeys the law of secondary targets."""
    s, warm, spent, history = np.zeros(problem.size), options.warm, 0, list[float]()
    best, share, lost = None, 1.0, 0
    for number in range(ROUNDS):
        tolerance = options.tolerance * max(0.1**number, FINEST)
        found = solver.solve(shifted(problem, s), replace(options, warm=warm, tolerance=tolerance, history=False))
        spent, warm = spent + found.iterations, found.lam
        result = _measured(problem, found, spent, options)
        history.append(result.natural)
        lost = 0 if found.natural <= options.tolerance * size_of(problem) else lost + 1
        if best is None or result.natural < best.natural:
            best, start, share = result, s, 1.0
            if best.ok:
                break
            with np.errstate(all="ignore"):  # very large numbers overflow
                aim = best_shifts(problem, found.lam, problem.residual(found.lam), s)
        else:  # if friction rotates with the sliding, sensitivities do not hold so far
            share *= 0.5
        if lost == PATIENCE or not np.isfinite(aim).all():
            break
        s = start + share * (aim - start)
    assert best is not None
    return replace(best, iterations=spent, history=history if options.history else [])


def _measured(problem: Problem, found: Result, spent: int, options: Options) -> Result:
    """A plain answer, measured by the laws of the whole problem."""
    result = report(problem, found.lam, spent, options, Status.STOPPED if found.ok else found.status)
    both = result.status is Status.SOLVED and found.status is Status.SINGULAR
    return replace(result, status=Status.SINGULAR) if both else result
