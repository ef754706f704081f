"""The panel beside the picture: buttons, sliders, switches, plots, files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from poise.formulations.formulation_registry import FORMULATIONS, name_of
from poise.io.sealed import sealed
from poise.model.errors import SceneError
from poise.model.scene import Scene
from poise.sim.recording import Recording
from poise.view.live.front import Act, Front
from poise.view.live.messages import is_number, is_whole
from poise.view.live.session import Session
from poise.view.live.settings import joints_with_motors, parts_of
from poise.view.live.signals import energies, errors, times_of, torques
from poise.view.live.trouble import told

_SPAN = 8.0
"""Time range of plots; s."""
_POINTS = 160
_COLORS = ("#2f6fde", "#e0702c", "#2c9c63", "#a04cc0", "#c7443f", "#7a7f87")
_SOLVERS = {"sweeps and Newton": True, "sweeps alone": False}
_RECORDINGS, _SCENES = (".npz", ".h5", ".hdf5"), (".yaml", ".yml", ".xml", ".urdf")
_INTEGRATORS = ("rk4", "midpoint", "euler")


class Panel:
    """Controls of a session in a viser panel. Their actions run between two steps."""

    def __init__(self, server: Any, session: Session, front: Front, act: Act) -> None:
        self.server, self.gui, self.session, self.front, self._act = server, server.gui, session, front, act
        self._plots: dict[str, Any] = {}
        self._controls: dict[str, Any] = {}
        self._upload: Any = None
        self.rebuild()

    def rebuild(self) -> None:
        """Controls for another session's source."""
        self._controls = {}
        self.gui.reset()
        self.gui.set_panel_label("Poise")
        self._told = ""
        self._title = self.gui.add_markdown(f"**{_plain(self.session.name)}**")
        self._status = self.gui.add_markdown("")
        self._add_playing()
        tabs = self.gui.add_tab_group()
        with tabs.add_tab("Show"):
            self._add_showing()
        if self.session.live:
            with tabs.add_tab("Physics"):
                self._add_physics()
        with tabs.add_tab("Plots"):
            self._add_plots()
        with tabs.add_tab("Files"):
            self._add_files()
        self.plotted = False
        self.update()

    def _on(self, handle: Any, do: Callable[[Any], None]) -> Any:
        """Call a function with a control's value when a user changes it."""

        def changed(event: Any) -> None:
            if event.client_id is not None:  # None: set by the program
                value = handle.value
                self._act(lambda: self._try(lambda: do(value)))

        handle.on_update(changed)
        return self._known(handle)

    def _known(self, handle: Any) -> Any:
        """Permit browsers to use a control."""
        self._controls[handle._impl.uuid] = handle
        return handle

    def value_problem(self, control: str, value: Any) -> str | None:
        """The error of a value for a control, or None; checked before the value is used."""
        handle = self._controls.get(control)
        if handle is None or handle is self._upload:
            return "there is no such control (any more)"
        return None if _suits(handle, value) else f"{_plain(handle.label)} cannot have this value"

    def takes_files(self, control: str) -> bool:
        """Whether a control is the file upload."""
        return self._upload is not None and self._controls.get(control) is self._upload

    def _press(self, label: str, do: Callable[[], None], **look: Any) -> Any:
        button = self.gui.add_button(label, **look)
        button.on_click(lambda _: self._act(lambda: self._try(do)))
        return self._known(button)

    def _try(self, do: Callable[[], None]) -> None:
        """Show errors of actions to the user."""
        try:
            do()
        except Exception as problem:
            self.session.message = told(problem)
        self.update()

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _add_playing(self) -> None:
        session, gui = self.session, self.gui
        self._play = self._press("Play", self.toggle, color="blue", icon="player-play", hint="Space")
        row = gui.add_button_group("Step", ("Back", "Step", "Reset"), hint="← one back, → one on")
        does = {"Back": session.back, "Step": session.step, "Reset": session.reset}
        self._known(row).on_click(lambda event: self._do_named(does, event.target.value))
        self._history = self._on(gui.add_slider("History", 0, 1, 1, 0), lambda value: session.go(int(value)))
        self._on(
            gui.add_slider("Speed", 0.05, 2.0, 0.05, float(session.speed), hint="Simulated seconds a second"),
            lambda value: setattr(session, "speed", value),
        )
        for label, key, do in (
            ("Play or pause", "space", self.toggle),
            ("Step", "arrowright", session.step),
            ("Step back", "arrowleft", session.back),
        ):
            command = gui.add_command(label, hotkey=key)
            command.on_trigger(lambda _, do=do: self._act(lambda: self._try(do)))

    def _do_named(self, does: dict[str, Callable[[], None]], name: str) -> None:
        self._act(lambda: self._try(lambda: does[name]()))

    def toggle(self) -> None:
        """Play, or pause."""
        if self.session.playing:
            self.session.pause()
        else:
            self.session.play()

    def _add_showing(self) -> None:
        gui, shown, front = self.gui, self.front.shown, self.front

        def switch(label: str, name: str, hint: str | None = None) -> None:
            self._on(
                gui.add_checkbox(label, initial_value=getattr(shown, name), hint=hint),
                lambda value: front.show(**{name: value}),
            )

        switch("Shapes", "shapes")
        switch("Skeleton", "skeleton")
        switch("Contacts and forces", "contacts")
        switch("Shadows", "shadows", "Slow without a graphics card")
        switch("Follow", "follow", "The eye goes along with the largest character")
        if self.session.ghosts:
            switch("Ghost of the clip", "ghost", "The motion as it was given, before physics")
            self._on(
                gui.add_slider("Ghost beside (m)", -2.0, 2.0, 0.1, float(shown.beside)),
                lambda value: front.show(beside=value),
            )
        if self.session.live:
            gui.add_markdown("Press on a body and move the mouse to **drag** it. Elsewhere the mouse turns the view.")

    def _add_physics(self) -> None:
        gui, session = self.gui, self.session
        settings, formulation = session.settings, session.settings.formulation

        def factor(label: str, name: str, most: float, hint: str) -> None:
            self._on(
                gui.add_slider(f"{label} ×", 0.0, most, 0.05, float(min(getattr(settings, name), most)), hint=hint),
                lambda value: session.change(**{name: value}),
            )

        factor("Gravity", "gravity", 2.0, "Of the scene's")
        factor("Friction", "friction", 2.0, "Of every material's")
        if session.model.motors or session.ghosts:
            factor("Strength", "strength", 3.0, "Stiffness, damping and limits of joints with motors, or that track")
            assert session.world is not None
            for part in parts_of(session.world):
                factor(f"… of {part}", part, 3.0, "Times the strength of all")
            factor("Stiffness", "stiffness", 3.0, "Stiffness and damping alone: within the same limits")
        if "free" in [session.model.joint_kinds[j] for j in joints_with_motors(session.model)]:
            factor("Help", "help", 3.0, "Of motors that pull roots along")
        factor("Pull", "pull", 3.0, "Greatest force of the mouse, in twice the weight of what is dragged")
        coordinates = gui.add_dropdown(
            "Coordinates",
            tuple(FORMULATIONS),
            initial_value=name_of(formulation),
            hint="Trees of joints, or separate bodies that joints hold",
        )
        self._on(coordinates, lambda value: session.change(coordinates=value))
        levels = gui.add_dropdown("Level", ("velocity", "acceleration"), initial_value=formulation.level)
        self._on(levels, lambda value: session.change(level=value))
        orders = gui.add_dropdown(
            "Integrator", _INTEGRATORS, initial_value=formulation.integrator or "rk4", hint="Of the acceleration level"
        )
        self._on(orders, self._integrate)
        solver = next(name for name, newton in _SOLVERS.items() if newton == formulation.newton)
        self._on(
            gui.add_dropdown("Solver", tuple(_SOLVERS), initial_value=solver),
            lambda value: session.change(newton=_SOLVERS[value]),
        )
        self._on(
            gui.add_slider("Substeps", 1, 8, 1, int(min(formulation.substeps, 8))),
            lambda value: session.change(substeps=int(value)),
        )

    def _integrate(self, value: str) -> None:
        if self.session.settings.formulation.level != "acceleration":
            raise ValueError("integrators are of the acceleration level: choose it first")
        self.session.change(integrator=value)

    def _add_plots(self) -> None:
        model = self.session.model
        joints = [name for name, kind in zip(model.joint_names, model.joint_kinds, strict=True) if kind != "free"]
        self._plots, self._joint = {}, joints[0] if joints else None
        self._places = {
            "energy": self.gui.add_folder("Energy (J)"),
            "torque": self.gui.add_folder("Torque (N·m)", visible=bool(joints)),
            "error": self.gui.add_folder("Error (°)", visible=bool(self.session.ghosts)),
        }
        if joints:
            with self._places["torque"]:
                chosen = self.gui.add_dropdown("Joint", tuple(joints), initial_value=_usual(joints))
            self._joint = chosen.value
            self._on(chosen, self._choose)

    def _choose(self, joint: str) -> None:
        self._joint = joint
        self.update(plots=True)

    def _add_files(self) -> None:
        self._press("Save recording", self._save_recording, icon="download", hint="All of the history, as .npz")
        self._press("Save state", self._save_state, icon="device-floppy", hint="The moment that is shown, as .npz")
        upload = self.gui.add_upload_button(
            "Load", icon="upload", mime_type=",".join((*_RECORDINGS, *_SCENES)), hint="A recording, a state, or a scene"
        )
        self._upload = self._known(upload)
        upload.on_upload(lambda _: self._act(lambda: self._try(lambda: self._load(upload.value))))

    # ---- files -------------------------------------------------------------------------------------------------------

    def _save_recording(self) -> None:
        self._send(self.session.save, "recording")

    def _save_state(self) -> None:
        self._send(self.session.save_state, "state")

    def _send(self, save: Callable[[Path], None], what: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{what}.npz"
            save(path)
            content = path.read_bytes()
        self.server.send_file_download(f"{_plain(self.session.name)}-{what}.npz", content, save_immediately=True)

    def _load(self, file: Any) -> None:
        """Load an uploaded file, which may not refer to other files."""
        name = Path(file.name.replace("\\", "/")).name
        ending = Path(name).suffix.lower()
        if ending not in (*_SCENES, *_RECORDINGS):
            raise ValueError(f"the name must end with one of {', '.join((*_RECORDINGS, *_SCENES))}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"loaded{ending}"
            path.write_bytes(file.content)
            try:
                with sealed(path):
                    self._load_from(path, name)
            except Exception as problem:
                raise ValueError(_said(told(problem), path, name)) from None

    def _load_from(self, path: Path, name: str) -> None:
        if path.suffix in _SCENES:
            from poise.io.load import load

            self._open(load(path), name)
            return
        try:
            recording = Recording.load(path)
        except SceneError as problem:
            if "State.load" not in str(problem):
                raise
            self.session.load_state(path)
        else:
            self._open(recording, name)

    def _open(self, source: Scene | Recording, name: str) -> None:
        """Show another source; on failure nothing changes."""
        self.session.release()
        before = dict(vars(self.session))
        try:
            self.session.open(source)
            self.session.name = name
            self.front.rebuild()
            self.rebuild()
            self.update(plots=True)
        except Exception:
            vars(self.session).clear()
            vars(self.session).update(before)
            self.front.rebuild()
            self.rebuild()
            raise

    # ---- keeping up --------------------------------------------------------------------------------------------------

    def update(self, plots: bool = False) -> None:
        """Update the displayed values to the shown moment."""
        session, history = self.session, self.session.history
        with self.server.atomic():
            self._play.label = "Pause" if session.playing else "Play"
            self._play.icon = "player-pause" if session.playing else "player-play"
            last = max(1, len(history) - 1)
            if self._history.max < last or self._history.max > last:
                self._history.max = last
            self._history.value = history.cursor
            told = self._words()
            if told != self._told:
                self._told = self._status.content = told
            if plots:
                self._draw_plots()

    def _words(self) -> str:
        session = self.session
        words = f"t = {session.time:.2f} s"
        if session.playing and session.live and session.history.at_end and session.pace < 0.9:
            words += f", {session.pace * session.speed:.2f} of real time"
        elif not session.history.at_end:
            words += ", in the past" if session.live else ""
        return f"{words}\n\n**{_plain(session.message)}**" if session.message else words

    def _draw_plots(self) -> None:
        self.plotted = True
        moments = self.session.history.span(_SPAN, _POINTS)
        times = times_of(moments)
        self._plot("energy", times, energies(self.session, moments))
        if self._joint is not None:
            self._plot("torque", times, torques(self.session, moments, self._joint))
        if self.session.ghosts:
            self._plot("error", times, errors(self.session, moments))

    def _plot(self, name: str, times: Any, curves: dict[str, Any]) -> None:
        data = (times, *(np.where(np.isfinite(values), values, 0.0) for values in curves.values()))
        old = self._plots.get(name)
        if old is not None and old[0] == tuple(curves):
            old[1].data = data
            return
        if old is not None:
            old[1].remove()
        series = (
            {"label": "s"},
            *(
                {"label": label, "stroke": color, "width": 1.5}
                for label, color in zip(curves, cycle(_COLORS), strict=False)
            ),
        )
        with self._places[name]:
            plot = self.gui.add_uplot(data, series, scales={"x": {"time": False}}, height=170)
        self._plots[name] = tuple(curves), plot


def _usual(joints: list[str]) -> str:
    """A knee, if there is one."""
    return next((name for name in joints if "knee" in name), joints[0])


def _plain(text: str) -> str:
    """Text with characters removed that are special in Markdown or in file names."""
    return "".join(letter if letter.isalnum() or letter in " .,:;()'-+=%×·°²³/" else " " for letter in text).strip()


def _said(problem: str, path: Path, name: str) -> str:
    """The error of an uploaded file under its original name, without local folders."""
    for place in (path.resolve(), path):
        problem = problem.replace(str(place), name).replace(str(place.parent), "")
    return problem


def _suits(handle: Any, value: Any) -> bool:
    """Whether a control can have a value."""
    if hasattr(handle, "options"):
        return isinstance(value, str) and value in handle.options
    if hasattr(handle, "min"):
        check = is_whole if isinstance(handle.value, int) else is_number
        return check(value, handle.min, handle.max)
    return isinstance(value, bool)
