"""Coefficients of friction between two materials: at rest, sliding, and in impacts."""

from __future__ import annotations

from dataclasses import dataclass

from poise.solve.problem import Friction


@dataclass(frozen=True)
class Coefficients:
    """Coulomb's coefficients of a pair of materials (KOK §8.1: static and dynamic; VON §3.5: static and impulsive).

    >>> ice = Coefficients(static=0.1, sliding=0.03)
    >>> ice.contact(0, (1, 2)).sliding, ice.impact(0, (1, 2)).mu
    (0.03, 0.03)
    """

    static: float
    """Of contacts at rest; with inf they never slip."""
    sliding: float | None = None
    """Of contacts that slide, at most the static one, which is the default."""
    impulsive: float | None = None
    """Of impacts (KOK §5): the ratio of the largest tangent impulse to the normal one; by default the sliding one."""

    def __post_init__(self) -> None:
        for name in ("static", "sliding", "impulsive"):
            value = getattr(self, name)
            if value is not None and not value >= 0.0:
                raise ValueError(f"the {name} coefficient of friction is {value}; it must be 0 or more")
        if self.sliding is not None and self.sliding > self.static:
            raise ValueError(
                f"the sliding coefficient of friction is {self.sliding}; it must be 0 to the static one, {self.static}"
            )

    def contact(
        self, normal: int, tangents: tuple[int, ...], *, cone: bool = True, sliding_now: bool = False
    ) -> Friction:
        """Friction of a lasting contact; `sliding_now` gives whether it slides now."""
        return Friction(normal, tangents, self.static, cone, self.sliding, sliding_now)

    def impact(self, normal: int, tangents: tuple[int, ...], *, cone: bool = True) -> Friction:
        """Friction of an impact: one coefficient, as nothing is at rest in it."""
        slides = self.static if self.sliding is None else self.sliding
        return Friction(normal, tangents, slides if self.impulsive is None else self.impulsive, cone)
