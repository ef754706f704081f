"""Recordings as glTF: a reader of our own sees bodies where they were; Khronos's validator finds nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from gltf import Glb, validate
from poise.io.tessellation import surface, tiles
from poise.sim import Recording

#: from z up to y up
UP = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]], float)


def every_kind() -> poise.Scene:
    """A person among shapes of every kind."""
    rng = np.random.default_rng(0)
    scene = poise.Scene(name="every kind")
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero")
    scene.add(poise.sphere(0.1, color=(0.9, 0.4, 0.2, 1)), name="ball", position=(0.8, 0.3, 0.5))
    scene.add(poise.sphere(0.1, color=(0.9, 0.4, 0.2, 1)), name="twin", position=(0.8, 0.8, 0.5))
    scene.add(poise.box(0.2, 0.3, 0.4, color=(0.2, 0.6, 0.3, 0.5)), name="crate", position=(1.5, 0.3, 0.4))
    scene.add(poise.cylinder(0.2, 0.3), name="drum", position=(1.5, 1.3, 0.15))
    scene.add(poise.capsule(0.2, 0.3), name="pill", position=(2.5, 1.3, 0.4))
    scene.add(poise.ellipsoid(0.2, 0.3, 0.4), name="egg", position=(1.5, -1.3, 0.2))
    scene.add(poise.convex(rng.normal(size=(30, 3)) * 0.1), name="stone", position=(0.5, -1.3, 0.3))
    scene.add(poise.height_field(0.1 * rng.random((6, 5)), 2, 2), name="hill", position=(-3, 0, 0), fixed=True)
    corners, sides = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    scene.add(poise.triangle_mesh(corners, sides), name="tent", position=(-3, 3, 0), fixed=True)
    return scene


@pytest.fixture(scope="module")
def recording() -> Recording:
    return every_kind().build(dt=1 / 120).run(0.5, every=4)


@pytest.fixture(scope="module")
def glb(recording: Recording, tmp_path_factory) -> Glb:
    file = tmp_path_factory.mktemp("gltf") / "all.glb"
    recording.save(file)
    return Glb(file)


def test_bodies_are_where_they_were(recording: Recording, glb: Glb) -> None:
    model = recording.model
    for key in (0, 7, len(recording) - 1):
        found = glb.poses(key)
        place = poise.dynamics.bodies(model, recording.q[key])
        for k, name in enumerate(model.body_names):
            wanted = np.eye(4)
            wanted[:3, :3], wanted[:3, 3] = place.rotation[k], place.position[k]
            # float32 keeps 24 bits, and there are up to 6 joints from a hand to the world
            assert found[name] == pytest.approx(UP @ wanted, abs=6 * 4 * 2.0**-24), name


def test_nodes_are_the_tree_of_bodies(recording: Recording, glb: Glb) -> None:
    model = recording.model
    assert glb.names[0] == "every kind"
    assert glb.names[1 : model.n_bodies + 1] == list(model.body_names)
    for k, parent in enumerate(model.body_parent):
        assert k + 1 in glb.nodes[int(parent) + 1]["children"]


def test_the_animation_has_keys_at_the_times(recording: Recording, glb: Glb) -> None:
    (animation,) = glb.json["animations"]
    (when,) = {sampler["input"] for sampler in animation["samplers"]}
    assert glb.array(when)[:, 0] == pytest.approx(recording.time, abs=1e-7)
    turned = {channel["target"]["node"] for channel in animation["channels"] if channel["target"]["path"] == "rotation"}
    assert len(turned) >= 15
    fixed = glb.names.index("hill")
    assert fixed not in {channel["target"]["node"] for channel in animation["channels"]}
    for channel in animation["channels"]:
        values = glb.array(animation["samplers"][channel["sampler"]]["output"])
        assert len(values) == len(recording)
        if channel["target"]["path"] == "rotation":
            assert np.linalg.norm(values, axis=1) == pytest.approx(1.0, abs=1e-6)
            assert (np.sum(values[1:] * values[:-1], axis=1) > 0.0).all()


def test_equal_shapes_share_a_mesh_and_colours_are_kept(recording: Recording, glb: Glb) -> None:
    meshes = {node["name"]: node["mesh"] for node in glb.nodes if "mesh" in node}
    assert len(meshes) == len(recording.model.solids)
    assert meshes["ball[0]"] == meshes["twin[0]"] != meshes["egg[0]"]
    material = glb.json["materials"][glb.json["meshes"][meshes["crate[0]"]]["primitives"][0]["material"]]
    assert material["alphaMode"] == "BLEND"
    # sRGB 0.6 is 0.3185 of linear light (IEC 61966-2-1)
    assert material["pbrMetallicRoughness"]["baseColorFactor"][1] == pytest.approx(0.3185, abs=1e-4)


def test_meshes_have_the_extents_of_their_shapes(recording: Recording, glb: Glb) -> None:
    size = {"ball": (0.1, 0.1, 0.1), "crate": (0.1, 0.15, 0.2), "drum": (0.2, 0.2, 0.15), "pill": (0.2, 0.2, 0.35)}
    size |= {"egg": (0.1, 0.15, 0.2)}
    for name, half in size.items():
        node = next(node for node in glb.nodes if node["name"] == f"{name}[0]")
        vertices = glb.array(glb.json["meshes"][node["mesh"]]["primitives"][0]["attributes"]["POSITION"])
        assert vertices.max(axis=0) == pytest.approx(half, rel=1e-6)
        assert vertices.min(axis=0) == pytest.approx(-np.array(half), rel=1e-6)


@pytest.mark.parametrize("shape", range(len(every_kind().compile().solids)))
def test_surfaces_face_outward(shape: int) -> None:
    """Every triangle turns its front, and its normals, away from the inside; closed ones have the right volume."""
    solids = every_kind().compile().solids
    if solids.kind[shape] == 0:
        light, dark = tiles(10.0, 1.0)
        assert len(light.faces) == len(dark.faces) == 400
        assert (light.normals == (0, 0, 1)).all()
        return
    found = surface(solids, shape)
    a, b, c = (found.vertices[found.faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    assert (np.linalg.norm(normal, axis=1) > 0.0).all()
    assert np.linalg.norm(found.normals, axis=1) == pytest.approx(1.0)
    assert (np.einsum("ij,ij->i", normal, found.normals[found.faces[:, 0]]) > 0.0).all()
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
    r, h, k = solids.size[shape]
    exact = {1: 4 / 3 * np.pi * r**3, 2: np.pi * r**2 * (4 / 3 * r + 2 * h), 3: 8 * r * h * k, 4: 2 * np.pi * r**2 * h}
    exact |= {5: 4 / 3 * np.pi * r * h * k}
    if int(solids.kind[shape]) in exact:
        # 24 sides about a circle lose 1.2 % of its area, and half circles as much again
        assert 0.96 < volume / exact[int(solids.kind[shape])] < 1.0 + 1e-9
    elif solids.kind[shape] != 7:
        assert volume > 0.0


def test_smooth_and_sharp_edges() -> None:
    scene = poise.Scene()
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    scene.add(poise.height_field(0.05 * (x**2 + y**2), 2, 2), name="bowl", fixed=True)
    scene.add(poise.convex([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]), name="cube")
    solids = scene.compile().solids
    bowl, cube = surface(solids, 0), surface(solids, 1)
    assert np.linalg.norm(bowl.normals - _bowl_normals(bowl.vertices), axis=1).max() < 0.02
    assert (np.abs(cube.normals).max(axis=1) > 1.0 - 1e-9).all()


def _bowl_normals(vertices: np.ndarray) -> np.ndarray:
    normals = np.stack((-0.1 * vertices[:, 0], -0.1 * vertices[:, 1], np.ones(len(vertices))), axis=1)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def test_fewer_frames_and_hidden_shapes(tmp_path: Path) -> None:
    scene = poise.Scene()
    shapes = [
        poise.sphere(0.1, color=(1, 0, 0, 1), mask=0, group=0, density=0.0),
        poise.box(0.2, 0.2, 0.2, color=(1, 1, 1, 0)),
    ]
    scene.add(shapes, name="ball", position=(0, 0, 9))
    recording = scene.build(dt=1 / 240).run(1.0)
    recording.save(tmp_path / "a.glb", fps=30)
    recording.save(tmp_path / "b.glb", collision=True)
    few, all_shapes = Glb(tmp_path / "a.glb"), Glb(tmp_path / "b.glb")
    when = few.array(few.json["animations"][0]["samplers"][0]["input"])[:, 0]
    assert when == pytest.approx(np.arange(31) / 30, abs=1e-6)
    assert [node["extras"]["collides"] for node in few.nodes if "mesh" in node] == [False]
    assert [node["extras"]["collides"] for node in all_shapes.nodes if "mesh" in node] == [False, True]


ODD = ("strange", "empty", "still", "one", "times that float32 cannot tell apart", "far away")


def odd_scenes() -> dict[str, Recording]:
    """Recordings at the edges of what there is."""
    strange = poise.Scene(name='</script> "é" \ud800')
    strange.add(poise.sphere(0.1), name="a b\n{c}", position=(0, 0, 1))
    still = poise.Scene()
    still.add(poise.box(1, 1, 1), name="wall", fixed=True)
    ball = strange.build(dt=0.01).run(0.1)
    one = Recording(ball.time[:1], ball.q[:1], ball.v[:1], ball.model)
    long = Recording(1e6 + 1e-9 * np.arange(11), ball.q, ball.v, ball.model)
    many = Recording(ball.time, ball.q + 1e6, ball.v, ball.model)
    empty = poise.Scene().build(dt=0.1).run(0.3)
    return dict(zip(ODD, (ball, empty, still.build(dt=0.1).run(0.3), one, long, many), strict=True))


@pytest.mark.parametrize("name", ODD)
def test_odd_recordings_are_written(name: str, tmp_path: Path) -> None:
    odd_scenes()[name].save(tmp_path / "x.glb")
    found = Glb(tmp_path / "x.glb")
    found.poses(0)
    for animation in found.json.get("animations", []):
        assert (np.diff(found.array(animation["samplers"][0]["input"])[:, 0]) > 0.0).all()


@pytest.mark.validator
@pytest.mark.parametrize("name", ["every kind", *ODD])
def test_the_validator_of_khronos_finds_nothing(name: str, recording: Recording, tmp_path: Path) -> None:
    (recording if name == "every kind" else odd_scenes()[name]).save(tmp_path / "x.glb")
    report = validate(tmp_path / "x.glb")
    assert report["issues"]["numErrors"] == 0, report["issues"]["messages"]
    assert report["issues"]["numWarnings"] == 0, report["issues"]["messages"]
