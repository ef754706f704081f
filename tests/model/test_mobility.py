"""Every degree of freedom has something to move: what is refused, and what is only small."""

from __future__ import annotations

import numpy as np
import pytest

from poise.model.compile import compile_scene
from poise.model.errors import SceneError
from poise.model.joints import JOINTS
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.model.shapes import box, sphere
from poise.motion import ConstantPath
from poise.motion.rotations import quat_normalize, quat_to_matrix


@pytest.mark.parametrize("kind", [name for name in JOINTS if JOINTS[name].nv])
def test_massless_leaf_is_refused(kind):
    with pytest.raises(SceneError, match=r'body "a": joint coordinate "a.*": nothing that has inertia moves') as error:
        compile_scene(Scene(bodies=[Body("a", joints=[Joint(kind)])]))
    assert len(error.value.problems) == JOINTS[kind].nv


@pytest.mark.parametrize("kind", ["hinge", "slider", "ball", "universal"])
def test_armature_is_inertia(kind):
    model = compile_scene(Scene(bodies=[Body("a", joints=[Joint(kind, armature=0.1)])]))
    assert model.link_mass.tolist() == [0]


def test_massless_link_with_a_heavy_child():
    axes = np.eye(3).tolist()
    bodies = [
        Body(f"m{k}", parent=f"m{k - 1}" if k else None, joints=[Joint("hinge", axis=a)]) for k, a in enumerate(axes)
    ]
    bodies[-1].shapes = [sphere(0.1, position=(0, 0, 0.3))]
    assert compile_scene(Scene(bodies=bodies)).nv == 3


def test_two_hinges_on_one_axis_are_refused():
    bodies = [
        Body("a", joints=[Joint("hinge", axis=(0.1, 0.2, 0.3))]),
        Body("b", parent="a", joints=[Joint("hinge", axis=(0.1, 0.2, 0.3))], shapes=[box(0.1, 0.2, 0.3)]),
    ]
    with pytest.raises(SceneError, match='"a": nothing that has inertia'):
        compile_scene(Scene(bodies=bodies))
    same_body = Body("c", joints=[Joint("hinge"), Joint("hinge")], shapes=[box(0.1, 0.2, 0.3)])
    with pytest.raises(SceneError, match='"c_1": nothing that has inertia'):
        compile_scene(Scene(bodies=[same_body]))


def slides(angle: float, rng: np.random.Generator) -> Scene:
    """A massless carriage on rails, and a box on rails of its own upon it, at an angle to the first."""
    turn = quat_normalize(rng.normal(size=4))
    first = rng.normal(size=3)
    across = np.cross(first, rng.normal(size=3))
    second = first / np.linalg.norm(first) + np.tan(angle) * across / np.linalg.norm(across)
    upper = Joint("slider", axis=tuple(quat_to_matrix(turn).T @ second))
    mass = float(rng.uniform(0.1, 9.0))
    return Scene(
        bodies=[
            Body("carriage", joints=[Joint("slider", axis=tuple(first))]),
            Body("box", "carriage", quat_wxyz=tuple(turn), joints=[upper], shapes=[box(1, 2, 3, mass=mass)]),
        ]
    )


def test_rails_along_rails_are_refused():
    """What is left of the mass along the lower rails is rounding, whatever the axes."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        with pytest.raises(SceneError, match='body "carriage": joint coordinate "carriage": nothing that has inertia'):
            slides(0.0, rng).compile()


def test_rails_at_a_small_angle_are_fine():
    """The mass felt along the lower rails is sin² of the angle, 1e-10: little, but a thousand times rounding."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        assert slides(1e-5, rng).compile().nv == 2


@pytest.mark.parametrize("com", [(0, 0, 0), (0.1, 0.2, 0.3)])
def test_point_mass_on_its_axis_is_refused(com):
    point = Body("p", joints=[Joint("hinge", axis=(0.1, 0.2, 0.3))], inertia=Inertia(1.0, com))
    with pytest.raises(SceneError, match="nothing that has inertia"):
        compile_scene(Scene(bodies=[point]))
    beside = Body("p", joints=[Joint("hinge", axis=(0, 0, 1))], inertia=Inertia(1.0, (1e-4, 0, 0)))
    assert compile_scene(Scene(bodies=[beside])).nv == 1


@pytest.mark.parametrize("size", [1e-4, 1e3])
def test_small_and_large_bodies_are_fine(size):
    bodies = [
        Body("a", joints=[Joint("free")], position=(0, 0, size), shapes=[sphere(size)]),
        Body("b", parent="a", joints=[Joint("ball", anchor=(0, 0, size))], shapes=[sphere(0.01 * size)]),
    ]
    assert compile_scene(Scene(bodies=bodies)).nv == 9


def test_massless_kinematic_body_is_fine():
    body = Body("k", motion="kinematic", path=ConstantPath())
    assert compile_scene(Scene(bodies=[body])).nv == 6


@pytest.mark.parametrize("shape", [sphere(1e155), box(1e110, 1e110, 1e110), sphere(1.0, mass=1e300, density=1.0)])
def test_masses_beyond_the_range_of_numbers(shape):
    arm = Body("arm", parent="a", position=(1e10, 0, 0), shapes=[shape])
    with pytest.raises(SceneError, match=r"too large for numbers to hold"):
        compile_scene(Scene(bodies=[Body("a", joints=[Joint("free")], shapes=[sphere(1)]), arm]))
