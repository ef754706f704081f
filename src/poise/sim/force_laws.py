"""Force laws: functions of time and state that a world evaluates in every stage of its integrator.

Controllers are called once a step, and their outputs are constant over it, which reduces any integrator to first order.
A force law depends only on the present time, coordinates and velocities, so that it can be evaluated as often as
needed: in each stage of midpoint and RK4, and again when backtracking repeats a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.argument_checks import body_number, checked_vector
from poise.dynamics.state_queries import Bodies, bodies
from poise.model.model import Model

Array = NDArray[Any]


class PointMotion(NamedTuple):
    """A point of a body, in world axes."""

    position: Array
    """(3,) m."""
    velocity: Array
    """(3,) m/s."""


@dataclass(eq=False)
class Stage:
    """A stage of an integrator, the argument of force laws: time, coordinates, velocities, and forces to add to.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
    >>> model = scene.compile()
    >>> stage = Stage(model, 0.0, model.q_rest.copy(), np.zeros(model.nv))
    >>> stage.point("ball", (0, 0, 0.1)).position.tolist()
    [0.0, 0.0, 2.1]
    >>> stage.push("ball", (0, 0, 3), point=(1, 0, 2))
    >>> stage.forces[0].tolist()
    [0.0, -3.0, 0.0, 0.0, 0.0, 3.0]
    """

    model: Model
    time: float
    """s."""
    q: Array
    """(nq,) coordinates; a copy."""
    v: Array
    """(nv,) velocities; a copy."""
    tau: Array = field(init=False)
    """(nv,) generalized forces; laws add to them; N or N·m."""
    forces: Array = field(init=False)
    """(n_bodies, 6) wrenches (τ, f) in world axes at the bodies' origins; laws add to them; N·m, N."""
    _bodies: Bodies | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.tau, self.forces = np.zeros(self.model.nv), np.zeros((self.model.n_bodies, 6))

    @property
    def bodies(self) -> Bodies:
        """Poses and twists of all bodies."""
        if self._bodies is None:
            self._bodies = bodies(self.model, self.q, self.v)
        return self._bodies

    def point(self, body: str | int | None, point: ArrayLike = (0.0, 0.0, 0.0)) -> PointMotion:
        """Motion of a point that is fixed to a body, given in the body's frame; None is the world (m)."""
        local = checked_vector("point", point)
        if body is None:
            return PointMotion(local, np.zeros(3))
        index, all_bodies = body_number(self.model, body), self.bodies
        arm = all_bodies.rotation[index] @ local
        spin, speed = np.split(all_bodies.twist[index], 2)
        return PointMotion(all_bodies.position[index] + arm, speed + np.cross(spin, arm))

    def push(
        self,
        body: str | int | None,
        force: ArrayLike = (0.0, 0.0, 0.0),
        *,
        torque: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike | None = None,
    ) -> None:
        """Add a force (N) and a torque (N·m) on a body, both in world axes. The force acts at a point of the world (m),
        by default the centre of mass. A push on the world, None, has no effect.
        """
        if body is None:
            return
        index, push = body_number(self.model, body), checked_vector("force", force)
        all_bodies = self.bodies
        arm = (
            all_bodies.rotation[index] @ self.model.body_com[index]
            if point is None
            else checked_vector("point", point) - all_bodies.position[index]
        )
        self.forces[index] += np.concatenate((checked_vector("torque", torque) + np.cross(arm, push), push))


ForceLaw = Callable[[Stage], Any]
"""A function that adds to `tau` and `forces` of a stage, or pushes its bodies."""


def evaluate(laws: dict[str, ForceLaw], model: Model, time: float, q: Array, v: Array) -> Stage:
    """Evaluate all laws at a state."""
    total = Stage(model, time, q.copy(), v.copy())
    for name, law in laws.items():
        own = Stage(model, time, q.copy(), v.copy())
        own._bodies = total._bodies
        given = law(own)
        if given is not None:
            raise TypeError(f'force law "{name}" gave a {type(given).__name__}; it must add to its stage and give None')
        for what, wanted in (("tau", own.tau), ("forces", own.forces)):
            mine = getattr(total, what)
            if np.shape(wanted) != mine.shape or not np.isfinite(wanted).all():
                raise ValueError(f'{what} of force law "{name}" must be {mine.shape} finite numbers, found {wanted}')
            mine += wanted
        total._bodies = own._bodies
    return total


class LaidLaws:
    """Adds the forces of laws to the other inputs of a step."""

    def __init__(self, laws: dict[str, ForceLaw], model: Model, arrays: tuple[Array, ...], forces: Array) -> None:
        """`arrays`: q, v, tau and forces of the world; `forces`: those without laws."""
        self._laws, self._model, self._arrays = laws, model, arrays
        self._own = arrays[2].copy(), forces

    def __call__(self, time: float) -> None:
        """Evaluate the laws at a time and the present coordinates and velocities, and write the sums."""
        q, v, tau, forces = self._arrays
        wanted = evaluate(self._laws, self._model, time, q, v)
        with np.errstate(over="ignore"):  # the step reports an overflow as divergence
            tau[...], forces[...] = self._own[0] + wanted.tau, self._own[1] + wanted.forces

    def take_away(self) -> None:
        """Restore the inputs without laws."""
        self._arrays[2][...], self._arrays[3][...] = self._own


@dataclass
class PointSpring:
    """A spring and damper between points of two bodies, or of a body and the world (None): a force law.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(1, 0, 0))
    >>> world = scene.build(poise.Reduced(level="acceleration"), dt=0.01)
    >>> world.add_force(PointSpring(None, "ball", stiffness=8.0))
    'PointSpring'
    >>> world.step(157)
    >>> bool(abs(world.q[0] - np.cos(2.0 * 1.57)) < 1e-8)
    True
    """

    first: str | None
    second: str | None
    stiffness: float
    """N/m."""
    damping: float = 0.0
    """Along the line between both; N·s/m."""
    rest_length: float = 0.0
    """m."""
    point_first: ArrayLike = (0.0, 0.0, 0.0)
    """(3,) anchor in the frame of the first body or of the world; m."""
    point_second: ArrayLike = (0.0, 0.0, 0.0)
    """(3,) anchor in the frame of the second body or of the world; m."""
    pulls_only: bool = False
    """Whether the spring only pulls, like a cord."""

    def __call__(self, stage: Stage) -> None:
        """Add the forces on both ends."""
        a, b = stage.point(self.first, self.point_first), stage.point(self.second, self.point_second)
        away, apart = b.position - a.position, b.velocity - a.velocity
        length = float(np.linalg.norm(away))
        if length == 0.0:  # no direction; a spring with zero rest length has no force here
            return
        way = away / length
        force = self.stiffness * (length - self.rest_length) + self.damping * float(way @ apart)
        if self.pulls_only:
            force = max(force, 0.0) if length > self.rest_length else 0.0
        stage.push(self.first, force * way, point=a.position)
        stage.push(self.second, -force * way, point=b.position)
