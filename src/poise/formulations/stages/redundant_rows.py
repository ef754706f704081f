"""Redundant rows of joints in a step at velocity level: see `solve.rank`.

They take no part in the problem of a step: their multipliers stay as they are. Once the others are solved, all of them
share the load.
"""

from __future__ import annotations

from poise.constraints.emit_rows import is_joint
from poise.constraints.response.delassus_kernels import link_of
from poise.formulations.stages.singular_rows import hold_singular
from poise.kernel.buffers import GROUP
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store, store_where
from poise.kernel.scalars import any_lane, maximum, minimum, select, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import dot
from poise.solve.pgs_kernels import BOUNDED
from poise.solve.rank import STRONG, across_of, find_redundant, shorten

ULPS = 1024.0
"""Least tolerance, relative to the rounding of a number."""
OFF = 100.0
"""Rows count as dependent up to this multiple of the squared angle by which errors of joints displace bodies."""


@kernel
def one_body(model, body, J):
    """Inverse mass of a body along a row that pushes it, or inverse inertia about a row that rotates it, as if it were
    isolated and spherical; and the inverse of that inertia. 0 if it does not move, or has no mass.

    Arms do not count: all rows that hold a point have the same weight, so that loads are shared equally along any axes.
    """
    link = link_of(model, body)
    there, none = link >= 0, zero(J.f.x)
    mass = select(there, none + gather_where(model.link_mass, link, there), none)
    I = gather_where(model.link_inertia, link, there)
    mean = select(there, none + (I.xx + I.yy + I.zz) * (1.0 / 3.0), none)
    push, way = dot(J.f, J.f), select(mass > 0.0, 1.0 / select(mass > 0.0, mass, none + 1.0), none)
    turn = select(mean > 0.0, 1.0 / select(mean > 0.0, mean, none + 1.0), none)
    return select(push > 0.0, push * way, dot(J.t, J.t) * turn), turn


@kernel
def weigh_row(model, rows, slot, largest):
    """Inverse mass of a row as if its two bodies were free, and the square of the angle that corresponds to its error.

    A row on coordinates, or without inertia, has `largest`; no row has more.
    """
    one, turn = one_body(model, load(rows.a, slot), load(rows.Ja, slot))
    two, other = one_body(model, load(rows.b, slot), load(rows.Jb, slot))
    phi = load(rows.phi, slot)
    weight, turn, none = one + two, turn + other, zero(phi)
    plain = (weight > 0.0) & (load(rows.term, slot) < 0)
    off = select(plain, phi * phi * turn / select(plain, weight, none + 1.0), phi * phi)
    return select(plain, minimum(weight, largest), largest), off


@kernel
def list_joints(data):
    """List the rows of joints in any world; returns whether there are any."""
    count = 0
    for k in range(load(data.problem.n_blocks, 0)):
        if load(data.problem.block_kind, k) == BOUNDED:
            row = load(data.problem.block_start, k)
            if any_lane(is_joint(data.rows, load(data.system.slot, row))):
                store(data.newton.joint, count, row)
                count += 1
    store(data.newton.n_joint, 0, count)
    return count > 0


@kernel
def lay_joints(model, data):
    """Their part of A, weights, and the displacement of bodies by errors."""
    count, stride = load(data.newton.n_joint, 0), load(data.problem.stride, 0)
    across, largest = (count + GROUP) // GROUP * GROUP, zero(load(data.problem.b, 0))
    for k in range(load(data.problem.n_rows, 0)):
        largest = maximum(largest, load(data.problem.a, k * stride + k))
    blur = zero(largest)
    for k in range(count):
        row = load(data.newton.joint, k)
        slot = load(data.system.slot, row)
        part = is_joint(data.rows, slot)
        weight, off = weigh_row(model, data.rows, slot, largest)
        store(data.newton.part, k, select(part, zero(largest) + 1.0, zero(largest)))
        store(data.newton.weight, k, weight)
        blur = maximum(blur, select(part, off * OFF, zero(off)))
        for j in range(k + 1):
            other = (
                load(data.problem.a, row * stride + load(data.newton.joint, j))
                * load(data.newton.part, k)
                * load(data.newton.part, j)
            )
            store(data.newton.matrix, k * across + j, other)
    store(data.newton.blur, 0, blur)


@formula
def finest(tolerance):
    """Least factor of a tolerance that rounding allows."""
    return minimum(constant(ULPS * 2.0 ** (1 - precision(tolerance)), tolerance) / tolerance, zero(tolerance) + 1.0)


@kernel
def least_share(newton):
    """The least pivot of the independent rows, relative to their weight: an error of a row's velocity changes its
    multiplier by that error over the pivot.
    """
    least, across = zero(load(newton.blur, 0)) + 1.0, across_of(newton)
    for k in range(load(newton.n_joint, 0)):
        root, weight = load(newton.matrix, k * across + k), load(newton.weight, k)
        taken = (load(newton.turn, k) > 0.5) & (weight > 0.0)
        share = root * root / select(taken, weight, zero(weight) + 1.0)
        least = select(taken, minimum(least, share), least)
    return least


@kernel
def only_joints(rows, system, problem):
    """Worlds in which all rows that move anything hold joints."""
    alone, stride = load(problem.b, 0) == load(problem.b, 0), load(problem.stride, 0)
    for k in range(load(problem.n_blocks, 0)):
        row = load(problem.block_start, k)
        moves = load(problem.a, row * stride + row) > 0.0
        if load(problem.block_kind, k) == BOUNDED:
            alone = alone & (is_joint(rows, load(system.slot, row)) | ~moves)
        else:
            alone = alone & ~moves
    return alone


@kernel
def sharpen(data, options):
    """Tighten the tolerance of joints as far as their multipliers need it, if rows are nearly dependent. Newton's
    method solves joints alone to rounding; with contacts the tolerance stays.
    """
    tolerance = load(data.answer.tolerance, 0)
    share = maximum(least_share(data.newton), finest(load(options.tolerance, 0)))
    store(
        data.answer.tolerance,
        0,
        select(only_joints(data.rows, data.system, data.problem), tolerance * share, tolerance),
    )


@kernel
def hold_redundant(model, data, options, dt):
    """Fix the multipliers of redundant rows: at zero for rows that move nothing, else at their warm start. The same for
    rows of separate bodies that vanish within the step.
    """
    store(data.newton.depends, 0, 0)
    if not list_joints(data):
        return
    lay_joints(model, data)
    if any_lane(find_redundant(data.newton, STRONG if options.separate != 0 else 0.0)):
        store(data.newton.depends, 0, 1)
    none = zero(load(data.newton.blur, 0))
    for k in range(load(data.newton.n_joint, 0)):
        row = load(data.newton.joint, k)
        left = load(data.newton.redundant, k) > 0.5
        keeps = select(load(data.newton.open, k) > 0.5, load(data.answer.lam, row), none)
        store_where(data.problem.lo, row, keeps, left)
        store_where(data.problem.hi, row, keeps, left)
    sharpen(data, options)
    if options.separate != 0:
        hold_singular(model, data, dt, data.lanes)


@kernel
def share_load(model, data, options):
    """The multipliers of least norm with the same effect, if rows are dependent."""
    if load(data.newton.depends, 0) == 0:
        return
    list_joints(data)
    lay_joints(model, data)
    some = find_redundant(data.newton, STRONG if options.separate != 0 else 0.0)
    for k in range(load(data.newton.n_joint, 0)):
        store(data.newton.known, k, load(data.answer.lam, load(data.newton.joint, k)) * load(data.newton.part, k))
    shorten(data.newton)
    for k in range(load(data.newton.n_joint, 0)):
        store_where(
            data.answer.lam,
            load(data.newton.joint, k),
            load(data.newton.known, k),
            some & (load(data.newton.part, k) > 0.5),
        )
