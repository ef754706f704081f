"""Frames of a recording for exporters, and poses of bodies in them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import SceneError
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.sim.recording import Recording

Floats = NDArray[np.float64]
_FASTEST = 1e5
"""Frames a second, at most."""


def frames_of(recording: Recording, fps: Any = None) -> NDArray[np.int64]:
    """Indices of the frames to show: all, or those nearest to multiples of 1/`fps`.

    They are recorded states at their own times, without interpolation.
    """
    if not len(recording):
        raise SceneError("the recording is empty, there is nothing to show", field="recording")
    for name in ("time", "q"):
        values = getattr(recording, name)
        bad = np.flatnonzero(~np.isfinite(values).reshape(len(recording), -1).all(axis=1))
        if len(bad):
            raise SceneError(f"must be finite, found a number that is not in frame {bad[0]}", field=name)
    time = recording.time
    if fps is None:
        return np.arange(len(time))
    rate = checked_rate(fps)
    count = math.floor((time[-1] - time[0]) * rate + 1e-6) + 1
    beats = time[0] + np.arange(count) / rate
    after = np.clip(np.searchsorted(time, beats), 1, max(1, len(time) - 1))
    nearest = np.where(beats - time[after - 1] <= time[np.minimum(after, len(time) - 1)] - beats, after - 1, after)
    return np.asarray(np.unique(np.minimum(nearest, len(time) - 1)))


def checked_rate(fps: Any) -> float:
    """Frames a second."""
    if isinstance(fps, bool) or not isinstance(fps, int | float | np.number) or not 0.0 < float(fps) <= _FASTEST:
        raise SceneError(f"must be frames a second, above 0 and up to {_FASTEST:g}, found {fps!r}", field="fps")
    return float(fps)


def world_poses(model: Model, q: Floats) -> tuple[Floats, Floats]:
    """Positions (frames, bodies, 3; m) and orientations (frames, bodies, 4) of all bodies, signs that do not jump."""
    from poise.dynamics.state_queries import bodies  # readers of files do without the compiler

    if not model.nq:
        place = bodies(model, q[0])
        position, turn = place.position[None], quats_of(place.rotation)[None]
        return np.repeat(position, len(q), axis=0), np.repeat(turn, len(q), axis=0)
    place = bodies(model, q)
    return np.asarray(place.position), continuous(quats_of(place.rotation))


def local_poses(model: Model, q: Floats) -> tuple[Floats, Floats]:
    """The same, each in the frame of the body that it hangs on."""
    position, turn = world_poses(model, q)
    parent = model.body_parent
    carried = np.flatnonzero(parent >= 0)
    above = parent[carried]
    back = quat_conjugate(turn[:, above])
    own_position, own_turn = position.copy(), turn.copy()
    own_position[:, carried] = rotate(back, position[:, carried] - position[:, above])
    own_turn[:, carried] = continuous(quat_multiply(back, turn[:, carried]))
    return own_position, own_turn


def quats_of(m: Floats) -> Floats:
    """Unit quaternions (..., 4) of rotation matrices (..., 3, 3), by the largest of the products that give them."""
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    x, y, z = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    ways = np.stack(
        (
            np.stack((1 + xx + yy + zz, x, y, z), axis=-1),
            np.stack((x, 1 + xx - yy - zz, xy, xz), axis=-1),
            np.stack((y, xy, 1 - xx + yy - zz, yz), axis=-1),
            np.stack((z, xz, yz, 1 - xx - yy + zz), axis=-1),
        ),
        axis=-2,
    )
    best = np.argmax(np.diagonal(ways, axis1=-2, axis2=-1), axis=-1)
    quat = np.take_along_axis(ways, best[..., None, None], axis=-2)[..., 0, :]
    return np.asarray(quat / np.linalg.norm(quat, axis=-1, keepdims=True))


def continuous(quats: Floats) -> Floats:
    """The same rotations (frames, n, 4), unit, with signs that do not jump from frame to frame."""
    if not quats.size:
        return quats
    quats = quats / np.linalg.norm(quats, axis=-1, keepdims=True)
    flips = np.where(np.sum(quats[1:] * quats[:-1], axis=-1) < 0.0, -1.0, 1.0)
    signs = np.concatenate((np.ones((1, *flips.shape[1:])), np.cumprod(flips, axis=0)))
    return np.asarray(quats * signs[..., None])


def shape_pose(model: Model, shape: int) -> tuple[Floats, Floats]:
    """Position and orientation of a shape in the frame of its body."""
    solids, body = model.solids, int(model.solids.body[shape])
    back = quat_conjugate(model.body_quat_wxyz[body])
    position = rotate(back, solids.position[shape] - model.body_position[body])
    return position, quat_multiply(back, solids.quat_wxyz[shape])


def seen_shapes(model: Model, collision: bool) -> list[int]:
    """Numbers of the shapes to write: those that are seen, with `collision` also those that only collide."""
    color = model.solids.color
    return [k for k in range(len(model.solids)) if collision or color[k, 3] > 0.0]


def floor_half(model: Model, position: Floats) -> float:
    """How far a floor must reach to have all that moves on it; m."""
    moving = np.flatnonzero(model.body_link >= 0)
    far = float(np.abs(position[:, moving, :2]).max(initial=0.0)) if len(moving) else 0.0
    return min(10.0 * math.ceil((far + 5.0) / 10.0), 200.0)
