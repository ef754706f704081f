"""Rows of loop joints: joints of every kind that close chains of the tree (VON §4, §5), and couplings of coordinates.

Rows of the locked motions come first: displacements along locked axes of A's frame, then rotations. Free coordinates
may have limits, dry friction, and motors. All rows are parts (`point_parts`, `orientation_parts`) of the two bodies.
"""

from __future__ import annotations

from math import inf
from typing import Any

from poise.constraints.emit_rows import N_KINDS, has_room, open_block, put_bounds, put_dof_row, put_row, put_term
from poise.constraints.kinds.loop_layout import (
    CODES,
    CONE,
    COUPLINGS,
    FIRST_COUPLING,
    FIRST_LOOP,
    FRICTION,
    LIMIT,
    LOOPS,
    PARALLEL,
    PERPENDICULAR,
    RIGID,
    SCREW,
    TURN,
    TURN_X,
)
from poise.constraints.kinds.motor import FIRST_ID, MOTORS, drives, emit_motors, motor_force, put_motor
from poise.constraints.response.delassus_kernels import place_centres
from poise.constraints.row_parts.orientation_parts import angle, orientation, parallel, perpendicular, swing_ellipse
from poise.constraints.row_parts.point_parts import Body, at_least, at_most, reach, reach_row, row_velocity, world
from poise.constraints.row_store import SINGLE, STORE
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import gather_where, load, scatter_where, store, store_where
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, zero
from poise.kernel.spatial import motion_at, no_force
from poise.kernel.trace import formula
from poise.kernel.vec import column0, column1, column2, cross, dot, norm, transpose, zero3

NEAR = 0.01
"""Distance from a limit within which it always has a row; rad or m."""


@kernel
def body_at(m, w, body, link):
    """State of a body, with the axes of its link; the world if there is no link."""
    like = load(w.a, 0)
    if link < 0:
        return world(like)
    centre, velocity = load(w.centre, body), load(w.velocity, link)
    x = load(w.origin, load(m.link_root, link)) + centre
    return Body(x, load(w.R, link), velocity.w, motion_at(velocity, centre))


@kernel
def put_part(j, e, k, code, part, there):
    """Add a row of loop k on its two bodies; returns its slot."""
    slot, there = open_block(e, SINGLE, there, zero(load(e.count, 0)) + (FIRST_LOOP - load(j.serial, k) * CODES - code))
    none = zero(slot)
    put_row(e, slot, there, none + load(j.body_a, k), none + load(j.body_b, k), part.a, part.b)
    scatter_where(e.gamma, slot, part.gamma, there)
    return slot, there


@kernel
def hold(j, e, k, code, part, there, erp):
    """Add an equality row: the part stays zero."""
    slot, there = put_part(j, e, k, code, part, there)
    scatter_where(e.phi, slot, part.phi, there)
    scatter_where(e.erp, slot, zero(part.phi) + erp, there)


@formula
def travel(a: Any, b: Any, pa: Any, pb: Any, n: Any) -> Any:
    """Part of a displacement along n, fixed in A and given in world axes."""
    r = reach(a, b, pa, pb)
    return reach_row(r, dot(n, r.d), n, zero(r.d.x))


@formula
def advance(slide: Any, turn: Any, pitch: Any) -> Any:
    """The part that a screw keeps zero."""
    return slide + turn * -pitch


@kernel
def column_of(F, what):
    """A column of a frame, by number."""
    if what == 0:
        return column0(F)
    if what == 1:
        return column1(F)
    return column2(F)


@kernel
def turn_about(j, a, b, k, what, at):
    """The angle about an axis of A's frame; its value at `at` counts full turns."""
    Fa, Fb = load(j.frame_a, k), load(j.frame_b, k)
    return angle(a, b, column_of(Fa, what), Fa @ transpose(Fb), load(j.value, at))


@kernel
def hold_slides(j, e, k, a, b, there, erp):
    """Rows that lock displacements along axes of A's frame."""
    F, pa, pb = a.R @ load(j.frame_a, k), load(j.point_a, k), load(j.point_b, k)
    for what in range(3):
        if (load(j.slides, k) >> what) & 1 != 0:
            hold(j, e, k, what, travel(a, b, pa, pb, column_of(F, what)), there, erp)


@kernel
def hold_turns(j, e, k, a, b, there, erp):
    """Rows that lock rotations."""
    Fa, Fb, turns = load(j.frame_a, k), load(j.frame_b, k), load(j.turns, k)
    if turns == PERPENDICULAR:
        hold(j, e, k, TURN, perpendicular(a, b, column0(Fa), column1(Fb)), there, erp)
    elif turns == PARALLEL:
        one, two = parallel(a, b, column0(Fa), column0(Fb))
        hold(j, e, k, TURN, one, there, erp)
        hold(j, e, k, TURN + 1, two, there, erp)
    elif turns == RIGID:
        one, two, three = orientation(a, b, Fa @ transpose(Fb))
        hold(j, e, k, TURN, one, there, erp)
        hold(j, e, k, TURN + 1, two, there, erp)
        hold(j, e, k, TURN + 2, three, there, erp)


# ---- coordinates -----------------------------------------------------------------------------------------------------


@kernel
def coordinate(j, a, b, k, c):
    """Part of coordinate c of loop k."""
    what = load(j.what, c)
    if what < TURN_X:
        n = column_of(a.R @ load(j.frame_a, k), what)
        return travel(a, b, load(j.point_a, k), load(j.point_b, k), n)
    return turn_about(j, a, b, k, what - TURN_X, c)


@kernel
def push(j, e, k, code, part, there, erp):
    """Add an inequality row: the part stays zero or more."""
    none = zero(part.phi)
    slot, there = put_part(j, e, k, code, part, there)
    put_bounds(e, slot, there, none, spread(inf, none))
    scatter_where(e.phi, slot, part.phi, there)
    scatter_where(e.erp, slot, none + erp, there)


@kernel
def emit_coordinate(j, b, e, k, c, part, speed, there, dt, whole, erp):
    """Limits, friction and motor of a coordinate."""
    n = c - load(j.coordinate_start, k)
    close = fabs(speed) * (2.0 * dt) + NEAR
    low, high = at_least(part, load(j.low, c)), at_most(part, load(j.high, c))
    if any_lane(there & (low.phi < close)):
        push(j, e, k, LIMIT + 2 * n, low, there & (low.phi < close), erp)
    if any_lane(there & (high.phi < close)):
        push(j, e, k, LIMIT + 2 * n + 1, high, there & (high.phi < close), erp)
    rub = load(j.friction, c)
    if any_lane(there & (rub > 0.0)):
        slot, rubs = put_part(j, e, k, FRICTION + n, part, there & (rub > 0.0))
        put_bounds(e, slot, rubs, -rub, rub)
    if load(j.motor, c) >= 0:
        emit_loop_motor(j, b, e, k, c, part, speed, there, dt, whole)


@kernel
def emit_loop_motor(j, b, e, k, c, part, speed, there, dt, whole):
    """The row of a motor on a coordinate of a loop. A pure force has a row with equal bounds."""
    motor, gear = load(j.motor, c), load(j.gear, c)
    force = maximum(minimum(load(b.torque, motor), load(b.high, motor)), load(b.low, motor))
    runs, error = drives(b, motor), load(b.target, motor) - part.phi * gear
    acts = there & (runs | (force != 0.0))
    if b.explicit != 0:
        force, acts = motor_force(b, motor, error, speed * gear), there
    slot, there = put_part(j, e, k, 0, part * gear, acts)
    scatter_where(e.id, slot, zero(slot) + (FIRST_ID - motor), there)
    put_motor(b, e, slot, there, motor, error, speed * gear, dt, whole)
    put_bounds(e, slot, there & ~runs, force, force)
    scatter_where(e.target, slot, speed * gear, there & ~runs)
    scatter_where(e.cfm, slot, zero(speed), there & ~runs)


@kernel
def emit_cone(j, e, k, a, b, there, dt, erp):
    """Swing limit of a ball."""
    y, z = load(j.cone_y, k), load(j.cone_z, k)
    Fa, Fb = load(j.frame_a, k), load(j.frame_b, k)
    part = swing_ellipse(a, b, Fa, Fa @ transpose(Fb), y, y, z, z)
    near = there & (part.phi < norm(b.w - a.w) * (2.0 * dt) + NEAR)
    if any_lane(near):
        push(j, e, k, CONE, part, near, erp)


@kernel
def emit_loop(m, w, j, b, e, k, there, dt, whole, erp):
    """All rows of loop k."""
    A, B = body_at(m, w, load(j.body_a, k), load(j.link_a, k)), body_at(m, w, load(j.body_b, k), load(j.link_b, k))
    store(j.slot, k, load(e.count, SINGLE))
    hold_slides(j, e, k, A, B, there, erp)
    hold_turns(j, e, k, A, B, there, erp)
    first, last = load(j.coordinate_start, k), load(j.coordinate_start, k + 1)
    if load(j.screws, k) != 0:
        slide = travel(A, B, load(j.point_a, k), load(j.point_b, k), column_of(A.R @ load(j.frame_a, k), 0))
        hold(j, e, k, SCREW, advance(slide, turn_about(j, A, B, k, 0, first), load(j.pitch, k)), there, erp)
    for c in range(first, last):
        part = coordinate(j, A, B, k, c)
        store(j.value, c, part.phi)
        emit_coordinate(j, b, e, k, c, part, row_velocity(part, A, B), there, dt, whole, erp)
    if load(j.has_cone, k) != 0:
        emit_cone(j, e, k, A, B, there, dt, erp)


@kernel
def emit_loops(m, s, w, j, b, e, dt, whole, erp):
    """Rows of all active loops, and of motors on them."""
    place_centres(m, w)
    for k in range(j.n_loops):
        there = load(j.active, k) > 0
        if any_lane(there):
            emit_loop(m, w, j, b, e, k, there, dt, whole, erp)


# ---- forces ----------------------------------------------------------------------------------------------------------


@kernel
def measure_loop(w, j, r, k, whole, part):
    """Force and torque on B, at the joint's point, of the rows that hold loop k, as means over a step of length
    `whole`; world axes. If `part` is not 0, they are added to those of the step's earlier parts.
    """
    there = load(j.active, k) > 0
    arm = load(j.point_b, k)
    if load(j.link_b, k) >= 0:
        arm = load(w.R, load(j.link_b, k)) @ arm
    force, torque = zero3(load(w.a, 0)), zero3(load(w.a, 0))
    for n in range(load(j.n_rows, k)):
        at = load(j.slot, k) + (load(r.first, SINGLE) + n)
        f = gather_where(r.Jb, at, there) * gather_where(r.lam, at, there)
        force, torque = force + f.f, torque + (f.t - cross(arm, f.f))
    none = zero3(load(w.a, 0))
    force, torque = select(there, force * (1.0 / whole), none), select(there, torque * (1.0 / whole), none)
    if part != 0:
        force, torque = force + load(j.force, k), torque + load(j.torque, k)
    store(j.force, k, force)
    store(j.torque, k, torque)


@kernel
def break_loops(j):
    """Open the loops whose force or torque exceeds the breaking limit."""
    for k in range(j.n_loops):
        much = norm(load(j.force, k)) > load(j.break_force, k)
        breaks = (load(j.active, k) > 0) & (much | (norm(load(j.torque, k)) > load(j.break_torque, k)))
        if any_lane(breaks):
            none = zero(load(j.active, k))
            store_where(j.active, k, none, breaks)
            store_where(j.broke, k, none + 1, breaks)


@kernel
def forget_breaks(j):
    """Reset the flags of loops that broke, at the beginning of a step."""
    for k in range(j.n_loops):
        store(j.broke, k, zero(load(j.broke, k)))


@kernel
def any_broke(j):
    """Whether any loop broke in the step."""
    broke = False
    for k in range(j.n_loops):
        broke = broke or load(j.broke, k) > 0
    return broke


@kernel
def clear_loop_forces(j):
    """Reset the forces of all loops, at the beginning of a step in parts."""
    for k in range(j.n_loops):
        none = zero3(load(j.force, k).x)
        store(j.force, k, none)
        store(j.torque, k, none)


@kernel
def measure_loops(w, j, r, whole, part):
    """Forces of all loops; overloaded ones break, in a step in parts only at its end."""
    for k in range(j.n_loops):
        measure_loop(w, j, r, k, whole, part)
    if part == 0:
        break_loops(j)
    return j.n_loops  # bound entries return whole numbers


# ---- couplings -------------------------------------------------------------------------------------------------------


@kernel
def emit_couplings(s, i, e, erp):
    """Rows of coordinates that depend on others: q₁ − p(q₂) = 0, p a polynomial."""
    for k in range(i.n_couplings):
        there = load(i.active, k) > 0
        if any_lane(there):
            d, x = load(i.first, k), zero(load(s.q, 0))
            if load(i.second, k) >= 0:
                x = load(s.q, load(i.second_q, k)) - load(i.second_zero, k)
            value, slope, bend = x - x, x - x, x - x
            for n in range(5):
                at = 5 * k + 4 - n
                bend = bend * x + slope * 2.0
                slope = slope * x + value
                value = value * x + load(i.coefficient, at)
            slot, there = open_block(e, SINGLE, there, zero(load(e.count, 0)) + (FIRST_COUPLING - k))
            put_dof_row(e, slot, there, zero(slot) + d, zero(x) + 1.0)
            if load(i.second, k) >= 0:
                minus = zero(slot) - 1
                put_term(e, slot, there, minus, no_force(x), zero(slot) + load(i.second, k), -slope)
                speed = load(s.v, load(i.second, k))
                scatter_where(e.gamma, slot, -(bend * speed * speed), there)
            scatter_where(e.phi, slot, load(s.q, load(i.first_q, k)) - load(i.first_zero, k) - value, there)
            scatter_where(e.erp, slot, zero(x) + erp, there)


@kernel
def make_guests(m, s, w, b, j, i, e, dt, whole, erp, kept, lanes):
    """Rows of motors, loops and couplings, after those in the store if `kept` is not 0; returns 1 if all have room."""
    if kept == 0:
        for kind in range(N_KINDS):
            store(e.count, kind, zero(load(e.count, kind)))
        store(e.term_count, 0, zero(load(e.term_count, 0)))
    emit_motors(s, b, e, dt, whole)
    if j.n_loops > 0:
        emit_loops(m, s, w, j, b, e, dt, whole, erp)
    emit_couplings(s, i, e, erp)
    if has_room(e, lanes):
        return 1
    return 0


_NUMBERS = ("float64", "float64", "float64", "int64", "int64")
MAKE_GUESTS = entry(make_guests, MODEL, STATE, WORK, MOTORS, LOOPS, COUPLINGS, STORE, extra=_NUMBERS)
MEASURE_LOOPS = entry(measure_loops, WORK, LOOPS, STORE, extra=("float64", "int64"))
BREAK_LOOPS = entry(break_loops, LOOPS)
