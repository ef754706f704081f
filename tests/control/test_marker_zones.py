"""Markers within their zones: nothing there, closed forms beyond, first joints first, a force from outside last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from poise.control import MarkerZone, SecondaryTarget
from poise.dynamics import bodies, jacobian, mass_matrix
from poise.model.scene import Body
from poise.sim.controllers import StateToAct

TIP = (0.4, 0.0, 0.0)


def lift(gravity: Any = (0, 0, -9.81), level: str = "velocity") -> poise.World:
    scene = poise.Scene(gravity=gravity)
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=2.0), axis="z", name="lift")
    return scene.build(poise.Reduced(level=level), dt=1 / 240)


def arm(ends: Any = (-3.0, 3.0), gravity: Any = (0, 0, 0)) -> poise.World:
    """Two links in the plane of x and z, 0.4 m and 1 kg each; turning by q lowers them."""
    scene = poise.Scene(gravity=gravity)
    for k, above in enumerate((None, "upper")):
        body = Body(("upper", "lower")[k], parent=above, position=(0.4 * k, 0, 0))
        limits = (-3.0, 3.0) if k == 0 else ends
        body.joints = [poise.Joint("hinge", name=("shoulder", "elbow")[k], axis=(0, 1, 0), limits=limits)]
        shape = poise.box(0.4, 0.05, 0.05, mass=1.0)
        shape.position = (0.2, 0.0, 0.0)
        body.shapes = [shape]
        scene.bodies.append(body)
    return scene.build(dt=1 / 240)


def asked(world: poise.World, zone: MarkerZone, q: Any, v: Any) -> Any:
    return zone.update(StateToAct(np.array(q, float), np.array(v, float), 0.0, {}, world.dt))


def bound(world: poise.World, *args: Any, **options: Any) -> MarkerZone:
    zone = MarkerZone(*args, **options)
    zone.bind(world.model)
    return zone


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_nothing_is_done_within_the_zone(level: str) -> None:
    kept, free = lift((0, 0, -1e-3), level), lift((0, 0, -1e-3), level)
    kept.add_controller(MarkerZone("lift", "lift", (0, 0, 0), within=0.05, stiffness=1e6))
    kept.step(240)
    free.step(240)
    assert np.array_equal(kept.q, free.q)


@pytest.mark.parametrize("horizon", [0.0, 0.02])
def test_it_sags_until_it_carries_the_weight(horizon: float) -> None:
    """At rest f = m g and φ⁺ = φ − h² g: k e⁺ = (m + c h) g, with e = φ − zone − onset/2 and e⁺ = e − h² g."""
    world = lift()
    options = {"within": 0.05, "onset": 0.01, "stiffness": 2000.0, "damping": 100.0}
    zone = MarkerZone("lift", "lift", (0, 0, 0), horizon=horizon, **options)
    world.add_controller(zone)
    world.step(1500)
    h = max(horizon, 1 / 240)
    sag = 0.05 + 0.005 + (2.0 + 100.0 * h) * 9.81 / 2000.0 + h * h * 9.81
    assert -world.q[0] == pytest.approx(sag, abs=1e-6)


def test_joints_do_to_the_marker_what_the_force_would_do() -> None:
    """Both joints: J M⁻¹ τ = J M⁻¹ Jᵀ f, in the plane that the arm can move in."""
    world = arm()
    q = [0.3, 0.9]
    zone = bound(world, "lower", ("shoulder", "elbow"), (0.3, 0, 0.2), point=TIP, stiffness=300.0)
    wanted = asked(world, zone, q, [0.0, 0.0])
    J = jacobian(world.model, np.array(q), "lower", TIP).J[3:]
    W = np.linalg.inv(mass_matrix(world.model, np.array(q)))
    assert zone.reading is not None
    assert zone.reading.ranks == 1
    assert np.linalg.norm(zone.reading.force) > 10.0
    assert J @ W @ wanted.tau == pytest.approx(J @ W @ J.T @ zone.reading.force, rel=1e-6, abs=1e-6)
    assert np.abs(zone.reading.missing).max() < 1e-3 * np.linalg.norm(zone.reading.force)


def test_others_help_where_the_first_cannot() -> None:
    """The elbow alone reaches for one direction; with the shoulder behind it, all of it is done."""
    world, q = arm(), [0.3, 0.9]
    goal = {"position": (0.3, 0, 0.2), "point": TIP, "stiffness": 300.0}
    alone = bound(world, "lower", "elbow", **goal)
    both = bound(world, "lower", "elbow", fallbacks="shoulder", **goal)
    first, second = asked(world, alone, q, [0.0, 0.0]), asked(world, both, q, [0.0, 0.0])
    assert alone.reading is not None
    assert both.reading is not None
    assert first.tau[0] == 0.0
    assert np.linalg.norm(alone.reading.missing) > 0.1 * np.linalg.norm(alone.reading.force)
    assert both.reading.ranks == 2
    assert second.tau[0] != 0.0
    assert np.linalg.norm(both.reading.missing) < 1e-3 * np.linalg.norm(both.reading.force)


def test_a_rank_keeps_to_its_torque() -> None:
    world, q = arm(), [0.3, 0.9]
    weak = SecondaryTarget("elbow", torque=0.5)
    zone = bound(world, "lower", weak, (0.3, 0, 0.2), point=TIP, fallbacks="shoulder", stiffness=300.0)
    wanted = asked(world, zone, q, [0.0, 0.0])
    assert abs(wanted.tau[1]) <= 0.5 * (1.0 + 1e-9)


def test_the_rest_comes_from_outside_as_far_as_it_may() -> None:
    """LIU's residual force, at the marker: its moment about the body's origin is told with it."""
    world, q = arm(), [0.3, 0.9]
    for most in (2.0, 1e9):
        zone = bound(world, "lower", "elbow", (0.3, 0, 0.2), point=TIP, stiffness=300.0, residual=most)
        wanted = asked(world, zone, q, [0.0, 0.0])
        assert zone.reading is not None
        forces = np.asarray(wanted.forces)[1]
        whole = np.linalg.norm(zone.reading.residual + zone.reading.missing)
        assert np.linalg.norm(forces[3:]) == pytest.approx(min(most, whole), rel=1e-9)
        lever = bodies(world.model, np.array(q)).rotation[1] @ np.array(TIP)
        assert forces[:3] == pytest.approx(np.cross(lever, forces[3:]), abs=1e-12)


@pytest.mark.parametrize("exponent", [2, 4, 6, 8])
def test_gains_of_any_size_are_stable(exponent: int) -> None:
    world = arm()
    zone = MarkerZone(
        "lower",
        ("shoulder", "elbow"),
        (0.4, 0, -0.3),
        point=TIP,
        stiffness=10.0**exponent,
        damping=10.0 ** (exponent - 1),
    )
    world.q[:] = (0.3, 0.9)
    world.add_controller(zone)
    world.step(720)
    assert zone.reading is not None
    assert zone.reading.distance < 0.05 + 0.02
    assert np.abs(world.v).max() < 0.5


def test_a_place_that_moves_takes_the_marker_along_within_the_zone() -> None:
    """At 0.1 m/s: once at the edge it has the place's speed, give or take what is left of the blow."""
    world = lift((0, 0, 0))
    zone = MarkerZone("lift", "lift", lambda t: (0, 0, 0.1 * t), within=0.05, stiffness=1e4, damping=500.0)
    world.add_controller(zone)
    world.step(96)
    assert not world.v.any()  # for 0.4 s the zone goes by
    world.step(624)
    assert abs(world.q[0] - 0.1 * world.time) < 0.05 + 0.01
    assert world.v[0] == pytest.approx(0.1, abs=0.02)


def test_states_go_on_bit_for_bit() -> None:
    world = arm(gravity=(0, 0, -9.81))
    world.q[:] = (0.3, 0.9)
    world.add_controller(MarkerZone("lower", ("shoulder", "elbow"), (0.4, 0, -0.3), point=TIP))
    world.step(10)
    kept = world.state
    world.step(20)
    end = world.q.copy()
    world.state = kept
    world.step(20)
    assert np.array_equal(world.q, end)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": -1.0}, "within is -1.0"),
        ({"onset": 0.0}, "onset is 0"),
        ({"stiffness": np.nan}, "stiffness is nan"),
        ({"limit_time": 0.0}, "limit_time is 0"),
        ({"point": (1, 2)}, "point"),
        ({"position": (1, 2)}, "position: must have the shape"),
        ({"position": lambda t: (np.inf, 0, 0)}, "position: must be finite"),
    ],
)
def test_bad_numbers_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MarkerZone("lower", "elbow", **({"position": (0, 0, 0)} | options))


def test_bodies_that_never_move_are_refused() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.slider(None, poise.box(0.1, 0.1, 0.1), axis="z", name="lift")
    with pytest.raises(ValueError, match="never moves"):
        scene.build().add_controller(MarkerZone("ground", "lift", (0, 0, 0)))
