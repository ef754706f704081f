"""Compiles the standard kernels from nothing and prints where the time went, as JSON.

A program of its own (`python -m poise.cli.cold_compile`): only a new process with an empty cache starts cold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any


def measure() -> dict[str, Any]:
    """Run this module in a new process with an empty cache; its findings, times in s."""
    with tempfile.TemporaryDirectory(prefix="poise-cold-") as folder:
        command = [sys.executable, "-m", "poise.cli.cold_compile"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | {"POISE_CACHE_DIR": folder}, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(f"the compiling process ended with status {done.returncode}")
    findings: dict[str, Any] = json.loads(done.stdout)
    return findings


def main() -> None:
    """Use what a first run uses: the functions of dynamics, a world with contacts, a batch in lanes."""
    start = time.perf_counter()
    from poise import dynamics
    from poise.kernel.jit import compile_log
    from poise.model.scene import Body, Joint, Scene
    from poise.model.shapes import box
    from poise.sim.world import World

    imported = time.perf_counter()
    model = Scene(bodies=[Body("door", joints=[Joint("hinge")], shapes=[box(0.1, 0.1, 0.1)])]).compile()
    q, v = model.q_rest, [0.0] * model.nv
    dynamics.forward_dynamics(model, q, v)
    dynamics.inverse_dynamics(model, q, v, v)
    dynamics.mass_matrix(model, q)
    dynamics.energy(model, q, v)
    World(model).step()
    dynamics.forward_dynamics(model, [list(q)] * 8, [v] * 8)
    end = time.perf_counter()
    print(json.dumps({"imports": imported - start, "kernels": dict(compile_log()), "total": end - start}))


if __name__ == "__main__":
    main()
