"""Bends the arms of a motion where they would be below the floor, for example of a character that gets up.

Skeletons of clips may have no hands, or shorter arms than the character. Where such a skeleton leans on its wrists, the
character's hands would be a decimeter or more below the floor, and its elbows a few centimeters. Humans extend the
wrist and bend the elbow instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.control import goals
from poise.control.ik import search
from poise.control.ik_rows import GoalRows, checked_goals, held_model
from poise.dynamics.state_queries import bodies, difference
from poise.model.model import Model
from poise.motion.ground import smoothed
from poise.motion.retarget_rig import Target, shape_points

Floats = NDArray[np.float64]
Shapes = dict[int, tuple[Floats, Floats]]

ARM = ("upper_arm", "forearm", "hand")
LEAST = 1e-4
"""Arms that are below the floor by less than this stay there; m."""
CLEAR = 0.01
"""Parts that would be below the floor by this or more are lifted this far above it; m. Without the clearance, errors of
other joints would press an elbow on the floor, where friction holds it."""
STEPS = 50
"""Maximum number of iterations in a frame."""
CALM = 0.03
"""Window over which changes are smoothed before the last search; s."""


def arms_above(model: Model, times: Floats, q: Floats, floor: float, *, limits: bool = True) -> Floats:
    """Coordinates (frames, nq) with arms bent as little as possible, such that no point of them is below a floor (m).

    Parts that are far below end a centimeter above. Inverse kinematics finds the least displacement of each frame, with
    shoulders, elbows and wrists within their ranges. A hand that points down could bend either way: the search starts
    with it extended, the more the deeper it is (the angle of a wrist grows with flexion). The changes are smoothed over
    frames, and a second search starts from them. Trunk and legs do not change.
    """
    figure = Target(model)
    links = [figure.parts[name] for part in ARM for side in "lr" if (name := f"{part}_{side}") in figure.parts]
    shapes = {link: _points(model, link) for link in links if shape_points(model, link)}
    deep = {link: np.maximum(floor - low, 0.0) for link, low in _lowest(model, q, shapes).items()}
    below = np.flatnonzero(np.max([*deep.values(), np.zeros(len(q))], axis=0) > LEAST)
    if not len(below):
        return q
    bend = _Search(model, figure, shapes, {link: floor + np.minimum(d, CLEAR) for link, d in deep.items()}, limits)
    start = _bent_back(model, figure, q, shapes, deep)
    change = smoothed(times, difference(model, q, bend.found(q, start, below)), CALM)
    changed = np.flatnonzero(change.any(axis=1))
    start = np.array(q)
    for frame in changed:
        start[frame] = bend.rows.moved(q[frame], change[frame])
    return bend.found(q, start, changed)


class _Search:
    """Inverse kinematics of arms that must be above given heights, (frames,) for each link (m)."""

    def __init__(self, model: Model, figure: Target, shapes: Shapes, heights: dict[int, Floats], limits: bool) -> None:
        arms = {model.joint_names[figure.joint[link]] for link in shapes if figure.joint[link] >= 0}
        held = held_model(model, [name for name in model.joint_names if name not in arms])
        wishes = [
            goals.above(int(model.link_body[link]), radii, points=points) for link, (points, radii) in shapes.items()
        ]
        self.rows = GoalRows(held, checked_goals(held, wishes), limits)
        self.heights = [(heights[link], radii) for link, (_, radii) in shapes.items()]

    def found(self, q: Floats, start: Floats, frames: NDArray[np.intp]) -> Floats:
        """Coordinates (frames, nq) after a search in some frames, each from its start."""
        out = np.array(q)
        for frame in frames:
            for goal, (height, radii) in zip(self.rows.goals, self.heights, strict=True):
                goal.wanted[:] = height[frame] + radii
            out[frame] = search(self.rows, start[frame], LEAST, STEPS).q
        return out


def _points(model: Model, link: int) -> tuple[Floats, Floats]:
    """(k, 3) points of a link's shapes in its frame, and their radii (k,); m."""
    points, radii = zip(*shape_points(model, link), strict=True)
    return np.array(points), np.array(radii)


def _lowest(model: Model, q: Floats, shapes: Shapes) -> dict[int, Floats]:
    """Height of the lowest point of each link, (frames,); m."""
    lowest, seen = {}, bodies(model, q)
    for link, (points, radii) in shapes.items():
        body = int(model.link_body[link])
        heights = seen.position[:, body, 2:] + seen.rotation[:, body, 2] @ points.T - radii
        lowest[link] = heights.min(axis=1)
    return lowest


def _bent_back(model: Model, figure: Target, q: Floats, shapes: Shapes, deep: dict[int, Floats]) -> Floats:
    """Coordinates with wrists extended such that hands of this depth would be flat, with the wrists on the floor."""
    out = np.array(q)
    for link in (figure.parts.get(f"hand_{side}", -1) for side in "lr"):
        joint = figure.joint[link] if link in shapes else -1
        if joint < 0 or model.joint_kinds[joint] not in ("hinge", "universal"):
            continue
        length = max(float(np.linalg.norm(point)) + radius for point, radius in zip(*shapes[link], strict=True))
        at, least = int(model.joint_q_start[joint]), float(model.dof_limits[int(model.joint_v_start[joint]), 0])
        back = np.arcsin(np.minimum(deep[link] / length, 1.0))
        out[:, at] = np.maximum(q[:, at] - back, np.minimum(q[:, at], least))
    return out
