"""Scene files in YAML; docs/scenes.md describes the format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from typing import Any

from poise.model.errors import SceneError
from poise.model.scene import Scene

#: first fields of scenes, for files without a known suffix
_BEGINS = re.compile(
    rb"^(?:poise|bodies|characters|ground|gravity|parameters|include|description|name|dt):", re.MULTILINE
)
ENDINGS = (".yaml", ".yml")


def load_yaml(source: str | PathLike[str], *, set: Mapping[str, Any] | None = None) -> Scene:
    """Read a scene file; `set` gives values to its parameters, and to fields by their paths (`"ground.friction"`).

    Raises SceneError with everything that is wrong.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ball.yaml"
    >>> _ = file.write_text('''
    ... parameters: {size: 10}
    ... ground: {friction: 0.5}
    ... bodies:
    ...   - name: ball
    ...     position: [0, 0, 1]
    ...     shape: {kind: sphere, radius_cm: $size, mass: 2}
    ... ''')
    >>> load_yaml(file).body("ball").shapes[0].radius, load_yaml(file, set={"size": 20}).body("ball").shapes[0].radius
    (0.1, 0.2)
    >>> load_yaml(file, set={"ball.radius_cm": 5, "ground.friction": 0.9}).body("ball").shapes[0].radius
    0.05
    """
    from poise.io.load import read_file
    from poise.io.scenes.reader import read_scene

    if set is not None and not isinstance(set, Mapping):
        raise SceneError(f"must be values of parameters by name, found {set!r:.60}", field="set")
    file, content = read_file(source, "load_yaml", "Poise reads scenes from YAML files")
    return read_scene(file, content, set)


def looks_like_yaml(name: str, content: bytes) -> bool:
    """Whether a file is a scene in YAML, by its name or by what it begins with."""
    return name.lower().endswith(ENDINGS) or (b"\x00" not in content[:1024] and bool(_BEGINS.search(content[:65536])))
