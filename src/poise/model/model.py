"""The compiled model: immutable flat arrays, parent before child, made by `compile.py`.

*Bodies* are those of the scene. *Links* are the moving rigid parts: a body with joints together with the bodies welded
to it. A link has a contiguous range of primitives (see `joints.py`), a primitive a range of degrees of freedom. Order
is depth-first as the scene lists its bodies, which is MuJoCo's order.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import resolve_name
from poise.model.joints import Primitive
from poise.model.loops import Coupling, LoopJoint
from poise.model.motors import Motor
from poise.model.shape_arrays import Solids, no_solids
from poise.model.skins import Skins, no_skins

if TYPE_CHECKING:
    from poise.motion.path import Path

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
_ARRAYS: dict[str, Any] = {"Floats": np.float64, "Indices": np.int32}
"""Type of the arrays for each name of a field's type."""
_LATER = (
    *("contact_pairs", "contact_pair_friction", "compensated_link", "compensated_mass", "compensated_com"),
    *("actuator_range_dof", "actuator_range", "actuator_range_lifted"),
)
"""Fields that files of earlier versions do not have."""


@dataclass(frozen=True, eq=False)
class Model:
    """Arrays of a compiled scene. Every array is read-only.

    >>> from poise.model.scene import Body, Joint, Scene
    >>> arm = Body("hero/arm", joints=[Joint("ball", name="hero/shoulder", armature=0.1)])
    >>> model = Scene(bodies=[arm]).compile()
    >>> model.nq, model.nv, model.joint_index("shoulder"), model.dof_index("shoulder.wy"), model.q_slice("shoulder")
    (4, 3, 0, 1, slice(0, 4, None))
    >>> model.q_rest[0] = 2.0
    Traceback (most recent call last):
        ...
    ValueError: assignment destination is read-only
    """

    name: str
    gravity: Floats
    """(3,) m/s²."""
    dt: float
    """Suggested time step; s."""

    body_names: tuple[str, ...]
    body_parent: Indices
    """(n_bodies,) body, −1 is the world."""
    body_link: Indices
    """(n_bodies,) link of the body, −1 for a static body."""
    body_position: Floats
    """(n_bodies, 3) of the body's frame in its link's frame (in the world's when `body_link` is −1); m."""
    body_quat_wxyz: Floats
    """(n_bodies, 4) orientation, likewise."""
    body_mass: Floats
    """(n_bodies,) kg."""
    body_com: Floats
    """(n_bodies, 3) in the body's frame; m."""
    body_inertia: Floats
    """(n_bodies, 6) xx, yy, zz, xy, xz, yz about the centre of mass in the body's axes; kg·m²."""

    link_body: Indices
    """(n_links,) the body whose frame is the link's frame."""
    link_parent: Indices
    """(n_links,) link, −1 is the world."""
    link_root: Indices
    """(n_links,) first link of the tree that the link belongs to."""
    link_position: Floats
    """(n_links, 3) rest position in the parent link's frame; for a free joint that of the parent body's frame, from
    which its coordinates count (0, unless the parent is welded to another body); m."""
    link_quat_wxyz: Floats
    """(n_links, 4) rest orientation, likewise (identity for a free joint, with the same exception)."""
    link_mass: Floats
    """(n_links,) of all bodies welded together; kg."""
    link_com: Floats
    """(n_links, 3) in the link's frame; m."""
    link_inertia: Floats
    """(n_links, 6) xx, yy, zz, xy, xz, yz about the centre of mass in the link's axes; kg·m²."""
    link_primitive_start: Indices
    """(n_links + 1,)"""
    link_dof_start: Indices
    """(n_links + 1,)"""

    primitive_kind: Indices
    """(n_primitives,) a `Primitive`."""
    primitive_axis: Floats
    """(n_primitives, 3) unit vector in the link's frame; unused for ball joints."""
    primitive_anchor: Floats
    """(n_primitives, 3) centre of rotation in the link's frame; m."""
    primitive_pitch: Floats
    """(n_primitives,) m/rad."""
    primitive_q_start: Indices
    """(n_primitives,) first coordinate."""
    primitive_v_start: Indices
    """(n_primitives,) first velocity."""

    joint_names: tuple[str, ...]
    joint_kinds: tuple[str, ...]
    joint_body: Indices
    """(n_joints,)"""
    joint_q_start: Indices
    """(n_joints + 1,)"""
    joint_v_start: Indices
    """(n_joints + 1,)"""
    joint_cone: Floats
    """(n_joints, 2) largest swing of a ball joint's axis about the joint's second and third axes, inf if free; rad."""
    joint_twist: Floats
    """(n_joints, 2) range of a ball joint's twist, ±inf if free; rad."""
    joint_limit_centre: Floats
    """(n_joints, 4) rotation (w, x, y, z) of a ball joint at which swing and twist are 0."""
    joint_frame: Floats
    """(n_joints, 9) columns axis, axis2, axis × axis2 in the body's frame, row-major."""
    joint_friction: Floats
    """(n_joints,) dry friction; N or N·m."""

    q_rest: Floats
    """(nq,) coordinates at the rest pose."""
    q_zero: Floats
    """(nq,) coordinates at which a link is at `link_position`: slides, turns and screws move by q − q_zero. It is
    q_rest, except 0 for a free joint, whose coordinates are the pose itself. Unused for ball joints."""
    q_spring: Floats
    """(nq,) coordinates at which springs are relaxed."""
    q_names: tuple[str, ...]

    dof_names: tuple[str, ...]
    dof_joint: Indices
    """(nv,)"""
    dof_link: Indices
    """(nv,)"""
    dof_parent: Indices
    """(nv,) the next degree of freedom towards the root, −1 at the root."""
    dof_armature: Floats
    """(nv,) kg or kg·m²."""
    dof_damping: Floats
    """(nv,) N·s/m or N·m·s/rad."""
    dof_stiffness: Floats
    """(nv,) N/m or N·m/rad."""
    dof_limits: Floats
    """(nv, 2) limits of the coordinate, ±inf without a limit; no NaN; rad or m. Ball joints use cone and twist."""
    dof_prescribed: Indices
    """(nv,) a `Prescribed`: where it is not 0 the motion is prescribed (kinematic bodies) and the force is computed."""

    excluded: Indices = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    """(…, 2) pairs of bodies that do not collide with each other."""
    contact_pairs: Indices = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    """(…, 2) contact pairs: shapes that collide regardless of filters, the lesser first, sorted."""
    contact_pair_friction: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """(…, 3) sliding, torsional and rolling friction of each contact pair, instead of the combined one; 1, m, m."""
    compensated_link: Indices = field(default_factory=lambda: np.zeros(0, np.int32))
    """(…,) links of bodies with gravity compensation."""
    compensated_mass: Floats = field(default_factory=lambda: np.zeros(0))
    """(…,) mass of each whose weight is compensated; kg."""
    compensated_com: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """(…, 3) centre of that mass, in the link's frame; m."""
    actuator_range_dof: Indices = field(default_factory=lambda: np.zeros(0, np.int32))
    """(…,) degrees of freedom with a range of the total force of their motors that no single motor can enforce."""
    actuator_range: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    """(…, 2) (lower, upper) of each; N or N·m."""
    actuator_range_lifted: Indices = field(default_factory=lambda: np.zeros(0, np.int32))
    """(…,) 1 where gravity compensation counts as a motor force."""
    solids: Solids = field(default_factory=no_solids)
    """Shapes of all bodies."""
    paths: tuple[tuple[int, Path], ...] = ()
    """(joint, path) of each kinematic body that follows a path, in the order of the joints."""
    motors: tuple[Motor, ...] = ()
    """In the order of the scene's actuators."""
    loops: tuple[LoopJoint, ...] = ()
    """Loop joints, in addition to the joints of the tree."""
    couplings: tuple[Coupling, ...] = ()
    skins: Skins = field(default_factory=no_skins)
    """Skinned meshes."""

    def __repr__(self) -> str:
        counts = f"n_bodies {self.n_bodies}, n_joints {self.n_joints}, nq {self.nq}, nv {self.nv}"
        return f"<Model {self.name!r}: {counts}>"

    def _repr_html_(self) -> str:
        """Picture of the model for notebooks."""
        from pkgutil import resolve_name  # by its name: compiled code must not depend on rendering

        return str(resolve_name("poise.view.page.still:model_html")(self))

    def __post_init__(self) -> None:
        """Check types and lengths of arrays and make them read-only: kernels trust them."""
        self._hold_arrays()
        self._check_lengths()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hold_arrays()

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self  # immutable

    def _hold_arrays(self) -> None:
        """Make every array read-only; one that is writable through another reference is copied."""
        for item in fields(self):
            dtype = _ARRAYS.get(item.type) if isinstance(item.type, str) else None
            if dtype is None:
                continue
            value = getattr(self, item.name)
            ours = type(value) is np.ndarray and value.dtype == dtype and value.base is None
            if not ours or value.flags.writeable:
                try:
                    value = np.array(value, dtype)
                except (TypeError, ValueError):
                    raise TypeError(f"model: {item.name} must be an array of numbers, not {value!r}") from None
                value.flags.writeable = False
                object.__setattr__(self, item.name, value)

    def _check_lengths(self) -> None:
        counts = {"body": self.n_bodies, "link": self.n_links, "joint": self.n_joints, "q": self.nq, "dof": self.nv}
        counts["primitive"] = len(self.primitive_kind)
        for name in (item.name for item in fields(self)):
            what, _, rest = name.partition("_")
            if what not in counts or not rest:
                continue
            ends = what in ("link", "joint") and rest.endswith("_start")
            if len(getattr(self, name)) != counts[what] + ends:
                found = len(getattr(self, name))
                raise ValueError(f"model: {name} has {found} elements; the others make it {counts[what] + ends}")
        if self.gravity.shape != (3,):
            raise ValueError(f"model: gravity has shape {self.gravity.shape}; it must be (3,)")

    @property
    def n_bodies(self) -> int:
        """Number of bodies, without the world."""
        return len(self.body_names)

    @property
    def n_links(self) -> int:
        """Number of moving rigid parts."""
        return len(self.link_parent)

    @property
    def n_joints(self) -> int:
        """Number of moving joints."""
        return len(self.joint_names)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.q_rest)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return len(self.dof_link)

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array of the model by its name."""
        return {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), np.ndarray)}

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        """Index of each full name."""
        tables = {"body": self.body_names, "joint": self.joint_names, "degree of freedom": self.dof_names}
        return {what: {name: k for k, name in enumerate(names)} for what, names in tables.items()}

    @cached_property
    def quaternion_places(self) -> np.ndarray:
        """(n, 4) indices of the quaternions in q."""
        return np.asarray(self.primitive_q_start[self.primitive_kind == Primitive.BALL][:, None] + np.arange(4))

    def _index(self, what: str, name: str) -> int:
        places = self._places[what]
        found = places.get(name) if isinstance(name, str) else None
        return found if found is not None else places[resolve_name(what, name, list(places))]

    def body_index(self, name: str) -> int:
        """Index of a body by its name, or by the last part of it where that is unique."""
        return self._index("body", name)

    def joint_index(self, name: str) -> int:
        """Index of a joint by its name, or by the last part of it where that is unique."""
        return self._index("joint", name)

    def dof_index(self, name: str) -> int:
        """Index of a degree of freedom (`"knee"`, `"hip.wx"`) by its name, or by the last part of it."""
        return self._index("degree of freedom", name)

    def q_slice(self, joint: str) -> slice:
        """Slice of q with the coordinates of a joint."""
        k = self.joint_index(joint)
        return slice(int(self.joint_q_start[k]), int(self.joint_q_start[k + 1]))

    def v_slice(self, joint: str) -> slice:
        """Slice of v with the velocities of a joint."""
        k = self.joint_index(joint)
        return slice(int(self.joint_v_start[k]), int(self.joint_v_start[k + 1]))

    def digest(self) -> str:
        """Hash of every array and name: equal for equal models, on any machine."""
        parts = "".join(f"{name}={part};" for name, part in self.digests().items())
        return hashlib.sha256(parts.encode()).hexdigest()

    def digests(self) -> dict[str, str]:
        """Hash of each field by its name, for finding differences between two models.

        A path is a function, which cannot be hashed: only the joints that follow one count. Colours and skins do not
        count. Fields of later versions count only if they are not empty, so that files of earlier versions still match.
        """
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("solids", "skins")}
        values = {name: value for name, value in values.items() if name not in _LATER or len(value)}
        looks = ("color",)
        kept = [item.name for item in fields(self.solids) if item.name not in looks]
        values |= {f"solids.{name}": getattr(self.solids, name) for name in kept}
        values["paths"] = [joint for joint, _ in self.paths]
        values["motors"] = [motor.told() for motor in self.motors]
        return {name: _digest(value) for name, value in values.items()}


def _digest(value: object) -> str:
    """Hash of an array, a number or names."""
    if not isinstance(value, np.ndarray):
        return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
    # −0 becomes 0, and bytes are little-endian on every machine
    plain = value + 0.0 if value.dtype.kind == "f" else value
    hasher = hashlib.sha256(f"{value.dtype.str[1:]}{value.shape}".encode())
    hasher.update(np.ascontiguousarray(plain, dtype=plain.dtype.newbyteorder("<")).tobytes())
    return hasher.hexdigest()[:16]
