"""What compiled code depends on: the files that a module's imports lead to, and a hash of them.

Numba freezes what a kernel reaches: constants, and functions and classes that it uses. Each of them is

    a global of a function's own module   made by the text of that module, or of one that it imports;
    closed over, or a default value       told apart by `cachefile.fingerprint`, which names the files of the functions
                                          and classes among them: the search starts there too, not at the kernel alone;
    the class of a value in a view        which may come from where the kernel does not look: the search starts there.

So compiled code depends on the files that imports lead to from there, and on nothing else in Poise. Imports count
wherever they stand: at the top, in a function, in a branch that may never run; but for what stands under `if
TYPE_CHECKING:`, which never runs. Where the text does not tell what is imported, more is counted rather than less:

    y from p           the module p.y if there is one, and p itself unless its text cannot mean another y;
    a package as such  all that lies in it, and so for all (*) from p: any module in it may be its attribute;
    poise as such      all of it, and so where a module looks others up by name.

The kernel package always counts, as a whole: it is the compiler. A package that is only passed through on the way to a
module counts with the text of its `__init__`, but not with what that imports: this runs beside, and the module does not
see it. One rule is left to those who write modules: none alters the names of another while it is being imported.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# the brackets keep these from finding themselves: this file, too, should be read the quick way
_WORD = re.compile(rb"\b[i]mport\b")
_START = re.compile(rb"\s*(?:from|[i]mport)\b")
_NO_CODE = re.compile(rb"\s*(?:#|>>>)")
_BY_NAME = re.compile(rb"[i]mport(?:lib|_module|__)")
_TABLE = re.compile(rb"sys[.]modules")
_FOR_TYPES = re.compile(rb"^if TYPE_CHECKING:[ ]*\r?\n(?:(?:[ \t].*)?\r?\n)*", re.MULTILINE)
_DOCSTRING = re.compile(rb'\s*""".*?"""', re.DOTALL)


class Changed(Exception):
    """A file is no longer what this process read."""


def imports(text: bytes) -> list[ast.Import | ast.ImportFrom]:
    r"""All imports in the text of a module, wherever they stand; perhaps also some that a string quotes.

    To parse a whole module takes milliseconds. So these statements are cut out and parsed alone; where that could go
    wrong the whole is parsed after all.

    >>> found = imports(b"import os\ndef f():\n    from a import (b,\n        c)")
    >>> [alias.name for statement in found for alias in statement.names]
    ['os', 'b', 'c']
    >>> len(imports(b"if TYPE_CHECKING:\n    import os\n\n    import io\n\nimport re\n"))
    1
    """
    text = _FOR_TYPES.sub(b"", text)
    cut = _cut_out(text)
    if cut is not None:
        with contextlib.suppress(SyntaxError, ValueError):
            alone = ast.parse(cut).body
            found = [node for node in alone if isinstance(node, ast.Import | ast.ImportFrom)]
            if len(found) == len(alone):
                return found
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]


def _cut_out(text: bytes) -> bytes | None:
    """The lines that hold imports; None where the keyword is found elsewhere than in a statement of its own.

    What ends otherwise than it seems here is no Python when it is parsed alone, and neither is most prose.
    """
    found, lines = [], text.split(b"\n")
    for number, line in enumerate(lines):
        if b"mport" not in line or not _WORD.search(line) or _NO_CODE.match(line):
            continue
        if not _START.match(line) or (number and lines[number - 1].rstrip().endswith(b"\\")):
            return None
        found.append(line.strip())
        while b"(" in found[-1] and b")" not in lines[number] and number + 1 < len(lines):
            number += 1
            found[-1] += b"\n" + lines[number]
    return b"\n".join(found)


@dataclass
class _File:
    """What was read of one file, and where its imports lead once that has been asked."""

    text: bytes
    digest: str
    leads_to: set[str] | None = None


class Sources:
    """The Python files of a package at the time when this was made. Files are named by their path in the package."""

    def __init__(self, root: Path, always: str = "kernel") -> None:
        """`root` is the folder of the package, `always` the package in it that everything depends on."""
        self.root, self.always = root, always
        self._first = self._present = self._look()
        self._files: dict[str, _File] = {}

    def digest(self, homes: Iterable[Path]) -> str | None:
        """Hash of all that code from some files can depend on; None if that was changed since this was made."""
        try:
            files = sorted(self.closure(homes))
            parts = [f"{file} {self._read(file).digest}\n" for file in files]
        except (Changed, OSError, SyntaxError, ValueError):
            return None
        if any(self._present.get(file) != self._first.get(file) for file in files):
            return None
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def closure(self, homes: Iterable[Path]) -> set[str]:
        """The files that code from some files can depend on, these among them."""
        self._look_again()
        todo = {*self._below(self.always), *(home.relative_to(self.root).as_posix() for home in homes)}
        followed: set[str] = set()
        while todo:
            file = todo.pop()
            followed.add(file)
            todo |= self._leads_to(file) - followed
        passed = {str(folder / "__init__.py") for file in followed for folder in PurePosixPath(file).parents}
        return followed | (passed & self._present.keys())

    # ---- files

    def _look(self) -> dict[str, tuple[int, int]]:
        """Every Python file: when it was written, and its length."""
        found, folders, above = {}, [str(self.root)], len(str(self.root)) + 1
        for folder in folders:
            for item in os.scandir(folder):
                if item.name.endswith(".py"):
                    with contextlib.suppress(OSError):  # it is just being replaced
                        found[item.path[above:].replace(os.sep, "/")] = _written(item.stat())
                elif "." not in item.name and item.name != "__pycache__" and item.is_dir():
                    folders.append(item.path)
        return found

    def _look_again(self) -> None:
        now = self._look()
        if now.keys() != self._present.keys():  # a name may now mean another file
            for file in self._files.values():
                file.leads_to = None
        self._present = now

    def _below(self, folder: str) -> set[str]:
        """Every file in a folder."""
        return {file for file in self._present if not folder or file.startswith(f"{folder}/")}

    def _read(self, file: str) -> _File:
        """A file as it was when this was made."""
        if file not in self._files:
            path = self.root / file
            text = path.read_bytes()
            if _written(path.stat()) != self._first.get(file):
                raise Changed(file)
            self._files[file] = _File(text, hashlib.sha256(text).hexdigest())
        return self._files[file]

    # ---- imports

    def _leads_to(self, file: str) -> set[str]:
        """Files that a file imports."""
        found = self._read(file)
        if found.leads_to is None:
            if _BY_NAME.search(found.text) or _TABLE.search(found.text):
                found.leads_to = set(self._present)
            else:
                found.leads_to = set().union(*(self._targets(file, node) for node in imports(found.text)))
        return found.leads_to

    def _targets(self, file: str, node: ast.Import | ast.ImportFrom) -> set[str]:
        """Files that one statement of a file imports."""
        if isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if node.level:
                parts = [*PurePosixPath(file).parts[: -node.level], *parts]
            elif parts.pop(0) != self.root.name:
                return set()
            return self._members("/".join(parts), [alias.name for alias in node.names])
        found: set[str] = set()
        for alias in node.names:
            package, *parts = alias.name.split(".")
            if package == self.root.name:
                named = parts and alias.asname
                found |= self._members("/".join(parts[:-1]), parts[-1:]) if named else self._present.keys()
        return found

    def _members(self, home: str, names: list[str]) -> set[str]:
        """Files behind names that are imported from a module or package."""
        found = {f"{home}.py"} & self._present.keys()
        inside = f"{home}/" if home else ""
        init = f"{inside}__init__.py"
        for name in names if init in self._present or not found else ():
            if name == "*":
                found |= self._below(home)
                continue
            module = {f"{inside}{name}.py"} & self._present.keys() | self._below(f"{inside}{name}")
            found |= module
            if init in self._present and (not module or self._may_bind(init, name)):
                found.add(init)
        return found

    def _may_bind(self, init: str, name: str) -> bool:
        """Whether a package might mean something else than its module by a name."""
        text = self._read(init).text
        docstring = _DOCSTRING.match(text)
        mention = re.compile(rf"\b({name}|__getattr__)\b".encode())
        return mention.search(text, docstring.end() if docstring else 0) is not None


def _written(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size
