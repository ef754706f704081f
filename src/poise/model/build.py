"""Building scenes: implementation of the methods of `Scene`."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.model.checks import shown
from poise.model.errors import SceneError, did_you_mean, resolve_name
from poise.model.joints import JOINTS, OTHER_NAMES
from poise.model.shapes import Material, Plane, Quaternion, Shape, Vector, make_shape
from poise.motion.rotations import quat_multiply, quat_normalize, quat_to_matrix

if TYPE_CHECKING:
    from poise.model.scene import Body, Character, Joint, Scene

_AXES: dict[str, Vector] = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0),
    "-y": (0.0, -1.0, 0.0),
    "-z": (0.0, 0.0, -1.0),
}


#: names of options of a body and its joint in other programs
_OTHER_OPTIONS = {
    "pos": "position",
    "quat": "quat_wxyz",
    "range": "limits",
    "lower": "limits",
    "upper": "limits",
    "ref": "rest",
    "springref": "spring",
    "frictionloss": "friction",
}


@dataclass(frozen=True)
class BodyHandle:
    """A body of a scene, as `Scene.add` returns it.

    >>> from poise.model.scene import Scene
    >>> handle = Scene().add(Plane(), name="floor")
    >>> handle.description.joints
    []
    """

    scene: Scene = field(repr=False)
    name: str
    """Full name in the scene."""

    @property
    def description(self) -> Body:
        """The body in the scene; changes have an effect until the scene is compiled."""
        return self.scene.body(self.name)


@dataclass(frozen=True)
class CharacterHandle:
    """A character of a scene, as `Scene.add` returns it.

    >>> from poise.model.scene import Body, Character, Joint, Scene
    >>> legs = [Body("hip"), Body("leg", "hip", joints=[Joint("hinge", name="knee")])]
    >>> hero = Scene().add(Character("hero", legs))
    >>> hero.root, hero.body("leg"), hero.joint("knee")
    (BodyHandle(name='hero/hip'), BodyHandle(name='hero/leg'), 'hero/knee')
    """

    scene: Scene = field(repr=False)
    name: str
    bodies: tuple[str, ...]
    """Full names of its bodies, the root first."""
    position: Vector = (0.0, 0.0, 0.0)
    """Position of the character's frame; m."""
    quat_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Orientation of the character's frame."""

    @property
    def root(self) -> BodyHandle:
        """The first body of the character."""
        return BodyHandle(self.scene, self.bodies[0])

    def body(self, name: str) -> BodyHandle:
        """A body of the character, by its name in the character or in the scene."""
        return BodyHandle(self.scene, resolve_name("body", name, self.bodies, file=self.scene.source))

    @property
    def joints(self) -> tuple[str, ...]:
        """Full names of the joints of the character."""
        return tuple(name for body in self.bodies for name in self.scene.body(body).joint_names())

    def joint(self, name: str) -> str:
        """Full name of a joint of the character."""
        return resolve_name("joint", name, self.joints, file=self.scene.source)

    def track(self, motion: Any, *, strength: Any = None, root: str = "guided", **options: Any) -> None:
        """Make the character track a motion in worlds that are built from now on, from their first step.

        `motion` is a clip, key-frames, a `poise.control.Reference`, or times and coordinates of this character. A clip
        starts at the character's position and heading; a cyclic clip repeats.
        `strength` bounds the torques of its joints (N·m): one number, or numbers by parts ("legs", "arms", "trunk"),
        names or patterns of joints; without it torques are unbounded. The `root` is "guided" by a bounded force and
        torque (`help`, in N and N·m; by default half its weight, and that times a metre), "held" on its path,
        "balanced" by ground reactions of its own joints, or "free". Parts that overlap each other in the motion do not
        collide, unless `pass_overlaps` is False. Other options are those of `poise.control.Tracking`. Joints get
        motors, which `world.motor` finds by their names, unless the root is balanced.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground()
        >>> hero = scene.add(poise.characters.humanoid(), name="hero")
        >>> bow = poise.motion.keyframes({0.0: {"knee_l": 0.0, "knee_r": 0.0}, 0.3: {"knee_l": 0.3, "knee_r": 0.3}})
        >>> hero.track(bow, strength={"legs": 300.0})
        >>> world = scene.build()
        >>> world.motor("knee_l").limit
        (-300.0, 300.0)
        """
        pkgutil.resolve_name("poise.control:track")(self, motion, strength=strength, root=root, **options)


Thing = Any
"""Types that can be added: a Shape, a list of Shapes, a Body or a Character."""


def parse_axis(axis: str | Sequence[float] | None, field: str = "axis") -> Vector | None:
    """A vector from "x", "-y", … or three numbers; None for None."""
    if isinstance(axis, str):
        if axis.lower() not in _AXES:
            raise SceneError(f"{axis!r} is not an axis; use x, y, z, -x, -y, -z or three numbers", field=field)
        return _AXES[axis.lower()]
    return None if axis is None else _vector(field, axis)


def _vector(field: str, value: Any) -> Vector:
    x, y, z = _numbers(field, value, 3, "3 numbers")
    return (x, y, z)


def _numbers(field: str, value: Any, count: int, wanted: str) -> list[float]:
    try:
        numbers = [] if isinstance(value, (str, bytes)) else [float(number) for number in value]
    except (TypeError, ValueError, OverflowError):
        numbers = []
    if len(numbers) != count:
        raise SceneError(f"must be {wanted}, found {shown(value)}", field=field)
    return numbers


def parent_name(scene: Scene, parent: Any) -> str | None:
    """Full name of a parent given as a name, a handle, a body or None (the world)."""
    if parent is None:
        return None
    name = parent if isinstance(parent, str) else getattr(parent, "name", parent)
    if isinstance(parent, CharacterHandle):
        name = parent.bodies[0]
    names = [body.name for body in scene.bodies]
    if isinstance(name, str) and name.casefold() == "world" and name not in names:
        raise SceneError(f'there is no body "{name}"; the world is None', file=scene.source, field="parent")
    return resolve_name("body", name, names, file=scene.source)


def add(
    scene: Scene,
    thing: Thing,
    *,
    name: str | None,
    position: Any,
    quat_wxyz: Any,
    parent: Any,
    joint: Any,
    fixed: bool,
    kinematic: Any,
) -> BodyHandle | CharacterHandle:
    """See `Scene.add`."""
    from poise.model.scene import Body, Character

    kinematic = None if kinematic is False else kinematic
    if fixed and kinematic is not None:
        raise SceneError("a body is fixed or kinematic, not both", field=name)
    if kinematic is not None and kinematic is not True and (position is not None or quat_wxyz is not None):
        raise SceneError("a kinematic body is where its path says; leave position and quat_wxyz out", field=name)
    if kinematic is not None and joint is not None:
        raise SceneError("a kinematic body has no joint: it is moved; leave joint out", field=name)
    placing = _Placing(parent_name(scene, parent), position, quat_wxyz, joint, fixed, kinematic)
    if isinstance(thing, Character):
        return _add_character(scene, thing, name, placing)
    if isinstance(thing, Body):
        body = deepcopy(thing)
        body.name = _free_name(scene, name or body.name)
    else:
        shapes = _shapes(thing)
        default = shapes[0].name or type(shapes[0]).__name__.lower()
        body = Body(_free_name(scene, name) if name else _numbered_name(scene, default), shapes=shapes)
        body.joints = _default_joints(shapes, placing)
    placing.apply(body)
    scene.bodies.append(body)
    return BodyHandle(scene, body.name)


@dataclass
class _Placing:
    """Pose of a body and its joint to the parent; None leaves a value unchanged."""

    parent: str | None
    position: Any
    quat_wxyz: Any
    joint: Any
    fixed: bool
    path: Any

    def apply(self, body: Body) -> None:
        """Set the pose of a body."""
        if self.parent is not None:
            body.parent = self.parent
        if self.position is not None:
            body.position = _vector("position", self.position)
        if self.quat_wxyz is not None:
            body.quat_wxyz = _quaternion(self.quat_wxyz)
        self.hold(body)

    def hold(self, body: Body) -> None:
        """Set the joints of a body and its kind of motion."""
        if self.joint is not None:
            body.joints = _joints(self.joint)
        if self.fixed:
            body.motion = "fixed"
        if self.path is not None:
            body.motion, body.joints = "kinematic", []
            body.path = None if self.path is True else self.path


def _quaternion(value: Any) -> Quaternion:
    w, x, y, z = _numbers("quat_wxyz", value, 4, "4 numbers (w, x, y, z)")
    return (w, x, y, z)


def _shapes(thing: Thing) -> list[Shape]:
    if isinstance(thing, Shape):
        return [deepcopy(thing)]
    if isinstance(thing, (list, tuple)) and thing and all(isinstance(item, Shape) for item in thing):
        return [deepcopy(item) for item in thing]
    raise SceneError(f"only a Shape, a list of Shapes, a Body or a Character can be added, found {thing!r}")


def _default_joints(shapes: list[Shape], placing: _Placing) -> list[Joint]:
    """A lone shape is free; one with a parent is welded to it; a plane never moves."""
    from poise.model.scene import Joint

    held = placing.fixed or placing.parent is not None or placing.joint is not None or placing.path is not None
    return [] if held or any(isinstance(shape, Plane) for shape in shapes) else [Joint("free")]


def _joints(joint: Any) -> list[Joint]:
    from poise.model.scene import Joint

    if isinstance(joint, Joint):
        return [deepcopy(joint)]
    if isinstance(joint, str):
        if joint not in JOINTS:
            raise SceneError(
                f"{joint!r} is not a kind of joint{did_you_mean(joint, JOINTS, OTHER_NAMES)}", field="joint"
            )
        return [Joint(joint)]
    if isinstance(joint, (list, tuple)) and all(isinstance(item, Joint) for item in joint):
        return [deepcopy(item) for item in joint]
    raise SceneError(f"must be a Joint, a list of Joints or the name of a kind, found {joint!r}", field="joint")


def _free_name(scene: Scene, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise SceneError(f"must be text that is not empty, found {name!r}", field="name")
    if any(body.name == name for body in scene.bodies):
        raise SceneError(f'there is a body "{name}" already; give it another name', field="name")
    return name


def _numbered_name(scene: Scene, stem: str) -> str:
    taken = {body.name for body in scene.bodies}
    number, name = 1, stem
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def _add_character(scene: Scene, character: Character, name: str | None, placing: _Placing) -> CharacterHandle:
    """Add copies of the bodies under `name/`, with the character's frame at the given pose."""
    prefix = _character_name(scene, character, name)
    _check_character(character, prefix)
    bodies = deepcopy(list(character.bodies))
    for body in bodies:
        for joint in body.joints:
            joint.name = None if joint.name is None else f"{prefix}/{joint.name}"
        body.name = f"{prefix}/{body.name}"
        if body.parent is None:
            _place_root(body, placing)
        else:
            body.parent = f"{prefix}/{body.parent}"
    placing.hold(bodies[0])
    if bodies[0].motion == "fixed":  # children of a fixed body collide with it by default, but limbs overlap it
        joined = [body.name for body in bodies if body.parent == bodies[0].name]
        scene.excluded_pairs.extend((bodies[0].name, name) for name in joined)
    scene.bodies.extend(bodies)
    position = (0.0, 0.0, 0.0) if placing.position is None else _vector("position", placing.position)
    turn = (1.0, 0.0, 0.0, 0.0) if placing.quat_wxyz is None else _quaternion(placing.quat_wxyz)
    return CharacterHandle(scene, prefix, tuple(body.name for body in bodies), position, turn)


def _check_character(character: Character, prefix: str) -> None:
    """Check that there are bodies, that the first is the root, and that no other parent is outside."""
    from poise.model.scene import Body

    place = f'character "{prefix}"'
    bodies: object = character.bodies
    if not isinstance(bodies, (list, tuple)) or not bodies:
        raise SceneError(f"a character needs at least one body, found {shown(bodies)}", field=place)
    for k, body in enumerate(bodies):
        if not isinstance(body, Body):
            raise SceneError(f"must be a Body, found {shown(body)}", field=f"{place}: bodies[{k}]")
    own = [body.name for body in bodies]
    for body in bodies:
        if body.parent is not None and body.parent not in own:
            hint = did_you_mean(body.parent, own)
            raise SceneError(
                f'there is no body "{body.parent}" in the character{hint}', field=f'{place}: body "{body.name}"'
            )
    if bodies[0].parent is not None:
        found = f'"{bodies[0].name}", which hangs from "{bodies[0].parent}"'
        raise SceneError(f"the first body must be the root, found {found}", field=place)


def _character_name(scene: Scene, character: Character, name: str | None) -> str:
    taken = {body.name.partition("/")[0] for body in scene.bodies}
    if name is not None and (not isinstance(name, str) or not name):
        raise SceneError(f"must be text that is not empty, found {name!r}", field="name")
    if name is not None and name in taken:
        raise SceneError(f'there is a "{name}" already; give it another name', field="name")
    if name is not None:
        return name
    if not isinstance(character.name, str) or not character.name:
        raise SceneError(f"must be text that is not empty, found {character.name!r}", field="name of the character")
    number, free = 1, character.name
    while free in taken:
        number += 1
        free = f"{character.name}_{number}"
    return free


def _place_root(body: Body, placing: _Placing) -> None:
    """Move a root from the character's frame to the scene's (or the parent's)."""
    body.parent = placing.parent
    turn: NDArray[np.float64] = quat_normalize((1.0, 0.0, 0.0, 0.0))
    if placing.quat_wxyz is not None:
        quat = _quaternion(placing.quat_wxyz)
        if not any(quat):
            raise SceneError("must be a rotation (w, x, y, z), found (0, 0, 0, 0)", field="quat_wxyz")
        turn = quat_normalize(quat)
        w, x, y, z = quat_multiply(turn, _quaternion(body.quat_wxyz)).tolist()
        body.quat_wxyz = (w, x, y, z)
    if placing.position is not None or placing.quat_wxyz is not None:
        shift = np.array(_vector("position", placing.position if placing.position is not None else (0, 0, 0)))
        x, y, z = (shift + quat_to_matrix(turn) @ np.array(_vector("position", body.position))).tolist()
        body.position = (x, y, z)


def add_jointed(scene: Scene, kind: str, parent: Any, thing: Thing, options: dict[str, Any]) -> Any:
    """Add a thing with one joint to its parent; options that are not the body's are the joint's."""
    from poise.model.scene import Joint

    placing = {key: options.pop(key) for key in ("name", "position", "quat_wxyz") if key in options}
    joint_name = options.pop("joint_name", None)
    known = [name for name in Joint.__dataclass_fields__ if name not in ("kind", "name", "line")]
    for option in options:
        if option not in known:
            hint = did_you_mean(option, [*known, "name", "joint_name", "position", "quat_wxyz"], _OTHER_OPTIONS)
            raise SceneError(f"a {kind} joint has no option {option!r}{hint}", field=kind)
    for key in ("axis", "axis2"):
        if key in options:
            options[key] = parse_axis(options[key], key)
    joint = Joint(kind, name=joint_name, **options)
    return scene.add(thing, parent=parent, joint=joint, **placing)


def add_ground(scene: Scene, name: str, height: float, material: Material, options: dict[str, Any]) -> BodyHandle:
    """Add an infinite static floor."""
    if "material" in options:
        raise SceneError("friction and restitution make the ground's material; leave material out", field="ground")
    shape = make_shape(Plane, options, ("friction", "restitution", "height"), material=material)
    handle = add(
        scene,
        shape,
        name=name,
        position=(0.0, 0.0, height),
        quat_wxyz=None,
        parent=None,
        joint=None,
        fixed=True,
        kinematic=None,
    )
    assert isinstance(handle, BodyHandle)
    return handle


def add_motor(
    scene: Scene,
    joint: Any,
    name: str | None,
    limit: Any,
    gear: Any,
    options: dict[str, Any],
    taken: Collection[str] | None = None,
) -> str:
    """See `Scene.motor`; `taken` are the names of the scene's actuators, if they are known."""
    from poise.model.scene import Actuator

    label = joint if name is None else name
    if not isinstance(joint, str):
        raise SceneError(f"must be the name of a joint, found {joint!r}", field="joint")
    if not isinstance(label, str) or not label:
        raise SceneError(f"must be text that is not empty, found {label!r}", field="name")
    if label in ([actuator.name for actuator in scene.actuators] if taken is None else taken):
        raise SceneError(f'there is a motor "{label}" already; give it another name', field="name")
    place = f'motor "{label}": limit'
    bounds = None
    if limit is not None:
        try:
            low, high = (-float(limit), float(limit)) if np.ndim(limit) == 0 else map(float, limit)
        except (TypeError, ValueError):
            raise SceneError(f"must be a force or a pair (least, greatest), found {limit!r}", field=place) from None
        if not low <= high:
            raise SceneError(f"must be 0 or more, or a pair (least, greatest), found {limit!r}", field=place)
        bounds = (low, high)
    scene.actuators.append(Actuator(label, "servo", joint, gear=(gear,), force_range=bounds, options=options))
    return label


def add_loop(scene: Scene, kind: str, first: Any, second: Any, name: str | None, options: dict[str, Any]) -> str:
    """See `Scene.loop`."""
    from poise.model.scene import Loop

    ends = [parent_name(scene, end) for end in (first, second)]
    label = "-".join("world" if end is None else end for end in ends) if name is None else name
    taken = [loop.name for loop in scene.loops]
    if name is None and label in taken:
        label = next(f"{label}_{k}" for k in range(2, len(taken) + 3) if f"{label}_{k}" not in taken)
    if not isinstance(label, str) or not label:
        raise SceneError(f"must be text that is not empty, found {label!r}", field="name")
    if label in taken:
        raise SceneError(f'there is a loop "{label}" already; give it another name', field="name")
    known = [field for field in Loop.__dataclass_fields__ if field not in ("name", "kind", "first", "second")]
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known, _OTHER_OPTIONS)
            raise SceneError(f"a loop has no option {option!r}{hint}", field=f'loop "{label}"')
    for key in ("axis", "axis2"):
        if key in options:
            options[key] = parse_axis(options[key], key)
    scene.loops.append(Loop(label, OTHER_NAMES.get(kind, kind), ends[0], ends[1], **options))
    if all(end is not None for end in ends):
        scene.excluded_pairs.append((str(ends[0]), str(ends[1])))
    return label


def find_body(scene: Scene, name: str) -> Body:
    """The body with a name."""
    bodies = {body.name: body for body in scene.bodies}
    return bodies[resolve_name("body", name, list(bodies), file=scene.source)]


def find_joint(scene: Scene, name: str) -> Joint:
    """The joint with a name."""
    joints = {
        label: joint for body in scene.bodies for label, joint in zip(body.joint_names(), body.joints, strict=True)
    }
    return joints[resolve_name("joint", name, list(joints), file=scene.source)]
