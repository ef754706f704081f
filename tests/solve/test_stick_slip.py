"""Friction with a static and a sliding coefficient: a block on a slope, known answers, which answer is taken first."""

from dataclasses import replace
from math import atan, cos, inf, nan, sin

import numpy as np
import pytest

from poise.solve.dantzig import Dantzig
from poise.solve.direct import Direct
from poise.solve.friction import Coefficients
from poise.solve.lemke import Lemke
from poise.solve.pgs import PGS
from poise.solve.problem import Form, Friction, Help, Options, Problem, Status
from poise.solve.residuals import natural_map, settled, size_of, violation
from poise.solve.solver_registry import UnsupportedForm
from solve.problems import draw
from solve.round_problems import draw_round

PYRAMIDS = {"dantzig": Dantzig(), "pgs": PGS(memory=5), "lemke": Lemke()}
MANY = Options(iterations=20_000)
MASS, DT, GRAVITY = 3.0, 0.01, 9.81
STATIC, SLIDING = 0.8, 0.5
LEVELS = {"flat": 0.8 * atan(SLIDING), "between": atan(0.65), "steep": 1.2 * atan(STATIC)}
"""Slopes, rad: below both friction angles, between them, above both."""


def slope(angle: float, speed: float, cone: bool, turn: float = 0.0) -> Problem:
    """A block on a slope, told whether it slides: normal row, two tangents turned against the way down; velocities.

    w = λ/m + v + g dt: impulses and the velocity after a step. `speed` is downhill.
    """
    down = speed + DT * GRAVITY * sin(angle)
    b = [-DT * GRAVITY * cos(angle), down * cos(turn), down * sin(turn)]
    friction = Coefficients(STATIC, SLIDING).contact(0, (1, 2), cone=cone, sliding_now=speed != 0.0)
    return Problem(np.eye(3) / MASS, b, frictions=[friction])


CASES = [pytest.param(solver, False, id=f"{name} pyramid") for name, solver in PYRAMIDS.items()]
CASES.append(pytest.param(PYRAMIDS["pgs"], True, id="pgs cone"))


@pytest.mark.parametrize(("solver", "cone"), CASES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_block_on_a_slope(solver, cone, level):
    """At rest it holds up to the static friction angle; sliding it goes on beyond the sliding one; in closed form."""
    angle, push = LEVELS[level], MASS * DT * GRAVITY
    turn = 0.7 if cone else 0.0
    rest = solver.solve(slope(angle, 0.0, cone, turn), MANY)
    slides = solver.solve(slope(angle, 1.0, cone, turn), MANY)
    assert rest.status is slides.status is Status.SOLVED
    gain = DT * GRAVITY * (sin(angle) - SLIDING * cos(angle))
    bound = SLIDING * push * cos(angle)
    if level == "steep":
        assert np.hypot(*rest.w[1:]) == pytest.approx(gain)
        assert np.hypot(*rest.lam[1:]) == pytest.approx(bound)
    else:
        assert rest.w == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
        assert np.hypot(*rest.lam[1:]) == pytest.approx(push * sin(angle))
    assert np.hypot(*slides.w[1:]) == pytest.approx(1.0 + gain)
    assert np.hypot(*slides.lam[1:]) == pytest.approx(bound)
    assert slides.lam[0] == pytest.approx(push * cos(angle))


@pytest.mark.parametrize("cone", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_a_block_that_was_pushed(cone, level):
    """Many steps: below the sliding angle it comes to rest, and stays; above it never does.

    v falls by g (μ cos − sin) dt a step, so it rests after v over that many steps, rounded up.
    """
    angle, speed, steps = LEVELS[level], 0.5, 0
    rate = DT * GRAVITY * (SLIDING * cos(angle) - sin(angle))
    for _ in range(100):
        if speed == 0.0:
            break
        result = PYRAMIDS["pgs"].solve(slope(angle, speed, cone), MANY)
        assert result.status is Status.SOLVED
        speed, steps = 0.0 if abs(result.w[1]) < 1e-9 else float(result.w[1]), steps + 1
    if level == "flat":
        assert (speed, steps) == (0.0, int(np.ceil(0.5 / rate)))
        assert PYRAMIDS["pgs"].solve(slope(angle, 0.0, cone), MANY).w[1] == pytest.approx(0.0, abs=1e-9)
    else:
        assert steps == 100
        assert speed == pytest.approx(0.5 - 100 * rate)


def test_both_answers_obey_the_law_between_the_angles():
    """At rest there are two answers, held and sliding off; both obey the law, and rest is the one that is taken."""
    problem = slope(LEVELS["between"], 0.0, True)
    held = PGS().solve(problem, MANY)
    off = PGS().solve(replace(problem, frictions=[problem.frictions[0].plain(sliding=True)]), MANY)
    assert abs(held.w[1]) <= 1e-9 < 1e-3 < off.w[1]
    for lam in (held.lam, off.lam):
        assert np.abs(natural_map(problem, lam)).max() <= 1e-9
    now = slope(LEVELS["between"], 1e-6, True)
    assert PGS().solve(now, MANY).w[1] > 1e-3


@pytest.mark.parametrize("cone", [False, True])
def test_the_check_knows_each_bound(cone):
    """By hand: λ_n = 1, μ = 0.8 and 0.5; tangent force 0.5 or less at rest or sliding, up to 0.8 at rest only."""
    friction = Friction(0, (1,), 0.8, cone, 0.5)
    problem = Problem(np.eye(2), [0.0, 0.0], frictions=[friction])
    now = replace(problem, frictions=[replace(friction, sliding_now=True)])
    good = [((1.0, 0.7), (0.0, 0.0)), ((1.0, 0.3), (0.0, 0.0)), ((1.0, 0.5), (0.0, -2.0)), ((0.0, 0.0), (1.0, 3.0))]
    wrong = [((1.0, 0.8), (0.0, -2.0)), ((1.0, 0.7), (0.0, -2.0)), ((1.0, 0.9), (0.0, 0.0)), ((1.0, 0.5), (0.0, 2.0))]
    for lam, w in good:
        assert natural_map(problem, np.array(lam), np.array(w)) == pytest.approx([0.0, 0.0], abs=1e-15)
    for lam, w in wrong:
        assert np.abs(natural_map(problem, np.array(lam), np.array(w))).max() >= 0.09
        assert np.abs(natural_map(now, np.array(lam), np.array(w))).max() >= 0.09
    assert np.abs(natural_map(now, *map(np.array, good[0]))).max() >= 0.09  # what slides cannot use the static bound
    for lam, w in good[1:]:
        assert natural_map(now, np.array(lam), np.array(w)) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert violation(problem, np.array([1.0, 0.7])) == 0.0
    assert violation(now, np.array([1.0, 0.7])) == pytest.approx(0.2)
    assert settled(problem, np.array([1.0, 0.7]), np.zeros(2))[0].mu == 0.8
    assert settled(problem, np.array([1.0, 0.5]), np.array([0.0, -2.0]))[0].mu == 0.5


@pytest.mark.parametrize("family", ["stick_slip_pyramid", "stick_slip_cone"])
def test_known_answers(family):
    """Answers that were drawn obey the law; solvers find one. Gauss-Seidel itself may go round on a pyramid."""
    for seed in range(60):
        known = draw_round(family, seed)
        problem = known.problem
        assert natural_map(problem, known.lam, known.w) == pytest.approx(0.0, abs=1e-12 * size_of(problem))
        solvers = [Dantzig(), Lemke()] if family.endswith("pyramid") else [PGS(memory=5)]
        for solver in solvers:
            result = solver.solve(problem, MANY)
            assert result.ok
            check_coulomb(problem, result)


def check_coulomb(problem: Problem, result) -> None:
    """Coulomb's law with two coefficients, written out."""
    near = 1e-6 * size_of(problem)
    for f in problem.frictions:
        tangents, normal = list(f.tangents), result.lam[f.normal]
        assert min(normal, result.w[f.normal]) == pytest.approx(0.0, abs=near)
        parts = [tangents] if f.cone else [[row] for row in tangents]
        moves = np.linalg.norm(result.w[tangents]) > near and normal > near
        for rows in parts:
            force, slide = np.linalg.norm(result.lam[rows]), np.linalg.norm(result.w[rows])
            assert force <= (f.sliding if moves or f.sliding_now else f.mu) * normal + near
            if slide > near and normal > near:
                assert force == pytest.approx(f.sliding * normal, abs=near)
                assert result.lam[rows] @ result.w[rows] == pytest.approx(-force * slide, abs=near)


def test_few_rounds_and_always_the_same():
    """Each contact changes at most once; twice the same problem gives the same bits."""

    class Counted(Dantzig):
        calls = 0

        def solve(self, problem, options=MANY):
            Counted.calls += 1
            return super().solve(problem, options)

    for seed in range(40):
        problem = draw_round("stick_slip_pyramid", seed).problem
        Counted.calls = 0
        first = Counted().solve(problem)
        assert Counted.calls <= len(problem.frictions) + 2  # the call itself, and one more than contacts
        assert np.array_equal(first.lam, Counted().solve(problem).lam)


def test_equal_coefficients_are_plain_friction():
    for seed in range(10):
        plain = draw("pyramid", seed).problem
        same = replace(plain, frictions=[replace(f, sliding=f.mu) for f in plain.frictions])
        assert same.forms() == plain.forms()
        assert np.array_equal(Dantzig().solve(same).lam, Dantzig().solve(plain).lam)


def test_both_at_once():
    """Friction that drops, and a row in need of help: the block's push along the slope is limited, a motor helps."""
    base = slope(LEVELS["steep"], 0.0, False)
    A = np.eye(5) / MASS
    A[3, 4] = A[4, 3] = 0.5 / MASS
    b, hi = np.append(base.b, [-1.0, 0.0]), np.array([inf, inf, inf, 1.0, inf])
    problem = Problem(A, b, -hi, hi, frictions=base.frictions, helps=[Help(3, (4,), (2.0,))])
    for solver in PYRAMIDS.values():
        result = solver.solve(problem, MANY)
        assert result.ok
        assert abs(result.w[3]) <= 1e-8
        assert 0.1 < result.w[4] <= 2.0
        assert result.lam[1] == pytest.approx(-SLIDING * result.lam[0])


def test_who_takes_it():
    problem = slope(0.1, 0.0, True)
    assert Form.STICK_SLIP in problem.forms()
    with pytest.raises(UnsupportedForm, match=r"Direct does not take cones, stick_slip; .* take this problem: pgs"):
        Direct().solve(problem)


def test_out_of_iterations_is_said():
    result = PGS().solve(draw_round("stick_slip_cone", 3).problem, Options(iterations=1))
    assert result.status is Status.STOPPED
    assert np.isfinite(result.lam).all()


def test_coefficients():
    both = Coefficients(0.8, 0.5, 0.3)
    assert both.contact(0, (1, 2), sliding_now=True) == Friction(0, (1, 2), 0.8, True, 0.5, True)
    assert both.impact(0, (1,), cone=False) == Friction(0, (1,), 0.3, cone=False)
    assert Coefficients(0.8).contact(0, (1,)) == Friction(0, (1,), 0.8)
    assert Coefficients(0.8).impact(0, (1,)).mu == 0.8
    assert Coefficients(0.8, 0.0).impact(0, (1,)).mu == 0.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((nan,), "the static coefficient of friction is nan; it must be 0 or more"),
        ((-0.1,), "the static coefficient of friction is -0.1"),
        ((0.5, nan), "the sliding coefficient of friction is nan"),
        ((0.5, -1.0), "the sliding coefficient of friction is -1.0"),
        ((0.5, 0.6), "the sliding coefficient of friction is 0.6; it must be 0 to the static one, 0.5"),
        ((0.5, 0.4, nan), "the impulsive coefficient of friction is nan"),
    ],
)
def test_what_are_no_coefficients(values, message):
    with pytest.raises(ValueError, match=message):
        Coefficients(*values)


@pytest.mark.parametrize("sliding", [nan, inf, -0.1, 0.9])
def test_what_is_no_sliding_coefficient(sliding):
    with pytest.raises(ValueError, match=r"friction at row 0: the sliding coefficient is .*; it must be 0 to μ = 0.8"):
        Problem(np.eye(2), np.ones(2), frictions=[Friction(0, (1,), 0.8, sliding=sliding)])
