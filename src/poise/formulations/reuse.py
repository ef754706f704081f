"""Links that are placed and factored at the end of a step, for the beginning of the next one.

What depends on coordinates alone is taken over where these are still the same; velocities have changed since then. All
has the bits that it would have anew, so that a world that is put back to a state goes on as it did.
"""

from __future__ import annotations

from math import nan

from poise.dynamics.abm import factor, factor_velocities, take_factors
from poise.dynamics.kinematics import move_links, place_links, take_places
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, zero


@kernel
def see_places(m, s, o):
    """Note that links are placed and factored in `ahead` for the coordinates that there are."""
    for j in range(m.nq):
        store(o.seen, j, load(s.q, j))


@kernel
def forget_places(o):
    """That links are placed anywhere."""
    store(o.seen, 0, zero(load(o.seen, 0)) + nan)


@kernel
def are_seen(m, s, y, o):
    """Whether links are placed in `ahead` for the coordinates that there are."""
    if o.centred == 0 or y.n_prescribed != 0:
        return False
    other = load(s.q, 0) != load(s.q, 0)
    for j in range(m.nq):
        other = other | (load(s.q, j) != load(o.seen, j))
    return not any_lane(other)


@kernel
def place_again(m, s, w, y, o, ahead):
    """`place_links`, with what is known from the end of the last step: same bits."""
    if are_seen(m, s, y, o):
        take_places(m, ahead, w)
        move_links(m, s.v, w, w)
    else:
        place_links(m, s, w)


@kernel
def factor_again(m, s, w, y, o, ahead):
    """`factor`, likewise, where laws add the same to inertias."""
    seen = are_seen(m, s, y, o)
    if seen:
        other = load(w.diagonal, 0) != load(w.diagonal, 0)
        for d in range(m.nv):
            other = other | (load(w.diagonal, d) != load(ahead.diagonal, d))
        seen = not any_lane(other)
    if seen:
        take_factors(m, ahead, w)
        factor_velocities(m, ahead, w)
    else:
        factor(m, w)
