"""What agrees, and the table of it in the documents."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf, isnan

from poise import SceneError

from .runs import FIRST, FORMULATIONS, MORE_STEPS, PAIRS, SAMPLES, SORTS, STEPS, Cell, Difference, Steps, cell
from .scenes import FEATURES, KINDS, SPAN, WHAT, Meaningless

LEAST = 0.8
"""Order of differences: they halve with the step, but for what higher orders add."""
ROUNDING = 1e-9
"""Differences that have no order."""
READ = 1e-5
"""The same, of one body alone, whose errors are alike in all formulations but for those of reading its coordinates: to
1e-9 rad or m, and for forces over the square of a step, 4e-4 s."""
CLOSE = 1e-4
"""Of two runs at acceleration level, of the fourth order each; impacts are found to within 1e-6 m."""
FAR = 0.15
"""Of what joints bear, at one step alone: sensors are of the first order, and the step is 1/32 of the time."""
SHORT = dict(zip(FORMULATIONS, ("RV", "RA", "MV", "MA"), strict=True))


def agree(difference: Difference, first: str, second: str, rounding: float = ROUNDING) -> bool:
    """Whether two formulations come to the same as steps get shorter, or to differences that are mere `rounding`."""
    last = difference.errors[-1]
    if all(FORMULATIONS[name].level == "acceleration" for name in (first, second)):
        return last <= CLOSE
    if isnan(difference.order):
        return last <= FAR
    return difference.order >= LEAST or last <= rounding


@dataclass(frozen=True)
class Hole:
    """A cell without runs."""

    why: str


def look(kind: str, feature: str, steps: Steps = STEPS) -> Cell | Hole:
    """A cell; or why there is none: an error that tells so when the scene is built, or that it means nothing."""
    try:
        return cell(kind, feature, steps)
    except Meaningless as reason:
        return Hole(f"means nothing: {reason}")
    except SceneError as error:
        return Hole(f"raises: {error}")


def sorts_of(found: Cell) -> list[str]:
    """What there is to compare."""
    return [sort for sort in SORTS if found.tells(sort)]


def disagreements(found: Cell) -> list[str]:
    """What does not agree, in words."""
    return [
        f"{sort} of {first} and {second}: {', '.join(f'{e:.1e}' for e in d.errors)}, order {d.order:.2f}"
        for sort in sorts_of(found)
        for first, second in PAIRS
        for d in found.differences(sort, first, second)
        if not agree(d, first, second, READ if found.feature.startswith("one body") else ROUNDING)
    ]


# ---- the page --------------------------------------------------------------------------------------------------------

HEAD = """# Agreement of formulations

Reduced and maximal coordinates, at velocity level and at acceleration level, converge to the same motion and the same
forces as steps get shorter. This page measures that for every kind of joint with everything that can act on it. It is
for users who choose a formulation, and for developers.

`python -m tests.agreement` writes this page, in some minutes; `tests/agreement` asserts it, in a shorter form, in every
run of the tests. The formulations are

- RV: `poise.Reduced()`, RA: `poise.Reduced(level="acceleration")`,
- MV: `poise.Maximal()`, MA: `poise.Maximal(level="acceleration")`.

All scenes are made in [one way](../tests/agreement/scenes.py): a joint of this kind connects body "one" to the world,
and another one body "two" to "one", with axes across each other. They move under gravity, away from rest, for {span} s.
The last scenes have one body alone.

{features}

A number is the difference of two formulations at their finest step, and the order at which it falls: with order 1, half
the step gives half the difference. Positions are in m and rad. Velocities are relative to the largest one, forces to
the largest of their sort (1 N or N·m at least): joint reactions, motors, limits, contacts, loop joints. The difference
is the root of the mean square over {samples} times; velocities and forces are left out within three of the coarsest
steps of an impact.

The velocity level is of first order, of second order in smooth motion, and has {velocity} steps; the acceleration level
is of fourth order, and has {acceleration}. Runs of the two levels are compared with the finest one at acceleration
level, except for joint reactions: their sensors are of first order. A cell with several scenes has the largest
difference.

The walls of impacts are smooth: the effect of an impact with friction depends, by some thousandths, on its time within
the step at velocity level, which spreads it over two steps. Forces of sticking contacts are unique if bodies can move
in all directions, so body "one" hangs on a ball joint there. Joint coordinates are computed from maximal coordinates to
1e-9 rad or m, so that forces at velocity level have an error of that over the square of the step, times an inertia:
much shorter steps than these are of no use there.

All agree: orders are {least} or more, or differences are rounding (of one body alone, {read:g}); those of RA and MA are
below {close:g}.
"""


def text_of(look_at: Callable[[str, str], Cell | Hole]) -> str:
    """The page, from all cells."""
    cells = {(kind, feature): look_at(kind, feature) for feature in FEATURES for kind in KINDS}
    parts = [
        HEAD.format(
            span=SPAN,
            features="\n".join(f"- **{feature}**: {what}." for feature, what in WHAT.items()),
            samples=SAMPLES - FIRST,
            velocity=_listed(MORE_STEPS["velocity"]),
            acceleration=_listed(MORE_STEPS["acceleration"]),
            least=LEAST,
            close=CLOSE,
            read=READ,
        ),
        _overview(cells),
    ]
    return "\n".join(parts + [_section(feature, cells) for feature in FEATURES])


def _listed(steps: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, steps[:-1]))} and {steps[-1]}"


def _overview(cells: dict[tuple[str, str], Cell | Hole]) -> str:
    lines = [f"| | {' | '.join(FEATURES)} |", f"|---|{'---|' * len(FEATURES)}"]
    for kind in KINDS:
        row = [_mark(cells[kind, feature]) for feature in FEATURES]
        lines.append(f"| {kind} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _mark(found: Cell | Hole) -> str:
    if isinstance(found, Hole):
        return "–" if found.why.startswith("means") else "raises"
    return "**differs**" if disagreements(found) else "agrees"


def _section(feature: str, cells: dict[tuple[str, str], Cell | Hole]) -> str:
    names = [f"{SHORT[a]}, {SHORT[b]}" for a, b in PAIRS]
    lines = [f"## {feature.capitalize()}", "", f"| joint | of | {' | '.join(names)} |", f"|---|---|{'---|' * 6}"]
    holes = []
    for kind in KINDS:
        found = cells[kind, feature]
        if isinstance(found, Hole):
            holes.append(f"- {kind}: {found.why}")
            continue
        for sort in sorts_of(found):
            row = [_number(found.differences(sort, *pair)) for pair in PAIRS]
            lines.append(f"| {kind} | {sort} | {' | '.join(row)} |")
    return "\n".join([*lines, "", *holes, *([""] if holes else [])])


def _number(differences: list[Difference]) -> str:
    """The worst of all scenes of a cell, and the least order."""
    error, order = max(d.errors[-1] for d in differences), min(d.order for d in differences)
    if error <= ROUNDING or isinf(order):
        return "0" if error == 0.0 else f"{error:.0e}"
    return f"{error:.1e}, {order:.1f}"


def rows_of(page: str) -> dict[tuple[str, str], list[str]]:
    """What a page tells of each cell: sorts of numbers, or why there are none."""
    told: dict[tuple[str, str], list[str]] = {}
    feature = ""
    for line in page.splitlines():
        if line.startswith("## "):
            feature = line[3:].lower()
        elif feature and (row := re.match(r"\| (\w+) \| (\w+) \| ", line)) and row[1] != "joint":
            told.setdefault((row[1], feature), []).append(row[2])
        elif feature and (hole := re.match(r"- (\w+): (.*)", line)):
            told[hole[1], feature] = [hole[2]]
    return told
