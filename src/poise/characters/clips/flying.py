"""Wing beat, for `poise.characters.bird`.

Frequency: C. J. Pennycuick, Wingbeat frequency of birds in steady cruising flight: new data and improved predictions,
J. Experimental Biology 199, 1996, 1613-1618: f = m^(3/8) g^(1/2) b^(−23/24) S^(−1/3) ρ^(−3/8).
"""

from __future__ import annotations

import numpy as np

from poise.characters.bird import CHORD, INNER, OUTER, bird
from poise.model.scene import Character
from poise.motion import Keyframes, keyframes
from poise.motion.motion_checks import positive, vectors

_AIR, _GRAVITY = 1.225, 9.81
#: keys of a beat
_KEYS = 24


def beat_frequency(span: float, mass: float) -> float:
    """Beats per second of a bird's wings in steady flight (Pennycuick 1996), from its span (m) and mass (kg).

    >>> round(beat_frequency(1.0, 0.6), 1)
    4.5
    """
    area = 2.0 * span**2 * CHORD * (INNER + 0.8 * OUTER)
    return float(mass**0.375 * _GRAVITY**0.5 * span ** (-23 / 24) * area ** (-1 / 3) * _AIR**-0.375)


def wing_beat(
    character: Character | None = None,
    frequency: float | None = None,
    position: tuple[float, float, float] = (0.0, 0.0, 1.5),
) -> Keyframes:
    """One wing beat of a bird, as cyclic key-frames; the bird remains at `position` (m) except for its bob.

    `frequency` (1/s) defaults to that of birds of its size. The downstroke takes longer than the upstroke, tips lag
    behind, and wings are slightly folded in the upstroke. The trunk rises while the wings go down.

    >>> beat = wing_beat(frequency=4.0)
    >>> beat.duration
    0.25
    """
    whole = bird() if character is None else character
    if not isinstance(whole, Character):
        raise TypeError(f"character: must be a character, as poise.characters.bird() is, found {whole!r:.60}")
    parts = {body.name: body for body in whole.bodies}
    for name in ("trunk", "wing_l", "wing_tip_l", "wing_r", "wing_tip_r"):
        if name not in parts:
            raise ValueError(f'character: must be a bird, found no "{name}" in "{whole.name}"')
    span = parts["wing_tip_l"].position[1] / INNER
    mass = sum(shape.mass or 0.0 for body in whole.bodies for shape in body.shapes)
    rate = beat_frequency(span, mass) if frequency is None else positive("frequency", frequency, "1/s")
    if rate > 100.0:
        raise ValueError(f"frequency: must be at most 100 beats a second, found {rate:g}")
    place = vectors("position", position, (3,))
    phase = np.arange(_KEYS + 1) / _KEYS
    # the downstroke takes 0.55 of the beat
    angle = 2.0 * np.pi * phase - 0.3 * np.sin(2.0 * np.pi * phase - 0.5 * np.pi) - 0.3
    raised = 0.12 + 0.62 * np.cos(angle)
    folded = -0.12 + 0.42 * np.cos(angle - 1.35) - 0.15 * np.cos(2.0 * angle - 0.8)
    # momentum: the trunk moves opposite to the wings, whose middle is about 0.2 of the span from the body
    bob = -0.03 * span * np.cos(angle)
    pitch = -0.05 + 0.03 * np.sin(angle)
    frames = {}
    for k, share in enumerate(phase):
        j = k % _KEYS
        half = 0.5 * pitch[j]
        pose = (place[0], place[1], place[2] + bob[j], np.cos(half), 0.0, np.sin(half), 0.0)
        wings = {f"wing_{side}": raised[j] for side in "lr"} | {f"wing_tip_{side}": folded[j] for side in "lr"}
        frames[float(share / rate)] = {"root": pose, **wings}
    return keyframes(frames, loop=True)
