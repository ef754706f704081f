"""The command as a whole: help, version, misspelt verbs, exit statuses."""

import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import poise
from poise.cli.main import app
from poise.cli.report import clear_errors, to_json

VERBS = ("demo", "run", "info", "bench", "doctor")
run = CliRunner().invoke


def call(*arguments, **environment):
    """Run `python -m poise` as a user would."""
    command = [sys.executable, "-m", "poise", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=os.environ | environment, check=False
    )


def test_version():
    for flag in ("--version", "-V"):
        done = run(app, [flag])
        assert (done.exit_code, done.stdout) == (0, f"poise {poise.__version__}\n")


def test_help_names_every_verb():
    for flag in ("--help", "-h"):
        done = run(app, [flag])
        assert done.exit_code == 0
        for verb in VERBS:
            assert f"\n  {verb} " in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb):
    done = run(app, [verb, "--help"])
    assert done.exit_code == 0
    assert f"Example: poise {verb} " in done.stdout


def test_no_verb_shows_the_help_and_counts_as_wrong_use():
    done = call()
    assert done.returncode == 2
    assert "doctor" in done.stdout + done.stderr


@pytest.mark.parametrize(("misspelt", "meant"), [("docter", "doctor"), ("benhc", "bench"), ("inf", "info")])
def test_misspelt_verb_is_answered_with_the_nearest(misspelt, meant):
    done = call(misspelt)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"No such command '{misspelt}'. Did you mean '{meant}'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_option_is_wrong_use():
    done = call("doctor", "--jsn")
    assert done.returncode == 2
    assert "--json" in done.stderr


def test_missing_argument_is_wrong_use():
    done = call("info")
    assert done.returncode == 2
    assert "Missing argument" in done.stderr


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['poise', '--help']\n"
        "from poise.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('loaded', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded ")[2].split())
    assert "typer" in loaded
    assert not loaded & {"numpy", "numba", "rich", "pydantic", "mujoco", "yaml"}


def test_terminal_without_unicode_gets_no_traceback(tmp_path):
    done = call("info", str(tmp_path / "größe.xml"), PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_json_has_no_numbers_that_json_lacks():
    text = to_json({"limits": [float("-inf"), float("nan"), 1.5], "nested": {"x": (float("inf"),)}})
    assert "NaN" not in text
    assert "Infinity" not in text
    assert text.count("null") == 3


def test_missing_extra_is_one_message_and_our_own_mistakes_are_not_hidden(capsys):
    with pytest.raises(typer.Exit), clear_errors():
        raise ImportError('MJCF needs mujoco: pip install "poise[mjcf]"')
    assert capsys.readouterr().err == 'poise: MJCF needs mujoco: pip install "poise[mjcf]"\n'
    with pytest.raises(ImportError, match="no_such_module"), clear_errors():
        raise ImportError("No module named 'no_such_module'")
