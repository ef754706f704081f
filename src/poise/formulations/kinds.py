"""Formulations by their names, as scene files and viewers know them."""

from __future__ import annotations

from poise.formulations.maximal import Maximal
from poise.formulations.reduced import Reduced

Formulation = Reduced | Maximal
FORMULATIONS: dict[str, type[Reduced] | type[Maximal]] = {"reduced": Reduced, "maximal": Maximal}


def name_of(formulation: Formulation) -> str:
    """The name of a formulation.

    >>> name_of(Maximal())
    'maximal'
    """
    return next(name for name, kind in FORMULATIONS.items() if kind is type(formulation))
