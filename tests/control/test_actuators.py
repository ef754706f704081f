"""Actuators on worlds: LAM's equations, limits, stability, speeds."""

from __future__ import annotations

from math import inf, pi, sqrt

import numpy as np
import pytest

import poise
from poise.control import Actuators, RotationActuator, TranslationActuator
from poise.control.pacing import Route
from poise.dynamics import bodies
from poise.motion import ConstantPath, KeyedPath
from poise.motion.rotations import quat_exp, quat_log, quat_normalize

LINE = KeyedPath([0, 1], [(0, 0, 0), (10, 0, 0)])


def brick_world(dt: float = 0.001, gravity: float = 0.0) -> poise.World:
    scene = poise.Scene(gravity=(0, 0, -gravity))
    scene.add(poise.box(0.1, 0.3, 0.6, mass=3.0, position=(0.02, 0.01, 0.0)), name="brick")
    return scene.build(dt=dt)


def turn_to(rotation_vector, **options) -> RotationActuator:
    return RotationActuator("brick", ConstantPath((0, 0, 0), quat_exp(rotation_vector)), 3.0, **options)


def com(world: poise.World, body: str = "brick") -> np.ndarray:
    place, k = bodies(world.model, world.q, world.v), world.model.body_index(body)
    return place.position[k] + place.rotation[k] @ world.model.body_com[k]


# ---- the equations ---------------------------------------------------------------------------------------------------


def test_a_force_accelerates_the_centre_of_mass_as_equation_2_has_it() -> None:
    world, goal = brick_world(), np.array((0.3, -0.2, 0.5))
    pull = TranslationActuator("brick", ConstantPath(goal), 5.0, alpha=0.2, elasticity=0.8, relaxation=0.07)
    world.add_controller(guide := Actuators([pull]))
    world.v[:3] = (0.1, 0.2, -0.3)
    wanted = 2.0 * (0.2 * (goal - com(world)) / 0.07**2 - pull.beta * world.v[:3] / 0.07)
    assert pull.beta == pytest.approx(0.8 * sqrt(0.4), rel=1e-15)
    world.step()
    assert world.a[:3] == pytest.approx(wanted, rel=1e-9)
    assert world.a[3:] == pytest.approx(0.0, abs=1e-9)  # it does not turn
    assert guide.read(world.state)["brick move"].push == pytest.approx(3.0 * wanted, rel=1e-9)


def test_a_force_at_a_point_accelerates_that_point_as_if_it_were_a_mass() -> None:
    world, goal, point = brick_world(), np.array((0.3, -0.2, 0.5)), np.array((0.05, 0.1, 0.3))
    world.add_controller(Actuators([TranslationActuator("brick", ConstantPath(goal), 5.0, point=point)]))
    world.step()
    a = world.a[:3] + np.cross(world.a[3:], point)
    assert a == pytest.approx(2.0 * 0.1 * (goal - point) / 0.1**2, rel=1e-9)


def test_a_torque_turns_a_spinning_body_as_equations_3_and_4_mean_it() -> None:
    """With −ω ∧ Jω as printed the gyroscopic torque would be there twice instead of not at all."""
    world = brick_world()
    world.v[3:] = (4.0, -3.0, 5.0)  # at rest, the body's axes are the world's
    omega, goal = world.v[3:].copy(), np.array((0.5, 0.3, -0.4))
    turn = turn_to(goal)
    world.add_controller(Actuators([turn]))
    world.step()
    assert world.a[3:] == pytest.approx(2.0 * (0.1 * goal / 0.1 - turn.beta * omega) / 0.1, rel=1e-9)


def test_a_turn_of_nearly_half_a_circle_is_that_of_a_damped_oscillator() -> None:
    """A rotation vector that is not a logarithm would be twice too weak here."""
    world, angle = brick_world(), 3.0
    axis = quat_normalize((1.0, 2.0, -1.0, 0.0))[:3]
    axis = axis / np.linalg.norm(axis)
    world.add_controller(Actuators([turn_to(angle * axis)]))
    left = []
    for _ in range(800):
        world.step()
        left.append(angle - float(quat_log(world.q[3:7]) @ axis))
    omega, t = sqrt(0.2) / 0.1, 0.001 * np.arange(1, 801)
    # first order: a step of h is an error of ω h / 2 times what there is
    assert np.abs(left - angle * (1 + omega * t) * np.exp(-omega * t)).max() < angle * omega * 0.001


def test_errors_shrink_with_the_first_order_of_the_step() -> None:
    omega, found = sqrt(0.2) / 0.1, []
    for dt in (0.004, 0.002, 0.001):
        world = brick_world(dt)
        world.add_controller(Actuators([TranslationActuator("brick", ConstantPath((1.02, 0.01, 0)), 5.0)]))
        world.step(round(0.4 / dt))
        found.append(abs(1.0 - float(world.q[0]) - (1 + omega * 0.4) * np.exp(-omega * 0.4)))
    assert found[0] / found[1] == pytest.approx(2.0, rel=0.1)
    assert found[1] / found[2] == pytest.approx(2.0, rel=0.1)


def test_bodies_that_are_welded_move_with_all_their_mass() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=1.0), name="ball")
    scene.add(poise.box(0.2, 0.2, 0.2, mass=4.0), name="load", parent="ball", position=(0.5, 0, 0))
    world = scene.build(dt=0.001)
    world.add_controller(Actuators([TranslationActuator("load", ConstantPath((0.4, 0, 1)), 5.0)]))
    world.step()
    assert world.a[:3] == pytest.approx((0.0, 0.0, 20.0), abs=1e-9)  # from the common centre of mass at x = 0.4
    assert world.a[3:] == pytest.approx(0.0, abs=1e-9)


# ---- strength --------------------------------------------------------------------------------------------------------


def test_no_force_is_above_the_limit() -> None:
    rng, world = np.random.default_rng(5), brick_world(0.005, gravity=9.81)
    pulls = [
        TranslationActuator("brick", LINE, 0.5, limit=40.0, gamma=30.0),
        turn_to((1.0, 1.0, 0.0), limit=0.5, gamma=30.0),
    ]
    world.add_controller(guide := Actuators(pulls))
    seen = []
    for _ in range(300):
        world.apply_force("brick", rng.normal(size=3) * 100.0, torque=rng.normal(size=3) * 5.0)
        world.step()
        told = guide.read(world.state)
        seen.append([float(np.linalg.norm(told[name].push)) for name in ("brick move", "brick turn")])
    assert np.all(np.array(seen) <= np.array((40.0, 0.5)) * (1 + 1e-12))
    assert np.all(np.max(seen, axis=0) >= np.array((40.0, 0.5)) * (1 - 1e-12))  # and it was reached


def test_an_actuator_without_strength_does_nothing() -> None:
    world, plain = brick_world(), brick_world()
    world.add_controller(Actuators([TranslationActuator("brick", LINE, 0.5, limit=0.0, gamma=inf)]))
    world.step(50)
    plain.step(50)
    assert np.array_equal(world.q, plain.q)


# ---- speed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.001, 0.01])
def test_on_a_straight_line_the_speed_is_that_of_section_2_3(dt: float) -> None:
    world = brick_world(dt)
    pull = TranslationActuator("brick", LINE, 0.5, relaxation=0.05)
    world.add_controller(Actuators([pull]))
    world.step(round(1.5 / dt))
    assert world.v[0] == pytest.approx(0.1 * 0.5 / (pull.beta * 0.05), rel=1e-5)
    assert world.v[0] == pytest.approx(pull.natural_speed, rel=1e-5)


def test_so_is_that_of_a_body_that_turns_round_and_round() -> None:
    world = brick_world(0.002)
    quats = [quat_exp((0, 0, a)) for a in np.linspace(0.0, 2 * pi, 9)]
    spin = RotationActuator("brick", KeyedPath(range(9), [(0, 0, 0)] * 9, quats, loop=True), 0.4, relaxation=0.05)
    world.add_controller(guide := Actuators([spin]))
    world.step(2000)
    assert world.v[5] == pytest.approx(spin.natural_speed, rel=1e-3)
    assert guide.read(world.state)["brick turn"].parameter > 8.0  # more than a round


@pytest.mark.parametrize("turns", [False, True])
def test_all_of_the_path_is_within_the_base_distance_whatever_hits(turns: bool) -> None:
    """LAM §2.2, for positions and orientations."""
    rng, world, base = np.random.default_rng(8), brick_world(0.005), 0.25
    places, angles = rng.uniform(-1, 1, (6, 3)), rng.uniform(-1, 1, (6, 3))
    places[0], angles[0] = com(world), 0.0
    path = KeyedPath(range(6), places, [quat_exp(a) for a in angles])
    kind = RotationActuator if turns else TranslationActuator
    world.add_controller(guide := Actuators([kind("brick", path, base, relaxation=0.05)]))
    route, before = Route(path, turns=turns), 0.0
    name = guide.actuators[0].label
    for k in range(2000):
        if k % 100 == 50:
            world.apply_impulse("brick", rng.normal(size=3) * 3.0, torque=rng.normal(size=3) * 0.5 * turns)
        here = world.q[3:7].copy() if turns else com(world)
        world.step()
        now = guide.read(world.state)[name].parameter
        assert now >= before
        for s in route.s[(route.s > before) & (route.s <= now)]:
            assert route.distance(route.value(float(s)), here) <= base * (1 + 1e-6)
        before = now
    assert before == 5.0  # it got there


@pytest.mark.parametrize("turns", [False, True])
def test_preferred_speeds_are_those_at_which_keys_are_passed(turns: bool) -> None:
    world, wanted = brick_world(0.002), {1.0: 0.4, 3.0: 2.0}
    path = KeyedPath(
        range(5), [(0.02 + 0.5 * k, 0.01, 0) for k in range(5)], [quat_exp((0.5 * k, 0, 0)) for k in range(5)]
    )
    kind = RotationActuator if turns else TranslationActuator
    pull = kind("brick", path, 0.15, relaxation=0.04, speeds=wanted)
    world.add_controller(Actuators([pull]))
    way = []
    for _ in range(2500):
        world.step()
        at = quat_log(world.q[3:7])[0] if turns else com(world)[0] - 0.02
        way.append((at, world.v[3] if turns else world.v[0]))
    places, speeds = np.array(way).T
    assert places[-1] == pytest.approx(2.0, abs=1e-6)
    speeds, places = speeds[: np.argmax(places > 1.9)], places[: np.argmax(places > 1.9)]
    assert np.all(np.diff(places) > 0.0)
    for key, speed in wanted.items():
        assert np.interp(0.5 * key, places, speeds) == pytest.approx(speed, rel=0.01)
    # one key without a preference
    assert np.interp(1.0, places, speeds) == pytest.approx(pull.natural_speed, rel=0.02)


# ---- stability -------------------------------------------------------------------------------------------------------


def chain_world(links: int, dt: float) -> poise.World:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.1, 0.1, 0.4, mass=2.0), name="link 0")
    for k in range(1, links):
        mass = 2.0 if k % 2 else 0.02  # light links between heavy ones
        scene.hinge(f"link {k - 1}", poise.box(0.1, 0.1, 0.4, mass=mass, mask=0, group=0), name=f"link {k}",
                    axis="xy"[k % 2], anchor=(0, 0, -0.2), position=(0, 0, 0.4))  # fmt: skip
    return scene.build(dt=dt)


@pytest.mark.parametrize("relaxation", [1e-4, 1e-3, 0.01, 0.1])
@pytest.mark.parametrize("elasticity", [0.5, 1.0, 2.2])
def test_chains_with_actuators_everywhere_are_calm_at_any_relaxation_time(relaxation: float, elasticity: float) -> None:
    dt, links = 0.01, 4
    world = chain_world(links, dt)
    start = bodies(world.model, world.q).position.copy()
    pulls = []
    for k in range(links):
        path = ConstantPath(start[k], (1, 0, 0, 0))
        options = {"relaxation": relaxation, "elasticity": elasticity}
        pulls += [
            TranslationActuator(f"link {k}", path, 9.0, **options),
            RotationActuator(f"link {k}", path, 3.0, **options),
        ]
        pulls.append(
            TranslationActuator(
                f"link {k}", ConstantPath(start[k] + (0, 0, 0.2)), 9.0, point=(0, 0, 0.2), name=f"tip {k}", **options
            )
        )
    world.add_controller(Actuators(pulls))
    rng = np.random.default_rng(2)
    world.v[...] = rng.normal(size=world.model.nv) * 0.05
    first = float(poise.dynamics.energy(world.model, world.q, world.v).kinetic)
    most = 0.0
    for _ in range(400):
        world.step()
        most = max(most, float(poise.dynamics.energy(world.model, world.q, world.v).kinetic))
    assert most < 4.0 * first
    assert (
        float(poise.dynamics.energy(world.model, world.q, world.v).kinetic)
        < (1e-3 if relaxation < 0.1 else 0.1) * first
    )


def test_the_printed_form_would_not_be() -> None:
    """LAM eq. 2 in steps of ten relaxation times, as the world takes them: it explodes; here it does not."""
    dt, pull = 0.01, TranslationActuator("brick", ConstantPath((0.1, 0, 0)), 5.0, relaxation=0.001)
    x, v = 0.0, 0.0
    for _ in range(50):
        v += dt * (pull.stiffness * (0.1 - x) - pull.damping * v)
        x += dt * v
    assert abs(x) > 1e6
    world = brick_world(dt)
    world.add_controller(Actuators([pull]))
    world.step(50)
    assert abs(com(world)[0]) < 0.2


def test_relaxation_times_of_a_few_steps_leave_the_printed_form_alone() -> None:
    world = brick_world(0.01)
    pull = TranslationActuator("brick", ConstantPath((1, 0, 0)), 5.0, relaxation=0.01)
    world.add_controller(Actuators([pull]))
    world.step()
    assert world.a[0] == pytest.approx(pull.stiffness * 0.98, rel=1e-9)  # 0.1 + 2 β = 0.99 of what is allowed


# ---- hostile ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0; it must be a share above 0, at most 1"),
        ({"alpha": 1.5}, "alpha is 1.5"),
        ({"alpha": float("nan")}, "alpha is not a number"),
        ({"alpha": "much"}, "alpha is 'much'; it must be a number"),
        ({"elasticity": -0.1}, "elasticity is -0.1; it must be from 0 to 2.236"),
        ({"elasticity": 2.3}, r"which is 1 / √\(2 alpha\)"),
        ({"relaxation": 0.0}, "relaxation is 0; it must be positive"),
        ({"base_distance": -1.0}, "base_distance is -1"),
        ({"base_distance": inf}, "base_distance is inf"),
        ({"gamma": -1.0}, "gamma is -1; it must be 0 or more"),
        ({"limit": -1.0}, "limit is -1"),
        ({"body": None}, "body is a NoneType"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        TranslationActuator(**({"body": "brick", "path": LINE, "base_distance": 0.5} | options))


@pytest.mark.parametrize(
    ("actuators", "message"),
    [
        ([], "there are no actuators"),
        ([LINE], "found a KeyedPath; it must be a TranslationActuator"),
        ([TranslationActuator("brick", LINE, 0.5)] * 2, 'there are several actuators "brick move": give them names'),
    ],
)
def test_groups_that_make_no_sense_are_refused(actuators, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Actuators(actuators)


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        (TranslationActuator("brik", LINE, 0.5), "brick"),
        (TranslationActuator("wall", LINE, 0.5), 'body "wall" never moves: "wall move" cannot act on it'),
        (TranslationActuator("lift", LINE, 0.5), 'body "lift" follows a path of its own'),
        (TranslationActuator("brick", LINE, 0.5, point=(0, 0)), "point must be three finite numbers"),
        (TranslationActuator("brick", LINE, 0.5, speeds={7.0: 1.0}), "there is no key at 7; the path goes from 0 to 1"),
        (TranslationActuator("brick", LINE, 0.5, speeds={1.0: 0.0}), "it must be positive"),
        (TranslationActuator("brick", LINE, 0.5, speeds=[1.0]), "it must map keys"),
        (TranslationActuator("brick", LINE, 0.5, speeds={1.0: 1.0}, elasticity=0.0), "there is no speed to choose"),
    ],
)
def test_actuators_that_do_not_fit_the_model_are_refused(actuator, message) -> None:
    scene = poise.Scene()
    scene.add(poise.box(0.1, 0.3, 0.6), name="brick")
    scene.add(poise.box(0.1, 0.3, 0.6), name="wall", fixed=True, position=(3, 0, 0))
    scene.add(poise.box(0.1, 0.3, 0.6), name="lift", kinematic=LINE)
    world = scene.build()
    with pytest.raises((ValueError, TypeError), match=message):
        world.add_controller(Actuators([actuator]))


def test_an_angle_as_base_distance_is_less_than_half_a_turn() -> None:
    with pytest.raises(ValueError, match="less than π rad"):
        RotationActuator("brick", LINE, 3.2)


def test_actuators_are_for_one_model() -> None:
    guide = Actuators([TranslationActuator("brick", LINE, 0.5)])
    brick_world().add_controller(guide)
    with pytest.raises(ValueError, match="another model"):
        brick_world().add_controller(guide)


def test_reading_what_has_not_acted_is_told() -> None:
    world = brick_world()
    world.add_controller(guide := Actuators([TranslationActuator("brick", LINE, 0.5)]), name="guide")
    with pytest.raises(ValueError, match='no actuators "guide" that have acted'):
        guide.read(world.state, "guide")
    world.step()
    with pytest.raises(ValueError, match='"guid" that have acted, did you mean "guide"'):
        guide.read(world.state, "guid")
    assert guide.read(world.state, "guide")["brick move"].stage is None
