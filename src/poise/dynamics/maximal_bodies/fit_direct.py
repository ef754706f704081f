"""Links whose coordinates follow from their bodies' states without fits: those with a single ball, and free ones."""

from __future__ import annotations

from poise.dynamics.integrate import load_vec, store_quat, store_vec
from poise.dynamics.kinematics import carry_on, load_four, set_out, sliding
from poise.dynamics.maximal_bodies.body_state import OWN, follow_coordinates, own_frame
from poise.dynamics.maximal_bodies.fit_coordinates import BY_PLACE, FITTED, log_turn
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.quat import conjugate, normalize, quaternion
from poise.kernel.scalars import all_lanes, select
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import column0, column1, column2, cross, dot, transpose_times, zero3


@kernel
def place_directly(m, s, w, f, i, rough):
    """As `read_joints.place_body`."""
    goes, free = load(f.moved, i) == 0, load(f.fit, i) == BY_PLACE
    start_O, start_R, start_r = set_out(m, w, i, load(s.q, 0))
    if load(m.link_parent, i) < 0:
        store(w.origin, i, start_O)
    if free:
        store(w.origin, i, start_O + slid(m, s, i, start_R))
    if not all_lanes(goes):
        _, R, r, _, _, _ = carry_on(m, s, w, i, start_O, start_R, start_r, None)
        follow_coordinates(m, w, f, i, R, r, load(f.moved, i) != 0)
    own_R, place = own_frame(m, f, i)
    own_r = place - load(w.origin, load(m.link_root, i))
    anchor = load(m.primitive_anchor, load(m.link_primitive_start, i + 1) - 1)
    pivot = start_r + start_R @ anchor
    way = own_r + own_R @ anchor - pivot
    turn_ball(m, s, w, f, i, goes, rough)
    lay_ball(w, load(m.link_dof_start, i + 1) - 3, own_R, pivot)
    if free:
        slide_free(m, s, w, i, transpose_times(start_R, way), goes, rough)
        lay_slides(w, load(m.link_dof_start, i), start_R)
        store(w.origin, i, start_O + slid(m, s, i, start_R))
        own_r, way = place - load(w.origin, i), zero3(way.x)
    store(f.gap, i, select(goes, Motion(zero3(way.x), way), no_motion(way.x)))
    store(w.R, i, own_R)
    store(w.r, i, own_r)
    store(f.pivot, i, pivot)


@kernel
def fit_directly(m, w, f, i, motion):
    """Velocities that fit a motion about O of a link from its parent, in `f.change`; returns the residual motion.

    A rotation matrix has rounding errors, whose bias would accumulate from step to step: a second pass removes it.
    """
    R, speed = load(w.R, i), motion_at(motion, load(f.pivot, i))
    spin = transpose_times(R, motion.w)
    spin = spin + transpose_times(R, motion.w - R @ spin)
    if load(f.fit, i) == BY_PLACE:
        first = load(m.link_dof_start, i)
        for a in range(3):
            store(f.change, a, dot(load(w.axis, first + a).v, speed))
        store_vec(f.change, 3, spin)
        return no_motion(spin.x)
    store_vec(f.change, 0, spin)
    return Motion(zero3(spin.x), speed)


# ---- balls -----------------------------------------------------------------------------------------------------------


@kernel
def ball_of(m, f, i):
    """Rotation of a link's ball, from the rotations of its bodies."""
    parent, turn = load(m.link_parent, i), load_four(f.own, OWN * i)
    if parent >= 0:
        turn = conjugate(load_four(f.own, OWN * parent)) @ turn
    if load(m.link_turned, i) != 0:
        turn = conjugate(quaternion(load(m.link_rotation, i))) @ turn
    return turn


@kernel
def turn_ball(m, s, w, f, i, goes, rough):
    """Set a link's ball to the rotation of its bodies, where its coordinates do not fit. With `rough` not 0, only write
    the difference. Worlds outside the mask `goes` keep their coordinates.
    """
    after, j = ball_of(m, f, i), load(m.primitive_q_start, load(m.link_primitive_start, i + 1) - 1)
    before = load_four(s.q, j)
    between = conjugate(normalize(before)) @ after
    turn = log_turn(between)
    if rough != 0:
        store_vec(w.total, load(m.link_dof_start, i + 1) - 3, select(goes, turn, zero3(turn.x)))
    else:
        far = goes & (dot(turn, turn) >= FITTED * FITTED)
        nearer = normalize(select(between.w < 0.0, -after, after))  # of two that are the same rotation
        store_quat(s.q, j, select(far, nearer, before))


@kernel
def lay_ball(w, d, R, at):
    """Write the axes of a ball whose body has the rotation R."""
    store(w.axis, d, Motion(column0(R), cross(at, column0(R))))
    store(w.axis, d + 1, Motion(column1(R), cross(at, column1(R))))
    store(w.axis, d + 2, Motion(column2(R), cross(at, column2(R))))


# ---- free links ------------------------------------------------------------------------------------------------------


@kernel
def slid(m, s, i, R):
    """Displacement of a free link by its coordinates, from its start frame with rotation R."""
    j = load(m.primitive_q_start, load(m.link_primitive_start, i))
    return R @ (load_vec(s.q, j) - load_vec(m.q_zero, j))


@kernel
def slide_free(m, s, w, i, change, goes, rough):
    """As `turn_ball`: add a change to a free link's position, or only write it."""
    j = load(m.primitive_q_start, load(m.link_primitive_start, i))
    if rough != 0:
        store_vec(w.total, load(m.link_dof_start, i), select(goes, change, zero3(change.x)))
    else:
        before, far = load_vec(s.q, j), goes & (dot(change, change) >= FITTED * FITTED)
        store_vec(s.q, j, select(far, before + change, before))


@kernel
def lay_slides(w, d, R):
    """Write the slide axes of a free link whose start frame has the rotation R."""
    store(w.axis, d, sliding(column0(R)))
    store(w.axis, d + 1, sliding(column1(R)))
    store(w.axis, d + 2, sliding(column2(R)))
