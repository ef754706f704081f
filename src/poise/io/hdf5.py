"""Recordings as HDF5, for long runs: arrays are written in chunks with checksums.

The layout is that of the .npz files: time, q and v, groups of the other parts, and a header of JSON. Other programs
(h5py, MATLAB, h5dump) read it as it is.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from poise.io.hdf5_file import Sink, being_written, opened, uninterrupted
from poise.model.array_file import allowance, least_size
from poise.model.errors import SceneError
from poise.sim.recording_file import arrays_of

if TYPE_CHECKING:
    from poise.sim.recording import Recording

Array = NDArray[Any]

_PART = 1 << 20
"""Bytes that are written at a time, about."""
_PAUSES = (0.0, 0.02, 0.05, 0.1)
"""Seconds to wait before each attempt to read a file that is being written."""
_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
_FILTERS, _PACKED = {_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF}, {_DEFLATE, _LZF}
"""Numbers by which HDF5 knows the filters that are read, and those of them that make data smaller."""
UNITS = {"time": "s"}
"""Of datasets, as attributes."""


def save_hdf5(
    recording: Recording, path: str | os.PathLike[str], *, compression: Literal["gzip", "lzf"] | None = None
) -> None:
    """Write a recording as HDF5, bit for bit. Requires h5py, which the extra `hdf5` installs.

    `compression` takes several times as long. It halves files of resting bodies, and makes those of moving bodies 10 to
    20 % smaller, because few of their bits are predictable.

    On a full disk it raises `OSError`, and the recording stays as it is.

    >>> import poise, tempfile
    >>> recording = poise.Scene().build(dt=0.25).run(1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_hdf5(recording, f"{folder}/still.h5")
    ...     len(poise.sim.Recording.load(f"{folder}/still.h5"))
    5
    """
    if compression not in (None, "gzip", "lzf"):
        raise SceneError(f'must be "gzip", "lzf" or None, found {compression!r}', field="compression")
    h5py = h5py_module()
    content = arrays_of(recording)
    sink = Sink(Path(path))
    try:
        with uninterrupted(), h5py.File(sink, "w", libver="latest") as file:
            file.attrs["format"] = "poise-recording"
            for name, array in content.items():
                if sink.error is None:
                    _write(file, sink, name, array, compression)
        # trailing zeros, where so much was packed that the file would be taken for one that declares too much
        size, least = sink.seek(0, os.SEEK_END), least_size(sum(array.nbytes for array in content.values()))
        if size < least:
            sink.truncate(least)
    finally:
        sink.close()
    if sink.error is not None:
        raise sink.error


def _write(file: Any, sink: Sink, name: str, array: Array, compression: str | None) -> None:
    """One array, in parts along its first axis, so that nothing is held twice; no more of it after an error."""
    key = key_of(name)
    if array.size == 0 or array.ndim == 0:
        file.create_dataset(key, data=array).attrs.update(_units(name))
        return
    # parts of one size, so that the last is about as full as the others
    rows = -(-len(array) // min(len(array), -(-array.nbytes // _PART)))
    options: dict[str, Any] = {"compression": compression, "shuffle": True} if compression else {}
    data = file.create_dataset(
        key, array.shape, array.dtype, chunks=(rows, *array.shape[1:]), fletcher32=True, **options
    )
    for start in range(0, len(array), rows):
        if sink.error is None:
            data[start : start + rows] = array[start : start + rows]
    data.attrs.update(_units(name))


def _units(name: str) -> dict[str, str]:
    return {"unit": UNITS[name]} if name in UNITS else {}


def read_hdf5(path: Path, foreign: str) -> dict[str, Array]:
    """Arrays of a file by their names; `foreign` says what it is where it cannot be read.

    A file that is being written is read again for a moment if its parts do not fit together yet.
    """
    h5py = h5py_module()
    text = ""
    for pause in _PAUSES:
        sleep(pause)
        try:
            with opened(h5py, path) as file:
                return _arrays(h5py, file, path)
        except Exception as problem:  # whatever a damaged file brings about in h5py
            text = " ".join(str(problem).split()) or type(problem).__name__
        if not being_written(path):
            break
    raise SceneError(f"{foreign}, or one that was damaged or cut short ({text:.200}); save it again", file=str(path))


def _arrays(h5py: Any, file: Any, path: Path) -> dict[str, Array]:
    """All datasets: those at the top, and those of groups. Nothing is read before all that is declared fits."""
    found: dict[str, Any] = {}
    for key, node in _nodes(h5py, file):
        if isinstance(node, h5py.Group):
            found |= {_name(f"{key}/{inner}"): data for inner, data in _nodes(h5py, node)}
        else:
            found[key] = node
    for name, data in found.items():
        _check_declared(h5py, name, data, path)
    unpacked = sum(data.size * data.dtype.itemsize for data in found.values())
    size = path.stat().st_size
    if unpacked > allowance(size):
        raise SceneError(f"its {size} bytes cannot hold the {unpacked} that it declares")
    return {name: _content(name, data) for name, data in found.items()}


def _nodes(h5py: Any, group: Any) -> Iterator[tuple[str, Any]]:
    """What is in a group itself; links to elsewhere lead out of the file, or around in circles."""
    for key in group:
        if not isinstance(group.get(key, getlink=True), h5py.HardLink):
            raise SceneError("a recording has no links to other places", field=key)
        yield key, group[key]


def _check_declared(h5py: Any, name: str, data: Any, path: Path) -> None:
    """Refuse a dataset that is not of the kind that Poise writes, or that the file cannot hold."""
    if not isinstance(data, h5py.Dataset) or data.shape is None or data.dtype.kind not in "biuf":
        raise SceneError("must be an array of numbers", field=name)
    if data.is_virtual or data.external:
        raise SceneError("its numbers are in another file", field=name)
    nbytes, stored = data.size * data.dtype.itemsize, data.id.get_storage_size()
    there = [] if data.chunks is None else _chunks(data)
    size = path.stat().st_size  # last: the file may be growing
    if stored > size:
        raise SceneError(f"{stored} bytes are declared, the file has {size}", field=name)
    if data.chunks is None:
        if stored != nbytes:
            raise SceneError(f"{nbytes} bytes are declared, {stored} are there", field=name)
        return
    known = _filters(data)
    if not known <= _FILTERS:
        raise SceneError("it is packed in a way that is not read", field=name)
    parts = math.prod(-(-n // of) for n, of in zip(data.shape, data.chunks, strict=True))
    if len(there) < parts:
        raise SceneError(f"{parts} chunks are declared, {len(there)} are there", field=name)
    if any(chunk.byte_offset + chunk.size > size for chunk in there):
        raise SceneError("its numbers are behind the end of the file", field=name)
    whole = math.prod(data.chunks) * data.dtype.itemsize
    if whole > allowance(size) or (not known & _PACKED and parts * whole > 2 * size):
        raise SceneError(f"its {parts} chunks are larger than the file", field=name)


def _chunks(data: Any) -> list[Any]:
    found: list[Any] = []
    data.id.chunk_iter(lambda chunk: found.append(chunk))
    return found


def _filters(data: Any) -> set[int]:
    made = data.id.get_create_plist()
    return {made.get_filter(k)[0] for k in range(made.get_nfilters())}


def _content(name: str, data: Any) -> Array:
    if data.chunks is not None and _DEFLATE in _filters(data):
        _check_inflated(name, data)
    return np.asarray(data[()])


def _check_inflated(name: str, data: Any) -> None:
    """Refuse chunks that inflate to more than a chunk: HDF5 itself goes on as long as there is memory."""
    whole = math.prod(data.chunks) * data.dtype.itemsize
    for chunk in _chunks(data):
        _, packed = data.id.read_direct_chunk(chunk.chunk_offset)
        if len(zlib.decompressobj().decompress(packed, whole + 1)) > whole:
            raise SceneError("a chunk holds more than it declares", field=name)


def key_of(name: str) -> str:
    """Where an array is kept: names may have any letters, those that HDF5 gives a meaning to are written as %2F."""
    group, slash, rest = name.partition("/")
    return f"{group}/{quote(rest, safe=' ').replace('.', '%2E') or '%'}" if slash else name


def _name(key: str) -> str:
    group, slash, rest = key.partition("/")
    return f"{group}/{unquote('' if rest == '%' else rest)}" if slash else key


def h5py_module() -> Any:
    """The package, or what to install."""
    try:
        import h5py
    except ImportError:
        raise ImportError("HDF5 needs h5py: pip install h5py, or the extra poise[hdf5]") from None
    return h5py
