"""Clips of our own making: they close, stand, fly and balance as people do, whatever their height."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import poise
from poise.characters import clips, humanoid
from poise.characters.anthropometry import KNUCKLES
from poise.collision.detector import contacts
from poise.motion import Clip, Coordinates, retarget
from poise.motion.rotations import cross, quat_conjugate, quat_multiply, quat_to_matrix, rotate

G = 9.81
PEOPLE = {
    "grown": {},
    "child": {"height": 1.2, "mass": 25.0},
    "giant": {"height": 2.1, "mass": 110.0},
    "woman": {"height": 1.65, "mass": 58.0, "sex": "female"},
    "handless": {"hands": False},
    "stout": {"height": 1.65, "mass": 90.0},
}
NAMES = ("stand", "walk", "run", "squat", "jump", "wave", "punch")
LOOPS = ("stand", "walk", "run")

everyone = pytest.mark.parametrize("who", [who for who in PEOPLE if who != "stout"])
every_clip = pytest.mark.parametrize("name", NAMES)


def scale(who: str) -> float:
    return float(PEOPLE[who].get("height", 1.75)) / 1.75


@functools.cache
def made(name: str, who: str = "grown", **options: Any) -> Clip:
    clip: Clip = getattr(clips, name)(humanoid(**PEOPLE[who]), **options)
    return clip


@functools.cache
def model_of(who: str) -> poise.Model:
    scene = poise.Scene()
    scene.add(humanoid(**PEOPLE[who]), name="hero")
    return scene.compile()


def once(clip: Clip) -> Clip:
    """A loop's one round as a clip that does not repeat."""
    return clip.slice(clip.times[0], clip.times[-1]) if clip.loop else clip


@functools.cache
def coordinates(name: str, who: str = "grown", **options: Any) -> tuple[np.ndarray, np.ndarray]:
    return retarget(once(made(name, who, **options)), model_of(who), floor=None, limits=False)


@functools.cache
def centre(name: str, who: str = "grown", **options: Any) -> np.ndarray:
    """(frames, 3) centre of mass at the keys, from the dynamics of the model."""
    model, (_, q) = model_of(who), coordinates(name, who, **options)
    return np.array([poise.dynamics.momentum(model, pose, np.zeros(model.nv)).com for pose in q])


def dense(clip: Clip, count: int = 1500) -> np.ndarray:
    """Times that are no keys."""
    return np.linspace(clip.times[0], clip.times[-1], count + 1)[:-1] + 0.37 * clip.duration / count


@functools.cache
def soles(name: str, who: str = "grown", **options: Any) -> dict[str, np.ndarray]:
    """By foot: (times, 4, 3) corners of the sole, those of the heel first, at dense times."""
    clip, world = made(name, who, **options), None
    world = clip.sample(dense(clip)).world()
    foot = next(body for body in humanoid(**PEOPLE[who]).bodies if body.name == "foot_l").shapes[0]
    half, middle = np.array(foot.size) / 2, np.array(foot.position)
    corners = middle + half * np.array([(-1, -1, -1), (-1, 1, -1), (1, -1, -1), (1, 1, -1)])
    found = {}
    for side in "lr":
        j = clip.skeleton.index(f"foot_{side}")
        place, quat = world.positions[:, j, None], world.quats_wxyz[:, j, None]
        found[side] = place + rotate(np.tile(quat, (1, 4, 1)), np.broadcast_to(corners, (len(place), 4, 3)))
    return found


def beyond(model: poise.Model, q: np.ndarray) -> dict[str, float]:
    """How far joints are beyond their limits at most over all frames (frames, nq); rad. Below 0: within."""
    worst = {}
    for i, (name, kind) in enumerate(zip(model.joint_names, model.joint_kinds, strict=True)):
        at = slice(int(model.joint_q_start[i]), int(model.joint_q_start[i + 1]))
        if kind == "ball":
            worst[name] = _beyond_ball(model, i, q[:, at])
        elif kind != "free":
            speeds = slice(int(model.joint_v_start[i]), int(model.joint_v_start[i + 1]))
            low, high = model.dof_limits[speeds].T
            worst[name] = float(np.maximum(low - q[:, at], q[:, at] - high).max())
    return worst


def _beyond_ball(model: poise.Model, joint: int, quats: np.ndarray) -> float:
    """The cone is an ellipse of the swing vector, the twist what is left; see
    poise.constraints.row_parts.orientation_parts.
    """
    frame = model.joint_frame[joint].reshape(3, 3)
    turned = quat_multiply(quats, quat_conjugate(model.joint_limit_centre[joint]))
    axis = np.einsum("ji,njk,k->ni", frame, quat_to_matrix(turned), frame[:, 0])
    across = cross(np.broadcast_to((1.0, 0.0, 0.0), axis.shape), axis)
    sine = np.linalg.norm(across, axis=1)
    swing = across * (np.arctan2(sine, axis[:, 0]) / np.maximum(sine, 1e-300))[:, None]
    twist = 2.0 * np.arctan2(turned[:, 1:] @ frame[:, 0], turned[:, 0])
    twist = (twist + np.pi) % (2 * np.pi) - np.pi
    ratio = np.hypot(*(swing[:, 1:] / model.joint_cone[joint]).T)
    low, high = model.joint_twist[joint]
    cone = (ratio.max() - 1.0) * float(min(model.joint_cone[joint]))
    return float(max(cone, (low - twist).max(), (twist - high).max()))


# ---- all clips -------------------------------------------------------------------------------------------------------


@every_clip
@everyone
def test_joints_stay_within_their_limits(name: str, who: str) -> None:
    worst = beyond(model_of(who), coordinates(name, who)[1])
    assert max(worst.values()) < 0.0, max(worst, key=lambda joint: worst[joint])


@every_clip
@everyone
def test_a_character_does_exactly_what_its_clip_shows(name: str, who: str) -> None:
    """The clip is made of turns that the joints have, so that retargeting has nothing to approximate."""
    model, clip = model_of(who), once(made(name, who))
    q = coordinates(name, who)[1]
    for k in np.linspace(0, len(q) - 1, 7).astype(int):
        seen = poise.dynamics.bodies(model, q[k])
        shown = clip.sample(clip.times[k]).world()
        for joint, part in enumerate(clip.skeleton.names):
            body = model.body_index(part)
            assert np.allclose(seen.position[body], shown.positions[joint], atol=1e-6)
            assert np.allclose(seen.rotation[body], quat_to_matrix(shown.quats_wxyz[joint]), atol=1e-6)


@every_clip
@pytest.mark.parametrize("who", ["grown", "child", "stout"])
def test_limbs_do_not_go_through_the_body(name: str, who: str) -> None:
    model, q = model_of(who), coordinates(name, who)[1]
    for k in np.linspace(0, len(q) - 1, 40).astype(int):
        assert not [touch for touch in contacts(model, q[k]) if touch.depth > 0.0]


@every_clip
@everyone
def test_soles_are_never_below_the_floor(name: str, who: str) -> None:
    for corners in soles(name, who).values():
        assert corners[..., 2].min() > -1e-3


@every_clip
@everyone
def test_soles_that_are_down_do_not_slide(name: str, who: str) -> None:
    for corners in soles(name, who).values():
        for corner in range(4):
            path = corners[:, corner]
            down = path[:, 2] < 2e-4
            for run in np.split(np.arange(len(path)), np.flatnonzero(np.diff(down)) + 1):
                if down[run[0]]:
                    assert np.ptp(path[run, :2], axis=0).max() < 1e-3


@every_clip
def test_velocities_and_accelerations_are_continuous(name: str) -> None:
    """Across a key, within a step in which the fastest change of the clip could not do more."""
    clip = made(name)
    inside = clip.times[1:-1]
    gap = 1e-7
    before, after = (clip.sample(inside + sign * gap) for sign in (-1, 1))
    for part, bound in (("velocities", "accelerations"), ("angular_velocities", "angular_accelerations")):
        most = np.abs(getattr(after, bound)).max() + 1e-3
        assert np.isfinite(most)
        assert np.abs(getattr(after, part) - getattr(before, part)).max() < 4 * gap * most
        jump = np.abs(getattr(after, bound) - getattr(before, bound)).max()
        assert jump < 1e-3 * most
    assert np.abs(clip.sample(dense(clip)).angular_accelerations).max() < 2000.0


@pytest.mark.parametrize("name", LOOPS)
@everyone
def test_loops_close_in_pose_and_velocity(name: str, who: str) -> None:
    clip = made(name, who)
    assert clip.loop
    # from either side, without going round: the clip's last keys carry on as its first
    first, last = clip.sample(clip.times[0] + 1e-9), clip.sample(clip.times[-1] - 1e-9)
    turn = np.abs(np.sum(first.quats_wxyz * last.quats_wxyz, axis=-1))
    assert np.allclose(turn, 1.0, atol=1e-12)
    assert np.allclose(first.translations[0] + clip.stride, last.translations[0], atol=1e-7)
    assert np.allclose(first.velocities, last.velocities, atol=1e-6)
    assert np.allclose(first.angular_velocities, last.angular_velocities, atol=1e-5)


@pytest.mark.parametrize("name", ["squat", "jump", "wave", "punch"])
def test_what_is_no_loop_starts_and_ends_at_rest_in_one_pose(name: str) -> None:
    clip = made(name)
    ends = clip.sample(clip.times[[0, -1]])
    assert np.abs(ends.velocities).max() < 5e-3
    assert np.abs(ends.angular_velocities).max() < 5e-2
    assert np.abs(ends.translations[0] - ends.translations[1]).max() < 1e-6
    assert np.allclose(np.abs(np.sum(ends.quats_wxyz[0] * ends.quats_wxyz[1], axis=-1)), 1.0, atol=1e-9)


# ---- walking and running ---------------------------------------------------------------------------------------------

SPEEDS = [("walk", 0.3), ("walk", 0.9), ("walk", 1.75), ("run", 2.0), ("run", 4.5)]


@pytest.mark.parametrize(("name", "speed"), SPEEDS)
def test_any_speed_is_kept_within_limits_and_on_the_floor(name: str, speed: float) -> None:
    clip = made(name, speed=speed)
    assert clip.stride[0] / clip.duration == pytest.approx(speed, rel=1e-12)
    later = clip.sample([0.3, 0.3 + 5 * clip.duration]).translations[:, 0, 0]
    assert later[1] - later[0] == pytest.approx(5 * speed * clip.duration)
    worst = beyond(model_of("grown"), coordinates(name, speed=speed)[1])
    assert max(worst.values()) < 0.0, max(worst, key=lambda joint: worst[joint])
    for corners in soles(name, speed=speed).values():
        assert corners[..., 2].min() > -1e-3


@pytest.mark.parametrize("name", ["walk", "run"])
@everyone
def test_half_a_period_later_it_is_its_own_mirror_image(name: str, who: str) -> None:
    clip = made(name, who)
    times = np.linspace(0.0, clip.duration, 40)
    own, image = clip.sample(times + clip.duration / 2), clip.mirrored().sample(times)
    assert np.allclose(np.abs(np.sum(own.quats_wxyz * image.quats_wxyz, axis=-1)), 1.0, atol=1e-9)
    assert np.allclose(own.translations[:, 0] - clip.stride / 2, image.translations[:, 0], atol=1e-6)


@everyone
def test_a_walker_always_has_a_foot_on_the_floor(who: str) -> None:
    lowest = np.min([corners[..., 2].min(axis=1) for corners in soles("walk", who).values()], axis=0)
    assert lowest.max() < 1e-3
    both = [corners[..., 2].min(axis=1) < 1e-3 for corners in soles("walk", who).values()]
    # a duty factor of 0.62: both are down in about 0.24 of the time
    assert 0.15 < np.mean(both[0] & both[1]) < 0.35


@everyone
def test_swinging_feet_clear_the_floor(who: str) -> None:
    clip = made("walk", who)
    times, corners = dense(clip), soles("walk", who)["l"]
    middle = (times > 0.72 * clip.duration) & (times < 0.9 * clip.duration)
    assert corners[middle, :, 2].min() > 0.008 * scale(who)


@everyone
def test_a_walkers_knees_and_hips_move_as_peoples_do(who: str) -> None:
    """Winter 2009, natural cadence: knees bend by 60° to 70° in the swing and nearly straighten in the stance."""
    model, (_, q) = model_of(who), coordinates("walk", who)
    knee = np.degrees(q[:, model.q_slice("knee_l")][:, 0])
    assert 50.0 < knee.max() < 75.0
    assert 2.0 < knee.min() < 12.0
    rise = np.ptp(q[:, 2]) / scale(who)
    assert 0.02 < rise < 0.06


@everyone
def test_a_runner_flies_and_falls_freely(who: str) -> None:
    """Keys are of a parabola in flight, so that their second difference is −g to the accuracy of the settling."""
    clip = made("run", who)
    heights = [corners[..., 2].min(axis=1) for corners in soles("run", who).values()]
    flying = np.mean(np.min(heights, axis=0) > 5e-4)
    assert 0.1 < flying < 0.4
    phase = clip.times / clip.duration % 0.5
    com, step = centre("run", who), clip.times[1]
    fall = (com[2:] - 2 * com[1:-1] + com[:-2]) / step**2
    free = (phase[1:-1] > 0.40 + 2 * step / clip.duration) & (phase[1:-1] < 0.5 - 2 * step / clip.duration)
    assert free.sum() >= 6
    assert np.allclose(fall[free], (0.0, 0.0, -G), atol=0.01)
    # elsewhere the floor only pushes
    assert fall[:, 2].min() > -G - 0.05


def speeds(name: str, times: np.ndarray) -> np.ndarray:
    """(times, 3) velocity of the centre of mass, from the clip's own curves; m/s."""
    parts = {body.name: body.inertia for body in humanoid().bodies}
    clip = made(name)
    world = clip.sample(times).world()
    masses = np.array([parts[part].mass for part in clip.skeleton.names])
    coms = np.array([parts[part].com for part in clip.skeleton.names])
    arms = rotate(world.quats_wxyz, np.broadcast_to(coms, world.positions.shape))
    points = world.velocities + cross(world.angular_velocities, arms)
    return np.einsum("k,nkj->nj", masses / masses.sum(), points)


@pytest.mark.parametrize(("name", "start", "end"), [("run", 0.39, 0.49), ("jump", 0.37, 0.53)])
def test_velocities_between_keys_are_those_of_free_fall(name: str, start: float, end: float) -> None:
    """Rotations go by splines, whose velocity is off by about h³ ω⃛/24: 1e-4 rad/s for limbs at most."""
    clip = made(name)
    times = np.linspace(start, end, 300) * clip.duration
    rest = speeds(name, times) + np.outer(times, (0.0, 0.0, G))
    assert np.abs(rest - rest.mean(axis=0)).max() < 2e-4


# ---- jumping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("height", [0.15, 0.3])
@everyone
def test_a_jumpers_centre_of_mass_rises_as_asked_and_falls_freely(who: str, height: float) -> None:
    high = height * scale(who)
    clip = made("jump", who, height=high)
    com, step = centre("jump", who, height=high), clip.times[1]
    feet = soles("jump", who, height=high)
    times = dense(clip)
    air = times[np.min([corners[..., 2].min(axis=1) for corners in feet.values()], axis=0) > 2e-4]
    assert air[-1] - air[0] == pytest.approx(2 * np.sqrt(2 * high / G), rel=0.15)
    inside = (clip.times[1:-1] > air[0] + 2 * step) & (clip.times[1:-1] < air[-1] - 2 * step)
    fall = (com[2:] - 2 * com[1:-1] + com[:-2]) / step**2
    assert np.allclose(fall[inside], (0.0, 0.0, -G), atol=0.02)
    # the floor pushes all the other time, and the toes leave where its push ends
    assert fall[:, 2].min() > -G - 0.05
    leaving = com[np.searchsorted(clip.times, air[0]), 2]
    assert com[:, 2].max() - leaving == pytest.approx(high, abs=0.04)


# ---- on the spot -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stand", "squat", "wave", "punch"])
@everyone
def test_the_centre_of_mass_stays_above_the_feet(name: str, who: str) -> None:
    clip, com = made(name, who), centre(name, who)
    feet, times = soles(name, who), dense(made(name, who))
    for k in np.linspace(0, len(com) - 1, 15).astype(int):
        at = int(np.clip(np.searchsorted(times, once(clip).times[k]), 0, len(times) - 1))
        points = np.concatenate([corners[at] for corners in feet.values()])
        hull = ConvexHull(points[points[:, 2] < 1e-3, :2])
        inside = -(hull.equations[:, :2] @ com[k, :2] + hull.equations[:, 2]).max()
        assert inside > 0.015 * scale(who)


def test_a_squat_can_be_performed_without_help() -> None:
    """By torques of the joints alone, on the ground, as `poise.control.Balance` finds them."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(humanoid(), name="hero")
    world = scene.build(dt=1 / 240)
    model = world.model
    clip = clips.squat(depth=0.7, seconds=3.5).resampled(240.0)
    times, q = retarget(clip, model)
    ends = np.clip(np.arange(len(q))[:, None] + (-1, 1), 0, len(q) - 1)
    rates = [poise.dynamics.difference(model, q[i], q[j]) for i, j in ends]
    v = np.array(rates) / np.diff(times[ends], axis=1)
    a = np.gradient(v, times, axis=0)

    def reference(time: float) -> Coordinates:
        k = min(round(time * 240), len(q) - 1)
        return Coordinates(q[k], v[k], a[k])

    world.q = q[0]
    world.add_controller(poise.control.Balance(reference))
    head, foot = (lambda: world.body("hero/head").position), (lambda: world.body("hero/foot_l").position)
    standing, planted = head(), foot()
    world.step(len(q) // 2)
    assert standing[2] - head()[2] > 0.3
    world.step(len(q) // 2 + 120)
    assert standing[2] - head()[2] < 0.03
    # it took no step, and is above its feet
    assert np.linalg.norm(foot() - planted) < 0.02
    com = poise.dynamics.momentum(model, world.q, world.v).com
    assert -0.066 < com[0] - foot()[0] < 0.2


def test_deeper_squats_are_deeper() -> None:
    low = [made("squat", depth=depth).root_positions[:, 2].min() for depth in (0.25, 0.5, 0.75, 1.0)]
    assert all(np.diff(low) < -0.05)


@pytest.mark.parametrize("side", ["l", "r"])
def test_a_waving_hand_goes_above_the_shoulder_to_and_fro(side: str) -> None:
    clip = made("wave", side=side, times=4)
    names = clip.skeleton
    world = clip.sample(np.linspace(1.1, clip.duration - 1.2, 400)).world().positions
    hand, head = world[:, names.index(f"hand_{side}")], world[:, names.index("head")]
    assert np.all(hand[:, 2] > head[:, 2] - 0.05)
    across = np.diff(np.sign(np.diff(hand[:, 1])))
    assert np.count_nonzero(across) >= 6


def knuckles(clip: Clip, who: str, side: str, time: float) -> np.ndarray:
    """The wrist is straight: its third knuckle is on the line from the elbow."""
    world = clip.sample(time).world()
    elbow, wrist = (world.positions[clip.skeleton.index(f"{part}_{side}")] for part in ("forearm", "hand"))
    return np.asarray(wrist + KNUCKLES["male"] * (wrist - elbow))


@pytest.mark.parametrize("target", [(0.6, 0.0, 1.3), (0.7, -0.1, 1.4), (0.65, 0.2, 1.2), (0.75, 0.05, 1.45)])
@pytest.mark.parametrize("side", ["l", "r"])
@pytest.mark.parametrize("who", ["grown", "child", "giant"])
def test_a_punch_hits_its_target(target: tuple[float, float, float], side: str, who: str) -> None:
    goal = scale(who) * np.array(target)
    clip = clips.punch(humanoid(**PEOPLE[who]), target=goal, side=side)
    assert np.allclose(knuckles(clip, who, side, 0.5), goal, atol=1e-3)
    assert np.linalg.norm(knuckles(clip, who, side, 0.0) - goal) > 0.15 * scale(who)


# ---- wings -----------------------------------------------------------------------------------------------------------


def test_wings_beat_within_their_limits_and_close() -> None:
    beat = clips.wing_beat()
    scene = poise.Scene()
    scene.add(poise.characters.bird(), name="gull")
    model = scene.compile()
    q, v, _ = beat.coordinates(model, np.linspace(0.0, beat.duration, 200))
    assert max(beyond(model, q).values()) < 0.0
    assert np.allclose(q[0], q[-1], atol=1e-9)
    assert np.allclose(v[0], v[-1], atol=1e-6)
    left, right = (q[:, model.q_slice(f"wing_{side}")] for side in "lr")
    assert np.allclose(left, right)
    assert np.ptp(left) > 1.0
    # the downstroke takes longer than the upstroke
    assert np.mean(np.diff(left[:, 0]) < 0.0) > 0.5


def test_the_bird_and_its_beat_have_their_size() -> None:
    gull = poise.characters.bird(span=1.4, mass=1.1)
    scene = poise.Scene()
    scene.add(gull, name="gull")
    assert scene.compile().body_mass.sum() == pytest.approx(1.1)
    # Pennycuick 1996 by hand: S = 2 · 1.4² · 0.18 · 0.408 m²
    area = 2 * 1.4**2 * 0.18 * 0.408
    by_hand = 1.1 ** (3 / 8) * 9.81**0.5 * 1.4 ** (-23 / 24) * area ** (-1 / 3) * 1.225 ** (-3 / 8)
    assert 1.0 / clips.wing_beat(gull).duration == pytest.approx(by_hand, rel=1e-6)


# ---- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: clips.walk(speed=-1.0), "speed: must be more than 0"),
        (lambda: clips.walk(speed=0.0), "speed: must be more than 0"),
        (lambda: clips.walk(speed=float("nan")), "speed"),
        (lambda: clips.walk(speed="fast"), "speed"),
        (lambda: clips.walk(speed=4.0), "found 4 m/s; is it a run?"),
        (lambda: clips.run(speed=1.0), "found 1 m/s; is it a walk?"),
        (lambda: clips.run(speed=300.0), "people of this height run at"),
        (lambda: clips.jump(height=3.0), "height: people of this height jump"),
        (lambda: clips.jump(height=-0.2), "height: must be more than 0 m"),
        (lambda: clips.squat(depth=1.5), "depth: must be at most 1"),
        (lambda: clips.squat(seconds=0.1), "seconds: must be from 1 to 60 s"),
        (lambda: clips.wave(times=0), "times: must be a whole number"),
        (lambda: clips.wave(times=2.5), "times: must be a whole number"),
        (lambda: clips.wave(side="left"), "side: must be one of"),
        (lambda: clips.punch(target=(3.0, 0.0, 1.4)), "target: must be .* from the shoulder"),
        (lambda: clips.punch(target=(-0.4, -0.1, 1.4)), "target: must be in front"),
        (lambda: clips.punch(target=(0.5, 1.0)), "target"),
        (lambda: clips.wing_beat(frequency=0.0), "frequency: must be more than 0"),
        (lambda: clips.wing_beat(frequency=1e4), "frequency: must be at most 100"),
        (lambda: clips.wing_beat(humanoid()), 'must be a bird, found no "trunk"'),
        (lambda: clips.walk(poise.characters.bird()), 'must be a humanoid, found no "pelvis"'),
        (lambda: poise.characters.bird(span=-1.0), "must be between"),
        (lambda: poise.characters.bird(mass=True), "must be a number in kg"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_character_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a character"):
        clips.walk("hero")
    with pytest.raises(TypeError, match="must be a character"):
        clips.wing_beat(3)
