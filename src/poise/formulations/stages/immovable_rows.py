"""Detection of rows that nothing can move. They are removed from the problem.

A row's own inverse mass is a sum of squares, one of each degree of freedom; each is the square of a difference of
products that may cancel. If all of them cancel, as for an overlap along the axis of a hinge, rounding and the digits of
a file leave a meaningless remainder: an error divided by it is an unbounded displacement or force. The sum of the
products' magnitudes, without cancellation, is the scale below which the remainder counts as zero. It has the units of
the row and the masses of all that the row acts on.
"""

from __future__ import annotations

from poise.constraints.response.delassus_kernels import about_origin, link_of
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store
from poise.kernel.scalars import any_lane, fabs, maximum, select, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import norm
from poise.solve.pgs_kernels import CONE

LEAST, ULPS = 1e-6, 64.0
"""Share of a row's scale, as a speed, that counts as zero: by the digits of directions in files and from collision
detection; and as a multiple of rounding.
"""
SMALL = 1e-6
"""Own inverse mass, relative to the largest of a degree of freedom, up to which rows are checked."""


@formula
def least_share(like):
    """Threshold of the own inverse mass of an immovable row, relative to its scale."""
    return constant(max(LEAST, ULPS * 2.0 ** (1 - precision(like))) ** 2, like)


@kernel
def add_term(model, work, rows, term, turn, push, along):
    """Add the magnitudes of a further term of a row."""
    there = term >= 0
    body = select(there, gather_where(rows.term_body, term, there), term)
    dof = select(there, gather_where(rows.term_dof, term, there), term)
    f = about_origin(work, body, link_of(model, body), gather_where(rows.term_J, term, there))
    J = gather_where(rows.term_Jdof, term, there)
    return turn + norm(f.t), push + norm(f.f), along + select(dof >= 0, fabs(J), zero(J))


@kernel
def scale_of(model, data, k, lanes):
    """Own inverse mass of row k without cancellation, over the degrees of freedom that it acts on."""
    slot, nv = load(data.system.slot, k), load(data.system.n_dofs, 0)
    a, b, dof = load(data.rows.a, slot), load(data.rows.b, slot), load(data.rows.dof, slot)
    f = about_origin(data.work, a, link_of(model, a), load(data.rows.Ja, slot))
    g = about_origin(data.work, b, link_of(model, b), load(data.rows.Jb, slot))
    turn, push, along = norm(f.t) + norm(g.t), norm(f.f) + norm(g.f), fabs(load(data.rows.Jdof, slot))
    along = select(dof >= 0, along, zero(along))
    term = load(data.rows.term, slot)
    while any_lane(term >= 0):
        turn, push, along = add_term(model, data.work, data.rows, term, turn, push, along)
        term = select(term >= 0, gather_where(data.rows.term_next, term, term >= 0), term)
    first, across = k * nv, 1
    if data.system.n_lanes > lanes:  # lanes of rows, of one world
        first, across = (
            k // data.system.n_lanes * nv * data.system.n_lanes + k % data.system.n_lanes,
            data.system.n_lanes,
        )
    total = zero(turn)
    for e in range(nv):
        d = load(data.system.dof, e)
        axis = load(data.work.axis, d)
        part = along + norm(axis.w) * turn + norm(axis.v) * push
        on = load(data.scalar_view.y, first + e * across) != 0.0
        total = total + select(on, load(data.work.inverse, d) * part * part, zero(total))
    return total


@kernel
def is_immovable(model, data, k, small, lanes):
    """Worlds in which nothing moves row k."""
    own = load(data.problem.a, k * load(data.problem.stride, 0) + k)
    stuck = own != own
    if any_lane((own > 0.0) & (own <= small)):
        stuck = (own > 0.0) & (own <= small) & (own <= scale_of(model, data, k, lanes) * least_share(own))
    return stuck


@kernel
def blank_row(problem, k, mask):
    """Zero row k and its column in the matrix, in the worlds of a mask."""
    n = load(problem.stride, 0)
    for j in range(load(problem.n_rows, 0)):
        x, y = load(problem.a, k * n + j), load(problem.a, j * n + k)
        store(problem.a, k * n + j, select(mask, zero(x), x))
        store(problem.a, j * n + k, select(mask, zero(y), y))


@kernel
def blank_immovable(model, data, lanes):
    """Zero the rows that nothing can move; with a contact's normal go its tangents."""
    small = zero(load(data.problem.b, 0))
    for e in range(load(data.system.n_dofs, 0)):
        small = maximum(small, load(data.work.inverse, load(data.system.dof, e)))
    small = small * SMALL
    for k in range(load(data.problem.n_blocks, 0)):
        row, end = load(data.problem.block_start, k), load(data.problem.block_start, k + 1)
        first = is_immovable(model, data, row, small, lanes)
        if any_lane(first):
            blank_row(data.problem, row, first)
        for other in range(row + 1, end):
            stuck = is_immovable(model, data, other, small, lanes)
            if load(data.problem.block_kind, k) == CONE:
                stuck = stuck | (load(data.problem.a, row * load(data.problem.stride, 0) + row) == 0.0)
            if any_lane(stuck):
                blank_row(data.problem, other, stuck)
