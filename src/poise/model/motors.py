"""Motors: compiles the actuators of a scene to the motors of worlds.

The force of a motor, along its own coordinate x and its speed ẋ, is

    f = torque + stiffness (target − x) + damping (speed − ẋ),   low ≤ f ≤ high                            (1)

x is a combination of coordinates, Σ gear · q, and f acts on each of them times its gear: MuJoCo's actuators without
activation.
Stiffness and damping may be negative: a negative term is explicit, from the start of a step.

A joint can bound the total force of its motors. If it has one motor with one coordinate, the bound is that motor's own;
otherwise it is a range of the model (`Model.actuator_range`).
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any, NamedTuple

import numpy as np

from poise.model.checks import Checker
from poise.model.errors import SceneError, did_you_mean, resolve_name
from poise.model.joints import JOINTS
from poise.model.scene import Actuator, Scene

PLAIN = ("servo", "motor", "position", "velocity", "damper", "general")
"""Kinds of actuators whose force is that of (1); all others have no effect."""
_NUMBERS = ("stiffness", "damping", "speed", "torque")
_SERVO = (*_NUMBERS, "target")
_SET_FIRST = {"torque": "torque", "speed": "speed", "damping": "damping", "gains": "torque"}
"""The (first) number of a motor that each kind of control sets, except targets."""


class Motor(NamedTuple):
    """One motor of a compiled model.

    >>> from poise.model.shapes import box
    >>> scene = Scene()
    >>> _ = scene.hinge(None, box(0.1, 0.1, 1.0), axis="y", name="arm")
    >>> _ = scene.motor("arm", stiffness=100.0, damping=5.0, limit=20.0)
    >>> scene.compile().motors[0].high
    20.0
    """

    name: str
    dofs: tuple[int, ...] = ()
    """Degrees of freedom that it acts on; none for one that has no effect, or that drives a loop joint."""
    gear: tuple[float, ...] = ()
    ball: bool = False
    """Whether its target is a rotation of a ball joint; then `dofs` are the joint's three."""
    stiffness: float = 0.0
    """N/m or N·m/rad."""
    damping: float = 0.0
    """N·s/m or N·m·s/rad."""
    target: tuple[float, ...] = (0.0,)
    """Target of x, four numbers (w, x, y, z) for a ball joint; m or rad."""
    speed: float = 0.0
    """m/s or rad/s."""
    torque: float = 0.0
    """N or N·m."""
    low: float = -inf
    """Least force; N or N·m."""
    high: float = inf
    control: str = "torque"
    """Number that a control sets: torque, target, speed or damping; "gains": torque, stiffness and damping."""
    gain: float = 1.0
    """The control sets gain · control + offset."""
    offset: float = 0.0
    control_low: float = -inf
    control_high: float = inf
    coordinate: int = -1
    """Index of the loop's coordinate that it drives instead (see `loops`)."""
    slopes: tuple[float, float] = (0.0, 0.0)
    """Change of stiffness and damping per unit of control, added to those above."""

    @property
    def first_control(self) -> float:
        """The initial control: 0 for an actuator of MJCF, clamped to its range."""
        nearest = min(max(0.0, self.control_low), self.control_high)
        if self.ball or not self.gain:
            return nearest if self.control == "gains" else 0.0
        number = self.target[0] if self.control == "target" else getattr(self, _SET_FIRST[self.control])
        return nearest if self.gain * nearest + self.offset == number else (number - self.offset) / self.gain

    @property
    def first_gains(self) -> tuple[float, float]:
        """Initial stiffness and damping."""
        control = self.first_control if any(self.slopes) else 0.0
        stiffness, damping = self.slopes
        return self.stiffness + stiffness * control, self.damping + damping * control

    def told(self) -> tuple[Any, ...]:
        """Its fields for a digest: those of later versions count only if they are not empty."""
        return tuple(self) if any(self.slopes) else tuple(self)[:-1]


def controlled_numbers(control: str) -> tuple[str, ...]:
    """The numbers of a motor that each kind of control sets.

    >>> controlled_numbers("gains")
    ('torque', 'stiffness', 'damping')
    """
    return ("torque", "stiffness", "damping") if control == "gains" else (control,)


class Places(NamedTuple):
    """Indices of the coordinates of joints and loops, by name."""

    joints: dict[str, tuple[str, int, int]]
    """Kind, first degree of freedom, first coordinate."""
    dofs: dict[str, int]
    q_rest: list[float]
    q_of_dof: dict[int, int]
    """Coordinate of each degree of freedom that is not a ball joint's."""
    loops: dict[str, int]
    """Index of each coordinate of a loop."""
    ranges: dict[int, tuple[float, float, bool]]
    """By degree of freedom: bounds of the total motor force, and whether gravity compensation counts as one."""


def compile_motors(scene: Scene, places: Places) -> tuple[tuple[Motor, ...], dict[str, Any]]:
    """All motors of a scene, in the order of its actuators, and the model's ranges that bound several motors."""
    taken: set[str] = set()
    for actuator in scene.actuators:
        if actuator.kind == "servo" and actuator.name in taken:
            raise _wrong(scene, actuator, "name", "must be unique, found two")
        taken.add(actuator.name)
    return _bounded([_compile(scene, actuator, places) for actuator in scene.actuators], places)


def _bounded(motors: list[Motor], places: Places) -> tuple[tuple[Motor, ...], dict[str, Any]]:
    """Motors within the ranges of their joints, and the ranges that no single motor can enforce."""
    users = Counter(d for motor in motors for d in motor.dofs)
    own = {d for d, (_, _, lifted) in places.ranges.items() if users[d] == 1 and not lifted}
    own &= {motor.dofs[0] for motor in motors if len(motor.dofs) == 1}
    listed = [
        (d, *places.ranges[d]) for d in sorted(places.ranges) if d not in own and (users[d] or places.ranges[d][2])
    ]
    ranges = {
        "actuator_range_dof": np.array([d for d, *_ in listed], np.int32),
        "actuator_range": np.array([(low, high) for _, low, high, _ in listed], np.float64).reshape(-1, 2),
        "actuator_range_lifted": np.array([lifted for *_, lifted in listed], np.int32),
    }
    return tuple(_within(motor, places) if set(motor.dofs) & own else motor for motor in motors), ranges


def _within(motor: Motor, places: Places) -> Motor:
    """A motor whose force, times its gear, is clamped to the range of its joint."""
    low, high, _ = places.ranges[motor.dofs[0]]
    low, high = sorted((low / motor.gear[0], high / motor.gear[0]))
    return motor._replace(low=min(max(motor.low, low), high), high=max(min(motor.high, high), low))


def _wrong(scene: Scene, actuator: Actuator, field: str, message: str) -> SceneError:
    return SceneError(message, file=scene.source, field=f'actuator "{actuator.name}": {field}')


def _compile(scene: Scene, actuator: Actuator, places: Places) -> Motor:
    low, high = map(float, actuator.force_range or (-inf, inf))
    least, most = map(float, actuator.control_range or (-inf, inf))
    idle = Motor(actuator.name, low=low, high=high, control_low=least, control_high=most)
    options = actuator.options
    if actuator.kind not in PLAIN or options.get("activation", "none") != "none" or options.get("disabled", False):
        return idle
    if actuator.kind == "servo":
        return _servo(scene, actuator, places, idle)
    motor = _joined(scene, actuator, places, idle)
    if "gain_parameters" in options:
        return _affine(motor, options, measured=not _drives_free_joint(actuator, places))
    if actuator.kind == "motor":
        return motor
    return idle


def _joined(scene: Scene, actuator: Actuator, places: Places, idle: Motor) -> Motor:
    """A motor on the coordinates of a joint, or on those of a fixed tendon."""
    way = actuator.options.get("transmission", "joint")
    if way == "tendon":
        combined = actuator.options.get("joints", {})
        joints = [(name, factor) for name, factor in combined.items() if name in places.joints]
        if not joints or len(joints) != len(combined):
            return idle
        gear = float(actuator.gear[0])
        return idle._replace(
            dofs=tuple(places.joints[name][1] for name, _ in joints), gear=tuple(gear * factor for _, factor in joints)
        )
    if way not in ("joint", "jointinparent"):
        return idle
    if actuator.target not in places.joints:
        hint = did_you_mean(actuator.target, places.joints)
        raise _wrong(scene, actuator, "target", f'there is no joint "{actuator.target}" that moves{hint}')
    kind, first, _ = places.joints[actuator.target]
    n = JOINTS[kind].nv
    if way == "jointinparent" and JOINTS[kind].has_quaternion:
        return idle
    gears = [*map(float, actuator.gear), *[0.0] * n][:n]
    used = [(first + k, gear) for k, gear in enumerate(gears) if gear != 0.0]
    return idle._replace(dofs=tuple(d for d, _ in used), gear=tuple(gear for _, gear in used))


def _drives_free_joint(actuator: Actuator, places: Places) -> bool:
    """Whether an actuator acts on a free joint, which has no length in MuJoCo: x is 0 there."""
    way = actuator.options.get("transmission", "joint")
    return way == "joint" and actuator.target in places.joints and places.joints[actuator.target][0] == "free"


def _affine(motor: Motor, options: dict[str, Any], *, measured: bool) -> Motor:
    """MuJoCo's force = gain · control + bias, gain and bias linear in ẋ and, if `measured`, in x.

    The motor starts with the control 0, clamped to its range.
    """
    gain, bias = options["gain_parameters"], options["bias_parameters"]
    if options["gain"] not in ("fixed", "affine") or options["bias"] not in ("none", "affine"):
        return motor._replace(dofs=(), gear=())
    if options["bias"] == "none":
        bias = (0.0, 0.0, 0.0)
    slopes = (-gain[1] * measured + 0.0, -gain[2] + 0.0) if options["gain"] == "affine" else (0.0, 0.0)
    k, c = -bias[1] * measured + 0.0, -bias[2] + 0.0
    first = min(max(0.0, motor.control_low), motor.control_high)
    if gain[0] == 0.0 == slopes[0] and bias[0] == k == c == 0.0 and slopes[1] >= 0.0 and any(slopes):
        return motor._replace(control="damping", gain=slopes[1], damping=slopes[1] * first)
    motor = motor._replace(stiffness=k, damping=c)
    torque = gain[0] * first + bias[0]
    if any(slopes):
        return motor._replace(control="gains", gain=gain[0], offset=bias[0], torque=torque, slopes=slopes)
    if k == gain[0] > 0.0 and bias[0] == 0.0:
        return motor._replace(control="target", target=(first,))
    if k == 0.0 and c == gain[0] > 0.0 and bias[0] == 0.0:
        return motor._replace(control="speed", speed=first)
    return motor._replace(gain=gain[0], offset=bias[0], torque=torque)


def _servo(scene: Scene, actuator: Actuator, places: Places, idle: Motor) -> Motor:
    """A motor of `Scene.motor`."""
    options = actuator.options
    _check_servo(scene, actuator)
    stiffness, damping, speed, torque = (float(options.get(name, 0.0)) for name in _NUMBERS)
    own = idle._replace(stiffness=stiffness, damping=damping, speed=speed, torque=torque)
    motor, rest = _driven(scene, actuator, places, own)
    if options.get("target") is not None:
        rest = _target(scene, actuator, motor.ball)
    sets = "target" if motor.stiffness > 0.0 else "speed" if motor.damping > 0.0 else "torque"
    return motor._replace(target=rest, control=sets)


def _check_servo(scene: Scene, actuator: Actuator) -> None:
    check = Checker(scene.source).at(f'actuator "{actuator.name}"')
    for name, value in actuator.options.items():
        if name not in _SERVO:
            check.fail(name, f"a motor has no such option{did_you_mean(name, _SERVO)}")
        elif name in ("stiffness", "damping"):
            check.number(name, value, negative=False, infinite=True)
        elif name != "target":
            check.number(name, value)
    if check.problems:
        raise SceneError.of(check.problems)


def _target(scene: Scene, actuator: Actuator, ball: bool) -> tuple[float, ...]:
    check, value = Checker(scene.source).at(f'actuator "{actuator.name}"'), actuator.options["target"]
    if ball:
        check.quaternion("target", value)
    else:
        check.number("target", value)
    if check.problems:
        raise SceneError.of(check.problems)
    return tuple(map(float, value)) if ball else (float(value),)


def _driven(scene: Scene, actuator: Actuator, places: Places, motor: Motor) -> tuple[Motor, tuple[float, ...]]:
    """The motor on its coordinates, and their rest values."""
    names = [*places.joints, *places.dofs, *places.loops]
    try:
        name = resolve_name("joint", actuator.target, list(dict.fromkeys(names)), file=scene.source)
    except SceneError as error:
        raise _wrong(scene, actuator, "target", error.problems[0].message) from None
    gear = float(actuator.gear[0]) if actuator.gear else 1.0
    if name in places.dofs:
        d = places.dofs[name]
        rest = places.q_rest[places.q_of_dof[d]] * gear if d in places.q_of_dof else 0.0
        return motor._replace(dofs=(d,), gear=(gear,)), (rest,)
    if name in places.loops:
        return motor._replace(coordinate=places.loops[name], gear=(gear,)), (0.0,)
    kind, first, _ = places.joints[name]
    if kind == "ball":
        return motor._replace(dofs=(first, first + 1, first + 2), gear=(1.0, 1.0, 1.0), ball=True), (1.0, 0.0, 0.0, 0.0)
    listed = ", ".join(f'"{name}.{suffix}"' for suffix in JOINTS[kind].v_names)
    raise _wrong(scene, actuator, "target", f'"{name}" has several coordinates; name one of {listed}')
