"""First touches of moving shapes: against bisection of the gap, closed forms, bullets and walls, hostile input."""

import numpy as np
import pytest

import poise
from poise.collision.impacts import impacts
from poise.collision.pipeline import Collider, contacts

KINDS = {
    "sphere": lambda rng: poise.sphere(rng.uniform(0.01, 0.4)),
    "capsule": lambda rng: poise.capsule(rng.uniform(0.01, 0.2), rng.uniform(0.02, 1.0)),
    "box": lambda rng: poise.box(*rng.uniform(0.02, 0.8, 3)),
}
PAIRS = [(a, b) for k, a in enumerate(KINDS) for b in list(KINDS)[k:]]


def flying_pair(rng, one, other):
    """Two shapes apart from each other, on free bodies, and how they fly."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(KINDS[one](rng), name="a")
    scene.add(KINDS[other](rng), name="b", position=rng.normal(size=3))
    model = scene.compile()
    q = model.q_rest.copy()
    for start in (3, 10):
        turn = rng.normal(size=4)
        q[start : start + 4] = turn / np.linalg.norm(turn)
    v = rng.normal(size=12) * np.repeat(rng.uniform(0.0, 20.0, 4), 3)
    if rng.random() < 0.7:  # most others miss
        v[6:9] = v[0:3] - q[7:10] * rng.uniform(2.0, 40.0) + rng.normal(size=3)
    return model, q, v


def gap_at(collider, q, v, t):
    """Distance of the two shapes after a time, found by the collider at a pose moved on by constant twists."""
    collider.place(poise.dynamics.displaced(collider.model, q, v, t))
    collider.touch(1e3)
    return min(contact.gap for contact in collider.contacts())


def first_by_looking(collider, q, v, dt, near, looks=400):
    """The first of many looks at which the gap is within `near`, narrowed down by bisection; None where there is none.

    Between two looks a touch may be overlooked: an answer is right, but none proves nothing.
    """
    times = np.linspace(0.0, dt, looks)
    hit = next((k for k, t in enumerate(times) if gap_at(collider, q, v, t) <= near), None)
    if hit in (None, 0):
        return None if hit is None else 0.0
    low, high = times[hit - 1], times[hit]
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if gap_at(collider, q, v, middle) <= near else (middle, high)
    return high


def check_pair(seed, one, other, dt=0.1, near=1e-7):
    rng = np.random.default_rng([seed, PAIRS.index((one, other))])
    model, q, v = flying_pair(rng, one, other)
    collider = Collider(model)
    if gap_at(collider, q, v, 0.0) <= 1e-3:
        return None
    found = impacts(model, q, v, dt, near)
    deep = 0.4 * near  # a step may end anywhere between half of `near` and all of it
    wanted = first_by_looking(collider, q, v, dt, deep)
    if not found:
        assert wanted is None, (one, other, seed, wanted)
        return False
    time = found[0].time
    # it does happen
    assert gap_at(collider, q, v, time) <= near * 1.001, (one, other, seed)
    # and not before
    assert wanted is None or time <= wanted + 1e-9, (one, other, seed)
    for t in np.linspace(0.0, time, 20)[:-1]:
        assert gap_at(collider, q, v, t) > deep, (one, other, seed)
    return True


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_against_looking(pair):
    found = [check_pair(seed, *pair) for seed in range(12)]
    assert found.count(True) >= 1
    assert found.count(False) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_against_looking_soak(pair):
    found = [check_pair(seed, *pair) for seed in range(100, 1100)]
    assert found.count(True) >= 100
    assert found.count(False) >= 100


@pytest.mark.parametrize("dt", [1 / 1000, 1 / 240, 1 / 60, 1 / 30])
@pytest.mark.parametrize("wall", ["box", "thin box", "capsule"])
def test_a_bullet_does_not_pass_a_wall(dt, wall):
    # a ball of 2 cm at 1,000 m/s, a wall of 1 cm
    rng = np.random.default_rng(3)
    shapes = {"box": (0.01, 1.0, 1.0), "thin box": (0.0001, 1.0, 1.0)}
    for start in rng.uniform(0.02, 0.99 * 1000.0 * dt, 20):
        scene = poise.Scene(gravity=(0, 0, 0))
        scene.add(poise.sphere(0.01), name="bullet", position=(-start, rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3)))
        solid = poise.capsule(0.005, 5.0) if wall == "capsule" else poise.box(*shapes[wall])
        if wall == "capsule":
            scene.bodies[0].position = (-start, 0.0, 0.0)
        scene.add(solid, name="wall", fixed=True)
        model = scene.compile()
        v = np.array([1000.0, 0, 0, *rng.normal(size=3) * 100])
        half = {"box": 0.005, "thin box": 0.00005, "capsule": 0.005}[wall]
        (hit,) = impacts(model, model.q_rest, v, dt)
        assert hit.time == pytest.approx((start - 0.01 - half) / 1000.0, abs=1e-11)
        assert contacts(model, poise.dynamics.displaced(model, model.q_rest, v, dt)) == [] or start > 900 * dt


def test_a_miss_is_no_impact():
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.01), name="bullet", position=(-1, 0, 0.02 + 1e-6))
    scene.add(poise.sphere(0.01), name="target", fixed=True)
    model = scene.compile()
    assert impacts(model, model.q_rest, [1000, 0, 0, 0, 0, 0], 1 / 30) == []
    assert impacts(model, model.q_rest, [-1000, 0, 0, 0, 0, 0], 1 / 30) == []


def test_what_touches_already_comes_at_once():
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1), position=(0, 0, 0.05))
    model = scene.compile()
    (hit,) = impacts(model, model.q_rest, np.zeros(6), 0.01)
    assert hit.time == 0.0
    assert hit.normal.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("dt", "near", "what"), [(np.nan, 1e-9, "dt"), (0.1, 0.0, "near"), (0.1, np.nan, "near")])
def test_bad_numbers(dt, near, what):
    scene = poise.Scene()
    scene.add(poise.sphere(0.1))
    model = scene.compile()
    with pytest.raises(ValueError, match=what):
        impacts(model, model.q_rest, np.zeros(6), dt, near)
