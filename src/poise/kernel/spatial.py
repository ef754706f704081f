"""Spatial vectors and inertias (KOK App. A), angular part first.

Motions (ω, v) and forces (τ, f) are given in some axes at some reference point O: v is the velocity of the point of the
body at O, τ the moment about O. In the kernels of `poise.dynamics` the axes are the world's and O is the origin of the
tree's first link, so that recursions along the tree need no transforms.
"""

from __future__ import annotations

from typing import Any

from poise.kernel.scalars import zero
from poise.kernel.trace import formula
from poise.kernel.values import Value
from poise.kernel.vec import (
    Mat3,
    Sym3,
    Vec3,
    cross,
    dot,
    outer,
    point_inertia,
    rotate_sym,
    skew,
    transpose,
    transpose_times,
)


class Motion(Value):
    """Angular velocity (or acceleration) w and velocity v of the point at O."""

    fields = (("w", Vec3), ("v", Vec3))
    __slots__ = ("v", "w")
    w: Any
    v: Any


class Force(Value):
    """Moment t about O, force f."""

    fields = (("t", Vec3), ("f", Vec3))
    __slots__ = ("f", "t")
    t: Any
    f: Any


class Inertia(Value):
    """Rigid body: mass m, first moment h = m·c, second moment I about O."""

    fields = (("m", None), ("h", Vec3), ("I", Sym3))
    __slots__ = ("I", "h", "m")

    def __matmul__(self, a: Any) -> Any:
        if not isinstance(a, Motion):
            return NotImplemented
        return Force(self.I @ a.w + cross(self.h, a.v), a.v * self.m - cross(self.h, a.w))


class Articulated(Value):
    """Articulated-body inertia [[A, B], [Bᵀ, C]]: maps an acceleration of a link to the force of its subtree."""

    fields = (("A", Sym3), ("B", Mat3), ("C", Sym3))
    __slots__ = ("A", "B", "C")

    def __matmul__(self, a: Any) -> Any:
        if not isinstance(a, Motion):
            return NotImplemented
        return Force(self.A @ a.w + self.B @ a.v, transpose_times(self.B, a.w) + self.C @ a.v)


class Transform(Value):
    """Pose X_AB of a frame B in a frame A: p_A = R p_B + p."""

    fields = (("R", Mat3), ("p", Vec3))
    __slots__ = ("R", "p")

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Transform):
            return Transform(self.R @ other.R, self.R @ other.p + self.p)
        if isinstance(other, Vec3):
            return self.R @ other + self.p
        return NotImplemented


@formula
def inverse(X: Any) -> Any:
    """The pose of A in B."""
    return Transform(transpose(X.R), -transpose_times(X.R, X.p))


@formula
def move_motion(X: Any, m: Any) -> Any:
    """A motion from B's axes and origin to A's axes and origin (KOK App. A, spx)."""
    w = X.R @ m.w
    return Motion(w, X.R @ m.v + cross(X.p, w))


@formula
def move_force(X: Any, f: Any) -> Any:
    """A force from B's axes and origin to A's axes and origin."""
    force = X.R @ f.f
    return Force(X.R @ f.t + cross(X.p, force), force)


@formula
def move_inertia(X: Any, i: Any) -> Any:
    """A rigid inertia from B's axes and origin to A's axes and origin."""
    h = X.R @ i.h
    turned = rotate_sym(X.R, i.I)
    # I_A = I_B + terms of the shift; with the first moment h they are −(p h + h p) in outer products
    shift = 2.0 * dot(h, X.p)
    both = Sym3(
        shift - 2.0 * h.x * X.p.x,
        shift - 2.0 * h.y * X.p.y,
        shift - 2.0 * h.z * X.p.z,
        -(h.x * X.p.y + h.y * X.p.x),
        -(h.x * X.p.z + h.z * X.p.x),
        -(h.y * X.p.z + h.z * X.p.y),
    )
    return Inertia(i.m, h + X.p * i.m, turned + both + point_inertia(i.m, X.p))


@formula
def motion_at(m: Any, r: Any) -> Any:
    """Velocity of the point at r (from O) of a body with the motion m."""
    return m.v + cross(m.w, r)


@formula
def force_at(f: Any, r: Any) -> Any:
    """A force f applied at r (from O)."""
    return Force(cross(r, f), f)


@formula
def pair(m: Any, f: Any) -> Any:
    """Power m · f; also generalized force of f along the axis m."""
    return dot(m.w, f.t) + dot(m.v, f.f)


@formula
def cross_motion(a: Any, b: Any) -> Any:
    """A × b: rate of a motion b that is fixed in a body with the motion a."""
    return Motion(cross(a.w, b.w), cross(a.w, b.v) + cross(a.v, b.w))


@formula
def cross_force(a: Any, f: Any) -> Any:
    """A ×* f: rate of a force f that is fixed in a body with the motion a."""
    return Force(cross(a.w, f.t) + cross(a.v, f.f), cross(a.w, f.f))


@formula
def rigid_inertia(R: Any, r: Any, mass: Any, com: Any, moments: Any) -> Any:
    """Inertia in world axes about O of a body at (R, r), from its mass, centre and moments in its own axes."""
    c = R @ com + r
    return Inertia(mass, c * mass, rotate_sym(R, moments) + point_inertia(mass, c))


@formula
def articulated(i: Any) -> Any:
    """A rigid inertia as an articulated one."""
    none = zero(i.h.x)
    m = i.m + none
    return Articulated(i.I, skew(i.h), Sym3(m, m, m, none, none, none))


@formula
def less(u: Any, m: Any, f: Any) -> Any:
    """u − m · f, in two short chains of multiply-adds: it is on the critical path of recursions along a tree."""
    return u - m.w.x * f.t.x - m.w.y * f.t.y - m.w.z * f.t.z - dot(m.v, f.f)


@formula
def without(i: Any, g: Any, h: Any) -> Any:
    """I − g hᵀ, with g a multiple of h: the articulated inertia without the part along a free axis."""
    t, f = g.t, g.f
    A = Sym3(t.x * h.t.x, t.y * h.t.y, t.z * h.t.z, t.x * h.t.y, t.x * h.t.z, t.y * h.t.z)
    C = Sym3(f.x * h.f.x, f.y * h.f.y, f.z * h.f.z, f.x * h.f.y, f.x * h.f.z, f.y * h.f.z)
    return Articulated(i.A - A, i.B - outer(t, h.f), i.C - C)


@formula
def no_motion(like: Any) -> Any:
    """Rest."""
    o = zero(like)
    return Motion(Vec3(o, o, o), Vec3(o, o, o))


@formula
def no_force(like: Any) -> Any:
    """No force."""
    o = zero(like)
    return Force(Vec3(o, o, o), Vec3(o, o, o))


@formula
def kinetic_energy(i: Any, m: Any) -> Any:
    """½ m · I m."""
    return pair(m, i @ m) * 0.5
