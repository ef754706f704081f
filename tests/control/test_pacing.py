"""Targets along paths: at the base distance, never backwards (LAM §2.2)."""

from __future__ import annotations

from math import inf, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise.control.pacing import Route
from poise.motion import ConstantPath, KeyedPath, OrbitPath
from poise.motion.rotations import quat_exp, quat_multiply

COORDINATE = st.floats(-2.0, 2.0)
PLACE = st.tuples(COORDINATE, COORDINATE, COORDINATE)
STRAIGHT = KeyedPath([0, 1], [(0, 0, 0), (4, 0, 0)])
EXACT = 1e-8
"""Crossings are found to 1e-9 of the base distance."""


def round_loop(quats=None) -> KeyedPath:
    corners = [(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0), (1, 0, 0)]
    return KeyedPath(range(5), corners, quats, loop=True)


def test_on_a_straight_line_the_target_is_where_pythagoras_says() -> None:
    route = Route(STRAIGHT, turns=False)
    for x, z, base in ((0.0, 0.0, 0.5), (1.0, 0.3, 0.5), (2.0, -0.49, 0.5)):
        s = route.ahead(0.0, np.array((x, 0.0, z)), base)
        first = x - np.sqrt(base**2 - z**2)
        # from the start on, the first crossing is the near one unless the start is nearer than the base distance
        there = 0.0 if np.hypot(x, z) >= base else x + np.sqrt(base**2 - z**2)
        assert route.value(s)[0] == pytest.approx(there, abs=EXACT), first


def test_it_waits_when_the_body_is_thrown_back() -> None:
    route = Route(STRAIGHT, turns=False)
    s = route.ahead(0.0, np.zeros(3), 0.5)
    assert route.ahead(s, np.array((-1.0, 0.0, 0.0)), 0.5) == s


def test_it_takes_the_first_crossing_of_a_hairpin() -> None:
    # out to x = 2 and back 2 cm beside: the way back crosses the same circle again
    hairpin = KeyedPath([0, 1, 1.1, 2.1], [(0, 0, 0), (2, 0, 0), (2, 0.02, 0), (0, 0.02, 0)])
    route = Route(hairpin, turns=False)
    s = route.ahead(0.0, np.zeros(3), 1.0)
    assert s < 1.0
    assert abs(np.linalg.norm(route.value(s)) - 1.0) < EXACT


def test_it_passes_over_a_place_where_the_path_stays_near() -> None:
    detour = KeyedPath([0, 1, 2, 3], [(0, 0, 0), (0.2, 0, 0), (0.1, 0, 0), (3, 0, 0)])
    route = Route(detour, turns=False)
    assert route.ahead(0.0, np.zeros(3), 0.5) > 2.0


def test_the_end_holds_it_and_so_does_a_gate() -> None:
    route = Route(STRAIGHT, turns=False)
    assert route.ahead(0.9, np.array((3.9, 0.0, 0.0)), 0.5) == 1.0
    assert route.ahead(0.0, np.zeros(3), 2.0, gate=0.1) == 0.1
    assert route.ahead(0.3, np.array((1.2, 0.0, 0.0)), 2.0, gate=0.1) == 0.3  # it does not go back to a gate
    assert route.ahead(0.0, np.zeros(3), 0.5, gate=0.9) == route.ahead(0.0, np.zeros(3), 0.5)


@settings(max_examples=60)
@given(
    keys=st.lists(PLACE, min_size=2, max_size=6),
    bodies=st.lists(PLACE, min_size=1, max_size=8),
    base=st.floats(0.05, 1.5),
)
def test_all_that_it_passes_is_within_the_base_distance(keys, bodies, base) -> None:
    route = Route(KeyedPath(range(len(keys)), keys), turns=False)
    s = 0.0
    for body in np.array(bodies):
        new = route.ahead(s, body, base)
        assert new >= s
        passed = route.s[(route.s > s) & (route.s < new)]
        if new > s:
            for t in (*passed, new):
                assert np.linalg.norm(route.value(float(t)) - body) <= base * (1 + EXACT)
            if new < route.end:
                assert np.linalg.norm(route.value(new) - body) == pytest.approx(base, rel=EXACT)
        else:
            assert new == route.end or np.linalg.norm(route.value(s) - body) >= base * (1 - EXACT)
        s = new


def test_on_a_loop_it_goes_round_and_round() -> None:
    route = Route(round_loop(), turns=False)
    s, turns = 0.0, []
    for angle in np.linspace(0.0, 6 * pi, 200):
        s = route.ahead(s, np.array((np.cos(angle), np.sin(angle), 0.0)), 0.4)
        turns.append(s)
    assert np.all(np.diff(turns) >= 0.0)
    assert 12.0 < turns[-1] < 12.6  # three rounds of four keys, and a little ahead
    assert route.end == inf
    assert route.length_at(turns[-1]) == pytest.approx(3 * route.lengths[-1], rel=0.05)


def test_on_a_loop_that_is_all_near_it_goes_to_the_farthest_place() -> None:
    route = Route(round_loop(), turns=False)
    s = route.ahead(0.5, np.array((-0.1, 0.0, 0.0)), 5.0)
    assert route.value(s) == pytest.approx((1.0, 0.0, 0.0), abs=1e-6)
    assert s == 4.0  # ahead, not behind


def test_gates_on_loops_are_those_to_come() -> None:
    route = Route(round_loop(), turns=False)
    assert [route.gate_from(s, 1.0) for s in (0.0, 1.0, 1.5, 5.2)] == [1.0, 1.0, 5.0, 9.0]
    assert Route(STRAIGHT, turns=False).gate_from(0.7, 0.5) == 0.5


def test_angles_are_those_of_the_shorter_way() -> None:
    rng = np.random.default_rng(3)
    route = Route(ConstantPath(), turns=True)
    for angle in (1e-9, 0.3, 2.0, 3.1):
        axis = rng.normal(size=3)
        turned = quat_exp(angle * axis / np.linalg.norm(axis))
        other = quat_exp(rng.normal(size=3))
        assert route.distance(quat_multiply(turned, other), other) == pytest.approx(angle, rel=1e-7)
        assert route.distance(-quat_multiply(turned, other), other) == pytest.approx(angle, rel=1e-7)


def test_orientations_are_led_ahead_by_an_angle() -> None:
    path = KeyedPath([0, 1, 2], [(0, 0, 0)] * 3, [quat_exp((0, 0, a)) for a in (0.0, 1.5, 3.0)])
    route = Route(path, turns=True)
    for angle in (0.0, 0.7, 1.2):
        s = route.ahead(0.0, quat_exp((0, 0, angle)), angle + 0.4)
        assert route.offset(s, quat_exp((0, 0, angle))) == pytest.approx((0.0, 0.0, angle + 0.4), abs=1e-7)


def test_the_direction_of_a_path_that_turns_back_is_that_of_the_way_there() -> None:
    route = Route(KeyedPath([0, 1, 2], [(0, 0, 0), (1, 0, 0), (0, 0, 0)]), turns=False)
    assert route.direction(1.0) == pytest.approx((1.0, 0.0, 0.0))
    assert route.direction(0.0) == pytest.approx((1.0, 0.0, 0.0))
    assert route.direction(2.0) == pytest.approx((-1.0, 0.0, 0.0))
    assert not Route(ConstantPath(), turns=False).direction(0.0).any()


def test_paths_that_cannot_be_followed_are_refused() -> None:
    with pytest.raises(ValueError, match=r"an? OrbitPath has no end: give the span"):
        Route(OrbitPath((1, 0, 0), 1.0), turns=False)
    for span in ((1.0, 0.0), (0.0, inf), (0.0, 1.0, 2.0)):
        with pytest.raises(ValueError, match="span is"):
            Route(OrbitPath((1, 0, 0), 1.0), turns=False, span=span)
    with pytest.raises(TypeError, match="path is a list"):
        Route([(0, 0, 0)], turns=False)
    assert Route(OrbitPath((1, 0, 0), 1.0), turns=False, span=(0.0, pi)).lengths[-1] == pytest.approx(pi, rel=1e-4)
