"""The demos: a registry of names, so that listing them imports none of them.

A demo is a module of this package: a story (`poise.cli.demos.story`), or one with a function `run(out: Path) -> int` of
its own, which prints what happened, writes files into the folder `out`, which exists, and returns an exit status. One
that can be looked at while it runs has a function `scene() -> poise.Scene`, as all stories do; one without is not
`live`. To add one, write the module and add one line to `_ALL`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Demo:
    """One line of the registry."""

    name: str
    """Its name for users, and its module in this package."""
    summary: str
    """Summary in one sentence."""
    paper: str = ""
    """Key of its source in `PAPERS`."""
    live: bool = True
    """Whether the live viewer can show it: whether its module has a `scene`."""

    @property
    def title(self) -> str:
        """The sentence, with where it is from."""
        return f"{self.summary.removesuffix('.')} ({self.paper})." if self.paper else self.summary

    @property
    def story(self) -> bool:
        """Whether it is one: a scene that any formulation can step."""
        return not hasattr(import_module(f"poise.cli.demos.{self.name}"), "run")

    def load(self, coordinates: str | None = None) -> Callable[[Path], int]:
        """Import the demo and give its `run`; of a story with coordinates by their name
        (`formulations.formulation_registry`).
        """
        module = import_module(f"poise.cli.demos.{self.name}")
        if not self.story:
            run: Callable[[Path], int] = module.run
            return run
        from poise.cli.demos import story

        return partial(story.run, self.name, self.title, module, coordinates=coordinates)

    def scene(self) -> Any:
        """What the viewer shows of it, a `poise.Scene`."""
        return import_module(f"poise.cli.demos.{self.name}").scene()


#: sources of demos, by the keys of `docs/paper-map.md`, in the order of the list
PAPERS: dict[str, str] = {
    "VON": "Vondrak, Sigal and Jenkins: Dynamics and Control of Multibody Systems",
    "KOK": "Kokkevis: Practical Physics for Articulated Characters",
    "LIU": "Liu, Cooper and Ballard: the mathematics inside ODE",
    "LAM": "Lamouret, Cani and Gascuel: Physically-Based Simulation of Colliding Objects with Trajectory Control",
    "": "Poise's own",
}

#: the first is the one that `poise demo` runs
_ALL: tuple[Demo, ...] = (
    Demo("basket", "A person walks with a basket, is hit by a ball, and walks on.", "VON"),
    Demo("umbrella", "A person walks with an umbrella that stays upright, in a gust of wind too.", "VON"),
    Demo("dragged", "A walker is dragged by one hand with the mouse spring, and recovers its walk.", "VON"),
    Demo("punch", "A punch hits a character with torque limits, which returns to its pose.", "KOK"),
    Demo("stairs", "A ragdoll falls down the stairs and comes to rest.", "KOK"),
    Demo("exact", "Joints track exactly under any push; those of a twin with explicit PD do not.", "KOK"),
    Demo("stiff", "Springs so stiff that explicit PD control diverges, evaluated implicitly.", "LIU"),
    Demo("feet", "Both feet on the ground: redundant contacts, and the results of different solvers.", "LIU"),
    Demo("torso", "A pushed character keeps its torso within 5° of upright by its hips.", "LIU"),
    Demo("path", "A path with corners, which actuators smooth within the base distance.", "LAM"),
    Demo("steps", "Balls pulled to their targets with any damping; random steps change nothing.", "LAM"),
    Demo("bird", "Four birds on one key-framed flight: alone, against a light, a heavy, a falling ball.", "LAM"),
    Demo("swing", "A humanoid swings from one hand, and every joule is accounted for.", live=False),
)

DEMOS: dict[str, Demo] = {entry.name: entry for entry in _ALL}

#: what `poise view demo` shows
VIEWED = "basket"
