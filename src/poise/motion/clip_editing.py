"""Editing of clips: slices, cyclic clips, blends, time warps, mirror images. `Clip` has them all as methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.bone_names import mirror_order
from poise.motion.motion_checks import choice, key_times, positive, unit_quats, vectors
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply, rotate
from poise.motion.skeleton import Skeleton
from poise.motion.splines import Spline

if TYPE_CHECKING:
    from poise.motion.clip import Clip, Pose

Floats = NDArray[np.float64]

#: keys nearer to each other than this share of a step are merged
_SAME = 1e-6


def sliced(clip: Clip, start: float, end: float) -> Clip:
    """The part from `start` to `end` (s), with a key at both; its time starts at 0. Cyclic clips may repeat in it.

    >>> from poise.motion import Clip, Skeleton
    >>> clip = Clip(Skeleton(["root"], [-1], [(0, 0, 0)]), [0, 1, 2], np.tile((1, 0, 0, 0), (3, 1, 1)))
    >>> clip.slice(0.5, 2.0).times.tolist()
    [0.0, 0.5, 1.5]
    """
    first, last = (float(vectors(name, value, ())) for name, value in (("start", start), ("end", end)))
    if not first < last:
        raise ValueError(f"end: must be after the start, found {last:g} s after {first:g} s")
    if not clip.loop:
        _check_inside(clip, "start", first)
        _check_inside(clip, "end", last)
    times = _keys_between(clip, first, last)
    return _from_pose(clip, times - first, clip.sample(times), loop=False, stride=(0.0, 0.0, 0.0))


def resampled(clip: Clip, rate: float) -> Clip:
    """The motion with keys at a constant rate (1/s), from the first key on; less than a step may be cut off the end.

    A cyclic clip keeps its duration; its rate becomes the nearest that divides it.

    >>> from poise.motion import Clip, Skeleton
    >>> clip = Clip(Skeleton(["root"], [-1], [(0, 0, 0)]), [0, 1], np.tile((1, 0, 0, 0), (2, 1, 1)))
    >>> clip.resampled(4.0).times.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    wanted = positive("rate", rate, "frames a second")
    begin = clip.times[0]
    if clip.loop:
        times = np.linspace(begin, clip.times[-1], max(2, round(clip.duration * wanted)) + 1)
    else:
        count = int(np.floor(clip.duration * wanted * (1.0 + 1e-12) + _SAME))
        times = np.minimum(begin + np.arange(count + 1) / wanted, clip.times[-1])
    return _from_pose(clip, times, clip.sample(times))


def looped(clip: Clip, blend: float = 0.25, *, travel: bool = True) -> Clip:
    """A cyclic clip without a seam: the last `blend` seconds are blended into the first, and removed from the end.

    With `travel` each cycle starts where the last one ended (a walk), without it the root returns (a walk on the spot).
    The root's rotation does not accumulate. With `blend` 0 the last pose must equal the first.

    >>> from poise.motion import Clip, Skeleton
    >>> path = [(0.1 * k, 0, 1) for k in range(11)]
    >>> walk = Clip(Skeleton(["root"], [-1], [(0, 0, 0)]), np.arange(11) / 10, np.tile((1, 0, 0, 0), (11, 1, 1)), path)
    >>> walk.looped(0.2).sample(8.0).translations[0].round(6)
    array([8., 0., 1.])
    """
    length = float(vectors("blend", blend, ()))
    if not 0.0 <= length <= 0.5 * clip.duration:
        raise ValueError(f"blend: must be from 0 to half of the clip's {clip.duration:g} s, found {length:g}")
    begin, end = float(clip.times[0]), float(clip.times[-1]) - length
    if length == 0.0:
        moved = clip.root_positions[-1] - clip.root_positions[0]
        stride = moved * ((1.0, 1.0, 0.0) if travel else 0.0)
        return clip.keyed(clip.times, clip.quats_wxyz, clip.translations, loop=True, stride=stride)
    times = _keys_between(clip, begin, end)
    if len(times) < 3:
        times = np.linspace(begin, end, 3)
    window = times[times < begin + length * (1.0 - _SAME)]
    pose, late = clip.sample(times), clip.sample(window + (end - begin))
    quats, moves = np.array(pose.quats_wxyz), np.array(pose.translations)
    # the two meet half-way through the window, so that each moves half of the distance
    middle = np.array((begin + 0.5 * length, end + 0.5 * length))
    roots = clip.sample(middle).translations[:, 0]
    stride = (roots[1] - roots[0]) * (1.0, 1.0, 0.0)
    shifted_moves = np.array(late.translations)
    shifted_moves[:, 0] -= stride
    share = 1.0 - _ease((window - begin) / length)
    count = len(window)
    quats[:count] = _mix(quats[:count], late.quats_wxyz, share[:, None])
    moves[:count] += share[:, None, None] * (shifted_moves - moves[:count])
    quats[-1], moves[-1] = quats[0], moves[0]
    moves[-1, 0] += stride
    if not travel:
        moves[:, 0] -= ((times - begin) / (end - begin))[:, None] * stride
        stride = np.zeros(3)
    return clip.keyed(times - begin, quats, moves[:, list(clip.moved)], loop=True, stride=stride)


def blended(clip: Clip, other: Clip, weight: float | Callable[[Floats], ArrayLike] = 0.5) -> Clip:
    """A blend of two clips of the same skeleton, as long as the shorter, with the keys of the first.

    `weight` is the other's share from 0 to 1: a number, or a function of the times (s, since the start).

    >>> from poise.motion import Clip, Skeleton
    >>> root, still = Skeleton(["root"], [-1], [(0, 0, 0)]), np.tile((1, 0, 0, 0), (2, 1, 1))
    >>> low, high = (Clip(root, [0, 1], still, [(0, 0, z), (0, 0, z)]) for z in (1, 2))
    >>> low.blend(high, 0.25).root_positions[0].tolist()
    [0.0, 0.0, 1.25]
    """
    _check_same(clip, other)
    begin = float(clip.times[0])
    times = _keys_between(clip, begin, begin + min(clip.duration, other.duration)) - begin
    share = vectors("weight", weight(times) if callable(weight) else weight, (...,))
    share = np.broadcast_to(share, times.shape) if share.ndim == 0 else vectors("weight", share, times.shape)
    if (share < 0.0).any() or (share > 1.0).any():
        raise ValueError(f"weight: must be from 0 to 1, found {share.min():g} to {share.max():g}")
    one, two = clip.sample(times + begin), other.sample(times + other.times[0])
    quats = _mix(one.quats_wxyz, two.quats_wxyz, share[:, None])
    moves = one.translations + share[:, None, None] * (two.translations - one.translations)
    return _with_all_moves(clip, other, times, quats, moves)


def joined(clip: Clip, other: Clip, blend: float = 0.0, *, align: bool = True) -> Clip:
    """This clip, then another of the same skeleton; its last `blend` seconds are blended into the other's first.

    With `align` the other continues at this one's position and heading. Without `blend` it starts one step after the
    end.

    >>> from poise.motion import Clip, Skeleton
    >>> root = Skeleton(["root"], [-1], [(0, 0, 0)])
    >>> step = Clip(root, [0, 1], np.tile((1, 0, 0, 0), (2, 1, 1)), [(0, 0, 1), (1, 0, 1)])
    >>> step.then(step, blend=0.5).root_positions[-1].tolist()
    [1.5, 0.0, 1.0]
    """
    _check_same(clip, other)
    length = float(vectors("blend", blend, ()))
    if not 0.0 <= length <= min(clip.duration, other.duration):
        raise ValueError(
            f"blend: must be from 0 to the shorter clip's {min(clip.duration, other.duration):g} s, found {length:g}"
        )
    end, step = float(clip.times[-1]), (1.0 / clip.rate if clip.rate else 1.0 / 30.0)
    enter = end - length if length else end + step
    if align:
        other = _carried_on(clip, other, end - length)
    later = other.times - other.times[0] + enter
    times = np.concatenate((clip.times, later[later > end + _SAME * step]))
    one = clip.sample(np.minimum(times, end))
    two = other.sample(np.maximum(times - enter, 0.0) + other.times[0])
    share = _ease((times - enter) / length) if length else (times >= enter - 0.5 * step).astype(np.float64)
    quats = _mix(one.quats_wxyz, two.quats_wxyz, share[:, None])
    moves = one.translations + share[:, None, None] * (two.translations - one.translations)
    return _with_all_moves(clip, other, times, quats, moves)


def warped(clip: Clip, times: ArrayLike, new_times: ArrayLike) -> Clip:
    """Time warp: the motion with the poses of `times` (s) at `new_times` (s).

    Between them the warp is a monotone curve, beyond them it has the original speed.

    >>> from poise.motion import Clip, Skeleton
    >>> clip = Clip(Skeleton(["root"], [-1], [(0, 0, 0)]), [0, 1, 2], np.tile((1, 0, 0, 0), (3, 1, 1)))
    >>> clip.warp([0, 2], [0, 3]).times.tolist()
    [0.0, 1.5, 3.0]
    """
    old, new = key_times(times), key_times(new_times)
    if old.shape != new.shape:
        raise ValueError(f"new_times: must be as many as the times, found {len(new)} for {len(old)}")
    keys = clip.times
    if len(old) == 1:
        moved = keys + (new[0] - old[0])
    else:
        moved = Spline(old, new, "monotone", ends="free")(np.clip(keys, old[0], old[-1])).value
        moved = moved + np.minimum(keys - old[0], 0.0) + np.maximum(keys - old[-1], 0.0)
    return clip.keyed(moved, clip.quats_wxyz, clip.translations)


def mirrored(clip: Clip, axis: str = "y", pairs: Mapping[str, str] | None = None) -> Clip:
    """The mirror image: left and right are exchanged. `axis` is the normal of the mirror plane.

    Joints are paired by their names (Left and Right, l and r); `pairs` adds others, or pairs a joint with itself.

    >>> from poise.motion import Clip, Skeleton
    >>> arms = Skeleton(["root", "LeftArm", "RightArm"], [-1, 0, 0], [(0, 0, 0), (0, 1, 0), (0, -1, 0)])
    >>> clip = Clip(arms, [0.0], [[(1, 0, 0, 0), (1, 0, 0, 1), (1, 0, 0, 0)]])
    >>> clip.mirrored().quats_wxyz[0, 2].round(3)
    array([ 0.707, -0.   ,  0.   , -0.707])
    """
    across = "xyz".index(choice("axis", axis, ("x", "y", "z")))
    skeleton = clip.skeleton
    order = mirror_order(skeleton.names, skeleton.parents, pairs or {})
    flip = np.ones(3)
    flip[across] = -1.0
    own = skeleton.rest_quats_wxyz
    plain = with_rest(clip, np.tile((1.0, 0.0, 0.0, 0.0), (len(skeleton), 1)))
    # a mirrored rotation is about the mirrored axis, in the opposite sense
    quats = plain.quats_wxyz[:, order] * np.concatenate(((1.0,), -flip))
    offsets = plain.skeleton.offsets
    moves = offsets + (plain.all_translations() - offsets)[:, order] * flip
    moves[:, 0] = plain.root_positions * flip
    moved = sorted({int(np.flatnonzero(order == joint)[0]) for joint in clip.moved})
    image = plain.keyed(plain.times, quats, moves[:, moved], moved=tuple(moved), stride=clip.stride * flip)
    return with_rest(image, own)


def scaled(clip: Clip, factor: float) -> Clip:
    """All lengths multiplied: those of the skeleton and of its path.

    >>> from poise.motion import Clip, Skeleton
    >>> clip = Clip(Skeleton(["root"], [-1], [(0, 0, 1)]), [0.0], [[(1, 0, 0, 0)]])
    >>> clip.scaled(2.0).root_positions.tolist()
    [[0.0, 0.0, 2.0]]
    """
    by = positive("factor", factor, "")
    moves, stride = by * clip.translations, by * clip.stride
    return clip.keyed(clip.times, clip.quats_wxyz, moves, skeleton=clip.skeleton.scaled(by), stride=stride)


def shifted(clip: Clip, offset: ArrayLike = (0.0, 0.0, 0.0), yaw: float = 0.0) -> Clip:
    """The whole motion rotated about the world's z axis by `yaw` (rad), then moved by `offset` (m).

    >>> from poise.motion import Clip, Skeleton
    >>> clip = Clip(Skeleton(["root"], [-1], [(0, 0, 1)]), [0.0], [[(1, 0, 0, 0)]])
    >>> clip.shifted((0, 0, -0.25)).root_positions.tolist()
    [[0.0, 0.0, 0.75]]
    """
    turn = quat_exp((0.0, 0.0, float(vectors("yaw", yaw, ()))))
    quats, moves = np.array(clip.quats_wxyz), np.array(clip.translations)
    quats[:, 0] = quat_multiply(turn, quats[:, 0])
    moves[:, 0] = rotate(turn, moves[:, 0]) + vectors("offset", offset, (3,))
    return clip.keyed(clip.times, quats, moves, stride=rotate(turn, clip.stride))


def with_rest(clip: Clip, rest_quats_wxyz: ArrayLike) -> Clip:
    """The motion with other orientations (joints, 4) of the joints' frames at rest, in their parents' frames.

    >>> from poise.motion import Clip, Skeleton
    >>> clip = Clip(Skeleton(["root", "tip"], [-1, 0], [(0, 0, 1), (1, 0, 0)]), [0.0], [[(1, 0, 0, 0), (1, 0, 0, 0)]])
    >>> clip.at_rest_of([(1, 0, 0, 1), (1, 0, 0, 0)]).world_positions(0)[1]
    array([1., 0., 1.])
    """
    skeleton = clip.skeleton
    rest = unit_quats("rest_quats_wxyz", rest_quats_wxyz, (len(skeleton), 4))
    if np.array_equal(rest, skeleton.rest_quats_wxyz):
        return clip
    target = Skeleton(skeleton.names, skeleton.parents, skeleton.offsets, rest)
    # a joint's new frame is its old one times a constant rotation
    change = quat_multiply(quat_conjugate(skeleton.rest_world[1]), target.rest_world[1])
    above = np.concatenate((((1.0, 0.0, 0.0, 0.0),), change))[skeleton.parents + 1]
    back = quat_conjugate(above)
    quats = quat_multiply(quat_multiply(back, clip.quats_wxyz), change)
    moves = rotate(back[list(clip.moved)], clip.translations)
    tips = [(joint, rotate(quat_conjugate(change[joint]), offset)) for joint, offset in skeleton.tips]
    fresh = Skeleton(skeleton.names, skeleton.parents, rotate(back, skeleton.offsets), rest, tips)
    return clip.keyed(clip.times, quats, moves, skeleton=fresh)


def heading(quat_wxyz: Floats) -> Floats:
    """Yaw of rotations (..., 4): the twist about the world's z axis of their swing-twist decomposition; rad."""
    angle: Floats = 2.0 * np.arctan2(quat_wxyz[..., 3], quat_wxyz[..., 0])
    return angle


def _carried_on(clip: Clip, other: Clip, time: float) -> Clip:
    """The other clip, moved on the ground and rotated, so that its root starts at the first clip's root at a time."""
    here, there = clip.sample(time), other.sample(other.times[0])
    yaw = float(heading(quat_multiply(here.quats_wxyz[0], quat_conjugate(there.quats_wxyz[0]))))
    start = rotate(quat_exp((0.0, 0.0, yaw)), there.translations[0])
    return shifted(other, (here.translations[0] - start) * (1.0, 1.0, 0.0), yaw)


def _mix(one: Floats, two: Floats, share: Floats) -> Floats:
    """Rotations on the shortest path from one to the other."""
    turn = quat_log(quat_multiply(quat_conjugate(one), two))
    return quat_multiply(one, quat_exp(share[..., None] * turn))


def _ease(share: Floats) -> Floats:
    """A blend from 0 to 1 whose first two derivatives are 0 at both ends."""
    x = np.clip(share, 0.0, 1.0)
    return np.asarray(x * x * x * (10.0 + x * (6.0 * x - 15.0)))


def _keys_between(clip: Clip, start: float, end: float) -> Floats:
    """Times of all keys between two times, and these two."""
    keys = clip.times
    if clip.loop:
        rounds = np.arange(np.floor((start - keys[0]) / clip.duration), np.ceil((end - keys[0]) / clip.duration))
        keys = (keys[:-1] + rounds[:, None] * clip.duration).ravel()
    near = _SAME * (1.0 / clip.rate if clip.rate else 1.0)
    inside = keys[(keys > start + near) & (keys < end - near)]
    return np.concatenate(((start,), inside, (end,))) if end > start else np.array((start,))


def _from_pose(clip: Clip, times: Floats, pose: Pose, **changes: object) -> Clip:
    moves = np.array(pose.translations[:, list(clip.moved)])
    return clip.keyed(times, pose.quats_wxyz, moves, **changes)


def _with_all_moves(clip: Clip, other: Clip, times: Floats, quats: Floats, moves: Floats) -> Clip:
    """A clip in which the joints have translations that have them in either."""
    moved = tuple(sorted({int(joint) for joint in (*clip.moved, *other.moved)}))
    return clip.keyed(times, quats, moves[:, list(moved)], moved=moved, loop=False, stride=(0.0, 0.0, 0.0))


def _check_same(clip: Clip, other: Clip) -> None:
    if not hasattr(other, "skeleton"):
        raise ValueError(f"other: must be a clip, found {other!r:.80}")
    if not clip.skeleton.matches(other.skeleton):
        raise ValueError(
            f"other: must have the same joints, found {len(other.skeleton)} under {other.skeleton.names[0]!r} "
            f"for {len(clip.skeleton)} under {clip.skeleton.names[0]!r}"
        )


def _check_inside(clip: Clip, field: str, time: float) -> None:
    begin, end = clip.times[0], clip.times[-1]
    if not begin <= time <= end:
        raise ValueError(f"{field}: must be from {begin:g} to {end:g} s, found {time:g}")
