"""Motion as data and curves: clips, key-frames, paths, splines, rotations. No simulation."""

from poise.motion.cleanup import Mend, Mended, mend
from poise.motion.clip import Clip, JointPath, Origin, Pose, WorldPose
from poise.motion.keyframes import Coordinates, Keyframes, TrackPoint, keyframes
from poise.motion.path import ConstantPath, FunctionPath, KeyedPath, OrbitPath, Path, PathPoint
from poise.motion.retarget import Retargeted, retarget
from poise.motion.rotation_splines import RotationCurve, Turned
from poise.motion.skeleton import Skeleton
from poise.motion.splines import Moved, Spline

__all__ = [
    "Clip",
    "ConstantPath",
    "Coordinates",
    "FunctionPath",
    "JointPath",
    "KeyedPath",
    "Keyframes",
    "Mend",
    "Mended",
    "Moved",
    "OrbitPath",
    "Origin",
    "Path",
    "PathPoint",
    "Pose",
    "Retargeted",
    "RotationCurve",
    "Skeleton",
    "Spline",
    "TrackPoint",
    "Turned",
    "WorldPose",
    "keyframes",
    "mend",
    "retarget",
]
