"""Common part of demos of worlds: run, write a page, a picture and the simulated motion, and print the results.

A story is a module with

- `scene()`, which returns a `poise.Scene`; the viewer shows it too,
- `SECONDS`, the duration,
- `tell(world, recording)`, which returns lines of text by name,
- optionally `FOLLOW`, the character that the camera follows at a `DISTANCE`, aimed `ABOVE` its middle (m),
  `CORRECTED`, a function that returns the clip in whose skeleton the motion of that character is written as BVH,
  `MOMENTS`, the times of the picture, `PICTURE`, the size of each, `TRAILS`, bodies whose trails are drawn and their
  colours, `marks(recording, frame)`, which returns other marks for the picture, `signals(world)`, which returns
  functions of the world to record, and `charts(world, recording)`, which returns a drawing of curves.

A camera with a position and a target in the scene's settings is used as it is.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from poise.dynamics import bodies
from poise.formulations.formulation_registry import of_kind
from poise.sim import Recording, World
from poise.view import Camera, Painter, save_png
from poise.view.render_marks import line

PICTURE = (220, 320)
"""Width and height of a moment of the picture."""


def run(name: str, summary: str, module: ModuleType, out: Path, coordinates: str | None = None) -> int:
    """Run a story, write its files, print the results."""
    scene = module.scene()
    world = scene.build(None if coordinates is None else of_kind(coordinates, scene.settings.formulation))
    began = time.perf_counter()
    recording = play(module, world)
    wall = time.perf_counter() - began
    lines = {"simulated": f"{module.SECONDS:g} s in {round(module.SECONDS / world.dt)} steps; took {wall:.1f} s"}
    lines |= module.tell(world, recording)
    lines |= {kind: str(path) for kind, path in write(name, module, world, recording, out).items()}
    lines["live"] = f"poise view {name}"
    show(summary, lines)
    return 0


def play(module: ModuleType, world: World) -> Recording:
    """Run the world, and record it."""
    return world.run(module.SECONDS, signals=module.signals(world) if hasattr(module, "signals") else None)


def show(title: str, lines: dict[str, str]) -> None:
    """Print lines of text by name as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")  # whole paths, however narrow the terminal
    for label, text in lines.items():
        table.add_row(label, text)
    Console().print(table)


def write(name: str, module: ModuleType, world: World, recording: Recording, out: Path) -> dict[str, Path]:
    """Files of a story, by kind."""
    follow = getattr(module, "FOLLOW", None)
    tracking = world.controllers.get(f"{follow} tracking")
    made = {"page": out / f"{name}.html", "picture": out / f"{name}.png"}
    ghost = {"ghost": tracking.reference} if tracking is not None else {}
    recording.save(made["page"], title=name, trails=list(getattr(module, "TRAILS", ())), **ghost)
    save_png(made["picture"], strip(module, recording))
    if hasattr(module, "charts"):
        made["curves"] = module.charts(world, recording).save(out / f"{name}.svg")
    if hasattr(module, "CORRECTED"):
        made["corrected motion"] = out / f"{name}.bvh"
        recording.save(made["corrected motion"], like=module.CORRECTED())
    return made


def strip(module: ModuleType, recording: Recording) -> Any:
    """Moments side by side, (height, width, 3)."""
    model = recording.model
    size = getattr(module, "PICTURE", PICTURE)
    painter, follow = Painter(model, size), getattr(module, "FOLLOW", None)
    distance, above = getattr(module, "DISTANCE", 3.4), getattr(module, "ABOVE", 0.0)
    asked = recording.options.get("camera") or {}
    if "position" in asked:
        still, follow = Camera(tuple(asked["position"]), tuple(asked["target"])), None
    else:
        whole = recording.q[:: max(1, len(recording) // 20)]
        still = Camera.looking_at(model, whole, side=(0.5, -1.0, 0.35), aspect=size[0] / size[1])
    pictures = []
    for moment in getattr(module, "MOMENTS", np.linspace(0.0, module.SECONDS, 6)):
        k = int(np.argmin(np.abs(recording.time - moment)))
        camera = still if follow is None else beside(model, recording.q[k], follow, distance, above)
        marks = ways(recording, k, getattr(module, "TRAILS", {}))
        marks += module.marks(recording, k) if hasattr(module, "marks") else []
        pictures.append(painter.draw(recording.q[k], camera, marks=marks))
    return np.concatenate(pictures, axis=1)


def ways(recording: Recording, last: int, trails: dict[str, Any]) -> list[Any]:
    """Trails of bodies up to a frame."""
    frames = np.unique(np.linspace(0, last, 1 + min(last, 240)).round().astype(int))
    if not trails:
        return []
    place, model = bodies(recording.model, recording.q[frames]).position, recording.model
    return [
        line(a, b, 0.008, color)
        for name, color in trails.items()
        for a, b in pairwise(place[:, model.body_index(name)])
        if np.linalg.norm(b - a) > 1e-6
    ]


def beside(model: Any, q: Any, follow: str, distance: float, above: float) -> Camera:
    """A camera that follows a character."""
    own = [k for k, name in enumerate(model.body_names) if name.startswith(f"{follow}/")]
    centre = bodies(model, q).position[own].mean(axis=0) + np.array((0.0, 0.0, above))
    return Camera(tuple(centre + distance * np.array((0.35, -0.92, 0.18))), tuple(centre))
