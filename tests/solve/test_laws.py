"""Laws: their inverses against bisection along the graph, what monotone graphs imply, and input that is no law."""

from math import inf, nan

import numpy as np
import pytest

from poise.solve.laws import UPRIGHT, Law, at_least, at_most, bounded, dead_zone, equality, stiffening
from solve.problems import point_on, random_law

LAWS = {
    "equality": equality(),
    "at_least": at_least(),
    "at_most": at_most(),
    "bounded": bounded(-2.0, 3.0),
    "fixed": bounded(1.5, 1.5),
    "from below": bounded(-1.0, inf),
    "from above": bounded(-inf, 4.0),
    "dead zone": dead_zone(-0.5, 0.25),
    "strong dead zone": dead_zone(-0.5, 0.25, -3.0, 2.0),
    "one-sided dead zone": dead_zone(0.0, 1.0, -3.0),
    "stiffening": stiffening([1.0, 4.0], [0.5, 0.2, 0.0]),
    "steps": Law(((0.0, 2.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (3.0, -1.0)), left=-0.3, right=UPRIGHT),
    **{f"random {seed}": random_law(np.random.default_rng(seed)) for seed in range(40)},
}
LINES = [(a, r) for a in (1e-3, 0.7, 1.0, 30.0) for r in (-20.0, -1.0, -0.3, 0.0, 0.25, 2.0, 15.0)]


def along(law: Law, t: float) -> tuple[float, float]:
    """The graph by a parameter: vertex k at t = k, rays by their length beyond."""
    last = len(law.vertices) - 1
    if t <= 0.0 or t >= last:
        (x, y), slope, way = (law.vertices[0], law.left, t) if t <= 0.0 else (law.vertices[-1], law.right, t - last)
        return (x, y - way) if slope == UPRIGHT else (x + way, y + slope * way)
    k = int(t)
    (x0, y0), (x1, y1) = law.vertices[k], law.vertices[k + 1]
    return x0 + (t - k) * (x1 - x0), y0 + (t - k) * (y1 - y0)


def meet_by_bisection(law: Law, a: float, r: float) -> float:
    """λ where w − a λ − r, which falls along the graph, goes through nought."""
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        x, y = along(law, middle)
        low, high = (middle, high) if y - a * x - r > 0.0 else (low, middle)
    return along(law, 0.5 * (low + high))[0]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_inverse(law):
    for a, r in LINES:
        assert law.solve(a, r) == pytest.approx(meet_by_bisection(law, a, r), abs=1e-8), (a, r)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_more_push_gives_less_force_and_no_jumps(law):
    """λ(r) falls, by at most 1/a times what r rises."""
    for a in (0.01, 1.0, 50.0):
        pushes = np.linspace(-10.0, 10.0, 401)
        answers = np.array([law.solve(a, float(r)) for r in pushes])
        steps = np.diff(answers)
        assert steps.max() <= 1e-12
        assert steps.min() >= -(pushes[1] - pushes[0]) / a * (1.0 + 1e-9)
        assert answers.min() >= law.lo
        assert answers.max() <= law.hi


def test_rounding_leads_off_no_piece():
    """A piece all but upright: where the line meets it, computed in doubles, is beyond its end by a hair."""
    ends = ((-0.9923580273019961, -0.3316397417026342), (-0.9923580273019952, -0.36415224923226686))
    lam = Law(ends, UPRIGHT, UPRIGHT).solve(0.5228169332291954, 0.1591103874540779)
    assert ends[0][0] <= lam <= ends[1][0]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_natural_map_is_nought_on_the_graph(law):
    rng = np.random.default_rng(3)
    for scale in (0.05, 1.0, 20.0):
        for _ in range(50):
            lam, w = point_on(law, rng)
            assert law.natural(lam, w, scale) == pytest.approx(0.0, abs=1e-12 * (1.0 + abs(w) / scale + abs(lam)))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_natural_map_is_not_nought_off_the_graph(law):
    """A step along the line (1, scale), on which the graph has one point, is measured as it is."""
    rng = np.random.default_rng(4)
    for scale in (0.05, 1.0, 20.0):
        for way in (-1.0, -0.01, 0.01, 1.0):
            lam, w = point_on(law, rng)
            off = law.natural(lam + way, w + scale * way, scale)
            assert off * way < 0.0
            assert abs(off) == pytest.approx(abs(way), rel=1e-9)


def test_bounds_of_laws():
    ends = {name: (law.lo, law.hi) for name, law in LAWS.items()}
    assert ends["equality"] == (-inf, inf)
    assert ends["at_least"] == (0.0, inf)
    assert ends["at_most"] == (-inf, 0.0)
    assert ends["bounded"] == (-2.0, 3.0)
    assert ends["fixed"] == (1.5, 1.5)
    assert ends["strong dead zone"] == (-3.0, 2.0)
    assert ends["stiffening"] == (-inf, inf)


def test_bounded_without_bounds_is_equality():
    assert bounded(-inf, inf) == equality()
    assert bounded(0.0, inf) == at_least()
    assert bounded(-inf, 0.0) == at_most()


def test_stiffening_is_alike_to_both_sides_and_sums_up():
    law = stiffening([1.0, 4.0], [0.5, 0.2, 0.1])
    expected = [(-4.0, 1.1), (-1.0, 0.5), (0.0, 0.0), (1.0, -0.5), (4.0, -1.1)]
    assert np.array(law.vertices) == pytest.approx(np.array(expected))
    for a, r in LINES:
        assert law.solve(a, r) == pytest.approx(-law.solve(a, -r))


def test_a_spring_of_one_compliance_adds_to_the_diagonal():
    law = stiffening([], [0.25])
    for a, r in LINES:
        assert law.solve(a, r) == pytest.approx(-r / (a + 0.25))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Law(()), "at least one vertex"),
        (lambda: Law(((0.0, nan),)), "must be finite"),
        (lambda: Law(((inf, 0.0),)), "must be finite"),
        (lambda: Law(((0.0, 0.0), (-1.0, 0.0))), r"cannot rise or go back: \(-1.0, 0.0\) comes after \(0.0, 0.0\)"),
        (lambda: Law(((0.0, 0.0), (1.0, 0.5))), "cannot rise"),
        (lambda: Law(((0.0, 0.0),), left=0.1), "left slope of a law is 0.1"),
        (lambda: Law(((0.0, 0.0),), right=nan), "right slope of a law is nan"),
        (lambda: Law(((0.0, 0.0),), right=inf), "right slope of a law is inf"),
        (lambda: bounded(1.0, 0.0), "bounds 1.0 to 0.0"),
        (lambda: bounded(nan, 0.0), "bounds nan to 0.0"),
        (lambda: bounded(inf, inf), "bounds inf to inf"),
        (lambda: bounded(-inf, -inf), "bounds -inf to -inf"),
        (lambda: dead_zone(0.5, 1.0), "a dead zone contains zero: w from 0.5"),
        (lambda: dead_zone(-1.0, 1.0, lo=0.5), "contains zero"),
        (lambda: dead_zone(nan, 1.0), "contains zero"),
        (lambda: dead_zone(-inf, inf), "must be finite"),
        (lambda: stiffening([1.0], [0.1]), "one compliance"),
        (lambda: stiffening([1.0], [0.1, -0.1]), "one compliance, 0 or more"),
        (lambda: stiffening([1.0], [0.1, nan]), "one compliance"),
        (lambda: stiffening([2.0, 1.0], [0.1, 0.1, 0.1]), "positive and grow"),
        (lambda: stiffening([1.0, 1.0], [0.1, 0.1, 0.1]), "positive and grow"),
        (lambda: stiffening([0.0], [0.1, 0.1]), "positive and grow"),
        (lambda: stiffening([inf], [0.1, 0.1]), "must be finite"),
        (lambda: stiffening([nan], [0.1, 0.1]), "must be finite"),
    ],
)
def test_what_is_no_law(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("a", [0.0, -1.0, nan])
def test_a_row_without_inverse_mass(a):
    with pytest.raises(ValueError, match="inverse mass must be positive"):
        at_least().solve(a, 1.0)


@pytest.mark.parametrize("a", [1e-300, 1e-8, 1e8, 1e300])
def test_extreme_inverse_masses(a):
    assert at_least().solve(a, -a) == pytest.approx(1.0)
    assert bounded(-1.0, 2.0).solve(a, -5.0 * a) == 2.0
    assert dead_zone(-0.5, 0.5).solve(a, 0.25) == 0.0
