"""Rows as a problem for the solvers, at velocity or at acceleration level.

    velocity        w = J v⁺ − v_ref,   λ an impulse       v_ref = target − erp φ/dt;  −φ/dt for speculative rows
    acceleration    w = J a + γ − a_ref + α φ + β φ̇,  λ a force                                       VON eq. 11

Bounds, radii and the λ of laws are forces in the store, at both levels; impulses are force · dt. The w of a law is in
the units of the level, m/s or m/s². A row that only pushes (lo ≥ 0) and has a positive error is *speculative*: it
may close its gap within the step, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.response.row_system import Seen
from poise.constraints.row_store import BALL, CONTACT, LAW, NO_END, VERTICES
from poise.constraints.rows import Rows
from poise.kernel.memory import F64
from poise.solve.friction import Coefficients
from poise.solve.laws import UPRIGHT, Law
from poise.solve.problem import Ball, Friction, Help, Problem

Array = NDArray[np.float64]
Helps = Mapping[int, Mapping[int, float]]
"""Ids of helped rows, each with the ids of its helpers and their tolerances."""


def velocity_problem(
    rows: Rows,
    seen: Seen,
    dt: float,
    *,
    cone: bool = True,
    impact: bool = False,
    helps: Helps | None = None,
    fastest: float = np.inf,
) -> Problem:
    """The problem whose multipliers are impulses over a step `dt`; `seen` is of that step.

    Errors of rows without softness are corrected at a speed of at most `fastest`.
    In an `impact` contacts have their impulsive coefficient (KOK §5). `helps` are secondary targets (see
    `solve.secondary`): for each helped row, by its id, the ids of its helpers with their tolerances; m/s or rad/s.

    >>> import poise
    >>> from poise.constraints.rows import Rows
    >>> from poise.constraints.response.row_system import see
    >>> from poise.solve.pgs import PGS
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> rows = Rows(scene.compile())
    >>> _ = rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1), lo=0.0)
    >>> problem = velocity_problem(rows, see(rows, rows.model.q_rest, dt=0.01), dt=0.01)
    >>> PGS().solve(problem).lam.round(4).tolist()  # the weight of 2 kg for 10 ms
    [0.1962]
    """
    _check(rows, seen)
    if not (np.isfinite(dt) and dt > 0.0):
        raise ValueError(f"dt is {dt}; it must be positive")
    if seen.pull is not None:
        raise ValueError("the rows were evaluated at acceleration level: give `see` the same dt")
    if seen.dt is not None and seen.dt != dt:
        raise ValueError(f"dt is {dt}, and the rows were evaluated for {seen.dt}: give `see` the same one")
    one = _fields(rows)
    apart = (one["lo"] >= 0.0) & (one["phi"] > 0.0)
    mend = one["erp"] * one["phi"] / dt
    mend = np.where(one["cfm"] > 0.0, mend, np.clip(mend, -fastest, fastest))
    v_ref = np.where(apart, -one["phi"] / dt, one["target"] - mend)
    return _problem(rows, one, seen, seen.speed - v_ref, dt, _frictions(rows, one, cone, impact), _helps(rows, helps))


def acceleration_problem(rows: Rows, seen: Seen, *, cone: bool = True, helps: Helps | None = None) -> Problem:
    """The problem whose multipliers are forces (KOK eqs. 1, 10; VON eq. 11); tolerances of `helps` in m/s² or rad/s².

    >>> import poise
    >>> from poise.constraints.rows import Rows
    >>> from poise.constraints.response.row_system import see
    >>> from poise.solve.dantzig import Dantzig
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> rows = Rows(scene.compile())
    >>> _ = rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1), lo=0.0)
    >>> Dantzig().solve(acceleration_problem(rows, see(rows, rows.model.q_rest))).lam.round(2).tolist()
    [19.62]
    """
    _check(rows, seen)
    if seen.pull is None:
        raise ValueError("the rows were evaluated at velocity level: call `see` without dt")
    one = _fields(rows)
    wanted = one["a_ref"] - one["alpha"] * one["phi"] - one["beta"] * seen.speed
    return _problem(rows, one, seen, seen.pull - wanted, 1.0, _frictions(rows, one, cone, False), _helps(rows, helps))


def warm_multipliers(rows: Rows) -> Array:
    """(m,) multipliers in the rows: those of `Rows.warm_start`, or of the last solve; (worlds, m) in lanes."""
    return np.array(rows.now.lam[rows.listing().slots].T, np.float64)


def keep_multipliers(rows: Rows, lam: ArrayLike) -> None:
    """Store multipliers in the rows, for the report and the next step; of shape (m,), or (worlds, m) in lanes."""
    given, slots = np.asarray(lam, np.float64), rows.listing().slots
    wanted = slots.shape if rows.width.lanes == 1 else (rows.width.lanes, len(slots))
    if given.shape != wanted or not np.isfinite(given).all():
        raise ValueError(f"lam must be finite numbers of shape {wanted}, one a row; its shape is {given.shape}")
    rows.now.lam[slots] = given.T


def _check(rows: Rows, seen: Seen) -> None:
    if rows.width != F64:
        raise ValueError(f"rows of {rows.width}; problems are made of one world in float64")
    if len(seen.A) != rows.listing().size:
        raise ValueError(f"{rows.listing().size} rows, of which {len(seen.A)} were evaluated: call `see` again")


def _fields(rows: Rows) -> dict[str, Any]:
    """Numbers of the listed rows."""
    slots = rows.listing().slots
    names = ("phi", "target", "a_ref", "alpha", "beta", "lo", "hi", "erp", "cfm", "bound", "slide", "strike", "slides")
    one = {name: rows.now.arrays[name][slots] for name in names}
    listing = rows.listing()
    normals = listing.starts[:-1][listing.kinds == CONTACT]
    one["lo"][normals], one["hi"][normals] = 0.0, np.inf
    return one


def _frictions(rows: Rows, one: dict[str, Any], cone: bool, impact: bool) -> list[Friction]:
    """Friction of every contact."""
    listing = rows.listing()
    found = []
    for n in listing.starts[:-1][listing.kinds == CONTACT].tolist():
        rest, slide, strike = (float(one[name][n]) for name in ("bound", "slide", "strike"))
        mu = Coefficients(rest, slide if slide < rest else None, strike)
        tangents, slides = (n + 1, n + 2), bool(one["slides"][n])
        found.append(
            mu.impact(n, tangents, cone=cone) if impact else mu.contact(n, tangents, cone=cone, sliding_now=slides)
        )
    return found


def _helps(rows: Rows, helps: Helps | None) -> list[Help]:
    """Secondary targets by row numbers, from those by ids."""
    if not helps:
        return []
    listing = rows.listing()
    singles = listing.starts[:-1][(listing.kinds != CONTACT) & (listing.kinds != BALL)].tolist()
    number = {int(rows.now.id[listing.slots[row]]): row for row in singles}
    for id in (id for helped, helpers in helps.items() for id in (helped, *helpers)):
        if id not in number:
            raise ValueError(f"helps: no single row has the id {id}")
    return [
        Help(number[helped], tuple(number[id] for id in helpers), tuple(float(t) for t in helpers.values()))
        for helped, helpers in helps.items()
    ]


def _problem(
    rows: Rows,
    one: dict[str, Any],
    seen: Seen,
    b: Array,
    scale: float,
    frictions: list[Friction],
    helps: list[Help],
) -> Problem:
    """Build the problem; forces times `scale` are multipliers."""
    listing = rows.listing()
    first = {kind: listing.starts[:-1][listing.kinds == kind] for kind in (LAW, CONTACT, BALL)}
    lo, hi = one["lo"] * scale, one["hi"] * scale
    lo[first[LAW]], hi[first[LAW]] = -np.inf, np.inf
    for kind in (CONTACT, BALL):
        for k in range(3):
            lo[first[kind] + k], hi[first[kind] + k] = -np.inf, np.inf
    return Problem(
        seen.A,
        b,
        lo,
        hi,
        one["cfm"],
        laws={int(row): _law(rows, number, scale) for number, row in enumerate(first[LAW])},
        frictions=frictions,
        balls=[Ball((int(n), int(n) + 1, int(n) + 2), float(one["bound"][n]) * scale) for n in first[BALL]],
        helps=helps,
    )


def _law(rows: Rows, number: int, scale: float) -> Law:
    """The law of row `number` of the region."""
    place = slice(number * VERTICES, (number + 1) * VERTICES)
    pairs = zip(rows.now.law_lam[place].tolist(), rows.now.law_w[place].tolist(), strict=True)
    vertices = tuple(dict.fromkeys((lam * scale, w) for lam, w in pairs))
    ends = [float(rows.now.arrays[name][number]) for name in ("law_left", "law_right")]
    left, right = (UPRIGHT if end == NO_END else -end / scale for end in ends)
    return Law(vertices, left, right)
