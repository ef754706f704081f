"""The state: everything that the next steps depend on. A copy of it is a checkpoint."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise._version import __version__
from poise.model.array_file import read_arrays, write_arrays
from poise.model.checks import Checker
from poise.model.errors import SceneError, did_you_mean
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.model.scene import Keyframe, Scene
from poise.motion.rotations import quat_normalize

Floats = NDArray[np.float64]

_FORMAT = "poise-state"
_FORMAT_VERSION = 1
_SLOT = "slot/"


@dataclass(eq=False)
class State:
    """Coordinates, velocities, time, and the memory of solvers and controllers.

    >>> from poise.model.scene import Scene
    >>> State.rest(Scene().compile()).time
    0.0
    """

    q: Floats
    """(nq,) coordinates; m, rad, unit quaternions (w, x, y, z)."""
    v: Floats
    """(nv,) velocities; m/s, rad/s."""
    time: float = 0.0
    """s."""
    slots: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Arrays of solvers and controllers by name: warm starts, contact ids, sleep counters."""

    @classmethod
    def rest(cls, model: Model) -> State:
        """The rest pose, without velocity, at time 0.

        >>> from poise.model.scene import Body, Joint
        >>> scene = Scene(bodies=[Body("door", joints=[Joint("hinge", rest=0.3, armature=1.0)])])
        >>> State.rest(scene.compile()).q
        array([0.3])
        """
        return cls(model.q_rest.copy(), np.zeros(model.nv))

    @classmethod
    def from_keyframe(cls, scene: Scene, key: str | int = 0, model: Model | None = None) -> State:
        """The state of a keyframe by its name or number; missing fields have the values of the rest state.

        Its control, if any, is in the slot `"control"`. Passing the compiled `model` avoids compiling the scene.

        >>> from poise.model.scene import Body, Joint
        >>> door = Body("door", joints=[Joint("hinge", armature=1.0)])
        >>> State.from_keyframe(Scene(bodies=[door], keyframes=[Keyframe("ajar", q=(0.2,))]), "ajar").q
        array([0.2])
        """
        frame = _find_keyframe(scene, key)
        model = scene.compile() if model is None else model
        state = cls.rest(model)
        check = Checker(scene.source).at(f'keyframe "{frame.name}"')
        for name, target, given in (("q", state.q, frame.q), ("v", state.v, frame.v)):
            if given is not None:
                check.numbers(name, given, len(target))
                if check.problems:
                    raise SceneError.of(check.problems)
                target[:] = given
        _normalize_quaternions(model, state.q, f'keyframe "{frame.name}"', scene.source)
        state.time = float(frame.time)
        if frame.control is not None:
            state.slots["control"] = np.array(frame.control, dtype=np.float64)
        return state

    def copy(self) -> State:
        """An independent copy, bit for bit.

        >>> state = State(np.zeros(1), np.zeros(1))
        >>> saved = state.copy()
        >>> state.q[0] = 1.0
        >>> saved.q
        array([0.])
        """
        slots = {name: array.copy() for name, array in self.slots.items()}
        return State(self.q.copy(), self.v.copy(), self.time, slots)

    def restore(self, other: State) -> None:
        """Copy `other` into the arrays of this state, bit for bit, so that views of them remain valid.

        >>> state = State(np.zeros(1), np.zeros(1))
        >>> view = state.q
        >>> state.restore(State(np.ones(1), np.zeros(1)))
        >>> view
        array([1.])
        """
        for name, mine, theirs in (("q", self.q, other.q), ("v", self.v, other.v)):
            if mine.shape != theirs.shape:
                raise SceneError(
                    f"a state of another model: this one has {mine.shape[0]} numbers, the other {theirs.shape[0]}",
                    field=name,
                )
        np.copyto(self.q, other.q)
        np.copyto(self.v, other.v)
        self.time = other.time
        for name in set(self.slots) - set(other.slots):
            del self.slots[name]
        for name, theirs in other.slots.items():
            held = self.slots.get(name)
            if held is not None and held.shape == theirs.shape and held.dtype == theirs.dtype:
                np.copyto(held, theirs)
            else:
                self.slots[name] = theirs.copy()

    def same_bits(self, other: State) -> bool:
        """Whether two states are equal to the last bit, the sign of 0 and the kind of NaN included.

        >>> State(np.zeros(1), np.zeros(1)).same_bits(State(-np.zeros(1), np.zeros(1)))
        False
        """
        mine, theirs = self._named(), other._named()
        return mine.keys() == theirs.keys() and all(_same(mine[name], theirs[name]) for name in mine)

    def _named(self) -> dict[str, NDArray[Any]]:
        time = np.array(self.time, dtype=np.float64)
        return {"q": self.q, "v": self.v, "time": time, **{_SLOT + name: a for name, a in self.slots.items()}}

    def save(self, path: str | os.PathLike[str], model: Model) -> None:
        """Write the state to a file, with data that identifies the model. The file is written atomically.

        >>> import tempfile
        >>> model = Scene().compile()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     State.rest(model).save(f"{folder}/start.npz", model)
        ...     State.load(f"{folder}/start.npz", model).time
        0.0
        """
        for name, array in self.slots.items():
            if array.dtype.hasobject:
                raise SceneError(f"only arrays of numbers can be saved, found {array.dtype}", field=f'slot "{name}"')
        header = json.dumps(_header(model)).encode()
        write_arrays(path, {"header": np.frombuffer(header, dtype=np.uint8), **self._named()})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model) -> State:
        """Read a state that was saved for this model; raises `SceneError` for any other file."""
        content = read_arrays(Path(path), "not a state that Poise saved")
        file = os.fspath(path)
        header = _parse_header(content, file)
        _compare(header, _header(model), file)
        missing = [name for name in ("q", "v", "time") if name not in content]
        if missing:
            raise SceneError(f"the file is damaged, {', '.join(missing)} missing; save it again", file=str(file))
        for name in content.keys() - {"header", "q", "v", "time"}:
            if not name.startswith(_SLOT):
                raise SceneError("the file is damaged: states have no such field; save it again", file=file, field=name)
        for name, count in (("q", model.nq), ("v", model.nv)):
            array = content[name]
            if array.shape != (count,) or array.dtype != np.float64 or not np.isfinite(array).all():
                raise SceneError(
                    f"must be {count} finite numbers, found {array.dtype}{array.shape}", file=file, field=name
                )
        time = content["time"]
        if time.shape != () or time.dtype != np.float64 or not np.isfinite(time):
            raise SceneError(f"must be a finite number, found {time!r}", file=file, field="time")
        slots = {name[len(_SLOT) :]: array for name, array in content.items() if name.startswith(_SLOT)}
        return cls(content["q"], content["v"], float(time), slots)


def _same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def _find_keyframe(scene: Scene, key: str | int) -> Keyframe:
    names = [frame.name for frame in scene.keyframes]
    if isinstance(key, str):
        if key in names:
            return scene.keyframes[names.index(key)]
        raise SceneError(f'there is no keyframe "{key}"{did_you_mean(key, names)}', file=scene.source)
    if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
        raise SceneError(f"a keyframe is found by its name or number, found {key!r}", file=scene.source)
    if not 0 <= key < len(names):
        there = f"there are {len(names)}, counted from 0" if names else "the scene has none"
        raise SceneError(f"there is no keyframe {key}; {there}", file=scene.source)
    return scene.keyframes[key]


def _normalize_quaternions(model: Model, q: Floats, place: str, file: str | None) -> None:
    for kind, start in zip(model.primitive_kind, model.primitive_q_start, strict=True):
        if kind != Primitive.BALL:
            continue
        quat = q[start : start + 4]
        if not quat.any():
            what = f"{place}: q[{start}:{start + 4}]"
            raise SceneError("must be a rotation (w, x, y, z), found (0, 0, 0, 0)", file=file, field=what)
        quat[:] = quat_normalize(quat)


def _header(model: Model) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "poise": __version__,
        "model": model.name,
        "digest": model.digest(),
        "digests": model.digests(),
        "joints": list(model.joint_names),
        "nq": model.nq,
        "nv": model.nv,
    }


def _parse_header(content: dict[str, NDArray[Any]], file: str) -> dict[str, Any]:
    try:
        header = json.loads(content["header"].tobytes())
        known = header["format"] == _FORMAT
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known:
        raise SceneError("not a state that Poise saved: its header is missing or damaged", file=file)
    if header.get("format_version") != _FORMAT_VERSION:
        raise SceneError(
            f"written in format {header.get('format_version')} by Poise {header.get('poise')}, "
            f"this Poise reads format {_FORMAT_VERSION}",
            file=file,
        )
    return dict(header)


def _compare(found: dict[str, Any], wanted: dict[str, Any], file: str) -> None:
    """Raise `SceneError` with the differences from the model in the file."""
    if found.get("digest") == wanted["digest"]:
        return
    differences = []
    for name in ("nq", "nv"):
        if found.get(name) != wanted[name]:
            differences.append(f"{name} is {found.get(name)} there and {wanted[name]} here")
    joints, ours = found.get("joints"), wanted["joints"]
    theirs = [str(name) for name in joints] if isinstance(joints, list) else []
    for label, first, second in (("only there", theirs, ours), ("only here", ours, theirs)):
        extra = [name for name in first if name not in second]
        if extra:
            differences.append(f"joints {label}: {', '.join(extra[:5])}{', …' if len(extra) > 5 else ''}")
    if not differences:
        told = found.get("digests")
        digests = told if isinstance(told, dict) else {}
        changed = [name for name, part in wanted["digests"].items() if digests.get(name) != part]
        differences.append(f"the same coordinates, but other values of {', '.join(changed) or 'unknown fields'}")
    raise SceneError(f'a state of another model ("{found.get("model")}"): {"; ".join(differences)}', file=file)
