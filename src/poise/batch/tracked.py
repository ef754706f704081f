"""Tracking of characters in a batch: each world has its own motion, start time and position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.motion_table import Tables, tabulate
from poise.control.reference import Placed, Reference
from poise.control.tracking import Tracking, make_reference
from poise.control.tracking_command import motions_block, phase_block, schedule_block, tracking_block
from poise.dynamics.functions import Drive
from poise.formulations.lanes.batch_engine import Engine, Records
from poise.formulations.lanes.batch_tracking import FOLLOW_IN_LANES, FOLLOWERS
from poise.kernel.bound import Bound
from poise.kernel.memory import F64
from poise.model.model import Model
from poise.motion.rotations import quat_exp, quat_multiply, rotate

Array = NDArray[Any]


class BatchTracking:
    """A character that tracks motions in every world of a batch; `Batch.tracking` returns it.

    `motion`, `start`, `position` and `heading` have a row for each world, readable and writable: the index in
    `motions`, the time of the world at which the motion starts (s), and its origin (m; rad about the vertical, relative
    to the character's pose in the scene).

    >>> import numpy as np
    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    >>> swing = poise.motion.keyframes({0.0: {"arm": 0.0}, 0.5: {"arm": 0.8}, 1.0: {"arm": 0.0}}, loop=True)
    >>> scene.controllers.append(("swing", lambda: poise.control.Tracking(swing, by="drives")))
    >>> batch = scene.build_batch(4, threads=1)
    >>> swings = batch.tracking()
    >>> swings.start[:] = [0.0, -0.25, -0.5, -0.75]  # phases
    >>> swings.begin()
    >>> batch.q[:, 0].round(2).tolist()
    [0.0, 0.4000000059604645, 0.800000011920929, 0.4000000059604645]
    >>> batch.step(240)
    >>> bool(np.abs(batch.q[:, 0] - [0.0, 0.4, 0.8, 0.4]).max() < 0.03)
    True
    """

    def __init__(self, tracking: Tracking, model: Model, records: Records) -> None:
        self._controller, self._model, self._records, n = tracking, model, records, records.n
        self.motion = np.zeros(n, np.int32)
        """(n,) index of the motion that each world tracks."""
        self.start = np.full(n, tracking.start)
        """(n,) time of each world at which it starts; s."""
        self.position = np.zeros((n, 3))
        """(n, 3) its origin; m."""
        self.heading = np.zeros(n)
        """(n,) its heading about the vertical; rad."""
        self._followers = FOLLOWERS.block(F64, **dict.fromkeys(FOLLOWERS.fields, n))
        self._places = [tracking.place]
        tables = tracking.tables()
        if tables is None:
            raise ValueError(
                "the motion is too abrupt for an exact table in a batch: use a smooth motion, or keys at multiples of "
                "1 ms"
            )
        self._tables = tables
        records.commands.append(self._command)

    @property
    def motions(self) -> tuple[Reference, ...]:
        """Motions that worlds can track; assignable, from anything that `hero.track` accepts, for the same joints."""
        return tuple(place.reference for place in self._places)

    @motions.setter
    def motions(self, motions: Sequence[Any]) -> None:
        given = motions if isinstance(motions, list | tuple) else [motions]
        places = [self._placed(motion) for motion in given]
        tables = [tabulate(place) for place in places]
        for k, found in enumerate(tables):
            if found is None:
                raise ValueError(f"motion {k} is too abrupt for an exact table in a batch")
        self._tables = Tables([found for found in tables if found is not None])
        self._places = places
        self.motion[self.motion >= len(places)] = 0
        self._records.changed()

    def _placed(self, motion: Any) -> Placed:
        own = self._controller.place
        reference = make_reference(motion, own.reference.model, self._controller.floor)
        place = Placed(reference, self._model)
        if place.joints != own.joints:
            names = [{self._model.joint_names[j] for j in one.joints} for one in (own, place)]
            raise ValueError(
                f"motions are of the same joints: {', '.join(sorted(names[0] ^ names[1]))} are in one only"
            )
        return place

    # ---- worlds ------------------------------------------------------------------------------------------------------

    def at(self, times: ArrayLike | None = None) -> tuple[Array, Array]:
        """(n, nq) coordinates and (n, nv) velocities of motions at times (n,) of the worlds, by default now.

        Coordinates of joints that no motion has are those of the rest pose.
        """
        self._check()
        now = self._records.time if times is None else np.broadcast_to(np.asarray(times, np.float64), self.start.shape)
        q, v = np.zeros((len(now), self._model.nq)), np.zeros((len(now), self._model.nv))
        for k, place in enumerate(self._places):
            chosen = np.flatnonzero(self.motion == k)
            found = place.at(now[chosen] - self.start[chosen] + place.reference.start)
            q[chosen], v[chosen] = found.q, found.v
        self._put(q, v)
        return q, v

    def _put(self, q: Array, v: Array) -> None:
        """Move roots by the positions and headings of their worlds."""
        root = self._controller.root_dofs
        if root.start == root.stop:
            return
        joint = self._controller.place.root()
        first = int(self._model.joint_q_start[joint])
        turn = quat_exp(self.heading[:, None] * np.array((0.0, 0.0, 1.0)))
        q[:, first : first + 3] = self.position + rotate(turn, q[:, first : first + 3])
        q[:, first + 3 : first + 7] = quat_multiply(turn, q[:, first + 3 : first + 7])
        v[:, root.start : root.start + 3] = rotate(turn, v[:, root.start : root.start + 3])

    def begin(self, which: ArrayLike | None = None) -> None:
        """Set the characters of all worlds, or of those of a mask or of a list of numbers, to the poses and velocities
        of their motions at the worlds' times.
        """
        chosen = np.arange(len(self.start)) if which is None else np.atleast_1d(np.asarray(which))
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        q, v = self.at()
        for joint in self._controller.place.joints:
            for name, values, starts in (
                ("q", q, self._model.joint_q_start),
                ("v", v, self._model.joint_v_start),
            ):
                place = slice(*starts[joint : joint + 2].tolist())
                self._records.of(name)[chosen, place] = values[chosen, place]

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if ((self.motion < 0) | (self.motion >= len(self._places))).any():
            world = int(np.flatnonzero((self.motion < 0) | (self.motion >= len(self._places)))[0])
            raise ValueError(f"motion[{world}] is {self.motion[world]}; there are 0 to {len(self._places) - 1}")
        for name in ("start", "position", "heading"):
            if not np.isfinite(getattr(self, name)).all():
                world = int(np.argwhere(~np.isfinite(getattr(self, name)))[0][0])
                raise ValueError(f"{name}[{world}] is not finite: {getattr(self, name)[world]}")

    def apply(self) -> None:
        """Apply the values that were written for the worlds to the next steps."""
        self._check()
        b = self._followers
        b.motion[...], b.start[...] = self.motion, self.start
        b.x[...], b.y[...], b.z[...] = self.position.T
        b.w[...], b.w_z[...] = np.cos(0.5 * self.heading), np.sin(0.5 * self.heading)

    @property
    def drive(self) -> Drive | None:
        """The drive of the tracked joints."""
        gains = self._controller.joint_gains
        return None if self._controller.by != "drives" else Drive(gains[:, 0], gains[:, 1], self._model.q_rest)

    def _command(self, engine: Engine) -> Bound:
        """The bound entry that an engine calls before each step of a group."""
        width, tracking, motors = engine.width, self._controller, engine.extras.motors
        if (goals := tracking.motor_gains) is not None:
            for name in ("stiffness", "damping"):
                if (numbers := getattr(goals, name)) is not None:
                    motors.arrays[name][goals.rows] = numbers[:, None]
            if goals.limit is not None:
                motors.low[goals.rows], motors.high[goals.rows] = -goals.limit[:, None], goals.limit[:, None]
        blocks = (
            *(engine.space.s, engine.space.x, motors, motions_block(self._tables, width), schedule_block(self._tables)),
            *(phase_block(width), tracking_block(tracking, self._model, motors, width, placed=True)),
            *(engine.seats, engine.group_block(engine.owner), self._followers),
        )
        return Bound(FOLLOW_IN_LANES, width, *(block.handle for block in blocks))


def batch_trackings(controllers: Sequence[tuple[str, Any]], model: Model, records: Records) -> dict[str, BatchTracking]:
    """The controllers of a scene in every world of a batch; raises for those that only Python can call."""
    found = {}
    for name, controller in controllers:
        if getattr(controller, "acts_at_start_only", False):
            continue
        if not isinstance(controller, Tracking) or controller.needs_python:
            why = "" if not isinstance(controller, Tracking) else " (with adjust, points or balance)"
            raise ValueError(
                f'the scene has a controller ("{name}"){why}, which a batch cannot call: act through tau or ctrl'
            )
        found[name] = BatchTracking(controller, model, records)
    return found
