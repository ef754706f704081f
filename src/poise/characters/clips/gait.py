"""Walking and running: feet that roll over the floor, and the motion of the body above them.

Steps: in walking, the length of a step over the cadence is about 0.0064 m min at all speeds (N. Sekiya, H. Nagasaki,
Reproducibility of the walking patterns of normal young adults, Gait and Posture 7, 1998). In running, cadence increases
slightly with speed; 2.63 + 0.15 v steps per second is a choice within the range of runners. Stance takes about 0.62 of
the cycle at 1.3 m/s (J. Perry, Gait Analysis, 1992) and some 0.35 in a run; 0.38 at 3 m/s is a choice. People of other
heights move as those of 1.75 m do at the speed with the same Froude number v²/(g l). These figures have not been
compared with the books.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poise.characters.clips.curves import bump, ease, quintic, stroll
from poise.characters.clips.figure import RATE, Draft, Figure, ankle_over, side_sign, sole_pose, turn
from poise.model.scene import Character
from poise.motion import Clip
from poise.motion.motion_checks import positive

Floats = NDArray[np.float64]

GRAVITY = 9.81
#: speeds for a height of 1.75 m; m/s. Above a Froude number of 0.5 people run
WALKING = (0.3, 1.75)
RUNNING = (2.0, 4.5)


@dataclass(frozen=True)
class Gait:
    """Motion of feet in a cycle. Phases are fractions of the cycle, from one heel strike to the next; angles in rad."""

    period: float
    """s."""
    stride: float
    """m."""
    duty: float
    """Phase at which the toes leave the floor."""
    flat: float
    """Phase at which the whole sole is down."""
    rise: float
    """Phase at which the heel leaves the floor."""
    strike: float
    """Pitch of the foot, toes up, at the heel strike."""
    push: float
    """Pitch of the foot, heel up, when the toes leave."""
    spring: float
    """Additional pitch, heel up, in the middle of the stance."""
    roll: float
    """Exponent of the heel's rise."""
    below: float
    """Phase at which the ankle is below the body."""
    tuck: float
    """Largest pitch, toes down, in the swing."""
    turn: float
    """Fraction of the swing after which toes rise again."""
    lift: float
    """Clearance of the toes in the swing; m."""
    quick: tuple[float, float]
    """Fractions of the swing in which toes accelerate, and stop."""
    width: float
    """Lateral distance of a foot from the line of walking; m."""
    yaw: float
    """Outward angle of the toes."""


def _paced(name: str, speed: float, figure: Figure, bounds: tuple[float, float]) -> tuple[float, float]:
    """The speed (m/s), and the dynamically similar one for a height of 1.75 m."""
    given = positive("speed", speed, "m/s")
    root = float(np.sqrt(figure.scale))
    lower, upper = (bound * root for bound in bounds)
    if not lower <= given <= upper:
        other = {"walk": "run", "run": "walk"}[name]
        towards = (given > upper) == (name == "walk")
        hint = f"; is it a {other}?" if towards else ""
        raise ValueError(
            f"speed: people of this height {name} at {lower:.3g} to {upper:.3g} m/s, found {given:g} m/s{hint}"
        )
    return given, given / root


def _stance_pitch(gait: Gait, phase: Floats) -> Floats:
    """Pitch of the foot in the stance: heel first, then flat, then over the toes."""
    down = gait.strike * (1.0 - ease(phase / gait.flat))
    share = np.maximum(phase - gait.rise, 0.0) / (gait.duty - gait.rise)
    return np.asarray(down - gait.push * share**gait.roll - gait.spring * bump(phase / gait.duty))


def _swing_pitch(gait: Gait, phase: Floats) -> Floats:
    """Pitch from the push to the next strike: continues the push with its first two derivatives, then fades."""
    length = 1.0 - gait.duty
    s = (phase - gait.duty) / length
    ratio = length / (gait.duty - gait.rise)
    # value and first two derivatives of the stance's cubic at its end, in units of the swing
    n = gait.roll
    start, rate, bend = -gait.push, -n * gait.push * ratio, -n * (n - 1.0) * gait.push * ratio**2
    early = np.minimum(s, 0.5)
    # quintic with those derivatives that ends in the deepest tuck, then eases to the strike
    first = quintic(early, 0.0, 0.5, (start, rate, bend), (-gait.tuck, 0.0, 0.0))
    return np.asarray(first + (gait.strike + gait.tuck) * ease((s - gait.turn) / (1.0 - gait.turn)))


def step_path(figure: Figure, gait: Gait, phase: Floats, side: str) -> tuple[Floats, Floats]:
    """Ankle (n, 3) and orientation (n, 4) of a foot over its phase, which may exceed 1; x is 0 at a strike."""
    sign = side_sign(side)
    cycle = np.floor(phase)
    p = phase - cycle
    yaw = sign * gait.yaw
    along = np.array((np.cos(yaw), np.sin(yaw), 0.0))
    heel = np.zeros((len(p), 3))
    heel[:, 1] = sign * gait.width
    stands = p <= gait.duty
    ankle, quat = sole_pose(figure, heel, _stance_pitch(gait, np.minimum(p, gait.duty)), yaw)
    pitch = _swing_pitch(gait, np.maximum(p, gait.duty))
    swing_quat = turn(y=-pitch, z=yaw)
    s = (np.maximum(p, gait.duty) - gait.duty) / (1.0 - gait.duty)
    # the toes, from their stance position to that of the next heel strike
    reach = figure.foot_length * np.cos(gait.strike)
    toe = heel + figure.foot_length * along
    way = np.array((gait.stride, 0.0, 0.0)) - (figure.foot_length - reach) * along
    toe = toe + stroll(s / 0.97, *gait.quick)[:, None] * way
    toe[:, 2] = figure.foot_length * np.sin(gait.strike) * ease((s - 0.35) / 0.65) + gait.lift * bump(s**0.8)
    swing = ankle_over(figure, toe, figure.toe, swing_quat)
    ankle = np.where(stands[:, None], ankle, swing)
    ankle[:, 0] += gait.stride * cycle
    return ankle, np.where(stands[:, None], quat, swing_quat)


def _draft(figure: Figure, gait: Gait) -> tuple[Draft, Floats]:
    """A cycle with both feet set, and its phases. The left heel strikes first."""
    # keys twice as dense as elsewhere: feet stop within hundredths of a second
    half = round(gait.period / float(np.sqrt(figure.scale)) * RATE)
    phase = np.arange(2 * half) / (2 * half)
    draft = Draft(figure, phase * gait.period)
    # so that the body, which is at stride · phase, is above the ankle in the middle of the stance
    shift = gait.stride * gait.below + figure.heel
    for side, late in (("l", 0.0), ("r", 0.5)):
        ankle, quat = step_path(figure, gait, phase + late, side)
        ankle[:, 0] += shift - gait.stride * late
        draft.foot(side, ankle, quat)
    draft.root[:, 0] = gait.stride * phase
    return draft, phase


def walk(character: Character | None = None, speed: float = 1.3) -> Clip:
    """A walk along x at a speed (m/s), as a cyclic clip of two steps; the left heel strikes at the start.

    It is made for a humanoid (`poise.characters.humanoid`, by default of 1.75 m). Feet roll over heel and toes, and
    stand still in between. The second half of a period mirrors the first. Raises ValueError for speeds at which people
    of that height do not walk.

    >>> clip = walk(speed=1.2)
    >>> clip.loop, round(float(clip.stride[0] / clip.duration), 9)
    (True, 1.2)
    """
    figure = Figure(character)
    given, alike = _paced("walk", speed, figure, WALKING)
    step = float(np.sqrt(0.0064 * 60.0 * alike)) * figure.scale
    brisk = alike / 1.3
    gait = Gait(
        period=2.0 * step / given,
        stride=2.0 * step,
        duty=0.66 - 0.03 * alike,
        flat=0.09,
        rise=0.13,
        strike=0.33 * min(brisk, 1.2) ** 0.7,
        push=0.97 * min(brisk, 1.2) ** 0.4,
        spring=0.0,
        roll=3.0,
        below=0.195,
        tuck=1.0 * min(brisk, 1.2) ** 0.4,
        turn=0.30,
        lift=0.035 * figure.scale,
        quick=(0.45, 0.2),
        width=0.055 * figure.scale,
        yaw=0.10,
    )
    draft, phase = _draft(figure, gait)
    _walk_pelvis(draft, phase, gait, brisk)
    _walk_above(draft, phase, brisk)
    draft.root[:, 2] += draft.head_room(0.12)
    draft.lay_legs()
    draft.check("speed")
    return draft.clip("walk", stride=gait.stride)


def _walk_pelvis(draft: Draft, phase: Floats, gait: Gait, brisk: float) -> None:
    """The pelvis: highest when one leg is upright, above the stance foot, and rotated with the leading leg."""
    angle = 2.0 * np.pi * phase
    amount = min(brisk, 1.4)
    scale = draft.figure.scale
    # a leg is upright at the phase gait.below, and the body is lowest half a step earlier
    draft.root[:, 2] += 0.016 * scale * amount * np.cos(2.0 * angle - 4.0 * np.pi * 0.29)
    draft.root[:, 1] += 0.022 * scale * np.cos(angle - 2.0 * np.pi * gait.below)
    draft.root[:, 0] -= 0.008 * scale * amount * np.sin(2.0 * angle - 4.0 * np.pi * gait.below)
    # at the strike the left hip is in front; the hip of the leg that swings drops a little after the other strikes
    draft.turn(
        "pelvis",
        x=0.07 * np.cos(angle - 2.0 * np.pi * 0.13),
        y=0.05 + 0.01 * np.cos(2.0 * angle),
        z=-0.09 * amount * np.cos(angle + 0.2),
    )


def _walk_above(draft: Draft, phase: Floats, brisk: float) -> None:
    """The trunk rotates opposite to the pelvis, arms swing opposite to the legs, the head faces ahead."""
    angle = 2.0 * np.pi * phase
    amount = min(brisk, 1.4)
    list_angle, yaw = 0.07 * np.cos(angle - 2.0 * np.pi * 0.13), -0.09 * amount * np.cos(angle + 0.2)
    chest = 0.07 * amount * np.cos(angle - 0.1)
    draft.turn("torso", x=-0.95 * list_angle, y=0.01 + 0.02 * np.cos(2.0 * angle + 0.8), z=chest - yaw)
    draft.turn("head", x=0.0 * angle, y=-0.05 - 0.025 * np.cos(2.0 * angle + 0.6), z=-0.9 * chest)
    for side, late in (("l", 0.0), ("r", np.pi)):
        # the left arm is behind when the left heel strikes, and lags a little
        swing = -np.cos(angle + late - 0.25)
        bend = -np.cos(angle + late - 0.55)
        draft.arm(
            side,
            flexion=0.02 + 0.36 * amount * swing,
            abduction=0.02 + 0.015 * np.cos(2.0 * angle),
            rotation=0.25 + 0.10 * swing,
            elbow=0.34 + 0.20 * amount * bend,
            wrist=0.10 + 0.05 * bend,
        )


def run(character: Character | None = None, speed: float = 3.0) -> Clip:
    """A run along x at a speed (m/s), as a cyclic clip of two steps; the left foot strikes at the start.

    Between the steps is a flight phase, with a ballistic centre of mass. Raises ValueError for speeds at which people
    of that height do not run.

    >>> clip = run(speed=3.5)
    >>> round(float(clip.stride[0] / clip.duration), 9)
    3.5
    """
    figure = Figure(character)
    given, alike = _paced("run", speed, figure, RUNNING)
    fast = (alike - 3.0) / 3.0
    period = 2.0 / (2.63 + 0.15 * alike) * float(np.sqrt(figure.scale))
    gait = Gait(
        period=period,
        stride=given * period,
        duty=float(np.clip(0.38 - 0.055 * (alike - 3.0), 0.25, 0.40)),
        flat=0.04,
        rise=0.0,
        strike=0.0,
        push=1.15,
        spring=0.365 + 0.2 * fast,
        roll=2.05,
        below=0.045 + 0.03 * fast,
        tuck=1.6 + 0.5 * fast,
        turn=0.28,
        lift=(0.17 + 0.12 * fast) * figure.scale,
        quick=(0.35, 0.13),
        width=0.04 * figure.scale,
        yaw=0.08,
    )
    draft, phase = _draft(figure, gait)
    _run_above(draft, phase, 1.0 + 0.3 * fast)
    flight = _flight(gait, phase)
    for _ in range(6):
        draft.settle(flight, "xyz", rounds=3)
        flight[:, 2] += draft.head_room(0.28)
    draft.settle(flight, "xyz")
    draft.check("speed")
    return draft.clip("run", stride=gait.stride)


def _flight(gait: Gait, phase: Floats) -> Floats:
    """(n, 3) path of the centre of mass: pushed by each foot in its stance, ballistic otherwise.

    The push is g π sin(πs)/(4 d) over the fraction s of the stance, d the duty factor, so that its mean over a step is
    the weight. Its part along x is −sin 2πs; the lateral part is like the vertical one but smaller.
    """
    way = np.zeros((len(phase), 3))
    way[:, 0] = gait.stride * phase
    way[:, 2] = 1.0
    half = 0.5
    for late, sign in ((0.0, -1.0), (0.5, 1.0)):
        p = np.mod(phase - late, 1.0)
        s = np.minimum(p / gait.duty, 1.0)
        # displacement by the push since the strike; time is in cycles
        place = gait.duty**2 * (s - np.sin(np.pi * s) / np.pi) / 2
        place += gait.duty * np.maximum(p - gait.duty, 0.0)
        drift = place - _mean_free(gait, p)
        up = GRAVITY * gait.period**2 * half / gait.duty
        way[:, 2] += up * drift
        way[:, 1] += sign * 0.06 * up * drift
        brake = gait.duty**2 * (np.sin(2 * np.pi * s) / (2 * np.pi) - s) / (2 * np.pi)
        brake += gait.duty**2 * p / (2 * np.pi)
        way[:, 0] += 0.25 * GRAVITY * gait.period**2 * brake
    return way


def _mean_free(gait: Gait, p: Floats) -> Floats:
    """Displacement by a constant push with the same mean until the phase p, so that the difference has period 1."""
    speed = gait.duty
    return np.asarray(speed * (p * p / 2 + p * (0.5 - gait.duty / 2)))


def _run_above(draft: Draft, phase: Floats, amount: float) -> None:
    """Leaning forwards, elbows bent, arms opposite to the legs."""
    angle = 2.0 * np.pi * phase
    yaw = -0.12 * amount * np.cos(angle + 0.5)
    tilt = 0.08 * np.cos(angle - 2.0 * np.pi * 0.12)
    chest = 0.16 * amount * np.cos(angle + 0.3)
    draft.turn("pelvis", x=tilt, y=0.10 + 0.02 * np.cos(2.0 * angle), z=yaw)
    draft.turn("torso", x=-0.9 * tilt, y=0.05 + 0.03 * np.cos(2.0 * angle + 0.8), z=chest - yaw)
    draft.turn("head", y=-0.14 - 0.03 * np.cos(2.0 * angle + 0.6), z=-0.95 * chest)
    for side, late in (("l", 0.0), ("r", np.pi)):
        swing = -np.cos(angle + late + 0.1)
        draft.arm(
            side,
            flexion=-0.10 + 0.62 * amount * swing,
            abduction=0.135 - 0.06 * swing,
            rotation=0.45 + 0.15 * swing,
            elbow=1.55 + 0.25 * swing,
        )
