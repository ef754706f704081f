"""How long one forward dynamics of a humanoid takes, beside MuJoCo's step and Pinocchio's aba.

One call of the articulated-body algorithm on MuJoCo's humanoid (27 degrees of freedom): in float64 inside a kernel and
called from Python, and in lanes of worlds. Beside it MuJoCo's `mj_step` without contacts and constraints, in its own
loop in C, and Pinocchio's `aba`: called from Python, and without the call, which is the faster of two estimates: its
batch call in one thread, whose loop is in C++, or the call from Python less the same call on a tree of no joints.
`--avx2` compiles Poise without AVX-512, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _common import Case, Report, Row, Timings, arguments, effort, measure
from _kernels import ABM
from _peers import MujocoPeer, PinocchioPeer
from _trees import States, fill, filled, find_humanoid, handles, load_model, random_states

from poise.dynamics.aba import articulated_body
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.integrate import STAGES, semi_implicit
from poise.dynamics.workspace import Workspace
from poise.kernel.jit import cpu, entry
from poise.kernel.memory import F32X8, F32X16, F64, F64X4, F64X8, Width
from poise.model.model import Model

QUESTION = "one forward dynamics of a humanoid, beside MuJoCo and Pinocchio"
ALLOWED = {"f64": 1e-11, "f32": 2e-4}
N_STATES = 16
BATCH = 64

ONE = entry(articulated_body, MODEL, STATE, INPUT, WORK, extra=("float64",))
STEP = entry(semi_implicit, MODEL, STATE, INPUT, WORK, STAGES, extra=("float64", "int64"))


def widths() -> tuple[Width, ...]:
    """One world, and the lanes that this processor may run best."""
    return (F64, F64X8, F32X16) if cpu()["simd_bits"] >= 512 else (F64, F64X4, F64X8, F32X8, F32X16)


def poise_case(model: Model, width: Width, states: States) -> Case:
    """The method in a loop inside a kernel."""
    space = filled(model, width, states)
    run, given = ABM[width], handles(space)
    return Case(
        f"Poise {width}", lambda n: run(*given, 0.0, n), worlds=width.lanes, prepare=lambda: fill(space, states)
    )


def python_case(model: Model, states: States) -> Case:
    """The method called from Python."""
    run, given = ONE[F64], handles(filled(model, F64, states))

    def many(n: int) -> None:
        for _ in range(n):
            run(*given, 0.0)

    return Case("Poise f64 from Python", many)


def step_case(model: Model, states: States) -> Case:
    """Whole semi-implicit steps in a loop inside a kernel."""
    space = filled(model, F64, states)
    run, given = STEP[F64], (*handles(space), space.stages.handle)
    return Case("Poise step", lambda n: run(*given, model.dt, n), prepare=lambda: fill(space, states))


def mujoco_case(peer: MujocoPeer, states: States) -> Case:
    """Steps in MuJoCo's own loop."""
    return Case("mj_step", peer.steps, prepare=lambda: peer.set_state(states.q[0], states.v[0], states.tau[0]))


def pinocchio_cases(peer: PinocchioPeer, states: States) -> list[Case]:
    """From Python in both conventions and on a tree of no joints, and as a batch in C++."""
    rows = [peer.convert(q, v, tau) for q, v, tau in zip(states.q, states.v, states.tau, strict=True)]
    call, model, data = peer.pin.aba, peer.model, peer.data
    batch = peer.batch([rows[k % len(rows)] for k in range(BATCH)])

    def calls(convention: Any, model: Any = model, data: Any = data, row: Any = rows[0]) -> Any:
        def many(n: int) -> None:
            for _ in range(n):
                call(model, data, *row, convention)

        return many

    def batches(n: int) -> None:
        for _ in range(n):
            batch()

    conventions = peer.pin.Convention
    nothing = peer.pin.Model()
    empty = (nothing, nothing.createData(), [np.zeros(0)] * 3)
    return [
        Case("aba local", calls(conventions.LOCAL)),
        Case("aba world", calls(conventions.WORLD)),
        Case("aba empty", calls(conventions.WORLD, *empty)),
        Case("aba batch", batches, worlds=BATCH),
    ]


def without_calls(times: Timings) -> tuple[str, str]:
    """The faster convention from Python, and the faster estimate of what `aba` takes without a call from Python."""
    called = min(("aba local", "aba world"), key=lambda name: times.of(name).median)
    times.seconds["aba less call"] = times.seconds[called] - times.seconds["aba empty"]
    return called, min(("aba batch", "aba less call"), key=lambda name: times.of(name).median)


def poise_accelerations(model: Model, width: Width, states: States) -> np.ndarray:
    """(n, nv) of all states, in whatever lanes."""
    space, rows = Workspace(model, width), []
    for first in range(0, len(states.q), width.lanes):
        fill(space, states, first)
        ONE[width](*handles(space), 0.0)
        rows.append(space.w.a[None].copy() if width.lanes == 1 else space.w.a.T.copy())
    return np.concatenate(rows)[: len(states.q)]


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Greatest difference of accelerations, as a fraction of a state's greatest."""
    return float((np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1)).max())


def without_avx512() -> dict[str, str]:
    """Environment in which kernels are compiled for this processor as if it had AVX2 and no more."""
    import llvmlite.binding as llvm

    features = dict(llvm.get_host_cpu_features())
    if not features.get("avx2"):
        raise SystemExit("--avx2: this processor has no AVX2")
    narrow = {name: has and not name.startswith(("avx512", "avx10", "evex512")) for name, has in features.items()}
    flags = ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(narrow.items()))
    # tuned as the last of the kind that had no AVX-512
    name = "znver3" if llvm.get_host_cpu_name().startswith("znver") else "haswell"
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": flags}


def rows(times: Timings, residuals: dict[str, float], beside_pin: float) -> list[Row]:
    """The table."""
    limits = {"f64": 0.5, "f64x4": 0.13, "f64x8": 0.13, "f32x8": 0.07, "f32x16": 0.07}

    def row(name: str, beside: str, what: str, **more: Any) -> Row:
        return Row(what, times.of(name), beside=beside, ratio=times.ratio(name, beside), **more)

    table = [Row("MuJoCo mj_step, loop in C", times.of("mj_step"), note="no contacts, no constraints")]
    for name in residuals:
        what, note = f"Poise ABM {name} in a kernel", "" if name == "f64" else "per world"
        table.append(row(f"Poise {name}", "mj_step", what, most=limits[name], residual=residuals[name], note=note))
    table.append(row("Poise step", "mj_step", "Poise whole step f64 in a kernel", note="semi-implicit, as mj_step"))
    called, inner = without_calls(times)
    convention = f"{called.split()[1]} convention, the faster"
    table += [
        row(called, "mj_step", "Pinocchio aba from Python", residual=beside_pin, note=convention),
        row("aba less call", "mj_step", "Pinocchio aba less an empty call", note="of a tree of no joints"),
        row("aba batch", "mj_step", "Pinocchio aba, batch in C++", note="one thread"),
        row("Poise f64", inner, "Poise ABM f64 in a kernel", most=0.6),
        row("Poise f64 from Python", called, "Poise ABM f64 from Python", most=0.6),
    ]
    return table


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True, avx2="compile Poise without AVX-512")
    if options.avx2:
        rest = [argument for argument in argv if argument != "--avx2"]
        command = [sys.executable, str(Path(__file__).resolve()), *rest]
        return subprocess.run(command, env=os.environ | without_avx512(), check=False).returncode
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options)
    states = random_states(model, N_STATES)
    mujoco, pinocchio = MujocoPeer(path), PinocchioPeer(model)
    cases = [poise_case(model, width, states) for width in widths()]
    cases += [python_case(model, states), step_case(model, states), mujoco_case(mujoco, states)]
    times = measure([*cases, *pinocchio_cases(pinocchio, states)], much)

    ours = {str(width): poise_accelerations(model, width, states) for width in widths()}
    inputs = list(zip(states.q, states.v, states.tau, strict=True))
    theirs = np.array([mujoco.accelerations(*row) for row in inputs])
    residuals = {name: difference(a, theirs) for name, a in ours.items()}
    beside_pin = difference(ours["f64"], np.array([pinocchio.accelerations(*row) for row in inputs]))
    settings = {"model": path.name, "from": str(path.parent), "nv": model.nv, "links": model.n_links}
    settings |= {"pinocchio joints": pinocchio.model.njoints - 1, "rounds": much.rounds, "states": N_STATES}
    report = Report("articulated_body", QUESTION, settings, rows(times, residuals, beside_pin), list(ours.values()))
    for row in report.rows:
        row.allowed = ALLOWED["f32" if " f32" in row.what else "f64"]
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
