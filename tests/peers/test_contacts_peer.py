"""The contact problem of MuJoCo's humanoid on the ground: Jacobian, matrix and free velocities as MuJoCo has them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmark_scripts import helper
from poise import dynamics
from poise.constraints.response.delassus import METHODS, constraint_matrix
from poise.constraints.response.row_system import see
from poise.constraints.rows_to_problem import velocity_problem
from poise.solve.pgs import PGS
from poise.solve.problem import Options
from poise.solve.residuals import natural_map
from strategies import relative_error

contacts, trees = helper("_contacts"), helper("_trees")
STAGES = ("settling", "settled")
#: a dozen turns one after another, each rounded some ten times, of lengths of about a metre
ROUNDING = 1e-12
#: as for accelerations (see test_dynamics_mujoco): M has a condition of up to 1e6
SOLVED = 1e-9


@cache
def peer():
    path = trees.find_humanoid()
    return contacts.GroundPeer(path, trees.load_model(path)), trees.load_model(path)


@cache
def stretch(stage):
    return peer()[0].stretch(stage, 3)


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_twelve_contacts_from_step_to_step(stage):
    moments = stretch(stage)
    assert {moment.contacts.ids for moment in moments} == {moments[0].contacts.ids}
    assert len(set(moments[0].contacts.ids)) == len(moments[0].contacts.mu) == 12
    assert not np.array_equal(moments[0].q, moments[1].q)


@pytest.mark.parametrize("stage", STAGES)
def test_jacobian(stage):
    mujoco, model = peer()
    for moment in stretch(stage):
        ours = contacts.jacobian(model, moment)
        np.testing.assert_allclose(ours, mujoco.jacobian(moment), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("stage", STAGES)
def test_matrix(stage):
    mujoco, model = peer()
    for moment in stretch(stage):
        A = contacts.problem(model, moment).A
        assert A.shape == (36, 36)
        assert relative_error(A, mujoco.matrix(moment)) < SOLVED


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stage", STAGES)
def test_rows_in_the_store(stage, method):
    """The same contacts as rows of Poise, their matrix by every method."""
    mujoco, model = peer()
    moment = stretch(stage)[-1]
    K = constraint_matrix(contacts.contact_rows(model, [moment]), moment.q, method)
    assert relative_error(K, mujoco.matrix(moment)) < SOLVED


@pytest.mark.parametrize("stage", STAGES)
def test_velocity_level(stage):
    """As the problem in NumPy, but springs and dampers are met at the end of the step: M + dt D + dt² S for M."""
    _, model = peer()
    moment = stretch(stage)[-1]
    rows, dt = contacts.contact_rows(model, [moment], limits=True), model.dt
    found = velocity_problem(rows, see(rows, moment.q, moment.v, dt=dt), dt)
    plain = contacts.problem(model, moment, limits=True)
    order = np.argsort(
        np.concatenate([36 + np.arange(plain.size - 36), np.arange(36)])
    )  # limits come first in the store
    J = np.concatenate([contacts.jacobian(model, moment), limit_rows(model, moment)])
    M = dynamics.mass_matrix(model, moment.q) + np.diag(dt * model.dof_damping + dt**2 * model.dof_stiffness)
    assert relative_error(found.A[np.ix_(order, order)], J @ np.linalg.solve(M, J.T)) < SOLVED
    change = dynamics.forward_dynamics(model, moment.q, moment.v, dt=dt) - dynamics.forward_dynamics(
        model, moment.q, moment.v
    )
    assert relative_error(found.b[order], plain.b + dt * J @ change) < SOLVED
    assert [f.mu for f in found.frictions] == [f.mu for f in plain.frictions]


def limit_rows(model, moment):
    return moment.limits.sign[:, None] * np.eye(model.nv)[moment.limits.dof]


@pytest.mark.parametrize("stage", STAGES)
def test_free_velocities(stage):
    """b + v_ref = J (v + dt a), with MuJoCo's J and its accelerations without constraints."""
    mujoco, model = peer()
    for moment in stretch(stage):
        J, data = mujoco.jacobian(moment), mujoco.data
        free = J @ (moment.v + model.dt * data.qacc_smooth)
        found = contacts.problem(model, moment).b.copy()
        found[::3] += contacts.wanted_velocity(moment.contacts.distance, model.dt)
        assert relative_error(found, free) < SOLVED


@pytest.mark.parametrize("stage", STAGES)
def test_positive_multipliers_push_apart(stage):
    """Row velocities of normals are rates of MuJoCo's distances: differences of second order in a step of 1e-6 s.

    Accelerations of points are of the order of 10 m/s² and more: ½ a Δt ≈ 1e-5 m/s; distances round to 1e-16/1e-6.
    """
    mujoco, model = peer()
    moment = stretch(stage)[-1]
    step, rng = 1e-6, np.random.default_rng(0)
    v = rng.normal(size=model.nv)
    moved = dynamics.displaced(model, moment.q, v, step)
    rates = contacts.jacobian(model, moment)[::3] @ v
    mujoco.data.qpos = moved
    mujoco.mujoco.mj_forward(mujoco.model, mujoco.data)
    after = mujoco.contacts()
    pairs = [(after.ids.index(name), k) for k, name in enumerate(moment.contacts.ids) if name in after.ids]
    assert len(pairs) >= 6
    for place, k in pairs:
        assert (after.distance[place] - moment.contacts.distance[k]) / step == pytest.approx(rates[k], abs=1e-4)


@pytest.mark.parametrize("stage", STAGES)
def test_limits_are_rows_of_their_own(stage):
    _, model = peer()
    moment = stretch(stage)[-1]
    limits, whole = moment.limits, contacts.problem(model, moment, limits=True)
    assert whole.size == 36 + len(limits.dof) > 36
    M = dynamics.mass_matrix(model, moment.q)
    unit = np.eye(model.nv)[limits.dof[0]]
    assert whole.A[36, 36] == pytest.approx(unit @ np.linalg.solve(M, unit), rel=SOLVED)
    assert np.all(whole.lo[36:] == 0.0)
    assert relative_error(whole.A[:36, :36], contacts.problem(model, moment).A) < SOLVED


@pytest.mark.parametrize("stage", STAGES)
def test_answers_of_the_step_before_are_near(stage):
    _, model = peer()
    before, now = stretch(stage)[:2]
    lam = PGS(memory=10).solve(contacts.problem(model, before), Options(tolerance=1e-9, iterations=50_000)).lam
    warm, problem = contacts.carried_over(lam, before, now), contacts.problem(model, now)
    forces = [
        np.einsum("kij,ki->kj", moment.contacts.frame, x.reshape(-1, 3)) for moment, x in ((before, lam), (now, warm))
    ]
    np.testing.assert_allclose(*forces, rtol=0, atol=ROUNDING)
    near, far = (np.abs(natural_map(problem, x)).max() for x in (warm, 0.0 * warm))
    assert near < 0.1 * far


def test_wanted_velocity_closes_gaps_and_opens_overlaps():
    found = contacts.wanted_velocity(np.array([-0.01, 0.0, 0.02]), 0.01)
    np.testing.assert_allclose(found, [0.2, 0.0, -2.0])


def model_file(tmp_path, joint):
    path = tmp_path / "ball.xml"
    body = f'<body name="ball" pos="0 0 1">{joint}<geom size="0.1"/></body>'
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{body}</worldbody></mujoco>')
    return path


def test_a_model_that_cannot_fall_is_refused(tmp_path):
    path = model_file(tmp_path, '<joint type="hinge"/>')
    with pytest.raises(SystemExit, match=r"ball\.xml: its first joint is not free"):
        contacts.GroundPeer(path, trees.load_model(path))


def test_a_model_with_too_few_contacts_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(contacts, "DROPS", 2)
    path = model_file(tmp_path, "<freejoint/>")
    with pytest.raises(SystemExit, match="settled: the model never had the same 12 contacts for 3 steps"):
        contacts.GroundPeer(path, trees.load_model(path)).stretch("settled", 3)
