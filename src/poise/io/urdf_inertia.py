"""Inertias of a URDF file that no body has: repaired, accepted or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from poise.io.urdf_reader import UrdfReader
from poise.io.xml_lines import Element
from poise.model.massprops import inertia_matrix, nearest_physical_inertia, second_moment, unphysical
from poise.model.scene import Inertia

InertiaChoice = Literal["repair", "accept", "strict"]
INERTIA_CHOICES: tuple[InertiaChoice, ...] = ("repair", "accept", "strict")

_REPAIRED = "inertias that no body has, changed to the nearest physical ones"
_ACCEPTED = "inertias that no body has, kept as they are"


def as_chosen(inertia: Inertia, link: str, element: Element, choice: InertiaChoice, reader: UrdfReader) -> Inertia:
    """The inertia of a link: as it is where some body has it, else repaired, accepted or refused.

    `element` is the one that the moments are written in.
    """
    matrix = inertia_matrix(inertia)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(second_moment(matrix)).all():
            return inertia
    wrong = unphysical(inertia.mass, matrix)
    if wrong is None:
        return inertia
    if choice == "strict":
        reader.problem(element, f'link "{link}": {wrong[0]}: {wrong[1]}')
        return inertia
    if choice == "accept":
        reader.ignore(_ACCEPTED, link, every=True)
        return replace(inertia, allow_unphysical=True)
    # a body without mass has no moments either
    nearest = nearest_physical_inertia(matrix) if inertia.mass > 0.0 else np.zeros((3, 3))
    change = float(np.linalg.norm(nearest - matrix))
    share = change / float(np.linalg.norm(matrix))
    reader.ignore(_REPAIRED, f"{link} by {change:.3g} kg·m² ({100.0 * share:.3g} %)", every=True)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = nearest.tolist()
    return replace(inertia, moments=(xx, yy, zz), products=(xy, xz, yz))
