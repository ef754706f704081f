"""A small XML tree with the line of every element, for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from poise.model.errors import SceneError


@dataclass
class Element:
    """One element: its name as written (prefixes included), attributes, children and line."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    line: int = 0

    @property
    def name(self) -> str:
        """The name without a prefix."""
        return self.tag.rpartition(":")[2]

    def all(self, name: str) -> list[Element]:
        """Children of that name."""
        return [child for child in self.children if child.name == name]

    def first(self, name: str) -> Element | None:
        """First child of that name, None if there is none."""
        return next((child for child in self.children if child.name == name), None)

    def walk(self) -> Iterator[Element]:
        """The element and everything in it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))


def parse_xml(content: bytes | str, file: str | None = None) -> Element:
    """The root of an XML document. Raises SceneError with the line where it is broken."""
    builder = _Builder(file)
    builder.parse(content)
    assert builder.root is not None
    return builder.root


def root_tag(content: bytes, file: str | None = None) -> str:
    """Name of the root element, found without reading on."""
    builder = _Builder(file, only_root=True)
    builder.parse(content)
    return builder.root.name if builder.root else ""


class _RootFoundError(Exception):
    """Stops the parser once the root is known."""


class _Builder:
    """Builds the tree from expat's events."""

    def __init__(self, file: str | None, *, only_root: bool = False) -> None:
        self.file = file
        self.only_root = only_root
        self.root: Element | None = None
        self.open: list[Element] = []
        self.parser = expat.ParserCreate()

    def parse(self, content: bytes | str) -> None:
        # what text says of its encoding means nothing once it is decoded
        self.parser = expat.ParserCreate("utf-8" if isinstance(content, str) else None)
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity
        try:
            self.parser.Parse(content.encode("utf-8") if isinstance(content, str) else content, True)
        except _RootFoundError:
            return
        except expat.ExpatError as error:
            message = f"malformed XML: {expat.ErrorString(error.code)} (column {error.offset + 1})"
            raise SceneError(message, file=self.file, line=error.lineno) from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, line=self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        if self.only_root:
            raise _RootFoundError

    def _end(self, _tag: str) -> None:
        self.open.pop()

    def _entity(self, *_declaration: object) -> None:
        # entities can blow up to any size and name any file
        message = "XML entities are not read; write the text out instead"
        raise SceneError(message, file=self.file, line=self.parser.CurrentLineNumber)
