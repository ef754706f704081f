"""Contacts with known answers: rolling, sliding, inclines, bounces, stacks. Tolerances follow from the step."""

from __future__ import annotations

import numpy as np
import pytest

import poise

G = 9.81


def tilted(angle: float) -> tuple[float, float, float]:
    """Gravity on an incline, seen from it."""
    return G * float(np.sin(angle)), 0.0, -G * float(np.cos(angle))


def on_ground(shape, height: float, mu: float, angle: float = 0.0, dt: float = 1 / 240, e: float = 0.0) -> poise.World:
    """One body above a floor of its own material."""
    scene = poise.Scene(gravity=tilted(angle))
    material = poise.Material(friction=mu, restitution=e)
    scene.add_ground(friction=mu)
    shape.material = material
    scene.add(shape, name="body", position=(0, 0, height))
    return scene.build(poise.Reduced(tolerance=1e-9), dt=dt)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240, 1 / 1000])
def test_a_sphere_that_slides_begins_to_roll(dt: float) -> None:
    """Rolls from t = 2 v0 / (7 μ g) on, at 5 v0 / 7, after 12 v0² / (49 μ g)."""
    v0, mu = 3.0, 0.3
    world = on_ground(poise.sphere(0.1), 0.1, mu, dt=dt)
    world.v[0] = v0
    rolls, way = 2 * v0 / (7 * mu * G), 12 * v0**2 / (49 * mu * G)
    steps = int(np.ceil(rolls / dt))
    speeds = []
    for _ in range(steps):
        world.step()
        speeds.append(float(world.v[0]))
    exact = [v0 - mu * G * dt * k for k in range(1, steps)]
    off = float(np.abs(np.divide(speeds[: steps - 1], exact) - 1).max())
    print(f"\nsliding sphere, dt {dt:.4g} s: speed off by {off:.1e} (1e-9), ", end="")
    print(f"way to rolling by {abs(world.q[0] - way):.1e} m ({v0 * dt:.1e})")
    # while it slides, friction is that of Coulomb, to the last digit
    assert speeds[: steps - 1] == pytest.approx(exact, rel=1e-9)
    assert world.q[0] == pytest.approx(way, abs=v0 * dt)
    world.step(round(0.5 / dt))
    print(f"then rolls at 5/7 v0, off by {abs(world.v[0] / (5 * v0 / 7) - 1):.1e} (1e-9)")
    assert world.v[0] == pytest.approx(5 * v0 / 7, rel=1e-9)
    assert world.v[4] == pytest.approx(world.v[0] / 0.1, rel=1e-9)


@pytest.mark.parametrize(("angle", "mu"), [(0.5, 0.2), (0.5, 0.1), (0.3, 0.5), (0.3, 0.08)])
def test_a_sphere_on_an_incline(angle: float, mu: float) -> None:
    world = on_ground(poise.sphere(0.1), 0.1, mu, angle)
    world.step(240)
    rolling = mu >= 2 / 7 * np.tan(angle)
    expected = 5 / 7 * G * np.sin(angle) if rolling else G * (np.sin(angle) - mu * np.cos(angle))
    kind = "rolls" if rolling else "slides"
    print(f"\nsphere, incline {angle}, μ {mu}: {kind}, speed off by {abs(world.v[0] / expected - 1):.1e} (1e-9)")
    assert world.v[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("angle", "mu"), [(0.5, 0.5), (0.5, 0.6), (0.3, 0.1), (0.3, 0.31)])
def test_a_box_on_an_incline(angle: float, mu: float) -> None:
    world = on_ground(poise.box(0.4, 0.4, 0.1), 0.05, mu, angle)
    world.step(240)
    expected = max(0.0, G * (np.sin(angle) - mu * np.cos(angle)))
    print(
        f"\nbox, incline {angle}, μ {mu}: {world.v[0]:.6f} m/s, off by {abs(world.v[0] - expected):.1e} (1e-6), ",
        end="",
    )
    print(f"height by {abs(world.q[2] - 0.05):.1e} m (2e-6)")
    assert world.v[0] == pytest.approx(expected, abs=1e-6)
    assert abs(world.q[2] - 0.05) < 2e-6


@pytest.mark.parametrize("dt", [1 / 240, 1 / 1000])
def test_a_ball_bounces_lower_each_time(dt: float) -> None:
    """The nth apex is e²ⁿ h; an impact is felt up to a step early, so apexes err by v dt at most."""
    e, h = 0.7, 1.0
    world = on_ground(poise.sphere(0.1), 0.1 + h, 0.5, dt=dt, e=e)
    heights = []
    for _ in range(round(2.0 / dt)):
        world.step()
        heights.append(float(world.q[2]) - 0.1)
    z = np.array(heights)
    apexes = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] >= z[2:])][:3]
    speeds = np.sqrt(2 * G * h) * e ** np.arange(3)
    exact, bound = [e ** (2 * n) * h for n in (1, 2, 3)], float(3 * speeds[0] * dt)
    print(f"\nbounces, dt {dt:.4g} s: apexes {np.round(apexes, 4)} of {np.round(exact, 4)} m (± {bound:.4f})")
    assert apexes == pytest.approx(exact, abs=bound)
    assert z.min() >= -1e-9


def test_a_ball_comes_to_rest() -> None:
    """After √(2h/g) (1 + e)/(1 − e)."""
    e, h, dt = 0.5, 0.5, 1 / 1000
    world = on_ground(poise.sphere(0.1), 0.1 + h, 0.5, dt=dt, e=e)
    rest = float(np.sqrt(2 * h / G) * (1 + e) / (1 - e))
    world.step(round((rest + 0.05) / dt))
    print(f"\nrest after {rest:.3f} s: {abs(world.v[2]):.1e} m/s (1e-9), {abs(world.q[2] - 0.1):.1e} m off (2e-6)")
    assert abs(world.v[2]) < 1e-9
    assert world.q[2] == pytest.approx(0.1, abs=2e-6)


@pytest.mark.parametrize("n", [3, 10])
def test_a_stack_of_boxes_stands(n: int) -> None:
    """It rests at its exact height, and stays: MuJoCo's sinks by millimetres.

    Rows are met to r = 1e-6 g dt. Each box may tilt against the one below by 2 r over its side and slide by r: the kth
    one moves sideways by k (k + 1) r at most, before the last step and after it. Forces differ by what that takes.
    """
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        scene.add(poise.box(0.2, 0.2, 0.2), name=f"box {k}", position=(0, 0, 0.1 + 0.2 * k))
    world = scene.build(poise.Reduced(tolerance=1e-6))
    world.step(480)
    places = world.q.reshape(n, 7)
    sunk, aside = np.abs(places[:, 2] - 0.1 - 0.2 * np.arange(n)).max(), np.abs(places[:, :2]).max()
    report = world.report()
    weight = G * float(world.model.body_mass.sum())
    ground = [contact.force for contact in report.contacts if contact.body_a == "ground"]
    allowed = 2e-6 * (n + 1) * (n + 2) / 3 * weight
    off = np.abs(np.sum(ground, axis=0) - (0.0, 0.0, weight)).max()
    print(f"\n{n} boxes: {sunk:.1e} m sunk, {aside:.1e} m aside (1e-5), ground's force {off:.1e} N off ({allowed:.1e})")
    assert sunk < 1e-5
    assert aside < 1e-5
    assert off <= allowed
    assert report.residual <= 1e-6


def test_limits_hold_a_swinging_arm() -> None:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm", limits=(-0.3, 0.4))
    world = scene.build(dt=1 / 240)
    world.q[0], world.v[0] = 0.3, 3.0
    seen = []
    for _ in range(480):
        world.step()
        seen.append(float(world.q[0]))
    print(f"\nlimits of an arm: {max(seen) - 0.4:.1e}, {-0.3 - min(seen):.1e} beyond (2e-6)")
    assert max(seen) == pytest.approx(0.4, abs=1e-3)
    assert max(seen) <= 0.4 + 2e-6
    assert min(seen) == pytest.approx(-0.3, abs=1e-3)
    assert min(seen) >= -0.3 - 2e-6


def test_a_bullet_is_told_as_it_is() -> None:
    """Nothing that touches nothing feels a row."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 50))
    world = scene.build(dt=0.01)
    world.step(100)
    assert world.report().rows == 0
    assert world.v[2] == pytest.approx(-G, rel=1e-12)
