"""Pictures show what rays meet: shapes, shadows, squares and marks where float64 rays say that they are."""

from __future__ import annotations

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import poise
from collision.ray_reference import round_mesh
from poise.collision.ray_casting.rays import cast, places
from poise.view.render import Camera, Look, Painter, arrow, dot, line, picture, skeleton
from poise.view.render_camera import box_corners
from poise.view.render_formulas import encoded, squares
from poise.view.render_marks import linear

RED = (1.0, 0.1, 0.1, 1.0)
#: no colour in the light, no floor pattern, sharp shadows: what is red is the shape, what is dark is in shadow
PLAIN = Look(softness=0.0, shine=0.0, dimming=0.0, floor=((0.8,) * 3, (0.8,) * 3), zenith=(0.9,) * 3, sunlight=(1,) * 3)
SIZE = (160, 120)


def hills():
    x, y = np.meshgrid(np.linspace(0, 6, 9), np.linspace(0, 5, 7))
    return 0.3 + 0.2 * np.sin(x) * np.cos(y)


SHAPES = {
    "sphere": poise.sphere(0.4, color=RED),
    "capsule": poise.capsule(0.2, 0.7, color=RED),
    "box": poise.box(0.5, 0.8, 0.4, color=RED),
    "cylinder": poise.cylinder(0.3, 0.7, color=RED),
    "ellipsoid": poise.ellipsoid(0.5, 0.9, 0.4, color=RED),
    "hull": poise.convex([(-0.5, 0, -0.3), (0.5, 0.1, -0.3), (0, 0.6, -0.2), (0, 0, 0.5), (0.3, 0.4, 0.3)], color=RED),
    "field": poise.height_field(hills(), 1.5, 1.2, color=RED),
    "mesh": poise.triangle_mesh(0.5 * round_mesh(1)[0], round_mesh(1)[1], color=RED),
}
CAMERA = Camera((2.5, -2.0, 1.8), (0.0, 0.0, 0.4))


def scene_with(kind: str, shift=(0.0, 0.0, 0.0)) -> poise.Model:
    scene = poise.Scene()
    scene.add_ground()
    place = tuple(float(a + b) for a, b in zip((0.1, -0.1, 0.7), shift, strict=True))
    fixed = kind in ("field", "mesh")
    turn = (1.0, 0.0, 0.0, 0.0) if kind == "field" else (0.9, 0.2, -0.3, 0.1)
    scene.add(SHAPES[kind], name="thing", position=place, quat_wxyz=turn, fixed=fixed)
    return scene.compile()


def pixel_rays(camera: Camera, size) -> np.ndarray:
    """(height, width, 3) directions through the middles of pixels, from the definition of a pinhole."""
    width, height = size
    right, up, forward = camera.axes()
    x = (np.arange(width) + 0.5 - width / 2) / (height / 2)
    y = (height / 2 - np.arange(height) - 0.5) / (height / 2)
    tangent = math.tan(camera.field_of_view / 2)
    return forward + tangent * (x[None, :, None] * right + y[:, None, None] * up)


def redness(image):
    return image[..., 0].astype(int) - image[..., 1]


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_are_where_rays_meet_them(kind) -> None:
    model = scene_with(kind)
    image = picture(model, model.q_rest, CAMERA, SIZE, smooth=False, look=PLAIN)
    hits = cast(model, model.q_rest, CAMERA.position, pixel_rays(CAMERA, SIZE))
    seen = model.solids.kind[np.maximum(hits.shape, 0)] != 0
    assert 300 < seen.sum() < 8000
    wrong = (redness(image) > 30) != (seen & hits.hit)
    assert wrong.sum() <= 3  # pixels whose rays graze the shape within float32


@pytest.mark.parametrize("kind", SHAPES)
def test_shadows_are_where_the_sun_is_hidden(kind) -> None:
    model = scene_with(kind)
    look = PLAIN
    with_sun, without = (
        picture(model, model.q_rest, CAMERA, SIZE, smooth=False, look=look, shadows=on) for on in (True, False)
    )
    hits = cast(model, model.q_rest, CAMERA.position, pixel_rays(CAMERA, SIZE))
    floor = hits.hit & (hits.shape == 0)
    away = np.linalg.norm(np.nan_to_num(hits.point) - CAMERA.position, axis=-1)
    floor &= away < 8.0
    to_sun = cast(
        model, model.q_rest, np.where(floor[..., None], hits.point, 0.0), look.sun, near=1e-6, ignore=["ground"]
    )
    wanted = floor & to_sun.hit
    assert wanted.sum() > 100
    dark = floor & (with_sun[..., 0] < without[..., 0] - 20.0)
    assert (dark != wanted).sum() <= 0.02 * wanted.sum() + 3  # at the edges, which are a hundredth of a millimetre soft


def test_soft_shadows_grow_with_the_distance_of_what_throws_them() -> None:
    widths = []
    for height in (0.5, 1.5):
        scene = poise.Scene()
        scene.add_ground()
        scene.add(poise.sphere(0.4, color=RED), name="ball", position=(0, 0, height))
        model = scene.compile()
        look = Look(sun=(0, 0, 1), softness=0.05, dimming=0.0, shine=0.0, floor=((0.8,) * 3,) * 2)
        eye = Camera((2.0, 0.0, 0.3 * height), (0.0, 0.0, 0.0), field_of_view=0.7)
        image = picture(model, model.q_rest, eye, (640, 480), smooth=False, look=look)
        hits = cast(model, model.q_rest, eye.position, pixel_rays(eye, (640, 480)))
        floor = hits.hit & (hits.shape == 0) & (np.linalg.norm(np.nan_to_num(hits.point), axis=-1) < 0.7)
        radius, light = np.linalg.norm(hits.point[floor], axis=-1), image[floor][:, 0].astype(float)
        dark, bright = light[radius < 0.25].mean(), light[radius > 0.6].mean()
        between = (light > dark + 3) & (light < bright - 3)
        widths.append(np.ptp(radius[between]))
        # half the sun is hidden at the shadow's true edge
        assert radius[between].mean() == pytest.approx(0.4, abs=0.02)
    # the penumbra is as wide as the sun's angle times the distance, less where it is nearly black or white
    np.testing.assert_allclose(widths, [2 * 0.05 * 0.5, 2 * 0.05 * 1.5], rtol=0.25)


def test_surfaces_have_no_speckles() -> None:
    """Fields and meshes may shade themselves, but not by rounding: a level one is of one colour."""
    scene = poise.Scene()
    scene.add(poise.height_field(np.zeros((30, 30)), 4.0, 4.0, color=RED), name="land", fixed=True)
    flat = [(x, y, 0.0) for x in range(-2, 3) for y in range(-2, 3)]
    faces = [(i, i + 5, i + 6) for i in range(19) if i % 5 < 4] + [(i, i + 6, i + 1) for i in range(19) if i % 5 < 4]
    scene.add(poise.triangle_mesh(flat, faces, open=True, color=RED), name="sheet", position=(6, 0, 0.0), fixed=True)
    model = scene.compile()
    for x in (0.0, 6.0):
        eye = Camera((x + 1.0, -1.5, 1.0), (x, 0.0, 0.0))
        image = picture(model, model.q_rest, eye, SIZE, smooth=False, look=Look(shine=0.0))
        red = redness(image) > 60
        assert red.sum() > 3000
        assert np.ptp(image[red], axis=0).max() <= 1
        assert cast(model, model.q_rest, eye.position, pixel_rays(eye, SIZE)).hit.sum() == pytest.approx(
            red.sum(), abs=6
        )


def test_far_from_the_origin_it_looks_the_same() -> None:
    near, far = scene_with("capsule"), scene_with("capsule", (2e5, -4e5, 0.0))
    eye = Camera((2e5 + 2.5, -4e5 - 2.0, 1.8), (2e5, -4e5, 0.4))
    a = picture(near, near.q_rest, CAMERA, SIZE, smooth=False).astype(int)
    b = picture(far, far.q_rest, eye, SIZE, smooth=False).astype(int)
    assert (np.abs(a - b) > 2).any(axis=-1).sum() <= 3


def test_four_samples_soften_edges_and_nothing_else() -> None:
    model = scene_with("box")
    rough, fine = (picture(model, model.q_rest, CAMERA, SIZE, smooth=s).astype(int) for s in (False, True))
    exact = picture(model, model.q_rest, CAMERA, (SIZE[0] * 8, SIZE[1] * 8), smooth=False)
    exact = linear(exact / 255.0).reshape(SIZE[1], 8, SIZE[0], 8, 3).mean(axis=(1, 3))
    error = [np.abs(linear(image / 255.0) - exact).max(axis=-1) for image in (rough, fine)]
    edges = error[0] > 0.05
    assert 50 < edges.sum() < 2000
    assert error[1][edges].mean() < 0.5 * error[0][edges].mean()
    assert np.median(np.abs(rough - fine)) <= 1


def test_the_floor_fades_into_the_horizon_without_a_mess() -> None:
    scene = poise.Scene()
    scene.add_ground()
    model = scene.compile()
    eye = Camera((0, 0, 1.7), (10, 0, 1.7))
    image = picture(model, model.q_rest, eye, (320, 240), smooth=False).astype(float)
    rows = image[118:126]  # about the horizon
    assert np.ptp(rows, axis=1).max() <= 3.0
    assert np.abs(np.diff(image[100:140].mean(axis=1), axis=0)).max() < 6.0
    assert np.ptp(image[200:], axis=1).max() > 10.0  # squares are seen below


def test_squares_are_the_mean_over_a_patch() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        x, y = rng.uniform(-5, 5, 2)
        wide, high = rng.uniform(0.05, 4.0, 2)
        u, v = np.meshgrid(x + wide * (np.arange(400) + 0.5 - 200) / 400, y + high * (np.arange(400) + 0.5 - 200) / 400)
        light = ((np.floor(u) + np.floor(v)) % 2 == 0).mean()
        assert squares(x, y, wide, high) == pytest.approx(light, abs=0.01)  # 400 points a side


def test_light_is_encoded_as_srgb() -> None:
    x = np.linspace(0.0, 1.0, 1001)
    true = np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)
    assert np.abs(encoded(x) - true)[x > 0.002].max() < 0.004  # a step of 255
    assert np.abs(encoded(x) - true).max() < 0.03  # in black, where the root is steeper than a line
    np.testing.assert_allclose(linear(true), x, atol=1e-6)
    assert encoded(np.array([-1.0, 2.0])).tolist() == pytest.approx([0.0, 1.0], abs=1e-6)


def test_the_same_picture_twice() -> None:
    model = scene_with("ellipsoid")
    painter = Painter(model, (61, 47))
    first, second = painter.draw(model.q_rest, CAMERA), painter.draw(model.q_rest, CAMERA)
    assert first.shape == (47, 61, 3)
    assert first.min() > 0
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, picture(model, model.q_rest, CAMERA, (61, 47)))
    first[...] = 0
    assert painter.draw(model.q_rest, CAMERA).max() > 0


# ---- cameras ---------------------------------------------------------------------------------------------------------


def on_screen(camera: Camera, points, aspect: float):
    """Points as parts of half the picture's width and height, and their depth."""
    right, up, forward = camera.axes()
    apart = np.asarray(points) - camera.position
    depth = apart @ forward
    tangent = math.tan(camera.field_of_view / 2)
    return np.stack((apart @ right / (tangent * aspect), apart @ up / tangent), axis=-1) / depth[..., None], depth


@pytest.mark.parametrize("side", [(1, -1, 0.5), (0, 0, 1), (0, 0, -1), (0, -1, 0), (-3, 2, 0.1)])
@pytest.mark.parametrize("aspect", [0.5, 2.0])
def test_a_camera_that_looks_at_a_model_has_all_of_it(side, aspect) -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero", position=(3, 4, 0))
    model = scene.compile()
    rng = np.random.default_rng(0)
    poses = [poise.dynamics.displaced(model, model.q_rest, 0.5 * rng.normal(size=model.nv)) for _ in range(3)]
    camera = Camera.looking_at(model, poses, side=side, aspect=aspect, margin=1.1)
    reach = []
    for q in poses:
        corners = box_corners(model.solids, *places(model, q))[model.solids.link >= 0]
        place, depth = on_screen(camera, corners, aspect)
        assert (depth > 0).all()
        reach.append(np.abs(place).max())
    assert max(reach) == pytest.approx(1 / 1.1, rel=1e-9)


def test_whoever_is_inside_a_shape_looks_out() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(1.0, color=RED), name="around")
    scene.add(poise.sphere(0.5, color=(0.1, 1, 0.1, 1)), name="there", position=(4, 0, 0))
    model = scene.compile()
    image = picture(model, model.q_rest, Camera((0, 0, 0), (4, 0, 0)), (64, 48), shadows=False)
    assert (redness(image) > 30).sum() == 0
    assert (redness(image) < -30).sum() > 100


def test_the_floor_is_not_seen_from_below() -> None:
    model = scene_with("sphere")
    image = picture(model, model.q_rest, Camera((2, 0, -1.5), (0, 0, 0.7)), SIZE, smooth=False)
    assert (redness(image) > 30).sum() > 300


def test_shapes_without_opacity_are_not_drawn_and_throw_no_shadow() -> None:
    pictures = []
    for color in ((1, 0, 0, 0), None):
        scene = poise.Scene()
        scene.add_ground()
        if color:
            scene.add(poise.sphere(0.4, color=color), name="ghost", position=(0, 0, 0.5))
        model = scene.compile()
        pictures.append(picture(model, model.q_rest, CAMERA, SIZE))
    np.testing.assert_array_equal(*pictures)


# ---- marks -----------------------------------------------------------------------------------------------------------

BLUE = (0.0, 0.1, 1.0)


def blueness(image):
    return image[..., 2].astype(int) - image[..., 0]


def pixel_of(camera: Camera, point) -> tuple[int, int]:
    place, _ = on_screen(camera, np.asarray(point, float), SIZE[0] / SIZE[1])
    return int((1 - place[1]) / 2 * SIZE[1]), int((1 + place[0]) / 2 * SIZE[0])


def test_marks_are_over_the_picture_and_shine_through() -> None:
    model = scene_with("box")
    inside, outside = (0.1, -0.1, 0.7), (0.1, -0.1, 1.3)
    marks = [dot(inside, 0.05, BLUE), dot(outside, 0.05, BLUE)]
    plain, marked = (
        picture(model, model.q_rest, CAMERA, SIZE, marks=m, look=Look(see_through=s))
        for m, s in ((marks, 0.0), (marks, 0.5))
    )
    assert blueness(plain)[pixel_of(CAMERA, outside)] > 200
    assert blueness(plain)[pixel_of(CAMERA, inside)] < 0
    assert blueness(marked)[pixel_of(CAMERA, inside)] > blueness(plain)[pixel_of(CAMERA, inside)] + 100


def test_contacts_are_points_and_arrows_along_their_normals() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.2), name="ball", position=(0, 0, 0.2))
    model = scene.compile()
    contact = SimpleNamespace(point=np.array((0.6, 0.0, 0.0)), normal=np.array((0.0, 0.6, 0.8)))
    look = Look(contact=BLUE, arrow_length=0.5)
    image = picture(model, model.q_rest, CAMERA, SIZE, contacts=[contact], look=look)
    along = [contact.point + contact.normal * s for s in (0.0, 0.2, 0.4, 0.46)]
    assert all(blueness(image)[pixel_of(CAMERA, point)] > 100 for point in along)
    assert blueness(image)[pixel_of(CAMERA, contact.point + contact.normal * 0.6)] < 60
    head, shaft = ((blueness(image) > 100)[pixel_of(CAMERA, p)[0]].sum() for p in (along[2], along[1]))
    assert head > shaft


def test_many_marks_find_room() -> None:
    model = scene_with("sphere")
    painter = Painter(model, SIZE)
    crowd = [line((x, -1, 0.5), (x, 1, 0.5), 0.01, BLUE) for x in np.linspace(-1, 1, 60)]
    assert (blueness(painter.draw(model.q_rest, CAMERA, marks=crowd)) > 60).sum() > 500
    assert (blueness(painter.draw(model.q_rest, CAMERA)) > 60).sum() == 0


def test_a_skeleton_has_a_dot_at_every_joint() -> None:
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    model = scene.compile()
    camera = Camera.looking_at(model, model.q_rest)
    look = Look(see_through=1.0)
    image = picture(model, model.q_rest, camera, SIZE, marks=skeleton(model, model.q_rest, 0.015, BLUE), look=look)
    for link, body in enumerate(model.link_body):
        where = poise.dynamics.bodies(model, model.q_rest).position[body]
        assert blueness(image)[pixel_of(camera, where)] > 100, model.body_names[model.link_body[link]]


def test_an_arrow_without_a_length_is_a_dot() -> None:
    (only,) = arrow((1, 2, 3), (1, 2, 3), 0.1, BLUE)
    assert only.a == only.b == (1.0, 2.0, 3.0)


# ---- hostile input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: picture(m, m.q_rest, size=(0, 10)), r"size must be \(width, height\) in pixels, 1 to 16384 each"),
        (lambda m: picture(m, m.q_rest, size=(10.5, 10)), "size must be"),
        (lambda m: picture(m, m.q_rest, size=640), "size must be"),
        (lambda m: picture(m, m.q_rest, size=(10, 20000)), "size must be"),
        (lambda m: picture(m, [0.0]), "q has shape"),
        (lambda m: picture(m, m.q_rest * np.nan), "every number must be finite"),
        (lambda m: Camera((0, 0, 0), (0, 0, 0)), "target is where the eye is"),
        (lambda m: Camera((0, 0, 5), (0, 0, 0)), "up is .* along the view or zero"),
        (lambda m: Camera((0, 0, math.nan), (0, 0, 0)), "position must be three finite numbers"),
        (lambda m: Camera((0, 0), (0, 0, 0)), "position must be three finite numbers"),
        (lambda m: Camera((1, 0, 0), (0, 0, 0), field_of_view=40), r"between 0 and π, found 40 \(radians\)"),
        (lambda m: Camera.looking_at(m, m.q_rest, side=(0, 0, 0)), "side is"),
        (lambda m: picture(m, m.q_rest, look=Look(sun=(0, 0, 0))), "sun is"),
        (lambda m: picture(m, m.q_rest, look=Look(square=-1.0)), "square must be a length above 0, found -1.0"),
        (lambda m: picture(m, m.q_rest, look=Look(softness=2.0)), "softness is an angle"),
        (lambda m: dot((0, 0, 0), 0.0, BLUE), "radius must be a length above 0, found 0.0"),
        (lambda m: line((0, 0, 0), (0, math.inf, 0), 0.1, BLUE), "b must be three finite numbers"),
        (lambda m: picture(m, m.q_rest, contacts=[3]), "a contact has a point and a normal, found 3"),
        (lambda m: picture(poise.Scene(), [0.0]), "must be a compiled model"),
    ],
)
def test_what_cannot_be_drawn_is_said(make, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(scene_with("sphere"))


def test_plots_need_no_compiler() -> None:
    """What draws by rays is imported when it is first asked for."""
    code = "import sys, poise.view; poise.view.line_chart; assert 'numba' not in sys.modules; poise.view.picture"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'pictur'"):
        _ = poise.view.pictur


def test_a_model_without_shapes_is_a_picture_of_the_sky() -> None:
    model = poise.Scene().compile()
    image = picture(model, model.q_rest, size=(40, 30))
    assert image.min() > 100
