"""File formats of recordings: one entry for each suffix, with the function that writes it.

A writer is `write(recording, path, **options)`. It is imported at its first use: unused formats cost no import, and
packages that import this one can be named here.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from poise.model.array_file import not_written, sync_file
from poise.model.errors import SceneError, did_you_mean

if TYPE_CHECKING:
    from poise.sim.recording import Recording

Writer = Callable[..., Any]


class Format(NamedTuple):
    """A file format of recordings."""

    what: str
    """Short description of the content."""
    writer: str
    """Module and function."""


FORMATS: dict[str, Format] = {
    ".npz": Format("all that was recorded, as arrays of NumPy", "poise.sim.recording_file:save"),
    ".h5": Format("the same as HDF5, for long runs", "poise.io.hdf5:save_hdf5"),
    ".hdf5": Format("the same as HDF5, for long runs", "poise.io.hdf5:save_hdf5"),
    ".glb": Format(
        "glTF: bodies, shapes and their motion, for Blender, game engines and browsers", "poise.io.gltf:save_gltf"
    ),
    ".bvh": Format(
        "the motion of a character's skeleton, or of the one that a clip came with", "poise.io.bvh_export:save_motion"
    ),
    ".csv": Format("curves over time as a table", "poise.io.csv_export:save_csv"),
    ".html": Format("one page that plays it in 3-D in any browser, offline", "poise.view.page:save_page"),
    ".usda": Format("USD as text: bodies, shapes and their motion", "poise.io.usd:save_usd"),
    ".usdc": Format("USD as binary", "poise.io.usd:save_usd"),
    ".usd": Format("USD as binary", "poise.io.usd:save_usd"),
    ".png": Format("a picture of one moment", "poise.view.film:save_still"),
    ".gif": Format("a film of 256 colours", "poise.view.film:save_film"),
    ".mp4": Format("a film, by ffmpeg", "poise.view.film:save_film"),
}
"""By suffix."""

#: aliases of suffixes
_OTHERS = {
    ".hdf": ".h5",
    ".npy": ".npz",
    ".zip": ".npz",
    ".pkl": ".npz",
    ".mat": ".h5",
    ".gltf": ".glb",
    ".fbx": ".glb",
    ".obj": ".glb",
    ".tsv": ".csv",
    ".txt": ".csv",
    ".xlsx": ".csv",
    ".json": ".csv",
    ".jpg": ".png",
    ".jpeg": ".png",
    ".webp": ".png",
    ".avi": ".mp4",
    ".mov": ".mp4",
    ".webm": ".mp4",
    ".mkv": ".mp4",
    ".htm": ".html",
}


def save(recording: Recording, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a recording in the format of the path's suffix. The write is atomic: a failure leaves no partial file."""
    target = checked_path(path)
    suffix = target.suffix.lower()
    write = writer(target)
    parameters = list(inspect.signature(write).parameters.values())[2:]
    known = [one.name for one in parameters]
    checks_itself = any(one.kind == one.VAR_KEYWORD for one in parameters)
    for option in options:
        if option not in known and not checks_itself:
            hint = did_you_mean(option, known) if known else ""
            raise SceneError(f'{suffix} files take no option "{option}"{hint}', file=str(target))
    with whole_file(target) as temporary:
        write(recording, temporary, **options)


def writer(path: str | os.PathLike[str]) -> Writer:
    """The function that writes files of a path's suffix.

    >>> writer("walk.npz").__name__
    'save'
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        found = f'there is no format "{suffix}"' if suffix else "the name has no suffix to tell the format"
        other = _OTHERS.get(suffix, "")
        hint = f', did you mean "{other}"?' if other in FORMATS else ""
        raise SceneError(f"{found}{hint or _near(suffix)}", file=str(target))
    module, _, function = FORMATS[suffix].writer.partition(":")
    found_writer: Writer = getattr(import_module(module), function)
    return found_writer


def _near(suffix: str) -> str:
    hint = did_you_mean(suffix, FORMATS)
    return hint if "did you mean" in hint else f"; recordings are saved as {', '.join(FORMATS)}"


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Validate a path before anything is written to it."""
    try:
        target = Path(path)
    except TypeError:
        raise SceneError(f"the path of a file should be given, found {path!r:.80}") from None
    if "\0" in str(target):
        raise SceneError(f"a path holds no zero bytes, found {str(target)!r}")
    try:
        taken, there = target.is_dir(), target.parent.is_dir()
    except OSError as error:  # a name that is too long
        raise SceneError(f"cannot be written: {error.strerror}", file=str(target)) from None
    if taken:
        raise SceneError("it is a folder: give the name of a file in it", file=str(target))
    if not there:
        raise SceneError("there is no such folder to save to", file=str(target))
    return target


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A temporary name beside a file, which replaces the file on success."""
    temporary = target.with_name(f".{target.stem[:100]}.{os.getpid()}.part{target.suffix}")
    try:
        yield temporary
        sync_file(temporary)
        temporary.replace(target)
    except OSError as error:
        raise not_written(error, target) from error
    finally:
        with suppress(OSError):  # the error of writing can also prevent the removal
            temporary.unlink(missing_ok=True)
