"""Continuous collision detection: time of impact of moving shapes."""
