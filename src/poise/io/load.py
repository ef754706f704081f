"""Read a scene from a file of any supported format; the content determines the format."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from poise.io.encodings import decoded_wide, is_wide
from poise.io.mjcf import load_mjcf
from poise.io.sealed import check_sealed_xml, check_unsealed
from poise.io.urdf import load_urdf
from poise.io.xml_lines import root_tag
from poise.io.yaml_scene import load_yaml, looks_like_yaml
from poise.model.errors import SceneError, did_you_mean
from poise.model.regular_file import read_regular
from poise.model.scene import Scene

#: readers by the root element of their XML
_READERS: dict[str, tuple[str, Callable[..., Scene]]] = {
    "mujoco": ("MJCF", load_mjcf),
    "robot": ("URDF", load_urdf),
}
_YAML: tuple[str, Callable[..., Scene]] = ("YAML", load_yaml)
_READS = "Poise reads scenes from YAML, MJCF (<mujoco>) and URDF (<robot>) files"
_MOTION = "it holds a motion, not a scene, and Poise does not read it yet"
_CLIP = "it holds a motion, not a scene: read it with poise.load_motion"
_UNPACK = "it is compressed: unpack it first"

#: other XML that users may try
_OTHER_ROOTS = {
    "mujocoinclude": "it is a part that other MJCF files include: load the file that includes it",
    "sdf": "it is SDF: convert it to URDF first",
    "OpenSimDocument": "it is an OpenSim model: convert it to MJCF first",
    "COLLADA": "it is a COLLADA mesh, not a scene",
    "svg": "it is a picture, not a scene",
    "html": "it is a web page, perhaps saved in place of the file",
}
#: what the first bytes of other files look like
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", _UNPACK + ", with gunzip"),
    (b"PK\x03\x04", _UNPACK + ", with unzip"),
    (b"BZh", _UNPACK + ", with bunzip2"),
    (b"\xfd7zXZ\x00", _UNPACK + ", with unxz"),
    (b"HIERARCHY", "it is BVH; " + _CLIP),
    (b"PathFileType", "it is TRC; " + _MOTION),
    (b"#usda", "it is USD, which is not read"),
    (b"PXR-USDC", "it is USD, which is not read"),
    (b"glTF", "it is glTF, which is not read"),
    (b"\x89HDF", "it is HDF5, which is not read"),
    (b"solid ", "it is an STL mesh, not a scene"),
    (b"%PDF", "it is a PDF document"),
    (b"\x89PNG", "it is a picture, not a scene"),
    (b"version https://git-lfs", "it is a pointer of Git LFS: fetch the file with git lfs pull"),
)


def load(path: str | PathLike[str], **options: Any) -> Scene:
    """Read a scene from a file. The content determines the format, not the name.

    Options go to the reader: `set` (values of parameters) for YAML, `root`, `density`, `package_dirs` and `inertia` for
    URDF, `assets` for MJCF (see `poise.io.load_yaml`, `load_urdf` and `load_mjcf`). Raises SceneError with all errors
    if the file is not a valid scene. One `poise.io.LossWarning` per MJCF or URDF file lists everything that is not
    imported exactly, as does `Scene.unsupported`.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "arm.xml"
    >>> _ = file.write_text("<robot name='arm'><link name='base'/></robot>")
    >>> load(file).name
    'arm'
    """
    if isinstance(path, str) and path.lstrip("\ufeff \t\r\n").startswith("<"):
        message = "load reads files, found XML; pass text to poise.io.mjcf.load_mjcf or poise.io.urdf.load_urdf"
        raise SceneError(message)
    file, content = read_file(path, "load", _READS)
    tag = _root(content, str(file))
    if tag:
        check_sealed_xml(content, str(file))
    text = _narrow(content, str(file))
    if tag not in _READERS and (tag or not looks_like_yaml(file.name, text)):
        raise SceneError(f"{guess_content(text, tag)}. {_READS}", file=str(file))
    name, reader = _READERS.get(tag, _YAML)
    allowed = [key for key in inspect.signature(reader).parameters if key != "source"]
    for option in options:
        if option not in allowed:
            hint = did_you_mean(option, allowed)
            raise SceneError(f'{name} files take no option "{option}"{hint}', file=str(file))
    return reader(file, **options)


def read_file(path: str | PathLike[str], caller: str, reads: str) -> tuple[Path, bytes]:
    """The file and its content; `caller` is the calling function, and `reads` describes its formats, for errors."""
    try:
        file = Path(path)
    except TypeError:
        raise SceneError(f"{caller} takes the path of a file, found {path!r}") from None
    check_unsealed(file)
    try:
        return file, read_regular(file)
    except FileNotFoundError:
        raise SceneError(f"there is no such file{_near_file(file)}", file=str(file)) from None
    except IsADirectoryError:
        raise SceneError(f"it is a directory. {reads}", file=str(file)) from None
    except (OSError, ValueError) as error:
        raise SceneError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=str(file)) from error


def _near_file(file: Path) -> str:
    """The file nearby that may have been meant."""
    try:
        siblings = [sibling.name for sibling in file.parent.iterdir()]
    except OSError:
        return f": the folder {file.parent} does not exist"
    hint = did_you_mean(file.name, siblings)
    return hint if "did you mean" in hint else ""


def _root(content: bytes, file: str) -> str:
    """Name of the root element, empty where the content is no XML."""
    start = _narrow(content, file).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] != b"<":
        return ""
    # XML allows no white space before its declaration, but a file may have it
    return root_tag(content if is_wide(content) else start, file)


def _narrow(content: bytes, file: str) -> bytes:
    """A file in UTF-16 as UTF-8, others as they are."""
    return decoded_wide(content, file).encode() if is_wide(content) else content


def guess_content(content: bytes, tag: str = "") -> str:
    """Description of a file of another kind."""
    if tag:
        root = f"its root element is <{tag}>"
        return _OTHER_ROOTS.get(tag, root + did_you_mean(tag, _READERS).partition("; there is")[0].rstrip("?"))
    text = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "the file is empty"
    for signature, meaning in _SIGNATURES:
        if text.startswith(signature):
            return meaning
    # the second byte of a C3D file is always 0x50
    if len(content) >= 512 and content[1] == 0x50 and content[0] in range(2, 10):
        return "it seems to be C3D; " + _MOTION
    if b"\x00" in content[:1024]:
        return "it is a binary file of an unknown kind"
    line = text.splitlines()[0][:60].decode("utf-8", errors="replace")
    return f'it is text of an unknown kind that begins with "{line}"'
