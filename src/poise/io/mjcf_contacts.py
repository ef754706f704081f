"""Contact pairs and excluded pairs of a compiled MuJoCo model, and what of its contacts a Scene cannot hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.io.mjcf_bodies import kept_geoms
from poise.io.mjcf_source import MjcfSource, floats
from poise.model.contact_pairs import ContactPair


def read_excluded_pairs(source: MjcfSource) -> list[tuple[str, str]]:
    """Pairs of bodies that pass through each other; pairs with a world that has no shapes are left out."""
    pairs = []
    for signature in source.model.exclude_signature:
        pair = (int(signature) >> 16, int(signature) & 0xFFFF)
        if 0 not in pair or source.model.body_geomnum[0]:
            pairs.append((source.body_names[pair[0]], source.body_names[pair[1]]))
    return pairs


def read_contact_pairs(source: MjcfSource) -> list[ContactPair]:
    """Pairs of geoms that collide regardless of their filters, with friction according to their condim."""
    model = source.model
    if source.disabled("CONTACT", "CONSTRAINT"):
        return []
    places = _shape_places(source)
    pairs = []
    for k in kept_pairs(source):
        sliding, _, torsional, rolling, _ = floats(model.pair_friction[k])
        dimensions = int(model.pair_dim[k])
        pairs.append(
            ContactPair(
                places[int(model.pair_geom1[k])],
                places[int(model.pair_geom2[k])],
                friction=sliding if dimensions >= 3 else 0.0,
                torsional_friction=torsional if dimensions >= 4 else 0.0,
                rolling_friction=rolling if dimensions >= 6 else 0.0,
            )
        )
    return pairs


def kept_pairs(source: MjcfSource) -> list[int]:
    """Numbers of the pairs whose geoms are two shapes that can meet."""
    model, kept = source.model, kept_geoms(source)
    bodies = [int(model.body_weldid[body]) for body in model.geom_bodyid]
    ends = [(int(a), int(b)) for a, b in zip(model.pair_geom1, model.pair_geom2, strict=True)]
    return [k for k, (a, b) in enumerate(ends) if kept[a] and kept[b] and bodies[a] != bodies[b]]


def _shape_places(source: MjcfSource) -> dict[int, tuple[str, int]]:
    """Body and number on it of the shape of each geom that became one."""
    counts: dict[int, int] = {}
    places = {}
    for g, kept in enumerate(kept_geoms(source)):
        body = int(source.model.geom_bodyid[g])
        if kept:
            places[g] = (source.body_names[body], counts.get(body, 0))
            counts[body] = counts.get(body, 0) + 1
    return places


def pair_names(source: MjcfSource) -> list[str]:
    """What sentences call the pairs: by name, else by their geoms."""
    model = source.model
    geoms = source.names("GEOM", model.ngeom)
    ends = zip(source.given_names("PAIR", model.npair), model.pair_geom1, model.pair_geom2, strict=True)
    return [name or f"{geoms[int(first)]} and {geoms[int(second)]}" for name, first, second in ends]


def uneven_pairs(source: MjcfSource) -> Any:
    """Mask of the pairs whose two sliding, or two rolling, coefficients differ."""
    friction = np.asarray(source.model.pair_friction).reshape(-1, 5)
    dimensions = np.asarray(source.model.pair_dim)
    slides = (friction[:, 0] != friction[:, 1]) & (dimensions >= 3)
    return slides | ((friction[:, 3] != friction[:, 4]) & (dimensions >= 6))
