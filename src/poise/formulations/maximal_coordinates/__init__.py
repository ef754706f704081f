"""Maximal coordinates: every link is a rigid body, joints are constraints."""
