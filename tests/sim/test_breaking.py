"""Loops that break, hands that take hold and let go, and rows that users add."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.batch.world_checks import width_of
from poise.formulations.driver import Stepper
from poise.formulations.step_status import DONE
from poise.kernel.memory import Block
from poise.model import Body, Inertia

G = 9.81


def hung(kind: str = "fixed", dt: float = 1e-3, **options: float) -> poise.World:
    """A beam of 1 m and 2 kg that a joint holds at its end."""
    scene = poise.Scene()
    beam = Body("beam", inertia=Inertia(2.0, com=(0.5, 0, 0), moments=(1e-4, 1 / 6, 1 / 6)))
    scene.add(beam, joint="free", position=(0, 0, 1))
    scene.loop(kind, None, "beam", "wall", position=(0, 0, 1), **options)
    return scene.build(poise.Reduced(tolerance=1e-9), dt=dt)


@pytest.mark.parametrize(
    ("options", "breaks"),
    [
        ({"break_force": 2 * G + 0.01}, False),
        ({"break_force": 2 * G - 0.01}, True),
        ({"break_torque": G + 0.01}, False),
        ({"break_torque": G - 0.01}, True),
    ],
)
def test_a_joint_breaks_at_its_force_or_torque(options: dict[str, float], breaks: bool) -> None:
    """At rest a weld bears m g and m g l/2."""
    world = hung(**options)
    world.step()
    told = world.report().loops
    assert [(loop.name, loop.broke) for loop in told] == [("wall", breaks)]
    assert told[0].force == pytest.approx((0, 0, 2 * G), abs=1e-6)
    assert world.loop("wall").active is not breaks
    world.step(100)
    assert world.v[2] == pytest.approx(-G * 0.1 if breaks else 0.0, abs=1e-3)
    assert len(world.report().loops) == (0 if breaks else 1)


def test_a_ball_on_a_string_breaks_when_it_swings_fast() -> None:
    """A pendulum let go from the horizontal bears 3 m g at the bottom: the joint breaks where 3 m g sin α is enough."""
    scene = poise.Scene()
    scene.add(Body("bob", inertia=Inertia(1.0, moments=(1e-6, 1e-6, 1e-6))), joint="free", position=(1, 0, 0))
    scene.loop("ball", None, "bob", "string", position=(0, 0, 0), break_force=2.0 * G)
    world = scene.build(poise.Reduced(tolerance=1e-9), dt=1e-4)
    while world.loop("string").active:
        world.step()
        assert world.time < 1.0
    sine = -world.q[2]
    assert sine == pytest.approx(2 / 3, abs=2e-3)
    assert np.linalg.norm(world.v[:3]) == pytest.approx(np.sqrt(2 * G * sine), rel=1e-3)
    fall = world.v[2]
    world.step(100)
    assert world.v[2] == pytest.approx(fall - G * 0.01, rel=1e-9)


def test_broken_joints_are_part_of_the_state(tmp_path) -> None:
    world = hung(break_torque=G - 0.01)
    whole = world.state
    world.step(5)
    broken = world.state
    broken.save(tmp_path / "s.npz", world.model)
    world.step(20)
    end = world.state
    world.state = whole
    assert world.loop("wall").active
    world.step(25)
    assert world.state.same_bits(end)
    other = hung(break_torque=G - 0.01)
    other.state = poise.State.load(tmp_path / "s.npz", other.model)
    assert not other.loop("wall").active
    other.step(20)
    assert other.state.same_bits(end)


def test_lanes_break_one_by_one() -> None:
    scene = poise.Scene()
    scene.add(Body("beam", inertia=Inertia(2.0, moments=(0.1, 0.1, 0.1))), joint="free", position=(0, 0, 1))
    scene.loop("fixed", None, "beam", "wall")
    worlds = Stepper(scene.compile(), width_of("f64"))
    worlds.extras.loops.break_force[0] = np.linspace(16.0, 23.0, 8)  # the weight is 19.62 N
    for _ in range(10):
        assert worlds.step(1 / 240) == DONE
    assert worlds.extras.loops.active[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert (worlds.space.s.v[2, :4] < -0.3).all()
    assert np.abs(worlds.space.s.v[2, 4:]).max() < 1e-4


@pytest.mark.parametrize("speed", [8.0, 200.0])
def test_what_happens_elsewhere_breaks_nothing(speed: float) -> None:
    """Steps are split where something is fast, here a ball that flies into a wall; a pendulum beside it bears no more.

    Within an instant it takes away the v²h/r that the part before has left along its string: a step with parts takes
    away what the step before has left, and its own, 2 v²h/r at most.
    """
    lively = poise.Material(restitution=0.5)
    scene = poise.Scene()
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="bob", position=(0, 0, 1))
    scene.loop("ball", None, "bob", "string", position=(0, 0, 2), break_force=2 * (G + 2 * 2.0**2))
    scene.add(poise.box(0.02, 4.0, 4.0, material=lively), name="wall", position=(3, 0, 1), fixed=True)
    scene.add(poise.sphere(0.05, mass=0.1, material=lively), name="ball", position=(2.5, 1, 1))
    world = scene.build(poise.Reduced(tolerance=1e-9), dt=0.01)
    world.body("bob").place(velocity=(0, 2, 0), angular_velocity=(2, 0, 0))
    world.body("ball").place(velocity=(speed, 0, 0))
    parts = 1
    for _ in range(8):
        world.step()
        parts = max(parts, world.report().parts)
        assert world.loop("string").active
        assert np.linalg.norm(world.loop("string").force) > 0.98 * 2 * G  # cos 0.16, and v²/r on top
    assert parts > 1
    assert world.body("ball").velocity[0] < 0.0


@pytest.mark.parametrize(("speed", "gap"), [(0.5, 0.0), (8.0, 0.03), (200.0, 0.8)])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_blow_counts_over_the_whole_step(speed: float, gap: float, breaks: bool) -> None:
    """A ball that stays on a block takes m v of impulse, however the step is split: the weld bears m v / h."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="block")
    most = 0.1 * speed / 0.01 * (0.99 if breaks else 1.01)
    scene.loop("fixed", None, "block", "weld", break_force=most)
    scene.add(poise.sphere(0.05, mass=0.1), name="ball", position=(-0.15 - gap, 0, 0))
    world = scene.build(poise.Reduced(tolerance=1e-10), dt=0.01)
    world.body("ball").place(velocity=(speed, 0, 0))
    told, broke = np.zeros(3), False
    for _ in range(3):
        world.step()
        loops = world.report().loops
        told += sum(loop.force for loop in loops) * 0.01
        broke = broke or any(loop.broke for loop in loops)
    assert broke is breaks
    assert told == pytest.approx((-0.1 * speed, 0, 0), abs=1e-6 * speed)


def test_at_acceleration_level_loops_and_couplings_may_be_closed_later() -> None:
    scene = poise.Scene()
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="block", position=(0, 0, 1))
    scene.loop("fixed", None, "block", "weld", active=False)
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", name="arm", position=(5, 0, 3))
    scene.couple("arm", None)
    scene.equalities[0].active = False
    world = scene.build(poise.Reduced(level="acceleration"), dt=0.01)
    world.q[-1] = 0.02
    world.step(10)
    height, speed = float(world.body("block").position[2]), float(world.body("block").velocity[2])
    assert speed == pytest.approx(-0.1 * G, rel=1e-9)
    world.loop("weld").active = True
    world._stepper.extras.couplings.active[0] = 1
    world.step()
    assert np.abs(world.v[:6]).max() < 0.06  # what has come apart closes at 5 cm/s
    assert abs(float(world.q[-1])) < 0.02
    world.step(300)
    assert world.body("block").position == pytest.approx((0, 0, 1), abs=1e-4)
    assert height < 0.96
    assert world.q[-1] == pytest.approx(0.0, abs=1e-6)
    world.loop("weld").active = False
    world.step(10)
    assert world.body("block").velocity[2] == pytest.approx(-0.1 * G, abs=1e-3)


# ---- taking hold -----------------------------------------------------------------------------------------------------


def crane(dt: float = 1 / 240) -> poise.World:
    """A hook on a slider, a crate on the ground below."""
    scene = poise.Scene()
    scene.add_ground()
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=5.0), name="hook", axis="z", position=(0, 0, 0.6))
    scene.motor("hook", stiffness=2e4, damping=2e3, limit=2e3)
    scene.add(poise.box(0.4, 0.4, 0.4, mass=20.0), name="crate", position=(0.05, 0, 0.2))
    return scene.build(dt=dt)


@pytest.mark.parametrize("kind", ["fixed", "ball", "weld"])
def test_picking_up_and_letting_go(kind: str) -> None:
    world = crane()
    world.step(50)
    grip = world.attach("hook", "crate", kind, position=(0, 0, 0.5))
    assert world.loops == [grip] == ["hook-crate"]
    world.motor("hook").target = 0.7
    world.step(480)
    lifted = world.body("crate").position[2]
    assert 0.6 < lifted < 0.95
    told = next(loop for loop in world.report().loops if loop.name == grip)
    assert told.force[2] == pytest.approx(20 * G, rel=0.15 if kind == "ball" else 0.01)  # a ball lets it swing
    world.release(grip)
    assert world.loops == []
    world.step(240)
    assert world.body("crate").position[2] == pytest.approx(0.2, abs=1e-3)
    assert world.body("hook").position[2] == pytest.approx(1.3, abs=1e-2)


def test_taking_hold_is_an_impact_that_keeps_momentum() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=1.0), name="one", position=(-0.5, 0, 0))
    scene.add(poise.sphere(0.1, mass=3.0), name="two", position=(0.5, 0.2, 0))
    world = scene.build(poise.Reduced(tolerance=1e-10), dt=0.01)
    world.body("one").place(velocity=(0, 4, 0))
    before = world.report().momentum
    world.attach("one", "two")
    world.step()
    after = world.report().momentum
    assert after.linear == pytest.approx(before.linear, abs=1e-8)
    one, two = world.body("one"), world.body("two")
    assert one.angular_velocity == pytest.approx(two.angular_velocity, abs=1e-8)
    assert world.report().energy.kinetic < 8.0


def test_what_is_attached_is_part_of_the_state(tmp_path) -> None:
    world = crane()
    world.step(20)
    free = world.state
    world.attach("hook", "crate", "ball", "grip", position=(0, 0, 0.5), break_force=500.0)
    world.attach(None, "crate", "hinge", axis="y", position=(0.2, 0, 0), limits=(-0.1, 0.1))
    world.step(20)
    saved, twin = world.state, copy.deepcopy(world)
    saved.save(tmp_path / "s.npz", world.model)
    world.motor("hook").target = 0.2
    world.step(40)
    end = world.state
    world.release("grip")
    world.step(10)
    world.state = saved
    assert world.loops == ["grip", "world-crate"]
    world.motor("hook").target = 0.2
    world.step(40)
    assert world.state.same_bits(end)
    twin.motor("hook").target = 0.2
    twin.step(40)
    assert twin.state.same_bits(end)
    other = crane()
    other.state = poise.State.load(tmp_path / "s.npz", other.model)
    other.motor("hook").target = 0.2
    other.step(40)
    assert other.state.same_bits(end)
    world.state = free
    assert world.loops == []


def test_loops_of_the_scene_open_and_close() -> None:
    world = hung()
    world.release("wall")
    world.step(10)
    assert world.v[2] == pytest.approx(-G * 0.01, rel=1e-9)
    world.loop("wall").active = True
    world.step(50)
    assert abs(world.v[2]) < 0.01


def test_attaching_what_cannot_be() -> None:
    world = crane()
    with pytest.raises(poise.SceneError, match='there is no body "crat", did you mean "crate"'):
        world.attach("hook", "crat")
    with pytest.raises(poise.SceneError, match="'free' is not a kind of joint that a loop can have"):
        world.attach("hook", "crate", "free")
    with pytest.raises(poise.SceneError, match="but both never move"):
        world.attach("ground")
    with pytest.raises(ValueError, match="a loop has no option 'colour'"):
        world.attach("hook", "crate", colour=1)
    world.attach("hook", "crate", name="grip")
    with pytest.raises(ValueError, match='there is a loop "grip" already'):
        world.attach("hook", "crate", name="grip")
    with pytest.raises(ValueError, match='there is no loop "grap", did you mean "grip"'):
        world.release("grap")


def test_a_state_that_tells_nothing_of_loops_leaves_them() -> None:
    world = hung()
    rest = poise.State(world.q.copy(), world.v.copy(), 0.0)
    world.release("wall")
    world.attach(None, "beam", name="grip")
    world.step(10)
    world.state = rest
    assert world.loops == ["wall"]
    assert not world.loop("wall").active
    world.step(10)
    assert world.v[2] == pytest.approx(-G * 0.01)
    world.loop("wall").active = True
    world.state = rest
    assert world.loop("wall").active
    world.release("wall")
    world.reset()
    assert world.loop("wall").active


# ---- steps that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("substeps", [1, 4])
def test_a_step_that_fails_breaks_nothing(substeps: int) -> None:
    """The joint breaks in the first part of the step, and a hook fails in the last one."""
    scene = poise.Scene()
    scene.add(Body("beam", inertia=Inertia(2.0, moments=(0.1, 0.1, 0.1))), joint="free", position=(0, 0, 1))
    scene.loop("hinge", None, "beam", "wall", position=(0, 0, 1), break_force=2 * G + 1.0)
    world = scene.build(poise.Reduced(substeps=substeps), dt=1e-3)
    world.step(3)
    world.apply_force("beam", (0, 0, -50), torque=(0, 0, 1))
    before, calls = world.state, []

    def fail(world: poise.World, rows) -> None:
        calls.append(world.loop("wall").active)
        if len(calls) == substeps:
            raise RuntimeError("no")

    world.rows_hooks.append(fail)
    with pytest.raises(RuntimeError, match="no"):
        world.step()
    assert calls[-1] is (substeps == 1)
    assert world.state.same_bits(before)
    world.rows_hooks.clear()
    world.step()
    assert not world.loop("wall").active


def test_what_a_function_did_before_a_step_that_fails_is_undone() -> None:
    world = hung()
    world.step(3)
    world.attach(None, "beam", "ball", name="grip")
    world.step(3)
    before = world.state

    def meddle(world: poise.World) -> None:
        world.release("wall")
        world.release("grip")
        world.attach(None, "beam", name="other")
        raise RuntimeError("no")

    world.before_step(meddle)
    with pytest.raises(RuntimeError, match="no"):
        world.step()
    assert world.state.same_bits(before)
    world.remove(meddle)
    other = hung()
    other.state = before
    world.step(10)
    other.step(10)
    assert world.state.same_bits(other.state)


def test_a_split_step_that_fails_leaves_the_rows() -> None:
    """A fast ball splits the step; what lies on the ground keeps its multipliers from before."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.1))
    scene.add(poise.sphere(0.05), name="ball", position=(3, 0, 5))
    world = scene.build()
    world.step(20)
    before = world.state
    calls = []

    def fail(stepper: Stepper, store: Block) -> None:
        calls.append(stepper)
        if len(calls) > 1:
            world.tau[0] = np.inf

    world.body("ball").place(velocity=(0, 0, -2000))
    place = world.state
    world._stepper.watch = fail
    with pytest.raises(poise.dynamics.Diverged):
        world.step()
    assert len(calls) > 1
    world.tau[0] = 0.0
    world._stepper.watch = None
    assert world.state.same_bits(place)
    assert any(name.startswith("warm_start/") for name in before.slots)


# ---- rows of users ---------------------------------------------------------------------------------------------------


def test_rows_of_users_act() -> None:
    """A spring and damper beside the tree, of a law of its own, a bound, and a contact that is not found by shapes."""
    scene = poise.Scene()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 1))
    scene.add(poise.sphere(0.1, mass=1.0), name="other", position=(1, 0, 1))
    world = scene.build(poise.Reduced(tolerance=1e-9), dt=0.01)
    calls = []

    def rows(world: poise.World, rows: poise.constraints.rows.Rows) -> None:
        calls.append(world.time)
        rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1), lo=-5.0, hi=5.0)
        rows.add_contact(
            id=3,
            b="other",
            Jb=np.array([(0, 0, 0, 0, 0, 1), (0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 1, 0)]),
            Ja=np.zeros((3, 6)),
            mu=0.5,
            phi=float(world.q[9]) - 1.0,
        )

    world.rows_hooks.append(rows)
    world.v[6] = 3.0
    world.step(20)
    assert len(calls) == 20
    assert world.v[2] == pytest.approx(-(G - 5.0 / 2.0) * 0.2, rel=1e-9)
    assert world.q[9] == pytest.approx(1.0, abs=1e-9)
    assert world.v[6] == pytest.approx(3.0 - 0.5 * G * 0.2, rel=1e-6)
    assert world.report().limits == []
    world.rows_hooks.clear()
    before = world.v[2]
    world.step(10)
    assert world.v[2] == pytest.approx(before - G * 0.1, rel=1e-9)


def test_many_rows_of_users_find_room_beside_motors_and_loops() -> None:
    scene = poise.Scene()
    for k in range(40):
        scene.add(poise.sphere(0.1, mass=1.0), name=f"b{k}", position=(k, 0, 1))
    scene.loop("fixed", None, "b39")
    world = scene.build(dt=0.01)
    calls = []

    def tie(world: poise.World, rows: poise.constraints.rows.Rows) -> None:
        calls.append(world.time)
        for k in range(39):
            rows.add(id=k, b=f"b{k}", Jb=(0, 0, 0, 0, 0, 1), terms=[poise.constraints.row_validation.Term(dof=6 * k)])

    world.rows_hooks.append(tie)
    world.step(5)
    assert len(calls) == 5  # a step that begins again, as rows had no room, asks once
    assert np.abs(world.v.reshape(40, 6)[:39, 2] + world.v.reshape(40, 6)[:39, 0]).max() < 1e-6
    assert np.abs(world.v[-6:]).max() < 1e-6


def test_rows_of_users_that_cannot_be() -> None:
    world = crane()
    world.rows_hooks.append(lambda world, rows: rows.add(id=1 << 30, b="crate", Jb=(0, 0, 0, 0, 0, 1)))
    with pytest.raises(ValueError, match="must be less than 2³⁰"):
        world.step()
    world.rows_hooks[:] = [lambda world, rows: rows.add(id=1, b="crane", Jb=(0, 0, 0, 0, 0, 1))]
    with pytest.raises(poise.SceneError, match='there is no body "crane"'):
        world.step()
    world.rows_hooks.clear()
    world.step()
