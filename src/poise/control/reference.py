"""References: target motions of a character's joints, from clips, key-frames or coordinates.

A reference identifies joints by name. It can be made from the character alone, and tracked in any world that contains
a character with joints of those names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.arms import arms_above
from poise.control.contact_phases import AROUND, GRAVITY, centre_of_mass, find_feet
from poise.control.footskate_cleanup import plant_feet
from poise.model.errors import did_you_mean, matches
from poise.model.joints import JOINTS, Primitive
from poise.model.model import Model
from poise.motion import Clip, Coordinates, Keyframes, RotationCurve, Spline, retarget
from poise.motion.ballistic_correction import Fall, without_falls
from poise.motion.motion_checks import finite_times, key_times, unit_quats, vectors
from poise.motion.path import PathPoint
from poise.motion.retarget_rig import Target
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply, rotate

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Layout(NamedTuple):
    """The coordinates of a model that are plain numbers, and those of quaternions."""

    numbers: Indices
    """(n,) coordinates that are numbers."""
    speeds: Indices
    """(n,) their velocities."""
    quats: Indices
    """(m, 4) coordinates of rotations."""
    spins: Indices
    """(m, 3) their velocities."""


def layout(model: Model) -> Layout:
    """Indices of a model's numbers and rotations."""
    ball = model.primitive_kind == Primitive.BALL
    q, v = model.primitive_q_start.astype(np.intp), model.primitive_v_start.astype(np.intp)
    return Layout(q[~ball], v[~ball], q[ball, None] + np.arange(4), v[ball, None] + np.arange(3))


class Reference:
    """Coordinates of joints over time, with velocities and accelerations.

    `motion` is a clip (which is retargeted, `poise.motion.retarget`), key-frames, a result of `retarget`, or a pair of
    times (s) and coordinates (frames, nq). Key-frames contribute only the joints that have keys. With `floor` (m), feet
    stand on it (`plant_feet`), arms that would be below it bend, and falls are limited to the acceleration of gravity;
    `falls` lists the corrections. Outside its range the reference is constant, unless it is cyclic: a clip states
    whether it is; times and coordinates are with `loop=True`, their last frame repeating the first. `place` is the pose
    of a clip's origin, a position (m) and a quaternion (w, x, y, z), of which only the rotation about the vertical is
    used; other motions are already in world coordinates.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    >>> model = scene.compile()
    >>> nod = Reference(poise.motion.keyframes({0.0: {"arm": 0.0}, 1.0: {"arm": 2.0}}, moves="linear"), model)
    >>> nod.names, nod.duration, nod.coordinates(model, 0.25).q
    (('arm',), 1.0, array([0.5]))
    """

    def __init__(
        self,
        motion: Any,
        model: Model,
        *,
        floor: float | None = None,
        place: tuple[ArrayLike, ArrayLike] | None = None,
        loop: bool = False,
    ) -> None:
        self.model = model
        self._layout = layout(model)
        self.falls: list[Fall] = []
        """Stretches in which the motion fell faster than gravity permits, and their corrections."""
        self._keyed: Keyframes | None = motion if isinstance(motion, Keyframes) else None
        if self._keyed is not None:
            if loop:
                raise ValueError(
                    "key-frames tell themselves whether they are a loop: poise.motion.keyframes(…, loop=True)"
                )
            keys = self._keyed
            self.start, self.end = keys.start, keys.end
            keys.coordinates(model, self.start)  # raises for names that are not joints
            self.joints = tuple(k for k, name in enumerate(model.joint_names) if _has_keys(keys, model, k, name))
        else:
            times, q, self.joints = _keys(motion, model)
            self.start, self.end = float(times[0]), float(times[-1])
            loop = bool(loop) or (isinstance(motion, Clip) and motion.loop)
            if floor is not None:
                q, self.falls = falling_freely(model, times, q, loop=loop)
                q = on_feet(model, times, q, float(vectors("floor", floor, ())), loop=loop)
            if place is not None and isinstance(motion, Clip):
                q = _put(q, _root_start(model), *place)
            self._lay_curves(times, q, loop)
        self.names = tuple(model.joint_names[k] for k in self.joints)

    def _lay_curves(self, times: Floats, q: Floats, loop: bool) -> None:
        lay = self._layout
        numbers, quats = q[:, lay.numbers], q[:, lay.quats]
        self._stride = np.zeros(len(lay.numbers))
        """Set up the curves, and the increments per cycle, which only free bodies have."""
        if loop:
            free = np.array([kind == "free" for kind in self.model.joint_kinds], np.bool_)
            goes_on = np.isin(lay.numbers, self.model.joint_q_start[: len(free)][free, None] + np.arange(3))
            self._stride = np.where(goes_on, numbers[-1] - numbers[0], 0.0)
            # the curve excludes the increment per cycle, which sampling adds
            numbers = numbers - ((times - times[0]) / (times[-1] - times[0]))[:, None] * self._stride
            numbers[-1], quats[-1] = numbers[0], quats[0]
        self._moves = Spline(times, numbers, loop=loop, ends="free")
        self._turns = RotationCurve(times, quats, loop=loop, ends="free")

    def __repr__(self) -> str:
        return f"<Reference: {len(self.names)} joints, {self.duration:.3g} s>"

    @property
    def duration(self) -> float:
        """From the first key to the last; s."""
        return self.end - self.start

    @property
    def loops(self) -> bool:
        """Whether the motion is cyclic."""
        return any(curve.loop for curve in self._curves)

    @property
    def key_times(self) -> Floats:
        """Times of all keys, in order; s."""
        return np.unique(np.concatenate([curve.times for curve in self._curves]))

    @property
    def has_corners(self) -> bool:
        """Whether position or velocity may be discontinuous at keys."""
        return self._keyed is not None

    @property
    def has_one_period(self) -> bool:
        """Whether all cyclic parts have the period from its start to its end."""
        ends = {(float(curve.times[0]), float(curve.times[-1])) for curve in self._curves}
        return not self.loops or (ends == {(self.start, self.end)} and all(curve.loop for curve in self._curves))

    @property
    def _curves(self) -> list[Spline | RotationCurve]:
        if self._keyed is None:
            return [self._moves, self._turns]
        both = [curve for track in self._keyed.tracks.values() for curve in (track.move, track.turn)]
        return [curve for curve in both if curve is not None]

    def stride_of(self, place: Placed) -> Floats:
        """(numbers,) increments per cycle of the numbers of a `Placed`."""
        own, found = np.zeros(self.model.nq), np.zeros(place.model.nq)
        own[self._layout.numbers] = self._stride if self._keyed is None else 0.0
        found[place.sources[1]] = own[place.sources[0]]
        return np.asarray(found[place.layout.numbers])

    def _sample(self, times: Floats) -> Coordinates:
        """Coordinates of the reference's own model."""
        lay, model = self._layout, self.model
        if self._keyed is not None:
            return self._keyed.coordinates(model, times)
        q, v, a = (np.zeros((*times.shape, n)) for n in (model.nq, model.nv, model.nv))
        for whole, at, part in zip((q, v, a), (lay.numbers, lay.speeds, lay.speeds), self._moves(times), strict=True):
            whole[..., at] = part
        for whole, at, part in zip((q, v, a), (lay.quats, lay.spins, lay.spins), self._turns(times), strict=True):
            whole[..., at] = part
        if self._stride.any():
            q[..., lay.numbers] += ((times - self.start) / self.duration)[..., None] * self._stride
            v[..., lay.speeds] += self._stride / self.duration
        return Coordinates(q, v, a)

    def coordinates(self, model: Model, times: ArrayLike) -> Coordinates:
        """(..., nq), (..., nv), (..., nv) of a model at any times (s) of the reference; other joints are at rest.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball")
        >>> model = scene.compile()
        >>> way = Reference(([0.0, 1.0], [(0, 0, 1, 1, 0, 0, 0), (2, 0, 1, 1, 0, 0, 0)]), model)
        >>> way.coordinates(model, [0.0, 0.5]).v[:, 0]
        array([2., 2.])
        """
        return Placed(self, model).at(finite_times(times))


class Placed:
    """A reference on the coordinates of a model."""

    def __init__(self, reference: Reference, model: Model) -> None:
        self.reference, self.model = reference, model
        self.joints = tuple(_counterpart(reference.model, j, model) for j in reference.joints)
        source, own = reference.model, reference.joints
        self.sources = _ranges(source.joint_q_start, own), _ranges(model.joint_q_start, self.joints)
        """Coordinates of the reference's model, and the corresponding ones of this model."""
        self._v = _ranges(source.joint_v_start, own), _ranges(model.joint_v_start, self.joints)
        lay = layout(model)
        q = np.isin(lay.numbers, self.sources[1])
        turns = np.isin(lay.quats[:, 0], self.sources[1])
        self.layout = Layout(lay.numbers[q], lay.speeds[q], lay.quats[turns], lay.spins[turns])
        """Layout of the coordinates that the reference contains."""
        self.dofs = self._v[1]
        """Degrees of freedom that the reference contains."""

    def at(self, times: Floats) -> Coordinates:
        """Coordinates of the model at times of the reference."""
        model, found = self.model, self.reference._sample(times)
        q = np.broadcast_to(model.q_rest, (*times.shape, model.nq)).copy()
        v = np.zeros((*times.shape, model.nv))
        a = np.zeros_like(v)
        q[..., self.sources[1]] = found.q[..., self.sources[0]]
        v[..., self._v[1]] = found.v[..., self._v[0]]
        a[..., self._v[1]] = found.a[..., self._v[0]]
        return Coordinates(q, v, a)

    def root(self) -> int:
        """Number of the free joint that carries the others, or −1."""
        free = [j for j in self.joints if self.model.joint_kinds[j] == "free"]
        return free[0] if len(free) == 1 else -1

    def difference(self, start: Floats, end: Floats) -> Floats:
        """(..., nv) displacement from coordinates to others, in the axes of the first; 0 outside the reference."""
        lay = self.layout
        result = np.zeros((*np.broadcast_shapes(start.shape[:-1], end.shape[:-1]), self.model.nv))
        result[..., lay.speeds] = end[..., lay.numbers] - start[..., lay.numbers]
        if len(lay.quats):
            turn = quat_multiply(quat_conjugate(start[..., lay.quats]), end[..., lay.quats])
            result[..., lay.spins] = quat_log(turn)
        return result


class RootPath:
    """The path of a reference's root, for a kinematic body.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> way = Reference(([0.0, 1.0], [(0, 0, 1, 1, 0, 0, 0), (2, 0, 1, 1, 0, 0, 0)]), scene.compile())
    >>> RootPath(way)(0.5).position
    array([1., 0., 1.])
    """

    def __init__(self, reference: Reference, start: float = 0.0) -> None:
        place = Placed(reference, reference.model)
        joint = place.root()
        if joint < 0:
            raise ValueError("root: the motion has no free joint that a root could be held by")
        self._place, self._shift = place, reference.start - start
        self._q = int(reference.model.joint_q_start[joint])
        self._v = int(reference.model.joint_v_start[joint])

    def __call__(self, time: float, /) -> PathPoint:
        """Pose, velocity and acceleration at `time` (s)."""
        now = self._place.at(np.asarray(time + self._shift))
        q, v, a = now.q[self._q :], now.v[self._v :], now.a[self._v :]
        return PathPoint(q[:3], q[3:7], v[:3], v[3:6], a[:3], a[3:6])


def _ranges(starts: Any, joints: tuple[int, ...]) -> Indices:
    """Indices of all numbers of some joints."""
    parts = [np.arange(int(starts[j]), int(starts[j + 1])) for j in joints]
    return np.concatenate([np.zeros(0, np.intp), *parts]).astype(np.intp)


def _has_keys(keys: Keyframes, model: Model, joint: int, name: str) -> bool:
    own = {name, *(f"{name}.{part}" for part in JOINTS[model.joint_kinds[joint]].q_names)}
    return any(key == full or full.endswith(f"/{key}") for key in keys.names for full in own)


def _keys(motion: Any, model: Model) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Times, coordinates (frames, nq) and their joints."""
    if isinstance(motion, Clip):
        root = Target(model).root
        own = [j for j, body in enumerate(model.joint_body) if model.link_root[model.body_link[body]] == root]
        times, q = retarget(motion, model)
        return times, q, tuple(own)
    if hasattr(motion, "times") and hasattr(motion, "q"):
        motion = motion.times, motion.q
    if isinstance(motion, tuple | list) and len(motion) == 2:
        times = key_times(motion[0])
        q = np.asarray(motion[1], np.float64)
        if q.shape != (len(times), model.nq):
            raise ValueError(
                f"motion: {len(times)} frames of this character are ({len(times)}, {model.nq}) numbers, "
                f"found the shape {q.shape}; is it a motion of another one?"
            )
        return times, vectors("motion", q, q.shape), tuple(range(model.n_joints))
    raise TypeError(
        f"motion is a {type(motion).__name__}; it must be a clip, key-frames, a Reference, or (times, coordinates)"
    )


def _counterpart(source: Model, joint: int, model: Model) -> int:
    """The joint of a model with the name of another model's joint."""
    name, kind = source.joint_names[joint], source.joint_kinds[joint]
    found = [name] if name in model.joint_names else matches(name.rpartition("/")[2], model.joint_names)
    if len(found) != 1:
        many = f", it may be {', '.join(found)}" if found else did_you_mean(name, model.joint_names)
        raise ValueError(f'motion: there is no joint "{name}" here{many}; is it a motion of another character?')
    number = model.joint_names.index(found[0])
    if model.joint_kinds[number] != kind:
        raise ValueError(f'motion: "{found[0]}" is a {model.joint_kinds[number]} joint, in the motion a {kind}')
    return number


def falling_freely(model: Model, times: Floats, q: Floats, *, loop: bool = False) -> tuple[Floats, list[Fall]]:
    """Coordinates (frames, nq) of a character that falls no faster than gravity permits, and the corrected stretches.

    Contacts push and never pull. The whole character moves up or down; its joints do not change (`without_falls`).
    """
    feet = find_feet(model)[0]
    if len(times) < 3 or not feet:
        return q, []
    height = centre_of_mass(model, q, next(iter(feet.values())))[:, 2]
    fresh, falls = without_falls(times, height, loop, GRAVITY)
    if falls:
        q = np.array(q)
        q[:, _root_start(model) + 2] += fresh - height
    return q, falls


def on_feet(model: Model, times: Floats, q: Floats, floor: float, *, loop: bool = False) -> Floats:
    """Coordinates (frames, nq) of a character without footskate, if it has feet, and with its arms above the floor."""
    if len(times) < 2 or not find_feet(model)[0]:
        return q
    if not loop:
        return arms_above(model, times, plant_feet(model, times, q, floor=floor).q, floor)
    # cycles before and after it, so that the seam does not affect stances
    root, n, length = _root_start(model), len(times) - 1, times[-1] - times[0]
    stride = np.zeros(model.nq)
    stride[root : root + 3] = q[-1, root : root + 3] - q[0, root : root + 3]
    k = max(1, int(np.ceil(AROUND / length)))
    rounds = range(-k, k + 1)
    moments = np.concatenate([*(times[:-1] + r * length for r in rounds), times[-1:] + k * length])
    frames = np.concatenate([*(q[:-1] + r * stride for r in rounds), q[-1:] + k * stride])
    planted = arms_above(model, moments, plant_feet(model, moments, frames, floor=floor).q, floor)
    planted = np.array(planted[k * n : (k + 1) * n + 1])
    planted[-1] = planted[0] + stride
    return planted


def _root_start(model: Model) -> int:
    """First coordinate of a character's root."""
    figure = Target(model)
    return int(model.joint_q_start[figure.joint[figure.root]])


def _put(q: Floats, root: int, position: ArrayLike, quat_wxyz: ArrayLike) -> Floats:
    """Coordinates (frames, nq) of a moved character, rotated about the vertical."""
    to = vectors("place", position, (3,))
    ahead = rotate(unit_quats("place", quat_wxyz, (4,)), np.array((1.0, 0.0, 0.0)))
    turn = quat_exp((0.0, 0.0, float(np.arctan2(ahead[1], ahead[0]))))
    moved = np.array(q)
    moved[:, root : root + 3] = to + rotate(turn, q[:, root : root + 3])
    moved[:, root + 3 : root + 7] = quat_multiply(turn, q[:, root + 3 : root + 7])
    return moved
