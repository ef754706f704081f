"""Procedural clips for the built-in characters, with human proportions, speeds and styles.

Inverse kinematics of legs and arms is in closed form (see `figure`), so that a clip is built in a fraction of a second.
Each function takes a character and returns a `poise.motion.Clip` for it (key-frames for a bird).
"""

from poise.characters.clips.flying import beat_frequency, wing_beat
from poise.characters.clips.gait import run, walk
from poise.characters.clips.leaping import jump
from poise.characters.clips.standing import squat, stand, wave
from poise.characters.clips.striking import punch

__all__ = ["beat_frequency", "jump", "punch", "run", "squat", "stand", "walk", "wave", "wing_beat"]
