"""Ragdolls: humanoids with damped joints."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.characters import humanoid, ragdoll
from poise.characters.ragdoll import beyond, critical_damping
from poise.model.errors import SceneError


def test_a_rod_swings_as_damped_pendulums_do() -> None:
    """Each half of a swing is exp(−π ζ / √(1 − ζ²)) of the one before."""
    ratio, rod = 0.1, poise.box(0.02, 0.02, 0.5, mass=1.5)
    scene = poise.Scene()
    scene.hinge(None, rod, axis="y", anchor=(0, 0, 0.25), name="rod")
    damping = ratio * critical_damping(scene.compile(), "rod", (0, 0, 0.25))
    scene.joint("rod").damping = damping
    world = poise.dynamics.Simulation(scene.compile(), dt=1e-3, method="rk4")
    world.q[0] = 0.02
    seen = [0.02]
    for _ in range(3000):
        world.step()
        seen.append(float(world.q[0]))
    peaks = [abs(b) for a, b, c in zip(seen, seen[1:], seen[2:], strict=False) if (b - a) * (c - b) < 0]
    expected = np.exp(-np.pi * ratio / np.sqrt(1 - ratio**2))
    assert peaks[1] / peaks[0] == pytest.approx(expected, rel=2e-3)
    assert peaks[2] / peaks[1] == pytest.approx(expected, rel=2e-3)


def test_limbs_hang_with_all_that_is_beyond() -> None:
    scene = poise.Scene()
    scene.add(ragdoll(), name="doll")
    model = scene.compile()
    names = [model.body_names[k] for k in beyond(model, model.body_names.index("doll/thigh_l"))]
    assert names == ["doll/thigh_l", "doll/shank_l", "doll/foot_l"]


def test_all_joints_but_the_root_are_damped() -> None:
    doll, person = ragdoll(), humanoid()
    assert [body.name for body in doll.bodies] == [body.name for body in person.bodies]
    damping = {joint.name: joint.damping for body in doll.bodies for joint in body.joints}
    assert damping.pop("root") == 0.0
    assert min(damping.values()) > 0.0
    assert damping["hip_l"] == pytest.approx(damping["hip_r"])
    assert damping["hip_l"] > damping["knee_l"] > damping["ankle_l"]


def test_damping_grows_with_the_person_and_the_ratio() -> None:
    def knee(**options: float) -> float:
        return next(
            joint.damping for body in ragdoll(**options).bodies for joint in body.joints if joint.name == "knee_l"
        )

    assert knee(damping_ratio=0.0) == 0.0
    assert knee(damping_ratio=0.2) == pytest.approx(2.0 * knee(damping_ratio=0.1))
    assert knee(mass=100.0) > knee(mass=60.0)


@pytest.mark.parametrize("ratio", [-0.1, 11.0, np.nan, np.inf, "much", None, True])
def test_ratios_that_cannot_be(ratio: object) -> None:
    with pytest.raises(SceneError, match="damping_ratio"):
        ragdoll(damping_ratio=ratio)  # type: ignore[arg-type]
