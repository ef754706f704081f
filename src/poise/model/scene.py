"""The scene: bodies, joints, shapes and motors by name, in SI units, before compilation. It imports no solver."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from poise.model.contact_pairs import ContactPair
from poise.model.shapes import IDENTITY, ORIGIN, CombineRule, Material, Quaternion, Shape, Vector
from poise.model.skins import Skin
from poise.model.surface_rules import SceneRules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from poise.batch.worlds import Batch
    from poise.formulations.maximal_coordinates.maximal import Maximal
    from poise.formulations.reduced import Reduced
    from poise.model.build import BodyHandle, CharacterHandle
    from poise.model.model import Model
    from poise.motion.path import Path
    from poise.sim.world import World

Motion = Literal["dynamic", "fixed", "kinematic"]
Bounds = tuple[float, float]


@dataclass
class Inertia:
    """Mass properties of a body, in the body's frame.

    >>> Body("rod", inertia=Inertia(2.0, com=(0, 0, 0.5), moments=(0.2, 0.2, 0.001))).inertia.mass
    2.0
    """

    mass: float
    """kg."""
    com: Vector = ORIGIN
    """Centre of mass; m."""
    moments: Vector = ORIGIN
    """Moments of inertia about the centre of mass along the axes of `quat_wxyz`; kg·m²."""
    quat_wxyz: Quaternion = IDENTITY
    """Axes in which `moments` and `products` are written."""
    products: Vector = ORIGIN
    """Off-diagonal elements (Ixy, Ixz, Iyz) of the inertia *matrix*, 0 in principal axes; kg·m²."""
    allow_unphysical: bool = False
    """Accept moments that no rigid body has (negative ones, or one above the sum of the others) as long as the mass
    matrix of the scene is positive definite."""


@dataclass
class Joint:
    """How a body moves relative to its parent. Axes and anchor are in the body's frame at rest.

    >>> elbow = Joint("hinge", name="elbow", axis=(0, 1, 0), limits=(0.0, 2.6), damping=0.5)
    >>> shoulder = Joint("ball", cone=1.2, twist=(-0.8, 0.8))
    """

    kind: str = "hinge"
    """A name in `poise.model.joints.JOINTS`."""
    name: str | None = None
    """Defaults to the body's name."""
    anchor: Vector = ORIGIN
    """Centre of rotation; m."""
    axis: Vector | None = None
    """Hinge, slide or screw axis, first axis of a universal, normal of a planar joint; z when missing."""
    axis2: Vector | None = None
    """Second axis of a universal joint, x of a planar one; made perpendicular to `axis` when missing."""
    pitch: float = 0.0
    """Screw: advance per radian; m/rad."""
    limits: Bounds | tuple[Bounds | None, ...] | None = None
    """(lower, upper) of a joint with one degree of freedom, or one pair (or None) for each; rad or m."""
    cone: tuple[float, float] | float | None = None
    """Ball: greatest swing of the joint's `axis` (one angle, or one about each of the other two axes); rad."""
    twist: Bounds | None = None
    """Ball: range of the twist about the joint's `axis`; rad."""
    limit_centre: Quaternion | None = None
    """Ball: the joint's rotation (w, x, y, z) from which `cone` and `twist` count; the rest pose when missing."""
    rest: float | tuple[float, ...] | None = None
    """Coordinates at the rest pose (scalars only: a ball rests at identity, a free joint at the body's pose)."""
    stiffness: float = 0.0
    """Stiffness of a spring on every degree of freedom of the joint; N/m or N·m/rad."""
    spring: float | tuple[float, ...] | None = None
    """Coordinates at which the spring is relaxed; the rest pose when missing."""
    damping: float | tuple[float, ...] = 0.0
    """N·s/m or N·m·s/rad, one number or one for each degree of freedom."""
    armature: float | tuple[float, ...] = 0.0
    """Inertia of the drive, reflected to the joint; kg or kg·m²."""
    friction: float = 0.0
    """Dry friction: the largest friction force; N or N·m."""
    actuator_force_range: Bounds | None = None
    """(lower, upper) bounds of the total force of its motors, for a joint of one degree of freedom; N or N·m."""
    actuator_gravity_compensation: bool = False
    """Whether gravity compensation counts at this joint as a motor force, within `force_range`."""
    line: int | None = None


@dataclass
class Body:
    """A rigid body: its rest pose, the joints to its parent, its shapes and its inertia.

    >>> Body("arm", parent="torso", position=(0, 0.2, 0.4), joints=[Joint("ball")], inertia=Inertia(2.0)).motion
    'dynamic'
    """

    name: str
    parent: str | None = None
    """Name of another body; None is the world."""
    position: Vector = ORIGIN
    """Rest position of the body's frame in the parent's frame; m."""
    quat_wxyz: Quaternion = IDENTITY
    """Rest orientation in the parent's frame."""
    joints: list[Joint] = field(default_factory=list)
    """In the order in which they act, parent first; an empty list welds the body to its parent."""
    shapes: list[Shape] = field(default_factory=list)
    inertia: Inertia | None = None
    """Overrides the masses of the shapes."""
    motion: Motion = "dynamic"
    """dynamic: moved by forces; fixed: its joints do not move; kinematic: it has infinite mass, and follows
    `path`, or is placed and moved while a world runs."""
    path: Any = None
    """Kinematic bodies: a `poise.motion.Path`, which gives pose, twist and acceleration in the parent's frame over
    time. Without a path the body is where `PlacedBody.place` puts it, and moves on at its velocity (`move_kinematic`),
    as mocap bodies of MuJoCo and kinematic ones of Bullet and Jolt. It has one free joint (added when it has none)."""
    gravity_compensation: float = 0.0
    """Fraction of its weight that an upward force at its centre of mass cancels: 0 none, 1 all; MuJoCo's `gravcomp`."""
    line: int | None = None

    def moving_joints(self) -> list[tuple[str, Joint]]:
        """Names and joints that move the body: none when it is fixed, one free joint when it is kinematic."""
        if self.motion == "fixed":
            return []
        if self.motion == "kinematic" and not self.joints:
            return [(self.name, Joint("free"))]
        named = zip(self.joint_names(), self.joints, strict=True)
        return [(name, joint) for name, joint in named if joint.kind != "fixed"]

    def joint_names(self) -> list[str]:
        """Names of the joints: as given, else the body's name, numbered from 1 when it has several joints.

        >>> Body("crane", joints=[Joint("hinge"), Joint("slider", name="boom")]).joint_names()
        ['crane_1', 'boom']
        """
        several = len(self.joints) > 1
        default = [f"{self.name}_{k + 1}" if several else self.name for k in range(len(self.joints))]
        return [name if joint.name is None else joint.name for name, joint in zip(default, self.joints, strict=True)]


@dataclass
class Character:
    """A tree of bodies that is added to a scene in one call; its first body is the root.

    >>> Scene().add(Character("twins", [Body("one", joints=[Joint("free")]), Body("two", parent="one")])).bodies
    ('twins/one', 'twins/two')
    """

    name: str
    bodies: list[Body]


@dataclass
class Keyframe:
    """A named state of the whole scene; a field that is None has the values of the rest state.

    >>> Keyframe("bent", q=(0.5,)).time
    0.0
    """

    name: str
    time: float = 0.0
    """s."""
    q: tuple[float, ...] | None = None
    """(nq,) coordinates; m, rad, unit quaternions (w, x, y, z)."""
    v: tuple[float, ...] | None = None
    """(nv,) velocities; m/s, rad/s."""
    control: tuple[float, ...] | None = None
    """One number for each control of the file's actuators."""


@dataclass
class Actuator:
    """A motor: made by `Scene.motor` (kind "servo"), or read from a file; see `poise.model.motors`."""

    name: str
    kind: str
    target: str
    """Name of the joint or body that it acts on."""
    gear: tuple[float, ...] = (1.0,)
    control_range: Bounds | None = None
    force_range: Bounds | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Equality:
    """A loop joint or coupling as read from a file; see `poise.model.loops`."""

    name: str
    kind: str
    first: str
    second: str | None = None
    active: bool = True
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Loop:
    """A loop joint: it joins two bodies that the tree does not join, or a body and the world (None).

    >>> Loop("door", "hinge", "frame", "leaf", axis=(0, 0, 1)).kind
    'hinge'
    """

    name: str
    kind: str
    """A name in `poise.model.joints.JOINTS`, but not free."""
    first: str | None
    second: str | None
    position: Vector | None = None
    """World position of the joint with the scene at rest; the second body's origin when missing; m."""
    axis: Vector | None = None
    """As those of `Joint`, but in the world's axes with the scene at rest."""
    axis2: Vector | None = None
    anchor_first: Vector | None = None
    """The joint's point in the first body's frame, instead of `position`; for loops that are open at rest; m."""
    anchor_second: Vector | None = None
    quat_first: Quaternion | None = None
    """Axes of the joint in the first body's frame; `axis` and `axis2` are then relative to them."""
    quat_second: Quaternion | None = None
    pitch: float = 0.0
    """Screw: advance per radian; m/rad."""
    limits: Bounds | tuple[Bounds | None, ...] | None = None
    """(lower, upper) limits of its coordinates, which are 0 where both frames coincide; rad or m."""
    cone: tuple[float, float] | float | None = None
    twist: Bounds | None = None
    limit_centre: Quaternion | None = None
    """Ball: rotation of the second body from the first, in the axes of `axis`, from which `cone` and `twist` count."""
    friction: float = 0.0
    """Dry friction of each coordinate; N or N·m."""
    break_force: float = float("inf")
    """Force at which it breaks; N."""
    break_torque: float = float("inf")
    """Torque at which it breaks; N·m."""
    active: bool = True


@dataclass
class Settings:
    """Settings of a scene file for building, running and viewing its scene; None leaves a setting at its default.

    >>> Settings(duration=5.0).duration
    5.0
    """

    formulation: Reduced | Maximal | None = None
    """Formulation of worlds that are built without one."""
    duration: float | None = None
    """Simulated time of a run; s."""
    record: tuple[str, ...] | None = None
    """What recordings keep besides states; see `poise.sim.PARTS`."""
    every: int | None = None
    """Steps from one recorded state to the next."""
    camera: dict[str, Any] = field(default_factory=dict)
    """Fields of `poise.view.Camera`, and the name of a body or character to `follow`."""
    description: str | None = None


@dataclass
class Scene:
    """All bodies, joints, shapes and motors, in the order in which they were added.

    >>> from poise.model.shapes import box, sphere
    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> ground, ball = scene.add_ground(friction=0.6), scene.add(sphere(0.1), position=(0, 0, 2))
    >>> door = scene.hinge(None, box(0.9, 0.04, 2.0, mass=30.0), axis="z", anchor=(-0.45, 0, 0), name="door")
    >>> model = scene.compile()
    >>> model.nq, model.nv
    (8, 7)
    """

    gravity: Vector = (0.0, 0.0, -9.81)
    """m/s²."""
    bodies: list[Body] = field(default_factory=list)
    keyframes: list[Keyframe] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    excluded_pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of names of bodies that do not collide with each other."""
    contact_pairs: list[ContactPair] = field(default_factory=list)
    """Pairs of shapes that collide regardless of groups, parents and excluded pairs, with their own friction."""
    skins: list[Skin] = field(default_factory=list)
    """Skinned meshes; see `poise.model.skins`."""
    dt: float = 1.0 / 240.0
    """Time step that the file sets; s."""
    name: str = "scene"
    source: str | None = None
    """File that the scene was read from."""
    unsupported: list[str] = field(default_factory=list)
    """What an importer could not represent exactly, one sentence each."""
    controllers: list[tuple[str, Callable[[], Any]]] = field(default_factory=list)
    """Names and factories of controllers; each world gets its own instance; see `CharacterHandle.track`."""
    settings: Settings = field(default_factory=Settings)
    """Settings of the file that it was read from."""
    friction_combine: CombineRule = "geometric"
    """How the sliding friction of two surfaces combines in a contact: "average", "geometric" (mean), "minimum",
    "multiply" or "maximum" (MuJoCo's rule). A `Material` can set its own rule."""
    rolling_combine: CombineRule = "maximum"
    """The same for torsional and rolling friction; not "multiply"."""
    restitution_combine: CombineRule = "maximum"
    """The same for restitution."""

    def __repr__(self) -> str:
        joints = sum(len(body.joints) for body in self.bodies)
        lost = f", unsupported {len(self.unsupported)}" if self.unsupported else ""
        return f"<Scene {self.name!r}: bodies {len(self.bodies)}, joints {joints}{lost}>"

    @property
    def rules(self) -> SceneRules:
        """Combine rules of surfaces whose materials set none."""
        return SceneRules(self.friction_combine, self.rolling_combine, self.restitution_combine)

    def _repr_html_(self) -> str:
        """Picture of the scene for notebooks, or its errors."""
        return str(pkgutil.resolve_name("poise.view.page.still:scene_html")(self))

    def compile(self) -> Model:
        """Check the scene and compile it into arrays. Raises `SceneError` with all errors of the scene.

        >>> Scene(bodies=[Body("box", parent="shelf")]).compile()
        Traceback (most recent call last):
            ...
        poise.model.errors.SceneError: body "box": parent: there is no body "shelf"; there is "box"
        """
        from poise.model.compile import compile_scene

        return compile_scene(self)

    def build(self, formulation: Reduced | Maximal | None = None, *, dt: float | None = None) -> World:
        """Compile the scene and return a world at the rest pose. A character that tracks a motion starts at its
        beginning.

        >>> from poise.model.shapes import sphere
        >>> scene = Scene()
        >>> _ = scene.add_ground(), scene.add(sphere(0.1), name="ball", position=(0, 0, 1))
        >>> world = scene.build(dt=0.001)
        >>> world.step(2000)
        >>> float(world.body("ball").position[2].round(6))
        0.1
        """
        from poise.model.state import State

        model = self.compile()
        keys = [(frame.name, State.from_keyframe(self, k, model)) for k, frame in enumerate(self.keyframes)]
        controllers = [(name, make()) for name, make in self.controllers]
        state = State.rest(model)
        for _, controller in controllers:
            controller.bind(model)
            controller.first(state)
        chosen = self.settings.formulation if formulation is None else formulation
        world: World = pkgutil.resolve_name("poise.sim.world:World")(model, chosen, state, dt=dt, keyframes=keys)
        world.camera = dict(self.settings.camera)
        for name, controller in controllers:
            world.add_controller(controller, name)
        return world

    def build_batch(
        self,
        n: int,
        formulation: Reduced | None = None,
        *,
        dt: float | None = None,
        precision: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        vary: Sequence[str] = (),
        terrains: Mapping[str, Sequence[str]] | None = None,
    ) -> Batch:
        """Compile the scene and return n worlds at the rest pose that are stepped together; see `poise.Batch`.

        `vary` names the parameters that may differ from world to world (`Batch.vary`). `terrains` maps the name of each
        terrain to the bodies and shapes that only worlds on it have (`Batch.terrain`).

        >>> from poise.model.shapes import sphere
        >>> scene = Scene()
        >>> _ = scene.add_ground(), scene.add(sphere(0.1), name="ball", position=(0, 0, 1))
        >>> batch = scene.build_batch(100, dt=0.005, threads=1)
        >>> batch.step(400)
        >>> batch.q[:, 2].round(3).min(), batch.q[:, 2].round(3).max()
        (np.float32(0.1), np.float32(0.1))
        """
        from poise.model.state import State

        model = self.compile()
        keys = [(frame.name, State.from_keyframe(self, k, model)) for k, frame in enumerate(self.keyframes)]
        chosen = self.settings.formulation if formulation is None else formulation
        options: dict[str, Any] = {"dt": dt, "precision": precision, "threads": threads, "keyframes": keys}
        options |= {"vary": vary, "terrains": terrains}
        controllers = [(name, make()) for name, make in self.controllers]
        state = State.rest(model)
        for _, controller in controllers:
            if hasattr(controller, "first"):  # the batch rejects others
                controller.bind(model)
                controller.first(state)
        options |= {"state": state, "controllers": controllers}
        batch: Batch = pkgutil.resolve_name("poise.batch.worlds:Batch")(model, n, chosen, **options)
        return batch

    def save(self, path: str | PathLike[str]) -> list[str]:
        """Write the scene as YAML (.yaml) or MJCF (.xml). Returns, and warns of, what the format cannot represent.

        >>> import tempfile, poise
        >>> scene = Scene()
        >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scene.save(f"{folder}/ball.yaml")
        ...     poise.load(f"{folder}/ball.yaml").compile().digest() == scene.compile().digest()
        []
        True
        """
        told: list[str] = pkgutil.resolve_name("poise.io:save_scene")(self, path)
        return told

    @overload
    def add(
        self,
        thing: Character,
        name: str | None = None,
        *,
        position: Any = None,
        quat_wxyz: Any = None,
        parent: Any = None,
        joint: Joint | list[Joint] | str | None = None,
        fixed: bool = False,
        kinematic: Path | bool | None = None,
    ) -> CharacterHandle: ...
    @overload
    def add(
        self,
        thing: Shape | Sequence[Shape] | Body,
        name: str | None = None,
        *,
        position: Any = None,
        quat_wxyz: Any = None,
        parent: Any = None,
        joint: Joint | list[Joint] | str | None = None,
        fixed: bool = False,
        kinematic: Path | bool | None = None,
    ) -> BodyHandle: ...
    def add(
        self,
        thing: Any,
        name: str | None = None,
        *,
        position: Any = None,
        quat_wxyz: Any = None,
        parent: Any = None,
        joint: Joint | list[Joint] | str | None = None,
        fixed: bool = False,
        kinematic: Path | bool | None = None,
    ) -> BodyHandle | CharacterHandle:
        """Add a shape, a list of shapes, a body or a character, and return a handle to it.

        Shapes become a body with a free joint, unless it is fixed, is `kinematic` (it follows that path; with True you
        move it: see `PlacedBody.move_kinematic`), or has a `joint` or a `parent`. A body with a parent and no joint is
        welded to it. A character's bodies and joints are named `name/…`; `position` and `quat_wxyz` are the pose of its
        frame. The scene stores a copy of `thing`.

        >>> from poise.model.shapes import box
        >>> Scene().add(box(1, 1, 1), position=(0, 0, 2)).name
        'box'
        """
        from poise.model import build

        return build.add(
            self,
            thing,
            name=name,
            position=position,
            quat_wxyz=quat_wxyz,
            parent=parent,
            joint=joint,
            fixed=fixed,
            kinematic=kinematic,
        )

    def add_ground(
        self, friction: float = 0.8, restitution: float = 0.0, height: float = 0.0, name: str = "ground", **options: Any
    ) -> BodyHandle:
        """Add an infinite floor at `height` (m); other options are those of shapes.

        >>> Scene().add_ground(friction=1.0, color=(0.9, 0.9, 0.9, 1.0)).name
        'ground'
        """
        from poise.model import build

        material = Material(friction=friction, restitution=restitution)
        return build.add_ground(self, name, height, material, options)

    def hinge(self, parent: Any, thing: Any, axis: Any = "z", **options: Any) -> Any:
        """Join a thing to its parent by a hinge about `axis`: "x", "-y", … or a vector in the thing's frame.

        Takes `name`, `position` and `quat_wxyz` of the body, `joint_name`, and every field of `Joint` as options.

        >>> from poise.model.shapes import box
        >>> scene = Scene()
        >>> scene.hinge(None, box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="pendulum").name
        'pendulum'
        """
        return self._join("hinge", parent, thing, axis=axis, **options)

    def slider(self, parent: Any, thing: Any, axis: Any = "z", **options: Any) -> Any:
        """Join a thing to its parent so that it slides along `axis`; options as for `hinge`.

        >>> Scene().slider(None, Body("cart"), axis="x", limits=(-2.0, 2.0)).name
        'cart'
        """
        return self._join("slider", parent, thing, axis=axis, **options)

    def cylindrical(self, parent: Any, thing: Any, axis: Any = "z", **options: Any) -> Any:
        """Join a thing to its parent so that it slides along `axis` and rotates about it; options as for `hinge`.

        >>> Scene().cylindrical(None, Body("piston"), limits=((0.0, 0.3), None)).name
        'piston'
        """
        return self._join("cylindrical", parent, thing, axis=axis, **options)

    def screw(self, parent: Any, thing: Any, axis: Any = "z", pitch: float = 0.0, **options: Any) -> Any:
        """Join a thing to its parent so that it advances `pitch` metres per radian; options as for `hinge`.

        >>> Scene().screw(None, Body("bolt"), pitch=0.001).name
        'bolt'
        """
        return self._join("screw", parent, thing, axis=axis, pitch=pitch, **options)

    def universal(self, parent: Any, thing: Any, axis: Any = "z", axis2: Any = None, **options: Any) -> Any:
        """Join a thing to its parent by two crossing hinges; options as for `hinge`.

        >>> Scene().universal(None, Body("stick"), axis="x", axis2="y").name
        'stick'
        """
        return self._join("universal", parent, thing, axis=axis, axis2=axis2, **options)

    def planar(self, parent: Any, thing: Any, axis: Any = "z", axis2: Any = None, **options: Any) -> Any:
        """Join a thing to its parent so that it moves in the plane with the normal `axis`; options as for `hinge`.

        >>> Scene().planar(None, Body("puck"), axis="z").name
        'puck'
        """
        return self._join("planar", parent, thing, axis=axis, axis2=axis2, **options)

    def ball(self, parent: Any, thing: Any, axis: Any = "z", **options: Any) -> Any:
        """Join a thing to its parent by a ball joint; `axis` is that of its cone and twist; options as for `hinge`.

        For an asymmetric range, `limit_centre` is the rotation in the middle of the cone. This joint rotates about x by
        −0.7 to 1.7:

        >>> scene = Scene()
        >>> middle = (0.9689, 0.2474, 0.0, 0.0)  # 0.5 about x
        >>> scene.ball(None, Body("arm"), axis="-z", cone=1.2, twist=(-0.8, 0.8), limit_centre=middle).name
        'arm'
        """
        return self._join("ball", parent, thing, axis=axis, **options)

    def weld(self, parent: Any, thing: Any, **options: Any) -> Any:
        """Join a thing to its parent so that it cannot move; takes `name`, `position`, `quat_wxyz`.

        >>> Scene().weld(None, Body("shelf"), position=(0, 0, 1.2)).name
        'shelf'
        """
        return self._join("fixed", parent, thing, **options)

    def motor(
        self,
        joint: str,
        name: str | None = None,
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        limit: float | Bounds | None = None,
        target: Any = None,
        speed: float = 0.0,
        torque: float = 0.0,
        gear: float = 1.0,
    ) -> str:
        """Add a motor to a joint of one coordinate, a ball joint, or one coordinate of any joint ("hip.wx"), and return
        its name.

        The force, torque + stiffness (target − x) + damping (speed − ẋ), is implicit: it holds at the end of each step.
        It is clamped to ±limit (or a range). x is gear times the coordinate. `target` defaults to the rest coordinate;
        for a ball joint it is (w, x, y, z), and the limit applies to each of the three torques. With infinite stiffness
        or damping the joint reaches its target within a step if the limit permits. See `World.motor`.

        >>> from poise.model.shapes import box
        >>> scene = Scene()
        >>> _ = scene.hinge(None, box(0.1, 0.1, 1.0), axis="y", name="arm")
        >>> scene.motor("arm", stiffness=100.0, damping=5.0, limit=20.0)
        'arm'
        """
        from poise.model import build

        options = {"stiffness": stiffness, "damping": damping, "target": target, "speed": speed, "torque": torque}
        return build.add_motor(self, joint, name, limit, gear, options)

    def loop(
        self, kind: str, first: Any, second: Any = None, name: str | None = None, *, axis: Any = "z", **options: Any
    ) -> str:
        """Add a loop joint between two bodies, or a body and the world (None), and return its name.

        Every kind of joint except free is supported. `position`, `axis` and `axis2` are in world coordinates with the
        scene at rest; other options are those of `Loop`. The two bodies do not collide with each other.

        >>> from poise.model.shapes import box
        >>> scene = Scene()
        >>> a = scene.hinge(None, box(0.1, 0.1, 1.0), name="a", axis="y", position=(0, 0, 0.5))
        >>> scene.loop("hinge", a, None, axis="y", position=(0, 0, 1), limits=(-0.5, 0.5))
        'a-world'
        """
        from poise.model import build

        return build.add_loop(self, kind, first, second, name, options | {"axis": axis})

    def couple(self, first: str, second: str | None, coefficients: Any = (0.0, 1.0), name: str | None = None) -> str:
        """Couple two joints of one coordinate, as gears do: first = Σ coefficients · second^k. Returns the name.

        Both coordinates count from the rest pose; there are at most five coefficients. Without a second joint the first
        is held in place.

        >>> from poise.model.shapes import box
        >>> scene = Scene()
        >>> _ = scene.hinge(None, box(0.1, 0.1, 1.0), name="a"), scene.hinge(None, box(0.1, 0.1, 1.0), name="b")
        >>> scene.couple("a", "b", (0.0, -2.0))
        'a-b'
        """
        label = f"{first}-{second or 'rest'}" if name is None else name
        self.equalities.append(Equality(label, "joint", first, second, options={"coefficients": coefficients}))
        return label

    def _join(self, kind: str, parent: Any, thing: Any, **options: Any) -> Any:
        from poise.model import build

        return build.add_jointed(self, kind, parent, thing, options)

    def body(self, name: str) -> Body:
        """The body of this name, or the only one whose name ends in `/name`.

        >>> Scene(bodies=[Body("hero/hand_r")]).body("hand_r").name
        'hero/hand_r'
        """
        from poise.model import build

        return build.find_body(self, name)

    def joint(self, name: str) -> Joint:
        """The joint of this name, or the only one whose name ends in `/name`.

        >>> Scene(bodies=[Body("shank", joints=[Joint("hinge", name="hero/knee")])]).joint("knee").kind
        'hinge'
        """
        from poise.model import build

        return build.find_joint(self, name)
