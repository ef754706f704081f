"""Contacts as rows: what is solved at acceleration level keeps shapes touching and rolling, as differences show."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from poise.collision.detector import Contact, contacts
from poise.constraints.contact_parts import emit_contacts
from poise.constraints.response.row_system import answer, see
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import velocity_problem
from poise.model.model import Model
from poise.model.shapes import Material, Shape
from poise.solve.friction import Coefficients
from poise.solve.pgs import PGS
from strategies import unit_quat

Array = NDArray[Any]
STEP = 2e-3
SHAPES: dict[str, Shape] = {
    "plane": poise.plane(),
    "sphere": poise.sphere(0.3),
    "capsule": poise.capsule(0.2, 0.4),
    "cylinder": poise.cylinder(0.2, 0.5),
    "ellipsoid": poise.ellipsoid(0.5, 0.8, 0.6),
    "box": poise.box(0.5, 0.4, 0.6),
    "hull": poise.convex(np.random.default_rng(0).normal(size=(12, 3)) * 0.3),
}


def touching(rng: np.random.Generator, one: str, other: str) -> tuple[Model, Array]:
    """Two shapes that just touch, the first held if it is a plane."""
    scene = poise.Scene()
    for name, kind in (("a", one), ("b", other)):
        scene.add(SHAPES[kind], name=name, fixed=kind == "plane")
    model = scene.compile()
    q = model.q_rest.copy()
    for joint in model.joint_names:
        q[model.q_slice(joint)][3:] = unit_quat(rng)
    place = model.q_slice("b")
    q[place][:3] = rng.normal(size=3) * 0.2 + (0, 0, 1.5)
    for _ in range(40):  # along the normal until they touch
        near = least(model, q)
        q[place][:3] -= near.gap * near.normal
    assert abs(least(model, q).gap) < 1e-9
    return model, q


def least(model: Model, q: Array, v: Array | None = None) -> Contact:
    return min(contacts(model, q, 10.0, v=v), key=lambda contact: contact.gap)


def relative_velocity(model: Model, q: Array, v: Array, contact: Contact) -> Array:
    """Of B's point less A's; m/s."""
    placed, total = poise.dynamics.bodies(model, q, v), np.zeros(3)
    for sign, shape in ((-1.0, contact.a), (1.0, contact.b)):
        body = model.solids.body[shape]
        twist, arm = placed.twist[body], contact.point - placed.position[body]
        total += sign * (twist[3:] + np.cross(twist[:3], arm))
    return total


@pytest.mark.parametrize("other", ["sphere", "ellipsoid", "cylinder", "hull"])
@pytest.mark.parametrize("one", ["plane", "sphere"])
def test_rolling_goes_on(one: str, other: str) -> None:
    """Row velocities of nought stay nought while the point wanders: differences, extrapolated to STEP⁴ ≈ 1e-11.

    Another edge of a hull may come in between: not within all of three steps.
    """
    rng = np.random.default_rng([len(one), len(other)])
    model, q = touching(rng, one, other)
    v = rng.normal(size=model.nv)
    rows = Rows(model)
    emit_contacts(rows, q, [least(model, q)])
    # the part of v along which nothing slides or parts
    seen = see(rows, q, v)
    v = v - answer(rows, q, np.linalg.solve(seen.A, seen.speed))
    assert np.abs(see(rows, q, v).speed).max() < 1e-12
    contact = least(model, q, v)
    assert contact.bend is not None
    if (one, other) == ("plane", "sphere"):
        assert np.abs(contact.bend).max() < 1e-7  # the point of a ball that rolls keeps up with its centre
    else:
        assert np.abs(contact.bend).max() > 1e-2
    rows.clear()
    (name,) = emit_contacts(rows, q, [contact])
    assert name == contact.id
    seen = see(rows, q, v)
    assert seen.pull is not None
    a = seen.a_free - answer(rows, q, np.linalg.solve(seen.A, seen.pull))
    found = [gained(model, q, v, a, step) for step in (STEP, 0.5 * STEP, 0.25 * STEP)]
    assert min(np.abs((4.0 * fine - coarse) / 3.0).max() for coarse, fine in pairwise(found)) < 1e-6


def gained(model: Model, q: Array, v: Array, a: Array, step: float) -> Array:
    """Difference of the relative velocity at the contact along a motion, second order in the step; m/s²."""
    speeds = []
    for t in (-step, step):
        here, ahead, behind = (
            poise.dynamics.displaced(model, q, v * s + 0.5 * a * s * s) for s in (t, t + 1e-4, t - 1e-4)
        )
        velocity = poise.dynamics.difference(model, behind, ahead) / 2e-4
        speeds.append(relative_velocity(model, here, velocity, least(model, here)))
    return np.asarray((speeds[1] - speeds[0]) / (2.0 * step))


def slope_and_box(friction: tuple[float, float] = (0.8, 0.8)) -> Model:
    scene = poise.Scene()
    scene.add(poise.plane(material=Material(friction=friction[0])), name="ground", fixed=True)
    scene.add(
        poise.box(0.2, 0.2, 0.2, mass=2.0, material=Material(friction=friction[1])), name="box", position=(0, 0, 0.0999)
    )
    return scene.compile()


def test_a_box_on_the_ground() -> None:
    """Four blocks with the contacts' ids and gaps; the ground is the world; forces hold up the weight."""
    model = slope_and_box()
    found = contacts(model, model.q_rest)
    rows = Rows(model)
    assert emit_contacts(rows, model.q_rest, found, erp=0.2) == [contact.id for contact in found] == rows.ids()
    assert rows.counts()["contact"] == 4
    slots = rows.listing().slots
    assert rows.now.phi[slots].reshape(4, 3)[:, 0] == pytest.approx([-1e-4] * 4, abs=1e-15)
    assert (rows.now.a[slots] == -1).all()
    assert (rows.now.b[slots] == model.body_index("box")).all()
    assert rows.now.erp[slots[0]] == 0.2
    result = PGS().solve(velocity_problem(rows, see(rows, model.q_rest, dt=0.01), 0.01))
    lift = result.lam.reshape(4, 3)[:, 0].sum()
    # the weight's impulse, and what pushes 2 kg out by 0.2 of 1e-4 m in 10 ms
    assert lift == pytest.approx(2.0 * 9.81 * 0.01 + 2.0 * 0.2 * 1e-4 / 0.01, rel=1e-6)


def test_coefficients_of_friction() -> None:
    model = slope_and_box((0.9, 0.4))
    found = contacts(model, model.q_rest)
    for mu, wanted in ((None, 0.6), (0.3, 0.3), (Coefficients(0.5, 0.2, 0.1), 0.5)):
        rows = Rows(model)
        emit_contacts(rows, model.q_rest, found, mu=mu)
        assert rows.now.bound[rows.listing().slots[0]] == pytest.approx(wanted, abs=1e-15)


def test_what_is_refused() -> None:
    model = slope_and_box()
    found, rows = contacts(model, model.q_rest), Rows(model)
    with pytest.raises(ValueError, match="phi and gamma are the contacts' own"):
        emit_contacts(rows, model.q_rest, found, phi=0.0)
    with pytest.raises(ValueError, match=r"q has shape \(2, 7\); contacts are of one pose, \(7,\)"):
        emit_contacts(rows, np.tile(model.q_rest, (2, 1)), found)
    with pytest.raises(ValueError, match=r"q\[0\] is nan"):
        emit_contacts(rows, np.full(7, np.nan), found)
    with pytest.raises(ValueError, match="a row has no alfa"):
        emit_contacts(rows, model.q_rest, found, alfa=1.0)
    emit_contacts(rows, model.q_rest, found)
    with pytest.raises(ValueError, match="has a row of id"):
        emit_contacts(rows, model.q_rest, found)
