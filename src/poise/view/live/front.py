"""3-D view of a session in the browser: shapes, skeletons, ghosts, contacts with their forces, the dragged body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import bodies
from poise.model.shape_arrays import Solid
from poise.view.camera_paths import asked_follow, body_of, corners_of
from poise.view.live.forms import Color, add_floor, add_shape, add_skin, color_of, quats_of
from poise.view.live.session import Session
from poise.view.live.stage import cast_shadows, has_graphics
from poise.view.render_camera import Camera, as_asked

Floats = NDArray[np.float64]
Act = Callable[[Callable[[], None]], None]
"""Lets a function run between two steps."""

_GHOST: Color = (88, 129, 214)
_BONE: Color = (246, 190, 40)
_PUSH: Color = (226, 74, 36)
_PULL: Color = (30, 160, 90)
_FORCE_LENGTH = 0.6
"""Length of the arrow of a force equal to the weight of the heaviest character; m."""
_FOLLOW = 0.25
"""Time constant of the camera that follows a body; s."""
_NONE = np.zeros((1, 2, 3))


@dataclass
class Shown:
    """Flags of the drawn parts."""

    shapes: bool = True
    skeleton: bool = False
    contacts: bool = True
    shadows: bool = field(default_factory=has_graphics)
    ghost: bool = False
    beside: float = 0.9
    """Lateral offset of a ghost to the left of its character; m."""
    follow: bool = True


class Front:
    """The nodes of a session in a viser scene, under one node that moves so that the camera follows a character."""

    def __init__(self, server: Any, session: Session, act: Act) -> None:
        self.server, self.session, self.shown, self._act = server, session, Shown(), act
        self._eye = np.zeros(3)
        self.rebuild()

    # ---- building ----------------------------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Create the nodes of another model."""
        session, scene = self.session, self.server.scene
        model = self.model = session.model
        self._followed = followed_body(session)
        self._weight = max(1e-6, _weight(session))
        self._drawn: Any = None
        with self.server.atomic():
            scene.remove_by_name("/world")
            self._root = scene.add_frame("/world", show_axes=False)
            self._frames = [scene.add_frame(f"/world/{k}", show_axes=False) for k in range(model.n_bodies)]
            self._meshes = [self._add(k) for k in range(len(model.solids))]
            self._skins = [self._add_skin(k) for k in range(len(model.skins))]
            self._ghosts: list[dict[int, Any]] = []
            self._add_ghosts()
            self._lines = self._add_lines()
            self._eye = self._wanted_eye(bodies(model, session.q).position)
        self.draw()

    def _add(self, shape: int) -> Any:
        model, solids = self.model, self.model.solids
        body = int(solids.body[shape])
        alpha = float(solids.color[shape, 3])
        if Solid(int(solids.kind[shape])) == Solid.PLANE:
            return add_floor(self.server.scene, f"/world/floor{shape}", model, shape)
        if alpha <= 0.0:
            return None
        opacity = alpha if alpha < 1.0 else None
        node = add_shape(
            self.server.scene, f"/world/{body}/{shape}", model, shape, color_of(solids.color[shape]), opacity
        )
        if int(model.body_link[body]) >= 0 and self.session.live:
            self._let_drag(node, body)
        return node

    def _add_skin(self, skin: int) -> Any:
        color = self.model.skins.color[skin]
        alpha = float(color[3])
        if alpha <= 0.0:
            return None
        opacity = alpha if alpha < 1.0 else None
        return add_skin(self.server.scene, f"/world/skin{skin}", self.model, skin, color_of(color), opacity)

    def _let_drag(self, node: Any, body: int) -> None:
        """Enable dragging of a body with the mouse, in the plane of the screen."""

        async def dragged(event: Any) -> None:  # async, because plain callbacks run in any order
            start, end = (np.asarray(place) + self._eye for place in (event.start_position, event.end_position))
            if event.phase == "start":
                self._act(lambda: self.session.drag(body, start, end))
            elif event.phase == "update":
                self._act(lambda: self.session.move(end))
            else:
                self._act(self.session.release)

        node.on_drag("left")(dragged)

    def _add_ghosts(self) -> None:
        """Create the ghosts at their first use: they are as large as the characters themselves."""
        if self.shown.ghost and not self._ghosts:
            self._ghosts = [self._add_ghost(k) for k in range(len(self.session.ghosts))]

    def _add_ghost(self, number: int) -> dict[int, Any]:
        ghost, model, frames = self.session.ghosts[number], self.model, {}
        for body in ghost.bodies:
            name = f"/world/ghost{number}/{body}"
            frames[body] = self.server.scene.add_frame(name, show_axes=False)
            for shape in np.flatnonzero(model.solids.body == body).tolist():
                if model.solids.color[shape, 3] > 0.0:
                    add_shape(self.server.scene, f"{name}/{shape}", model, shape, _GHOST, 0.35)
        return frames

    def _add_lines(self) -> dict[str, Any]:
        scene = self.server.scene
        return {
            "bones": scene.add_line_segments("/world/bones", _NONE, _BONE, thickness=0.02, visible=False),
            "forces": scene.add_arrows(
                "/world/forces", _NONE, _PUSH, shaft_radius=0.009, head_radius=0.024, head_length=0.05, visible=False
            ),
            "points": scene.add_point_cloud(
                "/world/points", _NONE[0], _PUSH, point_size=0.02, point_shape="circle", visible=False
            ),
            "pull": scene.add_line_segments("/world/pull", _NONE, _PULL, thickness=0.012, visible=False),
        }

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def show(self, **what: Any) -> None:
        """Show or hide parts."""
        for name, value in what.items():
            setattr(self.shown, name, value)
        if "shadows" in what:
            cast_shadows(self.server.scene, self.shown.shadows)
        dim = self.shown.skeleton and self.shown.shapes
        for shape, node in enumerate(self._meshes):
            if node is None or Solid(int(self.model.solids.kind[shape])) == Solid.PLANE:
                continue
            alpha = float(self.model.solids.color[shape, 3])
            moves = int(self.model.solids.link[shape]) >= 0
            node.visible = self.shown.shapes or not moves
            node.opacity = 0.35 * alpha if dim and moves else (alpha if alpha < 1.0 else None)
        for skin, node in enumerate(self._skins):
            if node is not None:
                alpha = float(self.model.skins.color[skin, 3])
                node.visible = self.shown.shapes
                node.opacity = 0.35 * alpha if dim else (alpha if alpha < 1.0 else None)
        self._add_ghosts()
        for frames in self._ghosts:
            for frame in frames.values():
                frame.visible = self.shown.ghost
        self._drawn = None
        self.draw()

    def draw(self, seconds: float = 0.0) -> bool:
        """Update all nodes to the shown moment, `seconds` of wall time after the last one; returns whether it moved."""
        moment = self.session.now
        place = bodies(self.model, moment.state.q)
        moved = self._look_after(place.position, seconds)
        if moment is self._drawn and not moved:
            return False
        with self.server.atomic():
            self._root.position = -self._eye
            if moment is not self._drawn:
                self._lay(self._frames, range(self.model.n_bodies), place)
                self._bend_skins(place)
                self._draw_ghosts(moment.time)
                self._draw_lines(moment, place.position)
        self._drawn = moment
        return True

    def _lay(self, frames: Any, numbers: Any, place: Any, shift: float = 0.0) -> None:
        quats = quats_of(place.rotation)
        for k in numbers:
            frames[k].position, frames[k].wxyz = place.position[k] + (0.0, shift, 0.0), quats[k]

    def _bend_skins(self, place: Any) -> None:
        skins, quats = self.model.skins, quats_of(place.rotation)
        for k, node in enumerate(self._skins):
            for bone, handle in zip(skins.bones(k), () if node is None else node.bones, strict=node is not None):
                body = int(skins.bone_body[bone])
                if body >= 0:
                    handle.position, handle.wxyz = place.position[body], quats[body]
                else:
                    handle.position, handle.wxyz = np.zeros(3), np.array((1.0, 0.0, 0.0, 0.0))

    def _draw_ghosts(self, time: float) -> None:
        if not self.shown.ghost:
            return
        for ghost, frames in zip(self.session.ghosts, self._ghosts, strict=True):
            self._lay(frames, ghost.bodies, bodies(self.model, ghost.at(time)), self.shown.beside)

    def _draw_lines(self, moment: Any, position: Floats) -> None:
        model, lines = self.model, self._lines
        lines["bones"].visible = self.shown.skeleton
        if self.shown.skeleton:
            place = position[model.link_body]
            carried = np.flatnonzero(model.link_parent >= 0)
            pairs = np.stack((place[model.link_parent[carried]], place[carried]), axis=1)
            lines["bones"].points = (pairs if len(pairs) else _NONE).astype(np.float32)
        found = moment.contacts
        there = self.shown.contacts and len(found.depth) > 0
        lines["forces"].visible = lines["points"].visible = there
        if there:
            lines["forces"].points = self._arrows(found).astype(np.float32)
            lines["points"].points = np.asarray(found.point, np.float32)
        lines["pull"].visible = moment.pull is not None
        if moment.pull is not None:
            lines["pull"].points = np.array(moment.pull, np.float32)[None]

    def _arrows(self, found: Any) -> Floats:
        """(n, 2, 3) arrows from each contact along its force on the supported body; m."""
        length = _FORCE_LENGTH / self._weight
        arrow = length * found.force
        size = np.linalg.norm(arrow, axis=1, keepdims=True)
        arrow *= np.minimum(1.0, 1.5 / np.maximum(size, 1e-9))
        return np.stack((found.point, found.point + arrow), axis=1)

    # ---- following ---------------------------------------------------------------------------------------------------

    def _wanted_eye(self, position: Floats) -> Floats:
        """Target position of the moving node: below the followed body; m."""
        if self._followed is None:
            return np.zeros(3)
        x, y, _ = position[self._followed]
        return np.array((x, y, 0.0))

    def _look_after(self, position: Floats, seconds: float) -> bool:
        if not self.shown.follow or self._followed is None:
            return False
        off = self._wanted_eye(position) - self._eye
        if np.linalg.norm(off) < 1e-3:
            return False
        self._eye = self._eye + off * (1.0 - np.exp(-seconds / _FOLLOW))
        return bool(seconds > 0.0)


def followed_body(session: Session) -> int | None:
    """The body that the camera follows: the scene's setting, otherwise the root of the largest of several trees."""
    model = session.model
    told = asked_follow(None, session.camera)
    if told is not None:
        return body_of(model, told) if isinstance(told, str) else None
    roots, counts = np.unique(model.link_root, return_counts=True)
    return int(model.link_body[roots[counts.argmax()]]) if len(roots) and counts.max() > 1 else None


def first_camera(session: Session) -> Camera:
    """The scene's camera; otherwise one with the followed character in view, or all moving bodies."""
    model, q, followed = session.model, session.q, followed_body(session)
    look = {"aspect": 1.4, "field_of_view": float(session.camera.get("field_of_view", Camera.field_of_view))}
    if followed is None:
        return as_asked(Camera.looking_at(model, q, margin=1.4, **look), session.camera)
    return as_asked(Camera.around(corners_of(model, q, followed), margin=1.8, **look), session.camera)


def _weight(session: Session) -> float:
    """Weight of the heaviest tree; N."""
    model = session.model
    masses = [float(model.link_mass[model.link_root == root].sum()) for root in np.unique(model.link_root)]
    return 9.81 * max(masses, default=1.0)
