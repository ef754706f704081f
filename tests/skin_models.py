"""Scenes with skins for tests."""

from __future__ import annotations

import numpy as np

import poise
from poise.model.skins import Bone, Skin

ELBOW = np.array((0.2, 0.0, 1.0))
RED = (0.9, 0.05, 0.05, 1.0)


def tube(rings: int = 9, around: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A tube along z from 0 to 2 about the elbow's x: points, triangles, and how much each point heeds the forearm."""
    z, turn = np.linspace(0.0, 2.0, rings), 2.0 * np.pi * np.arange(around) / around
    ring = np.stack((0.15 * np.cos(turn) + ELBOW[0], 0.15 * np.sin(turn), np.zeros(around)), axis=1)
    points = (ring[None] + np.stack((0 * z, 0 * z, z), axis=1)[:, None]).reshape(-1, 3)
    number = np.arange(rings * around).reshape(rings, around)
    beside = np.roll(number, -1, axis=1)
    a, b, c, d = number[:-1], beside[:-1], beside[1:], number[1:]
    faces = np.concatenate((np.stack((a, b, c), -1).reshape(-1, 3), np.stack((a, c, d), -1).reshape(-1, 3)))
    return points, faces, np.clip(points[:, 2] - 0.5, 0.0, 1.0)


def arm() -> poise.Scene:
    """An upper arm that stays, a forearm that turns about y at the elbow, and a skin about both."""
    scene = poise.Scene(gravity=(0.0, 0.0, 0.0), name="arm")
    hidden = {"color": (0.0, 0.0, 0.0, 0.0), "mass": 1.0}
    scene.add(poise.capsule(0.05, 0.8, **hidden), name="upper", position=(0.2, 0.0, 0.5), fixed=True)
    forearm = poise.capsule(0.05, 0.8, position=(0.0, 0.0, 0.5), **hidden)
    scene.hinge(None, forearm, axis="y", anchor=(0, 0, 0), position=tuple(ELBOW), name="fore")
    points, faces, weight = tube()
    every = np.arange(len(points))
    bones = [
        Bone("upper", (0.2, 0.0, 0.5), vertices=every[weight < 1.0], weights=(1.0 - weight)[weight < 1.0]),
        Bone("fore", tuple(ELBOW), vertices=every[weight > 0.0], weights=weight[weight > 0.0]),
    ]
    scene.skins.append(Skin("sleeve", points, faces, bones, RED))
    return scene


def bent_tube(angle: float) -> np.ndarray:
    """Where the points of the tube are, the forearm being turned by an angle: x = (1 − w) v + w (e + R (v − e))."""
    points, _, weight = tube()
    apart = points - ELBOW
    c, s = np.cos(angle), np.sin(angle)
    turned = np.stack((c * apart[:, 0] + s * apart[:, 2], apart[:, 1], c * apart[:, 2] - s * apart[:, 0]), axis=1)
    return np.asarray((1.0 - weight)[:, None] * points + weight[:, None] * (ELBOW + turned))
