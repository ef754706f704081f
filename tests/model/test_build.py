"""Building scenes with the methods of Scene."""

from __future__ import annotations

import numpy as np
import pytest

from model_kinematics import body_poses, pose_matrix
from poise.model import BodyHandle, Character, CharacterHandle
from poise.model.errors import SceneError
from poise.model.scene import Body, Joint, Scene
from poise.model.shapes import Material, Plane, box, plane, sphere
from poise.motion import ConstantPath, OrbitPath

HALF = 0.5**0.5


def doll() -> Character:
    return Character(
        "doll",
        [
            Body("pelvis", joints=[Joint("free")], position=(0, 0, 1), shapes=[sphere(0.2)]),
            Body("hand_r", "pelvis", joints=[Joint("ball", "wrist_r")], position=(0.5, 0, 0), shapes=[sphere(0.1)]),
            Body("hand_l", "pelvis", joints=[Joint("ball", "wrist_l")], position=(-0.5, 0, 0), shapes=[sphere(0.1)]),
        ],
    )


def test_a_shape_is_free():
    scene = Scene()
    handle = scene.add(box(0.3, 2.0, 0.2), position=(1, 0, 0.1), quat_wxyz=(1, 0, 0, 1))
    assert isinstance(handle, BodyHandle)
    body = handle.description
    assert body is scene.bodies[0]
    assert (body.name, body.position, body.quat_wxyz) == ("box", (1, 0, 0.1), (1, 0, 0, 1))
    assert [joint.kind for joint in body.joints] == ["free"]
    assert scene.compile().nv == 6


def test_default_names():
    scene = Scene()
    names = [scene.add(sphere(0.1)).name, scene.add(sphere(0.1)).name, scene.add(sphere(0.1, name="eye")).name]
    assert names == ["sphere", "sphere_2", "eye"]
    assert scene.add([box(1, 1, 1), sphere(1)], name="lamp").description.name == "lamp"
    assert len(scene.body("lamp").shapes) == 2


def test_fixed_shapes_and_planes_do_not_move():
    scene = Scene()
    scene.add(box(1, 1, 1), fixed=True, position=(0, 0, 1))
    scene.add(plane())
    ground = scene.add_ground(friction=0.4, restitution=0.1, height=-2.0, color=(1, 0, 0, 1))
    assert scene.compile().nv == 0
    shape = ground.description.shapes[0]
    assert isinstance(shape, Plane)
    assert (shape.material.friction, shape.material.restitution, shape.color) == (0.4, 0.1, (1, 0, 0, 1))
    assert scene.compile().body_position[2].tolist() == [0, 0, -2]
    assert ground.name == "ground"


def test_what_is_added_is_copied():
    scene, ball = Scene(), sphere(0.1)
    scene.add(ball)
    ball.radius = 5.0
    assert scene.body("sphere").shapes[0].radius == 0.1
    body = Body("b", joints=[Joint("hinge")], shapes=[sphere(1)])
    scene.add(body)
    scene.add(body, name="c", position=(1, 2, 3), parent="b")
    assert body.name == "b"
    assert body.parent is None
    assert scene.body("c").parent == "b"


def test_kinematic():
    scene = Scene()
    scene.add(box(1, 1, 0.1), name="tray", kinematic=OrbitPath((1, 0, 0), 1.0))
    model = scene.compile()
    assert model.dof_prescribed.tolist() == [1] * 6
    assert model.q_rest[:3].tolist() == [1, 0, 0]
    with pytest.raises(SceneError, match="a kinematic body is where its path says"):
        scene.add(box(1, 1, 1), kinematic=ConstantPath(), position=(0, 0, 0))
    with pytest.raises(SceneError, match="fixed or kinematic, not both"):
        scene.add(box(1, 1, 1), kinematic=ConstantPath(), fixed=True)


def test_joint_as_kind_joint_or_list():
    scene = Scene()
    scene.add(sphere(1), name="a", joint="hinge")
    scene.add(sphere(1), name="b", joint=Joint("ball"), parent="a")
    scene.add(sphere(1), name="c", joint=[Joint("slider"), Joint("hinge")], parent="b")
    scene.add(sphere(1), name="d", parent="c")
    assert scene.compile().joint_kinds == ("hinge", "ball", "slider", "hinge")
    with pytest.raises(SceneError, match="joint: 'hinje' is not a kind of joint, did you mean \"hinge\""):
        scene.add(sphere(1), joint="hinje")
    with pytest.raises(SceneError, match="joint: must be a Joint, a list of Joints or the name of a kind, found 3"):
        scene.add(sphere(1), joint=3)


@pytest.mark.parametrize("kind", ["hinge", "slider", "cylindrical", "screw", "universal", "planar", "ball"])
def test_joining(kind):
    scene = Scene()
    scene.add(box(1, 1, 1), name="base", fixed=True)
    options = {"axis2": "x"} if kind in ("universal", "planar") else {"pitch": 0.1} if kind == "screw" else {}
    join = getattr(scene, kind)
    handle = join(
        "base",
        box(0.3, 0.2, 0.15, mass=1.5),
        axis="y",
        anchor=(0, 0, 1),
        name="part",
        position=(0, 0, 2),
        friction=0.2,
        joint_name="link",
        **options,
    )
    assert handle.name == "part"
    joint = scene.joint("link")
    assert (joint.kind, joint.axis, joint.anchor, joint.friction) == (kind, (0, 1, 0), (0, 0, 1), 0.2)
    assert joint.axis2 == ((1, 0, 0) if "axis2" in options else None)
    body = scene.body("part")
    assert (body.parent, body.position) == ("base", (0, 0, 2))
    assert scene.compile().joint_kinds == (kind,)


def test_welding():
    scene = Scene()
    base = scene.add(box(1, 1, 1), name="base")
    scene.weld(base, sphere(0.1), name="knob", position=(1, 0, 0))
    model = scene.compile()
    assert (model.n_links, model.n_bodies) == (1, 2)


def test_parents_by_handle_short_name_and_world():
    scene = Scene()
    hero = scene.add(doll(), name="hero")
    scene.hinge("hand_r", box(0.3, 0.2, 0.15, mass=1.5), axis=(0, 2, 0), name="basket")
    scene.hinge(hero, sphere(0.1), name="tail")
    scene.hinge(hero.body("hand_l"), sphere(0.1), axis="-x", name="ring")
    scene.hinge(None, sphere(0.1), name="bell", anchor=(0, 0, 1))
    assert [scene.body(n).parent for n in ("basket", "tail", "ring", "bell")] == [
        "hero/hand_r",
        "hero/pelvis",
        "hero/hand_l",
        None,
    ]
    assert scene.joint("ring").axis == (-1, 0, 0)
    assert scene.compile().n_links == 7


def test_character_is_prefixed():
    scene = Scene()
    hero = scene.add(doll(), name="hero")
    other = scene.add(doll())
    third = scene.add(doll())
    assert isinstance(hero, CharacterHandle)
    assert (hero.name, other.name, third.name) == ("hero", "doll", "doll_2")
    assert hero.bodies == ("hero/pelvis", "hero/hand_r", "hero/hand_l")
    assert hero.root.name == "hero/pelvis"
    assert hero.joints == ("hero/pelvis", "hero/wrist_r", "hero/wrist_l")
    assert hero.body("hand_r").name == "hero/hand_r"
    assert hero.joint("wrist_l") == "hero/wrist_l"
    assert scene.joint("hero/wrist_r").kind == "ball"
    with pytest.raises(SceneError, match='body "hand_r" is ambiguous, it may be "hero/hand_r", "doll/hand_r"'):
        scene.body("hand_r")
    with pytest.raises(SceneError, match='there is no joint "wrist_rr", did you mean "hero/wrist_r"'):
        hero.joint("wrist_rr")
    with pytest.raises(SceneError, match='name: there is a "hero" already'):
        scene.add(doll(), name="hero")
    scene.compile()


def test_character_is_placed_by_its_own_frame():
    """Feet that stand on z = 0 of the character's frame stand at the given position."""
    scene = Scene()
    scene.add(doll(), name="moved", position=(5, 0, 0), quat_wxyz=(HALF, 0, 0, HALF))
    scene.add(doll(), name="same")
    model = scene.compile()
    poses = body_poses(model, model.q_rest)
    frame = pose_matrix((5, 0, 0), (HALF, 0, 0, HALF))
    np.testing.assert_allclose(poses[:3], frame @ poses[3:], atol=1e-15)
    np.testing.assert_allclose(poses[0][:3, 3], (5, 0, 1))


def test_character_turned_about_the_ground():
    """Lying down turns the place of the root as well as its axes."""
    scene = Scene()
    scene.add(doll(), name="lying", position=(0, 0, 0.2), quat_wxyz=(3, 3, 0, 0))
    scene.add(doll(), name="same")
    model = scene.compile()
    poses = body_poses(model, model.q_rest)
    np.testing.assert_allclose(poses[:3], pose_matrix((0, 0, 0.2), (HALF, HALF, 0, 0)) @ poses[3:], atol=1e-15)
    np.testing.assert_allclose(poses[0][:3, 3], (0, -1, 0.2), atol=1e-15)


def test_joints_that_are_given_are_copied():
    hinge, slide = Joint("hinge"), Joint("slider")
    scene = Scene()
    scene.add(sphere(1), name="one", joint=hinge)
    scene.add(sphere(1), name="two", joint=[hinge, slide])
    hinge.damping = slide.damping = 9.0
    assert [joint.damping for body in scene.bodies for joint in body.joints] == [0.0, 0.0, 0.0]


def test_character_can_be_held():
    scene = Scene()
    scene.add(doll(), name="statue", fixed=True)
    post = scene.add(box(0.1, 0.1, 2), name="post", fixed=True)
    scene.add(doll(), name="puppet", parent=post, joint="hinge", position=(0, 0, 1))
    model = scene.compile()
    assert model.joint_kinds == ("ball", "ball", "hinge", "ball", "ball")
    scene.add(doll(), name="led", kinematic=ConstantPath((0, 0, 9)))
    assert scene.compile().dof_prescribed.sum() == 6


def test_hostile_things():
    scene = Scene()
    scene.add(sphere(1), name="a")
    for thing in (None, "box", [], [sphere(1), 3], sphere):
        with pytest.raises(SceneError, match="only a Shape, a list of Shapes, a Body or a Character can be added"):
            scene.add(thing)
    with pytest.raises(SceneError, match='name: there is a body "a" already'):
        scene.add(sphere(1), name="a")
    with pytest.raises(SceneError, match="name: must be text that is not empty, found 3"):
        scene.add(sphere(1), name=3)
    with pytest.raises(SceneError, match="name: must be text that is not empty, found ''"):
        scene.add(doll(), name="")
    with pytest.raises(SceneError, match='there is no body "b"; there is "a"'):
        scene.add(sphere(1), parent="b")
    with pytest.raises(SceneError, match=r"position: must be 3 numbers, found \(1, 2\)"):
        scene.add(sphere(1), position=(1, 2))
    with pytest.raises(SceneError, match="position: must be 3 numbers, found 'here'"):
        scene.add(doll(), position="here")
    with pytest.raises(SceneError, match=r"quat_wxyz: must be 4 numbers"):
        scene.add(sphere(1), quat_wxyz=(1, 0, 0))
    with pytest.raises(SceneError, match=r"quat_wxyz: must be a rotation"):
        scene.add(doll(), quat_wxyz=(0, 0, 0, 0))
    with pytest.raises(SceneError, match="axis: 'up' is not an axis; use x, y, z, -x, -y, -z or three numbers"):
        scene.hinge("a", sphere(1), axis="up")
    with pytest.raises(SceneError, match="hinge: a hinge joint has no option 'dampign', did you mean \"damping\""):
        scene.hinge("a", sphere(1), dampign=1.0)
    with pytest.raises(SceneError, match="a character needs at least one body"):
        scene.add(Character("ghost", []))
    with pytest.raises(SceneError, match='there is no body "pelvs" in the character, did you mean "pelvis"'):
        scene.add(Character("c", [Body("pelvis"), Body("leg", "pelvs")]))
    with pytest.raises(SceneError, match='there is no joint "b"'):
        scene.joint("b")
    for text in ("123", b"123"):
        with pytest.raises(SceneError, match="position: must be 3 numbers, found"):
            scene.add(sphere(1), position=text)
    assert [body.name for body in scene.bodies] == ["a"]


@pytest.mark.parametrize("name", ["world", "World"])
def test_the_world_is_none(name):
    scene = Scene()
    with pytest.raises(SceneError, match=f'parent: there is no body "{name}"; the world is None'):
        scene.hinge(name, sphere(1))
    scene.add(sphere(1), name=name)
    assert scene.body(scene.hinge(name, sphere(1)).name).parent == name


def test_a_kinematic_body_has_no_joint_of_its_own():
    """The joint would have no say: better to refuse it than to drop it."""
    for thing in (sphere(1), doll()):
        with pytest.raises(SceneError, match="a kinematic body has no joint: it is moved; leave joint out"):
            Scene().add(thing, joint="hinge", kinematic=ConstantPath())


@pytest.mark.parametrize(
    ("character", "message"),
    [
        (Character("c", [Body("leg", "hip"), Body("hip")]), 'first body must be the root, found "leg", which hangs fr'),
        (Character("c", [Body("hip"), "leg"]), r'character "c": bodies\[1\]: must be a Body, found \'leg\''),
        (Character("c", None), "a character needs at least one body, found None"),
        (Character("c", [Body("hip"), Body("leg", ["hip"])]), "there is no body"),
        (Character("", [Body("hip")]), "name of the character: must be text that is not empty, found ''"),
        (Character(3, [Body("hip")]), "name of the character: must be text that is not empty, found 3"),
        (Character("c", [Body("hip", position=None)]), "position: must be 3 numbers, found None"),
        (Character("c", [Body("hip", quat_wxyz=(1, 0))]), "quat_wxyz: must be 4 numbers"),
    ],
)
def test_characters_that_are_none(character, message):
    scene = Scene()
    with pytest.raises(SceneError, match=message):
        scene.add(character, position=(1, 2, 3), quat_wxyz=(1, 0, 0, 0))
    assert scene.bodies == []


def test_names_from_other_programs_are_understood():
    """Users of MuJoCo, URDF and Pinocchio are told what a thing is called here."""
    scene = Scene()
    for theirs, ours in (("revolute", "hinge"), ("prismatic", "slider"), ("Spherical", "ball"), ("floating", "free")):
        with pytest.raises(SceneError, match=f'joint: {theirs!r} is not a kind of joint, did you mean "{ours}"'):
            scene.add(sphere(1), joint=theirs)
        scene.bodies = [Body("b", joints=[Joint(theirs)], shapes=[sphere(1)])]
        with pytest.raises(SceneError, match=f'kind: {theirs!r} is not a kind of joint, did you mean "{ours}"'):
            scene.compile()
        scene.bodies = []
    for theirs, ours in (
        ("range", "limits"),
        ("pos", "position"),
        ("springref", "spring"),
        ("frictionloss", "friction"),
    ):
        with pytest.raises(SceneError, match=f'has no option {theirs!r}, did you mean "{ours}"'):
            scene.hinge(None, sphere(1), **{theirs: 1.0})


def test_handles_are_short_to_read():
    scene = Scene()
    assert repr(scene.add(sphere(1), name="ball")) == "BodyHandle(name='ball')"
    assert repr(scene.add(doll(), name="d")).startswith("CharacterHandle(name='d', bodies=('d/pelvis',")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sphere(1, colour=(1, 0, 0, 1)), "a sphere has no option 'colour', did you mean \"color\""),
        (lambda: box(1, 1, 1, densty=1), "a box has no option 'densty', did you mean \"density\""),
        (lambda: box(1, 1, 1, friction=0.3), "a box has no option 'friction', did you mean \"material\""),
        (lambda: plane(rgba=(1, 0, 0, 1)), "a plane has no option 'rgba', did you mean \"color\""),
        (lambda: Scene().add_ground(frction=1), "a plane has no option 'frction', did you mean \"friction\""),
        (lambda: Scene().add_ground(material=Material()), "leave material out"),
    ],
)
def test_options_of_shapes_are_checked_where_they_are_given(make, message):
    with pytest.raises(SceneError, match=message):
        make()
