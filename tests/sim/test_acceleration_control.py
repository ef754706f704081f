"""Joints at acceleration level: limits (KOK §8.2), dry friction, and trajectories that are followed (KOK §8.3)."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.control import gains
from poise.dynamics import Drive, energy

G = 9.81
DOFS = ("upper", "lower", "hand")


def acceleration(integrator: str = "rk4", **options) -> poise.Reduced:
    return poise.Reduced(level="acceleration", integrator=integrator, **options)


def pendulum(formulation: poise.Reduced, dt: float = 1 / 240, **options) -> poise.World:
    """A rod of 1 m and 2 kg that hangs from a hinge at its end."""
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm", **options)
    return scene.build(formulation, dt=dt)


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["euler", "midpoint", "rk4"])
def test_a_limit_holds_what_rests_against_it(integrator: str) -> None:
    """The torque of the limit is that of gravity; the joint does not creep through."""
    world = pendulum(acceleration(integrator), limits=(0.4, 1.0))
    world.q[0] = 0.4
    world.step(120)
    assert world.q[0] == pytest.approx(0.4, abs=1e-9)
    (limit,) = world.report().limits
    assert (limit.what, world.report().parts) == ("lower", 1)
    exact = 2.0 * G * 0.5 * np.sin(0.4)
    print(f"\nlimit, {integrator}: torque {limit.force:.7f} N m of {exact:.7f} (1e-6 of it)")
    assert limit.force == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_limit_stops_a_swinging_arm(integrator: str) -> None:
    """The joint velocity is neutralized in an instant, where the limit is; then gravity takes the arm away."""
    world = pendulum(acceleration(integrator), limits=(-0.3, 0.4))
    world.q[0], world.v[0] = 0.3, 3.0
    seen, backtracks, before = [], 0, energy(world.model, world.q, world.v).total
    for _ in range(240):
        world.step()
        seen.append(float(world.q[0]))
        backtracks += world.report().backtracks
        after = energy(world.model, world.q, world.v).total
        # Euler's error of a step: h²/2 times the rate at which gravity's power changes, 1/2 m g l q̇² and less
        assert after <= before + 2.0 * G * 0.5 * world.dt**2 / 2 * 20.0
        before = after
    fall = 1.5 * G * world.dt**2 / 2  # within the rest of a step it falls by this at most
    print(f"\nlimits of an arm, {integrator}: {max(seen) - 0.4:.1e}, {-0.3 - min(seen):.1e} beyond (2e-6, {-fall:.1e})")
    assert 0.4 - fall <= max(seen) <= 0.4 + 2e-6
    assert -0.3 - 2e-6 <= min(seen) <= -0.3 + fall
    assert backtracks >= 2


def test_a_swing_is_held_at_its_cone() -> None:
    """A rod that is thrown along its cone goes round on it; the cone does no work."""
    scene = poise.Scene()
    rod = poise.box(0.1, 0.1, 1.0, mass=2.0)
    scene.ball(None, rod, axis="-z", axis2="x", anchor=(0, 0, 0.5), name="rod", cone=0.6)
    world = scene.build(acceleration(), dt=1 / 240)
    world.q[:] = (np.cos(0.3), 0, np.sin(0.3), 0)  # swung by the cone's angle about y
    fast = 6.0  # about the vertical: the rod wants out
    turn = np.array([[np.cos(0.6), 0, np.sin(0.6)], [0, 1, 0], [-np.sin(0.6), 0, np.cos(0.6)]])
    world.v[:] = turn.T @ (0, 0, fast)
    start = energy(world.model, world.q, world.v).total
    tilts = []
    for _ in range(120):
        world.step()
        tilts.append(float(np.arccos(world.body("rod").rotation[2, 2])))
    print(f"\ncone: {max(abs(tilt - 0.6) for tilt in tilts):.1e} rad off (1e-4)")
    assert max(abs(tilt - 0.6) for tilt in tilts) < 1e-4
    assert energy(world.model, world.q, world.v).total == pytest.approx(start, abs=1e-3 * abs(start))
    assert [limit.what for limit in world.report().limits] == ["cone"]


def test_dry_friction_stops_a_joint_and_holds_it() -> None:
    """The wheel slows at f / I, stops in the step in which it does, and stays."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.cylinder(0.2, 0.1, mass=2.0), axis="z", name="wheel", friction=0.1)
    world = scene.build(acceleration(), dt=0.01)
    inertia, speed = 2.0 * 0.2**2 / 2, 1.0
    world.v[0] = speed
    world.step(10)
    assert world.v[0] == pytest.approx(speed - 0.1 / inertia * 0.1, rel=1e-9)
    world.step(40)
    assert abs(world.v[0]) < 1e-12
    assert world.q[0] == pytest.approx(speed**2 * inertia / (2 * 0.1), abs=speed * 0.01)
    world.tau[0] = 0.05
    world.step(10)
    assert abs(world.v[0]) < 1e-9


# ---- trajectories ----------------------------------------------------------------------------------------------------


def arm(formulation: poise.Reduced, dt: float) -> poise.World:
    """A floating trunk with an arm of three hinges, out of its reach."""
    scene = poise.Scene(gravity=(0, 0, -G))
    scene.add(poise.box(0.3, 0.2, 0.5, mass=10.0), name="trunk")
    parent = "trunk"
    for k, name in enumerate(DOFS):
        rod = poise.box(0.06, 0.06, 0.3, mass=1.5 - 0.4 * k)
        place = (0.9, 0, 0.1) if k == 0 else (0, 0, -0.32)
        scene.hinge(parent, rod, axis="y" if k != 1 else "x", anchor=(0, 0, 0.15), position=place, name=name)
        parent = name
    return scene.build(formulation, dt=dt)


def reference(time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles, speeds and accelerations that the arm is to have."""
    size, rate = np.array((0.8, -0.5, 1.1)), np.array((3.0, 4.0, 5.0))
    return size * np.sin(rate * time), size * rate * np.cos(rate * time), -size * rate**2 * np.sin(rate * time)


def joints_of(world: poise.World) -> list[str]:
    return [name for name in world.model.joint_names if any(part in name for part in DOFS)]


def error_of(integrator: str, steps: int, push: float) -> float:
    """How far the arm is from its reference after half a second, started on it."""
    world = arm(acceleration(integrator), 0.5 / steps)
    world.track(joints_of(world), reference)
    world.v[-3:] = reference(0.0)[1]
    worst = 0.0
    for k in range(steps):
        at = world.time
        world.apply_force("trunk", (push * np.sin(7 * at), push, 0), torque=(0, push * np.cos(9 * at), 0))
        world.apply_force("hand", (0, push * np.cos(11 * at), push))
        world.step()
        worst = max(worst, float(np.abs(world.q[-3:] - reference((k + 1) * world.dt)[0]).max()))
    return worst


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_joints_follow_a_reference_at_the_order_of_the_integrator(integrator: str, order: int) -> None:
    """However the body is pushed: the error is that of the integrator, and the pushes do not change it."""
    errors = {}
    for push in (0.0, 60.0):
        coarse, fine = error_of(integrator, 80, push), error_of(integrator, 160, push)
        errors[push], found = fine, float(np.log2(coarse / fine))
        print(f"\n{integrator}, push {push} N: error {fine:.2e} rad, order {found:.3f} ({order} ± 0.3), ", end="")
        print(f"{abs(fine / errors[0.0] - 1):.1e} from that without a push (1e-5)")
        assert found == pytest.approx(order, abs=0.3)
    assert errors[60.0] == pytest.approx(errors[0.0], rel=1e-5)


def test_a_torque_that_is_not_a_constraint_does_not_follow() -> None:
    """KOK §8.3: the same gains as a drive (a PD torque) leave the joint behind when it is pushed."""
    kp, kv = gains(0.1)
    errors = {}
    for kind in ("constraint", "drive"):
        world = arm(acceleration() if kind == "constraint" else poise.Reduced(), 1 / 240)
        world.v[-3:] = reference(0.0)[1]
        if kind == "constraint":
            world.track(joints_of(world), reference)
        worst = 0.0
        for _ in range(120):
            if kind == "drive":
                q, v, _ = reference(world.time)
                goal, speed, p, d = world.model.q_rest.copy(), np.zeros(9), np.zeros(9), np.zeros(9)
                goal[-3:], speed[-3:], p[-3:], d[-3:] = q, v, kp, kv
                world.drive = Drive(p, d, goal, speed)
            world.apply_force("hand", (0, 50, 50))
            world.step()
            worst = max(worst, float(np.abs(world.q[-3:] - reference(world.time)[0]).max()))
        errors[kind] = worst
    print(f"\npushed: constraint {errors['constraint']:.1e} rad off (1e-5), plain PD {errors['drive']:.2f} (> 0.01)")
    assert errors["constraint"] < 1e-5
    assert errors["drive"] > 1e-2


@pytest.mark.parametrize(("settle_time", "tolerance"), [(0.2, 0.1), (0.2, 0.01), (1.0, 1e-6), (0.05, 0.9)])
def test_gains_keep_their_promise(settle_time: float, tolerance: float) -> None:
    """An error at rest is the tolerance of itself at the settling time, and less ever after; it never changes sign."""
    kp, kv = gains(settle_time, tolerance)
    assert kv**2 == pytest.approx(4 * kp)
    omega = np.sqrt(kp)
    time = np.linspace(0.0, 5 * settle_time, 2001)
    error = (1 + omega * time) * np.exp(-omega * time)
    assert error[400] == pytest.approx(tolerance, rel=1e-9)
    assert (np.diff(error) <= 0.0).all()
    world = pendulum(acceleration(), dt=settle_time / 200)
    world.track(world.model.joint_names[0], lambda t: (0.7, 0.0, 0.0), gains=(kp, kv))
    world.step(200)
    off = abs(abs(0.7 - world.q[0]) / (0.7 * tolerance) - 1)
    print(f"\ngains({settle_time}, {tolerance}): kp {kp:.4g}, kv {kv:.4g}; {off:.1e} off (1e-4)")
    assert abs(0.7 - world.q[0]) == pytest.approx(0.7 * tolerance, rel=1e-4)  # (ωh)⁴ ωt / 120


def test_a_tracked_joint_keeps_its_way_through_impacts() -> None:
    """An arm that is led sweeps a ball away: the joint does not feel it."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.add(poise.sphere(0.1, mass=5.0), name="ball", position=(-0.4, 0, -0.2))
    world = scene.build(acceleration(), dt=1 / 240)
    hinge = next(
        name for name, kind in zip(world.model.joint_names, world.model.joint_kinds, strict=True) if kind == "hinge"
    )
    world.track(hinge, lambda t: (2.0 * t, 2.0, 0.0))
    j = int(world.model.joint_q_start[world.model.joint_names.index(hinge)])
    world.v[int(world.model.joint_v_start[world.model.joint_names.index(hinge)])] = 2.0
    world.step(120)
    assert world.q[j] == pytest.approx(1.0, abs=1e-9)
    assert np.linalg.norm(world.body("ball").velocity) > 0.5


def test_a_track_that_leads_into_a_wall_is_told() -> None:
    """No forces make an arm go on through a wall: steps at velocity level, and the wall stands."""
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.add(poise.box(0.2, 1.0, 0.4), name="wall", position=(-0.5, 0, -0.2), fixed=True)
    world = scene.build(acceleration(), dt=1 / 60)
    world.track("arm", lambda t: (t, 1.0, 0.0))
    world.q[0], world.v[0], world.time = 0.3, 1.0, 0.3
    levels = []
    for _ in range(12):
        world.step()
        levels.append(world.report().level)
        assert all(contact.depth < 1e-3 for contact in world.report().contacts)
    assert levels[0] == "acceleration"
    assert levels[-1] == "velocity"
    assert world.q[0] < 0.38


def test_tracks_can_be_changed_and_let_go() -> None:
    world = pendulum(acceleration())
    name = world.model.joint_names[0]
    world.track(name, lambda t: (0.3, 0.0, 0.0))
    world.step(120)
    assert world.q[0] == pytest.approx(0.3, abs=1e-3)
    (row,) = world.report().limits
    assert row.what == "track"
    assert row.force == pytest.approx(2.0 * G * 0.5 * np.sin(world.q[0]), rel=0.05)
    world.track(name, lambda t: (-0.3, 0.0, 0.0))
    world.step(120)
    assert world.q[0] == pytest.approx(-0.3, abs=1e-3)
    world.track(name, None)
    world.step(30)
    fall = G * 0.5 * np.sin(0.3) / (1.01 / 12 + 0.25)
    assert world.q[0] == pytest.approx(-0.3 + fall * 0.125**2 / 2, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda w, j: w.track("elbow", lambda t: (0, 0, 0)), ValueError, 'no joint or coordinate is called "elbow"'),
        (lambda w, j: w.track([], lambda t: (0, 0, 0)), ValueError, "names is empty"),
        (lambda w, j: w.track([j, j], lambda t: (0, 0, 0)), ValueError, "named twice"),
        (lambda w, j: w.track(j, 3.0), TypeError, "reference is a float"),
        (lambda w, j: w.track(j, lambda t: (0, 0, 0), gains=(-1.0, 2.0)), ValueError, "kp is -1.0"),
        (lambda w, j: (w.track(j, lambda t: 0.0), w.step()), ValueError, r"it must be \(q, v, a\)"),
        (lambda w, j: (w.track(j, lambda t: (0, np.nan, 0)), w.step()), ValueError, "v of the reference at 0 s is nan"),
        (lambda w, j: (w.track(j, lambda t: ((0, 1), 0, 0)), w.step()), ValueError, "it must be 1 finite numbers"),
        (lambda w, j: gains(0.0), ValueError, "settle_time is 0.0"),
        (lambda w, j: gains(1.0, 1.0), ValueError, "tolerance is 1.0"),
    ],
)
def test_what_is_wrong_is_told(call, error, message) -> None:
    world = pendulum(acceleration())
    with pytest.raises(error, match=message):
        call(world, world.model.joint_names[0])


def test_only_hinges_and_slides_of_the_acceleration_level_are_tracked() -> None:
    world = pendulum(poise.Reduced())
    with pytest.raises(ValueError, match="joints are tracked at acceleration level"):
        world.track(world.model.joint_names[0], reference)
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball")
    free = scene.build(acceleration())
    with pytest.raises(ValueError, match="belongs to a free or ball joint; only hinges and slides can be tracked"):
        free.track(free.model.joint_names[0], reference)


def test_rows_of_hooks_are_refused() -> None:
    world = pendulum(acceleration())
    world.rows_hooks.append(lambda world, rows: None)
    with pytest.raises(ValueError, match="constraint callbacks need the velocity level"):
        world.step()
    world.rows_hooks.clear()
    world.step()


def test_rolling_friction_is_refused() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1, material=poise.Material(rolling_friction=0.01)), name="ball")
    with pytest.raises(ValueError, match='"ball" has rolling or torsional friction: it takes the velocity level'):
        scene.build(acceleration())
