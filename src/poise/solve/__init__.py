"""Solvers for A λ + b = w under a law between each multiplier λ and its residual w, independent of bodies."""
