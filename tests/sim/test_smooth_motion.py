"""Free flight, swings and falls at velocity level: energy and momentum are kept to second order of the step."""

from __future__ import annotations

from contextlib import suppress

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


def plate(spin: tuple[float, float, float], damping: float = 0.0) -> poise.World:
    """A plate about its centre, without gravity; with a damper it is not smooth."""
    scene = poise.Scene(gravity=(0, 0, 0))
    inertia, joint = poise.Inertia(1.0, moments=(0.01, 0.02, 0.03)), poise.Joint("ball", damping=damping)
    scene.bodies.append(poise.Body("plate", joints=[joint], inertia=inertia))
    world = scene.build(dt=DT)
    world.v[:] = spin
    return world


def test_steps_are_split_where_velocity_products_turn_far() -> None:
    """A plate that wobbles at 100 rad/s; one that spins about an axis of inertia is not split, nor one that is smooth,
    which has stages of its own.
    """
    parts = {}
    for name, spin, damping in (("wobbles", 60.0, 1e-9), ("spins", 0.0, 1e-9), ("smooth", 60.0, 0.0)):
        world = plate((spin, spin, 60.0), damping)
        world.step()
        parts[name] = world.report().parts
    assert parts["spins"] == parts["smooth"] == 1
    assert parts["wobbles"] > 3


@pytest.mark.parametrize("spin", [100.0, 400.0, 1500.0])
def test_plates_that_wobble_fast_keep_energy_and_angular_momentum(spin: float) -> None:
    """A part turns by 0.1 rad at most: there Runge and Kutta's method changes energy by 0.1⁶/72 of it at most."""
    world = plate((spin, spin, spin))
    off, turned = drift(world, 1.0)
    angle = 1.0 * spin * np.sqrt(3.0)
    assert off < 0.1**5 / 72 * angle
    assert turned < 0.1**5 / 72 * angle


@pytest.mark.parametrize("spin", [1e5, 1e9, 1e90, 1e200])
def test_what_turns_too_fast_for_any_part_gains_no_energy(spin: float) -> None:
    """It loses some, or the step fails."""
    world = plate((spin, spin, spin))
    with np.errstate(over="ignore"):
        before = float(energy(world.model, world.q, world.v).total)
    try:
        world.step(10)
    except poise.Diverged:
        assert world.v.tolist() == [spin] * 3
    else:
        assert np.isfinite(world.q).all()
        assert energy(world.model, world.q, world.v).total <= before


@pytest.mark.parametrize("spin", [1e5, 1e9, 1e90, 1e200])
def test_what_turns_too_fast_and_is_damped_is_told(spin: float) -> None:
    """Velocities stay finite, or the step fails: its number of parts may be infinite."""
    world = plate((spin, spin, spin), 1e-9)
    with suppress(poise.Diverged):
        world.step(10)
    assert np.isfinite(world.q).all()
    assert np.isfinite(world.v).all()


@pytest.mark.parametrize("seed", range(8))
def test_universal_joints_that_whirl_keep_the_energy(seed: int) -> None:
    """Where a link comes into line with the first axis of its joint, it whirls at 50 to 150 rad/s, and its velocities
    change within 5 ms. Half steps were off by up to 97 % of the kinetic energy at the beginning.
    """
    scene, rng = poise.Scene(), np.random.default_rng(seed)
    long, masses, axes = rng.uniform(0.2, 0.8, 2), 10.0 ** rng.uniform(-0.5, 0.7, 2), rng.normal(size=(2, 3))
    below, parent = 3.0, None
    for k, name in enumerate(("upper", "lower")):
        joint = poise.Joint("universal", axis=tuple(axes[k]), anchor=(0, 0, 0.5 * long[k]))
        shape = poise.box(0.2 * long[k], 0.3 * long[k], long[k], mass=masses[k])
        scene.add(shape, name=name, parent=parent, joint=joint, position=(0, 0, below))
        below, parent = -0.5 * float(long.sum()), name
    world = scene.build(dt=DT)
    world.q[:], world.v[:] = rng.uniform(-1.5, 1.5, 4), rng.uniform(-6.0, 6.0, 4)
    assert drift(world)[0] < 0.01


def test_pendulums_in_lanes_are_as_good() -> None:
    world = double_pendulum("universal", 0)
    batch = poise.Batch(world.model, 8, dt=DT, precision="f64")
    batch.v[:] = np.random.default_rng(1).uniform(-6.0, 6.0, (8, 4))
    first = energy(batch.model, batch.q, batch.v)
    off = 0.0
    for _ in range(SAMPLES):
        batch.step(round(LONG / DT / SAMPLES))
        off = max(off, np.abs((energy(batch.model, batch.q, batch.v).total - first.total) / first.kinetic).max())
    assert off < 0.03


# ---- what is taken over from step to step ----------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["limits", "limp", "falls", "pendulum"])
def test_a_world_that_goes_on_has_the_bits_of_one_that_begins_there(what: str) -> None:
    """Links that are placed and factored at the end of a step are those of the next one."""

    def make() -> poise.World:
        if what == "pendulum":
            return double_pendulum("ball", 5)
        return thrown(5, limits=what != "limp", gravity=9.81 if what == "falls" else 0.0)

    world = make()
    for _ in range(30):
        world.step(3)
        other = make()
        other.state = world.state
        world.step()
        other.step()
        assert world.q.tobytes() == other.q.tobytes()
        assert world.v.tobytes() == other.v.tobytes()


def test_accelerations_meet_the_equations_of_motion_at_the_beginning_of_a_step() -> None:
    world = double_pendulum("ball", 3)
    for _ in range(20):
        q, v = world.q.copy(), world.v.copy()
        world.step()
        if world.report().parts == 1:
            assert world.a == pytest.approx(poise.dynamics.forward_dynamics(world.model, q, v), rel=1e-9, abs=1e-9)
