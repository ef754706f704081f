"""Worlds: models that step through time, with contacts, limits, controllers, sensors and recordings."""

from __future__ import annotations

from poise.sim.controllers import Controller, StateToAct, Targets
from poise.sim.events import Event
from poise.sim.force_laws import ForceLaw, PointSpring, Stage
from poise.sim.recording import PARTS, Frame, Recording
from poise.sim.sensors import ContactSensor, ForcePlate, Imu, JointSensor
from poise.sim.step_report import ContactReport, LimitReport, Report
from poise.sim.world import World
from poise.sim.world_loops import LoopReport, WorldLoop
from poise.sim.world_motors import WorldMotor

__all__ = [
    "PARTS",
    "ContactReport",
    "ContactSensor",
    "Controller",
    "Event",
    "ForceLaw",
    "ForcePlate",
    "Frame",
    "Imu",
    "JointSensor",
    "LimitReport",
    "LoopReport",
    "PointSpring",
    "Recording",
    "Report",
    "Stage",
    "StateToAct",
    "Targets",
    "World",
    "WorldLoop",
    "WorldMotor",
]
