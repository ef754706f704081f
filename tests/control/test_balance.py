"""Balance: a person stays on both feet by internal torques and the ground alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import poise
from poise.control.balance import Balance
from poise.control.support_polygon import edge_distance
from poise.motion.rotations import quat_exp

DT = 1 / 240
KNEE = np.radians(60.0)
PUSHED = 0.1
"""How long a push lasts; s."""


def person(balance: Balance | None = None) -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    world = scene.build(dt=DT)
    if balance is not None:
        world.add_controller(balance, name="balance")
    return world


def squat(world: poise.World) -> Callable[[float], np.ndarray]:
    """Coordinates over time: down to 60° of the knees and up again within five seconds."""
    model, rest = world.model, world.q.copy()

    def start(name: str) -> int:
        return int(model.joint_q_start[model.joint_names.index(f"hero/{name}")])

    def pose(time: float) -> np.ndarray:
        depth = 0.5 * (1.0 - np.cos(2.0 * np.pi * time / 5.0))
        ankle, knee, hip = 0.33 * depth, KNEE * depth, 1.45 * depth
        q = rest.copy()
        for side in "lr":
            q[start(f"knee_{side}")] += knee
            q[start(f"ankle_{side}")] += ankle
            q[start(f"hip_{side}") : start(f"hip_{side}") + 4] = quat_exp(np.array((0.0, -hip, 0.0)))
        q[3:7] = quat_exp(np.array((0.0, hip - knee + ankle, 0.0)))  # so that the soles are flat
        return q

    return pose


def pushes(world: poise.World, balance: Balance, direction: tuple[float, float], share: float) -> None:
    """Push at the chest so that the capture point comes to a share of the way to the edge of the support."""
    reading = balance.reading
    assert reading is not None
    omega = np.sqrt(9.81 / reading.com[2])
    way = share * edge_distance(reading.capture_point, reading.support, direction)
    force = way * omega * 70.0 / PUSHED
    toward = np.degrees(np.arctan2(direction[1], direction[0]))
    print(
        f"\n{100 * share:.0f} % of what the stance takes: {force:.0f} N for {PUSHED:g} s towards {toward:.0f} degrees"
    )
    for _ in range(round(PUSHED / DT)):
        world.apply_force("hero/torso", (force * direction[0], force * direction[1], 0.0))
        world.step()


def check_upright(world: poise.World, balance: Balance, feet: list[np.ndarray], moved: float = 0.01) -> None:
    """A foot that bears next to nothing for a moment, as the far one does in a push from the side, may creep."""
    reading = balance.reading
    assert reading is not None
    middle = 0.5 * (reading.support.min(axis=0) + reading.support.max(axis=0))
    assert reading.com[:2] == pytest.approx(middle, abs=0.02)
    assert float(world.body("hero/head").position[2]) > 1.45
    way = farthest(world, feet)
    print(
        f"\nafter {world.time:.1f} s: feet moved by {1e3 * way:.2f} mm, the centre of mass is "
        f"{1e3 * np.linalg.norm(reading.com[:2] - middle):.1f} mm from the middle of the support"
    )
    assert way < moved


def farthest(world: poise.World, feet: list[np.ndarray]) -> float:
    """How far the foot that moved more is from its place; m."""
    return max(float(np.linalg.norm(now - place)) for now, place in zip(places(world), feet, strict=True))


def places(world: poise.World) -> list[np.ndarray]:
    return [world.body(f"hero/foot_{side}").position for side in "lr"]


def test_nobody_holds_the_root() -> None:
    balance = Balance()
    world = person(balance)
    world.step(12)
    wanted = balance.update(
        poise.sim.controllers.StateToAct(world.q.copy(), world.v.copy(), world.time, {"pose": world.q.copy()}, DT)
    )
    assert np.asarray(wanted.tau)[:6].tolist() == [0.0] * 6
    assert wanted.forces is None
    assert wanted.drive is None


def test_a_person_stands() -> None:
    balance = Balance()
    world = person(balance)
    feet = places(world)
    world.step(720)
    check_upright(world, balance, feet)
    weight = sum(contact.force[2] for contact in world.report().contacts)
    assert abs(weight) == pytest.approx(70.0 * 9.81, rel=0.02)


def test_a_person_stands_through_a_push() -> None:
    balance = Balance()
    world = person(balance)
    feet = places(world)
    world.step(480)
    pushes(world, balance, (1.0, 0.0), 0.8)
    world.step(720)
    check_upright(world, balance, feet)


def test_without_the_aid_the_push_fells_them() -> None:
    """Or the test above would not tell anything."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    world = scene.build(dt=DT)
    gains = np.full(world.model.nv, 300.0)
    gains[:6] = 0.0
    world.drive = poise.dynamics.Drive(gains, 0.1 * gains, world.q.copy())
    for _ in range(24):
        world.apply_force("hero/torso", (240.0, 0.0, 0.0))
        world.step()
    world.step(960)
    assert float(world.body("hero/head").position[2]) < 1.0


def test_who_has_fallen_lies_still() -> None:
    """A push of three times what a stance can take fells them; then nothing thrashes about."""
    balance = Balance(strength=200.0)
    world = person(balance)
    world.step(24)
    pushes(world, balance, (1.0, 0.0), 3.0)
    world.step(960)
    assert balance.reading is not None
    assert balance.reading.fallen
    assert float(world.body("hero/head").position[2]) < 0.8
    assert poise.dynamics.energy(world.model, world.q, world.v).kinetic < 0.5


def squats(seconds: float) -> None:
    """Check a person who does squats: knees follow, feet stay, the centre of mass stays over them."""
    world = person()
    reference = squat(world)
    balance = Balance(reference)
    world.add_controller(balance)
    knee = int(world.model.joint_q_start[world.model.joint_names.index("hero/knee_l")])
    feet, deepest, off, way = places(world), 0.0, 0.0, 0.0
    for _ in range(round(4 * seconds)):
        world.step(60)
        assert balance.reading is not None
        assert edge_distance(balance.reading.com[:2], balance.reading.support) > 0.05
        off = max(off, abs(float(world.q[knee] - reference(world.time)[knee])))
        assert off < 0.15
        deepest, way = max(deepest, float(world.q[knee])), max(way, farthest(world, feet))
        assert way < 5e-3
    print(
        f"\nsquats of {seconds:g} s: knees bend to {np.degrees(deepest):.1f} of {np.degrees(KNEE):.1f}° and are off "
        f"by {np.degrees(off):.1f}° at most, feet move by {1e3 * way:.2f} mm"
    )
    assert deepest > 0.9 * KNEE


def test_a_person_squats() -> None:
    squats(5.0)


@pytest.mark.slow
def test_a_person_does_squats_for_twenty_seconds() -> None:
    squats(20.0)


@pytest.mark.slow
def test_a_person_stands_for_twenty_seconds() -> None:
    balance = Balance()
    world = person(balance)
    feet = places(world)
    world.step(4800)
    check_upright(world, balance, feet)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(8))
def test_a_person_stands_through_pushes_from_eight_sides(k: int) -> None:
    balance = Balance()
    world = person(balance)
    feet = places(world)
    world.step(480)
    pushes(world, balance, (float(np.cos(k * np.pi / 4)), float(np.sin(k * np.pi / 4))), 0.8)
    world.step(1440)
    check_upright(world, balance, feet)


def test_states_go_back_bit_for_bit() -> None:
    world = person(Balance())
    world.step(24)
    state = world.state
    world.step(24)
    end = world.q.copy()
    world.state = state
    world.step(24)
    assert np.array_equal(world.q, end)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="stiffness is -1"):
        Balance(stiffness=-1.0)
    with pytest.raises(ValueError, match="feet is empty"):
        Balance(feet=())
    with pytest.raises(ValueError, match="strength is"):
        Balance(strength=-3.0)
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 0.5), axis="y", name="foot_l")
    with pytest.raises(ValueError, match="is not free"):
        Balance(feet=("foot_l",)).bind(scene.compile())
    with pytest.raises(ValueError, match="foot_q"):
        Balance(feet=("foot_q",)).bind(scene.compile())
