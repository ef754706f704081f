"""The problem: what it tells, what it copies, and input that it refuses."""

from math import inf, nan

import numpy as np
import pytest

from poise.solve.laws import at_least, dead_zone
from poise.solve.problem import Ball, Form, Friction, Help, Operator, Options, Problem, Result, Status

EYE = np.eye(3)
B = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("more", "form"),
    [
        ({}, Form.EQUALITY),
        ({"lo": [-inf, 0.0, -inf]}, Form.EQUALITY | Form.BOUNDS),
        ({"hi": [inf, 0.0, inf]}, Form.EQUALITY | Form.BOUNDS),
        ({"cfm": [1.0, 0.0, 0.0]}, Form.EQUALITY),
        ({"laws": {1: at_least()}}, Form.EQUALITY | Form.LAWS),
        ({"laws": {1: at_least()}, "lo": [-inf, 0.0, -inf]}, Form.EQUALITY | Form.LAWS),
        ({"frictions": [Friction(0, (1, 2), 0.5)]}, Form.EQUALITY | Form.CONES),
        ({"frictions": [Friction(0, (1, 2), 0.5, cone=False)]}, Form.EQUALITY | Form.PYRAMIDS),
        ({"frictions": [Friction(0, (1,), 0.5)], "lo": [0.0, -inf, -inf]}, Form.EQUALITY | Form.CONES),
        ({"balls": [Ball((0, 2), 1.0)]}, Form.EQUALITY | Form.BALLS),
        ({"A": EYE + np.eye(3, k=1)}, Form.EQUALITY | Form.NONSYMMETRIC),
        ({"A": EYE + 1e-14 * np.eye(3, k=1)}, Form.EQUALITY),
        ({"A": Operator(lambda x: x, np.ones(3))}, Form.EQUALITY | Form.OPERATOR),
        ({"helps": [Help(0, (1,), (0.1,))]}, Form.EQUALITY | Form.SECONDARY),
        ({"frictions": [Friction(0, (1,), 0.5, sliding=0.4)]}, Form.EQUALITY | Form.CONES | Form.STICK_SLIP),
        ({"frictions": [Friction(0, (1,), 0.5, sliding=0.5)]}, Form.EQUALITY | Form.CONES),
    ],
)
def test_forms(more, form):
    assert Problem(**{"A": EYE, "b": B, **more}).forms() == form


def test_residual_is_the_definition():
    rng = np.random.default_rng(0)
    A, lam, cfm = rng.normal(size=(3, 3)), rng.normal(size=3), rng.exponential(size=3)
    expected = [sum(A[i, j] * lam[j] for j in range(3)) + cfm[i] * lam[i] + B[i] for i in range(3)]
    dense, applied = Problem(A, B, cfm=cfm), Problem(Operator(lambda x: A @ x, np.diag(A).copy()), B, cfm=cfm)
    for problem in (dense, applied):
        assert problem.residual(lam) == pytest.approx(expected)
        assert problem.matrix() == pytest.approx(A + np.diag(cfm))
        assert problem.diagonal == pytest.approx(np.diag(A) + cfm)


def test_arrays_are_copied():
    A, b, lo = np.eye(2), np.ones(2), np.zeros(2)
    problem = Problem(A, b, lo)
    A[0, 0] = b[0] = lo[0] = -7.0
    assert problem.A[0, 0] == problem.b[0] == 1.0
    assert problem.lo[0] == 0.0


def test_rows_of_blocks():
    problem = Problem(np.eye(6), np.ones(6), frictions=[Friction(0, (1, 2), 0.5)], balls=[Ball((4,), 1.0)])
    assert problem.block_rows() == {0, 1, 2, 4}


def test_no_rows():
    problem = Problem(np.zeros((0, 0)), [])
    assert problem.size == 0
    assert problem.forms() == Form.EQUALITY
    assert problem.residual(np.zeros(0)).shape == (0,)
    assert Problem(Operator(lambda x: x, np.zeros(0)), []).matrix().shape == (0, 0)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"b": 1.0}, r"b has shape \(\); it must be one row"),
        ({"b": [[1.0, 2.0, 3.0]]}, r"b has shape \(1, 3\)"),
        ({"b": [1.0, 2.0]}, r"A has shape \(3, 3\); b needs \(2, 2\)"),
        ({"b": [1.0, nan, 2.0]}, "b must be finite"),
        ({"b": [1.0, inf, 2.0]}, "b must be finite"),
        ({"A": EYE * nan}, "A must be finite"),
        ({"A": np.ones((3, 2))}, r"A has shape \(3, 2\)"),
        ({"A": np.ones(3)}, r"A has shape \(3,\)"),
        ({"A": Operator(lambda x: x, np.ones(2))}, r"the operator's diagonal has shape \(2,\); b needs \(3,\)"),
        ({"A": Operator(lambda x: x, np.array([1.0, nan, 1.0]))}, "the operator's diagonal must be finite"),
        ({"A": Operator(lambda x: x, np.array([1.0, inf, 1.0]))}, "the operator's diagonal must be finite"),
        ({"laws": {1: (0.0, 1.0)}}, r"the law of row 1 is \(0.0, 1.0\); it must be a Law"),
        ({"laws": {1: None}}, "the law of row 1 is None; it must be a Law"),
        ({"laws": {1: at_least}}, "the law of row 1 is <function at_least"),
        ({"lo": [0.0]}, r"lo has shape \(1,\); b needs \(3,\)"),
        ({"hi": np.zeros((3, 1))}, r"hi has shape \(3, 1\)"),
        ({"cfm": 0.1}, r"cfm has shape \(\)"),
        ({"cfm": [0.0, -1e-9, 0.0]}, "cfm must be 0 or more"),
        ({"cfm": [0.0, inf, 0.0]}, "cfm must be finite"),
        ({"lo": [1.0, 0.0, 0.0], "hi": [0.0, 1.0, 1.0]}, "lo must not be above hi"),
        ({"lo": [nan, 0.0, 0.0]}, "neither may be NaN"),
        ({"lo": [inf, 0.0, 0.0]}, "lo must not be above hi"),
        ({"hi": [-inf, 0.0, 0.0]}, "lo must not be above hi"),
        ({"laws": {3: at_least()}}, "a law is given for row 3; there are rows 0 to 2"),
        ({"laws": {-1: at_least()}}, "a law is given for row -1"),
        ({"frictions": [Friction(0, (1, 3), 0.5)]}, "a block names row 3; there are rows 0 to 2"),
        ({"frictions": [Friction(0, (0,), 0.5)]}, "row 0 belongs to two blocks"),
        ({"frictions": [Friction(0, (1,), 0.5)], "laws": {1: dead_zone(0.0, 1.0)}}, "row 1 belongs to two"),
        ({"frictions": [Friction(0, (1,), 0.5)], "balls": [Ball((1, 2), 1.0)]}, "row 1 belongs to two"),
        ({"frictions": [Friction(0, (), 0.5)]}, "one or two tangents and a μ ≥ 0"),
        ({"frictions": [Friction(0, (1,), -0.5)]}, "μ ≥ 0"),
        ({"frictions": [Friction(0, (1,), nan)]}, "μ ≥ 0"),
        ({"balls": [Ball((), 1.0)]}, "a ball needs rows"),
        ({"balls": [Ball((0,), -1.0)]}, "a radius of 0 or more"),
        ({"balls": [Ball((0,), nan)]}, "a radius of 0 or more"),
    ],
)
def test_what_is_no_problem(more, message):
    with pytest.raises(ValueError, match=message):
        Problem(**{"A": EYE, "b": B, **more})


def test_which_results_are_good():
    def ok(status):
        return Result(np.zeros(1), np.zeros(1), status, 1, 0.0, 0.0, 0.0).ok

    assert [status for status in Status if ok(status)] == [Status.SOLVED, Status.SINGULAR]


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        Options().tolerance = 1.0
