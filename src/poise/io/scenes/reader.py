"""Read a scene file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poise.io.losses import warn_of_changes
from poise.io.scenes.builder import Builder
from poise.io.scenes.includes import Gatherer
from poise.io.scenes.nodes import Fields
from poise.io.scenes.parameters import with_parameters
from poise.io.scenes.parts import read_part
from poise.io.scenes.paths import is_path, with_fields
from poise.io.scenes.rules import Place
from poise.io.scenes.schema import SceneFile
from poise.kernel.garbage import without_garbage_collection
from poise.model.errors import SceneError
from poise.model.scene import Scene

FORMAT = 1


def read_scene(path: Path, content: bytes, given: Mapping[str, Any] | None = None) -> Scene:
    """The scene of a file. Raises SceneError with everything that is wrong with it."""
    with without_garbage_collection():  # it takes a third of the time, as nearly all nodes of the tree live on
        return _read(path, content, given)


def _read(path: Path, content: bytes, given: Mapping[str, Any] | None) -> Scene:
    gatherer = Gatherer()
    root = gatherer.read(path, content=content)
    problems = gatherer.problems
    listed = root.fields.get("parameters")
    own = listed.fields if isinstance(listed, Fields) else {}
    fields = {name: value for name, value in (given or {}).items() if name not in own and is_path(name)}
    root = with_parameters(root, {n: value for n, value in (given or {}).items() if n not in fields}, problems)
    root = with_fields(root, fields, problems)
    file = read_part(SceneFile, root, Place(problems, "", "", root.file, root.line))
    if file.poise != FORMAT:
        what = f"this version of Poise reads scenes of format {FORMAT}, found {file.poise}"
        raise SceneError(what, file=str(path), line=root.place("poise")[1], field="poise")
    builder = Builder(file, path, problems)
    scene = builder.build()
    warn_of_changes(str(path), builder.changes)
    return scene
