"""Every kind of joint with everything that acts on it: the same motion and the same forces under every formulation.

Bounds are told in `table`: differences fall at first order, those of two runs of the fourth order are next to nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise

from .runs import FORMULATIONS, MORE_STEPS, run
from .scenes import FEATURES, KINDS, chain, make
from .table import LEAST, Hole, disagreements, look, rows_of, sorts_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agreement.md"
EXPECTED = (
    {("free", "limit"), ("free", "loop"), ("free", "one body, loop")}
    | {(kind, "one body, contact") for kind in ("hinge", "slider", "screw", "planar")}
    | {("fixed", feature) for feature in FEATURES if feature != "loop"}
)
"""Cells without a scene."""


@pytest.fixture(scope="module")
def page() -> dict[tuple[str, str], list[str]]:
    return rows_of(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("kind", KINDS)
def test_formulations_agree(kind: str, feature: str, page: dict[tuple[str, str], list[str]]) -> None:
    found = look(kind, feature)
    assert isinstance(found, Hole) == ((kind, feature) in EXPECTED)
    if isinstance(found, Hole):
        assert page[kind, feature] == [found.why]
        return
    assert not disagreements(found)
    assert page[kind, feature] == sorts_of(found)


@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("kind", KINDS)
def test_formulations_agree_at_shorter_steps(kind: str, feature: str) -> None:
    if (kind, feature) not in EXPECTED:
        found = look(kind, feature, MORE_STEPS)
        assert not isinstance(found, Hole)
        assert not disagreements(found)


def test_the_page_tells_of_every_cell_and_of_no_other(page: dict[tuple[str, str], list[str]]) -> None:
    assert set(page) == {(kind, feature) for kind in KINDS for feature in FEATURES}
    assert "differs" not in PAGE.read_text(encoding="utf-8")


def test_what_acts_is_there() -> None:
    """Or nothing would be told of it: limits and walls push, in all kinds; loops and motors pull."""
    told = rows_of(PAGE.read_text(encoding="utf-8"))
    wanted = {"limit": "limits", "motor": "motors", "impact": "contacts", "contact": "contacts", "loop": "loops"}
    wanted |= {f"one body, {feature}": sort for feature, sort in wanted.items() if feature != "limit"}
    for feature, sort in (wanted | {"ring": "loops"}).items():
        for kind in KINDS:
            if (kind, feature) == ("ball", "one body, impact"):  # it has left the wall, whose force is rounding
                continue
            assert (kind, feature) in EXPECTED or sort in told[kind, feature], (kind, feature)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_what_cannot_be_is_told_when_worlds_are_built(name: str) -> None:
    free = {"one": "free", "two": "free"}
    with pytest.raises(poise.SceneError, match="a free joint has no limits"):
        chain(free, {"two": {"limits": ((-1.0, 1.0),) * 6}}).build(FORMULATIONS[name])
    scene = chain(free)
    scene.loop("free", "one", "two", "loop")
    with pytest.raises(poise.SceneError, match="'free' is not a kind of joint that a loop can have"):
        scene.build(FORMULATIONS[name])


@pytest.mark.parametrize("solver", ["pgs", "dantzig"])
def test_drives_keep_their_inertia_where_joints_are_rows(solver: str) -> None:
    """Of the first order too: armature goes with the rate of a coordinate, not of twists along axes that stay."""
    loose = poise.Maximal(solver=solver, stabilization="speed", tolerance=1e-9, sweeps=5000)
    (start,) = make("ball", "armature")
    apart = []
    for steps in (32, 64):
        one, other = (run(start, formulation, steps) for formulation in (loose, poise.Reduced(tolerance=1e-12)))
        apart.append(
            max(float(np.abs(a.places - b.places).max()) for a, b in zip(one.samples, other.samples, strict=True))
        )
    assert apart[1] < 0.5**LEAST * apart[0]
