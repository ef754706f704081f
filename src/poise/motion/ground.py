"""How far a retargeted motion must be raised, frame by frame, for the feet that stand to be on the floor.

Bones of a clip and of a character have other proportions, so that feet that stand at one height in the clip stand at
heights that differ by centimetres here. The whole figure follows the feet that stand, evenly in between, so that
nothing is added to the acceleration of a flight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.figures import Target, shape_points
from poise.motion.rotations import rotate

Floats = NDArray[np.float64]

#: a foot stands where its sole is lower than this above the ground around (of the leg's length), and a point of it
#: slower than this (1/s of the leg's length)
_LOW, _SLOW = 0.06, 0.3
#: the ground around a moment is what the lower foot is above in all but this share of the seconds before and after
_RARE, _AROUND = 0.1, 0.75
#: of two feet that stand, one that is tilted by this (of the leg's length) counts for 1/e
_TILT = 0.03
#: feet that stand no farther than this from the floor stand on it, and beyond twice this on something else (of the leg)
_LEVEL = 0.06
#: heights are smoothed over this; s
_CALM = 0.05
#: points of a foot that are within this of its lowest, at rest, belong to the sole; m
_SOLE = 0.01


def rises(target: Target, times: Floats, turns: list[Floats], root: Floats, loop: bool) -> Floats:
    """(frames,) how far to raise a motion, for its soles to be at height 0 while they stand; m.

    Where no foot ever stands, the lowest point of the whole figure is at 0 in all but few frames.
    """
    if loop and len(times) > 2:
        # rounds before and after: feet know nothing of the seam
        last = len(times) - 1
        length, stride = times[-1] - times[0], root[-1] - root[0]
        rounds = (-1, 0, 1)
        moments = np.concatenate([times[:last] + k * length for k in rounds])
        paths = np.concatenate([root[:last] + k * stride * (1.0, 1.0, 0.0) for k in rounds])
        middle = rises(target, moments, [np.tile(turn[:last], (3, 1)) for turn in turns], paths, False)[last : 2 * last]
        return np.append(middle, middle[0])
    feet = _feet(target, turns, root)
    lowest = np.min([low for _, low, _ in feet], axis=0) if feet else np.zeros(len(times))
    if len(times) < 3 or not feet:
        return np.full(len(times), -float(np.min(lowest if feet else _lowest_points(target, turns, root))))
    leg = target.leg_length()
    ground = _around(times, lowest)
    weights, total = np.zeros(len(times)), np.zeros(len(times))
    for points, low, tilt in feet:
        stands = (low < ground + _LOW * leg) & (_slowest(times, points) < _SLOW * leg)
        weight = stands * (1e-3 + np.exp(-((tilt / (_TILT * leg)) ** 2)))
        weights += weight
        total += weight * low
    stands = np.flatnonzero(weights)
    if not len(stands):
        return np.full(len(times), -float(np.quantile(_lowest_points(target, turns, root), _RARE)))
    heights = _levelled(total[stands] / weights[stands], leg)
    return _smoothed(times, np.interp(times, times[stands], -heights))


def _feet(target: Target, turns: list[Floats], root: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """For each foot the points of its sole (k, frames, 3), the height of the lowest and how far the highest is above."""
    _, places = target.place(turns, root)
    found = []
    for side in "lr":
        part = f"foot_{side}" if f"foot_{side}" in target.parts else f"shank_{side}"
        if part not in target.parts:
            continue
        link = target.parts[part]
        shapes = shape_points(target.model, link) or [(np.zeros(3), 0.0)]
        rest = np.array([rotate(target.rest_quats[link], point)[2] - radius for point, radius in shapes])
        sole = [shapes[k] for k in np.flatnonzero(rest <= rest.min() + _SOLE)]
        points = np.array([places[link] + rotate(turns[link], point) for point, _ in sole])
        every = np.array([places[link][:, 2] + rotate(turns[link], point)[:, 2] - radius for point, radius in shapes])
        heights = points[..., 2] - np.array([radius for _, radius in sole])[:, None]
        found.append((points, every.min(axis=0), np.ptp(heights, axis=0)))
    return found


def _lowest_points(target: Target, turns: list[Floats], root: Floats) -> Floats:
    """(frames,) height of the lowest point of all shapes of the character; m."""
    _, places = target.place(turns, root)
    lowest = np.array(root[:, 2])
    first = True
    for link in range(target.model.n_links):
        if target.model.link_root[link] != target.root:
            continue
        for point, radius in shape_points(target.model, link):
            height = places[link][:, 2] + rotate(turns[link], point)[:, 2] - radius
            lowest = height if first else np.minimum(lowest, height)
            first = False
    return lowest


def _slowest(times: Floats, points: Floats) -> Floats:
    """(frames,) speed of the slowest of some points (k, frames, 3); of each the faster one of before and after."""
    steps = np.linalg.norm(np.diff(points, axis=1), axis=2) / np.diff(times)
    before, after = np.concatenate((steps[:, :1], steps), axis=1), np.concatenate((steps, steps[:, -1:]), axis=1)
    return np.asarray(np.maximum(before, after).min(axis=0))


def _around(times: Floats, heights: Floats) -> Floats:
    """(frames,) a height that few of the frames around are below."""
    edges = np.searchsorted(times, times - _AROUND), np.searchsorted(times, times + _AROUND, side="right")
    return np.array([np.quantile(heights[a:b], _RARE) for a, b in zip(*edges, strict=True)])


def _levelled(heights: Floats, leg: float) -> Floats:
    """Heights of feet that stand, those that stand on something higher or lower than the floor being that of the floor."""
    low = np.quantile(heights, _RARE)
    floor = float(np.median(heights[np.abs(heights - low) <= _LEVEL * leg]))
    off = heights - floor
    share = np.clip(np.abs(off) / (_LEVEL * leg) - 1.0, 0.0, 1.0)
    return np.asarray(floor + off * (1.0 - share * share * (3.0 - 2.0 * share)))


def _smoothed(times: Floats, values: Floats) -> Floats:
    out = np.empty(len(times))
    for k, time in enumerate(times):
        near = slice(*np.searchsorted(times, (time - 4.0 * _CALM, time + 4.0 * _CALM)))
        share = np.exp(-0.5 * ((times[near] - time) / _CALM) ** 2)
        out[k] = share @ values[near] / share.sum()
    return out
