"""Sleeping islands."""
