"""Many decimal numbers from text at once, each rounded as Python's `float` rounds it."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_POINT, _MINUS, _PLUS, _BLANK, _OTHER = 10, 11, 12, 13, 14
_CLASS = np.full(256, _OTHER, np.uint8)
_CLASS[ord("0") : ord("9") + 1] = range(10)
_CLASS[[ord("."), ord("-"), ord("+")]] = _POINT, _MINUS, _PLUS
_CLASS[[ord(blank) for blank in " \t\n\v\f"]] = _BLANK
#: longest token that is read here: a sign, a point, and as many digits as a float64 holds exactly
_LONGEST = 17
_DIGITS = 15
_POWERS = 10.0 ** np.arange(_DIGITS + 1)


def read_numbers(text: str) -> tuple[Floats, NDArray[np.intp]]:
    r"""All numbers of a text that blanks separate, NaN for what is none; and how many there are up to each line's end.

    A number of up to 15 digits is a whole number over a power of ten, both exact in float64, so that one division
    rounds it right. Others (exponents, more digits) are left to `float`.

    >>> numbers, counts = read_numbers("1.5 -2\n3e1 x")
    >>> numbers.tolist(), counts.tolist()
    ([1.5, -2.0, 30.0, nan], [2, 4])
    """
    content = f"\n{text}\n".encode("utf-8", errors="replace")
    kinds = _CLASS[np.frombuffer(content, np.uint8)]
    blank = kinds == _BLANK
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, ends = edges[0::2], edges[1::2]
    newlines = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))[1:]
    numbers, plain = _plain_numbers(kinds, starts, ends - starts)
    for token in np.flatnonzero(~plain):
        value = as_number(content[starts[token] : ends[token]].decode("utf-8", errors="replace"))
        numbers[token] = np.nan if value is None else value
    return numbers, np.searchsorted(starts, newlines)


def _plain_numbers(
    kinds: NDArray[np.uint8], starts: NDArray[np.intp], lengths: NDArray[np.intp]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Values of tokens, and which of them are plain decimals; the values of others mean nothing."""
    plain = lengths <= _LONGEST
    longest = int(lengths[plain].max(initial=0))
    whole = np.zeros(len(starts))
    digits, behind, points = (np.zeros(len(starts), np.int8) for _ in range(3))
    first = kinds[starts]
    signed = (first == _MINUS) | (first == _PLUS)
    for place in range(longest):
        inside = place < lengths
        kind = kinds[np.where(inside, starts + place, starts)]
        digit = inside & (kind < 10)
        np.multiply(whole, 10.0, out=whole, where=digit)
        np.add(whole, kind, out=whole, where=digit)
        digits += digit
        behind += digit & (points > 0)
        points += inside & (kind == _POINT)
        strange = inside & (kind > _POINT)
        plain &= ~strange if place else ~strange | signed
    plain &= (points <= 1) & (digits > 0) & (digits <= _DIGITS)
    values = whole / _POWERS[np.where(plain, behind, 0)]
    np.negative(values, out=values, where=first == _MINUS)
    return values, plain


def as_number(text: str) -> float | None:
    """A finite number in ASCII, as C would read it; None for anything else.

    >>> as_number("1e3"), as_number("1_000"), as_number("nan")
    (1000.0, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and text.isascii() and "_" not in text else None
