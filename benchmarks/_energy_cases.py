"""Passive motions whose energy or momentum is known, each in its named form and in random variations of it.

A case is a function of a random generator, or of None for the named form, and gives a `Start`. Scenes are written so
that MuJoCo can be given the same model: the same masses, inertias and joints, and the same coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import poise
from poise.dynamics import displaced, energy, momentum
from poise.model import Body, Inertia, Model
from poise.motion.rotations import quat_exp, rotate

Array = np.ndarray
Random = np.random.Generator | None
STEP = 1 / 240
G = 9.81


@dataclass(frozen=True)
class Start:
    """A scene, and how it is set going."""

    scene: poise.Scene
    set_going: Callable[[poise.World], None]
    restitution: float | None = None
    for_mujoco: poise.Scene | None = None
    """Where MJCF has to say the same otherwise."""
    about: Array = field(default_factory=lambda: np.zeros(3))
    """What a case has to know: the pivot of a top, the height and the normal of a bounce."""


@dataclass(frozen=True)
class Run:
    """Samples of a motion, the first one at its beginning."""

    start: Start
    model: Model
    q: Array
    """(samples, nq)"""
    v: Array
    """(samples, nv)"""


@dataclass(frozen=True)
class Measure:
    """A number that ought to be 0: a relative deviation."""

    name: str
    bound: float
    of: Callable[[Run], float]


@dataclass(frozen=True)
class Motion:
    """A case."""

    name: str
    begin: Callable[[Random], Start]
    measures: tuple[Measure, ...]
    seconds: float = 10.0
    every: int = 8
    """Steps between samples."""
    free: bool = True
    """Without contacts and limits."""


# ---- deviations ------------------------------------------------------------------------------------------------------


def energy_off(run: Run) -> float:
    """Largest deviation of the energy, over the kinetic energy at the beginning."""
    found = energy(run.model, run.q, run.v)
    return float(np.abs(found.total - found.total[0]).max() / found.kinetic[0])


def angular_off(run: Run) -> float:
    """Largest deviation of the angular momentum about the centre of mass, over what it was."""
    angular = momentum(run.model, run.q, run.v).angular
    return float(np.linalg.norm(angular - angular[0], axis=1).max() / np.linalg.norm(angular[0]))


def upright_off(run: Run) -> float:
    """Largest deviation of the vertical angular momentum about the pivot of a top."""
    found = momentum(run.model, run.q, run.v)
    whole = found.angular + np.cross(found.com - run.start.about, found.linear)
    return float(np.abs(whole[:, 2] - whole[0, 2]).max() / abs(whole[0, 2]))


def apexes_off(run: Run) -> float:
    """Largest deviation of the first three apexes from e²ⁿ times the height of fall; parabolas through samples."""
    height, e = float(np.linalg.norm(run.start.about)), run.start.restitution or 0.0
    up = run.start.about / height
    seen = run.q[:, :3] @ up
    seen = seen - seen[0] + height
    tops = [k for k in range(1, len(seen) - 1) if seen[k] > seen[k - 1] and seen[k] >= seen[k + 1]][:3]
    if len(tops) < 3:
        return float("nan")
    a, b, c = (seen[np.array(tops) + k] for k in (-1, 0, 1))
    found = b - (c - a) ** 2 / (8.0 * (a - 2.0 * b + c))
    return float(np.abs(found / (height * e ** (2.0 * np.arange(1, 4))) - 1.0).max())


def kinetic_off(run: Run) -> float:
    """Deviation of the kinetic energy at the end."""
    kinetic = energy(run.model, run.q, run.v).kinetic
    return float(abs(kinetic[-1] / kinetic[0] - 1.0))


def last_ball_off(run: Run) -> float:
    """Deviation of the last ball's speed at the end from that of the first one at the beginning."""
    return float(abs(np.linalg.norm(run.v[-1, -6:-3]) / np.linalg.norm(run.v[0, :3]) - 1.0))


# ---- motions ---------------------------------------------------------------------------------------------------------


def turned(rng: Random) -> Array:
    """Any attitude; none for the named form."""
    return np.array((1.0, 0.0, 0.0, 0.0)) if rng is None else quat_exp(rng.normal(size=3) * 1.5)


def racket(rng: Random) -> Start:
    """A box that spins at 20 rad/s about its middle axis of inertia, 1 % off; 1 to 10 % off in variations."""
    size, off, mass = (0.3, 0.2, 0.1), np.array((0.01, 0.01)), 1.0
    if rng is not None:
        least = rng.uniform(0.03, 0.2)
        size = (least * rng.uniform(2.0, 4.0), least * rng.uniform(1.3, 1.9), least)
        off, mass = rng.uniform(0.01, 0.1, 2) * rng.choice((-1.0, 1.0), 2), float(10.0 ** rng.uniform(-1, 1))
    scene, quat = poise.Scene(gravity=(0, 0, 0)), turned(rng)
    scene.add(poise.box(*size, mass=mass), name="racket", quat_wxyz=tuple(quat))
    spin = np.array((off[0], 1.0, off[1]))

    def set_going(world: poise.World) -> None:
        world.v[3:] = 20.0 * spin / np.linalg.norm(spin)

    return Start(scene, set_going)


def top(rng: Random) -> Start:
    """A disc on an arm that a ball joint holds, spinning at 60 rad/s, tilted, under gravity."""
    radius, thick, arm, mass, tilt, nudge = 0.2, 0.05, 0.3, 1.0, 0.6, 0.5
    if rng is not None:
        radius, thick, arm = rng.uniform(0.1, 0.3), rng.uniform(0.01, 0.08), rng.uniform(0.1, 0.3)
        mass, tilt, nudge = float(10.0 ** rng.uniform(-1, 1)), rng.uniform(0.1, 1.2), rng.uniform(-1.0, 1.0)
    scene, pivot = poise.Scene(), poise.Joint("ball", anchor=(0, 0, -arm))
    scene.add(poise.cylinder(radius, thick, mass=mass), name="disc", joint=pivot, position=(0, 0, arm))

    def set_going(world: poise.World) -> None:
        world.q[:] = np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0
        world.v[:] = nudge, 0.0, 60.0

    return Start(scene, set_going)


def humanoid(rng: Random, *, limits: bool) -> Start:
    """A humanoid that tumbles at 4 rad/s in weightlessness; limp, its joints turn at up to 4 rad/s and have no ends."""
    draw = np.random.default_rng(0) if rng is None else rng
    body = {} if rng is None else {"height": float(rng.uniform(1.2, 2.0)), "mass": float(rng.uniform(30.0, 110.0))}
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.characters.humanoid(**body), name="hero", position=(0, 0, 100))
    if not limits:
        for one in scene.bodies:
            one.shapes = []
            for joint in one.joints:
                joint.limits = joint.cone = joint.twist = None
    axis, quat = draw.normal(size=3), turned(rng)
    limbs = draw.uniform(-4.0, 4.0, 200)

    def set_going(world: poise.World) -> None:
        world.q[3:7] = quat
        world.v[3:6] = 4.0 * axis / np.linalg.norm(axis)
        if not limits:
            world.v[6:] = limbs[: world.model.nv - 6]

    return Start(scene, set_going)


def double_pendulum(rng: Random, kind: str) -> Start:
    """Two boxes that hang from each other by ball or universal joints, each coordinate at up to 6 rad/s."""
    draw = np.random.default_rng(0) if rng is None else rng
    long, masses, axes = (0.5, 0.4), (2.0, 1.0), np.eye(3)[[2, 2]]
    if rng is not None:
        long, masses = tuple(rng.uniform(0.2, 0.8, 2)), tuple(10.0 ** rng.uniform(-0.5, 0.7, 2))
        axes = rng.normal(size=(2, 3))
    scene = poise.Scene()
    upper = poise.Joint(kind, axis=tuple(axes[0]), anchor=(0, 0, 0.5 * long[0]))
    lower = poise.Joint(kind, axis=tuple(axes[1]), anchor=(0, 0, 0.5 * long[1]))
    sizes = [(0.2 * length, 0.3 * length, length) for length in long]
    scene.add(poise.box(*sizes[0], mass=masses[0]), name="upper", joint=upper, position=(0, 0, 3))
    where = (0, 0, -0.5 * sum(long))
    scene.add(poise.box(*sizes[1], mass=masses[1]), name="lower", parent="upper", joint=lower, position=where)
    speeds, angles = draw.uniform(-6.0, 6.0, 6), draw.uniform(-1.5, 1.5, 6)

    def set_going(world: poise.World) -> None:
        nv = world.model.nv
        world.v[:] = speeds[:nv]
        if rng is not None:
            world.q[:] = displaced(world.model, world.q, angles[:nv])

    return Start(scene, set_going)


def rod(name: str, along: Array, mass: float, thin: float = 1e-4) -> Body:
    """A uniform rod from its origin to a point; `thin` is added to all moments of inertia."""
    moments = mass / 12 * (along @ along * np.eye(3) - np.outer(along, along)) + thin * np.eye(3)
    products = (moments[0, 1], moments[0, 2], moments[1, 2])
    return Body(name, inertia=Inertia(mass, com=tuple(0.5 * along), moments=tuple(np.diag(moments)), products=products))


def slider_crank(rng: Random) -> Start:
    """A crank at 12 rad/s, a rod and a slider, which a loop closes, without gravity; from the outer dead centre."""
    crank, length, masses, quat = 0.3, 1.0, (1.0, 1.0, 2.0), turned(rng)
    if rng is not None:
        crank = float(rng.uniform(0.15, 0.35))
        length, masses = crank * float(rng.uniform(2.5, 5.0)), tuple(rng.uniform(0.5, 3.0, 3))
    x, y = rotate(quat, (1.0, 0.0, 0.0)), rotate(quat, (0.0, 1.0, 0.0))

    def scene(kind: str) -> poise.Scene:
        made = poise.Scene(gravity=(0, 0, 0))
        made.hinge(None, rod("crank", crank * x, masses[0]), axis=tuple(-y))
        made.hinge("crank", rod("rod", length * x, masses[1]), axis=tuple(-y), position=tuple(crank * x))
        slider = Body("slider", inertia=Inertia(masses[2], moments=(0.01, 0.01, 0.01)))
        made.slider(None, slider, axis=tuple(x), position=tuple((crank + length) * x))
        where = {} if kind == "ball" else {"axis": tuple(y)}
        made.loop(kind, "rod", "slider", position=tuple((crank + length) * x), **where)
        return made

    def set_going(world: poise.World) -> None:
        world.v[:2] = 12.0, -12.0 * (1.0 + crank / length)

    return Start(scene("hinge"), set_going, for_mujoco=scene("ball"))


def bounce(rng: Random) -> Start:
    """A sphere, or a box that lies flat, that falls on a slab; the slab and gravity are turned in variations."""
    height, e, shape, half = 1.0, 0.8, poise.sphere(0.1, mass=1.0), 0.1
    if rng is not None:
        height, e, half = float(10.0 ** rng.uniform(-0.5, 0.7)), float(rng.uniform(0.5, 0.9)), rng.uniform(0.03, 0.2)
        mass = float(10.0 ** rng.uniform(-1, 1))
        flat = poise.box(*(half * rng.uniform(2.0, 4.0, 2)), 2.0 * half, mass=mass)
        shape = flat if rng.random() < 0.4 else poise.sphere(half, mass=mass)
    quat = turned(rng)
    up = rotate(quat, (0.0, 0.0, 1.0))
    scene = poise.Scene(gravity=tuple(-G * up))
    shape.material = poise.Material(friction=0.5, restitution=e)
    slab = poise.box(4.0, 4.0, 1.0, material=shape.material)
    scene.add(shape, name="it", position=tuple(up * (height + half)), quat_wxyz=tuple(quat))
    scene.add(slab, name="slab", fixed=True, position=tuple(-0.5 * up), quat_wxyz=tuple(quat))
    return Start(scene, lambda world: None, e, about=height * up)


def cradle(rng: Random) -> Start:
    """Elastic balls in a row with gaps of 1 mm, the first one at 1 m/s; two to seven, at 0.5 to 3 m/s in variations."""
    n, speed, radius, mass, quat = 5, 1.0, 0.05, 1.0, turned(rng)
    if rng is not None:
        n, speed, radius = int(rng.integers(2, 8)), float(rng.uniform(0.5, 3.0)), float(rng.uniform(0.02, 0.1))
        mass = float(10.0 ** rng.uniform(-1, 1))
    along = rotate(quat, (1.0, 0.0, 0.0))
    scene, material = poise.Scene(gravity=(0, 0, 0)), poise.Material(friction=0.0, restitution=1.0)
    for k in range(n):
        place = along * (k * (2.0 * radius + 1e-3) - (0.02 if k == 0 else 0.0))
        scene.add(poise.sphere(radius, mass=mass, material=material), name=f"ball{k}", position=tuple(place))

    def set_going(world: poise.World) -> None:
        world.v[:3] = speed * along

    return Start(scene, set_going, 1.0)


def motions() -> list[Motion]:
    """All cases, with their measures and bounds."""
    kept, spun = Measure("energy", 0.03, energy_off), Measure("angular momentum", 0.01, angular_off)
    upright = Measure("vertical angular momentum", 0.01, upright_off)
    struck = Measure("kinetic energy", 0.03, kinetic_off), Measure("speed of the last ball", 0.03, last_ball_off)
    return [
        Motion("racket, 20 rad/s", racket, (kept, spun)),
        Motion("top, 60 rad/s", top, (kept, upright)),
        Motion("limp humanoid, 4 rad/s", lambda rng: humanoid(rng, limits=False), (kept, spun)),
        Motion("humanoid with limits, 4 rad/s", lambda rng: humanoid(rng, limits=True), (spun,), free=False),
        Motion("ball double pendulum, 6 rad/s", lambda rng: double_pendulum(rng, "ball"), (kept,)),
        Motion("universal double pendulum, 6 rad/s", lambda rng: double_pendulum(rng, "universal"), (kept,)),
        Motion("slider-crank, 12 rad/s", slider_crank, (Measure("energy", 0.06, energy_off),)),
        Motion("bounces", bounce, (Measure("apexes", 0.01, apexes_off),), every=1, free=False),
        Motion("cradle, gaps of 1 mm", cradle, struck, seconds=0.5, free=False),
    ]
