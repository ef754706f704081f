"""Recordings as USD: bodies as transforms in their tree, shapes as USD's own where it has them, the motion as samples.

Needs usd-core, which the extra `usd` brings. The stage is z up, in metres, as Poise is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise._version import __version__
from poise.io.recording_frames import checked_rate, floor_half, frames_of, local_poses, seen_shapes, shape_pose
from poise.io.tessellation import Surface, has_back, surface, tiles
from poise.model.shape_arrays import Solid

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.sim.recording import Recording

Floats = NDArray[np.float64]
_STILL = 1e-9
"""Bodies that move or rotate by less than this have no samples; m or 1."""
_FLOOR = ((0.86, 0.86, 0.85), (0.78, 0.79, 0.80))


def save_usd(
    recording: Recording, path: str | os.PathLike[str], *, fps: float | None = None, collision: bool = False
) -> None:
    """Write a recording as USD; `.usda` is text, `.usd` and `.usdc` are binary.

    Time codes are seconds times the stage's rate, which is `fps`, or 24 where all frames are kept. With `collision`
    shapes that are not seen are written beside those that are, for the purpose of guides.

    >>> import pathlib, poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_usd(scene.build(dt=0.01).run(0.2), f"{folder}/fall.usda")
    ...     "def Sphere" in pathlib.Path(folder, "fall.usda").read_text()
    True
    """
    chosen = frames_of(recording, fps)
    stage = _Stage(recording.model, 24.0 if fps is None else checked_rate(fps))
    stage.add_tree(recording.time[chosen] - recording.time[chosen[0]], recording.q[chosen], collision)
    stage.write(os.fspath(path))


class _Stage:
    """One stage in memory."""

    def __init__(self, model: Model, rate: float) -> None:
        self.pxr = pxr = _pxr()
        self.model, self.rate = model, rate
        self.stage = pxr.Usd.Stage.CreateInMemory()
        pxr.UsdGeom.SetStageUpAxis(self.stage, pxr.UsdGeom.Tokens.z)
        pxr.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.stage.SetTimeCodesPerSecond(rate)
        self.stage.SetFramesPerSecond(rate)
        self.stage.GetRootLayer().comment = f"Poise {__version__}"
        self._paths: set[str] = set()

    def add_tree(self, times: Floats, q: Floats, collision: bool) -> None:
        """Bodies with their samples, and shapes below them."""
        model = self.model
        positions, turns = local_poses(model, q)
        codes = (times * self.rate).tolist()
        self.stage.SetStartTimeCode(0.0)
        self.stage.SetEndTimeCode(codes[-1])
        top = self._define("Xform", "", model.name or "scene")
        self.stage.SetDefaultPrim(top.GetPrim())
        paths: list[str] = []
        for body, name in enumerate(model.body_names):
            parent = int(model.body_parent[body])
            above = paths[parent] if parent >= 0 else str(top.GetPath())
            short = name.rpartition("/")[2] if parent >= 0 else name
            node = self._define("Xform", above, short, name)
            paths.append(str(node.GetPath()))
            self._animate(node, codes, positions[:, body], turns[:, body])
        half = floor_half(model, positions)
        for shape in seen_shapes(model, collision):
            self._shape(paths[int(model.solids.body[shape])], shape, half)

    def write(self, path: str) -> None:
        """Write to a file, text or binary according to its suffix."""
        with Path(path).open("wb"):  # raises the same errors as other formats
            pass
        try:
            self.stage.GetRootLayer().Export(path)
        except self.pxr.Tf.ErrorException as error:
            raise OSError(" ".join(str(error).split())[:200]) from None

    def _define(self, kind: str, above: str, name: str, shown: str | None = None) -> Any:
        """A prim whose name USD can hold, and that no other has; the true one is kept to be shown."""
        plain = base = self.pxr.Tf.MakeValidIdentifier(name.encode("utf-8", "replace").decode() or "_")
        number = 2
        while f"{above}/{plain}" in self._paths:
            plain, number = f"{base}_{number}", number + 1
        path = f"{above}/{plain}"
        self._paths.add(path)
        node = getattr(self.pxr.UsdGeom, kind).Define(self.stage, path)
        true = (shown or name).encode("utf-8", "replace").decode()
        if true != plain:
            node.GetPrim().SetDisplayName(true)
        return node

    def _animate(self, node: Any, codes: list[float], position: Floats, turn: Floats) -> None:
        gf: Any = self.pxr.Gf
        place = node.AddTranslateOp(self.pxr.UsdGeom.XformOp.PrecisionDouble)
        orient = node.AddOrientOp(self.pxr.UsdGeom.XformOp.PrecisionDouble)
        makers: list[tuple[Any, Floats, Callable[[list[float]], Any]]] = [
            (place, position, lambda row: gf.Vec3d(*row)),
            (orient, turn, lambda row: gf.Quatd(row[0], *row[1:])),
        ]
        for operation, values, make in makers:
            if np.ptp(values, axis=0).max() <= _STILL:
                operation.Set(make(values[0].tolist()))
                continue
            for code, row in zip(codes, values.tolist(), strict=True):
                operation.Set(make(row), code)

    def _shape(self, above: str, shape: int, half: float) -> None:
        solids = self.model.solids
        kind = Solid(int(solids.kind[shape]))
        a, b, c = (float(part) for part in solids.size[shape])
        name, color = solids.names[shape].rpartition("/")[2] or "shape", solids.color[shape]
        stretch: tuple[float, float, float] | None = None
        if kind == Solid.PLANE:
            tint = color[:3] / max(float(color[:3].max()), 1e-3)
            for part, tone, label in zip(tiles(half, 1.0), _FLOOR, ("light", "dark"), strict=True):
                node = self._mesh(above, f"{name}_{label}", part)
                self._finish(node, shape, (*(tint * tone), 1.0), None)
            return
        if kind in (Solid.SPHERE, Solid.ELLIPSOID):
            node = self._define("Sphere", above, name)
            node.CreateRadiusAttr(a if kind == Solid.SPHERE else 1.0)
            stretch = (a, b, c) if kind == Solid.ELLIPSOID else None
        elif kind in (Solid.CAPSULE, Solid.CYLINDER):
            node = self._define(kind.name.capitalize(), above, name)
            node.CreateRadiusAttr(a)
            node.CreateHeightAttr(2.0 * b)
            node.CreateAxisAttr("Z")
        elif kind == Solid.BOX:
            node = self._define("Cube", above, name)
            node.CreateSizeAttr(2.0)
            stretch = (a, b, c)
        else:
            node = self._mesh(above, name, surface(solids, shape))
            node.CreateDoubleSidedAttr(has_back(solids, shape))
        self._finish(node, shape, tuple(color), stretch)

    def _mesh(self, above: str, name: str, part: Surface) -> Any:
        vt = self.pxr.Vt
        node = self._define("Mesh", above, name)
        node.CreatePointsAttr(vt.Vec3fArray.FromNumpy(part.vertices.astype(np.float32)))
        node.CreateNormalsAttr(vt.Vec3fArray.FromNumpy(part.normals.astype(np.float32)))
        node.CreateFaceVertexCountsAttr(vt.IntArray.FromNumpy(np.full(len(part.faces), 3, np.int32)))
        node.CreateFaceVertexIndicesAttr(vt.IntArray.FromNumpy(part.faces.reshape(-1).astype(np.int32)))
        node.CreateSubdivisionSchemeAttr("none")
        return node

    def _finish(self, node: Any, shape: int, color: tuple[float, ...], stretch: Any) -> None:
        """Place, size and colour of a shape, and the box about it."""
        gf, geom = self.pxr.Gf, self.pxr.UsdGeom
        position, turn = shape_pose(self.model, shape)
        node.AddTranslateOp(geom.XformOp.PrecisionDouble).Set(gf.Vec3d(*position.tolist()))
        w, *xyz = turn.tolist()
        node.AddOrientOp(geom.XformOp.PrecisionDouble).Set(gf.Quatd(w, *xyz))
        if stretch is not None:
            node.AddScaleOp(geom.XformOp.PrecisionDouble).Set(gf.Vec3d(*stretch))
        node.CreateDisplayColorAttr([gf.Vec3f(*(float(part) for part in color[:3]))])
        if color[3] <= 0.0:
            node.CreatePurposeAttr("guide")
        elif color[3] < 1.0:
            node.CreateDisplayOpacityAttr([float(color[3])])
        extent = geom.Boundable.ComputeExtentFromPlugins(node, self.pxr.Usd.TimeCode.Default())
        if extent is not None:
            node.CreateExtentAttr(extent)


def _pxr() -> Any:
    try:
        import pxr
        from pxr import Gf, Tf, Usd, UsdGeom, Vt  # noqa: F401
    except ImportError:
        raise ImportError("USD needs usd-core: pip install usd-core, or the extra poise[usd]") from None
    return pxr
