"""Parses the text of a file to a tree with the file and line of every node."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from poise.model.errors import Problem, Problems, SceneError

MOST_REPEATED = 300_000
"""Parts that a file may have besides those that are written in it: more repetitions are an accident, or an attack."""
LETTERS_OF_A_PART = 100
"""Letters that count as one part."""
DEEPEST = 100
"""Brackets within brackets."""
OPENED, CLOSED = "\ue000", "\ue001"
"""Stand for ${ and }, which YAML would take for a mapping."""

_LONGEST_WORD = 400
"""Letters of the longest word that is looked at; the largest double has 309 digits."""
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?\d{1,18}")
_FRACTION = re.compile(r"([-+]?\d+(?:\.\d*)?)\s*/\s*(\d+(?:\.\d*)?)")
_WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
    ".inf": float("inf"),
    "+.inf": float("inf"),
    "-.inf": float("-inf"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    ".nan": float("nan"),
    "nan": float("nan"),
}
_BRACKET = re.compile(r"[\[\]{}]")
_KINDS = ("str", "int", "float", "bool", "null", "timestamp", "seq", "map", "merge", "value")
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS)
_HINTS = {
    "mapping values are not allowed": 'a ":" where none can be: indent alike, and put text with ": " in quotes',
    "could not find expected ':'": 'expected "name: value"; a ":" or a closing quote may be missing',
    "expected ',' or ']'": 'a "[" that is not closed, or a comma that is missing',
    "expected ',' or '}'": 'a "{" that is not closed, or a comma that is missing',
    "expected <block end>": "what belongs together must be indented alike",
    "did not find expected '-' indicator": "what belongs together must be indented alike",
    "did not find expected key": "what belongs together must be indented alike",
    "found unexpected end of stream": "a quote that is not closed",
    "found undefined alias": "what follows * must have been named with & before",
    "expected a single document": 'a second "---": a file is one scene',
    "found another document": 'a second "---": a file is one scene',
}


@dataclass(eq=False)
class Node:
    """A part of a file."""

    file: str | None
    line: int | None


@dataclass(eq=False)
class Leaf(Node):
    """A number, text, true, false or nothing."""

    value: Any
    quoted: bool = False


@dataclass(eq=False)
class Items(Node):
    """A list."""

    items: list[Node] = field(default_factory=list)


@dataclass(eq=False)
class Fields(Node):
    """Values by name."""

    fields: dict[str, Node] = field(default_factory=dict)
    lines: dict[str, tuple[str | None, int | None]] = field(default_factory=dict)
    """File and line of each name."""

    def place(self, name: str) -> tuple[str | None, int | None]:
        """File and line of a field, or of the whole where it has no such field."""
        return self.lines.get(name, (self.file, self.line))


def moved(node: Node, file: str | None, line: int | None) -> Node:
    """The same node as if it had been written elsewhere."""
    return replace(node, file=file, line=line)


def plain(node: Node) -> Any:
    """A node as plain lists and dicts.

    >>> plain(read_nodes("{a: [1, 2e-3]}"))
    {'a': [1, 0.002]}
    """
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    if isinstance(node, Fields):
        return {name: plain(value) for name, value in node.fields.items()}
    return node.value if isinstance(node, Leaf) else None


def count_parts(node: Node) -> int:
    """How many parts a tree has; long text counts as several.

    >>> count_parts(read_nodes("{a: [1, 2]}"))
    4
    """
    count, waiting = 0, [node]
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, Items):
            waiting += part.items
        elif isinstance(part, Fields):
            waiting += part.fields.values()
        elif isinstance(part, Leaf) and isinstance(part.value, str):
            count += len(part.value) // LETTERS_OF_A_PART
    return count


def as_node(value: Any, file: str | None = None, line: int | None = None) -> Node:
    """Plain lists and dicts as a node."""
    if isinstance(value, dict):
        fields = {str(name): as_node(part, file, line) for name, part in value.items()}
        return Fields(file, line, fields, dict.fromkeys(fields, (file, line)))
    if isinstance(value, list | tuple):
        return Items(file, line, [as_node(part, file, line) for part in value])
    return Leaf(file, line, value.item() if hasattr(value, "item") else value, quoted=isinstance(value, str))


def plain_value(text: str) -> Any:
    """The value of an unquoted word: a number, also 1e-3 and 1/240, true, false, null; otherwise the text.

    >>> [plain_value(word) for word in ("1e-3", "1/4", "010", "true", "yes", "~")]
    [0.001, 0.25, 10, True, 'yes', None]
    """
    word = text.strip()
    if len(word) > _LONGEST_WORD:
        return float("inf") if word.isascii() and word.isdigit() else text
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _WHOLE.fullmatch(word):
        return int(word)
    if _NUMBER.fullmatch(word):
        return float(word)
    parts = _FRACTION.fullmatch(word)
    if parts and float(parts[2]) != 0.0:
        return float(parts[1]) / float(parts[2])
    return text


def read_nodes(text: str, file: str | None = None) -> Node:
    """The tree of a text. Raises SceneError with every name that is given twice, or with what is no YAML."""
    _check_depth(text, file)
    guarded = re.sub(r"\$\{([^{}\n]*)\}", rf"{OPENED}\1{CLOSED}", text)
    try:
        root = yaml.compose(guarded, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _refusal(error, text, file) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else None
        raise SceneError(
            f"found a character that text cannot have, {error.character!r:.20}", file=file, line=line
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SceneError(f"it is no YAML: {' '.join(str(error).split())[:100]}", file=file) from None
    if root is None:
        raise SceneError("the file is empty; a scene has bodies, characters or a ground", file=file)
    _check_size(root, file, {})
    reader = _Reader(file)
    node = reader.read(root, ())
    if reader.problems:
        raise SceneError.of(reader.problems)
    return node


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser without type resolution, which `plain_value` does."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        """The tag of a part that has none in the file."""
        return "tag:yaml.org,2002:str"


def _check_depth(text: str, file: str | None) -> None:
    """Nesting that would exhaust the parser."""
    depth = 0
    for line, row in enumerate(text.splitlines(), 1):
        deepest = (len(row) - len(row.lstrip(" -?"))) // 2
        for bracket in _BRACKET.findall(row):
            depth = max(0, depth + (1 if bracket in "[{" else -1))
            deepest = max(deepest, depth)
        if deepest > DEEPEST:
            raise SceneError(f"more than {DEEPEST} lists within lists: is a bracket not closed?", file=file, line=line)


def _check_size(node: Any, file: str | None, sizes: dict[int, int]) -> int:
    """How many parts there are in a node, repeated ones counted each time though each is looked at once."""
    known = sizes.get(id(node))
    if known is not None:
        return known
    sizes[id(node)] = 1  # what holds itself is refused later
    parts = () if isinstance(node, yaml.ScalarNode) else node.value
    size = 1 + sum(_check_size(part[1] if isinstance(part, tuple) else part, file, sizes) for part in parts)
    if size > MOST_REPEATED + 2 * len(sizes):
        line = node.start_mark.line + 1
        what = f"{size} parts or more, repeated ones counted each time; at most {MOST_REPEATED} may be repeated"
        raise SceneError(what, file=file, line=line)
    sizes[id(node)] = size
    return size


def _refusal(error: yaml.MarkedYAMLError, text: str, file: str | None) -> SceneError:
    """The parser's error as an understandable message."""
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    rows = text.splitlines()
    row = rows[line - 1] if line is not None and 0 < line <= len(rows) else ""
    said = f"{error.problem or ''} {error.context or ''}"
    if "\t" in row[: len(row) - len(row.lstrip())] or "'\\t'" in said:
        return SceneError("found a tab; scenes are indented with spaces", file=file, line=line)
    hint = next((words for known, words in _HINTS.items() if known in said), None)
    return SceneError(f"it is no YAML: {hint or error.problem or error}", file=file, line=line)


class _Reader:
    """Turns PyYAML's nodes into ours."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.problems: list[Problem] = Problems()

    def read(self, node: Any, above: tuple[int, ...]) -> Node:
        """One node and all below it."""
        line = node.start_mark.line + 1
        if id(node) in above:
            raise SceneError("a part that holds itself: * names what it is in", file=self.file, line=line)
        if len(above) > 2 * DEEPEST:
            raise SceneError(f"more than {2 * DEEPEST} parts within parts, by way of *", file=self.file, line=line)
        above = (*above, id(node))
        if isinstance(node, yaml.ScalarNode):
            return self._leaf(node, line)
        self._check_tag(node, line)
        if isinstance(node, yaml.SequenceNode):
            return Items(self.file, line, [self.read(item, above) for item in node.value])
        return self._fields(node, line, above)

    def _leaf(self, node: Any, line: int) -> Leaf:
        self._check_tag(node, line)
        if node.style in ("'", '"', "|", ">"):
            return Leaf(self.file, line, node.value, quoted=True)
        return Leaf(self.file, line, plain_value(node.value))

    def _check_tag(self, node: Any, line: int) -> None:
        if node.tag not in _TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self.problems.append(Problem(f"scenes have no tags, found {tag}; leave it out", self.file, line))

    def _fields(self, node: Any, line: int, above: tuple[int, ...]) -> Fields:
        found = Fields(self.file, line)
        merged: list[Fields] = []
        for key, value in node.value:
            at = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(Problem("a name must be text, found a list or mapping", self.file, at))
                continue
            name, part = key.value, self.read(value, above)
            if name == "<<" and not key.style:
                merged += [
                    one for one in (part.items if isinstance(part, Items) else [part]) if isinstance(one, Fields)
                ]
            elif name in found.fields:
                first = found.lines[name][1]
                self.problems.append(
                    Problem(f"is given twice, first in line {first}; leave one out", self.file, at, name)
                )
            else:
                found.fields[name], found.lines[name] = part, (self.file, at)
        for other in merged:
            for name, part in other.fields.items():
                if name not in found.fields:
                    found.fields[name], found.lines[name] = part, other.lines[name]
        return found


Say = Callable[[Node, str], None]
