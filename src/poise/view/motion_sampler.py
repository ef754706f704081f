"""Coordinates at any time, interpolated from a recording, a clip or another motion of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.joints import Primitive
from poise.model.model import Model
from poise.motion import Clip, retarget
from poise.motion.motion_checks import finite_times, key_times, vectors
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply

Floats = NDArray[np.float64]


def poses_at(model: Model, times: ArrayLike, q: ArrayLike, when: ArrayLike) -> Floats:
    """Coordinates (n, nq) at times `when` (n,), interpolated between (frames, nq) at `times`: numbers linearly,
    rotations along the shortest path. They are constant before the first and after the last time.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> poses_at(scene.compile(), [0, 1], [(0, 0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0, 1)], [0.5])[0].round(3)
    array([0.5  , 0.   , 0.   , 0.707, 0.   , 0.   , 0.707])
    """
    keys = np.asarray(times, np.float64)
    poses = np.asarray(q, np.float64)
    if poses.shape != (len(keys), model.nq) or not len(keys):
        raise ValueError(f"q must be ({len(keys)}, {model.nq}) numbers, found the shape {poses.shape}")
    now = np.clip(finite_times(when), keys[0], keys[-1])
    after = np.clip(np.searchsorted(keys, now, side="right"), 1, max(1, len(keys) - 1))
    before, after = after - 1, np.minimum(after, len(keys) - 1)
    span = keys[after] - keys[before]
    share = np.where(span > 0.0, (now - keys[before]) / np.where(span > 0.0, span, 1.0), 0.0)[:, None]
    one, two = poses[before], poses[after]
    between = one + share * (two - one)
    for start in model.primitive_q_start[model.primitive_kind == Primitive.BALL]:
        part = slice(int(start), int(start) + 4)
        turn = quat_log(quat_multiply(quat_conjugate(one[:, part]), two[:, part]))
        between[:, part] = quat_multiply(one[:, part], quat_exp(share * turn))
    # times of frames return these frames exactly
    for end, pose in ((0.0, one), (1.0, two)):
        exact = share[:, 0] == end
        between[exact] = pose[exact]
    return between


def motion_poses(model: Model, motion: Any, when: ArrayLike) -> Floats:
    """Coordinates (n, nq) of a model at times `when` (s), for a motion of any kind.

    A motion is a recording, a pair of times and coordinates (as `retarget` returns), a clip, which is retargeted, or an
    object with `coordinates(model, times)`: key-frames and references.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    >>> motion_poses(scene.compile(), ([0.0, 1.0], [[0.0], [2.0]]), [0.25])
    array([[0.5]])
    """
    now = finite_times(when)
    if isinstance(motion, Clip):
        if motion.loop and len(now):
            motion = motion.slice(motion.times[0], motion.times[0] + max(float(now.max()), motion.duration))
        times, q = retarget(motion, model)
        return poses_at(model, times - times[0], q, now)
    if hasattr(motion, "coordinates"):
        return np.asarray(motion.coordinates(model, now).q)
    if hasattr(motion, "time") and hasattr(motion, "q"):
        motion = motion.time, motion.q
    if isinstance(motion, tuple | list) and len(motion) == 2:
        times = key_times(motion[0])
        shape = np.shape(motion[1])
        if shape != (len(times), model.nq):
            raise ValueError(f"{len(times)} frames of it are ({len(times)}, {model.nq}) numbers, found {shape}")
        return poses_at(model, times, vectors("q", motion[1], shape), now)
    raise TypeError(
        f"a motion is a recording, a clip, key-frames, or (times, coordinates), found {type(motion).__name__}"
    )
