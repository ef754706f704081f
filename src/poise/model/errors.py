"""Errors of scenes, files and names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST_PROBLEMS = 100
"""Maximum number of problems that one error lists."""
_LONGEST = 4000
"""Maximum characters of a problem; longer ones are shortened in the middle."""
_MOST_NAMES, _LONGEST_NAME = 1000, 100
"""Maximum number of names, and of characters of a name, that a hint compares: the time grows with the product."""


@dataclass(frozen=True)
class Problem:
    """One problem, and its place.

    >>> print(Problem("must be more than 0, found -1", file="arm.xml", line=7, field="radius"))
    arm.xml:7: radius: must be more than 0, found -1
    """

    message: str
    file: str | None = None
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        text = ": ".join(part for part in (place, self.field, self.message) if part)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


class Problems(list[Problem]):
    """Problems in the order in which they are found. Raises SceneError with the first 100 when there are more.

    >>> found = Problems()
    >>> for line in range(1, 200):
    ...     found.append(Problem("must be a number", line=line))
    Traceback (most recent call last):
    poise.model.errors.SceneError: line 1: must be a number...
    """

    def append(self, problem: Problem) -> None:
        """Add one."""
        if len(self) >= MOST_PROBLEMS:
            more = Problem(f"only the first {MOST_PROBLEMS} problems are listed", self[0].file)
            raise SceneError.of([*self[:MOST_PROBLEMS], more])
        super().append(problem)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add several."""
        for problem in problems:
            self.append(problem)

    def __iadd__(self, problems: Iterable[Problem]) -> Problems:  # type: ignore[override, misc]
        self.extend(problems)
        return self


class SceneError(ValueError):
    """An invalid scene, file or name; `problems` lists all problems that were found.

    >>> str(SceneError("must be positive, found -1", file="arm.yaml", line=7, field="radius"))
    'arm.yaml:7: radius: must be positive, found -1'
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        problems: Sequence[Problem] | None = None,
    ) -> None:
        self.problems = list(problems) if problems else [Problem(message, file, line, field)]
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> SceneError:
        """One error that carries several problems."""
        return cls("", problems=problems)

    def __reduce__(self) -> tuple[object, ...]:
        return (SceneError.of, (self.problems,))

    @property
    def file(self) -> str | None:
        """File of the first problem."""
        return self.problems[0].file

    @property
    def line(self) -> int | None:
        """Line of the first problem."""
        return self.problems[0].line

    @property
    def field(self) -> str | None:
        """Field of the first problem."""
        return self.problems[0].field


def did_you_mean(name: object, candidates: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """A hint with the nearest candidate, or a list of all when they are few; else empty.

    `elsewhere` maps names of other programs to candidates.

    >>> did_you_mean("hinje", ["hinge", "slider"])
    ', did you mean "hinge"?'
    >>> did_you_mean("revolute", ["hinge", "slider"], {"revolute": "hinge"})
    ', did you mean "hinge"?'
    """
    names = list(dict.fromkeys(candidates))
    text = str(name)
    if len(text) > _LONGEST_NAME:
        return ""
    if elsewhere and text.casefold() in elsewhere:
        return f', did you mean "{elsewhere[text.casefold()]}"?'
    compared = [candidate for candidate in names[:_MOST_NAMES] if len(candidate) <= _LONGEST_NAME]
    folded = {candidate.casefold(): candidate for candidate in reversed(compared)}
    near = difflib.get_close_matches(text.casefold(), list(folded), n=1, cutoff=0.6)
    if near:
        return f', did you mean "{folded[near[0]]}"?'
    if 0 < len(names) <= 12:
        return "; there is " + ", ".join(f'"{candidate}"' for candidate in names)
    return ""


def last_part(name: str) -> str:
    """The part of a name after the last slash.

    >>> last_part("hero/hand_r")
    'hand_r'
    """
    return name.rpartition("/")[2]


def matches(name: str, names: Collection[str]) -> list[str]:
    """Full names that match `name`: itself, else those that end in it after a slash."""
    return [name] if name in names else [full for full in names if full.endswith("/" + name)]


def resolve_name(what: str, name: object, names: Collection[str], *, file: str | None = None) -> str:
    """The full name that matches `name`: itself, or the only one that ends in `/name`.

    >>> resolve_name("body", "hand_r", ["hero/hand_l", "hero/hand_r"])
    'hero/hand_r'
    """
    if not isinstance(name, str):
        raise SceneError(f"the name of a {what} must be text, found {name!r}", file=file)
    found = matches(name, names)
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f'"{full}"' for full in found)
        raise SceneError(f'{what} "{name}" is ambiguous, it may be {listed}', file=file)
    # a misspelt short name is nearer to the last part of a full one than to the full one
    by_part: dict[str, str] = {}
    for full in names:
        by_part.setdefault(last_part(full), full)
    hint = did_you_mean(name, by_part)
    near = hint.removeprefix(', did you mean "').removesuffix('"?') if "did you mean" in hint else ""
    hint = f', did you mean "{by_part[near]}"?' if near else did_you_mean(name, names)
    raise SceneError(f'there is no {what} "{name}"{hint}', file=file)
