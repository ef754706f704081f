"""A ball against the chest of someone who follows a clip: arms of bounded strength give way, and are back in a second.

Each blow is compared with the same motion without it, from the same state on. The ball is one of 5 kg at 12 m/s. It
bounces off, or it would come to lie on thighs and feet; and it passes through arms: what they do is the chest's doing.

Arms have 30 N·m. To hold one out takes 11, so that those of 8 or 15 are lost in jumps and runs without any blow
(`docs/tracking.md`). In a blow they cannot hold their places: a shoulder that gets 1 m/s leaves an arm behind, which
turns by m l / I = 1.13 kg m / 0.49 kg m² times that. 30 N·m have taken ω = 2.3 rad/s away after ω² I / 2 τ, or 2.5°. A
blow gives shoulders 1 to 3 m/s: less than 2° would be no giving way.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.characters import clips
from poise.control import correction
from poise.dynamics.measures import bodies, difference

DT = 1 / 240
STRENGTH = {"legs": 300.0, "trunk": 300.0, "arms": 30.0}
ARMS = {side: [f"hero/{joint}_{side}" for joint in ("shoulder", "elbow", "wrist")] for side in "lr"}
MASS, RADIUS, BOUNCE, SPEED = 5.0, 0.1, 0.8, 12.0
#: of the ball from the chest when it is thrown, more than it flies in a step; m
NEAR = 0.07
#: of the middle of the chest from the navel, and of its surface from there; m
CHEST, THICK = (0.0, 0.0, 0.2), 0.105
#: where a root is back: half of a foot's length; m
NEAR_BY = 0.13
#: after which arms are to be back, and for how long this is looked at; s
BACK, LOOK = 1.0, 0.1


def hero_and_ball(motion: Any, arms: float = STRENGTH["arms"], bounce: float = BOUNCE) -> poise.World:
    """Someone who follows a clip or a reference, and a ball that lies far away."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero").track(motion, strength=STRENGTH | {"arms": arms})
    ball = poise.sphere(RADIUS, mass=MASS, material=poise.Material(restitution=bounce))
    scene.add(ball, name="ball", position=(0.0, 60.0, RADIUS))
    scene.excluded_pairs += [("ball", f"hero/{part}_{s}") for part in ("upper_arm", "forearm", "hand") for s in "lr"]
    return scene.build(dt=DT)


def throw(world: poise.World, speed: float) -> None:
    """Put the ball before the chest, on its way there; `speed` is beside that of the chest."""
    model, place = world.model, bodies(world.model, world.q, world.v)
    torso = model.body_index("hero/torso")
    turn, twist = place.rotation[torso], place.twist[torso]
    front, arm = turn[:, 0], turn @ CHEST
    start = place.position[torso] + arm + (THICK + RADIUS + NEAR) * front
    velocity = twist[3:] + np.cross(twist[:3], arm) - speed * front
    world.q[model.q_slice("ball")] = (*start, 1.0, 0.0, 0.0, 0.0)
    world.v[model.v_slice("ball")] = (*velocity, 0.0, 0.0, 0.0)


@dataclass
class Blow:
    """What a blow did; degrees and m."""

    give: dict[str, float]
    """Of each arm: by how much a joint of it was elsewhere than without the blow, at most."""
    left: dict[str, float]
    """Of each arm: what is left of that a second later."""
    error: float
    """How far a joint of the arms is from the clip then, at most."""
    push: float
    """Of the root, at most."""
    root: float
    """Of the root, a second later; likewise what it leans."""
    lean: float


def strike(world: poise.World, state: poise.State, speed: float, look: float = LOOK) -> Blow:
    """Compare what comes with what would have come."""
    world.state = state
    calm = world.run(BACK + look)
    world.state = state
    throw(world, speed)
    hit = world.run(BACK + look)
    assert np.isfinite(hit.q).all()
    struck = next(e.time for e in hit.events if e.kind == "contact_begin" and set(e.names) == {"ball", "hero/torso"})
    assert struck - state.time < NEAR / speed + 2 * DT
    model, late = world.model, hit.time > struck + BACK
    assert late.any()
    gap = difference(model, calm.q, hit.q)
    clip = np.array([world.controllers["hero tracking"].at(t).q for t in hit.time])
    astray = difference(model, clip, hit.q)

    def turned(gap: np.ndarray, joints: list[str]) -> np.ndarray:
        return np.degrees([np.linalg.norm(gap[:, model.v_slice(joint)], axis=1) for joint in joints]).max(axis=0)

    both = [*ARMS["l"], *ARMS["r"]]
    root = model.v_slice("hero/root")
    way = np.linalg.norm(gap[:, root][:, :3], axis=1)
    return Blow(
        give={side: float(turned(gap, joints).max()) for side, joints in ARMS.items()},
        left={side: float(turned(gap, joints)[late].max()) for side, joints in ARMS.items()},
        error=float(turned(astray, both)[late].max()),
        push=float(way.max()),
        root=float(way[late].max()),
        lean=float(np.degrees(np.linalg.norm(gap[:, root][:, 3:], axis=1)[late].max())),
    )


def moments(clip: poise.motion.Clip) -> list[float]:
    """Soon after its beginning, a second before its end (of a loop: at its end), and between."""
    last = clip.duration if clip.loop else clip.duration - BACK
    return [0.1, 0.5 * (0.1 + last), last]


def blows(world: poise.World, times: list[float], speed: float, look: float = LOOK) -> list[Blow]:
    """One at each of some moments."""
    states = []
    for time in times:
        world.step(max(round((time - world.time) / DT), 0))
        states.append(world.state)
    return [strike(world, state, speed, look) for state in states]


def files() -> list[Path]:
    """Motions that lie beside the checkout, where there are any."""
    folder = Path(__file__).parents[3] / "shared" / "data"
    return [*sorted(folder.glob("bvh/cmu/*.bvh")), *sorted(folder.glob("deepmimic/humanoid3d_*.txt"))]


def loaded(file: Path) -> poise.motion.Clip:
    """A clip; two steps of a walk or a run are repeated, or they would be over within the second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clip = poise.load_motion(file)
    return clip.looped(1 / 30) if file.stem in ("humanoid3d_run", "humanoid3d_walk") else clip


def gives(blow: Blow) -> float:
    """By how much the arm that gives way more does so; degrees."""
    return max(blow.give.values())


def test_arms_of_a_walker_give_way_to_a_ball_and_recover_within_a_second():
    world = hero_and_ball(clips.walk())
    (soft,) = blows(world, [0.3], SPEED)
    (strong,) = blows(hero_and_ball(world.controllers["hero tracking"].reference, 90.0), [0.3], SPEED)
    assert min(soft.give.values()) > 2.0
    assert max(soft.left.values()) < 1.0
    # an arm that has its speed at once goes on for ω² I / 2 τ: three times as strong, a third as far, and as much again
    # for what the trunk does meanwhile
    assert 0.0 < gives(strong) < 2 / 3 * gives(soft)
    assert soft.push > 0.05
    assert soft.root < NEAR_BY
    assert soft.lean < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_arms_as_strong_as_the_clips_are_followed_with_recover_in_all_of_them(file):
    """Arms of 60 N·m, with which `test_tracking` follows the clips to 3° on the mean: a second after a blow no more
    than that is left, at eight moments of each clip but for one: in CMU's 02_04, just before a leap, whose landing
    is a second later; a quarter of a second after that it is 1.3°.
    """
    clip = loaded(file)
    first, _, last = moments(clip)
    eight = blows(hero_and_ball(clip, 60.0), np.linspace(first, last, 8).tolist(), SPEED)
    assert np.median([gives(blow) for blow in eight]) > 0.7
    assert min(map(gives, eight)) > 0.3
    left = sorted(max(blow.left.values()) for blow in eight)
    assert left[-2 if file.stem == "02_04" else -1] < 3.0
    assert left[-1] < 6.0
    assert sorted(blow.root for blow in eight)[-2] < NEAR_BY


JERKED = [file for file in files() if file.stem == "humanoid3d_run"]


@pytest.mark.slow
@pytest.mark.parametrize("file", [file for file in files() if file not in JERKED], ids=lambda file: file.stem)
def test_arms_give_way_to_a_ball_in_clips_of_others_and_recover_within_a_second(file):
    """At three moments of each: by 2° at two of them at least, as the crouch of DeepMimic's jump has 1° only."""
    clip = loaded(file)
    three = blows(hero_and_ball(clip), moments(clip), SPEED)
    assert sorted(map(gives, three))[1] > 2.0
    for blow in three:
        assert gives(blow) > 0.5
        assert max(blow.left.values()) < 1.0
        # feet that were pushed aside stay there until their next step
        assert blow.push > 0.05
        assert blow.root < NEAR_BY
        assert blow.lean < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("file", JERKED, ids=lambda file: file.stem)
def test_arms_give_way_in_a_run_that_jerks_them(file):
    """DeepMimic's run turns each arm by 40° within two frames, once a round. That takes 146 N·m. Arms of 30 are 55° off
    then, blow or no blow, and two that differ a little go ways of their own: they are as near to the clip as without a
    blow, and no nearer to each other. Arms of 60 come back to where they would have been, but for what the next jerk
    makes of the rest: to within 1° at most moments, and always within the 3° that joints may be off on the mean.
    """
    clip = loaded(file)
    weak = hero_and_ball(clip)
    strong = hero_and_ball(weak.controllers["hero tracking"].reference, 60.0)
    told = correction(weak.run(3.0), weak.controllers["hero tracking"])
    of_arms = [name in (*ARMS["l"], *ARMS["r"]) for name in told.joints]
    weak.reset()
    for blow in blows(weak, moments(clip), SPEED):
        assert gives(blow) > 2.0
        assert blow.error < told.error_deg[:, of_arms].max() + 1.0
        assert blow.root < NEAR_BY
    eight = blows(strong, [0.1 + k * clip.duration / 8 for k in range(8)], SPEED)
    assert min(map(gives, eight)) > 2.0
    left = sorted(max(blow.left.values()) for blow in eight)
    assert left[4] < 1.0
    assert left[-1] < 3.0
    assert max(blow.root for blow in eight) < NEAR_BY
