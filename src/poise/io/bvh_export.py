"""Recordings as BVH: the motion of one character, in its own skeleton or in that of a clip."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from poise.io.bvh import save_bvh
from poise.io.recording_frames import checked_rate, frames_of, world_poses
from poise.model.errors import SceneError, did_you_mean
from poise.motion.clip import Clip
from poise.motion.inverse_retarget import returned
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate
from poise.motion.skeleton import Skeleton

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.sim.recording import Recording

Floats = NDArray[np.float64]
_EVEN = 1e-4
"""Relative tolerance of equal steps."""
_STILL = 1e-9
"""Joints whose position in their parents' frames changes by less than this only rotate; m."""


def save_motion(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    like: Clip | None = None,
    character: str | None = None,
    fps: float | None = None,
    parts: Mapping[str, str] | None = None,
    scale: float | None = None,
    floor: float | None = 0.0,
    units: str | float | None = None,
    up: Literal["x", "y", "z"] | None = None,
    digits: int = 6,
) -> None:
    """Write a character's motion as BVH.

    With `like`, the clip that it tracked, the file has that clip's skeleton, units, axes, channels and rate; `parts`,
    `scale` and `floor` are those of its retargeting. Without it the file has the character's own bones, in centimetres
    with y up. `character` selects one of several. `motion_of` returns the clip.

    >>> import poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_motion(scene.build(dt=0.01).run(0.1), f"{folder}/fall.bvh")
    ...     poise.io.load_bvh(f"{folder}/fall.bvh", units="cm", up="y")
    <Clip "fall": 11 frames of 15 joints, 0.1 s>
    """
    clip = motion_of(recording, like=like, character=character, fps=fps, parts=parts, scale=scale, floor=floor)
    save_bvh(clip, path, units=units, up=up, digits=digits)


def motion_of(
    recording: Recording,
    *,
    like: Clip | None = None,
    character: str | None = None,
    fps: float | None = None,
    parts: Mapping[str, str] | None = None,
    scale: float | None = None,
    floor: float | None = 0.0,
) -> Clip:
    """A character's motion as a clip with evenly spaced keys; see `save_motion`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> motion_of(scene.build(dt=0.01).run(0.1)).skeleton.names[:3]
    ('pelvis', 'torso', 'head')
    """
    model, chosen = recording.model, frames_of(recording)
    times = recording.time[chosen]
    positions, turns = world_poses(model, recording.q[chosen])
    positions, turns = positions[:, model.link_body], turns[:, model.link_body]
    if like is None:
        links = _tree(model, character)
        clip = _own_clip(model, links, times - times[0], positions[:, links], turns[:, links])
    else:
        if not isinstance(like, Clip):
            raise SceneError(f"must be a clip, as poise.load_motion gives, found {like!r:.80}", field="like")
        options: dict[str, Any] = {"parts": parts, "scale": scale, "floor": floor, "character": character}
        try:
            root = _root(model, character)
            clip = returned(like, model, times, turns, positions[:, root], **options)
        except ValueError as error:
            raise SceneError(str(error), field="like") from None
    return _even(clip, fps, like)


def _even(clip: Clip, fps: float | None, like: Clip | None) -> Clip:
    """The clip at the given rate, or that of the clip it tracked, or its own."""
    if clip.n_frames < 2:
        return clip
    steps = np.diff(clip.times)
    step = float(np.median(steps))
    followed = like if like is not None and like.n_frames > 1 else clip
    rate = checked_rate(fps) if fps is not None else 1.0 / float(np.median(np.diff(followed.times)))
    if abs(rate * step - 1.0) < 1e-9 and np.abs(steps - step).max() <= _EVEN * step:
        return clip
    return clip.resampled(rate)


def _root(model: Model, character: str | None) -> int:
    from poise.motion.retarget_rig import Target

    return Target(model, character).root


def _tree(model: Model, character: str | None) -> list[int]:
    """Links of the one tree that is a character: the one of that name, or the only one that has joints inside."""
    names = [model.body_names[body] for body in model.link_body]
    roots = sorted(set(model.link_root.tolist()))
    trees = {root: np.flatnonzero(model.link_root == root).tolist() for root in roots}
    if character is not None:
        found = [root for root in roots if character in (names[root], names[root].rpartition("/")[0])]
        known = [names[root].rpartition("/")[0] or names[root] for root in roots]
        if len(found) != 1:
            raise SceneError(f'there is no character "{character}"{did_you_mean(character, known)}', field="character")
        return trees[found[0]]
    several = [root for root in roots if len(trees[root]) > 1] or roots
    if len(several) != 1:
        known = [names[root].rpartition("/")[0] or names[root] for root in several]
        what = f"BVH holds one character, and there are {', '.join(known)}: name one" if known else "nothing moves"
        raise SceneError(what, field="character")
    return trees[several[0]]


def _own_clip(model: Model, links: list[int], times: Floats, positions: Floats, turns: Floats) -> Clip:
    """A clip of a character's own links; positions (frames, links, 3) and turns (frames, links, 4) in the world."""
    rest_positions, rest_turns = world_poses(model, model.q_rest[None])
    rest = _local(model, links, rest_positions[:, model.link_body][:, links], rest_turns[:, model.link_body][:, links])
    moves, quats = _local(model, links, positions, turns)
    place = {link: k for k, link in enumerate(links)}
    parents = [place.get(int(model.link_parent[link]), -1) for link in links]
    moved = [k for k in range(len(links)) if k == 0 or np.abs(moves[:, k] - rest[0][0, k]).max() > _STILL]
    leaves = [k for k in range(len(links)) if k not in parents]
    tips = [(k, _tip(model, links[k])) for k in leaves]
    names = _names([model.body_names[int(model.link_body[link])] for link in links])
    skeleton = Skeleton(names, parents, rest[0][0], rest[1][0], tips)
    return Clip(skeleton, times, quats, moves[:, moved], moved=moved, name=model.name)


def _local(model: Model, links: list[int], positions: Floats, turns: Floats) -> tuple[Floats, Floats]:
    """Poses of links in the frames of those that carry them; the first one's stay as they are."""
    place = {link: k for k, link in enumerate(links)}
    moves, quats = positions.copy(), turns.copy()
    for k, link in enumerate(links):
        above = place.get(int(model.link_parent[link]))
        if above is not None:
            back = quat_conjugate(turns[:, above])
            moves[:, k] = rotate(back, positions[:, k] - positions[:, above])
            quats[:, k] = quat_multiply(back, turns[:, k])
    return moves, quats


def _tip(model: Model, link: int) -> Floats:
    """Approximate end of a link without children: as far beyond its centre of mass as that is from its joint."""
    end = 2.0 * model.link_com[link]
    return end if np.linalg.norm(end) > 1e-4 else np.array((0.0, 0.0, 0.1))


def _names(full: list[str]) -> list[str]:
    """Names that BVH can hold, each once: the last part where that is enough, no spaces, no braces."""
    short = [name.rpartition("/")[2] for name in full]
    chosen = short if len(set(short)) == len(short) else full
    names: list[str] = []
    for name in chosen:
        plain = re.sub(r"[\s{}\x00-\x1f]+", "_", name).strip("_") or "joint"
        unique, k = plain, 2
        while unique in names:
            unique, k = f"{plain}_{k}", k + 1
        names.append(unique)
    return names
