"""Distribution of a demand over ranks of joints: later ranks act when earlier ones cannot (LIU's secondary targets).

A demand is an acceleration d of a task; torques u of joints add R u to it. Joints are ordered in ranks. For each rank
in turn, the torques minimize the distance to the demand, in the metric of the task's kinetic energy, within

    |u| ≤ torque,  |u| ≤ leverage · |moment|,  no joint driven to an end of its range faster than by room/T    (1)

and the distance to the torques of earlier ranks. If these meet the demand, later ranks do not act. Otherwise all ranks
so far act together: hips at a limit are held there by their own torques while the knees rotate both. Each problem is
convex with one solution, so that torques are continuous in the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.constraints.row_store import SINGLE
from poise.control.ik_rows import GoalRows
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.solve.least_squares import least_squares

Floats = NDArray[np.float64]

EFFORT = 1e-5
"""Weight of torques relative to the demand's error; among solutions, the one with smaller torques is chosen."""
DONE = 1e-6
"""Share of a demand that may be missed before a second rank acts; it doubles for each further one."""


@dataclass(frozen=True)
class SecondaryTarget:
    """Joints that help with another target while they are within a range of their own (LIU).

    >>> SecondaryTarget(("knee_l", "knee_r"), within_deg=(5.0, 90.0), torque=150.0).torque
    150.0
    """

    joints: Sequence[str]
    within_deg: tuple[float, float] | None = None
    """Range of each coordinate in which they may help; joint limits apply as well."""
    torque: float = np.inf
    """Greatest torque of each degree of freedom; N·m or N."""

    def __post_init__(self) -> None:
        names = (self.joints,) if isinstance(self.joints, str) else tuple(self.joints)
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError(f"joints are {self.joints!r}; they must be names, one at least")
        object.__setattr__(self, "joints", names)
        number(f"torque of {', '.join(names)}", self.torque, infinite=True)
        if self.within_deg is None:
            return
        try:
            low, high = (float(end) for end in self.within_deg)
        except (TypeError, ValueError):
            low, high = 0.0, -1.0
        if not low <= high:
            raise ValueError(f"within_deg is {self.within_deg!r}; it must be a range (low, high)")
        object.__setattr__(self, "within_deg", (low, high))


def number(name: str, value: Any, *, least: float = 0.0, infinite: bool = False) -> float:
    """Validate a number of a controller."""
    try:
        given = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a number") from None
    if isnan(given) or given < least or (not infinite and not np.isfinite(given)):
        raise ValueError(f"{name} is {value!r}; it must be a number from {least:g} on{'' if infinite else ', finite'}")
    return given


def ranks_of(first: Any, others: Any) -> list[SecondaryTarget]:
    """Ranks in order: names that are given together form one rank."""
    return [*_listed("joints", first), *_listed("fallbacks", others)]


def _listed(name: str, given: Any) -> list[SecondaryTarget]:
    if isinstance(given, str | SecondaryTarget):
        given = (given,)
    items: list[Any] = list(given) if isinstance(given, Iterable) else [None]
    if all(isinstance(item, SecondaryTarget) for item in items):
        return items
    if all(isinstance(item, str) for item in items):
        return [SecondaryTarget(tuple(items))]
    raise ValueError(f"{name} is {given!r}; it must be names of joints, or SecondaryTargets")


class Task(NamedTuple):
    """A task for torques in a state."""

    A: Floats
    """(k, k) J M⁻¹ Jᵀ."""
    J: Floats
    """(k, nv)"""
    inverse: Floats
    """(nv, nv) M⁻¹, 0 for held degrees of freedom."""
    q: Floats
    v: Floats
    h: float
    """Length of the step; s."""


class Shared(NamedTuple):
    """The distribution of a demand."""

    torque: Floats
    """(nv,) N·m or N."""
    missing: Floats
    """(k,) remainder that no rank can provide, as a force in the task's space; N·m or N."""
    ranks: int
    """Number of ranks that acted."""


class Helpers:
    """Ranks of joints on a model."""

    def __init__(self, model: Model, ranks: Sequence[SecondaryTarget], limit_time: float, leverage: float) -> None:
        self._time, self._leverage = limit_time, leverage
        self._dofs: list[NDArray[np.int64]] = []
        self._torque: list[Floats] = []
        self._ranges = _Ranges(model)
        seen: set[int] = set()
        for rank in ranks:
            dofs: list[int] = []
            for name in rank.joints:
                joint = model.joint_index(name)
                _check_joint(model, joint, rank)
                if joint in seen:
                    raise ValueError(f'joint "{model.joint_names[joint]}" is named twice')
                seen.add(joint)
                dofs += range(*model.joint_v_start[joint : joint + 2].tolist())
                if rank.within_deg is not None:
                    self._ranges.add(joint, rank.within_deg)
            self._dofs.append(np.array(dofs, np.int64))
            self._torque.append(np.full(len(dofs), float(rank.torque)))

    @property
    def dofs(self) -> NDArray[np.int64]:
        """Degrees of freedom of all ranks."""
        return np.concatenate(self._dofs) if self._dofs else np.zeros(0, np.int64)

    def share(self, task: Task, force: Floats) -> Shared:
        """Torques with the same effect on the task as a force (k,), within the bounds."""
        tau = np.zeros(len(task.v))
        values, vectors = np.linalg.eigh(task.A)
        kept = values > 1e-9 * max(float(values[-1]), 0.0)
        Q = (vectors[:, kept] / np.sqrt(values[kept])).T
        goal = Q @ task.A @ force
        size = float(np.linalg.norm(goal))
        if size == 0.0:
            return Shared(tau, np.zeros(len(force)), 0)
        u, rest, called = np.zeros(0), goal, 0
        most = self._leverage * float(np.linalg.norm(force))
        for k in range(len(self._dofs)):
            left = float(np.linalg.norm(rest))
            little = DONE * 2.0**k * size if k else 0.0  # more than the remainder of the previous rank
            if left <= little:
                break
            dofs, torque = np.concatenate(self._dofs[: k + 1]), np.minimum(np.concatenate(self._torque[: k + 1]), most)
            start = np.append(u, np.zeros(len(dofs) - len(u)))
            B = Q @ task.J @ task.inverse[:, dofs]
            heaviness = EFFORT * float(np.linalg.norm(B))
            aim = B @ start + rest * (1.0 - little / left)
            C, room = self._bounds(task, dofs, torque, start)
            G = np.concatenate((B, heaviness * np.eye(len(dofs))))
            u = least_squares(G, -np.concatenate((aim, heaviness * start)), C, room, start)
            u = np.clip(u, -torque, torque)
            rest, called = goal - B @ u, k + 1
        if called:
            tau[np.concatenate(self._dofs[:called])] = u
        return Shared(tau, np.asarray(vectors[:, kept] @ (rest / np.sqrt(values[kept]))), called)

    def _bounds(self, task: Task, dofs: NDArray[np.int64], torque: Floats, u: Floats) -> tuple[Floats, Floats]:
        """C u ≤ room, eq. 1; a u that violates it already may stay."""
        some = np.isfinite(torque)
        own = np.eye(len(dofs))[some]
        J, gap = self._ranges.near(task.q, dofs)
        C = -task.h * J @ task.inverse[:, dofs]
        room = np.concatenate((torque[some], torque[some], np.maximum(J @ task.v + gap / self._time, 0.0)))
        C = np.concatenate((own, -own, C))
        return C, np.maximum(room, C @ u)


class _Ranges:
    """Ends of ranges: limits of joints, and narrower ranges of secondary targets."""

    def __init__(self, model: Model) -> None:
        self._model, self._rows = model, GoalRows(model, [], limits=True)
        self._own: list[tuple[int, int, float, float]] = []

    def add(self, joint: int, within: tuple[float, float]) -> None:
        """Add a range for all coordinates of a joint."""
        model = self._model
        low, high = np.radians(within).tolist()
        q, start, end = (int(one) for one in (model.joint_q_start[joint], *model.joint_v_start[joint : joint + 2]))
        self._own += [(q + k, start + k, low, high) for k in range(end - start)]

    def near(self, q: Floats, dofs: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """(m, nv) J and (m,) remaining range up to the ends for these degrees of freedom, J v being its rate; rad."""
        rows, gaps = [], []
        left = self._rows.look(q)[1]
        for slot in range(int(self._rows.rows.now.count[SINGLE])):
            terms = self._rows.rows.dof_terms(slot)
            if all(dof in dofs for dof, _ in terms):
                rows.append(terms)
                gaps.append(float(left[slot]))
        for place, dof, low, high in self._own:
            if dof in dofs:
                rows += [[(dof, 1.0)], [(dof, -1.0)]]
                gaps += [float(q[place]) - low, high - float(q[place])]
        J = np.zeros((len(rows), self._model.nv))
        for row, terms in zip(J, rows, strict=True):
            for dof, coefficient in terms:
                row[dof] += coefficient
        return J, np.array(gaps)


def _check_joint(model: Model, joint: int, rank: SecondaryTarget) -> None:
    name, kind = model.joint_names[joint], model.joint_kinds[joint]
    start, end = model.joint_v_start[joint : joint + 2].tolist()
    if kind == "free" or start == end:
        raise ValueError(f'joint "{name}" is {kind}: it has no torque of its own')
    if model.dof_prescribed[start:end].any():
        raise ValueError(f'joint "{name}" is kinematic: torques do not move it')
    if rank.within_deg is not None and not (_turns(model, joint)):
        raise ValueError(
            f'joint "{name}" is of the kind {kind}; within_deg is for those that are angles, as hinges are'
        )


def _turns(model: Model, joint: int) -> bool:
    """Whether all coordinates of a joint are angles."""
    start, end = model.joint_v_start[joint : joint + 2].tolist()
    kinds = [
        int(kind) for kind, v in zip(model.primitive_kind, model.primitive_v_start, strict=True) if start <= v < end
    ]
    return all(kind == Primitive.TURN for kind in kinds)
