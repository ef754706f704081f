"""`poise demo`: run one of Poise's demos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poise.cli.report import clear_errors, fail, nearest
from poise.cli.run import Coordinates, checked


def demo(
    name: Annotated[str | None, typer.Argument(help="Which demo; the first of the list when missing.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what the demo writes.")] = Path("poise-demo"),
    coordinates: Coordinates = None,
    list_: Annotated[bool, typer.Option("--list", "-l", help="Print the demos and what they show.")] = False,
) -> None:
    """Run a demo."""
    from poise.cli.demos import DEMOS, PAPERS

    if list_:
        wide = max(map(len, DEMOS), default=0)
        for key, text in PAPERS.items():
            of_it = [entry for entry in DEMOS.values() if entry.paper == key]
            if of_it:
                typer.echo(text)
            for entry in of_it:
                typer.echo(f"  {entry.name:{wide}}  {entry.summary}")
        return
    if not DEMOS:
        fail("this version comes without demos")
    chosen = name if name is not None else next(iter(DEMOS))
    if chosen not in DEMOS:
        fail(f"no demo is called {chosen!r}{nearest(chosen, DEMOS)} (there are: {', '.join(DEMOS)})")
    with clear_errors():
        out.mkdir(parents=True, exist_ok=True)
        entry = DEMOS[chosen]
        if coordinates is not None and not entry.story:
            can = ", ".join(name for name, other in DEMOS.items() if other.story)
            fail(f"demo {chosen!r} has coordinates of its own (these take others: {can})")
        raise typer.Exit(entry.load(checked(coordinates))(out))
