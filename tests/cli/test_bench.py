"""`poise bench`: finding, running and collecting benchmarks."""

import json

import pytest
from typer.testing import CliRunner

from poise.cli import bench
from poise.cli.main import app

run = CliRunner().invoke

GOOD = '''"""How long nothing takes.

More words.
"""
import json
from _shared import VALUE

def main(argv):
    print("a table")
    if argv:
        flag, file = argv
        assert flag == "--json"
        with open(file, "w") as out:
            json.dump({"value": VALUE}, out)
    return 0
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkout with some benchmarks."""
    scripts = {
        "_shared": "VALUE = 3\n",
        "good": GOOD,
        "failing": "def main(argv):\n    return 3\n",
        "raising": "def main(argv):\n    raise RuntimeError('no such peer')\n",
        "leaving": "import sys\ndef main(argv):\n    sys.exit('left')\n",
        "hollow": "pass\n",
    }
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(bench, "checkout", lambda: tmp_path)
    return tmp_path


def test_list_shows_names_and_first_lines(folder):
    done = run(app, ["bench", "--list"])
    assert done.exit_code == 0
    assert "good: How long nothing takes.\n" in done.stdout
    assert "_shared" not in done.stdout


def test_benchmark_by_name(folder):
    done = run(app, ["bench", "good"])
    assert done.exit_code == 0
    assert "a table\n" in done.stdout
    assert "== good: status 0" in done.stdout


def test_quick_is_passed_on(folder):
    (folder / "told.py").write_text("def main(argv):\n    print(argv)\n")
    done = run(app, ["bench", "told", "--quick"])
    assert done.exit_code == 0
    assert "['--quick']\n" in done.stdout


def test_numbers_are_collected(folder, tmp_path):
    file = tmp_path / "all.json"
    assert run(app, ["bench", "good", "--json", str(file)]).exit_code == 0
    collected = json.loads(file.read_text())
    assert collected["good"]["data"] == {"value": 3}
    assert collected["good"]["status"] == 0


@pytest.mark.parametrize("name", ["failing", "raising", "leaving", "hollow"])
def test_failure_is_told_and_the_others_still_run(folder, name):
    done = run(app, ["bench", name, "good"])
    assert done.exit_code == 1
    assert f"1 of 2 benchmarks failed: {name}" in done.stderr
    assert "a table" in done.stdout


def test_benchmark_that_writes_no_numbers_fails_when_they_are_wanted(folder, tmp_path):
    file = tmp_path / "all.json"
    done = run(app, ["bench", "failing", "--json", str(file)])
    assert done.exit_code == 1
    assert "failing wrote no usable JSON" in done.stderr
    assert json.loads(file.read_text())["failing"]["status"] == 3


@pytest.mark.parametrize("written", [None, "{", ""])
def test_status_0_without_numbers_is_a_failure(folder, tmp_path, written):
    """A benchmark that says that all is well but leaves nothing to read has not done what was asked."""
    text = "pass" if written is None else f"open(argv[1], 'w').write({written!r})"
    (folder / "silent.py").write_text(f"def main(argv):\n    {text}\n    return 0\n")
    file = tmp_path / "all.json"
    done = run(app, ["bench", "silent", "--json", str(file)])
    assert done.exit_code == 1
    assert "silent wrote no usable JSON" in done.stderr
    assert json.loads(file.read_text())["silent"]["status"] == 1


def test_unknown_name_is_answered_with_the_nearest(folder):
    done = run(app, ["bench", "goood"])
    assert done.exit_code == 1
    assert "no benchmark is called 'goood'; did you mean good?" in done.stderr


def test_file_that_cannot_be_written_is_found_before_measuring(folder, tmp_path):
    done = run(app, ["bench", "good", "--json", str(tmp_path / "no" / "such" / "file.json")])
    assert done.exit_code == 1
    assert "a table" not in done.stdout
    assert "No such file or directory" in done.stderr


def test_outside_a_checkout(monkeypatch, tmp_path):
    installed = tmp_path / "lib" / "site-packages" / "poise" / "cli" / "bench.py"
    monkeypatch.setattr(bench, "__file__", str(installed))
    done = run(app, ["bench"])
    assert done.exit_code == 1
    assert "run this in a checkout" in done.stderr


def test_benchmarks_of_this_checkout_keep_the_contract():
    for script in bench.find_scripts(bench.checkout()).values():
        assert bench.summary(script), f"{script.name} does not say what it measures"
        assert "def main(argv" in script.read_text(encoding="utf-8"), f"{script.name} has no main(argv)"
