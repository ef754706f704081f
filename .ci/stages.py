"""The stages of ./test, each with its time. Run by the Python of `.venv` from the root of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from everywhere import THREADS, everywhere

Command = list[str]

LINT: dict[str, Command] = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "mypy": ["-m", "mypy"],
    "import layers": ["-c", "from importlinter.cli import lint_imports_command as main; main()"],
}


# each worker begins elsewhere and takes tests in their order, so that few kernels are compiled twice; who is done takes
# from the others, so that nobody waits for a long file. More workers would only compile more
PARALLEL = ["-n", "auto", "--maxprocesses", "4", "--dist", "worksteal"]


def main(arguments: list[str]) -> int:
    """Run what the arguments ask for; all stages run even when one fails."""
    if arguments == ["lint"]:
        return lint()
    if arguments[:1] == ["slow"]:
        return tests(["-m", "slow", *arguments[1:]])
    if arguments[:1] == ["everywhere"]:
        return everywhere(arguments[1:], ["-m", "pytest", *PARALLEL])
    if arguments:
        return tests(arguments)
    return max(lint(), parallel_tests())


def lint() -> int:
    """Style, types and layers: silent unless something is wrong."""
    return max(stage(name, command, quiet=True) for name, command in LINT.items())


def tests(arguments: list[str]) -> int:
    """Pytest, its output shown as it comes."""
    return stage("pytest", ["-m", "pytest", *arguments], quiet=False)


def parallel_tests() -> int:
    """Pytest in several processes of one thread each: they have the cores, and threads of theirs would wait."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    return tests(PARALLEL)


def stage(name: str, command: Command, *, quiet: bool) -> int:
    """Run this Python with some arguments; 0 when it is content, else 1."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=quiet, text=True, errors="replace", check=False)
    seconds = time.perf_counter() - start
    if quiet and done.returncode != 0:
        print(done.stdout + done.stderr, end="")
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'}  {name:<13}  {seconds:6.1f} s", flush=True)
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
