"""States of a tree's bodies at their centres of mass, as inputs of parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poise.constraints.row_parts.point_parts import Body
from poise.dynamics.argument_checks import body_number
from poise.dynamics.state_queries import bodies
from poise.kernel.vec import Mat3, Vec3
from poise.model.model import Model


def body_at(model: Model, q: ArrayLike, v: ArrayLike | None, body: str | int) -> Body:
    """State of a body, or of the world (−1), for the formulas of `point_parts`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
    >>> model = scene.compile()
    >>> float(body_at(model, model.q_rest, None, "ball").x.z)
    2.0
    """
    if not isinstance(body, str) and body == -1:
        none = np.zeros(3)
        return Body(Vec3(*none), Mat3(*np.eye(3).ravel()), Vec3(*none), Vec3(*none))
    index = body_number(model, body)
    all_bodies = bodies(model, q, v)
    R, twist = all_bodies.rotation[index], all_bodies.twist[index]
    arm = R @ model.body_com[index]
    speed = twist[3:] + np.cross(twist[:3], arm)
    return Body(Vec3(*(all_bodies.position[index] + arm)), Mat3(*R.ravel()), Vec3(*twist[:3]), Vec3(*speed))
