"""Rotates the ankles of a retargeted motion where one end of a foot would be below the floor.

Feet of clips bend at the toes, while those of a character may be rigid: when the heel rises, the toes would penetrate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.retarget_rig import Target, shape_points
from poise.motion.rotations import quat_exp, quat_multiply, rotate

Floats = NDArray[np.float64]

#: greatest rotation of a foot; rad
_MOST = 0.8
#: candidate angles, between which the height of a sole is nearly linear
_TRIED = 17


def turned_up(
    target: Target, q: Floats, turns: list[Floats], root: Floats, limits: bool
) -> tuple[Floats, list[Floats]]:
    """Coordinates (frames, nq) with ankles rotated as little as possible, such that no sole is below the floor.

    `turns` are the world orientations of all links, `root` the positions (frames, 3) of the root; m. The floor is at
    height 0. Soles stay below it if the ankle's range requires it. Also returns the world orientations of all links.
    """
    q, turns = np.array(q), list(turns)
    model, places = target.model, target.place(turns, root)[1]
    for side in "lr":
        link = target.parts.get(f"foot_{side}", -1)
        joint = target.joint[link] if link >= 0 else -1
        points = shape_points(model, link) if link >= 0 else []
        if joint < 0 or not points or model.joint_kinds[joint] not in ("hinge", "universal"):
            continue
        at, dof = int(model.joint_q_start[joint]), int(model.joint_v_start[joint])
        base = quat_multiply(turns[int(model.link_parent[link])], model.link_quat_wxyz[link])
        axis = rotate(base, target.axes(link)[0])
        sunk = np.flatnonzero(_lowest(points, places[link], turns[link]) < 0.0)
        if not len(sunk):
            continue
        low, high = model.dof_limits[dof] if limits else (-np.inf, np.inf)
        here = places[link][sunk], turns[link][sunk], axis[sunk]
        up, down = np.clip(high - q[sunk, at], 0.0, _MOST), np.clip(q[sunk, at] - low, 0.0, _MOST)
        angles = _least_turn(points, *here, up, down)
        q[sunk, at] += angles
        turns[link] = np.array(turns[link])
        turns[link][sunk] = quat_multiply(quat_exp(angles[:, None] * axis[sunk]), turns[link][sunk])
    return q, turns


def _least_turn(
    points: list[tuple[Floats, float]],
    place: Floats,
    turn: Floats,
    axis: Floats,
    up: Floats,
    down: Floats,
) -> Floats:
    """(frames,) the smallest angles about an axis that move the lowest point to the floor, or as near as possible."""
    best, reached = np.zeros(len(place)), np.full(len(place), -np.inf)
    for sign, most in ((1.0, up), (-1.0, down)):
        tried = np.linspace(0.0, 1.0, _TRIED)[:, None] * most
        heights = np.array(
            [_lowest(points, place, quat_multiply(quat_exp(sign * angle[:, None] * axis), turn)) for angle in tried]
        )
        for frame in range(len(place)):
            above = np.flatnonzero(heights[:, frame] >= 0.0)
            k = int(above[0]) if len(above) else int(np.argmax(heights[:, frame]))
            angle, height = tried[k, frame], heights[k, frame]
            if len(above) and k:
                before = heights[k - 1, frame]
                angle -= (tried[k, frame] - tried[k - 1, frame]) * height / (height - before)
                height = 0.0
            if height > reached[frame] + 1e-9 or (height > reached[frame] - 1e-9 and angle < abs(best[frame])):
                best[frame], reached[frame] = sign * angle, height
    return best


def _lowest(points: list[tuple[Floats, float]], place: Floats, turn: Floats) -> Floats:
    """(frames,) height of the lowest of some points with radii, in a link's frame; m."""
    return np.asarray(np.min([place[:, 2] + rotate(turn, point)[:, 2] - radius for point, radius in points], axis=0))
