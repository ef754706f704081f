"""Friction of contact pairs: coefficients of their own, in place of those combined from two surfaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.constraints.combining import rolling_shapes
from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import select, spread
from poise.model.model import Model
from poise.solve.cones import NEVER_SLIPS

COLUMNS = ("pair_friction", "pair_torsional", "pair_rolling")


def pair_columns(model: Model) -> dict[str, Any]:
    """Contact pairs and their friction, as fields of `contact.SURFACES`."""
    a, b = model.contact_pairs.T
    own = np.minimum(model.contact_pair_friction, NEVER_SLIPS).T
    columns = {name: column.copy() for name, column in zip(COLUMNS, own, strict=True)}
    return {"n_pairs": len(a), "pair_a": a.copy(), "pair_b": b.copy()} | columns


def pair_sliding(model: Model, a: int, b: int) -> float | None:
    """Sliding friction of the contact pair of two shapes; None if there is no such pair."""
    here = (model.contact_pairs == (min(a, b), max(a, b))).all(axis=1)
    return float(model.contact_pair_friction[here, 0][0]) if here.any() else None


def body_that_rolls(model: Model) -> str | None:
    """A body with torsional or rolling friction, of its material or of a contact pair; None if there is none."""
    solids, shapes = model.solids, rolling_shapes(model.solids)
    pairs = model.contact_pairs[(model.contact_pair_friction[:, 1:] > 0.0).any(axis=1)]
    found = [*shapes.tolist(), *pairs.reshape(-1).tolist()]
    return model.body_names[int(solids.body[found[0]])] if found else None


@kernel
def of_pair(u, own, a, b, mixed):
    """A coefficient of the contact between shapes a and b: its pair's own if there is one, else the combined one."""
    for k in range(u.n_pairs):
        one, other = spread(load(u.pair_a, k), a), spread(load(u.pair_b, k), a)
        ours = ((a == one) & (b == other)) | ((a == other) & (b == one))
        mixed = select(ours, spread(load(own, k), mixed), mixed)
    return mixed
