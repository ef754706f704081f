"""Line charts as SVG text, with NumPy only: for a browser, a notebook, a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: distinguishable with colour-blindness too (Okabe and Ito 2008)
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
INK, GRID, PAPER = "#222222", "#dddddd", "#ffffff"
FONT = "system-ui, sans-serif"
LETTER = 6.6
"""Upper bound of the width of a letter of the legend, in pixels."""

Mark = Literal["circle", "square", "diamond"]


@dataclass(frozen=True)
class Drawing:
    """A piece of SVG with its size in pixels.

    >>> Drawing(20, 10, '<circle r="5"/>').svg()[:4]
    '<svg'
    """

    width: float
    height: float
    body: str

    def svg(self) -> str:
        """The whole picture as a document."""
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        background = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">{background}{self.body}</svg>\n'

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file."""
        path = Path(path)
        path.write_text(self.svg(), encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"<Drawing of {self.width:g} × {self.height:g} pixels; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return self.svg()


def below(*drawings: Drawing) -> Drawing:
    """Drawings under one another.

    >>> below(Drawing(300, 200, ""), Drawing(500, 100, "")).height
    300.0
    """
    parts, y = [], 0.0
    for drawing in drawings:
        parts.append(f'<g transform="translate(0 {y:g})">{drawing.body}</g>')
        y += drawing.height
    return Drawing(max(d.width for d in drawings), y, "".join(parts))


def text(x: float, y: float, words: str, *, size: float = 12, anchor: str = "start", extra: str = "") -> str:
    """A line of text."""
    style = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{INK}"'
    return f"<text {style} {extra}>{escape(words)}</text>"


def ticks(low: float, high: float, count: int = 6) -> Floats:
    """Round numbers that divide a range into about `count` parts.

    >>> ticks(0.0, 10.0, 5).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    raw = (high - low) / count
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next(k for k in (1, 2, 5, 10) if k * unit >= raw * 0.999)
    first = np.ceil(low / step - 1e-9)
    last = np.floor(high / step + 1e-9)
    return np.asarray(np.arange(first, last + 1) * step + 0.0, np.float64)  # + 0.0 makes −0 plain


def line_chart(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    width: float = 900.0,
    height: float = 360.0,
) -> Drawing:
    """Curves over a common x, with axes and a legend.

    >>> line_chart([0, 1, 2], {"height": [0.0, 1.0, 4.0]}, x_label="time (s)").width
    900.0
    """
    xs = np.asarray(x, np.float64)
    if xs.ndim != 1 or len(xs) < 2 or not curves:
        raise ValueError("a chart wants at least two points and one curve")
    lines = [Curve(name, xs, values) for name, values in curves.items()]
    return chart(lines, title=title, x_label=x_label, y_label=y_label, width=width, height=height)


@dataclass(frozen=True)
class Curve:
    """A line with x of its own, or points.

    >>> Curve("guess", [1, 10, 100], [0.5, 0.1, 0.02], dashed=True).name
    'guess'
    """

    name: str
    """Name in the legend."""
    x: ArrayLike
    """(n,)"""
    y: ArrayLike
    """(n,)"""
    color: str | None = None
    """SVG colour; default: the next one of `COLORS`."""
    dashed: bool = False
    width: float = 2.0
    """Of the line, in pixels."""
    mark: Mark | None = None
    """Draw points of this shape instead of a line."""


def chart(
    curves: Sequence[Curve],
    *,
    log_x: bool = False,
    log_y: bool = False,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    width: float = 900.0,
    height: float = 360.0,
) -> Drawing:
    """Curves and points with axes, linear or logarithmic, and a legend in the order given.

    >>> error = Curve("error", [1, 10, 100], [1.0, 1e-3, 1e-9])
    >>> "10⁻⁶" in chart([error, Curve("exact", [7], [1e-9], mark="diamond")], log_x=True, log_y=True).svg()
    True
    """
    if not curves:
        raise ValueError("a chart wants at least one curve")
    points = [_points(curve, log_x, log_y) for curve in curves]
    left, top, bottom = 70.0, 40.0, 48.0
    right = max(170.0, 60.0 + LETTER * max(len(curve.name) for curve in curves))
    all_x, all_y = (np.concatenate(values) for values in zip(*points, strict=True))
    across = _Axis(*_span(all_x, log_x), left, width - right, log_x)
    up = _Axis(*(_log_range if log_y else _range)(all_y), height - bottom, top, log_y)
    parts = [text(left, 24, title, size=15, extra='font-weight="600"')]
    for value, label in across.marks(8):
        px = float(across.at(value))
        parts.append(_line(px, top, px, height - bottom, GRID))
        parts.append(text(px, height - bottom + 18, label, anchor="middle"))
    for value, label in up.marks(6):
        py = float(up.at(value))
        parts.append(_line(left, py, width - right, py, GRID))
        parts.append(text(left - 8, py + 4, label, anchor="end"))
    parts.append(text((left + width - right) / 2, height - 8, x_label, anchor="middle"))
    middle = (top + height - bottom) / 2
    parts.append(text(16, middle, y_label, anchor="middle", extra=f'transform="rotate(-90 16 {middle:.1f})"'))
    for k, (curve, (xs, ys)) in enumerate(zip(curves, points, strict=True)):
        color = curve.color or COLORS[k % len(COLORS)]
        parts.append(_drawn(curve, across.at(xs), up.at(ys), color))
        row = top + 14 + 22 * k
        parts.append(_key(curve, width - right + 14, row - 9, color))
        parts.append(text(width - right + 40, row, curve.name))
    return Drawing(width, height, "".join(parts))


@dataclass(frozen=True)
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    start: float
    """Pixel of the least value."""
    end: float
    log: bool

    def at(self, values: Floats | float) -> Floats:
        """Positions of values."""
        v, low, high = (np.log10(x) if self.log else np.asarray(x) for x in (values, self.low, self.high))
        return np.asarray(self.start + (v - low) * ((self.end - self.start) / (high - low)), np.float64)

    def marks(self, count: int) -> list[tuple[float, str]]:
        """About `count` ticks with their labels: powers of ten, with their double and fivefold if few fit."""
        if not self.log or self.high < 10.0 * self.low:
            return [(float(value), f"{value:g}") for value in ticks(self.low, self.high, count)]
        first, last = (int(np.floor(np.log10(x) + nudge)) for x, nudge in ((self.low, 1e-9), (self.high, 1e-9)))
        if last - first <= 2:
            values = [share * 10.0**power for power in range(first, last + 1) for share in (1, 2, 5)]
            return [(x, f"{x:g}") for x in values if self.low * (1 - 1e-9) <= x <= self.high * (1 + 1e-9)]
        first += self.low > 10.0**first * (1 + 1e-9)
        step = max(1, -(-(last - first) // (count + 2)))
        return [(10.0**power, _power(power)) for power in range(-(-first // step) * step, last + 1, step)]


def _power(exponent: int) -> str:
    """Powers of ten up to ten thousand are written out."""
    if 0 <= exponent <= 4:
        return str(10**exponent)
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _drawn(curve: Curve, px: Floats, py: Floats, color: str) -> str:
    if curve.mark is not None:
        return "".join(_mark(curve.mark, float(x), float(y), color) for x, y in zip(px, py, strict=True))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(*_thinned(px, py), strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{curve.width:g}"{_dash(curve)}/>'


def _key(curve: Curve, x: float, y: float, color: str) -> str:
    """The symbol beside a name of the legend."""
    if curve.mark is not None:
        return _mark(curve.mark, x + 9, y + 2.5, color)
    if curve.dashed:
        ends = f'x1="{x:g}" y1="{y + 2.5:g}" x2="{x + 18:g}" y2="{y + 2.5:g}"'
        return f'<line {ends} stroke="{color}" stroke-width="2.5"{_dash(curve)}/>'
    return f'<rect x="{x:g}" y="{y:g}" width="18" height="5" fill="{color}"/>'


def _dash(curve: Curve) -> str:
    return ' stroke-dasharray="5 4"' if curve.dashed else ""


def _mark(shape: Mark, x: float, y: float, color: str) -> str:
    corners = {"square": ((-5, -5), (5, -5), (5, 5), (-5, 5)), "diamond": ((0, -7), (7, 0), (0, 7), (-7, 0))}
    style = f'fill="{color}" stroke="{PAPER}" stroke-width="1.5"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" {style}/>'
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners[shape])
    return f'<polygon points="{points}" {style}/>'


def _points(curve: Curve, log_x: bool, log_y: bool) -> tuple[Floats, Floats]:
    """A curve's numbers, checked."""
    xs, ys = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
    if curve.mark is not None and curve.mark not in get_args(Mark):
        raise ValueError(f"curve {curve.name!r} has mark {curve.mark!r}; there are {', '.join(get_args(Mark))}")
    if xs.ndim != 1 or xs.size < (2 if curve.mark is None else 1):
        raise ValueError(f"curve {curve.name!r}: a line wants at least two points, marks one; x has shape {xs.shape}")
    if ys.shape != xs.shape:
        raise ValueError(f"curve {curve.name!r} has shape {ys.shape}, x has {xs.shape}")
    if not np.isfinite(ys).all():
        raise ValueError(f"curve {curve.name!r} holds numbers that are not finite")
    if not np.isfinite(xs).all():
        raise ValueError("x holds numbers that are not finite")
    for values, log in ((xs, log_x), (ys, log_y)):
        if log and values.min() <= 0.0:
            raise ValueError(f"curve {curve.name!r} holds {values.min():g}; a logarithmic axis wants numbers above 0")
    return xs, ys


def _span(values: Floats, log: bool) -> tuple[float, float]:
    """Least and greatest; never empty."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low, 10.0 * low if log else low + 1.0)


def _log_range(values: Floats) -> tuple[float, float]:
    """Least and greatest, with a little room; never empty."""
    low, high = _range(np.log10(values))
    return 10.0**low, 10.0**high


def _range(values: Floats) -> tuple[float, float]:
    """Least and greatest, with a little room; never empty."""
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.5 * max(abs(low), 1.0)
    return low - room, high + room


def _thinned(px: Floats, py: Floats, most: int = 1500) -> tuple[Floats, Floats]:
    """Reduce to a maximum number of points; keeps the last one."""
    keep = np.unique(np.linspace(0, len(px) - 1, min(most, len(px))).round().astype(int))
    return px[keep], py[keep]


def _line(x1: float, y1: float, x2: float, y2: float, color: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'
