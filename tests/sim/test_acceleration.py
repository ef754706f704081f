"""Worlds at acceleration level (KOK §7, §8.1): known answers of rolling, sliding, bouncing, resting and jamming."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.constraints.kinds.contact import OVERLOOKED
from poise.dynamics import Diverged, energy
from poise.dynamics.state_queries import bodies, displaced
from poise.formulations.acceleration_level import impacts
from poise.formulations.acceleration_level.event_location import DEEP
from poise.model.model import Model
from poise.motion.path import PathPoint
from poise.sim.step_report import ContactReport

G = 9.81
INTEGRATORS = ("euler", "midpoint", "rk4")


def acceleration(integrator: str = "rk4", **options) -> poise.Reduced:
    return poise.Reduced(level="acceleration", integrator=integrator, **options)


def on_ground(shape, height, mu, angle=0.0, dt=1 / 240, e=0.0, integrator="rk4", **options) -> poise.World:
    """One body above a floor, which is tilted by an angle."""
    scene = poise.Scene(gravity=(G * float(np.sin(angle)), 0.0, -G * float(np.cos(angle))))
    scene.add_ground(friction=mu)
    shape.material = poise.Material(friction=mu, restitution=e)
    scene.add(shape, name="body", position=(0, 0, height))
    return scene.build(acceleration(integrator, **options), dt=dt)


# ---- sliding and rolling ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_sphere_that_slides_begins_to_roll(integrator: str, dt: float) -> None:
    """Slides at v0 − μ g t, and rolls from t = 2 v0 / (7 μ g) on, at 5 v0 / 7."""
    v0, mu = 3.0, 0.3
    world = on_ground(poise.sphere(0.1), 0.1, mu, dt=dt, integrator=integrator)
    world.v[0] = v0
    steps = int(np.ceil(2 * v0 / (7 * mu * G) / dt))
    speeds = []
    for _ in range(steps):
        world.step()
        speeds.append(float(world.v[0]))
    exact = [v0 - mu * G * dt * k for k in range(1, steps)]
    off = float(np.abs(np.divide(speeds[: steps - 1], exact) - 1).max())
    print(f"\nsliding sphere, {integrator}, dt {dt:.4g} s: speed off by {off:.1e} (1e-9), ", end="")
    print(f"when it rolls by {abs(world.v[0] / (5 * v0 / 7) - 1):.1e} (1e-6)")
    assert speeds[: steps - 1] == pytest.approx(exact, rel=1e-9)
    # within the step in which it begins to roll, friction is what ends the sliding at the step's end
    assert world.v[0] == pytest.approx(5 * v0 / 7, rel=1e-6)
    assert world.q[0] == pytest.approx(12 * v0**2 / (49 * mu * G), abs=v0 * dt)
    world.step(round(0.5 / dt))
    assert world.v[0] == pytest.approx(5 * v0 / 7, rel=1e-6)
    assert world.v[4] == pytest.approx(world.v[0] / 0.1, rel=1e-6)
    assert world.report().level == "acceleration"


@pytest.mark.parametrize(("angle", "mu"), [(0.5, 0.2), (0.5, 0.1), (0.3, 0.5), (0.3, 0.08)])
def test_a_sphere_on_an_incline_rolls_if_friction_is_enough(angle: float, mu: float) -> None:
    """Rolls iff μ ≥ 2/7 tan α."""
    world = on_ground(poise.sphere(0.1), 0.1, mu, angle)
    world.step(120)
    rolling = mu >= 2 / 7 * np.tan(angle)
    expected = 5 / 7 * G * np.sin(angle) if rolling else G * (np.sin(angle) - mu * np.cos(angle))
    kind, off = "rolls" if rolling else "slides", abs(world.v[0] / (0.5 * expected) - 1)
    print(f"\nsphere, incline {angle}, μ {mu}: {kind}, speed off by {off:.1e} (1e-6)")
    # the first step begins at rest: the direction of sliding is found with the force, as exact
    assert world.v[0] == pytest.approx(0.5 * expected, rel=1e-6)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize(("angle", "mu"), [(0.5, 0.5), (0.5, 0.6), (0.3, 0.1), (0.3, 0.31)])
def test_a_box_on_an_incline_slides_if_it_is_steep(integrator: str, angle: float, mu: float) -> None:
    """Slides iff tan α > μ."""
    world = on_ground(poise.box(0.4, 0.4, 0.1), 0.05, mu, angle, integrator=integrator)
    world.step(120)
    expected = max(0.0, G * (np.sin(angle) - mu * np.cos(angle)))
    print(f"\nbox, {integrator}, incline {angle}, μ {mu}: {world.v[0]:.6f} m/s, ", end="")
    print(f"off by {abs(world.v[0] - 0.5 * expected):.1e} ({max(5e-7 * expected, 1e-7):.1e})")
    assert world.v[0] == pytest.approx(0.5 * expected, rel=1e-6, abs=1e-7)
    assert abs(world.q[2] - 0.05) < 2e-6


# ---- bouncing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("integrator", "slack"), [("euler", 1.0), ("midpoint", 0.0), ("rk4", 0.0)])
@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_ball_bounces_to_e_squared_of_its_height(integrator: str, slack: float, dt: float) -> None:
    """Flight is exact but for Euler's method, whose parabolas err by v dt / 2; apexes are sampled to g dt² / 8."""
    e, h = 0.7, 1.0
    world = on_ground(poise.sphere(0.1), 0.1 + h, 0.5, dt=dt, e=e, integrator=integrator)
    heights = []
    for _ in range(round(2.0 / dt)):
        world.step()
        heights.append(float(world.q[2]) - 0.1)
    z = np.array(heights)
    apexes = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] >= z[2:])][:3]
    bound = G * dt * dt / 8 + 1e-5 + slack * np.sqrt(2 * G * h) * dt * 3
    exact = [e ** (2 * n) * h for n in (1, 2, 3)]
    print(f"\nbounces, {integrator}, dt {dt:.4g} s: apexes off by {np.abs(apexes - exact).max():.1e} m ({bound:.1e})")
    assert apexes == pytest.approx(exact, abs=float(bound))
    assert z.min() >= -2e-6


@pytest.mark.parametrize("e", [0.5, 0.8])
def test_a_ball_comes_to_rest_in_time(e: float) -> None:
    """After √(2h/g) (1 + e)/(1 − e), but for bounces below the speed that counts, which take 2 v/(g (1 − e))."""
    h, dt, slow = 0.5, 1 / 240, 0.01
    world = on_ground(poise.sphere(0.1), 0.1 + h, 0.5, dt=dt, e=e, bounce_speed=slow)
    rest = float(np.sqrt(2 * h / G) * (1 + e) / (1 - e))
    early = 2 * slow / (G * (1 - e)) / e
    world.step(int((rest - early) / dt) - 1)
    assert abs(world.v[2]) > 1e-3
    world.step(2 + int(early / dt) + 1)
    print(f"\ne {e}: at rest at {rest:.3f} s, {abs(world.v[2]):.1e} m/s ({1e-6 / (4 * dt):.1e})")
    assert abs(world.v[2]) < 1e-6 / (4 * dt)  # a touch is met to a micrometre, which fades in four steps
    assert world.q[2] == pytest.approx(0.1, abs=2e-6)


def test_a_step_has_as_many_parts_as_impacts() -> None:
    """In a step of 0.1 s, a ball bounces several times; each bounce is met where it is."""
    e, dt = 0.9, 0.1
    world = on_ground(poise.sphere(0.1), 0.1 + 0.01, 0.0, dt=dt, e=e)
    world.step()
    report = world.report()
    first = np.sqrt(2 * 0.01 / G)
    bounces, time = 0, first
    while time < dt:
        bounces, time = bounces + 1, time + 2 * first * e ** (bounces + 1)
    assert report.parts == bounces + 1
    assert report.backtracks >= bounces
    flown = dt - (time - 2 * first * e**bounces)
    speed = G * first * e**bounces
    off = abs(world.q[2] - 0.1 - (speed * flown - G * flown**2 / 2))
    print(f"\n{bounces} bounces in a step: {report.parts} parts ({bounces + 1}), height {off:.1e} m off (1e-5)")
    assert off < 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_impacts_give_no_energy(seed: int) -> None:
    """Boxes that spin, with much friction and restitution: energy never rises by more than the integrator's error."""
    rng = np.random.default_rng(seed)
    world = on_ground(poise.box(0.3, 0.2, 0.1), 0.6, 0.9, e=0.9)
    world.q[3:7] = rng.normal(size=4)
    world.q[3:7] /= np.linalg.norm(world.q[3:7])
    world.v[:] = rng.normal(size=6) * (2, 2, 2, 10, 10, 10)
    before = energy(world.model, world.q, world.v).total
    scale, gain = before, -np.inf
    for _ in range(240):
        world.step()
        after = energy(world.model, world.q, world.v).total
        gain, before = max(gain, after - before), after
    print(f"\nspinning box, seed {seed}: a step gains {gain / scale:.1e} of the energy at most (1e-5)")
    assert gain <= 1e-5 * scale


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_restitution_is_lessened_where_it_would_give_energy(side: float, monkeypatch) -> None:
    """A rod at 45° that hits with v_t = A_nt/A_nn v_n: if it stuck and came back with −e v_n, e = 1, it would gain
    (1/(1 − A_nt²/(A_nn A_tt)) − 1) v_n²/(2 A_nn). Of a uniform rod of 1 kg A_nn = A_tt = 2.5, A_nt = 1.5: 0.45 J.
    """

    def gain() -> float:
        world = on_ground(poise.capsule(1e-3, 1.0, mass=1.0), 1.0, 1.0, e=1.0, dt=1e-5)
        turn = side * np.pi / 4
        world.q[:] = (0, 0, 0.5 * np.sqrt(0.5) + 1e-3, np.cos(turn / 2), 0, np.sin(turn / 2), 0)
        world.v[:] = (side * 1.2, 0, -2.0, 0, 0, 0)
        before = energy(world.model, world.q, world.v).kinetic
        world.step()
        assert world.v[2] > -2.0
        return float(energy(world.model, world.q, world.v).kinetic - before)

    gained = gain()
    assert gained <= 1e-3
    monkeypatch.setattr(impacts, "_without_gain", lambda A, before, passive, share_of: share_of(1.0))
    otherwise = gain()
    print(f"\nrod at 45°: gains {gained:.1e} J (1e-3), {otherwise:.4f} J if restitution were not lessened (0.45)")
    assert otherwise == pytest.approx(0.45, abs=0.01)


def test_a_pile_gains_no_energy() -> None:
    """Boxes, balls, capsules and cylinders that fall onto each other; what rises is the error of the integrator."""
    rng, scene = np.random.default_rng(3), poise.Scene()
    scene.add_ground(friction=0.6)
    shapes = [poise.box(0.2, 0.3, 0.1), poise.sphere(0.1), poise.capsule(0.05, 0.3), poise.cylinder(0.1, 0.2)]
    for k, shape in enumerate(shapes):
        shape.material = poise.Material(friction=0.6, restitution=0.5 * (k % 2))
        turn = rng.normal(size=4)
        place = (*rng.uniform(-0.1, 0.1, 2), 0.3 + 0.35 * k)
        scene.add(shape, name=f"part {k}", position=place, quat_wxyz=turn / np.linalg.norm(turn))
    world = scene.build(acceleration(), dt=1 / 240)
    before = start = energy(world.model, world.q, world.v).total
    levels, deepest = set(), 0.0
    for _ in range(110):
        world.step()
        report = world.report()
        levels.add(report.level)
        deepest = max(deepest, *(contact.depth for contact in report.contacts), 0.0)
        assert report.energy.total <= before + 1e-4 * start
        before = report.energy.total
    print(f"\npile: {deepest:.1e} m deep (1e-5)")
    assert levels == {"acceleration"}
    assert deepest < 1e-5


def astray(model: Model, q: np.ndarray, v: np.ndarray, dt: float, contact: ContactReport) -> float:
    """How much closer bodies are at a contact after a step along v, which ends at q, than their speeds at its beginning
    would have taken them: what turns goes round; m.
    """
    tiny, beyond = 1e-4, {}
    start = displaced(model, q, v, -dt)
    poses = [bodies(model, displaced(model, start, v, time)) for time in (-tiny * dt, 0.0, tiny * dt, dt)]
    for name in {contact.body_a, contact.body_b} & {*model.body_names}:
        k = model.body_index(name)
        local = poses[-1].rotation[k].T @ (contact.point - poses[-1].position[k])
        before, first, after, last = (pose.position[k] + pose.rotation[k] @ local for pose in poses)
        beyond[name] = last - first - (after - before) / (2.0 * tiny)
    closer = beyond.get(contact.body_a, np.zeros(3)) - beyond.get(contact.body_b, np.zeros(3))
    return max(0.0, float(contact.normal @ closer))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_humanoid_falls(seed: int) -> None:
    """It gains no energy, overlaps by no more than is left alone, and is down after a second.

    A step that has no answer at this level is one at velocity level from where that is: impulses may overlook as much
    again (`contact.OVERLOOKED`), and it goes straight on.
    """
    rng, scene = np.random.default_rng(seed), poise.Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    world = scene.build(acceleration(), dt=1 / 240)
    world.body("hero/pelvis").place(position=(0, 0, 1.2), angular_velocity=rng.normal(size=3))
    before = start = energy(world.model, world.q, world.v).total
    deepest, allowed, straight, went_straight = 0.0, DEEP, 0, False
    for _ in range(240):
        q, v = world.q.copy(), world.v.copy()
        world.step()
        report = world.report()
        assert report.energy.total <= before + 1e-5 * start  # the integrator's error, as with single boxes
        for contact in report.contacts:  # as they were at the beginning of the step
            if went_straight:
                allowed = max(allowed, DEEP + OVERLOOKED + astray(world.model, q, v, world.dt, contact))
            deepest = max(deepest, contact.depth)
            assert deepest < allowed
        went_straight = report.level == "velocity"
        straight, before = straight + went_straight, report.energy.total
    print(f"\nhumanoid, seed {seed}: {deepest:.1e} m deep ({allowed:.1e}), {straight} steps at velocity level")
    # where the work of a step is used up, or forces would add energy: 0 to 34 of 240 with these seeds
    assert straight < 48
    assert before < 0.5 * start


# ---- resting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_box_that_rests_neither_sinks_nor_drifts(integrator: str) -> None:
    """Forces are solved to 1e-8 of the weight; the speed that this leaves, g h 1e-8, is ended by the next step."""
    world = on_ground(poise.box(0.3, 0.2, 0.1, mass=3.0), 0.05, 0.5, integrator=integrator, dt=1 / 60)
    start = world.q.copy()
    world.step(2 * 60)
    drift = float(np.abs(world.q - start).max())
    print(f"\nbox at rest for 2 s, {integrator}: moves by {drift:.1e} ({1e-8 * G * world.dt * 2.0:.1e})")
    assert world.q == pytest.approx(start, abs=1e-8 * G * world.dt * 2.0)
    report = world.report()
    assert sum(contact.normal_force for contact in report.contacts) == pytest.approx(3.0 * G, rel=1e-6)
    assert report.parts == 1
    assert report.backtracks == 0


# ---- where there is no answer ----------------------------------------------------------------------------------------


def painleve_rod(share: float, mu: float = 2.0) -> poise.World:
    """A thin rod that slides on one end, at tan θ = 2; it turns at a share of √(g / (l sin θ)), its end stays down."""
    half, radius, theta = 0.5, 1e-4, float(np.arctan(2.0))
    world = on_ground(poise.capsule(radius, 2 * half, mass=1.0), 1.0, mu)
    turn = share * np.sqrt(G / (half * np.sin(theta)))
    tilt = 0.5 * np.pi - theta  # of the rod's z axis, about y
    world.q[:] = (half * np.cos(theta), 0, half * np.sin(theta) + radius, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0)
    world.v[:] = (-3.0 - half * np.sin(theta) * turn, 0, half * np.cos(theta) * turn, 0, -turn, 0)
    return world


@pytest.mark.filterwarnings("ignore:10 steps in a row:poise.FormulationWarning")
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_rod_that_jams_is_resolved_at_velocity_level(share: float) -> None:
    """Painlevé: with μ > 4/3 and tan θ = 2 no force is right where θ̇² < g / (l sin θ) (A < 0 and b < 0)."""
    world = painleve_rod(share)
    before = energy(world.model, world.q, world.v).total
    world.step()
    report = world.report()
    impact = sum(contact.normal_force for contact in report.contacts)
    print(f"\nPainlevé, share {share}: level {report.level}, normal force {impact / G:.1f} weights (> 1), ", end="")
    print(f"gains {report.energy.total - before:.1e} J (0)")
    assert report.level == "velocity"
    assert report.energy.total <= before + 1e-9 * abs(before)
    assert impact > 1.0 * G  # an impact without a collision
    assert abs(world.v[1]) < 1e-9
    world.step(20)
    assert np.isfinite(world.q).all()


@pytest.mark.parametrize(("share", "mu"), [(1.1, 2.0), (2.0, 2.0), (0.5, 1.0), (0.9, 1.2)])
def test_a_rod_that_does_not_jam_stays_at_acceleration_level(share: float, mu: float) -> None:
    """Where it turns faster its end lifts off; where μ < 4/3 there is one answer at any angle.

    N = m (g − l θ̇² sin θ) / (1 + 3 cos θ (cos θ − μ sin θ)), l half the length of a rod without thickness;
    the force told is that of the step's end.
    """
    world = painleve_rod(share, mu)
    world.dt = 1e-5
    world.step()
    report = world.report()
    assert report.level == "acceleration"
    force = sum(contact.normal_force for contact in report.contacts)
    expected = 0.0 if share > 1.0 else G * (1 - share**2) / (1.6 - 1.2 * mu)
    print(f"\nrod that slides, share {share}, μ {mu}: normal force {force:.4f} N of {expected:.4f} (1e-3 of it)")
    assert force == pytest.approx(expected, rel=1e-3)


# ---- the world around ------------------------------------------------------------------------------------------------


def heap(n: int = 4, dt: float = 1 / 240, integrator: str = "midpoint", **options) -> poise.World:
    """Boxes and balls that fall onto each other."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        shape = poise.box(0.2, 0.15, 0.1) if k % 2 else poise.sphere(0.1)
        scene.add(shape, name=f"part {k}", position=(0.03 * k, 0.01 * k, 0.12 + 0.25 * k))
    return scene.build(acceleration(integrator, **options), dt=dt)


def test_a_world_that_is_put_back_goes_on_bit_for_bit(tmp_path) -> None:
    world, other = heap(), heap()
    world.step(60)
    saved = world.state
    saved.save(tmp_path / "state.npz", world.model)
    assert len(saved.slots["held/keys"]) > 0
    world.step(25)
    first = world.state
    world.step(5)
    world.state = saved
    world.step(25)
    assert world.state.same_bits(first)
    other.state = poise.State.load(tmp_path / "state.npz", other.model)
    twin = copy.deepcopy(other)
    other.step(25)
    twin.step(25)
    assert other.state.same_bits(first)
    assert twin.state.same_bits(first)


def test_a_bounce_within_a_step_is_heard() -> None:
    """The ball touches and leaves between two steps: contact and end of contact are told all the same."""
    world = on_ground(poise.sphere(0.1), 0.1 + 0.01, 0.0, dt=0.06, e=0.9)
    assert world.events == []
    world.step()
    assert [event.kind for event in world.events] == ["contact_begin"]
    assert world.q[2] > 0.1005
    heard = []
    for _ in range(40):
        world.step()
        heard += world.events
    assert heard[0].kind == "contact_end"


def test_substeps_share_a_step() -> None:
    fine, coarse = heap(dt=1 / 240), heap(dt=1 / 60, substeps=4)
    fine.step(40)
    coarse.step(10)
    assert coarse.q == pytest.approx(fine.q, abs=1e-9)


def test_what_diverges_is_told_and_put_back() -> None:
    world = heap()
    world.step(20)
    before = world.q.copy()
    world.tau[0] = np.nan
    with pytest.raises(Diverged, match="part 0"):
        world.step()
    assert np.array_equal(world.q, before)


def test_an_empty_world_only_falls() -> None:
    world = poise.Scene().build(acceleration(), dt=0.1)
    world.step(3)
    assert world.time == pytest.approx(0.3)
    assert world.report().contacts == []


def test_what_moves_along_a_path_carries_what_lies_on_it() -> None:
    """A lift that rises at 1 m/s²: the box on it feels its weight, and the lift's push besides."""

    def rising(time: float) -> PathPoint:
        up, still = np.array((0.0, 0.0, 1.0)), np.zeros(3)
        return PathPoint(up * time**2 / 2, np.array((1.0, 0, 0, 0)), up * time, still, up, still)

    scene = poise.Scene()
    scene.add(poise.box(1.0, 1.0, 0.1), name="lift", kinematic=rising)
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box", position=(0, 0, 0.15))
    world = scene.build(acceleration(), dt=0.01)
    world.step(100)
    assert world.body("box").position[2] == pytest.approx(0.15 + 0.5, abs=1e-5)
    force = sum(contact.normal_force for contact in world.report().contacts)
    print(f"\nlift: force {force:.4f} N of {2.0 * (G + 1.0):.4f} (1e-3 of it)")
    assert force == pytest.approx(2.0 * (G + 1.0), rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "position"}, "level is 'position'; there are velocity, acceleration"),
        (
            {"level": "acceleration", "integrator": "leapfrog"},
            "integrator is 'leapfrog'; there are euler, midpoint, rk4",
        ),
        ({"integrator": "rk4"}, "integrator is 'rk4'; the velocity level has euler only"),
    ],
)
def test_what_cannot_be_chosen(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        poise.Reduced(**options)


def test_soft_contacts_are_refused() -> None:
    scene = poise.Scene()
    scene.add_ground()
    ball = poise.sphere(0.1)
    ball.material = poise.Material(compliance=1e-4)
    scene.add(ball, name="ball")
    with pytest.raises(ValueError, match='"ball" has a compliant surface: at acceleration level contacts are rigid'):
        scene.build(acceleration())


def test_the_stages_of_a_step_are_timed() -> None:
    """A box that lies on the ground takes free motion, contacts and forces."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.1))
    world = scene.build(poise.Reduced(level="acceleration"), dt=1e-3)
    world.timing = True
    world.step(3)
    told = world.report().timing
    assert min(told[stage] for stage in ("free motion", "collide", "solve", "rest")) > 0.0
    parts = sum(told[stage] for stage in ("act", "free motion", "collide", "solve", "rest"))
    assert parts == pytest.approx(told["whole"])
    world.timing = False
    assert "_forces" not in vars(world._stepper)
    world.step()
