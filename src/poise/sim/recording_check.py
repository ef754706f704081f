"""Validation of recordings from files: each field is checked before use, and errors name it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import Energy
from poise.model.errors import SceneError
from poise.model.model import Model
from poise.sim.events import KINDS, Event
from poise.sim.recording import PARTS, Contacts
from poise.sim.world_motors import motor_rows

Array = NDArray[Any]
Content = dict[str, Array]
STATE = ("time", "q", "v")
_MODEL = ("model", "solids", "skins")
_GROUPS = ("contacts", "energy", "solver", "torques", "signals")
_CONTACTS = {"shapes": (2,), "point": (3,), "normal": (3,), "depth": (), "force": (3,)}


class Damaged(ValueError):
    """A damaged field of a recording file."""

    def __init__(self, field: str, what: str) -> None:
        self.field, self.what = field, what
        super().__init__(f"{field}: {what}")

    def told(self, file: str) -> SceneError:
        """The error as a `SceneError` with the file's name."""
        return SceneError(f"{self.what}; the file is damaged: save it again", file=file, field=self.field)


def check_names(content: Content, streamed: bool) -> None:
    """Check that all required fields are present, and that there are no unknown ones."""
    for name in ("header", *STATE, *(["events"] if streamed else [])):
        if name not in content:
            raise Damaged(name, "it is missing")
    known = {"contacts": {f.name for f in fields(Contacts)}, "energy": {*Energy._fields}}
    for name, array in content.items():
        group, slash, rest = name.partition("/")
        top = not slash and name in ("header", *STATE, "events")
        if not top and not (slash and group in (*_MODEL, *_GROUPS) and rest in known.get(group, {rest})):
            raise Damaged(name, "recordings have no such field")
        if group in (*STATE, *_GROUPS, "events") and array.ndim == 0:
            raise Damaged(name, f"must be an array, found {array.dtype}{array.shape}")
    for group, names in known.items():
        there = {name.partition("/")[2] for name in content if name.startswith(f"{group}/")}
        for rest in sorted(names - there) if there else ():
            raise Damaged(f"{group}/{rest}", "it is missing")


def check_arrays(content: Content, model: Model, options: Any) -> None:
    """Check that shapes, types and lengths agree with the frames and the model, and that numbers are finite where
    required.
    """
    n = len(content["time"])
    if not isinstance(options, dict):
        raise Damaged("options", f"must be names and values, found {type(options).__name__}")
    for name, shape in _expected(content, model, n):
        _numbers(content, name, shape)
    for name, array in content.items():
        group = name.partition("/")[0]
        if group == "solver" and (array.shape != (n,) or array.dtype.kind not in "if"):
            raise Damaged(name, f"must be ({n},) numbers, found {array.dtype}{array.shape}")
        if group == "signals" and (len(array) != n or array.dtype.kind not in "biuf"):
            raise Damaged(name, f"must be numbers of {n} frames, found {array.dtype}{array.shape}")
    if "contacts/start" in content:
        _check_contacts(content, len(model.solids), n)
    record = options.get("record", ())
    if not isinstance(record, list | tuple) or not all(isinstance(part, str) for part in record):
        raise Damaged("options", "what was recorded must be a list of names")
    groups = {name.partition("/")[0] for name in content}
    for part in (name for name in record if name in PARTS and name != "events"):
        if n and part not in groups:
            raise Damaged(part, "it is missing")


def _expected(content: Content, model: Model, n: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Expected arrays with their shapes."""
    yield from (("time", (n,)), ("q", (n, model.nq)), ("v", (n, model.nv)))
    yield from ((f"energy/{name}", (n,)) for name in Energy._fields if f"energy/{name}" in content)
    motors = sum(rows.stop - rows.start for rows in motor_rows(model))
    widths = {"torques/tau": model.nv, "torques/passive": model.nv, "torques/motors": motors}
    for name in content:
        if name.startswith("torques/"):
            if name not in widths:
                raise Damaged(name, "recordings have no such field")
            yield name, (n, widths[name])


def _numbers(content: Content, name: str, shape: tuple[int, ...]) -> None:
    array = content[name]
    if array.shape != shape or array.dtype != np.float64:
        raise Damaged(name, f"must be {shape} finite numbers, found {array.dtype}{array.shape}")
    # energies and forces of very fast motions may overflow; coordinates and velocities may not
    if not np.isfinite(array).all() if name in STATE else np.isnan(array).any():
        raise Damaged(name, f"must be {shape} finite numbers, found others among them")


def _check_contacts(content: Content, n_shapes: int, n: int) -> None:
    start, shapes = content["contacts/start"], content["contacts/shapes"]
    m = len(content["contacts/depth"])
    whole = start.ndim == 1 and start.dtype.kind == "i" and len(start) == n + 1
    if not whole or start[0] != 0 or start[-1] != m or (np.diff(start) < 0).any():
        raise Damaged("contacts/start", f"contacts do not fit the frames: {n} of them, {m} contacts")
    for name, rest in _CONTACTS.items():
        if name != "shapes":
            _numbers(content, f"contacts/{name}", (m, *rest))
    if shapes.shape != (m, 2) or shapes.dtype.kind != "i" or (m and not 0 <= shapes.min() <= shapes.max() < n_shapes):
        what = f"must be ({m}, 2) numbers of shapes below {n_shapes}, found {shapes.dtype}{shapes.shape}"
        raise Damaged("contacts/shapes", what)


def check_looks(model: Model) -> None:
    """Check the parts that digests do not cover: colours, and skins with their bones."""
    _fits("solids/color", model.solids.color, (len(model.solids), 4))
    skins = model.skins
    n, n_bones, n_weights = len(skins), len(skins.bone_body), len(skins.weight)
    if not n:
        return
    starts = (("vertex", n, len(skins.vertices)), ("face", n, len(skins.faces)), ("bone", n, n_bones))
    for name, count, end in (*starts, ("weight", n_bones, n_weights)):
        start = getattr(skins, f"{name}_start")
        whole = start.shape == (count + 1,) and start.dtype.kind == "i"
        if not whole or start[0] != 0 or start[-1] != end or (np.diff(start) < 0).any():
            raise Damaged(f"skins/{name}_start", f"must be {count + 1} numbers from 0 to {end}")
    _fits("skins/color", skins.color, (n, 4))
    _fits("skins/vertices", skins.vertices, (len(skins.vertices), 3))
    _fits("skins/bone_position", skins.bone_position, (n_bones, 3))
    _fits("skins/bone_quat_wxyz", skins.bone_quat_wxyz, (n_bones, 4))
    _fits("skins/weight", skins.weight, (n_weights,))
    most = int(np.diff(skins.vertex_start).max())
    _below("skins/faces", skins.faces, (len(skins.faces), 3), 0, most)
    _below("skins/bone_body", skins.bone_body, (n_bones,), -1, model.n_bodies)
    _below("skins/weight_vertex", skins.weight_vertex, (n_weights,), 0, most)


def _fits(name: str, array: Any, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise Damaged(name, f"must be {shape} finite numbers, found {array.dtype}{array.shape}")


def _below(name: str, array: Any, shape: tuple[int, ...], least: int, end: int) -> None:
    whole = array.shape == shape and array.dtype.kind == "i"
    if not whole or (array.size and not least <= array.min() <= array.max() < end):
        raise Damaged(name, f"must be {shape} numbers from {least} to {end - 1}, found {array.dtype}{array.shape}")


def events_of(listed: Any) -> tuple[Event, ...]:
    """Parse events from JSON."""
    if not isinstance(listed, list):
        raise Damaged("events", "must be a list")
    events = []
    for k, one in enumerate(listed):
        whole = isinstance(one, dict) and one.get("kind") in KINDS and _is_number(one.get("time"))
        names = [one.get(name) for name in ("names", "shapes")] if whole else []
        if not whole or not all(isinstance(name, list) for name in names) or not isinstance(one.get("what", ""), str):
            raise Damaged(f"events[{k}]", "it is no event")
        if not all(isinstance(name, str | int) for part in names for name in part or ()):
            raise Damaged(f"events[{k}]", "its names must be text")
        events.append(Event(one["kind"], one["time"], tuple(one["names"]), tuple(one["shapes"]), one.get("what", "")))
    return tuple(events)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
