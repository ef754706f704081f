"""One source at every width: lanes give the bits of single worlds, know nothing of their neighbours, and float32 is as
good as its digits, near and far from the origin. The same kernels also run as plain Python.
"""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise import dynamics
from poise.dynamics import Drive, aba, crba, integrate, rnea
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.energy_momentum import add_up
from poise.dynamics.integrate import STAGES, runge_kutta, semi_implicit
from poise.dynamics.workspace import Workspace
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F32, F32X16, F64, Width
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.scene import Scene
from strategies import one_joint_scene, random_q, random_v, relative_error, scenes

EASY = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**32 - 1)
MOVING = tuple(kind for kind in JOINTS if kind != "fixed")


def everything(m: Model, rows: dict[str, Any], dtype: Any = np.float64) -> dict[str, np.ndarray]:
    """All that the functions say about some worlds."""
    q, v, tau, forces = rows["q"], rows["v"], rows["tau"], rows["forces"]
    drive = Drive(rows["gain"], rows["gain"], rows["goal"], v)
    poses, totals = dynamics.bodies(m, q, v, dtype=dtype), dynamics.energy(m, q, v, dtype=dtype)
    momentum = dynamics.momentum(m, q, v, dtype=dtype)
    J = dynamics.jacobian(m, q, m.n_bodies - 1, (0.1, 0.2, 0.3), v, dtype=dtype)
    step = {"forces": forces, "drive": drive, "dtype": dtype}
    return {
        "forward": dynamics.forward_dynamics(m, q, v, tau, prescribed=tau, **step),
        "implicit": dynamics.forward_dynamics(m, q, v, tau, dt=0.02, **step),
        "inverse": dynamics.inverse_dynamics(m, q, v, tau, **step),
        "bias": dynamics.bias_forces(m, q, v, dtype=dtype),
        "passive": dynamics.passive_forces(m, q, v, drive=drive, dtype=dtype),
        "mass": dynamics.mass_matrix(m, q, dtype=dtype),
        "position": poses.position,
        "rotation": poses.rotation,
        "twist": poses.twist,
        "J": J.J,
        "J_rate": J.rate,
        "energies": np.stack(totals, axis=-1),
        "linear": momentum.linear,
        "angular": momentum.angular,
        "com": momentum.com,
        "displaced": dynamics.displaced(m, q, v, 0.1, dtype=dtype),
    }


def inputs(m: Model, rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {
        "q": random_q(m, rng, count),
        "v": random_v(m, rng, count),
        "tau": random_v(m, rng, count),
        "forces": rng.normal(size=(count, m.n_bodies, 6)),
        "gain": np.abs(random_v(m, rng, count)),
        "goal": random_q(m, rng, count),
    }


def row(rows: dict[str, np.ndarray], k: Any) -> dict[str, np.ndarray]:
    return {name: array[k] for name, array in rows.items()}


@EASY
@given(scene=scenes(), seed=SEEDS)
def test_lanes_have_the_bits_of_single_worlds(scene: Scene, seed: int) -> None:
    m = scene.compile()
    rows = inputs(m, np.random.default_rng(seed), 11)
    lanes = everything(m, rows)
    for k in (0, 7, 8, 10):
        for name, value in everything(m, row(rows, k)).items():
            np.testing.assert_array_equal(lanes[name][k], value, err_msg=name)


@EASY
@given(scene=scenes(), seed=SEEDS, dtype=st.sampled_from([np.float64, np.float32]))
def test_worlds_do_not_know_their_neighbours(scene: Scene, seed: int, dtype: Any) -> None:
    """The same world among other worlds, in another lane, in a full or a last, half-filled group: the same bits."""
    m, rng = scene.compile(), np.random.default_rng(seed)
    rows, others = inputs(m, rng, 19), inputs(m, rng, 19)
    order = rng.permutation(19)
    mixed = {name: np.concatenate([rows[name][order], others[name] * 1e3])[: 19 + 3] for name in rows}
    before, after = everything(m, rows, dtype), everything(m, mixed, dtype)
    for name, value in before.items():
        assert value.dtype == dtype, name
        np.testing.assert_array_equal(after[name][:19], value[order], err_msg=name)


@pytest.mark.parametrize("kind", MOVING)
def test_float32_within_its_digits(kind: str) -> None:
    """Errors of 2⁻²⁴ times the condition of M (scaled to a unit diagonal) and some sixteen for the sums on the way.

    They are parts of what is added up, and not of the sum: forces that cancel leave accelerations that are small, with
    the errors of those of each force alone.
    """
    m = one_joint_scene(kind, seed=3).compile()
    rows = inputs(m, np.random.default_rng(5), 40)
    exact, rough = everything(m, rows), everything(m, rows, np.float32)
    size = np.sqrt(np.diagonal(exact["mass"], axis1=1, axis2=2))
    condition = np.linalg.cond(exact["mass"] / size[:, :, None] / size[:, None, :])
    terms = (np.abs(exact["mass"]) @ np.abs(rows["tau"])[..., None])[..., 0].max(axis=1)
    others = exact["inverse"] - (exact["mass"] @ rows["tau"][..., None])[..., 0]  # drives, forces, weight and velocity
    forces = np.abs(rows["tau"]) + np.abs(others) + np.abs(exact["bias"])
    alone = (np.abs(np.linalg.inv(exact["mass"])) @ forces[..., None])[..., 0].max(axis=1)
    for name, value in rough.items():
        for k in range(40):
            solved, summed = name in ("forward", "implicit"), name in ("inverse", "bias")
            bound = 2.0**-24 * (16 * condition[k] if solved else 64)
            added = alone[k] if solved else terms[k] + 50.0 if summed else 1.0
            scale = np.abs(exact[name][k]).max() + added
            assert bound < 0.05
            assert np.abs(value[k] - exact[name][k]).max() <= bound * scale, name


def far_away(scene: Scene, offset: np.ndarray) -> Scene:
    """The scene with its roots elsewhere (free ones follow through their coordinates)."""
    for body in scene.bodies:
        if body.parent is None:
            body.position = tuple(float(x) for x in np.add(body.position, offset))
    return scene


@pytest.mark.parametrize("kind", MOVING)
def test_float32_far_from_the_origin(kind: str) -> None:
    """At 100 km float32 places things to 8 mm. Accelerations, masses and forces must not feel it: they have the error
    that they have at home, to within the rounding of the coordinates themselves.
    """
    offset = np.array([1e5, -1e5, 3e4])
    home = one_joint_scene(kind, seed=3)
    near = home.compile()
    away = far_away(one_joint_scene(kind, seed=3), offset).compile()
    rng = np.random.default_rng(6)
    q, v, tau = random_q(near, rng, 40), random_v(near, rng, 40), random_v(near, rng, 40)
    shifted = q.copy()
    if kind == "free":
        shifted[:, :3] += offset
    for function in (dynamics.forward_dynamics, dynamics.inverse_dynamics):
        exact = function(near, q, v, tau)
        here = np.abs(function(near, q, v, tau, dtype=np.float32) - exact).max(axis=1)
        there = np.abs(function(away, shifted, v, tau, dtype=np.float32) - exact).max(axis=1)
        floor = 64 * 2.0**-24 * np.abs(exact).max(axis=1)
        assert np.all(there <= 2.0 * here + floor)
    np.testing.assert_allclose(
        dynamics.mass_matrix(away, shifted, dtype=np.float32), dynamics.mass_matrix(near, q), rtol=1e-4, atol=1e-5
    )


def in_plain_python(kernel: Any, known: dict[Any, Any] | None = None) -> Any:
    """A kernel with every kernel that it calls replaced by its plain Python form."""
    known = {} if known is None else known
    if kernel not in known:
        source = kernel.py_func
        scope = dict(source.__globals__)
        known[kernel] = FunctionType(source.__code__, scope, source.__name__, source.__defaults__)
        for name in source.__code__.co_names:
            if hasattr(scope.get(name), "py_func"):
                scope[name] = in_plain_python(scope[name], known)
    return known[kernel]


@EASY
@given(scene=scenes(max_bodies=3), seed=SEEDS)
@np.errstate(divide="ignore", invalid="ignore")
def test_kernels_as_plain_python(scene: Scene, seed: int) -> None:
    """The compiled kernels and their sources, run by the interpreter, agree to rounding: kernels fuse products.

    1/0 is infinite in a kernel, and `select` takes what is beside it; NumPy would warn.
    """
    m, rng = scene.compile(), np.random.default_rng(seed)
    space = Workspace(m, F64)
    space.s.q[...], space.s.v[...], space.x.tau[...] = random_q(m, rng), random_v(m, rng), random_v(m, rng)
    space.x.force[...] = rng.normal(size=space.x.force.shape)
    space.x.set_count("n_forces", 1)
    q, v, tau, forces = (a.copy() for a in (space.s.q, space.s.v, space.x.tau, space.x.force))
    M, S, X, W = (block.plain() for block in (space.m, space.s, space.x, space.w))
    size = 1.0 + np.abs(dynamics.forward_dynamics(m, q, v, tau, forces=forces)).max()

    in_plain_python(aba.articulated_body)(M, S, X, W, 0.01)
    compiled = dynamics.forward_dynamics(m, q, v, tau, forces=forces, dt=0.01)
    np.testing.assert_allclose(space.w.a, compiled, atol=1e-10 * size)

    space.w.a[...], space.x.tau[...] = tau, 0.0
    in_plain_python(rnea.inverse_dynamics)(M, S, X, W, 0.0)
    space.x.tau[...] = tau
    np.testing.assert_allclose(space.w.u, dynamics.inverse_dynamics(m, q, v, tau, forces=forces), atol=1e-10)

    in_plain_python(crba.mass_matrix)(M, S, W, space.mass.plain())
    assert relative_error(space.mass.M.reshape(m.nv, m.nv), dynamics.mass_matrix(m, q)) < 1e-13

    in_plain_python(add_up)(M, S, W, space.totals.plain())
    assert abs(space.totals.spring[0] - dynamics.energy(m, q, v).spring) < 1e-10
    assert relative_error(space.totals.momentum[0, 3:], dynamics.momentum(m, q, v).linear) < 1e-11

    done = in_plain_python(integrate.runge_kutta)(M, S, X, W, space.stages.plain(), 0.001, 2)
    sim = dynamics.Simulation(m, dynamics.Simulation(m).state, dt=0.001, method="rk4")
    sim._space.stages.set_count("n_prescribed", 0)
    sim._paths = ()
    sim.q[...], sim.v[...], sim.tau[...], sim.forces[...] = q, v, tau, forces
    sim.step(2)
    assert done == 2
    np.testing.assert_allclose(space.s.q, sim.q, atol=1e-12 * size)
    np.testing.assert_allclose(space.s.v, sim.v, atol=1e-12 * size)


@kernel
def one_step(m, s, x, w, y, dt, n):
    """A kernel of this file's own: it is compiled anew, so that its instructions can be read."""
    runge_kutta(m, s, x, w, y, dt, n)
    semi_implicit(m, s, x, w, y, dt, n)


ONE_STEP = entry(one_step, MODEL, STATE, INPUT, WORK, STAGES, extra=("float64", "int64"))


def advanced(m: Model, width: Width, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Coordinates and velocities, (nq + nv, worlds), after some steps with drives at work."""
    space = Workspace(m, width)
    for array, name in ((space.s.q, "q"), (space.s.v, "v"), (space.x.tau, "tau"), (space.x.goal_q, "goal")):
        array[...] = rows[name][0] if width.lanes == 1 else rows[name][: width.lanes].T
    space.x.gain_p[...] = space.x.gain_d[...] = 2.0
    space.x.set_count("n_gains", 1)
    blocks = (space.m, space.s, space.x, space.w, space.stages)
    ONE_STEP[width](*(block.handle for block in blocks), 0.01, 3)
    return np.concatenate([space.s.q, space.s.v]).reshape(m.nq + m.nv, width.lanes)


@pytest.mark.parametrize("width", [F32, F32X16], ids=str)
def test_float32_stays_float32(width: Width) -> None:
    """Literals and the time step take the type of the scalar that they meet: no loop computes in float64."""
    code = "".join(ONE_STEP[width].inspect_llvm().values())
    assert not re.search(r"\d+ x double", code)
    wide = re.findall(r"= (?:tail call )?f(?:add|sub|mul|neg|cmp|ma)\b.* double", code)
    assert len(wide) <= 1, wide  # the length of a stage, half of the step
    assert "fpext" not in code
    assert len(re.findall(r"fptrunc double", code)) < 20
    assert len(re.findall(r"fmul.* float", code) + re.findall(r"fmul.* <16 x float>", code)) > 100


def test_one_world_in_float32_is_a_lane_of_sixteen() -> None:
    m = one_joint_scene("ball", seed=5).compile()
    rows = inputs(m, np.random.default_rng(3), 16)
    single, lanes = advanced(m, F32, rows), advanced(m, F32X16, rows)
    assert single.dtype == lanes.dtype == np.float32
    np.testing.assert_array_equal(single[:, 0], lanes[:, 0])
    precise = advanced(m, F64, rows)[:, 0]
    assert np.abs(single[:, 0] - precise).max() < 100 * np.finfo(np.float32).eps * np.abs(precise).max()
