"""Smooth motion within a step: velocity Verlet in place of semi-implicit Euler.

Semi-implicit Euler, v⁺ = v + h a(q, v), takes Coriolis, centrifugal and gyroscopic terms from the beginning of the
step: bodies that turn fast gain energy, and the angular momentum of what floats drifts. With c(q, v) for the
acceleration of these velocity products alone, and a(q, v) for that of all smooth forces, trees are integrated in one of
four ways:

    smooth     v' = v + h/2 a(q, v),                     q⁺ = q ⊕ h v',   v⁺ = v' + h/2 a(q⁺, v⁺)
    split      v' = v + h a(q, v) − h c + h/2 c' + Δ,    q⁺ = q ⊕ h v',   v⁺ = v' + h/2 c(q⁺, v⁺),   c' = c(q, v + Δ)
    centred    v' = v + h a(q, v) − h c + h c' + Δ,      q⁺ = q ⊕ h v',   v⁺ = v',    c' = c(q, (v + v')/2)
    plain      v' = v + h a(q, v) + Δ,                   q⁺ = q ⊕ h v',   v⁺ = v'

Δ is what impulses add, in c(q, v + Δ) with all forces but c. They act on v', the velocity that moves coordinates.

- A tree is smooth without rows that act in the step (contacts, limits, motors, loops); without springs, dampers and
  drives, which are implicit over the whole step; without given forces, which are those of its beginning; and without a
  path to follow.
- A tree is split that moves and is not smooth, where no rows act, rows are between links of a tree that floats, or rows
  do nothing but push: a character in the air keeps its momentum. Rows are met with c' = c(q, v) first. Where impulses
  change it by much, rows are solved again with c(q, v + Δ); what is less is added at the end of the step,
  h/2 (c(q, v + Δ) − c(q, v)).
- A tree with loops, or with motors to the world, is centred: its rows are solved again. With impulses along
  Jᵀ(q) that close loops at q⁺, that is SHAKE. Velocities are those of the middle of steps, and meet all rows. A half
  step c(q⁺, v⁺) without the forces of rows would lead off the loops, and away from the speeds of motors.
- Trees are plain that hardly move, or that touch something and turn slowly or are single bodies; and what follows a
  path or sleeps.

Verlet and splitting are symmetric in time but for what is left of the implicit half step. `verlet` has it, and the
stages by which trees move that are smooth and fast.
"""

from __future__ import annotations

from math import inf

from poise.constraints.row_kernels import N_KINDS, busiest, is_joint, stride_of
from poise.constraints.store import CONTACT
from poise.constraints.tree_values import stored_row_velocity
from poise.dynamics.products import products_now, products_of
from poise.formulations.sleeping import is_asleep
from poise.formulations.tree_flags import flag_of, is_in, root_of_body, root_of_dof, set_flag
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
"""What is known of a tree, at its first link: see `rules`."""
STILL, SLOW = 0.05, 5.0
"""Greatest angular velocity of a link from which on velocity products are split, of trees that touch nothing and of
those that touch something; rad/s. In a second the semi-implicit step gains or loses the share h ω² of kinetic energy.
"""
SLIGHT, SMALL, LARGE = 1e-5, 1e-4, 10.0
"""Δ times the greatest angular velocity, in rad/s², from which on velocity products are those that impulses leave:
where loops are solved again with them; where they are added at the end of the step, and rows of trees that are fixed to
the world are solved again; where those of others are.
"""


@kernel
def fastest_turn(m, w):
    """Square of the greatest angular velocity of a link; rad²/s²."""
    most = zero(load(w.inverse, 0))
    for i in range(m.n_links):
        spin = load(w.velocity, i).w
        most = maximum(most, dot(spin, spin))
    return most


# ---- which tree moves how --------------------------------------------------------------------------------------------


@kernel
def sort_trees(m, s, x, w, z, r, flow, ahead, o, dt):
    """Note at the first links of all trees how they are integrated, once the rows of the step are known; of those that
    are split, leave a − c/2 in `w.a` and c in `o.products`. Worlds in which `w.a` has changed.
    """
    none = zero(load(w.a, 0))
    store(o.any_split, 0, 0)
    if o.centred == 0:
        return none != none
    for i in range(m.n_links):
        if load(m.link_parent, i) < 0:
            store(o.smooth, i, none + 1.0)
            store(o.rows, i, none)
            store(o.looped, i, none)
            store(o.pulled, i, none)
            store(o.tied, i, none)
            store(o.led, i, none)
    mark_laws(m, x, w, z, o)
    mark_rows(m, s, w, r, flow, o, dt)
    turn = sqrt(fastest_turn(m, w))
    store(o.spin, 0, turn)
    wanted = none != none
    for i in range(m.n_links):
        if load(m.link_parent, i) < 0:
            rough = (load(o.smooth, i) < 0.5) & (load(o.led, i) < 0.5)
            rough = rough & (turn > STILL)
            looped, tied = load(o.looped, i) > 0.5, load(o.tied, i) > 0.5
            fast = ~tied | ((turn > SLOW) & (load(o.chained, i) > 0.5))
            inner, pushed = (load(o.floats, i) > 0.5) & ~tied, (load(o.pulled, i) < 0.5) & fast
            splits = rough & ((load(o.rows, i) < 0.5) | (~looped & (inner | pushed)))
            centres = rough & ~splits & (looped | fast)
            store(o.split, i, select(splits, none + 1.0, none))
            store(o.centre, i, select(centres, none + 1.0, none))
            wanted = wanted | splits | centres
    if any_lane(wanted):
        store(o.any_split, 0, 1)
        if load(o.has_products, 0) == 0:  # they do not depend on rows
            products_now(m, w, ahead)
            store(o.has_products, 0, 1)
            for d in range(m.nv):
                store(o.all_products, d, load(ahead.a, d))
        for d in range(m.nv):
            split, centred, products = is_in(m, o.split, d), is_in(m, o.centre, d), load(o.all_products, d)
            store(o.products, d, select(split | centred, products, none))
            store(w.a, d, load(w.a, d) - select(split, products * 0.5, none))
    return wanted


@kernel
def mark_laws(m, x, w, z, o):
    """Trees with springs, dampers, drives or given forces are not smooth, and tied where their free joint has springs;
    trees that follow a path or sleep are led.
    """
    none = zero(load(w.a, 0))
    if x.n_forces != 0:
        for b in range(m.n_bodies):
            link = load(m.body_link, b)
            if link >= 0:
                f = load(x.force, b)
                size = fabs(f.t.x) + fabs(f.t.y) + fabs(f.t.z) + fabs(f.f.x) + fabs(f.f.y) + fabs(f.f.z)
                root = load(m.link_root, link)
                store(o.smooth, root, select(size > 0.0, none, load(o.smooth, root)))
    for d in range(m.nv):
        link, root = load(m.dof_link, d), load(m.dof_root, d)
        lawful = load(w.diagonal, d) != 0.0
        if load(m.dof_prescribed, d) != 0 or (z.sleeps != 0 and is_asleep(m, z, link)):
            store(o.smooth, root, none)
            store(o.led, root, none + 1.0)
        store(o.smooth, root, select(lawful | (load(w.total, d) != 0.0), none, load(o.smooth, root)))
        if link == root:
            store(o.tied, root, select(lawful & (load(o.floats, root) > 0.5), none + 1.0, load(o.tied, root)))


@kernel
def acts(m, s, w, r, flow, first, slot, dt):
    """Worlds in which a row has to act: all but those that only push, and that neither semi-implicit Euler nor Verlet
    brings beyond their bounds in the step; and but for those without strength, and for rolling friction, which acts
    where its contact does.
    """
    now = stored_row_velocity(m, w, r, slot, s.v, w.velocity)
    end = stored_row_velocity(m, w, r, slot, flow.x, flow.motion)
    closes = load(r.phi, slot) + minimum(end, (now + end) * 0.5) * dt < 0.0
    lo, hi = load(r.lo, slot), load(r.hi, slot)
    return (closes | (lo < 0.0) | (hi < inf)) & ((lo != 0.0) | (hi != 0.0)) & (load(r.scaler, first) == 0)


@kernel
def mark_rows(m, s, w, r, flow, o, dt):
    """Trees with rows that act are not smooth; tied where rows that are not of loops lead to another tree or to the
    world.
    """
    for kind in range(N_KINDS):
        for n in range(busiest(r, kind, o.lanes)):
            there, first = load(r.count, kind) > n, load(r.first, kind) + n * stride_of(kind)
            for slot in range(first, first + (1 if kind == CONTACT else stride_of(kind))):
                open = there & is_open(m, r, o, slot)
                if any_lane(open):
                    acting = open & acts(m, s, w, r, flow, first, slot, dt)
                    if any_lane(acting):
                        mark_row(m, r, o, slot, acting)


@kernel
def is_open(m, r, o, slot):
    """Worlds in which a row can still change how its trees are integrated."""
    a, b, dof = root_of_body(m, load(r.a, slot)), root_of_body(m, load(r.b, slot)), load(r.dof, slot)
    own, pulls = root_of_dof(m, dof), load(r.lo, slot) < 0.0
    ties = (a != b) | pushes_root(m, o, dof, own)
    undecided = is_undecided(o, a, pulls, ties) | is_undecided(o, b, pulls, ties) | is_undecided(o, own, pulls, ties)
    return undecided | (load(r.term, slot) >= 0) | is_joint(r, slot)


@kernel
def is_undecided(o, root, pulls, ties):
    """Worlds in which a row may still tie a tree, or be the first that acts on it or that pulls."""
    tied, pulled = flag_of(o.tied, root) > 0.5, flag_of(o.pulled, root) > 0.5
    return (root >= 0) & ((flag_of(o.rows, root) < 0.5) | (ties & ~tied) | (pulls & ~pulled))


@kernel
def mark_row(m, r, o, slot, there):
    """See `mark_rows`."""
    a, b, dof = root_of_body(m, load(r.a, slot)), root_of_body(m, load(r.b, slot)), load(r.dof, slot)
    own, joint = root_of_dof(m, dof), is_joint(r, slot)
    leads_out = there & ~joint & (a != b)
    pulls = ~joint & (load(r.lo, slot) < 0.0)
    mark_acting(o, a, there, joint, pulls)
    mark_acting(o, b, there, joint, pulls)
    mark_acting(o, own, there, joint & (a != a), pulls)
    set_flag(o.tied, a, 1.0, leads_out)
    set_flag(o.tied, b, 1.0, leads_out)
    set_flag(o.tied, own, 1.0, there & ~joint & pushes_root(m, o, dof, own))
    tree, term = maximum(maximum(a, b), own), load(r.term, slot)
    more = there & (term >= 0)
    while any_lane(more):
        minus = zero(term) - 1
        body = select(more, gather_where(r.term_body, term, more), minus)
        dof = select(more, gather_where(r.term_dof, term, more), minus)
        of_body, of_dof = root_of_body(m, body), root_of_dof(m, dof)
        mark_acting(o, of_body, more, joint, pulls)
        mark_acting(o, of_dof, more, joint & (a != a), pulls)
        set_flag(o.tied, of_body, 1.0, more & ~joint)  # whether its wrenches balance is not known
        set_flag(o.tied, of_dof, 1.0, more & ~joint & ((of_dof != tree) | pushes_root(m, o, dof, of_dof)))
        set_flag(o.tied, tree, 1.0, more & ~joint & (of_dof >= 0) & (of_dof != tree))
        term = select(more, gather_where(r.term_next, term, more), minus)
        more = more & (term >= 0)


@kernel
def mark_acting(o, root, there, joint, pulls):
    """A tree with a row that acts is not smooth; looped where the row is one of a loop, pulled where it is another one
    that pushes and pulls.
    """
    set_flag(o.smooth, root, 0.0, there)
    set_flag(o.rows, root, 1.0, there)
    set_flag(o.pulled, root, 1.0, there & pulls)
    set_flag(o.looped, root, 1.0, there & joint)


@kernel
def pushes_root(m, o, dof, root):
    """Worlds in which a degree of freedom is one of a free joint to the world."""
    there = dof >= 0
    return there & (spread(gather_where(m.dof_link, dof, there), dof) == root) & (flag_of(o.floats, root) > 0.5)


# ---- once impulses are known -----------------------------------------------------------------------------------------


@kernel
def change_products(m, s, w, ahead, flow, o, dt):
    """Worlds in which rows have to be solved again, since impulses change velocity products by much: with what they
    change of accelerations in `o.again`.
    """
    none = zero(load(w.a, 0))
    for i in range(m.n_links):
        store(o.added, i, none)
    for d in range(m.nv):
        root, added = load(m.dof_root, d), added_to(m, flow, o, d, dt)
        store(o.added, root, maximum(load(o.added, root), fabs(added)))
    turn, wanted = load(o.spin, 0), none != none
    for i in range(m.n_links):
        if load(m.link_parent, i) < 0:
            splits = (load(o.split, i) > 0.5) & (load(o.rows, i) > 0.5) & (load(o.added, i) * turn > LARGE)
            least = select(load(o.tied, i) > 0.5, none + LARGE, none + SMALL)
            looped = load(o.looped, i) > 0.5
            centres = (load(o.centre, i) > 0.5) & (load(o.added, i) * turn > select(looped, none + SLIGHT, least))
            centres = centres & (~looped | (load(o.added, i) < turn))  # else a gap closes
            store(o.resolved, i, select(splits | centres, none + 1.0, none))
            wanted = wanted | splits | centres
    if any_lane(wanted):
        products_with(m, s, w, ahead, flow, o, dt)
        for d in range(m.nv):
            share = select(is_in(m, o.centre, d), none + 1.0, none + 0.5)
            more = (load(ahead.a, d) - load(o.products, d)) * share
            store(o.again, d, select(is_in(m, o.resolved, d), more, none))
    return wanted


@kernel
def added_to(m, flow, o, d, dt):
    """Δ of a coordinate: what all but velocity products add to its velocity where its tree is split; half of what all
    add where it is centred.
    """
    split = load(flow.a, d) + (load(o.start, d) - load(o.products, d)) * dt
    return select(is_in(m, o.centre, d), (load(flow.a, d) + load(o.start, d) * dt) * 0.5, split)


@kernel
def products_with(m, s, w, ahead, flow, o, dt):
    """c(q, v + Δ) in `ahead.a`."""
    for d in range(m.nv):
        store(o.moved, d, load(s.v, d) + added_to(m, flow, o, d, dt))
    products_of(m, o.moved, w, ahead)


@kernel
def correct_products(m, s, w, i, ahead, flow, o, dt):
    """h/2 (c(q, v + Δ) − c(q, v)) in `o.late`, for trees that are split and whose rows have not been solved with it,
    where Δ is not small. Trees that impulses act on after all are not smooth.
    """
    none = zero(load(w.a, 0))
    if load(i.count, 0) > 0:
        for d in range(m.nv):
            root = load(m.dof_root, d)
            store(o.smooth, root, select(load(flow.a, d) != 0.0, none, load(o.smooth, root)))
    if load(o.any_split, 0) == 0:
        return
    most, wanted = none, none != none
    for d in range(m.nv):
        store(o.late, d, none)
        late = is_late(m, o, d)
        wanted = wanted | late
        most = maximum(most, select(late, fabs(added_to(m, flow, o, d, dt)), none))
    if not any_lane(wanted):
        return
    wanted = wanted & (most * load(o.spin, 0) > SMALL)
    if not any_lane(wanted):
        return
    products_with(m, s, w, ahead, flow, o, dt)
    for d in range(m.nv):
        more = (load(ahead.a, d) - load(o.products, d)) * (0.5 * dt)
        store(o.late, d, select(wanted & is_late(m, o, d), more, none))


@kernel
def is_late(m, o, d):
    """Worlds in which velocity products that impulses leave are added at the end of a step."""
    return is_in(m, o.split, d) & ~is_in(m, o.resolved, d)


@kernel
def centring_of(m, o, d):
    """What is added to the acceleration of a coordinate since its tree is centred and has motors, whose forces are
    those of its velocity at the end of the step. With loops alone, momenta of the beginning are left as they are.
    """
    none = zero(load(o.again, d))
    if load(o.any_split, 0) == 0:
        return none
    return select(is_in(m, o.centre, d) & ~is_in(m, o.looped, d), load(o.again, d), none)


@kernel
def step_velocity(m, s, w, o, d, dt):
    """v', the velocity that moves a coordinate, from that at the beginning of the step, or with what impulses add."""
    half = load(s.v, d) + load(w.a, d) * (0.5 * dt)
    return select(is_in(m, o.smooth, d), half, load(s.v, d) + load(w.a, d) * dt)
