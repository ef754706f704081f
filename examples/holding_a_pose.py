"""Joint torques of a person who holds out an arm, by inverse dynamics.

python examples/holding_a_pose.py
"""

import math

import numpy as np

import poise
from poise.motion.rotations import quat_exp


def main() -> dict[str, float]:
    scene = poise.Scene()
    hero = scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    model = scene.compile()

    q = model.q_rest.copy()
    q[model.q_slice("shoulder_r")] = quat_exp((0.0, -math.radians(90), 0.0))  # the right arm points forward
    torques = poise.dynamics.gravity_forces(model, q)

    held = {name: float(np.linalg.norm(torques[model.v_slice(name)])) for name in model.joint_names}
    for name, torque in sorted(held.items(), key=lambda item: -item[1])[:6]:
        unit = "N" if name.endswith("root") else "Nm"
        print(f"{name:18s} {torque:8.2f} {unit}")

    # the shoulder holds the arm's weight at its centre of mass
    arm = [model.body_index(f"{hero.name}/{part}_r") for part in ("upper_arm", "forearm", "hand")]
    where = poise.dynamics.bodies(model, q)
    mass = model.body_mass[arm]
    com = where.position[arm] + np.einsum("bij,bj->bi", where.rotation[arm], model.body_com[arm])
    lever = np.linalg.norm(((com - where.position[arm[0]]) * mass[:, None]).sum(axis=0)[:2])
    print(f"weight times lever: {9.81 * lever:.2f} Nm")
    return held | {"expected": 9.81 * float(lever)}


if __name__ == "__main__":
    main()
