"""Kernels of Poise in loops: how long one takes where no call from Python comes between.

Each pass changes a number that the work reads, so that nothing can be computed once for all passes.
"""

from __future__ import annotations

from poise.dynamics.aba import accelerate, articulated_body, balance, factor
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.impulse_response import RESPONSE, force_delta, respond, torque_delta
from poise.dynamics.kinematics import place_links
from poise.dynamics.passive import gather_forces
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import load, store

TINY = 1e-9


@kernel
def touch(buffer, k):
    """Change element k by almost nothing."""
    store(buffer, k, load(buffer, k) + TINY)


@kernel
def repeat_abm(m, s, x, w, dt, n):
    """A call of the articulated-body algorithm, n times."""
    for _ in range(n):
        articulated_body(m, s, x, w, dt)
        touch(s.q, 0)


@kernel
def repeat_place(m, s, x, w, dt, n):
    """Poses, axes, velocities."""
    for _ in range(n):
        place_links(m, s, w)
        touch(s.q, 0)


@kernel
def repeat_gather(m, s, x, w, dt, n):
    """Springs, dampers and drives."""
    for _ in range(n):
        gather_forces(m, s, x, w, dt)
        touch(s.q, 0)


@kernel
def repeat_factor(m, s, x, w, dt, n):
    """Inertias in world axes and articulated ones."""
    for _ in range(n):
        factor(m, w)
        touch(s.q, 0)


@kernel
def repeat_balance(m, s, x, w, dt, n):
    """Forces towards the roots."""
    for _ in range(n):
        balance(m, x, w)
        touch(w.total, 0)


@kernel
def repeat_accelerate(m, s, x, w, dt, n):
    """Accelerations towards the leaves."""
    for _ in range(n):
        accelerate(m, x, w)
        touch(w.u, 0)


@kernel
def repeat_cached(m, s, x, w, dt, n):
    """The rest of a call once everything that depends on the state alone is known."""
    for _ in range(n):
        balance(m, x, w)
        accelerate(m, x, w)
        touch(w.total, 0)


@kernel
def repeat_force_delta(m, w, t, first, last, n):
    """A test force on every moving body of a range, n times."""
    for _ in range(n):
        for body in range(first, last):
            if load(m.body_link, body) >= 0:
                force_delta(m, w, t, body)


@kernel
def repeat_torque_delta(m, w, t, first, last, n):
    """A test torque on every degree of freedom of a range, n times."""
    for _ in range(n):
        for dof in range(first, last):
            torque_delta(m, w, t, dof)


@kernel
def repeat_respond(m, w, t, n):
    """As many forces as there are lanes, n times."""
    for _ in range(n):
        respond(m, w, t)
        touch(t.tau, 0)


_TREE = (MODEL, STATE, INPUT, WORK)
_STAGE = ("float64", "int64")

ABM = entry(repeat_abm, *_TREE, extra=_STAGE)
CACHED = entry(repeat_cached, *_TREE, extra=_STAGE)
STAGES = {
    "place_links": entry(repeat_place, *_TREE, extra=_STAGE),
    "gather_forces": entry(repeat_gather, *_TREE, extra=_STAGE),
    "factor": entry(repeat_factor, *_TREE, extra=_STAGE),
    "balance": entry(repeat_balance, *_TREE, extra=_STAGE),
    "accelerate": entry(repeat_accelerate, *_TREE, extra=_STAGE),
}
FORCE_DELTA = entry(repeat_force_delta, MODEL, WORK, RESPONSE, extra=("int64", "int64", "int64"))
TORQUE_DELTA = entry(repeat_torque_delta, MODEL, WORK, RESPONSE, extra=("int64", "int64", "int64"))
RESPOND = entry(repeat_respond, MODEL, WORK, RESPONSE, extra=("int64",))
