"""Random scenes in every formulation: nothing diverges, passive scenes gain no energy, no step exceeds its caps.

`POISE_SOAK_SCENES` sets how many scenes there are (500), `POISE_SOAK_FIRST` the first seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np
import pytest

import poise
from poise.formulations.driver import Stepper
from poise.formulations.stages.velocity_step import A_LITTLE
from poise.kernel.memory import F64
from poise.sim.step_report import Report

SCENES = int(os.environ.get("POISE_SOAK_SCENES", "500"))
FIRST = int(os.environ.get("POISE_SOAK_FIRST", "0"))
GROUP = 25
"""Scenes of a test."""
SECONDS, DT = 1.0, 1 / 240
TURN, MOVE = 8.0, 2.0
"""Speeds at the beginning, at most: rad/s and m/s. Translations are slow, or their energy hides that of rotations."""
GAIN = 0.02
FAST = 8.0
"""Angular velocity up to which gains count: where a body has been faster, 1/240 s is too long a step; rad/s."""
LOOPED = 0.4
"""Share of the scenes that have a closed chain beside the trees."""
FORMULATIONS = {
    "reduced": poise.Reduced(),
    "maximal": poise.Maximal(),
    "maximal, momentum": poise.Maximal(turning="momentum"),
    "reduced, acceleration": poise.Reduced(level="acceleration"),
    "maximal, acceleration": poise.Maximal(level="acceleration"),
}
KINDS = ("hinge", "slider", "universal", "ball", "cylindrical", "planar")
ALONG = ("vx", "vy", "vz", "slide", "x", "y")
"""How names of coordinates end that are lengths; that of a slider has the name of its joint."""


# ---- scenes ----------------------------------------------------------------------------------------------------------


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


def direction(rng: np.random.Generator) -> np.ndarray:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_joint(rng: np.random.Generator) -> poise.Joint:
    """Of any kind, about any axis, now and then with limits and with damping."""
    kind = str(rng.choice(KINDS))
    limits = (-1.0, 1.0) if kind in ("hinge", "slider") and rng.random() < 0.4 else None
    damping = float(rng.uniform(0.0, 0.02)) if rng.random() < 0.3 else 0.0
    return poise.Joint(kind, axis=tuple(direction(rng)), anchor=(0, 0, 0.22), limits=limits, damping=damping)


def scene_of(seed: int) -> poise.Scene:
    """One to four trees of one to four bodies, side by side and above the ground; LOOPED have a closed chain too."""
    rng = np.random.default_rng(seed)
    scene = poise.Scene()
    if rng.random() < 0.8:
        scene.add_ground(friction=float(rng.uniform(0.2, 1.0)))
    for tree in range(int(rng.integers(1, 5))):
        links, rooted = int(rng.integers(0, 4)), rng.random() < 0.4
        height = 2.5 if rooted else float(rng.uniform(0.5, 1.5)) + 0.45 * links
        name = f"t{tree}"
        joint = random_joint(rng) if rooted else poise.Joint("free")
        scene.add(shape_of(rng), name=name, joint=joint, position=(2.5 * tree, 0.0, height))
        for k in range(links):
            child = f"{name}_{k}"
            scene.add(shape_of(rng), name=child, parent=name, joint=random_joint(rng), position=(0.0, 0.0, -0.45))
            name = child
    rng = np.random.default_rng([seed, 1])
    if rng.random() < LOOPED:
        add_closed_chain(scene, rng)
    return scene


def add_closed_chain(scene: poise.Scene, rng: np.random.Generator) -> None:
    """Three to five links from the world or from a floating body back to it, zigzag, with hinges that are parallel
    (a planar loop, with redundant rows, or a closed spatial one where its loop is a ball) or with joints of any kind.
    """
    across, turn = direction(rng), rng.normal(size=3)
    along = np.cross(across, turn) / np.linalg.norm(np.cross(across, turn))
    planar, floats = rng.random() < 0.6, rng.random() < 0.4
    parent, place, corner = None, np.zeros(3), np.array((-3.0, 0.0, 4.0))
    if floats:
        scene.add(shape_of(rng), name="base", joint=poise.Joint("free"), position=tuple(corner))
        parent, place = "base", corner
        corner = corner + 0.35 * along
    bend = 0.0
    for k in range(int(rng.integers(3, 6))):
        bend += float(rng.uniform(0.5, 1.1)) * (1 if k % 2 else -1 if k else 0.5)
        way = float(rng.uniform(0.5, 0.7)) * (np.cos(bend) * along + np.sin(bend) * np.cross(across, along))
        kind = "hinge" if planar else str(rng.choice(KINDS))
        axis = across if planar else direction(rng)
        joint = poise.Joint(kind, axis=tuple(axis), anchor=tuple(-0.5 * way))
        middle, name = corner + 0.5 * way, f"c{k}"
        scene.add(shape_of(rng), name=name, parent=parent, joint=joint, position=tuple(middle - place))
        parent, place, corner = name, middle, corner + way
    kind = str(rng.choice(("hinge", "ball", "universal", "slider"))) if planar else str(rng.choice(KINDS))
    axis = along if planar and kind == "slider" else across
    scene.loop(kind, parent, "base" if floats else None, "closure", position=tuple(corner), axis=tuple(axis))


def world_of(seed: int, name: str) -> poise.World:
    """A scene with speeds of up to TURN and MOVE, which keep its loops closed."""
    scene = scene_of(seed)
    world = scene.build(FORMULATIONS[name], dt=DT)
    model, rng = world.model, np.random.default_rng([seed, 2])
    most = np.array([MOVE if is_length(model, d) else TURN for d in range(model.nv)])
    v = rng.uniform(-most, most)
    if model.loops:
        short = scene.build(dt=1e-6)
        short.v[:] = v
        short.step(2)
        v = short.v / max(float(np.abs(short.v / most).max()), 1.0)
    world.v[:] = v
    world.v[:] *= min(1.0, TURN / max(fastest_turn(world), 1e-9))
    return world


def is_length(model: poise.Model, d: int) -> bool:
    """Whether a coordinate is a length."""
    name, joint = model.dof_names[d], int(model.dof_joint[d])
    alone = name == model.joint_names[joint]
    return model.joint_kinds[joint] == "slider" if alone else name.rpartition(".")[2] in ALONG


def fastest_turn(world: poise.World) -> float:
    """Of all bodies; rad/s."""
    spins = poise.dynamics.bodies(world.model, world.q, world.v).twist[:, :3]
    return float(np.linalg.norm(spins, axis=1).max())


def overlaps(world: poise.World) -> bool:
    probe = Stepper(world.model, F64)
    probe.free_motion(DT)
    probe.collider.find(probe.space, 0.0)
    return bool((probe.collider.c.gap[: int(probe.collider.c.count[0])] < 0.0).any())


# ---- what must hold --------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What a run showed."""

    diverged: str = ""
    beyond_cap: str = ""
    gained: float = 0.0
    """Largest rise of the energy above what it had fallen to, over the largest energy until then, which is counted from
    the ground."""
    when: float = 0.0
    fastest: float = 0.0
    """Angular velocity of a body until the energy had risen by GAIN, or until the end; rad/s."""

    def wrong(self) -> str:
        """What must not be; empty where all is well."""
        text = f"gained {self.gained:.3%} by {self.when:.3f} s, at up to {self.fastest:.0f} rad/s before"
        gain = "" if self.gained <= GAIN or self.fastest > FAST else text
        return ", ".join(text for text in (self.diverged, self.beyond_cap, gain) if text)


def beyond_cap(told: Report, rules: poise.Reduced | poise.Maximal) -> str:
    """How a step took more than it may; `tests/sim/test_budget.py` has the allowance."""
    late = 4.0 * told.parts * (told.rows + 60.0) ** 2
    if told.work > rules.budget * (1.0 + A_LITTLE * told.parts) + late:
        return f"work {told.work:.2g} above the budget"
    if told.sweeps > rules.sweeps * told.parts and told.level == "velocity":
        return f"{told.sweeps} sweeps in {told.parts} parts"
    return ""


def soak(world: poise.World, seconds: float = SECONDS, each: Callable[[poise.World], None] | None = None) -> Found:
    """Run a world, and look at each of its steps."""
    found, lowest, most = Found(), np.inf, 0.0
    try:
        for _ in range(round(seconds / world.dt) + 1):
            energy = float(poise.dynamics.energy(world.model, world.q, world.v).total)
            lowest, most = min(lowest, energy), max(most, abs(energy))
            gain = (energy - lowest) / max(most, 1e-9)
            if not gain <= found.gained:
                found.gained, found.when = gain, world.time
            if found.gained <= GAIN:
                found.fastest = max(found.fastest, fastest_turn(world))
            world.step()
            if each is not None:
                each(world)
            found.beyond_cap = found.beyond_cap or beyond_cap(world.report(), world.formulation)
            if not np.isfinite(world.q).all() or not np.isfinite(world.v).all():
                found.diverged = f"not finite at {world.time:.3f} s"
                break
    except poise.Diverged as error:
        found.diverged = str(error)
    return found


def faults(seeds: Iterable[int], names: list[str]) -> str:
    """A line for each run that is not as it must be."""
    lines = []
    for seed in seeds:
        for name in names:
            world = world_of(seed, name)
            assert not overlaps(world), f"seed {seed} begins with an overlap"
            if wrong := soak(world).wrong():
                lines.append(f"seed {seed}, {name}: {wrong}")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::poise.FormulationWarning")
@pytest.mark.parametrize("group", range(-(-SCENES // GROUP)))
def test_random_scenes_neither_diverge_nor_gain_energy(group: int) -> None:
    """Every scene in every formulation."""
    seeds = range(FIRST + group * GROUP, FIRST + min((group + 1) * GROUP, SCENES))
    assert not (wrong := faults(seeds, list(FORMULATIONS))), wrong


@pytest.mark.parametrize("name", ["reduced", "maximal"])
def test_some_random_scenes_neither_diverge_nor_gain_energy(name: str) -> None:
    assert not (wrong := faults(range(6), [name])), wrong


# ---- that it would be seen -------------------------------------------------------------------------------------------


def test_a_gain_of_energy_is_found_though_it_follows_a_loss() -> None:
    """A box that has lost half of its energy gains 5 % of it."""

    def lose_and_gain(world: poise.World) -> None:
        world.v[:] *= 0.7 if world.time < 1.5 * DT else 1.0005

    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.1, 0.2, 0.3), name="box")
    world = scene.build(dt=DT)
    world.v[:] = 1.0
    found = soak(world, 0.2, lose_and_gain)
    assert found.gained == pytest.approx(0.49 * (1.0005 ** (2 * 47) - 1.0), rel=0.1)
    assert "gained" in found.wrong()


def test_a_step_beyond_its_cap_and_a_divergence_are_found() -> None:
    world = world_of(0, "reduced")
    world.step()
    told, rules = world.report(), world.formulation
    assert beyond_cap(told, rules) == ""
    worked, swept = copy(told), copy(told)
    worked.work = 1.01 * rules.budget
    assert "above the budget" in beyond_cap(worked, rules)
    swept.sweeps = rules.sweeps * told.parts + 1
    assert "sweeps" in beyond_cap(swept, rules)
    world.v[:] = 1e200
    assert soak(world, 0.05).diverged


def test_scenes_begin_without_overlaps_at_up_to_8_rad_per_s() -> None:
    """And about LOOPED of them have a loop: 16 of 40, with a standard deviation of 3."""
    loops = 0
    for seed in range(40):
        world = world_of(seed, "reduced")
        assert not overlaps(world), seed
        assert fastest_turn(world) < TURN * (1.0 + 1e-9)
        loops += bool(world.model.loops)
    assert 7 <= loops <= 25


@pytest.mark.skipif(os.environ.get("POISE_SEED_OFFSET", "0") != "0", reason="these seeds have such impacts")
@pytest.mark.parametrize("seed", [99, 242, 253, 413])
def test_impacts_that_leave_links_fast_gain_no_energy(seed: int) -> None:
    """Velocity products are those of velocities after an impact, and a step that is too long for these is split. With
    those of before, these scenes gain 10 % to 74 % in a step.
    """
    assert soak(world_of(seed, "reduced")).gained < 0.03
