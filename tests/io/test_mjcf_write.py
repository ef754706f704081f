"""Scenes as MJCF: MuJoCo's own loader and ours agree with the scene on masses and forward dynamics."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import poise
from poise.model.contact_pairs import ContactPair
from poise.model.errors import SceneError

pytestmark = pytest.mark.filterwarnings("ignore::poise.io.LossWarning")


def rich_scene() -> poise.Scene:
    """Joints of every kind that MJCF can say, on a person too."""
    scene = poise.Scene(gravity=(0.3, 0.1, -9.81), dt=0.003)
    scene.add_ground(friction=0.6)
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 0.3))
    bar = poise.box(0.1, 0.2, 0.7, mass=1.3, position=(0.01, 0.02, -0.3))
    arm = scene.hinge(None, bar, name="arm", axis=(1, 2, 0.5), anchor=(0, 0.1, 0.2), position=(3, 0, 1))
    scene.body("arm").joints[0].rest, scene.body("arm").joints[0].limits = 0.3, (-1.0, 2.0)
    scene.body("arm").joints[0].stiffness, scene.body("arm").joints[0].damping = 4.0, 0.3
    scene.slider(arm, poise.capsule(0.05, 0.3), name="boom", axis="y", armature=0.2, spring=0.1, stiffness=30.0)
    scene.ball("boom", poise.ellipsoid(0.2, 0.3, 0.4), name="knob", position=(0, 0, -0.5), damping=0.02)
    turned = (0.9, 0.1, 0.2, -0.3)
    stick = poise.cylinder(0.04, 0.6, quat_wxyz=turned, position=(0.1, 0, 0))
    scene.universal(None, stick, name="stick", axis="x", axis2=(0.1, 1, 0), position=(5, 0, 1), damping=(0.1, 0.2))
    scene.cylindrical(None, poise.box(0.2, 0.3, 0.1), name="piston", axis=(0, 1, 1), position=(6, 0, 1))
    scene.planar(None, poise.sphere(0.2), name="puck", axis=(0.2, 0, 1), position=(7, 0, 1), quat_wxyz=turned)
    scene.weld("puck", poise.box(0.1, 0.1, 0.5), name="mast", position=(0, 0.1, 0.3))
    tetrahedron = [(0, 0, 0), (0.5, 0, 0), (0, 0.4, 0), (0, 0, 0.6)]
    scene.add(poise.convex(tetrahedron), name="rock", position=(9, 0, 1), quat_wxyz=turned)
    scene.motor("arm", stiffness=10.0, damping=1.0, target=0.7, speed=0.2, torque=0.5, limit=40.0)
    scene.motor("boom", damping=3.0, speed=1.0, gear=2.0)
    scene.couple("arm", "boom", (0.1, -2.0))
    return scene


def random_state(model, seed=0):
    rng = np.random.default_rng(seed)
    state = poise.dynamics.Simulation(model)
    v = rng.normal(size=model.nv)
    q = model.q_rest.copy()
    for j, kind in enumerate(model.joint_kinds):
        where = slice(int(model.joint_q_start[j]), int(model.joint_q_start[j + 1]))
        if kind in ("ball", "free"):
            quat = rng.normal(size=4)
            q[where][-4:] = quat / np.linalg.norm(quat)
        else:
            q[where] += rng.normal(size=where.stop - where.start)
    del state
    return q, v


def mujoco_acceleration(file, q, v, tau):
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    mujoco.mj_forward(model, data)
    return model, data.qacc.copy()


def test_mujoco_and_poise_read_the_same_dynamics(tmp_path):
    scene = rich_scene()
    model = scene.compile()
    lost = scene.save(tmp_path / "rich.xml")
    assert len([sentence for sentence in lost if "Cone and twist" in sentence]) == 6
    assert [sentence.partition(" have ")[0] for sentence in lost[6:]] == [
        'Contacts whose friction combines by "geometric"'
    ]
    q, v = random_state(model)
    tau = np.random.default_rng(1).normal(size=model.nv)
    wanted = poise.dynamics.forward_dynamics(model, q, v, tau)
    theirs, found = mujoco_acceleration(tmp_path / "rich.xml", q, v, tau)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, atol=1e-9 * scale)
    copy = poise.load(tmp_path / "rich.xml").compile()
    assert copy.nq == model.nq
    np.testing.assert_allclose(poise.dynamics.forward_dynamics(copy, q, v, tau), wanted, atol=1e-9 * scale)
    assert float(theirs.body_mass.sum()) == pytest.approx(float(model.body_mass.sum()), rel=1e-14)
    assert float(copy.body_mass.sum()) == pytest.approx(float(model.body_mass.sum()), rel=1e-14)
    names = [mujoco.mj_id2name(theirs, mujoco.mjtObj.mjOBJ_BODY, b) for b in range(1, theirs.nbody)]
    assert names == list(model.body_names)
    assert theirs.opt.timestep == 0.003


def test_motors_push_as_in_mujoco(tmp_path):
    scene = rich_scene()
    model = scene.compile()
    scene.save(tmp_path / "rich.xml")
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "rich.xml"))
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = random_state(model, 3)
    mujoco.mj_forward(theirs, data)
    x, speed = data.qpos[model.q_slice("arm")][0], data.qvel[model.v_slice("arm")][0]
    force = 0.5 + 10.0 * (0.7 - x) + 1.0 * (0.2 - speed)
    assert data.actuator_force[0] == pytest.approx(np.clip(force, -40.0, 40.0), rel=1e-12)
    speed = 2.0 * data.qvel[model.v_slice("boom")][0]
    assert data.actuator_force[1] == pytest.approx(3.0 * (1.0 - speed), rel=1e-12)
    assert theirs.eq_data[0][:2].tolist() == [0.1, -2.0]


def test_loops_and_couplings_survive(tmp_path):
    scene = poise.Scene()
    a = scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="a", axis="y", position=(0, 0, 0.5))
    b = scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="b", axis="y", position=(1, 0, 0.5))
    scene.loop("ball", a, b, position=(0.5, 0, 1), name="pin")
    scene.loop("fixed", b, None, position=(1, 0, 1), name="glue")
    scene.loop("hinge", a, None, position=(0, 0, 1), axis="y", name="lost")
    lost = scene.save(tmp_path / "loop.xml")
    assert lost == ['Loop "lost" is not kept: MJCF closes loops with balls and welds, not with a hinge.']
    copy = poise.load(tmp_path / "loop.xml").compile()
    for mine, theirs in zip(scene.compile().loops[:2], copy.loops, strict=True):
        assert (mine.name, mine.kind) == (theirs.name, theirs.kind)
        np.testing.assert_allclose(mine.point_a, theirs.point_a, atol=1e-15)
        np.testing.assert_allclose(mine.point_b, theirs.point_b, atol=1e-15)


def test_ground_shape_by_shape(tmp_path):
    scene = poise.Scene()
    rough = poise.Material(friction=0.4, torsional_friction=0.01, rolling_friction=0.002)
    scene.add(poise.plane(extent=(4, 6), material=rough, color=(0.1, 0.2, 0.3, 1.0)), name="floor", fixed=True)
    scene.add(poise.sphere(0.1, group=2, mask=4, margin=0.01, name="s"), name="ball", position=(0, 0, 1))
    scene.save(tmp_path / "a.xml")
    floor, ball = (body.shapes[0] for body in poise.load(tmp_path / "a.xml").bodies)
    assert floor.extent == (4.0, 6.0)
    assert floor.material == replace(rough, condim=6)
    assert floor.color == (0.1, 0.2, 0.3, 1.0)
    assert (ball.radius, ball.margin, ball.name) == (0.1, 0.01, "s")


def test_heights_are_where_they_were(tmp_path):
    heights = np.random.default_rng(0).uniform(-0.3, 0.5, size=(4, 6))
    scene = poise.Scene()
    scene.add(poise.height_field(heights, 5.0, 3.0), name="hill", fixed=True, position=(1, 2, 3))
    scene.save(tmp_path / "hill.xml")
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "hill.xml"))
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    geom = np.zeros(1, np.int32)
    for row in range(4):
        for column in range(6):
            # a little inside the border, where rays could miss
            x = 1 + (column / 5 - 0.5) * 5.0 * 0.999999
            y = 2 + (row / 3 - 0.5) * 3.0 * 0.999999
            distance = mujoco.mj_ray(
                theirs, data, np.array((x, y, 10.0)), np.array((0.0, 0.0, -1.0)), None, 1, -1, geom
            )
            assert 10.0 - distance == pytest.approx(3 + heights[row, column], abs=1e-4)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda s: s.screw(None, poise.sphere(0.1), name="j", pitch=0.01), 'Joint "j" turns without advancing'),
        (lambda s: s.add(poise.sphere(0.1, material=poise.Material(restitution=0.5)), name="j"), "restitution"),
        (lambda s: s.ball(None, poise.sphere(0.1), name="j", cone=1.0), 'Cone and twist of joint "j"'),
        (lambda s: (s.ball(None, poise.sphere(0.1), name="j"), s.motor("j", stiffness=1.0)), "it turns a ball"),
        (lambda s: (s.hinge(None, poise.sphere(0.1), name="j"), s.motor("j", damping=math.inf)), "gains are infinite"),
        (lambda s: s.controllers.append(("c", lambda: None)), 'The controller "c" is not kept'),
        (
            lambda s: s.add(poise.sphere(0.1), name="k", kinematic=poise.motion.OrbitPath((1, 0, 0), 1.0)),
            'The path of body "k" is not kept',
        ),
    ],
)
def test_what_mjcf_cannot_say_is_told_aloud(tmp_path, make, said):
    scene = poise.Scene()
    make(scene)
    with pytest.warns(poise.io.LossWarning, match=re.escape(said)):
        lost = scene.save(tmp_path / "a.xml")
    assert any(said in sentence for sentence in lost)
    mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml"))


def test_what_mjcf_can_say_warns_of_nothing(tmp_path, recwarn):
    scene = poise.Scene()
    scene.ball(None, poise.sphere(0.1), name="j", cone=1.0, twist=(-1.0, 1.0))
    assert scene.save(tmp_path / "a.xml") == []
    assert not recwarn.list
    joint = poise.load(tmp_path / "a.xml").joint("j")
    assert (joint.cone, joint.twist) == (1.0, (-1.0, 1.0))


def test_free_bodies_on_others_are_refused(tmp_path):
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="a")
    scene.add(poise.sphere(0.1), name="b", parent="a", joint="free")
    with pytest.raises(SceneError, match="in MJCF only those on the world are; leave parent out"):
        scene.save(tmp_path / "a.xml")
    assert not (tmp_path / "a.xml").exists()


def test_names_are_escaped(tmp_path):
    scene = poise.Scene(name='a<b>&"c"')
    scene.add(poise.sphere(0.1), name='x<y>&"z"/ü')
    scene.save(tmp_path / "a.xml")
    copy = poise.load(tmp_path / "a.xml")
    assert (copy.name, copy.bodies[0].name) == ('a<b>&"c"', 'x<y>&"z"/ü')


@pytest.mark.parametrize("name", ["a.xml", "a.yaml"])
def test_pairs_and_actuation_survive(name: str, tmp_path) -> None:
    """Contact pairs, also of shapes without names, gravity compensation, and ranges of what motors do together."""
    scene = poise.Scene()
    scene.add_ground()
    scene.hinge(None, poise.sphere(0.1, mass=2.0), name="arm", position=(0, 0, 1), actuator_force_range=(-3.0, 4.0))
    scene.add(poise.sphere(0.1, mass=1.0, group=1 << 30, mask=0), name="ball", position=(1, 0, 1))
    scene.body("arm").joints[0].actuator_gravity_compensation = True
    scene.body("arm").gravity_compensation = 0.5
    scene.motor("arm", stiffness=5.0)
    scene.motor("arm", name="more", damping=1.0)
    scene.contact_pairs = [
        ContactPair(("ground", 0), ("ball", 0), friction=0.3, torsional_friction=0.02, rolling_friction=0.01),
        ContactPair(("ball", 0), ("arm", 0), friction=0.0),
    ]
    scene.save(tmp_path / name)
    copy, first = poise.load(tmp_path / name).compile(), scene.compile()
    assert len(first.contact_pairs) == 2
    assert first.actuator_range.tolist() == [[-3.0, 4.0]]
    for field in ("contact_pairs", "contact_pair_friction", "compensated_mass", "compensated_com", "actuator_range"):
        assert getattr(copy, field).tolist() == getattr(first, field).tolist()
    assert copy.actuator_range_lifted.tolist() == [1]


def test_keyframes_survive(tmp_path) -> None:
    """With controls of what is kept: those of servos are forces in MJCF."""
    scene = poise.Scene()
    scene.hinge(None, poise.sphere(0.1), name="a", axis="y", position=(0, 0, 1))
    scene.hinge(None, poise.sphere(0.1), name="b", axis="y", position=(1, 0, 1))
    scene.ball(None, poise.sphere(0.1), name="c", position=(2, 0, 1))
    scene.motor("c", stiffness=3.0)
    scene.motor("a", stiffness=20.0, damping=1.0, target=0.3)
    scene.motor("b", damping=4.0, speed=0.5, gear=2.0)
    scene.motor("a", name="push", torque=0.25)
    q = (0.1, 0.2, 1.0, 0.0, 0.0, 0.0)
    scene.keyframes = [
        poise.model.Keyframe("bent", q=q, v=(0.5, 0, 0, 0, 0), control=(0.0, 0.7, 2.0, -1.0), time=0.5),
        poise.model.Keyframe("still", q=q),
    ]
    scene.save(tmp_path / "a.xml")
    world, copy = scene.build(dt=0.002), poise.load(tmp_path / "a.xml").build(dt=0.002)
    for name in ("bent", "still"):
        for either in (world, copy):
            either.reset()  # what a keyframe does not tell stays as it is
            either.reset(name)
        world.motor("c").stiffness = 0.0  # it turns a ball: not kept
        assert (copy.time, copy.q.tolist(), copy.v.tolist()) == (world.time, world.q.tolist(), world.v.tolist())
        world.step(30)
        copy.step(30)
        np.testing.assert_allclose(copy.q, world.q, rtol=1e-12)


def test_actuators_that_are_switched_off_stay_so(tmp_path) -> None:
    xml = (
        "<mujoco><option actuatorgroupdisable='2'/><worldbody><body pos='0 0 1'><joint name='a' axis='0 1 0'/>"
        "<geom size='0.1' pos='0.2 0 0'/></body></worldbody>"
        "<actuator><motor joint='a' name='off' group='2'/><motor joint='a' name='on' group='1'/></actuator></mujoco>"
    )
    scene = poise.io.load_mjcf(xml)
    assert scene.save(tmp_path / "a.xml") == []
    copy = poise.load(tmp_path / "a.xml")
    for loaded in (scene, copy):
        world = loaded.build(dt=0.002)
        world.ctrl[:] = 3.0, 0.1
        world.step(50)
        assert [world.motor(name).force for name in ("off", "on")] == [0.0, 0.1]
