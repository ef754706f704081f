"""A person stands on drives alone: the ground bears the weight, and a push moves the centre of mass as Newton says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import poise
from poise.model.model import Model
from poise.sim import ForcePlate, JointSensor

PUSH, UNTIL = 50.0, 0.2
"""N to the front at the chest, for so long; s."""


def standing(dt: float = 1 / 240, tolerance: float = 1e-9, **options) -> poise.World:
    """At the rest pose, held by implicit springs and dampers in every joint."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    world = scene.build(poise.Reduced(tolerance=tolerance, **options), dt=dt)
    hold(world)
    return world


def hold(world: poise.World, gain: float = 2000.0) -> None:
    """Drives to the present pose; nobody holds the root."""
    gains = np.full(world.model.nv, gain)
    gains[:6] = 0.0
    world.drive = poise.dynamics.Drive(gains, 0.1 * gains, world.q.copy())


def weight(model: Model) -> float:
    return float(model.body_mass.sum() * np.linalg.norm(model.gravity))


def soles(world: poise.World) -> np.ndarray:
    """(8, 2) corners of the undersides of both feet."""
    solids, corners = world.model.solids, []
    for name in ("hero/foot_l", "hero/foot_r"):
        body, shape = world.body(name), solids.names.index(f"{name}[0]")
        signs = np.array([(x, y, -1) for x in (-1, 1) for y in (-1, 1)])
        corners.append(body.position + (solids.position[shape] + signs * solids.size[shape]) @ body.rotation.T)
    return np.concatenate(corners)[:, :2]


def is_within(point: np.ndarray, corners: np.ndarray) -> bool:
    faces = ConvexHull(corners).equations
    return bool((faces[:, :2] @ point + faces[:, 2] <= 0.0).all())


def pushed(world: poise.World, chest: str = "hero/torso") -> bool:
    """Push in the next step, while it is time to."""
    now = world.time < UNTIL - 1e-9
    if now:
        world.apply_force(chest, (PUSH, 0, 0))
    return now


def test_the_ground_bears_the_weight() -> None:
    world = standing(tolerance=1e-3)  # as users have it
    world.step(480)
    reading = ForcePlate("ground").read(world)
    com = poise.dynamics.momentum(world.model, world.q, world.v).com
    off = np.abs(reading.force - (0, 0, weight(world.model))).max() / weight(world.model)
    print(f"\nstanding: ground's force {off:.1e} of the weight off (1e-3), its centre ", end="")
    print(f"{np.abs(reading.centre[:2] - com[:2]).max():.1e} m from the centre of mass (1e-3), ", end="")
    print(f"speeds {np.abs(world.v).max():.1e} (1e-3)")
    assert reading.force == pytest.approx([0, 0, weight(world.model)], abs=1e-3 * weight(world.model))
    assert is_within(reading.centre[:2], soles(world))
    assert reading.centre[:2] == pytest.approx(com[:2], abs=1e-3)
    assert float(np.abs(world.v).max()) < 1e-3
    each = [ForcePlate("ground", of=f"hero/foot_{side}").read(world).force[2] for side in ("l", "r")]
    assert each == pytest.approx([0.5 * weight(world.model)] * 2, rel=0.01)


def test_joints_bear_what_is_above_them() -> None:
    """Both ankles together carry all but the feet, the neck the head."""
    world = standing()
    world.step(480)
    model, g = world.model, 9.81
    feet = sum(model.body_mass[model.body_index(f"foot_{side}")] for side in "lr")
    ankles = sum(JointSensor(f"ankle_{side}").read(world).force for side in "lr")
    above = -(model.body_mass.sum() - feet) * g
    print(f"\nankles bear {ankles[2]:.4f} N of {above:.4f} (1e-3)")
    assert ankles == pytest.approx([0, 0, above], abs=1e-3)  # on the feet
    neck = JointSensor(model.joint_names[int(np.flatnonzero(model.joint_body == model.body_index("head"))[0])])
    assert neck.read(world).force == pytest.approx([0, 0, model.body_mass[model.body_index("head")] * g], abs=1e-3)


def gained(world: poise.World, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """M (J a + J̇ v) of the centre of mass, at the beginning of the step, with the accelerations that were found; N."""
    model, total = world.model, np.zeros(3)
    for body in np.flatnonzero(model.body_mass):
        J = poise.dynamics.jacobian(model, q, int(body), model.body_com[body], v)
        total += model.body_mass[body] * (J.J @ world.a + J.rate @ v)[3:]
    return total


def balance(dt: float) -> tuple[float, float, float]:
    """Half a second with a push. What a step's impulses differ by from J Δv of the centre of mass at most, N·s; what
    all of them do from the momentum that is gained; and the most that was given to the front.
    """
    world = standing(dt, tolerance=1e-6)
    model = world.model
    mass, start = float(model.body_mass.sum()), poise.dynamics.momentum(model, world.q, world.v).linear
    given, most, worst = np.zeros(3), 0.0, 0.0
    for _ in range(round(0.5 / dt)):
        q, v, push = world.q.copy(), world.v.copy(), PUSH * pushed(world)
        world.step()
        ground = sum((c.force for c in world.report().contacts if c.body_a == "ground"), np.zeros(3))
        acts = ground + mass * model.gravity + (push, 0, 0)
        worst = max(worst, float(np.abs(gained(world, q, v) - acts).max()) * dt)
        given += acts * world.dt
        most = max(most, given[0])
    end = poise.dynamics.momentum(model, world.q, world.v).linear
    return worst, float(np.abs(end - start - given).max()), float(most)


def test_newtons_law_holds_in_every_step_of_a_push() -> None:
    """m a of the centre of mass is weight, ground reaction and push, to rounding; what it gains over all is what they
    give, but for the first order of the step: the momentum at the end of a step is that of other coordinates.
    """
    mass, totals = float(standing().model.body_mass.sum()), []
    for dt in (1 / 240, 1 / 480, 1 / 960):
        worst, total, most = balance(dt)
        totals.append(total)
        print(f"\npush, dt 1/{1 / dt:.0f} s: a step's impulses {worst:.1e} N s off ({1e-9 * mass:.1e}), ", end="")
        print(f"all of them {total:.1e} N s ({mass * dt * 0.1:.1e}), {most:.2f} N s to the front (> 3)")
        assert worst <= 1e-9 * mass
        assert most > 3.0  # a good part of 10 N·s before the ground answers
        assert total <= mass * dt * 0.1
    orders = np.log2(np.array(totals[:-1]) / totals[1:])
    print(f"orders of what is off over all: {np.round(orders, 3)} (1 ± 0.25)")
    assert orders == pytest.approx([1.0, 1.0], abs=0.25)


def trajectory(dt: float, every: int) -> np.ndarray:
    """Centres of mass over 0.5 s, in time steps of 1/60 s."""
    world, places = standing(dt), []
    for k in range(round(0.5 / dt)):
        pushed(world)
        world.step()
        if (k + 1) % every == 0:
            places.append(poise.dynamics.momentum(world.model, world.q, world.v).com)
    assert world.body("hero/head").position[2] > 1.5
    return np.array(places)


def test_a_push_converges_with_the_step() -> None:
    """Half the step, half the error, against a step that is eight times as fine as the finest."""
    exact = trajectory(1 / 7680, 128)
    errors = [float(np.abs(trajectory(1 / n, n // 60) - exact).max()) for n in (240, 480, 960)]
    swing = float(np.ptp(exact[:, 0]))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    print(f"\npush, swing {1e3 * swing:.2f} mm: errors {errors[0]:.1e}, {errors[1]:.1e}, {errors[2]:.1e} m, ", end="")
    print(f"orders {np.round(orders, 3)} (1 ± 0.25)")
    assert swing > 2e-3
    assert errors[0] < 0.1 * swing
    assert orders == pytest.approx([1.0, 1.0], abs=0.25)


def test_two_of_them_stand_side_by_side_and_a_third_hangs_fixed() -> None:
    scene = poise.Scene()
    scene.add_ground()
    for name, y, size in (("one", 0.0, 1.75), ("two", 0.8, 1.6)):
        scene.add(poise.characters.humanoid(height=size, mass=40.0 * size), name=name, position=(0, y, 0))
    scene.add(poise.characters.humanoid(), name="fixed", position=(0, 3, 0.5), fixed=True)
    world = scene.build()
    model = world.model
    gains = np.full(model.nv, 2000.0)
    for name in ("one/root", "two/root"):
        gains[model.v_slice(name)] = 0.0
    world.drive = poise.dynamics.Drive(gains, 0.1 * gains, world.q.copy())
    world.step(240)
    for name in ("one", "two"):
        own = [body for body in model.body_names if body.startswith(f"{name}/")]
        mass = sum(model.body_mass[model.body_index(body)] for body in own)
        assert ForcePlate("ground", of=own).read(world).force[2] == pytest.approx(mass * 9.81, rel=1e-3)
    assert world.body("fixed/pelvis").velocity == pytest.approx([0, 0, 0], abs=1e-15)
    assert not any("fixed/" in contact.body_b and contact.body_a == "ground" for contact in world.report().contacts)
    # each stands as it does alone
    alone = standing(tolerance=1e-3)
    alone.step(240)
    assert world.body("one/head").position == pytest.approx(alone.body("hero/head").position, abs=1e-5)
