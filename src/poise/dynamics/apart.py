"""Links as rigid bodies of their own: where each is, how it moves, and what their joints make of that.

A body's state is VON's velocity form (eq. 1): rotation, centre of mass, and its twist (ω, velocity of the centre of
mass) in world axes. A joint is what holds two bodies: with the axes S of its degrees of freedom, which start from where
the parent really is,

    V − V_parent = S v + δ            δ is none where the joint holds

The coordinates q of a joint are those that fit the poses of its bodies best, and v those that fit their twists, in the
metric of turns (rad) and of ways of the joint's own point (m). What no coordinate can explain is the joint's gap.
"""

from __future__ import annotations

from math import inf

from poise.dynamics.apart_fit import (
    BY_BALL,
    FITTED,
    change_coordinates,
    change_size,
    fit_any,
    fit_ball,
    fitted_motion,
    lay_ball,
    note_change,
    turn_ball,
    turn_between,
)
from poise.dynamics.integrate import load_vec, store_quat, store_vec
from poise.dynamics.kinematics import BALL, carry_on, exp_turn, find_angles, load_four, set_out
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load, store
from poise.kernel.quat import Quat, conjugate, normalize, quaternion, rotation
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, select, spread, zero
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import Vec3, cross, transpose, transpose_times, zero3

OWN = 13
"""Numbers of a body: rotation (w, x, y, z), centre of mass, angular velocity, velocity of the centre of mass."""
CENTRE, SPIN, SPEED = 4, 7, 10
FITS = 6
"""How often coordinates are fitted at most."""
ROUGH = 1e-4
"""Change after which gaps are known well enough to be closed: their error is its square; rad or m."""

ALONE, WITH_ALL = 1, 2
"""How a body follows its coordinates: as those that are led along paths, or with all that it carries."""
JUMP = 1e-9
"""Change of a coordinate from one step of a path to the next beyond which what is led jumps; m, or of a quaternion."""

APART = View(
    "Apart",
    turning=Count,  # how bodies turn on their own: see `turning`
    forces=Count,  # 1 at acceleration level
    alpha=Real,  # (1) gains of gaps and slips there (VON eq. 11); 1/s², 1/s
    beta=Real,  # (1)
    own=Real,  # (13 n_links + nq + nv) state of each body; coordinates and velocities that were last read off them
    before=Real,  # (13 n_links) states at the beginning of a step
    seen=Real,  # as `own`, of which all that follows is known from the end of the last step
    moved=Int,  # (n_links) ALONE or WITH_ALL where coordinates were set from outside, so that the body follows them
    sped=Int,  # (n_links) the same of velocities
    gap=Motion,  # (n_links) how far the body is from where its joint allows it, about O
    old_gap=Motion,  # (n_links) at the beginning of a step
    slip=Motion,  # (n_links) δ, about O
    square=Real,  # (36) SᵀS of a joint, then its Cholesky factor with the inverse of its diagonal
    change=Real,  # (6) of a joint's coordinates
    pivot=Vec3,  # (n_links) the point of a joint, from O
    fit=Index,  # (n_links) how coordinates of a joint are fitted: see `apart_fit`
    late=Real,  # (nv) changes of coordinates that are yet to be made
    lead=Real,  # (nv) forces on drives: see `formulations.apart.lead_drives`
)


# ---- bodies ----------------------------------------------------------------------------------------------------------


@kernel
def own_frame(m, f, i):
    """Rotation of a body, and its origin in the world."""
    R = rotation(load_four(f.own, OWN * i))
    return R, load_vec(f.own, OWN * i + CENTRE) - R @ load(m.link_com, i)


@kernel
def centre_of(m, w, i):
    """Centre of mass of a body from O, where it is placed."""
    return load(w.R, i) @ load(m.link_com, i) + load(w.r, i)


@kernel
def own_twist(m, w, f, i):
    """Motion of a body about O, where it is placed."""
    spin = load_vec(f.own, OWN * i + SPIN)
    return Motion(spin, load_vec(f.own, OWN * i + SPEED) - cross(spin, centre_of(m, w, i)))


@kernel
def set_twist(m, w, f, i, motion):
    """Let a body, where it is placed, move along a motion about O."""
    store_vec(f.own, OWN * i + SPIN, motion.w)
    store_vec(f.own, OWN * i + SPEED, motion_at(motion, centre_of(m, w, i)))


@kernel
def move_body(m, w, f, i, motion, dt):
    """Carry a body from where it is placed along a motion about O (LIU eq. 2; rotations by the exponential map)."""
    way = motion_at(motion, centre_of(m, w, i)) * dt
    store_vec(f.own, OWN * i + CENTRE, load_vec(f.own, OWN * i + CENTRE) + way)
    store_quat(f.own, OWN * i, normalize(exp_turn(motion.w * dt) @ load_four(f.own, OWN * i)))


@kernel
def nudge_body(m, w, f, i, motion, there):
    """Displace a body a little from where it is placed, along a motion about O, in the worlds of a mask."""
    before, centre, half = load_four(f.own, OWN * i), load_vec(f.own, OWN * i + CENTRE), motion.w * 0.5
    after = normalize(Quat(zero(half.x) + 1.0, half.x, half.y, half.z) @ before)
    store_quat(f.own, OWN * i, select(there, after, before))
    store_vec(f.own, OWN * i + CENTRE, select(there, centre + motion_at(motion, centre_of(m, w, i)), centre))


# ---- one body after another ------------------------------------------------------------------------------------------


@kernel
def follow_coordinates(m, w, f, i, R, r, moved):
    """Put a body where its coordinates say, in the worlds of a mask."""
    place = load(w.origin, load(m.link_root, i)) + r + R @ load(m.link_com, i)
    store_quat(f.own, OWN * i, select(moved, quaternion(R), load_four(f.own, OWN * i)))
    store_vec(f.own, OWN * i + CENTRE, select(moved, place, load_vec(f.own, OWN * i + CENTRE)))


@kernel
def place_body(m, s, w, f, i, rough):
    """Where a link is, its axes, its coordinates and its gap; its parent is placed.

    Where `rough` is not 0, coordinates of balls stay as they are, and `w.total` has what they are off by. Of others the
    last change, in `f.late`, is yet to be made. `w.total` has all of them, and those from before if it is 2.
    """
    if load(f.fit, i) == BY_BALL:
        place_on_ball(m, s, w, f, i, rough)
    else:
        place_by_fits(m, s, w, f, i, rough)


@kernel
def place_on_ball(m, s, w, f, i, rough):
    """As `place_body`, for a link that a single ball holds: rotations of the two bodies tell its coordinates."""
    goes, first = load(f.moved, i) == 0, load(m.link_dof_start, i)
    start_O, start_R, start_r = set_out(m, w, i, load(s.q, 0))
    if load(m.link_parent, i) < 0:
        store(w.origin, i, start_O)
    if not all_lanes(goes):
        _, R, r, _, _, _ = carry_on(m, s, w, i, start_O, start_R, start_r, None)
        follow_coordinates(m, w, f, i, R, r, load(f.moved, i) != 0)
    own_R, place = own_frame(m, f, i)
    own_r = place - load(w.origin, load(m.link_root, i))
    anchor = load(m.primitive_anchor, load(m.link_primitive_start, i))
    pivot = start_r + start_R @ anchor
    way = own_r + own_R @ anchor - pivot
    store(f.gap, i, select(goes, Motion(zero3(way.x), way), no_motion(way.x)))
    turn_ball(s, w, f, load(m.primitive_q_start, load(m.link_primitive_start, i)), first, ball_of(m, f, i), goes, rough)
    lay_ball(w, first, own_R, pivot)
    store(w.R, i, own_R)
    store(w.r, i, own_r)
    store(f.pivot, i, pivot)


@kernel
def ball_of(m, f, i):
    """Rotation of a link's ball, from those of its bodies."""
    parent, turn = load(m.link_parent, i), load_four(f.own, OWN * i)
    if parent >= 0:
        turn = conjugate(load_four(f.own, OWN * parent)) @ turn
    if load(m.link_turned, i) != 0:
        turn = conjugate(quaternion(load(m.link_rotation, i))) @ turn
    return turn


@kernel
def place_by_fits(m, s, w, f, i, rough):
    """As `place_body`, for any joint."""
    still, goes = no_motion(load(s.q, 0)), load(f.moved, i) == 0
    first, n = load(m.link_dof_start, i), load(m.link_dof_start, i + 1) - load(m.link_dof_start, i)
    enough = ROUGH * ROUGH if rough != 0 else FITTED * FITTED
    start_O, start_R, start_r = set_out(m, w, i, load(s.q, 0))
    origin, R, r, _, _, pivot = carry_on(m, s, w, i, start_O, start_R, start_r, None)
    if load(m.link_parent, i) < 0:
        store(w.origin, i, origin)
    if not all_lanes(goes):
        follow_coordinates(m, w, f, i, R, r, load(f.moved, i) != 0)
    own_R, place = own_frame(m, f, i)
    own_r = place - load(w.origin, load(m.link_root, i))
    store(f.gap, i, still)
    for fits in range(FITS):
        turn = turn_between(own_R @ transpose(R))
        way = own_r + own_R @ transpose_times(R, pivot - r) - pivot
        fit_any(w, f, i, first, n, pivot, turn, way)
        gap = Motion(turn, way - cross(turn, pivot)) - fitted_motion(w, f, first, n)
        store(f.gap, i, select(goes, gap, load(f.gap, i)))
        far = goes & (change_size(f, n) >= enough)
        more = any_lane(far) and fits < FITS - 1
        if rough != 0:
            note_change(w, f, first, n, fits == 0 and rough == 1, fits == 0, goes, far)
        if not more:
            break
        change_coordinates(m, s, w, i, f.change, 0, far)
        goes = far
        origin, R, r, _, _, pivot = carry_on(m, s, w, i, start_O, start_R, start_r, None)
        if load(m.link_parent, i) < 0:
            store(w.origin, i, origin)
            own_r = place - origin
    store(w.R, i, own_R)
    store(w.r, i, own_r)
    store(f.pivot, i, pivot)


@kernel
def speed_body(m, s, w, f, i):
    """How a link moves, its velocities and its slip; it is placed."""
    pivot, first, n = (
        load(f.pivot, i),
        load(m.link_dof_start, i),
        load(m.link_dof_start, i + 1) - load(m.link_dof_start, i),
    )
    base, sped = no_motion(load(s.q, 0)), load(f.sped, i) != 0
    if load(m.link_parent, i) >= 0:
        base = load(w.velocity, load(m.link_parent, i))
    if any_lane(sped):
        given = base
        for d in range(first, first + n):
            given = given + load(w.axis, d) * load(s.v, d)
        set_twist(m, w, f, i, select(sped, given, own_twist(m, w, f, i)))
    velocity = own_twist(m, w, f, i)
    relative = velocity - base
    if load(f.fit, i) == BY_BALL:
        slip = fit_ball(f, load(w.R, i), relative, pivot)
    else:
        fit_any(w, f, i, first, n, pivot, relative.w, motion_at(relative, pivot))
        slip = relative - fitted_motion(w, f, first, n)
    for a in range(n):
        store(s.v, first + a, select(sped, load(s.v, first + a), load(f.change, a)))
    store(f.slip, i, select(sped, no_motion(slip.w.x), slip))
    store(w.velocity, i, velocity)


# ---- all bodies ------------------------------------------------------------------------------------------------------


@kernel
def is_led(m, i):
    """Whether a body follows a path."""
    return load(m.dof_prescribed, load(m.link_dof_start, i)) != 0


@kernel
def note_changes(m, s, f):
    """Which coordinates and velocities are not those that were read off the bodies: bodies follow them, with all that
    they carry. What is led follows in any case, and takes what it carries along where its path jumps.
    """
    face = OWN * m.n_links
    for i in range(m.n_links):
        none = zero(load(f.moved, i))
        moved, sped = none, none
        led, parent = is_led(m, i), load(m.link_parent, i)
        if parent >= 0:
            above = load(f.moved, parent) == WITH_ALL
            moved = select(above, none + WITH_ALL, none)
            sped = select(above | (load(f.sped, parent) == WITH_ALL), none + WITH_ALL, none)
        if led:
            moved, sped = maximum(moved, none + ALONE), maximum(sped, none + ALONE)
        near = JUMP if led else 0.0
        for k in range(load(m.link_primitive_start, i), load(m.link_primitive_start, i + 1)):
            j, d = load(m.primitive_q_start, k), load(m.primitive_v_start, k)
            n_q, n_v = 1, 1
            if load(m.primitive_kind, k) == BALL:
                n_q, n_v = 4, 3
            for e in range(n_q):
                same = fabs(load(s.q, j + e) - load(f.own, face + j + e)) <= near
                moved = select(same, moved, none + WITH_ALL)
            for e in range(n_v):
                same = load(s.v, d + e) == load(f.own, face + m.nq + d + e)
                sped = select(same | (sped == ALONE), sped, none + WITH_ALL)
        store(f.moved, i, moved)
        store(f.sped, i, maximum(moved, sped))


@kernel
def note_led(m, f):
    """That bodies follow paths, and no others follow coordinates."""
    for i in range(m.n_links):
        none = zero(load(f.moved, i))
        led = none + ALONE if is_led(m, i) else none
        store(f.moved, i, led)
        store(f.sped, i, led)


@kernel
def settle(m, s, w, f):
    """Poses, axes and motions of all links from their own states; coordinates, velocities, gaps and slips of joints.

    Once more, it finds the same to the last bit.
    """
    find_angles(m, s, w)
    settle_placed(m, s, w, f)


@kernel
def settle_placed(m, s, w, f):
    """As `settle`, after `place_roughly`."""
    for i in range(m.n_links):
        place_body(m, s, w, f, i, 0)
        speed_body(m, s, w, f, i)


@kernel
def speed_bodies(m, s, w, f):
    """Motions of all links, which are placed; velocities and slips of joints."""
    for i in range(m.n_links):
        speed_body(m, s, w, f, i)


@kernel
def place_roughly(m, s, w, f, rough):
    """Poses, axes and gaps as they are before gaps are closed, coordinates nearly so; no motions. See `place_body`."""
    if rough == 1:  # after that, sines are kept with coordinates that change
        find_angles(m, s, w)
    for i in range(m.n_links):
        place_body(m, s, w, f, i, rough)


@kernel
def keep_face(m, s, f):
    """Remember the coordinates and velocities that were read off."""
    face = OWN * m.n_links
    for j in range(m.nq):
        store(f.own, face + j, load(s.q, j))
    for d in range(m.nv):
        store(f.own, face + m.nq + d, load(s.v, d))


@kernel
def see(m, f):
    """Note the states of which all is known."""
    for k in range(OWN * m.n_links + m.nq + m.nv):
        store(f.seen, k, load(f.own, k))


@kernel
def forget(m, f):
    """That anything was seen."""
    store(f.seen, 0, spread(inf, zero(load(f.seen, 0))))


@kernel
def is_seen(m, s, f):
    """Whether nothing has changed since: neither the bodies' states nor coordinates and velocities."""
    face = OWN * m.n_links
    other = load(s.q, 0) != load(s.q, 0)
    for k in range(face):
        other = other | (load(f.own, k) != load(f.seen, k))
    for j in range(m.nq):
        other = other | (load(s.q, j) != load(f.own, face + j)) | (load(s.q, j) != load(f.seen, face + j))
    for d in range(m.nv):
        k = face + m.nq + d
        other = other | (load(s.v, d) != load(f.own, k)) | (load(s.v, d) != load(f.seen, k))
    return not any_lane(other)


@kernel
def take_over(m, ahead, w):
    """What `settle` would find, where it was already."""
    for i in range(m.n_links):
        store(w.R, i, load(ahead.R, i))
        store(w.r, i, load(ahead.r, i))
        store(w.velocity, i, load(ahead.velocity, i))
        if load(m.link_parent, i) < 0:
            store(w.origin, i, load(ahead.origin, i))
    for d in range(m.nv):
        store(w.axis, d, load(ahead.axis, d))
    for j in range(m.nq):
        store(w.sine, j, load(ahead.sine, j))
        store(w.cosine, j, load(ahead.cosine, j))
