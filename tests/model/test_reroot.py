"""A character held elsewhere is the same character: same poses, same motion."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.dynamics import bodies, momentum, simulate
from poise.model.errors import SceneError
from poise.model.reroot import rerooted
from poise.model.scene import Body, Character, Joint
from poise.motion.rotations import quat_conjugate, quat_exp, quat_from_matrix, quat_multiply, quat_normalize

KINDS = ("hinge", "cylindrical", "screw", "universal", "ball", "slider")


def snake() -> Character:
    """A chain with a side branch and a joint of every kind that can be turned over."""
    rng = np.random.default_rng(3)

    def vector(scale: float) -> tuple[float, float, float]:
        return tuple(scale * rng.normal(size=3))

    parts = [
        Body("head", joints=[Joint("free")], shapes=[poise.box(0.2, 0.1, 0.3, mass=2.0)], position=(0.1, 0.2, 1.0))
    ]
    for k, kind in enumerate(KINDS):
        axis = vector(1.0)
        joint = Joint(
            kind, name=f"{kind}_joint", axis=axis, axis2=tuple(np.cross(axis, vector(1.0))), anchor=vector(0.1)
        )
        joint.pitch = 0.05 if kind == "screw" else 0.0
        joint.rest = 0.3 if kind == "hinge" else None
        joint.damping = [0.1, 0.4] if kind == "universal" else 0.2
        joint.stiffness = 3.0
        joint.spring = {"universal": np.array((0.2, -0.3)), "ball": (2.0, 0.4, -0.6, 0.2)}.get(kind)
        shape = poise.box(0.1, 0.2, 0.15, mass=1.0 + k, position=vector(0.05))
        parts.append(Body(kind, parts[-1].name, vector(0.3), tuple(rng.normal(size=4)), [joint], [shape]))
    side = Joint("hinge", axis=(1, 0, 0))
    parts.append(Body("side", "universal", vector(0.2), joints=[side], shapes=[poise.sphere(0.1)]))
    return Character("snake", parts)


def compiled(character: Character) -> poise.Model:
    scene = poise.Scene(gravity=(0, 0, -3.0), bodies=character.bodies)
    return scene.compile()


def same_state(old: poise.Model, new: poise.Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The state of the old tree in the coordinates of the new one, from what the joints mean."""
    q2, v2 = new.q_rest.copy(), np.zeros(new.nv)
    here = bodies(old, q, v)
    root = old.body_index("slider")
    turn, twist = here.rotation[root], here.twist[root]
    q2[new.q_slice("slider")] = (*here.position[root], *quat_from_matrix(turn))
    v2[new.v_slice("slider")] = (*twist[3:], *(turn.T @ twist[:3]))
    for name in [f"{kind}_joint" for kind in KINDS] + ["side"]:
        qs, vs = old.q_slice(name), old.v_slice(name)
        if name == "ball_joint":
            rest = next(body for body in snake().bodies if body.name == "ball").quat_wxyz
            rest = quat_normalize(rest)
            q2[new.q_slice(name)] = quat_multiply(quat_multiply(rest, quat_conjugate(q[qs])), quat_conjugate(rest))
            child, parent = (here.rotation[old.body_index(b)] for b in ("ball", "universal"))
            v2[new.v_slice(name)] = -parent.T @ child @ v[vs]
        else:
            order = slice(None, None, -1) if name == "universal_joint" else slice(None)
            q2[new.q_slice(name)], v2[new.v_slice(name)] = q[qs][order], v[vs][order]
    return q2, v2


def test_the_same_motion_from_the_other_end() -> None:
    old, new = compiled(snake()), compiled(rerooted(snake(), "slider"))
    rng = np.random.default_rng(0)
    v = rng.normal(size=old.nv)
    q = poise.dynamics.displaced(old, old.q_rest, rng.normal(size=old.nv))
    q2, v2 = same_state(old, new, q, v)
    order = [new.body_index(name) for name in old.body_names]
    before, after = bodies(old, q, v), bodies(new, q2, v2)
    np.testing.assert_allclose(after.position[order], before.position, atol=1e-12)
    np.testing.assert_allclose(after.rotation[order], before.rotation, atol=1e-12)
    np.testing.assert_allclose(after.twist[order], before.twist, atol=1e-11)
    np.testing.assert_allclose(momentum(new, q2, v2).angular, momentum(old, q, v).angular, rtol=1e-11)
    # fourth order in h = 1 ms: both runs are exact to about 1e-10
    first, second = (simulate(m, 0.5, q=a, v=b, dt=1e-3) for m, a, b in ((old, q, v), (new, q2, v2)))
    ends = bodies(old, first.q[-1]), bodies(new, second.q[-1])
    np.testing.assert_allclose(ends[1].position[order], ends[0].position, atol=1e-8)
    np.testing.assert_allclose(ends[1].rotation[order], ends[0].rotation, atol=1e-8)


@pytest.mark.parametrize("axis2", [True, False])
def test_swings_and_twists_are_counted_from_the_same_centre(axis2: bool) -> None:
    """R C⁻¹ is undone: its twist about the opposite axis is the same, and without a twist it swings the other way."""
    rng = np.random.default_rng(5)
    character = snake()
    joint = next(body for body in character.bodies if body.name == "ball").joints[0]
    joint.cone, joint.twist, joint.limit_centre = (0.5, 0.8), (-0.4, 0.6), (2.0, 0.8, -0.5, 0.3)
    joint.axis2 = joint.axis2 if axis2 else None
    old, new = compiled(character), compiled(rerooted(character, "slider"))
    i, k = (model.joint_names.index("ball_joint") for model in (old, new))
    assert new.joint_cone[k].tolist() == [0.5, 0.8]
    assert new.joint_twist[k].tolist() == [-0.4, 0.6]
    for twist in (0.0, 0.3):
        q = old.q_rest.copy()
        frame, centre = old.joint_frame[i].reshape(3, 3), old.joint_limit_centre[i]
        swing = np.array([0.0, *rng.uniform(-0.4, 0.4, 2)])
        turn = quat_multiply(quat_exp(frame @ swing), quat_exp(frame @ (twist, 0, 0)))
        q[old.q_slice("ball_joint")] = quat_multiply(turn, centre)
        q2, _ = same_state(old, new, q, np.zeros(old.nv))
        frame, centre = new.joint_frame[k].reshape(3, 3), new.joint_limit_centre[k]
        turn = quat_multiply(q2[new.q_slice("ball_joint")], quat_conjugate(centre))
        w, *v = turn[0], *(frame.T @ turn[1:])
        assert 2 * np.arctan2(v[0], w) == pytest.approx(twist, abs=1e-12)
        assert 2 * np.arctan2(np.hypot(v[1], v[2]), np.hypot(w, v[0])) == pytest.approx(np.linalg.norm(swing))
        if twist == 0.0:
            # the frame's first and third axis are the opposite ones
            size = np.linalg.norm(swing)
            assert v == pytest.approx(np.array([0.0, -swing[1], swing[2]]) * np.sin(size / 2) / size, abs=1e-12)


def test_rest_pose_and_order_are_kept() -> None:
    old, held = compiled(snake()), rerooted(snake(), "side", Joint("ball", name="grip"))
    new = compiled(held)
    assert held.bodies[0].name == "side"
    assert new.joint_names[0] == "grip"
    order = [new.body_index(name) for name in old.body_names]
    np.testing.assert_allclose(bodies(new, new.q_rest).position[order], bodies(old, old.q_rest).position, atol=1e-12)


def test_the_original_is_untouched() -> None:
    character = snake()
    rerooted(character, "slider")
    assert [b.parent for b in character.bodies] == [b.parent for b in snake().bodies]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: setattr(c.bodies[0], "joints", [Joint("hinge")]), "held by a hinge joint; only a free character"),
        (lambda c: setattr(c.bodies[0], "joints", []), "welded to the world; only a free character"),
        (lambda c: setattr(c.bodies[0], "motion", "fixed"), '"head" is fixed; only what is dynamic'),
        (lambda c: setattr(c.bodies[2], "motion", "fixed"), '"cylindrical" is fixed; only what is dynamic'),
        (lambda c: setattr(c.bodies[5].joints[0], "damping", (1, 2, 3)), "damping that differs between the axes"),
        (lambda c: setattr(c.bodies[2], "joints", [Joint("planar")]), "a planar joint has no opposite"),
        (lambda c: setattr(c.bodies[4].joints[0], "axis2", None), "give axis2"),
        (lambda c: setattr(c.bodies[0], "parent", "slider"), "is not above it"),
        (lambda c: setattr(c.bodies[0], "parent", "nobody"), "is not above it"),
    ],
)
def test_what_cannot_be_turned_over_is_said(change, message: str) -> None:
    character = snake()
    change(character)
    with pytest.raises(SceneError, match=message):
        rerooted(character, "slider")


def test_an_unknown_body_is_answered_with_the_nearest() -> None:
    with pytest.raises(SceneError, match='no body "slidr", did you mean "slider"'):
        rerooted(snake(), "slidr")
