"""A ragdoll of separate bodies that random forces throw about: its joints hold.

Gaps are measured from where the bodies are, and from the model: two points that a joint holds together, and the axes
that it keeps parallel or at right angles. Nothing that the step itself has found is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import poise
from joint_limits import beyond_limits
from poise.dynamics.maximal_bodies.body_state import CENTRE, OWN, SPEED, SPIN
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.motion.rotations import quat_exp, quat_to_matrix

DT, PUSH = 1 / 240, 200.0
MEAN, MOST = 1e-4, 1e-3
"""Of gaps; m."""


@dataclass(frozen=True)
class Poses:
    """Of all links in n steps, from the states of their bodies."""

    R: np.ndarray
    """(n, n_links, 3, 3)."""
    centre: np.ndarray
    """(n, n_links, 3) of mass; m."""
    spin: np.ndarray
    """(n, n_links, 3) in world axes; rad/s."""
    speed: np.ndarray
    """(n, n_links, 3) of the centre of mass; m/s."""

    @staticmethod
    def of(own: np.ndarray) -> Poses:
        """(n, 13 n_links) states."""
        rows = own.reshape(len(own), -1, OWN)
        R = quat_to_matrix(rows[..., :CENTRE])
        return Poses(R, rows[..., CENTRE:SPIN], rows[..., SPIN:SPEED], rows[..., SPEED:])


def gaps(model: Model, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """(n, joints) ways between the points that joints hold together (m), and how far axes are from where they belong
    (rad). All joints but those of roots turn about one point.
    """
    origin = poses.centre - np.einsum("nkij,kj->nki", poses.R, model.link_com)
    ways, turns = [], []
    for i in np.flatnonzero(model.link_parent >= 0).tolist():
        parent, parts = model.link_parent[i], slice(model.link_primitive_start[i], model.link_primitive_start[i + 1])
        anchor, axes, kinds = model.primitive_anchor[parts][0], model.primitive_axis[parts], model.primitive_kind[parts]
        assert (model.primitive_anchor[parts] == anchor).all()
        start = poses.R[:, parent] @ quat_to_matrix(model.link_quat_wxyz[i])
        held = origin[:, parent] + poses.R[:, parent] @ model.link_position[i] + start @ anchor
        ways.append(np.linalg.norm(origin[:, i] + poses.R[:, i] @ anchor - held, axis=1))
        if kinds.tolist() == [Primitive.BALL]:
            continue
        assert set(kinds.tolist()) == {Primitive.TURN}
        outer, inner = start @ axes[0], poses.R[:, i] @ axes[-1]
        if len(kinds) == 1:
            turns.append(np.linalg.norm(outer - inner, axis=1))
        else:
            assert len(kinds) == 2
            turns.append(np.abs(np.einsum("ni,ni->n", outer, inner) - axes[0] @ axes[1]))
    return np.array(ways).T, np.array(turns).T


def energy_of(model: Model, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """(n,) kinetic and whole mechanical energy; J. The ragdoll has no springs."""
    assert not model.dof_stiffness.any()
    own = np.einsum("nkji,nkj->nki", poses.R, poses.spin)
    xx, yy, zz, xy, xz, yz = model.link_inertia.T
    I = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
    kinetic = 0.5 * np.einsum("nki,kij,nkj->n", own, I, own)
    kinetic += 0.5 * np.einsum("k,nki,nki->n", model.link_mass, poses.speed, poses.speed)
    return kinetic, kinetic - np.einsum("k,nki,i->n", model.link_mass, poses.centre, model.gravity)


@dataclass(frozen=True)
class Thrown:
    """How a ragdoll fared."""

    model: Model
    q: np.ndarray
    poses: Poses
    """After every step."""
    pushed: int
    """Steps in which forces acted."""


def throw(seed: int, seconds: float, calm: float, **options: object) -> Thrown:
    """Push a ragdoll on the floor for some seconds, each 0.1 to 0.5 s another body another way; then let it be."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.ragdoll(), name="doll")
    world = scene.build(poise.Maximal(**options), dt=DT)
    rng = np.random.default_rng(seed)
    world.q[2] += 0.3
    world.q[3:7] = quat_exp(rng.normal(size=3))
    pushed, bodies = round(seconds / DT), np.flatnonzero(world.model.body_link >= 0)
    steps = pushed + round(calm / DT)
    q, own = np.empty((steps, world.model.nq)), np.empty((steps, OWN * world.model.n_links))
    until = 0
    for k in range(steps):
        if k == until:
            force = rng.normal(size=3)
            body, force = int(rng.choice(bodies)), force * (PUSH / np.linalg.norm(force))
            until += round(rng.uniform(0.1, 0.5) / DT)
        if k < pushed:
            world.apply_force(body, force)
        world.step()
        q[k], own[k] = world.q, world._stepper.bodies.own[: own.shape[1]]
    return Thrown(world.model, q, Poses.of(own), pushed)


def check(thrown: Thrown) -> str:
    """What must hold; the figures in a line."""
    model, poses = thrown.model, thrown.poses
    assert np.isfinite(thrown.q).all()
    ways, turns = gaps(model, poses)
    assert ways.shape[1] == model.n_links - 1
    assert ways.mean() <= MEAN
    assert ways.max() < MOST
    assert turns.max() < MOST  # of a millimetre a metre away
    beyond = beyond_limits(model, thrown.q)
    assert beyond <= 0.5
    kinetic, energy = energy_of(model, poses)
    alone = energy[thrown.pushed - 1 :]
    rise = max(0.0, float(np.diff(alone).max())) / float(energy[thrown.pushed - 1])
    assert rise <= 0.005
    assert float(np.linalg.norm(poses.spin, axis=2).max()) > 10.0  # it was thrown about indeed
    words = f"gaps {1e3 * ways.mean():.1e} mm on average, {1e3 * ways.max():.1e} mm at most, axes {turns.max():.1e} rad"
    return f"{words}, limits {beyond:.3f}°, rise {rise:.3%}, kinetic energy {kinetic.max():.0f} to {kinetic[-1]:.1e} J"


def test_gaps_are_those_that_were_made() -> None:
    """Bodies moved off their joints by hand: by a millimetre, and by a milliradian about the joint's own point."""
    thrown = throw(0, 2 * DT, 0.0)
    model, R, centre = thrown.model, thrown.poses.R.copy(), thrown.poses.centre.copy()
    assert max(part.max() for part in gaps(model, thrown.poses)) < 1e-8
    shank = int(model.body_link[model.body_names.index("doll/shank_l")])
    centre[1, shank] += (0.0, 0.6e-3, 0.8e-3)
    ways, turns = gaps(model, Poses(R, centre, thrown.poses.spin, thrown.poses.speed))
    assert ways.max() == pytest.approx(1e-3, rel=1e-3)
    assert (ways > 1e-6).sum() == 2  # the knee, and the ankle below it
    assert turns.max() < 1e-8
    centre = thrown.poses.centre.copy()
    knee = centre[1, shank] - R[1, shank] @ model.link_com[shank]
    turn = quat_to_matrix(quat_exp(R[1, shank] @ np.array([1e-3, 0.0, 0.0])))
    R[1, shank] = turn @ R[1, shank]
    centre[1, shank] = knee + turn @ (centre[1, shank] - knee)
    ways, turns = gaps(model, Poses(R, centre, thrown.poses.spin, thrown.poses.speed))
    assert turns.max() == pytest.approx(1e-3, rel=1e-3)
    assert (ways > 1e-6).sum() == 1  # the ankle alone


def test_a_world_goes_on_as_one_that_takes_over_its_state() -> None:
    """What a step leaves behind is used by the next one; a world that has only the state finds the same, bit by bit."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.ragdoll(), name="doll")
    first, second = (scene.build(poise.Maximal(), dt=DT) for _ in range(2))
    first.v[...] = np.random.default_rng(3).normal(size=first.model.nv)
    for _ in range(60):
        first.step(7)
        second.state = first.state
        first.step()
        second.step()
        assert first.q.tobytes() == second.q.tobytes()
        assert first.v.tobytes() == second.v.tobytes()


@pytest.mark.parametrize("seed", range(2))
def test_joints_hold_while_forces_throw_a_ragdoll_about(seed: int) -> None:
    check(throw(seed, 3.0, 2.0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_joints_hold_for_a_minute(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """60 s of forces, and 15 s in which it comes to rest."""
    thrown = throw(seed, 60.0, 15.0)
    told = check(thrown)
    with capsys.disabled():
        print(f"\nseed {seed}: {told}", flush=True)
    kinetic, _ = energy_of(thrown.model, thrown.poses)
    assert kinetic[-1] < 1.0
