"""Every message about a bad scene."""

from __future__ import annotations

import copy
import math
import pickle
import re

import numpy as np
import pytest

from poise.model.contact_pairs import ContactPair
from poise.model.errors import Problem, SceneError, did_you_mean, resolve_name
from poise.model.scene import Actuator, Body, Inertia, Joint, Keyframe, Scene
from poise.model.shapes import Material, Shape, box, capsule, convex, cylinder, ellipsoid, plane, sphere
from poise.model.validate import find_problems, validate
from poise.motion import ConstantPath

NAN, INF = math.nan, math.inf


def with_body(**fields) -> Scene:
    return Scene(bodies=[Body(**{"name": "a", "joints": [Joint("free")], "shapes": [sphere(0.1)], **fields})])


def with_joint(kind="hinge", **fields) -> Scene:
    return with_body(joints=[Joint(kind, "j", **fields)])


def with_shape(shape) -> Scene:
    return with_body(shapes=[shape])


def with_inertia(*args, **fields) -> Scene:
    return with_body(inertia=Inertia(*args, **fields))


J = 'body "a": joint "j": '
S = 'body "a": shapes[0] '
CASES = {
    # the scene
    "gravity short": (Scene(gravity=(0, -9.81)), "gravity: must be 3 numbers, found 2: (0, -9.81)"),
    "gravity number": (Scene(gravity=-9.81), "gravity: must be 3 numbers, found -9.81"),
    "gravity text": (Scene(gravity=("0", 0, 1)), "gravity[0]: must be a number, found '0'"),
    "gravity nan": (Scene(gravity=(0, NAN, 1)), "gravity[1]: must be a finite number, found nan"),
    "dt zero": (Scene(dt=0), "dt: must be more than 0, found 0"),
    "name": (Scene(name=None), "name: must be text that is not empty, found None"),
    "source": (Scene(source=3), "source: must be text that is not empty, found 3"),
    "keyframes": (Scene(keyframes=None), "keyframes: must be a list of Keyframe, found None"),
    "excluded pairs": (Scene(excluded_pairs=3), "excluded_pairs: must be a list of pairs of names, found 3"),
    "actuators": (Scene(actuators=3), "actuators: must be a list of Actuator, found 3"),
    "equalities": (Scene(equalities=[3]), "equalities[0]: must be an Equality, found 3"),
    "keyframe name": (Scene(keyframes=[Keyframe("")]), "keyframes[0]: name: must be text that is not empty"),
    "actuator name": (Scene(actuators=[Actuator(3, "motor", "j")]), "actuators[0]: name: must be text that is not"),
    "bodies": (Scene(bodies="abc"), "bodies: must be a list of bodies, found 'abc'"),
    "not a body": (Scene(bodies=[3]), "bodies[0]: must be a Body, found 3"),
    # bodies
    "nameless": (Scene(bodies=[Body("")]), "bodies[0]: name: must be text that is not empty, found ''"),
    "name number": (Scene(bodies=[Body(7)]), "bodies[0]: name: must be text that is not empty, found 7"),
    "position": (with_body(position=(1, 2)), 'body "a": position: must be 3 numbers, found 2: (1, 2)'),
    "position inf": (with_body(position=(1, 2, INF)), 'body "a": position[2]: must be a finite number, found inf'),
    "position bool": (with_body(position=(1, 2, True)), 'body "a": position[2]: must be a number, found True'),
    "position huge": (
        with_body(position=(1, 2, 10**400)),
        'body "a": position[2]: must be a finite number, found one with more than 308 digits',
    ),
    "quat zero": (
        with_body(quat_wxyz=(0, 0, 0, 0)),
        'body "a": quat_wxyz: must be a rotation (w, x, y, z), found (0, 0, 0, 0); no rotation is (1, 0, 0, 0)',
    ),
    "quat nan": (with_body(quat_wxyz=(1, 0, 0, NAN)), 'body "a": quat_wxyz[3]: must be a finite number, found nan'),
    "quat three": (with_body(quat_wxyz=(1, 0, 0)), 'body "a": quat_wxyz: must be 4 numbers, found 3: (1, 0, 0)'),
    "motion": (
        with_body(motion="dynamik"),
        'body "a": motion: \'dynamik\' is not a kind of motion, did you mean "dynamic"?',
    ),
    "joints": (with_body(joints=Joint()), 'body "a": joints: must be a list of Joint, found Joint('),
    "joint": (with_body(joints=["hinge"]), "body \"a\": joints[0]: must be a Joint, found 'hinge'"),
    "shapes": (with_body(shapes=[None]), 'body "a": shapes[0]: must be a Shape, found None'),
    "inertia": (with_body(inertia=3.0), 'body "a": inertia: must be an Inertia or None, found 3.0'),
    "duplicate": (
        Scene(bodies=[Body("a", line=3), Body("a", line=9)]),
        'body "a": the name must be unique, found 2 bodies with it (lines 3, 9)',
    ),
    "duplicate joint": (
        Scene(bodies=[Body(n, joints=[Joint("hinge", "j")], shapes=[sphere(1)]) for n in "ab"]),
        'joint "j": the name must be unique, found 2 joints with it, on "a", "b"',
    ),
    "parent": (
        Scene(bodies=[Body("pelvis"), Body("b", parent="pelvsi")]),
        'body "b": parent: there is no body "pelvsi", did you mean "pelvis"?',
    ),
    "parent world": (with_body(parent="world"), 'body "a": parent: there is no body "world"; the world is None'),
    "parent number": (with_body(parent=0), 'body "a": parent: found 0; there is "a"'),
    "loop": (
        Scene(bodies=[Body("a", parent="c"), Body("b", parent="a"), Body("c", parent="b")]),
        'body "a": parent: bodies must form a tree, found the loop "a" → "c" → "b" → "a"',
    ),
    "own parent": (with_body(parent="a"), 'body "a": parent: bodies must form a tree, found the loop "a" → "a"'),
    # joints
    "kind": (with_joint("hinje"), J + "kind: 'hinje' is not a kind of joint, did you mean \"hinge\"?"),
    "kind far": (with_joint("xyz"), J + 'kind: \'xyz\' is not a kind of joint; there is "fixed", "hinge"'),
    "kind number": (with_joint(3), J + "kind: 3 is not a kind of joint"),
    "joint name": (with_body(joints=[Joint("hinge", "")]), 'body "a": joint "": name: must be text that is not empty'),
    "anchor": (with_joint(anchor=(1, 2)), J + "anchor: must be 3 numbers, found 2: (1, 2)"),
    "axis zero": (with_joint(axis=(0, 0, 0)), J + "axis: must point somewhere, found (0, 0, 0)"),
    "axis text": (with_joint(axis="y"), J + "axis: must be 3 numbers, found 'y'"),
    "axis2 parallel": (
        with_joint("universal", axis=(1, 1, 0), axis2=(-2, -2, 0)),
        J + "axis2: must not be parallel to axis, found (-2, -2, 0) beside (1.0, 1.0, 0.0)",
    ),
    "axis2 parallel to z": (with_joint("universal", axis2=(0, 0, 1)), J + "axis2: must not be parallel to axis"),
    "axis2 nearly parallel": (with_joint("universal", axis2=(1e-7, 0, 1)), J + "axis2: must not be parallel to axis"),
    "axis2 zero": (with_joint("universal", axis2=(0, 0, 0)), J + "axis2: must point somewhere, found (0, 0, 0)"),
    "pitch": (with_joint(pitch=0.1), J + "pitch: only a screw has a pitch, this is a hinge"),
    "pitch nan": (with_joint("screw", pitch=NAN), J + "pitch: must be a finite number, found nan"),
    "limits swapped": (
        with_joint(limits=(1, -1)),
        J + "limits: lower must not exceed upper, found (1, -1), did you mean (-1, 1)?",
    ),
    "limits nan": (with_joint(limits=(NAN, 1)), J + "limits[0]: must be a finite number, found nan"),
    "limits three": (with_joint(limits=(1, 2, 3)), J + "limits: must be 2 numbers, found 3: (1, 2, 3)"),
    "limits number": (with_joint(limits=1.0), J + "limits: must be (lower, upper), found 1.0"),
    "limits none": (with_joint(limits=(INF, INF)), J + "limits: must leave room to move, found (inf, inf)"),
    "limits of two": (
        with_joint("universal", limits=(-1, 1)),
        J + "limits: a universal joint needs 2 pairs (lower, upper) or None, for turn1, turn2, found (-1, 1)",
    ),
    "limits of three": (
        with_joint("planar", limits=((-1, 1), None)),
        J + "limits: a planar joint needs 3 pairs (lower, upper) or None, for x, y, turn, found ((-1, 1), None)",
    ),
    "limits pairs of one": (
        with_joint(limits=((-1, 1), (-1, 1))),
        J + "limits: a hinge joint needs 1 pairs (lower, upper) or None, for its coordinate, found",
    ),
    "limits second": (
        with_joint("universal", limits=(None, (2, 1))),
        J + "limits[1]: lower must not exceed upper, found (2, 1), did you mean (1, 2)?",
    ),
    "limits ball": (
        with_joint("ball", limits=(-1, 1)),
        J + "limits: a ball joint has no limits of its coordinates; use",
    ),
    "limits free": (with_joint("free", limits=(-1, 1)), J + "limits: a free joint has no limits"),
    "cone hinge": (with_joint(cone=1.0), J + "cone: only a ball joint has a cone, this is a hinge; use limits"),
    "twist hinge": (with_joint(twist=(0, 1)), J + "twist: only a ball joint has a twist, this is a hinge; use limits"),
    "cone degrees": (
        with_joint("ball", cone=45.0),
        J + "cone: must be at most π (radians), found 45, did you mean 0.7854 (45 degrees)?",
    ),
    "cone huge": (with_joint("ball", cone=(1.0, 1e4)), J + "cone[1]: must be at most π (radians), found 10000"),
    "cone negative": (with_joint("ball", cone=-1.0), J + "cone: must be more than 0, found -1"),
    "cone three": (with_joint("ball", cone=(1, 1, 1)), J + "cone: must be one angle or two, found 3: (1, 1, 1)"),
    "twist": (with_joint("ball", twist=(1, 0)), J + "twist: lower must not exceed upper, found (1, 0)"),
    "centre hinge": (
        with_joint(limit_centre=(1, 0, 0, 0)),
        J + "limit_centre: only a ball joint has a limit_centre, this is a hinge; use limits",
    ),
    "centre zero": (
        with_joint("ball", cone=1.0, limit_centre=(0, 0, 0, 0)),
        J + "limit_centre: must be a rotation (w, x, y, z), found (0, 0, 0, 0)",
    ),
    "centre three": (
        with_joint("ball", limit_centre=(0.1, 0.2, 0.3)),
        J + "limit_centre: must be 4 numbers, found 3: (0.1, 0.2, 0.3)",
    ),
    "centre nan": (
        with_joint("ball", limit_centre=(1, NAN, 0, 0)),
        J + "limit_centre[1]: must be a finite number, found nan",
    ),
    "centre text": (with_joint("ball", limit_centre="left"), J + "limit_centre: must be 4 numbers, found"),
    "rest ball": (with_joint("ball", rest=1.0), J + "rest: a ball joint rests at the identity, leave rest out"),
    "rest free": (with_joint("free", rest=1.0), J + "rest: a free joint rests at the pose of its body, leave rest out"),
    "rest two": (with_joint("universal", rest=(1, 2, 3)), J + "rest: must be 2 numbers, found 3: (1, 2, 3)"),
    "rest nan": (with_joint(rest=NAN), J + "rest: must be a finite number, found nan"),
    "spring ball": (with_joint("ball", spring=1.0), J + "spring: a ball joint needs 4 coordinates, found 1.0"),
    "spring zero": (
        with_joint("ball", spring=(0, 0, 0, 0)),
        J + "spring: must end in a rotation (w, x, y, z), found (0, 0, 0, 0)",
    ),
    "stiffness": (with_joint(stiffness=-1), J + "stiffness: must be 0 or more, found -1"),
    "friction": (with_joint(friction=-1), J + "friction: must be 0 or more, found -1"),
    "damping": (with_joint(damping=-1), J + "damping: must be 0 or more, found -1"),
    "damping count": (with_joint("ball", damping=(1, 2)), J + "damping: must be 3 numbers, found 2: (1, 2)"),
    "armature": (with_joint("ball", armature=(0, 0, -1)), J + "armature[2]: must be 0 or more, found -1"),
    "armature text": (with_joint(armature="big"), J + "armature: must be a number, found 'big'"),
    "two free": (
        with_body(joints=[Joint("free"), Joint("free")]),
        'body "a": joints: a free joint must be the only joint of its body, found free, free',
    ),
    "free and hinge": (
        with_body(joints=[Joint("hinge"), Joint("free")]),
        'body "a": joints: a free joint must be the only joint of its body, found hinge, free',
    ),
    # kinematic bodies
    "path not callable": (
        with_body(motion="kinematic", path=[1, 2]),
        'body "a": path: must be a path such as poise.motion.FunctionPath or KeyedPath, found [1, 2]',
    ),
    "path fails": (
        with_body(motion="kinematic", path=lambda t: t / 0),
        'body "a": path: must give a PathPoint at time 0, found ZeroDivisionError',
    ),
    "path gives number": (
        with_body(motion="kinematic", path=lambda t: t),
        'body "a": path: must give a PathPoint at time 0, found AttributeError',
    ),
    "kinematic hinge": (
        with_body(motion="kinematic", path=ConstantPath(), joints=[Joint("hinge")]),
        'body "a": joints: a kinematic body has one free joint or none (it is added then), found hinge',
    ),
    "path of a dynamic body": (
        with_body(path=ConstantPath()),
        'body "a": path: only a kinematic body follows a path, this one is dynamic; set motion="kinematic"',
    ),
    # shapes
    "formless": (with_shape(Shape()), S + "(shape): Shape is not a shape that has a form; use one of Sphere, Capsule"),
    "radius": (with_shape(sphere(0)), S + "(sphere): radius: must be more than 0, found 0"),
    "shape name": (with_shape(sphere(1, name=3)), S + "(sphere): name: must be text that is not empty, found 3"),
    "named": (with_shape(sphere(-1, name="head")), 'body "a": shape "head": radius: must be more than 0, found -1'),
    "radius text": (with_shape(sphere("big")), S + "(sphere): radius: must be a number, found 'big'"),
    "length": (with_shape(capsule(1, -2)), S + "(capsule): length: must be more than 0, found -2"),
    "length nan": (with_shape(cylinder(1, NAN)), S + "(cylinder): length: must be a finite number, found nan"),
    "size": (with_shape(box(1, 0, 1)), S + "(box): size[1]: must be more than 0, found 0"),
    "axes": (with_shape(ellipsoid(1, 1, None)), S + "(ellipsoid): size[2]: must be a number, found None"),
    "extent": (with_body(joints=[], shapes=[plane(extent=(1, 0))]), S + "(plane): extent[1]: must be more than 0"),
    "mesh": (
        with_shape(convex([(0, 0, 0)] * 4)),
        S + "(convexmesh): vertices: a solid needs at least 4 different points",
    ),
    "mesh faces": (
        with_shape(convex([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], faces=[(0, 1, 2)])),
        S + "(convexmesh): faces: must close a surface",
    ),
    "shape position": (with_shape(sphere(1, position=5)), S + "(sphere): position: must be 3 numbers, found 5"),
    "shape quat": (with_shape(sphere(1, quat_wxyz=(0,) * 4)), S + "(sphere): quat_wxyz: must be a rotation"),
    "density": (with_shape(sphere(1, density=-1)), S + "(sphere): density: must be 0 or more, found -1"),
    "mass": (with_shape(sphere(1, mass=-1)), S + "(sphere): mass: must be 0 or more, found -1"),
    "plane mass": (with_body(joints=[], shapes=[plane(mass=1)]), S + "(plane): mass: a plane has no mass, found 1"),
    "margin": (with_shape(sphere(1, margin=-1)), S + "(sphere): margin: must be 0 or more, found -1"),
    "color": (with_shape(sphere(1, color=(1, 1, 1))), S + "(sphere): color: must be 4 numbers, found 3"),
    "group": (with_shape(sphere(1, group=1.5)), S + "(sphere): group: must be a whole number whose bits are groups"),
    "mask": (with_shape(sphere(1, mask="all")), S + "(sphere): mask: must be a whole number whose bits are groups"),
    "material": (with_shape(sphere(1, material=0.5)), S + "(sphere): material: must be a Material, found 0.5"),
    "mu": (
        with_shape(sphere(1, material=Material(friction=-0.1))),
        S + "(sphere): material.friction: must be 0 or more, found -0.1",
    ),
    "bounce": (
        with_shape(sphere(1, material=Material(restitution=1.5))),
        S + "(sphere): material.restitution: must be between 0 and 1, found 1.5",
    ),
    "plane moves": (
        with_body(shapes=[plane()]),
        'body "a": shapes: a plane must be on a body that does not move, but it has joints',
    ),
    "plane carried": (
        Scene(bodies=[Body("a", joints=[Joint()], shapes=[sphere(1)]), Body("b", "a", shapes=[plane()])]),
        'body "b": shapes: a plane must be on a body that does not move, but it is carried by "a", which has joints',
    ),
    # inertia
    "inertia mass": (with_inertia(-1.0), 'body "a": inertia: mass: must be 0 or more, found -1'),
    "inertia com": (with_inertia(1.0, com=(0, 0)), 'body "a": inertia: com: must be 3 numbers, found 2'),
    "inertia quat": (with_inertia(1.0, quat_wxyz=(0,) * 4), 'body "a": inertia: quat_wxyz: must be a rotation'),
    "inertia moments": (
        with_inertia(1.0, moments=(1, 1, -1)),
        'body "a": inertia: moments[2]: must be 0 or more, found -1',
    ),
    "inertia triangle": (
        with_inertia(1.0, moments=(1, 1, 2.5)),
        'body "a": inertia: moments: no body has such moments: the largest must not exceed the sum of the others, '
        "found (1, 1, 2.5)",
    ),
    "inertia products": (
        with_inertia(1.0, moments=(1, 1, 1), products=(2, 0, 0)),
        'body "a": inertia: products: too large for the moments: principal moments must be 0 or more, found (-1, 1, 3)',
    ),
    "inertia without mass": (
        with_inertia(0.0, moments=(1, 1, 1)),
        'body "a": inertia: mass: a body with moments of inertia must have a mass, found 0 beside moments (1, 1, 1)',
    ),
    # the rest of the scene
    "keyframe": (Scene(keyframes=["home"]), "keyframes[0]: must be a Keyframe, found 'home'"),
    "excluded": (
        Scene(bodies=[Body("left"), Body("right")], excluded_pairs=[("left", "rigth")]),
        'excluded_pairs[0]: there is no body "rigth", did you mean "right"?',
    ),
    "excluded one": (
        Scene(bodies=[Body("left")], excluded_pairs=[("left",)]),
        "excluded_pairs[0]: must be the names of two bodies, found ('left',)",
    ),
    "contact pair": (
        Scene(bodies=[Body("a", shapes=[sphere(0.1)])], contact_pairs=[ContactPair(("a", 0), ("b", 0))]),
        'contact_pairs[0]: second: there is no body "b"',
    ),
    "number of a shape": (
        Scene(bodies=[Body("a", shapes=[sphere(0.1)])], contact_pairs=[ContactPair(("a", 0), ("a", 1))]),
        'contact_pairs[0]: second: body "a" has 1 shapes, counted from 0, found 1',
    ),
    "shape that touches nothing": (
        Scene(
            bodies=[Body("a", shapes=[sphere(0.1, group=0, mask=0)]), Body("b", shapes=[sphere(0.1)])],
            contact_pairs=[ContactPair(("a", 0), ("b", 0))],
        ),
        'contact_pairs[0]: first: shape 0 of body "a" is visual only (group and mask 0); give it a group',
    ),
    "friction of a pair": (
        Scene(
            bodies=[Body(name, shapes=[sphere(0.1)]) for name in "ab"],
            contact_pairs=[ContactPair(("a", 0), ("b", 0), friction=-1.0)],
        ),
        "contact_pairs[0]: friction: must be 0 or more, found -1",
    ),
    "force range": (
        with_joint("ball", actuator_force_range=(-1.0, 1.0)),
        'body "a": joint "j": actuator_force_range: only a joint of one degree of freedom has one, this is a ball',
    ),
    "gravity compensation": (
        with_body(gravity_compensation=NAN),
        'body "a": gravity_compensation: must be a finite number',
    ),
    "gear": (Scene(actuators=[Actuator("m", "motor", "j", gear=(NAN,))]), 'actuator "m": gear[0]: must be a finite'),
    "range": (
        Scene(actuators=[Actuator("m", "motor", "j", control_range=(1, -1))]),
        'actuator "m": control_range: lower must not exceed upper, found (1, -1)',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name):
    scene, message = CASES[name]
    found = [str(problem) for problem in find_problems(scene)]
    assert len(found) == 1, found
    assert found[0].startswith(message)
    with pytest.raises(SceneError, match=re.escape(message)):
        scene.compile()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("q", (0.0,) * 6, "q: must be 7 numbers, found 6"),
        ("v", (0.0,) * 7, "v: must be 6 numbers, found 7"),
        ("q", (0.0,) * 6 + (NAN,), "q[6]: must be a finite number, found nan"),
        ("control", "full", "control: must be numbers, found 'full'"),
        ("time", "soon", "time: must be a number, found 'soon'"),
    ],
)
def test_keyframes(field, value, message):
    scene = with_body()
    scene.keyframes = [Keyframe("home", **{field: value})]
    with pytest.raises(SceneError, match=re.escape(f'keyframe "home": {message}')):
        validate(scene)


def test_everything_at_once_with_places():
    joint = Joint("hinge", axis=(0, 0, 0), line=4)
    ball = sphere(-1.0, line=5)
    scene = Scene(source="robot.xml", bodies=[Body("a", parent="b", joints=[joint], shapes=[ball], line=3)])
    with pytest.raises(SceneError) as error:
        validate(scene)
    assert str(error.value).splitlines() == [
        'robot.xml:4: body "a": joint "a": axis: must point somewhere, found (0, 0, 0)',
        'robot.xml:5: body "a": shapes[0] (sphere): radius: must be more than 0, found -1',
        'robot.xml:3: body "a": parent: there is no body "b"; there is "a"',
    ]
    assert [problem.line for problem in error.value.problems] == [4, 5, 3]
    assert (error.value.file, error.value.line) == ("robot.xml", 4)


SOUND = {
    "open limits": with_joint(limits=(-INF, 1)),
    "locked": with_joint(limits=(0.5, 0.5)),
    "array limits": with_joint(limits=np.array((-1, 1))),
    "free cone": with_joint("ball", cone=(INF, 0.5), twist=(-INF, INF)),
    "long centre": with_joint("ball", cone=0.5, limit_centre=(3, 0, 0, 4)),
    "long quaternion": with_body(quat_wxyz=(3, 0, 0, 4)),
    "tiny quaternion": with_body(quat_wxyz=(1e-200, 0, 0, 1e-200)),
    "rounded flat plate": with_inertia(1.0, moments=(0.0333, 0.0333, 0.0667)),
    "massless": Scene(bodies=[Body("a", inertia=Inertia(0.0))]),
    "all bits": with_shape(sphere(1, group=-1, mask=np.int32(3))),
    "plane on a fixed body": with_body(motion="fixed", shapes=[plane()]),
    "kinematic without a path": with_body(motion="kinematic"),
    "kinematic with a free joint": with_body(motion="kinematic", path=ConstantPath()),
    "spring of a ball": with_joint("ball", spring=(1, 0, 0, 1), stiffness=2.0),
    "one rest for both": with_joint("universal", rest=0.1),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_scenes(name):
    assert find_problems(SOUND[name]) == []
    SOUND[name].compile()


def test_every_number_is_looked_at():
    """NaN in any field that takes a number is found, wherever it is."""
    base = with_joint("ball", cone=(0.5, 0.5), twist=(-1.0, 1.0), spring=(1.0, 0.0, 0.0, 0.0))
    base.bodies[0].joints[0].limit_centre = (1.0, 0.1, 0.0, 0.0)
    base.bodies[0].inertia = Inertia(1.0, moments=(1, 1, 1))
    base.keyframes = [Keyframe("home", q=(1, 0, 0, 0), v=(0, 0, 0), control=(1.0,))]
    parts = {
        "scene": lambda s: s,
        "body": lambda s: s.bodies[0],
        "joint": lambda s: s.bodies[0].joints[0],
        "shape": lambda s: s.bodies[0].shapes[0],
        "material": lambda s: s.bodies[0].shapes[0].material,
        "inertia": lambda s: s.bodies[0].inertia,
        "keyframe": lambda s: s.keyframes[0],
    }
    assert find_problems(base) == []
    checked = 0
    for part in parts.values():
        for name, value in vars(part(base)).items():
            numbers = isinstance(value, float) or (
                isinstance(value, tuple) and value and all(isinstance(x, (int, float)) for x in value)
            )
            if not numbers:
                continue
            scene = copy.deepcopy(base)
            setattr(part(scene), name, NAN if isinstance(value, float) else (*value[:-1], NAN))
            assert any("finite" in problem.message for problem in find_problems(scene)), name
            checked += 1
    assert checked > 25


def test_a_perfect_bounce_is_fine():
    assert find_problems(Scene(bodies=[Body("a", shapes=[sphere(1, material=Material(restitution=1.0))])])) == []


def test_axes_that_are_only_near_each_other_are_fine():
    assert find_problems(with_joint("universal", axis2=(1e-5, 0, 1))) == []


def test_error_reads_well():
    error = SceneError("must be 3 numbers, found 2", file="a.yaml", line=12, field="gravity")
    assert str(error) == "a.yaml:12: gravity: must be 3 numbers, found 2"
    assert str(SceneError("too heavy", line=4)) == "line 4: too heavy"
    assert isinstance(error, ValueError)
    assert error.problems == [Problem("must be 3 numbers, found 2", "a.yaml", 12, "gravity")]
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.problems == error.problems


def test_suggestions():
    assert did_you_mean("Hinge", ["hinge"]) == ', did you mean "hinge"?'
    assert did_you_mean("zzz", [f"name{k}" for k in range(20)]) == ""
    assert resolve_name("body", "r/hand", ["hero/r/hand", "hero/l/hand"]) == "hero/r/hand"
    with pytest.raises(SceneError, match='there is no body "x"'):
        resolve_name("body", "x", [])
