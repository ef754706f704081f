"""Import and export of files: scenes, clips and recordings."""

from poise.io.bvh import MotionWarning, load_bvh, save_bvh
from poise.io.bvh_export import motion_of
from poise.io.deepmimic import load_deepmimic
from poise.io.load import load
from poise.io.losses import LossWarning
from poise.io.mjcf import load_mjcf
from poise.io.motions import load_motion
from poise.io.save import save_scene
from poise.io.urdf import load_urdf
from poise.io.yaml_scene import load_yaml

__all__ = [
    "LossWarning",
    "MotionWarning",
    "load",
    "load_bvh",
    "load_deepmimic",
    "load_mjcf",
    "load_motion",
    "load_urdf",
    "load_yaml",
    "motion_of",
    "save_bvh",
    "save_scene",
]
