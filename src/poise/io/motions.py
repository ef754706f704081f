"""Read a motion from a file of any supported format; the content determines the format."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from os import PathLike
from typing import Any

from poise.io.bvh import decode, load_bvh, read_bvh, told
from poise.io.deepmimic import load_deepmimic, read_deepmimic
from poise.io.encodings import is_wide
from poise.io.load import guess_content, read_file
from poise.model.errors import SceneError, did_you_mean
from poise.motion.clip import Clip

_READS = "Poise reads motions from BVH and from DeepMimic's JSON"


def load_motion(path: str | PathLike[str], **options: Any) -> Clip:
    r"""Read a clip from a file. The content determines the format, not the name.

    Options go to the reader: `units`, `up`, `drop_tpose` and `rate` for BVH, `character` for DeepMimic (see
    `poise.io.load_bvh` and `poise.io.load_deepmimic`). Raises SceneError where the file cannot be a motion.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "nod.bvh"
    >>> head = "HIERARCHY\nROOT neck\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n}\n"
    >>> _ = file.write_text(head + "MOTION\nFrames: 2\nFrame Time: 0.5\n0\n10\n")
    >>> load_motion(file, units="cm", up="y")
    <Clip "nod": 2 frames of 1 joints, 0.5 s>
    """
    if isinstance(path, str) and path.lstrip("\ufeff \t\r\n")[:9].casefold() == "hierarchy":
        raise SceneError("load_motion reads files, found the text of one; pass text to poise.io.load_bvh")
    file, content = read_file(path, "load_motion", _READS)
    name = str(file)
    start = decode(content, name).encode() if is_wide(content) else content
    begins = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:9].lower()
    text = decode(content, name) if begins == b"hierarchy" or begins[:1] == b"{" else ""
    if begins == b"hierarchy":
        _check_options("BVH", load_bvh, options, name)
        return told(read_bvh(text, name, **options), name)
    if begins[:1] == b"{":
        _check_options("DeepMimic", load_deepmimic, options, name)
        return read_deepmimic(text, name, **options)
    raise SceneError(f"{guess_content(content)}. {_READS}", file=name)


def _check_options(format_name: str, reader: Callable[..., Clip], options: dict[str, Any], file: str) -> None:
    allowed = [key for key in inspect.signature(reader).parameters if key != "source"]
    for option in options:
        if option not in allowed:
            hint = did_you_mean(option, allowed)
            raise SceneError(f'{format_name} files take no option "{option}"{hint}', file=file)
