"""Rows of ball joints against differences of what they bound, anywhere in a step and from any centre of the limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from constraints.checker import exp, mat, random_rotation, vec
from poise.constraints.kinds.ball_joint_limit import (
    coarse_swing_and_twist,
    cone_line,
    cone_row,
    ellipse_share,
    far_within,
    swing_and_twist,
    twist_row,
)
from poise.kernel.quat import Quat, quaternion, rotation

Array = np.ndarray
LINE = (0.9, 0.6, 0.8)
"""c, n_y, n_z of a line that bounds swings; rad, 1, 1."""
BOUND = 0.3
H = 1e-5
"""Step of differences of second order: they are good to some H² and 1e-16/H; rad."""


def quat(R: Array) -> Quat:
    return quaternion(mat(R))


def ahead(q: Array, turn: Array) -> tuple[Quat, Quat]:
    """The rotations after a turn, and halfway."""
    return quat(q @ exp(turn)), quat(q @ exp(0.5 * turn))


def swing_room(Q: Array, F: Array) -> float:
    """c − n · σ: the swing is about the axis across e and Q e."""
    e = F[:, 0]
    across = np.cross(e, Q @ e)
    sine = float(np.linalg.norm(across))
    turn = F.T @ across * (np.arctan2(sine, e @ Q @ e) / sine)
    return float(LINE[0] - LINE[1] * turn[1] - LINE[2] * turn[2])


def twist_room(Q: Array, F: Array) -> float:
    """Past the lower end: what is left of the turn when the swing is undone, as the angle of the second axis."""
    e = F[:, 0]
    across = np.cross(e, Q @ e)
    sine = float(np.linalg.norm(across))
    left = exp(-across * (np.arctan2(sine, e @ Q @ e) / sine)) @ Q @ F
    return float(np.arctan2(left[:, 1] @ F[:, 2], left[:, 1] @ F[:, 1])) - BOUND


def cone(q: Array, turn: Array, F: Array, centre: Array) -> tuple[float, Array]:
    phi, J = cone_row(*ahead(q, turn), vec(turn), mat(F), quat(centre), *LINE)
    return float(phi), np.array([float(x) for x in J.leaves()])


def twist(q: Array, turn: Array, F: Array, centre: Array) -> tuple[float, Array]:
    phi, J = twist_row(*ahead(q, turn), vec(turn), mat(F), quat(centre), 0.0, BOUND, 1.0)
    return float(phi), np.array([float(x) for x in J.leaves()])


def differences(room: Callable[[Array, Array], float], q: Array, turn: Array, F: Array, centre: Array) -> Array:
    """Gradient over the turn."""
    steps = H * np.eye(3)
    ends = [[room(q @ exp(turn + way * step) @ centre.T, F) for way in (1, -1)] for step in steps]
    return np.array([(ahead - behind) / (2 * H) for ahead, behind in ends])


def somewhere(seed: int) -> tuple[Array, Array, Array, Array]:
    """A rotation at most 1.6 from the centre, a direction of turns, a frame, a centre."""
    rng = np.random.default_rng(seed)
    centre, away, turn = random_rotation(rng), rng.normal(size=3), rng.normal(size=3)
    away *= rng.uniform(0.4, 1.6) / np.linalg.norm(away)
    return exp(away) @ centre, turn / np.linalg.norm(turn), random_rotation(rng), centre


ROWS = {"cone": (cone, swing_room), "twist": (twist, twist_room)}


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("seed", range(8))
def test_rows_are_those_of_differences(what: str, seed: int) -> None:
    """Where the joint is: value and gradient, over the gradient's length."""
    row, room = ROWS[what]
    q, _, F, centre = somewhere(seed)
    phi, J = row(q, np.zeros(3), F, centre)
    slope = differences(room, q, np.zeros(3), F, centre)
    length = np.linalg.norm(slope)
    assert np.abs(J - slope / length).max() < 1e-8
    assert phi == pytest.approx(room(q @ centre.T, F) / length, abs=1e-8)


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("seed", range(8))
def test_rows_ahead_are_good_to_second_order(what: str, seed: int) -> None:
    """Eq. 1: φ̄ + J θ* is φ there, and J is off by terms of θ²; a quarter of them at half of the turn, and terms of θ³.

    Of a swing that is said of the part of J across what swings, C⁻¹ e in the joint's axes; there is no other.
    """
    row, room = ROWS[what]
    q, way, F, centre = somewhere(seed)
    off = []
    for size in (0.08, 0.04):
        phi, J = row(q, size * way, F, centre)
        slope = differences(room, q, size * way, F, centre)
        if what == "cone":
            e = centre.T @ F[:, 0]
            assert abs(J @ e) < 1e-14
            slope -= e * (e @ slope)
        off.append(float(np.abs(J - slope / np.linalg.norm(slope)).max()))
        there = room(q @ exp(size * way) @ centre.T, F)
        assert phi + size * J @ way == pytest.approx(there / np.linalg.norm(slope), rel=0.08**2, abs=1e-8)
    assert off[0] < 0.08**2
    assert off[1] < 0.25 * off[0] + 0.04**3


def test_a_centre_is_where_nothing_has_swung_or_twisted() -> None:
    q, _, F, _ = somewhere(3)
    assert np.allclose([float(x) for x in rotation(quat(q)).leaves()], q.ravel(), atol=1e-14)
    assert cone(q, np.zeros(3), F, q)[0] == pytest.approx(LINE[0] / np.hypot(*LINE[1:]), abs=1e-12)
    assert twist(q, np.zeros(3), F, q)[0] == pytest.approx(-BOUND, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_swing_and_twist_are_those_of_the_rows(seed: int) -> None:
    """Against the turn that is left when the swing about e × Q e is undone; and |J| of the twist is over the cosine."""
    q, _, F, centre = somewhere(seed)
    y, z, turn, cosine = (float(x) for x in swing_and_twist(quat(q), mat(F), quat(centre), 0.0))
    assert LINE[0] - LINE[1] * y - LINE[2] * z == pytest.approx(swing_room(q @ centre.T, F), abs=1e-13)
    assert turn - BOUND == pytest.approx(twist_room(q @ centre.T, F), abs=1e-13)
    assert (turn - BOUND) * cosine == pytest.approx(twist(q, np.zeros(3), F, centre)[0], abs=1e-13)


def test_twists_are_those_nearest_to_the_middle() -> None:
    q, _, F, centre = somewhere(5)
    turns = [float(swing_and_twist(quat(q), mat(F), quat(centre), middle)[2]) for middle in (0.0, 6.0, -6.0)]
    assert np.diff(turns) == pytest.approx([2 * np.pi, -4 * np.pi], abs=1e-13)


def test_coarse_swings_and_twists_bound_the_right_ones() -> None:
    """Also where a joint does not swing, is turned over, or is twisted by half a turn from the middle."""
    rng = np.random.default_rng(1)
    sure_ones = 0
    for n in range(3000):
        centre, F, away = random_rotation(rng), random_rotation(rng), rng.normal(size=3)
        away = away if n % 3 else F[:, 0] * rng.choice((-1.0, 1.0)) + 1e-9 * away
        q = exp(away * (rng.uniform(0.0, np.pi) / np.linalg.norm(away))) @ centre
        a, b, middle = *rng.uniform(0.1, 2.8, 2), rng.uniform(-3.0, 3.0)
        y, z, right, cosine = (float(x) for x in swing_and_twist(quat(q), mat(F), quat(centre), middle))
        share, twist, same, sure = coarse_swing_and_twist(quat(q), mat(F), quat(centre), middle, a, b)
        assert float(same) == pytest.approx(cosine, abs=1e-12)
        if cosine > 1e-3:
            assert float(share) >= float(ellipse_share(y, z, a, b)) * (1.0 - 1e-12)
            assert float(share) <= float(ellipse_share(y, z, a, b)) + 0.021 / min(a, b)
        if sure:
            sure_ones += 1
            assert float(twist) == pytest.approx(right, abs=0.01)
    assert sure_ones > 2800


def test_what_is_far_within_its_limits_has_no_row_that_is_near() -> None:
    """Any rotation, any limits: rows that are left out would all have been farther than `close`, turned or not."""
    rng = np.random.default_rng(0)
    left_out = np.zeros(3, int)
    for _ in range(3000):
        centre, F, away = random_rotation(rng), random_rotation(rng), rng.normal(size=3)
        q = exp(away * (rng.uniform(0.0, 3.0) / np.linalg.norm(away))) @ centre
        turn = rng.normal(size=3) * 10.0 ** rng.uniform(-4.0, -0.5)
        y, z, close = *rng.uniform(0.1, 2.8, 2), 10.0 ** rng.uniform(-4.0, -0.5)
        lower, upper = rng.uniform(-2.5, 0.0), rng.uniform(0.0, 2.5)
        middle = 0.5 * (lower + upper)
        far = far_within(quat(q @ exp(turn)), mat(F), quat(centre), middle, y, z, lower, upper, close)
        after, half = ahead(q, turn)
        line = cone_line(after, mat(F), quat(centre), y, z)
        args = after, half, vec(turn), mat(F), quat(centre)
        rows = [cone_row(*args, *line)]
        rows += [twist_row(*args, middle, bound, sign) for bound, sign in ((lower, 1.0), (upper, -1.0))]
        rooms = [float(phi) + np.array([float(x) for x in J.leaves()]) @ turn for phi, J in rows]
        for k, room in enumerate(rooms):
            assert not far[k] or room >= close, (k, room, close)
        left_out += [bool(one) for one in far]
    assert (left_out > 500).all()  # the test has something to say
