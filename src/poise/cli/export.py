"""`poise export`: a recording in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from poise.cli.report import clear_errors, fail


def export(
    recording: Annotated[Path, typer.Argument(help="A recording (.npz, .h5).", show_default=False)],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A file: .glb, .bvh, .csv, .usda, .h5, .npz, …", show_default=False),
    ],
    what: Annotated[
        list[str] | None, typer.Option(help="Curve of a .csv: q, v, torque, energy, a signal; may be repeated.")
    ] = None,
    joint: Annotated[str | None, typer.Option(help="The joint of those curves.")] = None,
    body: Annotated[str | None, typer.Option(help="A body whose pose goes into a .csv.")] = None,
    like: Annotated[Path | None, typer.Option(help="Motion file whose skeleton a .bvh shall have.")] = None,
    character: Annotated[str | None, typer.Option(help="Which character goes into a .bvh.")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames a second.", show_default="as recorded")] = None,
    collision: Annotated[bool, typer.Option("--collision", help="Also shapes that are not seen.")] = False,
) -> None:
    """Write a recording for another program: glTF, BVH, USD, CSV, HDF5."""
    with clear_errors():
        import inspect

        from poise.sim.export_formats import checked_path, writer
        from poise.sim.recording import Recording

        checked_path(output)
        taken = inspect.signature(writer(output)).parameters
        options: dict[str, Any] = {"what": what, "joint": joint, "body": body, "character": character, "fps": fps}
        options |= {"like": like, "collision": collision or None}
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            if name not in taken:
                fail(f"{output}: --{name} says nothing to {output.suffix} files")
        if like is not None:
            from poise.io.motions import load_motion

            given["like"] = load_motion(like)
        Recording.load(recording).save(output, **given)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.2f} MB")
