"""Memory that the kernels of a step work on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.response.delassus_kernels import SYSTEM
from poise.constraints.row_store import VERTICES
from poise.formulations.step_table import Stage
from poise.kernel.bound import Bound
from poise.kernel.buffers import GROUP
from poise.kernel.jit import Entry
from poise.kernel.memory import Block, Shared, Width, aligned
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.solve.batched_kernels import ALONE, SOLVE_LANES
from poise.solve.newton_kernels import SOLVE, newton_block
from poise.solve.pgs_kernels import ANSWER, DENSE, ROWS

Array = NDArray[Any]
FREE = [Primitive.SLIDE, Primitive.SLIDE, Primitive.SLIDE, Primitive.BALL]
"""Primitives of a free joint."""


def is_free(model: Model, link: int) -> bool:
    """Whether a free joint connects a link to the world."""
    first, end = model.link_primitive_start[link : link + 2].tolist()
    axes = model.primitive_axis[first : first + 3]
    free = model.primitive_kind[first:end].tolist() == FREE
    return free and int(model.link_parent[link]) < 0 and np.array_equal(axes, np.eye(3))


@dataclass(frozen=True)
class Entries:
    """Entries of a step, bound to their memory."""

    free_motion: Bound
    advance: dict[tuple[int, int], Stage]
    """By the stores (`id`) of the rows of the step, and of the step before."""


def bound(of: Entry, width: Width, *blocks: Block) -> Bound:
    """An entry, bound to its blocks."""
    return Bound(of, width, *(block.handle for block in blocks))


def system_block(width: Width, lanes: Width, rows: int, nv: int, links: int) -> Block:
    """Memory for the constraint system of so many rows; `lanes` is the width of rows."""
    in_lanes = lanes.lanes > width.lanes
    groups = -(-rows // lanes.lanes) if in_lanes else rows
    sizes = dict.fromkeys(SYSTEM.fields, groups) | {"root": nv, "tau": nv, "p": 3 * links, "touched": links}
    sizes |= {"y": groups * nv, "filled": groups * nv, "A": groups * groups * lanes.lanes if in_lanes else rows * rows}
    sizes |= {"slot": rows, "n_rows": 1, "n_groups": 1, "n_lanes": lanes.lanes}
    sizes |= {"n_links": 1, "n_dofs": 1, "link": links, "link_first": links, "dof": nv}
    return SYSTEM.block(lanes, **sizes)


def problem_block(width: Width, rows: int, laws: int, A: Array) -> Block:
    """Memory for a problem of so many rows, whose matrix is stored elsewhere."""
    sizes: dict[str, Any] = dict.fromkeys(ROWS.fields, rows + 1)
    sizes |= {
        "n_rows": 1,
        "stride": 1,
        "n_blocks": 1,
        "n_coordinates": -1,
        "storage": DENSE,
        "n_relaxed": 0,
        "omega": 1,
    }
    sizes |= dict.fromkeys(("column_start", "column_row", "J", "response"), 0)
    sizes |= {"law_lam": laws * VERTICES, "law_w": laws * VERTICES, "a": Shared(A)}
    block = ROWS.block(width, **sizes)
    block.omega[...] = 1.0
    return block


def answer_block(width: Width, rows: int) -> Block:
    """Memory for multipliers."""
    sizes = dict.fromkeys(ANSWER.fields, 1) | dict.fromkeys(("lam", "w", "goal", "slip", "best"), rows)
    block = ANSWER.block(width, **(sizes | {"v": 0}))
    block.most_sweeps[...] = block.most_work[...] = inf
    return block


def bound_solver(p: Block, a: Block, newton: Block, rows: int, laws: int) -> Bound:
    """The solver, bound to its memory: for one problem, or for lanes of problems, with memory to solve one of them
    alone.
    """
    if p.width.lanes == 1:
        return bound(SOLVE, p.width, p, a, newton)
    plain = Width(p.width.elem)
    across = -(-rows // GROUP) * GROUP
    alone = problem_block(plain, rows, laws, aligned((rows * across,), plain.dtype))
    room = (alone, answer_block(plain, rows), newton_block(plain, rows), ALONE.block(plain, row=rows, place=rows))
    return bound(SOLVE_LANES, p.width, p, a, newton, *room)
