"""Light sweeps with momentum over lanes of problems: kernels.

A sweep puts rows on their laws one after another, of a contact the normal row first, then both tangents at once as if
they were alike: no root is searched for, as no sweep has to be exact. What sweeps change is taken for a gradient, and
their way so far goes on by itself as a conjugate direction would (Silcowitz-Hansen, Niebe and Erleben 2010): that takes
a few sweeps where plain ones take many. Multipliers that go beyond their bounds that way come back in the next sweep.

A is symmetric: half of it is packed before the first sweep, as much as the nearest cache can hold.

A lane that a sweep hardly changes, or that is done, rests. Its bits do not depend on its neighbours'.
"""

from __future__ import annotations

from math import inf

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, select, spread, sqrt, zero
from poise.kernel.vec import Vec3
from poise.solve.local_kernels import clip, least
from poise.solve.newton_pieces import load_plain
from poise.solve.pgs_kernels import BOUNDED, CONE

REST = 0.5
"""Of the tolerance: what a row may lack before a sweep that is the last of its lane."""


@kernel
def prepare(p, n):
    """Half of A, its rows one after another without gaps; and what rows are to be divided by, inverted: of a cone its
    normal row, then both tangents.
    """
    at, stride = 0, load(p.stride, 0)
    for r in range(load(p.n_rows, 0)):
        for j in range(r + 1):
            store(n.matrix, at + j, load(p.a, r * stride + j))
        at += r + 1
    for k in range(load(p.n_blocks, 0)):
        kind, at = load(p.block_kind, k), load(p.block_start, k)
        if kind == CONE:
            a = load(p.local, k)
            store(n.right, at, 1.0 / a.xx)
            store(n.right, at + 1, 1.0 / maximum(a.yy, a.zz))
        else:
            store(n.right, at, 1.0 / load(p.scale, at))


@kernel
def speed(p, s, n, r):
    """W of a row: terms in the order of rows, so that blank ones between them change nothing; what the row before it
    has just changed comes last.
    """
    w, other = zero(load(p.b, r)), load(p.b, r)
    row = r * (r + 1) // 2
    at = row + r
    for j in range(r, load(p.n_rows, 0)):
        other = other + load(n.matrix, at) * load(s.lam, j)
        at += j + 1
    for j in range(r):
        w = w + load(n.matrix, row + j) * load(s.lam, j)
    return w + other


@kernel
def three_speeds(p, s, n, r):
    """W of three rows side by side. What the rows before them have just changed comes last."""
    one = r * (r + 1) // 2
    two, three = one + r + 1, one + 2 * r + 3
    x, y, z = load(p.b, r), load(p.b, r + 1), load(p.b, r + 2)
    at = three + 2 * r + 3
    for j in range(r + 3, load(p.n_rows, 0)):
        lam = load(s.lam, j)
        x = x + load(n.matrix, at) * lam
        y = y + load(n.matrix, at + 1) * lam
        z = z + load(n.matrix, at + 2) * lam
        at += j + 1
    lam = load_plain(s.lam, r)
    xy, xz, yz = load(n.matrix, two + r), load(n.matrix, three + r), load(n.matrix, three + r + 1)
    x = x + load(n.matrix, one + r) * lam.x + xy * lam.y + xz * lam.z
    y = y + xy * lam.x + load(n.matrix, two + r + 1) * lam.y + yz * lam.z
    z = z + xz * lam.x + yz * lam.y + load(n.matrix, three + r + 2) * lam.z
    u, v, w = zero(x), zero(x), zero(x)
    for j in range(r):
        lam = load(s.lam, j)
        u = u + load(n.matrix, one + j) * lam
        v = v + load(n.matrix, two + j) * lam
        w = w + load(n.matrix, three + j) * lam
    return Vec3(x + u, y + v, z + w)


@kernel
def press(p, s, n, k, at):
    """Multipliers that a cone wants: its normal row, then its tangents, as that leaves them."""
    a, mu = load(p.local, k), load(p.bound, k)
    old, w = load_plain(s.lam, at), three_speeds(p, s, n, at)
    normal = maximum(old.x - w.x * load(n.right, at), zero(mu))
    up, inverse = normal - old.x, load(n.right, at + 1)
    y, z = old.y - (w.y + a.xy * up) * inverse, old.z - (w.z + a.xz * up) * inverse
    size, reach = sqrt(y * y + z * z), mu * normal
    share = select(size > reach, reach / maximum(size, least(size)), zero(size) + 1.0)
    return Vec3(normal, y * share, z * share)


@kernel
def move(p, s, n, r, lam, resting):
    """A row to its new multiplier."""
    old = load(s.lam, r)
    change = select(resting, zero(old), lam - old)
    store(s.lam, r, old + change)
    store(n.change, r, change)


@kernel
def sweep_lightly(p, s, n, resting):
    """Put every row on its law."""
    for k in range(load(p.n_blocks, 0)):
        kind, at = load(p.block_kind, k), load(p.block_start, k)
        if kind == BOUNDED:
            lam = load(s.lam, at) - speed(p, s, n, at) * load(n.right, at)
            move(p, s, n, at, clip(lam, load(p.lo, at), load(p.hi, at)), resting)
        elif kind == CONE:
            lam = press(p, s, n, k, at)
            move(p, s, n, at, lam.x, resting)
            move(p, s, n, at + 1, lam.y, resting)
            move(p, s, n, at + 2, lam.z, resting)
        else:
            for r in range(at, load(p.block_start, k + 1)):
                store(n.change, r, zero(load(s.tolerance, 0)))


@kernel
def changed(p, n):
    """How much a sweep has changed: the sum of squares, each by its row's scale, and the most that a row lacked."""
    size, most = zero(load(p.scale, 0)), zero(load(p.scale, 0))
    for r in range(load(p.n_rows, 0)):
        change = load(n.change, r)
        lacked = load(p.scale, r) * change
        size, most = size + lacked * change, maximum(most, fabs(lacked))
    return size, most


@kernel
def go_on(p, s, n, share):
    """Add a share of the way so far to what a sweep has changed. Without a share, the way begins anew."""
    for r in range(load(p.n_rows, 0)):
        more = load(n.step, r) * share
        store(n.step, r, load(n.change, r) + more)
        store(s.lam, r, load(s.lam, r) + more)


@kernel
def glide(p, s, n, done, most):
    """Sweeps with momentum, `most` at most, in lanes that are not done. `prepare` has been there."""
    none = zero(load(s.tolerance, 0))
    before = spread(inf, none)
    for r in range(load(p.n_rows, 0)):
        store(n.step, r, none)
    resting, sweeps = done, 0
    while sweeps < most and any_lane(~resting):
        sweep_lightly(p, s, n, resting)
        count = load(s.sweeps, 0)
        store(s.sweeps, 0, select(resting, count, count + 1.0))
        size, lacked = changed(p, n)
        resting = resting | (lacked <= REST * load(s.tolerance, 0))
        sweeps += 1
        if sweeps < most:
            share = size / maximum(before, least(size))
            go_on(p, s, n, select((share < 1.0) & ~resting, share, none))
        before = size
