"""Numbers about friction cones that solvers and their kernels share."""

from __future__ import annotations

STEEP = 1.0
"""Coefficient above which a friction cone is projected onto normal first; see `block_kernels.in_cone`."""
NEVER_SLIPS = 1e6
"""The largest coefficient of friction that solvers see; larger ones, infinity among them, count as this one. A tangent
force so much larger than the normal one leaves of the latter what tolerances do not feel.
"""
