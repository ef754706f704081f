"""Wrong scene files: each is answered with its line and a sentence that helps."""

from __future__ import annotations

import gzip
import random
import re

import pytest

import poise
from poise.model.errors import SceneError

BODY = "bodies:\n  - name: box\n    shape: {kind: box, size: [1, 1, 1]}\n"


def body(lines: str) -> str:
    """A scene of one body, whose further fields begin in line 3."""
    return "bodies:\n  - name: box\n" + "".join(f"    {line}\n" for line in lines.splitlines())


#: name, text, line, what is said
WRONG = [
    # ---- typos
    ("field", "gravty: [0, 0, -9.81]\n" + BODY, 1, 'a scene has no field "gravty", did you mean "gravity"?'),
    (
        "field of a body",
        body("shpae: {kind: box, size: [1, 1, 1]}"),
        3,
        'body "box": a body has no field "shpae", did you mean "shape"?',
    ),
    (
        "field of a shape",
        body("shape:\n  kind: sphere\n  radus: 0.1"),
        5,
        'a sphere has no field "radus", did you mean "radius"?',
    ),
    (
        "field with a unit",
        body("shape:\n  kind: sphere\n  radus_cm: 10"),
        5,
        'no field "radus_cm", did you mean "radius_cm"?',
    ),
    (
        "unknown shape",
        body("shape:\n  kind: shpere\n  radius: 1"),
        4,
        '"shpere" is not a kind of shape, did you mean "sphere"?',
    ),
    (
        "shape of another program",
        body("shape:\n  kind: mesh\n  file: a.stl"),
        4,
        '"mesh" is not a kind of shape, did you mean "convex"?',
    ),
    ("shape without a kind", body("shape: {radius: 1}"), 3, 'a shape needs "kind": box, sphere, capsule'),
    ("unknown joint", body("joint: hinje"), 3, 'must be a kind of joint, found "hinje", did you mean "hinge"?'),
    ("joint of another program", body("joint: {kind: revolute}"), 3, 'found "revolute", did you mean "hinge"?'),
    (
        "unknown character",
        "characters:\n  - kind: humanoyd\n",
        2,
        '"humanoyd" is not a kind of character, did you mean "humanoid"?',
    ),
    ("word of MuJoCo", body("pos: [0, 0, 1]"), 3, 'a body has no field "pos", did you mean "position"?'),
    (
        "friction of a shape",
        body("shape:\n  kind: sphere\n  radius: 1\n  friction: 1"),
        6,
        'a sphere has no field "friction", did you mean "material"?',
    ),
    ("axis", body("joint: {kind: hinge, axis: w}"), 3, "'w' is not an axis; use x, y, z, -x, -y, -z or three numbers"),
    (
        "level",
        "formulation:\n  level: velocty\n" + BODY,
        2,
        'must be a level, found "velocty", did you mean "velocity"?',
    ),
    ("what to record", BODY + "record: [contcts]\n", 4, 'found "contcts", did you mean "contacts"?'),
    # ---- names that are not there
    ("parent", body("parent: bx"), 3, 'body "box": parent: there is no body "bx", did you mean "box"?'),
    ("parent that is the world", body("parent: world"), 3, "the world is meant where nothing is named; leave it out"),
    (
        "joint of a motor",
        "motors:\n  - joint: kne\n    stiffness: 1\n" + "characters: [{kind: humanoid, name: h}]\n",
        2,
        'motor "kne": joint: there is no joint "kne", did you mean "h/knee_r"?',
    ),
    (
        "body of a loop",
        BODY + "loops:\n  - kind: ball\n    first: box\n    second: bax\n",
        7,
        'second: there is no body "bax", did you mean "box"?',
    ),
    ("body of a pair", BODY + "excluded_pairs:\n  - [box, bix]\n", 5, 'there is no body "bix", did you mean "box"?'),
    ("body of a throw", BODY + "throws:\n  - {body: bal, velocity: [1, 0, 0]}\n", 5, 'there is no body "bal"'),
    (
        "target of a throw",
        BODY + "throws:\n  - {body: box, at: boxx, speed: 1}\n",
        5,
        'at: there is no body "boxx", did you mean "box"?',
    ),
    (
        "joint of a keyframe",
        BODY + "keyframes:\n  - name: k\n    joints:\n      bix: 1\n",
        7,
        'there is no joint "bix", did you mean "box"?',
    ),
    ("keyframe", BODY + "start: now\n", 4, 'there is no keyframe "now"'),
    (
        "clip",
        "characters:\n  - kind: humanoid\n    track:\n      motion: {clip: wlak}\n",
        4,
        'there is no clip "wlak", did you mean "walk"?',
    ),
    (
        "ambiguous",
        "characters: [{kind: humanoid, name: a}, {kind: humanoid, name: b}]\nmotors:\n  - joint: knee_l\n",
        3,
        'joint "knee_l" is ambiguous, it may be "a/knee_l", "b/knee_l"',
    ),
    # ---- wrong types
    ("text for a number", "dt: fast\n" + BODY, 1, 'dt: must be a number, found "fast"'),
    ("comma", "ground:\n  friction: 0,5\n", 2, 'friction: must be a number, found "0,5", did you mean 0.5?'),
    (
        "one number for three",
        "gravity: -9.81\n" + BODY,
        1,
        "gravity: must be 3 numbers (x, y, z), in square brackets, found -9.81",
    ),
    ("two numbers for three", body("position: [1, 2]"), 3, "position: must be 3 numbers (x, y, z), found 2: [1, 2]"),
    ("one of three", body("position:\n  - 1\n  - two\n  - 3"), 5, 'position[1]: must be a number, found "two"'),
    ("yes", body("fixed: yes"), 3, 'fixed: must be true or false, found "yes", did you mean true?'),
    (
        "mapping for a list",
        "bodies:\n  box:\n    position: [0, 0, 0]\n",
        1,
        "bodies: must be a list of bodies, found {'box': {'position': [0, 0, 0]}}; begin each with \"- \"",
    ),
    ("number for a name", "bodies:\n  - name: 12\n", 2, "name: must be a name, found 12; put it in quotes"),
    (
        "fraction of a group",
        body("shape: {kind: sphere, radius: 1, group: 1.5}"),
        3,
        "group: must be a whole number, found 1.5",
    ),
    ("list for a scene", "- a\n- b\n", 1, "a scene is made of fields such as bodies: or characters:, found ['a', 'b']"),
    (
        "lower above upper",
        body("joint: {kind: hinge, limits: [1, -1]}"),
        3,
        "lower must not exceed upper, found [1, -1], did you mean [-1, 1]?",
    ),
    ("angle", body("rotation: {axis: x, angle: big}"), 3, 'angle: must be a number, found "big"'),
    # ---- missing
    ("name", "bodies:\n  - shape: {kind: sphere, radius: 1}\n", 2, 'bodies[0]: a body needs "name"'),
    ("radius", body("shape:\n  kind: sphere\n  mass: 2"), 3, 'a sphere needs "radius" (or radius_m, radius_cm'),
    ("motion", "characters:\n  - kind: humanoid\n    track:\n      strength: 3\n", 3, 'tracking needs "motion"'),
    (
        "velocity of a throw",
        BODY + "throws:\n  - {body: box}\n",
        5,
        "needs a velocity, or a body to be thrown at, and not both",
    ),
    ("mass", body("joint: free"), 3, "nothing that has inertia moves along this degree of freedom; give the body"),
    # ---- numbers that cannot be
    ("NaN", "gravity: [0, 0, .nan]\n" + BODY, 1, "gravity[2]: must be a finite number, found nan"),
    ("infinite", body("position: [0, 0, .inf]"), 3, "must be a finite number, found inf"),
    ("too many digits", body("position: [0, 0, 1" + "0" * 400 + "]"), 3, "must be a finite number, found inf"),
    ("negative", body("shape: {kind: sphere, radius: -1}"), 3, "radius: must be more than 0, found -1"),
    ("negative mass", body("shape: {kind: sphere, radius: 1, mass: -2}"), 3, "mass: must be 0 or more, found -2"),
    ("restitution", "ground:\n  restitution: 2\n", 2, "restitution: must be at most 1, found 2"),
    (
        "colour of 255",
        body("shape: {kind: sphere, radius: 1, color: [255, 0, 0]}"),
        3,
        "color[0]: must be at most 1, found 255; colours are 0 to 1",
    ),
    (
        "no rotation",
        body("quat_wxyz: [0, 0, 0, 0]"),
        3,
        "must be a rotation (w, x, y, z), found zeros; no rotation is [1, 0, 0, 0]",
    ),
    ("absurd size", body("shape: {kind: sphere, radius: 1.0e+200}"), 2, 'body "box"'),
    ("impossible inertia", body("inertia:\n  mass: 1\n  moments: [1, 1, 5]"), 5, "no body has such moments"),
    # ---- units
    (
        "frequency for a step",
        "dt: 240\n" + BODY,
        1,
        "dt: must be at most 1, found 240; steps are in seconds: write 1/240 for 240 steps a second",
    ),
    (
        "centimetres without a unit",
        "characters:\n  - kind: humanoid\n    height: 175\n",
        3,
        "must be between 0.4 and 3 m, found 175; 175 cm are 1.75 m",
    ),
    (
        "degrees without a unit",
        body("joint:\n  kind: hinge\n  limits: [-90, 90]"),
        5,
        "found -90 radians, more than two turns; write limits_deg for degrees, or limits_rad if that is meant",
    ),
    (
        "degrees of a cone",
        body("joint: {kind: ball, cone: 60}\nshape: {kind: sphere, radius: 1}"),
        3,
        "must be at most π (radians), found 60, did you mean 1.047 (60 degrees)?",
    ),
    (
        "length for a mass",
        body("shape: {kind: sphere, radius: 1, mass_cm: 3}"),
        3,
        'mass_cm: "mass" is not in centimetres (length); it takes _kg, _g, _t, _lb',
    ),
    (
        "unit where there is none",
        "ground: {friction_deg: 3}\n",
        1,
        '"friction" is not in degrees (angle); it takes no unit',
    ),
    (
        "degrees of a slider",
        body("joint: {kind: slider, limits_deg: [0, 90]}"),
        3,
        "limits of a slider joint are lengths, not in degrees",
    ),
    (
        "unit in the value",
        body("position: [0, 0, 3cm]"),
        3,
        'must be a number, found "3cm", did you mean position_cm: 3?',
    ),
    (
        "twice with two units",
        body("shape: {kind: sphere, radius: 1, radius_cm: 100}"),
        3,
        'radius_cm: is given twice, as "radius" too; leave one out',
    ),
    # ---- files
    (
        "no such mesh",
        body("shape: {kind: convex, file: a.stl}"),
        3,
        '"a.stl": cannot read the mesh: No such file or directory',
    ),
    (
        "no such character",
        "characters:\n  - file: robt.urdf\n",
        2,
        '"robt.urdf": there is no such file, did you mean "robot.urdf"?',
    ),
    (
        "no such motion",
        "characters:\n  - kind: humanoid\n    track: {motion: wlk.bvh}\n",
        3,
        '"wlk.bvh": there is no such file, did you mean "walk.bvh"?',
    ),
    (
        "motion that is none",
        "characters:\n  - kind: humanoid\n    track: {motion: robot.urdf}\n",
        3,
        '"robot.urdf": it is text of an unknown kind',
    ),
    (
        "no such include",
        "include: comon.yaml\n" + BODY,
        1,
        'include: "comon.yaml": there is no such file, did you mean "common.yaml"?',
    ),
    (
        "includes itself",
        "include: scene.yaml\n" + BODY,
        1,
        "files include each other in a circle: scene.yaml → scene.yaml; leave one out",
    ),
    (
        "includes in a circle",
        "include: back.yaml\n" + BODY,
        1,
        "files include each other in a circle: scene.yaml → back.yaml → scene.yaml; leave one out",
    ),
    ("number for a file", "include: 3\n" + BODY, 1, "include: must be the name of a file, or a list of names, found 3"),
    # ---- parameters
    (
        "parameter",
        "parameters: {friction: 1}\nground: {friction: $fricton}\n",
        2,
        'there is no parameter "fricton", did you mean "friction"?',
    ),
    ("no parameters", "ground: {friction: $mu}\n", 1, 'there is no parameter "mu"; this file has none'),
    (
        "sum of text",
        "parameters: {a: big}\nground:\n  friction: ${a + 1}\n",
        3,
        "parameter \"a\" must be a number to compute with, found 'big'",
    ),
    ("division by nothing", "parameters: {a: 0}\nground:\n  friction: ${1 / a}\n", 3, '"1 / a" cannot be computed'),
    ("code", "ground:\n  friction: ${__import__('os').getpid()}\n", 2, "cannot be computed"),
    ("not closed", "parameters: {a: 0}\nground:\n  friction: ${a\n", 3, 'a "${" that is not closed'),
    # ---- YAML
    (
        "twice",
        "gravity: [0, 0, -9.81]\nname: a\ngravity: [0, 0, 0]\n",
        3,
        "gravity: is given twice, first in line 1; leave one out",
    ),
    ("tab", "bodies:\n\t- name: a\n", 2, "found a tab; scenes are indented with spaces"),
    ("indent", "bodies:\n  - name: a\n   fixed: true\n", 3, "it is no YAML"),
    ("bracket", "gravity: [0, 0, -9.81\nname: a\n", 2, "it is no YAML"),
    ("colon in text", "name: a: b\n", 1, 'a ":" where none can be: indent alike, and put text with ": " in quotes'),
    ("alias", "name: *nobody\n", 1, "what follows * must have been named with & before"),
    ("holds itself", "bodies: &a\n  - *a\n", 1, "a part that holds itself"),
    (
        "tag",
        "name: !!python/object/apply:os.system [ls]\n",
        1,
        "scenes have no tags, found !!python/object/apply:os.system; leave it out",
    ),
    ("two scenes", "name: a\n---\nname: b\n", 2, 'a second "---": a file is one scene'),
    ("empty", "", None, "the file is empty"),
    ("only a comment", "# soon\n", None, "the file is empty"),
    ("deep", "name: " + "[" * 5000 + "\n", 1, "more than 100 lists within lists: is a bracket not closed?"),
    ("text", "hello\n", 1, "a scene is made of fields such as bodies: or characters:, found 'hello'"),
    ("not UTF-8", b"name: a\nground: {name: b\xe9}\n", 2, "byte 0xe9 is not UTF-8; save the file as UTF-8"),
    ("zeros", b"name: a\x00\x00\x01", None, "it is a binary file of an unknown kind"),
    ("compressed", gzip.compress(b"name: a"), None, "it is compressed: unpack it first, with gunzip"),
    (
        "motion instead of a scene",
        "HIERARCHY\nROOT hip\n",
        None,
        "it holds a motion, not a scene: read it with poise.load_motion",
    ),
    # ---- what goes together
    (
        "two of a name",
        BODY + "  - name: box\n    shape: {kind: sphere, radius: 1}\n",
        4,
        'there is a body "box" already, in line 2',
    ),
    ("fixed and dynamic", body("fixed: true\nmotion: dynamic"), 3, 'is true, but motion is "dynamic"; leave one out'),
    (
        "circle of parents",
        "bodies:\n  - {name: a, parent: b}\n  - {name: b, parent: a}\n",
        2,
        'bodies must form a tree, found the loop "a" → "b" → "a"',
    ),
    ("plane that moves", body("joint: hinge\nshape: {kind: plane}"), 2, "a plane must be on a body that does not move"),
    (
        "velocity of what is fixed",
        body("shape: {kind: sphere, radius: 1}\nfixed: true\nvelocity: [1, 0, 0]"),
        5,
        "only a body that is free to move can have a velocity",
    ),
    (
        "rotation twice",
        body("quat_wxyz: [1, 0, 0, 0]\nrotation: {axis: x, angle_deg: 3}"),
        4,
        'leave out "rotation" or "quat_wxyz"',
    ),
    (
        "cone of a hinge",
        body("joint: {kind: hinge, cone: 1}\nshape: {kind: sphere, radius: 1}"),
        3,
        "only a ball joint has a cone, this is a hinge; use limits",
    ),
    (
        "sleeping at acceleration level",
        "formulation:\n  level: acceleration\n  sleeping: true\n" + BODY,
        3,
        "sleeping takes the velocity level",
    ),
    (
        "sleeping of separate bodies",
        "formulation:\n  kind: maximal\n  sleeping: true\n" + BODY,
        3,
        "sleeping is none of the options of the formulation maximal",
    ),
    (
        "turning of trees",
        "formulation:\n  turning: momentum\n" + BODY,
        2,
        "turning is none of the options of the formulation reduced",
    ),
    (
        "gains at velocity level",
        "formulation: {kind: maximal, alpha: 3}\n" + BODY,
        1,
        'alpha takes level="acceleration" and stabilization="speed"',
    ),
    (
        "numbers of a keyframe",
        BODY + "keyframes:\n  - {name: k, q: [1, 2]}\n",
        5,
        "must be 7 numbers, one for each coordinate, found 2",
    ),
    (
        "strength of nobody",
        "characters:\n  - kind: humanoid\n    track:\n      motion: {clip: stand}\n      strength: {lgs: 3}\n",
        5,
        "lgs",
    ),
    ("format of tomorrow", "poise: 2\n" + BODY, 1, "this version of Poise reads scenes of format 1, found 2"),
]


@pytest.fixture
def folder(tmp_path):
    """Files beside the scene."""
    (tmp_path / "robot.urdf").write_text("<robot name='r'><link name='base'/></robot>")
    (tmp_path / "common.yaml").write_text("gravity: [0, 0, -1]\n")
    (tmp_path / "back.yaml").write_text("name: back\ninclude: scene.yaml\n")
    (tmp_path / "walk.bvh").write_text("HIERARCHY\n")
    return tmp_path


@pytest.mark.parametrize(("text", "line", "said"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_wrong_scenes_are_answered_with_the_line(folder, text, line, said):
    file = folder / "scene.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SceneError) as caught:
        poise.load(file)
    fitting = [problem for problem in caught.value.problems if said in str(problem)]
    assert fitting, str(caught.value)
    circle = "back.yaml" in said and "circle" in said
    wanted = (str(folder / "back.yaml"), 2) if circle else (str(file), line)
    assert (fitting[0].file, fitting[0].line) == wanted, str(caught.value)


def test_there_are_enough_of_them():
    assert len({case[0] for case in WRONG}) == len(WRONG) >= 50


def test_all_mistakes_are_told_at_once(tmp_path):
    file = tmp_path / "scene.yaml"
    file.write_text(
        "gravty: [0, 0, -9.81]\n"
        "ground: {friction: high}\n"
        "bodies:\n"
        "  - name: a\n"
        "    parent: c\n"
        "    shape: {kind: box, size: [1, 1]}\n"
        "  - name: b\n"
        "    joint: {kind: hinge, limits_cm: [0, 1]}\n"
        "motors:\n"
        "  - {joint: d, stiffness: 1}\n"
    )
    with pytest.raises(SceneError) as caught:
        poise.load(file)
    assert [problem.line for problem in caught.value.problems] == [1, 2, 5, 6, 8, 10]
    assert all(re.match(rf"{re.escape(str(file))}:\d+: ", line) for line in str(caught.value).splitlines())


def test_mistakes_of_included_files_have_their_own_lines(tmp_path):
    (tmp_path / "parts.yaml").write_text("# parts\nbodies:\n  - name: a\n    shape: {kind: sphere, radius: none}\n")
    (tmp_path / "scene.yaml").write_text("include: [parts.yaml]\nbodies:\n  - name: b\n    parent: x\n")
    with pytest.raises(SceneError) as caught:
        poise.load(tmp_path / "scene.yaml")
    found = [(problem.file.rpartition("/")[2], problem.line) for problem in caught.value.problems]
    assert found == [("scene.yaml", 4), ("parts.yaml", 4)]


def test_many_copies_of_copies_are_refused(tmp_path):
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 10)]
    (tmp_path / "scene.yaml").write_text("\n".join(rows))
    with pytest.raises(SceneError, match="parts or more, repeated ones counted each time"):
        poise.load(tmp_path / "scene.yaml")


def test_copies_within_copies_are_refused_when_too_deep(tmp_path):
    rows = ["a0: &a0 [x]", *(f"a{k}: &a{k} [*a{k - 1}]" for k in range(1, 400))]
    (tmp_path / "scene.yaml").write_text("\n".join(rows))
    with pytest.raises(SceneError, match="more than 200 parts within parts"):
        poise.load(tmp_path / "scene.yaml")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fricton": 1}, 'set: the scene has no parameter "fricton", did you mean "friction"?'),
        ({"friction": "high"}, "set: friction: must be a number, found 'high'"),
        ({"friction": -1}, "friction: must be 0 or more, found -1"),
        (3, "set: must be values of parameters by name, found 3"),
    ],
)
def test_parameters_that_cannot_be_set(tmp_path, given, said):
    (tmp_path / "scene.yaml").write_text("parameters: {friction: 0.5}\nground: {friction: $friction}\n")
    with pytest.raises(SceneError, match=re.escape(said)):
        poise.load(tmp_path / "scene.yaml", set=given)


def test_other_formats_have_no_parameters(tmp_path):
    (tmp_path / "r.urdf").write_text("<robot name='r'><link name='base'/></robot>")
    with pytest.raises(SceneError, match='URDF files take no option "set"'):
        poise.load(tmp_path / "r.urdf", set={"a": 1})


SMALL = """
parameters: {friction: 0.5}
ground: {friction: $friction}
formulation: {level: velocity, substeps: 2}
bodies:
  - {name: ball, position_cm: [0, 0, 90], velocity: [1, 0, 0], shape: {kind: sphere, radius: 0.1, mass: 2}}
  - name: arm
    rotation: {axis: x, angle_deg: 30}
    joint: {kind: hinge, axis: y, limits_deg: [-90, 90], rest: 0.1}
    shapes: [{kind: box, size: [0.1, 0.1, 1], material: {friction: 0.2}}]
  - {name: lift, shape: {kind: box, size: [1, 1, 1]}, path: {times: [0, 1], positions: [[0, 0, 3], [0, 0, 4]]}}
motors: [{joint: arm, stiffness: 3, limit: [-1, 2]}]
loops: [{kind: ball, first: arm, position: [0, 0, 1]}]
keyframes: [{name: k, joints: {arm: 0.2}}]
throws: [{body: ball, time: 1, at: arm, speed: 3}]
pushes: [{body: ball, force: [1, 0, 0]}]
camera: {position: [1, 1, 1], target: [0, 0, 0], follow: ball}
start: k
"""


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_changed_is_read_or_told_with_its_line(tmp_path, seed):
    chance = random.Random(seed)
    parts = re.split(r"(\W)", SMALL)
    odd = [
        "[",
        "]",
        "{",
        "}",
        ":",
        "null",
        ".nan",
        "-1",
        "0",
        "1e400",
        "true",
        "$friction",
        "${",
        "x",
        "\n",
        "- ",
        "'",
        "*a",
    ]
    file = tmp_path / "scene.yaml"
    file.write_text(SMALL)
    poise.load(file)
    silent = []
    for _ in range(40):
        changed = list(parts)
        for _ in range(chance.choice((1, 1, 2))):
            changed[chance.randrange(len(changed))] = chance.choice((*odd, chance.choice(parts), ""))
        file.write_text("".join(changed))
        try:
            poise.load(file)
        except SceneError as error:
            silent += [problem for problem in error.problems if problem.line is None]
    assert silent == []
