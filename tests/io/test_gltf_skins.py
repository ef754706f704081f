"""Skins in glTF: a reader of our own bends them as the formula says, Khronos's validator finds nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from gltf import Glb, validate
from poise.io import LossWarning
from poise.model.skins import Bone
from poise.sim import Recording
from skin_models import arm, bent_tube, tube

ANGLES = np.linspace(-1.0, 1.4, 7)


def recorded(scene: poise.Scene) -> Recording:
    return Recording(0.1 * np.arange(7), ANGLES[:, None], np.zeros((7, 1)), scene.compile())


def bent(file: Path, key: int) -> np.ndarray:
    """Vertices at a key, by the rules of the specification, turned back to z up."""
    found = Glb(file)
    (node,) = [node for node in found.nodes if "skin" in node]
    skin = found.json["skins"][node["skin"]]
    (primitive,) = found.json["meshes"][node["mesh"]]["primitives"]
    attributes = {name: found.array(number) for name, number in primitive["attributes"].items()}
    binds = found.array(skin["inverseBindMatrices"]).reshape(-1, 4, 4).swapaxes(1, 2)
    poses = found.poses(key)
    joints = [poses[found.names[joint]] @ bind for joint, bind in zip(skin["joints"], binds, strict=True)]
    blend = np.einsum("nk,nkij->nij", attributes["WEIGHTS_0"], np.array(joints)[attributes["JOINTS_0"]])
    points = np.pad(attributes["POSITION"], ((0, 0), (0, 1)), constant_values=1.0)
    x, y, z = np.einsum("nij,nj->ni", blend, points)[:, :3].T
    return np.stack((x, -z, y), axis=1)


@pytest.mark.parametrize("key", [0, 3, 6])
def test_it_bends_as_the_formula_says(key: int, tmp_path: Path) -> None:
    """Numbers in the file are float32."""
    recorded(arm()).save(tmp_path / "x.glb")
    assert np.abs(bent(tmp_path / "x.glb", key) - bent_tube(ANGLES[key])).max() < 2e-6


def split() -> poise.Scene:
    """Six bones, some of one body: the ends of the tube heed four, its middle all six."""
    scene = arm()
    (skin,) = scene.skins
    upper, fore = skin.bones
    skin.bones = []
    for share in (0.5, 0.3, 0.2):
        for bone in (upper, fore):
            weights = share * np.asarray(bone.weights)
            skin.bones.append(Bone(bone.body, bone.position, bone.quat_wxyz, bone.vertices, weights))
    return scene


def test_more_than_four_bones_are_reduced_to_the_strongest(tmp_path: Path) -> None:
    """Where w and 1 − w are shared out as 5 : 3 : 2, four of six are left; the others are what the ends have anyway."""
    weight = tube()[2]
    both = (weight > 0.0) & (weight < 1.0)
    with pytest.warns(LossWarning, match=rf"{both.sum()} of 72 vertices of skin .sleeve. have more than 4 bones"):
        recorded(split()).save(tmp_path / "x.glb")
    found = bent(tmp_path / "x.glb", 6)
    wanted = bent_tube(ANGLES[6])
    assert np.abs(found - wanted)[~both].max() < 2e-6
    for row in np.flatnonzero(both):
        fore, upper = weight[row] * np.array((0.5, 0.3, 0.2)), (1.0 - weight[row]) * np.array((0.5, 0.3, 0.2))
        kept = sorted([(w, k) for k, part in enumerate((upper, fore)) for w in part], key=lambda one: -one[0])[:4]
        share = sum(w for w, k in kept if k == 1) / sum(w for w, _ in kept)
        still, turned = tube()[0][row], _turned(row)
        assert found[row] == pytest.approx((1.0 - share) * still + share * turned, abs=2e-6)


def _turned(row: int) -> np.ndarray:
    """A point that heeds the forearm alone, at the last angle."""
    points, _, weight = tube()
    blended = bent_tube(ANGLES[6])[row]
    return np.asarray((blended - (1.0 - weight[row]) * points[row]) / weight[row])


def world_bone() -> poise.Scene:
    scene = arm()
    bone = scene.skins[0].bones[0]
    bone.body, bone.position = None, (0.0, 0.0, 0.0)
    return scene


def unseen() -> poise.Scene:
    scene = arm()
    scene.skins[0].color = (1.0, 1.0, 1.0, 0.0)
    return scene


def test_a_bone_may_be_the_world(tmp_path: Path) -> None:
    recorded(world_bone()).save(tmp_path / "x.glb")
    assert np.abs(bent(tmp_path / "x.glb", 6) - bent_tube(ANGLES[6])).max() < 2e-6


def test_one_that_is_not_seen_is_left_out(tmp_path: Path) -> None:
    recorded(unseen()).save(tmp_path / "x.glb")
    assert "skins" not in Glb(tmp_path / "x.glb").json


@pytest.mark.validator
@pytest.mark.filterwarnings("ignore::poise.io.LossWarning")
@pytest.mark.parametrize("make", [arm, split, world_bone, unseen])
def test_the_validator_of_khronos_finds_nothing(make, tmp_path: Path) -> None:
    recorded(make()).save(tmp_path / "x.glb")
    issues = validate(tmp_path / "x.glb")["issues"]
    assert issues["numErrors"] == issues["numWarnings"] == 0, issues["messages"]
