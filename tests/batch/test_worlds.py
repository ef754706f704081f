"""Many worlds together: each moves as it would alone, whoever is beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from crowd_bits import bits, same, shuffle_worlds
from poise.batch.worlds import Batch
from poise.formulations.driver import Stepper
from poise.kernel.memory import F64
from poise.model.model import Model


def toys() -> poise.Scene:
    """Boxes, balls, a capsule and a door with limits above a floor."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(4):
        shape = poise.box(0.2, 0.15, 0.1) if k % 2 else poise.sphere(0.1)
        scene.add(shape, name=f"toy {k}", position=(0.05 * k, 0.02 * k, 0.3 + 0.25 * k))
    hinge = {"axis": "y", "anchor": (0, 0, 0.5), "limits": (-0.5, 0.5), "friction": 0.3}
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), name="pendulum", position=(2, 0, 2), **hinge)
    return scene


def balls() -> poise.Scene:
    """Balls without friction above a floor, one with friction on its own, and a door: impulses are unique.

    A ball that is squeezed between two others may have several answers with friction.
    """
    scene = poise.Scene()
    scene.add_ground()
    for k in range(4):
        ball = poise.sphere(0.1 + 0.02 * k, material=poise.Material(friction=0.0))
        scene.add(ball, name=f"ball {k}", position=(0.05 * k, 0.02 * k, 0.3 + 0.25 * k))
    scene.add(poise.sphere(0.1), name="rough ball", position=(-4, 0, 0.3))
    hinge = {"axis": "y", "anchor": (0, 0, 0.5), "limits": (-0.5, 0.5), "friction": 0.3}
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), name="pendulum", position=(2, 0, 2), **hinge)
    return scene


def hero(friction: float = 0.8) -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground(friction=friction)
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero", position=(0, 0, 0.05))
    return scene


def thrown(model: Model, n: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A state for each world, so that contacts differ from one to the next."""
    rng = np.random.default_rng(seed)
    q = np.repeat(model.q_rest[None], n, axis=0)
    q[:, [0, 1, 7, 8, 14, 15]] += rng.uniform(-0.1, 0.1, (n, 6))
    return q, rng.normal(size=(n, model.nv))


def thrown_toys(n: int, **options: Any) -> Batch:
    batch = toys().build_batch(n, dt=1 / 240, **({"threads": 1} | options))
    batch.q, batch.v = thrown(batch.model, n)
    return batch


@pytest.fixture
def rows_for_all_that_may_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a world overlooks up to 0.1 mm that impulses bring about, and the wider margins of lanes do not."""
    usual = poise.Reduced.rules
    monkeypatch.setattr(poise.Reduced, "rules", lambda self: usual(self) | {"margin": 0.05, "close": 0.5})


def check_beside_worlds_alone(batch: Batch, tight: poise.Reduced, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Step a batch and each of its worlds alone: they end at one place but for what the solver's tolerance leaves.

    That grows from a step to the end of the run no more than as much at the first velocities does, which is let grow
    beside it; and both leave it in each step. A step that ends short of the tolerance leaves more: such worlds are out.
    Contacts of each step and world are given back.
    """
    n = len(batch.q)
    alone, others = ([Stepper(batch.model, F64, split=False, **tight.rules()) for _ in range(n)] for _ in range(2))
    for k, (one, other) in enumerate(zip(alone, others, strict=True)):
        one.space.s.q[...] = other.space.s.q[...] = batch.q[k]
        one.space.s.v[...] = batch.v[k]
        other.space.s.v[...] = batch.v[k] + tight.tolerance * rng.normal(size=batch.model.nv)
    solved, counts = np.ones(n, bool), []
    for _ in range(steps):
        batch.step()
        counts.append(batch.contacts)
        for one in (*alone, *others):
            one.step(batch.dt)
            assert one.stats.look[0] == 0  # nothing was overlooked
        solved &= batch.solved & [one.told.status == one.told.shift_status == "solved" for one in alone]
    assert solved.any()
    grown = max(np.abs(one.space.s.q - other.space.s.q).max() for one, other in zip(alone, others, strict=True))
    assert grown < 1e4 * tight.tolerance
    for k in np.flatnonzero(solved):
        assert batch.q[k] == pytest.approx(alone[k].space.s.q, abs=2 * steps * grown)
    return np.array(counts)


@pytest.mark.usefixtures("rows_for_all_that_may_touch")
def test_worlds_move_as_each_does_alone() -> None:
    tight = poise.Reduced(tolerance=1e-10, sweeps=300)
    batch = balls().build_batch(11, tight, dt=1 / 240, precision="f64", threads=1)
    batch.q, batch.v = thrown(batch.model, 11)
    counts = check_beside_worlds_alone(batch, tight, 120, np.random.default_rng(4))
    assert (counts.min(axis=1) < counts.max(axis=1)).any()


def ice() -> poise.Scene:
    """Nothing has friction, limbs neither: impulses have one answer, however many contacts share a load."""
    scene = hero()
    for body in scene.bodies:
        for shape in body.shapes:
            shape.material = poise.Material(friction=0.0)
    return scene


@pytest.mark.usefixtures("rows_for_all_that_may_touch")
def test_humanoids_of_a_batch_fall_as_those_of_worlds() -> None:
    tight = poise.Reduced(tolerance=1e-12)
    batch = ice().build_batch(9, tight, dt=1 / 240, precision="f64", threads=1)
    rng = np.random.default_rng(1)
    batch.v[:, 6:] = 0.3 * rng.normal(size=(9, batch.model.nv - 6))
    assert check_beside_worlds_alone(batch, tight, 100, rng)[-1].min() >= 4


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_nobody_feels_who_is_beside_him(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits whichever worlds make a group, whatever lane they sit in, on whatever threads."""
    n = 37
    expected = thrown_toys(n, precision=precision)
    for _ in range(40):
        expected.step(2)
    shuffle_worlds(monkeypatch)
    for threads in (1, 3):
        batch = thrown_toys(n, precision=precision, threads=threads)
        for _ in range(40):
            batch.step(2)
        assert same(bits(batch), bits(expected))


def test_rows_of_limits_are_those_of_a_world_alone() -> None:
    """Rows of ball joints are found in rounds: a lane that needs no more of them stays as it is while others go on. It
    is seen where a turn ends at its limit to the last bits, which is rare: so there are many. Some turn so fast that
    they are lost, and have no rows then.
    """
    scene, rng = hero(), np.random.default_rng(0)
    many, one = (scene.build_batch(n, dt=1 / 120, precision="f32", threads=1) for n in (16, 1))

    def rows(batch: Batch) -> dict[int, tuple[np.ndarray, ...]]:
        engine = batch._crew.engines[0]
        now, worlds, seats = engine.rows.now, engine._seats.world[0], np.flatnonzero(~batch.diverged).tolist()
        lanes = [int(np.flatnonzero(worlds == k)[0]) for k in seats]
        spans = [slice(int(now.first[0]), int(now.first[0] + now.count[0, lane])) for lane in lanes]
        return {
            k: tuple(array[span, lane].copy() for array in (now.phi, now.Jdof, now.id))
            for k, lane, span in zip(seats, lanes, spans, strict=True)
        }

    seen = 0
    for trial in range(150):
        if trial % 3 == 0:
            many.reset(q_noise=1.0, v_noise=20.0, rng=rng)
        q, v = many.q.copy(), many.v.copy()
        many.reset(q=q, v=v)
        many.step()
        found = rows(many)
        for k in range(16):
            one.reset(q=q[k], v=v[k])
            one.step()
            assert many.diverged[k] == one.diverged[0]
            assert np.array_equal(many.v[k], one.v[0])  # also where sweeps are spent
            if not many.diverged[k]:
                assert same(found[k], rows(one)[0])
                seen += len(found[k][0])
    assert seen > 10_000


def test_a_world_is_the_same_however_many_there_are() -> None:
    few, many = thrown_toys(3, precision="f32"), toys().build_batch(50, dt=1 / 240, precision="f32", threads=2)
    many.q[:3], many.v[:3] = few.q, few.v
    many.v[3:] = np.random.default_rng(2).normal(size=(47, few.model.nv)) * 3.0
    few.step(80)
    many.step(80)
    assert np.array_equal(few.q, many.q[:3])
    assert not np.array_equal(many.q[0], many.q[5])


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_steps_at_once_are_steps_one_by_one(precision: str) -> None:
    one, other = thrown_toys(20, precision=precision), thrown_toys(20, precision=precision)
    for _ in range(60):
        one.step()
    other.step(60)
    assert same(bits(one)[:2], bits(other)[:2])


def test_a_world_that_is_lost_is_frozen_and_others_go_on() -> None:
    n = 21
    sound, batch = thrown_toys(n, precision="f64"), thrown_toys(n, precision="f64", threads=2)
    sound.step(30)
    batch.step(30)
    batch.tau[4, 0], batch.tau[17, 3] = np.nan, np.inf
    kept = batch.q[[4, 17]].copy()
    sound.step(30)
    batch.step(30)
    lost = np.isin(np.arange(n), [4, 17])
    assert np.array_equal(batch.diverged, lost)
    assert np.array_equal(batch.q[lost], kept)
    assert np.isfinite(batch.q).all()
    assert np.isfinite(batch.v).all()
    assert np.array_equal(batch.q[~lost], sound.q[~lost])
    assert batch.time[lost] == pytest.approx(30 / 240)
    batch.tau[...] = 0.0
    batch.step(5)
    assert np.array_equal(batch.q[lost], kept)
    batch.reset(batch.diverged)
    assert not batch.diverged.any()
    batch.step(5)
    assert batch.time[lost] == pytest.approx(5 / 240)


def test_a_world_may_be_lost_in_the_middle_of_a_call() -> None:
    """A speed that overflows, at 3.4028e38, in the 10th step if nothing does before: 4.2 kg gain 3e34 m/s in each.

    The neighbours are as they are without.
    """
    sound, batch = thrown_toys(8, precision="f32"), thrown_toys(8, precision="f32")
    batch.v[2, 0], batch.tau[2, 0] = 3.4e38, 3e37
    sound.step(40)
    batch.step(40)
    assert batch.diverged.tolist() == [k == 2 for k in range(8)]
    assert 0.0 <= batch.time[2] < 40 / 240
    others = np.arange(8) != 2
    assert np.array_equal(batch.q[others], sound.q[others])
    assert np.isfinite(batch.q).all()
    assert np.isfinite(batch.v).all()


def test_all_worlds_may_be_lost() -> None:
    batch = thrown_toys(5)
    batch.tau[...] = np.nan
    batch.step(3)
    assert batch.diverged.all()
    batch.step(3)
    assert (batch.time == 0.0).all()


def test_what_was_reset_remembers_nothing() -> None:
    """A world that was reset is as one that never did anything else."""
    fresh, used = thrown_toys(9, precision="f64"), thrown_toys(9, precision="f64")
    used.step(100)
    used.reset([2, 5])
    q, v = thrown(used.model, 9)
    used.q[[2, 5]], used.v[[2, 5]] = q[[2, 5]], v[[2, 5]]
    fresh.step(70)
    used.step(70)
    assert np.array_equal(fresh.q[[2, 5]], used.q[[2, 5]])


def test_rooms_grow_as_they_must() -> None:
    """Many contacts in some worlds: more rows, and more to remember, than there is room for at first."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(16):
        scene.add(poise.box(0.1, 0.1, 0.1), name=f"box {k}", position=(0.3 * (k % 4), 0.3 * (k // 4), 1.0))
    batch = scene.build_batch(12, dt=1 / 120, precision="f64", threads=2)
    heights = 2 + 7 * np.arange(16)
    batch.q[::2, heights] = 0.05
    batch.step(20)
    assert batch.contacts[::2].min() >= 64
    assert batch.contacts[1] == 0
    assert (batch.diverged == 0).all()
    assert batch.q[0, heights] == pytest.approx(0.05, abs=1e-3)
    alone = scene.build(dt=1 / 120)
    alone.q[heights] = 0.05
    alone.step(20)
    assert batch.q[0] == pytest.approx(alone.q, abs=1e-4)


def test_float32_is_float64_but_for_its_precision() -> None:
    """Until they meet, worlds agree to rounding; after that on the whole: heights, contacts."""
    short, long = thrown_toys(64, precision="f32"), thrown_toys(64, precision="f64")
    for batch in (short, long):
        batch.step(20)
    assert np.abs(short.q - long.q).max() < 1e-4
    for batch in (short, long):
        batch.step(460)
        assert not batch.diverged.any()
        assert batch.residual.max() <= 1e-4
    heights = [2, 9, 16, 23]
    assert short.q[:, heights].mean() == pytest.approx(long.q[:, heights].mean(), abs=0.01)
    assert short.q[:, heights].min() > 0.04
    assert short.contacts.mean() == pytest.approx(long.contacts.mean(), rel=0.15)


def test_worlds_are_put_together_by_their_rows() -> None:
    batch = thrown_toys(40, precision="f64")
    batch.step(60)
    batch._records.lost[7] = 1
    assert batch._order.arrange() == 5
    records = batch._records
    counts, order = records.count.reshape(40, -1), [k for k in records.order.tolist() if k >= 0]
    expected = sorted((k for k in range(40) if k != 7), key=lambda k: (-counts[k, 2], -counts[k, 0], k))
    assert order == expected
    assert len({*counts[:, 2]}) > 3


def test_a_loop_that_has_turned_elsewhere_begins_at_its_own_turn() -> None:
    """Wheels on loops that end after more than a turn: one that begins anew has all of its way before it, whatever
    others have turned by then.
    """
    scene = poise.Scene(gravity=(0, 0, 0))
    wheel = scene.add(poise.cylinder(0.3, 0.1, mass=1.0), name="wheel")
    scene.loop("hinge", None, wheel, axis="z", limits=(-9.0, 9.0))
    used, fresh = (scene.build_batch(3, dt=1 / 240, precision="f64", threads=1) for _ in range(2))
    used.v[:, 5] = 8.0
    used.step(240)
    used.reset([1])
    fresh.v[1, 5] = used.v[1, 5] = 6.0
    for batch in (used, fresh):
        batch.step(240)
    assert np.array_equal(used.q[1], fresh.q[1])
    assert used.v[1, 5] == pytest.approx(6.0, rel=1e-3)  # 6 rad of 9
    assert abs(used.v[0, 5]) < 1.0  # 16 rad would be too far


def test_what_a_step_took_is_told_whoever_bounces_beside() -> None:
    """Worlds that bounce are solved once more, those beside them are not."""
    scene = poise.Scene()
    scene.add_ground(restitution=0.5)
    scene.add(poise.box(0.4, 0.3, 0.2, mass=1.0), name="box", position=(0.0, 0.0, 0.1))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=3.0), name="top", position=(0.08, 0.0, 0.3))
    told = []
    for n in (1, 2):
        batch = scene.build_batch(n, dt=1 / 240, precision="f64", threads=1)
        batch.step(30)
        batch.tau[0, 0] = 3.0
        batch.q[1:, [2, 9]] += 0.003
        batch.v[1:, [2, 9]] = -1.0
        batch.step()
        told.append((batch.sweeps[0], batch.newton_steps[0], *batch.q[0]))
        assert (batch.v[1:, 2] > 0.1).all()
    assert told[0][0] > 0
    assert told[0] == told[1]
