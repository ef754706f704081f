"""Clips of our own making for the built-in characters: looks, speeds and sizes as people have them.

Legs and arms are laid in closed form (see `figure`), so that a clip is built in a fraction of a second. Each function
takes the character that it is for, and gives a `poise.motion.Clip` (of a bird: key-frames).
"""

from poise.characters.clips.flying import beat_frequency, wing_beat
from poise.characters.clips.gait import run, walk
from poise.characters.clips.leaping import jump
from poise.characters.clips.standing import squat, stand, wave
from poise.characters.clips.striking import punch

__all__ = ["beat_frequency", "jump", "punch", "run", "squat", "stand", "walk", "wave", "wing_beat"]
