"""Stages keep actuators in step."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.control import Actuators, Stage, TranslationActuator, Way
from poise.motion import KeyedPath

UP_DOWN = {"a": 0.5, "b": 1.5}
NAMES = ("a move", "b move")


def two_world() -> poise.World:
    scene = poise.Scene(gravity=(0, 0, 0))
    for k, name in enumerate(UP_DOWN):
        scene.add(poise.sphere(0.05, mass=1.0), name=name, position=(k, 0, 0))
    return scene.build(dt=0.01)


def pulls(**options) -> list[TranslationActuator]:
    return [
        TranslationActuator(
            name, KeyedPath([0, 1, 2], [(k, 0, 0), (k, 0, top), (k, 0, 0)]), 0.15, relaxation=0.05, **options
        )
        for k, (name, top) in enumerate(UP_DOWN.items())
    ]


def run(guide: Actuators, seconds: float, world: poise.World | None = None):
    """Times, heights (n, 2), stages."""
    world = world or two_world()
    if not world._hooks.controllers:
        world.add_controller(guide)
    heights, stages = [], []
    for _ in range(round(seconds / 0.01)):
        world.step()
        heights.append([float(world.q[2]), float(world.q[9])])
        stages.append(guide.read(world.state)["a move"].stage)
    return np.array(heights), stages


def test_all_wait_until_all_are_there() -> None:
    stages = [Stage("up", dict.fromkeys(NAMES, 1.0), [Way("down")]), Stage("down")]
    heights, names = run(Actuators(pulls(), stages), 6.0)
    turn = names.index("down")
    assert heights[turn, 0] == pytest.approx(0.5, abs=0.02)
    assert heights[turn, 1] == pytest.approx(1.5, abs=0.02)
    assert heights[-1] == pytest.approx((0.0, 0.0), abs=1e-3)
    assert "up" not in names[turn:]


def test_those_that_go_together_arrive_together() -> None:
    def arrivals(together: bool) -> list[int]:
        stages = [Stage("up", dict.fromkeys(NAMES, 1.0), together=together)]
        heights, _ = run(Actuators(pulls(), stages), 4.0)
        return [int(np.argmax(heights[:, k] > top - 0.015)) for k, top in enumerate(UP_DOWN.values())]

    apart, both = arrivals(False), arrivals(True)
    assert apart[1] - apart[0] > 100
    assert abs(both[1] - both[0]) <= 5  # steps; the last one alone sets the time
    assert both[1] == pytest.approx(apart[1], abs=5)


def test_if_one_is_held_up_the_other_waits_for_it() -> None:
    stages = [Stage("up", dict.fromkeys(NAMES, 1.0), together=True)]
    guide, world = Actuators(pulls(), stages), two_world()
    world.add_controller(guide)
    run(guide, 0.5, world)
    world.forces[1, 5] = -pulls()[0].stiffness * 0.15  # all that the other one can do
    heights, _ = run(guide, 3.0, world)
    assert heights[-1, 1] < 0.6
    assert heights[-1, 0] < 0.3  # alone it would have been at 0.5 long since
    world.forces[...] = 0.0
    heights, _ = run(guide, 4.0, world)
    assert heights[-1] == pytest.approx((0.5, 1.5), abs=1e-3)


def test_ways_are_taken_after_a_time_or_when_a_function_says_so_and_the_first_one_wins() -> None:
    stages = [
        Stage("rest", dict.fromkeys(NAMES), [Way("never", after=9.0), Way("go", after=0.5)]),
        Stage("go", {"a move": 1.0}, [Way("stop", arrived=False, when=lambda state: state.q[9] > 1.0), Way("never")]),
        Stage("stop", {"b move": None}),
        Stage("never"),
    ]
    heights, names = run(Actuators(pulls(), stages), 4.0)
    assert [names.index(name) for name in ("rest", "go")] == [0, 50]
    assert "never" in names  # `a` arrives first
    stages[1] = Stage("go", {"a move": 1.0}, [Way("stop", arrived=False, when=lambda state: state.q[9] > 1.0)])
    heights, names = run(Actuators(pulls(), stages), 4.0)
    assert np.all(np.abs(heights[:49]) < 1e-12)  # held
    assert heights[names.index("stop"), 1] == pytest.approx(1.0, abs=0.02)
    assert heights[-1, 1] == pytest.approx(1.15, abs=0.02)  # the target stayed at the base distance
    assert heights[-1, 0] == pytest.approx(0.0, abs=1e-3)  # the other one went on to its end


def test_a_graph_may_go_round() -> None:
    loop = KeyedPath([0, 1, 2], [(0, 0, 0), (0, 0, 0.5), (0, 0, 0)], loop=True)
    lead = TranslationActuator("a", loop, 0.1, relaxation=0.05)
    stages = [
        Stage("up", {"a move": 1.0}, [Way("down")]),
        Stage("down", {"a move": 0.0}, [Way("up", after=0.2)]),
    ]
    heights, names = run(Actuators([lead], stages), 12.0)
    changes = [k for k in range(1, len(names)) if names[k] != names[k - 1]]
    assert len(changes) > 6
    for k in changes:
        assert heights[k, 0] == pytest.approx(0.5 if names[k] == "down" else 0.0, abs=0.02)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (["up"], "found a str; they must be poise.control.Stage"),
        ([Stage("up"), Stage("up")], 'several of the name "up"'),
        (
            [Stage("up", ways=[Way("dwn")]), Stage("down")],
            'a way leads to "dwn", which is no stage, did you mean "down"',
        ),
        ([Stage("up", ways=["down"])], r"ways must be poise.control.Way\(...\), found a str"),
        ([Stage("up", {"a mov": 1.0})], 'there is no actuator "a mov", did you mean "a move"'),
        ([Stage("up", ways=[Way("up", after=-1.0)])], "it must be 0 or more"),
        ([Stage("up", ways=[Way("up", when=3)])], "it must be a function"),
        ([Stage("up", reach=0.0)], "reach is 0.0; it must be positive"),
        ([Stage("up", {"a move": 3.0})], 'the gate of "a move" is 3, which is not on its path from 0 to 2'),
    ],
)
def test_graphs_that_make_no_sense_are_refused(stages, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        two_world().add_controller(Actuators(pulls(), stages))


def test_who_has_no_damping_cannot_go_together() -> None:
    with pytest.raises(ValueError, match="there is no speed to choose"):
        two_world().add_controller(Actuators(pulls(elasticity=0.0), [Stage("up", {"a move": 1.0}, together=True)]))
