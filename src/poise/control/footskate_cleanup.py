"""Footskate clean-up: inverse kinematics holds the standing feet of a motion in place, frame by frame.

This cleans up footskate, the sliding of feet that should stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control import goals
from poise.control.contact_phases import (
    Foot,
    Wish,
    bearing,
    centre_of_mass,
    find_feet,
    find_stances,
    follow,
    going,
    height_of_rest,
    planted,
    sinking,
)
from poise.control.goals import Goal
from poise.control.ik import search
from poise.control.ik_rows import GoalRows, checked_goals, held_model
from poise.control.stance_blending import Span
from poise.dynamics.argument_checks import check_model, checked
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.motion.motion_checks import key_times, positive, vectors
from poise.motion.retarget_rig import Target
from poise.motion.rotations import quat_to_matrix

Floats = NDArray[np.float64]

TOLERANCE = 2e-4
"""Tolerance of the feet's targets; m or rad."""
STEPS = 20
"""Maximum number of iterations in a frame."""
FLATNESS = 0.5
"""Weight of a foot's orientation relative to its position."""


class Planted(NamedTuple):
    """Coordinates of a character without footskate."""

    times: Floats
    """(frames,) s."""
    q: Floats
    """(frames, nq)."""
    stances: dict[str, list[tuple[float, float]]]
    """When each foot (`"l"`, `"r"`) stands: from, to; s."""
    missed: Floats
    """(frames,) error of the worse foot, due to joint limits and the length of legs; m."""


def plant_feet(
    model: Model,
    times: ArrayLike,
    q: ArrayLike,
    *,
    floor: float = 0.0,
    stances: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    blend: float = 0.2,
    clearance: float = 0.015,
    limits: bool = True,
) -> Planted:
    """The motion of a human character with feet flat and at rest while they stand, and never below the `floor` (m).

    Stances are detected from low, level and slow feet; `stances` replaces them by pairs of times (s) for `"l"` and
    `"r"`. The correction of a stance fades in and out over `blend` (s). Half way between two stances, a sole is above
    the floor by at least `clearance` (m), as human soles are (about 13 mm at their lowest: Winter 1992); feet that skim
    the floor would get stuck in a simulation. The rest of the body moves with least kinetic energy: legs bend, the
    heavy trunk hardly moves.

    >>> import numpy as np
    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> model = scene.compile()
    >>> times = np.linspace(0.0, 1.0, 31)
    >>> q = np.tile(model.q_rest, (31, 1))
    >>> q[:, 0] += 0.03 * times  # feet that slide by 3 cm
    >>> done = plant_feet(model, times, q)
    >>> done.stances["l"], bool(done.missed.max() < 1e-3)
    ([(0.0, 1.0)], True)
    """
    check_model(model)
    moments = key_times(times)
    frames = checked(model, "q", q)
    if frames.shape != (len(moments), model.nq):
        raise ValueError(f"q: must have the shape {(len(moments), model.nq)}, one row a time, found {frames.shape}")
    level, fade = float(vectors("floor", floor, ())), positive("blend", blend, "s")
    clear = float(vectors("clearance", clearance, ()))
    if clear < 0.0:
        raise ValueError(f"clearance: must be 0 m or more, found {clear:g}")
    feet, leg, root = find_feet(model)
    if not feet:
        raise ValueError("model: no foot_l or foot_r with a shape was found")
    tracks = {side: follow(model, frames, foot) for side, foot in feet.items()}
    centre = centre_of_mass(model, frames, next(iter(feet.values())))
    gait = going(moments, centre, list(tracks.values()), leg)
    if stances is None:
        spans = {side: find_stances(moments, tracks[side], foot, leg, gait) for side, foot in feet.items()}
    else:
        spans = _given(moments, stances, feet)
    frames = np.array(frames)
    bears = {side: bearing(moments, tracks[side], foot, leg, gait) for side, foot in feet.items()}
    rest = height_of_rest(model, frames, list(feet.values()))
    rise = sinking(moments, [(feet[side], tracks[side], spans[side], bears[side]) for side in feet], level, rest)
    frames[:, root + 2] += rise
    for track in tracks.values():
        track.place[:, 2] += rise
    wanted = {
        side: planted(
            moments,
            tracks[side],
            foot,
            spans[side],
            floor=level,
            blend=fade,
            leg=leg,
            clearance=clear,
            bears=bears[side],
        )
        for side, foot in feet.items()
    }
    moved, missed = _solve(model, frames, feet, wanted, level, bool(limits))
    told = {side: [(float(moments[a]), float(moments[b])) for a, b in spans[side]] for side in feet}
    return Planted(moments, moved, told, missed)


def _solve(
    model: Model, q: Floats, feet: Mapping[str, Foot], wanted: Mapping[str, Wish], floor: float, limits: bool
) -> tuple[Floats, Floats]:
    """Coordinates with feet at their targets, and the error of the worse foot."""
    above = _above_legs(model, feet)
    firm = _rows(held_model(model, above), _goals(feet, wanted, floor, turned=1), limits)
    loose = np.all([wish.loose for wish in wanted.values()], axis=0)
    loose &= any(wish.grip.any() for wish in wanted.values())
    rolling = firm
    if loose.any():
        # the legs alone bring the ends of feet to the ground; feet rotate before the root moves
        root = Target(model)
        rigid = held_model(model, [*above, model.joint_names[root.joint[root.root]]])
        rolling = _rows(rigid, _goals(feet, wanted, floor, turned=2), limits)
    turns = {side: quat_to_matrix(wish.quat) for side, wish in wanted.items()}
    out, missed = np.array(q), np.zeros(len(q))
    for frame in range(len(q)):
        rows = rolling if loose[frame] else firm
        for k, (side, foot) in enumerate(feet.items()):
            wish, place, turn = wanted[side], rows.goals[2 * k], rows.goals[2 * k + 1]
            place.points[0] = foot.centre + wish.grip[frame]
            place.wanted[:] = wish.place[frame] + turns[side][frame] @ wish.grip[frame]
            turn.wanted[:] = turns[side][frame]
        found = search(rows, q[frame], TOLERANCE, STEPS)
        out[frame], missed[frame] = found.q, found.error[0 : 2 * len(feet) : 2].max()
    return out, missed


def _rows(model: Model, wishes: list[Goal], limits: bool) -> GoalRows:
    return GoalRows(model, checked_goals(model, wishes), limits)


def _goals(feet: Mapping[str, Foot], wanted: Mapping[str, Wish], floor: float, *, turned: int) -> list[Goal]:
    """Goals for the position of each foot, its orientation with a separate priority, and the floor."""
    wishes: list[Goal] = []
    for side, foot in feet.items():
        start = wanted[side]
        wishes.append(goals.position(foot.body, start.place[0], point=foot.centre, priority=1))
        wishes.append(goals.orientation(foot.body, start.quat[0], priority=turned, weight=FLATNESS))
    floors = [goals.above(foot.body, floor + foot.radii, points=foot.points, priority=0) for foot in feet.values()]
    return [*wishes, *floors]


def _above_legs(model: Model, feet: Mapping[str, Foot]) -> list[str]:
    """Joints that are not between the feet and the world."""
    legs = set()
    for foot in feet.values():
        link = int(model.body_link[foot.body])
        while link >= 0:
            legs.add(link)
            link = int(model.link_parent[link])
    links = model.body_link[model.joint_body]
    return [name for name, link in zip(model.joint_names, links.tolist(), strict=True) if link not in legs]


def _given(times: Floats, stances: Any, feet: Mapping[str, Foot]) -> dict[str, list[Span]]:
    """Stances that were passed as times, as frames."""
    if not isinstance(stances, Mapping):
        raise ValueError(f'stances: must have pairs of times for "l" and "r", found {stances!r:.80}')
    spans: dict[str, list[Span]] = {side: [] for side in feet}
    for side, pairs in stances.items():
        if side not in feet:
            raise ValueError(f"stances: no foot is called {side!r}{did_you_mean(side, feet)}")
        last = -np.inf
        for start, end in vectors(f"stances[{side!r}]", list(pairs), (len(list(pairs)), 2)) if len(pairs) else ():
            if not last < start <= end:
                raise ValueError(
                    f"stances[{side!r}]: must be pairs of times that increase, found {start:g} to {end:g} s"
                )
            inside = np.flatnonzero((times >= start - 1e-9) & (times <= end + 1e-9))
            if len(inside):
                spans[side].append((int(inside[0]), int(inside[-1])))
            last = end
    return spans
