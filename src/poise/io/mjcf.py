"""MJCF, MuJoCo's model format, read through MuJoCo's own parser and compiler.

MuJoCo resolves defaults, includes, frames, replicates, masses and inertias; what it compiled becomes a Scene. Bodies,
coordinates and velocities keep MuJoCo's order, and contacts its rules of friction: the larger coefficient of two geoms,
or that of the higher priority. Two things differ, and both are said where they occur:

- shapes of the world body move to a fixed body of their own, as Poise's world is not a body;
- mocap bodies become kinematic bodies without paths, which have coordinates here, so they come last: q is MuJoCo's
  `qpos` followed by the pose of every mocap body.

Losses are listed in `Scene.unsupported` and in one `LossWarning` per file.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from poise.io.losses import warn_of_changes
from poise.io.mjcf_bodies import read_bodies
from poise.io.mjcf_contacts import read_contact_pairs, read_excluded_pairs
from poise.io.mjcf_drives import read_actuators, read_equalities, read_keyframes
from poise.io.mjcf_gaps import list_unsupported
from poise.io.mjcf_guard import check_mjcf, without_comments
from poise.io.mjcf_skins import read_skins
from poise.io.mjcf_source import MjcfSource
from poise.io.sealed import check_unsealed
from poise.model.errors import SceneError
from poise.model.scene import Scene

_LINE = re.compile(r"line(?:\s+number)?\s*[=:]?\s*(\d+)", re.IGNORECASE)
_INCLUDE = re.compile(r"""<include\s+file\s*=\s*["']([^"']+)["']""")


def load_mjcf(source: str | PathLike[str], *, assets: Mapping[str, bytes] | None = None) -> Scene:
    """Read an MJCF file, or a string of MJCF, as a scene.

    `assets` are contents of the files that the model names (meshes, includes), by file name, for models that are not
    on disk. Raises SceneError, with file and line where MuJoCo tells them, and ImportError without MuJoCo. What is not
    kept is listed in `Scene.unsupported` and in one `LossWarning`.

    >>> xml = "<mujoco><worldbody><body name='ball'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
    >>> [body.name for body in load_mjcf(xml).bodies]
    ['ball']
    """
    if not isinstance(source, (str, PathLike)):
        raise SceneError(f"load_mjcf takes the path of a file or a string of MJCF, found {source!r}")
    for name, content in (assets or {}).items():
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise SceneError(f"must be contents in bytes by name, found {content!r:.60} for {name!r}", field="assets")
    mj = _import_mujoco()
    file = None if _is_xml(source) else Path(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spec = _parse(mj, source, file, assets)
        model = _compile(mj, spec, source, file)
    one_file = not _INCLUDE.search(_text(source, file))
    scene = _to_scene(MjcfSource(mj, spec, model, one_file=one_file), file)
    scene.unsupported += [f"MuJoCo warns: {' '.join(str(warning.message).split())}." for warning in caught]
    warn_of_changes(str(file) if file is not None else f'MJCF "{scene.name}"', scene.unsupported)
    return scene


def _is_xml(source: str | PathLike[str]) -> bool:
    return isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<")


def _import_mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as error:
        raise ImportError(
            'MJCF files are read with the mujoco package; install it with: pip install "mujoco>=3.3"'
        ) from error
    if not hasattr(mujoco, "MjSpec"):
        raise ImportError(
            f"mujoco {mujoco.__version__} is too old to read MJCF files for Poise, which needs MjSpec (3.2 or newer); "
            "install it with: pip install -U mujoco"
        )
    module: ModuleType = mujoco
    return module


def _parse(mj: ModuleType, source: str | PathLike[str], file: Path | None, assets: Mapping[str, bytes] | None) -> Any:
    if file is not None:
        check_unsealed(file)
    if file is not None and not file.is_file():
        found = "is a directory" if file.is_dir() else "does not exist"
        raise SceneError(f"cannot read MJCF: {file} {found}", file=str(file))
    check_mjcf(source, file, assets)
    # MuJoCo has separate arguments for included XML and other files; unused names are harmless
    contents = dict(assets or {})
    try:
        if file is None:
            text = str(source).lstrip("\ufeff \t\r\n")
            spec = _in_new_thread(partial(mj.MjSpec.from_string, text, include=contents, assets=contents))
        elif file.suffix in (".xml", ".urdf"):
            spec = _in_new_thread(partial(mj.MjSpec.from_file, str(file), include=contents, assets=contents))
        else:
            # MuJoCo determines formats by the suffix; with another suffix it needs the text
            text = file.read_text(encoding="utf-8-sig")
            included = _included(text, file.parent) | contents
            spec = _in_new_thread(partial(mj.MjSpec.from_string, text, include=included, assets=contents))
            spec.modelfiledir = str(file.parent.resolve())
    except (ValueError, RuntimeError, mj.FatalError) as error:
        raise _refusal(error, source, file) from error
    _refuse_urdf(source, file)
    return spec


def _in_new_thread(work: Callable[[], Any]) -> Any:
    """The result of a call into MuJoCo, or its exception.

    Its parser (4.0) leaves a thread with a warning handler that calls itself after an error that it does not know, as
    `anchor=" "` is one: the next warning in that thread would never end.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def _included(text: str, folder: Path) -> dict[str, bytes]:
    """Contents of the files that a model includes, and of those that they include, by the names that they go by."""
    found: dict[str, bytes] = {}
    waiting = [text]
    while waiting:
        for name in _INCLUDE.findall(waiting.pop()):
            if name not in found and (folder / name).is_file():
                found[name] = (folder / name).read_bytes()
                waiting.append(found[name].decode("utf-8", errors="replace"))
    return found


def _text(source: str | PathLike[str], file: Path | None) -> str:
    """The model without its comments."""
    text = str(source) if file is None else file.read_text(encoding="utf-8", errors="replace")
    return without_comments(text)


def _refuse_urdf(source: str | PathLike[str], file: Path | None) -> None:
    """MuJoCo reads URDF too, but turns it into something else; Poise has a reader of its own."""
    root = re.search(r"<([A-Za-z_][\w.-]*)", _text(source, file))
    if root and root.group(1) == "robot":
        raise SceneError("this is URDF, not MJCF: read it with poise.load", file=None if file is None else str(file))


def _compile(mj: ModuleType, spec: Any, source: str | PathLike[str], file: Path | None) -> Any:
    try:
        return _in_new_thread(spec.compile)
    except (ValueError, RuntimeError, mj.FatalError) as error:
        raise _refusal(error, source, file) from error


def _refusal(error: Exception, source: str | PathLike[str], file: Path | None) -> SceneError:
    """MuJoCo's message as a SceneError, with the line that it names where there is only one file to count in."""
    text = " ".join(str(error).split())
    text = re.sub(r"^(?:XML )?Error: (?:Error: )?", "", text)
    match = _LINE.search(text) if not _INCLUDE.search(_text(source, file)) else None
    return SceneError(
        f"MuJoCo cannot read this model: {text}",
        file=None if file is None else str(file),
        line=(int(match.group(1)) or None) if match else None,
    )


def _to_scene(source: MjcfSource, file: Path | None) -> Scene:
    model = source.model
    scene = Scene(
        gravity=source.gravity(),
        dt=float(model.opt.timestep),
        name=source.spec.modelname or (file.stem if file else "scene"),
        source=None if file is None else str(file),
        friction_combine="maximum",
    )
    scene.bodies = read_bodies(source)
    scene.keyframes = read_keyframes(source)
    scene.actuators = read_actuators(source)
    scene.equalities = read_equalities(source)
    scene.excluded_pairs = read_excluded_pairs(source)
    scene.contact_pairs = read_contact_pairs(source)
    scene.skins = read_skins(source)
    scene.unsupported = list_unsupported(source)
    return scene
