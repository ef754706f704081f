"""Dead zones and secondary targets: nothing within, closed forms beyond, hips before knees, and no jump between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import poise
from poise.control import Balance, DeadZone, SecondaryTarget
from poise.control.dead_zone_law import Zone, zone_force
from poise.sim.controllers import StateToAct

DT = 1 / 240
EDGE = np.radians(5.0)
LEVELS = ("velocity", "acceleration")
MASS, LENGTH = 2.0, 1.0
INERTIA = MASS * (0.1**2 + LENGTH**2) / 12 + MASS * (LENGTH / 2) ** 2
"""Of the pendulum about its hinge; kg·m²."""


def pendulum(level: str = "velocity", gravity: float = 9.81, dt: float = DT) -> poise.World:
    """A rod that stands on a hinge."""
    scene = poise.Scene(gravity=(0, 0, -gravity))
    rod = poise.box(0.1, 0.1, LENGTH, mass=MASS)
    scene.hinge(None, rod, axis="y", anchor=(0, 0, -LENGTH / 2), name="trunk")
    return scene.build(poise.Reduced(level=level), dt=dt)


def leg(hip: tuple[float, float] = (-30.0, 30.0), knee: tuple[float, float] = (-90.0, 90.0)) -> poise.World:
    """A thigh on a knee that is fixed, and a torso on its hip; gravity does not count."""
    scene = poise.Scene(gravity=(0, 0, 0))
    ends: dict[str, Any] = {"axis": "y"}
    thigh, torso = poise.box(0.1, 0.1, 0.5, mass=7.0), poise.box(0.2, 0.3, 0.6, mass=40.0)
    scene.hinge(None, thigh, anchor=(0, 0, -0.25), position=(0, 0, 0.75), name="knee", limits=np.radians(knee), **ends)
    scene.hinge("knee", torso, anchor=(0, 0, -0.3), position=(0, 0, 1.3), name="hip", limits=np.radians(hip), **ends)
    return scene.build(dt=DT)


def asked(world: poise.World, zone: DeadZone, q: Any, v: Any) -> np.ndarray:
    """(nv,) torques in a state."""
    wanted = zone.update(StateToAct(np.array(q, float), np.array(v, float), 0.0, {}, world.dt))
    return np.zeros(world.model.nv) if wanted is None else np.asarray(wanted.tau)


def bound(world: poise.World, *args: Any, **options: Any) -> DeadZone:
    zone = DeadZone(*args, **options)
    zone.bind(world.model)
    return zone


# ---- the law ---------------------------------------------------------------------------------------------------------


def test_the_excess_is_the_gradient_of_its_potential_and_its_slope_is_continuous() -> None:
    zone, h = Zone(0.1, 0.03), 1e-6
    for r in (0.05, 0.0999, 0.1, 0.1001, 0.115, 0.13, 0.1301, 0.4):
        phi = r * np.array((0.6, -0.8))
        at = zone.excess(phi)
        steps = h * np.eye(2)
        gradient = [(zone.excess(phi + s).potential - zone.excess(phi - s).potential) / (2 * h) for s in steps]
        slope = [(zone.excess(phi + s).value - zone.excess(phi - s).value) / (2 * h) for s in steps]
        # central differences: the third derivative of Ψ is at most 1.5/onset, of e its jump is at most 6/onset²
        assert at.value == pytest.approx(gradient, abs=h**2 / 0.03 + 1e-16 / h)
        assert at.slope == pytest.approx(np.array(slope), abs=6 * h / 0.03**2 * h + 1e-16 / h)
        assert np.linalg.eigvalsh(at.slope).min() >= -1e-15


def test_without_a_zone_it_is_the_implicit_spring_of_liu() -> None:
    """LIU eq. 13, m = 1/A; an onset of next to nothing moves the spring by half of it."""
    k, c, h, m, x, v = 300.0, 7.0, 0.01, 2.5, 0.2, -0.7
    expected = -(c * v + k * x + h * k * v) / (1 + h * c / m + h * h * k / m)
    found = zone_force(Zone(0.0, 1e-12), np.array([x]), np.array([v]), np.eye(1) / m, h, k, c)
    assert found == pytest.approx([expected], abs=1e-9)


@pytest.mark.parametrize("exponent", range(1, 9))
def test_the_force_is_that_of_the_end_of_the_step(exponent: int) -> None:
    """φ⁺ of eq. 2 put into the law gives φ⁺ again, for any inverse mass, singular ones too."""
    rng = np.random.default_rng(exponent)
    for number in range(40):
        k, c, h = 10.0**exponent, float(rng.choice((0.0, 10.0, 1e4))), 10.0 ** rng.uniform(-4, -1.5)
        root = rng.normal(size=(2, 2))
        A = root @ root.T * 10.0 ** rng.uniform(-2, 1) if number % 3 else np.diag((0.0, rng.uniform(0.1, 9.0)))
        zone, phi, rate = (
            Zone(rng.uniform(0.0, 0.2), rng.uniform(0.005, 0.1)),
            rng.normal(size=2) * 0.2,
            rng.normal(size=2),
        )
        f = zone_force(zone, phi, rate, A, h, k, c)
        after = phi + h * rate + h * h * A @ f
        now = zone.excess(after)
        law = -k * now.value - c / h * (now.value - zone.excess(phi).value)
        # rounding of φ⁺ counts κ times as much in the force
        stiffness = np.eye(2) + h * h * (k + c / h) * A @ now.slope
        assert np.linalg.norm(np.linalg.solve(stiffness, h * h * A @ (law - f))) < 1e-8


# ---- a pendulum that stands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_done_within_the_zone(level: str) -> None:
    """Bit for bit the motion of a world without the controller, until the edge is near."""
    free, kept = pendulum(level, 0.0), pendulum(level, 0.0)
    zone = DeadZone("trunk", "trunk", stiffness=1e6, horizon=0.0)
    kept.add_controller(zone)
    for world in (free, kept):
        world.v[0] = 0.05
    for _ in range(300):
        free.step()
        kept.step()
        assert zone.reading is not None
        assert not zone.reading.torque.any()
        assert free.q.tobytes() == kept.q.tobytes()
    assert 0.9 * np.degrees(0.05 * 300 * DT) < zone.reading.lean_deg < 5.0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stiffness", [60.0, 1e3, 1e5])
def test_it_leans_where_weight_and_spring_are_in_balance(level: str, stiffness: float) -> None:
    """m g l sin θ = k g(θ⁺), where θ⁺ is θ with h² A f of eq. 2; at rest no damper acts but for that."""
    world = pendulum(level)
    damping = 2.0 * np.sqrt(stiffness * INERTIA)
    world.add_controller(DeadZone("trunk", "trunk", stiffness=stiffness, damping=damping, horizon=0.0))
    law = Zone(EDGE, np.radians(1.0))

    def surplus(theta: float) -> float:
        f = zone_force(law, np.array([theta]), np.zeros(1), np.eye(1) / INERTIA, DT, stiffness, damping)
        return float(f[0] + MASS * 9.81 * LENGTH / 2 * np.sin(theta))

    def heavy(theta: float) -> float:
        return MASS * 9.81 * LENGTH / 2 * np.sin(theta) - stiffness * float(law.excess(np.array([theta])).value[0])

    lean, simple = brentq(surplus, EDGE, 0.5), brentq(heavy, EDGE, 0.5)
    weight = MASS * 9.81 * LENGTH / 2 * np.sin(lean) / INERTIA
    start, end = (float(law.excess(np.array([theta])).slope[0, 0]) for theta in (simple, lean))
    # θ⁺ is short of θ by h² weight, which the slopes in between and the weight's own growth make more of
    more = end / start / (1.0 - MASS * 9.81 * LENGTH / 2 / (stiffness * start))
    assert simple < lean < simple + more * (DT**2 + DT * damping / stiffness) * weight
    world.q[0] = lean + 0.01
    world.step(960)
    assert world.q[0] == pytest.approx(lean, abs=1e-6)


@pytest.mark.parametrize("exponent", range(1, 9))
def test_energy_does_not_grow_at_any_gain(exponent: int) -> None:
    """½ I θ̇² + k Ψ(θ) never grows, without gravity: backward Euler on a convex potential.

    Steps of fast limbs are split, and are not backward Euler: it starts so near to the edge that none is.
    """
    k, law = 10.0**exponent, Zone(EDGE, np.radians(1.0))
    world = pendulum(gravity=0.0)
    world.add_controller(DeadZone("trunk", "trunk", stiffness=k, damping=0.0, horizon=0.0))
    world.q[0], world.v[0] = EDGE + 0.01, 0.1
    before = np.inf
    for _ in range(200):
        now = 0.5 * INERTIA * world.v[0] ** 2 + k * law.excess(world.q).potential
        assert now <= before * (1 + 1e-9)
        before = now
        world.step()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("exponent", range(1, 9))
@pytest.mark.parametrize("horizon", [0.0, 0.02])
def test_gains_of_any_size_are_stable(level: str, exponent: int, horizon: float) -> None:
    """No more than 6 rad/s are there at first, and at infinite gain (0.2 − edge)/h: deadbeat."""
    world = pendulum(level, gravity=0.0)
    zone = DeadZone("trunk", "trunk", stiffness=10.0**exponent, damping=10.0 ** (exponent / 2), horizon=horizon)
    world.add_controller(zone)
    world.q[0] = 0.2
    fastest = 0.0
    for _ in range(240):
        world.step()
        fastest = max(fastest, abs(float(world.v[0])))
    assert fastest <= (0.2 - EDGE) / DT * 1.01
    assert abs(float(world.q[0])) < 0.2


def test_strength_bounds_the_moment() -> None:
    world = pendulum()
    zone = bound(world, "trunk", "trunk", stiffness=1e6, strength=3.0)
    assert asked(world, zone, [0.5], [0.0]) == pytest.approx([-3.0], rel=1e-7)


def test_an_axis_and_a_way_of_ones_own() -> None:
    """The rod's x axis is to point down: it is a quarter turn from there."""
    world = pendulum()
    zone = bound(world, "trunk", "trunk", up=(2, 0, 0), toward=(0, 0, -3))
    asked(world, zone, [0.0], [0.0])
    assert zone.reading is not None
    assert zone.reading.lean_deg == pytest.approx(90.0)
    assert asked(world, zone, [0.0], [0.0])[0] > 0.0  # turning about y takes x down
    assert not asked(world, zone, [np.pi / 2], [0.0]).any()


# ---- hips, then knees ------------------------------------------------------------------------------------------------


def effect(world: poise.World, q: Any, tau: np.ndarray) -> float:
    """Acceleration of the torso's lean by torques."""
    return float((np.linalg.inv(poise.dynamics.mass_matrix(world.model, np.array(q, float))) @ tau).sum())


def moment_effect(world: poise.World, zone: DeadZone, q: Any) -> float:
    """Acceleration of the torso's lean by the moment that was asked for."""
    assert zone.reading is not None
    return effect(world, q, np.full(2, zone.reading.moment[1]))


def test_hips_alone_act_while_they_can() -> None:
    world = leg()
    zone = bound(world, "hip", "hip", fallbacks="knee", stiffness=100.0)
    q = [0.1, 0.1]
    tau = asked(world, zone, q, [0.0, 0.0])
    assert zone.reading is not None
    assert zone.reading.ranks == 1
    assert tau[0] == 0.0
    assert effect(world, q, tau) == pytest.approx(moment_effect(world, zone, q), rel=1e-8)


def test_knees_take_what_hips_at_their_end_cannot() -> None:
    """The hip is at its end, so the torso turns with the thigh: the same acceleration, and none of the hip's own."""
    world = leg(hip=(-10.0, 30.0))
    zone = bound(world, "hip", "hip", fallbacks="knee", stiffness=100.0, leverage=200.0)
    q = [0.4, np.radians(-10.0)]
    tau = asked(world, zone, q, [0.0, 0.0])
    a = np.linalg.inv(poise.dynamics.mass_matrix(world.model, np.array(q))) @ tau
    assert zone.reading is not None
    assert zone.reading.ranks == 2
    assert a[1] >= -1e-9
    assert a.sum() == pytest.approx(moment_effect(world, zone, q), rel=1e-5)
    assert a[0] < 0.0
    alone = bound(world, "hip", "hip", stiffness=100.0, leverage=20.0)
    assert asked(world, alone, q, [0.0, 0.0]) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert alone.reading is not None
    assert np.linalg.norm(alone.reading.missing) == pytest.approx(np.linalg.norm(alone.reading.moment), rel=1e-8)


@pytest.mark.parametrize("what", ["position", "torque"])
def test_there_is_no_jump_where_knees_come_in(what: str) -> None:
    """Torques over a way through the switch: half the steps, half the greatest change; the correction is whole."""
    world = leg(hip=(-10.0, 30.0))
    joints = SecondaryTarget("hip", torque=1.0 if what == "torque" else np.inf)
    zone = bound(world, "hip", joints, fallbacks="knee", stiffness=100.0, leverage=200.0)

    def state(s: float) -> tuple[list[float], list[float]]:
        if what == "torque":
            return [0.08 + 0.1 * s, 0.0], [0.0, 0.0]
        return [0.4, np.radians(-10.0) + 0.004 * (1.0 - s)], [0.0, 0.0]

    changes, ranks = [], set()
    for count in (100, 200):
        torques = []
        for s in np.linspace(0.0, 1.0, count):
            q, v = state(float(s))
            torques.append(asked(world, zone, q, v))
            assert zone.reading is not None
            ranks.add(zone.reading.ranks)
            assert effect(world, q, torques[-1]) == pytest.approx(moment_effect(world, zone, q), rel=1e-5, abs=1e-9)
        changes.append(np.abs(np.diff(torques, axis=0)).max())
    assert {1, 2} <= ranks
    assert changes[1] < 0.6 * changes[0]


def test_a_rank_stays_within_its_own_range() -> None:
    """LIU: joints help while they are within stated ranges; beyond, the next rank does."""
    world = leg(hip=(-10.0, 30.0))
    q = [0.4, np.radians(-10.0)]
    for low, helps in ((0.0, True), (25.0, False)):
        rank = SecondaryTarget(["knee"], within_deg=(low, 60.0))
        zone = bound(world, "hip", "hip", fallbacks=[rank], stiffness=100.0, leverage=20.0)
        tau = asked(world, zone, q, [0.0, 0.0])
        assert bool(np.abs(tau).max() > 0.1) is helps


def test_residual_does_what_is_left_and_no_more() -> None:
    """Of a torso whose hip is at its end and has no help, a moment from outside."""
    world = leg(hip=(-10.0, 30.0))
    for most in (1.0, 1e9):
        zone = bound(world, "hip", "hip", stiffness=100.0, residual=most)
        state = StateToAct(np.array([0.4, np.radians(-10.0)]), np.zeros(2), 0.0, {}, DT)
        wanted = zone.update(state)
        assert wanted is not None
        assert zone.reading is not None
        forces = np.asarray(wanted.forces)
        assert forces[world.model.body_index("hip"), :3] == pytest.approx(zone.reading.residual)
        whole = np.linalg.norm(zone.reading.moment)
        assert np.linalg.norm(zone.reading.residual) == pytest.approx(min(most, whole), rel=1e-8)


# ---- worlds ----------------------------------------------------------------------------------------------------------


def person(level: str = "velocity") -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    return scene.build(poise.Reduced(level=level), dt=DT)


def worst_lean(zone: DeadZone | None, push: tuple[float, float, float], steps: int = 110) -> float:
    """Greatest lean of a person who balances and is pushed at the torso for 0.2 s; degrees."""
    world = person()
    world.add_controller(Balance())
    if zone is not None:
        world.add_controller(zone)
    torso, worst = world.model.body_index("torso"), 0.0
    for step in range(steps):
        if step < 48:
            world.apply_force("hero/torso", push)
        world.step()
        up = poise.dynamics.bodies(world.model, world.q).rotation[torso, 2, 2]
        worst = max(worst, float(np.degrees(np.arccos(min(1.0, up)))))
    assert world.body("hero/head").position[2] > 1.45
    return worst


def test_a_person_who_is_pushed_keeps_the_torso_near_the_zone() -> None:
    hips, knees = ("hip_l", "hip_r"), ("knee_l", "knee_r")
    assert worst_lean(None, (160.0, 0.0, 0.0)) > 7.0
    assert worst_lean(DeadZone("torso", hips, fallbacks=knees), (160.0, 0.0, 0.0)) < 6.0


@pytest.mark.parametrize("push", [(160.0, 0.0, 0.0), (0.0, 120.0, 0.0)])
def test_a_person_stands_at_extreme_gains(push: tuple[float, float, float]) -> None:
    zone = DeadZone("torso", ("hip_l", "hip_r"), stiffness=1e8, damping=1e5)
    assert worst_lean(zone, push) < 7.0


def test_nobody_holds_the_root() -> None:
    world = person()
    zone = bound(world, "torso", ("hip_l", "hip_r"), fallbacks=("knee_l", "knee_r", "ankle_l", "ankle_r"))
    q = world.q.copy()
    q[3:7] = (np.cos(0.1), 0.0, np.sin(0.1), 0.0)
    tau = asked(world, zone, q, np.zeros(world.model.nv))
    assert np.abs(tau).max() > 1.0
    assert tau[:6].tolist() == [0.0] * 6


@pytest.mark.parametrize(("fallbacks", "back"), [((), False), (("knee",), True)])
def test_knees_bring_a_torso_back_whose_hip_is_at_its_end(fallbacks: tuple[str, ...], back: bool) -> None:
    """It leans by 12.9°, and the hip has no way to go: alone it stays there, with the knee it comes to the zone."""
    world = leg(hip=(-10.0, 30.0))
    world.q[:] = 0.4, np.radians(-10.0)
    zone = DeadZone("hip", "hip", fallbacks=fallbacks)
    world.add_controller(zone)
    world.step(480)
    assert zone.reading is not None
    assert np.degrees(world.q[1]) > -10.1
    assert (zone.reading.lean_deg < 6.0) is back
    assert back or zone.reading.lean_deg == pytest.approx(np.degrees(0.4) - 10.0, abs=0.01)


def test_states_go_on_bit_for_bit() -> None:
    world = leg()
    world.q[:], world.v[:] = (0.2, 0.3), (0.1, -0.5)
    world.add_controller(DeadZone("hip", "hip", fallbacks="knee", stiffness=3000.0))
    world.step(20)
    saved = world.state.copy()
    world.step(30)
    first = world.q.tobytes(), world.v.tobytes()
    world.state = saved
    world.step(30)
    assert (world.q.tobytes(), world.v.tobytes()) == first


# ---- hostile input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within_deg": -1.0}, "within_deg is -1.0"),
        ({"within_deg": 180.0}, "less than 180"),
        ({"within_deg": "five"}, "within_deg is 'five'"),
        ({"onset_deg": 0.0}, "onset_deg is 0"),
        ({"stiffness": np.nan}, "stiffness is nan"),
        ({"stiffness": np.inf}, "finite"),
        ({"damping": -3.0}, "damping is -3.0"),
        ({"strength": -1.0}, "strength is -1.0"),
        ({"residual": None}, "residual is None"),
        ({"horizon": -0.1}, "horizon is -0.1"),
        ({"limit_time": 0.0}, "limit_time is 0"),
        ({"leverage": np.nan}, "leverage is nan"),
        ({"up": (0, 0, 0)}, "up is"),
        ({"toward": (0, np.nan, 1)}, "toward is"),
        ({"up": "z"}, "up is 'z'"),
        ({"fallbacks": 3}, "fallbacks is"),
        ({"fallbacks": ["knee", SecondaryTarget("hip")]}, "fallbacks is"),
    ],
)
def test_bad_numbers_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeadZone("hip", "hip", **options)


def test_bad_ranks_are_named() -> None:
    for given, message in (
        ({"joints": ()}, "joints are"),
        ({"joints": "hip", "torque": -1.0}, "torque of hip"),
        ({"joints": "hip", "within_deg": (5.0, 1.0)}, "within_deg is"),
        ({"joints": "hip", "within_deg": 5.0}, "within_deg is"),
    ):
        with pytest.raises(ValueError, match=message):
            SecondaryTarget(**given)  # type: ignore[arg-type]


def test_joints_and_bodies_that_will_not_do_are_named() -> None:
    world = person()
    for zone, message in (
        (DeadZone("torsoo", "hip_l"), "torso"),
        (DeadZone("torso", "hip"), "hip"),
        (DeadZone("torso", "root"), "no torque of its own"),
        (DeadZone("ground", "hip_l"), "ground"),
        (DeadZone("torso", "hip_l", fallbacks="hip_l"), "named twice"),
        (DeadZone("torso", SecondaryTarget("hip_l", within_deg=(0.0, 9.0))), "within_deg is for"),
    ):
        with pytest.raises((ValueError, KeyError), match=message):
            world.add_controller(zone)


def test_joints_of_another_character_are_refused() -> None:
    scene = poise.Scene()
    for name, x in (("one", 0.0), ("two", 2.0)):
        scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", position=(x, 0, 0), name=name)
    with pytest.raises(ValueError, match="not of the character"):
        scene.build().add_controller(DeadZone("one", "two"))
