"""The same steps give the same bits: after going back, in copies and pickles, in other processes and threads."""

from __future__ import annotations

import copy
import hashlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import poise
from poise.sim import Targets


class Sway:
    """A controller with a memory: drives the first joints about, slower and slower."""

    def bind(self, model: poise.Model) -> None:
        self.nv = model.nv

    def update(self, state: poise.State) -> Targets:
        phase = state.slots.get("phase", np.zeros(1)) + 0.05 / (1.0 + state.time)
        state.slots["phase"] = phase
        tau = np.zeros(self.nv)
        tau[6:12] = 20.0 * np.sin(phase[0] + np.arange(6))
        return Targets(tau=tau)


def crowd() -> poise.World:
    """Two that fall over a box, one of them with a controller, and events."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.5, 0.5, 0.5, mass=20.0), name="box", position=(0.3, 0, 0.25))
    for k in range(2):
        doll = poise.characters.humanoid(height=1.7 + 0.1 * k)
        scene.add(doll, name=f"doll {k}", position=(0.4 * k, 0.5 * k, 0.2 + k))
    world = scene.build()
    world.add_controller(Sway(), name="sway")
    _ = world.events
    return world


def digest(world: poise.World) -> str:
    """Of the state and the events of the last step."""
    state = world.state
    content = b"".join(array.tobytes() for _, array in sorted(state.slots.items()))
    return hashlib.sha256(state.q.tobytes() + state.v.tobytes() + content + repr(world.events).encode()).hexdigest()


def story(steps: int = 150) -> str:
    """What another process is asked for."""
    world = crowd()
    world.step(steps)
    return digest(world)


@pytest.fixture(scope="module")
def told() -> str:
    return story()


def test_going_back(told: str) -> None:
    world = crowd()
    world.step(90)
    saved = world.state
    world.step(100)
    world.state = saved
    world.step(60)
    assert digest(world) == told


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda world: pickle.loads(pickle.dumps(world))])
def test_copies_and_pickles(twin, told: str) -> None:
    world = crowd()
    world.step(90)
    other = twin(world)
    world.step(7)
    other.step(60)
    assert digest(other) == told
    world.step(53)
    assert digest(world) == told


def test_pushes_go_along_with_states_and_copies() -> None:
    world = crowd()
    world.step(20)
    world.apply_force("doll 0/torso", (0, 300, 0))
    saved, twin = world.state, copy.copy(world)
    world.step()
    first = digest(world)
    twin.step()
    assert digest(twin) == first
    world.state = saved
    world.step()
    assert digest(world) == first


class Grasp:
    """A controller that gives a drive at two moments, and leaves it alone otherwise."""

    def update(self, state: poise.State) -> Targets | None:
        step = round(240 * state.time)
        if step not in (10, 30):
            return None
        return Targets(drive=poise.dynamics.Drive(np.full(1, 80.0), np.full(1, 8.0), np.full(1, 0.02 * step)))


def arm(own: float = 0.0) -> poise.World:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    world = scene.build(dt=1 / 240)
    if own:
        world.drive = poise.dynamics.Drive(np.full(1, own), np.full(1, 1.0), np.zeros(1))
    world.add_controller(Grasp(), name="grasp")
    return world


@pytest.mark.parametrize("own", [0.0, 20.0])
@pytest.mark.parametrize("back", [5, 20, 40])
def test_drives_of_controllers_go_back_with_states(back: int, own: float, tmp_path) -> None:
    """To before the first of them, to between the two, and to after them."""
    world = arm(own)
    world.step(back)
    world.state.save(tmp_path / "state.npz", world.model)
    saved, twin = world.state, copy.copy(world)
    world.step(60 - back)
    end, drive = world.state, world.drive
    world.state = saved
    assert world.state.same_bits(saved)
    world.step(60 - back)
    assert world.state.same_bits(end)
    twin.step(60 - back)
    assert twin.state.same_bits(end)
    other = arm(own)
    other.state = poise.State.load(tmp_path / "state.npz", other.model)
    other.step(60 - back)
    assert other.state.same_bits(end)
    world.reset()
    assert (world.drive is None) == (own == 0.0)
    world.step(60)
    assert world.q.tobytes() == end.q.tobytes()
    world.drive = drive  # what is written stays, as `tau` does
    world.reset()
    assert world.drive.gain_p == 80.0


def test_a_drive_of_a_step_that_fails_is_gone() -> None:
    world = arm(20.0)
    world.step(10)
    before = world.state
    world.tau[0] = np.inf
    with pytest.raises(poise.dynamics.Diverged):
        world.step()
    world.tau[0] = 0.0
    assert world.state.same_bits(before)
    assert world.drive.gain_p == 20.0


def test_another_process(told: str) -> None:
    from pathlib import Path

    here = Path(__file__).resolve()
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('bits', {str(here)!r})\n"
        "bits = sys.modules['bits'] = importlib.util.module_from_spec(spec); spec.loader.exec_module(bits)\n"
        "print(bits.story())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == told


def test_threads(told: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: story(), range(2))) == [told] * 2


def test_a_run_is_the_steps_it_is_made_of(told: str) -> None:
    world = crowd()
    world.run(150 / 240, signals={"height": lambda w: w.report().energy.gravity})
    state, other = world.state, crowd()
    other.step(150)
    assert np.array_equal(state.q, other.q)
    assert np.array_equal(state.v, other.v)


def test_reports_and_sensors_change_nothing(told: str) -> None:
    world = crowd()
    world.timing = True
    for _ in range(150):
        world.step()
        report = world.report()
        poise.sim.JointSensor("doll 1/knee_l").read(world)
        poise.sim.Imu("doll 0/head").read(world)
    assert digest(world) == told
    assert report.timing["whole"] >= report.timing["solve"] > 0.0
    world.timing = False
    assert world.report().timing is None
    world.step()


def test_a_reset_starts_anew() -> None:
    world = crowd()
    heard = []
    world.after_step(lambda world: heard.append(world.events))
    world.step(40)
    first = world.q.copy(), world.v.copy(), [*heard]
    world.step(100)
    heard.clear()
    world.reset()
    assert world.time == 0.0
    world.step(40)
    assert np.array_equal(world.q, first[0])
    assert np.array_equal(world.v, first[1])
    assert heard == first[2]
    assert any(heard)
