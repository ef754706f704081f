"""Results on the disk: whole, of one sweep, written by one."""

import errno
import json
import os
from math import inf, nan

import pytest

import poise
from poise.batch.store import Store
from poise.batch.task import Result

HEADER = {"scene": "a.yaml", "runs": 5, "files": {"a.yaml": "1"}, "options": {"dt": None}, "versions": {"poise": "1"}}


def result(run, value=1.5):
    return Result(run, "ok", 0.1, {"m": value}, 'a "note" – é\nof two lines', 0.25)


def filled(folder, runs=3):
    with Store(folder, HEADER) as store:
        for run in range(runs):
            store.add(result(run, 0.1 + run), {"x": run})
    return folder / "runs.jsonl"


def test_what_was_kept_is_there_again(tmp_path):
    values = (0.1, inf, -inf, nan, 5e-324)
    with Store(tmp_path / "new" / "deep", HEADER) as store:
        for run, value in enumerate(values):
            store.add(result(run, value), {"x": run})
    with Store(tmp_path / "new" / "deep", HEADER) as store:
        assert repr([store.results[run].metrics["m"] for run in range(5)]) == repr(list(values))
        assert store.results[0] == result(0, 0.1)
    for line in store.path.read_text().splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_cut_off(tmp_path, cut):
    path = filled(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    with Store(tmp_path, HEADER) as store:
        assert sorted(store.results) == [0, 1]
        store.add(result(2, 2.1), {"x": 2})
    assert path.read_bytes() == content


def test_a_torn_header_is_written_again(tmp_path):
    path = filled(tmp_path, 0)
    content = path.read_bytes()
    for length in (0, 1, 10, len(content) - 1):
        path.write_bytes(content[:length])
        with Store(tmp_path, HEADER) as store:
            assert store.results == {}
        assert path.read_bytes() == content


def test_lines_of_two_sessions_are_in_one_file(tmp_path):
    path = filled(tmp_path)
    with Store(tmp_path, HEADER) as store:
        store.add(result(4), {"x": 4})
    assert len(path.read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runs": 6}, "runs: 5 there, 6 here"),
        ({"files": {"a.yaml": "2"}}, "file a.yaml has changed"),
        ({"files": {"a.yaml": "1", "walk.bvh": "7"}}, 'files: walk.bvh: nothing there, "7" here'),
        ({"options": {"dt": 0.1}}, "options: dt: nothing there, 0.1 here"),
        ({"versions": {"poise": "2"}}, 'versions: poise: "1" there, "2" here'),
    ],
)
def test_another_sweep_is_refused_with_what_differs(tmp_path, changes, said):
    path = filled(tmp_path)
    before = path.read_bytes()
    with pytest.raises(poise.SceneError) as error, Store(tmp_path, HEADER | changes):
        pass
    assert "it holds another sweep; take another folder, or remove it" in str(error.value)
    assert said in str(error.value)
    assert path.read_bytes() == before


def test_a_sweep_without_results_gives_way(tmp_path):
    """It was stopped before its first run, or had no cluster: there is nothing to lose."""
    filled(tmp_path, runs=0)
    path = filled(tmp_path / "same", runs=0)
    with Store(tmp_path, HEADER | {"runs": 7}) as store:
        store.add(result(6), {"x": 6})
    with Store(tmp_path, HEADER | {"runs": 7}) as store:
        assert sorted(store.results) == [6]
    with pytest.raises(poise.SceneError, match="it holds another sweep"), Store(tmp_path, HEADER):
        pass
    torn = path.read_bytes() + b'{"run": 0, "se'
    path.write_bytes(torn)
    with Store(tmp_path / "same", HEADER | {"runs": 7}) as store:
        assert not store.results
    assert path.read_bytes().count(b"\n") == 1
    assert json.loads(path.read_text())["runs"] == 7


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello", "it is not the file of a sweep"),
        (b"hello\n", "runs.jsonl:1: it is damaged"),
        (b"[1]\n", "runs.jsonl:1: it is damaged"),
        (b'{"a": 1}\n', "it is not the file of a sweep"),
        (b"\x00\xff\n", "runs.jsonl:1: it is damaged"),
    ],
)
def test_other_files_are_left_alone(tmp_path, content, said):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    with pytest.raises(poise.SceneError, match=said), Store(tmp_path, HEADER):
        pass
    assert path.read_bytes() == content


@pytest.mark.parametrize("line", [b"rubbish", b'{"run": 9}', b'{"run": 1, "status": "ok"}'])
def test_damage_in_the_middle_is_told_with_its_line(tmp_path, line):
    path = filled(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(poise.SceneError, match=r"runs\.jsonl:3: it is"), Store(tmp_path, HEADER):
        pass


def test_two_at_once_are_refused(tmp_path):
    with Store(tmp_path, HEADER), pytest.raises(poise.SceneError, match="another sweep is writing there"):
        Store(tmp_path, HEADER).__enter__()
    with Store(tmp_path, HEADER):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "taken").write_text("a file")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(poise.SceneError, match=r"taken.*: cannot be written: "):
            Store(folder, HEADER).__enter__()


def test_every_line_is_on_the_disk_before_the_next_run(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    with Store(tmp_path, HEADER) as store:
        before = len(synced)
        for run in range(3):
            store.add(result(run), {})
            assert len(synced) == before + run + 1
            assert synced[-1] == store.path.stat().st_size


def test_a_disk_that_is_full_is_told_and_the_rest_is_kept(tmp_path, monkeypatch):
    """What went onto the disk of the last line is torn: the next time it is cut off."""
    write = os.write

    def full(file, text):
        if len(text) < 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, text[:60])

    with Store(tmp_path, HEADER) as store:
        store.add(result(0), {})
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(poise.SceneError) as error:
            store.add(result(1), {})
    monkeypatch.undo()
    said = f"{store.path}: cannot be written: No space left on device; what is there is kept"
    assert str(error.value).startswith(said)
    with Store(tmp_path, HEADER) as store:
        assert sorted(store.results) == [0]


def test_a_disk_without_locks_is_not_another_sweep(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def none(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(poise.SceneError, match="cannot be written: No locks available"):
        Store(tmp_path, HEADER).__enter__()


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 200_000,
        b'{"run": 1e999, "status": "ok", "time": 0, "metrics": {}, "note": "", "wall": 0}',
        b'{"run": 1, "status": "ok", "time": 1' + b"0" * 400 + b', "metrics": {}, "note": "", "wall": 0}',
        b'{"run": 1' + b"0" * 5000 + b', "status": "ok", "time": 0, "metrics": {}, "note": "", "wall": 0}',
    ],
)
def test_lines_of_brackets_and_numbers_without_end_are_damage(tmp_path, line):
    path = filled(tmp_path)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(poise.SceneError, match=r"runs\.jsonl:5: it is"), Store(tmp_path, HEADER):
        pass


def test_a_line_that_the_disk_took_in_part_does_not_spoil_the_next(tmp_path, monkeypatch):
    with Store(tmp_path, HEADER) as store:
        store.add(result(0), {"x": 0})
        whole, write = store.path.read_bytes(), os.write

        def full(file, text):
            if len(text) < 20:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(file, text[:-10])

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(poise.SceneError, match="No space left"):
            store.add(result(1), {"x": 1})
        monkeypatch.undo()
        assert store.path.read_bytes() == whole
        store.add(result(1), {"x": 1})
    with Store(tmp_path, HEADER) as store:
        assert sorted(store.results) == [0, 1]
