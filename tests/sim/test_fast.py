"""What is fast: it gets through nothing, bounces as told, and is stopped by nothing that it does not meet."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.dynamics import energy, momentum
from poise.formulations.ccd_stepping.ccd_substeps import ALLOW
from poise.motion import KeyedPath

STEPS = [1 / 30, 1 / 60, 1 / 240, 1 / 1000]
CORNERS = np.array([[x, y, z] for x in (-0.005, 0.005) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
FACES = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
FACES += [[1, 5, 7], [1, 7, 3]]
WALLS = {
    "box": lambda: poise.box(0.01, 2.0, 2.0),
    "hull": lambda: poise.convex(CORNERS),
    "mesh": lambda: poise.triangle_mesh(CORNERS, FACES),
    "disc": lambda: poise.cylinder(1.0, 0.01),
}
RADIUS = 0.01


def ball(e: float = 0.5, mu: float = 0.0, radius: float = RADIUS):
    shape = poise.sphere(radius, mass=0.03)
    shape.material = poise.Material(friction=mu, restitution=e)
    return shape


def beside_wall(kind: str, dt: float, balls: int = 1, e: float = 0.5, mu: float = 0.0) -> poise.World:
    """A wall 1 cm thick across x, and balls; nothing falls."""
    scene = poise.Scene(gravity=(0, 0, 0))
    turn = (np.sqrt(0.5), 0, np.sqrt(0.5), 0) if kind == "disc" else (1, 0, 0, 0)
    scene.add(WALLS[kind](), name="wall", fixed=True, quat_wxyz=turn)
    for k in range(balls):
        scene.add(ball(e, mu), name=f"ball {k}", position=(-5 - k, 0, 0.1 * k))
    return scene.build(dt=dt)


def run(world: poise.World, time: float) -> list[np.ndarray]:
    """Step for a time; positions of what moves after each step. Kinetic energy never grows."""
    seen, before = [], float(energy(world.model, world.q, world.v).kinetic)
    rounding = 1e-9 * before
    for _ in range(int(np.ceil(time / world.dt))):
        world.step()
        now = float(energy(world.model, world.q, world.v).kinetic)
        assert now <= before + rounding
        before = now
        seen.append(world.q.reshape(-1, 7)[:, :3].copy())
    return seen


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("kind", WALLS)
def test_a_bullet_bounces_off_a_thin_wall(kind: str, dt: float) -> None:
    """Also where it starts right before the wall, touches it, or has been within it for a little."""
    for start in (-7.3, -0.51, -0.0151, -0.015, -0.0149):
        world = beside_wall(kind, dt)
        world.body("ball 0").place(position=(start, 0.2, -0.1), velocity=(1000, 0, 0))
        run(world, 0.01)
        when = max(-0.015 - start, 0.0) / 1000
        steps = int(np.ceil(0.01 / dt))
        place = -0.015 - 500 * (steps * dt - when)
        off = float(np.abs(world.v[:3] - (-500, 0, 0)).max())
        print(f"\nbullet, {kind}, dt {dt:.4g} s, from {start} m: {off:.1e} m/s off (1e-3), ", end="")
        print(f"{abs(world.q[0] - place):.1e} m off (1e-3)")
        assert world.v[:3] == pytest.approx([-500, 0, 0], rel=1e-6, abs=1e-3)
        assert world.q[0] == pytest.approx(place, abs=1e-3)


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("kind", WALLS)
@pytest.mark.parametrize("angle", [0.02, 0.3, 1.2])
def test_a_bullet_grazes_a_thin_wall(kind: str, dt: float, angle: float) -> None:
    """The angle is that to the wall. Along it, without friction, nothing changes."""
    world = beside_wall(kind, dt)
    speed = 1000 * np.array([np.sin(angle), np.cos(angle), 0.0])
    world.body("ball 0").place(position=np.array([-0.015, 0.1, 0.05]) - 0.5e-3 * speed, velocity=speed)
    run(world, 0.001)
    off = float(np.abs(world.v[:3] - speed * [-0.5, 1.0, 0.0]).max())
    print(f"\ngrazing bullet, {kind}, dt {dt:.4g} s, angle {angle}: {off:.1e} m/s off (1e-3)")
    assert world.v[:3] == pytest.approx(speed * [-0.5, 1.0, 0.0], rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("kind", WALLS)
def test_nothing_stops_a_bullet_that_flies_past_an_edge(kind: str, dt: float) -> None:
    """By a tenth of a millimetre; it leaves the state that flight alone leads to, to the last digits."""
    world = beside_wall(kind, dt)
    world.body("ball 0").place(position=(-4.2, 0.0, 1.0 + RADIUS + 1e-4), velocity=(1000, 0, 0))
    seen = run(world, 0.01)
    print(f"\npast an edge, {kind}, dt {dt:.4g} s: {world.v[:3].tolist()} m/s (1000, 0, 0 to the bit)")
    assert world.v[:3].tolist() == [1000, 0, 0]
    assert seen[-1][0] == pytest.approx([-4.2 + 1000 * len(seen) * dt, 0, 1.0 + RADIUS + 1e-4], rel=1e-12)


@pytest.mark.parametrize("dt", STEPS)
def test_several_bullets_at_once(dt: float) -> None:
    world = beside_wall("box", dt, balls=6)
    speeds = [400.0, 1000.0, 650.0, 80.0, 900.0, 333.0]
    for k, speed in enumerate(speeds):
        side = -1.0 if k % 2 else 1.0
        world.body(f"ball {k}").place(position=(side * (1 + 0.3 * k), 0, 0.1 * k), velocity=(-side * speed, 0, 0))
    run(world, 0.05)
    for k, speed in enumerate(speeds):
        side = -1.0 if k % 2 else 1.0
        assert world.v[6 * k] == pytest.approx(0.5 * side * speed, rel=1e-6)
        assert world.q[7 * k] * side > 0.015


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_two_bullets_meet_head_on(dt: float, e: float) -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    for k, mass in enumerate((0.03, 0.1)):
        shape = ball(e)
        shape.mass = mass
        scene.add(shape, name=f"ball {k}", position=(8.0 * k, 0, 0))
    world = scene.build(dt=dt)
    world.v[0], world.v[6] = 1000, -800
    before = momentum(world.model, world.q, world.v)
    run(world, 0.02)
    after = momentum(world.model, world.q, world.v)
    together = (0.03 * 1000 - 0.1 * 800) / 0.13
    expected = [together - e * 0.1 / 0.13 * 1800, together + e * 0.03 / 0.13 * 1800]
    off = float(np.abs(world.v[[0, 6]] / expected - 1).max())
    lost = float(np.abs(after.linear - before.linear).max())
    print(f"\nhead on, e {e}, dt {dt:.4g} s: speeds {off:.1e} off (1e-6), momentum {lost:.1e} N s off (1e-9)")
    assert world.v[[0, 6]] == pytest.approx(expected, rel=1e-6)
    assert after.linear == pytest.approx(before.linear, rel=1e-9, abs=1e-9)
    assert world.q[7] - world.q[0] >= 2 * RADIUS - 2e-6


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_a_spinning_rod_stays_on_its_side(dt: float, e: float) -> None:
    """Thinner than the wall, spinning at 600 rad/s, flying at 100 m/s.

    It touches with one point and stays in its plane: off it, free flight of what spins so fast gains energy by itself.
    """
    deepest = -np.inf
    for turn in (0.0, 0.4, 1.3):
        scene = poise.Scene(gravity=(0, 0, 0))
        scene.add(poise.box(0.01, 2.0, 2.0), name="wall", fixed=True)
        rod = poise.capsule(0.004, 0.6, mass=0.3)
        rod.material = poise.Material(friction=0.3, restitution=e)
        scene.add(rod, name="rod", position=(-2.0, 0, 0), quat_wxyz=(np.cos(turn), 0, np.sin(turn), 0))
        world = scene.build(dt=dt)
        world.body("rod").place(velocity=(100, 0, 0), angular_velocity=(0, 600, 0))
        for seen in run(world, 0.06):
            assert seen[0, 0] < -0.004
        end = abs(float(world.body("rod").rotation[0, 2])) * 0.3 + 0.004
        deepest = max(deepest, float(world.q[0]) + end + 0.005)
        assert deepest <= ALLOW * 0.008
        assert world.v[0] <= 1e-3
    print(f"\nspinning rod, e {e}, dt {dt:.4g} s: {deepest:.1e} m deep in the end ({ALLOW * 0.008:.1e})")


@pytest.mark.parametrize("dt", STEPS)
def test_a_bullet_between_two_walls_stays_there(dt: float) -> None:
    """Hundreds of bounces a step cannot be followed: the ball stays between the walls all the same."""
    scene = poise.Scene(gravity=(0, 0, -9.81))
    for k, side in enumerate((-0.05, 0.05)):
        scene.add(poise.box(0.01, 4.0, 4.0), name=f"wall {k}", fixed=True, position=(side, 0, 0))
    scene.add(ball(1.0), name="ball")
    world = scene.build(dt=dt)
    world.body("ball").place(velocity=(1000, 3, 0))
    far = 0.0
    for _ in range(int(np.ceil(0.05 / dt))):
        world.step()
        far = max(far, abs(float(world.q[0])))
    print(f"\nbetween walls, dt {dt:.4g} s: {far - 0.035:.1e} m beyond (1e-6), {abs(world.v[0]):.6f} m/s (1000)")
    assert far <= 0.035 + 1e-6
    assert abs(world.v[0]) <= 1000 * (1 + 1e-9)


@pytest.mark.parametrize("dt", STEPS)
def test_a_stack_stands_while_a_bullet_flies_by_and_into_a_wall(dt: float) -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.01, 2.0, 2.0), name="wall", fixed=True, position=(3, 1, 1))
    for k in range(4):
        scene.add(poise.box(0.2, 0.2, 0.2), name=f"box {k}", position=(0, 0, 0.1 + 0.2 * k))
    scene.add(ball(), name="ball", position=(-5, 1, 0.5))
    world = scene.build(poise.Reduced(tolerance=1e-6), dt=dt)
    world.step(int(0.1 / dt))
    world.body("ball").place(position=(-5, 1, 0.5), velocity=(700, 0, 0))
    world.step(int(0.1 / dt))
    places = world.q.reshape(-1, 7)
    off = np.abs(places[:4, :3] - [(0, 0, 0.1 + 0.2 * k) for k in range(4)]).max()
    print(f"\nstack beside a bullet, dt {dt:.4g} s: {off:.1e} m off (2e-5), ", end="")
    print(f"{np.abs(world.v[:24]).max():.1e} m/s (1e-3), bullet {world.v[24]:.2f} m/s (-350 ± 3.5)")
    assert places[:4, 2] == pytest.approx(0.1 + 0.2 * np.arange(4), abs=2e-5)
    assert np.abs(places[:4, :2]).max() < 2e-5
    assert np.abs(world.v[:24]).max() < 1e-3
    assert world.v[24] == pytest.approx(-350, rel=0.01)


@pytest.mark.parametrize("dt", STEPS)
def test_a_bullet_skids_along_the_ground(dt: float) -> None:
    """It touches all the time, brakes by friction, and does not sink in."""
    scene = poise.Scene()
    scene.add_ground(friction=0.5)
    scene.add(ball(0.0, 0.5), name="ball", position=(0, 0, RADIUS))
    world = scene.build(dt=dt)
    world.v[0] = 500
    n = int(np.ceil(0.1 / dt))
    for _ in range(n):
        world.step()
        assert world.q[2] == pytest.approx(RADIUS, abs=1e-5)
    left = 500 - 0.5 * 9.81 * n * dt
    print(f"\nskidding bullet, dt {dt:.4g} s: speed {abs(world.v[0] / left - 1):.1e} off (1e-6)")
    assert world.v[0] == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("dt", STEPS)
def test_a_flail_does_not_pass_a_wall(dt: float) -> None:
    """Links of a tree bend their ways within a step. Rows are solved to 1e-3 m/s, a share of 1e-3 of 1 m/s."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.01, 2.0, 2.0), name="wall", fixed=True, position=(-0.3, 0.6, 0))
    arm = poise.box(0.02, 0.8, 0.02, mass=1.0)
    scene.hinge(None, arm, axis="z", anchor=(0, -0.4, 0), name="arm")
    world = scene.build(dt=dt)
    world.v[0] = 150.0
    for _ in range(int(np.ceil(0.1 / dt))):
        world.step()
    corner = world.body("arm").position + world.body("arm").rotation @ (-0.01, 0.4, 0)
    print(f"\nflail, dt {dt:.4g} s: {abs(corner[0] + 0.295):.1e} m off (1e-4), {abs(world.v[0]):.1e} rad/s (2.5e-3)")
    assert corner[0] == pytest.approx(-0.295, abs=1e-4)
    assert abs(world.v[0]) < 1e-3 / 0.4


def busy(dt: float = 1 / 60) -> poise.World:
    world = beside_wall("box", dt, balls=4, mu=0.3)
    for k in range(4):
        side = -1.0 if k % 2 else 1.0
        world.body(f"ball {k}").place(position=(side * (2 + k), 0.002 * k, 0), velocity=(-300.0 * side * (1 + k), 1, 0))
    return world


def test_fast_worlds_give_the_same_bits() -> None:
    one, other = busy(), busy()
    one.step(6)
    for _ in range(6):
        other.step()
    assert np.array_equal(one.q, other.q)
    assert np.array_equal(one.v, other.v)


def test_a_fast_world_that_is_put_back_goes_on_bit_for_bit() -> None:
    for at in range(3):
        world = busy(1 / 240)
        world.step(at)
        saved = world.state
        world.step(5)
        first = world.state
        world.step(3)
        world.state = saved
        world.step(5)
        assert world.state.same_bits(first)
        other = busy(1 / 240)
        other.state = saved
        other.step(5)
        assert other.state.same_bits(first)


def test_slow_worlds_are_not_split() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.5))
    world = scene.build()
    for _ in range(240):
        world.step()
        assert world.report().parts == 1


@pytest.mark.parametrize(("spin", "parts"), [((0, 0, 100), 1), ((0, 20, 0), 2), ((0, 0, 0), 1), ((30, 20, 0), 3)])
def test_a_capsule_is_split_by_the_way_of_its_ends(spin: tuple[float, float, float], parts: int) -> None:
    """It may go half of its thickness in a part; turning about its own axis, it goes nowhere."""
    dt, radius, half = 1 / 240, 0.02, 0.3
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.capsule(radius, 2 * half), name="rod")
    world = scene.build(dt=dt)
    world.body("rod").place(angular_velocity=spin)
    assert parts == max(1, np.ceil(half * np.hypot(*spin[:2]) * dt / radius))
    world.step()
    assert world.report().parts == parts


@pytest.mark.parametrize("formulation", [poise.Reduced(), poise.Maximal()])
def test_a_step_is_split_by_the_speeds_that_an_impact_leaves(formulation: poise.Reduced | poise.Maximal) -> None:
    """A heavy ball, slow for its size, strikes a rod on a hinge that is at rest: the rod is too fast for the step."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=1e3), name="block", position=(0, 0, 1))
    hinge = poise.Joint("hinge", axis=(0, 1, 0), anchor=(0, 0, 0.2))
    scene.add(poise.capsule(0.03, 0.3, mass=0.1), name="rod", parent="block", joint=hinge, position=(0, 0, -0.35))
    scene.add(poise.sphere(0.4, mass=100.0), name="ball", position=(-0.5, 0, 0.5))
    world = scene.build(formulation, dt=1 / 240)
    world.body("ball").place(velocity=(15, 0, 0))
    for _ in range(10):
        world.step()
        if world.body("rod").velocity[0] != 0.0:
            break
        assert world.report().parts == 1
    assert np.linalg.norm(world.body("rod").angular_velocity) > 30.0
    assert world.report().parts > 1


def test_a_path_leads_on_where_a_step_is_split() -> None:
    """A plate on its way at 3 m/s is struck: the ball bounces from its speed, and the plate is where its path is."""
    path = KeyedPath([0.0, 1.0, 2.0], [(0, 0, 0), (-3, 0, 0), (-6, 0, 0)])
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.01, 2.0, 2.0), name="plate", kinematic=path)
    scene.add(ball(), name="ball", position=(-40, 0, 0))
    world = scene.build(dt=1 / 60)
    world.body("ball").place(velocity=(1000, 0, 0))
    while world.v[6] > 0.0:
        world.step()
        assert world.body("plate").position == pytest.approx(path(world.time).position, abs=1e-12)
    assert world.time <= 0.05 + 1e-9
    speed = -float(path(0.04).velocity[0])
    bounced = -0.5 * (1000 + speed) - speed
    print(f"\nstruck plate: ball {world.v[6]:.3f} m/s of {bounced:.3f} (1e-3 of it)")
    assert world.v[6] == pytest.approx(bounced, rel=1e-3)


@pytest.mark.parametrize("dt", [1 / 240, 1 / 1000])
@pytest.mark.parametrize(("e", "mu"), [(0.0, 0.5), (0.5, 0.3), (0.9, 0.0)])
def test_bullets_in_a_room_stay_there(dt: float, e: float, mu: float) -> None:
    """Problems of changing sizes follow each other: nothing of a larger one is left in the next."""
    rng = np.random.default_rng(7)
    scene = poise.Scene()
    for axis in range(3):
        for side in (-1.005, 1.005):
            size, place = np.full(3, 2.02), np.zeros(3)
            size[axis], place[axis] = 0.01, side
            scene.add(poise.box(*size), name=f"wall {axis} {side}", fixed=True, position=place)
    for k in range(4):
        scene.add(ball(e, mu, 0.02), name=f"ball {k}", position=rng.uniform(-0.7, 0.7, 3))
    world = scene.build(dt=dt)
    for k in range(4):
        way = rng.normal(size=3)
        world.body(f"ball {k}").place(velocity=way / np.linalg.norm(way) * rng.uniform(50, 1000))
    before = float(energy(world.model, world.q, world.v).total)
    gain = far = -np.inf
    for _ in range(int(0.1 / dt)):
        world.step()
        now = float(energy(world.model, world.q, world.v).total)
        gain, before = max(gain, now - before), now
        far = max(far, float(np.abs(world.q.reshape(-1, 7)[:, :3]).max()))
    print(
        f"\nroom, e {e}, dt {dt:.4g} s: {far - 0.98:.1e} m deep ({ALLOW * 0.04:.1e}), gains {gain:.1e} J a step (1e-3)"
    )
    assert gain <= 1e-3
    assert far <= 0.98 + ALLOW * 0.04
