"""Contact phases of a motion: when and where feet stand; the input of footskate clean-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.control.stance_blending import Span, fade
from poise.dynamics.state_queries import bodies
from poise.model.model import Model
from poise.motion.retarget_rig import Target, shape_points
from poise.motion.rotations import (
    quat_conjugate,
    quat_exp,
    quat_from_matrix,
    quat_log,
    quat_multiply,
    rotate,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HEIGHT, SPEED = 0.06, 0.6
"""A foot stands where its sole is lower than this above its lowest (of the leg's length) and slower than this (1/s)."""
TILT, ROLL = 0.12, 0.04
"""Height difference over a sole: in a stance it is within ROLL of its minimum, and the minimum is less than TILT; of
the leg's length. Feet whose ankles do not bend far enough stand tilted in some clips."""
AROUND = 0.75
"""The lowest height is taken over this time before and after, since the ground of many clips is not level; s."""
CALM = 0.1
"""Window over which the heights of stances are smoothed before the whole body follows them; s."""
SHORTEST, GAP = 0.06, 0.06
"""Minimum duration of a stance; shorter gaps between stances are closed; s."""
ASTRAY = 0.05
"""A gap stays open if the foot moved by this in it; of the leg's length."""
MOMENT = 1.0 / 30.0
"""Half window of the whole body's accelerations, in which a millimetre of noise is 0.2 g; s."""
GRAVITY = 9.81
BEHIND = 0.25
"""Greatest speed of a supporting foot along the ground, as a share of the whole body's speed."""
SOLE = 0.01
"""Points of a foot that are within this of its lowest, at rest, belong to the sole; m."""


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot: its sole, at rest flat on the ground."""

    body: int
    points: Floats
    """(k, 3) of the sole in the body's frame; m."""
    radii: Floats
    """(k,) radii of the shapes there: the surface is this far below the points; m."""
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
    """Motion of a foot over a clip."""

    place: Floats
    """(frames, 3) position of the middle of the sole; m."""
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
    """Motion of a foot over coordinates (frames, nq)."""
    seen = bodies(model, q)
    quat = np.array([quat_from_matrix(R) for R in seen.rotation[:, foot.body]])
    return Track(seen.position[:, foot.body] + rotate(quat, foot.centre), quat)


@dataclass(frozen=True, eq=False)
class Wish(Track):
    """Target motion of a foot."""

    grip: Floats
    """(frames, 3) the point of the sole at the target, from its middle, in the body's axes; m."""
    loose: Bools
    """(frames,) whether the nearest stance is never flat for long: the foot's orientation then has the least weight."""


class Going(NamedTuple):
    """Gait of a character."""

    speed: Floats
    """(frames,) speed of its centre of mass along the ground; m/s."""
    held: Bools
    """(frames,) whether it is supported: its acceleration is nearer to standing than to free fall."""
    aloft: Bools
    """(frames,) whether no foot is slow."""


def centre_of_mass(model: Model, q: Floats, foot: Foot) -> Floats:
    """(frames, 3) centre of mass of the character that a foot belongs to, over coordinates (frames, nq); m."""
    own = (model.body_link >= 0) & (model.link_root[model.body_link] == model.link_root[model.body_link[foot.body]])
    mass = np.where(own, model.body_mass, 0.0) / model.body_mass[own].sum()
    seen = bodies(model, q)
    centres = seen.position + np.einsum("fbij,bj->fbi", seen.rotation, model.body_com)
    return np.asarray(np.einsum("b,fbk->fk", mass, centres))


def going(times: Floats, centre: Floats, feet: Sequence[Track], leg: float) -> Going:
    """Gait of a character, from its centre of mass (frames, 3) and its feet."""
    before, now, after = (np.interp(times + way * MOMENT, times, centre[:, 2]) for way in (-1, 0, 1))
    held = before - 2.0 * now + after > -0.5 * GRAVITY * MOMENT**2
    if len(times) < 2:
        return Going(np.zeros(len(times)), held, ~held)
    aloft = np.all([_speed(times, track.place) >= SPEED * leg for track in feet], axis=0)
    return Going(_speed(times, centre[:, :2]), held, np.asarray(aloft))


def find_stances(times: Floats, track: Track, foot: Foot, leg: float, gait: Going) -> list[Span]:
    """Frames in which a foot stands: low, flat and slow. A step between two flights has at least its flattest frame."""
    if len(times) < 3:
        return []
    heights = foot.heights(track.place, track.quat)
    tilt = heights.max(axis=1) - heights.min(axis=1)
    stands = _is_low(times, heights.min(axis=1), leg) & (_speed(times, track.place) < SPEED * leg)
    spans: list[Span] = []
    for first, last in _runs(stands):
        least = tilt[first : last + 1].min()
        if least < TILT * leg:
            spans += [(first + a, first + b) for a, b in _runs(tilt[first : last + 1] < least + ROLL * leg)]
    lasting = [span for span in _joined(times, track, spans, leg) if _lasts(times, span)]
    bears = np.asarray(bearing(times, track, foot, leg, gait).any(axis=0))
    return sorted(lasting + _hops(times, tilt, bears, gait, lasting, leg))


def _hops(times: Floats, tilt: Floats, bears: Bools, gait: Going, lasting: list[Span], leg: float) -> list[Span]:
    """Flattest frames of steps between two flights in which a foot supports the body without a stance."""
    flights = [(first, last) for first, last in _runs(~gait.held) if gait.aloft[first : last + 1].any()]
    hops = []
    for (_, before), (after, _) in pairwise(flights):
        if any(first < after and last > before for first, last in lasting):
            continue
        steps = [(before + 1 + a, before + 1 + b) for a, b in _runs(bears[before + 1 : after])]
        if steps := [span for span in steps if _lasts(times, span)]:
            first, last = max(steps, key=lambda span: times[span[1]] - times[span[0]])
            flattest = first + int(np.argmin(tilt[first : last + 1]))
            hops += [(flattest, flattest)] if tilt[flattest] < TILT * leg else []
    return hops


def _lasts(times: Floats, span: Span) -> bool:
    return bool(times[span[1]] - times[span[0]] >= SHORTEST)


def bearing(times: Floats, track: Track, foot: Foot, leg: float, gait: Going) -> Bools:
    """(2, frames) whether an end of the sole supports the character: the lower end, low, and behind the body.

    The end may be rising nevertheless, if a clip pushes off above the ground.
    """
    low = gait.held & _is_low(times, foot.lowest(track.place, track.quat), leg)
    slow = np.maximum(SPEED * leg, BEHIND * gait.speed)
    paths = [track.place + rotate(track.quat, tip - foot.centre) for tip in foot.tips]
    first = paths[0][:, 2] <= paths[1][:, 2]
    pairs = zip(paths, (first, ~first), strict=True)
    return np.array([low & lower & (_speed(times, path[:, :2]) < slow) for path, lower in pairs])


def _is_low(times: Floats, low: Floats, leg: float) -> Bools:
    """Whether a sole is near its lowest height before and after."""
    window = np.searchsorted(times, times - AROUND), np.searchsorted(times, times + AROUND, side="right")
    ground = np.array([low[a:b].min() for a, b in zip(*window, strict=True)])
    return np.asarray(low < ground + HEIGHT * leg)


def _speed(times: Floats, path: Floats) -> Floats:
    return np.asarray(np.linalg.norm(np.gradient(path, times, axis=0), axis=1))


def _joined(times: Floats, track: Track, spans: list[Span], leg: float) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and _one(times, track, joined[-1], span, leg):
            span = (joined.pop()[0], span[1])
        joined.append(span)
    return joined


def _runs(flags: NDArray[np.bool_]) -> list[Span]:
    """Spans of consecutive true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate(((0,), flags.astype(np.int8), (0,)))))
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def _one(times: Floats, track: Track, before: Span, after: Span, leg: float) -> bool:
    """Whether two stances are one."""
    way = track.place[after[0]] - track.place[before[1]]
    return bool(times[after[0]] - times[before[1]] < GAP and np.linalg.norm(way) < ASTRAY * leg)


def height_of_rest(model: Model, q: Floats, feet: Sequence[Foot]) -> Floats:
    """(frames,) height of the lowest point of a character's trunk, arms and thighs over coordinates (frames, nq); m."""
    ends = {int(model.body_link[foot.body]) for foot in feet}
    legs = ends | {int(model.link_parent[link]) for link in ends}
    root, seen = model.link_root[next(iter(ends))], bodies(model, q)
    lowest = np.full(len(q), np.inf)
    for link in range(model.n_links):
        if model.link_root[link] != root or link in legs:
            continue
        body = int(model.link_body[link])
        for point, radius in shape_points(model, link):
            lowest = np.minimum(lowest, seen.position[:, body, 2] + seen.rotation[:, body, 2] @ point - radius)
    return lowest


def sinking(times: Floats, feet: Sequence[tuple[Foot, Track, list[Span], Bools]], floor: float, rest: Floats) -> Floats:
    """(frames,) how far the whole body must rise, such that the standing feet are on the floor on average; m.

    Each foot is given with its track, its stances and its support flags. Between stances the rise is interpolated
    linearly, but a character that lies on the floor before or after does not sink below it: `rest` (frames,) is the
    height of the body without the legs (m). The rise is smoothed, because the set of standing feet changes.
    """
    total, count = np.zeros(len(times)), np.zeros(len(times))
    for foot, track, own, still in feet:
        rolls = _runs(np.asarray(still.any(axis=0)))
        for first, last in own:
            here, height = slice(first, last + 1), track.place[:, 2]
            if first == last:
                # never flat for long: use the lowest point, while the foot supports the body
                a, b = next(((a, b) for a, b in rolls if a <= first <= b), (first, last))
                here, height = slice(a, b + 1), foot.lowest(track.place, track.quat)
            total[here] += floor - height[here].mean()
            count[here] += 1.0
    stands = np.flatnonzero(count)
    if not len(stands):
        return np.zeros(len(times))
    rise = np.interp(times, times[stands], total[stands] / count[stands])
    rise = np.where(count > 0.0, rise, np.maximum(rise, np.minimum(floor - rest, 0.0)))
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
    bears: Bools,
) -> Wish:
    """Target of a foot: flat and at rest in its stances, unchanged elsewhere, and never below the floor.

    Before and after a stance it rolls over one of its ends, while that end is slow or supports the body. The correction
    fades as a cubic with a continuous velocity. In the middle of a swing the sole is above the floor by the clearance.
    """
    moves, turns, grip = (np.zeros((len(times), 3)) for _ in range(3))
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
        if first < last:
            turns[here] = quat_log(quat_multiply(flat, quat_conjugate(track.quat[here])))
        else:
            grip[first] = foot.tips[int(np.argmin(rotate(track.quat[first], foot.tips)[:, 2]))] - foot.centre
            moves[first] = (0.0, 0.0, floor - foot.lowest(track.place[first], track.quat[first]))
        flats.append((place, flat))
    fade(times, turns, spans, blend)
    quat = quat_multiply(quat_exp(turns), track.quat)
    wide: list[Span] = []
    for k, (first, last) in enumerate(spans):
        after = spans[k + 1][0] - 1 if k + 1 < len(spans) else len(times) - 1
        ends = []
        for edge, way, stop in ((first, -1, wide[-1][1] + 1 if wide else 0), (last, 1, after)):
            frames, tip = _roll(times, track, foot, edge, way, stop, leg, bears if first == last else None)
            arm = foot.tips[tip] - foot.centre
            pin = flats[k][0] + rotate(flats[k][1], arm)
            moves[frames] = pin - rotate(quat[frames], arm) - track.place[frames]
            ends.append(int(frames[-1]) if len(frames) else edge)
            grip[frames] = arm
        wide.append((ends[0], ends[1]))
    fade(times, moves, wide, blend, [first == last for first, last in spans])
    place = track.place + moves
    place[:, 2] += np.maximum(floor - foot.lowest(place, quat), 0.0)
    if wide:
        nearest = _nearest(times, wide)
        edges = np.array(wide)[nearest]
        grip = grip[np.clip(np.arange(len(times)), edges[:, 0], edges[:, 1])]
        loose = np.array([first == last for first, last in spans])[nearest]
        place[:, 2] += _lifts(
            times, wide, foot.lowest(place, quat) - floor, clearance, blend, loose & bears.any(axis=0)
        )
    else:
        loose = np.ones(len(times), np.bool_)
    return Wish(place, quat, np.where(loose[:, None], grip, 0.0), loose)


def _nearest(times: Floats, spans: list[Span]) -> NDArray[np.intp]:
    """(frames,) index of the nearest span."""
    away = [np.maximum(np.maximum(times[first] - times, times - times[last]), 0.0) for first, last in spans]
    return np.asarray(np.argmin(away, axis=0))


def _lifts(times: Floats, stances: list[Span], height: Floats, clearance: float, blend: float, steps: Bools) -> Floats:
    """(frames,) lift of a sole between stances, such that it clears the floor in the swing.

    Over a swing, u from −1 to 1, the lift is a multiple of (1 − u⁴)²: it rises early and falls late, because heels are
    still fast shortly before they strike, and its velocity is continuous. The lift is at most the clearance. Before the
    first stance and after the last one it is half of that. A swing that contains a step without a stance (`steps`), as
    at the beginning and end of a run, is not lifted.
    """
    lift = np.zeros(len(times))
    starts = [-1, *(last for _, last in stances)]
    ends = [*(first for first, _ in stances), len(times)]
    for a, b in zip(starts, ends, strict=True):
        frames = np.arange(a + 1, b)
        if not len(frames) or steps[frames].any():
            continue
        start = times[a] if a >= 0 else 2.0 * times[0] - times[b]
        end = times[b] if b < len(times) else 2.0 * times[-1] - times[a]
        bump = (1.0 - (2.0 * (times[frames] - start) / (end - start) - 1.0) ** 4) ** 2
        most = clearance * min(1.0, (end - start) / blend)
        need = np.maximum(most * bump - height[frames], 0.0)
        lift[frames] = bump * float((need / np.maximum(bump, 1e-9)).max())
    return lift


def _roll(
    times: Floats, track: Track, foot: Foot, edge: int, way: int, stop: int, leg: float, bears: Bools | None
) -> tuple[NDArray[np.int64], int]:
    """Frames beyond an edge of a stance in which an end of the sole is slow or supports the body, and that end."""
    frames = np.arange(edge + way, stop + way, way)
    if not len(frames) or len(times) < 3:
        return frames[:0], 0
    best = (frames[:0], 0)
    for tip in range(2):
        path = track.place + rotate(track.quat, foot.tips[tip] - foot.centre)
        leaves = _speed(times, path)[frames] >= SPEED * leg
        if bears is not None:
            leaves &= ~bears[tip, frames]
        fast = np.flatnonzero(leaves)
        slow = frames[: int(fast[0])] if len(fast) else frames
        if len(slow) > len(best[0]):
            best = (slow, tip)
    return best
