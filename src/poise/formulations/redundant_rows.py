"""Rows of joints that others make redundant, in a step at velocity level: see `solve.rank`.

They have no say in the problem of a step: their multipliers stay as they are, and the problem is that of the others.
Once it is solved, all of them share the load.
"""

from __future__ import annotations

from poise.constraints.row_kernels import is_joint
from poise.constraints.tree import link_of
from poise.formulations.singular_rows import hold_singular
from poise.kernel.buffers import GROUP
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store, store_where
from poise.kernel.scalars import any_lane, maximum, minimum, select, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import dot
from poise.solve.pgs_kernels import BOUNDED
from poise.solve.rank import STRONG, across_of, find_redundant, shorten

ULPS = 1024.0
"""Least tolerance that is asked for, over the rounding of a number."""
OFF = 100.0
"""Square of the angle, over that by which errors of joints put bodies off, up to which rows are taken for dependent."""


@kernel
def one_body(m, body, J):
    """Inverse mass of a body along a row that pushes it, or inverse inertia about one that turns it, if it were alone
    and round; and that inertia's inverse. 0 where it does not move, or has no mass.

    Arms do not count: all rows that hold a point weigh the same, so that loads are shared alike along any axes.
    """
    link = link_of(m, body)
    there, none = link >= 0, zero(J.f.x)
    mass = select(there, none + gather_where(m.link_mass, link, there), none)
    I = gather_where(m.link_inertia, link, there)
    mean = select(there, none + (I.xx + I.yy + I.zz) * (1.0 / 3.0), none)
    push, way = dot(J.f, J.f), select(mass > 0.0, 1.0 / select(mass > 0.0, mass, none + 1.0), none)
    turn = select(mean > 0.0, 1.0 / select(mean > 0.0, mean, none + 1.0), none)
    return select(push > 0.0, push * way, dot(J.t, J.t) * turn), turn


@kernel
def weigh_row(m, r, slot, largest):
    """Inverse mass that a row would have if its two bodies were free, and the square of the angle that its error is.

    A row on coordinates has the largest there is; what has no inertia has no more than that.
    """
    one, turn = one_body(m, load(r.a, slot), load(r.Ja, slot))
    two, other = one_body(m, load(r.b, slot), load(r.Jb, slot))
    phi = load(r.phi, slot)
    weight, turn, none = one + two, turn + other, zero(phi)
    plain = (weight > 0.0) & (load(r.term, slot) < 0)
    off = select(plain, phi * phi * turn / select(plain, weight, none + 1.0), phi * phi)
    return select(plain, minimum(weight, largest), largest), off


@kernel
def list_joints(r, t, p, n):
    """Rows that hold joints, in any world; whether there are any."""
    count = 0
    for k in range(load(p.n_blocks, 0)):
        if load(p.block_kind, k) == BOUNDED:
            row = load(p.block_start, k)
            if any_lane(is_joint(r, load(t.slot, row))):
                store(n.joint, count, row)
                count += 1
    store(n.n_joint, 0, count)
    return count > 0


@kernel
def lay_joints(m, r, t, p, n):
    """Their part of A, weights, and how far bodies are off."""
    count, stride = load(n.n_joint, 0), load(p.stride, 0)
    across, largest = (count + GROUP) // GROUP * GROUP, zero(load(p.b, 0))
    for k in range(load(p.n_rows, 0)):
        largest = maximum(largest, load(p.a, k * stride + k))
    blur = zero(largest)
    for k in range(count):
        row = load(n.joint, k)
        slot = load(t.slot, row)
        part = is_joint(r, slot)
        weight, off = weigh_row(m, r, slot, largest)
        store(n.part, k, select(part, zero(largest) + 1.0, zero(largest)))
        store(n.weight, k, weight)
        blur = maximum(blur, select(part, off * OFF, zero(off)))
        for j in range(k + 1):
            other = load(p.a, row * stride + load(n.joint, j)) * load(n.part, k) * load(n.part, j)
            store(n.matrix, k * across + j, other)
    store(n.blur, 0, blur)


@formula
def finest(tolerance):
    """Least share of a tolerance that rounding allows."""
    return minimum(constant(ULPS * 2.0 ** (1 - precision(tolerance)), tolerance) / tolerance, zero(tolerance) + 1.0)


@kernel
def least_share(n):
    """The least pivot of rows that were taken, of their weight: an error of a row's velocity is a multiplier of that
    error over the pivot.
    """
    least, across = zero(load(n.blur, 0)) + 1.0, across_of(n)
    for k in range(load(n.n_joint, 0)):
        root, weight = load(n.matrix, k * across + k), load(n.weight, k)
        taken = (load(n.turn, k) > 0.5) & (weight > 0.0)
        share = root * root / select(taken, weight, zero(weight) + 1.0)
        least = select(taken, minimum(least, share), least)
    return least


@kernel
def only_joints(r, t, p):
    """Worlds in which all rows that move anything hold joints."""
    alone, stride = load(p.b, 0) == load(p.b, 0), load(p.stride, 0)
    for k in range(load(p.n_blocks, 0)):
        row = load(p.block_start, k)
        moves = load(p.a, row * stride + row) > 0.0
        if load(p.block_kind, k) == BOUNDED:
            alone = alone & (is_joint(r, load(t.slot, row)) | ~moves)
        else:
            alone = alone & ~moves
    return alone


@kernel
def sharpen(r, t, p, a, n, o):
    """Ask for joints as closely as multipliers need it, where rows nearly depend on each other. Newton's method finds
    those of joints alone to rounding; with contacts among them the tolerance stays.
    """
    tolerance = load(a.tolerance, 0)
    share = maximum(least_share(n), finest(load(o.tolerance, 0)))
    store(a.tolerance, 0, select(only_joints(r, t, p), tolerance * share, tolerance))


@kernel
def hold_redundant(m, w, r, t, plain, p, a, n, o, dt):
    """Let redundant rows of joints stay as they are: what moves nothing has no multiplier, what others can do has the
    one that it starts from. So do rows of separate bodies that vanish within the step.
    """
    store(n.depends, 0, 0)
    if not list_joints(r, t, p, n):
        return
    lay_joints(m, r, t, p, n)
    if any_lane(find_redundant(n, STRONG if o.separate != 0 else 0.0)):
        store(n.depends, 0, 1)
    none = zero(load(n.blur, 0))
    for k in range(load(n.n_joint, 0)):
        row = load(n.joint, k)
        left = load(n.redundant, k) > 0.5
        keeps = select(load(n.open, k) > 0.5, load(a.lam, row), none)
        store_where(p.lo, row, keeps, left)
        store_where(p.hi, row, keeps, left)
    sharpen(r, t, p, a, n, o)
    if o.separate != 0:
        hold_singular(m, w, r, t, plain, p, a, n, dt, o.lanes)


@kernel
def share_load(m, r, t, p, a, n, o):
    """The shortest multipliers with the same effect, where rows depend on others."""
    if load(n.depends, 0) == 0:
        return
    list_joints(r, t, p, n)
    lay_joints(m, r, t, p, n)
    some = find_redundant(n, STRONG if o.separate != 0 else 0.0)
    for k in range(load(n.n_joint, 0)):
        store(n.known, k, load(a.lam, load(n.joint, k)) * load(n.part, k))
    shorten(n)
    for k in range(load(n.n_joint, 0)):
        store_where(a.lam, load(n.joint, k), load(n.known, k), some & (load(n.part, k) > 0.5))
