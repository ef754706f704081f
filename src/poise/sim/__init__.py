"""Worlds: models on their way through time, with contacts, limits and all that acts."""

from __future__ import annotations

from poise.sim.report import ContactReport, LimitReport, Report
from poise.sim.world import World

__all__ = ["ContactReport", "LimitReport", "Report", "World"]
