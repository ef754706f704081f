"""Curves of a recording as a table with commas (.csv)."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.io.recording_frames import frames_of, quats_of
from poise.model.errors import SceneError

if TYPE_CHECKING:
    from poise.sim.recording import Recording

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


def save_csv(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    what: str | Sequence[str] = "q",
    joint: str | None = None,
    body: str | None = None,
    fps: float | None = None,
) -> None:
    """Write curves as a table, a row each frame; the first column is the time in seconds.

    `what` names one curve or several, as `recording.curves` knows them: "q", "v", "torque", "energy", a solver's
    figure, a signal. `joint` leaves only its columns of those. `body` adds where a body is (m) and how it is turned
    (w, x, y, z). Numbers are written so that reading them gives the same bits.

    >>> import pathlib, poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.sphere(0.1), axis="y", name="arm")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_csv(scene.build(dt=0.5).run(0.5), f"{folder}/arm.csv", what="v")
    ...     print(pathlib.Path(f"{folder}/arm.csv").read_text())
    time,arm
    0.0,0.0
    0.5,0.0
    <BLANKLINE>
    """
    chosen = frames_of(recording, fps)
    names = [what] if isinstance(what, str) else list(what)
    if not names and body is None:
        raise SceneError("nothing to write: name one curve or several", field="what")
    columns: dict[str, NDArray[Any]] = {"time": recording.time}
    for name in names if body is None or what != "q" else []:
        for label, values in _curves(recording, name, joint).items():
            columns[label if label not in columns else f"{name} {label}"] = values
    if body is not None:
        columns |= _pose(recording, body)
    table = np.stack([np.asarray(values[chosen], np.float64) for values in columns.values()], axis=1)
    with Path(path).open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(table.tolist())


def _curves(recording: Recording, what: str, joint: str | None) -> dict[str, NDArray[Any]]:
    try:
        return recording.curves(what, joint)
    except ValueError as error:
        raise SceneError(str(error), field="what") from None


def _pose(recording: Recording, body: str) -> dict[str, NDArray[Any]]:
    from poise.dynamics.state_queries import bodies

    model = recording.model
    number = model.body_index(body)
    place = bodies(model, recording.q if model.nq else recording.q[0])
    shape = (len(recording), model.n_bodies)
    position = np.broadcast_to(place.position, (*shape, 3))[:, number]
    turn = quats_of(np.broadcast_to(place.rotation, (*shape, 3, 3))[:, number])
    name = model.body_names[number]
    return dict(zip((f"{name}.{part}" for part in _POSE), np.concatenate((position, turn), axis=1).T, strict=True))
