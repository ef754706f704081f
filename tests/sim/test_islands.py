"""Islands: what rows do not tie together does not know of each other."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.constraints.row_store import CONTACT
from poise.formulations.driver import Stepper
from poise.sim.world import World

BOX = 0.2


def row_of_boxes(n: int, apart: float) -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        turn = (np.cos(0.1 * k), 0.0, 0.0, np.sin(0.1 * k))
        place = (apart * k, 0, 0.5 * BOX + 0.03 * (k + 1))
        scene.add(poise.box(BOX, BOX, BOX, mass=1.0 + k), name=f"box {k}", position=place, quat_wxyz=turn)
    return scene


def stepper_of(world: World) -> Stepper:
    assert isinstance(world._stepper, Stepper)
    return world._stepper


def test_boxes_apart_are_as_each_alone() -> None:
    together = row_of_boxes(4, 1.0).build(dt=1 / 200)
    alone = []
    for k in range(4):
        scene = poise.Scene()
        scene.add_ground()
        turn = (np.cos(0.1 * k), 0.0, 0.0, np.sin(0.1 * k))
        place = (1.0 * k, 0, 0.5 * BOX + 0.03 * (k + 1))
        scene.add(poise.box(BOX, BOX, BOX, mass=1.0 + k), name=f"box {k}", position=place, quat_wxyz=turn)
        alone.append(scene.build(dt=1 / 200))
    for world in (together, *alone):
        world.step(100)
    assert stepper_of(together).islands.count[0] == 4
    for k, world in enumerate(alone):
        # how far ahead contacts are looked for depends on the fastest of all
        assert np.abs(together.q[7 * k : 7 * k + 7] - world.q).max() < 1e-9
        assert np.abs(together.v[6 * k : 6 * k + 6] - world.v).max() < 1e-6


def test_boxes_that_touch_are_one_island() -> None:
    world = poise.Scene()
    world.add_ground()
    for k in range(5):
        world.add(poise.box(BOX, BOX, BOX, mass=1.0), name=f"box {k}", position=(0, 0, BOX * (k + 0.5)))
    stack = world.build(dt=1 / 200)
    stack.step(5)
    islands = stepper_of(stack).islands
    assert islands.count[0] == 1
    assert islands.largest[0] == stepper_of(stack).n_rows


def test_a_lift_does_not_join_what_stands_on_it() -> None:
    scene = poise.Scene()
    lift = poise.motion.KeyedPath([0.0, 1.0], [(0, 0, 0), (0, 0, 1)])
    scene.add(poise.box(4, 4, 0.1), name="lift", kinematic=lift)
    for k in range(3):
        scene.add(poise.box(BOX, BOX, BOX, mass=1.0), name=f"box {k}", position=(k - 1.0, 0, 0.05 + 0.5 * BOX))
    world = scene.build(dt=1 / 200)
    world.step(40)
    assert stepper_of(world).islands.count[0] == 3


def test_a_loop_joins_trees() -> None:
    scene = row_of_boxes(2, 1.0)
    world = scene.build(dt=1 / 200)
    world.step(40)
    assert stepper_of(world).islands.count[0] == 2
    world.attach("box 0", "box 1")
    world.step()
    assert stepper_of(world).islands.count[0] == 1


def test_a_fast_body_elsewhere_leaves_the_tolerance_of_others_alone() -> None:
    """Residuals are measured within an island: a stack is not solved worse because something hits the ground hard."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(3):
        scene.add(poise.box(BOX, BOX, BOX, mass=1.0), name=f"box {k}", position=(0, 0, BOX * (k + 0.5)))
    scene.add(poise.sphere(0.5, mass=50.0), name="ball", position=(5, 0, 3))
    world = scene.build(dt=1 / 200)
    world.step(100)
    world.body("ball").place((5, 0, 0.52), velocity=(0, 0, -30))
    before = world.q[:21].copy()
    world.step(3)
    assert np.abs(world.q[:21] - before).max() < 1e-6


def test_there_is_room_for_islands_that_grow() -> None:
    """Many boxes that fall onto each other: first all apart, then one island of more rows than there was room for."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(12):
        place = (0.19 * (k % 4), 0.19 * (k // 4), 0.15 + 0.25 * (k % 3))
        scene.add(poise.box(BOX, BOX, BOX, mass=1.0), name=f"box {k}", position=place)
    world = scene.build(dt=1 / 200)
    world.step()
    first = stepper_of(world).islands.counts()["room"]
    world.step(200)
    assert stepper_of(world).islands.counts()["room"] > first
    assert np.isfinite(world.q).all()


def test_work_grows_with_the_number_of_islands_alone() -> None:
    """Steps of 64 boxes take about 16 times as many products as those of four at most, where more boxes do not differ
    more: a dense matrix of all rows would take 256 times as many.
    """

    def work(n: int) -> float:
        world, products = row_of_boxes(n, 0.5).build(dt=1 / 200), 0.0
        for _ in range(100):
            world.step()
            products += world.report().work
        return products

    assert 0.0 < work(64) < 32 * work(4)


@pytest.mark.parametrize("n", [1, 7, 20])
def test_islands_part_the_rows(n: int) -> None:
    """Every row is in one island, with every tree that it is on."""
    rng = np.random.default_rng(n)
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        place = (*rng.uniform(-0.3, 0.3, 2), 0.2 + 0.1 * k)
        scene.add(poise.sphere(0.1, mass=1.0), name=f"ball {k}", position=place)
    world = scene.build(dt=1 / 200)
    for _ in range(20):
        world.step(10)
        stepper = stepper_of(world)
        i, rows = stepper.islands, stepper.rows.now
        count = int(i.count[0])
        slots = [set(i.block_slot[slice(*i.block_start[k : k + 2])].tolist()) for k in range(count)]
        links = [set(i.link[slice(*i.link_start[k : k + 2])].tolist()) for k in range(count)]
        listed = sorted(slot for some in slots for slot in some)
        contacts = int(rows.first[CONTACT]) + 3 * np.arange(rows.count[CONTACT])
        assert listed == contacts.tolist()
        assert sum(map(len, links)) == len({link for some in links for link in some})
        for some, trees in zip(slots, links, strict=True):
            for slot in some:
                for body in (int(rows.a[slot]), int(rows.b[slot])):
                    link = int(world.model.body_link[body]) if body >= 0 else -1
                    assert link < 0 or link in trees
