"""Joints as rows between rigid bodies: coordinates that fit, errors, Jacobians, γ, and the motion that they leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import poise
from poise.constraints.kinds.joint import JointRows, Links, joint_rows, place_links
from poise.dynamics import forward_dynamics, passive_forces
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.scene import Joint, Scene
from poise.motion.rotations import quat_exp, quat_multiply, quat_to_matrix
from strategies import KINDS, balls, one_joint_scene, random_body, random_joint, random_q, random_v, scenes, vector

MOVING = (*KINDS, "free")
SEVERAL = (("hinge", "hinge", "hinge"), ("slider", "hinge"), ("universal", "screw"), ("ball", "slider"))
"""Joints on one body, each with an anchor of its own."""
H = 1e-5
"""Step of central differences: truncation is some 1e-10 of the third derivative, rounding some 1e-11."""


def several_joints(kinds: tuple[str, ...], seed: int = 1) -> Model:
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(2):
        body = random_body(rng, f"body{k}", f"body{k - 1}" if k else None, (), "dynamic")
        body.joints = [random_joint(rng, kind, forces=False) for kind in kinds]
        bodies.append(body)
    return Scene(gravity=vector(rng, 5.0), bodies=bodies).compile()


def model_of(kinds: str | tuple[str, ...]) -> Model:
    return one_joint_scene(kinds).compile() if isinstance(kinds, str) else several_joints(kinds)


def later(links: Links, acceleration: np.ndarray, t: float) -> Links:
    """Links after a time t, at constant accelerations (ω̇, v̇): exact to second order."""
    w, v, alpha, a = links.twist[:, :3], links.twist[:, 3:], acceleration[:, :3], acceleration[:, 3:]
    turn = quat_exp(w * t + 0.5 * alpha * t * t)
    x = links.x + v * t + 0.5 * a * t * t
    return Links(quat_multiply(turn, links.quat_wxyz), x, links.twist + acceleration * t)


def jacobian(A: np.ndarray, B: np.ndarray, a: np.ndarray, b: np.ndarray, n_links: int) -> np.ndarray:
    """(m, 6 n_links)"""
    J = np.zeros((len(A), n_links + 1, 6))
    np.add.at(J, (np.arange(len(A)), a), A)
    np.add.at(J, (np.arange(len(B)), b), B)
    return J[:, :n_links].reshape(len(A), 6 * n_links)


def both_jacobians(rows: JointRows, n_links: int) -> tuple[np.ndarray, np.ndarray]:
    J = jacobian(rows.Ja, rows.Jb, rows.parent, rows.link, n_links)
    return J, jacobian(rows.Da, rows.Db, *rows.dof_bodies, n_links)


def loose(model: Model, rng: np.random.Generator, off: float) -> tuple[np.ndarray, Links]:
    """Coordinates, and links that are off where these have them."""
    q = random_q(model, rng)
    links = place_links(model, q, random_v(model, rng))
    turn = quat_exp(rng.normal(size=(model.n_links, 3)) * off)
    x = links.x + rng.normal(size=links.x.shape) * off
    twist = links.twist + rng.normal(size=links.twist.shape)
    return q, Links(quat_multiply(turn, links.quat_wxyz), x, twist)


@pytest.mark.parametrize("kinds", [*MOVING, *SEVERAL], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_coordinates_that_placed_links_are_found(kinds, seed):
    model = model_of(kinds)
    rng = np.random.default_rng(seed)
    q, v = random_q(model, rng), random_v(model, rng)
    links = place_links(model, q, v)
    # near enough that turns of more than π do not come in, and in the same half of three hinges in a row
    rows = joint_rows(model, poise.dynamics.displaced(model, q, 0.05 * random_v(model, rng), 1.0), *links)
    np.testing.assert_allclose(rows.q, q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows.v, v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows.phi, 0.0, atol=1e-14 * (1 + np.abs(links.x).max()) * 10)
    np.testing.assert_allclose(rows.rate, 0.0, atol=1e-13)
    assert len(rows.phi) == 6 * model.n_links - model.nv


def test_every_kind_of_joint_is_here():
    assert set(MOVING) == set(JOINTS) - {"fixed"}


@given(scenes(), st.integers(0, 2**32 - 1))
def test_links_placed_by_coordinates_leave_no_error(scene, seed):
    """Any tree: several joints on a body, welds, massless and led bodies, forests."""
    model = scene.compile()
    rng = np.random.default_rng(seed)
    q = random_q(model, rng)
    rows = joint_rows(model, q, *place_links(model, q))
    size = 1.0 + float(np.abs(rows.point).max(initial=0.0))
    assert np.abs(rows.error).max(initial=0.0) < 1e-14 * size * 20
    np.testing.assert_allclose(rows.q, q, rtol=0, atol=1e-12 * size)
    assert len(rows.phi) == int(np.maximum(6 - np.diff(model.link_dof_start), 0).sum())


def test_turns_go_on_beyond_half_a_turn():
    model = model_of("hinge")
    q = np.zeros(model.nq)
    found = q
    for angle in np.arange(0.0, 31.0, 2.5):
        q = np.array([angle, -2.0 * angle + 1.0])[: model.nq]
        # a step of less than half a turn of the faster joint
        for share in (0.5, 1.0):
            target = found + share * (q - found)
            found = joint_rows(model, found, *place_links(model, target)).q
        np.testing.assert_allclose(found, q, rtol=0, atol=1e-12 * (1 + angle))
    assert found[0] > 4 * np.pi


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_quaternions_keep_their_sign(sign):
    model = model_of("ball")
    q = random_q(model, np.random.default_rng(4))
    links = place_links(model, q)
    for turned in (links.quat_wxyz, -links.quat_wxyz):
        rows = joint_rows(model, sign * q, turned, links.x, links.twist)
        np.testing.assert_allclose(rows.q, sign * q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kinds", [*MOVING, *SEVERAL], ids=str)
def test_what_is_left_cannot_be_mended_by_the_joint(kinds):
    """Links 1 cm and 0.01 rad off: Sᵀe = 0, T's part is all there is, and coordinates nearby are worse."""
    model = model_of(kinds)
    rng = np.random.default_rng(8)
    q, links = loose(model, rng, 0.01)
    rows = joint_rows(model, q, *links)
    dof_error = rows.error[model.dof_link]
    np.testing.assert_allclose(np.einsum("di,di->d", rows.axes, dof_error), 0.0, atol=1e-14)
    back = np.zeros_like(rows.error)
    np.add.at(back, rows.link, rows.T * rows.phi[:, None])
    np.testing.assert_allclose(back, rows.error, atol=1e-14)
    np.testing.assert_allclose(joint_rows(model, rows.q, *links).phi, rows.phi, atol=1e-14)


@pytest.mark.parametrize("kinds", [*MOVING, *SEVERAL], ids=str)
def test_rows_and_axes_split_space(kinds):
    """T S = 0, T Tᵀ = 1, ΨᵀS = 1, T Ψ = 0, link by link; for links off their places too."""
    model = model_of(kinds)
    q, links = loose(model, np.random.default_rng(5), 0.05)
    rows = joint_rows(model, q, *links)
    for i in range(model.n_links):
        T = rows.T[rows.start[i] : rows.start[i + 1]]
        dofs = slice(model.link_dof_start[i], model.link_dof_start[i + 1])
        S, duals = rows.axes[dofs].T, rows.duals[dofs].T
        np.testing.assert_allclose(T @ S, 0.0, atol=1e-13)
        np.testing.assert_allclose(T @ T.T, np.eye(len(T)), atol=1e-13)
        np.testing.assert_allclose(duals.T @ S, np.eye(S.shape[1]), atol=1e-12)
        np.testing.assert_allclose(T @ duals, 0.0, atol=1e-12)


@pytest.mark.parametrize("kinds", [*KINDS, *SEVERAL], ids=str)
def test_rows_exert_no_net_force_and_no_net_couple(kinds):
    model = model_of(kinds)
    q, links = loose(model, np.random.default_rng(6), 0.05)
    rows = joint_rows(model, q, *links)
    for A, B, a, b in ((rows.Ja, rows.Jb, rows.parent, rows.link), (rows.Da, rows.Db, *rows.dof_bodies)):
        inner = a >= 0
        A, B, a, b = A[inner], B[inner], a[inner], b[inner]
        np.testing.assert_array_equal(A[:, 3:], -B[:, 3:])
        couples = A[:, :3] + np.cross(links.x[a], A[:, 3:]) + B[:, :3] + np.cross(links.x[b], B[:, 3:])
        np.testing.assert_allclose(couples, 0.0, atol=1e-13 * np.abs(B).max())


@pytest.mark.parametrize("kinds", [*MOVING, *SEVERAL], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_jacobians_against_differences(kinds, seed):
    """φ and q along motions that tear the joints apart."""
    model = model_of(kinds)
    rng = np.random.default_rng(seed)
    q = random_q(model, rng)
    links = place_links(model, q)._replace(twist=rng.normal(size=(model.n_links, 6)))
    here = joint_rows(model, q, *links)
    before, after = (joint_rows(model, q, *later(links, np.zeros((model.n_links, 6)), t)) for t in (-H, H))
    J, D = both_jacobians(here, model.n_links)
    speed = links.twist.ravel()
    np.testing.assert_allclose(J @ speed, here.rate, atol=1e-13)
    np.testing.assert_allclose(D @ speed, here.v, atol=1e-12 * (1 + np.abs(here.v).max()))
    scale = 1.0 + float(np.abs(here.v).max()) ** 3  # of third derivatives
    np.testing.assert_allclose((after.phi - before.phi) / (2 * H), here.rate, atol=1e-8 * scale)
    moved = poise.dynamics.difference(model, before.q, after.q) / (2 * H)
    np.testing.assert_allclose(moved, here.v, atol=1e-8 * scale)


@pytest.mark.parametrize("kinds", [*MOVING, *SEVERAL], ids=str)
@pytest.mark.parametrize("torn", [False, True])
def test_gamma_against_differences(kinds, torn):
    """φ̇ and u along motions with accelerations. Rows of several joints on a body turn within their own space as well:
    where the bodies come apart φ̇ then depends on which rows are taken.
    """
    model = model_of(kinds)
    rng = np.random.default_rng(3)
    q = random_q(model, rng)
    links = place_links(model, q, random_v(model, rng))
    if torn:
        links = links._replace(twist=links.twist + rng.normal(size=(model.n_links, 6)))
    push = rng.normal(size=(model.n_links, 6))
    here = joint_rows(model, q, *links)
    before, after = (joint_rows(model, q, *later(links, push, t)) for t in (-H, H))
    J, D = both_jacobians(here, model.n_links)
    scale = 1.0 + float(np.abs(here.v).max()) ** 3
    if isinstance(kinds, str) or not torn:
        got = (after.rate - before.rate) / (2 * H)
        np.testing.assert_allclose(got, J @ push.ravel() + here.gamma, atol=1e-7 * scale)
    np.testing.assert_allclose((after.v - before.v) / (2 * H), D @ push.ravel() + here.dof_gamma, atol=1e-7 * scale)


def _von(kind: str, model: Model, q: np.ndarray, links: Links) -> np.ndarray:
    """Rows of VON §4.1-4.3 for link 1 on link 0, (ω_A, v_A, ω_B, v_B)."""
    R_a, R_b = quat_to_matrix(links.quat_wxyz)
    joint = int(model.dof_joint[model.link_dof_start[1]])
    anchor = model.primitive_anchor[model.link_primitive_start[1]]
    p = links.x[1] + R_b @ (anchor - model.link_com[1])
    r_a, r_b = p - links.x[0], p - links.x[1]

    def star(r):
        return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])

    point = np.hstack((star(r_a), -np.eye(3), -star(r_b), np.eye(3)))
    axis, axis2 = model.joint_frame[joint].reshape(3, 3).T[:2]
    # the first axis is fixed to A: it was along the child's at rest
    rest = place_links(model, model.q_rest)
    R_a0, R_b0 = quat_to_matrix(rest.quat_wxyz)
    u_a, u_b = R_a @ R_a0.T @ R_b0 @ axis, R_b @ axis2
    directions = {"ball": [], "universal": [np.cross(u_a, u_b)], "hinge": list(np.linalg.svd(u_a[None])[2][1:])}
    none = np.zeros(3)
    turns = [np.concatenate((-g, none, g, none)) for g in directions[kind]]
    return np.vstack([point, *turns])


@pytest.mark.parametrize("kind", ["ball", "universal", "hinge"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_span_those_of_von(kind, seed):
    """VON §4.1-4.3: the same space of constraints, row by row a combination of the others."""
    model = one_joint_scene(kind, seed).compile()
    q = random_q(model, np.random.default_rng(seed))
    links = place_links(model, q)
    rows = joint_rows(model, q, *links)
    mine = slice(rows.start[1], rows.start[2])
    ours, theirs = np.hstack((rows.Ja[mine], rows.Jb[mine])), _von(kind, model, q, links)
    assert ours.shape == theirs.shape
    for one, other in ((ours, theirs), (theirs, ours)):
        mix = np.linalg.lstsq(one.T, other.T, rcond=None)[0]
        np.testing.assert_allclose(one.T @ mix, other.T, atol=1e-12)


def accelerations(model: Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """u̇ of rigid bodies held together by their joint rows: M a = f + Jᵀλ, J a + γ = 0 (VON §3.2)."""
    links = place_links(model, q, v)
    rows = joint_rows(model, q, *links)
    n = model.n_links
    R, w = quat_to_matrix(links.quat_wxyz), links.twist[:, :3]
    xx, yy, zz, xy, xz, yz = model.link_inertia.T
    own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
    inertia = R @ own @ R.transpose(0, 2, 1)
    M, f = np.zeros((n, 6, n, 6)), rows.wrenches(n, tau=tau + passive_forces(model, q, v))
    for i in range(n):
        M[i, :3, i, :3], M[i, 3:, i, 3:] = inertia[i], model.link_mass[i] * np.eye(3)
        f[i, :3] -= np.cross(w[i], inertia[i] @ w[i])
        f[i, 3:] += model.link_mass[i] * model.gravity
    J, D = both_jacobians(rows, n)
    # an armature resists u̇ = D a + γ
    M = M.reshape(6 * n, 6 * n) + D.T @ (model.dof_armature[:, None] * D)
    free = np.linalg.solve(M, f.ravel() - D.T @ (model.dof_armature * rows.dof_gamma))
    answer = np.linalg.solve(M, J.T)
    lam = np.linalg.lstsq(J @ answer, -(J @ free + rows.gamma), rcond=None)[0]
    return D @ (free + answer @ lam) + rows.dof_gamma


@given(scenes(kinematic=False, massless=False), st.integers(0, 2**32 - 1))
def test_bodies_held_by_rows_move_as_the_tree_does(scene, seed):
    """The same accelerations as the articulated body method, for any tree in motion: J, γ and Ψ at once."""
    model = scene.compile()
    rng = np.random.default_rng(seed)
    q, v, tau = random_q(model, rng), random_v(model, rng), random_v(model, rng)
    rows = joint_rows(model, q, *place_links(model, q))
    for i in range(model.n_links):  # where joints of one body move the same way, no body can tell which one moved
        S = rows.axes[model.link_dof_start[i] : model.link_dof_start[i + 1]]
        assume(len(S) <= 6 and np.linalg.svd(S)[1].min() > 0.02)
    want = forward_dynamics(model, q, v, tau)
    assert np.abs(accelerations(model, q, v, tau) - want).max() <= 1e-9 * max(1.0, np.abs(want).max())


def test_a_humanoid_held_by_rows_moves_as_the_tree_does():
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    model = scene.compile()
    rng = np.random.default_rng(2)
    q = poise.dynamics.displaced(model, model.q_rest, 0.5 * random_v(model, rng), 1.0)
    v, tau = random_v(model, rng), 10 * random_v(model, rng)
    want = forward_dynamics(model, q, v, tau)
    np.testing.assert_allclose(accelerations(model, q, v, tau), want, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_stay_the_same_from_step_to_step(kind):
    """Joints that go right round: rows turn with the frame before the last motion, so that multipliers can be kept."""
    model = model_of(kind)
    q = random_q(model, np.random.default_rng(1))
    speeds = np.ones(model.nv)
    for start, first in balls(model):
        assert start >= 0
        speeds[first : first + 3] = (0.0, 0.0, 1.0)
    before = None
    for _ in range(200):
        rows = joint_rows(model, q, *place_links(model, q))
        if before is not None:
            # two links turn by two angles of 0.04 each
            assert np.abs(rows.T - before).max() < 0.04 * 4
        before, q = rows.T, poise.dynamics.displaced(model, q, speeds, 0.04)


def test_axes_in_one_plane_are_no_obstacle():
    """Three hinges with the middle one at a right angle (gimbal lock): finite numbers, three rows, q still fits."""
    scene = poise.Scene()
    body = random_body(np.random.default_rng(0), "body", None, (), "dynamic")
    body.joints = [Joint("hinge", axis=axis) for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    scene.bodies.append(body)
    model = scene.compile()
    q = np.array([0.3, np.pi / 2, -0.2])
    links = place_links(model, q)
    rows = joint_rows(model, q, *links)
    assert len(rows.phi) == 3
    np.testing.assert_allclose(rows.q, q, atol=1e-12)
    assert all(np.isfinite(part).all() for part in (rows.Ja, rows.Jb, rows.duals, rows.gamma, rows.T))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros(3)}, r"q has shape \(3,\); a model of 2 links needs \(2,\)"),
        ({"x": np.zeros((2, 4))}, r"x has shape \(2, 4\); a model of 2 links needs \(2, 3\)"),
        ({"twist": np.zeros(12)}, r"twist has shape \(12,\); a model of 2 links needs \(2, 6\)"),
        ({"x": np.full((2, 3), np.nan)}, "x has NaN or infinity in it; all numbers must be finite"),
        ({"quat_wxyz": [[1, 0, 0, 0], [0, 0, 0, 0]]}, "quat_wxyz of link 1 is zero; it must be a rotation"),
    ],
)
def test_what_is_no_state_is_refused(change, message):
    model = model_of("hinge")
    given = {"q": model.q_rest, "quat_wxyz": np.eye(4)[[0, 0]], "x": np.zeros((2, 3)), "twist": np.zeros((2, 6))}
    with pytest.raises(ValueError, match=message):
        joint_rows(model, **(given | change))
