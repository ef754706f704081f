"""Blends the corrections of stances before, between and after them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Span = tuple[int, int]
"""First and last frame."""


def fade(times: Floats, values: Floats, spans: list[Span], blend: float, loose: Sequence[bool] = ()) -> None:
    """Fade corrections before, between and after stances. Corrections near loose stances stay within theirs."""
    if not spans:
        return
    ends = [(span, *_slopes(times, values, span)) for span in spans]
    for ((first, last), into, out), easy in zip(ends, loose or [False] * len(ends), strict=True):
        if easy:
            into[into * values[first] < 0.0] = 0.0
            out[out * values[last] > 0.0] = 0.0
    for (before, _, out), (after, into, _) in pairwise(ends):
        a, b = before[1], after[0]
        if times[b] - times[a] <= 2.0 * blend:
            _cubic(times, values, (a, b), (times[a], times[b]), (values[a], out, values[b], into))
        else:
            _leave(times, values, a, out, blend)
            _arrive(times, values, b, into, blend)
    _arrive(times, values, spans[0][0], ends[0][1], blend)
    _leave(times, values, spans[-1][1], ends[-1][2], blend)


def _slopes(times: Floats, values: Floats, span: Span) -> tuple[Floats, Floats]:
    """Rates of a correction at both ends of a stance."""
    first, last = span
    if first == last:
        return np.zeros(3), np.zeros(3)
    into = (values[first + 1] - values[first]) / (times[first + 1] - times[first])
    return into, (values[last] - values[last - 1]) / (times[last] - times[last - 1])


def _leave(times: Floats, values: Floats, at: int, slope: Floats, blend: float) -> None:
    end = int(np.searchsorted(times, times[at] + blend))
    _cubic(times, values, (at, end), (times[at], times[at] + blend), (values[at], slope, np.zeros(3), np.zeros(3)))


def _arrive(times: Floats, values: Floats, at: int, slope: Floats, blend: float) -> None:
    start = int(np.searchsorted(times, times[at] - blend, side="right")) - 1
    ends = (times[at] - blend, times[at])
    _cubic(times, values, (start, at), ends, (np.zeros(3), np.zeros(3), values[at], slope))


def _cubic(
    times: Floats, values: Floats, span: Span, ends: tuple[float, float], knots: tuple[Floats, Floats, Floats, Floats]
) -> None:
    """Values between two frames, from values and slopes at two times."""
    inside = np.arange(max(span[0] + 1, 0), min(span[1], len(times)))
    length = ends[1] - ends[0]
    s = ((times[inside] - ends[0]) / length)[:, None]
    a, da, b, db = knots
    values[inside] = (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * a
        + s * (1.0 - s) ** 2 * length * da
        + s * s * (3.0 - 2.0 * s) * b
        + s * s * (s - 1.0) * length * db
    )
