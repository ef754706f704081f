"""Loops with redundant rows, in any attitude: planar ones in space, overconstrained ones, joints that stand for others.

The reference is the same mechanism in the axes that it is written in, where redundant rows are exact zeros: coordinates
do not know of the attitude, and forces turn with it.
"""

from __future__ import annotations

import numpy as np
import pytest

import poise
from mechanisms import MECHANISMS, attitude, build
from poise.motion.rotations import quat_to_matrix

FORMS = {
    "reduced": lambda: poise.Reduced(tolerance=1e-9),
    "reduced, euler": lambda: poise.Reduced(level="acceleration", integrator="euler"),
    "reduced, midpoint": lambda: poise.Reduced(level="acceleration", integrator="midpoint"),
    "reduced, rk4": lambda: poise.Reduced(level="acceleration"),
    "maximal": lambda: poise.Maximal(tolerance=1e-9),
    "maximal, momentum": lambda: poise.Maximal(tolerance=1e-9, turning="momentum"),
    "maximal, midpoint": lambda: poise.Maximal(level="acceleration", integrator="midpoint"),
    "maximal, rk4": lambda: poise.Maximal(level="acceleration"),
}
ORDERS = {"midpoint": 2, "rk4": 4}
VELOCITY = ("reduced", "maximal", "maximal, momentum")


def force(world: poise.World) -> np.ndarray:
    """Of all loops on their second bodies; N."""
    return np.sum([loop.force for loop in world.report().loops], axis=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_motion_and_forces_turn_with_the_mechanism(name: str, form: str) -> None:
    """Of two attitudes. At acceleration level they differ by rounding, 1e-16 of 10 rad/s in each of 50 steps, which
    grows by e^(10 t) at most, and errors in places that are mended over (4 h)² in forces. At velocity level solvers
    leave 1e-9 of the speeds that they take away, and errors are mended as they come."""
    for seed in (len(name), 100 + len(form)):
        turn, dt = attitude(seed), 0.004
        straight, turned = build(name, FORMS[form](), dt), build(name, FORMS[form](), dt, turn)
        for _ in range(50):
            straight.step()
            turned.step()
            assert turned.report().level == ("velocity" if form in VELOCITY else "acceleration")
        near = 2e-6 if form in VELOCITY else 1e-11
        assert turned.q == pytest.approx(straight.q, abs=near)
        load = max(np.linalg.norm(force(straight)), 1.0)
        back = quat_to_matrix(turn).T @ force(turned)
        assert back == pytest.approx(force(straight), abs=load * near / dt)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["four-bar", "turntable", "governor", "slider-crank", "parallelogram"])
def test_a_ball_does_for_a_planar_hinge_and_both_share_the_load(name: str, form: str) -> None:
    """Other rows for the same constraint: the motion is the same, and so is the force of all of them."""
    dt, turn = 0.004, attitude(7)
    worlds = [build(name, FORMS[form](), dt, turn, kind) for kind in ("hinge", "ball", "twice")]
    for world in worlds:
        world.step(50)
    near = 2e-6 if form in VELOCITY else 1e-11
    for world in worlds[1:]:
        assert world.q == pytest.approx(worlds[0].q, abs=near)
        assert force(world) == pytest.approx(force(worlds[0]), abs=near / dt * max(np.linalg.norm(force(world)), 1.0))
    for loop in worlds[2].report().loops:
        assert np.linalg.norm(loop.force) < 1.01 * np.linalg.norm(force(worlds[0]))


@pytest.mark.parametrize("form", [form for form in FORMS if form.endswith(("midpoint", "rk4"))])
@pytest.mark.parametrize("name", ["four-bar", "turntable", "governor", "bricard"])
def test_energy_is_kept_at_the_order_of_the_integrator(name: str, form: str) -> None:
    """Half the step leaves a quarter or a sixteenth of the error, of one term more each; or what mending loops and
    joints takes, which is rounding over the step."""
    drifts = []
    for steps in (80, 160):
        world = build(name, FORMS[form](), 0.4 / steps, attitude(3))
        before, drift = world.report().energy.total, 0.0
        for _ in range(steps):
            world.step()
            drift = max(drift, abs(world.report().energy.total - before))
            assert world.report().level == "acceleration"
        drifts.append(drift)
    order = ORDERS[form.split(", ")[1]]
    assert drifts[1] < max(drifts[0] / 2 ** (order - 0.5), 1e-7)


@pytest.mark.parametrize("form", VELOCITY)
@pytest.mark.parametrize("name", ["four-bar", "turntable", "governor", "bricard"])
def test_the_velocity_level_goes_where_the_acceleration_level_goes(name: str, form: str) -> None:
    """To first order, at 0.4 s: half the step leaves half of the difference, and the loop's force is that of the
    motion."""
    turn, time = attitude(5), 0.4
    exact = build(name, FORMS["reduced, rk4"](), 0.002, turn)
    exact.step(round(time / 0.002))
    off = []
    for dt in (0.002, 0.001):
        world = build(name, FORMS[form](), dt, turn)
        world.step(round(time / dt))
        off.append(float(np.abs(world.q - exact.q).max()))
    assert off[1] < 0.65 * off[0]
    assert off[0] < 0.05
    assert force(world) == pytest.approx(force(exact), abs=0.1 * max(np.linalg.norm(force(exact)), 1.0))
