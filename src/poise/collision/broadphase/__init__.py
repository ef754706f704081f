"""Broadphase: which pairs of shapes are near each other."""
