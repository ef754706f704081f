"""Rules that combine the friction of two surfaces, on slopes where the answer has a closed form."""

from __future__ import annotations

import copy
from math import inf

import numpy as np
import pytest

import poise
from poise.constraints.combining import combine, combined
from poise.model.surface_rules import RULES, Combine

G, ANGLE, TIME, DT = 9.81, np.radians(20.0), 0.5, 1 / 240
FORMULATIONS = {
    "reduced": poise.Reduced(),
    "acceleration": poise.Reduced(level="acceleration"),
    "maximal": poise.Maximal(),
    "loose": poise.Maximal(solver="pgs", stabilization="speed"),
}


def expected(rule: str, a: float, b: float) -> float:
    """What a rule gives."""
    with np.errstate(invalid="ignore", over="ignore"):
        rules = {
            "average": (a + b) / 2,
            "geometric": np.nan_to_num(np.sqrt(np.float64(a) * b), posinf=inf),
            "minimum": min(a, b),
            "multiply": np.nan_to_num(np.float64(a) * b, posinf=inf),
            "maximum": max(a, b),
        }
    return float(rules[rule])


def slope(
    rule: str = "geometric", box: float = 0.1, floor: float = 1.0, angle: float = ANGLE, **own: object
) -> poise.Scene:
    """A box on a floor that leans by an angle."""
    scene = poise.Scene(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)), friction_combine=rule)  # type: ignore[arg-type]
    scene.add_ground(friction=floor)
    material = poise.Material(friction=box, **own)
    scene.add(poise.box(0.3, 0.3, 0.1, material=material), name="box", position=(0, 0, 0.05))
    return scene


def slid(mu: float) -> float:
    """How far a box slides from rest with a coefficient; m."""
    return 0.5 * max(0.0, G * (np.sin(ANGLE) - mu * np.cos(ANGLE))) * TIME**2


def check_slide(found: float, mu: float) -> None:
    """The step is of first order: v h/2 in position; a box at rest creeps within the tolerance of the solver."""
    assert found == pytest.approx(slid(mu), abs=slid(mu) * DT / TIME + 1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_a_box_slides_by_the_rule_of_its_scene(rule: str) -> None:
    world = slope(rule).build(dt=DT)
    world.step(round(TIME / DT))
    check_slide(world.q[0], expected(rule, 0.1, 1.0))


@pytest.mark.parametrize("kind", FORMULATIONS)
@pytest.mark.parametrize("rule", ["minimum", "maximum"])
def test_all_formulations_have_the_rule(kind: str, rule: str) -> None:
    world = slope(rule).build(FORMULATIONS[kind], dt=DT)
    world.step(round(TIME / DT))
    check_slide(world.q[0], expected(rule, 0.1, 1.0))


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_worlds_of_a_batch_combine_the_friction_that_each_has(precision: str) -> None:
    """Friction varies from world to world, rules and priorities do not: one box has priority, the other a rule."""
    scene = slope("average")
    rules = poise.Material(friction=0.1, friction_combine="minimum"), poise.Material(friction=0.1, priority=1)
    for k, material in enumerate(rules):
        scene.add(poise.box(0.3, 0.3, 0.1, material=material), name=f"box {k}", position=(0, 1 + k, 0.05))
    batch = scene.build_batch(20, dt=DT, precision=precision, threads=1, vary=("friction",))  # type: ignore[arg-type]
    friction = np.random.default_rng(3).uniform(0.0, 0.4, (20, 4))
    batch.vary(friction=friction)
    batch.step(round(TIME / DT))
    floor, first, second, third = friction.T
    wanted = np.array([(floor + first) / 2, np.minimum(floor, second), third])
    away = np.vectorize(slid)(wanted)
    assert pytest.approx(away, rel=0.02, abs=1e-4) == batch.q[:, ::7].T


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("a", "b"), [(0.0, inf), (0.5, inf), (inf, inf), (0.0, 0.0), (1e300, 1e300), (0.2, 3.0)])
def test_rules_of_any_coefficients(rule: str, a: float, b: float) -> None:
    code, wanted = Combine[rule.upper()], min(expected(rule, a, b), 1e6)
    assert combine(code, a, b) == combine(code, b, a) == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize("rule", RULES)
def test_an_endless_coefficient_beside_a_small_one(rule: str) -> None:
    """Only the minimum lets the box slide on: it has the friction of the floor."""
    world = slope(rule, box=inf, floor=0.05).build(dt=DT)
    world.step(round(TIME / DT))
    check_slide(world.q[0], expected(rule, inf, 0.05))


def test_of_two_rules_the_later_one_holds() -> None:
    for k, one in enumerate(RULES):
        for n, other in enumerate(RULES):
            scene = slope(one, friction_combine=other)
            found = combined(scene.compile().solids, 0, 1).friction
            assert found == pytest.approx(expected(RULES[max(k, n)], 0.1, 1.0))


def test_the_higher_priority_has_the_coefficients_alone() -> None:
    scene = slope("maximum", priority=1, restitution=0.25)
    scene.body("ground").shapes[0].material.restitution = 0.5
    assert combined(scene.compile().solids, 0, 1) == (0.1, 0.0, 0.0, 0.25)
    scene.body("ground").shapes[0].material.priority = 2
    assert combined(scene.compile().solids, 0, 1) == (1.0, 0.0, 0.0, 0.5)


def test_condim_leaves_friction_out_of_the_rows() -> None:
    """A contact of condim 1 slides freely; a ball with condim 3 rolls on although it has rolling friction."""
    world = slope("maximum", condim=1).build(dt=DT)
    world.step(round(TIME / DT))
    check_slide(world.q[0], 1.0)  # the floor asks for condim 3
    scene = slope("maximum", condim=1)
    scene.body("ground").shapes[0].material.condim = 1
    world = scene.build(dt=DT)
    world.step(round(TIME / DT))
    check_slide(world.q[0], 0.0)


@pytest.mark.parametrize(("condim", "slower"), [(3, 0.0), (6, 0.02)])
def test_condim_of_rolling_friction(condim: int, slower: float) -> None:
    """A ball slows down by (5/7) g μ/r, with μ of the floor, where one of both asks for rolling friction."""
    scene = poise.Scene()
    scene.add_ground()
    scene.body("ground").shapes[0].material = poise.Material(rolling_friction=0.02, condim=3)
    ball = poise.sphere(0.1, mass=2.0, material=poise.Material(condim=condim))
    scene.add(ball, name="ball", position=(0, 0, 0.1))
    world = scene.build(dt=DT)
    world.body("ball").place(velocity=(1, 0, 0), angular_velocity=(0, 10, 0))
    world.step(60)
    assert world.v[0] == pytest.approx(1.0 - 5 / 7 * G * slower / 0.1 * 60 * DT, abs=1e-4)


def test_acceleration_level_refuses_what_rolls_and_nothing_else() -> None:
    scene = slope(rolling_friction=0.02, condim=3)
    scene.build(poise.Reduced(level="acceleration"))
    scene.body("ground").shapes[0].material.condim = 6
    with pytest.raises(ValueError, match='"box" has rolling or torsional friction'):
        scene.build(poise.Reduced(level="acceleration"))


def test_restitution_has_a_rule() -> None:
    """A ball that falls from 1 m comes up to e² m."""
    scene = poise.Scene(restitution_combine="multiply")
    scene.add_ground(restitution=0.8)
    material = poise.Material(restitution=0.5)
    scene.add(poise.sphere(0.1, material=material), name="ball", position=(0, 0, 1.1))
    world = scene.build(dt=1e-3)
    heights = []
    for _ in range(700):
        world.step()
        heights.append(float(world.q[2]) - 0.1)
    assert max(heights[500:]) == pytest.approx(0.16, abs=1e-3)


def test_wrong_rules_are_refused_where_they_are() -> None:
    scene = slope()
    scene.friction_combine = "max"  # type: ignore[assignment]
    scene.rolling_combine = "multiply"
    scene.body("box").shapes[0].material.restitution_combine = "mean"  # type: ignore[assignment]
    scene.body("box").shapes[0].material.condim = 2
    scene.body("box").shapes[0].material.priority = 0.5  # type: ignore[assignment]
    with pytest.raises(poise.SceneError) as raised:
        scene.compile()
    lines = str(raised.value).splitlines()
    text = "\n".join(lines)
    for word in ("friction_combine", "rolling_combine", "restitution_combine", "condim", "priority"):
        assert word in text
    assert "average, geometric, minimum, multiply, maximum" in text
    assert "must be 1, 3, 4, 6 or None, found 2" in text


def test_copies_and_pickles_keep_rules() -> None:
    world = slope("maximum").build(dt=DT)
    other = copy.deepcopy(world)
    for one in (world, other):
        one.step(60)
    assert np.array_equal(world.q, other.q)
    assert slope("maximum").compile().digest() != slope("minimum").compile().digest()
