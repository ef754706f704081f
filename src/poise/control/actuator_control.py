"""A controller of actuators that pull bodies along paths (LAM); for `world.add_controller`.

Before each step, it estimates external actions (LAM eqs. 7, 8) and filters them (eqs. 9, 10), checks whether the stage
ends, advances the targets (§2.2), and applies forces towards them (eqs. 2 to 4) within the strength. Its memory is in
the slots of the state: parameters of targets, corrections, the actions of the last step, the stage and its gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.control.actuators import Actuator, Fitted, limited
from poise.control.disturbance_observer import external_action, filtered, noted
from poise.control.sequencing import Graph, Stage, paces
from poise.dynamics.state_queries import bodies
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.state import State
from poise.sim.controllers import StateToAct, Targets

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ActuatorReading:
    """Reading of an actuator after the last step."""

    parameter: float
    """Parameter of the target on its path; s."""
    target: Floats
    """(3,) position, or (4,) orientation wxyz."""
    push: Floats
    """(3,) force or torque in world axes (torques: in the body's); N or N·m."""
    correction: Floats
    """(3,) part that compensates external actions, before the limit, in world axes; N or N·m."""
    stage: str | None
    """Name of the stage, if there are any."""


class Actuators:
    """Actuators of a world, optionally with stages that synchronize them.

    >>> import poise
    >>> from poise.control import TranslationActuator
    >>> from poise.motion import KeyedPath
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 1))
    >>> world = scene.build(dt=0.005)
    >>> line = KeyedPath([0, 1], [(0, 0, 1), (0.5, 0, 1)])
    >>> pull = TranslationActuator("ball", line, base_distance=0.2, relaxation=0.05, gamma=20.0)
    >>> guide = Actuators([pull])
    >>> world.add_controller(guide)
    'Actuators'
    >>> world.step(800)
    >>> world.body("ball").position.round(4).tolist()
    [0.5, 0.0, 1.0]
    >>> float(guide.read(world.state)["ball move"].push[2].round(2))  # gravity has been learnt
    19.62
    """

    def __init__(self, actuators: Sequence[Actuator], stages: Sequence[Stage] = ()) -> None:
        given = [actuators] if isinstance(actuators, Actuator) else list(actuators)
        for one in given:
            if not isinstance(one, Actuator):
                raise TypeError(f"found a {type(one).__name__}; it must be a TranslationActuator or a RotationActuator")
        if not given:
            raise ValueError("there are no actuators")
        self.actuators = tuple(given)
        labels = [one.label for one in given]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f'there are several actuators "{label}": give them names')
        self._graph = Graph(stages, labels) if stages else None
        self._model: Model | None = None
        self._fitted: list[Fitted] = []

    def bind(self, model: Model, /) -> None:
        """Look up the bodies. A controller belongs to one model."""
        if self._model is not None and self._model is not model:
            raise ValueError("these actuators act on a world of another model: make others for this one")
        fitted = [Fitted(one, model) for one in self.actuators]
        for one in fitted:
            same = [other for other in fitted if other.link == one.link]
            kinds = [other.actuator.TURNS for other in same]
            # a force at the centre of mass and a torque do not interact
            apart = kinds.count(True) <= 1 and kinds.count(False) <= 1 and all(other.at_com for other in same)
            one.shared = 1 if apart else len(same)
        if self._graph is not None:
            self._graph.check_gates(fitted)
        self._model, self._fitted = model, fitted

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    def update(self, state: StateToAct, /) -> Targets:
        """Forces of all actuators for the next step; called by the world."""
        assert self._model is not None
        place = bodies(self._model, state.q, state.v)
        slots, n = state.slots, len(self._fitted)
        if "parameter" not in slots:
            slots |= self._fresh(state.time)
        passed = state.time - float(slots["time"][0])
        forces = np.zeros((self._model.n_bodies, 6))
        spots = [one.here(place) for one in self._fitted]
        s, pushes = slots["parameter"].copy(), np.zeros((n, 3))
        shares = self._go_through_stages(state, spots)
        for k, (one, (here, velocity, R)) in enumerate(zip(self._fitted, spots, strict=True)):
            a = one.actuator
            moving = noted(one, velocity, R)
            if passed > 0.0 and a.gamma > 0.0:
                external = external_action(one, slots["velocity"][k], moving, slots["push"][k], R, passed)
                slots["correction"][k] = filtered(slots["correction"][k], external, a.gamma, passed)
            s[k] = one.route.ahead(float(s[k]), here, a.base_distance, float(slots["gate"][k]))
            offset = one.route.offset(float(s[k]), here)
            wanted = self._wanted_velocity(one, float(s[k]), offset, float(shares[k]))
            main = one.main(offset, velocity, wanted, R, state.dt)
            push = limited(main + slots["correction"][k], a.limit)
            forces[one.carrier] += one.wrench(push, R)
            pushes[k], slots["velocity"][k] = noted(one, push, R), moving
        slots |= {"parameter": s, "push": pushes, "time": np.array((state.time,))}
        return Targets(forces=forces)

    def _fresh(self, time: float) -> dict[str, NDArray[Any]]:
        """Memory before the first step."""
        n = len(self._fitted)
        start = np.array([one.route.start for one in self._fitted])
        gates = np.full(n, np.inf) if self._graph is None else self._graph.gates(0, self._fitted, start)
        vectors = {name: np.zeros((n, 3)) for name in ("push", "velocity", "correction")}
        stage = {"stage": np.zeros(1, np.int64), "entered": np.array((time,)), "whole": np.zeros(n)}
        return {"parameter": start, "gate": gates, "time": np.array((time,))} | vectors | stage

    def _go_through_stages(self, state: State, spots: list[tuple[Floats, Floats, Floats]]) -> Floats:
        """Advance to the next stage if the present one has ended; (n,) factors of the actuators' speeds."""
        if self._graph is None:
            return np.ones(len(self._fitted))
        slots, s = state.slots, state.slots["parameter"]
        far = np.array(
            [
                one.route.distance(one.route.value(float(t)), spot[0])
                for one, t, spot in zip(self._fitted, s, spots, strict=True)
            ]
        )
        now, age = int(slots["stage"][0]), state.time - float(slots["entered"][0])
        after = self._graph.next(now, self._fitted, state, s, slots["gate"], far, age)
        if after != now:
            slots["stage"], slots["entered"] = np.array((after,)), np.array((state.time,))
            slots["gate"] = self._graph.gates(after, self._fitted, s)
        left = self._graph.times_left(after, self._fitted, s, slots["gate"], far)
        if slots["entered"][0] == state.time:
            slots["whole"] = left.copy()
        return paces(left, slots["whole"])

    def _wanted_velocity(self, one: Fitted, s: float, offset: Floats, share: float) -> Floats:
        """(3,) reference velocity of the damping; 0 as in LAM, unless speeds are preferred."""
        if not one.actuator.speeds and share == 1.0:
            return np.zeros(3)
        a = one.actuator
        speed, slope = one.speeds_along().at(max(one.route.length_at(s) - a.base_distance, 0.0))
        speed, slope = share * speed, share * slope
        shift = speed + speed * slope / a.damping - a.natural_speed
        near = min(float(np.sqrt(offset @ offset)) / a.base_distance, 1.0)
        return np.asarray(shift * near * one.route.direction(s))

    def read(self, state: State, controller: str = "Actuators") -> dict[str, ActuatorReading]:
        """Readings of all actuators after the last step, by name, from a state of the world.

        `controller` is the name that `add_controller` returned. See the example of the class.
        """
        start = f"control/{controller}/"
        slots = {name[len(start) :]: array for name, array in state.slots.items() if name.startswith(start)}
        if "parameter" not in slots:
            names = sorted({name.split("/")[1] for name in state.slots if name.startswith("control/")})
            raise ValueError(
                f'the state has no actuators "{controller}" that have acted{did_you_mean(controller, names)}'
            )
        stage = None if self._graph is None else self._graph.stages[int(slots["stage"][0])].name
        return {
            one.actuator.label: ActuatorReading(
                float(slots["parameter"][k]),
                one.route.value(float(slots["parameter"][k])),
                slots["push"][k].copy(),
                slots["correction"][k].copy(),
                stage,
            )
            for k, one in enumerate(self._fitted)
        }
