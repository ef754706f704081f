"""Fields of a scene that callers set by their paths."""

import pytest

import poise

SCENE = """
parameters: {friction: 0.8, blow: [60, 0, 0], high: 2}
ground: {friction: $friction}
bodies:
  - name: ball
    position: [0, 0, $high]
    shape: {kind: sphere, radius_cm: 10, mass: 2}
  - name: left.arm
    joint: {kind: hinge, axis: y, damping: 1}
    shape: {kind: box, size: [1, 0.1, 0.1]}
  - name: door
    joint: {kind: hinge, axis: z, friction: 1}
    shape: {kind: box, size: [1, 0.1, 0.1], material: {friction: 0.3}}
motors:
  - {joint: door, stiffness: 10, limit: 5}
pushes:
  - {body: ball, force: $blow}
"""


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "scene.yaml"
    file.write_text(SCENE)
    return file


def test_fields_of_parts(file):
    scene = poise.load(
        file,
        set={
            "ground.friction": 0.3,
            "ball.position.z": 5,
            "left.arm.damping": 7,
            "motors.door.limit": 9,
            "gravity.2": -1.5,
            "dt_ms": 10,
            "ground.restitution": 0.5,
        },
    )
    ground = scene.body("ground").shapes[0].material
    assert (ground.friction, ground.restitution) == (0.3, 0.5)
    assert scene.body("ball").position == (0, 0, 5)
    assert scene.body("left.arm").joints[0].damping == 7
    assert scene.actuators[0].force_range == (-9, 9)
    assert scene.gravity == (0, 0, -1.5)
    assert scene.dt == 0.01


def test_friction_of_a_body_is_that_of_its_material(file):
    shape = poise.load(file, set={"ball.friction": 0.25}).body("ball").shapes[0]
    assert (shape.material.friction, shape.mass) == (0.25, 2)
    door = poise.load(file, set={"door.material.friction": 0.25}).body("door")
    assert (door.shapes[0].material.friction, door.joints[0].friction) == (0.25, 1)


@pytest.mark.parametrize("path", ["ball.radius", "ball.shape.radius", "bodies.ball.radius_m", "bodies.0.shape.radius"])
def test_one_field_goes_by_several_paths_and_units(file, path):
    assert poise.load(file, set={path: 0.3}).body("ball").shapes[0].radius == 0.3


def test_a_value_takes_the_place_of_a_parameter_for_one_field_only(file):
    scene = poise.load(file, set={"pushes.0.force.x": 5, "blow": [1, 2, 3], "ball.position.x": 4})
    push = next(make.force for _, make in scene.controllers if hasattr(make, "force"))
    assert push == (5, 2, 3)
    assert scene.body("ball").position == (4, 0, 2)


def test_a_field_that_the_file_is_silent_of(file, tmp_path):
    assert poise.load(file, set={"duration": 3}).settings.duration == 3
    bare = tmp_path / "bare.yaml"
    bare.write_text("ground: true\nformulation: maximal\n")
    scene = poise.load(bare, set={"ground.friction": 0.1, "formulation.substeps": 3, "gravity.z": -2})
    assert scene.body("ground").shapes[0].material.friction == 0.1
    assert isinstance(scene.settings.formulation, poise.Maximal)
    assert scene.settings.formulation.substeps == 3
    assert scene.gravity == (0, 0, -2)


def test_what_tracks(tmp_path):
    file = tmp_path / "hero.yaml"
    file.write_text(
        "characters:\n  - name: hero\n    kind: humanoid\n    track:\n"
        "      motion: {keys_deg: {0: {elbow_l: 0}, 1: {elbow_l: 60}}}\n      strength: {legs: 400, arms: 60}\n"
        "      root: held\n"
    )
    strengths = [{a.force_range for a in poise.load(file, set=s).actuators} for s in ({}, {"hero.strength": 30})]
    assert strengths == [{(-60, 60)}, {(-30, 30)}]
    one = poise.load(file, set={"hero.strength.arms": 90})
    assert {a.force_range for a in one.actuators} == {(-90, 90)}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("ground.fricton", 1, 'set: ground.fricton: the ground has no field "fricton", did you mean "friction"?'),
        ("bal.mass", 1, 'set: bal.mass: the scene has nothing called "bal", did you mean "ball"?'),
        ("ball.strength", 1, 'a body has no field "strength"'),
        ("bodies.bal.mass", 1, 'there is no "bal" in the list, did you mean "ball"?'),
        ("pushes.7.force", 1, 'there is no "7" in the list'),
        ("gravity.w", 1, 'there is no number "w"; there is x, y, z or 0 to 2'),
        ("gravity.3", 1, 'there is no number "3"'),
        ("ground..friction", 1, "must be names with dots between them"),
        (".friction", 1, "must be names with dots between them"),
        ("parameters.friction", 1, "parameters are set by their names alone"),
        ("include.x", 1, "what a file includes cannot be set"),
        ("dt.x", 1, 'it has no parts, found "x" after it'),
        ("ball.velocity.x", 1, "write all of them in the file"),
        ("door.friction", 1, '"friction" is ambiguous, it may be shape.material.friction or joint.friction'),
        ("ball.radius_kg", 1, '"radius" is not in kilograms'),
        ("ground.friction", -1, "set: ground.friction: ground: friction: must be 0 or more, found -1"),
        ("ground.friction", "high", 'must be a number, found "high"'),
        ("ball.radius", float("nan"), "must be a finite number"),
        ("dt", 240, "write 1/240 for 240 steps a second"),
        ("ball.shape", 3, "must be fields of a shape"),
    ],
)
def test_bad_paths_and_values_are_told(file, path, value, said):
    with pytest.raises(poise.SceneError) as error:
        poise.load(file, set={path: value})
    assert said in str(error.value)


def test_without_what_holds_it_the_way_is_told(tmp_path):
    file = tmp_path / "hero.yaml"
    file.write_text("characters: [{name: hero, kind: humanoid}]\n")
    with pytest.raises(
        poise.SceneError, match=r'no field "strength"; "track" has one, but the file says nothing of it'
    ):
        poise.load(file, set={"hero.strength": 100})


def test_all_that_is_wrong_is_told_at_once(file):
    with pytest.raises(poise.SceneError) as error:
        poise.load(file, set={"ground.fricton": 1, "ball.mass": -1, "frction": 2})
    assert len(error.value.problems) == 3
