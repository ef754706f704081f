"""Contacts and limits that begin or end with a step, found in compiled code after each step.

Two shapes touch in a step when one of their contacts pushes in any part of it; a limit is reached when it pushes. What
is known of the step before are two sorted lists of keys: a n + b for shapes a and b of n, and the ids of limits. An
event is a key that one list has and the other has not.
"""

from __future__ import annotations

from poise.constraints.ball_limit_rows import CONE, TWIST_LOWER, TWIST_UPPER
from poise.constraints.limit_rows import CODES, LOWER, UPPER
from poise.constraints.store import CONTACT, SINGLE
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load, load_lane, store

TOUCHING, REACHED = range(2)
"""Lists of keys."""
N_LISTS = 2
KINDS = ("contact_begin", "contact_end", "limit_reached", "limit_left")
"""Of logged events: 2 · list, and 1 more for what has ended."""

EVENTS = View(
    "Events",
    n_shapes=Count,
    nv=Count,
    n_joints=Count,
    key_room=Count,  # keys of each list
    log_room=Count,
    wanted=Index,  # (1) 1 where steps are watched
    stops=Index,  # (1) 1 where the step loop ends after a step with events
    known=Index,  # (N_LISTS) 1 where the keys of the step before are known
    count=Index,  # (N_LISTS) keys of the step before
    key=Int,  # (N_LISTS · key_room)
    seen=Index,  # (N_LISTS) keys of the parts of the step so far, some more than once
    seen_key=Int,  # (N_LISTS · key_room)
    logged=Index,  # (1) events since the log was read
    log_time=Real,  # (log_room) s
    log_kind=Index,
    log_key=Int,
)


@kernel
def contact_of(c, r, slot, n, lane):
    """The contact that a block of rows of one lane was made of, among the first n; −1 where it was made of none."""
    id, k = load_lane(r.id, slot, lane), load_lane(r.pick, slot, lane)
    if k >= 0 and k < n and load_lane(c.id, k, lane) == id:
        return k
    for other in range(n):  # rows that were moved since they were made
        if load_lane(c.id, other, lane) == id:
            return other
    return -1


@kernel
def is_limit(e, id):
    """Whether a row of one coordinate, by its id, is a limit of a coordinate or of a ball joint."""
    if id < 0:
        return False
    number, code = id // CODES, id % CODES
    if number < e.nv:
        return code in (LOWER, UPPER)
    return number < e.nv + e.n_joints and code in (CONE, TWIST_LOWER, TWIST_UPPER)


@kernel
def add_key(e, which, key):
    """Note a key of a part of a step."""
    n = load(e.seen, which)
    if n == e.key_room:
        n = sort_keys(e, which)
    if n < e.key_room:
        store(e.seen_key, which * e.key_room + n, key)
        store(e.seen, which, n + 1)


@kernel
def note_pushing(c, r, e):
    """Note what pushes in a part of a step, whose constraints have been solved."""
    if load(e.wanted, 0) == 0:
        return c.room
    n, last = min(load(c.count, 0), c.room), -1
    first = load(r.first, CONTACT)
    for block in range(load(r.count, CONTACT)):
        slot = first + 3 * block
        if load(r.lam, slot) > 0.0:
            k = contact_of(c, r, slot, n, 0)
            if k >= 0:
                key = load(c.a, k) * e.n_shapes + load(c.b, k)
                if key != last:
                    add_key(e, TOUCHING, key)
                    last = key
    first = load(r.first, SINGLE)
    for slot in range(first, first + load(r.count, SINGLE)):
        if load(r.lam, slot) > 0.0 and is_limit(e, load(r.id, slot)):
            add_key(e, REACHED, load(r.id, slot))
    return c.room  # bound entries return whole numbers


@kernel
def sort_keys(e, which):
    """Sort the keys of a step, each once (Shell 1959, gaps of Knuth); their number."""
    n, start, gap = load(e.seen, which), which * e.key_room, 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 1:
        gap = gap // 3
        for i in range(gap, n):
            key, j = load(e.seen_key, start + i), i
            while j >= gap and load(e.seen_key, start + j - gap) > key:
                store(e.seen_key, start + j, load(e.seen_key, start + j - gap))
                j -= gap
            store(e.seen_key, start + j, key)
    kept = 0
    for i in range(n):
        key = load(e.seen_key, start + i)
        if kept == 0 or load(e.seen_key, start + kept - 1) != key:
            store(e.seen_key, start + kept, key)
            kept += 1
    store(e.seen, which, kept)
    return kept


@kernel
def has_event_room(e):
    """Whether the log has room for all that this step can add to it."""
    most = load(e.logged, 0)
    for which in range(N_LISTS):
        most += load(e.seen, which) + load(e.count, which)
    return most <= e.log_room


@kernel
def log_event(e, kind, key, time):
    """Add an event to the log."""
    n = load(e.logged, 0)
    store(e.log_time, n, time)
    store(e.log_kind, n, kind)
    store(e.log_key, n, key)
    store(e.logged, 0, n + 1)


@kernel
def log_new(e, which, time):
    """Log the keys that this step has and the step before had not."""
    start, j = which * e.key_room, 0
    for i in range(load(e.seen, which)):
        key = load(e.seen_key, start + i)
        while j < load(e.count, which) and load(e.key, start + j) < key:
            j += 1
        if j == load(e.count, which) or load(e.key, start + j) != key:
            log_event(e, 2 * which, key, time)


@kernel
def log_gone(e, which, time):
    """Log the keys that the step before had and this step has not."""
    start, j = which * e.key_room, 0
    for i in range(load(e.count, which)):
        key = load(e.key, start + i)
        while j < load(e.seen, which) and load(e.seen_key, start + j) < key:
            j += 1
        if j == load(e.seen, which) or load(e.seen_key, start + j) != key:
            log_event(e, 2 * which + 1, key, time)


@kernel
def take_events(e, time):
    """Log the events of a step that ends at `time`; its keys are those of the step before the next one."""
    for which in range(N_LISTS):
        sort_keys(e, which)
        if load(e.known, which) != 0:
            log_new(e, which, time)
            log_gone(e, which, time)
        n, start = load(e.seen, which), which * e.key_room
        for i in range(start, start + n):
            store(e.key, i, load(e.seen_key, i))
        store(e.count, which, n)
        store(e.known, which, 1)
        store(e.seen, which, 0)
