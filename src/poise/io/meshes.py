"""Triangle meshes from STL (text and binary) and OBJ files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from poise.io.sealed import check_unsealed
from poise.model.errors import SceneError
from poise.model.regular_file import read_regular

Points = NDArray[np.float64]
Triangles = NDArray[np.int64]

#: formats that `read_mesh` knows, by the ending of the file's name
MESH_FORMATS = (".stl", ".obj")
#: bytes of a binary STL before its triangles, and of a triangle
_STL_HEAD, _STL_TRIANGLE = 84, 50
#: thickness over width below which points are taken to lie in a plane
_FLAT = 1e-9
#: a dent or bump of this part of the size does not count
_DENT = 1e-4


@dataclass
class Mesh:
    """Vertices and triangles as a file holds them."""

    vertices: Points
    """(n, 3) in the file's units."""
    faces: Triangles
    """(m, 3) indices of vertices, counter-clockwise from outside."""


def read_mesh(path: Path) -> Mesh:
    """Read an STL or OBJ file, chosen by its name. Raises SceneError with what is wrong with it."""
    check_unsealed(path)
    ending = path.suffix.lower()
    if ending not in MESH_FORMATS:
        raise SceneError(f'meshes are read from {" and ".join(MESH_FORMATS)} files, not "{ending}"', file=str(path))
    try:
        content = read_regular(path)
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise SceneError(f"cannot read the mesh: {what}", file=str(path)) from error
    mesh = _read_stl(content, str(path)) if ending == ".stl" else _read_obj(content, str(path))
    if not len(mesh.faces):
        raise SceneError("the mesh has no triangles", file=str(path))
    if not np.isfinite(mesh.vertices).all():
        raise SceneError("the mesh has coordinates that are not finite", file=str(path))
    return mesh


def is_flat(vertices: Points) -> bool:
    """Whether points lie in a plane, so that they bound no volume."""
    points = np.asarray(vertices, dtype=np.float64)
    if len(points) < 4:
        return True
    _, exponent = np.frexp(np.abs(points).max())
    points = np.ldexp(points, -int(exponent))  # sums of huge points stay finite
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(spread[2] <= _FLAT * max(spread[0], np.finfo(float).tiny))


def is_convex(vertices: Points, faces: Triangles) -> bool:
    """Whether all points lie on one side of every triangle, to a part in 10⁴ of the size.

    Memory grows with the number of points alone.
    """
    points = np.asarray(vertices, dtype=np.float64)
    slack = _DENT * float(np.linalg.norm(np.ptp(points, axis=0)))
    per_round = max(1, 1_000_000 // len(points))
    for start in range(0, len(faces), per_round):
        a, b, c = (points[faces[start : start + per_round, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0.0)
        height = normal @ points.T - np.sum(normal * a, axis=1)[:, None]
        if np.any((height.max(axis=1) > slack) & (height.min(axis=1) < -slack)):
            return False
    return True


def is_closed(faces: Triangles) -> bool:
    """Whether every edge joins two triangles of the same sense, so that they bound a volume."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    if (edges[:, 0] == edges[:, 1]).any():
        return False
    size = int(faces.max()) + 1
    ahead = np.sort(edges[:, 0].astype(np.int64) * size + edges[:, 1])
    back = np.sort(edges[:, 1].astype(np.int64) * size + edges[:, 0])
    return bool(np.all(np.diff(ahead) > 0) and np.array_equal(ahead, back))


def _weld(corners: Points) -> Mesh:
    """A mesh from the corners of its triangles, (3m, 3): equal corners become one vertex."""
    vertices, indices = np.unique(corners + 0.0, axis=0, return_inverse=True)
    return Mesh(vertices, np.asarray(indices).reshape(-1, 3).astype(np.int64))


def _read_stl(content: bytes, file: str) -> Mesh:
    """Binary by its length, as some binary files begin with the word "solid" too."""
    if len(content) >= _STL_HEAD:
        count = int.from_bytes(content[80:84], "little")
        if len(content) == _STL_HEAD + count * _STL_TRIANGLE:
            return _read_binary_stl(content, count)
    if content.lstrip()[:5].lower() == b"solid" and any(word in content.lower() for word in (b"vertex", b"endsolid")):
        return _read_text_stl(content, file)
    if len(content) < _STL_HEAD:
        raise SceneError(f"not an STL file: {len(content)} bytes, and no text that begins with solid", file=file)
    expected = _STL_HEAD + count * _STL_TRIANGLE
    if len(content) < expected:
        raise SceneError(
            f"STL file is cut off: {count} triangles take {expected} bytes, found {len(content)}", file=file
        )
    return _read_binary_stl(content, count)


def _read_binary_stl(content: bytes, count: int) -> Mesh:
    layout = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
    triangles = np.frombuffer(content, dtype=layout, count=count, offset=_STL_HEAD)
    return _weld(triangles["corners"].reshape(-1, 3).astype(np.float64))


def _read_text_stl(content: bytes, file: str) -> Mesh:
    corners: list[tuple[float, float, float]] = []
    for line, text in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        words = text.split()
        if words and words[0].lower() == "vertex":
            corners.append(_point(words, file, line))
    if len(corners) % 3:
        raise SceneError(f"STL file is cut off: {len(corners)} vertices do not make triangles", file=file)
    return _weld(np.array(corners).reshape(-1, 3))


def _read_obj(content: bytes, file: str) -> Mesh:
    vertices: list[tuple[float, float, float]] = []
    faces: list[tuple[int, int, int]] = []
    for line, text in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        words = text.split()
        if words and words[0] == "v":
            vertices.append(_point(words, file, line))
        elif words and words[0] == "f":
            corners = [_corner(word, len(vertices), file, line) for word in words[1:]]
            if len(corners) < 3:
                raise SceneError(f"a face needs 3 corners or more, found {len(corners)}", file=file, line=line)
            faces += [(corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1)]
    points = np.array(vertices, dtype=np.float64).reshape(-1, 3)
    if not faces:
        return Mesh(points, np.zeros((0, 3), dtype=np.int64))
    # normals and textures often split a vertex in two
    return _weld(points[np.array(faces, dtype=np.int64).reshape(-1)])


def _point(words: list[str], file: str, line: int) -> tuple[float, float, float]:
    try:
        x, y, z = (float(word) for word in words[1:4])
    except ValueError:
        raise SceneError(f'a vertex needs 3 numbers, found "{" ".join(words[1:])}"', file=file, line=line) from None
    return (x, y, z)


def _corner(word: str, count: int, file: str, line: int) -> int:
    """Index of a vertex from an entry such as 3, 3/1/2 or −1, which counts from the last one."""
    try:
        index = int(word.split("/")[0])
    except ValueError:
        raise SceneError(
            f'a corner of a face must be the number of a vertex, found "{word}"', file=file, line=line
        ) from None
    index = index - 1 if index > 0 else count + index
    if not 0 <= index < count:
        raise SceneError(f"corner {word} of a face: there are {count} vertices so far", file=file, line=line)
    return index
