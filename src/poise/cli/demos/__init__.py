"""The demos: a registry of names, so that listing them imports none of them.

A demo is a module of this package with a function `run(out: Path) -> int`. It prints its story, writes its files into
the folder `out`, which exists, and returns an exit status. One that can be looked at while it runs has a function
`scene() -> poise.Scene` too. To add one, write the module and add one line to `_ALL`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Demo:
    """One line of the registry."""

    name: str
    """What users call it, and its module in this package."""
    summary: str
    """What it shows, in one sentence."""

    def load(self) -> Callable[[Path], int]:
        """Import the demo and give its `run`."""
        run: Callable[[Path], int] = import_module(f"poise.cli.demos.{self.name}").run
        return run

    def scene(self) -> Any:
        """What the viewer shows of it, a `poise.Scene`; None where there is none."""
        make = getattr(import_module(f"poise.cli.demos.{self.name}"), "scene", None)
        return None if make is None else make()


#: in the order in which they are listed; the first is the one that `poise demo` runs
_ALL: tuple[Demo, ...] = (
    Demo("swing", "A humanoid swings from one hand, and every joule is accounted for."),
    Demo("walk", "A humanoid walks, is pulled back by one hand, and finds its way again."),
)

DEMOS: dict[str, Demo] = {entry.name: entry for entry in _ALL}

#: what `poise view demo` shows
VIEWED = "walk"
