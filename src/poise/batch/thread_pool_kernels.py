"""How threads share the groups of a batch without asking Python.

Each has a part of them, side by side, and goes on with what others have left of theirs. As alike worlds are neighbours,
most stay with a thread from round to round, and in the memory that is near to it.

Python's lock passes from thread to thread in some ten µs, in which a core steps several worlds. So a hand that has done
its part looks out for the next round for a while, in compiled code, before it sleeps.
"""

from __future__ import annotations

from poise.kernel.calls import ask_bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Int, Real, View, load, store
from poise.kernel.shared import add_shared, load_shared, pause, swap_shared

NOBODY = -1
APART = 8
"""Numbers between those that different threads change often: no two are in one cache line."""

ROUND = View(
    "Round",
    number=Int,  # (1) of rounds so far
    engines=Count,
    busy=Int,  # (1) hands that have not ended this round
    steps=Int,  # (1)
    dt=Real,  # (1)
    # of each engine
    turn=Int,  # (APART · engines) the next group that is to be taken of its part
    last=Int,  # where its part ends
    front=Int,  # what to call, and with which table
    table=Int,
    taken=Int,  # groups that it has stepped in this round
    stuck=Int,  # the group at which it needs Python, or NOBODY
    seen=Int,  # rounds that its hand knows of
    asleep=Int,  # 1 where its hand has to be woken
    woken=Int,  # 1 where it had to for this round
)


@kernel
def take_groups(j, k):
    """Step group after group with engine k, as long as there are any that nobody has taken."""
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
    """Begin a round: how many hands have to be woken for it."""
    store(j.busy, 0, j.engines - 1)
    add_shared(j.number, 0, 1)  # before one looks who sleeps: a hand that falls asleep looks at it after it has said so
    sleepers = 0
    for k in range(1, j.engines):
        store(j.woken, k, swap_shared(j.asleep, k, 0))
        sleepers += load(j.woken, k)
    return sleepers


@kernel
def end_part(j, k):
    """Hand k has done its part of a round."""
    add_shared(j.busy, 0, -1)


@kernel
def serve(j, k, most):
    """Take part in every round, until there has been none while one looked so many times: hand k sleeps then."""
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
                return  # nothing has begun since, or who began it is about to wake this hand


@kernel
def lead_round(j, most):
    """Take part as engine 0, then wait for the hands: whether all have ended, while one looked so many times."""
    take_groups(j, 0)
    return wait_for_hands(j, most)


@kernel
def wait_for_hands(j, most):
    """Whether all hands have ended the round, while one looked so many times."""
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
