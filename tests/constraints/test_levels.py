"""Rows as problems: what each sort of row wants at both levels, and the motions that follow, against closed forms."""

from __future__ import annotations

from math import cos, inf, radians, sin, tan
from typing import Any

import numpy as np
import pytest

from poise import dynamics
from poise.constraints.response.row_system import answer, see
from poise.constraints.row_parts import point_parts
from poise.constraints.row_parts.part_bodies import body_at
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import (
    acceleration_problem,
    keep_multipliers,
    velocity_problem,
    warm_multipliers,
)
from poise.constraints.softness import spring
from poise.kernel.memory import F64X8
from poise.kernel.vec import Vec3
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.solve.dantzig import Dantzig
from poise.solve.direct import Direct
from poise.solve.laws import UPRIGHT, Law, dead_zone, stiffening
from poise.solve.pgs import PGS
from poise.solve.problem import Options, Problem

G, MASS, DT = 9.81, 2.0, 0.01
X, Y, Z = np.eye(3)
EXACT = Options(tolerance=1e-13, iterations=5000)


def block_model() -> Model:
    inertia = Inertia(MASS, moments=(1.0, 1.0, 1.0))
    return Scene(gravity=(0, 0, -G), bodies=[Body("block", joints=[Joint("free")], inertia=inertia)]).compile()


MODEL = block_model()


def along(*axes: Any) -> np.ndarray:
    """Rows on the velocity of the centre of mass, (6,) or (n, 6)."""
    J = np.array([[0.0, 0.0, 0.0, *axis] for axis in axes])
    return J[0] if len(axes) == 1 else J


def at_rest(**velocity: float) -> np.ndarray:
    v = np.zeros(6)
    v[:3] = [velocity.get(name, 0.0) for name in "xyz"]
    return v


def velocities(rows: Rows, v: np.ndarray, dt: float = DT) -> Problem:
    return velocity_problem(rows, see(rows, MODEL.q_rest, v, dt=dt), dt)


def forces(rows: Rows, v: np.ndarray) -> Problem:
    return acceleration_problem(rows, see(rows, MODEL.q_rest, v))


# ---- what rows want --------------------------------------------------------------------------------------------------

WANTED: list[tuple[str, dict[str, float], float]] = [
    ("equality at its place", {}, 0.0),
    ("equality on one side", {"phi": 0.02, "erp": 0.25}, -0.25 * 0.02 / DT),
    ("equality on the other", {"phi": -0.02, "erp": 0.25}, 0.25 * 0.02 / DT),
    ("equality with a target", {"phi": 0.02, "erp": 0.5, "target": 3.0}, 3.0 - 0.5 * 0.02 / DT),
    ("by default the whole error", {"phi": 0.02}, -0.02 / DT),
    ("apart: may close its gap, unscaled", {"lo": 0.0, "phi": 0.02, "erp": 0.25}, -0.02 / DT),
    ("apart: bounces later", {"lo": 0.0, "phi": 0.02, "target": 3.0}, -0.02 / DT),
    ("penetrating", {"lo": 0.0, "phi": -0.02, "erp": 0.25}, 0.25 * 0.02 / DT),
    ("penetrating, and bounces", {"lo": 0.0, "phi": -0.02, "erp": 0.25, "target": 3.0}, 3.0 + 0.25 * 0.02 / DT),
    ("touching, and bounces", {"lo": 0.0, "target": 3.0}, 3.0),
    ("a push of at least something", {"lo": 1.0, "hi": 2.0, "phi": 0.02, "erp": 0.25}, -0.02 / DT),
    ("motor", {"lo": -5.0, "hi": 5.0, "target": 3.0}, 3.0),
    ("motor towards a place", {"lo": -5.0, "hi": 5.0, "phi": 0.02, "erp": 0.25}, -0.25 * 0.02 / DT),
    ("only pulls", {"hi": 0.0, "phi": 0.02, "erp": 0.25}, -0.25 * 0.02 / DT),
]


@pytest.mark.parametrize(("what", "numbers", "v_ref"), WANTED, ids=[what for what, _, _ in WANTED])
def test_wanted_velocity_and_bounds_as_impulses(what: str, numbers: dict[str, float], v_ref: float) -> None:
    rows = Rows(MODEL)
    rows.add(id=0, b="block", Jb=along(X), cfm=0.125, **numbers)
    problem = velocities(rows, at_rest(x=0.7))
    assert problem.b[0] == pytest.approx(0.7 - v_ref, rel=1e-13), what
    assert problem.A[0, 0] == pytest.approx(1 / MASS, rel=1e-14)
    assert problem.cfm[0] == 0.125
    assert problem.lo[0] == numbers.get("lo", -inf) * DT
    assert problem.hi[0] == numbers.get("hi", inf) * DT


def test_wanted_acceleration_and_bounds_as_forces() -> None:
    """VON eq. 11: w = J a + γ − a_ref + α φ + β φ̇. Neither the target nor erp count, and nothing is speculative."""
    rows = Rows(MODEL)
    numbers = {"phi": 0.02, "gamma": 0.3, "a_ref": 5.0, "alpha": 7.0, "beta": 11.0, "target": 100.0, "erp": 0.1}
    rows.add(id=0, b="block", Jb=along(Z), lo=0.0, hi=50.0, cfm=0.125, **numbers)
    problem = forces(rows, at_rest(z=0.7))
    assert problem.b[0] == pytest.approx(-G + 0.3 - 5.0 + 7.0 * 0.02 + 11.0 * 0.7, rel=1e-13)
    assert (problem.lo[0], problem.hi[0], problem.cfm[0]) == (0.0, 50.0, 0.125)


def test_blocks_and_laws_as_solvers_want_them() -> None:
    """Law, contact and ball in one list: who is what, in impulses or forces; bounds are the solvers' own there."""
    law = Law(((-4.0, 1.0), (0.0, 0.5), (6.0, -2.0)), left=UPRIGHT, right=-0.5)
    rows = Rows(MODEL)
    rows.add_ball(id=3, Ja=-along(X, Y, Z), b=0, Jb=along(X, Y, Z), radius=8.0, target=(1.0, 2.0, 3.0))
    contact = {"Ja": -along(Z, X, Y), "b": 0, "Jb": along(Z, X, Y), "mu": 0.75}
    rows.add_contact(id=2, phi=-0.01, erp=0.5, target=(0.0, 0.0, 4.0), **contact)
    rows.add_contact(id=4, phi=0.01, erp=0.5, **contact)
    rows.add(id=1, b=0, Jb=along(Y), law=law)
    rows.add(id=0, b=0, Jb=along(X), lo=-3.0)
    others = rows.listing().slots[1:]
    rows.now.lo[others], rows.now.hi[others] = -1.0, 1.0  # as a kernel might leave them: they do not count
    moving = at_rest(x=0.1, y=0.2, z=0.3)
    for problem, scale in ((velocities(rows, moving), DT), (forces(rows, moving), 1.0)):
        assert problem.lo.tolist() == [-3.0 * scale, *[-inf] * 10]
        assert problem.hi.tolist() == [inf] * 11
        assert [(f.normal, f.tangents, f.mu, f.cone) for f in problem.frictions] == [
            (2, (3, 4), 0.75, True),
            (5, (6, 7), 0.75, True),
        ]
        assert [(ball.rows, ball.radius) for ball in problem.balls] == [((8, 9, 10), 8.0 * scale)]
        assert list(problem.laws) == [1]
        found = problem.laws[1]
        np.testing.assert_allclose(found.vertices, [(lam * scale, w) for lam, w in law.vertices], rtol=1e-15)
        assert (found.left, found.right) == (UPRIGHT, -0.5 / scale)
    z = 0.3 - G * DT
    right = [0.1, 0.2, z - 0.5 * 0.01 / DT, 0.1, 0.2 - 4.0, z + 0.01 / DT, 0.1, 0.2, 0.1 - 1.0, 0.2 - 2.0, z - 3.0]
    np.testing.assert_allclose(velocities(rows, moving).b, right, rtol=1e-13)
    pyramid = velocity_problem(rows, see(rows, MODEL.q_rest, moving, dt=DT), DT, cone=False)
    assert not any(f.cone for f in pyramid.frictions)
    assert not any(f.cone for f in acceleration_problem(rows, see(rows, MODEL.q_rest), cone=False).frictions)


def test_laws_that_stand_beside_each_other_are_not_mixed_up() -> None:
    rows = Rows(MODEL)
    laws = [dead_zone(-1.0, 2.0), stiffening([1.0, 3.0], [0.5, 0.25, 0.0]), dead_zone(-0.5, 0.5, -7.0, 9.0)]
    for k, law in enumerate(laws):
        rows.add(id=k, b=0, Jb=along(X), law=law)
    found = forces(rows, at_rest()).laws
    assert [found[k] for k in range(3)] == laws


# ---- closed forms ----------------------------------------------------------------------------------------------------


def test_a_ball_that_rests() -> None:
    rows = Rows(MODEL)
    rows.add(id=0, b=0, Jb=along(Z), lo=0.0)
    impulse = PGS().solve(velocities(rows, at_rest()), EXACT).lam
    force = Dantzig().solve(forces(rows, at_rest()), EXACT).lam
    assert impulse[0] == pytest.approx(MASS * G * DT, rel=1e-12)
    assert force[0] == pytest.approx(MASS * G, rel=1e-12)


def test_a_ball_that_falls_stops_at_the_ground_and_no_sooner() -> None:
    """Speculative: after the step the gap is closed exactly; a slower fall is not touched."""
    rows = Rows(MODEL)
    rows.add(id=0, b=0, Jb=along(Z), lo=0.0, phi=0.02)
    fast = PGS().solve(velocities(rows, at_rest(z=-5.0)), EXACT)
    after = -5.0 - G * DT + fast.lam[0] / MASS
    assert after * DT == pytest.approx(-0.02, rel=1e-12)
    assert PGS().solve(velocities(rows, at_rest(z=-1.0)), EXACT).lam[0] == 0.0


def on_slope(angle: float, mu: float, beta: float = 0.0) -> Rows:
    """A block on a plane that rises along x."""
    n, t = cos(angle) * Z - sin(angle) * X, cos(angle) * X + sin(angle) * Z
    rows = Rows(MODEL)
    J = along(n, t, Y)
    rows.add_contact(id=0, Ja=-J, b="block", Jb=J, mu=mu, beta=(0.0, beta, beta))
    return rows


@pytest.mark.parametrize("speed", [-0.5, 0.5], ids=["down", "up"])
@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_a_block_that_slides_on_a_slope(level: str, speed: float) -> None:
    """a = −g (sin θ ± μ cos θ): friction opposes the sliding, at both levels (KOK §8.1 wants a_t = −v_t/h)."""
    angle, mu = radians(35.0), 0.4
    rows = on_slope(angle, mu, beta=1.0 / DT)
    t = cos(angle) * X + sin(angle) * Z
    v = np.array([*(speed * t), 0.0, 0.0, 0.0])
    problem = velocities(rows, v) if level == "velocity" else forces(rows, v)
    result = PGS().solve(problem, EXACT)
    assert result.ok
    scale = DT if level == "velocity" else 1.0
    change = answer(rows, MODEL.q_rest, result.lam / scale) + np.array([0, 0, -G, 0, 0, 0])
    assert t @ change[:3] == pytest.approx(-G * (sin(angle) + np.sign(speed) * mu * cos(angle)), rel=1e-9)
    assert result.lam[0] == pytest.approx(MASS * G * cos(angle) * scale, rel=1e-9)
    assert result.lam[1] == pytest.approx(-np.sign(speed) * mu * result.lam[0], rel=1e-9)


def test_a_block_that_sticks_to_a_slope() -> None:
    angle = radians(20.0)
    result = PGS().solve(velocities(on_slope(angle, 1.01 * tan(angle)), at_rest()), EXACT)
    assert result.lam[1] == pytest.approx(MASS * G * sin(angle) * DT, rel=1e-9)
    slips = PGS().solve(velocities(on_slope(angle, 0.99 * tan(angle)), at_rest()), EXACT)
    assert slips.lam[1] == pytest.approx(0.99 * tan(angle) * slips.lam[0], rel=1e-9)


def test_a_belt_that_runs_carries_a_block_along() -> None:
    """A target along a tangent: the block gains μ g until it has the belt's speed."""
    rows, v, mu, belt = Rows(MODEL), at_rest(), 0.3, 0.1
    J = along(Z, X, Y)
    rows.add_contact(id=0, Ja=-J, b=0, Jb=J, mu=mu, target=(0.0, belt, 0.0))
    for k in range(1, 7):
        problem = velocities(rows, v)
        lam = PGS().solve(problem, EXACT).lam
        v = v + DT * np.array([0, 0, -G, 0, 0, 0]) + answer(rows, MODEL.q_rest, lam, dt=DT)
        assert v[0] == pytest.approx(min(mu * G * DT * k, belt), rel=1e-9)


def test_an_actuator_of_limited_strength() -> None:
    """LAM: three rows whose force together is at most a radius. It pulls along what is wanted, by gravity turned."""
    rows, wanted, radius = Rows(MODEL), np.array([0.3, -0.2, 0.6]), 1.5
    J = along(X, Y, Z)
    rows.add_ball(id=0, Ja=-J, b=0, Jb=J, radius=radius, target=wanted)
    result = PGS().solve(velocities(rows, at_rest()), EXACT)
    assert result.ok
    missing = wanted + DT * G * Z
    np.testing.assert_allclose(result.lam, radius * DT * missing / np.linalg.norm(missing), rtol=1e-9)
    strong = Rows(MODEL)
    strong.add_ball(id=0, Ja=-J, b=0, Jb=J, radius=1e4, target=wanted)
    np.testing.assert_allclose(PGS().solve(velocities(strong, at_rest()), EXACT).lam, MASS * missing, rtol=1e-9)


def wheel() -> Model:
    inertia = Inertia(1.0, moments=(0.2, 0.2, 0.4))
    return Scene(bodies=[Body("wheel", joints=[Joint("hinge", axis=(0, 0, 1))], inertia=inertia)]).compile()


def test_a_motor_of_limited_torque() -> None:
    """θ̇ = (τ/I) t until the wanted speed is reached, and that speed from then on."""
    model, torque, target = wheel(), 2.0, 0.27
    rows, v = Rows(model), np.zeros(1)
    rows.add(id=0, dof="wheel", target=target, lo=-torque, hi=torque)
    for k in range(1, 10):
        seen = see(rows, model.q_rest, v, dt=DT)
        lam = PGS().solve(velocity_problem(rows, seen, DT), EXACT).lam
        v = v + DT * seen.a_free + answer(rows, model.q_rest, lam, dt=DT)
        assert v[0] == pytest.approx(min(torque / 0.4 * DT * k, target), rel=1e-12)
        assert abs(lam[0]) <= torque * DT * (1 + 1e-12)


def test_a_dead_zone_lets_a_fall_be_until_its_edge() -> None:
    """No force while |ż| < 0.5 m/s; then as much as holds the edge, at most F (m g < F)."""
    rows, v = Rows(MODEL), at_rest()
    rows.add(id=0, b=0, Jb=along(Z), law=dead_zone(-0.5, 0.5, -30.0, 30.0))
    for k in range(1, 12):
        result = PGS().solve(velocities(rows, v), EXACT)
        v = v + DT * np.array([0, 0, -G, 0, 0, 0]) + answer(rows, MODEL.q_rest, result.lam, dt=DT)
        assert v[2] == pytest.approx(max(-G * DT * k, -0.5), rel=1e-12)
    assert result.lam[0] == pytest.approx(MASS * G * DT, rel=1e-12)
    weak = Rows(MODEL)
    weak.add(id=0, b=0, Jb=along(Z), law=dead_zone(-0.5, 0.5, -5.0, 5.0))
    assert PGS().solve(velocities(weak, at_rest(z=-0.5)), EXACT).lam[0] == pytest.approx(5.0 * DT, rel=1e-12)


def test_a_law_with_slopes_is_a_damper() -> None:
    """w = −c λ, λ a force: a damper of 1/c N·s/m, met at the end of the step: v⁺ = v / (1 + dt/(m c))."""
    rows, v, c = Rows(MODEL), at_rest(x=1.0), 0.2
    rows.add(id=0, b=0, Jb=along(X), law=stiffening([], [c]))
    lam = PGS().solve(velocities(rows, v), EXACT).lam
    assert 1.0 + lam[0] / MASS == pytest.approx(1.0 / (1.0 + DT / (MASS * c)), rel=1e-12)
    kinked = Rows(MODEL)
    kinked.add(id=0, b=0, Jb=along(X), law=stiffening([2.0], [c, 0.1]))
    lam = PGS().solve(velocities(kinked, v), EXACT).lam  # beyond 2 N: w = −0.4 − 0.1 (λ − 2)
    w = 1.0 + lam[0] / MASS
    assert lam[0] / DT < -2.0
    assert w == pytest.approx(0.4 + 0.1 * (-lam[0] / DT - 2.0), rel=1e-12)


def rope_rows(q: np.ndarray, v: np.ndarray, length: float) -> Rows:
    """A rope from the world's origin to the block's centre."""
    none = Vec3(0.0, 0.0, 0.0)
    world, block = (body_at(MODEL, q, v, body) for body in (-1, "block"))
    rows = Rows(MODEL)
    rows.add_part(
        point_parts.at_most(point_parts.distance(world, block, none, none), length), (-1, "block"), id=0, lo=0.0
    )
    return rows


def test_a_rope_holds_and_never_pushes() -> None:
    q = MODEL.q_rest.copy()
    q[:3] = 0.0, 0.0, -1.0
    hangs = PGS().solve(velocity_at(rope_rows(q, at_rest(), 1.0), q, at_rest()), EXACT)
    assert hangs.lam[0] == pytest.approx(MASS * G * DT, rel=1e-12)
    falls = at_rest(z=-10.0)
    slack = rope_rows(q, falls, 1.01)
    lam = PGS().solve(velocity_at(slack, q, falls), EXACT).lam
    assert -10.0 - G * DT + answer(slack, q, lam, dt=DT)[2] == pytest.approx(-0.01 / DT, rel=1e-12)
    rises = at_rest(z=3.0)
    assert PGS().solve(velocity_at(rope_rows(q, rises, 1.01), q, rises), EXACT).lam[0] == 0.0
    circles = at_rest(x=2.0)  # on a taut rope: the tension is m g + m v²/r
    taut = rope_rows(q, circles, 1.0)
    tension = Dantzig().solve(acceleration_problem(taut, see(taut, q, circles)), EXACT).lam[0]
    assert tension == pytest.approx(MASS * (G + 4.0), rel=1e-12)


def velocity_at(rows: Rows, q: np.ndarray, v: np.ndarray) -> Problem:
    return velocity_problem(rows, see(rows, q, v, dt=DT), DT)


def test_gains_and_softness_of_one_spring_agree_at_both_levels() -> None:
    """VON eqs. 10, 11 with the gains of `softness`: the force of a step is the same, whichever level it is found at."""
    soft = spring(300.0, 5.0, DT)
    alpha, beta = soft.acceleration_gains(DT)
    rows = Rows(MODEL)
    rows.add(id=0, b=0, Jb=along(X), phi=0.1, erp=soft.erp, cfm=soft.cfm, alpha=alpha, beta=beta)
    v = at_rest(x=0.4)
    impulse, force = Direct().solve(velocities(rows, v)).lam[0], Direct().solve(forces(rows, v)).lam[0]
    assert impulse / DT == pytest.approx(force, rel=1e-12)
    after = 0.4 + impulse / MASS
    assert force == pytest.approx(-300.0 * (0.1 + DT * after) - 5.0 * after, rel=1e-10)


def test_the_answer_of_a_step_starts_the_next() -> None:
    rows = on_slope(radians(35.0), 0.4)
    problem = velocities(rows, at_rest())
    first = PGS().solve(problem, EXACT)
    keep_multipliers(rows, first.lam)
    rows.begin()
    again = on_slope(radians(35.0), 0.4)
    rows.now, again.now = again.now, rows.now
    rows.warm_start()
    np.testing.assert_allclose(warm_multipliers(rows), first.lam, rtol=1e-12)
    warm = PGS().solve(problem, Options(tolerance=1e-9, warm=warm_multipliers(rows)))
    cold = PGS().solve(problem, Options(tolerance=1e-9))
    assert warm.iterations <= 1 < cold.iterations


# ---- hostile ---------------------------------------------------------------------------------------------------------


def test_levels_are_not_mixed_up() -> None:
    rows = Rows(MODEL)
    rows.add(id=0, b=0, Jb=along(Z))
    fast, slow = see(rows, MODEL.q_rest, dt=DT), see(rows, MODEL.q_rest)
    with pytest.raises(ValueError, match="evaluated at velocity level: call `see` without dt"):
        acceleration_problem(rows, fast)
    with pytest.raises(ValueError, match="evaluated at acceleration level: give `see` the same dt"):
        velocity_problem(rows, slow, DT)
    with pytest.raises(ValueError, match=r"dt is 0.02, and the rows were evaluated for 0.01: give `see` the same one"):
        velocity_problem(rows, fast, 0.02)
    for dt in (0.0, -1.0, np.nan, inf):
        with pytest.raises(ValueError, match="it must be positive"):
            velocity_problem(rows, fast, dt)
    rows.add(id=1, b=0, Jb=along(X))
    with pytest.raises(ValueError, match="2 rows, of which 1 were evaluated: call `see` again"):
        velocity_problem(rows, fast, DT)


def test_problems_are_of_one_world() -> None:
    rows = Rows(MODEL, F64X8)
    seen = see(rows, np.tile(MODEL.q_rest, (8, 1)))
    with pytest.raises(ValueError, match="rows of f64x8; problems are made of one world in float64"):
        acceleration_problem(rows, seen)


@pytest.mark.parametrize("lam", [[1.0], [1.0, np.nan], [[1.0, 2.0]], 3.0])
def test_multipliers_to_keep_are_checked(lam: Any) -> None:
    rows = Rows(MODEL)
    rows.add(id=0, b=0, Jb=along(Z))
    rows.add(id=1, b=0, Jb=along(X))
    with pytest.raises(ValueError, match=r"lam must be finite numbers of shape \(2,\), one a row"):
        keep_multipliers(rows, lam)
    assert not rows.now.lam.any()


def test_no_rows_are_a_problem_without_unknowns() -> None:
    rows = Rows(MODEL)
    for problem in (velocities(rows, at_rest()), forces(rows, at_rest())):
        assert problem.size == 0
        assert Direct().solve(problem).lam.shape == (0,)
    np.testing.assert_array_equal(answer(rows, MODEL.q_rest, []), np.zeros(6))
    assert dynamics.forward_dynamics(MODEL, MODEL.q_rest, np.zeros(6))[2] == pytest.approx(-G)
