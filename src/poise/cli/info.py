"""`poise info`: the content of a scene file."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poise.cli.report import clear_errors, print_facts, to_json
from poise.cli.run import Given, InertiaOption, load_with

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.model.scene import Scene


def info(
    scene: Annotated[Path, typer.Argument(help="A scene file: YAML, MJCF or URDF.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    given: Given = None,
    inertia: InertiaOption = None,
) -> None:
    """Say what a scene file holds, and what was not kept of it."""
    with clear_errors():
        from poise.model.compile import compile_scene

        loaded = load_with(scene, given, inertia)
        facts = describe(loaded, compile_scene(loaded))
    if as_json:
        typer.echo(to_json(facts))
    else:
        _print(facts)


def describe(scene: Scene, model: Model) -> dict[str, Any]:
    """The facts of a scene as plain data; SI units, radians."""
    return {
        "name": scene.name,
        "source": scene.source,
        "gravity": [float(g) for g in model.gravity],
        "dt": model.dt,
        "nq": model.nq,
        "nv": model.nv,
        "mass": float(model.body_mass.sum()),
        "bodies": [_body(model, i) for i in range(model.n_bodies)],
        "joints": [_joint(model, i) for i in range(model.n_joints)],
        "shapes": dict(Counter(type(s).__name__.lower() for b in scene.bodies for s in b.shapes)),
        "keyframes": [keyframe.name for keyframe in scene.keyframes],
        "actuators": [actuator.name for actuator in scene.actuators],
        "equalities": [equality.name for equality in scene.equalities],
        "unsupported": list(scene.unsupported),
    }


def _body(model: Model, index: int) -> dict[str, Any]:
    parent = int(model.body_parent[index])
    return {
        "name": model.body_names[index],
        "parent": None if parent < 0 else model.body_names[parent],
        "mass": float(model.body_mass[index]),
    }


def _joint(model: Model, index: int) -> dict[str, Any]:
    start, end = int(model.joint_v_start[index]), int(model.joint_v_start[index + 1])
    return {
        "name": model.joint_names[index],
        "kind": model.joint_kinds[index],
        "body": model.body_names[int(model.joint_body[index])],
        "dofs": list(model.dof_names[start:end]),
        "limits": [[float(lo), float(hi)] for lo, hi in model.dof_limits[start:end]],
        "cone": [float(angle) for angle in model.joint_cone[index]],
        "twist": [float(angle) for angle in model.joint_twist[index]],
        "limit_centre": [float(part) for part in model.joint_limit_centre[index]],
    }


def _print(facts: dict[str, Any]) -> None:
    """Print the facts as text."""
    shapes = ", ".join(f"{count} {kind}" for kind, count in sorted(facts["shapes"].items()))
    kinds = Counter(joint["kind"] for joint in facts["joints"])
    summary = {
        "bodies": str(len(facts["bodies"])),
        "joints": f"{len(facts['joints'])} ({', '.join(f'{n} {kind}' for kind, n in kinds.items()) or 'none'})",
        "coordinates": f"nq {facts['nq']}, nv {facts['nv']}",
        "mass": f"{facts['mass']:.6g} kg",
        "gravity": f"({', '.join(f'{g:g}' for g in facts['gravity'])}) m/s²",
        "time step": f"{facts['dt']:.6g} s",
        "shapes": shapes or "none",
    }
    for kind in ("keyframes", "actuators", "equalities"):
        if facts[kind]:
            summary[kind] = f"{len(facts[kind])}"
    print_facts(f"{facts['name']} ({facts['source'] or 'no file'})", summary)
    typer.echo()
    print_facts("Bodies", {b["name"]: f"{b['mass']:.6g} kg, on {b['parent'] or 'the world'}" for b in facts["bodies"]})
    typer.echo()
    print_facts(
        "Joints (limits in rad or m)", {joint["name"]: f"{joint['kind']}{_limits(joint)}" for joint in facts["joints"]}
    )
    if facts["unsupported"]:
        typer.echo(f"\nNot kept as it is ({len(facts['unsupported'])})")
        for sentence in facts["unsupported"]:
            typer.echo(f"  {sentence}")


def _limits(joint: dict[str, Any]) -> str:
    """Limits of a joint in a few words; rad or m."""
    parts = [
        f"{name} {_range(bounds)}" if len(joint["dofs"]) > 1 else _range(bounds)
        for name, bounds in zip(joint["dofs"], joint["limits"], strict=True)
        if any(math.isfinite(bound) for bound in bounds)
    ]
    if any(math.isfinite(angle) for angle in joint["cone"]):
        parts.append(f"cone {joint['cone'][0]:.4g}, {joint['cone'][1]:.4g}")
    if any(math.isfinite(angle) for angle in joint["twist"]):
        parts.append(f"twist {_range(joint['twist'])}")
    if any(joint["limit_centre"][1:]):
        parts.append(f"from ({', '.join(f'{part:.4g}' for part in joint['limit_centre'])})")
    return f", {'; '.join(parts)}" if parts else ""


def _range(bounds: list[float]) -> str:
    return f"[{bounds[0]:.4g}, {bounds[1]:.4g}]"
