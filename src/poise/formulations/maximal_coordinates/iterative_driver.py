"""Maximal coordinates with joints as rows among the others, as in ODE (LIU S1), with any solver of `poise.solve`.

    V⁺ = V + h M⁻¹ f + M⁻¹ Jᵀ λ,      J of joints, contacts, limits, motors and loop joints, all at once

M has a block for each body. Forces and rows on degrees of freedom act on the two bodies of a joint. This is slower than
eliminating the joints, and as accurate as its solver: use it to study solvers, and to compare with other engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint import JointRows, Links, joint_rows
from poise.constraints.pair_friction import body_that_rolls
from poise.constraints.response.row_system import Seen
from poise.constraints.row_store import CONTACT
from poise.constraints.rows_to_problem import keep_multipliers, velocity_problem, warm_multipliers
from poise.dynamics.maximal_bodies.body_state import CENTRE, OWN, SPIN
from poise.formulations.acceleration_level.acceleration_entries import EMIT, MEND
from poise.formulations.driver import Told
from poise.formulations.maximal_coordinates.maximal_driver import ApartStepper
from poise.formulations.step_status import DIVERGED, DONE, NO_ROOM
from poise.formulations.step_table import Stage
from poise.kernel.memory import F64, Block
from poise.model.model import Model
from poise.model.state_fields import SlotCheck, StateFields
from poise.motion.rotations import cross, quat_exp, quat_multiply, quat_normalize, quat_to_matrix, rotate
from poise.solve.dantzig import Dantzig
from poise.solve.matrix_free import BodyRows, inverse_masses
from poise.solve.pgs import PGS
from poise.solve.problem import Options, Problem, Result
from poise.solve.residuals import size_of

Array = NDArray[Any]
TINY = 1e-12
"""Least approach speed; m/s."""
Parts = list[tuple[int, int, Array]]
"""(row, link, six numbers) of Jacobians."""


def check_loose(model: Model) -> None:
    """Raise ValueError for what the iterative solvers do not support."""
    prescribed = np.flatnonzero(model.dof_prescribed)
    if len(prescribed):
        name = model.joint_names[int(model.dof_joint[prescribed[0]])]
        raise ValueError(f'"{name}" is kinematic: that takes solver="direct"')
    rolling = body_that_rolls(model)
    if rolling is not None:
        raise ValueError(f'"{rolling}" has rolling or torsional friction: that takes solver="direct"')
    if not (model.link_mass > 0.0).all():
        body = model.body_names[int(model.link_body[int(np.argmin(model.link_mass))])]
        raise ValueError(f'"{body}" has no mass of its own: that takes solver="direct"')


class LooseStepper(ApartStepper):
    """Steps separate bodies with the rows of their joints among the others."""

    by_kernels = False

    def __init__(
        self, model: Model, *, solver: str, sweeps: int = 500, tolerance: float = 1e-4, **options: Any
    ) -> None:
        """`solver`: "pgs", matrix-free over bodies; or "dantzig", with contacts as pyramids."""
        check_loose(model)
        super().__init__(model, sweeps=sweeps, tolerance=tolerance, **options)
        self._method = PGS(newton=False) if solver == "pgs" else Dantzig()
        self._dense = solver == "dantzig"
        self._options = Options(tolerance=tolerance, iterations=sweeps)
        self._joint_lam = np.zeros(0)
        self._iterations, self._residual, self._work = 0, 0.0, 0.0
        self._unmoved = np.zeros((model.n_links, 6))
        """(n_links, 6) displacement that links do not make in a step, because impacts come late in it."""
        xx, yy, zz, xy, xz, yz = model.link_inertia.T
        self._inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)

    @property
    def told(self) -> Told:
        """Statistics of the last step."""
        status = "solved" if self._residual <= self._options.tolerance else "capped"
        return Told(self._iterations, 0, self._residual, self.parts, work=self._work, status=status)

    # ---- the step ----------------------------------------------------------------------------------------------------

    def _advance_in(self, now: Block, old: Block) -> Stage:
        """The solution stage: a solver of `poise.solve`, in Python."""
        return self._callback(partial(self._solve_in, now, old), ("float64", "int64"), DIVERGED)

    def _solve_in(self, now: Block, old: Block, dt: float, wanted: int) -> int:
        """Impulses, velocities and coordinates of a part, without a check of its length; returns its status."""
        self.rows.now, self.rows.before = now, old
        if not self._emit(dt):
            return NO_ROOM
        own = self.bodies.own[: OWN * self.model.n_links].reshape(-1, OWN)
        before = own.copy()
        links = Links(own[:, :4].copy(), own[:, CENTRE:SPIN].copy(), own[:, SPIN:].copy())
        joints = joint_rows(self.model, self.space.s.q, *links)
        twist = self._go_on(joints, links, dt)
        finite = bool(np.isfinite(twist).all())
        if finite:
            way = dt * twist - self._unmoved
            own[:, :4] = quat_normalize(quat_multiply(quat_exp(way[:, :3]), links.quat_wxyz))
            own[:, CENTRE:SPIN] = links.x + way[:, 3:]
            own[:, SPIN:] = twist
        if finite and np.isfinite(own).all():
            MEND[F64](*(one.handle for one in (self.space.m, self.space.s, self.end, self.bodies, self.options)))
            return DONE
        own[...] = before
        return DIVERGED

    def _emit(self, dt: float) -> bool:
        """Build the rows of the step, with warm-started multipliers; returns whether there is room for all."""
        space, rows = self.space, self.rows
        self.flow.a[...], self.flow.acceleration[...] = 0.0, 0.0
        EMIT[F64](space.m.handle, self.data.handle, self.options.handle, dt, 0)
        if rows.full():
            return False
        rows.warm_start(float(self.scratch.carry[0]))
        return True

    def _go_on(self, joints: JointRows, links: Links, dt: float) -> Array:
        """(n_links, 6) twists at the end of the step; those without rows if they are not finite."""
        R = quat_to_matrix(links.quat_wxyz)
        inertia = R @ self._inertia @ R.transpose(0, 2, 1)
        inverse = inverse_masses(self.model.link_mass, inertia)
        wrench = self._forces(links, R) + joints.wrenches(len(R), tau=np.array(self.space.w.total + self.bodies.lead))
        free = links.twist + dt * np.einsum("nij,nj->ni", inverse, wrench)
        free[:, 3:] += dt * self.model.gravity
        if not np.isfinite(free).all():
            return np.asarray(free)
        posed, problem = self._problem(joints, links, inverse, free, dt)
        result = self._solve(problem, np.concatenate((warm_multipliers(self.rows), self._warm(posed))))
        result, late = self._bounce(problem, result, posed, links.twist, free, dt)
        m = self.rows.listing().size
        keep_multipliers(self.rows, result.lam[:m])
        self._joint_lam = result.lam[m:]
        self._iterations, self._residual = result.iterations, result.natural / size_of(problem)
        self._work = float(result.iterations) * (problem.size**2 if self._dense else posed.J.size)
        self._unmoved = posed.velocities(late)
        return np.asarray(free + posed.velocities(result.lam))

    def _forces(self, links: Links, R: Array) -> Array:
        """(n_links, 6) forces at centres of mass without gravity: applied forces and gyroscopic torques."""
        model, x, w = self.model, self.space.x, self.space.w
        wrench = np.zeros((model.n_links, 6))
        wrench[:, :3] = -w.gyro.reshape(-1, 6)[:, :3]
        moving = model.body_link >= 0
        link, force = model.body_link[moving], x.force.reshape(-1, 6)[moving]
        arm = rotate(links.quat_wxyz[link], model.body_position[moving] - model.link_com[link])
        np.add.at(wrench, link, np.concatenate((force[:, :3] + cross(arm, force[:, 3:]), force[:, 3:]), axis=1))
        return wrench

    # ---- the problem -------------------------------------------------------------------------------------------------

    def _problem(
        self, joints: JointRows, links: Links, inverse: Array, free: Array, dt: float
    ) -> tuple[BodyRows, Problem]:
        """Problem of the store's rows, then those of joints, then springs, dampers and armatures of degrees
        of freedom.
        """
        rows, m = self.rows, self.rows.listing().size
        soft = np.array(self.space.w.diagonal) + self.model.dof_armature
        sprung = np.flatnonzero(soft > 0.0)
        parts = self._parts(joints, links)
        own = ((m, joints.parent, joints.link, joints.Ja, joints.Jb),)
        own += ((m + len(joints.phi), *(one[sprung] for one in (*joints.dof_bodies, joints.Da, joints.Db))),)
        for first, a, b, Ja, Jb in own:
            for k in range(len(a)):
                parts += [(first + k, int(a[k]), Ja[k]), (first + k, int(b[k]), Jb[k])]
        size = m + len(joints.phi) + len(sprung)
        A = BodyRows(*_laid(parts, size), inverse)
        speed = np.einsum("mei,mei->m", A.J, _of_links(free)[A.body])
        seen = Seen(np.zeros((m, m)), speed[:m], None, np.zeros(self.model.nv), dt)
        fastest = float(self.options.creep[0])
        problem = velocity_problem(rows, seen, dt, cone=not self._dense, fastest=fastest)
        mend = np.clip(float(self.options.erp[0]) / dt * joints.phi, -fastest, fastest)
        wanted = np.concatenate((-mend, joints.v[sprung]))
        none = np.full(size - m, np.inf)
        return A, replace(
            problem,
            A=A.dense() if self._dense else A,
            b=np.concatenate((problem.b, speed[m:] - wanted)),
            lo=np.concatenate((problem.lo, -none)),
            hi=np.concatenate((problem.hi, none)),
            cfm=np.concatenate((problem.cfm, np.zeros(len(joints.phi)), 1.0 / soft[sprung])),
        )

    def _parts(self, joints: JointRows, links: Links) -> Parts:
        """Jacobians of the store's rows with respect to the twists of links."""
        model, now, slots = self.model, self.rows.now, self.rows.listing().slots
        centre = model.link_com[np.maximum(model.body_link, 0)]
        turn = np.array([quat_to_matrix(quat) for quat in model.body_quat_wxyz]).reshape(-1, 3, 3)
        offset = model.body_position + np.einsum("nij,nj->ni", turn, model.body_com) - centre
        parts: Parts = []

        def on_body(row: int, body: int, J: Array) -> None:
            if body >= 0 and (link := int(model.body_link[body])) >= 0:
                arm = rotate(links.quat_wxyz[link], offset[body])
                parts.append((row, link, np.concatenate((J[:3] + cross(arm, J[3:]), J[3:]))))

        def on_dof(row: int, dof: int, J: float) -> None:
            if dof >= 0:
                a, b = (int(one[dof]) for one in joints.dof_bodies)
                parts.extend([(row, a, J * joints.Da[dof]), (row, b, J * joints.Db[dof])])

        for row, slot in enumerate(slots.tolist()):
            on_body(row, int(now.a[slot]), now.Ja[slot])
            on_body(row, int(now.b[slot]), now.Jb[slot])
            on_dof(row, int(now.dof[slot]), float(now.Jdof[slot]))
            term = int(now.term[slot])
            while term >= 0:
                on_body(row, int(now.term_body[term]), now.term_J[term])
                on_dof(row, int(now.term_dof[term]), float(now.term_Jdof[term]))
                term = int(now.term_next[term])
        return parts

    def _warm(self, posed: BodyRows) -> Array:
        """Warm start for the rows of joints."""
        size = len(posed.body) - self.rows.listing().size
        return self._joint_lam if len(self._joint_lam) == size else np.zeros(size)

    def _solve(self, problem: Problem, warm: Array) -> Result:
        return self._method.solve(problem, replace(self._options, warm=warm))

    def _bounce(
        self, problem: Problem, result: Result, posed: BodyRows, twist: Array, free: Array, dt: float
    ) -> tuple[Result, Array]:
        """Solve again with restitution, for contacts that push after a fast approach, each at its own time of impact as
        if it were isolated; also returns (m,) impulses times these times.
        """
        listing, now = self.rows.listing(), self.rows.now
        heads = listing.starts[:-1][listing.kinds == CONTACT]
        slots, late = listing.slots[heads], np.zeros(len(result.lam))
        hit = (now.bounce[slots] > 0.0) & (result.lam[heads] > 0.0)
        if not hit.any():
            return result, late
        left = self._options.iterations - result.iterations
        if left <= 0:
            return result, late
        before, after = (
            np.einsum("mei,mei->m", posed.J[heads], _of_links(v)[posed.body[heads]]) for v in (twist, free)
        )
        pull, gap = (after - before) / dt, np.maximum(now.phi[slots], 0.0)
        speed = np.minimum(before + 0.5 * dt * pull, -TINY)  # velocities lag half a step behind
        time = np.minimum(2.0 * gap / (np.sqrt(np.maximum(speed**2 - 2.0 * pull * gap, 0.0)) - speed), dt)
        back = -now.restitution[slots] * (speed + pull * time)
        lasts = hit & (back + 0.5 * pull * (dt - time) > 0.0)
        goal = np.where(lasts, back + pull * (0.5 * dt - time), 0.0)
        b = problem.b.copy()
        b[heads[hit]] = np.minimum(b[heads], after - goal)[hit]
        again = self._method.solve(replace(problem, b=b), replace(self._options, warm=result.lam, iterations=left))
        result = replace(again, iterations=again.iterations + result.iterations)
        for k in range(3):
            late[heads[lasts] + k] = (time * result.lam[heads + k])[lasts]
        return result, late

    # ---- memory ------------------------------------------------------------------------------------------------------

    @property
    def own_fields(self) -> list[StateFields]:
        """Includes the multipliers of joints."""
        joints = StateFields("joint multipliers", self._read_joints, self._check_joints, self._write_joints)
        return [*super().own_fields, joints]

    def _read_joints(self) -> dict[str, Array]:
        return {"bodies/joints": self._joint_lam.copy()}

    def _check_joints(self, check: SlotCheck) -> None:
        """The number of multipliers may be any: a mismatch disables the warm start."""
        if "bodies/joints" in check.slots:
            check.fits("bodies/joints", (len(check.array("bodies/joints")),), np.float64)

    def _write_joints(self, slots: Mapping[str, Array]) -> None:
        self._joint_lam = np.array(slots.get("bodies/joints", np.zeros(0)))


def _of_links(twist: Array) -> Array:
    """(n_links + 1, 6) twists, the world's last."""
    return np.append(twist, np.zeros((1, 6)), axis=0)


def _laid(parts: Parts, size: int) -> tuple[Array, Array]:
    """(size, E) links and (size, E, 6) Jacobians, from parts in any order."""
    count = np.zeros(size, np.intp)
    for row, _, _ in parts:
        count[row] += 1
    body = np.full((size, max(1, int(count.max(initial=0)))), -1)
    J = np.zeros((*body.shape, 6))
    count[...] = 0
    for row, link, numbers in parts:
        body[row, count[row]], J[row, count[row]] = link, numbers if link >= 0 else 0.0
        count[row] += 1
    return body, J
