"""Many runs of one scene: sweeps over its parameters and fields; many worlds of it that are stepped together."""

from poise.batch.sweep import Sweep
from poise.batch.table import Table
from poise.batch.worlds import Batch

__all__ = ["Batch", "Sweep", "Table"]
