"""Legs of a retargeted motion are bent where their soles would be below the floor.

A foot that stands flat in a clip may be beyond the range of a character's ankle, as that of the rear leg of a lunge:
its toes would be centimetres below the floor. People raise the heel then, and bend hip and knee.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.figures import UP, Target, shape_points
from poise.motion.ground import sinks, smoothed
from poise.motion.posed import Source
from poise.motion.rotations import cross, quat_conjugate, quat_exp, quat_multiply, rotate, unit

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: soles that are below the floor by less than this are left there; m
_LEAST = 1e-4
#: turning a joint by 1 rad counts as much as soles that are this share of the leg below the floor; that a foot moves
#: along the floor counts this share of as much below it
_TURN, _SLIDE = 0.03, 0.1
#: hip, knee and ankle are turned by no more than this; rad
_MOST = 0.6
#: cosine of the angle between the axes of knee and ankle above which they turn in one plane
_PARALLEL = 0.9
_ROUNDS = 12
#: turns are smoothed over this; s
_CALM = 0.015


def bent(
    source: Source, target: Target, q: Floats, turns: list[Floats], root: Floats, limits: bool
) -> tuple[Floats, list[Floats]]:
    """Coordinates (frames, nq) with legs bent by as little as it takes for no sole to be below the floor, at height 0.

    `turns` are the world orientations of all links, `root` the positions (frames, 3) of the root; m. Hip, knee and
    ankle turn about the knee's axis, so that the leg stays in its plane. Legs that are all but straight stay below the
    floor: a little less length would be much bending. So do feet that the clip itself has there. The world orientations
    of all links come back, too.
    """
    q, turns = np.array(q), list(turns)
    model, places = target.model, target.place(turns, root)[1]
    times, floors = source.clip.times, sinks(source)
    for side in floors:
        links = [target.parts.get(f"{part}_{side}", -1) for part in ("thigh", "shank", "foot")]
        points = shape_points(model, links[2]) if _is_leg(target, links) else []
        if not points:
            continue
        thigh, shank, foot = links
        sole = np.array([places[foot] + rotate(turns[foot], point) for point, _ in points])
        sole[..., 2] -= np.array([radius for _, radius in points])[:, None] + floors[side] * target.leg_length()
        sunk = np.flatnonzero(sole[..., 2].min(axis=0) < -_LEAST)
        if not len(sunk):
            continue
        knee, ankle = target.axes(shank)[0], rotate(model.link_quat_wxyz[foot], target.axes(foot)[0])
        sense = float(np.sign(knee @ ankle)) if abs(knee @ ankle) > _PARALLEL else 0.0
        axis = rotate(turns[shank], knee)
        room = _room(target, q, links, sense, limits)
        # a knee that is stretched may raise the toes, too: it only bends, or motions would jump between the two
        room[1, 0 if target.bend_axis(f"shank_{side}") @ knee > 0.0 else 1] = 0.0
        angles = np.zeros((3, len(times)))
        joints = [places[link][sunk] for link in links]
        angles[:, sunk] = _angles(joints, sole[:, sunk], axis[sunk], room[..., sunk])
        angles = np.clip(smoothed(times, angles.T, _CALM).T, room[:, 0], room[:, 1])
        for link, angle in zip(links, np.cumsum(angles, axis=0), strict=True):
            turns[link] = quat_multiply(quat_exp(angle[:, None] * axis), turns[link])
        hip, bend, tilt = (int(model.joint_q_start[target.joint[link]]) for link in links)
        above = quat_multiply(turns[int(model.link_parent[thigh])], model.link_quat_wxyz[thigh])
        q[:, hip : hip + 4] = quat_multiply(quat_conjugate(above), turns[thigh])
        q[:, bend] += angles[1]
        q[:, tilt] += angles[2] * sense
    return q, turns


def _is_leg(target: Target, links: list[int]) -> bool:
    """Whether a foot hangs on a shank, that by a hinge on a thigh, and that on a ball."""
    parents = [int(target.model.link_parent[link]) for link in links]
    if min(links) < 0 or parents[1:] != links[:2] or parents[0] < 0:
        return False
    kinds = [target.model.joint_kinds[target.joint[link]] for link in links]
    return kinds[:2] == ["ball", "hinge"] and kinds[2] in ("hinge", "universal")


def _room(target: Target, q: Floats, links: list[int], sense: float, limits: bool) -> Floats:
    """(3, 2, frames) how far hip, knee and ankle may turn either way; the ankle's axis may point the other way."""
    room = np.full((3, 2, len(q)), ((-_MOST,), (_MOST,)))
    for k, sign in ((1, 1.0), (2, sense)):
        joint = target.joint[links[k]]
        ends = target.model.dof_limits[int(target.model.joint_v_start[joint])]
        if limits:
            left = ends[:, None] - q[:, int(target.model.joint_q_start[joint])]
            room[k] = np.clip(np.sort(left * sign, axis=0), np.minimum(room[k], 0.0), np.maximum(room[k], 0.0))
        room[k] *= abs(sign)
    return room


def _angles(joints: list[Floats], sole: Floats, axis: Floats, room: Floats) -> Floats:
    """(3, frames) turns of hip, knee and ankle about an axis that bring the points of a sole up to the floor.

    In the plane across the axis, which complex numbers stand for, by the Levenberg-Marquardt method: the least sum of
    squares of how far points are below the floor, or the lowest one is above it, of how far the foot moves along the
    floor, and of the turns.
    """
    ahead = unit(cross(np.broadcast_to(UP, axis.shape), axis))
    up = cross(axis, ahead)
    steep = up[:, 2]

    def flat(vectors: Floats) -> Complex:
        return np.asarray(np.sum(vectors * ahead, axis=-1) + 1j * np.sum(vectors * up, axis=-1))

    thigh, shank = flat(joints[1] - joints[0]), flat(joints[2] - joints[1])
    foot = flat(sole - joints[2])
    rest = sole[..., 2] - steep * (thigh + shank + foot).imag
    leg, start = abs(thigh) + abs(shank), (thigh + shank + foot.mean(axis=0)).real
    angles = np.zeros((3, len(axis)))
    ease = (_TURN * leg) ** 2
    for _ in range(_ROUNDS):
        hip, knee, ankle = np.exp(1j * np.cumsum(angles, axis=0))
        arms = np.stack((hip * thigh + knee * shank + ankle * foot, knee * shank + ankle * foot, ankle * foot))
        below = -rest - steep * arms[0].imag
        counts = (below > 0.0) | (below == below.max(axis=0))
        middle = arms.mean(axis=1)
        slopes = np.concatenate((steep * arms.real * counts, -_SLIDE * middle.imag[:, None]), axis=1)
        off = np.concatenate((below * counts, _SLIDE * (start - middle[0].real)[None]))
        pull = np.einsum("apf,pf->af", slopes, off) - ease * angles
        # a joint at the end of its range does not go on
        stuck = ((angles <= room[:, 0]) & (pull < 0.0)) | ((angles >= room[:, 1]) & (pull > 0.0))
        slopes[np.broadcast_to(stuck[:, None], slopes.shape)] = 0.0
        pull[stuck] = 0.0
        square = np.einsum("apf,bpf->fab", slopes, slopes) + (2.0 * ease)[:, None, None] * np.eye(3)
        step = np.linalg.solve(square, pull.T[..., None])[..., 0].T
        angles = np.clip(angles + step, room[:, 0], room[:, 1])
    return angles
