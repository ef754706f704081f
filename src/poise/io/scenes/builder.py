"""Build a Scene from a validated scene file, or report all errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from poise.control.scenario import Push, Start, Throw
from poise.io.scenes.finishing import Finisher
from poise.io.scenes.merging import keep_rules, merge, own_bodies
from poise.io.scenes.nesting import nested
from poise.io.scenes.nodes import Items
from poise.io.scenes.parts import Part
from poise.io.scenes.schema import CharacterPart, FormulationPart, GroundPart, SceneFile
from poise.io.scenes.schema_bodies import JointPart
from poise.io.scenes.tracked import add_tracking
from poise.io.sealed import check_unsealed
from poise.model.build import CharacterHandle, add_motor
from poise.model.checks import shown
from poise.model.contact_pairs import FRICTIONS, ContactPair
from poise.model.errors import Problem, SceneError, resolve_name
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.part_checks import COMBINE_OPTIONS
from poise.model.scene import Actuator, Body, Character, Equality, Loop, Scene, Settings

MOST_BODIES, MOST_JOINTS = 10_000, 20_000
"""Of the scene that a file describes; as many bodies as are read from MJCF. The time to check and lay out bodies grows
with their number: this many take some seconds."""
_WORD = re.compile(r"[.\[: ]")


class Builder(Finisher):
    """Puts a scene together."""

    def __init__(self, file: SceneFile, path: Path, problems: list[Problem]) -> None:
        super().__init__(path.parent, problems)
        self.file = file
        self.scene = Scene(gravity=file.gravity, name=file.name or path.stem, source=str(path))
        if file.dt is not None:
            self.scene.dt = file.dt
        for option in COMBINE_OPTIONS:
            setattr(self.scene, option, getattr(file, option))
        self.heroes: list[tuple[CharacterPart, CharacterHandle, Character]] = []
        self.velocities: dict[str, Any] = {}
        self._bodies: dict[str, Body] = {}
        self._joints: dict[tuple[bool, int, int], dict[str, None]] = {}
        self._bodies_counted = self._joints_counted = 0
        self.changes: list[str] = []
        """What is not as the files have it that were merged."""
        self.merged: list[tuple[CharacterHandle, Scene]] = []
        """Characters of files, and the scenes of these."""

    def build(self) -> Scene:
        """The scene; raises SceneError with all that is wrong."""
        self.add_bodies()
        for part in self.file.characters or []:
            self.add_character(part)
        self.join()
        self.act()
        self.settle()
        self.give_up()
        for owner, hero, person in self.heroes:
            if owner.track is not None:
                add_tracking(self, owner.track, hero, person, f'character "{hero.name}": track')
        for tracked in self.file.tracking or []:
            found = self.listed_hero(tracked.character)
            if found is None:
                self.fail(tracked, "character", f'there are no bodies "{tracked.character}/…"')
            else:
                add_tracking(self, tracked, found, own_bodies(self.scene, found), f'tracking of "{tracked.character}"')
        self.give_up()
        model = self.compile()
        self.add_keyframes(model)
        self.check_built(model)
        self.scene.unsupported += self.changes
        return self.scene

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def add_bodies(self) -> None:
        """The ground, and the bodies of the list."""
        scene, ground = self.scene, self.file.ground
        if isinstance(ground, GroundPart):
            options: dict[str, Any] = {}
            if ground.color is not None and len(ground.color) in (3, 4):
                options["color"] = (*ground.color, 1.0)[:4]
            elif ground.color is not None:
                self.fail(ground, "color", f"must be 3 or 4 numbers, found {len(ground.color)}", "ground")
            scene.add_ground(ground.friction, ground.restitution, ground.height, ground.name, **options)
            self.places[f'body "{ground.name}"'] = ground
        first: dict[str, Part] = {} if ground is None or isinstance(ground, bool) else {ground.name: ground}
        for part in self.file.bodies or []:
            body = self.body(part)
            if part.name in first:
                before = first[part.name].node.line
                self.fail(
                    part, "name", f'there is a body "{part.name}" already, in line {before}', f'body "{part.name}"'
                )
                continue
            first[body.name] = part
            scene.bodies.append(body)
            self.check_number(part)
            if part.velocity is not None or part.angular_velocity is not None:
                self.velocities[body.name] = part

    def check_number(self, part: Part) -> None:
        """Count bodies and joints that were added; raise SceneError with the line of the part that has too many."""
        added = self.scene.bodies[self._bodies_counted :]
        self._bodies_counted += len(added)
        self._joints_counted += sum(len(body.joints) for body in added)
        counts = (("bodies", self._bodies_counted, MOST_BODIES), ("joints", self._joints_counted, MOST_JOINTS))
        for what, count, most in counts:
            if count > most:
                message = f"more than {most} {what}; a scene that is built in Python may have more"
                raise SceneError(message, file=part.node.file, line=part.node.line, field="bodies")

    def add_character(self, part: CharacterPart) -> None:
        """A character that comes with Poise, or that a file holds."""
        label = f'character "{part.name}"' if part.name else "character"
        person, extra = self.character(part, label)
        if person is None:
            return
        joint = self.joint(part.joint, f"{label}: joint") if isinstance(part.joint, JointPart) else None
        quat = self.quat(part, label)
        try:
            hero = self.scene.add(
                person, part.name, position=part.position, quat_wxyz=quat, joint=joint, fixed=part.fixed
            )
        except SceneError as error:
            problem = error.problems[0]
            field = problem.field or ""
            self.fail(part, field if field in part._given else "", problem.message, label)
            return
        root = self.scene.body(hero.bodies[0])
        root.parent = part.parent
        self.places[f'body "{hero.name}/'] = part
        self.heroes.append((part, hero, person))
        self.check_number(part)
        if extra is not None:
            merge(self.scene, extra, hero.name)
            self.changes += keep_rules(self.scene, hero, extra, str(getattr(part, "file", extra.name)))
            self.merged.append((hero, extra))
        if part.velocity is not None or part.angular_velocity is not None:
            self.velocities[root.name] = part

    def character(self, part: Any, label: str) -> tuple[Character | None, Scene | None]:
        """A character, and the rest of the file that it is from."""
        if part.kind == "file":
            return self._from_file(part, label)
        import poise

        names = [name for name in type(part).model_fields if name not in CharacterPart.model_fields and name != "kind"]
        options = {name: getattr(part, name) for name in names if part.has(name)}
        try:
            return getattr(poise.characters, part.kind)(**options), None
        except SceneError as error:
            problem = error.problems[0]
            field = problem.field if problem.field in options else ""
            self.fail(part, field or "", problem.message, label)
            return None, None

    def _from_file(self, part: Any, label: str) -> tuple[Character | None, Scene | None]:
        from poise.io.load import load

        if part.file is None:
            return None, None
        path = self.folder / part.file
        try:
            check_unsealed(path)
            with nested(Path(self.scene.source or ""), path):
                found = load(path, **(part.options or {}))
        except SceneError as error:
            for problem in error.problems:
                if problem.line is not None:
                    self.problems.append(problem)
                else:
                    self.fail(part, "file", f'"{part.file}": {problem.message}', label)
            return None, None
        except ImportError as error:
            self.fail(part, "file", f'"{part.file}": {error}', label)
            return None, None
        if not found.bodies:
            self.fail(part, "file", f'"{part.file}" has no bodies', label)
            return None, None
        return Character(found.name, found.bodies), found

    # ---- what joins and drives bodies --------------------------------------------------------------------------------

    def body_name(self, name: str | None, part: Part, field: str, label: str = "") -> str | None:
        """The full name of a body that a field names."""
        if name is None:
            return None
        names = self._body_names()
        if name.casefold() == "world" and name not in names:
            self.fail(part, field, "the world is meant where nothing is named; leave it out", label)
            return None
        return self._resolved("body", name, names, part, field, label)

    def joint_name(self, name: str, part: Part, field: str, label: str, coordinates: bool = False) -> str:
        """The full name of a joint, or of a coordinate of one."""
        names = self._joint_names(coordinates)
        return self._resolved("joint", name, names, part, field, label) or name

    def _body_names(self) -> dict[str, Body]:
        """Bodies by name; bodies are never taken away."""
        if len(self._bodies) != len(self.scene.bodies):
            self._bodies = {}
            for body in self.scene.bodies:
                self._bodies.setdefault(body.name, body)
        return self._bodies

    def _joint_names(self, coordinates: bool) -> dict[str, None]:
        """Names of joints, or of coordinates, too; bodies and loops are never taken away."""
        state = (coordinates, len(self.scene.bodies), len(self.scene.loops))
        if state in self._joints:
            return self._joints[state]
        names = []
        for body in self.scene.bodies:
            for joint_name, joint in body.moving_joints():
                names.append(joint_name)
                kind = JOINTS.get(joint.kind)
                if coordinates and kind is not None and kind.nv > 1:
                    names += [f"{joint_name}.{suffix}" for suffix in kind.v_names]
        if coordinates:
            names += [loop.name for loop in self.scene.loops]
            names += [f"{loop.name}.{suffix}" for loop in self.scene.loops for suffix in JOINTS[loop.kind].v_names]
            names += [f"{loop.name}.twist" for loop in self.scene.loops]
        self._joints = {state: dict.fromkeys(names)}
        return self._joints[state]

    def join(self) -> None:
        """Parents, loops, couplings, pairs that pass through each other."""
        scene, file = self.scene, self.file
        for part in file.bodies or []:
            if part.parent is not None and part.name is not None:
                label = f'body "{part.name}"'
                full = self.body_name(part.parent, part, "parent", label)
                self._body_names()[part.name].parent = full
        for owner, hero, _ in self.heroes:
            if owner.parent is not None:
                full = self.body_name(owner.parent, owner, "parent", f'character "{hero.name}"')
                scene.body(hero.bodies[0]).parent = full
        self._pairs()
        self._contact_pairs()
        for loop in file.loops or []:
            self._loop(loop)
        for one in file.couplings or []:
            label = f'coupling "{one.name or one.first}"'
            if one.sound:
                first = self.joint_name(one.first, one, "first", label)
                second = None if one.second is None else self.joint_name(one.second, one, "second", label)
                name = one.name or f"{first}-{second or 'rest'}"
                self.places[f'equality "{name}"'] = one
                options = {"coefficients": one.coefficients}
                scene.equalities.append(Equality(name, "joint", first, second, one.active, options))
        for other in file.equalities or []:
            if other.sound:
                self.places[f'equality "{other.name}"'] = other
                made = Equality(other.name, other.kind, other.first, other.second, other.active, other.options or {})
                scene.equalities.append(made)

    def _pairs(self) -> None:
        """Bodies that pass through each other, each pair with its own line."""
        pairs, node = self.file.excluded_pairs or [], self.file.node.fields.get("excluded_pairs")
        items = node.items if isinstance(node, Items) and len(node.items) == len(pairs) else [node] * len(pairs)
        bodies = self._body_names()
        for pair, item in zip(pairs, items, strict=True):
            try:
                first, second = (resolve_name("body", name, bodies) for name in pair)
                self.scene.excluded_pairs.append((first, second))
            except SceneError as error:
                assert item is not None
                self.problems.append(Problem(error.problems[0].message, item.file, item.line, "excluded_pairs"))

    def _contact_pairs(self) -> None:
        """Shapes that touch whatever else says otherwise; a shape is a body and its number there."""
        for part in self.file.contact_pairs or []:
            ends = [self._shape(part, field) for field in ("first", "second")]
            if part.sound and None not in ends:
                self.places[f"contact_pairs[{len(self.scene.contact_pairs)}]"] = part
                coefficients = {name: getattr(part, name) for name in FRICTIONS}
                self.scene.contact_pairs.append(ContactPair(*ends, **coefficients))  # type: ignore[arg-type]

    def _shape(self, part: Any, field: str) -> tuple[str, int] | None:
        """A shape that a contact pair names."""
        given: Any = getattr(part, field)
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
            what = f"must be the name of a body and the number of a shape on it, as [floor, 0], found {shown(given)}"
            self.fail(part, field, what, "contact pair")
            return None
        name = self.body_name(given[0], part, field, "contact pair")
        return None if name is None else (name, given[1])

    def _loop(self, part: Any) -> None:
        label = f'loop "{part.name}"' if part.name else "loop"
        ends = [self.body_name(getattr(part, end), part, end, label) for end in ("first", "second")]
        if not part.sound or any(
            getattr(part, end) is not None and ends[k] is None for k, end in enumerate(("first", "second"))
        ):
            return
        self.check_measures(part, part.kind, ("limits",), label)
        name = part.name or "-".join("world" if end is None else end for end in ends)
        taken = [loop.name for loop in self.scene.loops]
        if part.name is None and name in taken:
            name = next(f"{name}_{k}" for k in range(2, len(taken) + 3) if f"{name}_{k}" not in taken)
        if name in taken:
            self.fail(part, "name", f'there is a loop "{name}" already', label)
            return
        given = {f: getattr(part, f) for f in type(part).model_fields if f not in ("name", "kind", "first", "second")}
        self.scene.loops.append(Loop(name, part.kind, ends[0], ends[1], **given))
        self.places[f'loop "{name}"'] = part
        pair = (str(ends[0]), str(ends[1]))
        known = self.scene.excluded_pairs
        if None not in ends and pair not in known and pair[::-1] not in known:
            known.append(pair)

    def act(self) -> None:
        """Motors and actuators, throws and pushes."""
        scene = self.scene
        taken = {actuator.name for actuator in scene.actuators}
        for part in self.file.motors or []:
            if not part.sound:
                continue
            label = f'motor "{part.name or part.joint}"'
            joint = self.joint_name(part.joint, part, "joint", label, coordinates=True)
            names = ("stiffness", "damping", "limit", "target", "speed", "torque", "gear")
            options = {name: getattr(part, name) for name in names if name not in ("limit", "gear")}
            try:
                # what is not full must not become the name of another motor
                name = add_motor(scene, joint, part.name, part.limit, part.gear, options, taken)
                taken.add(name)
                self.places[f'actuator "{name}"'] = part
            except SceneError as error:
                field = (error.problems[0].field or "").rpartition(": ")[2]
                self.fail(part, field if field in names else "joint", error.problems[0].message, label)
        for one in self.file.actuators or []:
            if one.sound:
                self.places[f'actuator "{one.name}"'] = one
                made = Actuator(one.name, one.kind, one.target, one.gear, one.control_range, one.force_range)
                made.options = one.options or {}
                scene.actuators.append(made)
        if self.velocities:
            still = (0.0, 0.0, 0.0)
            for name, part in self.velocities.items():
                self._must_be_free(name, part, "velocity" if part.has("velocity") else "angular_velocity", f'"{name}"')
            both = {n: (p.velocity or still, p.angular_velocity or still) for n, p in self.velocities.items()}
            Start(velocities=both).add_to(scene)
        for throw in self.file.throws or []:
            self._throw(throw)
        for push in self.file.pushes or []:
            pushed = self.body_name(push.body, push, "body", f'push of "{push.body}"')
            if pushed is not None and push.sound:
                Push(pushed, push.time, push.duration, push.force, push.torque).add_to(scene)

    def _throw(self, part: Any) -> None:
        label = f'throw of "{part.body}"'
        name = self.body_name(part.body, part, "body", label)
        at = self.body_name(part.at, part, "at", label)
        if name is None or not part.sound or (part.at is not None and at is None):
            return
        self._must_be_free(name, part, "body", label)
        try:
            Throw(name, part.time, part.velocity, part.angular_velocity or (0.0, 0.0, 0.0), at, part.speed).add_to(
                self.scene
            )
        except SceneError as error:
            self.fail(part, "", error.problems[0].message, label)

    def _must_be_free(self, name: str, part: Part, field: str, label: str) -> None:
        body = self.scene.body(name)
        if not any(joint.kind == "free" for _, joint in body.moving_joints()):
            self.fail(part, field, "only a body that is free to move can have a velocity or be thrown", label)

    def settle(self) -> None:
        """Settings of runs."""
        file = self.file
        settings = Settings(None, file.duration, file.record, file.every, description=file.description)
        if isinstance(file.formulation, FormulationPart) and file.formulation.sound:
            try:
                settings.formulation = file.formulation.made()
            except ValueError as error:
                field = str(error).partition(" ")[0]
                known = field if field in FormulationPart.model_fields else ""
                self.fail(file.formulation, known, str(error), "formulation")
        if file.camera is not None:
            camera = {name: getattr(file.camera, name) for name in type(file.camera).model_fields}
            settings.camera = {name: value for name, value in camera.items() if value is not None}
            follow = file.camera.follow
            if follow is not None and self.listed_hero(follow) is None:
                settings.camera["follow"] = self.body_name(follow, file.camera, "follow", "camera")
        self.scene.settings = settings

    def listed_hero(self, name: str) -> CharacterHandle | None:
        """A character whose bodies are listed one by one."""
        bodies = tuple(body.name for body in self.scene.bodies if body.name.startswith(f"{name}/"))
        return CharacterHandle(self.scene, name, bodies) if bodies else None

    def check_built(self, model: Model) -> None:
        """What only worlds would find: names of controllers, cameras that see nothing."""
        camera = self.scene.settings.camera
        part = self.file.camera
        if part is not None and "position" in camera and "target" in camera and camera["position"] == camera["target"]:
            self.fail(part, "target", "is where the camera is: there is no direction to look in", "camera")
        self.give_up()
