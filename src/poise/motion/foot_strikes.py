"""Feet that come down in a clip: what is sharp there is real.

The ground stops a foot within a frame, and turns it by many degrees until its sole is flat. A jerk is otherwise:
nothing stops the joint on its way down, or it is high above the ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from poise.motion.clip import Clip

Bools = NDArray[np.bool_]

#: how fast a joint comes down that lands, at least; m/s. Feet of walkers have some 0.5 m/s when they do
_FAST = 0.5
#: of that speed, which may be left
_STOPPED = 0.25
#: over which speeds before and after are taken; s
_AROUND = 0.05
#: how far above the lowest point of a clip joints land, at most; of the height of the figure
_LOW = 0.1


def landings(clip: Clip) -> Bools:
    """Which joints (steps, joints) are stopped by the ground in a step from one frame to the next.

    Of a loop the steps of three rounds in a row, as they are mended.
    """
    heights, times = clip.world_positions()[..., 2], clip.times
    if clip.loop:
        rise = heights[-1] - heights[0]
        heights = np.concatenate([heights[:-1] + k * rise for k in (-1, 0, 1)])
        times = np.concatenate([times[:-1] + k * clip.duration for k in (-1, 0, 1)])
    size = clip.skeleton.height
    low = heights < heights.min() + _LOW * size
    landed = np.zeros(heights.shape, np.bool_)
    for joint in np.flatnonzero(low.any(axis=0)):
        before, after = (np.interp(times + side * _AROUND, times, heights[:, joint]) for side in (-1, 1))
        down, left = (before - heights[:, joint]) / _AROUND, (heights[:, joint] - after) / _AROUND
        landed[:, joint] = low[:, joint] & (down > _FAST) & (left < _STOPPED * down)
    return np.asarray(landed[:-1] | landed[1:])
