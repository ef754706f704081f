"""Validation of a scene: collects all problems in one error, each with a remedy."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from poise.model.checks import Checker, as_sequence, shown
from poise.model.contact_pairs import ContactPair, check_contact_pair
from poise.model.errors import Problem, SceneError, did_you_mean
from poise.model.joints import JOINTS
from poise.model.part_checks import (
    COMBINE_OPTIONS,
    check_inertia,
    check_joint,
    check_rule,
    check_shape,
    must_stay,
    spoken,
)
from poise.model.scene import Actuator, Body, Equality, Inertia, Joint, Keyframe, Loop, Motion, Scene
from poise.model.shapes import Shape
from poise.model.skins import Skin, check_skin

__all__ = ["Problem", "SceneError", "did_you_mean", "find_problems", "validate"]

MOTIONS: tuple[str, ...] = get_args(Motion)


def validate(scene: Scene) -> None:
    """Raise `SceneError` with every problem of the scene, or return if there is none.

    >>> validate(Scene(bodies=[Body("a", parent="b")]))
    Traceback (most recent call last):
        ...
    poise.model.errors.SceneError: body "a": parent: there is no body "b"; there is "a"
    """
    problems = find_problems(scene)
    if problems:
        raise SceneError.of(problems)


def find_problems(scene: Scene) -> list[Problem]:
    """Every problem of a scene, in the order in which it lists its parts."""
    check = Checker(scene.source if isinstance(scene.source, str) else None)
    if scene.source is not None:
        check.text("source", scene.source)
    check.text("name", scene.name)
    check.numbers("gravity", scene.gravity, 3)
    check.number("dt", scene.dt, positive=True)
    for option in COMBINE_OPTIONS:
        check_rule(check, option, getattr(scene, option))
    listed: object = scene.bodies
    if not isinstance(listed, (list, tuple)):
        check.fail("bodies", f"must be a list of bodies, found {shown(listed)}")
        return check.problems
    bodies = [body for k, body in enumerate(listed) if _is_body(check, k, body)]
    for body in bodies:
        _check_body(check.at(f'body "{body.name}"', body.line), body)
    _check_names(check, bodies)
    if _check_tree(check, bodies):
        _check_planes(check, bodies)
    _check_keyframes(check, scene, bodies)
    _check_references(check, scene, bodies)
    return check.problems


def _is_body(check: Checker, index: int, body: object) -> bool:
    if not isinstance(body, Body):
        check.fail(f"bodies[{index}]", f"must be a Body, found {shown(body)}")
        return False
    return check.at(f"bodies[{index}]", body.line).text("name", body.name)


def _check_body(check: Checker, body: Body) -> None:
    check.numbers("position", body.position, 3)
    check.quaternion("quat_wxyz", body.quat_wxyz)
    if not isinstance(body.motion, str) or body.motion not in MOTIONS:
        check.fail("motion", f"{body.motion!r} is not a kind of motion{did_you_mean(body.motion, MOTIONS)}")
    if _is_list_of(check, "joints", body.joints, Joint):
        _check_joints(check, body)
    if _is_list_of(check, "shapes", body.shapes, Shape):
        for k, shape in enumerate(body.shapes):
            named = isinstance(shape.name, str) and shape.name
            label = f'shape "{shape.name}"' if named else f"shapes[{k}] ({type(shape).__name__.lower()})"
            check_shape(check.at(label, shape.line), shape)
    check.number("gravity_compensation", body.gravity_compensation)
    inertia: object = body.inertia
    if isinstance(inertia, Inertia):
        check_inertia(check.at("inertia"), inertia)
    elif inertia is not None:
        check.fail("inertia", f"must be an Inertia or None, found {shown(inertia)}")


def _is_list_of(check: Checker, field: str, value: object, kind: type) -> bool:
    if not isinstance(value, (list, tuple)):
        check.fail(field, f"must be a list of {kind.__name__}, found {shown(value)}")
        return False
    wrong = [(k, item) for k, item in enumerate(value) if not isinstance(item, kind)]
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    for k, item in wrong:
        check.fail(f"{field}[{k}]", f"must be {article} {kind.__name__}, found {shown(item)}")
    return not wrong


def _check_joints(check: Checker, body: Body) -> None:
    for name, joint in zip(body.joint_names(), body.joints, strict=True):
        part = check.at(f'joint "{name}"', joint.line)
        if joint.name is not None:
            part.text("name", joint.name)
        check_joint(part, joint)
    if not _joints_are_sound(body):
        return
    kinds = [joint.kind for joint in body.joints]
    if "free" in kinds and len(kinds) > 1:
        check.fail("joints", f"a free joint must be the only joint of its body, found {', '.join(kinds)}")
    if body.motion == "kinematic":
        _check_kinematic(check, body, kinds)
    elif body.path is not None:
        check.fail("path", f'only a kinematic body follows a path, this one is {body.motion}; set motion="kinematic"')


def _check_kinematic(check: Checker, body: Body, kinds: list[str]) -> None:
    if kinds not in ([], ["free"]):
        found = ", ".join(kinds)
        check.fail("joints", f"a kinematic body has one free joint or none (it is added then), found {found}")
    if body.path is None:
        return
    if not callable(body.path):
        check.fail("path", f"must be a path such as poise.motion.FunctionPath or KeyedPath, found {shown(body.path)}")
    else:
        _check_path_start(check, body)


def _check_path_start(check: Checker, body: Body) -> None:
    try:
        start = body.path(0.0)
        position, quat = start.position, start.quat_wxyz
    except Exception as problem:  # a path is the user's own code
        found = f"found {type(problem).__name__}: {problem}"
        wrap = "poise.motion.FunctionPath makes one of a function of time that gives (position, quat_wxyz)"
        check.fail("path", f"must give a PathPoint at time 0, {found}; {wrap}")
        return
    check.numbers("path(0).position", position, 3)
    check.quaternion("path(0).quat_wxyz", quat)


def _check_names(check: Checker, bodies: list[Body]) -> None:
    for name, count in Counter(body.name for body in bodies).items():
        if count > 1:
            lines = [str(body.line) for body in bodies if body.name == name and body.line is not None]
            where = f" (lines {', '.join(lines)})" if lines else ""
            check.fail(f'body "{name}"', f"the name must be unique, found {count} bodies with it{where}")
    joints = [(name, body) for body in bodies if isinstance(body.joints, (list, tuple)) for name in _names(body)]
    for name, count in Counter(name for name, _ in joints).items():
        if count > 1:
            owners = ", ".join(f'"{body.name}"' for joint, body in joints if joint == name)
            check.fail(f'joint "{name}"', f"the name must be unique, found {count} joints with it, on {owners}")


def _names(body: Body) -> list[str]:
    if any(not isinstance(joint, Joint) for joint in body.joints):
        return []
    return [name for name in body.joint_names() if isinstance(name, str)]


def _check_tree(check: Checker, bodies: list[Body]) -> bool:
    """Parents exist and no body is its own ancestor."""
    parents = {body.name: body.parent for body in bodies}
    sound = True
    for body in bodies:
        if body.parent is None or (isinstance(body.parent, str) and body.parent in parents):
            continue
        sound = False
        hint = did_you_mean(body.parent, parents)
        if isinstance(body.parent, str) and body.parent.casefold() == "world":
            hint = "; the world is None"
        what = f'there is no body "{body.parent}"' if isinstance(body.parent, str) else f"found {body.parent!r}"
        check.at(f'body "{body.name}"', body.line).fail("parent", what + hint)
    if not sound:
        return False
    done: set[str] = set()
    for body in bodies:
        path: list[str] = []
        on_path: set[str] = set()
        name: str | None = body.name
        while name is not None and name not in done and name not in on_path:
            path.append(name)
            on_path.add(name)
            name = parents[name]
        if name is not None and name in on_path:
            sound = False
            loop = [*path[path.index(name) :], name]
            text = " → ".join(f'"{step}"' for step in loop)
            check.at(f'body "{name}"', body.line).fail("parent", f"bodies must form a tree, found the loop {text}")
        done.update(path)
    return sound


def _check_planes(check: Checker, bodies: list[Body]) -> None:
    """Check that planes, height fields and triangle meshes that collide are on static bodies."""
    parents = {body.name: body.parent for body in bodies}
    moves = {body.name: not _joints_are_sound(body) or bool(body.moving_joints()) for body in bodies}
    for body in bodies:
        shapes: object = body.shapes
        listed = shapes if isinstance(shapes, (list, tuple)) else []
        still = [shape for shape in listed if must_stay(shape)]
        if not still:
            continue
        carrier: str | None = body.name
        while carrier is not None and not moves[carrier]:
            carrier = parents[carrier]
        if carrier is not None:
            reason = "it has joints" if carrier == body.name else f'it is carried by "{carrier}", which has joints'
            check.at(f'body "{body.name}"', body.line).fail(
                "shapes",
                f"a {spoken(still[0])} must be on a body that does not move, but {reason}; "
                'set motion="fixed" or use a box',
            )


def _joints_are_sound(body: Body) -> bool:
    """Whether every joint is a Joint of a known kind, and the body's motion is known."""
    joints: object = body.joints
    motion: object = body.motion
    return (
        isinstance(motion, str)
        and isinstance(joints, (list, tuple))
        and all(isinstance(joint, Joint) and isinstance(joint.kind, str) and joint.kind in JOINTS for joint in joints)
    )


def _check_keyframes(check: Checker, scene: Scene, bodies: list[Body]) -> None:
    # lengths can only be compared if the joints are valid
    if not _is_list_of(check, "keyframes", scene.keyframes, Keyframe) or not all(map(_joints_are_sound, bodies)):
        return
    kinds = [JOINTS[joint.kind] for body in bodies for _, joint in body.moving_joints()]
    nq, nv = sum(kind.nq for kind in kinds), sum(kind.nv for kind in kinds)
    for k, frame in enumerate(scene.keyframes):
        check.at(f"keyframes[{k}]").text("name", frame.name)
        part = check.at(f'keyframe "{frame.name}"')
        part.number("time", frame.time)
        for field, value, count in (("q", frame.q, nq), ("v", frame.v, nv), ("control", frame.control, None)):
            if value is not None:
                part.numbers(field, value, count)


def _check_references(check: Checker, scene: Scene, bodies: list[Body]) -> None:
    names = [body.name for body in bodies]
    if _is_list_of(check, "skins", scene.skins, Skin):
        for k, skin in enumerate(scene.skins):
            if check.at(f"skins[{k}]").text("name", skin.name):
                check_skin(check.at(f'skin "{skin.name}"'), skin, names)
    pairs = as_sequence(scene.excluded_pairs)
    if pairs is None:
        check.fail("excluded_pairs", f"must be a list of pairs of names, found {shown(scene.excluded_pairs)}")
    for k, pair in enumerate(pairs or ()):
        items = as_sequence(pair)
        if items is None or len(items) != 2:
            check.fail(f"excluded_pairs[{k}]", f"must be the names of two bodies, found {shown(pair)}")
            continue
        for name in items:
            if name not in names:
                check.fail(f"excluded_pairs[{k}]", f'there is no body "{name}"{did_you_mean(name, names)}')
    if _is_list_of(check, "contact_pairs", scene.contact_pairs, ContactPair):
        for k, contact_pair in enumerate(scene.contact_pairs):
            check_contact_pair(check.at(f"contact_pairs[{k}]"), contact_pair, bodies)
    if _is_list_of(check, "equalities", scene.equalities, Equality):
        for k, one in enumerate(scene.equalities):
            check.at(f"equalities[{k}]").text("name", one.name)
            options: object = one.options
            if not isinstance(options, dict):
                check.at(f'equality "{one.name}"').fail("options", f"must be a dict, found {shown(options)}")
    if _is_list_of(check, "loops", scene.loops, Loop):
        for k, loop in enumerate(scene.loops):
            check.at(f"loops[{k}]").text("name", loop.name)
    if not _is_list_of(check, "actuators", scene.actuators, Actuator):
        return
    for k, actuator in enumerate(scene.actuators):
        check.at(f"actuators[{k}]").text("name", actuator.name)
        part = check.at(f'actuator "{actuator.name}"')
        part.text("kind", actuator.kind)
        target: object = actuator.target
        given: object = actuator.options
        if not isinstance(target, str):
            part.fail("target", f"must be the name of a joint, found {shown(target)}")
        if not isinstance(given, dict):
            part.fail("options", f"must be a dict, found {shown(given)}")
        part.numbers("gear", actuator.gear, None)
        for field, bounds in (("control_range", actuator.control_range), ("force_range", actuator.force_range)):
            if bounds is not None:
                part.bounds(field, bounds)
