"""Dependencies of compiled code: the transitive imports of its modules, and a hash of them.

Numba freezes what a kernel refers to: constants, functions and classes. Each of them is

    a global of a function's own module   defined by the text of that module, or of one that it imports;
    in a closure, or a default value      identified by `cachefile.fingerprint`, which names the files of the functions
                                          and classes among them: the search starts at these files too;
    the class of a value in a view        may be beyond the imports of the kernel: the search starts at its file too.

So compiled code depends on the transitive imports of these files, and on nothing else in Poise. Imports count at the
top, in functions, and in branches that may never run, but not under `if TYPE_CHECKING:`, which never runs. Where the
text does not determine what is imported, the search includes more rather than less:

    y from p           the module p.y if there is one, and p itself unless its text cannot define another y;
    a package as such  all files in it, and so for all (*) from p: any module in it may be its attribute;
    poise as such      all of it, and so where a module looks others up by name.

The whole kernel package always counts: it is the compiler. A parent package of an imported module counts with the text
of its `__init__`, but not with the imports of that text, which the module does not use. Modules must follow one rule:
none may alter the names of another while it is being imported.
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

# the brackets prevent these patterns from matching their own source, so that this file, too, is parsed the fast way
_WORD = re.compile(rb"\b[i]mport\b")
_START = re.compile(rb"\s*(?:from|[i]mport)\b")
_NO_CODE = re.compile(rb"\s*(?:#|>>>)")
_BY_NAME = re.compile(rb"[i]mport(?:lib|_module|__)")
_TABLE = re.compile(rb"sys[.]modules")
_FOR_TYPES = re.compile(rb"^if TYPE_CHECKING:[ ]*\r?\n(?:(?:[ \t].*)?\r?\n)*", re.MULTILINE)
_DOCSTRING = re.compile(rb'\s*""".*?"""', re.DOTALL)


class Changed(Exception):
    """A file has changed since this process read it."""


def imports(text: bytes) -> list[ast.Import | ast.ImportFrom]:
    r"""All imports in the text of a module, at any place; perhaps also some that a string quotes.

    Parsing a whole module takes milliseconds. So these statements are cut out and parsed alone; where that could fail
    the whole module is parsed.

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
    """The lines with imports; None if the keyword also occurs outside a statement of its own.

    A statement whose end is misjudged here is not valid Python when it is parsed alone, and neither is most prose.
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
    """Content of one file, and the files of its imports once they have been resolved."""

    text: bytes
    digest: str
    leads_to: set[str] | None = None


class Sources:
    """Snapshot of the Python files of a package. Files are named by their path in the package."""

    def __init__(self, root: Path, always: str = "kernel") -> None:
        """`root` is the folder of the package, `always` the package in it that everything depends on."""
        self.root, self.always = root, always
        self._first = self._present = self._look()
        self._files: dict[str, _File] = {}

    def digest(self, homes: Iterable[Path]) -> str | None:
        """Hash of all that code from some files can depend on; None if any of it has changed since the snapshot."""
        try:
            files = sorted(self.closure(homes))
            parts = [f"{file} {self._read(file).digest}\n" for file in files]
        except (Changed, OSError, SyntaxError, ValueError):
            return None
        if any(self._present.get(file) != self._first.get(file) for file in files):
            return None
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def closure(self, homes: Iterable[Path]) -> set[str]:
        """The files that code from some files can depend on, including these."""
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
        """Modification time and length of every Python file."""
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
        if now.keys() != self._present.keys():  # a name may now refer to another file
            for file in self._files.values():
                file.leads_to = None
        self._present = now

    def _below(self, folder: str) -> set[str]:
        """Every file in a folder."""
        return {file for file in self._present if not folder or file.startswith(f"{folder}/")}

    def _read(self, file: str) -> _File:
        """A file as it was at the time of the snapshot."""
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
        """Whether a name of a package may be something else than its module."""
        text = self._read(init).text
        docstring = _DOCSTRING.match(text)
        mention = re.compile(rf"\b({name}|__getattr__)\b".encode())
        return mention.search(text, docstring.end() if docstring else 0) is not None


def _written(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size
