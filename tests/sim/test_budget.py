"""Work per step is capped: sweeps, products and looks of all solves of a step together, whatever the scene."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from poise import Batch, Joint, Material, Maximal, Reduced, Scene, World, box, capsule, sphere
from poise.dynamics import energy
from poise.formulations.stages.velocity_step import A_LITTLE

LATE = 4.0
"""Products over the square of the rows by which a step may end late: a sweep or a look of its last searches."""


def block(n: int = 3) -> Scene:
    """Boxes side by side and on top of each other, face to face: many times as many rows as determine the forces."""
    scene = Scene()
    scene.add_ground()
    for k in range(n**3):
        x, y, z = k % n, k // n % n, k // n**2
        scene.add(box(0.1, 0.1, 0.1, mass=1.0), name=f"box{k}", position=(0.1 * x, 0.1 * y, 0.05 + 0.1 * z))
    return scene


def inside_each_other(n: int = 8, seed: int = 0) -> Scene:
    """Boxes that start in one place."""
    scene, rng = Scene(), np.random.default_rng(seed)
    scene.add_ground()
    for k in range(n):
        scene.add(
            box(0.3, 0.3, 0.3, mass=1.0), name=f"box{k}", position=rng.uniform(-0.1, 0.1, 3) + np.array((0.0, 0.0, 0.2))
        )
    return scene


def rolling(n: int = 8) -> Scene:
    """Balls that roll and bounce off each other: bounds of rolling friction are found by solving again."""
    scene, rng = Scene(), np.random.default_rng(1)
    scene.add_ground()
    material = Material(friction=0.6, rolling_friction=0.01, torsional_friction=0.01, restitution=0.4)
    for k in range(n):
        place = (*rng.uniform(-0.05, 0.05, 2), 0.06 + 0.09 * k)
        scene.add(sphere(0.05, mass=1.0, material=material), name=f"ball{k}", position=place)
    return scene


def gripper() -> Scene:
    """Fingers that press a box of a tenth of their mass against each other, with limits and motors at work."""
    scene = Scene()
    for name, side in (("left", -1.0), ("right", 1.0)):
        joint = Joint("slider", axis=(side, 0.0, 0.0), limits=(-0.1, 0.1))
        place = (0.07 * side, 0.0, 0.5)
        scene.add(box(0.02, 0.06, 0.1, mass=1.0), name=name, position=place, joint=joint)
        scene.motor(name, stiffness=2000.0, damping=10.0, limit=60.0, target=-0.05)
    scene.add(box(0.1, 0.05, 0.05, mass=0.1), name="cube", position=(0.0, 0.0, 0.5))
    return scene


def flail() -> Scene:
    """A chain with a heavy end that turns so fast that steps are split."""
    scene = Scene()
    scene.add_ground()
    joint = Joint("hinge", axis=(0.0, 1.0, 0.0), anchor=(0.0, 0.0, 0.1))
    scene.add(capsule(0.02, 0.2, mass=0.2), name="link0", position=(0.0, 0.0, 0.6), joint=joint)
    scene.add(capsule(0.02, 0.2, mass=5.0), name="link1", parent="link0", position=(0.0, 0.0, -0.25), joint=joint)
    for k in range(3):
        scene.add(box(0.1, 0.1, 0.1, mass=1.0), name=f"box{k}", position=(0.3, 0.0, 0.05 + 0.1 * k))
    return scene


SCENES: dict[str, Callable[[], Scene]] = {
    "block": block,
    "inside each other": inside_each_other,
    "rolling": rolling,
    "gripper": gripper,
    "flail": flail,
}


def assert_capped(world: World, sweeps: int, budget: float) -> None:
    """The last step took no more than it may: every search may be late by a sweep, a look and the tries of a step."""
    report = world.report()
    assert report.sweeps <= sweeps * report.parts
    late = LATE * report.parts * (report.rows + 60.0) ** 2
    assert report.work <= budget * (1.0 + A_LITTLE * report.parts) + late
    assert 0.0 <= report.newton_work <= report.work
    assert np.isfinite(world.q).all()
    assert np.isfinite(world.v).all()
    solved = report.residual <= world.formulation.tolerance
    assert (report.status == "solved") == solved


@pytest.mark.parametrize("kind", [Reduced, Maximal])
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(("sweeps", "budget"), [(500, 5e9), (40, 3e6), (3, 1e12), (500, 1e4)])
def test_all_solves_of_a_step_stay_within_its_cap(name: str, kind: type, sweeps: int, budget: float) -> None:
    formulation = kind(sweeps=sweeps, budget=budget)
    world = SCENES[name]().build(formulation)
    if name == "flail":
        world.v[:2] = 30.0, 40.0
    for _ in range(6):
        world.step()
        assert_capped(world, sweeps, budget)


def test_random_scenes_stay_within_their_caps() -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        scene = Scene()
        scene.add_ground(friction=float(rng.uniform(0.0, 1.0)))
        material = Material(restitution=float(rng.choice([0.0, 0.5])), rolling_friction=float(rng.choice([0.0, 0.01])))
        for k in range(int(rng.integers(3, 12))):
            size, place = rng.uniform(0.05, 0.2, 3), rng.uniform(-0.15, 0.15, 3) + np.array((0.0, 0.0, 0.3))
            shape = box(*size, mass=float(10.0 ** rng.uniform(-2, 2)), material=material)
            scene.add(shape, name=f"body{k}", position=place)
        sweeps, budget = int(rng.choice([5, 50, 500])), float(10.0 ** rng.uniform(4, 9))
        world = scene.build(Reduced(sweeps=sweeps, budget=budget))
        for _ in range(8):
            world.step()
            assert_capped(world, sweeps, budget)


def test_a_capped_block_neither_gains_energy_nor_sinks() -> None:
    """With a hundredth of the work that it takes, a block of boxes stands within a tenth of a millimetre for 0.25 s."""
    world = block().build(Reduced(budget=2e7))
    start, model = world.q.reshape(-1, 7)[:, 2].copy(), world.model
    before, capped = energy(model, world.q, world.v).total, 0
    for _ in range(60):
        world.step()
        capped += world.report().status != "solved"
    assert capped > 10
    assert energy(model, world.q, world.v).total <= before * (1.0 + 1e-4)
    assert np.abs(world.q.reshape(-1, 7)[:, 2] - start).max() < 1e-4


def test_a_lane_has_the_same_cap_and_bits_beside_any_neighbours() -> None:
    """Worlds of a batch that use up their budget: bits and work are those that a world has in other company."""
    scene = inside_each_other(5)
    formulation = Reduced(sweeps=30, budget=2e5)
    batch = Batch(scene.compile(), 24, formulation, precision="f32", threads=1)
    rng = np.random.default_rng(2)
    batch.q[:, 0] += rng.uniform(-0.2, 0.2, 24).astype(np.float32)
    few = Batch(scene.compile(), 3, formulation, precision="f32", threads=1)
    few.q[...] = batch.q[[20, 7, 1]]
    for _ in range(5):
        batch.step()
        few.step()
        assert (batch.sweeps <= 30).all()
        assert (batch.work <= 2e5 + LATE * 400.0**2).all()
    assert not batch.solved.all()
    assert batch.report(int(np.argmin(batch.solved))).status in ("capped", "stalled", "solved")
    assert (few.q == batch.q[[20, 7, 1]]).all()
    assert (few.work == batch.work[[20, 7, 1]]).all()


@pytest.mark.filterwarnings("ignore:.*steps in a row found no forces:poise.FormulationWarning")
def test_an_acceleration_level_step_that_uses_up_its_work_ends_at_velocity_level() -> None:
    """Looks at rows count; what is left of the step is taken at velocity level, and told."""
    scene = Scene()
    scene.add_ground(friction=0.5)
    for k in range(3):
        scene.add(box(0.2, 0.2, 0.2, mass=1.0), name=f"box{k}", position=(0.02 * k, 0.0, 0.1005 + 0.2005 * k))
    plain, capped = (scene.build(Reduced(level="acceleration", budget=budget)) for budget in (5e9, 2e7))
    told = set()
    for _ in range(40):
        plain.step()
        capped.step()
        told.add((capped.report().level, capped.report().status))
        assert capped.report().work <= 2e7 + 6e7  # one impact, or the stage of an integrator
        assert plain.report().status == "solved"
    assert ("velocity", "capped") in told
    assert np.abs(capped.q - plain.q).max() < 2e-3


def test_budgets_are_checked() -> None:
    for name in ("budget", "correction_speed", "correction_turn"):
        with pytest.raises(ValueError, match=f"{name} is 0.0; it must be more than 0"):
            Reduced(**{name: 0.0})
