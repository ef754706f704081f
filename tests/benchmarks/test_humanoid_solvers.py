"""The loop over loose bodies, on which solvers are compared, is mechanics; and what the tables say of solvers holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmark_scripts import helper, script
from poise.sim.world import World
from poise.solve.dantzig import Dantzig
from poise.solve.pgs import PGS
from poise.solve.problem import Options


def exactly(posed, warm):
    return Dantzig().solve(posed.formed(cone=False), Options(iterations=100_000))


def test_loose_bodies_move_as_the_tree_does():
    """A swinging chain in both forms: they come together at the first order of the step."""
    loose = helper("_loose_bodies")
    apart = []
    for steps in (24, 48):
        bodies = replace(loose.hanging(5, angle=0.5), dt=0.1 / steps)
        world = World(bodies.model, dt=0.1 / steps)
        world.q[...] = bodies.q
        for _ in range(steps):
            assert bodies.step(exactly)[0].ok
        world.step(steps)
        _, joints, _ = bodies.pose()
        assert np.abs(joints.error).max() < 1e-3
        apart.append(float(np.abs(joints.q - world.q).max()))
    assert apart[0] < 0.02
    assert apart[1] < 0.6 * apart[0]


def test_sweeps_do_badly_on_both_feet_and_pivots_do_not():
    """LIU: here with joints, motors and contacts as rows; Newton's method on what joints leave is exact as well."""
    loose, solve = helper("_loose_bodies"), script("humanoid_solvers")
    bodies = loose.standing()
    for _ in range(3):
        assert bodies.step(exactly)[0].ok
    posed, _, _ = bodies.pose()
    size = float(np.abs(posed.problem.b).max())
    nought = np.zeros(posed.problem.size)
    assert len(posed.problem.frictions) == 8
    for problem in (posed.problem, posed.formed()):
        assert PGS(newton=False).solve(problem, Options(iterations=200)).natural > 0.05 * size
    assert exactly(posed, nought).natural < 1e-9 * size
    assert solve["direct_newton"](posed, nought).natural < 1e-9 * size
    assert PGS(newton=False, memory=10, check_every=1).solve(posed.problem, Options(iterations=4000)).ok
