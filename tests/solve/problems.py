"""The families of random problems, which benchmarks draw from as well: see `benchmarks/_problems.py`."""

from _problems import (
    BOUNDS,
    EQUALITIES,
    FAMILIES,
    LARGEST,
    Known,
    Rng,
    bounded_rows,
    cone,
    draw,
    draw_any_size,
    matrix,
    point_on,
    pyramid,
    random_law,
)

__all__ = [
    "BOUNDS",
    "EQUALITIES",
    "FAMILIES",
    "LARGEST",
    "Known",
    "Rng",
    "bounded_rows",
    "cone",
    "draw",
    "draw_any_size",
    "matrix",
    "point_on",
    "pyramid",
    "random_law",
]
