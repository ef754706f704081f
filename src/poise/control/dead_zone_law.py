"""Force law of a dead zone: no force within it, an implicit spring and damper beyond (LIU eqs. 12, 13).

An error φ is a vector, its zone a ball. The force depends on the excess e(φ), along φ, of the length g(r), r = |φ|:

    g = 0 up to the zone,  b (t³ − t⁴/2) over an onset b,  t = (r − zone)/b,  then r − zone − b/2               (1)

g has two continuous derivatives and never falls, so e is smooth, and the gradient of a convex Ψ. The force is that of
PD control on the excess, at the end of the step (LIU eq. 12, with e for x), where ė = (e⁺ − e)/h:

    f = −k e(φ⁺) − c (e(φ⁺) − e(φ))/h,   φ⁺ = φ + h φ̇ + h² A f                                                (2)

A is the effective inverse mass. Without a zone and an onset this is LIU eq. 13. Like (13), it does not predict other
forces. As Ψ is convex, (2) has one solution, for any gains, and each step dissipates energy ½ φ̇ᵀ A⁻¹ φ̇ + k Ψ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ITERATIONS = 100
"""Maximum number of Newton iterations; about ten are usual."""
CLOSE = 2e-15
"""Relative length, of |φ|, below which a step is rounding error."""


class Excess(NamedTuple):
    """Excess of an error beyond a zone."""

    value: Floats
    """(n,) e; the unit of φ."""
    slope: Floats
    """(n, n) ∂e/∂φ, symmetric positive semidefinite."""
    potential: float
    """Ψ, whose gradient is e."""


@dataclass(frozen=True)
class Zone:
    """A dead zone and the onset of the force beyond it.

    >>> Zone(0.1, 0.02).excess(np.array((0.0, 0.09))).value.tolist()
    [0.0, 0.0]
    >>> Zone(0.1, 0.02).excess(np.array((0.0, 0.21))).value.round(12).tolist()
    [0.0, 0.1]
    """

    radius: float
    """In the unit of φ, like the fields below."""
    onset: float
    """Range beyond the zone in which the slope grows from 0 to 1."""

    def excess(self, phi: Floats) -> Excess:
        """e of an error (n,), eq. 1."""
        r, n = float(np.sqrt(phi @ phi)), len(phi)
        x, b = r - self.radius, self.onset
        if x <= 0.0:
            return Excess(np.zeros(n), np.zeros((n, n)), 0.0)
        if x < b:
            t = x / b
            g, slope, potential = (
                b * t**3 * (1.0 - 0.5 * t),
                t * t * (3.0 - 2.0 * t),
                (b * t * t) ** 2 * (0.25 - 0.1 * t),
            )
        else:
            g, slope, potential = x - 0.5 * b, 1.0, 0.15 * b * b + 0.5 * x * (x - b)
        along = phi / r
        sideways = g / r
        return Excess(g * along, (slope - sideways) * np.outer(along, along) + sideways * np.eye(n), potential)


def zone_force(zone: Zone, phi: Floats, rate: Floats, A: Floats, h: float, stiffness: float, damping: float) -> Floats:
    """(n,) f of eq. 2: exactly 0 if the step without a force begins and ends within the zone.

    `A` (n, n) is symmetric positive semidefinite. With A = L Lᵀ and φ⁺ = a + L z, eq. 2 is the minimum of the convex
    ½ |z|² + h² κ Ψ(a + L z), κ = k + c/h: Newton's method with a line search finds it from any start.

    >>> zone_force(Zone(0.0, 1e-12), np.array([0.1]), np.array([0.0]), np.eye(1), 0.1, 200.0, 0.0).round(9)
    array([-6.66666667])
    """
    before = zone.excess(phi).value
    damper = damping / h * before
    start = phi + h * rate + h * h * (A @ damper)
    values, vectors = np.linalg.eigh(A)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    weight = h * h * stiffness + h * damping
    z, now = np.zeros(len(phi)), zone.excess(start)
    least = CLOSE * (float(np.linalg.norm(start)) + zone.radius)
    for _ in range(ITERATIONS if now.potential > 0.0 else 0):
        gradient = z + weight * (L.T @ now.value)
        way = -np.linalg.solve(np.eye(len(z)) + weight * (L.T @ now.slope @ L), gradient)
        if float(np.linalg.norm(L @ way)) <= least:
            break
        here, fall, share = 0.5 * float(z @ z) + weight * now.potential, float(gradient @ way), 1.0
        while True:
            to = z + share * way
            there = zone.excess(start + L @ to)
            less = here - 0.5 * float(to @ to) - weight * there.potential
            # near the minimum the decrease is below rounding, and full steps are right
            if less >= -1e-4 * share * fall or -fall <= 1e-12 * here or share < 1e-6:
                break
            share *= 0.5
        z, now = to, there
    return np.asarray(damper - (stiffness + damping / h) * now.value)
