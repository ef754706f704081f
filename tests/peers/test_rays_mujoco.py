"""Rays meet what MuJoCo's rays meet, as far away, with the same normals."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import poise
from poise.collision.ray_casting.rays import cast

XML = """
<mujoco>
  <asset>
    <mesh name="stone" vertex="0.3 0 0  -0.3 0.1 0  0 0.4 0.1  0 -0.4 -0.1  0.1 0 0.35  -0.1 0 -0.3  0.2 0.2 0.2"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="ball" type="sphere" size="0.3" pos="1 0 0.5"/>
    <geom name="rod" type="capsule" size="0.1 0.4" pos="-1 0 0.6" euler="40 20 10"/>
    <geom name="crate" type="box" size="0.2 0.3 0.25" pos="0 1 0.5" euler="10 50 30"/>
    <geom name="can" type="cylinder" size="0.2 0.3" pos="0 -1 0.5" euler="60 10 0"/>
    <geom name="egg" type="ellipsoid" size="0.2 0.35 0.15" pos="1 1 0.6" euler="0 30 60"/>
    <geom name="rock" type="mesh" mesh="stone" pos="-1 -1 0.7" euler="20 0 70"/>
  </worldbody>
</mujoco>
"""
NAMES = ("floor", "ball", "rod", "crate", "can", "egg", "rock")
#: some thirty roundings of coordinates of a few metres; a grazing ray has less (see below)
ROUNDING = 1e-12


@pytest.fixture(scope="module")
def both():
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = poise.Scene()
    for name in NAMES:
        geom = model.geom(name)
        x, y, z = (float(s) for s in geom.size)
        mesh = model.mesh_vert[: model.mesh_vertnum[0]].astype(float)
        shape = {
            "floor": lambda: poise.plane(),
            "ball": lambda x=x: poise.sphere(x),
            "rod": lambda x=x, y=y: poise.capsule(x, 2 * y),
            "crate": lambda x=x, y=y, z=z: poise.box(2 * x, 2 * y, 2 * z),
            "can": lambda x=x, y=y: poise.cylinder(x, 2 * y),
            "egg": lambda x=x, y=y, z=z: poise.ellipsoid(2 * x, 2 * y, 2 * z),
            "rock": lambda mesh=mesh: poise.convex([tuple(p) for p in mesh.tolist()]),
        }[name]()
        place = data.geom(name).xpos
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.geom(name).xmat)
        scene.add(shape, name=name, position=tuple(place), quat_wxyz=tuple(quat), fixed=True)
    return model, data, scene.compile()


def peer_rays(model, data, o, d):
    """Distance, name and normal of MuJoCo's answer to each ray; directions are units."""
    out = []
    for origin, way in zip(o, d, strict=True):
        geom, normal = np.zeros(1, np.int32), np.zeros(3)
        distance = mujoco.mj_ray(model, data, origin, way, None, True, -1, geom, normal)
        out.append((distance, model.geom(int(geom[0])).name if geom[0] >= 0 else None, normal))
    return out


@pytest.mark.parametrize("spread", [0.3, 3.0], ids=["from among them", "from outside"])
def test_same_hits(both, spread) -> None:
    model, data, ours = both
    rng = np.random.default_rng(0)
    o = np.abs(rng.normal(size=(1500, 3))) * (spread, spread, 1.0) + (-spread / 2, -spread / 2, 0.01)
    aim = rng.uniform((-1.2, -1.2, -0.7), (1.2, 1.2, 1.7), (1500, 3))
    d = aim - o
    d /= np.linalg.norm(d, axis=1)[:, None]
    hits = cast(ours, ours.q_rest, o, d)
    met, same = 0, set()
    for k, (distance, name, normal) in enumerate(peer_rays(model, data, o, d)):
        found = NAMES[hits.shape[k]] if hits.hit[k] else None
        if name is None and found == "floor" and d[k, 2] > 0:
            continue  # MuJoCo does not see planes from below
        assert found == name, (o[k], d[k])
        if name is None:
            continue
        facing = abs(float(hits.normal[k] @ d[k]))
        assert hits.distance[k] == pytest.approx(distance, rel=ROUNDING, abs=ROUNDING / max(facing, 1e-6))
        if name != "rock":  # its vertices are floats there
            np.testing.assert_allclose(hits.normal[k], normal * np.sign(normal @ hits.normal[k]), atol=1e-9)
        met += 1
        same.add(name)
    assert met > 800
    assert same == set(NAMES)


def test_height_field() -> None:
    heights = np.random.default_rng(1).random((6, 8))
    heights[0, 0], heights[-1, -1] = 0.0, 1.0  # MuJoCo scales them to this range
    text = " ".join(map(str, heights.reshape(-1)))
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco><asset><hfield name="land" nrow="6" ncol="8" size="2 1.5 1 0.1" elevation="{text}"/></asset>
    <worldbody><geom type="hfield" hfield="land"/></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    stored = model.hfield_data.reshape(6, 8).astype(float)
    scene = poise.Scene()
    scene.add(poise.height_field(stored, 4.0, 3.0), name="land", fixed=True)
    ours = scene.compile()
    rng = np.random.default_rng(2)
    o = rng.uniform(-1, 1, (800, 3)) * (1.9, 1.4, 0.2) + (0, 0, 1.6)
    d = rng.normal(size=(800, 3))
    d[:, 2] = -np.abs(d[:, 2]) - 0.5
    d /= np.linalg.norm(d, axis=1)[:, None]
    hits = cast(ours, ours.q_rest, o, d)
    met = 0
    for k, (distance, _, _) in enumerate(peer_rays(model, data, o, d)):
        if hits.hit[k]:
            assert hits.distance[k] == pytest.approx(distance, rel=1e-9)
            met += 1
        else:  # the walls of MuJoCo's field, which Poise's does not have, are at its rim
            point = o[k] + d[k] * distance
            assert distance < 0 or max(abs(point[0]) - 2.0, abs(point[1]) - 1.5) > -1e-9
    assert met > 400
