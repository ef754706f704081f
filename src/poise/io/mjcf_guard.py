"""Checks of an MJCF file before MuJoCo reads it, as MuJoCo does not limit the resources that a file can use.

MuJoCo's parser runs in this process and cannot be interrupted. A short file can request 10⁹ copies of a body, block on
a pipe, or overflow the stack with files that include each other. Such files are refused here, with the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from poise.io.encodings import is_wide
from poise.io.mjcf_counts import Counter
from poise.io.xml_lines import Element, parse_xml
from poise.model.errors import SceneError
from poise.model.regular_file import check_regular, read_regular

DEEPEST = 50
"""Files that include one another in a chain."""
_FOLDERS = ("assetdir", "meshdir", "texturedir")


def check_mjcf(source: str | PathLike[str], file: Path | None, assets: Mapping[str, bytes] | None) -> None:
    """Raise SceneError, with file and line, where MuJoCo should not read a model."""
    guard = _Guard(file, assets or {})
    content = str(source).lstrip("\ufeff \t\r\n").encode("utf-8", "replace") if file is None else _read(file)
    root = guard.parsed(content, None if file is None else str(file), [])
    guard.check_files(root)
    guard.counter.check(root, 1)


def without_comments(text: str) -> str:
    """XML without its comments.

    >>> without_comments("<a><!-- b --></a>")
    '<a></a>'
    """
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start + 4)
        at = len(text) if end < 0 else end + 3
    return "".join([*parts, text[at:]])


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise SceneError(f"cannot read MJCF: {what}", file=str(path)) from None


class _Guard:
    """The files of one model, each read once."""

    def __init__(self, file: Path | None, assets: Mapping[str, bytes]) -> None:
        self.main = Path.cwd() if file is None else file.resolve().parent
        self.assets = assets
        self.done = set() if file is None else {file.resolve()}
        self.first = [] if file is None else [file.resolve()]
        self.models: dict[Path, Element] = {}
        """Files of models that are attached."""
        self.counter = Counter()

    def parsed(self, content: bytes, file: str | None, above: list[Path]) -> Element:
        """The tree of a file; included files are inserted under their `<include>`."""
        text = _decoded(content, file).removeprefix("\ufeff").lstrip()
        if "\x00" in text:
            line = text[: text.index("\x00")].count("\n") + 1
            raise SceneError("found a zero byte, at which MuJoCo would stop to read", file=file, line=line)
        root = parse_xml(text, file)
        for element in root.walk():
            self.counter.files[id(element)] = file
        for element in list(root.walk()):
            if element.name in ("include", "model") and element.attributes.get("file"):
                self._include(element, file, above)
        return root

    def _model(self, element: Element, path: Path, content: bytes | None, file: str | None, above: list[Path]) -> None:
        """The file of a model that may be attached."""
        chain = [*self.first, *above]
        if path in chain:
            names = " → ".join(place.name for place in (*chain[chain.index(path) :], path))
            what = f"<model>: models attach one another in a circle: {names}"
            raise SceneError(what, file=file, line=element.line)
        if path not in self.models:
            content = _read(path) if content is None else content
            self.models[path] = self.parsed(content, str(path), [*above, path])
        self.counter.models[id(element)] = self.models[path]

    def _include(self, element: Element, file: str | None, above: list[Path]) -> None:
        name = element.attributes["file"]
        if len(above) >= DEEPEST:
            what = f"<include>: more than {DEEPEST} files include one another in a chain"
            raise SceneError(what, file=file, line=element.line)
        found: list[tuple[Path, bytes | None]] = [(Path(name), self.assets[name])] if name in self.assets else []
        found += [
            (path, None) for path in self._candidates(element, [] if file is None else [Path(file).resolve().parent])
        ]
        for path, content in found:
            if content is None and not (
                _is_there(path, element, file) and path.suffix.lower() not in (".mjb", ".urdf")
            ):
                continue
            if element.name == "model":
                self._model(element, path, content, file, above)
            elif path not in self.done:
                self.done.add(path)
                content = _read(path) if content is None else content
                element.children += self.parsed(content, str(path), [*above, path]).children

    def _candidates(self, element: Element, folders: list[Path]) -> list[Path]:
        """Where MuJoCo may look for a file."""
        names = {value for name, value in element.attributes.items() if name.startswith("file") and value}
        paths = [
            folder / part for folder in (self.main, *folders) for name in names for part in (name, Path(name).name)
        ]
        return [path.resolve() for path in paths if "\0" not in str(path)]

    def check_files(self, root: Element) -> None:
        """Everything that a model names is a file on a disk, or missing."""
        folders = [self.main / value for e in root.walk() for name in _FOLDERS if (value := e.attributes.get(name))]
        for element in root.walk():
            for path in self._candidates(element, folders):
                _is_there(path, element, self.counter.files.get(id(element)))


def _is_there(path: Path, element: Element, file: str | None) -> bool:
    """Whether there is such a file; raises SceneError for a pipe or a device."""
    try:
        check_regular(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError, ValueError):
        return False
    except OSError as error:
        what = f'<{element.tag}> "{path}": {error.strerror}'
        raise SceneError(what, file=file, line=element.line) from None
    return True


def _decoded(content: bytes, file: str | None) -> str:
    if is_wide(content):
        raise SceneError("it is UTF-16, which MuJoCo does not read; save it as UTF-8", file=file, line=1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise SceneError(what, file=file, line=line) from None
