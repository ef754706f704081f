"""Constraint kinds: one file for each kind that emits rows."""
