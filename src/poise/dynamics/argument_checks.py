"""Checks of arguments before kernels read them: shapes, finite numbers, names."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from poise.model.model import Model

#: lengths of quaternions whose squares have all digits in float32
_SHORT, _LONG = 1e-10, 1e10
_PLAIN, _HUGE = {int, float}, 1e300
MOST_STEPS = 10**12
"""Most steps of one call: at a microsecond a step they take eleven days."""
_GAINS = ("gain_p", "gain_d", "goal_v")
_ARGUMENT = {"force": "forces"}
"""Names of arguments that differ from the names of their fields."""


def check_model(model: Any) -> None:
    """Check that an argument is a model: a scene is most often passed instead."""
    if not isinstance(model, Model):
        raise TypeError(f"model must be a compiled model, not {type(model).__name__}; scene.compile() makes one")


def check_given(fields: dict[str, Any]) -> None:
    """Check that required inputs are present, as workspaces keep values of earlier calls."""
    for name in ("q", "a"):
        if name in fields and fields[name] is None:
            raise ValueError(f"{name} is missing")
    if fields.get("gain_p") is not None and fields.get("goal_q") is None:
        raise ValueError("goal_q is missing: a drive with gain_p needs a goal")


def check_range(fields: dict[str, np.ndarray]) -> None:
    """Check that numbers that are finite in float64 are finite in float32 too."""
    largest = float(np.finfo(np.float32).max)
    for name, array in fields.items():
        if array.size and np.abs(array).max() > largest:
            raise ValueError(f"{name} has numbers up to {np.abs(array).max():g}; float32 ends at {largest:g}")


def checked_step(dt: Any, name: str = "dt", *, backwards: bool = False) -> float:
    """A time that is finite and not negative, unless `backwards`; s."""
    kind = getattr(getattr(dt, "dtype", None), "kind", "f")
    try:
        step = None if isinstance(dt, bool | str | bytes) or kind not in "iuf" else float(dt)
    except (TypeError, ValueError):
        step = None
    except OverflowError:
        raise ValueError(f"{name} is beyond all floating-point numbers; it must be a finite time in seconds") from None
    if step is None:
        raise ValueError(f"{name} must be a number of seconds, not {dt!r}")
    if not math.isfinite(step) or (step < 0.0 and not backwards):
        raise ValueError(f"{name} is {step}; it must be a finite time in seconds{'' if backwards else ', 0 or more'}")
    return step


def checked_steps(n: Any, most: int = MOST_STEPS) -> int:
    """A number of steps that one call can take."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ValueError(f"n is {_shown(n)}; it must be a whole number of steps, 0 or more")
    if n > most:
        raise ValueError(f"n is {_shown(n)}; one call takes {most:.0e} steps at most")
    return int(n)


def steps_of_duration(duration: Any, dt: float) -> int:
    """Steps of `dt` that are nearest to a duration; s."""
    steps = checked_step(duration, "duration") / dt
    if not steps <= MOST_STEPS:
        raise ValueError(f"duration is {duration} s; one call takes {MOST_STEPS:.0e} steps at most, here of {dt:g} s")
    return round(steps)


def _shown(number: Any) -> str:
    """A number as text: Python does not format integers of thousands of digits."""
    if isinstance(number, int) and abs(number) > 10**30:
        return f"{'-' if number < 0 else ''}2^{abs(number).bit_length() - 1} or more"
    return repr(number)


def real_numbers(name: str, value: Any) -> np.ndarray:
    """An array of real numbers."""
    if hasattr(value, "mask") and np.ma.is_masked(value):  # else numpy.ma is not imported
        raise ValueError(f"{name} is masked in places: fill them first")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be real numbers, not a {type(value).__name__} of rows that differ") from None
    if array.dtype.kind not in "biuf":
        what = "complex numbers" if array.dtype.kind == "c" else type(value).__name__
        raise ValueError(f"{name} must be real numbers, not {what}")
    return np.asarray(array, np.float64)


def checked_vector(name: str, value: Any, size: int = 3) -> np.ndarray:
    """Three finite numbers, or `size` of them."""
    array = real_numbers(name, value)
    if array.shape != (size,) or not np.isfinite(array).all():
        count = {3: "three", 4: "four"}.get(size, size)
        raise ValueError(f"{name} must be {count} finite numbers, not {array.tolist()}")
    return array


def three_numbers(name: str, value: Any) -> tuple[float, float, float]:
    """As `checked_vector`, without an array where plain numbers are given."""
    plain = value.tolist() if type(value) is np.ndarray and value.dtype == np.float64 else value
    if type(plain) in (tuple, list) and len(plain) == 3 and {*map(type, plain)} <= _PLAIN:
        x, y, z = plain
        if -_HUGE < x < _HUGE and -_HUGE < y < _HUGE and -_HUGE < z < _HUGE:
            return x, y, z
    x, y, z = checked_vector(name, value).tolist()
    return x, y, z


def checked_row(model: Model, name: str, value: Any) -> np.ndarray:
    """An input of one world."""
    array = checked(model, name, value)
    if array.ndim != 1:
        raise ValueError(f"{_ARGUMENT.get(name, name)} has shape {array.shape}; one world needs ({array.shape[-1]},)")
    return array


def checked(model: Model, name: str, value: Any) -> np.ndarray:
    """An input as float64: right length, finite, quaternions not zero. A single gain is repeated for all."""
    check_model(model)
    length = {"q": model.nq, "goal_q": model.nq, "force": 6 * model.n_bodies}.get(name, model.nv)
    shown = _ARGUMENT.get(name, name)
    array = real_numbers(shown, value)
    if name in _GAINS and array.ndim == 0:
        array = np.full(length, array)
    if name == "force" and array.shape[-2:] == (model.n_bodies, 6):
        array = array.reshape(*array.shape[:-2], length)
    if array.ndim not in (1, 2) or array.shape[-1] != length:
        rows = f"({length},) for one world or (n, {length}) for n of them"
        raise ValueError(f"{shown} has shape {array.shape}; the model needs {rows}")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{shown}[{', '.join(map(str, where))}] is {array[tuple(where)]}; every number must be finite")
    return with_sane_quaternions(model, name, array) if name in ("q", "goal_q") else array


def with_sane_quaternions(model: Model, name: str, array: np.ndarray) -> np.ndarray:
    """The array, with quaternions scaled to about unit length where their squares might overflow or underflow."""
    places = model.quaternion_places
    largest = np.abs(array[..., places]).max(axis=-1)
    if ((largest >= _SHORT) & (largest <= _LONG)).all():
        return array
    array = array.copy()
    for k, place in enumerate(places):
        size = largest[..., k, None]
        if not size.all():
            which = f"{name}[{place[0]}:{place[0] + 4}]"
            raise ValueError(f"{which} is a quaternion of length 0; the identity is (1, 0, 0, 0)")
        if np.any(size < _SHORT) or np.any(size > _LONG):
            array[..., place] /= size
    return array


def body_number(model: Model, body: str | int) -> int:
    """Index of a body, from its name or number."""
    check_model(model)
    if isinstance(body, str):
        return model.body_index(body)
    return number_within("body", body, model.n_bodies, "bodies")


def dof_number(model: Model, dof: str | int) -> int:
    """Index of a degree of freedom, from its name or number."""
    check_model(model)
    if isinstance(dof, str):
        return model.dof_index(dof)
    return number_within("dof", dof, model.nv, "degrees of freedom")


def number_within(what: str, number: Any, count: int, many: str) -> int:
    """An index that is an integer within its range."""
    try:
        index = operator.index(number)
    except TypeError:
        raise ValueError(f"{what} must be a name or a number, not {number!r}") from None
    if not 0 <= index < count:
        has = f"{many} 0 to {count - 1}" if count else f"no {many}"
        raise ValueError(f"{what} {index}: the model has {has}")
    return index


class Singular(ArithmeticError):
    """Accelerations are not finite: at this pose nothing that has inertia moves along some axis."""


def check_result(model: Model, a: np.ndarray) -> np.ndarray:
    """The accelerations; raises `Singular` if they are not finite."""
    if np.isfinite(a).all():
        return a
    where = np.argwhere(~np.isfinite(a))[0]
    world = f" of world {where[0]}" if a.ndim > 1 else ""
    dof = model.dof_names[where[-1]]
    raise Singular(f'the acceleration of "{dof}"{world} is {a[tuple(where)]}: the mass matrix is singular at this pose')
