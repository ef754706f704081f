"""Trajectory motor: joint motors move markers along prescribed paths (VON §5.4).

VON's method is first-order inverse dynamics. Before a step, an auxiliary step from the same state ties markers to their
targets by ball joints, while a motor keeps the root's motion. The joint motors then follow its velocities within their
strength. Here the auxiliary step is solved without changing the state: with v₀ its initial velocities,

    least ½ (v − v₀)ᵀ M (v − v₀)  such that  ż = ż_d − α (z − z_d) of all markers, limits of joints hold,
                                            and undriven joints, in particular the root, keep their motion

A small softness makes contradictory ties a least squares problem. Ties are softer if a marker is far from its target:
a Newton step towards an unreachable target needs a damping of the error times the curvature of the marker's path, or a
stretched arm oscillates. This part vanishes with the error.

VON's own step has v₀ = v + dt a, with the momentum and weight that joints would have without their motors
(`free="moving"`). With `free="still"` v₀ is zero, and unconstrained motion stays at rest: then it is an iteration of
inverse kinematics (`ik`), which moves heavy parts least. The auxiliary step has no contacts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control import goals
from poise.control.demand_sharing import number
from poise.control.ik_rows import GoalRows, checked_goals, held_model
from poise.control.torque_limits import by_joint, named
from poise.dynamics.argument_checks import body_number, checked_vector
from poise.model.errors import did_you_mean, last_part
from poise.model.model import Model
from poise.model.state import State
from poise.motion.motion_checks import choice, vectors
from poise.motion.path import PathPoint
from poise.sim.controllers import StateToAct, Targets
from poise.sim.world_motors import MotorGoals, rows_by_dof
from poise.solve.dantzig import pivot_rows

Floats = NDArray[np.float64]
Free = Literal["still", "moving"]

ALPHA = 20.0
"""Default rate at which errors of markers decay; 1/s."""
LEAST = 1e-9
"""Softness of ties, relative to the largest entry of A."""
CURVED = 4.0
"""Additional softness per error of the length of a bone, times α dt. With 2, stretched limbs do not oscillate."""


@dataclass(frozen=True, eq=False)
class Marker:
    """A point of a body, and its target in the world.

    `position` is a point (m), a path (`poise.motion.KeyedPath`), or a function of time (s) that returns a point. The
    velocity of a path is fed forward; for other functions, `velocity` (m/s) is.

    >>> Marker("hand_r", (0.4, -0.2, 1.1)).wanted(0.0, 0.01)[0].tolist()
    [0.4, -0.2, 1.1]
    """

    body: str | int
    """By its name or number."""
    position: ArrayLike | Callable[[float], Any]
    """Target; m."""
    point: ArrayLike = (0.0, 0.0, 0.0)
    """In the body's frame; m."""
    velocity: ArrayLike | Callable[[float], ArrayLike] | None = None
    """m/s."""
    weight: float = 1.0
    """Weight among contradictory markers."""

    def __post_init__(self) -> None:
        """Validate the fields."""
        checked_vector("point", self.point)
        if not 1e-3 <= number("weight", self.weight) <= 1e3:
            raise ValueError(f"weight is {self.weight}; it must be from 1e-3 to 1e3")
        self.wanted(0.0, 1.0)

    def wanted(self, time: float, dt: float) -> tuple[Floats, Floats]:
        """(3,) target position and velocity in a step; m, m/s."""
        now = self.position(time) if callable(self.position) else self.position
        rate = np.zeros(3)
        if isinstance(now, PathPoint):
            assert callable(self.position)
            rate = (self.position(time + dt).position - now.position) / dt
            now = now.position
        if self.velocity is not None:
            rate = vectors("velocity", self.velocity(time) if callable(self.velocity) else self.velocity, (3,))
        return vectors("position", now, (3,)), rate


@dataclass(frozen=True, eq=False)
class TrajectoryReading:
    """Reading of a trajectory motor after the last step."""

    error: Floats
    """(markers,) errors of markers at the beginning of the step; m."""
    speed: Floats
    """(nv,) velocities of the auxiliary step; for driven joints the targets of their motors."""
    slowed: float
    """Scale of these speeds, less than 1 if one would be faster than `fastest`."""


class TrajectoryMotor:
    """Moves markers along their paths by the motors of joints (VON §5.4); for `world.add_controller`.

    The motors are those of the scene (`scene.motor`, `hero.track`). Driven are the joints between the markers and the
    root, or `joints`, given by names, parts or patterns. Their motors become velocity servos; `strength` (N·m or N; one
    for all or by joints) replaces their limits. Errors of markers shrink by 1 − `alpha` dt in a step. Target speeds are
    at most `fastest` (rad/s or m/s). The controller has no memory, and changes only settings of motors.

    >>> import poise
    >>> scene = poise.Scene()
    >>> bar = lambda: poise.box(0.4, 0.05, 0.05)
    >>> upper = scene.hinge(None, bar(), axis="y", anchor=(-0.2, 0, 0), name="upper")
    >>> _ = scene.hinge(upper, bar(), axis="y", anchor=(-0.2, 0, 0), position=(0.4, 0, 0), name="lower")
    >>> _ = scene.motor("upper", limit=50.0), scene.motor("lower", limit=50.0)
    >>> world = scene.build()
    >>> tip = Marker("lower", (0.2, 0, -0.5), point=(0.2, 0, 0))
    >>> _ = world.add_controller(TrajectoryMotor([tip]))
    >>> world.step(240)
    >>> (world.body("lower").position + world.body("lower").rotation @ (0.2, 0, 0)).round(3).tolist()
    [0.2, 0.0, -0.5]
    """

    def __init__(
        self,
        markers: Marker | Sequence[Marker],
        *,
        joints: str | Sequence[str] | None = None,
        strength: Any = None,
        alpha: float = ALPHA,
        free: Free = "still",
        fastest: float = 30.0,
    ) -> None:
        self.markers = (markers,) if isinstance(markers, Marker) else tuple(markers)
        if not self.markers:
            raise ValueError("there are no markers")
        for marker in self.markers:
            if not isinstance(marker, Marker):
                raise TypeError(f"markers: found a {type(marker).__name__}; it must be a Marker")
        self._asked = [joints] if isinstance(joints, str) else None if joints is None else list(joints)
        self.alpha, self.fastest = number("alpha", alpha), number("fastest", fastest, infinite=True)
        self.free: Free = choice("free", free, get_args(Free))
        self.strength = strength
        self.reading: TrajectoryReading | None = None
        """Reading of the last step."""
        self._model: Model | None = None
        self._rows: GoalRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles create their own rows."""
        return self.__dict__ | {"_rows": None}

    # ---- binding -----------------------------------------------------------------------------------------------------

    def bind(self, model: Model, /) -> None:
        """Look up bodies, joints and motors. A controller belongs to one model."""
        if self._model is not None:
            if self._model is not model:
                raise ValueError("this drives joints in a world of another model: make another one for this one")
            return
        bodies = [body_number(model, marker.body) for marker in self.markers]
        rows = rows_by_dof(model)
        dofs = _above(model, bodies, rows) if self._asked is None else _asked(model, self._asked, rows)
        self._dofs = np.array(dofs, np.intp)
        self._motors = np.array([rows[d] for d in dofs], np.intp)
        names = list(dict.fromkeys(model.joint_names[int(model.dof_joint[d])] for d in dofs))
        self._limits: Floats | None = None
        if self.strength is not None:
            limits = by_joint("strength", self.strength, names, inf)
            self._limits = np.array([limits[model.joint_names[int(model.dof_joint[d])]] for d in dofs])
        self.joints: tuple[str, ...] = tuple(names)
        """Names of the joints that are driven."""
        self._driven = np.zeros(model.nv, bool)
        self._driven[self._dofs] = True
        self._model = model

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    def _laid(self) -> GoalRows:
        """Rows of the markers, on the model with undriven joints held."""
        model = self._model
        assert model is not None
        held = [model.dof_names[d] for d in np.flatnonzero(~self._driven)]
        places = [goals.position(marker.body, (0.0, 0.0, 0.0), point=marker.point) for marker in self.markers]
        return GoalRows(held_model(model, held), checked_goals(model, places), limits=True)

    # ---- acting ------------------------------------------------------------------------------------------------------

    def update(self, state: StateToAct, /) -> Targets:
        """Settings of the motors for the next step; called by the world."""
        v, error = self.speeds(state.q, state.v, state.time, state.dt)
        most = float(np.abs(v[self._dofs]).max(initial=0.0))
        share = min(1.0, self.fastest / most) if most > 0.0 else 1.0
        self.reading = TrajectoryReading(error, v, share)
        n = len(self._dofs)
        hard = {"stiffness": np.zeros(n), "damping": np.full(n, inf)}
        return Targets(motors=[MotorGoals(self._motors, speed=share * v[self._dofs], limit=self._limits, **hard)])

    def speeds(self, q: Floats, v: Floats, time: float, dt: float) -> tuple[Floats, Floats]:
        """(nv,) velocities of the auxiliary step, and (markers,) errors of markers; rad/s or m/s, m."""
        if self._rows is None:
            self._rows = self._laid()
        rows, rates = self._rows, []
        for marker, goal in zip(self.markers, rows.goals, strict=True):
            goal.wanted[:], rate = marker.wanted(time, dt)
            rates.append(rate)
        phi, room = rows.look(q)
        still = self.free == "still"
        A, _, lo = rows.see(q, np.where(self._driven, 0.0, v) if still else v, 0.0 if still else dt)
        error = np.linalg.norm(phi.reshape(-1, 3), axis=1)
        alpha, n = min(self.alpha, 1.0 / dt), rows.n_goals
        # bound the approach speed of far markers
        far = np.minimum(error, self.fastest * rows.length / alpha if alpha > 0.0 else inf)
        share = np.divide(far, error, out=np.ones_like(error), where=error > 0.0)
        b = rows.speed
        b[:n] += alpha * np.repeat(share, 3) * phi - np.concatenate(rates)
        b[n:] += np.where(room > 0.0, room / dt, alpha * room)
        diagonal = A.diagonal()
        scale = float(diagonal[:n].max())
        # equal for all, so that contradictory markers compromise by their weights
        give = LEAST + CURVED * alpha * dt * float(far.max()) / rows.length
        soft = scale * give / np.array([one.weight for one in self.markers]) ** 2
        own = np.concatenate((np.repeat(soft, 3), np.full(len(room), LEAST * scale)))
        # no rows for limits of held joints
        use = np.flatnonzero(np.concatenate((np.ones(n, bool), diagonal[n:] > LEAST * scale)))
        if scale == 0.0:
            return rows.free, error
        found = pivot_rows(
            A[np.ix_(use, use)] + np.diag(own[use]), b[use], lo[use], np.full(len(use), inf), limit=20 * len(use) + 200
        )
        lam = np.zeros(len(b))
        lam[use] = found.lam
        return rows.free + rows.displacement(lam), error


def _above(model: Model, bodies: Sequence[int], rows: dict[int, int]) -> list[int]:
    """Degrees of freedom with motors between bodies and their roots; free roots are held."""
    found: set[int] = set()
    for body in bodies:
        link = int(model.body_link[body])
        while link >= 0:
            found |= set(range(*model.link_dof_start[link : link + 2].tolist()))
            link = int(model.link_parent[link])
    dofs = [d for d in sorted(found) if d in rows and _can(model, d)]
    if not dofs:
        names = ", ".join(f'"{model.body_names[body]}"' for body in bodies)
        raise ValueError(f"there are no motors that move {names}: use scene.motor(…) before the scene is built")
    return dofs


def _asked(model: Model, names: Sequence[Any], rows: dict[int, int]) -> list[int]:
    """Degrees of freedom of joints by names, parts or patterns; all must have motors."""
    dofs: list[int] = []
    for name in names:
        joints = named(name, model.joint_names)
        if not joints:
            near = did_you_mean(str(name), [last_part(joint) for joint in model.joint_names])
            raise ValueError(f"joints: there is no part or joint {name!r}{near}")
        for joint in joints:
            k = model.joint_index(joint)
            own = range(*model.joint_v_start[k : k + 2].tolist())
            if missing := [model.dof_names[d] for d in own if d not in rows or not _can(model, d)]:
                raise ValueError(
                    f"joints: there are no motors that could drive {', '.join(missing[:4])}: use scene.motor(…); free "
                    "roots and what follows a path are held"
                )
            dofs += [d for d in own if d not in dofs]
    return dofs


def _can(model: Model, dof: int) -> bool:
    """Whether joint motors can drive a degree of freedom: neither a free root's nor kinematic."""
    return model.joint_kinds[int(model.dof_joint[dof])] != "free" and not model.dof_prescribed[dof]
