"""Animated GIF files: one palette for all frames, ordered dithering, and only changed pixels are written."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block
from poise.view.gif_kernels import MOST, STREAM, compress
from poise.view.png import Picture, checked_picture

_compress = entry(compress, STREAM, lanes=False)
_SHORTEST = 2
"""Minimum duration of a frame in hundredths of a second: programs replace shorter ones by 10."""
_NOTHING = 255
"""The colour index of unchanged pixels."""
_DITHER = 4.0
"""Amplitude of the dither before rounding to the palette, of 255."""


def save_gif(path: str | Path, frames: Iterable[Any], dt: float, *, loop: bool = True) -> Path:
    """Write pictures (height, width, 3) of bytes, `dt` seconds apart, to an animated GIF.

    GIF durations are in hundredths of a second, and programs show no less than 2: frames that are closer are left out,
    so that the film's duration is right. All frames share 255 colours.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_gif(Path(folder) / "grey.gif", [np.full((4, 5, 3), g, np.uint8) for g in (0, 99)], 0.1)
    ...     path.read_bytes()[:6]
    b'GIF89a'
    """
    pictures = [checked_picture(frame, colors_only=True) for frame in frames]
    if not pictures:
        raise ValueError("frames: a film needs at least one picture, found none")
    for k, picture in enumerate(pictures):
        if picture.shape != pictures[0].shape:
            raise ValueError(f"frame {k} has shape {picture.shape}, the first one {pictures[0].shape}")
    height, width = pictures[0].shape[:2]
    if max(height, width) > 65535:
        raise ValueError(f"a GIF has at most 65535 pixels a side, found {width} × {height}")
    shown = _timing(len(pictures), dt)
    palette = find_palette([pictures[k] for k, _ in shown])
    parts = [b"GIF89a", struct.pack("<HHBBB", width, height, 0xF7, 0, 0), palette.tobytes()]
    if loop:
        parts.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
    parts += _Film(palette, width * height).encoded((pictures[k], delay) for k, delay in shown)
    path = Path(path)
    path.write_bytes(b"".join(parts) + b"\x3b")
    return path


def _timing(count: int, dt: Any) -> list[tuple[int, int]]:
    """(frame, duration in hundredths of a second) of the kept frames."""
    step = float(dt)
    if not (math.isfinite(step) and 0.0 < step <= 600.0):
        raise ValueError(f"dt must be a time above 0 s and up to 600 s, found {dt!r}")
    end = max(round(100.0 * step * count), _SHORTEST)
    kept = [(0, 0)]
    for k in range(1, count):
        when = round(100.0 * step * k)
        if when - kept[-1][1] >= _SHORTEST and end - when >= _SHORTEST:
            kept.append((k, when))
    return [(k, after - when) for (k, when), (_, after) in zip(kept, [*kept[1:], (count, end)], strict=True)]


def find_palette(pictures: list[Picture], most: int = 255) -> Picture:
    """(256, 3) palette of some pictures, by median cut (Heckbert 1982).

    >>> find_palette([np.array([[(0, 0, 0), (200, 100, 50)]], np.uint8)])[:2].tolist()
    [[0, 0, 0], [200, 100, 50]]
    """
    step = max(1, len(pictures) // 24)
    pixels = np.concatenate([picture.reshape(-1, 3) for picture in pictures[::step]]).astype(np.int64)
    keys, inverse, count = np.unique(
        (pixels[:, 0] >> 2) << 12 | (pixels[:, 1] >> 2) << 6 | pixels[:, 2] >> 2,
        return_inverse=True,
        return_counts=True,
    )
    mean = np.stack([np.bincount(inverse, pixels[:, k]) for k in range(3)], axis=1) / count[:, None]
    boxes = [np.arange(len(keys))]
    costs = [_cost(mean, count, boxes[0])]
    while len(boxes) < most and max(costs) > 0.0:
        at = int(np.argmax(costs))
        box = boxes[at]
        axis = int(np.ptp(mean[box], axis=0).argmax())
        box = box[np.argsort(mean[box, axis], kind="stable")]
        share = np.cumsum(count[box])
        cut = int(np.clip(np.searchsorted(share, 0.5 * share[-1], side="right"), 1, len(box) - 1))
        boxes[at], other = box[:cut], box[cut:]
        costs[at] = _cost(mean, count, boxes[at])
        boxes.append(other)
        costs.append(_cost(mean, count, other))
    palette = np.zeros((256, 3), np.uint8)
    for k, box in enumerate(boxes):
        palette[k] = np.round(np.average(mean[box], axis=0, weights=count[box]))
    palette[len(boxes) :] = palette[0]
    return palette


def _cost(mean: NDArray[np.float64], count: NDArray[np.int64], box: NDArray[np.int64]) -> float:
    """Priority of splitting a box of colours: its longest side, with a small weight for its number of pixels."""
    if len(box) < 2:
        return 0.0
    return float(np.ptp(mean[box], axis=0).max() * np.sqrt(np.sqrt(count[box].sum())))


def _bayer() -> NDArray[np.float64]:
    """(8, 8) ordered dither thresholds from −½ to ½ (Bayer matrix)."""
    grid = np.zeros((1, 1))
    for _ in range(3):
        grid = np.block([[4 * grid, 4 * grid + 2], [4 * grid + 3, 4 * grid + 1]])
    return np.asarray((grid + 0.5) / 64.0 - 0.5)


class _Film:
    """Encodes frames of a GIF: only changed pixels are written."""

    def __init__(self, palette: Picture, most: int) -> None:
        self._palette = palette[:_NOTHING].astype(np.float64)
        self._nearest = np.full(1 << 18, -1, np.int16)
        self._shown: NDArray[np.uint8] | None = None
        self._room = stream_block(most)

    def encoded(self, frames: Iterable[tuple[Picture, int]]) -> list[bytes]:
        """Blocks of all frames, each with its time in hundredths of a second."""
        return [self._frame(self._quantized(picture), delay) for picture, delay in frames]

    def _quantized(self, picture: Picture) -> NDArray[np.uint8]:
        """Index of the nearest palette colour of each pixel after dithering."""
        height, width = picture.shape[:2]
        pattern = np.tile(_bayer() * 2.0 * _DITHER, (-(-height // 8), -(-width // 8)))[:height, :width, None]
        moved = np.clip(np.round(picture + pattern), 0, 255).astype(np.int32) >> 2
        keys = moved[..., 0] << 12 | moved[..., 1] << 6 | moved[..., 2]
        used = np.flatnonzero(np.bincount(keys.reshape(-1), minlength=1 << 18))
        fresh = used[self._nearest[used] < 0]
        for part in np.array_split(fresh, len(fresh) // 4096 + 1):
            color = np.stack((part >> 12, part >> 6 & 63, part & 63), axis=1) * 4.0 + 1.5
            apart = ((color[:, None] - self._palette) ** 2) @ np.array((0.30, 0.59, 0.11))
            self._nearest[part] = apart.argmin(axis=1)
        return np.asarray(self._nearest[keys], np.uint8)

    def _frame(self, numbers: NDArray[np.uint8], delay: int) -> bytes:
        """One frame: the rectangle of changed pixels, with unchanged ones transparent."""
        top, left, (height, width) = 0, 0, numbers.shape
        part = numbers
        if self._shown is not None:
            changed = numbers != self._shown
            rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
            top, left = (int(rows[0]), int(columns[0])) if len(rows) else (0, 0)
            bottom, right = (int(rows[-1]) + 1, int(columns[-1]) + 1) if len(rows) else (1, 1)
            window = (slice(top, bottom), slice(left, right))
            part = np.where(changed, numbers, _NOTHING)[window]
            height, width = part.shape
        self._shown = numbers
        control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 0x05, delay, _NOTHING, 0)
        place = struct.pack("<BHHHHB", 0x2C, left, top, width, height, 0)
        return control + place + b"\x08" + _blocks(compressed(part.reshape(-1), self._room))


def _blocks(data: bytes) -> bytes:
    """Data in blocks of up to 255 bytes, each after its length."""
    parts = [data[k : k + 255] for k in range(0, len(data), 255)]
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def stream_block(most: int) -> Block:
    """Memory for compressing so many pixels at a time."""
    return STREAM.block(F64, n=0, pixel=most, byte=2 * most + 16, child=MOST * 256, used=MOST)


def compressed(pixels: NDArray[Any], room: Block) -> bytes:
    """The codes of GIF for some pixels, each 0 to 255.

    >>> compressed(np.zeros(4, np.uint8), stream_block(4)).hex()
    '000108041010'
    """
    room.set_count("n", len(pixels))
    room.pixel[: len(pixels)] = pixels
    length = _compress[F64](room.handle)
    return room.byte[:length].astype(np.uint8).tobytes()
