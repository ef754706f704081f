"""PyBullet's humanoid as a ragdoll on a plane. PyBullet has wheels up to Python 3.11: `pip install ".[bullet]"`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

BASE = -1
"""PyBullet's number of the first link."""


def is_there() -> bool:
    """Whether PyBullet is installed."""
    return find_spec("pybullet") is not None


@contextmanager
def hushed() -> Iterator[None]:
    """Keep a library's own prints off the table."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(fd, os.dup(fd)) for fd in (1, 2)]
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            for fd, _ in kept:
                os.dup2(nowhere.fileno(), fd)
        yield
    finally:
        for fd, saved in kept:
            os.dup2(saved, fd)
            os.close(saved)


class Bullet:
    """The humanoid in the air, limp: joints have no motors. All settings are PyBullet's own, 1/240 s among them."""

    def __init__(self, height: float, speed: Any, spin: Any, collide: bool = False, maximal: bool = False) -> None:
        """`height` of its middle; `collide`: its links with each other; `maximal`: links as bodies of their own."""
        with hushed():
            import pybullet
            import pybullet_data

            self.api, self._client = pybullet, pybullet.connect(pybullet.DIRECT)
            self._at: dict[str, int] = {"physicsClientId": self._client}
            pybullet.setAdditionalSearchPath(pybullet_data.getDataPath(), **self._at)
            pybullet.setGravity(0.0, 0.0, -9.81, **self._at)
            self.plane = pybullet.loadURDF("plane_implicit.urdf", **self._at)
            upright = pybullet.getQuaternionFromEuler([0.5 * np.pi, 0.0, 0.0])
            itself = pybullet.URDF_USE_SELF_COLLISION | pybullet.URDF_USE_SELF_COLLISION_EXCLUDE_PARENT
            flags = itself if collide else 0
            given: dict[str, Any] = {"globalScaling": 0.25, "flags": flags, "useMaximalCoordinates": maximal}
            self.doll = pybullet.loadURDF("humanoid/humanoid.urdf", [0.0, 0.0, height], upright, **given, **self._at)
        pybullet.resetBaseVelocity(self.doll, list(speed), list(spin), **self._at)
        for joint in range(self.joints):
            self._let_go(joint)

    @property
    def joints(self) -> int:
        """Joints that PyBullet reports: none in maximal coordinates."""
        return int(self.api.getNumJoints(self.doll, **self._at))

    @property
    def links(self) -> int:
        """That weigh something: the base is less than a gram."""
        masses = [self.api.getDynamicsInfo(self.doll, k, **self._at)[0] for k in range(BASE, self.joints)]
        return sum(mass > 1e-3 for mass in masses)

    def _let_go(self, joint: int) -> None:
        """Switch off the motors that hold joints by default."""
        api, kind = self.api, self.api.getJointInfo(self.doll, joint, **self._at)[2]
        if kind == api.JOINT_REVOLUTE:
            api.setJointMotorControl2(self.doll, joint, api.VELOCITY_CONTROL, force=0.0, **self._at)
        elif kind == api.JOINT_SPHERICAL:
            gains = {"positionGain": 0.0, "velocityGain": 0.0, "force": [0.0, 0.0, 0.0]}
            goal = {"targetPosition": [0.0, 0.0, 0.0, 1.0]}
            api.setJointMotorControlMultiDof(self.doll, joint, api.POSITION_CONTROL, **goal, **gains, **self._at)

    def keep(self) -> int:
        """Remember the state, contacts among it."""
        return int(self.api.saveState(**self._at))

    def restore(self, kept: int) -> None:
        """Go back."""
        self.api.restoreState(stateId=kept, **self._at)

    def run(self, n: int) -> None:
        """N steps, each called from Python."""
        step, client = self.api.stepSimulation, self._client
        for _ in range(n):
            step(client)

    def look(self, n: int) -> dict[str, float]:
        """The same steps: mean contacts and sweeps; the greatest depth (m), and change of speed in the last sweep."""
        self.api.setPhysicsEngineParameter(reportSolverAnalytics=1, **self._at)
        told = []
        for _ in range(n):
            islands = self.api.stepSimulation(**self._at) or ()
            points = self.api.getContactPoints(**self._at)
            depth = max((-point[8] for point in points), default=0.0)
            sweeps = max((island["numIterationsUsed"] for island in islands), default=0)
            left = max((island["remainingResidual"] for island in islands), default=0.0)
            told.append((len(points), sweeps, depth, np.sqrt(left)))
        self.api.setPhysicsEngineParameter(reportSolverAnalytics=0, **self._at)
        found = np.array(told, float)
        names = ("contacts", "sweeps", "depth", "residual")
        values = (*found[:, :2].mean(axis=0), *found[:, 2:].max(axis=0))
        return dict(zip(names, map(float, values), strict=True))

    def breadth(self) -> float:
        """The largest distance between its contacts; m."""
        places = np.array([point[6] for point in self.api.getContactPoints(**self._at)] or np.zeros((1, 3)))
        return float(np.linalg.norm(np.ptp(places, axis=0)))
