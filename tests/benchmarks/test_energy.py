"""The benchmark of energies: its measures see a deviation, its variations differ, and it fails beyond a bound."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmark_scripts import helper, script

CASES = helper("_energy_cases")


def run_of(motion, rng=None):
    """The beginning of a motion, twice."""
    start = motion.begin(rng)
    world = start.scene.build(dt=CASES.STEP)
    start.set_going(world)
    return CASES.Run(start, world.model, np.stack([world.q, world.q]), np.stack([world.v, world.v]))


@pytest.mark.parametrize("motion", [m for m in CASES.motions() if m.name != "bounces"], ids=lambda motion: motion.name)
def test_measures_tell_what_velocities_have_gained(motion):
    """Velocities that are 1 % too large: 2.01 % of the kinetic energy, 1 % of the momentum, or of a speed."""
    run = run_of(motion)
    run.v[1] *= 1.01
    gain = {"energy": 0.0201, "kinetic energy": 0.0201, "speed of the last ball": 1.0}
    for measure in motion.measures:
        assert measure.of(run) == pytest.approx(gain.get(measure.name, 0.01), rel=1e-6)
        assert measure.of(replace(run, v=run.v[[0, 0]])) == (1.0 if "ball" in measure.name else 0.0)


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_apexes_are_those_of_parabolas(share):
    """A ball that follows the closed form, with too high bounces or without."""
    bounces = next(motion for motion in CASES.motions() if motion.name == "bounces")
    start = bounces.begin(None)
    e, fall = start.restitution, np.sqrt(2.0 / CASES.G)
    heights, times = [], np.arange(0.0, 3.0, CASES.STEP)
    for time in times:
        begin, half, height = -fall, fall, 1.0
        while time > begin + 2.0 * half:
            begin += 2.0 * half
            height *= e * e * (1.0 + share if begin < 1.01 * fall else 1.0)
            half = np.sqrt(2.0 * height / CASES.G)
        heights.append(height - 0.5 * CASES.G * (time - begin - half) ** 2)
    q = np.zeros((len(times), 7))
    q[:, 2] = heights
    assert CASES.apexes_off(CASES.Run(start, None, q, q)) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("motion", CASES.motions(), ids=lambda motion: motion.name)
def test_variations_differ_and_are_the_same_for_a_seed(motion):
    digests = [hash(run_of(motion, np.random.default_rng([5, k])).model.link_mass.tobytes()) for k in (0, 1, 0)]
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]


def test_it_fails_where_a_bound_is_exceeded(tmp_path, capsys):
    """A tenth of a second of a racket, with a bound that nothing meets."""
    energy, file = script("energy"), tmp_path / "found.json"
    racket = CASES.motions()[0]
    strict = replace(racket, seconds=0.1, measures=(replace(racket.measures[0], bound=1e-15),))
    energy["main"].__globals__["motions"] = lambda: [strict]
    assert energy["main"](["--variations", "1", "--json", str(file)]) == 1
    assert "NO" in capsys.readouterr().out
    told = json.loads(file.read_text(encoding="utf-8"))["deviations"]["racket, 20 rad/s: energy"]
    assert set(told) == {"Poise", "MuJoCo Euler", "MuJoCo implicitfast", "MuJoCo RK4"}
    assert all(len(values) == 2 for values in told.values())
