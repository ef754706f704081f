"""The `poise` command: puts the verbs together."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from poise._version import __version__
from poise.cli import bench, demo, doctor, export, info, render, run, sweep, view

# plain help text: rich would take longer to load than everything else
app = typer.Typer(
    name="poise",
    help="Physics of articulated characters.",
    epilog="Example: poise doctor. Each verb has its own --help.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    suggest_commands=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"poise {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Physics of articulated characters."""


app.command("demo", epilog="Example: poise demo --list")(demo.demo)
app.command("run", epilog="Example: poise run scene.yaml --seconds 2 --set friction=0.3 --save fall.npz")(run.run)
app.command(
    "sweep",
    epilog="Example: poise sweep scene.yaml --set hero.strength=100:400:7 --set ground.friction=0.2,0.5,0.9 "
    "--metric fall_time,peak_torque",
)(sweep.sweep)
app.command("render", epilog="Example: poise render walk.npz -o walk.gif --follow hero")(render.render)
app.command("export", epilog="Example: poise export walk.npz -o knee.csv --what torque --joint knee_r")(export.export)
app.command("info", epilog="Example: poise info humanoid.xml --json")(info.info)
app.command("view", epilog="Example: poise view demo")(view.view)
app.command("bench", epilog="Example: poise bench --list")(bench.bench)
app.command("doctor", epilog="Example: poise doctor --json")(doctor.doctor)


def main() -> None:
    """Run the command line and leave with its status: 0 done, 1 failed, 2 wrongly called, 3 diverged."""
    # names and units contain letters that an ASCII terminal cannot show: replace them instead of raising
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="poise")
