"""Prebuilt rows: made once a step, in a store of their own. They are rows of motors, of loop joints, and of users.

They come first in the row list of a step, in their own order: block n of a kind is block n of that list.
"""

from __future__ import annotations

from poise.constraints.emit_rows import (
    N_KINDS,
    busiest,
    is_joint,
    open_block,
    put_bounds,
    put_friction,
    put_row,
    put_term,
    stride_of,
)
from poise.constraints.response.delassus_kernels import about_origin, link_of
from poise.constraints.row_store import LAW, SINGLE, VERTICES
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, scatter_where, store, store_where
from poise.kernel.scalars import any_lane, minimum, select, zero
from poise.kernel.spatial import motion_at, no_motion, pair
from poise.kernel.vec import cross, dot

USERS = 1 << 30
"""Offset of ids of user rows in the row list of a step, above those of joints, motors and loops."""


@kernel
def copy_row(e, r, at, slot, there):
    """A row with all its numbers and terms."""
    put_row(r, slot, there, load(e.a, at), load(e.b, at), load(e.Ja, at), load(e.Jb, at))
    scatter_where(r.dof, slot, load(e.dof, at), there)
    scatter_where(r.Jdof, slot, load(e.Jdof, at), there)
    scatter_where(r.phi, slot, load(e.phi, at), there)
    scatter_where(r.gamma, slot, load(e.gamma, at), there)
    scatter_where(r.target, slot, load(e.target, at), there)
    scatter_where(r.restitution, slot, load(e.restitution, at), there)
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
    """Copy all prebuilt rows, before any other row."""
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


# ---- curvature -------------------------------------------------------------------------------------------------------


@kernel
def coast(m, w, x, separate):
    """Spatial accelerations of all links, in `x.motion`, at constant velocities of coordinates; where bodies are
    `separate`, those by joint forces alone.
    """
    like = load(w.a, 0)
    for i in range(m.n_links):
        if separate != 0:  # computed only with loops, as no other row reads it
            store(x.motion, i, load(w.coast, i))
        else:
            motion = no_motion(like)
            if load(m.link_parent, i) >= 0:
                motion = load(x.motion, load(m.link_parent, i))
            store(x.motion, i, motion + load(w.bias, i))


@kernel
def coasting(w, x, body, link, f):
    """A covector f, about O, on the acceleration (ω̇, v̇) of the centre of mass of a body, from `coast`."""
    there = link >= 0
    velocity = gather_where(w.velocity, link, there)
    turning = cross(velocity.w, motion_at(velocity, gather_where(w.centre, body, there)))
    return select(there, pair(gather_where(x.motion, link, there), f) + dot(turning, f.f), zero(f.f.x))


@kernel
def bend_row(m, w, r, x, slot, there):
    """Complete γ of a row to J̇v along coordinates: the store has the part of the bodies' twists."""
    a, b = load(r.a, slot), load(r.b, slot)
    link_a, link_b = link_of(m, a), link_of(m, b)
    more = coasting(w, x, a, link_a, about_origin(w, a, link_a, load(r.Ja, slot)))
    more = more + coasting(w, x, b, link_b, about_origin(w, b, link_b, load(r.Jb, slot)))
    term = select(there, load(r.term, slot), zero(load(r.term, slot)) - 1)
    while any_lane(term >= 0):
        goes_on = term >= 0
        body = select(goes_on, gather_where(r.term_body, term, goes_on), term)
        link = link_of(m, body)
        more = more + coasting(w, x, body, link, about_origin(w, body, link, gather_where(r.term_J, term, goes_on)))
        term = select(goes_on, gather_where(r.term_next, term, goes_on), term)
    store_where(r.gamma, slot, load(r.gamma, slot) + more, there)


@kernel
def bend_guests(m, w, e, r, x, lanes, separate):
    """γ = J̇v of equality rows at velocity level, and zero of others.

    Their error at the end of a step is φ + h J v⁺ + h² γ/2: without the last term the next step would remove the
    velocity across the constraint at that time. `x` is used as scratch memory.
    """
    n = minimum(busiest(e, SINGLE, lanes), load(r.room, SINGLE))
    if n > 0:
        coast(m, w, x, separate)
    for kind in range(N_KINDS):
        stride = stride_of(kind)
        for k in range(minimum(busiest(e, kind, lanes), load(r.room, kind)) * stride):
            slot = load(r.first, kind) + k
            there, none = load(e.count, kind) * stride > k, zero(load(r.gamma, 0))
            holds = there & is_joint(r, slot)
            if kind == SINGLE and any_lane(holds):
                bend_row(m, w, r, x, slot, holds)
            store_where(r.gamma, slot, none, there & ~holds)
