"""γ of contacts: the second difference of the gap along a motion, for every pair of shapes."""

import numpy as np
import pytest

import poise
from poise.collision.bend import bend_contacts
from poise.collision.layout import CONTACTS, PLACES, SHAPES
from poise.collision.pipeline import Collider
from poise.dynamics import kinematics
from poise.dynamics.layout import MODEL, STATE, WORK
from poise.dynamics.workspace import Worlds, workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F64

_bend = entry(bend_contacts, MODEL, WORK, SHAPES, PLACES, CONTACTS, lanes=False)
_place_links = entry(kinematics.place_links, MODEL, STATE, WORK)

KINDS = {
    "plane": lambda rng: poise.plane(),
    "sphere": lambda rng: poise.sphere(rng.uniform(0.1, 0.4)),
    "capsule": lambda rng: poise.capsule(rng.uniform(0.1, 0.2), rng.uniform(0.3, 1.0)),
    "box": lambda rng: poise.box(*rng.uniform(0.2, 0.8, 3)),
}
PAIRS = [(a, b) for k, a in enumerate(KINDS) for b in list(KINDS)[k:] if b != "plane"]
STEP = 5e-4


def flying(rng, one, other):
    """Two shapes nearby on free bodies, the first held where it is a plane: model, state, accelerations."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(KINDS[one](rng), name="a", fixed=one == "plane")
    scene.add(KINDS[other](rng), name="b", position=(*rng.uniform(-0.3, 0.3, 2), 1.0))
    model = scene.compile()
    q = poise.dynamics.displaced(model, model.q_rest, rng.normal(size=model.nv) * 0.4)
    return model, q, rng.normal(size=model.nv), rng.normal(size=model.nv)


def least(collider, q):
    """The touch of least gap at a pose."""
    collider.place(q)
    collider.touch(10.0)
    return min(collider.contacts(), key=lambda contact: contact.gap)


def row_acceleration(model, q, v, a, contact):
    """J·(accelerations of the bodies) of the contact's row."""
    bodies, total = poise.dynamics.bodies(model, q, v), 0.0
    for sign, shape in ((-1.0, contact.a), (1.0, contact.b)):
        body = int(model.solids.body[shape])
        jacobian = poise.dynamics.jacobian(model, q, body, model.body_com[body], v)
        centre = bodies.position[body] + bodies.rotation[body] @ model.body_com[body]
        pull = jacobian.J @ a + jacobian.rate @ v
        total += sign * contact.normal @ (pull[3:] + np.cross(pull[:3], contact.point - centre))
    return total


def check(seed, one, other):
    """Relative error of the gap's acceleration; None where another corner or edge comes in between."""
    rng = np.random.default_rng([seed, PAIRS.index((one, other))])
    model, q, v, a = flying(rng, one, other)
    collider = Collider(model)
    times = STEP * np.arange(-2, 3)
    found = [least(collider, poise.dynamics.displaced(model, q, v * t + 0.5 * a * t * t)) for t in times]
    gaps = np.array([contact.gap for contact in found])
    fourth = (-gaps[0] + 16 * gaps[1] - 30 * gaps[2] + 16 * gaps[3] - gaps[4]) / (12 * STEP**2)
    second = (gaps[1] - 2 * gaps[2] + gaps[3]) / STEP**2
    if abs(fourth - second) > 1e-3 * (1.0 + abs(fourth)) or gaps[2] < 0.0:
        return None

    def call(space):
        _place_links[F64](space.m.handle, space.s.handle, space.w.handle)
        return []

    Worlds(model, np.float64, {"q": q, "v": v}).run(call)
    space = workspace(model, F64)
    collider.find(space, 10.0)
    _bend[F64](space.m.handle, space.w.handle, collider.g.handle, collider.x.handle, collider.c.handle)
    contacts = collider.contacts()
    nearest = min(range(len(contacts)), key=lambda k: contacts[k].gap)
    wanted = row_acceleration(model, q, v, a, contacts[nearest]) + float(collider.c.bend[nearest])
    return abs(fourth - wanted) / (1.0 + abs(fourth))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_acceleration_of_the_gap(pair):
    errors = [error for seed in range(12) if (error := check(seed, *pair)) is not None]
    assert len(errors) >= 5
    # differences of gaps that are good to 1e-14, over STEP²
    assert max(errors) < 1e-5
