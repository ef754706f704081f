"""Rules of fields that hold several values: rows, pairs, names, values by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poise.io.scenes.nodes import Fields, Items, Leaf, Node, plain, plain_value
from poise.io.scenes.parameters import is_unknown
from poise.io.scenes.rules import BAD, Choice, Number, Numbers, Place, Rule, Text, said
from poise.io.scenes.units import Unit
from poise.model.checks import shown


@dataclass(frozen=True)
class Rows(Rule):
    """A list of lists of numbers: points, triangles, heights."""

    count: int | None = None
    of: tuple[str, ...] = ()
    whole: bool = False

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A list of tuples."""
        if not isinstance(node, Items):
            return at.fail(f"must be a list of rows of numbers, found {said(node)}")
        row = Numbers(self.count)
        found = [row.read(item, at.item(k, item), unit) for k, item in enumerate(node.items)]
        if any(one is BAD for one in found):
            return BAD
        if self.whole:
            for k, one in enumerate(found):
                if any(number != int(number) for number in one):
                    return at.item(k, node.items[k]).fail(f"must be whole numbers, found {shown(one)}")
            return [tuple(int(number) for number in one) for one in found]
        return found

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "array", "items": Numbers(self.count).schema()}


@dataclass(frozen=True)
class Pairs(Rule):
    """A pair (lower, upper), or one pair or null for each coordinate."""

    of: tuple[str, ...] = ()
    several: bool = False

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A pair of floats, or a tuple of pairs."""
        if is_unknown(node):
            return BAD
        if self.several and isinstance(node, Items) and any(_is_pair(item) for item in node.items):
            found = [
                None if isinstance(item, Leaf) and item.value is None else self._pair(item, at.item(k, item), unit)
                for k, item in enumerate(node.items)
            ]
            return BAD if any(pair is BAD for pair in found) else tuple(found)
        return self._pair(node, at, unit)

    def _pair(self, node: Node, at: Place, unit: Unit | None) -> Any:
        pair = Numbers(2, each=Number(infinite=True), meaning="(lower, upper)").read(node, at, unit)
        if pair is not BAD and pair[0] > pair[1]:
            low, high = plain(node)
            return at.fail(f"lower must not exceed upper, found [{low:g}, {high:g}], did you mean [{high:g}, {low:g}]?")
        return pair

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        pair = Numbers(2).schema()
        each = {"type": "array", "items": {"anyOf": [pair, {"type": "null"}]}}
        return {"anyOf": [pair, each]} if self.several else pair


def _is_pair(node: Node) -> bool:
    return isinstance(node, Items) or (isinstance(node, Leaf) and node.value is None)


@dataclass(frozen=True)
class Names(Rule):
    """A list of names, one of `words` where these are given."""

    words: tuple[str, ...] = ()
    count: int | None = None

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A tuple of str."""
        if not isinstance(node, Items):
            return at.fail(f"must be a list of names, found {said(node)}")
        if self.count is not None and len(node.items) != self.count:
            return at.fail(f"must be {self.count} names, found {len(node.items)}: {said(node)}")
        rule = Choice(self.words, f"one of {', '.join(self.words)}") if self.words else Text("a name")
        found = [rule.read(item, at.item(k, item)) for k, item in enumerate(node.items)]
        return BAD if any(name is BAD for name in found) else tuple(found)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        size = {} if self.count is None else {"minItems": self.count, "maxItems": self.count}
        return {"type": "array", "items": {"enum": list(self.words)} if self.words else {"type": "string"}, **size}


@dataclass(frozen=True)
class ByName(Rule):
    """Values by name, each as another rule has it."""

    each: Rule
    of: tuple[str, ...] = ()
    or_one: bool = False
    numbers: bool = False
    """Whether the names are numbers, such as times."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A dict."""
        if self.or_one and not isinstance(node, Fields):
            return self.each.read(node, at, unit)
        if not isinstance(node, Fields):
            return at.fail(f"must be values by name, found {said(node)}")
        found = {}
        for key, part in node.fields.items():
            name: Any = key
            if self.numbers:
                place = at.field(node, key)
                name = Number().read(Leaf(place.file, place.line, plain_value(key)), place)
            found[name] = self.each.read(part, at.field(node, key), unit)
        return BAD if any(value is BAD or name is BAD for name, value in found.items()) else found

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        by_name = {"type": "object", "additionalProperties": self.each.schema()}
        return {"anyOf": [self.each.schema(), by_name]} if self.or_one else by_name


@dataclass(frozen=True)
class Raw(Rule):
    """Anything, kept as it is; lists become tuples."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """Plain data."""
        return _frozen(plain(node))

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {}


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {name: _frozen(part) for name, part in value.items()}
    return value
