"""What acts in worlds of a batch, what differs from one to the next, what is told of them, and what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import poise
from poise.batch.parameters import FIELDS, link_masses
from poise.batch.worlds import Batch
from poise.kernel.jit import Entry
from poise.model.model import Model

EXACT = poise.Reduced(tolerance=1e-11)


def arms(**joint: Any) -> poise.Scene:
    """Two hinges in a row above a floor."""
    scene = poise.Scene()
    scene.add_ground()
    options: dict[str, Any] = {"axis": "y", "anchor": (0, 0, 0.25)} | joint
    upper = scene.hinge(None, poise.box(0.1, 0.1, 0.5, mass=2.0), name="upper", position=(0, 0, 2), **options)
    scene.hinge(upper, poise.box(0.08, 0.08, 0.5, mass=1.0), name="lower", position=(0, 0, -0.5), **options)
    return scene


def ball(**options: Any) -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground(friction=options.pop("ground", 0.5), restitution=0.0)
    material = poise.Material(**({"friction": 0.5, "restitution": 0.0} | options))
    scene.add(poise.sphere(0.1, mass=2.0, material=material), name="ball", position=(0, 0, 0.15))
    return scene


def batch_of(scene: poise.Scene, n: int = 5, **options: Any) -> Batch:
    return scene.build_batch(n, EXACT, **({"dt": 1 / 240, "precision": "f64", "threads": 1} | options))


# ---- what acts -------------------------------------------------------------------------------------------------------


def test_forces_and_drives_act_as_in_a_world() -> None:
    scene = arms()
    batch, world = batch_of(scene), scene.build(EXACT, dt=1 / 240)
    rng = np.random.default_rng(0)
    batch.tau = rng.normal(size=(5, 2))
    batch.forces = rng.normal(size=(5, batch.model.n_bodies, 6))
    goals = rng.normal(size=(5, 2))
    batch.drive = poise.dynamics.Drive(20.0, 2.0, goals, 0.1)
    batch.step(50)
    world.tau, world.forces = batch.tau[3], batch.forces[3]
    world.drive = poise.dynamics.Drive(20.0, 2.0, goals[3], 0.1)
    world.step(50)
    assert batch.q[3] == pytest.approx(world.q, abs=1e-12)
    assert np.ptp(batch.q[:, 0]) > 0.01
    drive = batch.drive
    assert drive is not None
    drive.goal_q[3] = 0.0  # type: ignore[index]
    batch.step(50)
    world.drive = poise.dynamics.Drive(20.0, 2.0, np.zeros(2), 0.1)
    world.step(50)
    assert batch.q[3] == pytest.approx(world.q, abs=1e-12)
    batch.drive = None
    assert batch.drive is None
    batch.step(50)
    world.drive = None
    world.step(50)
    assert batch.q[3] == pytest.approx(world.q, abs=1e-12)


def test_motors_of_a_scene_follow_controls() -> None:
    """A servo is a row, a torque is a force: both as in a world."""
    scene = arms()
    scene.motor("upper", stiffness=50.0, damping=5.0, limit=8.0)
    scene.motor("lower", name="push", torque=0.0)
    batch, world = batch_of(scene, 4), scene.build(EXACT, dt=1 / 240)
    batch.ctrl[:, 0] = [0.0, 0.3, 0.6, -0.2]
    batch.ctrl[:, 1] = [0.0, 0.1, 0.2, 0.3]
    world.ctrl = batch.ctrl[2]
    batch.step(60)
    world.step(60)
    assert batch.q[2] == pytest.approx(world.q, abs=1e-9)
    assert np.unique(batch.q[:, 0].round(4)).size == 4


def test_a_control_that_is_not_finite_freezes_its_world_alone() -> None:
    scene = arms()
    scene.motor("upper", stiffness=50.0, damping=5.0, limit=8.0)
    batch, sound = batch_of(scene, 4), batch_of(scene, 4)
    batch.ctrl[1] = np.nan
    batch.step(10)
    sound.step(10)
    assert batch.diverged.tolist() == [False, True, False, False]
    assert np.array_equal(batch.q[[0, 2, 3]], sound.q[[0, 2, 3]])
    batch.ctrl[1] = 0.0
    batch.reset(1)
    batch.step(10)
    assert np.array_equal(batch.q[1], sound.q[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_control_that_stays_not_finite_loses_its_world_again(bad: float) -> None:
    """It is not forgotten by a reset, and the motor does not go on with the control before."""
    scene = arms()
    scene.motor("upper", stiffness=50.0, damping=5.0, limit=8.0)
    batch = batch_of(scene, 3)
    batch.ctrl[1] = 0.3
    batch.step(5)
    batch.ctrl[1] = bad
    batch.step(5)
    batch.reset(1, q=batch.model.q_rest)
    batch.step(5)
    assert batch.diverged.tolist() == [False, True, False]
    batch.reset()
    batch.ctrl[1] = 0.3
    fresh = batch_of(scene, 3)
    fresh.ctrl[1] = 0.3
    for each in (batch, fresh):
        each.step(5)
    assert np.array_equal(batch.q, fresh.q)


def test_loops_hold_as_in_a_world() -> None:
    scene = poise.Scene()
    a = scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="a", axis="y", anchor=(0, 0, 0.5), position=(0, 0, 0.5))
    b = scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="b", axis="y", anchor=(0, 0, 0.5), position=(1, 0, 0.5))
    bar = scene.add(poise.box(1.0, 0.1, 0.1), name="bar", position=(0.5, 0, 0))
    scene.loop("hinge", a, bar, position=(0, 0, 0), axis="y")
    scene.loop("ball", b, bar, position=(1, 0, 0))
    batch, world = batch_of(scene, 3), scene.build(EXACT, dt=1 / 240)
    batch.tau[:, 0] = [0.0, 300.0, 500.0]
    world.tau[0] = 500.0
    batch.step(100)
    world.step(100)
    assert batch.q[2] == pytest.approx(world.q, abs=1e-8)
    assert abs(batch.q[2, 0]) > 0.05


def test_a_step_may_have_substeps() -> None:
    scene = ball()
    fine = scene.build_batch(2, poise.Reduced(substeps=4), dt=1 / 60, precision="f64", threads=1)
    plain = scene.build_batch(2, poise.Reduced(), dt=1 / 240, precision="f64", threads=1)
    fine.step(10)
    plain.step(40)
    assert np.array_equal(fine.q, plain.q)
    assert fine.time == pytest.approx(10 / 60)


def test_time_counts_the_parts_of_a_step_in_which_a_world_is_lost() -> None:
    """A speed that grows by the same in each part, until something overflows: it tells how many there were.

    Which part that is depends on the force, and on whether multiply-adds are fused: squares overflow before speeds do.
    """
    counts = []
    for force in (3e38, 2e38, 1.2e38, 1e38):
        batch = ball().build_batch(2, poise.Reduced(substeps=4), dt=0.4, precision="f32", threads=1)
        batch.tau[0, 0] = force
        batch.step(40)
        assert batch.diverged.tolist() == [True, False]
        counts.append(round(float(batch.v[0, 0]) / (force / 2.0 * 0.1)))  # of 2 kg
        assert batch.time == pytest.approx([counts[-1] * 0.1, 16.0])
    assert any(parts % 4 != 0 for parts in counts)


# ---- what differs ----------------------------------------------------------------------------------------------------


def test_parameters_of_worlds_are_those_of_scenes_that_have_them() -> None:
    """Each of some worlds, and a world of a scene that was built with its parameters."""
    names = ("gravity", "mass", "damping", "stiffness", "armature")
    batch = batch_of(arms(), 3, vary=names)
    batch.vary(
        gravity=[(0, 0, -9.81), (1, 0, -5), (0, 0, -1.6)],
        damping=[[0.1], [0.2], [0.3]],
        stiffness=[(0, 0), (1, 2), (3, 4)],
        armature=[(0, 0), (0.1, 0), (0, 0.2)],
    )
    masses = np.tile(batch.model.body_mass, (3, 1))
    moving = batch.model.body_mass > 0.0
    masses[1, moving] *= 2.0
    masses[2, moving] *= [0.5, 3.0]
    batch.vary(mass=masses)
    batch.q, batch.v = [(0.5, -0.4)] * 3, [(1.0, 2.0)] * 3
    batch.step(60)
    for k in range(3):
        scene = arms()
        scene.gravity = tuple(batch.varied["gravity"][k])
        for j, name in enumerate(("upper", "lower")):
            body = scene.body(name)
            joint = body.joints[0]
            joint.damping, joint.stiffness = 0.1 * (k + 1), float(batch.varied["stiffness"][k, j])
            joint.armature = float(batch.varied["armature"][k, j])
            body.shapes[0].mass = float(masses[k, batch.model.body_index(name)])
        world = scene.build(EXACT, dt=1 / 240)
        world.q[...], world.v[...] = (0.5, -0.4), (1.0, 2.0)
        world.step(60)
        assert batch.q[k] == pytest.approx(world.q, abs=1e-9)


def test_worlds_with_the_coordinates_of_others_have_their_own_masses() -> None:
    """Groups of worlds one after another: the first one hardly moves, and is at the coordinates of the second one."""
    scene = arms()
    scene.gravity = (0.0, 0.0, 0.0)
    batch = batch_of(scene, 16, vary=("mass",))
    masses = np.tile(batch.model.body_mass, (16, 1))
    masses[8:, -1] *= 50.0
    batch.vary(mass=masses)
    batch.q = np.tile((0.5, -0.4), (16, 1))
    batch.v[:8], batch.v[8:] = 1e-200, (3.0, -4.0)
    batch.step()
    alone = batch_of(scene, 8, vary=("mass",))
    alone.vary(mass=masses[8:])
    alone.q, alone.v = np.tile((0.5, -0.4), (8, 1)), np.tile((3.0, -4.0), (8, 1))
    alone.step()
    assert batch.v[8:].tobytes() == alone.v.tobytes()


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_surfaces_may_differ(precision: str) -> None:
    """A ball that slides is slowed by μ g; one that falls bounces with e times its speed."""
    batch = batch_of(ball(), 4, precision=precision, vary=("friction", "restitution"), dt=1 / 1000)
    batch.vary(friction=[[0.0], [0.1], [0.2], [0.3]], restitution=[[0.0], [0.3], [0.6], [0.9]])
    batch.q[:, 2] = 0.1
    batch.v[:, 0] = 2.0
    batch.step(100)
    assert batch.v[:, 0] == pytest.approx(2.0 - np.array([0.0, 0.1, 0.2, 0.3]) * 9.81 * 0.1, abs=2e-3)
    batch.reset()
    batch.q[:, 2], batch.v[:, 2] = 0.1005, -1.0
    batch.step(2)
    assert batch.v[:, 2] == pytest.approx([0.0, 0.3, 0.6, 0.9], abs=0.02)


def test_a_mass_for_all_is_that_of_bodies_that_have_one() -> None:
    """The ground has none, and keeps none."""
    batch = batch_of(ball(), 3, vary=("mass",))
    batch.vary(mass=5.0)
    assert batch.varied["mass"].tolist() == [[0.0, 5.0]] * 3
    batch.vary(mass=[[1.0], [2.0], [4.0]])
    assert batch.varied["mass"].tolist() == [[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    batch.tau[:, 0] = 8.0
    batch.step()
    assert batch.v[:, 0] == pytest.approx(8.0 / 240 / np.array([1.0, 2.0, 4.0]), rel=1e-12)


def test_parameters_are_set_together_or_not_at_all() -> None:
    batch = batch_of(ball(), 3, vary=("friction", "mass"))
    before = batch.varied["friction"]
    with pytest.raises(ValueError, match="mass has -1"):
        batch.vary(friction=0.1, mass=-1.0)
    assert np.array_equal(batch.varied["friction"], before)


def test_what_varies_and_is_left_alone_changes_nothing() -> None:
    """Bit for bit: these are the same kernels."""
    plain, varied = batch_of(arms()), batch_of(arms(), vary=tuple(FIELDS))
    for batch in (plain, varied):
        batch.q[:, 0] = 0.4
        batch.step(40)
    assert varied.q.tobytes() == plain.q.tobytes()


class Asked:
    """Notes the compiled functions that entries give while a piece of code runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        usual = Entry.__getitem__

        def noted(entry: Entry, width: Any) -> Any:
            found = usual(entry, width)
            self.names.add(found.py_func.__name__)
            return found

        monkeypatch.setattr(Entry, "__getitem__", noted)

    def of(self, scene: poise.Scene, vary: tuple[str, ...], precision: str) -> set[str]:
        """Names of the functions that a batch and its first step use."""
        self.names = set()
        batch = scene.build_batch(3, dt=1 / 240, precision=precision, threads=1, vary=vary)
        batch.step()
        return self.names


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_a_varied_batch_compiles_no_kernel_that_a_plain_one_does_not(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows, its free motion and its solver are the large part of a cold start."""
    asked = Asked(monkeypatch)
    plain = asked.of(arms(), (), precision)
    assert any("advance" in name for name in plain)
    for vary in (*((name,) for name in FIELDS), tuple(FIELDS)):
        assert asked.of(arms(), vary, precision) == plain


def test_masses_of_links_are_sums_over_bodies() -> None:
    """With the model's own masses they are the model's own, bodies that are welded together included."""
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    trunk = scene.add(poise.box(0.3, 0.2, 0.1, mass=2.0), name="trunk", position=(3, 0, 1))
    scene.weld(trunk, poise.sphere(0.1, mass=1.0), name="knob", position=(0.2, 0, 0.1))
    model = scene.compile()
    mass, com, inertia = link_masses(model, model.body_mass[None].copy())
    assert mass[0] == pytest.approx(model.link_mass, rel=1e-12)
    assert com[0].reshape(-1, 3) == pytest.approx(model.link_com, abs=1e-12)
    assert inertia[0].reshape(-1, 6) == pytest.approx(model.link_inertia, abs=1e-12)
    double = link_masses(model, 2.0 * model.body_mass[None])
    assert double[0] == pytest.approx(2.0 * mass)
    assert double[1] == pytest.approx(com)
    assert double[2] == pytest.approx(2.0 * inertia)


# ---- starting anew ---------------------------------------------------------------------------------------------------


def test_worlds_begin_anew_in_keyframes_states_and_anywhere() -> None:
    scene = arms()
    scene.keyframes.append(poise.Keyframe("bent", q=(0.5, 1.0), v=(0.1, 0.2)))
    batch = batch_of(scene, 6)
    batch.step(10)
    batch.reset([0, 1], "bent")
    batch.reset(2, 0)
    batch.reset([False, False, False, True, False, False], state=poise.State(np.array([1.0, 2.0]), np.zeros(2)))
    batch.reset([4, 5], q=[(1, 1), (2, 2)], v=(3, 4))
    assert batch.q.tolist() == [[0.5, 1.0]] * 3 + [[1.0, 2.0], [1.0, 1.0], [2.0, 2.0]]
    assert batch.v.tolist() == [[0.1, 0.2]] * 3 + [[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]
    assert (batch.time == 0.0).all()


def test_controls_begin_anew_as_those_of_a_world_do() -> None:
    """Those of the first state or of the keyframe; a keyframe without any, and coordinates, leave them."""
    scene = arms()
    scene.motor("upper", stiffness=50.0, damping=5.0, limit=8.0)
    scene.keyframes += [poise.Keyframe("bent", q=(0.5, 1.0), control=(0.4,)), poise.Keyframe("bare", q=(0.1, 0.2))]
    batch, world = batch_of(scene, 3), scene.build(EXACT, dt=1 / 240)
    for key in ("bent", "bare", None):
        batch.ctrl[...], world.ctrl = 0.2, [0.2]
        batch.step(3)
        world.step(3)
        batch.reset([0, 2], key)
        world.reset(key)
        assert batch.ctrl[:, 0].tolist() == [world.ctrl[0], 0.2, world.ctrl[0]]
        batch.step(3)
        world.step(3)
        assert batch.q[2] == pytest.approx(world.q, abs=1e-12)
    batch.ctrl[...] = 0.2
    batch.reset(q=(0.1, 0.1))
    assert batch.ctrl[:, 0].tolist() == [0.2] * 3


@pytest.mark.parametrize(("control", "message"), [([0.1, 0.2], "ctrl must be"), ([np.nan], "ctrl must be")])
def test_a_state_with_wrong_controls_is_refused_before_anything_changes(control: list[float], message: str) -> None:
    scene = arms()
    scene.motor("upper", stiffness=50.0, damping=5.0, limit=8.0)
    batch = batch_of(scene, 3)
    batch.v[...] = 1.0
    batch.step(3)
    before = batch.q.copy(), batch.ctrl.copy(), batch.time.copy()
    state = poise.State(np.ones(2), np.zeros(2), slots={"control": np.array(control)})
    with pytest.raises(ValueError, match=message):
        batch.reset(state=state)
    assert all(np.array_equal(a, b) for a, b in zip(before, (batch.q, batch.ctrl, batch.time), strict=True))


def test_chance_is_that_of_its_generator_and_leaves_rotations() -> None:
    scene = ball()
    batch, other = batch_of(scene, 50), batch_of(scene, 50)
    noise = np.array([0, 0, 0.1, 0.5, 0.5, 0.5])
    for one in (batch, other):
        one.reset(q_noise=noise, v_noise=0.2, rng=np.random.default_rng(5))
    assert np.array_equal(batch.q, other.q)
    assert np.linalg.norm(batch.q[:, 3:], axis=1) == pytest.approx(1.0, abs=1e-12)
    assert np.abs(batch.q[:, :2]).max() == 0.0
    assert 0.05 < np.abs(batch.q[:, 2] - 0.15).max() <= 0.1
    assert 0.1 < np.abs(batch.v).max() <= 0.2
    batch.reset()
    assert np.unique(batch.q[:, 2]).tolist() == [0.15]


# ---- what is told ----------------------------------------------------------------------------------------------------


def test_a_report_tells_forces_as_that_of_a_world_does() -> None:
    scene = ball()
    scene.hinge(None, poise.box(0.1, 0.1, 0.5, mass=2.0), name="arm", axis="y", position=(2, 0, 1), limits=(-1.0, 0.0))
    batch, world = batch_of(scene, 4), scene.build(EXACT, dt=1 / 240)
    torque = np.flatnonzero(np.array(batch.model.dof_names) == "arm")[0]
    batch.tau[:, torque] = world.tau[torque] = 5.0
    batch.step(200)
    world.step(200)
    told, expected = batch.report(2), world.report()
    assert told.time == pytest.approx(expected.time)
    assert [contact.body_b for contact in told.contacts] == [contact.body_b for contact in expected.contacts]
    assert told.contacts[0].force == pytest.approx(expected.contacts[0].force, abs=1e-6)
    assert [(limit.dof, limit.what) for limit in told.limits] == [(limit.dof, limit.what) for limit in expected.limits]
    assert told.limits[0].force == pytest.approx(expected.limits[0].force, abs=1e-6)
    assert told.limits[0].force == pytest.approx(-5.0, abs=1e-3)
    assert told.rows == expected.rows == batch.rows[2]
    assert told.residual <= 1e-11
    assert told.overlap == pytest.approx(0.0, abs=1e-4)
    assert not told.diverged


def test_forces_are_those_of_the_step_that_was() -> None:
    """A new length of steps does not change what happened; a world that is lost keeps its last step."""
    batch = batch_of(ball(), 3)
    batch.step(200)
    batch.dt = 1 / 1000
    assert batch.report(0).contacts[0].normal_force == pytest.approx(2.0 * 9.81, rel=1e-6)
    batch.tau[1, 0] = np.nan
    batch.step(2)
    for world in range(3):
        assert batch.report(world).contacts[0].normal_force == pytest.approx(2.0 * 9.81, rel=1e-6)


# ---- what is refused -------------------------------------------------------------------------------------------------


def model_of(scene: poise.Scene) -> Model:
    return scene.compile()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0; it must be a whole number, 1 or more"),
        ({"n": 2.5}, "n is 2.5"),
        ({"n": True}, "n is True"),
        ({"precision": "f16"}, "precision is 'f16'; there are f32, f64"),
        ({"precision": None}, "precision is None"),
        ({"threads": 0}, "threads is 0; it must be a whole number, 1 or more"),
        ({"threads": 10**6}, "1024 is the most"),
        ({"dt": 0.0}, "dt is 0.0; it must be a positive time"),
        ({"dt": float("nan")}, "dt is nan"),
        ({"vary": ("frictoin",)}, "no parameter is called 'frictoin'.*friction"),
        ({"formulation": poise.Maximal()}, "poise.Maximal"),
        ({"formulation": poise.Reduced(level="acceleration")}, "velocity level only"),
        ({"formulation": poise.Reduced(sleeping=True)}, "a batch has no sleeping"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    given = {"n": 3, "threads": 1} | options
    with pytest.raises(ValueError, match=message):
        ball().build_batch(**given)


def test_what_lanes_cannot_do_is_refused() -> None:
    with pytest.raises(TypeError, match="compiled model"):
        Batch(ball(), 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="formulation is a str"):
        Batch(model_of(ball()), 3, "reduced")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"state must be a poise\.State, not ndarray"):
        Batch(model_of(ball()), 3, state=np.zeros(7))  # type: ignore[arg-type]
    scene = ball()
    scene.loop("fixed", None, "ball", "hook", break_force=10.0)
    with pytest.raises(ValueError, match='loop "hook" can break'):
        scene.build_batch(3)
    scene = ball()
    scene.controllers.append(("brain", object))
    with pytest.raises(ValueError, match='controller \\("brain"\\)'):
        scene.build_batch(3)


def test_arrays_that_do_not_fit_are_refused() -> None:
    batch = batch_of(ball(), 3)
    for name in ("q", "v", "tau", "forces"):
        with pytest.raises(ValueError, match="rows for 3 worlds"):
            setattr(batch, name, np.ones((4, getattr(batch, name)[0].size)))
        with pytest.raises(ValueError, match="shape"):
            setattr(batch, name, np.ones((3, 1)))
        with pytest.raises(ValueError, match="finite"):
            setattr(batch, name, np.full(getattr(batch, name)[0].size, np.nan))
    with pytest.raises(ValueError, match="quaternion of length 0"):
        batch.q = np.zeros(7)
    with pytest.raises(TypeError, match="drive must be a Drive"):
        batch.drive = 3.0  # type: ignore[assignment]
    with pytest.raises(ValueError, match="n is -1"):
        batch.step(-1)
    with pytest.raises(ValueError, match="ctrl must be"):
        batch.ctrl = [1.0]
    batch.q[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"q\[1, 2\] is nan"):
        batch.step()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"which": [3]}, IndexError, "world 3; there are 0 to 2"),
        ({"which": [-1]}, IndexError, "world -1"),
        ({"which": [0, 0]}, ValueError, "twice"),
        ({"which": [True]}, ValueError, "a mask of shape"),
        ({"which": "all"}, ValueError, "by a mask"),
        ({"keyframe": "nowhere"}, ValueError, 'no keyframe "nowhere"'),
        ({"keyframe": 5}, ValueError, "keyframe 5"),
        ({"keyframe": 0, "state": poise.State(np.zeros(7), np.zeros(6))}, ValueError, "not both"),
        ({"state": 5}, TypeError, "must be a poise.State"),
        ({"q": np.zeros(3)}, ValueError, "shape"),
        ({"q_noise": 0.1}, TypeError, "noise needs rng"),
        ({"q_noise": -0.1, "rng": np.random.default_rng()}, ValueError, "0 or more"),
        ({"v_noise": np.zeros(3), "rng": np.random.default_rng()}, ValueError, "one number or"),
    ],
)
def test_resets_that_cannot_be_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    batch = batch_of(ball(), 3)
    with pytest.raises(error, match=message):
        batch.reset(**options)


def test_numbers_that_float32_does_not_have_are_refused() -> None:
    scene = arms()
    scene.motor("upper", stiffness=50.0, damping=5.0, limit=8.0)
    batch = batch_of(scene, 3, precision="f32", vary=("gravity", "friction"))
    for wrong in (
        lambda: setattr(batch, "ctrl", [1e39]),
        lambda: batch.vary(gravity=(0, 0, -1e39)),
        lambda: batch.vary(friction=1e39),
        lambda: batch.reset(v_noise=1e39, rng=np.random.default_rng(0)),
    ):
        with pytest.raises(ValueError, match="float32 ends at"):
            wrong()
    batch.step(3)
    assert not batch.diverged.any()


def test_parameters_that_cannot_be_are_refused() -> None:
    batch = batch_of(ball(), 3, vary=("friction", "mass", "gravity", "restitution"))
    for given, message in (
        ({"gravity": [[1.0], [2.0], [3.0]]}, "three numbers"),
        ({"friction": True}, "real numbers, not true or false"),
        ({"friction": "much"}, "friction must be real numbers, not str"),
        ({"friction": None}, "friction must be real numbers, not NoneType"),
        ({"friction": np.ma.masked_array([1.0, 1.0], [True, False])}, "masked"),
        ({"mass": (0.0, 0.0)}, 'body "ball" must have a mass'),
        ({"mass": (1.0, 1.0)}, 'body "ground" must have no mass'),
        ({"friction": -1.0}, "0 or more"),
        ({"friction": np.nan}, "finite"),
        ({"friction": np.zeros(7)}, "shape"),
        ({"restitution": 2.0}, "from 0 to 1"),
        ({"gravity": 9.81}, "three numbers"),
        ({"mass": 0.0}, 'body "ball" must have a mass'),
        ({"damping": 1.0}, "make the batch with vary"),
        ({"colour": 1.0}, "no parameter is called 'colour'"),
    ):
        with pytest.raises(ValueError, match=message):
            batch.vary(**given)


def test_a_batch_is_not_copied_by_accident() -> None:
    batch = batch_of(ball(), 3)
    with pytest.raises(TypeError, match="memory of one process"):
        copy.deepcopy(batch)
    with pytest.raises(TypeError, match="memory of one process"):
        pickle.dumps(batch)
    assert "3 worlds" in repr(batch)
    assert len(batch) == 3


@pytest.mark.parametrize("n", [True, 2.5, np.nan, -1, 10**30, 10**5000, "2"], ids=range(7))
def test_numbers_of_steps_that_cannot_be_are_refused_before_anything_is_done(n: object) -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball")
    batch = scene.build_batch(3, threads=1)
    with pytest.raises(ValueError, match=r"whole number of steps, 0 or more|1e\+09 steps at most"):
        batch.step(n)
    assert not batch.time.any()
    for dt in (True, "0.01", 10**400, np.nan, -1.0):
        with pytest.raises(ValueError, match="dt"):
            batch.dt = dt
