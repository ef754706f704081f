"""A graph of stages that synchronizes several actuators, which LAM §5 mentions as work in progress.

In a stage, the targets of some actuators stop at a gate on their path. Transitions to other stages occur when all
bodies have arrived at their gates, after some time, or when a function returns true. Synchronized actuators of a stage
arrive at their gates at the same time: those that would be early are slowed down, and if one is delayed, the others
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.control.actuators import Fitted
from poise.model.errors import did_you_mean
from poise.model.state import State

Floats = NDArray[np.float64]
LEAD = 0.1
"""Share of its path by which an actuator may be ahead of those it is synchronized with."""


@dataclass(frozen=True)
class Way:
    """A transition to another stage, taken when all of its conditions are true.

    >>> Way("land", after=0.5).arrived
    True
    """

    to: str
    arrived: bool = True
    """Whether all actuators with gates must have arrived."""
    after: float = 0.0
    """Minimum time since the stage began; s."""
    when: Callable[[State], Any] | None = None
    """A function of the state (q, v, time) that must be true."""


@dataclass(frozen=True)
class Stage:
    """A stage: gates of targets, and transitions.

    >>> stage = Stage("lift", gates={"hand move": 1.0, "head turn": None}, ways=[Way("carry")], together=True)
    >>> stage.ways[0].to
    'carry'
    """

    name: str
    gates: Mapping[str, float | None] = field(default_factory=dict)
    """Gates: the path parameter at which an actuator's target stops; None stops it at once. Other targets continue to
    the end of their path. On a closed path the target stops when it next reaches the gate."""
    ways: Sequence[Way] = ()
    """Transitions; the first whose conditions are true is taken."""
    together: bool = False
    """Whether actuators with gates arrive at the same time."""
    reach: float = 0.1
    """Distance from the gate at which a body has arrived; share of the base distance."""


class Graph:
    """Stages, checked against the actuators that they name."""

    def __init__(self, stages: Sequence[Stage], labels: Sequence[str]) -> None:
        self.stages, self._labels = tuple(stages), tuple(labels)
        names = [_checked_stage(stage).name for stage in self.stages]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f'stages: there are several of the name "{twice}"')
        self.places = {name: k for k, name in enumerate(names)}
        for stage in self.stages:
            for way in stage.ways:
                if way.to not in self.places:
                    near = did_you_mean(way.to, names)
                    raise ValueError(f'stage "{stage.name}": a way leads to "{way.to}", which is no stage{near}')
            for label in stage.gates:
                if label not in labels:
                    near = did_you_mean(label, list(labels))
                    raise ValueError(f'stage "{stage.name}": there is no actuator "{label}"{near}')

    def check_gates(self, fitted: Sequence[Fitted]) -> None:
        """Check that gates lie on their paths, and that synchronized actuators have speeds."""
        for stage in self.stages:
            for one in fitted:
                gate, route = stage.gates.get(one.actuator.label), one.route
                if gate is None:
                    continue
                first, last = float(route.s[0]), float(route.s[-1])
                if not first <= float(gate) <= last:
                    raise ValueError(
                        f'stage "{stage.name}": the gate of "{one.actuator.label}" is {gate:g}, '
                        f"which is not on its path from {first:g} to {last:g}"
                    )
                if stage.together:
                    one.speeds_along()

    def gates(self, stage: int, fitted: Sequence[Fitted], s: Floats) -> Floats:
        """(n,) gates of targets at s, for a stage that begins."""
        wanted = self.stages[stage].gates
        gates = np.full(len(fitted), inf)
        for k, one in enumerate(fitted):
            if one.actuator.label in wanted:
                gate = wanted[one.actuator.label]
                gates[k] = s[k] if gate is None else one.route.gate_from(float(s[k]), float(gate))
        return gates

    def next(
        self,
        stage: int,
        fitted: Sequence[Fitted],
        state: State,
        s: Floats,
        gates: Floats,
        distances: Floats,
        age: float,
    ) -> int:
        """The stage that follows, or the same one; `distances` (n,) are those from bodies to their targets."""
        now = self.stages[stage]
        held = [k for k, one in enumerate(fitted) if now.gates.get(one.actuator.label) is not None]
        there = all(
            s[k] >= min(gates[k], fitted[k].route.end) and distances[k] <= now.reach * fitted[k].actuator.base_distance
            for k in held
        )
        for way in now.ways:
            due = age >= way.after - 1e-9 and (there or not way.arrived)
            if due and (way.when is None or bool(way.when(state))):
                return self.places[way.to]
        return stage

    def times_left(self, stage: int, fitted: Sequence[Fitted], s: Floats, gates: Floats, distances: Floats) -> Floats:
        """(n,) times of synchronized actuators to their gates; 0 for others; s."""
        left, now = np.zeros(len(fitted)), self.stages[stage]
        for k, one in enumerate(fitted):
            if now.together and now.gates.get(one.actuator.label) is not None:
                target = one.route.length_at(float(s[k]))
                body = max(target - min(float(distances[k]), one.actuator.base_distance), 0.0)
                left[k] = _time_left(one, body, one.route.length_at(float(min(gates[k], one.route.end))), now.reach)
        return left


def paces(left: Floats, whole: Floats) -> Floats:
    """(n,) factors of speeds with which all synchronized actuators arrive at their gates when the last one does.

    `left` and `whole` are the times to the gates, now and at the beginning of the stage. An actuator that is ahead of
    the last one by more than a tenth of its path waits.
    """
    shares, going = np.ones(len(left)), left > 0.0
    if going.any():
        done = 1.0 - left[going] / np.maximum(whole[going], left[going])
        shares[going] = left[going] / left.max() * np.clip(1.0 - (done - done.min()) / LEAD, 0.0, 1.0)
    return shares


def _time_left(one: Fitted, body: float, gate: float, reach: float) -> float:
    """Time from one arc length to within reach of another, at the speeds of an actuator; s.

    The target waits at the gate while the body covers the last base distance d: at the speed u r / d, if r remains.
    """
    speeds, base = one.speeds_along(), one.actuator.base_distance
    slow = base / speeds.at(gate)[0]
    if gate - body <= base:
        return max(slow * log(max((gate - body) / (reach * base), 1e-300)), 0.0)
    return speeds.time(body, gate - base) + max(slow * log(1.0 / reach), 0.0)


def _checked_stage(stage: Any) -> Stage:
    if not isinstance(stage, Stage):
        raise TypeError(f"stages: found a {type(stage).__name__}; they must be poise.control.Stage(...)")
    for way in stage.ways:
        if not isinstance(way, Way):
            raise TypeError(f'stage "{stage.name}": ways must be poise.control.Way(...), found a {type(way).__name__}')
        if not (isfinite(way.after) and way.after >= 0.0):
            raise ValueError(f'stage "{stage.name}": a way is to be taken after {way.after} s; it must be 0 or more')
        if way.when is not None and not callable(way.when):
            raise TypeError(f'stage "{stage.name}": when is a {type(way.when).__name__}; it must be a function')
    if not stage.reach > 0.0:
        raise ValueError(f'stage "{stage.name}": reach is {stage.reach}; it must be positive')
    return stage
