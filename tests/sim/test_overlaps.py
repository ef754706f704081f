"""Displacements mend what overlaps, and move nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.constraints.rows import Rows
from poise.solve.laws import UPRIGHT, Law


def pushed(overlap: float) -> np.ndarray:
    """Path of a ball that a law of 10 N pushes, beside a box that is so deep in the ground."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add_ground()
    scene.add(poise.sphere(0.1, mass=1.0), name="ball", position=(5, 0, 1))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name="box", position=(0, 0, 0.1 - overlap))
    world = scene.build(dt=0.01)

    def push(world: poise.World, rows: Rows) -> None:
        law = Law(((10.0, 0.0),), left=UPRIGHT, right=UPRIGHT)
        rows.add(id=1, b="ball", Jb=(0, 0, 0, 1, 0, 0), law=law)

    world.rows_hooks.append(push)
    path = []
    for _ in range(10):
        world.step()
        path.append(float(world.body("ball").position[0]))
    if overlap > 0:
        assert world.body("box").position[2] > 0.1 - overlap + 1e-3
    return np.array(path)


def test_laws_do_not_push_twice_where_something_overlaps() -> None:
    free = pushed(0.0)
    assert free[-1] == pytest.approx(5.0 + 10.0 * 0.01**2 * 55, rel=1e-9)
    assert pushed(0.02) == pytest.approx(free, rel=1e-12)
