"""Foot strikes of a clip, which motion clean-up must not smooth.

The ground stops a foot within a frame, and rotates it by many degrees until its sole is flat. A spike differs: the
joint does not stop on its way down, or it is high above the ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from poise.motion.clip import Clip

Bools = NDArray[np.bool_]

#: minimum descent speed of a landing joint; m/s. Feet in a walk have about 0.5 m/s
_FAST = 0.5
#: share of that speed that may remain
_STOPPED = 0.25
#: window of speeds before and after; s
_AROUND = 0.05
#: greatest height of landings above the lowest point of a clip; of the height of the skeleton
_LOW = 0.1


def landings(clip: Clip) -> Bools:
    """(steps, joints) bool: joints that the ground stops in a step from one frame to the next.

    For a cyclic clip the steps of three consecutive cycles, as in motion clean-up.
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
