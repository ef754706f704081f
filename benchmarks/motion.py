"""A BVH file of 1,000 frames and 31 joints: reading it beside pybvh and numpy.loadtxt, and sampling the clip.

The file is made here, with four digits after the point as most have. Poise makes quaternions of its angles; pybvh keeps
the angles, and numpy.loadtxt reads only the numbers. Sampling is at 1,000 times between the frames, with velocities and
accelerations of every joint.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pybvh
from _common import Case, Report, Row, arguments, effort, measure

from poise.io.bvh import bvh_from_clip, load_bvh
from poise.io.bvh_text import format_bvh
from poise.motion import Clip, Skeleton
from poise.motion.rotations import quat_exp

QUESTION = "what it costs to read a motion and to sample it"
FRAMES, JOINTS, RATE = 1000, 31, 120.0


def made_clip() -> Clip:
    """Waves on every joint of a tree."""
    rng = np.random.default_rng(0)
    times = np.arange(FRAMES) / RATE
    parents = [-1, *(max(0, joint - 3) for joint in range(1, JOINTS))]
    skeleton = Skeleton([f"joint{k}" for k in range(JOINTS)], parents, rng.normal(0.0, 0.2, (JOINTS, 3)))
    turns = 0.4 * np.sin(times[:, None, None] * rng.uniform(1, 6, (JOINTS, 3)) + rng.uniform(0, 6, (JOINTS, 3)))
    return Clip(skeleton, times, quat_exp(turns), np.stack((times, np.sin(times), np.cos(times)), axis=1))


def repeated(call: Callable[[], object]) -> Callable[[int], None]:
    """A loop in Python."""

    def many(n: int) -> None:
        for _ in range(n):
            call()

    return many


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options, rounds=15)
    clip = made_clip()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.bvh"
        file.write_text(format_bvh(bvh_from_clip(clip, 0.01, "z"), 4), encoding="utf-8")
        numbers = file.read_text(encoding="utf-8").split("\n")[-FRAMES - 1 : -1]
        now = np.random.default_rng(1).uniform(0.0, clip.duration, FRAMES)

        def load() -> Clip:
            return load_bvh(file, units="cm", up="z", drop_tpose=False)

        cases = [
            Case("poise", repeated(load)),
            Case("pybvh", repeated(lambda: pybvh.read_bvh_file(file))),
            Case("numpy", repeated(lambda: np.loadtxt(numbers))),
            *(Case(kind, repeated(lambda k=kind: clip.sample(now, turns=k))) for kind in ("smooth", "squad", "slerp")),
            Case("world", repeated(lambda: clip.sample(now).world())),
        ]
        times = measure(cases, much)
        apart = float(np.abs(100.0 * load().world_positions() - pybvh.read_bvh_file(file).joint_positions()).max())
    rows = [
        Row("pybvh's read_bvh_file", times.of("pybvh")),
        Row("numpy.loadtxt of the numbers", times.of("numpy")),
        Row("load_bvh", times.of("poise"), most=50e-3, residual=apart, note="residual: positions beside pybvh's, cm"),
        Row("load_bvh beside it", times.of("poise"), beside="pybvh", ratio=times.ratio("poise", "pybvh")),
        Row("sample, smooth", times.of("smooth")),
        Row("sample, squad", times.of("squad")),
        Row("sample, slerp", times.of("slerp")),
        Row("sample, smooth, and carry to the world", times.of("world")),
    ]
    settings = {"frames": FRAMES, "joints": JOINTS, "times": FRAMES, "rounds": much.rounds}
    return Report("motion", QUESTION, settings, rows, [clip.sample(now).quats_wxyz]).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
