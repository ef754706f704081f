"""MuJoCo's humanoid stands on Poise's drives: feet of capsules, joints of three hinges, a floor of the file."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import poise
from benchmark_scripts import helper
from poise.collision.detector import Contact, contacts
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.sim import ForcePlate

trees = helper("_trees")


def on_the_floor(model: Model, q: np.ndarray, slack: float) -> tuple[str, list[Contact]]:
    """The floor's body, and what is near it."""
    plane = int(np.flatnonzero(model.solids.kind == Solid.PLANE)[0])
    return model.body_names[int(model.solids.body[plane])], [c for c in contacts(model, q, slack) if c.a == plane]


def test_it_stands_and_the_floor_bears_its_weight() -> None:
    model = trees.load_model(trees.find_humanoid())
    q = model.q_rest.copy()
    floor, near = on_the_floor(model, q, 1.0)
    q[2] -= min(contact.gap for contact in near)
    world = poise.World(model, state=poise.State(q, np.zeros(model.nv)), dt=1 / 240)
    gains = np.full(model.nv, 1000.0)
    gains[model.v_slice("root")] = 0.0
    world.drive = poise.dynamics.Drive(gains, 0.1 * gains, q)
    world.step(480)
    reading, weight = ForcePlate(floor).read(world), float(model.body_mass.sum() * 9.81)
    off = np.abs(reading.force - (0, 0, weight)).max() / weight
    print(f"\nMuJoCo's humanoid stands: floor's force {off:.1e} of the weight off (1e-3), ", end="")
    print(f"speeds {np.abs(world.v).max():.1e} (1e-2)")
    assert reading.force == pytest.approx([0, 0, weight], abs=1e-3 * weight)
    _, feet = on_the_floor(model, world.q, 2e-3)
    touching = {model.body_names[int(model.solids.body[contact.b])] for contact in feet}
    assert touching == {name for name in model.body_names if "foot" in name}
    faces = ConvexHull(np.array([c.point[:2] for c in feet])).equations
    assert (faces[:, :2] @ reading.centre[:2] + faces[:, 2] <= 0.0).all()
    assert float(np.abs(world.v).max()) < 1e-2
