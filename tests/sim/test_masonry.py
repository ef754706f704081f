"""Structures that rest on friction alone: what must stand stands, and what must fall falls.

A semicircular arch of voussoirs stands for t/R > 0.1075 (J. Heyman, "The safety of masonry arches", 1969), and above
that not even slowly does it flow: the tolerance leaves of each row a speed of 1e-4 g h, 4 µm/s at 1/240 s. Bounds
here are three times that, plus what gaps between blocks need to close.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from poise.sim.world import World

MU = 0.8
CREEP = 3.0 * 1e-4 * 9.81
"""Speed that may be left, over the step; m/s²."""


def arch(
    thickness: float, n: int, radius: float = 1.0, width: float = 0.2, density: float = 2500.0, gap: float = 0.0
) -> poise.Scene:
    """A semicircular arch of n blocks on the ground; sizes over its mean radius (m), gaps in rad."""
    scene = poise.Scene()
    scene.add_ground(friction=MU)
    for k in range(n):
        ends = np.pi * k / n + 0.5 * gap, np.pi * (k + 1) / n - 0.5 * gap
        radii = radius * (1.0 - 0.5 * thickness), radius * (1.0 + 0.5 * thickness)
        sides = -0.5 * width * radius, 0.5 * width * radius
        corners = np.array([(r * np.cos(a), y, r * np.sin(a)) for a in ends for r in radii for y in sides])
        block = poise.convex(corners - corners.mean(axis=0), density=density, material=poise.Material(friction=MU))
        scene.add(block, name=f"block{k}", position=tuple(corners.mean(axis=0)))
    return scene


def places(world: World) -> Any:
    """(bodies, 3) where all bodies but the ground are; m."""
    return np.array([world.body(name).position for name in world.model.body_names if name != "ground"])


def moved(world: World, seconds: float) -> float:
    """The farthest that a body goes; m."""
    start = places(world)
    world.step(round(seconds / world.dt))
    return float(np.linalg.norm(places(world) - start, axis=1).max())


@pytest.mark.parametrize(
    ("thickness", "n", "sizes"),
    [
        (0.12, 21, {}),
        (0.25, 21, {}),
        (0.3, 11, {"radius": 0.5, "width": 0.5}),
        (0.15, 15, {"radius": 0.1, "width": 0.3}),
        (0.2, 7, {"radius": 10.0, "density": 600.0}),
    ],
)
def test_an_arch_thicker_than_heymans_stands_still(thickness: float, n: int, sizes: dict[str, float]) -> None:
    assert moved(arch(thickness, n, **sizes).build(dt=1.0 / 240.0), 1.0) < CREEP / 240.0


@pytest.mark.parametrize("form", [poise.Reduced(), poise.Maximal()], ids=["reduced", "maximal"])
@pytest.mark.parametrize("dt", [1.0 / 60.0, 1.0 / 1000.0])
def test_an_arch_stands_in_every_formulation_at_any_step(form: Any, dt: float) -> None:
    assert moved(arch(0.2, 11).build(form, dt=dt), 0.5) < 0.5 * CREEP * dt


def test_an_arch_thinner_than_heymans_falls() -> None:
    assert moved(arch(0.10, 21).build(dt=1.0 / 240.0), 2.0) > 0.5


def test_an_arch_with_gaps_settles_and_then_stands_still() -> None:
    """Gaps of 0.2 mrad are closed by what the crown comes down, once."""
    world = arch(0.25, 21, gap=2e-4).build(dt=1.0 / 240.0)
    assert moved(world, 0.5) < 5e-3
    assert moved(world, 0.5) < 1e-4
