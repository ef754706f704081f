"""Clips: a skeleton that moves. Rotations of joints and the path of the root, sampled at any time with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion import cleanup, clip_editing
from poise.motion.motion_checks import Frozen, finite_times, key_times, unit_quats, vectors
from poise.motion.path import PathPoint
from poise.motion.rotation_splines import RotationCurve, Turns
from poise.motion.rotations import quat_conjugate, rotate
from poise.motion.skeleton import Skeleton, carry
from poise.motion.splines import Moves, Spline

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Origin:
    """Layout of the file that a clip was read from, so that it can be written in the same way."""

    format: str
    """`"bvh"` or `"deepmimic"`."""
    meters: float
    """Length of the file's unit; m."""
    up: str
    """The file's up axis: `"x"`, `"y"` or `"z"`."""
    channels: tuple[tuple[str, ...], ...] = ()
    """Names of each joint's channels, in the file's order."""
    tpose: bool = False
    """Whether a leading T-pose was left out."""


@dataclass(frozen=True, eq=False)
class WorldPose:
    """Every joint of a skeleton in the world, in world axes; leading axes (...) are those of the times."""

    positions: Floats
    """(..., joints, 3) m."""
    quats_wxyz: Floats
    """(..., joints, 4)."""
    velocities: Floats
    """(..., joints, 3) m/s."""
    angular_velocities: Floats
    """(..., joints, 3) rad/s."""
    accelerations: Floats
    """(..., joints, 3) m/s²."""
    angular_accelerations: Floats
    """(..., joints, 3) rad/s²."""
    tips: Floats
    """(..., tips, 3) positions of the skeleton's tips; m."""


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose of a clip at one time or several: leading axes (...) are those of the times."""

    skeleton: Skeleton
    quats_wxyz: Floats
    """(..., joints, 4) in the axes of the parents."""
    angular_velocities: Floats
    """(..., joints, 3) relative to the parents, in the joints' own axes; rad/s."""
    angular_accelerations: Floats
    """(..., joints, 3) likewise; rad/s²."""
    translations: Floats
    """(..., joints, 3) from the parents' origins, in the axes of the parents; m. That of the root is its path."""
    velocities: Floats
    """(..., joints, 3) rates of the translations; m/s."""
    accelerations: Floats
    """(..., joints, 3) m/s²."""

    def world(self) -> WorldPose:
        """Poses and motions of all joints in the world."""
        spins = (self.angular_velocities, self.angular_accelerations)
        moves = (self.translations, self.velocities, self.accelerations)
        parts = carry(self.skeleton, self.quats_wxyz, spins, moves)
        return WorldPose(*parts, self.skeleton.place_tips(parts[0], parts[1]))


class Clip(Frozen):
    """A motion of a skeleton: rotations and translations of its joints at key times. Nothing in it can be changed.

    Other clips are made from it: `slice`, `looped`, `blend`, `warp`, `mirrored`, `resampled`, `then`, `mended`. With
    `loop` the last key repeats the first (except for `stride`), and sampling is periodic. Translations may be
    (frames, 3) for the root alone; unless given, it stays where the skeleton has it.

    >>> arm = Skeleton(["shoulder", "elbow"], [-1, 0], [(0, 0, 0), (0.3, 0, 0)])
    >>> turns = [[(1, 0, 0, 0), (1, 0, 0, 0)], [(1, 0, 0, 1), (1, 0, 0, 0)]]
    >>> clip = Clip(arm, [0.0, 0.5], turns)
    >>> clip.sample(0.5).world().positions[1].round(6) + 0.0
    array([0. , 0.3, 0. ])
    """

    skeleton: Skeleton
    times: Floats
    """(frames,) increasing; s."""
    quats_wxyz: Floats
    """(frames, joints, 4) of the joints in the axes of their parents."""
    translations: Floats
    """(frames, moved, 3) of the joints that `moved` lists, from their parents' origins in the parents' axes; m."""
    moved: tuple[int, ...]
    """Joints that have translations; the root is always the first."""
    loop: bool
    """Whether the clip repeats."""
    stride: Floats
    """(3,) how far a loop takes the root each time; m."""
    name: str
    notes: tuple[str, ...]
    """Guesses of the reader, and corrections of clean-up, one sentence each."""
    origin: Origin | None
    """Layout of the clip's file."""
    _curves: dict[Any, Any]

    def __init__(
        self,
        skeleton: Skeleton,
        times: ArrayLike,
        quats_wxyz: ArrayLike,
        translations: ArrayLike | None = None,
        *,
        moved: Sequence[int | str] = (0,),
        loop: bool = False,
        stride: ArrayLike = (0.0, 0.0, 0.0),
        name: str = "",
        notes: Sequence[str] = (),
        origin: Origin | None = None,
    ) -> None:
        if not isinstance(skeleton, Skeleton):
            raise ValueError(f"skeleton: must be a Skeleton, found {skeleton!r:.80}")
        keys = key_times(times)
        joints = tuple(skeleton.index(joint) for joint in moved)
        if not joints or joints[0] != 0 or len(set(joints)) != len(joints):
            raise ValueError(f"moved: must list different joints, the root first, found {tuple(moved)}")
        if translations is None:
            translations = np.tile(skeleton.offsets[list(joints)], (len(keys), 1, 1))
        elif np.ndim(translations) == 2:
            translations = np.asarray(translations)[:, None]
        self._set(
            skeleton=skeleton,
            times=keys,
            quats_wxyz=unit_quats("quats_wxyz", quats_wxyz, (len(keys), len(skeleton), 4)),
            translations=vectors("translations", translations, (len(keys), len(joints), 3)),
            moved=joints,
            loop=bool(loop),
            stride=vectors("stride", stride, (3,)),
            name=str(name),
            notes=tuple(notes),
            origin=origin,
            _curves={},
        )
        if self.loop:
            # raises early for a cyclic clip that does not close
            self._turns("smooth")
            self._moves("smooth", 0.0)
        elif self.stride.any():
            raise ValueError("stride: only a loop has one")

    def __repr__(self) -> str:
        name = f' "{self.name}"' if self.name else ""
        return f"<Clip{name}: {self.n_frames} frames of {len(self.skeleton)} joints, {self.duration:.3g} s>"

    @property
    def n_frames(self) -> int:
        """Number of keys."""
        return len(self.times)

    @property
    def duration(self) -> float:
        """From the first key to the last; s."""
        return float(self.times[-1] - self.times[0])

    @property
    def rate(self) -> float:
        """Mean number of keys per second; 0 for a single key."""
        return (self.n_frames - 1) / self.duration if self.n_frames > 1 else 0.0

    @property
    def root_positions(self) -> Floats:
        """(frames, 3) path of the root; m."""
        return self.translations[:, 0]

    def sample(
        self, times: ArrayLike, *, turns: Turns = "smooth", moves: Moves = "smooth", tension: float = 0.0
    ) -> Pose:
        """Pose, velocities and accelerations at any times (s), from curves through the keys.

        `turns` selects the interpolation of rotations (`"smooth"`, `"squad"`, `"slerp"`), `moves` that of translations
        (`"smooth"`, `"catmull_rom"`, `"hermite"` with `tension`, `"monotone"`, `"linear"`). Smooth curves have
        continuous accelerations. Outside its range a clip that is not cyclic is constant.

        >>> path = [(0, 0, 0), (1, 0, 0), (4, 0, 0)]
        >>> clip = Clip(Skeleton(["root"], [-1], [(0, 0, 0)]), [0, 1, 2], np.tile((1, 0, 0, 0), (3, 1, 1)), path)
        >>> clip.sample([0.5, 1.5]).velocities[:, 0, 0]
        array([1., 3.])
        """
        now = finite_times(times)
        flat = now.ravel()
        quats, spins, spin_rates = self._turns(turns).evaluate(flat)
        moves_now = self._moves(moves, tension).evaluate(flat)
        count = len(self.skeleton)
        translations = np.empty((len(flat), count, 3))
        translations[:] = self.skeleton.offsets
        velocities, accelerations = np.zeros_like(translations), np.zeros_like(translations)
        for whole, part in zip((translations, velocities, accelerations), moves_now, strict=True):
            whole[:, list(self.moved)] = part.reshape(len(flat), -1, 3)
        if self.loop and np.any(self.stride):
            share = (flat - self.times[0]) / self.duration
            translations[:, 0] += share[:, None] * self.stride
            velocities[:, 0] += self.stride / self.duration
        parts = (quats, spins, spin_rates, translations, velocities, accelerations)
        return Pose(self.skeleton, *(part.reshape(*now.shape, count, part.shape[-1]) for part in parts))

    def _turns(self, kind: Turns) -> RotationCurve:
        if kind not in self._curves:
            self._curves[kind] = RotationCurve(self.times, self.quats_wxyz, kind, loop=self.loop, ends="free")
        curve: RotationCurve = self._curves[kind]
        return curve

    def _moves(self, kind: Moves, tension: float) -> Spline:
        key = ("moves", kind, tension)
        if key not in self._curves:
            keys = np.array(self.translations)
            if self.loop:
                # the curve excludes the travel per cycle, which sampling adds
                share = (self.times - self.times[0]) / self.duration
                keys[:, 0] -= share[:, None] * self.stride
            self._curves[key] = Spline(self.times, keys, kind, loop=self.loop, ends="free", tension=tension)
        curve: Spline = self._curves[key]
        return curve

    def world_positions(self, frame: int | None = None, *, tips: bool = False) -> Floats:
        """Positions (joints, 3) of all joints in one frame, or (frames, joints, 3); with `tips` those follow; m.

        >>> arm = Skeleton(["shoulder", "elbow"], [-1, 0], [(0, 0, 0), (0.3, 0, 0)], tips=[(1, (0.2, 0, 0))])
        >>> Clip(arm, [0.0], [[(1, 0, 0, 0), (1, 0, 0, 1)]]).world_positions(0, tips=True).round(6)[2]
        array([0.3, 0.2, 0. ])
        """
        if frame is not None and not -self.n_frames <= frame < self.n_frames:
            raise ValueError(f"frame: there are {self.n_frames}, found {frame}")
        pick: Any = ... if frame is None else frame
        position, quat = self.skeleton.place(self.quats_wxyz[pick], self.all_translations()[pick])
        return np.concatenate((position, self.skeleton.place_tips(position, quat)), axis=-2) if tips else position

    def all_translations(self) -> Floats:
        """(frames, joints, 3) translations of all joints, those that never move included; m."""
        every = np.empty((self.n_frames, len(self.skeleton), 3))
        every[:] = self.skeleton.offsets
        every[:, list(self.moved)] = self.translations
        return every

    def path(self, joint: str | int) -> JointPath:
        """The path of one joint through the world, for a kinematic body.

        >>> root = Skeleton(["root"], [-1], [(0, 0, 0)])
        >>> clip = Clip(root, [0, 2], np.tile((1, 0, 0, 0), (2, 1, 1)), [(0, 0, 1), (2, 0, 1)])
        >>> clip.path("root")(1.0).velocity
        array([1., 0., 0.])
        """
        return JointPath(self, self.skeleton.index(joint))

    def keyed(self, times: ArrayLike, quats_wxyz: ArrayLike, translations: ArrayLike, **changes: Any) -> Clip:
        """The same skeleton with other keys."""
        names = ("skeleton", "moved", "loop", "stride", "name", "notes", "origin")
        options = {name: getattr(self, name) for name in names} | changes
        return Clip(times=times, quats_wxyz=quats_wxyz, translations=translations, **options)

    slice = clip_editing.sliced
    looped = clip_editing.looped
    blend = clip_editing.blended
    warp = clip_editing.warped
    mirrored = clip_editing.mirrored
    resampled = clip_editing.resampled
    then = clip_editing.joined
    scaled = clip_editing.scaled
    shifted = clip_editing.shifted
    at_rest_of = clip_editing.with_rest
    mended = cleanup.mended


class JointPath:
    """A `Path` that follows one joint of a clip."""

    def __init__(self, clip: Clip, joint: int) -> None:
        chain = [joint]
        while (parent := int(clip.skeleton.parents[chain[-1]])) >= 0:
            chain.append(parent)
        self._clip, self._chain = clip, chain[::-1]
        names = [clip.skeleton.names[j] for j in self._chain]
        offsets = clip.skeleton.offsets[self._chain]
        self._skeleton = Skeleton(names, range(-1, len(names) - 1), offsets)

    def __call__(self, time: float, /) -> PathPoint:
        """Pose, velocity and acceleration at `time` (s)."""
        pose = self._clip.sample(float(finite_times(time)))
        own = [
            part[..., self._chain, :]
            for part in (
                pose.quats_wxyz,
                pose.angular_velocities,
                pose.angular_accelerations,
                pose.translations,
                pose.velocities,
                pose.accelerations,
            )
        ]
        world = Pose(self._skeleton, *own).world()
        quat = world.quats_wxyz[-1]
        back = quat_conjugate(quat)
        return PathPoint(
            world.positions[-1],
            quat,
            world.velocities[-1],
            rotate(back, world.angular_velocities[-1]),
            world.accelerations[-1],
            rotate(back, world.angular_accelerations[-1]),
        )
