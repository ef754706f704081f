"""Still pictures: for browsers without 3-D, and for notebooks."""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING, Any

from poise.model.errors import SceneError
from poise.model.model import Model
from poise.view.png import png_bytes

if TYPE_CHECKING:
    from poise.model.scene import Scene
    from poise.sim.recording import Recording

LARGEST = 8_000_000
"""Maximum length of a page in a notebook, in characters; a longer recording is shown as a picture."""


def still_picture(recording: Recording, size: tuple[int, int] = (640, 400)) -> bytes:
    """The middle of a recording as a PNG."""
    from poise.view.render import picture

    return png_bytes(picture(recording.model, recording.q[len(recording) // 2], size=size))


def recording_html(recording: Recording, height: int = 520) -> str:
    """A recording for a notebook: its page in a frame, or a picture if the page would be too large."""
    from poise.view.page import page_text

    words = html.escape(repr(recording))
    if not len(recording):
        return f"<pre>{words}</pre>"
    try:
        text = page_text(recording, still=False)
        if len(text) <= LARGEST:
            frame = f'<iframe srcdoc="{html.escape(text)}" title="{words}" allowfullscreen'
            return f'{frame} style="width:100%;height:{height}px;border:0;border-radius:8px"></iframe>'
        note = f"a page of {len(text) / 1e6:.0f} MB is too large for a notebook: write it by save('name.html')"
        return _figure(still_picture(recording), f"{words}; {note}")
    except ValueError as problem:  # nonfinite numbers: show the description instead
        return f"<pre>{words}\n{html.escape(str(problem))}</pre>"


def model_html(model: Model) -> str:
    """A model for a notebook: a picture of its rest pose."""
    from poise.view.render import picture

    words = html.escape(repr(model))
    if not len(model.solids):
        return f"<pre>{words}</pre>"
    return _figure(png_bytes(picture(model, model.q_rest, size=(480, 360))), words)


def scene_html(scene: Scene) -> str:
    """A scene for a notebook: a picture, or its errors."""
    words = html.escape(repr(scene))
    try:
        model: Any = scene.compile()
    except SceneError as problem:
        return f"<pre>{words}\n{html.escape(str(problem))}</pre>"
    return model_html(model).replace(html.escape(repr(model)), words)


def _figure(png: bytes, words: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    caption = f'<figcaption style="font:12px monospace;opacity:.7">{words}</figcaption>'
    image = f'<img src="data:image/png;base64,{data}" alt="{words}" style="max-width:100%;border-radius:8px">'
    return f'<figure style="margin:0">{image}{caption}</figure>'
