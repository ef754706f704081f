"""Bounces at velocity level happen at their time of impact within the step: heights, cradles, energy, rest."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.motion.rotations import quat_exp, rotate

G = 9.81
FORMS = {"reduced": poise.Reduced(), "maximal": poise.Maximal()}


def dropped(shape, height: float, e: float, dt: float, form, turn=(0.0, 0.0, 0.0), mu: float = 0.5):
    """A shape with its lowest point at a height over a slab of which the normal, and gravity, are turned."""
    quat = quat_exp(np.array(turn, float))
    up = rotate(quat, (0.0, 0.0, 1.0))
    scene = poise.Scene(gravity=tuple(-G * up))
    shape.material = poise.Material(friction=mu, restitution=e)
    slab = poise.box(20.0, 20.0, 2.0, material=shape.material)
    scene.add(slab, name="slab", fixed=True, position=tuple(-up), quat_wxyz=tuple(quat))
    scene.add(shape, name="it", position=tuple(up * (height + 0.1)), quat_wxyz=tuple(quat))
    return scene.build(form, dt=dt), up


def apexes(world: poise.World, up: np.ndarray, n: int) -> np.ndarray:
    """Heights of the first n apexes, by the parabola through three samples, of what is 0.1 m above its lowest point."""
    seen, found = [], []
    for _ in range(round(30.0 / world.dt)):
        world.step()
        seen.append(float(world.body("it").position @ up) - 0.1)
        if len(seen) > 2 and seen[-2] > seen[-3] and seen[-2] >= seen[-1]:
            a, b, c = seen[-3:]
            found.append(b - (c - a) ** 2 / (8.0 * (a - 2.0 * b + c)))
        if len(found) == n:
            break
    return np.array(found)


SHAPES = {
    "sphere": lambda: poise.sphere(0.1, mass=0.7),
    "box": lambda: poise.box(0.3, 0.4, 0.2, mass=2.0),
    "capsule": lambda: poise.capsule(0.1, 0.5, mass=1.3),
}
CASES = [
    ("sphere", 1.0, 0.8, 1 / 240, (0, 0, 0)),
    ("sphere", 1.0, 0.8, 1 / 60, (0, 0, 0)),
    ("sphere", 0.1, 0.5, 1 / 240, (0.3, 0.2, 0.0)),
    ("sphere", 10.0, 0.6, 1 / 240, (1.1, -0.8, 0.4)),
    ("sphere", 2.0, 0.2, 1 / 1000, (-2.0, 0.3, 0.1)),
    ("box", 1.0, 0.7, 1 / 240, (0, 0, 0)),
    ("box", 0.5, 0.9, 1 / 120, (0.2, 0.5, -0.4)),
    ("capsule", 1.0, 0.8, 1 / 240, (0, 0, 0)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}-{round(1 / case[3])}")
def test_apexes_are_those_of_the_closed_form(case: tuple, form: str) -> None:
    """H e²ᵏ, up to the fourth that takes ten steps; within (g h²)/8 of the fall and 0.3 % that tolerances leave."""
    kind, height, e, dt, turn = case
    shape = SHAPES[kind]()
    n = min(4, int(np.log(5 * dt * np.sqrt(G / (2 * height))) / np.log(e)))
    world, up = dropped(shape, height, e, dt, FORMS[form], turn)
    if kind == "capsule":
        world.body("it").place(quat_wxyz=quat_exp(np.array((0.5 * np.pi, 0.0, 0.0))))
    found, exact = apexes(world, up, n), height * e ** (2.0 * np.arange(1, n + 1))
    off = np.abs(found / exact - 1.0)
    print(f"\n{kind} from {height} m, e {e}, dt {dt:.4g} s, {form}: apexes off by {np.round(100 * off, 3)} %")
    assert len(found) == n >= 1
    assert (off < 0.003 + 0.25 * G * dt**2 / exact).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_perfect_bounce_keeps_its_height_for_20_s(form: str) -> None:
    """22 bounces of a metre; 0.1 %."""
    world, up = dropped(poise.sphere(0.1), 1.0, 1.0, 1 / 240, FORMS[form])
    found = apexes(world, up, 22)
    assert found == pytest.approx(np.ones(22), rel=1e-3)


def cradle(n: int, gap: float, e: float, form, dt: float = 1 / 240, radius: float = 0.05) -> poise.World:
    """N balls in a row, the first of which comes at 1 m/s."""
    scene = poise.Scene(gravity=(0, 0, 0))
    for k in range(n):
        x = k * (2 * radius + gap) - (0.013 if k == 0 else 0.0)
        ball = poise.sphere(radius, mass=1.0, material=poise.Material(friction=0.0, restitution=e))
        scene.add(ball, name=f"ball{k}", position=(x, 0, 0))
    world = scene.build(form, dt=dt)
    world.v[0] = 1.0
    return world


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [3, 5, 7])
@pytest.mark.parametrize("gap", [1e-4, 1e-3, 5e-3])
def test_the_last_ball_of_a_cradle_leaves_alone(n: int, gap: float, form: str) -> None:
    """Balls with gaps strike one after another: all of the speed goes to the last one, within solvers' tolerance."""
    world = cradle(n, gap, 1.0, FORMS[form])
    world.step(24)
    speeds = np.array([world.body(f"ball{k}").velocity[0] for k in range(n)])
    assert speeds == pytest.approx(np.eye(n)[-1], abs=1e-3)


def test_balls_that_touch_share_by_the_law_of_one_impact() -> None:
    """Without a gap the impact is one: with Newton's law two thirds back, a third each on; energy is kept."""
    world = cradle(3, 0.0, 1.0, poise.Reduced())
    world.step(12)
    speeds = np.array([world.body(f"ball{k}").velocity[0] for k in range(3)])
    assert speeds == pytest.approx([-1 / 3, 2 / 3, 2 / 3], abs=1e-3)


@pytest.mark.parametrize("n", [1, 4])
def test_impacts_after_each_other_leave_what_newton_says(n: int) -> None:
    """Two balls with e: (1 − e)/2 and (1 + e)/2, wherever in the step they meet."""
    e = 0.6
    for k in range(5):
        world = cradle(2, 1e-3 + 0.0009 * k, e, poise.Reduced(), dt=1 / (60 * n))
        world.step(12 * n)
        speeds = [world.body(f"ball{k}").velocity[0] for k in range(2)]
        assert speeds == pytest.approx([(1 - e) / 2, (1 + e) / 2], abs=1e-6)


def test_a_ball_between_two_walls_keeps_its_speed_and_its_time() -> None:
    """e = 1 at 3 m/s, 30 passages of 0.8 m in 8 s: it is where it should be, to 1 mm."""
    scene = poise.Scene(gravity=(0, 0, 0))
    for x in (-1.5, 1.5):
        wall = poise.box(2.0, 2.0, 2.0, material=poise.Material(friction=0.3, restitution=1.0))
        scene.add(wall, name=f"wall{x}", fixed=True, position=(x, 0, 0))
    scene.add(poise.sphere(0.1, material=poise.Material(friction=0.3)), name="ball")
    world = scene.build(dt=1 / 240)
    world.v[0] = 3.0
    world.step(240 * 8)
    way = (3.0 * 8.0 + 0.4) % 1.6
    assert abs(world.v[0]) == pytest.approx(3.0, abs=1e-6)
    assert world.q[0] == pytest.approx((way if way < 0.8 else 1.6 - way) - 0.4, abs=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_boxes_that_tumble_and_bounce_gain_no_energy(seed: int, form: str) -> None:
    """Restitution 0.5 to 1, friction up to 1, 3 m/s and 3 rad/s: the highest energy is that of the beginning, but for
    the 2 % that turning in flight may add.
    """
    rng = np.random.default_rng(seed)
    shape = poise.box(*rng.uniform(0.1, 0.4, 3), mass=float(rng.uniform(0.5, 5.0)))
    world, _ = dropped(shape, 0.6, float(rng.uniform(0.5, 1.0)), 1 / 240, FORMS[form], mu=float(rng.uniform(0.0, 1.0)))
    world.body("it").place(
        quat_wxyz=quat_exp(rng.normal(size=3)), velocity=rng.normal(size=3), angular_velocity=rng.normal(size=3) * 3
    )
    before, most = world.report().energy.total, -np.inf
    for _ in range(480):
        world.step()
        most = max(most, world.report().energy.total)
    print(f"\nseed {seed}, {form}: {most / before - 1:+.3%} at most (2 %)")
    assert most < before * 1.02


@pytest.mark.parametrize("e", [0.3, 0.7, 0.95])
def test_bounces_end(e: float) -> None:
    """A ball and a box come to rest: after (1 + e)/(1 − e) √(2h/g), and 20 steps."""
    for shape in (poise.sphere(0.1), poise.box(0.2, 0.3, 0.2)):
        world, _ = dropped(shape, 0.05, e, 1 / 240, poise.Reduced())
        world.step(round(((1 + e) / (1 - e) * np.sqrt(0.1 / G)) * 240) + 20)
        assert np.abs(world.v).max() < 0.01
        height = world.q[2]
        world.step(100)
        assert world.q[2] == pytest.approx(height, abs=2e-4)
        assert np.abs(world.v).max() < 2e-3


def test_balls_roll_on_after_a_bounce_with_friction() -> None:
    """A ball comes at 2 m/s, falls 0.5 m and sticks as it bounces: 5/7 of the speed stays, spin v/r."""
    world, _ = dropped(poise.sphere(0.1, mass=1.0), 0.5, 0.5, 1 / 240, poise.Reduced(), mu=1.0)
    world.v[0] = 2.0
    world.step(100)
    off = world.dt * np.sqrt(2 * G * 0.5) / (2 * 0.1)  # the point of contact is that of the beginning of the step
    assert world.v[0] == pytest.approx(2.0 * 5 / 7, rel=off)
    assert np.linalg.norm(world.v[3:6]) == pytest.approx(2.0 * 5 / 7 / 0.1, rel=off)


@pytest.mark.parametrize(("precision", "close"), [("f64", 1e-4), ("f32", 2e-3)])
def test_lanes_bounce_as_one_world_does(precision: str, close: float) -> None:
    """Balls from different heights through four bounces and more: within the tolerance of the solvers."""
    scene = poise.Scene()
    scene.add_ground(restitution=0.8)
    scene.add(poise.sphere(0.1, material=poise.Material(restitution=0.8)), name="ball", position=(0, 0, 1.1))
    scene.add(poise.box(0.2, 0.2, 0.2, material=poise.Material(restitution=0.3)), name="box", position=(1, 0, 0.5))
    batch = scene.build_batch(5, dt=1 / 240, precision=precision, threads=1)
    worlds = [scene.build(dt=1 / 240) for _ in range(5)]
    for k, world in enumerate(worlds):
        world.q[2] += 0.13 * k
        batch.q[k] = world.q
    batch.step(300)
    for k, world in enumerate(worlds):
        world.step(300)
        np.testing.assert_allclose(batch.q[k], world.q, atol=close)


def test_contacts_without_restitution_are_solved_once() -> None:
    """A box that lands without restitution takes no impact of its own: as many solves as it has steps."""
    world, _ = dropped(poise.box(0.2, 0.2, 0.2), 0.3, 0.0, 1 / 240, poise.Reduced())
    lively, _ = dropped(poise.box(0.2, 0.2, 0.2), 0.3, 0.5, 1 / 240, poise.Reduced())
    landed = [0, 0]
    for _ in range(100):
        for k, one in enumerate((world, lively)):
            one.step()
            landed[k] += int(one._stepper.scratch.any_unmoved[0])
    assert landed[0] == 0
    assert landed[1] >= 1


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_restitution_is_lessened_where_it_would_give_energy(side: float) -> None:
    """A rod at 45° that hits with v_t = A_nt/A_nn v_n: if it stuck and came back with −e v_n, e = 1, it would gain
    (1/(1 − A_nt²/(A_nn A_tt)) − 1) v_n²/(2 A_nn). Of a uniform rod of 1 kg A_nn = A_tt = 2.5, A_nt = 1.5: 0.45 J.
    """
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=1.0, restitution=1.0)
    material = poise.Material(friction=1.0, restitution=1.0)
    scene.add(poise.capsule(1e-3, 1.0, mass=1.0, material=material), name="rod", position=(0, 0, 1))
    world = scene.build(dt=1e-5)
    turn = side * np.pi / 4
    world.q[:] = (0, 0, 0.5 * np.sqrt(0.5) + 1e-3, np.cos(turn / 2), 0, np.sin(turn / 2), 0)
    world.v[:] = (side * 1.2, 0, -2.0, 0, 0, 0)
    before = world.report().energy.kinetic
    world.step(2)
    assert world.v[2] > -1.5
    assert world.report().energy.kinetic <= before + 1e-3


def test_a_pile_that_bounces_gains_no_energy_in_any_step() -> None:
    """Boxes, balls and capsules with restitution 0 to 0.9 that fall onto each other: 1e-4 of the energy in a step."""
    rng, scene = np.random.default_rng(0), poise.Scene()
    scene.add_ground(friction=0.6, restitution=0.5)
    for k in range(9):
        material = poise.Material(friction=0.6, restitution=float(rng.uniform(0.0, 0.9)))
        box = poise.box(*rng.uniform(0.1, 0.3, 3), mass=1.0, material=material)
        others = poise.sphere(0.12, mass=2.0, material=material), poise.capsule(0.08, 0.3, mass=1.0, material=material)
        turn, place = quat_exp(rng.normal(size=3)), (*rng.uniform(-0.25, 0.25, 2), 0.3 + 0.35 * k)
        scene.add((box, *others)[k % 3], name=f"body{k}", position=place, quat_wxyz=tuple(turn))
    world = scene.build(poise.Maximal(), dt=1 / 240)
    seen = [world.report().energy.total]
    for _ in range(480):
        world.step()
        seen.append(world.report().energy.total)
    print(f"\npile: a step gains {np.diff(seen).max() / seen[0]:.1e} of the energy at most (1e-4)")
    assert np.diff(seen).max() < 1e-4 * seen[0]
