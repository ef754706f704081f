"""Recordings and states with random damage, read one after another; run as a script it tells what came of it as JSON.

It is a process of its own: a reader that hangs, crashes or takes all memory must not take the tests along.
"""

from __future__ import annotations

import io
import json
import resource
import sys
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import poise
from poise.sim import Recording
from poise.sim.recording_file import arrays_of

Content = dict[str, np.ndarray]
KINDS = (
    "npz bytes",
    "npz fields",
    "h5 bytes",
    "h5 fields",
    "stream bytes",
    "unclosed bytes",
    "state bytes",
    "state fields",
)


def scene() -> poise.Scene:
    """Two boxes and a motor: contacts, events, torques."""
    found = poise.Scene(name="damaged")
    found.add_ground()
    found.add(poise.box(0.2, 0.2, 0.2), name="a", position=(0, 0, 0.12))
    found.add(poise.box(0.2, 0.2, 0.2), name="b", position=(0.03, 0, 0.4))
    return found


def corpus(folder: Path) -> None:
    """Valid files to damage."""
    world = scene().build(dt=1 / 240)
    signals = {"height": lambda w: w.q[2:3]}
    world.run(0.3, signals=signals).save(folder / "whole.npz")
    world.recording.save(folder / "whole.h5")
    world.recording.save(folder / "packed.h5", compression="gzip")
    world.stream(0.3, folder / "stream.h5", signals=signals)
    content = bytearray((folder / "stream.h5").read_bytes())
    from poise.io.hdf5_file import checksum

    content[11] = 5  # as if its writer had been killed
    content[44:48] = checksum(bytes(content[:44])).to_bytes(4, "little")
    (folder / "unclosed.h5").write_bytes(content)
    world.state.save(folder / "state.npz", world.model)


def damaged_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut short, bits turned, pieces zeroed, copied elsewhere, taken out, or numbers made large."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        n = len(data)
        if n == 0:
            break
        at, long = int(rng.integers(0, n)), int(rng.integers(1, 64))
        if rng.random() < 0.4:  # where the metadata is
            at = int(rng.choice([rng.integers(0, min(n, 4096)), n - 1 - rng.integers(0, min(n, 4096))]))
        match int(rng.integers(0, 7)):
            case 0:
                del data[max(16, at) :]
            case 1:
                data[at] ^= 1 << int(rng.integers(0, 8))
            case 2:
                data[at : at + long] = bytes(len(data[at : at + long]))
            case 3:
                to = int(rng.integers(0, n))
                data[to : to + long] = data[at : at + long]
            case 4:
                del data[at : at + long]
            case 5:
                data[at : at + 8] = int(rng.choice([0xFF, 0x7FFFFFFF, 1 << 40, (1 << 63) - 1])).to_bytes(8, "little")
            case 6:
                data[at:at] = rng.bytes(long)
    return bytes(data)


def damaged_fields(content: Content, rng: np.random.Generator) -> Content:
    """Fields missing, exchanged, cut, of another kind or shape, with numbers that no recording has, or renamed."""
    found = dict(content)
    for _ in range(int(rng.integers(1, 3))):
        names = sorted(found)
        name, other = (names[int(k)] for k in rng.integers(0, len(names), 2))
        if rng.random() < 0.4 and "header" in found:
            name = "header"
        array = found[name]
        match int(rng.integers(0, 9)):
            case 0:
                del found[name]
            case 1:
                found[name], found[other] = found[other], array
            case 2:
                found[name] = array[: len(array) // 2] if array.ndim else array
            case 3:
                with np.errstate(invalid="ignore"):
                    found[name] = array.astype(rng.choice(["i1", "f4", "f8", "i8", "u2", "?"]))
            case 4 if array.size and array.ndim and array.dtype.kind in "if":
                changed = array.copy()
                worst = [np.nan, np.inf, -1e300] if array.dtype.kind == "f" else [-1, 10**6, np.iinfo(array.dtype).max]
                changed.reshape(-1)[int(rng.integers(0, array.size))] = rng.choice(worst).astype(array.dtype)
                found[name] = changed
            case 5:
                found[name] = array.reshape(-1)
            case 6:
                found[name + str(rng.choice(["x", "/", "/x"]))] = found.pop(name)
            case 7 if array.ndim:
                found[name] = np.repeat(array, 2, axis=0)
            case _:
                if name == "header" and array.dtype == np.uint8:
                    found[name] = np.frombuffer(_damaged_header(array.tobytes(), rng), np.uint8)
    return found


def _damaged_header(text: bytes, rng: np.random.Generator) -> bytes:
    """JSON with one value exchanged for another kind, or brackets without end."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        return b"[" * 100_000
    values = [None, 3, -1, 1e308, "x", [], {}, [[1, 2]], {"a": 1}, "NaN", 10**40]
    node, name = header, ""
    for _ in range(int(rng.integers(1, 4))):
        inner = node if isinstance(node, dict) and node else None
        if inner is None:
            break
        holder, name = inner, sorted(inner)[int(rng.integers(0, len(inner)))]
        node = inner[name]
    if isinstance(header, dict) and name:
        holder[name] = values[int(rng.integers(0, len(values)))]
    return b"[" * 100_000 if rng.random() < 0.03 else json.dumps(header).encode()


def as_npz(content: Content, rng: np.random.Generator) -> bytes:
    """Arrays as an archive."""
    stream = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.3 else np.savez)(stream, **content)
    return stream.getvalue()


def as_hdf5(content: Content, rng: np.random.Generator) -> bytes:
    """Arrays as HDF5, some of them declared larger than they are."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w", libver="latest") as file:
        for name, array in content.items():
            try:
                if array.ndim and array.size and rng.random() < 0.02:
                    long = int(rng.choice([len(array) + 1, 10**6, 10**9, 10**12]))
                    data = file.create_dataset(
                        name, (long, *array.shape[1:]), array.dtype, maxshape=(None, *array.shape[1:]), chunks=True
                    )
                    data[: len(array)] = array
                else:
                    file.create_dataset(name, data=array, compression="gzip" if array.ndim and array.size else None)
            except (ValueError, TypeError):  # a name that is taken
                continue
    return stream.getvalue()


def used(recording: Recording) -> None:
    """What was taken for whole must be usable."""
    for k in {0, len(recording) // 2, len(recording) - 1} if len(recording) else ():
        recording.frame(k)
    if recording.energy is not None:
        recording.curves("energy")
    repr(recording)


def same(found: Recording, whole: Recording) -> None:
    """Every number of a saved recording has a sum: one that was taken must have the bits that were saved."""
    used(found)
    mine, theirs = arrays_of(found), arrays_of(whole)
    assert mine.keys() == theirs.keys()
    assert all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


def same_state(found: poise.State, source: Path, model: object) -> None:
    """Likewise, where only bytes were damaged."""
    assert model is None or found.same_bits(poise.State.load(source, model))


def case(folder: Path, kind: str, seed: int, model: object) -> Callable[[], None]:
    """Write one damaged file; gives what reads it."""
    rng = np.random.default_rng(seed)
    base, how = kind.split()
    sources = {
        "npz": ["whole.npz"],
        "h5": ["whole.h5", "packed.h5"],
        "stream": ["stream.h5"],
        "unclosed": ["unclosed.h5"],
        "state": ["state.npz"],
    }
    source = folder / sources[base][int(rng.integers(0, len(sources[base])))]
    if how == "bytes":
        data = damaged_bytes(source.read_bytes(), rng)
    else:
        with np.load(folder / ("state.npz" if base == "state" else "whole.npz")) as archive:
            content = {name: archive[name] for name in archive.files}
        data = (as_hdf5 if base == "h5" else as_npz)(damaged_fields(content, rng), rng)
    file = folder / "damaged"
    file.write_bytes(data)
    if base == "state":
        return lambda: same_state(poise.State.load(file, model), source, model if how == "bytes" else None)
    if how == "bytes" and base in ("npz", "h5"):
        return lambda: same(Recording.load(file), Recording.load(source))
    return lambda: used(Recording.load(file))


def bombs(folder: Path) -> dict[str, Path]:
    """Small files that declare, or unpack to, far more than they hold."""
    import h5py

    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(folder / "shape.npz", "w") as archive:
        archive.writestr("q.npy", head.getvalue() + bytes(100))
    with (
        zipfile.ZipFile(folder / "deflate.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("q.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(head.getvalue())
        for _ in range(900):
            stream.write(bytes(1 << 20))
    content = bytearray((folder / "deflate.npz").read_bytes())
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (1 << 20).to_bytes(4, "little")
    (folder / "lying.npz").write_bytes(content)
    with h5py.File(folder / "shape.h5", "w") as file:
        file.create_dataset("q", (10**12,), "f8", chunks=(10**6,))
    with h5py.File(folder / "chunk.h5", "w") as file:
        file.create_dataset("q", (1,), "f8", maxshape=(None,), chunks=(10**8,), compression="gzip")
    with h5py.File(folder / "deflate.h5", "w", libver="latest") as file:
        data = file.create_dataset("q", (10**8,), "f8", chunks=(10**7,), compression="gzip")
        for k in range(10):
            data[k * 10**7 : (k + 1) * 10**7] = 0.0
    import zlib

    with h5py.File(folder / "inflated.h5", "w", libver="latest") as file:
        data = file.create_dataset("q", (8,), "f8", chunks=(8,), compression="gzip")
        packer = zlib.compressobj(9)
        packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(900)) + packer.flush()
        data.id.write_direct_chunk((0,), packed)
    with h5py.File(folder / "deep.h5", "w", libver="latest") as file:
        group = file
        for _ in range(2000):
            group = group.create_group("g")
    names = ["shape.npz", "deflate.npz", "lying.npz", "shape.h5", "chunk.h5", "deflate.h5", "inflated.h5", "deep.h5"]
    return {name: folder / name for name in names}


def peak() -> float:
    """MB that the process has had at most. `getrusage` counts those of its parent too, /proc does not."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main(folder: Path, first: int, count: int) -> dict[str, object]:
    """Read so many damaged files, and all bombs; 0 files are the bombs alone."""
    corpus(folder)
    world = scene().build(dt=1 / 240)
    wrong: list[str] = []
    answers = {kind: [0, 0] for kind in KINDS}
    slowest, worst = 0.0, ""
    jobs = [(f"{KINDS[k % len(KINDS)]}", k) for k in range(first, first + count)]
    made = bombs(folder) if not count else {}

    def tried(label: str, read: Callable[[], None], kind: str | None) -> None:
        nonlocal slowest, worst
        (folder / "now").write_text(label)
        start = time.perf_counter()
        try:
            read()
            taken = True
        except poise.SceneError:
            taken = False
        except BaseException:
            wrong.append(f"{label}: {traceback.format_exc()[-600:]}")
            return
        seconds = time.perf_counter() - start
        if seconds > slowest:
            slowest, worst = seconds, label
        if kind is None and taken:
            wrong.append(f"{label}: it was taken")
        elif kind is not None:
            answers[kind][taken] += 1

    for name, path in made.items():
        tried(name, lambda path=path: used(Recording.load(path)), None)
        if name.endswith(".npz"):
            tried(f"state {name}", lambda path=path: poise.State.load(path, world.model) and None, None)
    for kind, seed in jobs:
        tried(f"{kind} {seed}", case(folder, kind, seed, world.model), kind)
    return {"wrong": wrong, "slowest": slowest, "worst": worst, "peak": peak(), "answers": answers}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
