"""Stages of a step at velocity level."""
