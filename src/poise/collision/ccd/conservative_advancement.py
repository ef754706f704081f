"""Time of impact of two moving shapes: conservative advancement.

Both shapes move with constant twists. The gap along any direction n is a lower bound of their distance; n is fixed
while time advances by τ. With h the support function of a shape about its centre of rotation, its extent along n is

    h(n + τ n × ω) + c τ² / 2 at most,   c = |ω| |ω × n| ρ

with ρ the largest distance of its points from that centre. h is convex, so that for τ up to any T it is below the
straight line from h(n) to h(n + T n × ω). Both shapes together give a parabola below the gap, and time can advance to
its root without contact. Repeated advancement converges to the first contact from below: no contact is missed at any
speed, and none is found that does not happen. (B. Mirtich, Impulse-based Dynamic Simulation, 1996, uses straight lines
of slope |ω × n| ρ, which converge slowly where shapes spin beside each other.) Near the contact the line becomes a
tangent, and the steps those of Newton's method.

Surfaces are not convex: another part of one may come nearer than the part along n. Their gap shrinks at most at the
largest approach speed of any two points.
"""

from __future__ import annotations

from typing import Any

from poise.collision.collision_layout import Placed, Touch
from poise.collision.narrowphase.convex.signed_distance import nearest
from poise.collision.narrowphase.convex.support import SEAT_A, SEAT_B, core_point, core_radius
from poise.collision.narrowphase.dispatch import placed
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Real, View, load, store
from poise.kernel.quat import exp_rotation, rotation
from poise.kernel.scalars import maximum, minimum, sqrt, zero
from poise.kernel.spatial import Motion
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, cross, dot, norm
from poise.model.shape_arrays import Solid

ROUNDS = 100_000
"""Maximum number of advancements of a pair; ten are many."""
LINES = 4
"""Straight lines that are tried, each for a shorter time."""
PLANE, HULL = int(Solid.PLANE), int(Solid.HULL)

FLIGHTS = View(
    "Flights",
    n_pairs=Count,
    a=Index,
    b=Index,
    centre=Vec3,  # of each shape: its centre of rotation at the start; m
    twist=Motion,  # of each shape: (ω, velocity of that centre); rad/s, m/s
    arm=Real,  # of each shape: from there to its own centre; m
    time=Real,  # of each pair: time of impact; beyond the end if there is none; s
    gap=Real,  # at that time; m
    normal=Vec3,  # from A to B at that time
    point=Vec3,  # where; m
)


@formula
def after(S: Any, centre: Any, twist: Any, t: Any) -> Any:
    """A shape at a later time."""
    turn = rotation(exp_rotation(twist.w * t))
    return Placed(centre + twist.v * t + turn @ (S.p - centre), turn @ S.R, S.half)


@kernel
def farthest(g, f, i):
    """Upper bound of the distance of a shape's points from its centre of rotation, for the shape at the start."""
    return load(f.arm, i) + load(g.reach, i)


@kernel
def reach_along(g, t, seat, i, S, centre, n):
    """Support function of a shape about a centre; of a plane along its normal."""
    if load(g.kind, i) == PLANE:
        return dot(n, S.p - centre)
    return dot(n, core_point(g, t, seat, i, S, n) - centre) + core_radius(g, i, S) * norm(n)


@kernel
def gap_along(g, t, a, b, A, B, centre_a, centre_b, n, turn_a, turn_b):
    """Gap along n of shapes at a later time, from the positions of their centres and rotated directions n."""
    reach_a = reach_along(g, t, SEAT_A, a, A, centre_a, n + turn_a)
    reach_b = reach_along(g, t, SEAT_B, b, B, centre_b, turn_b - n)
    return dot(n, centre_b - centre_a) - reach_a - reach_b


@kernel
def safe_time(gap, slope, bend, most):
    """Time for which gap + slope τ − bend τ² / 2 is positive, up to a bound."""
    below = slope * slope + 2.0 * bend * gap
    rate = sqrt(maximum(below, zero(below))) - slope
    if 2.0 * gap >= most * rate:
        return most
    return 2.0 * gap / rate


@kernel
def free_time(g, f, t, a, b, A, B, centre_a, centre_b, n, spare, rest):
    """A time, up to `rest`, for which the gap of two convex shapes along n remains above `spare`."""
    move_a, move_b = load(f.twist, a), load(f.twist, b)
    store(t.whole, SEAT_A, 0)
    store(t.whole, SEAT_B, 0)
    none = n * 0.0
    gap = gap_along(g, t, a, b, A, B, centre_a, centre_b, n, none, none) - spare
    best = zero(gap)
    if gap <= 0.0:
        return best
    side_a, side_b = cross(n, move_a.w), cross(n, move_b.w)
    bend = zero(gap)
    if dot(side_a, side_a) > 0.0:  # a plane is unbounded, but does not rotate
        bend = norm(side_a) * norm(move_a.w) * farthest(g, f, a)
    if dot(side_b, side_b) > 0.0:
        bend = bend + norm(side_b) * norm(move_b.w) * farthest(g, f, b)
    parting = dot(n, move_b.v - move_a.v)
    most = rest
    for _ in range(LINES):
        later = gap_along(g, t, a, b, A, B, centre_a, centre_b, n, side_a * most, side_b * -most) - spare
        time = safe_time(gap, parting + (later - gap) / most, bend, most)
        best = maximum(best, time)
        if time >= 0.2 * most:
            break
        most = 2.0 * time
    return best


@kernel
def fly(g, x, f, t, k, dt, near, allow):
    """Time at which pair k first comes within a gap `near`, beyond dt if it does not; and the last contact point.

    With `allow` above 0 the pair is in contact now, and must first separate by this distance; or the search ends when
    the penetration has grown by it.
    """
    a, b = load(f.a, k), load(f.b, k)
    A, B = placed(g, x, a), placed(g, x, b)
    move_a, move_b = load(f.twist, a), load(f.twist, b)
    start_a, start_b = load(f.centre, a), load(f.centre, b)
    fastest = norm(move_a.v - move_b.v)
    if dot(move_a.w, move_a.w) > 0.0:
        fastest = fastest + norm(move_a.w) * farthest(g, f, a)
    if dot(move_b.w, move_b.w) > 0.0:
        fastest = fastest + norm(move_b.w) * farthest(g, f, b)
    time = zero(A.p.x)
    end = time + 2.0 * dt + 1.0
    last = Touch(load(f.gap, k), load(f.normal, k), load(f.point, k))
    apart = not allow > 0.0
    spare, enough = zero(time) + 0.5 * near, zero(time) + near
    if not apart:
        spare = minimum(load(f.gap, k), zero(time)) - allow
        enough = spare + 0.1 * allow
    for _ in range(ROUNDS):
        now_a, now_b = after(A, start_a, move_a, time), after(B, start_b, move_b, time)
        touch, found = nearest(g, t, a, b, now_a, now_b, zero(time) + 1e30)
        if not found:
            time = end
            break
        last = touch
        if not apart and touch.gap > allow:
            apart = True
            spare, enough = zero(time) + 0.5 * near, zero(time) + near
        rest = dt - time
        if touch.gap <= enough:
            break
        if touch.gap - spare > fastest * rest:
            time = end
            break
        step = (touch.gap - spare) / fastest
        if load(g.kind, b) <= HULL:
            centre_a, centre_b = start_a + move_a.v * time, start_b + move_b.v * time
            step = maximum(step, free_time(g, f, t, a, b, now_a, now_b, centre_a, centre_b, touch.normal, spare, rest))
        if step >= rest:
            time = end
            break
        time = time + step
    return time, last


@kernel
def note_touch(f, k, touch):
    """Store a contact point as that of pair k."""
    store(f.gap, k, touch.gap)
    store(f.normal, k, touch.normal)
    store(f.point, k, touch.point)


@kernel
def first_touch(g, x, f, t, k, dt, near):
    """Time at which pair k first comes within a gap `near`, in `f.time`; beyond dt if it does not."""
    time, touch = fly(g, x, f, t, k, dt, near, zero(load(f.time, k)))
    note_touch(f, k, touch)
    store(f.time, k, time)


@kernel
def first_touches(g, x, f, t, dt, near):
    """Times of impact of all pairs."""
    for k in range(f.n_pairs):
        first_touch(g, x, f, t, k, dt, near)
