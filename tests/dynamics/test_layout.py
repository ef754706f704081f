"""How a model is laid out for kernels: shortcuts are taken only where they are exact."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from poise import dynamics
from poise.dynamics.dynamics_layout import model_block
from poise.kernel.memory import F64
from poise.model.scene import Body, Inertia, Joint, Scene

LUMP = Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.25))


@pytest.mark.parametrize(
    ("axis", "along"),
    [((1, 0, 0), 0), ((0, -2, 0), 1), ((0, 0, 0.3), 2), ((1, 1e-9, 0), 3), ((1e-12, 0, -1), 3), ((1, 1, 0), 3)],
)
def test_an_axis_that_is_a_little_off_turns_about_itself(axis: tuple[float, float, float], along: int) -> None:
    """(1, 1e-9, 0) is of unit length to the last digit, and yet not x: what lies on it must stay where it is."""
    m = Scene(bodies=[Body("door", joints=[Joint("hinge", axis=axis)], inertia=LUMP)]).compile()
    assert model_block(m, F64).primitive_along.tolist() == [along]
    R = dynamics.bodies(m, [2.0]).rotation[0]
    np.testing.assert_allclose(R @ m.primitive_axis[0], m.primitive_axis[0], rtol=0, atol=4e-16)
    np.testing.assert_allclose(R @ R.T, np.eye(3), rtol=0, atol=4e-16)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_centre_of_nothing_is_the_origin(dtype: type) -> None:
    """Without links there is no O to read: whatever lies in memory behind it must not be told as a position."""
    junk = [np.full(64, 7.0) for _ in range(100)]  # what freed memory may be full of
    del junk
    m = Scene().compile()
    for q in (np.zeros(0), np.zeros((20, 0))):
        momentum = dynamics.momentum(m, q, q, dtype=dtype)
        assert not np.any(momentum.com)
        assert not np.any(momentum.angular)
        assert not np.any(dynamics.energy(m, q, q, dtype=dtype).total)


def test_modules_that_a_function_hides_can_be_loaded_again() -> None:
    """`poise.dynamics.energy` is the function: no module may count on having come before it."""
    code = "import importlib as i; [i.reload(i.import_module('poise.dynamics.' + m)) for m in ('measures', 'deltas')]"
    place = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": place}, timeout=100)
