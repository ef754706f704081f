"""A stack of ten boxes for a minute, beside MuJoCo's, whose contacts are soft as they come."""

from __future__ import annotations

import numpy as np
import pytest

import poise

mujoco = pytest.importorskip("mujoco")
BOXES, SIDE, DT = 10, 0.2, 1 / 240


def heights_here(seconds: float) -> np.ndarray:
    """(n, boxes) heights of the boxes in Poise after each second."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(BOXES):
        scene.add(poise.box(SIDE, SIDE, SIDE), name=f"box {k}", position=(0, 0, SIDE * (k + 0.5)))
    world = scene.build(dt=DT)
    seen = []
    for _ in range(round(seconds)):
        world.step(round(1 / DT))
        seen.append(world.q.reshape(BOXES, 7)[:, 2].copy())
    return np.array(seen)


def heights_there(seconds: float) -> np.ndarray:
    """The same in MuJoCo."""
    half = SIDE / 2
    box = f'<freejoint/><geom type="box" size="{half} {half} {half}" density="1000"/>'
    bodies = "".join(f'<body pos="0 0 {SIDE * (k + 0.5)}">{box}</body>' for k in range(BOXES))
    floor = '<geom type="plane" size="5 5 0.1"/>'
    xml = f'<mujoco><option timestep="{DT}"/><worldbody>{floor}{bodies}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    seen = []
    for _ in range(round(seconds)):
        mujoco.mj_step(model, data, round(1 / DT))
        seen.append(data.qpos.reshape(BOXES, 7)[:, 2].copy())
    return np.array(seen)


EXACT = SIDE * (np.arange(BOXES) + 0.5)


@pytest.mark.slow
def test_a_stack_stands_for_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """It rests within half a millimetre of its exact height and drifts by less than a tenth; MuJoCo's sinks."""
    here, there = heights_here(60), heights_there(60)
    sunk = float(np.abs(there[-1] - EXACT).max())
    off, drift = float(np.abs(here[-1] - EXACT).max()), float(np.abs(here[-1] - here[0]).max())
    with capsys.disabled():
        print(f"\nafter 60 s: {1e3 * off:.6f} mm off, drift {1e3 * drift:.6f} mm; MuJoCo {1e3 * sunk:.2f} mm off")
    assert off < 5e-4
    assert drift < 1e-4
    assert sunk > 1e-3
