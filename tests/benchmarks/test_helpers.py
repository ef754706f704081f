"""The parts that benchmarks are made of: timing in turns, ratios, targets, trees, peers on the same tree."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmark_scripts import helper
from poise import dynamics

common, trees = helper("_common"), helper("_trees")
Case, Effort, Row, Spread, Timings = common.Case, common.Effort, common.Row, common.Spread, common.Timings


def spread(x: float) -> Spread:
    return Spread(x, x, x)


def test_cases_take_turns_in_both_orders():
    calls = []
    cases = [Case(name, lambda n, name=name: calls.append(name)) for name in "AB"]
    common.measure(cases, Effort(4, 0.0))
    # each is called twice to warm up; then A B, B A, A B, B A
    assert "".join(calls) == "AABB" + "ABBAABBA"


def test_preparation_comes_before_every_batch_and_is_not_timed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(common.time, "perf_counter", lambda: now[0])

    def advance(seconds: float) -> None:
        now[0] += seconds

    case = Case("slow start", lambda n: advance(0.5 * n), worlds=2, prepare=lambda: advance(100.0))
    times = common.measure([case], Effort(3, 4.0))
    # 8 repetitions make 4 s; half a second each serves two worlds
    assert times.seconds["slow start"].tolist() == [0.25] * 3


def test_ratios_are_formed_within_a_round():
    times = Timings({"A": [1.0, 10.0, 4.0], "B": [2.0, 20.0, 8.0]})
    assert times.ratio("A", "B") == Spread(0.5, 0.5, 0.5)
    assert times.excess("B", "A").median == 4.0
    assert times.of("A").median == 4.0


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("", spread(1.0)), None),
        (Row("", spread(1.0), most=2.0), True),
        (Row("", spread(3.0), most=2.0), False),
        (Row("", spread(3.0), ratio=spread(0.4), most=0.5), True),
        (Row("", spread(0.1), ratio=spread(0.6), most=0.5), False),
        (Row("", spread(1.0), least=0.9, most=1.1), True),
        (Row("", spread(0.8), least=0.9, most=1.1), False),
        (Row("", spread(float("nan")), most=1.0), False),
    ],
)
def test_targets(row, met):
    assert row.met is met


@pytest.mark.parametrize(("residual", "status"), [(1e-12, 0), (1e-3, 1), (float("nan"), 1), (None, 0)])
def test_wrong_answer_fails_however_fast(residual, status, tmp_path, capsys):
    row = Row("fast", spread(1e-9), residual=residual, allowed=1e-9)
    file = tmp_path / "found.json"
    assert common.Report("b", "what", rows=[row]).finish(str(file)) == status
    assert ("wrong: residual of fast" in capsys.readouterr().out) == bool(status)
    assert len(json.loads(file.read_text())["rows"]) == 1


def test_missed_target_is_told_and_no_failure(capsys):
    assert common.Report("b", "what", rows=[Row("slow", spread(9.0), unit="s", most=1.0)]).finish(None) == 0
    assert "NO" in capsys.readouterr().out


def test_digest_tells_results_apart():
    one, same, other = (common.Report("b", "", results=[np.array(x)]) for x in ([1.0, 2.0], [1.0, 2.0], [1.0, 2.5]))
    assert one.digest() == same.digest() != other.digest()
    assert common.Report("b", "").digest() is None


@pytest.mark.parametrize("n", [1, 2, 10, 100])
def test_bush_is_a_tree_of_bounded_branching(n):
    parents = trees.bush(n)
    assert parents[0] == -1
    assert all(0 <= parent < i for i, parent in enumerate(parents[1:], 1))
    assert max(np.bincount([p for p in parents if p >= 0], minlength=1)) <= 3
    assert trees.chain(n) == list(range(-1, n - 1))


def test_tree_has_a_hinge_for_each_link():
    model = trees.tree(trees.bush(12))
    assert (model.n_links, model.nv) == (12, 12)
    assert model.link_parent.tolist().count(-1) == 1


def test_random_states_are_states():
    model = trees.load_model(trees.find_humanoid())
    states = trees.random_states(model, 5)
    assert states.q.shape == (5, model.nq)
    np.testing.assert_allclose(np.linalg.norm(states.q[:, 3:7], axis=1), 1.0)
    assert not np.array_equal(states.q[0], states.q[1])


@pytest.mark.parametrize("which", ["humanoid", "bush"])
def test_pinocchio_gets_the_same_tree(which):
    humanoid = which == "humanoid"
    model = trees.load_model(trees.find_humanoid()) if humanoid else trees.tree(trees.bush(12))
    peer, states = helper("_peers").PinocchioPeer(model), trees.random_states(model, 3)
    assert peer.model.nv == model.nv
    for q, v, tau in zip(states.q, states.v, states.tau, strict=True):
        ours = dynamics.forward_dynamics(model, q, v, tau)
        np.testing.assert_allclose(peer.accelerations(q, v, tau), ours, rtol=0, atol=1e-10 * np.abs(ours).max())


def test_pinocchio_batch_answers_as_single_calls():
    model = trees.load_model(trees.find_humanoid())
    peer, states = helper("_peers").PinocchioPeer(model), trees.random_states(model, 3)
    rows = [peer.convert(*row) for row in zip(states.q, states.v, states.tau, strict=True)]
    single = np.stack([peer.pin.aba(peer.model, peer.data, *row) for row in rows], axis=1)
    np.testing.assert_allclose(peer.batch(rows)(), single, rtol=1e-9)


def test_pinocchio_refuses_a_tree_that_it_has_no_joints_for():
    import poise

    scene = poise.Scene()
    scene.slider(None, poise.box(0.1, 0.1, 0.1))
    with pytest.raises(SystemExit, match="a free joint or none, then hinges"):
        helper("_peers").PinocchioPeer(scene.compile())


def test_mujoco_without_contacts_agrees():
    path = trees.find_humanoid()
    model = trees.load_model(path)
    peer, states = helper("_peers").MujocoPeer(path), trees.random_states(model, 3)
    for q, v, tau in zip(states.q, states.v, states.tau, strict=True):
        ours = dynamics.forward_dynamics(model, q, v, tau)
        np.testing.assert_allclose(peer.accelerations(q, v, tau), ours, rtol=0, atol=1e-10 * np.abs(ours).max())
