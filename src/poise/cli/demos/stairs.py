"""A ragdoll falls down the stairs and comes to rest (KOK §5 to §8: impacts, resting contact, joint limits)."""

from __future__ import annotations

import numpy as np

import poise
from poise.control import Start
from poise.sim import Recording, World

SECONDS = 4.0
MOMENTS = (0.0, 0.45, 0.7, 1.0, 1.4, 4.0)
STEPS, RISE, TREAD = 8, 0.18, 0.3
"""Of the stairs; m."""


def scene() -> poise.Scene:
    """Stairs that descend along x, and a stumbling ragdoll above them."""
    stage = poise.Scene(name="stairs")
    stage.add_ground(friction=0.8)
    stone = (0.72, 0.72, 0.74, 1.0)
    for k in range(STEPS):
        height = RISE * (k + 1)
        x = -TREAD * (k + 0.5)
        stage.add(
            poise.box(TREAD, 2.0, height, color=stone), position=(x, 0, height / 2), fixed=True, name=f"stair {k}"
        )
    top = RISE * STEPS
    landing = poise.box(1.2, 2.0, top, color=stone)
    stage.add(landing, position=(-TREAD * STEPS - 0.6, 0, top / 2), fixed=True, name="landing")
    stage.add(poise.characters.ragdoll(height=1.75, mass=70.0), name="hero", position=(-TREAD * STEPS - 0.25, 0.1, top))
    Start(velocities={"hero/pelvis": ((1.6, 0.1, 0.0), (0.0, 1.2, 0.3))}).add_to(stage)
    return stage


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Energy balance of the fall."""
    energy = poise.dynamics.energy(recording.model, recording.q, recording.v)
    total = np.asarray(energy.total)
    rise = max(0.0, float(np.diff(total).max())) / float(np.abs(total).max())
    still = np.flatnonzero(energy.kinetic > 0.1)
    blows = sum(event.kind == "contact_begin" for event in recording.events)
    limits = {event.names[0].partition(".")[0] for event in recording.events if event.kind == "limit_reached"}
    deepest = max((contact.depth for contact in world.report().contacts), default=0.0)
    end = recording.time[still[-1]]
    rose = f"in no step did energy rise by more than {rise:.0e} of it" if rise else "in no step did energy rise"
    return {
        "fall": f"{total[0] - total[-1]:.0f} J lost in {blows} contacts; {rose}",
        "joints": f"{len(limits)} of {recording.model.n_joints} came to their limits",
        "rest": f"slower than 0.1 J after {end:.2f} s; overlaps at the end {1e3 * deepest:.2f} mm",
    }
