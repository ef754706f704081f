"""Compact numbers as text: multiples of a step, differences between frames, bytes grouped by rank, deflated.

Poses change little from frame to frame, so that nearly all bytes of the differences are 0. `web/data.js` unpacks them
in a few lines.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Stream = dict[str, Any]
"""`shape`, `step`, and `data`: base64 of what zlib made of the differences' bytes, lowest ranks first."""
_MOST = 2.0**30
"""Largest multiple that is written; leaves room for differences."""


def pack(values: ArrayLike, step: float) -> Stream:
    """Pack an array (frames, …), rounded to multiples of `step`, or of a greater step if numbers are too large.

    >>> stream = pack([[0.0, 1.0], [0.26, 1.04]], step=0.1)
    >>> stream["shape"], unpack(stream).round(6).tolist()
    ([2, 2], [[0.0, 1.0], [0.3, 1.0]])
    """
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError("numbers to pack must be finite")
    largest = float(np.abs(array).max()) if array.size else 0.0
    step = max(step, largest / _MOST)
    whole = np.rint(array / step).astype(np.int32)
    rows = whole.reshape(len(whole), -1) if whole.size else whole.reshape(len(whole), 0)
    differences = np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))
    planes = differences.astype("<i4").tobytes()
    ranks = np.frombuffer(planes, np.uint8).reshape(-1, 4).T.tobytes()
    data = base64.b64encode(zlib.compress(ranks, 9)).decode("ascii")
    return {"shape": list(array.shape), "step": step, "data": data}


def unpack(stream: Stream) -> NDArray[np.float64]:
    """The array that `pack` packed."""
    ranks = np.frombuffer(zlib.decompress(base64.b64decode(stream["data"])), np.uint8)
    differences = np.ascontiguousarray(ranks.reshape(4, -1).T).view("<i4").reshape(-1)
    shape = tuple(stream["shape"])
    rows = differences.reshape(shape[0], -1) if differences.size else differences.reshape(shape)
    return np.asarray(np.cumsum(rows, axis=0, dtype=np.int32).reshape(shape) * float(stream["step"]))
