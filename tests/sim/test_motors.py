"""Motors: the implicit law of springs and dampers, bounds, what MuJoCo's actuators do, lanes, bad input."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.batch.world_checks import width_of
from poise.formulations.driver import Stepper
from poise.formulations.stages.smooth_motion import SMALL
from poise.formulations.step_status import DONE
from poise.kernel.memory import F64, Width
from poise.model.model import Model
from python_calls import count_calls

EXACT = poise.Reduced(tolerance=1e-12)


def chain() -> poise.Scene:
    """A joint of every kind that has scalar coordinates, and a ball, one after the other; links touch nothing."""
    scene = poise.Scene()
    parent = None
    for kind in ("hinge", "universal", "slider", "cylindrical", "ball", "screw", "planar"):
        options = {"pitch": 0.1} if kind == "screw" else {}
        join = getattr(scene, kind)
        parent = join(
            parent,
            poise.box(0.1, 0.12, 0.3, mass=1.0, group=0, mask=0),
            name=kind,
            axis="x",
            position=(0, 0, -0.35),
            **options,
        )
    return scene


def motors(scene: poise.Scene, **options) -> None:
    """A motor for each coordinate, one for the ball."""
    for name in scene.compile().dof_names:
        if not name.startswith("ball"):
            scene.motor(name, **options)
    scene.motor("ball", **options)


def arm(limit: float | None = None, gravity: float = 0.0, rub: float = 0.0, **options) -> poise.World:
    """A rod of 1 m and 3 kg, I = 1 kg·m² about its end, with a motor there."""
    scene = poise.Scene(gravity=(0, 0, -gravity))
    rod = poise.model.Body("arm", inertia=poise.model.Inertia(3.0, com=(0, 0, -0.5), moments=(0.25, 0.25, 0.01)))
    scene.hinge(None, rod, axis="y", damping=rub)
    scene.motor("arm", limit=limit, **options)
    return scene.build(EXACT, dt=0.01)


def test_unbounded_motors_are_drives_folded_into_the_inertia() -> None:
    """Rows and the diagonal of the articulated inertia are two ways to write one backward Euler step.

    A tree with rows takes the semi-implicit step, one without takes velocity products from the middle of it: a motor of
    1e-14 N·m·s/rad gives the tree with drives a row as well. Each step leaves the solver's tolerance times its speeds,
    and dampers let that grow no further.
    """
    scene, other = chain(), chain()
    motors(scene, stiffness=120.0, damping=9.0)
    other.motor("hinge", damping=1e-14)
    world, driven = scene.build(EXACT, dt=0.01), other.build(EXACT, dt=0.01)
    plain = driven.model
    rng = np.random.default_rng(1)
    goal = plain.q_rest + 0.4 * rng.normal(size=plain.nq)
    ball = plain.q_slice("ball")
    goal[ball] = (0.9, 0.3, -0.2, 0.1) / np.linalg.norm((0.9, 0.3, -0.2, 0.1))
    driven.drive = poise.dynamics.Drive(120.0, 9.0, goal)
    for name in world.motors:
        place = plain.q_names.index(name) if name in plain.q_names else ball
        world.motor(name).target = goal[place]
    left = 0.0
    for _ in range(100):
        world.step()
        driven.step()
        left += EXACT.tolerance * max(1.0, np.abs(driven.v).max())
    assert np.abs(driven.q - plain.q_rest).max() > 0.1
    assert world.q == pytest.approx(driven.q, abs=left)
    assert world.v == pytest.approx(driven.v, abs=left)
    told = world.report().motors
    for d, name in enumerate(plain.dof_names):
        force = told["ball"][d - plain.v_slice("ball").start] if name.startswith("ball") else told[name]
        assert force == pytest.approx(driven.drive_forces[d], abs=1e-6)


def test_a_limit_holds() -> None:
    """Far from its target a motor pushes as hard as it may: q = f t²/(2 I), by semi-implicit Euler f h² n(n + 1)/2."""
    world = arm(limit=2.0, stiffness=1e4, damping=10.0, target=3.0)
    world.step(50)
    assert world.motor("arm").force == 2.0
    assert world.v[0] == pytest.approx(2.0 * 0.5, rel=1e-12)
    assert world.q[0] == pytest.approx(2.0 * 0.01**2 * 50 * 51 / 2, rel=1e-12)
    world.motor("arm").limit = (-0.5, 0.0)
    world.step()
    assert abs(world.motor("arm").force) <= 1e-12


@pytest.mark.parametrize(
    ("limit", "target", "force"),
    [
        ((5.0, 10.0), 0.0, 5.0),
        ((5.0, 10.0), 100.0, 10.0),
        ((5.0, np.inf), -100.0, 5.0),
        ((5.0, np.inf), 100.0, 1e4 / (1 + 1e2 * 0.01**2)),
        ((-10.0, -5.0), 0.0, -5.0),
        ((-np.inf, -5.0), 100.0, -5.0),
        ((0.0, np.inf), -100.0, 0.0),
        ((0.0, np.inf), 100.0, 1e4 / (1 + 1e2 * 0.01**2)),
        ((4.0, 4.0), 100.0, 4.0),
        ((0.0, 0.0), 100.0, 0.0),
    ],
)
def test_limits_may_leave_out_nought(limit: tuple[float, float], target: float, force: float) -> None:
    """Within its limit the force is k (target − q⁺), q⁺ = h² f with I = 1 and from rest."""
    world = arm(limit=limit, stiffness=100.0, target=target)
    world.step()
    assert world.motor("arm").force == pytest.approx(force, rel=1e-9, abs=1e-12)
    assert world.v[0] == pytest.approx(force * 0.01, rel=1e-9, abs=1e-12)


def test_a_motor_that_only_pushes_mends_no_errors() -> None:
    """It is no contact: displacements, which mend those, leave it alone, and contacts beside it are as they were."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.095))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", name="arm", position=(5, 0, 3))
    scene.motor("arm", stiffness=10.0, damping=1.0, limit=(0.0, np.inf), target=-1.0)
    world = scene.build(EXACT, dt=1 / 240)
    arm_alone = world.q[-1]
    world.step(24)
    assert world.q[2] > 0.099
    assert world.q[-1] == pytest.approx(arm_alone, abs=1e-9)


def test_a_servo_that_is_too_weak_gives_way_to_gravity() -> None:
    """It rests where gravity is as strong: 3 kg · 9.81 m/s² · 0.5 m · sin q = 10 N·m."""
    weak, strong = (arm(limit=f, gravity=9.81, stiffness=1e5, damping=1e3, target=1.2, rub=20.0) for f in (10.0, 20.0))
    for world in (weak, strong):
        world.step(3000)
    assert strong.q[0] == pytest.approx(1.2 - 14.715 * np.sin(1.2) / 1e5, abs=1e-6)
    assert weak.q[0] == pytest.approx(np.arcsin(10.0 / 14.715), abs=1e-6)
    assert strong.motor("arm").force == pytest.approx(14.715 * np.sin(strong.q[0]), rel=1e-5)


@pytest.mark.parametrize("damping", [np.inf, 50.0])
def test_a_speed_is_reached_and_kept(damping: float) -> None:
    """I = 1: at most 2 rad/s² until then; with finite damping the implicit step ends at the speed too."""
    world = arm(limit=2.0, damping=damping, speed=0.3)
    world.step(10)
    assert world.v[0] == pytest.approx(0.2, rel=1e-12)
    world.step(100)
    assert world.v[0] == pytest.approx(0.3, rel=1e-9)


def test_an_infinite_stiffness_is_there_in_a_step() -> None:
    world = arm(stiffness=np.inf, target=0.25)
    world.step()
    assert world.q[0] == pytest.approx(0.25, abs=1e-12)
    world.motor("arm").target = 0.3
    world.motor("arm").limit = 1.0
    world.step()
    assert world.v[0] == pytest.approx(25.0 - 0.01, rel=1e-9)


def test_an_acceleration_is_had() -> None:
    world = arm(gravity=9.81, limit=100.0)
    assert world.motor("arm").acceleration is None
    world.motor("arm").acceleration = 1.5
    world.step(100)
    assert world.v[0] == pytest.approx(1.5, rel=1e-9)
    world.motor("arm").acceleration = None
    world.step()
    assert world.motor("arm").force == 0.0


def test_a_torque_is_a_force_on_the_coordinate() -> None:
    world = arm(torque=0.7, limit=0.5)
    world.step(10)
    assert world.v[0] == pytest.approx(0.5 * 0.1, rel=1e-12)
    assert world.motor("arm").force == 0.5
    assert world.report().rows == 0
    assert (world.tau == 0.0).all()
    world.motor("arm").torque = -0.3
    world.step()
    assert world.motor("arm").force == -0.3


def test_a_force_is_that_of_the_last_step() -> None:
    world = arm(torque=0.7)
    assert world.motor("arm").force == 0.0
    world.step()
    saved = world.state
    world.motor("arm").torque = -0.3
    assert world.motor("arm").force == 0.7
    assert world.report().motors == {"arm": 0.7}
    world.step()
    assert world.motor("arm").force == -0.3
    world.state = saved
    assert world.motor("arm").force == 0.7
    assert copy.deepcopy(world).motor("arm").force == 0.7


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_torques_of_motors_are_told_once(level: str) -> None:
    """Passive forces are those of the joint's damper alone: −c q̇⁺."""
    scene = poise.Scene(gravity=(0, 0, 0))
    rod = poise.model.Body("arm", inertia=poise.model.Inertia(3.0, com=(0, 0, -0.5), moments=(0.25, 0.25, 0.01)))
    scene.hinge(None, rod, axis="y", damping=2.0)
    scene.motor("arm", torque=0.7, gear=3.0)
    world = scene.build(poise.Reduced(level=level), dt=0.01)
    for _ in range(3):
        world.step()
        told = world.report()
        assert told.motors == {"arm": 0.7}
        assert told.passive == pytest.approx(-2.0 * world.v, rel=1e-9)
        world.motor("arm").torque = 0.1  # acts from the next step on
        assert world.report().passive == pytest.approx(told.passive, rel=1e-12)
        world.motor("arm").torque = 0.7
    told = world.run(0.01, record=("torques",))
    assert told.torques["passive"][-1] == pytest.approx(-2.0 * world.v, rel=1e-9)


def test_a_joint_feels_the_torque_of_its_motor() -> None:
    world = arm(torque=0.7, rub=2.0)
    world.step()
    assert poise.sim.sensors.JointSensor("arm").read(world).torque == pytest.approx(world.a, rel=1e-9)


def test_weak_springs_do_not_make_contacts_careless() -> None:
    """A spring far from home wants any speed at all; tolerances are those of speeds that rows take away."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.1))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", name="arm", position=(5, 0, 3))
    scene.motor("arm", stiffness=1e-3, target=100.0, limit=1.0)
    world = scene.build(dt=1 / 240)
    world.step(240)
    assert abs(world.v[2]) < 1e-4
    assert abs(world.q[2] - 0.1) < 1e-5


# ---- MuJoCo ----------------------------------------------------------------------------------------------------------

MJCF = """
<mujoco>
  <option timestep="0.001" integrator="Euler"/> <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 2">
      <joint name="a" type="hinge" axis="0 1 0"/> <geom type="box" size="0.05 0.05 0.2" mass="1"/>
      <body pos="0 0 -0.4">
        <joint name="b" type="hinge" axis="1 0 0"/> <geom type="box" size="0.05 0.05 0.2" mass="1"/>
        <body pos="0 0 -0.4">
          <joint name="c" type="slide" axis="0 0 1"/> <geom type="box" size="0.05 0.05 0.2" mass="1"/>
          <body pos="0 0 -0.4"> <joint name="d" type="ball"/> <geom type="box" size="0.05 0.08 0.2" mass="1"/> </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="a" coef="0.5"/><joint joint="b" coef="-2"/></fixed></tendon>
  <actuator>
    <motor name="torque" joint="a" gear="30" ctrlrange="-0.4 0.4" ctrllimited="true"/>
    <position name="place" joint="b" kp="40" kv="2" gear="1.5"/>
    <velocity name="pace" joint="c" kv="5" forcerange="-3 3" forcelimited="true"/>
    <general name="mixed" joint="a" gainprm="3" biastype="affine" biasprm="0.5 -2 -0.3"/>
    <damper name="damper" joint="b" kv="2" ctrlrange="0 1"/>
    <motor name="turn" joint="d" gear="0.3 -0.2 0.5"/>
    <motor name="pull" tendon="t" gear="2"/>
  </actuator>
  <keyframe><key name="go" qpos="0.3 -0.2 0.1 1 0 0 0" ctrl="0.1 0.2 0 0 0.5 1 0"/></keyframe>
</mujoco>
"""


def test_mujoco_actuators_push_as_in_mujoco(tmp_path) -> None:
    """What is implicit here and explicit there differs by the order of the step: the limit of small steps is asked for.

    From two steps, h and h/2, what is left of it is of second order: a share of 2.5e-11 where h kv / I is at most 5e-6.
    More is left of the rounding of velocities: each is a sum of five or less. Both steps are so short that velocity
    products are those of their beginning: forces change them by less than SMALL.
    """
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "drives.xml").write_text(MJCF)
    scene = poise.load(tmp_path / "drives.xml")
    theirs = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(theirs)
    rng = np.random.default_rng(2)
    for _ in range(5):
        quat = rng.normal(size=4)
        q = np.concatenate((0.3 * rng.normal(size=3), quat / np.linalg.norm(quat)))
        v, ctrl = rng.normal(size=6), rng.normal(size=7)
        ctrl[4] = abs(ctrl[4])
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, ctrl
        mujoco.mj_forward(theirs, data)
        h = min(1e-7, SMALL / (np.abs(data.qacc).max() * np.abs(v).sum()))  # no link turns faster than all joints do
        found = []
        for dt in (h, 0.5 * h):
            world = scene.build(EXACT, dt=dt)
            world.q[...], world.v[...], world.ctrl[...] = q, v, ctrl
            world.step()
            told = [world.report().motors[name] for name in world.motors]
            found.append(np.concatenate(((world.v - v) / dt, told)))
        expected = np.concatenate((data.qacc, data.actuator_force))
        limit = 2.0 * found[1] - found[0]
        rounding = 4 * 0.5 * np.finfo(float).eps * np.abs(v).max()  # of a velocity
        assert limit == pytest.approx(expected, abs=(4.0 + 1.0) * rounding / h + 2.5e-11 * np.abs(expected).max())


def test_a_keyframe_sets_controls(tmp_path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "drives.xml").write_text(MJCF)
    scene = poise.load(tmp_path / "drives.xml")
    world = scene.build()
    world.state = poise.State.from_keyframe(scene, "go", world.model)
    world.step()
    assert world.motor("torque").force == pytest.approx(0.1)
    assert world.motor("place").target == 0.2


def test_a_keyframe_sets_controls_that_motors_have_left() -> None:
    """The control is what it was last, but the motor was set by name since then."""
    scene = poise.Scene(keyframes=[poise.Keyframe("up", q=(0.3,), control=(0.3,))])
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.motor("arm", stiffness=50.0, damping=5.0)
    world = scene.build()
    world.reset("up")
    assert world.motor("arm").target == 0.3
    world.motor("arm").target = -1.0
    world.reset("up")
    world.step()
    assert world.motor("arm").target == 0.3
    world.motor("arm").target = -1.0
    saved = world.state
    world.motor("arm").target = 2.0
    world.state = saved
    assert world.motor("arm").target == -1.0


def test_what_does_nothing_tells_no_force(tmp_path) -> None:
    """Actuators with activation are not simulated: their controls push nothing."""
    pytest.importorskip("mujoco")
    lazy = '<general name="lazy" joint="a" dyntype="filter" dynprm="0.1" gainprm="2"/></actuator>'
    (tmp_path / "lazy.xml").write_text(MJCF.replace("</actuator>", lazy).replace(' ctrl="0.1 0.2 0 0 0.5 1 0"', ""))
    world = poise.load(tmp_path / "lazy.xml").build(dt=0.01)
    world.ctrl[world.motors.index("lazy")] = 3.0
    world.step()
    assert world.motor("lazy").force == 0.0
    assert world.report().motors["lazy"] == 0.0


def test_a_robot_of_urdf_has_its_effort_as_limit(tmp_path) -> None:
    (tmp_path / "r.urdf").write_text(
        '<robot name="r"><link name="base"/><link name="tip"><inertial><mass value="1"/><origin xyz="0 0 -1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">'
        '<parent link="base"/><child link="tip"/><axis xyz="0 1 0"/><limit effort="5" velocity="2"/></joint></robot>'
    )
    world = poise.load(tmp_path / "r.urdf").build(dt=0.01)
    world.ctrl[0] = 7.0
    world.step()
    assert world.motor("j").force == 5.0


# ---- acceleration level ----------------------------------------------------------------------------------------------


def test_at_acceleration_level_motors_are_forces() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    rod = poise.model.Body("arm", inertia=poise.model.Inertia(3.0, com=(0, 0, -0.5), moments=(0.25, 0.25, 0.01)))
    scene.hinge(None, rod, axis="y")
    scene.motor("arm", torque=0.7, limit=0.5)
    world = scene.build(poise.Reduced(level="acceleration"), dt=0.01)
    world.step(10)
    assert world.v[0] == pytest.approx(0.05, rel=1e-9)
    assert world.report().motors == {"arm": 0.5}
    saved = world.state
    world.motor("arm").torque = 0.1
    world.state = saved
    assert world.motor("arm").torque == 0.7
    world.motor("arm").stiffness = float("inf")
    with pytest.raises(ValueError, match='motor "arm" has an infinite stiffness or damping'):
        world.step()


# ---- state -----------------------------------------------------------------------------------------------------------


def test_going_back_takes_targets_along_bit_for_bit(tmp_path) -> None:
    scene = chain()
    motors(scene, stiffness=50.0, damping=4.0, limit=6.0)
    world = scene.build(dt=0.01)
    world.motor("ball").target = (0.8, 0.6, 0, 0)
    world.ctrl[0] = 0.7
    world.step(20)
    saved, twin = world.state, copy.deepcopy(world)
    saved.save(tmp_path / "s.npz", world.model)
    world.step(20)
    end = world.state
    world.motor("hinge").target = -1.0
    world.motor("ball").target = (1, 0, 0, 0)
    world.motor("ball").limit = 1.0
    world.ctrl[1] = 0.3
    world.step(5)
    world.state = saved
    world.step(20)
    assert world.state.same_bits(end)
    twin.step(20)
    assert twin.state.same_bits(end)
    other = scene.build(dt=0.01)
    other.state = poise.State.load(tmp_path / "s.npz", other.model)
    other.step(20)
    assert other.state.same_bits(end)


@pytest.mark.parametrize(("width", "exact"), [(width_of("f64"), 1e-9), (width_of("f32"), 3e-3)], ids=str)
def test_lanes_step_as_each_world_alone(width: Width, exact: float) -> None:
    scene = chain()
    motors(scene, stiffness=50.0, damping=4.0, limit=4.0)
    scene.motor("hinge", "torque only")
    model: Model = scene.compile()
    rng = np.random.default_rng(4)
    n = len(model.motors) + 2
    target, stiffness = 0.5 * rng.normal(size=(n, width.lanes)), np.full((n, width.lanes), 50.0)
    stiffness[0, ::2] = 0.0  # a motor that has no row in some worlds, for its damping is nought too
    torque = rng.normal(size=(n, width.lanes))
    tolerance = 1e-11 if width.elem == "f64" else 1e-5

    def stepper(width: Width, lane: int | None) -> Stepper:
        one = Stepper(model, width, split=False, tolerance=tolerance, sweeps=400)
        part = slice(None) if lane is None else lane
        for name, values in (("target", target), ("stiffness", stiffness), ("torque", torque)):
            one.extras.motors.arrays[name][: n - 1] = values[: n - 1, part]
        one.extras.motors.damping[0] = np.where(stiffness[0, part] > 0.0, 4.0, 0.0)
        for _ in range(60):
            assert one.step(1 / 240) == DONE
        return one

    together = stepper(width, None)
    for lane in range(width.lanes):
        alone = stepper(F64, lane)
        assert together.space.s.q[:, lane] == pytest.approx(alone.space.s.q, abs=exact)


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.motor("elbow"), 'actuator "elbow": target: there is no joint "elbow"'),
        (lambda s: s.motor("planar"), '"planar" has several coordinates; name one of "planar.x"'),
        (lambda s: s.motor(3), "must be the name of a joint, found 3"),
        (lambda s: s.motor("hinge", stiffness=-1.0), "stiffness: must be 0 or more, found -1"),
        (lambda s: s.motor("hinge", damping=np.nan), "damping: must be a finite number, found nan"),
        (lambda s: s.motor("hinge", target="up"), "target: must be a number, found 'up'"),
        (lambda s: s.motor("ball", target=0.3), "target: must be 4 numbers"),
        (lambda s: s.motor("hinge", limit=-2.0), "limit: must be 0 or more, or a pair"),
        (lambda s: s.motor("hinge", limit="strong"), "limit: must be a force or a pair"),
        (lambda s: (s.motor("hinge"), s.motor("hinge")), 'there is a motor "hinge" already'),
        (lambda s: s.motor("hinge", gear=np.inf), "gear\\[0\\]: must be a finite number"),
    ],
)
def test_a_motor_that_cannot_be(call, message: str) -> None:
    def build() -> None:
        scene = chain()
        call(scene)
        scene.compile()

    with pytest.raises(poise.SceneError, match=message):
        build()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", np.nan),
        ("target", (1, 2)),
        ("speed", "fast"),
        ("stiffness", -1.0),
        ("damping", np.nan),
        ("limit", -1.0),
        ("limit", (2.0, 1.0)),
        ("limit", (np.nan, 1.0)),
        ("acceleration", np.inf),
        ("torque", None),
    ],
)
def test_settings_that_cannot_be(field: str, value: object) -> None:
    world = arm()
    with pytest.raises(ValueError, match=f"^{field} is "):
        setattr(world.motor("arm"), field, value)


def test_motors_that_are_not_there() -> None:
    world = arm()
    with pytest.raises(ValueError, match='there is no motor "leg"'):
        world.motor("leg")
    with pytest.raises(ValueError, match="motor 3: there are 1"):
        world.motor(3)
    with pytest.raises(ValueError, match="ctrl must be 1 finite numbers"):
        world.ctrl = [1.0, 2.0]
    world.ctrl[0] = np.nan
    with pytest.raises(ValueError, match=r"ctrl\[0\] is nan"):
        world.step()
    world.step()


# ---- goals without bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [poise.Reduced, poise.Maximal])
@pytest.mark.parametrize("much", [1e3, -1e5, 1e7, 1e10, 1e100, -1e308])
@pytest.mark.parametrize("goal", ["target", "speed", "torque", "acceleration"])
def test_a_motor_with_a_goal_out_of_reach_pushes_with_its_limit(kind, much: float, goal: str) -> None:
    """However far the goal is: f = limit, and the arm gains limit · h / I about its end."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=3.0), name="arm", axis="y", anchor=(0, 0, 0.5))
    scene.motor("arm", stiffness=20.0, damping=2.0, limit=15.0)
    world = scene.build(kind(), dt=1 / 240)
    setattr(world.motor("arm"), goal, much)
    world.step()
    inertia = 3.0 * (1.0 + 0.01) / 12 + 3.0 * 0.25
    assert world.motor("arm").force == pytest.approx(np.sign(much) * 15.0, rel=1e-3)
    assert world.v[0] == pytest.approx(np.sign(much) * 15.0 / 240 / inertia, rel=1e-3)


def test_a_goal_out_of_reach_does_not_loosen_the_tolerance_of_what_it_pushes() -> None:
    """A cart with a motor of 5 N towards 1e9 m rests against a wall, which bears 5 N."""
    scene = poise.Scene()
    scene.add_ground(friction=0.0)
    scene.add(poise.box(0.2, 1.0, 1.0), name="wall", position=(0.6, 0, 0.5), fixed=True)
    scene.slider(None, poise.box(0.2, 0.2, 0.2, mass=2.0), name="cart", axis="x", position=(0.4, 0, 0.1))
    scene.motor("cart", stiffness=10.0, damping=1.0, limit=5.0)
    world = scene.build(dt=1 / 240)
    world.motor("cart").target = 1e9
    world.step(20)
    push = sum((c.force for c in world.report().contacts if "wall" in (c.body_a, c.body_b)), np.zeros(3))
    assert abs(float(push[0])) == pytest.approx(5.0, rel=1e-3)


FORMULATIONS = {
    "reduced": poise.Reduced(),
    "maximal": poise.Maximal(),
    "maximal, momentum": poise.Maximal(turning="momentum"),
    "maximal, pgs": poise.Maximal(solver="pgs", stabilization="speed"),
    "maximal, dantzig": poise.Maximal(solver="dantzig", stabilization="speed"),
    "reduced, acceleration": poise.Reduced(level="acceleration"),
    "reduced, acceleration, euler": poise.Reduced(level="acceleration", integrator="euler"),
    "maximal, acceleration": poise.Maximal(level="acceleration"),
}


@pytest.mark.filterwarnings("ignore::poise.FormulationWarning")
@pytest.mark.parametrize("goal", ["target", "speed", "torque", "acceleration"])
@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_goal_out_of_reach_changes_no_force_beside_it_in_any_formulation(name: str, goal: str) -> None:
    """Two arms with motors, and a box that lies on the ground: forces are those of a goal that is just out of reach."""

    def forces(much: float) -> list[float]:
        scene = poise.Scene()
        scene.add_ground(friction=0.5)
        upper, lower = poise.box(0.1, 0.1, 1.0, mass=3.0), poise.box(0.1, 0.1, 0.5, mass=1.0)
        scene.hinge(None, upper, name="upper", axis="y", anchor=(0, 0, 0.5), position=(2, 0, 2))
        scene.hinge("upper", lower, name="lower", axis="y", anchor=(0, 0, 0.25), position=(0, 0, -0.75))
        scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box", position=(0, 0, 0.1))
        for arm in ("upper", "lower"):
            scene.motor(arm, stiffness=20.0, damping=2.0, limit=15.0)
        world = scene.build(FORMULATIONS[name], dt=1 / 240)
        setattr(world.motor("upper"), goal, much)
        world.motor("lower").target = 1.0
        world.step(2)
        lifted = float(sum(contact.force[2] for contact in world.report().contacts))
        return [world.motor("upper").force, world.motor("lower").force, lifted]

    near = forces(100.0)
    assert near[0] == pytest.approx(15.0, rel=1e-3)
    assert near[2] == pytest.approx(2.0 * 9.81, rel=1e-3)
    for much in (1e4, 1e7, 1e10, 1e100):
        assert forces(much) == pytest.approx(near, rel=1e-3)


def test_a_control_that_makes_a_goal_infinite_is_refused_by_its_name() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="arm", axis="y", anchor=(0, 0, 0.5))
    scene.motor("arm", stiffness=20.0, damping=2.0, limit=15.0)
    (motor,) = scene.compile().motors
    model = scene.compile()
    object.__setattr__(model, "motors", (motor._replace(gain=10.0),))
    world = poise.World(model)
    world.ctrl[0] = 1e308
    with pytest.raises(ValueError, match=r'ctrl\[0\] is 1e\+308; the target of motor "arm" is not finite then'):
        world.step()
    world.step()


def row_of_motors(n: int) -> poise.World:
    """N arms side by side, each with a motor: targets, speeds and torques in turn."""
    scene = poise.Scene(gravity=(0, 0, 0))
    for k in range(n):
        rod = poise.box(0.1, 0.1, 0.5, mass=1.0, group=0, mask=0)
        scene.hinge(None, rod, axis="y", anchor=(0, 0, 0.25), position=(k, 0, 0), name=f"arm {k}")
        options = ({"stiffness": 20.0, "damping": 2.0}, {"damping": 2.0}, {})[k % 3]
        scene.motor(f"arm {k}", name=f"motor {k}", **options)
    model = scene.compile()
    ranges = {"control_low": -0.5, "control_high": 0.75, "gain": 1.1, "offset": 0.3}
    kinds = ("target", "speed", "torque")
    changed = tuple(motor._replace(control=kinds[k % 3], **ranges) for k, motor in enumerate(model.motors))
    object.__setattr__(model, "motors", changed)
    return poise.World(model)


def test_new_controls_cost_as_many_calls_for_a_hundred_motors_as_for_ten() -> None:
    counts = []
    for n in (10, 100):
        world, rng = row_of_motors(n), np.random.default_rng(n)
        world.step()

        def act(world: poise.World = world, rng: np.random.Generator = rng) -> None:
            world.ctrl = rng.uniform(-1.0, 1.0, len(world.ctrl))
            world.step()

        act()
        world._pace.most = 8  # whatever time the steps above took
        counts.append(count_calls(act))
    assert counts[0] == counts[1]


def test_a_motor_is_set_by_name_at_the_same_cost_among_many() -> None:
    counts = []
    for n in (10, 100):
        motor = row_of_motors(n).motor(3)
        counts.append(count_calls(lambda motor=motor: setattr(motor, "target", 0.2)))
    assert counts[0] == counts[1]


def test_controls_set_what_plain_numbers_do() -> None:
    """Of each motor min(max(ctrl, low), high) gain + offset, bit for bit."""
    world, rng = row_of_motors(12), np.random.default_rng(5)
    for ctrl in (*rng.normal(size=(20, 12)), np.zeros(12), np.full(12, -0.0), np.full(12, 1e300)):
        world.ctrl = ctrl
        world._controls.apply(world._stepper)
        for k, motor in enumerate(world.model.motors):
            wanted = motor.gain * min(max(float(ctrl[k]), motor.control_low), motor.control_high) + motor.offset
            given = world._stepper.extras.motors.arrays[motor.control][k]
            assert np.float64(wanted).tobytes() == np.float64(given).tobytes()


def test_a_control_that_is_not_finite_leaves_those_before_it_set_and_those_after_it_not() -> None:
    world = row_of_motors(6)
    world.ctrl[:] = (0.1, 0.1, 0.1, np.nan, 0.1, 0.1)
    with pytest.raises(ValueError, match=r'ctrl\[3\] is nan; the control of motor "motor 3" must be finite'):
        world.step()
    first = row_of_motors(1)._controls.values[0]
    assert world._controls.applied[:3].tolist() == [0.1] * 3
    assert world._controls.applied[3] == world.ctrl[3] == first
    assert world._controls.applied[4:].tolist() != [0.1] * 2
    world.step()
    assert world._controls.applied[4:].tolist() == [0.1] * 2
