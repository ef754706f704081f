"""Control: what makes characters move as told."""

from __future__ import annotations

from poise.formulations.tracking import gains

__all__ = ["gains"]
