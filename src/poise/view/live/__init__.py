"""Live viewer of a running world in a browser: play, step back, drag, change settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poise.view.live.session import Session
    from poise.view.live.settings import Settings
    from poise.view.live.viewer import Viewer

__all__ = ["Session", "Settings", "Viewer"]


def __getattr__(name: str) -> Any:
    """Import each name at its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"poise.view.live.{name.lower()}"), name)
