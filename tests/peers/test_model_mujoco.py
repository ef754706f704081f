"""Compiled models against MuJoCo's, each scene built by hand on both sides."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from model_kinematics import body_poses, random_q
from poise.model.compile import compile_scene
from poise.model.joints import Primitive
from poise.model.massprops import shape_mass_properties, unpack_inertia
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.model.shapes import box, capsule, convex, cylinder, ellipsoid, sphere

ARM_XML = """
<mujoco><compiler angle="radian" autolimits="true"/><worldbody>
  <body name="base" pos="0.1 0.2 0.3" quat="1 0.2 0.3 0.4">
    <joint name="yaw" type="hinge" axis="0 0 1" pos="0.1 0 0" ref="0.3" damping="0.5" armature="0.02"
           stiffness="3" springref="0.4"/>
    <joint name="lift" type="slide" axis="1 1 0" ref="-0.2" springref="-0.2" range="-1 2"/>
    <geom type="box" size="0.2 0.1 0.3" pos="0.1 0 0.2" quat="1 0 1 0"/>
    <geom type="sphere" size="0.15" pos="0 0.3 0" density="500"/>
    <body name="plate" pos="0 0 0.5" quat="0.5 0.5 0.5 0.5">
      <geom type="ellipsoid" size="0.1 0.2 0.3"/>
      <body name="wrist" pos="0.3 0 0">
        <joint name="wrist" type="ball" pos="0 0.1 0"/>
        <geom type="capsule" size="0.05 0.2" pos="0.1 0.1 0.1"/>
        <body name="tip" pos="0 0 0.4"><geom type="cylinder" size="0.04 0.1" mass="0.3"/></body>
      </body>
    </body>
    <body name="side" pos="0 -0.4 0">
      <joint name="spin" type="hinge" axis="1 2 3" frictionloss="0.7"/>
      <inertial pos="0.01 0.02 0.03" mass="1.5" fullinertia="0.03 0.04 0.05 0.002 -0.003 0.004"/>
    </body>
  </body>
  <body name="drone" pos="0 0 2" quat="0 1 0 0">
    <freejoint name="drone"/>
    <geom type="sphere" size="0.1"/>
    <body name="rotor" pos="0.2 0 0"><joint name="rotor" axis="0 0 -1"/><geom type="box" size="0.1 0.01 0.01"/></body>
  </body>
</worldbody></mujoco>
"""


def arm_scene() -> Scene:
    yaw = Joint("hinge", "yaw", anchor=(0.1, 0, 0), rest=0.3, damping=0.5, armature=0.02, stiffness=3.0, spring=0.4)
    lift = Joint("slider", "lift", axis=(1, 1, 0), rest=-0.2, limits=(-1, 2))
    base = Body(
        "base",
        position=(0.1, 0.2, 0.3),
        quat_wxyz=(1, 0.2, 0.3, 0.4),
        joints=[yaw, lift],
        shapes=[
            box(0.4, 0.2, 0.6, position=(0.1, 0, 0.2), quat_wxyz=(1, 0, 1, 0)),
            sphere(0.15, position=(0, 0.3, 0), density=500.0),
        ],
    )
    tensor = Inertia(1.5, (0.01, 0.02, 0.03), (0.03, 0.04, 0.05), products=(0.002, -0.003, 0.004))
    return Scene(
        bodies=[
            base,
            Body(
                "plate",
                "base",
                position=(0, 0, 0.5),
                quat_wxyz=(0.5, 0.5, 0.5, 0.5),
                shapes=[ellipsoid(0.2, 0.4, 0.6)],
            ),
            Body(
                "wrist",
                "plate",
                position=(0.3, 0, 0),
                joints=[Joint("ball", anchor=(0, 0.1, 0))],
                shapes=[capsule(0.05, 0.4, position=(0.1, 0.1, 0.1))],
            ),
            Body("tip", "wrist", position=(0, 0, 0.4), shapes=[cylinder(0.04, 0.2, mass=0.3)]),
            Body(
                "side",
                "base",
                position=(0, -0.4, 0),
                joints=[Joint("hinge", "spin", axis=(1, 2, 3), friction=0.7)],
                inertia=tensor,
            ),
            Body("drone", position=(0, 0, 2), quat_wxyz=(0, 1, 0, 0), joints=[Joint("free")], shapes=[sphere(0.1)]),
            Body(
                "rotor",
                "drone",
                position=(0.2, 0, 0),
                joints=[Joint("hinge", axis=(0, 0, -1))],
                shapes=[box(0.2, 0.02, 0.02)],
            ),
        ]
    )


@pytest.fixture(scope="module")
def peers():
    return compile_scene(arm_scene()), mujoco.MjModel.from_xml_string(ARM_XML)


def names(m, kind, count) -> tuple[str, ...]:
    return tuple(mujoco.mj_id2name(m, kind, k) for k in range(count))


def test_names_order_and_sizes(peers):
    model, m = peers
    assert model.body_names == names(m, mujoco.mjtObj.mjOBJ_BODY, m.nbody)[1:]
    assert model.joint_names == names(m, mujoco.mjtObj.mjOBJ_JOINT, m.njnt)
    assert (model.nq, model.nv) == (m.nq, m.nv)
    assert (model.body_parent == m.body_parentid[1:] - 1).all()
    assert (model.joint_q_start[:-1] == m.jnt_qposadr).all()
    assert (model.joint_v_start[:-1] == m.jnt_dofadr).all()
    assert (model.joint_body == m.jnt_bodyid - 1).all()
    assert (model.dof_parent == m.dof_parentid).all()
    assert (model.dof_joint == m.dof_jntid).all()
    # MuJoCo welds nothing together, but knows which body carries which
    assert (model.link_body[model.body_link] == m.body_weldid[1:] - 1).all()


def test_masses_and_inertias(peers):
    model, m = peers
    assert model.body_mass == pytest.approx(m.body_mass[1:], rel=1e-12)
    np.testing.assert_allclose(model.body_com, m.body_ipos[1:], atol=1e-12)
    for b in range(model.n_bodies):
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, m.body_iquat[b + 1])
        r = matrix.reshape(3, 3)
        expected = r @ np.diag(m.body_inertia[b + 1]) @ r.T
        found = unpack_inertia(model.body_inertia[b])
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.trace(expected), err_msg=model.body_names[b])


def test_coordinates_and_degrees_of_freedom(peers):
    model, m = peers
    np.testing.assert_allclose(model.q_rest, m.qpos0, atol=1e-15)
    np.testing.assert_allclose(model.q_spring, m.qpos_spring, atol=1e-15)
    assert (model.dof_damping == m.dof_damping).all()
    assert (model.dof_armature == m.dof_armature).all()
    assert (model.joint_friction == m.dof_frictionloss[model.joint_v_start[:-1]]).all()
    lift = model.dof_index("lift")
    assert model.dof_limits[lift].tolist() == m.jnt_range[1].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_poses_at_any_coordinates(peers, seed):
    model, m = peers
    data = mujoco.MjData(m)
    data.qpos[:] = random_q(model, np.random.default_rng(seed)) if seed else model.q_rest
    mujoco.mj_kinematics(m, data)
    poses = body_poses(model, data.qpos)
    np.testing.assert_allclose(poses[:, :3, 3], data.xpos[1:], atol=1e-12)
    np.testing.assert_allclose(poses[:, :3, :3], data.xmat[1:].reshape(-1, 3, 3), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_composite_inertia_of_the_whole(peers, seed):
    """Mass and centre of mass of each subtree, from links alone."""
    model, m = peers
    data = mujoco.MjData(m)
    data.qpos[:] = random_q(model, np.random.default_rng(seed))
    mujoco.mj_forward(m, data)
    poses = body_poses(model, data.qpos)[model.link_body]
    coms = poses[:, :3, 3] + np.einsum("nij,nj->ni", poses[:, :3, :3], model.link_com)
    for root in (0, model.body_index("drone")):
        inside = model.link_root == model.link_root[model.body_link[root]]
        mass = model.link_mass[inside]
        assert mass.sum() == pytest.approx(m.body_subtreemass[root + 1], rel=1e-12)
        np.testing.assert_allclose(mass @ coms[inside] / mass.sum(), data.subtree_com[root + 1], atol=1e-12)


SHAPES = [
    (sphere(0.3), '<geom type="sphere" size="0.3"/>'),
    (box(0.2, 0.4, 0.6), '<geom type="box" size="0.1 0.2 0.3"/>'),
    (capsule(0.1, 0.5), '<geom type="capsule" size="0.1 0.25"/>'),
    (cylinder(0.1, 0.5, density=321.0), '<geom type="cylinder" size="0.1 0.25" density="321"/>'),
    (ellipsoid(0.2, 0.4, 0.6, mass=2.5), '<geom type="ellipsoid" size="0.1 0.2 0.3" mass="2.5"/>'),
]


@pytest.mark.parametrize(("shape", "geom"), SHAPES, ids=[type(shape).__name__ for shape, _ in SHAPES])
def test_each_shape(shape, geom):
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>")
    found = shape_mass_properties(shape)
    assert found.mass == pytest.approx(m.body_mass[1], rel=1e-12)
    assert sorted(np.diag(found.inertia)) == pytest.approx(sorted(m.body_inertia[1]), rel=1e-12)


def test_convex_mesh():
    points = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32).astype(float)
    text = " ".join(f"{x:.9g}" for x in points.ravel())
    xml = f"""<mujoco><asset><mesh name="rock" vertex="{text}" inertia="convex"/></asset><worldbody><body><freejoint/>
      <geom type="mesh" mesh="rock"/></body></worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    found = shape_mass_properties(convex(points))
    assert found.mass == pytest.approx(m.body_mass[1], rel=1e-6)  # MuJoCo keeps meshes in single precision
    assert sorted(np.linalg.eigvalsh(found.inertia)) == pytest.approx(sorted(m.body_inertia[1]), rel=1e-6)


def test_primitives_are_mujocos_joints(peers):
    model, m = peers
    order = {0: None, 1: Primitive.BALL, 2: Primitive.SLIDE, 3: Primitive.TURN}
    single = [k for k in range(m.njnt) if m.jnt_type[k] != 0]
    kinds = [int(order[int(m.jnt_type[k])]) for k in single]
    starts = np.isin(model.primitive_v_start, m.jnt_dofadr[single])
    assert model.primitive_kind[starts].tolist() == kinds
    scalar = [k for k in single if m.jnt_type[k] != 1]
    rows = np.isin(model.primitive_v_start, m.jnt_dofadr[scalar])
    np.testing.assert_allclose(model.primitive_axis[rows], m.jnt_axis[scalar], atol=1e-15)
    np.testing.assert_allclose(model.primitive_anchor[starts], m.jnt_pos[single], atol=1e-15)
