"""Ready-made characters."""

from poise.characters.humanoid import humanoid
from poise.characters.ragdoll import ragdoll

__all__ = ["humanoid", "ragdoll"]
