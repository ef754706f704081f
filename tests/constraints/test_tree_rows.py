"""Rows on random trees of all joints: what kernels say of them against Jacobians, differences, and other dynamics.

Tolerances: some hundred operations of 2⁻⁵³ each are 3e-14 of the sizes that were summed up (not of the sums), times the
condition of the mass matrix (scaled to a unit diagonal, capped by `assume`) where there is a solve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints.tree_cases import (
    EASY,
    ROUNDING,
    SEEDS,
    Tree,
    expected,
    inverse_mass,
    make_tree,
    random_rows,
    usable,
)
from poise import dynamics
from poise.constraints.response.delassus import row_jacobian
from poise.constraints.response.row_system import System, answer, moving, see
from poise.constraints.row_validation import Term
from poise.constraints.rows import Rows
from poise.dynamics.argument_checks import Singular
from poise.kernel.memory import F64, F64X4, F64X8, Width
from poise.model.scene import Body, Inertia, Joint, Scene
from strategies import KINDS, one_joint_scene, scenes
from strategies import random_body as random_tree_body

COUNTS = st.integers(0, 13)


# ---- what rows are ---------------------------------------------------------------------------------------------------


def check_matrix_and_values(tree: Tree, count: int) -> None:
    """A = J M⁻¹ Jᵀ, J v, J a + J̇ v + γ; rows in lanes and one by one; `row_jacobian`."""
    condition = usable(tree)
    rows, wanted = random_rows(tree, count)
    right, m = expected(tree, wanted), tree.model
    W = inverse_mass(tree)
    tau, forces, led = tree.vector(), tree.rng.normal(size=(m.n_bodies, 6)), tree.vector()
    a_free = dynamics.forward_dynamics(m, tree.q, tree.v, tau, forces=forces, prescribed=led)
    A = right.J @ W @ right.J.T
    A_size = (right.gross @ np.abs(W) @ right.gross.T).max(initial=0.0)
    speed_size = 1.0 + (right.gross @ np.abs(tree.v)).max(initial=0.0)
    pull = right.J @ a_free + right.rate @ tree.v + wanted.gamma
    pull_size = 10.0 + (right.gross @ np.abs(a_free) + np.abs(right.rate) @ np.abs(tree.v)).max(initial=0.0)
    for lanes in (True, False):
        seen = see(rows, tree.q, tree.v, tau, forces=forces, prescribed=led, lanes=lanes)
        np.testing.assert_array_equal(seen.A, seen.A.T)
        assert seen.A.shape == A.shape
        assert np.abs(seen.A - A).max(initial=0.0) <= ROUNDING * condition * A_size
        assert np.abs(seen.speed - right.J @ tree.v).max(initial=0.0) <= ROUNDING * speed_size
        assert np.abs(seen.pull - pull).max(initial=0.0) <= ROUNDING * condition * pull_size
        np.testing.assert_array_equal(seen.a_free, a_free)
    assert np.abs(row_jacobian(rows, tree.q) - right.J).max(initial=0.0) <= ROUNDING * right.gross.max(initial=0.0)


def check_velocity_level(tree: Tree, count: int) -> None:
    """With a step: springs and dampers are in A, and row velocities are those that the free motion ends with."""
    condition, dt = usable(tree), 0.05
    rows, wanted = random_rows(tree, count)
    right, m = expected(tree, wanted), tree.model
    W, tau, led = inverse_mass(tree, dt), tree.vector(), tree.vector()
    a_free = dynamics.forward_dynamics(m, tree.q, tree.v, tau, prescribed=led, dt=dt)
    speeds = right.J @ (tree.v + dt * a_free)
    size = 1.0 + (right.gross @ (np.abs(tree.v) + dt * np.abs(a_free))).max(initial=0.0)
    A_size = (right.gross @ np.abs(W) @ right.gross.T).max(initial=0.0)
    for lanes in (True, False):
        seen = see(rows, tree.q, tree.v, tau, prescribed=led, dt=dt, lanes=lanes)
        assert seen.pull is None
        assert seen.dt == dt
        assert np.abs(seen.A - right.J @ W @ right.J.T).max(initial=0.0) <= ROUNDING * condition * A_size
        assert np.abs(seen.speed - speeds).max(initial=0.0) <= ROUNDING * condition * size


def check_answer(tree: Tree, count: int) -> None:
    """M⁻¹ Jᵀ λ, explicit and with implicit springs; what is led does not answer."""
    condition = usable(tree)
    rows, wanted = random_rows(tree, count)
    right = expected(tree, wanted)
    lam = tree.rng.normal(size=len(wanted.pieces))
    for dt in (0.0, 0.05):
        W = inverse_mass(tree, dt)
        size = (np.abs(W) @ right.gross.T @ np.abs(lam)).max(initial=0.0)
        for lanes in (True, False):
            found = answer(rows, tree.q, lam, dt=dt, lanes=lanes)
            assert np.abs(found - W @ right.J.T @ lam).max(initial=0.0) <= ROUNDING * condition * size
            assert np.all(found[tree.model.dof_prescribed != 0] == 0.0)


def check_nothing_stays(tree: Tree, count: int) -> None:
    """Scratch of rows is nought between rows: the second look has the bits of the first, whatever came between."""
    rows, _ = random_rows(tree, count)
    other, _ = random_rows(tree, 5)
    for lanes in (True, False):
        usable(tree)
        system = System(rows, lanes)
        looks = []
        for _ in range(2):
            space = moving(rows, {"q": tree.q, "v": tree.v}, 0.0)
            system.see(space, 0.0, 1)
            system.multiply(space)
            looks.append([system.matrix(), system.values("speed"), system.values("pull")])
            see(other, tree.q, lanes=lanes)
        for first, second in zip(*looks, strict=True):
            np.testing.assert_array_equal(first, second)
        for name in ("touched", "p", "tau"):
            assert not system.t.arrays[name].any(), name


CHECKS = (check_matrix_and_values, check_velocity_level, check_answer, check_nothing_stays)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@EASY
@given(scene=scenes(), seed=SEEDS, count=COUNTS)
def test_rows_on_random_trees(check: Any, scene: Scene, seed: int, count: int) -> None:
    check(make_tree(scene, seed), count)


@pytest.mark.parametrize("kind", [*KINDS, "free"])
def test_every_joint(kind: str) -> None:
    for check in CHECKS:
        check(make_tree(one_joint_scene(kind, seed=4, forces=True), 7), 8)


def test_bushes() -> None:
    """Siblings of one degree of freedom each: a link's parent is seldom the link before it."""
    rng = np.random.default_rng(9)
    bodies = [random_tree_body(rng, "body0", None, ("hinge",), "dynamic")]
    for k in range(1, 12):
        bodies.append(random_tree_body(rng, f"body{k}", f"body{(k - 1) // 3}", ("hinge",), "dynamic"))
    for check in CHECKS:
        check(make_tree(Scene(bodies=bodies), 3), 20)


def test_a_tree_that_cannot_move() -> None:
    """Rows on what is fixed or led: no force moves them, and the matrix is nought."""
    model = Scene(bodies=[Body("wall", inertia=Inertia(1.0))]).compile()
    rows = Rows(model)
    rows.add(id=0, b="wall", Jb=(0, 0, 0, 0, 0, 1), gamma=2.0)
    for lanes in (True, False):
        seen = see(rows, model.q_rest, lanes=lanes)
        assert seen.A.tolist() == [[0.0]]
        assert (seen.speed.tolist(), seen.pull.tolist()) == ([0.0], [2.0])
    assert answer(rows, model.q_rest, [3.0]).shape == (0,)


# ---- hostile input ---------------------------------------------------------------------------------------------------


def ball_rows(width: Width = F64) -> Rows:
    body = Body("ball", joints=[Joint("free")], inertia=Inertia(2.0, moments=(1.0, 1.0, 1.0)))
    rows = Rows(Scene(bodies=[body]).compile(), width)
    for world in range(width.lanes):
        rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1), world=world)
    return rows


def test_as_many_states_as_worlds() -> None:
    rows = ball_rows()
    q = rows.model.q_rest
    with pytest.raises(ValueError, match=r"2 states for rows of 1 worlds \(f64\): give one each"):
        see(rows, [q, q])
    lanes = ball_rows(F64X8)
    with pytest.raises(ValueError, match=r"1 states for rows of 8 worlds \(f64x8\)"):
        see(lanes, q)
    with pytest.raises(ValueError, match=r"rows of f64x4; trees run in f64, f64x8 and f32x16"):
        see(ball_rows(F64X4), [q] * 4)


@pytest.mark.parametrize("lam", [[np.nan], [1.0, 2.0], [[1.0]], []])
def test_multipliers_that_do_not_fit(lam: Any) -> None:
    rows = ball_rows()
    with pytest.raises(ValueError, match=r"lam must be finite numbers of shape \(1,\)"):
        answer(rows, rows.model.q_rest, lam)


@pytest.mark.parametrize("dt", [-0.1, np.nan, np.inf, "soon"])
def test_steps_that_are_none(dt: Any) -> None:
    rows = ball_rows()
    with pytest.raises(ValueError, match="dt"):
        see(rows, rows.model.q_rest, dt=dt)


def test_rows_that_no_room_was_made_for() -> None:
    rows = ball_rows()
    rows.now.count[0] = 100
    with pytest.raises(ValueError, match="no room for: grow, and emit them again"):
        see(rows, rows.model.q_rest)


def test_a_singular_world_in_a_lane_is_named() -> None:
    """A point mass that can slide onto the axis about which it turns: there, nothing resists the turn."""
    joints = [Joint("hinge", name="turn", anchor=(-1.0, 0, 0)), Joint("slider", name="reach", axis=(1, 0, 0), rest=1.0)]
    model = Scene(bodies=[Body("bob", position=(1.0, 0, 0), joints=joints, inertia=Inertia(1.0))]).compile()
    rows = Rows(model, F64X8)
    for world in range(8):
        rows.add(id=0, dof="turn", world=world)
    q = np.tile(model.q_rest, (8, 1))
    np.testing.assert_allclose(see(rows, q).A, 1.0)
    q[3, 1] = 0.0
    with pytest.raises(Singular, match=r'the acceleration of "turn" of world 3 is'):
        see(rows, q)


def test_nothing_that_is_not_a_number_comes_out_next_to_singular_poses() -> None:
    """The same bob within 1e-9 m of its axis, which is far from O: what is left of its inertia is rounding, or less."""
    rng, told = np.random.default_rng(0), []
    for _ in range(40):
        axis, anchor = rng.normal(size=3), 3.0 * rng.normal(size=3)
        aside = np.cross(axis, rng.normal(size=3))
        aside /= np.linalg.norm(aside)
        turn = Joint("hinge", name="turn", axis=tuple(axis), anchor=tuple(anchor))
        reach = Joint("slider", name="reach", axis=tuple(aside), rest=1.0)
        bob = Body("bob", joints=[turn, reach], inertia=Inertia(1.0, com=tuple(anchor + aside)))
        rows = Rows(Scene(bodies=[bob]).compile())
        rows.add(id=0, dof="turn")
        try:
            assert np.isfinite(see(rows, [0.3, 1e-9 * rng.normal()]).A).all()
        except Singular as error:
            told.append(str(error))
    assert len(told) > 0
    assert all('inertia along "turn" is lost in rounding' in text for text in told)


def test_one_term_does_as_well_as_a_body() -> None:
    """A row on two bodies, and the same one written as terms: the same up to the order of sums."""
    tree = make_tree(one_joint_scene("ball", seed=2), 3)
    first, second = Rows(tree.model), Rows(tree.model)
    J = tree.rng.normal(size=(2, 6))
    first.add(id=0, a=0, Ja=J[0], b=1, Jb=J[1])
    second.add(id=0, terms=[Term(0, J[0]), Term(1, J[1])])
    one, two = (see(rows, tree.q, tree.v) for rows in (first, second))
    for name in ("A", "speed", "pull"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@settings(EASY, max_examples=500, derandomize=False)
@given(scene=scenes(max_bodies=9), seed=SEEDS, count=st.integers(0, 40))
def test_soak(scene: Scene, seed: int, count: int) -> None:
    for check in CHECKS:
        check(make_tree(scene, seed), count)
