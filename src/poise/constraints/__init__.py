"""Constraints as rows: contacts, limits, loop joints, motors and others, one row for each multiplier."""
