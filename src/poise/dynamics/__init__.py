"""The dynamics of trees: kinematics, articulated bodies, inverse dynamics, responses, energies, integration."""

from poise.dynamics.argument_checks import Singular
from poise.dynamics.functions import (
    Drive,
    bias_forces,
    forward_dynamics,
    gravity_forces,
    inverse_dynamics,
    mass_matrix,
    passive_forces,
)
from poise.dynamics.response_api import force_delta, response, torque_delta
from poise.dynamics.simulation import Diverged, Simulation, Trajectory, simulate
from poise.dynamics.state_queries import (
    Bodies,
    Energy,
    Jacobian,
    Momentum,
    bodies,
    difference,
    displaced,
    energy,
    jacobian,
    momentum,
)

__all__ = [
    "Bodies",
    "Diverged",
    "Drive",
    "Energy",
    "Jacobian",
    "Momentum",
    "Simulation",
    "Singular",
    "Trajectory",
    "bias_forces",
    "bodies",
    "difference",
    "displaced",
    "energy",
    "force_delta",
    "forward_dynamics",
    "gravity_forces",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "momentum",
    "passive_forces",
    "response",
    "simulate",
    "torque_delta",
]
