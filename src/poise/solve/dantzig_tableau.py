"""The tableau of the pivoting method: rows enter and leave the inverse, w is recomputed, rows are scaled.

It is a symmetric matrix T, A swept on the rows in S (with the slopes of their pieces on the diagonal):

    T_SS = −A_SS⁻¹      T_SN = A_SS⁻¹ A_SN      T_NN = A_NN − A_NS A_SS⁻¹ A_SN

A row that enters or leaves S costs one sweep, n² multiplications (the sweep operator; a principal pivot, Cottle and
Dantzig 1968). Rows are scaled to a unit diagonal: λ = D λ', w' = D w, D = 1/√A_ii.
"""

from __future__ import annotations

from math import inf

from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Int, Real, View, load, store
from poise.kernel.scalars import fabs, maximum, minimum, sqrt

TABLEAU = View(
    "Tableau",
    n=Count,  # rows
    n_tangents=Count,  # tangent rows of pyramids
    limit=Count,  # most sweeps and steps in a pass
    A=Real,  # (n n) scaled in place
    T=Real,  # (n n)
    b=Real,  # (n) scaled in place
    lo=Real,  # (n)
    hi=Real,  # (n)
    lam=Real,  # (n) in: the start; out: the answer, in the problem's own units
    unit=Real,  # (n) D
    x=Real,  # (n) λ of rows in S, w of others
    y=Real,  # (n) λ of rows outside S
    low=Real,  # (n) least x
    high=Real,  # (n) greatest x
    noise=Real,  # (n) a smaller w counts as rounding
    loose=Real,  # (n) a smaller w counts as zero if nothing can change it
    row=Real,  # (n) scratch
    change=Real,  # (n) scratch
    place=Int,  # (n) state of a row: see below
    piece=Int,  # (n) which piece it is on
    start=Int,  # (n) its first piece
    end=Int,  # (n) after its last piece
    turn=Int,  # (n) 0 rows without bounds, 1 others, 2 tangents: the order in which they are addressed
    left=Real,  # (pieces) least λ
    right=Real,  # (pieces) greatest λ
    top=Real,  # (pieces) w at the left end
    bottom=Real,  # (pieces) w at the right end
    slope=Real,  # (pieces) −dw/dλ ≥ 0; negative for vertical pieces
    base=Real,  # (pieces) w at λ = 0
    tangent=Int,  # (tangents) row
    normal=Int,  # (tangents) row of its normal
    mu=Real,  # (tangents) scaled in place
    aim=Real,  # (tangents) predicted λ of its normal
    slider=Int,  # (tangents) those that slide
    couple=Real,  # (tangents · (tangents + 1)) their equations
    told=Int,  # (6) sweeps and steps, passes, conflicting, singular, stopped; step limit of this pass
)

WAITING, OUTSIDE, INSIDE, PARKED, GIVEN_UP = range(5)
"""Not addressed; N; S; on a sloping piece, but dependent on S; contradicts S."""
STEPS, PASSES, CONFLICTING, SINGULAR, STOPPED, LAST = range(6)
NOUGHT = 1e-11
"""A pivot, of a unit diagonal, below which it counts as zero."""


@kernel
def sweep(t, k):
    """Sweep row k into the inverse, or out of it."""
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
    """Remove row k from S; λ stays, and w is free."""
    n, piece = t.n, load(t.piece, k)
    slope = load(t.slope, piece)
    sweep(t, k)
    store(t.place, k, WAITING)
    store(t.y, k, lam)
    store(t.x, k, load(t.base, piece) - slope * lam)
    store(t.low, k, -inf)
    store(t.high, k, inf)
    if slope > 0.0:  # recomputed: to subtract the slope would cancel
        own = load(t.A, k * n + k)
        for j in range(n):
            if load(t.place, j) == INSIDE:
                own = own - load(t.A, k * n + j) * load(t.T, k * n + j)
        store(t.T, k * n + k, own)


@kernel
def rest(t, k, piece):
    """Put row k on a vertical piece: it joins N."""
    store(t.place, k, OUTSIDE)
    store(t.piece, k, piece)
    store(t.low, k, load(t.bottom, piece))
    store(t.high, k, load(t.top, piece))


@kernel
def park(t, k, piece):
    """Keep row k on a sloping piece outside S. It enters when its w would change."""
    store(t.place, k, PARKED)
    store(t.piece, k, piece)
    store(t.low, k, load(t.x, k))
    store(t.high, k, load(t.x, k))


@kernel
def multiplier(t, j):
    """λ of row j."""
    return load(t.x, j) if load(t.place, j) == INSIDE else load(t.y, j)


@kernel
def fresh(t):
    """Recompute w of rows outside S. For rows in S, write the residual to `row`; returns the largest, over `loose`."""
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
    """Iterative refinement of λ_S; returns the residual of rows in S, over `loose`."""
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
    """Sweep A again on the rows in S, largest pivots first. Rows with a zero pivot are parked."""
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
        best, k = NOUGHT, n
        for j in range(n):
            if load(t.place, j) == -1 and load(t.T, j * n + j) > best:
                best, k = load(t.T, j * n + j), j
        if k == n:
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
def set_noise(t):
    """Set the rounding level of each row: 1e-13 of the terms of its w."""
    n, largest = t.n, 0.0
    for j in range(n):
        largest = maximum(largest, fabs(multiplier(t, j)))
    for j in range(n):
        terms = fabs(load(t.b, j)) + largest + 1e-280
        store(t.noise, j, 1e-13 * terms)
        store(t.loose, j, 1e-9 * terms)


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
def scale(t):
    """Scale to a unit diagonal. All rows wait, at the given λ clamped to their bounds."""
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
        k, normal = load(t.tangent, i), load(t.normal, i)
        mu = load(t.mu, i) * load(t.unit, normal) / load(t.unit, k)
        reach = mu * maximum(load(t.y, normal), 0.0)
        store(t.mu, i, mu)
        set_bounds(t, k, -reach, reach)
        store(t.y, k, minimum(maximum(load(t.lam, k) / load(t.unit, k), -reach), reach))
    for k in range(6):
        store(t.told, k, 0)
