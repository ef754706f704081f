"""Balance: joint torques keep a character on its feet through the forces of the ground.

The centre of mass at the height z over the feet falls like a pendulum, with ω² = g/z. It would come to rest over its
capture point ξ = c + ċ/ω. The capture point diverges from the centre of pressure p, ξ̇ = ω (ξ − p), and can be
controlled while it is within the support (Hof 2008; Pratt et al. 2006). So before every step

1. choose p = ξ − ξ̇_ref/ω + k (ξ − ξ_ref), within the support, so that ξ converges to that of the reference; the ground
   force F = m ω² (c − p) along the ground, and a vertical force from the height of the reference; a moment about the
   centre of mass from the angular momentum of the reference and the error of the root's orientation;
2. find forces at the soles' corners, within friction, nearest to this wrench: a problem with bounds (`poise.solve`);
3. find accelerations nearest to those that move the joints to their reference, subject to the Newton-Euler equations of
   the root with these forces, and to feet at rest;
4. compute torques of the joints by inverse dynamics. Those of the root are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.support_polygon import check_gravity, hull, nearest_within, sole_points
from poise.dynamics.argument_checks import body_number
from poise.dynamics.functions import bias_forces, mass_matrix, passive_forces
from poise.dynamics.state_queries import Bodies, bodies, difference, jacobian
from poise.kernel.blas import few_blas_threads
from poise.model.model import Model
from poise.model.state import State
from poise.motion.rotations import quat_to_matrix, rotate
from poise.sim.controllers import StateToAct, Targets
from poise.solve.problem import Problem
from poise.solve.solver_registry import solver_class

Floats = NDArray[np.float64]
Reference = Callable[[float], Any]
STANDING = 0.02
"""Points of soles up to this height above the lowest one can have contact forces; m."""
EDGES = 4
"""Edges of the pyramid that replaces a friction cone: forces are sums of nonnegative forces along them."""
LIGHT = 1e-3
"""Weight of the forces themselves, which spreads them over the points."""
INNER = 0.02
"""Minimum distance of the target centre of mass from the edge of the support; m."""
LOW, TILT = 0.5, np.radians(70.0)
"""A character has fallen if its centre of mass is below this share of its height, or its root tilts by this (rad)."""
RELAXED = 5.0
"""Damping of the joints of a fallen character; 1/s."""
HEIGHT = (100.0, 20.0)
"""Stiffness (1/s²) and damping (1/s) of the height's feedback to the reference: critically damped or more."""
FOOT_DAMPING = 20.0
"""Damping of residual motion of the feet; 1/s."""


class Stance(NamedTuple):
    """The support of the character in a state."""

    points: Floats
    """(n, 3) points of the soles, in the world; m."""
    J: Floats
    """(n, 3, nv) Jacobians of these points."""
    feet: Floats
    """(6 · feet, nv) Jacobian of the standing feet."""
    rates: Floats
    """(6 · feet,) J̇ v."""


class Motion(NamedTuple):
    """Motion of a whole character."""

    com: Floats
    """(3,) centre of mass; m."""
    velocity: Floats
    """(3,) its velocity; m/s."""
    spin: Floats
    """(3,) angular momentum about it; kg·m²/s."""
    inertia: Floats
    """(3, 3) inertia about it; kg·m²."""


class Goal(NamedTuple):
    """Target motion of a whole character, from its reference."""

    com: Floats
    """(3,) centre of mass; m."""
    velocity: Floats
    """(3,) m/s."""
    acceleration: Floats
    """(3,) m/s²."""
    spin: Floats
    """(3,) angular momentum about it; kg·m²/s."""
    moment: Floats
    """(3,) its rate; N·m."""


@dataclass(frozen=True)
class BalanceReading:
    """Reading of a balance controller after a step."""

    capture_point: Floats
    """(2,) m."""
    pressure: Floats
    """(2,) commanded centre of pressure; m."""
    support: Floats
    """(k, 2) corners of the support, counterclockwise; m."""
    com: Floats
    """(3,) m."""
    force: Floats
    """(3,) planned force of the ground; N."""
    fallen: bool = False
    """Whether the character has fallen; joints are then only damped."""


class Balance:
    """Keeps a character with a free root on its feet while its joints follow a reference; for `world.add_controller`.

    `reference` maps a time to coordinates (nq,), or to (q, v, a) as `Keyframes.coordinates` does. Without a reference
    the pose of the first step is kept, except that the centre of mass moves over the middle of the support. The
    position of the root is not tracked: the feet stay in place, and the centre of mass is above them as in the
    reference. Feet are boxes or other shapes that are low at rest.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground()
    >>> _ = scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    >>> world = scene.build()
    >>> _ = world.add_controller(Balance())
    >>> world.step(24)
    >>> float(world.body("hero/head").position[2]) > 1.4
    True
    """

    def __init__(
        self,
        reference: Reference | None = None,
        *,
        feet: Sequence[str] = ("foot_l", "foot_r"),
        stiffness: float = 60.0,
        damping: float = 12.0,
        capture: float = 2.0,
        upright: float = 8.0,
        spin: float = 4.0,
        friction: float = 0.6,
        strength: float | ArrayLike = np.inf,
        margin: float = 0.005,
    ) -> None:
        """`stiffness` (1/s²) and `damping` (1/s): feedback of the joints; `capture`: distance of the centre of pressure
        beyond the capture point, per error of the latter; `upright` (1/s²) and `spin` (1/s): feedback of the root's
        orientation, by moments of the ground; `strength`: greatest torque, of all joints or each degree of freedom
        (N·m); `margin`: distance of the centre of pressure from the edge of the support (m).
        """
        numbers = {"stiffness": stiffness, "damping": damping, "capture": capture, "friction": friction}
        for name, number in (numbers | {"upright": upright, "spin": spin, "margin": margin}).items():
            if not np.isfinite(number) or number < 0.0:
                raise ValueError(f"{name} is {number!r}; it must be a number, 0 or more")
        if not len(feet):
            raise ValueError("feet is empty; a character stands on one at least")
        if np.isnan(np.asarray(strength, np.float64)).any() or (np.asarray(strength) < 0.0).any():
            raise ValueError(f"strength is {strength!r}; it must be a torque, 0 or more, or one each")
        self._reference, self._feet = reference, tuple(feet)
        self._stiffness, self._damping, self._capture, self._spin = stiffness, damping, capture, spin
        self._upright = upright
        self._friction, self._strength, self._margin = friction, np.asarray(strength, np.float64), margin
        self.reading: BalanceReading | None = None
        """Reading of the last step."""

    def scale(self, factor: ArrayLike) -> None:
        """Scale the joints' initial strength: one factor, or (nv,) of them."""
        whole, part = np.broadcast_arrays(self._whole, np.asarray(factor, np.float64))
        self._strength = np.multiply(whole, part, out=np.zeros(part.shape), where=part > 0.0)

    def bind(self, model: Model, /, *, tree: int | None = None, strength: Floats | None = None) -> None:
        """Look up the feet and their tree; or use a given tree, by its first link, and its strength."""
        check_gravity(model)
        self._model = model
        if strength is not None:
            self._strength = np.minimum(self._strength, strength)
        self._whole = self._strength
        names = [_full_name(model, name, tree) for name in self._feet]
        self._bodies = [body_number(model, name) for name in names]
        links = [int(model.body_link[body]) for body in self._bodies]
        roots = {int(model.link_root[link]) if link >= 0 else -1 for link in links}
        if len(roots) != 1 or -1 in roots:
            raise ValueError(f"{', '.join(names)} are not of one character that moves")
        links_of_tree = np.flatnonzero(model.link_root == roots.pop())
        self._dofs = np.flatnonzero(np.isin(model.dof_link, links_of_tree))
        joint = np.flatnonzero(model.joint_v_start == self._dofs[0])
        if not len(joint) or model.joint_kinds[int(joint[0])] != "free":
            raise ValueError(f'the root of "{names[0]}" is not free: there is nothing to balance')
        self._soles = [sole_points(model, body) for body in self._bodies]
        self._mass = float(model.link_mass[links_of_tree].sum())
        self._root = int(model.joint_q_start[int(joint[0])])
        self._solver = solver_class("dantzig")()

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    # ---- before each step --------------------------------------------------------------------------------------------

    @few_blas_threads
    def update(self, state: StateToAct) -> Targets:
        """Torques of the joints."""
        model, q, v = self._model, state.q, state.v
        if "pose" not in state.slots:
            state.slots["pose"] = q.copy()
        q_ref, v_ref, a_ref = self._wanted(state.time, state.slots["pose"])
        stance = self._stance(q, v)
        n = self._dofs
        M, h = mass_matrix(model, q)[np.ix_(n, n)], bias_forces(model, q, v)[n]
        now = self._motion(q, v, M)
        at = self._root
        lean = rotate(q[at + 3 : at + 7], difference(model, q, q_ref)[n[3:6]])
        goal = self._goal(stance, q_ref, v_ref, a_ref)
        if self._has_fallen(stance, now, goal, lean):
            return self._relaxed(stance, now, M, v)
        moment = goal.moment + now.inertia @ (self._upright * lean) - self._spin * (now.spin - goal.spin)
        f = self._forces(stance, now, moment, goal)
        ground = np.einsum("kij,ki->j", stance.J, f)[n]
        wanted = (self._stiffness * difference(model, q, q_ref) + self._damping * (v_ref - v) + a_ref)[n]
        a = self._accelerations(M, h, ground, stance, v, wanted)
        tau = np.zeros(model.nv)
        torques = M @ a + h - ground - passive_forces(model, q, v)[n]
        torques[:6] = 0.0
        limit = np.broadcast_to(self._strength, model.nv)[n]
        tau[n] = np.clip(torques, -limit, limit)
        return Targets(tau=tau)

    def _has_fallen(self, stance: Stance, now: Motion, goal: Goal, lean: Floats) -> bool:
        """Whether the centre of mass is too low, or the root too far from upright, to recover."""
        low = float(stance.points[:, 2].min())
        return bool(now.com[2] - low < LOW * (goal.com[2] - low) or np.hypot(lean[0], lean[1]) > TILT)

    def _relaxed(self, stance: Stance, now: Motion, M: Floats, v: Floats) -> Targets:
        """Damping torques of a fallen character."""
        n, tau = self._dofs, np.zeros(self._model.nv)
        limit = np.broadcast_to(self._strength, self._model.nv)[n]
        tau[n] = np.clip(-RELAXED * np.diag(M) * v[n], -limit, limit)
        tau[n[:6]] = 0.0
        corners = hull(stance.points[:, :2])
        self.reading = BalanceReading(now.com[:2], now.com[:2], corners, now.com, np.zeros(3), fallen=True)
        return Targets(tau=tau)

    def _wanted(self, time: float, pose: Floats) -> tuple[Floats, Floats, Floats]:
        """q, v and a of the reference."""
        model = self._model
        none = np.zeros(model.nv)
        if self._reference is None:
            return pose, none, none
        given = self._reference(time)
        if isinstance(given, tuple):
            q, v, a = (np.asarray(part, np.float64) for part in given)
            return q, v, a
        q, h = np.asarray(given, np.float64), 1e-3
        before, after = (np.asarray(self._reference(time + side), np.float64) for side in (-h, h))
        back, ahead = difference(model, q, before), difference(model, q, after)
        return q, (ahead - back) / (2.0 * h), (ahead + back) / (h * h)

    def _motion(self, q: Floats, v: Floats, M: Floats) -> Motion:
        """Motion of the whole character, from the root's rows of M, which are its momentum about the root."""
        at, moves = self._root, M[:6] @ v[self._dofs]
        R = quat_to_matrix(q[at + 3 : at + 7])
        lever = M[:3, 3:6] @ R.T / self._mass  # −[r]×, r from the root to the centre of mass
        arm = np.array((lever[1, 2], lever[2, 0], lever[0, 1]))
        spin = R @ moves[3:] - np.cross(arm, moves[:3])
        about_root = R @ M[3:6, 3:6] @ R.T
        inertia = about_root - self._mass * (float(arm @ arm) * np.eye(3) - np.outer(arm, arm))
        return Motion(q[at : at + 3] + arm, moves[:3] / self._mass, spin, inertia)

    # ---- what carries ------------------------------------------------------------------------------------------------

    def _stance(self, q: Floats, v: Floats) -> Stance:
        model, place = self._model, bodies(self._model, q)
        points = self._points(place)
        lowest = min(float(some[:, 2].min()) for some in points)
        stand, J, feet, rates = [], [], [], []
        for body, some in zip(self._bodies, points, strict=True):
            down = some[some[:, 2] <= lowest + STANDING]
            if len(down):
                whole = jacobian(model, q, body, v=v)
                feet.append(whole.J)
                rates.append(whole.rate @ v)
                stand.append(down)
                J += [_at(whole.J, point - place.position[body]) for point in down]
        return Stance(np.concatenate(stand), np.array(J), np.concatenate(feet), np.concatenate(rates))

    def _points(self, place: Bodies) -> list[Floats]:
        """Points of each sole in the world; m."""
        soles = zip(self._bodies, self._soles, strict=True)
        return [place.position[body] + sole @ place.rotation[body].T for body, sole in soles]

    def _forces(self, stance: Stance, now: Motion, moment: Floats, goal: Goal) -> Floats:
        """(n, 3) forces at the points of the soles, with a moment about the centre of mass if feasible; N."""
        m, com, speed = self._mass, now.com, now.velocity
        g = float(np.linalg.norm(self._model.gravity))
        omega = np.sqrt(g / max(com[2] - stance.points[:, 2].mean(), 0.1))
        ahead = com[:2] + speed[:2] / omega
        corners = hull(stance.points[:, :2])
        over = nearest_within(goal.com[:2], corners, INNER)
        lead = goal.velocity[:2] / omega
        led = lead + goal.acceleration[:2] / omega**2
        p = nearest_within(ahead - led + self._capture * (ahead - over - lead), corners, self._margin)
        rise = goal.acceleration[2] + HEIGHT[0] * (goal.com[2] - com[2]) + HEIGHT[1] * (goal.velocity[2] - speed[2])
        F = np.array((*(m * omega**2 * (com[:2] - p)), m * max(g + rise, 0.2 * g)))
        self.reading = BalanceReading(ahead, p, corners, com, F)
        return self._spread(stance.points - com, F, moment)

    def _goal(self, stance: Stance, q_ref: Floats, v_ref: Floats, a_ref: Floats) -> Goal:
        """Target of the centre of mass: over the feet as in the reference, or without one over the support's middle."""
        model, n, at = self._model, self._dofs, self._root
        place, M = bodies(model, q_ref, v_ref), mass_matrix(model, q_ref)[np.ix_(n, n)]
        told = self._motion(q_ref, v_ref, M)
        soles = np.concatenate(self._points(place))
        low = float(soles[:, 2].min())
        middle = stance.points.mean(axis=0)
        com = np.array((*middle[:2], middle[2] + told.com[2] - low))
        if self._reference is None:
            none = np.zeros(3)
            return Goal(com, none, none, none, none)
        com[:2] += told.com[:2] - soles[soles[:, 2] <= low + STANDING, :2].mean(axis=0)
        # the wrench on the root that the reference needs, which the ground must provide
        wrench = M[:6] @ a_ref[n] + bias_forces(model, q_ref, v_ref)[n[:6]]
        moment = rotate(q_ref[at + 3 : at + 7], wrench[3:]) - np.cross(told.com - q_ref[at : at + 3], wrench[:3])
        carried = place.twist[self._bodies, 3:].mean(axis=0)
        return Goal(com, told.velocity - carried, wrench[:3] / self._mass + model.gravity, told.spin, moment)

    def _spread(self, arms: Floats, F: Floats, N: Floats) -> Floats:
        """(n, 3) forces within friction pyramids at arms from the centre of mass, nearest to a force and a moment."""
        angles = (np.arange(EDGES) + 0.5) * (2.0 * np.pi / EDGES)
        edges = np.stack((self._friction * np.cos(angles), self._friction * np.sin(angles), np.ones(EDGES)), axis=1)
        directions = np.tile(edges, (len(arms), 1))
        moments = np.cross(np.repeat(arms, EDGES, axis=0), directions)
        G = np.concatenate((directions, 3.0 * moments), axis=1).T
        aim = np.concatenate((F, 3.0 * N))
        A = G.T @ G + LIGHT**2 * np.eye(G.shape[1]) * self._mass
        share = self._solver.solve(Problem(A, -(G.T @ aim), np.zeros(len(A)), np.full(len(A), np.inf))).lam
        return np.asarray((directions * share[:, None]).reshape(-1, EDGES, 3).sum(axis=1))

    # ---- what the joints do ------------------------------------------------------------------------------------------

    def _accelerations(self, M: Floats, h: Floats, ground: Floats, stance: Stance, v: Floats, wanted: Floats) -> Floats:
        """Accelerations nearest to the wanted ones, subject to the ground's forces and to feet at rest."""
        n = len(self._dofs)
        weights = np.ones(n)
        weights[:3], weights[3:6] = 0.0, 0.1
        feet = stance.feet[:, self._dofs]
        C = np.concatenate((M[:6], feet))
        right = np.concatenate((ground[:6] - h[:6], -stance.rates - FOOT_DAMPING * (stance.feet @ v)))
        K = np.zeros((n + len(C), n + len(C)))
        K[:n, :n] = np.diag(weights + 1e-6)
        K[:n, n:], K[n:, :n] = C.T, C
        K[n:, n:] = -1e-9 * np.eye(len(C))
        return np.asarray(np.linalg.solve(K, np.concatenate((weights * wanted, right)))[:n])


def _at(J: Floats, arm: Floats) -> Floats:
    """(3, nv) Jacobian of a point, at an arm from the point of J (6, nv)."""
    x, y, z = arm
    return np.asarray(J[3:] + np.array(((0.0, z, -y), (-z, 0.0, x), (y, -x, 0.0))) @ J[:3])


def _full_name(model: Model, name: str, tree: int | None) -> str:
    """A body by its full name or by a unique end of it, optionally only among the bodies of a tree."""
    if name in model.body_names:
        return name
    found = [known for known in model.body_names if known.endswith(f"/{name}")]
    if tree is not None:
        links = (int(model.body_link[model.body_index(known)]) for known in found)
        found = [known for known, link in zip(found, links, strict=True) if link >= 0 and model.link_root[link] == tree]
    return found[0] if len(found) == 1 else name
