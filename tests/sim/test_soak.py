"""Random scenes in every formulation: nothing diverges, passive scenes gain no energy, no step exceeds its caps.

`POISE_SOAK_SCENES` sets how many scenes there are (500), `POISE_SOAK_FIRST` the first seed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import poise
from poise.formulations.stepper import Stepper
from poise.kernel.memory import F64

SCENES = int(os.environ.get("POISE_SOAK_SCENES", "500"))
FIRST = int(os.environ.get("POISE_SOAK_FIRST", "0"))
GROUP = 25
"""Scenes of a test."""
SECONDS, DT, FASTEST = 1.0, 1 / 240, 8.0
FORMULATIONS = {
    "reduced": poise.Reduced(),
    "maximal": poise.Maximal(),
    "maximal, momentum": poise.Maximal(turning="momentum"),
    "reduced, acceleration": poise.Reduced(level="acceleration"),
    "maximal, acceleration": poise.Maximal(level="acceleration"),
}
KINDS = ("hinge", "slider", "universal", "ball", "cylindrical", "planar")


def shape_of(rng: np.random.Generator) -> poise.Shape:
    """A shape of 5 to 30 cm, of 0.3 to 10 kg, with friction and sometimes restitution."""
    size, mass = rng.uniform(0.05, 0.3, 3), float(10 ** rng.uniform(-0.5, 1.0))
    bounces = float(rng.uniform(0.0, 0.9)) if rng.random() < 0.2 else 0.0
    material = poise.Material(friction=float(rng.uniform(0.0, 1.2)), restitution=bounces)
    kind = rng.integers(4)
    if kind == 0:
        return poise.sphere(0.5 * size[0], mass=mass, material=material)
    if kind == 1:
        return poise.capsule(0.25 * size[0], size[1], mass=mass, material=material)
    if kind == 2:
        return poise.cylinder(0.5 * size[0], size[1], mass=mass, material=material)
    return poise.box(*size, mass=mass, material=material)


def scene_of(seed: int) -> tuple[poise.Scene, np.random.Generator]:
    """One to four trees of one to four bodies, side by side and above the ground: nothing overlaps."""
    rng = np.random.default_rng(seed)
    scene = poise.Scene()
    if rng.random() < 0.8:
        scene.add_ground(friction=float(rng.uniform(0.2, 1.0)))
    for tree in range(int(rng.integers(1, 5))):
        rooted = rng.random() < 0.4
        height = 2.5 if rooted else float(rng.uniform(0.5, 1.5))
        joint = random_joint(rng) if rooted else poise.Joint("free")
        name = f"t{tree}"
        scene.add(shape_of(rng), name=name, joint=joint, position=(2.5 * tree, 0.0, height))
        for k in range(int(rng.integers(0, 4))):
            child = f"{name}_{k}"
            where = (0.0, 0.0, -0.45)
            scene.add(shape_of(rng), name=child, parent=name, joint=random_joint(rng), position=where)
            name = child
    return scene, rng


def random_joint(rng: np.random.Generator) -> poise.Joint:
    """Of any kind, about any axis, now and then with limits and with damping."""
    kind = str(rng.choice(KINDS))
    axis = rng.normal(size=3)
    axis = tuple(axis / np.linalg.norm(axis))
    limits = (-1.0, 1.0) if kind in ("hinge", "slider") and rng.random() < 0.4 else None
    damping = float(rng.uniform(0.0, 0.2)) if rng.random() < 0.3 else 0.0
    return poise.Joint(kind, axis=axis, anchor=(0, 0, 0.22), limits=limits, damping=damping)


def total(world: poise.World) -> float:
    return float(poise.dynamics.energy(world.model, world.q, world.v).total)


def soak(seed: int, name: str) -> str | None:
    """What is wrong with a scene, if anything."""
    scene, rng = scene_of(seed)
    formulation = FORMULATIONS[name]
    world = scene.build(formulation, dt=DT)
    probe = Stepper(world.model, F64)
    probe.free_motion(DT)
    probe.collider.find(probe.space, 0.0)
    if (probe.collider.c.gap[: int(probe.collider.c.count[0])] < 0.0).any():
        return None  # it would begin with an overlap
    world.v[:] = rng.uniform(-FASTEST, FASTEST, world.model.nv)
    first = total(world)
    size = float(poise.dynamics.energy(world.model, world.q, world.v).kinetic) + 1.0
    try:
        for _ in range(round(SECONDS / DT)):
            world.step()
            told = world.report()
            if formulation.level == "velocity" and told.work > formulation.budget:
                return f"seed {seed}, {name}: work {told.work:.2g} above the budget"
            if not np.isfinite(world.q).all() or not np.isfinite(world.v).all():
                return f"seed {seed}, {name}: not finite"
            if total(world) - first > 0.02 * size:
                return f"seed {seed}, {name}: gained {total(world) - first:.3g} J of {size:.3g} J at {world.time:.3f} s"
    except poise.Diverged as error:
        return f"seed {seed}, {name}: {error}"
    return None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::poise.FormulationWarning")
@pytest.mark.parametrize("group", range(-(-SCENES // GROUP)))
def test_random_scenes_neither_diverge_nor_gain_energy(group: int) -> None:
    names = list(FORMULATIONS)
    seeds = range(FIRST + group * GROUP, FIRST + min((group + 1) * GROUP, SCENES))
    wrong = [found for seed in seeds if (found := soak(seed, names[seed % len(names)]))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["reduced", "maximal"])
def test_some_random_scenes_neither_diverge_nor_gain_energy(name: str) -> None:
    wrong = [found for seed in range(5) if (found := soak(seed, name))]
    assert not wrong, "\n".join(wrong)
