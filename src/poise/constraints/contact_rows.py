"""Rows of contacts: from what collision found to blocks of a normal and two tangents (VON §3.5, KOK §8.1).

Two materials meet in a contact: friction is the geometric mean of the two coefficients, restitution the larger one, and
compliances add, as two springs in a line do.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.parts import perpendiculars
from poise.constraints.row_kernels import open_block, put_bound, put_bounds, put_row
from poise.constraints.store import CONTACT
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Real, View, Width, gather_where, load, scatter_where
from poise.kernel.scalars import any_lane, get_lane, maximum, select, spread, sqrt, zero
from poise.kernel.spatial import Force, motion_at
from poise.kernel.trace import formula
from poise.kernel.vec import cross, dot
from poise.model.solids import Solid, Solids

SURFACES = View(
    "Surfaces",
    constant=True,
    friction=Real,
    restitution=Real,
    compliance=Real,  # m/N
    thin=Real,  # least extent; infinite of planes and height fields; m
)
"""Of every shape."""
AMPLE = 0.05
"""Gap up to which every contact that was found has rows; m."""


def surfaces_block(solids: Solids, width: Width) -> Block:
    """The surfaces of a model's shapes, in the precision of a width."""
    names = ("friction", "restitution", "compliance")
    of_solids = {name: getattr(solids, name) for name in names}
    return SURFACES.block(Width(width.elem), **of_solids, thin=least_extents(solids))


def least_extents(solids: Solids) -> NDArray[Any]:
    """(n,) what shapes measure where they are thinnest; infinite of planes and height fields; m."""
    thin = np.full(len(solids), inf)
    for i, kind in enumerate(solids.kind.tolist()):
        if kind in (Solid.SPHERE, Solid.CAPSULE):
            thin[i] = 2.0 * solids.size[i, 0]
        elif kind == Solid.CYLINDER:
            thin[i] = 2.0 * solids.size[i, :2].min()
        elif kind in (Solid.BOX, Solid.ELLIPSOID):
            thin[i] = 2.0 * solids.size[i].min()
        elif kind in (Solid.HULL, Solid.MESH):
            points = solids.vertices[solids.vertex_start[i] : solids.vertex_start[i + 1]]
            axes = np.linalg.eigh(np.cov(points.T))[1]  # a plate may lie askew in its own frame
            thin[i] = min(np.ptp(points, axis=0).min(), np.ptp(points @ axes, axis=0).min())
    return thin


@formula
def covector(arm: Any, n: Any) -> Any:
    """A force along n at an arm from the centre of mass."""
    return Force(cross(arm, n), n)


@kernel
def of_shape(buffer, shape, there):
    """What a shape has in a plain list, in the lanes of a mask."""
    return spread(gather_where(buffer, shape, there), shape)


@kernel
def carried(w, g, shape, body, link, point, there):
    """Arm from the centre of mass of a shape's body to a point, and the velocity of the body there."""
    moves = there & (link >= 0)
    root = of_shape(g.root, shape, moves)
    from_origin = point - gather_where(w.origin, root, moves)
    arm = from_origin - gather_where(w.centre, body, moves)
    return arm, motion_at(gather_where(w.velocity, link, moves), from_origin)


@kernel
def most_contacts(c):
    """Contacts of the world that has most, as many as there is room for."""
    count = load(c.count, 0)
    most = get_lane(count, 0)
    for lane in range(1, c.lanes):
        most = max(most, get_lane(count, lane))
    return min(most, c.room)


@kernel
def emit_contact(w, g, u, c, r, k, there, dt, erp, quick, fall):
    """Contact k of the lanes of a mask. It bounces where the bodies approach faster than `quick`.

    A gap above AMPLE has no row, unless it may close within two steps: by the present speed of approach and by what the
    acceleration `fall` adds to it.
    """
    a, b = load(c.a, k), load(c.b, k)
    n, gap, point = load(c.normal, k), load(c.gap, k), load(c.point, k)
    body_a, body_b = of_shape(g.body, a, there), of_shape(g.body, b, there)
    link_a, link_b = of_shape(g.link, a, there), of_shape(g.link, b, there)
    arm_a, speed_a = carried(w, g, a, body_a, link_a, point, there)
    arm_b, speed_b = carried(w, g, b, body_b, link_b, point, there)
    approach = dot(n, speed_b - speed_a)
    there = there & ((gap <= AMPLE) | (gap + approach * (2.0 * dt) <= fall * (4.0 * dt * dt)))
    slot, has_room = open_block(r, CONTACT, there, load(c.id, k))
    t1, t2 = perpendiculars(n)
    put_row(r, slot, has_room, body_a, body_b, -covector(arm_a, n), covector(arm_b, n))
    put_row(r, slot + 1, has_room, body_a, body_b, -covector(arm_a, t1), covector(arm_b, t1))
    put_row(r, slot + 2, has_room, body_a, body_b, -covector(arm_a, t2), covector(arm_b, t2))
    none = zero(gap)
    put_bounds(r, slot, has_room, none, spread(inf, none))
    mu = sqrt(gather_where(u.friction, a, there) * gather_where(u.friction, b, there))
    put_bound(r, slot, has_room, spread(mu, none))
    e = maximum(gather_where(u.restitution, a, there), gather_where(u.restitution, b, there))
    give = gather_where(u.compliance, a, there) + gather_where(u.compliance, b, there)
    scatter_where(r.phi, slot, gap, has_room)
    scatter_where(r.bounce, slot, select(approach < -quick, -e * approach, none), has_room)
    scatter_where(r.erp, slot, select(give > 0.0, none + 1.0, none + erp), has_room)
    scatter_where(r.cfm, slot, spread(give / (dt * dt), none), has_room)


@kernel
def emit_contacts(w, g, u, c, r, dt, erp, quick, reach, fall):
    """Rows of all contacts whose gap is within reach. `tree.place_centres` has been there."""
    for k in range(most_contacts(c)):
        there = (load(c.count, 0) > k) & (load(c.gap, k) <= reach)
        if any_lane(there):
            emit_contact(w, g, u, c, r, k, there, dt, erp, quick, fall)
