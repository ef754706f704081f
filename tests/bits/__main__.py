"""Compare the results of all scenes with recorded hashes, or record them: see `--help`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from .runs import Hashes, cells, differences, key, other_versions, path_of, record, recorded, run, target

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("native", "avx2", "generic")


def arguments(argv: list[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bits",
        description="Compare q and v of all scenes, bit by bit, with the recorded hashes of a target.",
        epilog="Exit status 1: some differ.",
    )
    parser.add_argument("--record", action="store_true", help="record the hashes, and say which ones have changed")
    parser.add_argument(
        "--target", choices=(*TARGETS, "all"), default="native", help="code to generate (default: native)"
    )
    parser.add_argument("--scene", default="", help="only scenes whose names contain this")
    parser.add_argument("--column", default="", help="only columns whose names contain this")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Run the cells for one target; other targets run in processes of their own."""
    asked = arguments(argv)
    if asked.target != "native" and "POISE_BITS" not in os.environ:
        names = TARGETS if asked.target == "all" else (asked.target,)
        return max([run_for(name, argv) for name in names])
    name = target()
    now: Hashes = {}
    for scene, column in cells():
        if asked.scene in scene and asked.column in column:
            now[key(scene, column)] = run(scene, column)
    before = recorded(name)
    return write(name, before, now) if asked.record else compare(name, before, now)


def run_for(name: str, argv: list[str]) -> int:
    """The same command with the environment of a target."""
    sys.path.insert(0, str(ROOT / ".ci"))
    from everywhere import runs

    variables = {key: value for key, value in runs()[name].variables.items() if value is not None}
    if name != "native":
        variables["OPENBLAS_CORETYPE"] = "Haswell" if name == "avx2" else "Prescott"
    kept = [word for k, word in enumerate(argv) if word != "--target" and (k == 0 or argv[k - 1] != "--target")]
    kept = [word for word in kept if not word.startswith("--target=")]
    command = [sys.executable, "-m", "tests.bits", *kept]
    print(f"{name}:", flush=True)
    return subprocess.run(command, env=os.environ | variables | {"POISE_BITS": name}, check=False, cwd=ROOT).returncode


def compare(name: str, before: Hashes | None, now: Hashes) -> int:
    """Say which cells differ from what was recorded."""
    if before is None:
        print(f"no hashes were recorded for {name}: record them with --record on a commit that is known to be right")
        return 1
    changed = differences({cell: before[cell] for cell in before if cell in now}, now)
    print("\n".join([*changed, f"{name}: {len(now)} cells, {len(changed)} differ"]))
    if changed and (others := other_versions(name)):
        print("versions differ too: " + ", ".join(others))
    return 1 if changed else 0


def write(name: str, before: Hashes | None, now: Hashes) -> int:
    """Record the cells that ran, and keep the others."""
    whole = {key(*cell) for cell in cells()}
    kept = {cell: hashes for cell, hashes in (before or {}).items() if cell in whole}
    record(name, dict(sorted((kept | now).items())))
    changed = differences(kept, kept | now) if before else []
    print("\n".join([*changed, f"{name}: {len(now)} cells recorded in {path_of(name).relative_to(ROOT)}"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
