"""Mocap bodies beside MuJoCo: an arm that is welded to one, and a box on one that lifts it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from poise.io.mjcf import load_mjcf

DT = 0.002
#: time constant of MuJoCo's constraints (solref): what a soft weld lags behind, and what soft contacts sink, come of it
SOFT = 0.02

ARM = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <worldbody>
    <body name="upper" pos="0 0 1"><joint axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0" conaffinity="0"/>
      <body name="lower" pos="0.4 0 0"><joint axis="0 1 0" ref="0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" contype="0" conaffinity="0"/>
        <body name="hand" pos="0.3 0 0"><joint axis="0 1 0" damping="0.1"/>
          <geom size="0.04" contype="0" conaffinity="0"/></body>
      </body>
    </body>
    <body name="target" mocap="true" pos="0.7 0 1"><geom size="0.02" contype="0" conaffinity="0"/></body>
  </worldbody>
  <equality><weld body1="target" body2="hand"/></equality>
  <keyframe><key name="bent" qpos="0.5 -0.9 0.4" mpos="0.625965 0 0.928068" mquat="1 0 0 0"/></keyframe>
</mujoco>
"""
PLATE = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="plate" mocap="true" pos="0 0 0.5"><geom type="box" size="0.5 0.5 0.05"/></body>
    <body name="load" pos="0 0 0.65"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  </worldbody>
</mujoco>
"""


def peers(text: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


def test_an_arm_that_is_dragged_along_a_path() -> None:
    """The path starts in the bent pose and goes in a circle; both hands are where the mocap body is, but for MuJoCo's
    soft weld, which lags; at the end it stops, and both arms are in the same pose.
    """
    model, data = peers(ARM)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    world = load_mjcf(ARM).build(dt=DT)
    world.reset("bent")
    start, radius, duration = data.mocap_pos[0].copy(), 0.08, 2.0
    assert world.body("target").position == pytest.approx(start, abs=1e-9)
    speed, worst = 2 * np.pi * radius / duration, 0.0
    for k in range(1, 1501):
        angle = 2 * np.pi * min(k * DT / duration, 0.75)
        place = start + radius * np.array((np.cos(angle) - 1.0, 0.0, np.sin(angle)))
        data.mocap_pos[0] = place
        mujoco.mj_step(model, data)
        world.body("target").place(place)
        world.step()
        worst = max(worst, float(np.linalg.norm(world.body("hand").position - data.body("hand").xpos)))
    assert worst < 2.0 * SOFT * speed
    assert world.body("hand").position == pytest.approx(place, abs=1e-6)
    assert world.q[:3] == pytest.approx(data.qpos, abs=1e-4)


def test_a_plate_lifts_a_box() -> None:
    """Placed in each step, it carries the box up: MuJoCo's soft contacts sink by g times the square of their time, and
    by as much as the plate moves within it.
    """
    model, data = peers(PLATE)
    world, speed = load_mjcf(PLATE).build(dt=DT), 0.2
    near = 9.81 * SOFT**2 + 2.0 * speed * SOFT
    for k in range(1, 751):
        place = (0.0, 0.0, 0.5 + speed * min(k * DT, 1.0))
        data.mocap_pos[0] = place
        mujoco.mj_step(model, data)
        world.body("plate").place(place)
        world.step()
        assert world.body("load").position == pytest.approx(data.body("load").xpos, abs=near)
    assert world.body("load").position[2] == pytest.approx(0.85, abs=1e-3)
