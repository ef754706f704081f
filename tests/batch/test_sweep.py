"""Sweeps: the same table whoever does the runs, and nothing is done twice."""

import json
import signal
import subprocess
import sys
import time
from functools import partial
from math import inf, sqrt
from shutil import which

import numpy as np
import pytest

import poise
from poise.batch import Sweep, Table
from poise.batch.local import run_in_processes
from poise.batch.task import LOST, How, Task
from poise.sim.progress import Progress

SCENE = """
parameters: {high: 1.0}
ground: {friction: 0.5}
bodies:
  - {name: ball, position: [0, 0, $high], velocity: [1, 0, 0], shape: {kind: sphere, radius: 0.1, mass: 2}}
duration: 0.1
"""
SETTINGS = {"ball.mass": [1.0, 2.0, 3.0], "high": [0.1, 1.0], "ground.friction": "0.2,0.8"}
METRICS = ["final_height", "energy_lost", "max_contact_force"]


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "ball.yaml"
    file.write_text(SCENE)
    return file


def lines(folder):
    """Numbers of the runs that a folder holds, in the order in which they were done; a torn line is none."""
    path = folder / "runs.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return [json.loads(line)["run"] for line in content.split(b"\n")[1:-1]]


def test_the_table_has_a_row_for_each_combination(file):
    table = Sweep(file, {"high": [1.0, 2.0], "ball.mass": "1,2"}, METRICS).run(processes=0)
    names = ["run", "high", "ball.mass", *METRICS, "status", "time", "note"]
    assert list(table.columns) == names
    assert table["high"].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert table["ball.mass"].tolist() == [1, 2, 1, 2]
    assert table["status"].tolist() == ["ok"] * 4
    fallen = 0.5 * 9.81 * 0.1**2  # what falls freely takes steps of velocity Verlet, which are exact
    assert table["final_height"] == pytest.approx(table["high"] - fallen, abs=1e-9)
    assert table["time"] == pytest.approx(0.1)


def test_a_sweep_is_what_single_runs_are(file):
    table = Sweep(file, SETTINGS, METRICS).run(processes=0)
    row = table.row(7)
    world = poise.load(file, set={name: row[name] for name in SETTINGS}).build()
    recording = world.run(0.1)
    assert row["final_height"] == world.body("ball").position[2]
    assert row["energy_lost"] == recording.energy.total[0] - recording.energy.total[-1]


def test_the_same_bytes_whoever_does_the_runs(file, tmp_path):
    sweep = Sweep(file, SETTINGS, METRICS)
    here = sweep.run(processes=0).csv()
    assert sweep.run(processes=1, folder=tmp_path / "one").csv() == here
    assert sweep.run(processes=2, folder=tmp_path / "two").csv() == here
    assert sorted(lines(tmp_path / "two")) == list(range(12))
    for name in ("one", "two"):
        # nothing is left to do, so nothing is
        before = (tmp_path / name / "runs.jsonl").read_bytes()
        assert sweep.run(processes=2, folder=tmp_path / name).csv() == here
        assert (tmp_path / name / "runs.jsonl").read_bytes() == before


def test_random_draws(file):
    sweep = Sweep(file, {"high": "1:2", "ball.mass": [1, 5]}, ["final_height"], random=6, seed=3)
    table = sweep.run(processes=0)
    assert len(table) == 6
    assert set(table["ball.mass"].tolist()) <= {1, 5}
    assert len(np.unique(table["high"])) == 6
    again = Sweep(file, {"high": "1:2", "ball.mass": [1, 5]}, ["final_height"], random=6, seed=3)
    assert again.run(processes=0).csv() == table.csv()


WILD = """
parameters: {blow: 0}
bodies: [{name: ball, position: [0, 0, 1], shape: {kind: sphere, radius: 0.1, mass: 1e-9}}]
pushes: [{body: ball, time: 0.05, duration: 1, force: [$blow, 0, 0]}]
duration: 0.1
"""


def test_a_run_that_diverges_is_a_row(tmp_path):
    file = tmp_path / "wild.yaml"
    file.write_text(WILD)
    # 1e308 N on 1e-9 kg: the speed is beyond the largest number, however it is rounded
    table = Sweep(file, {"blow": [0, 1e308, 1e-9]}, ["final_height"]).run(processes=0, folder=tmp_path / "out")
    assert table["status"].tolist() == ["ok", "diverged", "ok"]
    assert 0.04 < table["time"][1] < 0.08
    assert np.isnan(table["final_height"]).tolist() == [False, True, False]
    assert "motion of body 'ball'" in table["note"][1]
    table.save(tmp_path / "t.csv")
    assert Table.load(tmp_path / "t.csv")["status"].tolist() == table["status"].tolist()


def test_one_that_fails_does_not_stop_the_others(file, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("def odd(world, recording):\n    return 1 / int(world.q[2] > 0.5)\n")
    table = Sweep(file, {"high": [0.1, 1.0]}, [f"{mine}:odd"]).run(processes=0)
    assert table["status"].tolist() == ["failed", "ok"]
    assert table["odd"].tolist()[1] == 1.0
    assert table["note"][0].startswith("ZeroDivisionError")


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise ValueError('bad \\ud800\\0')", "ValueError: bad ?\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_whatever_a_function_raises_is_a_row(file, tmp_path, processes, body, note):
    mine = tmp_path / "mine.py"
    mine.write_text(f"def odd(world, recording):\n    {body}\n")
    table = Sweep(file, {"high": [1.0]}, [f"{mine}:odd"]).run(processes=processes, folder=tmp_path / "out")
    assert (table["status"].tolist(), table["note"].tolist()) == (["failed"], [note])
    table.save(tmp_path / "t.csv")
    assert Table.load(tmp_path / "t.csv")["note"].tolist() == [note]


def test_what_must_not_be_met_together_fails_for_itself(tmp_path):
    file = tmp_path / "door.yaml"
    file.write_text(
        "parameters: {low: 0, high: 1}\n"
        "bodies: [{name: door, joint: {kind: hinge, axis: z, limits: [$low, $high]}, "
        "shape: {kind: box, size: [1, 1, 1]}}]\nduration: 0.01\n"
    )
    table = Sweep(file, {"low": [0, 1.5], "high": [2, 1]}, ["final_height"]).run(processes=0)
    assert table["status"].tolist() == ["ok", "ok", "ok", "failed"]
    assert "lower must not exceed upper" in table["note"][3]


@pytest.mark.parametrize(
    ("settings", "options", "said"),
    [
        ({"ground.fricton": [1]}, {}, 'the ground has no field "fricton", did you mean "friction"?'),
        ({"hihg": [1]}, {}, 'the scene has no parameter "hihg", did you mean "high"?'),
        ({"ground.friction": [0.1, -1]}, {}, "ground: friction: must be 0 or more, found -1"),
        ({"ground.friction": "1:-2:50"}, {}, "must be 0 or more, found -2"),
        ({"ball.mass": "0:1:x"}, {}, "a range must be low:high:points"),
        ({"ball.mass": "0:1"}, {}, "needs a number of points"),
        ({"high": [1]}, {"metrics": ["fall_tme"]}, 'there is no metric "fall_tme", did you mean "fall_time"?'),
        ({"high": [1]}, {"metrics": ["hero.fall_time"]}, 'there is no character or body "hero"'),
        ({"high": [1]}, {"metrics": ["tracking_error"]}, "nothing in this scene that tracks"),
        ({"high": [1]}, {"metrics": []}, "there is nothing to measure"),
        ({"high": [1]}, {"metrics": ["fall_time", "fall_time"]}, "it is named twice"),
        ({"high": [1]}, {"dt": 0}, "dt: must be more than 0, found 0"),
        ({"high": [1]}, {"dt": float("nan")}, "dt: must be more than 0"),
        ({"high": [1]}, {"dt": 1e3}, "nothing to do"),
        ({"high": [1]}, {"seconds": -1}, "seconds: must be more than 0"),
        ({"high": [1]}, {"seconds": True}, "seconds: must be more than 0, found True"),
        ({"high": [1]}, {"dt": 10**400}, "dt: must be more than 0"),
        ({"high": [1]}, {"every": 0}, "every: must be a whole number from 1 on"),
        ({"high": [1]}, {"coordinates": "polar"}, "no coordinates are called 'polar'"),
        ({"high": [1]}, {"random": 0}, "random: must be a whole number"),
        ([1], {}, "settings: must be values by name"),
    ],
)
def test_bad_input_is_told_before_the_first_run(file, tmp_path, settings, options, said):
    with pytest.raises(poise.SceneError) as error:
        Sweep(file, settings, **{"metrics": ["final_height"]} | options).run(processes=0, folder=tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_scenes_are_told(tmp_path):
    with pytest.raises(poise.SceneError, match="there is no such file"):
        Sweep(tmp_path / "no.yaml", {"a": [1]})
    robot = tmp_path / "robot.urdf"
    robot.write_text("<robot name='arm'><link name='base'/></robot>")
    with pytest.raises(poise.SceneError, match="sweeps set what scenes in YAML say; take this file into one"):
        Sweep(robot, {"a": [1]})


def test_a_parameter_may_not_have_the_name_of_a_column(file):
    file.write_text(SCENE.replace("parameters: {", "parameters: {time: 1, "))
    with pytest.raises(poise.SceneError, match="set: time: the table has a column of that name itself"):
        Sweep(file, {"time": [1, 2]})


def test_who_does_the_runs_must_be_clear(file):
    sweep = Sweep(file, {"high": [1, 2]})
    with pytest.raises(poise.SceneError, match="name one of them"):
        sweep.run(processes=2, dask="tcp://nowhere:1")
    for count in (-1, 1.5, True, 10**6):
        with pytest.raises(poise.SceneError, match="processes: must be a whole number"):
            sweep.run(processes=count)


@pytest.mark.parametrize(("package", "option"), [("distributed", "dask"), ("ray", "ray")])
def test_missing_packages_are_told(file, monkeypatch, package, option):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install {package}, or the extra poise\[{option}\]"):
        Sweep(file, {"high": [1, 2]}).run(**{option: "nowhere:1"})


def test_functions_that_cannot_travel_are_told(file):
    sweep = Sweep(file, {"high": [1, 2]}, [lambda world, recording: world.time])
    assert sweep.run(processes=0)["<lambda>"] == pytest.approx(0.1)
    with pytest.raises(poise.SceneError, match="other processes cannot find this function; put it into a file"):
        sweep.run(processes=1)


@pytest.mark.parametrize("change", ["scene", "included", "mesh", "metric", "options"])
def test_a_folder_of_another_sweep_is_refused(file, tmp_path, change):
    mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"
    (tmp_path / "tip.obj").write_text(mesh)
    (tmp_path / "more.yaml").write_text("gravity: [0, 0, -9]\n")
    rock = "  - {name: rock, position: [3, 0, 3], shape: {kind: convex, file: tip.obj}}\nduration"
    file.write_text("include: more.yaml\n" + SCENE.replace("duration", rock))
    mine = tmp_path / "mine.py"
    mine.write_text("def mine(world, recording):\n    return 1\n")

    def run(**options):
        return Sweep(file, {"high": [1.0, 2.0]}, [f"{mine}:mine"], **options).run(processes=0, folder=tmp_path / "out")

    run()
    if change == "scene":
        file.write_text(file.read_text().replace("radius: 0.1", "radius: 0.2"))
    elif change == "included":
        (tmp_path / "more.yaml").write_text("gravity: [0, 0, -8]\n")
    elif change == "mesh":
        (tmp_path / "tip.obj").write_text(mesh.replace("v 0 0 1", "v 0 0 2"))
    elif change == "metric":
        mine.write_text("def mine(world, recording):\n    return 2\n")
    said = {"included": "more.yaml", "mesh": "tip.obj", "scene": "file ball.yaml has changed"}
    said |= {"metric": "metrics: ", "options": "dt: nothing there, 0.01 here"}
    with pytest.raises(poise.SceneError) as error:
        run(**({"dt": 0.01} if change == "options" else {}))
    assert "it holds another sweep" in str(error.value)
    assert said[change] in str(error.value)


EDITS = """
from pathlib import Path
def edits(world, recording):
    # what a person does meanwhile
    file, old, new = Path({file!r}), {old!r}, {new!r}
    if 1.1 < recording.q[0, 2] < 1.3:
        file.write_text(file.read_text().replace(old, new))
    return world.q[2]
"""


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("which", ["ball.yaml", "more.yaml"])
def test_a_file_that_changes_meanwhile_stops_the_sweep(file, tmp_path, processes, which):
    """Or rows of two scenes would be in one table, and the folder would vouch for them."""
    other, mine, folder = tmp_path / "more.yaml", tmp_path / "mine.py", tmp_path / "out"
    other.write_text("gravity: [0, 0, -9.125]\n")
    file.write_text("include: more.yaml\n" + SCENE)
    kept = {path: path.read_text() for path in (file, other)}
    old, new = ("[1, 0, 0]", "[1, 0, 9]") if which == "ball.yaml" else ("-9.125", "-8.125")
    mine.write_text(EDITS.format(file=str(tmp_path / which), old=old, new=new))
    sweep = Sweep(file, {"high": [1.0, 1.2, 1.4, 1.6]}, [f"{mine}:edits"])
    with pytest.raises(poise.SceneError) as error:
        sweep.run(processes=processes, folder=folder)
    assert f"{which} has changed since the sweep began" in str(error.value)
    assert lines(folder) == [0]
    with pytest.raises(poise.SceneError, match=f"file {which} has changed"):
        sweep.run(processes=processes, folder=folder)
    for path, text in kept.items():
        path.write_text(text)
    mine.write_text(mine.read_text().replace(old, "nothing of the kind"))
    with pytest.raises(poise.SceneError, match="metrics"):
        Sweep(file, {"high": [1.0, 1.2, 1.4, 1.6]}, [f"{mine}:edits"]).run(processes=0, folder=folder)
    again = Sweep(file, {"high": [1.0, 1.2, 1.4, 1.6]}, [f"{mine}:edits"])
    assert again.run(processes=0, folder=tmp_path / "new")["status"].tolist() == ["ok"] * 4


def test_a_file_that_is_written_again_as_it_was_stops_nothing(file, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(EDITS.format(file=str(file), old="nothing", new="of the kind"))
    table = Sweep(file, {"high": [1.0, 1.2, 1.4]}, [f"{mine}:edits"]).run(processes=0, folder=tmp_path / "out")
    assert table["status"].tolist() == ["ok"] * 3


def test_a_function_that_has_changed_is_another_metric(file, tmp_path):
    def made(text):
        scope = {"__name__": "mine"}
        exec(f"def mine(world, recording):\n    return {text}\n", scope)
        return Sweep(file, {"high": [1.0]}, [scope["mine"]])

    made("world.q[2]").run(processes=0, folder=tmp_path / "out")
    made("world.q[2]").run(processes=0, folder=tmp_path / "out")
    for other in ("world.q[1]", "world.v[2]"):
        with pytest.raises(poise.SceneError, match="options: metrics"):
            made(other).run(processes=0, folder=tmp_path / "out")


def test_a_worker_of_other_versions_is_refused(file, monkeypatch):
    from dataclasses import replace

    from poise.batch import local

    plain = local.run_task
    monkeypatch.setattr(local, "run_task", lambda task: replace(plain(task), versions={"poise": "0.0.1"}))
    with pytest.raises(poise.SceneError, match=r'a worker has other versions .*poise: "0\.0\.1" there'):
        Sweep(file, {"high": [1, 2]}).run(processes=0)


# ---- processes that end ----------------------------------------------------------------------------------------------

NOTED = """
import os, time
def noted(world, recording):
    with open({log!r}, "a") as log:
        log.write(f"{{float(world.q[2])!r}}\\n")
    time.sleep(0.03)
    return world.q[2]
def deadly(world, recording):
    if world.q[2] > 1.5:
        os._exit(7)
    return world.q[2]
"""


def started(file, folder, mine, runs):
    """A sweep in a process of its own."""
    values = f"high=1:2:{runs}"
    command = [sys.executable, "-m", "poise", "sweep", str(file), "--set", values, "--metric", f"{mine}:noted"]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests that run in the background may not
    return subprocess.Popen(
        [*command, "--out", str(folder), "--processes", "2"],
        preexec_fn=heed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(folder, count):
    end = time.monotonic() + 120.0
    while len(lines(folder)) < count:
        assert time.monotonic() < end, "nothing is done"
        time.sleep(0.005)


@pytest.fixture
def mine(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(NOTED.format(log=str(tmp_path / "log")))
    return mine


@pytest.mark.parametrize(("runs", "until"), [(20, 3), pytest.param(200, 100, marks=pytest.mark.slow)])
def test_a_sweep_that_is_killed_goes_on_and_repeats_nothing(file, tmp_path, mine, runs, until):
    folder, log = tmp_path / "out", tmp_path / "log"
    process = started(file, folder, mine, runs)
    wait_for(folder, until)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = lines(folder)
    assert until <= len(kept) < runs
    # workers end with the sweep: nothing holds the folder, nothing is written any more
    time.sleep(1.5)
    noted = log.read_text().split()
    assert lines(folder) == kept
    sweep = Sweep(file, {"high": f"1:2:{runs}"}, [f"{mine}:noted"])
    table = sweep.run(processes=0, folder=folder)
    assert lines(folder)[: len(kept)] == kept
    assert sorted(lines(folder)) == list(range(runs))
    later = log.read_text().split()[len(noted) :]
    assert len(later) == runs - len(kept)
    assert not {repr(table["noted"][run].item()) for run in kept} & set(later)
    assert table.csv() == sweep.run(processes=0).csv()
    print(f"\n{runs} runs: {len(kept)} before the kill, {len(later)} after it, 0 twice; the table is that of one go")


def test_ctrl_c_says_how_to_go_on(file, tmp_path, mine):
    folder = tmp_path / "out"
    process = started(file, folder, mine, 40)
    wait_for(folder, 3)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert out == ""
    assert f"of 40 runs; the same command goes on from there ({folder})" in said
    assert "Traceback" not in said
    before = lines(folder)
    Sweep(file, {"high": "1:2:40"}, [f"{mine}:noted"]).run(processes=0, folder=folder)
    assert lines(folder)[: len(before)] == before
    assert sorted(lines(folder)) == list(range(40))


def test_a_worker_that_ends_is_replaced_and_its_run_told(file, mine, tmp_path):
    sweep = Sweep(file, {"high": [1.0, 2.0, 1.2]}, [f"{mine}:deadly"])
    with pytest.raises(
        poise.SceneError, match=r"1 of 3 runs were lost; run 1: its process ended with status 7"
    ) as error:
        sweep.run(processes=1, folder=tmp_path / "out")
    assert "tries them again" in str(error.value)
    assert sorted(lines(tmp_path / "out")) == [0, 2]


def test_what_workers_say_at_their_end_is_told(file, monkeypatch):
    monkeypatch.setattr(sys, "executable", which("false"))
    (found,) = run_in_processes(iter([Task(0, {}, How(()), str(file))]), 1)
    assert (found.status, found.note) == (LOST, "its process ended with status 1")


def test_workers_that_all_end_are_not_tried_a_thousand_times(file, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", which("false"))
    with pytest.raises(poise.SceneError, match=r"no run could be done: run 0: its process ended with status 1"):
        Sweep(file, {"high": "1:2:1000"}).run(processes=1, folder=tmp_path / "out")


def test_the_line_tells_of_runs_and_the_time_that_is_left(monkeypatch):
    import io

    from poise.sim import progress

    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    bar = Progress(200, shown=True, stream=stream, patience=0.0, unit="runs", first=100)
    bar.tell(110)
    assert "110 of 200 runs, 1:30 min left" in stream.getvalue()


def test_fall_time_over_height(file):
    """A ball falls to half of its height in √(h/g), but for half a step; from low down the ground is in the way."""
    table = Sweep(file, {"high": [0.15, 0.5, 1.0]}, ["fall_time"], seconds=0.4, dt=1e-3).run(processes=0)
    assert table["fall_time"].tolist() == [inf, *(pytest.approx(sqrt(h / 9.81), abs=1e-3) for h in (0.5, 1.0))]
