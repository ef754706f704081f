"""Tables of sweeps, as files and as pictures."""

import sys
from math import inf, nan

import numpy as np
import pytest

import poise
from poise.batch import Table, charts
from poise.batch.charts import drawing, plotted
from poise.batch.table import column


def table():
    columns = {
        "run": column([0, 1, 2, 3]),
        "strength": column([0.1, 1 / 3, 1e300, -0.0]),
        "word": column(["a,b", 'say "hi"', "é\nnew line", ""]),
        "flag": column([True, False, True, True]),
        "mixed": column([1, "two", [3, 4], True]),
        "fall_time": column([0.1 + 0.2, inf, nan, -inf]),
        "status": column(["ok", "ok", "diverged", "ok"]),
    }
    labels = {"fall_time": "fall_time (s)"}
    return Table(columns, ["strength", "word", "flag", "mixed"], ["fall_time"], labels)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_hold_the_same_bits(tmp_path, suffix):
    first = table()
    first.save(tmp_path / f"t{suffix}")
    again = Table.load(tmp_path / f"t{suffix}")
    assert list(again.columns) == list(first.columns)
    for name, values in first.columns.items():
        assert again[name].dtype.kind == values.dtype.kind, name
        assert repr(again[name].tolist()) == repr(values.tolist()), name
    if suffix == ".parquet":
        assert (again.settings, again.metrics, again.labels) == (first.settings, first.metrics, first.labels)
    second = tmp_path / f"u{suffix}"
    again.save(second)
    assert suffix == ".parquet" or second.read_bytes() == (tmp_path / f"t{suffix}").read_bytes()


def test_other_readers_see_the_same_numbers(tmp_path):
    import pyarrow.parquet

    table().save(tmp_path / "t.parquet")
    found = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert str(found.schema.field("fall_time").type) == "double"
    assert str(found.schema.field("run").type) == "int64"
    assert found.column("strength").to_pylist() == [0.1, 1 / 3, 1e300, -0.0]


def test_parquet_without_its_package_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install pyarrow, or the extra poise\[parquet\]"):
        table().save(tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_bad_files_are_told(tmp_path):
    with pytest.raises(poise.SceneError, match=r'saved as \.csv or \.parquet, found "\.xlsx"'):
        table().save(tmp_path / "t.xlsx")
    with pytest.raises(poise.SceneError, match="there is no such folder"):
        table().save(tmp_path / "no" / "t.csv")
    with pytest.raises(poise.SceneError, match="cannot be read"):
        Table.load(tmp_path / "no.csv")
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    with pytest.raises(poise.SceneError, match=r"bad\.csv:2: it is no table: its first line has 2 columns, this one 1"):
        Table.load(tmp_path / "bad.csv")
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(poise.SceneError, match="it is no Parquet"):
        Table.load(tmp_path / "bad.parquet")


def test_columns_go_by_name():
    found = table()
    assert len(found) == 4
    assert found.row(1)["word"] == 'say "hi"'
    assert len(list(found.rows())) == 4
    with pytest.raises(KeyError, match="did you mean"):
        found["fall_tme"]
    assert repr(found).startswith("<Table: 4 rows of run, strength")


def grid(metric, **settings):
    names = list(settings)
    rows = np.array(np.meshgrid(*settings.values(), indexing="ij")).reshape(len(names), -1)
    columns = {name: np.array(rows[k].tolist()) for k, name in enumerate(names)}
    return Table(columns | {"m": np.array([metric(*row) for row in rows.T], float)}, names, ["m"], {"m": "m (N)"})


def test_a_line_for_each_value_of_the_other_setting():
    found = grid(lambda a, b: a * b, a=[1.0, 2.0, 3.0], b=[0.5, 1.5])
    assert plotted(found) == [("m", "a")]
    svg = found.plot().svg()
    assert svg.count("<polyline") == 2
    for words in ("m over a", "m (N)", "b 0.5", "b 1.5"):
        assert words in svg


def test_what_is_infinite_is_marked_and_what_failed_is_left_out():
    found = grid(lambda a: {1.0: 1.0, 2.0: inf, 3.0: nan, 4.0: 2.0}[a], a=[1.0, 2.0, 3.0, 4.0])
    svg = found.plot("m", "a").svg()
    assert svg.count("<polygon") == 2  # one in the plot, one in the legend
    assert "m: inf" in svg
    # a line from the first to the last would tell of numbers between them
    assert "<polyline" not in svg
    assert svg.count("<circle") == 2 + 1
    ends = grid(lambda a: {1.0: 1.0, 2.0: 2.0, 3.0: inf}[a], a=[1.0, 2.0, 3.0])
    assert ends.plot("m", "a").svg().count("<polyline") == 1
    nothing = grid(lambda a: nan, a=[1.0, 2.0])
    assert plotted(nothing) == []
    with pytest.raises(poise.SceneError, match='no run has a finite "m"'):
        nothing.plot()


def test_words_are_numbered_along_the_axis():
    words = Table({"w": column(["walk", "run"]), "m": column([1.0, 2.0])}, ["w"], ["m"])
    assert "w (0 run, 1 walk)" in words.plot().svg()
    assert "<polyline" not in words.plot().svg()  # there is nothing between a walk and a run


def test_groups_of_very_many_draws_are_found():
    """As many groups as rows: one look at all rows for each of them would take a minute."""
    drawn = Table({"a": np.random.default_rng(3).random(20_000)}, ["a"])
    rows = charts._groups(drawn, ["a"])
    firsts = [found[0] for found in rows.values()]
    assert firsts == sorted(firsts)
    assert sorted(np.concatenate(list(rows.values())).tolist()) == list(range(20_000))


def test_random_draws_are_points_over_each_setting():
    rng = np.random.default_rng(3)
    a, b = rng.random((2, 30))
    drawn = Table({"a": a, "b": b, "m": a + b}, ["a", "b"], ["m"])
    assert plotted(drawn) == [("m", "a"), ("m", "b")]
    svg = drawing(drawn, "m", "b").svg()
    assert svg.count("<circle") == 31
    assert "<polyline" not in svg


def test_many_lines_become_points():
    found = grid(lambda a, b, c: a + b + c, a=[1.0, 2.0, 3.0, 4.0, 5.0], b=[1.0, 2.0, 3.0, 4.0], c=[1.0, 2.0, 3.0, 4.0])
    svg = found.plot().svg()
    assert "<polyline" not in svg
    assert svg.count("<circle") == 80 + 4


def test_bad_plots_are_told():
    found = grid(lambda a: a, a=[1.0, 2.0])
    with pytest.raises(poise.SceneError, match='metric: there is no column "n"'):
        found.plot("n")
    with pytest.raises(poise.SceneError, match='x: there is no column "b"'):
        found.plot("m", "b")
    with pytest.raises(poise.SceneError, match="nothing was varied"):
        grid(lambda a: a, a=[1.0]).plot()
