"""Runs and recordings: what is kept, files, what stops a run, the line on the terminal."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest

import poise
from poise.dynamics import Diverged, Trajectory
from poise.motion.path import OrbitPath
from poise.sim import ForcePlate, Recording
from poise.sim.progress import Progress


def toys(**options) -> poise.World:
    """A box, a ball and a door that has a limit, on the ground."""
    scene = poise.Scene(name="toys")
    scene.add_ground(restitution=0.3)
    scene.add(poise.box(0.2, 0.2, 0.2, mass=3.0), name="box", position=(0, 0, 0.2))
    scene.add(poise.sphere(0.1), name="ball", position=(0.05, 0, 0.6))
    scene.hinge(
        None, poise.box(0.4, 0.02, 0.8), name="door", anchor=(0.2, 0, 0), position=(2, 0, 1), limits=(-0.2, 0.2)
    )
    world = scene.build(poise.Reduced(**options), dt=1 / 200)
    world.v[-1] = 1.0
    return world


def test_a_recording_is_what_the_world_did() -> None:
    world, other = toys(), toys()
    recording = world.run(0.5, every=5, signals={"plate": lambda w: w.q[2], "limit": lambda w: len(w.report().limits)})
    assert isinstance(recording, Trajectory)
    assert len(recording) == 21
    assert recording.time == pytest.approx(np.arange(21) * 0.025)
    for k in range(21):
        frame = recording.frame(k)
        assert np.array_equal(frame.state.q, other.q)
        assert np.array_equal(frame.state.v, other.v)
        report = other.report()
        assert len(frame.contacts) == len(report.contacts)
        for mine, theirs in zip(frame.contacts, report.contacts, strict=True):
            assert (mine.body_a, mine.body_b, mine.shape_a, mine.depth) == (
                theirs.body_a,
                theirs.body_b,
                theirs.shape_a,
                theirs.depth,
            )
            assert np.array_equal(mine.force, theirs.force)
        assert frame.energy.total == pytest.approx(report.energy.total)
        assert recording.solver["residual"][k] == (report.residual if k else 0.0)
        assert frame.signals["plate"] == other.q[2]
        other.step(5)
    assert recording.solver["rows"].dtype == np.int64
    assert recording.torques["passive"].shape == (21, world.model.nv)
    assert world.recording is recording


def test_every_event_is_kept_whichever_frames_are() -> None:
    fine, coarse = toys().run(1.0), toys().run(1.0, every=50)
    assert coarse.events == fine.events
    assert {event.kind for event in fine.events} >= {"contact_begin", "limit_reached"}


def test_only_what_is_asked_for_is_kept() -> None:
    recording = toys().run(0.1, record=["energy"])
    assert recording.contacts is None
    assert recording.events == ()
    assert recording.solver == {}
    assert recording.torques == {}
    assert recording.frame(3).contacts == []
    bare = toys().run(0.1, record=())
    assert bare.energy is None
    assert bare.frame(0).energy is None
    assert "states only" in repr(bare)


def test_the_last_state_is_kept_though_frames_do_not_fit() -> None:
    recording = toys().run(0.1, every=7)
    assert recording.time == pytest.approx(np.array([0, 7, 14, 20]) / 200)


def test_saving_and_loading_gives_the_same_bits(tmp_path) -> None:
    world = toys(substeps=2)
    plate = ForcePlate("ground", of="box")
    recording = world.run(0.6, every=3, signals={"force": lambda w: plate.read(w).force, "n": lambda w: 7})
    recording.save(tmp_path / "toys.npz")
    again = Recording.load(tmp_path / "toys.npz")
    for name in ("time", "q", "v"):
        assert getattr(again, name).tobytes() == getattr(recording, name).tobytes()
    for name in ("start", "shapes", "point", "normal", "depth", "force"):
        mine, theirs = getattr(recording.contacts, name), getattr(again.contacts, name)
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()
    for group in ("solver", "torques", "signals"):
        mine, theirs = getattr(recording, group), getattr(again, group)
        assert mine.keys() == theirs.keys()
        assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)
    assert again.energy.total.tobytes() == recording.energy.total.tobytes()
    assert again.events == recording.events
    assert again.options == recording.options
    assert again.options["formulation"]["substeps"] == 2
    assert again.options["versions"]["poise"] == poise.__version__
    assert again.model.digest() == recording.model.digest()
    assert again.frame(-1).contacts[0].body_a == recording.frame(-1).contacts[0].body_a
    twin = poise.World(again.model, state=again.state(-1))
    twin.step()


def joined() -> poise.World:
    """Two arms with a motor each that are coupled and closed, and a ball that a motor turns."""
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="a", axis="y", position=(0, 0, 0.5))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), name="b", axis="y", position=(1, 0, 0.5))
    scene.ball(None, poise.box(0.1, 0.1, 1.0), name="c", position=(3, 0, 0.5))
    scene.motor("a", stiffness=100.0, damping=10.0, limit=20.0)
    scene.motor("c", stiffness=50.0, damping=5.0, target=(1.0, 0.0, 0.0, 0.1))
    scene.loop("hinge", "a", "b", "closed", axis="y", position=(0.5, 0, 1), limits=(-1.0, 1.0), break_force=1e4)
    scene.motor("closed", damping=3.0, speed=1.0)
    scene.couple("a", "b")
    world = scene.build(dt=1 / 240)
    world.motor("a").target = 0.2
    return world


def test_a_model_with_motors_loops_and_couplings_comes_back_whole(tmp_path) -> None:
    world = joined()
    recording = world.run(0.1)
    recording.save(tmp_path / "joined.npz")
    again = Recording.load(tmp_path / "joined.npz").model
    for name in ("motors", "loops", "couplings"):
        assert getattr(again, name) == getattr(world.model, name)
        assert [type(one) for one in getattr(again, name)] == [type(one) for one in getattr(world.model, name)]
    assert again.digest() == world.model.digest()
    twin = poise.World(again, state=world.state, dt=world.dt)
    world.step(5)
    twin.step(5)
    assert world.state.same_bits(twin.state)


@pytest.mark.parametrize("name", ["model/link_mass", "solids/friction", "model/dof_damping"])
def test_a_model_that_was_changed_in_the_file_is_told_by_its_digest(tmp_path, name: str) -> None:
    toys().run(0.05).save(tmp_path / "good.npz")
    content = dict(np.load(tmp_path / "good.npz"))
    content[name] = content[name] + 1.0
    np.savez(tmp_path / "other.npz", **content)
    field = name.removeprefix("model/").replace("/", ".")
    with pytest.raises(poise.SceneError, match=f"other values of {field} than when it was saved"):
        Recording.load(tmp_path / "other.npz")


def test_a_header_that_was_changed_in_the_file_is_told(tmp_path) -> None:
    joined().run(0.05).save(tmp_path / "good.npz")
    content = dict(np.load(tmp_path / "good.npz"))
    header = json.loads(content["header"].tobytes())
    for change, message in (
        ({"digest": "0"}, "other values of digest"),
        ({"model": header["model"] | {"motors": header["model"]["motors"][:1]}}, "other values of motors"),
        ({"model": header["model"] | {"loops": [[1] * 99]}}, "damaged"),
        ({"digests": 3, "digest": "0"}, "damaged"),
    ):
        changed = np.frombuffer(json.dumps(header | change).encode(), np.uint8)
        np.savez(tmp_path / "bad.npz", **(content | {"header": changed}))
        with pytest.raises(poise.SceneError, match=message):
            Recording.load(tmp_path / "bad.npz")


def test_a_recording_without_frames(tmp_path) -> None:
    """A signal that fails at once leaves one."""
    world = toys()
    with pytest.raises(ZeroDivisionError):
        world.run(1.0, signals={"bad": lambda w: 1 / 0})
    recording = world.recording
    assert len(recording) == 0
    assert "no frames" in repr(recording)
    with pytest.raises(IndexError, match="there are no frames"):
        recording.at(0.0)
    recording.save(tmp_path / "none.npz")
    assert len(Recording.load(tmp_path / "none.npz")) == 0


def test_a_model_with_a_path_comes_back_without_it(tmp_path) -> None:
    scene = poise.Scene()
    scene.add(poise.box(0.2, 0.2, 0.2), name="plate", kinematic=OrbitPath(start=(1, 0, 0), speed=2.0))
    recording = scene.build(dt=0.01).run(0.1)
    recording.save(tmp_path / "led.npz")
    again = Recording.load(tmp_path / "led.npz")
    assert again.model.paths == ()
    assert poise.dynamics.bodies(again.model, again.q[-1]).position == pytest.approx(
        poise.dynamics.bodies(recording.model, recording.q[-1]).position
    )


def test_other_files_are_refused(tmp_path) -> None:
    world = toys()
    with pytest.raises(poise.SceneError, match="there is no such file"):
        Recording.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(poise.SceneError, match="not a recording that Poise saved"):
        Recording.load(tmp_path / "text.npz")
    world.state.save(tmp_path / "state.npz", world.model)
    with pytest.raises(poise.SceneError, match=r"a state: read it with poise.State.load"):
        Recording.load(tmp_path / "state.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(poise.SceneError, match="its header is missing or damaged"):
        Recording.load(tmp_path / "other.npz")
    world.run(0.05).save(tmp_path / "good.npz")
    with pytest.raises(poise.SceneError, match="not a state that Poise saved"):
        poise.State.load(tmp_path / "good.npz", world.model)
    content = dict(np.load(tmp_path / "good.npz"))
    for change, message in (
        ({"q": None}, "damaged"),
        ({"q": content["q"][:3]}, "finite numbers"),
        ({"v": content["v"] * np.nan}, "finite numbers"),
        ({"contacts/start": content["contacts/start"][:-1]}, "contacts do not fit"),
        ({"model/link_mass": content["model/link_mass"][:1]}, "damaged"),
        ({"solids/kind": None}, "damaged"),
    ):
        damaged = {name: array for name, array in (content | change).items() if array is not None}
        np.savez(tmp_path / "bad.npz", **damaged)
        with pytest.raises(poise.SceneError, match=message):
            Recording.load(tmp_path / "bad.npz")
    header = json.loads(content["header"].tobytes()) | {"format_version": 99}
    np.savez(tmp_path / "new.npz", **(content | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}))
    with pytest.raises(poise.SceneError, match="a recording of format 99"):
        Recording.load(tmp_path / "new.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:2000])
    with pytest.raises(poise.SceneError, match="cut short"):
        Recording.load(tmp_path / "cut.npz")
    with pytest.raises(poise.SceneError, match="no such folder"):
        world.recording.save(tmp_path / "nowhere" / "file.npz")


# ---- what stops a run ------------------------------------------------------------------------------------------------


def test_what_diverges_keeps_what_was_recorded() -> None:
    world = toys()

    def spoil(world: poise.World) -> None:
        if world.time > 0.1:
            world.tau[0] = np.nan

    with pytest.raises(Diverged) as caught:
        world.run(1.0, before_step=spoil)
    recording = caught.value.recording
    assert recording.time[-1] == pytest.approx(world.time)
    assert 0.1 < world.time < 0.11
    assert np.array_equal(recording.q[-1], world.q)
    assert recording.events[-1].kind == "diverged"
    assert world.recording.time[-1] == recording.time[-1]
    world.tau[:] = 0.0
    assert len(world.run(0.1)) == 21  # `spoil` was for that run alone


def test_an_interrupt_keeps_what_was_recorded() -> None:
    world = toys()

    def interrupt(world: poise.World) -> float:
        if world.time > 0.05:
            raise KeyboardInterrupt
        return world.time

    with pytest.raises(KeyboardInterrupt):
        world.run(1.0, signals={"time": interrupt})
    recording = world.recording
    assert len(recording.time) == len(recording.q) == len(recording.signals["time"]) == len(recording.solver["rows"])
    assert recording.time[-1] == pytest.approx(0.05)
    recording.frame(-1)


@pytest.mark.parametrize(
    ("options", "problem", "message"),
    [
        ({"duration": 0.0}, ValueError, "nothing to do"),
        ({"duration": np.nan}, ValueError, "duration is nan"),
        ({"duration": "long"}, ValueError, "duration must be a number of seconds"),
        ({"every": 0}, ValueError, "nothing to do"),
        ({"every": True}, ValueError, "nothing to do"),
        ({"record": "energy"}, TypeError, "it must be a list of names"),
        ({"record": ["enery"]}, ValueError, 'did you mean "energy"'),
        ({"signals": [3]}, TypeError, "functions of the world by their names"),
        ({"signals": {"a": 3}}, TypeError, "signal 'a' is a int"),
        ({"signals": {"a": lambda world: "high"}}, TypeError, "gave 'high'; it must be numbers"),
        ({"signals": {"a": lambda world: np.zeros(1 + round(200 * world.time))}}, ValueError, "must stay the same"),
    ],
)
def test_bad_runs_are_refused(options, problem, message: str) -> None:
    world = toys()
    with pytest.raises(problem, match=message):
        world.run(**({"duration": 0.1} | options))


def test_frames_and_curves() -> None:
    recording = toys().run(0.2)
    assert recording.at(0.1013) == 20
    for time in (np.nan, True, "0.1"):
        with pytest.raises(ValueError, match="time"):
            recording.at(time)
    assert recording.state(-1).time == pytest.approx(0.2)
    assert list(recording.curves("q", "door")) == ["door"]
    assert set(recording.curves("energy")) == {"kinetic", "gravity", "spring", "total"}
    assert recording.curves("sweeps")["sweeps"].shape == (41,)
    for wrong in (41, -42, 1.5, "first"):
        with pytest.raises(IndexError, match="there are 41, counted from 0"):
            recording.frame(wrong)
    with pytest.raises(ValueError, match="'energie' was not recorded"):
        recording.curves("energie")
    assert recording.plot("q", "door").svg().startswith("<svg")


# ---- the line on the terminal ----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_told_on_a_terminal_only(monkeypatch) -> None:
    monkeypatch.setenv("POISE_QUIET", "")
    for stream, told in ((Terminal(), True), (io.StringIO(), False)):
        bar = Progress(4.0, stream=stream, patience=0.0)
        bar.tell(1.0)
        bar.close()
        assert ("1.00 of 4 s" in stream.getvalue()) is told
        assert not told or stream.getvalue().endswith("\r\x1b[K")
    monkeypatch.setenv("POISE_QUIET", "1")
    bar = Progress(4.0, stream=Terminal(), patience=0.0)
    bar.tell(1.0)
    assert bar.stream.getvalue() == ""
    closed = Terminal()
    closed.close()
    Progress(4.0, stream=closed).tell(1.0)
    Progress(4.0, shown=True, stream=closed, patience=0.0).tell(1.0)


def test_a_run_in_a_pipe_writes_nothing() -> None:
    script = "import poise; poise.Scene().build(dt=0.25).run(1.0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "of 1 s" not in done.stderr
