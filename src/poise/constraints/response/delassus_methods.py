"""The Delassus matrix by KOK's methods: from test forces (§4.2), and from acceleration deltas (§4.3).

`delassus_kernels.gram` computes the same matrix faster than either. These are here to be read, to be measured, and to
check it.
"""

from __future__ import annotations

from poise.constraints.response.delassus_kernels import (
    about_origin,
    lean,
    link_of,
    place_centres,
    place_row,
    take_roots,
)
from poise.constraints.response.row_velocity import coordinate, row_acceleration
from poise.dynamics.aba import accelerate, balance, prepare
from poise.dynamics.impulse_response import spread_acceleration
from poise.dynamics.kinematics import arm
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.spatial import Force, pair
from poise.kernel.vec import cross

# ---- test forces -----------------------------------------------------------------------------------------------------


@kernel
def push_body(m, x, w, body, J, size):
    """Add a test force to a body. J is at its centre of mass, forces are about its origin."""
    if body >= 0 and load(m.body_link, body) >= 0:
        moment = J.t + cross(load(w.centre, body) - arm(m, w, body), J.f)
        store(x.force, body, load(x.force, body) + Force(moment, J.f) * size)


@kernel
def push_dof(tau, dof, J, size):
    """Add a test force to a coordinate."""
    if dof >= 0:
        store(tau, dof, load(tau, dof) + J * size)


@kernel
def push_row(m, x, w, tau, r, at, size):
    """Add a row's test force to its bodies and coordinates; one of the opposite size removes it."""
    push_body(m, x, w, load(r.a, at), load(r.Ja, at), size)
    push_body(m, x, w, load(r.b, at), load(r.Jb, at), size)
    push_dof(tau, load(r.dof, at), load(r.Jdof, at), size)
    term = load(r.term, at)
    while term >= 0:
        push_body(m, x, w, load(r.term_body, term), load(r.term_J, term), size)
        push_dof(tau, load(r.term_dof, term), load(r.term_Jdof, term), size)
        term = load(r.term_next, term)


@kernel
def default_accelerations(m, s, x, w, r, t):
    """Step 1 of KOK §4.2: q̈⁰ and h⁰ of every row."""
    prepare(m, s, x, w, 0.0)
    balance(m, x, w)
    accelerate(m, x, w)
    place_centres(m, w)
    for j in range(load(t.n_rows, 0)):
        at = load(t.slot, j)
        place_row(m, w, r, t, j, at)
        row_acceleration(m, w, r, t, j, at)
        store(t.speed, j, load(t.pull, j))


@kernel
def net_effects(m, w, r, t, i, size):
    """Column i of K from the accelerations under its test force (KOK eq. 11)."""
    n = load(t.n_rows, 0)
    for j in range(n):
        row_acceleration(m, w, r, t, j, load(t.slot, j))
        store(t.A, j * n + i, (load(t.pull, j) - load(t.speed, j)) / size)


@kernel
def by_test_forces(m, s, x, w, r, t, size):
    """K from m + 1 calls of the articulated-body algorithm (KOK §4.2)."""
    default_accelerations(m, s, x, w, r, t)
    for i in range(load(t.n_rows, 0)):
        at = load(t.slot, i)
        push_row(m, x, w, x.tau, r, at, size)
        prepare(m, s, x, w, 0.0)
        balance(m, x, w)
        accelerate(m, x, w)
        net_effects(m, w, r, t, i, size)
        push_row(m, x, w, x.tau, r, at, -size)


@kernel
def by_cached_test_forces(m, s, x, w, r, t, size):
    """The same, with the terms that depend on the state alone cached ("implemented carefully", end of KOK §4.3)."""
    default_accelerations(m, s, x, w, r, t)
    for i in range(load(t.n_rows, 0)):
        at = load(t.slot, i)
        push_row(m, x, w, w.total, r, at, size)
        balance(m, x, w)
        accelerate(m, x, w)
        net_effects(m, w, r, t, i, size)
        push_row(m, x, w, w.total, r, at, -size)


# ---- deltas ----------------------------------------------------------------------------------------------------------


@kernel
def delta_effect(m, w, r, t, x, j, at):
    """h_j(dq̈) of a row (KOK eq. 13): its Jacobian on the links' acceleration changes."""
    value = coordinate(x.a, load(r.dof, at), load(r.Jdof, at))
    if load(t.link_a, j) >= 0:
        value = value + pair(load(x.acceleration, load(t.link_a, j)), load(t.force_a, j))
    if load(t.link_b, j) >= 0:
        value = value + pair(load(x.acceleration, load(t.link_b, j)), load(t.force_b, j))
    term = load(r.term, at)
    while term >= 0:
        body = load(r.term_body, term)
        link = link_of(m, body)
        if link >= 0:
            force = about_origin(w, body, link, load(r.term_J, term))
            value = value + pair(load(x.acceleration, link), force)
        value = value + coordinate(x.a, load(r.term_dof, term), load(r.term_Jdof, term))
        term = load(r.term_next, term)
    return value


@kernel
def by_deltas(m, w, r, t, x):
    """K from one acceleration delta a row (KOK §4.3). `aba.prepare` must run before."""
    place_centres(m, w)
    take_roots(m, w, t)
    n = load(t.n_rows, 0)
    for j in range(n):
        place_row(m, w, r, t, j, load(t.slot, j))
    for i in range(n):
        lean(m, w, r, t, i, load(t.slot, i))  # the inbound loop
        for d in range(m.nv):
            store(x.share, d, load(t.y, i * m.nv + d) * load(t.root, d))
        spread_acceleration(m, w, x)  # the outbound loop
        for j in range(n):
            store(t.A, j * n + i, delta_effect(m, w, r, t, x, j, load(t.slot, j)))
