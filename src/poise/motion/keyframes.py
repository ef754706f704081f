"""Key-frames by name: positions, orientations, poses and angles of bodies and joints, each with its own times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.motion_checks import choice, finite_times, unit_quats, vectors
from poise.motion.quintic_splines import Ends
from poise.motion.rotation_splines import RotationCurve, Turned, Turns
from poise.motion.splines import Moved, Moves, Spline

if TYPE_CHECKING:
    from poise.model.model import Model

Floats = NDArray[np.float64]

#: number of components of each kind of value
_SIZES = {1: "angle", 3: "position", 4: "orientation", 7: "pose"}
_FORMS = "a number, a position (x, y, z), a rotation (w, x, y, z), or both (x, y, z, w, x, y, z)"


class TrackPoint(NamedTuple):
    """Values of one track at times (...). Missing parts are None."""

    value: Floats | None = None
    """(...) an angle or a distance, or (..., 3) a position; rad, m."""
    velocity: Floats | None = None
    acceleration: Floats | None = None
    quat_wxyz: Floats | None = None
    """(..., 4)."""
    angular_velocity: Floats | None = None
    """(..., 3) in body axes; rad/s."""
    angular_acceleration: Floats | None = None


class Coordinates(NamedTuple):
    """Coordinates of a model over time."""

    q: Floats
    """(..., nq)"""
    v: Floats
    """(..., nv)"""
    a: Floats
    """(..., nv)"""


class Track:
    """Keys of one name, and the curve through them."""

    def __init__(
        self,
        name: str,
        times: list[float],
        values: Floats,
        moves: Moves,
        turns: Turns,
        loop: bool,
        ends: Ends,
        tension: float,
    ) -> None:
        self.name = name
        self.kind = _SIZES[values.shape[1]]
        self.move: Spline | None = None
        self.turn: RotationCurve | None = None
        try:
            if self.kind != "orientation":
                keys = values[:, 0] if self.kind == "angle" else values[:, :3]
                self.move = Spline(times, keys, moves, loop=loop, ends=ends, tension=tension)
            if self.kind in ("orientation", "pose"):
                quats = unit_quats("rotation", values[:, -4:], (len(times), 4))
                self.turn = RotationCurve(times, quats, turns, loop=loop, ends=ends)
        except ValueError as error:
            raise ValueError(f'"{name}": {error}') from None

    def __call__(self, times: ArrayLike) -> TrackPoint:
        """Value, velocity and acceleration at any times (s)."""
        moved = self.move(times) if self.move is not None else Moved(None, None, None)  # type: ignore[arg-type]
        turned = self.turn(times) if self.turn is not None else Turned(None, None, None)  # type: ignore[arg-type]
        return TrackPoint(*moved, *turned)


class Keyframes:
    """Tracks by name; see `keyframes`.

    >>> keys = keyframes({0.0: {"knee": 0.0}, 1.0: {"knee": 1.2}})
    >>> keys.names, keys.duration
    (('knee',), 1.0)
    """

    def __init__(self, tracks: Mapping[str, Track], start: float, end: float) -> None:
        self.tracks = dict(tracks)
        self.start, self.end = start, end

    @property
    def names(self) -> tuple[str, ...]:
        """Names with keys, in the order of their first occurrence."""
        return tuple(self.tracks)

    @property
    def duration(self) -> float:
        """From the first key to the last; s."""
        return self.end - self.start

    def sample(self, times: ArrayLike) -> dict[str, TrackPoint]:
        """Values of all tracks at any times (s).

        >>> keys = keyframes({0.0: {"hand": (0, 0, 1)}, 1.0: {"hand": (1, 0, 1)}}, ends="free")
        >>> keys.sample(0.5)["hand"].velocity
        array([1., 0., 0.])
        """
        return {name: track(times) for name, track in self.tracks.items()}

    def coordinates(self, model: Model, times: ArrayLike) -> Coordinates:
        """Coordinates, velocities and accelerations of a model at any times (s); names are those of its joints.

        Angles and distances are for joints of one coordinate, rotations for balls, poses for free joints. Joints
        without keys stay at rest. A joint of several angles is keyed by its coordinates (`"ankle_r.turn1"`, see
        `model.q_names`).

        >>> import poise
        >>> elbow = poise.Joint("hinge", name="elbow", armature=1)
        >>> model = poise.Scene(bodies=[poise.Body("arm", joints=[elbow])]).compile()
        >>> keys = keyframes({0.0: {"elbow": 0.0}, 1.0: {"elbow": 2.0}}, moves="linear")
        >>> keys.coordinates(model, [0.25, 0.5]).q.tolist()
        [[0.5], [1.0]]
        """
        now = finite_times(times)
        q = np.broadcast_to(model.q_rest, (*now.shape, model.nq)).copy()
        v = np.zeros((*now.shape, model.nv))
        a = np.zeros_like(v)
        for name, track in self.tracks.items():
            q_at, v_at = _place(model, name, track)
            point = track(now)
            for target, at, parts in (
                (q, q_at, (point.value, point.quat_wxyz)),
                (v, v_at, (point.velocity, point.angular_velocity)),
                (a, v_at, (point.acceleration, point.angular_acceleration)),
            ):
                given = [part.reshape(*now.shape, -1) for part in parts if part is not None]
                target[..., at] = np.concatenate(given, axis=-1)
        return Coordinates(q, v, a)


def keyframes(
    keys: Mapping[float, Mapping[str, ArrayLike]] | Iterable[tuple[float, Mapping[str, ArrayLike]]],
    *,
    moves: Moves = "smooth",
    turns: Turns = "smooth",
    loop: bool = False,
    ends: Ends = "still",
    tension: float = 0.0,
) -> Keyframes:
    """Motion from key-frames: values of bodies or joints at each time (s).

    A value is a number (angle of a hinge, distance of a slider), a position (x, y, z), a rotation (w, x, y, z), or a
    pose (x, y, z, w, x, y, z). Each name has its own keys: frames need not name everything. `moves`, `turns` and
    `tension` choose the curves (see `Spline` and `RotationCurve`); with `loop` the last values must be the first.

    >>> start, end = {"knee": 0.1, "hand": (0, 0, 1)}, {"knee": 0.1, "hand": (1, 0, 1)}
    >>> keys = keyframes({0.0: start, 0.5: {"knee": 1.3}, 1.0: end})
    >>> float(keys.sample(0.5)["knee"].value)
    1.3
    """
    for field, word, words in (("moves", moves, Moves), ("turns", turns, Turns), ("ends", ends, Ends)):
        choice(field, word, get_args(words))
    gathered: dict[str, list[tuple[float, Floats]]] = {}
    for time, values in _frames(keys):
        for name, value in values.items():
            gathered.setdefault(_name(name, time), []).append((time, _value(name, value, time)))
    if not gathered:
        raise ValueError("keys: at least one frame must name something, found none")
    tracks = {}
    for name, entries in gathered.items():
        sizes = {value.size for _, value in entries}
        if len(sizes) > 1:
            kinds = " and ".join(f"a{'n' if _SIZES[size][0] in 'ao' else ''} {_SIZES[size]}" for size in sorted(sizes))
            raise ValueError(f'"{name}": all its keys must be of one kind, found {kinds}')
        times, stacked = [time for time, _ in entries], np.array([value for _, value in entries])
        tracks[name] = Track(name, times, stacked, moves, turns, loop, ends, tension)
    every = [time for entries in gathered.values() for time, _ in entries]
    return Keyframes(tracks, min(every), max(every))


def _frames(keys: Any) -> list[tuple[float, Mapping[str, ArrayLike]]]:
    """(time, values) of all frames in the order of time."""
    try:
        pairs = list(keys.items() if isinstance(keys, Mapping) else keys)
        frames = [(float(vectors("time", time, ())), values) for time, values in pairs]
    except (TypeError, ValueError):
        raise ValueError("keys: must be frames by time, {0.0: {name: value}}, or pairs of both") from None
    for time, values in frames:
        if not isinstance(values, Mapping):
            raise ValueError(f"keys: the frame at {time:g} s must have values by name, found {values!r:.60}")
    frames.sort(key=lambda frame: frame[0])
    return frames


def _name(name: Any, time: float) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"keys: names at {time:g} s must be text, found {name!r}")
    return name


def _value(name: str, value: ArrayLike, time: float) -> Floats:
    try:
        array = vectors("", value, (...,))
    except ValueError as error:
        raise ValueError(f'"{name}" at {time:g} s{error}') from None
    if array.ndim > 1 or array.size not in _SIZES:
        raise ValueError(f'"{name}" at {time:g} s: must be {_FORMS}, found the shape {array.shape}')
    return array.ravel()


def _place(model: Model, name: str, track: Track) -> tuple[slice, slice]:
    """Slices of a joint's coordinates and velocities in a model."""
    size = next(count for count, kind in _SIZES.items() if kind == track.kind)
    found = [k for k, full in enumerate(model.joint_names) if full == name or full.endswith(f"/{name}")]
    if len(found) == 1:
        q_at = slice(int(model.joint_q_start[found[0]]), int(model.joint_q_start[found[0] + 1]))
        v_at = slice(int(model.joint_v_start[found[0]]), int(model.joint_v_start[found[0] + 1]))
        if q_at.stop - q_at.start != size:
            kind = model.joint_kinds[found[0]]
            raise ValueError(f'"{name}": a {kind} joint has {q_at.stop - q_at.start} numbers, found keys of {size}')
        return q_at, v_at
    listed = [k for k, full in enumerate(model.q_names) if full == name or full.endswith(f"/{name}")]
    if len(listed) == 1 and size == 1:
        at = listed[0]
        joint = int(np.searchsorted(model.joint_q_start, at, side="right")) - 1
        speed = at + int(model.joint_v_start[joint]) - int(model.joint_q_start[joint])
        if model.q_names[at] == model.dof_names[speed]:
            return slice(at, at + 1), slice(speed, speed + 1)
        raise ValueError(f'"{name}": is a part of a rotation; give keys of the whole joint')
    short = {full.rpartition("/")[2]: full for full in (*model.q_names, *model.joint_names)}
    near = get_close_matches(name, list(short), n=1)
    hint = f', did you mean "{short[near[0]]}"?' if near else ""
    raise ValueError(f'there is no joint "{name}"{hint}')
