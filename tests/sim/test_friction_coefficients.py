"""Friction of any coefficient, from none to infinite: weights are carried, and what must not slip does not.

A residual that is divided by the coefficient would call a body in free fall solved. The references are closed forms of
rigid bodies; tolerances are those of the solver (1e-4 of what gravity does in a step) and of overlaps (0.1 mm).
"""

from __future__ import annotations

from math import inf, radians
from typing import Any

import numpy as np
import pytest

import poise
from poise.constraints.combining import combine
from poise.model.surface_rules import Combine
from poise.sim.world import World

G, DT = 9.81, 1.0 / 240.0
ROUGH = [1e2, 1e3, 1e4, 1e6, 1e9, 1e15, inf]
FORMS = {
    "reduced": poise.Reduced(),
    "maximal": poise.Maximal(),
    "sweeps": poise.Reduced(newton=False),
    "pgs": poise.Maximal(solver="pgs", stabilization="speed"),
    "dantzig": poise.Maximal(solver="dantzig", stabilization="speed"),
    "acceleration": poise.Reduced(level="acceleration"),
}


def on_ground(shape: Any, height: float, mu: float, form: Any = None, tilt: float = 0.0, ground: float = inf) -> World:
    """A shape over the ground, which is tilted by an angle (rad), so that it is downhill along x."""
    scene = poise.Scene(gravity=(G * np.sin(tilt), 0.0, -G * np.cos(tilt)))
    scene.add_ground(friction=mu if ground == inf else ground)
    shape.material = poise.Material(friction=mu)
    scene.add(shape, name="body", position=(0, 0, height))
    return scene.build(form, dt=DT)


def carried(world: World) -> float:
    """The normal forces of the last step over the weight."""
    return sum(c.normal_force for c in world.report().contacts) / (world.model.body_mass.sum() * G)


@pytest.mark.parametrize("form", FORMS)
def test_the_ground_carries_a_box_that_slides_and_stops_at_any_coefficient(form: str) -> None:
    for mu in [0.0, 1e-6, 0.5, *ROUGH]:
        world = on_ground(poise.box(0.2, 0.2, 0.2), 0.11, mu, FORMS[form])
        world.v[0] = 0.1
        world.step(60)
        assert carried(world) == pytest.approx(1.0, abs=1e-3), mu
        assert abs(world.q[2] - 0.1) < 1e-4, mu
        assert world.report().residual <= 1e-4, mu
        slides = 0.1 if mu == 0.0 else 0.1 - 0.2 * G * mu  # of the time on the ground; it stops unless μ is tiny
        assert world.v[0] == pytest.approx(max(slides, 0.0), abs=1e-5), mu


@pytest.mark.parametrize("mu", ROUGH)
def test_a_plate_on_a_slope_stands_until_it_topples(mu: float) -> None:
    """1 m long and 0.1 m high, it topples where the slope is more than 10: at 84.3°."""
    for angle in (45.0, 80.0, 84.0):
        world = on_ground(poise.box(1.0, 1.0, 0.1), 0.05, mu, tilt=radians(angle))
        world.step(120)
        assert np.abs(world.q[:3] - (0, 0, 0.05)).max() < 2e-5, angle


def test_a_plate_topples_about_its_edge_and_never_slips() -> None:
    """Downhill by 87°, from the rest: the edge stays where it is, and turns by ½ α t²."""
    world = on_ground(poise.box(1.0, 1.0, 0.1), 0.05, inf, tilt=radians(87.0))
    world.step(30)
    turned = 2.0 * np.arcsin(world.q[5])
    edge = world.body("body").position + world.body("body").rotation @ (0.5, 0.0, -0.05)
    alpha = G * (0.05 * np.sin(radians(87.0)) - 0.5 * np.cos(radians(87.0))) / ((1.0 + 0.01) / 3.0)
    assert turned == pytest.approx(0.5 * alpha * world.time**2, rel=0.1)
    assert np.abs(edge - (0.5, 0.0, 0.0)).max() < 2e-4


@pytest.mark.parametrize("mu", ROUGH)
def test_a_plate_that_is_pulled_by_five_weights_stays(mu: float) -> None:
    world = on_ground(poise.box(1.0, 1.0, 0.1), 0.05, mu)
    world.forces[world.model.body_names.index("body"), 3:] = (5.0 * G * world.model.body_mass.sum(), 0.0, 0.0)
    world.step(120)
    assert np.abs(world.q[:2]).max() < 2e-5
    assert carried(world) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("mu", ROUGH)
def test_a_ball_that_slides_rolls_at_five_sevenths(mu: float) -> None:
    world = on_ground(poise.sphere(0.1), 0.1, mu)
    world.v[0] = 1.0
    world.step(60)
    assert world.v[0] == pytest.approx(5.0 / 7.0, abs=1e-4)
    assert world.q[2] == pytest.approx(0.1, abs=1e-4)


def test_very_rough_is_as_rough_as_infinite() -> None:
    ends = []
    for mu in (1e6, inf):
        world = on_ground(poise.box(0.3, 0.2, 0.1), 0.4, mu, tilt=0.5)
        world.v[3:6] = (2.0, 3.0, -1.0)
        world.step(120)
        ends.append(world.q.copy())
    assert np.array_equal(*ends)


def test_two_materials_have_the_geometric_mean_and_none_wins_over_infinite() -> None:
    mean = Combine.GEOMETRIC
    assert combine(mean, 0.5, 2.0) == 1.0
    assert combine(mean, 0.0, inf) == combine(mean, inf, 0.0) == 0.0
    assert combine(mean, 0.5, inf) == combine(mean, 1e300, 1e300) == combine(mean, inf, inf) >= 1e6
    ice, rubber = (on_ground(poise.box(0.2, 0.2, 0.2), 0.1, inf, ground=ground) for ground in (0.0, 0.01))
    for world in (ice, rubber):
        world.v[0] = 0.5
        world.step(30)
    assert ice.v[0] == pytest.approx(0.5, abs=1e-6)
    assert abs(rubber.v[0]) < 1e-5


@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_batches_have_any_coefficient(precision: Any) -> None:
    scene = poise.Scene()
    scene.add_ground(friction=1.0)
    scene.add(poise.box(0.2, 0.2, 0.2), name="body", position=(0, 0, 0.11))
    batch = scene.build_batch(6, dt=DT, vary=("friction",), precision=precision)
    batch.vary(friction=np.array([0.0, 0.5, 1e4, 1e9, 1e15, inf])[:, None])
    batch.v[:, 0] = 0.1
    batch.step(60)
    assert np.abs(batch.q[:, 2] - 0.1).max() < 1e-4
    assert np.abs(batch.v[:, 0] - (0.1, 0, 0, 0, 0, 0)).max() < 1e-4


def test_infinite_rolling_and_torsional_friction_hold_a_ball() -> None:
    scene = poise.Scene(gravity=(G * np.sin(0.5), 0.0, -G * np.cos(0.5)))
    scene.add_ground(friction=inf)
    rough = poise.Material(friction=inf, rolling_friction=inf, torsional_friction=inf)
    scene.add(poise.sphere(0.1, material=rough), name="body", position=(0, 0, 0.1))
    world = scene.build(dt=DT)
    world.v[5] = 3.0
    world.step(120)
    assert np.abs(world.q[:2]).max() < 1e-4
    assert np.abs(world.v).max() < 1e-3
