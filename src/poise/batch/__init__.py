"""Many runs of one scene: sweeps over its parameters and fields; many worlds stepped together (`poise.Batch`)."""

from poise.batch.sweep import Sweep
from poise.batch.table import Table

__all__ = ["Sweep", "Table"]
