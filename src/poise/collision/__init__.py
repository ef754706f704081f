"""Collision: from shapes to contacts."""
