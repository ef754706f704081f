"""Seeds of tests can be moved as a whole, in tests alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seeds


@pytest.fixture
def make(monkeypatch):
    """NumPy's own, whatever this run has put in its place."""
    return np.random.Generator, lambda seed=None: np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


@pytest.mark.parametrize(("seed", "other"), [(3, 10), (np.int64(3), 10), ([3, 4], [3, 4, 7])])
def test_seeds_of_tests_are_moved(make, seed, other):
    assert seeds.moving(make[1], 7)(seed).normal() == make[1](other).normal() != make[1](seed).normal()


def test_seeds_of_others_are_not_moved(make):
    scope = {"default_rng": seeds.moving(make[1], 7)}
    exec(compile("drawn = default_rng(3).normal()", "elsewhere.py", "exec"), scope)
    assert scope["drawn"] == make[1](3).normal()


def test_nothing_is_moved_that_is_no_number(make):
    given = np.random.SeedSequence(3)
    assert seeds.moving(make[1], 7)(3) is not None
    assert seeds.moved(given, 7) is given
    assert seeds.moved(None, 7) is None


def test_examples_of_hypothesis_are_others_and_the_same_in_every_run(monkeypatch):
    drawn = []

    @settings(max_examples=5, derandomize=True, database=None, deadline=None)
    @given(x=st.integers(0, 10**12))
    def test(x):
        drawn.append(x)

    def examples(by):
        monkeypatch.setenv(seeds.VARIABLE, str(by))
        test._hypothesis_internal_use_seed = None
        seeds.move_examples([SimpleNamespace(obj=test, nodeid="tests/test_seeds.py::test[1]")])
        drawn.clear()
        test()
        return list(drawn)

    first, other = examples(1), examples(2)
    assert first == examples(1)
    assert len({tuple(first), tuple(other), tuple(examples(0))}) == 3
