"""Ballistic correction: finds paths that fall faster than gravity permits, and the nearest ones that do not.

Contacts push and never pull, so a body falls no faster than with gravity. Noise of a millimetre at 120 keys a second
has accelerations of many times gravity, but is harmless. So the criterion is the distance of a path from the nearest
feasible one. If z̈ ≥ −a, a height exceeds the chord between two others, one r before it and one s after it, by at most
a r s / 2. A larger excess requires that one of the three moves by at least half of the difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.kernel.blas import few_blas_threads
from poise.motion.splines import Spline

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

#: corrections below the accuracy of motion capture are not made; m
NOISE = 5e-3
#: reach of chords to each side; s
_REACH = 0.5
#: keys beside the changed ones whose curve is checked: the effect of a key decays by 2 − √3 with each
_BESIDE = 12
#: maximum number of keys that are changed together: time grows with its cube
_MOST = 600
#: initial reach of changes around a violation; s
_AROUND = 0.25
#: relative tolerance of the bound
_CLOSE = 1e-6
#: a row depends on others if the squared cosine to their span differs from 1 by less than this
_DEPENDENT = 1e-12


class Fall(NamedTuple):
    """A stretch in which a path fell faster than permitted."""

    time: float
    """Time of the greatest violation; s."""
    rate: float
    """Downward acceleration; m/s²."""
    keys: tuple[int, ...]
    """Changed keys, in order of time; empty without a solution, or with too many keys for one."""
    changed: float
    """Greatest change of a key; m."""


@few_blas_threads
def without_falls(times: Floats, heights: Floats, loop: bool, most: float) -> tuple[Floats, list[Fall]]:
    """Heights (n,) (m) whose smooth curve falls at most at `most` (m/s²), and a list of the corrected stretches.

    The corrected path is the nearest feasible one, by ∫ (y − z)² dt, whose upward acceleration nowhere exceeds the
    greatest of the given path (unless there is no other), so that a slower fall does not end in an impact. Changes stay
    within a quarter of a second of violations; if that is too short, within twice as much, and so on. The last height
    of a cyclic path equals the first, plus the rise per cycle. If the whole cycle changes, its minimum stays as low as
    before, because feet are on the ground there.

    >>> times = np.arange(60) / 30
    >>> heights = np.where(times < 1.0, 1.0, 0.8)  # down by 20 cm within a frame
    >>> fresh, falls = without_falls(times, heights, False, 9.81)
    >>> [round(fall.time, 2) for fall in falls], bool(np.diff(fresh, 2).min() * 30**2 > -10.0)
    ([0.97], True)
    """
    path = _Path(times, heights, loop)
    missed = path.missed(most)
    wrong = missed > NOISE
    if not wrong.any():
        return heights, []
    reach = _AROUND
    while True:
        near = path.near(wrong, reach)
        runs = path.runs(near)
        fresh, solved = path.changed(runs, most)
        if near.all() or all(done or len(run) > _MOST for run, done in zip(runs, solved, strict=True)):
            break
        reach *= 2.0
    falls = [path.told(run, done, missed, fresh) for run, done in zip(runs, solved, strict=True)]
    return path.whole(fresh), falls


class _Path:
    """Heights at times; for a cyclic path without the last, and without the rise per cycle."""

    def __init__(self, times: Floats, heights: Floats, loop: bool) -> None:
        self.loop, self.count = loop, len(times) - 1 if loop else len(times)
        self.round = float(times[-1] - times[0])
        self.times = times[: self.count]
        self.slope = float(heights[-1] - heights[0]) / self.round if loop else 0.0
        self.heights = heights[: self.count] - self.slope * (self.times - times[0])
        whole = np.append(self.heights, self.heights[0]) if loop else self.heights
        self.push = float(Spline(times, whole, loop=loop, ends="free")(times).acceleration.max(initial=0.0))
        """Greatest upward acceleration; m/s²."""

    def whole(self, heights: Floats) -> Floats:
        """Heights for the given times."""
        if self.loop:
            heights = np.append(heights, heights[0])
        times = np.append(self.times, self.times[0] + self.round) if self.loop else self.times
        return np.asarray(heights + self.slope * (times - times[0]))

    def at(self, keys: Indices) -> Floats:
        """Times of keys, also of those in other cycles."""
        return np.asarray(self.times[keys % self.count] + self.round * (keys // self.count))

    def missed(self, most: float) -> Floats:
        """(n,) least distance by which each height, or one of two others, must move; m."""
        missed = np.zeros(self.count)
        step = self.round / max(self.count - (not self.loop), 1)
        every = np.arange(self.count)
        for far in range(1, int(min(_REACH / step, self.count)) + 2 if step > 0.0 else 1):
            middle = every if self.loop else every[far : self.count - far]
            if not len(middle):
                break
            now, before, after = self.at(middle), self.at(middle - far), self.at(middle + far)
            r, s = now - before, after - now
            low, high = self.heights[(middle - far) % self.count], self.heights[(middle + far) % self.count]
            above = self.heights[middle] - (s * low + r * high) / (r + s) - 0.5 * most * r * s
            missed[middle] = np.maximum(missed[middle], 0.5 * above)
        return missed

    def near(self, wrong: Bools, reach: float) -> Bools:
        """Keys (n,) within `reach` (s) of wrong ones."""
        where = np.flatnonzero(wrong)
        if self.loop:
            where = np.concatenate([where + k * self.count for k in (-1, 0, 1)])
        places = self.at(where)
        after = np.searchsorted(places, self.times)
        apart = [np.abs(self.times - places[np.clip(k, 0, len(places) - 1)]) for k in (after - 1, after)]
        return np.asarray(np.minimum(*apart) <= reach)

    def runs(self, near: Bools) -> list[Indices]:
        """Runs of consecutive keys in order of time; a run of a cyclic path may continue in the next cycle."""
        keys = np.arange(self.count)
        if near.all():
            return [keys]
        if self.loop:
            first = int(np.argmin(near))
            keys, near = keys + first, np.roll(near, -first)
        inside = keys[near]
        return np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)

    def changed(self, runs: list[Indices], most: float) -> tuple[Floats, list[bool]]:
        """Heights (n,) with all solvable runs changed, and a flag for each run."""
        fresh, solved = np.array(self.heights), []
        for run in runs:
            change = self._least_change(fresh, run, most) if len(run) <= _MOST else None
            if change is not None:
                fresh[run % self.count] += change
                if self.loop and len(run) == self.count:
                    fresh += self.heights.min() - fresh.min()
            solved.append(change is not None)
        return fresh, solved

    def _least_change(self, heights: Floats, run: Indices, most: float) -> Floats | None:
        """The change of a run to the nearest feasible path; the curve beside it does not get worse."""
        closed = self.loop and len(run) + 2 * _BESIDE >= self.count
        if closed:
            keys = run[0] + np.arange(self.count)
        else:
            keys = np.arange(run[0] - _BESIDE, run[-1] + _BESIDE + 1)
        if not self.loop:
            keys = keys[(keys >= 0) & (keys < self.count)]
        own = np.isin(keys, run)
        curve = _accelerations(self.at(keys), self.round if closed else None)
        now = curve @ heights[keys % self.count]
        bound = np.where(own, -most, np.minimum(-most, now))
        weight = np.gradient(self.at(keys))
        rows, cost = curve[:, own], np.diag(weight[own])
        push = np.maximum(now, self.push)
        both = np.vstack((rows, -rows)), np.concatenate((bound - now, now - push))
        change = _least(cost, *both, _CLOSE * most)
        return _least(cost, rows, bound - now, _CLOSE * most) if change is None else change

    def told(self, run: Indices, done: bool, missed: Floats, fresh: Floats) -> Fall:
        """The `Fall` of a run."""
        keys = run % self.count
        worst = int(keys[int(np.argmax(missed[keys]))])
        whole = self.at(np.arange(self.count + 1)) if self.loop else self.times
        given = np.append(self.heights, self.heights[0]) if self.loop else self.heights
        rate = -float(Spline(whole, given, loop=self.loop, ends="free")(self.times[keys]).acceleration.min())
        moved = tuple(int(key) for key in keys) if done else ()
        changed = float(np.abs(fresh[keys] - self.heights[keys]).max()) if done else 0.0
        return Fall(float(self.times[worst]), rate, moved, changed)


def _accelerations(times: Floats, round_: float | None) -> Floats:
    """The matrix (n, n) from heights to accelerations of the smooth curve at its keys; `round_` is the period (s).

    Between keys they are linear, so that a bound that holds at keys holds everywhere.
    """
    every = np.eye(len(times))
    if round_ is None:
        return Spline(times, every, ends="free")(times).acceleration
    closed = np.append(times, times[0] + round_)
    return Spline(closed, np.vstack((every, every[:1])), loop=True)(times).acceleration


def _least(cost: Floats, rows: Floats, bound: Floats, close: float) -> Floats | None:
    """The c of least cᵀ H c with A c ≥ b, or None: its multipliers by active sets (Lawson and Hanson 1974, ch. 23).

    All bounds with a locally greatest violation become active at once, which needs few iterations. After an iteration
    without progress only one does, as in the book, so that the method terminates.
    """
    if not (np.isfinite(cost).all() and np.isfinite(bound).all()):
        return None
    back = np.linalg.solve(cost, rows.T)
    both = rows @ back
    forces = np.zeros(len(bound))
    held = np.zeros(len(bound), np.bool_)
    several = True
    for _ in range(3 * len(bound)):
        short = np.where(held, -np.inf, bound - both @ forces)
        worst = int(np.argmax(short))
        if short[worst] <= close:
            break
        held[worst] = True
        if several:
            held |= _peaks(short) & (short > close)
        before = forces
        forces, held = _pushing(both, bound, forces, held)
        several = not np.array_equal(forces, before)
    change = np.asarray(back @ forces)
    met = np.isfinite(change).all() and (bound - rows @ change).max() <= 10.0 * close
    return change if met else None


def _peaks(values: Floats) -> Bools:
    """(n,) local maxima: values larger than the one before and no less than the one after."""
    around = np.concatenate(([-np.inf], values, [-np.inf]))
    return np.asarray((values > around[:-2]) & (values >= around[2:]))


def _pushing(both: Floats, bound: Floats, forces: Floats, held: Bools) -> tuple[Floats, Bools]:
    """Nonnegative multipliers that meet the active bounds; bounds with negative ones become inactive."""
    while True:
        wanted = np.zeros_like(forces)
        wanted[held] = _solved(both[np.ix_(held, held)], bound[held])
        pulls = held & (wanted <= 0.0)
        if not pulls.any():
            return wanted, held
        where = np.flatnonzero(pulls)
        shares = forces[where] / np.maximum(forces[where] - wanted[where], np.finfo(np.float64).tiny)
        least = shares.min()
        held = np.array(held)
        # each iteration deactivates at least one, so that the loop terminates
        held[where[shares <= least]] = False
        forces = np.where(held, np.maximum(forces + least * (wanted - forces), 0.0), 0.0)


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The x of M x = r, M symmetric and positive; the least of them where rows depend on each other.

    Nearly all of them do not, and are solved in a small part of the time that singular values take.
    """
    size = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(np.float64).tiny))
    try:
        factor = np.linalg.cholesky(matrix / size[:, None] / size)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right)[0])
    if (np.diagonal(factor) ** 2).min(initial=1.0) < _DEPENDENT:
        return np.asarray(np.linalg.lstsq(matrix, right)[0])
    return np.asarray(np.linalg.solve(matrix, right))
