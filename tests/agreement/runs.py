"""Runs of a scene under every formulation, and how far apart they are.

Positions are those of bodies (m, rad) and coordinates; velocities, over the largest one; forces, those that are unique,
over the largest of their sort (1 N or N·m at least). All of them at a few times that all runs have a step for.
Velocities and forces jump where something is struck or let go, and steps tell when that is to within a few of them:
they are not looked at near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.dynamics import bodies
from poise.model.joints import Primitive
from poise.motion.rotations import quat_from_matrix

from .scenes import ROUGH, SPAN, Start, make

Array = NDArray[Any]
EXACT: dict[str, Any] = {"tolerance": 1e-12, "sweeps": 5000, "slop": 0.0, "creep": 0.0}
"""Errors are mended whole, and not from some size on."""
FORMULATIONS: dict[str, Any] = {
    "reduced velocity": poise.Reduced(**EXACT),
    "reduced acceleration": poise.Reduced(level="acceleration", **EXACT),
    "maximal velocity": poise.Maximal(**EXACT),
    "maximal acceleration": poise.Maximal(level="acceleration", **EXACT),
}
REFERENCE = "reduced acceleration"
PAIRS = tuple(combinations(FORMULATIONS, 2))
SAMPLES, FIRST = 8, 1
"""Times that are looked at, the last one at the end; not the first, which is a few steps after the beginning alone."""
Steps = dict[str, tuple[int, ...]]
STEPS: Steps = {"velocity": (32, 64, 128, 256), "acceleration": (32,)}
"""Of the runs at each level, in ordinary tests; and in those that take long."""
MORE_STEPS: Steps = {"velocity": (32, 64, 128, 256), "acceleration": (32, 64, 128)}
WINDOW = 3.0
"""Steps of the coarsest run, before and after a jump, in which velocities and forces are not looked at."""
FITTED = 3
"""The finest runs, of which orders are those."""
JUMP = 5.0
"""Times the change of velocities in the step before and the one after."""
NOTHING = 1e-12
"""What rounding may leave of a number that is 0, in its own unit."""
SORTS = ("positions", "velocities", "joints", "motors", "limits", "contacts", "loops")
"""What is compared; the last five are forces."""


@dataclass
class Sample:
    """A world at a moment."""

    places: Array
    """Positions, rotations and coordinates."""
    velocities: Array
    forces: dict[str, Array]
    """N and N·m, of each sort."""


@dataclass
class Run:
    """A way through a scene."""

    samples: list[Sample]
    jumps: list[float]
    """When something was struck, and when rows came, went, or began to slip, to within a step; s."""


@dataclass(frozen=True)
class Difference:
    """Two formulations beside each other."""

    errors: tuple[float, ...]
    """At every step."""
    order: float
    """Of the line through their logarithms."""


def same_turns(quats: Array) -> Array:
    """Of the two quaternions of a rotation, the one with w ≥ 0."""
    return np.where(quats[..., :1] < 0.0, -quats, quats)


def places_of(world: poise.World) -> Array:
    """Poses of bodies, and coordinates; a rotation as twice its quaternion, which is its angle where it is small."""
    placed, model, q = bodies(world.model, world.q), world.model, world.q.copy()
    for kind, j in zip(model.primitive_kind, model.primitive_q_start, strict=True):
        if kind == Primitive.BALL:
            q[j : j + 4] = 2.0 * same_turns(q[j : j + 4])
    turns = np.array([quat_from_matrix(R) for R in placed.rotation])
    return np.concatenate((placed.position.ravel(), 2.0 * same_turns(turns).ravel(), q))


def forces_of(world: poise.World) -> dict[str, Array]:
    """What is unique of the forces of the last step."""
    report, model = world.report(), world.model
    joints = [poise.sim.JointSensor(name)(world) for name in model.joint_names]
    limits = {(limit.dof, limit.what): limit.force for limit in report.limits}
    ends = [(name, what) for name in model.dof_names for what in ("lower", "upper")]
    ends += [(name, what) for name in model.joint_names for what in ("cone", "twist lower", "twist upper")]
    return {
        "joints": np.concatenate(joints),
        "motors": np.concatenate([np.zeros(0), *(np.atleast_1d(force) for force in report.motors.values())]),
        "limits": np.array([limits.get(end, 0.0) for end in ends]),
        "contacts": sum((contact.force for contact in report.contacts), np.zeros(3)),
        "loops": np.concatenate([np.zeros(0), *(np.concatenate((loop.force, loop.torque)) for loop in report.loops)]),
    }


def acting(world: poise.World) -> tuple[Any, ...]:
    """Which rows push, and which contacts slip."""
    report = world.report()
    slips = [_slips(contact.force, contact.normal) for contact in report.contacts if contact.normal_force > 0.0]
    return *slips, *sorted((limit.dof, limit.what) for limit in report.limits if limit.force != 0.0)


def _slips(force: Array, normal: Array) -> bool:
    press = float(force @ normal)
    return bool(np.linalg.norm(force - press * normal) > ROUGH.friction * press * (1.0 - 1e-6))


def run(start: Start, formulation: Any, steps: int, watch: bool = False) -> Run:
    """SPAN in so many steps; jumps are looked for in runs that are watched."""
    world = start.world(formulation, SPAN / steps)
    samples, each, changes, pushes = [], steps // SAMPLES, [], []
    for _ in range(SAMPLES):
        for _ in range(each if watch else 1):
            before = world.v.copy()
            world.step(1 if watch else each)
            if watch:
                changes.append(float(np.abs(world.v - before).max()))
                pushes.append(acting(world))
        samples.append(Sample(places_of(world), world.v.copy(), forces_of(world)))
    return Run(samples, jumps_of(changes, pushes) if watch else [])


def jumps_of(changes: Sequence[float], pushes: Sequence[Any]) -> list[float]:
    """Times of steps in which velocities changed by far more than before and after, or other rows push than before."""
    dt, around = SPAN / len(changes), [changes[1], *changes, changes[-2]]
    struck = [change > JUMP * max(around[k], around[k + 2]) for k, change in enumerate(changes)]
    others = [False, *(now != before for before, now in pairwise(pushes))]
    return [(k + 1) * dt for k in range(len(changes)) if struck[k] or others[k]]


def distance(one: Array, other: Array) -> float:
    """Of the largest difference at each moment, the root of the mean square over all of them."""
    return float(np.sqrt(np.mean(np.abs(one - other).max(axis=1, initial=0.0) ** 2)))


def order_of(errors: Sequence[float], steps: Sequence[int]) -> float:
    """Slope of log error over log step, of the finest steps."""
    if len(errors) == 1:
        return np.nan
    if min(errors) == 0.0:
        return np.inf
    return -float(np.polyfit(np.log(steps[-FITTED:]), np.log(errors[-FITTED:]), 1)[0])


@dataclass
class Part:
    """All runs of a scene."""

    steps: Steps
    runs: dict[str, list[Run]]
    """By formulation, the finest last."""

    @property
    def quiet(self) -> list[int]:
        """Samples far from jumps of the finest run of the reference."""
        window, jumps = WINDOW * SPAN / self.steps["velocity"][0], self.runs[REFERENCE][-1].jumps
        times = {k: SPAN * (k + 1) / SAMPLES for k in range(FIRST, SAMPLES)}
        return [k for k, time in times.items() if all(abs(time - jump) > window for jump in jumps)]

    def series(self, sort: str, run: Run) -> Array:
        """(samples, n) what a run tells of a sort."""
        if sort == "positions":
            return np.array([sample.places for sample in run.samples[FIRST:]])
        quiet = [run.samples[k] for k in self.quiet]
        if sort == "velocities":
            return np.array([sample.velocities for sample in quiet])
        return np.array([sample.forces[sort] for sample in quiet])

    def largest(self, sort: str) -> float:
        """Of the reference."""
        return float(np.abs(self.series(sort, self.runs[REFERENCE][-1])).max(initial=0.0))

    def tells(self, sort: str) -> bool:
        """Whether any run has such numbers, and not zeros alone, or what rounding leaves in their place."""
        return any((np.abs(self.series(sort, run)) > NOTHING).any() for runs in self.runs.values() for run in runs)

    def difference(self, sort: str, first: str, second: str) -> Difference:
        """Of a sort of numbers, at all steps that both have.

        The acceleration level is of the fourth order: its finest run is what all those of the velocity level are
        compared with. But sensors of joints are of the first order at any level.
        """
        names = sorted((first, second), key=lambda name: FORMULATIONS[name].level == "acceleration")
        (steps, runs), (fewer, others) = ((self.steps[FORMULATIONS[name].level], self.runs[name]) for name in names)
        if len({FORMULATIONS[name].level for name in names}) == 2:
            if sort == "joints":
                steps = steps[: len(fewer)]
            else:
                others = [others[-1]] * len(runs)
        scale = 1.0 if sort == "positions" else max(self.largest(sort), 1.0)
        errors = tuple(
            distance(self.series(sort, a), self.series(sort, b)) / scale for a, b in zip(runs, others, strict=False)
        )
        return Difference(errors, order_of(errors, steps))


@dataclass
class Cell:
    """All scenes of a kind of joint with something that acts."""

    kind: str
    feature: str
    parts: list[Part]

    def tells(self, sort: str) -> bool:
        """Whether there is anything of a sort to compare."""
        return any(part.tells(sort) for part in self.parts)

    def differences(self, sort: str, first: str, second: str) -> list[Difference]:
        """Of all scenes that tell it."""
        return [part.difference(sort, first, second) for part in self.parts if part.tells(sort)]


def cell(kind: str, feature: str, steps: Steps = STEPS) -> Cell:
    """Run scenes in every way."""
    return Cell(kind, feature, [run_all(start, steps) for start in make(kind, feature)])


def run_all(start: Start, steps: Steps) -> Part:
    """A scene under all formulations."""
    runs = {
        name: [run(start, formulation, n, name == REFERENCE) for n in steps[formulation.level]]
        for name, formulation in FORMULATIONS.items()
    }
    return Part(steps, runs)
