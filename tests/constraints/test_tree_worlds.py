"""Rows of many worlds in lanes: what they are alone, whoever their neighbours are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constraints.tree_cases import (
    EASY,
    SEEDS,
    Tree,
    Wanted,
    expected,
    fill,
    inverse_mass,
    make_tree,
)
from poise.constraints.response.row_system import answer, see
from poise.constraints.rows import Rows
from poise.dynamics.argument_checks import Singular
from poise.kernel.memory import F32X16, F64X8, Width
from poise.model.scene import Scene
from strategies import random_q, random_v, scenes


def lanes_of_worlds(tree: Tree, width: Width, counts: list[int]) -> tuple[Rows, list[tuple[Rows, Wanted]], dict]:
    """Rows of as many worlds as a width has lanes, with different rows in each, and each world's alone."""
    together, alone = Rows(tree.model, width), []
    for world, count in enumerate(counts):
        single = Rows(tree.model)
        state = tree.rng.bit_generator.state
        wanted = fill(single, tree, count, blocks=count % 2 == 0)
        tree.rng.bit_generator.state = state
        fill(together, tree, count, blocks=count % 2 == 0, world=world)
        alone.append((single, wanted))
    n = width.lanes
    given = {"q": random_q(tree.model, tree.rng, n), "v": random_v(tree.model, tree.rng, n)}
    given["tau"] = random_v(tree.model, tree.rng, n)
    return together, alone, given


def own_rows(together: Rows, world: int) -> np.ndarray:
    """Places in the listing of the rows that a world has."""
    listing = together.listing()
    have, seen, out = together.counts(world), dict.fromkeys(range(4), 0), []
    for kind, start, end in zip(listing.kinds, listing.starts, listing.starts[1:], strict=False):
        if seen[int(kind)] < list(have.values())[int(kind)]:
            out += range(start, end)
        seen[int(kind)] += 1
    return np.array(out, int)


@pytest.mark.parametrize("width", [F64X8, F32X16], ids=str)
@settings(EASY, max_examples=15)
@given(scene=scenes(massless=False), seed=SEEDS, dt=st.sampled_from([None, 0.03]))
def test_worlds_in_lanes_are_worlds_alone(width: Width, scene: Scene, seed: int, dt: float | None) -> None:
    """Up to the rounding of the width, times the condition of M and some hundred operations, of the sizes summed up."""
    tree = make_tree(scene, seed)
    counts = [3, 0, 7, 1, 12, 4, 2, 9, 5, 5, 0, 0, 6, 8, 2, 1][: width.lanes]
    together, alone, given_ = lanes_of_worlds(tree, width, counts)
    states = [Tree(scene, tree.model, tree.rng, q, v) for q, v in zip(given_["q"], given_["v"], strict=True)]
    assume(max(state.condition() for state in states) < 1e3)
    seen = see(together, **given_, dt=dt)
    lam = tree.rng.normal(size=seen.speed.shape)
    answers = answer(together, given_["q"], lam, dt=dt or 0.0)
    assert seen.A.dtype == seen.speed.dtype == answers.dtype == width.dtype
    for world, (single, wanted) in enumerate(alone):
        own = {name: array[world] for name, array in given_.items()}
        one, have = see(single, **own, dt=dt, lanes=False), own_rows(together, world)
        right, W = expected(states[world], wanted), np.abs(inverse_mass(states[world]))
        bound = 50 * float(np.finfo(width.dtype).eps) * states[world].condition()
        np.testing.assert_array_equal(seen.A[world], seen.A[world].T)
        A_size = (right.gross @ W @ right.gross.T).max(initial=0.0)
        assert np.abs(seen.A[world][np.ix_(have, have)] - one.A).max(initial=0.0) <= bound * A_size
        a_size = np.abs(one.a_free) + np.abs(own["tau"]).max() * W.sum(axis=1)
        speed_size = 1.0 + (right.gross @ (np.abs(own["v"]) + (dt or 0.0) * a_size)).max(initial=0.0)
        assert np.abs(seen.speed[world][have] - one.speed).max(initial=0.0) <= bound * speed_size
        if dt is None:
            pull_size = 10.0 + (right.gross @ a_size + np.abs(right.rate) @ np.abs(own["v"])).max(initial=0.0)
            assert np.abs(seen.pull[world][have] - one.pull).max(initial=0.0) <= bound * pull_size
        lone = answer(single, own["q"], lam[world][have], dt=dt or 0.0, lanes=False)
        size = (W @ right.gross.T @ np.abs(lam[world][have])).max(initial=0.0)
        assert np.abs(answers[world] - lone).max() <= bound * size
        rest = np.setdiff1d(np.arange(seen.speed.shape[1]), have)
        for blank in (seen.A[world][rest], seen.A[world][:, rest], seen.speed[world][rest]):
            assert not blank.any()


@settings(EASY, max_examples=15)
@given(scene=scenes(massless=False), seed=SEEDS)
def test_worlds_do_not_know_their_neighbours(scene: Scene, seed: int) -> None:
    """The same world and rows in another lane, among other worlds with other rows: the same bits."""
    tree = make_tree(scene, seed)
    together, _, given_ = lanes_of_worlds(tree, F64X8, [3, 0, 7, 1, 0, 4, 2, 9])
    together.now.count[:, 4] = 0  # its blocks; another list follows
    lonely = Rows(tree.model, F64X8)
    elsewhere = {name: np.repeat(array[:1], 8, axis=0) for name, array in given_.items()}
    for name, array in given_.items():
        elsewhere[name][5] = array[4]
    for rows, world in ((together, 4), (lonely, 5)):
        fill(rows, Tree(scene, tree.model, np.random.default_rng(seed), tree.q, tree.v), 11, world=world)
    try:
        many, one = see(together, **given_), see(lonely, **elsewhere)
    except Singular:
        assume(False)
    here, there = own_rows(together, 4), own_rows(lonely, 5)
    assert len(here) == len(there) > 0
    np.testing.assert_array_equal(many.A[4][np.ix_(here, here)], one.A[5][np.ix_(there, there)])
    np.testing.assert_array_equal(many.speed[4][here], one.speed[5][there])
    np.testing.assert_array_equal(many.pull[4][here], one.pull[5][there])
