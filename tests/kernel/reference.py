"""References to more than double precision, in integers of 200 bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

BITS = 200


def _arctan_inverse(n: int, bits: int) -> int:
    """atan(1/n) · 2^bits."""
    total, term, k = 0, (1 << bits) // n, 1
    while term:
        total += term // k if k % 4 == 1 else -(term // k)
        term //= n * n
        k += 2
    return total


def pi_fixed(bits: int) -> int:
    """π · 2^bits, by Machin's formula."""
    guard = bits + 20
    return (4 * (4 * _arctan_inverse(5, guard) - _arctan_inverse(239, guard))) >> 20


_HALF_PI = pi_fixed(BITS) >> 1
_HALF_PI_LONG = pi_fixed(BITS + 40) >> 1


def _series(r: int) -> tuple[int, int]:
    """Sine and cosine of a small angle, all times 2^BITS."""
    one = 1 << BITS
    sine, cosine, term, k = 0, one, one, 0
    while term:
        k += 1
        term = (term * r >> BITS) // k
        if k % 2:
            sine += term if k % 4 == 1 else -term
        else:
            cosine += term if k % 4 == 0 else -term
        if term == -1:  # the floor of a negative number never gets to nought
            break
    return sine, cosine


def _reduced(x: float) -> tuple[int, int]:
    """Quarter turns in x, and the rest times 2^BITS."""
    numerator, denominator = x.as_integer_ratio()
    fixed = (numerator << (BITS + 40)) // denominator
    n = (2 * fixed + _HALF_PI_LONG) // (2 * _HALF_PI_LONG)
    return n, (fixed - n * _HALF_PI_LONG) >> 40


def _split(fixed: int) -> tuple[float, float]:
    """A number as the nearest double and what that lacks."""
    high = fixed / (1 << BITS)
    return high, float(Fraction(fixed, 1 << BITS) - Fraction(high))


def sin_cos(x: np.ndarray) -> np.ndarray:
    """(n, 2, 2): for sine and cosine of each angle the nearest double and the rest."""
    out = np.empty((len(x), 2, 2))
    for i, angle in enumerate(np.asarray(x, np.float64).tolist()):
        n, r = _reduced(angle)
        s, c = _series(r)
        s, c = ((s, c), (c, -s), (-s, -c), (-c, s))[n % 4]
        out[i] = _split(s), _split(c)
    return out


def ulps(found: np.ndarray, reference: np.ndarray, dtype: type) -> np.ndarray:
    """Error in units of the last place of the true value, given as (…, 2) doubles."""
    high, rest = reference[..., 0], reference[..., 1]
    unit = np.spacing(np.maximum(np.abs(high), np.finfo(dtype).tiny).astype(dtype)).astype(np.float64)
    return np.abs((np.asarray(found, np.float64) - high) - rest) / unit


def near_quarter_turns(count: int, dtype: type) -> np.ndarray:
    """The numbers of a type nearest to the first multiples of π/2, with a neighbour on each side."""
    exact = [(n * _HALF_PI) / (1 << BITS) for n in range(1, count + 1)]
    middle = np.array(exact).astype(dtype)
    return np.concatenate([middle, np.nextafter(middle, dtype(0)), np.nextafter(middle, dtype(math.inf))])


def atan2_ref(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n, 2): atan2 as the nearest double and the rest, by one step of Newton's method from NumPy's answer."""
    out = np.empty((len(x), 2))
    for i, (b, a) in enumerate(zip(np.asarray(y, float).tolist(), np.asarray(x, float).tolist(), strict=True)):
        guess = math.atan2(b, a)
        n, r = _reduced(guess)
        s, c = _series(r)
        s, c = ((s, c), (c, -s), (-s, -c), (-c, s))[n % 4]
        # sin(true − guess) = (b cos − a sin)/√(a² + b²), to first order; its square is below 1e-30
        fb, fa = Fraction(b), Fraction(a)
        slope = (fb * c - fa * s) / (fa * c + fb * s)
        out[i] = guess, float(slope)
    return out
