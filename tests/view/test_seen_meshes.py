"""Meshes that are only looked at: shown as they are wherever there is something to see, and touched by nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from gltf import Glb, validate
from poise.collision.collision_layout import shapes_block
from poise.collision.ray_casting.rays import cast
from poise.io.mjcf import load_mjcf
from poise.kernel.memory import F64
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.view import Camera, picture
from poise.view.live.forms import mesh
from poise.view.page.forms import shape_list

RED = (0.9, 0.05, 0.05, 1.0)
#: two walls of a corner, so that the hull is a wedge with much between them: x = 0 and y = 0, each 1 m by 1 m
CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0), (0, 1, 1)], float)
WALLS = np.array([(0, 1, 2), (0, 2, 3), (0, 3, 5), (0, 5, 4)])


def on_a_hinge(shape: poise.Shape) -> poise.Scene:
    scene = poise.Scene()
    post = poise.sphere(0.05, mass=1.0, color=(0.0, 0.0, 0.0, 0.0))
    scene.hinge(None, post, axis="z", name="door")
    scene.bodies[-1].shapes.append(shape)
    return scene


def walls() -> poise.Scene:
    return on_a_hinge(poise.triangle_mesh(CORNERS, WALLS, open=True, group=0, mask=0, color=RED))


def touched(scene: poise.Scene) -> poise.Scene:
    scene.add(poise.box(0.3, 0.3, 0.3), name="crate", position=(0.0, 0.0, 0.5))
    return scene


def test_rays_pass_between_the_walls_and_meet_them_where_the_body_is() -> None:
    """From above nothing is met over the corner's inside, where a hull would be; turned by 90°, x = 0 is at y = 0."""
    model = walls().compile()
    assert model.solids.kind.tolist() == [Solid.SPHERE, Solid.MESH]
    assert not cast(model, [0.0], (0.4, 0.4, 3.0), (0, 0, -1)).hit
    hits = cast(model, [0.5 * np.pi], (-0.5, 3.0, 0.5), (0, -1, 0))
    assert hits.point == pytest.approx((-0.5, 0.0, 0.5))
    assert cast(model, [0.0], (0.5, 3.0, 0.5), (0, -1, 0)).point == pytest.approx((0.5, 0.0, 0.5))


def test_pictures_show_the_walls_and_not_their_hull() -> None:
    model = walls().compile()
    eye = Camera((0.5, 0.5, 6.0), (0.5, 0.5, 0.0), up=(0, 1, 0), field_of_view=0.3)
    image = picture(model, [0.0], eye, (120, 120), smooth=False).astype(int)
    red = image[..., 0] - image[..., 1] > 60
    rays = cast(model, [0.0], eye.position, _pixels(eye, 120))
    rows = rays.hit & (rays.shape == 1)  # of the mesh: the post is not to be seen
    assert not ((red != rows) & ~_edges(rows)).any()
    assert 0 < red.sum() < 0.3 * 120 * 120  # the hull's top alone is half of the square from wall to wall
    side = picture(model, [0.0], Camera((4, 4, 0.5), (0.3, 0.3, 0.5)), (120, 120), smooth=False).astype(int)
    assert (side[..., 0] - side[..., 1] > 60).sum() > 1000


def _edges(seen: np.ndarray) -> np.ndarray:
    """Pixels with a neighbour, above, below or beside, that shows something else: an edge passes within one pixel."""
    found = np.zeros_like(seen)
    for now, turned in ((found, seen), (found.T, seen.T)):
        changes = turned[1:] != turned[:-1]
        now[1:] |= changes
        now[:-1] |= changes
    return found


def _pixels(eye: Camera, side: int) -> np.ndarray:
    right, up, forward = eye.axes()
    across = (np.arange(side) - 0.5 * (side - 1)) * 2.0 * np.tan(0.5 * eye.field_of_view) / side
    return np.asarray(forward + across[None, :, None] * right - across[:, None, None] * up)


def test_nothing_touches_it_and_the_collider_is_told_of_no_triangle() -> None:
    """A run with the mesh is the run without it, to the last bit, and no tree is made for touches."""
    runs = []
    for scene in (walls(), on_a_hinge(poise.sphere(0.1, group=0, mask=0, density=0.0))):
        world = touched(scene).build(dt=0.01)
        world.step(50)
        runs.append(world.state.q.copy())
    np.testing.assert_array_equal(*runs)
    model = walls().compile()
    block = shapes_block(model.solids, F64, model.link_root)
    assert len(block.node_child) == len(block.neighbor) == 0


def test_a_convex_mesh_that_is_only_looked_at_is_shown_as_its_faces_are() -> None:
    """A box whose lid is pressed in to a point in its middle."""
    box = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    lid = [(4, 5, 8), (5, 6, 8), (6, 7, 8), (7, 4, 8)]
    sides = [face for k in range(4) for n in [(k + 1) % 4] for face in ((k, n, 4 + n), (k, 4 + n, 4 + k))]
    faces = [(0, 2, 1), (0, 3, 2), *sides, *lid]
    dented = poise.convex([*box, (0.5, 0.5, 0.3)], faces=faces, group=0, mask=0, density=0.0)
    model = on_a_hinge(dented).compile()
    assert model.solids.kind[1] == Solid.MESH
    assert cast(model, [0.0], (0.5, 0.51, 3.0), (0, 0, -1)).point == pytest.approx((0.5, 0.51, 0.3 + 0.7 * 0.02))


def test_a_hull_that_is_only_looked_at_is_seen_without_faces() -> None:
    model = on_a_hinge(poise.convex(CORNERS, group=0, mask=0, density=0.0)).compile()
    assert cast(model, [0.0], (0.4, 0.4, 3.0), (0, 0, -1)).point == pytest.approx((0.4, 0.4, 1.0))


def test_pages_and_the_viewer_get_its_own_triangles() -> None:
    model: Model = walls().compile()
    shapes, meshes = shape_list(model, np.zeros(3))
    assert shapes[-1]["kind"] == "mesh"
    assert meshes[0]["faces"]["shape"] == [4, 3]
    assert mesh(model, 1)[1].tolist() == WALLS.tolist()


def test_gltf_has_both_of_its_sides(tmp_path: Path) -> None:
    walls().build(dt=0.01).run(0.1).save(tmp_path / "x.glb")
    found = Glb(tmp_path / "x.glb")
    (one,) = found.json["meshes"]
    (primitive,) = one["primitives"]
    assert found.json["accessors"][primitive["indices"]]["count"] == 12
    assert found.json["materials"][primitive["material"]]["doubleSided"] is True


@pytest.mark.validator
def test_gltf_is_valid(tmp_path: Path) -> None:
    walls().build(dt=0.01).run(0.1).save(tmp_path / "x.glb")
    issues = validate(tmp_path / "x.glb")["issues"]
    assert issues["numErrors"] == issues["numWarnings"] == 0, issues["messages"]


def test_usd_has_both_of_its_sides(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom

    walls().build(dt=0.01).run(0.1).save(tmp_path / "x.usda")
    stage = Usd.Stage.Open(str(tmp_path / "x.usda"))
    (found,) = [UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)]
    assert found.GetDoubleSidedAttr().Get()
    assert len(found.GetFaceVertexCountsAttr().Get()) == 4


def test_mjcf_and_back(tmp_path: Path) -> None:
    """A flat sheet, which has no hull at all."""
    flat = poise.triangle_mesh(CORNERS[:4], WALLS[:2], open=True, group=0, mask=0, color=RED)
    scene = on_a_hinge(flat)
    scene.save(tmp_path / "x.xml")
    again = load_mjcf(tmp_path / "x.xml")
    assert not [text for text in again.unsupported if "mesh" in text]
    model = again.compile()
    hits = cast(model, [0.0], (0.5, 3.0, 0.4), (0, -1, 0))
    assert hits.point == pytest.approx((0.5, 0.0, 0.4), abs=1e-6)


def test_what_is_touched_may_still_not_move() -> None:
    with pytest.raises(poise.SceneError, match="a triangle mesh must be on a body that does not move"):
        on_a_hinge(poise.triangle_mesh(CORNERS, WALLS, open=True, mask=0)).compile()


@pytest.mark.parametrize(
    ("faces", "message"),
    [([(0, 1, 1)], "must have an area, found none at index 0"), ([(0, 1, 9)], "must name vertices 0 to 5")],
)
def test_meshes_that_cannot_be_shown(faces: list[tuple[int, int, int]], message: str) -> None:
    with pytest.raises(poise.SceneError, match=message):
        on_a_hinge(poise.triangle_mesh(CORNERS, faces, group=0, mask=0)).compile()


def test_triangles_without_an_area_are_passed_over() -> None:
    faces = [*WALLS.tolist(), (0, 1, 1)]
    model = on_a_hinge(poise.triangle_mesh(CORNERS, faces, group=0, mask=0)).compile()
    assert cast(model, [0.0], (0.5, 3.0, 0.5), (0, -1, 0)).point == pytest.approx((0.5, 0.0, 0.5))
