"""Files in and out: what others wrote becomes a Scene."""

from poise.io.load import load
from poise.io.mjcf import load_mjcf
from poise.io.urdf import load_urdf

__all__ = ["load", "load_mjcf", "load_urdf"]
