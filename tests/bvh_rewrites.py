"""The same motion as another program would write it: other rest pose, root, channels, unit and axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from poise.io import save_bvh
from poise.motion import Clip, Origin, Skeleton
from poise.motion.euler import ORDERS
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate

UNITS = ("cm", "m", "mm", "inch")
ROOTS = ("Armature", "reference", "Root", "Bip01")


def with_other_rest(clip: Clip, turns: np.ndarray) -> Clip:
    """The clip with joints whose frames are turned by constant rotations (joints, 4): bones at rest lie anywhere."""
    plain = clip.at_rest_of(np.tile((1.0, 0.0, 0.0, 0.0), (len(clip.skeleton), 1)))
    skeleton = plain.skeleton
    above = np.concatenate(((np.array((1.0, 0.0, 0.0, 0.0)),), turns))[skeleton.parents + 1]
    back = quat_conjugate(above)
    tips = [(joint, rotate(quat_conjugate(turns[joint]), offset)) for joint, offset in skeleton.tips]
    other = Skeleton(skeleton.names, skeleton.parents, rotate(back, skeleton.offsets), tips=tips)
    quats = quat_multiply(quat_multiply(back, plain.quats_wxyz), turns)
    moves = rotate(back[list(plain.moved)], plain.translations)
    return Clip(other, plain.times, quats, moves, moved=plain.moved, loop=plain.loop, stride=plain.stride)


def under_a_root(clip: Clip, name: str, turn: np.ndarray, place: np.ndarray) -> Clip:
    """The clip with a joint above its root, which is turned and stands somewhere."""
    skeleton = clip.skeleton
    joint = Skeleton(
        [name, *skeleton.names],
        [-1, *(int(parent) + 1 for parent in skeleton.parents)],
        np.concatenate((place[None], skeleton.offsets)),
        tips=[(k + 1, offset) for k, offset in skeleton.tips],
    )
    quats = np.concatenate((np.tile(turn, (clip.n_frames, 1, 1)), clip.quats_wxyz), axis=1)
    quats[:, 1] = quat_multiply(quat_conjugate(turn), quats[:, 1])
    moves = np.concatenate((np.tile(place, (clip.n_frames, 1, 1)), clip.translations), axis=1)
    moves[:, 1] = rotate(quat_conjugate(turn), moves[:, 1] - place)
    return Clip(joint, clip.times, quats, moves, moved=[0, *(k + 1 for k in clip.moved)])


def renamed(clip: Clip, name: str) -> Clip:
    """The clip with another name of its root."""
    skeleton = clip.skeleton
    other = Skeleton([name, *skeleton.names[1:]], skeleton.parents, skeleton.offsets, tips=skeleton.tips)
    return Clip(other, clip.times, clip.quats_wxyz, clip.translations, moved=clip.moved)


def rewritten(clip: Clip, file: Path, seed: int) -> Path:
    """The clip in a file with a random rest pose, root, order of channels, unit and axes."""
    rng = np.random.default_rng(seed)
    turns = rng.normal(size=(len(clip.skeleton), 4))
    other = with_other_rest(clip, turns / np.linalg.norm(turns, axis=1, keepdims=True))
    if seed % 3 == 1:
        turn = rng.normal(size=4)
        other = under_a_root(other, str(rng.choice(ROOTS)), turn / np.linalg.norm(turn), rng.normal(size=3))
    elif seed % 3 == 2:
        other = renamed(other, str(rng.choice(ROOTS)))
    channels = tuple(_channels(rng, index in other.moved) for index in range(len(other.skeleton)))
    up = "zyx"[seed % 2] if seed % 5 else "x"
    unit = str(rng.choice(UNITS))
    meters = {"cm": 0.01, "m": 1.0, "mm": 0.001, "inch": 0.0254}[unit]
    laid = Clip(
        other.skeleton,
        other.times,
        other.quats_wxyz,
        other.translations,
        moved=other.moved,
        origin=Origin("bvh", meters, up, channels),
    )
    save_bvh(laid, file, digits=11)
    return file


def _channels(rng: np.random.Generator, moves: bool) -> tuple[str, ...]:
    """Rotations in a random order, of a joint that moves with positions before or after them."""
    order = [f"{letter.upper()}rotation" for letter in str(rng.choice([o for o in ORDERS if len(set(o)) == 3]))]
    places = [f"{letter}position" for letter in rng.permutation(list("XYZ"))] if moves else []
    return tuple(places + order if rng.random() < 0.5 else order + places)
