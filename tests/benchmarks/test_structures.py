"""Searches of 10,000 queries at once, beside a loop over queries: 100 points, of one set or of a set for each query.

``pytest tests/benchmarks/test_structures.py --benchmark-enable -n0`` prints the ratios; no test asserts a time. Both
must look at the same points, which every run of the tests asserts on fewer queries. At the end, what a training step
costs as the points get more.
"""

import statistics
import time
from collections import Counter

import pytest
import torch

from companion.topics.structures.baselines.search import binary_search, interpolation_search, kd_tree
from companion.topics.structures.baselines.sketches import count_min
from companion.topics.structures.data import gumbel, uniform, zipf_streams
from companion.topics.structures.model import Structure, StructureConfig
from companion.topics.structures.recipes import cross_entropies

N, LOOKUPS = 100, 7


@pytest.fixture
def same(ratio):
    """The `ratio` of two that must look at the same points."""

    def compare(name, ours, plain):
        answer, reference = ratio(name, ours, plain)
        assert torch.equal(answer, reference)

    return compare


@pytest.fixture
def queries(benchmark):
    return 10_000 if benchmark.enabled else 50


def halves(low, high, values, q):
    return (low + high) // 2


def spread(low, high, values, q):
    """Where the query would be among evenly spread numbers."""
    before = values[low - 1] if low else -1.0
    after = values[high] if high < N else 1.0
    share = min(max((q - before) / (after - before), 0), 1)
    return min(max(low - 1 + round(float(share * (high - low + 1))), low), high - 1)


def search_loop(points, query, place):
    """One query after the other, as one writes it: lookups read tensors, or lists of numbers if they are given."""
    shared = len(points) == 1
    found = []
    for k, q in enumerate(query):
        if k == 0 or not shared:
            numbers = points[k]
            is_list = isinstance(numbers, list)
            order = sorted(range(N), key=numbers.__getitem__) if is_list else numbers.argsort()
            values = [numbers[i] for i in order] if is_list else numbers[order]
        low, high, places = 0, N, []
        for _ in range(LOOKUPS):
            if low < high:
                rank = place(low, high, values, q)
                if values[rank] < q:
                    low = rank + 1
                else:
                    high = rank
            places.append(int(order[rank]))
        found.append(places)
    return torch.tensor(found)


@pytest.mark.parametrize("kind", ["tensors", "lists"])
@pytest.mark.parametrize("sets", ["one set", "a set each"])
@pytest.mark.parametrize(
    ("search", "place"), [(binary_search, halves), (interpolation_search, spread)], ids=["binary", "interpolation"]
)
def test_search_of_sorted_numbers(same, queries, search, place, sets, kind):
    points, query, _ = uniform(queries, N, generator=1)
    points, query = (points if sets == "a set each" else points[:1]).double(), query.double()
    numbers, qs = (
        (points[..., 0], query[:, 0]) if kind == "tensors" else (points[..., 0].tolist(), query[:, 0].tolist())
    )
    name = f"{search.__name__}, {sets}, a loop over {kind}"
    same(name, lambda: search(points, query, LOOKUPS), lambda: search_loop(numbers, qs, place))


def kd_tree_loop(points, query):
    """The way down alone, from a tree that is built once."""
    found = []

    def build(places, axis):
        if not places:
            return None
        places = sorted(places, key=lambda place: points[place][axis])
        middle = len(places) // 2
        return places[middle], build(places[:middle], 1 - axis), build(places[middle + 1 :], 1 - axis)

    root = build(list(range(len(points))), 0)
    for q in query:
        node, axis, visited = root, 0, []
        while node:
            place, left, right = node
            visited.append(place)
            node = left if q[axis] < points[place][axis] else right
            axis = 1 - axis
        found.append(visited[:5])
    return torch.tensor(found)


@pytest.mark.parametrize("kind", ["tensors", "lists"])
def test_the_way_down_a_k_d_tree(same, queries, kind):
    """Ours also keeps what it needs to come back, which these five lookups do not use."""
    points, query, _ = uniform(queries, N, 2, generator=2)
    given = (points[0], query) if kind == "tensors" else (points[0].tolist(), query.tolist())
    same(f"k-d tree, a loop over {kind}", lambda: kd_tree(points[:1], query, 5), lambda: kd_tree_loop(*given))


def test_conservative_count_min(same, queries):
    """A tenth as many streams of 100 items as there are queries; the plain version is a dict for each row."""
    batch, items, rows = queries // 10, 50, 2
    stream = zipf_streams(batch, 100, items, generator=3)
    places = torch.randint(16, (batch, rows, items), generator=torch.Generator().manual_seed(4)).tolist()

    def plain():
        estimates = []
        for numbers, (first, second) in zip(stream.tolist(), places, strict=True):
            one, two = Counter(), Counter()
            for item in numbers:
                a, b = one[first[item]], two[second[item]]
                one[first[item]] += a <= b
                two[second[item]] += b <= a
            estimates.append([min(one[first[item]], two[second[item]]) for item in range(items)])
        return torch.tensor(estimates)

    same(
        "conservative count-min", lambda: count_min(stream, items, 32, rows=rows, conservative=True, generator=4), plain
    )


def training_step(n, batch):
    """A step of Adam on ``batch`` sets of n numbers, with 6 lookups."""
    model = Structure(StructureConfig(n, 1, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    points, query, distances = uniform(batch, n, generator=5)
    query, nearest = query[:, None], distances.argmin(-1)[:, None]
    noise = gumbel(batch, 1, 6, n, generator=torch.Generator().manual_seed(6))

    def step():
        optimizer.zero_grad()
        loss = cross_entropies(model, points, query, nearest, noise, earlier=0.3)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


@pytest.mark.parametrize("n", [16, 32, 64])
def test_a_training_step_by_the_number_of_points(benchmark, capsys, n):
    """Beside one of 16 points, in the same run."""
    batch, rounds = (256, 20) if benchmark.enabled else (4, 1)
    few = training_step(16, batch)
    few()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        few()
        seconds.append(time.perf_counter() - started)
    step = training_step(n, batch)
    first, again = step(), benchmark.pedantic(step, rounds=rounds)
    if benchmark.enabled:
        benchmark.extra_info["ratio"] = ratio = benchmark.stats.stats.median / statistics.median(seconds)
        with capsys.disabled():
            print(
                f"\na step with {n} points: {ratio:.1f} times as long as with 16 ({benchmark.stats.stats.median:.3f} s)"
            )
    assert again != first  # the batch is the same: the step has changed the model
