"""`poise sweep`: run a scene with many values of its parameters and fields."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.report import clear_errors, fail, to_json
from poise.cli.run import STOPPED, Coordinates

if TYPE_CHECKING:
    from poise.batch.sweep import Sweep
    from poise.batch.table import Table

SHOWN = 40
"""Number of printed rows; the files contain all."""
METRICS = "fall_time, final_height, peak_torque, mean_torque, energy_lost, max_contact_force, tracking_error"


def sweep(
    scene: Annotated[Path, typer.Argument(help="A scene file in YAML.", show_default=False)],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="NAME=VALUES",
            help="Values of a parameter, or of a field by its path: a,b,c or low:high:points. May be repeated.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help=f"What to measure: {METRICS}; HERO.METRIC; or FILE.py:FUNCTION."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for results; SCENE-sweep here when missing.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", "-t", help="How long each run is; what the scene says, else 5.")
    ] = None,
    dt: Annotated[float | None, typer.Option("--dt", help="Time step in s; what the scene says when missing.")] = None,
    every: Annotated[int, typer.Option("--every", help="Look at one state in so many.")] = 1,
    coordinates: Coordinates = None,
    random: Annotated[
        int | None, typer.Option("--random", help="So many random draws in place of all combinations.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of random draws.")] = 0,
    processes: Annotated[
        int | None, typer.Option("--processes", "-p", help="Runs at a time; as many as processors when missing.")
    ] = None,
    dask: Annotated[str | None, typer.Option("--dask", help="Address of a scheduler of Dask to run on.")] = None,
    ray: Annotated[str | None, typer.Option("--ray", help="Address of a cluster of Ray to run on.")] = None,
    parquet: Annotated[
        bool | None,
        typer.Option("--parquet/--no-parquet", help="Write Parquet too; done where pyarrow is installed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Run a scene with many values, and tabulate and plot what is measured. A sweep that was stopped goes on.

    Leaves with 0 when all runs are done, also where some diverged; 1 for bad input or where runs failed; 130 after
    Ctrl-C.
    """
    with clear_errors():
        from poise.batch.sweep import Sweep
        from poise.batch.sweep_values import read_setting
        from poise.batch.table import check_parquet

        if parquet:
            check_parquet()
        settings: dict[str, str] = {}
        for word in given or []:
            name, values = read_setting(word)
            if name in settings:
                fail(f"set: {name} is given twice; write all its values in one: {name}=a,b,c")
            settings[name] = values
        if not settings:
            fail("there is nothing to vary: --set NAME=VALUES, such as --set ground.friction=0.2,0.5")
        metrics = [name.strip() for words in metric or [] for name in words.split(",") if name.strip()]
        options = {"seconds": seconds, "dt": dt, "every": every, "coordinates": coordinates}
        made = Sweep(scene, settings, metrics or ["final_height"], random=random, seed=seed, **options)  # type: ignore[arg-type]
        folder = out or Path(f"{made.file.stem}-sweep")
        table = _done(made, folder, {"processes": processes, "dask": dask, "ray": ray})
        files = write(table, folder, parquet)
    if as_json:
        typer.echo(to_json(_facts(made, table, folder, files)))
    else:
        _print(table, files)
    raise typer.Exit(1 if "failed" in table["status"] else 0)


def _done(made: Sweep, folder: Path, where: dict[str, Any]) -> Table:
    """The table; Ctrl-C says how to go on."""
    count = [0]

    def told(done: int, of: int) -> None:
        count[0] = done

    try:
        return made.run(folder=folder, told=told, **where)
    except KeyboardInterrupt:
        so_far = f" after {count[0]} of {len(made.runs)} runs" if count[0] else ""
        typer.echo(f"poise: stopped{so_far}; the same command goes on from there ({folder})", err=True)
        raise typer.Exit(STOPPED) from None


def write(table: Table, folder: Path, parquet: bool | None) -> dict[str, Any]:
    """Write a table as CSV and Parquet, and plots of it; gives the names of the files."""
    from poise.batch.charts import drawing, plotted
    from poise.batch.table import check_parquet

    table.save(folder / "table.csv")
    files: dict[str, Any] = {"csv": str(folder / "table.csv"), "parquet": None, "plots": []}
    if parquet is not False:
        try:
            check_parquet()
            table.save(folder / "table.parquet")
            files["parquet"] = str(folder / "table.parquet")
        except ImportError:
            if parquet:
                raise
    several = len({x for _, x in plotted(table)}) > 1
    for metric, x in plotted(table):
        name = f"{metric}-over-{x}.svg" if several else f"{metric}.svg"
        path = folder / name.replace("/", "_")
        drawing(table, metric, x).save(path)
        files["plots"].append(str(path))
    return files


def _facts(made: Sweep, table: Table, folder: Path, files: dict[str, Any]) -> dict[str, Any]:
    """The results as plain data. Nonfinite numbers are null; `status` and the files distinguish them."""
    counts = {status: int((table["status"] == status).sum()) for status in ("ok", "diverged", "failed")}
    return {
        "scene": str(made.file),
        "runs": len(table),
        **counts,
        "settings": list(table.settings),
        "metrics": list(table.metrics),
        "rows": list(table.rows()),
        "folder": str(folder),
        **files,
    }


def _print(table: Table, files: dict[str, Any]) -> None:
    """Print the results as text."""
    notes = any(table["note"] != "")
    names = ["run", *table.settings, *table.metrics, "status", *(["time"] if notes else [])]
    rows = [[_said(row[name]) for name in names] for row in map(table.row, range(min(len(table), SHOWN)))]
    widths = [max(len(line[k]) for line in [names, *rows]) for k in range(len(names))]
    for line in [names, *rows]:
        typer.echo("  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)).rstrip())
    if len(table) > SHOWN:
        typer.echo(f"… and {len(table) - SHOWN} more rows in {files['csv']}")
    for status in ("diverged", "failed"):
        bad = [k for k in range(len(table)) if table["status"][k] == status]
        if bad:
            typer.echo(f"{len(bad)} {status}; run {bad[0]}: {table['note'][bad[0]]}")
    written = [files["csv"], *([files["parquet"]] if files["parquet"] else []), *files["plots"]]
    typer.echo(f"wrote {', '.join(written)}")


def _said(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
