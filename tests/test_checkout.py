"""./demo and ./test on machines where something is missing, and the environment that they keep."""

import errno
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path):
    """A bare copy of what ./demo and ./test need, in a folder whose name has a space."""
    root = tmp_path / "a checkout"
    shutil.copytree(ROOT / ".ci", root / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("demo", "test", "pyproject.toml"):
        shutil.copy2(ROOT / name, root / name)
    return root


@pytest.fixture
def bin_folder(tmp_path):
    """A PATH that holds a shell and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "env", "dirname"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def add_script(folder, name, text):
    path = folder / name
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def call(script, bin_folder, **environment):
    variables = {"PATH": str(bin_folder), "HOME": str(bin_folder)} | environment
    return subprocess.run([str(script)], capture_output=True, text=True, env=variables, check=False)


@pytest.mark.parametrize("name", ["demo", "test"])
def test_no_python_is_said_in_one_line(checkout, bin_folder, name):
    done = call(checkout / name, bin_folder)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("poise: no Python 3.11, 3.12 or 3.13 found (python3 is: none)")
    assert done.stderr.count("\n") == 1


def test_old_python_is_named(checkout, bin_folder):
    add_script(bin_folder, "python3", '[ "$1" = --version ] && echo Python 3.9.2 || exit 1')
    done = call(checkout / "demo", bin_folder)
    assert done.returncode == 1
    assert "(python3 is: Python 3.9.2)" in done.stderr


def test_chosen_python_that_does_not_run_is_named(checkout, bin_folder):
    done = call(checkout / "demo", bin_folder, POISE_PYTHON="snake")
    assert done.returncode == 1
    assert done.stderr == "poise: POISE_PYTHON=snake is not a Python 3.11 to 3.13 that runs\n"


def test_python_without_ensurepip_is_said_in_one_line(checkout, bin_folder, tmp_path):
    hide = (
        "from importlib.machinery import PathFinder as P; f = P.find_spec; "
        "P.find_spec = classmethod(lambda c, n, p=None, t=None: None if n == 'ensurepip' else f(n, p, t))"
    )
    (tmp_path / "sitecustomize.py").write_text(hide)
    add_script(bin_folder, "python3", f'PYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"')
    done = call(checkout / "demo", bin_folder)
    assert done.returncode == 1
    assert "lacks the modules venv and ensurepip" in done.stderr
    assert done.stderr.count("\n") == 1


def test_failed_installation_shows_the_log_and_is_not_reused(checkout, environment, monkeypatch, capfd):
    make_real_venv(environment)
    tell = "import sys; print('Could not fetch: Temporary failure in name resolution'); sys.exit(1)"
    fake = environment.VENV / "pip.py"
    fake.write_text(f"import sys\nif '--version' in sys.argv: sys.exit(0)\n{tell}")
    monkeypatch.setenv("PYTHONPATH", str(environment.VENV))
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    assert environment.main([]) == 1
    said = capfd.readouterr().err
    assert "installing Poise failed: the package index cannot be reached (no network?)" in said
    assert "    Could not fetch: Temporary failure" in said
    assert environment.read_stamp() is None


@pytest.fixture
def environment(checkout):
    """The module that keeps `.venv`, working on the bare checkout."""
    spec = importlib.util.spec_from_file_location("environment", checkout / ".ci" / "environment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_real_venv(environment):
    """A Python that runs, as somebody else would have made it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment.VENV)], check=True)


@pytest.fixture
def recorded(environment, monkeypatch):
    """The same with an installer that only writes down what it was asked for."""
    calls = []
    monkeypatch.setattr(environment, "has_pip", lambda: False)
    monkeypatch.setattr(environment, "install", lambda extras, lock: calls.append(sorted(extras)))
    return calls


def test_arguments_of_the_demo_are_not_extras(checkout, bin_folder):
    (checkout / ".ci" / "environment.py").write_text("import sys\nprint('extras', sys.argv[1:])\nsys.exit(3)\n")
    (bin_folder / "python3").symlink_to(sys.executable)
    command = [str(checkout / "demo"), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(bin_folder)}, check=False)
    assert (done.stdout, done.returncode) == ("extras []\n", 3), done.stderr


def test_second_run_reuses_what_is_there(environment, recorded):
    assert environment.main(["test"]) == 0
    assert environment.main(["test"]) == 0
    assert recorded == [["test"]]


def test_demo_is_content_with_the_environment_of_the_tests(environment, recorded):
    environment.main(["test"])
    environment.main([])
    assert recorded == [["test"]]


def test_tests_add_to_the_environment_of_the_demo(environment, recorded):
    environment.main([])
    kept = environment.VENV / "kept"
    kept.touch()
    environment.main(["test"])
    assert recorded == [[], ["test"]]
    assert kept.exists()


def test_new_requirements_are_installed_with_the_extras_that_were_there(environment, recorded):
    environment.main(["test"])
    with (environment.ROOT / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    environment.main([])
    environment.main([])
    assert recorded == [["test"], ["test"]]


def test_interrupted_installation_is_made_anew(environment, recorded, monkeypatch, capfd):
    def interrupted(extras, lock):
        (environment.VENV / "half").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environment, "install", interrupted)
        assert environment.main([]) == 130
    assert "interrupted" in capfd.readouterr().err
    assert environment.main([]) == 0
    assert not (environment.VENV / "half").exists()
    assert recorded == [[]]


def test_interrupted_update_is_made_anew_with_all_extras_asked_for(environment, recorded, monkeypatch):
    environment.main([])

    def interrupted(extras, lock):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environment, "install", interrupted)
        assert environment.main(["test"]) == 130
    assert environment.main(["test"]) == 0
    assert recorded == [[], ["test"]]


def test_moved_checkout_is_installed_anew(environment, recorded):
    environment.main([])
    stamp = json.loads(environment.STAMP.read_text())
    environment.STAMP.write_text(json.dumps(stamp | {"root": "/elsewhere"}))
    old = environment.VENV / "old"
    old.touch()
    environment.main([])
    assert not old.exists()
    assert recorded == [[], []]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"root": 1}'])
def test_damaged_stamp_is_not_believed(environment, recorded, text):
    environment.main([])
    environment.STAMP.write_text(text)
    assert environment.main([]) == 0
    assert recorded == [[], []]


def test_python_that_is_gone_is_replaced(environment, recorded):
    environment.main([])
    environment.PYTHON.unlink()
    environment.PYTHON.symlink_to("/nowhere/python")
    assert environment.main([]) == 0
    assert environment.venv_version() is not None
    assert recorded == [[], []]


def test_environment_of_somebody_else_is_kept(environment, recorded):
    make_real_venv(environment)
    theirs = environment.VENV / "theirs"
    theirs.touch()
    assert environment.main([]) == 0
    assert theirs.exists()
    assert recorded == [[]]


def test_folder_of_somebody_else_without_python_is_refused(environment, recorded, capfd):
    environment.VENV.mkdir()
    theirs = environment.VENV / "theirs"
    theirs.touch()
    assert environment.main([]) == 1
    assert "move it away" in capfd.readouterr().err
    assert theirs.exists()
    assert recorded == []


@pytest.mark.parametrize(("version", "calls"), [("3.11.9", 1), ("3.12.1", 1), ("3.13.0", 2)])
def test_models_of_dm_control_come_without_its_code_where_that_cannot_run(environment, monkeypatch, version, calls):
    monkeypatch.setattr(environment, "venv_version", lambda: version)
    wanted = environment.wanted_packages({"test"})
    assert len(wanted) == calls
    assert wanted[0] == ["--editable", f"{environment.ROOT}[test]"]
    assert environment.wanted_packages(set()) == [["--editable", str(environment.ROOT)]]


def test_second_run_waits_for_the_first(environment):
    with environment.locked():
        command = [sys.executable, str(environment.ROOT / ".ci" / "environment.py")]
        variables = os.environ | {"PATH": ""}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as second:
            assert second.stderr.readline() == "poise: waiting for another run that is installing\n"
            assert second.poll() is None
            assert not environment.VENV.exists()
            second.kill()


def test_file_in_the_way_is_said_in_one_line(environment, recorded, capfd):
    environment.VENV.symlink_to("/nowhere")
    assert environment.main([]) == 1
    assert capfd.readouterr().err.splitlines()[-1].startswith("poise: making .venv failed:")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_checkout_that_cannot_be_written_is_said(environment, monkeypatch, capfd, number):
    """Modes do not keep root from writing, so the lock says no itself."""

    def refuse():
        raise OSError(number, os.strerror(number), str(environment.LOCK))

    monkeypatch.setattr(environment, "locked", refuse)
    assert environment.main([]) == 1
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("poise: making .venv failed:")
    assert second.startswith(f"{environment.ROOT} cannot be written: copy it")


@pytest.fixture
def debian(bin_folder, tmp_path):
    """A PATH of somebody who may install packages; what was asked of apt-get is in a file."""
    add_script(bin_folder, "id", "echo 0")
    add_script(bin_folder, "timeout", 'shift; exec "$@"')
    add_script(bin_folder, "apt-get", f'echo "$@" >> "{tmp_path}/asked"; exit ${{APT_STATUS:-0}}')
    return bin_folder


def test_a_browser_is_installed_where_that_can_be_done(checkout, debian, tmp_path):
    done = call(checkout / ".ci" / "browser.sh", debian)
    assert done.returncode == 0
    assert done.stderr.startswith("poise: installed chromium in ")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["update", "install", "install"]
    assert asked[1].endswith("chromium --download-only")
    assert asked[2].endswith("chromium")


def test_without_a_browser_the_tests_run_all_the_same(checkout, debian, tmp_path):
    done = call(checkout / ".ci" / "browser.sh", debian, APT_STATUS="100")
    assert done.returncode == 0
    assert done.stderr == "poise: chromium could not be installed: tests in a browser are left out\n"
    (debian / "id").write_text(f"#!{shutil.which('bash')}\necho 1000\n")
    (tmp_path / "asked").unlink()
    assert call(checkout / ".ci" / "browser.sh", debian).returncode == 0
    assert not (tmp_path / "asked").exists(), "nobody but root can install"


def test_a_browser_that_is_there_is_enough(checkout, debian, tmp_path):
    add_script(debian, "chromium", "exit 1")
    done = call(checkout / ".ci" / "browser.sh", debian)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "asked").exists()
