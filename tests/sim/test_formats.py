"""Saving by suffix: what is answered to names, paths and options that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from poise.sim import Recording
from poise.sim.export_formats import FORMATS, writer


@pytest.fixture(scope="module")
def recording() -> Recording:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    return scene.build(dt=0.05).run(0.2)


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_has_a_writer_with_a_text(suffix: str) -> None:
    write = writer(f"name{suffix}")
    assert callable(write)
    assert write.__doc__
    assert FORMATS[suffix].what


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("walk.npx", 'there is no format ".npx", did you mean ".npz"?'),
        ("walk.hdf", 'did you mean ".h5"?'),
        ("walk.fbx", 'did you mean ".glb"?'),
        ("walk.gltf", 'did you mean ".glb"?'),
        ("walk.bvhh", 'did you mean ".bvh"?'),
        ("walk.qqqqq", "recordings are saved as .npz, .h5"),
        ("walk", "the name has no suffix to tell the format"),
        (".npz", "the name has no suffix"),
        ("", "it is a folder"),
        ("there/is/none.npz", "there is no such folder to save to"),
        ("a\0b.npz", "zero bytes"),
        (300 * "a" + ".npz", "cannot be written: File name too long"),
    ],
)
def test_names_that_cannot_be_are_answered(recording: Recording, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(poise.SceneError) as caught:
        recording.save(f"{tmp_path}/{name}")
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_path_at_all(recording: Recording) -> None:
    with pytest.raises(poise.SceneError, match="the path of a file should be given, found 3"):
        recording.save(3)  # type: ignore[arg-type]


def test_capitals_are_suffixes_too(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "FALL.NPZ")
    assert len(Recording.load(tmp_path / "FALL.NPZ")) == 5


def test_options_that_a_format_does_not_have(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(poise.SceneError, match=r'\.h5 files take no option "compresion", did you mean "compression"'):
        recording.save(tmp_path / "x.h5", compresion="gzip")
    with pytest.raises(poise.SceneError, match=r'\.npz files take no option "fps"'):
        recording.save(tmp_path / "x.npz", fps=3)
    with pytest.raises(poise.SceneError, match='must be "gzip", "lzf" or None'):
        recording.save(tmp_path / "x.h5", compression="zip")


@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if suffix not in (".bvh", ".mp4")])
def test_a_file_that_cannot_be_written_leaves_nothing_behind(recording: Recording, tmp_path: Path, suffix: str) -> None:
    """A folder of the file's name cannot be replaced; what is there already stays as it was."""
    blocked = tmp_path / f"x{suffix}"
    blocked.mkdir()
    with pytest.raises(poise.SceneError, match="it is a folder"):
        recording.save(blocked)
    assert [path.name for path in tmp_path.iterdir()] == [f"x{suffix}"]
    nowhere = Path("/proc") / f"x{suffix}"
    with pytest.raises(poise.SceneError) as caught:
        recording.save(nowhere)
    assert str(caught.value).startswith(f"{nowhere}: cannot be written")


def test_what_was_there_stays_where_writing_fails(recording: Recording, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    recording.save(file, what="energy")
    before = file.read_bytes()
    with pytest.raises(poise.SceneError, match="was not recorded"):
        recording.save(file, what="enrgy")
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_empty_recordings_and_numbers_that_are_none(recording: Recording, tmp_path: Path) -> None:
    model = recording.model
    empty = Recording(np.zeros(0), np.zeros((0, 7)), np.zeros((0, 6)), model)
    broken = Recording(recording.time, recording.q.copy(), recording.v, model)
    broken.q[3, 2] = np.nan
    for suffix in FORMATS:
        if suffix in (".npz", ".h5", ".hdf5"):
            empty.save(tmp_path / f"x{suffix}")
            assert len(Recording.load(tmp_path / f"x{suffix}")) == 0
            continue
        with pytest.raises(poise.SceneError, match="empty"):
            empty.save(tmp_path / f"x{suffix}")
        with pytest.raises(poise.SceneError, match="frame 3"):
            broken.save(tmp_path / f"x{suffix}")
