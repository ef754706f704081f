"""The three rows of a contact on a tree at once: they act on the same two links, and propagate along the same paths.

The data of these paths is read once for all three. Each row has the same result as from `delassus_kernels` and
`row_velocity`.
"""

from __future__ import annotations

from poise.constraints.response.delassus_kernels import OWN, THROUGH, link_of, touch
from poise.constraints.row_store import BALL, CONTACT
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store
from poise.kernel.scalars import any_lane, select, spread, zero
from poise.kernel.spatial import Force, less, no_force, pair
from poise.kernel.vec import cross


@kernel
def is_contact(r, slot):
    """Whether a contact starts at a slot, and its rows have no coordinates and no further terms."""
    if slot < load(r.first, CONTACT) or slot >= load(r.first, BALL):
        return False
    other = acts_elsewhere(r, slot, slot) | acts_elsewhere(r, slot, slot + 1) | acts_elsewhere(r, slot, slot + 2)
    return not any_lane(other)


@kernel
def acts_elsewhere(r, slot, at):
    """Whether a row acts on anything but the two bodies of the row at `slot`."""
    moved = (load(r.a, at) != load(r.a, slot)) | (load(r.b, at) != load(r.b, slot))
    return moved | (load(r.dof, at) >= 0) | (load(r.term, at) >= 0)


@kernel
def see_contact(m, w, r, t, x, k, slot):
    """Evaluate rows k to k + 2, a contact: their Jacobians on links, J x, and Y."""
    none = zero(load(t.tau, 0))
    for n in range(3):
        store(t.speed, k + n, none)
    place_side(m, w, x, t, load(r.a, slot), r.Ja, slot, t.link_a, t.force_a, k)
    place_side(m, w, x, t, load(r.b, slot), r.Jb, slot, t.link_b, t.force_b, k)
    lean_three(m, w, t, k)


@kernel
def place_side(m, w, x, t, body, J, slot, links, forces, k):
    """One body of a contact: its link, the Jacobians of three rows on it, about O, and its share of J x. Mostly one of
    the two never moves.
    """
    link = link_of(m, body)
    there, none = link >= 0, no_force(load(t.tau, 0))
    for n in range(3):
        store(links, k + n, link)
    if any_lane(there):
        centre, motion = gather_where(w.centre, body, there), gather_where(x.motion, link, there)
        for n in range(3):
            f = load(J, slot + n)
            f = select(there, Force(f.t + cross(centre, f.f), f.f), none)
            store(forces, k + n, f)
            store(t.speed, k + n, load(t.speed, k + n) + pair(motion, f))
    else:
        for n in range(3):
            store(forces, k + n, none)


@kernel
def lean_three(m, w, t, k):
    """Y of three rows: see `delassus_kernels.lean`."""
    touch(t, load(t.link_a, k), OWN)
    touch(t, load(t.link_b, k), OWN)
    nv, count = load(t.n_dofs, 0), 0
    base = k * nv
    for n in range(load(t.n_links, 0)):
        i = load(t.link, n)
        if load(t.touched, i) == 0:
            first, none = base + load(t.link_first, i), zero(load(t.tau, 0))
            for d in range(load(m.link_dof_start, i + 1) - load(m.link_dof_start, i)):
                store(t.y, first + d, none)
                store(t.y, first + d + nv, none)
                store(t.y, first + d + 2 * nv, none)
        else:
            count = pass_three(m, w, t, k, i, base, count)
    for n in range(3):
        store(t.n_filled, k + n, count)
    store(t.together, k, 3)


@kernel
def pass_three(m, w, t, k, i, base, count):
    """Propagate the forces of three rows from link i to its parent, and write Y of its degrees of freedom: see
    `delassus_kernels.pass_on`.
    """
    none, nv, links = no_force(load(t.tau, 0)), load(t.n_dofs, 0), m.n_links
    x, y, z = load(t.p, i), load(t.p, links + i), load(t.p, 2 * links + i)
    if load(t.touched, i) == OWN:
        a, b = load(t.link_a, k), load(t.link_b, k)
        on_a, on_b = a == spread(i, a), b == spread(i, b)
        x = x - select(on_a, load(t.force_a, k), none) - select(on_b, load(t.force_b, k), none)
        y = y - select(on_a, load(t.force_a, k + 1), none) - select(on_b, load(t.force_b, k + 1), none)
        z = z - select(on_a, load(t.force_a, k + 2), none) - select(on_b, load(t.force_b, k + 2), none)
    store(t.p, i, none)
    store(t.p, links + i, none)
    store(t.p, 2 * links + i, none)
    store(t.touched, i, 0)
    first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
    here = load(t.link_first, i) - first
    for j in range(last - first):
        d = last - 1 - j
        axis, gain, root = load(w.axis, d), load(w.gain, d), load(t.root, d)
        one, two, three = less(none.t.x, axis, x), less(none.t.x, axis, y), less(none.t.x, axis, z)
        at = base + here + d
        store(t.y, at, one * root)
        store(t.y, at + nv, two * root)
        store(t.y, at + 2 * nv, three * root)
        store(t.filled, base + count + j, here + d)
        store(t.filled, base + nv + count + j, here + d)
        store(t.filled, base + 2 * nv + count + j, here + d)
        x, y, z = x + gain * one, y + gain * two, z + gain * three
    parent = load(m.link_parent, i)
    if parent >= 0:
        store(t.p, parent, load(t.p, parent) + x)
        store(t.p, links + parent, load(t.p, links + parent) + y)
        store(t.p, 2 * links + parent, load(t.p, 2 * links + parent) + z)
        store(t.touched, parent, max(load(t.touched, parent), THROUGH))
    return count + last - first
