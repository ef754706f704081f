"""Files of the kernel cache: damage, age, and what tells kernels apart."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from poise.kernel.cachefile import SealedFile, fingerprint, forget_oldest, prune
from poise.kernel.vec import Vec3


def _damages(whole: bytes) -> list[bytes]:
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x40
    return [b"", whole[:10], whole[:-1], bytes(flipped), b"garbage" * 50, whole + b"x"]


def test_no_kind_of_damage_is_read(tmp_path: Path) -> None:
    file = SealedFile(str(tmp_path), "kernel", "key")
    assert file.load("sign") is None
    file.save("sign", {"code": b"x" * 100})
    assert file.load("sign") == {"code": b"x" * 100}
    assert file.load("other") is None
    for path in list(tmp_path.iterdir()):
        for damage in _damages(path.read_bytes()):
            path.write_bytes(damage)
            assert file.load("sign") is None
            file.save("sign", {"code": b"y"})
            assert file.load("sign") == {"code": b"y"}
        path.unlink()
        path.mkdir()  # not even a file
        assert file.load("sign") is None
        path.rmdir()
        file.save("sign", {"code": b"x" * 100})
    assert SealedFile(str(tmp_path), "kernel", "another key").load("sign") is None


def test_old_folders_are_forgotten_but_nothing_else(tmp_path: Path) -> None:
    for k in range(8):
        folder = tmp_path / f"{k:024x}"
        folder.mkdir()
        (folder / "kernel.nbi").touch()
        os.utime(folder, (1000 + k, 1000 + k))
    (tmp_path / "holiday photos").mkdir()
    (tmp_path / f"{9:024x}").touch()
    current = tmp_path / f"{0:024x}"  # the oldest, and yet the one in use
    prune(tmp_path, current)
    kept = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert kept == {current.name, "holiday photos", *(f"{k:024x}" for k in (4, 5, 6, 7))}
    assert (tmp_path / f"{9:024x}").exists()
    assert (current / "kernel.nbi").exists()


def test_folders_used_lately_are_left_alone(tmp_path: Path) -> None:
    for k in range(8):
        (tmp_path / f"{k:024x}").mkdir()
    prune(tmp_path, tmp_path / "none")
    assert len(list(tmp_path.iterdir())) == 8


def _keep(folder: Path, name: str, used: float) -> None:
    """An entry of 300 bytes."""
    for path, size in ((folder / f"{name}.nbi", 100), (folder / f"{name}.1.nbc", 200)):
        path.write_bytes(b"x" * size)
        os.utime(path, (1000.0, 1000.0))
    os.utime(folder / f"{name}.nbi", (used, used))


def _kept(folder: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in folder.iterdir()}


def test_entries_longest_unused_are_forgotten(tmp_path: Path) -> None:
    names = [f"abm_run_f64_{k:012x}" for k in range(5)]
    for k, name in enumerate(names):
        _keep(tmp_path, name, used=5000.0 - k)
    (tmp_path / "notes.txt").write_bytes(b"x" * 10_000)
    (tmp_path / f"{names[4]}.nbi.tmp.0123").write_bytes(b"")  # left by a process that was killed
    os.utime(tmp_path / f"{names[4]}.nbi.tmp.0123", (1000.0, 1000.0))
    forget_oldest(tmp_path, most=1500)
    assert _kept(tmp_path) == {*names, "notes"}
    forget_oldest(tmp_path, most=1000)
    assert _kept(tmp_path) == {*names[:3], "notes"}
    forget_oldest(tmp_path, most=0)
    assert _kept(tmp_path) == {"notes"}


def test_entries_used_lately_are_left_alone(tmp_path: Path) -> None:
    _keep(tmp_path, "old_000000000000", used=1000.0)
    _keep(tmp_path, "new_000000000000", used=time.time() - 60.0)
    _keep(tmp_path, "fast_clock_000000000000", used=time.time() + 60.0)
    forget_oldest(tmp_path, most=0)
    assert _kept(tmp_path) == {"new_000000000000", "fast_clock_000000000000"}


def test_fingerprints_tell_closures_apart() -> None:
    def make(constant: Any) -> Any:
        def inner() -> Any:
            return constant

        return inner

    same = fingerprint(make(1.0))
    assert same == fingerprint(make(1.0))
    different = [fingerprint(make(x)) for x in (1, 2.0, True, "1.0", (1.0,), None, make(2.0), Vec3)]
    assert len({same, *different}) == 9
    assert fingerprint(make(object())) is None  # who knows what that is
    assert fingerprint(make([1.0])) is None


def test_fingerprints_tell_defaults_apart() -> None:
    def make(constant: Any) -> Any:
        def inner(x: Any = constant, *, y: Any = constant) -> Any:
            return x, y

        return inner

    assert fingerprint(make(1.0)) == fingerprint(make(1.0))
    assert fingerprint(make(1.0)) != fingerprint(make(2.0))
    assert fingerprint(make(object())) is None


def test_fingerprints_name_the_files_of_functions_and_classes() -> None:
    class Local:
        pass

    def inner() -> Any:
        return Vec3, float, prune

    helper: Any = prune

    def outer() -> Any:
        return inner, helper, Path

    homes: set[Path] = set()
    assert fingerprint(outer, homes) is not None
    assert {path.name for path in homes} == {"test_cachefile.py", "cachefile.py"}
    assert fingerprint((Vec3, float), homes) is not None
    assert {path.name for path in homes} == {"test_cachefile.py", "cachefile.py", "vec.py"}
    assert fingerprint(Local) is None  # two of them may share a name
