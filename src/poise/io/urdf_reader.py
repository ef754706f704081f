"""Common part of the URDF reader: problems with their lines, numbers, poses, file names."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

from poise.io.sealed import is_sealed
from poise.io.xml_lines import Element
from poise.model.errors import Problem, Problems, SceneError
from poise.model.shapes import Quaternion, Vector

#: items that a sentence lists before it only counts
_MOST_LISTED = 12
_SCHEMES = ("package://", "model://")


class UrdfReader:
    """Collects what is wrong and what is ignored while a file is read."""

    def __init__(self, file: Path | None, package_dirs: list[Path]) -> None:
        self.file = file
        self.name = None if file is None else str(file)
        self.package_dirs = package_dirs
        self.problems: list[Problem] = Problems()
        self._ignored: dict[str, list[str]] = {}
        self._complete: set[str] = set()

    def problem(self, element: Element, message: str) -> None:
        """Remember something that is wrong."""
        self.problems.append(Problem(message, self.name, element.line))

    def ignore(self, fate: str, item: str, *, every: bool = False) -> None:
        """Remember something that is not kept as it is; items of one fate are listed together, `every` one or some."""
        self._ignored.setdefault(fate, []).append(item)
        if every:
            self._complete.add(fate)

    def unsupported(self) -> list[str]:
        """One sentence for each fate."""
        sentences = []
        for fate, found in self._ignored.items():
            counts = Counter(found)
            items = [item if count == 1 else f"{item} ({count} times)" for item, count in counts.items()]
            sentences.append(f"{fate}: {', '.join(items) if fate in self._complete else listed(items)}.")
        return sentences

    def raise_problems(self) -> None:
        """Raise everything that is wrong, if anything is, in the order of the file."""
        if self.problems:
            raise SceneError.of(sorted(self.problems, key=lambda problem: problem.line or 0))

    def text(self, element: Element, attribute: str, what: str) -> str | None:
        """An attribute that must be there."""
        value = element.attributes.get(attribute, "").strip()
        if not value:
            self.problem(element, f'{what}: <{element.tag}> needs the attribute "{attribute}"')
            return None
        return value

    def numbers(
        self, element: Element | None, attribute: str, count: int, default: tuple[float, ...] | None, what: str
    ) -> tuple[float, ...]:
        """Numbers in an attribute; `default` where it is missing, a problem where there is no default."""
        given = None if element is None else element.attributes.get(attribute)
        zeros = (0.0,) * count
        if given is None:
            if default is None and element is not None:
                self.problem(element, f'{what}: <{element.tag}> needs the attribute "{attribute}"')
            return zeros if default is None else default
        assert element is not None
        words = given.split()
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            values = ()
        needs = "a number" if count == 1 else f"{count} numbers"
        if len(values) != count or any(math.isnan(value) for value in values):
            self.problem(element, f'{what}: {attribute} of <{element.tag}> must be {needs}, found "{given}"')
            return zeros
        return values

    def number(self, element: Element | None, attribute: str, default: float | None, what: str) -> float:
        """One finite number in an attribute."""
        (value,) = self.numbers(element, attribute, 1, None if default is None else (default,), what)
        return self._finite(element, attribute, (value,), what)[0]

    def vector(self, element: Element | None, attribute: str, default: Vector | None, what: str) -> Vector:
        """Three finite numbers in an attribute."""
        x, y, z = self._finite(element, attribute, self.numbers(element, attribute, 3, default, what), what)
        return (x, y, z)

    def _finite(
        self, element: Element | None, attribute: str, values: tuple[float, ...], what: str
    ) -> tuple[float, ...]:
        if all(math.isfinite(value) for value in values) or element is None:
            return values
        found = element.attributes[attribute]
        self.problem(element, f'{what}: {attribute} of <{element.tag}> must be finite, found "{found}"')
        return (0.0,) * len(values)

    def pose(self, owner: Element, what: str) -> tuple[Vector, Quaternion]:
        """Position and orientation of the `<origin>` in an element; identity where there is none."""
        origin = owner.first("origin")
        position = self.vector(origin, "xyz", (0.0, 0.0, 0.0), what)
        return position, quat_from_rpy(*self.vector(origin, "rpy", (0.0, 0.0, 0.0), what))

    def find(self, uri: str) -> Path | None:
        """The file that a mesh names, None where there is none."""
        return next((path for path in self._candidates(uri) if not is_sealed() and _is_file(path)), None)

    def _candidates(self, uri: str) -> list[Path]:
        here = self.file.resolve().parent if self.file is not None else Path.cwd()
        scheme = next((scheme for scheme in _SCHEMES if uri.startswith(scheme)), None)
        if scheme is None:
            plain = unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
            return [here / plain]
        package, _, rest = uri.removeprefix(scheme).partition("/")
        ros = [Path(folder) for folder in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if folder]
        folders = [*self.package_dirs, here, *here.parents, *ros]
        paths = []
        for folder in folders:
            paths += [folder / package / rest, folder / "share" / package / rest]
            if folder.name == package:
                paths.append(folder / rest)
        return paths


def listed(items: list[str]) -> str:
    """Items, only counted where they are many.

    >>> listed(["a", "b"])
    'a, b'
    """
    more = len(items) - _MOST_LISTED
    return ", ".join(items[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # a name that is too long, or no name at all
        return False


def quat_from_rpy(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Rotation by roll about x, then pitch about y, then yaw about z, all about fixed axes; rad.

    >>> quat_from_rpy(0.0, 0.0, 0.0)
    (1.0, 0.0, 0.0, 0.0)
    """
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )
