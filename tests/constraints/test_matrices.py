"""The constraint matrix in its four ways, and KOK §4.1's single constraint.

Tolerances: 3e-14 (some hundred operations) times the condition of the mass matrix, of the sizes that are summed up;
differences of two runs of the dynamics lose what the accelerations themselves are larger than their change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constraints.tree_cases import EASY, ROUNDING, SEEDS, Tree, expected, inverse_mass, make_tree, random_rows
from poise import dynamics
from poise.constraints.response import delassus_methods
from poise.constraints.response.delassus import METHODS, constraint_matrix, row_jacobian, single_constraint
from poise.constraints.response.delassus_kernels import SYSTEM
from poise.constraints.response.row_system import System, moving
from poise.constraints.row_store import STORE
from poise.constraints.rows import Rows
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.kernel.jit import entry
from poise.kernel.memory import F64, F64X8
from poise.model.scene import Body, Inertia, Joint, Scene
from strategies import one_joint_scene, scenes

CACHED = entry(delassus_methods.by_cached_test_forces, MODEL, STATE, INPUT, WORK, STORE, SYSTEM, extra=("float64",))


def by_cached_test_forces(rows: Rows, q: np.ndarray, size: float) -> np.ndarray:
    """KOK §4.2 with what depends on the state alone kept."""
    system, space = System(rows, lanes=False), moving(rows, {"q": q}, 0.0)
    space.x.set_count("n_forces", 1)
    space.x.force[...] = 0.0
    blocks = (space.m, space.s, space.x, space.w, rows.now, system.t)
    CACHED[F64](*(block.handle for block in blocks), size)
    return system.matrix()


@EASY
@given(scene=scenes(), seed=SEEDS, count=st.integers(0, 11), size=st.sampled_from([1.0, -3.0, 100.0]))
def test_every_way_gives_the_same_matrix(scene: Scene, seed: int, count: int, size: float) -> None:
    """KOK eqs. 9-13: K from YᵀY, deltas, m + 1 articulated bodies (fresh and cached), and J M⁻¹ Jᵀ."""
    tree = make_tree(scene, seed)
    condition = tree.condition()
    assume(condition < 1e4)
    rows, wanted = random_rows(tree, count)
    right = expected(tree, wanted)
    W = inverse_mass(tree)
    K, K_size = right.J @ W @ right.J.T, (right.gross @ np.abs(W) @ right.gross.T).max(initial=0.0)
    found = {how: constraint_matrix(rows, tree.q, how) for how in METHODS}
    found["cached"] = by_cached_test_forces(rows, tree.q, size)
    fall = dynamics.forward_dynamics(tree.model, tree.q, np.zeros(tree.model.nv))
    h_size = (right.gross @ np.abs(fall)).max(initial=0.0) + 10.0  # what test forces are seen against
    for how, matrix in found.items():
        assert matrix.shape == K.shape
        assert matrix.dtype == np.float64
        bound = K_size + (h_size / abs(size if how == "cached" else 1.0) if how in ("test_forces", "cached") else 0.0)
        assert np.abs(matrix - K).max(initial=0.0) <= ROUNDING * condition * bound, how
    np.testing.assert_array_equal(found["gram"], found["gram"].T)
    assert np.linalg.eigvalsh(found["gram"]).min(initial=0.0) >= -ROUNDING * K_size * max(1, len(K))


def test_the_matrix_is_of_the_pose_alone() -> None:
    """It is the same after any other call has used this thread's workspace."""
    tree = make_tree(one_joint_scene("ball", seed=1, forces=True), 1)
    rows, _ = random_rows(tree, 9)
    before = {how: constraint_matrix(rows, tree.q, how) for how in METHODS}
    dynamics.forward_dynamics(tree.model, tree.q, 9 * tree.v, forces=np.ones((2, 6)), dt=0.1)
    for how, matrix in before.items():
        np.testing.assert_array_equal(constraint_matrix(rows, tree.q, how), matrix)


def test_row_jacobian_of_a_world_in_lanes() -> None:
    tree = make_tree(one_joint_scene("universal", seed=1), 1)
    rows = Rows(tree.model, F64X8)
    rows.add(id=0, dof=0, coefficient=2.0, world=3)
    rows.add(id=0, dof=1, coefficient=5.0, world=4)
    rows.add(id=1, dof=2, coefficient=7.0, world=4)
    assert row_jacobian(rows, tree.q, world=3).tolist() == [[2, 0, 0, 0], [0, 0, 0, 0]]
    assert row_jacobian(rows, tree.q, world=4).tolist() == [[0, 5, 0, 0], [0, 0, 7, 0]]
    assert not row_jacobian(rows, tree.q, world=0).any()
    with pytest.raises(ValueError, match="world is 8; it must be 0 to 7"):
        row_jacobian(rows, tree.q, world=8)


def test_what_is_refused() -> None:
    tree = make_tree(one_joint_scene("hinge"), 0)
    with pytest.raises(ValueError, match=r"method is 'grams'; it must be one of gram, deltas, test_forces, jacobians"):
        constraint_matrix(Rows(tree.model), tree.q, "grams")
    with pytest.raises(ValueError, match=r"rows of f64x8; this is for one world in float64"):
        constraint_matrix(Rows(tree.model, F64X8), tree.q)


# ---- KOK §4.1 --------------------------------------------------------------------------------------------------------


def arm(seed: int = 5) -> Tree:
    """Three links: a ball, a hinge and a slider, with springs and dampers."""
    joints = [
        Joint("ball", damping=0.1),
        Joint("hinge", axis=(0, 1, 0.2), stiffness=3.0),
        Joint("slider", axis=(1, 0, 0)),
    ]
    bodies = [
        Body(f"link{k}", f"link{k - 1}" if k else None, (0.1, 0.0, 0.4), joints=[joint], inertia=inertia)
        for k, joint in enumerate(joints)
        for inertia in [Inertia(1.0 + k, (0.0, 0.1, 0.2), (0.1, 0.2, 0.25))]
    ]
    return make_tree(Scene(bodies=bodies), seed)


def test_the_torque_that_gives_a_joint_an_acceleration() -> None:
    """Eqs. 4-7 on a joint: k is eq. 5's, g^c eq. 7's, and the joint gets what was wanted."""
    tree, joint, wanted = arm(), 3, 4.2
    m = tree.model
    tau, test = tree.vector(), np.eye(m.nv)[joint]
    found = single_constraint(m, tree.q, tree.v, lambda a: a[joint] - wanted, tau, test_tau=test)
    default, pushed = (dynamics.forward_dynamics(m, tree.q, tree.v, tau + g * test)[joint] for g in (0.0, 7.0))
    assert found.k == pytest.approx((pushed - default) / 7.0, rel=1e-11)
    assert found.k == pytest.approx(inverse_mass(tree)[joint, joint], rel=1e-11)
    assert found.default == pytest.approx(default - wanted, rel=1e-12)
    assert found.force == pytest.approx(7.0 * (wanted - default) / (pushed - default), rel=1e-11)
    again = dynamics.forward_dynamics(m, tree.q, tree.v, tau + found.force * test)
    np.testing.assert_array_equal(found.accelerations, again)
    assert again[joint] == pytest.approx(wanted, abs=1e-11)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["there", "elsewhere"])
def test_the_force_that_gives_a_point_of_a_link_an_acceleration(elsewhere: bool) -> None:
    """Eq. 8 on the acceleration of a point along a direction (eqs. 31, 32); the test force may act anywhere else."""
    tree, body, point = arm(), 2, np.array([0.3, -0.1, 0.2])
    m, rng = tree.model, tree.rng
    n, wanted = rng.normal(size=3), -1.5
    at = dynamics.jacobian(m, tree.q, body, point, tree.v)
    rest = rng.normal(size=(m.n_bodies, 6))

    def h(a: np.ndarray) -> float:
        return float(n @ (at.J @ a + at.rate @ tree.v)[3:]) - wanted

    R = dynamics.bodies(m, tree.q).rotation[body]
    forces = np.zeros((m.n_bodies, 6))
    forces[body] = (*np.cross(R @ point, n), *n)
    if elsewhere:
        given_ = {"test_tau": np.eye(m.nv)[1]}
    else:
        given_ = {"test_forces": forces}
    found = single_constraint(m, tree.q, tree.v, h, forces=rest, **given_)
    push = rest + (0.0 if elsewhere else found.force * forces)
    tau = found.force * np.eye(m.nv)[1] if elsewhere else None
    a = dynamics.forward_dynamics(m, tree.q, tree.v, tau, forces=push)
    np.testing.assert_array_equal(found.accelerations, a)
    size = abs(found.default) + np.abs(at.J).max() * np.abs(a).max()
    assert abs(h(a)) <= 1e-11 * size
    J = n @ at.J[3:]
    along = inverse_mass(tree)[:, 1] if elsewhere else inverse_mass(tree) @ J
    assert found.k == pytest.approx(float(J @ along), rel=1e-10)


def test_both_sorts_of_test_force_together() -> None:
    tree = arm()
    m = tree.model
    tau, forces = tree.vector(), tree.rng.normal(size=(m.n_bodies, 6))
    found = single_constraint(m, tree.q, tree.v, lambda a: a[0], test_tau=tau, test_forces=forces)
    a = dynamics.forward_dynamics(m, tree.q, tree.v, found.force * tau, forces=found.force * forces)
    assert abs(a[0]) <= 1e-11 * (1.0 + np.abs(a).max())


def two_balls() -> Tree:
    ball = {"inertia": Inertia(1.0, moments=(1.0, 1.0, 1.0))}
    return make_tree(Scene(bodies=[Body(name, joints=[Joint("free")], **ball) for name in "ab"]), 0)


@pytest.mark.parametrize(
    ("h", "message"),
    [
        (lambda a: a[0] - 1.0, "the test force has no effect on h: choose one that acts along it"),
        (lambda a: np.nan, "h is nan without the test force, and nan with it; it must be finite"),
    ],
)
def test_a_force_without_effect_is_refused(h: Any, message: str) -> None:
    """A force on one of two bodies that are not joined."""
    tree = two_balls()
    with pytest.raises(ValueError, match=message):
        single_constraint(tree.model, tree.q, tree.v, h, test_tau=np.eye(12)[6])


def test_a_test_force_must_be_given() -> None:
    tree = two_balls()
    with pytest.raises(ValueError, match="give a test force: test_tau, test_forces, or both"):
        single_constraint(tree.model, tree.q, tree.v, lambda a: a[0])


@pytest.mark.slow
@settings(EASY, max_examples=400, derandomize=False)
@given(scene=scenes(max_bodies=9), seed=SEEDS, count=st.integers(0, 30))
def test_soak(scene: Scene, seed: int, count: int) -> None:
    test_every_way_gives_the_same_matrix.hypothesis.inner_test(scene, seed, count, 1.0)
