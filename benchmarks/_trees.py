"""The trees that benchmarks run on: MuJoCo's humanoid, chains and bushes of any size, and random states of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import poise
from poise.dynamics.workspace import Workspace
from poise.kernel.memory import Width
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene

VARIABLE = "POISE_BENCH_MODEL"


def find_humanoid(given: str | None = None) -> Path:
    """The MJCF file to run: the one given, that of $POISE_BENCH_MODEL, one beside the checkout, or dm_control's."""
    named = given or os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise SystemExit(f"{named} is no file; name an MJCF file with --model or ${VARIABLE}")
        return Path(named)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "mjcf" / "humanoid.xml"
    if beside.is_file():
        return beside
    from importlib.util import find_spec

    spec = find_spec("dm_control")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        suite = Path(folder) / "suite" / "humanoid.xml"
        if suite.is_file():
            return suite
    raise SystemExit(f"no humanoid found: install dm_control (poise[bench]), or name an MJCF file with ${VARIABLE}")


def load_model(path: Path) -> Model:
    """Compile a file."""
    return poise.load(str(path)).compile()


@dataclass(frozen=True)
class States:
    """Some states and forces, one row each."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


def random_states(model: Model, count: int, seed: int = 0) -> States:
    """Poses around the rest pose with random orientations, velocities of the order of 1, forces of the order of 10."""
    rng = np.random.default_rng(seed)
    q = model.q_rest + rng.normal(scale=0.5, size=(count, model.nq))
    for start in model.primitive_q_start[model.primitive_kind == Primitive.BALL]:
        quats = rng.normal(size=(count, 4))
        q[:, start : start + 4] = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    return States(q, rng.normal(size=(count, model.nv)), rng.normal(scale=10.0, size=(count, model.nv)))


def fill(space: Workspace, states: States, first: int = 0) -> None:
    """Put states into a workspace, beginning with row `first`: one, or one a lane."""
    rows = (first + np.arange(space.width.lanes)) % len(states.q)
    for array, values in ((space.s.q, states.q), (space.s.v, states.v), (space.x.tau, states.tau)):
        array[...] = values[rows[0]] if space.width.lanes == 1 else values[rows].T


def handles(space: Workspace) -> tuple[np.ndarray, ...]:
    """What most entries take first: model, state, input, work."""
    return space.m.handle, space.s.handle, space.x.handle, space.w.handle


def filled(model: Model, width: Width, states: States) -> Workspace:
    """A workspace of its own with states in it."""
    space = Workspace(model, width)
    fill(space, states)
    return space


def tree(parents: list[int], seed: int = 0) -> Model:
    """A tree of boxes on hinges about alternating axes; parents[i] < i, −1 is the world."""
    rng = np.random.default_rng(seed)
    bodies = []
    for i, parent in enumerate(parents):
        size: Any = tuple(rng.uniform(0.05, 0.15, 3))
        axis: Any = tuple(np.eye(3)[i % 3])
        bodies.append(
            Body(
                f"link{i}",
                parent=None if parent < 0 else f"link{parent}",
                position=(0.0, 0.0, 0.2) if parent >= 0 else (0.0, 0.0, 0.0),
                joints=[Joint("hinge", axis=axis)],
                shapes=[poise.box(*size)],
            )
        )
    return Scene(bodies=bodies).compile()


def chain(n: int) -> list[int]:
    """Parents of a chain."""
    return list(range(-1, n - 1))


def bush(n: int, branches: int = 3, seed: int = 0) -> list[int]:
    """Parents of a random tree in which no link has more than so many children."""
    rng = np.random.default_rng(seed)
    parents, children, open_links = [-1], [0], [0]
    for i in range(1, n):
        k = int(rng.integers(len(open_links)))
        parent = open_links[k]
        parents.append(parent)
        children[parent] += 1
        if children[parent] == branches:
            open_links.pop(k)
        children.append(0)
        open_links.append(i)
    return parents
