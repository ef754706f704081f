"""Scenes for every kind of joint and everything that can act on it, all made in one way.

Two bodies: "one" on the world and "two" on "one", both by joints of the same kind with axes across each other, away
from rest and moving. Where something is to be hit, it is put where two would be after a while if nothing were there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import atan2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.dynamics import bodies, forward_dynamics, jacobian
from poise.model.joints import JOINTS, Primitive
from poise.motion.rotations import quat_exp, quat_from_matrix, quat_multiply, unit

Array = NDArray[Any]
KINDS = tuple(JOINTS)
FEATURES = (
    *("free motion", "limit", "motor", "spring", "armature", "impact", "contact", "loop", "ring"),
    *("one body", "one body, motor", "one body, impact", "one body, contact", "one body, loop"),
)
WHAT = {
    "free motion": "gravity alone",
    "limit": "a coordinate of two's joint reaches its limit: each one in turn; of a ball its cone, its twist",
    "motor": "springs and dampers towards a target on every coordinate of both joints, with bounded forces",
    "spring": "springs and dampers on every coordinate of both joints",
    "armature": "the same, and drives with an inertia",
    "impact": "one hangs on a ball joint, two on one by this kind, and two hits a smooth wall without restitution",
    "contact": "the same, but two slides along a rough wall from the beginning",
    "loop": "two is a free body in the tree, with a loop joint of this kind to one",
    "ring": "one hangs on a ball joint, two on one by this kind, and a ball joint closes the loop to the world",
    "one body": "two alone, on the world by this kind, under gravity",
    "one body, motor": "two alone, with a motor on every coordinate, as above",
    "one body, impact": "two alone, on the world by this kind, hits a smooth wall without restitution",
    "one body, contact": "two alone, on the world by this kind, slides along a rough wall from the beginning",
    "one body, loop": "two alone is a free body in the tree, with a loop joint of this kind to the world",
}

SPAN = 0.1
"""s."""
COARSE = 32
"""Steps of the coarsest runs."""
HIT = 14
"""The step of these at whose end something is hit: a moment that is a whole number of steps of all runs, as where in a
step things are hit makes part of their errors."""
GRAVITY = (0.0, 0.0, -9.81)
PLACES = {"one": (0.1, -0.2, 1.0), "two": (0.15, 0.1, -0.4)}
ANCHORS = {"one": (-0.1, 0.05, 0.2), "two": (0.05, -0.1, 0.25)}
AXES = {"one": (0.4, 1.0, 0.3), "two": (1.0, -0.5, 0.4)}
ACROSS = {"one": (1.0, 0.2, -0.3), "two": (0.2, 0.3, 1.0)}
SIZES = {"one": (0.25, 0.2, 0.5), "two": (0.2, 0.3, 0.4)}
MASSES = {"one": 2.0, "two": 1.0}
TIP, RADIUS = (0.02, 0.05, -0.25), 0.06
"""A ball on two: where it is, and its size; m."""
ROUGH, SMOOTH = poise.Material(friction=0.4), poise.Material(friction=0.0)


class Meaningless(Exception):
    """A cell for which there is no scene."""


@dataclass
class Start:
    """A scene and how it begins."""

    scene: poise.Scene
    q: Array
    v: Array

    def world(self, formulation: Any, dt: float) -> poise.World:
        """A world at its start."""
        world = self.scene.build(formulation, dt=dt)
        world.q[...], world.v[...] = self.q, self.v
        return world


def options_of(kind: str, name: str) -> dict[str, Any]:
    """What describes a joint of a kind."""
    options: dict[str, Any] = {"anchor": ANCHORS[name], "axis": AXES[name]}
    if kind in ("universal", "planar"):
        options["axis2"] = ACROSS[name]
    if kind == "screw":
        options["pitch"] = 0.08
    return {} if kind == "free" else options


def shapes(name: str, tip: poise.Material | None = None) -> list[poise.Shape]:
    """What a body is made of; only the tip touches anything, if it has a surface."""
    parts: list[Any] = [poise.box(*SIZES[name], mass=MASSES[name], position=(0.03, -0.02, 0.01), group=0, mask=0)]
    if name == "two":
        touches: dict[str, Any] = {"material": tip} if tip else {"group": 0, "mask": 0}
        parts.append(poise.sphere(RADIUS, mass=0.3, position=TIP, **touches))
    return parts


def chain(
    kinds: dict[str, str], extra: dict[str, dict[str, Any]] | None = None, tip: poise.Material | None = None
) -> poise.Scene:
    """Bodies one on the other, each by a kind of joint, with further options of these."""
    scene = poise.Scene(gravity=GRAVITY)
    parent = None
    for name, kind in kinds.items():
        joint = poise.Joint(kind, **options_of(kind, name), **(extra or {}).get(name, {}))
        scene.add(shapes(name, tip), name=name, parent=parent, joint=joint, position=PLACES[name])
        parent = name
    return scene


def start_of(scene: poise.Scene) -> Start:
    """Away from rest, and moving: turns of about 0.3 rad and 1.5 rad/s, slides of 5 cm and 0.5 m/s."""
    model = scene.compile()
    q, v = np.array(model.q_rest), np.zeros(model.nv)
    for k, (kind, j, d) in enumerate(
        zip(model.primitive_kind, model.primitive_q_start, model.primitive_v_start, strict=True)
    ):
        if kind == Primitive.BALL:
            speed = 1.5 * np.sin(1.0 + k + np.array([0.0, 1.3, 2.9]))
            v[d : d + 3] = speed
            q[j : j + 4] = quat_multiply(q[j : j + 4], quat_exp(0.15 * speed + (0.1, 0.05, -0.08)))
        else:
            size = 0.3 if kind == Primitive.SLIDE else 1.0
            v[d] = 1.5 * size * np.cos(0.6 + 2.2 * k)
            q[j] += 0.25 * size * np.sin(0.9 + 1.7 * k)
    return Start(scene, q, v)


Moment = tuple[poise.Model, Array, Array]
"""Model, q and v."""


def flight(scene: poise.Scene, steps: int) -> Moment:
    """Where a scene has got to after so many of the coarsest steps."""
    world = start_of(scene).world(poise.Reduced(level="acceleration"), SPAN / COARSE)
    world.step(steps)
    return world.model, world.q.copy(), world.v.copy()


# ---- what acts -------------------------------------------------------------------------------------------------------


def free_motion(kind: str) -> Start:
    return start_of(chain({"one": kind, "two": kind}))


def limit(kind: str) -> list[Start]:
    """The end of the range of one of two's coordinates is where it gets to; motors of a constant force press there."""
    if kind == "free":
        return [start_of(pressed(kind, {"limits": ((-1.0, 1.0),) * 6}))]
    moment = flight(pressed(kind, {}), HIT)
    if kind == "ball":
        swing, twist, faster = swing_and_twist(*moment)
        ends: list[Any] = [{"cone": swing}, {"twist": (-3.0, twist) if faster else (twist, 3.0)}]
        return [start_of(pressed(kind, end)) for end in ends]
    (model, q, v), n, starts = moment, JOINTS[kind].nv, []
    for c in range(n):
        end, faster = q[int(model.joint_q_start[1]) + c], v[int(model.joint_v_start[1]) + c] > 0.0
        bounds: list[Any] = [None] * n
        bounds[c] = (end - 3.0, end) if faster else (end, end + 3.0)
        starts.append(start_of(pressed(kind, {"limits": tuple(bounds)})))
    return starts


def pressed(kind: str, extra: dict[str, Any]) -> poise.Scene:
    """A chain with motors that push two's coordinates on; those of a ball turn it anyway."""
    scene = chain({"one": kind, "two": kind}, {"two": extra})
    way = np.sign(start_of(scene).v)
    for c, dof in enumerate(JOINTS[kind].v_names):
        if kind not in ("ball", "free"):
            place, much = f"two.{dof}" if dof else "two", 12.0 if slides(kind, dof) else 3.0
            scene.motor(place, f"{place}'s", torque=much * float(way[JOINTS[kind].nv + c]))
    return scene


def slides(kind: str, dof: str) -> bool:
    """Whether a coordinate is a way and no angle."""
    return kind == "slider" or dof in ("slide", "x", "y", "vx", "vy", "vz")


def swing_and_twist(model: poise.Model, q: Array, v: Array) -> tuple[float, float, bool]:
    """Of two on its ball joint, and whether the twist grows."""
    axis = unit(np.array(AXES["two"]))
    w, *vector = q[int(model.joint_q_start[1]) :][:4]
    along = float(axis @ vector)
    swing = 2.0 * atan2(sqrt(max(0.0, 1.0 - w * w - along * along)), sqrt(w * w + along * along))
    return swing, 2.0 * atan2(along, w), bool(axis @ v[int(model.joint_v_start[1]) :][:3] > 0.0)


def motor(kind: str, names: tuple[str, ...] = ("one", "two")) -> Start:
    """The targets are 0.4 rad or 0.12 m from the rest pose; bounds are met at first."""
    scene = chain(dict.fromkeys(names, kind))
    for name in names:
        if kind == "ball":
            turn = tuple(quat_exp(np.array((0.3, -0.2, 0.25))))
            scene.motor(name, f"{name}'s", stiffness=25.0, damping=0.5, target=turn, limit=6.0)
            continue
        for k, dof in enumerate(JOINTS[kind].v_names):
            place, much = f"{name}.{dof}" if dof else name, 4.0 if slides(kind, dof) else 1.0
            goal = 0.12 if slides(kind, dof) else 0.4
            goal += PLACES[name][k] if dof in ("vx", "vy", "vz") else 0.0
            law = {"stiffness": 25.0 * much, "damping": 0.5 * much, "limit": 6.0 * much}
            scene.motor(place, f"{place}'s", target=goal, **law)
    return start_of(scene)


def spring(kind: str, armature: float = 0.0) -> Start:
    law = {"stiffness": 25.0, "damping": 0.5, "armature": armature}
    return start_of(chain({"one": kind, "two": kind}, {"one": law, "two": law}))


def tip(model: poise.Model, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Place, velocity and acceleration of the ball on two, where gravity alone acts."""
    two, placed = model.body_index("two"), bodies(model, q)
    J = jacobian(model, q, two, TIP, v)
    a = forward_dynamics(model, q, v)
    return placed.position[two] + placed.rotation[two] @ TIP, J.J[3:] @ v, J.J[3:] @ a + J.rate[3:] @ v


def hung(kind: str) -> dict[str, str]:
    """Joints of a chain that hangs on a ball joint: with less freedom than that, forces on two are not unique."""
    return {"one": "ball", "two": kind}


def walled(kinds: dict[str, str], surface: poise.Material, point: Array, normal: Array) -> Start:
    """A chain with these joints, and a wall."""
    scene = chain(kinds, tip=surface)
    half = np.array((1.0 + normal[2], -normal[1], normal[0], 0.0))  # turns z to the normal
    scene.add(
        poise.model.Plane(material=surface),
        name="wall",
        fixed=True,
        position=tuple(point - RADIUS * normal),
        quat_wxyz=tuple(half / np.linalg.norm(half)),
    )
    return start_of(scene)


def impact_alone(kind: str) -> Start:
    """Of two alone on the world; with one way to move it strikes head on, and a motor presses it there."""
    if JOINTS[kind].nv > 1:
        return impact({"two": kind})
    scene = chain({"two": kind})
    way, slide = float(np.sign(start_of(scene).v[0])), JOINTS[kind].v_names[0]
    law = {"torque": way * (40.0 if slides(kind, slide) else 10.0)}
    scene.motor("two", "press", **law)
    place, velocity, _ = tip(*flight(scene, HIT))
    start = walled({"two": kind}, SMOOTH, place, -unit(velocity))
    start.scene.motor("two", "press", **law)
    return start


def impact(kinds: dict[str, str]) -> Start:
    """The wall is where two gets to, across the middle of its velocity and its acceleration there.

    It is smooth: what a blow with friction does depends on where in a step it comes, at velocity level, which spreads
    it over two of them.
    """
    place, velocity, acceleration = tip(*flight(chain(kinds), HIT))
    return walled(kinds, SMOOTH, place, -unit(unit(velocity) + unit(acceleration)))


def contact(kinds: dict[str, str]) -> Start:
    """The wall is along two's velocity, and across as much of its acceleration as can be."""
    scene = chain(kinds)
    start = start_of(scene)
    place, velocity, acceleration = tip(scene.compile(), start.q, start.v)
    way = unit(velocity)
    return walled(kinds, ROUGH, place, -unit(acceleration - (acceleration @ way) * way))


def loop(kind: str) -> Start:
    """Begins as the chain of two joints of this kind does; what a weld would leave without motion is on a hinge."""
    first = "hinge" if kind == "fixed" else kind
    scene = chain({"one": first})
    rest = np.add(PLACES["one"], PLACES["two"])
    scene.add(shapes("two"), name="two", joint=poise.Joint("free"), position=tuple(rest))
    options = options_of(kind, "two")
    options.pop("anchor", None)
    scene.loop(kind, "one", "two", "loop", position=tuple(rest + ANCHORS["two"]), **options)
    as_tree = start_of(chain({"one": first, "two": kind}))
    model = as_tree.scene.compile()
    two, placed = model.body_index("two"), bodies(model, as_tree.q, as_tree.v)
    R, spin = placed.rotation[two], placed.twist[two, :3]
    q = np.concatenate((as_tree.q[: JOINTS[first].nq], placed.position[two], quat_from_matrix(R)))
    return Start(scene, q, np.concatenate((as_tree.v[: JOINTS[first].nv], placed.twist[two, 3:], R.T @ spin)))


def loop_alone(kind: str) -> Start:
    """Begins as two on a joint of this kind on the world does."""
    if kind == "fixed":
        raise Meaningless("welds the body to the world: no motion is left")
    scene = poise.Scene(gravity=GRAVITY)
    scene.add(shapes("two"), name="two", joint=poise.Joint("free"), position=PLACES["two"])
    options = options_of(kind, "two")
    options.pop("anchor", None)
    scene.loop(kind, None, "two", "loop", position=tuple(np.add(PLACES["two"], ANCHORS["two"])), **options)
    as_tree = start_of(chain({"two": kind}))
    model = as_tree.scene.compile()
    two, placed = model.body_index("two"), bodies(model, as_tree.q, as_tree.v)
    R = placed.rotation[two]
    q = np.concatenate((placed.position[two], quat_from_matrix(R)))
    return Start(scene, q, np.concatenate((placed.twist[two, 3:], R.T @ placed.twist[two, :3])))


def contact_alone(kind: str) -> Start:
    """Of two alone on the world, with a freedom to move across the wall along which it slides."""
    if JOINTS[kind].nv < 2:
        raise Meaningless("leaves a body one way to move: nothing presses it to what it slides along")
    if kind == "planar":
        raise Meaningless("leaves no way out of its plane: friction across it is not unique")
    scene = chain({"two": kind})
    start = start_of(scene)
    model = scene.compile()
    place, velocity, acceleration = tip(model, start.q, start.v)
    J = jacobian(model, start.q, model.body_index("two"), TIP).J[3:]
    ways = np.linalg.svd(J)[0][:, : np.linalg.matrix_rank(J, 1e-9)]  # the tip can move in these directions
    press = ways @ (ways.T @ acceleration)
    along = unit(velocity)
    return walled({"two": kind}, ROUGH, place, -unit(press - (press @ along) * along))


def ring(kind: str) -> Start:
    """Velocities are those of a chain as near as the ring allows."""
    scene = chain({"one": "ball", "two": kind})
    start = start_of(scene)
    model = scene.compile()
    two = model.body_index("two")
    placed, J = bodies(model, start.q), jacobian(model, start.q, two, TIP).J[3:]
    scene.loop(
        "ball",
        None,
        "two",
        "loop",
        anchor_first=tuple(placed.position[two] + placed.rotation[two] @ TIP),
        anchor_second=TIP,
    )
    return Start(scene, start.q, start.v - np.linalg.pinv(J) @ (J @ start.v))


_MAKERS: dict[str, Callable[[str], Start | list[Start]]] = {
    "free motion": free_motion,
    "limit": limit,
    "motor": motor,
    "spring": spring,
    "armature": lambda kind: spring(kind, 0.15),
    "impact": lambda kind: impact(hung(kind)),
    "contact": lambda kind: contact(hung(kind)),
    "loop": loop,
    "ring": ring,
    "one body": lambda kind: start_of(chain({"two": kind})),
    "one body, motor": lambda kind: motor(kind, ("two",)),
    "one body, impact": impact_alone,
    "one body, contact": contact_alone,
    "one body, loop": loop_alone,
}


def make(kind: str, feature: str) -> list[Start]:
    """The scenes of a cell, at their beginning."""
    if kind == "fixed" and feature not in ("loop", "one body, loop"):
        raise Meaningless("welds two bodies into one: no joint is left")
    made = _MAKERS[feature](kind)
    return made if isinstance(made, list) else [made]
