"""Lanes of worlds step as each world does alone."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.batch.world_checks import width_of
from poise.formulations.driver import Stepper
from poise.formulations.step_status import DIVERGED, DONE
from poise.kernel.memory import F64, Width
from poise.model.model import Model


def toys(friction: float = 0.8) -> Model:
    """Boxes, balls and a door with limits above a floor."""
    scene = poise.Scene()
    scene.add_ground(friction=friction)
    for k in range(4):
        shape = poise.box(0.2, 0.15, 0.1) if k % 2 else poise.sphere(0.1)
        scene.add(shape, name=f"toy {k}", position=(0.05 * k, 0.02 * k, 0.3 + 0.25 * k))
    hinge = {"axis": "y", "anchor": (0, 0, 0.5), "limits": (-0.5, 0.5), "friction": 0.3}
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), name="pendulum", position=(2, 0, 2), **hinge)
    return scene.compile()


def starts(model: Model, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """A state for each world: thrown differently, so that contacts differ from lane to lane."""
    rng = np.random.default_rng(3)
    q = np.repeat(model.q_rest[:, None], lanes, axis=1)
    q[[0, 1, 7, 8, 14, 15]] += rng.uniform(-0.1, 0.1, (6, lanes))
    return q, rng.normal(size=(model.nv, lanes))


@pytest.mark.parametrize(
    ("width", "friction", "exact", "steps"),
    [(width_of("f64"), 0.0, 1e-8, 120), (width_of("f64"), 0.8, 1e-8, 60), (width_of("f32"), 0.8, 2e-3, 60)],
    ids=str,
)
def test_lanes_step_as_each_world_alone(width: Width, friction: float, exact: float, steps: int) -> None:
    """On ice for long. With friction, boxes that come to rest on several corners may do so in several ways: impulses
    are not unique, and solved to 1e-15 they still differ.
    """
    model = toys(friction)
    q, v = starts(model, width.lanes)
    tolerance = 1e-10 if width.elem == "f64" else 1e-4  # where sweeps end differs otherwise
    together = Stepper(model, width, tolerance=tolerance, sweeps=300)
    together.space.s.q[...], together.space.s.v[...] = q, v
    for _ in range(steps):
        assert together.step(1 / 240) == DONE
    counts = together.collider.c.count.reshape(-1)
    assert counts.min() < counts.max()
    for lane in range(width.lanes):
        alone = Stepper(model, F64, split=False, tolerance=tolerance, sweeps=300)
        alone.space.s.q[...], alone.space.s.v[...] = q[:, lane], v[:, lane]
        for _ in range(steps):
            assert alone.step(1 / 240) == DONE
        assert together.space.s.q[:, lane] == pytest.approx(alone.space.s.q, abs=exact)


def test_a_lane_does_not_feel_its_neighbours() -> None:
    """The same world beside others has the same bits."""
    model = toys()
    q, v = starts(model, 8)
    results = []
    for others in (1.0, -1.5):
        world = Stepper(model, width_of("f64"))
        world.space.s.q[...], world.space.s.v[...] = q, v
        world.space.s.v[:, 1:] *= others
        for _ in range(100):
            assert world.step(1 / 240) == DONE
        results.append((world.space.s.q[:, 0].copy(), world.space.s.q[:, 1].copy()))
    assert np.array_equal(results[0][0], results[1][0])
    assert not np.array_equal(results[0][1], results[1][1])


def test_a_lane_that_diverges_is_told() -> None:
    model = toys()
    world = Stepper(model, width_of("f64"))
    world.space.x.tau[0, 3] = np.nan
    assert world.step(1 / 240) == DIVERGED
    assert np.isfinite(world.space.s.q).all()


def test_a_humanoid_does_not_feel_those_that_fall_beside_it() -> None:
    """Impacts make rows anew, in some worlds and not in others: the rest are as they would be without."""
    scene = poise.Scene()
    scene.add_ground()
    hero = scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    model = scene.compile()
    height = int(model.joint_q_start[list(model.joint_names).index(scene.body(hero.root.name).joint_names()[0])]) + 2
    results, looks = [], []
    for speed in (0.0, -12.0):
        world = Stepper(model, width_of("f64"))
        world.space.s.q[...] = model.q_rest[:, None]
        world.space.s.q[height] += 0.05
        world.space.s.v[6:] = np.random.default_rng(4).normal(size=(model.nv - 6, 8))
        world.space.s.v[2, 1:] = speed
        often = 0.0
        for _ in range(40):
            assert world.step(1 / 60) == DONE
            often = max(often, float(world.stats.wrong[0, 1:].max()))
        results.append(world.space.s.q[:, 0].copy())
        looks.append(often)
    assert max(looks) > 0
    assert np.array_equal(*results)
