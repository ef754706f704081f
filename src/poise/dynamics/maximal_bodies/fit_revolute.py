"""Links with one hinge, or with a universal joint along two of their axes: all axes pass through one point."""

from __future__ import annotations

from poise.dynamics.kinematics import set_out, turn
from poise.dynamics.maximal_bodies.body_state import follow_coordinates, own_frame
from poise.dynamics.maximal_bodies.fit_coordinates import (
    FITS,
    FITTED,
    ROUGH,
    change_coordinates,
    note_change,
    turn_between,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import all_lanes, any_lane, select
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import cross, dot, transpose, zero3


@kernel
def place_on_turns(m, s, w, f, i, rough):
    """As `read_joints.place_body`."""
    goes, k, first = load(f.moved, i) == 0, load(m.link_primitive_start, i), load(m.link_dof_start, i)
    n, enough = load(m.link_dof_start, i + 1) - first, ROUGH * ROUGH if rough != 0 else FITTED * FITTED
    start_O, start_R, start_r = set_out(m, w, i, load(s.q, 0))
    if load(m.link_parent, i) < 0:
        store(w.origin, i, start_O)
    anchor = load(m.primitive_anchor, k)
    pivot = start_r + start_R @ anchor
    R, a, b = carry_through(m, w, k, n, start_R)
    if not all_lanes(goes):
        follow_coordinates(m, w, f, i, R, pivot - R @ anchor, load(f.moved, i) != 0)
    own_R, place = own_frame(m, f, i)
    own_r = place - load(w.origin, load(m.link_root, i))
    way = own_r + own_R @ anchor - pivot
    gap = no_motion(way.x)
    for fits in range(FITS):
        off = turn_between(own_R @ transpose(R))
        c, e = dot(a, off), dot(b, off)
        left = off - a * c - b * e
        gap = select(goes, Motion(left, way - cross(left, pivot)), gap)
        far = goes & (c * c + e * e >= enough)
        more = any_lane(far) and fits < FITS - 1
        if rough != 0 or more:
            store(f.change, 0, c)
            store(f.change, 1, e)
        if rough != 0:
            note_change(w, f, first, n, fits == 0 and rough == 1, fits == 0, goes, far)
        if not more:
            break
        change_coordinates(m, s, w, i, f.change, 0, far)
        goes = far
        R, a, b = carry_through(m, w, k, n, start_R)
    store(w.axis, first, Motion(a, cross(pivot, a)))
    if n == 2:
        store(w.axis, first + 1, Motion(b, cross(pivot, b)))
    store(f.gap, i, gap)
    store(w.R, i, own_R)
    store(w.r, i, own_r)
    store(f.pivot, i, pivot)


@kernel
def carry_through(m, w, k, n, R):
    """A rotation after n rotations from primitive k on, and their axes; zero for an absent second axis."""
    j = load(m.primitive_q_start, k)
    a = R @ load(m.primitive_axis, k)
    R, b = turn(m, k, R, load(w.sine, j), load(w.cosine, j)), zero3(a.x)
    if n == 2:
        j = load(m.primitive_q_start, k + 1)
        b = R @ load(m.primitive_axis, k + 1)
        R = turn(m, k + 1, R, load(w.sine, j), load(w.cosine, j))
    return R, a, b


@kernel
def fit_turns(m, w, f, i, motion):
    """Velocities that fit a motion about O of a link from its parent, in `f.change`; returns the residual motion."""
    first, pivot = load(m.link_dof_start, i), load(f.pivot, i)
    left = motion.w
    for d in range(first, load(m.link_dof_start, i + 1)):
        axis = load(w.axis, d).w
        change = dot(axis, motion.w)
        store(f.change, d - first, change)
        left = left - axis * change
    return Motion(left, motion_at(motion, pivot) - cross(left, pivot))
