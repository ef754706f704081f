"""Bodies, joints and shapes of a compiled MuJoCo model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from poise.io.meshes import is_closed
from poise.io.mjcf_source import MjcfSource, floats, quaternion, vector
from poise.model.hull import dent
from poise.model.scene import Body, Inertia, Joint
from poise.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Material,
    Plane,
    Shape,
    Sphere,
    TriangleMesh,
)

#: colour of a geom that the file does not colour: its material's shows instead
_UNPAINTED = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)
#: bits of a shape's groups that fit a signed 32-bit integer
MOST_GROUPS = 30
#: the group of shapes that touch nothing but in contact pairs: no mask has it
_PAIRED = 1 << 30


def read_bodies(source: MjcfSource) -> list[Body]:
    """All bodies, the world's shapes first, then MuJoCo's order with mocap bodies last."""
    shapes = _read_shapes(source)
    body_lines = source.lines(source.spec.bodies)
    joint_lines = source.lines(source.spec.joints)
    bodies = []
    if shapes[0]:
        world = Body(source.body_names[0], shapes=shapes[0], inertia=Inertia(0.0), motion="fixed")
        bodies.append(world)
    for i in source.body_order:
        body = _read_body(source, i)
        body.shapes = shapes[i]
        body.line = body_lines.get(i)
        body.joints = [_read_joint(source, j, joint_lines.get(j)) for j in source.joints_of(i)]
        bodies.append(body)
    return bodies


def _read_body(source: MjcfSource, i: int) -> Body:
    model = source.model
    parent = int(model.body_parentid[i])
    body = Body(
        source.body_names[i],
        parent=source.body_names[parent] if parent else None,
        position=vector(model.body_pos[i]),
        quat_wxyz=quaternion(model.body_quat[i]),
        inertia=Inertia(
            mass=float(model.body_mass[i]),
            com=vector(model.body_ipos[i]),
            moments=vector(model.body_inertia[i]),
            quat_wxyz=quaternion(model.body_iquat[i]),
        ),
    )
    if source.compensates_gravity:
        body.gravity_compensation = float(model.body_gravcomp[i])
    if model.body_mocapid[i] >= 0:
        body.motion = "kinematic"
    elif not source.moves(i):
        body.motion = "fixed"
    return body


def _read_joint(source: MjcfSource, j: int, line: int | None) -> Joint:
    model, types = source.model, source.mj.mjtJoint
    kind = {
        types.mjJNT_FREE: "free",
        types.mjJNT_BALL: "ball",
        types.mjJNT_SLIDE: "slider",
        types.mjJNT_HINGE: "hinge",
    }[types(model.jnt_type[j])]
    width = {"free": 6, "ball": 3}.get(kind, 1)
    start = int(model.jnt_dofadr[j])
    dofs = slice(start, start + width)
    joint = Joint(
        kind,
        name=source.joint_names[j],
        stiffness=0.0 if source.disabled("SPRING", "PASSIVE") else float(model.jnt_stiffness[j]),
        damping=0.0 if source.disabled("DAMPER", "PASSIVE") else _one_or_each(model.dof_damping[dofs]),
        armature=_one_or_each(model.dof_armature[dofs]),
        friction=0.0 if source.disabled("FRICTIONLOSS", "CONSTRAINT") else float(model.dof_frictionloss[start]),
        line=line,
    )
    joint.actuator_gravity_compensation = bool(model.jnt_actgravcomp[j])
    limited = bool(model.jnt_limited[j]) and not source.disabled("LIMIT", "CONSTRAINT")
    lower, upper = floats(model.jnt_range[j])
    if kind != "free":
        joint.anchor = vector(model.jnt_pos[j])
    if kind == "ball" and limited:
        joint.cone, joint.twist = upper, (-upper, upper)
    if width == 1:
        address = int(model.jnt_qposadr[j])
        rest, spring = float(model.qpos0[address]), float(model.qpos_spring[address])
        joint.axis = vector(model.jnt_axis[j])
        joint.limits = (lower, upper) if limited else None
        if model.jnt_actfrclimited[j]:
            least, most = floats(model.jnt_actfrcrange[j])
            joint.actuator_force_range = (least, most)
        joint.rest = rest if rest != 0.0 else None
        joint.spring = spring if spring != rest else None
    return joint


def _one_or_each(values: Any) -> float | tuple[float, ...]:
    """One number where all are equal."""
    each = floats(values)
    return each[0] if len(set(each)) == 1 else each


def _read_shapes(source: MjcfSource) -> list[list[Shape]]:
    """Shapes of every body, by MuJoCo's index."""
    model = source.model
    shapes: list[list[Shape]] = [[] for _ in range(model.nbody)]
    groups = _collision_groups(source)
    lines = source.lines(source.spec.geoms)
    names = source.given_names("GEOM", model.ngeom)
    meshes: dict[tuple[int, bool], Any] = {}
    kept = kept_geoms(source)
    for g in range(model.ngeom):
        if not kept[g]:
            continue
        group, mask = groups[g]
        geometry = _geometry(source, g, (group | mask) != 0, meshes)
        shape = geometry(
            name=names[g] or None,
            position=vector(model.geom_pos[g]),
            quat_wxyz=quaternion(model.geom_quat[g]),
            density=0.0,
            material=_material(source, g),
            color=_color(source, g),
            group=group,
            mask=mask,
            margin=float(model.geom_margin[g]),
            line=lines.get(g),
        )
        shapes[int(model.geom_bodyid[g])].append(shape)
    return shapes


def kept_geoms(source: MjcfSource) -> list[bool]:
    """For every geom, whether it becomes a shape."""
    types, lost = source.mj.mjtGeom, moving_grounds(source)
    known = ("PLANE", "HFIELD", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH")
    kinds = {int(getattr(types, f"mjGEOM_{name}")) for name in known}
    return [int(kind) in kinds and not gone for kind, gone in zip(source.model.geom_type, lost, strict=True)]


def _geometry(source: MjcfSource, g: int, collides: bool, meshes: dict[tuple[int, bool], Any]) -> Any:
    """A maker of the geom's shape with its sizes filled in (full lengths; MuJoCo's are half)."""
    model, types = source.model, source.mj.mjtGeom
    kind = types(model.geom_type[g])
    x, y, z = floats(model.geom_size[g])
    if kind == types.mjGEOM_HFIELD:
        return _height_field(model, int(model.geom_dataid[g]))
    if kind == types.mjGEOM_MESH:
        key = (int(model.geom_dataid[g]), collides)
        if key not in meshes:
            meshes[key] = _hull(model, key[0]) if collides else _seen_mesh(model, key[0])
        return meshes[key]
    makers = {
        types.mjGEOM_PLANE: partial(Plane, extent=(2 * x, 2 * y) if x > 0 and y > 0 else None),
        types.mjGEOM_SPHERE: partial(Sphere, radius=x),
        types.mjGEOM_CAPSULE: partial(Capsule, radius=x, length=2 * y),
        types.mjGEOM_ELLIPSOID: partial(Ellipsoid, size=(2 * x, 2 * y, 2 * z)),
        types.mjGEOM_CYLINDER: partial(Cylinder, radius=x, length=2 * y),
        types.mjGEOM_BOX: partial(Box, size=(2 * x, 2 * y, 2 * z)),
    }
    return makers[kind]


def _seen_mesh(model: Any, mesh: int) -> Any:
    """A maker of a visual mesh: its triangles, closed or not."""
    start, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    faces = np.array(model.mesh_face[start : start + count])
    return partial(TriangleMesh, vertices=_vertices(model, mesh), faces=faces, open=not is_closed(faces))


def _vertices(model: Any, mesh: int) -> Any:
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    return np.array(model.mesh_vert[start : start + count], dtype=np.float64)


def _hull(model: Any, mesh: int) -> Any:
    """A maker of a collision mesh: the convex hull from MuJoCo, otherwise the vertices for computing it.

    A hull in `mesh_graph` is: counts of vertices n and faces m, n edge addresses, n vertex indices, n + 3m edges,
    3m vertex indices of the faces.
    """
    vertices = _vertices(model, mesh)
    graph = int(model.mesh_graphadr[mesh])
    if graph >= 0:
        n, m = (int(number) for number in model.mesh_graph[graph : graph + 2])
        corners = np.array(model.mesh_graph[graph + 2 + n : graph + 2 + 2 * n])
        end = graph + 2 + 3 * n + 6 * m
        faces = np.array(model.mesh_graph[end - 3 * m : end]).reshape(m, 3)
        order = np.argsort(corners)
        hull, triangles = vertices[corners], order[np.searchsorted(corners, faces, sorter=order)]
        # sides with more than three corners are not always flat there
        return partial(ConvexMesh, vertices=hull, faces=triangles if dent(hull, triangles) is None else None)
    return partial(ConvexMesh, vertices=vertices)


def moving_grounds(source: MjcfSource) -> list[bool]:
    """For every geom, whether it is a plane or a height field on a moving body, which Poise does not support."""
    model, types = source.model, source.mj.mjtGeom
    grounds = (int(types.mjGEOM_PLANE), int(types.mjGEOM_HFIELD))
    owners = zip(model.geom_type, model.geom_bodyid, strict=True)
    return [int(kind) in grounds and source.moves(int(body)) for kind, body in owners]


def _height_field(model: Any, field: int) -> Any:
    """A maker of a height field; MuJoCo has heights as shares of the greatest, row by row along y."""
    rows, columns, start = (int(getattr(model, f"hfield_{name}")[field]) for name in ("nrow", "ncol", "adr"))
    x, y, height, _ = floats(model.hfield_size[field])
    shares = np.array(model.hfield_data[start : start + rows * columns], np.float64)
    return partial(HeightField, heights=height * shares.reshape(rows, columns), extent=(2 * x, 2 * y))


def _material(source: MjcfSource, g: int) -> Material:
    """All three coefficients. condim selects those of a contact, and the other geom's can be larger."""
    sliding, torsional, rolling = floats(source.model.geom_friction[g])
    return Material(
        friction=sliding,
        torsional_friction=torsional,
        rolling_friction=rolling,
        priority=int(source.model.geom_priority[g]),
        condim=int(source.model.geom_condim[g]),
    )


def _color(source: MjcfSource, g: int) -> tuple[float, float, float, float]:
    """A geom's own colour, or its material's where it has none of its own."""
    model = source.model
    material = int(model.geom_matid[g])
    own = np.array(model.geom_rgba[g])
    chosen = model.mat_rgba[material] if material >= 0 and np.array_equal(own, _UNPAINTED) else own
    red, green, blue, opacity = (round(value, 6) for value in floats(chosen))
    return (red, green, blue, opacity)


def _collision_groups(source: MjcfSource) -> list[tuple[int, int]]:
    """(group, mask) of every geom, so that two of them meet where MuJoCo lets them.

    MuJoCo lets geoms meet when the contype of *either* is in the conaffinity of the other. Every combination of the
    two that occurs becomes one group, and its mask the groups that it meets; MuJoCo's default (1, 1) is group 1,
    Poise's default.
    """
    model = source.model
    filters = [
        (int(contype), int(affinity))
        for contype, affinity in zip(model.geom_contype, model.geom_conaffinity, strict=True)
    ]
    if source.disabled("CONTACT", "CONSTRAINT"):
        return [(0, 0)] * len(filters)
    paired = {*map(int, model.pair_geom1), *map(int, model.pair_geom2)}
    groups = _filter_groups(filters)
    return [(_PAIRED, 0) if pair == (0, 0) and g in paired else pair for g, pair in enumerate(groups)]


def _filter_groups(filters: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(group, mask) of every geom from its contype and conaffinity."""
    kinds = sorted({(1, 1), *filters}, key=lambda kind: (kind != (1, 1), kind))
    kinds = [kind for kind in kinds if any(_meet(kind, other) for other in {(1, 1), *filters})]
    if len(kinds) > MOST_GROUPS:
        return filters
    masks = {kind: sum(1 << bit for bit, other in enumerate(kinds) if _meet(kind, other)) for kind in kinds}
    return [(1 << kinds.index(kind), masks[kind]) if kind in masks else (0, 0) for kind in filters]


def _meet(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return bool(first[0] & second[1] or second[0] & first[1])
