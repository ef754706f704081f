"""Robots of the MuJoCo Menagerie hold their home pose as in MuJoCo, where `../shared/data` is beside the checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pytest

import poise
from poise.dynamics import passive_forces

ROBOTS = Path(__file__).parents[3] / "shared" / "data" / "menagerie"
pytestmark = [
    pytest.mark.skipif(not ROBOTS.is_dir(), reason="the robots are not beside the checkout"),
    pytest.mark.filterwarnings("ignore::poise.io.LossWarning"),
]


@dataclass
class Robot:
    """How far a robot may be from MuJoCo's, with contacts as hard as MuJoCo takes them."""

    file: str
    joints: float
    """rad, m."""
    torque: float
    """N·m, N; of what motors do at joints."""
    height: float = 0.005
    """Of its free bodies; m."""
    hard: bool = True
    """Whether MuJoCo's contacts are made hard; its steps of 5 ms on a height field do not bear that."""
    but: str = ""
    """Start of the names of joints that do not count, as the warning says why."""


HELD = {
    "barkour": Robot("google_barkour_vb/scene.xml", 0.01, 0.3),
    "barkour, pairs of its own": Robot("google_barkour_vb/scene_mjx.xml", 0.1, 4.0, height=0.025, hard=False),
    "barkour on a height field": Robot("google_barkour_vb/scene_hfield_mjx.xml", 0.1, 5.0, height=0.025, hard=False),
    "yam": Robot("i2rt_yam/scene.xml", 0.002, 0.05),
    "gen3": Robot("kinova_gen3/scene.xml", 0.01, 0.5),
    "tiago": Robot("pal_tiago/scene_position.xml", 0.02, 2.0),
    "2f85": Robot("robotiq_2f85/scene.xml", 0.01, 0.1, but="object"),
    "wxai": Robot("trossen_wxai/scene.xml", 0.03, 7.0),
}
"""Barkour's feet sink by 10 to 20 mm in contacts of the file's softness, and creep outward until motors hold the legs;
with hard ones they do neither. Hulls of wxai overlap by 4.7 mm: how far soft contacts push them out is another pose."""


def stand(robot: Robot, seconds: float) -> tuple[poise.World, mujoco.MjModel, mujoco.MjData]:
    """Both at the end of a time, from the first keyframe where there is one."""
    file = ROBOTS / robot.file
    compiled = mujoco.MjModel.from_xml_path(str(file))
    if robot.hard:
        option = compiled.opt
        option.cone, option.impratio, option.noslip_iterations, option.iterations = 1, 50, 30, 100
        compiled.geom_solref[:], compiled.geom_solimp[:, :2] = (2 * option.timestep, 1), (0.99, 0.999)
    data = mujoco.MjData(compiled)
    world = poise.load(file).build()
    if compiled.nkey:
        mujoco.mj_resetDataKeyframe(compiled, data, 0)
        world.reset(0)
    steps = round(seconds / compiled.opt.timestep)
    for k in range(steps):
        world.step()
        mujoco.mj_step(compiled, data)
        if k % 20 == 0:
            check_ranges(world, compiled)
    return world, compiled, data


def at_joints(world: poise.World) -> np.ndarray:
    """(nv,) what motors do at joints."""
    forces = np.zeros(world.model.nv)
    for motor in world.model.motors:
        for dof, gear in zip(motor.dofs, motor.gear, strict=True):
            forces[dof] += gear * world.motor(motor.name).force
    return forces


def lifted(world: poise.World, compiled: mujoco.MjModel) -> np.ndarray:
    """(nv,) gravity compensation that counts as a force of motors."""
    counted = compiled.jnt_actgravcomp[compiled.dof_jntid].astype(bool)
    still = np.zeros(world.model.nv)
    with_springs = passive_forces(world.model, world.q, still)
    springs = compiled.jnt_stiffness[compiled.dof_jntid] != 0.0
    return np.where(counted & ~springs, with_springs, 0.0)


def check_ranges(world: poise.World, compiled: mujoco.MjModel) -> None:
    """No joint is driven beyond its actuatorfrcrange."""
    forces = at_joints(world) + lifted(world, compiled)
    for joint in np.flatnonzero(compiled.jnt_actfrclimited & (compiled.jnt_stiffness == 0.0)):
        low, high = compiled.jnt_actfrcrange[joint]
        slack = 0.02 * (high - low)  # forces are of the last step, coordinates of now
        assert low - slack <= forces[compiled.jnt_dofadr[joint]] <= high + slack, compiled.joint(joint).name


def check(robot: Robot, seconds: float) -> None:
    world, compiled, data = stand(robot, seconds)
    kinds = compiled.jnt_type
    for joint in range(compiled.njnt):
        name, at = compiled.joint(joint).name, int(compiled.jnt_qposadr[joint])
        if robot.but and name.startswith(robot.but):
            continue
        if kinds[joint] >= 2:
            assert world.q[at] == pytest.approx(data.qpos[at], abs=robot.joints), name
        elif kinds[joint] == 0 and not robot.but:
            assert world.q[at + 2] == pytest.approx(data.qpos[at + 2], abs=robot.height), name
    forces = at_joints(world) + lifted(world, compiled)
    one = np.isin(compiled.dof_jntid, np.flatnonzero((kinds >= 2) & (compiled.jnt_stiffness == 0.0)))
    assert forces[one] == pytest.approx(data.qfrc_actuator[one], abs=robot.torque)


@pytest.mark.parametrize("name", ["yam", "barkour on a height field"])
def test_begins_to_hold_its_pose(name: str) -> None:
    check(HELD[name], 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("robot", HELD.values(), ids=HELD)
def test_holds_its_pose(robot: Robot) -> None:
    check(robot, 5.0)


def test_thrusters_are_warned_of() -> None:
    said = poise.load(ROBOTS / "skydio_x2" / "scene.xml").unsupported[0]
    assert said.startswith("4 actuators (thrust1, thrust2, thrust3, thrust4) on sites")
