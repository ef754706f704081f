"""Problems as arrays of the kernels of projected Gauss-Seidel, alone or in lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.kernel.memory import Block, Width
from poise.solve.block_kernels import UPRIGHT as NO_COMPLIANCE
from poise.solve.delassus_operator import Factors
from poise.solve.laws import UPRIGHT, Law
from poise.solve.matrix_free import BodyRows
from poise.solve.pgs_kernels import (
    ANSWER,
    BALL,
    BODIES,
    BOUNDED,
    CONE,
    DENSE,
    FACTORS,
    LAW,
    PYRAMID,
    ROWS,
    SPARSE,
    WIDE_BALL,
)
from poise.solve.problem import Options, Problem
from poise.solve.residuals import size_of

Floats = NDArray[np.float64]
SPARSE_BELOW = 0.2
"""Share of nonzero entries below which A is stored sparse; measured, as the share at which both take as long."""
NEARNESS = 512.0
"""Diagonal regularization of a block's own part of A, in roundings of its largest entry, so that a singular block can
be solved. λ times it is subtracted again: solutions stay the same (a proximal point step)."""


@dataclass(frozen=True)
class Layout:
    """Structure of a problem; problems in the same lanes share it."""

    kinds: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    vertices: tuple[int, ...]
    """Number of vertices of a block's law; 0 if it has none."""
    size: int
    coordinates: int
    """Length of v; −1 if A is a matrix."""
    part_start: tuple[int, ...] = ()
    """(m + 1) first part of each row, if rows act on bodies."""
    part_body: tuple[int, ...] = ()
    """Body of each part."""


def layout_of(problem: Problem) -> Layout:
    """Blocks of a problem, in the order of their first rows."""
    blocks: list[tuple[tuple[int, ...], int, int]] = []
    for friction in problem.frictions:
        blocks.append(((friction.normal, *friction.tangents), CONE if friction.cone else PYRAMID, 0))
    for ball in problem.balls:
        blocks.append((tuple(ball.rows), BALL if len(ball.rows) <= 3 else WIDE_BALL, 0))
    for row, law in problem.laws.items():
        blocks.append(((row,), LAW, len(law.vertices)))
    taken = problem.block_rows() | set(problem.laws)
    blocks += [((row,), BOUNDED, 0) for row in range(problem.size) if row not in taken]
    blocks.sort(key=lambda block: min(block[0]))
    rows, kinds, vertices = zip(*blocks, strict=True) if blocks else ((), (), ())
    return Layout(kinds, rows, vertices, problem.size, *_shape(problem))


def _shape(problem: Problem) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Length of v, first parts of rows, and bodies of parts."""
    if isinstance(problem.A, BodyRows):
        start, body, _, _ = problem.A.parts()
        return 6 * problem.A.n_bodies, tuple(start.tolist()), tuple(body.tolist())
    return problem.A.J.shape[1] if isinstance(problem.A, Factors) else -1, (), ()


def pack(problems: Sequence[Problem], width: Width, relaxation: float) -> tuple[Layout, Block]:
    """Problems of one layout, in lanes."""
    layout = layout_of(problems[0])
    for number, problem in enumerate(problems[1:]):
        if layout_of(problem) != layout:
            raise ValueError(
                f"problem {number + 1} has other blocks or rows than problem 0; in lanes they must be the same"
            )
    matrices = [None if layout.coordinates >= 0 else problem.matrix() for problem in problems]
    near = NEARNESS * float(np.finfo(width.dtype).eps)
    lanes = [
        {"omega": np.array([relaxation])} | _numbers(problem, layout, A, near)
        for problem, A in zip(problems, matrices, strict=True)
    ]
    fields = _topology(layout) | {"normal": len(layout.kinds)}
    if layout.coordinates >= 0:
        starts, bodies = (np.array(part, np.int32) for part in (layout.part_start, layout.part_body))
        fields |= {"storage": BODIES if len(starts) else FACTORS, "column_start": starts, "column_row": bodies}
        for lane, problem in zip(lanes, problems, strict=True):
            lane |= {"a": np.zeros(0)} | _factors(problem)
    else:
        storage, columns = _columns([A for A in matrices if A is not None])
        fields |= storage
        for lane, entries in zip(lanes, columns, strict=True):
            lane |= {"a": entries, "J": np.zeros(0), "response": np.zeros(0)}
    numbers = {name: _side_by_side([lane[name] for lane in lanes], width).astype(width.dtype) for name in lanes[0]}
    return layout, ROWS.block(width, n_relaxed=int(relaxation != 1.0), **fields, **numbers)


def start(
    problems: Sequence[Problem],
    layout: Layout,
    width: Width,
    options: Options,
    guesses: Sequence[ArrayLike] | NDArray[Any] | None = None,
) -> Block:
    """The start of the iteration: given multipliers, else zero, within bounds."""
    room = dict.fromkeys(("lam", "w", "goal", "best"), layout.size)
    told = dict.fromkeys(("best_residual", "residual", "merit", "tolerance", "sweeps", "most_sweeps"), 1)
    told |= dict.fromkeys(("work", "most_work", "newton_work", "status"), 1)
    room |= {"slip": len(layout.kinds)} | told
    block = ANSWER.block(width, v=max(layout.coordinates, 0), **room)
    first = [first_guess(p, None if guesses is None else guesses[k]) for k, p in enumerate(problems)]
    tolerances = [np.array([options.tolerance * size_of(problem)]) for problem in problems]
    block.lam[...] = _side_by_side(first, width)
    block.best[...] = block.lam
    block.best_residual[...] = block.most_sweeps[...] = block.most_work[...] = inf
    block.tolerance[...] = _side_by_side(tolerances, width)
    return block


def first_guess(problem: Problem, guess: ArrayLike | None) -> Floats:
    """(m,) multipliers to start from, rows outside blocks within their bounds."""
    lam = np.zeros(problem.size) if guess is None else np.array(guess, np.float64)
    return np.asarray(np.clip(lam, *_bounds(problem)))


def _factors(problem: Problem) -> dict[str, Floats]:
    """J and M⁻¹Jᵀ, row after row."""
    if isinstance(problem.A, BodyRows):
        _, _, J, response = problem.A.parts()
        return {"J": J.reshape(-1), "response": response.reshape(-1)}
    return {"J": problem.A.J.reshape(-1), "response": problem.A.response.T.reshape(-1)}


def _side_by_side(arrays: list[Floats], width: Width) -> Floats:
    """Arrays of problems in lanes; unused lanes repeat the last one."""
    whole = arrays + arrays[-1:] * (width.lanes - len(arrays))
    return whole[0] if width.lanes == 1 else np.stack(whole, axis=-1)


def _topology(layout: Layout) -> dict[str, Any]:
    return {
        "n_rows": np.array([layout.size]),
        "stride": np.array([layout.size]),
        "n_coordinates": layout.coordinates,
        "n_blocks": np.array([len(layout.kinds)]),
        "block_kind": np.array(layout.kinds, np.int32),
        "block_start": _starts([len(rows) for rows in layout.rows]),
        "block_row": np.array([row for rows in layout.rows for row in rows], np.int32),
        "law_start": _starts(layout.vertices),
    }


def _starts(counts: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    return np.concatenate(([0], np.cumsum(np.array(counts, np.int32)))).astype(np.int32)


def _bounds(problem: Problem) -> tuple[Floats, Floats]:
    """Bounds of rows; for laws their ends, for normals 0 and ∞, for other rows in blocks none."""
    lo, hi = np.array(problem.lo), np.array(problem.hi)
    blocks = list(problem.block_rows())
    lo[blocks], hi[blocks] = -inf, inf
    lo[[friction.normal for friction in problem.frictions]] = 0.0
    for row, law in problem.laws.items():
        lo[row], hi[row] = law.lo, law.hi
    return lo, hi


def _columns(matrices: list[Floats]) -> tuple[dict[str, Any], list[Floats]]:
    """Columns of A one after another: dense, or the entries that are nonzero in any lane."""
    present = np.any([A != 0.0 for A in matrices], axis=0).T
    if present.size == 0 or present.mean() >= SPARSE_BELOW:
        whole = {"storage": DENSE, "column_start": 0, "column_row": 0}
        return whole, [np.ascontiguousarray(A.T).reshape(-1) for A in matrices]
    columns, rows = np.nonzero(present)
    counts = np.bincount(columns, minlength=len(present))
    sparse = {"storage": SPARSE, "column_start": _starts(counts), "column_row": rows.astype(np.int32)}
    return sparse, [A[rows, columns] for A in matrices]


def _locals(problem: Problem, layout: Layout, A: Floats | None, near: float) -> Floats:
    """(n_blocks, 6) each block's own part of A, if the kernels read it: xx, yy, zz, xy, xz, yz."""
    out = np.zeros((len(layout.kinds), 6))
    small = [k for k, kind in enumerate(layout.kinds) if kind in (BALL, CONE)]
    if small:
        rows = np.array([(*layout.rows[k], *layout.rows[k][:1] * (3 - len(layout.rows[k]))) for k in small])
        lacking = np.array([len(layout.rows[k]) for k in small])[:, None] <= np.arange(3)
        own = _parts(problem, rows, A)
        own[lacking[:, :, None] | lacking[:, None, :]] = 0.0
        diagonal = own[:, [0, 1, 2], [0, 1, 2]]
        largest = diagonal.max(axis=1, keepdims=True)
        largest = np.where(largest > 0.0, largest, 1.0)
        own[:, [0, 1, 2], [0, 1, 2]] += np.where(diagonal > 0.0, near * largest, largest)
        out[small] = own[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    for k, kind in enumerate(layout.kinds):
        if kind == WIDE_BALL:  # Gershgorin's bound on its eigenvalues
            own = _parts(problem, np.array([layout.rows[k]]), A)[0]
            out[k, 0] = float(np.abs(own).sum(axis=1).max()) or 1.0
    return out


def _parts(problem: Problem, rows: NDArray[np.integer[Any]], A: Floats | None) -> Floats:
    """(n, k, k) symmetric parts of A, softness included, for rows (n, k)."""
    if A is None:
        own = problem.A.own(rows) + np.asarray(problem.cfm)[rows][:, :, None] * np.eye(rows.shape[1])
    else:
        own = A[rows[:, :, None], rows[:, None, :]]
    return np.asarray(0.5 * (own + np.swapaxes(own, 1, 2)))


def _numbers(problem: Problem, layout: Layout, A: Floats | None, near: float) -> dict[str, Floats]:
    """Numeric fields of a problem for the kernels, except A as a whole."""
    diagonal = problem.diagonal
    lo, hi = _bounds(problem)
    bounds = {f.normal: f.mu for f in problem.frictions} | {b.rows[0]: b.radius for b in problem.balls}
    laws = [problem.laws.get(rows[0]) for rows in layout.rows]
    vertices = [vertex for law in laws if law is not None for vertex in law.vertices]
    return {
        "b": np.asarray(problem.b, np.float64),
        "cfm": np.asarray(problem.cfm, np.float64),
        "lo": lo,
        "hi": hi,
        "scale": np.where(diagonal > 0.0, diagonal, 1.0),
        "bound": np.array([bounds.get(rows[0], 0.0) for rows in layout.rows], np.float64),
        "local": _locals(problem, layout, A, near),
        "law_lam": np.array([lam for lam, _ in vertices]),
        "law_w": np.array([w for _, w in vertices]),
        "law_left": np.array([_compliance(law, "left") for law in laws]),
        "law_right": np.array([_compliance(law, "right") for law in laws]),
    }


def _compliance(law: Law | None, side: str) -> float:
    slope = 0.0 if law is None else getattr(law, side)
    return NO_COMPLIANCE if slope == UPRIGHT else -slope
