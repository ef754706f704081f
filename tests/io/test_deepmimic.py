"""Motions of DeepMimic: its figure, its angles, z up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from poise.io import load_deepmimic, load_motion
from poise.io.deepmimic import _humanoid, _read_character
from poise.model.errors import SceneError
from poise.motion.rotations import quat_exp

SHARED = Path(__file__).parents[3] / "shared" / "data" / "deepmimic"
JOINTS = [(joint.name, {"none": 7, "spherical": 4, "revolute": 1, "fixed": 0}[joint.kind]) for joint in _humanoid()]


def document(frames: int = 4, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(frames):
        row = [0.05]
        for name, width in JOINTS:
            if name == "root":
                row += [*rng.normal(size=3), *quat_exp(rng.normal(size=3))]
            else:
                row += [*(quat_exp(rng.normal(size=3)) if width == 4 else rng.normal(size=width))]
        rows.append([float(x) for x in row])
    return {"Loop": "none", "Frames": rows}


def plain_positions(rows: list, joints) -> np.ndarray:
    """By rotation matrices, in the file's axes (y up), then turned upright."""
    out = []
    for row in rows:
        at, places, turns = 1, [], []
        for joint in joints:
            width = {"none": 7, "spherical": 4, "revolute": 1, "fixed": 0}[joint.kind]
            part, at = row[at : at + width], at + width
            local = np.eye(3)
            if width >= 4:
                local = Rotation.from_quat(part[-4:], scalar_first=True).as_matrix()
            elif width == 1:
                local = Rotation.from_euler("z", part[0]).as_matrix()
            if joint.parent < 0:
                places.append(np.array(part[:3]))
                turns.append(local)
            else:
                places.append(places[joint.parent] + turns[joint.parent] @ np.array(joint.attach))
                turns.append(turns[joint.parent] @ local)
        out.append(places)
    return np.array(out) @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]).T


def test_positions_are_those_of_a_plain_reader(tmp_path):
    motion = document()
    (tmp_path / "jump.txt").write_text(json.dumps(motion))
    clip = load_motion(tmp_path / "jump.txt")
    assert clip.skeleton.names == tuple(name for name, _ in JOINTS)
    assert clip.times.tolist() == pytest.approx([0.0, 0.05, 0.1, 0.15])
    np.testing.assert_allclose(clip.world_positions(), plain_positions(motion["Frames"], _humanoid()), atol=1e-13)


def test_the_figure_faces_x_with_its_left_at_y():
    clip = load_deepmimic(json.dumps(document()))
    rest = dict(zip(clip.skeleton.names, clip.skeleton.rest_positions, strict=True))
    assert rest["left_hip"][1] > 0.05 > rest["right_hip"][1]
    assert rest["neck"][2] > 0.4
    assert rest["left_ankle"][2] < -0.8


def motions() -> dict[str, dict]:
    found = sorted(SHARED.glob("humanoid3d_*.txt"))
    return {"made": document(seed=1)} | {file.stem: json.loads(file.read_text()) for file in found}


@pytest.mark.parametrize("motion", motions().values(), ids=motions())
def test_files_of_others(motion):
    clip = load_deepmimic(json.dumps(motion))
    np.testing.assert_allclose(clip.world_positions(), plain_positions(motion["Frames"], _humanoid()), atol=1e-12)
    assert ("repeated" in " ".join(clip.notes)) == (motion["Loop"] == "wrap")


def character() -> dict:
    joints = []
    for number, joint in enumerate(_humanoid()):
        entry = {"ID": number, "Name": joint.name, "Type": joint.kind, "Parent": joint.parent}
        joints.append(entry | {f"Attach{axis}": value for axis, value in zip("XYZ", joint.attach, strict=True)})
    return {"Skeleton": {"Joints": joints}}


def test_characters_are_read(tmp_path):
    given = [tmp_path / "figure.txt", *SHARED.glob("humanoid3d.txt")]
    given[0].write_text(json.dumps(character()))
    for file in given:
        assert _read_character(file) == _humanoid()
    clip = load_deepmimic(json.dumps(document()), character=given[0])
    assert np.array_equal(clip.world_positions(), load_deepmimic(json.dumps(document())).world_positions())


ROOT = {"Name": "a", "Type": "none", "Parent": -1, "AttachX": 0, "AttachY": 0, "AttachZ": 0}


def changed(**changes) -> str:
    return json.dumps(document() | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is no JSON: "),
        ("{}", 'a DeepMimic motion is an object with "Frames", found an empty object'),
        ('{"frames": []}', 'an object with "Frames", found frames'),
        (changed(Frames=[]), "Frames: must be a list of frames"),
        (changed(Frames=7), "Frames: must be a list of frames"),
        (changed(Frames=[[1, 2]]), r"Frames\[0\]: must have 44 numbers for DeepMimic's humanoid, found 2"),
        (changed(Frames=["x"]), r"Frames\[0\]: must have 44 numbers for DeepMimic's humanoid, found 'x'"),
        (changed(Frames=[["a"] * 44]), r"Frames\[0\]: must be numbers, found 'a'"),
        (changed(Frames=[[float("nan")] * 44]), r"Frames\[0\]: must be numbers, found nan"),
        (changed(Frames=[[True] * 44]), r"Frames\[0\]: must be numbers, found True"),
        (changed(Frames=[[0.0] * 44, [1.0] * 44]), r"Frames\[0\]: its duration must be more than 0 s, found 0.0"),
        (
            changed(Frames=[[0.2, *[1.0] * 43], [1e-18, *[1.0] * 43], [0.2, *[1.0] * 43]]),
            r"Frames\[1\]: its duration of 1e-18 s is lost beside the 0.2 s before it",
        ),
        (changed(Frames=[[0.0] * 44]), r'Frames\[0\]: the rotation of "root" is \(0, 0, 0, 0\)'),
        ('{"Frames": ' + "[" * 100000, "it is no JSON|brackets in brackets"),
        ('{"Frames": [' + "9" * 5000 + "]}", r"line 1: Frames\[0\]: must have 44 numbers"),
        (
            json.dumps({"Frames": [[0.1] * 44, [1] * 44, [10**40] * 44]}, indent=0),
            r"line 95: Frames\[2\]: must be numbers, found 1000",
        ),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(SceneError, match=message):
        load_deepmimic(text)


def test_bad_characters_and_options(tmp_path):
    bad = tmp_path / "bad.txt"
    for content, message in (
        ({"Skeleton": {}}, "it is no character of DeepMimic: there is no list"),
        ({"Skeleton": {"Joints": [{"Type": "planar", "Parent": -1}]}}, 'type "planar" are not read'),
        ({"Skeleton": {"Joints": [{"Type": "none", "Parent": 4}]}}, "its parent must come before it, found 4"),
        ({"Skeleton": {"Joints": []}}, "it has no joints"),
        ({"Skeleton": {"Joints": [ROOT, ROOT | {"Type": "fixed", "Parent": 0}]}}, "its name must be new, found 'a'"),
        ({"Skeleton": {"Joints": [ROOT | {"AttachX": float("inf")}]}}, "AttachX must be a finite number, found inf"),
        ({"Skeleton": {"Joints": [ROOT | {"Parent": 10**400}]}}, "its parent must come before it"),
        ({"Skeleton": {"Joints": [ROOT | {"AttachX": 10**400}]}}, "AttachX must be a finite number"),
        ({"Skeleton": {"Joints": [ROOT | {"Name": [1]}]}}, "its name must be text"),
        ({"Skeleton": {"Joints": [ROOT | {"Name": " "}]}}, "its name must be text"),
        ({"Skeleton": {"Joints": [ROOT]}}, "must have 8 numbers for the figure of .*bad.txt, found 44"),
    ):
        bad.write_text(json.dumps(content))
        with pytest.raises(SceneError, match=message):
            load_deepmimic(json.dumps(document()), character=bad)
    (tmp_path / "a.txt").write_text(json.dumps(document()))
    with pytest.raises(SceneError, match='DeepMimic files take no option "units"'):
        load_motion(tmp_path / "a.txt", units="cm")
