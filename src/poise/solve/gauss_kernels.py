"""Gaussian elimination of the lines of a Newton step: kernels.

Four lines at a time are subtracted from the others, of which four are read and written at once. There is no pivoting:
softness keeps the pivots away from zero.
"""

from __future__ import annotations

from poise.kernel.buffers import GROUP
from poise.kernel.jit import kernel
from poise.kernel.memory import group_size, load, load_group, store, store_group, sum_group
from poise.kernel.scalars import fabs, select, zero
from poise.solve.block_kernels import least

FOUR = 4
"""Lines that are subtracted from others at once."""


@kernel
def inverse_of(pivot):
    """1 / pivot; 1 for a zero pivot."""
    return 1.0 / select(fabs(pivot) > least(pivot), pivot, zero(pivot) + 1.0)


@kernel
def take_away(n, i, k, first, across):
    """Subtract a multiple of line k, whose pivot is inverted, from line i."""
    at, x = i * across, k * across
    share = load(n.matrix, at + k) * load(n.matrix, x + k)
    for j in range(first, across, group_size(n.matrix)):
        store_group(n.matrix, at + j, load_group(n.matrix, at + j) - share * load_group(n.matrix, x + j))


@kernel
def factor_few(n, k, end, first, across):
    """Eliminate lines from k on, fewer than four: each is subtracted from those after it."""
    for i in range(k, end):
        store(n.matrix, i * across + i, inverse_of(load(n.matrix, i * across + i)))
        for j in range(i + 1, end):
            take_away(n, j, i, first, across)


@kernel
def factor_four(n, k, first, across):
    """Eliminate lines k to k + 3: each is subtracted from those after it. Their own 4 × 4 block is factored first, so
    that no line waits for another one to be written.
    """
    m, x, y, z, w = n.matrix, k * across, (k + 1) * across, (k + 2) * across, (k + 3) * across
    a, b, c = load(m, x + k + 1), load(m, x + k + 2), load(m, x + k + 3)
    one = inverse_of(load(m, x + k))
    p = load(m, y + k) * one
    two = inverse_of(load(m, y + k + 1) - p * a)
    d, e = load(m, y + k + 2) - p * b, load(m, y + k + 3) - p * c
    q = load(m, z + k) * one
    r = (load(m, z + k + 1) - q * a) * two
    three = inverse_of(load(m, z + k + 2) - q * b - r * d)
    f = load(m, z + k + 3) - q * c - r * e
    s = load(m, w + k) * one
    t = (load(m, w + k + 1) - s * a) * two
    u = (load(m, w + k + 2) - s * b - t * d) * three
    four = inverse_of(load(m, w + k + 3) - s * c - t * e - u * f)
    for j in range(first, across, group_size(m)):
        i = load_group(m, x + j)
        g = load_group(m, y + j) - p * i
        h = load_group(m, z + j) - q * i - r * g
        store_group(m, y + j, g)
        store_group(m, z + j, h)
        store_group(m, w + j, load_group(m, w + j) - s * i - t * g - u * h)
    store(m, x + k, one)
    store(m, y + k + 1, two)
    store(m, z + k + 2, three)
    store(m, w + k + 3, four)


@kernel
def shares(n, at, k, x, y, z, w):
    """Multiples of lines k to k + 3 to subtract from a line."""
    a = load(n.matrix, at + k) * load(n.matrix, x + k)
    b = (load(n.matrix, at + k + 1) - a * load(n.matrix, x + k + 1)) * load(n.matrix, y + k + 1)
    c = load(n.matrix, at + k + 2) - a * load(n.matrix, x + k + 2) - b * load(n.matrix, y + k + 2)
    c = c * load(n.matrix, z + k + 2)
    d = load(n.matrix, at + k + 3) - a * load(n.matrix, x + k + 3) - b * load(n.matrix, y + k + 3)
    return a, b, c, (d - c * load(n.matrix, z + k + 3)) * load(n.matrix, w + k + 3)


@kernel
def even_shares(n, i, k, x, y, z, w):
    """The same for line i of the symmetric part, from the entries right of the pivots."""
    m = n.matrix
    a, b = load(m, x + i) * load(m, x + k), load(m, y + i) * load(m, y + k + 1)
    return a, b, load(m, z + i) * load(m, z + k + 2), load(m, w + i) * load(m, w + k + 3)


@kernel
def take_four(n, i, last, k, first, across, even):
    """Subtract lines k to k + 3 from four lines, where lines beyond the last repeat the last one. All are read and
    written once.
    """
    m, x, y, z, w = n.matrix, k * across, (k + 1) * across, (k + 2) * across, (k + 3) * across
    at, to, by, on = i * across, min(i + 1, last) * across, min(i + 2, last) * across, min(i + 3, last) * across
    if even:
        a, b, c, d = even_shares(n, i, k, x, y, z, w)
        e, f, g, h = even_shares(n, min(i + 1, last), k, x, y, z, w)
        p, q, r, s = even_shares(n, min(i + 2, last), k, x, y, z, w)
        t, u, v, o = even_shares(n, min(i + 3, last), k, x, y, z, w)
    else:
        a, b, c, d = shares(n, at, k, x, y, z, w)
        e, f, g, h = shares(n, to, k, x, y, z, w)
        p, q, r, s = shares(n, by, k, x, y, z, w)
        t, u, v, o = shares(n, on, k, x, y, z, w)
    for j in range(first, across, group_size(m)):
        one, two = load_group(m, x + j), load_group(m, y + j)
        three, four = load_group(m, z + j), load_group(m, w + j)
        left = load_group(m, at + j) - a * one - b * two - c * three - d * four
        other = load_group(m, to + j) - e * one - f * two - g * three - h * four
        third = load_group(m, by + j) - p * one - q * two - r * three - s * four
        fourth = load_group(m, on + j) - t * one - u * two - v * three - o * four
        store_group(m, at + j, left)
        store_group(m, to + j, other)
        store_group(m, by + j, third)
        store_group(m, on + j, fourth)


@kernel
def eliminate(n):
    """Solve the system without pivoting: softness keeps the pivots away from zero. Steps are written to `known`.

    Lines begin and end at whole groups: entries left of a pivot are no longer read, and may have any value. Of the
    symmetric lines, entries left of the group of their diagonal are never read.
    """
    active, even, across = load(n.n_active, 0), load(n.n_even, 0), load(n.across, 0)
    for k in range(0, active, FOUR):
        end, first = k + FOUR, k // GROUP * GROUP
        if end > active:
            factor_few(n, k, active, first, across)
        else:
            factor_four(n, k, first, across)
            for i in range(end, even, FOUR):
                take_four(n, i, even - 1, k, i // GROUP * GROUP, across, True)
            for i in range(max(end, even), active, FOUR):
                take_four(n, i, active - 1, k, first, across, False)
    for k in range(active):
        store(n.right, k, load(n.matrix, k * across + active))
    few = GROUP
    if n.lanes > 1:  # sums do not depend on the places of rows: neighbours have blank rows between
        few = max(active, 1)
    for back in range((active - 1) // few + 1):
        first = (active - 1) // few * few - back * few
        solve_back(n, first, min(first + few, active), across)


@kernel
def solve_back(n, first, end, across):
    """Back substitution of a few lines, the last one first; steps of later lines are known."""
    active = load(n.n_active, 0)
    for k in range(first, end):
        if end < active:
            sum = load_group(n.matrix, k * across + end) * load_group(n.known, end)
            for j in range(end + group_size(n.known), active, group_size(n.known)):
                sum = sum + load_group(n.matrix, k * across + j) * load_group(n.known, j)
            store(n.right, k, load(n.right, k) - sum_group(n.known, sum))
    for down in range(end - first):
        k = end - 1 - down
        step = load(n.right, k)
        for back in range(down):
            step = step - load(n.matrix, k * across + end - 1 - back) * load(n.known, end - 1 - back)
        step = step * load(n.matrix, k * across + k)
        store(n.known, k, step)
    if end == active:
        for k in range(group_size(n.known) - 1):  # the last group is full
            store(n.known, end + k, zero(load(n.known, 0)))
