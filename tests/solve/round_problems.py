"""Families of problems that take more than one solution: see `benchmarks/_round_problems.py`."""

from _round_problems import ROUNDS, draw_round, secondary, stick_slip_cone, stick_slip_pyramid, with_drops

__all__ = ["ROUNDS", "draw_round", "secondary", "stick_slip_cone", "stick_slip_pyramid", "with_drops"]
