"""Ways to advance a state: each reads the same rows."""
