"""Rows that nothing can move, and the part that they have in a problem: none.

A row's own inverse mass is a sum of squares, one of each degree of freedom; each is the root of a difference of
products that may cancel. Where all of them cancel, as for an overlap along the axis of a hinge, rounding and the
digits of a file leave a number that means nothing: an error over it is a displacement or a force without end. What the
products would add up to without signs is the scale by which the number counts as none. It has the units of the row and
the masses of all that the row is on.
"""

from __future__ import annotations

from poise.constraints.tree import about_origin, link_of
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store
from poise.kernel.scalars import any_lane, fabs, maximum, select, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import norm
from poise.solve.pgs_kernels import CONE

LEAST, ULPS = 1e-6, 64.0
"""Of a row's scale as a speed: what counts as none, by the digits that directions have in files and from collision; and
as many times the rounding of a number."""
SMALL = 1e-6
"""Own inverse mass, of the largest of a degree of freedom, up to which rows are looked at closely."""


@formula
def least_share(like):
    """Of its scale: own inverse mass of a row that nothing moves."""
    return constant(max(LEAST, ULPS * 2.0 ** (1 - precision(like))) ** 2, like)


@kernel
def add_term(m, w, r, term, turn, push, along):
    """With the sizes of a further term of a row."""
    there = term >= 0
    body = select(there, gather_where(r.term_body, term, there), term)
    dof = select(there, gather_where(r.term_dof, term, there), term)
    f = about_origin(w, body, link_of(m, body), gather_where(r.term_J, term, there))
    J = gather_where(r.term_Jdof, term, there)
    return turn + norm(f.t), push + norm(f.f), along + select(dof >= 0, fabs(J), zero(J))


@kernel
def scale_of(m, w, r, t, plain, k, lanes):
    """Own inverse mass of row k as it would be if no products cancelled, of the degrees of freedom that it is on."""
    slot, nv = load(t.slot, k), load(t.n_dofs, 0)
    a, b, dof = load(r.a, slot), load(r.b, slot), load(r.dof, slot)
    f = about_origin(w, a, link_of(m, a), load(r.Ja, slot))
    g = about_origin(w, b, link_of(m, b), load(r.Jb, slot))
    turn, push, along = norm(f.t) + norm(g.t), norm(f.f) + norm(g.f), fabs(load(r.Jdof, slot))
    along = select(dof >= 0, along, zero(along))
    term = load(r.term, slot)
    while any_lane(term >= 0):
        turn, push, along = add_term(m, w, r, term, turn, push, along)
        term = select(term >= 0, gather_where(r.term_next, term, term >= 0), term)
    first, across = k * nv, 1
    if t.n_lanes > lanes:  # lanes of rows, of one world
        first, across = k // t.n_lanes * nv * t.n_lanes + k % t.n_lanes, t.n_lanes
    total = zero(turn)
    for e in range(nv):
        d = load(t.dof, e)
        axis = load(w.axis, d)
        part = along + norm(axis.w) * turn + norm(axis.v) * push
        on = load(plain.y, first + e * across) != 0.0
        total = total + select(on, load(w.inverse, d) * part * part, zero(total))
    return total


@kernel
def is_immovable(m, w, r, t, plain, p, k, small, lanes):
    """Worlds in which nothing moves row k."""
    own = load(p.a, k * load(p.stride, 0) + k)
    stuck = own != own
    if any_lane((own > 0.0) & (own <= small)):
        stuck = (own > 0.0) & (own <= small) & (own <= scale_of(m, w, r, t, plain, k, lanes) * least_share(own))
    return stuck


@kernel
def blank_row(p, k, mask):
    """Take row k out of the matrix, in the worlds of a mask."""
    n = load(p.stride, 0)
    for j in range(load(p.n_rows, 0)):
        x, y = load(p.a, k * n + j), load(p.a, j * n + k)
        store(p.a, k * n + j, select(mask, zero(x), x))
        store(p.a, j * n + k, select(mask, zero(y), y))


@kernel
def blank_immovable(m, w, r, t, plain, p, lanes):
    """Take rows out of the matrix that nothing can move: with a contact's normal go its tangents."""
    small = zero(load(p.b, 0))
    for e in range(load(t.n_dofs, 0)):
        small = maximum(small, load(w.inverse, load(t.dof, e)))
    small = small * SMALL
    for k in range(load(p.n_blocks, 0)):
        row, end = load(p.block_start, k), load(p.block_start, k + 1)
        first = is_immovable(m, w, r, t, plain, p, row, small, lanes)
        if any_lane(first):
            blank_row(p, row, first)
        for other in range(row + 1, end):
            stuck = is_immovable(m, w, r, t, plain, p, other, small, lanes)
            if load(p.block_kind, k) == CONE:
                stuck = stuck | (load(p.a, row * load(p.stride, 0) + row) == 0.0)
            if any_lane(stuck):
                blank_row(p, other, stuck)
