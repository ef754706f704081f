"""Last stage of reading a scene file: compilation, keyframes, and problems with the lines of the file."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from poise.control.scenario import Start
from poise.io.scenes.makers import Maker
from poise.io.scenes.merged_keyframes import merged_keyframes
from poise.io.scenes.parts import Part
from poise.io.scenes.schema import KeyframePart, SceneFile
from poise.model.build import CharacterHandle
from poise.model.errors import MOST_PROBLEMS, Problem, SceneError, resolve_name
from poise.model.model import Model
from poise.model.scene import Keyframe, Scene
from poise.model.state import State

_WORD = re.compile(r"[.\[: ]")


class Finisher(Maker):
    """Compiles a scene, and adds the parts that need its model."""

    file: SceneFile
    scene: Scene
    merged: list[tuple[CharacterHandle, Scene]]

    def give_up(self) -> None:
        """Raise the problems so far, in the order of the lines."""
        if self.problems:
            first = self.scene.source
            order = sorted(self.problems, key=lambda p: (p.file != first, p.file or "", p.line or 0))
            raise SceneError.of(list(dict.fromkeys(order)))

    def _resolved(self, what: str, name: str, names: Collection[str], part: Part, field: str, label: str) -> str | None:
        try:
            return resolve_name(what, name, names)
        except SceneError as error:
            self.fail(part, field, error.problems[0].message, label)
            return None

    def compile(self) -> Model:
        """The model; errors are reported with the lines of the file."""
        try:
            return self.scene.compile()
        except SceneError as error:
            raise SceneError.of([self.located(problem) for problem in error.problems[:MOST_PROBLEMS]]) from None

    def located(self, problem: Problem) -> Problem:
        """A problem of the scene as one of the file."""
        field = problem.field or ""
        labels = [label for label in self.places if field.startswith(label)]
        if not labels:
            return problem
        part = self.places[max(labels, key=len)]
        rest = field[len(max(labels, key=len)) :].lstrip(": ")
        word = _WORD.split(rest)[0] if rest else ""
        word = {"target": "joint"}.get(word, word) if word not in part._given else word
        file, line = part.node.place(part.written(word))
        return Problem(problem.message, file, line, problem.field)

    def add_keyframes(self, model: Model) -> None:
        """Named states, and the one to begin with."""
        for part in self.file.keyframes or []:
            if part.sound:
                self._keyframe(part, model)
        for hero, other in self.merged:
            self.scene.keyframes += merged_keyframes(model, hero, other, {frame.name for frame in self.scene.keyframes})
        start = self.file.start
        if start is not None:
            names = [frame.name for frame in self.scene.keyframes]
            full = self._resolved("keyframe", start, names, self.file, "start", "")
            self.give_up()
            state = State.from_keyframe(self.scene, str(full), model)
            first = Start(tuple(state.q.tolist()), tuple(state.v.tolist()), state.time)
            self.scene.controllers.insert(0, ("start at", first))
        self.give_up()

    def _keyframe(self, part: KeyframePart, model: Model) -> None:
        label = f'keyframe "{part.name}"'
        frame = Keyframe(part.name, part.time, part.q, part.v, part.control)
        for name, given, by_name in (("q", part.q, part.joints), ("v", part.v, part.velocities)):
            field = "joints" if name == "q" else "velocities"
            count = model.nq if name == "q" else model.nv
            if given is not None and by_name is not None:
                self.fail(part, field, f'leave out "{name}" or "{field}"', label)
            elif given is not None and len(given) != count:
                self.fail(part, name, f"must be {count} numbers, one for each coordinate, found {len(given)}", label)
            elif by_name is not None:
                setattr(frame, name, self._by_name(part, field, by_name, model, label))
        self.scene.keyframes.append(frame)

    def _by_name(self, part: KeyframePart, field: str, values: dict[str, Any], model: Model, label: str) -> Any:
        """Coordinates or velocities from those of some joints."""
        whole = model.q_rest.tolist() if field == "joints" else [0.0] * model.nv
        singles = model.q_names if field == "joints" else model.dof_names
        for name, value in values.items():
            node = part.node.fields[part.written(field)]
            file, line = node.place(name)  # type: ignore[attr-defined]
            numbers = list(value) if isinstance(value, tuple) else [value]
            try:
                if name in singles:
                    k = singles.index(name)
                    where = slice(k, k + 1)
                else:
                    full = resolve_name("joint", name, list(model.joint_names))
                    where = (model.q_slice if field == "joints" else model.v_slice)(full)
                if where.stop - where.start != len(numbers):
                    raise SceneError(f"must be {where.stop - where.start} numbers, found {len(numbers)}")
                whole[where] = numbers
            except SceneError as error:
                self.problems.append(Problem(error.problems[0].message, file, line, f"{label}: {field}: {name}"))
        return tuple(whole)
