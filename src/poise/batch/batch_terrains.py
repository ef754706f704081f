"""Terrains of a batch: static shapes that exist only in the worlds that have chosen them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.formulations.lanes.batch_engine import Records
from poise.model.errors import did_you_mean
from poise.model.model import Model

Array = NDArray[Any]


class Terrains:
    """The terrain of each world."""

    def __init__(self, model: Model, given: Mapping[str, Any], n: int) -> None:
        parts = {name: _shapes_of(model, name, what) for name, what in _checked_mapping(given).items()}
        self.names = tuple(parts)
        self.there = _table(parts, len(model.solids))
        """(terrains, shapes) bool; a shape without a terrain is in all of them."""
        self.values = np.zeros(n, np.int64)
        """(n,) assigned indices."""
        self.applied = self.values.copy()
        """(n,) indices in the last step."""

    def checked(self, given: Any, n: int) -> Array:
        """() or (n,) indices of terrains for n worlds, from names or indices, one for all or one for each."""
        array = np.asarray(given)
        if array.shape not in ((), (n,)):
            raise ValueError(f"terrain has shape {array.shape}; it may be one name or number, or ({n},)")
        if array.size == 0:
            return np.zeros(n, np.int64)
        if array.dtype.kind in "UO":
            return np.array([self._number(name) for name in array.reshape(-1).tolist()], np.int64).reshape(array.shape)
        if array.dtype.kind not in "iu":
            raise TypeError(f"terrains are chosen by names or whole numbers, not by {array.dtype}")
        for k in array.reshape(-1)[self._wrong(array.reshape(-1))].tolist():
            raise ValueError(f"terrain is {k}; {self._known()}")
        return array.astype(np.int64)

    def _number(self, name: Any) -> int:
        if isinstance(name, str):
            if name not in self.names:
                raise ValueError(f"no terrain is called {name!r}{did_you_mean(name, self.names)}")
            return self.names.index(name)
        raise TypeError(f"terrains are chosen by names or whole numbers, not by {name!r}")

    def _wrong(self, numbers: Array) -> Array:
        return np.flatnonzero((numbers < 0) | (numbers >= len(self.names)))

    def _known(self) -> str:
        return "there are " + ", ".join(f'{k} ("{name}")' for k, name in enumerate(self.names))

    def apply(self, records: Records) -> None:
        """Apply the assigned terrains."""
        for world in self._wrong(self.values).tolist():
            raise ValueError(f"terrain[{world}] is {self.values[world]}; {self._known()}")
        self.put(records, np.flatnonzero(self.values != self.applied), self.values[self.values != self.applied])

    def put(self, records: Records, worlds: Array, numbers: Array) -> None:
        """Set the terrains of some worlds, and clear their warm starts on others."""
        if len(worlds):
            self.values[worlds] = self.applied[worlds] = numbers
            records.of("terrain")[worlds, 0] = numbers
            records.forget(worlds)


def _checked_mapping(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"terrains must map names to lists of shapes, not be a {type(given).__name__}")
    if not given:
        raise ValueError("terrains is empty: give one at least, or none at all for worlds that have all shapes")
    for name in given:
        if not isinstance(name, str) or not name:
            raise TypeError(f"terrains have names, not {name!r}")
    return given


def _shapes_of(model: Model, terrain: str, what: Any) -> Array:
    """Indices of the shapes of a terrain."""
    names = [what] if isinstance(what, str) else what
    if not isinstance(names, list | tuple):
        raise TypeError(f'terrain "{terrain}" must be a list of names of bodies and shapes, not {what!r}')
    found = [_named(model, terrain, name) for name in names]
    return np.concatenate([np.zeros(0, np.intp), *found])


def _named(model: Model, terrain: str, name: Any) -> Array:
    """Indices of the shapes of a body, or of the shape with a name."""
    solids, where = model.solids, f'terrain "{terrain}"'
    if not isinstance(name, str):
        raise TypeError(f"{where} has {name!r}; it must be a list of names of bodies and shapes")
    if name in model.body_names:
        found = np.flatnonzero(solids.body == model.body_names.index(name))
        if not len(found):
            raise ValueError(f'{where}: body "{name}" has no shapes')
    else:
        found = np.flatnonzero(np.array(solids.names) == name)
        if not len(found):
            still = np.flatnonzero(solids.link < 0).tolist()
            known = [model.body_names[solids.body[k]] for k in still] + [solids.names[k] for k in still]
            raise ValueError(f'{where}: no body or shape is called "{name}"{did_you_mean(name, known)}')
    for k in found[solids.link[found] >= 0].tolist():
        body = model.body_names[solids.body[k]]
        raise ValueError(f'{where}: shape "{solids.names[k]}" moves with body "{body}"; terrains never move')
    return found


def _table(parts: Mapping[str, Array], n: int) -> NDArray[np.bool_]:
    own = np.zeros((len(parts), n), np.bool_)
    for row, shapes in zip(own, parts.values(), strict=True):
        row[shapes] = True
    return np.asarray(own | ~own.any(axis=0))
