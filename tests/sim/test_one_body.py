"""Worlds with a single moving body, in every formulation and with every integrator, against closed forms.

A state of one row can be a view where a state of two rows is a copy: what holds for two bodies must be shown for one.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import poise
from poise.formulations.acceleration_level.acceleration_driver import Accelerated

G = 9.81
WAYS: dict[str, tuple[Any, int]] = {
    "reduced": (poise.Reduced(), 1),
    "maximal": (poise.Maximal(), 1),
    "maximal, momentum": (poise.Maximal(turning="momentum"), 1),
    "maximal, pgs": (poise.Maximal(solver="pgs", stabilization="speed", tolerance=1e-9), 1),
    "maximal, dantzig": (poise.Maximal(solver="dantzig", stabilization="speed"), 1),
} | {
    f"{kind.__name__.lower()} acceleration, {integrator}": (kind(level="acceleration", integrator=integrator), order)
    for kind in (poise.Reduced, poise.Maximal)
    for integrator, order in (("euler", 1), ("midpoint", 2), ("rk4", 4))
}
"""Formulations by name, and the order of each."""
TRACKING = [name for name in WAYS if "acceleration" in name]
every_way = pytest.mark.parametrize("name", WAYS)
pytestmark = pytest.mark.filterwarnings("ignore:.*holds joints by forces:poise.FormulationWarning")


def shapes() -> dict[str, Any]:
    return {
        "sphere": poise.sphere(0.1, mass=2.0),
        "box": poise.box(0.3, 0.2, 0.1, mass=0.5),
        "capsule": poise.capsule(0.05, 0.3, mass=1.3),
    }


@every_way
@pytest.mark.parametrize("shape", ["sphere", "box", "capsule"])
def test_a_body_falls_at_g(name: str, shape: str) -> None:
    """z = −g t²/2. Semi-implicit Euler is off by g h t/2, higher orders by rounding."""
    formulation, order = WAYS[name]
    scene = poise.Scene()
    scene.add(shapes()[shape], name="body", position=(0, 0, 10))
    world = scene.build(formulation, dt=0.01)
    world.step(100)
    late = G * world.dt / 2 if order == 1 else 0.0  # less where fast steps are split
    assert -G / 2 - late - 1e-9 <= world.q[2] - 10.0 <= -G / 2 + 1e-9
    assert world.v[2] == pytest.approx(-G, abs=1e-9)


@every_way
def test_a_hinged_rod_turns_at_a_constant_speed(name: str) -> None:
    """Without gravity q = t, in any formulation."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis=(1, 2, 0.5), anchor=(0, 0, 0.5), name="rod")
    world = scene.build(WAYS[name][0], dt=0.01)
    world.v[0] = 1.0
    world.step(100)
    loose = (
        1e-9 if "reduced" in name else {1: 5e-3, 2: 2e-5, 4: 1e-6}[WAYS[name][1]]
    )  # a body turns round its own centre
    assert world.q[0] == pytest.approx(1.0, abs=loose)
    assert world.v[0] == pytest.approx(1.0, abs=loose)


def swing(time: float, q0: float, rate: float) -> float:
    """Angle of a pendulum that was let go at q0: sin(q/2) = k cd(ω t, k)."""
    k = np.sin(q0 / 2)
    sn, _, _, _ = ellipj(ellipk(k * k) - rate * time, k * k)  # sn(K − u) = cd(u)
    return float(2 * np.arcsin(k * sn))


@every_way
def test_a_hinged_rod_swings_at_the_order_of_its_integrator(name: str) -> None:
    """A rod of 1 m on its end: ω² = 3 g/(2 l); the exact swing is a Jacobi elliptic function."""
    formulation, order = WAYS[name]
    errors, steps = [], (80, 160, 320)  # so short that a smooth tree takes half steps, and not stages of fourth order
    for n in steps:
        scene = poise.Scene(gravity=(0, 0, -G))
        scene.hinge(None, poise.box(0.2, 0.2, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="rod")
        world = scene.build(formulation, dt=0.5 / n)
        world.q[0] = 1.0
        world.step(n)
        inertia = 2.0 * (1.0 + 0.04) / 12 + 2.0 * 0.25
        errors.append(abs(float(world.q[0]) - swing(0.5, 1.0, np.sqrt(2.0 * G * 0.5 / inertia))))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    print(f"\n{name}: {errors}, orders {orders}")
    assert errors[-1] < {1: 2e-2, 2: 1e-3, 4: 1e-6}[order]
    if errors[-1] > 1e-9:
        assert orders[-1] > order - 0.3


@every_way
def test_a_ball_rests_on_the_ground(name: str) -> None:
    """It stays where it is, and the ground bears its weight."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
    world = scene.build(WAYS[name][0], dt=1 / 240)
    world.step(120)
    assert world.q[2] == pytest.approx(0.1, abs=1e-4)  # the slop of contacts
    assert sum(contact.normal_force for contact in world.report().contacts) == pytest.approx(2.0 * G, rel=1e-3)


@every_way
@pytest.mark.parametrize("angle", [0.2, 0.35])
def test_a_box_below_the_friction_angle_stays(name: str, angle: float) -> None:
    """μ = 0.4 holds up to 0.3805 rad."""
    scene = poise.Scene(gravity=(G * float(np.sin(angle)), 0.0, -G * float(np.cos(angle))))
    rough = poise.Material(friction=0.4)
    scene.add_ground(friction=0.4)
    scene.add(poise.box(0.4, 0.3, 0.1, mass=3.0, material=rough), name="box", position=(0, 0, 0.05))
    world = scene.build(WAYS[name][0], dt=1 / 240)
    world.step(120)
    assert (
        abs(float(world.q[0])) < 2e-3
    )  # moves by less than a thousandth of the 0.4 m that it would slide without friction
    assert world.q[2] == pytest.approx(0.05, abs=1e-3)


@pytest.mark.parametrize("name", TRACKING)
def test_a_tracked_hinge_follows_at_the_order_of_its_integrator(name: str) -> None:
    """q = sin t, exactly, but for the error of the integrator (KOK §8.3)."""
    formulation, order = WAYS[name]
    errors = []
    for n in (100, 200, 400):
        scene = poise.Scene()
        scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
        world = scene.build(formulation, dt=1 / n)
        world.track("arm", lambda t: (np.sin(t), np.cos(t), -np.sin(t)))
        world.v[0] = 1.0
        world.step(n)
        errors.append(abs(float(world.q[0]) - np.sin(1.0)))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    print(f"\n{name}: {errors}, orders {orders}")
    assert errors[-1] < {1: 1e-2, 2: 1e-4, 4: 1e-5}[order]
    assert orders[-1] > order - 0.4


# ---- copies ----------------------------------------------------------------------------------------------------------


def arrays_of(thing: Any, name: str = "") -> list[tuple[str, np.ndarray]]:
    """All arrays within something, by where they are."""
    if isinstance(thing, np.ndarray):
        return [(name, thing)]
    if isinstance(thing, dict):
        return [found for key, part in thing.items() for found in arrays_of(part, f"{name}[{key}]")]
    if isinstance(thing, (list, tuple)):
        return [found for k, part in enumerate(thing) for found in arrays_of(part, f"{name}[{k}]")]
    if is_dataclass(thing):
        return [
            found for field in fields(thing) for found in arrays_of(getattr(thing, field.name), f"{name}.{field.name}")
        ]
    return []


@every_way
@pytest.mark.parametrize("bodies", [1, 2])
def test_what_a_world_gives_away_does_not_change_with_its_next_steps(name: str, bodies: int) -> None:
    """States, reports and what is asked of bodies are copies, of one body as of two."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(bodies):
        scene.add(poise.box(0.2, 0.2, 0.2), name=f"box {k}", position=(k, 0, 0.12))
    world = scene.build(WAYS[name][0], dt=0.01)
    world.v[:3] = 1.0, 0.5, 0.0
    world.step(3)
    body = world.body("box 0")
    given = arrays_of(
        {
            "state": world.state,
            "report": world.report(),
            "a": world.a,
            "gaps": world.joint_gaps,
            "drive_forces": world.drive_forces,
            "position": body.position,
            "rotation": body.rotation,
            "slots": world._read_slots(),
        }
    )
    before = [(where, array.copy()) for where, array in given]
    world.step(7)
    world.v[...] = 0.25
    changed = [w for (w, array), (_, was) in zip(given, before, strict=True) if array.tobytes() != was.tobytes()]
    assert not changed


@pytest.mark.parametrize("kind", [poise.Reduced, poise.Maximal])
@pytest.mark.parametrize("bodies", [1, 2])
def test_the_state_of_a_carrier_is_a_copy(kind: Any, bodies: int) -> None:
    """Stages of an integrator begin where the step began, though the state has moved on since."""
    scene = poise.Scene()
    for k in range(bodies):
        scene.add(poise.sphere(0.1), name=f"ball {k}", position=(k, 0, 1))
    stepper = scene.build(kind(level="acceleration"))._stepper
    assert isinstance(stepper, Accelerated)
    stepper.carrier.begin()
    q, v = stepper.carrier.state()
    was = q.copy(), v.copy()
    stepper.carrier.move(q, np.full(len(v), 0.1), np.full(len(v), 0.3))
    assert np.array_equal(q, was[0])
    assert np.array_equal(v, was[1])
