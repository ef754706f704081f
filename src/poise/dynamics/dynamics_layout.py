"""Memory layout of the kernels of a tree: model, state, inputs and work arrays.

Frames: world axes, at the origin O of the tree that a link belongs to. O is the rest position of the tree's first link,
carried along by the slides that come first among its joints: for a free body O is the body's own origin. Positions
within a tree are kept relative to O, so that float32 loses nothing far from the world's origin; only O itself is
rounded there (0.06 mm at 1 km).
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from poise.kernel.memory import Block, Count, Index, Real, View, Width
from poise.kernel.quat import Quat, rotation
from poise.kernel.spatial import Articulated, Force, Inertia, Motion
from poise.kernel.vec import Mat3, Sym3, Vec3
from poise.model.model import Model

MODEL = View(
    "Model",
    constant=True,
    varied=("gravity", "link_mass", "link_com", "link_inertia", "dof_armature", "dof_damping", "dof_stiffness"),
    n_links=Count,
    nq=Count,
    nv=Count,
    n_bodies=Count,
    has_passive=Count,  # any spring or damper
    gravity=Vec3,
    link_parent=Index,
    link_has_children=Index,
    link_is_last_child=Index,  # 1 where no later link has the same parent
    link_root=Index,
    link_position=Vec3,
    link_rotation=Mat3,
    link_turned=Index,  # 0 where link_rotation is the identity
    link_mass=Real,
    link_com=Vec3,
    link_inertia=Sym3,
    link_primitive_start=Index,
    link_dof_start=Index,
    primitive_kind=Index,
    primitive_axis=Vec3,
    primitive_along=Index,  # 0, 1, 2 where the axis is ±x, ±y, ±z of the link, else 3
    primitive_anchor=Vec3,
    primitive_centred=Index,  # 1 where the anchor is the link's origin
    primitive_pitch=Real,
    primitive_q_start=Index,
    primitive_v_start=Index,
    n_primitives=Count,
    n_compensated=Count,
    compensated_link=Index,  # links of bodies with gravity compensation
    compensated_mass=Real,
    compensated_com=Vec3,
    q_zero=Real,  # coordinates from which slides and rotations are measured
    q_spring=Real,
    dof_link=Index,
    dof_root=Index,  # first link of the tree
    dof_parent=Index,
    dof_ends_link=Index,  # 1 for the last dof of each link
    dof_armature=Real,
    dof_damping=Real,
    dof_stiffness=Real,
    dof_prescribed=Index,
    body_link=Index,
    body_position=Vec3,
    body_centred=Index,  # 1 where the body's origin is its link's
    body_rotation=Mat3,
    body_centre=Vec3,  # centre of mass of the body in its link's frame
)

STATE = View("State", q=Real, v=Real)

INPUT = View(
    "Input",
    n_forces=Count,  # 0 where `force` is to be ignored
    n_gains=Count,  # 0 where the drives are to be ignored
    tau=Real,  # generalized force, for each dof; N or N·m
    prescribed=Real,  # accelerations of dofs with prescribed motion; m/s² or rad/s²
    force=Force,  # on each body, world axes, moment about the body's origin; N·m, N
    gain_p=Real,  # drive towards goal_q, for each dof; N/m or N·m/rad
    gain_d=Real,  # drive towards goal_v; N·s/m or N·m·s/rad
    goal_q=Real,
    goal_v=Real,
)

WORK = View(
    "Work",
    origin=Vec3,  # O in the world, at the first link of each tree; m
    R=Mat3,  # R_WL of each link
    r=Vec3,  # of each link's origin from O; m
    velocity=Motion,  # of each link
    bias=Motion,  # of each link: acceleration from the rotation of its own joints' axes, Ṡ q̇
    axis=Motion,  # of each dof: the motion of its link per unit velocity
    sine=Real,  # of each coordinate, taken as an angle
    cosine=Real,
    inertia=Inertia,  # of each link, rigid
    gyro=Force,  # of each link: v ×* I v
    total=Real,  # of each dof: tau, springs, dampers and drives, at the start of the step
    lift=Real,  # of each dof: gravity compensation, a part of `total`; only where there is some
    diagonal=Real,  # of each dof: implicit springs, dampers and drives, added to the inertia
    articulated=Articulated,  # of each link
    apparent=Articulated,  # of each link that has a parent: the part of its articulated inertia that acts on the parent
    inverse=Real,  # of each dof: 1/d, 0 where the motion is prescribed
    gain=Force,  # of each dof: ĥ/d, with KOK's ĥ = articulated inertia times axis; 0 where the motion is prescribed
    hold=Force,  # of each dof whose motion is prescribed: ĥ
    lag=Force,  # of each link: articulated inertia times bias
    p=Force,  # of each link: force that is not yet balanced
    u=Real,  # of each dof
    acceleration=Motion,  # of each link, gravity taken as −g of the base
    coast=Motion,  # of each link that is a separate body: spatial acceleration from the forces of its joints alone
    a=Real,  # of each dof
    n_drift=Count,  # 0 where links move along their degrees of freedom alone
    drift=Motion,  # of each link: motion beside its degrees of freedom, which closes the gap of its joint
    centre=Vec3,  # of each body: its centre of mass from O, which row kernels read; m
)

_COORDINATE = ("sine", "cosine")
_LINK = (
    "origin",
    "R",
    "r",
    "velocity",
    "bias",
    "inertia",
    "gyro",
    "articulated",
    "apparent",
    "lag",
    "p",
    "acceleration",
    "coast",
)


def work_block(model: Model, width: Width, drifts: bool = False) -> Block:
    """Work arrays of one width; with `drifts`, links may move beside their degrees of freedom."""
    sizes = dict.fromkeys(WORK.fields, model.nv)
    sizes |= dict.fromkeys(_LINK, model.n_links) | dict.fromkeys(_COORDINATE, model.nq) | {"centre": model.n_bodies}
    return WORK.block(width, **(sizes | {"n_drift": int(drifts), "drift": model.n_links if drifts else 0}))


def state_block(model: Model, width: Width) -> Block:
    """Coordinates and velocities, at the rest pose."""
    block = STATE.block(width, q=model.nq, v=model.nv)
    block.q[...] = model.q_rest if width.lanes == 1 else model.q_rest[:, None]
    return block


def input_block(model: Model, width: Width) -> Block:
    """Inputs of zero."""
    sizes = dict.fromkeys(INPUT.fields, model.nv) | {"force": model.n_bodies, "goal_q": model.nq}
    return INPUT.block(width, **(sizes | {"n_forces": 0, "n_gains": 0}))


_model_blocks: weakref.WeakKeyDictionary[Model, dict[str, Block]] = weakref.WeakKeyDictionary()


def model_block(model: Model, width: Width) -> Block:
    """The model's arrays in the precision of a width; made once, except for widths that vary."""
    if width.varied:
        return _make_model_block(model, width)
    known = _model_blocks.setdefault(model, {})
    if width.elem not in known:
        known[width.elem] = _make_model_block(model, Width(width.elem))
    return known[width.elem]


def _make_model_block(model: Model, width: Width) -> Block:
    axis = np.abs(model.primitive_axis)
    aligned = (np.count_nonzero(axis, axis=1) == 1) & (axis.max(axis=1, initial=0.0) == 1.0)
    turned = np.any(model.link_quat_wxyz[:, 1:] != 0.0, axis=1)
    given: dict[str, Any] = {
        "n_links": model.n_links,
        "nq": model.nq,
        "nv": model.nv,
        "n_bodies": model.n_bodies,
        "n_primitives": len(model.primitive_kind),
        "n_compensated": len(model.compensated_link),
        "has_passive": int(np.any(model.dof_stiffness) or np.any(model.dof_damping)),
        "gravity": model.gravity[None],
        "link_rotation": matrices(model.link_quat_wxyz),
        "link_turned": turned,
        "dof_root": model.link_root[model.dof_link],
        "dof_ends_link": np.diff(model.dof_link, append=-1) != 0,
        "link_has_children": np.isin(np.arange(model.n_links), model.link_parent),
        "link_is_last_child": _last_children(model),
        "primitive_along": np.where(aligned, axis.argmax(axis=1) if len(axis) else 3, 3),
        "primitive_centred": ~np.any(model.primitive_anchor, axis=1),
        "body_centred": ~np.any(model.body_position, axis=1),
        "body_rotation": matrices(model.body_quat_wxyz),
        "body_centre": _centres(model),
    }
    arrays = model.arrays()
    return MODEL.block(width, **given, **{name: arrays[name] for name in MODEL.fields if name not in given})


def _last_children(model: Model) -> np.ndarray:
    """Which links are the last ones that their parents carry."""
    last = np.zeros(model.n_links, bool)
    last[list({int(parent): link for link, parent in enumerate(model.link_parent)}.values())] = True
    return last


def _centres(model: Model) -> np.ndarray:
    """(n_bodies, 3) centres of mass of bodies in the frames of their links."""
    turns = matrices(model.body_quat_wxyz).reshape(-1, 3, 3)
    return np.asarray(model.body_position + np.einsum("nij,nj->ni", turns, model.body_com))


def matrices(quats_wxyz: np.ndarray) -> np.ndarray:
    """(n, 9) rotation matrices, by rows, of (n, 4) quaternions."""
    q = quats_wxyz / np.linalg.norm(quats_wxyz, axis=1, keepdims=True)
    return np.stack(list(rotation(Quat(*q.T)).leaves()), axis=1)
