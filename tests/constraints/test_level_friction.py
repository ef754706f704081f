"""Coefficients of friction and secondary targets of rows, on their way to the solvers."""

import numpy as np
import pytest

import poise
from poise.constraints.response.row_system import see
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import acceleration_problem, velocity_problem
from poise.solve.dantzig import Dantzig
from poise.solve.friction import Coefficients
from poise.solve.pgs import PGS

G, MASS = 9.81, 2.0


def block_on_a_slope(angle, mu, **options):
    """A body that rests on a slope through one contact in the middle: it cannot turn over."""
    scene = poise.Scene(gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=MASS), name="block")
    model = scene.compile()
    rows = Rows(model)
    axes = [(0, 0, 1), (1, 0, 0), (0, 1, 0)]
    J = np.array([(0, 0, 0, *axis) for axis in axes], float)
    rows.add_contact(id=0, b="block", Ja=np.zeros((3, 6)), Jb=J, mu=mu, **options)
    return model, rows


def downhill(angle, mu, **options):
    """Acceleration along the slope; m/s²."""
    model, rows = block_on_a_slope(angle, mu, **options)
    seen = see(rows, model.q_rest)
    lam = Dantzig().solve(acceleration_problem(rows, seen, cone=False)).lam
    return float(seen.a_free[0] + lam[1] / MASS)


ICE = Coefficients(static=0.5, sliding=0.3, impulsive=0.1)


@pytest.mark.parametrize("angle", [0.1, 0.4])
@pytest.mark.parametrize("slides", [False, True])
def test_between_the_two_angles_of_friction_what_rests_holds_and_what_slides_goes_on(angle, slides):
    # atan 0.3 = 0.29, atan 0.5 = 0.46
    free = G * np.sin(angle) - 0.3 * G * np.cos(angle)
    wanted = max(free, 0.0) if slides else 0.0
    assert downhill(angle, ICE, sliding_now=slides) == pytest.approx(wanted, abs=1e-12)


def test_beyond_the_static_angle_everything_slides_with_the_sliding_coefficient():
    assert downhill(0.6, ICE) == pytest.approx(G * np.sin(0.6) - 0.3 * G * np.cos(0.6), rel=1e-12)


def test_impacts_have_the_impulsive_coefficient():
    model, rows = block_on_a_slope(0.0, ICE)
    v = np.array([1.0, 0.0, -3.0, 0.0, 0.0, 0.0])
    for impact, mu in ((True, 0.1), (False, 0.5)):
        problem = velocity_problem(rows, see(rows, model.q_rest, v, dt=1e-6), dt=1e-6, impact=impact)
        lam = PGS().solve(problem).lam
        # the tangent impulse is what stops it, or as much as friction has
        assert lam[1] == pytest.approx(-min(MASS * 1.0, mu * lam[0]), rel=1e-9)


def test_one_number_is_all_coefficients():
    assert downhill(0.3, 0.2) == pytest.approx(G * np.sin(0.3) - 0.2 * G * np.cos(0.3), rel=1e-12)


def test_secondary_targets_by_ids():
    # two hinges in a row hold an arm; a third row wants its tip where it is, but may hardly pull by itself
    scene = poise.Scene()
    scene.add(poise.capsule(0.05, 0.4, mass=1.0), name="upper", joint="hinge")
    model = scene.compile()
    rows = Rows(model)
    rows.add(id=10, dof=0, a_ref=1.0)
    rows.add(id=20, dof=0, coefficient=2.0, a_ref=2.4, lo=-1e-3, hi=1e-3)
    seen = see(rows, model.q_rest)
    plain = acceleration_problem(rows, seen)
    helped = acceleration_problem(rows, seen, helps={20: {10: 0.5}})
    assert plain.residual(Dantzig().solve(plain).lam)[1] == pytest.approx(-0.4, abs=1e-9)
    found = Dantzig().solve(helped)
    assert found.ok
    assert found.w == pytest.approx([0.2, 0.0], abs=1e-9)
    tight = acceleration_problem(rows, seen, helps={20: {10: 0.1}})
    assert Dantzig().solve(tight).w == pytest.approx([0.1, -0.2], abs=1e-9)


def test_helps_name_single_rows():
    model, rows = block_on_a_slope(0.1, 0.5)
    with pytest.raises(ValueError, match="no single row has the id 0"):
        acceleration_problem(rows, see(rows, model.q_rest), helps={0: {}})


@pytest.mark.parametrize("mu", [-0.1, np.nan, -np.inf])
def test_bad_coefficients(mu):
    with pytest.raises(ValueError, match="mu"):
        block_on_a_slope(0.1, mu)
