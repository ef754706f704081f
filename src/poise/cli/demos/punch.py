"""A punch hits a character with torque limits, which is pushed back and returns to its pose (KOK §1, §8.3)."""

from __future__ import annotations

import numpy as np

import poise
from poise.characters import clips, humanoid
from poise.control import correction
from poise.sim import Recording, World

SECONDS, APART = 3.0, 0.72
"""s; m."""
SURPRISED = {"legs": 250.0, "trunk": 40.0, "neck": 8.0, "arms": 10.0}
"""Torque limits of the character that is hit; N·m."""
MOMENTS = (0.2, 0.36, 0.5, 0.7, 1.0, 2.0)
FOLLOW = "other"


def scene() -> poise.Scene:
    """A boxer and a standing character."""
    stage = poise.Scene(name="punch")
    stage.add_ground(friction=0.9)
    boxer = stage.add(humanoid(), name="boxer")
    other = stage.add(humanoid(), name="other")
    boxer.track(clips.punch(), strength={"legs": 300.0, "trunk": 300.0, "arms": 100.0})
    stand = clips.stand().slice(0.0, SECONDS).shifted((APART, 0.0, 0.0), yaw=np.pi)
    other.track(stand, strength=SURPRISED, give=0.15)
    return stage


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Deviation of joints, and time of their return."""
    told = correction(recording, world.controllers["other tracking"])
    hit = next((e.time for e in recording.events if set(e.names) == {"boxer/hand_r", "other/torso"}), None)
    if hit is None:
        return {"punch": "it has missed"}
    worst = told.error_deg.max(axis=1)
    k = int(told.error_deg.max(axis=0).argmax())
    off = np.flatnonzero(worst > 5.0)
    back = f"within 5° again after {recording.time[off[-1]] - hit:.2f} s" if len(off) else "hardly moved"
    help = np.linalg.norm(told.help_force, axis=1).max()
    return {
        "punch": f"meets the torso at {hit:.2f} s",
        "gives way": f"{told.joints[k].rpartition('/')[2]} by {worst.max():.0f}°, {back}",
        "external help": f"{help:.0f} N at most, of {told.weight:.0f} N of weight",
    }
