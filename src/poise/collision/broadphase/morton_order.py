"""Morton order of boxes: neighbours in space are close in the order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 20
"""Cells along an axis, as a power of two."""
FAR = 1e5
"""Extent of the cells from the middle, in sizes: boxes farther away are in the last cell."""


def sorted_slots(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.intp]:
    """(n,) indices of (n, 3) boxes, sorted by size (in steps of 8) and then along a space-filling curve.

    A large box among small ones would enlarge its leaf. The curve is that of G. M. Morton, A Computer Oriented Geodetic
    Data Base (1966): interleaved bits of the three coordinates. The place of non-finite boxes is arbitrary.

    >>> sorted_slots(np.array([[0.0, 0, 0], [9, 9, 9], [0, 0, 1]]), np.array([[1.0, 1, 1], [10, 10, 10], [1, 1, 2]]))
    array([0, 2, 1])
    """
    if not len(low):
        return np.zeros(0, np.intp)
    with np.errstate(invalid="ignore", over="ignore"):
        centre, size = 0.5 * low + 0.5 * high, np.max(high - low, axis=1)
    fine = np.isfinite(size) & np.all(np.isfinite(centre), axis=1)
    if not np.any(fine):
        return np.arange(len(low))
    middle, typical = np.median(centre[fine], axis=0), float(np.median(size[fine]))
    size, centre = np.where(fine, size, typical), np.where(fine[:, None], centre, middle)
    reach = FAR * typical
    place = np.clip(centre - middle, -reach, reach)
    place -= place.min(axis=0)
    cell = max(float(place.max()), np.finfo(np.float64).tiny) / ((1 << BITS) - 1)
    code = _interleaved((place / cell).astype(np.int64))
    return np.lexsort((code, np.frexp(size)[1] // 3))


def _interleaved(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) interleaved bits of (n, 3) integers."""
    spread = cells & ((1 << BITS) - 1)
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        spread = (spread | spread << shift) & mask
    code: NDArray[np.int64] = spread[:, 0] | spread[:, 1] << 1 | spread[:, 2] << 2
    return code
