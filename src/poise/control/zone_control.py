"""Base of controllers that keep a task within a zone by joint torques: `DeadZone` and `MarkerZone`.

A task is an error φ of some numbers, its rate, and its Jacobian. `Keeper` finds the force f of a spring and damper
beyond the zone, implicit in the step (`dead_zone_law`, LIU eqs. 12, 13), distributes it over joints rank by rank
(`demand_sharing`), and returns the remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.control.dead_zone_law import Zone, zone_force
from poise.control.demand_sharing import Helpers, SecondaryTarget, Task, number, ranks_of
from poise.dynamics.argument_checks import body_number
from poise.dynamics.functions import mass_matrix
from poise.model.model import Model
from poise.model.state import State
from poise.sim.controllers import StateToAct

Floats = NDArray[np.float64]
Joints = str | SecondaryTarget | Sequence[str] | Sequence[SecondaryTarget]


class Kept(NamedTuple):
    """Response to an error of k numbers."""

    force: Floats
    """(k,) commanded force; N·m or N."""
    torque: Floats
    """(nv,) torques of joints; N·m or N."""
    outside: Floats
    """(k,) residual force."""
    missing: Floats
    """(k,) part of the force that was not achieved."""
    ranks: int
    """Number of ranks of joints that acted."""


class Keeper:
    """Gains, bounds and joints of a controller with a dead zone."""

    def __init__(
        self,
        body: str | int,
        joints: Joints,
        fallbacks: Joints,
        zone: Zone,
        *,
        stiffness: float,
        damping: float,
        strength: float,
        residual: float,
        horizon: float,
        limit_time: float,
        leverage: float,
    ) -> None:
        self._ranks = ranks_of(joints, fallbacks)
        self._body, self._zone = body, zone
        self._stiffness, self._damping = number("stiffness", stiffness), number("damping", damping)
        self._strength, self._residual = number("strength", strength, infinite=True), number("residual", residual)
        self._time = number("limit_time", limit_time)
        if self._time == 0.0:
            raise ValueError("limit_time is 0; it must be positive")
        self._horizon = number("horizon", horizon)
        self._leverage = number("leverage", leverage, infinite=True)

    def bind(self, model: Model, /) -> None:
        """Look up bodies and joints."""
        self._model, self._number = model, body_number(model, self._body)
        link = int(model.body_link[self._number])
        if link < 0:
            raise ValueError(f'body "{model.body_names[self._number]}" never moves: there is nothing to keep')
        tree = np.flatnonzero(model.link_root == model.link_root[link])
        dofs = np.flatnonzero(np.isin(model.dof_link, tree) & (model.dof_prescribed == 0))
        self._dofs = dofs
        self._helpers = Helpers(model, self._ranks, self._time, self._leverage)
        for dof in self._helpers.dofs:
            if dof not in dofs:
                name, of = model.joint_names[int(model.dof_joint[dof])], model.body_names[self._number]
                raise ValueError(f'joint "{name}" is not of the character that "{of}" belongs to')

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    def _keep(self, state: StateToAct, phi: Floats, rate: Floats, rows: Callable[[], Floats]) -> Kept | None:
        """The response to an error; `rows` returns its Jacobian (k, nv). None within the zone."""
        horizon = max(state.dt, self._horizon)
        ahead = phi + horizon * rate
        if float(np.linalg.norm(phi)) <= self._zone.radius and float(np.linalg.norm(ahead)) <= self._zone.radius:
            return None
        J, inverse = rows(), self._inverse(state.q)
        A = J @ inverse @ J.T
        A = 0.5 * (A + A.T)
        force = zone_force(self._zone, phi, rate, A, horizon, self._stiffness, self._damping)
        size = float(np.linalg.norm(force))
        if size == 0.0:
            return None
        force = force * min(1.0, self._strength / size)
        done = self._helpers.share(Task(A, J, inverse, state.q, state.v, state.dt), force)
        left = float(np.linalg.norm(done.missing))
        outside = done.missing * (min(1.0, self._residual / left) if left > 0.0 else 0.0)
        return Kept(force, done.torque, outside, done.missing - outside, done.ranks)

    def _inverse(self, q: Floats) -> Floats:
        """(nv, nv) M⁻¹ of the body's tree; 0 elsewhere."""
        some = np.ix_(self._dofs, self._dofs)
        whole = np.zeros((self._model.nv, self._model.nv))
        whole[some] = np.linalg.inv(mass_matrix(self._model, q)[some])
        return 0.5 * (whole + whole.T)

    def _pushes(self, arm: Floats, force: Floats, moment: Floats) -> Any:
        """(n_bodies, 6) external wrenches, or None if not allowed: a force at an arm from the origin, a moment."""
        if self._residual == 0.0:
            return None
        forces = np.zeros((self._model.n_bodies, 6))
        forces[self._number] = (*(moment + np.cross(arm, force)), *force)
        return forces
