"""URDF, the robot description format of ROS, read by a tolerant reader of our own.

Links become bodies in depth-first order, children in the order of their joints in the file. Collision geometry
collides; visual geometry is only looked at, and hides the collision geometry of its link. As URDF has it, a link
without `<inertial>` weighs nothing, unless a density for such links is given. Coordinates of a floating joint are the
pose of the child in the parent's frame, its `<origin>` where it starts. What is ignored or changed is listed in
`Scene.unsupported` and in one warning a file; everything that is wrong with a file is said at once, with lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Literal

from poise.io.losses import warn_of_changes
from poise.io.sealed import check_unsealed
from poise.io.urdf_gaps import list_ignored
from poise.io.urdf_inertia import INERTIA_CHOICES, InertiaChoice
from poise.io.urdf_joints import UrdfJoint, read_joints
from poise.io.urdf_links import UrdfLink, read_links
from poise.io.urdf_reader import UrdfReader
from poise.io.xml_lines import Element, parse_xml
from poise.model.errors import SceneError, did_you_mean
from poise.model.regular_file import read_regular
from poise.model.scene import Actuator, Body, Equality, Joint, Scene

Root = Literal["fixed", "free"]


def load_urdf(
    source: str | PathLike[str],
    *,
    root: Root = "fixed",
    density: float | None = None,
    package_dirs: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    inertia: InertiaChoice = "repair",
) -> Scene:
    """Read a URDF file, or a string of URDF, as a scene.

    `root` says whether the root link stands still or has a free joint. `density` (kg/m³) weighs links that have no
    `<inertial>` by their collision shapes. `package_dirs` are folders in which `package://` meshes are looked for,
    before those above the file and in ROS_PACKAGE_PATH. Raises SceneError.

    `inertia` says what becomes of an inertia that no body has, as a principal moment is negative or larger than the sum
    of the others (by more than 1.5 %, the rounding of three digits): "repair" takes the nearest physical one with the
    same mass and centre of mass (see `poise.model.massprops.nearest_physical_inertia`), "accept" keeps the numbers as
    long as the mass matrix is positive definite, "strict" refuses the file.

    Everything that is not taken over as the file has it, repairs included, is listed in `Scene.unsupported` and in one
    `LossWarning`.

    >>> scene = load_urdf("<robot name='r'><link name='base'/></robot>", root="fixed")
    >>> [body.name for body in scene.bodies]
    ['base']
    >>> rod = "<inertial><mass value='2'/><inertia ixx='0' iyy='1' izz='4'/></inertial>"
    >>> load_urdf(f"<robot><link name='rod'>{rod}</link></robot>", inertia="strict")
    Traceback (most recent call last):
        ...
    poise.model.errors.SceneError: ...
    """
    if inertia not in INERTIA_CHOICES:
        raise SceneError(f'must be "repair", "accept" or "strict", found {inertia!r}', field="inertia")
    if root not in ("fixed", "free"):
        raise SceneError(f'root must be "fixed" or "free", found {root!r}', field="root")
    if density is not None and not _is_positive(density):
        raise SceneError(f"must be a positive number in kg/m³, found {density!r}", field="density")
    if isinstance(package_dirs, (str, PathLike)):
        package_dirs = (package_dirs,)
    file, content = _content(source)
    reader = UrdfReader(file, [Path(folder) for folder in package_dirs])
    robot = parse_xml(content, reader.name)
    _check_root(robot, reader)
    links = read_links(robot, reader, density, inertia)
    joints = read_joints(robot, reader)
    order = _tree_order(links, joints, robot, reader)
    reader.raise_problems()
    list_ignored(robot, reader)
    scene = _to_scene(robot, links, joints, order, root, reader)
    warn_of_changes(reader.name or f'URDF "{scene.name}"', scene.unsupported)
    return scene


def _is_positive(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and float(value) > 0.0


def _content(source: str | PathLike[str]) -> tuple[Path | None, bytes | str]:
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return None, source.lstrip("\ufeff \t\r\n")
    if not isinstance(source, (str, PathLike)):
        raise SceneError(f"load_urdf takes the path of a file or a string of URDF, found {source!r}")
    file = Path(source)
    check_unsealed(file)
    try:
        return file, read_regular(file)
    except FileNotFoundError:
        raise SceneError("cannot read URDF: there is no such file", file=str(file)) from None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise SceneError(f"cannot read URDF: {what}", file=str(file)) from error


def _check_root(robot: Element, reader: UrdfReader) -> None:
    """Stop at once where nothing that follows would make sense."""
    if robot.name != "robot":
        message = f"URDF begins with <robot>, found <{robot.tag}>"
        raise SceneError(message, file=reader.name, line=robot.line)
    for element in robot.walk():
        macro = element.tag.startswith("xacro:") or any("${" in v or "$(" in v for v in element.attributes.values())
        if macro:
            message = f"<{element.tag}> is xacro, a template of URDF; expand it first: xacro FILE > robot.urdf"
            raise SceneError(message, file=reader.name, line=element.line)
    if not robot.all("link"):
        raise SceneError("the robot has no <link>", file=reader.name, line=robot.line)


def _tree_order(
    links: dict[str, UrdfLink], joints: list[UrdfJoint], robot: Element, reader: UrdfReader
) -> list[tuple[str, UrdfJoint | None]]:
    """Links with the joint above each, depth first from the root; complains about everything that is not a tree."""
    above: dict[str, UrdfJoint] = {}
    below: dict[str, list[UrdfJoint]] = {name: [] for name in links}
    for joint in joints:
        known = True
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link is not None and link not in links:
                hint = did_you_mean(link, links)
                reader.problem(joint.element, f'joint "{joint.name}": {role} link "{link}" does not exist{hint}')
            known = known and link in links
        if not known or joint.parent is None or joint.child is None:
            continue
        if joint.child in above:
            message = f'link "{joint.child}" has two parents, by joints "{above[joint.child].name}" and "{joint.name}"'
            reader.problem(joint.element, f"{message}; a loop must be cut open")
            continue
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [name for name in links if name not in above]
    if len(roots) > 1 and not reader.problems:
        listed = ", ".join(f'"{name}"' for name in roots)
        reader.problem(links[roots[1]].element, f"{len(roots)} links have no parent ({listed}); a robot has one root")
    order: list[tuple[str, UrdfJoint | None]] = []
    waiting: list[tuple[str, UrdfJoint | None]] = [(name, None) for name in reversed(roots)]
    while waiting:
        name, joint_above = waiting.pop()
        order.append((name, joint_above))
        waiting += [(joint.child or "", joint) for joint in reversed(below[name])]
    reached = {name for name, _ in order}
    circling = [name for name in links if name not in reached]
    if circling and not reader.problems:
        listed = ", ".join(f'"{name}"' for name in circling)
        reader.problem(links[circling[0]].element, f"links {listed} form a cycle that hangs from no root")
    return order


def _to_scene(
    robot: Element,
    links: dict[str, UrdfLink],
    joints: list[UrdfJoint],
    order: list[tuple[str, UrdfJoint | None]],
    root: Root,
    reader: UrdfReader,
) -> Scene:
    scene = Scene(name=robot.attributes.get("name") or "robot", source=reader.name)
    taken = {joint.name for joint in joints}
    for name, above in order:
        link = links[name]
        body = Body(name, shapes=link.shapes, inertia=link.inertia, line=link.element.line)
        if above is not None:
            body.parent, body.position, body.quat_wxyz = above.parent, above.position, above.quat_wxyz
            body.joints = [] if above.joint is None else [above.joint]
        elif root == "free":
            body.joints = [Joint("free", name="root_joint" if "root_joint" not in taken else f"{name}_root_joint")]
        else:
            body.motion = "fixed"
        scene.bodies.append(body)
    scene.equalities = [_mimic(joint) for joint in joints if joint.mimics is not None]
    scene.actuators = [_drive(joint) for joint in joints if joint.joint is not None and joint.effort > 0.0]
    scene.unsupported = reader.unsupported()
    return scene


def _mimic(joint: UrdfJoint) -> Equality:
    """position(first) = multiplier · position(second) + offset."""
    return Equality(
        f"{joint.name}_mimic",
        "mimic",
        joint.name,
        joint.mimics,
        options={"multiplier": joint.multiplier, "offset": joint.offset},
    )


def _drive(joint: UrdfJoint) -> Actuator:
    """The drive that a limit of effort implies."""
    options = {"velocity_limit": joint.speed} if joint.speed > 0.0 else {}
    return Actuator(joint.name, "motor", joint.name, force_range=(-joint.effort, joint.effort), options=options)
