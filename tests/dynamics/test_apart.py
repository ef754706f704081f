"""Bodies of their own: coordinates read off them, gaps closed, slips stopped, and how they turn on their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise import dynamics
from poise.dynamics.maximal_bodies.body_state import OWN
from poise.dynamics.maximal_bodies.fit_coordinates import FITTED
from poise.dynamics.maximal_bodies.joint_forces import BRISK, SLOW, spin_after
from poise.formulations.acceleration_level.acceleration_entries import BEGIN, MEND
from poise.formulations.maximal_coordinates.maximal_driver import ApartStepper
from poise.formulations.step_status import BY_SPEED
from poise.kernel.memory import F64
from poise.kernel.vec import Sym3, Vec3
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.scene import Body, Scene
from poise.motion.rotations import quat_exp, quat_multiply, quat_to_matrix
from strategies import balls, one_joint_scene, random_body, random_q, random_v, scenes

ROUNDING = 1e-11
KINDS = [kind for kind in JOINTS if kind != "fixed"]
Array = np.ndarray[Any, Any]


class Bodies:
    """Separate bodies of a model, and what can be done to them."""

    def __init__(self, model: Model, q: Array, v: Array, **options: Any) -> None:
        self.model, self.stepper = model, ApartStepper(model, **options)
        space = self.stepper.space
        self.s, self.bodies = space.s, self.stepper.bodies
        self.s.q[...], self.s.v[...] = q, v
        self.begin()

    def begin(self) -> None:
        space = self.stepper.space
        BEGIN[F64](*(block.handle for block in (space.m, space.s, space.w, self.bodies)))

    def mend(self) -> None:
        space = self.stepper.space
        blocks = (space.m, space.s, self.stepper.end, self.bodies, self.stepper.options)
        MEND[F64](*(block.handle for block in blocks))

    @property
    def own(self) -> Array:
        """(n, 13)"""
        return self.bodies.own[: OWN * self.model.n_links].reshape(-1, OWN)

    def guess(self, q: Array, v: Array) -> None:
        """Other coordinates, which nobody has asked the bodies to follow."""
        self.s.q[...], self.s.v[...] = q, v
        self.bodies.own[OWN * self.model.n_links :] = np.concatenate((q, v))

    def inertias(self) -> Array:
        """(n, 3, 3) in world axes."""
        xx, yy, zz, xy, xz, yz = self.model.link_inertia.T
        own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
        R = np.array([quat_to_matrix(quat) for quat in self.own[:, :4]])
        return np.asarray(R @ own @ R.transpose(0, 2, 1))

    def momentum(self) -> tuple[Array, Array]:
        """Linear, and angular about the world's origin."""
        mass = self.model.link_mass
        own = self.own
        spin = np.einsum("nij,nj->ni", self.inertias(), own[:, 7:10])
        return mass @ own[:, 10:], (spin + np.cross(own[:, 4:7], mass[:, None] * own[:, 10:])).sum(axis=0)

    def energy(self) -> float:
        own, mass = self.own, self.model.link_mass
        spin = np.einsum("ni,nij,nj->", own[:, 7:10], self.inertias(), own[:, 7:10])
        return float(0.5 * (spin + (mass * (own[:, 10:] ** 2).sum(axis=1)).sum()))


def assert_same_q(model: Model, got: Array, want: Array, tolerance: float) -> None:
    """Coordinates, whatever the sign of quaternions."""
    got = got.copy()
    for j, _ in balls(model):
        got[j : j + 4] *= np.sign(got[j : j + 4] @ want[j : j + 4])
    assert np.abs(got - want).max() <= tolerance * (1.0 + np.abs(want).max())


def floating(seed: int, links: int = 4) -> Model:
    """A free body that carries others, by joints of every kind in turn."""
    rng, bodies = np.random.default_rng(seed), []
    kinds = ["free", *rng.permutation([kind for kind in KINDS if kind != "free"])]
    for k in range(links):
        body = random_body(rng, f"body{k}", f"body{rng.integers(k)}" if k else None, (kinds[k],), "dynamic")
        for joint in body.joints:
            joint.armature = joint.damping = joint.stiffness = 0.0
        bodies.append(body)
    return Scene(gravity=(0, 0, 0), bodies=bodies).compile()


# ---- coordinates -----------------------------------------------------------------------------------------------------


@given(scene=scenes(kinematic=False, massless=False), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_bodies_stand_where_a_tree_would_have_them(scene: Scene, seed: int) -> None:
    model, rng = scene.compile(), np.random.default_rng(seed)
    q, v = random_q(model, rng), random_v(model, rng)
    bodies = Bodies(model, q, v)
    placed = dynamics.bodies(model, q, v)
    for link, body in enumerate(model.link_body.tolist()):
        R, own = placed.rotation[body], bodies.own[link]
        centre = placed.position[body] + R @ model.link_com[link]
        speed = placed.twist[body, 3:] + np.cross(placed.twist[body, :3], R @ model.link_com[link])
        assert np.abs(quat_to_matrix(own[:4]) - R).max() < ROUNDING
        assert np.abs(own[4:7] - centre).max() < ROUNDING * (1.0 + np.abs(centre).max())
        assert np.abs(own[7:] - [*placed.twist[body, :3], *speed]).max() < ROUNDING * (1.0 + np.abs(speed).max())
    assert np.abs(bodies.bodies.gap).max() == np.abs(bodies.bodies.slip).max() == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_coordinates_are_read_off_bodies(kind: str, seed: int) -> None:
    """From a guess that is off by some degrees: to rounding."""
    model, rng = one_joint_scene(kind, seed).compile(), np.random.default_rng(seed)
    q, v = random_q(model, rng), random_v(model, rng)
    bodies = Bodies(model, q, v)
    off = dynamics.displaced(model, q, rng.normal(size=model.nv), 0.05)
    bodies.guess(off, random_v(model, rng))
    bodies.begin()
    assert_same_q(model, bodies.s.q, q, ROUNDING)
    assert np.abs(bodies.s.v - v).max() < ROUNDING * (1.0 + np.abs(v).max())
    assert np.abs(bodies.bodies.gap).max() < ROUNDING
    assert np.abs(bodies.bodies.slip).max() < 2.0 * FITTED * (1.0 + np.abs(v).max())


def test_angles_go_on_beyond_a_turn() -> None:
    model = one_joint_scene("hinge").compile()
    bodies = Bodies(model, np.array([7.0, -9.0]), np.zeros(2))
    bodies.guess(np.array([7.1, -9.1]), np.zeros(2))
    bodies.begin()
    assert np.abs(bodies.s.q - [7.0, -9.0]).max() < ROUNDING


def test_several_joints_of_a_body_are_read_off() -> None:
    rng = np.random.default_rng(3)
    body = random_body(rng, "hip", None, ("hinge", "hinge", "slider"), "dynamic")
    model = Scene(bodies=[body]).compile()
    q, v = np.array([0.3, -0.5, 0.1]), np.array([1.0, -2.0, 0.5])
    bodies = Bodies(model, q, v)
    bodies.guess(q + 0.05, v + 1.0)
    bodies.begin()
    assert np.abs(bodies.s.q - q).max() < ROUNDING
    assert np.abs(bodies.s.v - v).max() < ROUNDING


# ---- joints that do not hold -----------------------------------------------------------------------------------------


def shaken(seed: int, size: float, **options: Any) -> Bodies:
    """Bodies away from where their joints want them, by about so much, and moving so."""
    model, rng = floating(seed), np.random.default_rng(seed)
    bodies = Bodies(model, random_q(model, rng), random_v(model, rng), **options)
    for own in bodies.own:
        own[:4] = quat_multiply(quat_exp(rng.normal(size=3) * size), own[:4])
        own[4:] += rng.normal(size=9) * size
    return bodies


@pytest.mark.parametrize("seed", range(6))
def test_gaps_close_to_second_order_and_move_no_centre_of_mass(seed: int) -> None:
    left = []
    for size in (1e-3, 1e-4):
        bodies = shaken(seed, size)
        centre = bodies.model.link_mass @ bodies.own[:, 4:7]
        bodies.mend()
        left.append(np.abs(bodies.bodies.gap).max())
        assert np.abs(bodies.model.link_mass @ bodies.own[:, 4:7] - centre).max() < ROUNDING
    assert left[0] < 0.05 * 1e-3
    assert left[1] < 0.02 * left[0]


@pytest.mark.parametrize("seed", range(6))
def test_slips_stop_with_momentum_kept_and_energy_lost(seed: int) -> None:
    bodies = shaken(seed, 0.0)
    rng = np.random.default_rng(seed)
    bodies.own[:, 7:] += rng.normal(size=(len(bodies.own), 6))
    linear, angular = bodies.momentum()
    energy = bodies.energy()
    bodies.mend()
    after = bodies.momentum()
    assert np.abs(bodies.bodies.slip).max() < 1e-9
    assert np.abs(after[0] - linear).max() < ROUNDING * (1.0 + np.abs(linear).max())
    assert np.abs(after[1] - angular).max() < 1e-9 * (1.0 + np.abs(angular).max())
    assert bodies.energy() < energy


def test_with_speed_gaps_are_left_alone() -> None:
    bodies = shaken(0, 1e-3, stabilize=BY_SPEED)
    own = bodies.own.copy()
    bodies.mend()
    assert (bodies.own == own).all()


# ---- turning on their own --------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), size=st.floats(-3.0, 4.0))
@settings(max_examples=300, deadline=None)
def test_a_spin_never_gains_energy(seed: int, size: float) -> None:
    """Whatever its size, for turns of up to thousands of radians in a step."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.01, 1.0, 3)
    moments = np.array([a[1] + a[2], a[0] + a[2], a[0] + a[1]])
    spin = rng.normal(size=3) * 10.0**size
    after = np.array(list(spin_after.py_func(Sym3(*moments, 0.0, 0.0, 0.0), Vec3(*spin), 0.01).leaves()))
    assert np.isfinite(after).all()
    assert moments @ after**2 <= (moments @ spin**2) * (1.0 + 1e-14)


def test_a_spin_meets_eulers_equation_at_the_end_of_the_step() -> None:
    moments, spin, dt = np.array([1.0, 2.0, 2.5]), np.array([3.0, -1.0, 2.0]), 0.01
    after = np.array(list(spin_after.py_func(Sym3(*moments, 0.0, 0.0, 0.0), Vec3(*spin), dt).leaves()))
    residual = moments * (after - spin) + dt * np.cross(after, moments * after)
    assert np.abs(residual).max() < 1e-13


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("turn", [SLOW, BRISK])
def test_slow_spins_meet_it_in_fewer_steps(turn: float, seed: int) -> None:
    """In two steps, or three: just below the turns up to which they do."""
    rng = np.random.default_rng(seed)
    a, dt = rng.uniform(0.01, 1.0, 3), 0.01
    moments = np.array([a[1] + a[2], a[0] + a[2], a[0] + a[1]])
    spin = rng.normal(size=3)
    spin *= 0.999 * turn / dt / np.linalg.norm(spin)
    after = np.array(list(spin_after.py_func(Sym3(*moments, 0.0, 0.0, 0.0), Vec3(*spin), dt).leaves()))
    residual = moments * (after - spin) + dt * np.cross(after, moments * after)
    assert np.abs(residual).max() < 1e-14 * np.linalg.norm(moments * spin)


def test_what_has_no_inertia_keeps_its_spin() -> None:
    spin = Vec3(1.0, 2.0, 3.0)
    assert list(spin_after.py_func(Sym3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), spin, 0.01).leaves()) == [1.0, 2.0, 3.0]


def test_momentum_takes_inertias() -> None:
    from poise.dynamics.maximal_bodies.joint_forces import MOMENTUM
    from poise.model.scene import Inertia, Joint

    rod = Body("rod", inertia=Inertia(1.0, (0, 0, 0), (1.0, 1.0, 0.0)), joints=[Joint("universal")])
    with pytest.raises(ValueError, match='"rod" has no inertia about some axis'):
        ApartStepper(Scene(bodies=[rod]).compile(), turning=MOMENTUM)
