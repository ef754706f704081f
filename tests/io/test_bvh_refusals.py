"""Bad BVH files: an error with file and line that says what is wrong, or a clip that is what the file says."""

from __future__ import annotations

import re
import time
import warnings

import numpy as np
import pytest

from bvh_reference import example, read_plainly
from poise.io import MotionWarning, load_bvh, load_motion
from poise.io.bvh import read_bvh
from poise.io.bvh_text import parse_bvh
from poise.model.errors import SceneError

GOOD = example()
GARBAGE = (
    "{",
    "}",
    "ROOT",
    "JOINT",
    "OFFSET",
    "CHANNELS",
    "MOTION",
    "nan",
    "-inf",
    "1e400",
    "1,5",
    "0x10",
    "１",
    "\ufffd",
)
HUGE = ("99999999999999999999", "1e300", "-1", "2147483648", "0", "3.7")


def mutated(seed: int) -> str:
    """A file with one to three tokens deleted, doubled, garbled or swapped, or its end cut off."""
    rng = np.random.default_rng(seed)
    text = GOOD
    for _ in range(rng.integers(1, 4)):
        tokens = list(re.finditer(r"\S+", text))
        # half of the mutations hit the header, which is the shorter part
        header = next((k for k, token in enumerate(tokens) if token[0] == "MOTION"), len(tokens) - 1)
        pick = int(rng.integers(header + 5)) if rng.random() < 0.5 else int(rng.integers(len(tokens)))
        token = tokens[min(pick, len(tokens) - 1)]
        other = tokens[int(rng.integers(len(tokens)))][0]
        letter = int(rng.integers(len(token[0])))
        new = {
            0: "",
            1: f"{token[0]} {token[0]}",
            2: str(rng.choice(GARBAGE)),
            3: token[0][:letter] + chr(int(rng.integers(33, 126))) + token[0][letter + 1 :],
            4: other,
            5: str(rng.choice(HUGE)),
        }.get(kind := int(rng.integers(7)))
        text = text[: token.start()] + (new + text[token.end() :] if kind < 6 else "")
        if len(text) < 20:
            break
    return text


@pytest.mark.parametrize("block", range(10))
def test_200_mutated_files_give_an_error_with_a_line_or_the_right_clip(block):
    lines = []
    for seed in range(20 * block, 20 * block + 20):
        text = mutated(seed)
        try:
            clip = read_bvh(text, "m.bvh", units=1.0, up="z", drop_tpose=False)
        except SceneError as error:
            line = error.line or (10**9 if text.strip() else 1)  # of nothing, none is told
            lines.append(line - text.count("\n") - 1)
            continue
        plain = read_plainly(text)
        assert list(clip.skeleton.names) == plain.names, seed
        scale = np.abs(plain.frames).max() + np.abs(np.array(plain.offsets)).max()
        # sines of many turns are off by the rounding of the angle, in the reference as well
        np.testing.assert_allclose(clip.world_positions(), plain.positions(), atol=1e-13 * scale * scale)
    print(f"\nfiles {20 * block} to {20 * block + 19}: {len(lines)} errors with a line, {20 - len(lines)} right clips")
    assert len(lines) > 8
    assert max(lines) <= 0


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("ROOT Hips", "ROOT", 2, "ROOT should be followed by a name"),
        ("ROOT Hips\n{", "ROOT Hips\n", 4, r'"{" should follow here, found "OFFSET"'),
        ("OFFSET 0.5 0 0", "OFFSET 0.5 0", 5, 'OFFSET has three numbers, found "CHANNELS"'),
        ("OFFSET 0.5 0 0", "OFFSET 0.5 0 x", 4, 'OFFSET has three numbers, found "x"'),
        ("OFFSET 0.5 0 0", "OFFSET 0.5 0 1e9", 4, 'OFFSET has three numbers, found "1e9"'),
        ("OFFSET 0.5 0 0", "", 2, 'joint "Hips" has no OFFSET'),
        ("OFFSET 0.5 0 0", "OFFSET 0 0 0\n OFFSET 0 0 0", 5, 'joint "Hips" has a second OFFSET'),
        ("OFFSET 0.5 0 0", "OFSET 0.5 0 0", 4, r'no statement begins with "OFSET", did you mean "OFFSET"\?'),
        ("CHANNELS 1 Xrotation", "CHANNELS 2 Xrotation", 28, 'channel 2 of 2 is no channel, found "End"'),
        ("CHANNELS 1 Xrotation", "CHANNELS 1 Xrot", 27, r'channel 1 of 1 is no channel, found "Xrot", did you mean'),
        ("CHANNELS 1 Xrotation", "CHANNELS x Xrotation", 27, 'followed by how many there are, found "x"'),
        ("CHANNELS 1 Xrotation", "CHANNELS 2 Xrotation Xrotation", 27, "has the channel Xrotation twice"),
        ("CHANNELS 1 Xrotation", "CHANNELS 1 Xrotation Yrotation", 27, "CHANNELS says 1, and then names more"),
        ("JOINT LeftFoot\n\t\t{", "JOINT LeftFoot\n\t\t{\n}", 24, 'joint "LeftFoot" has no OFFSET'),
        ("\n}\nMOTION", "\nMOTION", 2, r'joint "Hips" is not closed: a "}" is missing'),
        ("\n}\nMOTION", "\n}\n}\nMOTION", 35, r'"ROOT" or "MOTION" should follow here, found "}"'),
        ("\n}\nMOTION", "\n}\nROOT b\n{\nOFFSET 0 0 0\n}\nMOTION", 35, "a file has one root, found a second tree"),
        ("MOTION", "", 43, 'there is no line "MOTION"'),
        ("Frames: 5", "Frames: five", 36, 'Frames should be a whole number, found "five"'),
        ("Frames: 5", "", 37, '"Frames: 120" should follow here, found "Frame Time: 0.025"'),
        ("Frame Time: 0.025", "Frame Time: 0", 37, 'Frame Time should be seconds, found "0"; rate= overrides it'),
        ("Frame Time: 0.025", "Frame Time: nan", 37, 'Frame Time should be seconds, found "nan"'),
    ],
)
def test_messages_name_the_line_and_what_is_wrong(old, new, line, message):
    assert old in GOOD
    with pytest.raises(SceneError, match=message) as caught:
        parse_bvh(GOOD.replace(old, new), "walk.bvh")
    assert caught.value.line == line
    assert str(caught.value).startswith(f"walk.bvh:{line}: ")


@pytest.mark.parametrize(
    ("edit", "line", "message"),
    [
        (lambda row: row[:-1], 39, "the channels ask for 19 numbers a frame, found 18"),
        (lambda row: [*row, "1.0"], 39, "the channels ask for 19 numbers a frame, found 20"),
        (lambda row: ["nan", *row[1:]], 39, 'every frame is 19 numbers, found "nan"'),
        (lambda row: [*row[:-1], "1,5"], 39, 'every frame is 19 numbers, found "1,5"'),
        (lambda row: [*row[:-1], "1_5"], 39, 'every frame is 19 numbers, found "1_5"'),
        (lambda row: [*row[:-1], "1e20"], 39, 'every frame is 19 numbers, found "1e20"'),
    ],
)
def test_bad_frames(edit, line, message):
    lines = GOOD.split("\n")
    lines[38] = " ".join(edit(lines[38].split()))
    with pytest.raises(SceneError, match=message) as caught:
        parse_bvh("\n".join(lines))
    assert caught.value.line == line


def test_a_frame_that_is_cut_off_is_told_of_at_its_line():
    with pytest.raises(SceneError, match="ask for 19 numbers a frame, found 7") as caught:
        parse_bvh("\n".join([*GOOD.split("\n")[:41], " ".join(GOOD.split("\n")[41].split()[:7])]))
    assert caught.value.line == 42


def test_no_frames():
    with pytest.raises(SceneError, match="no frames follow"):
        parse_bvh(GOOD[: GOOD.index("0.025") + 5])
    with pytest.raises(SceneError, match="no joint has CHANNELS, so that nothing moves"):
        parse_bvh("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\n}\nMOTION\nFrames: 1\nFrame Time: 1\n0\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": "furlong"}, 'units: there is no unit "furlong"'),
        ({"units": "cms"}, r'there is no unit "cms", did you mean "cm"\?'),
        ({"units": -1.0}, "units: must be a name or a length in metres, found -1.0"),
        ({"units": True}, "units: must be a name or a length in metres, found True"),
        ({"up": "w"}, "up: must be"),
        ({"rate": 0.0}, "rate: must be frames a second, found 0.0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(SceneError, match=message):
        load_bvh(GOOD, **options)


def test_files_that_are_no_motions(tmp_path):
    cases = {
        "robot.urdf": (b"<robot/>", "root element|text of an unknown kind"),
        "empty.bvh": (b"", "the file is empty"),
        "binary.bvh": (b"HIERARCHY\x00\x01\x02", "binary file"),
        "packed.bvh": (b"\x1f\x8b\x08\x00", "it is compressed"),
    }
    for name, (content, message) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SceneError, match=message):
            load_motion(tmp_path / name)
    with pytest.raises(SceneError, match="there is no such file"):
        load_motion(tmp_path / "emty.bvh")
    with pytest.raises(SceneError, match="it is a directory"):
        load_motion(tmp_path)
    with pytest.raises(SceneError, match="load_motion takes the path of a file, found 3"):
        load_motion(3)
    with pytest.raises(SceneError, match=r"pass text to poise\.io\.load_bvh"):
        load_motion(GOOD)
    with pytest.raises(SceneError, match="binary file, found a zero byte"):
        load_bvh(tmp_path / "binary.bvh")
    (tmp_path / "a.bvh").write_text(GOOD)
    with pytest.raises(SceneError, match=r'BVH files take no option "unit", did you mean "units"\?'):
        load_motion(tmp_path / "a.bvh", unit="cm")


SPECK = (
    "HIERARCHY\nROOT hip\n{{\nOFFSET 0 0 0\nCHANNELS 2 Yposition Zrotation\nEnd Site\n{{\nOFFSET 0 {} 0\n}}\n}}\n"
    "MOTION\nFrames: 4\nFrame Time: 0.1\n{}"
)


@pytest.mark.parametrize("length", ["1e-308", "1e-12"])
def test_figures_that_are_no_person_in_any_unit(length: str, tmp_path) -> None:
    """The unit in which they are as high as people is longer than `units` may be."""
    (tmp_path / "speck.bvh").write_text(SPECK.format(length, "95 0\n96 10\n97 20\n98 30\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(SceneError, match=r"speck.bvh: it is of a figure .* give its unit as units="):
            load_motion(tmp_path / "speck.bvh")


def same_names(count: int) -> str:
    joints = "JOINT j {\nOFFSET 0 0 1\nCHANNELS 1 Xrotation\n}\n" * count
    head = "HIERARCHY\nROOT r {\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n"
    return f"{head}{joints}}}\nMOTION\nFrames: 1\nFrame Time: 1\n{'0 ' * (count + 1)}\n"


def test_joints_of_one_name_take_time_in_proportion():
    """Each has a name of its own; notes on the first ones say so, and how many others there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MotionWarning)
        clip = load_bvh(same_names(300))
        assert clip.skeleton.names[1:4] == ("j", "j.2", "j.3")
        assert len(set(clip.skeleton.names)) == 301
        assert "289 more joints have other names as well." in clip.notes
        start = time.process_time()
        assert len(load_bvh(same_names(20_000)).skeleton) == 20_001  # 1 MB
        assert time.process_time() - start < 5.0


def test_depth_is_no_matter():
    """Nesting that would break a reader by recursion."""
    depth = 5000
    joint = "JOINT j{}\n{{\nOFFSET 0 0 1\n"
    head = "HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n"
    text = head + "".join(joint.format(k) for k in range(depth)) + "}\n" * (depth + 1)
    clip = load_bvh(text + "MOTION\nFrames: 1\nFrame Time: 1\n0\n", units="m", up="z", drop_tpose=False)
    assert clip.world_positions(0)[-1].tolist() == [0.0, 0.0, depth]


def test_a_warning_is_no_error_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MotionWarning, match="override what is guessed"):
            load_bvh(GOOD)
