"""Friction in the pivoting method: bounds of tangent rows from their normals, updated from pass to pass."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum
from poise.solve.dantzig_tableau import INSIDE, OUTSIDE, multiplier, set_bounds


@kernel
def slides(t, i):
    """1 or −1 if tangent i is at the upper or lower bound that a normal in S sets, else 0."""
    k = load(t.tangent, i)
    if load(t.place, k) != OUTSIDE or load(t.place, load(t.normal, i)) != INSIDE:
        return 0
    return 1 if load(t.piece, k) == 3 * k + 2 else -1


@kernel
def couple(t):
    """Equations of sliding tangents, coupled with their normals, for the changes of λ_tangent; returns their number.

    λ of a sliding tangent is ±μ λ_normal. A change δ of tangents changes the normals by −T_nt δ, so that

        δ_i ± μ_i Σ_j T_nj δ_j = ±μ_i λ_n − λ_i

    With this solution the bounds of the next pass are those of the answer, as long as the same tangents slide.
    """
    c, across = 0, t.n_tangents + 1
    for i in range(t.n_tangents):
        if slides(t, i) != 0:
            store(t.slider, c, i)
            c += 1
    for a in range(c):
        i = load(t.slider, a)
        k, normal, reach = load(t.tangent, i), load(t.normal, i), load(t.mu, i) * slides(t, i)
        for b in range(c):
            entry = reach * load(t.T, normal * t.n + load(t.tangent, load(t.slider, b)))
            store(t.couple, a * across + b, entry + (1.0 if a == b else 0.0))
        store(t.couple, a * across + c, reach * load(t.x, normal) - load(t.y, k))
    return c


@kernel
def eliminate(buffer, c, across):
    """Solve c equations, right side last, by Gaussian elimination with partial pivoting; returns whether it worked."""
    for a in range(c):
        best = a
        for b in range(a + 1, c):
            if fabs(load(buffer, b * across + a)) > fabs(load(buffer, best * across + a)):
                best = b
        if fabs(load(buffer, best * across + a)) < 1e-6:
            return False
        for j in range(a, c + 1):
            above, below = load(buffer, a * across + j), load(buffer, best * across + j)
            store(buffer, a * across + j, below)
            store(buffer, best * across + j, above)
        for b in range(a + 1, c):
            factor = load(buffer, b * across + a) / load(buffer, a * across + a)
            if factor != 0.0:
                for j in range(a, c + 1):
                    store(buffer, b * across + j, load(buffer, b * across + j) - factor * load(buffer, a * across + j))
    for n in range(c):
        a = c - 1 - n
        value = load(buffer, a * across + c)
        for j in range(a + 1, c):
            value = value - load(buffer, a * across + j) * load(buffer, j * across + c)
        store(buffer, a * across + c, value / load(buffer, a * across + a))
    return True


@kernel
def foresee(t, ahead):
    """Predict λ of every tangent's normal after the change of sliding tangents, into `aim`; else its present value."""
    across = t.n_tangents + 1
    c = couple(t) if ahead else 0
    solved = c > 0 and eliminate(t.couple, c, across)
    sound = True
    for i in range(t.n_tangents):
        normal = load(t.normal, i)
        lam = multiplier(t, normal)
        if solved and load(t.place, normal) == INSIDE:
            for b in range(c):
                k = load(t.tangent, load(t.slider, b))
                lam = lam - load(t.T, normal * t.n + k) * load(t.couple, b * across + c)
            sound = sound and lam >= 0.0
        store(t.aim, i, lam)
    if not sound:
        for i in range(t.n_tangents):
            store(t.aim, i, multiplier(t, load(t.normal, i)))


@kernel
def widen_pyramids(t, ahead, share):
    """Move bounds of tangent rows by a share towards μ λ_normal, predicted or present; returns whether any changed."""
    moved = False
    foresee(t, ahead)
    for i in range(t.n_tangents):
        k = load(t.tangent, i)
        reach = load(t.mu, i) * maximum(load(t.aim, i), 0.0)
        before = load(t.right, 3 * k + 2)
        if fabs(reach - before) > 10.0 * load(t.noise, k):
            reach = before + share * (reach - before)
            set_bounds(t, k, -reach, reach)
            moved = True
            if load(t.place, k) == INSIDE:
                store(t.low, k, -reach)
                store(t.high, k, reach)
    return moved
