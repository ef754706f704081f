"""Recordings of chosen worlds of a batch."""

from __future__ import annotations

import numpy as np
import pytest

import poise


def bouncing() -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground(friction=0.5)
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.4))
    return scene


def test_a_recorded_world_is_that_of_a_world():
    scene = bouncing()
    world, batch = scene.build(dt=0.01), scene.build_batch(5, dt=0.01, precision="f64", threads=1)
    batch.v[:, 0] = np.arange(5)
    world.v[0] = 3.0
    right = world.run(0.6, progress=False)
    first, found = batch.run(0.6, [1, 3])
    assert first.v[0, 0] == 1.0
    np.testing.assert_array_equal(found.time, right.time)
    np.testing.assert_allclose(found.q, right.q, atol=1e-9)
    np.testing.assert_allclose(found.v, right.v, atol=1e-7)
    for mine, theirs in zip(found.energy, right.energy, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    np.testing.assert_array_equal(found.contacts.start, right.contacts.start)
    np.testing.assert_array_equal(found.contacts.shapes, right.contacts.shapes)
    for name in ("point", "normal", "depth", "force"):
        np.testing.assert_allclose(
            getattr(found.contacts, name), getattr(right.contacts, name), atol=1e-5, err_msg=name
        )
    np.testing.assert_array_equal(found.solver["rows"], right.solver["rows"])


def test_recording_changes_no_bits_and_keeps_every_other_frame():
    scene = bouncing()
    plain, recorded = (scene.build_batch(4, threads=1) for _ in range(2))
    for batch in (plain, recorded):
        batch.v[:, 0] = np.arange(4)
    plain.step(101)
    recordings = recorded.run(101 / 240, every=2)
    np.testing.assert_array_equal(plain.q, recorded.q)
    assert len(recordings) == 4
    assert [len(one) for one in recordings] == [52] * 4
    np.testing.assert_array_equal(recordings[2].q[-1].astype(np.float32), plain.q[2])
    assert recordings[0].time[-1] == plain.time[0]


def test_a_recording_can_be_saved_and_played(tmp_path):
    batch = bouncing().build_batch(2, threads=1)
    recording = batch.run(0.2, 1, record=("contacts",))[0]
    recording.save(tmp_path / "world.npz")
    again = poise.sim.Recording.load(tmp_path / "world.npz")
    np.testing.assert_array_equal(again.q, recording.q)
    np.testing.assert_array_equal(again.contacts.force, recording.contacts.force)
    assert again.energy is None
    assert again.options["precision"] == "f32"


def test_the_recording_of_a_lost_world_ends_at_its_last_good_step():
    batch = bouncing().build_batch(3, threads=1)
    batch.step(5)
    batch.tau[1, 0] = np.inf
    good, lost = batch.run(0.1, [0, 1])
    assert len(good) == 25
    assert len(lost) == 1
    assert np.isfinite(lost.q).all()


def test_what_cannot_be_recorded_is_refused_before_a_step():
    batch = bouncing().build_batch(2, threads=1)
    with pytest.raises(ValueError, match="'torques' cannot be recorded in a batch"):
        batch.run(0.1, record=("torques",))
    with pytest.raises(IndexError, match="world 2"):
        batch.run(0.1, [2])
    with pytest.raises(ValueError, match="nothing to do"):
        batch.run(0.1, every=0)
    assert batch.time[0] == 0.0
