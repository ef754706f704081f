"""Which solver takes what, by name; and that a refusal says who would take it."""

import subprocess
import sys

import numpy as np
import pytest

from poise.solve.direct import Direct
from poise.solve.problem import Ball, Form, Friction, Options, Problem, Status
from poise.solve.solver_registry import SOLVERS, UnsupportedForm, check_form, solver_class, takers
from solve.problems import draw
from solve.round_problems import ROUNDS, draw_round

FORMS = [form for form in Form if form is not Form.EQUALITY]


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_solves_the_simplest_system(name):
    result = solver_class(name)().solve(Problem([[2.0, 1.0], [1.0, 2.0]], [-3.0, -3.0]), Options())
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx([1.0, 1.0], abs=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    "family", ["bounded", "laws", "balls", "pyramid", "cone", "operator", "nonsymmetric", *sorted(ROUNDS)]
)
def test_every_solver_takes_or_refuses(name, family):
    """What it says that it takes it answers, and what it does not it refuses by name."""
    solver, problem = solver_class(name)(), (draw_round if family in ROUNDS else draw)(family, 1).problem
    if name in takers(problem.forms()):
        assert np.isfinite(solver.solve(problem, Options()).lam).all()
    else:
        with pytest.raises(UnsupportedForm, match=f"{type(solver).__name__} does not take"):
            solver.solve(problem, Options())


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    ("warm", "found"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((2, 1)), r"shape \(2, 1\)"),
        (0.0, r"shape \(\)"),
        (np.array([0.0, np.nan]), "NaN or infinity"),
        (np.array([np.inf, 0.0]), "NaN or infinity"),
    ],
)
def test_every_solver_refuses_a_start_that_is_none(name, warm, found):
    """Whether it would use it or not, and in the same words."""
    with pytest.raises(ValueError, match=f"^warm has {found}; it must be 2 finite multipliers$"):
        solver_class(name)().solve(Problem(np.eye(2), [1.0, 1.0]), Options(warm=warm))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_solver(form):
    assert takers(Form.EQUALITY | form)


def test_all_take_equalities():
    assert takers(Form.EQUALITY) == list(SOLVERS)


def test_a_refusal_says_who_takes_it():
    problem = Problem(np.eye(2), [1.0, 1.0], lo=[0.0, 0.0])
    with pytest.raises(UnsupportedForm, match=r"^Direct does not take bounds; solvers that take this problem: .*lemke"):
        check_form(Direct(), problem)


def test_a_refusal_names_every_form():
    problem = Problem(np.eye(5), np.ones(5), frictions=[Friction(0, (1, 2), 0.5)], balls=[Ball((3, 4), 1.0)])
    with pytest.raises(UnsupportedForm, match="does not take balls, cones"):
        check_form(Direct(), problem)


def test_an_unknown_name():
    with pytest.raises(ValueError, match="no solver is called 'gauss'; there are direct, cg, pgs, dantzig, lemke"):
        solver_class("gauss")


def test_the_plain_solvers_need_no_compiler():
    code = (
        "import sys, poise.solve.solver_registry, poise.solve.direct, poise.solve.cg, poise.solve.lemke;"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
