"""`poise render`: a picture or a film of a recording or a scene."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.report import clear_errors, fail
from poise.cli.run import Given, InertiaOption, load_with, tell_changes

if TYPE_CHECKING:
    from poise.sim.recording import Recording

FORMATS = (".png", ".gif", ".mp4")


def render(
    source: Annotated[Path, typer.Argument(help="A recording (.npz, .h5) or a scene file.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="A file: .png, .gif or .mp4.", show_default=False)],
    size: Annotated[str, typer.Option(help="Width and height in pixels.")] = "640x480",
    fps: Annotated[float, typer.Option(help="Pictures a second of a film.")] = 30.0,
    speed: Annotated[float, typer.Option(help="Seconds shown in a second of a film.")] = 1.0,
    time: Annotated[float | None, typer.Option(help="Moment of a picture; s.", show_default="the last")] = None,
    follow: Annotated[str | None, typer.Option(help="Character or body that the camera goes along with.")] = None,
    still: Annotated[bool, typer.Option("--still", help="Let the camera stay where it is.")] = False,
    ghost: Annotated[Path | None, typer.Option(help="A recording or motion (.bvh) to show as a ghost.")] = None,
    trail: Annotated[list[str] | None, typer.Option(help="Body whose way is drawn; may be repeated.")] = None,
    contacts: Annotated[bool, typer.Option("--contacts", help="Draw what touches.")] = False,
    bones: Annotated[bool, typer.Option("--bones", help="Draw the skeleton.")] = False,
    given: Given = None,
    inertia: InertiaOption = None,
    seconds: Annotated[float, typer.Option(help="How long a scene is run for a film.")] = 3.0,
) -> None:
    """Draw a picture or a film, without a graphics card."""
    with clear_errors():
        if output.suffix.lower() not in FORMATS:
            fail(f"{output}: pictures and films are .png, .gif or .mp4")
        from poise.sim.export_formats import checked_path

        checked_path(output)
        recording = _recording(source, seconds if output.suffix.lower() != ".png" else None, given, inertia)
        options: dict[str, Any] = {"size": parse_size(size), "follow": False if still else follow, "bones": bones}
        options |= {"trails": trail or (), "contacts": contacts}
        if ghost is not None:
            options["ghost"] = _ghost(ghost)
        if output.suffix.lower() == ".png":
            options["time"] = time
        else:
            options |= {"fps": fps, "speed": speed}
        recording.save(output, **options)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.2f} MB")


def parse_size(text: str) -> tuple[int, int]:
    """Width and height from text like 640x480.

    >>> parse_size("640x480")
    (640, 480)
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*[x×*,]\s*(\d{1,6})\s*", text)
    if found is None:
        fail(f'--size is a width and a height like 640x480, found "{text}"')
    return int(found[1]), int(found[2])


def is_recording(source: Path) -> bool:
    """Whether a file seems to be a recording: NumPy's or HDF5's."""
    from poise.model.regular_file import open_regular

    try:
        with open_regular(source) as stream:
            start = stream.read(4)
    except OSError:
        return False
    return start in (b"PK\x03\x04", b"\x89HDF")


def _recording(
    source: Path, seconds: float | None, given: list[str] | None = None, inertia: str | None = None
) -> Recording:
    """A recording, read from a file or made of a scene, which stays at rest for a picture."""
    from poise.sim.recording import Recording

    if is_recording(source):
        if given:
            fail(f"--set gives parameters of scene files a value; {source} is a recording")
        if inertia:
            fail(f"--inertia is of URDF files; {source} is a recording")
        return Recording.load(source)
    scene = load_with(source, given, inertia)
    tell_changes(scene)
    world = scene.build()
    if seconds is not None:
        try:
            return world.run(seconds, every=max(1, round(1.0 / (120.0 * world.dt))))
        except ValueError as error:
            fail(f"--seconds: {error}")
    import numpy as np

    from poise.sim.recorder import options_of

    now = np.array([world.time])
    return Recording(now, world.q[None].copy(), world.v[None].copy(), world.model, options=options_of(world))


def _ghost(source: Path) -> Any:
    if is_recording(source):
        from poise.sim.recording import Recording

        return Recording.load(source)
    from poise.io.motions import load_motion

    return load_motion(source)
