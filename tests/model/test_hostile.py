"""Junk in every field of a scene: either it compiles to finite arrays, or it is a SceneError. Nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from poise.model.errors import SceneError
from poise.model.scene import Actuator, Body, Inertia, Joint, Keyframe, Scene
from poise.model.shapes import box, convex, plane, sphere
from poise.motion import ConstantPath

JUNK = [
    None,
    True,
    0,
    -1,
    3,
    0.5,
    -0.5,
    float("nan"),
    float("inf"),
    1e308,
    1e-308,
    10**400,
    1j,
    "",
    "hinge",
    "nonsense",
    b"bytes",
    (),
    [],
    {},
    (1,),
    (1, 2),
    (2, 1),
    (1.0, 2.0, 3.0),
    (0, 0, 0),
    (0, 0, 0, 0),
    (1e200, 1e200, 1e200),
    (1e-200, 0, 0),
    (1e308, 1e308, 1e308, 1e308),
    ((1, 2), (3, 4)),
    ((1, 2), None, None),
    ("a", "b", "c"),
    (None, None, None),
    [[1, 2, 3], [4, 5, 6]],
    np.zeros(3),
    np.zeros((3, 3)),
    np.array(["x"]),
    np.array([None, {}], dtype=object),
    np.float32(0.25),
    np.array(2.0),
    object(),
    lambda time: time,
    int,
    Joint("ball"),
    sphere(0.1),
]


def target() -> Scene:
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    mesh = convex(corners, faces=[(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    return Scene(
        bodies=[
            Body("floor", shapes=[plane()]),
            Body("root", joints=[Joint("free")], shapes=[box(1, 2, 3)]),
            Body("arm", "root", joints=[Joint("universal", "shoulder"), Joint("slider", "reach")], shapes=[mesh]),
            Body("hand", "arm", joints=[Joint("ball")], shapes=[box(1, 2, 3)]),
            Body("led", motion="kinematic", path=ConstantPath(), inertia=Inertia(1.0, moments=(1, 1, 1))),
            Body("tip", "arm", joints=[Joint("screw", pitch=0.1)], inertia=Inertia(1.0, moments=(1, 1, 1))),
        ],
        keyframes=[Keyframe("home")],
        excluded_pairs=[("root", "arm")],
        actuators=[Actuator("motor", "motor", "shoulder")],
    )


PARTS = {
    "scene": lambda s: s,
    "plane": lambda s: s.bodies[0].shapes[0],
    "root": lambda s: s.bodies[1],
    "free": lambda s: s.bodies[1].joints[0],
    "box": lambda s: s.bodies[1].shapes[0],
    "material": lambda s: s.bodies[1].shapes[0].material,
    "arm": lambda s: s.bodies[2],
    "universal": lambda s: s.bodies[2].joints[0],
    "ball": lambda s: s.bodies[3].joints[0],
    "mesh": lambda s: s.bodies[2].shapes[0],
    "led": lambda s: s.bodies[4],
    "screw": lambda s: s.bodies[5].joints[0],
    "inertia": lambda s: s.bodies[5].inertia,
    "keyframe": lambda s: s.keyframes[0],
    "actuator": lambda s: s.actuators[0],
}


def test_the_target_is_sound():
    assert target().compile().nv == 19


@pytest.mark.parametrize("part", PARTS)
def test_junk_in_every_field(part):
    base = target()
    refused = 0
    for field in dataclasses.fields(PARTS[part](base)):
        sound = getattr(PARTS[part](base), field.name)
        for junk in JUNK:
            spoilt = PARTS[part](base)
            setattr(spoilt, field.name, junk)
            try:
                model = base.compile()
            except SceneError:
                refused += 1
                continue
            finally:
                setattr(spoilt, field.name, sound)
            for name, array in model.arrays().items():
                assert not np.isnan(array).any(), (field.name, junk, name)
            assert np.isfinite(model.q_rest).all(), (field.name, junk)
            assert len(model.digest()) == 64
    assert refused > 10
