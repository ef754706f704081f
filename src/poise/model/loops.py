"""Loop joints (closed kinematic chains) and couplings of coordinates, compiled from a scene.

A loop joint connects two bodies that the tree already connects. It has a frame on each of them: a point, and the axes
(axis, axis2, axis × axis2) of `Joint`. At rest the frames coincide, or the constraint closes them. Its coordinates
describe the second body's frame relative to the first's, as for a joint of its kind in the tree, and are 0 where the
frames coincide. The frames of a ball joint with a `limit_centre` coincide at that rotation instead.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.model.checks import Checker, shown
from poise.model.errors import SceneError, did_you_mean, resolve_name
from poise.model.joints import JOINTS, OTHER_NAMES
from poise.model.scene import Equality, Loop, Scene
from poise.motion.rotations import cross, quat_multiply, quat_normalize, quat_to_matrix, unit

Floats = NDArray[np.float64]
KINDS = tuple(kind for kind in JOINTS if kind != "free")
_PARALLEL = 1e-6
_COUPLINGS = ("joint", "mimic")


class LoopJoint(NamedTuple):
    """A loop joint.

    >>> from poise.model.shapes import box
    >>> scene = Scene()
    >>> a = scene.hinge(None, box(0.1, 0.1, 1.0), name="a", axis="y", position=(0, 0, 0.5))
    >>> b = scene.hinge(None, box(0.1, 0.1, 1.0), name="b", axis="y", position=(1, 0, 0.5))
    >>> scene.loop("ball", a, b, position=(0.5, 0, 1))
    'a-b'
    >>> scene.compile().loops[0].point_b
    (-0.5, 0.0, 0.5)
    """

    name: str
    kind: str
    body_a: int
    """−1 is the world."""
    body_b: int
    point_a: tuple[float, ...]
    """In the body's frame, or in the world's; m."""
    frame_a: tuple[float, ...]
    """Nine numbers, by rows: columns axis, axis2, axis × axis2."""
    point_b: tuple[float, ...]
    frame_b: tuple[float, ...]
    pitch: float = 0.0
    """m/rad."""
    limits: tuple[tuple[float, float], ...] = ()
    """Limits of each coordinate; of the twist for a ball joint; rad or m."""
    cone: tuple[float, float] = (inf, inf)
    """Largest swings of a ball joint about the second and third axes; rad."""
    friction: float = 0.0
    """N or N·m."""
    break_force: float = inf
    """N."""
    break_torque: float = inf
    """N·m."""
    active: bool = True

    @property
    def coordinates(self) -> tuple[str, ...]:
        """A suffix for each coordinate; the twist of a ball joint counts as one."""
        return ("twist",) if self.kind == "ball" else JOINTS[self.kind].v_names


class Coupling(NamedTuple):
    """The constraint first = Σ coefficients · second^k of two coordinates, or one, relative to their zeros."""

    name: str
    first: int
    """Degree of freedom; likewise `second`, −1 if there is none."""
    first_q: int
    second: int
    second_q: int
    coefficients: tuple[float, ...]
    first_zero: float
    second_zero: float
    active: bool = True


class Parts(NamedTuple):
    """Data of bodies that loops refer to."""

    bodies: dict[str, int]
    positions: Floats
    """(n, 3) of bodies at rest, in the world; m."""
    quats: Floats
    """(n, 4)"""
    links: Any
    """(n,) link of each body, −1 for a static body."""
    joints: dict[str, tuple[str, int, int]]
    q_rest: list[float]


def compile_loops(scene: Scene, parts: Parts) -> tuple[LoopJoint, ...]:
    """Loops of a scene, then those among its equalities."""
    found = [compile_loop(loop, parts, scene.source) for loop in scene.loops]
    found += [_of_equality(scene, one, parts) for one in scene.equalities if one.kind in ("connect", "weld")]
    names = [loop.name for loop in found]
    for loop in scene.loops:
        if names.count(loop.name) > 1:
            what = "two" if [one.name for one in scene.loops].count(loop.name) > 1 else "an equality of that name"
            raise SceneError(f"must be unique, found {what}", file=scene.source, field=f'loop "{loop.name}": name')
    return tuple(found)


def compile_couplings(scene: Scene, parts: Parts) -> tuple[Coupling, ...]:
    """Couplings among the equalities of a scene."""
    return tuple(_coupling(scene, one, parts) for one in scene.equalities if one.kind in _COUPLINGS)


# ---- loops -----------------------------------------------------------------------------------------------------------


def compile_loop(loop: Loop, parts: Parts, file: str | None = None) -> LoopJoint:
    """One loop, in bodies' own frames."""
    check = Checker(file).at(f'loop "{loop.name}"')
    _check(check, loop)
    if check.problems:
        raise SceneError.of(check.problems)
    ends = [_end(check, field, name, parts) for field, name in (("first", loop.first), ("second", loop.second))]
    if check.problems:
        raise SceneError.of(check.problems)
    links = [parts.links[end] if end >= 0 else -1 for end in ends]
    if links[0] == links[1]:
        what = "never move" if links[0] < 0 else "are parts of one rigid body"
        check.fail("second", f"the two must be able to move relative to each other, but both {what}")
        raise SceneError.of(check.problems)
    axes = _axes(loop)
    where = _where(loop, ends, parts)
    held = [_seen_from(end, parts, where, axes) for end in ends]
    for k, anchor in enumerate((loop.anchor_first, loop.anchor_second)):
        if anchor is not None:
            held[k] = np.array(anchor, np.float64), held[k][1]
    for k, quat in enumerate((loop.quat_first, loop.quat_second)):
        if quat is not None:
            held[k] = held[k][0], quat_to_matrix(quat_normalize(quat)) @ axes
    if loop.limit_centre is not None:
        # frames coincide at this rotation of the joint
        centre = quat_to_matrix(quat_normalize(loop.limit_centre))
        held[1] = held[1][0], held[1][1] @ (axes.T @ centre.T @ axes)
    return LoopJoint(
        loop.name,
        loop.kind,
        ends[0],
        ends[1],
        point_a=_flat(held[0][0]),
        frame_a=_flat(held[0][1]),
        point_b=_flat(held[1][0]),
        frame_b=_flat(held[1][1]),
        pitch=float(loop.pitch),
        limits=_limits(loop),
        cone=_cone(loop),
        friction=float(loop.friction),
        break_force=float(loop.break_force),
        break_torque=float(loop.break_torque),
        active=bool(loop.active),
    )


def _flat(array: Floats) -> tuple[float, ...]:
    return tuple((array + 0.0).ravel().tolist())


def _check(check: Checker, loop: Loop) -> None:
    from poise.model.part_checks import check_joint
    from poise.model.scene import Joint

    kind: object = loop.kind
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(kind, KINDS, OTHER_NAMES)
        check.fail("kind", f"{kind!r} is not a kind of joint that a loop can have{hint}")
        return
    names = ("axis", "axis2", "pitch", "limits", "cone", "twist", "limit_centre", "friction")
    fields = {name: getattr(loop, name) for name in names}
    check_joint(check, Joint(loop.kind, **fields))
    for name in ("position", "anchor_first", "anchor_second"):
        if getattr(loop, name) is not None:
            check.numbers(name, getattr(loop, name), 3)
    for name in ("quat_first", "quat_second"):
        if getattr(loop, name) is not None:
            check.quaternion(name, getattr(loop, name))
    for name in ("break_force", "break_torque"):
        check.number(name, getattr(loop, name), positive=True, infinite=True)


def _end(check: Checker, field: str, name: Any, parts: Parts) -> int:
    """Index of a body, −1 for the world."""
    if name is None:
        return -1
    try:
        return parts.bodies[resolve_name("body", name, list(parts.bodies))]
    except SceneError as error:
        world = isinstance(name, str) and name.casefold() == "world"
        check.fail(field, "the world is None" if world else error.problems[0].message)
        return -1


def _axes(loop: Loop) -> Floats:
    """(3, 3) columns axis, axis2, axis × axis2."""
    axis = unit((0.0, 0.0, 1.0) if loop.axis is None else loop.axis)
    second = np.roll(np.eye(3)[int(np.argmax(np.abs(axis)))], 1) if loop.axis2 is None else unit(loop.axis2)
    second = unit(second - (second @ axis) * axis)
    return np.column_stack((axis, second, cross(axis, second)))


def _where(loop: Loop, ends: list[int], parts: Parts) -> Floats:
    """The joint's point in the world: the origin of the second body, or of the first one, when missing."""
    if loop.position is not None:
        return np.array(loop.position, np.float64)
    return np.array(parts.positions[ends[1] if ends[1] >= 0 else ends[0]])


def _seen_from(body: int, parts: Parts, point: Floats, axes: Floats) -> tuple[Floats, Floats]:
    """A point and axes of the world in a body's frame."""
    if body < 0:
        return point, axes
    R = quat_to_matrix(parts.quats[body])
    return R.T @ (point - parts.positions[body]), R.T @ axes


def _limits(loop: Loop) -> tuple[tuple[float, float], ...]:
    n = 1 if loop.kind == "ball" else JOINTS[loop.kind].nv
    given: Any = loop.twist if loop.kind == "ball" else loop.limits
    if given is None:
        return ((-inf, inf),) * n
    if n == 1 and np.ndim(given[0]) == 0 and given[0] is not None:
        return ((float(given[0]), float(given[1])),)
    return tuple((-inf, inf) if pair is None else (float(pair[0]), float(pair[1])) for pair in given)


def _cone(loop: Loop) -> tuple[float, float]:
    if loop.cone is None:
        return inf, inf
    y, z = (loop.cone, loop.cone) if np.ndim(loop.cone) == 0 else loop.cone  # type: ignore[misc]
    return float(y), float(z)  # type: ignore[arg-type]


# ---- equalities of files ---------------------------------------------------------------------------------------------


def _of_equality(scene: Scene, one: Equality, parts: Parts) -> LoopJoint:
    """MuJoCo's connect and weld."""
    options = one.options
    loop = Loop(
        one.name,
        "ball" if one.kind == "connect" else "fixed",
        None if one.first == "world" else one.first,
        one.second,
        axis=(1.0, 0.0, 0.0),
        axis2=(0.0, 1.0, 0.0),
        active=one.active,
    )
    if "first_site" in options:
        first, second = options["first_site"], options["second_site"]
        loop.anchor_first, loop.anchor_second = first["position"], second["position"]
        loop.quat_first, loop.quat_second = first["quat_wxyz"], second["quat_wxyz"]
    elif "first_anchor" in options:
        loop.anchor_first, loop.anchor_second = options["first_anchor"], options["second_anchor"]
        loop.quat_first = loop.quat_second = (1.0, 0.0, 0.0, 0.0)
    elif "quat_wxyz" in options:
        # the rotation of the second body in the first's frame, and the point in both
        loop.anchor_first, loop.anchor_second = options["position"], options["second_anchor"]
        loop.quat_first, loop.quat_second = options["quat_wxyz"], (1.0, 0.0, 0.0, 0.0)
    return compile_loop(loop, parts, scene.source)


def _coupling(scene: Scene, one: Equality, parts: Parts) -> Coupling:
    """MuJoCo's joint equality counts both joints from their rest; a mimic joint of URDF from 0."""
    place = f'equality "{one.name}"'
    ends = []
    for field, name in (("first", one.first), ("second", one.second)):
        if name is None and field == "second":
            ends.append((-1, -1, 0.0))
            continue
        if name not in parts.joints:
            hint = did_you_mean(name, parts.joints)
            raise SceneError(
                f'there is no joint "{name}" that moves{hint}', file=scene.source, field=f"{place}: {field}"
            )
        kind, d, q = parts.joints[name]
        if JOINTS[kind].nv != 1:
            what = f'"{name}" is a {kind} joint; only joints of one coordinate can be coupled'
            raise SceneError(what, file=scene.source, field=f"{place}: {field}")
        ends.append((d, q, parts.q_rest[q]))
    options = one.options
    if one.kind == "mimic":
        coefficients = (options.get("offset", 0.0), options.get("multiplier", 1.0))
        zeros = 0.0, 0.0
    else:
        coefficients = options.get("coefficients", (0.0, 1.0))
        zeros = ends[0][2], ends[1][2]
    check = Checker(scene.source).at(place)
    numbers = check.numbers("coefficients", coefficients, None)
    if numbers is not None and not 1 <= len(numbers) <= 5:
        check.fail("coefficients", f"must be one to five numbers, found {shown(coefficients)}")
    if numbers is None or check.problems:
        raise SceneError.of(check.problems)
    whole = (*numbers, 0.0, 0.0, 0.0, 0.0)[:5]
    return Coupling(one.name, ends[0][0], ends[0][1], ends[1][0], ends[1][1], whole, *zeros, active=bool(one.active))


def placed_bodies(parents: list[int], poses: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """(n, 3) positions and (n, 4) rotations of bodies in the world at rest, from those in their parents' frames."""
    positions, quats = np.zeros((len(parents), 3)), np.zeros((len(parents), 4))
    for b, (parent, (position, quat)) in enumerate(zip(parents, poses, strict=True)):
        if parent < 0:
            positions[b], quats[b] = position, quat
        else:
            positions[b] = positions[parent] + quat_to_matrix(quats[parent]) @ position
            quats[b] = quat_normalize(quat_multiply(quats[parent], quat))
    return positions, quats
