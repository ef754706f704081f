"""When two shapes that touch next come to touch again; and where pairs of shapes are now."""

from __future__ import annotations

from poise.collision.impact import HULL, ROUNDS, after, farthest, free_time
from poise.collision.narrow import placed
from poise.collision.nearest import nearest
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import maximum, minimum, zero
from poise.kernel.vec import dot, norm


@kernel
def note(f, k, touch):
    """A touch, as that of pair k."""
    store(f.gap, k, touch.gap)
    store(f.normal, k, touch.normal)
    store(f.point, k, touch.point)


@kernel
def look_now(g, x, f, t):
    """Gaps, normals and points of all pairs as they are."""
    for k in range(f.n_pairs):
        a, b = load(f.a, k), load(f.b, k)
        touch, found = nearest(g, t, a, b, placed(g, x, a), placed(g, x, b), load(f.gap, k) * 0.0 + 1e30)
        note(f, k, touch)
        if not found:
            store(f.gap, k, load(f.gap, k) * 0.0 + 1e30)


@kernel
def next_touch(g, x, f, t, k, dt, near, allow):
    """When pair k, which touches, has come apart by `allow` and touches again, or has gone into itself by as much.

    Conservative advancement, as in `impact.first_touch`; where the pair does neither within dt, a time beyond it.
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
    spare = minimum(load(f.gap, k), zero(time)) - allow
    enough = spare + 0.1 * allow
    apart = False
    for _ in range(ROUNDS):
        now_a, now_b = after(A, start_a, move_a, time), after(B, start_b, move_b, time)
        touch, found = nearest(g, t, a, b, now_a, now_b, zero(time) + 1e30)
        if not found:
            time = end
            break
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
    store(f.time, k, time)


@kernel
def next_touches(g, x, f, t, dt, near, part):
    """Of all pairs; how far each may go into itself is a part of what `f.time` tells, its least extent."""
    for k in range(f.n_pairs):
        next_touch(g, x, f, t, k, dt, near, load(f.time, k) * part)
