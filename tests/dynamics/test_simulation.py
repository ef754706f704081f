"""A simulation as its users handle it: what can be assigned, what it says of itself, what it says when it stops."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import poise
from poise.dynamics import Diverged, Drive, Simulation, simulate


def pendulum() -> poise.Model:
    scene = poise.Scene(name="clock")
    scene.hinge(None, poise.sphere(0.1, mass=1.0, position=(0, 0, -1)), axis="y", name="bob")
    return scene.compile()


def thrown() -> Simulation:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    return Simulation(scene.compile(), dt=0.01)


@pytest.mark.parametrize("name", ["q", "v", "tau"])
def test_assigning_writes_into_the_same_array(name):
    sim = Simulation(pendulum())
    array = getattr(sim, name)
    setattr(sim, name, [0.25])
    assert getattr(sim, name) is array
    assert array.tolist() == [0.25]


def test_adding_to_what_acts():
    sim = Simulation(pendulum())
    sim.tau += 2.0
    sim.tau += 1.0
    assert sim.tau.tolist() == [3.0]


def test_assigned_forces_act():
    sim = thrown()
    sim.forces = [[0, 0, 0, 4.0, 0, 0]]
    sim.step(100)
    assert sim.v[0] == pytest.approx(2.0, rel=1e-12)  # 4 N on 2 kg for a second


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("q", [1.0, 2.0], r"q has shape \(2,\); the model needs \(1,\)"),
        ("v", [[1.0]], r"v has shape \(1, 1\); one world needs \(1,\)"),
        ("tau", [np.nan], r"tau\[0\] is nan; every number must be finite"),
        ("forces", [[0.0] * 5], r"forces has shape \(1, 5\); the model needs \(6,\)"),
    ],
)
def test_what_cannot_be_assigned(name, value, message):
    sim = Simulation(pendulum())
    with pytest.raises(ValueError, match=message):
        setattr(sim, name, value)


def test_drive_is_assigned_read_back_and_taken_away():
    sim = Simulation(pendulum(), dt=0.01)
    assert sim.drive is None
    sim.drive = Drive(1e4, 2e2, [0.5])
    sim.step(2000)
    assert sim.q[0] == pytest.approx(0.5, abs=1e-3)  # weight bends it by m g l sin(q) / k = 4.7e-4
    drive = sim.drive
    assert drive is not None
    assert [np.asarray(x).tolist() for x in drive] == [[1e4], [2e2], [0.5], [0.0]]
    sim.drive = None
    assert sim.drive is None
    sim.step(50)
    assert sim.q[0] < 0.4


def test_only_a_drive_drives():
    with pytest.raises(TypeError, match="drive must be a Drive or None, not dict"):
        Simulation(pendulum()).drive = {"gain_p": 1.0}


def test_only_a_state_is_a_state():
    with pytest.raises(TypeError, match=r"state must be a poise\.State, not list; for coordinates alone, assign q"):
        Simulation(pendulum()).state = [0.0]


def test_it_tells_what_it_is_in_a_line():
    sim = Simulation(pendulum(), dt=0.01)
    sim.step(5)
    assert repr(sim) == f"<Simulation of {sim.model!r} at 0.05 s: semi_implicit, dt 0.01 s>"
    assert repr(simulate(pendulum(), 0.5, dt=0.01)) == "<Trajectory: 51 states from 0 to 0.5 s, nq 1, nv 1>"


@pytest.mark.parametrize(("name", "what"), [("tau", "tau"), ("forces", "forces"), ("v", "motion")])
def test_what_diverged(name, what):
    sim = thrown()
    getattr(sim, name)[...] = np.nan
    with pytest.raises(Diverged, match=f"{what} of body 'ball' is n") as caught:
        sim.step()
    assert (caught.value.body, caught.value.what) == ("ball", what)
    assert ("try a smaller dt" in str(caught.value)) == (what == "motion")


def test_diverged_crosses_to_another_process():
    error = pickle.loads(pickle.dumps(Diverged(1.5, "ball", "motion")))
    assert (error.time, error.body, error.what) == (1.5, "ball", "motion")
    assert str(error) == str(Diverged(1.5, "ball", "motion"))
