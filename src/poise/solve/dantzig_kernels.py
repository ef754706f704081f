"""Kernels of the pivoting method: rows are driven onto their laws one at a time, all others staying on theirs.

D. Baraff, "Fast contact force computation for nonpenetrating rigid bodies", SIGGRAPH 1994; R. W. Cottle and
G. B. Dantzig, "Complementary pivot theory of mathematical programming", 1968; seen as target manifolds: LIU, "Solving
with Complementarity Conditions". Every row is on a piece of its law's graph:

    upright piece   λ fixed, w free between `bottom` and `top`        the row is in N
    sloping piece   w = base − slope λ, λ free between `left`, `right` the row is in S

Inverses are kept as a symmetric tableau T, A swept on the rows in S (with their slopes on the diagonal):

    T_SS = −A_SS⁻¹      T_SN = A_SS⁻¹ A_SN      T_NN = A_NN − A_NS A_SS⁻¹ A_SN

so that pushing λ_d of a row outside S by t moves λ_S by −t T_Sd and all other w by t T_Nd (LIU eq. 15). A row that
enters or leaves S costs one sweep, n² multiplications. Since T_kd² ≤ T_kk T_dd for a semi-definite A, a row of N whose
w moves can always enter S; a d whose T_dd is nought moves nobody's w, and goes on until a row of S leaves or for ever:
then the rows contradict each other.

All is scaled to a unit diagonal: λ = D λ', w' = D w, D = 1/√A_ii.
"""

from __future__ import annotations

from math import inf

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Int, Real, View, load, store
from poise.kernel.scalars import fabs, maximum, minimum, sqrt

TABLEAU = View(
    "Tableau",
    n=Count,  # rows
    n_tangents=Count,  # tangent rows of pyramids
    limit=Count,  # sweeps and steps at most, besides n
    A=Real,  # (n n) scaled in place
    T=Real,  # (n n)
    b=Real,  # (n) scaled in place
    lo=Real,  # (n)
    hi=Real,  # (n)
    lam=Real,  # (n) in: where to start from; out: the answer, in the problem's own units
    unit=Real,  # (n) D
    x=Real,  # (n) λ of rows in S, w of others
    y=Real,  # (n) λ of rows outside S
    low=Real,  # (n) least x
    high=Real,  # (n) greatest x
    noise=Real,  # (n) a smaller w counts as rounding
    loose=Real,  # (n) a smaller w counts as nought where nothing can change it
    row=Real,  # (n) scratch
    change=Real,  # (n) scratch
    place=Int,  # (n) where a row is: see below
    piece=Int,  # (n) which piece it is on
    start=Int,  # (n) its first piece
    end=Int,  # (n) after its last piece
    turn=Int,  # (n) 0 rows without bounds, 1 others, 2 tangents: the order in which they are addressed
    left=Real,  # (pieces) least λ
    right=Real,  # (pieces) greatest λ
    top=Real,  # (pieces) w at the left end
    bottom=Real,  # (pieces) w at the right end
    slope=Real,  # (pieces) −dw/dλ ≥ 0; negative of upright pieces
    base=Real,  # (pieces) w at λ = 0
    tangent=Int,  # (tangents) row
    normal=Int,  # (tangents) row of its normal
    mu=Real,  # (tangents) scaled in place
    told=Int,  # (5) sweeps and steps, passes, conflicting, singular, stopped
)

WAITING, OUTSIDE, INSIDE, PARKED, GIVEN_UP = range(5)
"""Not addressed; N; S; on a sloping piece, but what it asks follows from S; contradicts S."""
STEPS, PASSES, CONFLICTING, SINGULAR, STOPPED = range(5)
NOUGHT = 1e-11
"""A pivot, of a unit diagonal, that is taken for nought."""
FRICTION_PASSES = 150
PASSES_AT_MOST = 12


@kernel
def sweep(t, k):
    """Take row k into the inverse, or out of it."""
    n = t.n
    pivot = load(t.T, k * n + k)
    inverse = 1.0 / pivot
    for l in range(n):
        store(t.row, l, load(t.T, k * n + l))
    for j in range(n):
        factor = load(t.row, j) * inverse
        if factor != 0.0 and j != k:
            for l in range(n):
                store(t.T, j * n + l, load(t.T, j * n + l) - factor * load(t.row, l))
    for j in range(n):
        value = load(t.row, j) * fabs(inverse)
        store(t.T, k * n + j, value)
        store(t.T, j * n + k, value)
    store(t.T, k * n + k, -inverse)
    store(t.told, STEPS, load(t.told, STEPS) + 1)


@kernel
def enter(t, k, piece):
    """Put row k, at λ = y, on a sloping piece: it joins S."""
    at = k * t.n + k
    store(t.T, at, load(t.T, at) + load(t.slope, piece))
    sweep(t, k)
    store(t.x, k, load(t.y, k))
    store(t.place, k, INSIDE)
    store(t.piece, k, piece)
    store(t.low, k, load(t.left, piece))
    store(t.high, k, load(t.right, piece))


@kernel
def leave(t, k, lam):
    """Take row k out of S; λ stays, w is free from now on."""
    n, piece = t.n, load(t.piece, k)
    slope = load(t.slope, piece)
    sweep(t, k)
    store(t.place, k, WAITING)
    store(t.y, k, lam)
    store(t.x, k, load(t.base, piece) - slope * lam)
    store(t.low, k, -inf)
    store(t.high, k, inf)
    if slope > 0.0:  # formed anew: taking the slope off again would cancel
        own = load(t.A, k * n + k)
        for j in range(n):
            if load(t.place, j) == INSIDE:
                own = own - load(t.A, k * n + j) * load(t.T, k * n + j)
        store(t.T, k * n + k, own)


@kernel
def rest(t, k, piece):
    """Put row k on an upright piece: it joins N."""
    store(t.place, k, OUTSIDE)
    store(t.piece, k, piece)
    store(t.low, k, load(t.bottom, piece))
    store(t.high, k, load(t.top, piece))


@kernel
def park(t, k, piece):
    """Leave row k on a sloping piece outside S. When its w would move, it enters."""
    store(t.place, k, PARKED)
    store(t.piece, k, piece)
    store(t.low, k, load(t.x, k))
    store(t.high, k, load(t.x, k))


@kernel
def move_on(t, k, piece, way):
    """Put row k, outside S, on the next piece of its law that is no mere point, to the right (1) or left (−1)."""
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
    """How far w of row k, outside S, is from its law at this λ: positive below the graph, where λ must grow."""
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
    """Put row k, which is on its law, on a piece: an upright one where it can be, since that costs nothing."""
    lam, w = load(t.y, k), load(t.x, k)
    chosen = -1
    for piece in range(load(t.start, k), load(t.end, k)):
        if load(t.left, piece) <= lam <= load(t.right, piece):
            if load(t.slope, piece) < 0.0:
                if load(t.bottom, piece) - slack <= w <= load(t.top, piece) + slack:
                    rest(t, k, piece)
                    return
            elif chosen < 0 or load(t.left, piece) < lam < load(t.right, piece):
                chosen = piece
    if chosen < 0:
        store(t.place, k, WAITING)
    elif load(t.T, k * t.n + k) + load(t.slope, chosen) > NOUGHT:
        enter(t, k, chosen)
    else:
        park(t, k, chosen)


@kernel
def own_step(t, k, way):
    """How far λ of row k can grow (1) or fall (−1) until it meets its law (landed) or a piece ends, and that piece."""
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
    """The row that comes to the end of its piece first when λ_d moves, and how far λ_d gets."""
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
    """Row k has come to the end of its piece, x growing (1) or falling (−1): put it on the next."""
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
    """Bring row d onto its law while all addressed rows stay on theirs (Baraff's drive-to-zero)."""
    n = t.n
    if load(t.place, d) == INSIDE:
        leave(t, d, load(t.x, d))
    store(t.place, d, WAITING)
    idle = 0
    while load(t.told, STEPS) < t.limit + n:
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
            store(t.told, CONFLICTING, 1)
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
def multiplier(t, j):
    """λ of row j."""
    return load(t.x, j) if load(t.place, j) == INSIDE else load(t.y, j)


@kernel
def fresh(t):
    """w of rows outside S anew. Of rows in S how far w is off their piece, to `row`; the largest, of `loose`."""
    n, worst = t.n, 0.0
    for j in range(n):
        store(t.row, j, load(t.b, j))
    for l in range(n):
        lam = multiplier(t, l)
        if lam != 0.0:
            for j in range(n):
                store(t.row, j, load(t.row, j) + load(t.A, l * n + j) * lam)
    for j in range(n):
        w, off = load(t.row, j), 0.0
        if load(t.place, j) == INSIDE:
            piece = load(t.piece, j)
            off = w - (load(t.base, piece) - load(t.slope, piece) * load(t.x, j))
        else:
            store(t.x, j, w)
            if load(t.place, j) == PARKED:
                store(t.low, j, w)
                store(t.high, j, w)
        store(t.row, j, off)
        worst = maximum(worst, fabs(off) / load(t.loose, j))
    return worst


@kernel
def refine(t):
    """Iterative refinement of λ_S; how far rows in S are still off, of `loose`."""
    n = t.n
    worst = fresh(t)
    for _ in range(3):
        if worst <= 1e-7:  # rounding
            break
        for j in range(n):
            store(t.change, j, 0.0)
        for l in range(n):
            off = load(t.row, l)
            if off != 0.0:
                for j in range(n):
                    store(t.change, j, load(t.change, j) + load(t.T, l * n + j) * off)
        for j in range(n):
            if load(t.place, j) == INSIDE:
                store(t.x, j, load(t.x, j) + load(t.change, j))
        before, worst = worst, fresh(t)
        if worst > 0.1 * before:
            break
    return worst


@kernel
def rebuild(t):
    """Sweep A anew on the rows in S, largest pivots first. Rows whose pivot is nought are parked."""
    n = t.n
    for l in range(n * n):
        store(t.T, l, load(t.A, l))
    waiting = 0
    for j in range(n):
        if load(t.place, j) == INSIDE:
            waiting += 1
            store(t.T, j * n + j, load(t.T, j * n + j) + load(t.slope, load(t.piece, j)))
            store(t.place, j, -1)
    for _ in range(waiting):
        best, k = NOUGHT, -1
        for j in range(n):
            if load(t.place, j) == -1 and load(t.T, j * n + j) > best:
                best, k = load(t.T, j * n + j), j
        if k < 0:
            break
        sweep(t, k)
        store(t.place, k, INSIDE)
    for j in range(n):
        if load(t.place, j) == -1:
            at = j * n + j
            store(t.T, at, load(t.T, at) - load(t.slope, load(t.piece, j)))
            store(t.y, j, load(t.x, j))
            park(t, j, load(t.piece, j))


@kernel
def set_bounds(t, k, lo, hi):
    """Three pieces: at the lower bound, between, at the upper bound."""
    first = 3 * k
    for piece in range(first, first + 3):
        upright = piece != first + 1
        store(t.left, piece, hi if piece == first + 2 else lo)
        store(t.right, piece, lo if piece == first else hi)
        store(t.top, piece, inf if piece == first else 0.0)
        store(t.bottom, piece, -inf if piece == first + 2 else 0.0)
        store(t.slope, piece, -1.0 if upright else 0.0)
        store(t.base, piece, 0.0)


@kernel
def widen_pyramids(t, share):
    """Bounds of tangent rows a share of the way to μ λ_normal as it stands; whether any of them was elsewhere."""
    moved = False
    for i in range(t.n_tangents):
        k = load(t.tangent, i)
        reach = load(t.mu, i) * maximum(multiplier(t, load(t.normal, i)), 0.0)
        before = load(t.right, 3 * k + 2)
        if fabs(reach - before) > 10.0 * load(t.noise, k):
            reach = before + share * (reach - before)
            set_bounds(t, k, -reach, reach)
            moved = True
            if load(t.place, k) == INSIDE:
                store(t.low, k, -reach)
                store(t.high, k, reach)
    return moved


@kernel
def scale(t):
    """Unit diagonal; pieces and bounds in scaled units. All rows wait, at the λ within bounds nearest to the given."""
    n = t.n
    for j in range(n):
        own = load(t.A, j * n + j)
        store(t.unit, j, 1.0 / sqrt(own) if own > 0.0 else 1.0)
    for j in range(n):
        unit = load(t.unit, j)
        for l in range(n):
            value = load(t.A, j * n + l) * unit * load(t.unit, l)
            store(t.A, j * n + l, value)
            store(t.T, j * n + l, value)
        store(t.b, j, load(t.b, j) * unit)
        if load(t.start, j) == 3 * j:
            set_bounds(t, j, load(t.lo, j) / unit, load(t.hi, j) / unit)
        else:
            scale_pieces(t, j, unit)
        lam = maximum(load(t.lam, j) / unit, load(t.left, load(t.start, j)))
        store(t.y, j, minimum(lam, load(t.right, load(t.end, j) - 1)))
        store(t.place, j, WAITING)
        store(t.low, j, -inf)
        store(t.high, j, inf)
    for i in range(t.n_tangents):
        ratio = load(t.unit, load(t.normal, i)) / load(t.unit, load(t.tangent, i))
        store(t.mu, i, load(t.mu, i) * ratio)
    for k in range(5):
        store(t.told, k, 0)


@kernel
def scale_pieces(t, j, unit):
    """Pieces of a law in scaled units."""
    for piece in range(load(t.start, j), load(t.end, j)):
        store(t.left, piece, load(t.left, piece) / unit)
        store(t.right, piece, load(t.right, piece) / unit)
        store(t.top, piece, load(t.top, piece) * unit)
        store(t.bottom, piece, load(t.bottom, piece) * unit)
        store(t.base, piece, load(t.base, piece) * unit)
        if load(t.slope, piece) > 0.0:
            store(t.slope, piece, load(t.slope, piece) * unit * unit)


@kernel
def set_noise(t):
    """What counts as rounding: a 1e-13th of the terms that a w is made of."""
    n, largest = t.n, 0.0
    for j in range(n):
        largest = maximum(largest, fabs(multiplier(t, j)))
    for j in range(n):
        terms = fabs(load(t.b, j)) + largest + 1e-280
        store(t.noise, j, 1e-13 * terms)
        store(t.loose, j, 1e-9 * terms)


@kernel
def can_shift(t, d, way):
    """Whether λ_d can move while every w stays and every λ of S keeps within its piece."""
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
    """Whether a row outside S could take over some of what rows in S do."""
    n = t.n
    for d in range(n):
        place, piece = load(t.place, d), load(t.piece, d)
        if load(t.T, d * n + d) <= NOUGHT:
            w, slack = load(t.x, d), load(t.loose, d)
            right = place == PARKED and load(t.y, d) < load(t.right, piece) - slack
            left = place == PARKED and load(t.y, d) > load(t.left, piece) + slack
            if place == OUTSIDE:
                right = piece + 1 < load(t.end, d) and w <= load(t.bottom, piece) + slack
                left = piece > load(t.start, d) and w >= load(t.top, piece) - slack
                right = right and load(t.right, piece + 1) > load(t.left, piece + 1)
                left = left and load(t.right, piece - 1) > load(t.left, piece - 1)
            if (right and can_shift(t, d, 1)) or (left and can_shift(t, d, -1)):
                return True
    return False


@kernel
def address(t, share):
    """Drive every row that is off its law, in order; whether there was one."""
    worked = False
    for turn in range(3):
        for d in range(t.n):
            if load(t.turn, d) == turn and load(t.told, STOPPED) == 0:
                place, noise = load(t.place, d), load(t.noise, d)
                if place == INSIDE:
                    beyond = load(t.x, d) < load(t.low, d) - noise or load(t.x, d) > load(t.high, d) + noise
                else:
                    beyond = place == WAITING or (place != GIVEN_UP and offside(t, d, noise) != 0.0)
                    if place == PARKED and beyond and load(t.T, d * t.n + d) <= NOUGHT:
                        beyond = fabs(offside(t, d, noise)) > load(t.loose, d)
                if beyond:
                    drive(t, d)
                    set_noise(t)
                    worked = True
        if turn == 1 and widen_pyramids(t, share):
            worked = True
    return worked


@kernel
def pivot(t):
    """Solve: passes over all rows until each is on its law, with refinement and, where that fails, a fresh tableau."""
    n = t.n
    scale(t)
    set_noise(t)
    fresh(t)
    passes = 0
    at_most = FRICTION_PASSES if t.n_tangents > 0 else PASSES_AT_MOST
    while passes < at_most and load(t.told, STOPPED) == 0:
        share = 1.0 if passes < 15 else 0.5 if passes < 60 else 0.2  # passes that swing are damped
        worked = address(t, share)
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
    for i in range(t.n_tangents):  # bounds were set from normals that have moved since, if only by rounding
        k, reach = load(t.tangent, i), load(t.mu, i) * maximum(load(t.lam, load(t.normal, i)), 0.0)
        store(t.lam, k, minimum(maximum(load(t.lam, k), -reach), reach))
    for j in range(n):
        store(t.lam, j, load(t.lam, j) * load(t.unit, j))


solve_tableau = entry(pivot, TABLEAU)
