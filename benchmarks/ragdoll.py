"""How long a step of a ragdoll takes beside PyBullet's: maximal coordinates, thrown onto the floor.

A person of 15 links, limp, with a bag on a strap in one hand, is thrown from 2.5 m, falls, tumbles and rests. Ours is
`poise.characters.ragdoll` in maximal and in reduced coordinates; PyBullet's is its own humanoid without a bag, which
counts 16 bodies too, a base of 0.1 g among them, with free joints and all settings at their defaults. Ours collides
with itself as well; theirs does where the line says so. Every step is called from Python; a line has the time of ours
in one call. Joint gaps are the largest of all steps. PyBullet's humanoid is a multibody, whose joints have none; in
maximal coordinates it has no ball joints, so that its limbs come off.

The residual is the natural map of the rows over the largest speed that they have to remove. PyBullet reports the
largest change of a speed in its last sweep; it stands in the note, in m/s. Depths are those of contacts. Targets are
for phases on the floor: in the air PyBullet's humanoid, whose joints have no limits except at elbows and knees, has
next to no rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _bullet import Bullet, is_there
from _common import Case, Report, Row, Timings, arguments, effort, measure

import poise
from poise.formulations.maximal_coordinates.maximal import Maximal
from poise.formulations.options import Options
from poise.formulations.reduced import Reduced
from poise.sim.world import World

QUESTION = "a step of a ragdoll that is thrown onto the floor, beside PyBullet's"
DT, HEIGHT, SPEED, SPIN = 1 / 240, 2.5, (2.0, 0.0, 0.0), (2.0, 3.0, 1.0)
PHASES = {"falling": (0, 96), "tumbling": (144, 240), "at rest": (1680, 240)}
"""First step, and number of steps."""
MOST, BESIDE_REDUCED, TOLERANCE = 0.5, 1.3, 1e-3
BULLETS = {
    "PyBullet": {},
    "PyBullet, hits itself": {"collide": True},
    "PyBullet, maximal": {"maximal": True},
}


def ragdoll(formulation: Options) -> World:
    """Ours, in the air."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.ragdoll(), name="doll")
    bag = poise.box(0.2, 0.1, 0.15, mass=1.0)
    scene.ball("doll/hand_r", bag, name="bag", anchor=(0, 0, 0.25), position=(0, 0, -0.25))
    world = scene.build(formulation, dt=DT)
    world.q[2] = HEIGHT
    world.v[:3], world.v[3:6] = SPEED, SPIN
    return world


class Ours:
    """A world that can go back to where a phase begins."""

    def __init__(self, formulation: Options) -> None:
        self.world = ragdoll(formulation)

    def keep(self) -> Any:
        """The state, multipliers among it."""
        return self.world.state

    def restore(self, kept: Any) -> None:
        """Go back."""
        self.world.state = kept

    def run(self, n: int) -> None:
        """N steps, each called from Python."""
        step = self.world.step
        for _ in range(n):
            step()

    def look(self, n: int) -> dict[str, float]:
        """The same steps: means, and the greatest residual, depth (m) and gap (m)."""
        told = []
        for _ in range(n):
            self.world.step()
            report = self.world.report()
            depths = [contact.depth for contact in report.contacts]
            counts = sum(depth > -1e-3 for depth in depths), report.rows, report.sweeps, report.newton_steps
            told.append((*counts, report.residual, max(depths, default=0.0), self.gap()))
        found = np.array(told, float)
        names = ("contacts", "rows", "sweeps", "newton", "residual", "depth", "gap")
        values = (*found[:, :4].mean(axis=0), *found[:, 4:].max(axis=0))
        return dict(zip(names, map(float, values), strict=True))

    def gap(self) -> float:
        """The greatest of a joint; m."""
        stepper: Any = self.world._stepper
        return float(np.abs(stepper.gaps[:, 3:]).max()) if hasattr(stepper, "gaps") else 0.0


Engine = Ours | Bullet


@dataclass
class Phase:
    """A phase of the motion of one engine."""

    engine: Engine
    kept: Any
    steps: int

    def back(self) -> None:
        """To where it begins."""
        self.engine.restore(self.kept)

    def case(self, name: str, run: Callable[[int], None] | None = None) -> Case:
        """All its steps."""

        def go(times: int) -> None:
            for k in range(times):
                if k > 0:
                    self.back()
                (run or self.engine.run)(self.steps)

        return Case(name, go, worlds=self.steps, prepare=self.back)

    def look(self) -> dict[str, float]:
        """At the steps that were timed."""
        self.back()
        return self.engine.look(self.steps)


def phases_of(engine: Engine) -> dict[str, Phase]:
    """Let it go through all of them."""
    phases, done = {}, 0
    for name, (first, steps) in PHASES.items():
        engine.run(first - done)
        phases[name] = Phase(engine, engine.keep(), steps)
        engine.run(steps)
        done = first + steps
    return phases


def note(found: dict[str, float], more: str = "") -> str:
    """What steps took, for the table."""
    words = [f"{found['contacts']:.1f} contacts"]
    if "rows" in found:
        words += [f"{found['rows']:.0f} rows, {found['newton']:.1f} Newton steps"]
        words += [f"gap {1e3 * found['gap']:.1e} mm"] if found["gap"] else []
    else:
        words += [f"{found['sweeps']:.1f} sweeps, last one {found['residual']:.0e} m/s"]
    words += [f"depth {1e3 * found['depth']:.2f} mm"]
    return ", ".join(words + [more] * bool(more))


def rows_of(phase: str, ours: dict[str, Phase], peers: dict[str, Phase], times: Timings) -> list[Row]:
    """Lines of a phase."""
    rows = []
    beside = "PyBullet" if peers else "Reduced"
    for name, part in ours.items():
        found = part.look()
        row = Row(f"{phase}: {name}", times.of(name), note=note(found), residual=found["residual"], allowed=TOLERANCE)
        if name != beside:
            row.beside, row.ratio = beside, times.ratio(name, beside)
            row.most = MOST if peers and phase != "falling" else None
        rows.append(row)
    for name in (f"{name}, one call" for name in ours):
        rows.append(Row(f"{phase}: {name}", times.of(name)))
        if peers:
            rows[-1].beside, rows[-1].ratio = beside, times.ratio(name, beside)
    both = Row(f"{phase}: Maximal over Reduced", times.of("Maximal, one call"), beside="Reduced, one call")
    both.ratio, both.most = times.ratio("Maximal, one call", "Reduced, one call"), BESIDE_REDUCED
    rows.append(both)
    for name, part in peers.items():
        assert isinstance(part.engine, Bullet)
        found = part.look()
        apart = f"contacts {part.engine.breadth():.1f} m apart" if found["contacts"] else ""
        rows.append(Row(f"{phase}: {name}", times.of(name), note=note(found, apart)))
    return rows


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options, rounds=15)
    ours = {name: Ours(how) for name, how in (("Maximal", Maximal()), ("Reduced", Reduced()))}
    peers = {name: Bullet(HEIGHT, SPEED, SPIN, **how) for name, how in BULLETS.items()} if is_there() else {}
    settings = {"dt": DT, "rounds": much.rounds, "links": ours["Maximal"].world.model.n_links}
    settings |= {"PyBullet's links": peers["PyBullet"].links} if peers else {"PyBullet": "not installed"}
    report = Report("ragdoll", QUESTION, settings)
    ways = {name: phases_of(engine) for name, engine in (ours | peers).items()}
    for phase in PHASES:
        parts = {name: way[phase] for name, way in ways.items()}
        cases = [part.case(name) for name, part in parts.items()]
        cases += [parts[name].case(f"{name}, one call", world.world.step) for name, world in ours.items()]
        times = measure(cases, much)
        mine = {name: parts[name] for name in ours}
        report.rows += rows_of(phase, mine, {name: parts[name] for name in peers}, times)
        report.results += [engine.world.q.copy() for engine in ours.values()]
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
