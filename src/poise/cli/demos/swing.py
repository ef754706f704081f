"""A humanoid swings from one hand, and every joule is accounted for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import poise
from poise.characters import humanoid
from poise.dynamics import Drive, Simulation, Trajectory, bodies, difference, energy, response
from poise.kernel.jit import compile_log
from poise.model.reroot import rerooted
from poise.model.shapes import capsule
from poise.motion.rotations import quat_conjugate, quat_exp, quat_multiply
from poise.view.plots import below, line_chart
from poise.view.silhouettes import strobe

Floats = NDArray[np.float64]

BAR_HEIGHT = 2.4
DURATION, DT, EVERY = 6.0, 1e-3, 5
TILT = np.radians(58)
"""Initial deflection of the body; rad."""
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-~=+*#"


def run(out: Path) -> int:
    """Build, simulate, compute energies, draw, print."""
    scene, model = hanging_humanoid()
    start, tone = pose(model)
    simulation = Simulation(model, start, dt=DT, method="rk4")
    simulation.drive = tone
    began = time.perf_counter()
    motion = simulation.run(DURATION, every=EVERY)
    wall = time.perf_counter() - began
    ledger = account(model, motion, tone)
    picture = draw(scene, model, motion, ledger, out)
    tell(model, ledger, wall, picture)
    return 0 if abs(ledger.unexplained).max() < 1e-3 * ledger.swing else 1


def hanging_humanoid() -> tuple[poise.Scene, poise.Model]:
    """A person who holds a bar with the right hand."""
    person = humanoid(height=1.75, mass=70.0)
    hand = next(body for body in person.bodies if body.name == "hand_r")
    palm = hand.shapes[0].position
    held = rerooted(person, "hand_r", poise.Joint("ball", name="grip", anchor=palm))
    grip = np.asarray(held.bodies[0].position) + palm
    scene = poise.Scene(name="swing")
    lift = (float(-grip[0]), float(-grip[1]), float(BAR_HEIGHT - grip[2]))
    scene.add(held, name="hero", position=lift)
    bar = capsule(
        0.015, 0.5, quat_wxyz=(0.7071067811865476, 0.7071067811865476, 0.0, 0.0), color=(0.55, 0.55, 0.6, 1.0)
    )
    scene.add(bar, name="bar", position=(0.0, 0.0, BAR_HEIGHT), fixed=True)
    return scene, scene.compile()


def pose(model: poise.Model) -> tuple[poise.State, Drive]:
    """The arm overhead, knees slightly bent, the body deflected; with springs towards this pose."""
    state = poise.State.rest(model)
    raised = quat_exp((0.0, -np.radians(172), 0.0))  # upper arm in the torso
    aside = quat_multiply(quat_exp((0.0, 0.0, np.radians(20))), quat_exp((0.0, TILT, 0.0)))
    state.q[model.q_slice("shoulder_r")] = quat_conjugate(raised)
    state.q[model.q_slice("grip")] = quat_multiply(aside, raised)
    for side, bend in (("l", 0.9), ("r", 0.5)):
        state.q[model.q_slice(f"knee_{side}")] = bend
        state.q[model.q_slice(f"hip_{side}")] = quat_exp((0.0, -0.6 * bend, 0.0))
    state.q[model.q_slice("elbow_l")] = 0.6
    # tone in proportion to the inertia that a joint feels: the same frequency and damping ratio everywhere
    felt = 1.0 / np.diag(response(model, state.q, np.eye(model.nv)))
    for joint in model.joint_names:  # alike about all axes of a ball, else its spring would have no potential
        felt[model.v_slice(joint)] = felt[model.v_slice(joint)].min()
    frequency, ratio = 2 * np.pi * 2.0, 0.5
    gain_p, gain_d = frequency**2 * felt, 2 * ratio * frequency * felt
    gain_p[model.v_slice("grip")] = 0.0
    return state, Drive(gain_p, gain_d, state.q.copy())


@dataclass(frozen=True)
class Ledger:
    """Energies over time; J."""

    kinetic: Floats
    gravity: Floats
    muscles: Floats
    """Stored in the springs."""
    lost: Floats
    """Dissipated by the dampers since the beginning."""

    @property
    def total(self) -> Floats:
        """Constant, if the physics is right."""
        return self.kinetic + self.gravity + self.muscles + self.lost

    @property
    def unexplained(self) -> Floats:
        """Change of the sum since the beginning."""
        return np.asarray(self.total - self.total[0])

    @property
    def swing(self) -> float:
        """Greatest kinetic energy."""
        return float(self.kinetic.max())


def account(model: poise.Model, motion: Trajectory, tone: Drive) -> Ledger:
    """Energies along a motion, from states alone; heat is the integral of damping power by Simpson's rule."""
    parts = energy(model, motion.q, motion.v)
    error = difference(model, motion.q, np.asarray(tone.goal_q))
    muscles = 0.5 * (np.asarray(tone.gain_p) * error**2).sum(axis=1)
    power = (np.asarray(tone.gain_d) * motion.v**2).sum(axis=1)
    gravity = parts.gravity - parts.gravity.min()
    return Ledger(parts.kinetic, gravity, muscles, running_integral(power, motion.time[1] - motion.time[0]))


def running_integral(values: Floats, step: float) -> Floats:
    """∫ from the first sample to each one: cubic through four neighbours, fourth order like the integrator."""
    f = values
    inner = step / 24.0 * (-f[:-3] + 13.0 * f[1:-2] + 13.0 * f[2:-1] - f[3:])
    first = step / 24.0 * (9.0 * f[0] + 19.0 * f[1] - 5.0 * f[2] + f[3])
    last = step / 24.0 * (9.0 * f[-1] + 19.0 * f[-2] - 5.0 * f[-3] + f[-4])
    return np.concatenate(([0.0, first], first + np.cumsum(inner), [first + inner.sum() + last]))


def draw(scene: poise.Scene, model: poise.Model, motion: Trajectory, ledger: Ledger, out: Path) -> Path:
    """The first swing forth as a row of silhouettes, over a plot of the energies."""
    moments = []
    for at in np.arange(0.0, 1.3, 0.2):
        k = int(np.argmin(np.abs(motion.time - at)))
        where = bodies(model, motion.q[k])
        moments.append((where.position, where.rotation, f"{motion.time[k]:.1f} s"))
    row = strobe(scene, model.body_names, moments, spacing=0.8, title="Swinging from one hand")
    curves = {
        "kinetic": ledger.kinetic,
        "gravity": ledger.gravity,
        "in muscles": ledger.muscles,
        "turned into heat": ledger.lost,
        "sum": ledger.total,
    }
    chart = line_chart(motion.time, curves, title="Energy", x_label="time (s)", y_label="energy (J)")
    return below(row, chart).save(out / "swing.svg")


def tell(model: poise.Model, ledger: Ledger, wall: float, picture: Path) -> None:
    """A summary on the terminal."""
    from rich.console import Console
    from rich.table import Table

    console, steps = Console(), round(DURATION / DT)
    ramp = BLOCKS if can_show(BLOCKS, console.encoding) else ASCII_BLOCKS
    table = Table(title="A humanoid swings from one hand", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")  # the whole path of the picture, however narrow the terminal
    rows = {
        "character": f"{model.n_links} moving bodies, {model.nv} degrees of freedom, {model.link_mass.sum():.1f} kg",
        "simulated": f"{DURATION:g} s in {steps} Runge-Kutta steps of {DT * 1e3:g} ms",
        "took": f"{wall:.2f} s: {DURATION / wall:.0f} times real time",
        "kernels": compilation(compile_log()),
        "kinetic energy": f"{spark(ledger.kinetic, ramp)}  up to {ledger.kinetic.max():.1f} J",
        "gravity energy": f"{spark(ledger.gravity, ramp)}  {ledger.gravity[0]:.1f} J at first",
        "turned into heat": f"{spark(ledger.lost, ramp)}  {ledger.lost[-1]:.1f} J",
        "unexplained": f"{abs(ledger.unexplained).max():.1e} J at most, of {ledger.swing:.0f} J in motion",
        "picture": str(picture),
    }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)


def compilation(log: list[tuple[str, float]]) -> str:
    """What compiling has cost this time.

    >>> compilation([("a", 1.5), ("b", 2.0)]), compilation([])
    ('2 compiled in 3.5 s and kept for the next time', 'found compiled')
    """
    if not log:
        return "found compiled"
    return f"{len(log)} compiled in {sum(seconds for _, seconds in log):.1f} s and kept for the next time"


def can_show(letters: str, encoding: str) -> bool:
    """Whether a terminal of this encoding has all these letters.

    >>> can_show("▁█", "utf-8"), can_show("▁█", "ascii")
    (True, False)
    """
    try:
        letters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def spark(values: Floats, ramp: str = BLOCKS, width: int = 36) -> str:
    """A curve in one line of text, written with letters from low to high.

    >>> import numpy as np
    >>> spark(np.array([0.0, 1.0, 2.0, 3.0]), width=4)
    '▁▃▆█'
    """
    picked = values[np.linspace(0, len(values) - 1, width).round().astype(int)]
    low, high = float(picked.min()), float(picked.max())
    level = (picked - low) / (high - low or 1.0) * (len(ramp) - 1)
    return "".join(ramp[round(float(x))] for x in level)
