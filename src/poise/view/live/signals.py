"""Curves of a session: energy, torques, tracking errors of characters; and its recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.control.reference import Placed
from poise.control.tracking import Tracking
from poise.dynamics.state_queries import energy
from poise.sim.recorder import options_of
from poise.sim.recording import Contacts, Recording
from poise.sim.world import World

if TYPE_CHECKING:
    from poise.view.live.history import Moment
    from poise.view.live.session import Session

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ghost:
    """A character's reference motion."""

    tracking: Tracking
    place: Placed
    bodies: tuple[int, ...]
    """Of the character."""

    def at(self, times: Any) -> Floats:
        """(…, nq) coordinates of the whole model at times of the world (s); those of others are at rest."""
        now = np.asarray(times, np.float64)
        return np.asarray(self.place.at(now + self.tracking.reference.start - self.tracking.start).q)

    def error(self, times: Floats, q: Floats) -> Floats:
        """(n,) RMS of the errors of its joints, except the root; degrees."""
        off = self.place.difference(q, self.at(times))
        model = self.place.model
        root = self.place.root()
        own = set(range(*model.joint_v_start[root : root + 2].tolist())) if root >= 0 else set()
        dofs = [d for d in self.place.dofs.tolist() if d not in own]
        return np.degrees(np.sqrt((off[:, dofs] ** 2).mean(axis=1))) if dofs else np.zeros(len(q))


def ghosts_of(world: World) -> list[Ghost]:
    """References of a world's characters."""
    model, found = world.model, []
    for controller in world.controllers.values():
        if not isinstance(controller, Tracking):
            continue
        place = Placed(controller.reference, model)
        links = {int(model.body_link[model.joint_body[j]]) for j in place.joints}
        roots = {int(model.link_root[link]) for link in links if link >= 0}
        own = [
            b
            for b in range(model.n_bodies)
            if int(model.body_link[b]) >= 0 and int(model.link_root[model.body_link[b]]) in roots
        ]
        found.append(Ghost(controller, place, tuple(own)))
    return found


def times_of(moments: list[Moment]) -> Floats:
    """(n,) s."""
    return np.array([moment.time for moment in moments])


def energies(session: Session, moments: list[Moment]) -> dict[str, Floats]:
    """Kinetic, potential and whole energy at some moments; J."""
    q, v = (np.array([getattr(moment.state, part) for moment in moments]) for part in ("q", "v"))
    parts = energy(session.model, q, v)
    potential = np.asarray(parts.total) - np.asarray(parts.kinetic)
    return {"kinetic": np.asarray(parts.kinetic), "potential": potential, "total": np.asarray(parts.total)}


def torques(session: Session, moments: list[Moment], joint: str) -> dict[str, Floats]:
    """Forces of motors, drives and springs on the coordinates of a joint; N or N·m."""
    model = session.model
    where = model.v_slice(joint)
    rows = [moment.torque if len(moment.torque) else np.zeros(model.nv) for moment in moments]
    values = np.array(rows)[:, where]
    return {model.dof_names[where.start + k]: values[:, k] for k in range(values.shape[1])}


def errors(session: Session, moments: list[Moment]) -> dict[str, Floats]:
    """Tracking error of each character, by the name of its controller; degrees."""
    if session.world is None:
        return {}
    q, times = np.array([moment.state.q for moment in moments]), times_of(moments)
    names = [name for name, part in session.world.controllers.items() if isinstance(part, Tracking)]
    return {name: ghost.error(times, q) for name, ghost in zip(names, session.ghosts, strict=True)}


def recording_of(session: Session) -> Recording:
    """A session's history."""
    moments, model = session.history.all(), session.model
    q, v = (np.array([getattr(moment.state, part) for moment in moments]) for part in ("q", "v"))
    counts = [len(moment.contacts.depth) for moment in moments]
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    names = ("shapes", "point", "normal", "depth", "force")
    arrays = {name: np.concatenate([getattr(moment.contacts, name) for moment in moments]) for name in names}
    options = options_of(session.world) if session.world is not None else {}
    rows = [moment.torque if len(moment.torque) else np.zeros(model.nv) for moment in moments]
    return Recording(
        times_of(moments),
        q,
        v,
        model,
        Contacts(start, **arrays),
        energy(model, q, v),
        torques={"tau": np.array(rows), "passive": np.zeros((len(moments), model.nv))},
        options=options | {"record": ["contacts", "energy", "torques"]},
    )
