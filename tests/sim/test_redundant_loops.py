"""Loops with redundant rows, in any attitude: planar ones in space, overconstrained ones, joints that stand for others.

The reference is the same mechanism in the axes that it is written in, where redundant rows are exact zeros: coordinates
do not know of the attitude, and forces turn with it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import poise
from mechanisms import MECHANISMS, Parallelogram, attitude, build
from poise.formulations.maximal_coordinates.maximal_driver import ApartStepper
from poise.formulations.step_status import DONE
from poise.kernel.memory import F64, F64X8, Width
from poise.motion.rotations import quat_to_matrix

FORMS = {
    "reduced": lambda: poise.Reduced(tolerance=1e-9),
    "reduced, euler": lambda: poise.Reduced(level="acceleration", integrator="euler"),
    "reduced, midpoint": lambda: poise.Reduced(level="acceleration", integrator="midpoint"),
    "reduced, rk4": lambda: poise.Reduced(level="acceleration"),
    "maximal": lambda: poise.Maximal(tolerance=1e-9),
    "maximal, momentum": lambda: poise.Maximal(tolerance=1e-9, turning="momentum"),
    "maximal, midpoint": lambda: poise.Maximal(level="acceleration", integrator="midpoint"),
    "maximal, rk4": lambda: poise.Maximal(level="acceleration"),
}
ORDERS = {"midpoint": 2, "rk4": 4}
VELOCITY = ("reduced", "maximal", "maximal, momentum")


def force(world: poise.World) -> np.ndarray:
    """Of all loops on their second bodies; N."""
    return np.sum([loop.force for loop in world.report().loops], axis=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_motion_and_forces_turn_with_the_mechanism(name: str, form: str) -> None:
    """Of two attitudes. At acceleration level they differ by rounding, 1e-16 of 10 rad/s in each of 50 steps, which
    grows by e^(10 t) at most, and errors in places that are mended over (4 h)² in forces. At velocity level solvers
    leave 1e-9 of the speeds that they take away, and errors are mended as they come."""
    for seed in (len(name), 100 + len(form)):
        turn, dt = attitude(seed), 0.004
        straight, turned = build(name, FORMS[form](), dt), build(name, FORMS[form](), dt, turn)
        for _ in range(50):
            straight.step()
            turned.step()
            assert turned.report().level == ("velocity" if form in VELOCITY else "acceleration")
        near = 2e-6 if form in VELOCITY else 1e-11
        assert turned.q == pytest.approx(straight.q, abs=near)
        load = max(np.linalg.norm(force(straight)), 1.0)
        back = quat_to_matrix(turn).T @ force(turned)
        assert back == pytest.approx(force(straight), abs=load * near / dt)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["four-bar", "turntable", "governor", "slider-crank", "parallelogram"])
def test_a_ball_does_for_a_planar_hinge_and_both_share_the_load(name: str, form: str) -> None:
    """Other rows for the same constraint: the motion is the same, and so is the force of all of them."""
    dt, turn = 0.004, attitude(7)
    worlds = [build(name, FORMS[form](), dt, turn, kind) for kind in ("hinge", "ball", "twice")]
    for world in worlds:
        world.step(50)
    near = 2e-6 if form in VELOCITY else 1e-11
    for world in worlds[1:]:
        assert world.q == pytest.approx(worlds[0].q, abs=near)
        assert force(world) == pytest.approx(force(worlds[0]), abs=near / dt * max(np.linalg.norm(force(world)), 1.0))
    for loop in worlds[2].report().loops:
        assert np.linalg.norm(loop.force) < 1.01 * np.linalg.norm(force(worlds[0]))


@pytest.mark.parametrize("form", [form for form in FORMS if form.endswith(("midpoint", "rk4"))])
@pytest.mark.parametrize("name", ["four-bar", "turntable", "governor", "bricard"])
def test_motion_and_energy_have_the_order_of_the_integrator(name: str, form: str) -> None:
    """Half the step leaves a quarter or a sixteenth of the error, half an order being left for the next term; or what
    closing loops and joints takes, which is rounding over the step. Energy has terms of either sign, and two halvings.
    """
    order = ORDERS[form.split(", ")[1]]
    ends, drifts = [], []
    for steps in (40, 80, 160) if order == 4 else (80, 160, 320):
        world = build(name, FORMS[form](), 0.4 / steps, attitude(3))
        before, drift = world.report().energy.total, 0.0
        for _ in range(steps):
            world.step()
            report = world.report()
            drift = max(drift, abs(report.energy.total - before))
            assert report.level == "acceleration"
        ends.append(world.q.copy())
        drifts.append(drift)
    first, second = (float(np.abs(one - two).max()) for one, two in pairwise(ends))
    assert second < max(first / 2 ** (order - 0.5), 1e-9)
    assert drifts[2] < max(drifts[0] / 4 ** (order - 0.5), 1e-7)


@pytest.mark.parametrize("form", VELOCITY)
@pytest.mark.parametrize("name", ["four-bar", "turntable", "governor", "bricard"])
def test_the_velocity_level_goes_where_the_acceleration_level_goes(name: str, form: str) -> None:
    """To first order, at 0.4 s: half the step leaves half of the difference, and the loop's force is that of the
    motion."""
    turn, time = attitude(5), 0.4
    exact = build(name, FORMS["reduced, rk4"](), 0.002, turn)
    exact.step(round(time / 0.002))
    off = []
    for dt in (0.002, 0.001):
        world = build(name, FORMS[form](), dt, turn)
        world.step(round(time / dt))
        off.append(float(np.abs(world.q - exact.q).max()))
    assert off[1] < 0.65 * off[0]
    assert off[0] < 0.05
    assert force(world) == pytest.approx(force(exact), abs=0.1 * max(np.linalg.norm(force(exact)), 1.0))


# ---- singular positions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["reduced", "reduced, rk4", "maximal", "maximal, momentum", "maximal, rk4"])
def test_a_parallelogram_passes_its_singular_positions_in_any_attitude(form: str) -> None:
    """θ″ = k sin θ from the top, at 1 rad/s: all bars are in line at 0.7 s and 1.2 s. Cranks stay parallel, and what is
    gained or lost is of the order of the method: semi-implicit steps are off by h v g m of all bars, v up to 6 m/s."""
    dt = 0.004
    world = build("parallelogram", FORMS[form](), dt, attitude(11))
    names = world.model.dof_names
    before, swing = world.report().energy.total, 0.0
    for _ in range(350):
        world.step()
        swing = max(swing, abs(world.report().energy.total - before))

    def rates(_: float, y: np.ndarray) -> tuple[float, float]:
        return y[1], 2.0 * 9.81 * np.sin(y[0]) / (2.0 / 3.0 + 1.0)

    exact = solve_ivp(rates, (0, 1.4), (0.0, 1.0), method="DOP853", rtol=1e-12, atol=1e-12).y[0, -1]
    first, second = (float(world.q[names.index(name)]) for name in ("up0", "up1"))
    velocity = form in VELOCITY
    assert first == pytest.approx(exact, abs=5e-3 if velocity else 1e-5)
    assert first == pytest.approx(second, abs=2e-3 if velocity else 1e-5)
    assert swing < (dt * 6.0 * 9.81 * 3.0 if velocity else 1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("turning", ["implicit", "momentum"])
def test_forces_of_separate_bodies_stay_bounded_at_singular_positions(turning: str, seed: int) -> None:
    """Beside the closed form, for 1.5 s, with positions in which all bars are in line. Errors of velocities, h², are
    divided by what a few steps turn the cranks by, and by h: forces are off by a share of themselves that does not fall
    with the step while they are near, and fast cranks have a larger one. Elsewhere they are off by the order of h.
    """
    one, time = Parallelogram(seed), 1.5
    exact = solve_ivp(one.rates, (0, time), (one.angle, one.speed), rtol=1e-9, atol=1e-9, dense_output=True).sol
    for dt, most in ((0.008, 2.0), (0.001, 1.2)):
        world = one.build(poise.Maximal(turning=turning), dt)
        before, load, swing = world.report().energy.total, [], 0.0
        for _ in range(round(time / dt)):
            world.step()
            load.append(float(np.linalg.norm(world.report().loops[0].force)))
            swing = max(swing, abs(world.report().energy.total - before))
        middle = (np.arange(len(load)) + 0.5) * dt
        right = np.linalg.norm(one.force(*exact(middle)), axis=-1)
        off = np.abs(np.array(load) - right) / right.max()
        speed = np.abs(exact(middle)[1]).max()
        print(f"\n{turning} {seed}, {dt} s: {max(load):.4g} N of {right.max():.4g}, off {off.max():.2f}, ", end="")
        print(f"median {np.median(off):.1e}, energy {swing:.2g} J, {speed:.2g} rad/s")
        assert max(load) < most * right.max()
        assert np.median(off) < 2.0 * dt * speed
        assert swing < dt * speed * one.length * 9.81 * (one.crank + one.coupler)


def test_lanes_of_separate_bodies_pass_singular_positions_as_each_world_alone() -> None:
    """Worlds of eight speeds, in which rows are held in other steps: to rounding, which grows by 1e3 in 200 steps."""
    start = Parallelogram(0).build(poise.Maximal(), 0.004)
    model = start.model
    shares = np.linspace(0.3, 1.6, F64X8.lanes)

    def ends(width: Width, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one, forces = ApartStepper(model, width, split=False, tolerance=1e-11), []
        for mine, given in ((one.space.s.q, start.q), (one.space.s.v, start.v)):
            mine[...] = given.reshape(-1, *[1] * (mine.ndim - 1))
        one.space.s.v[...] *= lanes
        for _ in range(200):
            assert one.step(0.004) == DONE
            forces.append(np.linalg.norm(one.extras.loops.force.reshape(3, -1), axis=0))
        return one.space.s.q.reshape(model.nq, -1).copy(), np.array(forces)

    together, forces = ends(F64X8, shares)
    for lane in (0, 3, 7):
        alone, own = ends(F64, shares[lane])
        assert together[:, [lane]] == pytest.approx(alone, abs=1e-11)
        assert forces[:, [lane]] == pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_forces_of_a_tree_at_singular_positions_do_not_know_the_tolerance(seed: int) -> None:
    """Beside the closed form, at the default tolerance: what a solver leaves of a row's velocity is a force of that
    over the square of the angle from the singular position, and over the step. Coordinates go straight and leave none.
    """
    one, time, dt = Parallelogram(seed), 1.0, 0.0005
    exact = solve_ivp(one.rates, (0, time), (one.angle, one.speed), rtol=1e-9, atol=1e-9, dense_output=True).sol
    right = np.linalg.norm(one.force(*exact(np.arange(0.0, time, dt))), axis=-1).max()
    world, most = one.build(poise.Reduced(), dt), 0.0
    for _ in range(round(time / dt)):
        world.step()
        most = max(most, float(np.linalg.norm(world.report().loops[0].force)))
        assert world.report().status == "solved"
    print(f"\n{seed}: {most:.4g} N of {right:.4g}")
    assert most == pytest.approx(right, rel=20.0 * dt)


@pytest.mark.parametrize("turning", ["implicit", "momentum"])
def test_separate_bodies_in_a_loop_keep_energy_to_second_order(turning: str) -> None:
    """A slider-crank at 6 rad/s without gravity, from its dead centre: within (h ω)² times its turns, 1 s long."""
    swings = []
    for dt in (1 / 240, 1 / 480):
        world = build("slider-crank", poise.Maximal(turning=turning), dt, attitude(13))
        before, swing = world.report().energy.total, 0.0
        for _ in range(round(1 / dt)):
            world.step()
            swing = max(swing, abs(world.report().energy.total / before - 1.0))
        swings.append(swing)
    assert swings[0] < 6.0 * (6.0 / 240) ** 2
    assert swings[1] < 0.35 * swings[0]
