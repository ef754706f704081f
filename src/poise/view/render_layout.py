"""Memory layout of the picture kernels.

Everything is in metres in world axes. Positions are relative to the eye, so that float32 is accurate far from the
world's origin.
"""

from __future__ import annotations

from enum import IntEnum

from poise.kernel.memory import Count, Index, Int, Real, View
from poise.kernel.vec import Mat3, Vec3

SIDE = 4
"""Pixels along a side of a packet: its 16 pixels are the lanes."""
TILE = 4
"""Packets along a side of a tile, for which a list of shapes is made."""


class Tone(IntEnum):
    """Colours of a picture, in linear light."""

    SUN = 0
    ZENITH = 1
    HORIZON = 2
    AMBIENT = 3  # light from above, without the sun
    BOUNCE = 4  # light from below
    LIGHT = 5  # squares of the floor
    DARK = 6


class Measure(IntEnum):
    """Numbers of a picture."""

    SQUARE = 0  # side of a square of the floor; m
    FADE = 1  # distance at which the floor's colour is half that of the horizon; m
    SOFT = 2  # half the angle of the sun; rad
    SHINE = 3  # specular share of the sun's light
    HIDDEN = 4  # visibility of marks behind surfaces
    DIM = 5  # strength of ambient occlusion


FRAME = View(
    "Frame",
    constant=True,
    packets_x=Count,
    packets_y=Count,
    n_samples=Count,
    n_marks=Count,
    n_cone=Count,
    shadows=Count,
    axis=Vec3,  # direction of the first pixel, and increments per pixel to the right and down
    offset=Vec3,  # of each sample from the middle of a pixel, (x, y, unused); pixels
    sun=Vec3,  # direction towards it
    tone=Vec3,
    measure=Real,
    color=Vec3,  # of each shape, linear
    core=Vec3,  # of each shape: half a box which, grown by `round`, is about the shape
    round=Real,
    rectangle=Index,  # of each shape, four numbers: packets from x to x, from y to y
    mark_kind=Index,  # 0 capsule, 1 cone
    mark_position=Vec3,
    mark_rotation=Mat3,
    mark_size=Vec3,
    mark_color=Vec3,
    mark_rectangle=Index,
    cone_normal=Vec3,  # half spaces of a cone that fills the box from −1 to 1, its tip up
    cone_offset=Real,
)

IMAGE = View(
    "Image",
    pixel=Int,  # of each packet: red, green and blue, from the lowest byte on
    across=Real,  # (1) column and row of each pixel within its packet
    down=Real,
    edgy=Index,  # (1) whether a packet needs more samples
    listed=Index,  # shapes of a tile, then its marks
    stack=Index,
)
