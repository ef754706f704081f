"""What goes wrong must say so: bad arrays, unknown names, motions that leave the numbers, models at the edge."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from poise import dynamics
from poise.dynamics import Diverged, Drive, Simulation
from poise.model.errors import SceneError
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.model.state import State
from strategies import one_joint_scene, random_q, random_v

LUMP = Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.25))


@pytest.fixture
def model() -> Model:
    bodies = [
        Body("pelvis", joints=[Joint("free")], inertia=LUMP),
        Body("hand_left", "pelvis", (0.0, 0.5, 0.0), joints=[Joint("hinge", "wrist")], inertia=LUMP),
        Body("post", position=(3.0, 0.0, 0.0), inertia=LUMP),
    ]
    return Scene(bodies=bodies).compile()


def with_q(model: Model, start: int, *numbers: float) -> np.ndarray:
    q = model.q_rest.copy()
    q[start : start + len(numbers)] = numbers
    return q


BAD_Q: dict[str, tuple[Callable[[Model], Any], str]] = {
    "missing": (lambda m: None, "q is missing"),
    "short": (lambda m: m.q_rest[:3], r"q has shape \(3,\); the model needs \(8,\) for one world or \(n, 8\)"),
    "scalar": (lambda m: 1.0, r"q has shape \(\)"),
    "three axes": (lambda m: np.zeros((2, 2, 8)), r"q has shape \(2, 2, 8\)"),
    "no worlds": (lambda m: np.zeros((0, 8)), "batch of no worlds"),
    "nan": (lambda m: with_q(m, 7, np.nan), r"q\[7\] is nan; every number must be finite"),
    "nan in a batch": (lambda m: [m.q_rest, with_q(m, 7, np.nan)], r"q\[1, 7\] is nan"),
    "inf": (lambda m: with_q(m, 0, -np.inf), r"q\[0\] is -inf"),
    "zero quaternion": (lambda m: with_q(m, 3, 0, 0, 0, 0), r"q\[3:7\] is a quaternion of length 0; the identity is"),
    "text": (lambda m: "hello", "q must be real numbers, not str"),
    "ragged": (lambda m: [[1.0], [1.0, 2.0]], "q must be real numbers, not a list of rows that differ"),
    "complex": (lambda m: m.q_rest + 1j, "q must be real numbers, not complex"),
    "objects": (lambda m: [object()] * 8, "q must be real numbers"),
}
CALLS: dict[str, Callable[[Model, Any], Any]] = {
    "forward_dynamics": lambda m, q: dynamics.forward_dynamics(m, q, np.zeros(m.nv)),
    "inverse_dynamics": lambda m, q: dynamics.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv)),
    "bias_forces": lambda m, q: dynamics.bias_forces(m, q, np.zeros(m.nv)),
    "gravity_forces": dynamics.gravity_forces,
    "mass_matrix": dynamics.mass_matrix,
    "bodies": dynamics.bodies,
    "jacobian": lambda m, q: dynamics.jacobian(m, q, "hand_left"),
    "energy": lambda m, q: dynamics.energy(m, q, np.zeros(m.nv)),
    "momentum": lambda m, q: dynamics.momentum(m, q, np.zeros(m.nv)),
    "displaced": lambda m, q: dynamics.displaced(m, q, np.zeros(m.nv)),
}


@pytest.mark.parametrize("bad", BAD_Q)
@pytest.mark.parametrize("name", CALLS)
def test_bad_coordinates(model: Model, name: str, bad: str) -> None:
    make, message = BAD_Q[bad]
    CALLS[name](model, with_q(model, 7, 0.7))  # so that something is left over to be mistaken for q
    with pytest.raises(ValueError, match=message):
        CALLS[name](model, make(model))


@pytest.mark.parametrize("name", ["force_delta", "torque_delta", "response"])
@pytest.mark.parametrize("bad", BAD_Q)
def test_bad_coordinates_of_responses(model: Model, name: str, bad: str) -> None:
    calls = {
        "force_delta": lambda q: dynamics.force_delta(model, q, "hand_left", (1, 0, 0)),
        "torque_delta": lambda q: dynamics.torque_delta(model, q, "wrist"),
        "response": lambda q: dynamics.response(model, q, np.eye(7)),
    }
    with pytest.raises(ValueError, match=BAD_Q[bad][1]):
        calls[name](BAD_Q[bad][0](model))
    with pytest.raises(ValueError, match="responses are of one pose"):
        calls[name](np.tile(model.q_rest, (2, 1)))


def test_bad_inputs(model: Model) -> None:
    q, v = model.q_rest, np.zeros(7)
    for field, value, message in (
        ("v", np.zeros(6), r"v has shape \(6,\); the model needs \(7,\)"),
        ("v", [np.nan] * 7, r"v\[0\] is nan"),
        ("tau", np.full(7, np.inf), r"tau\[0\] is inf"),
        ("forces", np.zeros((2, 6)), r"forces has shape \(2, 6\); the model needs \(18,\)"),
        ("prescribed", np.zeros(8), r"prescribed has shape \(8,\)"),
        ("dt", -0.1, r"dt is -0.1; it must be a finite time in seconds"),
        ("dt", np.nan, "dt is nan"),
        ("dt", "soon", "dt must be a number of seconds, not 'soon'"),
        ("dtype", int, "dtype is int64; kernels run in float64 or float32"),
        ("dtype", np.float16, "dtype is float16"),
        ("drive", Drive(np.ones(3), 1.0, q), r"gain_p has shape \(3,\)"),
        ("drive", Drive(1.0, 1.0, None), "goal_q is missing"),
        ("drive", Drive(1.0, 1.0, np.zeros(8)), r"goal_q\[3:7\] is a quaternion of length 0"),
    ):
        given = {"q": q, "v": v} | {field: value}
        with pytest.raises(ValueError, match=message):
            dynamics.forward_dynamics(model, **given)
    with pytest.raises(ValueError, match="'q': 2, 'v': 3"):
        dynamics.forward_dynamics(model, np.tile(q, (2, 1)), np.zeros((3, 7)))
    with pytest.raises(ValueError, match="a is missing"):
        dynamics.inverse_dynamics(model, q, v, None)
    with pytest.raises(ValueError, match="float32 ends at"):
        dynamics.bodies(model, with_q(model, 0, 1e39), dtype=np.float32)
    for wrong in (None, Scene()):
        with pytest.raises(TypeError, match=r"must be a compiled model, not .*; scene.compile\(\) makes one"):
            dynamics.forward_dynamics(wrong, q, v)


def test_names_and_numbers(model: Model) -> None:
    q = model.q_rest
    with pytest.raises(SceneError, match='there is no body "hand_lft", did you mean "hand_left"'):
        dynamics.jacobian(model, q, "hand_lft")
    with pytest.raises(SceneError, match='"wirst", did you mean "wrist"'):
        dynamics.torque_delta(model, q, "wirst")
    for wrong, message in (
        (3, "body 3: the model has bodies 0 to 2"),
        (-1, "body -1"),
        (1.5, "not 1.5"),
        (None, "None"),
    ):
        with pytest.raises(ValueError, match=message):
            dynamics.jacobian(model, q, wrong)
        with pytest.raises(ValueError, match=message):
            dynamics.force_delta(model, q, wrong, (1, 0, 0))
    for wrong, message in ((7, "dof 7: the model has degrees of freedom 0 to 6"), (-1, "dof -1"), (0.5, "not 0.5")):
        with pytest.raises(ValueError, match=message):
            dynamics.torque_delta(model, q, wrong)
    for wrong in ((1, 2), (1, 2, np.nan), 3.0, "x"):
        with pytest.raises(ValueError, match="point must be"):
            dynamics.jacobian(model, q, 0, wrong)
        with pytest.raises(ValueError, match="force must be"):
            dynamics.force_delta(model, q, 0, wrong)
        with pytest.raises(ValueError, match="torque must be"):
            dynamics.force_delta(model, q, 0, (0, 0, 1), wrong)
    for wrong in (np.nan, np.inf, "1", [1.0, 2.0]):
        with pytest.raises(ValueError, match="must be one finite number"):
            dynamics.torque_delta(model, q, 0, wrong)
    for given, message in (
        ({}, "give tau, forces, or both"),
        ({"tau": np.zeros((0, 7))}, "no rows"),
        ({"tau": np.zeros((2, 7)), "forces": np.zeros((3, 3, 6))}, "give as many of both"),
    ):
        with pytest.raises(ValueError, match=message):
            dynamics.response(model, q, **given)


def test_body_that_never_moves(model: Model) -> None:
    """Jacobians and deltas of a fixed body are nought, in the shape and precision asked for."""
    q = model.q_rest
    assert not dynamics.force_delta(model, q, "post", (1, 2, 3)).any()
    J = dynamics.jacobian(model, np.tile(q, (3, 1)), "post", dtype=np.float32)
    assert J.J.shape == J.rate.shape == (3, 6, 7)
    assert J.J.dtype == np.float32
    assert not J.J.any()
    push = np.zeros((3, 6))
    push[2] = 1e6
    free = dynamics.forward_dynamics(model, q, np.zeros(7))
    np.testing.assert_array_equal(dynamics.forward_dynamics(model, q, np.zeros(7), forces=push), free)


def test_length_of_a_quaternion_does_not_matter(model: Model) -> None:
    rng = np.random.default_rng(0)
    q, v = random_q(model, rng), random_v(model, rng)
    want = dynamics.forward_dynamics(model, q, v), dynamics.bodies(model, q).rotation
    for length in (1e-200, 1e-20, 3.0, 1e150, 1e300):
        scaled = q.copy()
        scaled[3:7] *= length
        np.testing.assert_allclose(dynamics.forward_dynamics(model, scaled, v), want[0], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(dynamics.bodies(model, scaled).rotation, want[1], atol=1e-14)
        np.testing.assert_allclose(dynamics.difference(model, q, scaled), np.zeros(7), atol=1e-7)
    for length in (1e-30, 1e30):
        scaled = q.copy()
        scaled[3:7] *= length
        np.testing.assert_allclose(dynamics.bodies(model, scaled, dtype=np.float32).rotation, want[1], atol=1e-6)


def test_bad_simulations(model: Model) -> None:
    for dt, message in (
        (0, "dt is 0"),
        (-0.01, "dt is -0.01"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        ("x", "seconds, not 'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            Simulation(model, dt=dt)
    for method in ("rk5", "RK4", None, ["rk4"]):
        with pytest.raises(ValueError, match="there are semi_implicit, rk4"):
            Simulation(model, method=method)
    with pytest.raises(TypeError, match="compiled model"):
        Simulation(Scene())
    with pytest.raises(ValueError, match=r"q has shape \(2, 8\); one world needs \(8,\)"):
        dynamics.simulate(model, 1.0, q=np.tile(model.q_rest, (2, 1)))
    with pytest.raises(ValueError, match=r"v\[6\] is nan"):
        dynamics.simulate(model, 1.0, v=[0] * 6 + [np.nan])
    sim = Simulation(model, dt=0.01)
    for n in (-1, 1.5, "x", None):
        with pytest.raises(ValueError, match="whole number of steps"):
            sim.step(n)
    for duration, message in ((0, "nothing to do"), (-1, "-1"), (np.nan, "nan"), (np.inf, "inf"), ("x", "'x'")):
        with pytest.raises(ValueError, match=message):
            sim.run(duration)
    for every in (0, -1, 1.5):
        with pytest.raises(ValueError, match="nothing to do"):
            sim.run(0.1, every=every)
    with pytest.raises(ValueError, match="goal_q is missing"):
        sim.drive = Drive(1.0, 1.0, None)
    with pytest.raises(ValueError, match=r"q\[3:7\] is a quaternion of length 0"):
        sim.state = State(with_q(model, 3, 0, 0, 0, 0), np.zeros(7), 0.0)
    sim.step(0)
    assert sim.time == 0.0
    np.testing.assert_array_equal(sim.q, model.q_rest)
    np.testing.assert_array_equal(sim.v, np.zeros(7))


def test_failed_state_leaves_the_old_one(model: Model) -> None:
    sim = Simulation(model, dt=0.01)
    sim.step(3)
    kept = sim.state
    with pytest.raises(ValueError, match="nan"):
        sim.state = State(with_q(model, 7, 0.5), np.full(7, np.nan), 5.0)
    np.testing.assert_array_equal(sim.q, kept.q)
    np.testing.assert_array_equal(sim.v, kept.v)
    assert sim.time == kept.time


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_divergence_keeps_the_last_good_state(model: Model, method: str) -> None:
    """A push that grows with the speed: it doubles every step until it overflows; the step before that stays."""

    def push(sim: Simulation) -> None:
        sim.tau[...] = 50.0 * sim.v

    sim, twin = (Simulation(model, dt=0.01, method=method) for _ in range(2))
    sim.v[...] = twin.v[...] = 1.0
    with pytest.raises(Diverged, match=r"diverged at t = .* is no longer finite; try a smaller dt") as caught:
        sim.run(100.0, before_step=push)
    assert np.isfinite(sim.q).all()
    assert np.isfinite(sim.v).all()
    assert caught.value.body in ("pelvis", "hand_left")
    assert caught.value.time == sim.time
    steps = round(sim.time / 0.01)
    assert 1 < steps < 10_000
    twin.run(steps * 0.01, before_step=push)
    np.testing.assert_array_equal(sim.q, twin.q)
    np.testing.assert_array_equal(sim.v, twin.v)
    with pytest.raises(Diverged):
        sim.step()
    assert np.isfinite(sim.v).all()


def test_divergence_names_the_body(model: Model) -> None:
    sim = Simulation(model, dt=0.01)
    sim.tau[6] = np.inf
    with pytest.raises(Diverged, match=r"of body '(hand_left|pelvis)'"):
        sim.step()
    np.testing.assert_array_equal(sim.q, model.q_rest)
    sim.tau[6] = 0.0
    sim.step()
    assert np.isfinite(sim.v).all()


@pytest.mark.parametrize("bodies", [[], [Body("rock", inertia=LUMP)]], ids=["nothing", "rock"])
def test_models_that_do_not_move(bodies: list[Body]) -> None:
    """No links, no coordinates: everything is empty or nought, nothing is NaN."""
    m = Scene(bodies=bodies).compile()
    assert (m.n_links, m.nq, m.nv) == (0, 0, 0)
    none, batch = np.zeros(0), np.zeros((3, 0))
    assert dynamics.forward_dynamics(m, none, none).shape == (0,)
    assert dynamics.forward_dynamics(m, batch, batch).shape == (3, 0)
    assert dynamics.inverse_dynamics(m, none, none, none).shape == (0,)
    assert dynamics.mass_matrix(m, none).shape == (0, 0)
    assert dynamics.response(m, none, np.zeros((2, 0))).shape == (2, 0)
    assert dynamics.bodies(m, none).position.shape == (len(bodies), 3)
    assert dynamics.bodies(m, batch, dtype=np.float32).twist.shape == (3, len(bodies), 6)
    assert dynamics.energy(m, none, none).total == 0.0
    momentum = dynamics.momentum(m, none, none)
    for part in momentum:
        np.testing.assert_array_equal(part, np.zeros_like(part))
    assert dynamics.displaced(m, none, none).shape == dynamics.difference(m, none, none).shape == (0,)
    with pytest.raises(ValueError, match="no degrees of freedom"):
        dynamics.torque_delta(m, none, 0)
    for method in ("rk4", "semi_implicit"):
        path = dynamics.simulate(m, 0.1, dt=0.01, method=method)
        assert path.q.shape == (11, 0)


def test_one_degree_of_freedom() -> None:
    m = Scene(bodies=[Body("door", joints=[Joint("hinge", axis=(0, 1, 0))], inertia=LUMP)]).compile()
    inertia = 0.2 + 1.0 * 0.1**2
    np.testing.assert_allclose(dynamics.mass_matrix(m, [0.3]), [[inertia]])
    np.testing.assert_allclose(dynamics.forward_dynamics(m, [[0.0]], [[0.0]]), [[9.81 * 0.1 / inertia]])


def long_chain(n: int) -> Model:
    bodies = []
    for k in range(n):
        axis = (0.0, 1.0, 0.0) if k % 2 else (1.0, 0.0, 0.0)
        inertia = Inertia(0.1, (0.0, 0.0, -0.05), (1e-3, 1e-3, 1e-3))
        joint = Joint("hinge", axis=axis, armature=0.01)
        above = f"b{k - 1}" if k else None
        bodies.append(Body(f"b{k}", above, (0.0, 0.0, -0.1 if k else 0.0), joints=[joint], inertia=inertia))
    return Scene(bodies=bodies).compile()


def test_chain_of_a_thousand_links() -> None:
    """Deep trees: forward and inverse dynamics still undo each other, forces travel the whole way, RK4 runs."""
    m, rng = long_chain(1000), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 1000)) * np.array([[0.05], [0.1], [0.1]])
    a = dynamics.forward_dynamics(m, q, v, tau)
    back = dynamics.inverse_dynamics(m, q, v, a)
    # the mass at the root is that of a 100 m chain of 100 kg, some 3e5 kg m²: rounding is in units of that
    assert np.abs(back - tau).max() < 1e-9 * 3e5 * np.abs(a).max()
    delta = dynamics.force_delta(m, q, "b999", (1.0, 0.0, 0.0))
    push = np.zeros((1, 1000, 6))
    push[0, 999, 3] = 1.0
    np.testing.assert_allclose(delta, dynamics.response(m, q, forces=push)[0], rtol=1e-9, atol=1e-12)
    J = dynamics.jacobian(m, q, "b999", v=v)
    np.testing.assert_allclose(J.J @ v, dynamics.bodies(m, q, v).twist[-1], atol=1e-9)
    before = dynamics.energy(m, q, v).total
    sim = Simulation(m, State(q.copy(), v.copy(), 0.0), dt=1e-4, method="rk4")
    sim.step(20)
    after = dynamics.energy(m, sim.q, sim.v)
    assert abs(after.total - before) < 1e-6 * (abs(before) + after.kinetic)


def test_threads_share_a_model() -> None:
    """Each thread works in its own memory: the answers are those of one thread, to the bit."""
    m = one_joint_scene("ball", seed=9).compile()
    rng = np.random.default_rng(0)
    n_threads, count = 4, 200
    states = [(random_q(m, rng, count), random_v(m, rng, count)) for _ in range(n_threads)]
    want = [dynamics.forward_dynamics(m, q, v) for q, v in states]
    fresh = one_joint_scene("ball", seed=9).compile()  # nothing is laid out yet: threads race for it
    got: list[Any] = [None] * n_threads
    gate = threading.Barrier(n_threads)

    def work(k: int) -> None:
        gate.wait()
        q, v = states[k]
        batches = [dynamics.forward_dynamics(fresh, q, v) for _ in range(20)]
        single = [dynamics.forward_dynamics(fresh, *row) for row in zip(q, v, strict=True)]
        got[k] = (batches, single)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(n_threads):
        batches, single = got[k]
        for batch in batches:
            np.testing.assert_array_equal(batch, want[k])
        np.testing.assert_array_equal(np.array(single), want[k])


def test_results_are_copies(model: Model) -> None:
    """What was returned does not change with the next call, and inputs are left alone."""
    rng = np.random.default_rng(1)
    q, v = random_q(model, rng), random_v(model, rng)
    kept_q = q.copy()
    functions = [CALLS[name] for name in ("forward_dynamics", "mass_matrix", "displaced", "bias_forces")]
    first = [function(model, q) for function in functions]
    copies = [np.array(array) for array in first]
    for function in functions:
        function(model, random_q(model, rng))
    dynamics.force_delta(model, q, 0, (1, 2, 3))
    for array, copy in zip(first, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(q, kept_q)
    with_forces = dynamics.forward_dynamics(model, q, v, forces=np.ones((3, 6)), drive=Drive(1.0, 1.0, model.q_rest))
    plain = dynamics.forward_dynamics(model, q, v)
    assert np.abs(with_forces - plain).max() > 0.1
    np.testing.assert_array_equal(dynamics.forward_dynamics(model, q, v), plain)


def test_a_singular_pose_is_said() -> None:
    """Three hinges in gimbal lock: the first and the last turn the same way, and nothing tells them apart."""
    axes = ((0, 0, 1), (1, 0, 0), (0, 0, 1))
    joints = [Joint("hinge", name=f"turn{k}", axis=axis) for k, axis in enumerate(axes)]
    inertia = Inertia(1.0, moments=(1.0, 2.0, 2.5))
    model = Scene(bodies=[Body("gimbal", joints=joints, inertia=inertia)]).compile()
    with pytest.raises(dynamics.Singular, match='"turn0"'):
        dynamics.forward_dynamics(model, [0, 0, 0], [1, 2, 3])
    with pytest.raises(dynamics.Singular, match="of world 1"):
        dynamics.forward_dynamics(model, [[0, 0.5, 0], [0, 0, 0]], [1, 2, 3])
    with pytest.raises(dynamics.Singular, match="singular"):
        dynamics.response(model, [0, 0, 0], [1, 0, 0])
    assert np.isfinite(dynamics.forward_dynamics(model, [0, 0.5, 0], [1, 2, 3])).all()
