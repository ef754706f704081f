"""Springs so stiff that an explicit PD controller diverges, evaluated implicitly instead (LIU eqs. 9-13)."""

from __future__ import annotations

import numpy as np

import poise
from poise.dynamics import Drive
from poise.sim import Recording, StateToAct, Targets, World

SECONDS, DT = 4.0, 1 / 60
STIFFNESS, DAMPING = 3e4, 3e2
"""N·m/rad, N·m·s/rad."""
LINKS = 6
GOAL = 0.25
"""Angle of each joint; rad."""
MOMENTS = (0.0, 1 / 30, 1 / 15, 0.2, 0.5, 4.0)


def scene() -> poise.Scene:
    """A chain of bars that holds itself horizontally."""
    stage = poise.Scene(name="stiff", dt=DT)
    stage.add_ground()
    parent = None
    for k in range(LINKS):
        bar = poise.capsule(0.04, 0.3, mass=1.5, position=(0.0, 0.0, 0.19), color=(0.25 + 0.1 * k, 0.45, 0.75, 1.0))
        place = (0.0, 0.0, 0.05 if k == 0 else 0.38)
        parent = stage.hinge(parent, bar, axis="y", name=f"bar {k}", position=place)
    stage.controllers.append(("hold", lambda: Hold(implicit=True)))
    return stage


class Hold:
    """A PD controller: explicit torques, or an implicit drive."""

    def __init__(self, *, implicit: bool) -> None:
        self.implicit = implicit

    def bind(self, model: poise.Model, /) -> None:
        """Store the number of joints."""
        ones = np.ones(model.nv)
        self.drive = Drive(STIFFNESS * ones, DAMPING * ones, GOAL * ones)

    def first(self, state: poise.State) -> None:
        """Leave the initial state of the world unchanged."""

    def update(self, state: StateToAct, /) -> Targets:
        """Torques or drive of the next step."""
        if self.implicit:
            return Targets(drive=self.drive)
        return Targets(tau=STIFFNESS * (GOAL - state.q) - DAMPING * state.v)


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Results of the same gains with both methods."""
    off = np.degrees(np.abs(recording.q - GOAL)).max(axis=1)
    near = np.flatnonzero(off > 1.0)
    return {
        "gains": f"{STIFFNESS:g} N·m/rad and {DAMPING:g} N·m·s/rad at steps of {1e3 * DT:.1f} ms",
        "met at the end": f"within 1° after {recording.time[near[-1]]:.2f} s, {off[-1]:.3f}° off at the end",
        "plain": explicit(),
    }


def explicit() -> str:
    """Result of the explicit torques."""
    stage = scene()
    stage.controllers[:] = [("hold", lambda: Hold(implicit=False))]
    world = stage.build()
    steps = round(SECONDS / DT)
    for k in range(steps):
        try:
            world.step()
        except poise.Diverged:
            return f"blown up after {k} steps"
        if (fastest := float(np.abs(world.v).max())) > 1e3:
            return f"{fastest:.0f} rad/s after {k + 1} steps, and growing"
    return "holds too"
