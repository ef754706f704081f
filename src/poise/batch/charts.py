"""Plots of sweeps: a metric over a setting, with a colour for each combination of the other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import SceneError, did_you_mean
from poise.view.plots import COLORS, Curve, Drawing, chart

if TYPE_CHECKING:
    from poise.batch.table import Table

Array = NDArray[Any]
MOST = 12
"""Maximum lines of a plot; with more, only the setting with the fewest values has colours, and points are not joined.
"""


def plotted(table: Table) -> list[tuple[str, str]]:
    """Metrics, and the settings to plot them over: pairs with finite values and at least two settings' values."""
    over = [name for name in table.settings if len(np.unique(table[name])) > 1]
    if not over:
        return []
    # random draws differ in all settings at once: each setting has its own plot
    drawn = len(over) > 1 and any(len(np.unique(table[name])) == len(table) for name in over)
    chosen = over if drawn else [_widest(table, over)]
    return [(metric, x) for metric in table.metrics for x in chosen if np.isfinite(table[metric]).any()]


def _widest(table: Table, names: list[str]) -> str:
    """The setting with most values, numbers before words."""
    return max(names, key=lambda name: (table[name].dtype.kind in "if", len(np.unique(table[name]))))


def drawing(table: Table, metric: str, x: str | None = None) -> Drawing:
    """A metric over a setting. Runs where it is infinite are marked at the top; those where it is NaN are omitted."""
    for what, name in (("metric", metric), ("x", x)):
        if name is not None and name not in table.columns:
            raise SceneError(f'there is no column "{name}"{did_you_mean(name, table.columns)}', field=what)
    over = [name for name in table.settings if len(np.unique(table[name])) > 1]
    if x is None and not over:
        raise SceneError("nothing was varied: there is nothing to draw over", field="plot")
    x = x or _widest(table, over)
    xs, x_label = _axis(table, x)
    ys = np.asarray(table[metric], np.float64)
    if not np.isfinite(ys).any():
        raise SceneError(f'no run has a finite "{metric}": there is nothing to draw', field="plot")
    finite = ys[np.isfinite(ys)]
    span = float((finite.max() - finite.min()) or abs(finite.max()) or 1.0)
    others = [name for name in over if name != x]
    groups = _groups(table, others)
    joined = table[x].dtype.kind in "if" and all(len(np.unique(xs[rows])) == len(rows) for rows in groups.values())
    if len(groups) > MOST:
        joined, groups = False, _few(table, others)
    curves = []
    for k, (name, rows) in enumerate(groups.items()):
        top = float(finite.max()) + (0.12 + 0.06 * k) * span  # markers do not overlap
        curves += _curves(name or metric, xs[rows], ys[rows], top, COLORS[k % len(COLORS)], joined)
    y_label, height = table.labels.get(metric, metric), max(360.0, 100.0 + 22.0 * len(curves))
    return chart(curves, title=f"{metric} over {x}", x_label=x_label, y_label=y_label, height=height)


def _curves(name: str, xs: Array, ys: Array, top: float, color: str, joined: bool) -> list[Curve]:
    """Points of one colour, joined where none between them is missing; diamonds at the top for infinite values."""
    order = np.argsort(xs, kind="stable")
    xs, ys = xs[order], ys[order]
    there, never = np.isfinite(ys), np.isposinf(ys)
    found = []
    places = np.flatnonzero(there)
    # a line across a run without a number would suggest one
    if joined and len(places) > 1 and np.ptp(places) == len(places) - 1:
        found.append(Curve(name, xs[there], ys[there], color=color))
    elif there.any():
        found.append(Curve(name, xs[there], ys[there], color=color, mark="circle"))
    if never.any():
        found.append(Curve(f"{name}: inf", xs[never], np.full(int(never.sum()), top), color=color, mark="diamond"))
    return found


def _axis(table: Table, x: str) -> tuple[Array, str]:
    """Numbers of a setting, or positions of its words, with the label of the axis."""
    values = table[x]
    if values.dtype.kind in "if":
        return np.asarray(values, np.float64), x
    words, places = np.unique(values, return_inverse=True)
    names = ", ".join(f"{k} {str(word)[:20]}" for k, word in enumerate(words[:8]))
    return np.asarray(places, np.float64), f"{x} ({names}{', …' if len(words) > 8 else ''})"


def _groups(table: Table, names: list[str]) -> dict[str, Array]:
    """Rows by their values of settings, in the order of first occurrence."""
    found: dict[str, list[int]] = {}
    for k in range(len(table)):
        key = ", ".join(f"{name} {_said(table[name][k].item())}" for name in names)
        found.setdefault(key, []).append(k)
    return {key: np.array(rows) for key, rows in found.items()}


def _few(table: Table, names: list[str]) -> dict[str, Array]:
    """Rows by the setting with the fewest values; one group if even these are many."""
    fewest = min(names, key=lambda name: len(np.unique(table[name])))
    found = _groups(table, [fewest])
    return found if len(found) <= MOST else {"": np.arange(len(table))}


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
