"""Rigid bodies that have states of their own, VON's velocity form (eq. 1), and the block in which these lie."""

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
"""Numbers of a body: rotation (w, x, y, z), centre of mass, angular velocity, velocity of the centre of mass."""
CENTRE, SPIN, SPEED = 4, 7, 10

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
    fit=Index,  # (n_links) how coordinates of a joint are fitted: see `fit_coordinates`
    late=Real,  # (nv) changes of coordinates that are yet to be made
    lead=Real,  # (nv) forces on drives: see `formulations.maximal_coordinates.maximal_step.lead_drives`
)


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


@kernel
def follow_coordinates(m, w, f, i, R, r, moved):
    """Put a body where its coordinates say, in the worlds of a mask."""
    place = load(w.origin, load(m.link_root, i)) + r + R @ load(m.link_com, i)
    store_quat(f.own, OWN * i, select(moved, quaternion(R), load_four(f.own, OWN * i)))
    store_vec(f.own, OWN * i + CENTRE, select(moved, place, load_vec(f.own, OWN * i + CENTRE)))
