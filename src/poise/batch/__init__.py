"""Many runs of one scene: parameter sweeps, and many worlds stepped together (`poise.Batch`)."""

from poise.batch.sweep import Sweep
from poise.batch.table import Table

__all__ = ["Sweep", "Table"]
