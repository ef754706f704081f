"""Control: controllers, motors, actuators, inverse kinematics and motion tracking for characters."""

from __future__ import annotations

from poise.control import goals
from poise.control.actuator_control import ActuatorReading, Actuators
from poise.control.actuators import RotationActuator, TranslationActuator
from poise.control.attach_tracking import track
from poise.control.axis_motors import TravelMotor, TurnMotor
from poise.control.balance import Balance, BalanceReading
from poise.control.body_motors import AngularMotor, LinearMotor, PoseMotor
from poise.control.dead_zones import DeadZone, DeadZoneReading
from poise.control.demand_sharing import SecondaryTarget
from poise.control.error_report import Correction, correction
from poise.control.footskate_cleanup import Planted, plant_feet
from poise.control.ik import Reached, reach
from poise.control.marker_zones import MarkerZone, MarkerZoneReading
from poise.control.mouse_spring import Drag
from poise.control.point_springs import PointTarget
from poise.control.reference import Reference
from poise.control.scenario import Push, Start, Throw
from poise.control.sequencing import Stage, Way
from poise.control.springs import Spring
from poise.control.tracking import Tracking
from poise.control.trajectory import Marker, TrajectoryMotor, TrajectoryReading
from poise.formulations.acceleration_level.acceleration_tracking import gains

__all__ = [
    "ActuatorReading",
    "Actuators",
    "AngularMotor",
    "Balance",
    "BalanceReading",
    "Correction",
    "DeadZone",
    "DeadZoneReading",
    "Drag",
    "LinearMotor",
    "Marker",
    "MarkerZone",
    "MarkerZoneReading",
    "Planted",
    "PointTarget",
    "PoseMotor",
    "Push",
    "Reached",
    "Reference",
    "RotationActuator",
    "SecondaryTarget",
    "Spring",
    "Stage",
    "Start",
    "Throw",
    "Tracking",
    "TrajectoryMotor",
    "TrajectoryReading",
    "TranslationActuator",
    "TravelMotor",
    "TurnMotor",
    "Way",
    "correction",
    "gains",
    "goals",
    "plant_feet",
    "reach",
    "track",
]
