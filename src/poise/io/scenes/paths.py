"""Fields by path: `ground.friction`, `hero.track.strength`, `gravity.z`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from poise.io.scenes.nodes import Fields, Items, Leaf, Node, as_node
from poise.io.scenes.parts import OfKind, One, Part, Several
from poise.io.scenes.rules import Axis, Numbers, Rotation, Rule
from poise.io.scenes.rules_many import ByName, Pairs, Raw, Rows
from poise.io.scenes.schema import SceneFile
from poise.io.scenes.schema_shapes import MaterialPart
from poise.io.scenes.units import split
from poise.model.errors import Problem, did_you_mean

FIRST = ("characters", "bodies")
"""Lists whose names count before those of others."""
_LETTERS = {"x": 0, "y": 1, "z": 2}
_BEFORE = {
    "parameters": "parameters are set by their names alone",
    "include": "what a file includes cannot be set",
    "poise": "the format of a file cannot be set",
}


def is_path(name: str) -> bool:
    """Whether a name is that of a field, and not of a parameter.

    >>> is_path("ground.friction"), is_path("dt_ms"), is_path("friction")
    (True, True, False)
    """
    return "." in name or _stem(name, SceneFile.rules()) is not None


def with_fields(root: Fields, given: Mapping[str, Any], problems: list[Problem]) -> Fields:
    """A scene with fields as they are given, by their paths.

    A path begins with a field of the scene, or with the name of a character, a body or another thing of a list. Things
    in lists go by their names or numbers, numbers in vectors by x, y, z or their places from 0. Where a part lacks a
    field that just one of the parts within has, that one is meant: `hero.strength` is `hero.track.strength`.
    """
    for path, value in given.items():
        try:
            made = _Setter(path, value).root(root)
        except _Wrong as wrong:
            problems.append(Problem(str(wrong), root.file, None, f"set: {path}"))
        else:
            root = made
    return root


class _Wrong(ValueError):
    """What is wrong with a path."""


class _Setter:
    """Sets one value in a tree without changing the original: changed nodes are copied."""

    def __init__(self, path: str, value: Any) -> None:
        self.place = f"set: {path}"
        self.value = value
        self.words = path.split(".")
        if not all(word.strip() for word in self.words):
            raise _Wrong('must be names with dots between them, such as "ground.friction"')

    def root(self, root: Fields) -> Fields:
        """The whole scene with the value in it."""
        first = self.words[0]
        if first in _BEFORE:
            raise _Wrong(_BEFORE[first])
        if _stem(first, SceneFile.rules()) is not None:
            return self.field(SceneFile, root, self.words)
        return self.field(SceneFile, root, self.listed(root))

    def listed(self, root: Fields) -> list[str]:
        """The path of something that is called by its name alone."""
        known = _named(root)
        for count in range(len(self.words), 0, -1):
            name = ".".join(self.words[:count])
            hits = [where for where in known.get(name, []) if where[0] in FIRST] or known.get(name, [])
            if len(hits) > 1:
                listed = ", ".join(f'"{".".join(where)}"' for where in hits)
                raise _Wrong(f'"{name}" is ambiguous, it may be {listed}')
            if hits and count == len(self.words):
                raise _Wrong(f'"{name}" is more than a value; name a field of it, such as "{name}.position"')
            if hits:
                return [*hits[0], *self.words[count:]]
        hint = did_you_mean(self.words[0], [*known, *SceneFile.rules()])
        raise _Wrong(f'the scene has nothing called "{self.words[0]}"{hint}')

    def leaf(self) -> Node:
        """The value itself; errors are reported with its path."""
        return as_node(self.value, self.place, None)

    def put(self, rule: Rule, node: Node | None, words: list[str]) -> Node:
        """A value that a rule reads, with the value in it."""
        if not words:
            return self.leaf()
        if isinstance(rule, One | OfKind):
            fields = _opened(rule, node, self.place)
            return self.field(_kind(rule, fields), fields, words)
        if isinstance(rule, Several):
            return self.item(rule, node, words)
        if isinstance(rule, ByName):
            return self.by_name(rule.each, node, words)
        if isinstance(rule, Raw):
            return self.item(rule, node, words) if isinstance(node, Items) else self.by_name(rule, node, words)
        if isinstance(rule, Numbers | Pairs | Axis | Rotation | Rows):
            return self.number(node, words)
        raise _Wrong(f'it has no parts, found "{".".join(words)}" after it')

    def field(self, kind: type[Part], fields: Fields, words: list[str]) -> Fields:
        """Fields with another value for one of them."""
        rules, key, rest = kind.rules(), words[0], words[1:]
        stem = _stem(key, rules)
        if stem is None:
            return self.field(kind, fields, [*_deeper(kind, fields, key), *words])
        written = next((name for name in fields.fields if _stem(name, rules) == stem), None)
        if not rest:
            return self.changed(fields, written, key, self.leaf())
        old = None if written is None else fields.fields[written]
        if written not in (None, key) and isinstance(old, Items):
            raise _Wrong(f'the file has it as "{written}"; write {written}.{".".join(rest)}')
        if old is None:
            default = kind.model_fields[stem].get_default()
            old = None if default is None or isinstance(default, Part) else as_node(default, self.place, None)
        return self.changed(fields, written, written or key, self.put(rules[stem], old, rest))

    def changed(self, fields: Fields, old: str | None, key: str, node: Node) -> Fields:
        """The same fields with one replaced."""
        names = {name: part for name, part in fields.fields.items() if name != old}
        # what lies deeper knows its own place
        place = fields.place(key) if isinstance(node, Fields | Items) and key == old else (self.place, None)
        return Fields(fields.file, fields.line, names | {key: node}, fields.lines | {key: place})

    def by_name(self, each: Rule, node: Node | None, words: list[str]) -> Fields:
        """Values by name with another one."""
        if node is not None and not isinstance(node, Fields):
            raise _Wrong(f'it has one value for all, found "{".".join(words)}" after it')
        fields = node or Fields(self.place, None)
        name = next((".".join(words[:k]) for k in range(len(words), 0, -1) if ".".join(words[:k]) in fields.fields), "")
        rest = words[name.count(".") + 1 :] if name else words[1:]
        name = name or words[0]
        return self.changed(fields, name, name, self.put(each, fields.fields.get(name), rest))

    def item(self, rule: Rule, node: Node | None, words: list[str]) -> Items:
        """A list with another value in one of its items."""
        items = node.items if isinstance(node, Items) else []
        by = rule.by if isinstance(rule, Several) else ""
        for count in range(len(words), 0, -1):
            name = ".".join(words[:count])
            hits = [k for k, item in enumerate(items) if name in _names(item, by)]
            if len(hits) > 1:
                raise _Wrong(f'there are {len(hits)} called "{name}"; name it by its number, counted from 0')
            if hits:
                return self.replaced(rule, node, hits[0], words[count:])
        k = _number(words[0], len(items))
        if k is None:
            names = [name for item in items for name in _names(item, by)]
            hint = did_you_mean(words[0], names) if names else f"; there are {len(items)}, counted from 0"
            raise _Wrong(f'there is no "{words[0]}" in the list{hint}')
        return self.replaced(rule, node, k, words[1:])

    def replaced(self, rule: Rule, node: Node | None, k: int, rest: list[str]) -> Items:
        assert isinstance(node, Items)
        items = list(node.items)
        items[k] = self.put(rule.each if isinstance(rule, Several) else rule, items[k], rest)
        return Items(node.file, node.line, items)

    def number(self, node: Node | None, words: list[str]) -> Items:
        """A vector with another number in it."""
        if not isinstance(node, Items):
            raise _Wrong("the file has no numbers there to change one of; write all of them in the file")
        n = len(node.items)
        k = _LETTERS.get(words[0]) if n == 3 else None
        k = _number(words[0], n) if k is None else k
        if k is None:
            letters = "x, y, z or " if n == 3 else ""
            raise _Wrong(f'there is no number "{words[0]}"; there is {letters}0 to {n - 1}')
        return self.replaced(Numbers(), node, k, words[1:])


def _stem(key: str, rules: Iterable[str]) -> str | None:
    """The field that a name stands for, with or without a unit."""
    if key in rules:
        return key
    parts = split(key)
    return parts[0] if parts is not None and parts[0] in rules else None


def _number(word: str, count: int) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 10 and int(word) < count else None


def _names(node: Node, by: str) -> list[str]:
    """What an item of a list may be called."""
    if not isinstance(node, Fields):
        return []
    leaves = [node.fields.get(name) for name in dict.fromkeys(("name", by))]
    return [leaf.value for leaf in leaves if isinstance(leaf, Leaf) and isinstance(leaf.value, str)]


def _named(root: Fields) -> dict[str, list[list[str]]]:
    """Paths of all that has a name."""
    found: dict[str, list[list[str]]] = {}
    for field, rule in SceneFile.rules().items():
        node = root.fields.get(field)
        if field == "ground" and isinstance(node, Fields):
            for name in _names(node, ""):
                found.setdefault(name, []).append(["ground"])
        if isinstance(rule, Several) and isinstance(node, Items):
            for k, item in enumerate(node.items):
                for name in _names(item, rule.by):
                    found.setdefault(name, []).append([field, str(k)])
    return found


def _opened(rule: One | OfKind, node: Node | None, place: str) -> Fields:
    """A part that may be written as a word."""
    if isinstance(node, Fields):
        return node
    short = rule.short if isinstance(rule, One) else "kind"
    if node is None or (isinstance(node, Leaf) and (node.value is None or isinstance(node.value, bool))):
        return Fields(place, None)
    if not short:
        raise _Wrong("what the file has there is no part with fields")
    return Fields(node.file, node.line, {short: node}, {short: (node.file, node.line)})


def _kind(rule: One | OfKind, fields: Fields) -> type[Part]:
    if isinstance(rule, One):
        return rule.kind
    named, kinds = fields.fields.get("kind"), dict(rule.kinds)
    name = named.value if isinstance(named, Leaf) else next((k for f, k in rule.guess if f in fields.fields), None)
    if name not in kinds:
        raise _Wrong(f"the file does not say what kind of {rule.what.removeprefix('a ')} it is")
    return kinds[name]


def _deeper(kind: type[Part], fields: Fields, key: str) -> list[str]:
    """The way to the one part in some fields that has a field itself."""
    ways, known = _inside(kind, fields, key)
    if len(ways) > 1:
        raise _Wrong(f'"{key}" is ambiguous, it may be {" or ".join(".".join([*way, key]) for way in ways)}')
    if ways:
        return ways[0]
    rules = kind.rules()
    hint = did_you_mean(key, [*rules, *known], kind.others)
    absent = [name for name, rule in rules.items() if isinstance(rule, One) and _stem(key, rule.kind.rules())]
    if absent and absent[0] not in fields.fields:
        hint = f'; "{absent[0]}" has one, but the file says nothing of it'
    raise _Wrong(f'{kind.title} has no field "{key}"{hint}')


def _inside(kind: type[Part], fields: Fields, key: str) -> tuple[list[list[str]], list[str]]:
    """Ways to all parts within that have a field, and all the fields that there are within."""
    ways, known = [], []
    for name, rule in kind.rules().items():
        written = fields.fields.get(name)
        # a material may always be added; other parts would change more than one value
        quiet = written is None and isinstance(rule, One) and rule.kind is MaterialPart
        node = written if isinstance(written, Fields) else Fields(None, None)
        if not isinstance(rule, One | OfKind) or not (quiet or isinstance(written, Fields)):
            continue
        part = _kind(rule, node)
        known += list(part.rules())
        if _stem(key, part.rules()) is not None:
            ways.append([name])
        deeper, more = _inside(part, node, key)
        ways += [[name, *way] for way in deeper]
        known += more
    return ways, known
