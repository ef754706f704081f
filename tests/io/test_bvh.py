"""Clips from BVH and back: channels in any order, odd text, guesses that are said aloud, round trips."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from bvh_reference import example, read_plainly
from poise.io import MotionWarning, load_bvh, load_motion, save_bvh
from poise.io.bvh import bvh_from_clip, clip_from_bvh, read_bvh
from poise.io.bvh_guess import UNITS, guess_unit
from poise.io.bvh_text import format_bvh, parse_bvh
from poise.io.parse_floats import as_number, read_numbers
from poise.motion import Clip, Skeleton
from poise.motion.euler import ORDERS, quat_from_euler
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply

TEXT = example(frames=12)
#: numbers are off by rounding, of lengths of some hundred units
ROUNDING = 1e-12


def as_it_stands(text: str) -> Clip:
    return read_bvh(text, None, units=1.0, up="z", drop_tpose=False)


def texts() -> dict[str, str]:
    """The example, and files of others where a folder of them lies beside the checkout."""
    found = sorted((Path(__file__).parents[3] / "shared" / "data" / "bvh").glob("*/*.bvh"))
    return {"example": TEXT} | {file.stem: file.read_bytes().decode() for file in found}


def angle_between(first, second) -> float:
    return float(np.abs(quat_log(quat_multiply(quat_conjugate(first), second))).max())


def test_positions_are_those_of_a_plain_reader():
    clip, plain = as_it_stands(TEXT), read_plainly(TEXT)
    assert clip.skeleton.names == ("Hips", "mixamorig:Spine 1", "Head", "LeftLeg", "LeftFoot")
    assert clip.moved == (0, 2)
    np.testing.assert_allclose(clip.world_positions(), plain.positions(), atol=ROUNDING)
    assert clip.times[-1] == pytest.approx(11 * 0.025)


def test_positions_replace_the_offset():
    clip = as_it_stands(TEXT)
    assert clip.root_positions[0].tolist() == parse_bvh(TEXT).frames[0, :3].tolist()
    assert abs(clip.translations[0, 1, 1] - 40.0) < 3.0


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_of_rotations(order):
    names = " ".join(f"{letter.upper()}rotation" for letter in order)
    text = TEXT.replace("Yrotation Xrotation Zrotation", names).replace("Zrotation Yrotation Xrotation", names)
    clip = as_it_stands(text)
    np.testing.assert_allclose(clip.world_positions(), read_plainly(text).positions(), atol=ROUNDING)
    np.testing.assert_allclose(
        bvh_from_clip(clip, 1.0, "z", clip.origin.channels).frames, parse_bvh(text).frames, atol=1e-9
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\t", "    "),
        lambda text: text.replace("\t", ""),
        lambda text: text.replace(" ", "  \t").replace("Spine  \t1", "Spine 1"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n\n  \n",
        lambda text: text.replace("\n{", " {"),
        lambda text: "\n \n" + text,
        lambda text: "\ufeff" + text,
        lambda text: text.replace("Frames: 12", "Frames:12").replace("Frame Time: ", "Frame Time:\t"),
        lambda text: text.replace("ROOT", "Root").replace("JOINT", "Joint").replace("rotation", "Rotation"),
        lambda text: text.replace("End Site", "End site"),
        lambda text: text.replace("MOTION", "\nMOTION  \n"),
        lambda text: "\n".join(
            line.replace(" ", "\n", 4) if line[:1] in "-0123456789" else line for line in text.split("\n")
        ),
    ],
)
def test_ways_to_write_the_same_file(change):
    clip, other = as_it_stands(TEXT), as_it_stands(change(TEXT))
    assert other.skeleton.names == clip.skeleton.names
    np.testing.assert_array_equal(other.quats_wxyz, clip.quats_wxyz)
    np.testing.assert_array_equal(other.translations, clip.translations)
    assert other.notes == clip.notes == ()


def test_numbers_with_exponents_and_without_zeros():
    text = TEXT.replace("OFFSET 9 -5 0", "OFFSET 9e0 -.5E+1 .0").replace("Frame Time: 0.025", "Frame Time: 2.5e-2")
    np.testing.assert_array_equal(as_it_stands(text).world_positions(), as_it_stands(TEXT).world_positions())


def test_numbers_are_rounded_as_python_rounds_them():
    rng = np.random.default_rng(4)
    values = rng.uniform(-1.0, 1.0, 5000) * 10.0 ** rng.integers(-9, 9, 5000)
    words = [f"{x:.{k % 17}f}" if k % 3 else repr(x) for k, x in enumerate(values.tolist())]
    words += [
        "-0",
        "+3",
        "5.",
        "-.5",
        "1" * 40,
        "0." + "0" * 30 + "7",
        "1e5",
        "x",
        "1..2",
        "--1",
        "1-",
        ".",
        "-",
        "0x1",
        "1_0",
    ]
    found, counts = read_numbers("\n".join(words))
    wanted = [as_number(word) for word in words]
    np.testing.assert_array_equal(found, [np.nan if value is None else value for value in wanted])
    assert np.array_equal(np.signbit(found[:5000]), np.signbit([float(word) for word in words[:5000]]))
    assert counts.tolist() == list(range(1, len(words) + 1))


@pytest.mark.parametrize(("said", "notes"), [("12", 0), ("3", 1), ("99999999999999999999", 1), ("0012", 0)])
def test_a_wrong_count_of_frames_is_mended_and_told(said, notes):
    clip = as_it_stands(TEXT.replace("Frames: 12", f"Frames: {said}"))
    assert clip.n_frames == 12
    assert len(clip.notes) == notes
    assert not notes or clip.notes[0] == f"the file says {said} frames and has 12."


def test_joints_of_one_name_are_told_apart():
    clip = as_it_stands(TEXT.replace("LeftLeg", "Head"))
    assert clip.skeleton.names[2:4] == ("Head", "Head.2")
    assert clip.notes == ('another joint "Head", on line 20, is now "Head.2".',)


def test_encodings(tmp_path):
    for number, encoding in enumerate(("utf-8", "utf-8-sig", "utf-16", "latin-1")):
        file = tmp_path / f"{number}.bvh"
        file.write_bytes(TEXT.replace("LeftLeg", "linkes_Knöchel").encode(encoding))
        clip = load_motion(file, units="cm", up="y", drop_tpose=False)
        assert clip.skeleton.names[3] == "linkes_Knöchel"
        assert clip.name == str(number)


def test_y_up_and_centimetres_become_z_up_and_metres():
    clip = load_bvh(TEXT, units="cm", up="y", drop_tpose=False)
    plain = read_plainly(TEXT).positions()
    np.testing.assert_allclose(clip.world_positions(), plain[..., [2, 0, 1]] * 0.01, atol=ROUNDING)
    sideways = load_bvh(TEXT, units=0.01, up="x", drop_tpose=False)
    np.testing.assert_allclose(sideways.world_positions(), plain[..., [1, 2, 0]] * 0.01, atol=ROUNDING)


def calm() -> str:
    """The example with small turns and its root at one height: a figure that stands upright on a level ground."""
    head, rows = TEXT.split("Frame Time: 0.025\n")
    numbers = np.array([[float(word) for word in row.split()] for row in rows.splitlines()])
    turns = [k for k in range(numbers.shape[1]) if k not in (0, 1, 2, 10, 12, 14)]
    numbers[:, turns] *= 0.1
    numbers[:, 1] = numbers[:, 1].mean()
    return head + "Frame Time: 0.025\n" + "\n".join(" ".join(f"{x:.5f}" for x in row) for row in numbers) + "\n"


def test_guesses_are_said_in_one_warning_and_in_notes():
    with pytest.warns(MotionWarning) as caught:
        clip = load_bvh(calm())
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert caught[0].filename == __file__
    assert clip.origin.meters == 0.01
    assert clip.origin.up == "y"
    told = " ".join(clip.notes)
    assert "y is taken to be up." in told
    # bones of 80 and 10.3 in the leg, 10, about 40 and 20 above the hips, which are 0.961 of a person's height
    assert "lengths are taken to be cm, as the bones are those of a figure 16" in told
    assert str(caught[0].message).endswith(told)


def test_what_is_given_is_not_guessed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clip = load_bvh(TEXT, units="m", up="z", drop_tpose=False)
    assert clip.notes == ()


@pytest.mark.parametrize(
    ("unit", "height"), [("m", 1.7), ("cm", 170), ("mm", 1700), ("cmu", 27), ("inch", 66), ("dm", 17)]
)
def test_units_are_told_by_height(unit, height):
    assert guess_unit(height) == (unit, UNITS[unit])


def test_a_unit_that_nobody_knows_makes_a_usual_figure():
    assert guess_unit(45.0) == ("", 1.7 / 45.0)
    assert guess_unit(0.0) == ("m", 1.0)


def test_z_up_is_seen():
    clip = load_bvh(calm(), units="cm", up="y", drop_tpose=False)
    text = format_bvh(bvh_from_clip(clip, 0.01, "z"))
    assert read_bvh(text, None).origin.up == "z"
    assert read_bvh(text, None).root_positions[3] == pytest.approx(clip.root_positions[3], abs=1e-7)


def tposed(first: str = "0") -> str:
    """The example with steady motion behind a first frame at rest."""
    rng = np.random.default_rng(0)
    rows = 20.0 + np.cumsum(rng.normal(0.0, 0.3, (30, 19)), axis=0)
    lines = [" ".join([first] * 19), *(" ".join(f"{x:.4f}" for x in row) for row in rows)]
    head = TEXT[: TEXT.index("Frames:")]
    return f"{head}Frames: 31\nFrame Time: 0.01\n" + "\n".join(lines) + "\n"


def test_a_leading_tpose_is_left_out_and_told():
    clip = read_bvh(tposed(), None)
    assert clip.n_frames == 30
    assert clip.origin.tpose
    assert any("T-pose and left out" in note for note in clip.notes)
    assert read_bvh(tposed(), None, drop_tpose=False).n_frames == 31
    assert read_bvh(tposed("20"), None).n_frames == 31
    assert read_bvh(TEXT, None, drop_tpose=True).n_frames == 11


def test_rate_overrides_the_frame_time():
    text = TEXT.replace("Frame Time: 0.025", "Frame Time: 0")
    assert read_bvh(text, None, 1.0, "z", False, rate=50.0).times[1] == 0.02


def test_round_trip_of_the_text_is_exact():
    bvh = parse_bvh(TEXT)
    again = parse_bvh(format_bvh(bvh))
    assert (again.joints, again.tips, again.frame_time) == (bvh.joints, bvh.tips, bvh.frame_time)
    np.testing.assert_array_equal(again.frames, bvh.frames)


def check_same_motion(clip: Clip, other: Clip, digits: int) -> None:
    """Two clips are the same but for the last digit of printed lengths (file units) and degrees."""
    printed = 0.51 * 10.0**-digits
    turned = angle_between(clip.quats_wxyz, other.quats_wxyz)
    moved = np.abs(other.translations - clip.translations).max()
    print(
        f"\nread back from {digits} digits: turned by {np.degrees(turned):.1e} degrees, moved by {moved:.1e} m at most"
    )
    assert other.skeleton.names == clip.skeleton.names
    assert turned < 3 * np.deg2rad(printed) + 1e-12
    assert moved < printed * clip.origin.meters + 1e-14
    np.testing.assert_allclose(other.times, clip.times, atol=1e-9 * clip.n_frames)


@pytest.mark.parametrize("up", ["x", "y", "z"])
@pytest.mark.parametrize("digits", [4, 9])
def test_round_trip_of_a_clip(tmp_path, up, digits):
    clip = load_bvh(TEXT, units="cm", up="y", drop_tpose=False)
    save_bvh(clip, tmp_path / "a.bvh", up=up, units="cm", digits=digits)
    check_same_motion(clip, load_bvh(tmp_path / "a.bvh", units="cm", up=up, drop_tpose=False), digits)


def test_channels_of_the_file_are_kept_until_they_do_not_do(tmp_path):
    clip = load_bvh(TEXT, units="cm", up="y", drop_tpose=False)
    save_bvh(clip, tmp_path / "a.bvh")
    assert [joint.channels for joint in parse_bvh((tmp_path / "a.bvh").read_text()).joints] == list(
        clip.origin.channels
    )
    quats = np.array(clip.quats_wxyz)
    quats[3, 4] = quat_exp((0.1, 0.2, 0.3))
    bent = clip.keyed(clip.times, quats, clip.translations)
    save_bvh(bent, tmp_path / "b.bvh", digits=9)
    again = load_bvh(tmp_path / "b.bvh", units="cm", up="y", drop_tpose=False)
    assert len(again.origin.channels[4]) == 3
    check_same_motion(bent, again, 9)


def test_a_clip_of_other_rest_orientations_is_written(tmp_path):
    rng = np.random.default_rng(1)
    skeleton = Skeleton(["a", "b", "c"], [-1, 0, 1], rng.normal(size=(3, 3)), rng.normal(size=(3, 4)), [(2, (0, 0, 1))])
    clip = Clip(skeleton, np.arange(6) / 60, rng.normal(size=(6, 3, 4)), rng.normal(size=(6, 3)))
    save_bvh(clip, tmp_path / "a.bvh", units="m", up="z", digits=12)
    again = load_bvh(tmp_path / "a.bvh", units="m", up="z", drop_tpose=False)
    np.testing.assert_allclose(again.world_positions(tips=True), clip.world_positions(tips=True), atol=1e-10)


def test_uneven_frames_and_bad_options_are_refused(tmp_path):
    clip = Clip(Skeleton(["a"], [-1], [(0, 0, 0)]), [0.0, 0.1, 0.3], np.tile((1.0, 0, 0, 0), (3, 1, 1)))
    with pytest.raises(poise.SceneError, match=r"evenly spaced, and these are not; use clip.resampled\(rate\)"):
        save_bvh(clip, tmp_path / "a.bvh")
    save_bvh(clip.resampled(10.0), tmp_path / "a.bvh")
    for options, message in (
        ({"up": "q"}, "up: must be"),
        ({"digits": -1}, "digits: must be"),
        ({"units": "ell"}, "unit"),
    ):
        with pytest.raises(poise.SceneError, match=message):
            save_bvh(clip, tmp_path / "b.bvh", **options)


@pytest.mark.parametrize("name", ["a{", "a\nb", " a", "}"])
def test_names_that_bvh_cannot_hold_are_refused(name, tmp_path):
    clip = Clip(Skeleton([name], [-1], [(0, 0, 0)]), [0.0], [[(1, 0, 0, 0)]])
    with pytest.raises(poise.SceneError, match="BVH holds no names with braces or line ends"):
        save_bvh(clip, tmp_path / "a.bvh")
    assert not (tmp_path / "a.bvh").exists()


def test_gimbal_lock_is_written_right(tmp_path):
    """At ±90° of the middle angle the two others are one turn; what is written must still be the same rotation."""
    angles = np.deg2rad([[30.0, 90.0, 20.0], [30.0, -90.0, 20.0], [10.0, 89.9999999, 5.0]])
    clip = Clip(Skeleton(["a"], [-1], [(0, 0, 0)]), [0.0, 0.1, 0.2], quat_from_euler("zxy", angles)[:, None])
    save_bvh(clip, tmp_path / "a.bvh", units="m", up="z", digits=12)
    again = load_bvh(tmp_path / "a.bvh", units="m", up="z", drop_tpose=False)
    # the middle angle is a half-turn's arc tangent, and 12 digits of degrees are printed
    assert angle_between(clip.quats_wxyz, again.quats_wxyz) < 1e-13


@pytest.mark.parametrize("text", texts().values(), ids=texts())
def test_files_of_others_come_back(text, tmp_path):
    bvh = parse_bvh(text)
    again = parse_bvh(format_bvh(bvh))
    assert (again.joints, again.tips, again.frame_time) == (bvh.joints, bvh.tips, bvh.frame_time)
    np.testing.assert_array_equal(again.frames, bvh.frames)
    clip = clip_from_bvh(bvh, 0.01, "y", drop_tpose=False)
    save_bvh(clip, tmp_path / "a.bvh")
    loaded = load_bvh(tmp_path / "a.bvh", units=0.01, up="y", drop_tpose=False)
    check_same_motion(clip, loaded, 6)
    # the numbers are those of the file, but for full turns; beyond 90° of the middle angle there are two sets of them
    small = np.abs(bvh.frames[:, 3:]).max(axis=1) <= 90.0
    turns = (parse_bvh((tmp_path / "a.bvh").read_text()).frames - bvh.frames)[small] / 360.0
    off = np.abs((turns - np.round(turns)) * 360.0).max(initial=0.0)
    print(f"{bvh.frames.shape[0]} frames: the text comes back exactly, numbers of a clip by {off:.1e} at most")
    assert off < 1e-6


@pytest.mark.parametrize("text", texts().values(), ids=texts())
def test_positions_of_files_of_others_are_those_of_a_plain_reader(text):
    plain = read_plainly(text).positions()
    np.testing.assert_allclose(as_it_stands(text).world_positions(), plain, atol=1e-14 * np.abs(plain).max() * 20)
