"""Smooth motion beside MuJoCo: both levels come to its RK4 trajectory at the order of their integrators.

MuJoCo's steps are so short that its own error, of the fourth order, is far below all that is compared. Errors are those
of positions of bodies; they fall by 2ᵖ where steps are halved, p the order.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest

import poise
from peers.test_dynamics_mujoco import file_of, quiet
from poise.io.mjcf import load_mjcf

CHAIN = """<mujoco><option timestep="0.001"/><worldbody>
<body name="one" pos="0 0 2"><joint type="hinge" axis="0 1 0" damping="0.01"/>
 <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.5"/>
 <body name="two" pos="0.4 0 0"><joint type="ball"/>
  <geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.02" mass="0.4"/>
  <body name="three" pos="0.3 0.15 0"><joint type="hinge" axis="1 0 1" stiffness="0.5"/>
   <geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.02" mass="0.3"/>
   <body name="four" pos="0.3 0 0.15"><joint type="ball"/>
    <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" mass="0.2"/></body></body></body></body>
</worldbody></mujoco>"""
FINE = 8000
DURATION = {"humanoid": 0.1, "chain": 0.4}
STEPS = {"humanoid": (80, 160), "chain": (320, 640)}
CASES = [
    ("velocity", None, 1),
    ("acceleration", "euler", 1),
    ("acceleration", "midpoint", 2),
    ("acceleration", "rk4", 4),
]


def file_for(name: str, folder: Path) -> Path:
    if name == "humanoid":
        return file_of("humanoid")
    (folder / "chain.xml").write_text(CHAIN)
    return folder / "chain.xml"


@cache
def case(name: str, folder: Path) -> tuple[poise.Scene, np.ndarray, np.ndarray, np.ndarray]:
    """A scene, where it begins (q, v), and where MuJoCo's bodies are in the end."""
    file = file_for(name, folder)
    mj = mujoco.MjModel.from_xml_path(str(file))
    quiet(mj)
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data, rng = mujoco.MjData(mj), np.random.default_rng(3)
    q, v = mj.qpos0.copy(), rng.normal(size=mj.nv)
    if name == "humanoid":
        q[2] = 10.0
        v[:6], v[6:] = v[:6] * 2.0, v[6:] * 0.5
        low, high = mj.jnt_range[1:].T
        q[7:] = 0.5 * (low + high)
    mj.opt.timestep = DURATION[name] / FINE
    data.qpos, data.qvel = q, v
    for _ in range(FINE):
        mujoco.mj_step(mj, data)
    mujoco.mj_kinematics(mj, data)
    numbers = {mj.body(i).name: i for i in range(mj.nbody)}
    scene = load_mjcf(file)
    names = scene.compile().body_names
    return scene, q, v, np.array([data.xpos[numbers.get(body, 0)] for body in names])


def error_of(name: str, folder: Path, formulation: poise.Reduced, steps: int) -> float:
    scene, q, v, truth = case(name, folder)
    world = scene.build(formulation, dt=DURATION[name] / steps)
    world.q[:], world.v[:] = q, v
    for _ in range(steps):
        world.step()
        assert world.report().contacts == []
        assert all(limit.force == 0.0 for limit in world.report().limits)
    places = poise.dynamics.bodies(world.model, world.q).position
    return float(np.abs(places - truth).max())


@pytest.mark.parametrize(("level", "integrator", "order"), CASES)
@pytest.mark.parametrize("name", DURATION)
def test_motion_converges_to_mujocos(
    name: str, level: str, integrator: str | None, order: int, tmp_path_factory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    options = {} if integrator is None else {"integrator": integrator}
    formulation = poise.Reduced(level=level, **options)
    coarse, fine = (error_of(name, folder, formulation, steps) for steps in STEPS[name])
    found = float(np.log2(coarse / fine))
    print(f"\n{name}, {level}, {integrator or 'euler'}: {fine:.1e} m from MuJoCo, order {found:.3f} ({order} ± 0.25)")
    assert found == pytest.approx(order, abs=0.25)
