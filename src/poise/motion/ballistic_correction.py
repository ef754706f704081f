"""Paths that fall faster than a body can, and the nearest ones that do not.

Contacts push and never pull: what is let go falls no faster than gravity makes it. Noise of a millimetre at 120 keys a
second has accelerations of many times gravity all the same, and nobody minds. So a path is judged by how far it is from
any that can be. If z̈ ≥ −a, a height is above the chord between two others, one r before it and one s after it, by no
more than a r s / 2. What it is higher than that takes a change of half as much at least, of one of the three.
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

#: changes that would do and are not worth it, as captured motion is no better than that; m
NOISE = 5e-3
#: chords reach so far to each side; s
_REACH = 0.5
#: keys beside those that change whose curve is looked at: what a key does to it fades by 2 − √3 with each
_BESIDE = 12
#: keys that are changed together, at most: time grows with the cube of their number
_MOST = 600
#: how far from what is wrong a path is changed at first; s
_AROUND = 0.25
#: of the bound, by which it may be missed
_CLOSE = 1e-6
#: squared cosine to what other rows span, short of one by less than this: a row that depends on them
_DEPENDENT = 1e-12


class Fall(NamedTuple):
    """A stretch in which a path fell faster than it can."""

    time: float
    """Where it is farthest from what can be; s."""
    rate: float
    """How fast it falls; m/s²."""
    keys: tuple[int, ...]
    """What was changed, in order of time; nothing where there is no answer, or too many keys for one."""
    changed: float
    """How far a key was moved, at most; m."""


@few_blas_threads
def without_falls(times: Floats, heights: Floats, loop: bool, most: float) -> tuple[Floats, list[Fall]]:
    """Heights (n,) (m) whose smooth curve falls at `most` (m/s²) where it fell faster, and a list of these stretches.

    A changed path is the nearest that does it, by ∫ (y − z)² dt, and that is pushed up no harder than the given one is
    anywhere: else who falls no faster would have to be stopped at once. (Harder, if there is no other.) Nothing changes
    where nothing within a quarter of a second is wrong; if that is too short to come down in, within twice as much, and
    so on. A loop's last height is its first again, or what a round goes up above it. One that changes all round is as
    low as before where it is lowest, as feet are down there.

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
    """Heights at times; of a loop without the last, and without what a round goes up."""

    def __init__(self, times: Floats, heights: Floats, loop: bool) -> None:
        self.loop, self.count = loop, len(times) - 1 if loop else len(times)
        self.round = float(times[-1] - times[0])
        self.times = times[: self.count]
        self.slope = float(heights[-1] - heights[0]) / self.round if loop else 0.0
        self.heights = heights[: self.count] - self.slope * (self.times - times[0])
        whole = np.append(self.heights, self.heights[0]) if loop else self.heights
        self.push = float(Spline(times, whole, loop=loop, ends="free")(times).acceleration.max(initial=0.0))
        """How hard it is pushed up, at most; m/s²."""

    def whole(self, heights: Floats) -> Floats:
        """Heights for the times that were given."""
        if self.loop:
            heights = np.append(heights, heights[0])
        times = np.append(self.times, self.times[0] + self.round) if self.loop else self.times
        return np.asarray(heights + self.slope * (times - times[0]))

    def at(self, keys: Indices) -> Floats:
        """Times of keys; those of other rounds of a loop too."""
        return np.asarray(self.times[keys % self.count] + self.round * (keys // self.count))

    def missed(self, most: float) -> Floats:
        """How far (n,) each height, or one of two others, has to move at least; m."""
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
        """Keys (n,) that are no farther from wrong ones than `reach` (s)."""
        where = np.flatnonzero(wrong)
        if self.loop:
            where = np.concatenate([where + k * self.count for k in (-1, 0, 1)])
        places = self.at(where)
        after = np.searchsorted(places, self.times)
        apart = [np.abs(self.times - places[np.clip(k, 0, len(places) - 1)]) for k in (after - 1, after)]
        return np.asarray(np.minimum(*apart) <= reach)

    def runs(self, near: Bools) -> list[Indices]:
        """Keys in a row, each row in order of time: that of a loop may go on in the next round."""
        keys = np.arange(self.count)
        if near.all():
            return [keys]
        if self.loop:
            first = int(np.argmin(near))
            keys, near = keys + first, np.roll(near, -first)
        inside = keys[near]
        return np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)

    def changed(self, runs: list[Indices], most: float) -> tuple[Floats, list[bool]]:
        """Heights (n,) with all runs changed that can be, and which these are."""
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
        """What takes a run to the nearest path; the curve beside it gets no worse than it is."""
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
        """A run as it is listed."""
        keys = run % self.count
        worst = int(keys[int(np.argmax(missed[keys]))])
        whole = self.at(np.arange(self.count + 1)) if self.loop else self.times
        given = np.append(self.heights, self.heights[0]) if self.loop else self.heights
        rate = -float(Spline(whole, given, loop=self.loop, ends="free")(self.times[keys]).acceleration.min())
        moved = tuple(int(key) for key in keys) if done else ()
        changed = float(np.abs(fresh[keys] - self.heights[keys]).max()) if done else 0.0
        return Fall(float(self.times[worst]), rate, moved, changed)


def _accelerations(times: Floats, round_: float | None) -> Floats:
    """The matrix (n, n) that gives accelerations of the smooth curve at its keys; `round_` is a loop's (s).

    Between keys they are linear, so that a bound that holds at keys holds everywhere.
    """
    every = np.eye(len(times))
    if round_ is None:
        return Spline(times, every, ends="free")(times).acceleration
    closed = np.append(times, times[0] + round_)
    return Spline(closed, np.vstack((every, every[:1])), loop=True)(times).acceleration


def _least(cost: Floats, rows: Floats, bound: Floats, close: float) -> Floats | None:
    """The c of least cᵀ H c with A c ≥ b, or None: its multipliers by active sets (Lawson and Hanson 1974, ch. 23).

    All bounds that are missed by more than those beside them are held at once, which takes few rounds. After a round
    that moved nothing it is one as in the book, so that there is an end to it.
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
    """Which values (n,) are larger than the one before and no less than the one after."""
    around = np.concatenate(([-np.inf], values, [-np.inf]))
    return np.asarray((values > around[:-2]) & (values >= around[2:]))


def _pushing(both: Floats, bound: Floats, forces: Floats, held: Bools) -> tuple[Floats, Bools]:
    """Multipliers that meet the bounds that are held, and only push: those that would pull are let go."""
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
        # one at least is let go in each round, so that there is an end to it
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
