"""Work sharing of the thread pool in compiled code, without the interpreter's lock.

Each thread has a contiguous share of the groups, and then takes groups from the shares of others. Since similar worlds
are neighbours, most groups are stepped by the same thread from round to round, and their memory is in its caches.

The interpreter's lock passes between threads in about 10 µs, in which a core steps several worlds. So a worker that has
finished its share polls for the next round for a while, in compiled code, before it sleeps.
"""

from __future__ import annotations

from poise.kernel.calls import ask_bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Int, Real, View, load, store
from poise.kernel.shared import add_shared, load_shared, pause, swap_shared

NOBODY = -1
APART = 8
"""Padding between numbers that different threads change often: no two are in one cache line."""

ROUND = View(
    "Round",
    number=Int,  # (1) of rounds so far
    engines=Count,
    busy=Int,  # (1) workers that have not finished this round
    steps=Int,  # (1)
    dt=Real,  # (1)
    # of each engine
    turn=Int,  # (APART · engines) the next group of its share
    last=Int,  # end of its share
    front=Int,  # address of the function to call, and of its table
    table=Int,
    taken=Int,  # groups that it has stepped in this round
    stuck=Int,  # the group at which it needs Python, or NOBODY
    seen=Int,  # rounds that its worker has started
    asleep=Int,  # 1 if its worker sleeps
    woken=Int,  # 1 if its worker must be woken for this round
)


@kernel
def take_groups(j, k):
    """Step groups with engine k until all groups are taken."""
    store(j.stuck, k, NOBODY)
    store(j.taken, k, 0)
    front, table, dt, steps = load(j.front, k), load(j.table, k), load(j.dt, 0), load(j.steps, 0)
    for other in range(j.engines):
        part = (k + other) % j.engines
        last = load(j.last, part)
        group = add_shared(j.turn, APART * part, 1)
        while group < last:
            if ask_bound(front, table, dt, steps, group, group + 1) == group:
                store(j.stuck, k, group)
                return
            store(j.taken, k, load(j.taken, k) + 1)
            group = add_shared(j.turn, APART * part, 1)


@kernel
def begin_round(j):
    """Start a round: returns the number of workers that must be woken for it."""
    store(j.busy, 0, j.engines - 1)
    add_shared(j.number, 0, 1)  # before reading `asleep`: a worker reads the number after it has set `asleep`
    sleepers = 0
    for k in range(1, j.engines):
        store(j.woken, k, swap_shared(j.asleep, k, 0))
        sleepers += load(j.woken, k)
    return sleepers


@kernel
def end_part(j, k):
    """Mark worker k's share of a round as done."""
    add_shared(j.busy, 0, -1)


@kernel
def serve(j, k, most):
    """Take part in every round as worker k; returns, to sleep, after `most` polls without a new round."""
    looks = 0
    while True:
        number = load_shared(j.number, 0)
        if number != load(j.seen, k):
            store(j.seen, k, number)
            take_groups(j, k)
            end_part(j, k)
            looks = 0
        elif looks < most:
            looks += 1
            pause(j.number)
        else:
            swap_shared(j.asleep, k, 1)
            if load_shared(j.number, 0) == load(j.seen, k) or swap_shared(j.asleep, k, 0) == 0:
                return  # no round has started since, or the thread that started it is about to wake this worker


@kernel
def lead_round(j, most):
    """Take part as engine 0, then wait for the workers: whether all have finished within `most` polls."""
    take_groups(j, 0)
    return wait_for_hands(j, most)


@kernel
def wait_for_hands(j, most):
    """Whether all workers have finished the round within `most` polls."""
    for _ in range(most):
        if load_shared(j.busy, 0) == 0:
            return 1
        pause(j.busy)
    return 0


begin = entry(begin_round, ROUND, lanes=False)
lead, wait, end = (
    entry(function, ROUND, extra=("int64",), lanes=False) for function in (lead_round, wait_for_hands, end_part)
)
serve_rounds = entry(serve, ROUND, extra=("int64", "int64"), lanes=False)
