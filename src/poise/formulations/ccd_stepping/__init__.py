"""Continuous collision: steps in which a shape moves far are split at times of impact."""
