"""Checks of a batch's arguments, and errors for unsupported features."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.batch.thread_pool import processors
from poise.dynamics.argument_checks import check_model, check_range, checked, number_within
from poise.dynamics.state_queries import displaced
from poise.formulations.formulation_registry import Formulation
from poise.formulations.maximal_coordinates.maximal import Maximal
from poise.formulations.reduced import Reduced
from poise.kernel.memory import Width
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state import State

Array = NDArray[Any]
_WIDTHS = {"f32": Width("f32", 16, varied=True), "f64": Width("f64", 8, varied=True)}
"""Varied even if no parameter differs from world to world: one set of kernels serves all batches of a precision."""
MOST_THREADS = 1024


def width_of(precision: Any) -> Width:
    """Lanes of a precision."""
    if not isinstance(precision, str) or precision not in _WIDTHS:
        raise ValueError(f"precision is {precision!r}; there are {', '.join(_WIDTHS)}")
    return _WIDTHS[precision]


def _whole(name: str, number: Any, least: int) -> int:
    try:
        found = None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        found = None
    if found is None or found < least:
        raise ValueError(f"{name} is {number!r}; it must be a whole number, {least} or more")
    return found


def checked_count(n: Any) -> int:
    """Worlds."""
    return _whole("n", n, 1)


def checked_threads(threads: Any) -> int:
    """Threads; as many as there are processors when missing."""
    if threads is None:
        return processors()
    found = _whole("threads", threads, 1)
    if found > MOST_THREADS:
        raise ValueError(f"threads is {found}; {MOST_THREADS} is the most")
    return found


def fitting_formulation(formulation: Any) -> Formulation:
    """A formulation that batches support."""
    chosen = Reduced() if formulation is None else formulation
    if isinstance(chosen, Maximal):
        raise ValueError("a batch steps trees of joints: build it with poise.Reduced(), not poise.Maximal()")
    if not isinstance(chosen, Reduced):
        raise TypeError(f"formulation is a {type(formulation).__name__}; it must be poise.Reduced(...)")
    if chosen.level != "velocity":
        raise ValueError('a batch has the velocity level only: poise.Reduced(level="velocity")')
    if chosen.sleeping:
        raise ValueError("a batch has no sleeping: poise.Reduced(sleeping=False)")
    return chosen


def fitting_model(model: Any) -> None:
    """Raise ValueError for features of a model that batches do not support."""
    check_model(model)
    if model.paths:
        name = model.joint_names[model.paths[0][0]]
        raise ValueError(f'"{name}" follows a path: a batch has kinematic bodies without paths alone, which you place')
    for loop in model.loops:
        if min(loop.break_force, loop.break_torque) < inf:
            raise ValueError(f'loop "{loop.name}" can break: loops of a batch cannot break (break_force inf)')


def given_rows(model: Model, name: str, value: Any, n: int, precise: str) -> Array:
    """(n, size) or (size,) an input of n worlds."""
    array = checked(model, name, value)
    if array.ndim == 2 and len(array) != n:
        raise ValueError(f"{name} has {len(array)} rows for {n} worlds: give one for all, or one for each")
    if precise == "f32":
        check_range({name: array})
    return array


def chosen_worlds(which: Any, n: int) -> Array:
    """Indices of worlds, from a mask, a list of indices, one index, or None for all."""
    if which is None:
        return np.arange(n)
    array = np.asarray(which)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise ValueError(f"a mask of shape {array.shape} for {n} worlds; it must be ({n},)")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, np.intp)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ValueError("worlds are chosen by a mask, by their numbers, or by None for all")
    array = np.atleast_1d(array)
    if array.min() < 0 or array.max() >= n:
        raise IndexError(f"world {int(array.min() if array.min() < 0 else array.max())}; there are 0 to {n - 1}")
    if len(np.unique(array)) < len(array):
        raise ValueError("a world is named twice")
    return np.asarray(array, np.intp)


def chosen_state(first: State, keyframes: Sequence[tuple[str, State]], key: Any, state: Any) -> State:
    """The state that worlds are reset to."""
    if state is not None:
        if key is not None:
            raise ValueError("a keyframe or a state, not both")
        if not isinstance(state, State):
            raise TypeError(f"state must be a poise.State, not {type(state).__name__}; for coordinates alone, give q")
        return state
    if key is None:
        return first
    names = [name for name, _ in keyframes]
    if not isinstance(key, str):
        return keyframes[number_within("keyframe", key, len(names), "keyframes")][1]
    if key not in names:
        raise ValueError(f'there is no keyframe "{key}"{did_you_mean(key, names)}')
    return keyframes[names.index(key)][1]


def scattered(
    model: Model, rows: dict[str, Array], n: int, q_noise: ArrayLike, v_noise: ArrayLike, rng: Any
) -> dict[str, Array]:
    """Coordinates and velocities with random noise."""
    most = {"q": _noise(model, "q_noise", q_noise), "v": _noise(model, "v_noise", v_noise)}
    if not any(noise.any() for noise in most.values()):
        return rows
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"noise needs rng=numpy.random.default_rng(seed), not {type(rng).__name__}")
    q, v = (np.broadcast_to(rows[name], (n, rows[name].shape[-1])) for name in ("q", "v"))
    move, speed = (rng.uniform(-1.0, 1.0, (n, model.nv)) * most[name] for name in ("q", "v"))
    if most["q"].any() and n:
        q = displaced(model, q, move)
    return {"q": q, "v": v + speed}


def _noise(model: Model, name: str, noise: ArrayLike) -> Array:
    array = np.asarray(noise, np.float64)
    if array.shape not in ((), (model.nv,)) or not np.isfinite(array).all() or (array < 0.0).any():
        raise ValueError(f"{name} must be one number or ({model.nv},), finite and 0 or more")
    return np.where(model.dof_prescribed != 0, 0.0, array) if array.ndim == 0 else array
