"""How separate bodies tell the coordinates of joints: directly, or by fits along any axes, which find the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from poise.dynamics.maximal_bodies.fit_coordinates import BY_AXES, BY_BALL, BY_PLACE, BY_PLAIN_AXES, BY_TURNS
from poise.formulations.maximal_coordinates.maximal_driver import ways_to_fit

SKEW = (0.8, 0.3, -0.4, 0.33)
"""A rotation that is along no axis; not of unit length."""


def scene_of_all() -> poise.Scene:
    """A free body that carries joints of each way, turned and off their bodies' origins; nothing collides."""
    scene, part = poise.Scene(), poise.capsule(radius=0.04, length=0.2, mask=0)
    scene.add(poise.box(0.3, 0.2, 0.4, mask=0), name="trunk", position=(0, 0, 2), quat_wxyz=SKEW)
    places = {"position": (0.2, 0.1, 0.3), "anchor": (0.02, -0.03, 0.1), "quat_wxyz": SKEW}
    scene.ball("trunk", part, name="ball", **places)
    scene.hinge("ball", part, name="hinge", axis=(1, 2, 2), **places)
    scene.universal("trunk", part, name="universal", axis="x", axis2="y", **places)
    scene.universal("hinge", part, name="skew", axis=(1, 2, 2), axis2=(2, 1, -2), **places)
    scene.slider("universal", part, name="slider", axis="z", position=(0, 0, -0.2))
    scene.ball(None, part, name="pendulum", anchor=(0.0, 0.0, 0.1), position=(2, 0, 3), quat_wxyz=SKEW)
    return scene


def thrown(ways: bool) -> Any:
    """The scene in motion, by its ways or by fits alone, for a quarter of a second."""
    world = scene_of_all().build(poise.Maximal(), dt=1 / 240)
    if not ways:
        world._stepper.bodies.fit[...] = BY_AXES
    world.v[:] = 2.0 * np.random.default_rng(3).normal(size=world.model.nv)
    world.step(60)
    return world


def test_links_go_their_ways() -> None:
    model = scene_of_all().compile()
    ways = dict(zip([model.body_names[b] for b in model.link_body.tolist()], ways_to_fit(model), strict=True))
    plain = {"trunk": BY_PLACE, "ball": BY_BALL, "hinge": BY_TURNS, "universal": BY_TURNS, "slider": BY_PLAIN_AXES}
    assert ways == plain | {"skew": BY_AXES, "pendulum": BY_BALL}


def test_what_needs_no_fits_is_what_fits_find() -> None:
    """Coordinates are found to 1e-9 rad or m either way (`FITTED`), of which 60 steps may gather as much each, and what
    is thrown about has them grow by a factor that is small in a quarter of a second; velocities are those over a step.
    """
    direct, fitted = thrown(True), thrown(False)
    assert direct.q == pytest.approx(fitted.q, abs=1e-7)
    assert direct.v == pytest.approx(fitted.v, abs=240 * 1e-7)
    assert direct.joint_gaps.max() < 1e-6
    assert np.abs(direct.q - scene_of_all().build().q).max() > 0.1
