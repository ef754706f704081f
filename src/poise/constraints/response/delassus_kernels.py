"""Rows on a tree: the Delassus matrix A = J M⁻¹ Jᵀ, row velocities, and the response to multipliers.

`aba.factor` eliminates the degrees of freedom one by one from the leaves, so that M⁻¹ = L D L^T with its 1/d as D, and
L^T the propagation of a force to the root (KOK §4.3, the inbound loop). With Y = √D L^T J^T

    A = Y^T Y        M⁻¹ J^T λ = L √D Y λ

so the matrix needs the inbound half of the deltas alone, and is symmetric to the last bit.

The same source compiles to three variants, by the widths of its views (tree, store, system):

    one world, row by row             f64, f64, f64
    one world, lanes of rows          f64, f64, f64x8      eight test forces an instruction (KOK §4.2: "in parallel")
    lanes of worlds                   all lanes            row k of every world at once

Rows are addressed by `at`: a slot, or a slot for each lane.
"""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import (
    Block,
    Count,
    Index,
    Int,
    Real,
    View,
    Width,
    gather,
    gather_where,
    load,
    scatter_where,
    store,
)
from poise.kernel.scalars import any_lane, get_lane, minimum, select, spread, sqrt, zero
from poise.kernel.spatial import Force, Motion, less, no_force
from poise.kernel.vec import cross

SYSTEM = View(
    "System",
    n_rows=Index,  # (1)
    n_groups=Index,  # (1) of lanes of rows; as many as rows if lanes are not rows
    slot=Index,  # (n_rows)
    lane_slot=Int,  # (n_groups) the same, a lane a row
    root=Real,  # (nv) √D
    n_lanes=Count,
    n_links=Index,  # (1) links that rows may move
    n_dofs=Index,  # (1) degrees of freedom of these links
    link=Index,  # (n_links) the links, children before parents
    link_first=Index,  # (n_links of the model) place of the first degree of freedom of a link in `dof`
    dof=Index,  # (n_dofs) the degrees of freedom
    touched=Index,  # (n_links) THROUGH or OWN if some lane has a force on the link or its subtree; zero between rows
    n_filled=Index,  # (n_groups) degrees of freedom that rows of a group move
    filled=Index,  # (n_groups · n_dofs) which they are: y of the others is zero
    together=Index,  # (n_groups) 3 if the three rows from here on move the same ones
    p=Force,  # (3 n_links) force that is not yet balanced, of three rows at once; zero between rows
    tau=Real,  # (nv) on coordinates; zero between rows
    link_a=Int,  # (n_groups) links of a row's bodies, −1 if they do not move
    link_b=Int,
    force_a=Force,  # (n_groups) a row's Jacobian on them, about O
    force_b=Force,
    y=Real,  # (n_groups · n_dofs)
    A=Real,  # (n_rows · n_groups)
    speed=Real,  # (n_groups) J x
    pull=Real,  # (n_groups) J a + γ
    lam=Real,  # (n_groups)
)

THROUGH, OWN = 1, 2
"""Forces on a link: from its subtree alone, or from a row itself too."""

PLAIN = View("Plain", lane_slot=Int, y=Real, A=Real, speed=Real, lam=Real)
"""The memory of a system as plain rows: for one world in lanes of rows, number by number; else as it is."""

FLOW = View(
    "Flow",
    x=Real,  # (nv) velocities, or other motions along the degrees of freedom
    motion=Motion,  # (n_links) motions of the links for x, about O
    share=Real,  # (nv)
    a=Real,  # (nv) M⁻¹ Jᵀ λ
    acceleration=Motion,  # (n_links)
    ahead=Motion,  # (n_links) predicted motion of links at the end of a step
)
"""Motions of the tree, at its own width."""


def flow_block(nv: int, n_links: int, width: Width) -> Block:
    """Room for the motions of a tree."""
    return FLOW.block(width, x=nv, motion=n_links, share=nv, a=nv, acceleration=n_links, ahead=n_links)


@kernel
def take_links(m, t, i, start, end):
    """Restrict rows to the links of a list, children before parents."""
    dofs = 0
    for n in range(start, end):
        store(t.link, n - start, load(i.link, n))
        link = load(i.link, end - 1 - (n - start))
        store(t.link_first, link, dofs)
        for d in range(load(m.link_dof_start, link), load(m.link_dof_start, link + 1)):
            store(t.dof, dofs, d)
            dofs += 1
    store(t.n_links, 0, end - start)
    store(t.n_dofs, 0, dofs)


@kernel
def take_roots(m, w, t):
    """√D of every degree of freedom."""
    for d in range(m.nv):
        store(t.root, d, zero(load(t.root, d)) + sqrt(load(w.inverse, d)))


@kernel
def place_centres(m, w):
    """Centre of mass of every body from O."""
    for i in range(m.n_bodies):
        link = load(m.body_link, i)
        if link >= 0:
            store(w.centre, i, load(w.R, link) @ load(m.body_centre, i) + load(w.r, link))


# ---- the Jacobian on links -------------------------------------------------------------------------------------------


@kernel
def link_of(m, body):
    """Link of a body, −1 for the world and for bodies that never move."""
    there = body >= 0
    return select(there, spread(gather_where(m.body_link, body, there), body), body)


@kernel
def about_origin(w, body, link, J):
    """A covector at a body's centre of mass as one about O; zero if the body does not move."""
    there = link >= 0
    f = Force(J.t + cross(gather_where(w.centre, body, there), J.f), J.f)
    return select(there, f, no_force(J.t.x))


@kernel
def place_row(m, w, r, t, k, at):
    """Jacobian of a row on its links, about O."""
    a, b = gather(r.a, at), gather(r.b, at)
    link_a, link_b = link_of(m, a), link_of(m, b)
    store(t.link_a, k, link_a)
    store(t.link_b, k, link_b)
    store(t.force_a, k, about_origin(w, a, link_a, gather(r.Ja, at)))
    store(t.force_b, k, about_origin(w, b, link_b, gather(r.Jb, at)))


# ---- Y ---------------------------------------------------------------------------------------------------------------


@kernel
def touch(t, link, what):
    """Mark the links of all lanes as loaded."""
    for lane in range(t.n_lanes):
        i = get_lane(link, lane)
        if i >= 0:
            store(t.touched, i, max(load(t.touched, i), what))


@kernel
def lay(t, link, f):
    """Subtract a force from the forces that links have to balance."""
    there = link >= 0
    if any_lane(there):
        scatter_where(t.p, link, gather_where(t.p, link, there) - f, there)
        touch(t, link, THROUGH)


@kernel
def lay_on_dof(m, t, dof, J):
    """Add a force on a coordinate."""
    there = dof >= 0
    if any_lane(there):
        scatter_where(t.tau, dof, gather_where(t.tau, dof, there) + J, there)
        touch(t, select(there, spread(gather_where(m.dof_link, dof, there), dof), dof), THROUGH)


@kernel
def lay_terms(m, w, r, t, at):
    """Add the further terms of a row to links and coordinates."""
    term = gather(r.term, at)
    while any_lane(term >= 0):
        there = term >= 0
        body, dof = gather_where(r.term_body, term, there), gather_where(r.term_dof, term, there)
        body, dof = select(there, body, term), select(there, dof, term)
        link = link_of(m, body)
        lay(t, link, about_origin(w, body, link, gather_where(r.term_J, term, there)))
        lay_on_dof(m, t, dof, gather_where(r.term_Jdof, term, there))
        term = select(there, gather_where(r.term_next, term, there), term)


@kernel
def own_force(t, k, i, p):
    """The force that link i has to balance, less that of row k on it, by comparison in all lanes, without scatter."""
    on_a, on_b = load(t.link_a, k), load(t.link_b, k)
    none = no_force(p.t.x)
    p = p - select(on_a == spread(i, on_a), load(t.force_a, k), none)
    return p - select(on_b == spread(i, on_b), load(t.force_b, k), none)


@kernel
def pass_on(m, w, t, k, i, base, count):
    """Propagate the force of row k from link i to its parent, and write Y of its dofs; returns how many are filled."""
    none = no_force(load(t.tau, 0))
    p = load(t.p, i)
    if load(t.touched, i) == OWN:
        p = own_force(t, k, i, p)
    store(t.p, i, none)
    store(t.touched, i, 0)
    first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
    here = load(t.link_first, i) - first
    for j in range(last - first):
        d = last - 1 - j
        u = less(load(t.tau, d), load(w.axis, d), p)
        store(t.tau, d, none.t.x)
        store(t.y, base + here + d, u * load(t.root, d))
        store(t.filled, base + count + j, here + d)
        p = p + load(w.gain, d) * u
    parent = load(m.link_parent, i)
    if parent >= 0:
        store(t.p, parent, load(t.p, parent) + p)
        store(t.touched, parent, max(load(t.touched, parent), THROUGH))
    return count + last - first


@kernel
def lean(m, w, r, t, k, at):
    """Y of a row: its force propagated to the root, with the part that each degree of freedom takes of it."""
    touch(t, load(t.link_a, k), OWN)
    touch(t, load(t.link_b, k), OWN)
    lay_on_dof(m, t, gather(r.dof, at), gather(r.Jdof, at))
    lay_terms(m, w, r, t, at)
    base, count = k * load(t.n_dofs, 0), 0
    for n in range(load(t.n_links, 0)):
        i = load(t.link, n)
        if load(t.touched, i) == 0:
            first = base + load(t.link_first, i)
            for d in range(load(m.link_dof_start, i + 1) - load(m.link_dof_start, i)):
                store(t.y, first + d, zero(load(t.tau, 0)))
        else:
            count = pass_on(m, w, t, k, i, base, count)
    store(t.n_filled, k, count)
    store(t.together, k, 1)


# ---- A ---------------------------------------------------------------------------------------------------------------


@kernel
def gram(m, t):
    """A = YᵀY where lanes are not rows; degrees of freedom that a row does not move add nothing."""
    i = 0
    while i < load(t.n_rows, 0):
        if load(t.together, i) == 3:
            multiply_three(t, i)
            i += 3
        else:
            multiply_one(t, i)
            i += 1


@kernel
def multiply_one(t, i):
    """Row i of A up to its diagonal, four entries at a time, to hide the latency of each sum."""
    n, nv = load(t.n_rows, 0), load(t.n_dofs, 0)
    for j in range(0, i + 1, 4):
        one, two, three, four = zero(load(t.y, 0)), zero(load(t.y, 0)), zero(load(t.y, 0)), zero(load(t.y, 0))
        b, c, e = minimum(j + 1, i), minimum(j + 2, i), minimum(j + 3, i)
        for f in range(load(t.n_filled, i)):
            d = load(t.filled, i * nv + f)
            y = load(t.y, i * nv + d)
            one = one + y * load(t.y, j * nv + d)
            two = two + y * load(t.y, b * nv + d)
            three = three + y * load(t.y, c * nv + d)
            four = four + y * load(t.y, e * nv + d)
        mirror(t, n, i, j, one)
        mirror(t, n, i, b, two)
        mirror(t, n, i, c, three)
        mirror(t, n, i, e, four)


@kernel
def multiply_three(t, i):
    """Rows i to i + 2 of A, which move the same degrees of freedom, three entries of each at a time."""
    n, nv = load(t.n_rows, 0), load(t.n_dofs, 0)
    last = i + 2
    for j in range(0, i + 3, 3):
        k, l = minimum(j + 1, last), minimum(j + 2, last)
        none = zero(load(t.y, 0))
        a, b, c = none, none, none
        p, q, r = none, none, none
        x, y, z = none, none, none
        for f in range(load(t.n_filled, i)):
            d = load(t.filled, i * nv + f)
            one, two, three = load(t.y, j * nv + d), load(t.y, k * nv + d), load(t.y, l * nv + d)
            at = i * nv + d
            u, v, w = load(t.y, at), load(t.y, at + nv), load(t.y, at + 2 * nv)
            a, b, c = a + u * one, b + u * two, c + u * three
            p, q, r = p + v * one, q + v * two, r + v * three
            x, y, z = x + w * one, y + w * two, z + w * three
        mirror_three(t, n, i, j, k, l, a, b, c)
        mirror_three(t, n, i + 1, j, k, l, p, q, r)
        mirror_three(t, n, i + 2, j, k, l, x, y, z)


@kernel
def mirror_three(t, n, i, j, k, l, a, b, c):
    """Three entries of row i of A."""
    mirror(t, n, i, j, a)
    mirror(t, n, i, k, b)
    mirror(t, n, i, l, c)


@kernel
def mirror(t, n, i, j, x):
    """An entry of A, on both sides of the diagonal."""
    store(t.A, i * n + j, x)
    store(t.A, j * n + i, x)


@kernel
def gram_lanes(m, t, plain):
    """A = YᵀY where lanes are rows; `plain` is the same memory, number by number."""
    nv, lanes, n, groups = load(t.n_dofs, 0), t.n_lanes, load(t.n_rows, 0), load(t.n_groups, 0)
    for g in range(groups):
        i = g * lanes
        while i < n:
            # four rows at a time, to hide the latency of each sum
            other = i // lanes
            first = (other * nv) * lanes + i % lanes
            none = zero(load(t.y, 0))
            one, two, three, four = none, none, none, none
            fewer = g if load(t.n_filled, g) <= load(t.n_filled, other) else other
            for f in range(load(t.n_filled, fewer)):
                d = load(t.filled, fewer * nv + f)
                y, at = load(t.y, g * nv + d), first + d * lanes
                one = one + y * load(plain.y, at)
                two = two + y * load(plain.y, at + 1)
                three = three + y * load(plain.y, at + 2)
                four = four + y * load(plain.y, at + 3)
            store(t.A, i * groups + g, one)
            store(t.A, (i + 1) * groups + g, two)
            store(t.A, (i + 2) * groups + g, three)
            store(t.A, (i + 3) * groups + g, four)
            i += 4
    across = groups * lanes
    for i in range(n):
        for j in range((i // lanes + 1) * lanes, n):
            store(plain.A, i * across + j, load(plain.A, j * across + i))
