"""First touches of moving shapes: against bisection of the gap, closed forms, bullets and walls, hostile input."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

import poise
from collision.crowds import crowd
from collision.flights import Watch, flights
from poise.collision.broadphase.pair_filter import candidate_pairs
from poise.collision.ccd import time_of_impact as module
from poise.collision.ccd.time_of_impact import impacts
from poise.collision.detector import contacts
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.model.shapes import Shape

KINDS = [kind for kind in Solid if kind <= Solid.HULL]
PAIRS = [pair for pair in combinations_with_replacement(KINDS, 2) if pair[1] != Solid.PLANE]
every_pair = pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: f"{pair[0].name}-{pair[1].name}".lower())


def check_flights(kinds: tuple[Solid, Solid], seed: int, n: int) -> None:
    """What is found happens, and not before; what is not found is not seen either."""
    dt, near = 0.1, 1e-6
    deep = 0.4 * near  # a step may end anywhere between half of `near` and all of it
    rng = np.random.default_rng([seed, *kinds])
    watch = Watch(flights(rng, kinds, n, dt))
    apart = watch.gaps(np.zeros(n)) > 1e-3
    assert apart.mean() > 0.8
    time = watch.impacts(dt, near)
    hit = time <= dt
    assert 0.2 < hit[apart].mean() < 0.9
    assert (watch.gaps(np.where(hit, time, 0.0))[hit] <= 1.001 * near).all()
    end = np.minimum(time, dt)
    for part in np.linspace(0.0, 1.0, 30)[:-1]:
        assert (watch.gaps(part * end) > deep)[apart].all()
    seen = watch.first_look(dt, deep, 300)
    assert (hit | ~np.isfinite(seen))[apart].all()
    assert (time <= seen + 1e-9)[apart].all()
    assert np.isfinite(seen[hit & apart]).mean() > 0.9


@every_pair
def test_against_bisection(kinds: tuple[Solid, Solid]) -> None:
    check_flights(kinds, 0, 40)


@pytest.mark.slow
@every_pair
def test_against_bisection_soak(kinds: tuple[Solid, Solid]) -> None:
    check_flights(kinds, 1, 400)


# ---- closed forms ----------------------------------------------------------------------------------------------------


WALLS: dict[str, tuple[Shape, float]] = {
    "box": (poise.box(0.01, 1.0, 1.0), 0.005),
    "thin box": (poise.box(0.0001, 1.0, 1.0), 0.00005),
    "capsule": (poise.capsule(0.005, 5.0), 0.005),
    "disc": (poise.cylinder(1.0, 0.01, quat_wxyz=(0.5**0.5, 0, 0.5**0.5, 0)), 0.005),
    "hull": (poise.convex([(x, y, z) for x in (-0.005, 0.005) for y in (-0.7, 0.7) for z in (-0.7, 0.7)]), 0.005),
    "prism": (
        poise.convex([(x, np.cos(k), np.sin(k)) for x in (-0.005, 0.005) for k in 2 * np.pi * np.arange(100) / 100]),
        0.005,
    ),
}


@pytest.mark.parametrize("dt", [1 / 1000, 1 / 240, 1 / 60, 1 / 30])
@pytest.mark.parametrize("wall", WALLS)
def test_a_bullet_does_not_pass_a_wall(dt: float, wall: str) -> None:
    """A ball of 2 cm at 1,000 m/s, a wall of 1 cm: whatever the step, it is found, and when."""
    rng = np.random.default_rng(3)
    solid, half = WALLS[wall]
    aside = 0.0 if wall == "capsule" else 0.3
    for start in rng.uniform(0.02, 0.99 * 1000.0 * dt, 20):
        scene = poise.Scene(gravity=(0, 0, 0))
        place = (-start, rng.uniform(-aside, aside), rng.uniform(-aside, aside))
        scene.add(poise.sphere(0.01), name="bullet", position=place)
        scene.add(solid, name="wall", fixed=True)
        model = scene.compile()
        v = np.array([1000.0, 0, 0, *rng.normal(size=3) * 100])
        (hit,) = impacts(model, model.q_rest, v, dt)
        assert hit.time == pytest.approx((start - 0.01 - half) / 1000.0, abs=1e-11)
        assert 0.0 <= hit.gap <= module.NEAR
        assert contacts(model, poise.dynamics.displaced(model, model.q_rest, v, dt)) == [] or start > 900 * dt


def rod(wall: Shape, distance: float, spin: float) -> tuple[Model, np.ndarray]:
    """A rod of 1 m and 2 cm that spins, upright, at a distance of its axis from the floor."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(wall, name="wall", fixed=True, position=(0, 0, 0 if isinstance(wall, type(poise.plane())) else -0.5))
    scene.add(poise.capsule(0.01, 1.0), name="rod", position=(0, 0, distance), quat_wxyz=(0.5**0.5, 0, 0.5**0.5, 0))
    model = scene.compile()
    return model, np.array([0, 0, 0, 0, spin, 0.0])


@pytest.mark.parametrize("spin", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize(
    "wall", [poise.plane(), poise.box(5, 5, 1), poise.cylinder(3, 1)], ids=["plane", "box", "disc"]
)
def test_a_rod_that_turns_meets_the_floor(wall: Shape, spin: float) -> None:
    """When sin θ / 2 = the distance, less the radius."""
    model, v = rod(wall, 0.31, spin)
    (hit,) = impacts(model, model.q_rest, v, 1.0 / spin)
    assert hit.time * spin == pytest.approx(np.arcsin(0.6), abs=1e-7)


@pytest.mark.parametrize(
    "wall", [poise.plane(), poise.box(5, 5, 1), poise.cylinder(3, 1)], ids=["plane", "box", "disc"]
)
def test_a_rod_that_spins_beside_the_floor_does_not_meet_it(wall: Shape) -> None:
    """Its ends go by at 500 m/s, up to ten times and 0.1 mm away: the search goes on to the end."""
    model, v = rod(wall, 0.5101, 1000.0)
    assert impacts(model, model.q_rest, v, 1 / 30) == []


def test_near_pairs_are_all_that_is_needed() -> None:
    """Boxes around motions leave out nothing: the same as with every pair of shapes."""
    rng = np.random.default_rng(0)
    for seed in range(4):
        model = crowd(40, seed, room=2.0)
        v = rng.normal(size=model.nv) * 5.0
        quick = impacts(model, model.q_rest, v, 0.1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "swept_pairs", lambda model, *_: candidate_pairs(model))
            plain = impacts(model, model.q_rest, v, 0.1)
        assert sum(one.time > 0.0 for one in plain) > 10
        assert [(one.a, one.b, one.time) for one in quick] == [(one.a, one.b, one.time) for one in plain]


def test_a_miss_is_no_impact() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.01), name="bullet", position=(-1, 0, 0.02 + 1e-6))
    scene.add(poise.sphere(0.01), name="target", fixed=True)
    model = scene.compile()
    assert impacts(model, model.q_rest, [1000, 0, 0, 0, 0, 0], 1 / 30) == []
    assert impacts(model, model.q_rest, [-1000, 0, 0, 0, 0, 0], 1 / 30) == []


def test_what_touches_already_comes_at_once() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1), position=(0, 0, 0.05))
    model = scene.compile()
    (hit,) = impacts(model, model.q_rest, np.zeros(6), 0.01)
    assert hit.time == 0.0
    assert hit.normal.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("dt", "near", "what"), [(np.nan, 1e-9, "dt"), (0.1, 0.0, "near"), (0.1, np.nan, "near")])
def test_bad_numbers(dt: float, near: float, what: str) -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1))
    model = scene.compile()
    with pytest.raises(ValueError, match=what):
        impacts(model, model.q_rest, np.zeros(6), dt, near)
