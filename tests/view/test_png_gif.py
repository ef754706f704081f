"""Files are what was drawn, by another program's decoder."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageSequence

from poise.view.gif import find_palette, save_gif
from poise.view.png import save_png


def gradient(height: int = 50, width: int = 70) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    return np.stack((200 * x, 120 + 100 * y, 255 * x * y), axis=-1).round().astype(np.uint8)


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 5, 3), (64, 100, 3), (33, 20), (12, 9, 4)])
def test_png_loses_nothing(shape, tmp_path) -> None:
    rng = np.random.default_rng(0)
    for image in (rng.integers(0, 256, shape, np.uint8), np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8)):
        path = save_png(tmp_path / "a.png", image)
        np.testing.assert_array_equal(np.asarray(Image.open(path)), image)


def test_png_of_a_smooth_picture_is_small(tmp_path) -> None:
    image = gradient(200, 300)
    path = save_png(str(tmp_path / "a.png"), image)
    np.testing.assert_array_equal(np.asarray(Image.open(path)), image)
    assert path.stat().st_size < 0.1 * image.size


def decoded(path) -> tuple[list[np.ndarray], list[int]]:
    """Frames as they are shown, and for how many milliseconds."""
    with Image.open(path) as film:
        frames = [(np.asarray(frame.convert("RGB")), frame.info["duration"]) for frame in ImageSequence.Iterator(film)]
    return [frame for frame, _ in frames], [time for _, time in frames]


STEPS = np.array([(r, g, b) for r in range(0, 256, 51) for g in range(0, 256, 51) for b in range(0, 256, 51)], np.uint8)


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (17, 31), (120, 160), (300, 400)])
@pytest.mark.parametrize("colors", [1, 2, 216])
def test_colours_that_are_apart_come_back_as_they_were(size, colors, tmp_path) -> None:
    """Noise fills the table of strings again and again; one colour makes strings as long as can be."""
    rng = np.random.default_rng(colors)
    frames = [STEPS[rng.integers(0, colors, size)] for _ in range(3)]
    shown, times = decoded(save_gif(tmp_path / "a.gif", frames, 0.05))
    assert times == [50, 50, 50]
    for frame, wanted in zip(shown, frames, strict=True):
        np.testing.assert_array_equal(frame, wanted)


def test_only_what_changes_is_written(tmp_path) -> None:
    still = gradient(200, 300)
    frames = []
    for k in range(10):
        frame = still.copy()
        frame[20:40, 20 + 10 * k : 40 + 10 * k] = (250, 20, 20)
        frames.append(frame)
    path = save_gif(tmp_path / "a.gif", frames, 0.1)
    one = save_gif(tmp_path / "b.gif", frames[:1], 0.1)
    assert path.stat().st_size < 1.5 * one.stat().st_size
    shown, _ = decoded(path)
    for frame, wanted in zip(shown, frames, strict=True):
        # colours are moved by up to 4, and rounded to a palette of 255
        assert np.abs(frame.astype(int) - wanted).mean() < 5.0
        red = (frame[..., 0] > 200) & (frame[..., 1] < 60)
        np.testing.assert_array_equal(red, (wanted == (250, 20, 20)).all(axis=-1))


def test_equal_frames(tmp_path) -> None:
    shown, times = decoded(save_gif(tmp_path / "a.gif", [gradient()] * 3, 0.5))
    assert sum(times) == 1500
    assert all((frame == shown[0]).all() for frame in shown)


@pytest.mark.parametrize("dt", [1 / 240, 1 / 60, 1 / 30, 0.0333, 0.1, 2.0])
def test_films_last_as_long_as_they_should(dt, tmp_path) -> None:
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, (8, 8, 3), np.uint8) for _ in range(48)]
    _, times = decoded(save_gif(tmp_path / "a.gif", frames, dt))
    assert sum(times) == pytest.approx(1000 * 48 * dt, abs=10.0)
    assert min(times) >= 20


def test_dithering_keeps_the_mean(tmp_path) -> None:
    image = gradient(256, 256)
    frames, _ = decoded(save_gif(tmp_path / "a.gif", [image], 0.1))
    blocks = [x.astype(float).reshape(16, 16, 16, 16, 3).mean(axis=(1, 3)) for x in (frames[0], image)]
    assert np.abs(blocks[0] - blocks[1]).max() < 4.0  # the palette's colours are some 20 apart


def test_palette_of_few_colours_is_these() -> None:
    image = STEPS[:40][None].repeat(3, axis=0)
    palette = find_palette([image])
    assert {tuple(c) for c in palette.tolist()} == {tuple(c) for c in STEPS[:40].tolist()}


@pytest.mark.parametrize(
    ("frames", "dt", "message"),
    [
        ([], 0.1, "at least one picture"),
        ([gradient(), gradient(10, 10)], 0.1, r"frame 1 has shape \(10, 10, 3\), the first one \(50, 70, 3\)"),
        ([gradient()], 0.0, "dt must be a time above 0"),
        ([gradient()], float("nan"), "dt must be a time above 0"),
        ([gradient() / 255.0], 0.1, "bytes .uint8., found float64; multiply by 255"),
        ([np.zeros((5, 5), np.uint8)], 0.1, r"has the shape \(height, width, 3\)"),
        ([np.zeros((0, 5, 3), np.uint8)], 0.1, "at least one pixel"),
    ],
)
def test_films_that_cannot_be(frames, dt, message, tmp_path) -> None:
    with pytest.raises(ValueError, match=message):
        save_gif(tmp_path / "a.gif", frames, dt)
    assert not (tmp_path / "a.gif").exists()


def test_pictures_that_cannot_be(tmp_path) -> None:
    for image in (np.zeros((5, 5, 2), np.uint8), np.zeros(5, np.uint8), np.zeros((5, 5, 3), np.int32)):
        with pytest.raises(ValueError, match="a picture"):
            save_png(tmp_path / "a.png", image)
    with pytest.raises(FileNotFoundError):
        save_png(tmp_path / "missing" / "a.png", gradient())
