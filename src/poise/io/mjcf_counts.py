"""Limits of an MJCF file's size: elements, copies, keyframes, cells, pixels, points."""

from __future__ import annotations

import math
from collections import Counter as Totals
from pathlib import PurePath

from poise.io.xml_lines import Element
from poise.model.errors import SceneError

#: what may be asked for, of all elements together. The time that MuJoCo takes grows with the square of the elements,
#: bodies, copies, keyframes and points, up to some seconds; the others take memory
_MOST = {
    "elements": 25_000,
    "bodies and frames": 10_000,
    "copies of elements": 10_000,
    "elements of attached models": 30_000,
    "keyframes": 20_000,
    "points of flexes": 10_000,
    "cells of height fields": 10_000_000,
    "pixels of textures": 1 << 25,
    "numbers of user data": 1_000_000,
    "numbers of sensors": 1_000_000,
    "steps that measure length ranges": 100_000,
}
_DIGITS = 18
"""Digits of a count; longer ones are infinite."""


class Counter:
    """Sums the counts of a model. Raises SceneError with the file and line of the element that exceeds a limit."""

    def __init__(self) -> None:
        self.files: dict[int, str | None] = {}
        """The file of each element, by its id."""
        self.totals: Totals[str] = Totals()
        self.models: dict[int, Element] = {}
        """The root of the file of each <model>, by the id of that element."""
        self._scopes: dict[int, dict[str, Element]] = {}

    def check(self, root: Element, copies: float) -> None:
        """Add up all of a tree; `copies` is how often it is there. Models count where they are attached."""
        waiting = [(root, copies, root)]
        while waiting:
            element, copies, file = waiting.pop()
            if file is not root:
                self.add(element, "elements of attached models", copies)
            elif copies > 1:
                self.add(element, "copies of elements", copies)
            else:
                self.add(element, "elements", 1)
            if element.tag in ("body", "frame"):
                self.add(element, "bodies and frames", copies)
            self._counts(element, copies)
            if element.tag == "replicate":
                copies *= max(1.0, _number(element, "count"))
                if copies > _MOST["copies of elements"]:
                    self.add(element, "copies of elements", copies)
            waiting += [(child, copies, file) for child in reversed(element.children)]
            if element.tag == "attach":
                model = self._scope(file).get(element.attributes.get("model", ""))
                if model is not None:
                    waiting += [(child, copies, model) for child in reversed(model.children)]

    def _scope(self, root: Element) -> dict[str, Element]:
        """The models of a file and of what it includes, by name."""
        if id(root) not in self._scopes:
            found = [element for element in root.walk() if id(element) in self.models]
            names = [one.attributes.get("name") or PurePath(one.attributes["file"]).stem for one in found]
            self._scopes[id(root)] = {name: self.models[id(one)] for name, one in zip(names, found, strict=True)}
        return self._scopes[id(root)]

    def add(self, element: Element, what: str, count: float) -> None:
        """Add to the count of a kind."""
        self.totals[what] += min(count, 1e18)  # type: ignore[assignment]
        if self.totals[what] > _MOST[what]:
            message = f"<{element.tag}> asks for {self.totals[what]:.3g} {what}; at most {_MOST[what]} are read"
            raise SceneError(message, file=self.files.get(id(element)), line=element.line)

    def _counts(self, element: Element, copies: float) -> None:
        tag = element.tag
        if tag == "size":
            self.add(element, "keyframes", _number(element, "nkey"))
            for name in element.attributes:
                if name.startswith("nuser"):
                    self.add(element, "numbers of user data", _number(element, name))
        elif tag == "key":
            self.add(element, "keyframes", 1)
        elif tag == "hfield":
            self.add(element, "cells of height fields", _number(element, "nrow") * _number(element, "ncol"))
        elif tag == "texture":
            self.add(element, "pixels of textures", _pixels(element))
        elif tag in ("flexcomp", "composite"):
            points = math.prod(max(1.0, number) for number in _numbers(element.attributes.get("count", "")))
            self.add(element, "points of flexes", copies * points)
        elif tag == "lengthrange":
            steps = _number(element, "inttotal", 10.0) / max(_number(element, "timestep", 0.01), 1e-12)
            self.add(element, "steps that measure length ranges", steps)
        for name in ("dim", "nsample"):
            if name in element.attributes and tag not in ("flex", "flexcomp"):
                self.add(element, "numbers of sensors", copies * _number(element, name))


def _pixels(texture: Element) -> float:
    faces = 1 if texture.attributes.get("type") == "2d" else 6
    return faces * _number(texture, "width") * _number(texture, "height")


def _number(element: Element, name: str, default: float = 0.0) -> float:
    """A number that is not negative; 0 for what is none, which MuJoCo refuses."""
    numbers = _numbers(element.attributes.get(name, ""))
    return numbers[0] if numbers else default


def _numbers(text: str) -> list[float]:
    found = []
    for word in text[:1000].split():
        try:
            number = abs(float(word)) if len(word) <= 10 * _DIGITS else math.inf
        except ValueError:
            number = 0.0
        found.append(0.0 if math.isnan(number) else min(number, 10.0**_DIGITS))
    return found
