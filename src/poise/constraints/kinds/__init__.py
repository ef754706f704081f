"""Kinds of constraints: one module for each kind that emits rows."""
