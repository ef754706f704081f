"""Springs of several pieces as rows: the end of the step; dead zones on joints, markers and roots; least squares."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest

import poise
from poise.constraints.rows import Rows
from poise.control import AngularMotor, LinearMotor, PoseMotor, Spring, TravelMotor, TurnMotor
from poise.control.springs import soft_row
from poise.dynamics import bodies, forward_dynamics, jacobian, mass_matrix
from poise.model.scene import Body, Inertia
from poise.motion.rotations import quat_exp, quat_log

FINE = poise.Reduced(tolerance=1e-12)
SPRINGS = {
    "plain": Spring(300.0, 4.0),
    "undamped": Spring(300.0),
    "damper": Spring(0.0, 20.0),
    "zone": Spring(300.0, zone=0.1),
    "zone, damped": Spring(300.0, 4.0, zone=0.1),
    "progressive": Spring(100.0, 2.0, harder=[(0.05, 1000.0), (0.2, 1e5)]),
    "zone, progressive": Spring(100.0, zone=0.02, harder=[(0.05, 1000.0), (0.2, 1e5)]),
    "softer": Spring(1000.0, 1.0, zone=0.02, harder=[(0.05, 10.0)]),
    "stiff": Spring(1e9, 1e3, zone=0.1),
    "blunt": Spring(500.0, harder=[(0.1, 0.0)]),
}


def ball(gravity: Any = (0, 0, 0), mass: float = 2.0, dt: float = 0.01) -> poise.World:
    scene = poise.Scene(gravity=gravity)
    scene.add(Body("ball", inertia=Inertia(mass, moments=(0.2, 0.2, 0.2))), joint="free")
    return scene.build(FINE, dt=dt)


# ---- the law ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [inf, 7.0])
@pytest.mark.parametrize("kind", SPRINGS)
def test_the_force_is_that_of_the_end_of_the_step(kind: str, strength: float) -> None:
    """m (v⁺ − v) = h f with f = −F(φ⁺) − c w, cut off at the strength: the same as by bisection, step by step."""
    spring, world, h, m = SPRINGS[kind], ball(), 0.01, 2.0
    world.add_controller(LinearMotor(None, "ball", position=(0.3, 0, 0), spring=spring, strength=strength))
    for _ in range(60):
        phi, v = world.q[0] - 0.3, world.v[0]

        def force(speed: float, phi: float = phi) -> float:
            return float(np.clip(-spring.pull(phi + h * speed) - spring.damping * speed, -strength, strength))

        low, high = -1e3, 1e3
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if v + h * force(middle) / m > middle else (low, middle)
        world.step()
        # rows are solved to 1e-12 of the scale of their speeds, and a stiff spring makes forces of that
        assert world.v[0] == pytest.approx(low, abs=1e-9)


@pytest.mark.parametrize("kind", SPRINGS)
def test_laws_fall_and_say_what_the_spring_says(kind: str) -> None:
    """Points on the graph: λ = −F(φ0 + h w) − c w."""
    spring, h = SPRINGS[kind], 0.02
    for error in (-0.4, -0.06, 0.0, 0.03, 0.5):
        for strength in (inf, 3.0, 200.0):
            law = spring.law(error, h, strength)
            for force, w in law.vertices:
                wanted = np.clip(-spring.pull(error + h * w) - spring.damping * w, -strength, strength)
                assert force == pytest.approx(wanted, rel=1e-9, abs=1e-9 * (1.0 + abs(spring.pull(0.5))))
            for a, r in ((0.5, -3.0), (0.5, 2.0), (10.0, 0.1)):
                found = law.solve(a, r)
                w = a * found + r
                own = np.clip(-spring.pull(error + h * w) - spring.damping * w, -strength, strength)
                # where the graph is steep or flat, one of both is ill-conditioned: the other is then exact
                slope = 1.0 + h * max(k for _, k in spring.pieces) + spring.damping
                assert abs(found - own) <= 1e-9 * (1.0 + abs(found)) * slope


def test_pieces_that_are_alike_are_one_spring() -> None:
    one, two = ball(), ball()
    one.add_controller(LinearMotor(None, "ball", position=(0.3, 0.1, 0), spring=Spring(400.0, 3.0)))
    same = Spring(400.0, 3.0, harder=[(0.1, 400.0)])
    two.add_controller(LinearMotor(None, "ball", position=(0.3, 0.1, 0), spring=same))
    for _ in range(100):
        one.step()
        two.step()
        assert two.q == pytest.approx(one.q, abs=1e-9)


def stored(spring: Spring, error: float) -> float:
    """∫ F, by trapezoids, which are exact between corners."""
    places = sorted({error, *(begin for begin, _ in spring.pieces if begin < error)})
    return sum(0.5 * (spring.pull(a) + spring.pull(b)) * (b - a) for a, b in pairwise(places))


@pytest.mark.parametrize("kind", SPRINGS)
@pytest.mark.parametrize("dt", [1e-3, 0.05])
def test_energy_never_grows(kind: str, dt: float) -> None:
    """F is the gradient of a convex potential, and met at the end of a step: ½ m v² + ∫ F falls, at any stiffness."""
    spring, world = SPRINGS[kind], ball(dt=dt)
    world.add_controller(LinearMotor(None, "ball", position=(0, 0, 0), spring=spring))
    world.step()
    world.q[0], world.v[0] = 0.25, 0.5
    last = inf
    for _ in range(200):
        world.step()
        energy = 0.5 * 2.0 * world.v[0] ** 2 + stored(spring, abs(world.q[0]))
        assert energy <= last * (1.0 + 1e-9) + 1e-15
        last = energy


# ---- where they are used ---------------------------------------------------------------------------------------------


def test_nothing_is_done_within_a_zone() -> None:
    """A marker and a root that drift in their zones move as if nothing were there, to the bit."""
    for motor in (
        LinearMotor(None, "ball", position=(0, 0, 0), point=(0.1, 0, 0), spring=Spring(1e4, zone=0.2)),
        PoseMotor(None, "ball", position=(0, 0, 0), quat_wxyz=(1, 0, 0, 0), spring=Spring(1e4, zone=0.2)),
    ):
        held, free = ball(), ball()
        held.add_controller(motor)
        for world in (held, free):
            world.v[:] = (0.1, -0.1, 0.05, 0.1, 0.05, -0.1)
            world.step(100)
        assert held.q == pytest.approx(free.q, abs=1e-12)
        held.step(400)
        assert np.abs(held.q[:3]).max() < 0.2 + 0.05


@pytest.mark.parametrize(("mass", "sag"), [(1.0, 0.02 + 9.81 / 1000.0), (5.0, 0.02 + 0.03 + (49.05 - 30.0) / 1e4)])
def test_a_progressive_spring_sags_until_it_carries_the_weight(mass: float, sag: float) -> None:
    """Zone of 20 mm, 1000 N/m for 30 mm more, then 10⁴: F(sag) = m g, on a marker, a root and a slider."""
    spring = Spring(1000.0, 60.0, zone=0.02, harder=[(0.05, 1e4)])
    for motor in (
        LinearMotor(None, "ball", position=(0, 0, 0), spring=spring),
        PoseMotor(None, "ball", position=(0, 0, 0), quat_wxyz=(1, 0, 0, 0), spring=spring),
        TravelMotor(None, "ball", "z", position=0.0, spring=spring),
    ):
        world = ball((0, 0, -9.81), mass, dt=0.03)
        world.add_controller(motor)
        world.step(600)
        assert world.q[2] == pytest.approx(-sag, abs=1e-6)


def test_a_joint_has_a_dead_zone() -> None:
    """A pendulum that is to hang at 0.8 rad, give or take 0.3: m g l sin θ = k (0.5 − θ) below the zone."""
    scene = poise.Scene()
    arm = scene.hinge(None, poise.box(0.05, 0.05, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    world = scene.build(FINE, dt=0.02)
    world.add_controller(TurnMotor(None, arm.name, "y", position=0.8, spring=Spring(40.0, 4.0, zone=0.3)))
    world.step(600)
    theta = float(world.q[0])
    assert 0.0 < theta < 0.5
    assert 2.0 * 9.81 * 0.5 * np.sin(theta) == pytest.approx(40.0 * (0.5 - theta), rel=1e-5)


def test_turns_of_a_root_have_a_zone_about_each_axis() -> None:
    world = ball()
    motor = AngularMotor(None, "ball", position=(1, 0, 0, 0), spring=Spring(50.0, 5.0, zone=0.1))
    world.add_controller(motor)
    world.step()
    world.q[3:] = quat_exp((0.05, -0.4, 0.0))
    world.step(1000)
    assert np.abs(world.v).max() < 1e-6
    left = quat_log(world.q[3:])
    assert -0.1 < left[1] < -0.08  # at the edge, but for what its speed has carried it on
    assert abs(left[0]) < 0.1


# ---- more rows than degrees of freedom -------------------------------------------------------------------------------


def arm(links: int = 3, gravity: Any = (0, 0, -9.81)) -> poise.Scene:
    """A chain in the plane of x and z, along x at rest."""
    scene = poise.Scene(gravity=gravity)
    above = None
    for k in range(links):
        body = Body(f"link{k}", parent=above, position=(0.4 if k else 0.0, 0, 0))
        body.joints = [poise.Joint("hinge", name=f"joint{k}", axis=(0, 1, 0))]
        shape = poise.box(0.4, 0.05, 0.05, mass=1.0)
        shape.position = (0.2, 0.0, 0.0)
        body.shapes = [shape]
        scene.bodies.append(body)
        above = body.name
    return scene


def test_more_soft_markers_than_degrees_of_freedom_are_regularized_least_squares() -> None:
    """LIU: constraints with CFM may be more than the degrees of freedom. Four markers of an arm with three joints:

    v⁺ is where ½ (v − v_free)ᵀ M (v − v_free) + Σ (J v − v_ref)²/(2 cfm) is least, twelve rows on three coordinates.
    """
    scene = arm()
    world = scene.build(FINE, dt=0.01)
    world.q[:] = (0.3, 0.5, -0.4)
    world.v[:] = (0.2, -0.6, 1.0)
    marks = [("link0", (0.4, 0, 0)), ("link1", (0.2, 0, 0.05)), ("link2", (0.4, 0, 0)), ("link2", (0.1, 0, -0.1))]
    wanted = [(0.3, 0.0, -0.2), (0.6, 0.1, -0.1), (0.9, 0.0, 0.4), (0.5, -0.1, 0.3)]
    springs = [Spring(500.0, 20.0), Spring(3000.0, 5.0), Spring(80.0, 0.0), Spring(1e4, 100.0)]
    model, q, v, h = world.model, world.q.copy(), world.v.copy(), 0.01
    G, g = [], []
    for (body, point), goal, spring in zip(marks, wanted, springs, strict=True):
        motor = LinearMotor(None, body, position=goal, point=point, spring=spring, absolute=True)
        world.add_controller(motor)
        place = bodies(model, q)
        k = model.body_index(body)
        now = place.position[k] + place.rotation[k] @ np.array(point)
        J = jacobian(model, q, body, point).J[3:]
        soft = [soft_row(spring, float(error), 0.0, h) for error in now - goal]
        weight = 1.0 / np.sqrt([one["cfm"] for one in soft])
        G.append(weight[:, None] * J)
        g.append(weight * np.array([one["target"] for one in soft]))
    M = mass_matrix(model, q)
    L = np.linalg.cholesky(M).T
    free = v + h * forward_dynamics(model, q, v)
    best = np.linalg.lstsq(np.concatenate((L, *G)), np.concatenate((L @ free, *g)), rcond=None)[0]
    world.step()
    assert world._stepper.n_rows == 12
    assert world.v == pytest.approx(best, abs=1e-8)


def test_softer_and_softer_rows_leave_the_motion_alone_and_harder_ones_end_in_least_squares() -> None:
    """Between nothing (cfm → ∞) and the least squares of all residuals alike (cfm → 0)."""
    residuals = []
    for stiffness in (1e-6, 1e2, 1e4, 1e9):
        world = arm(gravity=(0, 0, 0)).build(FINE, dt=0.01)
        world.q[:] = (0.3, 0.5, -0.4)
        goals = [("link1", (0.7, 0, 0.1)), ("link2", (0.2, 0, 0.5)), ("link0", (0.1, 0, -0.5))]
        for body, goal in goals:
            spring = Spring(stiffness, 0.0)
            motor = LinearMotor(None, body, position=goal, point=(0.4, 0, 0), spring=spring, absolute=True)
            world.add_controller(motor)
        q, model, J, b = world.q.copy(), world.model, [], []
        for body, goal in goals:
            k, place = model.body_index(body), bodies(model, q)
            J.append(jacobian(model, q, body, (0.4, 0, 0)).J[3:])
            b.append((goal - place.position[k] - place.rotation[k] @ (0.4, 0, 0)) / 0.01)
        world.step()
        residuals.append(float(np.linalg.norm(np.concatenate(J) @ world.v - np.concatenate(b))))
    nothing = float(np.linalg.norm(np.concatenate(b)))
    least = np.linalg.lstsq(np.concatenate(J), np.concatenate(b), rcond=None)[0]
    assert residuals[0] == pytest.approx(nothing, rel=1e-6)
    assert residuals[-1] == pytest.approx(
        float(np.linalg.norm(np.concatenate(J) @ least - np.concatenate(b))), rel=1e-4
    )
    assert all(np.diff(residuals) < 0.0)


# ---- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Spring(-1.0), "stiffness is -1.0"),
        (lambda: Spring(np.inf), "stiffness is inf"),
        (lambda: Spring(1.0, np.nan), "damping is nan"),
        (lambda: Spring(1.0, zone=-0.1), "zone is -0.1"),
        (lambda: Spring(0.0), "a spring must have one of them"),
        (lambda: Spring(1.0, harder=[(0.1,)]), r"harder is \[\(0.1,\)\]; it must be pairs"),
        (lambda: Spring(1.0, harder=[(0.2, 3.0), (0.1, 5.0)]), "harder begins at 0.1; that must be beyond 0.2"),
        (lambda: Spring(1.0, zone=0.3, harder=[(0.2, 3.0)]), "harder begins at 0.2; that must be beyond 0.3"),
        (lambda: Spring(1.0, harder=[(k / 10, 5.0) for k in range(1, 6)]), "4 are the most"),
    ],
)
def test_what_is_no_spring(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_rows_have_room_for_the_longest_law() -> None:
    spring = Spring(1.0, 1.0, zone=0.1, harder=[(0.2, 2.0), (0.3, 3.0)])
    model = ball().model
    Rows(model).add(id=1, b="ball", Jb=(0, 0, 0, 1, 0, 0), law=spring.law(0.15, 0.01, 0.25))
