"""A pendulum released from the horizontal: period and energy against the closed form.

python examples/pendulum.py
"""

import math

import numpy as np

import poise


def main() -> float:
    scene = poise.Scene(gravity=(0, 0, -9.81))
    bob = poise.sphere(1e-3, mass=1.0, position=(0, 0, -1))
    scene.hinge(None, bob, axis="y", name="pendulum")
    model = scene.compile()

    motion = poise.dynamics.simulate(model, 10.0, q=[math.pi / 2], dt=1e-3)
    angle = motion.q[:, 0]
    down = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))  # passes the lowest point, from the one side
    crossings = motion.time[down] + 1e-3 * angle[down] / (angle[down] - angle[down + 1])
    period = float(np.diff(crossings).mean())

    energy = poise.dynamics.energy(model, motion.q, motion.v).total
    print(f"period {period:.6f} s; the elliptic integral gives 2.367842 s")
    print(f"energy changed by {np.ptp(energy):.1e} J of {abs(energy - energy.min()).max() + 9.81:.2f} J")
    return period


if __name__ == "__main__":
    main()
