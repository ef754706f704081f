"""Scene files and meshes made to exhaust their readers: one error that names file and line, without the work."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.io import load_deepmimic, load_motion, load_urdf
from poise.io.meshes import is_flat, read_mesh
from poise.io.scenes import nodes
from poise.io.scenes.nodes import plain_value, read_nodes
from poise.model.errors import MOST_PROBLEMS
from poise.model.hull import checked_vertices
from poise.sim import Recording
from python_calls import count_calls

BALL = "bodies:\n  - {name: ball, position: [0, 0, 1], shape: {kind: sphere, radius: 0.1, mass: 1}}\n"
DIGITS = "9" * 5000


def write(folder: Path, text: str | bytes, name: str = "x.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path, *words: str, line: int | None = None) -> poise.SceneError:
    with pytest.raises(poise.SceneError) as caught:
        poise.load(path)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert path.name in text
    assert line is None or caught.value.line == line, text
    assert len(text) < 10_000
    return caught.value


def doubled(first: str, more: str) -> str:
    return f"parameters:\n  a0: {first}\n" + "".join(f"  a{k}: {more.format(k - 1, k - 1)}\n" for k in range(1, 60))


@pytest.mark.parametrize(
    ("first", "more"),
    [("[1, 1]", "[$a{}, $a{}]"), ("{x: 1}", "{{x: $a{}, y: $a{}}}"), ("0123456789", "${{a{}}}${{a{}}}")],
)
@pytest.mark.parametrize("use", ["", "name: $a59\n", "gravity: $a59\n", "dt: ${2 * a59}\n"])
def test_parameters_that_double(tmp_path, first, more, use):
    error = refused(write(tmp_path, doubled(first, more) + use + BALL), "parameters stand for more than")
    assert 15 < error.line < 35


def test_parameters_may_be_used_many_times(tmp_path):
    """A list for each of a thousand bodies, a number for each of their fields."""
    many = "".join(f"  - {{name: b{k}, position: $p, mass_: 0}}\n" for k in range(10)).replace(
        ", mass_: 0", ", shape: $s"
    )
    text = f"parameters: {{p: [0, 0, 1], r: 0.1, s: {{kind: sphere, radius: $r, mass: 1}}}}\nbodies:\n{many}"
    assert poise.load(write(tmp_path, text)).body("b9").shapes[0].radius == 0.1


def test_repeated_parts_are_counted(tmp_path):
    text = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    for k in range(8):
        text += f"{chr(98 + k)}: &{chr(98 + k)} [{', '.join(['*' + chr(97 + k)] * 9)}]\n"
    refused(write(tmp_path, text + BALL), "repeated ones counted each time")


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipes_and_devices_are_not_read(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    refused(write(tmp_path, f"include: {name}\n{BALL}"), "include", "not a file on a disk", line=1)
    motion = f"characters:\n  - {{kind: humanoid, name: h, track: {{motion: {name}}}}}\n"
    refused(write(tmp_path, motion), "not a file on a disk", line=2)
    for ending, reader in ((".obj", read_mesh), (".npz", Recording.load), (".urdf", load_urdf)):
        link = tmp_path / f"link{ending}"
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        with pytest.raises(poise.SceneError, match="not a file on a disk"):
            reader(link)
    for reader in (poise.load, load_motion, load_deepmimic):
        with pytest.raises(poise.SceneError, match="not a file on a disk"):
            reader(tmp_path / name)


def test_a_chain_of_includes(tmp_path):
    for k in range(3000):
        write(tmp_path, f"include: c{k + 1}.yaml\n" if k < 2999 else BALL, f"c{k}.yaml")
    with pytest.raises(poise.SceneError, match=r"c99\.yaml:1: include: more than 100 files") as caught:
        poise.load(tmp_path / "c0.yaml")
    assert caught.value.line == 1
    assert len(poise.load(tmp_path / "c2950.yaml").bodies) == 1


def test_a_file_that_is_a_character_of_itself(tmp_path):
    text = "characters:\n  - {kind: file, name: h, file: x.yaml}\n"
    refused(write(tmp_path, text), "circle", line=2)


class Steps:
    """Counts how often a pattern is asked, and how long the texts are."""

    def __init__(self, pattern):
        self.pattern, self.letters = pattern, 0

    def fullmatch(self, text):
        self.letters += len(text)
        return self.pattern.fullmatch(text)


@pytest.mark.parametrize("word", ["1" * 100_000, "1 " * 50_000, "1." * 50_000, "1/" * 50_000, "1" * 50_000 + "x"])
def test_long_words_are_no_numbers(tmp_path, monkeypatch, word):
    """Patterns see no long word, so that their time cannot grow with its square."""
    patterns = [Steps(getattr(nodes, name)) for name in ("_WHOLE", "_NUMBER", "_FRACTION")]
    for name, pattern in zip(("_WHOLE", "_NUMBER", "_FRACTION"), patterns, strict=True):
        monkeypatch.setattr(nodes, name, pattern)
    assert plain_value(word) == (float("inf") if word.isdigit() else word)
    assert sum(pattern.letters for pattern in patterns) == 0
    refused(write(tmp_path, f"{BALL}dt: {word}\n"), "dt: must be a ", "number", line=3)


@pytest.mark.parametrize("field", ["dt", "every", "poise", "duration", "ground"])
def test_numbers_of_five_thousand_digits(tmp_path, field):
    value = {"ground": f"{{height: {DIGITS}}}"}.get(field, DIGITS)
    refused(write(tmp_path, f"{BALL}{field}: {value}\n"), field, line=3)


@pytest.mark.parametrize("sum_", [DIGITS, "1" + "+1" * 50_000, "-" * 50_000 + "1", "(" * 50_000 + "1", "9**9**9**9"])
def test_sums_without_end(tmp_path, sum_):
    refused(write(tmp_path, f"{BALL}dt: ${{{sum_}}}\n"), "cannot be computed", line=3)


@pytest.mark.parametrize("text", ["\ue000" * 200_000, "${" * 50_000, "$" * 100_001])
def test_signs_of_parameters_without_end(tmp_path, text):
    path = write(tmp_path, f'{BALL}name: "{text}"\n')
    if text.startswith("${"):
        refused(path, "lists within lists", line=3)
    else:
        assert poise.load(path).name == text.replace("$$", "$")


@pytest.mark.parametrize("text", ["name: " + "[" * 5000, "- " * 5000, "".join("  " * k + "a:\n" for k in range(500))])
def test_lists_in_lists(tmp_path, text):
    refused(write(tmp_path, text), "lists within lists")


def test_a_list_of_many_lists_on_one_line():
    text = "a: [" + ", ".join("[1, 2, 3]" for _ in range(500)) + "]"
    assert len(read_nodes(text).fields["a"].items) == 500


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_two_bytes_a_letter(tmp_path, encoding):
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    content = mark + BALL.replace("ball", "bäll").encode(encoding)
    for name in ("x.yaml", "scene"):
        assert [body.name for body in poise.load(write(tmp_path, content, name)).bodies] == ["bäll"]
    refused(write(tmp_path, content + b"\x00"), "UTF-16", line=3)


def test_one_error_lists_the_first_problems(tmp_path):
    text = "bodies:\n" + "".join(f"  - {{name: b{k}, shap: 1}}\n" for k in range(400))
    with pytest.raises(poise.SceneError) as caught:
        poise.load(write(tmp_path, text))
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert "only the first 100" in str(caught.value)


@pytest.mark.parametrize("size", [1e308, 1.7e308, 1e-300])
def test_points_whose_sum_is_beyond_the_largest_number(size):
    corners = size * np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float64)
    assert np.array_equal(checked_vertices(corners), corners)
    assert not is_flat(corners)
    assert is_flat(corners[:4])


def motors(count: int) -> str:
    """A scene of so many motors, each of which is to have a name of its own."""
    arm = "bodies:\n- {name: a, joint: hinge, shape: {kind: sphere, radius: 1}}\nmotors:\n"
    return arm + "".join(f"- {{joint: a, name: m{k}}}\n" for k in range(count))


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("bodies:\n" + "".join(f"- {{name: b{k}, fixed: true}}\n" for k in range(10_001)), "10000 bodies", 10_002),
        ("bodies:\n- name: b\n  joints:\n" + "  - {kind: hinge}\n" * 20_001, "20000 joints", 2),
        ("characters:\n" + "".join(f"- {{kind: humanoid, name: h{k}}}\n" for k in range(800)), "10000 bodies", 668),
    ],
)
def test_more_bodies_than_are_read(tmp_path, text, what, line):
    refused(write(tmp_path, text), f"more than {what}", line=line)


def test_bodies_take_time_in_proportion(tmp_path):
    calls = []
    for count in (20, 200, 400):  # the first one imports what is needed
        bodies = "".join(f"- {{name: b{k}, shape: {{kind: sphere, radius: 1}}}}\n" for k in range(count))
        file = write(tmp_path, "bodies:\n" + bodies, f"{count}.yaml")
        calls.append(count_calls(lambda file=file: poise.load(file)))
    assert calls[2] < 2.1 * calls[1]


def test_motors_take_time_in_proportion(tmp_path):
    calls = []
    for count in (20, 400, 800):  # the first one imports what is needed
        file = tmp_path / f"{count}.yaml"
        file.write_text(motors(count))
        calls.append(count_calls(lambda file=file: poise.load(file)))
    assert calls[2] < 2.1 * calls[1]
