"""Whether the motion of a part of a step may come of its forces: constraints turn energy about and add none.

Without them, forces that give accelerations a change √T, T being the kinetic energy, by √T(h a) in a time h at most.
What loops, contacts and limits that hold do to bodies has no power; near a position from which no motion leads on (a
jam) their forces grow without end within a part, an integrator that sums up its stages misses that, and T is what it
never could be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.row_store import CONTACT
from poise.dynamics.state_queries import energy
from poise.formulations.acceleration_level.evaluate_rows import Looker, Seen
from poise.formulations.acceleration_level.solve_forces import CREEP
from poise.model.model import Model

Array = NDArray[Any]
GAIN = 1.5
"""Kinetic energy, of the most that forces can lead to, that integrators of first order may make of it."""
MENDED = 10.0
"""Times the speed at which errors are taken back: bodies that are slower than that may owe it to them."""


@dataclass(frozen=True)
class EnergyGuard:
    """What is known of the energy as a part begins."""

    kinetic: float
    potential: float
    reach: float
    """√ of the kinetic energy of what forces change in the part, constraints aside; √J"""
    floor: float
    """Kinetic energy of what takes errors back; J"""

    @classmethod
    def at(cls, model: Model, looker: Looker, seen: Seen, lam: Array, h: float) -> EnergyGuard:
        """At a state, with the constraint forces of its rows."""
        s = looker.stepper.space.s
        now = energy(model, s.q, s.v)
        holds = np.repeat((seen.kinds == CONTACT) | seen.one_sided | seen.closures, seen.sizes)
        led = looker.answer(seen, np.where(holds, 0.0, lam))  # by motors, friction of joints, tracks
        reach = sum(float(energy(model, s.q, h * a).kinetic) ** 0.5 for a in (seen.a_free, led))
        floor = 0.5 * float(model.link_mass.sum()) * (MENDED * CREEP) ** 2
        return cls(float(now.kinetic), float(now.gravity + now.spring), reach, floor)

    def allows(self, model: Model, looker: Looker) -> bool:
        """Whether the state may be that at the end of the part."""
        s = looker.stepper.space.s
        now = energy(model, s.q, s.v)
        given = max(self.potential - float(now.gravity + now.spring), 0.0)
        most = (float(np.sqrt(self.kinetic + given)) + self.reach) ** 2
        return bool(now.kinetic <= GAIN * most + self.floor)
