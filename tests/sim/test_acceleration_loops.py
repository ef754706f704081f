"""Loops and couplings at acceleration level: motion at the order of the integrator, blows, breaking, taking hold."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import poise
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.acceleration_level.energy_guard import GAIN
from poise.model import Body, Inertia
from poise.model.state import State

G = 9.81
KINDS = ("fixed", "hinge", "slider", "cylindrical", "screw", "universal", "ball", "planar")
ORDERS = (("euler", 1), ("midpoint", 2), ("rk4", 4))


def acceleration(integrator: str = "rk4", **options) -> poise.Reduced:
    return poise.Reduced(level="acceleration", integrator=integrator, **options)


def bar(name: str, along: str = "z", length: float = 1.0, mass: float = 1.0) -> Body:
    """A thin uniform bar from its origin."""
    com = (0.0, 0.0, 0.5 * length) if along == "z" else (0.5 * length, 0.0, 0.0)
    about = mass * length**2 / 12
    moments = (about, about, 1e-6) if along == "z" else (1e-6, about, about)
    return Body(name, inertia=Inertia(mass, com=com, moments=moments))


def four_bar(formulation: poise.Reduced, dt: float, right: float = 0.6, **options) -> poise.World:
    """Two cranks of 1 m and `right`, 1.2 m apart, and a coupler; gravity pulls them over."""
    scene = poise.Scene(gravity=(6, 0, -6))
    long = float(np.hypot(1.2, 1 - right))
    scene.hinge(None, bar("left"), axis="y")
    scene.hinge(None, bar("right", length=right), axis="y", position=(1.2, 0, 0))
    scene.hinge("left", bar("top", "x", long), axis="y", position=(0, 0, 1))
    ends = {"anchor_first": (long, 0, 0), "anchor_second": (0, 0, right)}
    scene.loop("hinge", "top", "right", "close", axis="y", **ends, **options)
    world = scene.build(formulation, dt=dt)
    world.q[world.model.dof_names.index("top")] = np.arctan2(1 - right, 1.2)
    return world


def closure(world: poise.World) -> tuple[float, float]:
    """Largest error of what is to be closed, and of its velocity."""
    assert isinstance(world._stepper, Accelerated)
    seen = world._stepper.looker.look(world.time)
    closed = seen.closures
    return float(np.abs(seen.phi[closed]).max()), float(np.abs(seen.approach()[closed]).max())


# ---- mechanisms ------------------------------------------------------------------------------------------------------


def test_a_four_bar_moves_and_keeps_its_energy_at_the_order_of_rk4() -> None:
    """Errors of place and of energy are C h⁴ (1 + O(h)): a quarter of an order is left for the next term."""
    ends, drifts = [], []
    for steps in (80, 160, 320):
        world = four_bar(acceleration(), 0.8 / steps)
        before = world.report().energy.total
        world.step(steps)
        assert world.report().level == "acceleration"
        ends.append(world.q.copy())
        drifts.append(abs(world.report().energy.total - before))
    first, second = (float(np.abs(one - two).max()) for one, two in pairwise(ends))
    assert np.log2(first / second) > 3.75
    assert 0.5 * np.log2(drifts[0] / drifts[2]) > 3.75
    assert drifts[0] < 1e-4  # of 6 J that go to and fro
    assert max(closure(world)) < 1e-5


def test_a_four_bar_goes_where_the_velocity_level_goes_in_the_limit() -> None:
    """That is of first order, if errors are mended whole: twice the finer of two less the coarser is of second."""
    exact = four_bar(acceleration(), 0.8 / 320)
    exact.step(320)
    ends = []
    for steps in (500, 1000, 2000):
        world = four_bar(poise.Reduced(tolerance=1e-10, slop=0.0, creep=0.0), 0.8 / steps)
        world.step(steps)
        ends.append(world.q.copy())
    near = [float(np.abs(2 * fine - coarse - exact.q).max()) for coarse, fine in pairwise(ends)]
    assert np.log2(near[0] / near[1]) > 1.75
    assert near[1] < 1e-4


@pytest.mark.filterwarnings("ignore:.*holds loops by forces:poise.FormulationWarning")
@pytest.mark.parametrize(("integrator", "order"), ORDERS)
def test_two_pendulums_and_a_coupler_are_one_pendulum(integrator: str, order: int) -> None:
    """A parallelogram: (2 I + m r²) θ̈ = −(2 m r/2 + m r) g sin θ from the top, its coupler never turns."""
    inertia, pull = 2.0 / 3.0 + 1.0, 2.0

    def rates(_: float, y: np.ndarray) -> tuple[float, float]:
        return y[1], pull * (G * np.sin(y[0])) / inertia

    exact = solve_ivp(rates, (0, 1), (0.3, 0.0), method="DOP853", rtol=1e-12, atol=1e-12).y[0, -1]
    errors = []
    for steps in (50, 100):
        scene = poise.Scene()
        for name, x in (("left", 0.0), ("right", 1.0)):
            scene.hinge(None, bar(name), axis="y", position=(x, 0, 0))
        scene.hinge("left", bar("top", "x"), axis="y", position=(0, 0, 1))
        scene.loop("hinge", "top", "right", "close", axis="y", position=(1, 0, 1))
        world = scene.build(acceleration(integrator), dt=1 / steps)
        for d, name in enumerate(world.model.dof_names):
            world.q[d] = -0.3 if name == "top" else 0.3
        world.step(steps)
        errors.append(abs(float(world.q[world.model.dof_names.index("right")]) - exact))
    assert np.log2(errors[0] / errors[1]) > order - 0.25
    assert errors[1] < (np.sqrt(pull * G / inertia) / 25) ** order  # (ω h)ᵖ, ω T = 3.4 of them


def couple(kind: str, tree: bool, dt: float) -> poise.World:
    """Two bodies adrift, joined beside the tree or within it, and pushed."""
    scene = poise.Scene(gravity=(0, 0, 0))
    one = Body("one", inertia=Inertia(2.0, com=(0.05, 0.0, 0.02), moments=(0.05, 0.07, 0.06)))
    two = Body("two", inertia=Inertia(1.5, com=(0.0, -0.03, 0.04), moments=(0.04, 0.03, 0.05)))
    scene.add(one, joint="free")
    options: dict[str, Any] = {"axis": (0.6, 0.0, 0.8), "axis2": (0.0, 1.0, 0.0)}
    if kind == "screw":
        options["pitch"] = 0.05
    at, where = (0.5, 0.0, 1.0), (0.3, 0.1, 0.9)
    if tree:
        joint = poise.Joint(kind, name="joint", anchor=tuple(np.subtract(where, at)), **options)
        scene.add(two, parent="one", joint=joint, position=at)
    else:
        scene.add(two, joint="free", position=at)
        scene.loop(kind, "one", "two", "joint", position=where, **options)
    world = scene.build(acceleration(), dt=dt)
    world.forces[...] = ((0.6, -0.2, 0.4, 3.0, -2.0, 1.0), (-0.5, 0.7, 0.3, -2.0, 4.0, 2.0))
    return world


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_moves_as_the_same_joint_in_the_tree(kind: str) -> None:
    """Both are of fourth order: so is what they differ by."""
    apart = []
    for steps in (20, 40):
        loop, tree = couple(kind, False, 0.6 / steps), couple(kind, True, 0.6 / steps)
        for world in (loop, tree):
            world.step(steps)
            assert world.report().level == "acceleration"
        moved = [np.abs(loop.body(name).position - tree.body(name).position).max() for name in ("one", "two")]
        apart.append(float(max(moved)))
    assert np.log2(apart[0] / apart[1]) > 3.75
    assert apart[1] < 1e-5  # of about a metre; 4 rad/s or less, (ω h)⁴


@pytest.mark.parametrize(("integrator", "order"), ORDERS)
def test_a_coupling_bends_at_the_order_of_the_integrator(integrator: str, order: int) -> None:
    """Wheels with q₁ = p(q₂): (I₂ + I₁ p′²) q̈₂ + I₁ p′ p″ q̇₂² = τ, which has γ = −p″ q̇₂²."""
    one, two, push = 0.4, 0.3, 1.0

    def rates(_: float, y: np.ndarray) -> tuple[float, float]:
        slope, bend = 0.5 + 0.8 * y[0] - 0.6 * y[0] ** 2, 0.8 - 1.2 * y[0]
        return y[1], (push - one * slope * bend * y[1] ** 2) / (two + one * slope**2)

    exact = solve_ivp(rates, (0, 1), (0.0, 1.0), method="DOP853", rtol=1e-12, atol=1e-12).y[0, -1]
    errors = []
    for steps in (160, 320):
        scene = poise.Scene(gravity=(0, 0, 0))
        for name, inertia in (("first", one), ("second", two)):
            scene.hinge(None, Body(name, inertia=Inertia(1.0, moments=(inertia,) * 3)), axis="z")
        scene.couple("first", "second", (0.0, 0.5, 0.4, -0.2))
        world = scene.build(acceleration(integrator), dt=1 / steps)
        world.v[...] = 0.5, 1.0
        world.tau[1] = push
        world.step(steps)
        errors.append(abs(float(world.q[1]) - exact))
        x = float(world.q[1])
        opened = abs(float(world.q[0]) - (0.5 * x + 0.4 * x**2 - 0.2 * x**3))
        assert opened < 20 * (3.0 / steps) ** (order + 1)  # a step adds (v h)ᵖ⁺¹, v = 3 rad/s; it fades
    assert np.log2(errors[0] / errors[1]) > order - 0.25


# ---- limits, friction ------------------------------------------------------------------------------------------------


def cart(**options: Any) -> poise.World:
    """A mass of 2 kg on a rail that leans by 0.5 rad."""
    scene = poise.Scene()
    scene.add(Body("cart", inertia=Inertia(2.0, moments=(0.1, 0.1, 0.1))), joint="free")
    scene.loop("slider", None, "cart", "rail", axis=(np.cos(0.5), 0.0, np.sin(0.5)), **options)
    return scene.build(acceleration(), dt=0.01)


def test_a_limit_of_a_loop_is_met_and_holds() -> None:
    """It slides −g sin α t²/2 down to its limit, stops there, and stays."""
    world = cart(limits=(-0.5, 1.0))
    world.step(20)
    assert world.loop("rail").coordinates[0] == pytest.approx(-0.5 * G * np.sin(0.5) * 0.2**2, rel=1e-9)
    least = 0.0
    for _ in range(80):
        world.step()
        least = min(least, float(world.loop("rail").coordinates[0]))
    assert least > -0.5 - 2e-6
    assert world.loop("rail").coordinates[0] == pytest.approx(-0.5, abs=2e-6)
    assert np.abs(world.v).max() < 1e-6
    assert world.report().level == "acceleration"


@pytest.mark.parametrize(("friction", "slides"), [(9.5, False), (9.3, True)])
def test_friction_of_a_loop_holds_until_it_slides(friction: float, slides: bool) -> None:
    """It slides where friction is less than m g sin α = 9.406 N."""
    world = cart(friction=friction)
    world.step(100)
    way = -0.5 * (2 * G * np.sin(0.5) - friction) / 2.0 if slides else 0.0
    assert world.loop("rail").coordinates[0] == pytest.approx(way, rel=1e-6, abs=1e-9)


# ---- blows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_loops_hold_through_blows(mu: float, monkeypatch) -> None:
    """Of a four-bar that falls on the ground: J v⁺ = 0 after every impact, and nothing opens or gains energy."""
    scene = poise.Scene(gravity=(2, 0, -G))
    scene.add_ground(friction=mu, restitution=0.5)
    lively = poise.Material(friction=mu, restitution=0.5)
    for name, x in (("left", 0.0), ("right", 1.0)):
        crank = poise.box(0.1, 0.1, 1.0, material=lively)
        scene.hinge(None, crank, name=name, axis="y", anchor=(0, 0, -0.5), position=(x, 0, 0.8))
    top = poise.box(1.0, 0.1, 0.1, material=lively)
    scene.hinge("left", top, name="top", axis="y", anchor=(-0.5, 0, 0), position=(0.5, 0, 0.5))
    scene.loop("hinge", "top", "right", "close", axis="y", position=(1, 0, 1.3))
    world = scene.build(acceleration(), dt=0.01)
    blows = []
    resolve = Accelerated._resolve_impacts

    def watched(self: Accelerated, seen: Any, now: float) -> Any:
        after = resolve(self, seen, now)
        if after is not seen:
            blows.append(float(np.abs(after.approach()[after.closures]).max()))
        return after

    monkeypatch.setattr(Accelerated, "_resolve_impacts", watched)
    energy = world.report().energy.total
    for _ in range(250):
        world.step()
        now = world.report().energy.total
        assert now < energy + 1e-4
        energy = now
    assert len(blows) > 2
    assert max(blows) < 1e-9
    assert closure(world)[0] < 1e-7


@pytest.mark.parametrize(("speed", "gap"), [(0.5, 0.0), (8.0, 0.03), (200.0, 0.8)])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_blow_counts_over_the_whole_step(speed: float, gap: float, breaks: bool) -> None:
    """A ball that stays on a block takes m v of impulse, whenever it comes: the weld bears m v / h."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="block")
    most = 0.1 * speed / 0.01 * (0.99 if breaks else 1.01)
    scene.loop("fixed", None, "block", "weld", break_force=most)
    scene.add(poise.sphere(0.05, mass=0.1), name="ball", position=(-0.15 - gap, 0, 0))
    world = scene.build(acceleration(), dt=0.01)
    world.body("ball").place(velocity=(speed, 0, 0))
    told, broke = np.zeros(3), False
    for _ in range(3):
        world.step()
        loops = world.report().loops
        told += sum(loop.force for loop in loops) * 0.01
        broke = broke or any(loop.broke for loop in loops)
    assert broke is breaks
    assert told == pytest.approx((-0.1 * speed, 0, 0), abs=1e-6 * speed)


@pytest.mark.parametrize(("share", "breaks"), [(1.001, False), (0.999, True)])
def test_a_joint_breaks_at_its_force(share: float, breaks: bool) -> None:
    """At rest a weld bears m g, and m g l/2."""
    scene = poise.Scene()
    scene.add(bar("beam", "x", mass=2.0), joint="free", position=(0, 0, 1))
    scene.loop("fixed", None, "beam", "wall", position=(0, 0, 1), break_force=2 * G * share)
    world = scene.build(acceleration(), dt=0.01)
    world.step()
    told = world.report().loops[0]
    assert told.force == pytest.approx((0, 0, 2 * G), rel=1e-9, abs=1e-9)
    assert told.torque == pytest.approx((0, -G, 0), rel=1e-9, abs=1e-9)
    assert (told.broke, world.loop("wall").active) == (breaks, not breaks)
    height = float(world.body("beam").position[2])
    world.step(10)
    assert (float(world.body("beam").position[2]) < height - 0.01) is breaks


# ---- taking hold -----------------------------------------------------------------------------------------------------


def two_balls() -> poise.World:
    scene = poise.Scene()
    for k, mass in enumerate((2.0, 1.0)):
        scene.add(poise.sphere(0.1, mass=mass), name=f"ball{k}", position=(0.5 * k, 0, 2))
    world = scene.build(acceleration(), dt=0.01)
    world.v[0] = 1.5
    return world


def test_taking_hold_is_an_impact_and_letting_go_is_none() -> None:
    world = two_balls()
    world.step(5)
    grip = world.attach("ball0", "ball1")
    world.step()
    assert world.v[[0, 6]] == pytest.approx((1.0, 1.0), abs=1e-9)
    assert world.loop(grip).force == pytest.approx((1.0 / 0.01, 0, 0), abs=1e-6)
    world.step(10)
    away = world.body("ball1").position - world.body("ball0").position
    assert np.linalg.norm(away) == pytest.approx(0.5 - 0.05 * 1.5, rel=1e-9)
    world.release(grip)
    before = world.v.copy()
    world.step()
    assert world.v[[0, 6]] == pytest.approx(before[[0, 6]], abs=1e-12)
    assert world.report().loops == []


def test_velocities_that_are_set_apart_are_brought_together_at_once() -> None:
    """As at velocity level: what comes apart faster than errors do is an impact."""
    ends = []
    for formulation in (acceleration(), poise.Reduced(tolerance=1e-9)):
        world = four_bar(formulation, 1e-4)
        world.step(10)
        world.v[0] += 1.0
        world.step()
        ends.append(world.v.copy())
    assert ends[0] == pytest.approx(ends[1], abs=1e-2)
    assert abs(ends[0][0]) > 0.1


def test_a_loop_that_is_open_closes_slowly() -> None:
    """A gap of 10 cm closes at the speed of all deep errors, 5 cm/s, without a shot."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(Body("one", inertia=Inertia(1.0, moments=(0.1, 0.1, 0.1))), joint="free")
    scene.loop("ball", None, "one", "hook", anchor_first=(0.1, 0, 0), anchor_second=(0, 0, 0))
    world = scene.build(acceleration(), dt=0.01)
    fastest = 0.0
    for _ in range(240):
        world.step()
        fastest = max(fastest, float(np.abs(world.v).max()))
    assert 0.045 < fastest < 0.051
    assert world.body("one").position == pytest.approx((0.1, 0, 0), abs=1e-6)


# ---- states, errors --------------------------------------------------------------------------------------------------


def test_a_state_takes_loops_along_bit_for_bit(tmp_path) -> None:
    world = two_balls()
    world.step(3)
    grip = world.attach("ball0", "ball1", "hinge", axis="y", limits=(-0.4, 0.4), friction=0.01)
    world.step(6)
    saved, twin = world.state, copy.deepcopy(world)
    saved.save(tmp_path / "state.npz", world.model)
    force = world.loop(grip).force
    world.step(9)
    end = world.q.copy()
    world.release(grip)
    world.state = State.load(tmp_path / "state.npz", world.model)
    assert world.loops == [grip]
    assert (world.loop(grip).force == force).all()
    world.step(9)
    twin.step(9)
    assert (world.q == end).all()
    assert (twin.q == end).all()


def test_loops_that_are_held_twice_are_bounded() -> None:
    """Two hinges on one door, five rows each, of which all but one say the same."""
    scene = poise.Scene()
    scene.hinge(None, bar("door", "x", 0.8, 10.0), axis="z")
    for z in (0.5, 1.0):
        scene.loop("hinge", None, "door", f"hinge{z}", axis="z", position=(0, 0, z))
    world = scene.build(acceleration(), dt=1 / 240)
    world.v[0] = 1.0
    world.step(240)
    assert world.report().level == "acceleration"
    assert world.v[0] == pytest.approx(1.0, abs=1e-9)
    assert world.q[0] == pytest.approx(1.0, abs=1e-9)


def test_loops_that_contradict_each_other_stop_as_at_velocity_level() -> None:
    """Beside a row that stops the door they ask for what nothing can move, which has no part in either level."""
    scene = poise.Scene()
    scene.hinge(None, bar("door", "x", 0.8, 10.0), axis="z")
    scene.loop("hinge", None, "door", axis=(np.sin(0.02), 0.0, np.cos(0.02)), position=(0, 0, 1))
    scene.loop("ball", None, "door", anchor_first=(0, 0.003, 0.5), anchor_second=(0, 0, 0.5))
    world = scene.build(acceleration(), dt=1 / 60)
    world.v[0] = 1.0
    with pytest.warns(poise.FormulationWarning, match="10 steps in a row"):
        world.step(20)
    assert abs(world.v[0]) <= 1e-9
    assert abs(world.q[0]) <= 1e-9


def jammed(seed: int) -> poise.Scene:
    """Bodies that start deep inside each other, on random joints, with a loop: some contacts can hardly move."""
    rng, scene, parent, last = np.random.default_rng(seed), poise.Scene(), None, ""
    for k in range(int(rng.integers(3, 6))):
        kind = str(rng.choice(["ball", "universal", "hinge", "slider", "cylindrical"]))
        axis, size = rng.normal(size=3), rng.uniform(0.1, 0.3, 3)
        material = poise.Material(friction=float(rng.uniform(0.2, 1.2)))
        shape = (poise.box if k % 2 else poise.ellipsoid)(*size, mass=10 ** rng.uniform(-0.3, 0.8), material=material)
        joint = poise.Joint(kind, axis=axis / np.linalg.norm(axis), anchor=rng.uniform(-0.1, 0.1, 3))
        place = rng.uniform(-0.3, 0.3, 3) if parent else np.array((0.0, 0.0, 2.0))
        last = f"body{k}"
        scene.add(shape, name=last, parent=parent, joint=joint, position=place)
        parent = last if rng.random() < 0.7 else parent
    scene.loop(str(rng.choice(["hinge", "ball", "universal"])), "body0", last, "loop")
    return scene


@pytest.mark.filterwarnings("ignore::poise.FormulationWarning")
@pytest.mark.parametrize("seed", [3, 11, 68, 72, 106, 300])
def test_jams_of_contacts_and_loops_gain_little_energy(seed: int) -> None:
    """Where a loop lets a contact hardly move, its force grows by orders of magnitude from stage to stage: such parts
    are taken at velocity level. What is gained is the error that the guard leaves to integrators, GAIN − 1 of the
    kinetic energy, and what overlaps of up to 0.1 m give as they come apart 2 m above the zero of potential energy.
    """
    world = jammed(seed).build(acceleration(), dt=1 / 60)
    now = poise.dynamics.energy(world.model, world.q, world.v)
    first, least, most = now.total, now.total, now.kinetic
    for _ in range(30):
        world.step()
        now = poise.dynamics.energy(world.model, world.q, world.v)
        most = max(most, now.kinetic)
        assert now.total - least < (GAIN - 1.0) * most + 0.05 * first
        least = min(least, now.total)
        assert world.report().work < 1.5 * world.formulation.budget
