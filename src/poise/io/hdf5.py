"""Recordings as HDF5, for runs that are long: arrays are written part by part, each with a sum that tells of damage.

The layout is that of the .npz files: time, q and v, groups of the other parts, and a header of JSON. Other programs
(h5py, MATLAB, h5dump) read it as it is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import SceneError
from poise.sim.recording_file import arrays_of

if TYPE_CHECKING:
    from poise.sim.recording import Recording

Array = NDArray[Any]

_PART = 1 << 20
"""Bytes that are written at a time, about."""
UNITS = {"time": "s"}
"""Of datasets, as attributes."""


def save_hdf5(
    recording: Recording, path: str | os.PathLike[str], *, compression: Literal["gzip", "lzf"] | None = None
) -> None:
    """Write a recording as HDF5, bit for bit. Needs h5py, which the extra `hdf5` brings.

    `compression` takes several times as long. It makes files of what stands still half as large, of what moves smaller
    by a tenth or two: few of its bits can be foreseen.

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
    with h5py.File(os.fspath(path), "w", libver="latest") as file:
        file.attrs["format"] = "poise-recording"
        for name, array in content.items():
            _write(file, key_of(name), array, compression)
            if name in UNITS:
                file[key_of(name)].attrs["unit"] = UNITS[name]


def _write(file: Any, key: str, array: Array, compression: str | None) -> None:
    """One array, in parts along its first axis, so that nothing is held twice."""
    if array.size == 0 or array.ndim == 0:
        file.create_dataset(key, data=array)
        return
    # parts of one size, so that the last is about as full as the others
    rows = -(-len(array) // min(len(array), -(-array.nbytes // _PART)))
    options: dict[str, Any] = {"compression": compression, "shuffle": True} if compression else {}
    data = file.create_dataset(
        key, array.shape, array.dtype, chunks=(rows, *array.shape[1:]), fletcher32=True, **options
    )
    for start in range(0, len(array), rows):
        data[start : start + rows] = array[start : start + rows]


def read_hdf5(path: Path, foreign: str) -> dict[str, Array]:
    """Arrays of a file by their names; `foreign` says what it is where it cannot be read."""
    h5py = h5py_module()
    content: dict[str, Array] = {}

    def take(key: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            if node.external or node.is_virtual:
                raise ValueError("it keeps data in other files")
            content[_name(key)] = np.asarray(node[()])

    try:
        with _opened(h5py, path) as file:
            file.visititems(take)
    except (OSError, KeyError, ValueError, RuntimeError, TypeError) as problem:
        text = " ".join(str(problem).split())
        raise SceneError(f"{foreign}, or one that was damaged ({text:.120}); save it again", file=str(path)) from None
    return content


def _opened(h5py: Any, path: Path) -> Any:
    """A file to read; also one whose writer still writes, or was killed."""
    try:
        return h5py.File(os.fspath(path), "r")
    except OSError:
        return h5py.File(os.fspath(path), "r", libver="latest", swmr=True)


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
