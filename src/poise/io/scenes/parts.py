"""Fields of fields: a base for the models of a scene file, and the walk that reads a tree by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr

from poise.io.scenes.nodes import Fields, Items, Leaf, Node
from poise.io.scenes.parameters import is_unknown
from poise.io.scenes.rules import BAD, Place, Rule, said
from poise.io.scenes.units import UNITS, Unit, split, suffixes
from poise.model.errors import did_you_mean

P = TypeVar("P", bound="Part")


class Part(BaseModel):
    """A part of a scene file: fields, each with its rule."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    others: ClassVar[Mapping[str, str]] = {}
    """Other names of a field, which errors recognize."""
    title: ClassVar[str] = ""
    """What it is called in a sentence."""
    _node: Any = PrivateAttr(None)
    _given: Any = PrivateAttr(None)
    """Names of the fields as they are written, by those of the model."""
    _sound: bool = PrivateAttr(True)

    @property
    def node(self) -> Fields:
        """Where it was read."""
        found: Fields = self._node
        return found

    @property
    def sound(self) -> bool:
        """Whether nothing was wrong with it."""
        return self._sound

    def has(self, name: str) -> bool:
        """Whether a field was given, and is more than nothing."""
        return name in self._given and getattr(self, name) is not None

    def written(self, name: str) -> str:
        """How the name of a field is written, with its unit."""
        found: str = self._given.get(name, name)
        return found

    @classmethod
    @cache
    def rules(cls) -> dict[str, Rule]:
        """The rule of each field."""
        found = {}
        for name, field in cls.model_fields.items():
            found[name] = next(rule for rule in field.metadata if isinstance(rule, Rule))
        return found

    @classmethod
    @cache
    def needed(cls) -> tuple[str, ...]:
        """Fields that must be given."""
        return tuple(name for name, field in cls.model_fields.items() if field.is_required())

    @classmethod
    @cache
    def defaults(cls) -> dict[str, Any]:
        """The value of each field that is not given; None for those that must be."""
        return {name: None if field.is_required() else field.default for name, field in cls.model_fields.items()}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core)
        own = handler.resolve_ref_schema(schema)
        properties = own.setdefault("properties", {})
        required = own.pop("required", [])
        needed = [{"required": [name]} for name in required if not cls.rules()[name].of]
        patterns = {}
        for name, rule in cls.rules().items():
            words = suffixes(rule.of)
            if words:
                patterns[f"^{name}_({'|'.join(words)})$"] = properties[name]
            if name in required and words:
                needed.append({"anyOf": [{"required": [form]} for form in (name, *(f"{name}_{w}" for w in words))]})
        if patterns:
            own["patternProperties"] = patterns
        if needed:
            own["allOf"] = needed
        return schema


def read_part(kind: type[P], node: Fields, at: Place) -> P:
    """A part from its fields. All errors are reported; wrong fields have their defaults."""
    before = len(at.problems)
    rules = kind.rules()
    given: dict[str, str] = {}
    values: dict[str, Any] = {}
    for key, value in node.fields.items():
        name, unit = _field(kind, rules, key, node, at)
        if name is None:
            continue
        if name in given:
            at.field(node, key).fail(f'is given twice, as "{given[name]}" too; leave one out')
            continue
        given[name] = key
        if isinstance(value, Leaf) and value.value is None and not kind.model_fields[name].is_required():
            continue
        found = rules[name].read(value, at.field(node, key), unit)
        if found is not BAD:
            values[name] = found
    for name in kind.needed():
        if name not in given:
            at.fail(f'{kind.title or "this"} needs "{name}"{_near_missing(name, node, rules)}')
    part = kind.model_construct(**(kind.defaults() | values))
    part._node, part._given, part._sound = node, given, len(at.problems) == before
    return part


def _near_missing(name: str, node: Fields, rules: Mapping[str, Rule]) -> str:
    """A hint at the missing field, unless a misspelt name is reported anyway."""
    forms = [f"{name}_{suffix}" for suffix in suffixes(rules[name].of)]
    return f" (or {', '.join(forms[:4])})" if forms and not node.fields.keys() & set(forms) else ""


def _field(
    kind: type[Part], rules: Mapping[str, Rule], key: str, node: Fields, at: Place
) -> tuple[str | None, Unit | None]:
    """The field and unit that a name stands for."""
    if key in rules:
        return key, None
    place, parts = at.field(node, key).named(at.label), split(key)
    if parts is not None and parts[0] in rules:
        stem, suffix = parts
        unit = UNITS[suffix]
        if unit.of in rules[stem].of:
            return stem, unit
        allowed = suffixes(rules[stem].of)
        right = f"it takes {', '.join('_' + word for word in allowed)}" if allowed else "it takes no unit"
        at.field(node, key).fail(f'"{stem}" is not in {unit.name} ({unit.of}); {right}')
        return None, None
    known = [*rules, *(f"{name}_{suffix}" for name, rule in rules.items() for suffix in suffixes(rule.of) if parts)]
    hint = did_you_mean(key, known, kind.others)
    if not hint:
        hint = f"; there is {', '.join(rules)}"
    place.fail(f'{kind.title or "this"} has no field "{key}"{hint}')
    return None, None


# ---- rules that hold parts -------------------------------------------------------------------------------------------


class Held(Rule):
    """A rule whose value is made of parts: pydantic knows them by the annotation."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler(source)

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core)
        return schema


@dataclass(frozen=True)
class One(Held):
    """One part; a single word or number stands for the field `short` of it, true for one without fields."""

    kind: type[Part]
    short: str = ""
    flag: bool = False

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A part, or None for false."""
        if is_unknown(node):
            return BAD
        if self.flag and isinstance(node, Leaf) and isinstance(node.value, bool):
            return read_part(self.kind, Fields(node.file, node.line), at) if node.value else None
        if self.short and not isinstance(node, Fields):
            node = Fields(node.file, node.line, {self.short: node}, {self.short: (at.file, at.line)})
        if not isinstance(node, Fields):
            return at.fail(f"must be fields of {self.kind.title}, found {said(node)}")
        return read_part(self.kind, node, at)


@dataclass(frozen=True)
class OfKind(Held):
    """One part of the kind that its field `kind` names; a single word stands for that."""

    kinds: tuple[tuple[str, type[Part]], ...]
    what: str
    elsewhere: tuple[tuple[str, str], ...] = ()
    word: bool = False
    """Whether a word alone will do."""
    guess: tuple[tuple[str, str], ...] = ()
    """Fields that determine the kind if it is not named."""

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A part."""
        if is_unknown(node):
            return BAD
        if self.word and isinstance(node, Leaf) and node.value is not None:
            node = Fields(node.file, node.line, {"kind": node}, {"kind": (at.file, at.line)})
        kinds = dict(self.kinds)
        if not isinstance(node, Fields):
            return at.fail(f"must be fields of {self.what}, such as kind: {next(iter(kinds))}, found {said(node)}")
        named = node.fields.get("kind")
        if named is None:
            name = next((kind for field, kind in self.guess if field in node.fields), "")
            if not name:
                return at.fail(f'{self.what} needs "kind": {", ".join(kinds)}')
        elif isinstance(named, Leaf) and isinstance(named.value, str) and named.value in kinds:
            name = named.value
        elif is_unknown(named):
            return BAD
        else:
            value = named.value if isinstance(named, Leaf) else None
            hint = did_you_mean(value, kinds, dict(self.elsewhere))
            hint = hint if "did you mean" in hint else f"; there is {', '.join(kinds)}"
            return at.field(node, "kind").fail(f"{said(named)} is not a kind of {_bare(self.what)}{hint}")
        return read_part(kinds[name], node, at)


def _bare(words: str) -> str:
    return words.removeprefix("a ").removeprefix("an ")


@dataclass(frozen=True)
class Several(Held):
    """A list of parts. What is said of one begins with `label` and its name."""

    each: Rule
    label: str
    what: str
    by: str = "name"

    def read(self, node: Node, at: Place, unit: Unit | None = None) -> Any:
        """A list of those that could be read."""
        if isinstance(node, Leaf) and node.value is None:
            return []
        if not isinstance(node, Items):
            hint = ""
            if isinstance(node, Fields):
                hint = '; begin each with "- "'
            return at.fail(f"must be a list of {self.what}, found {said(node)}{hint}")
        outside = at.label.rpartition(": ")[0]
        found = []
        for k, item in enumerate(node.items):
            place = at.item(k, item)
            name = item.fields.get(self.by) if isinstance(item, Fields) else None
            if isinstance(name, Leaf) and isinstance(name.value, str):
                label = f'{self.label} "{name.value}"'
                place = place.named(f"{outside}: {label}" if outside else label)
            found.append(self.each.read(item, place))
        return [part for part in found if part is not BAD]
