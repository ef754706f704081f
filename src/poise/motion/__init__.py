"""Motion as data and curves: paths, rotations. No simulation."""

from poise.motion.path import ConstantPath, FunctionPath, KeyedPath, OrbitPath, Path, PathPoint

__all__ = ["ConstantPath", "FunctionPath", "KeyedPath", "OrbitPath", "Path", "PathPoint"]
