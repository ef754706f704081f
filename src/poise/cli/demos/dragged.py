"""A walker is pulled about by one hand, as by a mouse, and finds the way again (VON §5.5: arms of limited strength)."""

from __future__ import annotations

import numpy as np

import poise
from poise.characters import clips, humanoid
from poise.cli.demos.scenery import SEEN
from poise.control import Drag, Reference, correction
from poise.dynamics import bodies
from poise.motion import Clip, KeyedPath
from poise.sim import Recording, StateToAct, Targets, World

SECONDS, SPEED = 6.0, 1.2
STRENGTH = {"legs": 300.0, "trunk": 60.0, "arms": 20.0}
"""Greatest torques; N·m."""
PULLED, LET_GO = 1.5, 3.3
"""s."""
PULL = 250.0
"""Greatest force of the mouse; N."""
WAY = ((0.0, 0.0, 0.0), (0.45, -0.5, 0.35), (1.05, -0.85, 0.75), (1.6, -0.5, 0.5), (1.75, -0.9, 0.2))
"""Where the mouse goes, from where the hand is taken; m."""
FOLLOW, DISTANCE = "hero", 3.8
MOMENTS = (1.4, 1.95, 2.4, 2.85, 3.25, 5.0)


def walker(seconds: float = 60.0) -> poise.Scene:
    """A person on a level floor that tracks a walk by motors, without the mouse spring."""
    stage = poise.Scene(name="dragged")
    stage.add_ground(friction=0.9)
    person = humanoid(height=1.75, mass=70.0)
    hero = stage.add(person, name="hero")
    # the clip was made for this character: its feet already stand, and no parts overlap
    hero.track(clips.walk(person, speed=SPEED).slice(0.0, seconds), strength=STRENGTH, floor=None, pass_overlaps=False)
    return stage


def scene() -> poise.Scene:
    """The walker, and the mouse, shown as a green ball."""
    stage = walker(SECONDS)
    path = mouse_path(stage)
    green = poise.sphere(0.03, color=(0.1, 0.6, 0.35, 1.0), **SEEN)
    stage.add(green, name="mouse", kinematic=path)
    stage.controllers.append(("mouse", lambda: Mouse(path)))
    return stage


def walk() -> Clip:
    """The reference motion; the output is written with its skeleton."""
    return clips.walk(humanoid(height=1.75, mass=70.0), speed=SPEED).slice(0.0, SECONDS)


CORRECTED = walk


def mouse_path(stage: poise.Scene) -> KeyedPath:
    """The mouse's path: it waits on the undisturbed path of the hand, and then follows its own."""
    model = stage.compile()
    q = Reference(walk(), model).coordinates(model, PULLED).q
    hand = bodies(model, q).position[model.body_index("hero/hand_r")]
    times = np.linspace(PULLED, LET_GO, len(WAY))
    return KeyedPath(times, hand + np.array(WAY))


class Mouse:
    """Controller that drags the hand along a path for a time."""

    def __init__(self, path: KeyedPath) -> None:
        self.path, self.drag = path, Drag("hero/hand_r", strength=PULL)

    def bind(self, model: poise.Model, /) -> None:
        """Find the hand."""
        self.drag.bind(model)

    def first(self, state: poise.State) -> None:
        """Leave the initial state of the world unchanged."""

    def update(self, state: StateToAct, /) -> Targets | None:
        """The spring's row of the next step."""
        self.drag.target = self.path(state.time).position if PULLED <= state.time < LET_GO else None
        return self.drag.update(state)


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Tracking errors before, during and after the drag."""
    told = correction(recording, world.controllers["hero tracking"])
    time, model = recording.time, recording.model
    before, held = (time > 0.5) & (time < PULLED), (time >= PULLED) & (time < LET_GO)
    mean, worst = told.error_deg.mean(axis=1), told.error_deg.max(axis=1)
    place = bodies(model, recording.q).position
    gap = np.linalg.norm(place[:, model.body_index("hero/hand_r")] - place[:, model.body_index("mouse")], axis=1)
    trunk = [j for j, name in enumerate(told.joints) if name.endswith(("waist", "chest", "spine", "neck"))]
    late = time[(time >= LET_GO) & (worst > worst[before].max() + 2.0)]
    k = int(told.error_deg[held].max(axis=0).argmax())
    return {
        "walk": f"joints off by {mean[before].mean():.1f}° on the mean, {worst[before].max():.1f}° at most",
        "pulled": f"by {PULL:.0f} N at most; the hand is within {1e3 * gap[held].max():.0f} mm of the mouse",
        "gives way": f"{told.joints[k].rpartition('/')[2]} by {worst[held].max():.0f}°, "
        f"the trunk by {told.error_deg[held][:, trunk].max():.0f}°",
        "recovery": f"as before {late[-1] - LET_GO:.2f} s after it is let go" if len(late) else "at once",
    }
