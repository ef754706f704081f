"""A humanoid on the ground: contacts from MuJoCo, and the contact problem that Poise makes of them.

MuJoCo's humanoid sinks down from its squat and comes to rest (a model without key-frames is dropped). Two stretches of
that are kept, of steps that follow one another with the same twelve contacts: "settling", the first that there is, and
"settled", the first in which everything moves slowly. Cones are elliptic and all contacts have friction; all else is as
MuJoCo has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poise import dynamics
from poise.constraints.rows import Rows
from poise.kernel.memory import F64, Width
from poise.model.model import Model
from poise.solve.problem import Friction, Problem

CONTACTS = 12
ERP = 0.2
"""Share of a contact's depth that a step takes away."""
STEPS = 4000
"""So many after a start it lies still."""
DROPS = 20
"""How many drops are tried."""
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
class Limits:
    """Degrees of freedom that are at a limit, or past it."""

    dof: np.ndarray
    """(n,)"""
    sign: np.ndarray
    """(n,) 1 where a positive velocity leads away from the limit, else −1."""
    distance: np.ndarray
    """(n,) negative past the limit; rad or m."""


@dataclass(frozen=True)
class Moment:
    """A state with its contacts and limits, and all that MuJoCo needs to step from there."""

    q: np.ndarray
    v: np.ndarray
    contacts: Contacts
    limits: Limits
    start: np.ndarray
    """MuJoCo's whole state, with the accelerations that its solver starts from."""


class GroundPeer:
    """MuJoCo with contacts and all other constraints."""

    def __init__(self, path: Path, model: Model) -> None:
        import mujoco

        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_path(str(path))
        if self.model.njnt == 0 or self.model.jnt_type[0] != mujoco.mjtJoint.mjJNT_FREE:
            raise SystemExit(f"{path.name}: its first joint is not free; the benchmark wants a body that can fall")
        self.model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.model.geom_condim[:] = 3
        self.data = mujoco.MjData(self.model)
        names = [self.model.body(number).name or f"body_{number}" for number in range(self.model.nbody)]
        self.bodies = np.array([model.body_names.index(name) if k else -1 for k, name in enumerate(names)])
        self.default_solver = self.model.opt.solver

    def stretch(self, stage: Stage, count: int) -> list[Moment]:
        """Steps that follow one another with the same contacts, `CONTACTS` of them."""
        self.model.opt.solver = self.default_solver
        for start in ([None] if self.model.nkey else []) + list(range(DROPS)):
            self._begin(start)
            if kept := self._follow(stage, count):
                return kept
        raise SystemExit(f"{stage}: the model never had the same {CONTACTS} contacts for {count} steps; try another")

    def _begin(self, drop: int | None) -> None:
        """At the first key-frame, or above the ground in a pose of its own."""
        mj, model, data = self.mujoco, self.model, self.data
        if drop is None:
            mj.mj_resetDataKeyframe(model, data, 0)
        else:
            mj.mj_resetData(model, data)
            mj.mj_integratePos(model, data.qpos, np.random.default_rng(drop).normal(scale=0.7, size=model.nv), 1.0)
            data.qpos[2] = 1.5

    def _follow(self, stage: Stage, count: int) -> list[Moment]:
        mj, model, data = self.mujoco, self.model, self.data
        kept: list[Moment] = []
        for _ in range(STEPS):
            start = self._state()
            mj.mj_step1(model, data)
            still = stage == "settling" or float(np.abs(data.qvel).max()) < STILL
            if data.ncon != CONTACTS or not still or np.any(data.contact.efc_address < 0):
                kept = []
            else:
                state = data.qpos.copy(), data.qvel.copy()
                moment = Moment(*state, self.contacts(), self.limits(), start)
                kept = [*kept, moment] if kept and kept[-1].contacts.ids == moment.contacts.ids else [moment]
            if len(kept) == count:
                return kept
            mj.mj_step2(model, data)
        return []

    def _state(self) -> np.ndarray:
        kind = self.mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.zeros(self.mujoco.mj_stateSize(self.model, kind))
        self.mujoco.mj_getState(self.model, self.data, state, kind)
        return state

    def contacts(self) -> Contacts:
        """Contacts of the present state."""
        found = self.data.contact
        ids: list[tuple[int, int, int]] = []
        for first, second in found.geom.tolist():
            ids.append((first, second, sum(known[:2] == (first, second) for known in ids)))
        a, b = self.bodies[self.model.geom_bodyid[found.geom]].T
        frame = found.frame.reshape(-1, 3, 3).copy()
        return Contacts(tuple(ids), a, b, found.pos.copy(), frame, found.dist.copy(), found.friction[:, 0].copy())

    def limits(self) -> Limits:
        """Joint limits of the present state."""
        rows = np.flatnonzero(self.data.efc_type == int(self.mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT))
        J = self._all_rows()[rows]
        dof = np.abs(J).argmax(axis=1)
        return Limits(dof, np.sign(J[np.arange(len(rows)), dof]), self.data.efc_pos[rows].copy())

    def _all_rows(self) -> np.ndarray:
        """(nefc, nv) J of all constraints."""
        mj, data = self.mujoco, self.data
        if not mj.mj_isSparse(self.model):
            return data.efc_J.reshape(-1, self.model.nv).copy()
        J = np.zeros((data.nefc, self.model.nv))
        mj.mju_sparse2dense(J, data.efc_J.ravel(), data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind.ravel())
        return J

    def at(self, moment: Moment) -> Any:
        """MuJoCo's data with everything computed for a moment."""
        self.restore(moment, 1)
        self.mujoco.mj_forward(self.model, self.data)
        return self.data

    def jacobian(self, moment: Moment) -> np.ndarray:
        """(3 n, nv) MuJoCo's own rows of the contacts."""
        data = self.at(moment)
        rows = np.concatenate([address + np.arange(3) for address in data.contact.efc_address])
        return self._all_rows()[rows]

    def matrix(self, moment: Moment) -> np.ndarray:
        """(3 n, 3 n) J M⁻¹ Jᵀ, all MuJoCo's."""
        J = self.jacobian(moment)
        response = np.zeros_like(J)
        self.mujoco.mj_solveM(self.model, self.data, response, J)
        return np.asarray(J @ response.T)

    def use(self, solver: str) -> None:
        """Choose a solver: Newton, CG or PGS."""
        self.model.opt.solver = getattr(self.mujoco.mjtSolver, f"mjSOL_{solver.upper()}")

    def restore(self, moment: Moment, n: int) -> None:
        """Put the state back, n times."""
        put, kind = self.mujoco.mj_setState, self.mujoco.mjtState.mjSTATE_INTEGRATION
        for _ in range(n):
            put(self.model, self.data, moment.start, kind)

    def steps(self, moment: Moment, n: int) -> None:
        """The step from one moment, n times; the state is put back before each."""
        put, kind, step = self.mujoco.mj_setState, self.mujoco.mjtState.mjSTATE_INTEGRATION, self.mujoco.mj_step
        for _ in range(n):
            put(self.model, self.data, moment.start, kind)
            step(self.model, self.data)


# ---- the problem -----------------------------------------------------------------------------------------------------


def contact_rows(model: Model, moments: Sequence[Moment], *, limits: bool = False) -> Rows:
    """The contacts in Poise's row store, and limits after them if wanted: one moment, or one a lane of eight."""
    rows = Rows(model, F64 if len(moments) == 1 else Width("f64", len(moments)))
    for world, moment in enumerate(moments):
        found, poses = moment.contacts, dynamics.bodies(model, moment.q)
        centres = poses.position + np.einsum("nij,nj->ni", poses.rotation, model.body_com)
        for k, (a, b) in enumerate(zip(found.a.tolist(), found.b.tolist(), strict=True)):
            axes = found.frame[k]
            Ja, Jb = (np.hstack([np.cross(found.point[k] - centres[body], axes), axes]) for body in (a, b))
            numbers = {"mu": float(found.mu[k]), "phi": float(found.distance[k]), "erp": ERP}
            rows.add_contact(id=k, a=a, Ja=-Ja, b=b, Jb=Jb, world=world, **numbers)
        at = moment.limits
        for k in range(len(at.dof) if limits else 0):
            where = {"dof": int(at.dof[k]), "coefficient": float(at.sign[k])}
            rows.add(id=CONTACTS + k, phi=float(at.distance[k]), erp=ERP, lo=0.0, world=world, **where)
    return rows


def jacobian(model: Model, moment: Moment) -> np.ndarray:
    """(3 n, nv) velocity of B's points less that of A's, along normals and tangents."""
    found, poses = moment.contacts, dynamics.bodies(model, moment.q)

    def of_point(body: int, point: np.ndarray) -> np.ndarray:
        if body < 0:
            return np.zeros((3, model.nv))
        local = poses.rotation[body].T @ (point - poses.position[body])
        return dynamics.jacobian(model, moment.q, body, local).J[3:]

    bodies = zip(found.a.tolist(), found.b.tolist(), strict=True)
    parts = [
        axes @ (of_point(b, point) - of_point(a, point))
        for (a, b), point, axes in zip(bodies, found.point, found.frame, strict=True)
    ]
    return np.concatenate(parts)


def wanted_velocity(distance: np.ndarray, dt: float) -> np.ndarray:
    """(n,) velocities to reach along normals: out of an overlap by a share of it, else up to the surface at most."""
    return -distance / dt * np.where(distance < 0.0, ERP, 1.0)


def problem(model: Model, moment: Moment, *, cone: bool = True, limits: bool = False) -> Problem:
    """The contact problem of one step, in plain NumPy: impulses against velocities, nothing bounces.

    A = J M⁻¹ Jᵀ and b = J (v + dt a_free) − v_ref. Springs and dampers act as they stand at the start of the step, as
    in MuJoCo's own problem. Limits of joints, if wanted, come after the contacts.
    """
    n, dt = len(moment.contacts.mu), model.dt
    J = jacobian(model, moment)
    wanted = np.zeros(3 * n)
    wanted[::3] = wanted_velocity(moment.contacts.distance, dt)
    if limits:
        J = np.concatenate([J, moment.limits.sign[:, None] * np.eye(model.nv)[moment.limits.dof]])
        wanted = np.concatenate([wanted, wanted_velocity(moment.limits.distance, dt)])
    A = J @ np.linalg.solve(dynamics.mass_matrix(model, moment.q), J.T)
    free = moment.v + dt * dynamics.forward_dynamics(model, moment.q, moment.v)
    frictions = [Friction(3 * k, (3 * k + 1, 3 * k + 2), float(mu), cone) for k, mu in enumerate(moment.contacts.mu)]
    lo = np.where(np.arange(len(J)) < 3 * n, -np.inf, 0.0)
    return Problem(0.5 * (A + A.T), J @ free - wanted, lo, frictions=frictions)


def carried_over(lam: np.ndarray, before: Moment, now: Moment) -> np.ndarray:
    """(m,) impulses of the step before, seen in the frames of this one: what a warm start begins from."""
    n = len(now.contacts.mu)
    impulses = np.einsum("kij,ki->kj", before.contacts.frame, lam[: 3 * n].reshape(-1, 3))
    turned = np.einsum("kij,kj->ki", now.contacts.frame, impulses).reshape(-1)
    return np.concatenate([turned, lam[3 * n :]])
