"""A world: a model, its state, and a formulation that takes it from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.inputs import body_number, checked_vector
from poise.dynamics.measures import bodies
from poise.dynamics.simulation import Diverged, Simulation
from poise.formulations.acceleration import Accelerated
from poise.formulations.reduced import Reduced
from poise.formulations.stepper import Stepper
from poise.formulations.tracking import Reference, Track, make_track, tracked_dofs
from poise.formulations.velocity import DONE
from poise.model.model import Model
from poise.model.state import State
from poise.motion.rotations import quat_normalize, quat_to_matrix
from poise.sim.report import Report, report_of

Array = NDArray[Any]


class World(Simulation):
    """A model with contacts and limits on its way through time; see `Simulation` for what can act on it.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.box(0.2, 0.2, 0.2, mass=3.0), name="box", position=(0, 0, 0.1))
    >>> world = World(scene.compile())
    >>> world.step(240)
    >>> float(world.body("box").position[2].round(6))
    0.1
    >>> round(sum(contact.normal_force for contact in world.report().contacts), 1)
    29.4
    """

    _ROOM = (*Simulation._ROOM, "_stepper")

    def __init__(
        self,
        model: Model,
        formulation: Reduced | None = None,
        state: State | None = None,
        *,
        dt: float | None = None,
    ) -> None:
        if formulation is not None and not isinstance(formulation, Reduced):
            raise TypeError(f"formulation is a {type(formulation).__name__}; it must be poise.Reduced(...)")
        self.formulation = formulation or Reduced()
        self._pushes: list[tuple[int, Array]] = []
        self._tracks: list[Track] = []
        super().__init__(model, state, dt=dt)

    # ---- memory ------------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        self._stepper = make_stepper(self._model, self.formulation, self._tracks)
        self._use(self._stepper.space)

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles take along, with what the rows remember."""
        return super().__getstate__() | {"_memory": self._stepper.memory()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_memory"})
        self._stepper.remember(state["_memory"])

    @property
    def state(self) -> State:
        """A copy of all that the next steps depend on; assign one to go back to it, bit for bit."""
        state = State(self.q.copy(), self.v.copy(), self.time)
        state.slots |= self._stepper.memory()
        return state

    @state.setter
    def state(self, state: State) -> None:
        self._take(state)
        self._stepper.remember(state.slots)

    # ---- stepping ----------------------------------------------------------------------------------------------------

    def _advance(self, n: int) -> None:
        parts = self.formulation.substeps
        for _ in range(n):
            self._lay_pushes()
            for k in range(parts):
                if self._stepper.step(self.dt / parts, self.time + k * self.dt / parts) != DONE:
                    raise Diverged(self.time, *self._culprit())
            self._take_off_pushes()
            self.time += self.dt

    def _lay_pushes(self) -> None:
        for body, wrench in self._pushes:
            self.forces[body] += wrench

    def _take_off_pushes(self) -> None:
        for body, wrench in self._pushes:
            self.forces[body] -= wrench
        self._pushes.clear()

    def apply_force(
        self,
        body: str | int,
        force: ArrayLike = (0.0, 0.0, 0.0),
        *,
        torque: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike | None = None,
    ) -> None:
        """Push a body in the next step: a force (N) at a point of the world (the centre of mass when missing; m), and
        a torque (N·m), both in world axes. What acts for longer belongs in `forces`.

        >>> import poise
        >>> scene = poise.Scene(gravity=(0, 0, 0))
        >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
        >>> world = World(scene.compile(), dt=0.01)
        >>> world.apply_force("ball", (0, 50, 0))
        >>> world.step(2)
        >>> float(world.v[1].round(9))
        0.25
        """
        index, push = body_number(self.model, body), checked_vector("force", force)
        moment = checked_vector("torque", torque)
        place = bodies(self.model, self.q)
        centre = place.rotation[index] @ self.model.body_com[index]
        arm = centre if point is None else checked_vector("point", point) - place.position[index]
        self._pushes.append((index, np.concatenate((moment + np.cross(arm, push), push))))

    def track(
        self,
        names: str | Sequence[str],
        reference: Reference | None,
        *,
        gains: tuple[float, float] | None = None,
    ) -> None:
        """Let hinges and slides follow a reference from now on, exactly, whatever pushes them (KOK §8.3).

        `reference` takes a time (s) and gives (q, v, a) of the coordinates of the joints, in their order; None lets
        them go. `gains` are (kp, kv), as `poise.control.gains` gives them; without them errors shrink to a hundredth in
        a tenth of a second. The forces that it takes are not limited; `report().limits` tells them. Only at
        acceleration level.

        >>> import poise
        >>> from math import cos, sin
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
        >>> world = World(scene.compile(), poise.Reduced(level="acceleration"), dt=0.01)
        >>> world.track("arm", lambda t: (sin(t), cos(t), -sin(t)))
        >>> world.v[0] = 1.0
        >>> world.step(100)
        >>> abs(float(world.q[0]) - sin(1.0)) < 1e-6
        True
        """
        if self.formulation.level != "acceleration":
            raise ValueError('joints are tracked at acceleration level: build with poise.Reduced(level="acceleration")')
        dofs = tracked_dofs(self.model, names)
        new = [] if reference is None else [make_track(self.model, names, reference, gains)]
        for track in self._tracks:
            if both := set(track.dofs.tolist()) & set(dofs):
                if not set(track.dofs.tolist()) <= set(dofs):
                    name = self.model.dof_names[min(both)]
                    raise ValueError(f'"{name}" is tracked together with others: name all of {", ".join(track.names)}')
            else:
                new.append(track)
        self._tracks[:] = new

    # ---- looking -----------------------------------------------------------------------------------------------------

    def body(self, name: str | int) -> PlacedBody:
        """A body where it is."""
        return PlacedBody(self, body_number(self.model, name))

    def report(self) -> Report:
        """What happened in the last step: contacts with forces, limits, residual, energy, momentum."""
        step = self.dt / self.formulation.substeps
        return report_of(self._stepper, self.time, step, self.q.copy(), self.v.copy())


def make_stepper(model: Model, formulation: Reduced, tracks: list[Track]) -> Stepper | Accelerated:
    """What takes a world from step to step."""
    rules = formulation.rules()
    if formulation.level == "velocity":
        return Stepper(model, newton=formulation.newton, **rules)
    stepper = Accelerated(model, formulation.integrator or "rk4", newton=formulation.newton, **rules)
    stepper.looker.tracks = tracks
    return stepper


@dataclass(frozen=True)
class PlacedBody:
    """A body of a world; what it tells is as the world is when it is asked."""

    world: World
    index: int

    @property
    def name(self) -> str:
        """Its full name."""
        return self.world.model.body_names[self.index]

    @property
    def position(self) -> Array:
        """(3,) of its origin; m."""
        return np.array(bodies(self.world.model, self.world.q).position[self.index])

    @property
    def rotation(self) -> Array:
        """(3, 3) its axes in the world."""
        return np.array(bodies(self.world.model, self.world.q).rotation[self.index])

    @property
    def velocity(self) -> Array:
        """(3,) of its origin, in world axes; m/s."""
        return np.array(bodies(self.world.model, self.world.q, self.world.v).twist[self.index, 3:])

    @property
    def angular_velocity(self) -> Array:
        """(3,) in world axes; rad/s."""
        return np.array(bodies(self.world.model, self.world.q, self.world.v).twist[self.index, :3])

    def place(
        self,
        position: ArrayLike | None = None,
        quat_wxyz: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        angular_velocity: ArrayLike | None = None,
    ) -> None:
        """Put a body with a free joint somewhere; what is left out stays. Velocities are in world axes; m, m/s, rad/s.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball")
        >>> world = World(scene.compile())
        >>> world.body("ball").place(position=(0, 0, 3), angular_velocity=(0, 4, 0))
        >>> world.body("ball").position.tolist(), world.body("ball").angular_velocity.tolist()
        ([0.0, 0.0, 3.0], [0.0, 4.0, 0.0])
        """
        model, world = self.world.model, self.world
        joints = np.flatnonzero(model.joint_body == self.index)
        if len(joints) != 1 or model.joint_kinds[joints[0]] != "free":
            raise ValueError(f'body "{self.name}" has no free joint: set the coordinates of its joints in world.q')
        j, d = int(model.joint_q_start[joints[0]]), int(model.joint_v_start[joints[0]])
        if position is not None:
            world.q[j : j + 3] = checked_vector("position", position)
        spin = quat_to_matrix(world.q[j + 3 : j + 7]) @ world.v[d + 3 : d + 6]
        if quat_wxyz is not None:
            world.q[j + 3 : j + 7] = quat_normalize(np.asarray(quat_wxyz, np.float64))
        if velocity is not None:
            world.v[d : d + 3] = checked_vector("velocity", velocity)
        if angular_velocity is not None:
            spin = checked_vector("angular_velocity", angular_velocity)
        world.v[d + 3 : d + 6] = quat_to_matrix(world.q[j + 3 : j + 7]).T @ spin
