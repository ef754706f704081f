"""Inverse retargeting: from a character's motion back to a clip's skeleton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poise.motion.clip import Clip
from poise.motion.motion_checks import key_times, vectors
from poise.motion.retarget import Fit
from poise.motion.retarget_rig import IDENTITY
from poise.motion.rotations import quat_conjugate, quat_multiply

if TYPE_CHECKING:
    from poise.model.model import Model

Floats = NDArray[np.float64]


def returned(
    like: Clip,
    model: Model,
    times: Floats,
    turns: Floats,
    root: Floats,
    *,
    parts: Mapping[str, str] | None = None,
    scale: float | None = None,
    floor: float | None = 0.0,
    character: str | None = None,
) -> Clip:
    """A clip of the skeleton of `like` with the motion of a character that `retarget` drove by it.

    `turns` (frames, links, 4) are the world orientations of the character's links at `times` (s, 0 at the clip's first
    key), `root` (frames, 3) the positions of its root (m); `parts`, `scale` and `floor` are those of `retarget`. Joints
    without a counterpart in the character (fingers, toes, a second spine) rotate as in `like`.
    """
    fit = Fit(like, model, parts=parts, scale=scale, character=character)
    skeleton, target = like.skeleton, fit.target
    pose = like.sample(like.times[0] + key_times(times))
    local, moves = pose.quats_wxyz.copy(), pose.translations.copy()
    world = np.empty_like(local)
    links = {joint: target.parts[part] for part, joint in fit.pairs.items()}
    for joint, parent in enumerate(skeleton.parents.tolist()):
        above = world[:, parent] if parent >= 0 else np.broadcast_to(IDENTITY, world[:, 0].shape)
        if joint in links:
            link = links[joint]
            world[:, joint] = quat_multiply(turns[:, link], quat_conjugate(fit.offsets[link]))
            local[:, joint] = quat_multiply(quat_conjugate(above), world[:, joint])
        else:
            world[:, joint] = quat_multiply(above, local[:, joint])
    moves[:, 0] = 0.0
    places, _ = skeleton.place(local, moves)
    raised = np.zeros(root.shape)
    if floor is not None:
        raised[:, 2] = float(vectors("floor", floor, ())) + fit.rise(like.times[0] + key_times(times))
    wanted = fit.hips(root - raised, turns[:, target.root])
    moves[:, 0] = wanted - places[:, fit.source.hip_joints()].mean(axis=1)
    return like.keyed(times, local, moves[:, list(like.moved)], loop=False, stride=(0.0, 0.0, 0.0), notes=())
