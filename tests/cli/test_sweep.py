"""`poise sweep`: what it prints, writes and leaves with."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from poise.batch import Table
from poise.cli.main import app

run = CliRunner().invoke

SCENE = """
parameters: {high: 1.0, blow: 0}
ground: {friction: 0.5}
bodies:
  - {name: ball, position: [0, 0, $high], velocity: [1, 0, 0], shape: {kind: sphere, radius: 0.1, mass: 2}}
pushes: [{body: ball, time: 0.05, duration: 1, force: [$blow, 0, 0]}]
duration: 0.1
"""


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ball.yaml"
    file.write_text(SCENE)
    return file


def swept(*words):
    """In this process: to start others takes longer than the runs. It does not tell of kernels that it compiles."""
    return run(app, ["sweep", "ball.yaml", "--processes", "0", *words], env={"POISE_QUIET": "1"})


def test_table_files_and_plots(scene, tmp_path):
    words = ["--set", "ball.mass=1:3:3", "--set", "ground.friction=0.2,0.9", "--metric", "final_height,energy_lost"]
    done = swept(*words, "-m", "max_contact_force")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    names = ["run", "ball.mass", "ground.friction", "final_height", "energy_lost", "max_contact_force", "status"]
    assert lines[0].split() == names
    assert lines[6].split()[:3] == ["5", "3", "0.9"]
    assert lines[7].startswith("wrote ball-sweep/table.csv, ball-sweep/table.parquet, ball-sweep/final_height.svg")
    table = Table.load(tmp_path / "ball-sweep" / "table.csv")
    assert table["ball.mass"].tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    again = Table.load(tmp_path / "ball-sweep" / "table.parquet")
    assert again.csv() == table.csv()
    assert again.metrics == ["final_height", "energy_lost", "max_contact_force"]
    assert "energy_lost (J)" in (tmp_path / "ball-sweep" / "energy_lost.svg").read_text()


def test_json(scene):
    done = swept("--set", "high=1,2", "--metric", "fall_time", "--json", "--out", "there", "--no-parquet")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["runs"], facts["ok"], facts["diverged"], facts["failed"]) == (2, 2, 0, 0)
    assert facts["rows"][1]["high"] == 2
    assert facts["rows"][1]["fall_time"] is None  # never: JSON has no infinity
    assert (facts["csv"], facts["parquet"], facts["plots"]) == ("there/table.csv", None, [])


def test_what_diverged_is_told(scene):
    # 1e308 N on 1e-9 kg: the speed is beyond the largest number, however it is rounded
    done = swept("--set", "blow=0,1e308", "--set", "ball.mass=1e-9")
    assert done.exit_code == 0, done.stderr
    assert "1 diverged; run 1: diverged at t = 0.0" in done.stdout
    assert "nan" in done.stdout


def test_what_failed_is_told_and_leaves_with_1(scene, tmp_path):
    (tmp_path / "mine.py").write_text("def mine(world, recording):\n    return 1 / int(world.q[2] > 0.5)\n")
    done = swept("--set", "high=0.2,1", "--metric", "mine.py:mine")
    assert done.exit_code == 1
    assert "1 failed; run 0: ZeroDivisionError" in done.stdout


def test_draws_have_a_plot_for_each_setting(scene, tmp_path):
    done = swept("--set", "high=1:2", "--set", "ball.mass=1:2", "--random", "5", "--seed", "2")
    assert done.exit_code == 0, done.stderr
    plots = sorted(path.name for path in (tmp_path / "ball-sweep").glob("*.svg"))
    assert plots == ["final_height-over-ball.mass.svg", "final_height-over-high.svg"]


def test_long_tables_are_cut_on_the_terminal_only(scene, tmp_path):
    done = swept("--set", "high=1:2:45", "--seconds", "0.01")
    assert "… and 5 more rows in ball-sweep/table.csv" in done.stdout
    assert len(Table.load(tmp_path / "ball-sweep" / "table.csv")) == 45


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is nothing to vary: --set NAME=VALUES"),
        (["--set", "high"], "must be name=values"),
        (["--set", "high=1", "--set", "high=2"], "set: high is given twice; write all its values in one"),
        (["--set", "grond.friction=1,2"], 'the scene has nothing called "grond", did you mean "ground"?'),
        (["--set", "high=1:2"], "needs a number of points"),
        (["--set", "high=1:2:x"], "a range must be low:high:points"),
        (["--set", "ground.friction=0.5,-1"], "must be 0 or more, found -1"),
        (["--set", "high=1", "--metric", "fal_time"], 'there is no metric "fal_time", did you mean "fall_time"?'),
        (["--set", "high=1", "--metric", "no.py:f"], "no.py: there is no such file"),
        (["--set", "high=1", "--dt", "0"], "dt: must be more than 0"),
        (["--set", "high=1", "--dt", "nan"], "dt: must be more than 0"),
        (["--set", "high=1", "--processes", "-3"], "processes: must be a whole number"),
        (["--set", "high=1", "--dask", "x:1"], "name one of them"),
        (["--set", "high=1", "--out", "ball.yaml"], "ball.yaml: cannot be written"),
        (["--set", "high=1", "--random", "-1"], "random: must be a whole number"),
    ],
)
def test_bad_input_leaves_with_1(scene, words, said):
    done = swept(*words)
    assert done.exit_code == 1, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_another_sweep_in_the_folder_is_refused(scene):
    assert swept("--set", "high=1,2").exit_code == 0
    assert swept("--set", "high=1,2").exit_code == 0
    done = swept("--set", "high=1,3")
    assert done.exit_code == 1
    assert "settings: high: [1, 2] there, [1, 3] here" in done.stderr


def test_without_pyarrow(scene, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = swept("--set", "high=1,2")
    assert done.exit_code == 0, done.stderr
    assert "parquet" not in done.stdout
    done = swept("--set", "high=1,2", "--parquet")
    assert done.exit_code == 1
    assert "pip install pyarrow" in done.stderr


def test_help_has_an_example():
    done = run(app, ["sweep", "--help"])
    assert done.exit_code == 0
    assert "poise sweep scene.yaml --set hero.strength=100:400:7" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_the_person_of_the_documentation_falls_below_172_newton_metres(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (tmp_path / "squat.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    words = ["--set", "hero.strength=150,200", "--metric", "fall_time,peak_torque", "--json", "--processes", "0"]
    done = run(app, ["sweep", "squat.yaml", *words, "--set", "ground.friction=0.9"])
    assert done.exit_code == 0, done.stderr
    weak, strong = json.loads(done.stdout)["rows"]
    assert weak["fall_time"] == pytest.approx(1.2575, abs=0.02)
    assert weak["peak_torque"] == 150.0
    assert strong["fall_time"] is None
    assert strong["peak_torque"] == pytest.approx(171.66, abs=0.5)


def test_run_takes_paths_too(scene):
    done = run(app, ["run", "ball.yaml", "--set", "ball.position.z=3", "--seconds", "0.01", "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["bodies"]["ball"][2] > 2.9
