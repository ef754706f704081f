"""Reports of steps: contacts with their forces, limits, solver statistics, energy and momentum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.ball_joint_limit import CONE, TWIST_LOWER, TWIST_UPPER
from poise.constraints.kinds.joint_limit import CODES, FRICTION, LOWER, UPPER
from poise.constraints.prebuilt_rows import USERS
from poise.constraints.row_store import CONTACT, SINGLE
from poise.dynamics.state_queries import Energy, Momentum
from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.acceleration_level.acceleration_tracking import TRACK
from poise.formulations.driver import Stepper
from poise.model.model import Model
from poise.sim.step_result import LastStep
from poise.sim.world_loops import LoopReport, loop_reports
from poise.sim.world_motors import motor_rows

Array = NDArray[Any]
_LIMITS = {LOWER: "lower", UPPER: "upper", FRICTION: "friction", TRACK: "track"}
_BALL_LIMITS = {CONE: "cone", TWIST_LOWER: "twist lower", TWIST_UPPER: "twist upper"}


@dataclass(frozen=True)
class ContactReport:
    """A contact at the beginning of the last step, with its force over the step."""

    body_a: str
    body_b: str
    point: Array
    """(3,) m."""
    normal: Array
    """(3,) from A to B."""
    depth: float
    """Positive where the shapes overlap; m."""
    force: Array
    """(3,) on B; N."""
    shape_a: str = ""
    shape_b: str = ""
    impulse: Array = field(default_factory=lambda: np.zeros(3))
    """(3,) impulse on B of the step, or of its last substep; N·s."""

    @property
    def normal_force(self) -> float:
        """N."""
        return float(self.force @ self.normal)


@dataclass(frozen=True)
class LimitReport:
    """An active row of a coordinate or ball joint: a joint limit, dry friction, or tracking."""

    dof: str
    """Name of the coordinate, or of the ball joint for cone and twist limits."""
    what: str
    """"lower", "upper", "friction" or "track"; for a ball joint "cone", "twist lower" or "twist upper"."""
    force: float
    """Force along the coordinate; N or N·m. For a ball joint, torque of the limit, negative if it reduces the twist."""


class StepReport:
    """Common part of reports. The data of the step is copied at once; lists are built at their first use."""

    def __init__(self, model: Model, frame: Mapping[str, Array], limits: tuple[Array, Array, Array], h: float) -> None:
        """`frame`: the arrays of a frame with contacts, see `sim.observer.FrameBuffer`; `limits`: ids, forces and
        directions of rows of one coordinate; `h`: length of the step (s).
        """
        self._model, self._frame, self._limits, self._h = model, frame, limits, h

    @cached_property
    def contacts(self) -> list[ContactReport]:
        """Contacts that have rows, in the order of the narrowphase."""
        f = self._frame
        pushing = Pushing(f["shapes"], f["point"], f["normal"], f["depth"], f["force"], self._h)
        return pushing.listed(self._model)

    @cached_property
    def limits(self) -> list[LimitReport]:
        """Active rows of coordinates and ball joints: limits, dry friction, tracking."""
        found = zip(*(array.tolist() for array in self._limits), strict=True)
        return [limit_of(self._model, id, force, along) for id, force, along in found if 0 <= id < USERS]

    @property
    def overlap(self) -> float:
        """Maximum penetration: depth of the deepest contact with rows at the beginning of the step, or 0; m."""
        return float(self._frame["depth"].max(initial=0.0))

    @cached_property
    def beyond(self) -> float:
        """Greatest limit violation of a coordinate after the step, or 0; rad or m."""
        return farthest_beyond(self._model, self._frame["q"][0])


class Report(StepReport):
    """The last step of a world."""

    def __init__(
        self,
        stepper: Stepper | Accelerated,
        last: LastStep,
        frame: Mapping[str, Array],
        timing: dict[str, float] | None = None,
    ) -> None:
        """`frame`: the arrays of a frame with all parts, see `sim.observer.FrameBuffer`."""
        told, rows = stepper.told, stepper.rows.now
        self._done = last.done
        self._loops = loop_reports(stepper.extras) if last.done and stepper.extras.joints else []
        first = int(rows.first[SINGLE])
        ends = slice(first, first + int(rows.count[SINGLE]) if last.done else first)
        limits = rows.id[ends].copy(), rows.lam[ends] / stepper.force_unit(last.h), rows.Jdof[ends].copy()
        super().__init__(stepper.model, frame, limits, last.h)
        self.time = float(frame["time"][0])
        """s."""
        self.rows = stepper.n_rows
        self.sweeps = told.sweeps
        self.newton_steps = told.newton_steps
        self.residual = told.residual
        """Natural residual divided by the largest speed that the rows had to remove."""
        self.parts = told.parts
        """Number of parts into which continuous collision split the step. Contacts are those of the last part. Forces
        of contacts and limits are the impulses of the longest part (the last of equal ones), scaled to a whole step."""
        self.backtracks = told.backtracks
        """Tentative steps that backtracking discarded, at acceleration level."""
        self.level = told.level
        """Level at which the step finally succeeded."""
        self.work = told.work
        """Work of all solves of the step, in the unit of `Reduced.budget`."""
        self.newton_work = told.newton_work
        """Work of Newton's method, included in `work`."""
        self.status = told.status
        """Result of the velocity solve: "solved" to the tolerance; "stalled" if the residual stopped decreasing;
        "capped" if the iterations or the work budget were used up. `residual` is the error that remains."""
        self.shift_status = told.shift_status
        """Result of the post-stabilization solve, with the same values."""
        self.tau: Array = frame["tau"][0]
        """(nv,) applied generalized forces, those of controllers included; N or N·m."""
        self.passive: Array = frame["passive"][0]
        """(nv,) forces of springs, dampers and drives, evaluated at the end of the step; N or N·m."""
        self.timing = timing
        """Seconds by stage, in worlds with `timing`."""

    def __repr__(self) -> str:
        n = len(self._frame["depth"])
        return f"<Report: {self.time:g} s, {n} contacts, {self.rows} rows, residual {self.residual:.2g}, {self.status}>"

    @cached_property
    def energy(self) -> Energy:
        """Of the state after the step; J."""
        return Energy(*(float(part) for part in self._frame["energy"][0]))

    @cached_property
    def momentum(self) -> Momentum:
        """Of the state after the step."""
        both = self._frame["momentum"][0]
        return Momentum(both[3:], both[:3], self._frame["com"][0], float(self._frame["mass"][0]))

    @cached_property
    def motors(self) -> dict[str, Any]:
        """Force of each motor; three for a motor of a ball joint; N or N·m."""
        if not self._done:
            return {}
        force = self._frame["motors"][0]
        named = zip(self._model.motors, motor_rows(self._model), strict=True)
        return {motor.name: force[rows].copy() if motor.ball else float(force[rows.start]) for motor, rows in named}

    @property
    def loops(self) -> list[LoopReport]:
        """Loop joints, with their forces."""
        return self._loops


@dataclass(frozen=True)
class Pushing:
    """Contacts that have rows, as arrays."""

    shapes: Array
    """(n, 2)"""
    point: Array
    """(n, 3) m."""
    normal: Array
    """(n, 3) from A to B."""
    depth: Array
    """(n,) m."""
    force: Array
    """(n, 3) on B; N."""
    h: float = 1.0
    """Length of the step; s."""

    def listed(self, model: Model) -> list[ContactReport]:
        """One by one, with names."""
        found = []
        for k, (a, b) in enumerate(self.shapes.tolist()):
            force, names, body = self.force[k].copy(), model.solids.names, model.solids.body
            found.append(
                ContactReport(
                    model.body_names[int(body[a])],
                    model.body_names[int(body[b])],
                    self.point[k].copy(),
                    self.normal[k].copy(),
                    float(self.depth[k]),
                    force,
                    names[a],
                    names[b],
                    force * self.h,
                )
            )
        return found


NO_CONTACTS = Pushing(np.zeros((0, 2), np.int32), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)))


def pushing(stepper: Stepper | Accelerated, h: float) -> Pushing:
    """Contacts of the last step that have rows, in the order of the narrowphase; h is the step's length (s)."""
    c, rows = stepper.collider.c, stepper.rows.now
    n, first, count = int(c.count[0]), int(rows.first[CONTACT]), int(rows.count[CONTACT])
    if n == 0 or count == 0:
        return NO_CONTACTS
    slot_of = {id: first + 3 * k for k, id in enumerate(rows.id[first : first + 3 * count : 3].tolist())}
    known = [(k, slot_of[id]) for k, id in enumerate(c.id[:n].tolist()) if id in slot_of]
    if not known:
        return NO_CONTACTS
    k, slot = np.array(known).T
    force = np.einsum("ni,nij->nj", rows.lam[slot[:, None] + np.arange(3)], rows.Jb[slot[:, None] + np.arange(3), 3:])
    shapes = np.stack((c.a[k], c.b[k]), axis=1).astype(np.int32)
    return Pushing(shapes, c.point[k], c.normal[k], -c.gap[k], force / stepper.force_unit(h), h)


def farthest_beyond(model: Model, q: Array) -> float:
    """The greatest limit violation of a coordinate."""
    limited = np.flatnonzero(np.isfinite(model.dof_limits[model.primitive_v_start]).any(axis=1))
    at = q[model.primitive_q_start[limited]]
    low, high = model.dof_limits[model.primitive_v_start[limited]].T
    return float(np.maximum(low - at, at - high).max(initial=0.0))


def limit_of(model: Model, id: int, force: float, along: float) -> LimitReport:
    """The report of a row, from its id, its multiplier and its Jacobian on its first coordinate."""
    number, code = divmod(id, CODES)
    if number >= model.nv:
        sign = -1.0 if code == TWIST_UPPER else 1.0
        return LimitReport(model.joint_names[number - model.nv], _BALL_LIMITS[code], force * sign)
    return LimitReport(model.dof_names[number], _LIMITS[code], force * along)
