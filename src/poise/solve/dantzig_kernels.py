"""Kernels of the pivoting method: rows are driven onto their laws one at a time, while all others stay on theirs.

D. Baraff, "Fast contact force computation for nonpenetrating rigid bodies", SIGGRAPH 1994; R. W. Cottle and
G. B. Dantzig, "Complementary pivot theory of mathematical programming", 1968; as target manifolds: LIU, "Solving
with Complementarity Conditions". Every row is on a piece of its law's graph:

    vertical piece   λ fixed, w free between `bottom` and `top`             the row is in N
    sloping piece    w = base − slope λ, λ free from `left` to `right`      the row is in S

A change of λ_d by t, of a row outside S, changes λ_S by −t T_Sd and all other w by t T_Nd (LIU eq. 15; T:
`dantzig_tableau`). Since T_kd² ≤ T_kk T_dd for a semi-definite A, a row of N whose w changes can always enter S. A row
d with zero T_dd changes no w, and λ_d grows until a row of S leaves, or without bound: then rows contradict each other.
"""

from __future__ import annotations

from math import inf

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, minimum
from poise.solve.dantzig_pyramids import widen_pyramids
from poise.solve.dantzig_tableau import (
    CONFLICTING,
    GIVEN_UP,
    INSIDE,
    LAST,
    NOUGHT,
    OUTSIDE,
    PARKED,
    PASSES,
    SINGULAR,
    STEPS,
    STOPPED,
    TABLEAU,
    WAITING,
    enter,
    fresh,
    leave,
    multiplier,
    park,
    rebuild,
    refine,
    rest,
    scale,
    set_noise,
)

INDEFINITE = 1e-8
"""A pivot that is more negative than this shows that A is not semi-definite."""
FRICTION_PASSES = 150
FORESEEN = 12
"""Passes that predict normals. They may cycle if the set of sliding tangents keeps changing; plain passes then help."""
PASSES_AT_MOST = 12


@kernel
def move_on(t, k, piece, way):
    """Put row k, outside S, on the next piece of its law that is not a point, to the right (1) or left (−1)."""
    piece += way
    while load(t.start, k) <= piece < load(t.end, k):
        if load(t.slope, piece) < 0.0:
            rest(t, k, piece)
            return
        if load(t.right, piece) > load(t.left, piece):
            if load(t.T, k * t.n + k) + load(t.slope, piece) > NOUGHT:
                enter(t, k, piece)
            else:
                park(t, k, piece)
            return
        piece += way


@kernel
def offside(t, k, slack):
    """Distance of w of row k, outside S, from its law at this λ: positive below the graph, where λ must grow."""
    first, last = load(t.start, k), load(t.end, k) - 1
    lam, w = load(t.y, k), load(t.x, k)
    if lam < load(t.left, first):
        return inf
    if lam > load(t.right, last):
        return -inf
    least, greatest = inf, -inf
    for piece in range(first, last + 1):
        if load(t.left, piece) <= lam <= load(t.right, piece):
            if load(t.slope, piece) < 0.0:
                least = minimum(least, load(t.bottom, piece))
                greatest = maximum(greatest, load(t.top, piece))
            else:
                value = load(t.base, piece) - load(t.slope, piece) * lam
                least, greatest = minimum(least, value), maximum(greatest, value)
    if w < least - slack:
        return least - w
    if w > greatest + slack:
        return greatest - w
    return 0.0


@kernel
def settle(t, k, slack):
    """Put row k, which is on its law, on a piece: a vertical one if possible, since that costs nothing."""
    lam, w = load(t.y, k), load(t.x, k)
    end = load(t.end, k)
    chosen = end  # none
    for piece in range(load(t.start, k), end):
        if load(t.left, piece) <= lam <= load(t.right, piece):
            if load(t.slope, piece) < 0.0:
                if load(t.bottom, piece) - slack <= w <= load(t.top, piece) + slack:
                    rest(t, k, piece)
                    return
            elif chosen == end or load(t.left, piece) < lam < load(t.right, piece):
                chosen = piece
    if chosen == end:
        store(t.place, k, WAITING)
    elif load(t.T, k * t.n + k) + load(t.slope, chosen) > NOUGHT:
        enter(t, k, chosen)
    else:
        park(t, k, chosen)


@kernel
def own_step(t, k, way):
    """Largest growth (1) or decrease (−1) of λ of row k until it meets its law (landed) or a piece ends; that piece."""
    lam, w = load(t.y, k), load(t.x, k)
    first, last = load(t.start, k), load(t.end, k) - 1
    piece, final = (first, last) if way > 0 else (last, first)
    while piece != final:
        left, right = load(t.left, piece), load(t.right, piece)
        if load(t.slope, piece) < 0.0:
            if way > 0 and (left > lam or (left == lam and w >= load(t.bottom, piece))):
                break
            if way < 0 and (left < lam or (left == lam and w <= load(t.top, piece))):
                break
        elif (way > 0 and right > lam) or (way < 0 and left < lam):
            break
        piece += way
    if load(t.slope, piece) < 0.0:
        return maximum((load(t.left, piece) - lam) * way, 0.0), False, piece
    slope = load(t.slope, piece)
    own = load(t.T, k * t.n + k) + slope
    reach = (load(t.right, piece) - lam) if way > 0 else (lam - load(t.left, piece))
    if own > NOUGHT:
        step = maximum((load(t.base, piece) - slope * lam - w) * way / own, 0.0)
        if step <= reach:
            return step, True, piece
    return reach, False, piece


@kernel
def blocking(t, d, way, step, by_index):
    """The row that first reaches the end of its piece when λ_d changes, and the change of λ_d."""
    n = t.n
    best, rate_best, found = step, 0.0, -1
    for j in range(n):
        rate = load(t.T, d * n + j) * way
        place = load(t.place, j)
        if place == INSIDE:
            rate = -rate
        size = fabs(rate)
        if size > NOUGHT and place != WAITING and place != GIVEN_UP:
            end = load(t.high, j) if rate > 0.0 else load(t.low, j)
            reach = maximum((end - load(t.x, j)) / rate, 0.0)
            better = reach < best or (reach == best and size > rate_best and not by_index)
            if better and (place == INSIDE or load(t.T, j * n + j) > NOUGHT):
                best, rate_best, found = reach, size, j
    return best, found


@kernel
def turn_round(t, k, way):
    """Put row k, at the end of its piece with x growing (1) or decreasing (−1), on the next piece."""
    place, piece = load(t.place, k), load(t.piece, k)
    if place == INSIDE:
        leave(t, k, load(t.high, k) if way > 0 else load(t.low, k))
        move_on(t, k, piece, way)
    elif place == PARKED:
        enter(t, k, piece)
    else:
        store(t.x, k, load(t.high, k) if way > 0 else load(t.low, k))
        move_on(t, k, piece, -way)


@kernel
def drive(t, d):
    """Drive row d onto its law while all addressed rows stay on theirs (Baraff's drive-to-zero)."""
    n = t.n
    if load(t.place, d) == INSIDE:
        leave(t, d, load(t.x, d))
    store(t.place, d, WAITING)
    idle = 0
    while load(t.told, STEPS) < load(t.told, LAST):
        off = offside(t, d, load(t.noise, d))
        if off == 0.0:
            settle(t, d, load(t.noise, d))
            return
        way = 1 if off > 0.0 else -1
        if fabs(off) <= load(t.loose, d) and load(t.T, d * n + d) <= NOUGHT:
            settle(t, d, load(t.loose, d))
            return
        step, landed, piece = own_step(t, d, way)
        step, k = blocking(t, d, way, step, idle > 2 * n + 8)
        if step == inf:
            store(t.place, d, GIVEN_UP)
            definite = load(t.T, d * n + d) > -INDEFINITE
            store(t.told, CONFLICTING if definite else STOPPED, 1)  # else a ray proves nothing
            return
        idle = 0 if step > 0.0 else idle + 1
        rising = 1 if k >= 0 and (load(t.T, d * n + k) * way > 0.0) != (load(t.place, k) == INSIDE) else -1
        for j in range(n):
            change = way * step * load(t.T, d * n + j)
            store(t.x, j, load(t.x, j) + (-change if load(t.place, j) == INSIDE else change))
        store(t.y, d, load(t.y, d) + way * step)
        if k >= 0:
            turn_round(t, k, rising)
        elif landed:
            enter(t, d, piece)
            return
        else:
            store(t.y, d, load(t.right, piece) if way > 0 else load(t.left, piece))
        store(t.told, STEPS, load(t.told, STEPS) + 1)
    store(t.told, STOPPED, 1)


@kernel
def can_shift(t, d, way):
    """Whether λ_d can change while every w stays and every λ of S stays within its piece."""
    n = t.n
    for j in range(n):
        rate = -load(t.T, d * n + j) * way
        if load(t.place, j) == INSIDE and fabs(rate) > NOUGHT:
            end = load(t.high, j) if rate > 0.0 else load(t.low, j)
            if (end - load(t.x, j)) / rate <= load(t.loose, j):
                return False
    return True


@kernel
def other_answers(t):
    """Whether a row outside S could replace part of the multipliers in S: the answer is then not unique."""
    n = t.n
    for d in range(n):
        place, piece, slack = load(t.place, d), load(t.piece, d), load(t.loose, d)
        if load(t.T, d * n + d) <= NOUGHT and place in (PARKED, OUTSIDE):
            for way in range(-1, 2, 2):
                lam, w, beside = load(t.y, d), load(t.x, d), piece + way
                if place == PARKED:
                    free = lam < load(t.right, piece) - slack if way > 0 else lam > load(t.left, piece) + slack
                else:
                    free = w <= load(t.bottom, piece) + slack if way > 0 else w >= load(t.top, piece) - slack
                    free = free and load(t.start, d) <= beside < load(t.end, d)
                    free = free and load(t.right, beside) > load(t.left, beside)
                if free and can_shift(t, d, way):
                    return True
    return False


@kernel
def off_law(t, d):
    """Whether row d has to be driven. Rows that were given up are tried again, as others may have changed since."""
    place, noise = load(t.place, d), load(t.noise, d)
    if place == INSIDE:
        return load(t.x, d) < load(t.low, d) - noise or load(t.x, d) > load(t.high, d) + noise
    if place == PARKED and load(t.T, d * t.n + d) <= NOUGHT:
        noise = load(t.loose, d)
    return place in (WAITING, GIVEN_UP) or offside(t, d, noise) != 0.0


@kernel
def address(t, ahead, share):
    """Drive every row that is off its law, in order; returns whether anything changed."""
    worked = False
    store(t.told, CONFLICTING, 0)
    for turn in range(3):
        for d in range(t.n):
            if load(t.turn, d) == turn and load(t.told, STOPPED) == 0 and off_law(t, d):
                given_up, steps = load(t.place, d) == GIVEN_UP, load(t.told, STEPS)
                drive(t, d)
                set_noise(t)
                still = given_up and load(t.place, d) == GIVEN_UP
                worked = worked or not (still and load(t.told, STEPS) == steps)
        if turn == 1 and widen_pyramids(t, ahead, share):
            worked = True
    return worked


@kernel
def pivot(t):
    """Solve: passes over all rows until each is on its law, with refinement and, if that fails, a fresh tableau."""
    n = t.n
    scale(t)
    set_noise(t)
    fresh(t)
    passes = 0
    at_most = FRICTION_PASSES if t.n_tangents > 0 else PASSES_AT_MOST
    while passes < at_most and load(t.told, STOPPED) == 0:
        ahead = passes < FORESEEN
        share = 1.0 if passes < 2 * FORESEEN else 0.5 if passes < 60 else 0.2  # damps passes that oscillate
        store(t.told, LAST, load(t.told, STEPS) + t.limit)
        worked = address(t, ahead, share)
        passes += 1
        worst = refine(t)
        if worst > 1e-2:
            rebuild(t)
            refine(t)
        elif not worked:
            break
    store(t.told, PASSES, passes)
    if other_answers(t):
        store(t.told, SINGULAR, 1)
    for j in range(n):
        lam = multiplier(t, j)
        if load(t.place, j) == INSIDE:
            lam = minimum(maximum(lam, load(t.low, j)), load(t.high, j))
        store(t.lam, j, lam)
    for i in range(t.n_tangents):  # normals have changed since bounds were set, if only by rounding
        k, reach = load(t.tangent, i), load(t.mu, i) * maximum(load(t.lam, load(t.normal, i)), 0.0)
        store(t.lam, k, minimum(maximum(load(t.lam, k), -reach), reach))
    for j in range(n):
        store(t.lam, j, load(t.lam, j) * load(t.unit, j))


solve_tableau = entry(pivot, TABLEAU, lanes=False)
