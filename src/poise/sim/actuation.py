"""The part of a world for motors, loop joints and constraint callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.prebuilt_rows import USERS
from poise.constraints.rows import Rows
from poise.model.state_fields import SlotCheck
from poise.sim.recorder import Running
from poise.sim.world_loops import WorldLoop, attached_joint, attached_name, loop_number
from poise.sim.world_motors import WorldMotor, motor_number

Array = NDArray[Any]
Hook = Callable[[Any, Rows], None]


class Joined(Running):
    """The part of a world for motors, loop joints, attachments and constraint callbacks."""

    _row_hooks: list[Hook]

    def _begin_joints(self) -> None:
        """Before a step: apply controls and constraint callbacks."""
        extras = self._stepper.extras
        self._controls.apply(self._stepper)
        if self._row_hooks or self._step_hooks or extras.hooks:
            extras.hooks = [partial(call_hook, hook, self) for hook in (*self._row_hooks, *self._step_hooks)]
        extras.begin()

    def _joint_memory(self) -> dict[str, Array]:
        """Controls: the current values, and those that motors last applied."""
        if not self.model.motors:
            return {}
        return {"control": self.ctrl.copy(), "motors/control": self._controls.applied.copy()}

    def _check_joint_memory(self, check: SlotCheck) -> None:
        """Validate the controls of a state."""
        for name in ("control", "motors/control"):
            if "control" in check.slots and name in check.slots and self.model.motors:
                check.like(name, self.ctrl)

    def _remember_joints(self, slots: Mapping[str, Array]) -> None:
        if "control" in slots and self.model.motors:
            self.ctrl = slots["control"]
            if "motors/control" in slots:
                self._controls.applied[...] = slots["motors/control"]
            else:  # a keyframe has controls only: set all motors to them
                self._controls.apply_all(self._stepper)

    # ---- motors ------------------------------------------------------------------------------------------------------

    def motor(self, name: str | int) -> WorldMotor:
        """A motor by its name or number; its settings can be read and assigned.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
        >>> _ = scene.motor("arm", stiffness=100.0, damping=5.0, limit=20.0)
        >>> scene.build().motor("arm").limit
        (-20.0, 20.0)
        """
        return WorldMotor(self, motor_number(self.model, name))

    @property
    def motors(self) -> list[str]:
        """Names of all motors, in the order of the scene's actuators."""
        return [motor.name for motor in self.model.motors]

    @property
    def ctrl(self) -> Array:
        """(motors,) controls, as in MuJoCo: the target of a position servo, the speed of a velocity servo, otherwise a
        force. Changes take effect at the next step; `motor` sets the same quantities by name.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
        >>> _ = scene.motor("arm", stiffness=100.0, damping=5.0)
        >>> world = scene.build()
        >>> world.ctrl[0] = 0.3
        >>> world.step()
        >>> world.motor("arm").target
        0.3
        """
        return self._controls.values

    @ctrl.setter
    def ctrl(self, ctrl: ArrayLike) -> None:
        given = np.asarray(ctrl, np.float64)
        if given.shape != self.ctrl.shape or not np.isfinite(given).all():
            raise ValueError(f"ctrl must be {len(self.ctrl)} finite numbers, one for each motor; found {ctrl!r}")
        self.ctrl[...] = given

    # ---- loops -------------------------------------------------------------------------------------------------------

    def loop(self, name: str) -> WorldLoop:
        """A loop joint of the scene, or an attached one, by its name.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
        >>> _ = scene.loop("fixed", None, "ball", "hook")
        >>> world = scene.build()
        >>> world.loop("hook")
        <loop 'hook': fixed>
        """
        return WorldLoop(self, name)

    @property
    def loops(self) -> list[str]:
        """Names of all loop joints, broken ones included."""
        return [joint.name for joint in self._stepper.extras.joints]

    def attach(
        self, first: str | None, second: str | None = None, kind: str = "fixed", name: str | None = None, **options: Any
    ) -> str:
        """Join two bodies at their current poses from the next step on; returns the joint's name. None is the world.

        `kind` and `options` are those of `Scene.loop`; positions and axes are in world coordinates at the current time.
        Typical uses are a hand that grips something, or a rope that is tied. The relative velocity along the
        constrained directions becomes zero in that step, as in an impact.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
        >>> world = scene.build()
        >>> grip = world.attach(None, "ball")
        >>> world.step(100)
        >>> float(world.body("ball").position[2].round(4))
        2.0
        >>> world.release(grip)
        """
        extras = self._stepper.extras
        joint = attached_joint(self, attached_name(self.loops, first, second, name), first, second, kind, options)
        extras.attach(joint)
        return joint.name

    def release(self, name: str) -> None:
        """Release an attachment, or a loop joint of the scene; `loop(name).active = True` closes the latter again.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
        >>> _ = scene.loop("fixed", None, "ball", "hook")
        >>> world = scene.build()
        >>> world.release("hook")
        >>> world.loop("hook").active
        False
        """
        number, extras = loop_number(self, name), self._stepper.extras
        own = len(self.model.loops)
        if number >= own:
            extras.detach(number - own)
        else:
            extras.loops.active[number] = 0

    # ---- rows --------------------------------------------------------------------------------------------------------

    @property
    def rows_hooks(self) -> list[Hook]:
        """Constraint callbacks: functions of the world and the rows that add rows in each step, or substep of one.

        See `poise.constraints.rows.Rows.add`. Ids are numbers from 0 to 2³⁰ − 1. Keep them constant over steps: warm
        starting matches rows by id. States do not contain the callbacks.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 1))
        >>> world = scene.build()
        >>> def shelf(world, rows):  # nothing below 0.8 m
        ...     gap = float(world.q[2]) - 0.8
        ...     rows.add(id=1, b="ball", Jb=(0, 0, 0, 0, 0, 1), phi=gap, lo=0.0, erp=0.2)
        >>> world.rows_hooks.append(shelf)
        >>> world.step(240)
        >>> float(world.q[2].round(6))
        0.8
        """
        return self._row_hooks


def call_hook(hook: Hook, world: Joined, rows: Rows) -> None:
    """Call a constraint callback, and check that its ids do not collide with those of the world."""
    hook(world, rows)
    if any(id >= USERS for id in rows.ids()):
        raise ValueError(f"a row has the id {max(rows.ids())}; those of hooks must be less than 2³⁰ = {USERS}")
