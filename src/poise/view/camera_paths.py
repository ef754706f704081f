"""Cameras of films: a fixed one with the whole motion in view, or one that follows a body."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.ray_casting.rays import places
from poise.dynamics.state_queries import bodies
from poise.model.errors import resolve_name
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.view.render_camera import Camera, as_asked, box_corners

Floats = NDArray[np.float64]

_LOOKS = 24
"""Number of sampled frames for the choice of a camera."""
_CALM = (0.3, 1.0)
"""Windows over which a camera's path is smoothed, horizontally and vertically, to remove the motion of steps; s."""
_FAR = 1.0
"""By default the camera follows a character that travels further than this, in multiples of its size."""


def cameras(
    model: Model,
    times: Floats,
    q: Floats,
    follow: str | bool | None,
    aspect: float,
    side: tuple[float, float, float],
    asked: Mapping[str, Any] | None = None,
    start: Floats | None = None,
) -> list[Camera]:
    """A camera for each of the poses (frames, nq) at `times` (s); see `poise.view.film.Film`.

    A scene file's camera settings refer to the pose `start`, by default the first one.
    """
    asked = asked or {}
    body = followed(model, q, asked_follow(follow, asked))
    angle = float(asked.get("field_of_view", Camera.field_of_view))
    looks = np.unique(np.linspace(0, len(q) - 1, min(_LOOKS, len(q))).round().astype(int))
    if body < 0:
        usual = Camera.looking_at(model, q[looks], aspect=aspect, side=side, field_of_view=angle)
        return [as_asked(usual, asked)] * len(q)
    path = calmed(times, _positions(model, q, body))
    corners = [corners_of(model, q[k], body) - path[k] for k in looks]
    usual = Camera.around(np.concatenate(corners), aspect=aspect, side=side, field_of_view=angle)
    first = path[0] if start is None else bodies(model, start).position[body]
    fixed = as_asked(usual, asked, first)
    return [
        Camera(_moved(fixed.position, here), _moved(fixed.target, here), fixed.up, fixed.field_of_view) for here in path
    ]


def asked_follow(follow: str | bool | None, asked: Mapping[str, Any]) -> str | bool | None:
    """The body to follow: as given, otherwise from the scene file's settings; a camera with a position there is fixed.

    >>> asked_follow(None, {"position": (3, 0, 1)}), asked_follow(None, {"follow": "hero"}), asked_follow(False, {})
    (False, 'hero', False)
    """
    if follow is not None:
        return follow
    wanted: str | None = asked.get("follow")
    return False if wanted is None and "position" in asked else wanted


def body_of(model: Model, name: str) -> int:
    """Number of a body by its name, or of the first one of a character."""
    own = [k for k, full in enumerate(model.body_names) if full.startswith(f"{name}/") and model.body_link[k] >= 0]
    if own and name not in model.body_names:
        return own[0]
    names = [full.rpartition("/")[0] for full in model.body_names if "/" in full]
    return model.body_names.index(
        resolve_name("body or character", name, list(dict.fromkeys([*model.body_names, *names])))
    )


def tree_of(model: Model, body: int) -> NDArray[np.bool_]:
    """(shapes,) bool: shapes of a body's tree."""
    link, solids = int(model.body_link[body]), model.solids
    if link < 0:
        return np.asarray(solids.body == body)
    return np.asarray((solids.link >= 0) & (model.link_root[np.maximum(solids.link, 0)] == model.link_root[link]))


def characters(model: Model) -> list[int]:
    """First bodies of the trees that have joints inside."""
    links = np.bincount(model.link_root, minlength=model.n_links) if model.n_links else np.zeros(0, int)
    return [int(model.link_body[root]) for root in np.flatnonzero(links > 1)]


def calmed(times: Floats, path: Floats) -> Floats:
    """A path (n, 3) at times (s), smoothed by a Gaussian without delay."""
    if len(path) < 3:
        return path
    apart = times[:, None] - times
    out = np.empty_like(path)
    for axis, width in ((slice(0, 2), _CALM[0]), (slice(2, 3), _CALM[1])):
        weight = np.exp(-0.5 * (apart / width) ** 2)
        # a local linear fit instead of a mean keeps straight paths exact up to their ends
        total, lean, square = weight.sum(1), (weight * -apart).sum(1), (weight * apart**2).sum(1)
        spread = np.maximum(total * square - lean**2, 1e-12)
        line = (square[:, None] * weight + lean[:, None] * weight * apart) / spread[:, None]
        out[:, axis] = line @ path[:, axis]
    return out


def followed(model: Model, q: Floats, follow: str | bool | None) -> int:
    """Number of the body to follow, or −1."""
    if isinstance(follow, str):
        return body_of(model, follow)
    found = characters(model)
    if follow is False or len(found) != 1:
        if follow is True:
            raise ValueError(f"follow: there are {len(found)} characters; name one, or a body")
        return -1
    if follow is True:
        return found[0]
    way = _positions(model, q[:: max(1, len(q) // _LOOKS)], found[0])
    size = np.ptp(corners_of(model, q[0], found[0]), axis=0)
    return found[0] if np.ptp(way, axis=0).max() > _FAR * size.max(initial=0.0) else -1


def _positions(model: Model, q: Floats, body: int) -> Floats:
    if not model.nq:
        return np.repeat(bodies(model, q[0]).position[None, body], len(q), axis=0)
    return np.asarray(bodies(model, q).position[:, body])


def corners_of(model: Model, q: Floats, body: int) -> Floats:
    """(n, 3) corners of boxes about the shapes of a body's tree; without shapes the body's position."""
    mine = tree_of(model, body) & (model.solids.kind != Solid.PLANE)
    found = box_corners(model.solids, *places(model, q))[mine].reshape(-1, 3)
    if not len(found):
        found = bodies(model, q).position[body] + 0.2 * np.array([(-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)])
    return np.asarray(found)


def _moved(point: tuple[float, float, float], by: Floats) -> tuple[float, float, float]:
    x, y, z = (float(a + b) for a, b in zip(point, by, strict=True))
    return (x, y, z)


def checked_side(side: object) -> tuple[float, float, float]:
    """A direction from the target to the eye."""
    try:
        x, y, z = (float(part) for part in side)  # type: ignore[attr-defined]
        good = all(math.isfinite(part) for part in (x, y, z)) and any((x, y, z))
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"side must be three numbers, a direction to the eye, found {side!r}")
    return (x, y, z)
