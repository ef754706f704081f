"""Links that are placed and factored at the end of a step, for the beginning of the next one.

What depends on coordinates alone is taken over where these are still the same; velocities have changed since then. All
has the bits that it would have anew, so that a world that is put back to a state goes on as it did.
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
    """Note that links are placed and factored in `end_work` for the coordinates that there are."""
    for j in range(model.nq):
        store(scratch.seen, j, load(state.q, j))


@kernel
def forget_places(scratch):
    """That links are placed anywhere."""
    store(scratch.seen, 0, zero(load(scratch.seen, 0)) + nan)


@kernel
def are_seen(model, state, stages, options, scratch):
    """Whether links are placed in `end_work` for the coordinates that there are."""
    if options.centred == 0 or stages.n_prescribed != 0:
        return False
    other = load(state.q, 0) != load(state.q, 0)
    for j in range(model.nq):
        other = other | (load(state.q, j) != load(scratch.seen, j))
    return not any_lane(other)


@kernel
def place_again(model, data, options):
    """`place_links`, with what is known from the end of the last step: same bits."""
    if are_seen(model, data.state, data.stages, options, data.scratch):
        take_places(model, data.end_work, data.work)
        move_links(model, data.state.v, data.work, data.work)
    else:
        place_links(model, data.state, data.work)


@kernel
def factor_again(model, data, options):
    """`factor`, likewise, where laws add the same to inertias."""
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
