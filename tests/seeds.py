"""Other random numbers for all tests: `POISE_SEED_OFFSET=1` moves every seed that a test gives to NumPy or Hypothesis.

Seeds inside Poise stay as they are: they are part of what is tested, and other processes must agree on them.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

VARIABLE = "POISE_SEED_OFFSET"
TESTS = str(Path(__file__).resolve().parent) + os.sep


def offset() -> int:
    """What is added to seeds."""
    return int(os.environ.get(VARIABLE) or 0)


def moved(seed: Any, by: int) -> Any:
    """A seed of NumPy moved on; one that is no number, or no list of them, as it is."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return int(seed) + by
    if isinstance(seed, list | tuple):
        return [*seed, by]
    return seed


def moving(make: Callable[..., Any], by: int) -> Callable[..., Any]:
    """`numpy.random.default_rng` for tests: called from a file of theirs it moves the seed."""

    def default_rng(seed: Any = None) -> Any:
        return make(moved(seed, by) if sys._getframe(1).f_code.co_filename.startswith(TESTS) else seed)

    return default_rng


def move_seeds() -> None:
    """Move the seeds that tests give to NumPy from here on, if that is asked for."""
    if by := offset():
        np.random.default_rng = moving(np.random.default_rng, by)


def move_examples(items: list[Any]) -> None:
    """Let Hypothesis draw other examples, the same ones in every run, if that is asked for."""
    if by := offset():
        for item in items:
            test = getattr(item, "obj", None)
            test = getattr(test, "__func__", test)
            if getattr(test, "is_hypothesis_test", False):
                test._hypothesis_internal_use_seed = by + zlib.crc32(item.nodeid.split("[")[0].encode())
