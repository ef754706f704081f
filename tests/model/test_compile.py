"""Scenes to arrays: order, welds, primitives, names, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_kinematics import body_poses, link_poses, pose_matrix, random_q
from poise.model.compile import compile_scene, joint_frame
from poise.model.errors import SceneError
from poise.model.joints import JOINTS, Primitive
from poise.model.massprops import unpack_inertia
from poise.model.scene import Body, Joint, Scene
from poise.model.shapes import box, capsule, plane, sphere
from poise.motion import KeyedPath
from poise.motion.rotations import quat_normalize

QUARTER_Z = (0.5**0.5, 0.0, 0.0, 0.5**0.5)


def tree() -> Scene:
    """Two trees, a welded branch, a parent listed after its child."""
    return Scene(
        bodies=[
            Body("ground", shapes=[plane()]),
            Body("leaf", parent="twig", joints=[Joint("ball")], shapes=[sphere(0.1)]),
            Body("trunk", joints=[Joint("hinge", axis=(0, 1, 0))], shapes=[box(1, 1, 1)]),
            Body("twig", parent="trunk", position=(1, 0, 0), quat_wxyz=QUARTER_Z, shapes=[box(1, 2, 3)]),
            Body("fork", parent="trunk", joints=[Joint("slider")], shapes=[sphere(0.1)]),
            Body("stone", joints=[Joint("free")], position=(0, 0, 5), shapes=[sphere(0.2)]),
            Body("nut", parent="twig", position=(0, 1, 0), shapes=[sphere(0.3)]),
        ]
    )


def test_depth_first_order_and_indices():
    model = compile_scene(tree())
    assert model.body_names == ("ground", "trunk", "twig", "leaf", "nut", "fork", "stone")
    assert model.body_parent.tolist() == [-1, -1, 1, 2, 2, 1, -1]
    assert model.body_link.tolist() == [-1, 0, 0, 1, 0, 2, 3]
    assert model.link_body.tolist() == [1, 3, 5, 6]
    assert model.link_parent.tolist() == [-1, 0, 0, -1]
    assert model.link_root.tolist() == [0, 0, 0, 3]
    assert model.joint_names == ("trunk", "leaf", "fork", "stone")
    assert model.joint_kinds == ("hinge", "ball", "slider", "free")
    assert model.joint_body.tolist() == [1, 3, 5, 6]
    assert model.link_primitive_start.tolist() == [0, 1, 2, 3, 7]
    assert model.link_dof_start.tolist() == [0, 1, 4, 5, 11]
    assert model.joint_q_start.tolist() == [0, 1, 5, 6, 13]
    assert model.joint_v_start.tolist() == [0, 1, 4, 5, 11]
    assert model.primitive_q_start.tolist() == [0, 1, 5, 6, 7, 8, 9]
    assert model.primitive_v_start.tolist() == [0, 1, 4, 5, 6, 7, 8]
    assert model.dof_parent.tolist() == [-1, 0, 1, 2, 0, -1, 5, 6, 7, 8, 9]
    assert model.dof_link.tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3]
    assert model.dof_joint.tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3]
    assert (model.n_bodies, model.n_links, model.n_joints, model.nq, model.nv) == (7, 4, 4, 13, 11)


def test_welded_bodies_become_one_link():
    model = compile_scene(tree())
    nut = model.body_index("nut")
    # twig is at (1, 0, 0), turned a quarter about z: its y is −x
    np.testing.assert_allclose(model.body_position[nut], (0, 0, 0), atol=1e-15)
    np.testing.assert_allclose(model.body_quat_wxyz[nut], QUARTER_Z, atol=1e-15)
    parts = [(1000.0, (0, 0, 0), (1, 1, 1)), (6000.0, (1, 0, 0), (2, 1, 3))]
    ball = 1000 * 4 / 3 * np.pi * 0.3**3
    mass = 7000.0 + ball
    com = np.array((6000.0 / mass, 0, 0))
    inertia = sum(
        m * (np.diag((y * y + z * z, x * x + z * z, x * x + y * y)) / 12)
        + m * (np.dot(p - com, p - com) * np.eye(3) - np.outer(p - com, p - com))
        for m, p, (x, y, z) in parts
    )
    inertia = inertia + ball * (0.4 * 0.09 * np.eye(3) + (com @ com) * np.eye(3) - np.outer(com, com))
    assert model.link_mass[0] == pytest.approx(mass, rel=1e-13)
    np.testing.assert_allclose(model.link_com[0], com, atol=1e-13)
    np.testing.assert_allclose(unpack_inertia(model.link_inertia[0]), inertia, atol=1e-10 * mass)
    # the leaf's rest pose is seen from the trunk, which carries the twig
    np.testing.assert_allclose(model.link_position[1], (1, 0, 0))
    np.testing.assert_allclose(model.link_quat_wxyz[1], QUARTER_Z, atol=1e-15)


def test_free_joint_starts_from_the_parent():
    """MuJoCo: q is the pose itself, the rest pose of the link is nothing."""
    model = compile_scene(tree())
    assert model.link_position[3].tolist() == [0, 0, 0]
    assert model.link_quat_wxyz[3].tolist() == [1, 0, 0, 0]
    assert model.q_rest[6:].tolist() == [0, 0, 5, 1, 0, 0, 0]
    assert not model.q_zero[6:].any()
    assert model.primitive_kind[3:].tolist() == [Primitive.SLIDE] * 3 + [Primitive.BALL]
    assert model.primitive_axis[3:6].tolist() == np.eye(3).tolist()
    assert model.joint_frame[3].tolist() == np.eye(3).ravel().tolist()


def test_free_joint_ignores_axis_and_anchor():
    joint = Joint("free", axis=(0, 1, 0), anchor=(1, 2, 3))
    model = compile_scene(Scene(bodies=[Body("a", joints=[joint], shapes=[sphere(1)])]))
    assert model.primitive_axis[:3].tolist() == np.eye(3).tolist()
    assert not model.primitive_anchor.any()


def test_free_joint_on_a_welded_parent():
    """Its coordinates are the pose in the parent's frame, wherever that is welded."""
    pose = Body("post", position=(1, 2, 3), quat_wxyz=QUARTER_Z)
    child = Body("kite", parent="post", position=(0.1, 0.2, 0.3), joints=[Joint("free")], shapes=[sphere(0.1)])
    model = compile_scene(Scene(bodies=[pose, child]))
    assert model.q_rest.tolist() == [0.1, 0.2, 0.3, 1, 0, 0, 0]
    q = random_q(model, np.random.default_rng(0))
    expected = pose_matrix((1, 2, 3), QUARTER_Z) @ pose_matrix(q[:3], q[3:])
    np.testing.assert_allclose(body_poses(model, q)[1], expected, atol=1e-14)


@pytest.mark.parametrize(
    ("axis", "second"),
    [((0, 0, 2), (1, 0, 0)), ((3, 0, 0), (0, 1, 0)), ((0, -1, 0), (0, 0, 1)), (None, (1, 0, 0))],
)
def test_second_axis_is_chosen_when_missing(axis, second):
    frame = joint_frame(Joint("universal", axis=axis))
    assert frame[:, 1].tolist() == list(second)
    assert np.linalg.det(frame) == pytest.approx(1.0)


vectors = st.tuples(*[st.floats(-1, 1)] * 3)


@given(vectors.filter(lambda v: np.linalg.norm(v) > 1e-3), vectors)
def test_joint_frame_is_a_rotation(axis, axis2):
    given_second = np.linalg.norm(np.cross(axis, axis2)) > 1e-3
    frame = joint_frame(Joint("universal", axis=axis, axis2=axis2 if given_second else None))
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-9)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(frame[:, 0], np.array(axis) / np.linalg.norm(axis), atol=1e-12)


@pytest.mark.parametrize("kind", [name for name in JOINTS if JOINTS[name].nv])
def test_joint_table_is_expanded(kind):
    joint = Joint(kind, "j", axis=(1, 2, 3), axis2=(0, 1, 0), anchor=(0.1, 0.2, 0.3), pitch=0.5 * (kind == "screw"))
    model = compile_scene(Scene(bodies=[Body("a", joints=[joint], shapes=[box(1, 2, 3)])]))
    row, frame = JOINTS[kind], model.joint_frame[0].reshape(3, 3)
    assert (model.nq, model.nv) == (row.nq, row.nv)
    assert model.primitive_kind.tolist() == [int(primitive) for primitive, _ in row.primitives]
    for axis, (_, column) in zip(model.primitive_axis, row.primitives, strict=True):
        assert axis.tolist() == frame[:, column].tolist()
    if kind != "free":
        assert model.primitive_anchor.tolist() == [[0.1, 0.2, 0.3]] * len(row.primitives)
    assert model.primitive_pitch.tolist() == [0.5 * (kind == "screw")] * len(row.primitives)
    assert len(model.q_names) == model.nq
    assert len(set(model.q_names)) == model.nq
    assert model.dof_names == (("j",) if row.nv == 1 else tuple(f"j.{suffix}" for suffix in row.v_names))


def test_coordinate_names():
    model = compile_scene(tree())
    assert model.q_names[:6] == ("trunk", "leaf.qw", "leaf.qx", "leaf.qy", "leaf.qz", "fork")
    assert model.q_names[6:] == tuple(f"stone.{s}" for s in ("x", "y", "z", "qw", "qx", "qy", "qz"))
    assert model.dof_names[1:5] == ("leaf.wx", "leaf.wy", "leaf.wz", "fork")


def test_properties_of_degrees_of_freedom():
    joint = Joint(
        "universal",
        limits=(None, (-1, 2)),
        damping=(0.1, 0.2),
        armature=0.3,
        stiffness=4.0,
        spring=(0.5, 0.6),
        rest=(0.7, 0.8),
        friction=0.9,
    )
    ball = Joint("ball", cone=(0.4, 0.5), twist=(-0.1, 0.2), limit_centre=(3, 0, 4, 0))
    slim = Joint("hinge", limits=((-3, 3),))
    bodies = [Body(n, joints=[j], shapes=[box(1, 2, 3)]) for n, j in (("u", joint), ("b", ball), ("h", slim))]
    model = compile_scene(Scene(bodies=bodies))
    inf = np.inf
    assert model.dof_limits.tolist() == [[-inf, inf], [-1, 2], [-inf, inf], [-inf, inf], [-inf, inf], [-3, 3]]
    assert model.dof_damping[:2].tolist() == [0.1, 0.2]
    assert model.dof_armature[:2].tolist() == [0.3, 0.3]
    assert model.dof_stiffness[:3].tolist() == [4, 4, 0]
    assert model.q_spring.tolist() == [0.5, 0.6, 1, 0, 0, 0, 0]
    assert model.q_rest.tolist() == [0.7, 0.8, 1, 0, 0, 0, 0]
    assert model.joint_friction.tolist() == [0.9, 0, 0]
    assert model.joint_cone.tolist() == [[inf, inf], [0.4, 0.5], [inf, inf]]
    assert model.joint_twist.tolist() == [[-inf, inf], [-0.1, 0.2], [-inf, inf]]
    assert model.joint_limit_centre.ravel() == pytest.approx([1, 0, 0, 0, 0.6, 0, 0.8, 0, 1, 0, 0, 0], abs=1e-15)


def test_rest_pose_holds_at_rest_coordinates():
    """Whatever `rest` is, the bodies are where the scene puts them at q_rest."""
    joints = [Joint("hinge", axis=(1, 1, 0), anchor=(0.3, 0, 0), rest=0.7), Joint("slider", name="s", rest=-2.0)]
    base = Body("a", position=(1, 2, 3), quat_wxyz=(1, 2, 0, 0), joints=joints, shapes=[box(1, 2, 3)])
    tip = Body("b", parent="a", position=(0, 0, 1), joints=[Joint("screw", pitch=0.1, rest=4.0)], shapes=[sphere(1)])
    model = compile_scene(Scene(bodies=[base, tip]))
    assert model.joint_names == ("a_1", "s", "b")
    first = pose_matrix((1, 2, 3), quat_normalize((1, 2, 0, 0)))
    expected = [first, first @ pose_matrix((0, 0, 1), (1, 0, 0, 0))]
    np.testing.assert_allclose(body_poses(model, model.q_rest), expected, atol=1e-14)


def test_fixed_bodies_are_welded_at_rest():
    arm = Body("arm", motion="fixed", position=(0, 0, 1), joints=[Joint("hinge", rest=1.0)], shapes=[box(1, 1, 1)])
    hand = Body("hand", parent="arm", joints=[Joint("fixed")], position=(1, 0, 0))
    model = compile_scene(Scene(bodies=[arm, hand]))
    assert (model.n_links, model.nv, model.n_joints) == (0, 0, 0)
    assert model.body_link.tolist() == [-1, -1]
    assert model.body_position.tolist() == [[0, 0, 1], [1, 0, 1]]
    assert model.body_mass.tolist() == [1000, 0]


def test_kinematic_body_has_prescribed_freedom_and_starts_on_its_path():
    path = KeyedPath([0.0, 1.0], [(1, 2, 3), (2, 2, 3)])
    tray = Body("tray", motion="kinematic", path=path, shapes=[box(1, 1, 0.1)])
    cup = Body("cup", parent="tray", joints=[Joint("hinge")], shapes=[sphere(0.1)])
    model = compile_scene(Scene(bodies=[tray, cup]))
    assert model.joint_kinds == ("free", "hinge")
    assert model.dof_prescribed.tolist() == [1] * 6 + [0]
    assert model.q_rest[:7].tolist() == [1, 2, 3, 1, 0, 0, 0]


def test_empty_scene():
    model = compile_scene(Scene())
    assert (model.n_bodies, model.nq, model.nv) == (0, 0, 0)
    assert model.body_position.shape == (0, 3)
    assert model.dof_limits.shape == (0, 2)
    assert model.link_dof_start.tolist() == [0]


def test_arrays_are_read_only_and_typed():
    model = compile_scene(tree())
    for name, array in model.arrays().items():
        assert not array.flags.writeable, name
        assert array.dtype in (np.float64, np.int32), name
        assert not np.isnan(array).any(), name
    with pytest.raises(ValueError, match="read-only"):
        model.q_rest[0] = 1.0


def test_compiling_leaves_the_scene_alone():
    scene = tree()
    before = repr(vars(scene))
    scene.compile()
    assert repr(vars(scene)) == before


def test_numpy_numbers_are_taken():
    joint = Joint("hinge", axis=np.array((0, 1, 0)), limits=np.array((-1.0, 1.0)), damping=np.float32(0.5))
    body = Body("a", position=np.zeros(3), quat_wxyz=[2, 0, 0, 0], joints=[joint], shapes=[sphere(np.float64(0.1))])
    model = compile_scene(Scene(gravity=np.array((0, 0, -1.0)), bodies=[body]))
    assert model.dof_limits.tolist() == [[-1, 1]]
    assert model.body_quat_wxyz[0].tolist() == [1, 0, 0, 0]
    assert model.gravity.tolist() == [0, 0, -1]


def chain(count: int) -> Scene:
    bodies = [
        Body(
            f"link{k}",
            parent=f"link{k - 1}" if k else None,
            position=(0, 0, -1),
            joints=[Joint("hinge", axis=(0, 1, 0))],
            shapes=[capsule(0.05, 0.9, position=(0, 0, -0.5))],
        )
        for k in range(count)
    ]
    return Scene(bodies=bodies)


def test_long_chain():
    """Deeper than Python's recursion limit."""
    model = compile_scene(chain(5000))
    assert model.nv == 5000
    assert model.link_parent.tolist() == list(range(-1, 4999))
    assert model.link_root.max() == 0


def test_digest_tells_models_apart():
    base = tree().compile()
    assert base.digest() == tree().compile().digest()
    heavier = tree()
    heavier.bodies[2].shapes[0].density = 1001.0
    renamed = tree()
    renamed.bodies[5].name = "rock"
    lighter_air = tree()
    lighter_air.gravity = (0, 0, -9.80)
    digests = {scene.compile().digest() for scene in (heavier, renamed, lighter_air)}
    assert len(digests | {base.digest()}) == 4
    negative_zero = tree()
    negative_zero.gravity = (-0.0, 0.0, -9.81)
    assert negative_zero.compile().digest() == base.digest()
    changed = {name for name, part in heavier.compile().digests().items() if base.digests()[name] != part}
    assert changed == {"body_mass", "body_inertia", "link_mass", "link_com", "link_inertia"}


# ---------------------------------------------------------------------------------------------------- names


def test_lookup_by_name_and_last_part():
    scene = Scene(
        bodies=[
            Body("hero/pelvis", joints=[Joint("free")], shapes=[sphere(1)]),
            Body("hero/hand_r", "hero/pelvis", joints=[Joint("ball", "hero/wrist_r")], shapes=[sphere(1)]),
            Body("foe/pelvis", joints=[Joint("free")], shapes=[sphere(1)]),
        ]
    )
    model = scene.compile()
    assert model.body_index("hero/hand_r") == model.body_index("hand_r") == 1
    assert model.joint_index("wrist_r") == 1
    assert model.q_slice("wrist_r") == slice(7, 11)
    assert model.v_slice("hero/wrist_r") == slice(6, 9)
    assert model.dof_index("wrist_r.wy") == 7
    with pytest.raises(SceneError, match='body "pelvis" is ambiguous, it may be "hero/pelvis", "foe/pelvis"'):
        model.body_index("pelvis")
    with pytest.raises(SceneError, match='there is no body "hand_l", did you mean "hero/hand_r"'):
        model.body_index("hand_l")
    with pytest.raises(SceneError, match='there is no joint "wirst_r", did you mean "hero/wrist_r"'):
        model.q_slice("wirst_r")
    with pytest.raises(SceneError, match=r'no degree of freedom "wrist_r\.ww", did you mean "hero/wrist_r\.w.'):
        model.dof_index("wrist_r.ww")
    with pytest.raises(SceneError, match="the name of a body must be text, found 3"):
        model.body_index(3)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_trees_keep_parents_first(data):
    """Any tree in any order of listing: parents come first, children keep the order of the list."""
    count = data.draw(st.integers(1, 12))
    parents = [data.draw(st.integers(-1, k - 1)) for k in range(count)]
    kinds = [data.draw(st.sampled_from([*JOINTS])) for _ in range(count)]
    listing = data.draw(st.permutations(range(count)))
    bodies = [
        Body(
            f"b{k}",
            parent=f"b{parents[k]}" if parents[k] >= 0 else None,
            position=(0.1 * k, 0.2, 0.3),
            joints=[Joint(kinds[k])],
            shapes=[box(0.1, 0.2, 0.3)],
        )
        for k in listing
    ]
    model = compile_scene(Scene(bodies=bodies))
    assert (model.body_parent < np.arange(count)).all()
    assert (model.link_parent < np.arange(model.n_links)).all()
    assert (model.dof_parent < np.arange(model.nv)).all()
    listed = [f"b{k}" for k in listing]
    for parent in range(-1, count):
        children = [model.body_names[k] for k in np.flatnonzero(model.body_parent == parent)]
        assert children == sorted(children, key=listed.index)
    # the mass of all links and of what never moves is the mass of all bodies
    still = model.body_mass[model.body_link < 0].sum()
    assert model.link_mass.sum() + still == pytest.approx(model.body_mass.sum(), rel=1e-12)
    # the rest pose is that of the scene, composed from the root
    poses = body_poses(model, model.q_rest)
    for b, parent in enumerate(model.body_parent):
        own = pose_matrix((0.1 * int(model.body_names[b][1:]), 0.2, 0.3), (1, 0, 0, 0))
        np.testing.assert_allclose(poses[b], own if parent < 0 else poses[parent] @ own, atol=1e-13)
    assert len(link_poses(model, model.q_rest)) == model.n_links


def test_scenes_and_models_show_themselves_in_a_line():
    scene = tree()
    model = scene.compile()
    joints = sum(len(body.joints) for body in scene.bodies)
    assert repr(scene) == f"<Scene 'scene': bodies {len(scene.bodies)}, joints {joints}>"
    assert (
        repr(model) == f"<Model 'scene': n_bodies {len(scene.bodies)}, n_joints {joints}, nq {model.nq}, nv {model.nv}>"
    )
    scene.unsupported.append("what was lost")
    assert repr(scene).endswith(", unsupported 1>")
