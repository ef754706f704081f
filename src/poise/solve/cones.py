"""Constants of friction cones that solvers and their kernels share."""

from __future__ import annotations

STEEP = 1.0
"""Coefficient above which a friction cone is projected onto normal first; see `block_kernels.in_cone`."""
NEVER_SLIPS = 1e6
"""The largest coefficient of friction that solvers use; larger ones, also infinity, are clamped to it. With a tangent
force that is larger by this factor, the remaining normal force is below the tolerances.
"""
