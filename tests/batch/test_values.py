"""Values that sweeps go through."""

import numpy as np
import pytest

import poise
from poise.batch.sweep_values import Between, Choices, combinations, draws, read_setting, read_values


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("0.2,0.5,0.9", (0.2, 0.5, 0.9)),
        ("100:400:7", (100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0)),
        ("3:1:3", (3.0, 2.0, 1.0)),
        ("1/240,1e-3", (1 / 240, 0.001)),
        ("walk.bvh,run.bvh", ("walk.bvh", "run.bvh")),
        ("true,false", (True, False)),
        ("'1:2:3'", ("1:2:3",)),
        ("[0,0,-9.81],[0, 0, -1.6]", ([0, 0, -9.81], [0, 0, -1.6])),
        ("7", (7,)),
        (np.linspace(0, 1, 3), (0.0, 0.5, 1.0)),
        ([np.float64(1.5), 2], (1.5, 2)),
        (0.5, (0.5,)),
        (range(3), (0, 1, 2)),
        ("[[0,0],[1,1]],[[2,2],[3,3]]", ([[0, 0], [1, 1]], [[2, 2], [3, 3]])),
        ("'a,b',c", ("a,b", "c")),
        ("left:1,right:2", ("left:1", "right:2")),
        ("5:5:1", (5.0,)),
        ("-2:-1:2", (-2.0, -1.0)),
        ([np.array([0, 1]), (np.int64(2), np.float32(0.5))], ([0, 1], [2, 0.5])),
    ],
)
def test_lists_ranges_and_words(given, values):
    found = read_values("x", given).values
    assert found == values
    assert all(type(value).__module__ == "builtins" for value in found)


def test_truths_are_not_numbers():
    assert read_values("x", "true,1").values == (True, 1)


def test_both_ends_of_a_range_are_exact():
    values = read_values("x", "0.1:0.7:13").values
    assert (values[0], values[-1], len(values)) == (0.1, 0.7, 13)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1:2:x", "a range must be low:high:points, such as 100:400:7"),
        ("1:2:3:4", "a range must be low:high:points"),
        ("1::3", "a range must be low:high:points"),
        ("1:inf:3", "a range must be low:high:points"),
        ("1:nan:3", "a range must be low:high:points"),
        ("1:2:0", "points must be a whole number from 2 on"),
        ("1:2:1", "points must be a whole number from 2 on"),
        ("1:2:2.5", "points must be a whole number from 2 on"),
        ("1:2:-3", "points must be a whole number from 2 on"),
        ("1:2:1e9", "points must be a whole number from 2 on"),
        ("2:1", "low must be less than high"),
        ("1,,2", "a value is missing between commas"),
        ("1,2,", "a value is missing between commas"),
        (",", "a value is missing between commas"),
        ("1,1", "1 is given twice"),
        ("1,1.0", "1.0 is given twice"),
        ("5:5:3", "points must be 1 where low is high"),
        ("1:2:3,5", "a range stands alone; write all values, or one range, found"),
        ("[1,2],3:4:5", "a range stands alone"),
        ("[0,1", "it is no YAML"),
        ("[0,1]],2", "it is no YAML"),
        ("nan,1", "must be a number, found nan"),
        ([], "there are no values to go through"),
        ([{"a": 1}], "values are numbers, words"),
        ([None], "values are numbers, words"),
    ],
)
def test_bad_values_are_told(given, said):
    with pytest.raises(poise.SceneError) as error:
        read_values("x", given)
    assert str(error.value).startswith("set: x: ")
    assert said in str(error.value)


@pytest.mark.parametrize("word", ["friction", "=3", "friction=", "  =  "])
def test_a_setting_has_a_name_and_values(word):
    with pytest.raises(poise.SceneError, match="must be name=values"):
        read_setting(word)


def test_every_value_meets_every_other():
    runs = combinations({"a": Choices((1, 2, 3)), "b": Choices(("x", "y"))})
    assert [tuple(run.values()) for run in runs] == [(a, b) for a in (1, 2, 3) for b in "xy"]


def test_too_many_runs_are_refused_before_they_are_listed():
    many = Choices(tuple(range(10_000)))
    with pytest.raises(poise.SceneError, match="that makes 1000000000000 runs"):
        combinations({"a": many, "b": many, "c": many})


def test_a_range_without_points_is_for_draws():
    with pytest.raises(poise.SceneError, match="1:2 needs a number of points, such as 1:2:5; or ask for random draws"):
        combinations({"a": Between(1.0, 2.0)})


def test_draws_are_within_bounds_and_told_by_their_seed():
    settings = {"a": Between(1.0, 2.0), "b": Choices(("x", "y", "z"))}
    runs = draws(settings, 300, 5)
    assert runs == draws(settings, 300, 5)
    assert runs != draws(settings, 300, 6)
    assert runs[:10] == draws(settings, 10, 5)
    assert all(1.0 <= run["a"] < 2.0 for run in runs)
    # a fair die of three sides lies outside these bounds once in 10⁸ times
    assert all(60 < sum(run["b"] == word for run in runs) < 145 for word in "xyz")


@pytest.mark.parametrize(("count", "seed"), [(0, 0), (-1, 0), (2.5, 0), (True, 0), (1, -1), (1, 0.5), (10**9, 0)])
def test_bad_draws_are_told(count, seed):
    with pytest.raises(poise.SceneError, match=r"^(random|seed): must be a whole number"):
        draws({"a": Between(1.0, 2.0)}, count, seed)
