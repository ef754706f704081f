"""A humanoid on the ground: its contacts as MuJoCo finds them, and the contact problem that Poise makes of them.

MuJoCo's humanoid falls from its squat, rolls over and comes to rest. Two stretches of that are kept, of steps that
follow one another with the same contacts: "settling", the first where there are so many, and "settled", the first where
nothing has moved by more than a few millimetres a second. Cones are elliptic and all contacts have friction; all else
is as MuJoCo has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poise import dynamics
from poise.model.model import Model
from poise.solve.problem import Friction, Problem

CONTACTS = 12
ERP = 0.2
"""Share of a contact's depth that a step takes away."""
STEPS = 4000
"""20 s: by then it lies still."""
STILL = 0.02
"""Speed of every degree of freedom below which it counts as settled; m/s or rad/s."""
Stage = Literal["settling", "settled"]


@dataclass(frozen=True)
class Contacts:
    """Contacts of one state. A positive multiplier pushes B away from A."""

    ids: tuple[tuple[int, int, int], ...]
    """Both shapes, and which of their contacts it is: the same from step to step."""
    a: np.ndarray
    """(n,) bodies of the Poise model; −1 is the world."""
    b: np.ndarray
    point: np.ndarray
    """(n, 3) in the world; m."""
    frame: np.ndarray
    """(n, 3, 3) rows: normal, from A to B, and two tangents."""
    distance: np.ndarray
    """(n,) negative where the shapes overlap; m."""
    mu: np.ndarray
    """(n,)"""


@dataclass(frozen=True)
class Moment:
    """A state with its contacts, and all that MuJoCo needs to step from there."""

    q: np.ndarray
    v: np.ndarray
    contacts: Contacts
    start: np.ndarray
    """MuJoCo's whole state."""
    warm: np.ndarray
    """The accelerations that its solver starts from."""


class GroundPeer:
    """MuJoCo with contacts and all other constraints."""

    def __init__(self, path: Path, model: Model) -> None:
        import mujoco

        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.model.geom_condim[:] = 3
        self.data = mujoco.MjData(self.model)
        names = [self.model.body(number).name for number in range(self.model.nbody)]
        self.bodies = np.array([model.body_names.index(name) if k else -1 for k, name in enumerate(names)])
        self.default_solver = self.model.opt.solver

    def stretch(self, stage: Stage, count: int) -> list[Moment]:
        """Steps that follow one another with the same contacts, `CONTACTS` of them."""
        mj, model, data = self.mujoco, self.model, self.data
        if model.nkey == 0:
            raise SystemExit("the model has no key-frame to start from; MuJoCo's own humanoid has a squat")
        mj.mj_resetDataKeyframe(model, data, 0)
        kept: list[Moment] = []
        for _ in range(STEPS):
            warm, start = data.qacc_warmstart.copy(), self._state()
            mj.mj_step1(model, data)
            still = stage == "settling" or float(np.abs(data.qvel).max()) < STILL
            if data.ncon != CONTACTS or not still:
                kept = []
            else:
                moment = Moment(data.qpos.copy(), data.qvel.copy(), self.contacts(), start, warm)
                kept = [*kept, moment] if kept and kept[-1].contacts.ids == moment.contacts.ids else [moment]
            if len(kept) == count:
                return kept
            mj.mj_step2(model, data)
        raise SystemExit(f"the humanoid never had the same {CONTACTS} contacts for {count} steps")

    def _state(self) -> np.ndarray:
        kind = self.mujoco.mjtState.mjSTATE_FULLPHYSICS
        state = np.zeros(self.mujoco.mj_stateSize(self.model, kind))
        self.mujoco.mj_getState(self.model, self.data, state, kind)
        return state

    def contacts(self) -> Contacts:
        """Those of the state as it stands."""
        found = self.data.contact
        ids: list[tuple[int, int, int]] = []
        for first, second in found.geom.tolist():
            ids.append((first, second, sum(known[:2] == (first, second) for known in ids)))
        a, b = self.bodies[self.model.geom_bodyid[found.geom]].T
        frame = found.frame.reshape(-1, 3, 3).copy()
        return Contacts(tuple(ids), a, b, found.pos.copy(), frame, found.dist.copy(), found.friction[:, 0].copy())

    def at(self, moment: Moment) -> Any:
        """MuJoCo's data with everything computed for a moment."""
        self.data.qpos, self.data.qvel = moment.q, moment.v
        self.mujoco.mj_forward(self.model, self.data)
        return self.data

    def jacobian(self, moment: Moment) -> np.ndarray:
        """(3 n, nv) MuJoCo's own rows of the contacts."""
        data = self.at(moment)
        rows = np.concatenate([address + np.arange(3) for address in data.contact.efc_address])
        return data.efc_J.reshape(-1, self.model.nv)[rows].copy()

    def matrix(self, moment: Moment) -> np.ndarray:
        """(3 n, 3 n) J M⁻¹ Jᵀ, all MuJoCo's."""
        J = self.jacobian(moment)
        response = np.zeros_like(J)
        self.mujoco.mj_solveM(self.model, self.data, response, J)
        return np.asarray(J @ response.T)

    def use(self, solver: str) -> None:
        """Choose a solver: Newton, CG or PGS."""
        self.model.opt.solver = getattr(self.mujoco.mjtSolver, f"mjSOL_{solver.upper()}")

    def steps(self, moment: Moment, n: int) -> np.ndarray:
        """The step from one moment, n times, in a loop in C++ that puts the state back each time; states after it."""
        from mujoco import rollout

        states, _ = rollout.rollout(
            self.model,
            self.data,
            np.broadcast_to(moment.start, (n, moment.start.size)),
            nstep=1,
            initial_warmstart=np.broadcast_to(moment.warm, (n, moment.warm.size)),
        )
        return np.asarray(states)


# ---- the problem -----------------------------------------------------------------------------------------------------


def jacobian(model: Model, moment: Moment) -> np.ndarray:
    """(3 n, nv) normal and two tangents of each contact: velocity of B's point less that of A's."""
    found, poses = moment.contacts, dynamics.bodies(model, moment.q)

    def at_point(body: int, point: np.ndarray) -> np.ndarray:
        if body < 0:
            return np.zeros((3, model.nv))
        local = poses.rotation[body].T @ (point - poses.position[body])
        return dynamics.jacobian(model, moment.q, body, local).J[3:]

    rows = [
        frame @ (at_point(b, point) - at_point(a, point))
        for a, b, point, frame in zip(found.a.tolist(), found.b.tolist(), found.point, found.frame, strict=True)
    ]
    return np.concatenate(rows)


def wanted_velocity(found: Contacts, dt: float) -> np.ndarray:
    """(3 n,) row velocities to reach: out of an overlap by a share of it, up to the surface at most; no sliding."""
    target = np.zeros(3 * len(found.mu))
    target[::3] = -found.distance / dt * np.where(found.distance < 0.0, ERP, 1.0)
    return target


def problem(model: Model, moment: Moment, *, cone: bool = True) -> Problem:
    """The contact problem of one step: impulses against velocities, nothing bounces.

    A = J M⁻¹ Jᵀ and b = J (v + dt a_free) − v_ref. Springs and dampers act as they stand at the start of the step, as
    in MuJoCo's own problem. Limits of joints are left out: they are not contacts.
    """
    J = jacobian(model, moment)
    A = J @ np.linalg.solve(dynamics.mass_matrix(model, moment.q), J.T)
    free = moment.v + model.dt * dynamics.forward_dynamics(model, moment.q, moment.v)
    b = J @ free - wanted_velocity(moment.contacts, model.dt)
    frictions = [Friction(3 * k, (3 * k + 1, 3 * k + 2), float(mu), cone) for k, mu in enumerate(moment.contacts.mu)]
    return Problem(0.5 * (A + A.T), b, frictions=frictions)


def carried_over(lam: np.ndarray, before: Moment, now: Moment) -> np.ndarray:
    """(3 n,) impulses of the step before, seen in the frames of this one: what a warm start begins from."""
    impulses = np.einsum("kij,ki->kj", before.contacts.frame, lam.reshape(-1, 3))
    return np.einsum("kij,kj->ki", now.contacts.frame, impulses).reshape(-1)
