"""Rows along the motion of random trees: row accelerations by differences, and motions that obey their rows.

Tolerances are those of `test_tree_rows`, times the condition of the constraint matrix where it is solved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given

from constraints.checker import first_difference
from constraints.tree_cases import (
    EASY,
    ROUNDING,
    SEEDS,
    Tree,
    Wanted,
    expected,
    inverse_mass,
    make_tree,
    pushes,
    random_body,
    random_rows,
    some_body,
    usable,
)
from poise import dynamics
from poise.constraints.response.row_system import answer, see
from poise.constraints.row_parts import orientation_parts, point_parts
from poise.constraints.row_parts.part_bodies import body_at
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import acceleration_problem, velocity_problem
from poise.kernel.vec import Vec3
from poise.model.scene import Scene
from poise.solve.direct import Direct
from strategies import scenes


def random_part(tree: Tree) -> tuple[Any, tuple[int, ...]]:
    """A part as a function of states of bodies, and the bodies."""
    rng, m = tree.rng, tree.model
    pa, pb, n = (Vec3(*map(float, rng.uniform(-0.5, 0.5, 3))) for _ in range(3))
    two = (random_body(m, rng), some_body(m, rng))
    sort = rng.integers(5)
    if sort == 0:
        k = rng.integers(3)
        return (lambda a, b: point_parts.point(a, b, pa, pb)[k]), two
    if sort == 1:
        return (lambda a, b: point_parts.along(a, b, pa, pb, n)), two
    if sort == 2:
        return (lambda a, b: point_parts.distance(a, b, pa, pb)), two
    if sort == 3:
        return (lambda a, b: orientation_parts.perpendicular(a, b, pa, n)), two
    four = (*two, random_body(m, rng), some_body(m, rng))
    ratio = float(rng.normal())

    def geared(a: Any, b: Any, c: Any, d: Any) -> Any:
        return point_parts.gear(point_parts.along(a, b, pa, pb, n), point_parts.distance(c, d, pb, pa), ratio, 0.3)

    return geared, four


def twists(part: Any, bodies: list[Any]) -> float:
    """J v of a part, from its own covectors."""
    covectors = [part.a, part.b, *((part.c, part.d) if hasattr(part, "c") else ())]
    pairs = zip(covectors, bodies, strict=True)
    return sum(
        float(np.dot(list(J.leaves()), [*map(float, body.w.leaves()), *map(float, body.v.leaves())]))
        for J, body in pairs
    )


@EASY
@given(scene=scenes(massless=False), seed=SEEDS)
def test_pull_is_the_rate_of_row_velocity_along_the_free_motion(scene: Scene, seed: int) -> None:
    """Parts on bodies of the tree: φ̇ and φ̈ by differences of fourth order along the motion that dynamics gives.

    Steps h and 2h differ by 15 truncations of the first; rounding is 2⁻⁵³ times some hundred, over h.
    """
    tree = make_tree(scene, seed)
    usable(tree)
    m, h = tree.model, 1e-3
    pieces = [random_part(tree) for _ in range(4)]
    led = tree.vector()
    a = dynamics.forward_dynamics(m, tree.q, tree.v, prescribed=led)
    speed = 1.0 + np.abs(tree.v).max() + np.sqrt(np.abs(a).max())
    h /= speed  # so that a step is about as long for slow and for fast trees

    def at(t: float) -> list[tuple[Any, list[Any]]]:
        q, v = dynamics.displaced(m, tree.q, tree.v + 0.5 * t * a, t), tree.v + t * a
        states = [[body_at(m, q, v, body) for body in bodies] for _, bodies in pieces]
        return [(part(*state), state) for (part, _), state in zip(pieces, states, strict=True)]

    rows = Rows(m)
    for k, ((_, bodies), (part, _)) in enumerate(zip(pieces, at(0.0), strict=True)):
        assume(max(bodies) >= 0)
        assume(abs(float(part.phi)) > 1e-2)  # not next to where distances have no direction
        rows.add_part(part, bodies, id=k)
    seen = see(rows, tree.q, tree.v, prescribed=led)

    def errors(t: float) -> np.ndarray:
        return np.array([float(part.phi) for part, _ in at(t)])

    def rates(t: float) -> np.ndarray:
        return np.array([twists(part, state) for part, state in at(t)])

    for found, f in ((seen.speed, errors), (seen.pull, rates)):
        near, far = first_difference(f, h), first_difference(f, 2 * h)
        off, truncation = np.abs(found - near), np.abs(near - far)
        size = 1.0 + np.abs(f(0.0)) + np.abs(found) * h
        assume(np.all(truncation <= 1e-5 * speed**2 * (1.0 + np.abs(near))))  # else steps are too long to tell
        assert np.all(off <= truncation + 1e-13 * size / h * 10.0), (found, near)


def few_equalities(tree: Tree) -> tuple[Rows, Wanted, float]:
    """At most half as many equalities as there are free coordinates, that do not conflict."""
    rows, wanted = random_rows(tree, max(1, len(tree.free) // 2), blocks=False)
    assume(len(wanted.pieces) > 0)
    right = expected(tree, wanted)
    A = right.J @ inverse_mass(tree) @ right.J.T
    size = np.sqrt(np.diagonal(A))
    assume(np.all(size > 1e-3))
    condition = float(np.linalg.cond(A / np.outer(size, size)))
    assume(condition < 1e3)
    return rows, wanted, condition


@EASY
@given(scene=scenes(massless=False), seed=SEEDS)
def test_forces_of_rows_make_every_h_nought(scene: Scene, seed: int) -> None:
    """KOK §4.2: with the solved forces applied by a call of the dynamics that knows no rows, h(q̈) = 0."""
    tree = make_tree(scene, seed)
    condition = usable(tree)
    assume(len(tree.free) > 1)
    rows, wanted, spread = few_equalities(tree)
    tau, led, m = tree.vector(), tree.vector(), tree.model
    seen = see(rows, tree.q, tree.v, tau, prescribed=led)
    result = Direct().solve(acceleration_problem(rows, seen))
    assert result.ok
    extra, forces = pushes(tree, wanted, result.lam)
    a = dynamics.forward_dynamics(m, tree.q, tree.v, tau + extra, forces=forces, prescribed=led)
    right = expected(tree, wanted)
    h = right.J @ a + right.rate @ tree.v + wanted.gamma
    scale = 10.0 + (right.gross @ (np.abs(a) + np.abs(seen.a_free))).max() + (np.abs(right.rate) @ np.abs(tree.v)).max()
    assert np.abs(h).max() <= ROUNDING * condition * spread * scale
    changed = answer(rows, tree.q, result.lam)
    assert np.abs(seen.a_free + changed - a).max() <= ROUNDING * condition * spread * (1.0 + np.abs(a).max()) * 10


@EASY
@given(scene=scenes(massless=False), seed=SEEDS)
def test_impulses_of_rows_give_the_wanted_velocities(scene: Scene, seed: int) -> None:
    """At velocity level with implicit springs: impulses over dt as forces of an implicit step give J v⁺ = v_ref."""
    tree, dt = make_tree(scene, seed), 0.05
    condition = usable(tree)
    assume(len(tree.free) > 1)
    rows, wanted, spread = few_equalities(tree)
    tau, led, m = tree.vector(), tree.vector(), tree.model
    slots = rows.listing().slots
    rows.now.target[slots] = target = tree.rng.normal(size=len(slots))
    rows.now.phi[slots] = phi = 0.01 * tree.rng.normal(size=len(slots))
    rows.now.erp[slots] = erp = tree.rng.uniform(0, 1, len(slots))
    seen = see(rows, tree.q, tree.v, tau, prescribed=led, dt=dt)
    result = Direct().solve(velocity_problem(rows, seen, dt))
    assert result.ok
    extra, forces = pushes(tree, wanted, result.lam / dt)
    a = dynamics.forward_dynamics(m, tree.q, tree.v, tau + extra, forces=forces, prescribed=led, dt=dt)
    right = expected(tree, wanted)
    v = tree.v + dt * a
    scale = 1.0 + (right.gross @ (np.abs(v) + np.abs(tree.v) + dt * np.abs(seen.a_free))).max()
    v_ref = target - erp * phi / dt
    assert np.abs(right.J @ v - v_ref).max() <= ROUNDING * condition * spread * scale
    changed = answer(rows, tree.q, result.lam, dt=dt)
    assert np.abs(tree.v + dt * seen.a_free + changed - v).max() <= ROUNDING * condition * spread * scale * 10
