"""Data of a page: names, shapes, poses, contacts, curves, and the camera."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.ray_casting.rays import places
from poise.dynamics.state_queries import bodies
from poise.io.recording_frames import frames_of
from poise.model.errors import SceneError
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.sim.recording import Recording
from poise.view.camera_paths import asked_follow, body_of
from poise.view.page.curves import chart_list
from poise.view.page.forms import PLACES, shape_list, skin_list
from poise.view.page.motions import Ghost, Poses, distances, ghost_of, link_poses
from poise.view.page.packing import pack
from poise.view.render_camera import Camera, as_asked, bounds, box_corners

Floats = NDArray[np.float64]
_TURN, _RISE = -0.56, 0.26
"""Default camera angles, the same as in the page's script; rad."""
TURNS = 1.0 / 65536
"""Step of the numbers of quaternions."""
TIMES = 1e-6
"""Step of times; s."""


def page_content(
    recording: Recording,
    *,
    title: str | None = None,
    about: str = "",
    ghost: Any = None,
    trails: Sequence[str] = (),
    follow: str | bool | None = None,
    fps: float = 60.0,
) -> dict[str, Any]:
    """The data of a page, ready for JSON."""
    kept = _shown(recording, fps)
    model = recording.model
    if isinstance(trails, str):
        trails = (trails,)
    poses = link_poses(model, recording.time[kept], recording.q[kept])
    shade = None if ghost is None else ghost_of(ghost, model, poses.time, fps)
    asked = recording.options.get("camera", {})
    told = asked_follow(follow, asked)
    view = _view(model, recording.q[kept], True if told is None else told)
    origin = np.array(view.pop("origin"))
    shapes, meshes = shape_list(model, origin)
    return {
        "title": model.name if title is None else str(title),
        "about": str(about),
        "facts": _facts(recording, len(kept)),
        "origin": origin.tolist(),
        "links": [model.body_names[b] for b in model.link_body],
        "parent": model.link_parent.tolist(),
        "poses": _pose_streams(poses, origin),
        "ghost": None if shade is None else _ghost_streams(shade, origin, view["radius"]),
        "shapes": shapes,
        "meshes": meshes,
        "skins": skin_list(model, origin),
        "contacts": _contacts(recording, kept, origin),
        "charts": chart_list(recording, kept, None if shade is None else distances(poses, shade)),
        "view": view | _eye(asked, origin, view["radius"]) | {"trails": [_link(model, name) for name in trails]},
    }


def _shown(recording: Any, fps: Any) -> NDArray[np.intp]:
    """Indices of the shown frames, always with the last one."""
    if not isinstance(recording, Recording):
        raise SceneError(f"must be a Recording, as `world.run` gives, found {recording!r:.80}", field="recording")
    frames = frames_of(recording, fps)
    if (np.diff(recording.time) < 0.0).any():
        raise SceneError("the times of the frames go back: show its parts one by one", field="recording")
    return np.union1d(frames, [len(recording) - 1]).astype(np.intp)


def _pose_streams(poses: Poses, origin: Floats) -> dict[str, Any]:
    return {
        "time": pack(poses.time, TIMES),
        "position": pack(poses.position - origin, PLACES),
        "turn": pack(poses.turn, TURNS),
    }


def _ghost_streams(ghost: Ghost, origin: Floats, radius: float) -> dict[str, Any]:
    """Poses of the ghost; `shift` is its lateral offset."""
    shift = [0.0, round(1.2 * radius, 4), 0.0]
    return _pose_streams(ghost.poses, origin) | {"links": ghost.links.tolist(), "shift": shift}


def _contacts(recording: Recording, kept: NDArray[np.intp], origin: Floats) -> dict[str, Any] | None:
    """Points, and forces on the body of the two that can move."""
    contacts, model = recording.contacts, recording.model
    if contacts is None:
        return None
    chosen = [np.arange(contacts.start[k], contacts.start[k + 1]) for k in kept]
    each = np.concatenate([np.zeros(0, np.intp), *chosen]).astype(np.intp)
    link = model.solids.link[contacts.shapes[each]] if len(each) else np.zeros((0, 2), np.int32)
    sign = np.where((link[:, 1] < 0) & (link[:, 0] >= 0), -1.0, 1.0)
    force = np.nan_to_num(contacts.force[each] * sign[:, None])
    sizes = np.linalg.norm(force, axis=1)
    pushing = sizes[sizes > 0.0]
    # one very large impact must not make all other arrows tiny
    typical = float(np.quantile(pushing, 0.9)) if len(pushing) else 1.0
    return {
        "count": pack([len(part) for part in chosen], 1.0),
        "point": pack(np.nan_to_num(contacts.point[each]) - origin, PLACES),
        "force": pack(force, typical / 4096),
        "typical": typical,
    }


def _view(model: Model, q: Floats, follow: str | bool) -> dict[str, Any]:
    """The initial view: the followed body, or all moving bodies, over some frames."""
    link = _followed(model, follow)
    solids = model.solids
    some = q[np.linspace(0, len(q) - 1, min(len(q), 20)).astype(int)]
    seen = [places(model, pose) for pose in some]
    if link >= 0:
        # the camera follows the body, so that only the distances of its parts from it count
        way = bodies(model, some).position[:, model.link_body[link]]
        own = (solids.link >= 0) & (model.link_root[np.maximum(solids.link, 0)] == model.link_root[link])
        found = [
            box_corners(solids, *now)[own].reshape(-1, 3) - (at - way[0]) for now, at in zip(seen, way, strict=True)
        ]
    else:
        found = [bounds(solids, *now) for now in seen]
    corners = np.concatenate(found)
    corners = corners[np.isfinite(corners).all(axis=1)]
    if not len(corners):
        corners = np.array([(-0.5, -0.5, 0.0), (0.5, 0.5, 1.0)])
    low, high = corners.min(axis=0), corners.max(axis=0)
    origin = np.round(0.5 * (low + high), 3)
    radius = max(0.5 * float(np.linalg.norm(high - low)), 1e-3)
    return {"origin": origin.tolist(), "radius": radius, "follow": link, "floor": _floor(model, origin)}


def _eye(asked: Mapping[str, Any], origin: Floats, radius: float) -> dict[str, Any]:
    """The scene file's camera in the page's parameters: azimuth, elevation and distance from a point; z is up."""
    if not asked.keys() & {"position", "target", "field_of_view"}:
        return {}
    angle = float(asked.get("field_of_view", Camera.field_of_view))
    side = np.array((math.cos(_RISE) * math.cos(_TURN), math.cos(_RISE) * math.sin(_TURN), math.sin(_RISE)))
    away = 1.12 * radius / math.sin(0.5 * angle)
    usual = Camera(tuple(origin + away * side), tuple(origin), field_of_view=angle)
    camera = as_asked(usual, {name: value for name, value in asked.items() if name != "up"})
    x, y, z = np.subtract(camera.position, camera.target).tolist()
    eye = {"yaw": math.atan2(y, x), "pitch": math.asin(z / camera.distance), "distance": camera.distance}
    shift = np.subtract(camera.target, origin).tolist()
    return {"eye": eye | {"shift": shift, "angle": camera.field_of_view}}


def _floor(model: Model, origin: Floats) -> float | None:
    """Height of a level plane, from the origin."""
    level = (model.solids.kind == Solid.PLANE) & (model.solids.link < 0)
    heights = model.solids.position[level, 2]
    return float(heights.max() - origin[2]) if len(heights) else None


def _followed(model: Model, follow: str | bool) -> int:
    """The link that the camera follows, −1 for none; default: the root of the character with most links and mass."""
    if isinstance(follow, str):
        return _link(model, follow)
    if not follow or not model.n_links:
        return -1
    size = np.bincount(model.link_root, minlength=model.n_links)
    mass = np.bincount(model.link_root, weights=model.link_mass, minlength=model.n_links)
    roots = sorted(range(model.n_links), key=lambda k: (size[k], mass[k]), reverse=True)
    return int(roots[0])


def _link(model: Model, name: str) -> int:
    link = int(model.body_link[body_of(model, name)])
    if link < 0:
        raise SceneError(f'body "{name}" never moves: there is nothing to follow')
    return link


def _facts(recording: Recording, frames: int) -> list[tuple[str, str]]:
    """Facts below the picture."""
    options, model = recording.options, recording.model
    time = recording.time
    facts = [
        ("Model", f"{model.name}: {model.n_bodies} bodies, {model.nv} degrees of freedom"),
        ("Shown", f"{frames} of {len(time)} recorded frames, {time[0]:g} to {time[-1]:g} s"),
        ("Exact to", f"{1e3 * PLACES:g} mm within 100 km, {math.degrees(2.0 * TURNS):.1g}°, {1e6 * TIMES:g} µs"),
    ]
    if "dt" in options:
        facts.append(("Step", f"{options['dt']:g} s"))
    if "formulation" in options:
        formulation = dict(options["formulation"])
        name = formulation.pop("name", "")
        told = ", ".join(f"{key} {value}" for key, value in formulation.items() if isinstance(value, str | int | float))
        facts.append(("Formulation", f"{name}: {told}" if told else str(name)))
    versions = options.get("versions", {})
    if versions:
        facts.append(("Versions", ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))))
    return facts
