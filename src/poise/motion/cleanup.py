"""Motion clean-up: finds and corrects spikes (frames that jump away and back) and steps (jumps at seams) of clips.

Human motion accelerates over several frames. A joint jumps between two frames if its velocity there is outside the
range between the velocities of both neighbouring steps; the distance from that range is the size of the jump. An impact
changes velocities and is no jump, nor is a constant, a uniform rotation, or a sine with enough keys. A foot strike,
which rotates the foot within a frame, is no jump either (`poise.motion.foot_strikes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.motion.clip_editing import _ease
from poise.motion.foot_strikes import landings
from poise.motion.motion_checks import positive
from poise.motion.rotation_splines import RotationCurve
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply, rotate
from poise.motion.splines import Spline

if TYPE_CHECKING:
    from poise.motion.clip import Clip

Floats = NDArray[np.float64]

#: maximum length of a spike in frames, between a jump away and one back
_LONGEST_SPIKE = 3
#: share of a jump that may remain after the one back
_BACK = 0.5
#: share of the joints that must step at once to make a seam of all joints
_SEAM = 0.25
#: changes below this are ignored; rad or m
_NOTHING = 1e-9


@dataclass(frozen=True)
class Mend:
    """A corrected spike or step of one joint."""

    joint: str
    what: Literal["turn", "shift"]
    """Whether the joint's rotation or its translation was corrected."""
    kind: Literal["spike", "step"]
    """A spike returns, a step stays."""
    time: float
    """Time; for a step the middle between its two frames; s."""
    frames: tuple[int, ...]
    """Changed frames, in order of time: across the seam of a cyclic clip, the last frames come before the first."""
    size: float
    """Size of the jump; rad or m."""
    changed: float
    """Greatest change of a frame; rad or m."""

    def __str__(self) -> str:
        size, changed = (self._told(value) for value in (self.size, self.changed))
        first, last = self.frames[0], self.frames[-1]
        which = f"frame {first}" if first == last else f"frames {first} to {last}"
        moved = "turned" if self.what == "turn" else "shifted"
        return f"{self.joint}: a {self.kind} of {size} at {self.time:.3f} s; {which} {moved} by up to {changed}"

    def _told(self, value: float) -> str:
        return f"{np.degrees(value):.1f} degrees" if self.what == "turn" else f"{1000 * value:.1f} mm"


class Mended(NamedTuple):
    """A corrected clip, and the list of corrections by joint and time."""

    clip: Clip
    mends: tuple[Mend, ...]


def mend(
    clip: Clip,
    *,
    turn: float = 0.1,
    shift: float = 0.03,
    usual: float = 6.0,
    over: float = 0.25,
    joints: Iterable[str | int] | None = None,
) -> Mended:
    """The motion without spikes and steps, and a list of the corrections. Other keys do not change.

    A step between two frames is a jump if its distance from the range between the steps before and after it exceeds
    `turn` (rad; translations: `shift`, m), and `usual` times the median for this joint in this clip. The first and the
    last step of a clip that is not cyclic have no two neighbours and are not checked.

    Up to three frames between a jump away and one back are a spike: they move to the smooth curve through the frames
    around them. A jump without return is a step, for example at the seam of joined clips: the jump is distributed over
    `over` seconds, half before the seam and half after, along the path of minimum jerk (Flash and Hogan 1985). The
    other motion of these frames does not change. If a quarter of the joints step at once, all joints are corrected
    there, so that legs still bring feet to where they were.

    `joints` are names or numbers of the joints to check, by default all. The clip's notes contain the same list.

    >>> from poise.motion import Clip, Skeleton
    >>> turns = np.zeros((9, 1, 3))
    >>> turns[4, 0, 2] = 0.5
    >>> bad = Clip(Skeleton(["neck"], [-1], [(0, 0, 0)]), np.arange(9) / 30, quat_exp(turns))
    >>> good, mends = mend(bad)
    >>> print(mends[0])
    neck: a spike of 28.6 degrees at 0.133 s; frame 4 turned by up to 28.6 degrees
    >>> bool(np.allclose(good.quats_wxyz[4], (1, 0, 0, 0)))
    True
    """
    rules = _Rules(
        positive("turn", turn, "rad"),
        positive("shift", shift, "m"),
        positive("usual", usual, "times the median"),
        positive("over", over, "s"),
    )
    if not hasattr(clip, "skeleton"):
        raise ValueError(f"clip: must be a clip, found {clip!r:.80}")
    if clip.loop and rules.over > clip.duration:
        raise ValueError(f"over: must be at most the loop's {clip.duration:g} s, found {rules.over:g}")
    every = range(len(clip.skeleton))
    wanted = every if joints is None else sorted({clip.skeleton.index(joint) for joint in _several(joints)})
    quats, moves, mends = _without_jerks(clip, rules, wanted)
    if not mends:
        return Mended(clip, ())
    notes = (*clip.notes, *(f"{told}." for told in mends))
    return Mended(clip.keyed(clip.times, quats, moves, notes=notes), tuple(mends))


def mended(
    clip: Clip,
    *,
    turn: float = 0.1,
    shift: float = 0.03,
    usual: float = 6.0,
    over: float = 0.25,
    joints: Iterable[str | int] | None = None,
) -> Clip:
    """The motion without spikes and steps; its `notes` list the corrections. See `poise.motion.mend`.

    >>> from poise.motion import Clip, Skeleton
    >>> path = [(0.1 * k, 0, 1.4 if k == 5 else 1) for k in range(9)]
    >>> bad = Clip(Skeleton(["root"], [-1], [(0, 0, 0)]), np.arange(9) / 30, np.tile((1, 0, 0, 0), (9, 1, 1)), path)
    >>> bad.mended().root_positions[5].round(6)
    array([0.5, 0. , 1. ])
    >>> bad.mended().notes
    ('root: a spike of 400.0 mm at 0.167 s; frame 5 shifted by up to 400.0 mm.',)
    """
    return mend(clip, turn=turn, shift=shift, usual=usual, over=over, joints=joints).clip


class _Rules(NamedTuple):
    """The numbers of `mend`."""

    turn: float
    shift: float
    usual: float
    over: float


def _without_jerks(clip: Clip, rules: _Rules, joints: Sequence[int]) -> tuple[Floats, Floats, list[Mend]]:
    """Rotations and translations of a clip with some joints corrected, and the list of corrections."""
    names = clip.skeleton.names
    quats, moves = np.array(clip.quats_wxyz), np.array(clip.translations)
    turns = {joint: _Track(clip, rules, names[joint], "turn", quats[:, joint]) for joint in joints}
    columns = {joint: clip.moved.index(joint) for joint in joints if joint in clip.moved}
    shifts = {joint: _Track(clip, rules, names[joint], "shift", moves[:, at]) for joint, at in columns.items()}
    tracks = [*turns.values(), *shifts.values()]
    # spikes first: a step may remain after them
    mends = [found for track in tracks for found in track.mend_spikes()]
    landed = landings(clip)
    stepping = np.sum([track.jumping() & ~landed[:, joint] for joint, track in turns.items()], axis=0)
    seams = np.asarray(stepping >= max(2.0, _SEAM * len(turns)))
    for joint, track in [*turns.items(), *shifts.items()]:
        mends += track.mend_steps(seams, landed[:, joint])
    for joint, track in turns.items():
        quats[:, joint] = track.keys()
    for joint, track in shifts.items():
        moves[:, columns[joint]] = track.keys()
    order = {name: k for k, name in enumerate(names)}
    mends.sort(key=lambda found: (order[found.joint], found.what, found.time))
    return quats, moves, mends


class _Track:
    """One joint's rotations (frames, 4) or translations (frames, 3) of a clip, during the correction."""

    def __init__(self, clip: Clip, rules: _Rules, joint: str, what: Literal["turn", "shift"], given: Floats) -> None:
        self.rules, self.joint, self.what = rules, joint, what
        self.least = rules.turn if what == "turn" else rules.shift
        self.loop, self.length = clip.loop, clip.n_frames - 1 if clip.loop else clip.n_frames
        self.way = np.zeros(given.shape[1])
        if what == "shift" and joint == clip.skeleton.names[0]:
            self.way = clip.stride
        self.times, self.now = clip.times, given
        if clip.loop:
            # a cyclic clip is repeated three times, and the middle cycle is used: it has no ends
            self.times = np.concatenate([clip.times[:-1] + k * clip.duration for k in (-1, 0, 1)])
            self.now = np.concatenate([given[:-1] + k * self.way for k in (-1, 0, 1)])
        self.steps = np.diff(self.times)

    def keys(self) -> Floats:
        """The present keys, for the frames of the clip."""
        if not self.loop:
            return self.now
        middle = self.now[self.length : 2 * self.length]
        return np.concatenate((middle, middle[:1] + self.way))

    def jumping(self) -> NDArray[np.bool_]:
        """(n,) bool: steps from frame to frame that are jumps."""
        return self._sizes() > 0.0

    def mend_spikes(self) -> list[Mend]:
        """Move frames between a jump away and one back onto the curve through the others."""
        jumping = self.jumping()
        jumps, bad = self._jumps(jumping), list[range]()
        where = [int(k) for k in np.flatnonzero(jumping)]
        for at, k in enumerate(where):
            if bad and k < bad[-1].stop:
                continue
            for other in where[at + 1 :]:
                if other - k > _LONGEST_SPIKE:
                    break
                larger = max(np.linalg.norm(jumps[k]), np.linalg.norm(jumps[other]))
                if np.linalg.norm(jumps[k] + jumps[other]) < _BACK * larger:
                    bad.append(range(k + 1, other + 1))
                    break
        if not bad:
            return []
        before, self.now = self.now, self._without([k for frames in bad for k in frames])
        away = np.linalg.norm(self._between(before, self.now), axis=-1)
        mends = []
        for frames in bad:
            changed, time = float(away[frames].max()), float(self.times[frames[len(frames) // 2]])
            mends += self._told("spike", time, list(frames), changed, changed)
        return mends

    def _without(self, dropped: list[int]) -> Floats:
        """Keys with some of them moved to the smooth curve through the others."""
        kept = np.setdiff1d(np.arange(len(self.now)), dropped)
        fresh = np.array(self.now)
        if self.what == "shift":
            fresh[dropped] = Spline(self.times[kept], fresh[kept], "smooth", ends="free")(self.times[dropped]).value
            return fresh
        found = RotationCurve(self.times[kept], fresh[kept], "smooth", ends="free")(self.times[dropped]).quat_wxyz
        # keep the sign of each quaternion
        fresh[dropped] = found * np.where(np.sum(found * fresh[dropped], axis=1) < 0.0, -1.0, 1.0)[:, None]
        return fresh

    def mend_steps(self, seams: NDArray[np.bool_], landed: NDArray[np.bool_]) -> list[Mend]:
        """Distribute steps that are jumps and no landings, and all steps at seams, over time."""
        jumping = (self.jumping() & ~landed) | seams
        jumps, expected = self._jumps(jumping), self._expected(jumping)
        change = np.zeros((len(self.now), 3))
        mends = []
        for k in np.flatnonzero(jumping):
            jump, middle = jumps[k], 0.5 * (self.times[k] + self.times[k + 1])
            share = _ease(0.5 + (self.times - middle) / self.rules.over)[:, None]
            before = np.arange(len(share))[:, None] <= k
            # body axes differ before the seam, so that the same rotation has other components there
            early = rotate(quat_exp(expected[k]), jump) if self.what == "turn" else jump
            fade = np.where(before, share * early, (share - 1.0) * jump)
            size = np.linalg.norm(fade, axis=1)
            frames = [int(frame) for frame in np.flatnonzero(size > _NOTHING)]
            if frames:
                change += fade
                mends += self._told("step", float(middle), frames, float(np.linalg.norm(jump)), float(size.max()))
        rows = np.any(change != 0.0, axis=1)
        if rows.any():
            old, fresh = self.now[rows], np.array(self.now)
            fresh[rows] = quat_multiply(old, quat_exp(change[rows])) if self.what == "turn" else old + change[rows]
            self.now = fresh
        return mends

    def _sizes(self) -> Floats:
        """(n,) distance of each step from the range between its neighbours; 0 for steps that are no jumps."""
        rates, sizes = self._rates(), np.zeros(len(self.steps))
        if len(rates) > 2:
            sizes[1:-1] = _beyond(rates[:-2], rates[2:], rates[1:-1]) * self.steps[1:-1]
            sizes[sizes < max(self.least, self.rules.usual * float(np.median(sizes[1:-1])))] = 0.0
        return sizes

    def _expected(self, jumping: NDArray[np.bool_]) -> Floats:
        """(n, 3) displacement of each jump at the mean velocity of the nearest regular steps on both sides."""
        rates, calm = self._rates(), np.flatnonzero(~jumping)
        expected = np.zeros_like(rates)
        for k in np.flatnonzero(jumping):
            near = [side[end] for side, end in ((calm[calm < k], -1), (calm[calm > k], 0)) if len(side)]
            expected[k] = np.mean(rates[near], axis=0) * self.steps[k]
        return expected

    def _jumps(self, jumping: NDArray[np.bool_]) -> Floats:
        """(n, 3) excess of each jump over that; rotations are in the axes of the later frame."""
        expected, jumps = self._expected(jumping), np.zeros((len(self.steps), 3))
        first, second = self.now[:-1][jumping], self.now[1:][jumping]
        if self.what == "turn":
            first = quat_multiply(first, quat_exp(expected[jumping]))
            jumps[jumping] = self._between(first, second)
        else:
            jumps[jumping] = second - first - expected[jumping]
        return jumps

    def _rates(self) -> Floats:
        """Velocities (n, 3) from frame to frame."""
        return np.asarray(self._between(self.now[:-1], self.now[1:]) / self.steps[:, None])

    def _between(self, first: Floats, second: Floats) -> Floats:
        if self.what == "shift":
            return np.asarray(second - first)
        return quat_log(quat_multiply(quat_conjugate(first), second))

    def _told(
        self, kind: Literal["spike", "step"], time: float, frames: list[int], size: float, changed: float
    ) -> list[Mend]:
        """The correction as a `Mend`; none if it is in another repetition of the cycle."""
        if self.loop:
            begin = self.times[self.length]
            if not begin <= time < begin + (self.times[self.length] - self.times[0]):
                return []
            frames = list(dict.fromkeys(frame % self.length for frame in frames))
        return [Mend(self.joint, self.what, kind, time, tuple(frames), size, changed)]


def _beyond(first: Floats, second: Floats, rates: Floats) -> Floats:
    """Distance (n,) of rates (n, 3) from the lines between two others."""
    line = second - first
    length = np.maximum(np.sum(line * line, axis=-1), np.finfo(np.float64).tiny)
    share = np.clip(np.sum((rates - first) * line, axis=-1) / length, 0.0, 1.0)
    away: Floats = np.linalg.norm(rates - first - share[:, None] * line, axis=-1)
    return away


def _several(joints: Iterable[str | int]) -> list[str | int]:
    if isinstance(joints, str | int):
        raise ValueError(f"joints: must be a list of names or numbers, found {joints!r}")
    return list(joints)
