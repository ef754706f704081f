"""What must hold for any tree, checked on random ones: each algorithm against the others, and against plain matrices.

Tolerances: δ = 2⁻⁵³ times a few hundred operations is 1e-13; solves lose the condition of the mass matrix (scaled to a
unit diagonal, capped at 1e5 by `assume`) on top: 1e-8. Central differences with step h err by h² and δ/h of the sizes
of their terms: 1e-6 at h = 1e-4 leaves a factor of some hundred for third derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import tree_reference
from poise import dynamics
from poise.dynamics import Drive
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from strategies import balls, random_q, random_v, relative_error, scenes

ROUNDING = 1e-12
SOLVED = 1e-8
STEP = 1e-4
DIFFERENCED = 1e-6


@dataclass(frozen=True)
class Case:
    """A tree, a state and random everything."""

    scene: Scene
    model: Model
    rng: np.random.Generator
    q: np.ndarray
    v: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Degrees of freedom that forces move."""
        return np.flatnonzero(self.model.dof_prescribed == 0)

    @property
    def led(self) -> np.ndarray:
        return np.flatnonzero(self.model.dof_prescribed)

    def vector(self) -> np.ndarray:
        return random_v(self.model, self.rng)

    def wrenches(self) -> np.ndarray:
        return self.rng.normal(size=(self.model.n_bodies, 6))

    def moved(self, h: float) -> np.ndarray:
        return dynamics.displaced(self.model, self.q, self.v, h)


def make_case(scene: Scene, seed: int) -> Case:
    model, rng = scene.compile(), np.random.default_rng(seed)
    return Case(scene, model, rng, random_q(model, rng), random_v(model, rng))


def is_well_posed(c: Case) -> bool:
    """Whether the free part of the mass matrix is far from singular: massless links can make it so."""
    M = dynamics.mass_matrix(c.model, c.q)[np.ix_(c.free, c.free)]
    size = np.sqrt(np.diagonal(M))
    return bool(np.all(size > 0)) and (not len(M) or float(np.linalg.cond(M / np.outer(size, size))) < 1e5)


def random_drive(c: Case) -> Drive:
    gains = np.abs(c.vector()) * 5.0
    return Drive(gains, np.abs(c.vector()), random_q(c.model, c.rng), c.vector())


def check_inverse_of_forward(c: Case) -> None:
    """ID(FD(τ)) = τ where forces decide, and led accelerations stay as given; explicit and implicit, all forces on."""
    m, tau, forces, led = c.model, c.vector(), c.wrenches(), c.vector()
    for dt in (0.0, 0.05):
        for drive in (None, random_drive(c)):
            rest = {"forces": forces, "drive": drive, "dt": dt}
            a = dynamics.forward_dynamics(m, c.q, c.v, tau, prescribed=led, **rest)
            back = dynamics.inverse_dynamics(m, c.q, c.v, a, **rest)
            np.testing.assert_array_equal(a[c.led], led[c.led])
            terms = np.abs(dynamics.mass_matrix(m, c.q)) @ np.abs(a) + np.abs(dynamics.bias_forces(m, c.q, c.v)) + 30.0
            assert np.all(np.abs(back - tau)[c.free] <= SOLVED * terms.max())


def check_equations_of_motion(c: Case) -> None:
    """M a + bias = τ + passive + Σ Jᵀ f, with M, bias, passive forces and Jacobians each from its own function."""
    m, tau, forces, led = c.model, c.vector(), c.wrenches(), c.vector()
    a = dynamics.forward_dynamics(m, c.q, c.v, tau, forces=forces, prescribed=led)
    M, bias = dynamics.mass_matrix(m, c.q), dynamics.bias_forces(m, c.q, c.v)
    pushed = sum(dynamics.jacobian(m, c.q, b).J.T @ forces[b] for b in range(m.n_bodies))
    right = tau + dynamics.passive_forces(m, c.q, c.v) + pushed
    terms = np.abs(M) @ np.abs(a) + np.abs(bias) + np.abs(right)
    assert np.all(np.abs(M @ a + bias - right)[c.free] <= SOLVED * terms.max())


def check_mass_matrix(c: Case) -> None:
    """Symmetric, positive definite, Σ Jᵀ I J of a reference, and the inverse of the responses to unit forces."""
    m = c.model
    M = dynamics.mass_matrix(m, c.q)
    np.testing.assert_array_equal(M, M.T)
    assert relative_error(M, tree_reference.mass_matrix(c.scene, m, c.q)) < 1e-9
    part = M[np.ix_(c.free, c.free)]
    if len(part):
        assert np.linalg.eigvalsh(part).min() > 0.0
    inverse = dynamics.response(m, c.q, np.eye(m.nv))
    assert np.all(inverse[c.led] == 0.0)
    assert np.all(inverse[:, c.led] == 0.0)
    unit = np.eye(len(c.free))
    assert np.abs(inverse[np.ix_(c.free, c.free)] @ part - unit).max(initial=0.0) < SOLVED


def check_responses(c: Case) -> None:
    """Deltas of forces and torques = differences of two articulated-body runs = M⁻¹ Jᵀ f = rows of lanes."""
    m, tau, led = c.model, c.vector(), c.vector()
    before = dynamics.forward_dynamics(m, c.q, c.v, tau, prescribed=led)
    forces, taus = c.rng.normal(size=(11, m.n_bodies, 6)), c.rng.normal(size=(11, m.nv))
    rows = dynamics.response(m, c.q, taus, forces)
    M = dynamics.mass_matrix(m, c.q)[np.ix_(c.free, c.free)]
    J = [dynamics.jacobian(m, c.q, b).J for b in range(m.n_bodies)]
    for row, own, push in zip(rows, taus, forces, strict=True):
        right = own + sum(J[b].T @ push[b] for b in range(m.n_bodies))
        want = np.zeros(m.nv)
        want[c.free] = np.linalg.solve(M, right[c.free])
        after = dynamics.forward_dynamics(m, c.q, c.v, tau + own, forces=push, prescribed=led)
        scale = 1.0 + np.abs(want).max() + np.abs(before).max()
        assert np.abs(row - want).max() <= SOLVED * scale
        assert np.abs(after - before - row).max() <= SOLVED * scale
    for b in range(m.n_bodies):
        push = np.zeros((1, m.n_bodies, 6))
        push[0, b] = forces[0, b]
        delta = dynamics.force_delta(m, c.q, b, push[0, b, 3:], push[0, b, :3])
        want = dynamics.response(m, c.q, forces=push)[0]
        assert np.abs(delta - want).max() <= SOLVED * (1.0 + np.abs(want).max())
    units = dynamics.response(m, c.q, 2.0 * np.eye(m.nv))
    for d in range(m.nv):
        delta = dynamics.torque_delta(m, c.q, d, 2.0)
        assert np.abs(delta - units[d]).max() <= SOLVED * (1.0 + np.abs(units[d]).max())


def check_energy_rate(c: Case) -> None:
    """dE/dt = v·τ − v·D v, whatever moves: E by central differences along (q, v), τ from inverse dynamics."""
    m, a = c.model, c.vector()
    tau = dynamics.inverse_dynamics(m, c.q, c.v, a)
    ahead, behind = (dynamics.energy(m, c.moved(h), c.v + a * h) for h in (STEP, -STEP))
    power = c.v @ tau - c.v @ (m.dof_damping * c.v)
    scale = 1.0 + np.abs(c.v * tau).sum() + abs(float(ahead.kinetic))
    assert abs(float(ahead.total - behind.total) / (2 * STEP) - power) <= DIFFERENCED * scale


def check_skew_symmetry(c: Case) -> None:
    """½ vᵀ Ṁ v = vᵀ (bias − gravity): Coriolis forces do no work of their own."""
    m = c.model
    rate = (dynamics.mass_matrix(m, c.moved(STEP)) - dynamics.mass_matrix(m, c.moved(-STEP))) / (2 * STEP)
    coriolis = dynamics.bias_forces(m, c.q, c.v) - dynamics.gravity_forces(m, c.q)
    scale = 1.0 + np.abs(c.v) @ np.abs(rate) @ np.abs(c.v)
    assert abs(0.5 * c.v @ rate @ c.v - c.v @ coriolis) <= DIFFERENCED * scale


def check_jacobians(c: Case) -> None:
    """J v = twist; J by the reference; J̇ by central differences; α and acceleration of a point from J a + J̇ v."""
    m, twist = c.model, dynamics.bodies(c.model, c.q, c.v).twist
    reference = tree_reference.jacobians(c.scene, m, c.q)
    for b in range(m.n_bodies):
        J = dynamics.jacobian(m, c.q, b, v=c.v).J
        assert np.abs(J - reference[b]).max() <= 1e-9 * (1.0 + np.abs(reference[b]).max())
        assert np.abs(J @ c.v - twist[b]).max() <= ROUNDING * (1.0 + np.abs(twist[b]).max())
        point = c.rng.normal(size=3)
        at = dynamics.jacobian(m, c.q, b, point, c.v)
        R = dynamics.bodies(m, c.q).rotation[b]
        np.testing.assert_allclose(at.J[3:], J[3:] + np.cross(J[:3], R @ point, axis=0), atol=ROUNDING * 100)
        ahead, behind = (dynamics.jacobian(m, c.moved(h), b, point).J for h in (STEP, -STEP))
        assert np.abs((ahead - behind) / (2 * STEP) - at.rate).max() <= DIFFERENCED * (1.0 + np.abs(at.rate).max())


def check_poses(c: Case) -> None:
    """Poses from 4 × 4 matrices; a quaternion's length does not matter."""
    want, got = tree_reference.scene_poses(c.scene, c.model, c.q), dynamics.bodies(c.model, c.q)
    assert np.abs(got.position - want[:, :3, 3]).max() < ROUNDING * 10
    assert np.abs(got.rotation - want[:, :3, :3]).max() < ROUNDING


def check_displacement(c: Case) -> None:
    """`difference` undoes `displaced`, and a small displacement moves bodies with their twists."""
    m = c.model
    v = c.v * 0.5
    back = dynamics.difference(m, c.q, dynamics.displaced(m, c.q, v, 1.0))
    np.testing.assert_allclose(back, v, atol=1e-12)
    poses = [tree_reference.scene_poses(c.scene, m, c.moved(h)) for h in (-STEP, STEP)]
    moved = tree_reference.twist_between(*poses) / (2 * STEP)
    twist = dynamics.bodies(m, c.q, c.v).twist
    assert np.abs(moved - twist).max() <= DIFFERENCED * (1.0 + np.abs(twist).max() ** 3)


def check_totals(c: Case) -> None:
    """Energy and momentum of several trees at once, summed over the bodies; kinetic energy = ½ vᵀ M v."""
    m = c.model
    poses, totals, momentum = dynamics.bodies(m, c.q, c.v), dynamics.energy(m, c.q, c.v), dynamics.momentum(m, c.q, c.v)
    moving = m.body_link >= 0
    mass = m.body_mass * moving
    arm = np.einsum("nij,nj->ni", poses.rotation, m.body_com)
    com, speed = poses.position + arm, poses.twist[:, 3:] + np.cross(poses.twist[:, :3], arm)
    xx, yy, zz, xy, xz, yz = m.body_inertia.T
    local = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
    spin = np.einsum("nij,njk,nlk,nl->ni", poses.rotation, local, poses.rotation, poses.twist[:, :3])
    size = 1.0 + mass.sum() * (1.0 + np.abs(com).max() * np.abs(m.gravity).max())
    np.testing.assert_allclose(momentum.mass, mass.sum(), rtol=1e-14)
    np.testing.assert_allclose(totals.kinetic, 0.5 * c.v @ dynamics.mass_matrix(m, c.q) @ c.v, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(totals.gravity, -(mass @ com) @ m.gravity, atol=ROUNDING * size)
    np.testing.assert_allclose(momentum.linear, mass @ speed, atol=ROUNDING * size)
    if mass.sum() > 0:
        np.testing.assert_allclose(momentum.com, mass @ com / mass.sum(), atol=ROUNDING * size)
    about = (mass[:, None] * np.cross(com - momentum.com, speed) + spin * moving[:, None]).sum(axis=0)
    np.testing.assert_allclose(momentum.angular, about, atol=ROUNDING * 10 * size * (1.0 + np.abs(speed).max()))


def check_implicit_step(c: Case) -> None:
    """With dt, springs, dampers and drives pull as at the step's *end*: exactly so where coordinates are numbers."""
    assume(not balls(c.model))
    m, tau, led, h, drive = c.model, c.vector(), c.vector(), 0.1, random_drive(c)
    a = dynamics.forward_dynamics(m, c.q, c.v, tau, drive=drive, prescribed=led, dt=h)
    v = c.v + h * a
    pull = dynamics.passive_forces(m, dynamics.displaced(m, c.q, v, h), v, drive=drive)
    left = dynamics.mass_matrix(m, c.q) @ a + dynamics.bias_forces(m, c.q, c.v)
    assert np.abs(left - tau - pull)[c.free].max(initial=0.0) <= SOLVED * (
        1.0 + np.abs(left).max() + np.abs(pull).max()
    )


CHECKS = (
    check_totals,
    check_implicit_step,
    check_inverse_of_forward,
    check_equations_of_motion,
    check_mass_matrix,
    check_responses,
    check_energy_rate,
    check_skew_symmetry,
    check_jacobians,
    check_poses,
    check_displacement,
)

EASY = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@EASY
@given(scene=scenes(), seed=SEEDS)
def test_identity(check, scene: Scene, seed: int) -> None:
    c = make_case(scene, seed)
    assume(is_well_posed(c))
    check(c)


@pytest.mark.slow
@settings(EASY, max_examples=1000, derandomize=False)
@given(scene=scenes(max_bodies=8), seed=SEEDS)
def test_all_identities_on_a_thousand_trees(scene: Scene, seed: int) -> None:
    c = make_case(scene, seed)
    assume(is_well_posed(c))
    for check in CHECKS:
        if check is not check_implicit_step or not balls(c.model):
            check(c)


def hang_from_free_trunk(scene: Scene) -> Scene:
    """The same trees, all hanging from a body that floats."""
    trunk = Body("trunk", joints=[Joint("free")], inertia=Inertia(2.0, (0.1, 0.0, 0.2), (0.3, 0.4, 0.5)))
    for body in scene.bodies:
        body.parent = body.parent or "trunk"
    scene.bodies.insert(0, trunk)
    return scene


@EASY
@given(scene=scenes(kinematic=False), seed=SEEDS)
@example(scene=Scene(bodies=[]), seed=0)
def test_momentum_changes_by_outer_forces_alone(scene: Scene, seed: int) -> None:
    """dp/dt = Σ f + m g and dL/dt = Σ (τ + r × f) about the centre of mass; springs, dampers, motors stay inside."""
    c = make_case(hang_from_free_trunk(scene), seed)
    assume(is_well_posed(c))
    m, tau, forces = c.model, c.vector(), c.wrenches()
    tau[:6] = 0.0
    a = dynamics.forward_dynamics(m, c.q, c.v, tau, forces=forces)
    ahead, behind = (dynamics.momentum(m, c.moved(h), c.v + a * h) for h in (STEP, -STEP))
    now, at = dynamics.momentum(m, c.q, c.v), dynamics.bodies(m, c.q).position
    linear = forces[:, 3:].sum(axis=0) + now.mass * m.gravity
    angular = (forces[:, :3] + np.cross(at - now.com, forces[:, 3:])).sum(axis=0)
    scale = 1.0 + np.abs(linear).max() + np.abs(angular).max() + np.abs(now.angular).max() + np.abs(a).max()
    assert np.abs((ahead.linear - behind.linear) / (2 * STEP) - linear).max() <= DIFFERENCED * scale
    assert np.abs((ahead.angular - behind.angular) / (2 * STEP) - angular).max() <= DIFFERENCED * scale
    np.testing.assert_allclose(now.mass, m.body_mass.sum(), rtol=1e-14)
    moved = (ahead.com - behind.com) / (2 * STEP)
    assert np.abs(moved * now.mass - now.linear).max() <= DIFFERENCED * scale
