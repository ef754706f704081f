"""Looking at what Poise computes: plots and pictures."""

from poise.view.plots import Drawing, below, line_chart
from poise.view.silhouettes import strobe

__all__ = ["Drawing", "below", "line_chart", "strobe"]
