"""Three turns about axes in any order, beside SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from poise.motion.euler import ORDERS, continuous, quat_from_euler, quat_to_euler


@pytest.mark.parametrize("order", ORDERS)
def test_rotations_are_scipys(order):
    angles = np.random.default_rng(0).uniform(-4.0, 4.0, (300, 3))
    quats = quat_from_euler(order, angles)
    wanted = Rotation.from_euler(order.upper(), angles).as_quat(scalar_first=True)
    assert np.abs(np.abs(np.sum(quats * wanted, axis=1)) - 1.0).max() < 1e-14
    np.testing.assert_allclose(
        quat_to_euler(order, quats), Rotation.from_quat(wanted, scalar_first=True).as_euler(order.upper()), atol=1e-12
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("short", [0.0, 1e-12, 1e-8, 1e-5])
def test_near_the_ends_of_the_middle_angle_the_rotation_is_kept(order, short):
    rng = np.random.default_rng(1)
    middle = rng.choice((-1, 1), 50) * (np.pi / 2 - short)
    angles = np.stack((rng.uniform(-3, 3, 50), middle, rng.uniform(-3, 3, 50)), axis=1)
    quats = quat_from_euler(order, angles)
    again = quat_from_euler(order, quat_to_euler(order, quats))
    gap = np.minimum(np.abs(again - quats).max(axis=1), np.abs(again + quats).max(axis=1))
    # where two angles become one, what is given up is the distance from the end
    assert gap.max() < 1e-14 + (short if short < 2e-9 else 0.0)


def test_angles_do_not_jump():
    t = np.linspace(0.0, 4.0, 400)
    angles = np.stack((3.0 * t, 2.2 * np.sin(t), -2.0 * t), axis=1)[:, None]
    quats = quat_from_euler("zxy", angles)
    found = continuous(quat_to_euler("zxy", quats))
    np.testing.assert_allclose(found, angles, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quat_from_euler("zx", (1.0, 2.0, 3.0)), 'order: must have an axis for each angle, found "zx"'),
        (lambda: quat_from_euler("abc", (1.0, 2.0, 3.0)), "order: must have an axis for each angle"),
        (lambda: quat_to_euler("zxz", (1, 0, 0, 0)), "order: must be one of"),
    ],
)
def test_hostile_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
