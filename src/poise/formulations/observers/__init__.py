"""Observers of a step: events and recorded frames."""
