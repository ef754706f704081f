"""A humanoid walks, is pulled back by one hand, and finds its way again."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import poise
from poise.characters import clips, humanoid
from poise.control import Drag
from poise.view.gif import save_gif
from poise.view.render import Camera, Painter
from poise.view.render_marks import line

DURATION, PULLED, LET_GO = 5.0, 1.5, 2.5
"""s."""
BACK = (-0.5, -0.35, 0.1)
"""Where the hand is pulled, from where it is taken; m."""


def scene(seconds: float = 60.0) -> poise.Scene:
    """A person on a level floor who follows a walk by motors; for the viewer too."""
    stage = poise.Scene(name="walk")
    stage.add_ground(friction=0.9)
    person = humanoid(height=1.75, mass=70.0)
    hero = stage.add(person, name="hero")
    # the clip was made for this person: its feet stand already, and no parts overlap
    walk = clips.walk(person, speed=1.2).slice(0.0, seconds)
    hero.track(walk, strength={"legs": 300.0, "trunk": 200.0, "arms": 40.0}, floor=None, pass_overlaps=False)
    return stage


def run(out: Path) -> int:
    """Simulate, pull, draw, tell."""
    world = scene(DURATION).build()
    began = time.perf_counter()
    recording = world.run(PULLED)
    drag = Drag("hero/hand_r")
    world.add_controller(drag, name="drag")
    drag.target = world.body("hero/hand_r").position + np.array(BACK)
    goal = drag.target
    pulled = world.run(LET_GO - PULLED)
    world.remove_controller("drag")
    free = world.run(DURATION - LET_GO)
    wall = time.perf_counter() - began
    film = out / "walk.gif"
    _film(world.model, [recording, pulled, free], goal, film)
    tracked = world.controllers["hero tracking"]
    off = [_error(part, tracked) for part in (recording, pulled, free)]
    print(f"{DURATION:g} s of walking in {wall:.1f} s, {len(world.motors)} motors")
    print(f"  on its way          joints are off by {off[0].mean():.1f}° on the mean")
    print(f"  pulled by the hand  up to {off[1].max():.0f}°, by no more than {drag.strength:.0f} N")
    print(f"  let go              {off[2][-1]:.1f}° after {DURATION - LET_GO:g} s")
    print(f"{film}\nTo pull at it yourself: poise view walk")
    return 0 if off[2][-1] < 5.0 else 1


def _error(part: poise.sim.Recording, tracked: poise.control.Tracking) -> np.ndarray:
    """(frames,) root of the mean square of the errors of joints; degrees."""
    wanted = np.array([tracked.at(now).q for now in part.time])
    off = poise.dynamics.difference(part.model, part.q, wanted)[:, 6:]
    return np.asarray(np.degrees(np.sqrt((off**2).mean(axis=1))))


def _film(model: poise.Model, parts: list[poise.sim.Recording], goal: np.ndarray, path: Path) -> None:
    painter, frames = Painter(model, (400, 300)), []
    for number, part in enumerate(parts):
        for k in range(0, len(part), 10):
            x = float(part.q[k, 0])
            camera = Camera(position=(x + 1.2, -3.6, 1.5), target=(x, 0.0, 0.9))
            hand = poise.dynamics.bodies(model, part.q[k]).position[model.body_names.index("hero/hand_r")]
            marks = [line(hand, goal, 0.01, (0.1, 0.6, 0.35))] if number == 1 else []
            frames.append(painter.draw(part.q[k], camera, marks=marks))
    save_gif(path, frames, 1.0 / 24.0)
