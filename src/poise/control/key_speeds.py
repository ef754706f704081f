"""Preferred speeds at chosen keys, which LAM §5 mentions as work in progress.

A target at the base distance d pulls the body to the natural speed α d / (β Δt) (LAM §2.3: a constant speed on a
straight line). Damping towards a reference velocity w instead of towards rest shifts that speed by w. So

    w = u + τ u du/dl − α d / (β Δt),    τ = Δt / (2 β)

yields the speed u(l) along the path; the second term compensates the lag τ of the speed. The target keeps its distance,
and the motion its precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from poise.control.pacing import Route
from poise.motion.path import KeyedPath

Floats = NDArray[np.float64]


class Speeds:
    """Speed over the arc length of a route: linear between keys, the natural speed where none is preferred."""

    def __init__(self, route: Route, natural: float, preferred: Mapping[float, float]) -> None:
        if not isfinite(natural):
            raise ValueError("without damping (elasticity 0) there is no speed to choose: give an elasticity above 0")
        wanted = dict(_checked(route, preferred))
        if isinstance(route.path, KeyedPath) and len(route.path.times) > 1:
            keys = set(route.path.times.tolist())
        else:
            keys = {float(route.s[0]), float(route.s[-1])}
        ends = {float(route.s[0]), float(route.s[-1])}
        if route.loop and ends & set(wanted):  # both ends are one key
            wanted |= dict.fromkeys(ends, wanted[next(iter(ends & set(wanted)))])
        where = sorted(keys | set(wanted))
        self._total, self._loop = float(route.lengths[-1]), route.loop
        lengths = np.interp(where, route.s, route.lengths)
        speeds = np.array([wanted.get(s, natural) for s in where])
        # where the path dwells, several keys have one arc length
        self._lengths, first = np.unique(lengths, return_index=True)
        self._speeds = speeds[first]
        self._fine = np.unique(np.concatenate((route.lengths, self._lengths)))
        slow = 1.0 / np.interp(self._fine, self._lengths, self._speeds)
        steps = 0.5 * (slow[1:] + slow[:-1]) * np.diff(self._fine)
        self._times = np.concatenate(((0.0,), np.cumsum(steps)))

    def at(self, length: float) -> tuple[float, float]:
        """Speed and its derivative by arc length."""
        here = self._round(length)[1]
        if len(self._lengths) == 1:
            return float(self._speeds[0]), 0.0
        k = int(np.clip(np.searchsorted(self._lengths, here, side="right"), 1, len(self._lengths) - 1))
        slope = (self._speeds[k] - self._speeds[k - 1]) / (self._lengths[k] - self._lengths[k - 1])
        if not self._lengths[0] <= here < self._lengths[-1]:
            slope = 0.0
        return float(np.interp(here, self._lengths, self._speeds)), float(slope)

    def time(self, first: float, last: float) -> float:
        """Duration between two arc lengths; s."""
        ends = []
        for length in (first, last):
            rounds, here = self._round(length)
            ends.append(rounds * self._times[-1] + float(np.interp(here, self._fine, self._times)))
        return float(ends[1] - ends[0])

    def _round(self, length: float) -> tuple[float, float]:
        if not self._loop or self._total == 0.0:
            return 0.0, length
        rounds = float(np.floor(length / self._total))
        return rounds, length - rounds * self._total


def _checked(route: Route, preferred: Mapping[float, float]) -> list[tuple[float, float]]:
    """Keys and speeds as numbers."""
    if not isinstance(preferred, Mapping):
        raise TypeError(f"speeds is a {type(preferred).__name__}; it must map keys of the path (times) to speeds")
    pairs = []
    for key, speed in preferred.items():
        s, u = float(key), float(speed)
        if not route.s[0] <= s <= route.s[-1]:
            raise ValueError(f"speeds: there is no key at {s:g}; the path goes from {route.s[0]:g} to {route.s[-1]:g}")
        if not (isfinite(u) and u > 0.0):
            raise ValueError(f"speeds: {u:g} at key {s:g}; it must be positive (to stop at a key, use stages)")
        pairs.append((s, u))
    return pairs
