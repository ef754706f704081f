"""From a scene to the flat arrays of a model.

The order is depth-first: roots as the scene lists them, then the children of each body as the scene lists them. Bodies
without joints are welded to their parent, so that a link is a moving body with all bodies welded to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.model.contact_pairs import gather_contact_pairs
from poise.model.errors import SceneError
from poise.model.joints import JOINTS, WIDTHS, JointKind, Prescribed, Primitive
from poise.model.loops import LoopJoint, Parts, compile_couplings, compile_loops, placed_bodies
from poise.model.massprops import MassProperties, body_mass_properties, combine, pack_inertia
from poise.model.mobility import LinkMotion, check_mobility
from poise.model.model import Model
from poise.model.motors import Places, compile_motors
from poise.model.scene import Body, Joint, Scene
from poise.model.shape_arrays import gather_solids
from poise.model.shapes import IDENTITY
from poise.model.skins import gather_skins
from poise.model.validate import validate
from poise.motion.rotations import cross, quat_multiply, quat_normalize, quat_to_matrix, unit

Floats = NDArray[np.float64]

_NO_TURN = np.array((1.0, 0.0, 0.0, 0.0))


def compile_scene(scene: Scene) -> Model:
    """Check a scene and compile it into arrays. Raises `SceneError` with all its errors.

    >>> from poise.model.shapes import sphere
    >>> model = compile_scene(Scene(bodies=[Body("ball", joints=[Joint("free")], shapes=[sphere(0.1)])]))
    >>> model.nq, model.nv
    (7, 6)
    """
    validate(scene)
    bodies, parents = depth_first(scene.bodies)
    # overflow is checked afterwards, where the error can name the body
    with np.errstate(over="ignore", invalid="ignore"):
        layout = _Layout(bodies, parents)
        layout.place_bodies()
        layout.join_masses()
    _check_finite(scene, layout)
    tables = _Tables()
    for link in layout.links:
        tables.add_link(link, bodies[link.body])
    with np.errstate(over="ignore", invalid="ignore"):
        check_mobility(scene, bodies, layout.links, tables.dof_names, tables.dof_armature, tables.dof_prescribed)
    arrays = {**_body_arrays(layout), **_link_arrays(layout, tables), **_joint_arrays(tables)}
    gravity = np.array(scene.gravity, dtype=np.float64)
    paths = tuple((j, bodies[b].path) for j, b in enumerate(tables.joint_body) if _is_on_path(bodies[b]))
    solids = gather_solids(bodies, layout.link, layout.position, layout.quat, scene.rules)
    parts = _parts(layout, tables)
    loops = compile_loops(scene, parts)
    lifted = _compensation(layout)
    motors, ranges = compile_motors(scene, _places(tables, loops, bool(len(lifted["compensated_link"]))))
    joined = {"motors": motors, "loops": loops, **ranges, **lifted}
    joined["couplings"] = compile_couplings(scene, parts)
    skins = gather_skins(scene.skins, {body.name: b for b, body in enumerate(bodies)})
    joined["contact_pairs"], joined["contact_pair_friction"] = gather_contact_pairs(scene.contact_pairs, bodies)
    shared = {"solids": solids, "skins": skins, "excluded": _excluded(scene, bodies), "paths": paths, **joined}
    return Model(name=scene.name, gravity=gravity, dt=float(scene.dt), **shared, **arrays)  # type: ignore[arg-type]


def _prescribed(body: Body) -> Prescribed:
    if body.motion != "kinematic":
        return Prescribed.NOT
    return Prescribed.FREELY if body.path is None else Prescribed.PATH


def _joint_places(tables: _Tables) -> dict[str, tuple[str, int, int]]:
    """Kind, first velocity and first coordinate of each joint."""
    starts = zip(tables.joint_kinds, tables.joint_v_start, tables.joint_q_start, strict=False)
    return dict(zip(tables.joint_names, starts, strict=False))


def _parts(layout: _Layout, tables: _Tables) -> Parts:
    """Data of bodies that loops refer to."""
    positions, quats = placed_bodies(layout.parents, [_body_pose(body) for body in layout.bodies])
    number = {body.name: b for b, body in enumerate(layout.bodies)}
    return Parts(number, positions, quats, layout.link, _joint_places(tables), tables.q_rest)


def _compensation(layout: _Layout) -> dict[str, Any]:
    """Masses of gravity compensation, by link."""
    rows: dict[int, list[tuple[float, Floats]]] = {}
    for b, body in enumerate(layout.bodies):
        carrier, matter = int(layout.link[b]), layout.mass[b]
        mass = float(body.gravity_compensation) * matter.mass
        if carrier >= 0 and mass != 0.0:
            com = layout.position[b] + quat_to_matrix(layout.quat[b]) @ matter.com
            rows.setdefault(carrier, []).append((mass, com))
    lumps = [(mass, com, link) for link in sorted(rows) for mass, com in _joined(rows[link])]
    return {
        "compensated_link": _ints([link for _, _, link in lumps]),
        "compensated_mass": _floats([mass for mass, _, _ in lumps]),
        "compensated_com": _rows([com for _, com, _ in lumps], 3),
    }


def _joined(lumps: list[tuple[float, Floats]]) -> list[tuple[float, Floats]]:
    """Several forces on one link merged into one, at their centre; unchanged if their sum is zero."""
    total = sum(mass for mass, _ in lumps)
    if len(lumps) < 2 or not min(mass for mass, _ in lumps) > 0.0:
        return lumps
    return [(total, sum((com * (mass / total) for mass, com in lumps), np.zeros(3)))]


def _places(tables: _Tables, loops: tuple[LoopJoint, ...], compensated: bool) -> Places:
    """Indices for motors; whether any body is `compensated` for gravity."""
    joints = _joint_places(tables)
    dofs = {name: d for d, name in enumerate(tables.dof_names)}
    scalars = zip(tables.kind, tables.v_start, tables.q_start, strict=True)
    q_of_dof = {d: j for kind, d, j in scalars if kind != Primitive.BALL}
    names = [_suffixed(loop.name, suffix) for loop in loops for suffix in loop.coordinates]
    ranges = {d: (*bounds, lifted and compensated) for d, (bounds, lifted) in tables.actuator_ranges.items()}
    return Places(joints, dofs, tables.q_rest, q_of_dof, {name: k for k, name in enumerate(names)}, ranges)


def _excluded(scene: Scene, bodies: list[Body]) -> NDArray[np.int32]:
    """(…, 2) indices of bodies that do not collide with each other."""
    number = {body.name: b for b, body in enumerate(bodies)}
    return np.array([[number[name] for name in pair] for pair in scene.excluded_pairs], np.int32).reshape(-1, 2)


def depth_first(bodies: list[Body]) -> tuple[list[Body], list[int]]:
    """Bodies with every parent before its children, and the index of each one's parent (−1 is the world)."""
    children: dict[str | None, list[Body]] = {}
    for body in bodies:
        children.setdefault(body.parent, []).append(body)
    ordered: list[Body] = []
    parents: list[int] = []
    stack = [(body, -1) for body in reversed(children.get(None, []))]
    while stack:
        body, parent = stack.pop()
        stack += [(child, len(ordered)) for child in reversed(children.get(body.name, []))]
        ordered.append(body)
        parents.append(parent)
    return ordered, parents


def joint_frame(joint: Joint) -> Floats:
    """Columns axis, axis2, axis × axis2 of a joint, in the body's frame; (3, 3).

    A missing axis is z. A missing axis2 is made from the coordinate axis that follows the one nearest to `axis`
    (z → x, x → y, y → z). The frame of a free joint is the parent's.
    """
    if joint.kind == "free":
        return np.eye(3)
    axis = unit((0.0, 0.0, 1.0) if joint.axis is None else joint.axis)
    if joint.axis2 is None:
        second = np.zeros(3)
        second[(int(np.argmax(np.abs(axis))) + 1) % 3] = 1.0
    else:
        second = unit(joint.axis2)
    second = unit(second - (second @ axis) * axis)
    return np.column_stack((axis, second, cross(axis, second)))


class _Layout:
    """Bodies in order, grouped into links."""

    def __init__(self, bodies: list[Body], parents: list[int]) -> None:
        n = len(bodies)
        self.bodies = bodies
        self.parents = parents
        self.link = np.full(n, -1, dtype=np.int32)
        self.position = np.zeros((n, 3))
        self.quat = np.tile(_NO_TURN, (n, 1))
        self.mass = [_matter(body) for body in bodies]
        self.links: list[LinkMotion] = []

    def place_bodies(self) -> None:
        """Start a link at each moving body; weld the others to the link of their parent."""
        poses = [_body_pose(body) for body in self.bodies]
        for b, (body, parent) in enumerate(zip(self.bodies, self.parents, strict=True)):
            base_position, base_quat = np.zeros(3), _NO_TURN
            carrier = -1
            if parent >= 0:
                base_position, base_quat, carrier = self.position[parent], self.quat[parent], int(self.link[parent])
            position = base_position + quat_to_matrix(base_quat) @ poses[b][0]
            quat = quat_normalize(quat_multiply(base_quat, poses[b][1]))
            joints = body.moving_joints()
            if not joints:
                self.link[b], self.position[b], self.quat[b] = carrier, position, quat
                continue
            self.link[b] = len(self.links)
            root = len(self.links) if carrier < 0 else self.links[carrier].root
            link = LinkMotion(b, carrier, root, position, quat)
            if joints[0][1].kind == "free":
                # coordinates are the pose in the parent's frame, which is the link's rest frame
                link.base_position, link.base_quat = base_position.copy(), base_quat.copy()
                link.free_pose = poses[b]
            self.links.append(link)

    def join_masses(self) -> None:
        """Composite mass properties of each link, in its frame."""
        parts: list[list[MassProperties]] = [[] for _ in self.links]
        for b, carrier in enumerate(self.link):
            if carrier >= 0:
                parts[carrier].append(self.mass[b].turned(self.position[b], quat_to_matrix(self.quat[b])))
        for link, lumps in zip(self.links, parts, strict=True):
            link.mass = combine(lumps)


def _is_on_path(body: Body) -> bool:
    return body.motion == "kinematic" and body.path is not None


def _body_pose(body: Body) -> tuple[Floats, Floats]:
    """Pose in the parent's frame; a body with a path is at the start of the path."""
    start = body.path(0.0) if _is_on_path(body) else body
    return np.array(start.position, dtype=np.float64), quat_normalize(start.quat_wxyz)


@dataclass
class _Tables:
    """Rows of the joint, primitive and coordinate arrays under construction."""

    link_primitive_start: list[int] = field(default_factory=lambda: [0])
    link_dof_start: list[int] = field(default_factory=lambda: [0])
    link_poses: list[tuple[Floats, Floats]] = field(default_factory=list)
    last_dof: list[int] = field(default_factory=list)
    nq: int = 0
    nv: int = 0

    kind: list[int] = field(default_factory=list)
    axis: list[Floats] = field(default_factory=list)
    anchor: list[Floats] = field(default_factory=list)
    pitch: list[float] = field(default_factory=list)
    q_start: list[int] = field(default_factory=list)
    v_start: list[int] = field(default_factory=list)

    joint_names: list[str] = field(default_factory=list)
    joint_kinds: list[str] = field(default_factory=list)
    joint_body: list[int] = field(default_factory=list)
    joint_q_start: list[int] = field(default_factory=lambda: [0])
    joint_v_start: list[int] = field(default_factory=lambda: [0])
    joint_cone: list[tuple[float, float]] = field(default_factory=list)
    joint_twist: list[tuple[float, float]] = field(default_factory=list)
    joint_limit_centre: list[Floats] = field(default_factory=list)
    joint_frame: list[Floats] = field(default_factory=list)
    joint_friction: list[float] = field(default_factory=list)

    q_rest: list[float] = field(default_factory=list)
    q_zero: list[float] = field(default_factory=list)
    q_spring: list[float] = field(default_factory=list)
    q_names: list[str] = field(default_factory=list)

    dof_names: list[str] = field(default_factory=list)
    dof_joint: list[int] = field(default_factory=list)
    dof_link: list[int] = field(default_factory=list)
    dof_parent: list[int] = field(default_factory=list)
    dof_armature: list[float] = field(default_factory=list)
    dof_damping: list[float] = field(default_factory=list)
    dof_stiffness: list[float] = field(default_factory=list)
    dof_limits: list[tuple[float, float]] = field(default_factory=list)
    dof_prescribed: list[int] = field(default_factory=list)
    actuator_ranges: dict[int, tuple[tuple[float, float], bool]] = field(default_factory=dict)

    def add_link(self, link: LinkMotion, body: Body) -> None:
        """Append the joints of a link."""
        for name, joint in body.moving_joints():
            self._add_joint(link, body, name, joint)
        free = link.free_pose is not None
        self.link_poses.append((link.base_position, link.base_quat) if free else (link.position, link.quat))
        self.link_primitive_start.append(len(self.kind))
        self.link_dof_start.append(len(self.dof_names))
        self.last_dof.append(len(self.dof_names) - 1)

    def _add_joint(self, link: LinkMotion, body: Body, name: str, joint: Joint) -> None:
        kind, frame = JOINTS[joint.kind], joint_frame(joint)
        anchor = np.zeros(3) if kind.name == "free" else np.array(joint.anchor, dtype=np.float64)
        for primitive, column in kind.primitives:
            self.kind.append(int(primitive))
            self.axis.append(frame[:, column])
            self.anchor.append(anchor)
            self.pitch.append(float(joint.pitch) if primitive is Primitive.SCREW else 0.0)
            self._add_coordinates(primitive)
            link.add_motion(primitive, frame[:, column], anchor, self.pitch[-1])
        self._add_joint_row(link, name, joint, kind, frame)
        self._add_dofs(link, body, name, joint, kind)

    def _add_coordinates(self, primitive: Primitive) -> None:
        nq, nv = WIDTHS[primitive]
        self.q_start.append(self.nq)
        self.v_start.append(self.nv)
        self.nq += nq
        self.nv += nv

    def _add_joint_row(self, link: LinkMotion, name: str, joint: Joint, kind: JointKind, frame: Floats) -> None:
        rest = _rest_coordinates(joint, kind, link)
        self.joint_names.append(name)
        self.joint_kinds.append(kind.name)
        self.joint_body.append(link.body)
        self.joint_q_start.append(self.joint_q_start[-1] + kind.nq)
        self.joint_v_start.append(self.joint_v_start[-1] + kind.nv)
        self.joint_cone.append(_cone(joint))
        self.joint_twist.append(_bounds(joint.twist))
        self.joint_limit_centre.append(quat_normalize(IDENTITY if joint.limit_centre is None else joint.limit_centre))
        self.joint_frame.append(frame.reshape(9))
        self.joint_friction.append(float(joint.friction))
        self.q_rest += rest
        self.q_zero += [0.0] * kind.nq if link.free_pose is not None else rest
        self.q_spring += rest if joint.spring is None else _spring_coordinates(joint, kind)
        self.q_names += [_suffixed(name, suffix) for suffix in kind.q_names]

    def _add_dofs(self, link: LinkMotion, body: Body, name: str, joint: Joint, kind: JointKind) -> None:
        link_index = len(self.link_poses)
        own_first = self.link_dof_start[-1]
        inherited = self.last_dof[link.parent] if link.parent >= 0 else -1
        for suffix in kind.v_names:
            dof = len(self.dof_names)
            self.dof_parent.append(dof - 1 if dof > own_first else inherited)
            self.dof_names.append(_suffixed(name, suffix))
            self.dof_joint.append(len(self.joint_names) - 1)
            self.dof_link.append(link_index)
            self.dof_stiffness.append(float(joint.stiffness))
            self.dof_prescribed.append(_prescribed(body))
        if joint.actuator_force_range is not None:
            counted = joint.actuator_gravity_compensation
            self.actuator_ranges[len(self.dof_names) - 1] = _bounds(joint.actuator_force_range), counted
        self.dof_armature += _per_dof(joint.armature, kind)
        self.dof_damping += _per_dof(joint.damping, kind)
        self.dof_limits += _limits(joint, kind)


def _suffixed(name: str, suffix: str) -> str:
    return f"{name}.{suffix}" if suffix else name


def _rest_coordinates(joint: Joint, kind: JointKind, link: LinkMotion) -> list[float]:
    if link.free_pose is not None:
        return [float(x) for pose in link.free_pose for x in pose]
    rest: list[float] = []
    for primitive, _ in kind.primitives:
        rest += [1.0, 0.0, 0.0, 0.0] if primitive is Primitive.BALL else [0.0]
    return rest if joint.rest is None else _spread(joint.rest, kind.nq)


def _spring_coordinates(joint: Joint, kind: JointKind) -> list[float]:
    spring = _spread(joint.spring, kind.nq)
    return [*spring[:-4], *quat_normalize(spring[-4:]).tolist()] if kind.has_quaternion else spring


def _spread(value: object, count: int) -> list[float]:
    """`count` numbers, from one number or from as many."""
    if isinstance(value, (int, float)):
        return [float(value)] * count
    return [float(x) for x in np.broadcast_to(np.asarray(value, dtype=np.float64), (count,))]


def _per_dof(value: object, kind: JointKind) -> list[float]:
    return _spread(value, kind.nv)


def _bounds(pair: object) -> tuple[float, float]:
    if pair is None:
        return (-np.inf, np.inf)
    low, high = pair  # type: ignore[misc]
    return float(low), float(high)  # type: ignore[has-type]


def _cone(joint: Joint) -> tuple[float, float]:
    if joint.cone is None:
        return (np.inf, np.inf)
    first, second = _spread(joint.cone, 2)
    return first, second


def _limits(joint: Joint, kind: JointKind) -> list[tuple[float, float]]:
    if joint.limits is None:
        return [_bounds(None)] * kind.nv
    if kind.nv == 1 and np.ndim(joint.limits[0] if joint.limits[0] is not None else ()) == 0:
        return [_bounds(joint.limits)]
    return [_bounds(pair) for pair in joint.limits]


def _matter(body: Body) -> MassProperties:
    """Mass properties of a body; infinite on overflow."""
    try:
        return body_mass_properties(body)
    except OverflowError:
        return MassProperties(np.inf, np.zeros(3), np.zeros((3, 3)))


def _check_finite(scene: Scene, layout: _Layout) -> None:
    """Check for overflow: finite sizes and distances can still give infinite masses and moments."""
    matter = [*zip(layout.bodies, layout.mass, strict=True)]
    matter += [(layout.bodies[link.body], link.mass) for link in layout.links]
    for body, lump in matter:
        if not (np.isfinite(lump.mass) and np.isfinite(lump.com).all() and np.isfinite(lump.inertia).all()):
            raise SceneError(
                "sizes, distances, density or mass are too large for numbers to hold",
                file=scene.source,
                line=body.line,
                field=f'body "{body.name}"',
            )


def _ints(values: object) -> NDArray[np.int32]:
    return np.array(values, dtype=np.int32).reshape(-1)


def _rows(values: object, width: int) -> Floats:
    return np.array(values, dtype=np.float64).reshape(-1, width)


def _floats(values: object) -> Floats:
    return np.array(values, dtype=np.float64).reshape(-1)


def _body_arrays(layout: _Layout) -> dict[str, object]:
    return {
        "body_names": tuple(body.name for body in layout.bodies),
        "body_parent": _ints(layout.parents),
        "body_link": layout.link,
        "body_position": layout.position,
        "body_quat_wxyz": layout.quat,
        "body_mass": _floats([matter.mass for matter in layout.mass]),
        "body_com": _rows([matter.com for matter in layout.mass], 3),
        "body_inertia": _rows([pack_inertia(matter.inertia) for matter in layout.mass], 6),
    }


def _link_arrays(layout: _Layout, tables: _Tables) -> dict[str, object]:
    links = layout.links
    return {
        "link_body": _ints([link.body for link in links]),
        "link_parent": _ints([link.parent for link in links]),
        "link_root": _ints([link.root for link in links]),
        "link_position": _rows([pose[0] for pose in tables.link_poses], 3),
        "link_quat_wxyz": _rows([pose[1] for pose in tables.link_poses], 4),
        "link_mass": _floats([link.mass.mass for link in links]),
        "link_com": _rows([link.mass.com for link in links], 3),
        "link_inertia": _rows([pack_inertia(link.mass.inertia) for link in links], 6),
        "link_primitive_start": _ints(tables.link_primitive_start),
        "link_dof_start": _ints(tables.link_dof_start),
        "primitive_kind": _ints(tables.kind),
        "primitive_axis": _rows(tables.axis, 3),
        "primitive_anchor": _rows(tables.anchor, 3),
        "primitive_pitch": _floats(tables.pitch),
        "primitive_q_start": _ints(tables.q_start),
        "primitive_v_start": _ints(tables.v_start),
    }


def _joint_arrays(tables: _Tables) -> dict[str, object]:
    return {
        "joint_names": tuple(tables.joint_names),
        "joint_kinds": tuple(tables.joint_kinds),
        "joint_body": _ints(tables.joint_body),
        "joint_q_start": _ints(tables.joint_q_start),
        "joint_v_start": _ints(tables.joint_v_start),
        "joint_cone": _rows(tables.joint_cone, 2),
        "joint_twist": _rows(tables.joint_twist, 2),
        "joint_limit_centre": _rows(tables.joint_limit_centre, 4),
        "joint_frame": _rows(tables.joint_frame, 9),
        "joint_friction": _floats(tables.joint_friction),
        "q_rest": _floats(tables.q_rest),
        "q_zero": _floats(tables.q_zero),
        "q_spring": _floats(tables.q_spring),
        "q_names": tuple(tables.q_names),
        "dof_names": tuple(tables.dof_names),
        "dof_joint": _ints(tables.dof_joint),
        "dof_link": _ints(tables.dof_link),
        "dof_parent": _ints(tables.dof_parent),
        "dof_armature": _floats(tables.dof_armature),
        "dof_damping": _floats(tables.dof_damping),
        "dof_stiffness": _floats(tables.dof_stiffness),
        "dof_limits": _rows(tables.dof_limits, 2),
        "dof_prescribed": _ints(tables.dof_prescribed),
    }
