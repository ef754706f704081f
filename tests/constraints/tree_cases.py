"""Random rows of every sort on random trees, with their Jacobians from the Jacobians of bodies: a second opinion that
never looks into the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st

from poise import dynamics
from poise.constraints.row_validation import Term
from poise.constraints.rows import Rows
from poise.kernel.memory import F64, Width
from poise.model.model import Model
from poise.model.scene import Scene
from poise.solve.laws import dead_zone
from strategies import random_q, random_v

EASY = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
SEEDS = st.integers(0, 2**32 - 1)
ROUNDING = 3e-14
"""What some hundred operations leave of the sizes that are summed up."""
WORST = 1e4
"""Condition of a mass matrix that is still of use."""
Piece = tuple[str, int, Any]
"""("body", index, six numbers) or ("dof", index, number)."""


@dataclass
class Tree:
    """A tree, a state, and random everything."""

    scene: Scene
    model: Model
    rng: np.random.Generator
    q: np.ndarray
    v: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Degrees of freedom that forces move."""
        return np.flatnonzero(self.model.dof_prescribed == 0)

    def vector(self) -> np.ndarray:
        return random_v(self.model, self.rng)

    def condition(self) -> float:
        """Of the free part of M, scaled to a unit diagonal; inf where it is singular."""
        M = dynamics.mass_matrix(self.model, self.q)[np.ix_(self.free, self.free)]
        size = np.sqrt(np.diagonal(M))
        if not np.all(size > 0):
            return np.inf
        return float(np.linalg.cond(M / np.outer(size, size))) if len(M) else 1.0


def make_tree(scene: Scene, seed: int) -> Tree:
    model, rng = scene.compile(), np.random.default_rng(seed)
    return Tree(scene, model, rng, random_q(model, rng), random_v(model, rng))


def usable(tree: Tree) -> float:
    """The condition of the mass matrix, if it is not too bad."""
    condition = tree.condition()
    if not condition < WORST:
        reject()
    return condition


@dataclass
class Wanted:
    """What was asked for, row by row in the order of the listing."""

    pieces: list[list[Piece]] = field(default_factory=list)
    gamma: list[float] = field(default_factory=list)


def random_body(m: Model, rng: np.random.Generator) -> int:
    """Any body, fixed and welded ones too, or the world."""
    return int(rng.integers(-1, m.n_bodies))


def some_body(m: Model, rng: np.random.Generator) -> int:
    return int(rng.integers(m.n_bodies))


def _two(m: Model, rng: np.random.Generator) -> list[Piece]:
    a, b = random_body(m, rng), some_body(m, rng)
    return [("body", a, rng.normal(size=6)), ("body", b, rng.normal(size=6))]


def _twice(m: Model, rng: np.random.Generator) -> list[Piece]:
    a = some_body(m, rng)
    return [("body", a, rng.normal(size=6)), ("body", a, rng.normal(size=6))]


def _dof(m: Model, rng: np.random.Generator) -> list[Piece]:
    return [("dof", int(rng.integers(m.nv)), float(rng.normal()))]


def _gear(m: Model, rng: np.random.Generator) -> list[Piece]:
    """Four bodies, of which some are likely to be the same one."""
    few = [some_body(m, rng) for _ in range(2)]
    return [("body", few[rng.integers(2)], rng.normal(size=6)) for _ in range(4)]


def _chain(m: Model, rng: np.random.Generator) -> list[Piece]:
    """A long chain of terms of both sorts."""
    makers = (lambda: ("body", random_body(m, rng), rng.normal(size=6)), lambda: _dof(m, rng)[0])
    return [*_two(m, rng), *_dof(m, rng), *(makers[rng.integers(2)]() for _ in range(rng.integers(3, 12)))]


SORTS = (_two, _twice, _dof, _gear, _chain)


def arguments(pieces: list[Piece]) -> dict[str, Any]:
    """The pieces of one row, as `Rows.add` takes them: a, b and a dof while there is room, the rest as terms."""
    given: dict[str, Any] = {"terms": []}
    for what, index, J in pieces:
        if what == "dof" and "dof" not in given:
            given |= {"dof": index, "coefficient": float(J)}
        elif what == "body" and "b" not in given:
            given |= {"b": index, "Jb": J}
        elif what == "body" and "a" not in given:
            given |= {"a": index, "Ja": J}
        else:
            given["terms"].append(Term(index, J) if what == "body" else Term(dof=index, coefficient=float(J)))
    return given


def acts(pieces: list[Piece]) -> bool:
    return any(index >= 0 for _, index, _ in pieces)


def fill(rows: Rows, tree: Tree, count: int, *, blocks: bool = True, world: int = 0) -> Wanted:
    """Add about `count` random rows of a world; with blocks, also a law, contacts and a ball."""
    m, rng = tree.model, tree.rng
    singles, laws, threes = Wanted(), Wanted(), Wanted()
    for k in range(count):
        pieces = SORTS[rng.integers(len(SORTS))](m, rng)
        if acts(pieces):
            as_law = blocks and k % 4 == 3
            gamma = float(rng.normal())
            extra = {"law": dead_zone(-0.1, 0.2)} if as_law else {}
            rows.add(id=k, gamma=gamma, world=world, **extra, **arguments(pieces))
            wanted = laws if as_law else singles
            wanted.pieces.append(pieces)
            wanted.gamma.append(gamma)
    if blocks:
        for k, add in enumerate((rows.add_contact, rows.add_contact, rows.add_ball)):
            a, b = random_body(m, rng), some_body(m, rng)
            Ja, Jb = rng.normal(size=(2, 3, 6))
            add(id=1000 + k, a=a, Ja=Ja, b=b, Jb=Jb, world=world, **({"mu": 0.5} if k < 2 else {"radius": 2.0}))
            threes.pieces += [[("body", a, Ja[j]), ("body", b, Jb[j])] for j in range(3)]
            threes.gamma += [0.0] * 3
    parts = (singles, laws, threes)
    return Wanted([p for w in parts for p in w.pieces], [x for w in parts for x in w.gamma])


def random_rows(tree: Tree, count: int, width: Width = F64, blocks: bool = True) -> tuple[Rows, Wanted]:
    rows = Rows(tree.model, width, room={"single": 1, "contact": 1, "term": 1})
    return rows, fill(rows, tree, count, blocks=blocks)


@dataclass(frozen=True)
class Expected:
    """What rows are, from the Jacobians of bodies."""

    J: np.ndarray
    """(m, nv)"""
    rate: np.ndarray
    """(m, nv) J̇"""
    gross: np.ndarray
    """(m, nv) the sizes of what J is summed up from: what rounding is a part of."""


def expected(tree: Tree, wanted: Wanted) -> Expected:
    m = tree.model
    J, rate, gross = np.zeros((3, len(wanted.pieces), m.nv))
    of = {b: dynamics.jacobian(m, tree.q, b, m.body_com[b], tree.v) for b in range(m.n_bodies)}
    for k, pieces in enumerate(wanted.pieces):
        for what, index, part in pieces:
            if index < 0:
                continue
            if what == "dof":
                J[k, index] += part
                gross[k, index] += abs(part)
            else:
                J[k] += part @ of[index].J
                rate[k] += part @ of[index].rate
                gross[k] += np.abs(part) @ np.abs(of[index].J)
    return Expected(J, rate, gross)


def inverse_mass(tree: Tree, dt: float = 0.0) -> np.ndarray:
    """(nv, nv) M⁻¹ on what forces move, 0 elsewhere; with a step, springs and dampers are met at its end."""
    m, free = tree.model, np.ix_(tree.free, tree.free)
    M = dynamics.mass_matrix(m, tree.q) + np.diag(dt * m.dof_damping + dt * dt * m.dof_stiffness)
    out = np.zeros((m.nv, m.nv))
    out[free] = np.linalg.inv(M[free])
    return out


def pushes(tree: Tree, wanted: Wanted, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(nv,) and (n_bodies, 6) forces of multipliers, as dynamics takes them: wrenches at the bodies' origins."""
    m = tree.model
    tau, forces = np.zeros(m.nv), np.zeros((m.n_bodies, 6))
    R = dynamics.bodies(m, tree.q).rotation
    for pieces, push in zip(wanted.pieces, lam, strict=True):
        for what, index, part in pieces:
            if index < 0:
                continue
            if what == "dof":
                tau[index] += push * part
            else:
                forces[index, :3] += push * (part[:3] + np.cross(R[index] @ m.body_com[index], part[3:]))
                forces[index, 3:] += push * part[3:]
    return tau, forces
