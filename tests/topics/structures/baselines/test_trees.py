"""Search trees for queries of known popularity: against all trees there are, by hand, and searched."""

import pytest
import torch
from hypothesis.strategies import integers, lists
from laws import holds

from companion.topics.structures.baselines.search import tree_search
from companion.topics.structures.baselines.trees import optimal_search_tree, treap
from companion.topics.structures.data import uniform
from companion.topics.structures.probes import best_so_far


def all_depths(low, high):
    """The depths of the keys low .. high - 1 in every search tree that they have."""
    if low == high:
        yield ()
    for root in range(low, high):
        for left in all_depths(low, root):
            for right in all_depths(root + 1, high):
                yield (*(d + 1 for d in left), 1, *(d + 1 for d in right))


def depths(tree):
    """The lookups that reach each key: 1 for the root."""
    depth, level, below = torch.zeros_like(tree.left), torch.tensor([tree.root]), 1
    while len(level):
        depth[level] = below
        level, below = torch.cat([tree.left[level], tree.right[level]]), below + 1
        level = level[level >= 0]
    return depth


def zipf_weights(n, seed):
    return (1 / torch.arange(1.0, n + 1))[torch.randperm(n, generator=torch.Generator().manual_seed(seed))]


def heaviest_first(values, depth=1):
    """How deep keys lie in the tree that has the heaviest one, the first among equals, on top everywhere."""
    if not values:
        return []
    top = values.index(max(values))
    return [*heaviest_first(values[:top], depth + 1), depth, *heaviest_first(values[top + 1 :], depth + 1)]


@holds(values=lists(integers(0, 5), min_size=1, max_size=6))
def test_no_tree_is_better_than_the_optimal_one_and_a_treap_has_the_heaviest_key_on_top(values):
    weights, trees = torch.tensor(values).float(), torch.tensor([*all_depths(0, len(values))])
    assert len(trees) == [1, 2, 5, 14, 42, 132][len(values) - 1]
    ours = depths(optimal_search_tree(weights))
    assert (ours == trees).all(1).any() and ours @ weights.long() == (trees @ weights.long()).min()
    assert depths(treap(weights)).tolist() == heaviest_first(values)


def test_keys_of_equal_weight_make_a_tree_as_flat_as_can_be():
    assert depths(optimal_search_tree(torch.ones(31))).bincount().tolist() == [0, 1, 2, 4, 8, 16]


def test_zipf_queries_take_as_many_lookups_as_their_keys_are_deep():
    """And fewer than binary search: the popular keys are near the root, of the optimal tree most of all."""
    points, _, _ = uniform(1, 63, generator=6)
    weights = zipf_weights(63, 1)
    query = points[0].sort(0).values
    means = []
    for tree in (optimal_search_tree(weights), treap(weights), optimal_search_tree(torch.ones(63))):
        right = best_so_far(tree_search(tree, points, query, 63), (points - query[:, None])[..., 0].abs())
        assert torch.equal(63 - right.sum(1) + 1, depths(tree))
        means.append(((depths(tree) * weights).sum() / weights.sum()).item())
    assert means == sorted(means) and means[0] < means[1] < means[2]


@pytest.mark.parametrize("tree", [optimal_search_tree, treap])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.zeros(0), "n = 0: must be at least 1"),
        (torch.tensor([1, -0.5]), "weights: have the entry -0.5; must be at least 0"),
    ],
)
def test_weights_must_be_there_and_not_negative(tree, weights, message):
    with pytest.raises(ValueError, match=message):
        tree(weights)
