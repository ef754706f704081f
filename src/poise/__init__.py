"""Poise: physics of articulated characters.

Everything that users need is here by name. Names are looked up when they are first used, so that `import poise` is
quick and loads neither the compiler nor any optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from poise import _renamed
from poise._version import __version__

if TYPE_CHECKING:
    from poise import batch, characters, control, dynamics, io, model, motion, sim, view
    from poise.batch.worlds import Batch
    from poise.dynamics.simulation import Diverged
    from poise.formulations.acceleration_level.stiffness_guard import FormulationWarning
    from poise.formulations.maximal_coordinates.maximal import Maximal
    from poise.formulations.reduced import Reduced
    from poise.io.load import load
    from poise.io.motions import load_motion
    from poise.model.model import Model
    from poise.model.scene import Body, Inertia, Joint, Keyframe, Scene
    from poise.model.shapes import (
        Material,
        box,
        capsule,
        convex,
        cylinder,
        ellipsoid,
        height_field,
        plane,
        sphere,
        triangle_mesh,
    )
    from poise.model.state import State
    from poise.model.validate import SceneError
    from poise.sim.world import World

__all__ = [
    "Batch",
    "Body",
    "Diverged",
    "FormulationWarning",
    "Inertia",
    "Joint",
    "Keyframe",
    "Material",
    "Maximal",
    "Model",
    "Reduced",
    "Scene",
    "SceneError",
    "State",
    "World",
    "__version__",
    "batch",
    "box",
    "capsule",
    "characters",
    "control",
    "convex",
    "cylinder",
    "dynamics",
    "ellipsoid",
    "height_field",
    "io",
    "load",
    "load_motion",
    "model",
    "motion",
    "plane",
    "sim",
    "sphere",
    "triangle_mesh",
    "view",
]

_renamed.install()
_PACKAGES = ("batch", "characters", "control", "dynamics", "io", "model", "motion", "sim", "view")

#: where each public name lives
_HOMES = {
    "Batch": "poise.batch.worlds",
    "Body": "poise.model.scene",
    "Diverged": "poise.dynamics.simulation",
    "FormulationWarning": "poise.formulations.acceleration_level.stiffness_guard",
    "Inertia": "poise.model.scene",
    "Joint": "poise.model.scene",
    "Keyframe": "poise.model.scene",
    "Material": "poise.model.shapes",
    "Model": "poise.model.model",
    "Maximal": "poise.formulations.maximal_coordinates.maximal",
    "Reduced": "poise.formulations.reduced",
    "Scene": "poise.model.scene",
    "SceneError": "poise.model.validate",
    "State": "poise.model.state",
    "World": "poise.sim.world",
    "box": "poise.model.shapes",
    "capsule": "poise.model.shapes",
    "convex": "poise.model.shapes",
    "height_field": "poise.model.shapes",
    "triangle_mesh": "poise.model.shapes",
    "cylinder": "poise.model.shapes",
    "ellipsoid": "poise.model.shapes",
    "load": "poise.io.load",
    "load_motion": "poise.io.motions",
    "plane": "poise.model.shapes",
    "sphere": "poise.model.shapes",
}


def __getattr__(name: str) -> Any:
    """Find a public name where it lives, once."""
    if name in _PACKAGES:
        return import_module(f"poise.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(_unknown(name))


def __dir__() -> list[str]:
    """The public names, whether they have been used or not; not what this file needs for itself."""
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))


def _unknown(name: str) -> str:
    """What to say of a name that is not there."""
    from difflib import get_close_matches

    homes = () if name.startswith("_") else _PACKAGES
    for package in homes:
        if name in _offered(package):
            return f"module 'poise' has no attribute {name!r}; did you mean 'poise.{package}.{name}'?"
    near = get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"module 'poise' has no attribute {name!r}{hint}"


def _offered(package: str) -> list[str]:
    """Public names of a package, read from its source: to import it might load the compiler for a misspelt word."""
    import ast
    from pkgutil import get_data

    tree = ast.parse(get_data("poise", f"{package}/__init__.py") or b"")
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []
