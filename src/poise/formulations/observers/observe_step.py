"""Observer of a world after each step, in the compiled loop and in Python: events and frames."""

from __future__ import annotations

from poise.collision.collision_layout import CONTACTS
from poise.constraints.kinds.motor import MOTORS
from poise.constraints.row_store import STORE
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK
from poise.dynamics.energy_momentum import TOTALS
from poise.formulations.data import STATS
from poise.formulations.observers.contact_events import EVENTS, has_event_room, note_pushing, take_events
from poise.formulations.observers.recorded_frames import FRAMES, has_frame_room, record_frame
from poise.formulations.step import GO_ON
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import load, store

NO_ROOM_LEFT, STOP = range(2)
"""Status of an observer, besides GO_ON. NO_ROOM_LEFT: nothing was recorded, call it again with more memory."""


@kernel
def look_at_step(model, state, work, stats, contacts, rows, motors, own, totals, frames, events, time, dt):
    """Log the events of a step that ends at `time`, and record a frame if one is due: NO_ROOM_LEFT, STOP or GO_ON."""
    due = load(frames.every, 0) != 0 and load(frames.due, 0) <= 1
    watched = load(events.wanted, 0) != 0
    if (watched and not has_event_room(events)) or (due and not has_frame_room(rows, frames)):
        return NO_ROOM_LEFT
    before = load(events.logged, 0)
    if watched:
        take_events(events, time)
    if due:
        record_frame(model, state, work, stats, contacts, rows, motors, own, totals, frames, time, dt)
        store(frames.due, 0, load(frames.every, 0))
    elif load(frames.every, 0) != 0:
        store(frames.due, 0, load(frames.due, 0) - 1)
    return STOP if load(events.stops, 0) != 0 and load(events.logged, 0) > before else GO_ON


@kernel
def observe(model, state, work, stats, contacts, rows, motors, own, totals, frames, events, time, dt):
    """`look_at_step`, with a copy of the status in `frames.answer`."""
    answer = look_at_step(model, state, work, stats, contacts, rows, motors, own, totals, frames, events, time, dt)
    store(frames.answer, 0, answer)
    return answer


WATCH = entry(note_pushing, CONTACTS, STORE, EVENTS, lanes=False)
OBSERVE = entry(
    observe,
    *(MODEL, STATE, WORK, STATS, CONTACTS, STORE, MOTORS, WORK, TOTALS, FRAMES, EVENTS),
    extra=("float64", "float64"),
    lanes=False,
)
