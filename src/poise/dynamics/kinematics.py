"""Forward kinematics of a tree: poses, axes, velocities, velocity-product accelerations.

One outbound pass (KOK §3, lines 3-8). A link starts at its parent's frame, and each primitive of its joints moves it
on. Axes of the degrees of freedom are in world axes at O, so that later passes transform nothing.
"""

from __future__ import annotations

from typing import Any

from poise.kernel.jit import kernel
from poise.kernel.memory import Count, View, load, store
from poise.kernel.quat import Quat, exp_rotation, exp_small, is_small, normalize, rotation
from poise.kernel.scalars import all_lanes, sincos, spread
from poise.kernel.spatial import Force, Motion, cross_motion, motion_at, no_motion, rigid_inertia
from poise.kernel.trace import formula
from poise.kernel.vec import Mat3, Vec3, column0, column1, column2, cross, zero3
from poise.model.joints import Primitive

SLIDE, TURN, SCREW, BALL = int(Primitive.SLIDE), int(Primitive.TURN), int(Primitive.SCREW), int(Primitive.BALL)


@formula
def turned(R: Any, axis: Any, s: Any, c: Any) -> Any:
    """R · Rot(axis, angle), for a unit axis."""
    t = 1.0 - c
    x, y, z = axis.x * t, axis.y * t, axis.z * t
    sx, sy, sz = axis.x * s, axis.y * s, axis.z * s
    xy, xz, yz = x * axis.y, x * axis.z, y * axis.z
    xx, yy, zz = x * axis.x + c, y * axis.y + c, z * axis.z + c
    return R @ Mat3(xx, xy - sz, xz + sy, xy + sz, yy, yz - sx, xz - sy, yz + sx, zz)


@formula
def turned_x(R: Any, sign: Any, s: Any, c: Any) -> Any:
    """R · Rot(±x, angle): only two columns change."""
    y, z, s = column1(R), column2(R), s * sign
    y, z = y * c + z * s, z * c - y * s
    return Mat3(R.xx, y.x, z.x, R.yx, y.y, z.y, R.zx, y.z, z.z)


@formula
def turned_y(R: Any, sign: Any, s: Any, c: Any) -> Any:
    """R · Rot(±y, angle)."""
    z, x, s = column2(R), column0(R), s * sign
    z, x = z * c + x * s, x * c - z * s
    return Mat3(x.x, R.xy, z.x, x.y, R.yy, z.y, x.z, R.zy, z.z)


@formula
def turned_z(R: Any, sign: Any, s: Any, c: Any) -> Any:
    """R · Rot(±z, angle)."""
    x, y, s = column0(R), column1(R), s * sign
    x, y = x * c + y * s, y * c - x * s
    return Mat3(x.x, y.x, R.xz, x.y, y.y, R.yz, x.z, y.z, R.zz)


@kernel
def find_angles(m, s, w):
    """Sine and cosine of every coordinate, slides too: a plain loop that vectorizes for a single world too."""
    for j in range(m.nq):
        sine, cosine = sincos(load(s.q, j) - load(m.q_zero, j))
        store(w.sine, j, sine)
        store(w.cosine, j, cosine)


@kernel
def turn(m, k, R, s, c):
    """R after the rotation of primitive k, by an angle with sine s and cosine c."""
    axis = load(m.primitive_axis, k)
    along = load(m.primitive_along, k)
    if along == 0:
        return turned_x(R, axis.x, s, c)
    if along == 1:
        return turned_y(R, axis.y, s, c)
    if along == 2:
        return turned_z(R, axis.z, s, c)
    return turned(R, axis, s, c)


@kernel
def load_four(buffer, j):
    """Four scalars as a quaternion."""
    return Quat(load(buffer, j), load(buffer, j + 1), load(buffer, j + 2), load(buffer, j + 3))


@kernel
def exp_turn(phi):
    """`exp_rotation`; for small rotations, as those of steps, it needs neither sines nor a square root."""
    if all_lanes(is_small(phi)):
        return exp_small(phi)
    return exp_rotation(phi)


@kernel
def load_quat(s, j):
    """The unit quaternion that begins at coordinate j."""
    return normalize(load_four(s.q, j))


@formula
def about(anchor: Any, axis: Any, pitch: Any) -> Any:
    """Motion of a unit rotation about an axis through a point, advancing by the pitch."""
    return Motion(axis, cross(anchor, axis) + axis * pitch)


@formula
def sliding(axis: Any) -> Any:
    """Motion of a unit slide."""
    return Motion(zero3(axis.x), axis)


@formula
def along_three(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any) -> Any:
    """Motion of a ball along its three axes."""
    return x * a + y * b + z * c


@kernel
def set_out(m, w, i, like):
    """Frame of a link before its joints move it: O, rotation and position from O, from its parent's."""
    parent = load(m.link_parent, i)
    if parent < 0:
        return spread_vec(load(m.link_position, i), like), spread_mat(load(m.link_rotation, i), like), zero3(like)
    R = load(w.R, parent)
    r = R @ load(m.link_position, i) + load(w.r, parent)
    if load(m.link_turned, i) != 0:
        R = R @ load(m.link_rotation, i)
    return zero3(like), R, r


@kernel
def carry_on(m, s, w, i, origin, R, r, base):
    """Apply a link's joints to its start frame: O, its frame, its velocity, its bias and the point of its last joint.

    The axes of its degrees of freedom are written to `w.axis`. `base` is the velocity of its parent; with None, no
    velocities are computed.
    """
    like = load(s.q, 0)
    leading = load(m.link_parent, i) < 0  # slides at the root move O
    bias, pivot = no_motion(like), r
    velocity = no_motion(like) if base is None else base
    for k in range(load(m.link_primitive_start, i), load(m.link_primitive_start, i + 1)):
        kind = load(m.primitive_kind, k)
        j = load(m.primitive_q_start, k)
        d = load(m.primitive_v_start, k)
        if kind == SLIDE:
            along = R @ load(m.primitive_axis, k)
            if leading:
                origin = origin + along * (load(s.q, j) - load(m.q_zero, j))
            else:
                r = r + along * (load(s.q, j) - load(m.q_zero, j))
            axis = sliding(along)
            store(w.axis, d, axis)
            step = axis * load(s.v, d)
            pivot = r
        else:
            leading = False
            anchor = r
            if load(m.primitive_centred, k) == 0:
                anchor = r + R @ load(m.primitive_anchor, k)
            if kind == BALL:
                R = R @ rotation(load_quat(s, j))
                x, y, z = column0(R), column1(R), column2(R)
                x, y, z = Motion(x, cross(anchor, x)), Motion(y, cross(anchor, y)), Motion(z, cross(anchor, z))
                store(w.axis, d, x)
                store(w.axis, d + 1, y)
                store(w.axis, d + 2, z)
                step = along_three(x, y, z, load(s.v, d), load(s.v, d + 1), load(s.v, d + 2))
            else:
                along = R @ load(m.primitive_axis, k)
                if kind == SCREW:
                    axis = about(anchor, along, load(m.primitive_pitch, k))
                else:
                    axis = Motion(along, cross(anchor, along))
                R = turn(m, k, R, load(w.sine, j), load(w.cosine, j))
                store(w.axis, d, axis)
                step = axis * load(s.v, d)
                if kind == SCREW:
                    advance = (load(s.q, j) - load(m.q_zero, j)) * load(m.primitive_pitch, k)
                    anchor = anchor + along * advance
            r = anchor
            if load(m.primitive_centred, k) == 0:
                r = anchor - R @ load(m.primitive_anchor, k)
            pivot = anchor
        if base is not None:
            bias = bias + cross_motion(velocity, step)
            velocity = velocity + step
    return origin, R, r, velocity, bias, pivot


@kernel
def place_link(m, s, w, i):
    """Pose, axes, velocity and velocity-product acceleration of a link whose parent is placed."""
    parent = load(m.link_parent, i)
    velocity = no_motion(load(s.q, 0))
    if parent >= 0:
        velocity = load(w.velocity, parent)
    origin, R, r = set_out(m, w, i, load(s.q, 0))
    origin, R, r, velocity, bias, _ = carry_on(m, s, w, i, origin, R, r, velocity)
    if parent < 0:
        store(w.origin, i, origin)
    store(w.R, i, R)
    store(w.r, i, r)
    store(w.velocity, i, velocity)
    store(w.bias, i, bias)


@kernel
def place_links(m, s, w):
    """Poses, axes, velocities and velocity-product accelerations of all links."""
    find_angles(m, s, w)
    for i in range(m.n_links):
        place_link(m, s, w, i)


@kernel
def place_chain(m, s, w, last):
    """As `place_links`, for one link and its ancestors alone."""
    find_angles(m, s, w)
    for i in range(last + 1):
        j = last
        while j > i:
            j = load(m.link_parent, j)
        if j == i:
            place_link(m, s, w, i)


@kernel
def move_links(m, v, w, t):
    """Velocities and velocity-product accelerations of all links, into `t`, from axes in `w`: with the bits of
    `place_links`.
    """
    velocity = no_motion(load(v, 0))
    for i in range(m.n_links):
        bias = no_motion(load(v, 0))
        parent = load(m.link_parent, i)
        if parent < 0:
            velocity = no_motion(load(v, 0))
        elif parent < i - 1:  # else it is still in registers
            velocity = load(t.velocity, parent)
        for k in range(load(m.link_primitive_start, i), load(m.link_primitive_start, i + 1)):
            d = load(m.primitive_v_start, k)
            if load(m.primitive_kind, k) == BALL:
                x, y, z = load(w.axis, d), load(w.axis, d + 1), load(w.axis, d + 2)
                step = along_three(x, y, z, load(v, d), load(v, d + 1), load(v, d + 2))
            else:
                step = load(w.axis, d) * load(v, d)
            bias = bias + cross_motion(velocity, step)
            velocity = velocity + step
        store(t.velocity, i, velocity)
        store(t.bias, i, bias)


@kernel
def take_places(m, w, t):
    """Copy poses and axes of all links from `w` to `t`."""
    for i in range(m.n_links):
        if load(m.link_parent, i) < 0:
            store(t.origin, i, load(w.origin, i))
        store(t.R, i, load(w.R, i))
        store(t.r, i, load(w.r, i))
    for d in range(m.nv):
        store(t.axis, d, load(w.axis, d))


@formula
def spread_vec(v: Any, like: Any) -> Any:
    """A vector of constants in the type of a scalar."""
    return v.map(lambda x: spread(x, like))


@formula
def spread_mat(m: Any, like: Any) -> Any:
    """A matrix of constants in the type of a scalar."""
    return m.map(lambda x: spread(x, like))


@kernel
def weigh(m, w, i):
    """Inertia of link i about O."""
    R, r = load(w.R, i), load(w.r, i)
    return rigid_inertia(R, r, load(m.link_mass, i), load(m.link_com, i), load(m.link_inertia, i))


@kernel
def weigh_links(m, w):
    """Inertias of all links about O."""
    for i in range(m.n_links):
        store(w.inertia, i, weigh(m, w, i))


BODIES = View("Bodies", rotation=Mat3, position=Vec3, twist=Motion)


@kernel
def place_body(m, w, b, i):
    """World pose of a body, and its twist (ω, velocity of the body's origin)."""
    link = load(m.body_link, i)
    rotation = load(m.body_rotation, i)
    position = load(m.body_position, i)
    if link < 0:
        like = load(b.rotation, i).xx
        store(b.rotation, i, spread_mat(rotation, like))
        store(b.position, i, spread_vec(position, like))
        store(b.twist, i, no_motion(like))
    else:
        R = load(w.R, link)
        r = R @ position + load(w.r, link)
        velocity = load(w.velocity, link)
        store(b.rotation, i, R @ rotation)
        store(b.position, i, load(w.origin, load(m.link_root, link)) + r)
        store(b.twist, i, Motion(velocity.w, motion_at(velocity, r)))


@kernel
def place_bodies(m, w, b):
    """World pose of every body, and its twist (ω, velocity of the body's origin)."""
    for i in range(m.n_bodies):
        place_body(m, w, b, i)


@kernel
def arm(m, w, body):
    """Position of a body's origin from O."""
    link = load(m.body_link, body)
    r = load(w.r, link)
    if load(m.body_centred, body) == 0:
        r = r + load(w.R, link) @ load(m.body_position, body)
    return r


@kernel
def apply_forces(m, x, w, share):
    """Subtract the forces on bodies, or a share of them, from the link forces that are to be balanced."""
    for b in range(m.n_bodies):
        link = load(m.body_link, b)
        if link >= 0:
            f = load(x.force, b)
            if share is not None:
                f = f * load(share, load(m.link_root, link))
            store(w.p, link, load(w.p, link) - Force(f.t + cross(arm(m, w, b), f.f), f.f))


JACOBIAN = View("Jacobian", link=Count, local=Vec3, axis_rate=Motion, columns=Motion, rates=Motion)


@kernel
def turn_axes(m, s, w, t):
    """Rate of every axis: bodies on both sides of its joint carry it along; those of a ball rotate with the child."""
    for i in range(m.n_links):
        velocity = no_motion(load(s.q, 0))
        if load(m.link_parent, i) >= 0:
            velocity = load(w.velocity, load(m.link_parent, i))
        for k in range(load(m.link_primitive_start, i), load(m.link_primitive_start, i + 1)):
            d = load(m.primitive_v_start, k)
            if load(m.primitive_kind, k) == BALL:
                for e in range(d, d + 3):
                    velocity = velocity + load(w.axis, e) * load(s.v, e)
                for e in range(d, d + 3):
                    store(t.axis_rate, e, cross_motion(velocity, load(w.axis, e)))
            else:
                store(t.axis_rate, d, cross_motion(velocity, load(w.axis, d)))
                velocity = velocity + load(w.axis, d) * load(s.v, d)


@kernel
def point_jacobian(m, w, t):
    """J = ∂(ω, velocity of the point)/∂v of a point fixed to a link, column by column, and J̇ (KOK eqs. 30, 31)."""
    r = load(w.R, t.link) @ load(t.local, 0) + load(w.r, t.link)
    speed = motion_at(load(w.velocity, t.link), r)
    for d in range(m.nv):
        store(t.columns, d, no_motion(r.x))
        store(t.rates, d, no_motion(r.x))
    d = load(m.link_dof_start, t.link + 1) - 1
    while d >= 0:
        axis, rate = load(w.axis, d), load(t.axis_rate, d)
        store(t.columns, d, Motion(axis.w, motion_at(axis, r)))
        store(t.rates, d, Motion(rate.w, motion_at(rate, r) + cross(axis.w, speed)))
        d = load(m.dof_parent, d)
