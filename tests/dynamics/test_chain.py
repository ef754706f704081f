"""KOK §3: joints of many degrees of freedom as chains of single ones, with massless links between, move the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from poise import dynamics
from poise.io.mjcf import load_mjcf
from poise.model.errors import SceneError
from poise.model.joints import JOINTS
from poise.model.scene import Scene
from poise.model.single_dof_chains import from_chain, single_dof_chain, to_chain, velocity_map, velocity_map_rate
from poise.model.state import State
from strategies import balls, one_joint_scene, random_q, random_v, scenes

MOVING = tuple(kind for kind in JOINTS if kind != "fixed")


def without_ball_forces(scene: Scene) -> Scene:
    for body in scene.bodies:
        for joint in body.joints:
            if JOINTS[joint.kind].has_quaternion:
                joint.damping = joint.armature = joint.stiffness = 0.0
    return scene


def is_far_from_lock(q_chain: np.ndarray, model, chain) -> bool:
    """Whether the middle angle of every ball keeps away from ±π/2."""
    T = velocity_map(model, chain, q_chain)
    return bool(np.linalg.cond(T) < 10.0)


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(scene=scenes(max_bodies=4, kinematic=False, massless=False), seed=st.integers(0, 2**32 - 1))
def test_same_accelerations(scene: Scene, seed: int) -> None:
    """a = T a_chain + Ṫ v_chain, with τ_chain = Tᵀ τ; the condition of M and of T (below 10) times 1e-13 is lost."""
    scene, rng = without_ball_forces(scene), np.random.default_rng(seed)
    try:
        model, chain = scene.compile(), single_dof_chain(scene).compile()
    except SceneError:  # without their armatures, two balls on one body leave nothing to tell them apart
        reject()
    q, v, tau = random_q(model, rng), random_v(model, rng), random_v(model, rng)
    q_chain, v_chain = to_chain(model, chain, q, v)
    assume(is_far_from_lock(q_chain, model, chain))
    assume(np.linalg.cond(dynamics.mass_matrix(model, q)) < 1e5)
    T, rate = velocity_map(model, chain, q_chain), velocity_map_rate(model, chain, q_chain, v_chain)
    a = dynamics.forward_dynamics(model, q, v, tau)
    a_chain = dynamics.forward_dynamics(chain, q_chain, v_chain, T.T @ tau)
    want = T @ a_chain + rate @ v_chain
    assert np.abs(a - want).max() <= 1e-8 * (1.0 + np.abs(a).max())
    M, M_chain = dynamics.mass_matrix(model, q), dynamics.mass_matrix(chain, q_chain)
    np.testing.assert_allclose(T.T @ M @ T, M_chain, atol=1e-11 * np.abs(M_chain).max())
    poses, others = dynamics.bodies(model, q, v), dynamics.bodies(chain, q_chain, v_chain)
    at = [chain.body_index(name) for name in model.body_names]
    np.testing.assert_allclose(others.position[at], poses.position, atol=1e-11)
    np.testing.assert_allclose(others.rotation[at], poses.rotation, atol=1e-12)
    np.testing.assert_allclose(others.twist[at], poses.twist, atol=1e-10)


def motion_far_from_lock(model, chain, v: np.ndarray) -> tuple[float, float]:
    """How long motion from rest coordinates keeps the balls of the chain away from lock, and the chain's fastest rate.

    One second at most.
    """
    free, fastest = dynamics.simulate(model, 1.0, v=v, dt=0.005), 0.0
    for k, (q, rate) in enumerate(zip(free.q, free.v, strict=True)):
        q_chain, v_chain = to_chain(model, chain, q, rate)
        if not is_far_from_lock(q_chain, model, chain):
            return 0.005 * (k - 1), fastest
        fastest = max(fastest, float(np.abs(v_chain).max()))
    return 1.0, fastest


@pytest.mark.parametrize("kind", MOVING)
def test_same_motion_for_a_second(kind: str) -> None:
    """Both with RK4, for as long as no ball of the chain locks, and with steps in which nothing turns by 0.2 rad.

    The errors are (rate · h)⁴ or less on either side, and halving the step brings them sixteen times closer.
    """
    scene = one_joint_scene(kind, seed=1)
    model, chain = scene.compile(), single_dof_chain(scene).compile()
    v = 0.3 * random_v(model, np.random.default_rng(2))
    q_chain, v_chain = to_chain(model, chain, model.q_rest, v)
    duration, rate = motion_far_from_lock(model, chain, v)
    assert duration > 0.1
    steps = int(np.ceil(duration * max(100.0, rate / 0.2)))
    apart = []
    for dt in (duration / steps, duration / (2 * steps)):
        ours = dynamics.simulate(model, duration, v=v, dt=dt)
        theirs = dynamics.simulate(chain, duration, q=q_chain, v=v_chain, dt=dt)
        q, _ = from_chain(model, chain, theirs.q[-1], theirs.v[-1])
        apart.append(np.abs(dynamics.difference(model, ours.q[-1], q)).max())
    if balls(model):
        assert apart[0] < (rate * duration / steps) ** 4
        assert apart[1] < apart[0] / 8 + 1e-12
    else:  # the same numbers in another order: only rounding differs
        assert max(apart) < 1e-11


WALKER = """
<mujoco><worldbody><body name="pelvis" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.15 0.1"/>
  <body name="leg" pos="0 0.1 -0.1"><joint type="ball"/><geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
    <body name="shin" pos="0 0 -0.4"><joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04"/></body></body>
  <body name="arm" pos="0 0 0.3"><joint type="ball"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04"/></body>
</body></worldbody></mujoco>
"""


def test_figure_tumbles_the_same() -> None:
    scene = load_mjcf(WALKER)
    model, chain = scene.compile(), single_dof_chain(scene).compile()
    v = 0.4 * random_v(model, np.random.default_rng(5))
    start = State(model.q_rest.copy(), v, 0.0)
    sim = dynamics.Simulation(model, start, dt=1e-3, method="rk4")
    twin = dynamics.Simulation(chain, State(*to_chain(model, chain, model.q_rest, v), 0.0), dt=1e-3, method="rk4")
    sim.step(1000)
    twin.step(1000)
    q, speed = from_chain(model, chain, twin.q, twin.v)
    # h⁴ = 1e-12, times fifth derivatives that speeds and accelerations of some 10 in these units make
    assert np.abs(dynamics.difference(model, sim.q, q)).max() < 1e-8
    assert np.abs(speed - sim.v).max() < 1e-7
