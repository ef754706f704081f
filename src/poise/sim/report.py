"""What happened in a step: contacts with their forces, limits, how well the rows were solved, energy and momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.pipeline import Contact
from poise.constraints.ball_limit_rows import CONE, TWIST_LOWER, TWIST_UPPER
from poise.constraints.limit_rows import CODES, FRICTION, LOWER, UPPER
from poise.constraints.parts import perpendiculars
from poise.constraints.store import CONTACT, SINGLE
from poise.dynamics.measures import Energy, Momentum, energy, momentum
from poise.formulations.acceleration import Accelerated
from poise.formulations.stepper import Stepper
from poise.formulations.tracking import TRACK
from poise.kernel.vec import Vec3
from poise.model.model import Model

Array = NDArray[Any]
_LIMITS = {LOWER: "lower", UPPER: "upper", FRICTION: "friction", TRACK: "track"}
_BALL_LIMITS = {CONE: "cone", TWIST_LOWER: "twist lower", TWIST_UPPER: "twist upper"}


@dataclass(frozen=True)
class ContactReport:
    """A contact of the last step, as it was at its beginning, with the force of the step."""

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

    @property
    def normal_force(self) -> float:
        """N."""
        return float(self.force @ self.normal)


@dataclass(frozen=True)
class LimitReport:
    """A coordinate or ball joint that was near an end of its range, held by friction, or tracked."""

    dof: str
    """Name of the coordinate; of a ball's cone and twist that of the joint."""
    what: str
    """"lower", "upper", "friction" or "track"; of a ball "cone", "twist lower" or "twist upper"."""
    force: float
    """Along the coordinate; N or N·m. Of a ball the torque of the limit, negative where it lessens the twist; N·m."""


@dataclass(frozen=True)
class Report:
    """The last step of a world."""

    time: float
    """s."""
    contacts: list[ContactReport]
    limits: list[LimitReport]
    rows: int
    sweeps: int
    newton_steps: int
    residual: float
    """Natural residual over the largest speed that the rows had to take away."""
    parts: int
    """That the step was split into, at impacts of what was fast; contacts and limits are those of the last one."""
    backtracks: int
    """Tentative steps that were taken back, at acceleration level."""
    level: str
    """At which the step was done, in the end."""
    energy: Energy
    momentum: Momentum


def report_of(stepper: Stepper | Accelerated, time: float, dt: float, q: Array, v: Array) -> Report:
    """Of the step that has just been done."""
    model, unit = stepper.model, stepper.force_unit(dt)
    return Report(
        time,
        _contacts(stepper, unit),
        _limits(stepper, unit),
        int(stepper.system.n_rows[0]),
        stepper.told.sweeps,
        stepper.told.newton_steps,
        stepper.told.residual,
        stepper.told.parts,
        stepper.told.backtracks,
        stepper.told.level,
        energy(model, q, v),
        momentum(model, q, v),
    )


def _contacts(stepper: Stepper | Accelerated, dt: float) -> list[ContactReport]:
    rows, solids, names = stepper.rows.now, stepper.model.solids, stepper.model.body_names
    first, count = int(rows.first[CONTACT]), int(rows.count[CONTACT])
    slots = {int(rows.id[slot]): slot for slot in range(first, first + 3 * count, 3)}
    found = []
    for contact in stepper.collider.contacts():
        slot = slots.get(contact.id)
        if slot is None:
            continue
        force = rows.lam[slot : slot + 3] @ _axes(contact) / dt
        a, b = (names[int(solids.body[shape])] for shape in (contact.a, contact.b))
        found.append(ContactReport(a, b, contact.point, contact.normal, contact.depth, force))
    return found


def _axes(contact: Contact) -> Array:
    """(3, 3) normal and tangents, as rows have them."""
    tangents = perpendiculars(Vec3(*contact.normal))
    return np.stack((contact.normal, *(np.array([*t.leaves()], np.float64) for t in tangents)))


def _limits(stepper: Stepper | Accelerated, dt: float) -> list[LimitReport]:
    rows = stepper.rows.now
    first = int(rows.first[SINGLE])
    slots = range(first, first + int(rows.count[SINGLE]))
    return [_limit(stepper.model, int(rows.id[k]), float(rows.lam[k]) / dt, float(rows.Jdof[k])) for k in slots]


def _limit(model: Model, id: int, force: float, along: float) -> LimitReport:
    """What a row of an id is, from its multiplier and its Jacobian on its first coordinate."""
    number, code = divmod(id, CODES)
    if number >= model.nv:
        sign = -1.0 if code == TWIST_UPPER else 1.0
        return LimitReport(model.joint_names[number - model.nv], _BALL_LIMITS[code], force * sign)
    return LimitReport(model.dof_names[number], _LIMITS[code], force * along)
