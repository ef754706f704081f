"""Light sweeps with momentum: what they leave beside plain sweeps, and where they stay."""

from __future__ import annotations

import numpy as np
import pytest

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64X8, load
from poise.solve.nesterov_kernels import glide, prepare, weigh
from poise.solve.newton_kernels import NEWTON, newton_block
from poise.solve.pgs_kernels import ANSWER, LAW, ROWS, RUN
from poise.solve.problem import Friction, Problem
from solve.kernel_problems import MU, drawn, laid, residual, solved

CONTACTS, SINGLES = 5, 4
LANES = F64X8.lanes


@kernel
def glide_all(p, s, n, most):
    prepare(p, n)
    weigh(p, s, n)
    glide(p, s, n, load(s.tolerance, 0) < 0.0, most)


@kernel
def weigh_all(p, s, n):
    prepare(p, n)
    weigh(p, s, n)


GLIDE = entry(glide_all, ROWS, ANSWER, NEWTON, extra=("int64",))
WEIGH = entry(weigh_all, ROWS, ANSWER, NEWTON)


def eight(seed: int, rank: int = 40) -> list[Problem]:
    return [drawn(1000 * seed + k, CONTACTS, SINGLES, rank) for k in range(LANES)]


def glided(problems: list[Problem], start: np.ndarray, sweeps: int, tolerance: float = 0.0) -> tuple[np.ndarray, ...]:
    """(n, lanes) multipliers after so many sweeps, and how many sweeps each lane took."""
    p, a = laid(problems, F64X8, tolerance)
    a.lam[: problems[0].size] = start
    GLIDE[F64X8](p.handle, a.handle, newton_block(F64X8, problems[0].size).handle, sweeps)
    return a.lam[: problems[0].size].copy(), a.sweeps.reshape(-1).copy()


def plainly(problems: list[Problem], sweeps: int) -> np.ndarray:
    """The same of sweeps that solve every block exactly."""
    p, a = laid(problems, F64X8, 0.0)
    RUN[F64X8](p.handle, a.handle, sweeps, sweeps, 0)
    return a.lam[: problems[0].size].copy()


def left(problems: list[Problem], lam: np.ndarray) -> np.ndarray:
    return np.array([residual(problem, lam[:, k]) for k, problem in enumerate(problems)])


def stack(boxes: int) -> Problem:
    """A pile of boxes of one mass: each contact pushes those above and below it. What falls must be told all the way
    down and up again, for which plain sweeps take as many as there are boxes, squared.
    """
    A = 2.0 * np.eye(boxes) - np.eye(boxes, k=1) - np.eye(boxes, k=-1)
    A[0, 0] = 1.0
    b = np.zeros(boxes)
    b[0] = -1.0
    return Problem(A, b, np.zeros(boxes), np.full(boxes, np.inf))


@pytest.mark.parametrize(
    ("contacts", "singles"), [(0, 1), (0, 2), (0, 3), (0, 7), (1, 0), (2, 0), (3, 1), (5, 4), (6, 8)]
)
def test_w_of_rows_however_many_are_summed_up_at_once(contacts: int, singles: int) -> None:
    problems = [drawn(70 + k, contacts, singles, 40) for k in range(LANES)]
    size = problems[0].size
    p, a = laid(problems, F64X8, 0.0)
    a.lam[:size] = np.random.default_rng(5).normal(size=(size, LANES))
    WEIGH[F64X8](p.handle, a.handle, newton_block(F64X8, size).handle)
    for lane, problem in enumerate(problems):
        assert a.w[:size, lane] == pytest.approx(problem.matrix() @ a.lam[:size, lane] + problem.b, abs=1e-12)


def test_rows_of_other_kinds_are_felt_and_stay_where_they_are() -> None:
    problems = [free_rows(seed) for seed in range(LANES)]
    p, a = laid(problems, F64X8, 0.0)
    p.block_kind[1] = LAW
    lam = np.random.default_rng(6).normal(size=(3, LANES))
    a.lam[:3] = lam
    n = newton_block(F64X8, 3)
    WEIGH[F64X8](p.handle, a.handle, n.handle)
    for lane, problem in enumerate(problems):
        assert a.w[:3, lane] == pytest.approx(problem.matrix() @ lam[:, lane] + problem.b, abs=1e-12)
    GLIDE[F64X8](p.handle, a.handle, n.handle, 400)
    assert np.array_equal(a.lam[1], lam[1])
    for lane, problem in enumerate(problems):
        w = problem.matrix() @ a.lam[:3, lane] + problem.b
        assert w[[0, 2]] == pytest.approx(0.0, abs=1e-9)


def free_rows(seed: int) -> Problem:
    J, free = np.random.default_rng(900 + seed).normal(size=(3, 3)), np.full(3, np.inf)
    return Problem(J @ J.T + 0.5 * np.eye(3), np.array([1.0, -2.0, 0.5]), -free, free)


def test_momentum_carries_news_through_a_stack() -> None:
    boxes = 12
    problems = [stack(boxes)] * LANES
    swift = left(problems, glided(problems, np.zeros((boxes, LANES)), 3 * boxes)[0])[0]
    plain = left(problems, plainly(problems, 3 * boxes))[0]
    print(f"{3 * boxes} sweeps with momentum leave {swift:.1e}, without {plain:.1e} (0.1 of that)")
    assert swift < 0.1 * plain


def test_an_answer_stays_where_it_is() -> None:
    problems = eight(20)
    lam = np.stack([solved([problem], F64X8, 1e-13)[0][:, 0] for problem in problems], axis=1)
    moved, _ = glided(problems, lam, 6)
    assert moved == pytest.approx(lam, abs=1e-9)


def test_lanes_rest_when_a_sweep_changes_little() -> None:
    """Each at its own time, and then no bit of them changes."""
    problems = eight(30)
    nought = np.zeros((problems[0].size, LANES))
    lam, count = glided(problems, nought, 200, 1e-3)
    assert len(set(count.tolist())) > 1
    assert count.max() < 200
    for lane in range(LANES):
        early, _ = glided(problems, nought, int(count[lane]) + 1, 1e-3)
        assert np.array_equal(early[:, lane], lam[:, lane])
    assert (left(problems, lam) < 1e-2).all()


def with_blanks(problem: Problem, singles: int, contacts: int) -> Problem:
    """A problem among rows that it does not have, as lanes have them for others."""
    own = 3 * len(problem.frictions)
    at = np.r_[np.arange(problem.size - own), singles + np.arange(own)]
    size = singles + 3 * contacts
    A, b, lo, hi = np.zeros((size, size)), np.zeros(size), np.zeros(size), np.full(size, 1e-300)
    A[np.ix_(at, at)] = problem.matrix()
    b[at], lo[at], hi[at] = problem.b, problem.lo, problem.hi
    starts = (singles + 3 * np.arange(contacts)).tolist()
    return Problem(A, b, lo, hi, frictions=[Friction(s, (s + 1, s + 2), MU, cone=True) for s in starts])


def test_rows_of_others_change_no_bit() -> None:
    """Wherever they are, and however many."""
    problems = eight(40)
    answers = []
    for singles, contacts in ((SINGLES, CONTACTS), (SINGLES + 1, CONTACTS), (SINGLES + 3, CONTACTS + 2)):
        wide = [with_blanks(problem, singles, contacts) for problem in problems]
        p, a = laid(wide, F64X8, 0.0)
        p.scale[...] = np.where(p.scale > 0.0, p.scale, 1.0)
        GLIDE[F64X8](p.handle, a.handle, newton_block(F64X8, wide[0].size).handle, 20)
        own = np.r_[np.arange(SINGLES), singles + np.arange(3 * CONTACTS)]
        answers.append(a.lam[own].copy())
        assert not np.delete(a.lam[: wide[0].size], own, axis=0).any()
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])
