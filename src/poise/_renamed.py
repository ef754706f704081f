"""Module paths of before 0.2: they still work, with a warning, for one minor version."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_RENAMED = {
    "batch": {
        "clock": "world_times",
        "controls": "batch_controls",
        "crew": "thread_pool",
        "order": "schedule",
        "recording": "world_recording",
        "sampling": "mppi",
        "sampling_checks": "mppi_options",
        "states": "world_states",
        "terrains": "batch_terrains",
        "values": "sweep_values",
    },
    "collision": {
        "epa": "narrowphase.convex.epa",
        "gjk": "narrowphase.convex.gjk",
        "ids": "contact_ids",
        "impacts": "ccd.time_of_impact",
        "manifold": "narrowphase.convex.manifold",
        "pipeline": "detector",
        "queries": "distance_queries",
        "rays": "ray_casting.rays",
    },
    "constraints": {
        "angles": "row_parts.orientation_parts",
        "bodies": "row_parts.part_bodies",
        "contacts": "contact_parts",
        "curves": "row_parts.curve_parts",
        "joint_rows": "kinds.joint",
        "levels": "rows_to_problem",
        "matrices": "response.delassus",
        "parts": "row_parts.point_parts",
        "rolling": "row_parts.nonholonomic_parts",
        "row_input": "row_validation",
        "tree": "response.delassus_kernels",
        "tree_rows": "response.row_system",
    },
    "control": {
        "dragging": "mouse_spring",
        "fading": "stance_blending",
        "guiding": "actuator_control",
        "helpers": "demand_sharing",
        "heroes": "attach_tracking",
        "keepers": "zone_control",
        "planting": "footskate_cleanup",
        "points": "point_springs",
        "sensing": "disturbance_observer",
        "speeds": "key_speeds",
        "staging": "scenario",
        "stances": "contact_phases",
        "strengths": "torque_limits",
        "support": "support_polygon",
        "zones": "dead_zone_law",
    },
    "dynamics": {
        "abm": "aba",
        "deltas": "response_api",
        "inputs": "argument_checks",
        "layout": "dynamics_layout",
        "measures": "state_queries",
        "responses": "impulse_response",
        "totals": "energy_momentum",
    },
    "formulations": {
        "integrators": "acceleration_level.integrators",
        "kinds": "formulation_registry",
        "maximal": "maximal_coordinates.maximal",
        "stability": "acceleration_level.stiffness_guard",
        "tracking": "acceleration_level.acceleration_tracking",
    },
    "io": {
        "decimals": "parse_floats",
        "moments": "recording_frames",
        "surfaces": "tessellation",
        "table": "csv_export",
    },
    "model": {
        "chain": "single_dof_chains",
        "check_parts": "part_checks",
        "edges": "mesh_topology",
        "slots": "state_fields",
        "solids": "shape_arrays",
    },
    "motion": {
        "bones": "bone_names",
        "edits": "clip_editing",
        "falling": "ballistic_correction",
        "figures": "retarget_rig",
        "inputs": "motion_checks",
        "keyed": "quintic_splines",
        "landing": "foot_strikes",
        "mending": "cleanup",
        "posed": "retarget_source",
        "returning": "inverse_retarget",
        "turning": "rotation_splines",
    },
    "sim": {
        "acting": "controllers",
        "clock": "profiler",
        "driven": "controlled_drives",
        "formats": "export_formats",
        "joined": "actuation",
        "last": "step_result",
        "loops": "world_loops",
        "motors": "world_motors",
        "placed": "body_view",
        "report": "step_report",
        "running": "recorder",
    },
    "solve": {
        "body_sweeps": "matrix_free",
        "check": "residuals",
        "manifest": "solver_registry",
    },
    "view": {
        "following": "camera_paths",
        "moving": "motion_sampler",
    },
}
"""By package: the old name of a module, and its path within the package now."""


def new_path(path: str) -> str | None:
    """Where a module is now that had another path; None for others.

    >>> new_path("poise.collision.pipeline")
    'poise.collision.detector'
    """
    root, _, rest = path.partition(".")
    package, _, name = rest.partition(".")
    found = _RENAMED.get(package, {}).get(name) if root == "poise" else None
    return f"poise.{package}.{found}" if found else None


class RenamedModules(MetaPathFinder, Loader):
    """Finds modules by their old paths, and warns."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Python asks this after all other finders."""
        return ModuleSpec(fullname, self) if new_path(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module as it is called now: both paths give one module."""
        new = new_path(spec.name)
        assert new is not None
        warnings.warn(f"{spec.name} is {new} now", DeprecationWarning, stacklevel=2)
        module = import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed; it gets the spec of its own path back, which Python has replaced."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Let old paths work."""
    if not any(isinstance(finder, RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(RenamedModules())
