"""Scene files: what they mean, and that what is written is read again as the same."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.io.scenes.nodes import plain_value, read_nodes
from poise.io.scenes.schema import SceneFile, json_schema
from poise.model.errors import SceneError
from poise.motion.path import ConstantPath, FunctionPath, KeyedPath, OrbitPath

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def load(tmp_path):
    """Reads a text as a scene file."""

    def loader(text, name="scene.yaml", **options):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return poise.load(tmp_path / name, **options)

    return loader


# ---- words and numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("-.5", -0.5),
        ("+2.", 2.0),
        ("010", 10),
        ("1/240", 1 / 240),
        ("-3/4", -0.75),
        ("1/0", "1/0"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("on", "on"),
        ("No", "No"),
        ("TRUE", True),
        ("~", None),
        ("-.inf", -math.inf),
        ("2026-01-01", "2026-01-01"),
    ],
)
def test_words(word, value):
    found = plain_value(word)
    assert found == value
    assert type(found) is type(value)


def test_merging_of_fields_that_are_named_before():
    text = "a: &base {x: 1, y: 2}\nb: {<<: *base, y: 3}\n"
    from poise.io.scenes.nodes import plain

    assert plain(read_nodes(text))["b"] == {"y": 3, "x": 1}


def test_units(load):
    scene = load(
        "dt_ms: 2\n"
        "bodies:\n"
        "  - name: arm\n"
        "    position_cm: [7, 0, 150]\n"
        "    shape: {kind: capsule, radius_mm: 40, length_in: 10, mass_g: 2500}\n"
        "    joint: {kind: hinge, axis: y, limits_deg: [-90, 45], rest_deg: 10}\n"
        "  - name: cart\n"
        "    shape: {kind: box, size_cm: [10, 20, 30]}\n"
        "    joint: {kind: slider, limits_cm: [-50, 50]}\n"
        "  - name: ball\n"
        "    shape: {kind: sphere, radius: 0.1}\n"
        "    velocity_kmh: [36, 0, 0]\n"
        "    angular_velocity_rpm: [0, 0, 60]\n"
        "motors:\n"
        "  - {joint: arm, target_deg: 30, stiffness: 2, limit_kNm: 1}\n"
    )
    arm, cart = scene.body("arm"), scene.body("cart")
    assert scene.dt == 0.002
    assert arm.position == (0.07, 0.0, 1.5)
    assert (arm.shapes[0].radius, arm.shapes[0].length, arm.shapes[0].mass) == (0.04, 0.254, 2.5)
    assert arm.joints[0].limits == (-math.pi / 2, math.pi / 4)
    assert arm.joints[0].rest == math.radians(10)
    assert cart.joints[0].limits == (-0.5, 0.5)
    assert scene.actuators[0].options["target"] == math.radians(30)
    assert scene.actuators[0].force_range == (-1000.0, 1000.0)
    world = scene.build()
    v = world.v[world.model.v_slice("ball")]
    np.testing.assert_allclose(v, [10, 0, 0, 0, 0, 2 * math.pi], rtol=1e-15)


def test_parameters(load):
    text = (
        "parameters: {friction: 0.5, size: 10, high: '${size / 20}', where: [1, 2, 3], who: ball}\n"
        "ground: {friction: $friction}\n"
        "bodies:\n"
        "  - name: big $who for $$5\n"
        "    position: $where\n"
        "    shape: {kind: sphere, radius_cm: ${2 * size}, mass: ${sqrt(high + 0.25 ** 1) * 4}}\n"
    )
    scene = load(text)
    body = scene.bodies[1]
    assert scene.bodies[0].shapes[0].material.friction == 0.5
    assert (body.name, body.position, body.shapes[0].radius) == ("big ball for $5", (1.0, 2.0, 3.0), 0.2)
    assert body.shapes[0].mass == pytest.approx(4 * math.sqrt(0.75), rel=1e-15)
    other = load(text, set={"friction": 0.1, "size": np.float64(20), "who": "stone"})
    assert other.bodies[0].shapes[0].material.friction == 0.1
    assert (other.bodies[1].name, other.bodies[1].shapes[0].radius) == ("big stone for $5", 0.4)


def test_includes(load, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "stones.yaml").write_text(
        "include: floor.yaml\nparameters: {size: 1, high: 2}\nname: stones\n"
        "bodies: [{name: stone, position: [0, 0, $high], shape: {kind: sphere, radius: $size}}]\n"
    )
    (tmp_path / "parts" / "floor.yaml").write_text("ground: {friction: 0.1}\ngravity: [0, 0, -1]\n")
    scene = load(
        "include: [parts/stones.yaml, parts/floor.yaml]\nparameters: {size: 3}\ngravity: [0, 0, -2]\n"
        "bodies: [{name: own, shape: {kind: sphere, radius: $size}}]\n"
    )
    assert [body.name for body in scene.bodies] == ["ground", "stone", "own"]
    assert (scene.name, scene.gravity) == ("stones", (0.0, 0.0, -2.0))
    assert [body.shapes[0].radius for body in scene.bodies[1:]] == [3.0, 3.0]
    assert scene.body("stone").position == (0.0, 0.0, 2.0)


# ---- the same as in Python -------------------------------------------------------------------------------------------

STORY = """
name: story
description: all that a scene can say
parameters: {friction: 0.7}
gravity: [0, 0, -9.8]
dt: 1/500
formulation: {level: velocity, substeps: 2, tolerance: 1e-5}
ground: {friction: $friction}
bodies:
  - {name: table, fixed: true, position: [1, 0, 0.4], shape: {kind: box, size: [1, 1, 0.8], name: top}}
  - name: ball
    position: [2, 0.1, 1.5]
    velocity: [0, 1, 0]
    shape: {kind: sphere, radius: 0.1, mass: 2, material: {friction: 0.3, restitution: 0.5}, color: [1, 0, 0]}
  - name: basket
    parent: hero/hand_r
    position: [0, 0, -0.1]
    joint: {kind: hinge, axis: y, friction: 0.2, name: handle}
    shapes:
      - {kind: box, size: [0.3, 0.2, 0.15], mass: 1.5}
      - {kind: cylinder, radius: 0.01, length: 0.2, rotation: {axis: x, angle_deg: 90}, density: 500}
  - name: lift
    shape: {kind: box, size: [1, 1, 0.1]}
    path: {times: [0, 1, 2], positions: [[3, 0, 0.2], [3, 0, 1], [3, 0, 0.2]], loop: true}
  - name: wheel
    position: [0, 3, 1]
    joint: {kind: hinge, axis: x, limits_rad: [-100, 100]}
    inertia: {mass: 2, moments: [0.1, 0.1, 0.15]}
  - name: pointer
    position: [0, 4, 1]
    joint: {kind: universal, axis: x, limits: [null, [-1, 1]], damping: [0.1, 0.2]}
    shape: {kind: ellipsoid, size: [0.1, 0.2, 0.3]}
  - name: hill
    fixed: true
    position: [0, 8, 0]
    shape: {kind: height_field, heights: [[0, 0, 0.1], [0, 0.3, 0]], extent: [4, 4]}
  - name: rock
    position: [0, -3, 1]
    shape: {kind: convex, vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.25]]}
characters:
  - {name: hero, kind: humanoid, height: 1.8, mass: 75, hands: true, position: [0, 0, 0.01]}
  - {name: doll, kind: ragdoll, position: [-2, 0, 1], rotation: {axis: z, angle_deg: 45}}
motors:
  - {joint: hero/elbow_l, stiffness: 20, damping: 2, limit: 30, target: 0.5}
  - {joint: hero/hip_l, stiffness: 20, damping: 2, limit: 30}
  - {joint: wheel, damping: .inf, speed: 3, limit: [-1, 2], name: drive}
loops:
  - {kind: ball, first: pointer, second: null, position: [0, 4, 1.15], break_force: 1000}
  - {kind: fixed, first: table, second: ball, active: false}
couplings:
  - {first: wheel, second: handle, coefficients: [0, -2]}
excluded_pairs: [[wheel, rock]]
keyframes:
  - {name: bent, time: 1, joints: {hero/knee_l: 0.3, handle: 0.1}, velocities: {wheel: 2}}
throws: [{body: ball, time: 0.2, at: hero/torso, speed: 6}]
pushes: [{body: hero/head, time: 0.1, duration: 0.05, force: [0, 50, 0]}]
start: bent
duration: 2
record: [contacts, energy]
every: 4
camera: {position: [3, -3, 2], target: [0, 0, 1], field_of_view_deg: 50, follow: hero}
"""


def built_in_python():
    box, sphere = poise.box, poise.sphere
    scene = poise.Scene(gravity=(0, 0, -9.8), dt=1 / 500, name="story")
    scene.add_ground(friction=0.7)
    table = scene.add(box(1, 1, 0.8, name="top"), name="table", fixed=True, position=(1, 0, 0.4))
    surface = poise.Material(friction=0.3, restitution=0.5)
    red = sphere(0.1, mass=2, material=surface, color=(1, 0, 0, 1))
    ball = scene.add(red, name="ball", position=(2, 0.1, 1.5))
    half = math.radians(90) / 2
    across = (math.cos(half), math.sin(half), 0.0, 0.0)
    later = [
        poise.Body("basket", "hero/hand_r", (0, 0, -0.1)),
        poise.Body("lift", motion="kinematic", shapes=[box(1, 1, 0.1)]),
    ]
    later[0].joints = [poise.Joint("hinge", axis=(0, 1, 0), friction=0.2, name="handle")]
    later[0].shapes = [box(0.3, 0.2, 0.15, mass=1.5), poise.cylinder(0.01, 0.2, quat_wxyz=across, density=500)]
    later[1].path = KeyedPath([0, 1, 2], [(3, 0, 0.2), (3, 0, 1), (3, 0, 0.2)], loop=True)
    scene.bodies += later
    wheel = poise.Body("wheel", inertia=poise.Inertia(2, moments=(0.1, 0.1, 0.15)))
    scene.hinge(None, wheel, axis="x", limits=(-100, 100), position=(0, 3, 1))
    pointer = poise.ellipsoid(0.1, 0.2, 0.3)
    bounds, loose = (None, (-1.0, 1.0)), (0.1, 0.2)
    scene.universal(None, pointer, axis="x", limits=bounds, damping=loose, position=(0, 4, 1), name="pointer")
    scene.add(poise.height_field([[0, 0, 0.1], [0, 0.3, 0]], 4, 4), name="hill", fixed=True, position=(0, 8, 0))
    scene.add(poise.convex([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1.25)]), name="rock", position=(0, -3, 1))
    scene.add(poise.characters.humanoid(1.8, 75, hands=True), name="hero", position=(0, 0, 0.01))
    half = math.radians(45) / 2
    turn = (math.cos(half), 0.0, 0.0, math.sin(half))
    scene.add(poise.characters.ragdoll(), name="doll", position=(-2, 0, 1), quat_wxyz=turn)
    scene.excluded_pairs.append(("wheel", "rock"))
    scene.loop("ball", "pointer", None, position=(0, 4, 1.15), break_force=1000)
    scene.loop("fixed", table, ball, active=False)
    scene.couple("wheel", "handle", (0, -2))
    scene.motor("hero/elbow_l", stiffness=20, damping=2, limit=30, target=0.5)
    scene.motor("hero/hip_l", stiffness=20, damping=2, limit=30)
    scene.motor("wheel", damping=math.inf, speed=3, limit=(-1, 2), name="drive")
    return scene


def test_a_file_means_what_python_means(load):
    scene, twin = load(STORY), built_in_python()
    mine, theirs = scene.compile().digests(), twin.compile().digests()
    assert [name for name in mine if mine[name] != theirs[name]] == []


def test_settings(load):
    scene = load(STORY)
    assert scene.settings.formulation == poise.Reduced(substeps=2, tolerance=1e-5)
    assert (scene.settings.duration, scene.settings.every) == (2.0, 4)
    assert scene.settings.record == ("contacts", "energy")
    assert scene.settings.description == "all that a scene can say"
    camera = scene.settings.camera
    assert camera["follow"] == "hero"
    assert camera["field_of_view"] == math.radians(50)
    world = scene.build()
    assert world.formulation == scene.settings.formulation
    assert scene.build(poise.Reduced()).formulation == poise.Reduced()


def test_start_at_a_keyframe(load):
    world = load(STORY).build()
    model = world.model
    assert world.time == 1.0
    assert world.q[model.q_slice("hero/knee_l")] == 0.3
    assert world.v[model.v_slice("wheel")] == 2.0
    assert world.v[model.v_slice("ball")].tolist() == [0, 1, 0, 0, 0, 0]
    world.reset("bent")
    assert world.q[model.q_slice("handle")] == 0.1


@pytest.mark.parametrize("again", [1, 2])
def test_what_is_written_is_read_as_the_same(load, tmp_path, again):
    first = scene = load(STORY)
    for k in range(again):
        assert scene.save(tmp_path / f"copy{k}.yaml") == []
        scene = poise.load(tmp_path / f"copy{k}.yaml")
    assert scene.compile().digest() == first.compile().digest()
    assert scene.settings == first.settings
    assert scene.keyframes == first.keyframes
    assert [make for _, make in scene.controllers] == [make for _, make in first.controllers]
    worlds = first.build(), scene.build()
    for world in worlds:
        world.step(20)
    assert worlds[0].q.tobytes() == worlds[1].q.tobytes()
    if again == 2:
        assert (tmp_path / "copy0.yaml").read_bytes() == (tmp_path / "copy1.yaml").read_bytes()


def test_paths_of_all_kinds_are_written(tmp_path):
    scene = poise.Scene()
    third = 1 / 3
    paths = {
        "still": ConstantPath((third, 0, 0), (third, 0.2, 0.1, 0.7)),
        "orbit": OrbitPath((third, 0.1, 0), 2 * third, center=(0.1, third, 0), axis=(1, 1, third)),
        "keys": KeyedPath([0, third, 2], [(0, 0, third), (1, 0, 0), (2, 0, 0)], [(third, 0.2, 0, 0)] * 3),
    }
    for name, path in paths.items():
        scene.add(poise.sphere(0.1), name=name, kinematic=path)
    scene.save(tmp_path / "paths.yaml")
    copy = poise.load(tmp_path / "paths.yaml")
    assert copy.compile().digest() == scene.compile().digest()
    for name, path in paths.items():
        for time in (0.0, 0.3, 1.7):
            mine, theirs = path(time), copy.body(name).path(time)
            assert all(
                np.array_equal(getattr(mine, f), getattr(theirs, f)) for f in ("position", "quat_wxyz", "velocity")
            )


def test_what_yaml_cannot_say(tmp_path):
    scene = poise.Scene()
    scene.controllers.append(("helper", lambda: None))
    with pytest.warns(poise.io.LossWarning, match='The controller "helper" is a function'):
        lost = scene.save(tmp_path / "a.yaml")
    assert len(lost) == 1
    scene.add(poise.sphere(0.1), name="odd", kinematic=FunctionPath(lambda t: ((t, 0, 0), (1, 0, 0, 0))))
    with pytest.raises(SceneError, match=r'body "odd": path: a path of the kind FunctionPath cannot be written'):
        scene.save(tmp_path / "b.yaml")
    assert not (tmp_path / "b.yaml").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.jpg", 'scenes are written as .yaml, .yml, .xml, .mjcf, not ".jpg"'),
        ("a.yalm", 'not ".yalm", did you mean ".yaml"?'),
        ("a", 'not ""'),
        ("none/a.yaml", "there is no such folder to save to"),
    ],
)
def test_where_scenes_cannot_be_written(tmp_path, name, said):
    import re

    with pytest.raises(SceneError, match=re.escape(said)):
        poise.Scene().save(tmp_path / name)


def test_a_scene_that_is_wrong_is_not_written(tmp_path):
    with pytest.raises(SceneError, match="there is no body"):
        poise.Scene(bodies=[poise.Body("a", parent="b")]).save(tmp_path / "a.yaml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["1e-3", "$x", "yes", "a: b", "# no", "ü/日本", "null", "- a", "'", '"', "<<", "1/2", " a "]
)
def test_odd_names_survive(tmp_path, name):
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name=name)
    scene.save(tmp_path / "a.yaml")
    assert poise.load(tmp_path / "a.yaml").bodies[0].name == name


def test_scenes_of_other_formats_survive(tmp_path):
    xml = (
        "<mujoco><option timestep='0.005'/><worldbody><geom type='plane' size='1 1 1'/>"
        "<body name='a' pos='0 0 1'><joint name='j' axis='0 1 0' range='-30 40' damping='0.1'/>"
        "<geom type='capsule' size='.05 .2' friction='0.7 0.01 0.001' condim='6'/>"
        "<body name='b' pos='0 0 -.5'><joint name='k' type='ball' range='0 60' stiffness='2'/>"
        "<geom type='box' size='.05 .05 .2'/></body></body>"
        "<body name='c' mocap='true' pos='1 0 0'><geom size='.1'/></body></worldbody>"
        "<equality><connect body1='a' body2='c' anchor='0 0 0' active='false'/></equality>"
        "<actuator><position name='p' joint='j' kp='30' ctrlrange='-1 1'/><motor joint='k' gear='0 1 0'/></actuator>"
        "<keyframe><key name='up' qpos='0.1 1 0 0 0' ctrl='0.2 0'/></keyframe></mujoco>"
    )
    scene = poise.io.load_mjcf(xml)
    scene.save(tmp_path / "a.yaml")
    copy = poise.load(tmp_path / "a.yaml")
    assert copy.compile().digest() == scene.compile().digest()
    assert copy.keyframes == scene.keyframes


def test_keyframes_of_a_character_of_a_file(load, tmp_path):
    """They are states of the whole scene: the robot as in its file, carried to where it is; all else at rest."""
    (tmp_path / "bot.xml").write_text(
        "<mujoco><worldbody><body name='a' pos='0 0 1'><freejoint/><geom size='.1'/>"
        "<body name='b' pos='0 0 -.5'><joint name='k' axis='0 1 0'/><geom size='.1'/></body></body></worldbody>"
        "<actuator><position name='p' joint='k' kp='30'/></actuator>"
        "<keyframe><key name='up' time='2' qpos='0.1 0 2 0.6 0.8 0 0 0.7' qvel='1 2 3 4 5 6 7' ctrl='0.2'/></keyframe>"
        "</mujoco>"
    )
    scene = load(
        """
        bodies: [{name: door, joint: {kind: hinge, rest: 0.4, limits: [0, 1]}, shape: {kind: sphere, radius: 0.1}}]
        motors: [{joint: door, stiffness: 10, target: 0.3}]
        characters:
          - {name: one, file: bot.xml, position: [5, 6, 7], rotation: {axis: z, angle_deg: 90}}
          - {name: two, file: bot.xml}
          - {name: held, file: bot.xml, fixed: true}
        start: one/up
        """
    )
    assert [frame.name for frame in scene.keyframes] == ["one/up", "two/up", "held/up"]
    world = scene.build()
    model = world.model
    half = np.sqrt(0.5)
    assert world.time == 2.0
    assert world.q[model.q_slice("door")] == pytest.approx([0.4])
    assert world.q[model.q_slice("one/a")] == pytest.approx(
        [5, 6.1, 9, half * 0.6, half * 0.8, half * 0.8, half * 0.6], abs=1e-12
    )
    assert world.v[model.v_slice("one/a")] == pytest.approx([-2, 1, 3, 4, 5, 6])
    assert world.q[model.q_slice("one/k")] == pytest.approx([0.7])
    assert world.q[model.q_slice("two/k")] == pytest.approx([0.0])
    world.reset("two/up")
    assert world.q[model.q_slice("two/a")] == pytest.approx([0.1, 0, 2, 0.6, 0.8, 0, 0])
    assert world.v[model.v_slice("two/k")] == pytest.approx([7])
    assert world.ctrl == pytest.approx([0.0, 0.2, 0.0, 0.3])  # of merged robots, then of motors
    world.reset("held/up")
    assert world.q[model.q_slice("held/k")] == pytest.approx([0.7])


# ---- characters ------------------------------------------------------------------------------------------------------


def test_character_from_a_file(load, tmp_path):
    (tmp_path / "arm.urdf").write_text(
        "<robot name='arm'><link name='base'/><link name='lower'><inertial><mass value='1'/>"
        "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial></link>"
        "<link name='tip'><inertial><mass value='1'/>"
        "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial></link>"
        "<joint name='elbow' type='continuous'><parent link='base'/><child link='lower'/></joint>"
        "<joint name='wrist' type='continuous'><parent link='lower'/><child link='tip'/><mimic joint='elbow'/></joint>"
        "</robot>"
    )
    scene = load(
        "characters:\n"
        "  - {name: left, file: arm.urdf, position: [0, 1, 0]}\n"
        "  - {name: right, file: arm.urdf, position: [0, -1, 0]}\n"
        "motors: [{joint: left/elbow, stiffness: 10}]\n"
    )
    model = scene.compile()
    assert model.joint_names == ("left/elbow", "left/wrist", "right/elbow", "right/wrist")
    assert len(model.couplings) == 2
    assert scene.body("right/base").position == (0.0, -1.0, 0.0)


def test_tracking_of_a_clip_is_that_of_python(load, tmp_path):
    text = (
        "ground: true\n"
        "characters:\n"
        "  - name: hero\n    kind: humanoid\n"
        "    track: {motion: {clip: squat, options: {depth: 0.3}}, strength: {legs: 400, arms: 60}, root: ROOT}\n"
    )
    for root in ("guided", "held"):
        scene = load(text.replace("ROOT", root))
        twin = poise.Scene(name="scene")
        twin.add_ground()
        person = poise.characters.humanoid()
        hero = twin.add(person, name="hero")
        hero.track(poise.characters.clips.squat(person, depth=0.3), strength={"legs": 400, "arms": 60}, root=root)
        assert scene.compile().digest() == twin.compile().digest()
        scene.save(tmp_path / "copy.yaml")
        copy = poise.load(tmp_path / "copy.yaml")
        assert copy.compile().digest() == scene.compile().digest()
        worlds = [one.build() for one in (scene, twin, copy)]
        for world in worlds:
            world.step(30)
        assert worlds[0].q.tobytes() == worlds[1].q.tobytes() == worlds[2].q.tobytes()


def test_tracking_of_keys_and_of_a_file(load, tmp_path):
    (tmp_path / "moves").mkdir()
    person = poise.characters.humanoid()
    poise.io.save_bvh(poise.characters.clips.wave(person), tmp_path / "moves" / "wave.bvh")
    scene = load(
        "characters:\n"
        "  - {kind: humanoid, name: a, track: {root: free, motion: {keys_deg: {0: {elbow_l: 0}, 0.2: {elbow_l: 30}}}}}"
        "\n"
        "  - {kind: humanoid, name: b, track: {motion: {file: moves/wave.bvh, options: {units: m, up: z}}}}\n"
    )
    world = scene.build()
    tracking = world.controllers["a tracking"]
    assert tracking.at(0.2).q[world.model.q_slice("a/elbow_l")] == pytest.approx(math.radians(30), rel=1e-14)
    (tmp_path / "elsewhere").mkdir()
    scene.save(tmp_path / "elsewhere" / "copy.yaml")
    assert "file: ../moves/wave.bvh" in (tmp_path / "elsewhere" / "copy.yaml").read_text()
    copy = poise.load(tmp_path / "elsewhere" / "copy.yaml")
    assert copy.compile().digests() == scene.compile().digests()


# ---- schema ----------------------------------------------------------------------------------------------------------


def test_published_schema_is_that_of_the_models():
    published = (ROOT / "docs" / "scene.schema.json").read_text(encoding="utf-8")
    assert published == json_schema(), "write it anew: python -m poise.io.scenes.schema docs/scene.schema.json"


def test_schema_points_nowhere_that_is_not():
    schema = json.loads(json_schema())

    def pointers(part):
        if isinstance(part, dict):
            yield from ([part["$ref"]] if isinstance(part.get("$ref"), str) else [])
            for value in part.values():
                yield from pointers(value)
        elif isinstance(part, list):
            for value in part:
                yield from pointers(value)

    found = set(pointers(schema))
    assert len(found) > 50
    for pointer in found:
        here = schema
        for step in pointer.removeprefix("#/").split("/"):
            here = here[step]
    assert schema["$defs"]["SpherePart"]["additionalProperties"] is False
    assert "^radius_(m|cm|mm|km|in|ft)$" in schema["$defs"]["SpherePart"]["patternProperties"]


def test_models_take_plain_data():
    part = SceneFile.model_validate({"gravity": [0, 0, -1], "bodies": [{"name": "a", "joint": {"kind": "free"}}]})
    assert part.bodies[0].name == "a"
    with pytest.raises(ValueError, match="must be 3 numbers"):
        SceneFile.model_validate({"gravity": -1})


def test_reading_other_formats_needs_no_pydantic():
    code = (
        "import sys, poise, tempfile, pathlib\n"
        "f = pathlib.Path(tempfile.mkdtemp()) / 'a.urdf'\n"
        "_ = f.write_text(\"<robot name='r'><link name='base'/></robot>\")\n"
        "poise.load(f)\n"
        "print('pydantic' in sys.modules, 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_scene_of_separate_bodies(tmp_path: Path) -> None:
    text = "formulation: {kind: maximal, turning: momentum, substeps: 2}\n"
    text += "bodies:\n  - {name: b, shape: {kind: sphere, radius: 0.1}}\n"
    (tmp_path / "scene.yaml").write_text(text)
    scene = poise.load(tmp_path / "scene.yaml")
    assert scene.settings.formulation == poise.Maximal(turning="momentum", substeps=2)
    assert isinstance(scene.build().formulation, poise.Maximal)
    scene.save(tmp_path / "again.yaml")
    assert poise.load(tmp_path / "again.yaml").settings.formulation == scene.settings.formulation


def test_friction_may_be_infinite(tmp_path: Path) -> None:
    file = tmp_path / "rough.yaml"
    ball = "{name: ball, shape: {kind: sphere, radius: 0.1, material: {rolling_friction: .inf}}}"
    file.write_text(f"ground: {{friction: .inf}}\nbodies: [{ball}]\n")
    scene = poise.load(file)
    assert scene.body("ground").shapes[0].material.friction == float("inf")
    assert scene.body("ball").shapes[0].material.rolling_friction == float("inf")


def test_every_option_of_a_formulation_has_a_field_with_the_same_default() -> None:
    """A scene file that names a formulation makes the one that Python makes."""
    from dataclasses import fields

    from poise.formulations.formulation_registry import FORMULATIONS
    from poise.io.scenes.schema import FormulationPart

    for kind in FORMULATIONS.values():
        for field in fields(kind):
            assert FormulationPart.model_fields[field.name].default == field.default, field.name
