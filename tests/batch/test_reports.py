"""Reports of worlds of a batch: they read what the step has noted, and tell what those of a `World` tell."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import poise
from poise.batch.worlds import Batch
from poise.collision.detector import Collider

EXACT = poise.Reduced(tolerance=1e-12)
DT = 1 / 240


def shelf() -> poise.Scene:
    """A ball on a fixed box, whose shape is the second one of the pair, and a box that leans on nothing."""
    scene = poise.Scene()
    scene.add_ground(friction=0.5)
    scene.add(poise.box(1.0, 1.0, 0.5), name="shelf", position=(0, 0, 0.25), fixed=True)
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.6))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=3.0), name="box", position=(2, 0, 0.1))
    return scene


def places(report: Any) -> list[tuple[Any, ...]]:
    """What a report tells of its contacts but for their forces."""
    return [(c.shape_a, c.shape_b, *c.point, *c.normal, c.depth) for c in report.contacts]


@pytest.mark.parametrize(("precision", "near", "force"), [("f64", 1e-9, 1e-5), ("f32", 1e-5, 0.05)])
def test_contacts_are_those_of_the_step_as_a_world_reports_them(precision: Any, near: float, force: float) -> None:
    """Both begin one step at the same state: the same contacts at the same places (m), with forces (N) that hold
    weights.
    """
    tight = EXACT if precision == "f64" else poise.Reduced(tolerance=1e-6)
    batch, world = shelf().build_batch(11, tight, dt=DT, precision=precision, threads=1), shelf().build(tight, dt=DT)
    batch.step(120)
    world.q[...], world.v[...] = batch.q[7], batch.v[7]
    batch.step()
    world.step()
    told, expected = batch.report(7), world.report()
    assert len(told.contacts) == len(expected.contacts) == 5
    for one, other in zip(places(told), places(expected), strict=True):
        assert one[:2] == other[:2]
        assert one[2:] == pytest.approx(other[2:], abs=near)
    by_pair = {(c.body_a, c.body_b): c for c in told.contacts}
    expected_pair = {(c.body_a, c.body_b): c for c in expected.contacts}
    assert by_pair.keys() == expected_pair.keys()
    for pair, contact in by_pair.items():
        if "ball" in pair:
            assert contact.force == pytest.approx(expected_pair[pair].force, abs=force)
            up = contact.force[2] if contact.body_b == "ball" else -contact.force[2]
            assert up == pytest.approx(2.0 * 9.81, rel=1e-3)
            assert contact.impulse == pytest.approx(contact.force * DT)
    assert sum(c.force[2] for c in told.contacts if c.body_b == "box") == pytest.approx(3.0 * 9.81, rel=1e-3)
    assert told.overlap == pytest.approx(expected.overlap, abs=near)


def test_a_report_reads_the_step_and_detects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coordinates that were written since do not change it, and it takes few calls of Python, however many contacts."""
    batch = shelf().build_batch(3, EXACT, dt=DT, precision="f64", threads=1)
    batch.step(60)
    before = places(batch.report(1))
    batch.q[1, 2] += 5.0

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a report looks for contacts")

    monkeypatch.setattr(Collider, "find", refuse)
    monkeypatch.setattr(Collider, "touch", refuse)
    assert places(batch.report(1)) == before
    calls = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        batch.report(1)
    finally:
        sys.setprofile(None)
    assert calls < 40


def test_a_world_that_begins_anew_has_nothing_to_report() -> None:
    scene = shelf()
    scene.hinge(None, poise.box(0.1, 0.1, 0.5, mass=2.0), name="arm", axis="y", position=(4, 0, 1), limits=(-0.1, 0.1))
    batch = scene.build_batch(3, EXACT, dt=DT, precision="f64", threads=1)
    assert batch.report(0).contacts == batch.report(0).limits == []
    batch.q[:, batch.model.q_slice("arm")] = 0.1
    batch.step(10)
    batch.reset([1])
    assert [len(batch.report(k).contacts) for k in range(3)] == [5, 0, 5]
    assert [len(batch.report(k).limits) for k in range(3)] == [1, 0, 1]
    assert batch.report(1).overlap == 0.0
    batch.step()
    assert len(batch.report(1).contacts) == 5


def boxes(n: int = 16) -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        scene.add(poise.box(0.1, 0.1, 0.1), name=f"box {k}", position=(0.3 * (k % 4), 0.3 * (k // 4), 0.05))
    return scene


def test_what_is_noted_stays_where_it_was_when_memory_grows() -> None:
    """Worlds with 8 contacts, then one with 64: there is room for 16 at first."""
    batch = boxes().build_batch(9, dt=DT, precision="f64", threads=1)
    heights = 2 + 7 * np.arange(16)
    batch.q[:, heights[2:]] = 2.0
    batch.step(3)
    rooms, before = batch._records.room, [places(batch.report(k)) for k in range(9)]
    lost = np.arange(9) != 4
    batch.tau[lost, 0] = np.nan  # they keep their last step
    batch.q[4, heights] = 0.05
    batch.step()
    assert batch._records.room > rooms
    assert batch.diverged.tolist() == lost.tolist()
    assert [len(batch.report(k).contacts) for k in range(9)] == [64 if k == 4 else 8 for k in range(9)]
    assert all(places(batch.report(k)) == before[k] for k in np.flatnonzero(lost))


def test_reports_do_not_depend_on_threads_or_neighbours() -> None:
    scene = boxes(4)
    found = []
    for n, threads in ((40, 1), (40, 3), (5, 1)):
        batch: Batch = scene.build_batch(n, dt=DT, precision="f32", threads=threads)
        batch.v[:, 2] = -0.1 * (np.arange(n) % 5)
        batch.step(20)
        found.append([(*place, *c.force) for k in range(5) for place, c in zip_of(batch.report(k))])
    assert found[0] == found[1] == found[2]
    assert len(found[0]) >= 60


def zip_of(report: Any) -> zip[Any]:
    """Contacts of a report, with their places."""
    return zip(places(report), report.contacts, strict=True)
