"""Scenes of many shapes, and what was found in them, for tests of collision."""

from __future__ import annotations

from typing import Any

import numpy as np

import poise
from poise.collision.detector import Collider, Contact
from poise.kernel.memory import F64, Width
from poise.model.contact_pairs import ContactPair
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene
from poise.model.shapes import Shape
from strategies import unit_quat, vector


def random_shape(rng: np.random.Generator, **options: Any) -> Shape:
    """A ball, a capsule or a box, of any size within two orders of magnitude."""
    size = 0.05 * 10.0 ** rng.uniform(-1, 1)
    options = {"position": vector(rng, 0.05), "quat_wxyz": unit_quat(rng), "margin": 0.01 * rng.integers(2)} | options
    sort = rng.random()
    if sort < 0.4:
        return poise.sphere(float(size), **options)
    if sort < 0.6:
        return poise.box(*(float(size * x) for x in rng.uniform(0.5, 3, 3)), **options)
    return poise.capsule(float(size), float(size * rng.uniform(0.5, 4)), **options)


def crowd(n: int, seed: int = 0, room: float = 1.0, rules: bool = True) -> Model:
    """N bodies in a cube of so many metres: free ones, some with children and grandchildren, some that never move, two
    floors, of which one is tilted; groups, masks and pairs that pass through each other.
    """
    rng = np.random.default_rng(seed)
    bodies: list[Body] = []
    for k in range(n):
        body = Body(f"b{k}", position=tuple(float(x) for x in rng.uniform(0, room, 3)), quat_wxyz=unit_quat(rng))
        body.shapes = [random_shape(rng, **random_groups(rng, rules)) for _ in range(rng.integers(1, 3))]
        sort = rng.random()
        if sort < 0.2:
            body.motion = "fixed"
        elif sort < 0.5 and bodies:
            body.parent, body.position = bodies[rng.integers(len(bodies))].name, vector(rng, 0.1)
            body.joints = [Joint("hinge")]
        else:
            body.joints = [Joint("free")]
        bodies.append(body)
    scene = Scene(bodies=bodies)
    if rules:
        names = [body.name for body in bodies]
        scene.excluded_pairs = [tuple(map(str, rng.choice(names, 2, replace=False))) for _ in range(3 * n)]
        touched = [(body.name, k) for body in bodies for k, shape in enumerate(body.shapes) if shape.group | shape.mask]
        ends = [rng.choice(len(touched), 2, replace=False) for _ in range(n)]
        scene.contact_pairs = [ContactPair(touched[i], touched[j]) for i, j in ends]
    scene.add_ground()
    scene.add(poise.plane(quat_wxyz=(0.9, 0.3, 0.2, 0.1)), fixed=True, name="slope", position=(0.3, 0.0, 0.1))
    return scene.compile()


def random_groups(rng: np.random.Generator, rules: bool) -> dict[str, int]:
    """Bits of 32, most of them the first; some shapes are only looked at."""
    if not rules or rng.random() < 0.7:
        return {}
    bits = [1, 2, 3, 1 << 20, (1 << 20) | 1, 1 << 30, 0]
    return {"group": int(rng.choice(bits)), "mask": int(rng.choice(bits))}


def spheres(n: int, seed: int = 0, radius: float = 0.05, fill: float = 0.5) -> Model:
    """Free balls in a cube, of which they fill so much of the space, over a floor."""
    rng = np.random.default_rng(seed)
    side = (n * (2 * radius) ** 3 / fill) ** (1 / 3)
    bodies = [
        Body(f"s{k}", position=tuple(map(float, place)), joints=[Joint("free")], shapes=[poise.sphere(radius)])
        for k, place in enumerate(rng.uniform(0, side, (n, 3)))
    ]
    scene = Scene()
    scene.add_ground()
    scene.bodies += bodies
    return scene.compile()


def found(collider: Collider, world: int = 0) -> list[tuple[Any, ...]]:
    """All that is known of the contacts of a world."""
    return [everything(contact) for contact in collider.contacts(world)]


def everything(contact: Contact) -> tuple[Any, ...]:
    numbers = (contact.gap, *contact.normal.tolist(), *contact.point.tolist())
    return (contact.a, contact.b, contact.feature, contact.id, *numbers)


def places(model: Model, rng: np.random.Generator, worlds: int, step: float = 0.05) -> np.ndarray:
    """(worlds, nq) poses near the rest pose."""
    rows = [poise.dynamics.displaced(model, model.q_rest, rng.normal(scale=step, size=model.nv)) for _ in range(worlds)]
    return np.array(rows)


def colliders(model: Model, width: Width = F64) -> tuple[Collider, Collider]:
    """Each shape with each, and through the tree."""
    return Collider(model, width, search="few"), Collider(model, width, search="many")
