"""A self-contained HTML page that plays a recording in 3-D in any current browser, without a network.

The page includes a small renderer from `web/`, about 60 kB. A general library would be ten times as large, without
poses, contacts, ghosts and plots.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from poise.model.errors import SceneError
from poise.sim.recording import Recording
from poise.view.page.content import page_content
from poise.view.page.still import still_picture

__all__ = ["page_text", "read_page", "save_page"]

SCRIPTS = ("math", "data", "forms", "shaders", "renderer", "skins", "stage", "camera", "charts", "player")
"""Files of `web/` in the order in which they are joined."""


def save_page(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    about: str = "",
    ghost: Any = None,
    trails: Sequence[str] = (),
    follow: str | bool | None = None,
    fps: float = 60.0,
    still: bool = True,
) -> Path:
    """Write a recording as one HTML page that plays it in 3-D, as `recording.save("name.html")`.

    `title` is the title of the page, by default the model's name; `about` is a short description. `ghost` is another
    motion of the same model, shown transparent: a reference, key-frames, a clip (which is retargeted), another
    recording, or a pair of times (s) and coordinates (n, nq). `trails` names bodies whose paths are drawn. The camera
    follows the body or character `follow`, or none if it is False. The default is the scene file's setting, otherwise
    the largest character; the initial view is the scene file's. `fps` is the number of frames per second in the page,
    which interpolates between them. Positions are accurate to 0.1 mm. `still` embeds a picture, for browsers without
    3-D.

    >>> import poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    >>> recording = scene.build(dt=0.01).run(0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_page(recording, f"{folder}/fall.html", title="A ball falls").read_text()[:15]
    '<!doctype html>'
    """
    options: dict[str, Any] = {"title": title, "about": about, "ghost": ghost, "trails": trails}
    text = page_text(recording, **options, follow=follow, fps=fps, still=still)
    target = Path(path)
    target.write_bytes(text.encode("utf-8"))
    return target


def page_text(recording: Recording, *, still: bool = True, **options: Any) -> str:
    """The text that `save_page` writes; options are the same.

    >>> import poise
    >>> "<canvas" in page_text(poise.Scene().build(dt=0.25).run(0.5), still=False)
    True
    """
    content = page_content(recording, **options)
    image = ""
    if still:
        data = base64.b64encode(still_picture(recording)).decode("ascii")
        image = f'<img id="still" alt="A still picture of the recording" src="data:image/png;base64,{data}">'
    script = "\n".join(_web(f"{name}.js") for name in SCRIPTS)
    parts = {
        "title": html.escape(_whole(content["title"])),
        "style": _web("page.css"),
        "still": image,
        "data": _script_safe(json.dumps(content, separators=(",", ":"))),
        "script": f'"use strict";\n(() => {{\n{script}}})();',
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _web("page.html"))


def read_page(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The data of a page: names, shapes, and streams for `poise.view.page.packing.unpack`.

    >>> import poise, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_page(poise.Scene().build(dt=0.25).run(0.5), f"{folder}/still.html", still=False)
    ...     read_page(path)["title"]
    'scene'
    """
    text = Path(path).read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    if found is None:
        raise SceneError("not a page that Poise saved: it holds no data", file=os.fspath(path))
    content: dict[str, Any] = json.loads(found[1])
    return content


def _web(name: str) -> str:
    return files(__name__).joinpath("web", name).read_text(encoding="utf-8")


def _script_safe(text: str) -> str:
    """JSON that is safe within a script element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _whole(text: str) -> str:
    """Text that can be written as UTF-8: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
