"""Every reader of text and meshes under damaged files; run as a script it says what came of it as JSON.

It is a process of its own, with a limit of memory, that ends itself where one file takes too long: what hangs, crashes
or takes all memory is named by the file `now` in its folder.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import poise
from damaged_corpus import write_corpus
from damaged_files import damaged_bytes, peak
from damaged_text import damaged_text
from poise.batch.store import Store
from poise.batch.table import Table
from poise.io import load_deepmimic, load_motion
from poise.io.meshes import read_mesh
from poise.model.shapes import ConvexMesh

LONGEST_WALL = 120.0
"""Seconds after which a process that is stuck in one file ends itself."""
MOST_MEMORY = 2 << 30
"""Bytes that the process may ask for."""
HEADER = {"runs": 6, "scene": "ball.yaml", "files": {"ball.yaml": "0123456789abcdef"}, "set": {"radius": [0.1, 0.2]}}


@dataclass(frozen=True)
class Reader:
    """How one kind of file is read and used."""

    sources: tuple[str, ...]
    """Names of sound files."""
    read: Callable[[Path], object]
    """Reads a file and uses what is in it; raises SceneError or nothing."""
    lined: bool = True
    """Whether its errors have lines."""
    binary: bool = False


def finite(value: Any) -> None:
    """No NaN in any array of a dataclass."""
    for part in (getattr(value, one.name) for one in fields(value)):
        if isinstance(part, np.ndarray) and part.dtype.kind == "f":
            assert not np.isnan(part).any()


def use_scene(scene: poise.Scene) -> None:
    """What was read can be compiled, or says why not."""
    model = scene.compile()
    finite(model)
    assert np.isfinite(model.q_rest).all()
    assert np.isfinite(model.link_mass).all()


def use_clip(clip: Any) -> None:
    """A clip has finite poses."""
    assert np.isfinite(clip.times).all()
    assert np.isfinite(clip.world_positions()).all()
    assert len(clip.times) == len(clip.world_positions())


def use_mesh(path: Path) -> None:
    """A mesh has finite vertices and triangles that name them, and may be a shape."""
    mesh = read_mesh(path)
    assert np.isfinite(mesh.vertices).all()
    assert mesh.faces.min() >= 0
    assert mesh.faces.max() < len(mesh.vertices)
    if len(mesh.vertices) < 200:
        scene = poise.Scene(source=str(path))
        scene.add(ConvexMesh(vertices=mesh.vertices, mass=1.0), name="mesh")
        use_scene(scene)


def use_sweep(path: Path) -> None:
    """Results of a sweep are finite or say that they are not."""
    with Store(path.parent, HEADER) as store:
        assert all(0 <= run < HEADER["runs"] for run in store.results)


def use_table(table: Table) -> None:
    """A table has columns of one length."""
    assert {len(values) for values in table.columns.values()} <= {len(table)}
    assert sum(1 for _ in table.rows()) == len(table)


def character(path: Path) -> None:
    """A motion for a damaged character, which names the character's file."""
    use_clip(load_deepmimic(path.parent / "motion.txt", character=path))


READERS = {
    "bvh": Reader(("nod.bvh", "walk.bvh"), lambda path: use_clip(load_motion(path))),
    "deepmimic": Reader(("motion.txt",), lambda path: use_clip(load_motion(path))),
    "character": Reader(("figure.txt",), character),
    "urdf": Reader(("arm.urdf",), lambda path: use_scene(poise.load(path))),
    "mjcf": Reader(("arm.xml", "many.xml"), lambda path: use_scene(poise.load(path)), lined=False),
    "yaml": Reader(("ball.yaml", "figure.yaml"), lambda path: use_scene(poise.load(path))),
    "obj": Reader(("box.obj",), use_mesh, lined=False),
    "stl": Reader(("box.stl",), use_mesh, lined=False),
    "binary-stl": Reader(("packed.stl",), use_mesh, lined=False, binary=True),
    "runs": Reader(("runs.jsonl",), use_sweep, lined=False),
    "table": Reader(("table.csv",), lambda path: use_table(Table.load(path)), lined=False),
}
NAMES = {
    "runs": "runs.jsonl",
    "obj": "damaged.obj",
    "stl": "damaged.stl",
    "binary-stl": "damaged.stl",
    "table": "damaged.csv",
    "yaml": "damaged.yaml",
    "mjcf": "damaged.xml",
}
WHOLE = (
    "is empty",
    "of an unknown kind",
    "binary",
    "seems to be",
    "its root element",
    "it is ",
    "not a file",
    "cannot be",
)
"""Words of errors that are of a whole file, and of no line."""


def complaint(error: poise.SceneError, path: Path, lined: bool) -> str:
    """What is wrong with an error; empty where nothing is."""
    text = str(error)
    if path.name not in text:
        return "the file is not named"
    if len(text) > 500_000:
        return "the message is too long"
    if lined and error.line is None and not any(word in text for word in WHOLE):
        return "there is no line"
    return ""


def case(folder: Path, kind: str, seed: int) -> Path:
    """Write one damaged file."""
    reader, rng = READERS[kind], np.random.default_rng(seed)
    source = folder / reader.sources[int(rng.integers(0, len(reader.sources)))]
    place = folder / "runs" if kind == "runs" else folder
    place.mkdir(exist_ok=True)
    path = place / NAMES.get(kind, "damaged-file")
    content = source.read_bytes()
    path.write_bytes(damaged_bytes(content, rng) if reader.binary else damaged_text(content.decode(), rng))
    return path


def main(folder: Path, kind: str, first: int, count: int) -> dict[str, object]:
    """Read so many damaged files of a kind."""
    write_corpus(folder)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    reader = READERS[kind]
    for name in reader.sources:  # what is read for the first time imports, and takes longer
        path = folder / "sound" / NAMES.get(kind, "damaged-file")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((folder / name).read_bytes())
        for other in ("motion.txt", "box.obj", "box.stl", "part.xml", "part.yaml", "arm.urdf"):
            (path.parent / other).write_bytes((folder / other).read_bytes())
        reader.read(path)
    wrong: list[str] = []
    refused, slowest, worst, before = 0, 0.0, "", peak()
    for seed in range(first, first + count):
        label = f"{kind} {seed}"
        (folder / "now").write_text(label)
        path = case(folder, kind, seed)
        faulthandler.dump_traceback_later(LONGEST_WALL, exit=True)
        start = time.process_time()
        try:
            reader.read(path)
        except poise.SceneError as error:
            refused += 1
            if text := complaint(error, path, reader.lined):
                wrong.append(f"{label}: {text}: {str(error)[:300]}")
        except BaseException:
            wrong.append(f"{label}: {traceback.format_exc()[-700:]}")
        seconds = time.process_time() - start
        faulthandler.cancel_dump_traceback_later()
        if seconds > slowest:
            slowest, worst = seconds, label
    return {"wrong": wrong, "slowest": slowest, "worst": worst, "peak": peak(), "start": before, "refused": refused}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
