"""Bends the legs of a retargeted motion where their soles would be below the floor.

A foot that stands flat in a clip may need more than the range of a character's ankle, as in the rear leg of a lunge:
its toes would be centimetres below the floor. Humans then raise the heel, and bend hip and knee.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.ground import sinks, smoothed
from poise.motion.retarget_rig import UP, Target, shape_points
from poise.motion.retarget_source import Source
from poise.motion.rotations import cross, quat_conjugate, quat_exp, quat_multiply, rotate, unit

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: soles that are below the floor by less than this stay there; m
_LEAST = 1e-4
#: weight of rotating a joint by 1 rad, as a depth of soles below the floor (share of the leg); and weight of moving a
#: foot along the floor, relative to the same depth below it
_TURN, _SLIDE = 0.02, 0.1
#: greatest rotation of hip, knee and ankle; rad
_MOST = 0.6
#: cosine of the angle between the axes of knee and ankle above which they are treated as parallel
_PARALLEL = 0.9
_ROUNDS = 20
#: smoothing window of the rotations; s
_CALM = 0.015


def bent(
    source: Source, target: Target, q: Floats, turns: list[Floats], root: Floats, limits: bool
) -> tuple[Floats, list[Floats]]:
    """Coordinates (frames, nq) with legs bent as little as possible, such that no sole is below the floor, at height 0.

    `turns` are the world orientations of all links, `root` the positions (frames, 3) of the root; m. Hip, knee and
    ankle rotate about the knee's axis, so that the leg stays in its plane. Soles stay a millimetre or two below the
    floor if the correction needs a large bend, and feet as deep as in the clip itself. Also returns the world
    orientations of all links.
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
        # stretching the knee could also raise the toes; only bending is allowed, so that solutions do not alternate
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
    """(3, 2, frames) remaining range of hip, knee and ankle in both directions; the ankle's axis may be reversed."""
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
    """(3, frames) angles of hip, knee and ankle about an axis that move the points of a sole up to the floor.

    The better of two minima: a search from the original leg would stay at a stretched knee, whose bending changes the
    leg's length only in second order, so that another search starts from a sufficiently bent knee.
    """
    leg = _Leg(joints, sole, axis, room)
    angles, cost = leg.search(np.zeros((3, len(axis))))
    other, lower = leg.search(leg.shortened(-sole[..., 2].min(axis=0)))
    return np.where(lower < cost, other, angles)


class _Leg:
    """A leg in the plane across its axis, represented by complex numbers, in all frames."""

    def __init__(self, joints: list[Floats], sole: Floats, axis: Floats, room: Floats) -> None:
        ahead = unit(cross(np.broadcast_to(UP, axis.shape), axis))
        up = cross(axis, ahead)

        def flat(vectors: Floats) -> Complex:
            return np.asarray(np.sum(vectors * ahead, axis=-1) + 1j * np.sum(vectors * up, axis=-1))

        self.room, self.steep = room, up[:, 2]
        self.thigh, self.shank = flat(joints[1] - joints[0]), flat(joints[2] - joints[1])
        self.foot = flat(sole - joints[2])
        whole = self.thigh + self.shank + self.foot
        #: part of each point's height that the rotation does not change, and the sole's offset ahead
        self.rest, self.start = sole[..., 2] - self.steep * whole.imag, whole.mean(axis=0).real
        self.ease = (_TURN * (abs(self.thigh) + abs(self.shank))) ** 2

    def shortened(self, by: Floats) -> Floats:
        """(3, frames) angles of hip, knee and ankle that shorten a stretched leg by lengths (m); the foot is level."""
        bend = np.sqrt(8.0 * by / (abs(self.thigh) + abs(self.shank)))
        knee = bend * np.where(self.room[1, 1] > 0.0, 1.0, -1.0)
        return np.asarray(np.clip([-0.5 * knee, knee, -0.5 * knee], self.room[:, 0], self.room[:, 1]))

    def search(self, angles: Floats) -> tuple[Floats, Floats]:
        """A minimum (3, frames) of the cost, and its value, by Levenberg-Marquardt within the joints' ranges."""
        damping = np.array(self.ease)
        off, slopes = self._off(angles)
        cost = self._cost(off, angles)
        for _ in range(_ROUNDS):
            pull = np.einsum("apf,pf->af", slopes, off) - self.ease * angles
            # a joint at the end of its range stays there
            stuck = ((angles <= self.room[:, 0]) & (pull < 0.0)) | ((angles >= self.room[:, 1]) & (pull > 0.0))
            free = np.where(stuck[:, None], 0.0, slopes)
            square = np.einsum("apf,bpf->fab", free, free) + (self.ease + damping)[:, None, None] * np.eye(3)
            step = np.linalg.solve(square, np.where(stuck, 0.0, pull).T[..., None])[..., 0].T
            tried = np.clip(angles + step, self.room[:, 0], self.room[:, 1])
            found = self._off(tried)
            better = self._cost(found[0], tried) < cost
            damping *= np.where(better, 1.0 / 3.0, 4.0)
            angles = np.where(better, tried, angles)
            off, slopes = np.where(better, found[0], off), np.where(better, found[1], slopes)
            cost = self._cost(off, angles)
        return angles, cost

    def _cost(self, off: Floats, angles: Floats) -> Floats:
        """(frames,) the sum of squares of errors and angles."""
        return np.asarray(np.sum(off**2, axis=0) + self.ease * np.sum(angles**2, axis=0))

    def _off(self, angles: Floats) -> tuple[Floats, Floats]:
        """(points + 1, frames) errors, and their negative derivatives (3, points + 1, frames) by the angles.

        Errors are depths of points below the floor, or the height of the lowest one, and motion along the floor.
        """
        hip, knee, ankle = np.exp(1j * np.cumsum(angles, axis=0))
        thigh, shank, foot = hip * self.thigh, knee * self.shank, ankle * self.foot
        arms = np.stack((thigh + shank + foot, shank + foot, foot))
        below = -self.rest - self.steep * arms[0].imag
        counts = (below > 0.0) | (below == below.max(axis=0))
        middle = arms.mean(axis=1)
        off = np.concatenate((below * counts, _SLIDE * (self.start - middle[0].real)[None]))
        return off, np.concatenate((self.steep * arms.real * counts, -_SLIDE * middle.imag[:, None]), axis=1)
