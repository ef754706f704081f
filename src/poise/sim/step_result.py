"""Result of the last step: its beginning and end, the accelerations, and the forces.

At velocity level, the accelerations a of a step satisfy M a + bias = τ + passive forces + Jᵀλ / h at the beginning of
the step, so that inverse dynamics there returns the forces in every joint to rounding. In three cases a = (v⁺ − v) / h,
with an error of first order in h: at acceleration level, where forces are those of the end of the step; in maximal
coordinates; and in steps that continuous collision splits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.motor import plain_forces
from poise.constraints.row_store import STRIDES
from poise.dynamics.state_queries import bodies
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.driver import Stepper
from poise.kernel.memory import Block

Array = NDArray[Any]


class LastStep:
    """The beginning and the end of a step, or of its last substep."""

    def __init__(self, q: Array, v: Array, forces: Array) -> None:
        self.q, self.v = q.copy(), v.copy()
        """At the beginning."""
        self.v_end, self.tau, self.forces = v.copy(), np.zeros_like(v), np.zeros_like(forces)
        self.h = 1.0
        """s."""
        self.done = False

    def clear(self, q: Array, v: Array) -> None:
        """Reset: no step is done since the given state."""
        self.q[...], self.v[...], self.v_end[...] = q, v, v
        self.tau[...], self.forces[...], self.h, self.done = 0.0, 0.0, 1.0, False

    @property
    def arrays(self) -> tuple[Array, ...]:
        """(nq,), (nv,), (nv,), (nv,), (n_bodies, 6): q, v, v_end, tau, forces."""
        return self.q, self.v, self.v_end, self.tau, self.forces

    def begin(self, q: Array, v: Array, h: float) -> None:
        """Store the state at the beginning of a step."""
        self.q[...], self.v[...], self.h, self.done = q, v, h, False

    def end(self, v: Array, tau: Array, forces: Array) -> None:
        """Store the end of the step, and its inputs: generalized forces, wrenches on bodies.

        `v` is the velocity that the equations of motion at the beginning yield.
        """
        self.v_end[...], self.tau[...], self.forces[...], self.done = v, tau, forces, True

    @property
    def a(self) -> Array:
        """(nv,) accelerations over the step."""
        return (self.v_end - self.v) / self.h if self.done else np.zeros_like(self.v)


def passive_forces(work: Block, last: LastStep, motors: Block | None = None) -> Array:
    """(nv,) forces of springs, dampers and drives, evaluated at the end of the step; N or N·m.

    Their sum in the work block includes motors without feedback, which are subtracted if the motors' block is given.
    """
    if not last.done:
        return np.zeros_like(last.v)
    passive = np.asarray(work.total - last.tau - work.diagonal * last.a)
    return passive if motors is None or not len(motors.force) else passive - plain_forces(motors, last.a)


def row_forces(stepper: Stepper | Accelerated, last: LastStep) -> tuple[Array, Array]:
    """Forces of all rows: (n_bodies, 6) wrenches on bodies, world axes at their origins, and (nv,) on coordinates."""
    model, rows = stepper.model, stepper.rows.now
    wrenches, along = np.zeros((model.n_bodies, 6)), np.zeros(model.nv)
    if not last.done:
        return wrenches, along
    slots = np.concatenate(
        [first + np.arange(n * k) for first, n, k in zip(rows.first, rows.count, STRIDES, strict=True)]
    ).astype(np.int64)
    lam = rows.lam[slots] / stepper.force_unit(last.h)
    for body, J in ((rows.a, rows.Ja), (rows.b, rows.Jb)):
        _add(wrenches, body[slots], J[slots] * lam[:, None])
    _add(along, rows.dof[slots], rows.Jdof[slots] * lam)
    _add_terms(rows, slots, lam, wrenches, along)
    place = bodies(model, last.q)
    arm = np.einsum("nij,nj->ni", place.rotation, model.body_com)  # rows act at centres of mass
    wrenches[:, :3] += np.cross(arm, wrenches[:, 3:])
    return wrenches, along


def _add(total: Array, index: Array, values: Array) -> None:
    there = index >= 0
    np.add.at(total, index[there], values[there])


def _add_terms(rows: Block, slots: Array, lam: Array, wrenches: Array, along: Array) -> None:
    """Further terms of rows, chain by chain."""
    for slot, force in zip(slots[rows.term[slots] >= 0], lam[rows.term[slots] >= 0], strict=True):
        term = int(rows.term[slot])
        while term >= 0:
            if (body := int(rows.term_body[term])) >= 0:
                wrenches[body] += rows.term_J[term] * force
            if (dof := int(rows.term_dof[term])) >= 0:
                along[dof] += rows.term_Jdof[term] * force
            term = int(rows.term_next[term])
