"""Small sound files of every kind that Poise reads, to be damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

NOD = """HIERARCHY
ROOT hip
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT spine
  {
    OFFSET 0.0 10.5 0.0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 12 0
    }
  }
  JOINT leg
  {
    OFFSET 4 -10 1e-1
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 -45 0
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.033333
0 95 0 1 2 3 4 5 6 7 8 9
1 95.5 0.25 1 2 3 4 5 6 7 8 -9
2 96 0.5 1 2 3 4 5 6 7 8 1.5e1
"""
WALK = "HIERARCHY ROOT hip { OFFSET 0 0 0 CHANNELS 2 Yposition Zrotation End Site { OFFSET 0 10 0 } }\nMOTION\n"
WALK += "Frames: 4\nFrame Time: 0.1\n" + "".join(f"{95 + k} {10 * k}\n" for k in range(4))
ARM = """<?xml version="1.0"?>
<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <inertial><origin xyz="0 0 1" rpy="0 0 0"/><mass value="2"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision><geometry><mesh filename="box.stl" scale="1 1 1"/></geometry></collision>
  </link>
  <link name="upper">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.1" length="0.4"/></geometry></collision>
  </link>
  <link name="lower">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <visual><geometry><mesh filename="box.obj"/></geometry></visual>
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute"><origin xyz="0 0 1"/><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="3" velocity="2"/><dynamics damping="0.1"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="lower"/>
    <limit lower="0" upper="1"/><mimic joint="shoulder" multiplier="2" offset="0.1"/></joint>
</robot>
"""
MJCF = """<mujoco model="arm">
  <compiler angle="degree" autolimits="true"/>
  <option timestep="0.004" gravity="0 0 -9.81"/>
  <size nkey="1"/>
  <default><geom density="500" friction="0.8 0.01 0.001"/>
    <default class="thin"><geom rgba="1 0 0 1"/></default></default>
  <asset><mesh name="box" file="box.obj" scale="0.1 0.1 0.1"/>
    <hfield name="hill" nrow="3" ncol="3" size="1 1 0.5 0.1" elevation="0 0 0 0 1 0 0 0 0"/>
    <texture name="sky" type="2d" builtin="checker" width="8" height="8"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="base" pos="0 0 1"><freejoint name="root"/><geom type="box" size="0.1 0.2 0.3"/>
      <body name="upper" pos="0 0 0.3" euler="0 10 0"><joint name="shoulder" type="hinge" axis="0 1 0" range="-90 90"
          damping="0.1" stiffness="2"/><geom class="thin" type="capsule" size="0.05" fromto="0 0 0 0 0 0.4"/>
        <site name="tip" pos="0 0 0.4"/>
        <body name="hand" pos="0 0 0.4"><joint name="wrist" type="ball" range="0 45"/>
          <geom type="mesh" mesh="box"/></body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="shoulder" coef="1"/></fixed></tendon>
  <equality><connect body1="hand" anchor="0 0 1" active="false"/></equality>
  <actuator><motor name="m" joint="shoulder" gear="10" ctrlrange="-1 1"/><position joint="shoulder" kp="20"/></actuator>
  <keyframe><key name="up" qpos="0 0 1 1 0 0 0 0.5 1 0 0 0"/></keyframe>
</mujoco>
"""
MANY = """<mujoco model="many">
  <include file="part.xml"/>
  <worldbody>
    <replicate count="4" offset="0.5 0 0">
      <body pos="0 0 1"><freejoint/><geom type="ellipsoid" size="0.1 0.2 0.1"/></body>
    </replicate>
    <frame pos="0 1 0"><geom type="cylinder" size="0.1 0.2"/></frame>
  </worldbody>
  <contact><exclude body1="part" body2="world"/></contact>
  <sensor><user dim="2" name="s"/></sensor>
</mujoco>
"""
PART = "<mujoco><worldbody><body name='part'><joint type='slide'/><geom size='0.1'/></body></worldbody></mujoco>"
BALL = """# a ball, an arm and a loop
poise: 1
name: ball
parameters: {size: 10, list: [0, 0, 1], half: "${size / 2}"}
gravity: [0, 0, -9.81]
dt: 1/240
ground: {friction: 0.5, restitution: 0.1}
bodies:
  - &ball
    name: ball
    position: $list
    shape: {kind: sphere, radius_cm: $size, mass: 2}
    velocity: [1, 0, 0]
  - name: arm
    position: [1, 0, 1]
    shapes:
      - {kind: box, size: [0.1, 0.1, 0.5], density: 500, color: [1, 0, 0]}
      - {kind: convex, file: box.obj, scale: 0.1}
    joint: {kind: hinge, axis: y, anchor: [0, 0, 0.5], limits_deg: [-90, 90], damping: 0.1}
  - name: hand
    parent: arm
    position: [0, 0, -0.5]
    rotation: {axis: z, angle_deg: 30}
    shape: {kind: capsule, radius: 0.05, length: "${0.02 * size}", mass: 1}
    joint: {kind: ball, anchor: [0, 0, 0.1], cone_deg: 40}
  - name: hill
    fixed: true
    shape: {kind: height_field, extent: [2, 2], heights: [[0, 0, 0], [0, 0.1, 0], [0, 0, 0]]}
  - name: lift
    path: {kind: keyed, times: [0, 1, 2], positions: [[0, 3, 0], [0, 3, 1], [0, 3, 0]], loop: true}
    shape: {kind: box, size: [0.5, 0.5, 0.1]}
motors:
  - {joint: arm, stiffness: 20, damping: 1, limit: 50}
excluded_pairs: [[arm, hand]]
keyframes:
  - {name: bent, joints: {arm: 0.5}}
start: bent
record: [contacts, energy]
duration: 2
"""
FIGURE = """include: [part.yaml]
characters:
  - kind: ragdoll
    name: hero
    position: [0, 0, 1.2]
  - {kind: file, name: robot, file: arm.urdf, position: [2, 0, 0]}
camera: {position: [3, 0, 2], target: [0, 0, 1], follow: hero}
throws:
  - {body: crate, at: hero/torso, time: 0.5, speed: 5}
pushes:
  - {body: crate, time: 0.2, duration: 0.1, force: [10, 0, 0]}
"""
CRATE = """ground: true
bodies:
  - {name: crate, position: [2, 2, 1], shape: {kind: box, size: [0.2, 0.2, 0.2], mass: 1}}
"""
OBJ = "# a box\no box\nvn 0 0 1\nvt 0.5 0.5\n"
CORNERS = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def write_corpus(folder: Path) -> None:
    """All of them, and what they name."""
    texts = {"nod.bvh": NOD, "walk.bvh": WALK, "arm.urdf": ARM, "arm.xml": MJCF, "many.xml": MANY, "part.xml": PART}
    texts |= {"ball.yaml": BALL, "figure.yaml": FIGURE, "part.yaml": CRATE, "box.obj": _obj(), "box.stl": _stl()}
    texts |= {"motion.txt": _motion(), "figure.txt": _figure(), "runs.jsonl": _runs(), "table.csv": _table()}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    layout = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
    triangles = np.zeros(2 * len(FACES), layout)
    triangles["corners"] = [[CORNERS[k] for k in triangle] for triangle in _triangles()]
    count = len(triangles).to_bytes(4, "little")
    (folder / "packed.stl").write_bytes(b"made by hand".ljust(80) + count + triangles.tobytes())


def _triangles() -> list[tuple[int, int, int]]:
    return [part for a, b, c, d in FACES for part in ((a, b, c), (a, c, d))]


def _obj() -> str:
    corners = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS)
    return OBJ + corners + "".join(f"f {' '.join(f'{k + 1}//1' for k in face)}\n" for face in FACES)


def _stl() -> str:
    facets = []
    for triangle in _triangles():
        corners = "".join(f"      vertex {' '.join(map(str, CORNERS[k]))}\n" for k in triangle)
        facets.append(f"  facet normal 0 0 0\n    outer loop\n{corners}    endloop\n  endfacet\n")
    return f"solid box\n{''.join(facets)}endsolid box\n"


def _motion() -> str:
    """For the figure below: a root, a ball, a hinge, a slider."""
    frames = [[0.1, 0, 0.9, 0.1 * k, 1, 0, 0, 0, 0.9, 0.1, 0.2, 0.1, 0.3, 0.2] for k in range(4)]
    # DeepMimic's humanoid has more: those of its joints that are left stand still
    rest = [1, 0, 0, 0]
    humanoid = [[0.1, 0, 0.9, 0.1 * k, *rest * 3, *(*rest, 0.2, *rest, *rest, 0.1) * 2] for k in range(4)]
    assert len(frames[0]) == 14
    assert len(humanoid[0]) == 44
    return json.dumps({"Loop": "wrap", "Frames": humanoid}, indent=1)


def _figure() -> str:
    """A figure whose motion has as many numbers as that of the humanoid: ten balls below the root and an arm."""
    attach = {"AttachX": 0.1, "AttachY": 0.2, "AttachZ": 0, "AttachThetaX": 0, "AttachThetaY": 0, "AttachThetaZ": 0.5}
    kinds = ["none", *["spherical"] * 8, "revolute", "prismatic", "revolute", "revolute", "fixed"]
    joints = [
        {"ID": k, "Name": f"joint{k}", "Type": kind, "Parent": k - 1 if k % 3 else min(k - 1, 0), **attach}
        for k, kind in enumerate(kinds)
    ]
    return json.dumps({"Skeleton": {"Joints": joints}}, indent=1)


def _runs() -> str:
    header = {"poise sweep": 1, "runs": 6, "scene": "ball.yaml", "files": {"ball.yaml": "0123456789abcdef"}}
    lines: list[dict[str, object]] = [header | {"set": {"radius": [0.1, 0.2]}}]
    for run in range(6):
        metrics = {"final_height": 0.1 * run, "fall_time": "inf"}
        line = {"run": run, "set": {"radius": 0.1}, "status": "done", "time": 2.0, "metrics": metrics}
        lines.append(line | {"note": "", "wall": 0.25})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _table() -> str:
    return "run,radius,status,time,height\n" + "".join(f"{k},0.{k},done,2.0,{k}e-1\n" for k in range(6))
