"""Random trees of every kind of joint, as hypothesis draws them, and random states of any model.

Structure (how many bodies, what hangs from what, which joints) is drawn by hypothesis and shrinks; numbers (places,
masses, axes) come from a seed that is drawn once.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from poise.model.errors import SceneError
from poise.model.joints import JOINTS, Primitive
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.motion.path import FunctionPath, OrbitPath

#: kinds that may stand beside others on one body; a free joint stands alone
KINDS = tuple(kind for kind in JOINTS if kind not in ("fixed", "free"))


def vector(rng: np.random.Generator, size: float = 1.0) -> tuple[float, float, float]:
    x, y, z = rng.normal(size=3) * size
    return (float(x), float(y), float(z))


def unit_quat(rng: np.random.Generator) -> tuple[float, float, float, float]:
    quat = rng.normal(size=4)
    w, x, y, z = quat / np.linalg.norm(quat)
    return (float(w), float(x), float(y), float(z))


def random_inertia(rng: np.random.Generator) -> Inertia:
    """Of a cloud of points: always possible, centre and axes anywhere."""
    squares = rng.uniform(0.01, 0.1, 3)
    mass = float(rng.uniform(0.3, 3.0))
    moments = tuple(float(mass * (squares.sum() - s)) for s in squares)
    return Inertia(mass, vector(rng, 0.1), moments, unit_quat(rng))


def random_joint(rng: np.random.Generator, kind: str, forces: bool = True) -> Joint:
    """A joint with axes, anchor, rest coordinates and, sometimes, springs, dampers and armatures."""
    if kind == "free":
        return Joint("free", damping=float(rng.uniform(0, 1)) if forces else 0.0)
    nv = JOINTS[kind].nv
    axis = vector(rng) if rng.random() < 0.7 else tuple(float(x) for x in rng.permutation([0, 0, rng.choice([-1, 1])]))
    joint = Joint(kind, axis=axis, anchor=vector(rng, 0.2) if rng.random() < 0.7 else (0.0, 0.0, 0.0))
    if kind in ("universal", "planar") and rng.random() < 0.5:
        other = np.cross(axis, vector(rng))
        joint.axis2 = tuple(float(x) for x in other)
    if kind == "screw":
        joint.pitch = float(rng.normal() * 0.2)
    if not JOINTS[kind].has_quaternion and rng.random() < 0.5:
        joint.rest = tuple(float(x) for x in rng.normal(size=nv)) if nv > 1 else float(rng.normal())
    if forces and rng.random() < 0.6:
        joint.damping = tuple(float(x) for x in rng.uniform(0, 1, nv)) if nv > 1 else float(rng.uniform(0, 1))
        joint.armature = float(rng.uniform(0.01, 0.2))
    if forces and rng.random() < 0.4:
        joint.stiffness = float(rng.uniform(0, 20))
        if rng.random() < 0.5:
            spring = unit_quat(rng) if kind == "ball" else tuple(float(x) for x in rng.normal(size=nv))
            joint.spring = spring if len(spring) > 1 else spring[0]
    return joint


def random_path(rng: np.random.Generator) -> OrbitPath | FunctionPath:
    """A circle, or a swaying that turns as it goes."""
    if rng.random() < 0.5:
        return OrbitPath(vector(rng), float(rng.normal()), vector(rng), vector(rng), unit_quat(rng))
    at, sway, rate = np.array(vector(rng)), np.array(vector(rng)), rng.uniform(0.5, 2.0)

    def pose(t: float) -> tuple[np.ndarray, np.ndarray]:
        turn = np.array([2.0, np.sin(rate * t), 0.5 * np.cos(t), 0.3 * np.sin(0.7 * t)])
        return at + sway * np.sin(rate * t), turn / np.linalg.norm(turn)

    return FunctionPath(pose)


def random_body(rng: np.random.Generator, name: str, parent: str | None, kinds: tuple[str, ...], what: str) -> Body:
    """A body of one of the sorts: dynamic, massless, kinematic, fixed."""
    body = Body(name, parent, vector(rng, 0.5), unit_quat(rng), inertia=random_inertia(rng))
    if what == "kinematic":
        body.motion, body.path = "kinematic", random_path(rng)
        return body
    body.joints = [random_joint(rng, kind) for kind in kinds]
    if what == "fixed":
        body.motion = "fixed"
    if what == "massless":
        body.inertia = None
        for joint in body.joints:  # something must resist, whatever hangs from the body
            joint.armature = float(rng.uniform(0.05, 0.2))
    return body


@st.composite
def scenes(draw: st.DrawFn, max_bodies: int = 6, kinematic: bool = True, massless: bool = True) -> Scene:
    """Trees of any joints: several on a body, welds, massless links, led bodies, free joints below others, forests."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sorts = ["dynamic"] * 6 + ["fixed"] + ["kinematic"] * kinematic + ["massless"] * massless
    bodies: list[Body] = []
    for k in range(draw(st.integers(1, max_bodies))):
        parent = draw(st.integers(-1, k - 1))
        kinds = draw(st.one_of(st.lists(st.sampled_from(KINDS), min_size=0, max_size=2), st.just(["free"])))
        name = f"body{k}"
        above = None if parent < 0 else bodies[parent].name
        bodies.append(random_body(rng, name, above, tuple(kinds), draw(st.sampled_from(sorts))))
    if not any(body.moving_joints() for body in bodies):
        bodies.append(random_body(rng, "last", None, ("hinge",), "dynamic"))
    scene = Scene(gravity=vector(rng, 5.0), bodies=bodies)
    try:
        scene.compile()
    except SceneError:  # two joints that move the same way: armatures tell them apart
        for body in bodies:
            for joint in body.joints:
                joint.armature = float(rng.uniform(0.05, 0.2))
    return scene


def one_joint_scene(kind: str, seed: int = 0, forces: bool = False) -> Scene:
    """Two bodies in a row, joined to the world and to each other by joints of one kind."""
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(2):
        body = random_body(rng, f"body{k}", f"body{k - 1}" if k else None, (), "dynamic")
        body.joints = [random_joint(rng, kind, forces)]
        bodies.append(body)
    return Scene(gravity=(0.3, -0.4, -9.81), bodies=bodies)


def balls(model: Model) -> list[tuple[int, int]]:
    """(first coordinate, first velocity) of every quaternion."""
    rows = zip(model.primitive_kind, model.primitive_q_start, model.primitive_v_start, strict=True)
    return [(int(j), int(d)) for kind, j, d in rows if kind == Primitive.BALL]


def random_q(model: Model, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    """Coordinates anywhere, (nq,) or (count, nq); quaternions unit."""
    q = rng.normal(size=model.nq if count is None else (count, model.nq))
    for j, _ in balls(model):
        q[..., j : j + 4] /= np.linalg.norm(q[..., j : j + 4], axis=-1, keepdims=True)
    return q


def random_v(model: Model, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    """Velocities, forces or accelerations, (nv,) or (count, nv)."""
    return rng.normal(size=model.nv if count is None else (count, model.nv))


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference, as a part of the largest number wanted."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, f"{got.shape} is not {want.shape}"
    assert np.isfinite(got).all()
    if got.size == 0:
        return 0.0
    scale = float(np.abs(want).max())
    return float(np.abs(got - want).max()) / (scale if scale > 0.0 else 1.0)
