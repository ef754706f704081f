"""Maximal coordinates: links as separate rigid bodies, and the coordinates of their joints."""
