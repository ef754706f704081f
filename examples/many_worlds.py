"""The accelerations of 4096 people at once: SIMD lanes beside a loop.

python examples/many_worlds.py
"""

import time

import numpy as np

import poise


def main(worlds: int = 4096) -> float:
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    model = scene.compile()

    rng = np.random.default_rng(0)
    v = rng.normal(size=(worlds, model.nv))
    q = poise.dynamics.displaced(model, np.tile(model.q_rest, (worlds, 1)), 0.3 * v)

    timings = {}
    for name, dtype in (("float64, 8 lanes", np.float64), ("float32, 16 lanes", np.float32)):
        poise.dynamics.forward_dynamics(model, q[:16], v[:16], dtype=dtype)  # compile, once for this machine
        start = time.perf_counter()
        a = poise.dynamics.forward_dynamics(model, q, v, dtype=dtype)
        timings[name] = time.perf_counter() - start
        print(f"{name:18s} {timings[name] / worlds * 1e6:6.2f} us a world, packing and unpacking included")

    one = poise.dynamics.forward_dynamics(model, q[7], v[7])
    return float(np.abs(a[7] - one).max() / np.abs(one).max())


if __name__ == "__main__":
    main()
