"""Curves under the picture: energy, distance from the ghost, contact forces, torques, signals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.model.model import Model
from poise.sim.recording import Recording
from poise.view.page.packing import pack

Floats = NDArray[np.float64]
_LEVELS = 16384
"""Steps from the least to the greatest number of a chart."""
_TURNING = {"hinge", "ball", "universal"}
_LARGEST = 1e150
"""Numbers are clamped to ± this, so that differences do not overflow."""


def chart_list(recording: Recording, kept: NDArray[np.intp], error: Floats | None) -> list[dict[str, Any]]:
    """Charts of a recording at the shown frames, in order of relevance."""
    charts = []
    if error is not None:
        charts.append(_chart("Motion", "Distance from the ghost", "m", {"mean": error[:, 0], "largest": error[:, 1]}))
    if recording.energy is not None:
        charts.append(_chart("Motion", "Energy", "J", _at(recording.curves("energy"), kept)))
    if recording.contacts is not None and len(recording.contacts.depth):
        charts.append(_chart("Motion", "Contact force", "N", {"sum of all contacts": _pushes(recording)[kept]}))
    for what in recording.torques:
        for name, curves in _groups(recording, what):
            charts.append(_chart(_titles(what), name, _unit(recording.model, name), _at(curves, kept)))
    for name in recording.signals:
        curves = {key: values for key, values in recording.curves(name).items() if values.dtype.kind in "fiub"}
        charts.append(_chart("Signals", name, "", _at(curves, kept)))
    return [chart for chart in charts if chart["curves"]]


def _titles(what: str) -> str:
    return {"tau": "Torques given", "passive": "Torques of springs and drives", "motors": "Motors"}.get(what, what)


def _groups(recording: Recording, what: str) -> list[tuple[str, dict[str, Floats]]]:
    """Curves of each joint, or motor, that are not 0 all the time."""
    curves = recording.curves(what)
    groups: dict[str, dict[str, Floats]] = {}
    for name, values in curves.items():
        if np.any(values):
            group = name.partition("[")[0] if what == "motors" else _joint_of(recording, name)
            groups.setdefault(group, {})[name] = values
    return list(groups.items())


def _unit(model: Model, name: str) -> str:
    """Curves of the forces on a joint, or of a motor, by name."""
    motors = {motor.name: [int(model.dof_joint[dof]) for dof in motor.dofs] for motor in model.motors}
    joints = [model.joint_names.index(name)] if name in model.joint_names else motors.get(name, [])
    kinds = {model.joint_kinds[joint] for joint in joints}
    if kinds and kinds <= _TURNING:
        return "N·m"
    return "N" if kinds == {"slider"} else "N or N·m"


def _joint_of(recording: Recording, dof: str) -> str:
    model = recording.model
    return model.joint_names[int(model.dof_joint[model.dof_index(dof)])]


def _pushes(recording: Recording) -> Floats:
    """(frames,) sum of the magnitudes of all contact forces."""
    contacts = recording.contacts
    assert contacts is not None
    sizes = np.concatenate(([0.0], np.cumsum(np.linalg.norm(contacts.force, axis=1))))
    return np.asarray(sizes[contacts.start[1:]] - sizes[contacts.start[:-1]])


def _at(curves: dict[str, Any], kept: NDArray[np.intp]) -> dict[str, Floats]:
    return {name: np.asarray(values, np.float64)[kept] for name, values in curves.items()}


def _chart(group: str, name: str, unit: str, curves: dict[str, Floats]) -> dict[str, Any]:
    """Nonfinite numbers are gaps: they are written as the least number of the chart, and listed."""
    values = np.stack(list(curves.values()), axis=1) if curves else np.zeros((1, 0))
    finite = np.isfinite(values)
    values = np.clip(values, -_LARGEST, _LARGEST)
    low = float(values[finite].min()) if finite.any() else 0.0
    high = float(values[finite].max()) if finite.any() else 0.0
    chart = {
        "group": group,
        "name": name,
        "unit": unit,
        "curves": list(curves),
        "low": low,
        "values": pack(np.where(finite, values, low) - low, max(high - low, 1e-30) / _LEVELS),
    }
    if not finite.all():
        chart["gaps"] = np.argwhere(~finite).tolist()
    return chart
