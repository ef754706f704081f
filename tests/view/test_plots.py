"""Charts: right places, right words, clear refusals."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from poise.view.plots import Curve, below, chart, line_chart, ticks

SVG = "{http://www.w3.org/2000/svg}"


def points(svg: str) -> list[np.ndarray]:
    lines = re.findall(r'<polyline points="([^"]+)"', svg)
    return [np.array([[float(c) for c in pair.split(",")] for pair in line.split()]) for line in lines]


def test_a_straight_line_is_drawn_straight() -> None:
    x = np.linspace(0.0, 4.0, 9)
    chart = line_chart(x, {"up": 3.0 * x, "down": -x})
    up, down = points(chart.svg())
    assert np.all(np.diff(up[:, 0]) > 0)
    slopes = np.diff(up[:, 1]) / np.diff(up[:, 0])
    np.testing.assert_allclose(slopes, slopes.mean(), rtol=0.02)  # coordinates are written to a tenth of a pixel
    assert slopes.mean() < 0 < np.diff(down[:, 1]).mean()  # SVG counts downwards
    ratio = np.ptp(up[:, 1]) / np.ptp(down[:, 1])
    assert ratio == pytest.approx(3.0, rel=0.01)


def test_everything_lies_inside_the_picture() -> None:
    x = np.linspace(-5.0, 5.0, 5000)
    chart = line_chart(x, {"wild": 1e6 * np.sin(7 * x), "flat": np.full_like(x, -3e6)}, width=600, height=300)
    for line in points(chart.svg()):
        assert len(line) <= 1500
        assert line.min() >= 0
        assert line[:, 0].max() <= 600
        assert line[:, 1].max() <= 300


def test_marks_stand_where_the_curve_has_their_value() -> None:
    """The label of a value is beside (under) the point of the curve that has it."""
    chart = line_chart([-2.0, 0.0, 2.0], {"y": [-20.0, 0.0, 20.0]})
    (curve,) = points(chart.svg())
    labels = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)"[^>]*text-anchor="(middle|end)"[^>]*>(-?\d+)</text>', chart.svg()
    )
    across = {float(value): float(x) for x, _, anchor, value in labels if anchor == "middle"}
    up = {float(value): float(y) for _, y, anchor, value in labels if anchor == "end"}
    for k, (x, y) in enumerate(((-2, -20), (0, 0), (2, 20))):
        assert across[x] == pytest.approx(curve[k, 0], abs=0.11)
        assert up[y] == pytest.approx(curve[k, 1] + 4, abs=0.11)  # the foot of the letters is 4 pixels lower


def test_long_curves_are_thinned_from_end_to_end() -> None:
    x = np.linspace(0.0, 1.0, 100_000)
    (line,) = points(line_chart(x, {"up": x}, width=900).svg())
    (ends,) = points(line_chart([0.0, 1.0], {"up": [0.0, 1.0]}, width=900).svg())
    assert len(line) == 1500
    np.testing.assert_array_equal(line[[0, -1]], ends)
    np.testing.assert_allclose(np.diff(line[:, 0]), np.ptp(ends[:, 0]) / 1499, atol=0.11)  # tenths of a pixel


def test_it_is_well_formed_and_words_are_escaped() -> None:
    chart = line_chart([0, 1], {"a < b & c": [1, 2]}, title="<script>", x_label='"x"', y_label="y")
    root = ET.fromstring(chart.svg())
    words = {node.text for node in root.iter(f"{SVG}text")}
    assert {"a < b & c", "<script>", '"x"', "y"} <= words


def test_a_constant_curve_and_a_single_moment_in_time_have_room() -> None:
    flat = points(line_chart([2.0, 2.0], {"flat": [0.0, 0.0]}).svg())[0]
    assert np.isfinite(flat).all()


def test_drawings_stand_under_one_another() -> None:
    small, large = (line_chart([0, 1], {"y": [0, 1]}, width=w, height=h) for w, h in ((300, 200), (500, 100)))
    both = below(small, large)
    assert (both.width, both.height) == (500, 300)
    assert "translate(0 200)" in both.body


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-1e-3, 1e-3, [-1e-3, -5e-4, 0, 5e-4, 1e-3]),
        (7.0, 107.0, range(20, 101, 20)),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected) -> None:
    np.testing.assert_allclose(ticks(low, high, 5), list(expected), atol=1e-12)


def test_no_tick_is_minus_nought() -> None:
    assert not np.signbit(ticks(-0.1, 1.0)).any()


@pytest.mark.parametrize(
    ("x", "curves", "message"),
    [
        ([0], {"y": [1]}, "at least two points"),
        ([0, 1], {}, "one curve"),
        ([0, 1], {"y": [1, 2, 3]}, "curve 'y' has shape"),
        ([0, 1], {"y": [1, np.nan]}, "curve 'y' holds numbers that are not finite"),
        ([0, np.inf], {"y": [1, 2]}, "x holds numbers"),
    ],
)
def test_bad_curves_are_refused(x, curves, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        line_chart(x, curves)


def test_a_chart_is_saved_as_it_is(tmp_path) -> None:
    chart = line_chart([0, 1], {"y": [0, 1]}, title="größer")
    assert chart.save(tmp_path / "chart.svg").read_text(encoding="utf-8") == chart.svg()
    assert chart._repr_svg_() == chart.svg()


# ---- logarithmic axes, points, dashes --------------------------------------------------------------------------------


def test_equal_ratios_are_equal_distances_on_a_logarithmic_axis() -> None:
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    (line,) = points(chart([Curve("c", x, x**-3.0)], log_x=True, log_y=True).svg())
    steps = np.diff(line, axis=0)
    np.testing.assert_allclose(steps, np.broadcast_to(steps.mean(axis=0), steps.shape), atol=0.11)
    assert steps[0, 0] > 0 < steps[0, 1]


def labels_of(svg: str, anchor: str) -> dict[str, float]:
    """Word → place of the labels of an axis."""
    place = "x" if anchor == "middle" else "y"
    found = re.findall(
        rf'<text x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)"[^>]*text-anchor="{anchor}"[^>]*>([^<]+)</text>', svg
    )
    return {word: float(x if place == "x" else y) for x, y, word in found}


def test_powers_of_ten_stand_where_the_curve_has_them() -> None:
    svg = chart([Curve("c", [1, 100, 10_000, 1e6], [1.0, 1e-4, 1e-8, 1e-12])], log_x=True, log_y=True).svg()
    (line,) = points(svg)
    across, up = labels_of(svg, "middle"), labels_of(svg, "end")
    for k, word in enumerate(("1", "100", "10000", "10⁶")):
        assert across[word] == pytest.approx(line[k, 0], abs=0.11)
    for k, word in enumerate(("1", "10⁻⁴", "10⁻⁸", "10⁻¹²")):
        assert up[word] == pytest.approx(line[k, 1] + 4, abs=0.11)


def test_few_decades_are_divided() -> None:
    svg = chart([Curve("c", [1, 150], [1.0, 2.0])], log_x=True).svg()
    assert [word for word in ("1", "2", "5", "10", "20", "50", "100") if word not in labels_of(svg, "middle")] == []
    assert "200" not in labels_of(svg, "middle")


@pytest.mark.parametrize("decades", [0.1, 1, 3, 12, 40, 300])
def test_an_axis_of_any_length_has_some_labels_and_not_too_many(decades: float) -> None:
    svg = chart([Curve("c", [1, 2], [3e-200, 3e-200 * 10.0**decades])], log_y=True).svg()
    assert 1 <= len(labels_of(svg, "end")) <= 12


def test_curves_have_x_of_their_own_and_one_scale() -> None:
    first, second = points(chart([Curve("a", [0, 1], [0, 1]), Curve("b", [0, 2, 4], [0, 2, 4])]).svg())
    assert first[-1] == pytest.approx(first[0] + (second[-1] - second[0]) / 4, abs=0.11)


@pytest.mark.parametrize(("mark", "tag"), [("circle", "circle"), ("square", "polygon"), ("diamond", "polygon")])
def test_points_are_drawn_as_marks_with_one_in_the_legend(mark, tag: str) -> None:
    svg = chart([Curve("p", [1, 2, 3], [1, 4, 9], mark=mark)]).svg()
    assert len(re.findall(f"<{tag} ", svg)) == 4
    assert not points(svg)


def test_a_single_point_has_room() -> None:
    for log in (False, True):
        svg = chart([Curve("p", [7.0], [3.0], mark="circle")], log_x=log, log_y=log).svg()
        centres = np.array(re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg), float)
        assert (centres > 0).all()


def test_dashes_colours_and_widths_are_as_told() -> None:
    svg = chart([Curve("a", [0, 1], [0, 1], "#123456", dashed=True, width=3.5), Curve("b", [0, 1], [1, 0])]).svg()
    dashed, plain = re.findall(r"<polyline[^>]*>", svg)
    assert 'stroke="#123456" stroke-width="3.5" stroke-dasharray' in dashed
    assert "dasharray" not in plain


def test_long_names_have_room_in_the_legend() -> None:
    name = "a name that is much longer than most names are"
    svg = chart([Curve(name, [0, 1], [0, 1])]).svg()
    (x,) = re.findall(rf'<text x="([\d.]+)"[^>]*>{name}<', svg)
    assert float(x) + 6.0 * len(name) <= 900.0


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([], "at least one curve"),
        ([Curve("y", [1, 2], [1.0, 0.0])], "curve 'y' holds 0; a logarithmic axis wants numbers above 0"),
        ([Curve("y", [-1, 2], [1.0, 2.0])], "curve 'y' holds -1"),
        ([Curve("y", [1], [1.0])], "a line wants at least two points, marks one"),
        ([Curve("y", [], [], mark="circle")], "marks one"),
        ([Curve("y", [1, 2], [1.0, np.inf])], "not finite"),
        ([Curve("y", [1], [1.0], mark="star")], "mark 'star'; there are circle, square, diamond"),
    ],
)
def test_bad_charts_are_refused(curves, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chart(curves, log_x=True, log_y=True)
