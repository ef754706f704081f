"""Softness: conversion of stiffness and damping, or frequency and ratio, into ERP and CFM, and back.

A spring k and damper c on a row's error φ, evaluated at the end of a step h, is a row with

    erp = h k / (h k + c)          part of the error that is removed in the step
    cfm = 1 / (h (h k + c))        row velocity given up per unit impulse; 1/kg or 1/(kg·m²)

(LIU eqs. 9-13: with it the row *is* the backward-Euler spring-damper, and a stable PD controller.) The law of motion
may be written for accelerations and forces, velocities and impulses h λ, or displacements and h² λ. The softness is the
same number at each level, only the target differs:

    acceleration   (A + cfm) λ    = −α φ − β φ̇ − J a_free,   α = erp/h²,  β = 1/h       VON eq. 11
    velocity       (A + cfm) h λ  = −erp φ/h − J v_free                                 VON eq. 10
    position       (A + cfm) h² λ = −erp φ − J Δx_free
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, pi, sqrt
from typing import Any

from poise.kernel.scalars import select, zero
from poise.kernel.trace import formula


@dataclass(frozen=True)
class Softness:
    """ERP and CFM of a soft row, for one step size."""

    erp: float
    """Part of the error that is removed in a step, 0 to 1."""
    cfm: float
    """Row velocity per unit impulse; 1/kg or 1/(kg·m²)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.erp <= 1.0:
            raise ValueError(f"erp is {self.erp}; it must be between 0 and 1")
        if not (isfinite(self.cfm) and self.cfm >= 0.0):
            raise ValueError(f"cfm is {self.cfm}; it must be finite and 0 or more")

    def acceleration_gains(self, dt: float) -> tuple[float, float]:
        """(α, β) of φ̈ = −α φ − β φ̇ − cfm λ (VON eq. 11); 1/s², 1/s."""
        dt = _step(dt)
        return self.erp / dt**2, 1.0 / dt

    def velocity_target(self, phi: float, dt: float) -> float:
        """Row velocity that removes the error's share in a step (VON eq. 10); m/s or rad/s."""
        return -self.erp * phi / _step(dt)

    def position_target(self, phi: float) -> float:
        """Displacement that removes the error's share; m or rad."""
        return -self.erp * phi


HARD = Softness(1.0, 0.0)
"""The whole error in one step, at any force."""


def spring(stiffness: float, damping: float, dt: float) -> Softness:
    """The row that is a spring and damper; an infinite stiffness or damping makes it hard.

    >>> spring(stiffness=1000.0, damping=10.0, dt=0.01)
    Softness(erp=0.5, cfm=5.0)
    """
    dt = _step(dt)
    for name, value in (("stiffness", stiffness), ("damping", damping)):
        if not value >= 0.0:
            raise ValueError(f"{name} is {value}; it must be 0 or more")
    if stiffness == inf:
        return HARD
    if damping == inf:
        return Softness(0.0, 0.0)
    pull = dt * stiffness + damping
    if pull == 0.0 or not isfinite(1.0 / (dt * pull)):
        raise ValueError("a row without stiffness and damping is no row: leave it out")
    return Softness(dt * stiffness / pull, 1.0 / (dt * pull))


@formula
def spring_row(stiffness: Any, damping: Any, dt: Any) -> Any:
    """ERP and CFM as those of `spring`, in kernels; finite also where both are zero, for which there is no row."""
    rigid, viscous = stiffness == inf, damping == inf
    none = zero(stiffness)
    hard = rigid | viscous
    k, c = select(hard, none, stiffness), select(hard, none + 1.0, damping)
    pull = k * dt + c
    pull = select(pull > 0.0, pull, none + 1.0)
    erp = select(rigid, none + 1.0, k * dt / pull)
    return erp, select(hard, none, 1.0 / (pull * dt))


def oscillator(frequency: float, ratio: float, inverse_mass: float, dt: float) -> Softness:
    """The row whose own mass (1/A_ii) oscillates at a frequency (Hz) with a damping ratio.

    >>> soft = oscillator(frequency=5.0, ratio=1.0, inverse_mass=0.5, dt=0.001)
    >>> round(stiffness_of(soft, 0.001), 6) == round((2 * 3.141592653589793 * 5) ** 2 / 0.5, 6)
    True
    """
    if not (isfinite(frequency) and frequency > 0.0):
        raise ValueError(f"frequency is {frequency}; it must be a positive number of Hz")
    if not (isfinite(ratio) and ratio >= 0.0):
        raise ValueError(f"ratio is {ratio}; it must be 0 or more")
    if not (isfinite(inverse_mass) and inverse_mass > 0.0):
        raise ValueError(f"inverse_mass is {inverse_mass}; it must be positive")
    omega = 2.0 * pi * frequency
    return spring(omega**2 / inverse_mass, 2.0 * ratio * omega / inverse_mass, dt)


def stiffness_of(soft: Softness, dt: float) -> float:
    """Spring constant of a soft row; N/m or N·m/rad."""
    return inf if soft.cfm == 0.0 and soft.erp > 0.0 else _over(soft.erp, _step(dt) ** 2 * soft.cfm)


def damping_of(soft: Softness, dt: float) -> float:
    """Damping constant of a soft row; N·s/m or N·m·s/rad."""
    return inf if soft.cfm == 0.0 and soft.erp < 1.0 else _over(1.0 - soft.erp, _step(dt) * soft.cfm)


def frequency_of(soft: Softness, inverse_mass: float, dt: float) -> tuple[float, float]:
    """(frequency in Hz, damping ratio) of a soft row on its own mass."""
    stiffness, damping = stiffness_of(soft, dt), damping_of(soft, dt)
    if not (isfinite(stiffness) and isfinite(damping)):
        raise ValueError("a hard row does not swing")
    omega = sqrt(stiffness * inverse_mass)
    return omega / (2.0 * pi), _over(damping * inverse_mass, 2.0 * omega)


def _over(a: float, b: float) -> float:
    return a / b if b > 0.0 else 0.0 if a == 0.0 else inf


def _step(dt: float) -> float:
    if not (isfinite(dt) and dt > 0.0):
        raise ValueError(f"dt is {dt}; it must be a positive time in seconds")
    return float(dt)
