"""Rows of contacts: from collision results to blocks of a normal and two tangents (VON §3.5, KOK §8.1).

A contact combines two surfaces: friction and restitution by the rules of `combining`; compliances add, as for two
springs in series. Contact pairs of the scene have friction of their own instead.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.combining import combine, combined
from poise.constraints.emit_rows import (
    busiest,
    fewest,
    name_block,
    pick,
    picked,
    put_bound,
    put_bounds,
    put_row,
)
from poise.constraints.kinds.rolling_friction import emit_rolling
from poise.constraints.pair_friction import body_that_rolls, of_pair, pair_columns, pair_sliding
from poise.constraints.row_parts.point_parts import perpendiculars
from poise.constraints.row_store import CONTACT
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, View, Width, gather_where, load, scatter_where, store
from poise.kernel.scalars import any_lane, get_lane, minimum, select, spread, zero
from poise.kernel.spatial import Force, motion_at
from poise.kernel.trace import formula
from poise.kernel.vec import cross, dot, zero3
from poise.model.model import Model
from poise.model.shape_arrays import Solid, Solids

SURFACES = View(
    "Surfaces",
    constant=True,
    varied=("friction", "restitution"),
    friction=Real,
    restitution=Real,
    compliance=Real,  # m/N
    torsional=Real,  # m
    rolling=Real,  # m
    rolls=Count,  # 0 if no contact has torsional or rolling friction
    kind=Index,  # of surface
    kinds=Count,
    rules=Index,  # of a pair of kinds: those of friction, torsional and rolling friction, restitution
    n_pairs=Count,
    thin=Real,  # least extent; infinite for planes and height fields; m
    # (n_pairs) contact pairs: two shapes, and their own friction
    pair_a=Index,
    pair_b=Index,
    pair_friction=Real,
    pair_torsional=Real,  # m
    pair_rolling=Real,  # m
)
"""Of every shape, and of contact pairs."""
OVERLOOKED = 1e-4
"""Overlap by impulses above which a contact without rows gets them; m."""


def surfaces_block(model: Model, width: Width) -> Block:
    """The surfaces of a model's shapes, in the precision of a width."""
    solids = model.solids
    names = ("friction", "restitution", "compliance")
    of_solids = {name: getattr(solids, name) for name in names}
    torsional, rolling = solids.torsional_friction, solids.rolling_friction
    of_solids |= {"torsional": torsional, "rolling": rolling, "rolls": int(body_that_rolls(model) is not None)}
    of_solids |= {
        "kind": solids.surface_kind,
        "kinds": len(solids.surface_rules),
        "rules": solids.surface_rules.ravel(),
    }
    width = width if width.varied else Width(width.elem)
    return SURFACES.block(width, **of_solids, **pair_columns(model), thin=least_extents(solids))


def contact_friction(model: Model, a: int, b: int) -> float:
    """Sliding friction of a contact between two shapes."""
    own = pair_sliding(model, a, b)
    return combined(model.solids, a, b).friction if own is None else own


def least_extents(solids: Solids) -> NDArray[Any]:
    """(n,) least extents of shapes; infinite for planes, height fields and meshes that do not collide; m."""
    thin = np.full(len(solids), inf)
    touched = (solids.group != 0) | (solids.mask != 0)
    for i, kind in enumerate(solids.kind.tolist()):
        if kind in (Solid.SPHERE, Solid.CAPSULE):
            thin[i] = 2.0 * solids.size[i, 0]
        elif kind == Solid.CYLINDER:
            thin[i] = 2.0 * solids.size[i, :2].min()
        elif kind in (Solid.BOX, Solid.ELLIPSOID):
            thin[i] = 2.0 * solids.size[i].min()
        elif kind in (Solid.HULL, Solid.MESH) and touched[i]:
            points = solids.vertices[solids.vertex_start[i] : solids.vertex_start[i + 1]]
            axes = np.linalg.eigh(np.cov(points.T))[1]  # a plate may be rotated in its own frame
            thin[i] = min(np.ptp(points, axis=0).min(), np.ptp(points @ axes, axis=0).min())
    return thin


@formula
def covector(arm: Any, n: Any) -> Any:
    """A force along n at an arm from the centre of mass."""
    return Force(cross(arm, n), n)


@kernel
def of_shape(buffer, shape, there):
    """Value of a shape in an array without lanes, in the lanes of a mask."""
    return spread(gather_where(buffer, shape, there), shape)


@kernel
def rules_of(u, a, b, there):
    """Index of the first rule of a pair of shapes."""
    if u.kinds == 1:
        return zero(a)
    return (of_shape(u.kind, a, there) * u.kinds + of_shape(u.kind, b, there)) * 4


@kernel
def combined_of(buffer, rule, a, b, there):
    """A combined coefficient of the contact of two shapes."""
    return combine(rule, gather_where(buffer, a, there), gather_where(buffer, b, there))


@kernel
def from_origin(w, g, shape, link, point, there):
    """Vector to a point from the origin O of a shape's tree."""
    moves = there & (link >= 0)
    if g.tree >= 0:  # there is only one tree
        origin = load(w.origin, g.tree)
        return point - select(moves, origin, zero3(origin.x))
    return point - gather_where(w.origin, of_shape(g.root, shape, moves), moves)


@kernel
def arm_of(w, body, link, away, there):
    """Arm from the centre of mass of a shape's body to a point."""
    moves = there & (link >= 0)
    if any_lane(moves):
        return away - gather_where(w.centre, body, moves)
    return away


@kernel
def speed_along(motion, n, link, away, there):
    """Speed of links along n at a point, for motions `motion`; mostly one side of a contact never moves."""
    moves = there & (link >= 0)
    if any_lane(moves):
        return dot(n, motion_at(gather_where(motion, link, moves), away))
    return zero(n.x)


@kernel
def parting(motion, n, link_a, link_b, away_a, away_b, there):
    """Separation speed of two links at a point along n, for motions `motion`."""
    return speed_along(motion, n, link_b, away_b, there) - speed_along(motion, n, link_a, away_a, there)


@kernel
def most_contacts(c):
    """The largest number of contacts in any world, up to the room."""
    count = load(c.count, 0)
    most = get_lane(count, 0)
    for lane in range(1, c.lanes):
        most = max(most, get_lane(count, lane))
    return min(most, c.room)


@kernel
def gap_ahead(w, g, x, c, k, there, dt):
    """Predicted gap of contact k at the end of the step, with the velocity change by impulses that is known so far."""
    a, b, n, point = load(c.a, k), load(c.b, k), load(c.normal, k), load(c.point, k)
    link_a, link_b = of_shape(g.link, a, there), of_shape(g.link, b, there)
    away_a, away_b = from_origin(w, g, a, link_a, point, there), from_origin(w, g, b, link_b, point, there)
    return load(c.gap, k) + parting(x.ahead, n, link_a, link_b, away_a, away_b, there) * dt


@kernel
def pick_contacts(w, g, x, c, r, dt, reach, margin, touch, again):
    """List the contacts that get rows."""
    for k in range(most_contacts(c)):
        had = load(c.listed, k)
        there = (load(c.count, 0) > k) & (load(c.gap, k) <= reach)
        if any_lane(there):
            wanted = load(c.gap, k) <= touch
            if any_lane(there & ~wanted):
                wanted = wanted | (gap_ahead(w, g, x, c, k, there, dt) <= margin)
            if again != 0:
                wanted = wanted | (had != 0)
            there = there & wanted
            if any_lane(there):
                pick(r, CONTACT, there, k)
        store(c.listed, k, select(there, zero(had) + 1, zero(had)))


@kernel
def make_contact(w, g, u, c, r, slot, there, dt, erp, quick):
    """Rows of the contact that was listed for a slot, in the lanes of a mask. It bounces if the approach speed exceeds
    `quick`.
    """
    k = load(r.pick, slot)
    a, b = gather_where(c.a, k, there), gather_where(c.b, k, there)
    n, gap, point = gather_where(c.normal, k, there), gather_where(c.gap, k, there), gather_where(c.point, k, there)
    link_a, link_b = of_shape(g.link, a, there), of_shape(g.link, b, there)
    away_a, away_b = from_origin(w, g, a, link_a, point, there), from_origin(w, g, b, link_b, point, there)
    body_a, body_b = of_shape(g.body, a, there), of_shape(g.body, b, there)
    arm_a, arm_b = arm_of(w, body_a, link_a, away_a, there), arm_of(w, body_b, link_b, away_b, there)
    approach = parting(w.velocity, n, link_a, link_b, away_a, away_b, there)
    id = gather_where(c.id, k, there)
    name_block(r, slot, there, id)
    t1, t2 = perpendiculars(n)
    put_row(r, slot, there, body_a, body_b, -covector(arm_a, n), covector(arm_b, n))
    put_row(r, slot + 1, there, body_a, body_b, -covector(arm_a, t1), covector(arm_b, t1))
    put_row(r, slot + 2, there, body_a, body_b, -covector(arm_a, t2), covector(arm_b, t2))
    none = zero(gap)
    put_bounds(r, slot, there, none, spread(inf, none))
    rules = rules_of(u, a, b, there)
    mu = spread(combined_of(u.friction, of_shape(u.rules, rules, there), a, b, there), none)
    put_bound(r, slot, there, of_pair(u, u.pair_friction, a, b, mu))
    e = combined_of(u.restitution, of_shape(u.rules, rules + 3, there), a, b, there)
    give = gather_where(u.compliance, a, there) + gather_where(u.compliance, b, there)
    scatter_where(r.phi, slot, gap, there)
    scatter_where(r.restitution, slot, spread(e, none), there)
    scatter_where(r.bounce, slot, select(approach < -quick, -e * approach, none), there)
    scatter_where(r.erp, slot, select(give > 0.0, none + 1.0, none + erp), there)
    scatter_where(r.cfm, slot, spread(give / (dt * dt), none), there)
    if u.rolls != 0:
        twist = spread(combined_of(u.torsional, of_shape(u.rules, rules + 1, there), a, b, there), none)
        roll = spread(combined_of(u.rolling, of_shape(u.rules, rules + 2, there), a, b, there), none)
        twist, roll = of_pair(u, u.pair_torsional, a, b, twist), of_pair(u, u.pair_rolling, a, b, roll)
        emit_rolling(r, slot, there, id, twist, roll, body_a, body_b, link_a, link_b, arm_a, arm_b, n, t1, t2)


@kernel
def emit_contacts(w, g, u, x, c, r, dt, erp, quick, reach, margin, touch, again):
    """Rows of the contacts within reach whose gap is less than `touch` now, or less than `margin` at the end of the
    step: impulses alone may hold a resting body.

    `x` has the motion without rows, and the velocity change by impulses that is known so far. If `again` is not 0,
    contacts that had rows keep them. `delassus_kernels.place_centres` must run before.
    """
    start = load(r.count, CONTACT)
    pick_contacts(w, g, x, c, r, dt, reach, margin, touch, again)
    for block in range(fewest(start, c.lanes), minimum(busiest(r, CONTACT, c.lanes), load(r.room, CONTACT))):
        there = picked(r, CONTACT, start, block)
        if any_lane(there):
            make_contact(w, g, u, c, r, load(r.first, CONTACT) + block * 3, there, dt, erp, quick)


@kernel
def overlooked_contacts(w, g, x, c, dt, reach):
    """Worlds in which impulses cause overlaps at contacts without rows."""
    wrong = load(c.gap, 0) != load(c.gap, 0)
    for k in range(most_contacts(c)):
        there = (load(c.count, 0) > k) & (load(c.gap, k) <= reach) & (load(c.listed, k) == 0)
        if any_lane(there):
            wrong = wrong | (there & (gap_ahead(w, g, x, c, k, there, dt) < -OVERLOOKED))
    return wrong
