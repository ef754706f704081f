"""The dynamics of trees beside Pinocchio, on URDF files with fixed and free roots and every joint that URDF has.

Pinocchio keeps the velocities of floating and planar joints in the child's axes, Poise those of slides in the parent's:
v_pin = T v, so that a_pin = T a + Ṫ v, M = Tᵀ M_pin T and τ = Tᵀ τ_pin. T is a rotation, which loses no digits.
Inertias that no body has are kept (`inertia="accept"`), as Pinocchio keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import pytest

from poise import dynamics
from poise.io.urdf import load_urdf
from poise.model.model import Model
from poise.model.scene import Scene
from strategies import random_q, random_v, relative_error
from urdf_models import urdf_files

STATES = 100
TOLERANCE = 1e-12
EPS = float(np.finfo(np.float64).eps)

LINK = (
    "<link name='{name}'><inertial><origin xyz='0.05 {x} -0.02' rpy='0.3 {x} 0.1'/><mass value='{mass}'/>"
    "<inertia ixx='0.13' iyy='0.14' izz='0.15' ixy='0.01' ixz='-0.02' iyz='0.015'/></inertial></link>"
)
JOINT = (
    "<joint name='{name}' type='{kind}'><origin xyz='0.1 -0.2 {x}' rpy='{x} 0.7 -0.4'/><parent link='{parent}'/>"
    "<child link='{child}'/><axis xyz='{axis}'/><limit lower='-9' upper='9' effort='10' velocity='3'/></joint>"
)
JOINTS = (
    ("waist", "revolute", "base", "trunk", "0.6 0 0.8"),
    ("neck", "continuous", "trunk", "head", "0 0 1"),
    ("nail", "fixed", "trunk", "pack", "1 0 0"),
    ("rail", "prismatic", "pack", "tool", "0 1 0"),
    ("float", "floating", "trunk", "kite", "1 0 0"),
    ("tail", "revolute", "kite", "ribbon", "0 -1 0"),
    ("table", "planar", "tool", "puck", "0 0 1"),
    ("spin", "continuous", "puck", "top", "1 1 1"),
)


def own_robot() -> str:
    names = ["base"] + [child for _, _, _, child, _ in JOINTS]
    links = [LINK.format(name=name, x=0.03 * k, mass=0.5 + 0.3 * k) for k, name in enumerate(names)]
    joints = [
        JOINT.format(name=name, kind=kind, parent=parent, child=child, axis=axis, x=0.1 * k)
        for k, (name, kind, parent, child, axis) in enumerate(JOINTS)
    ]
    return "<robot name='own'>" + "".join(links + joints) + "</robot>"


def sources() -> dict[str, str]:
    return {"own": own_robot()} | {file.stem: file.read_text() for file in urdf_files()}


def skew(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@dataclass(frozen=True)
class Pair:
    """A robot in both engines."""

    scene: Scene
    model: Model
    pin: pin.Model

    def joints(self) -> list[tuple[int, str, pin.JointModel]]:
        names = zip(self.model.joint_names, self.model.joint_kinds, strict=True)
        return [(k, kind, self.pin.joints[self.pin.getJointId(name)]) for k, (name, kind) in enumerate(names)]

    def q(self, q: np.ndarray) -> np.ndarray:
        """Coordinates as Pinocchio has them."""
        out = pin.neutral(self.pin)
        for k, kind, joint in self.joints():
            own = q[self.model.joint_q_start[k] : self.model.joint_q_start[k + 1]]
            if kind == "free":
                body = self.scene.body(self.model.body_names[self.model.joint_body[k]])
                at = pin.XYZQUATToSE3(np.array([*own[:3], *own[4:], own[3]]))
                rest = pin.XYZQUATToSE3(np.array([*body.position, *body.quat_wxyz[1:], body.quat_wxyz[0]]))
                own = pin.SE3ToXYZQUAT(rest.inverse() * at)
            elif joint.nq > joint.nv:
                own = np.array([*own[:-1], np.cos(own[-1]), np.sin(own[-1])])
            out[joint.idx_q : joint.idx_q + joint.nq] = own
        return out

    def maps(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T and Ṫ, (nv, nv)."""
        T, rate = np.zeros((2, self.pin.nv, self.model.nv))
        for k, kind, joint in self.joints():
            start, end = self.model.joint_v_start[k : k + 2]
            at = np.ix_(range(joint.idx_v, joint.idx_v + joint.nv), range(start, end))
            own_q, own_v = q[self.model.joint_q_start[k] : self.model.joint_q_start[k + 1]], v[start:end]
            block, change = np.eye(end - start), np.zeros((end - start, end - start))
            if kind == "free":
                w, x, y, z = own_q[3:]
                block[:3, :3] = pin.Quaternion(w, x, y, z).toRotationMatrix().T
                change[:3, :3] = -skew(own_v[3:]) @ block[:3, :3]
            elif kind == "planar":
                s, c = np.sin(own_q[2]), np.cos(own_q[2])
                block[:2, :2] = [[c, s], [-s, c]]
                change[:2, :2] = own_v[2] * np.array([[-s, c], [-c, -s]])
            T[at], rate[at] = block, change
        return T, rate


def pair(name: str, root: str) -> Pair:
    text = sources()[name]
    scene = load_urdf(text, root=root, inertia="accept")
    model = scene.compile()
    # Pinocchio's algorithms leave the damping that a file asks for to the caller
    model = replace(model, dof_damping=np.zeros(model.nv))
    free = (pin.JointModelFreeFlyer(),) if root == "free" else ()
    other = pin.buildModelFromXML(text, *free)
    other.gravity.linear = model.gravity
    return Pair(scene, model, other)


CASES = [(name, root) for name in sources() for root in ("fixed", "free")]


def answers(p: Pair, q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray) -> dict[str, np.ndarray]:
    """Pinocchio's, turned into Poise's coordinates."""
    data, (T, rate) = p.pin.createData(), p.maps(q, v)
    q_pin, v_pin, a_pin = p.q(q), T @ v, T @ a + rate @ v
    mass = pin.crba(p.pin, data, q_pin)
    mass = np.triu(mass) + np.triu(mass, 1).T
    acceleration = pin.aba(p.pin, data, q_pin, v_pin, T @ tau)
    out = {
        "mass": T.T @ mass @ T,
        "acceleration": T.T @ (acceleration - rate @ v),
        "inverse": T.T @ pin.rnea(p.pin, data, q_pin, v_pin, a_pin),
        "bias": T.T @ (pin.nonLinearEffects(p.pin, data, q_pin, v_pin) + mass @ (rate @ v)),
        "kinetic": np.array(pin.computeKineticEnergy(p.pin, data, q_pin, v_pin)),
        "gravity": np.array(pin.computePotentialEnergy(p.pin, data, q_pin)),
    }
    pin.computeCentroidalMomentum(p.pin, data, q_pin, v_pin)
    out["linear"], out["angular"], out["com"] = data.hg.linear.copy(), data.hg.angular.copy(), data.com[0].copy()
    pin.computeJointJacobiansTimeVariation(p.pin, data, q_pin, v_pin)
    pin.updateFramePlacements(p.pin, data)
    frames = [p.pin.getFrameId(name, pin.FrameType.BODY) for name in p.model.body_names]
    axes, swap = pin.LOCAL_WORLD_ALIGNED, [3, 4, 5, 0, 1, 2]
    J = np.array([pin.getFrameJacobian(p.pin, data, frame, axes)[swap] for frame in frames])
    dJ = np.array([pin.getFrameJacobianTimeVariation(p.pin, data, frame, axes)[swap] for frame in frames])
    out["position"] = np.array([data.oMf[frame].translation for frame in frames])
    out["rotation"] = np.array([data.oMf[frame].rotation for frame in frames])
    out["jacobian"], out["jacobian_rate"] = J @ T, dJ @ T + J @ rate
    out["twist"] = out["jacobian"] @ v
    return out


def poise_answers(m: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray) -> dict[str, np.ndarray]:
    poses, energy, momentum = dynamics.bodies(m, q, v), dynamics.energy(m, q, v), dynamics.momentum(m, q, v)
    jacobians = [dynamics.jacobian(m, q, b, v=v) for b in range(m.n_bodies)]
    return {
        "mass": dynamics.mass_matrix(m, q),
        "acceleration": dynamics.forward_dynamics(m, q, v, tau),
        "inverse": dynamics.inverse_dynamics(m, q, v, a),
        "bias": dynamics.bias_forces(m, q, v),
        "kinetic": energy.kinetic,
        "gravity": energy.gravity,
        "linear": momentum.linear,
        "angular": momentum.angular,
        "com": momentum.com,
        "position": poses.position,
        "rotation": poses.rotation,
        "twist": poses.twist,
        "jacobian": np.stack([j.J for j in jacobians], axis=-3),
        "jacobian_rate": np.stack([j.rate for j in jacobians], axis=-3),
    }


def states(model: Model) -> list[np.ndarray]:
    rng = np.random.default_rng(11)
    sizes = (1.0, 10.0, 10.0)
    return [random_q(model, rng, STATES), *(random_v(model, rng, STATES) * size for size in sizes)]


@pytest.mark.parametrize(("name", "root"), CASES)
def test_lanes_and_single_worlds(name: str, root: str) -> None:
    p = pair(name, root)
    given = states(p.model)
    lanes = poise_answers(p.model, *given)
    worst: dict[str, float] = {}
    for k in range(STATES):
        row = [array[k] for array in given]
        truth, single = answers(p, *row), poise_answers(p.model, *row)
        # accelerations solve M a = τ - bias, which multiplies rounding by the condition number of M
        condition = float(np.linalg.cond(truth["mass"])) if p.model.nv else 1.0
        conditioned = {"acceleration": max(1.0, EPS * condition / TOLERANCE)}
        for key, want in truth.items():
            found = max(relative_error(lanes[key][k], want), relative_error(single[key], want))
            worst[key] = max(worst.get(key, 0.0), found / conditioned.get(key, 1.0))
    assert {key: error for key, error in worst.items() if not error < TOLERANCE} == {}


def test_own_robot_has_every_joint() -> None:
    kinds = set(pair("own", "free").model.joint_kinds)
    assert kinds == {"hinge", "slider", "planar", "free"}
