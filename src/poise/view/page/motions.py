"""Where links are, frame by frame: of a recording, and of a ghost that moves beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.measures import bodies
from poise.model.model import Model
from poise.motion import Clip, retarget

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Poses(NamedTuple):
    """Links over time."""

    time: Floats
    """(frames,) s."""
    position: Floats
    """(frames, links, 3) m."""
    turn: Floats
    """(frames, links, 4) w, x, y, z, each near that of the frame before."""


class Ghost(NamedTuple):
    """Another motion of the same model."""

    poses: Poses
    links: Indices
    """Those that are shown: of the characters that move in it, or all where none does."""


def thinned(time: Floats, fps: float) -> Indices:
    """Numbers of the frames that are kept so that there are about `fps` in a second, the first and last among them.

    >>> thinned(np.arange(9) / 240.0, 60.0).tolist()
    [0, 4, 8]
    """
    n = len(time)
    if n < 3 or (time[-1] - time[0]) * fps >= n - 1.5:
        return np.arange(n)
    wanted = np.linspace(time[0], time[-1], max(2, round((time[-1] - time[0]) * fps) + 1))
    after = np.clip(np.searchsorted(time, wanted), 1, n - 1)
    nearest = np.where(wanted - time[after - 1] < time[after] - wanted, after - 1, after)
    return np.unique(nearest).astype(np.intp)


def link_poses(model: Model, time: Floats, q: Floats) -> Poses:
    """Poses of all links at coordinates (frames, nq)."""
    n = len(time)
    if not model.n_links:
        return Poses(time, np.zeros((n, 0, 3)), np.zeros((n, 0, 4)))
    place = bodies(model, q)
    rotation = place.rotation[:, model.link_body]
    return Poses(time, np.asarray(place.position[:, model.link_body]), steady(_quats(rotation)))


def _quats(rotation: Floats) -> Floats:
    """Unit quaternions of matrices (..., 3, 3)."""
    xx, yy, zz = (rotation[..., k, k] for k in range(3))
    squares = np.stack((1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz), axis=-1)
    a, b, c = (rotation[..., i, j] - rotation[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    d, e, f = (rotation[..., i, j] + rotation[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    w, x, y, z = (squares[..., k] for k in range(4))
    # four times the outer product of the quaternion with itself; its longest row has no cancellation
    rows = np.stack([np.stack(row, axis=-1) for row in ((w, a, b, c), (a, x, d, e), (b, d, y, f), (c, e, f, z))], -2)
    longest = squares.argmax(axis=-1)[..., None, None]
    row = np.take_along_axis(rows, longest, axis=-2)[..., 0, :]
    return np.asarray(row / np.linalg.norm(row, axis=-1, keepdims=True))


def steady(turn: Floats) -> Floats:
    """Quaternions (frames, …, 4) with signs that never jump."""
    flips = np.sum(turn[1:] * turn[:-1], axis=-1) < 0.0
    sign = np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)
    return np.concatenate((turn[:1], turn[1:] * sign[..., None]))


def ghost_of(motion: Any, model: Model, time: Floats, fps: float) -> Ghost:
    """A ghost from a reference, key-frames, a clip, a recording, or a pair of times and coordinates."""
    times, q = _coordinates(motion, model, time)
    if times.ndim != 1 or not len(times) or q.shape != (len(times), model.nq):
        raise ValueError(
            f"ghost: times are (n,) and coordinates (n, {model.nq}) of this model, found the shapes "
            f"{times.shape} and {q.shape}; is it a motion of another one?"
        )
    if not (np.isfinite(times).all() and np.isfinite(q).all()):
        raise ValueError("ghost: times and coordinates must be finite")
    if (np.diff(times) <= 0.0).any():
        raise ValueError("ghost: times must increase")
    kept = thinned(times, fps)
    moving = np.flatnonzero(np.ptp(q, axis=0) > 0.0)
    links = np.arange(model.n_links)
    joints = np.searchsorted(model.joint_q_start, moving, side="right") - 1
    roots = np.unique(model.link_root[model.body_link[model.joint_body[joints]]])
    shown = np.isin(model.link_root, roots) if len(roots) else np.ones(len(links), bool)
    return Ghost(link_poses(model, times[kept], q[kept]), links[shown])


def _coordinates(motion: Any, model: Model, time: Floats) -> tuple[Floats, Floats]:
    if isinstance(motion, Clip):
        motion = retarget(motion, model)
    elif hasattr(motion, "coordinates"):  # references and key-frames give them at any time
        return time, np.asarray(motion.coordinates(model, time).q, np.float64)
    for name in ("times", "time"):
        if hasattr(motion, name) and hasattr(motion, "q"):
            motion = getattr(motion, name), motion.q
    try:
        times, q = motion
        return np.asarray(times, np.float64), np.asarray(q, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"ghost is a {type(motion).__name__}; it must be a reference, key-frames, a clip, a recording, "
            "or (times, coordinates)"
        ) from None


def distances(poses: Poses, ghost: Ghost) -> Floats:
    """(frames, 2) how far the ghost's links are from their own, at the frames of the poses: on average, and most; m."""
    theirs = ghost.poses.position[:, ghost.links].reshape(len(ghost.poses.time), -1)
    columns = [np.interp(poses.time, ghost.poses.time, column) for column in theirs.T]
    there = np.stack(columns, axis=1).reshape(len(poses.time), -1, 3)
    apart = np.linalg.norm(poses.position[:, ghost.links] - there, axis=2)
    return np.stack((apart.mean(axis=1), apart.max(axis=1)), axis=1)
