"""Lights and floor of the viewer, shown before the world exists. This module imports nothing from the engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def has_graphics() -> bool:
    """Whether browsers on this computer are likely to draw with a graphics card: what is dear is drawn only then."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(found for name in ("dri/renderD*", "nvidia[0-9]*", "dxg") for found in Path("/dev").glob(name))


def add_lights(scene: Any) -> None:
    """Plain lights: to prepare surroundings that shine takes seconds where there is no graphics card."""
    scene.configure_environment_map(hdri=None)
    scene.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=(170, 165, 160), intensity=2.0)
    cast_shadows(scene, has_graphics())


def cast_shadows(scene: Any, wanted: bool) -> None:
    """Let the light from above cast shadows, or not."""
    scene.configure_default_lights(cast_shadow=wanted)


def add_squares(scene: Any, name: str, position: Any = (0.0, 0.0, 0.0), quat: Any = (1.0, 0.0, 0.0, 0.0)) -> Any:
    """A floor of squares without end."""
    return scene.add_grid(
        name,
        infinite_grid=True,
        cell_size=0.5,
        section_size=1.0,
        cell_color=(212, 215, 219),
        section_color=(176, 181, 188),
        plane_color=(240, 241, 243),
        plane_opacity=1.0,
        shadow_opacity=0.3,
        fade_distance=40.0,
        position=position,
        wxyz=quat,
    )


def receive(server: Any) -> None:
    """Show a floor and a message to browsers that connect before the world exists."""
    with server.atomic():
        server.gui.set_panel_label("Poise")
        server.gui.add_markdown("Building …")
        start = server.initial_camera
        start.position, start.look_at, start.up = (4.0, -2.5, 1.6), (0.0, 0.0, 0.9), (0.0, 0.0, 1.0)
        server.scene.add_frame("/world", show_axes=False)
        add_squares(server.scene, "/world/floor")
