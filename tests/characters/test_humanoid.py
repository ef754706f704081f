"""The humanoid: measured proportions, symmetry, a pose that stands, joints that bend the human way."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poise
from poise.characters.anthropometry import SEGMENTS, TRUNKS
from poise.characters.humanoid import humanoid
from poise.model.errors import SceneError
from poise.model.massprops import MassProperties, combine
from poise.model.scene import Scene
from poise.model.shapes import Box, Capsule, Ellipsoid
from scene_kinematics import rest_q, rotation, widths, world_poses

SIDES = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot")
heights = st.floats(0.5, 2.5)
masses = st.floats(3.0, 300.0)
sexes = st.sampled_from(["male", "female"])


def scene_of(*args, **options) -> Scene:
    return Scene(bodies=humanoid(*args, **options).bodies)


def by_name(character_or_scene) -> dict:
    return {body.name: body for body in character_or_scene.bodies}


def tensor(inertia) -> np.ndarray:
    xx, yy, zz = inertia.moments
    xy, xz, yz = inertia.products
    R = rotation(inertia.quat_wxyz)
    return R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T


def surface(shape) -> np.ndarray:
    """Points on a shape, in the body's frame."""
    n = 400
    k = np.arange(n) + 0.5
    polar, around = np.arccos(1 - 2 * k / n), np.pi * (1 + 5**0.5) * k
    ball = np.stack([np.cos(around) * np.sin(polar), np.sin(around) * np.sin(polar), np.cos(polar)], axis=1)
    poles = np.vstack([np.eye(3), -np.eye(3)])
    ball = np.vstack([ball, poles])
    if isinstance(shape, Ellipsoid):
        points = ball * np.array(shape.size) / 2
    elif isinstance(shape, Box):
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        largest = np.abs(ball).max(axis=1, keepdims=True)
        points = np.vstack([ball / largest, corners]) * np.array(shape.size) / 2
    else:
        assert isinstance(shape, Capsule)
        rings = [ball * shape.radius + (0, 0, s * shape.length) for s in np.linspace(-0.5, 0.5, 9)]
        points = np.vstack(rings)
    return points @ rotation(shape.quat_wxyz).T + np.array(shape.position)


def depth_inside(shape, points: np.ndarray) -> float:
    """How far the deepest of some points (in the body's frame) is inside a shape, roughly; negative outside."""
    local = (points - np.array(shape.position)) @ rotation(shape.quat_wxyz)
    if isinstance(shape, Capsule):
        local[:, 2] -= np.clip(local[:, 2], -shape.length / 2, shape.length / 2)
        return float(np.max(shape.radius - np.linalg.norm(local, axis=1)))
    half = np.array(shape.size) / 2
    if isinstance(shape, Box):
        return float(np.max(np.min(half - np.abs(local), axis=1)))
    return float(np.max((1 - np.linalg.norm(local / half, axis=1)) * half.min()))


def world_points(scene: Scene) -> dict[str, list]:
    poses = world_poses(scene, rest_q(scene))
    return {
        body.name: [(shape, surface(shape) @ poses[body.name][0].T + poses[body.name][1]) for shape in body.shapes]
        for body in scene.bodies
    }


#: de Leva 1996, Table 4, in its own order and percent: mass, centre of mass, three radii; female and male
TABLE_4 = """
head       6.68 48.41 27.1 29.5 26.1    6.94 50.02 30.3 31.5 26.1
chest     15.45 20.77 74.6 50.2 71.8   15.96 29.99 71.6 45.4 65.9
belly     14.65 45.12 43.3 35.4 41.5   16.33 45.02 48.2 38.3 46.8
hips      12.47 49.20 43.3 40.2 44.4   11.17 61.15 61.5 55.1 58.7
upper_arm  2.55 57.54 27.8 26.0 14.8    2.71 57.72 28.5 26.9 15.8
forearm    1.38 45.59 26.1 25.7  9.4    1.62 45.74 27.6 26.5 12.1
hand       0.56 74.74 53.1 45.4 33.5    0.61 79.00 62.8 51.3 40.1
thigh     14.78 36.12 36.9 36.4 16.2   14.16 40.95 32.9 32.9 14.9
shank      4.81 43.52 26.7 26.3  9.2    4.33 43.95 25.1 24.6 10.2
foot       1.29 40.14 29.9 27.9 13.9    1.37 44.15 25.7 24.5 12.4
"""


def test_segments_are_those_of_the_paper() -> None:
    rows = {line.split()[0]: [float(word) for word in line.split()[1:]] for line in TABLE_4.strip().splitlines()}
    for sex, columns in (("female", slice(0, 5)), ("male", slice(5, 10))):
        assert set(SEGMENTS[sex]) == set(rows)
        for name, line in SEGMENTS[sex].items():
            found = (line.mass, line.com, line.sagittal, line.transverse, line.longitudinal)
            assert np.multiply(found, 100) == pytest.approx(rows[name][columns], abs=1e-9), (sex, name)


class TestMass:
    @settings(max_examples=30, deadline=None)
    @given(heights, masses, sexes, st.booleans())
    def test_adds_up(self, height: float, mass: float, sex: str, hands: bool) -> None:
        bodies = humanoid(height, mass, sex=sex, hands=hands).bodies
        assert math.fsum(body.inertia.mass for body in bodies) == pytest.approx(mass, rel=1e-14)

    def test_fractions_of_the_table(self) -> None:
        bodies = by_name(humanoid(mass=100.0))
        for name in SIDES:
            assert bodies[f"{name}_l"].inertia.mass == pytest.approx(100 * SEGMENTS["male"][name].mass, rel=1e-12)
        assert bodies["head"].inertia.mass == pytest.approx(6.94, rel=1e-12)
        assert bodies["torso"].inertia.mass == pytest.approx(15.96 + 16.33, rel=1e-12)
        assert bodies["pelvis"].inertia.mass == pytest.approx(11.17, rel=1e-12)

    @pytest.mark.parametrize(
        ("sex", "com", "radii"), [("male", 0.4486, (0.372, 0.347, 0.191)), ("female", 0.4151, (0.357, 0.339, 0.171))]
    )
    def test_parts_of_the_trunk_make_its_whole(self, sex, com: float, radii: tuple[float, ...]) -> None:
        """Table 4 also has the trunk as one segment, from suprasternale to the hips: its parts must give the same.

        The table's own parts and whole differ by a few percent, as each was adjusted and rounded by itself.
        """
        scene = scene_of(sex=sex)
        bodies = by_name(scene)
        poses = world_poses(scene, rest_q(scene))
        lumps = []
        for name in ("pelvis", "torso"):
            inertia = bodies[name].inertia
            lumps.append(MassProperties(inertia.mass, poses[name][1] + np.array(inertia.com), tensor(inertia)))
        whole = combine(lumps)
        length = TRUNKS[sex].suprasternale / TRUNKS[sex].shoulders * 0.288 * 1.75
        top = 0.530 * 1.75 + length
        assert (top - whole.com[2]) / length == pytest.approx(com, abs=0.01)
        found = np.sqrt(np.diag(whole.inertia) / whole.mass) / length
        assert found == pytest.approx(radii, rel=0.05)

    def test_centre_of_mass_of_the_whole(self) -> None:
        """A standing man's centre of mass is 55 % to 57 % up; Winter 2009, ch. 4."""
        scene = scene_of()
        poses = world_poses(scene, rest_q(scene))
        centre = (
            sum(b.inertia.mass * (poses[b.name][1] + poses[b.name][0] @ b.inertia.com) for b in scene.bodies) / 70.0
        )
        assert centre[1] == pytest.approx(0.0, abs=1e-12)
        assert 0.55 < centre[2] / 1.75 < 0.57
        # over the feet
        assert -0.25 * 0.152 * 1.75 < centre[0] < 0.75 * 0.152 * 1.75

    def test_thigh_by_hand(self) -> None:
        """Table 4: 14.16 % of mass, 40.95 % down, 32.9 %, 32.9 %, 14.9 % of a length of 0.245 · height."""
        inertia = by_name(humanoid(2.0, 80.0))["thigh_r"].inertia
        length, mass = 0.49, 80 * 0.1416
        assert inertia.com == pytest.approx((0, 0, -0.4095 * length))
        assert inertia.moments == pytest.approx([mass * (r * length) ** 2 for r in (0.329, 0.329, 0.149)])

    def test_foot_and_hand_lie_as_they_should(self) -> None:
        bodies = by_name(humanoid())
        xx, yy, zz = bodies["foot_l"].inertia.moments
        assert xx < yy < zz
        # about the normal of the palm, which is y, a hand is hardest to turn
        xx, yy, zz = bodies["hand_l"].inertia.moments
        assert zz < xx < yy

    @settings(max_examples=20, deadline=None)
    @given(heights, masses, sexes)
    def test_scales(self, height: float, mass: float, sex: str) -> None:
        one, other = by_name(humanoid(1.0, 10.0, sex=sex)), by_name(humanoid(height, mass, sex=sex))
        for name, body in one.items():
            assert other[name].position == pytest.approx(np.multiply(body.position, height))
            assert other[name].inertia.com == pytest.approx(np.multiply(body.inertia.com, height))
            assert tensor(other[name].inertia) == pytest.approx(tensor(body.inertia) * mass / 10.0 * height**2)

    def test_without_hands_nothing_is_lost(self) -> None:
        full, short = scene_of(), scene_of(hands=False)
        assert {body.name for body in full.bodies} - {body.name for body in short.bodies} == {"hand_l", "hand_r"}
        assert widths(short)[1] == widths(full)[1] - 4
        for scene in (full, short):
            poses = world_poses(scene, rest_q(scene))
            lumps = [
                MassProperties(b.inertia.mass, poses[b.name][1] + np.array(b.inertia.com), tensor(b.inertia))
                for b in scene.bodies
            ]
            whole = combine(lumps)
            if scene is full:
                expected = whole
        assert whole.com == pytest.approx(expected.com, abs=1e-12)
        assert whole.inertia == pytest.approx(expected.inertia, rel=1e-12, abs=1e-12)


class TestShape:
    def test_names_and_tree(self) -> None:
        bodies = by_name(humanoid())
        assert set(bodies) == {"pelvis", "torso", "head", *(f"{name}_{side}" for name in SIDES for side in "lr")}
        parents = {name: body.parent for name, body in bodies.items()}
        assert parents["pelvis"] is None
        assert (parents["torso"], parents["head"]) == ("pelvis", "torso")
        assert (parents["hand_r"], parents["foot_l"], parents["thigh_l"]) == ("forearm_r", "shank_l", "pelvis")
        joints = {joint.name: joint.kind for body in bodies.values() for joint in body.joints}
        kinds = {"hip": "ball", "knee": "hinge", "ankle": "universal"}
        kinds |= {"shoulder": "ball", "elbow": "hinge", "wrist": "universal"}
        expected = {f"{name}_{side}": kind for name, kind in kinds.items() for side in "lr"}
        assert joints == {"root": "free", "spine": "ball", "neck": "ball", **expected}

    def test_compiles(self) -> None:
        model = scene_of().compile()
        assert (model.nq, model.nv, model.n_links) == (43, 36, 15)
        assert scene_of(hands=False).compile().nv == 32

    @settings(max_examples=15, deadline=None)
    @given(heights, masses, sexes, st.booleans())
    def test_left_is_right_in_a_mirror(self, height: float, mass: float, sex: str, hands: bool) -> None:
        bodies = by_name(humanoid(height, mass, sex=sex, hands=hands))
        mirror = np.diag([1.0, -1.0, 1.0])
        for name in SIDES[:2] + SIDES[3:] + (("hand",) if hands else ()):
            left, right = bodies[f"{name}_l"], bodies[f"{name}_r"]
            assert np.array_equal(mirror @ left.position, right.position)
            assert left.inertia.mass == right.inertia.mass
            assert np.array_equal(mirror @ left.inertia.com, right.inertia.com)
            assert np.array_equal(mirror @ tensor(left.inertia) @ mirror, tensor(right.inertia))
            assert left.joints[0].limits == right.joints[0].limits
            assert (left.joints[0].cone, left.joints[0].twist) == (right.joints[0].cone, right.joints[0].twist)
            if left.joints[0].limit_centre is not None:
                R = mirror @ rotation(left.joints[0].limit_centre) @ mirror
                assert np.allclose(R, rotation(right.joints[0].limit_centre), atol=1e-15)
            for ours, theirs in zip(left.shapes, right.shapes, strict=True):
                assert type(ours) is type(theirs)
                assert np.allclose(mirror @ ours.position, theirs.position, atol=1e-15)
                R = mirror @ rotation(ours.quat_wxyz) @ mirror
                assert np.allclose(R, rotation(theirs.quat_wxyz), atol=1e-15)

    @settings(max_examples=15, deadline=None)
    @given(heights, masses, sexes)
    def test_from_sole_to_crown(self, height: float, mass: float, sex: str) -> None:
        points = world_points(scene_of(height, mass, sex=sex))
        heights_of = {name: np.concatenate([p for _, p in parts])[:, 2] for name, parts in points.items()}
        lowest = min(heights_of, key=lambda name: heights_of[name].min())
        assert lowest.startswith("foot")
        assert heights_of["foot_l"].min() == pytest.approx(0.0, abs=1e-12)
        assert heights_of["foot_r"].min() == pytest.approx(0.0, abs=1e-12)
        assert max(z.max() for z in heights_of.values()) == pytest.approx(height, rel=1e-12)

    @settings(max_examples=15, deadline=None)
    @given(heights, masses, sexes)
    def test_limbs_do_not_touch_at_rest(self, height: float, mass: float, sex: str) -> None:
        scene = scene_of(height, mass, sex=sex)
        bodies = by_name(scene)
        poses = world_poses(scene, rest_q(scene))
        points = world_points(scene)
        for first, second in combinations(points, 2):
            if second == bodies[first].parent or first == bodies[second].parent:
                continue
            for one, other in ((first, second), (second, first)):
                R, p = poses[other]
                for _, cloud in points[one]:
                    for shape in bodies[other].shapes:
                        assert depth_inside(shape, (cloud - p) @ R) < 0, (one, other)

    def test_weighs_nothing_by_shapes(self) -> None:
        assert all(shape.density == 0.0 for body in humanoid().bodies for shape in body.shapes)


class TestMotion:
    """Where the end of a limb goes when a joint moves in its positive sense."""

    @staticmethod
    def moved(joint: str, *values: float, body: str) -> np.ndarray:
        """Displacement of a body's centre of mass."""
        scene = scene_of()
        model = scene.compile()
        q = rest_q(scene)
        places = []
        for step in (None, values):
            if step is not None:
                start = model.joint_q_start[model.joint_names.index(joint)]
                q[start : start + len(step)] = step
            R, p = world_poses(scene, q)[body]
            places.append(p + R @ np.array(by_name(scene)[body].inertia.com))
        return places[1] - places[0]

    @pytest.mark.parametrize("side", ["l", "r"])
    def test_the_human_way(self, side: str) -> None:
        outward = 1.0 if side == "l" else -1.0
        assert self.moved(f"knee_{side}", 0.5, body=f"foot_{side}")[0] < -0.05
        assert self.moved(f"elbow_{side}", 0.5, body=f"hand_{side}")[0] > 0.05
        assert self.moved(f"ankle_{side}", 0.3, 0.0, body=f"foot_{side}")[2] > 0.005
        # inversion lifts the inner edge: what is below the joint goes inward, and so its centre
        assert self.moved(f"ankle_{side}", 0.0, 0.3, body=f"foot_{side}")[1] * outward < -0.005
        assert self.moved(f"wrist_{side}", 0.3, 0.0, body=f"hand_{side}")[1] * outward < -0.005
        assert self.moved(f"wrist_{side}", 0.0, 0.3, body=f"hand_{side}")[0] > 0.005

    @pytest.mark.parametrize(
        ("joint", "body", "way"),
        [("hip_r", "shank_r", 1), ("shoulder_l", "forearm_l", 1), ("spine", "torso", 1), ("neck", "head", 1)],
    )
    def test_positive_twist_of_balls_is_flexion(self, joint: str, body: str, way: int) -> None:
        (made,) = (j for b in humanoid().bodies for j in b.joints if j.name == joint)
        quat = [math.cos(0.2), *(math.sin(0.2) * np.array(made.axis))]
        assert self.moved(joint, *quat, body=body)[0] * way > 0.01
        lower, upper = made.twist
        assert lower < 0 < upper
        assert made.axis2 == (1.0, 0.0, 0.0)

    def test_ranges(self) -> None:
        joints = {j.name: j for b in humanoid().bodies for j in b.joints}
        assert np.degrees(joints["knee_r"].limits) == pytest.approx((0, 135))
        assert np.degrees(joints["elbow_l"].limits) == pytest.approx((0, 150))
        assert np.degrees(joints["hip_l"].twist) == pytest.approx((-30, 120))
        assert np.degrees(joints["hip_l"].cone) == pytest.approx((37.5, 45))
        assert np.degrees(joints["shoulder_l"].cone) == pytest.approx((97.5, 80))
        assert np.degrees(joints["ankle_l"].limits) == pytest.approx(np.array([(-50, 20), (-15, 35)]))

    @staticmethod
    def room(joint: str, *turns: tuple[str, float]) -> float:
        """How much of its ranges is left to a ball after turns about fixed axes, in degrees, the last one first.

        1 at the centre of the cone and the middle of the twist, 0 at a limit.
        """
        model = scene_of().compile()
        i = model.joint_names.index(joint)
        R = np.eye(3)
        for axis, angle in turns:
            half = math.radians(angle) / 2
            R = R @ rotation((math.cos(half), *(math.sin(half) * np.array([axis == name for name in "xyz"]))))
        frame = model.joint_frame[i].reshape(3, 3)
        Q = frame.T @ R @ rotation(model.joint_limit_centre[i]).T @ frame
        across = np.array([-Q[2, 0], Q[1, 0]])
        swing = across * (math.atan2(np.hypot(*across), Q[0, 0]) / max(np.hypot(*across), 1e-300))
        # of Q = S T: T about x, S about an axis across it
        twist = math.atan2(Q[2, 1] - Q[1, 2], Q[1, 1] + Q[2, 2])
        lower, upper = model.joint_twist[i]
        twist += 2 * math.pi * round(((lower + upper) / 2 - twist) / (2 * math.pi))
        within = min(twist - lower, upper - twist) / ((upper - lower) / 2)
        return min(1.0 - float(np.hypot(*(swing / model.joint_cone[i]))), within)

    @pytest.mark.parametrize(("side", "out"), [("l", 1), ("r", -1)])
    def test_limbs_abduct_further_than_they_adduct(self, side: str, out: int) -> None:
        for joint, least, most in (("shoulder", -45, 150), ("hip", -30, 45)):
            for end, inward in ((least, 1), (most, -1)):
                assert self.room(f"{joint}_{side}", ("x", out * end)) == pytest.approx(0.0, abs=1e-12)
                assert self.room(f"{joint}_{side}", ("x", out * (end + inward))) > 0.01
                assert self.room(f"{joint}_{side}", ("x", out * (end - inward))) < -0.01

    @pytest.mark.parametrize(("side", "out"), [("l", 1), ("r", -1)])
    def test_what_people_do_is_within_the_range_of_shoulders(self, side: str, out: int) -> None:
        """About −y arms flex, about ±x they abduct, about ±z they turn out where they hang."""
        poses = {
            "rest": [],
            "T-pose": [("x", out * 82)],
            "T-pose, palms to the front": [("x", out * 82), ("z", out * 90)],
            "to the front": [("y", -90)],
            "overhead": [("y", -165)],
            "overhead sideways": [("x", out * 145)],
            "to the back": [("y", 55)],
            "hands on hips": [("x", out * 45), ("y", 20), ("z", -out * 50)],
            "turned in": [("z", -out * 70)],
            "turned out": [("z", out * 80)],
            "across the chest": [("z", -out * 25), ("y", -90)],
        }
        for pose, turns in poses.items():
            assert self.room(f"shoulder_{side}", *turns) > 0.0, pose

    @pytest.mark.parametrize(("side", "out"), [("l", 1), ("r", -1)])
    def test_what_people_do_is_within_the_range_of_hips(self, side: str, out: int) -> None:
        poses = {
            "rest": [],
            "sitting": [("y", -90)],
            "sitting astride": [("z", out * 40), ("y", -90)],
            "a long stride": [("y", 25)],
            "toes out": [("z", out * 40)],
            "toes in": [("z", -out * 40)],
        }
        for pose, turns in poses.items():
            assert self.room(f"hip_{side}", *turns) > 0.0, pose

    def test_rest_is_within_all_limits(self) -> None:
        model = scene_of().compile()
        hinge_like = [i for i, kind in enumerate(model.joint_kinds) if kind in ("hinge", "universal")]
        for i in hinge_like:
            for dof in range(model.joint_v_start[i], model.joint_v_start[i + 1]):
                assert model.dof_limits[dof, 0] <= 0.0 <= model.dof_limits[dof, 1]


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"height": 175}, "175 cm are 1.75 m"),
            ({"height": 0}, "between 0.4 and 3 m, found 0"),
            ({"height": -1.75}, "between"),
            ({"height": float("nan")}, "a number in m, found nan"),
            ({"height": "1.75"}, "found '1.75'"),
            ({"height": True}, "found True"),
            ({"mass": 0}, "between 2 and 700 kg"),
            ({"mass": float("inf")}, "a number in kg"),
            ({"mass": 70000}, "found 70000"),
            ({"sex": "femal"}, 'did you mean "female"'),
        ],
    )
    def test_sizes(self, options: dict, said: str) -> None:
        with pytest.raises(SceneError) as caught:
            humanoid(**options)
        assert said in str(caught.value)
        assert caught.value.field == next(iter(options))

    def test_numpy_numbers_are_numbers(self) -> None:
        assert humanoid(np.float64(1.8), np.int64(80)).name == "humanoid"


def test_in_a_scene() -> None:
    scene = Scene()
    scene.add_ground()
    scene.add(humanoid(), name="hero")
    model = scene.compile()
    assert "hero/foot_r" in model.body_names
    pelvis = next(body for body in scene.bodies if body.name == "hero/pelvis")
    assert pelvis.position == pytest.approx((0, 0, 0.53 * 1.75))


def test_public_name() -> None:
    assert poise.characters.humanoid is humanoid
