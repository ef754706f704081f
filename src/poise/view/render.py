"""Pictures of a model: shapes, the floor, shadows and contacts, by ray casting on the CPU.

No graphics card and no window are needed. `picture` draws one; `Painter` reuses memory for many pictures of one model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.collision_layout import PLACES, SHAPES, shapes_block
from poise.collision.ray_casting.ray_layout import STACK, SURFACES, surfaces_block
from poise.collision.ray_casting.rays import places
from poise.dynamics.argument_checks import check_model
from poise.kernel.jit import entry
from poise.kernel.memory import F32, F32X16, Block
from poise.model.model import Model
from poise.model.shape_arrays import Solid, Solids
from poise.view.render_camera import Camera, box_corners, checked_vector, half_boxes
from poise.view.render_kernels import paint
from poise.view.render_layout import FRAME, IMAGE, SIDE, Measure, Tone
from poise.view.render_marks import Mark, arrow, cone_planes, dot, line, linear, mark_arrays, skeleton
from poise.view.skinned import SkinMeshes

__all__ = ["Camera", "Look", "Mark", "Painter", "arrow", "dot", "line", "picture", "skeleton"]

Floats = NDArray[np.float64]
Picture = NDArray[np.uint8]
Color = tuple[float, float, float]

_paint = entry(paint, SHAPES, SURFACES, PLACES, FRAME, IMAGE)
_WIDTHS = (F32, F32, F32, F32, F32X16)
LARGEST = 16384
"""Maximum side of a picture; pixels."""
_SAMPLES = np.array([(-0.125, -0.375), (0.375, -0.125), (0.125, 0.375), (-0.375, 0.125)])
"""Sample offsets from the middle of a pixel, no two in one row or column, which suits nearly horizontal edges."""


@dataclass(frozen=True)
class Look:
    """Light, floor and marks of a picture. Colours are sRGB, 0 to 1."""

    sun: tuple[float, float, float] = (0.25, -0.9, 1.2)
    """Direction towards the sun."""
    sunlight: Color = (1.0, 0.98, 0.94)
    brightness: float = 0.72
    """Sun light on a surface that faces it; sky light is added."""
    softness: float = 0.03
    """Half the angular diameter of the sun, which blurs shadows (the true one's is 0.0047); rad."""
    ambient: Color = (0.68, 0.70, 0.73)
    """Sky light from above, without the sun."""
    bounce: Color = (0.52, 0.51, 0.50)
    """Light from below."""
    zenith: Color = (0.62, 0.72, 0.83)
    """The sky overhead."""
    horizon: Color = (0.92, 0.93, 0.94)
    floor: tuple[Color, Color] = ((0.86, 0.86, 0.85), (0.78, 0.79, 0.80))
    """Light and dark squares of planes."""
    square: float | None = None
    """Side of a square; default: a power of ten that suits the distance; m."""
    shine: float = 0.12
    """Specular share of the sun's light."""
    dimming: float = 0.8
    """Strength of ambient occlusion, 0 to 1."""
    see_through: float = 0.35
    """Visibility of marks behind surfaces, 0 to 1."""
    contact: Color = (0.90, 0.30, 0.12)
    """Points and arrows of contacts."""
    arrow_length: float | None = None
    """Length of a contact's arrow; default: proportional to the distance of the camera; m."""


def picture(
    model: Model,
    q: ArrayLike,
    camera: Camera | None = None,
    size: tuple[int, int] = (640, 480),
    *,
    contacts: Sequence[Any] | None = None,
    marks: Sequence[Mark] = (),
    smooth: bool = True,
    shadows: bool = True,
    look: Look | None = None,
) -> Picture:
    """A picture (height, width, 3) of a model at a pose, `size` (width, height) pixels.

    The default camera has the whole model in view. `contacts` are drawn as points and arrows along their normals:
    objects with a `point` and a `normal`, as `poise.collision.detector.contacts` returns. `marks` are made by `dot`,
    `line`, `arrow` and `skeleton`. `smooth` uses four samples per pixel at edges.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 0.5))
    >>> model = scene.compile()
    >>> image = picture(model, model.q_rest, size=(160, 120))
    >>> image.shape, image.dtype
    ((120, 160, 3), dtype('uint8'))
    """
    painter = Painter(model, size, smooth=smooth, shadows=shadows, look=look)
    return painter.draw(q, camera, contacts=contacts, marks=marks)


class Painter:
    """Draws a model again and again.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.box(1, 1, 1), name="cube")
    >>> model = scene.compile()
    >>> painter = Painter(model, (64, 48))
    >>> frames = [painter.draw(model.q_rest) for _ in range(2)]
    >>> frames[0].shape
    (48, 64, 3)
    """

    def __init__(
        self,
        model: Model,
        size: tuple[int, int] = (640, 480),
        *,
        smooth: bool = True,
        shadows: bool = True,
        look: Look | None = None,
    ) -> None:
        check_model(model)
        self.model, self.size = model, _checked_size(size)
        self.look = _checked_look(look or Look())
        self._skins = SkinMeshes(model)
        n = len(self._solids)
        self._g = shapes_block(self._solids, F32, model.link_root)
        self._u = surfaces_block(self._solids, F32)
        self._x = PLACES.block(F32, position=n, rotation=n)
        width, height = self.size
        self._packets = (-(-width // SIDE), -(-height // SIDE))
        self._frame = self._new_frame(smooth, shadows)
        self._image = IMAGE.block(
            F32X16,
            pixel=self._packets[0] * self._packets[1],
            across=np.tile(np.arange(SIDE), SIDE)[None].astype(np.float32),
            down=np.repeat(np.arange(SIDE), SIDE)[None].astype(np.float32),
            edgy=1,
            listed=n,
            stack=STACK,
        )

    @property
    def _solids(self) -> Solids:
        """Shapes, followed by skins."""
        return self._skins.solids

    def _new_frame(self, smooth: bool, shadows: bool) -> dict[str, Any]:
        """Memory that pictures share."""
        solids, look = self._solids, self.look
        _, half = half_boxes(solids)
        half = np.where(np.isfinite(half), half, 0.0)
        roundness = half.min(axis=1)
        samples = _SAMPLES if smooth else np.zeros((1, 2))
        normals, offsets = cone_planes()
        sun = checked_vector("sun", look.sun)
        light = look.brightness * linear(look.sunlight)
        tones = {
            Tone.SUN: light,
            Tone.ZENITH: linear(look.zenith),
            Tone.HORIZON: linear(look.horizon),
            Tone.AMBIENT: linear(look.ambient),
            Tone.BOUNCE: linear(look.bounce),
            Tone.LIGHT: linear(look.floor[0]),
            Tone.DARK: linear(look.floor[1]),
        }
        color = linear(solids.color[:, :3])
        color[solids.kind == Solid.PLANE] = _floor_tint(solids.color[solids.kind == Solid.PLANE])
        return {
            "packets_x": self._packets[0],
            "packets_y": self._packets[1],
            "n_samples": len(samples),
            "n_cone": len(offsets),
            "shadows": int(shadows),
            "offset": np.pad(samples, ((0, 0), (0, 1))),
            "sun": (sun / np.linalg.norm(sun))[None],
            "tone": np.array([tones[tone] for tone in Tone]),
            "color": color,
            "core": half - roundness[:, None],
            "round": roundness,
            "cone_normal": normals,
            "cone_offset": offsets,
        }

    def draw(
        self,
        q: ArrayLike,
        camera: Camera | None = None,
        *,
        contacts: Sequence[Any] | None = None,
        marks: Sequence[Mark] = (),
    ) -> Picture:
        """A picture (height, width, 3) at a pose; see `picture`."""
        width, height = self.size
        if camera is None:
            camera = Camera.looking_at(self.model, q, aspect=width / height)
        position, rotation = places(self.model, q)
        bent = self._skins.bend(q, self._g, self._u)
        position, rotation = np.concatenate((position, bent[0])), np.concatenate((rotation, bent[1]))
        marks = [*marks, *self._contact_marks(contacts, camera)]
        self._place(position, rotation, camera)
        frame = self._frame_block(position, rotation, camera, marks)
        if len(self._image.listed) < len(self._solids) + len(marks):
            self._image = self._roomier(len(self._solids) + 2 * len(marks))
        blocks = (self._g, self._u, self._x, frame, self._image)
        _paint[_WIDTHS](*(block.handle for block in blocks))
        columns, rows = self._packets
        rgbx = self._image.pixel.view(np.uint8).reshape(rows, columns, SIDE, SIDE, 4)
        whole = rgbx.swapaxes(1, 2).reshape(rows * SIDE, columns * SIDE, 4)
        return np.ascontiguousarray(whole[:height, :width, :3])

    def _roomier(self, listed: int) -> Block:
        kept = {name: array for name, array in self._image.arrays.items() if name != "listed"}
        return IMAGE.block(F32X16, listed=listed, **kept)

    def _place(self, position: Floats, rotation: Floats, camera: Camera) -> None:
        """Shapes relative to the eye; the origins of planes move to nearby squares."""
        seen = position - camera.position
        for i in np.flatnonzero(self._solids.kind == Solid.PLANE):
            step = 2.0 * self._square(camera) * np.round(rotation[i, :, :2].T @ seen[i] / (2.0 * self._square(camera)))
            seen[i] -= rotation[i, :, :2] @ step
        if len(seen):
            self._x.position[...] = seen
            self._x.rotation[...] = rotation.reshape(-1, 9)

    def _square(self, camera: Camera) -> float:
        return self.look.square or 10.0 ** round(math.log10(camera.distance / 4.0))

    def _frame_block(self, position: Floats, rotation: Floats, camera: Camera, marks: Sequence[Mark]) -> Block:
        width, height = self.size
        right, up, forward = camera.axes()
        pixel = 2.0 * math.tan(0.5 * camera.field_of_view) / height
        corner = forward - right * pixel * 0.5 * (width - 1) + up * pixel * 0.5 * (height - 1)
        axes = np.stack((corner, right * pixel, -up * pixel))
        corners = box_corners(self._solids, position, rotation) - camera.position
        measures = {
            Measure.SQUARE: self._square(camera),
            Measure.FADE: 8.0 * camera.distance,
            Measure.SOFT: self.look.softness,
            Measure.SHINE: self.look.shine,
            Measure.HIDDEN: self.look.see_through,
            Measure.DIM: self.look.dimming,
        }
        drawn = mark_arrays(marks, np.asarray(camera.position))
        return FRAME.block(
            F32,
            **self._frame,
            **{name: array for name, array in drawn.items() if name != "corners"},
            n_marks=len(marks),
            axis=axes,
            measure=np.array([measures[name] for name in Measure]),
            rectangle=self._rectangles(corners, axes, rotation, position - camera.position).reshape(-1),
            mark_rectangle=_rectangles(drawn["corners"], axes, self._packets).reshape(-1),
        )

    def _rectangles(self, corners: Floats, axes: Floats, rotation: Floats, seen: Floats) -> NDArray[np.int32]:
        """Ranges of packets that shapes can cover; empty, and first −1, for shapes that are not drawn."""
        solids = self._solids
        out = _rectangles(corners, axes, self._packets)
        plane = solids.kind == Solid.PLANE
        above = -(rotation[:, :, 2] * seen).sum(axis=1) > 0.0
        hidden = (plane & ~above) | (solids.color[:, 3] <= 0.0) | self._about_the_eye(rotation, seen)
        out[plane] = (0, self._packets[0], 0, self._packets[1])
        out[hidden] = (-1, -1, -1, -1)
        return out

    def _about_the_eye(self, rotation: Floats, seen: Floats) -> NDArray[np.bool_]:
        """Convex shapes that can contain the eye; their inside is not drawn."""
        centre, half = half_boxes(self._solids)
        eye = np.einsum("nji,nj->ni", rotation, -seen) - centre
        solid = (self._solids.kind != Solid.FIELD) & (self._solids.kind != Solid.MESH)
        finite = np.isfinite(half).all(axis=1)
        return np.asarray(solid & finite & (np.abs(eye) <= half).all(axis=1))

    def _contact_marks(self, contacts: Sequence[Any] | None, camera: Camera) -> list[Mark]:
        found: list[Mark] = []
        length = self.look.arrow_length or 0.09 * camera.distance
        for contact in contacts or ():
            try:
                point, normal = contact.point, contact.normal
            except AttributeError:
                raise TypeError(f"a contact has a point and a normal, found {contact!r}") from None
            tip = checked_vector("point", point) + checked_vector("normal", normal) * length
            found += [dot(point, 0.09 * length, self.look.contact)]
            found += arrow(point, tip, 0.05 * length, self.look.contact)
        return found


def _rectangles(corners: Floats, axes: Floats, packets: tuple[int, int]) -> NDArray[np.int32]:
    """(n, 4) packets from x to x, from y to y that the boxes with (n, 8, 3) corners may touch, one pixel more about."""
    if not len(corners):
        return np.zeros((0, 4), np.int32)
    with np.errstate(all="ignore"):
        # corner = (a + b x + c y) · depth, for the pixel (x, y)
        a_b_c = np.linalg.solve(axes.T, corners.reshape(-1, 3).T).T.reshape(-1, 8, 3)
        depth = a_b_c[..., :1]
        pixels = a_b_c[..., 1:] / depth
    low = np.floor((pixels.min(axis=1) - 1.5) / SIDE)
    high = np.floor((pixels.max(axis=1) + 1.5) / SIDE) + 1
    everywhere = ~((depth > 1e-6).all(axis=(1, 2)) & np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1))
    behind = (depth < 0.0).all(axis=(1, 2))
    most = np.array(packets)
    low, high = np.clip(np.nan_to_num(low), 0, most), np.clip(np.nan_to_num(high), 0, most)
    low[everywhere], high[everywhere] = 0, most
    low[behind], high[behind] = 0, 0
    return np.stack((low[:, 0], high[:, 0], low[:, 1], high[:, 1]), axis=1).astype(np.int32)


def _floor_tint(colors: Floats) -> Floats:
    """Factors of the squares' colours: the hue of a plane's own colour, 1 for grey ones."""
    tint = linear(colors[:, :3])
    return np.asarray(tint / np.maximum(tint.max(axis=1, keepdims=True), 1e-3))


def _checked_size(size: Any) -> tuple[int, int]:
    try:
        width, height = (int(side) for side in size)
        whole = (width, height) == tuple(size)
    except (TypeError, ValueError):
        whole = False
    if not whole or not (1 <= width <= LARGEST and 1 <= height <= LARGEST):
        raise ValueError(f"size must be (width, height) in pixels, 1 to {LARGEST} each, found {size!r}")
    return width, height


def _checked_look(look: Look) -> Look:
    if not np.any(checked_vector("sun", look.sun)):
        raise ValueError("sun is (0, 0, 0): it must be a direction")
    for name in ("square", "arrow_length"):
        value = getattr(look, name)
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be a length above 0, found {value!r}")
    if not 0.0 <= look.softness < 1.0:
        raise ValueError(f"softness is an angle from 0 to 1 rad, found {look.softness!r}")
    return replace(look)
