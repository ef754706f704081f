"""Makes `.venv` ready to run Poise from this checkout. Needs nothing but Python's standard library.

Usage: python3 .ci/environment.py [test]

What was installed is written to a stamp in `.venv`; while it is whole and nothing that it depends on has changed, this
ends at once. An environment whose making was interrupted carries a mark and is made anew. One that somebody else made
is never removed: Poise is installed into it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".poise-stamp"
UNFINISHED = VENV / ".poise-unfinished"
LOG = VENV / "poise-install.log"
LOCK = ROOT / ".venv.lock"

OLDEST, NEWEST = (3, 11), (3, 13)
OFFLINE = (
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname",
    "Failed to establish a new connection",
    "NewConnectionError",
    "Network is unreachable",
    "Connection refused",
    "Could not connect",
    "error sending request",
    "dns error",
)


class Failure(Exception):
    """Something that the user has to know, in one line; `details` follow it."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


def main(extras: list[str]) -> int:
    """Make the environment ready; exit status."""
    if os.name != "posix":
        print("poise: ./demo and ./test need Linux or macOS; elsewhere: pip install -e .", file=sys.stderr)
        return 1
    try:
        with locked() as lock:
            prepare(set(extras), lock)
    except Failure as failure:
        print(f"poise: {failure}", file=sys.stderr)
        if failure.details:
            print(failure.details, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"poise: making .venv failed: {error}", file=sys.stderr)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            advice = f'copy it to a folder of yours, or install from it: pip install "{ROOT}"'
            print(f"{ROOT} cannot be written: {advice}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("poise: interrupted; the next run starts the installation anew", file=sys.stderr)
        return 130
    return 0


@contextlib.contextmanager
def locked() -> Iterator[int]:
    """Hold a lock for as long as this process, or an installer that it started, lives."""
    import fcntl

    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("poise: waiting for another run that is installing", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def prepare(extras: set[str], lock: int) -> None:
    """Bring `.venv` to a state that has the extras."""
    stamp = read_stamp()
    version = venv_version()
    if stamp is not None and stamp == wanted_stamp(version, set(stamp["extras"])) and extras <= set(stamp["extras"]):
        return
    if stamp is not None:
        extras |= set(stamp["extras"])
    ours = stamp is not None or UNFINISHED.exists()
    moved = stamp is not None and (stamp["root"] != str(ROOT) or stamp["python"] != version)
    if VENV.exists() and (UNFINISHED.exists() or moved or version is None):
        if not ours:
            raise Failure(f"{VENV} is there but holds no Python 3.11 to 3.13 that runs: move it away and try again")
        shutil.rmtree(VENV)
    if not VENV.exists():
        ours = True
        make_venv()
    STAMP.unlink(missing_ok=True)
    if ours:
        UNFINISHED.touch()
    install(extras, lock)
    write_stamp(wanted_stamp(venv_version(), extras))
    UNFINISHED.unlink(missing_ok=True)


def read_stamp() -> dict[str, Any] | None:
    """What the last complete installation was made of."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) and {"root", "python", "extras"} <= set(stamp) else None


def write_stamp(stamp: dict[str, Any]) -> None:
    """Written whole or not at all."""
    draft = STAMP.with_suffix(".new")
    draft.write_text(json.dumps(stamp), encoding="utf-8")
    draft.replace(STAMP)


def wanted_stamp(version: str | None, extras: set[str]) -> dict[str, Any]:
    """What an installation made now would depend on."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return {"root": str(ROOT), "python": version, "pyproject": digest, "extras": sorted(extras)}


def venv_version() -> str | None:
    """Version of the Python in `.venv`, None when it does not run or does not suit."""
    code = "import sys; print(*sys.version_info[:3], sep='.')"
    try:
        found = subprocess.run(
            [str(PYTHON), "-I", "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return found if OLDEST <= tuple(map(int, found.split(".")[:2])) <= NEWEST else None


def make_venv() -> None:
    """A new environment from the Python that runs this, marked as unfinished before anything else is in it."""
    print(f"poise: making .venv with Python {sys.version.split()[0]}", file=sys.stderr)
    VENV.mkdir()
    UNFINISHED.touch()
    command = [sys.executable, "-m", "venv", str(VENV)]
    if not has_pip():
        command.append("--without-pip")
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise Failure(f"making .venv with {sys.executable} failed", tail(made.stdout + made.stderr))


def has_pip() -> bool:
    """Whether this Python can put pip into an environment; without it, uv must be there."""
    from importlib.util import find_spec

    return find_spec("ensurepip") is not None


def install(extras: set[str], lock: int) -> None:
    """Install Poise in editable form, with uv where there is one, else (or when uv fails) with pip."""
    print("poise: installing packages (a few minutes the first time)", file=sys.stderr)
    installers = []
    if uv := shutil.which("uv"):
        installers.append([uv, "pip", "install", "--python", str(PYTHON)])
    if subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        installers.append([str(PYTHON), "-m", "pip", "install", "--no-input"])
    if not installers:
        raise Failure(f"neither uv nor pip is there to install into {VENV}")
    with LOG.open("w", encoding="utf-8") as log:
        if any(all(run([*tool, *what], log, lock) for what in wanted_packages(extras)) for tool in installers):
            return
    text = LOG.read_text(encoding="utf-8", errors="replace")
    offline = any(sign in text for sign in OFFLINE)
    reason = "the package index cannot be reached (no network?)" if offline else "see below"
    raise Failure(f"installing Poise failed: {reason}; the whole log is {LOG}", tail(text))


def wanted_packages(extras: set[str]) -> list[list[str]]:
    """Arguments for an installer, one call each."""
    target = f"{ROOT}[{','.join(sorted(extras))}]" if extras else str(ROOT)
    calls = [["--editable", target]]
    if "test" in extras and (venv_version() or "").startswith("3.13."):
        # tests read the models that come with dm-control; what keeps it from Python 3.13 is a dependency of its code
        calls.append(["--no-deps", "dm-control>=1.0.30"])
    return calls


def run(command: list[str], log: TextIO, lock: int) -> bool:
    """Run an installer; whether it succeeded. It inherits the lock: should this process be killed, nobody starts before
    the installer has ended too.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(lock,), cwd=ROOT, check=False
    )
    return done.returncode == 0


def tail(text: str, lines: int = 12) -> str:
    """The last lines of a text, indented."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
