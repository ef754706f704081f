"""Write a scene to a file, in the format of its suffix."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from poise.io.losses import LossWarning
from poise.model.errors import SceneError, did_you_mean
from poise.model.scene import Scene


def save_scene(scene: Scene, path: str | PathLike[str]) -> list[str]:
    """Write a scene as YAML (.yaml, .yml) or MJCF (.xml, .mjcf); returns the losses, and warns of them.

    The scene is compiled first, and must be valid. The write is atomic.

    >>> import poise
    >>> save_scene(poise.Scene(), "scene.jpg")
    Traceback (most recent call last):
        ...
    poise.model.errors.SceneError: scene.jpg: scenes are written as .yaml, .yml, .xml, .mjcf, not ".jpg"
    """
    file = Path(path)
    writers = _writers()
    ending = file.suffix.lower()
    if ending not in writers:
        hint = did_you_mean(ending, writers)
        near = hint if "did you mean" in hint else ""
        raise SceneError(f'scenes are written as {", ".join(writers)}, not "{ending}"{near}', file=str(file))
    scene.compile()
    text, lost = writers[ending](scene, file)
    _write_whole(file, text)
    if lost:
        warnings.warn(f"{file}: {' '.join(lost)}", LossWarning, stacklevel=3)
    return lost


def _writers() -> dict[str, Callable[[Scene, Path], tuple[str, list[str]]]]:
    from poise.io.mjcf_write import scene_to_mjcf
    from poise.io.scenes.writer import scene_to_yaml

    return {".yaml": scene_to_yaml, ".yml": scene_to_yaml, ".xml": scene_to_mjcf, ".mjcf": scene_to_mjcf}


def _write_whole(file: Path, text: str) -> None:
    """Replace a file atomically."""
    if not file.parent.is_dir():
        raise SceneError("there is no such folder to save to", file=str(file))
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise SceneError(f"cannot be written: {error.strerror or error}", file=str(file)) from error
    finally:
        temporary.unlink(missing_ok=True)
