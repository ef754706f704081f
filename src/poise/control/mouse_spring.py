"""Mouse spring: pulls a point of a body towards a moving target."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.point_springs import PointTarget, Pulled
from poise.control.torque_limits import weight_of
from poise.dynamics.argument_checks import body_number, checked_vector
from poise.dynamics.response_api import response
from poise.dynamics.state_queries import bodies, jacobian
from poise.model.model import Model
from poise.motion.path import PathPoint
from poise.sim.controllers import StateToAct, Targets

Floats = NDArray[np.float64]

#: natural frequency of a dragged point without other constraints; 1/s
QUICKNESS = 20.0
#: default force limit, in weights of the body's tree
WEIGHTS = 2.0
#: greatest distance from the target at which the default force limit is reached; m
REACH = 1.0


class Drag:
    """Pulls a point of a body towards `target` (m) by a spring and damper with a bounded force; a controller.

    `strength` is the greatest force (N), by default twice the weight of the whole character. The defaults of
    `stiffness` (N/m) and `damping` (N·s/m) follow from the effective mass of the point. `target` is assignable at any
    time; None releases the body. At velocity level the spring is an implicit row; at acceleration `level` it is a force
    of the state, with a stiffness that the step bounds.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box", position=(0, 0, 1))
    >>> world = scene.build()
    >>> drag = Drag("box", target=(0.5, 0, 1.2))
    >>> _ = world.add_controller(drag, name="drag")
    >>> world.step(240)
    >>> world.body("box").position.round(2).tolist()  # it sags by g over the square of the quickness
    [0.5, 0.0, 1.18]
    """

    def __init__(
        self,
        body: str | int,
        point: ArrayLike = (0.0, 0.0, 0.0),
        target: ArrayLike | None = None,
        *,
        strength: float | None = None,
        stiffness: float | None = None,
        damping: float | None = None,
        level: Literal["velocity", "acceleration"] = "velocity",
    ) -> None:
        if level not in ("velocity", "acceleration"):
            raise ValueError(f"level is {level!r}; there are velocity, acceleration")
        self.body, self.point, self.level = body, checked_vector("point", point), level
        self.number = -1
        self._given = strength, stiffness, damping
        for name, value in zip(("strength", "stiffness", "damping"), self._given, strict=True):
            if value is not None and not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} is {value}; it must be a number, 0 or more")
        self._target: Floats | None = None
        self.target = target
        self._pulled: Pulled | None = None

    @property
    def target(self) -> Floats | None:
        """(3,) target of the point, or None; assignable; m."""
        return None if self._target is None else self._target.copy()

    @target.setter
    def target(self, target: ArrayLike | None) -> None:
        self._target = None if target is None else checked_vector("target", target)

    def bind(self, model: Model, /) -> None:
        """Look up the body; raises for bodies that never move."""
        self._model, self.number = model, body_number(model, self.body)
        if int(model.body_link[self.number]) < 0:
            raise ValueError(f'body "{model.body_names[self.number]}" does not move: it cannot be dragged')
        self._pulled = None

    @property
    def strength(self) -> float:
        """Greatest force; N."""
        return self._spring()[0]

    def place(self, q: ArrayLike) -> Floats:
        """(3,) position of the point at a pose; m."""
        found = bodies(self._model, q)
        return np.asarray(found.position[self.number] + found.rotation[self.number] @ self.point)

    def _spring(self, q: Floats | None = None) -> tuple[float, float, float]:
        """Strength, stiffness and damping."""
        strength, stiffness, damping = self._given
        root = int(self._model.link_root[self._model.body_link[self.number]])
        usual = WEIGHTS * weight_of(self._model, root)
        strength = usual if strength is None else strength
        if stiffness is None or damping is None:
            mass = self._felt(self._model.q_rest if q is None else q)
            # the effective mass of a hand is small, but the whole body holds it
            stiffness = max(mass * QUICKNESS**2, usual / REACH) if stiffness is None else stiffness
            damping = 2.0 * np.sqrt(mass * stiffness) if damping is None else damping
        return float(strength), float(stiffness), float(damping)

    def _mobility(self, q: Floats) -> tuple[Floats, Floats]:
        """(3, nv) Jacobian of the point, and (3, 3) its velocity per unit impulse; 1/kg."""
        J = jacobian(self._model, q, self.number, self.point).J[3:]
        return J, J @ response(self._model, q, J).T

    def _felt(self, q: Floats) -> float:
        """Effective mass of the point, averaged over directions; 0 if it cannot move; kg."""
        along = float(np.trace(self._mobility(q)[1])) / 3.0
        return 1.0 / along if along > 1e-9 else 0.0

    def update(self, state: StateToAct, /) -> Targets | None:
        """The spring's row or forces for the next step."""
        if self._target is None:
            return None
        if self._pulled is None:  # computed from the pose at the beginning of the drag
            self._numbers = self._spring(state.q)
            strength, stiffness, damping = self._numbers
            held = PointTarget(
                self.number, self._path, self.point, strength=strength, stiffness=stiffness, damping=damping
            )
            self._pulled = Pulled(held, self._model, 0.0)
        if self.level == "acceleration":
            return Targets(forces=self._wrenches(state))
        pulled = self._pulled

        def add(world: Any, rows: Any) -> None:
            pulled.add(rows, world.q, state.time, state.dt)

        return Targets(rows=add)

    def _path(self, time: float, /) -> PathPoint:
        zero = np.zeros(3)
        assert self._target is not None
        return PathPoint(self._target, np.array((1.0, 0.0, 0.0, 0.0)), zero, zero, zero, zero)

    def _wrenches(self, state: StateToAct) -> Floats:
        """(n_bodies, 6) the spring's force at the end of the step, as if no other force acted."""
        assert self._target is not None
        strength, stiffness, damping = self._numbers
        J, mobility = self._mobility(state.q)
        h, speed, now = state.dt, J @ state.v, self.place(state.q)
        pull = stiffness * (self._target - now - h * speed) - damping * speed
        force = np.linalg.solve(np.eye(3) + h * (h * stiffness + damping) * mobility, pull)
        size = float(np.linalg.norm(force))
        if size > strength:
            force *= strength / size
        wrenches = np.zeros((self._model.n_bodies, 6))
        arm = now - bodies(self._model, state.q).position[self.number]
        wrenches[self.number] = (*np.cross(arm, force), *force)
        return wrenches
