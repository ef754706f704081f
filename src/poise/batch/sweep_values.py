"""Values of a sweep: lists, ranges, words; every combination of them, or random draws."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from poise.io.scenes.nodes import plain, plain_value, read_nodes
from poise.model.errors import SceneError

MOST = 1_000_000
"""Maximum number of runs of a sweep; more are an error."""
_PIECE = re.compile(r"""("[^"]*"|'[^']*'|[\[\],]|[^"'\[\],]+|.)""", re.DOTALL)


@dataclass(frozen=True)
class Choices:
    """A list of values of a setting."""

    values: tuple[Any, ...]

    def drawn(self, share: float) -> Any:
        """The value at a fraction of the list, in [0, 1)."""
        return self.values[int(share * len(self.values))]


@dataclass(frozen=True)
class Between:
    """Any number between two, for random draws.

    >>> Between(1.0, 3.0).drawn(0.25)
    1.5
    """

    low: float
    high: float

    @property
    def values(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    def drawn(self, share: float) -> float:
        """The number at a fraction of the interval, in [0, 1)."""
        return self.low + share * (self.high - self.low)


Values = Choices | Between


def read_setting(text: str) -> tuple[str, str]:
    """A name and its values, from a word such as ground.friction=0.2,0.5.

    >>> read_setting("ground.friction=0.2,0.5")
    ('ground.friction', '0.2,0.5')
    """
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise SceneError(
            f'must be name=values, such as ground.friction=0.2,0.5 or hero.strength=100:400:7, found "{text}"',
            field="set",
        )
    return name.strip(), values.strip()


def read_values(name: str, given: Any) -> Values:
    """Values of a setting: from text as on the command line, a list or array, or one value.

    >>> read_values("f", "0.2,0.5").values, read_values("f", "1:2:3").values, read_values("f", [1, 2]).values
    ((0.2, 0.5), (1.0, 1.5, 2.0), (1, 2))
    """
    if isinstance(given, Choices | Between):
        return given
    if isinstance(given, str):
        return _from_text(name, given)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    listed = list(given) if isinstance(given, list | tuple | range) else [given]
    return Choices(_checked(name, tuple(_plain(value) for value in listed)))


def _plain(value: Any) -> Any:
    """A value without NumPy, also within lists."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _from_text(name: str, text: str) -> Values:
    words = _words(text)
    parts = [_parts(word) for word in words]
    if len(words) == 1 and any(map(_is_number, parts[0])):
        return _range(name, text, parts[0])
    if any(found and all(map(_is_number, found)) for found in parts):
        what = f'a range stands alone; write all values, or one range, found "{text}"'
        raise SceneError(what, field=f"set: {name}")
    if not all(words):
        raise SceneError(f'a value is missing between commas, found "{text}"', field=f"set: {name}")
    return Choices(_checked(name, tuple(_read(name, word) for word in words)))


def _words(text: str) -> list[str]:
    """Split at commas, except those in quotes and brackets.

    >>> _words("walk, [0,[1,2]],'a,b'")
    ['walk', '[0,[1,2]]', "'a,b'"]
    """
    words, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth = max(0, depth + (piece == "[") - (piece == "]"))
        if piece == "," and not depth:
            words.append("")
        else:
            words[-1] += piece
    return [word.strip() for word in words]


def _parts(word: str) -> list[Any]:
    """Split at colons; empty if there are none, or only in quotes or brackets."""
    if ":" not in word or word[:1] in ("'", '"', "[", "{"):
        return []
    return [plain_value(part) for part in word.split(":")]


def _read(name: str, word: str) -> Any:
    """One value, as in a scene file."""
    try:
        return plain(read_nodes(word))
    except SceneError as error:
        raise SceneError(f'{error.problems[0].message}, found "{word}"', field=f"set: {name}") from None


def _range(name: str, text: str, numbers: Sequence[Any]) -> Values:
    field, right = f"set: {name}", "low:high:points, such as 100:400:7"
    if len(numbers) not in (2, 3) or not all(_is_number(number) and abs(number) < np.inf for number in numbers):
        raise SceneError(f'a range must be {right}, found "{text}"', field=field)
    low, high = float(numbers[0]), float(numbers[1])
    if len(numbers) == 2:
        if not low < high:
            raise SceneError(f'low must be less than high, found "{text}"', field=field)
        return Between(low, high)
    points = numbers[2]
    if points != int(points) or not 1 <= points <= MOST or (points == 1 and low != high):
        raise SceneError(f'points must be a whole number from 2 on, both ends counted, found "{text}"', field=field)
    if points > 1 and low == high:
        raise SceneError(f'points must be 1 where low is high, found "{text}"', field=field)
    return Choices(tuple(np.linspace(low, high, int(points)).tolist()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _checked(name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    field = f"set: {name}"
    if not values:
        raise SceneError("there are no values to go through", field=field)
    seen = set()
    for value in values:
        if not isinstance(value, str | int | float | bool | list | tuple):
            raise SceneError(
                f"values are numbers, words, true and false, or lists of them, found {value!r}", field=field
            )
        if isinstance(value, float) and value != value:
            raise SceneError("must be a number, found nan", field=field)
        # 1 and 1.0 are the same run, true and 1 are not
        key = json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
        if key in seen:
            raise SceneError(f"{value!r} is given twice; leave one out", field=field)
        seen.add(key)
    return values


def combinations(settings: Mapping[str, Values]) -> list[dict[str, Any]]:
    """Values of every run: all combinations, the last setting varies fastest.

    >>> combinations({"a": Choices((1, 2)), "b": Choices(("x", "y"))})[1]
    {'a': 1, 'b': 'y'}
    """
    for name, values in settings.items():
        if isinstance(values, Between):
            what = f"{values.low:g}:{values.high:g} needs a number of points, such as {values.low:g}:{values.high:g}:5"
            raise SceneError(f"{what}; or ask for random draws", field=f"set: {name}")
    count = int(np.prod([float(len(values.values)) for values in settings.values()]))
    if count > MOST:
        raise SceneError(f"that makes {count} runs; the maximum is {MOST}", field="set")
    names = list(settings)
    return [dict(zip(names, row, strict=True)) for row in product(*(settings[name].values for name in names))]


def draws(settings: Mapping[str, Values], count: int, seed: int) -> list[dict[str, Any]]:
    """Values of `count` random runs; the first ones do not depend on `count`.

    >>> draws({"a": Between(0.0, 1.0)}, 2, 7)[0] == draws({"a": Between(0.0, 1.0)}, 9, 7)[0]
    True
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
        raise SceneError(f"must be a whole number from 1 to {MOST}, found {count!r}", field="random")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SceneError(f"must be a whole number from 0 on, found {seed!r}", field="seed")
    shares = np.random.default_rng(seed).random((count, len(settings)))
    rows: Iterable[list[float]] = shares.tolist()
    return [{name: values.drawn(u) for (name, values), u in zip(settings.items(), row, strict=True)} for row in rows]
