"""Rows that are made once a step, in a store of their own: of motors, of loops, and those that users add.

They come first in the list of a step, in their own order: block n of a kind is block n of the list's.
"""

from __future__ import annotations

from poise.constraints.row_kernels import (
    N_KINDS,
    busiest,
    open_block,
    put_bounds,
    put_friction,
    put_row,
    put_term,
    stride_of,
)
from poise.constraints.store import LAW, VERTICES
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, scatter_where, store_where
from poise.kernel.scalars import any_lane, minimum, select, zero

USERS = 1 << 30
"""Ids of rows that users add are so much more in the list of a step: those of joints, motors and loops are less."""


@kernel
def copy_row(e, r, at, slot, there):
    """A row with all its numbers and terms."""
    put_row(r, slot, there, load(e.a, at), load(e.b, at), load(e.Ja, at), load(e.Jb, at))
    scatter_where(r.dof, slot, load(e.dof, at), there)
    scatter_where(r.Jdof, slot, load(e.Jdof, at), there)
    scatter_where(r.phi, slot, load(e.phi, at), there)
    scatter_where(r.gamma, slot, load(e.gamma, at), there)
    scatter_where(r.target, slot, load(e.target, at), there)
    scatter_where(r.bounce, slot, load(e.bounce, at), there)
    scatter_where(r.a_ref, slot, load(e.a_ref, at), there)
    scatter_where(r.alpha, slot, load(e.alpha, at), there)
    scatter_where(r.beta, slot, load(e.beta, at), there)
    put_bounds(r, slot, there, load(e.lo, at), load(e.hi, at))
    scatter_where(r.erp, slot, load(e.erp, at), there)
    scatter_where(r.cfm, slot, load(e.cfm, at), there)
    term = select(there, load(e.term, at), zero(load(e.term, at)) - 1)
    while any_lane(term >= 0):
        more = there & (term >= 0)
        body, dof = gather_where(e.term_body, term, more), gather_where(e.term_dof, term, more)
        put_term(r, slot, more, body, gather_where(e.term_J, term, more), dof, gather_where(e.term_Jdof, term, more))
        term = select(more, gather_where(e.term_next, term, more), zero(term) - 1)


@kernel
def copy_law(e, r, n, there):
    """The law of block n."""
    for k in range(n * VERTICES, (n + 1) * VERTICES):
        store_where(r.law_lam, k, load(e.law_lam, k), there)
        store_where(r.law_w, k, load(e.law_w, k), there)
    store_where(r.law_left, n, load(e.law_left, n), there)
    store_where(r.law_right, n, load(e.law_right, n), there)


@kernel
def emit_guests(e, r, lanes):
    """All of them, before any other row."""
    for kind in range(N_KINDS):
        stride = stride_of(kind)
        for n in range(minimum(busiest(e, kind, lanes), load(e.room, kind))):
            at = load(e.first, kind) + n * stride
            id = load(e.id, at)
            slot, there = open_block(r, kind, load(e.count, kind) > n, select(id >= 0, id + USERS, id))
            for k in range(stride):
                copy_row(e, r, at + k, slot + k, there)
            put_friction(r, slot, there, load(e.bound, at), load(e.slide, at), load(e.strike, at), load(e.slides, at))
            if kind == LAW and n < load(r.room, LAW):
                copy_law(e, r, n, there)
