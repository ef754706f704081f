"""Loops: mechanisms with known motions, every kind of joint beside the tree, limits and motors on them, couplings."""

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
from poise.model import Body, Inertia
from poise.model.scene import Equality
from poise.motion.rotations import quat_exp

FINE = poise.Reduced(tolerance=1e-8)
KINDS = ("fixed", "hinge", "slider", "cylindrical", "screw", "universal", "ball", "planar")


def bar(name: str, along: str = "z", length: float = 1.0, mass: float = 1.0) -> Body:
    """A thin uniform bar from its origin."""
    com = (0.0, 0.0, 0.5 * length) if along == "z" else (0.5 * length, 0.0, 0.0)
    about = mass * length**2 / 12
    moments = (about, about, 1e-6) if along == "z" else (1e-6, about, about)
    return Body(name, inertia=Inertia(mass, com=com, moments=moments))


def four_bars(n: int, dt: float) -> poise.World:
    """N square windows; the tops of all uprights move alike, at 1 m/s."""
    scene = poise.Scene()
    for k in range(n + 1):
        scene.hinge(None, bar(f"up{k}"), axis="y", position=(k, 0, 0))
    for k in range(n):
        scene.hinge(f"up{k}", bar(f"across{k}", "x"), axis="y", position=(0, 0, 1))
        scene.loop("hinge", f"across{k}", f"up{k + 1}", axis="y", position=(k + 1, 0, 1))
    world = scene.build(FINE, dt=dt)
    for d, name in enumerate(world.model.dof_names):
        world.v[d] = 1.0 if name.startswith("up") else -1.0
    return world


def top(world: poise.World) -> np.ndarray:
    """Where the first upright ends."""
    return world.body("up0").rotation @ (0, 0, 1)


def test_four_bars_through_singular_positions() -> None:
    """The known answer at 10 s, approached with the order of the step or faster; energy stays within that order."""
    errors = []
    for dt in (0.01, 0.005):
        world = four_bars(2, dt)
        before, swing = world.report().energy.total, 0.0
        for _ in range(round(10 / dt)):
            world.step()
            swing = max(swing, abs(world.report().energy.total - before))
        errors.append(float(np.abs(top(world)[[0, 2]] - (0.32845811, 0.94451854)).max()))
        apart = np.abs(top(world) - world.body("up2").rotation @ (0, 0, 1)).max()
        print(f"\nfour bars, dt {dt} s: {errors[-1]:.1e} m off at 10 s, energy swings by {swing:.2f} J ", end="")
        print(f"({100.0 * dt}), uprights {apart:.1e} apart (1e-4)")
        assert swing < 100.0 * dt  # of 36 J, of which 25 J go to and fro
        assert apart < 1e-4
    print(f"error {errors[0]:.1e} (1e-3); at half the step {errors[1] / errors[0]:.2f} of it (0.6)")
    assert errors[0] < 1e-3
    assert errors[1] < 0.6 * errors[0]


# ---- mechanisms ------------------------------------------------------------------------------------------------------


def slider_crank(speed: float = 0.0, dt: float = 1e-3, **motor: float) -> poise.World:
    """A crank of 0.3 m, a rod of 1 m, a slider on the x axis that closes the loop."""
    scene = poise.Scene()
    scene.hinge(None, bar("crank", "x", 0.3), axis="-y")
    scene.hinge("crank", bar("rod", "x", 1.0), axis="-y", position=(0.3, 0, 0))
    scene.slider(None, Body("slider", inertia=Inertia(2.0, moments=(0.01, 0.01, 0.01))), axis="x", position=(1.3, 0, 0))
    scene.loop("hinge", "rod", "slider", axis="y", position=(1.3, 0, 0))
    scene.motor("crank", damping=np.inf, speed=speed, **motor)
    return scene.build(FINE, dt=dt)


def test_a_slider_crank_goes_as_its_closed_form() -> None:
    """x = r cos θ + √(l² − r² sin² θ), and its rate; two turns, dead centres included."""
    world, w = slider_crank(2 * np.pi), 2 * np.pi
    seen = []
    for _ in range(2000):
        world.step()
        seen.append((world.q[0], world.q[2] + 1.3, world.v[2]))
    angle, x, v = np.array(seen).T
    assert angle[-1] == pytest.approx(2 * w, abs=1e-3)  # displacements that close the loop move the crank too
    root = np.sqrt(1 - 0.09 * np.sin(angle) ** 2)
    rate = -0.3 * np.sin(angle) - 0.09 * np.sin(angle) * np.cos(angle) / root
    off, late = np.abs(x - 0.3 * np.cos(angle) - root).max(), np.abs(v - w * rate).max()
    print(f"\nslider crank: {off:.1e} m off (1e-5), {late:.1e} m/s off ({1e-3 * 0.4 * w * w:.1e})")
    assert x == pytest.approx(0.3 * np.cos(angle) + root, abs=1e-5)
    # a row is met with its Jacobian at the beginning of the step: half of h x″ and more
    assert v == pytest.approx(w * rate, abs=1e-3 * 0.4 * w * w)


def test_a_planar_four_bar_obeys_freudenstein() -> None:
    """R₁ cos θ₄ − R₂ cos θ₂ + R₃ = cos(θ₂ − θ₄), through free swings; only the coupler's point closes it."""
    a, b, c, d = 0.4, 1.0, 0.8, 1.1
    scene = poise.Scene()
    scene.hinge(None, bar("crank", "x", a), axis="-y")
    scene.hinge("crank", bar("coupler", "x", b), axis="-y", position=(a, 0, 0))
    scene.hinge(None, bar("rocker", "x", c), axis="-y", position=(d, 0, 0))
    scene.loop("ball", "coupler", "rocker", anchor_first=(b, 0, 0), anchor_second=(c, 0, 0))
    world = scene.build(FINE, dt=1e-3)
    # closed by hand: θ₂ = 90°; then the tip of the rocker is b from (0, a) and c from (d, 0)
    p, q = np.array((0.0, a)), np.array((d, 0.0))
    way, far = (q - p) / np.linalg.norm(q - p), float(np.linalg.norm(q - p))
    u = (far**2 + b**2 - c**2) / (2 * far)
    tip = p + u * way + np.sqrt(b**2 - u**2) * np.array((-way[1], way[0]))
    world.q[0], world.q[2] = np.pi / 2, np.arctan2(*(tip - q)[::-1])
    world.q[1] = np.arctan2(*(tip - p)[::-1]) - np.pi / 2
    start, off = world.report().energy.total, 0.0
    for _ in range(3000):
        world.step()
        two, four = world.q[0], world.q[2]
        left = d / a * np.cos(four) - d / c * np.cos(two) + (a * a - b * b + c * c + d * d) / (2 * a * c)
        off = max(off, abs(float(left - np.cos(two - four))))
    lost = start - world.report().energy.total
    print(f"\nFreudenstein: {off:.1e} off (1e-4), {lost:.3f} J lost ({200.0 * world.dt:.1f})")
    assert off < 1e-4
    assert start - 200.0 * world.dt < world.report().energy.total < start + 1e-3  # lost at the order of the step


# ---- every kind ------------------------------------------------------------------------------------------------------

FREE = {
    "fixed": ((), ()),
    "hinge": ((), (0,)),
    "slider": ((0,), ()),
    "cylindrical": ((0,), (0,)),
    "screw": ((0,), (0,)),
    "universal": ((), (0, 1)),
    "ball": ((), (0, 1, 2)),
    "planar": ((1, 2), (0,)),
}
"""Slides and turns that are free, by axis of the joint's frame."""
AXIS, AXIS2, WHERE = (0.6, 0.0, 0.8), (0.0, 1.0, 0.0), (0.3, 0.1, 0.9)
FRAME = np.column_stack((AXIS, AXIS2, np.cross(AXIS, AXIS2)))


def couple(kind: str, tree: bool = False, dt: float = 1e-3, **options) -> poise.World:
    """Two bodies in free fall, joined beside the tree or within it."""
    scene = poise.Scene(gravity=(0, 0, 0))
    one = Body("one", inertia=Inertia(2.0, com=(0.05, 0.0, 0.02), moments=(0.05, 0.07, 0.06)))
    two = Body("two", inertia=Inertia(1.5, com=(0.0, -0.03, 0.04), moments=(0.04, 0.03, 0.05)))
    scene.add(one, joint="free")
    if kind == "screw":
        options["pitch"] = 0.05
    at = (0.5, 0.0, 1.0)
    if tree:
        anchor = tuple(np.subtract(WHERE, at))
        joint = poise.Joint(kind, name="joint", anchor=anchor, axis=AXIS, axis2=AXIS2, **options)
        scene.add(two, parent="one", joint=joint, position=at)
    else:
        scene.add(two, joint="free", position=at)
        scene.loop(kind, "one", "two", "joint", position=WHERE, axis=AXIS, axis2=AXIS2, **options)
    return scene.build(FINE, dt=dt)


def relative(world: poise.World) -> tuple[np.ndarray, np.ndarray]:
    """Displacement of the joint's frame on "two" from that on "one", in the latter, and the rotation."""
    one, two = world.body("one"), world.body("two")
    here = one.position + one.rotation @ WHERE
    there = two.position + two.rotation @ np.subtract(WHERE, (0.5, 0, 1))
    return FRAME.T @ one.rotation.T @ (there - here), FRAME.T @ one.rotation.T @ two.rotation @ FRAME


def shaken(world: poise.World, steps: int) -> None:
    """Push both bodies this way and that: the same pushes in any world."""
    rng = np.random.default_rng(5)
    rate = round(0.05 / world.dt)
    for k in range(steps):
        if k % rate == 0:
            push = 4.0 * rng.normal(size=(2, 6)) * (0.1, 0.1, 0.1, 1, 1, 1)
            world.forces[...] = push
        world.step()


@pytest.mark.parametrize("kind", KINDS)
def test_only_its_own_freedom_is_left(kind: str) -> None:
    """Random pushes for a second: what is locked stays within 1e-4, what is free moves."""
    world = couple(kind)
    slides, turns = FREE[kind]
    most, worst = np.zeros(6), 0.0
    for _ in range(10):
        shaken(world, 100)
        away, R = relative(world)
        if kind == "ball":
            worst = max(worst, float(np.abs(away).max()))
            most = np.maximum(most, np.abs((*away, *(R - np.eye(3))[[2, 0, 1], [1, 2, 0]])))
            continue
        turned = locked_turns(kind, R)
        held = [k for k in range(3) if k not in slides]
        worst = max(worst, float(np.abs(turned).max()), float(np.abs(away[held]).max(initial=0.0)))
        if kind == "screw":
            assert away[0] == pytest.approx(0.05 * world.loop("joint").coordinates[0], abs=1e-4)
        most[:3] = np.maximum(most[:3], np.abs(away))
        angles = np.array([R[2, 1], R[0, 2], R[1, 0]])
        most[3:] = np.maximum(most[3:], np.abs(angles))
    free = [*slides, *(3 + k for k in turns)]
    print(f"\n{kind}: what is locked moves by {worst:.1e} (1e-4), what is free by {np.round(most[free], 2)} (0.01)")
    assert worst < 1e-4
    assert (most[free] > 0.01).all()


def locked_turns(kind: str, R: np.ndarray) -> np.ndarray:
    """What a joint keeps at nought of a rotation."""
    if kind in ("fixed", "slider"):
        return (R - np.eye(3)).ravel()
    if kind == "universal":
        return R[0, 1:2]  # the first axis in A across the second in B
    return R[[1, 2], 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_moves_as_the_same_joint_in_the_tree(kind: str) -> None:
    """Forces act from the beginning of a step in both, and velocity products are of second order in both, up to SMALL
    of an angular acceleration: what two steps do not show to be of second order is less than that leads to, 0.01 mm,
    where each of them is 0.4 mm from the limit.
    """
    apart = []
    for dt in (2e-3, 1e-3):
        loop, tree = couple(kind, dt=dt), couple(kind, tree=True, dt=dt)
        for world in (loop, tree):
            shaken(world, round(0.5 / dt))
        apart.append(np.array([loop.body(name).position - tree.body(name).position for name in ("one", "two")]))
    slack, left = 0.5 * SMALL * 0.5**2, float(np.abs(4.0 * apart[1] - apart[0]).max()) / 3.0
    far, near = (float(np.abs(each).max()) for each in apart)
    print(f"\n{kind}, loop beside tree: {far:.1e} m apart, at half the step {near:.1e}, {left:.1e} left ({slack:.1e})")
    assert left < slack


def test_coordinates_of_loops_are_those_of_joints() -> None:
    for kind in ("hinge", "slider", "cylindrical", "screw", "universal", "planar"):
        loop, tree = couple(kind), couple(kind, tree=True)
        for world in (loop, tree):
            shaken(world, 300)
        apart = np.abs(loop.loop("joint").coordinates - tree.q[7:]).max()
        print(f"\ncoordinates of a {kind}: {apart:.1e} from those in the tree (3e-3)")
        assert loop.loop("joint").coordinates == pytest.approx(tree.q[7:], abs=3e-3), kind


def test_turns_are_counted() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(Body("wheel", inertia=Inertia(1.0, moments=(0.1, 0.1, 0.1))), joint="free")
    scene.loop("hinge", None, "wheel", "axle", axis="y", limits=(-100.0, 30.0))
    world = scene.build(dt=0.01)
    world.v[4] = 20.0
    world.step(170)
    assert world.loop("axle").coordinates[0] == pytest.approx(30.0, abs=1e-3)
    assert abs(world.v[4]) < 1e-3


# ---- limits, friction, motors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "limits"), [("hinge", (-0.1, 0.2)), ("slider", (-0.05, 0.02)), ("screw", (-0.1, 0.2))]
)
def test_limits_of_loops_hold(kind: str, limits: tuple[float, float]) -> None:
    world = couple(kind, limits=limits)
    seen = []
    for _ in range(20):
        shaken(world, 50)
        seen.append(world.loop("joint").coordinates[0])
    beyond = max(limits[0] - min(seen), max(seen) - limits[1])
    print(f"\nlimits of a {kind} loop: {beyond:.1e} beyond (2e-4)")
    assert min(seen) >= limits[0] - 2e-4  # the slop, and as much that a step may add
    assert max(seen) <= limits[1] + 2e-4
    assert beyond > -1e-3  # one of them is reached


def test_limits_of_a_ball_hold() -> None:
    world = couple("ball", cone=0.3, twist=(-0.2, 0.2))
    for _ in range(20):
        shaken(world, 50)
        _, R = relative(world)
        assert np.arccos(min(R[0, 0], 1.0)) < 0.3 + 1e-2  # rows of cones are those of the beginning of a step
        assert abs(world.loop("joint").coordinates[0]) < 0.2 + 1e-3


def test_limits_of_a_ball_hold_about_their_centre() -> None:
    """Turned about the axis by a centre of 0.5, the range of ±0.2 is one of 0.3 to 0.7.

    Seen along the axis, a swing by θ shortens one direction by cos θ: angles there are off by
    arcsin((1 − cos θ)/(1 + cos θ)) at most.
    """
    short = np.cos(0.3 + 1e-2)
    off = np.arcsin((1.0 - short) / (1.0 + short)) + 1e-3
    world = couple("ball", twist=(-0.2, 0.2), cone=0.3, limit_centre=quat_exp(0.5 * FRAME[:, 0]))
    assert world.loop("joint").coordinates[0] == pytest.approx(-0.5, abs=1e-12)
    shaken(world, 200)
    for _ in range(20):
        shaken(world, 50)
        _, R = relative(world)
        assert np.arccos(min(R[0, 0], 1.0)) < 0.3 + 1e-2
        assert 0.3 - off < np.arctan2(R[2, 1], R[1, 1]) < 0.7 + off
        assert abs(world.loop("joint").coordinates[0]) < 0.2 + 1e-3


def test_friction_of_a_loop_holds_until_it_slides() -> None:
    """A slider of 2 kg on a rail that leans by 0.5 rad: it begins to slide when friction is less than m g sin α."""
    for friction, slides in ((9.5, False), (9.3, True)):
        scene = poise.Scene()
        scene.add(Body("cart", inertia=Inertia(2.0, moments=(0.1, 0.1, 0.1))), joint="free")
        along = (np.cos(0.5), 0.0, np.sin(0.5))
        scene.loop("slider", None, "cart", "rail", axis=along, friction=friction)
        world = scene.build(FINE, dt=0.005)
        world.step(200)
        pull = 2 * 9.81 * np.sin(0.5) - friction  # 9.406 N without friction
        way = -0.5 * pull / 2.0 if slides else 0.0
        slid = world.loop("rail").coordinates[0]
        print(f"\nrail, friction {friction} N: {slid:.6f} m of {way:.6f} (1 % and 1e-5)")
        assert slid == pytest.approx(way, abs=abs(way) * 0.01 + 1e-5)


def test_motors_on_loops() -> None:
    """A wheel held by a loop: a servo takes it to its target, a torque turns it."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(Body("wheel", inertia=Inertia(1.0, moments=(0.2, 0.2, 0.2))), joint="free")
    scene.loop("hinge", None, "wheel", "axle", axis="y")
    scene.motor("axle", stiffness=100.0, damping=10.0, limit=5.0, target=0.8)
    world = scene.build(FINE, dt=0.002)
    world.step()
    assert world.motor("axle").force == pytest.approx(5.0)
    world.step(1000)
    assert world.loop("axle").coordinates[0] == pytest.approx(0.8, abs=1e-6)
    motor = world.motor("axle")
    motor.stiffness = motor.damping = 0.0
    motor.torque = 1.5
    before = world.v[4]
    world.step(100)
    assert motor.force == pytest.approx(1.5)
    assert world.v[4] - before == pytest.approx(1.5 / 0.2 * 0.2, rel=1e-6)
    assert world.report().motors["axle"] == pytest.approx(1.5)
    world.loop("axle").active = False
    before = world.v[4]
    world.step()
    assert world.v[4] == pytest.approx(before, rel=1e-12)
    assert motor.force == 0.0
    assert world.report().motors["axle"] == 0.0


def test_the_force_of_a_loop_is_told() -> None:
    """A bar hung by its middle: the force is its weight; hung by its end from a weld, the torque is m g l/2."""
    scene = poise.Scene()
    scene.add(bar("beam", "x"), joint="free", position=(0, 0, 1))
    scene.loop("fixed", None, "beam", "wall", position=(0, 0, 1))
    world = scene.build(FINE, dt=0.01)
    world.step(20)
    told = world.report().loops[0]
    off = np.abs(np.subtract((*told.force, *told.torque), (0, 0, 9.81, 0, -9.81 / 2, 0))).max()
    print(f"\nforce and torque of a weld: {off:.1e} off (1e-6)")
    assert told.name == "wall"
    assert told.force == pytest.approx((0, 0, 9.81), abs=1e-6)
    assert told.torque == pytest.approx((0, -9.81 / 2, 0), abs=1e-6)


# ---- couplings, files ------------------------------------------------------------------------------------------------


def test_gears_keep_their_ratio() -> None:
    scene = poise.Scene()
    for name, x in (("small", 0.0), ("large", 2.0)):
        scene.hinge(None, bar(name), axis="y", position=(x, 0, 0))
    scene.couple("small", "large", (0.1, -3.0))
    world = scene.build(FINE, dt=1e-3)
    world.q[0], world.v[...] = 0.1, (0.3, -0.1)
    off = 0.0
    for _ in range(1000):
        world.step()
        off = max(off, abs(float(world.q[0] - 0.1 + 3.0 * world.q[1])))
    print(f"\ngears: {off:.1e} rad off (1e-4)")
    assert off < 1e-4
    assert abs(world.q[1]) > 0.05


MJCF = """
<mujoco>
  <option gravity="0 0 -9.81"/> <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="a" pos="0 0 2" euler="0 30 0"> <freejoint/> <geom type="box" size="0.1 0.1 0.3" mass="1"/>
      <site name="sa" pos="0.1 0 0.2" euler="10 0 0"/> </body>
    <body name="b" pos="0.5 0.2 2.1" euler="20 0 40"> <freejoint/>
      <geom type="box" size="0.1 0.2 0.1" mass="2"/> </body>
    <body name="c" pos="1 0 2"> <joint name="c" type="hinge" axis="0 1 0" ref="0.3"/>
      <geom type="box" size="0.1 0.1 0.3" mass="1" pos="0 0 -0.3"/> </body>
    <body name="d" pos="2 0 2"> <joint name="d" type="hinge" axis="0 1 0"/>
      <geom type="box" size="0.1 0.1 0.3" mass="1" pos="0 0 -0.3"/> </body>
    <site name="sw" pos="0.1 0 2.2"/>
  </worldbody>
  <equality>
    <weld name="weld" body1="a" body2="b" anchor="0.1 0.05 0"/>
    <joint name="gear" joint1="c" joint2="d" polycoef="0 0.5 0.2 0 0"/>
    <connect name="hook" body1="a" anchor="0.1 0 0.2"/>
  </equality>
</mujoco>
"""


def test_equalities_of_mujoco_hold(tmp_path) -> None:
    """They are met at rest as they are there, and stay met: MuJoCo finds next to nothing wrong with our states."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "e.xml").write_text(MJCF)
    scene = poise.load(tmp_path / "e.xml")
    theirs = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(theirs)
    world = scene.build(FINE, dt=1e-3)
    assert [loop.name for loop in world.model.loops] == ["weld", "hook"]
    world.v[6:9] = (0.3, -0.5, 0.2)
    world.v[12:] = (0.5, 0.1)
    wrong = 0.0
    for _ in range(5):
        world.step(100)
        data.qpos[:], data.qvel[:] = world.q, world.v
        mujoco.mj_forward(theirs, data)
        assert data.nefc == 6 + 1 + 3
        wrong = max(wrong, float(np.abs(data.efc_pos).max()))
    print(f"\nequalities: MuJoCo finds {wrong:.1e} wrong (1e-4)")
    assert wrong < 1e-4
    assert np.abs(world.q[:3] - (0, 0, 2)).max() > 0.01


def test_a_mimic_joint_of_urdf_follows(tmp_path) -> None:
    link = (
        '<link name="{0}"><inertial><mass value="1"/><origin xyz="0 0 -1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    joint = '<joint name="{0}" type="continuous"><parent link="base"/><child link="{1}"/><axis xyz="0 1 0"/>{2}</joint>'
    (tmp_path / "r.urdf").write_text(
        f'<robot name="r"><link name="base"/>{link.format("one")}{link.format("two")}{joint.format("j", "one", "")}'
        + joint.format("k", "two", '<mimic joint="j" multiplier="-2" offset="0"/>')
        + "</robot>"
    )
    world = poise.load(tmp_path / "r.urdf").build(FINE, dt=1e-3)
    world.v[...] = (0.5, -1.0)
    world.step(1000)
    assert world.q[1] == pytest.approx(-2.0 * world.q[0], abs=1e-4)
    assert abs(world.q[0]) > 0.1


# ---- state, lanes ----------------------------------------------------------------------------------------------------


def test_going_back_is_exact() -> None:
    world = four_bars(2, 0.005)
    world.step(100)
    saved, twin = world.state, copy.deepcopy(world)
    world.step(100)
    end = world.state
    world.state = saved
    world.step(100)
    assert world.state.same_bits(end)
    twin.step(100)
    assert twin.state.same_bits(end)


@pytest.mark.parametrize(("width", "exact"), [(width_of("f64"), 1e-8), (width_of("f32"), 2e-3)], ids=str)
def test_lanes_step_as_each_world_alone(width: Width, exact: float) -> None:
    """A chain of bodies that every kind joins, in worlds that are thrown differently; some have let a joint go."""
    scene = poise.Scene()
    for k in range(len(KINDS) + 1):
        scene.add(poise.box(0.1, 0.14, 0.2, mass=1.0), name=f"b{k}", position=(0.3 * k, 0, 1))
    for k, kind in enumerate(KINDS):
        options = {"pitch": 0.1} if kind == "screw" else {"cone": 0.2} if kind == "ball" else {}
        scene.loop(kind, f"b{k}", f"b{k + 1}", kind, axis="x", position=(0.3 * k + 0.15, 0, 1), **options)
    scene.motor("hinge", stiffness=20.0, damping=1.0, limit=2.0, target=0.4)
    scene.motor("slider", torque=0.5)
    model = scene.compile()
    rng = np.random.default_rng(7)
    v = 0.5 * rng.normal(size=(model.nv, width.lanes))
    active = np.ones((len(KINDS), width.lanes), int)
    active[2, ::3] = 0
    tolerance = 1e-11 if width.elem == "f64" else 1e-5

    def stepper(width: Width, lane: int | None) -> Stepper:
        one = Stepper(model, width, split=False, tolerance=tolerance, sweeps=1000)
        part = slice(None) if lane is None else lane
        one.space.s.v[...], one.extras.loops.active[...] = v[:, part], active[:, part]
        for _ in range(20):
            assert one.step(1 / 240) == DONE
        return one

    together = stepper(width, None)
    for lane in range(0, width.lanes, 3):
        alone = stepper(F64, lane)
        assert together.space.s.q[:, lane] == pytest.approx(alone.space.s.q, abs=exact)


def test_what_is_held_twice_stays_bounded() -> None:
    """Two hinges that do not agree about their axis by a degree: no answer, but no harm either."""
    scene = poise.Scene()
    scene.hinge(None, bar("door", "x", 0.8, 10.0), axis="z")
    scene.loop("hinge", None, "door", axis=(np.sin(0.02), 0.0, np.cos(0.02)), position=(0, 0, 1))
    scene.loop("ball", None, "door", anchor_first=(0, 0.003, 0.5), anchor_second=(0, 0, 0.5))
    world = scene.build(dt=1 / 240)
    world.v[0] = 1.0
    world.step(480)
    assert abs(world.v[0]) <= 1.01
    assert np.isfinite(world.loop("world-door").force).all()


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "ends", "options", "message"),
    [
        ("free", ("one", "two"), {}, "'free' is not a kind of joint that a loop can have"),
        ("hinje", ("one", "two"), {}, 'did you mean "hinge"'),
        ("hinge", ("one", "twoo"), {}, 'there is no body "twoo", did you mean "two"'),
        ("hinge", ("one", "world"), {}, "the world is None"),
        ("hinge", ("one", "one"), {}, "but both are parts of one rigid body"),
        ("hinge", (None, None), {}, "but both never move"),
        ("hinge", ("one", "two"), {"axis": (0, 0, 0)}, "axis: must point somewhere"),
        ("hinge", ("one", "two"), {"position": (0, np.nan, 0)}, "position\\[1\\]: must be a finite number"),
        ("hinge", ("one", "two"), {"limits": (1, -1)}, "lower must not exceed upper"),
        ("hinge", ("one", "two"), {"pitch": 0.1}, "only a screw has a pitch"),
        ("hinge", ("one", "two"), {"break_force": -1.0}, "break_force: must be more than 0"),
        ("hinge", ("one", "two"), {"colour": 1}, "a loop has no option 'colour'"),
        ("ball", ("one", "two"), {"limits": (0, 1)}, "use cone for its swing"),
    ],
)
def test_a_loop_that_cannot_be(kind: str, ends: tuple, options: dict, message: str) -> None:
    def build() -> None:
        scene = poise.Scene()
        for name in ("one", "two"):
            scene.add(poise.sphere(0.1), name=name)
        scene.loop(kind, *ends, **options)
        scene.compile()

    with pytest.raises(poise.SceneError, match=message):
        build()


def test_loops_that_are_not_there() -> None:
    with pytest.raises(ValueError, match='there is no loop "door"'):
        couple("hinge").loop("door")


def test_couplings_that_cannot_be() -> None:
    def build(*arguments: object) -> None:
        scene = poise.Scene()
        scene.ball(None, poise.sphere(0.1), name="ball")
        scene.hinge(None, poise.sphere(0.1), name="hinge", anchor=(0, 0, 1))
        scene.couple(*arguments)
        scene.compile()

    for arguments, message in (
        (("hinge", "hook"), 'there is no joint "hook"'),
        (("hinge", "ball"), "only joints of one coordinate can be coupled"),
        (("hinge", None, (1, 2, 3, 4, 5, 6)), "one to five numbers"),
        (("hinge", None, (np.nan,)), "must be a finite number"),
    ):
        with pytest.raises(poise.SceneError, match=message):
            build(*arguments)


def test_a_loop_and_an_equality_of_one_name_are_refused() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
    scene.loop("ball", None, "ball", "hook")
    scene.equalities.append(Equality("hook", "weld", "world", "ball"))
    with pytest.raises(poise.SceneError, match='loop "hook": name: must be unique, found an equality of that name'):
        scene.build()
    scene.equalities[0].name = "weld"
    assert scene.build().loops == ["hook", "weld"]
