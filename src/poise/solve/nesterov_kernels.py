"""Accelerated PGS: projected Gauss-Seidel sweeps with Nesterov's momentum over lanes of problems: kernels.

A sweep puts rows on their laws one after another; for a contact the normal row first, then both tangents at once with
one scale for both; for a ball all rows at once. There is no root search, as no sweep has to be exact. Sweeps come in
pairs, forward over all rows and backward. The sums over the rows before a row are kept from the forward sweep, those
over the rows after it from the backward sweep: a pair takes as many products as one sweep from scratch
(Conrad and Wallach 1979).

The change by a pair is a gradient step, and momentum repeats a growing share of the displacement since the last pair
(Nesterov 1983): this takes a few pairs where plain sweeps take many. Momentum restarts when a pair reverses the
displacement (O'Donoghue and Candès 2015). Multipliers that momentum moves beyond their bounds return in the next sweep.

A is symmetric: one half is packed before the first sweep, so that more of it fits into the nearest cache.

A lane rests when a pair hardly changes it, or when it is done. Its bits do not depend on its neighbours'.
"""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store, store_where
from poise.kernel.scalars import any_lane, fabs, maximum, select, sqrt, zero
from poise.kernel.vec import Vec3
from poise.solve.active_set_kernels import load_plain
from poise.solve.block_kernels import clip, in_ball
from poise.solve.pgs_kernels import BALL, BOUNDED, CONE, radius_of

REST = 0.7
"""Share of the tolerance: the largest change by a pair of sweeps after which a lane rests."""
FURTHER = 0.4
"""Share of a pair's change by which multipliers are extrapolated."""


@kernel
def prepare(p, n):
    """Pack one half of A, row after row without gaps, and invert the divisors of rows: for a cone those of its normal
    row and of both tangents; for a ball a bound on its eigenvalues (Gershgorin's).
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
        elif kind == BALL:
            a = load(p.local, k)
            xy, xz, yz = fabs(a.xy), fabs(a.xz), fabs(a.yz)
            most = maximum(a.xx + (xy + xz), maximum(a.yy + (xy + yz), a.zz + (xz + yz)))
            store(n.right, at, 1.0 / most)
        else:
            store(n.right, at, 1.0 / load(p.scale, at))


# ---- contributions of other rows to w --------------------------------------------------------------------------------
# Sums run over rows one after another, the nearest last: the row that has just changed is added at the end, and blank
# rows between change nothing. Sums of several rows at once have the same bits as one by one.


@kernel
def above_one(s, n, r, first, end, x):
    """Add the contribution of some rows before row r to its w."""
    row = r * (r + 1) // 2
    for j in range(first, end):
        x = x + load(n.matrix, row + j) * load(s.lam, j)
    return x


@kernel
def above_three(s, n, r, first, end, w):
    """Add the contribution of some rows before three rows to their w."""
    one = r * (r + 1) // 2
    two, three = one + r + 1, one + 2 * r + 3
    x, y, z = w.x, w.y, w.z
    for j in range(first, end):
        lam = load(s.lam, j)
        x = x + load(n.matrix, one + j) * lam
        y = y + load(n.matrix, two + j) * lam
        z = z + load(n.matrix, three + j) * lam
    return Vec3(x, y, z)


@kernel
def above_six(s, n, r, none):
    """Contribution of the rows before six rows to their w, as two vectors."""
    one = r * (r + 1) // 2
    two, three = one + r + 1, one + 2 * r + 3
    four, five, six = three + r + 3, three + 2 * r + 7, three + 3 * r + 12
    a, b, c, d, e, f = none, none, none, none, none, none
    for j in range(r):
        lam = load(s.lam, j)
        a = a + load(n.matrix, one + j) * lam
        b = b + load(n.matrix, two + j) * lam
        c = c + load(n.matrix, three + j) * lam
        d = d + load(n.matrix, four + j) * lam
        e = e + load(n.matrix, five + j) * lam
        f = f + load(n.matrix, six + j) * lam
    return Vec3(a, b, c), Vec3(d, e, f)


@kernel
def below_one(s, n, r, first, end, x):
    """Add the contribution of some rows after row r to its w."""
    at = end * (end + 1) // 2 + r
    for j in range(end - first):
        at -= end - j
        x = x + load(n.matrix, at) * load(s.lam, end - 1 - j)
    return x


@kernel
def below_three(s, n, r, first, end, w):
    """Add the contribution of some rows after three rows to their w."""
    x, y, z, at = w.x, w.y, w.z, end * (end + 1) // 2 + r
    for j in range(end - first):
        at -= end - j
        lam = load(s.lam, end - 1 - j)
        x = x + load(n.matrix, at) * lam
        y = y + load(n.matrix, at + 1) * lam
        z = z + load(n.matrix, at + 2) * lam
    return Vec3(x, y, z)


@kernel
def below_six(s, n, r, end, none):
    """Contribution of the rows after six rows to their w, as two vectors."""
    a, b, c, d, e, f = none, none, none, none, none, none
    at = end * (end + 1) // 2 + r
    for j in range(end - r - 6):
        at -= end - j
        lam = load(s.lam, end - 1 - j)
        a = a + load(n.matrix, at) * lam
        b = b + load(n.matrix, at + 1) * lam
        c = c + load(n.matrix, at + 2) * lam
        d = d + load(n.matrix, at + 3) * lam
        e = e + load(n.matrix, at + 4) * lam
        f = f + load(n.matrix, at + 5) * lam
    return Vec3(a, b, c), Vec3(d, e, f)


@kernel
def are(p, k, number, kind):
    """Whether `number` blocks from k on are of a kind."""
    alike = k >= 0 and k + number <= load(p.n_blocks, 0)
    for i in range(k, k + number):
        alike = alike and load(p.block_kind, i) == kind
    return alike


@kernel
def within_cone(n, r, lam):
    """Contribution of the rows of a cone or a ball to each other."""
    first = r * (r + 1) // 2 + r
    second, third = first + r + 1, first + 2 * r + 3
    xy, xz, yz = load(n.matrix, second), load(n.matrix, third), load(n.matrix, third + 1)
    return Vec3(
        load(n.matrix, first) * lam.x + xy * lam.y + xz * lam.z,
        xy * lam.x + load(n.matrix, second + 1) * lam.y + yz * lam.z,
        xz * lam.x + yz * lam.y + load(n.matrix, third + 2) * lam.z,
    )


@kernel
def store_plain(buffer, at, number):
    """Store a number for each row of a cone or a ball."""
    store(buffer, at, number.x)
    store(buffer, at + 1, number.y)
    store(buffer, at + 2, number.z)


# ---- sweeps ----------------------------------------------------------------------------------------------------------


@kernel
def settle_row(p, s, n, r, known, pushed):
    """Put a bounded row on its law. The contribution of other rows has two parts: `pushed` is available late."""
    lam, inverse = load(s.lam, r), load(n.right, r)
    own = load(p.b, r) + load(n.matrix, r * (r + 3) // 2) * lam + known
    store(s.lam, r, clip((lam - own * inverse) - pushed * inverse, load(p.lo, r), load(p.hi, r)))


@kernel
def settle_cone(p, s, n, k, r, known, pushed):
    """Put the normal row of a cone on its law, then its tangents, with the normal's change included."""
    a, mu, lam, inverse = load(p.local, k), load(p.bound, k), load_plain(s.lam, r), load(n.right, r + 1)
    w = (load_plain(p.b, r) + within_cone(n, r, lam) + known) + pushed
    up = maximum(w.x * -load(n.right, r), -lam.x)
    y, z = (lam.y - w.y * inverse) - (a.xy * inverse) * up, (lam.z - w.z * inverse) - (a.xz * inverse) * up
    normal, square = lam.x + up, y * y + z * z
    reach = mu * normal
    share = select(square > reach * reach, reach / sqrt(square), zero(reach) + 1.0)
    store_plain(s.lam, r, Vec3(normal, y * share, z * share))


@kernel
def settle_ball(p, s, n, k, r, known, pushed):
    """Take a gradient step of the rows of a ball, projected onto its present radius."""
    lam = load_plain(s.lam, r)
    w = (load_plain(p.b, r) + within_cone(n, r, lam) + known) + pushed
    store_plain(s.lam, r, in_ball(lam - w * load(n.right, r), radius_of(p, s, k)))


@kernel
def row_down(p, s, n, r, above, settle):
    """Store the contribution of rows before a row; with `settle`, put it on its law."""
    store(n.above, r, above)
    if settle:
        settle_row(p, s, n, r, load(n.below, r), above)


@kernel
def row_up(p, s, n, r, below, settle):
    """Store the contribution of rows after a row; with `settle`, put it on its law."""
    store(n.below, r, below)
    if settle:
        settle_row(p, s, n, r, load(n.above, r), below)


@kernel
def cone_down(p, s, n, k, r, above, settle):
    """Store the contribution of rows before a cone; with `settle`, put it on its law."""
    store_plain(n.above, r, above)
    if settle:
        settle_cone(p, s, n, k, r, load_plain(n.below, r), above)


@kernel
def cone_up(p, s, n, k, r, below, settle):
    """Store the contribution of rows after a cone; with `settle`, put it on its law."""
    store_plain(n.below, r, below)
    if settle:
        settle_cone(p, s, n, k, r, load_plain(n.above, r), below)


@kernel
def ball_down(p, s, n, k, r, above, settle):
    """Store the contribution of rows before a ball; with `settle`, put it on its law."""
    store_plain(n.above, r, above)
    if settle:
        settle_ball(p, s, n, k, r, load_plain(n.below, r), above)


@kernel
def ball_up(p, s, n, k, r, below, settle):
    """Store the contribution of rows after a ball; with `settle`, put it on its law."""
    store_plain(n.below, r, below)
    if settle:
        settle_ball(p, s, n, k, r, load_plain(n.above, r), below)


@kernel
def go_down(p, s, n, settle):
    """Contributions of rows before each row, the first row first; with `settle`, put every row on its law."""
    none, k = zero(load(s.tolerance, 0)), 0
    while k < load(p.n_blocks, 0):
        kind, r, number = load(p.block_kind, k), load(p.block_start, k), 1
        if are(p, k, 3, BOUNDED):
            above, number = above_three(s, n, r, 0, r, Vec3(none, none, none)), 3
            row_down(p, s, n, r, above.x, settle)
            row_down(p, s, n, r + 1, above_one(s, n, r + 1, r, r + 1, above.y), settle)
            row_down(p, s, n, r + 2, above_one(s, n, r + 2, r, r + 2, above.z), settle)
        elif kind == BOUNDED:
            row_down(p, s, n, r, above_one(s, n, r, 0, r, none), settle)
        elif are(p, k, 2, CONE):
            number = 2
            above, second = above_six(s, n, r, none)
            cone_down(p, s, n, k, r, above, settle)
            cone_down(p, s, n, k + 1, r + 3, above_three(s, n, r + 3, r, r + 3, second), settle)
        elif kind == CONE:
            cone_down(p, s, n, k, r, above_three(s, n, r, 0, r, Vec3(none, none, none)), settle)
        elif kind == BALL:
            ball_down(p, s, n, k, r, above_three(s, n, r, 0, r, Vec3(none, none, none)), settle)
        elif not settle:
            for i in range(r, load(p.block_start, k + 1)):
                store(n.above, i, above_one(s, n, i, 0, i, none))
        k += number


@kernel
def go_up(p, s, n, settle):
    """Contributions of rows after each row, the last row first; with `settle`, put every row on its law."""
    none, k, end = zero(load(s.tolerance, 0)), load(p.n_blocks, 0) - 1, load(p.n_rows, 0)
    while k >= 0:
        kind, r, number = load(p.block_kind, k), load(p.block_start, k), 1
        if are(p, k - 2, 3, BOUNDED):
            below, number = below_three(s, n, r - 2, r + 1, end, Vec3(none, none, none)), 3
            row_up(p, s, n, r, below.z, settle)
            row_up(p, s, n, r - 1, below_one(s, n, r - 1, r, r + 1, below.y), settle)
            row_up(p, s, n, r - 2, below_one(s, n, r - 2, r - 1, r + 1, below.x), settle)
        elif kind == BOUNDED:
            row_up(p, s, n, r, below_one(s, n, r, r + 1, end, none), settle)
        elif are(p, k - 1, 2, CONE):
            number = 2
            first, below = below_six(s, n, r - 3, end, none)
            cone_up(p, s, n, k, r, below, settle)
            cone_up(p, s, n, k - 1, r - 3, below_three(s, n, r - 3, r, r + 3, first), settle)
        elif kind == CONE:
            cone_up(p, s, n, k, r, below_three(s, n, r, r + 3, end, Vec3(none, none, none)), settle)
        elif kind == BALL:
            ball_up(p, s, n, k, r, below_three(s, n, r, r + 3, end, Vec3(none, none, none)), settle)
        elif not settle:
            for i in range(r, load(p.block_start, k + 1)):
                store(n.below, i, below_one(s, n, i, i + 1, end, none))
        k -= number


@kernel
def weigh(p, s, n):
    """W of all rows, and contributions of the rows after each. `prepare` must run before."""
    go_down(p, s, n, False)
    go_up(p, s, n, False)
    for k in range(load(p.n_blocks, 0)):
        r, end = load(p.block_start, k), load(p.block_start, k + 1)
        if load(p.block_kind, k) in (CONE, BALL):
            w = load_plain(p.b, r) + within_cone(n, r, load_plain(s.lam, r))
            store_plain(s.w, r, w + load_plain(n.above, r) + load_plain(n.below, r))
        else:
            for i in range(r, end):
                w = load(p.b, i) + load(n.matrix, i * (i + 3) // 2) * load(s.lam, i)
                store(s.w, i, w + load(n.above, i) + load(n.below, i))


# ---- momentum --------------------------------------------------------------------------------------------------------


@kernel
def begin(p, s, n):
    """Initialize the momentum to zero."""
    for r in range(load(p.n_rows, 0)):
        lam, below = load(s.lam, r), load(n.below, r)
        store(n.start, r, lam)
        store(n.last, r, lam)
        store(n.below_start, r, below)
        store(n.below_last, r, below)


@kernel
def changed(p, s, n):
    """The largest scaled change by a pair, and the scalar product of the changes with the displacement since the last
    pair, each product with its row's scale.
    """
    none = zero(load(s.tolerance, 0))
    most, along, alongs = none, none, Vec3(none, none, none)
    for k in range(load(p.n_blocks, 0)):
        kind, r = load(p.block_kind, k), load(p.block_start, k)
        if kind == BOUNDED:
            lam = load(s.lam, r)
            lacked = load(p.scale, r) * (lam - load(n.start, r))
            most, along = maximum(most, fabs(lacked)), along + lacked * (lam - load(n.last, r))
        elif kind in (CONE, BALL):
            lam, scale = load_plain(s.lam, r), load_plain(p.scale, r)
            change, way = lam - load_plain(n.start, r), lam - load_plain(n.last, r)
            x, y, z = scale.x * change.x, scale.y * change.y, scale.z * change.z
            alongs = Vec3(alongs.x + x * way.x, alongs.y + y * way.y, alongs.z + z * way.z)
            most = maximum(maximum(most, fabs(x)), maximum(fabs(y), fabs(z)))
    return most, along + (alongs.x + (alongs.y + alongs.z))


@kernel
def go_on(p, here, start, last, share):
    """Extrapolate a pair's change, and add a share of the displacement since the last pair, for the next start."""
    for r in range(load(p.n_rows, 0)):
        now = load(here, r)
        further = now + ((now - load(start, r)) * FURTHER + (now - load(last, r)) * share)
        store(here, r, further)
        store(start, r, further)
        store(last, r, now)


@kernel
def put_aside(p, s, n, mask):
    """Save the multipliers of some lanes: sweeps also change resting lanes."""
    for r in range(load(p.n_rows, 0)):
        store_where(n.swept, r, load(s.lam, r), mask)


@kernel
def glide(p, s, n, done, most):
    """Accelerated sweeps, at most `most`, in lanes that are not done. `prepare` and `weigh` must run before.

    The effect of momentum on w needs no products: it is the same combination of the stored contributions.
    """
    begin(p, s, n)
    done = done | (load(s.sweeps, 0) >= load(s.most_sweeps, 0))
    put_aside(p, s, n, done)
    tolerance = REST * load(s.tolerance, 0)
    none, resting, sweeps = zero(tolerance), done, 0
    pairs, share = none, none
    while sweeps < most and any_lane(~resting):
        if sweeps > 0:
            go_on(p, s.lam, n.start, n.last, share)
            go_on(p, n.below, n.below_start, n.below_last, share)
        go_down(p, s, n, True)
        go_up(p, s, n, True)
        sweeps += 2
        count = load(s.sweeps, 0)
        store(s.sweeps, 0, select(resting, count, count + 2.0))
        lacked, along = changed(p, s, n)
        ends = (lacked <= tolerance) | (load(s.sweeps, 0) >= load(s.most_sweeps, 0))
        if any_lane(~resting & ends):
            put_aside(p, s, n, ~resting)
            resting = resting | ends
        pairs = select(along >= 0.0, pairs + 1.0, none)
        share = pairs / (pairs + 2.0)
    put_aside(p, s, n, ~resting)
    for r in range(load(p.n_rows, 0)):
        store(s.lam, r, load(n.swept, r))
