"""Worlds of separate bodies: laws of motion, how joints hold, what is written to coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise import Maximal, Reduced
from poise.motion.path import OrbitPath

TURNING = ("implicit", "explicit", "momentum")


def top(spin: tuple[float, float, float], turning: str, dt: float) -> poise.World:
    """A body of revolution about its own z axis, without weight."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.cylinder(0.2, 0.1, mass=2.0), name="top")
    world = scene.build(Maximal(turning=turning), dt=dt)  # type: ignore[arg-type]
    world.v[3:6] = spin
    return world


def chain(links: int, last: float = 1.0) -> poise.Scene:
    """Rods on ball joints that hang from the world; the last one is `last` times as heavy as the others."""
    scene, parent = poise.Scene(), None
    for k in range(links):
        rod = poise.box(0.02, 0.02, 0.1, mass=last if k == links - 1 else 1.0)
        place = (0, 0, 0.1 * links) if parent is None else (0, 0, -0.1)
        parent = scene.ball(parent, rod, name=f"rod {k}", anchor=(0, 0, 0.05), position=place)
    return scene


def flung(turning: str = "implicit", **options: object) -> poise.World:
    """Four rods in a row that float and turn."""
    scene = poise.Scene(gravity=(0, 0, 0))
    parent = scene.add(poise.box(0.1, 0.12, 0.4, mass=1.0), name="rod 0")
    for k in range(3):
        rod = poise.box(0.1, 0.12, 0.4, mass=1.0 + k)
        parent = scene.ball(parent, rod, name=f"rod {k + 1}", anchor=(0, 0, 0.2), position=(0, 0, -0.4))
    world = scene.build(Maximal(turning=turning, **options), dt=1 / 240)  # type: ignore[arg-type]
    world.v[...] = np.random.default_rng(1).normal(size=world.model.nv) * 3.0
    return world


# ---- bodies alone ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turning", TURNING)
def test_a_top_precesses_as_euler_has_it(turning: str) -> None:
    """In its own axes the spin turns about the axis of revolution by Ω t, Ω = (I₃ − I₁)/I₁ ω₃. Euler's steps, implicit
    and explicit, make it longer or shorter by Ω² dt t/2.
    """
    errors = []
    for dt in (1 / 200, 1 / 400):
        world = top((1.0, 0.0, 5.0), turning, dt)
        model = world.model
        i1, i3 = model.link_inertia[0, 0], model.link_inertia[0, 2]
        world.step(round(1.0 / dt))
        angle = (i3 - i1) / i1 * 5.0
        errors.append(np.abs(world.v[3:6] - [np.cos(angle), np.sin(angle), 5.0]).max())
    assert errors[0] < angle**2 / 200 * 0.6
    assert errors[1] < 0.6 * errors[0]


def test_a_momentum_is_kept_to_rounding_and_energy_to_second_order() -> None:
    """A book that is thrown about its middle axis, and tumbles."""
    lost = []
    for dt in (1 / 120, 1 / 240):
        scene = poise.Scene(gravity=(0, 0, 0))
        scene.add(poise.box(0.1, 0.2, 0.4, mass=1.0), name="book")
        world = scene.build(Maximal(turning="momentum"), dt=dt)
        world.v[3:6] = (0.05, 8.0, 0.0)
        before = world.report()
        tumbled = 0.0
        for _ in range(round(5.0 / dt)):
            world.step()
            tumbled = min(tumbled, float(world.v[4]))
        after = world.report()
        assert tumbled < -7.0
        assert after.momentum.angular == pytest.approx(before.momentum.angular, abs=1e-13)
        lost.append(abs(after.energy.kinetic / before.energy.kinetic - 1.0))
    assert lost[0] < 2e-3
    assert lost[1] < 0.3 * lost[0]


def test_the_implicit_torque_never_gains_energy_where_the_explicit_one_does() -> None:
    gained = {}
    for turning in ("implicit", "explicit"):
        scene = poise.Scene(gravity=(0, 0, 0))
        scene.add(poise.box(0.05, 0.2, 0.4, mass=1.0), name="book")
        world = scene.build(Maximal(turning=turning), dt=1 / 60)  # type: ignore[arg-type]
        world.v[3:6] = (1.0, 12.0, 1.0)
        energies = [world.report().energy.kinetic]
        for _ in range(120):
            world.step()
            energies.append(world.report().energy.kinetic)
        gained[turning] = float(np.diff(energies).max())
    assert gained["implicit"] <= 1e-12
    assert gained["explicit"] > 1e-3


# ---- joints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turning", TURNING)
def test_what_floats_keeps_its_momentum(turning: str) -> None:
    """Impulses of joints are internal. Angular momentum is that of bodies that turn alone, but for closed gaps."""
    world = flung(turning)
    before, mass = world.report().momentum, world.model.link_mass
    world.step(240)
    after = world.report().momentum
    own = world._stepper.bodies.own[: 13 * len(mass)].reshape(-1, 13)
    assert mass @ own[:, 10:] == pytest.approx(before.linear, abs=1e-11)
    # as a tree's it is told from coordinates, which gaps of 1e-7 are missing in
    assert after.linear == pytest.approx(before.linear, abs=1e-6 * float(np.linalg.norm(before.linear)))
    if turning == "momentum":
        assert after.angular == pytest.approx(before.angular, abs=1e-3 * float(np.linalg.norm(before.angular)))


def test_gaps_that_a_step_opens_are_of_second_order_and_closed_to_rounding() -> None:
    opened, left = [], []
    for dt in (1 / 100, 1 / 200):
        for how, gaps in (("speed", opened), ("displacement", left)):
            scene = chain(5)
            world = scene.build(Maximal(stabilization=how, erp=0.0), dt=dt)  # type: ignore[arg-type]
            world.v[...] = np.random.default_rng(0).normal(size=world.model.nv)  # too slow for steps in parts
            world.step()
            gaps.append(float(world.joint_gaps[:, 0].max()))
    assert opened[1] < 0.3 * opened[0]
    assert opened[0] > 1e-6
    assert max(left) < 1e-12


def test_speed_closes_the_share_erp_of_a_gap_in_a_step() -> None:
    """VON eq. 10, α = erp/dt: of a rod at rest that is 1 mm away from its joint."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.ball(None, poise.sphere(0.1, mass=1.0), name="ball")
    world = scene.build(Maximal(stabilization="speed", erp=0.25), dt=0.01)
    world.step()
    world._stepper.bodies.own[4] += 1e-3  # the centre of mass, along x
    gaps = []
    for _ in range(4):
        gaps.append(float(world._stepper.bodies.own[4]))
        world.step()
    assert gaps == pytest.approx([1e-3 * 0.75**k for k in range(4)], rel=1e-9)


def test_a_hundred_links_hold_a_hundred_times_their_mass() -> None:
    """And swing with it: the joints are solved at once, however long the chain, however different the masses."""
    world = chain(100, last=100.0).build(Maximal(), dt=1 / 240)
    world.v[-3:] = (0.0, 2.0, 0.0)
    start = world.body("rod 99").position
    worst = 0.0
    for _ in range(240):
        world.step()
        worst = max(worst, float(world.joint_gaps[:, 0].max()))
    assert worst < 1e-5
    assert np.linalg.norm(world.body("rod 99").position) == pytest.approx(np.linalg.norm(start), abs=0.3)


def test_rods_that_diverge_as_a_tree_go_on_as_bodies() -> None:
    """Thin rods without any damping, thrown about: a tree's semi-implicit step gains energy, bodies lose it."""
    scene, parent = poise.Scene(), None
    for k in range(5):
        place = (0, 0, 3) if parent is None else (0, 0, -0.5)
        rod = poise.box(0.1, 0.1, 0.5, mass=2.0)
        parent = scene.ball(parent, rod, name=f"b{k}", anchor=(0, 0, 0.25), position=place)
    world = scene.build(Maximal(), dt=1 / 240)
    world.q[0:4] = (np.cos(0.6), 0, np.sin(0.6), 0)
    world.v[0:3] = (0.5, 1.0, 0)
    world.step()
    start = world.report().energy
    first = start.kinetic + start.gravity
    for _ in range(10):
        world.step(120)
        now = world.report().energy
        assert now.kinetic + now.gravity < first + 0.05


# ---- coordinates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_bodies_follow_what_is_written_to_coordinates(level: str) -> None:
    scene = chain(3)
    world = scene.build(Maximal(level=level), dt=1 / 240)  # type: ignore[arg-type]
    world.step(10)
    turned = (np.cos(0.4), 0.0, np.sin(0.4), 0.0)
    world.q[4:8], world.v[3:6] = turned, (0.0, 0.0, 0.0)
    fresh = scene.build(Maximal(level=level), dt=1 / 240)  # type: ignore[arg-type]
    fresh.q[...], fresh.v[...] = world.q, world.v
    world.step()
    fresh.step()
    assert world.q == pytest.approx(fresh.q, abs=1e-6)
    assert np.abs(world.q[4:8] - turned).max() < 0.01


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_a_state_comes_back_bit_for_bit(level: str) -> None:
    world = chain(4).build(Maximal(level=level), dt=1 / 120)  # type: ignore[arg-type]
    world.v[...] = 2.0
    world.step(7)
    saved = world.state.copy()
    world.step(5)
    q, v = world.q.copy(), world.v.copy()
    world.state = saved
    world.step(5)
    assert (world.q == q).all()
    assert (world.v == v).all()


def test_what_diverges_leaves_bodies_where_they_were() -> None:
    world = chain(2).build(Maximal(), dt=1 / 120)
    world.step(3)
    own = world._stepper.bodies.own.copy()
    world.forces[0, 3] = 1e308
    world.forces[1, 3] = 1e308
    with pytest.raises(poise.Diverged):
        world.step(3)
    world.forces[...] = 0.0
    assert (world._stepper.bodies.own == own).all()
    world.step(3)
    assert np.isfinite(world.q).all()


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turning": "round"}, "turning is 'round'; there are implicit, explicit, momentum"),
        ({"alpha": -1.0}, "alpha is -1.0; it must be from 0 to inf"),
        ({"alpha": 1.0}, 'alpha takes level="acceleration" and stabilization="speed"'),
        ({"level": "position"}, "level is 'position'; there are velocity, acceleration"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        Maximal(**options)  # type: ignore[arg-type]


def test_only_formulations_step_worlds() -> None:
    with pytest.raises(TypeError, match=r"formulation is a str; it must be poise\.Reduced\(\.\.\.\) or poise\.Maximal"):
        poise.Scene().build("maximal")  # type: ignore[arg-type]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    from poise.formulations.formulation_registry import of_kind

    with pytest.raises(ValueError, match="no coordinates are called 'maximum', did you mean \"maximal\""):
        of_kind("maximum")
    assert of_kind("reduced", Maximal(substeps=3)) == Reduced(substeps=3)


# ---- what is led -----------------------------------------------------------------------------------------------------


def carried_along(dt: float, formulation: Maximal | Reduced) -> poise.World:
    """Two rods that hang from a body which goes round."""
    scene = poise.Scene()
    path = OrbitPath((0, 0, 2), 0.5, (0, 0, 1), (1, 0, 0))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name="base", kinematic=path)
    rod = poise.box(0.05, 0.05, 0.5, mass=1.0)
    scene.ball("base", rod, anchor=(0, 0, 0.25), position=(0, 0, -0.25), name="upper")
    scene.hinge("upper", rod, axis="y", anchor=(0, 0, 0.25), position=(0, 0, -0.5), name="lower")
    world = scene.build(formulation, dt=dt)
    world.step(round(0.5 / dt))
    return world


def test_what_hangs_from_a_led_body_moves_as_below_a_tree() -> None:
    apart = []
    for dt in (1 / 240, 1 / 480):
        worlds = [carried_along(dt, formulation) for formulation in (Maximal(), Reduced())]
        apart.append(float(np.abs(worlds[0].q - worlds[1].q).max()))
    assert apart[0] < 1e-4
    assert apart[1] < 0.6 * apart[0]


@pytest.mark.parametrize(
    ("shape", "way", "turn", "parts"),
    [
        ("box", 0.19, 0.0, 1),
        ("box", 0.21, 0.0, 2),
        ("box", 0.45, 0.0, 3),
        ("box", 0.0, 0.45, 1),
        ("box", 0.0, 0.55, 2),
        ("box", 0.0, 1.1, 3),
        ("sphere", 0.21, 0.0, 2),
        ("sphere", 0.19, 2.0, 1),
    ],
)
def test_steps_are_split_at_the_extent_of_a_body_and_at_half_a_radian(
    shape: str, way: float, turn: float, parts: int
) -> None:
    """A cube of 0.2 m; a ball of the same width, which is nowhere else when it turns."""
    scene, dt = poise.Scene(gravity=(0, 0, 0)), 0.01
    solid = poise.box(0.2, 0.2, 0.2, mass=1.0) if shape == "box" else poise.sphere(0.1, mass=1.0)
    scene.add(solid, name="body")
    world = scene.build(Maximal(), dt=dt)
    world.v[0], world.v[5] = way / dt, turn / dt
    world.step()
    assert world.report().parts == parts
    assert world.q[0] == pytest.approx(way, abs=1e-12)


@pytest.mark.parametrize(("turn", "parts"), [(0.095, 1), (0.105, 2), (0.25, 3)])
def test_steps_of_limbs_are_split_at_a_tenth_of_a_radian(turn: float, parts: int) -> None:
    """A cube about a hinge through its centre, on a body that is still."""
    scene, dt = poise.Scene(gravity=(0, 0, 0)), 0.01
    scene.add(poise.box(0.2, 0.2, 0.2, mass=1e6), name="base")
    scene.hinge("base", poise.box(0.2, 0.2, 0.2, mass=1.0), axis="z", position=(1, 0, 0), name="limb")
    world = scene.build(Maximal(), dt=dt)
    world.v[6] = turn / dt
    world.step()
    assert world.report().parts == parts
