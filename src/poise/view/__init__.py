"""Visualization: plots, pictures, films, and pages that play recordings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from poise.view.plots import Curve, Drawing, below, chart, line_chart
from poise.view.png import save_png

if TYPE_CHECKING:
    from poise.view.film import Film
    from poise.view.gif import save_gif
    from poise.view.mp4 import save_mp4
    from poise.view.page import save_page
    from poise.view.render import Camera, Look, Painter, picture
    from poise.view.silhouettes import strobe

__all__ = [
    "Camera",
    "Curve",
    "Drawing",
    "Film",
    "Look",
    "Painter",
    "below",
    "chart",
    "line_chart",
    "picture",
    "save_gif",
    "save_mp4",
    "save_page",
    "save_png",
    "strobe",
]

#: modules that need the compiler or scenes are imported at their first use
_LATE = {
    "Camera": "poise.view.render",
    "Film": "poise.view.film",
    "save_mp4": "poise.view.mp4",
    "Look": "poise.view.render",
    "Painter": "poise.view.render",
    "picture": "poise.view.render",
    "save_gif": "poise.view.gif",
    "save_page": "poise.view.page",
    "strobe": "poise.view.silhouettes",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATE[name]), name)
    return value
