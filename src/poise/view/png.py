"""Pictures as PNG files, with NumPy only."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

_CHANNELS = {1: 0, 3: 2, 4: 6}
"""PNG's colour types: grey, RGB, RGBA."""


def save_png(path: str | Path, image: Any) -> Path:
    """Write a picture (height, width, 3) of bytes to a PNG file; also grey (height, width) and RGBA (…, 4).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_png(Path(folder) / "grey.png", np.full((4, 5, 3), 128, np.uint8)).read_bytes()[1:4]
    b'PNG'
    """
    path = Path(path)
    path.write_bytes(png_bytes(image))
    return path


def png_bytes(image: Any) -> bytes:
    """The bytes that `save_png` writes.

    >>> png_bytes(np.zeros((2, 2), np.uint8))[1:4]
    b'PNG'
    """
    picture = checked_picture(image)
    picture = picture[..., None] if picture.ndim == 2 else picture
    height, width, channels = picture.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _CHANNELS[channels], 0, 0, 0)
    data = zlib.compress(_filtered(picture), 6)
    chunks = [_chunk(b"IHDR", header), _chunk(b"sRGB", b"\0"), _chunk(b"IDAT", data), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _filtered(picture: Picture) -> bytes:
    """Rows as differences from their neighbours, each by the filter that leaves the least (PNG, §9)."""
    height, width, channels = picture.shape
    here = picture.reshape(height, width * channels).astype(np.int16)
    left, above, corner = np.zeros_like(here), np.zeros_like(here), np.zeros_like(here)
    left[:, channels:] = here[:, :-channels]
    above[1:] = here[:-1]
    corner[1:, channels:] = here[:-1, :-channels]
    guess = left + above - corner
    far = [np.abs(guess - side) for side in (left, above, corner)]
    paeth = np.where((far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], above, corner))
    ways = [here, here - left, here - above, here - ((left + above) >> 1), here - paeth]
    rows = np.stack([way.astype(np.uint8) for way in ways])
    cost = np.abs(rows.view(np.int8).astype(np.int32)).sum(axis=2)
    best = cost.argmin(axis=0)
    out = np.empty((height, 1 + width * channels), np.uint8)
    out[:, 0] = best
    out[:, 1:] = rows[best, np.arange(height)]
    return out.tobytes()


def checked_picture(image: Any, colors_only: bool = False) -> Picture:
    """Validate a picture: bytes of a supported shape."""
    picture = np.asarray(image)
    shapes = "(height, width, 3)" if colors_only else "(height, width), (height, width, 3) or (height, width, 4)"
    channels = picture.shape[2:] in (((3,),) if colors_only else ((), (3,), (4,)))
    if picture.ndim not in (2, 3) or not channels or 0 in picture.shape:
        raise ValueError(f"a picture has the shape {shapes} and at least one pixel, found {picture.shape}")
    if picture.dtype != np.uint8:
        hint = "; multiply by 255 and round" if picture.dtype.kind == "f" else ""
        raise ValueError(f"a picture is made of bytes (uint8), found {picture.dtype}{hint}")
    return np.ascontiguousarray(picture)
