"""Constraints as rows: what acts on a character besides gravity and inertia."""
