"""Metrics of a run: one number from a world and its recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from math import inf, nan
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import bodies
from poise.model.errors import SceneError, did_you_mean, last_part
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.sim.recording import PARTS, Recording

Array = NDArray[Any]
Measure = Callable[[Any, Recording], float]


@dataclass(frozen=True)
class Known:
    """A metric that comes with Poise: a function of the world, the recording and the name of a subject or None."""

    function: Callable[[Any, Recording, str | None], float]
    record: tuple[str, ...]
    """Parts of a recording that it needs besides states."""
    unit: str
    meaning: str


# ---- subjects --------------------------------------------------------------------------------------------------------


def _own_bodies(model: Model, subject: str | None) -> list[int]:
    """Bodies of a character, or one body; all moving bodies when no subject is named."""
    if subject is None:
        return [b for b in range(model.n_bodies) if model.body_link[b] >= 0]
    own = [b for b, name in enumerate(model.body_names) if name == subject or name.startswith(f"{subject}/")]
    if not own:
        known = [name.partition("/")[0] for name in model.body_names]
        raise SceneError(f'there is no character or body "{subject}"{did_you_mean(subject, known)}', field="metric")
    return own


def _watched(model: Model, subject: str | None) -> int:
    """The body whose height is measured: the subject's head, else its root."""
    own = _own_bodies(model, subject)
    if not own:
        raise SceneError("nothing moves in this scene: there is no height to measure", field="metric")
    return next((b for b in own if last_part(model.body_names[b]) == "head"), own[0])


def _floor(model: Model) -> float:
    """Height of the first static plane; 0 if there is none; m."""
    solids = model.solids
    for k in np.flatnonzero(solids.kind == Solid.PLANE):
        if model.body_link[solids.body[k]] < 0:
            return float(solids.position[k, 2])
    return 0.0


def _heights(recording: Recording, subject: str | None) -> Array:
    """(frames,) height of a subject's head or root above the floor; m."""
    model = recording.model
    places = bodies(model, recording.q).position
    return np.asarray(places[:, _watched(model, subject), 2] - _floor(model))


def _torques(recording: Recording, subject: str | None) -> Array:
    """(frames, …) torques of motors and controllers on angular coordinates, without roots; N·m."""
    model = recording.model
    turns = np.ones(model.nv, bool)
    turns[model.primitive_v_start[model.primitive_kind == Primitive.SLIDE]] = False
    own = set(_own_bodies(model, subject))
    for j, kind in enumerate(model.joint_kinds):
        if kind == "free" or int(model.joint_body[j]) not in own:
            turns[model.joint_v_start[j] : model.joint_v_start[j + 1]] = False
    curves = list(recording.curves("torque").values()) or [np.zeros(len(recording))]
    # no torque has acted at the first frame
    return np.stack(curves, axis=1)[1:, turns] if turns.any() else np.zeros((0, 0))


# ---- metrics ---------------------------------------------------------------------------------------------------------


def _fall_time(world: Any, recording: Recording, subject: str | None) -> float:
    heights, time = _heights(recording, subject), recording.time
    half = 0.5 * heights[0]
    if half <= 0.0:
        return nan
    below = np.flatnonzero(heights < half)
    if not below.size:
        return inf
    k = int(below[0])
    share = (heights[k - 1] - half) / (heights[k - 1] - heights[k])
    return float(time[k - 1] + share * (time[k] - time[k - 1]) - time[0])


def _final_height(world: Any, recording: Recording, subject: str | None) -> float:
    return float(_heights(recording, subject)[-1])


def _peak_torque(world: Any, recording: Recording, subject: str | None) -> float:
    return float(np.abs(_torques(recording, subject)).max(initial=0.0))


def _mean_torque(world: Any, recording: Recording, subject: str | None) -> float:
    torques = np.abs(_torques(recording, subject))
    return float(torques.mean()) if torques.size else 0.0


def _energy_lost(world: Any, recording: Recording, subject: str | None) -> float:
    if subject is not None:
        raise SceneError("energy_lost is that of the whole scene; name no subject", field="metric")
    assert recording.energy is not None
    total = np.asarray(recording.energy.total)
    return float(total[0] - total[-1])


def _max_contact_force(world: Any, recording: Recording, subject: str | None) -> float:
    contacts, model = recording.contacts, recording.model
    assert contacts is not None
    forces = np.linalg.norm(contacts.force, axis=1)
    if subject is not None:
        of = np.isin(model.solids.body, _own_bodies(model, subject))
        forces = forces[of[contacts.shapes].any(axis=1)] if len(forces) else forces
    return float(forces.max(initial=0.0))


def _tracking_error(world: Any, recording: Recording, subject: str | None) -> float:
    from poise.control import correction
    from poise.control.tracking import Tracking

    own = [c for c in world.controllers.values() if isinstance(c, Tracking)]
    if subject is not None:
        _own_bodies(recording.model, subject)
        named = {name: c for name, c in world.controllers.items() if isinstance(c, Tracking)}
        own = [c for name, c in named.items() if name == f"{subject} tracking"]
    if not own:
        who = "nothing" if subject is None else f'"{subject}" does not track, nothing'
        raise SceneError(f"{who} in this scene that tracks a motion; see docs/tracking.md", field="metric")
    return float(np.radians(np.mean([correction(recording, tracking).mean_deg for tracking in own])))


KNOWN: dict[str, Known] = {
    "fall_time": Known(
        _fall_time, (), "s", "when the head, or else the root, is below half of its height at first; inf if never"
    ),
    "final_height": Known(_final_height, (), "m", "of the head, or else the root, above the floor at last"),
    "peak_torque": Known(
        _peak_torque, ("torques",), "N·m", "greatest of motors and controllers on coordinates that turn"
    ),
    "mean_torque": Known(_mean_torque, ("torques",), "N·m", "mean of the same over time and coordinates"),
    "energy_lost": Known(_energy_lost, ("energy",), "J", "of the whole scene, from the first state to the last"),
    "max_contact_force": Known(_max_contact_force, ("contacts",), "N", "greatest of any contact"),
    "tracking_error": Known(
        _tracking_error, (), "rad", "mean over time and joints of what follows a motion, from where it should be"
    ),
}


@dataclass(frozen=True)
class Metric:
    """A metric that can be sent to a worker: a known one, a function, or the source of a file with a function."""

    name: str
    subject: str | None = None
    function: Any = None
    source: str | None = None
    file: str = ""

    @property
    def record(self) -> tuple[str, ...]:
        """Parts of a recording that it needs besides states; user functions get all parts."""
        known = KNOWN.get(self.base)
        return PARTS if known is None or self.function is not None or self.source is not None else known.record

    @property
    def base(self) -> str:
        """The name without its subject."""
        return self.name.rpartition(".")[2]

    @property
    def label(self) -> str:
        """Name and unit, for axes."""
        own = self.function is None and self.source is None
        return f"{self.name} ({KNOWN[self.base].unit})" if own else self.name

    def identity(self) -> str:
        """Identifies the metric, also among others of the same name."""
        if self.source is not None:
            return f"{self.name} of {Path(self.file).name} {_hash(self.source)}"
        code = getattr(self.function, "__code__", None)
        return self.name if code is None else f"{self.name} {_hash(_told(code))}"

    def measure(self, world: Any, recording: Recording) -> float:
        """Value of the metric."""
        if self.function is None and self.source is None:
            return KNOWN[self.base].function(world, recording, self.subject)
        function = self.function if self.source is None else _from_source(self.source, self.file, self.name)
        found = function(world, recording)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise TypeError(f"metric {self.name} gave {found!r:.60}; it must be a number") from None


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _told(part: Any) -> str:
    """Content of a function that is the same in every process: its code with names and constants, without location."""
    if isinstance(part, CodeType):
        return f"{part.co_code.hex()} {part.co_names} {[_told(one) for one in part.co_consts]}"
    return str(sorted(map(repr, part))) if isinstance(part, frozenset) else repr(part)


def read_metric(given: Any) -> Metric:
    """A metric from its name, `SUBJECT.NAME`, `FILE.py:FUNCTION` or a function of (world, recording).

    >>> read_metric("hero.fall_time").subject
    'hero'
    """
    if isinstance(given, Metric):
        return given
    if callable(given):
        return Metric(getattr(given, "__name__", "metric"), function=given)
    if not isinstance(given, str):
        raise SceneError(f"must be a name, FILE.py:FUNCTION or a function, found {given!r:.60}", field="metric")
    file, colon, function = given.rpartition(":")
    if colon:
        return _from_file(file, function)
    subject, _, name = given.rpartition(".")
    if name not in KNOWN:
        hint = did_you_mean(name, KNOWN)
        if name == "py":
            hint = f"; a function of your own is {given}:FUNCTION"
        raise SceneError(f'there is no metric "{name}"{hint or "; there is " + ", ".join(KNOWN)}', field="metric")
    return Metric(given, subject=subject or None)


def _from_file(file: str, function: str) -> Metric:
    from poise.io.load import read_file

    path, content = read_file(file, "metric", "functions are read from files of Python")
    try:
        source = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SceneError("it is no text in UTF-8, so no file of Python", file=str(path)) from None
    metric = Metric(function, source=source, file=str(path))
    _from_source(source, str(path), function)
    return metric


def _from_source(source: str, file: str, name: str) -> Any:
    """A function from the text of a file."""
    scope: dict[str, Any] = {"__name__": f"poise_metric_{Path(file).stem}", "__file__": file}
    try:
        exec(compile(source, file, "exec"), scope)
    except SyntaxError as error:
        raise SceneError(f"it is no Python: {error.msg}", file=file, line=error.lineno) from None
    except Exception as error:
        raise SceneError(f"it cannot be run: {type(error).__name__}: {error}", file=file) from error
    found = scope.get(name)
    if not callable(found):
        known = [key for key, value in scope.items() if callable(value) and not key.startswith("_")]
        raise SceneError(f'it has no function "{name}"{did_you_mean(name, known)}', file=file)
    return found
