"""The dynamics of trees beside MuJoCo: the same masses, forces, accelerations, poses, Jacobians, energies, momenta.

Both compute in float64 by other routes (Poise: articulated bodies in world axes about each tree's root; MuJoCo:
composite inertias and LᵀDL about the tree's centre of mass). Rounding of the solve grows with the condition of M, up to
some 1e6 in these models: 1e6 · 2⁻⁵³ · (operations) stays below the 1e-9 that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest

from poise import dynamics
from poise.io.mjcf import load_mjcf
from poise.model.model import Model
from strategies import relative_error

STATES = 100
TOLERANCE = 1e-9
NAMES = ("humanoid", "humanoid_CMU", "quadruped", "walker", "fish")


def file_of(name: str) -> Path:
    """MuJoCo's own humanoid where it is at hand; the others (and else its twin) come with dm_control."""
    ours = Path(__file__).parents[3] / "shared" / "data" / "mjcf" / f"{name}.xml"
    return ours if ours.exists() else Path(find_spec("dm_control").origin).parent / "suite" / f"{name}.xml"


@dataclass(frozen=True)
class Case:
    """A model in both engines, with states and MuJoCo's answers, one row a state."""

    model: Model
    unsupported: tuple[str, ...]
    tendons: int
    body: np.ndarray
    """MuJoCo's index of every body."""
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    a: np.ndarray
    wrench: np.ndarray
    """(n, n_bodies, 6) in Poise's convention."""
    point: np.ndarray
    """In the frame of the last body."""
    truth: dict[str, np.ndarray]


def quiet(mj: mujoco.MjModel) -> None:
    """Leave rigid bodies, springs and dampers alone in the world."""
    off = mujoco.mjtDisableBit
    mj.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_CONSTRAINT | off.mjDSBL_ACTUATION
    mj.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    mj.opt.density = mj.opt.viscosity = 0.0
    mj.tendon_stiffness[:] = mj.tendon_damping[:] = mj.tendon_armature[:] = 0.0


def random_states(mj: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    q = np.tile(mj.qpos0, (STATES, 1))
    for row in q:
        mujoco.mj_integratePos(mj, row, rng.normal(size=mj.nv), 1.0)
    return q


def answers(mj: mujoco.MjModel, data: mujoco.MjData, body: np.ndarray, point: np.ndarray) -> dict[str, np.ndarray]:
    """Everything about the state that was last run through mj_forward."""
    out = {"acceleration": data.qacc, "bias": data.qfrc_bias, "passive": data.qfrc_passive}
    out = {name: array.copy() for name, array in out.items()}
    out["mass"] = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, out["mass"])
    out["position"] = data.xpos[body].copy()
    out["rotation"] = data.xmat[body].reshape(-1, 3, 3).copy()
    out["twist"] = np.zeros((len(body), 6))
    out["jacobian"] = np.zeros((len(body), 6, mj.nv))
    for k, b in enumerate(body):
        mujoco.mj_objectVelocity(mj, data, mujoco.mjtObj.mjOBJ_XBODY, b, out["twist"][k], 0)
        mujoco.mj_jacBody(mj, data, out["jacobian"][k, 3:], out["jacobian"][k, :3], b)
    place = data.xpos[body[-1]] + data.xmat[body[-1]].reshape(3, 3) @ point
    for name, function in (("point_jacobian", mujoco.mj_jac), ("point_jacobian_rate", mujoco.mj_jacDot)):
        out[name] = np.zeros((6, mj.nv))
        function(mj, data, out[name][3:], out[name][:3], place, int(body[-1]))
    out["potential"], out["kinetic"] = data.energy.copy()
    mujoco.mj_subtreeVel(mj, data)
    out["linear"] = data.subtree_linvel[0] * mj.body_subtreemass[0]
    out["angular"] = data.subtree_angmom[0].copy()
    out["com"] = data.subtree_com[0].copy()
    return out


@cache
def case(name: str) -> Case:
    file = file_of(name)
    scene, mj = load_mjcf(file), mujoco.MjModel.from_xml_path(str(file))
    quiet(mj)
    model, data = scene.compile(), mujoco.MjData(mj)
    numbers = {mj.body(i).name or f"body_{i}": i for i in range(mj.nbody)}
    body = np.array([numbers.get(name, 0) for name in model.body_names])  # geoms of the world are a body of their own
    rng = np.random.default_rng(7)
    q, point = random_states(mj, rng), rng.normal(size=3) * 0.3
    v, a, tau = (rng.normal(size=(STATES, mj.nv)) * size for size in (1.0, 10.0, 10.0))
    wrench = rng.normal(size=(STATES, model.n_bodies, 6)) * (body > 0)[:, None]
    truth: dict[str, list[np.ndarray]] = {}
    for k in range(STATES):
        data.qpos, data.qvel, data.qfrc_applied, data.xfrc_applied = q[k], v[k], tau[k], 0.0
        mujoco.mj_forward(mj, data)
        found = answers(mj, data, body, point)
        arms = data.xpos[body] - data.xipos[body]
        data.xfrc_applied[body, :3] = wrench[k, :, 3:]
        data.xfrc_applied[body, 3:] = wrench[k, :, :3] + np.cross(arms, wrench[k, :, 3:])
        mujoco.mj_forward(mj, data)
        found["pushed"] = data.qacc.copy()
        data.qacc = a[k]
        mujoco.mj_inverse(mj, data)
        found["inverse"] = data.qfrc_inverse.copy()
        for key, value in found.items():
            truth.setdefault(key, []).append(value)
    arrays = {key: np.array(value) for key, value in truth.items()}
    return Case(model, tuple(scene.unsupported), mj.ntendon, body, q, v, tau, a, wrench, point, arrays)


def poise_answers(c: Case, rows: object, dtype: type = np.float64) -> dict[str, np.ndarray]:
    """The same from Poise, for all states in lanes or for one of them."""
    m, q, v, tau = c.model, c.q[rows], c.v[rows], c.tau[rows]
    poses, energy = dynamics.bodies(m, q, v, dtype=dtype), dynamics.energy(m, q, v, dtype=dtype)
    momentum = dynamics.momentum(m, q, v, dtype=dtype)
    at_point = dynamics.jacobian(m, q, m.n_bodies - 1, c.point, v, dtype=dtype)
    return {
        "acceleration": dynamics.forward_dynamics(m, q, v, tau, dtype=dtype),
        "pushed": dynamics.forward_dynamics(m, q, v, tau, forces=c.wrench[rows], dtype=dtype),
        "inverse": dynamics.inverse_dynamics(m, q, v, c.a[rows], dtype=dtype),
        "bias": dynamics.bias_forces(m, q, v, dtype=dtype),
        "passive": dynamics.passive_forces(m, q, v, dtype=dtype),
        "mass": dynamics.mass_matrix(m, q, dtype=dtype),
        "position": poses.position,
        "rotation": poses.rotation,
        "twist": poses.twist,
        "jacobian": np.stack([dynamics.jacobian(m, q, b, dtype=dtype).J for b in range(m.n_bodies)], axis=-3),
        "point_jacobian": at_point.J,
        "point_jacobian_rate": at_point.rate,
        "kinetic": energy.kinetic,
        "potential": energy.gravity + energy.spring,
        "linear": momentum.linear,
        "angular": momentum.angular,
        "com": momentum.com,
    }


def errors(c: Case, got: dict[str, np.ndarray], rows: object) -> dict[str, float]:
    """Relative errors, each state by its own scale; poses and Jacobians by metres and units."""
    found = {}
    for name, value in got.items():
        want, value = np.atleast_1d(c.truth[name][rows]), np.atleast_1d(value)
        if isinstance(rows, slice):
            found[name] = max(relative_error(*pair) for pair in zip(value, want, strict=True))
        else:
            found[name] = relative_error(value, want)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_out_is_said(name: str) -> None:
    c = case(name)
    assert any("tendon" in sentence for sentence in c.unsupported) == (c.tendons > 0)
    assert c.model.nv == c.tau.shape[1]


@pytest.mark.parametrize("name", NAMES)
def test_batch_in_lanes(name: str) -> None:
    c = case(name)
    found = errors(c, poise_answers(c, slice(None)), slice(None))
    assert {key: error for key, error in found.items() if not error < TOLERANCE} == {}


@pytest.mark.parametrize("name", NAMES)
def test_one_world_at_a_time(name: str) -> None:
    c = case(name)
    for k in range(STATES):
        found = errors(c, poise_answers(c, k), k)
        assert {key: error for key, error in found.items() if not error < TOLERANCE} == {}, k


#: what sums of a few hundred rounded products may lose, in units of float32's last place
SUM = 64.0
#: what a solve may lose beside that, in the same units, for each unit of the condition number
SOLVE = 16.0
#: sums whose terms (of a kilogram at a metre, moving at 1 m/s or pulled by 10 m/s²) may cancel each other
CANCELLING = {"linear": 1.0, "angular": 1.0, "bias": 10.0, "potential": 10.0, "kinetic": 1.0}


@pytest.mark.parametrize("name", NAMES)
def test_float32(name: str) -> None:
    """What needs no solve is as good as its terms; accelerations are worse by the condition of M.

    M is scaled to a unit diagonal first: the articulated body method works axis by axis and does not mind units.
    """
    c = case(name)
    got, u = poise_answers(c, slice(None), np.float32), 2.0**-24
    weight = float(c.model.link_mass.sum())
    terms = (np.abs(c.truth["mass"]) @ np.abs(c.a)[..., None])[..., 0] + np.abs(c.truth["bias"])
    for key, value in got.items():
        assert value.dtype == np.float32, key
        error = np.abs(np.atleast_1d(value) - c.truth[key]).reshape(STATES, -1).max(axis=1)
        size = np.abs(c.truth[key]).reshape(STATES, -1).max(axis=1) + CANCELLING.get(key, 0.0) * weight
        bound = SUM * u * (terms.max(axis=1) if key == "inverse" else size)
        if key in ("acceleration", "pushed"):
            bound = SOLVE * u * condition(c.truth["mass"]) * size
            assert np.all(bound < 1e-2 * size), "a bound that says nothing"
        assert np.all(error <= bound), (key, float((error / bound).max()))


def condition(mass: np.ndarray) -> np.ndarray:
    """Condition numbers (n,) of mass matrices scaled to a unit diagonal."""
    size = np.sqrt(np.diagonal(mass, axis1=1, axis2=2))
    return np.linalg.cond(mass / size[:, :, None] / size[:, None, :])
