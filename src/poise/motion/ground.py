"""Ground correction of a retargeted motion: raises it frame by frame, such that standing feet are on the floor.

Clip and character have different proportions, so that feet that stand at one height in the clip stand at heights that
differ by centimetres here. The whole body follows the standing feet, with linear interpolation in between, so that
flights have no additional acceleration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.retarget_rig import Target, shape_points
from poise.motion.retarget_source import Source
from poise.motion.rotations import rotate

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

#: a foot of a clip stands where its lowest point is lower than this above the ground around (of the leg's length), and
#: one of its points slower than this (1/s of it)
_LOW, _SLOW = 0.06, 0.3
#: the ground at a time is the height that the lower foot exceeds in all but this share of the window around it
_RARE, _AROUND = 0.1, 0.75
#: of two soles on the floor, one that is tilted by this (of the leg's length) has the weight 1/e
_TILT = 0.03
#: a foot that is higher than in most of the stance around it (s) by this share of the leg's length has the weight 1/e
_LIFTED, _LASTS, _SELDOM = 0.01, 0.25, 0.2
#: feet of clips may be below the floor by this share of the leg, as the position of their soles is unknown
_INEXACT = 0.03
#: feet that stand within this distance of the floor stand on it, beyond twice this on other objects (of the leg)
_LEVEL = 0.06
#: times at which no weight exceeds this are interpolated
_FEW = 1e-4
#: smoothing window of heights; s
_CALM = 0.05
#: tolerance of frame times; s
_ROUNDED = 1e-5
#: share of the frames in which soles of a character's own motion may be below the floor
_OWN = 0.05
#: points of a foot that are within this of its lowest, at rest, belong to the sole; m
_SOLE = 0.01


def rises(source: Source, target: Target, turns: list[Floats], root: Floats) -> Floats:
    """(frames,) rise of a motion, such that its soles are on the floor at height 0 while the clip's feet stand; m.

    Objects above the floor that the clip's feet stand on, like stairs, keep their height. If no foot ever stands, the
    lowest point of the whole body is at 0 in all but few frames.
    """
    times, (stands, off) = source.clip.times, _standing(source)
    step = {side: _step(height) for side, height in off.items()}
    feet = {side: foot for side, foot in _feet(target, turns, root).items() if side in stands}
    weights, total = np.zeros(len(times)), np.zeros(len(times))
    for side, (low, tilt) in feet.items():
        weight = stands[side] * (1e-3 + np.exp(-((tilt / (_TILT * target.leg_length())) ** 2)))
        weights += weight
        total += weight * (step[side] * target.leg_length() - low)
    held = np.flatnonzero(weights > _FEW)
    if not len(held):
        lowest = _lowest_points(target, turns, root)
        return np.full(len(times), -float(np.quantile(lowest, _RARE) if len(times) > 2 else lowest.min()))
    return _even(times, held, total[held] / weights[held], source.clip.loop)


def sinks(source: Source) -> dict[str, Floats]:
    """By side: (frames,) heights of a clip's own feet below its floor, beyond the uncertainty; in legs, 0 or less."""
    return {side: np.minimum(height + _INEXACT, 0.0) for side, height in _standing(source)[1].items()}


def _standing(source: Source) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Weight from 0 to 1 with which each foot of a clip stands, and its height above the floor, in leg lengths."""
    times, leg = source.clip.times, source.leg_length()
    feet = {side: source.foot(side) for side in "lr"}
    lows = {side: points[..., 2].min(axis=0) / leg for side, points in feet.items() if len(points)}
    if not lows or len(times) < 2:
        return {side: np.ones(len(times)) for side in lows}, {side: np.zeros(len(times)) for side in lows}
    ground = _around(times, np.min(list(lows.values()), axis=0))
    stands = {}
    for side, low in lows.items():
        near = (low < ground + _LOW) & (_slowest(times, feet[side]) < _SLOW * leg)
        lifted = np.maximum(low - _lasting(times, low, near), 0.0)
        stands[side] = near * np.exp(-((lifted / _LIFTED) ** 2))
    floor = _floor(np.concatenate([low[stands[side] > 0.5] for side, low in lows.items()]))
    return stands, {side: low - floor for side, low in lows.items()}


def _even(times: Floats, held: Indices, values: Floats, loop: bool) -> Floats:
    """Values at some of the times, interpolated linearly to all of them and smoothed; periodic for a cyclic clip."""
    if not loop or len(times) < 3:
        return smoothed(times, np.interp(times, times[held], values))
    last, length = len(times) - 1, times[-1] - times[0]
    keep = held < last
    held, values = held[keep], values[keep]
    moments = np.concatenate([times[:last] + k * length for k in (-1, 0, 1)])
    known = np.concatenate([times[held] + k * length for k in (-1, 0, 1)])
    round_trip = smoothed(moments, np.interp(moments, known, np.tile(values, 3)))[last : 2 * last]
    return np.append(round_trip, round_trip[0])


def level_of(target: Target, turns: list[Floats], root: Floats) -> float:
    """The height that the soles are seldom below; m."""
    feet = _feet(target, turns, root)
    lowest = np.min([low for low, _ in feet.values()], axis=0) if feet else _lowest_points(target, turns, root)
    return float(np.quantile(lowest, _OWN))


def _feet(target: Target, turns: list[Floats], root: Floats) -> dict[str, tuple[Floats, Floats]]:
    """For each foot the height of its lowest point, and the height of the sole above that; (frames,) m."""
    _, places = target.place(turns, root)
    found = {}
    for side in "lr":
        part = f"foot_{side}" if f"foot_{side}" in target.parts else f"shank_{side}"
        if part not in target.parts:
            continue
        link = target.parts[part]
        shapes = shape_points(target.model, link) or [(np.zeros(3), 0.0)]
        rest = np.array([rotate(target.rest_quats[link], point)[2] - radius for point, radius in shapes])
        heights = np.array([places[link][:, 2] + rotate(turns[link], point)[:, 2] - radius for point, radius in shapes])
        sole = heights[rest <= rest.min() + _SOLE]
        found[side] = heights.min(axis=0), np.ptp(sole, axis=0)
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
    """(frames,) speed of the slowest of points (k, frames, 3); for each point the greater of before and after."""
    steps = np.linalg.norm(np.diff(points, axis=1), axis=2) / np.diff(times)
    before, after = np.concatenate((steps[:, :1], steps), axis=1), np.concatenate((steps, steps[:, -1:]), axis=1)
    return np.asarray(np.maximum(before, after).min(axis=0))


def _around(times: Floats, heights: Floats) -> Floats:
    """(frames,) a height that few of the frames around are below."""
    edges = _windows(times, _AROUND)
    return np.array([np.quantile(heights[a:b], _RARE) for a, b in zip(*edges, strict=True)])


def _windows(times: Floats, reach: float) -> tuple[Indices, Indices]:
    """First and last frames, the latter excluded, within `reach` seconds of each.

    Frames at exactly that distance are included regardless of rounding.
    """
    near = reach + _ROUNDED
    return np.searchsorted(times, times - near), np.searchsorted(times, times + near, side="right")


def _lasting(times: Floats, heights: Floats, stands: Bools) -> Floats:
    """(frames,) a height that a foot is seldom below while it stands, shortly before and after."""
    edges = _windows(times, _LASTS)
    out = np.array(heights)
    for k in np.flatnonzero(stands):
        near = slice(edges[0][k], edges[1][k])
        out[k] = np.quantile(heights[near][stands[near]], _SELDOM)
    return out


def _floor(heights: Floats) -> float:
    """The lowest of the heights that feet often stand at."""
    if not len(heights):
        return 0.0
    return float(np.median(heights[np.abs(heights - np.quantile(heights, _RARE)) <= _LEVEL]))


def _step(off: Floats) -> Floats:
    """Height above the floor of the object that a foot stands on: 0 if it is small."""
    share = np.clip(np.abs(off) / _LEVEL - 1.0, 0.0, 1.0)
    return np.asarray(off * share * share * (3.0 - 2.0 * share))


def smoothed(times: Floats, values: Floats, calm: float = _CALM) -> Floats:
    """Values (frames, ...) smoothed by a Gaussian of the standard deviation `calm`; s."""
    out = np.empty(np.shape(values))
    edges = _windows(times, 4.0 * calm)
    for k, time in enumerate(times):
        near = slice(edges[0][k], edges[1][k])
        share = np.exp(-0.5 * ((times[near] - time) / calm) ** 2)
        out[k] = share @ values[near] / share.sum()
    return out
