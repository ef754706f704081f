"""Crowds that are pushed about and begin anew, for long: nothing is lost, nothing grows, nobody feels the others.

POISE_CROWD_STEPS=100000 ./test slow tests/batch/test_crowds.py     as long as it takes
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.batch.worlds import Batch
from poise.dynamics import Drive

STEPS, HOLD = int(os.environ.get("POISE_CROWD_STEPS", "1000")), 25
"""Steps, and how long what acts stays."""
CROWD, WATCHED = 4096, 16
"""Worlds, and how many of them are stepped once more by themselves."""
GROWTH = 16e6
"""Resident memory that may come on top once all have fallen, and rooms have grown; bytes."""


def crowd(n: int) -> Batch:
    """People on drives of little strength, who stumble and fall."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    batch = scene.build_batch(n, dt=1 / 120, precision="f32")
    gains = np.full(batch.model.nv, 60.0)
    gains[:6] = 0.0
    batch.drive = Drive(gains, 0.1 * gains, batch.model.q_rest.copy())
    return batch


def stir(batch: Batch, epoch: int, which: np.ndarray) -> None:
    """New torques, pushes and beginnings for some of the crowd; what a world gets does not depend on who is asked."""
    rng, nv = np.random.default_rng([7, epoch]), batch.model.nv
    tau, push = rng.normal(size=(CROWD, nv - 6)), rng.normal(size=(CROWD, 3))
    anew, pushed, speed = rng.random(CROWD) < 0.05, rng.random(CROWD) < 0.2, rng.normal(size=(CROWD, nv))
    batch.tau[:, 6:] = 15.0 * tau[which]
    batch.forces[:, batch.model.body_index("hero/torso"), 3:] = np.where(pushed[:, None], 200.0 * push, 0.0)[which]
    again = anew[which] | batch.diverged
    batch.reset(again, v=0.5 * speed[which][again])


def resident() -> float:
    """Memory of this process; bytes."""
    if Path("/proc/self/statm").exists():
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    pytest.skip(f"resident memory is not told on {sys.platform}")


@pytest.mark.slow
def test_a_crowd_goes_on_and_on() -> None:
    batch, which = crowd(CROWD), np.random.default_rng(1).choice(CROWD, WATCHED, replace=False)
    alone, epochs, lost, early = crowd(WATCHED), STEPS // HOLD, 0, 0.0
    everyone = np.arange(CROWD)
    for epoch in range(epochs):
        stir(batch, epoch, everyone)
        stir(alone, epoch, which)
        batch.step(HOLD)
        alone.step(HOLD)
        lost += int(batch.diverged.sum())
        assert np.isfinite(batch.q).all()
        assert np.isfinite(batch.v).all()
        assert np.array_equal(batch.q[which], alone.q)
        assert np.array_equal(batch.v[which], alone.v)
        assert np.array_equal(batch.diverged[which], alone.diverged)
        if epoch == epochs // 4:
            early = resident()
    more = resident() - early
    print(f"\n{CROWD} worlds, {epochs * HOLD} steps: {lost} lost, {more / 1e6:.1f} MB more at the end")
    assert batch.contacts.mean() > 2.0
    assert more < GROWTH
