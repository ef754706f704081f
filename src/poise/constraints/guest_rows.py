"""Rows that are made once a step, in a store of their own: of motors, of loops, and those that users add.

They come first in the list of a step, in their own order: block n of a kind is block n of the list's.
"""

from __future__ import annotations

from poise.constraints.row_kernels import (
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
from poise.constraints.store import LAW, SINGLE, VERTICES
from poise.constraints.tree import FLOW, about_origin, link_of
from poise.dynamics.apart_forces import least_displacements
from poise.dynamics.kinematics import carry_on, set_out
from poise.dynamics.layout import MODEL, STATE, WORK
from poise.kernel.calls import call_entry
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import gather_where, load, scatter_where, store, store_where
from poise.kernel.scalars import any_lane, minimum, select, zero
from poise.kernel.spatial import Motion, motion_at, no_motion, pair
from poise.kernel.vec import cross, dot, zero3

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


# ---- curvature -------------------------------------------------------------------------------------------------------


@kernel
def coast(m, w, x):
    """Spatial accelerations of all links, in `x.motion`, while velocities of coordinates stay as they are."""
    for i in range(m.n_links):
        motion = no_motion(load(w.a, 0))
        if load(m.link_parent, i) >= 0:
            motion = load(x.motion, load(m.link_parent, i))
        store(x.motion, i, motion + load(w.bias, i))


@kernel
def coast_apart(m, s, w, x):
    """The same of separate bodies, which would move straight but for their joints: `dynamics.apart_forces.bend_ways`
    bends their ways in the same way, as least displacements along the joints. Accelerations are in `w.a` by now, and
    nothing else that `abm` leaves behind is read afterwards.
    """
    for i in range(m.n_links):
        velocity = load(w.velocity, i)
        centre = load(w.R, i) @ load(m.link_com, i) + load(w.r, i)
        store(x.motion, i, Motion(zero3(load(w.a, 0)), -cross(velocity.w, motion_at(velocity, centre))))
    for i in range(m.n_links):
        velocity, base = no_motion(load(w.a, 0)), no_motion(load(w.a, 0))
        if load(m.link_parent, i) >= 0:
            parent = load(m.link_parent, i)
            velocity, base = load(w.velocity, parent), load(x.motion, parent)
        origin, R, r = set_out(m, w, i, load(w.a, 0))
        _, _, _, _, bias, _ = carry_on(m, s, w, i, origin, R, r, velocity)
        store(w.bias, i, bias - (load(x.motion, i) - base))
    least_displacements(m, w)
    for i in range(m.n_links):
        store(x.motion, i, load(x.motion, i) + load(w.acceleration, i))


COAST_APART = entry(coast_apart, MODEL, STATE, WORK, FLOW)


@kernel
def coasting(w, x, body, link, f):
    """A covector f, about O, on the acceleration (ω̇, v̇) of the centre of mass of a body that coasts."""
    there = link >= 0
    velocity = gather_where(w.velocity, link, there)
    turning = cross(velocity.w, motion_at(velocity, gather_where(w.centre, body, there)))
    return select(there, pair(gather_where(x.motion, link, there), f) + dot(turning, f.f), zero(f.f.x))


@kernel
def bend_row(m, w, r, x, slot, there):
    """Let γ of a row be all of J̇v, along coordinates: the store has that of the bodies' twists."""
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
def bend_guests(m, s, w, e, r, x, lanes, coast_by):
    """γ = J̇v of rows that hold, at velocity level, and none of others.

    Their error at the end of a step is φ + h J v⁺ + h² γ/2: without the last term the next step would take away what
    the velocity has across the constraint by then. `x` is free to be written to. `coast_by` is the
    address of `COAST_APART` where bodies are separate, else 0.
    """
    n = minimum(busiest(e, SINGLE, lanes), load(r.room, SINGLE))
    if n > 0:
        if coast_by != 0:
            call_entry(coast_by, m, s, w, x)
        else:
            coast(m, w, x)
    for kind in range(N_KINDS):
        stride = stride_of(kind)
        for k in range(minimum(busiest(e, kind, lanes), load(r.room, kind)) * stride):
            slot = load(r.first, kind) + k
            there, none = load(e.count, kind) * stride > k, zero(load(r.gamma, 0))
            holds = there & is_joint(r, slot)
            if kind == SINGLE and any_lane(holds):
                bend_row(m, w, r, x, slot, holds)
            store_where(r.gamma, slot, none, there & ~holds)
