"""The order of two shapes of one kind in a pair function, independent of which of them is A.

A pair function may prefer a face of A to one of B, or round differently when A and B are swapped. Where kinds differ
the order of kinds decides. Otherwise the larger shape comes first, and of equal ones the lower one, along a direction
that is perpendicular to hardly any axis: a floor comes before the shapes on it, so that its faces are preferred. So
swapping A and B flips normals and changes nothing else, to the last bit.
"""

from __future__ import annotations

from typing import Any

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import select, zero
from poise.kernel.trace import formula
from poise.kernel.vec import column0, column2

ASLANT = (0.27109, 0.45361, 0.84897)
"""A direction that is perpendicular to no likely axis of a scene or diagonal of its boxes."""


@formula
def along(v: Any) -> Any:
    """Component of a vector along the slanting direction."""
    return v.x * ASLANT[0] + v.y * ASLANT[1] + v.z * ASLANT[2]


@formula
def comes_later(a: Any, b: Any) -> Any:
    """Whether A comes after B: a strict order, false for equal shapes."""
    none, more = zero(a.p.x), b.half - a.half
    differences = (
        none + (more.x + more.y + more.z),
        *(none + x for x in more.leaves()),
        along(a.p - b.p),
        along(column2(a.R) - column2(b.R)),
        along(column0(a.R) - column0(b.R)),
    )
    first = none
    for x in reversed(differences):
        first = select((x < 0.0) | (x > 0.0), x, first)
    return first > 0.0


@kernel
def flip(t):
    """Negate the normals of all contact points of a pair."""
    for k in range(load(t.n, 0)):
        store(t.normal, k, -load(t.normal, k))
