"""Geoms, contacts and equalities of a compiled MuJoCo model that a Scene cannot represent."""

from __future__ import annotations

import numpy as np

from poise.io.mjcf_bodies import MOST_GROUPS, moving_grounds
from poise.io.mjcf_contacts import kept_pairs, pair_names, uneven_pairs
from poise.io.mjcf_gap_text import named, nonzero, rows_differ, sentence, soft
from poise.io.mjcf_source import MjcfSource, enum_name

#: kinds of equalities that a scene keeps
_KEPT_EQUALITIES = ("connect", "weld", "joint")


def shape_gaps(source: MjcfSource) -> list[str]:
    """Geoms that are left out, and forces on geoms."""
    model, types = source.model, source.mj.mjtGeom
    names = source.names("GEOM", model.ngeom)
    kinds = np.asarray(model.geom_type)
    fluid = np.array([row[0] != 0 for row in np.asarray(model.geom_fluid)], dtype=bool)
    return [
        *sentence(kinds == int(types.mjGEOM_SDF), names, "signed distance (SDF) geom", "left out: not supported"),
        *sentence(
            moving_grounds(source),
            names,
            "plane or height field",
            "on moving bodies left out: here they do not move",
            "planes and height fields",
        ),
        *sentence(fluid, names, "geom", "with fluid forces (fluidshape): the forces are ignored"),
    ]


def contact_gaps(source: MjcfSource) -> list[str]:
    """Parameters of contacts."""
    model = source.model
    if source.disabled("CONTACT", "CONSTRAINT"):
        return []
    names = source.names("GEOM", model.ngeom)
    meets = (np.asarray(model.geom_contype) | np.asarray(model.geom_conaffinity)) != 0
    soft_geoms = soft(model.geom_solref, model.geom_solimp) | rows_differ(model.geom_solmix, 1.0)
    filters = {(int(a), int(b)) for a, b in zip(model.geom_contype, model.geom_conaffinity, strict=True)}
    gaps = [
        *_pair_gaps(source),
        *sentence(
            meets & nonzero(model, "geom_margin"),
            names,
            "geom",
            "with a contact margin: contacts are found at that distance, but bodies rest on surfaces, not above",
        ),
        *sentence(meets & nonzero(model, "geom_gap"), names, "geom", "with a contact gap: it is ignored"),
        *_if_present(meets, model, names, "geom_adhesion", "with adhesion: it is ignored"),
        *_if_present(meets, model, names, "geom_surfacevel", "with a surface velocity: it is ignored"),
        *sentence(
            meets & soft_geoms, names, "geom", "with solref, solimp or solmix: Poise's own contact softness is used"
        ),
    ]
    if source.disabled("FILTERPARENT"):
        gaps.append(
            "contacts of bodies with their parents (flag filterparent) not kept: these pass through each other."
        )
    if len(filters) > MOST_GROUPS:
        gaps.append(f"{len(filters)} combinations of contype and conaffinity: more than can be kept apart exactly.")
    return gaps


def _if_present(chosen: object, model: object, names: list[str], field: str, fate: str) -> list[str]:
    """A sentence about geoms with a field that only some versions of MuJoCo have."""
    here = nonzero(model, field)
    return sentence(np.asarray(chosen) & here, names, "geom", fate) if len(here) else []


def _pair_gaps(source: MjcfSource) -> list[str]:
    model, names = source.model, pair_names(source)
    kept = np.zeros(model.npair, bool)
    kept[kept_pairs(source)] = True
    geoms = [tuple(sorted(map(int, pair))) for pair in zip(model.pair_geom1, model.pair_geom2, strict=True)]
    last = {pair: k for k, pair in enumerate(geoms)}
    replaced = np.array([last[pair] != k for k, pair in enumerate(geoms)], bool)
    soft_pairs = soft(model.pair_solref, model.pair_solimp) | nonzero(model, "pair_solreffriction")
    sticky = nonzero(model, "pair_adhesion") if hasattr(model, "pair_adhesion") else np.zeros(model.npair, bool)
    what = "contact pair"
    return [
        *sentence(~kept, names, what, "left out: a geom of it is, or both geoms are on one rigid part"),
        *sentence(kept & replaced, names, what, "without effect: the last one of the same geoms counts"),
        *sentence(
            kept & uneven_pairs(source),
            names,
            what,
            "with friction that depends on the direction: the first of two coefficients counts",
        ),
        *sentence(kept & nonzero(model, "pair_margin"), names, what, "with a margin: it is ignored"),
        *sentence(kept & nonzero(model, "pair_gap"), names, what, "with a gap: it is ignored"),
        *sentence(kept & sticky, names, what, "with adhesion: it is ignored"),
        *sentence(kept & soft_pairs, names, what, "with solref or solimp: Poise's own contact softness is used"),
    ]


def equality_gaps(source: MjcfSource) -> list[str]:
    """Equalities that do nothing here, and those that are softer in MuJoCo."""
    model = source.model
    if source.disabled("EQUALITY", "CONSTRAINT") or not model.neq:
        return []
    names = source.names("EQUALITY", model.neq)
    kinds = [enum_name(source.mj.mjtEq(kind), "mjEQ_") for kind in model.eq_type]
    gaps = []
    for kind in sorted(set(kinds).difference(_KEPT_EQUALITIES)):
        chosen = [name for name, own in zip(names, kinds, strict=True) if own == kind]
        gaps.append(f"{named(len(chosen), f'{kind} equality', chosen, f'{kind} equalities')} not supported: no effect.")
    held = np.isin(kinds, _KEPT_EQUALITIES) & soft(model.eq_solref, model.eq_solimp)
    return gaps + sentence(held, names, "equality", "with solref or solimp: held rigidly", "equalities")
