"""The first demo: physics that adds up, and a picture of it."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import numpy as np
import pytest

from poise.cli.demos import swing
from poise.dynamics import Simulation, bodies


@pytest.fixture(scope="module")
def short():
    scene, model = swing.hanging_humanoid()
    start, tone = swing.pose(model)
    simulation = Simulation(model, start, dt=swing.DT, method="rk4")
    simulation.drive = tone
    return scene, model, simulation.run(1.5, every=swing.EVERY), tone


def test_the_hand_stays_at_the_bar(short) -> None:
    scene, model, motion, _ = short
    hand = scene.body("hand_r")
    palm = np.asarray(hand.shapes[0].position)
    where = bodies(model, motion.q)
    k = model.body_index("hand_r")
    grip = where.position[:, k] + where.rotation[:, k] @ palm
    np.testing.assert_allclose(grip, np.tile((0.0, 0.0, swing.BAR_HEIGHT), (len(grip), 1)), atol=1e-12)


def test_every_joule_is_accounted_for(short) -> None:
    _, model, motion, tone = short
    ledger = swing.account(model, motion, tone)
    # fourth order in a step of 1 ms for motions of some 10 rad/s: far below 1e-6 of what moves
    assert abs(ledger.unexplained).max() < 1e-6 * ledger.swing
    assert ledger.lost[-1] > 1.0  # and something was lost: the dampers are there
    assert np.all(np.diff(ledger.lost) >= 0)


def test_the_integral_is_exact_for_cubics() -> None:
    x = np.linspace(0.0, 2.0, 9)
    result = swing.running_integral(x**3 - x, x[1])
    np.testing.assert_allclose(result, x**4 / 4 - x**2 / 2, atol=1e-13)


def test_it_runs_and_draws(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(swing, "DURATION", 1.5)
    assert swing.run(tmp_path) == 0
    told = capsys.readouterr().out
    assert "unexplained" in told
    assert (tmp_path / "swing.svg").read_text(encoding="utf-8").startswith("<svg")


def test_energy_that_does_not_add_up_is_a_failure(tmp_path, capsys, monkeypatch) -> None:
    real = swing.account

    def leaking(*args):
        ledger = real(*args)
        return replace(ledger, lost=ledger.lost + np.linspace(0.0, 0.01 * ledger.swing, len(ledger.lost)))

    monkeypatch.setattr(swing, "DURATION", 1.5)
    monkeypatch.setattr(swing, "account", leaking)
    assert swing.run(tmp_path) == 1


def test_a_terminal_without_blocks_gets_other_curves(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(swing, "DURATION", 1.5)
    told = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # strict: any other letter fails
    monkeypatch.setattr(sys, "stdout", told)
    assert swing.run(tmp_path) == 0
    told.seek(0)
    kinetic = next(line for line in told.read().splitlines() if "kinetic energy" in line)
    assert {"_", "#"} <= set(kinetic)


def test_a_narrow_terminal_shows_the_whole_path(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(swing, "DURATION", 1.5)
    monkeypatch.setenv("COLUMNS", "50")
    assert swing.run(tmp_path) == 0
    told = "".join(line.split("│")[2].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("│"))
    assert str(tmp_path / "swing.svg") in told
