"""What worlds of a batch are to the last bit, and batches that seat them in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from poise.batch.schedule import Order
from poise.batch.worlds import Batch


def bits(batch: Batch) -> tuple[np.ndarray, ...]:
    """All that steps tell of worlds."""
    told = (batch.residual, batch.sweeps, batch.newton_steps, batch.contacts, batch.rows)
    return (batch.q.copy(), batch.v.copy(), batch.time.copy(), *told)


def same(one: tuple[np.ndarray, ...], two: tuple[np.ndarray, ...], which: Any = slice(None)) -> bool:
    """Whether some worlds are the same."""
    return all(np.array_equal(a[which], b[which]) for a, b in zip(one, two, strict=True))


def shuffle_worlds(monkeypatch: pytest.MonkeyPatch, seed: int = 8) -> None:
    """Batches seat worlds at random from now on, and leave seats free between them."""
    rng = np.random.default_rng(seed)

    def shuffled(self: Order) -> int:
        order, n, lanes = self._records.order, self._records.n, self._records.width.lanes
        seats = rng.permutation(len(order))
        order[...] = -1
        order[np.sort(seats[:n])] = rng.permutation(n)
        return len(order) // lanes

    monkeypatch.setattr(Order, "arrange", shuffled)
