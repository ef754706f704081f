"""Parameters: `$friction` and `${2 * friction}` stand for numbers and words that a file names and callers may set."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from poise.io.scenes.nodes import (
    CLOSED,
    MOST_REPEATED,
    OPENED,
    Fields,
    Items,
    Leaf,
    Node,
    as_node,
    count_parts,
    moved,
    plain,
    read_nodes,
)
from poise.model.checks import shown
from poise.model.errors import Problem, SceneError, did_you_mean

_NAME = re.compile(r"[A-Za-z_]\w*")
_USE = re.compile(rf"\$\$|\$({_NAME.pattern})|{OPENED}([^{OPENED}{CLOSED}]*){CLOSED}")
_LONGEST = 1000
"""Letters of a sum."""
_OPERATORS: dict[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    **{name: getattr(math, name) for name in ("sqrt", "sin", "cos", "tan", "radians", "degrees")},
    "min": min,
    "max": max,
    "abs": abs,
}


def given_parameter(text: str) -> tuple[str, Any]:
    """A name, of a parameter or with dots that of a field, and its value from a word such as friction=0.3.

    >>> given_parameter("friction=0.3"), given_parameter("side=[0, 0, 1]"), given_parameter("ground.friction=0.3")
    (('friction', 0.3), ('side', [0, 0, 1]), ('ground.friction', 0.3))
    """
    name, equals, value = text.partition("=")
    if not equals or not (_NAME.fullmatch(name.strip()) or "." in name):
        raise SceneError(f'must be name=value, such as friction=0.3, found "{text}"', field="set")
    return name.strip(), None if not value.strip() else plain(read_nodes(value))


class Parameters:
    """Values by name, and their way into a tree."""

    def __init__(self, values: Mapping[str, Node], problems: list[Problem]) -> None:
        self.problems = problems
        self.values: dict[str, Node] = {}
        self.sizes: dict[str, int] = {}
        """How many parts each of the values has."""
        self.repeated = 0
        for name, node in values.items():
            self.values[name] = self.fill(node)
            self.sizes[name] = count_parts(self.values[name])

    def fill(self, node: Node) -> Node:
        """The same tree with values in the place of names."""
        if isinstance(node, Items):
            return Items(node.file, node.line, [self.fill(item) for item in node.items])
        if isinstance(node, Fields):
            filled = {name: self.fill(part) for name, part in node.fields.items()}
            return Fields(node.file, node.line, filled, node.lines)
        if not isinstance(node, Leaf) or not isinstance(node.value, str):
            return node
        return self._fill_text(node)

    def _fill_text(self, node: Leaf) -> Node:
        text: str = node.value
        self._count(node)
        if "${" in text:
            self._fail(node, 'a "${" that is not closed in its line; write ${name}')
            return Leaf(node.file, node.line, None)
        whole = _USE.fullmatch(text.strip())
        try:
            if whole and whole[0] != "$$":
                return moved(self._value(whole), node.file, node.line)
            done = _USE.sub(lambda use: "$" if use[0] == "$$" else str(plain(self._value(use))), text)
        except _Wrong as wrong:
            self._fail(node, str(wrong))
            return Leaf(node.file, node.line, _UNKNOWN)
        return Leaf(node.file, node.line, done, node.quoted or done != text)

    def _count(self, node: Leaf) -> None:
        """Count the parts that the parameters in a text expand to, before the expansion."""
        uses = (use[1] or use[2] for use in _USE.finditer(node.value) if use[0] != "$$")
        self.repeated += sum(self.sizes.get(name, 1) - 1 for use in uses for name in _NAME.findall(use))
        if self.repeated > MOST_REPEATED:
            what = f"parameters stand for more than {MOST_REPEATED} parts; do they name each other?"
            raise SceneError(what, file=node.file, line=node.line)

    def _value(self, use: re.Match[str]) -> Node:
        name = use[1] or use[2].strip()
        if _NAME.fullmatch(name):
            return self._named(name)
        return Leaf(None, None, self._computed(name))

    def _named(self, name: str) -> Node:
        if name not in self.values:
            if name == "pi":
                return Leaf(None, None, math.pi)
            hint = did_you_mean(name, self.values) or ("" if self.values else "; this file has none")
            raise _Wrong(f'there is no parameter "{name}"{hint}; text with a $ is written with $$')
        return self.values[name]

    def _computed(self, text: str) -> float:
        if len(text) > _LONGEST:
            raise _Wrong(f'"{text[:60]}..." cannot be computed: it has more than {_LONGEST} letters')
        try:
            return self._number(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, RecursionError, MemoryError):
            raise _Wrong(
                f'"{text}" cannot be computed; there are + - * / **, brackets, numbers and parameters'
            ) from None
        except (ArithmeticError, ValueError, TypeError) as error:
            raise _Wrong(f'"{text}" cannot be computed: {error}') from None

    def _number(self, tree: ast.AST) -> float:
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float) and not isinstance(tree.value, bool):
            return float(tree.value)
        if isinstance(tree, ast.Name):
            value = plain(self._named(tree.id))
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _Wrong(f'parameter "{tree.id}" must be a number to compute with, found {shown(value)}')
            return float(value)
        if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
            return _OPERATORS[type(tree.op)](self._number(tree.left), self._number(tree.right))
        if isinstance(tree, ast.UnaryOp) and type(tree.op) in _OPERATORS:
            return _OPERATORS[type(tree.op)](self._number(tree.operand))
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.keywords:
            if tree.func.id not in _FUNCTIONS:
                raise _Wrong(f'there is no function "{tree.func.id}"{did_you_mean(tree.func.id, _FUNCTIONS)}')
            return float(_FUNCTIONS[tree.func.id](*map(self._number, tree.args)))
        raise _Wrong(f'"{ast.unparse(tree)}" cannot be computed; there are + - * / **, brackets, numbers, parameters')

    def _fail(self, node: Node, message: str) -> None:
        self.problems.append(Problem(message, node.file, node.line))


class _Wrong(ValueError):
    """What is wrong with one use of a parameter."""


class _Unknown:
    """Placeholder for an unknown value that was reported already."""

    def __repr__(self) -> str:
        return "an unknown parameter"


_UNKNOWN = _Unknown()


def is_unknown(node: Node) -> bool:
    """Whether a value is the placeholder of a reported error."""
    return isinstance(node, Leaf) and node.value is _UNKNOWN


def with_parameters(root: Fields, given: Mapping[str, Any] | None, problems: list[Problem]) -> Fields:
    """A scene with its parameters filled in, those that are `given` instead of its own."""
    listed = root.fields.get("parameters", Fields(root.file, root.line))
    own: dict[str, Node] = {}
    if isinstance(listed, Fields):
        for name, node in listed.fields.items():
            if not _NAME.fullmatch(name):
                file, line = listed.place(name)
                problems.append(Problem("a parameter is a word of letters, digits and _", file, line, name))
            own[name] = node
    elif not (isinstance(listed, Leaf) and listed.value is None):
        file, line = root.place("parameters")
        problems.append(Problem(f"must be values by name, found {shown(plain(listed))}", file, line, "parameters"))
    for name, value in (given or {}).items():
        if name not in own:
            hint = did_you_mean(name, own) or ("" if own else "; it has none")
            problems.append(Problem(f'the scene has no parameter "{name}"{hint}', root.file, None, "set"))
            continue
        default = own[name]
        node = as_node(value, default.file, default.line)
        if _is_number(default) and not _is_number(node):
            what = f"must be a number, found {shown(value)}"
            problems.append(Problem(what, default.file, default.line, f"set: {name}"))
            continue
        own[name] = node
    rest = {name: node for name, node in root.fields.items() if name != "parameters"}
    filled = Parameters(own, problems).fill(Fields(root.file, root.line, rest, root.lines))
    assert isinstance(filled, Fields)
    return filled


def _is_number(node: Node) -> bool:
    return isinstance(node, Leaf) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
