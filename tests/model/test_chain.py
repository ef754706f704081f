"""Joints with many degrees of freedom as chains of single ones (KOK §3): the same poses, the same velocities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_kinematics import body_poses, random_q
from poise.model.errors import SceneError
from poise.model.joints import JOINTS
from poise.model.scene import Body, Joint, Keyframe, Scene
from poise.model.shapes import box, sphere
from poise.model.single_dof_chains import (
    GimbalLock,
    angles_from_quat,
    from_chain,
    quat_from_angles,
    single_dof_chain,
    spin_map,
    spin_map_rate,
    to_chain,
    velocity_map,
    velocity_map_rate,
)
from poise.motion import ConstantPath
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply


def menagerie() -> Scene:
    """Every kind of joint, off-centre and turned, several on one body, one kinematic body."""
    kinds = [kind for kind in JOINTS if JOINTS[kind].nv]
    bodies = [
        Body(
            "root",
            joints=[Joint("free")],
            position=(1, 2, 3),
            quat_wxyz=(1, 0.3, -0.2, 0.5),
            shapes=[box(0.1, 0.2, 0.3)],
        )
    ]
    for k, kind in enumerate(kinds):
        rest = None if JOINTS[kind].has_quaternion else tuple(0.1 * (i + 1) for i in range(JOINTS[kind].nq))
        joint = Joint(
            kind,
            axis=(1, 0.5, k),
            axis2=(0, 1, 0.3),
            anchor=(0.1, 0.2, 0.3 * k),
            pitch=0.2 * (kind == "screw"),
            rest=rest,
        )
        bodies.append(
            Body(
                kind,
                bodies[-1].name if k % 3 else "root",
                joints=[joint],
                position=(0.3, 0.1, 0.2),
                quat_wxyz=(1, 0.1, 0.2, 0.3),
                shapes=[box(0.2, 0.3, 0.4)],
            )
        )
    both = [Joint("universal", axis=(1, 0, 0), axis2=(0, 1, 0), anchor=(0, 0, 0.2)), Joint("slider", axis=(1, 1, 1))]
    bodies.append(Body("both", "ball", joints=both, position=(0, 0, 1), shapes=[box(0.1, 0.1, 0.2)]))
    bodies.append(Body("led", "root", motion="kinematic", path=ConstantPath((0, 1, 0)), shapes=[sphere(0.1)]))
    bodies.append(Body("weld", "both", position=(0, 0, 1), shapes=[sphere(0.1)]))
    return Scene(bodies=bodies)


@pytest.fixture(scope="module")
def models():
    scene = menagerie()
    return scene.compile(), single_dof_chain(scene).compile()


def test_structure(models):
    model, chain = models
    assert chain.nv == model.nv
    free = chain.dof_prescribed.astype(bool)
    assert chain.nq == model.nq - sum(JOINTS[k].has_quaternion for k in model.joint_kinds) + 1
    kinds = {kind for kind, joint in zip(chain.joint_kinds, chain.joint_names, strict=True) if joint != "led"}
    assert kinds == {"hinge", "slider", "screw"}
    assert free.sum() == 6
    # the first k − 1 links of a joint with k degrees of freedom weigh nothing and have no length
    assert (chain.link_mass > 0).sum() == (model.link_mass > 0).sum()
    massless = chain.link_mass == 0
    assert massless.sum() == chain.n_links - model.n_links
    assert chain.link_mass.sum() == pytest.approx(model.link_mass.sum(), rel=1e-14)
    assert chain.joint_names[:6] == ("root.x", "root.y", "root.z", "root.rx", "root.ry", "root.rz")
    assert "universal.turn2" in chain.joint_names
    assert "hinge" in chain.joint_names
    assert set(model.body_names) <= set(chain.body_names)


@pytest.mark.parametrize("seed", range(6))
def test_same_poses(models, seed):
    model, chain = models
    rng = np.random.default_rng(seed)
    q = random_q(model, rng) if seed else model.q_rest.copy()
    q_chain, _ = to_chain(model, chain, q, np.zeros(model.nv))
    order = [chain.body_index(name) for name in model.body_names]
    np.testing.assert_allclose(body_poses(chain, q_chain)[order], body_poses(model, q), atol=1e-12)


def test_rest_is_rest(models):
    model, chain = models
    q_chain, _ = to_chain(model, chain, model.q_rest, np.zeros(model.nv))
    np.testing.assert_allclose(q_chain, chain.q_rest, atol=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_there_and_back(models, seed):
    model, chain = models
    rng = np.random.default_rng(seed)
    q, v = random_q(model, rng), rng.normal(size=model.nv)
    q_back, v_back = from_chain(model, chain, *to_chain(model, chain, q, v))
    np.testing.assert_allclose(body_poses(model, q_back), body_poses(model, q), atol=1e-12)
    np.testing.assert_allclose(v_back, v, atol=1e-10)


def advanced(model, q, v, h):
    """Coordinates after moving with constant velocities for a time h."""
    ahead = q.copy()
    for j, kind in enumerate(model.joint_kinds):
        at, dof = model.joint_q_start[j], model.joint_v_start[j]
        if not JOINTS[kind].has_quaternion:
            ahead[at : at + JOINTS[kind].nq] += h * v[dof : dof + JOINTS[kind].nv]
            continue
        slides = JOINTS[kind].nv - 3
        ahead[at : at + slides] += h * v[dof : dof + slides]
        turn = quat_exp(h * v[dof + slides : dof + slides + 3])
        ahead[at + slides : at + slides + 4] = quat_multiply(q[at + slides : at + slides + 4], turn)
    return ahead


def test_velocities_move_the_same_way(models):
    """Central difference of the chain's coordinates along the model's motion; error of order h²."""
    model, chain = models
    rng = np.random.default_rng(3)
    q, v = random_q(model, rng), rng.normal(size=model.nv)
    h = 1e-5
    _, v_chain = to_chain(model, chain, q, v)
    ahead, _ = to_chain(model, chain, advanced(model, q, v, h), v)
    behind, _ = to_chain(model, chain, advanced(model, q, v, -h), v)
    scalar = [chain.q_slice(name).start for name in chain.joint_names if name != "led"]
    dofs = [chain.v_slice(name).start for name in chain.joint_names if name != "led"]
    np.testing.assert_allclose((ahead - behind)[scalar] / (2 * h), v_chain[dofs], atol=1e-6)


def test_velocity_map(models):
    model, chain = models
    rng = np.random.default_rng(5)
    q_chain, v_chain = to_chain(model, chain, random_q(model, rng), rng.normal(size=model.nv))
    matrix = velocity_map(model, chain, q_chain)
    np.testing.assert_allclose(matrix @ v_chain, from_chain(model, chain, q_chain, v_chain)[1], atol=1e-13)
    h = 1e-6
    step = np.zeros(chain.nq)
    for name in chain.joint_names:
        if name != "led":
            step[chain.q_slice(name)] = v_chain[chain.v_slice(name)]
    ahead, behind = (velocity_map(model, chain, q_chain + s * h * step) for s in (1, -1))
    rate = velocity_map_rate(model, chain, q_chain, v_chain)
    np.testing.assert_allclose(rate, (ahead - behind) / (2 * h), atol=1e-8)


def test_quaternions_from_chains_have_a_positive_real_part():
    """Of the two quaternions of a rotation always the same one, whatever the angles."""
    scene = Scene(bodies=[Body("b", joints=[Joint("ball")], shapes=[box(1, 2, 3)])])
    model, chain = scene.compile(), single_dof_chain(scene).compile()
    angles = np.array((3.0, 1.0, 3.0))
    assert quat_from_angles(angles)[0] < -0.4
    q, _ = from_chain(model, chain, angles, np.zeros(3))
    np.testing.assert_array_equal(q, -quat_from_angles(angles))


angle = st.floats(-3, 3)
middle = st.floats(-1.5, 1.5)


@given(angle, middle, angle)
def test_angles_and_quaternions(x, y, z):
    angles = np.array((x, y, z))
    np.testing.assert_allclose(angles_from_quat(quat_from_angles(angles)), angles, atol=1e-12 / np.cos(y))


@given(angle, middle, angle, st.tuples(angle, angle, angle))
def test_spin_map(x, y, z, rates):
    """ω from a central difference of the quaternion."""
    angles, rates = np.array((x, y, z)), np.array(rates)
    h = 1e-5
    behind, ahead = quat_from_angles(angles - h * rates), quat_from_angles(angles + h * rates)
    spin = quat_log(quat_multiply(quat_conjugate(behind), ahead)) / (2 * h)
    np.testing.assert_allclose(spin_map(angles) @ rates, spin, atol=1e-7)
    assert np.linalg.det(spin_map(angles)) == pytest.approx(np.cos(y), abs=1e-12)
    rate = (spin_map(angles + h * rates) - spin_map(angles - h * rates)) / (2 * h)
    np.testing.assert_allclose(spin_map_rate(angles, rates), rate, atol=1e-7)


def ball_scene(**options) -> Scene:
    return Scene(bodies=[Body("b", joints=[Joint("ball", **options)], shapes=[box(1, 2, 3)])])


@pytest.mark.parametrize("sign", [1, -1])
def test_gimbal_lock_is_told(sign):
    scene = ball_scene()
    model, chain = scene.compile(), single_dof_chain(scene).compile()
    locked = quat_exp(np.array((0, sign * np.pi / 2, 0)))
    with pytest.raises(GimbalLock, match=r'joint "b": the middle angle is -?1\.5708 rad, within 1e-06 of ±π/2'):
        to_chain(model, chain, locked, np.ones(3))
    near = quat_exp(np.array((0, sign * (np.pi / 2 - 1e-4), 0)))
    _, rates = to_chain(model, chain, near, np.array((1.0, 0, 0)))
    assert np.abs(rates).max() == pytest.approx(1e4, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [{"damping": 0.1}, {"armature": 0.1}, {"stiffness": 1.0}, {"friction": 1.0}, {"cone": 0.5}, {"twist": (-1, 1)}],
)
def test_ball_forces_are_refused_or_dropped(options):
    scene = ball_scene(**options)
    (name,) = options
    with pytest.raises(SceneError, match=f'body "b": joint "b": has no equal on three angles for its {name}'):
        single_dof_chain(scene)
    chain = single_dof_chain(scene, drop_ball_forces=True).compile()
    assert not chain.dof_damping.any()
    assert np.isinf(chain.dof_limits).all()


def test_properties_go_with_their_degree_of_freedom():
    joint = Joint(
        "cylindrical",
        "j",
        limits=((-1, 1), None),
        damping=(1, 2),
        armature=0.5,
        stiffness=3,
        spring=(0.1, 0.2),
        rest=(0.3, 0.4),
    )
    scene = Scene(bodies=[Body("b", joints=[joint], shapes=[box(1, 2, 3)])])
    model, chain = scene.compile(), single_dof_chain(scene).compile()
    assert chain.joint_names == ("j.slide", "j.turn")
    for name in ("dof_limits", "dof_damping", "dof_armature", "dof_stiffness", "q_rest", "q_spring"):
        assert getattr(chain, name).tolist() == getattr(model, name).tolist(), name


def test_keyframes_are_converted():
    scene = ball_scene()
    quat = tuple(quat_exp(np.array((0.3, 0, 0))).tolist())
    scene.keyframes = [Keyframe("tilted", 2.0, q=quat, v=(1, 0, 0)), Keyframe("rest")]
    tilted, rest = single_dof_chain(scene).keyframes
    assert tilted.q == pytest.approx((0.3, 0, 0))
    assert tilted.v == pytest.approx((1, 0, 0))
    assert (tilted.name, tilted.time, rest.q) == ("tilted", 2.0, None)


def test_names_that_are_taken():
    scene = ball_scene()
    scene.bodies.append(Body("b.1"))
    names = [body.name for body in single_dof_chain(scene).bodies]
    assert names == ["b.1'", "b.2", "b", "b.1"]


def test_the_scene_is_left_alone():
    scene = menagerie()
    before = repr(vars(scene))
    single_dof_chain(scene)
    assert repr(vars(scene)).replace("0x", "") == before.replace("0x", "")


def test_wrong_sizes_and_wrong_chain(models):
    model, chain = models
    with pytest.raises(SceneError, match=f"q: must be {model.nq} numbers, found an array of shape"):
        to_chain(model, chain, np.zeros(3), np.zeros(model.nv))
    with pytest.raises(SceneError, match=f"v: must be {model.nv} numbers"):
        from_chain(model, chain, np.zeros(chain.nq), np.zeros(2))
    with pytest.raises(SceneError, match="chain_model: not the chain of this model: it has no joint"):
        to_chain(model, ball_scene().compile(), model.q_rest, np.zeros(model.nv))


def test_bad_scenes_are_told():
    with pytest.raises(SceneError, match="is not a kind of joint"):
        single_dof_chain(ball_scene().__class__(bodies=[Body("a", joints=[Joint("hinje")])]))
