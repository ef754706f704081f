"""Formulations by name, as in scene files and viewers."""

from __future__ import annotations

from dataclasses import fields

from poise.formulations.maximal_coordinates.maximal import Maximal
from poise.formulations.options import Options
from poise.formulations.reduced import Reduced
from poise.model.errors import did_you_mean

Formulation = Reduced | Maximal
FORMULATIONS: dict[str, type[Reduced] | type[Maximal]] = {"reduced": Reduced, "maximal": Maximal}


def name_of(formulation: Formulation) -> str:
    """The name of a formulation.

    >>> name_of(Maximal())
    'maximal'
    """
    return next(name for name, kind in FORMULATIONS.items() if kind is type(formulation))


def of_kind(name: str, like: Formulation | None = None) -> Formulation:
    """A formulation by its name, with the options that it shares with another one.

    >>> of_kind("maximal", Reduced(substeps=2)).substeps
    2
    """
    if name not in FORMULATIONS:
        raise ValueError(f"no coordinates are called {name!r}{did_you_mean(name, FORMULATIONS)}")
    if like is None or type(like) is FORMULATIONS[name]:
        return like or FORMULATIONS[name]()
    return FORMULATIONS[name](**{field.name: getattr(like, field.name) for field in fields(Options)})
