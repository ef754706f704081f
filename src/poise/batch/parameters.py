"""Domain randomization: parameters that may differ from world to world: gravity, surfaces, masses, and the damping,
stiffness and armature of joints.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.argument_checks import check_range, real_numbers
from poise.dynamics.dynamics_layout import matrices
from poise.formulations.lanes.batch_engine import Records
from poise.model.errors import did_you_mean
from poise.model.model import Model

Array = NDArray[Any]
FIELDS = {
    "gravity": ("model/gravity",),
    "friction": ("surfaces/friction",),
    "restitution": ("surfaces/restitution",),
    "mass": ("model/link_mass", "model/link_com", "model/link_inertia"),
    "damping": ("model/dof_damping",),
    "stiffness": ("model/dof_stiffness",),
    "armature": ("model/dof_armature",),
}
"""Fields of a record that each parameter sets."""
_FULL = np.array([0, 3, 4, 3, 1, 5, 4, 5, 2])
"""Indices of a matrix's nine numbers among xx, yy, zz, xy, xz, yz."""


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of the parameters that vary."""
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        if name not in FIELDS:
            raise ValueError(f"no parameter is called {name!r}{did_you_mean(str(name), FIELDS)}")
    return tuple(name for name in FIELDS if name in chosen)


def model_values(model: Model, name: str) -> Array:
    """(size,) a parameter of the model."""
    return {
        "gravity": model.gravity,
        "friction": model.solids.friction,
        "restitution": model.solids.restitution,
        "mass": model.body_mass,
        "damping": model.dof_damping,
        "stiffness": model.dof_stiffness,
        "armature": model.dof_armature,
    }[name]


class Parameters:
    """The parameters that vary, of all worlds."""

    def __init__(self, model: Model, records: Records, names: tuple[str, ...]) -> None:
        self.model, self._records = model, records
        self.values = {name: np.tile(model_values(model, name), (records.n, 1)) for name in names}
        """(n, size) each."""

    def set(self, name: str, rows: Array) -> None:
        """Set a checked parameter of all worlds."""
        self.values[name][...] = rows
        if name == "mass":
            for field, numbers in zip(FIELDS[name], link_masses(self.model, self.values[name]), strict=True):
                self._records.of(field)[...] = numbers
        else:
            self._records.of(FIELDS[name][0])[...] = self.values[name]

    def checked(self, name: str, value: Any) -> Array:
        """(n, size) a parameter of all worlds, from one row for all, a row for each, a number, or a number for each."""
        if name not in FIELDS:
            raise ValueError(f"no parameter is called {name!r}{did_you_mean(name, FIELDS)}")
        if name not in self.values:
            raise ValueError(f"{name} is the same in all worlds: make the batch with vary=({name!r},)")
        array = self._of_right_shape(name, value)
        if not (np.isfinite(array) | ((name == "friction") & (array == np.inf))).all():
            raise ValueError(f"{name} must be finite")
        if name != "gravity" and array.size and array.min() < 0.0:
            raise ValueError(f"{name} has {array.min():g}; it must be 0 or more")
        if name == "restitution" and array.size and array.max() > 1.0:
            raise ValueError(f"restitution has {array.max():g}; it must be from 0 to 1")
        if self._records.width.elem == "f32":
            check_range({name: array[np.isfinite(array)]})
        return self._checked_masses(array) if name == "mass" else np.broadcast_to(array, self.values[name].shape)

    def _of_right_shape(self, name: str, value: Any) -> Array:
        n, size = self.values[name].shape
        array = real_numbers(name, value)
        if np.asarray(value).dtype == np.bool_:
            raise ValueError(f"{name} must be real numbers, not true or false")
        if name == "gravity":
            if array.shape not in ((3,), (n, 3)):
                raise ValueError(f"gravity has shape {array.shape}; it is three numbers, (3,), or ({n}, 3)")
        elif array.shape not in ((), (size,), (n, size), (n, 1)):
            raise ValueError(
                f"{name} has shape {array.shape}; it may be one number, ({size},), ({n}, {size}) or ({n}, 1)"
            )
        return array

    def _checked_masses(self, given: Array) -> Array:
        """Checked masses: a body with a mass keeps one, and a body without mass has no inertia to scale. A single
        number applies to the bodies that have a mass.
        """
        has, (n, size) = self.model.body_mass > 0.0, self.values["mass"].shape
        for_all = given.ndim == 0 or (given.shape == (n, 1) and size > 1)
        masses = np.where(has, given, 0.0) if for_all else given
        masses = np.broadcast_to(masses, (n, size))
        wrong = np.where(has, masses <= 0.0, masses != 0.0).any(axis=0)
        if wrong.any():
            body = int(np.flatnonzero(wrong)[0])
            name, what = self.model.body_names[body], "a mass above 0" if has[body] else "no mass, as in the model"
            raise ValueError(f'mass: body "{name}" must have {what}')
        return masses


def link_masses(model: Model, masses: Array) -> tuple[Array, Array, Array]:
    """(n, n_links), (n, 3 n_links), (n, 6 n_links): mass, centre and inertia of links whose bodies have other masses.

    Inertias of bodies scale with their masses, as for another density.
    """
    n, links = len(masses), model.n_links
    turns = matrices(model.body_quat_wxyz).reshape(-1, 3, 3)
    centres = model.body_position + np.einsum("bij,bj->bi", turns, model.body_com)
    own = np.einsum("bij,bjk,blk->bil", turns, model.body_inertia[:, _FULL].reshape(-1, 3, 3), turns)
    scale = np.divide(masses, model.body_mass, out=np.ones_like(masses), where=model.body_mass > 0.0)
    mass, first, inertia = np.zeros((n, links)), np.zeros((n, links, 3)), np.zeros((n, links, 3, 3))
    moving = np.flatnonzero(model.body_link >= 0)
    for body in moving.tolist():
        mass[:, model.body_link[body]] += masses[:, body]
        first[:, model.body_link[body]] += masses[:, body, None] * centres[body]
    com = np.where(mass[..., None] > 0.0, first / np.where(mass > 0.0, mass, 1.0)[..., None], model.link_com)
    for body in moving.tolist():
        link = int(model.body_link[body])
        away = centres[body] - com[:, link]
        turned = np.einsum("ni,ni->n", away, away)[:, None, None] * np.eye(3) - away[:, :, None] * away[:, None, :]
        inertia[:, link] += scale[:, body, None, None] * own[body] + masses[:, body, None, None] * turned
    six = inertia[:, :, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return mass, com.reshape(n, -1), six.reshape(n, -1)
