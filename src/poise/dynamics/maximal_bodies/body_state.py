"""States of separate rigid bodies (maximal coordinates), in VON's velocity form (eq. 1), and their memory block."""

from __future__ import annotations

from poise.dynamics.integrate import load_vec, store_quat, store_vec
from poise.dynamics.kinematics import exp_turn, load_four
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load
from poise.kernel.quat import Quat, normalize, quaternion, rotation
from poise.kernel.scalars import select, zero
from poise.kernel.spatial import Motion, motion_at
from poise.kernel.vec import Vec3, cross

OWN = 13
"""State of a body: rotation (w, x, y, z), centre of mass, angular velocity, velocity of the centre of mass."""
CENTRE, SPIN, SPEED = 4, 7, 10

APART = View(
    "Apart",
    turning=Count,  # gyroscopic torques: EXPLICIT, IMPLICIT or MOMENTUM
    forces=Count,  # 1 at acceleration level
    alpha=Real,  # (1) gains of gaps and slips at acceleration level (VON eq. 11); 1/s², 1/s
    beta=Real,  # (1)
    own=Real,  # (13 n_links + nq + nv) state of each body; coordinates and velocities last computed from them
    before=Real,  # (13 n_links) states at the beginning of a step
    seen=Real,  # a copy of `own` for which all derived values are those of the end of the last step
    moved=Int,  # (n_links) ALONE or WITH_ALL where coordinates were set from outside, so that the body follows them
    sped=Int,  # (n_links) the same for velocities
    gap=Motion,  # (n_links) displacement of the body from the nearest pose that its joint allows, about O
    old_gap=Motion,  # (n_links) at the beginning of a step
    slip=Motion,  # (n_links) δ, about O
    square=Real,  # (36) SᵀS of a joint, then its Cholesky factor with the inverse of its diagonal
    change=Real,  # (6) change of a joint's coordinates
    pivot=Vec3,  # (n_links) the point of a joint, from O
    fit=Index,  # (n_links) how coordinates of a joint are fitted: see `fit_coordinates`
    late=Real,  # (nv) changes of coordinates that are not applied yet
    lead=Real,  # (nv) forces on drives: see `formulations.maximal_coordinates.maximal_step.lead_drives`
)


@kernel
def own_frame(m, f, i):
    """Rotation of a body, and its origin in the world."""
    R = rotation(load_four(f.own, OWN * i))
    return R, load_vec(f.own, OWN * i + CENTRE) - R @ load(m.link_com, i)


@kernel
def centre_of(m, w, i):
    """Centre of mass of a placed body from O."""
    return load(w.R, i) @ load(m.link_com, i) + load(w.r, i)


@kernel
def own_twist(m, w, f, i):
    """Twist of a placed body about O."""
    spin = load_vec(f.own, OWN * i + SPIN)
    return Motion(spin, load_vec(f.own, OWN * i + SPEED) - cross(spin, centre_of(m, w, i)))


@kernel
def set_twist(m, w, f, i, motion):
    """Set the velocities of a placed body from a twist about O."""
    store_vec(f.own, OWN * i + SPIN, motion.w)
    store_vec(f.own, OWN * i + SPEED, motion_at(motion, centre_of(m, w, i)))


@kernel
def move_body(m, w, f, i, motion, dt):
    """Move a placed body along a twist about O for dt (LIU eq. 2; rotations by the exponential map)."""
    way = motion_at(motion, centre_of(m, w, i)) * dt
    store_vec(f.own, OWN * i + CENTRE, load_vec(f.own, OWN * i + CENTRE) + way)
    store_quat(f.own, OWN * i, normalize(exp_turn(motion.w * dt) @ load_four(f.own, OWN * i)))


@kernel
def nudge_body(m, w, f, i, motion, there):
    """Displace a placed body a little, along a motion about O, in the worlds of a mask."""
    before, centre, half = load_four(f.own, OWN * i), load_vec(f.own, OWN * i + CENTRE), motion.w * 0.5
    after = normalize(Quat(zero(half.x) + 1.0, half.x, half.y, half.z) @ before)
    store_quat(f.own, OWN * i, select(there, after, before))
    store_vec(f.own, OWN * i + CENTRE, select(there, centre + motion_at(motion, centre_of(m, w, i)), centre))


@kernel
def follow_coordinates(m, w, f, i, R, r, moved):
    """Set the pose of a body from its coordinates, in the worlds of a mask."""
    place = load(w.origin, load(m.link_root, i)) + r + R @ load(m.link_com, i)
    store_quat(f.own, OWN * i, select(moved, quaternion(R), load_four(f.own, OWN * i)))
    store_vec(f.own, OWN * i + CENTRE, select(moved, place, load_vec(f.own, OWN * i + CENTRE)))
