"""When feet stand in a motion, and where: what planting needs to know before it moves anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.measures import bodies
from poise.model.model import Model
from poise.motion.figures import Target, shape_points
from poise.motion.rotations import (
    quat_conjugate,
    quat_exp,
    quat_from_matrix,
    quat_log,
    quat_multiply,
    rotate,
)

Floats = NDArray[np.float64]
Span = tuple[int, int]
"""First and last frame."""

HEIGHT, SPEED = 0.06, 0.6
"""A foot stands where its sole is lower than this above its lowest (of the leg's length) and slower than this (1/s)."""
TILT, ROLL = 0.12, 0.04
"""But only if one end of it comes to be no higher than the other by this, and while it is no higher than that by this;
of the leg's length. Feet whose ankles do not bend far enough stand tilted in some clips."""
AROUND = 0.75
"""The lowest is that of so many seconds before and after: the ground of many clips is not level."""
CALM = 0.1
"""Over this the heights of stances are smoothed before the whole body follows them; s."""
SHORTEST, GAP = 0.06, 0.06
"""Stances are no shorter, gaps between them that are shorter are none; s."""
ASTRAY = 0.05
"""But not if the foot has moved on by this, of the leg's length."""
SOLE = 0.01
"""Points of a foot that are within this of its lowest, at rest, belong to the sole; m."""


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot: its sole, at rest flat on the ground."""

    body: int
    points: Floats
    """(k, 3) of the sole in the body's frame; m."""
    radii: Floats
    """(k,) of what is round there: that much of it is below the points; m."""
    centre: Floats
    """(3,) middle of the sole; m."""
    tips: Floats
    """(2, 3) middles of the sole's two ends; m."""
    rest: Floats
    """(4,) orientation with the sole flat."""

    def lowest(self, place: Floats, quat: Floats) -> Floats:
        """Height of the sole's lowest point, for positions of its middle (…, 3) and orientations; m."""
        return np.asarray(self.heights(place, quat).min(axis=-1))

    def heights(self, place: Floats, quat: Floats) -> Floats:
        """(…, k) heights of the sole's points."""
        pairs = zip(self.points, self.radii, strict=True)
        ends = [rotate(quat, point - self.centre)[..., 2] - radius for point, radius in pairs]
        return np.asarray(place[..., 2:3] + np.stack(ends, axis=-1))


@dataclass(frozen=True, eq=False)
class Track:
    """How a foot moves over a clip."""

    place: Floats
    """(frames, 3) of the middle of the sole; m."""
    quat: Floats
    """(frames, 4)"""


def find_feet(model: Model) -> tuple[dict[str, Foot], float, int]:
    """Feet of a character by side, the length of its legs (m), and the first coordinate of its root."""
    figure = Target(model)
    feet = {}
    for side in ("l", "r"):
        link = figure.parts.get(f"foot_{side}")
        points = shape_points(model, link) if link is not None else []
        if link is None or not points:
            continue
        rest = figure.rest_quats[link]
        low = np.array([rotate(rest, point)[2] - radius for point, radius in points])
        sole = [points[k] for k in np.flatnonzero(low <= low.min() + SOLE)]
        down = rotate(quat_conjugate(rest), np.array((0.0, 0.0, -1.0)))
        places, radii = np.array([point for point, _ in sole]), np.array([radius for _, radius in sole])
        ground = places + radii[:, None] * down
        centre = ground.mean(axis=0)
        along = np.linalg.svd(ground - centre)[2][0]
        front = (ground - centre) @ along >= 0.0
        tips = np.array([ground[front].mean(axis=0), ground[~front].mean(axis=0) if not front.all() else centre])
        feet[side] = Foot(int(model.link_body[link]), places, radii, centre, tips, np.array(rest))
    return feet, figure.leg_length(), int(model.joint_q_start[figure.joint[figure.root]])


def follow(model: Model, q: Floats, foot: Foot) -> Track:
    """How a foot moves over coordinates (frames, nq)."""
    seen = bodies(model, q)
    quat = np.array([quat_from_matrix(R) for R in seen.rotation[:, foot.body]])
    return Track(seen.position[:, foot.body] + rotate(quat, foot.centre), quat)


def find_stances(times: Floats, track: Track, foot: Foot, leg: float) -> list[Span]:
    """Frames in which a foot stands: low, flat and slow."""
    if len(times) < 3:
        return []
    heights = foot.heights(track.place, track.quat)
    low, high = heights.min(axis=1), heights.max(axis=1)
    speed = np.linalg.norm(np.gradient(track.place, times, axis=0), axis=1)
    window = np.searchsorted(times, times - AROUND), np.searchsorted(times, times + AROUND, side="right")
    ground = np.array([low[a:b].min() for a, b in zip(*window, strict=True)])
    stands = (low < ground + HEIGHT * leg) & (speed < SPEED * leg)
    spans: list[Span] = []
    for first, last in _runs(stands):
        tilt = (high - low)[first : last + 1]
        if tilt.min() < TILT * leg:
            spans += [(first + a, first + b) for a, b in _runs(tilt < tilt.min() + ROLL * leg)]
    joined: list[Span] = []
    for span in spans:
        if joined and _one(times, track, joined[-1], span, leg):
            span = (joined.pop()[0], span[1])
        joined.append(span)
    return [span for span in joined if times[span[1]] - times[span[0]] >= SHORTEST]


def _runs(flags: NDArray[np.bool_]) -> list[Span]:
    """Where flags are up."""
    edges = np.flatnonzero(np.diff(np.concatenate(((0,), flags.astype(np.int8), (0,)))))
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def _one(times: Floats, track: Track, before: Span, after: Span, leg: float) -> bool:
    """Whether two stances are one."""
    way = track.place[after[0]] - track.place[before[1]]
    return bool(times[after[0]] - times[before[1]] < GAP and np.linalg.norm(way) < ASTRAY * leg)


def sinking(times: Floats, tracks: Sequence[Track], spans: Sequence[Sequence[Span]], floor: float) -> Floats:
    """(frames,) how far the whole body has to rise, for the feet that stand to be on the floor on the mean; m.

    Between stances it goes on evenly. It is smoothed, as feet come and go.
    """
    total, count = np.zeros(len(times)), np.zeros(len(times))
    for track, own in zip(tracks, spans, strict=True):
        for first, last in own:
            here = slice(first, last + 1)
            total[here] += floor - track.place[here, 2].mean()
            count[here] += 1.0
    stands = np.flatnonzero(count)
    if not len(stands):
        return np.zeros(len(times))
    rise = np.interp(times, times[stands], total[stands] / count[stands])
    out = np.empty(len(times))
    for k, time in enumerate(times):
        near = slice(*np.searchsorted(times, (time - 4.0 * CALM, time + 4.0 * CALM)))
        share = np.exp(-0.5 * ((times[near] - time) / CALM) ** 2)
        out[k] = share @ rise[near] / share.sum()
    return out


def planted(
    times: Floats,
    track: Track,
    foot: Foot,
    spans: list[Span],
    *,
    floor: float,
    blend: float,
    leg: float,
    clearance: float,
) -> Track:
    """Where a foot shall be: flat and still in its stances, as it was elsewhere, and never below the floor.

    Before and after a stance it rolls over one of its ends, as long as that end is slow. What all this changes fades
    as a cubic that goes on with the speed it had. In the middle of a swing the sole is off the floor by the clearance.
    """
    moves, turns = np.zeros((len(times), 3)), np.zeros((len(times), 3))
    flats = []
    for first, last in spans:
        here = slice(first, last + 1)
        place = track.place[here].mean(axis=0)
        place[2] = floor
        moves[here] = place - track.place[here]
        turned = quat_multiply(track.quat[here], quat_conjugate(foot.rest))
        turned = turned * np.where(turned @ turned[0] < 0.0, -1.0, 1.0)[:, None]
        mean = turned.mean(axis=0)
        flat = quat_multiply(quat_exp((0.0, 0.0, 2.0 * np.arctan2(mean[3], mean[0]))), foot.rest)
        turns[here] = quat_log(quat_multiply(flat, quat_conjugate(track.quat[here])))
        flats.append((place, flat))
    _fade(times, turns, spans, blend)
    quat = quat_multiply(quat_exp(turns), track.quat)
    wide: list[Span] = []
    for k, (first, last) in enumerate(spans):
        after = spans[k + 1][0] - 1 if k + 1 < len(spans) else len(times) - 1
        ends = []
        for edge, way, stop in ((first, -1, wide[-1][1] + 1 if wide else 0), (last, 1, after)):
            frames, tip = _roll(times, track, foot, edge, way, stop, leg)
            arm = foot.tips[tip] - foot.centre
            pin = flats[k][0] + rotate(flats[k][1], arm)
            moves[frames] = pin - rotate(quat[frames], arm) - track.place[frames]
            ends.append(int(frames[-1]) if len(frames) else edge)
        wide.append((ends[0], ends[1]))
    _fade(times, moves, wide, blend)
    place = track.place + moves
    place[:, 2] += np.maximum(floor - foot.lowest(place, quat), 0.0)
    if wide:
        place[:, 2] += _lifts(times, wide, foot.lowest(place, quat) - floor, clearance, blend)
    return Track(place, quat)


def _lifts(times: Floats, stances: list[Span], height: Floats, clearance: float, blend: float) -> Floats:
    """(frames,) what a sole has to be lifted by between stances, to be off the floor by the clearance on their way.

    Over a swing, u from −1 to 1, it is a share of (1 − u⁴)²: up soon and down late, as heels are still fast shortly
    before they strike, but without a jump of speed. The least such lift is at most the clearance. Before the first
    stance and after the last one it is half of that.
    """
    lift = np.zeros(len(times))
    starts = [-1, *(last for _, last in stances)]
    ends = [*(first for first, _ in stances), len(times)]
    for a, b in zip(starts, ends, strict=True):
        frames = np.arange(a + 1, b)
        if not len(frames):
            continue
        start = times[a] if a >= 0 else 2.0 * times[0] - times[b]
        end = times[b] if b < len(times) else 2.0 * times[-1] - times[a]
        bump = (1.0 - (2.0 * (times[frames] - start) / (end - start) - 1.0) ** 4) ** 2
        most = clearance * min(1.0, (end - start) / blend)
        need = np.maximum(most * bump - height[frames], 0.0)
        lift[frames] = bump * float((need / np.maximum(bump, 1e-9)).max())
    return lift


def _roll(
    times: Floats, track: Track, foot: Foot, edge: int, way: int, stop: int, leg: float
) -> tuple[NDArray[np.int64], int]:
    """Frames beyond an edge of a stance in which an end of the sole is slow, and which end that is."""
    frames = np.arange(edge + way, stop + way, way)
    if not len(frames) or len(times) < 3:
        return frames[:0], 0
    best = (frames[:0], 0)
    for tip in range(2):
        path = track.place + rotate(track.quat, foot.tips[tip] - foot.centre)
        speed = np.linalg.norm(np.gradient(path, times, axis=0), axis=1)[frames]
        fast = np.flatnonzero(speed >= SPEED * leg)
        slow = frames[: int(fast[0])] if len(fast) else frames
        if len(slow) > len(best[0]):
            best = (slow, tip)
    return best


def _fade(times: Floats, values: Floats, spans: list[Span], blend: float) -> None:
    """Let corrections fade before, between and after stances."""
    if not spans:
        return
    ends = [(span, *_slopes(times, values, span)) for span in spans]
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
    """How fast a correction changes at both ends of a stance."""
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
