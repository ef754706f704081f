"""Ready-made characters, and clips for them."""

from poise.characters import clips
from poise.characters.bird import bird
from poise.characters.humanoid import humanoid
from poise.characters.ragdoll import ragdoll

__all__ = ["bird", "clips", "humanoid", "ragdoll"]
