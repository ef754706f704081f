"""Reuse of the poses and factors at the end of a step, at the beginning of the next one.

Quantities that depend on coordinates alone are reused if these are unchanged; velocities have changed since then. The
results are bitwise those of a new computation, so that a world whose state is restored continues identically.
"""

from __future__ import annotations

from math import nan

from poise.dynamics.aba import factor, factor_velocities, take_factors
from poise.dynamics.kinematics import move_links, place_links, take_places
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, zero


@kernel
def see_places(model, state, scratch):
    """Record that `end_work` has the poses and factors for the current coordinates."""
    for j in range(model.nq):
        store(scratch.seen, j, load(state.q, j))


@kernel
def forget_places(scratch):
    """Invalidate the record."""
    store(scratch.seen, 0, zero(load(scratch.seen, 0)) + nan)


@kernel
def are_seen(model, state, stages, options, scratch):
    """Whether `end_work` has the poses for the current coordinates."""
    if options.centred == 0 or stages.n_prescribed != 0:
        return False
    other = load(state.q, 0) != load(state.q, 0)
    for j in range(model.nq):
        other = other | (load(state.q, j) != load(scratch.seen, j))
    return not any_lane(other)


@kernel
def place_again(model, data, options):
    """`place_links`, with the poses of the end of the last step if they are valid; bitwise the same."""
    if are_seen(model, data.state, data.stages, options, data.scratch):
        take_places(model, data.end_work, data.work)
        move_links(model, data.state.v, data.work, data.work)
    else:
        place_links(model, data.state, data.work)


@kernel
def factor_again(model, data, options):
    """`factor`, likewise, if springs, dampers and drives add the same to inertias."""
    seen = are_seen(model, data.state, data.stages, options, data.scratch)
    if seen:
        other = load(data.work.diagonal, 0) != load(data.work.diagonal, 0)
        for d in range(model.nv):
            other = other | (load(data.work.diagonal, d) != load(data.end_work.diagonal, d))
        seen = not any_lane(other)
    if seen:
        take_factors(model, data.end_work, data.work)
        factor_velocities(model, data.end_work, data.work)
    else:
        factor(model, data.work)
