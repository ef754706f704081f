"""Scenes in maximal coordinates, with joints as rows: states, problems, steps.

A plain loop at velocity level, to study solvers: semi-implicit Euler, explicit gyroscopic torques, Baumgarte
stabilization of joint errors and overlaps with a fifth a step (VON eq. 10), motors as soft rows on degrees of freedom
(LIU eqs. 12, 13).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

import poise
from poise.characters import clips, humanoid
from poise.collision.detector import Collider, Contact
from poise.constraints.kinds.joint import JointRows, Links, joint_rows, place_links
from poise.model.model import Model
from poise.model.motors import Motor
from poise.model.scene import Joint, Scene
from poise.motion.rotations import cross, quat_exp, quat_multiply, quat_to_matrix, rotate
from poise.solve.matrix_free import BodyRows, inverse_masses, stacked
from poise.solve.problem import Friction, Problem, Result

Solve = Callable[["Posed", np.ndarray], Result]
"""Multipliers of a problem, from those to start with."""
ERP, NEAR, FRICTION = 0.2, 0.01, 0.8
"""Share of errors that a step corrects; largest gap of contacts with rows (m); coefficient of friction."""


@dataclass(frozen=True)
class Posed:
    """A problem over bodies, and what its rows are."""

    problem: Problem
    joints: int
    """Rows of joints, which come first."""
    keys: tuple[tuple[str, int], ...]
    """Name of each row, the same from step to step."""

    def formed(self, cone: bool = True) -> Problem:
        """The same with its matrix, contacts as cones or as pyramids."""
        A = self.problem.A
        J = np.zeros((self.problem.size, A.n_bodies + 1, 6))
        answer = J.copy()
        rows = np.arange(self.problem.size)[:, None]
        np.add.at(J, (rows, A.body), A.J)
        np.add.at(answer, (rows, A.body), A.response)
        matrix = np.tensordot(J[:, :-1], answer[:, :-1], axes=((1, 2), (1, 2)))
        frictions = [replace(friction, cone=cone) for friction in self.problem.frictions]
        return replace(self.problem, A=0.5 * (matrix + matrix.T), frictions=frictions)


@dataclass
class LooseBodies:
    """Links of a model on their own, in motion."""

    model: Model
    collider: Collider | None
    """Of the same bodies without joints; None where there is nothing to touch."""
    q: np.ndarray
    links: Links
    dt: float = 1.0 / 240.0
    motors: tuple[Motor, ...] = ()
    goal: np.ndarray | None = None
    """(nq,) pose that motors hold."""
    kept: dict[tuple[str, int], float] = field(default_factory=dict)

    def copy(self) -> LooseBodies:
        """Another one in the same state."""
        return replace(self, q=self.q.copy(), links=Links(*(part.copy() for part in self.links)), kept=dict(self.kept))

    def inertia(self) -> np.ndarray:
        """(n_links, 3, 3) in world axes."""
        R = quat_to_matrix(self.links.quat_wxyz)
        xx, yy, zz, xy, xz, yz = self.model.link_inertia.T
        own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
        return R @ own @ R.transpose(0, 2, 1)

    def free_twist(self, inertia: np.ndarray) -> np.ndarray:
        """(n_links, 6) at the end of the step, without rows."""
        w = self.links.twist[:, :3]
        spin = np.linalg.solve(inertia, -cross(w, np.einsum("nij,nj->ni", inertia, w))[..., None])[..., 0]
        gravity = np.broadcast_to(self.model.gravity, w.shape)
        return self.links.twist + self.dt * np.concatenate((spin, gravity), axis=1)

    def touching(self) -> list[Contact]:
        """Contacts with what never moves."""
        if self.collider is None:
            return []
        arm = rotate(self.links.quat_wxyz, self.model.link_com)
        q = np.concatenate((self.links.x - arm, self.links.quat_wxyz), axis=1).ravel()
        links = self.collider.model.solids.link
        self.collider.place(q)
        self.collider.touch(NEAR)
        return [one for one in self.collider.contacts() if (links[one.a] < 0) != (links[one.b] < 0)]

    def pose(self) -> tuple[Posed, JointRows, np.ndarray]:
        """The problem of a step, its joints, and the twists (n_links, 6) without rows."""
        inertia = self.inertia()
        joints = joint_rows(self.model, self.q, *self.links)
        touches = self.touching()
        dofs, target, softness, most = self._motor_rows(joints)
        groups = [(joints.parent, joints.link, joints.Ja, joints.Jb)]
        groups.append((joints.dof_bodies[0][dofs], joints.dof_bodies[1][dofs], joints.Da[dofs], joints.Db[dofs]))
        groups += [self._contact_rows(one) for one in touches]
        A = BodyRows(*stacked(groups), inverse_masses(self.model.link_mass, inertia))
        twist = self.free_twist(inertia)
        rate = np.einsum("mei,mei->m", A.J, np.append(twist, np.zeros((1, 6)), axis=0)[A.body])
        pushes = [(-min(one.gap, 0.0) * ERP - max(one.gap, 0.0)) / self.dt for one in touches]
        wanted = np.concatenate((-ERP / self.dt * joints.phi, target, np.array([(p, 0, 0) for p in pushes]).ravel()))
        first = len(joints.phi) + len(dofs)
        normals = range(first, len(wanted), 3)
        frictions = [Friction(normal, (normal + 1, normal + 2), FRICTION) for normal in normals]
        cfm, hi = np.zeros(len(wanted)), np.full(len(wanted), np.inf)
        cfm[len(joints.phi) : first], hi[len(joints.phi) : first] = softness, most
        keys = [("joint", k) for k in range(len(joints.phi))] + [("motor", int(d)) for d in dofs]
        keys += [(f"contact {axis}", one.id) for one in touches for axis in range(3)]
        problem = Problem(A, rate - wanted, -hi, hi, cfm, frictions=frictions)
        return Posed(problem, len(joints.phi), tuple(keys)), joints, twist

    def _motor_rows(self, joints: JointRows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Degrees of freedom, wanted speeds, softness and bounds: springs and dampers at the end of the step."""
        if self.goal is None:
            return np.zeros(0, int), *np.zeros((3, 0))
        off = poise.dynamics.difference(self.model, self.goal, joints.q)
        dofs = np.array([d for motor in self.motors for d in motor.dofs])
        k, c, most = (
            np.array([value(motor) for motor in self.motors for _ in motor.dofs])
            for value in (lambda m: m.stiffness, lambda m: m.damping, lambda m: m.high)
        )
        both = self.dt * k + c
        return dofs, -k * off[dofs] / both, 1.0 / (self.dt * both), most * self.dt

    def _contact_rows(self, one: Contact) -> tuple[np.ndarray, ...]:
        """Normal and two tangents, on the one body that can move."""
        links = self.collider.model.solids.link
        outward = one.normal if links[one.b] >= 0 else -one.normal
        link = int(max(links[one.a], links[one.b]))
        first = np.cross((0.0, 1.0, 0.0), outward)
        first /= np.linalg.norm(first)
        directions = np.array([outward, first, np.cross(outward, first)])
        arm = one.point - self.links.x[link]
        J = np.concatenate((np.cross(arm, directions), directions), axis=1)
        return np.full(3, -1), np.full(3, link), np.zeros((3, 6)), J

    def step(self, solve: Solve) -> tuple[Result, JointRows]:
        """One step; what was solved, and the joints at its beginning."""
        posed, joints, twist = self.pose()
        warm = np.array([self.kept.get(key, 0.0) for key in posed.keys])
        result = solve(posed, warm)
        self.kept = dict(zip(posed.keys, result.lam.tolist(), strict=True))
        twist = twist + posed.problem.A.velocities(result.lam)
        turned = quat_multiply(quat_exp(self.dt * twist[:, :3]), self.links.quat_wxyz)
        self.links = Links(turned, self.links.x + self.dt * twist[:, 3:], twist)
        self.q = joints.q
        return result, joints


def standing() -> LooseBodies:
    """A person on both feet, as stiff as motors make it."""
    person = humanoid(height=1.75, mass=70.0)
    stage = Scene()
    stage.add_ground(friction=FRICTION)
    strength = {"legs": 300.0, "trunk": 300.0, "arms": 60.0}
    stage.add(person, name="hero").track(clips.stand(person).slice(0.0, 0.1), root="free", strength=strength)
    world = stage.build()
    scene = Scene()
    scene.add_ground(friction=FRICTION)
    scene.add(person, name="hero")
    q = np.array(world.q)
    return LooseBodies(
        world.model,
        Collider(apart(scene)),
        q,
        place_links(world.model, q),
        motors=world.model.motors,
        goal=q.copy(),
    )


def apart(scene: Scene) -> Model:
    """The bodies of a scene, each free."""
    scene = deepcopy(scene)
    for body in scene.bodies:
        if body.moving_joints():
            body.parent, body.joints = None, [Joint("free")]
    return scene.compile()


def hanging(links: int = 100, heavy: float = 100.0, angle: float = 0.5) -> LooseBodies:
    """A straight chain of ball joints at an angle (rad) from the plumb line, its end as heavy as so many links."""
    scene = Scene()
    name = None
    for k in range(links):
        mass = 0.1 * (heavy if k == links - 1 else 1.0)
        ball = poise.sphere(0.05, mass=mass, group=0, mask=0)
        place = {"position": (0, 0, -0.1) if k else (0, 0, 0), "anchor": (0, 0, 0.1 if k else 0.05)}
        name = scene.ball(name, ball, name=f"link {k}", **place).name
    model = scene.compile()
    q = np.array(model.q_rest)
    q[:4] = quat_exp((0.0, angle, 0.0))
    return LooseBodies(model, None, q, place_links(model, q))
