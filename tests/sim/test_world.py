"""Worlds: what acts, what is told, going back, bad input."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.dynamics import Diverged


def heap(n: int = 6, dt: float = 1 / 240, **options) -> poise.World:
    """Boxes and balls that fall onto each other."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        shape = poise.box(0.2, 0.15, 0.1) if k % 2 else poise.sphere(0.1)
        scene.add(shape, name=f"part {k}", position=(0.03 * k, 0.01 * k, 0.2 + 0.25 * k))
    return scene.build(poise.Reduced(**options), dt=dt)


def test_a_world_that_is_put_back_goes_on_bit_for_bit() -> None:
    world = heap()
    world.step(150)
    saved = world.state
    world.step(60)
    first = world.state
    world.step(37)
    world.state = saved
    world.step(60)
    assert world.state.same_bits(first)


def test_another_world_goes_on_from_a_saved_state(tmp_path) -> None:
    """Also where it has never had so many rows."""
    world, other = heap(), heap()
    world.step(150)
    world.state.save(tmp_path / "state.npz", world.model)
    world.step(40)
    other.state = poise.State.load(tmp_path / "state.npz", other.model)
    other.step(40)
    assert np.array_equal(world.q, other.q)
    assert np.array_equal(world.v, other.v)


def test_copies_go_their_own_way() -> None:
    world = heap()
    world.step(100)
    twin = copy.deepcopy(world)
    world.step(50)
    twin.step(50)
    assert np.array_equal(world.q, twin.q)
    twin.apply_force("part 0", (0, 0, 100))
    twin.step()
    world.step()
    assert not np.array_equal(world.q, twin.q)


def test_the_same_steps_give_the_same_bits() -> None:
    one, other = heap(), heap()
    one.step(300)
    for _ in range(300):
        other.step()
    assert np.array_equal(one.q, other.q)


def test_a_push_acts_for_one_step() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box", position=(1, 2, 3))
    world = scene.build(dt=0.01)
    world.apply_force("box", (10, 0, 0), point=(1, 2.1, 3))
    world.apply_force("box", torque=(0, 0, 1))
    world.step(3)
    assert world.v[:3] == pytest.approx([0.05, 0, 0])
    moment = 2.0 * (0.2**2 + 0.2**2) / 12
    assert world.body("box").angular_velocity == pytest.approx([0, 0, 0.01 * (1.0 - 10 * 0.1) / moment], abs=1e-12)
    world.forces[0, 5] = 1.0
    world.step(2)
    assert world.v[2] == pytest.approx(0.01)


def test_newtons_law_holds_over_a_step() -> None:
    """What contacts and gravity give in a step is what the momentum gains, to rounding."""
    world = heap()
    world.step(60)
    mass = float(world.model.body_mass.sum())
    for _ in range(60):
        before = poise.dynamics.momentum(world.model, world.q, world.v).linear
        world.step()
        after = poise.dynamics.momentum(world.model, world.q, world.v).linear
        ground = [contact.force for contact in world.report().contacts if contact.body_a == "ground"]
        push = np.sum(ground, axis=0) if ground else np.zeros(3)
        gain = (push + mass * world.model.gravity) * world.dt
        assert after - before == pytest.approx(gain, abs=1e-9 * mass)


def test_rest_needs_no_work() -> None:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(3):
        scene.add(poise.box(0.3, 0.2, 0.1), name=f"box {k}", position=(0.05 * k, 0, 0.2 + 0.3 * k))
    world = scene.build()
    world.step(720)
    report = world.report()
    assert report.energy.kinetic < 1e-6
    assert report.residual <= 1e-3
    assert max(contact.depth for contact in report.contacts) < 1e-5


def test_substeps_share_a_step() -> None:
    fine, coarse = heap(dt=1 / 240), heap(dt=1 / 60, substeps=4)
    fine.step(80)
    coarse.step(20)
    assert coarse.q == pytest.approx(fine.q, abs=1e-12)
    assert coarse.time == pytest.approx(fine.time)


def test_stabilization_by_speed() -> None:
    world = heap(4, stabilization="speed")
    world.step(960)
    assert max(contact.depth for contact in world.report().contacts) < 1e-4


def test_what_diverges_is_told_and_put_back() -> None:
    world = heap()
    world.step(20)
    before = world.q.copy()
    world.tau[0] = np.nan
    with pytest.raises(Diverged, match="part 0"):
        world.step()
    assert np.array_equal(world.q, before)


def test_an_empty_world_only_falls() -> None:
    scene = poise.Scene()
    world = scene.build(dt=0.1)
    world.step(3)
    assert world.time == pytest.approx(0.3)
    assert world.report().contacts == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "position"}, "level is 'position'"),
        ({"substeps": 0}, "substeps is 0; it must be a whole number, 1 or more"),
        ({"sweeps": 2.5}, "sweeps is 2.5"),
        ({"tolerance": float("nan")}, "tolerance is nan; it must be from 0 to 1"),
        ({"erp": 1.5}, "erp is 1.5; it must be from 0 to 1"),
        ({"slop": -1e-3}, "slop is -0.001"),
        ({"bounce_speed": -1.0}, "bounce_speed is -1.0"),
        ({"stabilization": "hope"}, "stabilization is 'hope'; there are displacement, speed"),
    ],
)
def test_bad_options_are_refused(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        poise.Reduced(**options)


def test_bad_input_is_refused() -> None:
    world = heap(2)
    with pytest.raises(TypeError, match=r"it must be poise.Reduced"):
        poise.World(world.model, "reduced")
    with pytest.raises(ValueError, match='there is no body "part"'):
        world.body("part")
    with pytest.raises(ValueError, match="force"):
        world.apply_force("part 0", (1, 2))
    with pytest.raises(ValueError, match="point"):
        world.apply_force("part 0", (1, 2, 3), point=(np.nan, 0, 0))
    with pytest.raises(ValueError, match="has no free joint"):
        world.body("ground").place(position=(0, 0, 0))


REFUSED_STEPS = [
    (10**30, r"n is 10{30}; one call takes 1e\+12 steps at most"),
    (10**5000, r"n is 2\^16609 or more; one call takes 1e\+12 steps at most"),
    (2**62, "steps at most"),
    (True, "n is True; it must be a whole number of steps"),
    (np.True_, "whole number of steps"),
    (2.5, "n is 2.5; it must be a whole number of steps"),
    (2.0, "whole number of steps"),
    (np.nan, "whole number of steps"),
    (-1, "n is -1; it must be a whole number of steps, 0 or more"),
    (-(10**5000), "whole number of steps, 0 or more"),
    ("3", "whole number of steps"),
    (None, "whole number of steps"),
]
REFUSED_TIMES = [
    (True, "must be a number of seconds, not True"),
    (np.True_, "must be a number of seconds"),
    ("1", "must be a number of seconds, not '1'"),
    (1j, "must be a number of seconds"),
    (None, "must be a number of seconds"),
    (10**400, "is beyond all floating-point numbers"),
    (np.nan, "is nan; it must be a finite time"),
    (np.inf, "is inf; it must be a finite time"),
    (-1.0, "is -1.0; it must be a finite time in seconds, 0 or more"),
]


@pytest.mark.parametrize(("n", "message"), REFUSED_STEPS, ids=range(len(REFUSED_STEPS)))
def test_numbers_of_steps_that_cannot_be_are_refused_before_anything_is_done(n: object, message: str) -> None:
    world = heap(2)
    for owner in (world, poise.dynamics.Simulation(world.model)):
        q = owner.q.copy()
        with pytest.raises(ValueError, match=message):
            owner.step(n)
        assert owner.time == 0.0
        assert np.array_equal(owner.q, q)


@pytest.mark.parametrize(("time", "message"), REFUSED_TIMES)
def test_times_that_cannot_be_are_refused_before_anything_is_done(time: object, message: str) -> None:
    world = heap(2)
    sim, before = poise.dynamics.Simulation(world.model), world.dt
    for owner in (world, sim):
        with pytest.raises(ValueError, match=f"duration {message}"):
            owner.run(time)
        if time is not None:
            with pytest.raises(ValueError, match=f"dt {message}"):
                owner.dt = time
        assert (owner.time, owner.dt) == (0.0, before)


@pytest.mark.parametrize("duration", [1e18, 1e300, 10**18])
def test_a_run_that_never_ends_is_refused_before_anything_is_done(duration: float, tmp_path) -> None:
    world = heap(2)
    for owner in (world, poise.dynamics.Simulation(world.model)):
        with pytest.raises(ValueError, match=r"one call takes 1e\+12 steps at most"):
            owner.run(duration)
        assert owner.time == 0.0
    with pytest.raises(ValueError, match=r"one call takes 1e\+12 steps at most"):
        world.stream(duration, tmp_path / "long.h5")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("dt", "seconds"), [(1 / 240, 2.5), (1 / 1000, 1.5)])
def test_a_ragdoll_that_falls_on_stairs_gains_little_in_any_step(dt: float, seconds: float) -> None:
    """Contacts come and go by the dozen. A world that is made anew at any moment goes on in the same way."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(4):
        height = 0.18 * (k + 1)
        scene.add(poise.box(0.3, 3.0, height), name=f"stair {k}", position=(-0.3 * k, 0, 0.5 * height), fixed=True)
    scene.add(poise.characters.humanoid(), name="doll", position=(-0.5, 0, 1.2))
    world = scene.build(dt=dt)
    world.body("doll/pelvis").place(quat_wxyz=(0.8, 0.3, 0.5, 0.1), angular_velocity=(1, 2, 0))
    model = world.model
    start = poise.dynamics.energy(model, world.q, world.v).total
    before, most = start, 0.0
    for k in range(round(seconds / dt)):
        saved = world.state if k % 100 == 99 else None
        world.step()
        now = poise.dynamics.energy(model, world.q, world.v).total
        most, before = max(most, now - before), now
        if saved is not None:
            other = poise.World(model, state=saved, dt=dt)
            other.step()
            assert np.array_equal(other.v, world.v)
    assert most < 0.005 * start
    assert before < 0.7 * start


# ---- impulses, keyframes, poses --------------------------------------------------------------------------------------


def test_an_impulse_changes_velocities_at_once() -> None:
    """A rod that is struck at its end, free and as a part of a chain: M Δv = Jᵀp."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(1.0, 0.1, 0.1, mass=3.0), name="rod")
    scene.hinge(
        "rod", poise.box(0.5, 0.1, 0.1, mass=1.0, position=(0.25, 0, 0)), axis="z", position=(0.5, 0, 0), name="end"
    )
    world = scene.build()
    world.v[:] = np.arange(world.model.nv)
    before = world.v.copy()
    world.apply_impulse("end", (0.0, 2.0, 0.0), point=(1.0, 0.0, 0.0), torque=(0.1, 0, 0))
    M = poise.dynamics.mass_matrix(world.model, world.q)
    J = poise.dynamics.jacobian(world.model, world.q, "end", (0.5, 0, 0)).J
    assert M @ (world.v - before) == pytest.approx(J.T @ (0.1, 0, 0, 0, 2.0, 0), abs=1e-12)
    assert world.time == 0.0
    fixed = heap(1)
    fixed.apply_impulse("ground", (1, 0, 0))
    assert not fixed.v.any()
    for bad in ({"impulse": (1, 2)}, {"point": (np.inf, 0, 0)}, {"torque": "much"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            world.apply_impulse("end", **bad)


def test_keyframes_by_name_and_number() -> None:
    keys = [poise.Keyframe("ajar", q=(0.2,)), poise.Keyframe("open", q=(0.4,), v=(1.0,), time=3.0)]
    scene = poise.Scene(keyframes=keys)
    scene.hinge(None, poise.box(0.9, 0.04, 2.0), name="door", anchor=(-0.45, 0, 0))
    world = scene.build()
    world.apply_force("door", (0, 50, 0))
    world.reset("ajar")
    world.step()
    assert world.v[0] == 0.0  # the push has gone with what was
    world.reset(1)
    assert (world.q[0], world.v[0], world.time) == (0.4, 1.0, 3.0)
    world.reset()
    assert (world.q[0], world.v[0], world.time) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match='there is no keyframe "ajat", did you mean "ajar"'):
        world.reset("ajat")
    with pytest.raises(ValueError, match="keyframe 2: the model has keyframes 0 to 1"):
        world.reset(2)
    with pytest.raises(ValueError, match="keyframe must be a name or a number"):
        world.reset(1.5)
    with pytest.raises(ValueError, match="has no keyframes"):
        heap(1).reset(0)


def test_poses() -> None:
    world = heap(1)
    turn = np.array((0.5, 0.5, -0.5, 0.5))
    world.body("part 0").place(position=(1, 2, 3), quat_wxyz=turn)
    pose = world.body("part 0").pose
    assert pose.position.tolist() == [1, 2, 3]
    assert abs(pose.quat_wxyz @ turn) == pytest.approx(1.0)


def test_a_report_tells_of_torques_overlaps_and_limits() -> None:
    """A drive against a limit: torques balance in rest, M a = 0 = drive + gravity + limit."""
    scene = poise.Scene()
    rod = poise.sphere(0.05, mass=2.0, position=(0, 0, -1.0))
    scene.hinge(None, rod, axis="y", name="arm", limits=(-0.5, 0.5), damping=3.0)
    world = scene.build()
    world.drive = poise.dynamics.Drive([400.0], [40.0], [0.6])
    world.tau[0] = 0.25
    world.step(1000)
    report = world.report()
    assert report.passive[0] == pytest.approx(400.0 * (0.6 - world.q[0]), abs=1e-3)
    assert report.tau.tolist() == [0.25]
    (limit,) = report.limits
    gravity = 2.0 * 9.81 * np.sin(world.q[0])
    assert report.passive[0] + 0.25 + limit.force == pytest.approx(gravity, rel=1e-3)
    assert 0.0 <= report.beyond < 1e-4
    assert world.a == pytest.approx([0.0], abs=1e-2)
    assert world.drive_forces == pytest.approx(report.passive)
    box = heap(2)
    box.step(400)
    told = box.report()
    assert told.overlap == max(0.0, *(contact.depth for contact in told.contacts))
    for contact in told.contacts:
        assert contact.impulse == pytest.approx(contact.force * box.dt)


def test_a_world_goes_on_after_it_has_diverged() -> None:
    """Also where the step was split, and multipliers of the last good step are still those to start from."""
    for speed in (0.0, 50.0):
        world, other = heap(), heap()
        for each in (world, other):
            each.v[0] = speed
            each.step(60)
        world.tau[0] = np.nan
        with pytest.raises(Diverged):
            world.step()
        world.tau[0] = 0.0
        world.step(20)
        other.step(20)
        assert np.array_equal(world.q, other.q)
