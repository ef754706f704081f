"""Loops in turned planes beside MuJoCo: the same scene, written as MJCF, whose `connect` is a stiff spring."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from mechanisms import MECHANISMS, attitude, build, turned

mujoco = pytest.importorskip("mujoco")
STEP, STEPS = 0.004, 100


@pytest.mark.parametrize(("name", "near"), [("four-bar", 1e-5), ("turntable", 5e-4), ("slider-crank", 5e-5)])
def test_loops_move_as_those_of_mujoco(name: str, near: float, tmp_path: Path) -> None:
    """Both by RK4. MuJoCo's loops give way by what their time of 2 h allows: (h ω)² times a share of 1e-4 that its
    constraints are soft by, ω up to 15 rad/s on the turntable, and grows with the motion."""
    quat = attitude(41)
    make, speeds = MECHANISMS[name]
    path = tmp_path / "loops.xml"
    turned(make("ball"), quat).save(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.eq_solref[:], model.eq_solimp[:, :3] = (2 * STEP, 1), (0.9999, 0.9999, 0.001)
    data = mujoco.MjData(model)
    names = [model.joint(k).name for k in range(model.njnt)]
    for k, label in enumerate(names):
        data.qvel[k] = next((speed for start, speed in speeds.items() if label.startswith(start)), 0.0)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    for form in (poise.Reduced(level="acceleration"), poise.Maximal(level="acceleration")):
        world = build(name, form, STEP, quat, "ball")
        start = world.q.copy()
        world.step(STEPS)
        moved = np.array([(data.qpos - model.qpos0)[names.index(label)] for label in world.model.dof_names])
        assert world.q - start == pytest.approx(moved, abs=near)
