"""Inverse kinematics: closed forms, a peer's formulation, priorities that are kept, calm ends out of reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from poise.control import goals, reach
from poise.control.ik import _Step, search
from poise.control.ik_rows import GoalRows, bone_length, checked_goals, held_model, turn_of
from poise.dynamics import bodies, difference, displaced, jacobian, mass_matrix
from poise.motion.rotations import quat_exp, quat_multiply, quat_to_matrix

UPPER, LOWER = 0.5, 0.4
TIP = (LOWER, 0.0, 0.0)


def two_links(limits: tuple[float, float] = (-3.0, 3.0)) -> poise.Model:
    """An arm in the plane of x and z, along x at rest; turning by q lowers it."""
    scene = poise.Scene()
    upper = poise.box(UPPER, 0.05, 0.05, mass=1.0)
    lower = poise.box(LOWER, 0.05, 0.05, mass=1.0)
    bars = [
        poise.Body("upper", joints=[poise.Joint("hinge", name="shoulder", axis=(0, 1, 0))]),
        poise.Body(
            "lower",
            parent="upper",
            position=(UPPER, 0, 0),
            joints=[poise.Joint("hinge", name="elbow", axis=(0, 1, 0), limits=limits)],
        ),
    ]
    for body, shape, length in zip(bars, (upper, lower), (UPPER, LOWER), strict=True):
        shape.position = (length / 2, 0.0, 0.0)
        body.shapes = [shape]
        scene.bodies.append(body)
    return scene.compile()


def humanoid() -> poise.Model:
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    return scene.compile()


HERO = humanoid()
HAND = (0.0, 0.0, -0.05)


def at(model: poise.Model, q: Any, body: str, point: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    seen, k = bodies(model, q), model.body_index(body)
    return np.asarray(seen.position[k] + seen.rotation[k] @ np.asarray(point))


def room(model: poise.Model, q: np.ndarray) -> float:
    """Least room to any limit."""
    rows = GoalRows(model, checked_goals(model, [goals.pose(q)]), True)
    return float(rows.look(q)[1].min(initial=1.0))


# ---- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [(0.6, 0.0, 0.3), (0.2, 0.0, -0.5), (-0.7, 0.0, 0.1), (0.15, 0.0, 0.1)])
def test_two_links_have_the_angles_of_the_cosine_rule(goal: tuple[float, float, float]) -> None:
    model = two_links()
    found = reach(model, [0.1, 0.4], goals.position("lower", goal, point=TIP), tolerance=1e-9)
    assert found.met.all()
    square = goal[0] ** 2 + goal[2] ** 2
    elbow = np.arccos((square - UPPER**2 - LOWER**2) / (2 * UPPER * LOWER))
    assert abs(abs(found.q[1]) - elbow) < 1e-7
    shoulder = np.arctan2(-goal[2], goal[0]) - np.arctan2(
        LOWER * np.sin(found.q[1]), UPPER + LOWER * np.cos(found.q[1])
    )
    assert abs(np.sin(0.5 * (found.q[0] - shoulder))) < 1e-7


@pytest.mark.parametrize("distance", [0.95, 2.0, 100.0, 1e7])
def test_out_of_reach_is_a_straight_arm_towards_the_goal(distance: float) -> None:
    model = two_links()
    goal = distance * np.array((np.cos(0.7), 0.0, -np.sin(0.7)))
    found = reach(model, [-0.4, 1.0], goals.position("lower", goal, point=TIP), tolerance=1e-7)
    assert not found.met.any()
    # steps that gain less than a tenth of the tolerance, or 1e-12 of the distance, end the search
    close = 10 * (1e-7 + 1e-12 * distance)
    assert found.error[0] - (distance - UPPER - LOWER) < close
    # the error is stationary at the straight arm, where it is at least 0.2 m · angle²/2
    np.testing.assert_allclose(found.q, (0.7, 0.0), atol=np.sqrt(2 * close / 0.2))


def test_a_limit_that_is_met_gives_the_nearest_pose() -> None:
    model = two_links(limits=(0.0, 0.5))
    goal = (0.3, 0.0, -0.4)  # 0.5 m off, where the elbow would bend by 1.9
    found = reach(model, [0.0, 0.2], goals.position("lower", goal, point=TIP), tolerance=1e-8)
    nearest = np.sqrt(UPPER**2 + LOWER**2 + 2 * UPPER * LOWER * np.cos(0.5))
    assert abs(found.error[0] - (nearest - 0.5)) < 1e-7
    assert abs(found.q[1] - 0.5) < 1e-7
    free = reach(model, [0.0, 0.2], goals.position("lower", goal, point=TIP), limits=False, tolerance=1e-8)
    assert free.met.all()
    assert free.q[1] > 1.5


def test_a_start_beyond_limits_comes_back() -> None:
    model = two_links(limits=(0.0, 0.5))
    found = reach(model, [0.0, 2.0], goals.pose([0.0, 2.0]), tolerance=1e-8)
    assert -1e-8 <= found.q[1] <= 0.5 + 1e-8


def test_a_straight_arm_bends_towards_itself() -> None:
    """The goal lies on the arm: no joint moves the tip towards it to first order."""
    model = two_links()
    found = reach(model, [0.0, 0.0], goals.position("lower", (0.5, 0.0, 0.0), point=TIP))
    assert found.met.all()


def test_a_straight_leg_lifts_its_foot() -> None:
    """Knees are straight at rest, and at their limit."""
    place = at(HERO, HERO.q_rest, "foot_l") + np.array((0.0, 0.0, 0.2))
    found = reach(HERO, HERO.q_rest, goals.position("foot_l", place), held="root")
    assert found.met.all()
    assert found.q[HERO.q_slice("knee_l")][0] > 0.5


# ---- against another formulation -------------------------------------------------------------------------------------


def test_a_step_is_that_of_damped_least_squares() -> None:
    """v = −M⁻¹Jᵀ (J M⁻¹ Jᵀ + μ)⁻¹ φ, with M and J from elsewhere."""
    rng = np.random.default_rng(1)
    q = displaced(HERO, HERO.q_rest, 0.3 * rng.standard_normal(HERO.nv))
    wish = goals.position("hand_r", (0.5, -0.3, 1.2), point=HAND)
    rows = GoalRows(HERO, checked_goals(HERO, [wish]), limits=False)
    phi, _ = rows.look(q)
    step = _Step(rows, q, np.unique(rows.level))
    J, M = jacobian(HERO, q, "hand_r", HAND).J[3:], mass_matrix(HERO, q)
    np.testing.assert_allclose(phi, at(HERO, q, "hand_r", HAND) - wish.wanted, atol=1e-12)
    spread = np.linalg.solve(M, J.T)
    for damping in (1e-6, 1e-2, 1.0):
        mu = damping * (J @ spread).diagonal().max()
        wanted = -spread @ np.linalg.solve(J @ spread + mu * np.eye(3), phi)
        np.testing.assert_allclose(step.displacement(damping, 10.0), wanted, atol=1e-9 * np.abs(wanted).max())


def test_a_second_priority_is_solved_in_the_null_space_of_the_first() -> None:
    """v = v₁ + N (J₂N)⁺ (−φ₂ − J₂v₁) in coordinates in which M is one, without damping to speak of."""
    q = displaced(HERO, HERO.q_rest, 0.2 * np.random.default_rng(2).standard_normal(HERO.nv))
    wishes = [
        goals.position("hand_r", at(HERO, q, "hand_r") + np.array((0.01, 0.02, 0.0))),
        goals.position("hand_l", at(HERO, q, "hand_l") + np.array((0.0, 0.01, -0.01)), priority=3),
    ]
    rows = GoalRows(HERO, checked_goals(HERO, wishes), limits=False)
    phi, _ = rows.look(q)
    v = _Step(rows, q, np.unique(rows.level)).displacement(1e-12, 10.0)
    half = np.linalg.inv(np.linalg.cholesky(mass_matrix(HERO, q))).T
    first, second = (jacobian(HERO, q, f"hand_{side}").J[3:] @ half for side in "rl")
    one = -np.linalg.pinv(first) @ phi[:3]
    null = np.eye(HERO.nv) - np.linalg.pinv(first) @ first
    wanted = half @ (one + np.linalg.pinv(second @ null) @ (-phi[3:] - second @ one))
    np.testing.assert_allclose(v, wanted, atol=1e-6 * np.abs(wanted).max())


def test_jacobians_of_all_goals_are_derivatives() -> None:
    """Displacements of coordinates change φ by J v: A = J M⁻¹ Jᵀ tells J of each row through its own force."""
    rng = np.random.default_rng(3)
    q = displaced(HERO, HERO.q_rest, 0.2 * rng.standard_normal(HERO.nv))
    wishes = [
        goals.position("hand_r", (1, 2, 3), point=HAND, axes="zx"),
        goals.orientation("head", quat_exp((0.05, -0.02, 0.03))),
        goals.aim("head", (1, 0.2, 0), direction=(1, 0.3, 0.2)),
        goals.aim("hand_l", (1, 0, 0), at=(0.5, 0.4, 0.3), point=HAND),
        goals.centre_of_mass((0.2, 0, 0.8)),
        goals.above("foot_l", points=[(0.1, 0.02, 0), (-0.1, 0, 0.03)]),
        goals.pose(q),
    ]
    rows = GoalRows(HERO, checked_goals(HERO, wishes), limits=False)
    before, _ = rows.look(q)
    A, _, _ = rows.see(q)
    part = {goal.kind + str(k): piece for k, (goal, piece) in enumerate(zip(rows.goals, rows.parts, strict=True))}
    step = 1e-6
    for row in range(rows.n_goals):
        force = np.zeros(rows.n_goals)
        force[row] = 1.0
        v = rows.displacement(force)
        ends = [rows.look(rows.moved(q, sign * step * v))[0] for sign in (1, -1)]
        rate = (ends[0] - ends[1]) / (2 * step)
        for name, piece in part.items():
            # a turn's error has the rate of the turn only where it is small; an aim's second row is 0 by definition
            if name.startswith("orientation"):
                np.testing.assert_allclose(rate[piece], A[row, piece], atol=0.7 * np.abs(A[row, piece]).max() + 1e-6)
            elif name.startswith("aim"):
                np.testing.assert_allclose(rate[piece.start], A[row, piece.start], atol=2e-5 * np.abs(A).max())
            else:
                np.testing.assert_allclose(rate[piece], A[row, piece], atol=1e-6 * np.abs(A[row]).max())
    assert len(before) == rows.n_goals


def test_the_turn_of_a_matrix() -> None:
    rng = np.random.default_rng(4)
    for size in (0.0, 1e-9, 0.3, 2.0, 3.0, 3.1415):
        axis = rng.standard_normal(3)
        turn = size * axis / np.linalg.norm(axis)
        np.testing.assert_allclose(turn_of(quat_to_matrix(quat_exp(turn))), turn, atol=1e-7)


# ---- priorities ------------------------------------------------------------------------------------------------------


def test_of_two_places_for_one_hand_the_first_priority_wins() -> None:
    near, other = np.array((0.4, -0.2, 1.1)), np.array((0.4, -0.2, 1.4))
    wishes = [goals.position("hand_r", other, priority=1, weight=1e3), goals.position("hand_r", near, priority=0)]
    found = reach(HERO, HERO.q_rest, wishes, held="root")
    assert found.met.tolist() == [False, True]
    assert abs(found.error[0] - 0.3) < 2e-5
    # the same priority: the mean by squares of weights
    both = [goals.position("hand_r", near, weight=2.0), goals.position("hand_r", other)]
    found = reach(HERO, HERO.q_rest, both, held="root")
    np.testing.assert_allclose(at(HERO, found.q, "hand_r"), (4 * near + other) / 5, atol=1e-3)


@pytest.mark.parametrize("goal", [(2.0, -0.2, 1.1), (0.3, -2.0, 1.9), (-3.0, 0.3, 0.2)])
def test_a_first_priority_out_of_reach_is_not_disturbed(goal: tuple[float, float, float]) -> None:
    """What it misses by alone it misses by with others behind it, to a thousandth of it."""
    far = goals.position("hand_r", goal)
    alone = reach(HERO, HERO.q_rest, far, held="root", iterations=150)
    behind = [goals.position("hand_l", (0.1, 0.5, 1.5), priority=1), goals.pose(HERO.q_rest)]
    found = reach(HERO, HERO.q_rest, [far, *behind], held="root", iterations=150)
    assert abs(found.error[0] - alone.error[0]) < 1e-3 * alone.error[0]
    assert room(HERO, found.q) > -1e-5


def test_the_pose_fills_what_goals_leave_open() -> None:
    wish = goals.position("hand_r", (0.4, -0.2, 1.1))
    bent = displaced(HERO, HERO.q_rest, np.where(np.arange(HERO.nv) >= 6, 0.05, 0.0))
    alone = reach(HERO, bent, wish, held="root")
    found = reach(HERO, bent, [wish, goals.pose(HERO.q_rest)], held="root")
    assert found.met[0]
    legs = [k for k, name in enumerate(HERO.dof_names) if any(part in name for part in ("hip", "knee", "ankle"))]
    assert np.abs(difference(HERO, found.q, HERO.q_rest)[legs]).max() < 1e-4
    assert np.abs(difference(HERO, alone.q, HERO.q_rest)[legs]).max() > 0.04


# ---- characters ------------------------------------------------------------------------------------------------------


def test_reaching_with_feet_on_the_ground_and_balance() -> None:
    feet = [
        goal
        for side in "lr"
        for goal in (
            goals.position(f"foot_{side}", at(HERO, HERO.q_rest, f"foot_{side}")),
            goals.orientation(f"foot_{side}", (1, 0, 0, 0)),
        )
    ]
    wishes = [
        *feet,
        goals.centre_of_mass((0.05, 0.0, 0.0), axes="xy", priority=1),
        goals.position("hand_r", (0.35, -0.3, 0.45), priority=2),
        goals.aim("head", (1, 0, 0), at=(0.35, -0.3, 0.45), priority=3),
        goals.pose(HERO.q_rest),
    ]
    found = reach(HERO, HERO.q_rest, wishes)
    assert found.met[:7].all(), found.error
    assert room(HERO, found.q) > -1e-5
    seen, head = bodies(HERO, found.q), HERO.body_index("head")
    to = np.array((0.35, -0.3, 0.45)) - seen.position[head]
    np.testing.assert_allclose(seen.rotation[head][:, 0], to / np.linalg.norm(to), atol=1e-4)
    moving = HERO.body_mass[:, None] * (seen.position + np.einsum("bij,bj->bi", seen.rotation, HERO.body_com))
    np.testing.assert_allclose(moving.sum(axis=0)[:2] / HERO.body_mass.sum(), (0.05, 0.0), atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_ball_joints_hold(seed: int) -> None:
    goal = np.random.default_rng(seed).uniform((-0.8, -0.8, 0.6), (0.3, 0.2, 1.9))
    found = reach(HERO, HERO.q_rest, goals.position("hand_r", goal), held="torso")
    assert room(HERO, found.q) > -1e-5
    np.testing.assert_array_equal(found.q[:7], HERO.q_rest[:7])


def test_floors_push_and_never_pull() -> None:
    q = np.array(HERO.q_rest)
    q[2] -= 0.1
    soles = [goals.above(f"foot_{side}", 0.068, priority=0) for side in "lr"]
    found = reach(HERO, q, [*soles, goals.pose(q)])
    assert min(at(HERO, found.q, f"foot_{side}")[2] for side in "lr") > 0.068 - 2e-5
    lifted = np.array(HERO.q_rest)
    lifted[2] += 1.0
    np.testing.assert_allclose(reach(HERO, lifted, soles).q, lifted, atol=1e-12)


def test_what_is_held_stays() -> None:
    wish = goals.position("hand_r", (0.4, -0.2, 1.3))
    for held, still in (("root", HERO.q_slice("root")), (["root", "spine"], HERO.q_slice("spine"))):
        found = reach(HERO, HERO.q_rest, wish, held=held)
        assert found.met.all()
        np.testing.assert_array_equal(found.q[still], HERO.q_rest[still])
    found = reach(HERO, HERO.q_rest, wish, held=["root.vx", "root.vy"])
    np.testing.assert_array_equal(found.q[:2], HERO.q_rest[:2])
    assert held_model(HERO, []) is HERO


def test_far_goals_carry_a_free_root() -> None:
    found = reach(HERO, HERO.q_rest, goals.position("hand_r", (300.0, -40.0, 1.1)))
    assert found.met.all()
    assert np.abs(difference(HERO, found.q, HERO.q_rest)[6:]).max() < 0.5


@pytest.mark.parametrize("turn", [np.pi, 3.1, -2.5])
def test_turns_of_half_a_revolution(turn: float) -> None:
    scene = poise.Scene()
    scene.add(poise.box(0.1, 0.2, 0.3), name="brick")
    model = scene.compile()
    wanted = quat_multiply(quat_exp((0.0, turn, 0.0)), quat_exp((0.0, 0.0, 0.1)))
    found = reach(model, model.q_rest, goals.orientation("brick", wanted))
    assert found.met.all()
    opposite = reach(model, model.q_rest, goals.aim("brick", (1, 0, 0), direction=(-1, 0, 0)))
    assert opposite.met.all()


def test_same_question_same_answer_and_nothing_is_changed() -> None:
    q = np.array(HERO.q_rest)
    wish = goals.position("hand_r", (0.4, -0.2, 1.1))
    one, two = (reach(HERO, q, wish) for _ in range(2))
    np.testing.assert_array_equal(one.q, two.q)
    np.testing.assert_array_equal(q, HERO.q_rest)
    rows = GoalRows(HERO, checked_goals(HERO, [wish]), limits=True)
    np.testing.assert_array_equal(search(rows, q, 1e-5, 100).q, one.q)


def test_the_length_of_bones() -> None:
    assert abs(bone_length(two_links()) - UPPER) < 1e-12


# ---- hostile input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: goals.position("hand_r", (0, 0)), "goal: must have the shape"),
        (lambda: goals.position("hand_r", (0, 0, np.nan)), "goal: must be finite"),
        (lambda: goals.position("hand_r", (0, 0, 0), axes="xw"), "axes: must be some of"),
        (lambda: goals.position("hand_r", (0, 0, 0), axes=""), "axes: must be some of"),
        (lambda: goals.position("hand_r", (0, 0, 0), priority=-1), "priority: must be a whole number from 0"),
        (lambda: goals.position("hand_r", (0, 0, 0), priority=True), "priority: must be a whole number"),
        (lambda: goals.position("hand_r", (0, 0, 0), weight=0.0), "weight: must be from"),
        (lambda: goals.position(None, (0, 0, 0)), "must be the name or number of a body"),  # type: ignore[arg-type]
        (lambda: goals.orientation("head", (0, 0, 0, 0)), "quat_wxyz: must be rotations"),
        (lambda: goals.aim("head", (0, 0, 0), direction=(1, 0, 0)), "axis: must have a direction"),
        (lambda: goals.aim("head", (1, 0, 0)), "give either direction"),
        (lambda: goals.aim("head", (1, 0, 0), direction=(1, 0, 0), at=(1, 0, 0)), "give either direction"),
        (lambda: goals.above("foot_l", points=np.zeros((0, 3))), "points: must be one or more"),
        (lambda: goals.above("foot_l", (1.0, 2.0)), "height: must have the shape"),
        (lambda: goals.pose("straight"), "q: must be numbers"),  # type: ignore[arg-type]
    ],
)
def test_goals_that_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"goals": []}, "goals: must be a list of goals"),
        ({"goals": [(1, 2, 3)]}, "goals: must be a list of goals"),
        ({"goals": goals.position("hand_q", (0, 0, 0))}, "did you mean"),
        ({"goals": goals.pose([0.0, 1.0])}, "q has shape"),
        ({"q": [0.0]}, "q has shape"),
        ({"held": "roof"}, "did you mean"),
        ({"tolerance": 0.0}, "tolerance: must be"),
        ({"iterations": 0}, "iterations: must be a whole number"),
        ({"iterations": 2.5}, "iterations: must be a whole number"),
    ],
)
def test_questions_that_cannot_be(options: dict[str, Any], says: str) -> None:
    given = {"q": HERO.q_rest, "goals": goals.position("hand_r", (0.4, -0.2, 1.1))} | options
    with pytest.raises(ValueError, match=says):
        reach(HERO, given.pop("q"), given.pop("goals"), **given)


def test_bodies_that_never_move_have_no_goals() -> None:
    scene = poise.Scene()
    scene.add(poise.box(1, 1, 1), name="rock", fixed=True)
    scene.add(poise.sphere(0.1), name="ball")
    with pytest.raises(ValueError, match="never moves"):
        reach(scene.compile(), scene.compile().q_rest, goals.position("rock", (0, 0, 1)))


def test_everything_held_moves_nothing() -> None:
    model = two_links()
    found = reach(model, [0.1, 0.2], goals.position("lower", (0, 0, 0.5)), held=["shoulder", "elbow"])
    np.testing.assert_array_equal(found.q, [0.1, 0.2])
    assert not found.met.any()
