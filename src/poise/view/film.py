"""Pictures and films of recordings by ray casting, without a graphics card or a window."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import bodies
from poise.io.recording_frames import checked_rate, frames_of
from poise.model.errors import SceneError, did_you_mean
from poise.model.model import Model
from poise.model.skins import no_skins
from poise.sim.progress import Progress
from poise.view.camera_paths import body_of, cameras, characters, checked_side, tree_of
from poise.view.gif import save_gif
from poise.view.motion_sampler import motion_poses, poses_at
from poise.view.mp4 import save_mp4
from poise.view.png import Picture, save_png
from poise.view.render import Camera, Look, Mark, Painter, line, skeleton

if TYPE_CHECKING:
    from poise.sim.recording import Recording

Floats = NDArray[np.float64]
_GHOST = np.array((0.42, 0.62, 0.95))
"""Colour that is mixed into a ghost's colours."""
_SHEER = 0.55
"""Opacity of a ghost."""
_TRAIL = 3.0
"""Duration of a trail; s."""
_COLORS = ((0.90, 0.30, 0.12), (0.13, 0.47, 0.85), (0.15, 0.62, 0.30), (0.60, 0.30, 0.75), (0.85, 0.62, 0.10))
_LONGEST = 100_000
"""Maximum number of pictures of a film."""


@dataclass(frozen=True, kw_only=True)
class Film:
    """Options of pictures and films of a recording."""

    size: tuple[int, int] = (640, 480)
    """Width and height; pixels."""
    camera: Camera | None = None
    """A fixed camera."""
    follow: str | bool | None = None
    """A character or body that the camera follows. Default: the one of the scene file, otherwise the only character if
    it travels far."""
    side: tuple[float, float, float] = (1.6, -1.0, 0.5)
    """Direction from the target to the eye."""
    ghost: Any = None
    """A second motion, shown transparent: a recording, a clip, key-frames, or times and coordinates."""
    ghost_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Lateral offset of the ghost; m."""
    trails: Sequence[str] = ()
    """Bodies whose trails are drawn."""
    contacts: bool = False
    """Whether recorded contacts are drawn."""
    bones: bool = False
    """Whether the skeleton is drawn."""
    smooth: bool = True
    shadows: bool = True
    look: Look | None = None

    def pictures(self, recording: Recording, times: Floats, first: int = 0) -> Iterator[Picture]:
        """Yield pictures at times of the recording (s), from the `first` of them on."""
        model, time = recording.model, recording.time
        width, height = self.size
        q = poses_at(model, time, recording.q, times)
        painter = Painter(model, self.size, smooth=self.smooth, shadows=self.shadows, look=self.look)
        side = checked_side(self.side)
        # an explicit side overrides the scene file's camera
        asked = recording.options.get("camera") if self.side == Film.side else None
        views = (
            [self.camera] * len(q)
            if self.camera
            else cameras(model, times, q, self.follow, width / height, side, asked, recording.q[0])
        )
        ghost = None if self.ghost is None else Ghost(model, self, times)
        trails = _Trails(model, self.trails, times, q)
        for k in range(first, len(q)):
            pose, view = q[k], views[k]
            marks = trails.marks(k, view)
            if self.bones:
                marks += skeleton(model, pose)
            touching = recording.frame(recording.at(times[k])).contacts if self.contacts else None
            image = painter.draw(pose, view, contacts=touching, marks=marks)
            yield image if ghost is None else ghost.over(image, k, view)


class Ghost:
    """A second, transparent motion of the characters of a model."""

    def __init__(self, model: Model, film: Film, times: Floats) -> None:
        try:
            self.q = motion_poses(model, film.ghost, times)
        except (TypeError, ValueError) as error:
            raise SceneError(str(error), field="ghost") from None
        own = characters(model) or [int(body) for body in model.link_body]
        solids = model.solids
        mine = np.zeros(len(solids), bool)
        for body in own:
            mine |= tree_of(model, body)
        for root in {int(model.link_root[model.body_link[body]]) for body in own}:
            start = int(model.primitive_q_start[model.link_primitive_start[root]])
            free = [j for j, b in enumerate(model.joint_body) if int(model.body_link[b]) == root]
            if free and model.joint_kinds[free[0]] == "free":
                self.q[:, start : start + 3] += film.ghost_offset
        moving = solids.link >= 0
        color = solids.color.copy()
        color[moving, 3] = 0.0
        self._empty = self._painter(model, film, color)
        color = color.copy()
        color[mine, :3] = 0.4 * solids.color[mine, :3] + 0.6 * _GHOST
        color[mine, 3] = solids.color[mine, 3]
        self._ghost = self._painter(model, film, color)

    @staticmethod
    def _painter(model: Model, film: Film, color: Floats) -> Painter:
        other = replace(model, solids=replace(model.solids, color=color), skins=no_skins())
        return Painter(other, film.size, smooth=False, shadows=False, look=film.look)

    def over(self, image: Picture, k: int, view: Camera | None) -> Picture:
        """The picture with the ghost of the k-th frame: blended where it differs from the empty scene."""
        here = self._ghost.draw(self.q[k], view)
        mine = (here != self._empty.draw(self.q[k], view)).any(axis=2)
        mixed = image.astype(np.float32)
        mixed[mine] += _SHEER * (here[mine] - mixed[mine])
        return np.asarray(np.round(mixed), np.uint8)


class _Trails:
    """Trails of bodies."""

    def __init__(self, model: Model, names: Sequence[str], times: Floats, q: Floats) -> None:
        names = [names] if isinstance(names, str) else list(names)
        numbers = [body_of(model, name) for name in names]
        place = bodies(model, q).position if model.nq else np.repeat(bodies(model, q[0]).position[None], len(q), axis=0)
        self.times, self.paths = times, [np.asarray(place[:, number]) for number in numbers]

    def marks(self, k: int, view: Camera | None) -> list[Mark]:
        """Lines along the recent paths of bodies, thicker towards the present."""
        first = int(np.searchsorted(self.times, self.times[k] - _TRAIL))
        distance = view.distance if view is not None else 4.0
        found: list[Mark] = []
        for number, path in enumerate(self.paths):
            color = _COLORS[number % len(_COLORS)]
            for j in range(first, k):
                age = (self.times[k] - self.times[j]) / _TRAIL
                found.append(line(path[j], path[j + 1], distance * (0.0008 + 0.0022 * (1.0 - age)), color))
        return found


def save_still(
    recording: Recording, path: str | os.PathLike[str], *, time: float | None = None, **options: Any
) -> None:
    """Write a picture of one frame as PNG: at `time` (s), by default the last one. Options are those of `Film`.

    >>> import poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 0.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_still(scene.build(dt=0.01).run(0.1), f"{folder}/ball.png", size=(64, 48))
    """
    film = film_of(options, ("time",))
    frames_of(recording)
    first, last = float(recording.time[0]), float(recording.time[-1])
    now = last if time is None else float(time)
    if not first <= now <= last:
        raise SceneError(f"must be from {first:g} to {last:g} s, found {now:g}", field="time")
    # trails need the motion before that time
    start = max(first, now - _TRAIL) if film.trails else now
    times = np.append(np.arange(start, now - 1e-9, 1.0 / 30.0), now)
    with _as_scene_errors():
        save_png(Path(path), next(film.pictures(recording, times, first=len(times) - 1)))


def save_film(
    recording: Recording,
    path: str | os.PathLike[str],
    *,
    fps: float = 30.0,
    speed: float = 1.0,
    progress: bool | None = None,
    **options: Any,
) -> None:
    """Write a film of a recording as GIF, or as mp4 by ffmpeg, chosen by the suffix. Options are those of `Film`.

    `fps`: pictures per second of the film; `speed`: seconds of the recording per second of the film. A terminal shows a
    progress line (`progress`: always or never).

    >>> import poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 1.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_film(scene.build(dt=0.01).run(0.2), f"{folder}/ball.gif", size=(64, 48), fps=10)
    """
    film = film_of(options, ("fps", "speed", "progress"))
    times = film_times(recording, fps, speed)
    bar = Progress(len(times) / checked_rate(fps), progress)
    images = _told(film.pictures(recording, times), bar, checked_rate(fps))
    try:
        with _as_scene_errors():
            if Path(path).suffix.lower() == ".mp4":
                save_mp4(path, images, checked_rate(fps))
            else:
                save_gif(Path(path), images, 1.0 / checked_rate(fps))
    finally:
        bar.close()


def film_of(options: dict[str, Any], also: Sequence[str] = ()) -> Film:
    """A film with some options; errors of unknown options suggest the nearest name."""
    known = [item.name for item in fields(Film)]
    for option in options:
        if option not in known:
            hint = did_you_mean(option, [*known, *also])
            raise SceneError(f'pictures and films take no option "{option}"{hint}')
    return Film(**options)


def film_times(recording: Recording, fps: Any, speed: Any) -> Floats:
    """Times of a recording (s) of the pictures of a film."""
    frames_of(recording)
    rate = checked_rate(fps)
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0.0 < speed < math.inf:
        raise SceneError(f"must be more than 0, found {speed!r}", field="speed")
    start, end = float(recording.time[0]), float(recording.time[-1])
    count = math.floor((end - start) / speed * rate + 1e-6) + 1
    if count > _LONGEST:
        raise SceneError(f"{count} pictures are too many, {_LONGEST} the most: give fewer with fps", field="fps")
    return np.asarray(start + np.arange(count) * (speed / rate), np.float64)


def _told(images: Iterable[Picture], bar: Progress, fps: float) -> Iterator[Picture]:
    for k, image in enumerate(images):
        yield image
        bar.tell((k + 1) / fps)


@contextmanager
def _as_scene_errors() -> Iterator[None]:
    """Convert errors of options to `SceneError`."""
    try:
        yield
    except SceneError:
        raise
    except (TypeError, ValueError) as error:
        raise SceneError(str(error)) from error
