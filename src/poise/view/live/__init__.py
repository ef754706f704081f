"""Looking at a world while it runs, in a browser: play, step back, drag, change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poise.view.live.session import Session
from poise.view.live.settings import Settings

if TYPE_CHECKING:
    from poise.view.live.viewer import Viewer

__all__ = ["Session", "Settings", "Viewer"]


def __getattr__(name: str) -> Any:
    """The viewer is found when it is asked for."""
    if name == "Viewer":
        from poise.view.live.viewer import Viewer

        return Viewer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
