"""Recordings as USD: USD's own library reads bodies and shapes where they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pxr import Usd, UsdGeom

import poise
from poise.sim import Recording


@pytest.fixture(scope="module")
def recording() -> Recording:
    rng = np.random.default_rng(0)
    scene = poise.Scene(name="yard")
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero")
    for k, shape in enumerate(
        (poise.sphere(0.1), poise.cylinder(0.1, 0.3), poise.convex(0.1 * rng.normal(size=(20, 3))))
    ):
        scene.add(shape, name=f"thing {k}", position=(1, k, 0.4))
    scene.add(poise.height_field(0.1 * rng.random((6, 5)), 2, 2), name="hill", position=(-3, 0, 0), fixed=True)
    return scene.build(dt=1 / 120).run(0.25, every=2)


@pytest.mark.parametrize("suffix", [".usda", ".usdc", ".usd"])
def test_bodies_are_where_they_were(recording: Recording, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"x{suffix}"
    recording.save(file, fps=60)
    assert file.read_bytes().startswith(b"#usda" if suffix == ".usda" else b"PXR-USDC")
    stage = Usd.Stage.Open(str(file))
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert stage.GetTimeCodesPerSecond() == 60.0
    assert stage.GetEndTimeCode() == pytest.approx(15.0)
    model = recording.model
    prims = {prim.GetDisplayName() or prim.GetName(): prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Xform)}
    for k in (0, 6, 15):
        place = poise.dynamics.bodies(model, recording.q[k])
        cache = UsdGeom.XformCache(recording.time[k] * 60.0)
        for body, name in enumerate(model.body_names):
            matrix = cache.GetLocalToWorldTransform(prims[name])
            assert np.array(matrix.ExtractTranslation()) == pytest.approx(place.position[body], abs=4e-6), name
            # USD multiplies rows, and takes turns of less than some 1e-6 for none
            assert np.abs(np.array(matrix)[:3, :3].T - place.rotation[body]).max() < 4e-6, name


def test_shapes_are_as_large_as_they_are(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "x.usdc")
    stage = Usd.Stage.Open(str(tmp_path / "x.usdc"))
    box = UsdGeom.BBoxCache(0.0, [UsdGeom.Tokens.default_])
    found = {
        prim.GetTypeName(): box.ComputeWorldBound(prim).ComputeAlignedRange()
        for prim in stage.Traverse()
        if str(prim.GetPath()).startswith("/yard/thing")
    }
    # extents are float32
    assert np.array(found["Sphere"].GetSize()) == pytest.approx((0.2, 0.2, 0.2), abs=1e-7)
    assert np.array(found["Cylinder"].GetSize()) == pytest.approx((0.2, 0.2, 0.3), abs=1e-6)
    kinds = {prim.GetTypeName() for prim in stage.Traverse()}
    assert {"Xform", "Mesh", "Capsule", "Sphere", "Cylinder", "Cube"} <= kinds


def test_names_that_usd_cannot_hold(tmp_path: Path) -> None:
    scene = poise.Scene(name="1 é\n")
    for name in ("a b", "a_b", "é", "9", '"quoted"', "a\nb"):
        scene.add(poise.sphere(0.1), name=name, position=(0, 0, len(name)))
    scene.build(dt=0.1).run(0.2).save(tmp_path / "x.usda")
    stage = Usd.Stage.Open(str(tmp_path / "x.usda"))
    shown = {prim.GetDisplayName() or prim.GetName() for prim in stage.GetDefaultPrim().GetChildren()}
    assert shown == {"a b", "a_b", "é", "9", '"quoted"', "a\nb"}


@pytest.mark.parametrize("model", ["empty", "still"])
def test_nothing_that_moves(model: str, tmp_path: Path) -> None:
    scene = poise.Scene()
    if model == "still":
        scene.add(poise.box(1, 1, 1), name="wall", fixed=True)
    scene.build(dt=0.1).run(0.2).save(tmp_path / "x.usda")
    assert Usd.Stage.Open(str(tmp_path / "x.usda")).GetDefaultPrim().GetName() == "scene"
