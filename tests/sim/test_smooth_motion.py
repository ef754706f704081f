"""Free flight, swings and falls at velocity level: energy and momentum are kept to second order of the step."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.dynamics import energy, momentum

DT = 1 / 240
LONG = 10.0
SAMPLES = 100


def drift(world: poise.World, seconds: float = LONG) -> tuple[float, float]:
    """Largest deviations while a world runs: of the energy, over the first kinetic energy; of the angular momentum."""
    model, steps = world.model, round(seconds / world.dt / SAMPLES)
    first, whirl = energy(model, world.q, world.v), momentum(model, world.q, world.v).angular
    off, turned = 0.0, 0.0
    for _ in range(SAMPLES):
        world.step(steps)
        off = max(off, abs(energy(model, world.q, world.v).total - first.total) / first.kinetic)
        change = np.linalg.norm(momentum(model, world.q, world.v).angular - whirl)
        turned = max(turned, float(change) / max(float(np.linalg.norm(whirl)), 1e-9))
    return float(off), turned


def racket(spin: float, size: tuple[float, float, float] = (0.3, 0.2, 0.1), seed: int = 0) -> poise.World:
    """A box that spins about its middle axis, or about any."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(*size, mass=1.0), name="box")
    world = scene.build(dt=DT)
    axis = np.array([0.01, 1.0, 0.01]) if seed == 0 else np.random.default_rng(seed).normal(size=3)
    world.v[3:] = spin * axis / np.linalg.norm(axis)
    return world


def double_pendulum(kind: str, seed: int, formulation: poise.Reduced | None = None, dt: float = DT) -> poise.World:
    """Two boxes that hang from each other, in any direction, each coordinate at up to 6 rad/s."""
    scene, rng = poise.Scene(), np.random.default_rng(seed)
    upper, lower = poise.Joint(kind, anchor=(0, 0, 0.25)), poise.Joint(kind, anchor=(0, 0, 0.2))
    scene.add(poise.box(0.1, 0.15, 0.5, mass=2.0), name="upper", joint=upper, position=(0, 0, 3))
    lie = {"parent": "upper", "joint": lower, "position": (0, 0, -0.45)}
    scene.add(poise.box(0.1, 0.12, 0.4, mass=1.0), name="lower", **lie)
    world = scene.build(formulation, dt=dt)
    world.v[:] = rng.uniform(-6.0, 6.0, world.model.nv)
    return world


def thrown(seed: int, *, limits: bool, gravity: float = 0.0) -> poise.World:
    """A humanoid that tumbles at 4 rad/s; without limits its limbs do so, too, and pass through each other."""
    scene, rng = poise.Scene(gravity=(0, 0, -gravity)), np.random.default_rng(seed)
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 100))
    if not limits:
        for body in scene.bodies:
            body.shapes = []
            for joint in body.joints:
                joint.limits = joint.cone = joint.twist = None
    world = scene.build(dt=DT)
    axis = rng.normal(size=3)
    world.v[3:6] = 4.0 * axis / np.linalg.norm(axis)
    if not limits:
        world.v[6:] = rng.uniform(-4.0, 4.0, world.model.nv - 6)
    return world


# ---- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "seed"), [((0.3, 0.2, 0.1), 0), ((0.3, 0.2, 0.1), 3), ((0.02, 0.03, 0.5), 5)])
def test_boxes_that_tumble_at_20_rad_per_s_keep_energy_and_angular_momentum(size, seed) -> None:
    """Semi-implicit Euler gained 116 % of the energy."""
    off, turned = drift(racket(20.0, size, seed))
    assert off < 0.01
    assert turned < 0.0033


def test_a_gyroscope_keeps_its_energy() -> None:
    scene = poise.Scene()
    pivot = poise.Joint("ball", anchor=(0, 0, -0.3))
    scene.add(poise.cylinder(0.2, 0.05, mass=1.0), name="disc", joint=pivot, position=(0, 0, 0.3))
    world = scene.build(dt=DT)
    world.q[:] = np.cos(0.3), np.sin(0.3), 0.0, 0.0
    world.v[:] = 0.5, 0.0, 60.0
    assert drift(world)[0] < 0.01


@pytest.mark.parametrize("kind", ["ball", "universal"])
@pytest.mark.parametrize("seed", range(4))
def test_double_pendulums_keep_their_energy(kind: str, seed: int) -> None:
    """Semi-implicit Euler gained up to 220 times the energy."""
    assert drift(double_pendulum(kind, seed))[0] < 0.03


@pytest.mark.parametrize("seed", range(2))
def test_limp_humanoids_that_are_thrown_keep_energy_and_angular_momentum(seed: int) -> None:
    off, turned = drift(thrown(seed, limits=False))
    assert off < 0.03
    assert turned < 0.01


@pytest.mark.parametrize("seed", range(2))
def test_limits_of_a_humanoid_in_the_air_keep_its_momentum(seed: int) -> None:
    """Impacts within the character take energy, and neither angular nor linear momentum."""
    world = thrown(seed, limits=True)
    before = momentum(world.model, world.q, world.v)
    assert drift(world)[1] < 0.01
    linear = momentum(world.model, world.q, world.v).linear
    assert linear == pytest.approx(before.linear, abs=0.01 * 70.0)  # kg m/s, of limbs at some m/s


# ---- how well --------------------------------------------------------------------------------------------------------


def test_a_parabola_is_exact() -> None:
    """x = v t − g t²/2 at the end of every step, whatever its length."""
    for dt in (1 / 30, 1 / 240):
        scene = poise.Scene()
        scene.add(poise.box(0.1, 0.2, 0.3), name="box", position=(0, 0, 50))
        world = scene.build(dt=dt)
        world.v[:3] = 1.0, 2.0, 9.0
        world.step(round(0.5 / dt))
        assert world.q[:3] == pytest.approx([0.5, 1.0, 50 + 4.5 - 9.81 / 8], abs=1e-12)
        assert world.v[:3] == pytest.approx([1.0, 2.0, 9.0 - 9.81 / 2], abs=1e-12)


@pytest.mark.parametrize("kind", ["ball", "universal"])
def test_smooth_motion_is_of_second_order(kind: str) -> None:
    """The error of the coordinates after half a second falls by four as the step is halved."""
    ends = []
    for dt in (1 / 200, 1 / 400, 1 / 800, 1 / 6400):
        world = double_pendulum(kind, 1, dt=dt)
        world.v[:] *= 0.3
        world.step(round(0.5 / dt))
        ends.append(world.v.copy())
    errors = [float(np.abs(end - ends[-1]).max()) for end in ends[:-1]]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.25)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.25)


def test_batches_keep_energy_and_angular_momentum_too() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.3, 0.2, 0.1, mass=1.0), name="box")
    batch = scene.build_batch(8, dt=DT, precision="f64")
    batch.v[:, 3:] = np.random.default_rng(2).normal(size=(8, 3)) * 10.0
    first = energy(batch.model, batch.q, batch.v).total
    batch.step(round(LONG / DT))
    assert energy(batch.model, batch.q, batch.v).total == pytest.approx(first, rel=0.01)


def test_what_rests_stays_at_rest() -> None:
    """Half steps of gravity leave no velocity where a contact bears the weight."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.3, 0.4), name="box", position=(0, 0, 0.2))
    world = scene.build(dt=DT)
    world.step(240)
    assert np.abs(world.v).max() < 1e-6


def test_steps_are_split_where_velocity_products_turn_far() -> None:
    """A plate that wobbles at 100 rad/s; one that spins about an axis of inertia is not split."""
    parts = {}
    for name, spin in (("wobbles", (60.0, 60.0, 60.0)), ("spins", (0.0, 0.0, 100.0))):
        scene = poise.Scene(gravity=(0, 0, 0))
        inertia = poise.Inertia(1.0, moments=(0.01, 0.02, 0.03))
        scene.bodies.append(poise.Body("plate", joints=[poise.Joint("free")], inertia=inertia))
        world = scene.build(dt=DT)
        world.v[3:] = spin
        world.step()
        parts[name] = world.report().parts
    assert parts["spins"] == 1
    assert parts["wobbles"] > 3


def test_accelerations_meet_the_equations_of_motion_at_the_beginning_of_a_step() -> None:
    world = double_pendulum("ball", 3)
    for _ in range(20):
        q, v = world.q.copy(), world.v.copy()
        world.step()
        if world.report().parts == 1:
            assert world.a == pytest.approx(poise.dynamics.forward_dynamics(world.model, q, v), rel=1e-9, abs=1e-9)
