"""The URDF reader beside Pinocchio: same counts, masses, structure, poses and centres of mass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from poise.io.urdf import load_urdf
from poise.model.compile import compile_scene
from poise.model.joints import JOINTS
from scene_kinematics import joints_of, rotation, widths, world_poses
from urdf_models import urdf_files

INERTIAL = (
    "<inertial><origin xyz='0.1 {x} 0.03' rpy='0.4 {x} 0.2'/><mass value='{mass}'/>"
    "<inertia ixx='0.3' iyy='0.4' izz='0.5' ixy='0.02' ixz='-0.03' iyz='0.04'/></inertial>"
)
JOINT = (
    "<joint name='{name}' type='{kind}'><origin xyz='0.1 0.2 {x}' rpy='0.3 {x} -0.5'/><parent link='{parent}'/>"
    "<child link='{child}'/><axis xyz='{axis}'/><limit lower='-1' upper='2' effort='10' velocity='3'/></joint>"
)


def arm() -> str:
    """A tree with every kind of joint that both read the same way."""
    joints = [
        ("shoulder", "revolute", "base", "upper", "0 0.6 0.8"),
        ("elbow", "continuous", "upper", "lower", "0 0 1"),
        ("glue", "fixed", "lower", "shell", "1 0 0"),
        ("extend", "prismatic", "shell", "tip", "1 0 0"),
        ("slip", "planar", "base", "puck", "0 0 1"),
        ("fly", "floating", "upper", "bird", "1 0 0"),
    ]
    names = ["base", "upper", "lower", "shell", "tip", "puck", "bird"]
    links = [f"<link name='{n}'>{INERTIAL.format(x=0.1 * i, mass=1 + i)}</link>" for i, n in enumerate(names)]
    parts = [
        JOINT.format(name=name, kind=kind, parent=parent, child=child, axis=axis, x=0.1 * i)
        for i, (name, kind, parent, child, axis) in enumerate(joints)
    ]
    return "<robot name='arm'>" + "".join(links + parts) + "</robot>"


def joint_above(scene, name: str | None) -> str:
    """The joint that a body moves with, "universe" if it does not move."""
    owner = {body.name: body for body in scene.bodies}
    while name is not None and not owner[name].joints:
        name = owner[name].parent
    return owner[name].joints[0].name if name is not None else "universe"


def moving(scene) -> list:
    """Bodies that move: Pinocchio's sums leave out those that stand still."""
    return [body for body in scene.bodies if joint_above(scene, body.name) != "universe"]


def random_coordinates(scene, model: pin.Model) -> tuple[np.ndarray, np.ndarray]:
    """The same random configuration in Poise's and in Pinocchio's coordinates, matched by the names of joints."""
    rng = np.random.default_rng(3)
    ours, theirs = [], pin.neutral(model)
    for body in scene.bodies:
        for kind, joint in joints_of(body):
            at = model.joints[model.getJointId(joint.name)]
            values = rng.uniform(-1.0, 1.0, JOINTS[kind].nq)
            given = values
            if kind == "free":
                values[3:] /= np.linalg.norm(values[3:])
                given = np.array([*values[:3], *values[4:], values[3]])
                # a free joint's coordinates are the pose in the parent; Pinocchio's start from the joint's origin
                rest = pin.SE3(rotation(body.quat_wxyz), np.array(body.position))
                x, y, z, *quat_xyz, w = pin.SE3ToXYZQUAT(rest * pin.XYZQUATToSE3(given))
                values = np.array([x, y, z, w, *quat_xyz])
            elif at.nq == 4 and kind == "planar":
                given = np.array([values[0], values[1], np.cos(values[2]), np.sin(values[2])])
            elif at.nq == 2 and kind == "hinge":
                given = np.array([np.cos(values[0]), np.sin(values[0])])
            theirs[at.idx_q : at.idx_q + at.nq] = given
            ours.append(values)
    return np.concatenate(ours), theirs


def check(scene, model: pin.Model) -> None:
    assert widths(scene)[1] == model.nv
    mass = pin.computeTotalMass(model)
    assert sum(body.inertia.mass for body in moving(scene)) == pytest.approx(mass, rel=1e-12)
    mass += model.inertias[0].mass
    assert sum(body.inertia.mass for body in scene.bodies) == pytest.approx(mass, rel=1e-12)
    q, q_pin = random_coordinates(scene, model)
    data = model.createData()
    pin.framesForwardKinematics(model, data, q_pin)
    poses = world_poses(scene, q)
    for body in scene.bodies:
        frame = data.oMf[model.getFrameId(body.name, pin.FrameType.BODY)]
        R, p = poses[body.name]
        assert np.allclose(p, frame.translation, atol=1e-12), body.name
        assert np.allclose(R, frame.rotation, atol=1e-12), body.name
    moments = [
        body.inertia.mass * (poses[body.name][1] + poses[body.name][0] @ np.array(body.inertia.com))
        for body in moving(scene)
    ]
    com = np.sum(moments, axis=0) / sum(body.inertia.mass for body in moving(scene))
    assert np.allclose(com, pin.centerOfMass(model, data, q_pin), atol=1e-12)


def check_inertias(scene, model: pin.Model) -> None:
    """Rotational inertia about the whole's centre of mass at rest, in world axes."""
    q, q_pin = random_coordinates(scene, model)
    data = model.createData()
    pin.ccrba(model, data, q_pin, np.zeros(model.nv))
    poses = world_poses(scene, q)
    bodies = moving(scene)
    mass = sum(body.inertia.mass for body in bodies)
    centres = {b.name: poses[b.name][1] + poses[b.name][0] @ np.array(b.inertia.com) for b in bodies}
    com = sum(b.inertia.mass * centres[b.name] for b in bodies) / mass
    total = np.zeros((3, 3))
    for body in bodies:
        xx, yy, zz = body.inertia.moments
        xy, xz, yz = body.inertia.products
        R = poses[body.name][0] @ rotation(body.inertia.quat_wxyz)
        arm = centres[body.name] - com
        total += R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        total += body.inertia.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assert mass == pytest.approx(data.Ig.mass, rel=1e-12)
    assert np.allclose(total, data.Ig.inertia, atol=1e-9 * np.trace(total))


def test_every_kind_of_joint() -> None:
    scene, model = load_urdf(arm()), pin.buildModelFromXML(arm())
    check(scene, model)
    check_inertias(scene, model)


def test_free_root() -> None:
    scene, model = load_urdf(arm(), root="free"), pin.buildModelFromXML(arm(), pin.JointModelFreeFlyer())
    check(scene, model)
    check_inertias(scene, model)


@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("file", [None, *urdf_files()], ids=lambda file: file.name if file else "own")
def test_files(file: Path | None, root: str, tmp_path: Path) -> None:
    if file is None:
        # Pinocchio writes the angles of the other kinds as cosine and sine: other widths
        file = tmp_path / "own.urdf"
        file.write_text(arm().replace("continuous", "revolute").replace("planar", "prismatic"), encoding="utf-8")
    free = (pin.JointModelFreeFlyer(),) if root == "free" else ()
    model = pin.buildModelFromUrdf(str(file), *free)
    scene = load_urdf(file, root=root, inertia="accept")
    assert widths(scene) == (model.nq, model.nv)
    check(scene, model)
    compiled = compile_scene(scene)
    assert (compiled.nq, compiled.nv) == (model.nq, model.nv)
    # every joint hangs from the same joint as in Pinocchio
    for body in scene.bodies:
        for joint in body.joints:
            parent = model.names[model.parents[model.getJointId(joint.name)]]
            assert joint_above(scene, body.parent) == parent
    limits = {j.name: j.limits for b in scene.bodies for j in b.joints if j.kind in ("hinge", "slider")}
    for name, (lower, upper) in limits.items():
        at = model.joints[model.getJointId(name)].idx_q
        assert (model.lowerPositionLimit[at], model.upperPositionLimit[at]) == (lower, upper)
