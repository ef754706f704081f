"""Contact reduction: contact points of many triangles of a surface with one shape, filtered and reduced to a few.

Each triangle has its own contact points, along a direction `out` with a gap G of the whole shape. Other triangles
invalidate some of them: near the edge of a step, the side of the step would push a shape the longer way out. A triangle
k that is entirely behind the plane of a contact point j is separated once j has pushed the shape by G_j. If that is
shorter, that is G_j > G_k, the contact points of k are removed; if both directions are nearly equal, only those deeper
than G_j. The remaining contact points of a convex surface are along the direction of least penetration, as between two
convex shapes; in a valley neither slope is behind the other, and both keep theirs. A sphere whose centre is nearer to
the front of one triangle than to the back of another is not inside: the latter triangle is ignored.

Remaining contact points at the same place are merged. Of those with similar normals up to four well spread ones are
kept, the deepest among them.
"""

from __future__ import annotations

from typing import Any

from poise.collision.collision_layout import MOST_TOUCHES
from poise.collision.narrowphase.convex.clip_polygons import FIRST
from poise.collision.narrowphase.convex.manifold import choose
from poise.collision.narrowphase.convex.manifold_list import put
from poise.collision.narrowphase.convex.support import FACET, rounding, unit
from poise.collision.narrowphase.mesh.mesh_triangle import FACE
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, cross, dot

ROOM = 96
"""Capacity of the list of contact points before it is reduced."""
OUTWARD, POINT, CORNERS = 3100, 3100 + ROOM, 3100 + 2 * ROOM
"""Offsets in `points`: direction, point, the three corners of the triangle."""
GAP, WHOLE_GAP, LEVEL = 2100, 2100 + ROOM, 2100 + 2 * ROOM
"""Offsets in `numbers`: gap of the contact point, gap of the whole shape along the direction, level of the triangle
along it."""
RADIUS = 2100 + 3 * ROOM
"""Offset in `numbers` of the radius of a sphere; 0 for other shapes."""
COUNT, NAME, STATE = 13100, 13101, 13101 + ROOM
"""Offsets in `whole`: the number of contact points, their features, and marks."""
OPEN, KEPT, GONE = 0, 1, 2
ALIKE = 0.98
"""Cosine between directions above which both are valid: a flat foot on a gentle dome keeps its corners."""
SAME = 0.95
"""Cosine between directions above which contact points belong to one group."""
BITS = 0x7FFFFFFF


@formula
def roughly(like: Any) -> Any:
    """Distance of points over the size of shapes below which they are at the same place."""
    return constant(1e-8 if precision(like) > 24 else 1e-4, like)


@kernel
def start_list(t, radius):
    """Clear the list, for a sphere or another shape."""
    store(t.whole, COUNT, 0)
    store(t.numbers, RADIUS, radius)


@kernel
def no_touches(t):
    """Whether the list is empty."""
    return load(t.whole, COUNT) == 0


@kernel
def feature_of(face, name):
    """31 bits of a triangle and the feature of A."""
    h = (face + 1) * 0x1E3779B97F4A7C15 + name * 0x44CEB9FE1A85EC53
    h = (h ^ (h >> 31)) * 0x2545F4914F6CDD1D
    return (h ^ (h >> 29)) & BITS


@kernel
def collect(t, facet, size):
    """Move the contact points of a triangle from the manifold to the list; returns the least gap among them."""
    least = zero(size) + 1e30
    level = zero(size) - 1e30
    for c in range(3):
        level = maximum(level, dot(facet.out, facet.middle + load(t.points, FACET + c)))
    for i in range(load(t.n, 0)):
        if load(t.whole, COUNT) == ROOM:
            thin(t, size)
        k = load(t.whole, COUNT)
        gap = load(t.gap, i)
        store(t.numbers, GAP + k, gap)
        store(t.numbers, WHOLE_GAP + k, facet.gap)
        store(t.numbers, LEVEL + k, level)
        store(t.points, OUTWARD + k, -load(t.normal, i))
        store(t.points, POINT + k, load(t.point, i))
        store(t.whole, NAME + k, feature_of(load(t.whole, FACE), load(t.feature, i)))
        for c in range(3):
            store(t.points, CORNERS + 3 * k + c, facet.middle + load(t.points, FACET + c))
        store(t.whole, COUNT, k + 1)
        if gap < least:
            least = gap
    store(t.n, 0, 0)
    return least


@kernel
def move(t, source, target):
    """Copy a contact point to another place of the list."""
    store(t.numbers, GAP + target, load(t.numbers, GAP + source))
    store(t.numbers, WHOLE_GAP + target, load(t.numbers, WHOLE_GAP + source))
    store(t.numbers, LEVEL + target, load(t.numbers, LEVEL + source))
    store(t.points, OUTWARD + target, load(t.points, OUTWARD + source))
    store(t.points, POINT + target, load(t.points, POINT + source))
    store(t.whole, NAME + target, load(t.whole, NAME + source))
    for c in range(3):
        store(t.points, CORNERS + 3 * target + c, load(t.points, CORNERS + 3 * source + c))


@kernel
def retain(t):
    """Compact the list: only marked contact points remain."""
    kept = 0
    for k in range(load(t.whole, COUNT)):
        if load(t.whole, STATE + k) == KEPT:
            move(t, k, kept)
            kept += 1
    store(t.whole, COUNT, kept)


# ---- invalid and duplicate contact points ----------------------------------------------------------------------------


@kernel
def is_behind(t, k, j, slack):
    """Whether the triangle of contact point k is entirely behind the plane of contact point j."""
    out, level = load(t.points, OUTWARD + j), load(t.numbers, LEVEL + j) + slack
    behind = True
    for c in range(3):
        behind = behind and dot(out, load(t.points, CORNERS + 3 * k + c)) <= level
    return behind


@kernel
def is_outside(t, j, k):
    """Whether contact point j shows that a sphere's centre is outside, not behind the farther triangle of k."""
    radius = load(t.numbers, RADIUS)
    nearest, behind = load(t.numbers, WHOLE_GAP + j) + radius, -load(t.numbers, WHOLE_GAP + k) - radius
    return radius > 0.0 and nearest >= 0.0 and behind > nearest


@kernel
def answers(t, j, k, slack):
    """Whether a valid contact point j makes k redundant: it is a shorter way out, or at the same place."""
    like = dot(load(t.points, OUTWARD + j), load(t.points, OUTWARD + k)) > ALIKE
    short = load(t.numbers, WHOLE_GAP + j) - slack
    shorter = short > load(t.numbers, WHOLE_GAP + k) and (not like or short > load(t.numbers, GAP + k))
    if (shorter and is_behind(t, k, j, slack)) or is_outside(t, j, k):
        return True
    apart = load(t.points, POINT + j) - load(t.points, POINT + k)
    return like and dot(apart, apart) <= slack * slack


@kernel
def next_open(t, slack):
    """The next contact point: with the shortest way out, then the deepest, then the one with the least feature."""
    best = -1
    for k in range(load(t.whole, COUNT)):
        if load(t.whole, STATE + k) != OPEN:
            continue
        if best < 0:
            best = k
            continue
        more = load(t.numbers, WHOLE_GAP + k) - load(t.numbers, WHOLE_GAP + best)
        deeper = load(t.numbers, GAP + best) - load(t.numbers, GAP + k)
        first = load(t.whole, NAME + k) < load(t.whole, NAME + best)
        if more > slack or (more > -slack and (deeper > slack or (deeper > -slack and first))):
            best = k
    return best


@kernel
def sort_out(t, size):
    """Remove contact points that others make redundant."""
    n, slack = load(t.whole, COUNT), roughly(size) * size
    for k in range(n):
        store(t.whole, STATE + k, OPEN)
    for _ in range(n):
        j = next_open(t, slack)
        if j < 0:
            break
        store(t.whole, STATE + j, KEPT)
        for k in range(n):
            if load(t.whole, STATE + k) == OPEN and answers(t, j, k, slack):
                store(t.whole, STATE + k, GONE)
    retain(t)


# ---- reduction -------------------------------------------------------------------------------------------------------


@kernel
def leader(t, slack):
    """The deepest contact point without a group; −1 if there is none."""
    best = -1
    for k in range(load(t.whole, COUNT)):
        if load(t.whole, STATE + k) == OPEN and (
            best < 0 or load(t.numbers, GAP + k) < load(t.numbers, GAP + best) - slack
        ):
            best = k
    return best


@kernel
def join(t, first, state):
    """Add contact points with a direction like the first one's to its group: their number; projected, in FIRST."""
    out = load(t.points, OUTWARD + first)
    none = zero(out.x)
    across = Vec3(none + 1.0, none, none) if fabs(out.x) < 0.6 else Vec3(none, none + 1.0, none)
    x = unit(cross(across, out), across)
    y = cross(out, x)
    n = 0
    for k in range(load(t.whole, COUNT)):
        if load(t.whole, STATE + k) == OPEN and dot(out, load(t.points, OUTWARD + k)) > SAME:
            p = load(t.points, POINT + k)
            store(t.points, FIRST + n, Vec3(dot(x, p), dot(y, p), load(t.numbers, GAP + k)))
            store(t.whole, FIRST + n, k)
            store(t.whole, STATE + k, state)
            n += 1
    return n


@kernel
def count_groups(t, slack):
    """Number of groups of similar directions."""
    groups = 0
    for k in range(load(t.whole, COUNT)):
        store(t.whole, STATE + k, OPEN)
    first = leader(t, slack)
    while first >= 0:
        join(t, first, GONE)
        groups += 1
        first = leader(t, slack)
    return groups


@kernel
def thin(t, size):
    """Reduce the list: keep the deepest contact point of each group, and well spread ones."""
    sort_out(t, size)
    slack = 64.0 * rounding(size) * size
    groups = count_groups(t, slack)
    each = 4 if groups < 3 else max(1, MOST_TOUCHES // groups)
    for k in range(load(t.whole, COUNT)):
        store(t.whole, STATE + k, OPEN)
    left = MOST_TOUCHES
    first = leader(t, slack)
    while first >= 0 and left > 0:
        n = join(t, first, GONE)
        chosen = min(min(choose(t, FIRST, n, zero(size) + 1e30, slack), each), left)
        for i in range(chosen):
            store(t.whole, STATE + load(t.whole, FIRST + i), KEPT)
        left -= chosen
        first = leader(t, slack)
    retain(t)


@kernel
def put_list(t, origin, limit, size):
    """Write the remaining contact points to the manifold."""
    thin(t, size)
    for k in range(load(t.whole, COUNT)):
        gap, out = load(t.numbers, GAP + k), load(t.points, OUTWARD + k)
        put(t, limit, gap, -out, origin + load(t.points, POINT + k), load(t.whole, NAME + k))
