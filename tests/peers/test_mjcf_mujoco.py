"""The MJCF importer beside MuJoCo: same counts, masses, order and poses, on own models and on every file at hand."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest

from poise.io.mjcf import load_mjcf
from poise.model.compile import compile_scene
from poise.model.errors import SceneError
from scene_kinematics import rest_q, rotation, widths, world_poses

#: parts of models that cannot stand alone: MuJoCo refuses them too
FRAGMENTS = ("schema.xml",)

KITCHEN = """
<mujoco model="kitchen sink">
  <compiler angle="degree" autolimits="true"/>
  <option timestep="0.004" gravity="0 1 -9"/>
  <default>
    <geom friction="0.9 0.01 0.002"/>
    <default class="stiff"><joint stiffness="3" damping="0.5" armature="0.02"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="table" pos="3 0 0.5" euler="0 0 30"><geom type="box" size="0.5 0.4 0.5"/>
      <body name="drawer" pos="0 0 0.1"><joint name="pull" type="slide" axis="1 1 0" range="0 0.4" ref="0.1"/>
        <geom type="box" size="0.1 0.1 0.1"/></body></body>
    <body name="pelvis" pos="0 0 1" euler="10 20 30">
      <freejoint name="root"/>
      <inertial pos="0.01 0.02 0.03" mass="7" fullinertia="0.3 0.4 0.5 0.02 -0.03 0.04"/>
      <geom size="0.1"/>
      <frame pos="0 0.1 0" euler="0 45 0">
        <body name="thigh" pos="0 0 -0.1">
          <joint name="hip_x" axis="1 0 0" pos="0 0 0.05" class="stiff" range="-30 20" ref="10" springref="15"/>
          <joint name="hip_z" axis="0 0.5 1" pos="0.01 0 0.05"/>
          <joint name="hip_slide" type="slide" axis="0 1 1"/>
          <geom type="capsule" fromto="0 0 0 0.1 0 -0.4" size="0.05"/>
          <body name="shin" pos="0 0 -0.4" quat="0.9 0.1 0.2 0.3"><joint name="knee" type="ball" pos="0 0 0.03"/>
            <geom type="ellipsoid" size="0.05 0.06 0.2"/><body><geom type="cylinder" size="0.03 0.1" pos="0 0 1"/>
            </body></body>
        </body>
      </frame>
    </body>
    <body name="hand" mocap="true" pos="0 2 1" quat="0 1 0 0"><geom size="0.05" contype="0" conaffinity="0"/></body>
    <body><joint axis="0 1 0"/><joint axis="1 0 0"/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


CLOTH = """
<mujoco>
  <worldbody>
    <flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" radius="0.01" dim="2" mass="1"/>
    <replicate count="3" offset="0.5 0 0">
      <body name="peg" pos="0 0 1"><joint name="swing" axis="0 1 0"/><geom type="box" size="0.1 0.1 0.1"/></body>
    </replicate>
  </worldbody>
</mujoco>
"""

ALIGNED = """
<mujoco>
  <compiler fusestatic="true" balanceinertia="true" angle="radian" eulerseq="zyx"/>
  <worldbody>
    <body name="tool" pos="0 0 1" euler="0.1 0.2 0.3">
      <freejoint align="true"/>
      <geom type="capsule" fromto="0 0 0 0.3 0.1 0" size="0.02"/>
      <body name="grip" pos="0.3 0.1 0"><geom type="box" size="0.05 0.02 0.02" axisangle="0 1 0 0.4"/></body>
    </body>
    <body name="lever" pos="1 0 0" xyaxes="0 1 0 -1 0 0"><joint name="j" type="hinge" ref="0.5" axis="1 1 0"/>
      <joint name="b" type="ball" pos="0.1 0 0"/><geom size="0.1" pos="0.2 0 0"/></body>
  </worldbody>
</mujoco>
"""


def model_files() -> list[Path]:
    """Every MJCF file that other packages hold, and a folder beside the checkout where there is one."""
    roots = [Path(spec.origin).parent for name in ("dm_control", "gymnasium") if (spec := find_spec(name))]
    roots += [Path(mujoco.__file__).parent, Path(__file__).parents[3] / "shared" / "data" / "mjcf"]
    files = [file for root in roots for file in sorted(root.rglob("*.xml")) if file.name not in FRAGMENTS]
    return [file for file in files if b"<mujoco" in file.read_bytes()]


def names_of_file(file: Path) -> str:
    return "/".join(file.parts[-3:])


def check_against(scene, model) -> None:
    """Counts, masses, names and poses of a scene beside MuJoCo's compiled model at random coordinates."""
    nq, nv = widths(scene)
    assert (nq, nv) == (model.nq + 7 * model.nmocap, model.nv + 6 * model.nmocap)
    assert sum(body.inertia.mass for body in scene.bodies) == pytest.approx(model.body_mass.sum(), rel=1e-12)
    weightless = model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    assert scene.gravity == ((0, 0, 0) if weightless else tuple(model.opt.gravity))
    assert scene.dt == model.opt.timestep
    bodies = [body for body in scene.bodies if body.name != "world_geoms"]
    assert len(bodies) == model.nbody - 1

    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    data.qpos = model.qpos0 + rng.uniform(-0.5, 0.5, model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_kinematics(model, data)
    q = np.concatenate([data.qpos, rest_q(scene)[model.nq :]])
    poses = world_poses(scene, q)
    for i in range(1, model.nbody):
        name = model.body(i).name or f"body_{i}"
        R, p = poses[name]
        assert np.allclose(p, data.xpos[i], atol=1e-9), name
        assert np.allclose(R, data.xmat[i].reshape(3, 3), atol=1e-9), name


def check_compiled(scene, model) -> None:
    """The arrays of the compiled scene beside MuJoCo's. Coordinates of mocap bodies follow MuJoCo's own."""
    compiled = compile_scene(scene)
    nq, nv = model.nq, model.nv
    assert (compiled.nq, compiled.nv) == (nq + 7 * model.nmocap, nv + 6 * model.nmocap)
    assert compiled.q_rest[:nq] == pytest.approx(model.qpos0, abs=1e-12)
    assert compiled.q_spring[:nq] == pytest.approx(model.qpos_spring, abs=1e-12)
    assert np.array_equal(compiled.dof_damping[:nv], model.dof_damping)
    assert np.array_equal(compiled.dof_armature[:nv], model.dof_armature)
    assert np.array_equal(compiled.dof_parent[:nv], model.dof_parentid)
    assert not compiled.dof_prescribed[:nv].any()
    assert compiled.dof_prescribed[nv:].all()
    joints = [i for i in range(model.njnt) if model.jnt_type[i] >= 2]
    limits = np.where(model.jnt_limited[joints, None], model.jnt_range[joints], (-np.inf, np.inf))
    assert np.array_equal(compiled.dof_limits[model.jnt_dofadr[joints]], limits)
    compensated = (model.body_gravcomp * model.body_mass)[model.body_dofnum.cumsum() > 0]
    assert compiled.compensated_mass.sum() == pytest.approx(compensated.sum(), rel=1e-12)
    names = compiled.joint_names[: model.njnt]
    assert all(model.joint(i).name in ("", name) for i, name in enumerate(names))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    """MuJoCo logs warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("xml", [KITCHEN, CLOTH, ALIGNED], ids=["kitchen", "cloth", "aligned"])
def test_own_models(xml: str) -> None:
    scene, model = load_mjcf(xml), mujoco.MjModel.from_xml_string(xml)
    check_against(scene, model)
    check_compiled(scene, model)


def test_elasticity_is_listed() -> None:
    assert any(sentence.startswith("1 flex (cloth)") for sentence in load_mjcf(CLOTH).unsupported)


def test_inertia_in_world_axes() -> None:
    scene, model = load_mjcf(KITCHEN), mujoco.MjModel.from_xml_string(KITCHEN)
    inertia = next(body for body in scene.bodies if body.name == "pelvis").inertia
    R = rotation(inertia.quat_wxyz)
    full = R @ np.diag(inertia.moments) @ R.T
    assert np.allclose(full, [[0.3, 0.02, -0.03], [0.02, 0.4, 0.04], [-0.03, 0.04, 0.5]], atol=1e-9)
    assert inertia.mass == 7.0
    assert inertia.com == (0.01, 0.02, 0.03)
    assert model.body("pelvis").mass == 7.0


@pytest.mark.parametrize("file", model_files(), ids=names_of_file)
def test_every_file_at_hand(file: Path) -> None:
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError:
        with pytest.raises(SceneError, match=file.name):
            load_mjcf(file)
        return
    scene = load_mjcf(file)
    check_against(scene, model)
    check_compiled(scene, model)
    assert scene.source == str(file)
    for count, word in (
        (model.nsensor, "sensor"),
        (model.ntendon, "tendon"),
        (model.nsite, "site"),
        (model.ncam, "camera"),
        (model.nlight, "light"),
        (model.opt.density or model.opt.viscosity or model.opt.wind.any(), "fluid"),
        (model.nnumeric, "custom numeric"),
    ):
        said = any(re.match(rf"(\d+ )?{word}s?\b", sentence) for sentence in scene.unsupported)
        assert said == bool(count), word
    shapes = sum(len(body.shapes) for body in scene.bodies)
    assert shapes == model.ngeom - (model.geom_type == mujoco.mjtGeom.mjGEOM_SDF).sum()
    assert len(scene.contact_pairs) == model.npair
    assert len(scene.actuators) == model.nu
    assert len(scene.equalities) == model.neq
    assert len(scene.keyframes) == model.nkey
    assert len(scene.skins) == model.nskin
