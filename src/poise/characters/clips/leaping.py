"""A jump: the centre of mass follows from the push of the floor and gravity, and the body from the centre of mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poise.characters.clips.curves import between, bump, quintic
from poise.characters.clips.figure import Draft, Figure, ankle_over, side_sign, turn
from poise.characters.clips.standing import balanced, breathe
from poise.model.scene import Character
from poise.motion import Clip
from poise.motion.motion_checks import positive

Floats = NDArray[np.float64]

GRAVITY = 9.81
#: keys per second
_RATE = 240.0
#: heights of a jump for a height of 1.75 m; m
_HEIGHTS = (0.12, 0.38)
#: pitch of feet, heels up, when toes leave the floor, in the air, and when toes touch it again; rad
_PUSH, _POINT, _TOUCH = 0.50, 0.60, 0.40
#: time for which heels rise before the toes leave; s, for a height of 1.75 m
_ROLL = 0.26
#: times in which toes reach the velocity of the body when they leave, and stop before they touch; s, likewise
_CATCH, _STOP = 0.07, 0.05


@dataclass(frozen=True)
class _Plan:
    """Times (s) and heights (m) of the centre of mass above the floor."""

    start: float
    low: float
    leave: float
    touch: float
    soft: float
    end: float
    standing: float
    crouch: float
    leaving: float
    touching: float
    landed: float
    speed: float
    """Speed at the take-off; m/s."""
    landing: float
    """Speed at the landing; m/s."""
    tuck: float
    """Lift of the feet in the air, relative to the body; m."""

    @property
    def times(self) -> Floats:
        count = round((self.end + 0.3) * _RATE)
        return np.arange(count + 1) / _RATE

    def height(self, now: Floats) -> Floats:
        """(n,) of the centre of mass."""
        z = np.full_like(now, self.standing)
        g = GRAVITY
        slow, up = 0.25 * g, 0.9 * g
        for first, last, begin, end in (
            (self.start, self.low, (self.standing, 0.0, 0.0), (self.crouch, 0.0, up)),
            (self.low, self.leave, (self.crouch, 0.0, up), (self.leaving, self.speed, -g)),
            (self.touch, self.soft, (self.touching, -self.landing, -g), (self.landed, 0.0, slow)),
            (self.soft, self.end, (self.landed, 0.0, slow), (self.standing, 0.0, 0.0)),
        ):
            part = (now >= first) & (now <= last)
            z[part] = quintic(now[part], first, last, begin, end)
        fly = (now > self.leave) & (now < self.touch)
        since = now[fly] - self.leave
        z[fly] = self.leaving + self.speed * since - 0.5 * g * since**2
        return z


def jump(character: Character | None = None, height: float | None = None) -> Clip:
    """A jump on the spot: a crouch, the push, the flight, the landing. In flight the centre of mass is ballistic.

    `height` (m) is the rise of the centre of mass after the toes have left the floor; by default 0.3 m for a figure of
    1.75 m. Raises ValueError for heights to which people of that height do not jump.

    >>> clip = jump(height=0.2)
    >>> bool(clip.root_positions[:, 2].max() > clip.root_positions[0, 2] + 0.2)
    True
    """
    figure = Figure(character)
    high = 0.3 * figure.scale if height is None else positive("height", height, "m")
    lower, upper = (bound * figure.scale for bound in _HEIGHTS)
    if not lower <= high <= upper:
        raise ValueError(f"height: people of this height jump {lower:.3g} to {upper:.3g} m high, found {high:g} m")
    plan = _plan(figure, high)
    now = plan.times
    draft = Draft(figure, now)
    _feet(draft, plan, now)
    _body(draft, plan, now)
    wanted = np.zeros((len(now), 3))
    wanted[:, 2] = plan.height(now)
    wanted[:, 0] = _way_forward(figure, plan, now)
    draft.settle(wanted, "xyz")
    draft.check("height")
    return draft.clip("jump")


def _standing_height(figure: Figure) -> float:
    """Height of the centre of mass in the standing pose at the start of clips; m."""
    draft = Draft(figure, np.zeros(1))
    for side in "lr":
        heel = np.array([(figure.heel, side_sign(side) * 0.095 * figure.scale, 0.0)])
        draft.foot(side, ankle_over(figure, heel, figure.heel, turn(z=np.zeros(1))), turn(z=np.zeros(1)))
    breathe(draft, 0.0)
    draft.root[:, 2] -= 0.006 * figure.scale
    balanced(draft)
    return float(draft.centre_of_mass()[0, 2])


def _plan(figure: Figure, high: float) -> _Plan:
    scale, slow = figure.scale, float(np.sqrt(figure.scale))
    standing = _standing_height(figure)
    effort = (high / scale / 0.3) ** 0.5
    speed = float(np.sqrt(2.0 * GRAVITY * high))
    leaving = standing + 0.082 * scale
    touching = standing + 0.012 * scale
    landing = float(np.sqrt(speed**2 + 2.0 * GRAVITY * (leaving - touching)))
    crouch = standing - 0.20 * scale * min(effort, 1.0)
    landed = standing - 0.14 * scale * min(effort, 1.2)
    start, low = 0.1, 0.1 + 0.55 * slow
    # the mean speed of a push that grows and fades is about 0.55 of the take-off speed
    leave = low + (leaving - crouch) / (0.55 * speed)
    touch = leave + (speed + landing) / GRAVITY
    soft = touch + (touching - landed) / (0.45 * landing)
    return _Plan(
        start=start,
        low=low,
        leave=leave,
        touch=touch,
        soft=soft,
        end=soft + 0.7 * slow,
        standing=standing,
        crouch=crouch,
        leaving=leaving,
        touching=touching,
        landed=landed,
        speed=speed,
        landing=landing,
        tuck=0.035 * scale,
    )


def _way_forward(figure: Figure, plan: _Plan, now: Floats) -> Floats:
    """(n,) x of the centre of mass: over the middle of the feet, over the toes when only they are down."""
    rest, toes = 0.19 * figure.foot_length, 0.62 * figure.foot_length
    there = between(now, plan.leave - 0.16, plan.leave) - between(now, plan.touch, plan.soft)
    # over the heels in the crouch, so that the ankles' range suffices
    back = between(now, plan.start, plan.low) - between(now, plan.low, plan.leave - 0.05)
    return np.asarray(rest + (toes - rest) * there - 0.03 * figure.scale * back)


def _feet(draft: Draft, plan: _Plan, now: Floats) -> None:
    """Heels rise, toes leave the floor and catch up with the body; then the same in reverse."""
    figure = draft.figure
    slow = float(np.sqrt(figure.scale))
    catch = _CATCH * slow
    pitch = np.zeros_like(now)
    first, last = plan.leave - _ROLL * slow, plan.leave
    rate = 3.0 * _PUSH / (last - first)
    bend = 6.0 * _PUSH / (last - first) ** 2
    part = (now > first) & (now <= last)
    pitch[part] = -_PUSH * ((now[part] - first) / (last - first)) ** 3
    air = (now > plan.leave) & (now < plan.touch)
    middle = plan.leave + 2.0 * catch
    rise = air & (now < middle)
    pitch[rise] = quintic(now[rise], plan.leave, middle, (-_PUSH, -rate, -bend), (-_POINT, 0.0, 0.0))
    rest = air & (now >= middle)
    pitch[rest] = -_POINT + (_POINT - _TOUCH) * between(now[rest], middle, plan.touch)
    flat = now >= plan.touch
    pitch[flat] = -_TOUCH * (1.0 - between(now[flat], plan.touch, plan.touch + 0.13))
    lift = np.zeros_like(now)
    lift[air] = _toe_height(plan, now[air], catch, _STOP * slow)
    for side in "lr":
        yaw = 0.12 * side_sign(side)
        along = np.array((np.cos(yaw), np.sin(yaw), 0.0))
        toe = np.array((0.0, side_sign(side) * 0.095 * figure.scale, 0.0)) + figure.toe * along
        toes = np.tile(toe, (len(now), 1))
        toes[:, 2] = lift
        quat = turn(y=-pitch, z=yaw)
        draft.foot(side, ankle_over(figure, toes, figure.toe, quat), quat)


def _toe_height(plan: _Plan, now: Floats, catch: float, stop: float) -> Floats:
    """(n,) height of toes above the floor in flight: the body's rise, less its lead until toes have its velocity."""
    g = GRAVITY
    since, left = now - plan.leave, plan.touch - now
    rise = plan.speed * since - 0.5 * g * since**2
    gap, late = 0.42 * plan.speed * catch, 0.42 * plan.landing * stop
    fall = plan.leaving - plan.touching
    behind = np.full_like(now, gap)
    early = since < catch
    behind[early] = quintic(since[early], 0.0, catch, (0.0, plan.speed, -g), (gap, 0.0, 0.0))
    # before the landing the body comes down on them: its rise is −fall when they touch
    ending = left < stop
    ahead = np.full_like(now, late)
    ahead[ending] = quintic(left[ending], 0.0, stop, (0.0, plan.landing, -g), (late, 0.0, 0.0))
    share = between(now, plan.leave + catch, plan.touch - stop)
    tuck = plan.tuck * bump((now - plan.leave) / (plan.touch - plan.leave))
    return np.asarray(rise - behind + share * (behind - ahead + fall) + tuck)


def _body(draft: Draft, plan: _Plan, now: Floats) -> None:
    """Trunk and arms: bent with arms back in the crouch, upright with arms up in the air, bent again in the landing."""
    down = between(now, plan.start, plan.low) - between(now, plan.low + 0.04, plan.leave + 0.03)
    up = between(now, plan.low + 0.05, plan.leave + 0.05) - between(
        now, plan.leave + 0.25 * (plan.touch - plan.leave), plan.soft
    )
    soft = between(now, plan.touch - 0.06, plan.soft) - between(now, plan.soft, plan.end)
    draft.turn("pelvis", y=0.02 + 0.70 * down + 0.58 * soft)
    draft.turn("torso", y=0.03 + 0.38 * down - 0.06 * up + 0.35 * soft)
    draft.turn("head", y=-0.04 - 0.65 * down - 0.05 * up - 0.5 * soft)
    for side in "lr":
        draft.arm(
            side,
            flexion=0.04 - 0.75 * down + 2.3 * up + 0.9 * soft,
            abduction=-0.02 + 0.10 * down + 0.15 * up + 0.25 * soft,
            rotation=0.25 - 0.15 * up,
            elbow=0.22 + 0.15 * down + 0.35 * up + 0.35 * soft,
            wrist=0.12,
        )
