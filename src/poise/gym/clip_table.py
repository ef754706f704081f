"""A clip as a table, which each world of a batch reads at its own time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.characters import clips, humanoid
from poise.control.reference import Reference, layout
from poise.gym.figure import Figure
from poise.model.errors import did_you_mean
from poise.motion import Clip, retarget

Floats = NDArray[np.float64]
RATE = 240.0
"""Rows per second. Interpolation is linear, with an error of a / (8 RATE²) at an acceleration a."""
BUILT_IN = ("walk", "run", "squat", "jump", "wave", "punch", "stand")
SPEEDS, HEIGHT = {"walk": 1.3, "run": 3.0}, 1.75
"""Of built-in clips, for a person of this height; m/s, m."""


def chosen_clip(clip: Any, height: float, mass: float) -> Clip:
    """A clip, or the built-in one of a name, made for a person of these sizes."""
    if isinstance(clip, Clip):
        found = clip
    elif isinstance(clip, str):
        if clip not in BUILT_IN:
            raise ValueError(f'there is no clip "{clip}"{did_you_mean(clip, BUILT_IN)}')
        of_height = np.sqrt(height / HEIGHT)  # Froude scaling: dynamic similarity of legs of another length
        options = {"speed": of_height * SPEEDS[clip]} if clip in SPEEDS else {}
        found = getattr(clips, clip)(humanoid(height=height, mass=mass), **options)
    else:
        raise TypeError(f"clip must be a poise.motion.Clip or a name, not {type(clip).__name__}")
    if found.duration <= 0.0:
        raise ValueError(f"{found!r} is a single pose: it has no motion to imitate")
    return found


class Moment(NamedTuple):
    """The motion at the times of n worlds."""

    q: Floats
    """(n, nq)"""
    v: Floats
    """(n, nv)"""
    com: Floats
    """(n, 3) m."""
    ends: Floats
    """(n, 4, 3) wrists and ankles; m."""


class ClipTable:
    """Coordinates, velocities, centres of mass and ends of limbs of a clip, on a figure that stands on the ground."""

    def __init__(self, clip: Clip, figure: Figure, parts: Mapping[str, str] | None = None) -> None:
        """`parts`: as those of `poise.motion.retarget`."""
        motion = retarget(clip, figure.model, parts=parts)
        reference = Reference(motion, figure.model, loop=clip.loop)
        self.loop, self.duration = clip.loop, reference.duration
        count = max(int(np.ceil(self.duration * RATE)), 2)
        now = reference.coordinates(figure.model, reference.start + self.duration * np.arange(count + 1) / count)
        seen = figure.look(now.q, now.v)
        self._quats = layout(figure.model).quats
        q = _continuous(now.q, self._quats)
        columns = (q, now.v, seen.com, seen.ends.reshape(count + 1, -1))
        self._rows = np.concatenate(columns, axis=1)
        self._cuts = np.cumsum([part.shape[1] for part in columns])[:-1]
        self._stride = q[-1, :3] - q[0, :3] if clip.loop else np.zeros(3)
        if clip.loop:  # the last row is the first, a stride further
            self._rows[-1] = self._rows[0]
            q_end, com_end, ends_end = (np.split(self._rows[-1], self._cuts)[k] for k in (0, 2, 3))
            q_end[:3] += self._stride
            com_end += self._stride
            ends_end.reshape(-1, 3)[...] += self._stride
            q_end[...] = _continuous(np.stack((q[-2], q_end)), self._quats)[1]
        under = figure.undersides
        self.touches = np.asarray((under.heights(seen.bodies) < 2.0 * under.near).any(axis=0))
        """(k,) for each shape of the figure: whether it touches the ground at any time of the motion."""

    def at(self, times: Floats) -> Moment:
        """The motion at times (n,) since its start; s. A cyclic clip repeats; another one holds its last pose."""
        share = np.maximum(np.asarray(times, np.float64) / self.duration, 0.0)
        rounds = np.floor(share) if self.loop else np.zeros_like(share)
        place = (share - rounds if self.loop else np.minimum(share, 1.0)) * (len(self._rows) - 1)
        row = np.minimum(place.astype(np.int64), len(self._rows) - 2)
        part = (place - row)[:, None]
        q, v, com, ends = np.split((1.0 - part) * self._rows[row] + part * self._rows[row + 1], self._cuts, axis=1)
        gone = rounds[:, None] * self._stride
        q[:, :3] += gone
        quats = q[:, self._quats]
        q[:, self._quats] = quats / np.sqrt(np.sum(quats * quats, axis=-1, keepdims=True))
        return Moment(q, v, com + gone, ends.reshape(len(q), -1, 3) + gone[:, None])

    def phase(self, times: Floats) -> Floats:
        """(n, 2) cosine and sine of the phase: 0 to 2π over a cyclic clip, 0 to π over another."""
        share = np.asarray(times, np.float64) / self.duration
        angle = 2.0 * np.pi * share if self.loop else np.pi * np.minimum(share, 1.0)
        return np.stack((np.cos(angle), np.sin(angle)), axis=1)


def _continuous(q: Floats, quats: Any) -> Floats:
    """The same rotations, with signs of quaternions that are continuous over time."""
    out = q.copy()
    turns = out[:, quats]
    flips = np.sum(turns[1:] * turns[:-1], axis=-1) < 0.0
    signs = np.cumprod(np.where(flips, -1.0, 1.0), axis=0)
    out[1:, quats] = turns[1:] * signs[..., None]
    return out
