"""Pictures and films of recordings: what is in them, how long they are, what is answered to what cannot be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import poise
from poise.characters import clips, humanoid
from poise.motion import retarget
from poise.sim import Recording
from poise.view import mp4
from poise.view.camera_paths import calmed, cameras
from poise.view.film import Film, film_times
from poise.view.motion_sampler import motion_poses, poses_at

SIZE = (160, 120)


@pytest.fixture(scope="module")
def walk() -> Recording:
    """A person who walks 2.6 m along x, and a ball that lies there."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(humanoid(), name="hero")
    scene.add(poise.sphere(0.11, color=(0.9, 0.1, 0.1, 1)), name="ball", position=(1.0, 0.8, 0.11))
    model = scene.compile()
    times, q = retarget(clips.walk(humanoid(), speed=1.3).slice(0.0, 2.0), model)
    return Recording(times, q, np.zeros((len(q), model.nv)), model)


def pictures(recording: Recording, times=(1.0,), **options) -> list[np.ndarray]:
    return list(Film(size=SIZE, **options).pictures(recording, np.array(times)))


def middle(image: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of the pixels in which two pictures differ."""
    return np.argwhere((image != other).any(axis=2)).mean(axis=0)


def test_a_still_is_the_picture_of_its_moment(walk: Recording, tmp_path: Path) -> None:
    walk.save(tmp_path / "x.png", time=0.7, size=SIZE, follow=False)
    found = np.asarray(Image.open(tmp_path / "x.png"))
    q = poses_at(walk.model, walk.time, walk.q, [0.7])[0]
    camera = poise.view.Camera.looking_at(walk.model, q, aspect=4 / 3)
    assert np.array_equal(found, poise.view.picture(walk.model, q, camera, SIZE))


def test_between_frames_things_are_between(walk: Recording) -> None:
    model, (a, b) = walk.model, walk.q[10:12]
    t = walk.time[10:12]
    exact = poses_at(model, walk.time, walk.q, t)
    assert np.array_equal(exact, walk.q[10:12])
    half = poses_at(model, walk.time, walk.q, [t.mean()])[0]
    wanted = poise.dynamics.displaced(model, a, 0.5 * poise.dynamics.difference(model, a, b))
    assert np.abs(half - wanted).max() < 1e-12
    outside = poses_at(model, walk.time, walk.q, [-5.0, 99.0])
    assert np.array_equal(outside, walk.q[[0, -1]])


def test_the_camera_goes_along(walk: Recording) -> None:
    times = np.linspace(0.0, 2.0, 61)
    q = poses_at(walk.model, walk.time, walk.q, times)
    side = (0.0, -1.0, 0.2)
    going = cameras(walk.model, times, q, None, 4 / 3, side)
    staying = cameras(walk.model, times, q, False, 4 / 3, side)
    assert len({camera.position for camera in staying}) == 1
    shift = np.array([camera.target for camera in going]) - q[:, :3]
    assert np.ptp(shift[:, 0]) < 0.15
    assert going[-1].target[0] - going[0].target[0] == pytest.approx(q[-1, 0] - q[0, 0], abs=0.1)
    # no step of the walk is seen in the height of the camera, which moves by some centimetres
    assert np.ptp([camera.target[2] for camera in going]) < 0.2 * np.ptp(q[:, 2])
    assert [camera.distance for camera in going] == pytest.approx([going[0].distance] * 61)
    named = cameras(walk.model, times, q, "hero", 4 / 3, side)
    assert named[7].position == pytest.approx(going[7].position)


def test_a_straight_way_is_followed_without_delay() -> None:
    times = np.linspace(0.0, 3.0, 91)
    path = times[:, None] * (1.0, -2.0, 0.5)
    assert calmed(times, path) == pytest.approx(path, abs=1e-9)
    shaken = path + 0.1 * np.sin(40.0 * times)[:, None]
    assert np.abs(calmed(times, shaken) - path)[10:-10].max() < 0.01


def test_a_ghost_is_sheer_and_where_it_should_be(walk: Recording) -> None:
    camera = poise.view.Camera((1.3, -6.0, 1.2), (1.3, 0.0, 0.9))
    (plain,) = pictures(walk, camera=camera)
    behind = (walk.time + 0.5, walk.q)
    (same,) = pictures(walk, camera=camera, ghost=walk)
    (late,) = pictures(walk, camera=camera, ghost=behind)
    (beside,) = pictures(walk, camera=camera, ghost=walk, ghost_offset=(1.5, 0.0, 0.0))
    # 0.5 s later is 0.65 m further back, 1.5 m is 1.5 m: to the left and to the right of the picture
    hero = middle(same, plain)[1]
    assert middle(late, plain)[1] < hero - 5
    assert middle(beside, plain)[1] > hero + 15
    # what is far from both is untouched, the ball among it
    assert (beside[:, :40] == plain[:, :40]).all()
    away = (beside != plain).any(axis=2)
    assert 0.01 < away.mean() < 0.2
    assert beside[away].astype(int).min() > 0


@pytest.mark.parametrize("kind", ["recording", "clip", "retargeted", "keyframes"])
def test_ghosts_of_every_kind(walk: Recording, kind: str) -> None:
    clip = clips.walk(humanoid(), speed=1.3)
    ghosts = {
        "recording": walk,
        "clip": clip,
        "retargeted": retarget(clip.slice(0.0, 2.0), walk.model),
        "keyframes": poise.motion.keyframes({0.0: {"knee_l": 0.0}, 2.0: {"knee_l": 1.0}}),
    }
    q = motion_poses(walk.model, ghosts[kind], [0.5, 1.5])
    assert q.shape == (2, walk.model.nq)
    if kind != "keyframes":
        assert (
            np.abs(
                q[:, walk.model.q_slice("root")][:, :3] - poses_at(walk.model, walk.time, walk.q, [0.5, 1.5])[:, :3]
            ).max()
            < 1e-3
        )
    assert len(pictures(walk, ghost=ghosts[kind])) == 1


def test_trails_bones_and_contacts_are_drawn(walk: Recording) -> None:
    camera = poise.view.Camera((1.3, -6.0, 1.2), (1.3, 0.0, 0.9))
    times = np.linspace(0.0, 1.0, 31)
    (plain,) = pictures(walk, camera=camera)
    *_, trail = pictures(walk, times, camera=camera, trails=["hand_r"])
    (bones,) = pictures(walk, camera=camera, bones=True)
    assert 20 < (trail != plain).any(axis=2).sum() < 1500
    assert middle(trail, plain)[1] < SIZE[0] / 2
    assert (bones != plain).any(axis=2).sum() > 50
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.5, 0.5, 0.5), name="crate", position=(0, 0, 0.25))
    still = scene.build(dt=0.01).run(0.1)
    assert (pictures(still, (0.1,), contacts=True)[0] != pictures(still, (0.1,))[0]).any()


def test_a_gif_has_the_length_of_the_motion(walk: Recording, tmp_path: Path) -> None:
    walk.save(tmp_path / "x.gif", fps=10, size=SIZE)
    film = Image.open(tmp_path / "x.gif")
    assert film.size == SIZE
    assert film.n_frames == 21
    walk.save(tmp_path / "slow.gif", fps=10, speed=0.5, size=(32, 24))
    assert Image.open(tmp_path / "slow.gif").n_frames == 41


def test_times_of_a_film(walk: Recording) -> None:
    assert film_times(walk, 30, 1.0) == pytest.approx(np.arange(61) / 30)
    assert film_times(walk, 25, 2.0) == pytest.approx(np.arange(26) / 12.5)


@pytest.mark.parametrize("size", [(64, 48), (65, 49)])
def test_an_mp4_is_what_ffmpeg_reads(walk: Recording, tmp_path: Path, size: tuple[int, int]) -> None:
    walk.save(tmp_path / "x.mp4", fps=10, size=size)
    program = mp4.find_ffmpeg()
    said = subprocess.run([program, "-i", str(tmp_path / "x.mp4")], capture_output=True, text=True, check=False).stderr
    assert "h264" in said
    assert "64x48" in said if size == (64, 48) else "66x50" in said
    assert "10 fps" in said
    assert "00:00:02.10" in said
    raw = ["-i", str(tmp_path / "x.mp4"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run([program, "-loglevel", "error", *raw], capture_output=True, check=True)
    width, height = 2 * -(-size[0] // 2), 2 * -(-size[1] // 2)
    frames = np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3)[:, : size[1], : size[0]]
    drawn = list(Film(size=size).pictures(walk, film_times(walk, 10, 1.0)))
    assert len(frames) == 21
    # colours go through half as many, of 8 bits, and back
    for found, wanted in zip(frames, drawn, strict=True):
        assert np.abs(found.astype(int) - wanted).mean() < 4.0


def test_ffmpeg_from_a_package_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import imageio_ffmpeg

    monkeypatch.setattr(mp4.shutil, "which", lambda name: None)
    assert Path(mp4.find_ffmpeg()).is_file()

    def missing() -> str:
        raise RuntimeError

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(ImportError, match="pip install imageio-ffmpeg, or the extra"):
        mp4.find_ffmpeg()


def test_an_ffmpeg_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho no such coder >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(mp4, "find_ffmpeg", lambda: str(program))
    images = [np.zeros((400, 400, 3), np.uint8)] * 9
    with pytest.raises(poise.SceneError, match="ffmpeg ended with status 3: no such coder"):
        mp4.save_mp4(tmp_path / "x.mp4", images, 10.0)


@pytest.mark.parametrize(
    ("suffix", "options", "words"),
    [
        (".gif", {"folow": "hero"}, 'no option "folow", did you mean "follow"'),
        (".gif", {"follow": "hreo"}, 'there is no body or character "hreo", did you mean "hero"'),
        (".gif", {"fps": 0}, "fps: must be frames a second"),
        (".gif", {"fps": 90000}, "too many"),
        (".gif", {"speed": -1.0}, "speed: must be more than 0"),
        (".png", {"time": 99.0}, "time: must be from 0 to 2 s, found 99"),
        (".png", {"time": float("nan")}, "time: must be from 0 to 2 s, found nan"),
        (".png", {"size": (0, 10)}, "size must be"),
        (".png", {"side": (0, 0, 0)}, "side must be three numbers"),
        (".png", {"trails": ["hand"]}, 'there is no body or character "hand"'),
        (".png", {"ghost": "walk.bvh"}, "ghost: a motion is a recording, a clip"),
        (".png", {"ghost": ([0.0], [[1.0]])}, "ghost: 1 frames of it are"),
    ],
)
def test_refusals(walk: Recording, tmp_path: Path, suffix: str, options: dict, words: str) -> None:
    with pytest.raises(poise.SceneError) as caught:
        walk.save(tmp_path / f"x{suffix}", **{"size": SIZE} | options)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_scenes_without_anything(tmp_path: Path) -> None:
    recording = poise.Scene().build(dt=0.1).run(0.3)
    recording.save(tmp_path / "x.png", size=(32, 24))
    recording.save(tmp_path / "x.gif", size=(32, 24), fps=10)
    assert Image.open(tmp_path / "x.gif").size == (32, 24)
    with pytest.raises(poise.SceneError, match="there are 0 characters"):
        recording.save(tmp_path / "x.png", follow=True)
