"""Joints as rows among the others: the same motion as where they are eliminated, whatever solves them."""

from __future__ import annotations

from typing import Any

import pytest

import poise
from poise import Maximal
from poise.motion.path import ConstantPath

SOLVERS = ("pgs", "dantzig")


def world_of(scene: poise.Scene, solver: str, dt: float = 1 / 240, **options: Any) -> poise.World:
    exact = {"tolerance": 1e-9, "sweeps": 5000} | options
    return scene.build(Maximal(solver=solver, stabilization="speed", **exact), dt=dt)  # type: ignore[arg-type]


def arm() -> poise.Scene:
    """A hinge with a damper, a spring and an armature, a ball with a motor, a slide that ends."""
    scene = poise.Scene()
    rod = poise.box(0.1, 0.1, 0.6, mass=2.0)
    joint = {"damping": 0.3, "stiffness": 5.0, "armature": 0.05}
    scene.hinge(None, rod, axis="y", anchor=(0, 0, 0.3), name="upper", position=(0, 0, 2), **joint)
    scene.ball("upper", rod, anchor=(0, 0, 0.3), name="lower", position=(0, 0, -0.6))
    cart = poise.box(0.1, 0.1, 0.1, mass=0.5)
    scene.slider("lower", cart, axis="z", name="cart", position=(0.1, 0, 0), limits=(-0.1, 0.05))
    scene.motor("lower", stiffness=30.0, damping=2.0, limit=8.0, name="elbow")
    return scene


@pytest.mark.parametrize("solver", SOLVERS)
def test_springs_motors_and_limits_are_those_of_eliminated_joints(solver: str) -> None:
    """But for what gaps of joints, of second order in the step, make of them."""
    worlds = [world_of(arm(), name, 1 / 500) for name in ("direct", solver)]
    hit = False
    for world in worlds:
        world.q[0], world.v[0] = 1.0, 2.0
        for _ in range(150):
            world.step()
            hit = hit or bool(world.report().limits)
    direct, loose = worlds
    assert hit
    assert loose.q == pytest.approx(direct.q, abs=5e-4)
    assert loose.v == pytest.approx(direct.v, abs=2e-2)
    assert loose.motor("elbow").force == pytest.approx(direct.motor("elbow").force, abs=0.1)
    assert loose.report().residual < 1e-8


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_loop_closes_and_its_force_is_told(solver: str) -> None:
    scene = poise.Scene()
    rod = poise.box(0.05, 0.05, 0.5, mass=1.0)
    scene.hinge(None, rod, axis="y", anchor=(0, 0, 0.25), name="left", position=(0, 0, 1))
    scene.hinge(None, rod, axis="y", anchor=(0, 0, 0.25), name="right", position=(0.4, 0, 1))
    bar = poise.box(0.4, 0.05, 0.05, mass=1.0)
    scene.hinge("left", bar, axis="y", anchor=(-0.2, 0, 0), name="bar", position=(0.2, 0, -0.25))
    scene.loop("ball", "bar", "right", "tie", position=(0.4, 0, 0.75))
    worlds = [world_of(scene, name) for name in ("direct", solver)]
    for world in worlds:
        world.v[:3] = (1.0, 1.0, -1.0)
        world.step(120)
    direct, loose = worlds
    assert loose.q == pytest.approx(direct.q, abs=1e-3)
    assert loose.loop("tie").force == pytest.approx(direct.loop("tie").force, abs=0.05 * 9.81)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_person_falls_and_comes_to_rest(solver: str) -> None:
    scene = poise.Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.characters.ragdoll(), name="r", position=(0, 0, 0.3))
    world = world_of(scene, solver, tolerance=1e-4, sweeps=500)
    world.v[3:6] = (0.5, 1.0, 0.2)
    world.step(480)
    report = world.report()
    assert report.energy.kinetic < 5.0
    assert world.joint_gaps[:, 0].max() < 2e-3
    assert len(report.contacts) > 3
    assert max(contact.depth for contact in report.contacts) < 5e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_ball_bounces(solver: str) -> None:
    scene = poise.Scene()
    scene.add_ground(restitution=0.5)
    bouncy = poise.Material(restitution=0.5)
    scene.add(poise.sphere(0.1, mass=1.0, material=bouncy), name="ball", position=(0, 0, 0.6))
    worlds = [world_of(scene, name, 1 / 500) for name in ("direct", solver)]
    apex = []
    for world in worlds:
        heights = []
        for _ in range(320):
            world.step()
            heights.append(float(world.q[2]))
        apex.append(max(heights[180:]))
    assert 0.15 < apex[0] < 0.4
    assert apex[1] == pytest.approx(apex[0], abs=1e-3)


def test_few_sweeps_leave_joints_open_and_are_told() -> None:
    """LIU's statement: what sweeps leave undone shows."""
    scene, parent = poise.Scene(), None
    for k in range(30):
        ball = poise.sphere(0.05, mass=30.0 if k == 29 else 0.1)
        place = {"position": (0, 0, -0.1) if k else (0, 0, 4), "anchor": (0, 0, 0.1 if k else 0.05)}
        parent = scene.ball(parent, ball, name=f"link {k}", **place)  # type: ignore[arg-type]
    few, exact = (world_of(scene, *how) for how in (("pgs", 1 / 240), ("dantzig", 1 / 240)))
    few = world_of(scene, "pgs", sweeps=20)
    few.step(60)
    exact.step(60)
    assert few.report().residual > 1e-3
    assert exact.report().residual < 1e-9
    assert few.joint_gaps[:, 0].max() > 100 * exact.joint_gaps[:, 0].max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_state_comes_back_bit_for_bit(solver: str) -> None:
    world = world_of(arm(), solver)
    world.v[0] = 1.0
    world.step(5)
    saved = world.state.copy()
    world.step(5)
    q = world.q.copy()
    world.state = saved
    world.step(5)
    assert (world.q == q).all()


def test_what_rows_have_no_words_for_is_refused() -> None:
    led = poise.Scene()
    led.add(poise.box(1, 1, 0.1), name="lift", kinematic=ConstantPath((0, 0, 1)))
    with pytest.raises(ValueError, match=r'is kinematic: that takes solver="direct"'):
        world_of(led, "pgs")
    rolls = poise.Scene()
    rolls.add(poise.sphere(0.1, material=poise.Material(rolling_friction=0.01)), name="ball")
    with pytest.raises(ValueError, match="rolling or torsional friction"):
        world_of(rolls, "dantzig")
    for options, message in (
        ({"solver": "magic"}, "solver is 'magic'; there are direct, pgs, dantzig"),
        ({"solver": "pgs"}, 'takes level="velocity" and stabilization="speed"'),
        ({"solver": "pgs", "stabilization": "speed", "turning": "momentum"}, 'takes turning="implicit"'),
    ):
        with pytest.raises(ValueError, match=message):
            Maximal(**options)  # type: ignore[arg-type]
