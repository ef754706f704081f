"""Smooth motion within a step: velocity Verlet in place of semi-implicit Euler.

Semi-implicit Euler, v⁺ = v + h a(q, v), takes Coriolis, centrifugal and gyroscopic terms from the beginning of the
step: bodies that rotate fast gain energy, and the angular momentum of floating trees drifts. With c(q, v) for the
acceleration of these velocity products alone, and a(q, v) for that of all smooth forces, trees are integrated in one of
four ways:

    smooth     v' = v + h/2 a(q, v),                     q⁺ = q ⊕ h v',   v⁺ = v' + h/2 a(q⁺, v⁺)
    split      v' = v + h a(q, v) − h c + h/2 c' + Δ,    q⁺ = q ⊕ h v',   v⁺ = v' + h/2 c(q⁺, v⁺),   c' = c(q, v + Δ)
    centred    v' = v + h a(q, v) − h c + h c' + Δ,      q⁺ = q ⊕ h v',   v⁺ = v',    c' = c(q, (v + v')/2)
    plain      v' = v + h a(q, v) + Δ,                   q⁺ = q ⊕ h v',   v⁺ = v'

Δ is the effect of impulses; in c(q, v + Δ) it includes all forces but c. Impulses act on v', the velocity that moves
coordinates.

- A tree is smooth if it has no rows that act in the step (contacts, limits, motors, loop joints); no springs, dampers
  and drives, which are implicit over the whole step; no applied forces, which are those of its beginning; and no
  prescribed path.
- A moving tree that is not smooth is split if no rows act, if the rows are between links of a floating tree, or if the
  rows only push: a character in the air keeps its momentum. Rows are first solved with c' = c(q, v). If impulses change
  it by much, rows are solved again with c(q, v + Δ); a smaller change is added at the end of the step,
  h/2 (c(q, v + Δ) − c(q, v)).
- A tree with loop joints, or with motors to the world, is centred: its rows are solved again. With impulses along
  Jᵀ(q) that close loops at q⁺, that is SHAKE. Velocities are those of the middle of steps, and satisfy all rows. A half
  step c(q⁺, v⁺) without the forces of rows would violate the loop joints, and the target velocities of motors.
- Plain trees are those that hardly move; trees with contacts that rotate slowly or are single bodies; and trees that
  follow a path or sleep.

Verlet and splitting are symmetric in time, except for the error of the implicit half step. It is in `verlet_step`, with
the Runge-Kutta stages of fast smooth trees.
"""

from __future__ import annotations

from math import inf

from poise.constraints.emit_rows import N_KINDS, busiest, is_joint, stride_of
from poise.constraints.response.row_velocity import stored_row_velocity
from poise.constraints.row_store import CONTACT
from poise.dynamics.products import products_now, products_of
from poise.formulations.sleep.sleep_kernels import is_asleep
from poise.formulations.stages.tree_flags import flag_of, is_in, root_of_body, root_of_dof, set_flag
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, sqrt, zero
from poise.kernel.vec import dot

TREE_FLAGS = (
    "smooth",
    "split",
    "centre",
    "resolved",
    "rows",
    "looped",
    "pulled",
    "tied",
    "led",
    "added",
    "floats",
    "chained",
)
"""Flags of a tree, at its first link: see `data.SCRATCH`."""
STILL, SLOW = 0.05, 5.0
"""Greatest angular velocity of a link above which velocity products are split: of trees without contacts, and of trees
with contacts; rad/s. In a second the semi-implicit step gains or loses the share h ω² of kinetic energy.
"""
SLIGHT, SMALL, LARGE = 1e-5, 1e-4, 10.0
"""Δ times the greatest angular velocity, in rad/s², above which velocity products include the effect of impulses:
SLIGHT to solve loop joints again with them; SMALL to add them at the end of the step, and to solve rows of trees that
are fixed to the world again; LARGE to solve the rows of other trees again.
"""


@kernel
def fastest_turn(model, work):
    """Square of the greatest angular velocity of a link; rad²/s²."""
    most = zero(load(work.inverse, 0))
    for i in range(model.n_links):
        spin = load(work.velocity, i).w
        most = maximum(most, dot(spin, spin))
    return most


# ---- integration of each tree ----------------------------------------------------------------------------------------


@kernel
def sort_trees(model, data, options, dt):
    """Choose the integration of all trees, once the rows of the step are known, with flags at their first links. For
    split trees, set `data.work.a` to a − c/2 and `data.scratch.products` to c. Returns the worlds with split or centred
    trees.
    """
    none = zero(load(data.work.a, 0))
    store(data.scratch.any_split, 0, 0)
    if options.centred == 0:
        return none != none
    for i in range(model.n_links):
        if load(model.link_parent, i) < 0:
            store(data.scratch.smooth, i, none + 1.0)
            store(data.scratch.rows, i, none)
            store(data.scratch.looped, i, none)
            store(data.scratch.pulled, i, none)
            store(data.scratch.tied, i, none)
            store(data.scratch.led, i, none)
    mark_laws(model, data)
    mark_rows(model, data, dt)
    turn = sqrt(fastest_turn(model, data.work))
    store(data.scratch.spin, 0, turn)
    wanted = none != none
    for i in range(model.n_links):
        if load(model.link_parent, i) < 0:
            rough = (load(data.scratch.smooth, i) < 0.5) & (load(data.scratch.led, i) < 0.5)
            rough = rough & (turn > STILL)
            looped, tied = load(data.scratch.looped, i) > 0.5, load(data.scratch.tied, i) > 0.5
            fast = ~tied | ((turn > SLOW) & (load(data.scratch.chained, i) > 0.5))
            inner, pushed = (load(data.scratch.floats, i) > 0.5) & ~tied, (load(data.scratch.pulled, i) < 0.5) & fast
            splits = rough & ((load(data.scratch.rows, i) < 0.5) | (~looped & (inner | pushed)))
            centres = rough & ~splits & (looped | fast)
            store(data.scratch.split, i, select(splits, none + 1.0, none))
            store(data.scratch.centre, i, select(centres, none + 1.0, none))
            wanted = wanted | splits | centres
    if any_lane(wanted):
        store(data.scratch.any_split, 0, 1)
        if load(data.scratch.has_products, 0) == 0:  # they do not depend on rows
            products_now(model, data.work, data.end_work)
            store(data.scratch.has_products, 0, 1)
            for d in range(model.nv):
                store(data.scratch.all_products, d, load(data.end_work.a, d))
        for d in range(model.nv):
            split, centred, products = (
                is_in(model, data.scratch.split, d),
                is_in(model, data.scratch.centre, d),
                load(data.scratch.all_products, d),
            )
            store(data.scratch.products, d, select(split | centred, products, none))
            store(data.work.a, d, load(data.work.a, d) - select(split, products * 0.5, none))
    return wanted


@kernel
def mark_laws(model, data):
    """Trees with springs, dampers, drives or applied forces are not smooth, and tied if their free joint has springs;
    trees that follow a path or sleep are kinematic (`led`).
    """
    none = zero(load(data.work.a, 0))
    if data.inputs.n_forces != 0:
        for b in range(model.n_bodies):
            link = load(model.body_link, b)
            if link >= 0:
                f = load(data.inputs.force, b)
                size = fabs(f.t.x) + fabs(f.t.y) + fabs(f.t.z) + fabs(f.f.x) + fabs(f.f.y) + fabs(f.f.z)
                root = load(model.link_root, link)
                store(data.scratch.smooth, root, select(size > 0.0, none, load(data.scratch.smooth, root)))
    for d in range(model.nv):
        link, root = load(model.dof_link, d), load(model.dof_root, d)
        lawful = load(data.work.diagonal, d) != 0.0
        if load(model.dof_prescribed, d) != 0 or (data.sleep.sleeps != 0 and is_asleep(model, data.sleep, link)):
            store(data.scratch.smooth, root, none)
            store(data.scratch.led, root, none + 1.0)
        store(
            data.scratch.smooth,
            root,
            select(lawful | (load(data.work.total, d) != 0.0), none, load(data.scratch.smooth, root)),
        )
        if link == root:
            store(
                data.scratch.tied,
                root,
                select(lawful & (load(data.scratch.floats, root) > 0.5), none + 1.0, load(data.scratch.tied, root)),
            )


@kernel
def acts(model, data, first, slot, dt):
    """Worlds in which a row acts: rows that can pull, or have an upper bound; rows that only push, if semi-implicit
    Euler or Verlet would violate them in the step. Rows without strength do not act, nor does rolling friction, which
    acts with its contact.
    """
    now = stored_row_velocity(model, data.work, data.rows, slot, data.state.v, data.work.velocity)
    end = stored_row_velocity(model, data.work, data.rows, slot, data.flow.x, data.flow.motion)
    closes = load(data.rows.phi, slot) + minimum(end, (now + end) * 0.5) * dt < 0.0
    lo, hi = load(data.rows.lo, slot), load(data.rows.hi, slot)
    return (closes | (lo < 0.0) | (hi < inf)) & ((lo != 0.0) | (hi != 0.0)) & (load(data.rows.scaler, first) == 0)


@kernel
def mark_rows(model, data, dt):
    """Trees with rows that act are not smooth. They are tied if a row that is not of a loop joint connects them to
    another tree or to the world.
    """
    for kind in range(N_KINDS):
        for n in range(busiest(data.rows, kind, data.lanes)):
            there, first = load(data.rows.count, kind) > n, load(data.rows.first, kind) + n * stride_of(kind)
            for slot in range(first, first + (1 if kind == CONTACT else stride_of(kind))):
                open = there & is_open(model, data.rows, data.scratch, slot)
                if any_lane(open):
                    acting = open & acts(model, data, first, slot, dt)
                    if any_lane(acting):
                        mark_row(model, data.rows, data.scratch, slot, acting)


@kernel
def is_open(model, rows, scratch, slot):
    """Worlds in which a row can still change the integration of its trees."""
    a, b, dof = root_of_body(model, load(rows.a, slot)), root_of_body(model, load(rows.b, slot)), load(rows.dof, slot)
    own, pulls = root_of_dof(model, dof), load(rows.lo, slot) < 0.0
    ties = (a != b) | pushes_root(model, scratch, dof, own)
    undecided = (
        is_undecided(scratch, a, pulls, ties)
        | is_undecided(scratch, b, pulls, ties)
        | is_undecided(scratch, own, pulls, ties)
    )
    return undecided | (load(rows.term, slot) >= 0) | is_joint(rows, slot)


@kernel
def is_undecided(scratch, root, pulls, ties):
    """Worlds in which a row may still tie a tree, or be the first one that acts on it or that pulls."""
    tied, pulled = flag_of(scratch.tied, root) > 0.5, flag_of(scratch.pulled, root) > 0.5
    return (root >= 0) & ((flag_of(scratch.rows, root) < 0.5) | (ties & ~tied) | (pulls & ~pulled))


@kernel
def mark_row(model, rows, scratch, slot, there):
    """See `mark_rows`."""
    a, b, dof = root_of_body(model, load(rows.a, slot)), root_of_body(model, load(rows.b, slot)), load(rows.dof, slot)
    own, joint = root_of_dof(model, dof), is_joint(rows, slot)
    leads_out = there & ~joint & (a != b)
    pulls = ~joint & (load(rows.lo, slot) < 0.0)
    mark_acting(scratch, a, there, joint, pulls)
    mark_acting(scratch, b, there, joint, pulls)
    mark_acting(scratch, own, there, joint & (a != a), pulls)
    set_flag(scratch.tied, a, 1.0, leads_out)
    set_flag(scratch.tied, b, 1.0, leads_out)
    set_flag(scratch.tied, own, 1.0, there & ~joint & pushes_root(model, scratch, dof, own))
    tree, term = maximum(maximum(a, b), own), load(rows.term, slot)
    more = there & (term >= 0)
    while any_lane(more):
        minus = zero(term) - 1
        body = select(more, gather_where(rows.term_body, term, more), minus)
        dof = select(more, gather_where(rows.term_dof, term, more), minus)
        of_body, of_dof = root_of_body(model, body), root_of_dof(model, dof)
        mark_acting(scratch, of_body, more, joint, pulls)
        mark_acting(scratch, of_dof, more, joint & (a != a), pulls)
        set_flag(scratch.tied, of_body, 1.0, more & ~joint)  # whether its wrenches balance is unknown
        set_flag(
            scratch.tied, of_dof, 1.0, more & ~joint & ((of_dof != tree) | pushes_root(model, scratch, dof, of_dof))
        )
        set_flag(scratch.tied, tree, 1.0, more & ~joint & (of_dof >= 0) & (of_dof != tree))
        term = select(more, gather_where(rows.term_next, term, more), minus)
        more = more & (term >= 0)


@kernel
def mark_acting(scratch, root, there, joint, pulls):
    """A tree with a row that acts is not smooth. It is looped if the row is one of a loop joint, and pulled if another
    row can pull.
    """
    set_flag(scratch.smooth, root, 0.0, there)
    set_flag(scratch.rows, root, 1.0, there)
    set_flag(scratch.pulled, root, 1.0, there & pulls)
    set_flag(scratch.looped, root, 1.0, there & joint)


@kernel
def pushes_root(model, scratch, dof, root):
    """Worlds in which a degree of freedom is one of a free joint to the world."""
    there = dof >= 0
    return (
        there & (spread(gather_where(model.dof_link, dof, there), dof) == root) & (flag_of(scratch.floats, root) > 0.5)
    )


# ---- after the impulses ----------------------------------------------------------------------------------------------


@kernel
def change_products(model, data, dt):
    """Worlds in which rows have to be solved again, since impulses change velocity products by much; the change of
    accelerations is in `data.scratch.again`.
    """
    none = zero(load(data.work.a, 0))
    for i in range(model.n_links):
        store(data.scratch.added, i, none)
    for d in range(model.nv):
        root, added = load(model.dof_root, d), added_to(model, data.flow, data.scratch, d, dt)
        store(data.scratch.added, root, maximum(load(data.scratch.added, root), fabs(added)))
    turn, wanted = load(data.scratch.spin, 0), none != none
    for i in range(model.n_links):
        if load(model.link_parent, i) < 0:
            splits = (
                (load(data.scratch.split, i) > 0.5)
                & (load(data.scratch.rows, i) > 0.5)
                & (load(data.scratch.added, i) * turn > LARGE)
            )
            least = select(load(data.scratch.tied, i) > 0.5, none + LARGE, none + SMALL)
            looped = load(data.scratch.looped, i) > 0.5
            centres = (load(data.scratch.centre, i) > 0.5) & (
                load(data.scratch.added, i) * turn > select(looped, none + SLIGHT, least)
            )
            centres = centres & (~looped | (load(data.scratch.added, i) < turn))  # else a gap closes
            store(data.scratch.resolved, i, select(splits | centres, none + 1.0, none))
            wanted = wanted | splits | centres
    if any_lane(wanted):
        products_with(model, data, dt)
        for d in range(model.nv):
            share = select(is_in(model, data.scratch.centre, d), none + 1.0, none + 0.5)
            more = (load(data.end_work.a, d) - load(data.scratch.products, d)) * share
            store(data.scratch.again, d, select(is_in(model, data.scratch.resolved, d), more, none))
    return wanted


@kernel
def added_to(model, flow, scratch, d, dt):
    """Δ of a coordinate: the change of its velocity by all but velocity products if its tree is split; half of the
    total change if it is centred.
    """
    split = load(flow.a, d) + (load(scratch.start, d) - load(scratch.products, d)) * dt
    return select(is_in(model, scratch.centre, d), (load(flow.a, d) + load(scratch.start, d) * dt) * 0.5, split)


@kernel
def products_with(model, data, dt):
    """c(q, v + Δ) in `data.end_work.a`."""
    for d in range(model.nv):
        store(data.scratch.moved, d, load(data.state.v, d) + added_to(model, data.flow, data.scratch, d, dt))
    products_of(model, data.scratch.moved, data.work, data.end_work)


@kernel
def correct_products(model, data, dt):
    """h/2 (c(q, v + Δ) − c(q, v)) in `data.scratch.late`, for split trees whose rows were not solved with it, unless Δ
    is small. Trees that impulses act on are not smooth.
    """
    none = zero(load(data.work.a, 0))
    if load(data.islands.count, 0) > 0:
        for d in range(model.nv):
            root = load(model.dof_root, d)
            store(data.scratch.smooth, root, select(load(data.flow.a, d) != 0.0, none, load(data.scratch.smooth, root)))
    if load(data.scratch.any_split, 0) == 0:
        return
    most, wanted = none, none != none
    for d in range(model.nv):
        store(data.scratch.late, d, none)
        late = is_late(model, data.scratch, d)
        wanted = wanted | late
        most = maximum(most, select(late, fabs(added_to(model, data.flow, data.scratch, d, dt)), none))
    if not any_lane(wanted):
        return
    wanted = wanted & (most * load(data.scratch.spin, 0) > SMALL)
    if not any_lane(wanted):
        return
    products_with(model, data, dt)
    for d in range(model.nv):
        more = (load(data.end_work.a, d) - load(data.scratch.products, d)) * (0.5 * dt)
        store(data.scratch.late, d, select(wanted & is_late(model, data.scratch, d), more, none))


@kernel
def is_late(model, scratch, d):
    """Worlds in which the change of velocity products by impulses is added at the end of a step."""
    return is_in(model, scratch.split, d) & ~is_in(model, scratch.resolved, d)


@kernel
def centring_of(model, scratch, d):
    """Addition to the acceleration of a coordinate in a centred tree with motors, whose forces depend on its velocity
    at the end of the step. It is zero with loop joints, which act on the momenta of the beginning.
    """
    none = zero(load(scratch.again, d))
    if load(scratch.any_split, 0) == 0:
        return none
    return select(is_in(model, scratch.centre, d) & ~is_in(model, scratch.looped, d), load(scratch.again, d), none)


@kernel
def step_velocity(model, state, work, scratch, d, dt):
    """v', the velocity that moves a coordinate, from that at the beginning of the step, which includes the effect of
    impulses.
    """
    half = load(state.v, d) + load(work.a, d) * (0.5 * dt)
    return select(is_in(model, scratch.smooth, d), half, load(state.v, d) + load(work.a, d) * dt)
