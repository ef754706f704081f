"""Rows of inverse kinematics: errors and Jacobians of goals at a pose, and limits of joints.

Rows are those of `poise.constraints`: φ is the error of a goal, a displacement v over one second changes it by J v,
and a limit, or a floor, is a row whose multiplier only pushes. A = J M⁻¹ Jᵀ comes from the tree as in worlds, so the
displacements that multipliers make are those of least kinetic energy: heavy parts stay, light ones move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint_limit import CODES, limits_block
from poise.constraints.kinds.limit_queries import HELD, LIMITS_OF_POSE
from poise.constraints.response.delassus_kernels import flow_block
from poise.constraints.response.row_system import System
from poise.constraints.response.row_velocity import VELOCITY
from poise.constraints.row_store import SINGLE
from poise.constraints.row_validation import Term
from poise.constraints.rows import Rows
from poise.control.goals import Goal
from poise.dynamics.aba import articulated_body
from poise.dynamics.argument_checks import Singular, body_number, checked_row
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.integrate import STAGES
from poise.dynamics.kinematics import BODIES
from poise.dynamics.state_queries import difference, move, place
from poise.dynamics.workspace import Workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F64
from poise.model.errors import did_you_mean, last_part, matches
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.motion.rotations import quat_from_matrix, quat_log

Floats = NDArray[np.float64]
Look = Callable[[Floats, Floats], None]

CLOSE = 0.7
"""Limits within this distance have rows; rad or m. It is also the greatest motion of a joint in an iteration."""
LIMIT = -1
"""Level of limits: before all priorities."""

_PLACE = entry(place, MODEL, STATE, WORK, BODIES)
_MOVE = entry(move, MODEL, STATE, STAGES, extra=("float64",))
_FORWARD = entry(articulated_body, MODEL, STATE, INPUT, WORK, extra=("float64",))


class GoalRows:
    """Rows of some goals on a model, at one pose after another."""

    def __init__(self, model: Model, goals: Sequence[Goal], limits: bool) -> None:
        self.model, self.goals, self.limits = model, list(goals), limits
        self.length = bone_length(model)
        # one for the pose of the rows, one for trial poses
        self.space, self.glance = Workspace(model, F64), Workspace(model, F64)
        self.flow = flow_block(model.nv, model.n_links, F64)
        bounds = limits_block(model, F64)
        ends = 2 * bounds.counts()["n_limits"] + 3 * bounds.counts()["n_balls"]
        self._bounds, self._ends = bounds, HELD.block(F64, held=max(ends, 1))
        self._systems: dict[int, System] = {}
        self._lay_out(ends)

    # ---- laying out --------------------------------------------------------------------------------------------------

    def _lay_out(self, ends: int) -> None:
        """Assign a slot to every row of a goal; limits follow."""
        model, moving = self.model, np.flatnonzero(self.model.body_link >= 0)
        counts = [model.nv if goal.kind == "pose" else len(goal.rows) for goal in self.goals]
        n, masses = sum(counts), model.body_mass[moving]
        terms = sum(len(goal.rows) * len(moving) for goal in self.goals if goal.kind == "centre")
        room = {"single": n + ends + 1, "law": 0, "contact": 0, "ball": 0, "term": terms + 2 * ends + 1}
        self.rows = Rows(model, room=room)
        self.n_goals = n
        self.parts: list[slice] = []
        self._looks: list[Look] = []
        level, scale = list[int](), list[float]()
        first = CODES * (model.nv + model.n_joints + 1)
        for goal, count in zip(self.goals, counts, strict=True):
            start = len(level)
            self.parts.append(slice(start, start + count))
            turns = np.full(count, goal.kind in ("orientation", "aim"))
            if goal.kind == "pose":
                turns = ~_slides(model)
            for k in range(count):
                options: dict[str, Any] = {"id": first + start + k, "lo": 0.0 if goal.kind == "above" else -np.inf}
                if goal.kind == "pose":
                    self.rows.add(dof=k, **options)
                elif goal.kind == "centre":
                    shares = zip(moving.tolist(), np.outer(masses / masses.sum(), goal.rows[k]), strict=True)
                    each = [Term(body, (0.0, 0.0, 0.0, *J)) for body, J in shares]
                    self.rows.add(b=each[0].body, Jb=each[0].J, terms=each[1:], **options)
                else:
                    self.rows.add(b=body_number(model, goal.body), Jb=(0, 0, 0, 0, 0, 1.0), **options)  # type: ignore[arg-type]
            level += [goal.priority] * count
            scale += (goal.weight * np.where(turns, self.length, 1.0)).tolist()
            self._looks.append(self._look_of(goal, moving, masses))
        self.level, self.scale = np.array(level, np.int64), np.array(scale, np.float64)
        # weights are relative among goals of one priority
        for one in set(level):
            heaviest = max(goal.weight for goal in self.goals if goal.priority == one)
            self.scale[self.level == one] /= heaviest
        self.floor = np.repeat([goal.kind == "above" for goal in self.goals], counts)
        self.turning = np.flatnonzero(~_slides(model))
        self._terms = int(self.rows.now.term_count[0])
        arrays = self.rows.now.arrays
        self._J, self._phi = arrays["Jb"][:n].reshape(n, 6), arrays["phi"][:n]

    def _look_of(self, goal: Goal, moving: NDArray[Any], masses: Floats) -> Look:
        """A function that writes J and φ of a goal."""
        bodies, model = self.glance.bodies, self.model
        places, turns = bodies.position, bodies.rotation.reshape(model.n_bodies, 3, 3)
        if goal.kind == "centre":
            share = masses / masses.sum()
            centres = model.body_com[moving]

            def centre(J: Floats, phi: Floats) -> None:
                now = share @ (places[moving] + np.einsum("bij,bj->bi", turns[moving], centres))
                phi[:] = goal.rows @ (now - goal.wanted)

            return centre
        if goal.kind == "pose":
            return lambda J, phi: _pose(model, goal, self.glance.s.q, phi)
        body = body_number(model, goal.body)  # type: ignore[arg-type]
        com = model.body_com[body]
        rows, wanted, points = goal.rows, goal.wanted, goal.points
        if goal.kind == "orientation":

            def orientation(J: Floats, phi: Floats) -> None:
                J[:, :3], J[:, 3:] = rows, 0.0
                phi[:] = turn_of(turns[body] @ wanted.T)

            return orientation
        if goal.kind == "aim":
            return lambda J, phi: _aim(goal, places[body], turns[body], com, J, phi)

        def position(J: Floats, phi: Floats) -> None:
            R = turns[body]
            arm = R @ (points[0] - com)
            J[:, :3], J[:, 3:] = rows @ -_skew(arm), rows
            phi[:] = rows @ (places[body] + R @ points[0] - wanted)

        def above(J: Floats, phi: Floats) -> None:
            arms = points @ turns[body].T
            from_com = arms - turns[body] @ com
            J[:, 0], J[:, 1], J[:, 2], J[:, 3:] = from_com[:, 1], -from_com[:, 0], 0.0, rows
            phi[:] = places[body][2] + arms[:, 2] - wanted

        return above if goal.kind == "above" else position

    # ---- looking -----------------------------------------------------------------------------------------------------

    def look(self, q: Floats) -> tuple[Floats, Floats]:
        """φ of the goals' rows (n_goals,), and of near limits, at a pose. Stores their Jacobians."""
        space, now = self.glance, self.rows.now
        space.s.q[:] = q
        _PLACE[F64](space.m.handle, space.s.handle, space.w.handle, space.bodies.handle)
        for part, one in zip(self.parts, self._looks, strict=True):
            one(self._J[part], self._phi[part])
        now.count[SINGLE], now.term_count[0] = self.n_goals, self._terms
        if self.limits:
            views = (space.s, space.w, self.flow, self._bounds, now, self._ends)
            LIMITS_OF_POSE[F64](*(view.handle for view in views), CLOSE)
        return self._phi.copy(), now.arrays["phi"][self.n_goals : int(now.count[SINGLE])].copy()

    def see(self, q: Floats, v: Floats | None = None, dt: float = 0.0) -> tuple[Floats, Floats, Floats]:
        """A (m, m), φ and lower bounds of multipliers, of goals and then of limits, at the pose of the last `look`.

        `speed` and `free` then belong to velocities v (nv,), by default 0, after a free motion of dt (s).
        """
        space, now = self.space, self.rows.now
        m = int(now.count[SINGLE])
        if m not in self._systems:
            self._systems[m] = System(self.rows)
        self.system = self._systems[m]
        space.s.q[:], space.s.v[:] = q, 0.0 if v is None else v
        _FORWARD[F64](space.m.handle, space.s.handle, space.x.handle, space.w.handle, dt)
        if not (np.isfinite(space.w.a).all() and (space.w.inverse >= 0.0).all()):
            raise Singular("the mass matrix is singular at this pose: give what moves a mass, or joints an armature")
        self.system.see(space, dt, VELOCITY)
        self.system.multiply(space)
        self.free = space.s.v + dt * space.w.a
        return self.system.matrix(), now.arrays["phi"][:m].copy(), now.arrays["lo"][:m].copy()

    @property
    def speed(self) -> Floats:
        """(m,) J times the `free` velocities (nv,), for the rows of the last `see`; m/s or rad/s."""
        return np.asarray(self.system.values("speed"))

    def displacement(self, lam: Floats) -> Floats:
        """(nv,) M⁻¹ Jᵀ λ, for the rows of the last `see`."""
        given = self.system.t.lam.reshape(-1)
        given[:] = 0.0
        given[: len(lam)] = lam
        self.system.answer(self.space)
        return np.array(self.system.flow.a)

    def moved(self, q: Floats, v: Floats) -> Floats:
        """q ⊕ v."""
        space = self.space
        space.s.q[:], space.s.v[:] = q, v
        _MOVE[F64](space.m.handle, space.s.handle, space.stages.handle, 1.0)
        return np.array(space.stages.q0)


# ---- formulas --------------------------------------------------------------------------------------------------------


def turn_of(R: Floats) -> Floats:
    """(3,) rotation vector of a matrix, no longer than π."""
    sine = 0.5 * np.array((R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]))
    cosine = 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    size = float(np.sqrt(sine @ sine))
    if cosine < -0.9:
        return quat_log(quat_from_matrix(R))
    return sine * (np.arctan2(size, cosine) / size if size > 1e-12 else 1.0)


def _skew(r: Floats) -> Floats:
    return np.array(((0.0, -r[2], r[1]), (r[2], 0.0, -r[0]), (-r[1], r[0], 0.0)))


def _aim(goal: Goal, place: Floats, R: Floats, com: Floats, J: Floats, phi: Floats) -> None:
    """The rotation from an axis to its target direction, along two axes across it.

    A point to look at is at a distance ρ along d; a motion ẋ of the body's point also rotates d by −d × ẋ/ρ.
    """
    point, axis = goal.points
    eye, now, d, near = place + R @ point, R @ axis, goal.wanted, 0.0
    if goal.at:
        way = goal.wanted - eye
        rho = float(np.linalg.norm(way))
        if rho < 1e-9:  # the direction is undefined
            J[:], phi[:] = 0.0, 0.0
            return
        d, near = way / rho, 1.0 / rho
    across = np.cross(now, d)
    sine, cosine = float(np.linalg.norm(across)), float(now @ d)
    first = across / sine if sine > 1e-9 else _any_across(now)
    second = np.cross(now, first)
    phi[:] = -np.arctan2(sine, cosine), 0.0
    for k, t in enumerate((first, second)):
        f = np.cross(t, d) * near
        J[k, :3], J[k, 3:] = t + np.cross(R @ (point - com), f), f


def _any_across(axis: Floats) -> Floats:
    other = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    return np.asarray(other / np.linalg.norm(other))


def _pose(model: Model, goal: Goal, q: Floats, phi: Floats) -> None:
    phi[:] = -difference(model, q, goal.wanted)


def _slides(model: Model) -> NDArray[np.bool_]:
    """(nv,) bool: degrees of freedom that are translations."""
    slides = np.zeros(model.nv, bool)
    slides[model.primitive_v_start[model.primitive_kind == Primitive.SLIDE]] = True
    return slides


def bone_length(model: Model) -> float:
    """Mean distance of joints from their parents; 1 if there are none; m."""
    lengths = np.linalg.norm(model.link_position[model.link_parent >= 0], axis=1)
    lengths = lengths[lengths > 0.0]
    return float(lengths.mean()) if len(lengths) else 1.0


def held_model(model: Model, held: Sequence[str | int]) -> Model:
    """The model with held degrees of freedom: of joints, by their own names, or up to a body."""
    fixed = np.array(model.dof_prescribed, np.int32)
    for name in held:
        fixed[_dofs_of(model, name)] = 1
    if not np.any(fixed != model.dof_prescribed):
        return model
    free = np.where(fixed[:, None] != 0, (-np.inf, np.inf), model.dof_limits)
    return replace(model, dof_prescribed=fixed, dof_limits=free)


def _dofs_of(model: Model, name: str | int) -> list[int]:
    if isinstance(name, str) and matches(name, model.joint_names):
        return list(range(*model.joint_v_start[[(k := model.joint_index(name)), k + 1]].tolist()))
    if isinstance(name, str) and matches(name, model.dof_names):
        return [model.dof_index(name)]
    if isinstance(name, str) and not matches(name, model.body_names):
        known = [last_part(one) for one in (*model.joint_names, *model.dof_names, *model.body_names)]
        raise ValueError(f'held: nothing is called "{name}"{did_you_mean(name, known)}')
    link, dofs = int(model.body_link[body_number(model, name)]), list[int]()
    while link >= 0:
        dofs += range(*model.link_dof_start[link : link + 2].tolist())
        link = int(model.link_parent[link])
    return dofs


def checked_goals(model: Model, goals: Any) -> list[Goal]:
    """Validate goals for a model, and copy their targets."""
    if isinstance(goals, Goal):
        goals = [goals]
    listed = list(goals) if isinstance(goals, Sequence) else None
    if not listed or not all(isinstance(goal, Goal) for goal in listed):
        raise ValueError(f"goals: must be a list of goals, such as goals.position(...), found {goals!r:.80}")
    checked = []
    for goal in listed:
        wanted = np.array(goal.wanted)
        if goal.kind == "pose":
            wanted = checked_row(model, "q", goal.wanted)
        elif goal.body is not None and int(model.body_link[body_number(model, goal.body)]) < 0:
            raise ValueError(f"goals: body {goal.body!r} never moves")
        if goal.kind == "centre" and not model.body_mass[model.body_link >= 0].sum() > 0.0:
            raise ValueError("goals: nothing that moves has a mass, so there is no centre of mass")
        checked.append(replace(goal, wanted=np.array(wanted)))
    return checked
