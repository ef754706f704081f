"""Text with damage that keeps most of its structure: numbers, words and blocks that are others, missing or many."""

from __future__ import annotations

import re

import numpy as np

from damaged_files import damaged_bytes

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_QUOTED = re.compile(r'"[^"<>]*"')
_ATTRIBUTE = re.compile(r"\s[\w:]+=(?=\")")
_EMPTY = re.compile(r"<\w[^<>]*/>")
_SIGN = re.compile(r"[][(){}<>:,\"'/=$&*#-]")
NUMBERS = (
    *("0", "-0", "-1", "1", "2", "0.5", "-3.5", "1e-3", "1e9", "1e300", "-1e300", "1e308", "1e-308", "1e-320", "1e999"),
    *("nan", "inf", "-inf", ".nan", ".inf", "1e", "1.2.3", "0x10", "1_000", "1,5", "1/3", "1/0", "007", "٣", "１", "½"),
    *("1000000000", "2147483647", "2147483648", "-2147483649", "9223372036854775808", "1" + "0" * 60, "true", "x", ""),
)
WORDS = (
    "",
    " ",
    "true",
    "null",
    "nan",
    "a",
    "é",
    "🤖",
    "x" * 300,
    "a/b",
    "../..",
    "world",
    "<<",
    "-",
    "a b",
    "\u202e",
    "None",
)
LETTERS = (
    "\t",
    "\x0b",
    "\x85",
    "\u2028",
    "\ufeff",
    "\r",
    "&",
    "&amp;",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "{",
    "}",
    "[",
    "]",
    '"',
)


def damaged_text(text: str, rng: np.random.Generator) -> bytes:
    """The bytes of a text after one to three changes, which in three of four files leave brackets and tags in order."""
    gentle = _IN_XML if text.lstrip().startswith("<") else _IN_TEXT
    changes = gentle if rng.random() < 0.75 else (*gentle, *_HARSH)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        text = changes[int(rng.integers(0, len(changes)))](text, rng)
    if changes is gentle:
        return text.encode("utf-8", "replace")[: 1 << 20]
    content = text.encode("utf-8", "replace")
    if rng.random() < 0.1 and len(content) > 16:
        content = damaged_bytes(content, rng)
    elif rng.random() < 0.02:
        content = text.encode(str(rng.choice(["utf-16", "utf-16-le", "latin-1", "utf-8-sig"])), "replace")
    return content[: 1 << 20]


def _pick(options: object, rng: np.random.Generator) -> str:
    chosen: str = options[int(rng.integers(0, len(options)))]  # type: ignore[index, arg-type]
    return chosen


def _replaced(text: str, pattern: re.Pattern[str], rng: np.random.Generator, other: str) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    one = found[int(rng.integers(0, len(found)))]
    return text[: one.start()] + other + text[one.end() :]


def _number(text: str, rng: np.random.Generator) -> str:
    many = rng.random() < 0.03
    return _replaced(text, _NUMBER, rng, _pick(("9" * 5000, "1" * 20_000 + "x"), rng) if many else _pick(NUMBERS, rng))


def _word(text: str, rng: np.random.Generator) -> str:
    own = _WORD.findall(text)
    return _replaced(text, _WORD, rng, _pick(own, rng) if own and rng.random() < 0.6 else _pick(WORDS, rng))


def _sign(text: str, rng: np.random.Generator) -> str:
    return _replaced(text, _SIGN, rng, _pick(("", *LETTERS, "::", ",,"), rng))


def _letter(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(0, len(text) + 1))
    return text[:at] + _pick(LETTERS, rng) * int(rng.choice([1, 1, 1, 3, 200])) + text[at:]


def _lines(text: str, rng: np.random.Generator) -> str:
    """A block of lines taken out, moved or repeated."""
    lines = text.split("\n")
    start = int(rng.integers(0, len(lines)))
    end = min(len(lines), start + int(rng.choice([1, 1, 1, 2, 5])))
    block = lines[start:end]
    match int(rng.integers(0, 3)):
        case 0:
            del lines[start:end]
        case 1:
            del lines[start:end]
            to = int(rng.integers(0, len(lines) + 1))
            lines[to:to] = block
        case 2:
            lines[end:end] = block * int(rng.choice([1, 1, 2, 5, 100]))
    return "\n".join(lines)


def _piece(text: str, rng: np.random.Generator) -> str:
    """A piece taken out, or put elsewhere too."""
    at = int(rng.integers(0, len(text) + 1))
    piece = text[at : at + int(rng.integers(1, 60))]
    if rng.random() < 0.4:
        return text[:at] + text[at + len(piece) :]
    to = int(rng.integers(0, len(text) + 1))
    return text[:to] + piece * int(rng.choice([1, 1, 2, 50])) + text[to:]


def _cut(text: str, rng: np.random.Generator) -> str:
    return text[: int(rng.integers(0, len(text) + 1))]


def _value(text: str, rng: np.random.Generator) -> str:
    """A value in quotes that is another one of the text, or a word."""
    own = [word[1:-1] for word in _QUOTED.findall(text)]
    other = _pick(own, rng) if own and rng.random() < 0.6 else _pick(WORDS, rng).replace("<", "&lt;")
    return _replaced(text, _QUOTED, rng, f'"{other}"')


def _name(text: str, rng: np.random.Generator) -> str:
    """An attribute whose name is that of another one."""
    return _replaced(text, _ATTRIBUTE, rng, _pick(_ATTRIBUTE.findall(text) or [" a="], rng))


def _element(text: str, rng: np.random.Generator) -> str:
    """An element without children taken out, repeated or put elsewhere."""
    found = list(_EMPTY.finditer(text))
    if not found:
        return text
    one, other = (found[int(k)] for k in rng.integers(0, len(found), 2))
    copies = one[0] * int(rng.choice([1, 1, 2, 50, 500]))
    match int(rng.integers(0, 3)):
        case 0:
            return text[: one.start()] + text[one.end() :]
        case 1:
            return text[: one.end()] + copies + text[one.end() :]
        case _:
            return text[: other.start()] + one[0] + text[other.start() :]


_IN_XML = (_number, _number, _number, _number, _value, _value, _name, _element, _element)
_IN_TEXT = (_number, _number, _number, _number, _word, _word, _word, _lines)
_HARSH = (_word, _sign, _letter, _lines, _piece, _cut)
