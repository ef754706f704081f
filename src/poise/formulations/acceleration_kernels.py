"""Kernels of the acceleration level, as Python calls them: the rows of the velocity level, and moves of coordinates."""

from __future__ import annotations

from poise.constraints.tree import FLOW
from poise.dynamics.apart_bodies import APART
from poise.dynamics.integrate import STAGES, displace, rates
from poise.dynamics.layout import MODEL, STATE, WORK
from poise.formulations import apart, velocity
from poise.formulations.data import DATA, OPTIONS
from poise.kernel.jit import entry, kernel


@kernel
def go(m, s, y, scale):
    """Coordinates that are q0 ⊕ scale · shift."""
    displace(m, y.q0, y.shift, scale, s.q)


EMIT = entry(velocity.emit, MODEL, DATA, OPTIONS, extra=("float64", "int64"))
GO = entry(go, MODEL, STATE, STAGES, extra=("float64",))
RATES = entry(rates, MODEL, STATE, STAGES)
BEGIN = entry(apart.begin, MODEL, STATE, WORK, APART)
KICK = entry(apart.kick, MODEL, WORK, FLOW, APART)
SPREAD = entry(apart.spread_rates, MODEL, WORK, FLOW, APART)
MEND = entry(apart.read_off, MODEL, STATE, WORK, APART, OPTIONS)
