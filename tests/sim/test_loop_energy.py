"""Energy of mechanisms with loops at velocity level, with neither gravity nor motors: it is to stay.

The row of a loop asks for the chord of the way on which the loop stays closed, J v = −φ/h − h γ/2: that is SHAKE. A row
that asks for J v = 0 with the Jacobian of the beginning of a step loses the share (h ω)² of the energy in every step.
"""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.model import Body, Inertia
from poise.motion.rotations import quat_exp, rotate

STEP = 1 / 240
FORMS = {
    "reduced": poise.Reduced(),
    "reduced by speed": poise.Reduced(stabilization="speed"),
    "maximal": poise.Maximal(),
}


def bar(name: str, length: float, mass: float = 1.0) -> Body:
    """A uniform bar along x from its origin, a tenth of its length thick."""
    along, across = mass * length**2 / 600, mass * length**2 / 12
    return Body(name, inertia=Inertia(mass, com=(0.5 * length, 0, 0), moments=(along, across, across)))


def loose_crank(speed: float, crank: float = 0.3, rod: float = 1.0, mass: float = 2.0, turn: tuple = (0, 0, 0)):
    """A slider-crank of free bodies, held by loops alone, in a turned plane; it sets out from its dead centre."""
    quat = quat_exp(np.array(turn, float))
    x, y, z = (rotate(quat, axis) for axis in np.eye(3))
    scene = poise.Scene(gravity=(0, 0, 0))
    places = {"crank": 0.0 * x, "rod": crank * x, "slider": (crank + rod) * x}
    scene.add(bar("crank", crank), joint="free", quat_wxyz=quat)
    scene.add(bar("rod", rod), joint="free", position=places["rod"], quat_wxyz=quat)
    slider = Body("slider", inertia=Inertia(mass, moments=(0.01, 0.01, 0.01)))
    scene.add(slider, joint="free", position=places["slider"], quat_wxyz=quat)
    scene.loop("hinge", None, "crank", axis=y, position=places["crank"])
    scene.loop("hinge", "crank", "rod", axis=y, position=places["rod"])
    scene.loop("hinge", "rod", "slider", axis=y, position=places["slider"])
    scene.loop("slider", None, "slider", axis=x, position=places["slider"])

    def start(world: poise.World) -> None:
        world.body("crank").place(angular_velocity=-speed * y)
        world.body("rod").place(angular_velocity=speed * crank / rod * y, velocity=speed * crank * z)

    return scene, start


def energies(scene, start, form, dt: float, time: float) -> np.ndarray:
    """Changes of energy, over what there was, at a hundred moments."""
    world = scene.build(form, dt=dt)
    start(world)
    before, seen = world.report().energy.total, []
    for _ in range(100):
        world.step(max(1, round(time / dt / 100)))
        seen.append(world.report().energy.total / before - 1.0)
    return np.array(seen)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("turn", [(0, 0, 0), (0.4, -1.1, 0.7)])
def test_loops_between_free_bodies_keep_energy(form: str, turn: tuple) -> None:
    """12 rad/s, 2 s: within 8 (h ω)² = 2 %, and at half the step less than half of what it was."""
    scene, start = loose_crank(12.0, turn=turn)
    swings = [float(np.abs(energies(scene, start, FORMS[form], dt, 2.0)).max()) for dt in (STEP, STEP / 2)]
    print(f"\nloops of free bodies, {form}: energy off by {swings[0]:.2%} (2 %), at half the step {swings[1]:.2%}")
    assert swings[0] < 0.02
    assert swings[1] < 0.5 * swings[0]
