"""Checks of the arguments of rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.constraints.row_store import HARD_CAP, KINDS, LARGEST_ID, VERTICES
from poise.dynamics.argument_checks import body_number, dof_number
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.solve.cones import NEVER_SLIPS
from poise.solve.friction import Coefficients
from poise.solve.laws import Law

NUMBERS = ("phi", "gamma", "target", "a_ref", "alpha", "beta", "lo", "hi", "erp", "cfm")
"""Fields of a row that are numbers."""
_DEFAULTS = dict.fromkeys(NUMBERS, 0.0) | {"lo": -inf, "hi": inf, "erp": 1.0}
_NONE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_ROOM = {"single": 16, "law": 1, "contact": 8, "ball": 1, "term": 8}


@dataclass(frozen=True)
class Term:
    """A part of a row's Jacobian: six numbers on a body's twist, or one on a coordinate."""

    body: str | int | None = None
    J: ArrayLike = _NONE
    """(6,) on (ω, v) at the centre of mass, world axes."""
    dof: str | int | None = None
    coefficient: float = 1.0


def six(name: str, J: Any) -> tuple[float, ...]:
    """A covector on (ω, v)."""
    try:
        numbers = tuple(map(float, J))
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != 6 or not all(map(isfinite, numbers)):
        raise ValueError(f"{name} is {J!r}; it must be six finite numbers, on (ω, v)")
    return numbers


def real(name: str, value: Any) -> float:
    """One number, which may be infinite."""
    if type(value) is float:
        return value
    try:
        if np.ndim(value) == 0:
            return float(operator.mul(value, 1.0))  # float alone would accept text
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} is {value!r}; it must be one number")


def finite(name: str, value: Any) -> float:
    """A number that is neither infinite nor NaN."""
    number = real(name, value)
    if not isfinite(number):
        raise ValueError(f"{name} is {value}; it must be finite")
    return number


def checked_numbers(numbers: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of a row, with defaults for missing ones."""
    whole = _DEFAULTS.copy()
    for name, value in numbers.items():
        if name not in whole:
            raise ValueError(f"a row has no {name}{did_you_mean(name, NUMBERS)}")
        whole[name] = real(name, value) if name in ("lo", "hi") else finite(name, value)
    lo, hi = whole["lo"], whole["hi"]
    if isnan(lo) or isnan(hi) or lo > hi or lo == inf or hi == -inf:
        raise ValueError(f"lo is {lo} and hi {hi}; neither may be NaN, and lo must not be above hi")
    if whole["cfm"] < 0.0 or not 0.0 <= whole["erp"] <= 1.0:
        raise ValueError(f"erp is {whole['erp']} and cfm {whole['cfm']}; erp is from 0 to 1, cfm 0 or more")
    return whole


def body_or_world(model: Model, body: Any) -> int:
    """Index of a body, −1 for the world."""
    return -1 if not isinstance(body, str) and body == -1 else body_number(model, body)


def checked_row(
    model: Model,
    a: str | int | None,
    Ja: ArrayLike | None,
    b: str | int | None,
    Jb: ArrayLike | None,
    dof: str | int | None,
    coefficient: float,
    numbers: Mapping[str, Any],
) -> dict[str, Any]:
    """All fields of a row except its further terms."""
    if dof is None and not (type(coefficient) is float and coefficient == 1.0):
        raise ValueError(f"coefficient is {coefficient!r} without a dof; give both or neither")
    row: dict[str, Any] = checked_numbers(numbers)
    row["a"], row["Ja"] = _side(model, "a", a, Ja)
    row["b"], row["Jb"] = _side(model, "b", b, Jb)
    row["dof"] = -1 if dof is None else dof_number(model, dof)
    row["Jdof"] = 0.0 if dof is None else finite("coefficient", coefficient)
    row["term"], row["lam"], row["bounce"], row["restitution"] = -1, 0.0, 0.0, 0.0
    return row


def _side(model: Model, name: str, body: str | int | None, J: ArrayLike | None) -> tuple[int, tuple[float, ...]]:
    """A body and the Jacobian on it: both or neither, except that the world needs no Jacobian."""
    if body is None:
        if J is not None:
            raise ValueError(f"J{name} is given without its body: give {name}, or −1 for the world")
        return -1, _NONE
    index = body_or_world(model, body)
    if J is None:
        if index >= 0:
            raise ValueError(f"body {name} is {body!r}, and J{name} is missing: give its six numbers on (ω, v)")
        return -1, _NONE
    return index, six(f"J{name}", J)


def checked_terms(model: Model, terms: Iterable[Term]) -> list[dict[str, Any]]:
    """Further terms of a row."""
    return [_checked_term(model, term) for term in terms]


def _checked_term(model: Model, term: Term) -> dict[str, Any]:
    if not isinstance(term, Term):
        raise TypeError(f"a term is {term!r}; it must be a Term")
    if (term.body is None) == (term.dof is None):
        raise ValueError(f"a term is on a body or on a coordinate: {term}")
    on_body = term.body is not None
    return {
        "term_body": body_or_world(model, term.body) if on_body else -1,
        "term_J": six("J", term.J) if on_body else _NONE,
        "term_dof": -1 if term.dof is None else dof_number(model, term.dof),
        "term_Jdof": 0.0 if on_body else finite("coefficient", term.coefficient),
    }


def checked_block(
    model: Model,
    a: str | int,
    Ja: ArrayLike,
    b: str | int,
    Jb: ArrayLike,
    numbers: Sequence[Mapping[str, float]],
) -> list[dict[str, Any]]:
    """Three rows on two bodies."""
    (i, on_a), (j, on_b) = (_block_side(model, *side) for side in (("a", a, Ja), ("b", b, Jb)))
    acts_on(i, j)
    return [checked_row(model, i, on_a[k], j, on_b[k], None, 1.0, numbers[k]) for k in range(3)]


def _block_side(model: Model, name: str, body: str | int, J: Any) -> tuple[int, list[tuple[float, ...]]]:
    """A body and three covectors."""
    try:
        rows = [six(f"J{name}", row) for row in J]
    except TypeError:
        rows = []
    if len(rows) != 3:
        raise ValueError(f"J{name} is {J!r}; a block of three rows needs three times six numbers")
    return body_or_world(model, body), rows


def acts_on(*places: int) -> None:
    """A row must act on something: a body or a coordinate."""
    if all(place < 0 for place in places):
        raise ValueError("the row acts on the world alone: give it a body and its Jacobian, a dof, or terms")


def three_each(numbers: Mapping[str, Any], alone: bool) -> list[dict[str, Any]]:
    """Numbers of three rows: three of each; a single number, if `alone`, is the first row's."""
    split: list[dict[str, Any]] = [{}, {}, {}]
    for name, value in numbers.items():
        if alone and np.ndim(value) == 0:
            split[0][name] = value
            continue
        if np.shape(value) != (3,):
            what = "one number, of the normal, or three, one a row" if alone else "three numbers, one a row"
            raise ValueError(f"{name} has shape {np.shape(value)}; it must be {what}")
        for k in range(3):
            split[k][name] = value[k]
    return split


def checked_law(law: Law) -> Law:
    """A law for which there is room."""
    if not isinstance(law, Law):
        raise TypeError(f"law is {law!r}; it must be a Law (see `solve.laws`)")
    if len(law.vertices) > VERTICES:
        raise ValueError(f"a law of {len(law.vertices)} vertices; rows have room for {VERTICES}")
    return law


def checked_id(id: Any) -> int:
    """Id of a block."""
    if isinstance(id, bool) or not isinstance(id, int | np.integer) or not 0 <= id <= LARGEST_ID:
        raise ValueError(f"id is {id!r}; it must be a whole number from 0 to {LARGEST_ID}")
    return int(id)


def checked_world(world: Any, lanes: int) -> int:
    """Index of a world, below the number of lanes."""
    if isinstance(world, bool) or not isinstance(world, int | np.integer) or not 0 <= world < lanes:
        raise ValueError(f"world is {world!r}; it must be {f'0 to {lanes - 1}' if lanes > 1 else '0'}")
    return int(world)


def checked_room(room: Mapping[str, int] | None) -> dict[str, int]:
    """Numbers of blocks of each kind, and of terms, for which to make room."""
    wanted = _ROOM | dict(room or {})
    for name, n in wanted.items():
        if name not in _ROOM:
            raise ValueError(f"room for {name!r}{did_you_mean(name, (*KINDS, 'term'))}")
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n <= HARD_CAP:
            raise ValueError(f"room for {n!r} of {name}; it must be a whole number from 0 to {HARD_CAP}")
    return {name: int(n) for name, n in wanted.items()}


def check_range(row: Mapping[str, Any], dtype: Any) -> None:
    """Check that finite numbers are finite in the store's precision too."""
    largest = float(np.finfo(dtype).max)
    for name, value in row.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isfinite(x) and abs(x) > largest for x in numbers):
            raise ValueError(f"{name} is {value}; {np.dtype(dtype)} ends at {largest:g}")


def checked_friction(mu: float | Coefficients, sliding_now: bool) -> dict[str, float]:
    """Coefficients of a contact in the form of the store."""
    if not isinstance(mu, Coefficients):
        if not real("mu", mu) >= 0.0:
            raise ValueError(f"mu is {mu}; a coefficient of friction is 0 or more")
        mu = Coefficients(float(mu))
    slide = mu.static if mu.sliding is None else mu.sliding
    strike = slide if mu.impulsive is None else mu.impulsive
    bounds = {"bound": mu.static, "slide": slide, "strike": strike}
    return {name: min(value, NEVER_SLIPS) for name, value in bounds.items()} | {"slides": float(bool(sliding_now))}
