"""Functions of scalars, for floats, NumPy arrays and lanes alike."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from poise.kernel.trace import ScalarType, Traced, constant, formula, precision, same_type
from poise.kernel.values import Value

PI = 3.141592653589793


@formula
def select(mask: Any, a: Any, b: Any) -> Any:
    """`a` where the mask is set, else `b`; for scalars and values of scalars."""
    if isinstance(a, Value) or isinstance(b, Value):
        if type(a) is not type(b):
            raise TypeError(f"select between {a!r} and {b!r}: they are of different types")
        return type(a).of(*(select(mask, x, y) for x, y in zip(a.leaves(), b.leaves(), strict=True)))
    if isinstance(mask, Traced):
        if not isinstance(a, Traced) and not isinstance(b, Traced):
            raise TypeError("select between two constants: give one of them the type of a scalar, as in zero(x) + 1")
        a, b = same_type(a, b)
        if mask.type.width > 1 and a.type.width == 1:
            spread = ScalarType(a.type.elem, mask.type.width)
            a, b = a.cast(spread), b.cast(spread)
        if mask.type.width not in (1, a.type.width):
            raise TypeError(f"a mask of {mask.type.width} lanes selects among {a.type}")
        return Traced(a.type, a.emit.select(mask.value, a.value, b.value), a.emit) if a.emit else Traced(a.type)
    if isinstance(mask, np.ndarray):
        return np.where(mask, a, b)
    return a if mask else b


@formula
def any_lane(mask: Any) -> Any:
    """True if the mask is set in any lane."""
    return _reduce(mask, "or", np.any)


@formula
def all_lanes(mask: Any) -> Any:
    """True if the mask is set in every lane."""
    return _reduce(mask, "and", np.all)


def _reduce(mask: Any, name: str, plain: Any) -> Any:
    if isinstance(mask, Traced):
        return Traced(ScalarType("b1"), mask.emit and mask.emit.reduce(name, mask.value, mask.type), mask.emit)
    return bool(plain(mask))


@formula
def get_lane(x: Any, lane: Any) -> Any:
    """The plain number in one lane."""
    if isinstance(x, Value):
        return type(x).of(*(get_lane(leaf, lane) for leaf in x.leaves()))
    if isinstance(x, Traced):
        plain, lane = ScalarType(x.type.elem), _lane_number(lane, x)
        return Traced(plain, x.emit.get_lane(x.value, x.type, lane.value), x.emit) if x.emit else Traced(plain)
    return x[lane] if isinstance(x, np.ndarray) else x


@formula
def sum_lanes(x: Any) -> Any:
    """The sum of all lanes as a plain number, by adding halves until one is left."""
    if isinstance(x, Traced):
        plain = ScalarType(x.type.elem)
        if x.type == plain:
            return x
        return Traced(plain, x.emit.sum_lanes(x.value, x.type), x.emit) if x.emit else Traced(plain)
    while isinstance(x, np.ndarray):
        half = len(x) // 2
        x = x[:half] + x[half:] if half else x[0]
    return x


@formula
def set_lane(x: Any, lane: Any, y: Any) -> Any:
    """X with the plain number y in one lane."""
    if isinstance(x, Value):
        return type(x).of(*(set_lane(a, lane, b) for a, b in zip(x.leaves(), y.leaves(), strict=True)))
    if isinstance(x, Traced):
        plain, lane = ScalarType(x.type.elem), _lane_number(lane, x)
        y = y.cast(plain) if isinstance(y, Traced) else Traced(plain, None, x.emit).like(y)
        return Traced(x.type, x.emit.set_lane(x.value, x.type, lane.value, y.value), x.emit) if x.emit else x
    if isinstance(x, np.ndarray):
        out = x.copy()
        out[lane] = y
        return out
    return y


def _lane_number(lane: Any, x: Traced) -> Traced:
    """Index of a lane of x, checked if it is known at compile time."""
    if isinstance(lane, Traced):
        if lane.type.width != 1 or lane.type.is_float or lane.type.is_mask:
            raise TypeError(f"the number of a lane is a plain integer, not {lane.type}")
        return lane
    if not 0 <= lane < x.type.width:
        raise TypeError(f"{x.type} has no lane {lane}")
    return Traced(ScalarType("i64"), None, x.emit).like(lane)


@formula
def mask_bits(mask: Any) -> Any:
    """A mask as an integer: bit k is set where lane k is."""
    if isinstance(mask, Traced):
        if not mask.type.is_mask:
            raise TypeError(f"a mask is made of truth values, not {mask.type}")
        plain = ScalarType("i64")
        return Traced(plain, mask.emit.mask_to_bits(mask.value, mask.type), mask.emit) if mask.emit else Traced(plain)
    return sum(1 << k for k, lane in enumerate(np.atleast_1d(mask)) if lane)


@formula
def bits_mask(bits: Any, like: Any) -> Any:
    """The mask, for the lanes of `like`, with the bits of an integer."""
    if isinstance(like, Traced):
        mask, e = like.type.of("b1"), like.emit
        bits = bits if isinstance(bits, Traced) else Traced(ScalarType("i64"), None, e).like(bits)
        bits = bits.cast(ScalarType("i64"))
        return Traced(mask, e.bits_to_mask(bits.value, mask), e) if e else Traced(mask)
    if isinstance(like, np.ndarray):
        return (int(bits) >> np.arange(len(like))) & 1 > 0
    return bool(bits & 1)


@formula
def trailing_zeros(bits: Any) -> Any:
    """Number of trailing zero bits of an integer: for a mask, the index of its first set lane; 64 for 0."""
    if isinstance(bits, Traced):
        bits = bits.cast(ScalarType("i64"))
        return Traced(bits.type, bits.emit.trailing_zeros(bits.value), bits.emit) if bits.emit else Traced(bits.type)
    return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64


@formula
def zero(x: Any) -> Any:
    """Zero, of the type of x."""
    if isinstance(x, Traced):
        return x.like(0)
    return np.zeros_like(x) if isinstance(x, np.ndarray) else type(x)(0)  # not x * 0, which keeps NaN


@formula
def spread(x: Any, like: Any) -> Any:
    """The number x in the type of `like`; kernels write constants with it."""
    return constant(x, like) if not isinstance(x, Traced) else x.cast(like.type)


@formula
def sqrt(x: Any) -> Any:
    """Square root, correctly rounded in float64."""
    return x.unary("sqrt") if isinstance(x, Traced) else np.sqrt(x)


@formula
def rint(x: Any) -> Any:
    """The nearest whole number, ties to even."""
    return x.unary("nearbyint") if isinstance(x, Traced) else np.rint(x)


@formula
def floor(x: Any) -> Any:
    """The largest whole number that is not greater."""
    return x.unary("floor") if isinstance(x, Traced) else np.floor(x)


@formula
def fabs(x: Any) -> Any:
    """Absolute value."""
    return x.unary("fabs") if isinstance(x, Traced) else np.abs(x)


@formula
def minimum(a: Any, b: Any) -> Any:
    """The smaller one; b if either is NaN."""
    return select(a < b, a, b)


@formula
def maximum(a: Any, b: Any) -> Any:
    """The larger one; b if either is NaN."""
    return select(a > b, a, b)


@formula
def to_real(x: Any, like: Any) -> Any:
    """An integer as a real number of the type of `like`."""
    return x.cast(like.type) if isinstance(x, Traced) else x * 1.0


@formula
def to_int(x: Any) -> Any:
    """A real number rounded towards zero, as an integer of the same size and number of lanes.

    It saturates at the range of integers; NaN gives 0.
    """
    if isinstance(x, Traced):
        if not x.type.is_float:
            raise TypeError(f"to_int of {x.type}")
        to = x.type.of("i32" if x.type.elem == "f32" else "i64")
        return Traced(to, x.emit.truncate(x.value, x.type, to), x.emit) if x.emit else Traced(to)
    if isinstance(x, np.ndarray):
        kind = np.int32 if x.dtype == np.float32 else np.int64
        return np.reshape([_whole(float(number), kind) for number in x.flat], x.shape).astype(kind)
    return _whole(float(x), np.int32 if isinstance(x, np.float32) else np.int64)


def _whole(x: float, kind: Any) -> int:
    """A number rounded towards zero, clamped to the range of an integer type."""
    if x != x:
        return 0
    limits = np.iinfo(kind)
    return int(min(max(x, limits.min), limits.max)) if abs(x) < 2.0**63 else int(limits.max if x > 0 else limits.min)


# ---- sine and cosine -------------------------------------------------------------------------------------------------

_PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211707")


def _parts(value: Fraction, sizes: tuple[int, ...]) -> list[float]:
    """`value` as a sum of numbers of `sizes` bits each: the product of a short one and a small integer is exact."""
    out = []
    for bits in sizes:
        exponent = 0
        while value * Fraction(2) ** -exponent >= 1:
            exponent += 1
        while value * Fraction(2) ** -exponent < Fraction(1, 2):
            exponent -= 1
        unit = Fraction(2) ** (exponent - bits)
        part = value // unit * unit
        out.append(float(part))
        value -= part
    return out


def _taylor(first: int, terms: int) -> list[float]:
    """Coefficients 1/k! with alternating signs, k = first, first + 2, …"""
    out, factorial, sign = [], 1, 1
    for k in range(1, first + 2 * terms):
        factorial *= k
        if k >= first and (k - first) % 2 == 0:
            out.append(float(Fraction(sign, factorial)))
            sign = -sign
    return out


def horner(x: Any, coefficients: list[float]) -> Any:
    """Polynomial in x, coefficients from the constant term up."""
    total = constant(coefficients[-1], x)
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


# |r| ≤ π/4: the first term left out is below half a unit in the last place
_SIN = {24: _taylor(1, 6), 53: _taylor(1, 9)}
_COS = {24: _taylor(2, 5), 53: _taylor(2, 9)}
# Quarter turns are counted exactly up to 2^14 (angles to 2.5e4) in single and 2^20 (1.6e6) in double precision. The
# last part is as long as a number can be: close to a multiple of π/2 it is all that is left of the angle.
_QUARTER = {24: _parts(_PI / 2, (10, 10, 10, 10, 24)), 53: _parts(_PI / 2, (33, 33, 53))}


@formula
def sincos(x: Any) -> Any:
    """Sine and cosine of an angle of any size that a simulation may reach; rad.

    Cody and Waite: subtract the nearest multiple of π/2 in parts that leave no rounding error, then Taylor's series.
    """
    digits = precision(x)
    n = rint(x * float(2 / _PI))
    r = x
    for part in _QUARTER[digits]:
        r = r - n * part
    r2 = r * r
    s = r + r * r2 * horner(r2, _SIN[digits][1:])
    c = 1.0 - r2 * horner(r2, _COS[digits])
    half = floor(n * 0.5)
    odd = n - half * 2.0  # 1 where sine and cosine swap
    far = half - floor(half * 0.5) * 2.0  # 1 in the half turn where both change sign
    swap = odd > 0.5
    sine, cosine = select(swap, c, s), select(swap, -s, c)
    flip = 1.0 - far * 2.0
    return sine * flip, cosine * flip


@formula
def sin(x: Any) -> Any:
    """Sine."""
    return sincos(x)[0]


@formula
def cos(x: Any) -> Any:
    """Cosine."""
    return sincos(x)[1]


_ATAN = [float(Fraction((-1) ** k, 2 * k + 1)) for k in range(9)]


@formula
def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y), −π to π; 0 at the origin.

    tan(α/2) = tan α / (1 + √(1 + tan² α)), three times, then the series.
    """
    ax, ay = fabs(x), fabs(y)
    steep = ax < ay
    low, high = select(steep, ax, ay), select(steep, ay, ax)
    one = zero(high) + 1.0
    same = low == high  # 0/0 and ∞/∞ are defined here; NaN is never equal
    t = select(same, select(high > 0.0, one, zero(high)), low / select(same, one, high))
    for _ in range(3):
        t = t / (1.0 + sqrt(1.0 + t * t))
    t2 = t * t
    angle = 8.0 * (t + t * t2 * horner(t2, _ATAN[1:]))
    angle = select(steep, PI / 2 - angle, angle)
    angle = select(x < 0.0, PI - angle, angle)
    return select(y < 0.0, -angle, angle)
