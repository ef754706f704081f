"""`poise run`: simulate a scene file."""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.report import clear_errors, fail, nearest, print_facts, to_json

if TYPE_CHECKING:
    from poise.formulations.formulation_registry import Formulation
    from poise.model.scene import Scene
    from poise.sim.recording import Recording
    from poise.sim.world import World

DIVERGED, STOPPED = 3, 130
"""Exit statuses of a diverged world, and of a run that Ctrl-C stopped."""
SECONDS = 5.0
"""Default duration of a run; s."""
FRAMES = 60.0
"""Default number of recorded states per second."""

Given = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="Give a parameter of the scene a value; may be repeated."),
]
InertiaOption = Annotated[
    str | None,
    typer.Option(
        "--inertia", metavar="CHOICE", help="URDF: repair (default), accept or strict with inertias that no body has."
    ),
]
Coordinates = Annotated[
    str | None,
    typer.Option("--coordinates", "-c", help="reduced: trees of joints; maximal: separate bodies that joints hold."),
]


def run(
    scene: Annotated[Path, typer.Argument(help="A scene file: YAML, MJCF or URDF.", show_default=False)],
    seconds: Annotated[
        float | None, typer.Option("--seconds", "-t", help=f"How long; what the scene says, else {SECONDS:g}.")
    ] = None,
    dt: Annotated[float | None, typer.Option("--dt", help="Time step in s; what the scene says when missing.")] = None,
    given: Given = None,
    inertia: InertiaOption = None,
    coordinates: Coordinates = None,
    every: Annotated[
        int | None, typer.Option("--every", help="Keep one state in so many; about 60 a second else.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", "-o", help="Write the recording there: .npz, .h5 (as it goes), .html, .glb, ..."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Simulate a scene, and say what happened. Leaves with 1 for a bad scene, 3 where it diverged."""
    with clear_errors():
        loaded = load_with(scene, given, inertia)
        world = _build(loaded, dt, coordinates)
        length = _positive("--seconds", seconds) or loaded.settings.duration or SECONDS
        if save is not None:
            _check_target(save)
        recording, problem, wall, status = _run(world, loaded, length, every, save)
        outline = _outline(recording) if recording is not None else _outline_of_file(save)
        facts = summary(loaded, world, outline, wall) | {"problem": problem, "saved": None}
        if save is not None and outline["frames"]:
            if recording is not None:
                recording.save(save)
            facts["saved"] = str(save)
    if as_json:
        typer.echo(to_json(facts))
    else:
        _print(facts)
    if problem:
        typer.echo(f"poise: {problem}", err=True)
    raise typer.Exit(status)


def load_with(scene: Path, given: list[str] | None, inertia: str | None = None) -> Scene:
    """A scene with parameters and options as they are given on the command line.

    Losses of the import are in `Scene.unsupported`, which the commands report.
    """
    from poise.io.load import load
    from poise.io.losses import LossWarning

    options: dict[str, Any] = {} if inertia is None else {"inertia": inertia}
    if given:
        from poise.io.scenes.parameters import given_parameter

        options["set"] = dict(given_parameter(word) for word in given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        return load(scene, **options)


def tell_changes(scene: Scene) -> None:
    """Say on stderr how much of a file is not taken over as it is."""
    if scene.unsupported:
        typer.echo(f"poise: {changes(len(scene.unsupported))}", err=True)


def changes(count: int) -> str:
    """A line about what is not kept.

    >>> changes(1)
    '1 thing of the file is not kept as it is; see poise info'
    """
    things = "1 thing of the file is" if count == 1 else f"{count} things of the file are"
    return f"{things} not kept as {'it is' if count == 1 else 'they are'}; see poise info"


def _build(scene: Scene, dt: float | None, coordinates: str | None) -> World:
    try:
        return scene.build(chosen(scene, checked(coordinates)), dt=_positive("--dt", dt))
    except (TypeError, ValueError) as error:
        fail(f"{scene.source}: {error}")


def checked(coordinates: str | None) -> str | None:
    """The name of a formulation, if one is given and there is such a one."""
    from poise.formulations.formulation_registry import FORMULATIONS

    if coordinates is not None and coordinates not in FORMULATIONS:
        fail(f"no coordinates are called {coordinates!r}{nearest(coordinates, FORMULATIONS)}")
    return coordinates


def chosen(scene: Scene, coordinates: str | None) -> Formulation | None:
    """The formulation from the command line; None for the scene's own."""
    from poise.formulations.formulation_registry import of_kind

    return None if coordinates is None else of_kind(coordinates, scene.settings.formulation)


def _positive(name: str, value: float | None) -> float | None:
    if value is not None and not 0.0 < value < float("inf"):
        fail(f"{name}: must be more than 0, found {value:g}")
    return value


def _check_target(save: Path) -> None:
    """What would only fail after the run is said before it."""
    from poise.sim.export_formats import checked_path, writer

    writer(checked_path(save))


def _run(
    world: World, scene: Scene, length: float, every: int | None, save: Path | None
) -> tuple[Recording | None, str | None, float, int]:
    """The recording (None where it was written as it went), what went wrong, how long it took (s), the exit status."""
    from poise.dynamics.simulation import Diverged
    from poise.sim.recording import PARTS

    kept = every or scene.settings.every or max(1, round(1.0 / (FRAMES * world.dt)))
    record = scene.settings.record or PARTS
    streamed = save is not None and save.suffix.lower() in (".h5", ".hdf5")
    problem, status, start = None, 0, perf_counter()
    try:
        if streamed and save is not None:
            world.stream(length, save, every=kept, record=record)
        else:
            world.run(length, every=kept, record=record)
    except Diverged as error:
        problem, status = f"it diverged: {error}", DIVERGED
    except KeyboardInterrupt:
        problem, status = f"stopped at {world.time:g} s", STOPPED
    except ValueError as error:
        fail(str(error))
    return None if streamed else world.recording, problem, perf_counter() - start, status


def _outline_of_file(path: Path | None) -> dict[str, Any]:
    from poise.io.hdf5_stream import outline

    assert path is not None
    return outline(path)


def _outline(recording: Recording) -> dict[str, Any]:
    """Summary of a recording; see `poise.io.hdf5_stream.outline`."""
    n, contacts = len(recording), recording.contacts
    told: dict[str, Any] = {
        "frames": n,
        "time": float(recording.time[-1] - recording.time[0]) if n else 0.0,
        "events": len(recording.events),
    }
    if recording.energy is not None and n:
        total = recording.energy.total
        told["energy"] = [float(total[0]), float(total[-1])]
    if contacts is not None and n:
        told["contacts"] = {
            "most": int((contacts.start[1:] - contacts.start[:-1]).max()),
            "deepest": float(contacts.depth.max(initial=0.0)),
            "strongest": float((contacts.force**2).sum(axis=1).max(initial=0.0) ** 0.5),
        }
    return told


def summary(scene: Scene, world: World, outline: dict[str, Any], wall: float) -> dict[str, Any]:
    """The result as plain data; SI units."""
    done = outline["time"]
    facts: dict[str, Any] = {
        "name": scene.name,
        "source": scene.source,
        "time": done,
        "dt": world.dt,
        "steps": round(done / world.dt),
        "frames": outline["frames"],
        "wall": wall,
        "speed": done / wall if wall > 0.0 else None,
        "unsupported": list(scene.unsupported),
    }
    facts |= {name: outline[name] for name in ("energy", "contacts", "events") if name in outline}
    facts["bodies"] = {
        name: [float(x) for x in world.body(name).position]
        for name, link in zip(world.model.body_names, world.model.body_link, strict=True)
        if link >= 0
        and int(world.model.link_parent[link]) < 0
        and int(world.model.link_body[link]) >= 0
        and world.model.body_names[int(world.model.link_body[link])] == name
    }
    return facts


def _print(facts: dict[str, Any]) -> None:
    """Print the results as text."""
    speed = f" ({facts['speed']:.3g} times as fast as real time)" if facts["speed"] else ""
    lines = {
        "simulated": f"{facts['time']:.6g} s in {facts['steps']} steps of {facts['dt']:.6g} s",
        "took": f"{facts['wall']:.2f} s{speed}",
        "recorded": f"{facts['frames']} states, {facts['events']} events",
    }
    if "energy" in facts:
        lines["energy"] = f"{facts['energy'][0]:.6g} J at first, {facts['energy'][1]:.6g} J at last"
    if "contacts" in facts:
        most = facts["contacts"]
        lines["contacts"] = f"{most['most']} at most, {most['deepest'] * 1e3:.3g} mm deep, {most['strongest']:.4g} N"
    for name, place in list(facts["bodies"].items())[:8]:
        lines[name] = f"at ({', '.join(f'{x:.4g}' for x in place)}) m"
    if facts["saved"]:
        lines["saved"] = facts["saved"]
    print_facts(f"{facts['name']} ({facts['source'] or 'no file'})", lines)
    if facts["unsupported"]:
        typer.echo(f"  {changes(len(facts['unsupported']))}")
