"""Skins: linear blends in closed form, files that hold them, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.dynamics.state_queries import bodies
from poise.io.mjcf import load_mjcf
from poise.model.skins import Bone, Skin
from poise.sim import Recording
from skin_models import arm, bent_tube, tube


def shown(model: poise.Model, q: Any) -> np.ndarray:
    place = bodies(model, np.asarray(q, float))
    return model.skins.deformed(0, place.position, place.rotation)


@pytest.mark.parametrize("angle", [0.0, 0.4, -1.3, 3.0])
def test_two_bones_blend_as_the_formula_says(angle: float) -> None:
    """Rounding of a few sums of numbers of size 1."""
    assert np.abs(shown(arm().compile(), [angle]) - bent_tube(angle)).max() < 1e-14


def test_where_the_skin_was_bound_does_not_matter() -> None:
    """Vertices and bones at bind, all moved and turned as one, give the same skin at every pose."""
    rng = np.random.default_rng(3)
    quat = rng.normal(size=4)
    quat /= np.linalg.norm(quat)
    turn, shift = poise.motion.rotations.quat_to_matrix(quat), rng.normal(size=3)
    scene = arm()
    (skin,) = scene.skins
    skin.vertices = np.asarray(skin.vertices) @ turn.T + shift
    for bone in skin.bones:
        bone.position, bone.quat_wxyz = tuple(turn @ np.array(bone.position) + shift), tuple(quat)
    assert np.abs(shown(scene.compile(), [0.7]) - bent_tube(0.7)).max() < 1e-14


def test_a_bone_may_be_the_world() -> None:
    scene = arm()
    bone = scene.skins[0].bones[0]
    bone.body, bone.position = None, (0.0, 0.0, 0.0)
    assert np.abs(shown(scene.compile(), [0.7]) - bent_tube(0.7)).max() < 1e-14


def test_rounded_weights_are_made_to_sum_to_one() -> None:
    scene = arm()
    for bone in scene.skins[0].bones:
        bone.weights = np.asarray(bone.weights) * 1.00005
    model = scene.compile()
    assert model.skins.table(0).sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    assert np.abs(shown(model, [0.7]) - bent_tube(0.7)).max() < 1e-14


def test_they_weigh_and_touch_nothing_and_are_no_part_of_the_digest() -> None:
    scene = arm()
    model = scene.compile()
    scene.skins.clear()
    assert model.digest() == scene.compile().digest()
    assert not model.skins.vertices.flags.writeable
    assert repr(model.skins) == "<Skins: ['sleeve']>"


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_recordings_keep_them(tmp_path: Path, suffix: str) -> None:
    world = arm().build(dt=0.01)
    world.run(0.1).save(tmp_path / f"x{suffix}")
    found = Recording.load(tmp_path / f"x{suffix}").model
    np.testing.assert_array_equal(shown(found, [0.7]), shown(arm().compile(), [0.7]))
    assert found.skins.names == ("sleeve",)
    assert found.skins.color.tolist() == [[0.9, 0.05, 0.05, 1.0]]


MJCF = """<mujoco><worldbody>
  <body name="a"><geom size="0.1"/>
    <body name="b" pos="0 0 1"><joint name="j" axis="0 1 0"/><geom size="0.1"/></body>
  </body></worldbody>
  <deformable>
    <skin name="s" rgba="0.2 0.4 0.6 1" vertex="0 0 0  0 0 1  0 0 2  1 0 2" face="0 1 2  1 3 2" inflate="{inflate}">
      <bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1" vertweight="1 0.25"/>
      <bone body="b" bindpos="0 0 1" bindquat="1 0 0 0" vertid="1 2 3" vertweight="0.75 2 1"/>
    </skin>
  </deformable></mujoco>"""


def test_mjcf_with_a_skin() -> None:
    """At a quarter turn about y through (0, 0, 1), (0, 0, 2) goes to (1, 0, 1) and (1, 0, 2) to (1, 0, 0)."""
    scene = load_mjcf(MJCF.format(inflate=0))
    assert scene.unsupported == []
    (skin,) = scene.skins
    assert (skin.name, skin.color) == ("s", (0.2, 0.4, 0.6, 1.0))
    assert [bone.body for bone in skin.bones] == ["a", "b"]
    found = shown(scene.compile(), [0.5 * np.pi])
    assert found == pytest.approx(np.array([(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 0)]), abs=1e-15)


def test_mjcf_tells_of_what_it_does_not_keep() -> None:
    (said,) = load_mjcf(MJCF.format(inflate=0.01)).unsupported
    assert said == "1 skin (s) with inflate: shown as thick as it is without."


def test_mjcf_and_back(tmp_path: Path) -> None:
    """MuJoCo holds skins in float32."""
    assert arm().save(tmp_path / "x.xml") == []
    model = load_mjcf(tmp_path / "x.xml").compile()
    assert np.abs(shown(model, [0.7]) - bent_tube(0.7)).max() < 1e-6


def test_yaml_tells_that_it_holds_none(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="sleeve"):
        lost = arm().save(tmp_path / "x.yaml")
    assert lost == ['The skin "sleeve" is not kept: scene files hold none.']


def test_scene_files_take_characters_with_skins(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(MJCF.format(inflate=0))
    (tmp_path / "x.yaml").write_text("characters:\n  - {name: hero, file: arm.xml, position: [0, 3, 0], fixed: true}\n")
    model = poise.load(tmp_path / "x.yaml").compile()
    assert model.skins.names == ("hero/s",)
    found = shown(model, [0.5 * np.pi])
    assert found == pytest.approx(np.array([(0, 3, 0), (0, 3, 1), (1, 3, 1), (1, 3, 0)]), abs=1e-12)


def changed(**fields: Any) -> Skin:
    skin = arm().skins[0]
    for name, value in fields.items():
        setattr(skin, name, value)
    return skin


def with_bone(**fields: Any) -> Skin:
    skin = arm().skins[0]
    for name, value in fields.items():
        setattr(skin.bones[1], name, value)
    return skin


@pytest.mark.parametrize(
    ("skin", "message"),
    [
        (changed(bones=arm().skins[0].bones[:1]), r"bones: weights of a vertex must sum to 1, found .* at vertex 24"),
        (with_bone(weights=0.5 * np.asarray(arm().skins[0].bones[1].weights)), r"found a sum of 0\.\d+ at vertex"),
        (with_bone(body="for"), r'bones\[1\]: body: there is no body "for", did you mean "fore"'),
        (with_bone(body=3), r"there is no body"),
        (with_bone(vertices=[72], weights=[1.0]), r"vertices: must name vertices 0 to 71, found 72 to 72"),
        (with_bone(vertices=[-1], weights=[1.0]), r"found -1 to -1"),
        (with_bone(vertices=[0.5], weights=[1.0]), r"vertices: must be whole numbers"),
        (with_bone(vertices=[1, 2], weights=[1.0]), r"one number for each vertex, found 2 vertices and weights of"),
        (with_bone(vertices=[1], weights=[-0.1]), r"must be finite and 0 or more, found -0.1 at index 0"),
        (with_bone(vertices=[1], weights=[np.nan]), r"found nan at index 0"),
        (with_bone(vertices=[1], weights=["much"]), r"one number for each vertex|must be finite"),
        (with_bone(quat_wxyz=(0, 0, 0, 0)), r"quat_wxyz"),
        (changed(bones=[]), r"at least one Bone"),
        (changed(bones="fore"), r"at least one Bone"),
        (changed(faces=[(0, 1, 72)]), r"faces: must name vertices 0 to 71, found 0 to 72"),
        (changed(faces=[(0, 1, 1)]), r"faces: must have an area"),
        (changed(faces=[(0, 1)]), r"faces: must be triples of whole numbers"),
        (changed(vertices=[(0, 0)]), r"vertices: must be points \(x, y, z\)"),
        (changed(vertices=[(0, 0, np.inf)]), r"vertices: must be finite, found .* at index 0"),
        (changed(color=(1, 0, 0)), r"color"),
        (changed(name=""), r"skins\[0\]: name"),
        ("sleeve", r"skins"),
    ],
)
def test_what_is_wrong_is_told(skin: Any, message: str) -> None:
    scene = arm()
    scene.skins = [skin]
    with pytest.raises(poise.SceneError, match=message):
        scene.compile()


def test_a_vertex_that_a_bone_lists_twice_counts_twice() -> None:
    scene = arm()
    points, faces, _ = tube()
    every = np.arange(len(points))
    twice = Bone("fore", (0.2, 0.0, 1.0), vertices=[*every, *every], weights=np.full(2 * len(points), 0.5))
    scene.skins = [Skin("a", points, faces, [twice]), *scene.skins]
    model = scene.compile()
    assert len(model.skins) == 2
    place = bodies(model, np.array([0.7]))
    assert np.abs(model.skins.deformed(1, place.position, place.rotation) - bent_tube(0.7)).max() < 1e-14
    assert shown(model, [0.7])[-1] == pytest.approx(bent_tube(0.7)[-1], abs=1e-14)
