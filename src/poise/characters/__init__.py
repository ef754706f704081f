"""Ready-made characters."""

from poise.characters.humanoid import humanoid

__all__ = ["humanoid"]
