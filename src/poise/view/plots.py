"""Line charts as SVG text, with no package but NumPy: for a browser, a notebook, a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: told apart by people with colour-blindness too (Okabe and Ito 2008)
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
INK, GRID, PAPER = "#222222", "#dddddd", "#ffffff"
FONT = "system-ui, sans-serif"


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
    """A line of words."""
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
    ys = {name: np.asarray(values, np.float64) for name, values in curves.items()}
    _check(xs, ys)
    left, right, top, bottom = 70.0, 170.0, 40.0, 48.0
    x_low, x_high = float(xs.min()), float(xs.max())
    x_high = x_high if x_high > x_low else x_low + 1.0
    y_low, y_high = _range(np.concatenate(list(ys.values())))
    sx = (width - left - right) / (x_high - x_low)
    sy = (height - top - bottom) / (y_high - y_low)

    def at(px: Floats, py: Floats) -> tuple[Floats, Floats]:
        return left + (px - x_low) * sx, height - bottom - (py - y_low) * sy

    parts = [text(left, 24, title, size=15, extra='font-weight="600"')]
    for value in ticks(x_low, x_high, 8):
        px = left + (value - x_low) * sx
        parts.append(_line(px, top, px, height - bottom, GRID))
        parts.append(text(px, height - bottom + 18, f"{value:g}", anchor="middle"))
    for value in ticks(y_low, y_high):
        py = height - bottom - (value - y_low) * sy
        parts.append(_line(left, py, width - right, py, GRID))
        parts.append(text(left - 8, py + 4, f"{value:g}", anchor="end"))
    parts.append(text((left + width - right) / 2, height - 8, x_label, anchor="middle"))
    middle = (top + height - bottom) / 2
    parts.append(text(16, middle, y_label, anchor="middle", extra=f'transform="rotate(-90 16 {middle:.1f})"'))
    for k, (name, values) in enumerate(ys.items()):
        color = COLORS[k % len(COLORS)]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in zip(*_thinned(*at(xs, values)), strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        row = top + 14 + 22 * k
        parts.append(f'<rect x="{width - right + 14:g}" y="{row - 9:g}" width="18" height="5" fill="{color}"/>')
        parts.append(text(width - right + 40, row, name))
    return Drawing(width, height, "".join(parts))


def _check(xs: Floats, ys: Mapping[str, Floats]) -> None:
    if xs.ndim != 1 or len(xs) < 2 or not ys:
        raise ValueError("a chart wants at least two points and one curve")
    for name, values in ys.items():
        if values.shape != xs.shape:
            raise ValueError(f"curve {name!r} has shape {values.shape}, x has {xs.shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"curve {name!r} holds numbers that are not finite")
    if not np.isfinite(xs).all():
        raise ValueError("x holds numbers that are not finite")


def _range(values: Floats) -> tuple[float, float]:
    """Least and greatest, with a little room; never empty."""
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.5 * max(abs(low), 1.0)
    return low - room, high + room


def _thinned(px: Floats, py: Floats, most: int = 1500) -> tuple[Floats, Floats]:
    """At most so many points; the last one stays."""
    keep = np.unique(np.linspace(0, len(px) - 1, min(most, len(px))).round().astype(int))
    return px[keep], py[keep]


def _line(x1: float, y1: float, x2: float, y2: float, color: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'
