"""Preparation of many worlds before a step: controls set motor parameters, and similar worlds are grouped."""

from __future__ import annotations

from poise.constraints.emit_rows import N_KINDS
from poise.constraints.row_store import CONTACT, SINGLE
from poise.formulations.lanes.batch_kernels import RECORDS
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Index, Real, View, load, store
from poise.kernel.scalars import maximum, minimum

FINE = -1
MOST_ALIKE = 127
"""Numbers of contacts, and of rows of joints, above which worlds count as similar."""

CONTROLS = View(
    "Controls",
    n=Count,
    motors=Count,
    values=Real,  # (n · motors) assigned controls
    applied=Real,  # (n · motors) controls that motors have
    low=Real,  # (motors)
    high=Real,
    gain=Real,
    offset=Real,
    column=Index,  # of a record, of the number that a control sets; −1 if it sets none
    # further numbers that controls set
    n_further=Count,
    further_motor=Index,
    further_column=Index,
    further_gain=Real,
    further_offset=Real,
)

ORDERING = View(
    "Ordering",
    n=Count,
    lanes=Count,
    room=Count,  # capacity of the order: full groups
    worlds=Index,  # (n) sorted by the first key
    place=Index,  # (MOST_ALIKE + 2) index of the next world for each number
)


@kernel
def set_further(d, w, world, k, within):
    """Numbers of motor k that its control sets besides the first."""
    for n in range(w.n_further):
        if load(w.further_motor, n) == k:
            number = within * load(w.further_gain, n) + load(w.further_offset, n)
            store(d.numbers, world * d.size + load(w.further_column, n), number)


@kernel
def apply_controls(d, w):
    """Set the parameters of motors whose controls have changed, and mark worlds with non-finite controls as diverged.
    Returns a motor without control that was given one, or FINE.
    """
    for world in range(w.n):
        first = world * w.motors
        for k in range(w.motors):
            wanted = load(w.values, first + k)
            if wanted != load(w.applied, first + k):
                column = load(w.column, k)
                if column < 0:
                    return k
                if wanted - wanted == 0.0:
                    store(w.applied, first + k, wanted)
                    within = minimum(maximum(wanted, load(w.low, k)), load(w.high, k))
                    store(d.numbers, world * d.size + column, within * load(w.gain, k) + load(w.offset, k))
                    if w.n_further > 0:
                        set_further(d, w, world, k, within)
                else:
                    store(d.lost, world, 1)
    return FINE


@kernel
def state_is_finite(d, o):
    """1 where the state of a world is finite."""
    for world in range(o.n):
        total = load(d.numbers, world * d.size)
        for k in range(1, d.n_state):
            total += load(d.numbers, world * d.size + k)
        if total - total != 0.0:
            return 0
    return 1


@kernel
def arrange(d, o):
    """Group worlds with similar numbers of contacts in the last step, then of rows of joints; returns the number of
    groups. The slowest groups come first, which balances the load of threads.
    """
    n = count_places(d, o, SINGLE)
    for world in range(o.n):
        if load(d.lost, world) == 0:
            store(o.worlds, next_place(d, o, SINGLE, world), world)
    count_places(d, o, CONTACT)
    for k in range(n):
        world = load(o.worlds, k)
        store(d.order, next_place(d, o, CONTACT, world), world)
    for k in range(n, o.room):
        store(d.order, k, -1)
    return (n + o.lanes - 1) // o.lanes


@kernel
def count_places(d, o, kind):
    """Counting sort: first index of the worlds with each number of blocks of a kind, descending; number of worlds."""
    for number in range(MOST_ALIKE + 2):
        store(o.place, number, 0)
    for world in range(o.n):
        if load(d.lost, world) == 0:
            number = blocks(d, kind, world)
            store(o.place, number, load(o.place, number) + 1)
    first = 0
    for k in range(MOST_ALIKE + 1):
        number = MOST_ALIKE - k
        here = load(o.place, number)
        store(o.place, number, first)
        first += here
    return first


@kernel
def next_place(d, o, kind, world):
    """Index of a world in the order by its blocks of a kind."""
    number = blocks(d, kind, world)
    place = load(o.place, number)
    store(o.place, number, place + 1)
    return place


@kernel
def blocks(d, kind, world):
    """Blocks of a kind of a world in the last step, up to the number above which worlds count as similar."""
    return min(load(d.count, world * N_KINDS + kind), MOST_ALIKE)


control, finite, ordered = (
    entry(function, RECORDS, view, lanes=False)
    for function, view in ((apply_controls, CONTROLS), (state_is_finite, ORDERING), (arrange, ORDERING))
)
