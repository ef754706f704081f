"""When two moving shapes first touch: conservative advancement.

Both shapes move with constant twists. While they are apart by a gap along n, no point of one can come nearer to the
other than at the speed

    −n · (v_B − v_A) + |ω_A × n| ρ_A + |ω_B × n| ρ_B

along n, with v the velocities of the centres of rotation and ρ the farthest that a point of a shape is from its own. So
the gap divided by that speed is a time that can pass without a touch, and passing it again and again leads to the first
touch from below: it is never overlooked, however fast the shapes are, and none is found that does not happen.
(B. Mirtich, Impulse-based Dynamic Simulation, 1996.)
"""

from __future__ import annotations

from typing import Any

from poise.collision.layout import Placed
from poise.collision.nearest import nearest
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Real, View, load, store
from poise.kernel.quat import exp_rotation, rotation
from poise.kernel.scalars import zero
from poise.kernel.spatial import Motion
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, cross, dot, norm

ROUNDS = 2000
"""Times at most that a pair is moved on."""

FLIGHTS = View(
    "Flights",
    n_pairs=Count,
    a=Index,
    b=Index,
    centre=Vec3,  # of each shape: its centre of rotation at the beginning; m
    twist=Motion,  # of each shape: (ω, velocity of that centre); rad/s, m/s
    time=Real,  # of each pair: when it first touches; beyond the end where it does not; s
    normal=Vec3,  # from A to B then
    point=Vec3,  # where; m
)


@formula
def after(S: Any, centre: Any, twist: Any, t: Any) -> Any:
    """A shape after a time."""
    turn = rotation(exp_rotation(twist.w * t))
    return Placed(centre + twist.v * t + turn @ (S.p - centre), turn @ S.R, S.half)


@kernel
def turning(g, f, S, i, n):
    """Speed along n at most that a shape's points have from its turning."""
    twist = load(f.twist, i)
    rate = norm(cross(twist.w, n))
    if rate == 0.0:
        return zero(rate)  # a plane is without end, but does not turn
    return rate * (norm(S.p - load(f.centre, i)) + load(g.reach, i))


@kernel
def first_touch(g, x, f, t, k, dt, near):
    """When pair k first comes within a gap `near`: to `f.time`; where it does not, a time beyond dt."""
    a, b = load(f.a, k), load(f.b, k)
    A = Placed(load(x.position, a), load(x.rotation, a), load(g.size, a))
    B = Placed(load(x.position, b), load(x.rotation, b), load(g.size, b))
    move_a, move_b = load(f.twist, a), load(f.twist, b)
    time = zero(A.p.x)
    end = zero(A.p.x) + 2.0 * dt + 1.0
    for _ in range(ROUNDS):
        now_a = after(A, load(f.centre, a), move_a, time)
        now_b = after(B, load(f.centre, b), move_b, time)
        touch, found = nearest(g, t, a, b, now_a, now_b, zero(time) + 1e30)
        if not found:
            time = end
            break
        store(f.normal, k, touch.normal)
        store(f.point, k, touch.point)
        if touch.gap <= near:
            break
        n = touch.normal
        speed = dot(n, move_a.v - move_b.v) + turning(g, f, A, a, n) + turning(g, f, B, b, n)
        if speed <= 0.0 or touch.gap > speed * (dt - time) + near:
            time = end
            break
        time = time + (touch.gap - 0.5 * near) / speed
    store(f.time, k, time)


@kernel
def first_touches(g, x, f, t, dt, near):
    """Of all pairs."""
    for k in range(f.n_pairs):
        first_touch(g, x, f, t, k, dt, near)
