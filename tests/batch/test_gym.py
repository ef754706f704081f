"""Environments of Gymnasium: what they promise to learners, and what is measured for rewards, by other ways."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import poise
from poise.collision.ray_casting.rays import places
from poise.control.reference import Reference
from poise.gym import Imitate, ImitateVectorEnv, Stand, StandVectorEnv, Task, Walk
from poise.gym.clip_table import RATE, ClipTable, chosen_clip
from poise.gym.figure import Figure
from poise.model.shape_arrays import Solid

NAMES = ("Stand", "Walk", "Imitate")


@pytest.fixture(scope="module")
def figure() -> Figure:
    return Figure()


@pytest.fixture(scope="module")
def imitate() -> Imitate:
    return Imitate(4, threads=1)


def moved(figure: Figure, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Poses and velocities of all kinds, near the ground."""
    rng, model = np.random.default_rng(seed), figure.model
    rest = np.tile(model.q_rest, (n, 1))
    q = poise.dynamics.displaced(model, rest, rng.uniform(-0.8, 0.8, (n, model.nv)))
    return q, rng.normal(size=(n, model.nv))


def play(env: gymnasium.Env, seed: int, actions: np.ndarray) -> list[tuple]:
    """Episodes one after another, begun anew as a vector environment does."""
    told, over = [(env.reset(seed=seed)[0], 0.0, False, False)], False
    for action in actions:
        told.append((env.reset()[0], 0.0, False, False) if over else env.step(action)[:4])
        over = told[-1][2] or told[-1][3]
    return told


# ---- the interface -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_no_fault(name) -> None:
    env = gymnasium.make(f"poise.gym:poise/{name}-v0", render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    assert env.observation_space.dtype == env.action_space.dtype == np.float32
    assert np.isfinite(env.observation_space.high).all()
    assert env.metadata["render_fps"] == pytest.approx(30.0)
    assert isinstance(env, gymnasium.wrappers.TimeLimit)


@pytest.mark.parametrize("name", NAMES)
def test_a_world_among_many_does_what_it_does_alone(name) -> None:
    """To the bit, through the ends of episodes: world i has the seed plus i."""
    n, steps, options = 20, 45, {"max_episode_steps": 40}
    vector = gymnasium.make_vec(f"poise/{name}-v0", num_envs=n, vectorization_mode="vector_entry_point", **options)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (steps, n, 30)).astype(np.float32)
    actions[:, 11] = 0.0  # one stands longer
    together = [(vector.reset(seed=7)[0], np.zeros(n), np.zeros(n, bool), np.zeros(n, bool))]
    together += [vector.step(action)[:4] for action in actions]
    assert vector.observation_space.contains(together[-1][0])
    for i in (0, 11, 19):
        alone = play(gymnasium.make(f"poise/{name}-v0", **options), 7 + i, actions[:, i])
        assert sum(step[2] or step[3] for step in alone) >= 1
        for now, then in zip(together, alone, strict=True):
            assert np.array_equal(now[0][i], then[0])
            assert (now[1][i], bool(now[2][i]), bool(now[3][i])) == then[1:]


def test_seeds_decide_and_differ() -> None:
    env = StandVectorEnv(3, threads=1, push=50.0)
    runs = []
    for seed in (1, 1, 2, [1, None, 3]):
        first = env.reset(seed=seed)[0]
        runs.append(np.stack([first, *(env.step(np.zeros((3, 30)))[0] for _ in range(5))]))
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0][:, 1], runs[2][:, 0])  # both have the seed 2
    assert not np.array_equal(runs[0][:, 0], runs[2][:, 0])
    assert np.array_equal(runs[3][:, 0], runs[0][:, 0])
    assert np.array_equal(runs[3][:, 2], runs[0][:, 2])


def test_generators_are_those_of_the_worlds() -> None:
    """As in Gymnasium's own vectors: one each, with the seed that it got."""
    env = StandVectorEnv(3, threads=1)
    assert env.np_random_seed == (-1, -1, -1)
    env.reset(seed=5)
    assert env.np_random_seed == (5, 6, 7)
    env.reset(seed=[1, None, 2], options={"reset_mask": np.array([True, True, False])})
    assert env.np_random_seed == (1, 6, 7)
    drawn = []
    for seed in (9, np.int64(9), np.array(9)):
        env.reset(seed=seed)
        drawn.append([rng.random() for rng in env.np_random])
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(set(drawn[0])) == 3


def test_episodes_are_cut_and_begin_anew_in_the_step_after() -> None:
    env = StandVectorEnv(4, threads=1, max_episode_steps=3)
    first = env.reset(seed=0)[0]
    told = [env.step(np.zeros((4, 30))) for _ in range(5)]
    assert [step[3].tolist() for step in told] == [[False] * 4, [False] * 4, [True] * 4, [False] * 4, [False] * 4]
    assert not any(step[2].any() for step in told)
    assert (told[3][1] == 0.0).all()
    assert (told[3][4]["_up"] == False).all()  # noqa: E712
    assert (env.task.age == 1).all()
    assert not np.array_equal(told[3][0], first)  # another draw
    env.reset(options={"reset_mask": np.array([True, False, False, False])})
    assert env.task.age.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("kind", [Stand, Walk, Imitate])
def test_a_world_that_diverges_is_over_and_begins_anew(kind) -> None:
    env = {Stand: StandVectorEnv, Imitate: ImitateVectorEnv}.get(kind, poise.gym.WalkVectorEnv)(3, threads=1)
    env.reset(seed=0)
    env.task.batch.tau[1, 8] = np.nan
    seen, reward, ended, cut, _ = env.step(np.zeros((3, 30)))
    assert np.isfinite(seen).all()
    assert ended.tolist() == [False, True, False]
    assert not cut.any()
    assert reward[1] == 0.0
    assert (reward[[0, 2]] > 0.0).all()
    env.task.batch.tau[1, 8] = 0.0
    seen, _, ended, _, _ = env.step(np.zeros((3, 30)))
    assert not ended.any()
    assert not env.task.batch.diverged.any()
    assert np.isfinite(seen).all()


def test_enormous_speeds_stay_within_the_space() -> None:
    env = StandVectorEnv(2, threads=1)
    env.reset(seed=0)
    env.task.batch.v[0] = 1e18
    seen, reward, ended, _, _ = env.step(np.zeros((2, 30)))
    assert env.observation_space.contains(seen)
    assert np.isfinite(reward).all()
    assert ended[0]


def test_pictures_show_who_is_there() -> None:
    env = StandVectorEnv(2, threads=1, render_mode="rgb_array", size=(96, 72))
    env.reset(seed=0)
    one, other = env.render()
    assert one.shape == (72, 96, 3)
    assert one.dtype == np.uint8
    assert np.ptp(one.astype(int)) > 100
    env.task.batch.q[1, 2] += 0.3
    assert (env.render()[1] != other).any()
    assert StandVectorEnv(1, threads=1).render() is None


@pytest.mark.parametrize("what", ["stand", "raise arms", "jump", "fall"])
def test_who_is_there_is_in_the_picture(what) -> None:
    """All of a person is at least two pixels from the edges, which look as the ground and sky do without anyone."""
    env = poise.gym.ImitateEnv(clip="jump", render_mode="rgb_array", size=(96, 72))
    env.reset(seed=0)
    task, model = env.task, env.task.figure.model
    q = model.q_rest.copy()
    if what == "raise arms":
        action = np.zeros((1, 30))
        action[0, [model.v_slice(f"hero/shoulder_{side}").start - 6 for side in "lr"]] = 1.0
        q = task.figure.joints.targets(action)[0]
    elif what == "jump":
        motion = task.table.at(np.linspace(0.0, task.table.duration, 200)).q
        q = motion[np.argmax(motion[:, 2])]
        assert q[2] > task.figure.hips + 0.2
    elif what == "fall":
        q[2], q[3:7] = 0.12, poise.motion.rotations.quat_exp((0.0, np.pi / 2, 0.0))
    task.batch.q[0] = q
    shown = [env.render().astype(int)]
    task.batch.q[0, :3] += (0.0, 0.0, -50.0)  # under the ground: the camera stays at the height of who stands
    if what != "jump":
        shown.append(env.render().astype(int))
        differs = np.abs(shown[0] - shown[1]).max(axis=2) > 12
        assert differs.sum() > 100
        assert not differs[:2].any()
        assert not differs[:, :2].any()
        assert not differs[:, -2:].any()
        assert not differs[-2:].any()
    else:
        assert np.abs(np.diff(shown[0][:3], axis=1)).max() < 12  # the sky alone
        assert np.abs(np.diff(shown[0][20:40], axis=1)).max() > 50


# ---- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Imitate", {"clip": "wlak"}, 'there is no clip "wlak", did you mean "walk"'),
        ("Imitate", {"clip": 3}, "clip must be a poise.motion.Clip or a name, not int"),
        ("Imitate", {"stray": float("nan")}, "stray is nan; it must be a finite number, 0 or more"),
        ("Stand", {"num_envs": 0}, "num_envs is 0; it must be a whole number, 1 or more"),
        ("Stand", {"num_envs": -3}, "num_envs is -3"),
        ("Stand", {"num_envs": 2.5}, "num_envs is 2.5"),
        ("Stand", {"push": -1.0}, "push is -1.0; it must be a finite number, 0 or more"),
        ("Stand", {"frame_skip": 0}, "frame_skip is 0; it must be a whole number, 1 or more"),
        ("Stand", {"noise": "much"}, "noise is 'much'"),
        ("Stand", {"dt": -0.01}, "dt is -0.01"),
        ("Stand", {"render_mode": "human"}, "render_mode is 'human'; it must be \"rgb_array\" or None"),
        ("Stand", {"height": 175}, "175 cm are 1.75 m"),
        ("Stand", {"max_episode_steps": 0}, "max_episode_steps is 0"),
        ("Walk", {"speed": (1.0, 0.5)}, "the least comes first"),
        ("Walk", {"speed": (1.0, 0.5, 2.0)}, "it must be a number, or the least and the greatest"),
        ("Walk", {"speed": "fast"}, "speed is 'fast'"),
        ("Walk", {"speed": np.array((1.0, 0.5))}, "the least comes first"),
        ("Walk", {"sped": 1.0}, "unexpected keyword argument 'sped'"),
    ],
)
def test_mistakes_are_told(name, options, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        getattr(poise.gym, f"{name}VectorEnv")(**options)


def test_a_single_pose_is_no_motion() -> None:
    clip = poise.characters.clips.walk()
    pose = clip.keyed(clip.times[:1], clip.quats_wxyz[:1], clip.translations[:1], loop=False, stride=(0, 0, 0))
    with pytest.raises(ValueError, match="is a single pose"):
        Imitate(1, clip=pose)


def test_actions_that_cannot_be_taken_are_refused() -> None:
    env = gymnasium.make("poise/Stand-v0").unwrapped
    env.reset(seed=0)
    before = env.task.batch.q.copy()
    with pytest.raises(ValueError, match=r"action has the shape \(7,\); it must be \(30,\)"):
        env.step(np.zeros(7))
    bad = np.zeros(30)
    bad[4] = np.nan
    with pytest.raises(ValueError, match=r"actions\[0, 4\] is nan; every action must be finite"):
        env.step(bad)
    vector = StandVectorEnv(3, threads=1)
    with pytest.raises(ValueError, match=r"actions have the shape \(30,\); it must be \(3, 30\)"):
        vector.step(np.zeros(30))
    with pytest.raises(ValueError, match="actions must be numbers, found str"):
        vector.step("left")
    for wrong in (np.zeros((3, 30)) * 1j, [["0.5"] * 30] * 3, np.full((3, 30), None), [[0.0], [0.0, 0.0]]):
        with pytest.raises(ValueError, match="actions must be numbers"):
            vector.step(wrong)
        with pytest.raises(ValueError, match="actions must be numbers"):
            env.step(wrong[0] if len(wrong) == 3 else wrong)
    with pytest.raises(ValueError, match="2 seeds for 3 worlds"):
        vector.reset(seed=[1, 2])
    for seed in (1.5, -1, True, "x", [1, 2, 3.5], [1, 2, -3]):
        with pytest.raises(ValueError, match="it must be a whole number, 0 or more"):
            vector.reset(seed=seed)
    with pytest.raises(ValueError, match="reset_mask must be"):
        vector.reset(options={"reset_mask": [True, False]})
    assert np.array_equal(before, env.task.batch.q)


def test_poise_does_without_gymnasium_and_says_so() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import poise; import poise.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: poise.gym needs Gymnasium: pip install gymnasium, or the extra poise[gym]" in done.stderr
    code = "import sys, poise; poise.Batch; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- what actions do ---------------------------------------------------------------------------------------------


def test_actions_reach_the_ends_of_ranges_and_back(figure) -> None:
    joints, model = figure.joints, figure.model
    assert np.array_equal(joints.targets(np.zeros((1, 30)))[0], model.q_rest)
    knee = model.q_slice("hero/knee_l").start
    bend = np.zeros((1, 30))
    bend[0, model.v_slice("hero/knee_l").start - 6] = 1.0
    assert joints.targets(bend)[0, knee] == pytest.approx(np.radians(135))
    actions = np.random.default_rng(0).uniform(-0.6, 0.6, (50, 30))  # so that turns of balls stay below half a turn
    assert joints.actions(joints.targets(actions)) == pytest.approx(actions, abs=1e-12)


def test_an_arm_is_raised_forward_by_the_twist_of_the_shoulder(figure) -> None:
    """Flexion is the first number of a shoulder: 170° forward at 1."""
    model, action = figure.model, np.zeros((1, 30))
    action[0, model.v_slice("hero/shoulder_r").start - 6] = 0.5
    q = figure.joints.targets(action)
    seen = figure.look(q, np.zeros((1, model.nv)))
    arm = seen.ends[0, 1] - seen.bodies.position[0, figure.body("upper_arm_r")]
    # the arm hangs 8° away from the trunk; turned about the side-to-side axis only that part stays
    assert np.degrees(np.arctan2(arm[0], -arm[2])) == pytest.approx(85.0, abs=1e-3)


def test_springs_pull_no_stronger_than_joints_are(figure) -> None:
    q, _ = moved(figure, 20)
    actions = np.random.default_rng(1).uniform(-1.0, 1.0, (20, 30))
    goals = figure.joints.goals(q, actions)
    pull = figure.joints.gain * poise.dynamics.difference(figure.model, q, goals)[:, 6:]
    assert (np.abs(pull) <= figure.joints.strength * (1.0 + 1e-9)).all()
    assert (np.abs(pull) > 0.99 * figure.joints.strength).any()
    assert goals[:, :7] == pytest.approx(q[:, :7])


def test_ankles_are_too_weak_to_stand_by_springs_alone(figure) -> None:
    ankle = figure.joints.gain[figure.model.v_slice("hero/ankle_l").start - 6]
    seen = figure.look(figure.model.q_rest[None], np.zeros((1, figure.model.nv)))
    above = float(seen.com[0, 2] - seen.feet[0, 2])
    assert 2.0 * ankle < figure.weight * above


# ---- what is measured --------------------------------------------------------------------------------------------


def test_undersides_are_where_the_shapes_end(figure) -> None:
    """Beside the lowest of many points on each shape's surface."""
    q, v = moved(figure, 6)
    found = figure.undersides.heights(figure.look(q, v).bodies)
    solids, rng = figure.model.solids, np.random.default_rng(0)
    ball = rng.normal(size=(40000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    feet = {figure.body("foot_l"), figure.body("foot_r")}
    chosen = [i for i in range(len(solids)) if solids.link[i] >= 0 and int(solids.body[i]) not in feet]
    for world, pose in enumerate(q):
        centre, turn = places(figure.model, pose)
        for k, i in enumerate(chosen):
            a, b, c = solids.size[i]
            if solids.kind[i] == Solid.CAPSULE:
                points = np.concatenate([a * ball + (0, 0, end) for end in (-b, b)])
            elif solids.kind[i] == Solid.BOX:
                points = np.sign(ball) * (a, b, c)
            else:
                points = ball * (a, b, c)
            lowest = (centre[i] + points @ turn[i].T)[:, 2].min()
            # 40000 directions: the nearest to any is some 0.02 rad off, which is 0.02² / 2 of a size of 0.1 m
            assert found[world, k] == pytest.approx(lowest, abs=1e-4)


def test_what_is_seen_does_not_depend_on_where_one_faces(figure) -> None:
    task, model = Stand(2, threads=1), figure.model
    q, v = moved(figure, 1)
    turn = poise.motion.rotations.quat_exp((0.0, 0.0, 1.1))
    other, spun = q.copy(), v.copy()
    other[0, :3] = poise.motion.rotations.rotate(turn, q[0, :3]) + np.array((3.0, -2.0, 0.0))
    other[0, 3:7] = poise.motion.rotations.quat_multiply(turn, q[0, 3:7])
    spun[0, :3] = poise.motion.rotations.rotate(turn, v[0, :3])  # spins are in the body's axes
    task.seen = figure.look(np.concatenate((q, other)), np.concatenate((v, spun)))
    one, two = task.observe()
    assert one == pytest.approx(two, abs=2e-5)
    assert len(one) == 1 + 3 * 3 + 2 * (model.nv - 6) + 12 + 6


@pytest.mark.parametrize("name", ["walk", "jump"])
def test_a_table_is_the_motion(figure, name) -> None:
    clip = getattr(poise.characters.clips, name)()
    table, reference = ClipTable(clip, figure), Reference(clip, figure.model)
    times = np.random.default_rng(0).uniform(0.0, 3.0 if clip.loop else table.duration, 40)
    there, now = reference.coordinates(figure.model, reference.start + times), table.at(times)
    # straight lines between rows: off by h²/8 of the second derivative, which a fine grid tells, and by float32
    fine = np.arange(0.0, table.duration, 1.0 / (4.0 * RATE))
    path = reference.coordinates(figure.model, reference.start + fine)
    off = np.abs(poise.dynamics.difference(figure.model, there.q, now.q)).max()
    assert off < np.abs(path.a).max() / (8.0 * RATE**2)
    ends = poise.dynamics.bodies(figure.model, path.q).position[:, figure.ends]
    bound = np.linalg.norm(np.diff(ends, 2, axis=0), axis=-1).max() * (4.0 * RATE) ** 2 / (8.0 * RATE**2)
    seen = figure.look(there.q, there.v)
    assert np.linalg.norm(now.ends - seen.ends, axis=-1).max() < 1.1 * bound + 2e-6
    assert np.linalg.norm(now.com - seen.com, axis=-1).max() < 1.1 * bound + 2e-6
    assert 40.0 * 4.0 * bound**2 < 1e-3  # the reward for four ends does not notice
    assert np.hypot(*table.phase(times).T) == pytest.approx(1.0)


def test_people_of_any_height_can_imitate_what_is_built_in() -> None:
    """Walks and runs are as fast for their height: steps take √(0.6 / 1.75) of the time."""
    for name in ("walk", "run"):
        small, grown = (chosen_clip(name, height, mass) for height, mass in ((0.6, 4.0), (1.75, 70.0)))
        assert small.duration / grown.duration == pytest.approx(np.sqrt(0.6 / 1.75), rel=0.02)
        plain = getattr(poise.characters.clips, name)(poise.characters.humanoid(height=1.75, mass=70.0))
        assert np.array_equal(grown.quats_wxyz, plain.quats_wxyz)


def test_joints_of_a_clip_may_have_any_names(figure) -> None:
    """A clip whose names say nothing, and `parts` that tells: the same motion as with names that do."""
    clip = poise.characters.clips.walk()
    skeleton = clip.skeleton
    names = [f"bone {k}" for k in range(len(skeleton.names))]
    told = dict(zip(skeleton.names, names, strict=True))
    blank = poise.motion.Skeleton(names, skeleton.parents, skeleton.offsets, skeleton.rest_quats_wxyz, skeleton.tips)
    options = {"moved": [told[clip.skeleton.names[k]] for k in clip.moved], "loop": clip.loop, "stride": clip.stride}
    strange = poise.motion.Clip(blank, clip.times, clip.quats_wxyz, clip.translations, **options)
    with pytest.raises(ValueError, match="parts="):
        Imitate(1, clip=strange, threads=1)
    task = Imitate(1, clip=strange, parts=told, threads=1)
    expected = ClipTable(clip, figure)
    times = np.linspace(0.0, 2.0, 9)
    assert task.table.at(times).q == pytest.approx(expected.at(times).q, abs=1e-9)


# ---- what is paid ------------------------------------------------------------------------------------------------


def test_who_moves_as_the_clip_is_paid_in_full(imitate) -> None:
    imitate.rngs = [np.random.default_rng(i) for i in range(4)]
    imitate.reset()
    out = imitate.outcome(imitate.seen)
    for name, term in out.terms.items():
        assert term == pytest.approx(1.0, abs=1e-4), name
    assert out.reward == pytest.approx(1.0, abs=1e-4)
    assert not out.ended.any()
    assert len(set(imitate.times.tolist())) == 4  # each begins elsewhere in the motion


def test_the_reward_of_imitation_is_that_of_the_paper(imitate) -> None:
    """Beside a plain sum over joints and ends (Peng et al. 2018, eqs. 3 to 7)."""
    model, figure = imitate.figure.model, imitate.figure
    q, v = (0.4 * part for part in moved(figure, 4, seed=2))
    now = imitate.table.at(imitate.times)
    q = poise.dynamics.displaced(model, now.q, 0.1 * v)
    seen = figure.look(q.astype(np.float32), (now.v + v).astype(np.float32))
    out = imitate.outcome(seen)
    for i in range(4):
        apart = poise.dynamics.difference(model, q[i], now.q[i])[3:]
        placed = poise.dynamics.bodies(model, q[i]), poise.dynamics.bodies(model, now.q[i])
        ends = sum(np.sum((placed[0].position[b] - placed[1].position[b]) ** 2) for b in figure.ends)
        centres = [poise.dynamics.momentum(model, pose, v[i]).com for pose in (q[i], now.q[i])]
        paid = 0.65 * np.exp(-2.0 * np.sum(apart**2)) + 0.1 * np.exp(-0.1 * np.sum(v[i, 6:] ** 2))
        paid += 0.15 * np.exp(-40.0 * ends) + 0.1 * np.exp(-10.0 * np.sum((centres[0] - centres[1]) ** 2))
        assert out.reward[i] == pytest.approx(paid, abs=2e-4)


def test_imitation_ends_early_and_is_cut_at_the_end_of_a_clip(imitate) -> None:
    far = imitate.seen.q.copy()
    far[0, 0] += 0.61
    far[1, 2] -= 0.59  # a trunk near the ground: thighs and hands go through it
    seen = imitate.figure.look(far, imitate.seen.v)
    assert imitate.outcome(seen).ended.tolist() == [True, True, False, False]
    task = Imitate(2, clip=poise.characters.clips.squat(), random_start=False, early_end=False, threads=1)
    task.reset()
    lasts = int(np.ceil(task.table.duration / task.period - 1e-6))
    cuts = [task.step(np.zeros((2, 30))).cut[0] for _ in range(lasts)]
    assert cuts == [False] * (lasts - 1) + [True]


def test_going_after_the_clip_pays_more_than_standing_there() -> None:
    env = ImitateVectorEnv(16, threads=1)
    earned = []
    for follow in (True, False):
        env.reset(seed=0)
        total, alive = np.zeros(16), np.ones(16, bool)
        for _ in range(20):
            task = env.task
            wanted = task.figure.joints.actions(task.table.at(task.times + task.period).q)
            _, reward, ended, _, _ = env.step(np.clip(wanted, -1, 1) if follow else np.zeros((16, 30)))
            total += reward * alive
            alive &= ~ended
        earned.append(total.mean())
    assert earned[0] > 1.5 * earned[1]


def test_walking_pays_for_the_speed_that_was_asked_for() -> None:
    task = Walk(3, speed=(0.5, 1.5), threads=1, effort=0.0, noise=0.0)
    task.rngs = [np.random.default_rng(i) for i in range(3)]
    task.reset()
    assert ((task.target >= 0.5) & (task.target <= 1.5)).all()
    assert len(set(task.target.tolist())) == 3
    assert task.observe()[:, -1] == pytest.approx(task.target)
    v = np.zeros((3, 36))
    v[:, 0] = task.target + np.array((0.0, 0.5, 0.0))
    v[2, 1] = 0.5
    out = task.outcome(task.figure.look(task.seen.q, v.astype(np.float32)))
    assert out.reward == pytest.approx([1.0, 0.3 + 0.7 * np.exp(-1.0), 0.3 + 0.7 * np.exp(-1.0)], abs=1e-5)


def test_power_is_what_springs_and_dampers_do(figure) -> None:
    q, v = moved(figure, 5)
    goals = figure.joints.goals(q, np.random.default_rng(3).uniform(-1.0, 1.0, (5, 30)))
    gain = np.concatenate((np.zeros(6), figure.joints.gain))
    drive = poise.dynamics.Drive(gain, 0.1 * gain, goals)
    still = [
        poise.dynamics.inverse_dynamics(figure.model, q, v, np.zeros_like(v), drive=each) for each in (None, drive)
    ]
    assert figure.joints.torques(q, v, goals) == pytest.approx((still[0] - still[1])[:, 6:], abs=1e-8)


def test_who_lies_has_fallen_and_who_stands_has_not(figure) -> None:
    task = Stand(2, threads=1, noise=0.0)
    task.reset()
    assert task.outcome(task.seen).reward == pytest.approx(1.0, abs=1e-5)
    q = task.seen.q.copy()
    q[1, 3:7] = poise.motion.rotations.quat_exp((0.0, np.pi / 2, 0.0))
    q[1, 2] = 0.9
    out = task.outcome(figure.look(q, task.seen.v))
    assert out.ended.tolist() == [False, False]  # in the air
    assert out.reward[1] == pytest.approx(0.0, abs=1e-5)
    q[1, 2] = 0.1
    assert task.outcome(figure.look(q, task.seen.v)).ended.tolist() == [False, True]


def test_pushes_are_as_strong_as_drawn() -> None:
    """The sum of forces over time, from one push to the next; the least gap is 1.5 s."""
    for skip in (4, 3):
        task = Stand(5, push=30.0, threads=1, frame_skip=skip)
        task.reset()
        told = []
        for age in range(150):
            task.age[:] = age
            task.prepare(np.zeros((5, 30)))
            told.append(task.batch.forces[:, task.figure.torso, 3:].copy())
        pushed = np.linalg.norm(told, axis=2) > 0.0
        assert not pushed[: int(1.5 / task.period)].any()
        for i in range(5):
            first = int(np.argmax(pushed[:, i]))
            size = np.linalg.norm(np.sum(told[first : first + 6], axis=0)[i]) * task.period
            assert 0.0 < size <= 30.0
            assert size == pytest.approx(np.linalg.norm(task._force[i, 0]) * task._lasts * task.period, rel=1e-5)
        assert np.abs(np.array(told)[:, :, 2]).max() == 0.0


def test_bodies_of_other_sizes_are_as_strong_for_their_weight() -> None:
    child = Stand(1, height=1.2, mass=25.0, threads=1)
    grown = Stand(1, threads=1)
    ratio = child.figure.joints.gain / grown.figure.joints.gain
    assert ratio == pytest.approx(25.0 * 1.2 / (70.0 * 1.75))
    assert isinstance(child, Task)
    child.reset()
    assert np.isfinite(child.observe()).all()
