"""Whether forces can explain the energy at the end of a part of a step: constraints transfer energy and add none.

Without constraints, forces with acceleration a change √T, T being the kinetic energy, by at most √T(h a) in a time h.
The forces of loop joints, contacts and limits have no power. Near a position from which no motion is possible (a jam)
they become unbounded within a part, the integrator's stages miss that, and T becomes larger than possible.
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
"""Kinetic energy, relative to the maximum by forces, that first-order integrators may produce."""
MENDED = 10.0
"""Factor of the correction speed: energies of slower bodies may come from the correction of errors."""


@dataclass(frozen=True)
class EnergyGuard:
    """Energy at the beginning of a part."""

    kinetic: float
    potential: float
    reach: float
    """√ of the kinetic energy of the velocity change by forces other than constraints; √J"""
    floor: float
    """Kinetic energy of the correction of errors; J"""

    @classmethod
    def at(cls, model: Model, looker: Looker, seen: Seen, lam: Array, h: float) -> EnergyGuard:
        """At a state, with the constraint forces of its rows."""
        s = looker.stepper.space.s
        now = energy(model, s.q, s.v)
        holds = np.repeat((seen.kinds == CONTACT) | seen.one_sided | seen.closures, seen.sizes)
        led = looker.answer(seen, np.where(holds, 0.0, lam))  # by motors, friction of joints, tracking
        reach = sum(float(energy(model, s.q, h * a).kinetic) ** 0.5 for a in (seen.a_free, led))
        floor = 0.5 * float(model.link_mass.sum()) * (MENDED * CREEP) ** 2
        return cls(float(now.kinetic), float(now.gravity + now.spring), reach, floor)

    def allows(self, model: Model, looker: Looker) -> bool:
        """Whether the state can be that at the end of the part."""
        s = looker.stepper.space.s
        now = energy(model, s.q, s.v)
        given = max(self.potential - float(now.gravity + now.spring), 0.0)
        most = (float(np.sqrt(self.kinetic + given)) + self.reach) ** 2
        return bool(now.kinetic <= GAIN * most + self.floor)
