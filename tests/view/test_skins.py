"""Skins where they are seen: pictures and pages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import poise
from poise.model.skins import Bone
from poise.sim import Recording
from poise.view import Camera, Painter, picture
from poise.view.live.forms import add_skin
from poise.view.page import save_page
from poise.view.page.forms import skin_list
from poise.view.render import dot
from skin_models import arm, bent_tube, tube

SIZE = (160, 120)
EYE = Camera((0.6, -6.0, 1.0), (0.6, 0.0, 1.0))
#: pixels; the tube is 2 m by 0.3 m, 450 pixels at 27.5 a metre, and somewhat less where its inner side is folded
AREA = 380


def redness(image: np.ndarray) -> np.ndarray:
    return np.asarray(image[..., 0].astype(int) - image[..., 1] > 50)


def as_a_shape(angle: float) -> poise.Model:
    """The same surface at one pose as a mesh that is only looked at."""
    scene = poise.Scene()
    mesh = poise.triangle_mesh(bent_tube(angle), tube()[1], open=True, group=0, mask=0, color=arm().skins[0].color)
    scene.add(mesh, name="statue", fixed=True)
    return scene.compile()


def test_pictures_show_it_as_it_is_bent() -> None:
    """As the picture of a mesh with the points of the closed form, but for a few pixels at edges."""
    painter = Painter(arm().compile(), SIZE, smooth=False)
    for angle in (0.0, 1.2, -0.8, 1.2):
        seen = painter.draw([angle], EYE).astype(int)
        statue = as_a_shape(angle)
        wanted = picture(statue, statue.q_rest, EYE, SIZE, smooth=False).astype(int)
        assert redness(seen).sum() > AREA
        assert (np.abs(seen - wanted) > 3).any(axis=-1).sum() <= 4, angle


def test_pictures_with_shapes_and_marks_beside_it() -> None:
    scene = arm()
    scene.add_ground()
    scene.add(poise.box(0.3, 0.3, 0.3, color=(0.1, 0.1, 0.9, 1.0)), name="crate", position=(-1.0, 0.0, 1.0), fixed=True)
    model = scene.compile()
    image = picture(model, [0.5], EYE, SIZE, marks=[dot((0, 0, 2), 0.1, (0, 1, 0))]).astype(int)
    assert redness(image).sum() > AREA
    assert (image[..., 2] - image[..., 0] > 50).sum() > 30


def test_a_camera_has_skins_in_view_that_are_all_there_is() -> None:
    image = picture(arm().compile(), [0.5], size=SIZE, smooth=False)
    red = redness(image)
    assert red.sum() > 800
    assert not red[[0, -1]].any()
    assert not red[:, [0, -1]].any()


def test_those_that_are_not_to_be_seen() -> None:
    scene = arm()
    scene.skins[0].color = (0.9, 0.0, 0.0, 0.0)
    model = scene.compile()
    assert not redness(picture(model, [0.5], EYE, SIZE)).any()
    assert skin_list(model, np.zeros(3)) == []


def moving() -> Recording:
    model = arm().compile()
    time = np.linspace(0.0, 1.0, 31)
    return Recording(time, 1.5 * time[:, None], np.full((31, 1), 1.5), model)


def test_films_with_ghosts(tmp_path: Path) -> None:
    recording = moving()
    recording.save(tmp_path / "x.png", time=0.5, size=SIZE, ghost=(recording.time + 0.2, recording.q))
    assert (tmp_path / "x.png").stat().st_size > 1000


class Told:
    """Stands for a scene of the viewer, and keeps what it is told."""

    def add_mesh_skinned(self, name: str, points: np.ndarray, faces: np.ndarray, **options: Any) -> Told:
        self.name, self.points, self.faces, self.options = name, points, faces, options
        return self


def test_the_viewer_gets_the_four_strongest_bones() -> None:
    """Six equal shares: four of them are left, a quarter each."""
    scene = arm()
    (skin,) = scene.skins
    every = np.arange(len(skin.vertices))
    skin.bones = [Bone("fore", (0.2, 0, 1.0), vertices=every, weights=np.full(len(every), 1 / 6)) for _ in range(6)]
    told = add_skin(Told(), "skin", scene.compile(), 0, (255, 0, 0), None)
    weights = told.options["skin_weights"]
    assert weights.shape == (len(every), 6)
    assert (np.sort(weights, axis=1) == (0.0, 0.0, 0.25, 0.25, 0.25, 0.25)).all()
    assert told.options["bone_positions"].shape == (6, 3)


@pytest.mark.browser
def test_pages_bend_it_as_the_formula_says(the_browser, tmp_path: Path) -> None:
    """To the steps of the page's numbers: 0.1 mm of places, 1/65536 of turns and weights, over 2 m."""
    file = save_page(moving(), tmp_path / "arm.html")
    page = the_browser.new_page(viewport={"width": 500, "height": 480})
    heard: list[str] = []
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-state]")
    origin = np.array(page.evaluate("poise.stage.data.origin"))
    for time in (0.0, 0.5, 1.0):
        bent = page.evaluate(f"Array.from(poise.stage.skins[0].moved(poise.stage.motion.poses({time})))")
        assert np.abs(np.reshape(bent, (-1, 3)) + origin - bent_tube(1.5 * time)).max() < 3e-4
    page.evaluate("poise.touch()")
    page.wait_for_timeout(500)
    image = np.asarray(Image.open(io.BytesIO(page.locator("#view").screenshot())).convert("RGB"))
    assert redness(image).sum() > 2000
    assert page.evaluate("poise.renderer.gl.getError()") == 0
    page.close()
    assert heard == []
