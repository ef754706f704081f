"""γ of contacts: differences of the gap and of the sliding velocity along a motion, for every pair of shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from poise.collision.detector import Collider, Contact, contacts
from poise.dynamics.workspace import workspace
from poise.kernel.memory import F32X16, F64X8, Width
from poise.model.model import Model

Array = NDArray[Any]
KINDS = {
    "plane": lambda rng: poise.plane(),
    "sphere": lambda rng: poise.sphere(rng.uniform(0.1, 0.4)),
    "capsule": lambda rng: poise.capsule(rng.uniform(0.1, 0.2), rng.uniform(0.3, 1.0)),
    "box": lambda rng: poise.box(*rng.uniform(0.2, 0.8, 3)),
    "cylinder": lambda rng: poise.cylinder(rng.uniform(0.1, 0.3), rng.uniform(0.2, 0.8)),
    "ellipsoid": lambda rng: poise.ellipsoid(*rng.uniform(0.3, 0.9, 3)),
    "hull": lambda rng: poise.convex(rng.normal(size=(12, 3)) * 0.3),
}
PAIRS = [(a, b) for k, a in enumerate(KINDS) for b in list(KINDS)[k:] if b != "plane"]
DIRECTION = 5e-6
"""What a search may leave open of a normal, since it ends when the distance is known to 1e-11; rad."""


def flying(rng: np.random.Generator, one: str, other: str) -> tuple[Model, Array, Array, Array]:
    """Two shapes nearby on free bodies, the first held where it is a plane: model, state, accelerations."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(KINDS[one](rng), name="a", fixed=one == "plane")
    scene.add(KINDS[other](rng), name="b", position=(*rng.uniform(-0.3, 0.3, 2), 1.0))
    model = scene.compile()
    q = poise.dynamics.displaced(model, model.q_rest, rng.normal(size=model.nv) * 0.4)
    return model, q, rng.normal(size=model.nv), rng.normal(size=model.nv)


def least(found: list[Contact]) -> Contact:
    """The touch of least gap."""
    return min(found, key=lambda contact: contact.gap)


def point_motion(model: Model, q: Array, v: Array, a: Array, contact: Contact) -> tuple[Array, Array]:
    """Velocity and acceleration of B less A at the contact's point; of the latter what accelerations of bodies make."""
    bodies, speed, pull = poise.dynamics.bodies(model, q, v), np.zeros(3), np.zeros(3)
    for sign, shape in ((-1.0, contact.a), (1.0, contact.b)):
        body = int(model.solids.body[shape])
        jacobian = poise.dynamics.jacobian(model, q, body, model.body_com[body], v)
        arm = contact.point - bodies.position[body] - bodies.rotation[body] @ model.body_com[body]
        for total, twist in ((speed, jacobian.J @ v), (pull, jacobian.J @ a + jacobian.rate @ v)):
            total += sign * (twist[3:] + np.cross(twist[:3], arm))
    return speed, pull


def tangents(normal: Array) -> list[Array]:
    across = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    return [across / np.linalg.norm(across), np.cross(normal, across / np.linalg.norm(across))]


def turned(direction: Array, normal: Array) -> Array:
    """A tangent, made one of another normal without spinning about it."""
    across = direction - normal * (normal @ direction)
    return across / np.linalg.norm(across)


def differences(f: Array, step: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of nine values a step apart: first and second derivative to fourth order from the middle five, each with how far
    the one over twice the step is away. That is 15 times what the fourth order leaves out, and far more where another
    corner or edge comes in between.
    """

    def derivatives(f: Array, step: float) -> Array:
        first = (f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * step)
        second = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)
        return np.array((first, second))

    fine, coarse = derivatives(f[2:7], step), derivatives(f[::2], 2 * step)
    return (fine[0], abs(fine[0] - coarse[0])), (fine[1], abs(fine[1] - coarse[1]))


def check(seed: int, one: str, other: str, searched: bool) -> bool:
    """Whether a motion is smooth; if so, what the gap and the sliding velocity gain is compared with differences."""
    rng = np.random.default_rng([seed, PAIRS.index((one, other))])
    model, q, v, a = flying(rng, one, other)
    step = 2e-3 if searched else 5e-4
    times = step * np.arange(-4, 5)
    poses = [poise.dynamics.displaced(model, q, v * t + 0.5 * a * t * t) for t in times]
    found = [least(contacts(model, pose, 10.0)) for pose in poses]
    gaps = np.array([contact.gap for contact in found])
    _, (second, open) = differences(gaps, step)
    if open > 1e-3 * (1.0 + abs(second)) or gaps[4] < 0.0:
        return False
    here = least(contacts(model, q, 10.0, v=v))
    assert here.bend is not None
    _, pull = point_motion(model, q, v, a, here)
    # gaps are good to 1e-14 m, or where sides frame a touch to 1e-10 of themselves; weights add up to 64 / 12
    bound = open + 1e-5 * (1.0 + abs(second)) + (6e-10 * gaps[4] / step**2 if searched else 0.0)
    assert abs(second - here.normal @ (pull + here.bend)) < bound
    speeds = [
        point_motion(model, pose, speed_at(model, q, v, a, t), a, contact)[0]
        for pose, t, contact in zip(poses, times, found, strict=True)
    ]
    for d in tangents(here.normal):
        along = np.array([turned(d, c.normal) @ u for c, u in zip(found, speeds, strict=True)])
        (first, open), _ = differences(along, step)
        fastest = np.abs(speeds).max() + np.abs(v).max()
        bound = open + 1e-5 * (1.0 + abs(first)) + (1.5 * DIRECTION * fastest / step if searched else 0.0)
        assert abs(first - d @ (pull + here.bend)) < bound
    return True


def speed_at(model: Model, q: Array, v: Array, a: Array, t: float) -> Array:
    """Velocities along the motion: differences of poses, to fourth order."""
    h = 1e-3
    here = poise.dynamics.displaced(model, q, v * t + 0.5 * a * t * t)
    ends = [poise.dynamics.displaced(model, q, v * s + 0.5 * a * s * s) for s in t + h * np.array([-2, -1, 1, 2])]
    steps = [poise.dynamics.difference(model, here, end) for end in ends]
    return np.asarray((steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_acceleration_of_the_gap_and_of_sliding(pair: tuple[str, str]) -> None:
    """Every radius of curvature meets a ball and a plane, whose gaps and normals are closed forms."""
    searched = pair[0] not in ("plane", "sphere") and pair[1] in ("cylinder", "ellipsoid", "hull")
    assert sum(check(seed, *pair, searched) for seed in range(12)) >= 5


@pytest.mark.parametrize("width", [F64X8, F32X16], ids=str)
def test_worlds_in_lanes(width: Width) -> None:
    """Each world has contacts of its own; in float32 radii without end are 1e3, and lose as much of the rest.

    There, sines below 1e-3 are taken for nought and normals are found to 3e-4, the root of its precision. A contact
    that near to another edge or face, by chance one in a hundred, may have an id or a bend of its own.
    """
    rng = np.random.default_rng(0)
    scene = poise.Scene()
    scene.add_ground()
    for k, kind in enumerate(("capsule", "box", "ellipsoid", "cylinder", "hull")):
        scene.add(KINDS[kind](rng), name=kind, position=(0.5 * k, 0, 0.2))
    model = scene.compile()
    q = poise.dynamics.displaced(model, model.q_rest, rng.normal(size=(width.lanes, model.nv)) * 0.3)
    v = rng.normal(size=(width.lanes, model.nv))
    collider = Collider(model, width)
    collider.place(q, v)
    collider.touch(0.05)
    assert collider.contacts()[0].bend is None
    collider.bend(workspace(model, width))
    bound, strays = (1e-9, 0.0) if width == F64X8 else (3e-2, 0.05)
    n, known, right = 0, 0, 0
    for world in range(width.lanes):
        alone = {contact.id: contact.bend for contact in contacts(model, q[world], 0.05, v=v[world])}
        here = {contact.id: contact.bend for contact in collider.contacts(world)}
        both = [(here[id], alone[id]) for id in alone.keys() & here.keys()]
        errors = [np.abs(bend - wanted).max() / (1.0 + np.abs(wanted).max()) for bend, wanted in both]
        n, known, right = n + len(alone), known + len(both), right + sum(error < bound for error in errors)
    assert n > 3 * width.lanes
    assert known >= (1.0 - strays) * n
    assert right >= (1.0 - strays) * known
