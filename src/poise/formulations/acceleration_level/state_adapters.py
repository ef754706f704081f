"""State at acceleration level: coordinates of a tree, or the states of separate bodies.

Integrators and backtracking use positions, which are displaced as q ⊕ φ, and velocities, for both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.maximal_bodies.body_state import OWN, SPIN
from poise.formulations.acceleration_level.acceleration_entries import BEGIN, GO, KICK, MEND, RATES, SPREAD
from poise.kernel.memory import F64
from poise.kernel.quat import exp_rate
from poise.kernel.vec import Vec3
from poise.motion.rotations import quat_exp, quat_multiply, quat_normalize

if TYPE_CHECKING:
    from poise.formulations.driver import Stepper
    from poise.formulations.maximal_coordinates.maximal_driver import ApartStepper

Array = NDArray[Any]
Place = tuple[Array, Array]
"""Positions and velocities."""


class Carrier(Protocol):
    """The state of a world in its workspace."""

    def begin(self) -> None:
        """Begin a step: apply changes that were written to coordinates."""

    def state(self) -> Place:
        """A copy of the state."""

    def put(self, q: Array, v: Array) -> None:
        """Restore a copy."""

    def move(self, q: Array, way: Array, v: Array) -> None:
        """Set the state to q ⊕ way, with velocities v."""

    def coast(self, q: Array, way: Array, v: Array, speed: Array) -> None:
        """Set the state to q ⊕ way, a small displacement, with joint velocities `speed`."""

    def rate(self, way: Array) -> Array:
        """Rate of the displacement since the step began, at the current velocity (see `dynamics.integrate`)."""

    def kick(self, change: Array) -> None:
        """Add a change of joint velocities."""

    def rates(self, a: Array) -> Array:
        """Rates of the velocities, from joint accelerations. The free motion must have been computed."""

    def mend(self) -> None:
        """Close gaps of joints."""


class OnTree:
    """State of a tree: coordinates and velocities of joints."""

    def __init__(self, stepper: Stepper) -> None:
        self.space = stepper.space
        self._move = tuple(block.handle for block in (self.space.m, self.space.s, self.space.stages))

    def begin(self) -> None:
        """Nothing to do: the state is the coordinates."""

    def state(self) -> Place:
        """A copy of the state."""
        return self.space.s.q.copy(), self.space.s.v.copy()

    def put(self, q: Array, v: Array) -> None:
        """Restore a copy."""
        self.space.s.q[...], self.space.s.v[...] = q, v

    def move(self, q: Array, way: Array, v: Array) -> None:
        """Set the state to q ⊕ way, with velocities v."""
        stages = self.space.stages
        stages.q0[...], stages.shift[...] = q, way
        GO[F64](*self._move, 1.0)
        self.space.s.v[...] = v

    def coast(self, q: Array, way: Array, v: Array, speed: Array) -> None:
        """Set the state to q ⊕ way."""
        self.move(q, way, speed)

    def rate(self, way: Array) -> Array:
        """Rate of the displacement since the step began."""
        self.space.stages.shift[...] = way
        RATES[F64](*self._move)
        return np.array(self.space.stages.rate)

    def kick(self, change: Array) -> None:
        """Add a change of velocities."""
        self.space.s.v[...] += change

    def rates(self, a: Array) -> Array:
        """The accelerations themselves."""
        return a

    def mend(self) -> None:
        """Joints of a tree have no gaps."""


class OnBodies:
    """State of separate bodies: rotations and centres of mass, (7 n,); angular velocities and velocities, (6 n,)."""

    def __init__(self, stepper: ApartStepper) -> None:
        space = stepper.space
        n = OWN * stepper.model.n_links
        self.own, self.flow = stepper.bodies.own[:n].reshape(-1, OWN), stepper.flow
        self.speed, self.read = space.s.v, stepper.bodies.own[n + stepper.model.nq :]
        self._spread = tuple(block.handle for block in (space.m, space.w, stepper.flow, stepper.bodies))
        self._begin = tuple(block.handle for block in (space.m, space.s, space.w, stepper.bodies))
        self._mend = tuple(block.handle for block in (space.m, space.s, stepper.end, stepper.bodies, stepper.options))

    def begin(self) -> None:
        """Apply changes that were written to coordinates."""
        BEGIN[F64](*self._begin)

    def state(self) -> Place:
        """A copy of the state."""
        return self.own[:, :SPIN].flatten(), self.own[:, SPIN:].flatten()

    def put(self, q: Array, v: Array) -> None:
        """Restore a copy."""
        self.own[:, :SPIN], self.own[:, SPIN:] = q.reshape(-1, SPIN), v.reshape(-1, 6)

    def move(self, q: Array, way: Array, v: Array) -> None:
        """Set the state to q ⊕ way, with velocities v; rotations are in world axes."""
        place, shift = q.reshape(-1, SPIN), way.reshape(-1, 6)
        turn = quat_exp(shift[:, :3])
        self.own[:, :4] = quat_normalize(quat_multiply(turn, place[:, :4]))
        self.own[:, 4:SPIN] = place[:, 4:] + shift[:, 3:]
        self.own[:, SPIN:] = v.reshape(-1, 6)

    def coast(self, q: Array, way: Array, v: Array, speed: Array) -> None:
        """Set the state to q ⊕ way; with the same twists, joints would have other velocities there."""
        self.move(q, way, v)
        self.read[...] = np.nan  # equals no velocity: bodies take those of joints
        self.speed[...] = speed

    def rate(self, way: Array) -> Array:
        """Rate of the displacement since the step began."""
        shift, rate = way.reshape(-1, 6), self.own[:, SPIN:].copy()
        turning = exp_rate(Vec3(*-shift[:, :3].T), Vec3(*rate[:, :3].T))
        rate[:, :3] = np.stack(list(turning.leaves()), axis=1)
        return rate.ravel()

    def kick(self, change: Array) -> None:
        """Add a change of joint velocities."""
        self.flow.x[...] = change
        KICK[F64](*self._spread)

    def rates(self, a: Array) -> Array:
        """(6 n,) rates of bodies, from joint accelerations."""
        self.flow.x[...] = a
        SPREAD[F64](*self._spread)
        return np.array(self.flow.motion).ravel()

    def mend(self) -> None:
        """Close gaps of joints, and remove the slips of bodies along them."""
        MEND[F64](*self._mend)
