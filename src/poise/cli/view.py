"""`poise view`: the live viewer of a scene, a demo or a recording in a browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from poise.cli.report import clear_errors, fail, nearest
from poise.cli.run import Given, InertiaOption, load_with, tell_changes


def view(
    what: Annotated[str, typer.Argument(help="A scene file, a recording (.npz, .h5), the name of a demo, or demo.")],
    port: Annotated[int, typer.Option("--port", "-p", help="Port to listen at; the next free one is taken.")] = 8080,
    host: Annotated[str, typer.Option("--host", help="Address to listen at; 0.0.0.0 for all the world.")] = "127.0.0.1",
    allow: Annotated[
        list[str] | None, typer.Option("--allow", help="Another name that browsers may call it by; may be repeated.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, open nothing.")] = False,
    given: Given = None,
    inertia: InertiaOption = None,
    paused: Annotated[bool, typer.Option("--paused", help="Wait for Play.")] = False,
    seconds: Annotated[float | None, typer.Option("--seconds", help="End after some time by the clock.")] = None,
) -> None:
    """Look at a scene, a demo or a recording in a browser: play, step back, drag with the mouse, change it live."""
    if seconds is not None and not seconds > 0.0:
        fail(f"--seconds is {seconds:g}; it must be above 0")
    with clear_errors():
        from poise.view.live.viewer import Viewer, has_browser

        try:
            source = find_source(what, given, inertia)
            viewer = Viewer(source, host=host, port=port, paused=paused, allow=allow or ())
        except ValueError as problem:
            fail(str(problem))
        with viewer, suppress(KeyboardInterrupt):
            if viewer.port != port and port != 0:
                typer.echo(f"port {port} is in use", err=True)
            typer.echo(f"{viewer.address}  (Ctrl-C ends)")
            if not no_browser and has_browser():
                import webbrowser

                webbrowser.open(viewer.address)
            viewer.run(seconds)


def find_source(what: str, given: list[str] | None = None, inertia: str | None = None) -> Any:
    """A scene or a recording from a file; for the name of a demo, a function that makes its scene.

    Errors of a file are reported before the server starts.
    """
    from poise.cli.demos import DEMOS, VIEWED

    path = Path(what)
    if what == "demo" or (what in DEMOS and not path.exists()):
        chosen = DEMOS[VIEWED if what == "demo" else what]
        if not chosen.live:
            can = ", ".join(name for name, entry in DEMOS.items() if entry.live)
            fail(f"demo {what!r} cannot be looked at while it runs (these can: {can})")
        if given:
            fail(f"--set gives parameters of scene files a value; {what!r} is a demo")
        if inertia:
            fail(f"--inertia is of URDF files; {what!r} is a demo")
        return chosen.scene
    if not path.exists() and not path.suffix:
        fail(f"there is neither a file nor a demo {what!r}{nearest(what, [*DEMOS, 'demo'])}")
    if path.suffix.lower() in (".npz", ".h5"):
        if given:
            fail(f"--set gives parameters of scene files a value; {what} is a recording")
        if inertia:
            fail(f"--inertia is of URDF files; {what} is a recording")
        from poise.sim.recording import Recording

        return Recording.load(path)
    scene = load_with(path, given, inertia)
    tell_changes(scene)
    scene.name = scene.name or path.stem
    return scene
