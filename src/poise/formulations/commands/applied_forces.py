"""Forces that act in the next step only: see `World.apply_force`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK, work_block
from poise.dynamics.kinematics import BODIES, place_body, place_chain
from poise.kernel.bound import Bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Count, Index, Shared, View, load, store
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3, cross
from poise.model.model import Model

Array = NDArray[Any]
Three = tuple[float, float, float]
ROOM = 16
"""Initial room for forces."""

APPLIED = View(
    "AppliedForces",
    room=Count,
    count=Index,  # (1)
    # (room)
    body=Index,
    wrench=Force,  # at the origin of the body, in world axes
    # (n_bodies)
    com=Vec3,  # centre of mass, in the body's frame
    given=Force,  # forces that act for longer than a step, saved while applied forces act as well
)


@kernel
def append_wrench(m, s, w, b, p, body, has_point, tx, ty, tz, fx, fy, fz, px, py, pz):
    """Append a force at a point, or at the centre of mass, and a torque."""
    place_chain(m, s, w, load(m.body_link, body))
    place_body(m, w, b, body)
    arm = Vec3(px, py, pz) - load(b.position, body)
    if has_point == 0:
        arm = load(b.rotation, body) @ load(p.com, body)
    force, n = Vec3(fx, fy, fz), load(p.count, 0)
    store(p.body, n, body)
    store(p.wrench, n, Force(Vec3(tx, ty, tz) + cross(arm, force), force))
    store(p.count, 0, n + 1)
    return n + 1


@kernel
def add_applied(m, x, p):
    """Add the applied forces to the others."""
    for i in range(m.n_bodies):
        store(p.given, i, load(x.force, i))
    for k in range(load(p.count, 0)):
        body = load(p.body, k)
        store(x.force, body, load(x.force, body) + load(p.wrench, k))
    return load(p.count, 0)


@kernel
def remove_applied(m, x, p):
    """Restore the other forces."""
    for i in range(m.n_bodies):
        store(x.force, i, load(p.given, i))
    return load(p.count, 0)


_APPEND = entry(
    append_wrench, MODEL, STATE, WORK, BODIES, APPLIED, extra=("int64", "int64", *["float64"] * 9), lanes=False
)
_ADD = entry(add_applied, MODEL, INPUT, APPLIED, lanes=False)
_REMOVE = entry(remove_applied, MODEL, INPUT, APPLIED, lanes=False)


class AppliedForces:
    """Forces that act in the next step of a world."""

    def __init__(self, model: Model, m: Block, s: Block, x: Block) -> None:
        self._model, self._parts, self._given = model, (m, s, x), np.zeros((model.n_bodies, 6))
        places = dict.fromkeys(BODIES.fields, model.n_bodies)
        self._places = work_block(model, F64), BODIES.block(F64, **places)
        self._act = False
        self.count = np.zeros(1, np.int32)
        """(1) number of forces."""
        self._make_room(ROOM)

    def _make_room(self, room: int) -> None:
        shared = {"count": Shared(self.count), "given": Shared(self._given)}
        block = APPLIED.block(F64, room=room, body=room, wrench=room, com=self._model.body_com, **shared)
        m, s, x = (part.handle for part in self._parts)
        links, bodies = (part.handle for part in self._places)
        self._room, self._block = room, block
        self._append = Bound(_APPEND, F64, m, s, links, bodies, block.handle).caller
        self.begin = Bound(_ADD, F64, m, x, block.handle).caller
        """Add the applied forces to the others."""
        self.end = Bound(_REMOVE, F64, m, x, block.handle).caller
        """Restore the other forces."""

    def append(self, body: int, force: Three, torque: Three, point: Three | None) -> None:
        """Append a force at a point of the world (m), or at the centre of mass of a body, and a torque; N, N·m."""
        if self.count[0] == self._room:
            kept = self.read()
            self._make_room(2 * self._room)
            self.write(kept)
        if not self._act:
            self._let_act()
        self._append(body, int(point is not None), *torque, *force, *(point or (0.0, 0.0, 0.0)))

    def _let_act(self) -> None:
        """Let steps read forces on bodies from now on."""
        self._parts[2].set_count("n_forces", 1)
        self._act = True

    def read(self) -> Array:
        """(n, 7) bodies, with torques and forces at their origins."""
        n, b = int(self.count[0]), self._block
        return np.concatenate((b.body[:n, None], b.wrench[:n]), axis=1)

    def write(self, applied: Array) -> None:
        """Restore the forces from `read`."""
        n = len(applied)
        if n:
            self._let_act()
        if n > self._room:
            self._make_room(n)
        self._block.body[:n], self._block.wrench[:n], self.count[0] = applied[:, 0], applied[:, 1:], n
