"""Peers on the same tree: MuJoCo reads the same file, Pinocchio gets the tree that Poise compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from poise.dynamics.dynamics_layout import matrices
from poise.model.joints import Primitive
from poise.model.model import Model


class MujocoPeer:
    """MuJoCo without contacts and constraints: nothing but the tree."""

    def __init__(self, path: Path) -> None:
        import mujoco

        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_path(str(path))
        disabled = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.model.opt.disableflags |= int(disabled)
        self.data = mujoco.MjData(self.model)

    def set_state(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        """Begin here."""
        self.mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:], self.data.qfrc_applied[:] = q, v, tau

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """(nv,) of one state."""
        self.set_state(q, v, tau)
        self.mujoco.mj_forward(self.model, self.data)
        return self.data.qacc.copy()

    def steps(self, n: int) -> None:
        """N steps, in a loop in C."""
        self.mujoco.mj_step(self.model, self.data, nstep=n)


class PinocchioPeer:
    """The tree in Pinocchio: a free flyer and single revolute joints, massless bodies between those of one body.

    Joints about ±x, ±y, ±z are Pinocchio's specialised ones, which are its fastest; `sign` turns the coordinate of
    those about a negative axis. Its free flyer has the linear velocity in the body's axes, Poise's in the world's.
    """

    def __init__(self, model: Model) -> None:
        import pinocchio

        self.pin, self.source = pinocchio, model
        self.model = pinocchio.Model()
        self.model.gravity.linear = np.array(model.gravity)
        self.sign = np.ones(model.nv)
        self.free = self._is_free(model)
        last: dict[int, tuple[int, Any]] = {-1: (0, pinocchio.SE3.Identity())}  # link: joint, joint frame in link frame
        for link in range(model.n_links):
            last[link] = self._add_link(link, last[int(model.link_parent[link])])
        self.model.armature = np.array(model.dof_armature)
        self.data = self.model.createData()

    @staticmethod
    def _is_free(model: Model) -> bool:
        """Whether the tree begins with a free joint; refuses what has no counterpart here."""
        kinds = model.primitive_kind.tolist()
        free = kinds[:4] == [Primitive.SLIDE] * 3 + [Primitive.BALL]
        rest = kinds[4:] if free else kinds
        if any(kind != Primitive.TURN for kind in rest) or np.count_nonzero(model.link_parent < 0) != 1:
            raise SystemExit("the comparison with Pinocchio takes one tree: a free joint or none, then hinges")
        return free

    def _add_link(self, link: int, parent: tuple[int, Any]) -> tuple[int, Any]:
        pin, m = self.pin, self.source
        joint, seen = parent
        rest = pin.SE3(matrices(m.link_quat_wxyz[link : link + 1]).reshape(3, 3), np.array(m.link_position[link]))
        where = seen.inverse() * rest
        at = pin.SE3.Identity()
        for k in range(m.link_primitive_start[link], m.link_primitive_start[link + 1]):
            if self.free and k < 4:
                if k == 0:
                    joint = self.model.addJoint(joint, pin.JointModelFreeFlyer(), where, "root")
                continue
            kind = self._revolute(k)
            anchor = pin.SE3(np.eye(3), np.array(m.primitive_anchor[k]))
            joint = self.model.addJoint(joint, kind, where * anchor, f"joint{k}")
            at, where = anchor, anchor.inverse()
        xx, yy, zz, xy, xz, yz = m.link_inertia[link]
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia = pin.Inertia(float(m.link_mass[link]), np.array(m.link_com[link]), moments)
        self.model.appendBodyToJoint(joint, inertia, at.inverse())
        return joint, at

    def _revolute(self, k: int) -> Any:
        axis = self.source.primitive_axis[k]
        for number, name in enumerate("XYZ"):
            if abs(axis[number]) == 1.0:
                self.sign[self.source.primitive_v_start[k]] = axis[number]
                return getattr(self.pin, f"JointModelR{name}")()
        return self.pin.JointModelRevoluteUnaligned(np.array(axis))

    def convert(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A state in Pinocchio's coordinates; springs and dampers, which its `aba` leaves out, join the forces."""
        m = self.source
        turns = slice(7, None) if self.free else slice(None)
        hinge = slice(6, None) if self.free else slice(None)
        tau = tau - m.dof_damping * v
        tau[hinge] += m.dof_stiffness[hinge] * (m.q_spring[turns] - q[turns])
        angles = self.sign[hinge] * (q[turns] - m.q_zero[turns])
        if not self.free:
            return angles, self.sign * v, self.sign * tau
        R = matrices(q[None, 3:7]).reshape(3, 3)
        q_pin = np.concatenate([q[:3], q[4:7], q[3:4], angles])
        v_pin = np.concatenate([R.T @ v[:3], v[3:6], self.sign[6:] * v[6:]])
        tau_pin = np.concatenate([R.T @ tau[:3], tau[3:6], self.sign[6:] * tau[6:]])
        return q_pin, v_pin, tau_pin

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """(nv,) of one state, in Poise's coordinates."""
        given = self.convert(q, v, tau)
        a = self.sign * self.pin.aba(self.model, self.data, *given)
        if self.free:
            R = matrices(q[None, 3:7]).reshape(3, 3)
            a[:3] = R @ (a[:3] + np.cross(v[3:6], R.T @ v[:3]))
        return a

    def batch(self, states: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Any:
        """A function that answers a batch of converted states in one call, in one thread: a loop in C++."""
        pool = self.pin.ModelPool(self.model, 1)
        columns = [np.asfortranarray(np.stack(column, axis=1)) for column in zip(*states, strict=True)]
        out = np.zeros((self.model.nv, len(states)), order="F")

        def call() -> np.ndarray:
            self.pin.abaInParallel(1, pool, *columns, out)
            return out

        return call
