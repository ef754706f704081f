"""Motors between any two bodies: closed forms of VON §5.1 to §5.4, momentum that is kept, states that go back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import poise
from poise.control import AngularMotor, LinearMotor, PoseMotor, Spring, TravelMotor, TurnMotor
from poise.dynamics import bodies, momentum
from poise.model.scene import Body, Inertia, Joint
from poise.motion.rotations import quat_exp, quat_from_matrix, quat_log, quat_multiply

FINE = poise.Reduced(tolerance=1e-12)
"""Rows are solved to rounding, so that closed forms are met to rounding too."""
APART = poise.Maximal(tolerance=1e-12)
BOTH = pytest.mark.parametrize("formulation", [FINE, APART], ids=["reduced", "maximal"])
"""Motors are rows, and mean the same wherever these are solved."""
DT = 0.01


def balls(*places: Any, gravity: Any = (0, 0, 0), mass: float = 2.0, formulation: Any = FINE) -> poise.World:
    """Free bodies that touch nothing, turned somehow."""
    scene = poise.Scene(gravity=gravity)
    for k, place in enumerate(places):
        body = Body(f"ball{k}", inertia=Inertia(mass * (k + 1), moments=(0.2, 0.3, 0.4)))
        scene.add(body, joint="free", position=place, quat_wxyz=quat_exp((0.3 * k, -0.2, 0.1 * k)))
    return scene.build(formulation, dt=DT)


# ---- three ways, along axes ------------------------------------------------------------------------------------------


@BOTH
def test_a_bounded_linear_motor_gives_a_constant_acceleration_and_then_the_speed(formulation: Any) -> None:
    """2 kg, 5 N along (3, 4, 0)/5: v = 2.5 t until 0.5 m/s, then that."""
    world = balls((0, 0, 1), formulation=formulation)
    world.add_controller(LinearMotor(None, "ball0", velocity=(0.3, 0.4, 0.0), strength=5.0))
    for n in range(1, 31):
        world.step()
        speed = min(2.5 * n * DT, 0.5)
        assert world.v[:3] == pytest.approx((0.6 * speed, 0.8 * speed, 0.0), abs=1e-9)


def test_it_holds_a_speed_against_a_weight_that_it_can_carry_and_no_other() -> None:
    for strength, fall in ((20.0, 0.0), (15.0, 9.81 - 7.5)):
        world = balls((0, 0, 1), gravity=(0, 0, -9.81))
        world.add_controller(LinearMotor(None, "ball0", velocity=(0, 0, 0), strength=strength))
        world.step(20)
        assert world.v[2] == pytest.approx(-fall * 20 * DT, abs=1e-9)


@pytest.mark.parametrize("alpha", [5.0, 40.0, 100.0, np.inf])
def test_errors_of_position_shrink_by_1_minus_alpha_dt_in_a_step(alpha: float) -> None:
    """VON §5.1 at position level; the weight changes nothing, as the motor is not bounded."""
    world = balls((0.5, 0, 1), gravity=(0, 0, -9.81))
    world.add_controller(LinearMotor(None, "ball0", position=(0.2, -0.1, 0.4), alpha=alpha))
    goal = world.q[:3] + np.array((0.2, -0.1, 0.4))
    for n in range(1, 20):
        world.step()
        left = max(1.0 - alpha * DT, 0.0) ** n
        assert goal - world.q[:3] == pytest.approx(left * np.array((0.2, -0.1, 0.4)), abs=1e-10)


def test_a_position_that_moves_lags_by_its_speed_over_alpha_unless_its_velocity_is_told() -> None:
    """u⁺ = u + dt α (u_d − u): behind u_d = V t by V/α at the start of a step; with u̇_d = V not at all."""
    for velocity, lag in ((None, 0.3 / 10.0), ((0.3, 0, 0), 0.0)):
        world = balls((0, 0, 1))
        motor = LinearMotor(None, "ball0", position=lambda t: (0.3 * t, 0, 0), velocity=velocity, alpha=10.0)
        world.add_controller(motor)
        world.step(400)
        assert 0.3 * world.time - world.q[0] == pytest.approx(lag, abs=1e-9)


def test_a_point_of_a_body_is_driven_and_an_absolute_position_is_one_of_the_world() -> None:
    world = balls((0, 0, 1))
    world.add_controller(LinearMotor(None, "ball0", position=(0.4, 0.3, 1.2), point=(0.1, 0, 0), absolute=True))
    world.step(200)
    place = bodies(world.model, world.q)
    # it goes on spinning about the point: the end of a step is off by ½ dt² ω² r, of which each takes back α dt
    off = 0.5 * DT * world.v[3:] @ world.v[3:] * 0.1 / 20.0
    assert 0.0 < off < 1e-4
    assert np.abs(place.position[0] + place.rotation[0] @ (0.1, 0, 0) - (0.4, 0.3, 1.2)).max() < 1.01 * off


# ---- momentum --------------------------------------------------------------------------------------------------------

PAIRS = {
    "linear": lambda: LinearMotor("ball0", "ball1", position=(0.3, 0.2, -0.1), strength=40.0),
    "linear, velocity": lambda: LinearMotor("ball0", "ball1", velocity=(0.3, 0.2, -0.1)),
    "linear, spring": lambda: LinearMotor("ball0", "ball1", position=(0.3, 0, 0), spring=Spring(200.0, 5.0, zone=0.1)),
    "angular": lambda: AngularMotor("ball0", "ball1", position=quat_exp((1.0, 0.5, -0.4)), strength=3.0),
    "angular, velocity": lambda: AngularMotor("ball0", "ball1", velocity=(1.0, 0.5, -0.4)),
    "turn": lambda: TurnMotor("ball0", "ball1", (1, 2, 0), position=1.2, strength=2.0),
    "travel": lambda: TravelMotor("ball0", "ball1", (1, 2, 0), position=0.4, strength=30.0),
    "pose": lambda: PoseMotor("ball0", "ball1", position=(0.2, 0, 0), quat_wxyz=quat_exp((0, 1.0, 0))),
}


@BOTH
@pytest.mark.parametrize("kind", PAIRS)
def test_a_pair_of_bodies_keeps_its_momentum(kind: str, formulation: Any) -> None:
    """What moves both bodies is internal: in each step momenta stay to rounding, as the solver's impulses balance. So
    say the accelerations at the beginning of the step, against those of the same step without a motor.
    """
    moved, left = (balls((0, 0, 1), (0.6, 0.2, 1.3), formulation=formulation) for _ in range(2))
    moved.add_controller(PAIRS[kind]())
    acted = 0.0
    for _ in range(30):
        left.q[:], left.v[:] = moved.q, moved.v
        now = [momentum(one.model, one.q, one.v) for one in (moved, left)]
        assert np.array_equal(now[0].linear, now[1].linear)
        places, speeds = moved.q.copy(), moved.v.copy()
        moved.step()
        left.step()
        after = [momentum(one.model, places, speeds + one.dt * one.a) for one in (moved, left)]
        assert after[0].linear == pytest.approx(after[1].linear, abs=1e-10)
        assert after[0].angular == pytest.approx(after[1].angular, abs=1e-10)
        acted = max(acted, float(np.abs(moved.v - left.v).max()))
    assert acted > 1e-3


def test_the_linear_motor_as_printed_leaves_a_couple() -> None:
    """VON §5.1 along axes of the world: forces ±f at x_B and x_A add (x_B − x_A) × f to the angular momentum."""
    world = balls((0, 0, 1), (0.6, 0.2, 1.3))
    world.add_controller(LinearMotor("ball0", "ball1", velocity=(0.0, 0.5, -0.3), axes="world"))
    place, before = bodies(world.model, world.q).position, world.q.copy()
    world.step()
    impulse = 4.0 * world.v[6:9]
    assert momentum(world.model, before, world.v).linear == pytest.approx(np.zeros(3), abs=1e-12)
    assert np.linalg.norm(impulse) > 0.1
    couple = np.cross(place[1] - place[0], impulse)
    assert momentum(world.model, before, world.v).angular == pytest.approx(couple, abs=1e-12)
    assert world.v[6:9] - world.v[:3] == pytest.approx((0.0, 0.5, -0.3), abs=1e-10)


# ---- turns -----------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("first", [None, "ball1"])
@pytest.mark.parametrize("alpha", [5.0, 40.0, 100.0])
def test_an_angle_shrinks_by_1_minus_alpha_dt_in_a_step_about_vons_axis(
    first: str | None, alpha: float, formulation: Any
) -> None:
    """VON §5.2: ω_B − ω_A = −w z α, so U_e keeps its axis. A ball's spin has no gyroscopic torque, and A is at rest."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball0", quat_wxyz=quat_exp((0.4, 0, 0)))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball1", position=(1, 0, 0), quat_wxyz=quat_exp((0, 0.7, 0)))
    world = scene.build(formulation, dt=DT)
    wanted = quat_exp((0.9, -1.1, 2.0))
    world.add_controller(AngularMotor(first, "ball0", position=wanted, alpha=alpha))

    def error() -> np.ndarray:
        R = bodies(world.model, world.q).rotation
        relative = R[0] if first is None else R[1].T @ R[0]
        U = relative @ start.T
        return quat_log(quat_multiply(quat_from_matrix(U), wanted * (1, -1, -1, -1)))

    R = bodies(world.model, world.q).rotation
    start = R[0] if first is None else R[1].T @ R[0]
    whole = error()
    assert np.linalg.norm(whole) == pytest.approx(np.linalg.norm((0.9, -1.1, 2.0)))
    for n in range(1, 25):
        world.step()
        # both balls turn about one axis: what is left is exact, whoever moves
        assert error() == pytest.approx(whole * max(1.0 - alpha * DT, 0.0) ** n, abs=1e-9)


def test_an_angular_velocity_is_had_in_the_axes_that_are_told() -> None:
    for axes in ("first", "world"):
        world = balls((0, 0, 1), (0.6, 0.2, 1.3))
        world.add_controller(AngularMotor("ball1", "ball0", velocity=(1.0, 0.5, -0.4), axes=axes))
        R = bodies(world.model, world.q).rotation
        world.step()
        spin = R[0] @ world.v[3:6] - R[1] @ world.v[9:12]
        wanted = np.array((1.0, 0.5, -0.4))
        assert spin == pytest.approx(R[1] @ wanted if axes == "first" else wanted, abs=1e-9)


def test_a_torque_has_its_bound() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(Body("ball", inertia=Inertia(2.0, moments=(0.2, 0.2, 0.2))), joint="free")
    world = scene.build(FINE, dt=DT)
    world.add_controller(AngularMotor(None, "ball", velocity=(3.0, 4.0, 0.0), strength=0.6))
    world.step(50)
    assert world.v[3:] == pytest.approx(np.array((0.6, 0.8, 0.0)) * 0.6 / 0.2 * 0.5, abs=1e-9)
    world.step(150)
    assert world.v[3:] == pytest.approx((3.0, 4.0, 0.0), abs=1e-9)


# ---- one axis --------------------------------------------------------------------------------------------------------


def wheel(gravity: Any = (0, 0, 0), formulation: Any = FINE) -> poise.World:
    scene = poise.Scene(gravity=gravity)
    wheel = Body("wheel", inertia=Inertia(2.0, com=(0.0, 0.0, -0.3), moments=(0.1, 0.2, 0.1)))
    wheel.joints = [Joint("hinge", name="wheel", axis=(0, 1, 0))]
    scene.bodies.append(wheel)
    return scene.build(formulation, dt=DT)


INERTIA = 0.2 + 2.0 * 0.3**2


def test_a_bounded_turn_motor_accelerates_by_its_torque_over_the_inertia() -> None:
    world = wheel()
    world.add_controller(TurnMotor(None, "wheel", "y", velocity=4.0, strength=1.9))
    world.step(10)
    assert world.v[0] == pytest.approx(1.9 / INERTIA * 10 * DT, abs=1e-9)
    world.step(100)
    assert world.v[0] == pytest.approx(4.0, abs=1e-9)


def test_turns_are_counted() -> None:
    """To 20 rad, three turns on: q of a hinge counts as well."""
    world = wheel()
    motor = TurnMotor(None, "wheel", "y", position=20.0, alpha=10.0)
    name = world.add_controller(motor)
    for n in range(1, 60):
        world.step()
        assert 20.0 - world.q[0] == pytest.approx(20.0 * (1.0 - 10.0 * DT) ** n, abs=1e-8)
        assert motor.measure(world.state, name) == pytest.approx(world.q[0], abs=1e-9)


@BOTH
@pytest.mark.parametrize("speed", [0.7, 8.0, -3.0])
@pytest.mark.parametrize("strength", [np.inf, 2.0])
def test_limits_stop_exactly(speed: float, strength: float, formulation: Any) -> None:
    """Whatever drives it: never beyond by more than what is solved to, and at rest at the end.

    Separate bodies go straight on, and joints bend that after rows are met: by less than the cube of the turn.
    """
    world = wheel(formulation=formulation)
    slack = 1e-9 + (abs(speed) * DT) ** 3 * isinstance(formulation, poise.Maximal)
    motor = TurnMotor(None, "wheel", "y", velocity=speed, limits=(-0.4, 0.9), strength=strength)
    world.add_controller(motor)
    for _ in range(150):
        world.step()
        assert -0.4 - slack < world.q[0] < 0.9 + slack
    assert world.q[0] == pytest.approx(0.9 if speed > 0.0 else -0.4, abs=slack)
    assert world.v[0] == pytest.approx(0.0, abs=1e-9)


def test_a_limit_alone_holds_a_pendulum_and_lets_it_swing_back() -> None:
    world, free = wheel((0, 0, -9.81)), wheel((0, 0, -9.81))
    world.add_controller(TurnMotor(None, "wheel", "y", limits=(-0.5, 0.3)))
    world.v[0] = free.v[0] = -2.0
    world.step(5)
    free.step(5)
    assert np.array_equal(world.q, free.q)
    world.step(300)
    assert -0.5 <= world.q[0] < 0.3 + 1e-9


def test_what_is_beyond_a_limit_comes_back_and_hardly_has_a_speed_then() -> None:
    """As at limits of joints: a share `erp` of it in a step, up to the slop, by a displacement; but for the creep.

    The first of these displacements is the fastest, erp 0.5 rad / h: 1.5 times that is allowed, so that no cap acts.
    """
    enough = 1.5 * FINE.erp * 0.5 / DT
    world = wheel(formulation=replace(FINE, correction_speed=enough, correction_turn=enough))
    motor = TurnMotor(None, "wheel", "y", limits=(-1.0, 1.0))
    world.add_controller(motor)
    world.step()
    motor.limits = (0.5, 1.0)
    for n in range(1, 60):
        world.step()
        assert abs(0.5 - world.q[0] - 0.5 * (1.0 - world.formulation.erp) ** n) <= world.formulation.slop
        assert abs(world.v[0]) < world.formulation.creep + 1e-9


def test_no_speed_and_a_strength_are_dry_friction() -> None:
    """As the basket's hinge of VON §5.5: ω falls by τ/I, and what rests stays though something pushes."""
    world = wheel()
    world.add_controller(TurnMotor(None, "wheel", "y", velocity=0.0, strength=0.5))
    world.v[0] = 1.0
    world.step(20)
    assert world.v[0] == pytest.approx(1.0 - 0.5 / INERTIA * 20 * DT, abs=1e-9)
    world.step(200)
    assert world.v[0] == pytest.approx(0.0, abs=1e-12)
    place = world.q[0]
    world.tau[0] = 0.49
    world.step(100)
    assert world.q[0] == pytest.approx(place, abs=1e-9)


def test_a_travel_motor_goes_along_with_the_axis_of_its_body() -> None:
    """A turntable that is led by a motor of its own carries a bead along a spoke: only the travel is driven."""
    scene = poise.Scene(gravity=(0, 0, 0))
    table = scene.hinge(None, poise.box(0.8, 0.8, 0.1, mass=50.0), axis="z", name="table")
    scene.slider(table, poise.sphere(0.05, mass=1.0), axis="x", name="bead", position=(0.1, 0, 0.2))
    world = scene.build(FINE, dt=DT)
    world.add_controller(TurnMotor(None, "table", "z", velocity=3.0))
    motor = TravelMotor("table", "bead", "x", velocity=0.5, limits=(-0.1, 0.2))
    name = world.add_controller(motor)
    world.step(20)
    assert world.q[1] == pytest.approx(0.5 * 20 * DT, abs=1e-9)
    assert motor.measure(world.state, name) == pytest.approx(world.q[1], abs=1e-9)
    world.step(60)
    assert world.q[1] == pytest.approx(0.2, abs=1e-9)
    assert world.v[0] == pytest.approx(3.0, abs=1e-9)


# ---- all six ---------------------------------------------------------------------------------------------------------


def hero() -> poise.World:
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero", position=(0, 0, 1))
    return scene.build(FINE, dt=1 / 240)


def test_a_root_motor_leads_a_root_as_it_is_told_whatever_hangs_on_it() -> None:
    """VON §5.4: the root has the velocity that is wanted in every step, though limbs fall and swing."""
    world = hero()
    root = PoseMotor(None, "pelvis", velocity=(0.3, 0.0, 0.1), angular_velocity=(0.0, 0.0, 0.8))
    world.add_controller(root)
    for _ in range(48):
        world.step()
        twist = bodies(world.model, world.q, world.v).twist[world.model.body_index("pelvis")]
        assert twist[:3] == pytest.approx((0.0, 0.0, 0.8), abs=1e-6)
        assert world.v[:3] == pytest.approx((0.3, 0.0, 0.1), abs=1e-6)


def test_a_root_motor_that_is_too_weak_lets_the_centre_of_mass_fall_by_what_is_missing() -> None:
    """From rest m a = F − m g of the whole, however the limbs hang, and |F| is all of the strength."""
    world = hero()
    world.add_controller(PoseMotor(None, "pelvis", position=(0, 0, 0), quat_wxyz=(1, 0, 0, 0), strength=(400.0, 300.0)))
    place, mass = world.q.copy(), world.model.body_mass.sum()
    world.step()
    force = momentum(world.model, place, world.v).linear * 240 + (0.0, 0.0, 9.81 * mass)
    assert np.linalg.norm(force) == pytest.approx(400.0, rel=1e-8)
    assert force[2] == pytest.approx(400.0, rel=1e-2)


# ---- states, scenes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PAIRS)
def test_states_go_back_bit_for_bit(kind: str) -> None:
    """What motors measure from, and turns that were counted, are in the state."""
    world = balls((0, 0, 1), (0.6, 0.2, 1.3))
    world.add_controller(PAIRS[kind]())
    world.step(10)
    kept = world.state
    world.step(10)
    ends = world.q.copy(), world.v.copy()
    world.state = kept
    world.step(10)
    assert np.array_equal(world.q, ends[0])
    assert np.array_equal(world.v, ends[1])


def test_letting_go_leaves_no_trace() -> None:
    world = balls((0, 0, 1))
    motor = LinearMotor(None, "ball0", velocity=(1, 0, 0))
    world.add_controller(motor)
    world.step()
    motor.velocity = None
    before = world.v.copy()
    world.step(3)
    assert np.array_equal(world.v[:3], before[:3])


def test_strength_0_does_nothing() -> None:
    world = balls((0, 0, 1))
    world.add_controller(PoseMotor(None, "ball0", velocity=(1, 0, 0), angular_velocity=(1, 0, 0), strength=(0, 0)))
    world.step(3)
    assert not world.v.any()


def test_scenes_take_them_along() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    scene.controllers.append(("lead", lambda: LinearMotor(None, "ball", velocity=(1, 0, 0))))
    for _ in range(2):
        world = scene.build()
        world.step()
        assert world.v[0] == pytest.approx(1.0)


def test_steps_in_parts_end_at_the_same_speed() -> None:
    scene = poise.Scene(gravity=(0, 0, -9.81))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    world = scene.build(poise.Reduced(tolerance=1e-12, substeps=4), dt=DT)
    world.add_controller(LinearMotor(None, "ball", velocity=(1, 0, 0)))
    world.step()
    assert world.v[:3] == pytest.approx((1, 0, 0), abs=1e-9)


# ---- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearMotor(None, "ball0", velocity=(1, 2)), "velocity: must have the shape"),
        (lambda: LinearMotor(None, "ball0", position=(1, np.nan, 0)), "position: must be finite"),
        (lambda: LinearMotor(None, "ball0", axes="body"), "axes: must be one of"),
        (lambda: LinearMotor(None, "ball0", strength=-1.0), "strength is -1.0"),
        (lambda: LinearMotor(None, "ball0", alpha=np.nan), "alpha is nan"),
        (lambda: AngularMotor(None, "ball0", position=(0, 0, 0, 0)), "position: must be rotations"),
        (lambda: TurnMotor(None, "ball0", (0, 0, 0)), "axis is"),
        (lambda: TurnMotor(None, "ball0", None), "axis is None"),
        (lambda: TurnMotor(None, "ball0", "y", limits=(1.0, -1.0)), "limits are"),
        (lambda: TurnMotor(None, "ball0", "y", limits=(np.nan, 1.0)), "limits are"),
        (lambda: TravelMotor(None, "ball0", "y", position=(1.0, 2.0)), "position: must have the shape"),
        (lambda: PoseMotor(None, "ball0", strength=3.0), "strength is 3.0; it must be a force and a torque"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_bodies_that_cannot_be_driven_are_named() -> None:
    world = balls((0, 0, 1), (1, 0, 1))
    with pytest.raises(ValueError, match='"ball1" and "ball1" do not move against each other'):
        world.add_controller(LinearMotor("ball1", "ball1", velocity=(0, 0, 0)))
    with pytest.raises(ValueError, match="the world and the world do not move"):
        world.add_controller(AngularMotor(None, None))
    with pytest.raises(ValueError, match='there is no body "ball"'):
        world.add_controller(LinearMotor(None, "ball", velocity=(0, 0, 0)))
    with pytest.raises(TypeError, match="spring is a float"):
        LinearMotor(None, "ball0", spring=3.0)  # type: ignore[arg-type]
    motor = LinearMotor(None, "ball0", velocity=(0, 0, 0))
    world.add_controller(motor)
    with pytest.raises(ValueError, match="another model"):
        balls((0, 0, 1)).add_controller(motor)


def test_two_motors_that_are_alike_need_names() -> None:
    world = balls((0, 0, 1))
    for _ in range(2):
        world.add_controller(LinearMotor(None, "ball0", velocity=(0, 0, 0), strength=1.0))
    with pytest.raises(ValueError, match="id"):
        world.step()
    other = balls((0, 0, 1))
    for name in ("one", "two"):
        other.add_controller(LinearMotor(None, "ball0", velocity=(1, 0, 0), strength=1.0, name=name))
    other.step()
    assert other.v[0] == pytest.approx(2.0 / 2.0 * DT, rel=1e-9)


def test_at_acceleration_level_rows_are_refused() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball")
    world = scene.build(poise.Reduced(level="acceleration"))
    world.add_controller(LinearMotor(None, "ball", velocity=(0, 0, 0)))
    with pytest.raises(ValueError, match="velocity level"):
        world.step()
