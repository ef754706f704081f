"""Contacts as rows: the normal and two tangents, at the point half way between two surfaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.detector import Contact
from poise.constraints.kinds.contact import contact_friction
from poise.constraints.row_parts.point_parts import perpendiculars
from poise.constraints.rows import Rows
from poise.dynamics.state_queries import Bodies, bodies
from poise.kernel.vec import Vec3
from poise.model.model import Model
from poise.solve.friction import Coefficients

Array = NDArray[Any]


def emit_contacts(
    rows: Rows,
    q: ArrayLike,
    found: Iterable[Contact],
    *,
    mu: float | Coefficients | None = None,
    world: int = 0,
    **numbers: float | Sequence[float],
) -> list[int]:
    """Add a block of three rows for each contact at pose `q`, and return their ids, which are the contacts'.

    φ is the gap, and γ comes from the contact's `bend`: at acceleration level it must have one (see
    `collision.detector.contacts`). `mu` holds for all contacts; without it each contact has that of its two shapes
    (see `combining`). `numbers` are those of `Rows.add_contact`: gains, softness, targets.

    >>> import poise
    >>> from poise.collision.detector import contacts
    >>> from poise.constraints.rows_to_problem import acceleration_problem
    >>> from poise.constraints.response.row_system import see
    >>> from poise.solve.pgs import PGS
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
    >>> model = scene.compile()
    >>> q, v = model.q_rest, [1, 0, 0, 0, 10, 0]  # it rolls
    >>> rows = Rows(model)
    >>> _ = emit_contacts(rows, q, contacts(model, q, 1e-6, v=v))
    >>> PGS().solve(acceleration_problem(rows, see(rows, q, v))).lam[:1].round(6).tolist()
    [19.62]
    """
    if "phi" in numbers or "gamma" in numbers:
        raise ValueError("phi and gamma are the contacts' own: their gap and their bend")
    model, placed = rows.model, bodies(rows.model, q)
    if placed.position.ndim != 2:
        raise ValueError(f"q has shape {np.shape(q)}; contacts are of one pose, ({model.nq},)")
    return [_emit(rows, placed, contact, mu, world, numbers) for contact in found]


def _emit(
    rows: Rows, placed: Bodies, contact: Contact, mu: float | Coefficients | None, world: int, numbers: dict[str, Any]
) -> int:
    model = rows.model
    first, second = (np.array([*t.leaves()], np.float64) for t in perpendiculars(Vec3(*contact.normal)))
    axes = np.stack((contact.normal, first, second))
    (a, Ja), (b, Jb) = (_side(model, placed, shape, contact.point, axes) for shape in (contact.a, contact.b))
    gamma = {} if contact.bend is None else {"gamma": (axes @ contact.bend).tolist()}
    if mu is None:
        mu = contact_friction(model, contact.a, contact.b)
    own: dict[str, Any] = {"phi": contact.gap} | gamma
    return rows.add_contact(id=contact.id, a=a, Ja=-Ja, b=b, Jb=Jb, mu=mu, world=world, **own, **numbers)


def _side(model: Model, placed: Bodies, shape: int, point: Array, axes: Array) -> tuple[int, Array]:
    """A body, −1 if it never moves, and (3, 6) the Jacobian of its point along three axes."""
    if model.solids.link[shape] < 0:
        return -1, np.zeros((3, 6))
    body = int(model.solids.body[shape])
    arm = point - placed.position[body] - placed.rotation[body] @ model.body_com[body]
    return body, np.hstack((np.cross(arm, axes), axes))
