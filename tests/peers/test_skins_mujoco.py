"""Skins bend as MuJoCo bends them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from poise.dynamics.state_queries import bodies
from poise.io.mjcf import load_mjcf

POINTS = 30


def numbers(values: np.ndarray) -> str:
    return " ".join(f"{value:.9g}" for value in np.ravel(values))


def chain(rng: np.random.Generator) -> str:
    """Four bodies, one on the other, and a skin of random points, bind poses and weights."""
    placed = "pos='0 0.1 0.4' quat='0.9 0.1 0.3 -0.2'"
    bodies = "".join(f"<body name='b{k}' {placed}><joint type='ball'/><geom size='0.1'/>" for k in range(4))
    every = " ".join(str(k) for k in range(POINTS))
    bones = ""
    for k in range(4):
        bind = f"bindpos='{numbers(rng.normal(size=3))}' bindquat='{numbers(rng.normal(size=4))}'"
        weights = numbers(rng.random(POINTS))
        bones += f"<bone body='b{k}' {bind} vertid='{every}' vertweight='{weights}'/>"
    points = numbers(rng.normal(size=(POINTS, 3)))
    skin = f"<skin name='s' vertex='{points}' face='{every}'>{bones}</skin>"
    return f"<mujoco><worldbody>{bodies}{'</body>' * 4}</worldbody><deformable>{skin}</deformable></mujoco>"


@pytest.mark.parametrize("seed", range(3))
def test_random_skins(seed: int) -> None:
    """MuJoCo's are float32: 6e-8 of numbers of size 10, summed over four bones."""
    rng = np.random.default_rng(seed)
    xml = chain(rng)
    theirs = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(theirs)
    quats = rng.normal(size=(4, 4))
    data.qpos[:] = (quats / np.linalg.norm(quats, axis=1, keepdims=True)).reshape(-1)
    mujoco.mj_forward(theirs, data)
    view = mujoco.MjvScene(theirs, maxgeom=100)
    view.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
    option = mujoco.MjvOption()
    mujoco.mjv_updateScene(theirs, data, option, None, mujoco.MjvCamera(), int(mujoco.mjtCatBit.mjCAT_ALL), view)
    wanted = np.array(view.skinvert).reshape(-1, 3)
    model = load_mjcf(xml).compile()
    place = bodies(model, data.qpos)
    assert np.abs(model.skins.deformed(0, place.position, place.rotation) - wanted).max() < 5e-6
