"""Kernels of the acceleration level that Python calls: rows of the velocity level, and displacements of coordinates."""

from __future__ import annotations

from poise.constraints.response.delassus_kernels import FLOW
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK
from poise.dynamics.integrate import STAGES, displace, rates
from poise.dynamics.maximal_bodies.body_state import APART
from poise.formulations.data import DATA, OPTIONS
from poise.formulations.maximal_coordinates import maximal_step
from poise.formulations.stages import velocity_step
from poise.kernel.jit import entry, kernel


@kernel
def go(m, s, y, scale):
    """Set coordinates to q0 ⊕ scale · shift."""
    displace(m, y.q0, y.shift, scale, s.q)


EMIT = entry(velocity_step.emit, MODEL, DATA, OPTIONS, extra=("float64", "int64"))
GO = entry(go, MODEL, STATE, STAGES, extra=("float64",))
RATES = entry(rates, MODEL, STATE, STAGES)
BEGIN = entry(maximal_step.begin, MODEL, STATE, WORK, APART)
KICK = entry(maximal_step.kick, MODEL, WORK, FLOW, APART)
SPREAD = entry(maximal_step.spread_rates, MODEL, WORK, FLOW, APART)
MEND = entry(maximal_step.read_off, MODEL, STATE, WORK, APART, OPTIONS)
