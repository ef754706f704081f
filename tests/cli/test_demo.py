"""`poise demo`: the registry and the verb."""

import sys
import types

import pytest
from typer.testing import CliRunner

from poise.cli import demos
from poise.cli.demos import DEMOS, PAPERS, Demo
from poise.cli.main import app

run = CliRunner().invoke


@pytest.fixture
def registry(monkeypatch):
    """A registry of two demos that write down where they were sent."""
    calls = []
    for name, status in (("pendulum", 0), ("crash", 1)):
        module = types.ModuleType(f"poise.cli.demos.{name}")
        module.run = lambda out, name=name, status=status: calls.append((name, out)) or status
        monkeypatch.setitem(sys.modules, module.__name__, module)
    entries = {name: Demo(name, f"a {name}", paper) for name, paper in (("pendulum", "KOK"), ("crash", ""))}
    monkeypatch.setattr(demos, "DEMOS", entries)
    return calls


def test_first_demo_is_the_default(registry, tmp_path):
    out = tmp_path / "new" / "folder"
    assert run(app, ["demo", "--out", str(out)]).exit_code == 0
    assert registry == [("pendulum", out)]
    assert out.is_dir()


def test_demo_by_name_passes_its_status_on(registry, tmp_path):
    assert run(app, ["demo", "crash", "--out", str(tmp_path)]).exit_code == 1
    assert registry == [("crash", tmp_path)]


def test_list_runs_nothing(registry):
    done = run(app, ["demo", "--list"])
    told = f"{PAPERS['KOK']}\n  pendulum  a pendulum\n{PAPERS['']}\n  crash     a crash\n"
    assert (done.exit_code, done.stdout) == (0, told)
    assert registry == []


def test_misspelt_name_is_answered_with_the_nearest(registry):
    done = run(app, ["demo", "pendulm"])
    assert done.exit_code == 1
    assert done.stderr == "poise: no demo is called 'pendulm'; did you mean pendulum? (there are: pendulum, crash)\n"


def test_file_in_the_way_of_the_folder(registry, tmp_path):
    file = tmp_path / "file"
    file.touch()
    done = run(app, ["demo", "--out", str(file)])
    assert done.exit_code == 1
    assert str(file) in done.stderr
    assert registry == []


def test_empty_registry_is_said(monkeypatch):
    monkeypatch.setattr(demos, "DEMOS", {})
    done = run(app, ["demo"])
    assert done.exit_code == 1
    assert done.stderr == "poise: this version comes without demos\n"


def test_registered_demos_are_there():
    for name, entry in DEMOS.items():
        assert entry.name == name
        assert entry.summary.strip()
        assert entry.paper in PAPERS
        assert callable(entry.load())


def test_titles_tell_where_demos_are_from():
    assert Demo("stairs", "A ragdoll falls.", "KOK").title == "A ragdoll falls (KOK)."
    assert Demo("swing", "A humanoid swings.").title == "A humanoid swings."


def test_unknown_coordinates_are_answered_with_the_nearest(tmp_path):
    scene = tmp_path / "ball.yaml"
    scene.write_text("bodies:\n  - {name: b, shape: {kind: sphere, radius: 0.1}}\n")
    for arguments in (["demo", "stairs", "--out", str(tmp_path)], ["run", str(scene)]):
        result = run(app, [*arguments, "--coordinates", "maximum"])
        assert result.exit_code == 1
        assert "no coordinates are called 'maximum'; did you mean maximal?" in result.output
        assert "Traceback" not in result.output
