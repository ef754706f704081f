"""Contacts and limits that begin or end with a step, detected in compiled code after each step.

Two shapes touch in a step if one of their contacts pushes in any part of it; a limit is reached if it pushes. The state
of the step before consists of two sorted lists of keys: a n + b for shapes a and b of n, and the ids of limits. An
event is a key that is in one of two successive lists only.
"""

from __future__ import annotations

from poise.constraints.kinds.ball_joint_limit import CONE, TWIST_LOWER, TWIST_UPPER
from poise.constraints.kinds.joint_limit import CODES, LOWER, UPPER
from poise.constraints.row_store import CONTACT, SINGLE
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load, load_lane, store

TOUCHING, REACHED = range(2)
"""Lists of keys."""
N_LISTS = 2
KINDS = ("contact_begin", "contact_end", "limit_reached", "limit_left")
"""Kinds of logged events: 2 · list, plus 1 for the end."""

EVENTS = View(
    "Events",
    n_shapes=Count,
    nv=Count,
    n_joints=Count,
    key_room=Count,  # room for keys of each list
    log_room=Count,
    wanted=Index,  # (1) 1 if events are recorded
    stops=Index,  # (1) 1 if the step loop ends after a step with events
    known=Index,  # (N_LISTS) 1 if the keys of the step before are known
    count=Index,  # (N_LISTS) keys of the step before
    key=Int,  # (N_LISTS · key_room)
    seen=Index,  # (N_LISTS) keys of the parts of the step so far, with duplicates
    seen_key=Int,  # (N_LISTS · key_room)
    logged=Index,  # (1) events since the log was read
    log_time=Real,  # (log_room) s
    log_kind=Index,
    log_key=Int,
)


@kernel
def contact_of(contacts, rows, slot, n, lane):
    """The contact of a block of rows in one lane, among the first n; −1 if there is none."""
    id, k = load_lane(rows.id, slot, lane), load_lane(rows.pick, slot, lane)
    if k >= 0 and k < n and load_lane(contacts.id, k, lane) == id:
        return k
    for other in range(n):  # for rows that were moved since they were built
        if load_lane(contacts.id, other, lane) == id:
            return other
    return -1


@kernel
def is_limit(events, id):
    """Whether a row of one coordinate, by its id, is a limit of a coordinate or of a ball joint."""
    if id < 0:
        return False
    number, code = id // CODES, id % CODES
    if number < events.nv:
        return code in (LOWER, UPPER)
    return number < events.nv + events.n_joints and code in (CONE, TWIST_LOWER, TWIST_UPPER)


@kernel
def add_key(events, which, key):
    """Add a key of a part of a step."""
    n = load(events.seen, which)
    if n == events.key_room:
        n = sort_keys(events, which)
    if n < events.key_room:
        store(events.seen_key, which * events.key_room + n, key)
        store(events.seen, which, n + 1)


@kernel
def note_pushing(contacts, rows, events):
    """Add the keys of contacts and limits that push in a part of a step, whose constraints have been solved."""
    if load(events.wanted, 0) == 0:
        return contacts.room
    n, last = min(load(contacts.count, 0), contacts.room), -1
    first = load(rows.first, CONTACT)
    for block in range(load(rows.count, CONTACT)):
        slot = first + 3 * block
        if load(rows.lam, slot) > 0.0:
            k = contact_of(contacts, rows, slot, n, 0)
            if k >= 0:
                key = load(contacts.a, k) * events.n_shapes + load(contacts.b, k)
                if key != last:
                    add_key(events, TOUCHING, key)
                    last = key
    first = load(rows.first, SINGLE)
    for slot in range(first, first + load(rows.count, SINGLE)):
        if load(rows.lam, slot) > 0.0 and is_limit(events, load(rows.id, slot)):
            add_key(events, REACHED, load(rows.id, slot))
    return contacts.room  # bound entries return whole numbers


@kernel
def sort_keys(events, which):
    """Sort the keys of a step without duplicates (Shell 1959, gaps of Knuth); returns their number."""
    n, start, gap = load(events.seen, which), which * events.key_room, 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 1:
        gap = gap // 3
        for i in range(gap, n):
            key, j = load(events.seen_key, start + i), i
            while j >= gap and load(events.seen_key, start + j - gap) > key:
                store(events.seen_key, start + j, load(events.seen_key, start + j - gap))
                j -= gap
            store(events.seen_key, start + j, key)
    kept = 0
    for i in range(n):
        key = load(events.seen_key, start + i)
        if kept == 0 or load(events.seen_key, start + kept - 1) != key:
            store(events.seen_key, start + kept, key)
            kept += 1
    store(events.seen, which, kept)
    return kept


@kernel
def has_event_room(events):
    """Whether the log has room for all events that this step can add."""
    most = load(events.logged, 0)
    for which in range(N_LISTS):
        most += load(events.seen, which) + load(events.count, which)
    return most <= events.log_room


@kernel
def log_event(events, kind, key, time):
    """Add an event to the log."""
    n = load(events.logged, 0)
    store(events.log_time, n, time)
    store(events.log_kind, n, kind)
    store(events.log_key, n, key)
    store(events.logged, 0, n + 1)


@kernel
def log_new(events, which, time):
    """Log the keys of this step that the step before did not have."""
    start, j = which * events.key_room, 0
    for i in range(load(events.seen, which)):
        key = load(events.seen_key, start + i)
        while j < load(events.count, which) and load(events.key, start + j) < key:
            j += 1
        if j == load(events.count, which) or load(events.key, start + j) != key:
            log_event(events, 2 * which, key, time)


@kernel
def log_gone(events, which, time):
    """Log the keys of the step before that this step does not have."""
    start, j = which * events.key_room, 0
    for i in range(load(events.count, which)):
        key = load(events.key, start + i)
        while j < load(events.seen, which) and load(events.seen_key, start + j) < key:
            j += 1
        if j == load(events.seen, which) or load(events.seen_key, start + j) != key:
            log_event(events, 2 * which + 1, key, time)


@kernel
def take_events(events, time):
    """Log the events of a step that ends at `time`; its keys become those of the step before."""
    for which in range(N_LISTS):
        sort_keys(events, which)
        if load(events.known, which) != 0:
            log_new(events, which, time)
            log_gone(events, which, time)
        n, start = load(events.seen, which), which * events.key_room
        for i in range(start, start + n):
            store(events.key, i, load(events.seen_key, i))
        store(events.count, which, n)
        store(events.known, which, 1)
        store(events.seen, which, 0)
