"""Limits of ball joints: cones, ellipses, twists; fast swings, lanes of worlds, a humanoid that falls."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.batch.world_checks import width_of
from poise.dynamics import Drive
from poise.formulations.driver import Stepper
from poise.formulations.step_status import DONE
from poise.kernel.memory import F64
from poise.model import Model
from poise.motion.rotations import quat_conjugate, quat_exp, quat_multiply, quat_to_matrix

BEYOND = 1e-3
"""How far swings and twists may be beyond their limits; rad."""


def pendulum(dt: float = 1 / 240, g: float = 9.81, parent: str | None = None, *, ground=False, **limits) -> poise.World:
    """A rod of 1 m that hangs from a ball joint at its top, 0.2 m or so above the ground if there is one."""
    scene = poise.Scene(gravity=(0, 0, -g))
    if ground:
        scene.add_ground(height=1.6)
    if parent is not None:
        scene.add(poise.box(0.4, 0.4, 0.4, mass=5.0), name=parent, position=(1, 2, 3))
    rod = poise.box(0.1, 0.1, 1.0, mass=2.0)
    scene.ball(parent, rod, axis="-z", axis2="x", anchor=(0, 0, 0.5), position=(0, 0, -0.7), name="rod", **limits)
    return scene.build(dt=dt)


def turn_of(model: Model, joint: int, q: np.ndarray) -> np.ndarray:
    """(3,) swing about the second and third axis, and twist; rad. By another way than the kernels go."""
    start = int(model.joint_q_start[joint])
    frame = model.joint_frame[joint].reshape(3, 3)
    quat = quat_multiply(q[start : start + 4], quat_conjugate(model.joint_limit_centre[joint]))
    quat /= np.linalg.norm(quat)
    axis = frame.T @ quat_to_matrix(quat) @ frame[:, 0]
    across = np.cross((1.0, 0.0, 0.0), axis)
    angle = np.arctan2(np.linalg.norm(across), axis[0])
    swing = across * (angle / max(float(np.linalg.norm(across)), 1e-300))
    twist = 2.0 * np.arctan2(quat[1:] @ frame[:, 0], quat[0])
    return np.array([swing[1], swing[2], (twist + np.pi) % (2 * np.pi) - np.pi])


def beyond_ball(model: Model, joint: int, q: np.ndarray) -> float:
    """How far a ball is beyond its cone (the way back to the ellipse, to first order) or its twist; rad."""
    y, z, twist = turn_of(model, joint, q)
    a, b = model.joint_cone[joint]
    scale = np.hypot(y / a, z / b)
    out = -1.0 if scale < 0.5 else (scale - 1.0) * scale / np.hypot(y / a**2, z / b**2)
    low, high = model.joint_twist[joint]
    return float(max(out, low - twist, twist - high))


def beyond(model: Model, q: np.ndarray) -> float:
    """The most that any joint is beyond its limits; rad or m."""
    balls = [i for i, kind in enumerate(model.joint_kinds) if kind == "ball"]
    most = max((beyond_ball(model, i, q) for i in balls), default=-1.0)
    for j, d in zip(model.primitive_q_start, model.primitive_v_start, strict=True):
        low, high = model.dof_limits[d]
        most = max(most, low - q[j], q[j] - high)
    return float(most)


def run(world: poise.World, seconds: float) -> np.ndarray:
    """(steps, nq) what a world goes through."""
    seen = []
    for _ in range(round(seconds / world.dt)):
        world.step()
        seen.append(world.q.copy())
    return np.array(seen)


# ---- swings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
@pytest.mark.parametrize("v", [(3, 0, 0), (3, 2, 0), (0, -4, 1), (2, 3, 2)])
def test_a_pendulum_swings_to_its_cone_and_no_further(dt: float, v) -> None:
    world = pendulum(dt, cone=0.5)
    world.v[:] = v
    seen = run(world, 2.0)
    swings = [np.hypot(*turn_of(world.model, 0, q)[:2]) for q in seen]
    assert max(swings) == pytest.approx(0.5, abs=1e-6)


def test_without_a_limit_it_swings_further() -> None:
    world = pendulum()
    world.v[:] = 3, 2, 0
    assert max(np.hypot(*turn_of(world.model, 0, q)[:2]) for q in run(world, 2.0)) > 0.8
    assert world.report().limits == []


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
@pytest.mark.parametrize("direction", np.linspace(0, 2 * np.pi, 12, endpoint=False))
def test_an_elliptic_cone_holds_in_every_direction(dt: float, direction: float) -> None:
    """Without gravity, straight from the middle: it gets to the ellipse, then slides or stays."""
    world = pendulum(dt, 0.0, cone=(0.7, 0.35))
    world.v[:2] = 4.0 * np.cos(direction), 4.0 * np.sin(direction)
    seen = run(world, 1.0)
    most = max(beyond(world.model, q) for q in seen)
    assert -1e-3 < most < BEYOND


@pytest.mark.parametrize("cone", [(0.5, 0.5), (0.8, 0.4), (0.4, 0.8), (2.5, 2.5)])
@pytest.mark.parametrize("speed", [10.0, 25.0])
def test_fast_swings_do_not_overshoot(cone, speed: float) -> None:
    """25 rad/s is 0.4 rad in a step of 1/60 s."""
    rng = np.random.default_rng(3)
    for dt in (1 / 60, 1 / 240):
        world = pendulum(dt, cone=cone)
        world.v[:2] = rng.normal(size=2)
        world.v[:2] *= speed / np.linalg.norm(world.v[:2])
        assert max(beyond(world.model, q) for q in run(world, 1.0)) < BEYOND


def test_a_cone_open_to_one_side_holds_to_the_other() -> None:
    world = pendulum(g=0.0, cone=(0.3, np.pi))
    world.v[:2] = 1.0, 2.0
    turns = np.array([turn_of(world.model, 0, q) for q in run(world, 0.6)])
    assert np.abs(turns[:, 0]).max() < 0.3 + BEYOND
    assert np.abs(turns[:, 1]).max() > 0.9


def test_a_narrow_cone_is_nearly_a_weld() -> None:
    world = pendulum(cone=1e-3, twist=(-1e-3, 1e-3))
    world.v[:] = 5, 4, 3
    assert max(beyond(world.model, q) for q in run(world, 1.0)) < BEYOND


# ---- twists ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
@pytest.mark.parametrize("spin", [-30.0, -3.0, 3.0, 30.0])
def test_twists_stay_in_their_range(dt: float, spin: float) -> None:
    world = pendulum(dt, cone=1.0, twist=(-0.4, 0.7))
    world.v[:] = 1.5, -1.0, -spin
    turns = np.array([turn_of(world.model, 0, q) for q in run(world, 1.0)])
    assert turns[:, 2].min() > -0.4 - BEYOND
    assert turns[:, 2].max() < 0.7 + BEYOND
    assert np.abs(turns[:, 2] - (0.7 if spin > 0 else -0.4)).min() < 1e-3


def test_twists_open_to_one_side() -> None:
    world = pendulum(g=0.0, twist=(-0.4, np.inf))
    world.v[2] = 2.0
    turns = np.array([turn_of(world.model, 0, q) for q in run(world, 1.0)])
    assert turns[:, 2].min() == pytest.approx(-0.4, abs=1e-6)
    world.v[2] = -2.0
    run(world, 1.0)
    assert turn_of(world.model, 0, world.q)[2] == pytest.approx(1.6, abs=1e-6)


# ---- centres ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
@pytest.mark.parametrize("way", [1, -1])
def test_a_centre_lets_it_swing_further_to_one_side(way: int, level: str) -> None:
    """About x by 0.3 ± 0.5."""
    scene = poise.Scene(gravity=(0, 0, 0))
    rod, middle = poise.box(0.1, 0.1, 1.0, mass=2.0), tuple(quat_exp((0.3, 0, 0)))
    scene.ball(None, rod, axis="-z", axis2="x", anchor=(0, 0, 0.5), name="rod", cone=0.5, limit_centre=middle)
    world = scene.build(poise.Reduced(level=level))
    world.v[0] = 2.0 * way
    turns = [2 * np.arctan2(q[1], q[0]) for q in run(world, 1.0)]
    assert max(way * np.array(turns)) == pytest.approx(0.8 if way > 0 else 0.2, abs=1e-6)


def test_a_centre_is_as_a_rest_pose() -> None:
    """What limits are about may be told by a centre, or by how the body rests: C·J is R, and C·J·C⁻¹ is R·C⁻¹."""
    centre = quat_exp((0.7, -0.4, 1.1))
    C = quat_to_matrix(centre)
    worlds = []
    for rests_there in (False, True):
        scene = poise.Scene()
        axes = {"axis": (0, 0, -1), "axis2": (1, 0, 0)}
        # the joint's point is 0.5 m along the body's z, in the world's origin
        place = {"position": (0, 0, -0.5), "limit_centre": tuple(3.0 * centre)}
        if rests_there:
            axes = {name: tuple(C.T @ axis) for name, axis in axes.items()}
            place = {"position": tuple(C @ (0, 0, -0.5)), "quat_wxyz": tuple(centre)}
        limits = {"cone": (0.6, 0.3), "twist": (-0.3, 0.5), "anchor": (0, 0, 0.5)}
        scene.ball(None, poise.box(0.1, 0.2, 1.0, mass=2.0), name="rod", **axes, **place, **limits)
        worlds.append(scene.build(poise.Reduced(tolerance=1e-12)))
    one, other = worlds
    one.q[:] = centre
    one.v[:] = other.v[:] = 3.0, -2.0, 4.0
    pushed = set()
    for _ in range(240):
        one.step()
        other.step()
        assert one.body("rod").position == pytest.approx(other.body("rod").position, abs=1e-9)
        told = [[(limit.what, limit.force) for limit in world.report().limits] for world in worlds]
        assert [what for what, _ in told[0]] == [what for what, _ in told[1]]
        assert [force for _, force in told[0]] == pytest.approx([force for _, force in told[1]], rel=1e-6, abs=1e-6)
        pushed |= {what for what, force in told[0] if abs(force) > 0.1}
    assert pushed >= {"cone", "twist upper"}


# ---- what rows do ----------------------------------------------------------------------------------------------------


def test_limits_give_no_energy() -> None:
    """Without gravity or spin the free motion keeps its energy to rounding: what changes it is the rows."""
    rng = np.random.default_rng(5)
    for dt in (1 / 60, 1 / 240):
        for cone in ((0.5, 0.5), (0.8, 0.4)):
            world = pendulum(dt, 0.0, cone=cone)
            world.v[:2] = rng.normal(size=2) * 5
            energies = [poise.dynamics.energy(world.model, world.q, world.v).total]
            for _ in range(round(1.0 / dt)):
                world.step()
                energies.append(poise.dynamics.energy(world.model, world.q, world.v).total)
            assert np.diff(energies).max() < 1e-9 * energies[0]
            assert energies[-1] < energies[0]


def test_limits_act_on_both_bodies_alike() -> None:
    """What a limit does to the one body it does to the other the other way: the momentum is that without limits."""
    world = pendulum(g=0.0, parent="box", cone=(0.4, 0.2), twist=(-0.2, 0.2))
    free = pendulum(g=0.0, parent="box")
    world.v[-3:] = 3, 2, 4
    pushed = set()
    for _ in range(100):
        q, v = world.q.copy(), world.v.copy()
        free.q[:], free.v[:] = world.q, world.v
        world.step()
        free.step()
        pushed |= {limit.what for limit in world.report().limits if abs(limit.force) > 0.1}
        ends = (v + world.dt * one.a for one in (world, free))
        one, other = (poise.dynamics.momentum(world.model, q, end) for end in ends)
        assert one.linear == pytest.approx(other.linear, abs=1e-11)
        assert one.angular == pytest.approx(other.angular, abs=1e-10)
    assert pushed >= {"cone", "twist lower"}


def test_the_report_tells_of_a_limit_at_rest() -> None:
    """Gravity askew leans the rod on its cone: the torque is that of the weight about the joint."""
    scene = poise.Scene(gravity=(9.81, 0, 0))
    rod = poise.box(0.1, 0.1, 1.0, mass=2.0)
    scene.ball(None, rod, axis="-z", anchor=(0, 0, 0.5), name="rod", cone=0.5, twist=(-1, 1), damping=2.0)
    world = scene.build(poise.Reduced(tolerance=1e-9))
    world.step(1200)
    (limit,) = world.report().limits
    assert (limit.dof, limit.what) == ("rod", "cone")
    assert limit.force == pytest.approx(2.0 * 9.81 * 0.5 * np.cos(0.5), rel=1e-3)


@pytest.mark.parametrize(("torque", "what"), [(-3.0, "twist lower"), (3.0, "twist upper")])
def test_the_report_tells_of_twists(torque: float, what: str) -> None:
    scene = poise.Scene()
    rod = poise.box(0.1, 0.1, 1.0, mass=2.0)
    scene.ball(None, rod, axis="-z", anchor=(0, 0, 0.5), name="rod", cone=0.5, twist=(-0.3, 0.3), damping=1.0)
    world = scene.build(poise.Reduced(tolerance=1e-9))
    world.tau[2] = -torque
    world.step(480)
    (limit,) = world.report().limits
    assert (limit.dof, limit.what) == ("rod", what)
    assert limit.force == pytest.approx(-torque, rel=1e-6)


def test_ids_of_rows_do_not_clash() -> None:
    """A hinge and balls at their limits, with friction: each is told of once."""
    scene = poise.Scene()
    rod = {"anchor": (0, 0, 0.5), "friction": 0.01}
    scene.ball(None, poise.box(0.1, 0.1, 1.0), axis="-z", name="upper", cone=0.001, twist=(-0.001, 0.001), **rod)
    low = {"position": (0, 0, -1.0)}
    scene.hinge("upper", poise.box(0.1, 0.1, 1.0), axis="y", name="lower", limits=(-0.001, 0.001), **rod, **low)
    world = scene.build()
    world.step(2)
    told = [(limit.dof, limit.what) for limit in world.report().limits]
    assert len(told) == len(set(told))
    assert {what for _, what in told} == {"lower", "upper", "friction", "cone", "twist lower", "twist upper"}
    assert len(world._stepper.rows.now.id) >= len(told)


def test_a_saved_state_goes_on_bit_for_bit() -> None:
    world = pendulum(cone=0.4, twist=(-0.2, 0.2))
    world.v[:] = 4, 3, 2
    world.step(40)
    saved = world.state
    world.step(40)
    first = world.state
    world.state = saved
    world.step(40)
    assert world.state.same_bits(first)


# ---- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ground", [False, True])
def test_lanes_of_worlds_are_as_single_worlds(ground: bool) -> None:
    """As long as they look at their rows equally often: a ball's rows are tangents where it is foreseen to be."""
    centre = tuple(quat_exp((0.1, -0.2, 0.1)))
    model = pendulum(parent="box", ground=ground, cone=(0.6, 0.3), twist=(-0.4, 0.7), limit_centre=centre).model
    rng = np.random.default_rng(7)
    starts = rng.normal(size=(8, model.nv)) * 3
    lanes = Stepper(model, width_of("f64"), sweeps=200, tolerance=1e-12)
    lanes.space.s.v[...] = starts.T
    singles = []
    for v in starts:
        single = Stepper(model, F64, split=False, sweeps=200, tolerance=1e-12)
        single.space.s.v[...] = v
        singles.append(single)
    alike = set(range(8))
    for _ in range(120):
        assert lanes.step(1 / 240) == DONE
        assert all(single.step(1 / 240) == DONE for single in singles)
        alike -= {k for k, single in enumerate(singles) if single.stats.look[0] > lanes.stats.look[0]}
    assert len(alike) > 5
    assert lanes.rows.now.count[0].max() > lanes.rows.now.count[0].min()
    assert (lanes.collider.c.count[0].max() > 0) == ground
    for k in alike:
        assert lanes.space.s.q[:, k] == pytest.approx(singles[k].space.s.q, abs=1e-9)
        assert lanes.space.s.v[:, k] == pytest.approx(singles[k].space.s.v, abs=1e-8)


# ---- a humanoid ------------------------------------------------------------------------------------------------------


def pose_within(model: Model, q: np.ndarray, rng: np.random.Generator, share: float = 0.9) -> None:
    """Set all limited joints to somewhere within that share of their limits."""
    for j, d in zip(model.primitive_q_start, model.primitive_v_start, strict=True):
        low, high = model.dof_limits[d]
        if np.isfinite(low) and np.isfinite(high):
            q[j] = 0.5 * (low + high) + 0.5 * share * (high - low) * rng.uniform(-1, 1)
    for joint in np.flatnonzero(np.isfinite(model.joint_cone).all(axis=1)):
        frame, start = model.joint_frame[joint].reshape(3, 3), int(model.joint_q_start[joint])
        direction, scale = rng.uniform(0, 2 * np.pi), share * np.sqrt(rng.uniform())
        swing = frame[:, 1:] @ (scale * model.joint_cone[joint] * (np.cos(direction), np.sin(direction)))
        low, high = model.joint_twist[joint]
        twist = frame[:, 0] * (0.5 * (low + high) + 0.5 * share * (high - low) * rng.uniform(-1, 1))
        turn = quat_multiply(quat_exp(swing), quat_exp(twist))
        q[start : start + 4] = quat_multiply(turn, model.joint_limit_centre[joint])


@pytest.mark.parametrize("seed", range(5))
def test_a_humanoid_that_falls_keeps_its_joints_whole(seed: int) -> None:
    scene = poise.Scene()
    scene.add_ground(friction=0.8)
    hero = scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    world = scene.build(dt=1 / 240)
    rng = np.random.default_rng(seed)
    pose_within(world.model, world.q, rng)
    assert beyond(world.model, world.q) < 0.0
    quat = rng.normal(size=4)
    world.body(hero.root.name).place(position=(0, 0, 2.5), quat_wxyz=quat / np.linalg.norm(quat))
    most = [beyond(world.model, q) for q in run(world, 2.5)]
    assert world.report().contacts
    # its joints rub nowhere, and a head that hangs freely would swing on
    dampers = np.where(np.arange(world.model.nv) < 6, 0.0, 1.0)
    world.drive = Drive(gain_p=np.zeros(world.model.nv), gain_d=dampers, goal_q=world.q.copy())
    most += [beyond(world.model, q) for q in run(world, 2.5)]
    assert np.isfinite(most).all()
    assert np.degrees(max(most[24:])) < 0.5
    assert poise.dynamics.energy(world.model, world.q, world.v).kinetic < 1e-3
