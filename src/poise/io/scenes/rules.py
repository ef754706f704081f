"""Rules of fields: each reads a node, reports its errors, and describes itself as JSON Schema."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import core_schema

from poise.io.scenes.nodes import Fields, Items, Leaf, Node, as_node, plain
from poise.io.scenes.parameters import is_unknown
from poise.io.scenes.units import UNITS, Unit, suffixes
from poise.model.build import parse_axis
from poise.model.checks import shown
from poise.model.errors import Problem, Problems, SceneError, did_you_mean

BAD: Any = type("Bad", (), {"__repr__": lambda self: "BAD"})()
"""Placeholder for a value whose error was reported."""
PARAMETER = {"type": "string", "pattern": r"\$", "description": "a parameter: $name or ${expression}"}
_WITH_UNIT = re.compile(r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(°|[A-Za-z]+)\s*")
_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_YES = {"yes": "true", "on": "true", "no": "false", "off": "false"}


@dataclass
class Place:
    """Where a value is, for what is said of it."""

    problems: list[Problem]
    label: str
    key: str
    file: str | None
    line: int | None

    def fail(self, message: str) -> Any:
        """Note a problem; gives BAD."""
        self.problems.append(Problem(message, self.file, self.line, self.label or None))
        return BAD

    def field(self, node: Fields, key: str) -> Place:
        """The place of a field."""
        file, line = node.place(key)
        return Place(self.problems, f"{self.label}: {key}" if self.label else key, key, file, line)

    def item(self, k: int, node: Node) -> Place:
        """The place of an item of a list."""
        return Place(self.problems, f"{self.label}[{k}]", self.key, node.file, node.line or self.line)

    def named(self, label: str) -> Place:
        """The same place under another name."""
        return Place(self.problems, label, self.key, self.file, self.line)


class Rule:
    """What a field may hold."""

    of: tuple[str, ...] = ()
    """Quantities whose units the field's name may end in."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """The value of a node, or BAD after reporting an error."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        raise NotImplementedError

    def plain_check(self, value: Any) -> Any:
        """The same for pydantic."""
        problems: list[Problem] = Problems()
        found = self.read(as_node(value), Place(problems, "", "", None, None))
        if problems:
            raise ValueError("; ".join(str(problem) for problem in problems))
        return found

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_plain_validator_function(self.plain_check)

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        own = self.schema()
        return {"anyOf": [*own.get("anyOf", [own]), PARAMETER]}


@dataclass(frozen=True)
class Number(Rule):
    """One number."""

    of: tuple[str, ...] = ()
    positive: bool = False
    negative: bool = True
    infinite: bool = False
    most: float = math.inf
    hint: str = ""
    """Said of a number that is more than `most`."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A float."""
        if is_unknown(node):
            return BAD
        value = node.value if isinstance(node, Leaf) else plain(node)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return at.fail(f"must be a number, found {said(node)}{self._meant(value, at)}")
        number = float(value) if unit is None else unit.si(float(value))
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            return at.fail(f"must be a finite number, found {value}")
        if self.positive and number <= 0.0:
            return at.fail(f"must be more than 0, found {value:g}")
        if not self.negative and number < 0.0:
            return at.fail(f"must be 0 or more, found {value:g}")
        if number > self.most:
            return at.fail(f"must be at most {self.most:g}, found {value:g}{self.hint.format(value)}")
        return number

    def _meant(self, value: Any, at: Place) -> str:
        """What text was probably meant to be."""
        if not isinstance(value, str):
            return ""
        if _COMMA.fullmatch(value):
            return f", did you mean {value.strip().replace(',', '.')}?"
        match = _WITH_UNIT.fullmatch(value)
        if match is None:
            return ""
        unit = {"°": "deg", "degrees": "deg", "degree": "deg"}.get(match[2], match[2])
        if unit not in UNITS or not self.of:
            return ""
        if unit in suffixes(self.of):
            return f", did you mean {at.key.partition('[')[0]}_{unit}: {match[1]}?"
        return f"; it takes {', '.join('_' + known for known in suffixes(self.of))}"

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        bounds: dict[str, Any] = {"exclusiveMinimum": 0} if self.positive else {}
        bounds |= {} if self.negative else {"minimum": 0}
        bounds |= {"maximum": self.most} if math.isfinite(self.most) else {}
        return {"type": "number", **bounds}


@dataclass(frozen=True)
class Numbers(Rule):
    """A list of numbers: `count` of them, or any."""

    count: int | None = None
    of: tuple[str, ...] = ()
    each: Number = Number()
    or_one: bool = False
    """Whether one number will do as well, and is given as it is."""
    meaning: str = ""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A tuple of floats."""
        if is_unknown(node):
            return BAD
        each = replace(self.each, of=self.of)
        if self.or_one and isinstance(node, Leaf):
            return each.read(node, at, unit)
        wanted = f"{self.count} numbers" if self.count is not None else "numbers"
        wanted += f" {self.meaning}" if self.meaning else ""
        if not isinstance(node, Items):
            return at.fail(f"must be {wanted}, in square brackets, found {said(node)}")
        if self.count is not None and len(node.items) != self.count:
            return at.fail(f"must be {wanted}, found {len(node.items)}: {said(node)}")
        found = [each.read(item, at.item(k, item), unit) for k, item in enumerate(node.items)]
        return BAD if any(number is BAD for number in found) else tuple(found)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        size = {} if self.count is None else {"minItems": self.count, "maxItems": self.count}
        items = {"anyOf": [self.each.schema(), PARAMETER]}
        listed: dict[str, Any] = {"type": "array", "items": items, **size}
        return {"anyOf": [self.each.schema(), listed]} if self.or_one else listed


@dataclass(frozen=True)
class Text(Rule):
    """Words."""

    what: str = "text"

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A str that is not empty."""
        if is_unknown(node):
            return BAD
        if isinstance(node, Leaf) and isinstance(node.value, str) and node.value:
            return node.value
        quotes = isinstance(node, Leaf) and node.value is not None and node.value != ""
        return at.fail(f"must be {self.what}, found {said(node)}{'; put it in quotes' if quotes else ''}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Choice(Rule):
    """One of a few words."""

    words: tuple[str, ...]
    what: str = "one of them"
    elsewhere: tuple[tuple[str, str], ...] = ()

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """One of the words."""
        if is_unknown(node):
            return BAD
        if isinstance(node, Leaf) and isinstance(node.value, str) and node.value in self.words:
            return node.value
        value = node.value if isinstance(node, Leaf) else None
        hint = did_you_mean(value, self.words, dict(self.elsewhere)) if value is not None else ""
        if '"' not in hint or "did you mean" in hint:
            hint += f"; there is {', '.join(self.words)}" if "did you mean" not in hint else ""
        return at.fail(f"must be {self.what}, found {said(node)}{hint}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Flag(Rule):
    """True or false."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A bool."""
        if is_unknown(node):
            return BAD
        if isinstance(node, Leaf) and isinstance(node.value, bool):
            return node.value
        word = str(node.value).lower() if isinstance(node, Leaf) else ""
        hint = f", did you mean {_YES[word]}?" if word in _YES else ""
        return at.fail(f"must be true or false, found {said(node)}{hint}")

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number."""

    least: int = -(1 << 31)

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """An int."""
        if is_unknown(node):
            return BAD
        value = node.value if isinstance(node, Leaf) else None
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return at.fail(f"must be a whole number, found {said(node)}")
        if not self.least <= value < 1 << 31:
            return at.fail(f"must be from {self.least} to {(1 << 31) - 1}, found {value}")
        return value

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True)
class Axis(Rule):
    """x, y, z, -x, -y, -z or three numbers."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """Three floats."""
        if is_unknown(node):
            return BAD
        if isinstance(node, Leaf) and isinstance(node.value, str):
            try:
                return parse_axis(node.value)
            except SceneError as error:
                return at.fail(error.problems[0].message)
        vector = Numbers(3, meaning='or one of "x", "y", "z", "-x", "-y", "-z"').read(node, at)
        if vector is not BAD and not any(vector):
            return at.fail("must point somewhere, found [0, 0, 0]")
        return vector

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"anyOf": [{"enum": ["x", "y", "z", "-x", "-y", "-z"]}, Numbers(3).schema()]}


@dataclass(frozen=True)
class Rotation(Rule):
    """Four numbers (w, x, y, z)."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """Four floats, of any length but 0."""
        quat = Numbers(4, meaning="(w, x, y, z)").read(node, at)
        if quat is not BAD and not any(quat):
            return at.fail("must be a rotation (w, x, y, z), found zeros; no rotation is [1, 0, 0, 0]")
        return quat

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return Numbers(4).schema()


def said(node: Node) -> str:
    """A node as messages show it."""
    value = plain(node)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}..."'
    return shown(value)
