"""Recordings: the frames of a run, with the model, contacts, energies, signals and events."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.argument_checks import checked_step
from poise.dynamics.simulation import Trajectory
from poise.dynamics.state_queries import Energy
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state import State
from poise.sim.events import Event
from poise.sim.step_report import ContactReport, Pushing
from poise.sim.world_motors import motor_number, motor_rows

Array = NDArray[Any]
PARTS = ("contacts", "energy", "solver", "torques", "events")
"""Optional parts of a recording besides time and state."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts of all frames, concatenated: those of frame i are `start[i]` to `start[i + 1]`."""

    start: Array
    """(frames + 1,)"""
    shapes: Array
    """(n, 2) numbers of shapes."""
    point: Array
    """(n, 3) m."""
    normal: Array
    """(n, 3) from A to B."""
    depth: Array
    """(n,) m."""
    force: Array
    """(n, 3) on B; N."""

    def of(self, frame: int) -> Pushing:
        """Contacts of one frame."""
        k = slice(int(self.start[frame]), int(self.start[frame + 1]))
        return Pushing(self.shapes[k], self.point[k], self.normal[k], self.depth[k], self.force[k])


class Frame(NamedTuple):
    """One frame of a recording."""

    time: float
    """s."""
    state: State
    """Coordinates and velocities, without warm-start data."""
    contacts: list[ContactReport]
    """Contacts of the step that ended at this frame; impulses are not recorded."""
    energy: Energy | None
    signals: dict[str, Array]


@dataclass(frozen=True, eq=False)
class Recording(Trajectory):
    """A `Trajectory` with contacts, energies, solver statistics, torques, signals and events.

    Parts that were not recorded are None, or empty. The first frame is the state before the first step.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
    >>> recording = scene.build(dt=0.01).run(0.5)
    >>> recording
    <Recording: 51 frames from 0 to 0.5 s, nq 7, nv 6; contacts, energy, solver, torques, events>
    >>> round(recording.frame(50).contacts[0].normal_force, 2)
    19.62
    """

    model: Model
    contacts: Contacts | None = None
    energy: Energy | None = None
    """Each (frames,); J."""
    solver: dict[str, Array] = field(default_factory=dict)
    """Of the step that ended at each frame: "rows", "sweeps", "newton_steps", "residual", "parts", each (frames,)."""
    torques: dict[str, Array] = field(default_factory=dict)
    """"tau" and "passive" of the step that ended at each frame, each (frames, nv), and for models with motors "motors",
    (frames, rows of motors); N or N·m."""
    signals: dict[str, Array] = field(default_factory=dict)
    """(frames, …) of each signal."""
    events: tuple[Event, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the run: step, formulation and its options, versions."""

    def __repr__(self) -> str:
        n, nq, nv = len(self.time), self.q.shape[-1], self.v.shape[-1]
        has = [part for part in PARTS if part in self.options.get("record", ())]
        what = ", ".join([*has, *(f'signal "{name}"' for name in self.signals)]) or "states only"
        when = f"{n} frames from {self.time[0]:g} to {self.time[-1]:g} s" if n else "no frames"
        return f"<Recording: {when}, nq {nq}, nv {nv}; {what}>"

    def _repr_html_(self) -> str:
        """The playback page, which notebooks display."""
        from pkgutil import resolve_name  # by name: compiled code must not depend on poise.view

        return str(resolve_name("poise.view.page.still:recording_html")(self))

    def __len__(self) -> int:
        return len(self.time)

    def state(self, frame: int) -> State:
        """Coordinates, velocities and time of a frame; negative numbers count from the end.

        >>> import poise
        >>> float(poise.Scene().build(dt=0.25).run(1.0).state(-1).time)
        1.0
        """
        k = self._number(frame)
        return State(self.q[k].copy(), self.v[k].copy(), float(self.time[k]))

    def frame(self, frame: int) -> Frame:
        """All recorded parts of a frame; negative numbers count from the end."""
        k = self._number(frame)
        contacts = [] if self.contacts is None else self.contacts.of(k).listed(self.model)
        energy = None if self.energy is None else Energy(*(float(part[k]) for part in self.energy))
        signals = {name: values[k].copy() for name, values in self.signals.items()}
        return Frame(float(self.time[k]), self.state(k), contacts, energy, signals)

    def _number(self, frame: Any) -> int:
        n = len(self)
        if isinstance(frame, bool) or not isinstance(frame, int | np.integer) or not -n <= frame < n:
            raise IndexError(f"frame {frame!r}: there are {n}, counted from 0")
        return int(frame) % n

    def at(self, time: float) -> int:
        """Number of the frame nearest to a time (s).

        >>> import poise
        >>> poise.Scene().build(dt=0.25).run(1.0).at(0.6)
        2
        """
        if not len(self):
            raise IndexError("there are no frames")
        return int(np.argmin(np.abs(self.time - checked_step(time, "time", backwards=True))))

    def curves(self, what: str, name: str | None = None) -> dict[str, Array]:
        """Curves over time by name, each (frames,): "energy"; "q", "v", "tau", "passive", optionally of one joint;
        "torque", the sum of "tau" and the motors' torques; "motors", optionally of one motor; one of the solver
        statistics; or a signal.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.sphere(0.1), axis="y", name="arm")
        >>> list(scene.build().run(0.1).curves("q", "arm"))
        ['arm']
        """
        model = self.model
        if what == "energy" and self.energy is not None:
            return dict(zip(Energy._fields, self.energy, strict=True)) | {"total": np.asarray(self.energy.total)}
        if what in ("q", "v", "tau", "passive", "torque") and what in ("q", "v", *self._torques()):
            values = {"q": self.q, "v": self.v, **self.torques}[what] if what != "torque" else self._torque()
            names = model.q_names if what == "q" else model.dof_names
            chosen = range(len(names))
            if name is not None:
                where = (model.q_slice if what == "q" else model.v_slice)(name)
                chosen = range(where.start, where.stop)
            return {names[k]: values[:, k] for k in chosen}
        if what == "motors" and what in self.torques:
            return self._motor_curves(name)
        if what in self.solver:
            return {what: self.solver[what]}
        if what in self.signals:
            values = self.signals[what].reshape(len(self), -1)
            several = values.shape[1] > 1
            return {f"{what}[{k}]" if several else what: values[:, k] for k in range(values.shape[1])}
        known = [
            "q",
            "v",
            *self._torques(),
            *self.solver,
            *self.signals,
            *(["energy"] if self.energy is not None else []),
        ]
        raise ValueError(f"{what!r} was not recorded{did_you_mean(what, known)}")

    def _torques(self) -> list[str]:
        """Names of the available torque curves."""
        return [*self.torques, *(["torque"] if "tau" in self.torques else [])]

    def _torque(self) -> Array:
        """(frames, nv) sum of "tau" and of the motors' forces times their gears; N or N·m."""
        total = self.torques["tau"].copy()
        forces = self.torques.get("motors")
        for motor, rows in zip(self.model.motors, motor_rows(self.model), strict=True):
            if forces is None:
                break
            for k, dof in enumerate(motor.dofs):
                gear = motor.gear[k] if k < len(motor.gear) else 1.0
                total[:, dof] += gear * forces[:, rows.start + k if motor.ball else rows.start]
        return total

    def _motor_curves(self, name: str | None) -> dict[str, Array]:
        """Forces of motors by name; the three of a ball joint's motor are numbered."""
        motors = self.model.motors
        chosen = range(len(motors)) if name is None else [motor_number(self.model, name)]
        curves = {}
        for k in chosen:
            rows = motor_rows(self.model)[k]
            for part, row in enumerate(range(rows.start, rows.stop)):
                label = f"{motors[k].name}[{part}]" if motors[k].ball else motors[k].name
                curves[label] = self.torques["motors"][:, row]
        return curves

    def plot(self, what: str = "energy", name: str | None = None, *, joint: str | None = None) -> Any:
        """`curves` over time, as a drawing to `save("name.svg")`; `name` is that of a joint or motor.

        >>> import poise
        >>> poise.Scene().build().run(0.1).plot("energy").width
        900.0
        """
        import poise

        units = {"energy": "energy (J)"}
        return poise.view.line_chart(
            self.time,
            self.curves(what, joint if name is None else name),
            title=what,
            x_label="time (s)",
            y_label=units.get(what, ""),
        )

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the recording in the format of the path's suffix; `poise.sim.export_formats.FORMATS` lists them.

        `.npz` and `.h5` contain the whole recording and the model; `load` reads them. Other formats have their own
        options. The write is atomic: if the disk is full, `save` raises a `SceneError`, and an existing file of that
        name stays as it was.

        >>> import poise, tempfile
        >>> recording = poise.Scene().build(dt=0.25).run(1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     recording.save(f"{folder}/still.npz")
        ...     len(Recording.load(f"{folder}/still.npz"))
        5
        """
        from poise.sim.export_formats import save

        save(self, path, **options)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read a recording that `save` wrote as .npz or .h5; the content determines the format. Other files raise a
        `SceneError`.

        A damaged file raises an error that names the field. A file may unpack to 64 times its size and 64 MiB. Loaded
        models have no paths of kinematic bodies.
        """
        from poise.sim.recording_file import load

        return load(path)
