"""Recording files: named arrays, and a JSON header for everything else. Loading cannot execute code."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import Energy
from poise.model.array_file import pack_arrays, read_arrays
from poise.model.errors import SceneError
from poise.model.loops import Coupling, LoopJoint
from poise.model.model import Model
from poise.model.motors import Motor
from poise.model.regular_file import open_regular
from poise.model.shape_arrays import Solids
from poise.model.skins import Skins, no_skins
from poise.sim.recording import Contacts, Recording
from poise.sim.recording_check import STATE, Damaged, check_arrays, check_looks, check_names, events_of

Array = NDArray[Any]
_FORMAT, _VERSION = "poise-recording", 1
_WHAT = "a recording that Poise saved"
_RECORDS: dict[str, Any] = {"motors": Motor, "loops": LoopJoint, "couplings": Coupling}
"""Fields of a model that are tuples of named tuples."""


def save(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording as .npz."""
    pack_arrays(path, arrays_of(recording))


def arrays_of(recording: Recording) -> dict[str, Array]:
    """All of a recording as named arrays, without copies; everything else is JSON in the array "header"."""
    model = recording.model
    header = {
        "format": _FORMAT,
        "format_version": _VERSION,
        "options": recording.options,
        "model": _plain(model),
        "solids": _plain(model.solids),
        "skins": _plain(model.skins),
        "joints_on_paths": [joint for joint, _ in model.paths],
        "digest": model.digest(),
        "digests": model.digests(),
        "events": [asdict(event) for event in recording.events],
    }
    content: dict[str, Array] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    content |= {name: getattr(recording, name) for name in STATE}
    skins = model.skins if len(model.skins) else None
    parts = (("contacts", recording.contacts), ("model", model), ("solids", model.solids), ("skins", skins))
    for group, part in parts:
        if part is not None:
            content |= {f"{group}/{name}": array for name, array in _arrays(part).items()}
    if recording.energy is not None:
        content |= {f"energy/{name}": array for name, array in zip(Energy._fields, recording.energy, strict=True)}
    for group in ("solver", "torques", "signals"):
        content |= {f"{group}/{name}": array for name, array in getattr(recording, group).items()}
    return content


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording from .npz or HDF5."""
    file = os.fspath(path)
    if _is_hdf5(path):
        # imported here: poise.io imports this package
        content = import_module("poise.io.hdf5").read_hdf5(Path(path), f"not {_WHAT}")
    else:
        content = read_arrays(Path(path), f"not {_WHAT}")
    return recording_from(content, file)


def _is_hdf5(path: str | os.PathLike[str]) -> bool:
    try:
        with open_regular(Path(path)) as stream:
            return stream.read(8) == b"\x89HDF\r\n\x1a\n"
    except OSError:
        return False


def recording_from(content: dict[str, Array], file: str) -> Recording:
    """Build the recording from the arrays of `arrays_of`; errors name `file`."""
    header = _header(content, file)
    try:
        check_names(content, bool(header.get("streamed")))
        if header.get("streamed"):
            content, header = _as_far_as_written(content, header)
        model = _model(content, header)
        check_arrays(content, model, header["options"])
        contacts, parts = _group(content, "contacts"), _group(content, "energy")
        return Recording(
            content["time"],
            content["q"],
            content["v"],
            model,
            Contacts(**contacts) if contacts else None,
            Energy(**parts) if parts else None,
            _group(content, "solver"),
            _group(content, "torques"),
            _group(content, "signals"),
            events_of(header["events"]),
            header["options"],
        )
    except Damaged as problem:
        raise problem.told(file) from None
    except Exception as problem:  # a damaged model or header can raise any exception
        text = " ".join(str(problem).split()) or type(problem).__name__
        raise SceneError(f"the file is damaged ({text:.200}); save it again", file=file) from None


def _model(content: dict[str, Array], header: dict[str, Any]) -> Model:
    solids = Solids(**_restored(Solids, header["solids"], _group(content, "solids")))
    bent = _group(content, "skins")
    skins = Skins(**_restored(Skins, header["skins"], bent)) if bent else no_skins()
    model = Model(**_restored(Model, header["model"], _group(content, "model")), solids=solids, skins=skins)
    stored = {name.removeprefix("model/").replace("/", ".") for name in content}
    changed = _changed(model, header, stored | {*header["model"], *(f"solids.{name}" for name in header["solids"])})
    if changed:
        raise Damaged("model", f"other values of {', '.join(changed)} than when it was saved")
    check_looks(model)
    return model


def _as_far_as_written(content: dict[str, Array], header: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """The complete frames of a streamed recording; incomplete trailing data is dropped."""
    start = content.get("contacts/start")
    parts = {name for name in content if name.partition("/")[0] in (*STATE, "energy", "solver", "torques", "signals")}
    n = min(len(content[name]) for name in parts)
    whole = content | {name: content[name][:n] for name in parts}
    if start is not None:
        rows = [name for name in _group(content, "contacts") if name != "start"]
        there = min(len(content[f"contacts/{name}"]) for name in rows)
        if start.ndim != 1 or start.dtype.kind != "i" or start[:1].any() or (np.diff(start) < 0).any():
            raise Damaged("contacts/start", "contacts do not fit the frames")
        n = max(0, min(n, len(start) - 1, int(np.searchsorted(start, there, "right")) - 1))
        whole |= {name: content[name][:n] for name in parts} | {"contacts/start": start[: n + 1]}
        whole |= {f"contacts/{name}": content[f"contacts/{name}"][: start[n]] for name in rows}
    lines = whole.pop("events").tobytes().split(b"\n")[:-1]  # an unterminated last line is dropped
    try:
        return whole, header | {"events": [json.loads(line) for line in lines]}
    except (ValueError, RecursionError):
        raise Damaged("events", "its lines are no JSON") from None


def _header(content: dict[str, Array], file: str) -> dict[str, Any]:
    try:
        header = json.loads(content["header"].tobytes())
        known = header["format"] == _FORMAT
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known:
        other = "a state: read it with poise.State.load" if _is_state(content) else "its header is missing or damaged"
        raise SceneError(f"not {_WHAT}: {other}", file=file)
    if header.get("format_version") != _VERSION:
        found = header.get("format_version")
        raise SceneError(f"a recording of format {found!r}; this version of Poise reads {_VERSION}", file=file)
    whole: dict[str, Any] = header
    return whole


def _is_state(content: dict[str, Array]) -> bool:
    try:
        return bool(json.loads(content["header"].tobytes())["format"] == "poise-state")
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def _changed(model: Model, header: dict[str, Any], stored: set[str]) -> list[str]:
    """Fields of a model whose digests differ from those in the header. A field without a digest may be newer than the
    file, unless it is among those that are `stored`.
    """
    paths: Any = tuple((joint, None) for joint in header["joints_on_paths"])
    whole = replace(model, paths=paths)
    if header["digest"] == whole.digest():
        return []
    then, now = header["digests"], whole.digests()
    if untold := sorted(name for name in stored & now.keys() if name not in then):
        return untold
    changed = [name for name, digest in then.items() if name in now and now[name] != digest]
    return changed or (["digest"] if then.keys() == now.keys() else [])


def _plain(part: Any) -> dict[str, Any]:
    """Fields that are not arrays: names, kinds, numbers."""
    kept = {f.name: getattr(part, f.name) for f in fields(part)}
    return {
        name: value for name, value in kept.items() if isinstance(value, str | float | int | tuple) and name != "paths"
    }


def _arrays(part: Any) -> dict[str, Array]:
    return {f.name: value for f in fields(part) if isinstance(value := getattr(part, f.name), np.ndarray)}


def _group(content: dict[str, Array], group: str) -> dict[str, Array]:
    start = f"{group}/"
    return {name[len(start) :]: array for name, array in content.items() if name.startswith(start)}


def _restored(kind: type, plain: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """Arguments of a dataclass; lists of the header become tuples, some of them named tuples."""
    known = {f.name for f in fields(kind)}
    values = {name: _frozen(value) for name, value in plain.items()} | arrays
    for name, record in _RECORDS.items():
        if name in values:
            values[name] = tuple(record(*item) for item in values[name])
    return {name: value for name, value in values.items() if name in known}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
