"""Trees of boxes: every item is below one leaf, within all boxes on the way to it."""

from __future__ import annotations

import numpy as np
import pytest

from poise.collision.mesh_bvh import box_tree, triangle_tree


def cloud(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(count, 3))
    return low, low + rng.random((count, 3)) * 0.1


@pytest.mark.parametrize("count", [1, 2, 4, 5, 37, 1000])
@pytest.mark.parametrize("leaf", [1, 4])
def test_every_item_is_below_one_leaf_and_within_its_boxes(count, leaf) -> None:
    low, high = cloud(count)
    tree = box_tree(low, high, leaf)
    assert sorted(tree.order.tolist()) == list(range(count))
    assert tree.first[0] == 0
    assert tree.count[0] == count
    leaves = np.flatnonzero(tree.child < 0)
    assert tree.count[leaves].sum() == count
    assert tree.count[leaves].max() <= leaf
    for node in range(len(tree)):
        items = tree.order[tree.first[node] : tree.first[node] + tree.count[node]]
        np.testing.assert_array_equal(tree.low[node], low[items].min(axis=0))
        np.testing.assert_array_equal(tree.high[node], high[items].max(axis=0))
        if tree.child[node] >= 0:
            one, two = tree.child[node], tree.child[node] + 1
            assert one > node
            assert tree.first[one] == tree.first[node]
            assert tree.first[two] == tree.first[one] + tree.count[one]
            assert tree.count[one] + tree.count[two] == tree.count[node]
    assert tree.depth <= np.ceil(np.log2(count / leaf)) + 1 if count > leaf else tree.depth == 1


def test_a_search_finds_what_looking_at_all_finds_and_looks_at_few() -> None:
    low, high = cloud(2000)
    tree = box_tree(low, high)
    for point in np.random.default_rng(1).normal(size=(50, 3)):
        stack, found, looked = [0], [], 0
        while stack:
            node = stack.pop()
            looked += 1
            if (tree.low[node] > point + 0.2).any() or (tree.high[node] < point - 0.2).any():
                continue
            if tree.child[node] >= 0:
                stack += [tree.child[node], tree.child[node] + 1]
                continue
            items = tree.order[tree.first[node] : tree.first[node] + tree.count[node]]
            found += [k for k in items if (low[k] <= point + 0.2).all() and (high[k] >= point - 0.2).all()]
        wanted = np.flatnonzero((low <= point + 0.2).all(axis=1) & (high >= point - 0.2).all(axis=1))
        assert sorted(found) == wanted.tolist()
        assert looked < 0.5 * len(tree)


def test_items_in_one_place_are_split_all_the_same() -> None:
    tree = box_tree(np.zeros((100, 3)), np.ones((100, 3)))
    assert tree.count[tree.child < 0].max() <= 4
    assert tree.depth == 6


def test_no_items() -> None:
    tree = box_tree(np.zeros((0, 3)), np.zeros((0, 3)))
    assert len(tree) == 0
    assert tree.depth == 0


def test_triangles() -> None:
    rng = np.random.default_rng(2)
    vertices, faces = rng.normal(size=(40, 3)), rng.integers(0, 40, (60, 3))
    tree = triangle_tree(vertices, faces)
    np.testing.assert_array_equal(tree.low[0], vertices[np.unique(faces)].min(axis=0))
    np.testing.assert_array_equal(tree.high[0], vertices[np.unique(faces)].max(axis=0))


@pytest.mark.parametrize(
    ("low", "high", "leaf", "message"),
    [
        (np.zeros((2, 2)), np.zeros((2, 2)), 4, r"two arrays \(m, 3\) of corners, found \(2, 2\)"),
        (np.zeros((2, 3)), np.zeros((3, 3)), 4, r"found \(2, 3\) and \(3, 3\)"),
        (np.ones((1, 3)), np.zeros((1, 3)), 4, "no corner of `low` above"),
        (np.full((1, 3), np.nan), np.zeros((1, 3)), 4, "must be finite"),
        (np.zeros((1, 3)), np.ones((1, 3)), 0, "at least 1 item, found 0"),
    ],
)
def test_hostile_input(low, high, leaf, message) -> None:
    with pytest.raises(ValueError, match=message):
        box_tree(low, high, leaf)
