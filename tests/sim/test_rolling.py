"""Rolling and torsional friction with known answers. They hold at every step, to the tolerance of the solver."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.batch.world_checks import width_of
from poise.formulations.driver import Stepper
from poise.formulations.step_status import DONE
from poise.kernel.memory import F64, Width

G = 9.81
RADIUS = 0.1


def ball(angle: float = 0.0, dt: float = 1 / 240, e: float = 0.0, **material: float) -> poise.World:
    """A ball on a floor that leans by an angle."""
    scene = poise.Scene(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    scene.add_ground(friction=0.8)
    own = poise.Material(friction=0.8, restitution=e, **material)
    scene.add(poise.sphere(RADIUS, mass=2.0, material=own), name="ball", position=(0, 0, RADIUS))
    return scene.build(poise.Reduced(tolerance=1e-9), dt=dt)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240, 1 / 1000])
@pytest.mark.parametrize("direction", [0.0, 0.7, 2.0])
def test_a_ball_that_rolls_slows_down(dt: float, direction: float) -> None:
    """By (5/7) g μ/r, in any direction, until it rests."""
    mu, v0 = 0.004, 0.6
    way = np.array((np.cos(direction), np.sin(direction), 0.0))
    world = ball(dt=dt, rolling_friction=mu)
    world.body("ball").place(velocity=v0 * way, angular_velocity=np.cross((0, 0, 1), v0 * way) / RADIUS)
    slower = 5 / 7 * G * mu / RADIUS
    steps = round(1.0 / dt)
    world.step(steps)
    assert world.v[:3] == pytest.approx((v0 - slower * steps * dt) * way, abs=1e-6)
    rest = v0 / slower
    world.step(round((rest - 1.0) / dt) + 2)
    assert np.abs(world.v).max() < 1e-6
    assert np.linalg.norm(world.q[:2]) == pytest.approx(v0**2 / (2 * slower), abs=v0 * dt)


def test_a_ball_that_spins_on_its_point_stops() -> None:
    """The torque is μ m g: ω̇ = μ g/(2/5 r²)."""
    mu, w0 = 0.003, 50.0
    world = ball(torsional_friction=mu)
    world.v[5] = w0
    slower = mu * G / (0.4 * RADIUS**2)
    world.step(240)
    assert world.v[5] == pytest.approx(w0 - slower, rel=1e-7)
    assert np.abs(world.v[:5]).max() < 1e-9
    world.step(round(240 * (w0 / slower - 1)) + 2)
    assert abs(world.v[5]) < 1e-7


@pytest.mark.parametrize(("share", "rests"), [(0.99, True), (1.01, False)])
def test_a_ball_rests_on_an_incline_that_is_not_too_steep(share: float, rests: bool) -> None:
    """Where tan α < μ/r; else it goes down with (5/7) g (sin α − (μ/r) cos α)."""
    mu = 0.02
    angle = float(np.arctan(share * mu / RADIUS))
    world = ball(angle, rolling_friction=mu)
    world.step(480)
    faster = 5 / 7 * G * (np.sin(angle) - mu / RADIUS * np.cos(angle))
    assert world.v[0] == pytest.approx(0.0 if rests else 2.0 * faster, abs=1e-7)
    if rests:
        assert abs(world.q[0]) < 1e-6


def test_without_coefficients_nothing_changes() -> None:
    """To the last bit, beside a body that has some."""
    ends = []
    for rolling in (0.0, 0.01):
        scene = poise.Scene()
        scene.add_ground()
        scene.add(poise.sphere(RADIUS), name="ball", position=(0, 0, RADIUS))
        scene.add(
            poise.sphere(RADIUS, material=poise.Material(rolling_friction=rolling)), name="other", position=(3, 0, 5)
        )
        world = scene.build()
        world.v[0] = 1.0
        world.step(100)
        ends.append(world.q[:7].copy())
    assert np.array_equal(*ends)


def test_the_larger_coefficient_counts() -> None:
    scene = poise.Scene()
    scene.add(poise.box(10, 10, 1, material=poise.Material(rolling_friction=0.004)), position=(0, 0, -0.5), fixed=True)
    own = poise.Material(rolling_friction=0.001)
    scene.add(poise.sphere(RADIUS, material=own), name="ball", position=(0, 0, RADIUS))
    world = scene.build(poise.Reduced(tolerance=1e-9), dt=1 / 240)
    world.body("ball").place(velocity=(0.5, 0, 0), angular_velocity=(0, 5, 0))
    world.step(240)
    assert world.v[0] == pytest.approx(0.5 - 5 / 7 * G * 0.04, abs=1e-6)


def test_friction_of_an_impact_follows_its_impulse() -> None:
    """A ball that spins and lands: its spin loses μ times the impulse of the landing within that step."""
    mu = 0.002
    world = ball(torsional_friction=mu, e=0.5)
    world.q[2], world.v[2], world.v[5] = RADIUS + 0.005, -2.0, 100.0
    before = world.v.copy()
    for _ in range(3):
        world.step()
    rise = world.v[2] - before[2] + 3 * G / 240  # 3 m/s and a little
    assert rise > 2.9
    assert world.v[5] == pytest.approx(100.0 - mu * rise / (0.4 * RADIUS**2), rel=1e-6)


def test_a_ball_between_two_walls() -> None:
    """Two contacts at once, with normal forces that friction itself makes; the residual tells that all rows agree."""
    scene = poise.Scene(gravity=(2.0, 0.0, -G))
    both = poise.Material(friction=0.6, rolling_friction=0.01, torsional_friction=0.01)
    scene.add(poise.box(4, 4, 1, material=both), position=(0, 0, -0.5), fixed=True)
    scene.add(poise.box(1, 4, 4, material=both), position=(0.6, 0, 2), fixed=True)
    scene.add(poise.sphere(RADIUS, material=both), name="ball", position=(0, 0, RADIUS))
    world = scene.build(poise.Reduced(tolerance=1e-6), dt=1 / 240)
    world.v[3:] = (3.0, 2.0, -4.0)
    before = np.inf
    for _ in range(240):
        world.step()
        told = world.report()
        assert told.residual <= 1e-6
        assert told.energy.total <= before + 1e-6
        before = told.energy.total
    assert np.abs(world.v).max() < 1e-4


@pytest.mark.parametrize(("width", "exact"), [(width_of("f64"), 1e-8), (width_of("f32"), 2e-3)], ids=str)
def test_lanes_step_as_each_world_alone(width: Width, exact: float) -> None:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(3):
        own = poise.Material(rolling_friction=0.004 * k, torsional_friction=0.002 * (2 - k))
        scene.add(poise.sphere(RADIUS, material=own), name=f"b{k}", position=(k, 0, RADIUS + 0.02 * k))
    model = scene.compile()
    v = np.random.default_rng(8).normal(size=(model.nv, width.lanes))
    tolerance = 1e-11 if width.elem == "f64" else 1e-5

    def stepper(width: Width, lane: int | None) -> Stepper:
        one = Stepper(model, width, split=False, tolerance=tolerance, sweeps=400)
        one.space.s.v[...] = v if lane is None else v[:, lane]
        for _ in range(60):
            assert one.step(1 / 240) == DONE
        return one

    together = stepper(width, None)
    for lane in range(0, width.lanes, 3):
        assert together.space.s.q[:, lane] == pytest.approx(stepper(F64, lane).space.s.q, abs=exact)


# ---- many contacts ---------------------------------------------------------------------------------------------------


def pile(seed: int, kind: str, rolling: float, torsional: float, n: int = 12) -> poise.Scene:
    """Boxes and balls of very different mass that fall on each other; none overlap at first."""
    scene, rng = poise.Scene(), np.random.default_rng(seed)
    scene.add_ground()
    own = poise.Material(friction=0.6, rolling_friction=rolling, torsional_friction=torsional)
    for k in range(n):
        size, mass = rng.uniform(0.06, 0.16, 3), float(10.0 ** rng.uniform(-1, 1))
        is_box = kind == "boxes" or (kind == "both" and k % 2 == 0)
        box, ball = poise.box(*size, mass=mass, material=own), poise.sphere(size[0] / 2, mass=mass, material=own)
        place = (0.2 * (k % 2) + rng.uniform(-0.05, 0.05), 0.2 * (k // 2 % 2), 0.16 + 0.28 * (k // 4))
        quat = rng.normal(size=4)
        scene.add(box if is_box else ball, name=f"body{k}", position=place, quat_wxyz=quat / np.linalg.norm(quat))
    return scene


@pytest.mark.parametrize("formulation", [poise.Reduced, poise.Maximal])
@pytest.mark.parametrize(
    ("kind", "rolling", "torsional"),
    [("boxes", 0.01, 0.01), ("boxes", 0.05, 0.0), ("boxes", 0.0, 0.02), ("both", 0.01, 0.005), ("balls", 0.01, 0.0)],
)
def test_piles_are_solved_within_the_default_cap(
    kind: str, rolling: float, torsional: float, formulation: type[poise.Reduced | poise.Maximal]
) -> None:
    """A step in a hundred may end at its cap. Overlaps are the slop, and what two bodies that turn at ω get into each
    other in a step, by (ω h)²/2 times the 0.14 m to their corners each, of which a fifth is taken back in the next one.
    """
    unsolved = sweeps = 0
    for seed in range(2):
        world = pile(seed, kind, rolling, torsional).build(formulation())
        turns = []
        for _ in range(100):
            world.step()
            told = world.report()
            unsolved += told.status != "solved"
            sweeps += told.sweeps
            turns.append(np.linalg.norm(world.v.reshape(-1, 6)[:, 3:], axis=1).max())
        fastest = max(turns[-15:])  # of what was before, 0.8¹⁵ is left
        assert told.overlap < 1e-4 + 5.0 * 2.0 * 0.14 * (fastest / 240) ** 2 / 2
    assert unsolved <= 2
    assert sweeps < 200 * 40


def test_newton_leads_to_the_answer_of_sweeps_alone() -> None:
    """Balls that fall on each other, whose forces are unique: both solve every step to 1e-8 of its largest velocity."""
    model = pile(3, "balls", 0.005, 0.004, n=8).compile()
    ends, sweeps = [], []
    for newton in (True, False):
        one = Stepper(model, newton=newton, tolerance=1e-9, sweeps=20000, budget=1e15, split=False)
        swept = 0
        for _ in range(60):
            assert one.step(1 / 240) == DONE
            assert one.told.status == "solved"
            swept += one.told.sweeps
        ends.append(one.space.s.q.copy())
        sweeps.append(swept)
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)
    assert sweeps[0] < sweeps[1] / 2


@pytest.mark.parametrize("lean", [0.3, 0.9])
def test_a_box_on_an_incline_holds_as_long_as_it_does_not_slide(lean: float) -> None:
    """Its four contacts have more than enough of rows: rolling friction neither holds it nor lets it creep."""
    mu = 0.5
    angle = float(np.arctan(lean * mu))
    scene = poise.Scene(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    scene.add_ground(friction=mu)
    own = poise.Material(friction=mu, rolling_friction=0.02, torsional_friction=0.02)
    for k in range(3):
        place = (0, 0, RADIUS * (1 + 2 * k))
        scene.add(poise.box(4 * RADIUS, 4 * RADIUS, 2 * RADIUS, mass=2.0, material=own), name=f"{k}", position=place)
    world = scene.build(dt=1 / 240)
    for _ in range(120):
        world.step()
        assert world.report().status == "solved"
    assert np.abs(world.v).max() < 1e-4 * G / 240 * 120
    assert np.abs(world.q.reshape(-1, 7)[:, 0]).max() < 1e-4
