"""Implicit springs for rows, with dead zones and progressive stiffness (LIU).

A row's error is φ0 at the beginning of a step h, and φ⁺ = φ0 + h w at its end, where w is its velocity relative to the
target velocity. Its force is f = −F(φ⁺) − c w, with F odd and piecewise linear: 0 in the dead zone, then with one
stiffness after another. So (w, f) lies on a piecewise linear decreasing graph, LIU's "target manifold" (`Law`):

    corners  φ_j of F:   w_j = (φ_j − φ0)/h,   f_j = −F(φ_j) − c w_j,      ends  dw/df = −1/(h k + c)             (1)

A spring of one piece is the soft row of LIU eqs. 12 and 13 (`softness`); this generalizes it to several pieces. Bounds
of the force end the graph with vertical pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

from poise.constraints.row_store import VERTICES
from poise.constraints.softness import spring
from poise.control.demand_sharing import number
from poise.solve.laws import UPRIGHT, Law

MOST_PIECES = (VERTICES - 2) // 2
"""Corners on each side of zero; bounds of the force add two more."""


@dataclass(frozen=True)
class Spring:
    """A spring and damper for motors between bodies; within a `zone` only the damping acts.

    `harder` are pairs (error, stiffness): the stiffness from that error on.

    >>> Spring(100.0, zone=0.25, harder=[(0.5, 1000.0)]).pull(1.0)
    525.0
    """

    stiffness: float
    """N/m or N·m/rad."""
    damping: float = 0.0
    """N·s/m or N·m·s/rad."""
    zone: float = 0.0
    """No force up to this error; m or rad."""
    harder: Sequence[tuple[float, float]] = ()
    """Errors (m or rad), and the stiffness beyond each."""
    pieces: tuple[tuple[float, float], ...] = field(init=False, repr=False, compare=False)
    """(error at which it begins, stiffness) of each piece, the dead zone's first."""

    def __post_init__(self) -> None:
        """Validate the fields, and join the pieces."""
        first = (number("zone", self.zone), number("stiffness", self.stiffness))
        number("damping", self.damping)
        pieces = [(0.0, 0.0), first] if first[0] > 0.0 else [(0.0, first[1])]
        try:
            given = [(float(error), float(stiffness)) for error, stiffness in self.harder]
        except (TypeError, ValueError):
            raise ValueError(f"harder is {self.harder!r}; it must be pairs (error, stiffness)") from None
        for error, stiffness in given:
            number("an error of harder", error)
            number("a stiffness of harder", stiffness)
            if error <= pieces[-1][0]:
                raise ValueError(
                    f"harder begins at {error:g}; that must be beyond {pieces[-1][0]:g}, where others begin"
                )
            pieces.append((error, stiffness))
        if len(pieces) - 1 > MOST_PIECES:
            raise ValueError(f"a spring of {len(pieces)} pieces; {MOST_PIECES + 1} are the most, a dead zone counted")
        if self.damping == 0.0 and all(stiffness == 0.0 for _, stiffness in pieces):
            raise ValueError("stiffness and damping are 0: a spring must have one of them")
        object.__setattr__(self, "pieces", tuple(pieces))

    @property
    def plain(self) -> bool:
        """Whether it has one piece, so that a soft row suffices."""
        return len(self.pieces) == 1

    def pull(self, error: float) -> float:
        """F of an error, without the damping; N or N·m."""
        size, force = abs(error), 0.0
        for (begin, stiffness), (end, _) in zip(self.pieces, [*self.pieces[1:], (inf, 0.0)], strict=True):
            force += stiffness * max(min(size, end) - begin, 0.0)
        return force if error >= 0.0 else -force

    def law(self, error: float, dt: float, strength: float = inf) -> Law:
        """The graph of eq. 1, for an error φ0 and a step; bounded by a strength (N or N·m)."""
        corners = [begin for begin, _ in self.pieces if begin > 0.0]
        places = [*reversed(corners), *([] if corners else [0.0]), *(-corner for corner in corners)]
        graph = []
        for place in places:
            w = (place - error) / dt
            graph.append((-self.pull(place) - self.damping * w, w))
        steep = dt * self.pieces[-1][1] + self.damping
        end = -1.0 / steep if steep > 0.0 else UPRIGHT
        return Law(tuple(graph), end, end) if strength == inf else _cut(graph, end, strength)


def soft_row(spring_: Spring, error: float, speed: float, dt: float, strength: float = inf) -> dict[str, Any]:
    """Arguments of `Rows.add` for a row that is a spring: an error, a target velocity, a greatest force.

    >>> soft_row(Spring(1000.0, 10.0), error=0.02, speed=0.0, dt=0.01)
    {'target': -1.0, 'cfm': 5.0}
    """
    if not spring_.plain:
        return {"target": speed, "law": spring_.law(error, dt, strength)}
    soft = spring(spring_.stiffness, spring_.damping, dt)
    bounds = {} if strength == inf else {"lo": -strength, "hi": strength}
    return {"target": speed + soft.velocity_target(error, dt), "cfm": soft.cfm} | bounds


def _cut(graph: list[tuple[float, float]], end: float, strength: float) -> Law:
    """A graph whose force stays within ±strength."""
    kept = [one for one in graph if -strength < one[0] < strength]
    left, right = _at(graph, end, -strength), _at(graph, end, strength)
    ends = ([(-strength, left)] if left is not None else []), ([(strength, right)] if right is not None else [])
    return Law((*ends[0], *kept, *ends[1]), UPRIGHT, UPRIGHT)


def _at(graph: list[tuple[float, float]], end: float, force: float) -> float | None:
    """w at which a graph reaches a force, or None."""
    if force < graph[0][0]:
        return None if end == UPRIGHT else graph[0][1] + end * (force - graph[0][0])
    if force > graph[-1][0]:
        return None if end == UPRIGHT else graph[-1][1] + end * (force - graph[-1][0])
    for (f0, w0), (f1, w1) in pairwise(graph):
        if f0 <= force <= f1 and f1 > f0:
            return w0 + (w1 - w0) * (force - f0) / (f1 - f0)
    return graph[0][1] if len(graph) == 1 else None
