"""Poses of links, frame by frame: of a recording, and of a ghost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import bodies
from poise.io.recording_frames import continuous, quats_of
from poise.model.errors import SceneError
from poise.model.model import Model
from poise.view.motion_sampler import motion_poses

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Poses(NamedTuple):
    """Links over time."""

    time: Floats
    """(frames,) s."""
    position: Floats
    """(frames, links, 3) m."""
    turn: Floats
    """(frames, links, 4) w, x, y, z, with continuous signs."""


class Ghost(NamedTuple):
    """Another motion of the same model."""

    poses: Poses
    links: Indices
    """Shown links: those of the characters that move in it, or all if none does."""


def link_poses(model: Model, time: Floats, q: Floats) -> Poses:
    """Poses of all links at coordinates (frames, nq)."""
    n = len(time)
    if not model.n_links:
        return Poses(time, np.zeros((n, 0, 3)), np.zeros((n, 0, 4)))
    place = bodies(model, q)
    turn = continuous(quats_of(place.rotation[:, model.link_body]))
    return Poses(time, np.asarray(place.position[:, model.link_body]), turn)


def ghost_of(motion: Any, model: Model, time: Floats, fps: float) -> Ghost:
    """A ghost at the times of a recording (s), of any kind that `motion_poses` knows."""
    try:
        q = motion_poses(model, motion, time)
    except (TypeError, ValueError) as problem:
        raise SceneError(str(problem), field="ghost") from None
    span = float(time[-1] - time[0])
    kept = np.unique(np.r_[0 : len(time) : max(1, int(len(time) / max(span * fps, 1.0))), len(time) - 1])
    moving = np.flatnonzero(np.ptp(q, axis=0) > 0.0)
    links = np.arange(model.n_links)
    joints = np.searchsorted(model.joint_q_start, moving, side="right") - 1
    roots = np.unique(model.link_root[model.body_link[model.joint_body[joints]]])
    shown = np.isin(model.link_root, roots) if len(roots) else np.ones(len(links), bool)
    return Ghost(link_poses(model, time[kept], q[kept]), links[shown])


def distances(poses: Poses, ghost: Ghost) -> Floats:
    """(frames, 2) mean and greatest distance of the ghost's links from the model's, at the frames of the poses; m."""
    theirs = ghost.poses.position[:, ghost.links].reshape(len(ghost.poses.time), -1)
    columns = [np.interp(poses.time, ghost.poses.time, column) for column in theirs.T]
    there = np.stack(columns, axis=1).reshape(len(poses.time), -1, 3)
    apart = np.linalg.norm(poses.position[:, ghost.links] - there, axis=2)
    return np.stack((apart.mean(axis=1), apart.max(axis=1)), axis=1)
