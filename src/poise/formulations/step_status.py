"""Words that kernels of a step at velocity level share: how its parts end, and what is wanted of them."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import minimum

BY_SPEED, BY_DISPLACEMENT = 1, 2
"""How errors of position are mended."""
DONE, UNSOLVED, NO_ROOM, DIVERGED, TOO_LONG, NO_CONTACT_ROOM, NO_PREPARED_ROOM, SATURATED = range(8)
"""How a part of a step ends; TOO_LONG for what impulses make of velocities, and nothing is done yet; no room for all
constraints, contacts, or constraints that are prepared once a step. SATURATED where motors that are folded into the
inertia would be beyond their bounds: nothing is done, and they are rows from the next free motion on.
"""
WHOLE, GOES_ON, UNLESS_LONG = range(3)
"""Of a part of a step: all of it; what is left where it was UNSOLVED; all of it unless it is TOO_LONG."""
DRIVEN, ASLEEP, HASTY = 1, 2, 3
"""What the free motion finds: motors that are rows; or nobody who moves; or shapes for which a step is too long."""
ALL, UNLESS_HASTY, THE_REST = range(3)
"""How much of it is wanted: all; where shapes are too fast for the step, where they are and no more; the rest then."""

WITH_LOOPS = 2
"""Of separate bodies: some are held by rows, which need to know how joints bend their ways."""


@kernel
def look_ahead(options, stats, dt):
    """Gap up to which contacts count, of each world by itself: what can close within two steps."""
    return minimum(load(options.near, 0) + load(stats.top, 0) * (2.0 * dt), load(options.far, 0))
