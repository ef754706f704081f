"""Poses and velocities of separate bodies, and the coordinates, gaps and slips of their joints.

A body's state is VON's velocity form (eq. 1): rotation, centre of mass, and its twist (ω, velocity of the centre of
mass) in world axes. With the axes S of its degrees of freedom, in the actual frame of the parent, a joint's velocities
are
    V − V_parent = S v + δ            δ = 0 where the joint holds

The coordinates q of a joint are those that fit the poses of its bodies best, and v those that fit their twists, in the
metric of rotations (rad) and displacements of the joint's own point (m). The error that remains is the joint's gap.
"""

from __future__ import annotations

from math import inf

from poise.dynamics.kinematics import BALL, carry_on, find_angles, set_out
from poise.dynamics.maximal_bodies.body_state import OWN, follow_coordinates, own_frame, own_twist, set_twist
from poise.dynamics.maximal_bodies.fit_coordinates import (
    BY_TURNS,
    FITS,
    FITTED,
    ROUGH,
    change_coordinates,
    change_size,
    fit_any,
    fitted_motion,
    is_direct,
    note_change,
    turn_between,
)
from poise.dynamics.maximal_bodies.fit_direct import fit_directly, place_directly
from poise.dynamics.maximal_bodies.fit_revolute import fit_turns, place_on_turns
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, select, spread, zero
from poise.kernel.spatial import Motion, motion_at, no_motion
from poise.kernel.vec import cross, transpose, transpose_times

ALONE, WITH_ALL = 1, 2
"""How a body follows its coordinates: alone, as kinematic bodies on paths do; or with all that it carries."""
JUMP = 1e-9
"""Change of a path's coordinate between steps above which the kinematic body jumps; m, or of a quaternion."""

# ---- one body after another ------------------------------------------------------------------------------------------


@kernel
def place_body(m, s, w, f, i, rough):
    """Pose, axes, coordinates and gap of a link whose parent is placed.

    With `rough` not 0, the last change of coordinates is only written to `f.late`. `w.total` has the sum of all
    changes, with earlier ones if `rough` is 2. Coordinates that need no fits stay, and `w.total` has their error.
    """
    if is_direct(f, i):
        place_directly(m, s, w, f, i, rough)
    elif load(f.fit, i) == BY_TURNS:
        place_on_turns(m, s, w, f, i, rough)
    else:
        place_by_fits(m, s, w, f, i, rough)


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
    """Velocity, joint velocities and slip of a placed link."""
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
    if is_direct(f, i):
        slip = fit_directly(m, w, f, i, relative)
    elif load(f.fit, i) == BY_TURNS:
        slip = fit_turns(m, w, f, i, relative)
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
    """Find coordinates and velocities that were set from outside: bodies follow them, with all that they carry.
    Kinematic bodies always follow theirs, and carry others along where their path jumps.
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
    """Mark bodies on paths as following their coordinates, and no others."""
    for i in range(m.n_links):
        none = zero(load(f.moved, i))
        led = none + ALONE if is_led(m, i) else none
        store(f.moved, i, led)
        store(f.sped, i, led)


@kernel
def settle(m, s, w, f):
    """Poses, axes and twists of all links from their own states; coordinates, velocities, gaps and slips of joints.

    A second call gives the same bits.
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
    """Twists of all placed links; velocities and slips of joints."""
    for i in range(m.n_links):
        speed_body(m, s, w, f, i)


@kernel
def place_roughly(m, s, w, f, rough):
    """Poses, axes, gaps and approximate coordinates before gaps are closed; no velocities. See `place_body`."""
    if rough == 1:  # after that, sines are kept with coordinates that change
        find_angles(m, s, w)
    for i in range(m.n_links):
        place_body(m, s, w, f, i, rough)


@kernel
def keep_face(m, s, f):
    """Save the coordinates and velocities that were computed from the bodies."""
    face = OWN * m.n_links
    for j in range(m.nq):
        store(f.own, face + j, load(s.q, j))
    for d in range(m.nv):
        store(f.own, face + m.nq + d, load(s.v, d))


@kernel
def see(m, f):
    """Mark the present states as evaluated."""
    for k in range(OWN * m.n_links + m.nq + m.nv):
        store(f.seen, k, load(f.own, k))


@kernel
def forget(m, f):
    """Mark no state as evaluated."""
    store(f.seen, 0, spread(inf, zero(load(f.seen, 0))))


@kernel
def is_seen(m, s, f):
    """Whether the bodies' states, coordinates and velocities are those that were evaluated last."""
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
    """Copy the results of `settle` from `ahead`."""
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
