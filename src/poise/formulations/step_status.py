"""Constants that the kernels of a velocity-level step share: status of a part, and options of its stages."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import minimum

BY_SPEED, BY_DISPLACEMENT = 1, 2
"""How position errors are corrected."""
DONE, UNSOLVED, NO_ROOM, DIVERGED, TOO_LONG, NO_CONTACT_ROOM, NO_PREPARED_ROOM, SATURATED = range(8)
"""Status of a part of a step. TOO_LONG: the step is too long for the velocities after the impulses; the state is
unchanged. NO_ROOM, NO_CONTACT_ROOM, NO_PREPARED_ROOM: no memory for all constraints, contacts, or constraints that are
built once a step. SATURATED: motors that are folded into the inertia would exceed their bounds; the state is unchanged,
and from the next free motion on they are rows.
"""
WHOLE, GOES_ON, UNLESS_LONG = range(3)
"""How much of a part to do: all of it; the rest after UNSOLVED; all of it unless it is TOO_LONG."""
DRIVEN, ASLEEP, HASTY = 1, 2, 3
"""Status of the free motion: some motors are rows; all bodies sleep; or some shapes are too fast for the step."""
ALL, UNLESS_HASTY, THE_REST = range(3)
"""How much of the free motion to compute: all; only the poses if shapes are too fast for the step; the remainder after
that.
"""

WITH_LOOPS = 2
"""Maximal coordinates with rows besides the joints of the tree: the rows need the accelerations that joints cause."""


@kernel
def look_ahead(options, stats, dt):
    """Gap up to which contacts count, for each world separately: the gap that can close within two steps."""
    return minimum(load(options.near, 0) + load(stats.top, 0) * (2.0 * dt), load(options.far, 0))
