"""A scene file and all that it includes, as one tree."""

from __future__ import annotations

from pathlib import Path

from poise.io.encodings import decoded_wide, is_wide
from poise.io.load import guess_content, read_file
from poise.io.scenes.nodes import Fields, Items, Leaf, Node, plain, read_nodes
from poise.io.sealed import check_unsealed
from poise.model.checks import shown
from poise.model.errors import Problem, Problems, SceneError

DEEPEST = 100
"""Files that include one another in a chain."""
READS = "Poise reads scenes from YAML, MJCF (<mujoco>) and URDF (<robot>) files"


class Gatherer:
    """Reads a file and those that it includes; each once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = Problems()
        self.done: set[Path] = set()

    def read(self, path: Path, above: tuple[Path, ...] = (), content: bytes | None = None) -> Fields:
        """The tree of one file, merged with the files that it includes."""
        here = path.resolve()
        self.done.add(here)
        if content is None:
            content = read_file(path, "load", READS)[1]
        root = read_nodes(decoded(content, str(path)), str(path))
        if not isinstance(root, Fields):
            found = shown(plain(root))
            raise SceneError(
                f"a scene is made of fields such as bodies: or characters:, found {found}",
                file=str(path),
                line=root.line,
            )
        wanted = root.fields.pop("include", None)
        for node in self._listed(wanted):
            self._add(root, node, path.parent, (*above, here))
        return root

    def _listed(self, node: Node | None) -> list[Leaf]:
        nodes = [] if node is None else node.items if isinstance(node, Items) else [node]
        sound = []
        for one in nodes:
            if isinstance(one, Leaf) and isinstance(one.value, str) and one.value:
                sound.append(one)
            else:
                what = f"must be the name of a file, or a list of names, found {shown(plain(one))}"
                self.problems.append(Problem(what, one.file, one.line, "include"))
        return sound

    def _add(self, root: Fields, node: Leaf, folder: Path, above: tuple[Path, ...]) -> None:
        path = folder / node.value
        try:
            check_unsealed(path)
        except SceneError as error:
            self.problems.append(Problem(str(error), node.file, node.line, "include"))
            return
        here = path.resolve()
        if here in above:
            chain = [file.name for file in (*above[above.index(here) :], here)]
            what = f"files include each other in a circle: {' → '.join(chain)}; leave one out"
            self.problems.append(Problem(what, node.file, node.line, "include"))
            return
        if here in self.done:
            return
        if len(above) >= DEEPEST:
            what = f"more than {DEEPEST} files include one another in a chain"
            raise SceneError(what, file=node.file, line=node.line, field="include")
        try:
            under(root, self.read(path, above))
        except SceneError as error:
            own = [problem for problem in error.problems if problem.line is None]
            self.problems += [problem for problem in error.problems if problem.line is not None]
            for problem in own:
                text = f'"{node.value}": {problem.message}'
                self.problems.append(Problem(text, node.file, node.line, "include"))


def under(root: Fields, other: Fields) -> None:
    """Lay an included tree under another: lists go on, parameters are defaults, all else counts where it is missing."""
    for name, theirs in other.fields.items():
        mine = root.fields.get(name)
        if mine is None:
            root.fields[name], root.lines[name] = theirs, other.lines[name]
        elif isinstance(mine, Items) and isinstance(theirs, Items) and name not in ("gravity", "record"):
            root.fields[name] = Items(mine.file, mine.line, [*theirs.items, *mine.items])
        elif name == "parameters" and isinstance(mine, Fields) and isinstance(theirs, Fields):
            both = Fields(mine.file, mine.line, theirs.fields | mine.fields, theirs.lines | mine.lines)
            root.fields[name] = both


def decoded(content: bytes, file: str) -> str:
    """The text of a file."""
    if is_wide(content):
        return decoded_wide(content, file)
    bad = b"\x00" in content or not guess_content(content).startswith(("it is text", "the file is empty"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        if b"\x00" not in content[:1024] and guess_content(content).startswith("it is text"):
            what = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
            raise SceneError(what, file=file, line=line) from None
        bad = True
    if bad:
        raise SceneError(f"{guess_content(content)}. {READS}", file=file)
    return text
